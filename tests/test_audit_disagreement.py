"""Disagreement: golden numbers, plain Python, the interval of each case, every degenerate case, and d by class."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from audit.disagreement import (
    by_class,
    by_group_size,
    estimate_disagreement,
    item_mean,
    largest_disagreement,
    ratio_mean,
)
from audit.errors import ArgumentError
from audit.fliprate import flip_rate
from audit.intervals import clopper_pearson, effective_interval, no_conflict_upper, wilson
from audit.patterns import CountPatterns
from tests.naive import Table, annotate, item_disagreement, means, tables


def patterns(counts: object, items: list[int] | None = None) -> CountPatterns:
    return CountPatterns.from_counts(counts, items=items)


# --- the estimate ----------------------------------------------------------------------------------------------


def test_three_weightings_by_hand() -> None:
    # one pair that differs (d = 1) and one group of four, 3 : 1 (d = 1 - 6/12 = .5):
    # per item (1 + .5)/2, per pair (1 + 3)/(1 + 6), per row (2 * 1 + 4 * .5)/(2 + 4)
    found = estimate_disagreement(patterns([[1, 1], [3, 1]]))
    assert found.estimate == pytest.approx(0.75)
    assert found.pair_weighted == pytest.approx(4 / 7)
    assert found.row_weighted == pytest.approx(4 / 6)


def test_one_template_copied_a_thousand_times_does_not_decide() -> None:
    # 200 pairs of which 36 differ, and one text 1,000 times, half and half: 499,500 pairs with d = .5005
    found = estimate_disagreement(patterns([[2, 0], [1, 1], [500, 500]], [164, 36, 1]))
    assert found.estimate == pytest.approx((36 + 0.5005005) / 201, abs=1e-6)
    assert found.pair_weighted == pytest.approx(0.5004, abs=1e-4)
    assert found.weightings_differ


def test_weightings_of_equal_groups_are_one() -> None:
    found = estimate_disagreement(patterns([[2, 0], [1, 1]], [80, 20]))
    assert (found.estimate, found.pair_weighted, found.row_weighted) == pytest.approx((0.2, 0.2, 0.2))
    assert not found.weightings_differ


@given(tables())
def test_plain_python_agrees(table: Table) -> None:
    found = estimate_disagreement(patterns(table), draws=50)
    wanted = means(table)
    if wanted is None:
        assert (found.estimate, found.low, found.high, found.method) == (None, None, None, "none")
        assert found.reason == "no item has two labels, so disagreement cannot be measured"
    else:
        assert found.estimate is not None
        assert found.low is not None
        assert found.high is not None
        assert (found.estimate, found.pair_weighted, found.row_weighted) == pytest.approx(wanted, abs=1e-12)
        assert 0 <= found.low <= found.estimate <= found.high <= 1


@given(tables(), st.permutations(range(5)))
def test_order_and_names_of_classes_do_not_matter(table: Table, order: list[int]) -> None:
    columns = [k for k in order if k < table.shape[1]]
    first = estimate_disagreement(patterns(table), draws=50).to_dict()
    again = estimate_disagreement(patterns(table[::-1][:, columns]), draws=50).to_dict()
    for key, value in first.items():
        assert again[key] == (pytest.approx(value, abs=1e-12) if isinstance(value, float) else value)


# --- its interval ----------------------------------------------------------------------------------------------


def test_pairs_have_wilsons_interval() -> None:
    found = estimate_disagreement(patterns([[2, 0], [1, 1], [0, 2]], [60, 18, 22]))
    assert (found.low, found.high) == wilson(18, 100)
    assert found.method == "Wilson"
    exact = estimate_disagreement(patterns([[2, 0], [1, 1], [0, 2]], [60, 18, 22]), interval="exact")
    assert (exact.low, exact.high) == clopper_pearson(18, 100)
    assert exact.method == "Clopper-Pearson"


def test_no_conflict_is_one_sided() -> None:
    # (1 - d)^75 = .05 at d = 1 - .05^(1/75) = .0392
    found = estimate_disagreement(patterns([[2, 0], [0, 2]], [40, 35]))
    assert (found.estimate, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(0.0392, abs=5e-5)
    assert found.method == "one-sided, no conflicts"
    mixed = estimate_disagreement(patterns([[2, 0], [0, 9]], [40, 35]))
    assert (mixed.high, mixed.method) == (found.high, found.method)


def test_the_exact_interval_is_two_sided_without_a_conflict_too() -> None:
    # its promise is to cover at least 95 % whatever d is; a one-sided limit at 0 conflicts would break it
    found = estimate_disagreement(patterns([[2, 0]], [75]), interval="exact")
    assert (found.low, found.high) == clopper_pearson(0, 75)


def test_mixed_sizes_use_the_bootstrap_variance() -> None:
    counts, items = [[2, 0], [1, 1], [2, 1], [5, 3]], [60, 20, 15, 5]
    found = estimate_disagreement(patterns(counts, items))
    d = np.array([float(item_disagreement(row) or 0) for row in counts])
    n, weights = 100, np.array(items)
    mean = float(d @ weights) / n
    variance = (float(d**2 @ weights) / n - mean**2) / n  # of a bootstrap with endless draws
    low, high = effective_interval(mean, variance, n)
    assert found.estimate == pytest.approx(mean)
    assert found.low == pytest.approx(low, abs=0.002)
    assert found.high == pytest.approx(high, abs=0.002)
    assert found.method == "bootstrap over items, limits at the effective sample size"


def test_seed_and_draws() -> None:
    mixed = patterns([[2, 0], [1, 1], [2, 1]], [60, 20, 15])
    assert estimate_disagreement(mixed, seed=3) == estimate_disagreement(mixed, seed=3)
    assert estimate_disagreement(mixed, seed=3).low != estimate_disagreement(mixed, seed=4).low
    with pytest.raises(ArgumentError, match="at least one draw"):
        estimate_disagreement(mixed, draws=0)


def test_a_higher_level_is_wider() -> None:
    mixed = patterns([[2, 0], [1, 1], [2, 1]], [60, 20, 15])
    narrow, wide = (estimate_disagreement(mixed, level=level) for level in (0.8, 0.99))
    assert narrow.low is not None
    assert narrow.high is not None
    assert wide.low is not None
    assert wide.high is not None
    assert wide.low < narrow.low < narrow.high < wide.high


def test_unknown_intervals_are_refused() -> None:
    with pytest.raises(ArgumentError, match="'wilson' or 'exact'"):
        estimate_disagreement(patterns([[1, 1]]), interval="bayes")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"0\.95 is usual"):
        estimate_disagreement(patterns([[1, 1]]), level=95)


# --- degenerate cases ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("counts", [np.zeros((0, 2), np.int64), [[1, 0]], [[0, 0]], [[1, 0], [0, 1]]])
def test_no_repeats(counts: object) -> None:
    found = estimate_disagreement(patterns(counts))
    assert (found.estimate, found.low, found.high) == (None, None, None)
    assert (found.pair_weighted, found.row_weighted, found.method) == (None, None, "none")
    assert found.reason
    assert by_class(patterns(counts)) == ()
    assert by_group_size(patterns(counts)) == ()


def test_one_class() -> None:
    found = estimate_disagreement(patterns([[3], [2]]))
    assert (found.estimate, found.high) == (0.0, no_conflict_upper(2))


def test_one_item() -> None:
    agrees, differs = (estimate_disagreement(patterns([row])) for row in ([2, 0], [1, 1]))
    assert (agrees.estimate, agrees.high) == (0.0, pytest.approx(0.95))  # 1 - .05^1: nothing is known
    assert (differs.estimate, differs.high) == (1.0, 1.0)
    group = estimate_disagreement(patterns([[3, 1]]))
    assert group.estimate == pytest.approx(0.5)
    assert group.low is not None
    assert group.high is not None
    assert group.low < 0.06
    assert group.high > 0.65


def test_all_conflicts() -> None:
    pairs = estimate_disagreement(patterns([[1, 1]], [30]))
    assert (pairs.estimate, pairs.low, pairs.high) == (1.0, wilson(30, 30)[0], 1.0)


def test_zero_variance_in_mixed_sizes() -> None:
    # pairs ab and triples abc all have d_i = 1: no variance, but 30 items do not prove d = 1
    found = estimate_disagreement(patterns([[1, 1, 0], [1, 1, 1]], [20, 10]))
    assert (found.estimate, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(clopper_pearson(30, 30)[0])
    # triples aab all have d_i = 2/3, the largest that three labels of two classes can have
    found = estimate_disagreement(patterns([[2, 1]], [30]))
    assert found.estimate == found.high == pytest.approx(2 / 3)
    assert found.low is not None
    assert found.low < 0.62


def test_a_thousand_classes() -> None:
    table = np.zeros((300, 1_000), np.int64)
    table[np.arange(300), np.arange(300)] += 1
    table[np.arange(300), np.where(np.arange(300) < 60, 999, np.arange(300))] += 1
    found = estimate_disagreement(patterns(table))
    assert (found.estimate, found.low) == (0.2, wilson(60, 300)[0])
    parts = by_class(patterns(table))
    assert len(parts) == 100
    assert parts[0].value == "999"
    assert parts[0].estimate == 1.0


def test_a_giant_group() -> None:
    found = estimate_disagreement(patterns([[100_000, 100_000], [2, 0]], [1, 99]))
    assert found.estimate == pytest.approx(
        (100_000 / 199_999) / 100
    )  # d_i = 1 - 2 * 10^5 (10^5 - 1)/(n(n - 1))
    assert found.high is not None
    assert found.high > no_conflict_upper(100)


@pytest.mark.parametrize(
    ("size", "classes", "most"),
    [(2, 2, 1.0), (3, 2, 2 / 3), (4, 2, 2 / 3), (5, 2, 0.6), (4, 3, 5 / 6), (3, 10, 1.0), (2, 1, 0.0)],
)
def test_largest_disagreement(size: int, classes: int, most: float) -> None:
    assert largest_disagreement(size, classes=classes) == pytest.approx(most)


# --- by class, by size -----------------------------------------------------------------------------------------


@given(tables(smallest=2))
def test_d_is_the_sum_of_shares_times_d_by_class(table: Table) -> None:
    found = patterns(table)
    parts = by_class(found)
    assert sum(part.share or 0.0 for part in parts) == pytest.approx(1.0)
    total = sum((part.share or 0.0) * (part.estimate or 0.0) for part in parts)
    assert total == pytest.approx(estimate_disagreement(found, draws=10).estimate or 0.0, abs=1e-12)
    assert [part.share for part in parts] == sorted((part.share for part in parts), key=lambda s: -(s or 0))
    for part in parts:
        assert part.low is not None
        assert part.estimate is not None
        assert part.high is not None
        assert -1e-12 <= part.low <= part.estimate + 1e-12
        assert part.estimate - 1e-12 <= part.high <= 1 + 1e-12
        assert part.items == int((table[:, int(part.value)] > 0).sum())


def test_d_by_class_by_hand() -> None:
    # items aa, ab, bbb: of label a (share 1 + .5 of 3 items) the half in ab meets a b: d_a = .5/1.5;
    # of b (.5 + 1) the half in ab meets an a: d_b = .5/1.5
    parts = by_class(patterns([[2, 0], [1, 1], [0, 3]]))
    assert [(p.value, p.items, p.pairs, p.conflicts) for p in parts] == [("0", 2, 2, 1), ("1", 2, 4, 1)]
    assert [p.estimate for p in parts] == [pytest.approx(1 / 3)] * 2
    assert [p.share for p in parts] == [pytest.approx(0.5)] * 2


def test_a_class_that_never_agrees_is_not_known_to() -> None:
    # five items ab, none bb: d_b = 1. With a true d_b of .5 a bb is as likely as not beside an ab (weights 1 and
    # .5, so shares 1/3 and 2/3), and five ab in a row have chance (2/3)^5 = .13: .5 must be inside
    (_, part) = sorted(by_class(patterns([[2, 0], [1, 1]], [50, 5])), key=lambda p: p.value)
    assert part.estimate == 1.0
    assert part.low is not None
    assert part.low < 0.5


def test_upper_limit_of_a_class_adds_one_conflict() -> None:
    # 50 aa, 3 ab: label a has 1.5 conflicts in 51.5 labels' worth of items, b 1.5 in 1.5. One more ab (.5 of .5)
    # makes R = 2/52; the residuals are .5(1 - R) for 4 items and -R for 50; size R(1 - R)/variance
    ratio = 2 / 52
    variance = (4 * (0.5 * (1 - ratio)) ** 2 + 50 * ratio**2) / 52**2
    size = ratio * (1 - ratio) / variance
    part = by_class(patterns([[2, 0], [1, 1]], [50, 3]))[0]
    assert part.value == "0"
    assert part.estimate == pytest.approx(1.5 / 51.5)
    assert part.high == pytest.approx(stats.beta.ppf(0.975, ratio * size, (1 - ratio) * size), rel=1e-9)


def test_by_group_size_by_hand() -> None:
    parts = by_group_size(patterns([[2, 0], [1, 1], [2, 1], [1, 0]], [3, 1, 4, 9]))
    assert [(p.size, p.items, p.conflicts) for p in parts] == [(2, 4, 1), (3, 4, 4)]
    assert [p.estimate for p in parts] == [pytest.approx(0.25), pytest.approx(2 / 3)]


@pytest.mark.parametrize("repeats", ["pairs", "mixed"])
def test_intervals_of_d_by_class_cover(repeats: str) -> None:
    # 500 samples of 60 items, 90 % class 0; the truth from 10^6 items. At .95 the count is binomial with s.e. .01
    rng = np.random.default_rng(11)

    def sample(n: int) -> tuple[CountPatterns, list[float]]:
        sizes = np.full(n, 2) if repeats == "pairs" else rng.choice([2, 3, 8], p=[0.6, 0.3, 0.1], size=n)
        rates = np.where(rng.random(n) < 0.2, 0.42, 0.02)
        found = patterns(annotate(rng, sizes=sizes, rates=rates, prevalence=[0.9, 0.1]))
        return found, [part.estimate or 0.0 for part in by_class(found)]

    truth = sample(1_000_000)[1]
    held = np.zeros(2)
    for _ in range(500):
        parts = {part.value: part for part in by_class(sample(60)[0])}
        for k in range(2):
            part = parts[str(k)]
            held[k] += (part.low or 0.0) <= truth[k] <= (part.high or 0.0)
    assert np.all(held / 500 >= 0.92), held / 500


# --- means and ratios ------------------------------------------------------------------------------------------


def test_means_and_ratios_of_nothing() -> None:
    nothing = np.zeros(0), np.zeros(0, np.int64)
    assert item_mean(*nothing).estimate is None
    assert ratio_mean(nothing[0], nothing[0], nothing[1]).estimate is None
    assert ratio_mean(np.zeros(2), np.zeros(2), np.array([3, 4])).estimate is None


def test_a_ratio_with_equal_bases_is_a_proportion() -> None:
    found = ratio_mean(np.array([0.0, 1.0]), np.ones(2), np.array([82, 18]))
    assert found.estimate == pytest.approx(0.18)
    assert (found.low, found.high) == pytest.approx(clopper_pearson(18, 100), abs=1e-8)


# --- public data -----------------------------------------------------------------------------------------------


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "classes", "d", "rate", "pairs", "conflicts"),
    [
        ("bluebird", 2, 0.411806, 0.290007, 80_028, 108),
        ("dog", 4, 0.358860, 0.208377, 36_315, 725),
        ("SP_amt", 2, 0.131168, 0.070563, 95_000, 287),
        ("d_jn-product", 2, 0.274524, 0.164235, 24_945, 3_424),
        ("fact_eval", 3, 0.134493, 0.071031, 444_509, 11_841),
    ],
)
def test_crowd_sets(
    shared: Path, name: str, classes: int, d: float, rate: float, pairs: int, conflicts: int
) -> None:
    with (shared / "data" / "crowd" / name / "label.csv").open(encoding="utf-8") as file:
        rows = [(row["item"], row["label"]) for row in csv.DictReader(file)]
    item = np.unique([row[0] for row in rows], return_inverse=True)[1]
    names, label = np.unique([row[1] for row in rows], return_inverse=True)
    table = np.zeros((item.max() + 1, len(names)), np.int64)
    np.add.at(table, (item, label), 1)
    found = CountPatterns.from_counts(table)
    estimate = estimate_disagreement(found, draws=500)
    assert found.class_count == classes
    assert estimate.estimate == pytest.approx(d, abs=5e-7)
    assert flip_rate(estimate.estimate or 0.0, classes=classes) == pytest.approx(rate, abs=5e-7)
    assert found.repeated.pairs @ found.repeated.items == pairs
    assert found.repeated.items[found.repeated.disagreement > 0].sum() == conflicts
    if name == "fact_eval":
        assert estimate.pair_weighted == pytest.approx(0.134924, abs=5e-7)
