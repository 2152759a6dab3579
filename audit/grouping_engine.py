"""Where a table is grouped: in DuckDB on this machine, or in place on another engine that answers the same SQL.

The questions of :mod:`audit.grouping` and its neighbours are written once, in DuckDB's SQL. What has to be the very
same to the last character on any engine -- normal forms, hashes, numbers read from text -- looks at one row at a
time: :func:`row_wise` has DuckDB work it out next to the rows, wherever they are. Counting, joining and sorting is
left to the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import duckdb

if TYPE_CHECKING:
    from audit.grouping_spark import SparkConnection

__all__ = ["Connection", "row_wise", "small_table"]

#: What answers SQL: DuckDB, or Spark by way of a translation.
Connection: TypeAlias = "duckdb.DuckDBPyConnection | SparkConnection"


def row_wise(con: Connection, source: str, query: Callable[[str], str]) -> str:
    """What ``query`` makes of ``source``, as what may stand behind FROM.

    ``query`` gets the name of a relation with the columns of ``source`` and gives a subquery in DuckDB's SQL that
    looks at one row at a time: no GROUP BY, no join, no window. On another engine it runs in DuckDB on each part of
    the rows, and an unsigned column comes back as the signed number of the same bits.
    """
    if isinstance(con, duckdb.DuckDBPyConnection):
        return query(source)
    return con.row_wise(source, query)


def small_table(con: Connection, name: str, columns: Mapping[str, tuple[str, Sequence[object]]]) -> None:
    """Make a temporary table of a few rows; ``columns`` gives DuckDB's type and the values of each column."""
    if isinstance(con, duckdb.DuckDBPyConnection):
        cells = ", ".join(f"unnest(?::{kind}[]) AS {column}" for column, (kind, _) in columns.items())
        con.execute(f"CREATE TEMP TABLE {name} AS SELECT {cells}", [list(v) for _, v in columns.values()])
    else:
        con.small_table(name, columns)
