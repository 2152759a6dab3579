"""The file of disagreeing items, hardest first, with a resolve list; and what becomes of the data by that list.

Each row of a disagreeing item stands in the file with its labels side by side and a suggestion in the column
``resolve``, which people may change:

``majority``
    every row of the item takes the label that more than half of its labels have (suggested where there is one);
``relabel``
    the rows stay as they are and are counted, to be labelled anew (suggested otherwise: of two labels
    nobody can say which errs);
``keep``
    this row stays and the item's other rows are left out (one row of the item);
``drop``
    all rows of the item are left out;
a label of the data
    every row of the item takes it.

an empty cell
    the rows stay as they are.

A label that is called as an action cannot be given; the action is meant. A list without a column ``conflict``, such as
that of ``audit issues``, speaks of each row by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from audit.grouping import Repeats
from audit.grouping_conflicts import hardest_items
from audit.writing import distinct, write_rows

__all__ = ["ACTIONS", "write_conflicts"]

#: What may stand in the column ``resolve``.
ACTIONS = ("majority", "relabel", "keep", "drop")

_OWN = ("conflict", "disagreement", "labels", "majority", "resolve", "row", "label")
_BATCH = 5_000


def write_conflicts(repeats: Repeats, path: str | Path) -> int:
    """Write every row of every disagreeing item to ``path`` (form by its ending); return the number of items.

    Items are ordered by d_i, then by number of labels, then by place in the file. ``row`` is the data row, from 1.
    """
    written: Counter[str] = Counter()
    columns = repeats.columns
    votes = () if columns.is_long else (("column",) if columns.label_columns else ("votes",))
    names = distinct((*_OWN, *votes, *columns.details, *columns.item))
    write_rows(path, names, _conflict_rows(repeats, written, wide=bool(votes)))
    return written["items"]


def _conflict_rows(repeats: Repeats, written: Counter[str], *, wide: bool) -> Iterator[tuple[Any, ...]]:
    rows = repeats.source
    vote = "who" if rows.columns.label_columns else "w"
    more = "".join(
        f", b.{name}" for name in (*(f"c{k}" for k in range(len(rows.columns.details))), *rows.items)
    )
    cursor = repeats.con.execute(
        f"SELECT h.place, h.d, v.code, v.w, v.r + 1, v.{vote}{more} FROM {repeats.table} v "
        f"JOIN {hardest_items(repeats.table, limit=None)} h USING (g) JOIN {rows.base} b ON b.rowid = v.r "
        "ORDER BY h.place, v.r, v.code"
    )
    for group in _groups(iter(lambda: cursor.fetchmany(_BATCH), [])):
        counts: Counter[str] = Counter()
        for cells in group:
            counts[rows.classes[cells[2]]] += int(cells[3])
        majority = _majority(counts)
        told = " | ".join(f"{name}: {n}" for name, n in counts.most_common())
        action = "relabel" if majority is None else "majority"
        written["items"] += 1
        for place, d, code, _, row, how, *rest in group:
            extra = (how,) if wide else ()
            yield (place, d, told, majority, action, row, rows.classes[code], *extra, *rest)


def _groups(batches: Iterable[list[tuple[Any, ...]]]) -> Iterator[list[tuple[Any, ...]]]:
    """Runs of rows that share their first cell."""
    group: list[tuple[Any, ...]] = []
    for batch in batches:
        for cells in batch:
            if group and cells[0] != group[0][0]:
                yield group
                group = []
            group.append(cells)
    if group:
        yield group


def _majority(counts: Counter[str]) -> str | None:
    """The label that more than half of the labels have."""
    name, most = counts.most_common(1)[0]
    return name if 2 * most > counts.total() else None
