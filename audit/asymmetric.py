"""Asymmetric binary flips from pairs: which error rates could have made these labels.

A true 1 is labelled 0 with chance ``e10``, a true 0 is labelled 1 with chance ``e01``, the same for all items; pi is
the share of true 1s. Two labels of an item show m = P(1), P11 and P00: two free numbers for three unknowns, so pi is
only known to lie in [1 - (1 - m)^2/P00, m^2/P11]. With V = P11 - m^2 the rest follows from pi,

    e10 = 1 - m - sqrt(V (1 - pi)/pi),   e01 = m - sqrt(V pi/(1 - pi)),

on the branch e01 + e10 < 1 (labels that are right more often than not; the other branch swaps the names of the
classes). Derivation: P(1, 1) - P(1)^2 = pi(1 - pi)(1 - e10 - e01)^2 and m = pi(1 - e10) + (1 - pi)e01.

Two strata with different pi and the same errors, or three labels an item, identify all of it:
:mod:`audit.latent` (Hui & Walter, Biometrics 36 (1980) 167-171).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from audit.errors import ArgumentError
from audit.intervals import check_level
from audit.patterns import CountPatterns, FloatArray
from audit.results import IdentifiedSet, Range

__all__ = ["PairShares", "flips_at", "identified_set", "pair_shares"]

#: Fewest repeated items for a set with sampling error.
_FEWEST_ITEMS = 10

_OPEN = "too few repeats: with sampling error the labels may say nothing, and the limits are 0 and 1"

#: Items of each kind that widen the sampling region.
_UNSEEN = 2.0

#: Directions and radii at which the sampling region is looked at, and points of pi along one set.
_DIRECTIONS, _RADII, _POINTS = 72, (0.25, 0.5, 0.75, 1.0), 201


@dataclass(frozen=True, kw_only=True)
class PairShares:
    """m = P(1) and P11 of two labels of an item, each item once, with their covariance (shape (2, 2))."""

    m: float
    p11: float
    items: int
    covariance: FloatArray

    @property
    def p00(self) -> float:
        """P(0, 0) = 1 - 2m + P11."""
        return 1.0 - 2.0 * self.m + self.p11


def pair_shares(patterns: CountPatterns, *, positive: int = 1) -> PairShares:
    """m and P11 from repeated items of two classes: means over items of n_1/n and n_1(n_1 - 1)/(n(n - 1)).

    ``positive`` is the column of the class called 1.
    """
    repeated = patterns.repeated
    if patterns.class_count != 2:
        raise ArgumentError(f"error rates of pairs need 2 classes, not {patterns.class_count}")
    if repeated.item_total == 0:
        raise ArgumentError("no item has two labels")
    n = repeated.sizes.astype(np.float64)
    ones = repeated.counts[:, [positive]].toarray().ravel().astype(np.float64)
    values = np.column_stack([ones / n, ones * (ones - 1.0) / (n * (n - 1.0))])
    total = float(repeated.item_total)
    mean = repeated.items @ values / total
    off = values - mean
    covariance = (off * repeated.items[:, None]).T @ off / total**2
    return PairShares(m=float(mean[0]), p11=float(mean[1]), items=int(total), covariance=covariance)


def flips_at(pi: float, *, m: float, p11: float) -> tuple[float, float]:
    """(e10, e01) at a share ``pi`` of true 1s in (0, 1), on the branch e01 + e10 < 1."""
    v = math.sqrt(max(0.0, p11 - m * m))
    return 1.0 - m - v * math.sqrt((1.0 - pi) / pi), m - v * math.sqrt(pi / (1.0 - pi))


def _ends(m: float, p11: float) -> FloatArray | None:
    """The set at m and P11: rows pi, e10, e01, mean error; columns least, greatest.

    None where labels do not agree more than chance (V <= 0) or pairs of a kind are not there.
    """
    p00 = 1.0 - 2.0 * m + p11
    if not 0.0 < m < 1.0 or p11 <= m * m or p00 <= 0.0:
        return None
    low = max(0.0, 1.0 - (1.0 - m) ** 2 / p00)
    high = max(low, min(1.0, m * m / p11))  # the same without any conflict, but for rounding
    root = math.sqrt(p11 - m * m)
    pi = np.clip(np.linspace(low, high, _POINTS), 1e-12, 1.0 - 1e-12)
    e10 = np.clip(1.0 - m - root * np.sqrt((1.0 - pi) / pi), 0.0, 1.0)
    e01 = np.clip(m - root * np.sqrt(pi / (1.0 - pi)), 0.0, 1.0)
    rows = np.vstack([pi, e10, e01, pi * e10 + (1.0 - pi) * e01])
    return np.column_stack([rows.min(axis=1), rows.max(axis=1)])


def identified_set(patterns: CountPatterns, *, positive: int = 1, level: float = 0.95) -> IdentifiedSet:
    """Everything the pairs allow, with sampling error.

    ``low``/``high`` of each quantity are the extremes over all m and P11 in their joint confidence region (an ellipse,
    chi-squared with two degrees of freedom): both ends hold together with at least ``level``. ``None`` with a reason
    where labels of an item agree no more than those of different items.
    """
    check_level(level)
    shares = pair_shares(patterns, positive=positive)
    at = _ends(shares.m, shares.p11)
    if at is None:
        why = "labels of one item agree no more than labels of different items: their errors cannot be told"
        return IdentifiedSet(items=shares.items, reason=why)
    if shares.items < _FEWEST_ITEMS:
        return IdentifiedSet(items=shares.items, reason=f"fewer than {_FEWEST_ITEMS} items have two labels")
    wide, lost = at.copy(), False
    for m, p11 in _region(shares, level):
        ends = _ends(m, p11)
        if ends is None:
            lost = True
            continue
        wide[:, 0] = np.minimum(wide[:, 0], ends[:, 0])
        wide[:, 1] = np.maximum(wide[:, 1], ends[:, 1])
    if lost:
        wide[:, 0], wide[:, 1] = 0.0, 1.0
    ranges = [
        Range(lower=float(a), upper=float(b), low=float(c), high=float(d))
        for (a, b), (c, d) in zip(at, wide, strict=True)
    ]
    return IdentifiedSet(
        items=shares.items, positive=patterns.classes[positive], share=shares.m, prevalence=ranges[0], miss=ranges[1],
        false_alarm=ranges[2], mean_error=ranges[3],
        reason=_OPEN if lost else None,
    )  # fmt: skip


def _region(shares: PairShares, level: float) -> FloatArray:
    """Points (m, P11) of the joint region, its edge and inside.

    Two items more of each kind (two 1s, two 0s, a conflict) widen it, as kinds that few items or none are of have a
    variance that the sample does not show: no conflict among n items leaves d up to 3/n.
    """
    n = shares.items
    off = np.array([[1.0, 1.0], [0.0, 0.0], [0.5, 0.0]]) - (shares.m, shares.p11)
    root = np.linalg.cholesky(shares.covariance + _UNSEEN * off.T @ off / n**2 + 1e-15 * np.eye(2))
    radius = math.sqrt(float(stats.chi2.ppf(level, 2)))
    angle = np.linspace(0.0, 2.0 * math.pi, _DIRECTIONS, endpoint=False)
    circle = np.vstack([np.cos(angle), np.sin(angle)])
    points = np.hstack([r * radius * (root @ circle) for r in _RADII])
    m = np.clip(shares.m + points[0], 1.0 / n**2, 1.0 - 1.0 / n**2)
    return np.column_stack([m, np.clip(shares.p11 + points[1], np.maximum(0.0, 2.0 * m - 1.0), m)])
