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

Scores of items may have long tails (squares of errors have), so that a sample without a large one has too small a
variance as well as too small a mean. Upper limits and variances therefore count one more item, as far out as the
furthest seen (the added observation of Fay and Feuer, Statistics in Medicine 16 (1997) 791-801).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from audit.errors import ArgumentError
from audit.intervals import check_level
from audit.patterns import CountPatterns, FloatArray
from audit.results import Estimate

__all__ = [
    "ValueScores",
    "as_number",
    "intraclass",
    "noise_variance",
    "pair_distance",
    "value_scores",
    "weighted_kappa",
]


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


def as_number(text: str) -> float | None:
    """The finite number that a label is, or None. ``1_000`` is none: it may be a code as well as a thousand."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None


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
    shift = (
        float(np.unique(values).mean()) if len(values) else 0.0
    )  # large values, small spread: digits are kept
    cell = values[order][table.indices] - shift
    least = cell[table.indptr[:-1]]
    above = cell - least[rows]  # labels that are all equal have a variance of exactly 0
    centre = np.bincount(rows, weights=count * above, minlength=len(sizes)) / sizes
    means, apart = least + centre, above - centre[rows]
    variances = np.bincount(rows, weights=count * apart * apart, minlength=len(sizes)) / (sizes - 1.0)
    before = np.concatenate([[0.0], np.cumsum(count)])[:-1]
    lower = before - before[table.indptr[:-1]][rows]  # labels of the item below this value
    upper = sizes[rows] - lower - count
    summed = np.bincount(rows, weights=count * apart * (lower - upper), minlength=len(sizes))
    return ValueScores(
        items=repeated.items.astype(np.float64), sizes=sizes, means=means + shift, variances=variances,
        distances=summed / (sizes * (sizes - 1.0) / 2.0),
    )  # fmt: skip


def noise_variance(scores: ValueScores, *, level: float = 0.95, free: float = math.inf) -> Estimate:
    """σ² = mean s_i², in squared units of the labels.

    Limits: ν σ²/χ²_ν with degrees of freedom from the data, 2σ⁴/Var(σ²) (Satterthwaite, Biometrics Bulletin 2 (1946)
    110-114), at most the Σ(n_i - 1) of equal normal noise, or ``free`` where a model took some of them. σ⁴ is
    σ̂⁴ - Var for the lower limit; the upper is that of the sample with one more item, of the largest s_i². No noise at
    all, or a single item: no limits.
    """
    check_level(level)
    if scores.total == 0:
        return Estimate(estimate=None, method="none")
    mean, n = scores.mean(scores.variances), scores.total
    squares = float((scores.variances - mean) ** 2 @ scores.items)
    if mean == 0.0 or n < 2:
        return Estimate(estimate=mean, method="none")
    most = min(free, float((scores.sizes - 1.0) @ scores.items))
    largest = float(scores.variances.max())
    more = mean + (largest - mean) / (n + 1.0)
    spread = (squares + (largest - mean) * (largest - more)) / ((n + 1.0) * n)

    def limit(middle: float, variance: float, *, probability: float, less: float = 0.0) -> float:
        free = max(2.0 * middle * middle / variance - less, 1.0) if variance > 0.0 else most
        free = min(free, most)
        return free * middle / float(stats.chi2.ppf(probability, free))

    return Estimate(
        estimate=mean, low=limit(mean, squares / (n * (n - 1.0)), probability=(1.0 + level) / 2.0, less=2.0),
        high=limit(more, spread, probability=(1.0 - level) / 2.0),
        method="chi-square at effective degrees of freedom",
    )  # fmt: skip


def pair_distance(scores: ValueScores, *, level: float = 0.95, largest: float = math.inf) -> Estimate:
    """D, the mean absolute difference of two labels of an item, in units of the labels; normal limits on log D.

    No two labels are more than ``largest`` apart.
    """
    check_level(level)
    if scores.total == 0:
        return Estimate(estimate=None, method="none")
    mean = scores.mean(scores.distances)
    spread = _variance_of_mean(scores, scores.distances - mean)
    if mean == 0.0 or spread is None:
        return Estimate(estimate=mean, method="none")
    reach = math.exp(_z(level) * math.sqrt(spread) / mean)
    return Estimate(
        estimate=mean, low=mean / reach, high=min(mean * reach, largest), method="normal, on the logarithm"
    )


def intraclass(scores: ValueScores, *, level: float = 0.95) -> Estimate:
    """ICC(1), the share of the labels' variance that is between items: the ceiling of R².

    It may come out below zero, when labels of one item are no more alike than labels of different ones. Limits:
    Fisher's z with the variance of the jackknife (Miller, Biometrika 61 (1974) 1-15). None with fewer than three items,
    or where all variance rests on one.
    """

    def parts(n: float, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        noise = sums[2] / n
        between = (sums[1] - sums[0] ** 2 / n) / max(n - 1.0, 1.0) - sums[3] / n
        return noise, between + noise

    return _ratio(scores, parts, level) if scores.total >= 2 else Estimate(estimate=None, method="none")


def weighted_kappa(scores: ValueScores, *, level: float = 0.95) -> Estimate:
    """Quadratic-weighted κ of exchangeable repeats: 1 - σ²/V, V the variance of the labels, each item once.

    With ranks for values this is Cohen's κ with weights (i - j)² (Psychological Bulletin 70 (1968) 213-220), the
    expected part from the shares of the classes as in Scott's π. Limits as in :func:`intraclass`.
    """

    def parts(n: float, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        return sums[2] / n, (sums[2] - sums[3] + sums[1]) / n - (sums[0] / n) ** 2

    return _ratio(scores, parts, level)


#: A variance this small beside that of all items is one of rounding.
_ROUNDING = 1e-12


def _ratio(
    scores: ValueScores,
    parts: Callable[[float, FloatArray], tuple[FloatArray, FloatArray]],
    level: float,
) -> Estimate:
    """1 - noise/whole, and its limits by Fisher's z.

    ``parts`` makes the two variances of a number of items and the sums over them, shape (4, ...), of the mean, its
    square, s_i² and s_i²/n_i.
    """
    check_level(level)
    n = scores.total
    if n < 1:
        return Estimate(estimate=None, method="none")
    middle = scores.means - scores.mean(scores.means)
    each = np.stack([middle, middle**2, scores.variances, scores.variances / scores.sizes])
    sums = each @ scores.items
    noise, whole = (float(part) for part in parts(n, sums))
    if whole <= 0.0:
        return Estimate(estimate=None, method="none")
    value = 1.0 - noise / whole
    left_noise, left = parts(n - 1.0, sums[:, None] - each) if n >= 3 else (each[2], np.zeros(1))
    if abs(value) >= 1.0 or np.any(left <= _ROUNDING * whole):
        return Estimate(estimate=value, method="none")
    without = 1.0 - left_noise / left
    spread = _variance_of_mean(scores, (n - 1.0) * (without - scores.mean(without)))
    reach = _z(level) * math.sqrt(spread or 0.0) / (1.0 - value * value)
    low, high = (math.tanh(math.atanh(value) + way * reach) for way in (-1.0, 1.0))
    return Estimate(estimate=value, low=low, high=high, method="Fisher's z, jackknife")


def _variance_of_mean(scores: ValueScores, influence: FloatArray) -> float | None:
    """Variance of a mean over items from each item's influence (mean zero), and that of one more item, as far out as
    the furthest; None with fewer than two items, or where all are alike.
    """
    n = scores.total
    squares = influence * influence
    if n < 2 or not squares.any():
        return None
    return float(squares @ scores.items + squares.max()) / (n * n)


def _z(level: float) -> float:
    return float(stats.norm.ppf((1.0 + level) / 2.0))
