"""Tests and intervals for runs on the same items: exact sign flips, Holm's step-down, and seeds beside items.

Sources: McNemar, Psychometrika 12 (1947) 153-157 (the exact form: given the items on which two models differ, each is
as likely to favour one as the other; here by class, with the weight that the metric gives it); Edgington & Onghena,
Randomization Tests (2007), ch. 6 (swaps within pairs, for metrics that are no sum); Holm, Scand. J. Stat. 6 (1979)
65-70; Satterthwaite, Biometrics Bulletin 2 (1946) 110-114 (degrees of freedom of a sum of variances).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from audit.errors import ArgumentError
from audit.intervals import holm as adjusted_p
from audit.results import Estimate
from train.draws import bootstrap, check_draws, interval_of, percentile_limits
from train.metrics import DECISION_METRICS, Bools, Counts, Floats, Ints, Ranking, count, decision_metric

__all__ = ["arm_difference", "holm", "run_metrics", "seed_interval", "swap_p_value"]

_BLOCK_CELLS = 4_000_000


def swap_p_value(
    truth: Bools, a: Ints, b: Ints, *, metric: str, draws: int = 2_000, seed: int = 0
) -> tuple[float | None, str]:
    """Two-sided p of the hypothesis that swapping two models' answers on any item changes nothing; and the test's name.

    ``truth`` (n,) and answers (n,): 1, 0, or -1 for none. Exact for accuracy (then it is McNemar's test), balanced
    accuracy, recall and specificity; by ``draws`` random swaps for the other decision metrics. None where the metric
    does not exist.
    """
    if metric not in DECISION_METRICS:
        raise ArgumentError(f"{metric!r} is no metric of decisions: use one of {', '.join(DECISION_METRICS)}")
    positives = int(truth.sum())
    weights = _weights(metric, positives, len(truth) - positives)
    if weights is None:
        return _random_swaps(truth, a, b, metric, draws, seed)
    ours, theirs = a == truth, b == truth
    parts = []
    for members, weight in ((truth, weights[0]), (~truth, weights[1])):
        worse, better = int((members & ours & ~theirs).sum()), int((members & theirs & ~ours).sum())
        if weight:
            parts.append((weight, worse + better, better))
    name = "exact McNemar" if metric == "accuracy" else "exact sign flips by class"
    return _sign_flips(parts), name


def _weights(metric: str, positives: int, negatives: int) -> tuple[float, float] | None:
    """What a positive and a negative item count, for metrics that are sums over items; None for others."""
    if metric == "accuracy":
        return 1.0 / (positives + negatives), 1.0 / (positives + negatives)
    if metric == "balanced_accuracy" and positives and negatives:
        return 0.5 / positives, 0.5 / negatives
    if metric == "recall" and positives:
        return 1.0 / positives, 0.0
    if metric == "specificity" and negatives:
        return 0.0, 1.0 / negatives
    return None


def _sign_flips(parts: Sequence[tuple[float, int, int]]) -> float:
    """P(|sum of w (2 X - m)| >= |sum of w (2 x - m)|) for independent X ~ Bin(m, 1/2); parts are (w, m, x)."""
    first, second = (*parts, (0.0, 0, 0))[:2] if len(parts) == 1 else parts
    observed = abs(sum(w * (2 * x - m) for w, m, x in (first, second)))
    slack = 1e-9 * max(first[0], second[0])
    if observed <= slack:
        return 1.0
    w1, m1, _ = first
    w2, m2, _ = second
    x1 = np.arange(m1 + 1)
    chance, shift = stats.binom.pmf(x1, m1, 0.5), w1 * (2 * x1 - m1)
    if w2 == 0.0 or m2 == 0:
        return min(1.0, float(chance[np.abs(shift) >= observed - slack].sum()))
    above = np.ceil((observed - slack - shift) / (2 * w2) + m2 / 2)
    below = np.floor((slack - observed - shift) / (2 * w2) + m2 / 2)
    tails = stats.binom.sf(above - 1, m2, 0.5) + stats.binom.cdf(below, m2, 0.5)
    return min(1.0, float((chance * tails).sum()))


def _random_swaps(
    truth: Bools, a: Ints, b: Ints, metric: str, draws: int, seed: int
) -> tuple[float | None, str]:
    check_draws(draws)
    rng = np.random.default_rng(seed)
    ones = np.ones((1, len(truth)))
    (observed,) = decision_metric(metric, count(truth, b, ones)) - decision_metric(
        metric, count(truth, a, ones)
    )
    if not math.isfinite(observed):
        return None, f"none: {metric} does not exist for one of them"
    reached = valid = 0
    block = max(1, _BLOCK_CELLS // len(truth))
    for start in range(0, draws, block):
        swap = (rng.random((min(block, draws - start), len(truth))) < 0.5).astype(np.float64)
        kept = 1.0 - swap
        change = decision_metric(
            metric, _added(count(truth, b, kept), count(truth, a, swap))
        ) - decision_metric(metric, _added(count(truth, a, kept), count(truth, b, swap)))
        there = np.isfinite(change)
        reached += int((np.abs(change[there]) >= abs(observed) - 1e-12).sum())
        valid += int(there.sum())
    return (reached + 1) / (valid + 1), f"{draws:,} random swaps"


def _added(a: Counts, b: Counts) -> Counts:
    return Counts(
        tp=a.tp + b.tp, fp=a.fp + b.fp, tn=a.tn + b.tn, fn=a.fn + b.fn, positives=a.positives + b.positives,
        negatives=a.negatives + b.negatives,
    )  # fmt: skip


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p values, in the order given; None stays None and does not count for the family."""
    adjusted = iter(adjusted_p([p for p in p_values if p is not None]))
    return [None if p is None else next(adjusted) for p in p_values]


def seed_interval(values: Sequence[float], *, level: float) -> tuple[float, float | None, Estimate]:
    """Mean, standard deviation and Student's interval of the mean over seeds; without the last two for one seed."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, None, Estimate(estimate=mean, method="one seed: no spread is known")
    sd = float(np.std(values, ddof=1))
    half = float(stats.t.ppf(0.5 + level / 2.0, len(values) - 1)) * sd / math.sqrt(len(values))
    return (
        mean,
        sd,
        Estimate(estimate=mean, low=mean - half, high=mean + half, method="Student's t over seeds"),
    )


def run_metrics(
    truth: Bools, predicted: Ints, scores: Floats | None, *, level: float, draws: int, seed: int
) -> dict[str, Estimate]:
    """Accuracy, balanced accuracy, F1 and (with scores) AUC of one run, with bootstrap intervals over items."""
    names = ["accuracy", "balanced_accuracy", "f1", *(["auc"] if scores is not None else [])]
    ranking = None if scores is None else Ranking(truth, scores)

    def measure(weights: Floats) -> Floats:
        counts = count(truth, predicted, weights)
        columns = [decision_metric(name, counts) for name in names if name != "auc"]
        if ranking is not None:
            columns.append(Ranking.measure("auc", *ranking.points(weights)))
        return np.stack(columns, axis=1)

    n, positives = len(truth), int(truth.sum())
    rare, called = min(positives, n - positives), int((predicted == 1).sum())
    rests = {"accuracy": n, "balanced_accuracy": 2 * rare, "f1": (positives + called) / 2, "auc": rare}
    (now,) = measure(np.ones((1, n)))
    values = bootstrap(measure, clusters=np.arange(n), draws=draws, seed=seed)
    return {
        name: interval_of(name, float(now[at]), values[:, at], items=rests[name], level=level)
        for at, name in enumerate(names)
    }


def arm_difference(
    truth: Bools,
    a: Sequence[Ints],
    b: Sequence[Ints],
    *,
    metric: str,
    same_seeds: bool,
    level: float,
    draws: int,
    seed: int,
) -> tuple[Estimate, float | None]:
    """Mean of b's runs less mean of a's in one metric, with an interval over seeds and items, and its p value.

    ``a`` and ``b`` hold the answers (n,) of each seed, one of them at least two; in the order of the same seeds if
    ``same_seeds``. The variance is that of the mean over seeds (an arm of one seed adds none, as its spread is not
    known) plus that over items (bootstrap of all runs together); the degrees of freedom are Satterthwaite's, infinite
    for the items. Few seeds know their spread badly, so the interval is wide.
    """
    runs = [*a, *b]

    def measure(weights: Floats) -> Floats:
        return np.stack([decision_metric(metric, count(truth, r, weights)) for r in runs], axis=1)

    (now,) = measure(np.ones((1, len(truth))))
    ours, theirs = now[: len(a)], now[len(a) :]
    if not np.isfinite(now).all():
        return Estimate(estimate=None, method=f"{metric} does not exist for one of the runs"), None
    values = bootstrap(measure, clusters=np.arange(len(truth)), draws=draws, seed=seed)
    gaps = values[:, len(a) :].mean(axis=1) - values[:, : len(a)].mean(axis=1)
    if percentile_limits(gaps, level=level) is None:
        return Estimate(estimate=float(theirs.mean() - ours.mean()), method="no interval"), None
    items = float(np.nanvar(gaps, ddof=1))
    if same_seeds:
        spreads = [(float(np.var(theirs - ours, ddof=1)) / len(a), len(a) - 1)]
    else:
        several = [part for part in (ours, theirs) if len(part) > 1]
        spreads = [(float(np.var(part, ddof=1)) / len(part), len(part) - 1) for part in several]
    total = items + sum(v for v, _ in spreads)
    gap = float(theirs.mean() - ours.mean())
    bottom = sum(v**2 / df for v, df in spreads)
    df = total**2 / bottom if bottom > 0.0 else math.inf
    if total <= 0.0:
        return Estimate(estimate=gap, method="no interval: nothing varies"), None
    error = math.sqrt(total)
    half = float(stats.t.ppf(0.5 + level / 2.0, df)) * error
    p = float(2.0 * stats.t.sf(abs(gap) / error, df))
    return Estimate(estimate=gap, low=gap - half, high=gap + half, method="t over seeds and items"), p
