"""Charts of the HTML report as inline SVG, drawn in percentages of whatever width the page gives them.

No view box is used, so text keeps its size on a phone; colours and fonts are classes of the report's style
sheet. Everything written is numbers: no text of the audited file reaches an SVG.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from audit.results import Ceiling, Moments

__all__ = ["Axis", "axis_for", "band", "bar", "nice_axis", "whisker", "whisker_axis"]

#: Margin on both sides of every chart, in percent of its width.
_MARGIN = 2.0


@dataclass(frozen=True)
class Axis:
    """A linear axis from ``start`` to ``stop`` with its ticks; ``digits`` decimals tell the ticks apart."""

    start: float
    stop: float
    ticks: tuple[float, ...]
    digits: int

    def at(self, value: float) -> float:
        """Position of ``value`` in percent of the width, held inside the chart."""
        share = (value - self.start) / (self.stop - self.start)
        return _MARGIN + min(max(share, 0.0), 1.0) * (100.0 - 2.0 * _MARGIN)

    def tick_text(self, value: float) -> str:
        """The label of a tick."""
        plain = self.digits <= 9 and max(abs(self.start), abs(self.stop)) < 1e6
        return (f"{value:.{self.digits}f}" if plain else f"{value:.12g}").replace("-", "−")


def nice_axis(low: float, high: float, *, most_ticks: int = 6) -> Axis:
    """An axis that covers [low, high] and has at most ``most_ticks`` ticks at round values."""
    span = max(high - low, 1e-8 * max(abs(low), abs(high))) or 1e-9
    power = 10.0 ** math.floor(math.log10(span / most_ticks))
    step = next(m * power for m in (1.0, 2.0, 5.0, 10.0, 20.0) if _ticks(low, high, m * power) <= most_ticks)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    ticks = tuple(float(f"{index * step:.12g}") for index in range(first, max(last, first + 1) + 1))
    return Axis(start=ticks[0], stop=ticks[-1], ticks=ticks, digits=digits)


def _ticks(low: float, high: float, step: float) -> int:
    return math.ceil(high / step - 1e-9) - math.floor(low / step + 1e-9) + 1


def band(ceiling: Ceiling, *, digits: int, several: bool = False) -> str:
    """The band of the accuracy ceiling with its widened ends over an axis that ends at 1; "" without a band.

    ``several`` draws the band of three or more labels an item below that of pairs, as a thinner bar.
    """
    lower, upper, low, high = ceiling.lower, ceiling.upper, ceiling.low, ceiling.high
    if lower is None or upper is None:
        return ""
    low, high = lower if low is None else low, upper if high is None else high
    more = ceiling.moments if several else None
    least = low if more is None or more.low is None else min(low, more.low)
    axis = _axis_to_one(max(0.0, 1.0 - 1.45 * max(1.0 - least, 0.02)))
    x = {name: axis.at(value) for name, value in (("l", lower), ("u", upper), ("lo", low), ("hi", high))}
    # Labels that grow away from each other share a row; others would collide and stand in two.
    above = (34, 34) if _apart(x["l"], x["u"]) else (34, 14)
    below = (104, 104) if _apart(x["lo"], x["hi"]) else (104, 122)
    thin = [] if more is None else _thin(more, axis, below[1] + 12, digits)
    floor = below[1] + (46 if thin else 14)
    parts = [
        *thin,
        _rect("wide", x["lo"], x["hi"], 54, 24),
        _rect("band", x["l"], x["u"], 48, 36),
        *(_line("cap", x[end], x[end], 50, 82) for end in ("lo", "hi")),
        _line("lead", x["l"], x["l"], above[0] + 5, 48),
        _line("lead", x["u"], x["u"], above[1] + 5, 48),
        _line("lead", x["lo"], x["lo"], 82, below[0] - 11),
        _line("lead", x["hi"], x["hi"], 82, below[1] - 11),
        _label("end", x["l"], above[0], f"1 − d = {lower:.{digits}f}", toward="left"),
        _label("end", x["u"], above[1], f"1 − ε = {upper:.{digits}f}", toward="right"),
        _label("limit", x["lo"], below[0], f"{low:.{digits}f}", toward="left"),
        _label("limit", x["hi"], below[1], f"{high:.{digits}f}", toward="right"),
        _line("axis", axis.at(axis.start), axis.at(axis.stop), floor, floor),
    ]
    for tick in axis.ticks:
        parts.append(_line("axis", axis.at(tick), axis.at(tick), floor, floor + 5))
        parts.append(_text("tick", axis.at(tick), floor + 19, axis.tick_text(tick), "middle"))
    parts.append(_text("tick name", 50.0, floor + 38, "accuracy against these labels", "middle"))
    title = (
        f"Band of the accuracy ceiling from {lower:.{digits}f} to {upper:.{digits}f}, "
        f"with sampling error from {low:.{digits}f} to {high:.{digits}f}"
    )
    if more is not None and thin:
        title += f"; by up to {more.repeats} labels an item from {more.lower:.{digits}f} to {more.upper:.{digits}f}"
    return _svg("chart-band", floor + 44, parts, title=title)


def _thin(part: Moments, axis: Axis, top: float, digits: int) -> list[str]:
    """A bar for the band of several labels an item, with a line of words below it."""
    if part.lower is None or part.upper is None or part.low is None or part.high is None:
        return []
    x = [axis.at(value) for value in (part.low, part.lower, part.upper, part.high)]
    told = f"up to {part.repeats} labels an item: {part.lower:.{digits}f} to {part.upper:.{digits}f}"
    return [
        _rect("wide thin", x[0], x[3], top, 10),
        _rect("band thin", x[1], x[2], top, 10),
        _label("limit", x[2], top + 23, told, toward="left"),
    ]


def _axis_to_one(start: float) -> Axis:
    nice = nice_axis(start, 1.0)
    return Axis(start=start, stop=1.0, ticks=tuple(t for t in nice.ticks if t >= start), digits=nice.digits)


def _apart(left: float, right: float) -> bool:
    return _anchor(left, toward="left") == "end" and _anchor(right, toward="right") == "start"


def whisker(
    axis: Axis, estimate: float | None, low: float | None, high: float | None, *, reference: float | None
) -> str:
    """A dot with its interval, over a dashed line at ``reference``; the numbers stand in the table beside it."""
    parts = [_line("grid", axis.at(tick), axis.at(tick), "0", "100%") for tick in axis.ticks]
    if reference is not None:
        parts.append(_line("reference", axis.at(reference), axis.at(reference), "0", "100%"))
    if low is not None and high is not None:
        parts.append(_line("whisker", axis.at(low), axis.at(high), "50%", "50%"))
    if estimate is not None:
        parts.append(f'<circle class="dot" cx="{axis.at(estimate):.2f}%" cy="50%" r="4.5"/>')
    return _svg("chart-whisker", "100%", parts)


def whisker_axis(axis: Axis) -> str:
    """The tick labels over a column of whiskers: the ends, and the middle ones on wide screens."""
    ends = (axis.ticks[0], axis.ticks[-1])
    parts = [
        _text(
            "tick" if tick in ends else "tick inner", axis.at(tick), 12, axis.tick_text(tick),
            _tick_anchor(axis, tick),
        )
        for tick in axis.ticks
    ]  # fmt: skip
    return _svg("chart-axis", 16, parts)


def bar(share: float) -> str:
    """A bar that fills ``share`` (0 to 1) of its cell."""
    width = min(max(share, 0.0), 1.0) * 100.0
    return _svg("chart-bar", 12, [f'<rect class="bar" x="0" y="0" width="{width:.2f}%" height="12" rx="1"/>'])


def axis_for(values: Iterable[float | None], *, most_ticks: int = 6) -> Axis:
    """An axis that covers 0 and all ``values`` that exist."""
    known: Sequence[float] = [0.0, *(value for value in values if value is not None)]
    low, high = min(known), max(known)
    return nice_axis(low, high if high > low else 0.001, most_ticks=most_ticks)


def _svg(name: str, height: float | str, parts: Iterable[str], *, title: str = "") -> str:
    role = f'role="img" aria-label="{title}"' if title else 'aria-hidden="true"'
    return f'<svg class="chart {name}" width="100%" height="{height}" {role}>{"".join(parts)}</svg>'


def _rect(name: str, left: float, right: float, top: float, height: float) -> str:
    width = max(right - left, 0.4)
    return f'<rect class="{name}" x="{left:.2f}%" y="{top}" width="{width:.2f}%" height="{height}"/>'


def _line(name: str, x1: float, x2: float, y1: float | str, y2: float | str) -> str:
    return f'<line class="{name}" x1="{x1:.2f}%" x2="{x2:.2f}%" y1="{y1}" y2="{y2}"/>'


def _text(name: str, x: float, y: float, content: str, anchor: str) -> str:
    return f'<text class="{name}" x="{x:.2f}%" y="{y}" text-anchor="{anchor}">{content}</text>'


def _label(name: str, x: float, y: float, content: str, *, toward: str) -> str:
    return _text(name, x, y, content, _anchor(x, toward=toward))


def _anchor(x: float, *, toward: str) -> str:
    """The anchor of a label that grows ``toward`` a side unless the edge is near."""
    if toward == "left":
        return "end" if x >= 30.0 else "start"
    return "start" if x <= 70.0 else "end"


def _tick_anchor(axis: Axis, tick: float) -> str:
    return "start" if tick == axis.ticks[0] else "end" if tick == axis.ticks[-1] else "middle"
