"""Opens any table -- a file, standard input or a data frame -- as text columns in DuckDB."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import duckdb

from audit.errors import InputError

__all__ = ["ReadReport", "Table", "open_table", "quote"]

Ragged = Literal["error", "pad", "drop"]


def quote(identifier: str) -> str:
    """Return ``identifier`` as a quoted SQL name."""
    return '"' + identifier.replace('"', '""') + '"'


@dataclass(frozen=True, kw_only=True)
class ReadReport:
    """What was found out about a source while opening it."""

    source: str
    format: str
    compression: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    notes: tuple[str, ...] = ()


class Table:
    """A source opened for reading: ``SELECT ... FROM {table.name}`` on ``table.con``; every column is VARCHAR."""

    def __init__(self, con: duckdb.DuckDBPyConnection, name: str, columns: Sequence[str], report: ReadReport) -> None:
        self.con = con
        self.name = name
        self.columns = tuple(columns)
        self.report = report

    def materialise(self, select: str, name: str) -> int:
        """Run ``CREATE OR REPLACE TEMP TABLE name AS select`` and return its number of rows."""
        try:
            self.con.execute(f"CREATE OR REPLACE TEMP TABLE {quote(name)} AS {select}")
        except duckdb.Error as error:
            raise InputError(f"{self.report.source}: {str(error).splitlines()[0]}") from error
        row = self.con.execute(f"SELECT count(*) FROM {quote(name)}").fetchone()
        return int(row[0]) if row else 0

    def close(self) -> None:
        """Close the connection and remove temporary files."""
        self.con.close()

    def __enter__(self) -> Table:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def open_table(
    source: Any,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    sheet: str | int | None = None,
    ragged: Ragged = "error",
    missing: Sequence[str] = (),
) -> Table:
    """Open ``source`` (a path, ``'-'`` for standard input, or a data frame) as a :class:`Table`."""
    con = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})
    if isinstance(source, str | Path):
        if str(source) == "-":
            raise InputError("standard input: not read yet")
        path = Path(source)
        if not path.is_file():
            raise InputError(f"{path}: no such file; check the path")
        text = path.read_text(encoding=encoding or "utf-8-sig")
        if not text:
            raise InputError(f"{path}: the file is empty; give a table with a header and rows")
        if delimiter is None:
            delimiter = max(",\t;|", key=text.splitlines()[0].count)
        header = next(csv.reader(text.splitlines(), delimiter=delimiter))
        columns = "{" + ", ".join(f"{quote(name)}: 'VARCHAR'" for name in header) + "}"
        scan = f"read_csv('{path}', auto_detect=false, header=true, delim='{delimiter}', columns={columns}, quote='\"')"
        report = ReadReport(source=str(path), format="csv", encoding="utf-8", delimiter=delimiter, quote='"')
    else:
        con.register("frame", source)
        scan = "frame"
        header = [str(row[0]) for row in con.execute("DESCRIBE frame").fetchall()]
        report = ReadReport(source="data frame", format="frame")
    words = ", ".join("'" + word.replace("'", "''") + "'" for word in ("", *missing))
    cells = ", ".join(
        f"CASE WHEN CAST({quote(c)} AS VARCHAR) IN ({words}) THEN NULL ELSE CAST({quote(c)} AS VARCHAR) END AS {quote(c)}"
        for c in header
    )
    con.execute(f"CREATE VIEW source AS SELECT {cells} FROM {scan}")
    return Table(con, "source", header, report)
