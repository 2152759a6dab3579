"""The parts beyond the pair in words and tables that all report formats share."""

from __future__ import annotations

from collections.abc import Iterator

from audit import render_words as words
from audit.alarms_beyond import GOLD_BELOW
from audit.render_near import near_sections
from audit.render_page import Row, Section, SectionTable, with_limits
from audit.results import AuditResult, Estimate, IdentifiedSet, LatentClasses, Rate, Rater

__all__ = ["metric_line", "sections"]

_PAIRS_SHOWN = 10
#: p-value below which a model of the errors is told to fit badly.
_UNLIKELY = 0.05


def metric_line(result: AuditResult) -> str:
    """The limits of other metrics of two classes in one sentence; empty where there are none."""
    part = result.metrics
    if part.positive is None or not result.repeats.conflicts:
        return ""
    shown = [
        f"{limit.name} {words.number(limit.bound)}"
        for limit in part.limits
        if limit.metric in ("f1", "balanced-accuracy", "mcc", "auc")
    ]
    return f"no predictor exceeds {', '.join(shown)}; audit ceiling --metric places a score"


def sections(result: AuditResult) -> tuple[Section, ...]:
    """The sections that this result has: other metrics, error rates, gold, near-duplicates."""
    return (*_metrics(result), *_errors(result), *_gold(result), *near_sections(result))


def _metrics(result: AuditResult) -> Iterator[Section]:
    part = result.metrics
    if not part.limits or not result.repeats.conflicts:
        return
    rows = tuple(
        Row(
            values=(
                limit.name, ("at most " if limit.direction == "upper" else "at least ") + words.number(limit.bound),
                words.number(limit.with_error), words.number(limit.truth_knower), limit.kind,
            )
        )
        for limit in part.limits
    )  # fmt: skip
    told = (
        "A bound holds for any predictor, however the items differ. Beside it stands the "
        "score of a predictor that knows the truth behind the labels, if all items are equally noisy."
    )
    sentences = [told]
    if part.positive is not None:
        positive = words.visible(part.positive, one_line=True)
        sentences.append(
            f"The positive class is '{positive}', {words.number(part.share)} of the labels of repeated items; audit "
            "ceiling --positive takes the other."
        )
    head = ("metric", "bound", "with sampling error", "the truth scores", "what the bound is")
    yield Section(
        anchor="metrics",
        title="Limits of other metrics",
        sentences=tuple(sentences),
        tables=(SectionTable(head=head, rows=rows),),
    )


def _errors(result: AuditResult) -> Iterator[Section]:
    errors = result.errors
    if errors is None:
        return
    yield Section(
        anchor="errors",
        title="Error rates",
        sentences=(
            "Errors against the label process: mistakes that annotators share stay invisible here too. Each part rests "
            "on more than the one before.",
        ),
    )
    yield _pairs(errors.pairs, result)
    named = bool(errors.annotators.rates)
    yield _latent(errors.repeats, "Three or more labels an item (latent classes)", named=named)
    yield _latent(errors.strata, "Strata (Hui & Walter)", named=named)
    yield _latent(errors.annotators, "Known annotators (Dawid & Skene)", named=named)


def _pairs(part: IdentifiedSet, result: AuditResult) -> Section:
    title = "Pairs of labels"
    if part.mean_error.lower is None:
        return Section(anchor="errors-pairs", title=title, sentences=(_given(part.reason),), level=3)
    digits = words.places(result)
    positive = words.visible(part.positive or "", one_line=True)
    names = (
        (f"share of '{positive}' among the truths", part.prevalence),
        (f"a true '{positive}' is labelled otherwise", part.miss),
        (f"another is labelled '{positive}'", part.false_alarm),
        ("a label is wrong", part.mean_error),
    )
    rows = tuple(
        Row(
            values=(
                name, f"{words.number(r.lower, digits)} to {words.number(r.upper, digits)}",
                f"{words.number(r.low, digits)} to {words.number(r.high, digits)}",
            )
        )
        for name, r in names
    )  # fmt: skip
    sentences = [
        "Pairs leave one number open: every rate in these ranges, with the others to match, explains the labels "
        "equally well, if labels are right more often than not."
    ]
    if part.reason:
        sentences.append(_given(part.reason, head="Note"))
    return Section(
        anchor="errors-pairs",
        title=title,
        sentences=tuple(sentences),
        tables=(SectionTable(head=("rate", "from", "with sampling error"), rows=rows),),
        level=3,
    )


