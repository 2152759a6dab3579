"""Bounds of the ceiling from three or more repeats: population values, proofs by brute force, coverage."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from audit.errors import ArgumentError
from audit.moments import _methods, _part, moment_bounds, repeat_orders
from audit.moments_lp import (
    ClassProblem,
    SymmetricProblem,
    largest_error,
    project,
    score_range,
    smallest_error,
)
from audit.patterns import CountPatterns, FloatArray
from audit.results import Moments
from benchmarks.moments_cells import draw_repeats, held, held_mixed

ROOT = Path(__file__).parents[1]

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


@pytest.mark.parametrize(
    ("mixture", "shares", "lower", "upper"),
    [
        # Items with fewer labels add nothing to the moments that those with most show: the values for the largest n.
        (HOMOGENEOUS, {2: 0.7, 3: 0.3}, 0.8506, 0.900), (HOMOGENEOUS, {2: 0.5, 3: 0.3, 4: 0.2}, 0.900, 0.900),
        (MIXED, {2: 0.7, 3: 0.3}, 0.8805, 0.9305), (MIXED, {2: 0.7, 3: 0.2, 4: 0.1}, 0.8880, 0.9138),
        (MIXED, {3: 0.6, 5: 0.4}, 0.8904, 0.9124), (MIXED, {2: 0.4, 4: 0.3, 5: 0.3}, 0.8904, 0.9124),
    ],
)  # fmt: skip
def test_population_values_of_ragged_counts(
    mixture: list[tuple[float, float]], shares: dict[int, float], lower: float, upper: float
) -> None:
    parts = [population(mixture, n, items=round(10**9 * share)) for n, share in shares.items()]
    found = moment_bounds(
        CountPatterns.from_counts(
            np.vstack([part.counts.toarray() for part in parts]),
            items=np.concatenate([part.items for part in parts]),
        )
    )
    assert (found.lower, found.upper) == (pytest.approx(lower, abs=5e-4), pytest.approx(upper, abs=5e-4))
    assert found.repeats == max(shares)
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


@given(
    st.integers(2, 5),
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.integers(0, 2**32 - 1),
)
def test_the_range_of_scores_is_that_over_all_counts(n: int, kinds: list[int], seed: int) -> None:
    """By brute force over every way to give n labels to the classes."""
    rng = np.random.default_rng(seed)
    tables = [(times, rng.normal(size=n + 1)) for times in kinds]
    each = [table for times, table in tables for _ in range(times)]
    scores = [
        sum(table[count] for table, count in zip(each, counts, strict=True))
        for counts in itertools.product(range(n + 1), repeat=min(len(each), 5))
        if sum(counts) == n
        for counts in [(*counts, *[0] * (len(each) - len(counts)))]
    ]
    least, greatest = score_range(tables)
    if len(each) <= 5:
        assert (least, greatest) == (pytest.approx(min(scores)), pytest.approx(max(scores)))
    else:
        assert least <= min(scores) + 1e-9
        assert greatest >= max(scores) - 1e-9


def test_many_classes_of_a_kind_are_no_more_than_the_labels() -> None:
    """Of 1,000 classes no more than three of three labels are seen: 997 add their zero, three one label each."""
    assert score_range([(1_000, np.array([0.001, 1.0, 0.5, 0.2]))]) == (
        pytest.approx(0.2 + 999 * 0.001),
        pytest.approx(3.0 + 997 * 0.001),
    )


@pytest.mark.parametrize(("classes", "n"), [(3, 5), (5, 3)])
def test_few_items_that_happen_to_agree_do_not_fool_the_band(classes: int, n: int) -> None:
    """Thirty items, of which 5 % are coins: a half of them often shows no conflict, and the band must allow for some.

    The ceiling is .95 + .05/2 = .975. A band that knows only the counts that it saw holds it in .7 of such samples of
    three classes.
    """
    got = held(30, {n: 1.0}, {0.0: 0.95, 0.5: 0.05}, classes=classes, samples=10, seed=3)
    assert got.share == 1.0


def test_the_ends_with_sampling_error_lie_outside_the_point_bounds() -> None:
    sizes = {2: 0.7, 3: 0.2, 4: 0.1}
    for seed in range(12):
        found = moment_bounds(draw_repeats(300, sizes, {0.1: 1.0}, seed=seed), seed=seed)
        assert found.low <= found.lower <= found.upper <= found.high  # type: ignore[operator]


def test_a_bound_with_large_weights_is_not_chosen_for_its_luck() -> None:
    """Labels of 2, 3 and 4 an item that nearly contradict one another: a contrast of theirs looks sharp, and is not.

    Its mean over the half that chose it is .47 for a ceiling of .9, with a standard error of .3; the other half then
    gives anything. Pairs alone give .93 within .01.
    """
    patterns = draw_repeats(2_000, {2: 0.7, 3: 0.2, 4: 0.1}, {0.02: 0.8, 0.42: 0.2}, seed=1_000_003 * 2_002)
    found = moment_bounds(patterns)
    assert found.high is not None
    assert 0.9 < found.high < 0.96


def test_the_test_of_independent_draws_rarely_rejects_them() -> None:
    """Ragged counts, with few items of each number of labels: one item in a rare cell is no proof against them."""
    sizes = dict.fromkeys(range(2, 10), 1 / 8)
    for seed in range(60):
        patterns = draw_repeats(300, sizes, {0.1: 1.0}, seed=seed)
        (method, *_) = _methods(patterns, repeat_orders(patterns))
        p_value = method.fit(patterns.items)
        assert p_value is not None
        assert p_value > 0.001
    # but nine items in ten split two to one on purpose are seen: coins split so three times in four
    split = CountPatterns.from_counts([[3, 0], [0, 3], [2, 1], [1, 2]], items=[15, 15, 135, 135])
    found = moment_bounds(split)
    assert found.fit_p_value is not None
    assert found.fit_p_value < 0.001


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
    """40 samples of 300 items: at 95 % two standard errors leave .88; docs/coverage-moments.md has the thousands."""
    samples = 40 if classes == 2 else 10
    assert held(300, sizes, rates, classes=classes, samples=samples, seed=1).share >= 0.88


def rows_of(page: str, heading: str) -> list[dict[str, str]]:
    """The table under a heading, a dict for each row."""
    part = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [
        [cell.strip() for cell in line.strip("| ").split("|")] for line in part.splitlines() if "|" in line
    ]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]


def test_the_page_of_the_study_holds_what_was_promised() -> None:
    """1,000 samples of items of every kind, at 95 %; and a few of them here, computed anew."""
    page = (ROOT / "docs" / "coverage-moments.md").read_text("utf-8")
    drawn = rows_of(page, "Items of every kind")
    assert {row["K"] for row in drawn} == {"2", "3", "5"}
    assert {row["samples"] for row in drawn} == {"1,000"}
    assert all(float(row["held"]) >= 0.95 for row in drawn)
    rows = rows_of(page, "Equal and mixed noise")
    assert {(row["K"], row["items"]) for row in rows} >= {(k, n) for k in "235" for n in ("50", "300")}
    for row in rows:
        assert float(row["held"]) >= 0.95, row
        assert float(row["unfit"]) <= 0.01, row
    assert held_mixed(200, (3, 4, 5), samples=12, seed=1)[0] >= 0.9


@pytest.mark.parametrize(
    ("script", "page"), [("coverage_moments.py", "coverage-moments.md"), ("coverage_study.py", "coverage.md")]
)
def test_the_scripts_of_the_study_run(script: str, page: str) -> None:
    """Each with a sample or two: the tables and words of the page, and no page is written."""
    path = ROOT / "docs" / page
    before = path.read_bytes()
    ran = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / script, "--trial"], capture_output=True, text=True, timeout=300,
        check=False, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert path.read_bytes() == before

    def heads(text: str) -> list[str]:
        lines = text.splitlines()
        titles = [line for line in lines if line.startswith("#")]
        tables = [line for line, under in itertools.pairwise(lines) if under.startswith("| ---")]
        # how many n there are is another matter
        return titles + [line.partition(" n = ")[0] for line in tables]

    assert heads(ran.stdout) == heads(path.read_text("utf-8"))


def test_make_study_runs_both_scripts() -> None:
    recipe = (ROOT / "Makefile").read_text("utf-8").partition("\nstudy:")[2].partition("\n\n")[0]
    assert recipe.count("benchmarks/coverage_study.py") == recipe.count("benchmarks/coverage_moments.py") == 1
