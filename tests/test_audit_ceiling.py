"""The band: golden numbers, that it holds the true ceiling, and where a score falls in it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.ceiling import accuracy_without_noise, ceiling_band, check_gate, pair_disagreement, place_score
from audit.disagreement import estimate_disagreement
from audit.errors import ArgumentError
from audit.fliprate import disagreement_of, estimate_flip_rate, flip_rate
from audit.intervals import no_conflict_upper, wilson
from audit.patterns import CountPatterns
from audit.results import Ceiling


def band(d: float, *, pairs: int = 10**9, classes: int = 2, minority: float | None = None) -> Ceiling:
    part = pair_disagreement(d, pairs=pairs)
    return ceiling_band(part, estimate_flip_rate(part, classes=classes), minority_share=minority)


@pytest.mark.parametrize(
    ("strata", "lower", "upper", "ceiling"),
    [
        # every item at eps = .1: d = .18, and the ceiling is the top of the band
        ([(1.0, 0.1)], 0.820, 0.900, 0.900),
        # 80 % of items at .02, 20 % at .42: d = .8 * .0392 + .2 * .4872 = .1288; ceiling .8 * .98 + .2 * .58
        ([(0.8, 0.02), (0.2, 0.42)], 0.8712, 0.9308, 0.900),
        # half of the items certain, half coin flips: d = .25, ceiling .75 = 1 - d, the bottom of the band
        ([(0.5, 0.0), (0.5, 0.5)], 0.75, 1 - (1 - math.sqrt(0.5)) / 2, 0.75),
    ],
)
def test_golden(strata: list[tuple[float, float]], lower: float, upper: float, ceiling: float) -> None:
    d = sum(share * disagreement_of(rate, classes=2) for share, rate in strata)
    found = band(d)
    assert (found.lower, found.upper) == (pytest.approx(lower, abs=5e-5), pytest.approx(upper, abs=5e-5))
    assert sum(share * (1 - rate) for share, rate in strata) == pytest.approx(ceiling)
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower - 1e-12 <= ceiling <= found.upper + 1e-12


@given(st.integers(2, 6), st.integers(1, 8), st.integers(0, 2**32 - 1), st.floats(0.02, 5))
def test_the_band_holds_the_ceiling_of_any_mixture(
    classes: int, items: int, seed: int, spread: float
) -> None:
    p = np.random.default_rng(seed).dirichlet([spread] * classes, size=items)
    d = float(np.mean(1 - np.sum(p**2, axis=1)))
    found = band(d, classes=classes)
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower - 1e-9 <= p.max(axis=1).mean() <= found.upper + 1e-9


def test_widened_by_sampling_error() -> None:
    # 18 conflicts in 100 pairs: Wilson [.1170, .2667]; the band is [1 - .2667, 1 - eps(.1170)]
    found = band(0.18, pairs=100)
    low, high = wilson(18, 100)
    assert found.low == pytest.approx(1 - high)
    assert found.high == pytest.approx(1 - flip_rate(low, classes=2))
    assert found.lower == pytest.approx(0.82)
    assert found.upper == pytest.approx(0.90)


def test_a_rare_class_lifts_the_lower_end() -> None:
    # always answering the common class errs on m = 5 %, less than d = 9 %
    assert band(0.09, minority=0.05).prevalence_lower == pytest.approx(0.95)
    assert band(0.09, minority=0.3).prevalence_lower == pytest.approx(0.91)
    assert band(0.09).prevalence_lower is None
    with pytest.raises(ArgumentError, match="rarer class"):
        band(0.09, minority=0.7)


def test_no_flip_rate_no_band() -> None:
    found = band(0.6)
    assert (found.lower, found.upper, found.low, found.high) == (None, None, None, None)
    assert "above (K-1)/K" in str(found.reason)
    none = estimate_disagreement(CountPatterns.from_counts([[1, 0]]))
    assert ceiling_band(none, estimate_flip_rate(none, classes=2)).reason == none.reason


def test_a_given_disagreement_has_the_interval_of_its_pairs() -> None:
    assert pair_disagreement(0.18, pairs=100).low == wilson(18, 100)[0]
    zero = pair_disagreement(0.0, pairs=75)
    assert (zero.low, zero.high, zero.method) == (0.0, no_conflict_upper(75), "one-sided, no conflicts")
    with pytest.raises(ArgumentError, match=r"lies in \[0, 1\]"):
        pair_disagreement(18, pairs=100)
    with pytest.raises(ArgumentError, match="at least one trial"):
        pair_disagreement(0.18, pairs=0)


# --- a score in the band ---------------------------------------------------------------------------------------

D = pair_disagreement(0.18, pairs=400)  # band [.820, .900]; widened [.7794, .9222]


@pytest.mark.parametrize(
    ("score", "n_test", "position", "settled", "words"),
    [
        (0.60, 500, "below", True, "room for a better model"),
        (0.78, 500, "below", False, "The band with sampling error is"),  # its interval ends at .814
        (0.86, 500, "inside", False, "may already be at the ceiling"),
        # with a large test set it is the band's own error that counts: d in [.145, .221] holds the bottom below
        # .855 and the top above .874
        (0.84, 10**7, "inside", False, "The band with sampling error is"),
        (0.865, 10**7, "inside", True, "may already be at the ceiling"),
        (0.89, 10**7, "inside", False, "The band with sampling error is"),
        (0.97, 500, "above", True, "Look for leakage"),
        (0.91, 500, "above", False, "no sign of leakage yet"),
        (0.97, None, "above", False, "give the number of test rows"),
    ],
)
def test_places(score: float, n_test: int | None, position: str, settled: bool, words: str) -> None:
    found = place_score(score, d=D, classes=2, n_test=n_test)
    assert (found.position, found.settled) == (position, settled)
    assert words in found.message
    if n_test is not None:
        assert (found.score_low, found.score_high) == wilson(score * n_test, n_test)
    assert found.corrected == pytest.approx((score - 0.1) / 0.8)


def test_inside_is_settled_with_enough_of_both() -> None:
    found = place_score(0.86, d=pair_disagreement(0.18, pairs=100_000), classes=2, n_test=50_000)
    assert (found.position, found.settled) == ("inside", True)


def test_without_a_band_the_place_is_unknown() -> None:
    found = place_score(0.9, d=pair_disagreement(0.6, pairs=50), classes=2, n_test=100)
    assert (found.position, found.settled, found.corrected) == ("unknown", False, None)
    assert "no band" in found.message
    refused = place_score(0.9, d=D, classes=2, refused="de-duplicated")
    assert "de-duplicated" in refused.message


def test_more_classes_have_no_correction() -> None:
    assert place_score(0.86, d=D, classes=3).corrected is None


def test_noise_on_the_test_labels_taken_out() -> None:
    # a model right on 95 %, labels flipped on 10 %, independently: it scores .95 * .9 + .05 * .1 = .86
    assert accuracy_without_noise(0.86, rate=0.1) == pytest.approx(0.95)
    assert accuracy_without_noise(0.95, rate=0.1) > 1, "not clipped: the condition does not hold"
    with pytest.raises(ArgumentError, match="flip rate"):
        accuracy_without_noise(0.86, rate=0.5)


@pytest.mark.parametrize(
    ("score", "n_test", "says"),
    [(93, None, "divide a percentage by 100"), (math.nan, None, "lies in"), (0.9, 0, "at least 1")],
)
def test_scores_that_cannot_be(score: float, n_test: int | None, says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        place_score(score, d=D, classes=2, n_test=n_test)


# --- the gate --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("threshold", "end", "passed"),
    [(0.82, "lower", True), (0.83, "lower", False), (0.89, "upper", True), (0.91, "upper", False)],
)
def test_gate(threshold: float, end: str, passed: bool) -> None:
    found = check_gate(band(0.18), threshold=threshold, end=end)  # type: ignore[arg-type]
    assert found.passed is passed
    assert ("passed" if passed else "failed") in found.message


def test_a_gate_that_cannot_be_measured_fails() -> None:
    found = check_gate(band(0.6), threshold=0.1)
    assert (found.passed, found.value) == (False, None)
    assert "above (K-1)/K" in found.message
    with pytest.raises(ArgumentError, match="divide a percentage by 100"):
        check_gate(band(0.18), threshold=90)
