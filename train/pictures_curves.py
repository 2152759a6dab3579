"""Curves, markers, rules and the legend of a chart."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from train.pictures_draw import INNER, LEFT, RIGHT, WIDTH, Floats, Frame, Line, Rule, Series, cut, text

#: Width of a letter, in units of the view box, where the page is as narrow as a phone and its text the largest.
_LETTER = 8.6
#: A line keeps at most four points in each strip, an area two.
_STRIPS = 120
#: Lines of at most so many points show them.
_MARKED = 15
_SERIES = 8


def curve(frame: Frame, part: Series, place: int) -> list[str]:
    """The shaded interval and the path of a line, cut at its gaps."""
    if part.line.kind == "points":
        return []
    steps, name = part.line.kind == "steps", place % _SERIES
    parts = []
    for run in _runs(np.isfinite(part.x) & np.isfinite(part.low) & np.isfinite(part.high)):
        x, low, high = _thin_area(frame, part.x[run], part.low[run], part.high[run])
        there = _path(frame, x, high, steps=steps)
        # back along the lower ends: steps are laid out from left to right first, then turned round
        back = _corners(x, low, steps=steps)[::-1]
        parts.append(f'<path class="area s{name}" d="{there}{_points(frame, back, "L")}Z"/>')
    for run in _runs(np.isfinite(part.x) & np.isfinite(part.y)):
        keep = thin(frame, part.x[run], part.y[run])
        x, y = part.x[run][keep], part.y[run][keep]
        if len(x) > 1:
            parts.append(f'<path class="line s{name} d{place % 4}" d="{_path(frame, x, y, steps=steps)}"/>')
        else:
            parts.append(
                f'<circle class="dot s{name}" cx="{frame.x(x[0]):.1f}" cy="{frame.y(y[0]):.1f}" r="2.5"/>'
            )
    return parts


def marks(frame: Frame, part: Series, place: int) -> list[str]:
    """The markers of a series, and the whiskers of points."""
    known = np.flatnonzero(np.isfinite(part.x) & np.isfinite(part.y))
    points = part.line.kind == "points"
    if part.line.kind == "steps" or (not points and len(known) > _MARKED):
        return []
    name, parts, seen = f"s{place % _SERIES}", [], set()
    for i in known:
        if not frame.holds(part.x[i], part.y[i]):
            continue
        x, y = frame.x(part.x[i]), frame.y(part.y[i])
        if points and math.isfinite(part.low[i] * part.high[i]):
            low, high = (
                min(max(v, frame.y_axis.start), frame.y_axis.stop) for v in (part.low[i], part.high[i])
            )
            parts.append(
                f'<path class="whisker {name}" d="M{x:.1f} {frame.y(low):.1f}V{frame.y(high):.1f}"/>'
            )
        cell = round(x), round(y)
        if cell not in seen:  # points on top of each other are drawn once
            seen.add(cell)
            parts.append(marker(place, name, x, y, 3.5 if points and len(known) < 200 else 2.4))
    return parts


def marker(place: int, name: str, x: float, y: float, r: float) -> str:
    """A disc, square, triangle or diamond, so that series differ without colour too."""
    shape = place % 4
    if shape == 0:
        return f'<circle class="dot {name}" cx="{x:.1f}" cy="{y:.1f}" r="{r:g}"/>'
    if shape == 1:
        left, side = -0.9 * r, 1.8 * r
        return f'<path class="dot {name}" d="M{x + left:.1f} {y + left:.1f}h{side:.1f}v{side:.1f}h{-side:.1f}z"/>'
    if shape == 2:
        half, high = 1.2 * r, 2.1 * r
        return f'<path class="dot {name}" d="M{x:.1f} {y - 1.3 * r:.1f}l{half:.1f} {high:.1f}h{-2 * half:.1f}z"/>'
    half = 1.35 * r
    way = f"l{half:.1f} {half:.1f}l{-half:.1f} {half:.1f}l{-half:.1f} {-half:.1f}z"
    return f'<path class="dot {name}" d="M{x:.1f} {y - half:.1f}{way}"/>'


def _runs(known: npt.NDArray[np.bool_]) -> Iterator[slice]:
    """The stretches without a gap."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(np.int8)))
    return (slice(int(start), int(stop)) for start, stop in zip(edges[::2], edges[1::2], strict=True))


def _strips(frame: Frame, x: Floats) -> Iterator[slice]:
    """Stretches of neighbours that fall into one strip of the picture, whatever the order of x."""
    strip = np.floor((x - frame.x_axis.start) / (frame.x_axis.stop - frame.x_axis.start) * _STRIPS)
    edges = [0, *(np.flatnonzero(np.diff(strip)) + 1).tolist(), len(x)]
    return (slice(start, stop) for start, stop in itertools.pairwise(edges))


def thin(frame: Frame, x: Floats, y: Floats) -> npt.NDArray[np.int64]:
    """Places of the points to keep: first, last, lowest and highest of each strip (Jugel et al. 2014, M4)."""
    keep: set[int] = set()
    for part in _strips(frame, x):
        low, high = int(y[part].argmin()) + part.start, int(y[part].argmax()) + part.start
        keep |= {part.start, low, high, part.stop - 1}
    return np.array(sorted(keep), dtype=np.int64)


