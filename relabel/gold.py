"""A gold sample: items whose right label is known, for choosing a threshold and measuring agreement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from audit.columns import check_columns
from audit.errors import ArgumentError, ColumnError
from audit.reading import open_table
from relabel.records import ConfidenceKind, Verdict
from relabel.rubric import Rubric
from relabel.worklist import Item, Worklist

if TYPE_CHECKING:
    from relabel.calibration import Calibration

__all__ = ["Gold", "GoldSample", "read_gold"]

_NAMES = ("gold", "gold_label", "truth", "true_label", "label")


@dataclass(frozen=True, kw_only=True)
class GoldSample:
    """Distinct items and their right labels, entry by entry; ``column`` is where the labels were."""

    items: tuple[Item, ...]
    labels: tuple[str, ...]
    column: str


@dataclass(frozen=True, kw_only=True)
class Gold:
    """A gold sample and what the judge said of it; ``verdicts[i]`` is of ``sample.items[i]``."""

    sample: GoldSample
    verdicts: tuple[Verdict, ...]

    def of_kind(self, kind: ConfidenceKind | None) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Confidence and agreement, shape (n,) each, of the labels whose confidence is of this kind."""
        pairs = [
            (verdict.confidence, verdict.label == label)
            for verdict, label in zip(self.verdicts, self.sample.labels, strict=True)
            if verdict.confidence is not None and verdict.confidence_kind == kind
        ]
        return np.array([c for c, _ in pairs], dtype=float), np.array([a for _, a in pairs], dtype=bool)

    @property
    def main_kind(self) -> ConfidenceKind | None:
        """The kind of confidence most of the labels have."""
        kinds = [v.confidence_kind for v in self.verdicts if v.confidence is not None]
        return max(sorted({k for k in kinds if k}), key=kinds.count, default=None)

    def calibration(self) -> tuple[Calibration, ...]:
        """Each kind of confidence against gold."""
        from relabel.calibration import (
            calibrate_verdicts,
        )  # here: it needs scipy.stats, which is slow to load

        return calibrate_verdicts(zip(self.verdicts, self.sample.labels, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """The column, counts (items, with a verdict, in agreement), and the calibration of each kind of confidence."""
        labelled = [v for v in self.verdicts if v.label is not None]
        agreed = sum(v.label == label for v, label in zip(self.verdicts, self.sample.labels, strict=True))
        return {
            "column": self.sample.column,
            "items": len(self.verdicts),
            "labelled": len(labelled),
            "agreed": agreed,
            "agreement": agreed / len(labelled) if labelled else None,
            "calibration": [one.to_dict() for one in self.calibration()],
        }


def read_gold(source: Any, *, rubric: Rubric, column: str | None = None, **reading: Any) -> GoldSample:
    """Read a gold sample: the rubric's input columns and one column of right labels.

    ``column`` names the labels; by default ``gold``, ``gold_label``, ``truth``, ``true_label``, ``label``, or the
    one column that is no input. Rows without a label are left out; two labels for one item, or a label that the
    rubric does not have, is an error.
    """
    with open_table(source, **reading) as table:
        inputs = rubric.inputs(table.columns, source=table.report.source)
        column = column or _guess([c for c in table.columns if c not in inputs])
        check_columns(table, [column], option="--gold-label")
        with Worklist(table, inputs=inputs, label=column) as worklist:
            labels = _labels(worklist, rubric)
            items = tuple(item for item in worklist.read() if item.id in labels)
    if not items:
        raise ArgumentError(
            "gold holds no labelled row; give a file with the rubric's inputs and a label column"
        )
    return GoldSample(items=items, labels=tuple(labels[item.id] for item in items), column=column)


def _labels(worklist: Worklist, rubric: Rubric) -> dict[int, str]:
    """Item -> its one label."""
    labels: dict[int, str] = {}
    for row, (item, text) in enumerate(worklist.links(), start=1):
        if text is None or not text.strip():
            continue
        label = rubric.canonical(text)
        if label is None:
            raise ArgumentError(
                f"gold row {row}: {text!r} is no label of the rubric; correct it, or make it a synonym there"
            )
        if labels.setdefault(item, label) != label:
            raise ArgumentError(f"gold row {row}: this item has another label further up; keep one of them")
    return labels


def _guess(others: list[str]) -> str:
    for name in _NAMES:
        for column in others:
            if column.casefold() == name:
                return column
    if len(others) == 1:
        return others[0]
    raise ColumnError(
        f"which column holds gold's labels? name it with --gold-label; beside the inputs there are "
        f"{', '.join(others) or 'none'}"
    )
