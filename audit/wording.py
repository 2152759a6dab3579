"""Shares and rounded numbers as people write them, for verdicts and messages."""

from __future__ import annotations

import textwrap
from decimal import ROUND_HALF_UP, Decimal

from audit.results import Estimate

__all__ = ["about", "folded", "p_text", "rounded", "share", "share_of"]


def rounded(value: float, step: str = "0.01") -> str:
    """``value`` rounded half up as people do, after float noise is taken off: 0.145 to 0.15."""
    return str(Decimal(repr(round(value, 9))).quantize(Decimal(step), ROUND_HALF_UP))


def share(value: float) -> str:
    """A share, from 0 to 1, as a percentage: 0.18 is 18%, 0.567 is 56.7%.

    One decimal where it has one, and more where it would else read as nothing or all: 0.00003 is 0.003%.
    """
    text = ""
    for step in ("0.1", "0.01", "0.001", "0.0001"):
        text = rounded(100.0 * value, step)
        text = text.rstrip("0").rstrip(".") if "." in text else text
        if text not in ("0", "100") or value in (0.0, 1.0):
            break
    return f"{text}%"


def share_of(part: Estimate, *, none: str = "none") -> str:
    """An estimated share with its limits, ``18% [15.8%, 21.3%]``; ``none`` where there is no estimate."""
    if part.estimate is None:
        return none
    limits = "" if part.low is None or part.high is None else f" [{share(part.low)}, {share(part.high)}]"
    return share(part.estimate) + limits


def p_text(value: float | None) -> str:
    """``p = 0.034``, ``p < 0.001``, or nothing."""
    if value is None:
        return ""
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def folded(sentence: str, *, width: int = 100) -> list[str]:
    """A sentence in lines of up to ``width`` characters, indented as it is and two more after the first."""
    indent = sentence[: len(sentence) - len(sentence.lstrip(" "))]
    return textwrap.wrap(
        sentence.strip(),
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_on_hyphens=False,
    )


def about(part: Estimate, form: str = ".2f") -> str:
    """A share that is estimated without being held in [0, 1]: as it is, or what it can be with its number.

    ``about all (1.05 [1.00, 1.08] by the repeats, above 1 by chance)``; nothing is cut off silently.
    """
    if part.estimate is None or 0.0 <= part.estimate <= 1.0:
        return part.text(form)
    word, side = ("about all", "above 1") if part.estimate > 1.0 else ("about none", "below 0")
    return f"{word} ({part.text(form)} by the repeats, {side} by chance)"
