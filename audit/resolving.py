"""Carries out an edited list: the conflict file of ``audit dupes`` or the suspicious rows of ``audit issues``.

What may stand in the column ``resolve`` is told in :mod:`audit.conflicts`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audit.columns import check_columns, guess
from audit.conflicts import ACTIONS
from audit.errors import ArgumentError, InputError
from audit.reading import Table, open_table
from audit.results import Result
from audit.writing import check_outputs, write_rows

__all__ = ["ResolvedConflicts", "resolve_conflicts"]

_COLUMNS = ("resolve", "row", "label")


@dataclass(frozen=True, kw_only=True)
class ResolvedConflicts(Result):
    """What became of the data: rows written, rows changed or left out, and what is left to label anew.

    ``to_relabel`` and ``undecided`` (nothing stands in ``resolve``) count items of a conflict file, or rows of a list
    that speaks of each row by itself; ``unit`` says which.
    """

    rows: int
    changed: int
    left_out: int
    to_relabel: int
    undecided: int
    unit: str
    path: str

    def summary(self) -> str:
        """The outcome in words."""
        anew = f" {self.to_relabel:,} {self.unit} are left to label anew." if self.to_relabel else ""
        empty = (
            f" Of {self.undecided:,} {self.unit} the list says nothing: they are as they were."
            if self.undecided
            else ""
        )
        return (
            f"Wrote {self.path}: {self.rows:,} rows, {self.changed:,} of them with another label; "
            f"{self.left_out:,} rows left out.{anew}{empty} Its repeats are no independent labels any more: audit the "
            "data as it was, not this file."
        )


@dataclass(frozen=True, kw_only=True)
class _Listed:
    """A row of the list: its item's number (or its own), the row or id, what is asked, and its label and majority."""

    group: str
    key: str
    asked: str
    label: str
    majority: str | None


@dataclass(frozen=True, kw_only=True)
class _Changes:
    """(label in the file, new label or None to leave the row out) by row, and items or rows left as they are."""

    by_key: dict[str, tuple[str, str | None]]
    anew: int
    undecided: int


def resolve_conflicts(
    source: Any,
    conflicts: str | Path,
    *,
    out: str | Path,
    label: str | None = None,
    item: Sequence[str] = (),
    row_id: str | None = None,
    **reading: Any,
) -> ResolvedConflicts:
    """Carry out the column ``resolve`` of a list on the data it was written from; long form only.

    Rows are those that the list numbers, or, with ``row_id``, those of the same id in both files. The rows that stay
    keep their order and columns; only labels change.

    Raises
    ------
    InputError
        The list does not fit this data, an item's rows ask for different things, for a majority that there is not, or
        for an unknown action.
    """
    check_outputs(source, conflicts, out)
    with open_table(source, **reading) as table, open_table(conflicts) as listed:
        chosen = guess(table, item=tuple(item), label=label)
        if chosen.label is None:
            raise ArgumentError("conflicts are resolved in a table of one label a row: name it with --label")
        name = str(conflicts)
        rows, by_item = _read(listed, row_id, name)
        if row_id is not None:
            check_columns(table, (row_id,), option="--row-id")
            _check_once(
                (cells[0] for batch in table.rows((row_id,)) for cells in batch), row_id, table.report.source
            )
        known = {cells[0] for batch in table.rows((chosen.label,)) for cells in batch if cells[0]}
        changes = _changes(rows, known, name, "conflict" if by_item else "row")
        place = table.columns.index(chosen.label)
        key = None if row_id is None else table.columns.index(row_id)
        done: Counter[str] = Counter()
        given = (cells for batch in table.rows() for cells in batch)
        write_rows(out, table.columns, _resolved(given, changes.by_key, place, key, name, done))
    return ResolvedConflicts(
        rows=done["rows"], changed=done["changed"], left_out=done["left out"], to_relabel=changes.anew,
        undecided=changes.undecided, unit="items" if by_item else "rows", path=str(out),
    )  # fmt: skip


