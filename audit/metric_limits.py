"""How high other metrics can go against noisy labels: hard bounds, and what a predictor that knows the truth scores.

Binary labels; m is the share of the positive class, d the disagreement, V = m(1 - m) - d/2 the variance of the items'
chance p of a positive label, kappa = V/(m(1 - m)) the retest kappa.

Two kinds of limit. A *hard bound* holds for any predictor whatever, and for items of any noise: only m and d enter.
The *truth-knower* answers with the class that each item's labels would have without the noise, equal flip rate eps
everywhere: pi = (m - eps)/(1 - 2 eps) is the share of positive truths. Its score is what perfection looks like; a
predictor tuned to the metric may exceed it (F1 rewards answering "positive" more often), none exceeds the bound.

Hard bounds, with a the answers and t their positive share. cov(a, y) = cov(a, p) <= sd(a) sd(p), so

    MCC   = cov(a, y)/(sd(a) sd(y))                  <= sqrt(kappa)
    kappa = 2 cov(a, y)/(m(1 - t) + t(1 - m))        <= sqrt(kappa)         (largest at t = m)
    F1    = 2 E[ap]/(t + m), E[ap] <= min(t, m, tm + sqrt(V t(1 - t))), the largest over t
    balanced accuracy = 1/2 + E|p - m|/(4m(1 - m)), E|p - m| <= sqrt(V), and with m the rarer class's share and
        P = V + m^2 > 2m^2 also <= 2m(1 - m^2/P)
    AUC = 1/2 + E|p - p'|/(4m(1 - m)) with p' of another item, E|p - p'| <= 2m(1 - m) - 3d^2/2 and <= 2 sqrt(V/3)
    Brier >= d/2   (E p(1 - p), exact; summed over the classes, for any K: d)
    log-loss >= 2d ln 2 and above (Harremoes & Topsoe, IEEE Trans. Inf. Theory 47 (2001) 2944-2960)

The first bound of the AUC maximises 2 * integral of F(1 - F) over functions F with the integrals that m and d fix: F is
then linear in p. The second is the largest mean difference for a variance. docs/methods.md has the derivations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from audit.errors import ArgumentError
from audit.fliprate import flip_rate, maximum_disagreement
from audit.results import MetricLimit

__all__ = ["METRICS", "bound_metrics", "correct_score", "truth_share"]

#: The metrics, with their names in words.
METRICS = {
    "accuracy": "accuracy",
    "balanced-accuracy": "balanced accuracy",
    "f1": "F1",
    "precision": "precision",
    "recall": "recall",
    "mcc": "MCC",
    "kappa": "Cohen's κ",
    "auc": "AUC",
    "brier": "Brier score",
    "log-loss": "log-loss",
}

_KINDS = {
    "accuracy": "hard upper bound for any predictor, 1 − ε; the truth-knower reaches it at equal noise",
    "balanced-accuracy": "hard upper bound for any predictor; the truth-knower scores less where classes are unequal",
    "f1": "hard upper bound for any predictor; a predictor tuned to F1 may exceed the truth-knower",
    "precision": "no bound below 1 for any predictor: one that answers 'positive' rarely may have any precision",
    "recall": "no bound below 1 for any predictor: always answering 'positive' has recall 1",
    "mcc": "hard upper bound for any predictor, √κ of the repeats",
    "kappa": "hard upper bound for any predictor, √κ of the repeats",
    "auc": "hard upper bound for any predictor; the truth-knower ranks by the truth alone",
    "brier": "hard lower bound for any predictor; reached by one that knows each item's chances",
    "log-loss": "hard lower bound for any predictor; at equal noise one that knows each item's chances scores H(ε)",
}


@dataclass(frozen=True, kw_only=True)
class _Shares:
    """Binary labels in numbers: m, d, and the variance of the items' chances."""

    m: float
    d: float

    @property
    def chance(self) -> float:
        """m(1 - m)."""
        return self.m * (1.0 - self.m)

    @property
    def variance(self) -> float:
        """V = m(1 - m) - d/2, not below 0."""
        return max(0.0, self.chance - self.d / 2.0)


