"""Brings the labels of two files together on one connection, item by item: for comparisons over time and for leaks.

The items of both are brought to the same normal form (:mod:`audit.normalise`), so that what ``audit dupes`` calls
one item within a file is one item across the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

from audit.columns import check_columns
from audit.errors import ArgumentError, ColumnError, InputError
from audit.grouping_queries import count_patterns
from audit.normalise import LEVELS, is_blank, normal_forms
from audit.patterns import CountPatterns, FloatArray, IntArray
from audit.reading import open_table

__all__ = ["BOTH", "SIDES", "GroupedFiles", "group_files"]

#: What the two files are called in tables and results.
SIDES = ("first", "second")


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupedFiles:
    """Files grouped by item: the table ``votes`` (side, row, g, label, code) holds their labelled rows, ``given`` the
    item columns of all rows (t0, t1 ...), ``grouped`` their normal forms (n0, n1 ...). ``sources`` are the files'
    names, ``rows`` counts the rows of each, ``labelled`` those with an item and a label.
    """

    con: duckdb.DuckDBPyConnection
    sources: tuple[str, ...]
    rows: tuple[int, ...]
    labelled: tuple[int, ...]
    classes: tuple[str, ...]
    row_id: bool

    def items(self, side: str | None = None) -> int:
        """Distinct items of one side, or of both sides at once (those that stand in each)."""
        if side is not None:
            return int(self.number(f"SELECT count(DISTINCT g) FROM votes WHERE side = '{side}'"))
        return self.count(f"({BOTH})")

    def patterns(self, side: str, *, among: str = "") -> CountPatterns:
        """Count patterns of one side's repeated items; ``among`` is SQL that gives the items g to keep."""
        kept = f" SEMI JOIN ({among}) USING (g)" if among else ""
        return count_patterns(
            self.con, f"(SELECT g, code, 1 AS w FROM votes{kept} WHERE side = '{side}')", self.classes
        )

    def paired_scores(self) -> tuple[FloatArray, FloatArray, IntArray]:
        """d_i of the items that are repeated on both sides: first, second, and how many items have the two values."""
        found = self.con.execute(
            f"SELECT a, b, count(*) FROM (SELECT {_SCORE.format('first')} AS a, {_SCORE.format('second')} AS b "
            f"FROM ({_CELLS}) GROUP BY g HAVING {_TWICE.format('first')} AND {_TWICE.format('second')}) "
            "GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        table = np.array(found, np.float64).reshape(-1, 3)
        return table[:, 0], table[:, 1], table[:, 2].astype(np.int64)

    def repeated_on_both(self) -> str:
        """SQL for the items g with two labels or more on each side."""
        return f"SELECT g FROM ({_CELLS}) GROUP BY g HAVING {_TWICE.format('first')} AND {_TWICE.format('second')}"

    def transitions(self) -> tuple[IntArray, int]:
        """The table of labels, first side by second: shape (K, K); and how many pairs could not be told.

        With row ids, rows of one id are paired. Without, items are: each by its most frequent label; where two
        labels tie on a side the item cannot be told.
        """
        if self.row_id:
            pairs = (
                "SELECT a.code AS a, b.code AS b FROM votes a JOIN votes b ON a.id = b.id "
                "AND a.side = 'first' AND b.side = 'second'"
            )
        else:
            most = (
                "SELECT side, g, CASE WHEN count(*) FILTER (n = top) = 1 THEN max(code) FILTER (n = top) END AS code "
                f"FROM (SELECT *, max(n) OVER (PARTITION BY side, g) AS top FROM ({_CELLS})) GROUP BY side, g"
            )
            pairs = (
                f"SELECT a.code AS a, b.code AS b FROM ({most}) a JOIN ({most}) b ON a.g = b.g "
                "AND a.side = 'first' AND b.side = 'second'"
            )
        table = np.zeros((len(self.classes), len(self.classes)), np.int64)
        untold = 0
        for a, b, n in self.con.execute(f"SELECT a, b, count(*) FROM ({pairs}) GROUP BY ALL").fetchall():
            if a is None or b is None:
                untold += n
            else:
                table[a, b] = n
        return table, untold

    def count(self, relation: str) -> int:
        """The rows of a relation over ``votes`` (what may stand behind FROM)."""
        return int(self.number(f"SELECT count(*) FROM {relation}"))

    def multiplied(self) -> tuple[int, int, int]:
        """Items repeated on both sides, with two labels that differ on one and with another number of labels on the
        other: how many have more on the first side, how many on the second, and in how many each label has the same
        share on both sides.
        """
        a, b = (f"coalesce(sum(n) FILTER (side = '{side}'), 0)" for side in SIDES)
        cells = f"({_CELLS}) SEMI JOIN ({self.repeated_on_both()}) USING (g)"
        shares = f"SELECT g, code, {a} AS a, {b} AS b FROM {cells} GROUP BY ALL"
        whole = (
            f"SELECT *, sum(a) OVER (PARTITION BY g) AS m, sum(b) OVER (PARTITION BY g) AS n FROM ({shares})"
        )
        items = (
            f"SELECT m, n, bool_and(a * n = b * m) AS same FROM ({whole}) GROUP BY g, m, n "
            "HAVING m <> n AND count(*) > 1"
        )
        found = self.con.execute(
            f"SELECT count(*) FILTER (m > n), count(*) FILTER (m < n), count(*) FILTER (same) FROM ({items})"
        ).fetchall()[0]
        return int(found[0]), int(found[1]), int(found[2])

    def class_rows(self, side: str) -> IntArray:
        """Labels of each class on one side: shape (K,)."""
        found = self.con.execute(
            f"SELECT code, count(*) FROM votes WHERE side = '{side}' GROUP BY code"
        ).fetchall()
        counts = np.zeros(len(self.classes), np.int64)
        for code, labels in found:
            counts[code] = labels
        return counts

    def number(self, query: str) -> float:
        """The one number that ``query`` gives."""
        return float(self.con.execute(query).fetchall()[0][0])


_CELLS = "SELECT side, g, code, count(*) AS n FROM votes GROUP BY ALL"
#: SQL for the items g that stand on both sides.
BOTH = "SELECT g FROM votes GROUP BY g HAVING count(DISTINCT side) = 2"
_TWICE = "sum(n) FILTER (side = '{0}') > 1"
_SCORE = (
    "1 - sum(n * (n - 1)) FILTER (side = '{0}') / "
    "(sum(n) FILTER (side = '{0}') * (sum(n) FILTER (side = '{0}') - 1))"
)


@contextmanager
def group_files(
    *sources: Any,
    item: Sequence[str],
    label: Sequence[str | None],
    row_id: str | None = None,
    missing: Sequence[str] = (),
    normalise: str = "case",
    second_label: str = "--label",
    **reading: Any,
) -> Iterator[GroupedFiles]:
    """Open one file or two and group their rows by item.

    Parameters
    ----------
    sources:
        One file or two: what :func:`audit.reading.open_table` reads.
    item:
        The columns that make an item, of the same names in all files.
    label:
        The label column of each; None where labels do not matter.
    row_id:
        A column that tells rows apart, of the same name in both files.
    missing, normalise, reading:
        As in :func:`audit.duplicates.audit_duplicates`.
    second_label:
        What the second file's label column is called in an error.

    Raises
    ------
    ArgumentError, ColumnError, InputError
        An option, a column or a file cannot be used.
    """
    import pandas as pd

    if normalise not in LEVELS:
        raise ArgumentError(f"normalise is {normalise!r}; choose one of {', '.join(LEVELS)}")
    if not item:
        raise ColumnError("name the columns that make an item, of the same names in both files (--item)")
    if len(set(item)) < len(item):
        raise ArgumentError(f"--item names a column twice ({', '.join(item)}); name each once")
    for name in label:
        if name is not None and name in item:
            raise ArgumentError(f"column {name!r} is both item and label; name two columns")
    con = duckdb.connect(config={"pandas_analyze_sample": 0})
    try:
        texts = [f"t{k}" for k in range(len(item))]
        columns = ", ".join(f"{name} VARCHAR" for name in [*texts, "label", "id"])
        con.execute(f"CREATE TEMP TABLE given (side VARCHAR, row BIGINT, {columns})")
        taken = tuple(
            _take(con, side, source, [*item], (name, option), row_id, missing, reading)
            for side, source, name, option in zip(
                SIDES, sources, label, ("--label", second_label), strict=False
            )
        )
        con.execute("CREATE TEMP TABLE numbered AS SELECT rowid AS r, * FROM given")
        forms = [f"n{k}" for k in range(len(item))]
        blank = " AND ".join(is_blank(name) for name in forms)
        con.execute(
            f"CREATE TEMP TABLE grouped AS SELECT r, dense_rank() OVER (ORDER BY {', '.join(forms)}) AS g, "
            f"{', '.join(forms)} "
            f"FROM {normal_forms('numbered', texts, normalise)} WHERE NOT ({blank})"
        )
        labelled = "label IS NOT NULL AND NOT " + is_blank("label")
        classes = tuple(
            name
            for (name,) in con.execute(
                f"SELECT DISTINCT label FROM given WHERE {labelled} ORDER BY 1"
            ).fetchall()
        )
        codes = pd.DataFrame({"label": list(classes), "code": range(len(classes))})
        con.register("codes", codes)
        con.execute(
            "CREATE TEMP TABLE votes AS SELECT r, side, row, g, label, code::INTEGER AS code, id "
            "FROM numbered JOIN grouped USING (r) JOIN codes USING (label)"
        )
        counted = dict(con.execute("SELECT side, count(*) FROM votes GROUP BY side").fetchall())
        yield GroupedFiles(
            con=con, sources=tuple(name for name, _ in taken), rows=tuple(rows for _, rows in taken),
            labelled=tuple(counted.get(side, 0) for side in SIDES[: len(sources)]), classes=classes,
            row_id=row_id is not None,
        )  # fmt: skip
    finally:
        con.close()


def _take(
    con: duckdb.DuckDBPyConnection,
    side: str,
    source: Any,
    item: list[str],
    named: tuple[str | None, str],
    row_id: str | None,
    missing: Sequence[str],
    reading: dict[str, Any],
) -> tuple[str, int]:
    """Append the rows of one file to the table ``given``; return its name and how many they are."""
    import pandas as pd

    with open_table(source, **reading) as table:
        name, (label, option) = table.report.source, named
        check_columns(table, item, option="--item")
        check_columns(table, [label] if label else [], option=option)
        check_columns(table, [row_id] if row_id else [], option="--row-id")
        wanted = [*item, *([label] if label else []), *([row_id] if row_id else [])]
        done = 0
        for batch in table.rows(wanted):
            frame = pd.DataFrame(batch, columns=[str(k) for k in range(len(wanted))], dtype=object)
            columns = {f"t{k}": frame[str(k)] for k in range(len(item))}
            given = frame[str(len(item))].where(lambda cell: ~cell.isin(list(missing))) if label else "row"
            ids = frame[str(len(wanted) - 1)] if row_id else None
            numbers = np.arange(done, done + len(frame))
            con.append(
                "given", pd.DataFrame({"side": side, "row": numbers, **columns, "label": given, "id": ids})
            )
            done += len(frame)
    if row_id is not None:
        _check_ids(con, side, row_id, name)
    return name, done


def _check_ids(con: duckdb.DuckDBPyConnection, side: str, row_id: str, name: str) -> None:
    twice = con.execute(
        "SELECT id FROM given WHERE side = ? AND id IS NOT NULL GROUP BY id HAVING count(*) > 1 LIMIT 1",
        [side],
    ).fetchall()
    if twice:
        raise InputError(
            f"{name}: the value {twice[0][0]!r} of --row-id {row_id!r} stands in two rows: name a column whose "
            "values tell rows apart, or leave --row-id out to compare item by item"
        )
