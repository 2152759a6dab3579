"""The identified set of asymmetric flips from pairs: formulas, the design's example, coverage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.asymmetric import flips_at, identified_set, pair_shares
from audit.errors import ArgumentError
from audit.fliprate import flip_rate
from audit.patterns import CountPatterns

#: DESIGN's example: pi = .1, e10 = .30, e01 = .02.
PI, MISS, FALSE = 0.1, 0.30, 0.02
M = PI * (1 - MISS) + (1 - PI) * FALSE
P11 = PI * (1 - MISS) ** 2 + (1 - PI) * FALSE**2


def pairs_of(m: float, p11: float, items: int = 10**9) -> CountPatterns:
    shares = (1 - 2 * m + p11, 2 * (m - p11), p11)
    return CountPatterns.from_counts([[2, 0], [1, 1], [0, 2]], items=[round(items * s) for s in shares])


def drawn(rng: np.random.Generator, items: int, size: int = 2) -> CountPatterns:
    truth = rng.random(items) < PI
    ones = rng.binomial(size, np.where(truth, 1 - MISS, FALSE))
    return CountPatterns.from_counts(np.column_stack([size - ones, ones]))


def test_the_example_of_the_design() -> None:
    # d = 2(m - P11) = 2(.088 - .04936) = .0773; symmetric eps = (1 - sqrt(1 - 2d))/2 = .0403; true mean error
    # .1(.30) + .9(.02) = .048; the set is [.040, .069]
    assert pytest.approx(0.077, abs=5e-4) == 2 * (M - P11)
    assert flip_rate(2 * (M - P11), classes=2) == pytest.approx(0.040, abs=5e-4)
    found = identified_set(pairs_of(M, P11))
    assert found.mean_error.lower == pytest.approx(0.040, abs=5e-4)
    assert found.mean_error.upper == pytest.approx(0.069, abs=5e-4)
    # the ends of pi by hand: 1 - (1 - m)^2/P00 = 1 - .912^2/.87336 = .0477, m^2/P11 = .088^2/.04936 = .1569
    assert found.prevalence.lower == pytest.approx(0.0477, abs=1e-4)
    assert found.prevalence.upper == pytest.approx(0.1569, abs=1e-4)
    assert flips_at(PI, m=M, p11=P11) == (pytest.approx(MISS), pytest.approx(FALSE))
    # at each end one of the errors is none
    assert flips_at(M * M / P11, m=M, p11=P11)[1] == pytest.approx(0.0, abs=1e-9)
    assert flips_at(1 - (1 - M) ** 2 / (1 - 2 * M + P11), m=M, p11=P11)[0] == pytest.approx(0.0, abs=1e-9)


@given(st.floats(0.05, 0.95), st.floats(0.0, 0.45), st.floats(0.0, 0.45))
def test_the_truth_is_in_the_set(pi: float, miss: float, false: float) -> None:
    m = pi * (1 - miss) + (1 - pi) * false
    p11 = pi * (1 - miss) ** 2 + (1 - pi) * false**2
    assert flips_at(pi, m=m, p11=p11) == (pytest.approx(miss, abs=1e-6), pytest.approx(false, abs=1e-6))
    found = identified_set(pairs_of(m, p11))
    wanted = (pi, miss, false, pi * miss + (1 - pi) * false)
    parts = (found.prevalence, found.miss, found.false_alarm, found.mean_error)
    for value, part in zip(wanted, parts, strict=True):
        assert part.lower is not None
        assert part.upper is not None
        assert part.lower - 2e-4 <= value <= part.upper + 2e-4
        assert miss + false < 1  # the branch that is taken


def test_other_classes_are_the_mirror_image() -> None:
    patterns = drawn(np.random.default_rng(0), 400)
    one, other = identified_set(patterns), identified_set(patterns, positive=0)
    assert one.positive == "1"
    assert other.positive == "0"
    assert one.mean_error.lower == pytest.approx(other.mean_error.lower)
    assert one.mean_error.high == pytest.approx(other.mean_error.high, abs=5e-3)
    assert one.miss.upper == pytest.approx(other.false_alarm.upper)
    assert one.share == pytest.approx(1 - (other.share or 0.0))


def test_larger_groups_count_once_each() -> None:
    found = pair_shares(CountPatterns.from_counts([[1, 3], [2, 0]], items=[10, 30]))
    assert found.m == pytest.approx(10 / 40 * 0.75)
    assert found.p11 == pytest.approx(10 / 40 * 6 / 12)  # 3 of 4 labels: 3(2)/(4(3)) of the pairs
    assert found.p00 == pytest.approx(1 - 2 * found.m + found.p11)


@pytest.mark.parametrize("size", [2, 4])
def test_the_set_with_sampling_error_holds_everything(size: int) -> None:
    truth = (PI, MISS, FALSE, PI * MISS + (1 - PI) * FALSE)
    held = 0
    for seed in range(200):
        found = identified_set(drawn(np.random.default_rng(seed), 300, size))
        parts = (found.prevalence, found.miss, found.false_alarm, found.mean_error)
        held += all(
            p.low is None or p.high is None or p.low <= value <= p.high
            for value, p in zip(truth, parts, strict=True)
        )
    assert held >= 190  # 95 %


@pytest.mark.parametrize(
    ("pi", "miss", "false", "items"), [(0.3, 0.01, 0.002, 50), (0.5, 0.01, 0.01, 20), (0.3, 0.03, 0.03, 100)]
)
def test_few_conflicts_or_none_do_not_fool_it(pi: float, miss: float, false: float, items: int) -> None:
    """With an expected conflict or less, most samples show none: the limits must be those of what may not be seen."""
    wrong, held = pi * miss + (1 - pi) * false, 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        ones = rng.binomial(2, np.where(rng.random(items) < pi, 1 - miss, false))
        found = identified_set(CountPatterns.from_counts(np.column_stack([2 - ones, ones]))).mean_error
        held += found.low is None or found.high is None or found.low <= wrong <= found.high
    assert held >= 95
    none = identified_set(CountPatterns.from_counts([[2, 0], [0, 2]], items=[120, 80]))
    assert none.mean_error.upper == pytest.approx(0.0, abs=1e-9)
    assert none.mean_error.high is not None
    assert 0.0075 < none.mean_error.high < 0.03  # half of d, which is 3/n at most


def test_labels_that_say_nothing_have_no_set() -> None:
    found = identified_set(pairs_of(0.5, 0.2))  # agree less than by chance
    assert found.mean_error.lower is None
    assert found.reason is not None
    assert "no more than" in found.reason
    few = identified_set(CountPatterns.from_counts([[2, 0], [0, 2]], items=[5, 4]))
    assert few.reason == "fewer than 10 items have two labels"
    vague = identified_set(CountPatterns.from_counts([[2, 0], [1, 1], [0, 2]], items=[7, 8, 7]))
    assert vague.reason is not None
    assert "too few repeats" in vague.reason
    assert (vague.mean_error.low, vague.mean_error.high) == (0.0, 1.0)


def test_two_classes_and_some_repeats_are_needed() -> None:
    with pytest.raises(ArgumentError):
        identified_set(CountPatterns.from_counts([[2, 0, 0]], items=[50]))
    with pytest.raises(ArgumentError):
        identified_set(CountPatterns.from_counts([[1, 0]], items=[50]))