def truth_share(share: float, *, rate: float) -> float:
    """pi = (m - eps)/(1 - 2 eps): the share of positive truths behind a share m of positive labels.

    Outside [0, 1] where the labels cannot come from equal flips of any truth: the caller says so.
    """
    if not 0.0 <= rate < 0.5:
        raise ArgumentError(f"a share of truths needs a flip rate in [0, 0.5), not {rate}")
    return (share - rate) / (1.0 - 2.0 * rate)


def bound_metrics(
    d: float, *, classes: int = 2, share: float | None = None, loosest: float | None = None
) -> tuple[MetricLimit, ...]:
    """The limits of each metric at disagreement ``d``.

    Parameters
    ----------
    d:
        In [0, (K - 1)/K].
    classes:
        K. Above 2 only accuracy, the Brier score (summed over the classes) and the log-loss have limits here.
    share:
        m, the share of the positive class among the labels, in (0, 1); needed for two classes.
    loosest:
        The lower limit of d: ``with_error`` is the hard bound there, as it is loosest where the labels are best.

    Raises
    ------
    ArgumentError
        ``d`` has no flip rate, or the share is not in (0, 1) or too small for d (d <= 2m(1 - m) in any data).
    """
    best = d if loosest is None else min(loosest, d)
    if not 0.0 <= best <= d <= maximum_disagreement(classes) + 1e-12:
        raise ArgumentError(f"a disagreement of {d} has no limits over {classes} classes")
    if classes > 2:
        return tuple(_limit(name, None, d, best, classes) for name in ("accuracy", "brier", "log-loss"))
    if share is None or not 0.0 < share < 1.0:
        raise ArgumentError(
            f"the share of the positive class lies between 0 and 1, not {share}: name it with --share"
        )
    return tuple(_limit(name, share, d, best, 2) for name in METRICS)


def _limit(name: str, share: float | None, d: float, best: float, classes: int) -> MetricLimit:
    lower = name in ("brier", "log-loss")
    if share is None:
        bound, widest = _many(name, d, classes), _many(name, best, classes)
    else:
        bound, widest = _HARD[name](_Shares(m=share, d=d)), _HARD[name](_Shares(m=share, d=best))
    known = _truth_knower(name, share, d, classes)
    return MetricLimit(
        metric=name, name=METRICS[name], bound=bound, with_error=widest, truth_knower=known,
        direction="lower" if lower else "upper", kind=_KINDS[name],
    )  # fmt: skip


def _many(name: str, d: float, classes: int) -> float:
    if name == "accuracy":
        return 1.0 - flip_rate(min(d, maximum_disagreement(classes)), classes=classes)
    return d if name == "brier" else least_entropy(d)


def least_entropy(d: float) -> float:
    """The least mean entropy (nats) of the items' distributions at disagreement d: 2d ln 2 up to d = 1/2, then more.

    Entropy is at least the broken line through (1 - 1/k, ln k), which is convex (Harremoes & Topsoe 2001).
    """
    k = max(1, math.floor(1.0 / max(1.0 - d, 1e-12) + 1e-12))
    return math.log(k) + (d - 1.0 + 1.0 / k) * k * (k + 1) * math.log1p(1.0 / k)


def _accuracy(s: _Shares) -> float:
    return 1.0 - flip_rate(min(s.d, 0.5), classes=2)


def _balanced(s: _Shares) -> float:
    rare = min(s.m, 1.0 - s.m)
    second = s.variance + rare * rare
    spread = math.sqrt(s.variance)
    if second > 2.0 * rare * rare:
        spread = min(spread, 2.0 * rare * (1.0 - rare * rare / second))
    return min(1.0, 0.5 + spread / (4.0 * s.chance))


def _f1(s: _Shares) -> float:
    t = np.linspace(0.0, 1.0, 20_001)[1:]
    both = np.minimum(np.minimum(t, s.m), t * s.m + np.sqrt(s.variance * t * (1.0 - t)))
    return min(1.0, float(np.max(2.0 * both / (t + s.m))))


def _root_kappa(s: _Shares) -> float:
    return math.sqrt(s.variance / s.chance)


def _auc(s: _Shares) -> float:
    mean_difference = min(2.0 * s.chance - 1.5 * s.d * s.d, 2.0 * math.sqrt(s.variance / 3.0))
    return min(1.0, 0.5 + mean_difference / (4.0 * s.chance))


