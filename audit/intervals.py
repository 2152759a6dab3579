"""Confidence intervals for proportions and for means of a bounded score over items.

Sources: Wilson, J. Am. Stat. Assoc. 22 (1927) 209-212; Clopper & Pearson, Biometrika 26 (1934) 404-413;
Korn & Graubard, Survey Methodology 24 (1998) 193-201 (Clopper-Pearson limits at an effective sample size);
Fay & Feuer, Statistics in Medicine 16 (1997) 791-801 (one more event of the largest weight in the upper limit);
Efron, Ann. Stat. 7 (1979) 1-26 (the bootstrap).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special, stats

from audit.errors import ArgumentError
from audit.patterns import FloatArray, IntArray

__all__ = [
    "beta_limit",
    "bootstrap_totals",
    "check_level",
    "check_seed",
    "clopper_pearson",
    "effective_interval",
    "holm",
    "no_conflict_upper",
    "wilson",
]

#: Numbers in one block of bootstrap draws, so that a block stays near 32 MB.
_BLOCK_CELLS = 4_000_000

#: A bootstrap draws the items of patterns with at most this many items one by one.
_FEW_ITEMS = 32


def check_level(level: float) -> None:
    """Raise ArgumentError unless ``level`` is strictly between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise ArgumentError(f"the confidence level must lie between 0 and 1, not {level}: 0.95 is usual")


def check_seed(seed: int) -> None:
    """Raise ArgumentError unless ``seed`` is 0 or more."""
    if seed < 0:
        raise ArgumentError(f"a seed is a whole number of 0 or more, not {seed}")


