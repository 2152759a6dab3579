"""Pairs two score files item by item, and finds the scored items whose labels are in conflict."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from audit.columns import check_columns
from audit.errors import InputError
from audit.reading import open_table
from train.metrics import Bools
from train.scores import Scores

__all__ = ["ambiguous_items", "no_conflicts", "pair"]

#: Columns of a conflict file that hold no item (docs/conflicts.md).
_CONFLICT_OWN = (
    "conflict",
    "disagreement",
    "labels",
    "majority",
    "resolve",
    "row",
    "label",
    "column",
    "votes",
)


def pair(a: Scores, b: Scores, *, common: bool = False) -> tuple[Scores, Scores]:
    """The rows of a, and those of b in the order of a.

    Raises
    ------
    InputError
        One has items that the other has not (``common`` leaves them out, with a note), or an item has two labels.
    """
    place = {item: i for i, item in enumerate(b.items)}
    ours = np.array([i for i, item in enumerate(a.items) if item in place], np.int64)
    lacking, surplus = len(a) - len(ours), len(b) - len(ours)
    if not len(ours):
        raise InputError(f"{a.source} and {b.source} have no item in common: are both of one split?")
    if (lacking or surplus) and not common:
        one = set(b.items) - set(a.items) if not lacking else set(a.items) - set(b.items)
        raise InputError(
            f"{b.source} lacks {lacking:,} items of {a.source} and has {surplus:,} more (such as {min(one)!r}): score "
            "the same rows with both, or compare those in common with --common"
        )
    note = [f"{lacking:,} and {surplus:,} items that only one file has are left out"] * bool(
        lacking or surplus
    )
    theirs = np.array([place[a.items[i]] for i in ours], np.int64)
    first, second = a.take(ours, *note), b.take(theirs)
    other = first.truth != second.truth
    if other.any():
        raise InputError(
            f"{int(other.sum()):,} items have other labels in {b.source} than in {a.source} (item "
            f"{first.items[int(np.argmax(other))]!r} first): score both against one key"
        )
    return first, second


def no_conflicts(conflicts: Any) -> bool:
    """Whether a conflict file holds its head and no row: ``audit dupes`` found nothing, and wrote that down."""
    if not isinstance(conflicts, str | os.PathLike):
        return False
    path = Path(conflicts)
    if path.suffix.lower() not in (".csv", ".tsv") or not path.is_file() or path.stat().st_size > 10_000:
        return False
    head, *rest = path.read_bytes().decode("utf-8-sig", "replace").strip().splitlines() or [""]
    return not rest and head.startswith("conflict") and "disagreement" in head


def ambiguous_items(conflicts: Any, items: Sequence[str], *, column: str | None = None) -> Bools:
    """Which of the items stand in a file that ``audit dupes --conflicts`` wrote: shape (n,).

    ``column`` holds the key there; without it, the column with the most matches, ``row`` aside, is taken.
    """
    if no_conflicts(conflicts):
        return np.zeros(len(items), np.bool_)
    with open_table(conflicts) as table:
        source = table.report.source
        check_columns(table, [column] if column is not None else [], option="--conflicts-item")
        names = [column] if column else [name for name in table.columns if name not in _CONFLICT_OWN]
        found: dict[str, set[str | None]] = {name: set() for name in names}
        for batch in table.rows(names) if names else ():
            for cells in batch:
                for name, cell in zip(names, cells, strict=True):
                    found[name].add(cell)
    keys = set(items)
    best = max(names, key=lambda name: len(found[name] & keys), default=None)
    if best is None or not found[best] & keys:
        where = f"the column {column!r}" if column else "any column"
        raise InputError(
            f"{source} holds none of the scored items in {where}: name the column of their keys with --conflicts-item "
            "(row, if they are data rows from 1)"
        )
    return np.array([item in found[best] for item in items], np.bool_)
