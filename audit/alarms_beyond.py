"""Alarms of the parts beyond the pair: counts that no mixture explains, annotators who copy, a gold that is cleaner."""

from __future__ import annotations

from collections.abc import Iterator

from audit.ceiling import UNFIT
from audit.evidence import Evidence
from audit.fliprate import estimate_flip_rate
from audit.results import Alarm, LatentClasses

__all__ = ["CHECKS", "GOLD_BELOW"]

#: The alarm of a gold standard that the labels meet more often than independent labels can.
GOLD_BELOW = "gold below the flip rate"


def _mixture(evidence: Evidence) -> Iterator[Alarm]:
    moments = evidence.moments
    if moments is None or moments.fit_p_value is None or moments.fit_p_value >= UNFIT:
        return
    yield Alarm(
        code="counts fit no mixture",
        severity="warning",
        message=(
            f"The labels of {moments.items:,} items cannot be independent draws, however much the items differ "
            f"(p = {moments.fit_p_value:.2g}): labels of an item depend on one another, or items with more labels are "
            "of another kind. Do not quote the band from several repeats."
        ),
        action="look at agreement by group size, and at who asked for further labels and why",
        figures={"p_value": moments.fit_p_value, "items": moments.items, "repeats": moments.repeats},
    )


def _unfit(evidence: Evidence) -> Iterator[Alarm]:
    errors = evidence.errors
    if errors is None:
        return
    told = ((errors.repeats, "all items"), (errors.strata, "all strata"))
    for part, where in told:
        if part.fit_p_value is None or part.fit_p_value >= UNFIT:
            continue
        yield Alarm(
            code=f"error rates do not fit ({part.method})",
            severity="warning",
            message=(
                f"One table of error rates for {where} does not explain the labels (p = {part.fit_p_value:.2g}): some "
                "items are harder than others, or labels of an item depend on one another given its truth. The error "
                "rates of this model are then off."
            ),
            action="read the identified set of the pairs, and the band, which assume none of this",
            figures={"p_value": part.fit_p_value, "df": part.fit_df},
        )
    yield from _dependent(errors.annotators)


def _dependent(part: LatentClasses) -> Iterator[Alarm]:
    if not part.dependent:
        return
    more = [pair for pair in part.dependent if pair.observed > pair.expected]
    worst = (more or list(part.dependent))[0]
    many = len(part.dependent) > 1
    why = (
        "They may have seen one another's labels, or find the same items hard."
        if worst.observed > worst.expected
        else "One of them answers these items otherwise than the rest: another understanding of the task, or no care."
    )
    yield Alarm(
        code="dependent annotators",
        severity="warning",
        message=(
            f"{len(part.dependent)} pair{'s' if many else ''} of annotators agree{'' if many else 's'} otherwise than "
            f"their error rates explain: {worst.value} agree on {worst.observed:.1%} of {worst.items:,} items, "
            f"{worst.expected:.1%} expected. {why} The error rates by annotator are then off."
        ),
        action="--one-per or --by tells them apart; leave one of such a pair out",
        figures={
            "pairs": [pair.value for pair in part.dependent[:10]],
            "observed": worst.observed,
            "expected": worst.expected,
            "p_value": worst.p_value,
        },
    )


def _swapped(evidence: Evidence) -> Iterator[Alarm]:
    gold = evidence.gold
    if gold is None or gold.error.low is None or gold.error.low <= 0.5 or evidence.patterns.class_count != 2:
        return
    yield Alarm(
        code="labels mostly wrong",
        severity="warning",
        message=(
            f"{gold.error.estimate:.1%} of the labels differ from gold, more than half: the names of the two classes "
            "are swapped in one of them, or gold belongs to other items."
        ),
        action="check what each class is called in the labels and in the gold standard",
        figures={"error": gold.error.estimate, "low": gold.error.low},
    )


def _gold(evidence: Evidence) -> Iterator[Alarm]:
    gold = evidence.gold
    if gold is None or gold.above is not False or gold.error.high is None or gold.flip_rate is None:
        return
    if gold.flip_rate <= gold.error.high or gold.error.estimate is None:
        return
    rate = estimate_flip_rate(evidence.d, classes=evidence.patterns.class_count)
    if rate.low is None or gold.error.estimate >= rate.low:
        return
    yield Alarm(
        code=GOLD_BELOW,
        severity="warning",
        message=(
            f"Only {gold.error.estimate:.1%} of the labels differ from gold, less than the flip rate of "
            f"{gold.flip_rate:.1%} that the repeats imply: gold was made from these labels, or covers easier items."
        ),
        action="check where the gold labels come from, and which items have one",
        figures={
            "error": gold.error.estimate,
            "high": gold.error.high,
            "flip_rate": gold.flip_rate,
            "flip_rate_low": rate.low,
        },
    )


CHECKS = (_mixture, _unfit, _gold, _swapped)
