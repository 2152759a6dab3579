"""Kappa and alpha: by hand, against scikit-learn and krippendorff to 1e-12, and their intervals."""

from __future__ import annotations

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given
from sklearn.metrics import cohen_kappa_score

from audit.agreement import class_shares, estimate_agreement, krippendorff_alpha, retest_kappa
from audit.disagreement import estimate_disagreement
from audit.intervals import bootstrap_totals, no_conflict_upper
from audit.patterns import CountPatterns
from tests.naive import Table, annotate, labels_of, tables


def patterns(counts: object, items: list[int] | None = None) -> CountPatterns:
    return CountPatterns.from_counts(counts, items=items)


def test_by_hand() -> None:
    # 100 pairs: 60 aa, 18 ab, 22 bb. d = .18, share of b m = (9 + 22)/100 = .31,
    # kappa = 1 - d/(2 m (1 - m)) = 1 - .18/.4278 = .5792
    found = patterns([[2, 0], [1, 1], [0, 2]], [60, 18, 22])
    assert class_shares(found).tolist() == [pytest.approx(0.69), pytest.approx(0.31)]
    assert retest_kappa(found) == pytest.approx(1 - 0.18 / (2 * 0.31 * 0.69), abs=1e-12)
    # alpha: D_e over 200 labels, 138 a and 62 b: 1 - (138*137 + 62*61)/(200*199)
    assert krippendorff_alpha(found) == pytest.approx(1 - 0.18 / (1 - (138 * 137 + 62 * 61) / (200 * 199)))


def test_symmetric_noise_and_a_rare_class() -> None:
    # kappa of flips with eps = .05 falls with the prevalence though d = .095 does not: m = pi + eps - 2 pi eps
    def kappa(prevalence: float) -> float:
        stays, flips = 0.95, 0.05
        aa = (1 - prevalence) * stays**2 + prevalence * flips**2
        bb = (1 - prevalence) * flips**2 + prevalence * stays**2
        weights = np.round(np.array([aa, 2 * stays * flips, bb]) * 10**9).astype(int)
        return retest_kappa(patterns([[2, 0], [1, 1], [0, 2]], weights.tolist())) or 0.0

    for prevalence in (0.5, 0.05):
        m = prevalence * 0.95 + (1 - prevalence) * 0.05
        assert kappa(prevalence) == pytest.approx(1 - 0.095 / (2 * m * (1 - m)), abs=1e-7)


@given(tables(smallest=2))
def test_kappa_of_pairs_is_cohens_on_both_orders(table: Table) -> None:
    pairs = [row for row in table if row.sum() == 2]
    assume(len({label for row in pairs for label in labels_of(row)}) > 1)
    first, second = zip(*(labels_of(row) for row in pairs), strict=True)
    wanted = cohen_kappa_score([*first, *second], [*second, *first])
    assert retest_kappa(patterns(np.array(pairs))) == pytest.approx(wanted, abs=1e-12)


@given(tables())
def test_alpha_is_krippendorffs(table: Table) -> None:
    assume(np.count_nonzero(table[table.sum(axis=1) >= 2].sum(axis=0)) > 1)
    wanted = krippendorff.alpha(value_counts=table, level_of_measurement="nominal")
    assert krippendorff_alpha(patterns(table)) == pytest.approx(wanted, abs=1e-12)


@given(tables())
def test_limits_hold_the_estimate(table: Table) -> None:
    found = estimate_agreement(patterns(table))
    for part in (found.kappa, found.alpha):
        if part.estimate is None:
            assert found.reason
            assert (part.low, part.high) == (None, None)
        else:
            assert part.low is not None
            assert part.high is not None
            assert part.low <= part.estimate + 1e-12
            assert part.estimate - 1e-12 <= part.high <= 1 + 1e-12


@pytest.mark.parametrize(
    ("counts", "says"), [([[1, 0]], "no item has two labels"), ([[2, 0], [3, 0]], "all labels are equal")]
)
def test_no_chance_level_no_coefficient(counts: object, says: str) -> None:
    found = estimate_agreement(patterns(counts))
    assert (found.kappa.estimate, found.alpha.estimate) == (None, None)
    assert str(found.reason).startswith(says)
    assert retest_kappa(patterns(counts)) is None
    assert krippendorff_alpha(patterns(counts)) is None


