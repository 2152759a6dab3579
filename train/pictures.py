"""Line and dot charts as inline SVG: no script, no plotting library, light and dark by the style sheet.

A chart has a view box, so it fits any width; text sizes, colours and dashes are classes of the page's style sheet
(``templates/pictures.css``), and :func:`svg_file` puts the same rules into a file that stands alone. Every text
that comes from outside is escaped. Long lines are thinned to what can be seen: in each narrow strip of the
picture the first, last, lowest and highest point stay (Jugel et al., PVLDB 7 (2014) 797-808), so no spike is lost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import jinja2
import numpy as np

from audit.charts import Axis
from audit.errors import ArgumentError
from train import pictures_curves as curves
from train import pictures_draw as draw
from train.pictures_draw import INNER, LEFT, PLOT, RIGHT, WIDTH, Line, Rule

__all__ = ["Dot", "Line", "Rule", "chart", "dots", "style", "svg_file"]

#: Height of one row of :func:`dots`.
_ROW = 36.0


@dataclass(frozen=True)
class Dot:
    """One row of :func:`dots`: a value, the ends of its interval, and a short text at the right."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    note: str = ""


def chart(
    title: str,
    lines: Sequence[Line],
    *,
    x_label: str,
    y_label: str,
    x_range: tuple[float, float] | None = None,
    y_range: tuple[float, float] | None = None,
    rules: Sequence[Rule] = (),
) -> str:
    """The lines over common axes, as one ``<svg>`` element with its legend.

    Without a range an axis covers the values, the ends of intervals and the rules; what lies outside a given
    range is cut off. A chart without one finite point says so in place of its lines.

    Raises
    ------
    ArgumentError
        A line's parts differ in length, or a range is empty.
    """
    series = [draw.series_of(line) for line in lines]
    room = 0.03 if any(line.kind == "points" for line in lines) else 0.0
    x_rules = [r for r in rules if r.axis == "x"]
    x_axis = draw.axis_of(x_range, [s.x for s in series], x_rules, "x_range", room=room)
    shown = [part for s in series for part in (s.y, s.low, s.high)]
    y_axis = draw.axis_of(y_range, shown, [r for r in rules if r.axis == "y"], "y_range")
    heading, top = draw.heading(title, y_label)
    frame = draw.Frame(x_axis, y_axis, top)
    drawn = "".join(part for place, s in enumerate(series) for part in curves.curve(frame, s, place))
    marks = [part for place, s in enumerate(series) for part in curves.marks(frame, s, place)]
    if not any(np.isfinite(s.x * s.y).any() for s in series):
        marks.append(draw.text("label", LEFT + INNER / 2, top + PLOT / 2, "no values to draw", "middle"))
    keys = [curves.line_key(line, place) for place, line in enumerate(lines)]
    keys += [curves.rule_key(rule, place) for place, rule in enumerate(rules)]
    legend, bottom = curves.legend(keys, top + PLOT + 60)
    # a nested svg cuts off what runs out of the chart, and needs no id that two charts could share
    box = f"{LEFT - 2:g} {top - 2:g} {INNER + 4:g} {PLOT + 4:g}"
    x, y, width, height = box.split()
    clip = f'<svg x="{x}" y="{y}" width="{width}" height="{height}" viewBox="{box}">{drawn}</svg>'
    under = [*heading, *curves.bands(frame, rules), *frame.grid(x_label), *curves.rule_lines(frame, rules)]
    parts = [*under, clip, *marks, *legend]
    return draw.svg(title, draw.described(series, x_label, y_label), bottom, parts)


def dots(
    title: str,
    rows: Sequence[Dot],
    *,
    x_label: str,
    x_range: tuple[float, float] | None = None,
    rules: Sequence[Rule] = (),
) -> str:
    """One dot and its interval per row, its name above it: for scores and differences side by side.

    Rules belong to the x axis. Without a range the axis covers the values, the intervals and the rules; what lies
    outside a given range is cut off.
    """
    rules = [Rule(rule.value, rule.name, "x", rule.to) for rule in rules]
    values = [draw.floats([row.value, row.low, row.high]) for row in rows]
    axis = draw.axis_of(x_range, values, rules, "x_range")
    heading, top = draw.heading(title, "")
    nothing = Axis(start=0.0, stop=1.0, ticks=(), digits=0)
    frame = draw.Frame(axis, nothing, top, left=RIGHT, height=_ROW * max(len(rows), 1) + 4)
    parts = [*heading, *curves.bands(frame, rules), *frame.grid(x_label), *curves.rule_lines(frame, rules)]
    told = []
    for place, (row, (value, low, high)) in enumerate(zip(rows, values, strict=True)):
        middle = top + _ROW * place + 28
        parts.append(
            draw.text("row", RIGHT, middle - 11, draw.cut(row.name, 34 if row.note else 58), "start")
        )
        if row.note:
            parts.append(draw.text("note", WIDTH - RIGHT, middle - 11, draw.cut(row.note, 26), "end"))
        parts += _whisker(frame, value, low, high, middle)
        told.append(f"{row.name}: {draw.told(value)} ({draw.told(low)} to {draw.told(high)})")
    keys = [curves.rule_key(rule, place) for place, rule in enumerate(rules)]
    legend, bottom = curves.legend(keys, top + frame.height + 60)
    return draw.svg(title, f"{x_label}. {'; '.join(told)}", bottom, [*parts, *legend])


def _whisker(frame: draw.Frame, value: float, low: float, high: float, y: float) -> list[str]:
    start, stop = frame.x_axis.start, frame.x_axis.stop
    parts = []
    if math.isfinite(low * high) and high >= start and low <= stop:
        ends = frame.x(max(low, start)), frame.x(min(high, stop))
        parts.append(f'<path class="whisker s0" d="M{ends[0]:.1f} {y:.1f}H{ends[1]:.1f}"/>')
    if start <= value <= stop:
        parts.append(f'<circle class="dot s0" cx="{frame.x(value):.1f}" cy="{y:.1f}" r="4"/>')
    return parts


def svg_file(svg: str) -> str:
    """A chart as a file of its own, for a README or the docs: its styles inside, light and dark by the reader's."""
    if not svg.startswith("<svg ") or svg.count("</desc>") != 1:
        raise ArgumentError("svg_file takes what chart or dots gave, and nothing else: draw the chart first")
    head, body = svg.split("</desc>", 1)
    head = head.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    paper = '<rect class="paper" width="100%" height="100%"/>'
    return f"{head}</desc><style>{style(alone=True)}</style>{paper}{body}\n"


def style(*, alone: bool = False) -> str:
    """The rules of the charts' classes; ``alone`` adds the colours that a page has from its own style sheet."""
    loader, environment = jinja2.PackageLoader("train", "templates"), jinja2.Environment(autoescape=True)
    names = ("alone.css", "pictures.css") if alone else ("pictures.css",)
    return "".join(loader.get_source(environment, name)[0] for name in names)
