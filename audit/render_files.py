"""The report of ``audit compare``: d before and after, the change, what moved, and the table of labels."""

from __future__ import annotations

from collections.abc import Iterator

from audit import render_words as words
from audit.comparing_results import FileComparison, Moved, Side
from audit.render_methods import METHODS, Method
from audit.render_page import Figure, Page, Row, Section, SectionTable, settings_rows, with_limits
from audit.results import Estimate

__all__ = ["comparison_page"]

#: Classes that a square table shows; with more, the most frequent moves are listed.
_SQUARE, _MOVES_SHOWN = 8, 50

_D_AND_RATE = METHODS[:2]
_COMPARED = (
    Method(
        name="Change in d",
        sentence=(
            "d after less d before on the items that are repeated in both files, so that other items are no other "
            "labels. The interval puts together those of the two and their correlation over items. The p-value: the "
            "signs of the items' differences are dealt anew."
        ),
        source="Zou & Donner, Statistics in Medicine 27 (2008) 1693–1702 (MOVER)",
    ),
    Method(
        name="What moved",
        sentence=(
            "Rows of one id are compared where there are ids; else items, each by its most frequent label, without the "
            "items whose labels tie on a side. Are moves one way as frequent as the other? McNemar's exact test for "
            "one pair of classes, Bowker's test for more."
        ),
        source="Bowker, J. Am. Stat. Assoc. 43 (1948) 572–574; intervals of shares: Wilson",
    ),
)


def comparison_page(result: FileComparison) -> Page:
    """The report of ``audit compare``."""
    before, after = (words.file_name(name) for name in result.settings.sources)
    level, changed = words.percent(result.level), result.compared - _unmoved(result)
    p = words.p_value(result.p_value)
    return Page(
        kicker="Labels before and after:",
        source=f"{before} → {after}",
        headline=result.verdict,
        figures=(
            Figure(
                name="d after", value=words.number(result.after.disagreement.estimate),
                fine=f"before {words.number(result.before.disagreement.estimate)}",
            ),
            Figure(
                name="Change in d", value=_signed(result.difference.estimate),
                fine=", ".join(part for part in (_signed_limits(result.difference), p) if part),
            ),
            Figure(name="Ceiling after", value=_band(result.after), fine=f"before {_band(result.before)}"),
            Figure(
                name="Labels changed", value=words.integer(changed),
                fine=f"of {words.integer(result.compared)} {result.unit}{_of(changed, result.compared)}",
            ),
        ),
        sentences=(
            f"{words.integer(result.items_in_both)} items stand in both files, "
            f"{words.integer(result.repeated_in_both)} of them repeated in both. Intervals: {level}.",
            *((result.band_sentence,) if result.band_sentence else ()),
            *(f"{note}." for note in result.notes),
        ),
        caution=(
            "d sees disagreement, never a mistake that all repeats share: labels that agree more may be wrong as often "
            "as before."
        ),
        sections=(_sides(result), *_moved(result), *_table(result)),
        alarms=result.alarms,
        methods=(*_D_AND_RATE, *_COMPARED),
        settings=settings_rows(result.settings),
        version=result.settings.version,
    )  # fmt: skip


def _sides(result: FileComparison) -> Section:
    rows = [
        Row(
            values=(
                name, with_limits(side.disagreement), with_limits(side.flip_rate),
                words.number(side.kappa), words.integer(side.conflicts), words.integer(side.items),
                words.integer(side.rows),
            ),
            drawn=side.disagreement,
        )
        for name, side in (("before", result.before), ("after", result.after))
    ]  # fmt: skip
    head = ("", "d", "flip rate ε", "retest κ", "disagreeing", "items", "rows")
    tables = [SectionTable(head=head, rows=tuple(rows))]
    bands = [
        Row(
            values=(
                name,
                _band(side),
                f"{words.number(side.ceiling.low)} to {words.number(side.ceiling.high)}",
            )
        )
        for name, side in (("before", result.before), ("after", result.after))
        if side.ceiling.lower is not None
    ]
    if bands:
        named = ("accuracy ceiling", "1 − d to 1 − ε", "with sampling error")
        tables.append(SectionTable(head=named, rows=tuple(bands)))
    if result.difference.estimate is not None:
        change = Row(
            values=("d after less d before", _change(result.difference), words.p_value(result.p_value)),
            drawn=result.difference,
        )
        picture = "the change with its interval, and a dashed line at no change"
        tables.append(SectionTable(head=("", "change", ""), rows=(change,), picture=picture, reference=0.0))
    return Section(
        anchor="sides",
        title="Before and after",
        sentences=(
            "d, ε, the band of the accuracy ceiling and κ are those of the items repeated in both files. "
            f"{words.integer(result.came_together)} of these agree more after, "
            f"{words.integer(result.moved_apart)} less.",
        ),
        tables=tuple(tables),
    )


