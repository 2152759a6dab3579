"""The parts beyond the pair in words and tables that all report formats share."""

from __future__ import annotations

from collections.abc import Iterator

from audit import render_words as words
from audit.render_page import Row, Section, SectionTable, with_limits
from audit.results import AuditResult, IdentifiedSet, LatentClasses, Rate
from audit.results_near import NearDuplicates

__all__ = ["metric_line", "sections"]

_RATERS_SHOWN, _PAIRS_SHOWN = 20, 10


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
    return (*_metrics(result), *_errors(result), *_gold(result), *_near(result.near), *_near(result.semantic))


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
    yield _latent(errors.repeats, "Three or more labels an item (latent classes)")
    yield _latent(errors.strata, "Strata (Hui & Walter)")
    yield _latent(errors.annotators, "Known annotators (Dawid & Skene)")


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


def _latent(part: LatentClasses, title: str) -> Section:
    anchor = f"errors-{part.method.lower().replace(' ', '-')}"
    if not part.rates:
        return Section(anchor=anchor, title=title, sentences=(_given(part.reason),), level=3)
    mean = part.mean_error
    sentences = [f"A label is wrong with chance {with_limits(mean)} ({words.integer(part.items)} items)."]
    if part.fit_p_value is not None:
        what = "do the labels fit the model" if not part.raters else "do annotators err independently"
        sentences.append(f"{what[0].upper()}{what[1:]}? {words.p_value(part.fit_p_value)}.")
    sentences += [f"{note[0].upper()}{note[1:]}." for note in part.notes]
    classes = tuple(dict.fromkeys(rate.truth for rate in part.rates))
    tables = [_square(part.rates, classes)]
    named = [s for s in part.strata if s.value]
    if named:
        rows = [
            Row(names=(s.value, c), values=(words.integer(s.items), with_limits(e)))
            for s in named
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
        raters = [
            Row(names=(r.value,), values=(words.integer(r.labels), with_limits(r.error)))
            for r in part.raters[:_RATERS_SHOWN]
        ]
        tables.append(SectionTable(head=("annotator", "labels", "a label is wrong"), rows=tuple(raters)))
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
            f"{words.number(1.0 - gold.error.estimate)} against gold."
        )
        if gold.flip_rate is not None:
            side = "at or above it, as it should be" if gold.above else "below it: see the alarms"
            sentences.append(f"The top of the band, 1 − ε = {words.number(1.0 - gold.flip_rate)}, is {side}.")
    if gold.reason:
        sentences.append(_given(gold.reason, head="Note"))
    yield Section(anchor="gold", title="Against gold labels", sentences=tuple(sentences))


def _near(near: NearDuplicates | None) -> Iterator[Section]:
    if near is None:
        return
    told = (
        f"{words.integer(near.pairs)} pairs of {words.integer(near.texts_in_pairs)} texts are alike at "
        f"{near.threshold:g} or more, of {words.integer(near.texts)} different texts."
    )
    sentences = [told, near.meaning, f"{near.verdict} Near-duplicates never enter the headline."]
    if near.sampled:
        sentences.append("Groups of hundreds of near-equal texts were paired in part.")
    cosine = near.measure == "cosine"
    rows = [
        Row(
            values=(
                f"{part.low:.2f} to {part.high:.2f}", words.integer(part.pairs),
                *(() if part.also_near is None else (words.integer(part.also_near),)),
                words.integer(part.clusters),
                with_limits(part.disagreement) if part.clusters else "-",
            ),
            drawn=part.disagreement,
        )
        for part in near.bins
    ]  # fmt: skip
    blank = ("",) * (3 if cosine else 2)
    rows.append(Row(values=("equal", *blank, with_limits(near.exact)), drawn=near.exact))
    head = ("similarity", "pairs", *(("also near",) if cosine else ()), "clusters", "d")
    yield Section(
        anchor="semantic" if cosine else "near",
        title="Near-duplicates by their words" if cosine else "Near-duplicates",
        sentences=tuple(sentences),
        tables=(SectionTable(head=head, rows=tuple(rows)),),
    )


def _given(reason: str | None, *, head: str = "Not given") -> str:
    return f"{head}: {(reason or 'there is nothing to go by').rstrip('.')}."
