"""The accuracy ceiling from three or more repeats: bounds of E[max p] by the moments of p that n labels show.

Pairs show the first two moments of an item's chances p; n labels show n. Over all mixing distributions with these
moments E[max p] has a least and a greatest value, each a linear programme (:mod:`audit.moments_lp`). The band from
pairs alone, [1 - d, 1 - eps], is the case n = 2 without the class shares.

K > 2: one class against the rest, with sum_k b(p_k) on either side of 1 - max p,

    sum_k min(p_k, 1 - p_k)/2  <=  1 - max p  <=  sum_k (1 - p_k) min(p_k, 1 - p_k),

and the general symmetric bound from the power sums sum_k p_k^j; the better of the two counts. Proof of both sides:
let M = max p. If M >= 1/2 the left sum is (1 - M)/2 + (1 - M)/2; else it is 1/2 <= 1 - M. If M >= 1/2 the right sum
is (1 - M)^2 + sum over the others of p_k(1 - p_k) >= (1 - M)^2 + (1 - M)M = 1 - M, as the others are at most 1 - M;
else it is 1 - sum p_k^2 >= 1 - M. For K = 2 both are equalities.

Sampling error. The dual of such a programme is a function of an item's counts whose mean bounds the ceiling, whatever
the mixing distribution: a plain mean over items. It is chosen on one half of the items, with every frequency allowed
to be off by its standard error, and its mean is taken over the other half, and the other way round; so choosing costs
no coverage, and noise that no distribution explains does no harm. Items with more than ten labels, or with a number
of labels that few have, count as if some of theirs had been drawn at random (hypergeometric chances).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from audit.intervals import check_level, check_seed
from audit.moments_limit import Block, Bound, End, Method, limit
from audit.moments_lp import (
    ClassProblem,
    Side,
    class_problem,
    misfit,
    project,
    score_range,
    symmetric_problem,
)
from audit.patterns import CountPatterns, FloatArray, IntArray
from audit.results import Moments

__all__ = ["moment_bounds", "repeat_orders"]

#: Most labels of an item that are used, and the fewest items that a number of labels must have to count by itself.
_MOST_LABELS, _FEWEST_ITEMS = 10, 30

#: The symmetric bound uses power sums up to this one; one-against-rest takes so many classes one by one.
_MOST_POWERS, _MOST_CLASSES = 6, 4


def repeat_orders(patterns: CountPatterns, *, most: int = _MOST_LABELS) -> dict[int, IntArray]:
    """Which patterns count as items with n labels: {n: indices into ``patterns``}, the largest n first.

    An item counts under the largest n, up to its own number of labels and ``most``, that thirty items have. Items
    that have no such n (fewer than thirty pairs beside larger groups) are left out.
    """
    sizes = np.minimum(patterns.sizes, most)
    found: dict[int, IntArray] = {}
    waiting: list[IntArray] = []
    for n in range(most, 1, -1):
        waiting.append(np.flatnonzero((sizes == n) & (patterns.items > 0)))
        together = np.concatenate(waiting)
        if int(patterns.items[together].sum()) >= _FEWEST_ITEMS:
            found[n] = together
            waiting = []
    return found


def moment_bounds(
    patterns: CountPatterns, *, level: float = 0.95, seed: int = 0, refused: str | None = None
) -> Moments:
    """Bounds of the ceiling E[max p] from items with three labels or more, and pairs beside them.

    ``lower`` and ``upper`` are the bounds at the observed frequencies, or at the nearest ones that labels drawn
    independently can have. ``low`` and ``high`` have sampling error in them: each end holds with (1 + level)/2.
    ``fit_p_value`` is small where no mixing distribution explains the counts: labels of an item depend on one
    another, or items with more labels are of another kind.

    Parameters
    ----------
    refused:
        A reason why nothing may be concluded from the repeats.
    """
    check_level(level)
    check_seed(seed)
    orders = repeat_orders(patterns.repeated)
    reason = refused
    if reason is None and patterns.class_count < 2:
        reason = "only one class is declared"
    if reason is None and max(orders, default=0) < 3:
        reason = f"fewer than {_FEWEST_ITEMS} items have three labels or more"
    if reason is not None:
        return Moments(reason=reason)
    chosen = patterns.repeated
    used = np.concatenate(list(orders.values()))
    methods = _methods(chosen, orders)
    ends = {end: _best([m.bound(chosen.items, end) for m in methods], end) for end in ("lower", "upper")}
    # With few items of many labels a bound that uses less of them may vary less: the choice is among all of these.
    counts = (2, 3) if chosen.class_count == 2 else (2,)
    fewer = [repeat_orders(chosen, most=most) for most in counts if most < max(orders)]
    choice = [*methods, *(m for some in fewer for m in _methods(chosen, some))]
    low, high = (
        limit(choice, orders, chosen.items, end, probability=(1.0 + level) / 2.0, seed=seed)
        for end in ("lower", "upper")
    )  # fmt: skip
    lower, upper = ends["lower"].value, max(ends["lower"].value, ends["upper"].value)
    return Moments(
        lower=lower,
        upper=upper,
        low=max(0.0, min(low, lower)),
        high=min(1.0, max(high, upper)),
        repeats=max(orders),
        items=int(chosen.items[used].sum()),
        items_with_three=int(chosen.items[chosen.sizes >= 3].sum()),
        method=f"linear programme, {ends['lower'].name} (lower) and {ends['upper'].name} (upper)"
        if chosen.class_count > 2
        else "linear programme",
        fit_p_value=methods[0].fit(chosen.items),
    )


def _methods(patterns: CountPatterns, orders: dict[int, IntArray]) -> list[Method]:
    rest: list[Method] = [_OneAgainstRest(patterns, orders)]
    return rest if patterns.class_count == 2 else [*rest, _Symmetric(patterns, orders)]


def _best(bounds: Sequence[Bound], end: End) -> Bound:
    return max(bounds, key=lambda b: b.value if end == "lower" else -b.value)


@dataclass(frozen=True, kw_only=True)
class _Part:
    """Counts of one class (or the mean over ``times`` pooled ones): features (P, R), zero outside a pattern's block."""

    times: int
    features: FloatArray


