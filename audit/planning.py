"""How many repeats a wanted precision takes.

The delta method on eps_K(d) gives n = z^2 d(1 - d) / (4 w^2 (1 - K d/(K - 1))) pairs for a half-width w on the
flip rate; for K = 2 the last factor is 1 - 2d. With few conflicts Wilson's interval is wider than that, so the
number is raised until Wilson's half-width is at most 5 % above w.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass

from scipy import special

from audit.errors import ArgumentError
from audit.fliprate import disagreement_of, flip_rate, maximum_disagreement
from audit.intervals import check_level, wilson
from audit.results import Result

__all__ = ["Plan", "half_width", "pairs_needed", "ranking_factor", "wilson_half_width"]

#: Wilson's half-width may miss the wanted one by this factor before pairs are added to the formula's number.
_SLACK = 1.05

#: Smaller half-widths would take more labels than anybody has.
_SMALLEST_WIDTH = 1e-6


@dataclass(frozen=True, kw_only=True)
class Plan(Result):
    """Pairs (items labelled a second time) for a half-width on the flip rate.

    ``pairs`` is the number to draw; ``formula`` the delta-method number; ``wilson_half_width`` the half-width
    that Wilson's interval will have at ``pairs`` pairs if d is as assumed.
    """

    half_width: float
    flip_rate: float
    classes: int
    level: float
    formula: int
    pairs: int
    wilson_half_width: float


def pairs_needed(width: float, *, rate: float, classes: int = 2, level: float = 0.95) -> Plan:
    """Plan the pairs for a half-width ``width`` on a flip rate near ``rate``.

    Parameters
    ----------
    width:
        Wanted half-width of the interval of eps, 1e-6 or more and below 0.5.
    rate:
        The flip rate expected, in (0, (K - 1)/K).
    """
    check_level(level)
    if not _SMALLEST_WIDTH <= width < 0.5:
        raise ArgumentError(
            f"the half-width of a flip rate lies between 0 and 0.5, and is at least {_SMALLEST_WIDTH:f}, not {width}"
        )
    if not 0.0 < rate < maximum_disagreement(classes):
        raise ArgumentError(
            f"planning needs a flip rate between 0 and {maximum_disagreement(classes):.3g}, not {rate}"
        )
    d = disagreement_of(rate, classes=classes)
    z = float(special.ndtri(0.5 + level / 2.0))
    slope = 4.0 * width * width * (1.0 - d / maximum_disagreement(classes))
    formula = math.ceil(z * z * d * (1.0 - d) / slope - 1e-9)

    def fits(number: int) -> bool:
        return wilson_half_width(number, d=d, classes=classes, level=level) <= _SLACK * width

    enough = formula
    while not fits(enough):
        enough *= 2
    pairs = bisect.bisect_left(range(enough), True, lo=formula, key=fits)
    return Plan(
        half_width=width, flip_rate=rate, classes=classes, level=level, formula=formula, pairs=pairs,
        wilson_half_width=wilson_half_width(pairs, d=d, classes=classes, level=level),
    )  # fmt: skip


def wilson_half_width(pairs: int, *, d: float, classes: int = 2, level: float = 0.95) -> float:
    """Half the width of the interval of eps that ``pairs`` pairs give when their disagreement is ``d``."""
    low, high = wilson(d * pairs, pairs, level=level)
    return half_width(low, high, classes=classes)


def half_width(d_low: float, d_high: float, *, classes: int = 2) -> float:
    """Half the width of the interval of eps when d lies in [``d_low``, ``d_high``]."""
    top = maximum_disagreement(classes)
    return (flip_rate(min(d_high, top), classes=classes) - flip_rate(min(d_low, top), classes=classes)) / 2.0


def ranking_factor(d: float) -> float:
    """1/(1 - 2d): how many times the test rows a ranking of models needs under binary label noise.

    ``d`` lies in [0, 0.5); at 0.5 the labels say nothing and no number of rows ranks models.
    """
    if not 0.0 <= d < 0.5:
        raise ArgumentError(f"the ranking factor needs a disagreement in [0, 0.5), not {d}")
    return 1.0 / (1.0 - 2.0 * d)
