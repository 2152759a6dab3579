"""Shares in words."""

import pytest

from audit.results import Estimate
from audit.wording import rounded, share, share_of


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0%"), (1.0, "100%"), (0.18, "18%"), (0.5, "50%"), (0.1, "10%"), (0.567, "56.7%"), (0.0645, "6.5%"),
        (0.004, "0.4%"), (0.00003, "0.003%"), (0.9999, "99.99%"), (0.9996, "99.96%"), (1e-9, "0%"),
    ],
)  # fmt: skip
def test_a_share_is_neither_nothing_nor_all_unless_it_is(value: float, text: str) -> None:
    assert share(value) == text


def test_halves_go_up_as_people_round() -> None:
    assert [rounded(0.145), rounded(0.155), rounded(2.5, "1")] == ["0.15", "0.16", "3"]


def test_limits_stand_beside() -> None:
    assert share_of(Estimate(estimate=0.18, low=0.158, high=0.2134)) == "18% [15.8%, 21.3%]"
    assert share_of(Estimate(estimate=0.18)) == "18%"
    assert share_of(Estimate(estimate=None)) == "none"
