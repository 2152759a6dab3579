"""Audits of labels that are ordered grades."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from audit.alarms_labels import NUMBERS, ORDER
from audit.alarms_offsets import offset_alarm
from audit.duplicates import audit_duplicates
from audit.errors import ArgumentError
from audit.grouping import Repeats
from audit.label_sets import retold
from audit.numeric import as_number, pair_distance, value_scores, weighted_kappa
from audit.offsets import AnnotatorOffsets, offsets_of
from audit.patterns import CountPatterns, FloatArray
from audit.results import AuditResult, Ceiling, Estimate, Result, Verdict
from audit.verdict import heed

__all__ = ["OrdinalAudit", "audit_ordinal", "kappa_ceiling"]


@dataclass(frozen=True, kw_only=True)
class OrdinalAudit(Result):
    """An audit of ordered grades: that of plain classes, the quadratic-weighted κ, and how far conflicts go.

    ``weighted_kappa`` is that of two labels of an item; no model has one above ``kappa_ceiling``, see
    :func:`kappa_ceiling` (null where an alarm stops the audit). ``annotators`` has the offsets of annotators, in steps,
    where their column is named. ``distance`` is the mean number of steps between two labels of an item; ``adjacent``
    the share of the disagreeing pairs that are one step apart. ``steps`` has the share of all pairs that are 0, 1, 2
    ... steps apart.
    """

    audit: AuditResult
    order: tuple[str, ...]
    weighted_kappa: Estimate
    kappa_ceiling: Estimate
    distance: Estimate
    adjacent: float | None
    steps: tuple[float, ...]
    annotators: AnnotatorOffsets | None = None

    @property
    def ceiling(self) -> Ceiling:
        """The band of plain classes."""
        return self.audit.ceiling

    def to_dict(self) -> dict[str, Any]:
        """The audit's own dictionary with one more entry, ``ordinal``."""
        more = {**super().to_dict()}
        return {**more.pop("audit"), "ordinal": more}

    def summary(self) -> str:
        """The audit of the classes, and the numbers of ordered ones."""
        far = "" if self.adjacent is None else f", {self.adjacent:.1%} of the conflicting pairs one step"
        return "\n".join([
            self.audit.summary(), "", f"ordered: {' < '.join(self.order)}",
            f"quadratic-weighted κ {self.weighted_kappa.text('.4g')}; of no model above "
            f"{self.kappa_ceiling.text('.4g')}",
            f"two labels of an item are {self.distance.text('.4g')} steps apart{far}",
        ])  # fmt: skip


def audit_ordinal(source: Any, *, classes: Sequence[str] | None = None, **options: Any) -> OrdinalAudit:
    """Audit ordered grades.

    ``classes`` names them from the lowest to the highest; without it they must be numbers, whose order is theirs.
    The other options are those of :func:`audit.duplicates.audit_duplicates`.
    """
    votes: list[tuple[int, str, int, int]] = []

    def look(repeats: Repeats) -> None:
        if repeats.columns.annotator is not None:
            votes.extend(repeats.annotator_votes())

    result = audit_duplicates(source, classes=classes, look=look, **options)
    order = tuple(dict.fromkeys(classes)) if classes else _numeric_order(result.data.classes)
    rank = {name: float(place) for place, name in enumerate(order)}
    ranks = np.array([rank[name] for name in result.data.classes])
    offsets = offsets_of(votes, ranks, level=result.settings.level) if options.get("annotator") else None
    alarm = None if offsets is None else offset_alarm(offsets, unit="steps")
    result = retold(result, without=(NUMBERS, ORDER), more=() if alarm is None else (alarm,))
    scores = value_scores(result.patterns, ranks)
    pairs = _pairs_by_step(result.patterns.repeated, ranks)
    conflicts = float(pairs[1:].sum())
    kappa = weighted_kappa(scores, level=result.settings.level)
    stopped = any(alarm.severity == "stop" for alarm in result.alarms)
    top = Estimate(estimate=None, method="none") if stopped else kappa_ceiling(kappa)
    distance = pair_distance(scores, level=result.settings.level, largest=max(1.0, len(order) - 1.0))
    return OrdinalAudit(
        audit=replace(result, verdict=_verdict(result, kappa, top, distance)), order=order, weighted_kappa=kappa,
        kappa_ceiling=top, distance=distance, adjacent=float(pairs[1]) / conflicts if conflicts else None,
        steps=tuple((pairs / pairs.sum()).tolist()) if pairs.sum() else (), annotators=offsets,
    )  # fmt: skip


def kappa_ceiling(kappa: Estimate) -> Estimate:
    """√κ, above which no predictor's quadratic-weighted κ against these labels can be, from the κ of two labels.

    Let p be the mean rank of an item, y a label and a the predictor's rank. κ of a and y is
    2 cov(a, y)/(var a + var y + (mean a - mean y)²) (Cohen, Psychological Bulletin 70 (1968) 213-220), at most the
    correlation of a and y, since var a + var y ≥ 2 sd(a) sd(y). A predictor that has not seen y has
    cov(a, y) = cov(a, p) ≤ sd(a) sd(p), so the correlation is at most sd(p)/sd(y) = √(1 - σ²/var y), which is the root
    of the labels' own κ. It is not attained: ranks are whole numbers. Limits are mapped; below 0 the bound is 0.
    """
    ends = [
        None if end is None else math.sqrt(max(0.0, end)) for end in (kappa.estimate, kappa.low, kappa.high)
    ]
    return Estimate(estimate=ends[0], low=ends[1], high=ends[2], method=kappa.method)


def _verdict(result: AuditResult, kappa: Estimate, top: Estimate, distance: Estimate) -> Verdict:
    """The verdict of the classes behind what the order tells; as it is where there is no order to tell of."""
    told = result.verdict
    if top.estimate is None or kappa.estimate is None or not result.disagreement.estimate:
        return told
    limits = "" if top.low is None or top.high is None else f" ({top.low:.3f} to {top.high:.3f})"
    headline = (
        f"Two labels of an item are {distance.estimate or 0.0:.2f} steps apart on average: no model can have a "
        f"quadratic-weighted κ above {top.estimate:.3f}{limits} against these grades; that of two labels is "
        f"{kappa.estimate:.3f}."
    )
    lead = heed(result.alarms)  # stays first, where it is
    first = len(lead) if told.next_steps[: len(lead)] == lead else 0
    classes = f"Taken as classes without an order, {told.headline[0].lower()}{told.headline[1:]}"
    return Verdict(
        headline=headline, next_steps=(*told.next_steps[:first], classes, *told.next_steps[first:])
    )


def _numeric_order(classes: Sequence[str]) -> tuple[str, ...]:
    values = [value for name in classes if (value := as_number(name)) is not None]
    if len(values) < len(classes):
        raise ArgumentError(
            "grades that are no numbers have no order of their own: name it from the lowest to the highest, such as "
            "--classes low,middle,high"
        )
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
