"""The verdict on numeric labels: one headline a reader can repeat, and what to do next."""

from __future__ import annotations

import math
from collections.abc import Sequence

from audit.results import Alarm, Estimate, Verdict
from audit.verdict import heed

__all__ = ["compose_numeric_verdict", "unit_text"]


def unit_text(value: float | None, figures: int = 4) -> str:
    """A number in the units of the labels: four figures, and a real minus sign."""
    return "–" if value is None else f"{value:.{figures}g}".replace("-", "−")


def compose_numeric_verdict(
    *, noise: Estimate, ratio: Estimate, file: float | None, repeats: int, reason: str | None,
    alarms: Sequence[Alarm],
) -> Verdict:  # fmt: skip
    """The verdict from σ, the ceiling of R² (``file``: with the variance of the whole file) and the repeated items."""
    sigma = noise.estimate
    if sigma is None:
        return Verdict(headline=f"Nothing can be measured: {reason or 'no item has two labels'}.")
    if sigma == 0.0:
        return Verdict(
            headline=f"None of {repeats:,} repeated items has two different labels: no noise is seen.",
            next_steps=heed(alarms),
        )
    above = "" if ratio.estimate is None else f", or an R² above {unit_text(ratio.estimate)}"
    means = ", ".join(f"{unit_text(sigma / math.sqrt(k))} against the mean of {k}" for k in (2, 4, 10))
    steps = [f"Averaging labels lowers the floor of the RMSE: {means}."]
    if file is not None and ratio.estimate is not None:
        steps.append(
            "The ceiling of R² is that of the repeated items; with the variance of the whole file it is "
            f"{unit_text(file)}."
        )
    return Verdict(
        headline=(
            f"A label is off by {unit_text(sigma)} (standard deviation): no model can be shown to have an RMSE below "
            f"that against these labels{above}."
        ),
        next_steps=(*heed(alarms), *steps),
    )
