"""The report of ``audit issues``: two flip rates side by side, the model, its noise matrix, the check, the list."""

from __future__ import annotations

from collections.abc import Iterator

from audit import render_words as words
from audit.issues_results import CHANCE_SENTENCE, Issues
from audit.render_methods import METHODS, Method
from audit.render_page import Figure, Page, Row, Section, SectionTable, item_text, settings_rows, with_limits
from audit.results import Estimate

__all__ = ["issues_page"]

#: Classes that a square table shows; with more, the most frequent confusions are listed.
_SQUARE, _LISTED = 8, 50

_METHODS = (
    Method(
        name="Flip rate by the model",
        sentence=(
            "Confident learning on probabilities of a model that has not seen the item: a label counts for the class "
            "whose probability reaches the mean confidence of that class. The share of labels that are not of the "
            "class counted is the flip rate; a label with a flag is one that the model takes for another class."
        ),
        source="Northcutt, Jiang & Chuang, J. Artif. Intell. Res. 70 (2021) 1373–1411; computed by cleanlab",
    ),
    Method(
        name="Difference",
        sentence=(
            "The flip rate by the model less that by the repeats, with the correlation of both over resamples of "
            "items. The model is not trained again, so its luck is not in the interval."
        ),
        source="Zou & Donner, Statistics in Medicine 27 (2008) 1693–1702 (MOVER)",
    ),
    Method(
        name="The free check",
        sentence=(
            "One label of an item in conflict is wrong. By chance: the same with the probabilities dealt among the "
            "repeated items at random. From the other labels of an item follows the precision of the flags, if flips "
            "are independent and ε is the same for all."
        ),
        formula="precision = (share of other labels that differ from a flagged one − ε) / (1 − ε K/(K − 1))",
    ),
    *METHODS[:2],
)  # fmt: skip


def issues_page(result: Issues) -> Page:
    """The report of ``audit issues``."""
    sentences = [
        f"{words.integer(result.labelled)} labels of {words.integer(result.items)} items, "
        f"{words.integer(len(result.classes))} classes; {result.model.kind}."
    ]
    if result.without_probabilities:
        sentences.append(
            f"{words.integer(result.without_probabilities)} labelled rows have no probabilities."
        )
    headline, _, reading = result.verdict.partition(". ")
    if reading:
        sentences.insert(0, reading)
    if result.notes:
        sentences.append(f"Notes: {'; '.join(result.notes)}.")
    return Page(
        kicker="A model's view of the labels in",
        source=words.file_name(result.settings.sources[0]),
        headline=f"{headline.rstrip('.')}.",
        figures=(
            _figure("Flip rate by the model", result.model_flip_rate),
            _figure("By the repeats", result.flip_rate),
            _figure("Difference", result.difference),
            Figure(
                name="Suspicious labels", value=words.integer(result.flagged),
                fine=f"of {words.integer(result.labelled)}",
            ),
        ),
        sentences=tuple(sentences),
        caution=(
            "Nothing in probabilities alone tells a model that does not know better from labels that are wrong, and "
            "mistakes that all repeats share are invisible to the repeats."
        ),
        sections=(_rates(result), *_model(result), *_noise(result), *_check(result), *_list(result)),
        alarms=result.alarms,
        methods=_METHODS,
        settings=settings_rows(result.settings),
        version=result.settings.version,
    )  # fmt: skip


def _rates(result: Issues) -> Section:
    named = [("by the model", result.model_flip_rate), ("by the repeats", result.flip_rate)]
    if result.rates.repeated.estimate is not None:
        parts = (
            ("by the model, in the repeated items", result.rates.repeated),
            ("in the rest", result.rates.rest),
        )
        named[1:1] = parts
    rows = tuple(Row(values=(name, with_limits(part)), drawn=part) for name, part in named)
    tables = [SectionTable(head=("flip rate", "ε"), rows=rows, picture="ε with its interval")]
    if result.difference.estimate is not None:
        part = result.difference
        row = Row(values=("model less repeats", with_limits(part)), drawn=part)
        picture = "the difference with its interval, and a dashed line at none"
        tables.append(SectionTable(head=("", "difference"), rows=(row,), picture=picture, reference=0.0))
    sentences = [
        f"{words.integer(result.repeated)} items are repeated, {words.integer(result.conflicts)} of them in conflict, "
        f"d {with_limits(result.disagreement)}. Intervals: {words.percent(result.level)}."
    ]
    for name, reason in (("by the model", result.reason), ("by the repeats", result.flip_rate.reason)):
        if reason:
            sentences.append(f"Not given {name}: {reason.rstrip('.')}.")
    return Section(anchor="rates", title="Two flip rates", sentences=tuple(sentences), tables=tuple(tables))


def _model(result: Issues) -> Iterator[Section]:
    model = result.model
    if model.reason is not None:
        return
    measured = (
        ("accuracy against these labels", model.accuracy, model.majority, "the most frequent class"),
        ("gain over the most frequent class", model.gain, None, ""),
        ("AUC", model.auc, 0.5, "by chance"),
        ("log-loss", Estimate(estimate=model.log_loss), model.base_log_loss, "the class shares"),
        ("mean confidence", Estimate(estimate=model.confidence), None, ""),
        ("calibration error", Estimate(estimate=model.calibration_error), None, ""),
    )
    rows = tuple(
        Row(values=(name, with_limits(part), f"{words.number(base)}: {against}" if base is not None else ""))
        for name, part, base, against in measured
    )
    told = "Out of fold, each item once, against these labels, wrong ones included."
    table = SectionTable(head=("", "the model", "to hold against it"), rows=rows)
    yield Section(anchor="model", title="The model", sentences=(told,), tables=(table,))


