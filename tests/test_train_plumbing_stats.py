"""The statistics of the plumbing report, against sums by hand, enumeration and simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from audit.intervals import clopper_pearson, holm
from train.plumbing_stats import (
    FEWEST,
    cluster_mean,
    cluster_slope,
    length_quantiles,
    scaled,
    sum_test,
    within_slope,
)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def test_mean_over_clusters_by_hand() -> None:
    # clusters {1, 3} and {5, 7}: mean 4; sums of deviations -4 and +4; variance 2/1 (16 + 16)/16 = 4, se 2;
    # t with 1 df at .975 is 12.7062
    found = cluster_mean(np.array([1.0, 3, 5, 7]), ints(0, 0, 1, 1), level=0.95, share=False)
    assert found is not None
    assert (found.estimate, found.low, found.high) == pytest.approx((4.0, 4 - 25.4124, 4 + 25.4124), abs=1e-3)


def test_independent_shares_have_clopper_and_pearsons_limits() -> None:
    values = np.array([1.0] * 3 + [0.0] * 17)
    found = cluster_mean(values, np.arange(20), level=0.95, share=True)
    assert found is not None
    # the variance here has the factor n/(n - 1), so the limits are a little wider
    low, high = clopper_pearson(3, 20)
    assert found.low is not None
    assert found.high is not None
    assert low - 0.01 < found.low <= low + 1e-3
    assert high - 1e-3 <= found.high < high + 0.01


def test_copies_of_a_cluster_make_nothing_surer() -> None:
    values, clusters = np.array([1.0, 0, 0, 1, 1, 0]), np.arange(6)
    once = cluster_mean(values, clusters, level=0.95, share=False)
    often = cluster_mean(np.repeat(values, 50), np.repeat(clusters, 50), level=0.95, share=False)
    assert once is not None
    assert often is not None
    assert (often.low, often.high) == (pytest.approx(once.low), pytest.approx(once.high))


def test_means_of_nothing_and_of_one_item() -> None:
    assert cluster_mean(np.array([]), ints(), level=0.95, share=True) is None
    one = cluster_mean(np.array([0.0, 1.0]), ints(3, 3), level=0.95, share=True)
    assert one is not None
    assert (one.estimate, one.low, one.high) == (0.5, None, None)


def test_intervals_over_items_cover() -> None:
    # 40 items of 8 rollouts that share their item's chance: a plain interval over 320 rollouts covers far less
    rng = np.random.default_rng(5)
    clusters = np.repeat(np.arange(40), 8)
    hits = plain = 0
    for _ in range(400):
        values = (rng.random((40, 8)) < rng.beta(0.6, 0.4, 40)[:, None]).astype(float).ravel()
        found = cluster_mean(values, clusters, level=0.95, share=True)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 0.6 <= found.high
        low, high = clopper_pearson(values.sum(), 320)
        plain += low <= 0.6 <= high
    assert hits >= 370  # .95 of 400 is 380, sd 4.4
    assert plain < 320


def test_slope_over_clusters_by_hand() -> None:
    # y = 0, 1, 1, 4 at x = 0..3: slope (−1.5·0 −.5·1 + .5·1 + 1.5·4)/5 = 1.2
    found = cluster_slope(np.arange(4.0), np.array([0.0, 1, 1, 4]), np.arange(4), level=0.95)
    assert found is not None
    assert found.estimate == pytest.approx(1.2)
    # residuals .3, .1, −1.1, .7 (mean 1.5, fit −.3, .9, 2.1, 3.3); x·e −.45, −.05, −.55, 1.05; sum of squares 1.61;
    # 4/3 of it is 2.1467, its root 1.4652, over 5 .29303; t with 3 df 3.18245
    assert found.high == pytest.approx(1.2 + 3.18245 * 0.29303, abs=1e-3)
    assert cluster_slope(np.ones(4), np.arange(4.0), np.arange(4), level=0.95) is None
    half = scaled(found, 0.5)
    assert half is not None
    assert (half.estimate, half.high) == (pytest.approx(0.6), pytest.approx(0.5 * (found.high or 0)))
    assert scaled(None, 2.0) is None


def test_the_moments_of_dealing_anew_within_groups() -> None:
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(2 * FEWEST), 4)
    x, y = rng.normal(size=160), (rng.random(160) < 0.5).astype(float)
    found = within_slope(x, y, groups, groups, level=0.95)
    # all orders of x in each group, one group at a time: groups are dealt independently, so variances add up
    mean = variance = s = 0.0
    for k in range(2 * FEWEST):
        mine = groups == k
        dx, dy = x[mine] - x[mine].mean(), y[mine] - y[mine].mean()
        sums = [np.dot(order, dy) for order in itertools.permutations(dx)]
        mean += float(np.mean(sums))
        variance += float(np.var(sums))
        s += float(dx @ dy)
    assert mean == pytest.approx(0.0, abs=1e-9)
    assert found.p_value == pytest.approx(2 * stats.norm.sf(abs(s) / variance**0.5))
    spread = sum(float(((x[groups == k] - x[groups == k].mean()) ** 2).sum()) for k in range(2 * FEWEST))
    assert found.estimate == pytest.approx(s / spread)


def test_what_differs_between_groups_is_no_slope() -> None:
    # harder groups are longer and earn less; inside a group nothing goes with length
    rng = np.random.default_rng(7)
    seen = []
    for _ in range(300):
        hard = rng.normal(size=60)
        x = (hard[:, None] + rng.normal(size=(60, 8))).ravel()
        y = (rng.random((60, 8)) < 1 / (1 + np.exp(2 * hard[:, None]))).astype(float).ravel()
        groups = np.repeat(np.arange(60), 8)
        p = within_slope(x, y, groups, groups // 2, level=0.95).p_value
        assert p is not None
        seen.append(p)
        assert np.corrcoef(x, y)[0, 1] < -0.2
    assert stats.kstest(seen, "uniform").pvalue > 1e-3


def test_too_little_to_tell() -> None:
    few = within_slope(
        np.arange(8.0), np.array([0.0, 1] * 4), np.repeat([0, 1], 4), np.repeat([0, 1], 4), level=0.95
    )
    assert few.p_value is None
    assert few.reason == "only 2 groups can tell; a test needs 20"
    even = within_slope(np.ones(8), np.arange(8.0), np.repeat([0, 1], 4), np.repeat([0, 1], 4), level=0.95)
    assert (even.estimate, even.reason) == (None, "no group holds different values")
    assert sum_test(np.ones((5, 1)), np.arange(5)).reason == "only 5 items can tell; a test needs 20"


def test_sum_test_by_hand() -> None:
    # 25 items of +1 and 15 of −1: T = 10, Z'Z = 40, chi-square 2.5 on 1 df
    terms = np.array([1.0] * 25 + [-1.0] * 15)[:, None]
    found = sum_test(terms, np.arange(40))
    assert found.p_value == pytest.approx(stats.chi2.sf(2.5, 1))
    # classes in one-hot form are one too many: their rank counts, not their number
    both = sum_test(np.hstack([terms, -terms]), np.arange(40))
    assert found.p_value == pytest.approx(both.p_value)
    # two means taken off before: 40/38 times the spread
    assert sum_test(terms, np.arange(40), means=2).p_value == pytest.approx(stats.chi2.sf(2.5 * 38 / 40, 1))


def test_quantiles_of_cut_lengths_by_hand() -> None:
    # Kaplan-Meier: 1 and 2 end (S = .8, .6), 2 is cut, 4 ends with 2 at risk (S = .3), 5 is cut
    length, cut = np.array([1.0, 2, 2, 4, 5]), np.array([False, False, True, False, True])
    found = length_quantiles(length, cut, np.arange(5), (0.2, 0.4, 0.5, 0.7, 0.8), level=0.95)
    assert [part.estimate for part in found] == [1, 2, 4, 4, None]
    assert found[-1].reason == "70.0% end within 4, the longest seen to end; the rest was cut"


def test_woodruffs_limits_of_a_median() -> None:
    # nothing cut, 100 lengths 1..100, each its own item: se of F(50) = .5 is sqrt(.25/99) = .05025, so the limits are
    # the quantiles at .5 -+ 1.96 x .05025 = .4015 and .5985
    (found,) = length_quantiles(np.arange(1.0, 101), np.zeros(100, bool), np.arange(100), (0.5,), level=0.95)
    assert (found.estimate, found.low, found.high) == (50, 41, 60)


def test_one_cap_is_the_plain_share() -> None:
    rng = np.random.default_rng(4)
    length = rng.geometric(0.01, 500).astype(float)
    cut = length > 200
    plain = np.quantile(length, 0.8, method="inverted_cdf")
    (found,) = length_quantiles(np.minimum(length, 200), cut, np.arange(500), (0.8,), level=0.95)
    assert found.estimate == plain
    assert found.low is not None
    assert found.low < plain


def test_limits_of_a_quantile_cover() -> None:
    rng = np.random.default_rng(8)
    clusters = np.repeat(np.arange(50), 6)
    truth = float(stats.lognorm(0.5**0.5, scale=100).ppf(0.6))
    hits = 0
    for _ in range(200):
        length = 100 * np.exp(0.5 * (rng.normal(size=50)[:, None] + rng.normal(size=(50, 6)))).ravel()
        cap = rng.choice([150.0, 300.0], size=300)  # the cap was raised during the run
        (found,) = length_quantiles(np.minimum(length, cap), length > cap, clusters, (0.6,), level=0.95)
        hits += (found.low or 0) <= truth <= (found.high or np.inf)
    assert hits >= 180  # .95 of 200 is 190, sd 3.1


def test_holm_by_hand() -> None:
    # sorted .01, .02, .03, .5 x 4, 3, 2, 1 = .04, .06, .06, .5
    assert holm([0.03, 0.01, 0.5, 0.02]) == pytest.approx((0.06, 0.04, 0.5, 0.06))
    assert holm([]) == ()
    assert holm([0.9, 0.8]) == (1.0, 1.0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_lowers_and_keeps_the_order(values: list[float]) -> None:
    found = holm(values)
    assert all(a >= p for a, p in zip(found, values, strict=True))
    assert min(found) == pytest.approx(min(1.0, min(values) * len(values)))
    assert [found[k] for k in np.argsort(values, kind="stable")] == sorted(found)