def _moved(result: FileComparison) -> Iterator[Section]:
    if not result.moved:
        return
    sentences = []
    if result.symmetry_p_value is not None:
        sentences.append(result.moves_sentence)
    if result.untold:
        sentences.append(
            f"{words.integer(result.untold)} {result.unit} are left out: two labels tie on a side."
        )
    rows = [
        Row(
            names=(part.label, _most(part)),
            values=(with_limits(part.share), words.integer(part.changed), words.integer(part.total)),
            drawn=part.share,
        )
        for part in result.moved
    ]
    head = ("class before", "most often to", "share", "changed", result.unit)
    table = SectionTable(head=head, rows=tuple(rows), picture="the share that changed with its interval")
    yield Section(anchor="moved", title="What moved", sentences=tuple(sentences), tables=(table,))


def _most(part: Moved) -> str:
    return max(part.to, key=lambda name: part.to[name]) if part.to else "–"


def _table(result: FileComparison) -> Iterator[Section]:
    if not result.compared:
        return
    classes, title = result.classes, "Labels before and after"
    if len(classes) <= _SQUARE:
        rows = [
            Row(names=(name,), values=tuple(_share(count, sum(counts)) for count in counts))
            for name, counts in zip(classes, result.confusion, strict=True)
        ]
        told = f"{_compared(result)} A row is a class before, a column one after, with its share of the row."
        table = SectionTable(head=("before", *classes), rows=tuple(rows))
        yield Section(anchor="confusion", title=title, sentences=(told,), tables=(table,))
        return
    moves = [
        (count, before, after, sum(counts))
        for before, counts in zip(classes, result.confusion, strict=True)
        for after, count in zip(classes, counts, strict=True)
        if count and before != after
    ]
    moves.sort(key=lambda move: -move[0])
    listed = [
        Row(names=(before, after), values=(_share(count, total),), share=count / total)
        for count, before, after, total in moves[:_MOVES_SHOWN]
    ]
    told = (
        f"{_compared(result)} The most frequent of {words.integer(len(moves))} moves, with its share of the class "
        "before."
        if moves
        else f"{_compared(result)} None has another label."
    )
    table = SectionTable(
        head=("before", "after", result.unit), rows=tuple(listed), picture="the share as a bar"
    )
    yield Section(anchor="confusion", title=title, sentences=(told,), tables=(table,) if listed else ())


def _compared(result: FileComparison) -> str:
    return f"{words.integer(result.compared)} {result.unit} are compared."


def _unmoved(result: FileComparison) -> int:
    return sum(row[k] for k, row in enumerate(result.confusion))


def _band(side: Side) -> str:
    band = side.ceiling
    return "–" if band.lower is None else f"{words.number(band.lower)} to {words.number(band.upper)}"


def _share(count: int, total: int) -> str:
    return f"{words.integer(count)} ({count / total:.1%})" if count else "0"


def _of(count: int, total: int) -> str:
    return f", {count / total:.1%}" if total else ""


def _signed(value: float | None) -> str:
    return words.number(value) if value is None or value <= 0 else f"+{words.number(value)}"


def _signed_limits(part: Estimate) -> str:
    return "" if part.low is None or part.high is None else f"{_signed(part.low)} to {_signed(part.high)}"


def _change(part: Estimate) -> str:
    limits = _signed_limits(part)
    return _signed(part.estimate) + (f" ({limits})" if limits else "")