class _OneAgainstRest(Method):
    """Each class against the rest; with two classes, the one problem there is."""

    def __init__(self, patterns: CountPatterns, orders: dict[int, IntArray]) -> None:
        self.orders = orders
        self.binary = patterns.class_count == 2
        by_size = np.argsort(-np.asarray(patterns.counts.T @ patterns.items), kind="stable")
        groups = [[int(k)] for k in by_size[: 1 if self.binary else _MOST_CLASSES]]
        if not self.binary and by_size[_MOST_CLASSES:].size:
            groups.append([int(k) for k in by_size[_MOST_CLASSES:]])
        self.parts = [_part(patterns, group, orders) for group in groups]
        self.edges = np.cumsum([n + 1 for n in orders])[:-1]

    def _problem(self, error: str) -> ClassProblem:
        return class_problem(tuple(self.orders), error)

    def bound(self, items: IntArray, end: End, *, slack: float = 0.0) -> Bound:
        """1 - sum_k E[b(p_k)], the extremes of each class by themselves."""
        error = "binary" if self.binary else "smallest" if end == "upper" else "largest"
        side: Side = "least" if end == "upper" else "greatest"
        problem = self._problem(error)
        value, intercept = 1.0, 1.0
        scores, tables = np.zeros(len(items)), []
        for part in self.parts:
            frequencies, errors = _frequencies(part.features, items, self.orders)
            if not slack:
                frequencies, _ = project(problem.dense, frequencies, errors)
            found = problem.solve(frequencies, errors, side, slack=slack)
            value -= part.times * found.value
            intercept -= part.times * found.intercept
            scores -= part.times * (part.features @ found.weights)
            tables.append((part.times, np.split(-found.weights, self.edges)))
        if self.binary:
            tables.append((1, [np.zeros(n + 1) for n in self.orders]))
        blocks = _blocks(scores, self.orders, tables)
        return Bound(name="one against the rest", value=value, intercept=intercept, blocks=blocks)

    def fit(self, items: IntArray) -> float | None:
        """p-value of the distance between the frequencies and those of any mixing distribution (chi-squared)."""
        problem = self._problem("binary" if self.binary else "smallest")
        totals = np.concatenate([np.full(n + 1, items[rows].sum()) for n, rows in self.orders.items()])
        p_values = []
        for part in self.parts:
            distance = misfit(problem.dense, *_frequencies(part.features, items, self.orders), totals)
            p_values.append(float(stats.chi2.sf(distance, sum(self.orders))))
        return min(1.0, len(p_values) * min(p_values))


