"""The audit as one self-contained HTML file: no request, no font, no script from elsewhere.

Safety. Every value goes through Jinja2's autoescape; the conflicts are JSON in a data block in which ``<``,
``>`` and ``&`` are written as escapes, and the page's script writes them as text nodes only. A content security
policy allows just the one style sheet and the one script whose hashes it names.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup, escape

from audit import charts
from audit import render_words as words
from audit.render_band import band_rows, band_sentences, band_that_counts
from audit.render_beyond import sections
from audit.render_methods import METHODS, SHARED_MISTAKES
from audit.render_page import Page, Row, Section, SectionTable, numeric_columns
from audit.results import AuditResult, Breakdown, ConflictGroup

__all__ = ["html", "page_html"]

_LOADER = jinja2.PackageLoader("audit", "templates")
_STATIC_CONFLICTS, _STATIC_TEXT, _TITLE = 25, 2_000, 240
_VALUES_OPEN = 12
#: Characters of one text that stay once the budget of embedded text is spent.
_CUT = 2_000
_OPTION = r"--[a-z][a-z-]*(?: (?:[A-Z]+\b|\d[\d.]*\d|\d))?"
_COMMAND = re.compile(
    rf"\baudit (?:dupes|plan|ceiling)\b(?: (?:[A-Z]{{2,}}\b|[^\s&]*\.\w+))?(?: {_OPTION})*|(?<![\w-]){_OPTION}"
)


def html(result: AuditResult, *, more: Sequence[Section] = (), embedded: int = 25_000_000) -> str:
    """``result`` as a complete HTML document.

    Parameters
    ----------
    more:
        Sections of a kind of labels, shown after the band.
    embedded:
        Characters of conflict text to embed whole. Texts beyond are cut after 2,000 characters and say so.
    """
    sentences = band_sentences(result)
    counting = band_that_counts(result)
    return _render(
        "report.html",
        r=result,
        digits=words.places(result),
        kicker="Label audit of",
        title=words.source_name(result),
        version=result.settings.version,
        band=Markup(
            charts.band(
                result.ceiling,
                digits=words.places(result),
                several=counting is not None and counting.source == "several labels",
            )
        ),
        data_sentence=words.data_sentence(result),
        repeats_sentence=words.repeats_sentence(result),
        class_sentence=words.CLASS_SENTENCE,
        band_sentences=sentences,
        bands=band_rows(result),
        more=more,
        sections=sections(result),
        estimates=words.estimate_rows(result),
        reasons=words.missing_reasons(result, told=sentences),
        shared_mistakes=SHARED_MISTAKES,
        methods=METHODS,
        settings=words.settings_rows(result),
        columns=[_column(result, name, parts) for name, parts in result.by.items()],
        conflicts=[_static(result, group) for group in result.conflicts[:_STATIC_CONFLICTS]],
        conflict_data=_data_block(_conflict_data(result, embedded)) if result.conflicts else "",
    )


def page_html(page: Page) -> str:
    """A report of its own as a complete HTML document."""
    return _render(
        "page.html",
        page=page,
        kicker=page.kicker,
        title=_clip(_line(page.source), _TITLE),
        version=page.version,
    )


def _render(template: str, **context: Any) -> str:
    css, script = _asset("report.css"), _asset("report.js")
    return (
        _environment()
        .get_template(template)
        .render(css=Markup(css), script=Markup(script), policy=_policy(css, script), **context)
    )


@cache
def _asset(name: str) -> str:
    return _LOADER.get_source(_environment(), name)[0]


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=_LOADER,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "num": words.number,
        "count": words.integer,
        "limits": words.interval,
        "percent": words.percent,
        "p": words.p_value,
        "figures": words.figures,
        "plain": words.plain_name,
        "message": words.alarm_message,
        "seen": words.visible,
        "bar": lambda share: Markup(charts.bar(share)),
        "sentence": _sentence,
        "indices": _indices,
        "laid": _laid,
        "short": lambda text, most=_TITLE: _clip(words.visible(text[: most + 1], one_line=True), most),
    }
    return environment


@dataclass(frozen=True)
class _Laid:
    """A section's table: its pictures, the axis over them, and which rows are folded away."""

    axis: Markup | None
    open_rows: tuple[tuple[Row, Markup], ...]
    more_rows: tuple[tuple[Row, Markup], ...]
    numeric: tuple[bool, ...]
    drawn: bool


def _laid(table: SectionTable) -> _Laid:
    parts = [row.drawn for row in table.rows]
    known = any(part and part.estimate is not None for part in parts)
    axis = None
    if known:
        ends = [end for part in parts if part for end in (part.estimate, part.low, part.high)]
        axis = charts.axis_for([*ends, table.reference], most_ticks=5)
    pictures = [_picture(row, axis, table.reference) for row in table.rows]
    rows = tuple(zip(table.rows, pictures, strict=True))
    cut = len(rows) if len(rows) <= _VALUES_OPEN + 2 else _VALUES_OPEN
    return _Laid(
        axis=Markup(charts.whisker_axis(axis)) if axis else None, open_rows=rows[:cut], more_rows=rows[cut:],
        numeric=numeric_columns(table), drawn=known or any(row.share is not None for row in table.rows),
    )  # fmt: skip


