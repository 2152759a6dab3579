"""The audit as GitHub-flavoured Markdown: for a pull request, a wiki or a data card.

Text of the audited file stays text: it stands in code spans, and what a code span or a table cell cannot hold
is written as character references, which CommonMark never reads as markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from audit import render_words as words
from audit.render_band import band_sentences
from audit.render_beyond import sections
from audit.render_methods import METHODS, SHARED_MISTAKES, Method
from audit.render_page import Page, Quote, Section, SectionTable, numeric_columns
from audit.results import Alarm, AuditResult, Breakdown, ConflictGroup

__all__ = ["markdown", "page_markdown"]

_VALUES_SHOWN, _CONFLICTS_SHOWN, _LONGEST = 50, 20, 200
_MARKUP = re.compile(r"[\\`*_\[\]<>&|~$@]|:(?=//)|(?<=www)\.")
_CODE_MARKUP = re.compile(r"[!-/:-@\[-`{-~]|^\s|\s$")
_BLOCK_START = re.compile(r"[^\w&]|\d+[.)]")
_TITLES = {"stop": "Stop", "warning": "Warning", "note": "Note"}


def markdown(result: AuditResult, *, more: Sequence[Section] = ()) -> str:
    """``result`` as Markdown with tables, ending in a line end; the hardest 20 conflicts are listed.

    ``more`` are sections of a kind of labels, which follow the band.
    """
    report = _Report(result)
    return _joined(
        report.head(), report.estimates(), _alarms(result.alarms), _sections(more), report.repeats(),
        report.columns(), _sections(sections(result)), report.what_if(), report.conflicts(),
        _methods(METHODS, words.settings_rows(result)),
    )  # fmt: skip


def page_markdown(page: Page) -> str:
    """A report of its own as Markdown, ending in a line end."""
    return _joined(
        _page_head(page),
        _alarms(page.alarms),
        _sections(page.sections),
        _methods(page.methods, page.settings),
    )


def _joined(*parts: Iterable[str]) -> str:
    return "\n\n".join(block for part in parts for block in part) + "\n"


def _page_head(page: Page) -> Iterator[str]:
    yield f"# {_prose(page.kicker)} {_code(page.source)}"
    yield f"**{_prose(page.headline)}**"
    if page.steps:
        yield "\n".join(f"- {_prose(step)}" for step in page.steps)
    yield _table(
        ("", "", ""), [tuple(map(_cell, (f.name, f.value, f.fine))) for f in page.figures], right=(1,)
    )
    for sentence in page.sentences:
        yield _prose(sentence)
    yield f"> {_prose(page.caution)}"


def _alarms(alarms: Sequence[Alarm]) -> Iterator[str]:
    if not alarms:
        return
    yield "## Alarms"
    for alarm in alarms:
        title = _TITLES.get(alarm.severity, _prose(alarm.severity))
        lines = [
            f"- **{title}, {_prose(words.plain_name(alarm.code))}.** {_prose(words.alarm_message(alarm))}"
        ]
        if alarm.action:
            lines.append(f"  - What to do: {_prose(alarm.action)}")
        values = [f"{_prose(name)} {_code(value)}" for name, value in words.figures(alarm.figures)]
        if values:
            lines.append(f"  - Figures: {', '.join(values)}")
        yield "\n".join(lines)


def _sections(parts: Sequence[Section]) -> Iterator[str]:
    for section in parts:
        yield f"{'#' * section.level} {_prose(section.title)}"
        if section.sentences:
            yield _prose(" ".join(section.sentences))
        for table in section.tables:
            yield _section_table(table)
            if len(table.rows) > _VALUES_SHOWN:
                yield f"{words.integer(len(table.rows) - _VALUES_SHOWN)} more are in the JSON."
        if section.quotes:
            yield "\n".join(map(_quoted, section.quotes))


def _quoted(quote: Quote) -> str:
    parts = [f"  - {_code(labels)}: {_code(told)}" for labels, told in quote.parts]
    return "\n".join((f"- {_prose(quote.head)}", *parts))


def _section_table(table: SectionTable) -> str:
    rows = [(*map(_code, row.names), *map(_cell, row.values)) for row in table.rows[:_VALUES_SHOWN]]
    right = [place for place, numeric in enumerate(numeric_columns(table)) if numeric]
    return _table(map(_cell, table.head), rows, right=right)


def _methods(methods: Sequence[Method], settings: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield "## Methods and assumptions"
    for method in methods:
        lines = [f"**{_prose(method.name)}.** {_prose(method.sentence)}"]
        lines += [_code(method.formula)] if method.formula else []
        lines += [f"Source: {_prose(method.source)}."] if method.source else []
        yield "  \n".join(lines)
    yield _table(("setting", "value"), [(_prose(k), _code(v)) for k, v in settings])


class _Report:
    def __init__(self, result: AuditResult) -> None:
        self.result = result
        self.digits = words.places(result)
        self.level = result.disagreement.level

    def head(self) -> Iterator[str]:
        yield f"# Label audit of {_code(words.source_name(self.result))}"
        yield f"**{_prose(self.result.verdict.headline)}**"
        if self.result.verdict.next_steps:
            yield "\n".join(f"- {_prose(step)}" for step in self.result.verdict.next_steps)
        yield _prose(words.data_sentence(self.result))

    def estimates(self) -> Iterator[str]:
        band = self.result.ceiling
        yield "## The band that holds the accuracy ceiling"
        sentences = band_sentences(self.result)
        yield _prose(" ".join(sentences))
        if (
            band.prevalence_lower is not None
            and band.lower is not None
            and band.prevalence_lower > band.lower
        ):
            yield f"The class shares raise the lower end to {self._n(band.prevalence_lower)}."
        rows = [
            (_prose(name[0].upper() + name[1:]), self._n(part.estimate), words.interval(part, self.digits))
            for name, part in words.estimate_rows(self.result)
        ]
        yield _table(("", "estimate", f"{words.percent(self.level)} interval"), rows, right=(1, 2))
        for reason in words.missing_reasons(self.result, told=sentences):
            yield f"Not given: {_prose(reason)}."
        yield f"> {_prose(SHARED_MISTAKES)}"

    def repeats(self) -> Iterator[str]:
        found, n = self.result.repeats, words.integer
        yield "## Repeats"
        yield words.repeats_sentence(self.result)
        if found.sizes:
            rows = [(n(s.size), n(s.items), n(s.conflicts), self._n(s.estimate)) for s in found.sizes]
            yield _table(("labels per item", "items", "disagreeing", "d"), rows, right=(0, 1, 2, 3))
        if found.ladder:
            ladder = [
                (f"**{r.level}** (used)" if r.level == found.normalise else r.level, n(r.items), n(r.rows),
                 n(r.conflicts), self._n(r.estimate))
                for r in found.ladder
            ]  # fmt: skip
            head = ("texts compared up to", "items", "rows", "disagreeing", "d")
            yield _table(head, ladder, right=(1, 2, 3, 4))

    def columns(self) -> Iterator[str]:
        for column, parts in self.result.by.items():
            yield f"## Disagreement by {_code(words.column_title(column))}"
            if column == "class":
                yield words.CLASS_SENTENCE
            comparison = self.result.comparisons.get(column)
            if comparison is not None:
                told = words.comparison_sentences(comparison, level=self.level, digits=self.digits)
                if told:
                    yield _prose(" ".join(told))
            if parts:
                head = ("value", "items", "disagreeing", "d", f"{words.percent(self.level)} interval")
                rows = [self._breakdown(part) for part in parts[:_VALUES_SHOWN]]
                yield _table(head, rows, right=(1, 2, 3, 4))
            if len(parts) > _VALUES_SHOWN:
                yield f"{words.integer(len(parts) - _VALUES_SHOWN)} more values are in the JSON."

    def what_if(self) -> Iterator[str]:
        if self.result.copied_share:
            yield "## If some labels were copies"
            rows = [
                (words.percent(c.share), self._n(c.disagreement), self._n(c.flip_rate))
                for c in self.result.copied_share
            ]
            yield _table(("share of pairs copied", "d", "flip rate ε"), rows, right=(0, 1, 2))
        if self.result.reweighted:
            yield "## Repeats weighted to the make-up of the file"
            made = [
                (
                    _code(r.by),
                    self._n(r.estimate),
                    self._n(r.shift),
                    self._n(r.cramers_v, 2),
                    words.p_value(r.p_value),
                )
                for r in self.result.reweighted
            ]
            yield _table(("by", "d", "shift", "Cramér's V", "same make-up?"), made, right=(1, 2, 3, 4))

    def conflicts(self) -> Iterator[str]:
        groups = self.result.conflicts
        if not groups:
            return
        yield "## Conflicts"
        shown = groups[:_CONFLICTS_SHOWN]
        total = max(self.result.repeats.conflicts, len(groups))
        yield f"The hardest {len(shown)} of {words.integer(total)}; `--conflicts FILE` writes all of them."
        rows = [self._conflict(group) for group in shown]
        yield _table(("item", "labels", "d", "rows"), rows, right=(2,))

    def _n(self, value: float | None, digits: int | None = None) -> str:
        return words.number(value, self.digits if digits is None else digits)

    def _breakdown(self, part: Breakdown) -> tuple[str, ...]:
        n = words.integer
        limits = words.interval(part, self.digits)
        return (_code(part.value), n(part.items), n(part.conflicts), self._n(part.estimate), limits)

    def _conflict(self, group: ConflictGroup) -> tuple[str, ...]:
        labels = ", ".join(
            f"{_code(label)} × {words.integer(count)}" for label, count in group.counts.items()
        )
        rows = ", ".join(str(row.row) for row in group.rows[:10]) + (", …" if len(group.rows) > 10 else "")
        return " ".join(_code(part) for part in group.item), labels, self._n(group.disagreement), rows


def _table(head: Iterable[str], rows: Iterable[Iterable[str]], *, right: Iterable[int] = ()) -> str:
    names, numeric = list(head), set(right)
    rule = ["---:" if index in numeric else ":---" for index in range(len(names))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (names, rule, *map(list, rows)))


def _code(text: str) -> str:
    """A piece of the audited file as a code span, cut after 200 characters."""
    shown = words.visible(text[: _LONGEST + 1], one_line=True)
    if len(shown) > _LONGEST:
        shown = shown[:_LONGEST] + "…"
    if not shown:
        return "*(empty)*"
    if not re.search(r"[`|\\\n]|^\s|\s$", shown):
        return f"`{shown}`"
    return f"<code>{_CODE_MARKUP.sub(_reference, shown)}</code>"


def _cell(text: str) -> str:
    """Words in a table or a line, where nothing starts a block."""
    return _MARKUP.sub(_reference, words.visible(text, one_line=True).strip())


def _prose(sentence: str) -> str:
    """A sentence in which nothing is markup, links to anyone or starts a block."""
    shown = words.visible(sentence, one_line=True).strip()
    start = _reference(shown[0]) if _BLOCK_START.match(shown) else shown[:1]
    return (
        _MARKUP.sub(_reference, shown) if start == shown[:1] else start + _MARKUP.sub(_reference, shown[1:])
    )


def _reference(found: re.Match[str] | str) -> str:
    return f"&#{ord(found if isinstance(found, str) else found.group())};"
