"""Routing between a cheap model and a dear one: does the cheap one's confidence know when to ask the other?

One bootstrap of rows (or clusters) serves all differences, so they are paired. The share that looks best on the items
is cross-fitted, as a threshold is (:mod:`train.operating`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from audit.errors import ArgumentError
from audit.intervals import check_level
from audit.results import Estimate
from train.draws import FEW_UNITS, bootstrap, fold_weights, interval_of, percentile_limits
from train.metrics import Bools, Floats, Ints
from train.route_cascade import SHARES, Cascade, confidence_of, cuts
from train.route_oracle import ambiguity, mcnemar, oracle_gap
from train.route_results import Band, BestShare, CascadePoint, Crosstab, Route, RouteMetric
from train.route_words import sentences
from train.scores import Columns, Scores, check_clusters, read_scores, scored_rows
from train.scores_pairs import ambiguous_items, pair

__all__ = ["route"]

#: Groups of the curves, and of the bands that are shown.
_CUTS, _BANDS = 100, 10
_METRICS: tuple[RouteMetric, ...] = ("accuracy", "balanced_accuracy")


def route(
    a: Any,
    b: Any,
    *,
    metric: RouteMetric = "accuracy",
    cost_a: float | None = None,
    cost_b: float | None = None,
    margin: float = 0.01,
    flip_rate: float | None = None,
    conflicts: Any = None,
    conflicts_item: str | None = None,
    positive: str | None = None,
    split: str | None = None,
    cluster: str | None = None,
    columns: Columns | None = None,
    common: bool = False,
    drop_unscored: bool = False,
    level: float = 0.95,
    draws: int = 2_000,
    seed: int = 0,
) -> Route:
    """Compare two models on the same items, and every way to send the less sure items of a to b.

    Parameters
    ----------
    a, b:
        Score files, run folders or data frames (:func:`train.scores.read_scores`). a needs scores, or a column
        ``confidence``; its confidence is else the score of its own answer, and an item without an answer is least sure.
    metric:
        What the verdict, the best share and the differences are about.
    cost_a, cost_b:
        Cost of one item, in any unit; a cascade pays a for all items and b for those routed.
    margin:
        What the metric may lose against always asking b where a smaller share is looked for.
    flip_rate:
        Error rate of the labels (``audit dupes``): what of the oracle's gap no router can reach.
    conflicts, conflicts_item:
        File of ``audit dupes --conflicts`` and its column with the items' keys; without it a column ``ambiguous`` of a.

    Raises
    ------
    InputError
        A file cannot be used or the two do not pair.
    ArgumentError
        An option is out of its range, or only one cost is given.
    """
    check_level(level)
    _check(metric, cost_a, cost_b, margin, flip_rate)
    reading: dict[str, Any] = {"split": split, "columns": columns}
    first = read_scores(a, positive=positive, cluster=cluster, **reading)
    first, second = pair(
        first, read_scores(b, positive=first.positive, first=False, **reading), common=common
    )
    check_clusters(first)
    if first.confidence is None:
        everything, first = first, scored_rows(first, drop=drop_unscored)
        second = second.take(np.flatnonzero(~np.isnan(everything.scores)))
    flags = first.ambiguous
    if conflicts is not None:
        flags = ambiguous_items(conflicts, first.items, column=conflicts_item)
    return _routed(
        first, second, flags, metric, (cost_a, cost_b), margin, flip_rate, level=level, draws=draws, seed=seed
    )


def _check(
    metric: str, cost_a: float | None, cost_b: float | None, margin: float, flip_rate: float | None
) -> None:
    if metric not in _METRICS:
        raise ArgumentError(f"routing is judged by accuracy or balanced_accuracy, not {metric!r}")
    if (cost_a is None) != (cost_b is None):
        raise ArgumentError("give both costs of an item, --cost-a and --cost-b, or neither")
    if any(cost is not None and not 0.0 <= cost <= 1e100 for cost in (cost_a, cost_b)):
        raise ArgumentError("a cost is a number of 0 or more, at most 1e100")
    if not 0.0 <= margin < 1.0:
        raise ArgumentError(f"the margin is a loss in [0, 1), such as 0.01, not {margin}")
    if flip_rate is not None and not 0.0 <= flip_rate < 0.5:
        raise ArgumentError(f"a flip rate lies in [0, 0.5), not {flip_rate}")


def _routed(
    a: Scores, b: Scores, flags: Bools | None, metric: RouteMetric, costs: tuple[float | None, float | None],
    margin: float, flip_rate: float | None, *, level: float, draws: int, seed: int,
) -> Route:  # fmt: skip
    n, truth = len(a), a.truth
    a_right, b_right = a.predicted == truth, b.predicted == truth
    sure = confidence_of(a)
    fine, coarse = cuts(sure, _CUTS), cuts(sure, _BANDS)
    cascade, banded = Cascade(truth, a_right, b_right, fine), Cascade(truth, a_right, b_right, coarse)
    which, width = _METRICS.index(metric), len(SHARES)
    one = np.ones((1, n))
    now, now_area, now_bands, _ = (
        cascade.measure(one)[0],
        cascade.measure(one)[1],
        banded.measure(one)[2],
        None,
    )

    def statistic(weights: Floats) -> Floats:
        curves, areas, _, who = cascade.measure(weights)
        bands = banded.measure(weights)[2]
        return np.concatenate([*curves, areas.T, who, bands.reshape(len(weights), -1)], axis=1)

    values = bootstrap(statistic, clusters=a.clusters, draws=draws, seed=seed)
    drawn = np.stack([values[:, :width], values[:, width : 2 * width]])
    at = 2 * width
    areas, who, bands = values[:, at : at + 2], values[:, at + 2 : at + 5], values[:, at + 5 :]
    bands = bands.reshape(len(values), -1, 3)

    def gap(estimate: float, column: Floats) -> Estimate:
        low, high = percentile_limits(column, level=level) or (None, None)
        there = bool(np.isfinite(estimate))
        return Estimate(
            estimate=float(estimate) if there else None, low=low if there else None, high=high if there else None,
            method="paired bootstrap, percentiles",
        )  # fmt: skip

    rare = min(int(truth.sum()), n - int(truth.sum()))
    rests = {"accuracy": a.units, "balanced_accuracy": 2 * rare * a.units / n}

    def value(name: RouteMetric, column: int) -> Estimate:
        i = _METRICS.index(name)
        return interval_of(
            name, float(now[i, 0, column]), drawn[i][:, column], items=rests[name], level=level
        )

    line = now[which, 0, :1] + (now[which, 0, -1:] - now[which, 0, :1]) * SHARES
    lines = drawn[which][:, :1] + (drawn[which][:, -1:] - drawn[which][:, :1]) * SHARES
    over_random, over_b = drawn[which] - lines, drawn[which] - drawn[which][:, -1:]
    ranked = np.sort(sure)
    points = []
    for i, q in enumerate(SHARES):
        points.append(
            CascadePoint(
                share=float(q), confidence=float(ranked[min(n - 1, int(q * n))]),
                accuracy=value("accuracy", i), balanced_accuracy=value("balanced_accuracy", i),
                over_random=gap(now[which, 0, i] - line[i], over_random[:, i]),
                over_b=gap(now[which, 0, i] - now[which, 0, -1], over_b[:, i]),
                cost=None if costs[0] is None else 1_000 * (costs[0] + q * (costs[1] or 0.0)),
                cost_random=None if costs[0] is None else 1_000 * ((1 - q) * costs[0] + q * (costs[1] or 0.0)),
            )
        )  # fmt: skip
    best = _best(cascade, a, which, now[which, 0], drawn[which], rests[metric], level, seed)
    only_a, only_b = int((a_right & ~b_right).sum()), int((b_right & ~a_right).sum())
    ends = [gap(now[i, 0, -1] - now[i, 0, 0], drawn[i][:, -1] - drawn[i][:, 0]) for i in range(len(_METRICS))]
    table = Crosstab(
        both_right=int((a_right & b_right).sum()), only_a=only_a, only_b=only_b,
        both_wrong=int((~a_right & ~b_right).sum()), differ=int((a.predicted != b.predicted).sum()),
        p_value=mcnemar(only_a, only_b), accuracy=ends[0], balanced_accuracy=ends[1],
    )  # fmt: skip
    oracle = oracle_gap(
        truth,
        a_right,
        b_right,
        values=who,
        flip_rate=flip_rate,
        units=a.units,
        level=level,
        draws=draws,
        seed=seed,
    )
    area = {m: gap(now_area[i, 0], areas[:, i]) for i, m in enumerate(_METRICS)}
    found: dict[str, Any] = {
        "a": a.source, "b": b.source, "positive": a.positive, "n": n,
        "clusters": None if a.cluster is None else a.units, "metric": metric,
        "verdict": _verdict(area[metric], only_a + only_b), "crosstab": table, "oracle": oracle, "area": area,
        "best": best, "keeps": _keeps(points, margin), "margin": margin, "cascade": tuple(points),
        "bands": _bands(sure, coarse, flags, now_bands[0], bands, a.units / n, level),
        "ambiguity": None if flags is None else ambiguity(flags, a_right, b_right, better=oracle.better),
        "cost_a": costs[0], "cost_b": costs[1], "level": level, "draws": draws, "seed": seed,
        "notes": tuple(dict.fromkeys((*a.notes, *b.notes, *_remarks(a, b, sure)))),
    }  # fmt: skip
    return Route(sentences=sentences(found), **found)


def _verdict(area: Estimate, one_right: int) -> str:
    if one_right == 0:
        return "same answers"
    if area.low is not None and area.low > 0.0:
        return "better than random"
    return "worse than random" if area.high is not None and area.high < 0.0 else "not told from random"


def _best(
    cascade: Cascade, a: Scores, which: int, now: Floats, drawn: Floats, items: float, level: float, seed: int
) -> BestShare:
    """The best share, cross-fitted: what shares chosen without the items that judge them give there."""
    nothing = Estimate(estimate=None, method="does not exist for these rows")
    if np.isnan(now).all():
        return BestShare(
            share=0.0, apparent=np.nan, optimism=np.nan, corrected=nothing, over_b=nothing, over_a=nothing
        )
    place = int(np.nanargmax(now))
    gains = []
    for train, out in fold_weights(a.clusters, a.truth, seed=seed):
        there, here = cascade.measure(train)[0][which], cascade.measure(out)[0][which]
        picked = np.where(np.isnan(there), -1.0, there).argmax(axis=1)
        gains.append(here[np.arange(len(here)), picked] - here[:, -1])
    known = np.concatenate(gains)
    apparent = float(now[place])
    honest = apparent if np.isnan(known).all() else float(np.nanmean(known) + now[-1])
    picked = np.where(np.isnan(drawn), -1.0, drawn).argmax(axis=1)
    spread = drawn[:, place] + now[picked]

    def over(end: int) -> Estimate:
        gains, gain = spread - drawn[:, end], honest - float(now[end])
        low, high = percentile_limits(gains - np.nanmean(gains) + gain, level=level) or (None, None)
        return Estimate(estimate=gain, low=low, high=high, method="bootstrap around the cross-fitted value")

    return BestShare(
        share=float(SHARES[place]), apparent=apparent, optimism=apparent - honest, over_b=over(-1), over_a=over(0),
        corrected=interval_of(_METRICS[which], honest, spread, items=items, level=level),
    )  # fmt: skip


def _keeps(points: list[CascadePoint], margin: float) -> float | None:
    """The smallest share from which on no limit lies more than the margin below always asking b."""
    kept = None
    for point in reversed(points):
        if point.over_b.low is None or point.over_b.low < -margin:
            break
        kept = point.share
    return kept


def _bands(
    sure: Floats, group: Ints, flags: Bools | None, now: Floats, drawn: Floats, ratio: float, level: float
) -> tuple[Band, ...]:
    out = []
    for k, (a, b, _) in enumerate(now):
        rows = group == k
        size = int(rows.sum())
        a_part, b_part = (
            interval_of("accuracy", float(v), drawn[:, k, i], items=max(1.0, size * ratio), level=level)
            for i, v in enumerate((a, b))
        )
        low, high = percentile_limits(drawn[:, k, 1] - drawn[:, k, 0], level=level) or (None, None)
        gain = Estimate(estimate=float(b - a), low=low, high=high, method="paired bootstrap, percentiles")
        out.append(
            Band(
                low=float(sure[rows].min()), high=float(sure[rows].max()), items=size, a=a_part, b=b_part, gain=gain,
                ambiguous=None if flags is None else float(flags[rows].mean()),
            )
        )  # fmt: skip
    return tuple(out)


def _remarks(a: Scores, b: Scores, sure: Floats) -> list[str]:
    out = [
        f"{int((s.predicted == -1).sum()):,} rows of {s.source} have no answer and count as wrong"
        for s in (a, b) if (s.predicted == -1).any()
    ]  # fmt: skip
    if a.units < FEW_UNITS:
        out.append(
            f"only {a.units} independent {'items' if a.cluster is None else 'clusters'}: intervals are rough"
        )
    distinct = len(np.unique(sure))
    if distinct < min(20, len(a)):
        out.append(f"a has only {distinct} distinct confidences: within one, items are routed at random")
    return out
