"""Bounds of the ceiling from three or more repeats: population values, proofs by brute force, coverage."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from audit.errors import ArgumentError
from audit.moments import moment_bounds, repeat_orders
from audit.moments_lp import ClassProblem, SymmetricProblem, largest_error, project, smallest_error
from audit.patterns import CountPatterns, FloatArray
from audit.results import Moments
from benchmarks.moments_cells import draw_repeats, held, held_mixed

#: (chance of class 1, share of the items): pi = .3 and eps = .1 everywhere; 80 % at .02 and 20 % at .42.
HOMOGENEOUS = [(0.9, 0.3), (0.1, 0.7)]
MIXED = [(0.98, 0.24), (0.02, 0.56), (0.58, 0.06), (0.42, 0.14)]


def frequencies(mixture: list[tuple[float, float]], n: int) -> FloatArray:
    return np.asarray(
        sum(share * stats.binom.pmf(np.arange(n + 1), n, p) for p, share in mixture), np.float64
    )


def population(mixture: list[tuple[float, float]], n: int, items: int = 10**9) -> CountPatterns:
    """Counts in the exact proportions of a mixture."""
    ones = np.arange(n + 1)
    return CountPatterns.from_counts(
        np.column_stack([n - ones, ones]), items=np.rint(items * frequencies(mixture, n)).astype(np.int64)
    )


@pytest.mark.parametrize(
    ("mixture", "n", "lower", "upper"),
    [
        # The values that the design states, to the digits it gives; n = 2 by hand: 1 - d = 1 - 2(.1)(.9) = .82.
        (HOMOGENEOUS, 2, 0.820, 0.900), (HOMOGENEOUS, 3, 0.8506, 0.900), (HOMOGENEOUS, 4, 0.900, 0.900),
        (MIXED, 2, 0.8712, 0.9308), (MIXED, 3, 0.8805, 0.9305), (MIXED, 4, 0.8880, 0.9138), (MIXED, 5, 0.8904, 0.9124),
    ],
)  # fmt: skip
def test_population_values(mixture: list[tuple[float, float]], n: int, lower: float, upper: float) -> None:
    problem = ClassProblem([n], error="binary")
    f, none = frequencies(mixture, n), np.zeros(n + 1)
    assert 1.0 - problem.solve(f, none, "greatest").value == pytest.approx(lower, abs=5e-5)
    assert 1.0 - problem.solve(f, none, "least").value == pytest.approx(upper, abs=5e-5)
    if n >= 3:
        found = moment_bounds(population(mixture, n))
        assert (found.lower, found.upper) == (pytest.approx(lower, abs=5e-4), pytest.approx(upper, abs=5e-4))
        assert found.repeats == n
        assert found.fit_p_value == pytest.approx(1.0)


@pytest.mark.parametrize("classes", [3, 10])
def test_many_classes_reach_the_truth_with_four_labels(classes: int) -> None:
    """Equal flips of eps = .1, spread evenly: four labels leave nothing open, as with two classes."""
    p = np.array([0.9, *[0.1 / (classes - 1)] * (classes - 1)])
    problem = SymmetricProblem([4], classes=classes)
    powers, errors = np.array([np.sum(p**j) for j in (2, 3, 4)]), np.full(3, 1e-4)
    assert problem.solve(powers, errors, "least").value == pytest.approx(0.9, abs=0.005)
    assert problem.solve(powers, errors, "greatest").value == pytest.approx(0.9, abs=0.005)
    # pairs give the band of the flip rate: 1 - d and 1 - eps
    pairs = SymmetricProblem([2], classes=classes)
    d = 1.0 - powers[0]
    assert pairs.solve(powers[:1], errors[:1], "least", slack=0.0).value == pytest.approx(1.0 - d, abs=1e-3)
    assert pairs.solve(powers[:1], errors[:1], "greatest", slack=0.0).value == pytest.approx(0.9, abs=1e-3)


@given(st.lists(st.floats(0.001, 1.0), min_size=2, max_size=8))
def test_one_against_rest_lies_on_both_sides_of_the_error(weights: list[float]) -> None:
    p = np.array(weights) / sum(weights)
    error = 1.0 - p.max()
    assert smallest_error(p).sum() <= error + 1e-12
    assert largest_error(p).sum() >= error - 1e-12
    if len(p) == 2:
        assert smallest_error(p).sum() == pytest.approx(error)
        assert largest_error(p).sum() == pytest.approx(error)


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("side", ["least", "greatest"])
def test_the_dual_bounds_every_single_item(n: int, side: str) -> None:
    """A dual function is on its side of min(p, 1 - p) for each p, so its mean bounds any mixture."""
    problem = ClassProblem([n], error="binary")
    found = problem.solve(frequencies(MIXED, n), np.full(n + 1, 0.01), side, slack=1.0)  # type: ignore[arg-type]
    for p in np.linspace(0.0, 1.0, 997):
        mean = found.intercept + float(found.weights @ stats.binom.pmf(np.arange(n + 1), n, p))
        error = min(p, 1.0 - p)
        assert mean <= error + 1e-6 if side == "least" else mean >= error - 1e-6


@pytest.mark.parametrize("side", ["least", "greatest"])
def test_the_symmetric_dual_bounds_every_single_item(side: str) -> None:
    problem = SymmetricProblem([4], classes=4)
    p = np.array([0.7, 0.2, 0.1, 0.0])
    powers = np.array([np.sum(p**j) for j in (2, 3, 4)])
    found = problem.solve(powers, np.full(3, 0.02), side, slack=1.0)  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    corners = [np.array(c) / sum(c) for c in itertools.product((0, 1, 2, 5), repeat=4) if sum(c)]
    for q in (*corners, *rng.dirichlet(np.full(4, 0.4), 500)):
        mean = found.intercept + float(found.weights @ [np.sum(q**j) for j in (2, 3, 4)])
        assert mean <= q.max() + 1e-4 if side == "least" else mean >= q.max() - 1e-4


def test_the_nearest_point_is_the_frequencies_where_they_can_be() -> None:
    problem = ClassProblem([3], error="binary")
    f = frequencies(MIXED, 3)
    nearest, distance = project(problem.dense, f, np.full(4, 0.01))
    assert nearest == pytest.approx(f, abs=1e-7)
    assert distance < 1e-8
    # three labels that always split 2 to 1 are no independent draws: the nearest point is elsewhere
    nearest, distance = project(problem.dense, np.array([0.0, 0.5, 0.5, 0.0]), np.full(4, 0.01))
    assert distance > 100.0
    assert nearest.sum() == pytest.approx(1.0)


def test_noise_is_never_infeasible() -> None:
    """Counts that no mixture has give an answer, and say that they do not fit."""
    split = CountPatterns.from_counts([[2, 1], [1, 2]], items=[300, 300])
    found = moment_bounds(split)
    assert found.lower is not None
    assert found.upper is not None
    assert 0.0 <= found.low <= found.lower <= found.upper <= found.high <= 1.0  # type: ignore[operator]
    assert found.fit_p_value is not None
    assert found.fit_p_value < 1e-6
    rng = np.random.default_rng(3)
    for _ in range(10):
        n = int(rng.integers(3, 6))
        made = moment_bounds(CountPatterns.from_counts(rng.multinomial(n, [0.5, 0.5], size=40)))
        assert made.lower is not None


def test_ragged_counts_use_the_largest_number_that_enough_items_have() -> None:
    counts = [[2, 0], [1, 1], [3, 0], [2, 1], [9, 3], [12, 0]]
    patterns = CountPatterns.from_counts(counts, items=[400, 100, 200, 50, 20, 25])
    orders = repeat_orders(patterns)
    assert list(orders) == [10, 3, 2]
    assert [int(patterns.items[rows].sum()) for rows in orders.values()] == [45, 250, 500]
    assert list(repeat_orders(patterns, most=3)) == [3, 2]
    found = moment_bounds(patterns)
    assert (found.repeats, found.items) == (10, 795)


def test_a_larger_item_counts_as_a_random_part_of_itself() -> None:
    """Of five labels, two of them 1, three drawn at random have k of them 1 with hypergeometric chances."""
    only = CountPatterns.from_counts([[3, 2]], items=[100])
    cut = CountPatterns.from_counts([[3, 0], [2, 1], [1, 2]], items=[10, 60, 30])
    few = repeat_orders(only, most=3)
    assert list(few) == [3]
    from audit.moments import _part

    features = _part(only, [1], few).features
    assert features[0] == pytest.approx([0.1, 0.6, 0.3, 0.0])
    assert features[0][:3] == pytest.approx(cut.items / 100)


@pytest.mark.parametrize(
    ("counts", "items", "words"),
    [
        ([[2, 0], [1, 1]], [100, 20], "fewer than 30 items have three labels"),
        ([[3, 0], [2, 1]], [20, 9], "fewer than 30 items have three labels"),
        ([[3], [4]], [50, 50], "only one class"),
    ],
)
def test_nothing_without_enough_labels(counts: list[list[int]], items: list[int], words: str) -> None:
    found = moment_bounds(CountPatterns.from_counts(counts, items=items))
    assert found.reason is not None
    assert words in found.reason
    assert (found.lower, found.upper, found.low, found.high, found.repeats) == (None,) * 5


def test_a_refusal_is_passed_on() -> None:
    patterns = CountPatterns.from_counts([[3, 0], [2, 1]], items=[80, 20])
    assert moment_bounds(patterns, refused="looks de-duplicated") == Moments(reason="looks de-duplicated")
    with pytest.raises(ArgumentError):
        moment_bounds(patterns, level=1.0)
    with pytest.raises(ArgumentError):
        moment_bounds(patterns, seed=-1)


def test_no_conflict_at_all() -> None:
    found = moment_bounds(CountPatterns.from_counts([[3, 0], [0, 3]], items=[70, 30]))
    assert found.lower == pytest.approx(1.0, abs=1e-6)
    assert found.high == 1.0
    assert found.low is not None
    assert found.low < 1.0


def test_the_seed_decides_and_order_does_not() -> None:
    patterns = draw_repeats(300, {3: 0.5, 4: 0.5}, {0.02: 0.8, 0.42: 0.2}, classes=3, seed=5)
    again = moment_bounds(patterns, seed=7)
    assert moment_bounds(patterns, seed=7) == again
    assert moment_bounds(patterns, seed=8).lower == again.lower


def test_more_items_narrow_the_band_to_the_point() -> None:
    widths = []
    for items in (10**3, 10**5, 10**8):
        found = moment_bounds(population(MIXED, 4, items))
        assert found.low is not None
        assert found.high is not None
        assert found.low <= found.lower <= found.upper <= found.high  # type: ignore[operator]
        widths.append(found.high - found.low)
    assert widths[0] > widths[1] > widths[2]
    assert widths[2] == pytest.approx(0.9138 - 0.8880, abs=2e-3)


@pytest.mark.parametrize(
    ("sizes", "rates", "classes"),
    [
        ({3: 1.0}, {0.1: 1.0}, 2),
        ({5: 1.0}, {0.1: 1.0}, 2),
        ({2: 0.7, 3: 0.2, 4: 0.1}, {0.02: 0.8, 0.42: 0.2}, 2),
        ({4: 1.0}, {0.02: 0.8, 0.42: 0.2}, 3),
    ],
)
def test_a_small_study_covers(sizes: dict[int, float], rates: dict[float, float], classes: int) -> None:
    """40 samples of 300 items: at 95 % two standard errors leave .88; docs/coverage.md has the thousands."""
    samples = 40 if classes == 2 else 10
    assert held(300, sizes, rates, classes=classes, samples=samples, seed=1).share >= 0.88


def test_the_page_of_the_study_holds_what_was_promised() -> None:
    """1,000 samples of items of every kind, at 95 %; and a few of them here, computed anew."""
    page = (Path(__file__).parents[1] / "docs" / "coverage-moments.md").read_text("utf-8")
    (row,) = [line for line in page.splitlines() if "| 1,000 |" in line]
    assert float(row.strip("| ").split("|")[-1]) >= 0.95
    rows = [
        line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith(("| 2 |", "| 3 |"))
    ]
    assert len(rows) >= 15
    assert all(float(row[4]) >= 0.90 for row in rows)  # .95 less two standard errors of the smallest cells
    assert held_mixed(200, (3, 4, 5), samples=12, seed=1) >= 0.9
