"""Finds the repeats of a table: rows whose items are equal once brought to a normal form.

Grouping is exact and cheap. A 64-bit key of the first characters of each item tells which rows may have a twin; only
these, a few per cent of most files, are brought to the normal form and compared as strings. A collision of keys costs
time, never a wrong group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import duckdb
import numpy as np

from audit.errors import ArgumentError
from audit.grouping_engine import Connection, row_wise
from audit.grouping_queries import number
from audit.grouping_repeats import Repeats, Rung
from audit.grouping_rows import Columns, Rows, copied, read_rows
from audit.normalise import LEVELS, is_blank, normal_forms, prefix_keys
from audit.patterns import IntArray
from audit.reading import Table

__all__ = ["Columns", "Repeats", "Rung", "group"]

#: Rows that are looked at to choose a key, and the most rows that it may bring in without need, as a share.
_SAMPLE = 10_000
_MOST_NEEDLESS = 0.1

#: Keys that are sorted in memory at a time.
_BATCH = 1 << 24


def group(
    table: Table,
    columns: Columns,
    *,
    normalise: str = "case",
    missing: Sequence[str] = (),
    classes: Sequence[str] | None = None,
    merge_labels: bool = False,
    drop_copies: bool = False,
    one_per: str | None = None,
    length_bins: int = 10,
) -> Repeats:
    """Group the rows of ``table`` by item; the file is read once.

    Parameters
    ----------
    table, columns:
        The open table, and which of its columns hold what. An item of several columns is equal to another when each
        of its parts is; one whose parts are all empty or white space is missing and equal to none. A label that is
        empty or white space is missing.
    normalise:
        How far items are brought together before they are compared: one of :data:`audit.normalise.LEVELS`.
    missing:
        Labels that mean "no label".
    classes:
        The declared classes; the labels seen by default.
    merge_labels:
        Take labels that differ in spelling for one, see :mod:`audit.labels`. The class takes the declared name, else
        the most frequent one.
    drop_copies:
        Leave out rows that repeat a record, as in :meth:`Repeats.without_copies`. Long form only.
    one_per:
        A column (of ``columns``): of an item's labels with one value there, the first counts and the others are
        left out; an empty value is no value. Long form only.
    length_bins:
        Number of classes of item length, with about equally many items each.

    Raises
    ------
    ArgumentError
        An argument is out of range, a label is none of the declared classes, a count is no whole number.
    ColumnError
        The table lacks a column.
    InputError
        The table cannot be read.
    """
    if normalise not in LEVELS:
        raise ArgumentError(f"normalise is {normalise!r}; choose one of {', '.join(LEVELS)}")
    if length_bins < 1:
        raise ArgumentError(f"length_bins is {length_bins}; give a whole number of at least 1")
    if not columns.is_long and (drop_copies or one_per is not None):
        raise ArgumentError(
            "copies and --one-per are about rows of one label each; leave them out for columns of votes"
        )
    rows = read_rows(table, columns, missing=missing, classes=classes, merge_labels=merge_labels)
    con, prefix = rows.con, rows.prefix
    missing_item = _identify(rows, normalise)
    _gather(rows)
    class_rows = rows.class_rows.copy()
    for later in (copied(rows, f"{prefix}kept") if drop_copies else None, _later(rows, one_per)):
        if later is not None:
            class_rows -= _leave_out(rows, later)
    con.execute(
        f"CREATE TEMP TABLE {prefix}repeated AS SELECT * FROM {prefix}kept SEMI JOIN "
        f"(SELECT g FROM {prefix}kept GROUP BY g HAVING sum(w) > 1) USING (g)"
    )
    alone = rows.labelled - number(
        con, f"SELECT (SELECT count(*) FROM {prefix}ids) + (SELECT count(*) FROM {prefix}blank)"
    )
    return Repeats(
        source=rows, normalise=normalise, length_bins=length_bins, missing_item=missing_item,
        class_rows=class_rows, items_total=alone + number(con, f"SELECT count(DISTINCT g) FROM {prefix}ids"),
    )  # fmt: skip


def _identify(rows: Rows, level: str) -> int:
    """Make the tables ``ids`` (r, g: labelled rows of items that may have two labels, and the item's first row) and
    ``blank`` (r: labelled rows without an item); return the number of rows without an item, labelled or not.
    """
    con, prefix, items = rows.con, rows.prefix, rows.items
    labelled = f"(SELECT rowid AS r, * FROM {rows.base} WHERE {rows.is_labelled})"
    if not items:
        con.execute(f"CREATE TEMP TABLE {prefix}ids AS SELECT r, r AS g FROM {labelled}")
        con.execute(f"CREATE TEMP TABLE {prefix}blank AS SELECT r FROM {prefix}ids WHERE false")
        return 0
    if rows.columns.is_long:
        _find_twins(rows, labelled, level)
        candidates = f"(SELECT r, {', '.join(items)} FROM {prefix}twins JOIN {labelled} USING (r))"
    else:
        candidates = labelled
    forms = [f"n{k}" for k in range(len(items))]
    blank = " AND ".join(is_blank(n) if level == "none" else f"{n} = ''" for n in forms)
    con.execute(
        f"CREATE TEMP TABLE {prefix}found AS SELECT list(r) AS rs, count(*) AS n, blank "
        f"FROM {rows.forms(candidates, level, f', {blank} AS blank')} GROUP BY {', '.join(forms)}, blank"
    )
    twice = " AND n > 1" if rows.columns.is_long else ""
    con.execute(
        f"CREATE TEMP TABLE {prefix}ids AS "
        f"SELECT unnest(rs) AS r, list_min(rs) AS g FROM {prefix}found WHERE NOT blank{twice}"
    )
    con.execute(f"CREATE TEMP TABLE {prefix}blank AS SELECT unnest(rs) AS r FROM {prefix}found WHERE blank")
    con.execute(f"DROP TABLE {prefix}found")
    blanks = number(con, f"SELECT count(*) FROM {prefix}blank")
    if rows.labelled == rows.count:
        return blanks
    blank = " AND ".join(map(is_blank, items))
    unlabelled = f"(SELECT {', '.join(items)} FROM {rows.base} WHERE NOT coalesce({rows.is_labelled}, false))"
    told = row_wise(con, unlabelled, lambda source: f"(SELECT {blank} AS blank FROM {source})")
    return blanks + number(con, f"SELECT count(*) FROM {told} WHERE blank")


def _find_twins(rows: Rows, labelled: str, level: str) -> None:
    """Make the table ``twins``: the labelled rows (r) whose key occurs more than once or is that of an empty text."""
    con, prefix = rows.con, rows.prefix
    texts = f"(SELECT r, {', '.join(rows.items)} FROM {labelled})"
    if not isinstance(con, duckdb.DuckDBPyConnection):
        _match_keys(rows, texts, _whole_key(rows, level))
        return
    key = _choose_key(rows, labelled, level)
    nothing = number(con, f"SELECT h FROM {key(_empty(rows))}")
    con.execute(f"CREATE TEMP TABLE {prefix}keys AS SELECT r, h FROM {key(labelled)}")
    con.execute(f"CREATE TEMP TABLE {prefix}twins (r BIGINT)")
    for twins in _twins(con, f"{prefix}keys", rows.labelled, nothing):
        con.register(f"{prefix}some", {"r": twins})
        con.execute(f"INSERT INTO {prefix}twins SELECT r FROM {prefix}some")
        con.unregister(f"{prefix}some")
    con.execute(f"DROP TABLE {prefix}keys")


def _match_keys(rows: Rows, texts: str, key: Callable[[str], str]) -> None:
    """Make the table ``twins`` on another engine: only keys and row numbers travel, not the texts."""
    con, prefix = rows.con, rows.prefix
    nothing = number(con, f"SELECT h FROM {row_wise(con, _empty(rows), key)}")
    con.execute(f"CREATE TEMP TABLE {prefix}keys AS SELECT r, h FROM {row_wise(con, texts, key)}")
    twice = f"SELECT h FROM {prefix}keys GROUP BY h HAVING count(*) > 1 OR h = {nothing}"
    con.execute(
        f"CREATE TEMP TABLE {prefix}twins AS SELECT r FROM {prefix}keys SEMI JOIN ({twice}) USING (h)"
    )


def _empty(rows: Rows) -> str:
    """A relation of one row, an item of empty texts."""
    return "(SELECT 0::BIGINT AS r, " + ", ".join(f"'' AS {name}" for name in rows.items) + ")"


def _whole_key(rows: Rows, level: str) -> Callable[[str], str]:
    """The hash of the whole normal form, as h; all blank texts share one."""
    items, coarse = rows.items, "space" if level == "none" else level
    names = ", ".join(f"n{k}" for k in range(len(items)))
    return lambda source: f"(SELECT r, hash({names}) AS h FROM {normal_forms(source, items, coarse)})"


def _twins(con: duckdb.DuckDBPyConnection, keys: str, count: int, nothing: int) -> Iterator[IntArray]:
    """Rows whose key is not alone, or is ``nothing``; in parts, so that a large file needs little memory.

    Sorting the keys and marking the buckets of those that repeat takes less than half the time of a GROUP BY.
    """
    parts = 1 + count // _BATCH
    for part in range(parts):
        where = f" WHERE h % {parts} = {part}" if parts > 1 else ""
        found = con.execute(f"SELECT r, h FROM {keys}{where}").fetchnumpy()
        row, key = np.asarray(found["r"], np.int64), np.asarray(found["h"], np.uint64)
        ordered = np.sort(key)
        repeated = np.append(ordered[1:][ordered[1:] == ordered[:-1]], np.uint64(nothing))
        marked = np.zeros(1 << 22, np.bool_)
        marked[repeated >> np.uint64(42)] = True
        near = np.flatnonzero(marked[key >> np.uint64(42)])
        yield row[near[np.isin(key[near], repeated)]]


def _choose_key(rows: Rows, labelled: str, level: str) -> Callable[[str], str]:
    """The cheapest key that tells most items apart, judged on rows from all over the file.

    Tried are the first characters of the column with the longest texts, then more of all columns; the last resort is
    the whole normal form. Of N rows, n are looked at: pairs that agree in the key alone are (N/n)^2 times as many in
    the file, if rows are in no order.
    """
    con, prefix, items = rows.con, rows.prefix, rows.items
    coarse = "space" if level == "none" else level
    whole = _whole_key(rows, level)
    if level == "punctuation":
        return whole
    spread = f"(SELECT range * {max(1, rows.count // _SAMPLE)} FROM range({_SAMPLE}))"
    con.execute(
        f"CREATE TEMP TABLE {prefix}sample AS SELECT r, {', '.join(items)} FROM {labelled} WHERE r IN {spread}"
    )
    lengths = ", ".join(f"sum(length({name}))" for name in items)
    ((count, *sizes),) = con.execute(f"SELECT count(*), {lengths} FROM {prefix}sample").fetchall()
    longest = items[max(range(len(items)), key=lambda k: sizes[k] or 0)]
    distinct = _distinct(con, whole(f"{prefix}sample"))
    chosen = whole
    for names, length in (((longest,), 16), ((longest,), 40), ((longest,), 80), (items, 80), (items, 200)):

        def key(source: str, names: tuple[str, ...] = names, length: int = length) -> str:
            return prefix_keys(source, names, coarse, length)

        needless = distinct - _distinct(con, key(f"{prefix}sample"))
        if 2 * needless * (rows.count / max(count, 1)) ** 2 <= _MOST_NEEDLESS * rows.count:
            chosen = key
            break
    con.execute(f"DROP TABLE {prefix}sample")
    return chosen


def _distinct(con: Connection, keys: str) -> int:
    return number(con, f"SELECT count(DISTINCT h) FROM {keys}")


def _gather(rows: Rows) -> None:
    """Make the table ``kept``: a row for each vote of the items in ``ids``.

    r, g: row and first row of the item; code: the class; w: times it was given; who: the column of a vote; x: hash of
    the columns besides item and label; c0 ...: the columns that tell rows apart.
    """
    prefix = rows.prefix
    details = "".join(f", b.c{k}" for k in range(len(rows.columns.details)))
    if rows.columns.is_long:
        select = f"l.code, 1::BIGINT AS w, NULL::VARCHAR AS who, {'b.x' if rows.has_extras else 'NULL::BIGINT AS x'}"
        votes = f"JOIN {rows.labels} l ON l.lab = b.lab"
    else:
        select = "l.code, v.w, v.who, NULL::BIGINT AS x"
        votes = f"JOIN {rows.votes} v ON v.r = i.r JOIN {rows.labels} l ON l.lab = v.lab"
    rows.con.execute(
        f"CREATE TEMP TABLE {prefix}kept AS SELECT i.r, i.g, {select}{details} "
        f"FROM {prefix}ids i JOIN {rows.base} b ON b.rowid = i.r {votes}"
    )


def _later(rows: Rows, column: str | None) -> str | None:
    """SQL for the rows of ``kept`` that are not the first of their item with their value of ``column``."""
    if column is None:
        return None
    value = rows.detail(column)
    return (
        f"SELECT r FROM {rows.prefix}kept WHERE {value} IS NOT NULL "
        f"QUALIFY row_number() OVER (PARTITION BY g, {value} ORDER BY r) > 1"
    )


def _leave_out(rows: Rows, later: str) -> IntArray:
    """Delete the rows of ``kept`` that the query ``later`` names; return how many of each class they were."""
    con, kept = rows.con, f"{rows.prefix}kept"
    gone = con.execute(f"SELECT code, count(*) FROM {kept} WHERE r IN ({later}) GROUP BY code").fetchall()
    con.execute(f"CREATE OR REPLACE TEMP TABLE {kept} AS SELECT * FROM {kept} ANTI JOIN ({later}) USING (r)")
    out = np.zeros(len(rows.classes), np.int64)
    for code, left_out in gone:
        out[code] = left_out
    return out
