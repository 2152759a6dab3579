"""The band that holds the accuracy ceiling, in words and rows that all report formats share.

There are up to two: that of pairs, and that of three or more labels an item. Which of them counts is asked of
:func:`audit.ceiling.counting_band`, as the verdict and ``audit ceiling`` do.
"""

from __future__ import annotations

from dataclasses import dataclass

from audit import render_words as words
from audit.ceiling import CountingBand, counting_band
from audit.results import AuditResult

__all__ = ["BandRow", "band_rows", "band_sentences", "band_that_counts"]


@dataclass(frozen=True, kw_only=True)
class BandRow:
    """One of the bands: its name, and its ends at the estimate and with sampling error, as text."""

    name: str
    ends: str
    limits: str


def band_that_counts(result: AuditResult) -> CountingBand | None:
    """The band that the verdict quotes; None where there is none."""
    return counting_band(result.ceiling, result.disagreement, result.flip_rate)


def band_rows(result: AuditResult) -> tuple[BandRow, ...]:
    """The bands that there are, the one that counts first; one without numbers where there is none."""
    band, several, digits = result.ceiling, result.ceiling.moments, words.places(result)

    def row(
        name: str, lower: float | None, upper: float | None, low: float | None, high: float | None
    ) -> BandRow:
        there = lower is not None and upper is not None
        ends = f"{words.number(lower, digits)} to {words.number(upper, digits)}" if there else "–"
        limits = (
            f"{words.number(low, digits)} to {words.number(high, digits)}"
            if there and low is not None and high is not None
            else ""
        )
        return BandRow(name=name, ends=ends, limits=limits)

    pairs = row("1 − d to 1 − ε", band.lower, band.upper, band.low, band.high)
    if several.lower is None or several.upper is None:
        return (pairs,)
    more = row(
        f"up to {several.repeats} labels an item", several.lower, several.upper, several.low, several.high
    )
    counting = band_that_counts(result)
    return (more, pairs) if counting is not None and counting.source == "several labels" else (pairs, more)


def band_sentences(result: AuditResult) -> tuple[str, ...]:
    """How to read the band: that of several labels where it counts, then that of pairs, and what is too good."""
    band, digits = result.ceiling, words.places(result)
    counting = band_that_counts(result)
    if counting is None:
        reason = band.reason or "there are no repeats to measure it from"
        return (f"No band can be drawn: {reason.rstrip('.')}.",)
    if result.repeats.conflicts == 0:
        return (
            f"No repeated item disagrees, so nothing holds a model below 1; with {_items(result)} the ceiling may "
            f"still be as low as {words.number(band.low, digits)} ({_level(result)}, one-sided).",
        )
    several = counting.source == "several labels"
    opening = "By pairs alone the" if several else "The"
    pairs = (
        f"{opening} best possible score lies between {words.number(band.lower, digits)} (1 − d, what a fresh draw of "
        f"the labels scores; a model may honestly beat it) and {words.number(band.upper, digits)} (1 − ε, if all items "
        f"are equally noisy). Sampling error of {_items(result)} widens this to {words.number(band.low, digits)} to "
        f"{words.number(band.high, digits)} ({_level(result)})."
    )
    more = _several(result, counting)
    told = (more, pairs) if several else (pairs, more)
    high = words.number(counting.high, digits)
    return (*filter(None, told), f"A score above {high} is too good: look for leakage.")


def _several(result: AuditResult, counting: CountingBand) -> str:
    """The band from three or more labels an item; empty where there is none."""
    band, part, digits = result.ceiling, result.ceiling.moments, words.places(result)
    if part.lower is None or part.upper is None or band.lower is None or band.upper is None:
        return ""
    one = abs(part.upper - part.lower) < 10.0**-digits
    ends = words.number(part.lower, digits) + ("" if one else f" to {words.number(part.upper, digits)}")
    told = (
        f"Up to {part.repeats} labels an item ({words.integer(part.items)} items) put the ceiling at {ends}, with "
        f"sampling error {words.number(part.low, digits)} to {words.number(part.high, digits)} ({_level(result)}), "
        f"whatever the items are{f'; the band of pairs counts, as {counting.reason}' if counting.reason else ''}."
    )
    step = 0.5 * 10.0**-digits
    if part.upper > band.upper + step or part.lower < band.lower - step:
        told += (
            " It leaves the band of pairs by sampling error: it is taken at the nearest counts that independent labels "
            "can have, the band of pairs at d as it came."
        )
    return told


def _items(result: AuditResult) -> str:
    n = result.repeats.items
    return "1 repeated item" if n == 1 else f"{words.integer(n)} repeated items"


def _level(result: AuditResult) -> str:
    return words.percent(result.disagreement.level)
