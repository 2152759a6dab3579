"""The report of ``audit leak``: test items that stand in the training file, and texts that are alike."""

from __future__ import annotations

from collections.abc import Iterator

from audit import render_words as words
from audit.leakage_results import Leak
from audit.render_methods import Method
from audit.render_page import Figure, Page, Row, Section, SectionTable, item_text, settings_rows, with_limits
from audit.results import Estimate

__all__ = ["leak_page"]

_LEAKED = (
    Method(
        name="Leaked rows",
        sentence=(
            "Test rows whose item, brought to its normal form, stands in the training file. The share is a count of "
            "this file; its interval speaks of further files drawn the same way."
        ),
        source="Clopper & Pearson, Biometrika 26 (1934) 404–413",
    ),
    Method(
        name="Labels of leaked items",
        sentence=(
            "The chance that a label drawn from the training file and one drawn from the test file differ, each leaked "
            "item once. Remembering: the most frequent training label of the item is the answer to each test row."
        ),
    ),
)  # fmt: skip


def leak_page(result: Leak) -> Page:
    """The report of ``audit leak``."""
    train, test = (words.file_name(name) for name in result.settings.sources)
    return Page(
        kicker="Leakage into the test file:",
        source=f"{train} → {test}",
        headline=result.verdict,
        figures=(
            Figure(
                name="Leaked test rows", value=words.integer(result.leaked_rows),
                fine=f"of {words.integer(result.test_rows)} rows to test on",
            ),
            Figure(
                name="Share", value=words.number(result.share.estimate), fine=words.interval(result.share)
            ),
            Figure(
                name="Items in both", value=words.integer(result.items),
                fine=f"{words.integer(result.train_rows)} rows to train on",
            ),
            Figure(
                name="Labels differ", value=words.number(result.disagreement.estimate),
                fine=words.interval(result.disagreement)
                or ("" if result.labelled else "no label column was named"),
            ),
        ),
        sentences=tuple(_leak_sentences(result)),
        caution=result.caution,
        sections=(_shares(result), *_items(result), *_near(result)),
        alarms=result.alarms,
        methods=_LEAKED,
        settings=settings_rows(result.settings),
        version=result.settings.version,
    )  # fmt: skip


def _leak_sentences(result: Leak) -> Iterator[str]:
    if result.repeated_in_test:
        yield f"{words.integer(result.repeated_in_test)} test rows repeat an item of another test row."
    yield from (f"{note}." for note in result.notes)
    if result.cleaned is not None:
        yield result.cleaned.sentence


def _near(result: Leak) -> Iterator[Section]:
    for part, anchor, title in (
        (result.near, "near", "Near texts"), (result.semantic, "semantic", "Near texts by their words"),
    ):  # fmt: skip
        if part is None:
            continue
        rows = tuple(
            Row(
                names=(item_text(one.item), item_text(one.train_item)),
                values=(words.number(one.similarity), _rows(one.test_rows), _rows(one.train_rows)),
            )
            for one in part.examples
        )
        head = ("test item", "the most alike training item", "alike", "test rows", "training rows")
        tables = (SectionTable(head=head, rows=rows),) if rows else ()
        yield Section(
            anchor=anchor,
            title=title,
            sentences=(f"{part.sentence[0].upper()}{part.sentence[1:]}.",),
            tables=tables,
        )


def _shares(result: Leak) -> Section:
    shares = [("test rows that were trained on", result.share)]
    if result.disagreement.estimate is not None:
        shares.append(("labels of a leaked item differ between the files", result.disagreement))
    if result.remembered is not None:
        known = Estimate(estimate=result.remembered)
        shares.append(("leaked rows answered by remembering the training labels", known))
    rows = tuple(Row(values=(name, with_limits(part)), drawn=part) for name, part in shares)
    table = SectionTable(head=("", "share"), rows=rows, picture="the share with its interval")
    return Section(anchor="shares", title="How much leaks", tables=(table,))


def _items(result: Leak) -> Iterator[Section]:
    if not result.examples:
        return
    rows = [
        Row(
            names=(
                item_text(one.item),
                *((_labels(one.train_labels), _labels(one.test_labels)) if result.labelled else ()),
            ),
            values=(_rows(one.train_rows), _rows(one.test_rows)),
        )
        for one in result.examples
    ]  # fmt: skip
    labels = ("label to train on", "label to test on") if result.labelled else ()
    table = SectionTable(head=("item", *labels, "training rows", "test rows"), rows=tuple(rows))
    told = (
        f"{words.integer(len(result.examples))} of {words.integer(result.items)} items; --rows FILE writes every "
        "leaked test row. Rows are counted from 1, without the header."
    )
    yield Section(anchor="items", title="Leaked items", sentences=(told,), tables=(table,))


def _labels(labels: tuple[str, ...]) -> str:
    return " · ".join(dict.fromkeys(labels))


def _rows(rows: tuple[int, ...], most: int = 5) -> str:
    return " ".join(map(str, rows[:most])) + (" …" if len(rows) > most else "")
