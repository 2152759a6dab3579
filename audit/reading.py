"""Opens any table -- a file, standard input or a data frame -- as text columns in DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, Literal, get_args

import duckdb
import narwhals as nw

from audit.errors import ArgumentError
from audit.reading_scan import Options, Plan, ReadReport, Scan, named, plan_scans
from audit.reading_text import Ragged, Scratch
from audit.reading_typed import masked, quote

__all__ = ["HOW_TO_READ", "Engine", "Ragged", "ReadReport", "Table", "engine_of", "open_table", "quote"]

#: Where the rows of a table are.
Engine = Literal["duckdb", "spark"]

#: The options of :func:`open_table` that say how a source is read, by which they are told from those of an audit.
HOW_TO_READ = ("delimiter", "encoding", "quoting", "escape", "sheet", "ragged", "engine", "master")

_BATCH = 250  # DuckDB hands over 2,048 rows at a time; long ones need not all be copied at once
_ROOMS = (40_000_000, 100_000_000, 400_000_000)
_READING = (
    duckdb.InvalidInputException,
    duckdb.ConversionException,
    duckdb.NotSupportedError,
    duckdb.IOException,
    duckdb.OutOfMemoryException,
)


class Table:
    """An open source: ``SELECT ... FROM {table.name}`` on the DuckDB connection ``table.con``.

    Every column is VARCHAR, NULL where the cell is empty. Nothing is read before it is asked for. Use
    :meth:`materialise` or :meth:`rows`, which check what DuckDB makes of a text file and turn to a slower, strict
    reading where it fails; ``report`` may gain notes by that. Close it, or use it in a ``with`` statement.
    """

    def __init__(
        self, con: duckdb.DuckDBPyConnection, scratch: Scratch, plan: Plan, *, missing: Sequence[str]
    ) -> None:
        self.con = con
        self.name = "source"
        self.columns = plan.columns
        self.report = plan.report
        self._scratch = scratch
        self._missing = tuple(missing)
        self._waiting = list(plan.scans)
        self._advance()

    def _advance(self, *, strict: bool = False) -> None:
        """Turn to the next way to read the source, or to the last one."""
        del self._waiting[: -1 if strict else 0]
        self._scan: Scan = self._waiting.pop(0)()
        notes = (*self.report.notes, *self._scan.changes.get("notes", ()))
        self.report = replace(self.report, **{**self._scan.changes, "notes": notes})
        texts = masked(self._scan.cells, self._missing, blanks=self._scan.blanks)
        columns = ", ".join(
            f"{text} AS {quote(name)}" for text, name in zip(texts, self.columns, strict=True)
        )
        self.con.execute(f"CREATE OR REPLACE VIEW {self.name} AS SELECT {columns} FROM {self._scan.relation}")

    def _advance_after(self, error: duckdb.Error) -> None:
        if not self._waiting:
            with named(self.report.source):
                raise error
        self._advance()

    def materialise(self, select: str, name: str) -> int:
        """Run ``CREATE OR REPLACE TEMP TABLE name AS select``; return its number of rows.

        ``select`` gives one row for each row of ``FROM {table.name}``, in file order: no WHERE, GROUP BY or LIMIT, as
        the number of rows is checked against the file.

        Raises
        ------
        InputError
            The source cannot be read; the message names the line and how to go on.
        """
        while True:
            try:
                with ThreadPoolExecutor(1) as pool:
                    counting = pool.submit(self._scan.marks) if self._scan.marks else None
                    self.con.execute(f"CREATE OR REPLACE TEMP TABLE {quote(name)} AS {select}")
                    rows = int(self._ask(f"count(*) FROM {quote(name)}"))
                marks = counting.result() if counting else None
                if marks is None or self._scan.accepts(rows, marks):
                    return rows
                self._advance(strict=not marks.sound)
            except _READING as error:
                self._advance_after(error)

    def head(self, limit: int = 5_000) -> list[tuple[str | None, ...]]:
        """Return the first rows, for a look at what the columns hold."""
        while True:
            try:
                return self.con.execute(f"SELECT * FROM {self.name} LIMIT {limit}").fetchall()
            except _READING as error:
                self._advance_after(error)

    def rows(
        self, columns: Sequence[str] | None = None, *, limit: int | None = None
    ) -> Iterator[list[tuple[str | None, ...]]]:
        """Yield the rows in file order, in batches of some hundred; ``limit`` ends it after so many rows.

        The connection serves nothing else meanwhile. Raises what :meth:`materialise` raises.
        """
        while self._scan.parallel:  # several threads would read ahead
            self._advance()
        if self._scan.marks and not self._scan.marks().sound:
            self._advance(strict=True)
        names = ", ".join(map(quote, self.columns if columns is None else columns))
        done = 0
        # DuckDB keeps what it has read of a file as long as there is room: this leaves it little, and more where some
        # rows need it
        usual = self._ask("current_setting('memory_limit')")
        used = self._ask("(SELECT sum(memory_usage_bytes) FROM duckdb_memory())")
        limits = [usual, *(f"{int(used or 0) + room} bytes" for room in reversed(_ROOMS))]
        self.con.execute(f"SET memory_limit = '{limits.pop()}'")
        try:
            while True:
                window = f"LIMIT {limit - done}" if limit is not None else ""
                try:
                    cursor = self.con.execute(f"SELECT {names} FROM {self.name} {window} OFFSET {done}")
                    while batch := cursor.fetchmany(_BATCH):
                        done += len(batch)
                        yield batch
                    if self._scan.marks is None or self._scan.accepts(done, self._scan.marks()):
                        return
                    self._advance(strict=True)
                except _READING as error:
                    if limits and isinstance(error, duckdb.OutOfMemoryException):
                        self.con.execute(f"SET memory_limit = '{limits.pop()}'")
                    else:
                        self._advance_after(error)
        finally:
            with suppress(duckdb.ConnectionException):  # closed in the meantime
                self.con.execute(f"SET memory_limit = '{usual}'")

    def _ask(self, expression: str) -> Any:
        found = self.con.execute(f"SELECT {expression}").fetchone()
        return found[0] if found else None

    def close(self) -> None:
        """Close the connection and remove temporary files."""
        self.con.close()
        self._scratch.clear()

    def __enter__(self) -> Table:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_table(
    source: Any,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    quoting: str | None = None,
    escape: str | None = None,
    sheet: str | int | None = None,
    ragged: Ragged = "error",
    missing: Sequence[str] = (),
    engine: Engine = "duckdb",
    master: str | None = None,
) -> Table:
    """Open a table for reading.

    Parameters
    ----------
    source:
        A path: CSV, TSV or other separated text, JSON Lines, a JSON array of records, Parquet, a workbook (xlsx, xls,
        ods), each also compressed (gzip, bzip2, xz, zip); ``"-"`` for standard input; or a pandas, Polars, Arrow or
        DuckDB frame, or any other that narwhals knows.
    delimiter, encoding, quoting, escape:
        Of text, where they are not to be found out: one character; a codec of Python; the quote character, or
        ``"none"``; the character that stands before a quote inside quotes (by default quotes are doubled there).
    sheet:
        Name or number (from 1) of the sheet of a workbook; the first one by default.
    ragged:
        What becomes of a row that is not as wide as the header: ``"error"``; ``"pad"``, short rows end in missing
        cells; ``"drop"``, such rows are left out and counted in the report.
    missing:
        Words that mean an empty cell, in any column. An empty cell is always missing; NA, null and None are not.
    engine, master:
        Where the rows are to be: ``"duckdb"`` takes them in here; with ``"spark"`` they stay in Spark, and ``source``
        is a PySpark data frame, Parquet by any address that Spark reads, or a local file. ``master`` is Spark's
        master, ``local[*]`` by default; a session that runs already is used as it is.

    Raises
    ------
    MissingExtraError
        ``engine`` is ``"spark"`` and PySpark is not installed.
    InputError
        The source is not there, is empty, has no rows or is no table.
    ArgumentError
        An option cannot be what was given.
    """
    if ragged not in get_args(Ragged):
        raise ArgumentError(f"ragged is {ragged!r}; give one of {', '.join(get_args(Ragged))}")
    if engine not in get_args(Engine):
        raise ArgumentError(f"engine is {engine!r}; give one of {', '.join(get_args(Engine))}")
    if engine == "spark":
        from audit.reading_spark import open_in_spark

        text: dict[str, Any] = {
            "delimiter": delimiter,
            "encoding": encoding,
            "quoting": quoting,
            "escape": escape,
        }
        return open_in_spark(source, master=master, missing=missing, **text, sheet=sheet, ragged=ragged)
    if master is not None:
        raise ArgumentError("a master is Spark's: give it together with engine spark, or leave it out")
    scratch = Scratch()
    con = duckdb.connect(
        config={
            "temp_directory": str(scratch.path()),
            "checkpoint_threshold": "1TB",  # tables in memory need none, and one would compress them first
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "pandas_analyze_sample": 0,  # a column of Python objects is text, whatever its first values are
        }
    )
    options = Options(
        delimiter=_DELIMITERS.get(delimiter, delimiter) if delimiter else delimiter,
        encoding=encoding,
        quoting="" if quoting == "none" else quoting,
        escape=escape,
        sheet=sheet,
        ragged=ragged,
    )
    try:
        con.execute("SET TimeZone = 'UTC'")
        return Table(con, scratch, plan_scans(con, source, options, scratch), missing=missing)
    except BaseException:
        con.close()
        scratch.clear()
        raise


def engine_of(source: Any) -> Engine:
    """The engine that holds a source already: Spark for PySpark's data frames."""
    frames, native = nw.dependencies, nw.to_native(source, pass_through=True)
    is_spark = frames.is_pyspark_dataframe(native) or frames.is_pyspark_connect_dataframe(native)
    return "spark" if is_spark else "duckdb"


#: What a separator that is hard to type may be called.
_DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
