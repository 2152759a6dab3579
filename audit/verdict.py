"""The result in words: one headline a reader can repeat, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence

from audit.alarms_labels import NUMBERS
from audit.ceiling import CountingBand, counting_band
from audit.planning import half_width, pairs_needed, ranking_factor
from audit.results import Alarm, Ceiling, Disagreement, FlipRate, RepeatSummary, Verdict
from audit.wording import rounded, share

__all__ = ["compose_verdict", "heed"]

#: Flip rate assumed, and half-widths offered, when nothing is known yet.
_ASSUMED_RATE = 0.10
_WIDTHS = (0.05, 0.02)

#: With this many repeated items and no conflict, more labels are not worth asking for.
_ENOUGH_ITEMS = 1_000

#: Fewer repeated items than this are told to be few.
_FEW_ITEMS = 30

#: With fewer repeats of texts, more texts without one, and a wider interval of d, near-duplicates are worth a look.
_FEW_FOR_TEXTS, _WIDE = 100, 0.1


def compose_verdict(
    *,
    repeats: RepeatSummary,
    d: Disagreement,
    rate: FlipRate,
    band: Ceiling,
    alarms: Sequence[Alarm],
    unrepeated: int,
    texts: bool = False,
) -> Verdict:
    """The verdict; ``unrepeated`` is the number of items with one label, which could be labelled again.

    ``texts`` says that items are texts of several words, of which some may be alike. Where the labels are numbers taken
    for classes, the first next step says so.
    """
    told = _told(
        repeats=repeats, d=d, rate=rate, band=band, alarms=alarms, unrepeated=unrepeated, texts=texts
    )
    numbers = next((alarm for alarm in alarms if alarm.code == NUMBERS), None)
    if numbers is None:
        return told
    first = f"The labels are numbers: {numbers.action}."
    return Verdict(headline=told.headline, next_steps=(first, *told.next_steps))


def _told(
    *, repeats: RepeatSummary, d: Disagreement, rate: FlipRate, band: Ceiling, alarms: Sequence[Alarm],
    unrepeated: int, texts: bool,
) -> Verdict:  # fmt: skip
    if d.estimate is None:
        return Verdict(headline=_nothing(unrepeated), next_steps=_first_repeats(rate.classes, unrepeated))
    graves = [alarm for alarm in alarms if alarm.severity == "stop"]
    told = share(d.estimate)
    counting = counting_band(band, d, rate)
    if counting is None:
        reason = graves[0].message if graves else f"{rate.reason}."
        headline = (
            f"These labels disagree with themselves on {told} of repeats, and no ceiling follows from it."
        )
        return Verdict(headline=headline, next_steps=(reason, *heed(alarms, skip=1 if graves else 0)))
    items = f"{repeats.items:,} repeated item{'s' if repeats.items != 1 else ''}"
    serious = heed(alarms)
    if d.estimate == 0.0:
        headline = (
            f"None of {items} disagrees: d is at most {share(d.high or 0.0)}, so the accuracy ceiling of these "
            f"labels is {band.low or 0.0:.3f} or more."
        )
        more = (
            (_label_more(repeats.items, unrepeated),) if unrepeated and repeats.items < _ENOUGH_ITEMS else ()
        )
        return Verdict(headline=headline, next_steps=(*serious, *more))
    headline = (
        f"These labels disagree with themselves on {told} of repeats: the best accuracy possible against them "
        f"{_ends(counting, band)}."
    )
    few = "only " if repeats.items < _FEW_ITEMS else ""
    steps = [_precision(f"{few}{items}", d, rate, band, counting)]
    if unrepeated:
        steps.append(_label_more(repeats.items, unrepeated))
    wide = (d.high or 1.0) - (d.low or 0.0) > _WIDE
    if texts and wide and repeats.items < _FEW_FOR_TEXTS and unrepeated >= _FEW_FOR_TEXTS:
        steps.append(
            "With so few repeats, --near 0.85 shows whether nearly equal texts are labelled alike (never in the "
            "headline)."
        )
    if rate.classes == 2 and d.estimate < 0.5:
        steps.append(
            f"To rank models on a test set with these labels takes {ranking_factor(d.estimate):.1f} times the rows "
            "that clean labels would."
        )
    return Verdict(headline=headline, next_steps=(*serious, *steps))


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
        return f"Give {wanted:,} more items a second label to halve the uncertainty (audit plan draws them)."
    return (
        f"Halving the uncertainty takes second labels for {wanted:,} more items; this file has {unrepeated:,} with "
        "one label (audit plan draws them)."
    )


def _ends(counting: CountingBand, band: Ceiling) -> str:
    """Where the best accuracy lies: by several labels an item where these count, else by pairs."""
    lower, upper = rounded(counting.lower), rounded(counting.upper)
    told = f"lies between {lower} and {upper}"
    if lower == upper:
        told = f"is about {upper}, with sampling error {rounded(counting.low)} to {rounded(counting.high)}"
    return told if counting.source == "pairs" else f"{told} (by up to {band.moments.repeats} labels an item)"


def _precision(items: str, d: Disagreement, rate: FlipRate, band: Ceiling, counting: CountingBand) -> str:
    """What the repeats pin down, and how well."""
    width = half_width(d.low or 0.0, d.high or 0.0, classes=rate.classes)
    leaves = counting.lower < (band.lower or 0.0) - 5e-4 or counting.upper > (band.upper or 1.0) + 5e-4
    outside = "; that the other leaves it is sampling error" if leaves else ""
    alone = (
        ""
        if counting.source == "pairs"
        else f" Pairs alone give {band.lower:.3f} to {band.upper:.3f}, with sampling error {band.low:.3f} to "
        f"{band.high:.3f}{outside}."
    )
    told = (
        f"{items} put the flip rate at {rate.estimate:.3f}, between {rate.low:.3f} and {rate.high:.3f} "
        f"(±{width:.3f}), and the band with sampling error at {counting.low:.3f} to {counting.high:.3f}.{alone}"
    )
    return told[0].upper() + told[1:]


def heed(alarms: Sequence[Alarm], *, skip: int = 0) -> tuple[str, ...]:
    """A next step that names the serious alarms, but for the first ``skip``; none where there are none."""
    serious = [alarm for alarm in alarms if alarm.severity in ("stop", "warning")][skip:]
    if not serious:
        return ()
    names = ", ".join(dict.fromkeys(alarm.code.replace("_", " ") for alarm in serious))
    return (f"Before quoting these numbers, read the alarm{'s' if len(serious) > 1 else ''}: {names}.",)
