"""Noise of numeric and ordinal labels, from repeats: its standard deviation, and the limits that follow for models.

Item i has a distribution of values with variance σ_i²; its repeats are independent draws. E(y₁ − y₂)²/2 = σ_i², and
the sample variance s_i² of any number of repeats estimates it without bias. Everything is a mean over repeated items,
each once:

- noise variance σ² = mean s_i²; no predictor has a root mean squared error against these labels below σ;
- R² ≤ ICC(1) = B/(B + σ²), B = var(item means) − mean(s_i²/n_i) the variance between items (Shrout and Fleiss,
  Psychological Bulletin 86 (1979) 420-428, case 1; with unequal n_i the unweighted form of Thomas and Hultquist,
  Annals of Statistics 6 (1978) 582-587);
- with D = E|y₁ − y₂|, no predictor has a mean absolute error below D/2, and one that knows each item's median has at
  most D: |y₁ − y₂| ≤ |y₁ − m| + |y₂ − m|, and E|y₁ − m| ≤ E|y₁ − y₂| for the median m.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from audit.errors import ArgumentError
from audit.intervals import check_level
from audit.patterns import CountPatterns, FloatArray
from audit.results import Estimate

__all__ = ["ValueScores", "intraclass", "noise_variance", "pair_distance", "value_scores", "weighted_kappa"]


@dataclass(frozen=True, kw_only=True, eq=False)
class ValueScores:
    """What each repeated pattern of values says, all of shape (P,): the number of ``items`` that have it, labels per
    item ``sizes``, the ``means``, the sample ``variances`` s_i² and the mean ``distances`` of its pairs.
    """

    items: FloatArray
    sizes: FloatArray
    means: FloatArray
    variances: FloatArray
    distances: FloatArray

    @property
    def total(self) -> float:
        """N, the number of repeated items."""
        return float(self.items.sum())

    def mean(self, scores: FloatArray) -> float:
        """The mean of a score over items, each once."""
        return float(scores @ self.items) / self.total


def value_scores(patterns: CountPatterns, values: FloatArray) -> ValueScores:
    """Means, variances and distances of the repeated items.

    Parameters
    ----------
    patterns:
        Counts of K classes.
    values:
        Shape (K,): the number that each class stands for.
    """
    values = np.asarray(values, np.float64)
    if values.shape != (patterns.class_count,) or not np.all(np.isfinite(values)):
        raise ArgumentError("values must hold one finite number for each class")
    repeated = patterns.repeated
    order = np.argsort(values, kind="stable")
    table = repeated.counts[:, order].tocsr()
    table.sort_indices()
    rows = np.repeat(np.arange(len(repeated.items)), np.diff(table.indptr))
    count = table.data.astype(np.float64)
    sizes = repeated.sizes.astype(np.float64)
    shift = float(values.mean()) if len(values) else 0.0  # large values with a small spread keep their digits
    cell = values[order][table.indices] - shift
    means = np.bincount(rows, weights=count * cell, minlength=len(sizes)) / sizes
    apart = cell - means[rows]
    variances = np.bincount(rows, weights=count * apart * apart, minlength=len(sizes)) / (sizes - 1.0)
    before = np.concatenate([[0.0], np.cumsum(count)])[:-1]
    lower = before - before[table.indptr[:-1]][rows]  # labels of the item below this value
    upper = sizes[rows] - lower - count
    summed = np.bincount(rows, weights=count * apart * (lower - upper), minlength=len(sizes))
    return ValueScores(
        items=repeated.items.astype(np.float64), sizes=sizes, means=means + shift, variances=variances,
        distances=summed / (sizes * (sizes - 1.0) / 2.0),
    )  # fmt: skip


def noise_variance(scores: ValueScores, *, level: float = 0.95) -> Estimate:
    """σ² = mean s_i², in squared units of the labels.

    Limits: ν σ²/χ²_ν with ν = 2σ⁴/Var(σ²) degrees of freedom from the data (Satterthwaite, Biometrics Bulletin 2
    (1946) 110-114); exact for equal normal noise, wider where a few items hold most of the variance. No noise at all,
    or a single item: no limits.
    """
    check_level(level)
    if scores.total == 0:
        return Estimate(estimate=None, method="none")
    mean = scores.mean(scores.variances)
    spread = _variance_of_mean(scores, scores.variances - mean)
    if mean == 0.0 or not spread:
        return Estimate(estimate=mean, method="none")
    freedom = 2.0 * mean * mean / spread
    low, high = (float(stats.chi2.ppf(p, freedom)) for p in ((1.0 - level) / 2.0, (1.0 + level) / 2.0))
    return Estimate(
        estimate=mean, low=freedom * mean / high, high=freedom * mean / low,
        method="chi-square at effective degrees of freedom",
    )  # fmt: skip


def pair_distance(scores: ValueScores, *, level: float = 0.95) -> Estimate:
    """D, the mean absolute difference of two labels of an item, in units of the labels; normal limits on log D."""
    check_level(level)
    if scores.total == 0:
        return Estimate(estimate=None, method="none")
    mean = scores.mean(scores.distances)
    spread = _variance_of_mean(scores, scores.distances - mean)
    if mean == 0.0 or not spread:
        return Estimate(estimate=mean, method="none")
    reach = math.exp(_z(level) * math.sqrt(spread) / mean)
    return Estimate(estimate=mean, low=mean / reach, high=mean * reach, method="normal, on the logarithm")


def intraclass(scores: ValueScores, *, level: float = 0.95) -> Estimate:
    """ICC(1), the share of the labels' variance that is between items: the ceiling of R².

    It may come out below zero, when labels of one item are no more alike than labels of different ones. Limits:
    Fisher's z with the variance of the linearised estimate. None with fewer than two items or no variance.
    """
    check_level(level)
    n = scores.total
    if n < 2:
        return Estimate(estimate=None, method="none")
    centre = scores.mean(scores.means)
    squares = (scores.means - centre) ** 2
    within = scores.variances / scores.sizes
    noise = scores.mean(scores.variances)
    between = scores.mean(squares) * n / (n - 1.0) - scores.mean(within)
    whole = between + noise
    if whole <= 0.0:
        return Estimate(estimate=None, method="none")
    ratio = between / whole
    moved = (squares - scores.mean(squares)) - (within - scores.mean(within))
    influence = (noise * moved - between * (scores.variances - noise)) / (whole * whole)
    return _fisher(ratio, _variance_of_mean(scores, influence), level)


def weighted_kappa(scores: ValueScores, *, level: float = 0.95) -> Estimate:
    """Quadratic-weighted κ of exchangeable repeats: 1 - σ²/V, V the variance of the labels, each item once.

    With ranks for values this is Cohen's κ with weights (i - j)² (Psychological Bulletin 70 (1968) 213-220), the
    expected part from the shares of the classes as in Scott's π. Limits as in :func:`intraclass`.
    """
    check_level(level)
    if scores.total == 0:
        return Estimate(estimate=None, method="none")
    centre = scores.mean(scores.means)
    own = scores.variances * (scores.sizes - 1.0) / scores.sizes + (scores.means - centre) ** 2
    spread, noise = scores.mean(own), scores.mean(scores.variances)
    if spread == 0.0:
        return Estimate(estimate=None, method="none")
    influence = -(scores.variances - noise) / spread + noise * (own - spread) / (spread * spread)
    return _fisher(1.0 - noise / spread, _variance_of_mean(scores, influence), level)


def _fisher(value: float, spread: float | None, level: float) -> Estimate:
    """Limits of a correlation-like value by Fisher's z; none where it has no variance or lies at an end."""
    if not spread or abs(value) >= 1.0:
        return Estimate(estimate=value, method="none")
    reach = _z(level) * math.sqrt(spread) / (1.0 - value * value)
    middle = math.atanh(value)
    return Estimate(
        estimate=value,
        low=math.tanh(middle - reach),
        high=math.tanh(middle + reach),
        method="Fisher's z, linearised",
    )


def _variance_of_mean(scores: ValueScores, influence: FloatArray) -> float | None:
    """Variance of a mean over items from each item's influence (mean zero); None with fewer than two items."""
    n = scores.total
    return float((influence * influence) @ scores.items) / (n * (n - 1.0)) if n >= 2 else None


def _z(level: float) -> float:
    return float(stats.norm.ppf((1.0 + level) / 2.0))