_HARD: dict[str, Callable[[_Shares], float]] = {
    "accuracy": _accuracy,
    "balanced-accuracy": _balanced,
    "f1": _f1,
    "precision": lambda _: 1.0,
    "recall": lambda _: 1.0,
    "mcc": _root_kappa,
    "kappa": _root_kappa,
    "auc": _auc,
    "brier": lambda s: s.d / 2.0,
    "log-loss": lambda s: least_entropy(s.d),
}


def _truth_knower(name: str, share: float | None, d: float, classes: int) -> float | None:
    """The score at equal flip rate; for Brier and log-loss, of the predictor that says eps or 1 - eps."""
    rate = flip_rate(min(d, maximum_disagreement(classes)), classes=classes)
    if name == "accuracy":
        return 1.0 - rate
    if name == "brier":
        return d / 2.0 if classes == 2 else d
    if name == "log-loss":
        return -_plogp(1.0 - rate) - _plogp(rate) + rate * math.log(classes - 1)
    if share is None or rate >= 0.5:
        return None
    pi = truth_share(share, rate=rate)
    if not 0.0 < pi < 1.0:
        return None
    m, flip = share, 1.0 - 2.0 * rate
    recall = pi * (1.0 - rate) / m
    balanced = 0.5 * (recall + (1.0 - pi) * (1.0 - rate) / (1.0 - m))
    covariance = pi * (1.0 - pi) * flip
    return {
        "precision": 1.0 - rate,
        "recall": recall,
        "f1": 2.0 * pi * (1.0 - rate) / (pi + m),
        "balanced-accuracy": balanced,
        "auc": balanced,
        "mcc": covariance / math.sqrt(pi * (1.0 - pi) * m * (1.0 - m)),
        "kappa": 2.0 * covariance / (pi * (1.0 - m) + m * (1.0 - pi)),
    }[name]


def _plogp(p: float) -> float:
    return p * math.log(p) if p > 0.0 else 0.0


def correct_score(
    metric: str, score: float, *, rate: float, share: float, predicted: float | None = None
) -> float | None:
    """The score against the labels without their noise, if answers and noise are independent; binary, equal flips.

    cov(a, y) = (1 - 2 eps) cov(a, truth), so with pi the share of positive truths and t the answers' positive share

        balanced accuracy, AUC: 1/2 + (score - 1/2) m(1 - m)/((1 - 2 eps) pi(1 - pi))
        MCC:       score sqrt(m(1 - m)/(pi(1 - pi)))/(1 - 2 eps)
        precision: (score - eps)/(1 - 2 eps);  accuracy: the same
        recall:    (m score - eps t)/((1 - 2 eps) pi)
        F1:        2(score (t + m)/2 - eps t)/((1 - 2 eps)(t + pi))
        kappa:     score (m(1 - t) + t(1 - m))/((1 - 2 eps)(pi(1 - t) + t(1 - pi)))

    (balanced accuracy and AUC: Menon et al., ICML 2015.) None for recall, F1 and kappa without ``predicted`` (t), for
    Brier and log-loss, and where equal flips cannot give the share. Not clipped: a result above 1 says that the
    condition does not hold.
    """
    pi, flip, m, t = truth_share(share, rate=rate), 1.0 - 2.0 * rate, share, predicted
    if not 0.0 < pi < 1.0:
        return None
    if metric in ("accuracy", "precision"):
        return (score - rate) / flip
    if metric in ("balanced-accuracy", "auc"):
        return 0.5 + (score - 0.5) * m * (1.0 - m) / (flip * pi * (1.0 - pi))
    if metric == "mcc":
        return score * math.sqrt(m * (1.0 - m) / (pi * (1.0 - pi))) / flip
    if t is None:
        return None
    if metric == "recall":
        return (m * score - rate * t) / (flip * pi)
    if metric == "f1":
        return 2.0 * (score * (t + m) / 2.0 - rate * t) / (flip * (t + pi))
    if metric == "kappa":
        return score * (m * (1.0 - t) + t * (1.0 - m)) / (flip * (pi * (1.0 - t) + t * (1.0 - pi)))
    return None
