"""A comparison of runs as text, as Markdown and as an HTML page with its pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from audit.render_words import visible
from audit.results import Estimate
from train.compare_folders import Run
from train.compare_results import RunComparison, RunRow
from train.page import Heading, Part, Picture, Table, Words, page
from train.pictures import Dot, Line, Rule, chart, dots
from train.pressure_band import band_rules, band_sentence
from train.pressure_words import limits, signed
from train.tables import Cell, aligned, escaped, pipes
from train.words import metric_name

__all__ = ["html", "markdown", "text"]

_METHOD = (
    "Intervals of a run: bootstrap over items with beta limits. Differences: the same items for both, by a paired "
    "bootstrap; the test asks whether swapping the two runs' answers on any item would change nothing (exact by class; "
    "McNemar's test for accuracy). With several seeds: the spread over seeds and that over items together "
    "(Satterthwaite). Holm's step-down (1979) over all differences of the table keeps the chance of one false "
    "difference below 1 less the level."
)
_MOST_LINES = 8

_Tables = list[tuple[str, list[str], list[list[Cell]]]]


def text(c: RunComparison) -> str:
    """The verdicts and tables as plain text."""
    out = [*c.verdict, "", _setting(c)]
    for caption, columns, rows in _tables(c):
        out += ["", caption, *aligned(columns, rows)]
    if c.band is not None:
        out += ["", band_sentence(c.band)]
        out += [f"{r.name}: {r.placement.message}" for r in c.runs if r.placement is not None]
    if c.notes:
        out += ["", *(f"- {note}" for note in c.notes)]
    return "\n".join(visible(line, one_line=True) for line in out)


def markdown(c: RunComparison) -> str:
    """The same as Markdown."""
    out = ["# Runs compared", "", *(f"- {escaped(v)}" for v in c.verdict), "", escaped(_setting(c))]
    for caption, columns, rows in _tables(c):
        out += ["", f"## {escaped(caption)}", "", *pipes(columns, rows)]
    if c.band is not None:
        out += ["", "## The ceiling of the labels", "", escaped(band_sentence(c.band))]
        out += [
            f"- {escaped(r.name)}: {escaped(r.placement.message)}" for r in c.runs if r.placement is not None
        ]
    if c.notes:
        out += ["", "## Notes", "", *(f"- {escaped(note)}" for note in c.notes)]
    return "\n".join(out)


def html(c: RunComparison) -> str:
    """The comparison as one page."""
    parts: list[Part] = [Words(sentence, "verdict") for sentence in c.verdict]
    parts.append(Words(_setting(c), "fine"))
    name = metric_name(c.metric)
    if c.differences:
        parts += [
            Heading("Differences"),
            Picture(_differences(c), "The interval of each difference, before Holm."),
        ]
    tables = _tables(c)
    for caption, columns, rows in tables[1:]:
        parts.append(Table(caption, columns, rows))
    parts += [Heading("Runs"), Table(*tables[0])]
    parts.append(
        Picture(_scores(c), f"{name[:1].upper()}{name[1:]} of each run, with its interval over items.")
    )
    curves = [
        _curves(c.sources, column, title) for column, title in (("reward", "Mean reward"), ("loss", "Loss"))
    ]
    if any(curves):
        parts.append(Heading("Curves"))
        parts += [Picture(svg) for svg in curves if svg]
    if c.band is not None:
        parts += [Heading("The ceiling of the labels"), Words(band_sentence(c.band))]
        placed = [r for r in c.runs if r.placement is not None]
        if placed:
            parts.append(Picture(_in_band(c, placed), "Accuracy against the labels as they came."))
            rows = [[r.name, r.placement.message if r.placement else ""] for r in placed]
            parts.append(Table("Runs in the band", ["run", "where it lies"], rows))
    if c.notes:
        parts.append(Heading("Notes"))
        parts += [Words(note, "caution") for note in c.notes]
    parts += [Heading("Method"), Words(_METHOD)]
    return page("Runs compared", parts)


# --- tables -----------------------------------------------------------------------------------------------------


def _setting(c: RunComparison) -> str:
    key = "a clean key" if c.key == "clean" else "the labels as they came"
    return (
        f"{c.items:,} items of split {c.split}, {c.positives:,} of them {c.positive}, against {key}; baseline "
        f"{c.baseline}; {c.level * 100:g}% intervals, {c.draws:,} draws, seed {c.seed}."
    )


def _tables(c: RunComparison) -> _Tables:
    """The table of runs; then, where there are any, those of differences and of seeds."""
    names = list(dict.fromkeys(metric for run in c.runs for metric in run.metrics))
    names.sort(key=lambda metric: metric != c.metric)
    columns = [
        "run",
        "rung",
        "seed",
        "training rows",
        *map(metric_name, names),
        "seconds",
        "tokens",
        "rollouts",
    ]
    rows: list[list[Cell]] = [
        [
            r.name, r.rung, r.seed, r.rows, *(_value(r.metrics.get(metric)) for metric in names),
            _seconds(r.cost.seconds), r.cost.tokens, r.cost.rollouts,
        ]
        for r in c.runs
    ]  # fmt: skip
    tables: _Tables = [("Runs", columns, rows)]
    if c.differences:
        others = list(dict.fromkeys(metric for d in c.differences for metric in d.others))
        columns = ["run", "against", metric_name(c.metric), "p", "p (Holm)", *map(metric_name, others)]
        tables.append(
            (
                f"Differences: a family of {len(c.differences)}",
                columns,
                [
                    [
                        d.arm, d.against, _gap(d.difference), _p(d.p_value), _p(d.p_holm),
                        *(_gap(d.others.get(metric)) for metric in others),
                    ]
                    for d in c.differences
                ],
            )
        )  # fmt: skip
    if any(len(a.runs) > 1 for a in c.arms):
        tables.append(
            (
                f"Seeds: {metric_name(c.metric)}",
                ["arm", "seeds", "mean over seeds", "standard deviation"],
                [[a.name, len(a.runs), _value(a.mean), a.sd] for a in c.arms],
            )
        )
    return tables


def _value(part: Estimate | None) -> str:
    if part is None or part.estimate is None:
        return "–"
    ends = "" if part.low is None or part.high is None else f" ({part.low:.3f} to {part.high:.3f})"
    return f"{part.estimate:.3f}{ends}"


def _seconds(value: float | None) -> Cell:
    """Whole seconds, or one decimal of a short time: as text, which stands at the right all the same."""
    return None if value is None else round(value) if value >= 100 else f"{value:.1f}"


def _p(value: float | None) -> Cell:
    return value if value is None or value >= 0.001 else "< 0.001"


def _gap(part: Estimate | None) -> str:
    return (
        "–" if part is None or part.estimate is None else signed(part.estimate) + limits(part.low, part.high)
    )


# --- pictures ---------------------------------------------------------------------------------------------------


def _differences(c: RunComparison) -> str:
    rows = [
        Dot(
            f"{d.arm} − {d.against}",
            d.difference.estimate,
            d.difference.low,
            d.difference.high,
            _gap(d.difference),
        )
        for d in c.differences
    ]
    label = f"difference in {metric_name(c.metric)}"
    return dots(f"What each run adds: {label}", rows, x_label=label, rules=[Rule(0.0, "no difference")])


def _scores(c: RunComparison) -> str:
    name = metric_name(c.metric)
    metric = c.metric if all(c.metric in r.metrics for r in c.runs) else "accuracy"
    rows = [Dot(r.name, e.estimate, e.low, e.high, _value(e)) for r in c.runs for e in [r.metrics[metric]]]
    label = name if metric == c.metric else metric_name(metric)
    return dots(f"Runs by {label}", rows, x_label=f"{label}, split {c.split}")


def _in_band(c: RunComparison, placed: Sequence[RunRow]) -> str:
    rows = [
        Dot(r.name, p.score, p.score_low, p.score_high, f"{p.score:.3f}")
        for r in placed
        if (p := r.placement) is not None
    ]
    return dots(
        "Scores in the ceiling band", rows, x_label="accuracy against the labels", rules=band_rules(c.band)
    )


def _curves(runs: Sequence[Run], column: str, title: str) -> str:
    """A value over the steps of all runs that logged it; "" where none did."""
    lines = []
    for run in runs:
        if column in run.curve.columns and len(run.curve):
            logged = [
                pair for pair in zip(run.curve["step"], run.curve[column], strict=True) if _is_number(pair[0])
            ]
            steps = [float(step) for step, _ in logged]
            values = [float(value) if _is_number(value) else math.nan for _, value in logged]
            if any(map(math.isfinite, values)):
                lines.append(Line(run.name, steps, values))
    if not lines:
        return ""
    more = f", {_MOST_LINES} of {len(lines)} runs" if len(lines) > _MOST_LINES else ""
    return chart(f"{title} by step{more}", lines[:_MOST_LINES], x_label="step", y_label=title.lower())


def _is_number(value: object) -> bool:
    """Whether a chart can show it: the span of larger numbers is no float."""
    return isinstance(value, (int, float)) and abs(value) <= 1e100
