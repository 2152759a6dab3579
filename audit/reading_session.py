"""The Spark that runs already, or one of our own that is silent and leaves nothing behind."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from audit.errors import InputError
from audit.grouping_spark import SparkConnection
from audit.reading_text import Scratch

__all__ = ["driver_memory", "start_spark"]

#: The least and the most of memory that a driver of ours asks for unless it is told, in MiB.
_MEMORY = (1024, 16384)

#: Java compiles once, not over and over: an audit is too short for that to pay; a third of the time is saved.
_QUICK = "-XX:TieredStopAtLevel=1"

_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
#: For a Spark on this machine: nobody else talks to it, and its cores are few and known.
_NEAR = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "localhost",
    "spark.sql.shuffle.partitions": str(max(8, 2 * (os.cpu_count() or 1))),
    "spark.sql.files.maxPartitionBytes": "32m",
}


def start_spark(master: str | None, scratch: Scratch) -> SparkConnection:
    """Connect to the session that runs already, or to a new one that ends with the connection.

    A new one has the settings of the user's own ``spark-defaults.conf`` and ``PYSPARK_SUBMIT_ARGS``, and ours where
    these are silent. Its driver gets a quarter of this machine's memory unless they or ``SPARK_DRIVER_MEMORY`` say
    otherwise. What its processes write, such as logs, is not shown.

    Raises
    ------
    InputError
        Spark does not start.
    """
    with warnings.catch_warnings():  # PySpark warns of new versions of pandas, which has no part in this
        warnings.simplefilter("ignore", FutureWarning)
        try:
            return _connect(master, scratch)
        except InputError:
            raise
        except Exception as error:
            raise _refused(master, str(error)) from error


def _connect(master: str | None, scratch: Scratch) -> SparkConnection:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        return SparkConnection(SparkSession.builder.getOrCreate(), own=False)
    return SparkConnection(_session(master, scratch), own=True)


def _session(master: str | None, scratch: Scratch) -> Any:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    gateway = SparkContext._gateway or _launch(master)  # Java stays when a session ends
    given = gateway.jvm.org.apache.spark.SparkConf(True)
    address = master or given.get("spark.master", "local[*]")
    near = address.startswith("local")
    ours = {**_QUIET, **(_NEAR if near else {}), "spark.sql.warehouse.dir": scratch.path().as_uri()}
    conf = SparkConf().setAppName("label-audit").setMaster(address)
    for name, value in ours.items():
        if not given.contains(name):
            conf.set(name, value)
    with _environment({"PYSPARK_PYTHON": sys.executable} if near else {}):
        SparkContext(conf=conf, gateway=gateway)
    return SparkSession.builder.getOrCreate()


def _launch(master: str | None) -> Any:
    """Start Java; what it and its children write goes to a file that nobody sees."""
    from pyspark.java_gateway import launch_gateway

    with tempfile.TemporaryFile() as log:
        try:
            with _environment({"SPARK_DRIVER_MEMORY": f"{driver_memory()}m", "SPARK_SUBMIT_OPTS": _QUICK}):
                return launch_gateway(popen_kwargs={"stdout": log, "stderr": log})
        except Exception as error:
            log.seek(0)
            raise _refused(master, log.read().decode(errors="replace") or str(error)) from error


def _refused(master: str | None, told: str) -> InputError:
    """The error of one line, with the line of a log or trace that says most."""
    lines = [" ".join(line.split()).lstrip(": ") for line in told.splitlines() if line.strip()]
    named = [line for line in lines if re.search(r"(Error|Exception): |not set|not found|[Nn]o such", line)]
    reason = (named or lines or ["no reason given"])[0][:200]
    return InputError(
        f"Spark cannot be started on {master or 'this machine'} ({reason}); it needs Java 17 or newer (set JAVA_HOME) "
        "and a master that answers"
    )


def driver_memory() -> int:
    """The memory of a driver of ours in MiB: a quarter of this machine's, from 1 GiB to 16 GiB."""
    low, high = _MEMORY
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    except (AttributeError, OSError, ValueError):  # not on Windows
        return low
    return min(max(machine // 4, low), high)


@contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    """Set variables that are not set, for as long as this lasts."""
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
