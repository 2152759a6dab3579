"""The audit as text for a terminal: the verdict first, about forty lines, numbers aligned, 100 columns.

Colours are written only when asked for. Text of the audited file cannot move the cursor, recolour the screen
or turn the reading direction: see :func:`audit.render_words.visible`.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Sequence

from audit import render_words as words
from audit.render_band import band_rows
from audit.render_beyond import metric_line, sections
from audit.render_methods import SHARED_MISTAKES
from audit.render_page import Page, Section, SectionTable, numeric_columns
from audit.results import Alarm, AuditResult, Breakdown

__all__ = ["page_text", "text"]

_STYLES = {"bold": "1", "faint": "2", "stop": "1;31", "warning": "1;33", "note": "1;34"}
_MARKS = {"stop": "STOP", "warning": "WARNING", "note": "NOTE"}
_COLUMNS_SHOWN, _VALUES_SHOWN, _NAME_WIDTH = 3, 5, 30
_ROWS_SHOWN, _CELL_WIDTH, _QUOTES_SHOWN = 20, 40, 3
_ELSEWHERE = "see --html or --format json"


def text(result: AuditResult, *, more: Sequence[Section] = (), colour: bool = False, width: int = 100) -> str:
    """``result`` as plain text, ending in a line end.

    Parameters
    ----------
    more:
        Sections of a kind of labels, which follow the estimates.
    colour:
        Mark headings and alarms with ANSI colours.
    width:
        Columns to wrap at, at least 60.
    """
    page = _Page(result, colour=colour, width=max(width, 60))
    parts = (
        page.verdict(), page.data(), page.estimates(), page.sections(more), page.repeats(), page.columns(),
        page.sections([part for part in sections(result) if part.anchor != "metrics"]), page.alarms(), page.close(),
    )  # fmt: skip
    return "\n\n".join("\n".join(lines) for lines in map(list, parts) if lines) + "\n"


def page_text(page: Page, *, colour: bool = False, width: int = 100) -> str:
    """A report of its own as plain text, as :func:`text` writes one."""
    writer = _Writer(colour=colour, width=max(width, 60))
    parts = (
        writer.head(page.headline, page.steps),
        *(writer.prose(sentence) for sentence in page.sentences),
        *(writer.sections((section,)) for section in page.sections),
        writer.told(page.alarms),
        writer.prose(page.caution, style="faint"),
    )
    return "\n\n".join("\n".join(lines) for lines in map(list, parts) if lines) + "\n"


class _Writer:
    """Lines of plain text that fit into a width."""

    def __init__(self, *, colour: bool, width: int) -> None:
        self.colour = colour
        self.width = width

    def head(self, headline: str, steps: Sequence[str]) -> Iterator[str]:
        yield from self._wrap(headline, style="bold")
        for step in steps:
            yield from self._wrap(step, first="→ ", rest="  ")

    def prose(self, sentence: str, *, style: str = "") -> Iterator[str]:
        return self._wrap(sentence, style=style)

    def sections(self, parts: Sequence[Section]) -> Iterator[str]:
        for section in parts:
            yield self._style(section.title, "bold")
            for sentence in section.sentences:
                yield from self._wrap(sentence, first="  ", rest="  ")
            for table in section.tables:
                yield from self._table(table)
            for quote in section.quotes[:_QUOTES_SHOWN]:
                yield from self._wrap(quote.head, first="  ", rest="  ", style="faint")
                for labels, told in quote.parts:
                    yield from self._wrap(f"{_shown(labels)}: {told}", first="    ", rest="      ")
            if len(section.quotes) > _QUOTES_SHOWN:
                yield f"  … {words.integer(len(section.quotes) - _QUOTES_SHOWN)} more: {_ELSEWHERE}"

    def _table(self, table: SectionTable) -> Iterator[str]:
        cells = [
            [
                *(_shown(name) for name in row.names),
                *(words.visible(value, one_line=True) for value in row.values),
            ]
            for row in table.rows[:_ROWS_SHOWN]
        ]
        head = [words.visible(word, one_line=True) for word in table.head]
        widths = [
            min(max(map(_columns, column)), _CELL_WIDTH if place < len(head) - 1 else self.width)
            for place, column in enumerate(zip(head, *cells, strict=True))
        ]
        right = numeric_columns(table)
        for number, line in enumerate([head, *cells]):
            told = "  ".join(map(self._fit, line, widths, right)).rstrip()
            yield self._style(f"  {told}", "" if number else "faint")
        if len(table.rows) > _ROWS_SHOWN:
            yield f"  … {words.integer(len(table.rows) - _ROWS_SHOWN)} more: {_ELSEWHERE}"

    def told(self, alarms: Sequence[Alarm]) -> Iterator[str]:
        for alarm in alarms:
            yield from self._alarm(alarm)

    def _alarm(self, alarm: Alarm) -> Iterator[str]:
        mark = _MARKS.get(alarm.severity, alarm.severity.upper())
        lines = list(self._wrap(f"{mark} {alarm.code}: {words.alarm_message(alarm)}", rest="  "))
        lines[0] = self._style(mark, alarm.severity) + lines[0][len(mark) :]
        yield from lines
        if alarm.action:
            yield from self._wrap(alarm.action, first="  → ", rest="    ")

    def _wrap(self, sentence: str, *, first: str = "", rest: str = "", style: str = "") -> Iterator[str]:
        clean = words.visible(sentence, one_line=True)
        lines = textwrap.wrap(
            clean, self.width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
        )  # fmt: skip
        return (self._style(line, style) for line in lines)

    def _style(self, line: str, style: str) -> str:
        code = _STYLES.get(style) if self.colour else None
        return f"\x1b[{code}m{line}\x1b[0m" if code else line

    @staticmethod
    def _fit(name: str, width: int, right: bool = False) -> str:
        """``name`` cut or padded to ``width`` columns of the terminal; wide characters take two."""
        if _columns(name) > width:
            kept, used = "", 0
            for character in name:
                used += _columns(character)
                if used > width - 1:
                    break
                kept += character
            name = f"{kept}…"
        space = " " * (width - _columns(name))
        return space + name if right else name + space


class _Page(_Writer):
    def __init__(self, result: AuditResult, *, colour: bool, width: int) -> None:
        super().__init__(colour=colour, width=width)
        self.result = result
        self.digits = words.places(result)

    def verdict(self) -> Iterator[str]:
        yield from self.head(self.result.verdict.headline, self.result.verdict.next_steps)

    def data(self) -> Iterator[str]:
        yield from self._wrap(words.data_sentence(self.result))
        if self.result.data.notes:
            yield from self._wrap("; ".join(self.result.data.notes), first="  ", rest="  ")

    def estimates(self) -> Iterator[str]:
        result, digits = self.result, self.digits
        level = words.percent(self._level)
        yield self._style(f"{'':<40}{'estimate':>16}   {level} interval", "faint")
        for number, band in enumerate(band_rows(result)):
            name = f"{'ceiling' if number else 'accuracy ceiling'}, {band.name}"
            yield self._style(f"{name:<40}{band.ends:>16}   {band.limits}".rstrip(), "" if number else "bold")
        for name, part in words.estimate_rows(result):
            limits = words.interval(part, digits)
            yield f"{name:<40}{words.number(part.estimate, digits):>16}   {limits}".rstrip()
        if line := metric_line(result):
            yield from self._wrap(f"other metrics: {line}", first="  ", rest="  ")
        told = (*result.verdict.next_steps, *(alarm.message for alarm in result.alarms))
        for reason in words.missing_reasons(result, told=told):
            yield from self._wrap(reason, first="– ", rest="  ")

    def repeats(self) -> Iterator[str]:
        found, digits, n = self.result.repeats, self.digits, words.integer
        yield from self._wrap(words.repeats_sentence(self.result))
        if found.sizes:
            sizes = [
                f"{n(s.size)} (items {n(s.items)}, d {words.number(s.estimate, digits)})" for s in found.sizes
            ]
            yield from self._wrap(f"labels per item: {_some(sizes, 4, '; ')}", first="  ", rest="  ")
        if found.ladder:
            rungs = [
                f"{r.level} {words.number(r.estimate, digits)} "
                f"(items {n(r.items)}{', used' * (r.level == found.normalise)})"
                for r in found.ladder
            ]
            yield from self._wrap(f"d by normalisation: {'; '.join(rungs)}", first="  ", rest="  ")

    def columns(self) -> Iterator[str]:
        by = self.result.by
        # The class is always among the columns shown.
        others = [column for column in by if column != "class"]
        shown = [*others[: _COLUMNS_SHOWN - ("class" in by)], *(["class"] if "class" in by else [])]
        for column in shown:
            parts = by[column]
            name = self._fit(f"d by {words.column_title(column)}", _NAME_WIDTH + 4)
            head = f"{'items':>8}{'estimate':>10}   {words.percent(self._level)} interval" if parts else ""
            yield self._style(f"{name}{head}".rstrip(), "faint")
            yield from (self._breakdown(part) for part in parts[:_VALUES_SHOWN])
            if len(parts) > _VALUES_SHOWN:
                yield f"  … {words.integer(len(parts) - _VALUES_SHOWN)} more values: {_ELSEWHERE}"
            comparison = self.result.comparisons.get(column)
            if comparison is not None:
                for sentence in words.comparison_sentences(comparison, level=self._level, digits=self.digits):
                    yield from self._wrap(sentence, first="  ", rest="  ")
        rest = [words.column_title(column) for column in by if column not in shown]
        if rest:
            more = f"also by {_some(rest, 8, ', ')}: {_ELSEWHERE}"
            yield from self._wrap(more, first="  ", rest="  ")

    def alarms(self) -> Iterator[str]:
        yield from self.told(self.result.alarms)

    def close(self) -> Iterator[str]:
        yield from self._wrap(SHARED_MISTAKES, style="faint")

    @property
    def _level(self) -> float:
        return self.result.disagreement.level

    def _breakdown(self, part: Breakdown) -> str:
        name = self._fit(words.visible(part.value, one_line=True) or "(empty)", _NAME_WIDTH)
        estimate = words.number(part.estimate, self.digits)
        return f"  {name}  {words.integer(part.items):>8}{estimate:>10}   {words.interval(part, self.digits)}".rstrip()


def _shown(name: str) -> str:
    return words.visible(name[: _CELL_WIDTH + 1], one_line=True) or "(empty)"


def _columns(name: str) -> int:
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in name
    )


def _some(parts: Sequence[str], most: int, joint: str) -> str:
    return joint.join((*parts[:most], *([f"{len(parts) - most} more"] if len(parts) > most else [])))