class _Symmetric(Method):
    """The power sums of p, whichever class is which."""

    def __init__(self, patterns: CountPatterns, orders: dict[int, IntArray]) -> None:
        self.orders = orders
        powers = [min(n, _MOST_POWERS) for n in orders]
        self.problem = symmetric_problem(tuple(powers), patterns.class_count)
        features, self.shares = [], []
        for n, rows in orders.items():
            order = np.arange(2, min(n, _MOST_POWERS) + 1)[:, None]
            # chance that j labels drawn from n are all of a class that has 0 ... n of them
            self.shares.append(special.binom(np.arange(n + 1), order) / special.binom(n, order))
            counts, sizes = patterns.counts[rows].astype(np.float64), patterns.sizes[rows].astype(np.float64)
            for j in range(2, min(n, _MOST_POWERS) + 1):
                falling = counts.copy()
                falling.data = special.poch(counts.data - j + 1.0, j)
                column = np.zeros(len(patterns.items))
                total = special.poch(sizes - j + 1.0, j)
                column[rows] = np.asarray(falling.sum(axis=1)).ravel() / total
                features.append(column)
        self.features = np.column_stack(features)
        self.widths = [p - 1 for p in powers]

    def bound(self, items: IntArray, end: End, *, slack: float = 0.0) -> Bound:
        """The extreme of E[max p] itself."""
        frequencies, errors = _frequencies(self.features, items, self.orders, self.widths)
        found = self.problem.solve(
            frequencies, errors, "least" if end == "lower" else "greatest", slack=slack
        )
        weights = np.split(found.weights, np.cumsum(self.widths)[:-1])
        table = [share.T @ part for share, part in zip(self.shares, weights, strict=True)]
        blocks = _blocks(self.features @ found.weights, self.orders, [(self.problem.classes, table)])
        return Bound(name="power sums", value=found.value, intercept=found.intercept, blocks=blocks)


def _blocks(
    scores: FloatArray, orders: dict[int, IntArray], tables: Sequence[tuple[int, Sequence[FloatArray]]]
) -> tuple[Block, ...]:
    """The scores by block, and their range over all counts that n labels can have, seen or not.

    ``tables``: for so many classes at a time, what 0 ... n labels of one add to the score, for each n.
    """
    blocks = []
    for place, rows in enumerate(orders.values()):
        least, greatest = score_range([(times, by_order[place]) for times, by_order in tables])
        blocks.append(Block(rows=rows, scores=scores[rows], least=least, greatest=greatest))
    return tuple(blocks)


def _part(patterns: CountPatterns, group: list[int], orders: dict[int, IntArray]) -> _Part:
    """Chance of r labels of a class among n drawn from an item's, for each n and r, averaged over ``group``."""
    width = sum(n + 1 for n in orders)
    features = np.zeros((len(patterns.items), width))
    start = 0
    for n, rows in orders.items():
        sizes = patterns.sizes[rows]
        for k in group:
            count = patterns.counts[:, [k]].toarray().ravel()[rows]
            pairs, place = np.unique(np.column_stack([sizes, count]), axis=0, return_inverse=True)
            chance = np.asarray(stats.hypergeom.pmf(np.arange(n + 1), pairs[:, :1], pairs[:, 1:], n))
            features[rows, start : start + n + 1] += chance[place.ravel()] / len(group)
        start += n + 1
    return _Part(times=len(group), features=features)


def _frequencies(
    features: FloatArray, items: IntArray, orders: dict[int, IntArray], widths: list[int] | None = None
) -> tuple[FloatArray, FloatArray]:
    """Means of the features over the items of each block, and their standard errors, never zero: both (R,)."""
    means, errors = np.empty(features.shape[1]), np.empty(features.shape[1])
    start = 0
    for rows, width in zip(orders.values(), widths or [n + 1 for n in orders], strict=True):
        here = slice(start, start + width)
        count = float(items[rows].sum())
        part = features[rows, here]
        means[here] = items[rows] @ part / count
        variance = items[rows] @ (part - means[here]) ** 2 / count
        errors[here] = np.sqrt((variance * count + 0.25) / (count + 1.0) / count)
        start += width
    return means, errors
