"""Two measurements of the same items: the difference of two means with an interval, and tests that it is none.

The interval is MOVER (Zou and Donner, Statistics in Medicine 27 (2008) 1693-1702): it puts together the limits of the
two means and the correlation of their scores. For pairs, whose limits are Wilson's, it is Newcombe's method 10
(Statistics in Medicine 17 (1998) 2635-2650). The tests: signs of the differences dealt anew, and, for a square table
of counts, Bowker's test of symmetry (Journal of the American Statistical Association 43 (1948) 572-574).
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from audit.errors import ArgumentError
from audit.patterns import FloatArray, IntArray
from audit.results import Estimate

__all__ = ["fewer_than_fresh", "paired_difference", "score_correlation", "sign_test", "symmetry_test"]

_PERMUTATIONS = 9_999
_MOST_CELLS = 50_000_000


def score_correlation(first: FloatArray, second: FloatArray, items: IntArray) -> float:
    """Pearson's correlation of two scores over items; 0 where one of them does not vary.

    ``first`` and ``second`` have shape (P,), ``items`` says how many items have the two values.
    """
    total = int(items.sum())
    if total == 0:
        return 0.0
    a, b = first - first @ items / total, second - second @ items / total
    spread = float((a * a) @ items) * float((b * b) @ items)
    if spread <= 1e-18 * total * total:
        return 0.0
    return min(1.0, max(-1.0, float((a * b) @ items) / math.sqrt(spread)))  # rounding may lead beyond


def paired_difference(first: Estimate, second: Estimate, *, correlation: float) -> Estimate:
    """``second`` - ``first`` of two means over the same items, with the MOVER interval (Zou and Donner, eq. 6-7).

    With estimates p1, p2, limits l, u and the correlation r of the scores:
    low = (p2 - p1) - sqrt((p2 - l2)^2 - 2 r (p2 - l2)(u1 - p1) + (u1 - p1)^2), and high with the other limits. A mean
    without limits makes a difference without any.
    """
    if not -1.0 <= correlation <= 1.0:
        raise ArgumentError(f"a correlation lies in [-1, 1], not {correlation}")
    if first.estimate is None or second.estimate is None:
        return Estimate(estimate=None, method="none")
    difference = second.estimate - first.estimate
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Estimate(estimate=difference, method="none")

    def reach(own: float, other: float) -> float:
        return math.sqrt(max(0.0, own * own - 2.0 * correlation * own * other + other * other))

    low = difference - reach(second.estimate - second.low, first.high - first.estimate)
    high = difference + reach(second.high - second.estimate, first.estimate - first.low)
    return Estimate(estimate=difference, low=max(-1.0, low), high=min(1.0, high), method="MOVER")


def sign_test(first: FloatArray, second: FloatArray, items: IntArray, *, seed: int = 0) -> float | None:
    """Two-sided p-value of equal means over the same items: the signs of the differences are dealt anew.

    Exact (McNemar's exact test) where all differences are of one size, else 9,999 random deals; None where no item
    differs. Shapes (P,), as in :func:`score_correlation`.
    """
    differences = second - first
    sizes = np.round(np.abs(differences), 12)
    kept = sizes > 0
    if not items[kept].any():
        return None
    levels, place = np.unique(sizes[kept], return_inverse=True)
    counts = np.bincount(place, weights=items[kept]).astype(np.int64)
    up = np.bincount(place, weights=items[kept] * (differences[kept] > 0)).astype(np.int64)
    if len(levels) == 1:
        return float(stats.binomtest(int(up[0]), int(counts[0])).pvalue)
    observed = abs(float(levels @ (2 * up - counts)))
    draws = int(np.clip(_MOST_CELLS // len(levels), 999, _PERMUTATIONS))
    dealt = np.random.default_rng(seed).binomial(counts, 0.5, (draws, len(levels)))
    hits = int(np.sum(np.abs((2 * dealt - counts) @ levels) >= observed * (1.0 - 1e-9)))
    return (1 + hits) / (1 + draws)


def fewer_than_fresh(fewer: int, more: int, *, odds: float) -> float:
    """The chance that so few items or fewer changed their agreement against the rest, if the labels were given anew.

    Labels of two equally good labellings move as many items apart as together (McNemar). If the odds of a disagreement
    are ``odds`` times as high in the labelling whose direction ``fewer`` counts, in every item and whatever its own
    chance d_i is, a change goes that way with the chance odds/(1 + odds): d_i'(1 - d_i) against d_i(1 - d_i'). The
    lower tail of Bin(fewer + more, odds/(1 + odds)).
    """
    if odds < 0.0 or fewer < 0 or more < 0:
        raise ArgumentError("the chance of fewer changes needs counts of 0 or more and odds of 0 or more")
    return float(stats.binom.cdf(fewer, fewer + more, odds / (1.0 + odds)))


def symmetry_test(table: IntArray) -> tuple[float | None, str]:
    """p-value that a square table of counts is symmetric, and the method; None where nothing moved.

    Two classes: the exact binomial test of the moves one way and the other (McNemar). More: Bowker's chi-square over
    the pairs of classes with a move.
    """
    table = np.asarray(table, np.float64)
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        raise ArgumentError("symmetry is of a square table: the same classes on both sides")
    upper = np.triu_indices(len(table), 1)
    there, back = table[upper], table.T[upper]
    moved = there + back > 0
    if not moved.any():
        return None, "none"
    if moved.sum() == 1:
        a, b = int(there[moved][0]), int(back[moved][0])
        return float(stats.binomtest(a, a + b).pvalue), "McNemar, exact"
    chi = float(np.sum((there[moved] - back[moved]) ** 2 / (there[moved] + back[moved])))
    return float(stats.chi2.sf(chi, int(moved.sum()))), "Bowker"
