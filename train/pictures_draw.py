"""The parts that charts are put together from: axes, curves, markers, rules and the legend."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from markupsafe import escape

from audit.charts import Axis, nice_axis
from audit.errors import ArgumentError
from audit.render_words import visible

Floats = npt.NDArray[np.float64]

WIDTH, LEFT, RIGHT, PLOT = 560.0, 52.0, 12.0, 230.0
INNER = WIDTH - LEFT - RIGHT


@dataclass(frozen=True)
class Line:
    """One series of a chart.

    ``x`` and ``y`` have the same length n; ``low`` and ``high`` (length n) are the ends of its intervals, shaded
    along a line and drawn as whiskers at points. None and NaN are gaps. ``kind``: ``"line"`` joins the points,
    ``"steps"`` holds each value up to the next x, ``"points"`` joins nothing.
    """

    name: str
    x: Sequence[float | None]
    y: Sequence[float | None]
    low: Sequence[float | None] | None = None
    high: Sequence[float | None] | None = None
    kind: Literal["line", "points", "steps"] = "line"


@dataclass(frozen=True)
class Rule:
    """A dashed line at ``value`` across the chart, or a band from ``value`` to ``to``, named in the legend."""

    value: float
    name: str
    axis: Literal["y", "x"] = "y"
    to: float | None = None


@dataclass(frozen=True)
class Series:
    """A line with its values as arrays of one length, NaN where there is none."""

    line: Line
    x: Floats
    y: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Frame:
    """Where a chart's values lie in the view box."""

    x_axis: Axis
    y_axis: Axis
    top: float
    left: float = LEFT
    height: float = PLOT

    def x(self, value: float) -> float:
        """The place of a value of the x axis."""
        share = (value - self.x_axis.start) / (self.x_axis.stop - self.x_axis.start)
        return self.left + share * (WIDTH - RIGHT - self.left)

    def y(self, value: float) -> float:
        """The place of a value of the y axis."""
        share = (value - self.y_axis.start) / (self.y_axis.stop - self.y_axis.start)
        return self.top + (1.0 - share) * self.height

    def holds(self, x: float, y: float) -> bool:
        """Whether a point lies within both axes."""
        return self.x_axis.start <= x <= self.x_axis.stop and self.y_axis.start <= y <= self.y_axis.stop

    def grid(self, x_label: str) -> list[str]:
        """Grid lines, ticks and the name of the x axis."""
        floor, right, parts = self.top + self.height, WIDTH - RIGHT, []
        for tick in self.y_axis.ticks:
            at = self.y(tick)
            parts.append(f'<path class="grid" d="M{self.left:g} {at:.1f}H{right:g}"/>')
            parts.append(text("tick", self.left - 6, at + 4, _tick(self.y_axis, tick), "end"))
        for tick in self.x_axis.ticks:
            at = self.x(tick)
            parts.append(f'<path class="grid" d="M{at:.1f} {self.top:g}V{floor:g}"/>')
            anchor = "end" if at > right - 8 else "start" if at < 8 + RIGHT else "middle"
            at = right if anchor == "end" else 0.0 if anchor == "start" else at
            parts.append(text("tick", at, floor + 18, _tick(self.x_axis, tick), anchor))
        parts.append(f'<path class="axis" d="M{self.left:g} {floor:g}H{right:g}"/>')
        parts.append(text("label", (self.left + right) / 2, floor + 38, cut(x_label, 56), "middle"))
        return parts


def series_of(line: Line) -> Series:
    """The line's values as arrays; an ArgumentError where their lengths differ."""
    x, y = floats(line.x), floats(line.y)
    nothing = np.full(len(y), np.nan)
    low = nothing if line.low is None else floats(line.low)
    high = nothing if line.high is None else floats(line.high)
    if not len(x) == len(y) == len(low) == len(high):
        raise ArgumentError(
            f"line {visible(line.name, one_line=True)!r}: x, y, low and high have {len(x)}, {len(y)}, {len(low)} and "
            f"{len(high)} values; give the same number of each"
        )
    return Series(line, x, y, low, high)


def floats(values: Sequence[float | None]) -> Floats:
    """Numbers as an array, NaN for what is missing or infinite."""
    known = (value if value is not None and math.isfinite(value) else math.nan for value in values)
    return np.array([float(value) for value in known], dtype=np.float64)


