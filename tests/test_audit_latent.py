"""Error rates without gold: Hui and Walter's strata, latent classes from three labels, what is not identified."""

from __future__ import annotations

import numpy as np
import pytest

from audit.errors import ArgumentError
from audit.latent import SWAP, latent_classes, percentiles
from audit.patterns import CountPatterns
from audit.results import LatentClasses

MISS, FALSE = 0.30, 0.05


def drawn(
    seed: int, items: int, pi: float, size: int, *, miss: float = MISS, false: float = FALSE
) -> CountPatterns:
    rng = np.random.default_rng(seed)
    ones = rng.binomial(size, np.where(rng.random(items) < pi, 1 - miss, false))
    return CountPatterns.from_counts(np.column_stack([size - ones, ones]))


def exact(pi: float, size: int, items: int = 10**8) -> CountPatterns:
    """Counts in the very proportions of the model."""
    from scipy import stats

    ones = np.arange(size + 1)
    share = pi * stats.binom.pmf(ones, size, 1 - MISS) + (1 - pi) * stats.binom.pmf(ones, size, FALSE)
    return CountPatterns.from_counts(
        np.column_stack([size - ones, ones]), items=np.rint(items * share).astype(np.int64)
    )


def rate(found: LatentClasses, truth: str, label: str) -> float:
    (value,) = [r.estimate for r in found.rates if (r.truth, r.label) == (truth, label)]
    assert value is not None
    return value


def test_two_strata_identify_all_of_it() -> None:
    """Hui & Walter with exchangeable labels: four numbers, four unknowns."""
    found = latent_classes({"a": exact(0.1, 2), "b": exact(0.6, 2)})
    assert found.method == "Hui-Walter"
    assert rate(found, "1", "0") == pytest.approx(MISS, abs=1e-3)
    assert rate(found, "0", "1") == pytest.approx(FALSE, abs=1e-3)
    assert [s.prevalence[1].estimate for s in found.strata] == [
        pytest.approx(0.1, abs=1e-3),
        pytest.approx(0.6, abs=1e-3),
    ]
    assert found.fit_p_value is None  # just identified: nothing is left to test
    assert found.notes == (SWAP,)


def test_three_labels_identify_it_too() -> None:
    found = latent_classes({"": exact(0.3, 3)})
    assert found.method == "latent classes"
    assert (rate(found, "1", "0"), rate(found, "0", "1")) == (
        pytest.approx(MISS, abs=1e-3),
        pytest.approx(FALSE, abs=1e-3),
    )
    assert found.mean_error.estimate == pytest.approx(0.3 * MISS + 0.7 * FALSE, abs=1e-3)


def test_more_than_enough_labels_test_the_model() -> None:
    fits = latent_classes({"": drawn(2, 3_000, 0.3, 5)})
    assert fits.fit_df == 2  # six counts of five labels, five free; three unknowns
    assert fits.fit_p_value is not None
    assert fits.fit_p_value > 0.001
    rng = np.random.default_rng(4)  # items that differ in difficulty: no one table of rates
    chance = rng.beta(0.5, 0.5, 3_000)
    ones = rng.binomial(5, chance)
    other = latent_classes({"": CountPatterns.from_counts(np.column_stack([5 - ones, ones]))})
    assert other.fit_p_value is not None
    assert other.fit_p_value < 1e-6
    three = latent_classes(
        {n: drawn(k, 3_000, pi, 2) for k, (n, pi) in enumerate([("a", 0.1), ("b", 0.6), ("c", 0.3)])}
    )
    assert three.fit_df == 1  # six numbers, five unknowns
    assert three.fit_p_value is not None
    assert three.fit_p_value > 0.001


def test_strata_whose_errors_differ_are_seen_by_the_test() -> None:
    parts = {
        "a": drawn(1, 20_000, 0.2, 2),
        "b": drawn(2, 20_000, 0.6, 2),
        "c": drawn(3, 20_000, 0.4, 2, miss=0.05, false=0.30),
    }
    found = latent_classes(parts)
    assert found.fit_p_value is not None
    assert found.fit_p_value < 1e-6


