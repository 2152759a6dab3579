"""Brings the data and the conflict file of ``audit dupes`` to the rollouts: items are matched by their text or key."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from audit.columns import check_columns
from audit.errors import InputError
from audit.reading import open_table
from train.scores_pairs import no_conflicts
from train.task import item_key

__all__ = ["DataLabels", "contested_items", "data_labels", "plain_key"]


@dataclass(frozen=True, kw_only=True)
class DataLabels:
    """Rows of each class in the data, its items by plain key, and the label of each that has one label only."""

    counts: Mapping[str, int]
    items: frozenset[str]
    by_item: Mapping[str, str]
    source: str = "the data"

    def check(self, seen: Iterable[str], labels: Iterable[str]) -> tuple[str, ...]:
        """What to tell of rollouts whose items have the plain keys ``seen`` and which have these ``labels``.

        Raises
        ------
        InputError
            The data hold none of the items: most likely another column is meant.
        """
        seen, labels, notes = set(seen), set(labels), []
        absent = seen - self.items if self.items else set()
        if absent and absent == seen:
            raise InputError(
                f"{self.source}: none of its {len(self.items):,} items is in the rollouts; name the column or columns "
                "that make their key with --item"
            )
        if absent:
            notes.append(f"{len(absent):,} of {len(seen):,} items seen are not in the data")
        if labels and labels.isdisjoint(self.counts):
            notes.append(
                f"the data have other labels ({_few(self.counts)}) than the rollouts ({_few(labels)}): is --label "
                "right?"
            )
        return tuple(notes)


def plain_key(item: str) -> str:
    """The key of an item in Unicode form NFC, lower case and single spaces; of several columns, each by itself."""
    return item_key([_plain(part) for part in _parts(item)])


def contested_items(conflicts: str | Path, *, item: Sequence[str], like: Iterable[str]) -> frozenset[str]:
    """The plain keys of the items in a conflict file (docs/conflicts.md).

    Parameters
    ----------
    item:
        Its columns that make an item's key; by default the last ones, as many as the keys of the rollouts have parts.
    like:
        Plain keys of the rollouts: that none of them is in the file is taken for a wrong key.

    Raises
    ------
    InputError, ColumnError
        The file is no conflict file, lacks a column, or shares no item with the rollouts.
    """
    if no_conflicts(conflicts):
        return frozenset()
    keys = list(like)
    with open_table(conflicts) as table:
        check_columns(table, ("conflict", "disagreement", "row", "label"), option="the conflict file")
        width = max((len(_parts(key)) for key in keys[:1]), default=1)
        columns = tuple(item) or tuple(table.columns[-width:])
        check_columns(table, columns, option="--item")
        found = {_row_key(cells) for batch in table.rows(columns) for cells in batch}
    if found and not found.intersection(keys):
        raise InputError(
            f"{conflicts}: none of its {len(found):,} items (by {', '.join(columns)}) is in the rollouts; name the "
            "column that holds their key with --item"
        )
    return frozenset(found)


def data_labels(data: str | Path, *, item: Sequence[str], label: str) -> DataLabels:
    """The classes of the data's rows, and the label of each item where ``item`` names the columns of its key."""
    with open_table(data) as table:
        check_columns(table, (label,), option="--label")
        check_columns(table, item, option="--item")
        counts: Counter[str] = Counter()
        labels: dict[str, set[str]] = {}
        for batch in table.rows((label, *item)):
            for name, *cells in batch:
                if name is None:
                    continue
                counts[name] += 1
                if cells:
                    labels.setdefault(_row_key(cells), set()).add(name)
    if not counts:
        raise InputError(f"{data}: the column {label} holds no label; name the label's column with --label")
    return DataLabels(
        counts=counts,
        source=str(data),
        items=frozenset(labels),
        by_item={key: min(some) for key, some in labels.items() if len(some) == 1},
    )


def _few(names: Iterable[str]) -> str:
    """The first of some names, as they are told in a message."""
    first, *rest = (name[:30] for name in sorted(names))
    return ", ".join([first, *rest[:3]]) + (", ..." if len(rest) > 3 else "")


def _row_key(cells: Sequence[str | None]) -> str:
    return item_key([_plain(cell or "") for cell in cells])


def _parts(item: str) -> list[str]:
    """The columns' values of a key: see :func:`train.task.item_key`."""
    if item.startswith('["'):
        try:
            parts = json.loads(item)
        except ValueError:
            return [item]
        if isinstance(parts, list) and len(parts) > 1 and all(isinstance(part, str) for part in parts):
            return parts
    return [item]


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split()).lower()
