"""The verdicts of a comparison in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from train.pressure_band import CLEAN_SENTENCE
from train.pressure_words import limits, signed
from train.words import metric_name, place_name

if TYPE_CHECKING:
    from train.compare_results import Difference, RunComparison

__all__ = ["difference_verdict", "headline", "notes", "p_words"]


def p_words(p: float | None) -> str:
    """``p < 0.001``, ``p = 0.034``, or –."""
    return "–" if p is None else "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def difference_verdict(d: Difference, metric: str, n: int, level: float, family: int) -> str:
    """What one difference says, with its interval and the number of differences it stands among."""
    gap, name = d.difference, metric_name(metric)
    if gap.estimate is None:
        return f"{d.arm} over {d.against}: no difference can be given ({gap.method})."
    shown = f"{signed(gap.estimate)}{limits(gap.low, gap.high)} {name}"
    adjusted = f"{p_words(d.p_holm)}{f' among {family} differences (Holm)' if family > 1 else ''}"
    if d.p_holm is None or gap.low is None or gap.high is None:
        return f"{d.arm} over {d.against}: {shown}, without a test ({d.test})."
    if d.p_holm < 1.0 - level:
        way = "over" if gap.estimate > 0 else "below"
        return f"{d.arm}: {shown} {way} {d.against}, {adjusted}."
    if gap.low > 0.0 or gap.high < 0.0:
        return (
            f"{d.arm} over {d.against}: {shown}. The interval alone excludes 0, but not the test: {adjusted}."
        )
    return f"{d.arm} over {d.against}: nothing that n = {n:,} can see, {shown}, {adjusted}."


def headline(c: RunComparison) -> tuple[str, ...]:
    """Every difference in a sentence; for one run, what it scores."""
    if c.differences:
        return tuple(d.verdict for d in c.differences)
    run = c.runs[0]
    score = c.arms[0].mean.estimate
    value = "no value" if score is None else f"{score:.3f}"
    return (
        f"{run.name}: {value} {metric_name(c.metric)} on {c.items:,} items. One run alone: nothing to compare.",
    )


def notes(c: RunComparison) -> tuple[str, ...]:
    """What a reader must know beside the verdicts."""
    out = []
    singles = [d for d in c.differences if not d.seeds]
    if singles:
        several = len(singles) < len(c.differences)
        out.append(
            f"{'Some arms have' if several else 'There is'} one seed only: such an interval covers other items, not "
            "other seeds. Train again under other seeds to see how much a seed moves a run."
        )
    if c.key == "noisy":
        out.append(
            "The key is the labels as they came: a run that learns their errors is rewarded for it. Give a clean key "
            "(task.clean) to measure what the runs know."
        )
    if c.band is not None:
        placed = [r for r in c.runs if r.placement is not None]
        if c.key == "clean":
            out.append(CLEAN_SENTENCE)
            if not placed:
                out.append(
                    "No run recorded its accuracy against the labels as they came (a column noisy in its scores), so "
                    "none is placed in the band."
                )
    out += [f"Left out: {place_name(one.path)}: {one.reason}" for one in c.left_out]
    told = dict.fromkeys(f"{r.name}: {note}" for r in c.sources for note in r.scores.notes)
    out += list(told)[:12]
    return tuple(out)
