"""The result in words: one headline a reader can repeat, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence

from audit.planning import half_width, pairs_needed, ranking_factor
from audit.results import Alarm, Ceiling, Disagreement, FlipRate, RepeatSummary, Verdict

__all__ = ["compose_verdict"]

#: Flip rate assumed, and half-widths offered, when nothing is known yet.
_ASSUMED_RATE = 0.10
_WIDTHS = (0.05, 0.02)


def compose_verdict(
    *,
    repeats: RepeatSummary,
    d: Disagreement,
    rate: FlipRate,
    band: Ceiling,
    alarms: Sequence[Alarm],
    unrepeated: int,
) -> Verdict:
    """The verdict; ``unrepeated`` is the number of items with one label, which could be labelled again."""
    if d.estimate is None:
        return Verdict(headline=_nothing(unrepeated), next_steps=_first_repeats(rate.classes, unrepeated))
    graves = [alarm for alarm in alarms if alarm.severity == "stop"]
    share = _percent(d.estimate)
    if rate.estimate is None or band.lower is None or band.upper is None:
        reason = graves[0].message if graves else f"{rate.reason}."
        headline = (
            f"These labels disagree with themselves on {share} of repeats, and no ceiling follows from it."
        )
        return Verdict(headline=headline, next_steps=(reason, *_heed(alarms, skip=1 if graves else 0)))
    items = f"{repeats.items:,} repeated item{'s' if repeats.items != 1 else ''}"
    precision = _precision(d, rate)
    if d.estimate == 0.0:
        lowest = band.low if band.low is not None else 0.0
        headline = (
            f"None of {items} disagrees: d is at most {_percent(d.high or 0.0)}, so the accuracy ceiling of these "
            f"labels is {lowest:.3f} or more."
        )
        steps = [*_heed(alarms)]
        if unrepeated and repeats.items < 1000:
            steps.append(_label_more(repeats.items, unrepeated))
        return Verdict(headline=headline, next_steps=tuple(steps))
    headline = (
        f"These labels disagree with themselves on {share} of repeats: no model can be shown to beat "
        f"{band.upper:.2f} against them, and the ceiling may be as low as {band.lower:.2f}."
    )
    steps = [
        f"{items[0].upper()}{items[1:]} put the flip rate at {rate.estimate:.3f} ± {precision:.3f} "
        f"(band with sampling error: {band.low:.3f} to {band.high:.3f})."
    ]
    if unrepeated:
        steps.append(_label_more(repeats.items, unrepeated))
    if rate.classes == 2 and d.estimate < 0.5:
        steps.append(
            f"To rank models on a test set with these labels takes {ranking_factor(d.estimate):.1f} times the rows "
            "that clean labels would."
        )
    return Verdict(headline=headline, next_steps=(*_heed(alarms), *steps))


def _nothing(unrepeated: int) -> str:
    return (
        f"Nothing can be measured: none of the {unrepeated:,} labelled items has a second label."
        if unrepeated
        else "Nothing can be measured: there is no labelled item."
    )


def _first_repeats(classes: int, unrepeated: int) -> tuple[str, ...]:
    if not unrepeated:
        return ("Name the columns with --item and --label, and check --missing.",)
    plans = [pairs_needed(width, rate=_ASSUMED_RATE, classes=max(classes, 2)) for width in _WIDTHS]
    told = ", ".join(f"{plan.pairs:,} for ±{plan.half_width:.2f}" for plan in plans)
    enough = "" if plans[0].pairs <= unrepeated else f" This file has {unrepeated:,}: label them all twice."
    return (
        f"Label some items a second time, blind to the first label. For a flip rate near {_ASSUMED_RATE:.2f}: "
        f"{told}.{enough} audit plan draws them.",
    )


def _label_more(items: int, unrepeated: int) -> str:
    wanted = 3 * items
    if wanted <= unrepeated:
        return f"Label {wanted:,} more rows twice to halve the uncertainty (audit plan draws them)."
    return (
        f"Halving the uncertainty takes {wanted:,} more repeats; this file has {unrepeated:,} items left to label "
        "twice (audit plan draws them)."
    )


def _precision(d: Disagreement, rate: FlipRate) -> float:
    if d.low is None or d.high is None:
        return 0.0
    return half_width(d.low, d.high, classes=rate.classes)


def _heed(alarms: Sequence[Alarm], *, skip: int = 0) -> tuple[str, ...]:
    serious = [alarm for alarm in alarms if alarm.severity in ("stop", "warning")][skip:]
    if not serious:
        return ()
    names = ", ".join(dict.fromkeys(alarm.code for alarm in serious))
    return (f"Before quoting these numbers, read the alarm{'s' if len(serious) > 1 else ''}: {names}.",)


def _percent(share: float) -> str:
    return f"{share:.1%}" if share < 0.0995 else f"{share:.0%}"