def test_the_width_is_that_of_the_bootstrap() -> None:
    # 3,000 items are enough for the interval to be the estimate and 1.96 standard errors; those of the bootstrap
    # have a relative error of 1/sqrt(2 * 20,000) = .5 %. With a rare class most of the variance is in E, not in D
    rng = np.random.default_rng(12)
    sizes = rng.choice([2, 3, 8], p=[0.6, 0.3, 0.1], size=3_000)
    found = patterns(annotate(rng, sizes=sizes, rates=np.full(3_000, 0.1), prevalence=[0.95, 0.05]))
    ones = found.counts.toarray()[:, 1].astype(float)
    n, d = found.sizes.astype(float), found.disagreement
    columns = np.column_stack([np.ones(len(n)), d, ones / n, n, n * d, ones])
    items, d_sum, share, labels, nd_sum, count = bootstrap_totals(
        columns, found.items, draws=20_000, rng=rng
    ).T
    m, q = share / items, count / labels
    kappa = 1 - (d_sum / items) / (2 * m * (1 - m))
    alpha = 1 - (nd_sum / labels) / (2 * q * (1 - q) * labels / (labels - 1))
    both = estimate_agreement(found)
    for part, draws in ((both.kappa, kappa), (both.alpha, alpha)):
        assert part.high is not None
        assert part.low is not None
        assert part.high - part.low == pytest.approx(2 * 1.96 * draws.std(), rel=0.03)


def test_no_conflict_is_one_sided() -> None:
    # kappa = 1; its low end is 1 - d_high/(2 m (1 - m)), with m = 15/75 = .2 and d_high = 1 - .05^(1/75)
    found = estimate_agreement(patterns([[2, 0], [0, 2]], [60, 15])).kappa
    assert (found.estimate, found.high, found.method) == (1.0, 1.0, "one-sided, no conflicts")
    assert found.low == pytest.approx(1 - no_conflict_upper(75) / 0.32)


def test_every_pair_differs() -> None:
    found = estimate_agreement(patterns([[1, 1]], [30]))
    assert found.kappa.estimate == pytest.approx(-1.0)  # d = 1 against 1/2
    assert found.alpha.estimate == pytest.approx(1 - 1 / (1 - 2 * 30 * 29 / (60 * 59)))


def test_a_thousand_classes_have_intervals() -> None:
    table = np.zeros((500, 1_000), np.int64)
    table[np.arange(500), np.arange(500)] += 1
    table[np.arange(500), np.arange(500) + np.where(np.arange(500) < 90, 500, 0)] += 1
    found = estimate_agreement(patterns(table)).kappa
    d = estimate_disagreement(patterns(table), interval="exact")
    assert d.low is not None
    assert d.high is not None
    assert found.estimate == pytest.approx(1 - 0.18, abs=0.001)  # so many classes hardly agree by chance
    assert found.low == pytest.approx(1 - d.high, abs=0.002)
    assert found.high == pytest.approx(1 - d.low, abs=0.002)


@pytest.mark.parametrize("repeats", ["pairs", "mixed"])
def test_intervals_cover(repeats: str) -> None:
    # 500 samples of 60 items with eps = .05, 30 % of class 1; the truth from 10^6 items; s.e. of a share .01
    rng = np.random.default_rng(3)

    def sample(n: int) -> CountPatterns:
        sizes = np.full(n, 2) if repeats == "pairs" else rng.choice([2, 3, 8], p=[0.6, 0.3, 0.1], size=n)
        return patterns(annotate(rng, sizes=sizes, rates=np.full(n, 0.05), prevalence=[0.7, 0.3]))

    large = sample(1_000_000)
    truth = retest_kappa(large) or 0.0, krippendorff_alpha(large) or 0.0
    held = np.zeros(2)
    for _ in range(500):
        found = estimate_agreement(sample(60))
        for k, part in enumerate((found.kappa, found.alpha)):
            held[k] += (part.low or -9.0) <= truth[k] <= (part.high or 9.0)
    assert np.all(held / 500 >= 0.93), held / 500