def _noise(result: Issues) -> Iterator[Section]:
    noise, title = result.noise, "Noise matrix"
    if not noise.given_true:
        return
    if len(noise.classes) <= _SQUARE:
        rows = [
            Row(names=(name,), values=(words.number(share), *map(words.number, chances)))
            for name, share, chances in zip(noise.classes, noise.prevalence, noise.given_true, strict=True)
        ]
        told = "By the model: a row is a true class, a column the chance of a given label."
        table = SectionTable(head=("true class", "share", *noise.classes), rows=tuple(rows))
        yield Section(anchor="noise", title=title, sentences=(told,), tables=(table,))
        return
    cells = [
        (chance * share, true, given, chance)
        for true, share, chances in zip(noise.classes, noise.prevalence, noise.given_true, strict=True)
        for given, chance in zip(noise.classes, chances, strict=True)
        if true != given and chance > 0
    ]
    cells.sort(key=lambda cell: -cell[0])
    listed = tuple(
        Row(names=(true, given), values=(words.number(chance),), share=chance)
        for _, true, given, chance in cells[:_LISTED]
    )
    told = "By the model: the confusions that concern the most labels."
    table = SectionTable(
        head=("true class", "given label", "chance"), rows=listed, picture="the chance as a bar"
    )
    yield Section(anchor="noise", title=title, sentences=(told,), tables=(table,) if listed else ())


def _check(result: Issues) -> Iterator[Section]:
    check = result.check
    if not (check.conflicts and check.unanimous) or result.reason is not None:
        return
    shares = (
        ("AUC of the lowest score", Estimate(estimate=check.auc), check.auc_by_chance),
        ("AUC of the model's doubt", Estimate(estimate=check.doubt_auc), None if check.doubt_auc is None else 0.5),
        ("conflicts among items with a flag", check.precision, check.precision_by_chance),
        (f"a flag at {words.integer(check.unanimous)} items that agree", check.false, check.false_by_chance),
        (f"a flag at {words.integer(check.conflicts)} items in conflict", check.recall, check.recall_by_chance),
    )  # fmt: skip
    rows = tuple(
        Row(values=(name, with_limits(part), words.number(chance)), drawn=part)
        for name, part, chance in shares
    )
    tables = [SectionTable(head=("", "share", "by chance"), rows=rows, picture="the share with its interval")]
    partners = check.partners
    sentences = [CHANCE_SENTENCE]
    if partners.precision.estimate is not None:
        held = (
            ("flagged labels that are wrong (precision)", partners.precision),
            ("wrong labels that are flagged (recall)", partners.recall),
        )
        others = tuple(Row(values=(name, with_limits(part)), drawn=_within(part)) for name, part in held)
        if any(not 0.0 <= (part.estimate or 0.0) <= 1.0 for _, part in held):
            sentences.append(f"By the other labels of the item: {partners.sentence}.")
        tables.append(
            SectionTable(
                head=("by the other labels of the item", "share"),
                rows=others,
                picture="the share with its interval",
            )
        )
    if partners.reason:
        sentences.append(f"By the other labels of the item: {partners.reason.rstrip('.')}.")
    yield Section(
        anchor="check",
        title="Known conflicts",
        sentences=tuple(sentences),
        tables=tuple(tables),
    )


def _within(part: Estimate) -> Estimate:
    """The share as it is drawn, on an axis that ends at 1; its number stands beside it."""
    ends = [
        None if value is None else min(max(value, 0.0), 1.0) for value in (part.estimate, part.low, part.high)
    ]
    return Estimate(estimate=ends[0], low=ends[1], high=ends[2], method=part.method)


def _list(result: Issues) -> Iterator[Section]:
    if not result.issues:
        if result.model.reason is None and result.reason is not None:
            told = "None are listed: the flags of such a model are chance."
            yield Section(anchor="issues", title="Suspicious labels", sentences=(told,))
        return
    rows = tuple(
        Row(
            names=(one.label, one.suggested, item_text(one.item)),
            values=(
                words.number(one.score), words.number(one.suggested_probability),
                "yes" if one.conflict else "no", words.integer(one.row),
            ),
        )
        for one in result.issues
    )  # fmt: skip
    head = ("given", "suggested", "item", "score", "probability", "conflict", "row")
    told = (
        f"The most suspicious {words.integer(len(rows))} of {words.integer(result.flagged)}: the score is the "
        "probability of the given label, beside it that of the suggested one. --out-rows FILE writes all of them, for "
        "audit resolve."
    )
    yield Section(
        anchor="issues",
        title="Suspicious labels",
        sentences=(told,),
        tables=(SectionTable(head=head, rows=rows),),
    )


def _figure(name: str, part: Estimate) -> Figure:
    return Figure(name=name, value=words.number(part.estimate), fine=words.interval(part))
