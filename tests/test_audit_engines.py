"""One audit, whatever holds the rows: frames of several libraries, and a real Spark on this machine."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from audit.duplicates import audit_duplicates
from audit.errors import ArgumentError, InputError, MissingExtraError
from audit.kinds import audit_kind
from audit.reading import engine_of, open_table
from audit.results import AuditResult
from tests.conftest import ROOT, missing

COLUMNS = ("text", "part", "label", "who", "when", "split", "id", "score")


def audit(source: Any, **options: Any) -> dict[str, Any]:
    """The JSON of an audit, without what names the source."""
    told = whole(audit_duplicates(source, draws=200, **options))
    for name in ("source", "format", "encoding", "delimiter"):
        told["data"].pop(name)
    return told


def whole(result: AuditResult) -> dict[str, Any]:
    """The JSON of an audit and its conflicts."""
    conflicts = [dataclasses.asdict(group) for group in result.conflicts]
    told: dict[str, Any] = json.loads(json.dumps({**result.to_dict(), "conflicts": conflicts}))
    return told


def made_rows(count: int, *, seed: int = 5) -> list[tuple[Any, ...]]:
    """Rows with repeats in several spellings, copies, gaps and times; every kind of alarm has something to look at."""
    draw = random.Random(seed)
    texts = [
        "déjà vu",
        "De\u0301JA\u0300  vu",
        "one",
        " ONE",
        "two, or",
        "Two\u00a0or",
        "?",
        "!",
        "",
        "\u200b",
        "it's",
    ]
    texts += [f"a longer text, number {k}" for k in range(count // 3)]
    rows = []
    for place in range(count):
        when = f"2024-05-01 10:0{draw.randrange(3)}:{draw.randrange(60):02d}"
        rows.append((
            draw.choice(texts), draw.choice(["a", "A", "b"]), draw.choice(["yes", "yes", "no", "Yes", "maybe", ""]),
            draw.choice(["ann", "bob", "eve", ""]), draw.choice([when, when, ""]), draw.choice(["train", "test"]),
            f"r{place // 2 if draw.random() < 0.1 else place}", draw.choice([1.0, 2.0, None]),
        ))  # fmt: skip
    return rows


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return pd.DataFrame(made_rows(240), columns=list(COLUMNS))


@pytest.fixture(scope="module")
def csv_file(table: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("engines") / "rows.csv"
    table.astype({"score": "Int64"}).to_csv(path, index=False)
    return path


FULL: dict[str, Any] = {
    "item": ["text", "part"], "label": "label", "row_id": "id", "annotator": "who", "time": "when", "split": "split",
    "by": ["score"], "show_conflicts": 30,
}  # fmt: skip


@pytest.fixture(scope="module")
def expected(csv_file: Path) -> dict[str, Any]:
    """What DuckDB says of the CSV file."""
    told = audit(csv_file, **FULL)
    assert told["repeats"]["conflicts"] > 20
    assert told["conflicts"]
    assert told["repeats"]["ladder"]
    return told


def without_notes(told: dict[str, Any]) -> dict[str, Any]:
    """``told`` without the note on decimals, which a text file does not have."""
    notes = [note for note in told["data"]["notes"] if not note.startswith("stored as decimals")]
    return {**told, "data": {**told["data"], "notes": notes}}


def as_frame(library: str, table: pd.DataFrame, folder: Path, spark: Callable[[], Any]) -> Any:
    """The table as a frame of a library."""
    import duckdb
    import narwhals as nw
    import polars as pl
    import pyarrow as pa

    if library == "DuckDB":
        return duckdb.connect().from_df(table)
    if library.endswith("PySpark"):
        path = folder / "rows.parquet"
        table.to_parquet(path, index=False, row_group_size=60)
        frame: Any = spark().read.option("maxPartitionBytes", "4096").parquet(str(path))
        return nw.from_native(frame) if library.startswith("narwhals") else frame
    return {
        "pandas": lambda: table,
        "Arrow": lambda: pa.Table.from_pandas(table, preserve_index=False),
        "Polars": lambda: pl.from_pandas(table),
        "lazy Polars": lambda: pl.from_pandas(table).lazy(),
        "narwhals, pandas": lambda: nw.from_native(table),
        "narwhals, Polars": lambda: nw.from_native(pl.from_pandas(table)),
        "narwhals, lazy Polars": lambda: nw.from_native(pl.from_pandas(table).lazy()),
    }[library]()


@pytest.mark.parametrize(
    "library",
    [
        "pandas", "Arrow", "Polars", "lazy Polars", "DuckDB", "PySpark", "narwhals, pandas", "narwhals, Polars",
        "narwhals, lazy Polars", "narwhals, PySpark",
    ],
)  # fmt: skip
def test_every_frame_gives_the_audit_of_its_csv(
    library: str,
    table: pd.DataFrame,
    expected: dict[str, Any],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    frame = as_frame(library, table, tmp_path, lambda: request.getfixturevalue("spark"))
    assert engine_of(frame) == ("spark" if library.endswith("PySpark") else "duckdb")
    if library == "narwhals, PySpark":  # from here on the way is that of PySpark
        with open_table(frame, engine="spark") as opened, open_table(table) as same:
            assert (opened.columns, opened.head(50)) == (same.columns, same.head(50))
        return
    if library == "PySpark":  # the ladder, which takes its time, is climbed below
        options = {**FULL, "ladder": False}
        assert without_notes(audit(frame, **options)) == without_notes(audit(table, **options))
        return
    assert without_notes(audit(frame, **FULL)) == expected


# --- Spark --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One small Spark for the whole run: a real one, in two threads of this machine."""
    pyspark = pytest.importorskip(
        "pyspark.sql", reason="pyspark is not installed (pip install 'label-audit[spark]')"
    )
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        missing("Java is not installed (apt install openjdk-17-jre-headless)")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR",
        "spark.driver.host": "localhost", "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        # what is compiled and planned anew pays on large data only
        "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }  # fmt: skip
    builder = pyspark.SparkSession.builder.master("local[2]").appName("tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
    del os.environ["PYSPARK_PYTHON"]


def test_spark_gives_the_same_json_of_a_file(spark: Any, csv_file: Path) -> None:
    names = [row.tableName for row in spark.sql("SHOW VIEWS").collect()]
    here, there = (
        whole(audit_duplicates(csv_file, draws=200, engine=engine, **FULL)) for engine in ("duckdb", "spark")
    )
    assert there == here
    assert [row.tableName for row in spark.sql("SHOW VIEWS").collect()] == names, "views were left behind"


def test_partitions_batches_and_chunks_of_any_size_give_the_same(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from audit import grouping_spark

    monkeypatch.setattr(grouping_spark, "_CHUNK", 70)  # rows that DuckDB is handed at a time
    draw = random.Random(17)
    rows = [
        (
            f"r{place}",
            draw.choice(["the very same", "The very  same"]) if place % 2 else f"text {draw.randrange(500)}",
            draw.choice(["yes", "yes", "no"]),
            draw.choice("abcdefgh"),
        )
        for place in range(1400)
    ]
    rows[250:600] = [("gone", "", "", "")] * 350  # a partition of five is left without rows
    names = ["id", "text", "label", "who"]
    frame = spark.createDataFrame(
        spark.sparkContext.parallelize(rows, 5), ", ".join(f"{name} string" for name in names)
    ).where("id <> 'gone'")
    assert 0 in frame.rdd.glom().map(len).collect()
    kept = {"spark.sql.shuffle.partitions": "3", "spark.sql.execution.arrow.maxRecordsPerBatch": "64"}
    before = {name: spark.conf.get(name) for name in kept}
    options = {"item": "text", "label": "label", "annotator": "who", "ladder": False, "show_conflicts": 50}
    try:
        for name, value in kept.items():
            spark.conf.set(name, value)
        there = audit(frame, **options)
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    assert there == audit(pd.DataFrame([row for row in rows if row[0] != "gone"], columns=names), **options)
    assert there["repeats"]["pairs"] > 100_000  # one item holds half of the rows


def test_rows_are_numbered_across_partitions(spark: Any) -> None:
    frame = spark.range(0, 1000, 1, 7).selectExpr("cast(id as string) AS text", "'x' AS label")
    with open_table(frame, engine="spark") as table:
        assert table.materialise(f"SELECT text FROM {table.name}", "numbered") == 1000
        found = table.con.execute("SELECT rowid, text FROM numbered ORDER BY rowid").fetchall()
        assert found == [(k, str(k)) for k in range(1000)]
        assert table.head(3) == [("0", "x"), ("1", "x"), ("2", "x")]
        assert [row for batch in table.rows(["text"]) for row in batch] == [(str(k),) for k in range(1000)]


@pytest.mark.parametrize(
    "options",
    [
        {"label_columns": ["v1", "v2", "v3"]},
        {"counts": ["yes", "no"], "item": "text", "normalise": "punctuation"},
        {"item": "text", "label": "v1", "merge_labels": True, "drop_copies": True, "one_per": "v2"},
        {
            "item": "text",
            "label": "v1",
            "normalise": "none",
            "missing": ["no"],
            "classes": ["yes", "never", "Yes"],
        },
    ],
    ids=["votes", "counts", "left out", "declared"],
)
def test_spark_agrees_on_other_forms_of_tables(spark: Any, tmp_path: Path, options: dict[str, Any]) -> None:
    draw = random.Random(11)
    labels = ["yes", "no", "Yes", ""] if options.get("normalise") != "none" else ["yes", "no", ""]
    rows = [
        (
            draw.choice(["x", "X ", "y!", "y", "?", " "]),
            *draw.choices(labels, k=3),
            draw.randrange(3),
            draw.choice("2 "),
        )
        for _ in range(60)
    ]
    path = tmp_path / "rows.tsv"
    pd.DataFrame(rows, columns=["text", "v1", "v2", "v3", "yes", "no"]).to_csv(path, sep="\t", index=False)
    told = audit(path, ladder=False, engine="spark", **options)
    assert told == audit(path, ladder=False, **options)
    assert told["repeats"]["items"]


def test_only_counts_and_conflicts_leave_spark(
    spark: Any, csv_file: Path, monkeypatch: pytest.MonkeyPatch, table: pd.DataFrame
) -> None:
    from audit import grouping_spark

    fetched: list[Sequence[Any]] = []

    class Watched(grouping_spark.Cursor):
        def fetchall(self) -> list[tuple[Any, ...]]:
            rows = super().fetchall()
            fetched.append(rows)
            return rows

    monkeypatch.setattr(grouping_spark, "Cursor", Watched)
    many = pd.DataFrame(
        {"text": [f"text {k // 2}" for k in range(2000)], "label": ["a", "b", "b", "b"] * 500}
    )
    told = audit(spark.createDataFrame(many.to_numpy().tolist(), "text string, label string"),
                 item="text", label="label", ladder=False, show_conflicts=3)  # fmt: skip
    assert told["repeats"]["items"] == 1000
    assert fetched
    assert max(map(len, fetched)) < 20  # count patterns, lengths of texts, and three conflicts


def test_spark_writes_the_conflicts_and_knows_kinds(spark: Any, tmp_path: Path, csv_file: Path) -> None:
    for engine in ("duckdb", "spark"):
        told = audit_kind(
            csv_file, kind="numeric", options={"item": ("part",), "label": "score", "engine": engine}
        ).to_dict()  # type: ignore[attr-defined]
        audit_duplicates(
            csv_file, item="text", label="label", ladder=False, draws=50, engine=engine,  # type: ignore[arg-type]
            conflicts_file=tmp_path / f"{engine}.csv",
        )  # fmt: skip
        (tmp_path / f"{engine}.json").write_text(json.dumps(told))
    for ending in ("csv", "json"):
        assert (tmp_path / f"spark.{ending}").read_text() == (tmp_path / f"duckdb.{ending}").read_text()


def test_what_spark_cannot_do_is_said(spark: Any, tmp_path: Path, csv_file: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.parquet: Spark cannot work this out"):
        audit("file:///nowhere.parquet", engine="spark")
    with pytest.raises(InputError, match="no rows"):
        audit(spark.range(0).selectExpr("'a' AS text", "'b' AS label"))
    with pytest.raises(ArgumentError, match="is not in Spark; give a PySpark data frame"):
        audit(pd.DataFrame({"text": ["a"], "label": ["b"]}), engine="spark")
    with pytest.raises(InputError, match="cannot see this file; give Parquet"):
        audit(csv_file, engine="spark", master="spark://somewhere:7077")
    with pytest.raises(ArgumentError, match="--engine is not for --kind tags"):
        audit_kind(csv_file, kind="tags", options={"item": ("text",), "label": "label", "engine": "spark"})
    with pytest.raises(ArgumentError, match="leave it out, or --engine spark"):
        audit_duplicates(csv_file, item="text", label="label", gold="label", engine="spark", ladder=False)


def test_an_engine_is_one_of_two_and_a_master_is_sparks(csv_file: Path) -> None:
    with pytest.raises(ArgumentError, match="duckdb, spark"):
        audit(csv_file, engine="dask")
    with pytest.raises(ArgumentError, match="together with engine spark"):
        audit(csv_file, master="local[2]")


def test_a_missing_extra_is_named(csv_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import util

    found = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name: None if name == "sqlglot" else found(name))
    with pytest.raises(MissingExtraError, match=r"pip install 'label-audit\[spark\]'"):
        audit(csv_file, engine="spark")


def test_the_pages_say_what_leaves_spark() -> None:
    page = (ROOT / "docs" / "sources.md").read_text("utf-8")
    assert "--engine spark" in page
    assert "--table" in page
