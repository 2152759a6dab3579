"""Intervals: golden numbers, agreement with SciPy, exact coverage by enumeration, and the bootstrap's law."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import audit.intervals
from audit.errors import ArgumentError
from audit.fliprate import disagreement_of, flip_rate
from audit.intervals import (
    beta_limit,
    bootstrap_totals,
    clopper_pearson,
    effective_interval,
    no_conflict_upper,
    wilson,
)

counts = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
levels = st.floats(0.5, 0.999)
scores = st.lists(st.floats(0, 1), min_size=1, max_size=40)


# --- proportions -----------------------------------------------------------------------------------------------


def test_wilson_by_hand() -> None:
    # 18 of 100, z = 1.959964, z^2 = 3.841459: centre (.18 + 3.841459/200)/1.038415 = .19184,
    # half 1.959964/1.038415 * sqrt(.18*.82/100 + 3.841459/40000) = .07484
    assert wilson(18, 100) == (pytest.approx(0.1170, abs=5e-5), pytest.approx(0.2667, abs=5e-5))


def test_clopper_pearson_by_hand() -> None:
    # no success in 10: (1 - p)^10 = .025, so p = 1 - .025^(1/10) = .3085
    assert clopper_pearson(0, 10) == (0.0, pytest.approx(1 - 0.025**0.1, abs=1e-12))
    assert clopper_pearson(10, 10) == (pytest.approx(0.025**0.1, abs=1e-12), 1.0)


@given(counts, levels)
def test_scipy_agrees(pair: tuple[int, int], level: float) -> None:
    successes, trials = pair
    test = stats.binomtest(successes, trials)
    assert wilson(successes, trials, level=level) == pytest.approx(
        tuple(test.proportion_ci(level, "wilson")), abs=1e-12
    )
    assert clopper_pearson(successes, trials, level=level) == pytest.approx(
        tuple(test.proportion_ci(level, "exact")), abs=1e-9
    )


@given(counts, levels)
def test_limits_hold_the_estimate(pair: tuple[int, int], level: float) -> None:
    successes, trials = pair
    for low, high in (wilson(*pair, level=level), clopper_pearson(*pair, level=level)):
        assert 0 <= low <= successes / trials <= high <= 1
        assert low < high


def test_no_conflicts_golden() -> None:
    # d <= 1 - .05^(1/n): 59 items without a conflict bound d below 5 %, as .95^59 = .0485 < .05 < .95^58
    assert no_conflict_upper(59) == pytest.approx(1 - 0.05 ** (1 / 59), abs=1e-12)
    assert no_conflict_upper(59) < 0.05 < no_conflict_upper(58)
    assert no_conflict_upper(10**9) == pytest.approx(-math.log(0.05) / 10**9, rel=1e-6)  # the rule of three


def covered(limits: list[tuple[float, float]], d: float) -> float:
    """Chance that the limits (one pair for each number of conflicts) hold d."""
    chance = stats.binom.pmf(np.arange(len(limits)), len(limits) - 1, d)
    return float(sum(p for p, (low, high) in zip(chance, limits, strict=True) if low <= d <= high))


@pytest.mark.parametrize("pairs", [30, 50, 200])
def test_exact_limits_always_cover(pairs: int) -> None:
    limits = [clopper_pearson(x, pairs) for x in range(pairs + 1)]
    ends = np.unique([end for pair in limits for end in pair])
    worst = min(covered(limits, d) for end in ends for d in (end - 1e-9, end + 1e-9) if 0 < d < 1)
    assert 0.95 <= worst < 0.952


def test_a_one_sided_limit_would_break_the_promise() -> None:
    # without a conflict [0, 1 - .05^(1/50)] instead of [0, 1 - .025^(1/50)]: d just above it is missed by no conflict
    # (chance .05) and by seven or more (.025)
    limits = [(0.0, no_conflict_upper(50)), *(clopper_pearson(x, 50) for x in range(1, 51))]
    assert covered(limits, no_conflict_upper(50) + 1e-9) == pytest.approx(0.925, abs=0.001)


def test_wilson_against_the_delta_method() -> None:
    # the case of the design: n = 50, eps = .02, d = 2*.02*.98 = .0392. Mapped Wilson limits hold eps in .954 of
    # samples; eps +- 1.96 standard errors of the delta method only in .86: without a conflict it has no width
    n, d, z = 50, disagreement_of(0.02, classes=2), 1.959964
    mapped = [(0.0, no_conflict_upper(n)), *(wilson(x, n) for x in range(1, n + 1))]
    assert covered(mapped, d) == pytest.approx(0.954, abs=0.001)

    def delta(conflicts: int) -> tuple[float, float]:
        share = conflicts / n
        if share >= 0.5:
            return 0.0, 1.0
        rate, error = flip_rate(share, classes=2), math.sqrt(share * (1 - share) / n / 4 / (1 - 2 * share))
        low, high = max(0.0, rate - z * error), min(0.5, rate + z * error)
        return disagreement_of(low, classes=2), disagreement_of(high, classes=2)

    assert covered([delta(x) for x in range(n + 1)], d) == pytest.approx(0.86, abs=0.006)


def test_where_wilson_falls_short() -> None:
    # n = 50, eps = .01, d = .0198: three or more conflicts (chance .0767) put Wilson's lower limit above d
    n, d = 50, disagreement_of(0.01, classes=2)
    mapped = [(0.0, no_conflict_upper(n)), *(wilson(x, n) for x in range(1, n + 1))]
    assert covered(mapped, d) == pytest.approx(1 - stats.binom.sf(2, n, d), abs=1e-12)
    assert covered(mapped, d) < 0.94 < covered([clopper_pearson(x, n) for x in range(n + 1)], d)


# --- the effective size ----------------------------------------------------------------------------------------


@given(counts, levels)
def test_yes_and_no_scores_give_clopper_and_pearson(pair: tuple[int, int], level: float) -> None:
    successes, trials = pair
    mean = successes / trials
    found = effective_interval(mean, mean * (1 - mean) / trials, trials, level=level)
    assert found == pytest.approx(clopper_pearson(successes, trials, level=level), abs=1e-8)


@given(scores, levels, st.floats(0, 1))
def test_effective_limits_hold_the_mean(values: list[float], level: float, room: float) -> None:
    sample = np.array(values)
    largest = float(sample.max()) + room * (1 - float(sample.max()))
    mean, variance = float(sample.mean()), float(sample.var()) / len(sample)
    low, high = effective_interval(mean, variance, len(sample), largest=max(largest, 1e-9), level=level)
    assert 0 <= low <= mean + 1e-12
    assert mean - 1e-12 <= high <= max(largest, 1e-9) + 1e-12


def test_the_upper_limit_ends_at_the_largest_score() -> None:
    # five triples of two classes, four of them 2 : 1 (d_i = 2/3, no triple can have more)
    mean, variance = 4 * (2 / 3) / 5, (2 / 3) ** 2 * 0.8 * 0.2 / 5
    assert effective_interval(mean, variance, 5, largest=2 / 3)[1] == 2 / 3
    assert effective_interval(mean, variance, 5)[1] > 0.8


def test_one_item_says_little() -> None:
    # one group of four, split 2 : 2, has d_i = 1 - 4/12 = 2/3 and no variance to see
    low, high = effective_interval(2 / 3, 0.0, 1)
    assert low < 0.07
    assert high > 0.98


def test_a_small_score_is_not_all_there_is() -> None:
    # 29 pairs agree, one group of 40 has a single odd label, d_i = 78/1560 = .05. A pair's conflict weighs 20
    # times as much and none was seen: the limit must stay above that of 30 items without a conflict
    mean, variance = 0.05 / 30, 0.05**2 * 29 / 30**3
    assert effective_interval(mean, variance, 30)[1] > no_conflict_upper(30)


def test_beta_limit_without_variance_is_the_mean() -> None:
    assert [beta_limit(mean, 0.0, 0.975) for mean in (0.0, 0.3, 1.0)] == [0.0, 0.3, 1.0]
    # mean .5, effective size .25/.125 = 2: Beta(1, 1), the uniform distribution
    assert beta_limit(0.5, 0.125, 0.975) == pytest.approx(0.975, abs=1e-12)


# --- the bootstrap ---------------------------------------------------------------------------------------------

COLUMNS = np.array([[0.0, 1.0], [0.5, 1.0], [1.0, 1.0], [0.25, 1.0], [0.125, 1.0]])
ITEMS = np.array([700, 150, 60, 9, 3])  # two patterns few enough to be drawn item by item


def test_the_bootstrap_is_multinomial() -> None:
    total = bootstrap_totals(COLUMNS, ITEMS, draws=40_000, rng=np.random.default_rng(0))
    n = ITEMS.sum()
    assert np.all(total[:, 1] == n), "every sample has as many items as the data"
    score = COLUMNS[:, 0]
    mean, variance = score @ ITEMS, score**2 @ ITEMS - (score @ ITEMS) ** 2 / n
    assert total[:, 0].mean() == pytest.approx(mean, abs=5 * math.sqrt(variance / 40_000))
    assert total[:, 0].var() == pytest.approx(variance, rel=5 * math.sqrt(2 / 40_000))


def test_each_pattern_is_drawn_as_often_as_it_should_be() -> None:
    # the totals of indicator columns are the multiplicities themselves: binomial, and negatively correlated
    total = bootstrap_totals(np.eye(5), ITEMS, draws=40_000, rng=np.random.default_rng(1))
    n, shares = ITEMS.sum(), ITEMS / ITEMS.sum()
    assert np.all(total.sum(axis=1) == n)
    wanted = n * (np.diag(shares) - np.outer(shares, shares))
    assert np.cov(total.T) == pytest.approx(wanted, abs=0.02 * wanted.max())
    for k in (3, 4):  # the rare ones: whole distribution
        seen = np.bincount(total[:, k].astype(int), minlength=40)[:40]
        chance = stats.binom.pmf(np.arange(40), n, shares[k])
        use = chance * 40_000 > 5
        rest = 40_000 - seen[use].sum(), 40_000 * (1 - chance[use].sum())
        observed, expected = np.append(seen[use], rest[0]), np.append(chance[use] * 40_000, rest[1])
        assert stats.chisquare(observed, expected).pvalue > 1e-4


@pytest.mark.parametrize("limit", [0, 10**9])
def test_drawing_item_by_item_changes_nothing(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = bootstrap_totals(COLUMNS, ITEMS, draws=5_000, rng=np.random.default_rng(2))[:, 0]
    monkeypatch.setattr(audit.intervals, "_FEW_ITEMS", limit)  # no pattern, then every pattern
    monkeypatch.setattr(audit.intervals, "_BLOCK_CELLS", 10_000)  # many blocks
    other = bootstrap_totals(COLUMNS, ITEMS, draws=5_000, rng=np.random.default_rng(3))[:, 0]
    assert stats.ks_2samp(usual, other).pvalue > 1e-3


def test_the_bootstrap_depends_on_its_rng_alone() -> None:
    def run(order: npt.NDArray[np.int64], seed: int) -> list[float]:
        rng = np.random.default_rng(seed)
        return bootstrap_totals(COLUMNS[order], ITEMS[order], draws=50, rng=rng)[:, 0].tolist()  # type: ignore[no-any-return]

    assert run(np.arange(5), 7) == run(np.array([4, 2, 0, 1, 3]), 7)
    assert run(np.arange(5), 7) != run(np.arange(5), 8)
    split = bootstrap_totals(
        np.repeat(COLUMNS, 2, axis=0), np.repeat(ITEMS, 2), draws=50, rng=np.random.default_rng(7)
    )
    assert np.all(split[:, 1] == 2 * ITEMS.sum()), "equal rows are one pattern"


def test_one_pattern_has_no_spread() -> None:
    total = bootstrap_totals(np.array([[0.5]]), np.array([8]), draws=20, rng=np.random.default_rng(0))
    assert total.ravel().tolist() == [4.0] * 20


# --- what cannot be --------------------------------------------------------------------------------------------


def test_arguments_out_of_range() -> None:
    rng = np.random.default_rng(0)
    for level in (0.0, 1.0, 95.0):
        with pytest.raises(ArgumentError, match=r"0\.95 is usual"):
            wilson(1, 2, level=level)
    for successes, trials in ((3, 2), (-1, 2)):
        with pytest.raises(ArgumentError, match="do not fit"):
            wilson(successes, trials)
    with pytest.raises(ArgumentError, match="at least one trial"):
        clopper_pearson(0, 0)
    with pytest.raises(ArgumentError, match="at least one repeated item"):
        no_conflict_upper(0)
    with pytest.raises(ArgumentError, match="at least one item"):
        effective_interval(0.5, 0.1, 0)
    with pytest.raises(ArgumentError, match="at least one draw"):
        bootstrap_totals(COLUMNS, ITEMS, draws=0, rng=rng)
    with pytest.raises(ArgumentError, match="at least one item"):
        bootstrap_totals(COLUMNS, np.zeros(5, np.int64), draws=5, rng=rng)
