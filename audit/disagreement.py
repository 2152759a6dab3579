"""Disagreement d of repeated items, its weightings, its interval, and d by class.

d_i = 1 - sum n_k(n_k - 1)/(n(n - 1)) is the unbiased estimate of the chance that two fresh labels of item i
differ (Simpson, Nature 163 (1949) 688). The headline d is its mean over repeated items: each item once.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from audit.errors import ArgumentError
from audit.intervals import (
    beta_limit,
    bootstrap_totals,
    check_level,
    clopper_pearson,
    effective_interval,
    no_conflict_upper,
    wilson,
)
from audit.patterns import CountPatterns, FloatArray, IntArray
from audit.results import Breakdown, Disagreement, Estimate, GroupSize

__all__ = [
    "NO_REPEATS",
    "IntervalKind",
    "by_class",
    "by_group_size",
    "estimate_disagreement",
    "item_mean",
    "largest_disagreement",
    "ratio_mean",
]

#: Why there is nothing where no item is repeated.
NO_REPEATS = "no item has two labels, so disagreement cannot be measured"

#: How d of pairs is given an interval: Wilson's score interval, or Clopper and Pearson's exact one.
IntervalKind = Literal["wilson", "exact"]

#: The weightings differ when they are further apart than this and than the interval of d is wide.
_WEIGHTING_GAP = 0.02


def estimate_disagreement(
    patterns: CountPatterns,
    *,
    level: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
    interval: IntervalKind = "wilson",
) -> Disagreement:
    """Estimate d from the repeated items of ``patterns``.

    Intervals, named in ``method``:

    - no conflict at all: one-sided, [0, 1 - (1 - level)^(1/n)];
    - all groups of size 2: Wilson on the conflicts; with ``interval="exact"`` Clopper and Pearson's two-sided
      limits, also when there is no conflict;
    - mixed sizes: a bootstrap over items (multinomial draws over the count patterns) gives the variance of d,
      and :func:`audit.intervals.effective_interval` the limits: Clopper and Pearson's at the effective sample
      size. For groups of size 2 they would be Clopper and Pearson's own.

    Without a repeated item every number is None and ``reason`` says so.
    """
    check_level(level)
    if interval not in ("wilson", "exact"):
        raise ArgumentError(f"interval must be 'wilson' or 'exact', not {interval!r}")
    repeated = patterns.repeated
    if repeated.item_total == 0:
        return Disagreement(
            estimate=None, low=None, high=None, method="none", level=level, pair_weighted=None,
            row_weighted=None, reason=NO_REPEATS,
        )  # fmt: skip
    items, scores = repeated.items, repeated.disagreement
    part = item_mean(
        scores, items, level=level, draws=draws, seed=seed, interval=interval,
        binary=bool(np.all(repeated.sizes == 2)),
        largest=largest_disagreement(int(repeated.sizes.min()), classes=repeated.class_count),
    )  # fmt: skip
    pair = float(1.0 - (repeated.agreeing_pairs @ items) / (repeated.pairs @ items))
    row = float((scores * repeated.sizes) @ items / (repeated.sizes @ items))
    centre = float(part.estimate or 0.0)
    width = float(part.high or 0.0) - float(part.low or 0.0)
    gap = max(abs(pair - centre), abs(row - centre))
    return Disagreement(
        estimate=part.estimate, low=part.low, high=part.high, method=part.method, level=level,
        pair_weighted=pair, row_weighted=row, weightings_differ=gap > max(_WEIGHTING_GAP, width / 2.0),
    )  # fmt: skip


def item_mean(
    scores: FloatArray,
    items: IntArray,
    *,
    level: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
    interval: IntervalKind = "wilson",
    binary: bool = False,
    largest: float = 1.0,
) -> Estimate:
    """Mean over items of a disagreement score in [0, 1], with the interval of :func:`estimate_disagreement`.

    ``scores`` and ``items`` have shape (P,): the score of a pattern and how many items have it. ``binary``
    says that every score is 0 or 1, one pair an item; ``largest`` is the largest score that an item can have.
    """
    total = int(items.sum())
    if total == 0:
        return Estimate(estimate=None, method="none")
    summed = float(scores @ items)
    mean = summed / total
    if binary and interval == "exact":
        low, high = clopper_pearson(round(summed), total, level=level)
        return Estimate(estimate=mean, low=low, high=high, method="Clopper-Pearson")
    if summed == 0.0:
        return _no_conflict(total, level)
    if binary:
        low, high = wilson(round(summed), total, level=level)
        return Estimate(estimate=mean, low=low, high=high, method="Wilson")
    means = bootstrap_totals(
        scores[:, None].astype(np.float64), items, draws=draws, rng=np.random.default_rng(seed)
    )
    variance = float(np.var(means[:, 0] / total))
    low, high = effective_interval(mean, variance, total, largest=largest, level=level)
    return Estimate(
        estimate=mean, low=low, high=high, method="bootstrap over items, limits at the effective sample size"
    )


def largest_disagreement(size: int, *, classes: int) -> float:
    """The largest d_i of an item with ``size`` >= 2 labels, spread evenly over the classes; it falls with size."""
    each, more = divmod(size, classes)
    agreeing = more * (each + 1) * each + (classes - more) * each * (each - 1)
    return 1.0 - agreeing / (size * (size - 1))


def ratio_mean(
    above: FloatArray,
    below: FloatArray,
    items: IntArray,
    *,
    largest: tuple[float, float] = (1.0, 1.0),
    level: float = 0.95,
) -> Estimate:
    """Ratio of two item totals, sum(above)/sum(below) with 0 <= above <= below <= 1, and its interval.

    The variance is the linearised one of a ratio of means (Cochran, Sampling Techniques, 1977, eq. 2.39); the
    limits are found as in :func:`audit.intervals.effective_interval`: from the sample with one more item,
    (above, below) = ``largest`` for the upper limit and (0, 1) for the lower.
    """
    used = below > 0
    count = int(items[used].sum())
    if count == 0:
        return Estimate(estimate=None, method="none")
    top, base = float(above @ items), float(below @ items)
    if top <= 0.0:
        return _no_conflict(count, level)

    def limit(one: tuple[float, float], probability: float) -> float:
        ratio = (top + one[0]) / (base + one[1])
        squares = float((above - ratio * below) ** 2 @ items) + (one[0] - ratio * one[1]) ** 2
        return beta_limit(ratio, squares / (base + one[1]) ** 2, probability)

    return Estimate(
        estimate=top / base, low=limit((0.0, 1.0), (1.0 - level) / 2.0), high=limit(largest, (1.0 + level) / 2.0),
        method="linearised ratio, limits at the effective sample size",
    )  # fmt: skip


def _no_conflict(items: int, level: float) -> Estimate:
    return Estimate(
        estimate=0.0, low=0.0, high=no_conflict_upper(items, level=level), method="one-sided, no conflicts"
    )


def by_class(patterns: CountPatterns, *, level: float = 0.95, most: int = 100) -> tuple[Breakdown, ...]:
    """d by class: the chance that a second label differs when the first is of class k; largest shares first.

    d_k = sum_i (n_ik/n_i)(1 - (n_ik - 1)/(n_i - 1)) / sum_i n_ik/n_i, each repeated item once, so that
    d = sum_k share_k d_k exactly. At most ``most`` classes are given.
    """
    repeated = patterns.repeated
    if repeated.item_total == 0:
        return ()
    table = repeated.counts.tocsc()
    sizes = repeated.sizes.astype(np.float64)
    rows = []
    for k, name in enumerate(repeated.classes):
        index = table.indices[table.indptr[k] : table.indptr[k + 1]]
        if not index.size:
            continue
        count = table.data[table.indptr[k] : table.indptr[k + 1]].astype(np.float64)
        size, items = sizes[index], repeated.items[index]
        below = count / size
        above = below * (size - count) / (size - 1.0)
        part = ratio_mean(above, below, items, largest=(0.5, 0.5), level=level)
        rows.append(
            Breakdown(
                value=name, items=int(items.sum()),
                pairs=int((count * (count - 1) / 2 + count * (size - count)) @ items),
                conflicts=int(items[count < size].sum()), estimate=part.estimate, low=part.low, high=part.high,
                method=part.method, share=float(below @ items) / repeated.item_total,
            )
        )  # fmt: skip
    rows.sort(key=lambda r: (-(r.share or 0.0), r.value))
    return tuple(rows[:most])


def by_group_size(patterns: CountPatterns) -> tuple[GroupSize, ...]:
    """Items, conflicts and mean d_i for each number of labels per item, smallest first."""
    repeated = patterns.repeated
    out = []
    for size in np.unique(repeated.sizes):
        part = repeated.select(repeated.sizes == size)
        out.append(
            GroupSize(
                size=int(size), items=part.item_total, conflicts=int(part.items[part.disagreement > 0].sum()),
                estimate=float(part.disagreement @ part.items) / part.item_total,
            )
        )  # fmt: skip
    return tuple(out)
