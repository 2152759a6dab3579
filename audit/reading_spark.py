"""Tables that stay in Spark: a PySpark data frame or Parquet, as text columns."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw

from audit.errors import ArgumentError, InputError, MissingExtraError
from audit.grouping_spark import Cursor, SparkConnection, map_rows, spark_errors
from audit.reading import Table, engine_of, open_table
from audit.reading_scan import ReadReport
from audit.reading_session import start_spark
from audit.reading_sniff import unique_names
from audit.reading_sources import POSTGRES, redacted, scheme
from audit.reading_text import Scratch
from audit.reading_typed import cell_texts, described, literal, masked, quote, whole_tests

__all__ = ["SparkTable", "open_in_spark"]


class SparkTable(Table):
    """An open table whose rows stay in Spark; see :class:`audit.reading.Table`.

    Row numbers follow the order in which Spark lists the rows: that of the file, or of the frame's partitions.
    """

    def __init__(
        self,
        con: SparkConnection,
        scratch: Scratch,
        frame: Any,
        *,
        names: Sequence[str],
        report: ReadReport,
        missing: Sequence[str],
    ) -> None:
        self.con = con  # type: ignore[assignment]
        self.name = "source"
        self._spark = con
        self._scratch = scratch
        columns, renamed = unique_names(names)
        self._frame = frame.toDF(*(f"c{k}" for k in range(len(columns))))
        kinds = _kinds(self._frame)
        whole = self._whole(whole_tests(kinds))
        texts = masked(cell_texts(kinds, whole), missing, blanks=True)
        cells = ", ".join(f"{text} AS {quote(name)}" for text, name in zip(texts, columns, strict=True))
        self._source = f"(SELECT {cells} FROM part)"
        self.columns = columns
        held = ", ".join(name for name, column in zip(columns, kinds, strict=True) if column in whole)
        notes = (
            (f"stored as decimals but whole numbers throughout, read as 1 and not 1.0: {held}",)
            if held
            else ()
        )
        self.report = replace(report, notes=(*report.notes, *renamed, *notes))

    def _whole(self, tests: Mapping[str, str]) -> set[str]:
        """The columns of decimals that hold whole numbers only."""
        if not tests:
            return set()
        query = ", ".join(f"{test} AS {name}" for name, test in tests.items())
        found = Cursor(map_rows(self._frame.select(*tests), f"(SELECT {query} FROM part)")).fetchall()
        answers = [[answer for answer in column if answer is not None] for column in zip(*found, strict=True)]
        return {name for name, part in zip(tests, answers, strict=False) if part and all(part)}

    def materialise(self, select: str, name: str) -> int:
        """See :meth:`audit.reading.Table.materialise`: the rows are cached in Spark, ``rowid`` is a column."""
        from pyspark.sql import functions as f

        with spark_errors():
            placed = self._frame.withColumn("place", f.monotonically_increasing_id())
            query = (
                f"(WITH {self.name} AS {self._source} SELECT * FROM ({select}) "
                "POSITIONAL JOIN (SELECT place FROM part))"
            )
            self._spark.store(f"{name}_read", map_rows(placed, query))
            read = self._spark.session.table(f"{name}_read")
            # the place is the number of the partition, and in its last 33 bits the row within it
            sizes = dict(read.groupBy(f.shiftright("place", 33)).count().collect())
            if not sizes:
                raise self._nothing()
            starts = list(itertools.accumulate((sizes.get(k, 0) for k in range(max(sizes) + 1)), initial=0))
            start = f.expr(f"array({', '.join(map('{}L'.format, starts))})[int(shiftright(place, 33))]")
            row = start + f.col("place").bitwiseAND((1 << 33) - 1)
            self._spark.store(name, read.withColumn("rowid", row).drop("place"), keep=False)
        return int(starts[-1])

    def head(self, limit: int = 5_000) -> list[tuple[str | None, ...]]:
        """See :meth:`audit.reading.Table.head`."""
        with spark_errors(), duckdb.connect() as con:
            con.execute("SET TimeZone = 'UTC'")
            con.register("part", self._frame.limit(limit).toArrow())
            found = con.execute(f"SELECT * FROM {self._source}").fetchall()
        if not found:
            raise self._nothing()
        return found

    def _nothing(self) -> InputError:
        return InputError(f"{self.report.source}: no rows; there is nothing to read")

    def rows(
        self, columns: Sequence[str] | None = None, *, limit: int | None = None
    ) -> Iterator[list[tuple[str | None, ...]]]:
        """See :meth:`audit.reading.Table.rows`."""
        names = ", ".join(map(quote, self.columns if columns is None else columns))
        frame = self._frame if limit is None else self._frame.limit(limit)
        cursor = Cursor(map_rows(frame, f"(SELECT {names} FROM {self._source})"))
        while batch := cursor.fetchmany(2_000):
            yield batch

    def close(self) -> None:
        """Drop what was made in Spark, and the session if it was started here."""
        self._spark.close()
        self._scratch.clear()


def _kinds(frame: Any) -> dict[str, str]:
    """What DuckDB takes the columns of a Spark frame for."""
    from pyspark.sql.pandas.types import to_arrow_schema

    with duckdb.connect() as con:
        con.register("part", to_arrow_schema(frame.schema).empty_table())
        return described(con, "part")


#: Addresses that Spark does not read, or not by these names.
_FETCHED = ("http", "https", "hf", "memory")


def open_in_spark(source: Any, *, master: str | None, missing: Sequence[str], **reading: Any) -> SparkTable:
    """Open a source in Spark; see :func:`audit.reading.open_table`.

    Parquet is read by Spark itself, from any address it knows. Another local file goes through this package's own
    reader, so that it is the same table on either engine, and a temporary Parquet file.
    """
    if any(importlib.util.find_spec(name) is None for name in ("pyspark", "pyarrow", "sqlglot")):
        raise MissingExtraError("--engine spark", extra="spark")
    scratch = Scratch()
    if not isinstance(source, str | Path):
        source = nw.to_native(source, pass_through=True)
        if engine_of(source) != "spark":
            raise ArgumentError(
                f"{type(source).__name__} is not in Spark; give a PySpark data frame or a path, or leave engine out"
            )
        con = SparkConnection(source.sparkSession, own=False)
        report = ReadReport(source="data frame", format="frame")
        return _table(con, scratch, source, source.columns, report, missing)
    address = str(source)
    path = Path(address)
    remote = scheme(address) not in (None, *POSTGRES, *_FETCHED)
    stored = remote or (scheme(address) is None and (path.is_dir() or _is_parquet(path)))
    names: Sequence[str] = ()
    report = ReadReport(source=redacted(address) if scheme(address) else address, format="parquet")
    if not stored:
        if master is not None and not master.startswith("local"):
            raise InputError(
                f"{report.source}: the workers of {master} cannot see this file; give Parquet where they find it"
            )
        copy = scratch.path(".parquet")
        with open_table(source, missing=missing, **reading) as table:
            table.materialise(f"SELECT * FROM {table.name}", "whole")
            table.con.execute(f"COPY whole TO {literal(str(copy))} (FORMAT parquet)")
            names, report, address, missing = table.columns, table.report, str(copy), ()
    con = start_spark(master, scratch)
    try:
        with spark_errors(report.source):
            frame = con.session.read.parquet(address if remote else Path(address).resolve().as_uri())
        return _table(con, scratch, frame, names or frame.columns, report, missing)
    except BaseException:
        con.close()
        scratch.clear()
        raise


def _table(
    con: SparkConnection,
    scratch: Scratch,
    frame: Any,
    names: Sequence[str],
    report: ReadReport,
    missing: Sequence[str],
) -> SparkTable:
    with spark_errors(report.source):
        if not names:
            raise InputError(f"{report.source}: no columns; there is nothing to read")
        return SparkTable(con, scratch, frame, names=names, report=report, missing=missing)


def _is_parquet(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False
