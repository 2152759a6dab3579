"""The suspicious labels, ranked, and the list of them that people edit and `audit resolve` carries out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from audit.issues_noise import Confident
from audit.issues_results import Issue
from audit.issues_rows import LabelledRows
from audit.patterns import FloatArray, IntArray
from audit.writing import distinct, write_rows

__all__ = ["list_issues", "write_issues"]

_OWN = (
    "row", "resolve", "label", "suggested", "majority", "score", "suggested_probability", "in_conflict", "labels",
)  # fmt: skip


def list_issues(
    rows: LabelledRows, learned: Confident, probabilities: FloatArray, table: IntArray, *, most: int | None
) -> list[Issue]:
    """The flagged labels, the least likely first; ties in the order of the file."""
    places = np.flatnonzero(learned.flagged)
    places = places[np.argsort(learned.score[places], kind="stable")][:most]
    suggested = learned.suggested[places]
    items = rows.item[places]
    return [
        Issue(
            row=int(rows.row[place]) + 1, item=text, label=rows.classes[rows.code[place]],
            suggested=rows.classes[told], score=float(learned.score[place]),
            suggested_probability=float(probabilities[one, told]), conflict=bool((table[one] > 0).sum() > 1),
            labels=int(table[one].sum()),
        )
        for place, told, one, text in zip(places, suggested, items, rows.given(places), strict=True)
    ]  # fmt: skip


def write_issues(
    out: str | Path, item: Sequence[str], issues: Sequence[Issue], rows: LabelledRows, table: IntArray
) -> None:
    """Write the list with an empty column ``resolve``; a column of the data called as one of ours gets an underscore.

    ``majority`` is the label that more than half of the item's labels are, if there is one.
    """
    places = np.searchsorted(rows.row, [one.row - 1 for one in issues])
    counts = table[rows.item[places]]
    most = counts.argmax(axis=1) if len(counts) else np.zeros(0, np.int64)
    majority = [
        rows.classes[k] if 2 * count[k] > count.sum() > 1 else None
        for k, count in zip(most, counts, strict=True)
    ]
    key = [rows.row_id] if rows.row_id is not None and rows.row_id not in item else []
    ids = rows.ids(places) if key else [()] * len(issues)
    write_rows(
        out, distinct((*_OWN, *key, *item)),
        (
            (one.row, None, one.label, one.suggested, best, one.score, one.suggested_probability, one.conflict,
             one.labels, *its, *one.item)
            for one, best, its in zip(issues, majority, ids, strict=True)
        ),
    )  # fmt: skip
