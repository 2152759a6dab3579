"""One self-contained HTML page out of words, tables and pictures: the report of every ``audit train`` command.

No script, no request, no font. Every text goes through Jinja2's autoescape with its unseen characters spelled out;
the content security policy allows the one style sheet by its hash and nothing else. The look is the audit
report's (its style sheet is reused), so all pages of the project belong together.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import jinja2
from markupsafe import Markup

from audit import version
from audit.errors import ArgumentError
from audit.render_words import visible
from train.pictures import style
from train.tables import Cell
from train.tables import shown as shown_cell

__all__ = ["Cell", "Heading", "Part", "Picture", "Table", "Words", "page"]

#: Text that stands at the right as numbers do: a figure, or one with its limits in brackets.
_FIGURES = re.compile(r"[<>≤≥±+−-]?\s?[\d.,]+\s?%?(\s?\([^()a-z]*( to [^()a-z]*)?\))?")


@dataclass(frozen=True)
class Words:
    """Text; an empty line begins a new paragraph. ``tone`` marks a verdict, a caution or small print."""

    text: str
    tone: Literal["plain", "verdict", "caution", "fine"] = "plain"


@dataclass(frozen=True)
class Heading:
    """The heading of a section; three or more make a list of contents."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows of as many cells as there are columns; the first cell names its row.

    Numbers stand at the right: whole ones with thousands separated, others with three decimals. Give a text where
    another form is wanted. None and NaN are shown as –.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Picture:
    """An SVG made by :mod:`train.pictures`, which goes into the page as it is, and a caption."""

    svg: str
    caption: str = ""


Part = Words | Heading | Table | Picture


def page(title: str, parts: Sequence[Part]) -> str:
    """The parts under each other as a complete HTML document.

    Raises
    ------
    ArgumentError
        A table's row has not as many cells as there are columns, or a picture is no SVG element.
    """
    css = _style()
    shown = [_shown(part, place) for place, part in enumerate(parts)]
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=_line(title),
            css=Markup(css),
            policy=_policy(css),
            version=version.__version__,
            parts=shown,
            contents=[(part["text"], part["target"]) for part in shown if part["kind"] == "heading"],
        )
    )


def _shown(part: Part, place: int) -> dict[str, Any]:
    """What the template needs of a part."""
    if isinstance(part, Heading):
        return {"kind": "heading", "text": _line(part.text), "target": f"part-{place}"}
    if isinstance(part, Words):
        paragraphs = [" ".join(visible(p).split()) for p in part.text.replace("\r\n", "\n").split("\n\n")]
        tone = "" if part.tone == "plain" else part.tone
        return {"kind": "words", "paragraphs": [p for p in paragraphs if p], "tone": tone}
    if isinstance(part, Picture):
        if not part.svg.startswith("<svg "):
            raise ArgumentError("a picture is an <svg> element: make it with train.pictures.chart or dots")
        return {"kind": "picture", "svg": Markup(part.svg), "caption": _line(part.caption)}
    return _table(part)


def _table(table: Table) -> dict[str, Any]:
    width = len(table.columns)
    for number, row in enumerate(table.rows, 1):
        if len(row) != width:
            raise ArgumentError(
                f"table {table.caption!r}: row {number} has {len(row)} cells for {width} columns; give one for each"
            )
    right = [_is_numbers([row[i] for row in table.rows]) for i in range(width)]
    return {
        "kind": "table",
        "caption": _line(table.caption),
        "head": [(_line(name), side) for name, side in zip(table.columns, right, strict=True)],
        "rows": [
            [(shown_cell(cell), side) for cell, side in zip(row, right, strict=True)] for row in table.rows
        ],
    }


def _is_numbers(cells: Sequence[Cell]) -> bool:
    """Whether a column holds figures, as numbers or as text such as ``+0.061 (0.03 to 0.09)``."""
    known = [cell for cell in cells if cell is not None and cell not in ("", "–")]
    return bool(known) and all(_is_number(cell) for cell in known)


def _is_number(cell: Cell) -> bool:
    if isinstance(cell, str):
        return _FIGURES.fullmatch(cell) is not None
    return not isinstance(cell, bool)


def _line(text: str) -> str:
    return visible(text, one_line=True)


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("train", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _style() -> str:
    base = jinja2.PackageLoader("audit", "templates").get_source(_environment(), "report.css")[0]
    own = jinja2.PackageLoader("train", "templates").get_source(_environment(), "page.css")[0]
    return f"{base}\n{own}\n{style()}"


def _policy(css: str) -> str:
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
