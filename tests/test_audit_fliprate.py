"""The flip rate: golden numbers, both error patterns, and where there is none."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.disagreement import estimate_disagreement
from audit.errors import ArgumentError
from audit.fliprate import disagreement_of, estimate_flip_rate, flip_rate, maximum_disagreement
from audit.patterns import CountPatterns

classes_and_rate = st.integers(2, 1_000).flatmap(
    lambda k: st.tuples(st.just(k), st.floats(0, 1).map(lambda share: share * (k - 1) / k))
)


@pytest.mark.parametrize(
    ("rate", "classes", "d"),
    [
        (0.10, 2, 0.18),  # 2 * .1 * .9
        (0.02, 2, 0.0392),  # 2 * .02 * .98
        (0.10, 3, 0.185),  # .2 - .01 * 3/2
        (0.10, 10, 0.2 - 0.01 * 10 / 9),
        (0.50, 2, 0.5),  # coin flips
        (0.75, 4, 0.75),  # labels drawn evenly from four classes
        (0.00, 7, 0.0),
    ],
)
def test_both_ways_by_hand(rate: float, classes: int, d: float) -> None:
    assert disagreement_of(rate, classes=classes) == pytest.approx(d, abs=1e-15)
    assert flip_rate(d, classes=classes) == pytest.approx(rate, abs=1e-7 if rate >= 0.5 else 1e-15)


@pytest.mark.parametrize(
    ("d", "classes", "rate"),
    # the published table of the anaesthetists (four grades): eps = .75 (1 - sqrt(1 - 4 d/3))
    [(0.2720, 4, 0.1512), (0.1926, 4, 0.1034)],
)
def test_golden(d: float, classes: int, rate: float) -> None:
    assert flip_rate(d, classes=classes) == pytest.approx(rate, abs=1e-4)


def test_two_labels_differ_as_the_formula_says() -> None:
    # summed over all pairs of labels: p = (1 - eps, eps/(K-1), ...), d = 1 - sum p^2
    for classes in (2, 3, 5, 20):
        for rate in (0.05, 0.3):
            p = [1 - rate] + [rate / (classes - 1)] * (classes - 1)
            assert disagreement_of(rate, classes=classes) == pytest.approx(1 - sum(x * x for x in p))


@given(classes_and_rate)
def test_there_and_back(pair: tuple[int, float]) -> None:
    classes, rate = pair
    d = disagreement_of(rate, classes=classes)
    assert 0 <= d <= maximum_disagreement(classes) + 1e-12
    # at the top of its range eps moves with the square root of d: 1e-16 there is 1e-8 here
    assert flip_rate(d, classes=classes) == pytest.approx(rate, abs=3e-8)
    top = maximum_disagreement(classes)
    if rate < 0.99 * top:
        assert flip_rate(d, classes=classes) == pytest.approx(rate, abs=1e-13)


@given(st.integers(2, 50), st.floats(0, 1), st.floats(0, 1))
def test_more_disagreement_is_more_error(classes: int, one: float, other: float) -> None:
    low, high = sorted(share * maximum_disagreement(classes) for share in (one, other))
    assert flip_rate(low, classes=classes) <= flip_rate(high, classes=classes)


@given(st.floats(0, 0.5), st.integers(2, 50))
def test_spread_errors_need_fewer_flips_than_one_rival(d: float, classes: int) -> None:
    # two errors that went to different classes differ too, so the same d takes fewer of them
    spread, rival = flip_rate(d, classes=classes), flip_rate(d, classes=2)
    assert spread <= rival + 1e-15
    assert d / 2 - 1e-12 <= spread <= d + 1e-12


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_maximum(classes: int) -> None:
    top = maximum_disagreement(classes)
    assert top == (classes - 1) / classes
    assert flip_rate(top, classes=classes) == pytest.approx(top)
    for d in (top + 1e-6, -1e-9, math.nan):
        with pytest.raises(ArgumentError, match="it lies in"):
            flip_rate(d, classes=classes)
    with pytest.raises(ArgumentError, match="lies in"):
        disagreement_of(top + 1e-6, classes=classes)
    with pytest.raises(ArgumentError, match="at least 2 classes"):
        maximum_disagreement(1)


# --- from an estimate ------------------------------------------------------------------------------------------


def test_end_points_are_mapped() -> None:
    d = estimate_disagreement(CountPatterns.from_counts([[2, 0, 0], [1, 1, 0]], items=[82, 18]))
    found = estimate_flip_rate(d, classes=3)
    assert found.classes == 3
    assert found.method == "Wilson, mapped through eps_3(d)"
    assert found.reason is None
    for part, of, k in ((found, d, 3), (found.one_rival, d, 2)):
        for end in ("estimate", "low", "high"):
            assert getattr(part, end) == flip_rate(getattr(of, end), classes=k)
    # d = .18: one rival eps = (1 - sqrt(.64))/2 = .1; spread (2/3)(1 - sqrt(1 - .27)) = .0971
    assert found.one_rival.estimate == pytest.approx(0.1, abs=1e-12)
    assert found.estimate == pytest.approx(0.0971, abs=5e-5)


def test_no_conflicts_still_have_an_upper_limit() -> None:
    d = estimate_disagreement(CountPatterns.from_counts([[2, 0]], items=[75]))
    found = estimate_flip_rate(d, classes=2)
    assert (found.estimate, found.low) == (0.0, 0.0)
    assert found.high == flip_rate(1 - 0.05 ** (1 / 75), classes=2)


def test_above_the_maximum_there_is_no_rate() -> None:
    # an LLM judge asked in both orders: 245 of 419 differ, d = .5847 > 1/2
    d = estimate_disagreement(CountPatterns.from_counts([[2, 0], [1, 1]], items=[174, 245]))
    found = estimate_flip_rate(d, classes=2)
    assert (found.estimate, found.low, found.high) == (None, None, None)
    assert (found.one_rival.estimate, found.one_rival.low, found.one_rival.high) == (None, None, None)
    assert found.reason == (
        "d = 0.585 is above (K-1)/K = 0.500, more than labels drawn evenly at random would disagree over 2 "
        "classes: the repeats are no independent labels of one item"
    )


def test_upper_limit_above_the_maximum_ends_the_range() -> None:
    d = estimate_disagreement(CountPatterns.from_counts([[2, 0], [1, 1]], items=[16, 14]))
    assert d.high is not None
    assert d.high > 0.5
    found = estimate_flip_rate(d, classes=2)
    assert found.estimate == flip_rate(14 / 30, classes=2)
    assert found.high == 0.5


def test_one_rival_may_be_missing_where_spread_errors_are_not() -> None:
    # d = .6 over 10 classes is possible, between two classes it is not
    d = estimate_disagreement(CountPatterns.from_counts([[2] + [0] * 9, [1, 1] + [0] * 8], items=[40, 60]))
    found = estimate_flip_rate(d, classes=10)
    assert found.estimate == pytest.approx(0.9 * (1 - math.sqrt(1 - 0.6 / 0.9)))
    assert found.one_rival.estimate is None


def test_one_declared_class_or_no_repeats_or_refused() -> None:
    one = estimate_disagreement(CountPatterns.from_counts([[2]]))
    assert "name the others with --classes" in str(estimate_flip_rate(one, classes=1).reason)
    none = estimate_disagreement(CountPatterns.from_counts([[1, 0]]))
    assert estimate_flip_rate(none, classes=2).reason == none.reason
    good = estimate_disagreement(CountPatterns.from_counts([[2, 0], [1, 1]]))
    refused = estimate_flip_rate(good, classes=2, refused="de-duplicated")
    assert (refused.estimate, refused.reason) == (None, "de-duplicated")
