"""An end of the band from several labels with its sampling error: chosen on one half of the items, judged on the other.

See :mod:`audit.moments` for why, and for the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from audit.patterns import FloatArray, IntArray

__all__ = ["Block", "Bound", "End", "Method", "limit"]

End = Literal["lower", "upper"]

#: More items than this are halved pattern by pattern, without chance.
_MOST_DEALT = 10**9

#: Standard errors by which a bound may owe its place to luck: of 1 to 4 the narrowest bands in trials.
_LUCK = 2.0


@dataclass(frozen=True, kw_only=True)
class Block:
    """Items that count with n labels: their patterns (indices), and the scores (least, greatest) they can have."""

    rows: IntArray
    scores: FloatArray
    least: float
    greatest: float


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A bound of the ceiling: its value, and the scores of the patterns.

    Their means over each block sum with ``intercept`` to a number that bounds the ceiling, whatever the items are.
    """

    name: str
    value: float
    intercept: float
    blocks: tuple[Block, ...]


class Method:
    """Something that bounds the ceiling from counts."""

    def bound(self, items: IntArray, end: End, *, slack: float = 0.0) -> Bound:
        """The bound at one end for ``items`` of each pattern; each frequency may be off by ``slack`` errors."""
        raise NotImplementedError

    def fit(self, items: IntArray) -> float | None:
        """p-value of the hypothesis that labels of an item are independent draws; None where it is not tested."""
        raise NotImplementedError


def limit(
    methods: Sequence[Method],
    orders: dict[int, IntArray],
    items: IntArray,
    end: End,
    *,
    probability: float,
    seed: int,
) -> float:
    """The end of the band with sampling error, see the head of this module.

    Each mean is judged with one more item of the extreme score, as in :func:`audit.intervals.effective_interval`.
    """
    rng = np.random.default_rng(seed)
    first = np.zeros_like(items)
    for rows in orders.values():
        total = int(items[rows].sum())
        if total < _MOST_DEALT:
            first[rows] = rng.multivariate_hypergeometric(items[rows], total // 2, method="marginals")
        else:
            first[rows] = items[rows] // 2
    sign, z = 1.0 if end == "upper" else -1.0, float(special.ndtri(probability))
    estimate = variance = 0.0
    for learn, judge in ((first, items - first), (items - first, first)):
        bounds = [method.bound(learn, end, slack=1.0) for method in methods]
        # A mean over the half that chose flatters bounds with large weights, and the programme's value has slack in it:
        # halfway between them, and two standard errors beside the one that the other half will have.
        ends = []
        for bound in bounds:
            mean, spread = _mean(bound, learn, sign)
            ends.append(sign * 0.5 * (bound.value + mean) + (_LUCK + z * math.sqrt(0.5)) * math.sqrt(spread))
        mean, spread = _mean(bounds[int(np.argmin(ends))], judge, sign)
        estimate += 0.5 * mean
        variance += 0.25 * spread
    return estimate + sign * z * math.sqrt(variance)


def _mean(bound: Bound, items: IntArray, sign: float) -> tuple[float, float]:
    """The bound as a mean over ``items``, each block with one more item of the extreme score, and its variance."""
    total, variance = bound.intercept, 0.0
    for block in bound.blocks:
        counts = items[block.rows]
        count = float(counts.sum()) + 1.0
        worst = block.greatest if sign > 0.0 else block.least
        mean = float(block.scores @ counts + worst) / count
        total += mean
        variance += (float((block.scores - mean) ** 2 @ counts) + (worst - mean) ** 2) / count**2
    return total, variance
