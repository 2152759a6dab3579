"""Questions to tables of votes, answered by DuckDB from counts: no pair of rows is ever formed.

A *vote* is a row of a relation with the columns g (item), code (class) and w (times it was given). A group of
100,000 votes is as cheap as one of two: of n labels, n_k of class k, (n^2 - sum n_k^2)/2 pairs differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from audit.grouping_engine import Connection
from audit.patterns import CountPatterns, IntArray, PairContrast

__all__ = [
    "AnnotatorPair",
    "adjacent_pairs",
    "annotator_pairs",
    "compared_pairs",
    "count_patterns",
    "count_patterns_by",
    "minute",
    "number",
    "value_pairs",
]

_SHIFT = 1 << 32


class AnnotatorPair(NamedTuple):
    """How often two annotators labelled one item, and how often differently; ``first`` may be ``second``.

    The arrays have shape (P,): pairs of labels of an item, those that differ, and the number of items with so many.
    """

    first: str
    second: str
    pairs: IntArray
    conflicts: IntArray
    items: IntArray


def number(con: Connection, query: str) -> int:
    """The one whole number that ``query`` gives."""
    return int(con.execute(query).fetchall()[0][0])


def count_patterns(con: Connection, votes: str, classes: Sequence[str], *, keys: str = "g") -> CountPatterns:
    """Count patterns of the items with at least two votes; items are told apart by the columns ``keys``."""
    found = count_patterns_by(con, f"(SELECT *, '' AS v FROM {votes})", classes, keys=keys)
    return found.get("", _decoded([], classes))


def count_patterns_by(
    con: Connection, votes: str, classes: Sequence[str], *, keys: str = "g"
) -> dict[str, CountPatterns]:
    """Count patterns for each value of the column ``v`` of ``votes``, from an item's votes with that value."""
    cells = f"SELECT v, {keys}, code, sum(w)::BIGINT AS n FROM {votes} GROUP BY ALL"
    # Few items have the same cells in another order: sort the lists after counting, and count again.
    lists = (
        f"SELECT v, list(code * {_SHIFT} + n) AS cells FROM ({cells}) GROUP BY v, {keys} HAVING sum(n) > 1"
    )
    counted = f"SELECT v, cells, count(*) AS items FROM ({lists}) GROUP BY v, cells"
    found = con.execute(
        f"SELECT v, list_sort(cells) AS cells, sum(items)::BIGINT FROM ({counted}) GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    parts: dict[str, list[tuple[list[int], int]]] = {}
    for value, sequence, items in found:
        parts.setdefault(value, []).append((sequence, items))
    return {value: _decoded(rows, classes) for value, rows in parts.items()}


def _decoded(rows: Sequence[tuple[Sequence[int], int]], classes: Sequence[str]) -> CountPatterns:
    sizes = [len(cells) for cells, _ in rows]
    flat = np.fromiter((cell for cells, _ in rows for cell in cells), np.int64, sum(sizes))
    return CountPatterns.from_triples(
        np.repeat(np.arange(len(rows), dtype=np.int64), sizes),
        flat // _SHIFT,
        flat % _SHIFT,
        items=np.array([items for _, items in rows], np.int64),
        classes=classes,
    )


def value_pairs(con: Connection, votes: str) -> PairContrast:
    """Pairs of votes that share the value of column ``v`` of ``votes`` against the others; NULL is no value."""
    cells = f"SELECT g, v, code, sum(w) AS n FROM {votes} WHERE v IS NOT NULL GROUP BY ALL"
    values = f"SELECT g, v, sum(n) AS n, sum(n * n) AS s FROM ({cells}) GROUP BY ALL"
    inside = f"SELECT g, sum(n * (n - 1)) // 2 AS pairs, sum(n * n - s) // 2 AS conflicts FROM ({values}) GROUP BY g"
    return _contrast(con, inside, f"SELECT g, code, sum(n) AS n FROM ({cells}) GROUP BY ALL")


def adjacent_pairs(con: Connection, votes: str) -> PairContrast:
    """Pairs of votes of neighbouring rows against the others; ``votes`` has the row as ``r``, each once."""
    steps = (
        "SELECT g, r - lag(r) OVER o = 1 AS adjacent, code <> lag(code) OVER o AS differ "
        f"FROM {votes} WINDOW o AS (PARTITION BY g ORDER BY r)"
    )
    inside = (
        "SELECT g, count(*) FILTER (adjacent) AS pairs, count(*) FILTER (adjacent AND differ) AS conflicts "
        f"FROM ({steps}) GROUP BY g"
    )
    return _contrast(con, inside, f"SELECT g, code, sum(w) AS n FROM {votes} GROUP BY ALL")


def _contrast(con: Connection, inside: str, cells: str) -> PairContrast:
    """``inside`` has the pairs and conflicts of each item g that count as inside, ``cells`` all its label counts."""
    every = (
        "SELECT g, sum(n) * (sum(n) - 1) // 2 AS pairs, (sum(n) * sum(n) - sum(n * n)) // 2 AS conflicts "
        f"FROM ({cells}) GROUP BY g HAVING sum(n) > 1"
    )
    found = con.execute(
        "SELECT i.pairs::BIGINT, i.conflicts::BIGINT, (e.pairs - i.pairs)::BIGINT, "
        "(e.conflicts - i.conflicts)::BIGINT, count(*) "
        f"FROM ({inside}) i JOIN ({every}) e USING (g) GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    columns = np.array(found, np.int64).reshape(-1, 5).T
    return PairContrast(
        inside_pairs=columns[0],
        inside_conflicts=columns[1],
        outside_pairs=columns[2],
        outside_conflicts=columns[3],
        items=columns[4],
    )


def compared_pairs(con: Connection, votes: str) -> int:
    """How many pairs of annotators (column ``v``) :func:`annotator_pairs` has to look at, summed over items."""
    per_item = f"SELECT count(DISTINCT v) AS m FROM {votes} GROUP BY g"
    return number(con, f"SELECT coalesce(sum(m * (m + 1) // 2), 0)::BIGINT FROM ({per_item})")


def annotator_pairs(con: Connection, votes: str, *, limit: int | None) -> list[AnnotatorPair]:
    """Pairs of annotators (column ``v``) who labelled the same items, those with most pairs of labels first."""
    cells = f"SELECT g, v, code, sum(w) AS n FROM {votes} WHERE v IS NOT NULL GROUP BY ALL"
    totals = f"SELECT g, v, sum(n) AS n FROM ({cells}) GROUP BY ALL"
    product = "CASE WHEN p.v = q.v THEN p.n * (p.n - 1) // 2 ELSE p.n * q.n END"
    pairs = (
        f"SELECT p.g, p.v AS a, q.v AS b, {product} AS pairs FROM ({totals}) p JOIN ({totals}) q "
        "ON p.g = q.g AND p.v <= q.v"
    )
    agreeing = (
        f"SELECT p.g, p.v AS a, q.v AS b, sum({product}) AS agreeing FROM ({cells}) p JOIN ({cells}) q "
        "ON p.g = q.g AND p.code = q.code AND p.v <= q.v GROUP BY ALL"
    )
    patterns = (
        "SELECT a, b, pairs::BIGINT AS pairs, (pairs - coalesce(agreeing, 0))::BIGINT AS conflicts, count(*) AS items "
        f"FROM ({pairs}) LEFT JOIN ({agreeing}) USING (g, a, b) WHERE pairs > 0 GROUP BY ALL"
    )
    found = con.execute(
        f"SELECT a, b, list_sort(list([pairs, conflicts, items])) FROM ({patterns}) GROUP BY a, b "
        f"ORDER BY sum(pairs * items) DESC, a, b{'' if limit is None else f' LIMIT {limit:d}'}"
    ).fetchall()
    return [AnnotatorPair(a, b, *np.array(cells, np.int64).T) for a, b, cells in found]


def minute(text: str) -> str:
    """SQL for the minute of a time in most notations; NULL where there is none, as in a bare date.

    A number is taken for seconds, or thousandths or millionths or billionths of one, since 1970, by its size. Of
    notations that DuckDB does not read, the text up to the minutes is taken: enough to compare times of one file.
    """
    value = f"try_cast({text} AS DOUBLE)"
    since = " ".join(
        f"WHEN {value} >= {10**digits} AND {value} < {1000 * 10**digits} "
        f"THEN floor({value} / {60 * 10 ** (digits - 8)})::BIGINT::VARCHAR"
        for digits in (8, 11, 14, 17)
    )
    read = f"floor(epoch(try_cast({text} AS TIMESTAMPTZ)) / 60)::BIGINT::VARCHAR"
    cut = rf"regexp_replace({text}, '(\d:\d\d):\d\d([.,]\d+)?', '\1')"
    return f"CASE {since} WHEN regexp_matches({text}, '\\d:\\d\\d') THEN coalesce({read}, {cut}) END"
