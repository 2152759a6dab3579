"""Does another run do anything that a threshold does not? Its decisions against ours at the matched threshold.

Our scores are cut where they give the other run's recall (or precision, or share of rows called positive), and what is
left between the two is measured in every metric. The matching is done again in every bootstrap draw, so its error
counts. The point lies on the straight lines between neighbouring thresholds (Provost & Fawcett, Mach. Learn. 42 (2001)
203-231), so that ties do not spoil the match; where several thresholds match alike, the one whose share of positives
is nearest to the other's is taken. Equivalence is two one-sided tests (Schuirmann, J. Pharmacokinet. Biopharm. 15
(1987) 657-680).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from audit.errors import ArgumentError
from audit.intervals import check_level, clopper_pearson
from audit.results import Estimate, Result
from train.draws import bootstrap, percentile_limits
from train.metrics import DECISION_METRICS, Bools, Counts, Floats, Ranking, count, decision_metric
from train.operating_verdict import Verdict, judge, rows_needed, told
from train.scores import Scores

__all__ = ["Match", "MatchOn", "match_points", "match_run"]

MatchOn = Literal["recall", "precision", "share"]

_ON = ("recall", "precision", "share")


@dataclass(frozen=True, kw_only=True)
class Match(Result):
    """Another run's decisions against ours at the threshold that matches them.

    ``differences`` are the other run's metric less ours; ``equivalence`` holds the limits of the two one-sided tests.
    ``threshold`` is the nearest single one; ``exact`` says whether it gives the target without a coin between two.
    ``rows_for_margin`` would settle a difference of the margin, ``rows_for_difference`` one as large as was seen.
    """

    source: str
    on: MatchOn
    target: float
    threshold: float | None
    exact: bool
    n: int
    same_decisions: float
    no_answer: int
    ours: Mapping[str, float | None]
    theirs: Mapping[str, float | None]
    differences: Mapping[str, Estimate]
    equivalence: Mapping[str, tuple[float, float] | None]
    margin: float
    level: float
    verdict: Verdict
    rows_for_margin: int | None
    rows_for_difference: int | None
    message: str

    def summary(self) -> str:
        """The verdict in words."""
        return self.message


def match_points(
    tp: Floats, fp: Floats, *, on: MatchOn, target: Floats, share: Floats
) -> tuple[Floats, Floats]:
    """(tp, fp) on the lines between points where ``on`` is met; NaN where no point meets it.

    ``tp`` and ``fp`` (B, G + 1) come from :meth:`Ranking.points`. ``target`` (B,) is a count of right positives for
    recall, a number of positives for share, and a precision for precision; ``share`` (B,) is the other run's number of
    positives, to which the nearest of several matches is taken.
    """
    rows = np.arange(len(tp))
    called = tp + fp
    if on == "precision":
        height = tp - target[:, None] * called
        crossing = (height[:, :-1] >= 0) != (height[:, 1:] >= 0)
        crossing &= called[:, :-1] > 0  # a line from the point without a positive has one precision
        exact = np.isclose(height, 0.0, atol=1e-9) & (called > 0)
        far = np.where(exact, np.abs(called - share[:, None]), np.inf)
        step = np.abs(height[:, :-1]) / np.maximum(np.abs(height[:, :-1]) + np.abs(height[:, 1:]), 1e-300)
        between = np.where(
            crossing, np.abs(called[:, :-1] + step * np.diff(called, axis=1) - share[:, None]), np.inf
        )
        point, segment = far.argmin(axis=1), between.argmin(axis=1)
        at_point = far[rows, point] <= between[rows, segment]
        found = np.isfinite(np.minimum(far[rows, point], between[rows, segment]))
        low = np.where(at_point, point, segment)
        mix = np.where(at_point, 0.0, step[rows, segment])
        high = np.minimum(low + 1, tp.shape[1] - 1)
        out = [part[rows, low] + mix * (part[rows, high] - part[rows, low]) for part in (tp, fp)]
        return np.where(found, out[0], np.nan), np.where(found, out[1], np.nan)
    along = tp if on == "recall" else called
    above = np.minimum((along < target[:, None] - 1e-9).sum(axis=1), tp.shape[1] - 1)
    below = np.maximum((along <= target[:, None] + 1e-9).sum(axis=1) - 1, 0)
    run = above <= below
    gap = along[rows, above] - along[rows, below]
    mix = np.where(run, 0.0, (target - along[rows, below]) / np.where(gap > 0, gap, 1.0))
    if on == "share":
        return tuple(part[rows, below] + mix * (part[rows, above] - part[rows, below]) for part in (tp, fp))
    wanted = np.clip(share - target, fp[rows, np.minimum(above, below)], fp[rows, np.maximum(above, below)])
    return target, np.where(run, wanted, fp[rows, below] + mix * (fp[rows, above] - fp[rows, below]))


def match_run(
    ours: Scores,
    other: Scores,
    *,
    on: MatchOn = "recall",
    margin: float = 0.002,
    level: float = 0.95,
    draws: int = 2_000,
    seed: int = 0,
    strata: bool = False,
) -> Match:
    """Compare our scores, cut where they match, with the other run's decisions on the same rows (already paired).

    Each class gains a row that only one of the two has right, as in :func:`train.metrics.paired_difference`.
    """
    check_level(level)
    if on not in _ON:
        raise ArgumentError(f"a run is matched on recall, precision or share, not {on!r}")
    if not 0.0 < margin < 1.0:
        raise ArgumentError(f"the margin is a difference in (0, 1), such as 0.002, not {margin}")
    if level <= 0.5:
        raise ArgumentError(f"equivalence needs a level above 0.5, not {level}: 0.95 is usual")
    n = len(ours)
    # before and after our rows, a positive and a negative that only one of the two has right
    truth = np.concatenate([[True, False], ours.truth, [True, False]])
    ranking = Ranking(truth, np.concatenate([[np.inf] * 2, ours.scores, [-np.inf] * 2]))
    theirs = np.concatenate([[0, 0], other.predicted, [1, 1]])
    groups = np.concatenate([ours.units + np.arange(2), ours.clusters, ours.units + np.arange(2, 4)])

    def compare(weights: Floats) -> tuple[Counts, Counts]:
        tp, fp = ranking.points(weights)
        they = count(truth, theirs, weights)
        called = they.tp + they.fp
        with np.errstate(invalid="ignore", divide="ignore"):
            target = {"recall": they.tp, "share": called, "precision": they.tp / called}[on]
        matched = match_points(tp, fp, on=on, target=target, share=called)
        one, two = (part[:, None] for part in matched)
        us = Ranking.counts(tp, fp)
        positives, negatives = us.positives, us.negatives
        return Counts(
            tp=one, fp=two, tn=negatives - two, fn=positives - one, positives=positives, negatives=negatives
        ), they

    def differences(weights: Floats) -> Floats:
        us, they = compare(weights)
        return np.stack(
            [decision_metric(m, they) - decision_metric(m, us)[:, 0] for m in DECISION_METRICS], axis=1
        )

    rows = np.concatenate([np.zeros(2), np.ones(n), np.zeros(2)])[None]
    us, they = compare(rows)
    mine = {m: _number(decision_metric(m, us)[0, 0]) for m in DECISION_METRICS}
    others = {m: _number(decision_metric(m, they)[0]) for m in DECISION_METRICS}
    values = bootstrap(
        differences,
        clusters=groups,
        strata=truth.astype(np.int64) if strata else None,
        draws=draws,
        seed=seed,
    )
    values[:, [DECISION_METRICS.index(on)] if on in DECISION_METRICS else []] *= (
        0.0  # rounding of what is matched
    )
    found, equal, spread = {}, {}, {}
    for m, column in zip(DECISION_METRICS, values.T, strict=True):
        a, b = mine[m], others[m]
        limits = percentile_limits(column, level=level) if a is not None and b is not None else None
        low, high = limits or (None, None)
        gap = None if a is None or b is None else (0.0 if m == on else b - a)
        found[m] = Estimate(
            estimate=gap, low=low, high=high, method="paired bootstrap, matched in every draw"
        )
        equal[m] = percentile_limits(column, level=2.0 * level - 1.0) if gap is not None else None
        spread[m] = float(np.nanstd(column)) if limits else math.nan
    called = int((other.predicted == 1).sum())
    threshold, exact, same = _nearest(ours, other, us)
    compared = [m for m in DECISION_METRICS if m != on]
    differing = (1.0, 1.0)
    if not math.isnan(same):
        differing = (1.0 - same, clopper_pearson(n - round(same * n), n, level=2.0 * level - 1.0)[1])
    verdict = judge(
        {m: found[m] for m in compared}, {m: equal[m] for m in compared}, margin=margin, differing=differing
    )
    if called in (0, n) or all(found[m].estimate is None for m in compared):
        verdict = "degenerate"
    margin_rows, gap_rows = rows_needed(n, found, spread, compared, margin=margin, level=level)
    target = {"share": called / n}.get(on, others.get(on) or 0.0)
    message = told(
        verdict, source=other.source, on=on, target=target, found=found, equal=equal, compared=compared, n=n,
        margin=margin, level=level, rows=(margin_rows, gap_rows), same=same,
    )  # fmt: skip
    return Match(
        source=other.source, on=on, target=target, threshold=threshold, exact=exact, n=n, same_decisions=same,
        no_answer=int((other.predicted == -1).sum()), ours=mine, theirs=others, differences=found, equivalence=equal,
        margin=margin, level=level, verdict=verdict, rows_for_margin=margin_rows, rows_for_difference=gap_rows,
        message=message,
    )  # fmt: skip


def _nearest(ours: Scores, other: Scores, us: Counts) -> tuple[float | None, bool, float]:
    """The threshold nearest to the matched point, whether it is that point, and the share of equal decisions there."""
    ranking = Ranking(ours.truth, ours.scores)
    tp, fp = ranking.points(np.ones((1, len(ours))))
    if not np.isfinite(us.tp[0, 0]):
        return None, False, math.nan
    far = np.abs(tp[0] - us.tp[0, 0]) + np.abs(fp[0] - us.fp[0, 0])
    place = int(far.argmin())
    threshold = float(ranking.thresholds[place - 1]) if place else None
    decided: Bools = np.zeros(len(ours), np.bool_) if threshold is None else ours.scores >= threshold
    return threshold, bool(far[place] < 1e-6), float((decided.astype(np.int64) == other.predicted).mean())


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
