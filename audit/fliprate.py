"""The flip rate epsilon that a disagreement implies, when it is equal for all items.

With errors spread evenly over the other K - 1 classes, two labels of one item differ with chance
d = 2 eps - eps^2 K/(K - 1), so eps_K = ((K - 1)/K)(1 - sqrt(1 - K d/(K - 1))). For K = 2 this is
d = 2 eps(1 - eps). If all errors of a class go to one rival class the K = 2 form holds for any K.
d cannot exceed (K - 1)/K, the disagreement of labels drawn evenly at random.
"""

from __future__ import annotations

import math

from audit.errors import ArgumentError
from audit.results import Disagreement, FlipRate, OneRival

__all__ = ["disagreement_of", "estimate_flip_rate", "flip_rate", "maximum_disagreement"]


def maximum_disagreement(classes: int) -> float:
    """(K - 1)/K: the largest d that independent labels over K classes can have."""
    _check_classes(classes)
    return (classes - 1) / classes


def disagreement_of(rate: float, *, classes: int) -> float:
    """d = 2 eps - eps^2 K/(K - 1) of a flip rate in [0, (K - 1)/K], errors spread evenly."""
    if not 0.0 <= rate <= maximum_disagreement(classes):
        raise ArgumentError(
            f"a flip rate over {classes} classes lies in [0, {maximum_disagreement(classes):.3g}]"
        )
    return 2.0 * rate - rate * rate * classes / (classes - 1)


def flip_rate(d: float, *, classes: int) -> float:
    """eps_K = ((K - 1)/K)(1 - sqrt(1 - K d/(K - 1))) for d in [0, (K - 1)/K].

    Raises
    ------
    ArgumentError
        When d lies outside that range: there is no such flip rate.
    """
    top = maximum_disagreement(classes)
    if not 0.0 <= d <= top + 1e-12:
        raise ArgumentError(
            f"a disagreement of {d:.4g} has no flip rate: over {classes} classes it lies in [0, {top:.4g}]"
        )
    return top * (1.0 - math.sqrt(max(0.0, 1.0 - d / top)))


def estimate_flip_rate(d: Disagreement, *, classes: int, refused: str | None = None) -> FlipRate:
    """The flip rate of an estimated d, with the interval's end points mapped the same way.

    Where d's upper limit is above (K - 1)/K the upper limit of eps is (K - 1)/K, the end of its range. Where
    the estimate itself is above it, or ``refused`` gives a reason, there is no flip rate: all are None.
    """
    reason = refused or _no_rate(d, classes)
    if reason is not None:
        nothing = OneRival(estimate=None, low=None, high=None)
        return FlipRate(
            estimate=None,
            low=None,
            high=None,
            method="none",
            classes=classes,
            one_rival=nothing,
            reason=reason,
        )
    estimate, low, high = (float(x) for x in (d.estimate, d.low, d.high) if x is not None)
    return FlipRate(
        estimate=flip_rate(estimate, classes=classes),
        low=flip_rate(low, classes=classes),
        high=flip_rate(min(high, maximum_disagreement(classes)), classes=classes),
        method=f"{d.method}, mapped through eps_{classes}(d)",
        classes=classes,
        one_rival=OneRival(estimate=_rival(estimate), low=_rival(low), high=_rival(min(high, 0.5))),
    )


def _rival(d: float) -> float | None:
    return flip_rate(d, classes=2) if d <= 0.5 else None


def _no_rate(d: Disagreement, classes: int) -> str | None:
    if d.estimate is None:
        return d.reason
    if classes < 2:
        return "only one class is declared, so labels cannot differ: name the others with --classes"
    top = maximum_disagreement(classes)
    if d.estimate > top + 1e-12:
        return (
            f"d = {d.estimate:.3f} is above (K-1)/K = {top:.3f}, more than labels drawn evenly at random would "
            f"disagree over {classes} classes: the repeats are no independent labels of one item"
        )
    return None


def _check_classes(classes: int) -> None:
    if classes < 2:
        raise ArgumentError(f"a flip rate needs at least 2 classes, not {classes}")
