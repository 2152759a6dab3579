"""The Spark that the audit starts itself: silent, modest, obedient to the user's own settings, and gone at the end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.command import run
from tests.conftest import ROOT, missing

pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'label-audit[spark]')")


@pytest.fixture
def csv_file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    table = {
        "text": ["one", "One", "two", "two ", "three"] * 4,
        "label": ["yes", "no", "yes", "yes", "no"] * 4,
    }
    pd.DataFrame(table).to_csv(path, index=False)
    return path


_OWN = """
import json, os, sys
import cli
from audit import reading_spark

started = reading_spark.start_spark
def watched(*given):
    con = started(*given)
    context, conf = con.session.sparkContext, con.session.conf
    names = "spark.driver.memory", "spark.sql.shuffle.partitions", "spark.ui.enabled", "spark.sql.warehouse.dir"
    print(json.dumps([context.master, *map(conf.get, names), "PYSPARK_PYTHON" in os.environ]))
    return con
reading_spark.start_spark = watched
cli.main()
"""


def run_alone(*words: str | Path, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process and a folder of its own."""
    spark = {name for name in os.environ if name.startswith(("SPARK_", "PYSPARK_"))}
    kept = {name: value for name, value in os.environ.items() if name not in spark}
    return subprocess.run(
        [sys.executable, "-c", _OWN, "dupes", *map(str, words)],
        cwd=folder, text=True, capture_output=True, check=False, env={**kept, "PYTHONPATH": str(ROOT), **variables},
    )  # fmt: skip


def test_a_spark_of_our_own_is_silent_obeys_and_leaves_nothing(csv_file: Path, tmp_path: Path) -> None:
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        missing("Java is not installed (apt install openjdk-17-jre-headless)")
    folder, scratch = tmp_path / "work", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    words = [csv_file, "--item", "text", "--label", "label", "--no-ladder", "--format", "json"]
    done = run_alone(
        *words, "--engine", "spark", "--master", "local[1]", folder=folder, TMPDIR=str(scratch),
        PYSPARK_SUBMIT_ARGS="--driver-memory 1100m --conf spark.sql.shuffle.partitions=1 "
        "--driver-java-options '-XX:+UseSerialGC' --conf spark.sql.codegen.wholeStage=false "
        "--conf spark.sql.codegen.factoryMode=NO_CODEGEN --conf spark.sql.adaptive.enabled=false pyspark-shell",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    settings, _, told = done.stdout.partition("\n")
    master, memory, partitions, page, warehouse, variable = json.loads(settings)
    assert (master, memory, partitions, page, variable) == ("local[1]", "1100m", "1", "false", False)
    assert warehouse.startswith(f"file:{scratch}")
    assert [*folder.iterdir(), *scratch.iterdir()] == []
    assert json.loads(told) == json.loads(run(*["dupes", *words]).out)


def test_a_spark_that_does_not_start_says_why(csv_file: Path, tmp_path: Path) -> None:
    done = run_alone(
        csv_file, "--item", "text", "--label", "label", "--engine", "spark", folder=tmp_path,
        JAVA_HOME=str(tmp_path / "nowhere"),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "Spark cannot be started on this machine" in line
    assert "nowhere/bin/java" in line
    assert "it needs Java 17 or newer (set JAVA_HOME)" in line


def test_a_driver_of_our_own_gets_a_share_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from audit.reading_session import driver_memory

    for pages, megabytes in ((1 << 18, 1024), (1 << 22, 4096), (1 << 26, 16384)):
        monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": pages}.__getitem__)
        assert driver_memory() == megabytes
    monkeypatch.delattr(os, "sysconf")
    assert driver_memory() == 1024
