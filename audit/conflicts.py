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

A label that is called as an action cannot be given; the action is meant.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audit.columns import check_columns, guess
from audit.errors import ArgumentError, InputError
from audit.grouping import Repeats
from audit.grouping_conflicts import hardest_items
from audit.reading import open_table
from audit.results import Result
from audit.writing import check_outputs, write_rows

__all__ = ["ACTIONS", "ResolvedConflicts", "resolve_conflicts", "write_conflicts"]

#: What may stand in the column ``resolve``.
ACTIONS = ("majority", "relabel", "keep", "drop")

_OWN = ("conflict", "disagreement", "labels", "majority", "resolve", "row", "label")
_BATCH = 5_000


@dataclass(frozen=True, kw_only=True)
class ResolvedConflicts(Result):
    """What became of the data: rows written, rows changed or left out, and items left to label anew."""

    rows: int
    changed: int
    left_out: int
    to_relabel: int
    path: str

    def summary(self) -> str:
        """The outcome in words."""
        anew = f" {self.to_relabel:,} items are left to label anew." if self.to_relabel else ""
        return (
            f"Wrote {self.path}: {self.rows:,} rows, {self.changed:,} of them with another label; "
            f"{self.left_out:,} rows left out.{anew} Its repeats are no independent labels any more: audit the "
            "data as it was, not this file."
        )


def write_conflicts(repeats: Repeats, path: str | Path) -> int:
    """Write every row of every disagreeing item to ``path`` (form by its ending); return the number of items.

    Items are ordered by d_i, then by number of labels, then by place in the file. ``row`` is the data row, from 1.
    """
    written: Counter[str] = Counter()
    columns = repeats.columns
    votes = () if columns.is_long else (("column",) if columns.label_columns else ("votes",))
    names = _distinct((*_OWN, *votes, *columns.details, *columns.item))
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


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """The names, each once: a column of the data that is called as one of ours gets a trailing underscore."""
    out: list[str] = []
    for name in names:
        while name in out:
            name += "_"
        out.append(name)
    return tuple(out)


def resolve_conflicts(
    source: Any,
    conflicts: str | Path,
    *,
    out: str | Path,
    label: str | None = None,
    item: Sequence[str] = (),
    **reading: Any,
) -> ResolvedConflicts:
    """Carry out the resolve list of a conflict file on the data it was written from; long form only.

    The rows that stay keep their order and columns; only labels change.

    Raises
    ------
    InputError
        The list is no conflict file of this data, or an item's rows ask for different things, for a majority that
        there is not, or for an unknown action.
    """
    check_outputs(source, conflicts, out)
    with open_table(source, **reading) as table, open_table(conflicts) as listed:
        chosen = guess(table, item=tuple(item), label=label)
        if chosen.label is None:
            raise ArgumentError("conflicts are resolved in a table of one label a row: name it with --label")
        check_columns(listed, ("conflict", "majority", "resolve", "row", "label"), option="the conflict file")
        wanted = ("conflict", "majority", "resolve", "row", "label")
        asked = [cells for batch in listed.rows(wanted) for cells in batch]
        known: set[str | None] = {
            cells[0] for batch in table.rows((chosen.label,)) for cells in batch if cells[0]
        }
        changes, anew = _changes(asked, known, str(conflicts))
        place = table.columns.index(chosen.label)
        done: Counter[str] = Counter()
        rows = (cells for batch in table.rows() for cells in batch)
        write_rows(out, table.columns, _resolved(rows, changes, place, str(conflicts), done))
    return ResolvedConflicts(
        rows=done["rows"], changed=done["changed"], left_out=done["left out"], to_relabel=anew, path=str(out)
    )


def _changes(
    asked: Sequence[Sequence[str | None]], known: set[str | None], name: str
) -> tuple[dict[int, tuple[str, str | None]], int]:
    """(label in the file, new label or None to leave the row out) by data row, and items left to label anew."""
    groups: dict[str, list[Sequence[str | None]]] = defaultdict(list)
    for cells in asked:
        groups[str(cells[0])].append(cells)
    changes: dict[int, tuple[str, str | None]] = {}
    anew = 0
    for place, rows in groups.items():
        said = [_action(cells[2] or "", known, f"{name}: conflict {place}") for cells in rows]
        kept = [n for n, action in enumerate(said) if action == "keep"]
        if len(kept) > 1 or (not kept and len(set(said)) > 1):
            raise InputError(
                f"{name}: the rows of conflict {place} ask for different things; write keep in the one row that is to "
                "stay, or one action in all of them"
            )
        action = "keep" if kept else said[0]
        label = rows[0][1] if action == "majority" else action
        if action == "majority" and label not in known:
            raise InputError(f"{name}: conflict {place} has no majority; choose another action")
        anew += action == "relabel"
        for n, cells in enumerate(rows):
            number = str(cells[3] or "")
            if not number.isdecimal():
                raise InputError(
                    f"{name}: {number!r} in the column row is no row number; keep that column as it was"
                )
            old = cells[4] or ""
            stays = action == "relabel" or (kept and n == kept[0])
            changes[int(number)] = (old, old if stays else None if kept or action == "drop" else label)
    return changes, anew


def _action(text: str, known: set[str | None], where: str) -> str:
    """The action that is written, or the label of the data."""
    if text.strip().lower() in ACTIONS:
        return text.strip().lower()
    if text in known:
        return text
    raise InputError(
        f"{where} says {text!r} in resolve; write one of {', '.join(ACTIONS)}, or a label that the data has"
    )


def _resolved(
    rows: Iterable[tuple[str | None, ...]],
    changes: dict[int, tuple[str, str | None]],
    place: int,
    name: str,
    done: Counter[str],
) -> Iterator[tuple[str | None, ...]]:
    left = dict(changes)
    for number, cells in enumerate(rows, start=1):
        if number not in left:
            done["rows"] += 1
            yield cells
            continue
        old, new = left.pop(number)
        if (cells[place] or "") != old:
            raise InputError(
                f"{name}: row {number} had the label {old!r}, but the data has {cells[place]!r}; use the file that the "
                "conflicts were written from"
            )
        if new is None:
            done["left out"] += 1
            continue
        done["rows"] += 1
        done["changed"] += new != old
        yield (*cells[:place], new, *cells[place + 1 :])
    if left:
        raise InputError(
            f"{name}: the data has no row {min(left)}; use the file that the conflicts were written from"
        )
