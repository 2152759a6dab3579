"""Numbers, grades, tags, two files and a model: what once gave a wrong figure, and limits that held too little."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from audit.numeric import intraclass, noise_variance, pair_distance, weighted_kappa
from tests.test_audit_label_kinds import scores

# --- limits of numbers ---------------------------------------------------------------------------------------

NOISE: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(0, 1, n),
    "Laplace": lambda rng, n: rng.laplace(0, math.sqrt(0.5), n),
    "Student 5": lambda rng, n: rng.standard_t(5, n) * math.sqrt(0.6),
    "skewed": lambda rng, n: rng.exponential(1, n),
}


@pytest.mark.parametrize("kind", NOISE)
@pytest.mark.parametrize("sizes", [(2,), (2, 3, 8)])
def test_limits_of_numbers_hold_the_truth_from_few_items_on(kind: str, sizes: tuple[int, ...]) -> None:
    """Once .82 to .91 at 15 items. Noise and items have variance 1, so the ceiling of R² is a half."""
    rng = np.random.default_rng(21)
    hits, runs = np.zeros(2), 300
    for _ in range(runs):
        found = scores([(rng.normal() + NOISE[kind](rng, n)).tolist() for n in rng.choice(sizes, 15)])
        for place, (part, true) in enumerate([(noise_variance(found), 1.0), (intraclass(found), 0.5)]):
            assert part.low is not None
            assert part.high is not None
            hits[place] += part.low <= true <= part.high
    assert np.all(hits / runs >= 0.90), hits / runs  # .92 less two standard errors


def test_labels_that_are_equal_have_no_noise_at_all() -> None:
    """Thrice 0.1 once had a variance of 1e-34, and limits."""
    found = scores([[0.1] * 3, [0.2] * 3, [0.7] * 7, [1e9 + 0.1] * 3])
    assert noise_variance(found).estimate == 0.0
    assert noise_variance(found).low is None
    assert pair_distance(found).estimate == 0.0
    assert (intraclass(found).estimate, intraclass(found).low) == (1.0, None)


def test_a_ratio_that_rests_on_one_item_has_no_limits() -> None:
    found = scores([[1.0, 1.0]] * 5 + [[1.0, 3.0]])
    for part in (intraclass(found), weighted_kappa(found)):
        assert part.estimate is not None
        assert part.low is None


def test_no_limit_lies_beyond_what_can_be() -> None:
    found = scores([[0.0, 2.0], [0.0, 1.0], [1.0, 1.0]])
    assert pair_distance(found, largest=2.0).high == 2.0
    assert (pair_distance(found).high or 0.0) > 2.0