def wilson(successes: float, trials: float, *, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a proportion (1927, eq. 1): (low, high) within [0, 1].

    ``trials`` > 0 and 0 <= ``successes`` <= ``trials``; both may be fractional (an effective sample size).
    """
    check_level(level)
    _check_counts(successes, trials)
    z = float(special.ndtri(0.5 + level / 2.0))
    share = successes / trials
    centre = (share + z * z / (2.0 * trials)) / (1.0 + z * z / trials)
    spread = share * (1.0 - share) / trials + z * z / (4.0 * trials * trials)
    half = z / (1.0 + z * z / trials) * math.sqrt(max(spread, 0.0))
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return low, high


def clopper_pearson(successes: float, trials: float, *, level: float = 0.95) -> tuple[float, float]:
    """Clopper & Pearson's exact interval of a proportion: covers at least ``level`` whatever the truth."""
    check_level(level)
    _check_counts(successes, trials)
    tail = (1.0 - level) / 2.0
    low = 0.0 if successes <= 0 else float(stats.beta.ppf(tail, successes, trials - successes + 1.0))
    high = (
        1.0 if successes >= trials else float(stats.beta.ppf(1.0 - tail, successes + 1.0, trials - successes))
    )
    return low, high


def no_conflict_upper(items: int, *, level: float = 0.95) -> float:
    """One-sided upper limit of d when none of ``items`` repeated items disagrees: 1 - (1 - level)^(1/items).

    An item with more than two labels shows a conflict at least as easily as a pair, so the limit also holds
    (conservatively) when groups are larger than two.
    """
    check_level(level)
    if items < 1:
        raise ArgumentError("a limit needs at least one repeated item")
    return float(-math.expm1(math.log1p(-level) / items))


def effective_interval(
    mean: float, variance: float, items: int, *, largest: float = 1.0, level: float = 0.95
) -> tuple[float, float]:
    """Clopper-Pearson limits of a mean of scores in [0, ``largest``], at its effective sample size.

    Clopper and Pearson's limits are beta quantiles of a sample with one more trial: a success for the upper
    limit, a failure for the lower. The same is done here: one more item, of the largest score or of score 0,
    then the beta distribution with the mean and the effective size m(1-m)/variance of that sample (the size as
    in Korn & Graubard 1998, the added item as in Fay & Feuer 1997). For scores of 0 and 1 these are exactly
    Clopper and Pearson's limits. The added item keeps a few small scores from being taken for all there is:
    without it the limits cover as little as .57, and percentile limits less (docs/coverage.md).

    Parameters
    ----------
    mean:
        Mean score m over the items, in [0, ``largest``].
    variance:
        Variance of that mean (not of one score), from a bootstrap or a linearisation.
    items:
        Number of independent items behind it, at least 1.
    largest:
        The largest score that an item can have, in (0, 1].
    """
    check_level(level)
    if items < 1:
        raise ArgumentError("an interval needs at least one item")

    def limit(score: float, probability: float) -> float:
        step = (score - mean) / (items + 1.0)
        spread = (items**2 * variance + items * (items + 1.0) * step**2) / (items + 1.0) ** 2
        return beta_limit(mean + step, spread, probability)

    return limit(0.0, (1.0 - level) / 2.0), min(largest, limit(largest, (1.0 + level) / 2.0))


def beta_limit(mean: float, variance: float, probability: float) -> float:
    """Quantile of the beta distribution with a mean in [0, 1] and the effective size mean(1 - mean)/variance.

    Without variance it is the mean itself.
    """
    if variance <= 1e-18 or not 0.0 < mean < 1.0:
        return mean
    size = mean * (1.0 - mean) / variance
    return float(special.betaincinv(mean * size, (1.0 - mean) * size, probability))


def bootstrap_totals(
    columns: FloatArray, items: IntArray, *, draws: int, rng: np.random.Generator
) -> FloatArray:
    """Totals of ``columns`` over bootstrap samples of the items: shape (draws, C).

    ``columns`` has shape (P, C), one row per distinct pattern, and ``items`` (P,) its multiplicity. A sample of
    N items with replacement is one multinomial draw of multiplicities, so the cost depends on the number of
    patterns, not of items. Patterns with equal rows are merged first. Patterns of few items share one cell of
    the multinomial; the items that fall into it are then drawn one by one, which gives the same distribution
    and is several times faster than a binomial draw for each.

    The draws depend only on ``rng`` and on the patterns, not on their order.
    """
    if draws < 1:
        raise ArgumentError("the bootstrap needs at least one draw")
    rows, inverse = np.unique(columns, axis=0, return_inverse=True)
    weights = np.bincount(inverse.ravel(), weights=items).astype(np.int64)
    total = int(weights.sum())
    if total == 0:
        raise ArgumentError("the bootstrap needs at least one item")
    few = weights <= _FEW_ITEMS
    pool = np.repeat(rows[few], weights[few], axis=0)
    shares = np.append(weights[~few], len(pool)) / total
    out = np.empty((draws, columns.shape[1]), np.float64)
    block = max(1, _BLOCK_CELLS // (len(shares) + columns.shape[1] * len(pool)))
    for start in range(0, draws, block):
        counts = rng.multinomial(total, shares, size=min(block, draws - start))
        part = counts[:, :-1] @ rows[~few]
        drawn = counts[:, -1]
        some = np.flatnonzero(drawn)
        if some.size:
            picked = pool[rng.integers(len(pool), size=int(drawn.sum()), dtype=np.uint32)]
            part[some] += np.add.reduceat(picked, (np.cumsum(drawn) - drawn)[some], axis=0)
        out[start : start + len(part)] = part
    return out


def _check_counts(successes: float, trials: float) -> None:
    if not trials > 0:
        raise ArgumentError("an interval needs at least one trial")
    if not 0 <= successes <= trials:
        raise ArgumentError(f"{successes} successes do not fit {trials} trials")


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """p-values adjusted for their number, in the order given (Holm, Scandinavian Journal of Statistics 6 (1979) 65-70).

    Rejecting those at or below a level, one false rejection or more has that chance.
    """
    order = np.argsort(p_values, kind="stable")
    steps = np.asarray(p_values, np.float64)[order] * np.arange(len(order), 0, -1)
    out = np.empty(len(order))
    out[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if len(order) else steps
    return tuple(map(float, out))
