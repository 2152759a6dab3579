"""Metrics of binary decisions and scores, over many thresholds and many bootstrap weights at once.

Everything is computed from weighted counts, so that one pass over the rows serves all draws of a bootstrap. A
prediction may be missing ("no answer"): it is then neither positive nor negative, and wrong. A metric that does not
exist (precision without a predicted positive, recall without a positive) is NaN in arrays and ``None`` in
dictionaries, never 0; MCC of decisions that are all alike is 0, as they tell nothing about the label.

Sources: Matthews, Biochim. Biophys. Acta 405 (1975) 442-451 and, with missing answers as a third class, Gorodkin,
Comput. Biol. Chem. 28 (2004) 367-374 (MCC); Bamber, J. Math. Psychol. 12 (1975) 387-415 (AUC, ties count half);
Bonett & Price, J. Educ. Behav. Stat. 37 (2012) 479-488 (one more item of
each kind in a paired difference).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from audit.errors import ArgumentError
from audit.intervals import check_level
from audit.results import Estimate, Result
from train.draws import bootstrap, percentile_limits

__all__ = [
    "DECISION_METRICS",
    "RANKING_METRICS",
    "Counts",
    "PairedDifference",
    "Ranking",
    "binary_metrics",
    "count",
    "decision_metric",
    "paired_difference",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Metrics of hard decisions.
DECISION_METRICS = ("accuracy", "balanced_accuracy", "precision", "recall", "specificity", "f1", "mcc")
#: Metrics of the order of the scores.
RANKING_METRICS = ("auc", "average_precision")


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Weighted counts of decisions, arrays of one shape: right and wrong positives and negatives.

    ``positives`` and ``negatives`` count the labels; ``positives - tp - fn`` of them have no answer.
    """

    tp: Floats
    fp: Floats
    tn: Floats
    fn: Floats
    positives: Floats
    negatives: Floats


def count(truth: Bools, predicted: Ints, weights: Floats) -> Counts:
    """Counts for each row of ``weights`` (B, n); ``predicted`` (n,) is 1, 0, or -1 for no answer."""
    yes, no = predicted == 1, predicted == 0
    columns = np.stack([truth & yes, ~truth & yes, ~truth & no, truth & no, truth, ~truth], axis=1)
    tp, fp, tn, fn, positives, negatives = (weights @ columns.astype(np.float64)).T
    return Counts(tp=tp, fp=fp, tn=tn, fn=fn, positives=positives, negatives=negatives)


def decision_metric(name: str, c: Counts) -> Floats:
    """One of :data:`DECISION_METRICS`, elementwise; NaN where it does not exist."""
    with np.errstate(divide="ignore", invalid="ignore"):
        match name:
            case "accuracy":
                found = (c.tp + c.tn) / (c.positives + c.negatives)
            case "balanced_accuracy":
                found = (c.tp / c.positives + c.tn / c.negatives) / 2.0
            case "precision":
                found = c.tp / (c.tp + c.fp)
            case "recall":
                found = c.tp / c.positives
            case "specificity":
                found = c.tn / c.negatives
            case "f1":
                found = 2.0 * c.tp / (c.positives + c.tp + c.fp)
            case "mcc":
                found = _mcc(c)
            case _:
                raise ArgumentError(
                    f"{name!r} is no metric of decisions: use one of {', '.join(DECISION_METRICS)}"
                )
    return np.asarray(found, np.float64)


def _mcc(c: Counts) -> Floats:
    """Gorodkin's R_K; missing answers are a third predicted class. 0 where the predictions are all alike."""
    n = c.positives + c.negatives
    yes, no = c.tp + c.fp, c.tn + c.fn
    cov = n * (c.tp + c.tn) - c.positives * yes - c.negatives * no
    labels = n**2 - c.positives**2 - c.negatives**2
    answers = n**2 - yes**2 - no**2 - (n - yes - no) ** 2
    found = np.where(answers > 0, cov / np.sqrt(np.where(answers > 0, answers, 1.0) * labels), 0.0 * answers)
    return np.where(labels > 0, found, np.nan)


