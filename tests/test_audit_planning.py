"""Planning: the golden numbers, and that the planned pairs give the wanted width."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.errors import ArgumentError
from audit.fliprate import disagreement_of, flip_rate, maximum_disagreement
from audit.intervals import wilson
from audit.planning import half_width, pairs_needed, ranking_factor, wilson_half_width


@pytest.mark.parametrize(
    ("width", "formula"),
    # eps = .10: d = .18, n = 3.841459 * .18 * .82/(4 w^2 (1 - .36)) = .221484/w^2
    [(0.01, 2_215), (0.02, 554), (0.05, 89)],
)
def test_golden(width: float, formula: int) -> None:
    found = pairs_needed(width, rate=0.10)
    assert math.ceil(3.841459 * 0.18 * 0.82 / (4 * width**2 * 0.64)) == formula
    assert (found.formula, found.pairs) == (formula, formula)
    assert found.wilson_half_width == pytest.approx(width, rel=0.05)


def test_few_pairs_are_checked_against_wilson() -> None:
    # eps = .02 to +-.03: the formula says 44 pairs, where Wilson's interval is still +-.036 wide
    found = pairs_needed(0.03, rate=0.02)
    d = disagreement_of(0.02, classes=2)
    assert found.formula == math.ceil(3.841459 * d * (1 - d) / (4 * 0.03**2 * (1 - 2 * d)))
    assert wilson_half_width(found.formula, d=d) > 1.05 * 0.03
    assert found.pairs > found.formula
    assert found.wilson_half_width <= 1.05 * 0.03 < wilson_half_width(found.pairs - 1, d=d)


def test_many_pairs_are_checked_too() -> None:
    # eps = .005 to +-.008: 151 pairs by the formula hold 1.5 conflicts, and Wilson's interval is 27 % too wide
    found = pairs_needed(0.008, rate=0.005)
    assert found.formula == 151
    assert wilson_half_width(151, d=disagreement_of(0.005, classes=2)) > 1.26 * 0.008
    assert found.pairs == 200
    assert found.wilson_half_width <= 1.05 * 0.008


def test_more_classes() -> None:
    # K = 3: the slope of eps_3(d) is 1/(2 (1 - 3 d/2)^(1/2)), so the last factor is 1 - 3d/2
    d = disagreement_of(0.1, classes=3)
    assert pairs_needed(0.01, rate=0.1, classes=3).formula == math.ceil(
        3.841459 * d * (1 - d) / (4 * 0.01**2 * (1 - 1.5 * d))
    )


rates = st.integers(2, 20).flatmap(
    lambda k: st.tuples(st.just(k), st.floats(0.01, 0.9).map(lambda x: x * maximum_disagreement(k)))
)


@given(rates, st.floats(0.005, 0.2), st.sampled_from([0.8, 0.95, 0.99]))
def test_the_plan_keeps_its_promise(pair: tuple[int, float], width: float, level: float) -> None:
    classes, rate = pair
    found = pairs_needed(width, rate=rate, classes=classes, level=level)
    assert found.pairs >= found.formula >= 1
    assert found.wilson_half_width == wilson_half_width(
        found.pairs, d=disagreement_of(rate, classes=classes), classes=classes, level=level
    )
    assert found.wilson_half_width <= 1.05 * width
    if found.pairs > found.formula:
        d = disagreement_of(rate, classes=classes)
        assert wilson_half_width(found.pairs - 1, d=d, classes=classes, level=level) > 1.05 * width
    assert pairs_needed(width / 2, rate=rate, classes=classes, level=level).pairs >= found.pairs


def test_half_width_by_hand() -> None:
    low, high = wilson(18, 100)
    assert half_width(low, high) == pytest.approx(
        (flip_rate(high, classes=2) - flip_rate(low, classes=2)) / 2
    )
    assert half_width(0.3, 0.7) == pytest.approx((0.5 - flip_rate(0.3, classes=2)) / 2)  # eps ends at 1/2


def test_ranking_factor() -> None:
    # differences between models shrink by 1 - 2 eps, so the rows grow by 1/(1 - 2 eps)^2 = 1/(1 - 2d)
    assert ranking_factor(0.18) == pytest.approx(1 / 0.64)
    assert ranking_factor(0.18) == pytest.approx(1 / (1 - 2 * 0.1) ** 2)
    assert ranking_factor(0.0) == 1.0
    for d in (0.5, -0.1):
        with pytest.raises(ArgumentError, match="ranking factor"):
            ranking_factor(d)


@pytest.mark.parametrize(
    ("width", "rate", "says"),
    [(0.0, 0.1, "half-width"), (0.5, 0.1, "half-width"), (0.02, 0.0, "flip rate"), (0.02, 0.5, "flip rate")],
)
def test_plans_that_cannot_be(width: float, rate: float, says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        pairs_needed(width, rate=rate)