def _latent(part: LatentClasses, title: str, *, named: bool) -> Section:
    anchor = f"errors-{part.method.lower().replace(' ', '-')}"
    if not part.rates:
        return Section(anchor=anchor, title=title, sentences=(_given(part.reason),), level=3)
    mean = part.mean_error
    sentences = [f"A label is wrong with chance {with_limits(mean)} ({words.integer(part.items)} items)."]
    if part.fit_p_value is not None:
        sentences.append(_fit(part, part.fit_p_value, named=named))
    sentences += [f"{note[0].upper()}{note[1:]}." for note in part.notes]
    classes = tuple(dict.fromkeys(rate.truth for rate in part.rates))
    if part.raters and len(classes) == 2:
        shown = words.visible(_rarer(part, classes), one_line=True)
        sentences.append(
            f"By annotator, the worst first: '{shown}' missed is a true '{shown}' with the other label, given wrongly "
            f"is the other class labelled '{shown}'."
        )
    tables = [_square(part.rates, classes)]
    strata = [s for s in part.strata if s.value]
    if strata:
        rows = [
            Row(names=(s.value, c), values=(words.integer(s.items), with_limits(e)))
            for s in strata
            for c, e in zip(classes, s.prevalence, strict=True)
        ]
        tables.append(SectionTable(head=("stratum", "class", "items", "share of truths"), rows=tuple(rows)))
    elif part.strata:
        shares = [
            Row(names=(c,), values=(with_limits(e),))
            for c, e in zip(classes, part.strata[0].prevalence, strict=True)
        ]
        tables.append(SectionTable(head=("class", "share of truths"), rows=tuple(shares)))
    if part.raters:
        tables.append(_raters(part, classes))
    if part.dependent:
        pairs = [
            Row(
                names=(p.value,),
                values=(
                    words.integer(p.items),
                    words.number(p.observed),
                    words.number(p.expected),
                    words.p_value(p.p_value),
                ),
            )
            for p in part.dependent[:_PAIRS_SHOWN]
        ]
        head = ("dependent annotators", "items", "agree", "expected", "")
        tables.append(SectionTable(head=head, rows=tuple(pairs)))
    return Section(anchor=anchor, title=title, sentences=tuple(sentences), tables=tuple(tables), level=3)


def _fit(part: LatentClasses, p: float, *, named: bool) -> str:
    """What the test of the model says, and what follows."""
    told = words.p_value(p)
    if part.raters:
        if p >= _UNLIKELY:
            return f"No sign that annotators err together ({told})."
        return f"Annotators do not err independently ({told}), so these rates may be too low: see the pairs below."
    if p >= _UNLIKELY:
        return f"The labels fit this model ({told})."
    return (
        f"The labels fit this model badly ({told}): it takes all annotators and items for equally hard to get right. "
        f"{'The rates by annotator below let them differ' if named else '--annotator gives each rates of its own'}."
    )