class Ranking:
    """Rows ordered by score, from the highest; equal scores stay together.

    ``thresholds`` (G,) are the distinct scores from the highest. Operating point g = 1..G predicts positive at
    ``score >= thresholds[g - 1]``; point 0 predicts no positive at all.
    """

    def __init__(self, truth: Bools, scores: Floats) -> None:
        if truth.shape != scores.shape or not len(scores):
            raise ArgumentError("labels and scores must be as many, and at least one")
        if np.isnan(scores).any():
            raise ArgumentError("a score is missing (NaN): leave out or score the rows without one")
        order = np.argsort(-scores, kind="stable")
        ranked = scores[order]
        ends = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(ranked) - 1)
        self.thresholds: Floats = ranked[ends]
        self._truth = truth[order]
        # rows that come in order, and scores that are all different, need no copy in each block of draws
        self._order = None if (order == np.arange(len(order))).all() else order
        self._ends = None if len(ends) == len(order) else ends

    def points(self, weights: Floats) -> tuple[Floats, Floats]:
        """(tp, fp) at points 0..G, each of shape (B, G + 1), for weights (B, n)."""
        ranked = weights if self._order is None else np.take(weights, self._order, axis=1)
        positive = np.zeros((len(ranked), len(self.thresholds) + 1))
        called = np.zeros_like(positive)
        for part, out in ((ranked * self._truth, positive), (ranked, called)):
            if self._ends is None:
                np.cumsum(part, axis=1, out=out[:, 1:])
            else:
                out[:, 1:] = np.cumsum(part, axis=1)[:, self._ends]
        called -= positive
        return positive, called

    @staticmethod
    def counts(tp: Floats, fp: Floats) -> Counts:
        """The counts of all points, from :meth:`points`."""
        positives, negatives = tp[:, -1:], fp[:, -1:]
        return Counts(
            tp=tp, fp=fp, tn=negatives - fp, fn=positives - tp, positives=positives, negatives=negatives
        )

    @staticmethod
    def measure(name: str, tp: Floats, fp: Floats) -> Floats:
        """One of :data:`RANKING_METRICS` from the points, shape (B,); NaN without both classes.

        AUC is the share of (positive, negative) pairs in the right order, ties half. Average precision is
        Σ (R_g - R_{g-1}) P_g, without interpolation.
        """
        positives, negatives = tp[:, -1], fp[:, -1]
        with np.errstate(divide="ignore", invalid="ignore"):
            if name == "auc":
                area = np.einsum("bg,bg->b", np.diff(fp, axis=1), tp[:, 1:] + tp[:, :-1]) / 2.0
                return np.asarray(area / (positives * negatives), np.float64)
            if name == "average_precision":
                precision = np.nan_to_num(tp[:, 1:] / (tp[:, 1:] + fp[:, 1:]))
                found = np.einsum("bg,bg->b", np.diff(tp, axis=1), precision) / positives
                return np.where(negatives > 0, found, np.nan)
        raise ArgumentError(f"{name!r} is no metric of scores: use one of {', '.join(RANKING_METRICS)}")


# --- for one model, and for two on the same rows ----------------------------------------------------------------


def binary_metrics(
    labels: Sequence[Any],
    predictions: Sequence[Any],
    scores: Sequence[float | None] | Floats | None = None,
    *,
    positive: str,
) -> dict[str, float | None]:
    """All metrics of one model on its rows, with ``n`` and ``positives``; ``None`` where one does not exist.

    Parameters
    ----------
    labels, predictions:
        As many of each; a prediction of ``None`` (or NaN) is no answer, and wrong. What is not ``positive`` is
        negative.
    scores:
        P(positive) of each row. Rows without a score (None, NaN) are left out of AUC and average precision;
        ``scored`` counts the others.
    """
    truth, predicted = _truth(labels, positive), _decisions(predictions, positive)
    if len(truth) != len(predicted):
        raise ArgumentError(f"{len(truth)} labels do not fit {len(predicted)} predictions")
    one = count(truth, predicted, np.ones((1, len(truth))))
    out: dict[str, float | None] = {"n": len(truth), "positives": int(truth.sum())}
    out |= {name: _number(decision_metric(name, one)) for name in DECISION_METRICS}
    out |= dict.fromkeys(RANKING_METRICS)
    if scores is not None:
        values = np.array(pd.to_numeric(pd.Series(list(scores), dtype=object)), np.float64)
        if len(values) != len(truth):
            raise ArgumentError(f"{len(truth)} labels do not fit {len(values)} scores")
        there = ~np.isnan(values)
        out["scored"] = int(there.sum())
        if there.any():
            tp, fp = Ranking(truth[there], values[there]).points(np.ones((1, int(there.sum()))))
            out |= {name: _number(Ranking.measure(name, tp, fp)) for name in RANKING_METRICS}
    return out


