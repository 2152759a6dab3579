"""What choosing the best of several noisy scores costs, and intervals of differences of scores.

Sources: the expected largest of k normal variables, E[Z_(k)] = integral of z d(Phi(z)^k) (Harter, Biometrika 48
(1961) 151-165); for equally correlated ones it shrinks by sqrt(1 - rho) (Owen & Steck, Ann. Math. Stat. 33 (1962)
1286-1291). Intervals of sums of independent proportions from their single limits: Zou & Donner, Stat. Med. 27
(2008) 1693-1702; for two proportions with Wilson's limits this is Newcombe, Stat. Med. 17 (1998) 873-890, method 10.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, special

from audit.errors import ArgumentError
from audit.intervals import wilson
from audit.results import Estimate

__all__ = [
    "Share",
    "expected_maximum",
    "mean_correlation",
    "score_interval",
    "selection_gain",
    "share_terms",
    "variance_of",
]

#: A coefficient, and the successes and trials of a proportion that it multiplies.
Share = tuple[float, float, float]


def expected_maximum(k: int) -> float:
    """E[max] of k independent standard normal variables: 0 for one, 0.5642 for two, 1.5388 for ten."""
    if k < 1:
        raise ArgumentError(f"a largest value needs at least one, not {k}")
    # E[max] = integral over z > 0 of 1 - Phi(z)^k, less that over z < 0 of Phi(z)^k
    above, _ = integrate.quad(lambda z: -math.expm1(k * special.log_ndtr(z)), 0.0, 40.0, limit=200)
    below, _ = integrate.quad(lambda z: math.exp(k * special.log_ndtr(z)), -40.0, 0.0, limit=200)
    return float(above - below)


def selection_gain(k: int, *, variance: float, correlation: float = 0.0) -> float:
    """How much the best of k scores of equally good models exceeds what it is worth, on average.

    ``variance`` is that of one score over samples of items, ``correlation`` that between two models' scores on the
    same items. Models of unequal worth gain less: the noise of the chosen one is never above the largest noise.
    """
    if variance < 0.0 or not 0.0 <= correlation <= 1.0:
        raise ArgumentError(
            f"a variance of {variance} and a correlation of {correlation} do not go together: "
            "the first is 0 or more, the second between 0 and 1"
        )
    return math.sqrt(variance * (1.0 - correlation)) * expected_maximum(k)


def mean_correlation(rights: Sequence[NDArray[np.bool_]]) -> float | None:
    """Mean correlation, over pairs of models, of being right on an item; shape of each (n,).

    Models that are right on all items or on none say nothing and are left out; None for fewer than two others. The
    result is held in [0, 1].
    """
    varied = [r.astype(np.float64) for r in rights if 0 < r.sum() < len(r)]
    if len(varied) < 2:
        return None
    standard = np.stack([(v - v.mean()) / v.std() for v in varied])
    k, n = standard.shape
    # the sum over pairs from the sum of all: |sum of rows|^2 = k n + 2 n (sum of the pairs' correlations)
    total = float((standard.sum(axis=0) ** 2).sum())
    return float(min(max((total / n - k) / (k * (k - 1)), 0.0), 1.0))


def share_terms(
    metric: str, metrics: Mapping[str, float | None], rows: int | None
) -> tuple[Share, ...] | None:
    """A score as a sum of independent proportions, with the counts behind them; None where the ledger lacks them.

    Accuracy is one proportion of ``rows``; balanced accuracy half of recall and half of specificity, of ``positives``
    and the other rows.
    """
    if metric == "accuracy":
        value, n = metrics.get("accuracy"), metrics.get("n") or rows
        return None if not _is_share(value) or not n else ((1.0, value * n, float(n)),)
    if metric == "balanced_accuracy":
        recall, specificity = metrics.get("recall"), metrics.get("specificity")
        n, positives = metrics.get("n") or rows, metrics.get("positives")
        if not _is_share(recall) or not _is_share(specificity) or not n or not positives or positives >= n:
            return None
        return (0.5, recall * positives, positives), (0.5, specificity * (n - positives), n - positives)
    return None


def _is_share(value: float | None) -> TypeGuard[float]:
    return value is not None and 0.0 <= value <= 1.0


def variance_of(terms: Sequence[Share]) -> float:
    """Variance of a sum of independent proportions, with one success and one failure more each (Agresti & Coull)."""
    total = 0.0
    for weight, successes, trials in terms:
        share = (successes + 1.0) / (trials + 2.0)
        total += weight**2 * share * (1.0 - share) / trials
    return total


def score_interval(terms: Sequence[Share], *, level: float) -> Estimate:
    """A sum of weighted independent proportions with limits from Wilson's of each (Zou & Donner 2008, eq. 5).

    With weights 1 and -1 it is the difference of two scores. Weights may have any sign.
    """
    value = below = above = 0.0
    for weight, successes, trials in terms:
        if not trials > 0.0 or not -1e-6 * trials <= successes <= trials * (1.0 + 1e-6):
            raise ArgumentError(f"a share of {successes:g} in {trials:g} rows is none: check the metrics")
        successes = min(max(successes, 0.0), trials)
        share = successes / trials
        low, high = wilson(successes, trials, level=level)
        if weight < 0.0:
            low, high = high, low
        value += weight * share
        below += (weight * (share - low)) ** 2
        above += (weight * (high - share)) ** 2
    return Estimate(
        estimate=value,
        low=value - math.sqrt(below),
        high=value + math.sqrt(above),
        method="Wilson limits, Zou & Donner",
    )