def _raters(part: LatentClasses, classes: tuple[str, ...]) -> SectionTable:
    """The annotators, the worst first, with their errors by class if there are two, else their commonest error."""
    raters = sorted(part.raters, key=lambda r: (-(r.error.estimate or 0.0), r.value))
    counts = [(words.integer(r.labels), with_limits(r.error)) for r in raters]
    if len(classes) == 2:
        positive = _rarer(part, classes)
        shown = words.visible(positive, one_line=True)
        wrong = [
            {r.truth == positive: with_limits(r) for r in rater.rates if r.truth != r.label}
            for rater in raters
        ]
        rows = [
            Row(names=(rater.value,), values=(*count, one.get(True, "–"), one.get(False, "–")))
            for rater, count, one in zip(raters, counts, wrong, strict=True)
        ]
        head = ("annotator", "labels", "a label is wrong", f"'{shown}' missed", f"'{shown}' given wrongly")
        return SectionTable(head=head, rows=tuple(rows))
    commonest = [_confusion(rater, part, classes) for rater in raters]
    rows = [
        Row(names=(rater.value, name), values=(*count, chance))
        for rater, count, (name, chance) in zip(raters, counts, commonest, strict=True)
    ]
    head = ("annotator", "commonest error", "labels", "a label is wrong", "how often that error")
    return SectionTable(head=head, rows=tuple(rows))


def _rarer(part: LatentClasses, classes: tuple[str, ...]) -> str:
    """The class with the smaller share of the truths, the second if they are equal: the positive one."""
    shares = [e.estimate or 0.0 for e in part.strata[0].prevalence] if part.strata else [1.0, 1.0]
    return classes[0] if shares[0] < shares[1] else classes[1]


def _confusion(rater: Rater, part: LatentClasses, classes: tuple[str, ...]) -> tuple[str, str]:
    """The error that an annotator makes most often over all items: the class with its wrong name, and the chance."""
    wrong = [r for r in rater.rates if r.truth != r.label and r.estimate]
    if not wrong:
        return "none", "–"
    shares = [e.estimate or 0.0 for e in part.strata[0].prevalence] if part.strata else []
    share = dict(zip(classes, shares, strict=False))
    most = max(wrong, key=lambda r: share.get(r.truth, 1.0) * (r.estimate or 0.0))
    return f"{most.truth} → {most.label}", with_limits(most)


def _square(rates: tuple[Rate, ...], classes: tuple[str, ...]) -> SectionTable:
    rows = tuple(
        Row(names=(r.truth, r.label), values=(with_limits(r),))
        for r in rates
        if len(classes) <= 6 or r.truth != r.label
    )
    return SectionTable(head=("truth", "labelled", "chance"), rows=rows)


def _gold(result: AuditResult) -> Iterator[Section]:
    gold = result.gold
    if gold is None:
        return
    sentences = []
    if gold.error.estimate is not None:
        sentences.append(
            f"{words.integer(gold.labels)} labels of {words.integer(gold.items)} items have a gold label; "
            f"{with_limits(gold.error)} of them differ from it, so a label scores "
            f"{_complement(gold.error)} against gold."
        )
        if gold.flip_rate is not None:
            sentences.append(
                f"The top of the band, 1 − ε = {_complement(result.flip_rate)}, {_side(result)}."
            )
    if gold.reason:
        sentences.append(_given(gold.reason, head="Note"))
    yield Section(anchor="gold", title="Against gold labels", sentences=tuple(sentences))


def _complement(part: Estimate) -> str:
    """1 minus an estimate, with its limits."""
    ends = [None if end is None else 1.0 - end for end in (part.estimate, part.high, part.low)]
    return with_limits(Estimate(estimate=ends[0], low=ends[1], high=ends[2]))


def _side(result: AuditResult) -> str:
    """Where the top of the band lies beside the labels' score against gold, as far as sampling error lets tell."""
    if result.gold is not None and result.gold.above:
        return "is at or above that score, as it should be"
    if any(alarm.code == GOLD_BELOW for alarm in result.alarms):
        return f"is below that score, as independent labels of the same items cannot be: see the alarm {GOLD_BELOW}"
    return "is within sampling error of that score: labels may be wrong as often as their repeats show"


def _given(reason: str | None, *, head: str = "Not given") -> str:
    return f"{head}: {(reason or 'there is nothing to go by').rstrip('.')}."
