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

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special, stats

from audit.intervals import check_level, check_seed
from audit.moments_lp import ClassProblem, Side, SymmetricProblem, project
from audit.patterns import CountPatterns, FloatArray, IntArray
from audit.results import Moments

__all__ = ["moment_bounds", "repeat_orders"]

End = Literal["lower", "upper"]

#: Most labels of an item that are used, and the fewest items that a number of labels must have to count by itself.
_MOST_LABELS, _FEWEST_ITEMS = 10, 30

#: More items than this are halved pattern by pattern, without chance.
_MOST_DEALT = 10**9

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
        _limit(choice, orders, chosen.items, end, probability=(1.0 + level) / 2.0, seed=seed)
        for end in ("lower", "upper")
    )  # fmt: skip
    return Moments(
        lower=ends["lower"].value,
        upper=max(ends["upper"].value, ends["lower"].value),
        low=max(0.0, low),
        high=min(1.0, high),
        repeats=max(orders),
        items=int(chosen.items[used].sum()),
        method=f"linear programme, {ends['lower'].name} (lower) and {ends['upper'].name} (upper)"
        if chosen.class_count > 2
        else "linear programme",
        fit_p_value=methods[0].fit(chosen.items),
    )


def _methods(patterns: CountPatterns, orders: dict[int, IntArray]) -> list[_Method]:
    rest: list[_Method] = [_OneAgainstRest(patterns, orders)]
    return rest if patterns.class_count == 2 else [*rest, _Symmetric(patterns, orders)]


@dataclass(frozen=True, kw_only=True)
class _Block:
    """Items that count with n labels: their patterns (indices), and the scores (least, greatest) they can have."""

    rows: IntArray
    scores: FloatArray
    least: float
    greatest: float


@dataclass(frozen=True, kw_only=True)
class _Bound:
    """A bound of the ceiling: its value, and the scores of the patterns.

    Their means over each block sum with ``intercept`` to a number that bounds the ceiling, whatever the items are.
    """

    name: str
    value: float
    intercept: float
    blocks: tuple[_Block, ...]


def _best(bounds: Sequence[_Bound], end: End) -> _Bound:
    return max(bounds, key=lambda b: b.value if end == "lower" else -b.value)


class _Method:
    """Something that bounds the ceiling from counts."""

    def bound(self, items: IntArray, end: End, *, slack: float = 0.0) -> _Bound:
        raise NotImplementedError

    def fit(self, items: IntArray) -> float | None:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class _Part:
    """Counts of one class (or the mean over ``times`` pooled ones): features (P, R), zero outside a pattern's block."""

    times: int
    features: FloatArray


class _OneAgainstRest(_Method):
    """Each class against the rest; with two classes, the one problem there is."""

    def __init__(self, patterns: CountPatterns, orders: dict[int, IntArray]) -> None:
        self.orders = orders
        self.binary = patterns.class_count == 2
        by_size = np.argsort(-np.asarray(patterns.counts.T @ patterns.items), kind="stable")
        groups = [[int(k)] for k in by_size[: 1 if self.binary else _MOST_CLASSES]]
        if not self.binary and by_size[_MOST_CLASSES:].size:
            groups.append([int(k) for k in by_size[_MOST_CLASSES:]])
        self.parts = [_part(patterns, group, orders) for group in groups]
        self.problems: dict[str, ClassProblem] = {}

    def _problem(self, error: str) -> ClassProblem:
        if error not in self.problems:
            self.problems[error] = ClassProblem(list(self.orders), error=error)
        return self.problems[error]

    def bound(self, items: IntArray, end: End, *, slack: float = 0.0) -> _Bound:
        """1 - sum_k E[b(p_k)], the extremes of each class by themselves."""
        error = "binary" if self.binary else "smallest" if end == "upper" else "largest"
        side: Side = "least" if end == "upper" else "greatest"
        problem = self._problem(error)
        value, intercept = 1.0, 1.0
        scores = np.zeros(len(items))
        for part in self.parts:
            frequencies, errors = _frequencies(part.features, items, self.orders)
            if not slack:
                frequencies, _ = project(problem.dense, frequencies, errors)
            found = problem.solve(frequencies, errors, side, slack=slack)
            value -= part.times * found.value
            intercept -= part.times * found.intercept
            scores -= part.times * (part.features @ found.weights)
        cells = None if not self.binary else -found.weights
        blocks = _blocks(scores, self.orders, cells)
        return _Bound(name="one against the rest", value=value, intercept=intercept, blocks=blocks)

    def fit(self, items: IntArray) -> float | None:
        """p-value of the distance between the frequencies and those of any mixing distribution (chi-squared)."""
        problem = self._problem("binary" if self.binary else "smallest")
        p_values = []
        for part in self.parts:
            frequencies, errors = _frequencies(part.features, items, self.orders)
            distance = project(problem.dense, frequencies, errors)[1]
            p_values.append(float(stats.chi2.sf(distance, sum(self.orders))))
        return min(1.0, len(p_values) * min(p_values))


class _Symmetric(_Method):
    """The power sums of p, whichever class is which."""

    def __init__(self, patterns: CountPatterns, orders: dict[int, IntArray]) -> None:
        self.orders = orders
        powers = [min(n, _MOST_POWERS) for n in orders]
        self.problem = SymmetricProblem(powers, classes=patterns.class_count)
        features = []
        for n, rows in orders.items():
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

    def bound(self, items: IntArray, end: End, *, slack: float = 0.0) -> _Bound:
        """The extreme of E[max p] itself."""
        frequencies, errors = _frequencies(self.features, items, self.orders, self.widths)
        found = self.problem.solve(
            frequencies, errors, "least" if end == "lower" else "greatest", slack=slack
        )
        blocks = _blocks(self.features @ found.weights, self.orders, None)
        return _Bound(name="power sums", value=found.value, intercept=found.intercept, blocks=blocks)


def _blocks(scores: FloatArray, orders: dict[int, IntArray], cells: FloatArray | None) -> tuple[_Block, ...]:
    """The scores by block; ``cells`` has the score of every count that there can be, where that is known."""
    blocks, start = [], 0
    for n, rows in orders.items():
        range_ = scores[rows] if cells is None else cells[start : start + n + 1]
        start += n + 1
        blocks.append(
            _Block(rows=rows, scores=scores[rows], least=float(range_.min()), greatest=float(range_.max()))
        )
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


def _limit(
    methods: Sequence[_Method],
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
        judged = [_mean(bound, learn, sign) for bound in bounds]
        widths = [sign * mean + z * math.sqrt(spread / 2.0) for mean, spread in judged]
        mean, spread = _mean(bounds[int(np.argmin(widths))], judge, sign)
        estimate += 0.5 * mean
        variance += 0.25 * spread
    return estimate + sign * z * math.sqrt(variance)


def _mean(bound: _Bound, items: IntArray, sign: float) -> tuple[float, float]:
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
