"""Linear programmes over mixing distributions: how large or small E[h(p)] can be, given what repeats show of p.

An item's chances p come from an unknown distribution w on a grid. What n labels show of it are expectations F w
(chances of counts, or power sums). The programme makes the objective extreme over all w that give the observed
frequencies f, each up to its slack. Its dual is a function of the counts, ``intercept`` + sum of ``weights`` times
what is counted, whose expectation lies on the safe side of E[h(p)] whatever w is: that is what an interval needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from scipy import optimize, sparse, stats

from audit.patterns import FloatArray

__all__ = [
    "ClassProblem",
    "Side",
    "Solution",
    "SymmetricProblem",
    "binary_error",
    "chances",
    "class_problem",
    "largest_error",
    "misfit",
    "project",
    "score_range",
    "smallest_error",
    "symmetric_problem",
]

#: The end of the band that is wanted: the least or the greatest value of the objective.
Side = Literal["least", "greatest"]

#: Intervals of the grid of p, and of the finer one on which a dual function is checked.
_STEPS, _FINE = 200, 2_000

#: Grids of the symmetric problem: of the largest chance M, and of the others as shares of min(M, 1 - M).
_STEP, _OTHERS, _FINER = 0.015, 12, 300

#: Slack that is no more than rounding; larger ones, in units of the standard error, tried one after the other.
_ROUNDING = 1e-9
_GROWTH = (0.02, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 1e9)

#: Times that the nearest frequencies are found again with the errors of those found before.
_FITS = 2

#: Presolve costs more than it saves: the programmes are small, and nothing in them can be left out.
_HIGHS: Any = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9, "presolve": False}

#: Problems that are kept: they depend on the numbers of labels alone.
_KEPT = 32


@dataclass(frozen=True, kw_only=True)
class Solution:
    """The extreme value, and the dual function that proves it: ``intercept`` and ``weights`` (shape (R,))."""

    value: float
    intercept: float
    weights: FloatArray


def binary_error(p: FloatArray) -> FloatArray:
    """min(p, 1 - p): the error of the better answer where there are two classes."""
    return np.minimum(p, 1.0 - p)


def smallest_error(p: FloatArray) -> FloatArray:
    """b with sum_k b(p_k) <= 1 - max p: half of min(p, 1 - p)."""
    return 0.5 * np.minimum(p, 1.0 - p)


def largest_error(p: FloatArray) -> FloatArray:
    """b with sum_k b(p_k) >= 1 - max p: (1 - p) min(p, 1 - p)."""
    return (1.0 - p) * np.minimum(p, 1.0 - p)


def chances(orders: Sequence[int], p: FloatArray) -> FloatArray:
    """Chance of 0 ... n labels of a class among n, for each n of ``orders``, one below the other: (R, len(p))."""
    return np.vstack([stats.binom.pmf(np.arange(n + 1)[:, None], n, p[None, :]) for n in orders])


def project(table: FloatArray, frequencies: FloatArray, errors: FloatArray) -> tuple[FloatArray, float]:
    """The expectations nearest to ``frequencies`` that some mixing distribution has, and their distance.

    ``table`` (R, G) has the expectations of each point of the grid. The distance is the sum of squares in units of
    ``errors``; the point is unique, as the expectations of all distributions form a convex set.
    """
    scaled = np.vstack([table / errors[:, None], np.full((1, table.shape[1]), 1e4)])
    wanted = np.append(frequencies / errors, 1e4)
    weights, _ = optimize.nnls(scaled, wanted, maxiter=50 * table.shape[1])
    nearest = table @ (weights / weights.sum())
    return nearest, float(np.sum(((nearest - frequencies) / errors) ** 2))


def misfit(table: FloatArray, frequencies: FloatArray, errors: FloatArray, totals: FloatArray) -> float:
    """Pearson's chi-squared between the counts and the nearest ones that a mixing distribution has.

    Squares are divided by the fitted chance over ``totals`` (R,), the items behind each frequency, and by no less than
    that of one expected item: a single item in a cell that should be empty is no proof. At most as large as the
    statistic at the true chances, which has as many degrees of freedom as cells less one for each number of labels.
    """
    nearest, distance = project(table, frequencies, errors)
    for _ in range(_FITS):
        expected = np.sqrt(np.maximum(nearest, 1.0 / totals) / totals)
        nearest, distance = project(table, frequencies, expected)
    return distance


def score_range(tables: Sequence[tuple[int, FloatArray]]) -> tuple[float, float]:
    """The least and the greatest score of an item's n labels over all counts of its classes.

    A score is a sum over classes. ``tables`` has, for so many classes at a time, what 0 ... n labels of one of them
    add to it, (n + 1,): at most n classes have labels, so no more than n of each kind are looked at.
    """
    n = len(tables[0][1]) - 1
    base = sum(times * float(table[0]) for times, table in tables)
    taken = np.arange(n + 1)[:, None] - np.arange(n + 1)[None, :]
    ends = []
    for sign in (1.0, -1.0):
        best = np.append(0.0, np.full(n, np.inf))  # of 0 ... n labels given out so far
        for times, table in tables:
            more = sign * (table - table[0])
            for _ in range(min(times, n)):
                best = np.min(np.where(taken >= 0, best[taken], np.inf) + more, axis=1)
        ends.append(base + sign * float(best[n]))
    return ends[0], ends[1]


class _Problem:
    """What the two kinds of problems share: growing slack until something is near enough."""

    objective: FloatArray
    table: sparse.csr_array
    structure: sparse.csr_array

    @cached_property
    def _equal(self) -> FloatArray:
        """The equalities of every programme: ``table`` with a column of slack for each row, then ``structure``."""
        one = sparse.eye_array(self.table.shape[0])
        equal: Any = sparse.block_array([[self.table, one], [self.structure, None]], format="csr")
        return np.asarray(equal.toarray(), np.float64)

    def _extreme(
        self, frequencies: FloatArray, slack: FloatArray, side: Side
    ) -> tuple[float, FloatArray] | None:
        """Value and duals (of the rows of ``table``, then of ``structure``); None where nothing is near enough.

        The first row of ``structure`` sums to 1, the others to 0.
        """
        rows, columns = self.table.shape
        sign = 1.0 if side == "least" else -1.0
        right = np.concatenate([frequencies, [1.0], np.zeros(self.structure.shape[0] - 1)])
        limits = np.vstack([np.tile([0.0, np.inf], (columns, 1)), np.column_stack([-slack, slack])])
        linprog: Any = optimize.linprog  # its stubs do not know all of what it takes
        found = linprog(
            np.concatenate([sign * self.objective, np.zeros(rows)]), A_eq=self._equal, b_eq=right, bounds=limits,
            method="highs", options=_HIGHS,
        )  # fmt: skip
        if found.status != 0:
            return None
        return sign * float(found.fun), sign * np.asarray(found.eqlin.marginals, np.float64)

    def solve(
        self, frequencies: FloatArray, errors: FloatArray, side: Side, *, slack: float = 0.0
    ) -> Solution:
        """The extreme of the objective over all distributions near ``frequencies`` (R,).

        Each frequency may be off by ``slack`` of its ``errors`` (R,). Where no distribution is so near, the slack grows
        until one is: noise never makes the answer empty.
        """
        found = None
        for factor in (slack, *(g for g in _GROWTH if g > slack)):
            allowed = factor * errors + _ROUNDING
            found = self._extreme(frequencies, allowed, side)
            if found is not None:
                break
        if found is None:
            raise RuntimeError("a linear programme over all distributions has a solution")
        value, duals = found
        rows = self.table.shape[0]
        weights, intercept = duals[:rows], float(duals[rows])
        off = self._violation(intercept, weights, duals[rows:], side)
        return Solution(
            value=value, intercept=intercept - off if side == "least" else intercept + off, weights=weights
        )

    def _violation(self, intercept: float, weights: FloatArray, rest: FloatArray, side: Side) -> float:
        raise NotImplementedError


class ClassProblem(_Problem):
    """Bounds of E[h(p)] from the counts of one class among n labels, for one n or several."""

    def __init__(self, orders: Sequence[int], *, error: str) -> None:
        self.error = {"binary": binary_error, "smallest": smallest_error, "largest": largest_error}[error]
        self.orders = tuple(orders)
        grid = np.linspace(0.0, 1.0, _STEPS + 1)
        self.objective = self.error(grid)
        self.dense = chances(orders, grid)
        self.table = sparse.csr_array(self.dense)
        self.structure = sparse.csr_array(np.ones((1, _STEPS + 1)))
        self._fine = np.linspace(0.0, 1.0, _FINE + 1)
        self._fine_table = chances(orders, self._fine)

    def _violation(self, intercept: float, weights: FloatArray, rest: FloatArray, side: Side) -> float:
        gap = self.error(self._fine) - (intercept + weights @ self._fine_table)
        return max(0.0, float(-gap.min() if side == "least" else gap.max()))


class SymmetricProblem(_Problem):
    """Bounds of E[max p] from the power sums s_j = sum_k p_k^j, j = 2 ... n, for one n or several.

    A distribution over M = max p; for each M the other K - 1 chances are taken as a measure of mass K - 1 and mean
    total 1 - M on [0, min(M, 1 - M)], which allows at least all that they can be: the bounds are never too narrow.
    """

    def __init__(self, orders: Sequence[int], *, classes: int) -> None:
        self.orders, self.classes = tuple(orders), classes
        steps = round((1.0 - 1.0 / classes) / _STEP)
        largest = np.unique(np.append(np.linspace(1.0 / classes, 1.0, steps + 1), 0.5))
        shares = np.linspace(0.0, 1.0, _OTHERS + 1)
        others = np.minimum(largest, 1.0 - largest)[:, None] * shares[None, :]
        count, width = others.shape
        self._largest = largest
        powers = [j for n in orders for j in range(2, n + 1)]
        flat = others.ravel()
        self.table = sparse.csr_array(np.vstack([np.concatenate([largest**j, flat**j]) for j in powers]))
        self.objective = np.concatenate([largest, np.zeros(flat.size)])
        one = sparse.csr_array(np.concatenate([np.ones(count), np.zeros(flat.size)])[None, :])
        blocks = sparse.kron(sparse.eye_array(count), np.ones((1, width)))
        mass = sparse.hstack([-(classes - 1.0) * sparse.eye_array(count), blocks])
        total = sparse.hstack([-sparse.diags_array(1.0 - largest), blocks @ sparse.diags_array(flat)])
        self.structure = sparse.csr_array(sparse.vstack([one, mass, total]))
        self._powers = powers

    def _violation(self, intercept: float, weights: FloatArray, rest: FloatArray, side: Side) -> float:
        """How far the dual function may be on the wrong side between the points of the grid."""
        slopes = rest[1 + len(self._largest) :]
        fine = np.unique(np.append(np.linspace(self._largest[0], 1.0, _FINER + 1), self._largest))
        slope = -np.interp(fine, self._largest, slopes)
        others = np.minimum(fine, 1.0 - fine)[:, None] * np.linspace(0.0, 1.0, _FINER // 4 + 1)[None, :]
        sign = 1.0 if side == "greatest" else -1.0

        def function(x: FloatArray) -> FloatArray:
            return np.asarray(sum(a * x**j for a, j in zip(weights, self._powers, strict=True)), np.float64)

        least = np.min(sign * (function(others) - slope[:, None] * others), axis=1)
        bound = sign * (intercept + function(fine) + slope * (1.0 - fine)) + (self.classes - 1.0) * least
        return max(0.0, float(np.max(sign * fine - bound)))


@lru_cache(maxsize=_KEPT)
def class_problem(orders: tuple[int, ...], error: str) -> ClassProblem:
    """A :class:`ClassProblem`, made once."""
    return ClassProblem(orders, error=error)


@lru_cache(maxsize=_KEPT)
def symmetric_problem(orders: tuple[int, ...], classes: int) -> SymmetricProblem:
    """A :class:`SymmetricProblem`, made once."""
    return SymmetricProblem(orders, classes=classes)