def _picture(row: Row, axis: charts.Axis | None, reference: float | None) -> Markup:
    if row.share is not None:
        return Markup(charts.bar(row.share))
    part = row.drawn
    if part is None or axis is None:
        return Markup()
    return Markup(charts.whisker(axis, part.estimate, part.low, part.high, reference=reference))


def _policy(css: str, script: str) -> str:
    style_hash, script_hash = _hash(css), _hash(script)
    return (
        f"default-src 'none'; style-src '{style_hash}'; script-src '{script_hash}'; img-src data:; "
        f"base-uri 'none'; form-action 'none'"
    )


def _hash(content: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def _sentence(text: str) -> Markup:
    """A sentence with its commands and options set as code and without unseen characters."""
    safe = str(escape(words.visible(text, one_line=True)))
    return Markup(_COMMAND.sub(r"<code>\g<0></code>", safe))


def _indices(text: str) -> Markup:
    """Text with the indices of its formulas (after ``_``) set low."""
    return Markup(re.sub(r"_(\w+)", r"<sub>\1</sub>", str(escape(text))))


@dataclass(frozen=True)
class _Column:
    """One section of "disagreement by": its title, sentences and rows, each with its drawing."""

    title: str
    sentences: tuple[str, ...]
    axis: Markup
    open_rows: tuple[tuple[Breakdown, Markup], ...]
    more_rows: tuple[tuple[Breakdown, Markup], ...]
    shares: bool


def _column(result: AuditResult, name: str, parts: Sequence[Breakdown]) -> _Column:
    overall = result.disagreement.estimate
    axis = charts.axis_for([overall, *(p.high for p in parts), *(p.estimate for p in parts)], most_ticks=5)
    comparison = result.comparisons.get(name)
    rows = tuple(
        (p, Markup(charts.whisker(axis, p.estimate, p.low, p.high, reference=overall))) for p in parts
    )
    cut = len(rows) if len(rows) <= _VALUES_OPEN + 2 else _VALUES_OPEN
    sentences: tuple[str, ...] = ()
    if comparison is not None:
        level = result.disagreement.level
        sentences = words.comparison_sentences(comparison, level=level, digits=words.places(result))
    return _Column(
        title=words.column_title(name),
        sentences=sentences,
        axis=Markup(charts.whisker_axis(axis)),
        open_rows=rows[:cut],
        more_rows=rows[cut:],
        shares=any(p.share is not None for p in parts),
    )


def _static(result: AuditResult, group: ConflictGroup) -> dict[str, Any]:
    """A conflict as the page shows it before, or without, its script."""
    names = list(dict.fromkeys(name for row in group.rows for name in row.details))
    return {
        "title": _clip(
            " · ".join(words.visible(part[:_TITLE], one_line=True) for part in group.item), _TITLE
        ),
        "labels": [(_line(label), count) for label, count in group.counts.items()],
        "d": group.disagreement,
        "fields": [
            (_line(name), _clip(words.visible(part[: _STATIC_TEXT + 1]), _STATIC_TEXT))
            for name, part in _named(result, group.item)
        ],
        "names": [_line(name) for name in names],
        "rows": [
            (
                row.row,
                _line(row.label),
                [_detail(row.details.get(name)) for name in names],
            )
            for row in group.rows
        ],
    }


def _detail(value: str | None) -> str:
    return "–" if value is None else _clip(words.visible(value[: _TITLE + 1]), _TITLE)


def _named(result: AuditResult, item: Sequence[str]) -> Iterable[tuple[str, str]]:
    names = result.data.item if len(result.data.item) == len(item) else ("item",) * len(item)
    return zip(names, item, strict=True)


def _clip(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _conflict_data(result: AuditResult, budget: int) -> dict[str, Any]:
    left = budget

    def embed(value: str | None) -> str | list[Any] | None:
        """The text; or, with the budget spent, its beginning and its full length."""
        nonlocal left
        if value is None:
            return None
        if len(value) > max(left, _CUT):
            return [words.visible(value[:_CUT]), len(value)]
        left -= len(value)
        return words.visible(value)

    def one(group: ConflictGroup) -> dict[str, Any]:
        return {
            "item": [[_line(name), embed(part)] for name, part in _named(result, group.item)],
            "labels": [[_line(label), count] for label, count in group.counts.items()],
            "d": words.number(group.disagreement),
            "rows": [
                [
                    row.row,
                    _line(row.label),
                    [[_line(name), embed(value)] for name, value in row.details.items()],
                ]
                for row in group.rows
            ],
        }

    groups = [one(group) for group in result.conflicts]
    return {"total": max(result.repeats.conflicts, len(groups)), "groups": groups}


def _line(text: str) -> str:
    return words.visible(text, one_line=True)


def _data_block(value: dict[str, Any]) -> Markup:
    """``value`` as JSON that no HTML parser can leave: ``<``, ``>`` and ``&`` are written as escapes."""
    dumped = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        dumped = dumped.replace(character, f"\\u{ord(character):04x}")
    return Markup(dumped)
