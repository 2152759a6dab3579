"""Audits of labels that are ordered grades."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from audit.alarms_labels import NUMBERS, ORDER
from audit.duplicates import audit_duplicates
from audit.errors import ArgumentError
from audit.label_sets import retold
from audit.numeric import pair_distance, value_scores, weighted_kappa
from audit.patterns import CountPatterns, FloatArray
from audit.results import AuditResult, Ceiling, Estimate, Result

__all__ = ["OrdinalAudit", "audit_ordinal"]


@dataclass(frozen=True, kw_only=True)
class OrdinalAudit(Result):
    """An audit of ordered grades: that of plain classes, the quadratic-weighted κ, and how far conflicts go.

    ``distance`` is the mean number of steps between two labels of an item; ``adjacent`` the share of the
    disagreeing pairs that are one step apart. ``steps`` has the share of all pairs that are 0, 1, 2 ... steps apart.
    """

    audit: AuditResult
    order: tuple[str, ...]
    weighted_kappa: Estimate
    distance: Estimate
    adjacent: float | None
    steps: tuple[float, ...]

    @property
    def ceiling(self) -> Ceiling:
        """The band of plain classes."""
        return self.audit.ceiling

    def to_dict(self) -> dict[str, Any]:
        """The audit's own dictionary with one more entry, ``ordinal``."""
        more = {**super().to_dict()}
        return {**more.pop("audit"), "ordinal": more}

    def summary(self) -> str:
        """The audit of the classes, and the three numbers of ordered ones."""
        far = "" if self.adjacent is None else f", {self.adjacent:.1%} of the conflicting pairs one step"
        return "\n".join([
            self.audit.summary(), "", f"ordered: {' < '.join(self.order)}",
            f"quadratic-weighted κ {self.weighted_kappa.text('.4g')}",
            f"two labels of an item are {self.distance.text('.4g')} steps apart{far}",
        ])  # fmt: skip


def audit_ordinal(source: Any, *, classes: Sequence[str] | None = None, **options: Any) -> OrdinalAudit:
    """Audit ordered grades.

    ``classes`` names them from the lowest to the highest; without it they must be numbers, whose order is theirs.
    The other options are those of :func:`audit.duplicates.audit_duplicates`.
    """
    result = retold(audit_duplicates(source, classes=classes, **options), without=(NUMBERS, ORDER))
    order = tuple(classes) if classes else _numeric_order(result.data.classes)
    rank = {name: float(place) for place, name in enumerate(order)}
    ranks = np.array([rank[name] for name in result.data.classes])
    scores = value_scores(result.patterns, ranks)
    pairs = _pairs_by_step(result.patterns.repeated, ranks)
    conflicts = float(pairs[1:].sum())
    return OrdinalAudit(
        audit=result, order=order, weighted_kappa=weighted_kappa(scores, level=result.settings.level),
        distance=pair_distance(scores, level=result.settings.level),
        adjacent=float(pairs[1]) / conflicts if conflicts else None,
        steps=tuple((pairs / pairs.sum()).tolist()) if pairs.sum() else (),
    )  # fmt: skip


def _numeric_order(classes: Sequence[str]) -> tuple[str, ...]:
    try:
        values = [float(name) for name in classes]
        if not all(map(math.isfinite, values)):
            raise ValueError("a grade is infinite or no number")
    except ValueError as error:
        raise ArgumentError(
            "grades that are no numbers have no order of their own: name it from the lowest to the highest, such as "
            "--classes low,middle,high"
        ) from error
    order = sorted(range(len(values)), key=values.__getitem__)
    for below, above in pairwise(order):
        if values[below] == values[above]:
            raise ArgumentError(
                f"the grades {classes[below]!r} and {classes[above]!r} are one number: bring them together with "
                "--merge-labels, or name the order with --classes"
            )
    return tuple(classes[place] for place in order)


def _pairs_by_step(patterns: CountPatterns, ranks: FloatArray) -> FloatArray:
    """Pairs of labels of an item that are 0, 1, 2 ... steps apart, over all items."""
    table = patterns.counts[:, np.argsort(ranks)].tocsc()
    width = len(ranks)
    pairs = np.zeros(max(2, width))
    pairs[0] = float(patterns.agreeing_pairs @ patterns.items)
    for step in range(1, width):
        both = table[:, : width - step].multiply(table[:, step:])
        pairs[step] = float(patterns.items @ np.asarray(both.sum(axis=1)).ravel())
    return pairs
