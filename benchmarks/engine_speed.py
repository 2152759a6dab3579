"""The audit of a large file in DuckDB and in Spark on this machine: is it the same JSON, and what does it cost?

The file is that of ``audit_speed.py``, as CSV and as Parquet, which Spark reads by itself. Each audit runs in a process
of its own; wall time, and processor time with that of Spark's Java and Python workers. Exits with 1 where one differs.

    python benchmarks/engine_speed.py [--rows N] [--master local[2]] [--csv]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from audit_speed import write_file


def one(path: str, engine: str, master: str) -> None:
    """Audit once; print the figures, and a digest of the JSON and the conflicts shown."""
    from audit.duplicates import audit_duplicates

    start = time.perf_counter()
    more = {"engine": "spark", "master": master} if engine == "spark" else {}
    result = audit_duplicates(path, item=("passage", "company"), label="label", ladder=False, **more)
    wall = time.perf_counter() - start
    if more:
        from pyspark import SparkContext

        gateway = SparkContext._gateway
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()  # so that its processor time is counted
    text = json.dumps([result.to_dict(), [str(group) for group in result.conflicts]], sort_keys=True)
    told = {"digest": hashlib.sha256(text.encode()).hexdigest(), "items": result.repeats.items, "wall": wall}
    print(json.dumps(told))


def measure(path: Path, engine: str, master: str) -> dict[str, float | str]:
    """One audit in a process of its own; ``processor`` counts all of its processes that ended in time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, __file__, "--one", str(path), "--engine", engine, "--master", master],
        stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    told: dict[str, float | str] = json.loads(done.stdout.splitlines()[-1])
    told["processor"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return told


def main() -> None:
    """Write the file, audit it on both engines, compare."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--csv", action="store_true", help="audit the CSV file, not the Parquet one")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--engine", default="duckdb", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        one(given.one, given.engine, given.master)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        write_file(path, given.rows, "plain")
        if not given.csv:
            import duckdb

            stored = path.with_suffix(".parquet")
            duckdb.sql(f"COPY (FROM read_csv('{path}', all_varchar = true)) TO '{stored}'")
            path = stored
        told = {engine: measure(path, engine, given.master) for engine in ("duckdb", "spark")}
    for engine, figures in told.items():
        print(
            f"{engine:8} {figures['wall']:8.1f} s wall {figures['processor']:8.1f} s processor "
            f"{figures['items']:>8} repeated items  {figures['digest'][:12]}"  # type: ignore[index]
        )
    here, there = (told[engine] for engine in ("duckdb", "spark"))
    print(f"Spark takes {float(there['wall']) / float(here['wall']):.1f} times the wall time of DuckDB")
    if here["digest"] != there["digest"]:
        sys.exit("the two audits differ")
    print("the same JSON and the same conflicts")


if __name__ == "__main__":
    main()