@dataclass(frozen=True, kw_only=True)
class PairedDifference(Result):
    """A metric of two models on the same rows, and b less a with its interval."""

    metric: str
    n: int
    a: float | None
    b: float | None
    difference: Estimate
    level: float
    draws: int
    seed: int

    def summary(self) -> str:
        """The difference in words."""
        if self.difference.estimate is None:
            return f"{self.metric}: no difference can be given on these {self.n:,} rows"
        limits = (
            "no interval"
            if self.difference.low is None
            else f"{self.level:.0%} interval {self.difference.low:+.4f} to {self.difference.high:+.4f}"
        )
        return f"{self.metric}: {self.a:.4f} and {self.b:.4f}, difference {self.difference.estimate:+.4f}, {limits}"


def paired_difference(
    labels: Sequence[Any],
    a: Sequence[Any],
    b: Sequence[Any],
    *,
    positive: str,
    metric: str = "balanced_accuracy",
    level: float = 0.95,
    draws: int = 2_000,
    seed: int = 0,
    clusters: Sequence[Any] | None = None,
) -> PairedDifference:
    """b less a in one metric, on the same rows, by a paired bootstrap of rows (or of ``clusters`` of rows).

    ``a`` and ``b`` are predictions for :data:`DECISION_METRICS` and scores for :data:`RANKING_METRICS`. For decisions
    each class gains a row that only a has right and one that only b has right (Bonett & Price), so that models which
    never differ on a few rows are not taken to be equal for certain.
    """
    check_level(level)
    truth = _truth(labels, positive)
    n = len(truth)
    if len(a) != n or len(b) != n or n == 0:
        raise ArgumentError(f"{n} labels need as many answers of each model, not {len(a)} and {len(b)}")
    groups = (
        np.arange(n)
        if clusters is None
        else np.unique(np.array([str(c) for c in clusters]), return_inverse=True)[1]
    )
    if clusters is not None and len(groups) != n:
        raise ArgumentError(f"{n} labels do not fit {len(groups)} cluster values")
    if metric in RANKING_METRICS:
        ranked = [Ranking(truth, np.array(s, np.float64)) for s in (a, b)]

        def measure(weights: Floats) -> Floats:
            return np.stack([Ranking.measure(metric, *r.points(weights)) for r in ranked], axis=1)

        more = 0
    else:
        truth = np.concatenate([truth, [True, True, False, False]])
        decided = [
            np.concatenate([_decisions(a, positive), [1, 0, 0, 1]]),
            np.concatenate([_decisions(b, positive), [0, 1, 1, 0]]),
        ]

        def measure(weights: Floats) -> Floats:
            return np.stack([decision_metric(metric, count(truth, d, weights)) for d in decided], axis=1)

        more = 4
    rows = np.concatenate([np.ones(n), np.zeros(more)])[None]
    first, second = measure(rows)[0]
    groups = np.concatenate([groups, groups.max() + 1 + np.arange(more)])
    values = bootstrap(measure, clusters=groups, draws=draws, seed=seed)
    limits = percentile_limits(values[:, 1] - values[:, 0], level=level)
    gap = _number(np.array([second - first]))
    low, high = limits if limits and gap is not None else (None, None)
    return PairedDifference(
        metric=metric, n=n, a=_number(np.array([first])), b=_number(np.array([second])),
        difference=Estimate(estimate=gap, low=low, high=high, method="paired bootstrap, percentiles"),
        level=level, draws=draws, seed=seed,
    )  # fmt: skip


def _truth(labels: Sequence[Any], positive: str) -> Bools:
    return np.array([str(label) == positive for label in labels], np.bool_)


def _decisions(predictions: Sequence[Any], positive: str) -> Ints:
    """1 positive, 0 another answer, -1 none (None or NaN)."""
    missing = np.asarray(pd.isna(np.array(list(predictions), object)), np.bool_)
    given = [int(str(p) == positive) for p in predictions]
    return np.where(missing, -1, np.array(given, np.int64))


def _number(value: Floats) -> float | None:
    return float(value[0]) if np.isfinite(value[0]) else None