def _read(listed: Table, row_id: str | None, name: str) -> tuple[list[_Listed], bool]:
    """The rows of a list, and whether it speaks of items (it has a column ``conflict``) or of rows."""
    check_columns(listed, _COLUMNS, option="the list to resolve")
    row_id = None if row_id is None else _column_of_ids(listed, row_id)
    by_item = "conflict" in listed.columns
    wanted = [
        *_COLUMNS,
        row_id or "row",
        *(name for name in ("conflict", "majority") if name in listed.columns),
    ]
    found = []
    for batch in listed.rows(wanted):
        for cells in batch:
            given = dict(zip(wanted, cells, strict=True))
            key = str(given[row_id or "row"] or "")
            if row_id is None and not key.isdecimal():
                raise InputError(
                    f"{name}: {key!r} in the column row is no row number; keep that column as it was"
                )
            key = key if row_id is not None else str(int(key))
            found.append(_Listed(
                group=str(given["conflict"]) if by_item else key, key=key, asked=given["resolve"] or "",
                label=given["label"] or "", majority=given.get("majority"),
            ))  # fmt: skip
    _check_once((row.key for row in found), row_id or "row", name)
    return found, by_item


def _column_of_ids(listed: Table, row_id: str) -> str:
    """The list's column of the data's ids: one called as a column of the list got an underscore (writing.distinct)."""
    own = {name.casefold() for name in listed.columns if name != row_id} | {
        name.casefold() for name in _COLUMNS
    }
    renamed = f"{row_id}_"
    if renamed in listed.columns and (row_id in listed.columns or row_id.casefold() in own):
        return renamed
    check_columns(listed, (row_id,), option="--row-id")
    return row_id


def _check_once(keys: Iterable[str | None], column: str, name: str) -> None:
    seen: set[str] = set()
    for key in keys:
        if key is not None and key in seen:
            raise InputError(
                f"{name}: {key!r} stands in two rows of the column {column}: it is to tell rows apart"
            )
        seen.add(key or "")


def _changes(rows: Sequence[_Listed], known: set[str], name: str, what: str) -> _Changes:
    groups: dict[str, list[_Listed]] = defaultdict(list)
    for row in rows:
        groups[row.group].append(row)
    by_key: dict[str, tuple[str, str | None]] = {}
    counted: Counter[str] = Counter()
    for place, members in groups.items():
        said = [_action(row.asked, known, f"{name}: {what} {place}") for row in members]
        kept = [n for n, action in enumerate(said) if action == "keep"]
        if len(kept) > 1 or (not kept and len(set(said)) > 1):
            raise InputError(
                f"{name}: the rows of {what} {place} ask for different things; write keep in the one row that is to "
                "stay, or one action in all of them"
            )
        action = "keep" if kept else said[0]
        label = members[0].majority if action == "majority" else action
        if action == "majority" and label not in known:
            raise InputError(f"{name}: {what} {place} has no majority; choose another action")
        counted[action] += 1
        for n, row in enumerate(members):
            stays = action in ("relabel", "") or (bool(kept) and n == kept[0])
            by_key[row.key] = (row.label, row.label if stays else None if kept or action == "drop" else label)
    return _Changes(by_key=by_key, anew=counted["relabel"], undecided=counted[""])


def _action(text: str, known: set[str], where: str) -> str:
    """The action that is written, nothing, or the label of the data."""
    if text in known and text.strip().lower() not in ACTIONS:
        return text
    if not text.strip() or text.strip().lower() in ACTIONS:
        return text.strip().lower()
    raise InputError(
        f"{where} says {text!r} in resolve; write one of {', '.join(ACTIONS)}, or a label that the data has"
    )


def _resolved(
    rows: Iterable[tuple[str | None, ...]],
    changes: Mapping[str, tuple[str, str | None]],
    place: int,
    key: int | None,
    name: str,
    done: Counter[str],
) -> Iterator[tuple[str | None, ...]]:
    left = dict(changes)
    for number, cells in enumerate(rows, start=1):
        own = str(number) if key is None else cells[key]
        if own is None or own not in left:
            done["rows"] += 1
            yield cells
            continue
        old, new = left.pop(own)
        if (cells[place] or "") != old:
            raise InputError(
                f"{name}: row {own} had the label {old!r}, but the data has {cells[place]!r}; use the file that the "
                "list was written from"
            )
        if new is None:
            done["left out"] += 1
            continue
        done["rows"] += 1
        done["changed"] += new != old
        yield (*cells[:place], new, *cells[place + 1 :])
    if left:
        raise InputError(
            f"{name}: the data has no row {next(iter(left))}; use the file that the list was written from"
        )