def test_three_classes() -> None:
    table = np.array([[0.8, 0.15, 0.05], [0.1, 0.85, 0.05], [0.1, 0.3, 0.6]])
    rng = np.random.default_rng(1)
    truth = rng.choice(3, size=6_000, p=[0.5, 0.3, 0.2])
    found = latent_classes({"": CountPatterns.from_counts(rng.multinomial(np.full(6_000, 5), table[truth]))})
    assert np.array([r.estimate for r in found.rates]).reshape(3, 3) == pytest.approx(table, abs=0.05)
    assert [s.estimate for s in found.strata[0].prevalence] == pytest.approx([0.5, 0.3, 0.2], abs=0.05)


def test_the_classes_are_named_by_being_right_more_often() -> None:
    """Labels that are mostly wrong cannot be told from the mirror image, and the note says so."""
    wrong = latent_classes({"": drawn(7, 20_000, 0.3, 3, miss=1 - FALSE, false=1 - MISS)})
    assert rate(wrong, "1", "0") + rate(wrong, "0", "1") < 1
    assert "all names would swap" in wrong.notes[0]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"": drawn(0, 2_000, 0.3, 2)}, "several strata or three labels"),
        ({"a": drawn(0, 2_000, 0.3, 2), "b": drawn(1, 2_000, 0.3, 2)}, "do not differ in their class shares"),
        ({"": drawn(0, 20, 0.3, 3)}, "fewer than 30"),
        ({"a": drawn(0, 200, 0.3, 2), "b": CountPatterns.from_counts([[1, 0]], items=[9])}, "fewer than two strata"),
        ({"": drawn(0, 2_000, 0.3, 3, miss=0.5, false=0.5)}, "not identified"),
    ],
    ids=["pairs", "alike", "few", "one", "noise"],
)  # fmt: skip
def test_what_is_not_identified_is_told(parts: dict[str, CountPatterns], words: str) -> None:
    found = latent_classes(parts)
    assert found.rates == ()
    assert found.mean_error.estimate is None
    assert found.reason is not None
    assert words in found.reason


def test_intervals_cover() -> None:
    held = 0
    for seed in range(60):
        found = latent_classes({"": drawn(seed, 600, 0.3, 4)}, seed=seed, draws=100)
        (miss,) = [r for r in found.rates if (r.truth, r.label) == ("1", "0")]
        assert miss.low is not None
        assert miss.high is not None
        held += miss.low <= MISS <= miss.high
    assert held >= 51  # .95 less three standard errors


def test_a_rate_of_none_has_an_upper_limit() -> None:
    rng = np.random.default_rng(0)
    ones = rng.binomial(4, np.where(rng.random(400) < 0.5, 0.8, 0.0))
    found = latent_classes({"": CountPatterns.from_counts(np.column_stack([4 - ones, ones]))})
    (never,) = [r for r in found.rates if (r.truth, r.label) == ("0", "1")]
    assert never.estimate == pytest.approx(0.0, abs=1e-3)
    assert never.high is not None
    assert never.high > 0.005


def test_a_class_that_no_item_has_gets_no_rates() -> None:
    """A declared class that nobody chose: what a true one would be labelled is not told, and the rest is as before."""
    two = drawn(5, 800, 0.3, 3)
    counts = np.column_stack([two.counts.toarray(), np.zeros(len(two.items), np.int64)])
    found = latent_classes({"": CountPatterns.from_counts(counts, items=two.items)})
    assert [r.estimate for r in found.rates if r.truth == "2"] == [None] * 3
    assert rate(found, "1", "0") == pytest.approx(rate(latent_classes({"": two}), "1", "0"), abs=1e-3)


def test_one_class_says_so() -> None:
    found = latent_classes({"": CountPatterns.from_counts([[3]], items=[100])})
    assert found.reason == "only one class is declared"


def test_limits_hold_the_estimate() -> None:
    found = percentiles(0.2, np.linspace(0.3, 0.4, 100), 50, 0.95)
    assert found["low"] == 0.2
    assert found["high"] == pytest.approx(0.3975)


def test_arguments() -> None:
    with pytest.raises(ArgumentError):
        latent_classes({"": drawn(0, 100, 0.3, 3)}, level=0.0)
    with pytest.raises(ArgumentError):
        latent_classes({"": drawn(0, 100, 0.3, 3)}, seed=-1)
    assert latent_classes({"": drawn(0, 400, 0.3, 3)}, seed=3) == latent_classes(
        {"": drawn(0, 400, 0.3, 3)}, seed=3
    )