def _thin_area(frame: Frame, x: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
    """The area with the lowest low and the highest high of each strip, at its first and its last x."""
    if len(x) <= 2 * _STRIPS:
        return x, low, high
    at, lows, highs = [], [], []
    for part in _strips(frame, x):
        ends = {part.start, part.stop - 1}
        at += sorted(ends)
        lows += [part] * len(ends)
        highs += [part] * len(ends)
    return x[at], np.array([low[p].min() for p in lows]), np.array([high[p].max() for p in highs])


def _corners(x: Floats, y: Floats, *, steps: bool) -> list[tuple[float, float]]:
    if not steps:
        return list(zip(x.tolist(), y.tolist(), strict=True))
    held = [(float(b), float(v)) for b, v in zip(x[1:], y[:-1], strict=True)]
    real = list(zip(x.tolist(), y.tolist(), strict=True))
    return [real[0], *(corner for pair in zip(held, real[1:], strict=True) for corner in pair)]


def _points(frame: Frame, corners: Sequence[tuple[float, float]], first: str) -> str:
    # far outside the chart a coordinate would only be long: two heights beyond is out of sight as well
    low, high = frame.top - 2 * frame.height, frame.top + 3 * frame.height
    pairs = (f"{frame.x(x):.1f} {min(max(frame.y(y), low), high):.1f}" for x, y in corners)
    return first + "L".join(pairs)


def _path(frame: Frame, x: Floats, y: Floats, *, steps: bool) -> str:
    return _points(frame, _corners(x, y, steps=steps), "M")


# --- rules and legend ---------------------------------------------------------------------------------------


def bands(frame: Frame, rules: Sequence[Rule]) -> list[str]:
    """The shaded bands, the widest first, which lie under everything else."""
    wide = [
        (abs(rule.to - rule.value), place, rule) for place, rule in enumerate(rules) if rule.to is not None
    ]
    parts = []
    for _, place, rule in sorted(wide, key=lambda one: -one[0]):
        ends = sorted((rule.value, rule.to if rule.to is not None else rule.value))
        axis = frame.y_axis if rule.axis == "y" else frame.x_axis
        low, high = max(ends[0], axis.start), min(ends[1], axis.stop)
        if low > high:
            continue
        if rule.axis == "y":
            left, top, width, height = LEFT, frame.y(high), INNER, frame.y(low) - frame.y(high)
        else:
            left, top, width, height = frame.x(low), frame.top, frame.x(high) - frame.x(low), frame.height
        parts.append(
            f'<rect class="rule-band r{place % 4}" x="{left:.1f}" y="{top:.1f}" width="{max(width, 1):.1f}" '
            f'height="{max(height, 1):.1f}"/>'
        )
    return parts


def rule_lines(frame: Frame, rules: Sequence[Rule]) -> list[str]:
    """The dashed lines of rules without a width."""
    parts = []
    for place, rule in enumerate(rules):
        axis = frame.y_axis if rule.axis == "y" else frame.x_axis
        if rule.to is not None or not axis.start <= rule.value <= axis.stop:
            continue
        if rule.axis == "y":
            way = f"M{LEFT:g} {frame.y(rule.value):.1f}H{WIDTH - RIGHT:g}"
        else:
            way = f"M{frame.x(rule.value):.1f} {frame.top:g}V{frame.top + frame.height:g}"
        parts.append(f'<path class="rule r{place % 4}" d="{way}"/>')
    return parts


Key = tuple[str, str]


def line_key(line: Line, place: int) -> Key:
    """A line's name and its sample in the legend, drawn around (12, 0)."""
    name = f"s{place % _SERIES}"
    if line.kind == "points":
        return line.name, marker(place, name, 12, 0, 4)
    return line.name, f'<path class="line {name} d{place % 4}" d="M0 0H24"/>'


def rule_key(rule: Rule, place: int) -> Key:
    """A rule's name and its sample in the legend."""
    if rule.to is None:
        return rule.name, f'<path class="rule r{place % 4}" d="M0 0H24"/>'
    return rule.name, f'<rect class="rule-band r{place % 4}" x="0" y="-6" width="24" height="12"/>'


def legend(keys: Sequence[Key], top: float) -> tuple[list[str], float]:
    """The legend in as many columns as the longest name leaves room for, and where it ends."""
    named = [(cut(name, 58), sample) for name, sample in keys if name]
    if not named:
        return [], top - 12
    longest = max(len(name) for name, _ in named) * _LETTER + 42
    columns = int(min(max(WIDTH // longest, 1), 3, len(named)))
    parts = []
    for place, (name, sample) in enumerate(named):
        x, y = (place % columns) * WIDTH / columns, top + (place // columns) * 21
        parts.append(
            f'<g transform="translate({x:.1f} {y:g})">{sample}{text("legend", 31, 4, name, "start")}</g>'
        )
    return parts, top + (len(named) - 1) // columns * 21 + 14
