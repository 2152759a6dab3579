"""Results beyond the pair: what three repeats, other metrics, error rates and a gold standard add."""

from __future__ import annotations

from dataclasses import dataclass

from audit.results_base import Result

__all__ = ["Moments"]


@dataclass(frozen=True, kw_only=True)
class Moments(Result):
    """Bounds of the ceiling from items with three labels or more, see :func:`audit.moments.moment_bounds`.

    ``lower``/``upper`` at the observed frequencies, ``low``/``high`` with sampling error; ``repeats`` is the largest
    number of labels an item counts with, ``items`` the number of items used. ``fit_p_value`` is of the hypothesis
    that the labels of an item are independent draws.
    """

    lower: float | None = None
    upper: float | None = None
    low: float | None = None
    high: float | None = None
    repeats: int | None = None
    items: int = 0
    method: str = "none"
    fit_p_value: float | None = None
    reason: str | None = None
