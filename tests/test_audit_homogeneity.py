"""The tests of equal d: their size where d is equal, their power where it is not, and what has no answer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from scipy import stats

from audit.homogeneity import compare_contrast, compare_values, inside_and_outside, permutation_p_value
from audit.intervals import wilson
from audit.patterns import CountPatterns, PairContrast
from tests.naive import Table, annotate

SIZES, SHARES = [2, 3, 5], [0.6, 0.3, 0.1]


def patterns(counts: object, items: list[int] | None = None) -> CountPatterns:
    return CountPatterns.from_counts(counts, items=items)


def contrast(rows: list[tuple[int, int, int, int, int]]) -> PairContrast:
    """From (inside pairs, inside conflicts, outside pairs, outside conflicts, items)."""
    table = np.array(rows, np.int64).reshape(-1, 5)
    return PairContrast(
        inside_pairs=table[:, 0], inside_conflicts=table[:, 1], outside_pairs=table[:, 2],
        outside_conflicts=table[:, 3], items=table[:, 4],
    )  # fmt: skip


def parts(rng: np.random.Generator, rates: Mapping[str, float], items: int) -> dict[str, CountPatterns]:
    """One set of items for each value, each with its own flip rate."""
    made = {}
    for value, rate in rates.items():
        sizes = rng.choice(SIZES, p=SHARES, size=items)
        table = annotate(rng, sizes=sizes, rates=np.full(items, rate), prevalence=[0.6, 0.4])
        made[value] = patterns(table)
    return made


# --- values of a column ----------------------------------------------------------------------------------------


def test_p_values_are_uniform_where_d_is_equal() -> None:
    # 150 samples of three splits: a p-value of a permutation test is uniform but for ties
    rng = np.random.default_rng(2)
    found = [permutation_p_value(parts(rng, dict.fromkeys("abc", 0.1), 60), seed=k)[0] for k in range(150)]
    values = np.array([p for p in found if p is not None])
    assert len(values) == 150
    assert stats.kstest(values, "uniform").pvalue > 0.01
    assert (values < 0.05).mean() < 0.104  # .05 and three standard errors


@pytest.mark.parametrize(
    ("sizes", "items"),
    [((2, 5), (40, 40)), ((2, 10), (30, 200)), ((3, 2), (200, 30)), ((2, 2, 10), (60, 60, 60))],
)
def test_larger_groups_in_one_value_are_no_difference(sizes: list[int], items: list[int]) -> None:
    # each split has groups of one size: eps is the same, but one d_i of ten labels varies less than one of two
    rng = np.random.default_rng(3)
    found = []
    for k in range(200):
        made = {
            str(n): patterns(
                annotate(rng, sizes=np.full(count, size), rates=np.full(count, 0.1), prevalence=[0.5, 0.5])
            )
            for n, (size, count) in enumerate(zip(sizes, items, strict=True))
        }
        p, method, _ = permutation_p_value(made, seed=k)
        assert method == "permutation test at effective numbers of items"
        found.append(p is not None and p < 0.05)
    assert np.mean(found) <= 0.08  # .05 and two standard errors


def test_values_without_a_common_group_size_are_compared_too() -> None:
    # two labels an item in training, three in the test split; d = .095 against .32
    rng = np.random.default_rng(10)
    found = []
    for k in range(20):
        train = annotate(rng, sizes=np.full(150, 2), rates=np.full(150, 0.05), prevalence=[0.5, 0.5])
        test = annotate(rng, sizes=np.full(150, 3), rates=np.full(150, 0.2), prevalence=[0.5, 0.5])
        found.append(permutation_p_value({"train": patterns(train), "test": patterns(test)}, seed=k)[0])
    assert sum(p is not None and p < 0.05 for p in found) >= 18


def test_a_difference_is_found() -> None:
    rng = np.random.default_rng(4)
    found = [permutation_p_value(parts(rng, {"a": 0.05, "b": 0.2}, 150), seed=k)[0] for k in range(20)]
    assert sum(p is not None and p < 0.05 for p in found) >= 18  # d = .095 against .32


def test_pairs_give_the_exact_test() -> None:
    # two values, pairs only: the statistic orders the tables of Fisher's test by |difference|
    made = {"a": patterns([[2, 0], [1, 1]], [30, 4]), "b": patterns([[2, 0], [1, 1]], [22, 14])}
    found = permutation_p_value(made)[0]
    # 18 conflicts in 70 items, 34 of them in a: every table at least as far apart as 4 and 14
    chance = stats.hypergeom(70, 18, 34)
    k = np.arange(19)
    apart = abs(k / 34 - (18 - k) / 36) >= abs(4 / 34 - 14 / 36) - 1e-12
    exact = float(chance.pmf(k[apart]).sum())
    assert found == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 9_999) + 1e-4)


def test_order_and_seed() -> None:
    rng = np.random.default_rng(5)
    made = parts(rng, {"train": 0.1, "test": 0.15, "dev": 0.12}, 80)
    turned = {
        name: patterns(made[name].counts.toarray()[::-1], made[name].items[::-1].tolist())
        for name in reversed(made)
    }
    assert permutation_p_value(made, seed=9) == permutation_p_value(turned, seed=9)
    assert permutation_p_value(made, seed=9) != permutation_p_value(made, seed=10)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ({}, "fewer than two values"),
        ({"a": [[2, 0], [1, 1]]}, "fewer than two values"),
        ({"a": [[2, 0], [1, 1]], "b": [[1, 0]]}, "fewer than two values"),
        ({"a": [[2, 0]], "b": [[0, 3]]}, "no item disagrees"),
        ({"a": [[1, 1]], "b": [[1, 1]]}, "every item disagrees"),
    ],
)
def test_no_p_value_has_a_reason(made: dict[str, Table], says: str) -> None:
    p, method, reason = permutation_p_value({name: patterns(counts) for name, counts in made.items()})
    assert (p, method) == (None, "none")
    assert str(reason).startswith(says)
    found = compare_values("split", {name: patterns(counts) for name, counts in made.items()})
    assert (found.p_value, found.reason, found.within, found.contrast_p_value) == (None, reason, None, None)


def test_identical_values_have_p_one() -> None:
    same = patterns([[2, 0], [1, 1], [2, 1]], [50, 10, 5])
    assert permutation_p_value({"a": same, "b": same}) == (
        1.0,
        "permutation test within group sizes",
        None,
    )


# --- inside and across values ----------------------------------------------------------------------------------


def test_single_pairs_give_fishers_test() -> None:
    found = contrast([(1, 0, 0, 0, 40), (1, 1, 0, 0, 2), (0, 0, 1, 0, 30), (0, 0, 1, 1, 12)])
    wanted = stats.fisher_exact(np.array([[2, 40], [12, 30]])).pvalue
    assert compare_contrast(found) == pytest.approx(wanted, rel=1e-9)
    within, across = inside_and_outside(found)
    assert (within.estimate, within.low, within.high) == (2 / 42, *wilson(2, 42))
    assert (across.estimate, across.low, across.high) == (12 / 42, *wilson(12, 42))
    assert within.method == across.method == "Wilson"


def test_compare_values_reports_both() -> None:
    made = {"a": patterns([[2, 0], [1, 1]], [40, 2]), "b": patterns([[2, 0], [1, 1]], [20, 8])}
    both = contrast([(1, 0, 0, 0, 40), (1, 1, 0, 0, 2), (1, 0, 2, 1, 5), (0, 0, 1, 1, 12)])
    found = compare_values("annotator", made, contrast=both)
    assert found.column == "annotator"
    assert found.items_across == 17
    assert found.within is not None
    assert found.within.estimate == pytest.approx(2 / 47)
    assert found.across is not None
    assert found.across.estimate == pytest.approx((5 * 0.5 + 12) / 17)
    assert found.p_value is not None
    assert found.p_value < 0.05
    assert found.contrast_p_value is not None
    assert found.contrast_p_value < 0.001


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [(1, 1, 0, 0, 5)],  # nothing across
        [(0, 0, 3, 1, 5)],  # nothing within
        [(1, 0, 2, 0, 5)],  # nothing disagrees
        [(1, 1, 2, 2, 5)],  # everything disagrees
    ],
)
def test_contrasts_without_an_answer(rows: list[tuple[int, int, int, int, int]]) -> None:
    assert compare_contrast(contrast(rows)) is None


def crowd(rng: np.random.Generator, items: int, *, copied: float) -> PairContrast:
    """Ten labels an item, eps = .05 or .42; now and then two of them by one annotator, who may copy."""
    rates = np.where(rng.random(items) < 0.2, 0.42, 0.02)
    labels = (rng.random((items, 10)) < rates[:, None]).astype(int)
    twice = rng.random(items) < 0.5  # the first two labels of half of the items are one annotator's
    labels[:, 1] = np.where(twice & (rng.random(items) < copied), labels[:, 0], labels[:, 1])
    ones = labels.sum(axis=1)
    inside = (twice & (labels[:, 0] != labels[:, 1])).astype(np.int64)
    return PairContrast(
        inside_pairs=twice.astype(np.int64), inside_conflicts=inside, outside_pairs=45 - twice.astype(np.int64),
        outside_conflicts=ones * (10 - ones) - inside, items=np.ones(items, np.int64),
    )  # fmt: skip


def test_one_pair_against_many_is_no_false_alarm() -> None:
    # the scores of one pair vary far more than those of 44: a test with one pooled variance rejects in a tenth of
    # such samples at 5 %
    rng = np.random.default_rng(6)
    found = [compare_contrast(crowd(rng, 60, copied=0.0)) for _ in range(300)]
    values = np.array([1.0 if p is None else p for p in found])
    assert (values < 0.05).mean() <= 0.05
    assert (values < 0.005).mean() <= 0.005


def test_copies_are_found() -> None:
    rng = np.random.default_rng(7)
    found = [compare_contrast(crowd(rng, 300, copied=0.9)) for _ in range(40)]
    assert sum(p is not None and p < 0.05 for p in found) >= 36


def test_swapping_the_sides_changes_nothing() -> None:
    rng = np.random.default_rng(8)
    one = crowd(rng, 200, copied=0.5)
    other = PairContrast(
        inside_pairs=one.outside_pairs, inside_conflicts=one.outside_conflicts,
        outside_pairs=one.inside_pairs, outside_conflicts=one.inside_conflicts, items=one.items,
    )  # fmt: skip
    assert compare_contrast(one) == pytest.approx(compare_contrast(other))


def test_a_million_items_are_quickly_compared() -> None:
    found = contrast(
        [(1, 0, 0, 0, 480_000), (1, 1, 0, 0, 20_000), (0, 0, 3, 0, 440_000), (0, 0, 3, 2, 60_000)]
    )
    p = compare_contrast(found)
    assert p is not None
    assert p < 1e-100  # d = .04 against .08