def axis_of(
    limits: tuple[float, float] | None,
    values: Iterable[Floats],
    rules: Iterable[Rule],
    name: str,
    *,
    room: float = 0.04,
) -> Axis:
    """An axis with ticks at round values, over ``limits`` as they are or over all values and a little ``room``.

    ``room`` is a share of the span, on both sides; an axis of values from 0 on, or up to 1, ends there.
    """
    if limits is not None:
        low, high = limits
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ArgumentError(f"{name} goes from a smaller to a greater number, not {low} to {high}")
        return _axis(low, high)
    marks = np.array([v for rule in rules for v in (rule.value, rule.to) if v is not None], dtype=np.float64)
    known = np.concatenate([marks, *values])
    known = known[np.isfinite(known)]
    if not known.size:
        return _axis(0.0, 1.0)
    least, most = float(known.min()), float(known.max())
    span = most - least
    if span <= 1e-6 * max(abs(least), abs(most), 1e-3):  # one value: room on both sides
        span, room = max(abs(least), abs(most)) / 5.0 or 1.0, max(room, 0.5)
    low, high = least - room * span, most + room * span
    return _axis(0.0 if least >= 0.0 > low else low, 1.0 if most <= 1.0 < high else high)


def _axis(low: float, high: float) -> Axis:
    nice = nice_axis(low, high, most_ticks=8)
    slack = 1e-9 * (high - low)
    ticks = tuple(tick for tick in nice.ticks if low - slack <= tick <= high + slack)
    return Axis(start=low, stop=high, ticks=ticks, digits=nice.digits)


def _tick(axis: Axis, value: float) -> str:
    if abs(axis.stop) >= 1e6 or abs(axis.start) >= 1e6 or axis.digits > 5:
        return f"{value:.4g}".replace("-", "−")
    return f"{value:,.{axis.digits}f}".replace("-", "−")


def heading(title: str, y_label: str) -> tuple[list[str], float]:
    """The title in at most two lines and the name of the y axis under it; and where the chart begins."""
    rows = textwrap.wrap(visible(title, one_line=True), 62, max_lines=2, placeholder=" …")
    parts = [text("heading", 0, 16 + 19 * place, row, "start") for place, row in enumerate(rows)]
    top = 19.0 * len(rows) + 10
    if y_label:
        parts.append(text("label", 0, top + 10, cut(y_label, 60), "start"))
        top += 24
    return parts, top


# --- texts --------------------------------------------------------------------------------------------------


def cut(name: str, most: int) -> str:
    """A text on one line with at most ``most`` characters."""
    name = " ".join(visible(name, one_line=True).split())
    return name if len(name) <= most else f"{name[: most - 1]}…"


def text(name: str, x: float, y: float, content: str, anchor: str) -> str:
    """A ``<text>`` element, its content escaped."""
    return f'<text class="{name}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(content)}</text>'


def told(value: float) -> str:
    """A number of the description that a screen reader gives."""
    return f"{value:.4g}".replace("-", "−") if math.isfinite(value) else "none"


def svg(title: str, description: str, height: float, parts: Iterable[str]) -> str:
    """The whole element, with a title and a description that assistive software reads."""
    named = f"<title>{escape(cut(title, 300))}</title><desc>{escape(cut(description, 2_000))}</desc>"
    box = f'class="chart picture" viewBox="0 0 {WIDTH:g} {height:g}" role="img"'
    return f"<svg {box}>{named}{''.join(parts)}</svg>"


def described(series: Sequence[Series], x_label: str, y_label: str) -> str:
    """What the chart shows, in words: each line's first and last value."""
    parts = []
    for one in series:
        known = np.flatnonzero(np.isfinite(one.x) & np.isfinite(one.y))
        if known.size:
            first, last = known[0], known[-1]
            ends = f"from {told(one.y[first])} at {told(one.x[first])} to {told(one.y[last])} at {told(one.x[last])}"
            parts.append(f"{one.line.name}: {ends if known.size > 1 else told(one.y[first])}")
        else:
            parts.append(f"{one.line.name}: no values")
    return f"{y_label} over {x_label}. {'; '.join(parts)}"
