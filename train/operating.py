"""Operating points of a scoring model: curves, a sweep of thresholds, the best one, and one that matches another run.

One bootstrap serves everything. Rows (or clusters) are drawn without regard to their label: the share of positives is
as much a draw as the rest, and accuracy, precision and F1 depend on it; ``stratified`` keeps it fixed, for test sets
that were built with so many of each class. A threshold chosen on the rows that judge it looks better than it is; what
it will give on new rows is estimated by cross-fitting (Stone, J. R. Stat. Soc. B 36 (1974) 111-147): the threshold is
chosen on nine tenths of the rows and judged on the tenth, over all tenths and twenty divisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from audit.errors import ArgumentError, InputError
from audit.intervals import check_level
from audit.results import Estimate
from train.draws import FEW_UNITS, bootstrap, fold_weights, interval_of, percentile_limits
from train.metrics import DECISION_METRICS, RANKING_METRICS, Floats, Ints, Ranking, count, decision_metric
from train.operating_match import MatchOn, match_run
from train.operating_results import BestThreshold, Curve, OperatingPoint, Point
from train.scores import Columns, Scores, check_clusters, read_scores, scored_rows
from train.scores_pairs import pair

__all__ = ["operating_point"]

#: Points of the grids of the curves, and of the sweep.
_GRID, _SWEEP = 51, 19


def operating_point(
    scores: Any,
    *,
    against: Any = None,
    match: MatchOn = "recall",
    margin: float = 0.002,
    choose_on: Any = None,
    choose_split: str | None = None,
    positive: str | None = None,
    split: str | None = None,
    cluster: str | None = None,
    stratified: bool = False,
    columns: Columns | None = None,
    common: bool = False,
    drop_unscored: bool = False,
    level: float = 0.95,
    draws: int = 2_000,
    seed: int = 0,
) -> OperatingPoint:
    """Measure the thresholds of a score file, and set another run's decisions against them.

    Parameters
    ----------
    scores, against, choose_on:
        Score files, run folders or data frames (:func:`train.scores.read_scores`): the rows to judge; another run's
        decisions on the same rows; other rows of the same model to choose the best threshold on (of ``choose_split``).
    match, margin:
        What the threshold matches of the other run, and the difference that does not matter.
    cluster, stratified:
        Draw rows of one cluster together; keep the number of rows (or clusters) of each class.
    common, drop_unscored:
        Leave out items that only one file has; leave out rows without a score.

    Raises
    ------
    InputError
        A file cannot be used, the two do not pair, or all labels are of one class.
    ArgumentError
        An option is out of its range, or a cluster holds both classes and ``stratified`` is set.
    """
    check_level(level)
    if choose_split is not None and choose_on is None:
        raise ArgumentError("--choose-split names a split of --choose-on: give that too, or leave both out")
    reading: dict[str, Any] = {"split": split, "columns": columns}
    ours = read_scores(scores, positive=positive, cluster=cluster, **reading)
    other = None
    if against is not None:
        ours, other = pair(
            ours, read_scores(against, positive=ours.positive, first=False, **reading), common=common
        )
    check_clusters(ours)
    everything, ours = ours, scored_rows(ours, drop=drop_unscored)
    if other is not None:
        other = other.take(np.flatnonzero(~np.isnan(everything.scores)))
    _check_classes(ours)
    order = np.argsort(-ours.scores, kind="stable")  # rows in order of score are counted fastest
    ours, other = ours.take(order), None if other is None else other.take(order)
    strata = _strata(ours) if stratified else None
    chosen = None
    if choose_on is not None:
        chosen = read_scores(
            choose_on,
            positive=ours.positive,
            columns=columns,
            split=choose_split,
            need_scores=True,
            first=False,
        )
        _check_classes(chosen)
    how: dict[str, Any] = {"level": level, "draws": draws, "seed": seed}
    parts = _measured(ours, chosen, strata, **how)
    ranking: dict[str, Estimate] = {}
    notes = list(ours.notes if other is None else (*ours.notes, *other.notes))
    if other is not None and other.scored:
        ranking = _ranking_differences(ours, other, strata, **how)
    elif other is not None and not np.isnan(other.scores).all():
        notes.append(
            f"AUC is not compared: {int(np.isnan(other.scores).sum()):,} rows of {other.source} have no score"
        )
    if ours.units < FEW_UNITS:
        notes.append(
            f"only {ours.units} independent {'rows' if cluster is None else 'clusters'}: intervals are rough"
        )
    auc = parts["auc"].high
    if auc is not None and auc < 0.5:
        notes.append(
            f"the scores rank the classes the wrong way round: are they the probability of {ours.positive!r}? "
            "--positive names the class that they are of"
        )
    if len(np.unique(ours.scores)) == 1:
        notes.append("all scores are equal: there is no threshold to choose")
    elif len(np.unique(ours.scores)) < min(20, len(ours)):
        notes.append(f"only {len(np.unique(ours.scores))} distinct scores: few operating points exist")
    if chosen is not None and set(chosen.items) & set(ours.items):
        notes.append(
            f"{len(set(chosen.items) & set(ours.items)):,} items to choose on are judged too: the value is too good"
        )
    return OperatingPoint(
        source=ours.source, positive=ours.positive, n=len(ours), positives=int(ours.truth.sum()),
        clusters=None if cluster is None else ours.units,
        against=None if other is None else match_run(
            ours, other, on=match, margin=margin, strata=strata is not None, **how
        ),
        ranking=ranking, stratified=stratified, notes=tuple(dict.fromkeys(notes)), **how, **parts,
    )  # fmt: skip


def _check_classes(scores: Scores) -> None:
    if scores.truth.all() or not scores.truth.any():
        raise InputError(
            f"{scores.source}: all {len(scores):,} labels are of one class (positive is {scores.positive!r}): a "
            "threshold needs rows of both"
        )


def _strata(scores: Scores) -> Ints:
    shares = np.bincount(scores.clusters, weights=scores.truth) / np.bincount(scores.clusters)
    if ((shares > 0) & (shares < 1)).any():
        raise ArgumentError(
            "--stratified needs clusters of one class each: leave it out, rows are then drawn as they are"
        )
    return scores.truth.astype(np.int64)


def _measured(
    ours: Scores, chosen: Scores | None, strata: Ints | None, *, level: float, draws: int, seed: int
) -> Mapping[str, Any]:
    """Everything of one model: the fields of the result."""
    ranking, n = Ranking(ours.truth, ours.scores), len(ours)
    one = np.ones((1, n))
    tp, fp = ranking.points(one)
    balanced = decision_metric("balanced_accuracy", ranking.counts(tp, fp))[0]
    if chosen is None:
        best = int(balanced.argmax())
    else:
        there = Ranking(chosen.truth, chosen.scores)
        value = decision_metric("balanced_accuracy", there.counts(*there.points(np.ones((1, len(chosen))))))[
            0
        ]
        place = int(value.argmax())
        cut = there.thresholds[place - 1] if place else np.inf
        best = int((ranking.thresholds >= cut).sum())
    places = [best, *_sweep(tp[0] + fp[0], n)]
    grid = np.linspace(0.0, 1.0, _GRID)

    def statistic(weights: Floats) -> Floats:
        a, b = ranking.points(weights)
        all_points = ranking.counts(a, b)
        some = ranking.counts(a[:, [*places, -1]], b[:, [*places, -1]])
        columns = [Ranking.measure(m, a, b)[:, None] for m in RANKING_METRICS]
        own = count(ours.truth, ours.predicted, weights)
        columns += [decision_metric(m, own)[:, None] for m in DECISION_METRICS]
        columns += [decision_metric(m, some)[:, :-1] for m in DECISION_METRICS]
        drawn = decision_metric("balanced_accuracy", all_points)
        # a draw without one class has no best threshold
        picked = np.where(np.isnan(drawn), -1.0, drawn).argmax(axis=1)
        columns += [balanced[picked][:, None]]
        return np.concatenate([*columns, *_curves(a, b, grid)], axis=1)

    values = bootstrap(statistic, clusters=ours.clusters, strata=strata, draws=draws, seed=seed)
    (now,) = statistic(one)
    ratio = ours.units / n
    positives = int(ours.truth.sum())

    def estimate(name: str, at: int, called: float) -> Estimate:
        rare = min(positives, n - positives)
        rests = {
            "accuracy": n, "mcc": n, "recall": positives, "specificity": n - positives, "precision": called,
            "balanced_accuracy": 2 * rare, "f1": (positives + called) / 2, "auc": rare, "average_precision": positives,
        }  # fmt: skip
        items = rests[name] if rests[name] < 1 else max(1.0, rests[name] * ratio)
        return interval_of(name, float(now[at]), values[:, at], items=items, level=level)

    k, s = len(DECISION_METRICS), len(places)
    called = int((ours.predicted == 1).sum())
    own = Point(
        name="predictions" if ours.answered else "score >= 0.5", threshold=None if ours.answered else 0.5,
        share=called / n, metrics={m: estimate(m, 2 + i, called) for i, m in enumerate(DECISION_METRICS)},
    )  # fmt: skip
    points = []
    for j, place in enumerate(places):
        called = int(tp[0, place] + fp[0, place])
        points.append(
            Point(
                name="sweep" if j else "best", threshold=float(ranking.thresholds[place - 1]) if place else None,
                share=called / n,
                metrics={m: estimate(m, 2 + k + i * s + j, called) for i, m in enumerate(DECISION_METRICS)},
            )
        )  # fmt: skip
    at = 2 + k + k * s
    apparent, corrected = float(balanced[best]), points[0].metrics["balanced_accuracy"]
    honest = apparent
    if chosen is None:
        honest = _cross_fitted(ranking, ours, seed)
        # the draws of this threshold, and how far the choice itself wanders
        spread = values[:, 2 + k + DECISION_METRICS.index("balanced_accuracy") * s] + values[:, at]
        items = max(1.0, 2 * min(positives, n - positives) * ratio)
        corrected = interval_of("balanced_accuracy", honest, spread, items=items, level=level)
    curves = [
        _curve(grid, now[start : start + _GRID], values[:, start : start + _GRID], level)
        for start in (at + 1, at + 1 + _GRID)
    ]
    return {
        "auc": estimate("auc", 0, 0), "average_precision": estimate("average_precision", 1, 0), "own": own,
        "best": BestThreshold(
            threshold=points[0].threshold, chosen_on="these rows" if chosen is None else chosen.source,
            apparent=apparent, optimism=apparent - honest, corrected=corrected, point=points[0],
        ),
        "sweep": tuple(points[1:]), "roc": curves[0], "precision_recall": curves[1],
    }  # fmt: skip


def _cross_fitted(ranking: Ranking, rows: Scores, seed: int) -> float:
    """Balanced accuracy of thresholds that were chosen without the rows which judge them."""
    found = []
    for train, out in fold_weights(rows.clusters, rows.truth, seed=seed):
        value = decision_metric("balanced_accuracy", ranking.counts(*ranking.points(train)))
        place = np.where(np.isnan(value), -1.0, value).argmax(axis=1)
        tp, fp = ranking.points(out)
        at = np.arange(len(out))
        recall = tp[at, place].sum() / tp[:, -1].sum()
        found.append((recall + 1.0 - fp[at, place].sum() / fp[:, -1].sum()) / 2.0)
    return float(np.mean(found))


def _sweep(called: Floats, n: int) -> list[int]:
    """Points whose shares of positives are nearest to a grid, each once; neither none nor all of the rows."""
    wanted = np.linspace(0.0, 1.0, _SWEEP + 2)[1:-1] * n
    places = np.abs(called[None, :] - wanted[:, None]).argmin(axis=1)
    return [int(p) for p in np.unique(places) if 0 < called[p] < n]


def _curves(tp: Floats, fp: Floats, grid: Floats) -> tuple[Floats, Floats]:
    """Recall at each 1 - specificity of the grid, and precision at each recall, for every draw."""
    roc, pr = np.empty((len(tp), len(grid))), np.empty((len(tp), len(grid)))
    with np.errstate(invalid="ignore", divide="ignore"):
        for i, (a, b) in enumerate(zip(tp, fp, strict=True)):
            roc[i] = np.interp(grid * b[-1], b, a) / a[-1]
            wanted = grid * a[-1]
            pr[i] = wanted / (wanted + np.interp(wanted, a, b))
    return roc, pr


def _curve(grid: Floats, now: Floats, values: Floats, level: float) -> Curve:
    limits = [percentile_limits(column, level=level) for column in values.T]
    return Curve(
        x=tuple(map(float, grid)),
        y=tuple(float(v) if np.isfinite(v) else None for v in now),
        low=tuple(pair[0] if pair else None for pair in limits),
        high=tuple(pair[1] if pair else None for pair in limits),
    )


def _ranking_differences(
    ours: Scores, other: Scores, strata: Ints | None, *, level: float, draws: int, seed: int
) -> dict[str, Estimate]:
    """AUC and average precision of the other run less ours, paired."""
    ranked = [Ranking(ours.truth, s.scores) for s in (ours, other)]

    def gaps(weights: Floats) -> Floats:
        first, second = (r.points(weights) for r in ranked)
        return np.stack(
            [Ranking.measure(m, *second) - Ranking.measure(m, *first) for m in RANKING_METRICS], axis=1
        )

    (now,) = gaps(np.ones((1, len(ours))))
    values = bootstrap(gaps, clusters=ours.clusters, strata=strata, draws=draws, seed=seed)
    out = {}
    for m, gap, column in zip(RANKING_METRICS, now, values.T, strict=True):
        low, high = percentile_limits(column, level=level) or (None, None)
        out[m] = Estimate(estimate=float(gap), low=low, high=high, method="paired bootstrap, percentiles")
    return out
