"""What a report is made of, before any format: sections with tables, key figures, alarms, methods, settings.

Names and heads of a table, and the ``source`` of a page, may be text of the audited file: each format escapes them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from audit import render_words as words
from audit.render_methods import Method
from audit.results import Alarm, Estimate
from audit.results_base import RunSettings

__all__ = [
    "Figure",
    "Page",
    "Quote",
    "Row",
    "Section",
    "SectionTable",
    "item_text",
    "numeric_columns",
    "settings_rows",
    "with_limits",
]

#: Text that stands at the right as numbers do: a figure or a range, alone or with its limits in brackets.
_ONE = r"[<>≤≥±+−-]?\s?[\d.,]+(?:e[+−-]?\d+)?\s?%?"
_FIGURE = re.compile(rf"{_ONE}(?: to {_ONE})?(?:\s?\((?:{_ONE}|{_ONE} to {_ONE})\))?")


@dataclass(frozen=True, kw_only=True)
class Row:
    """Cells of a table: ``names`` come from the audited file, ``values`` are numbers and plain words.

    A report that can draw shows ``drawn`` as a dot with its interval beside them, or ``share`` (0 to 1) as a bar.
    """

    names: tuple[str, ...] = ()
    values: tuple[str, ...]
    drawn: Estimate | None = None
    share: float | None = None


@dataclass(frozen=True, kw_only=True)
class SectionTable:
    """A table: its head has a word for each name and value of a row.

    ``picture`` says what is drawn beside it, with a dashed line at ``reference``.
    """

    head: tuple[str, ...]
    rows: tuple[Row, ...]
    picture: str = "d with its interval"
    reference: float | None = None


@dataclass(frozen=True, kw_only=True)
class Quote:
    """Texts of the file set under one another, each behind its labels; ``head`` is plain words."""

    head: str
    parts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Section:
    """One part of a report. ``level`` 3 belongs to the section before it; ``quotes`` stand last."""

    anchor: str
    title: str
    sentences: tuple[str, ...] = ()
    tables: tuple[SectionTable, ...] = ()
    quotes: tuple[Quote, ...] = ()
    level: Literal[2, 3] = 2


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A key figure: what it is, its value, and small print under it."""

    name: str
    value: str
    fine: str = ""


@dataclass(frozen=True, kw_only=True)
class Page:
    """A report of its own: ``kicker`` and ``source`` say of what, ``headline`` what was found.

    ``caution`` is what the numbers cannot show; ``settings`` what a second run needs.
    """

    kicker: str
    source: str
    headline: str
    steps: tuple[str, ...] = ()
    figures: tuple[Figure, ...]
    sentences: tuple[str, ...] = ()
    caution: str
    sections: tuple[Section, ...]
    alarms: tuple[Alarm, ...] = ()
    methods: tuple[Method, ...]
    settings: tuple[tuple[str, str], ...]
    version: str


def numeric_columns(table: SectionTable) -> tuple[bool, ...]:
    """For each column but the first whether it holds figures only, such as ``12`` or ``0.061 (0.03 to 0.09)``."""
    names = len(table.rows[0].names) if table.rows else 0
    columns = [
        [row.values[place] for row in table.rows if row.values[place] not in ("", "–", "-")]
        for place in range(len(table.head) - names)
    ]
    numeric = [bool(cells) and all(map(_FIGURE.fullmatch, cells)) for cells in columns]
    return (False, *([False] * names + numeric)[1:])


def item_text(parts: Sequence[str], most: int = 240) -> str:
    """The columns of an item in one text, each cut so that all are seen."""
    each = most // max(len(parts), 1)
    return " · ".join(part if len(part) <= each else f"{part[:each]}…" for part in parts)


def with_limits(part: Estimate, digits: int = 3) -> str:
    """``0.181 (0.142 to 0.224)``; without the brackets where there is no interval, – where there is no number."""
    limits = words.interval(part, digits)
    return words.number(part.estimate, digits) + (f" ({limits})" if limits else "")


def settings_rows(settings: RunSettings) -> tuple[tuple[str, str], ...]:
    """Files, columns and options as rows; options that were not given are left out."""
    rows = [
        ("file" if len(settings.sources) == 1 else "files", ", ".join(settings.sources)),
        ("item", ", ".join(name or "(empty)" for name in settings.item)),
        ("label", ", ".join(dict.fromkeys(settings.labels))),
        *words.figures(
            {name: value for name, value in settings.options.items() if value not in (None, (), "")}
        ),
        ("label-audit", settings.version),
    ]
    return tuple((name, words.visible(value, one_line=True)) for name, value in rows if value)
