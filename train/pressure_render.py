"""The report of a ledger as text and as an HTML page with its pictures."""

from __future__ import annotations

from collections.abc import Sequence

from audit.render_words import visible
from audit.results import Estimate
from train.page import Heading, Part, Picture, Table, Words, page
from train.pictures import Dot, Line, Rule, chart, dots
from train.pressure_band import CLEAN_SENTENCE, band_rules, band_sentence
from train.pressure_results import Final, PressureReport
from train.pressure_stats import expected_maximum
from train.pressure_words import limits, signed
from train.tables import Cell, aligned
from train.words import metric_name

__all__ = ["html", "text"]

_METHOD = (
    "Choosing the best of k noisy scores of equally good models gains up to √(variance · (1 − ρ)) · E[Z_(k)], the "
    "expected largest of k normal variables (Harter 1961) shrunk by the correlation ρ of being right on the same items "
    "(Owen & Steck 1962); models of unequal worth gain less. Validation and holdout are different items, so the "
    "interval of a drop is that of a difference of independent proportions from Wilson's limits (Newcombe 1998; Zou & "
    "Donner 2008)."
)
_MOST_ROWS = 40


def text(report: PressureReport) -> str:
    """The verdict, the looks, the final models and the placed scores as plain text."""
    out = [*report.verdict, "", f"Looks ({metric_name(report.metric)})"]
    out += aligned(_look_columns(), _look_rows(report))
    if report.finals:
        out += ["", "Final models", *aligned(_final_columns(report), _final_rows(report))]
    if report.band is not None:
        out += ["", band_sentence(report.band)]
        out += [f"{p.run} ({p.split}): {p.message}" for p in report.placed]
    if report.notes:
        out += ["", *(f"- {note}" for note in report.notes)]
    return "\n".join(visible(line, one_line=True) for line in out)


def html(report: PressureReport) -> str:
    """The report as one page."""
    parts: list[Part] = [Words(sentence, "verdict") for sentence in report.verdict]
    parts.append(Heading("Looks"))
    parts.append(
        Table(
            f"Evaluations by split and family ({metric_name(report.metric)})",
            _look_columns(),
            _look_rows(report),
        )
    )
    parts.append(Picture(_course(report), "Every evaluation in the ledger's order, with its interval."))
    if report.finals:
        parts.append(Heading("Final models"))
        parts.append(Table("Validation and holdout", _final_columns(report), _final_rows(report)))
        if any(f.drop.estimate is not None for f in report.finals):
            caption = "A drop within the curve's reach is what choosing alone may cost."
            parts.append(Picture(_drops(report), caption))
    if report.band is not None:
        parts.append(Heading("The ceiling of the labels"))
        parts.append(Words(band_sentence(report.band)))
        if report.placed:
            parts.append(
                Picture(_in_band(report), "Accuracy against labels as they came, with its interval.")
            )
            rows = [[p.run, p.split, _value(p.score), p.message] for p in report.placed]
            parts.append(Table("Scores in the band", ["run", "split", "accuracy", "where it lies"], rows))
        elif CLEAN_SENTENCE not in report.notes:
            parts.append(Words("No score could be placed in it."))
    if report.notes:
        parts.append(Heading("Notes"))
        parts += [Words(note, "caution") for note in report.notes]
    parts += [Heading("Method"), Words(_METHOD), Words(f"Ledger: {report.ledger}", "fine")]
    return page("How hard the validation rows were leaned on", parts)


def _look_columns() -> list[str]:
    return ["split", "family", "purpose", "looks", "models", "best", "first", "last"]


def _look_rows(report: PressureReport) -> list[list[Cell]]:
    return [
        [p.split, p.family, p.purpose, p.looks, p.models, p.best, _day(p.first), _day(p.last)]
        for p in report.looks
    ]


def _final_columns(report: PressureReport) -> list[str]:
    level = f"{report.level * 100:g}%"
    return [
        "run",
        "holdout",
        "validation",
        "on holdout",
        f"drop ({level})",
        "models tried",
        "choosing gains up to",
        "opened",
    ]


def _final_rows(report: PressureReport) -> list[list[Cell]]:
    return [
        [
            f.run, f.split, f.validation.estimate, f.holdout.estimate,
            "–" if f.drop.estimate is None else signed(f.drop.estimate) + limits(f.drop.low, f.drop.high),
            f.models, f.expected, f.openings,
        ]
        for f in report.finals
    ]  # fmt: skip


def _day(time: str) -> str:
    return time[:16].replace("T", " ")


def _value(score: Estimate) -> str:
    if score.estimate is None:
        return "–"
    ends = "" if score.low is None or score.high is None else f" ({score.low:.3f} to {score.high:.3f})"
    return f"{score.estimate:.3f}{ends}"


# --- pictures -------------------------------------------------------------------------------------------------


def _course(report: PressureReport) -> str:
    """All scores in order, one series a family, the holdouts last."""
    families = list(dict.fromkeys(s.family for s in report.scores if s.purpose == "validation"))
    named = families if len(families) <= 6 else families[:5]
    lines = []
    for family in [*named, *(["other families"] if len(named) < len(families) else [])]:
        part = [
            s for s in report.scores
            if s.purpose == "validation" and (s.family == family or (family not in named and s.family not in named))
        ]  # fmt: skip
        lines.append(
            Line(
                family, [s.number for s in part], [s.score.estimate for s in part], [s.score.low for s in part],
                [s.score.high for s in part], "points",
            )
        )  # fmt: skip
    held = [s for s in report.scores if s.purpose == "holdout"]
    if held:
        lines.append(
            Line(
                "holdout", [s.number for s in held], [s.score.estimate for s in held], [s.score.low for s in held],
                [s.score.high for s in held], "points",
            )
        )  # fmt: skip
    name = metric_name(report.metric)
    return chart(f"Each look: {name}", lines, x_label="evaluation", y_label=name)


def _drops(report: PressureReport) -> str:
    """Drops against the number of models tried, over the curve of what choosing gains."""
    known = [f for f in report.finals if f.drop.estimate is not None]
    lines = [_drop_points(known)]
    if report.noise is not None:
        most = max(2, *(f.models for f in known))
        ks = sorted({1, 2, 3, 4, 5, *(round(most * 1.1 * i / 40) for i in range(1, 41))} - {0})
        curve = [report.noise * expected_maximum(k) for k in ks if k <= most * 1.1 + 1]
        lines.append(Line("most that choosing gains", ks[: len(curve)], curve))
    return chart(
        "Validation less holdout, by the number of models tried", lines, x_label="models scored on validation before",
        y_label=f"drop in {metric_name(report.metric)}", rules=[Rule(0.0, "no drop")],
    )  # fmt: skip


def _drop_points(finals: Sequence[Final]) -> Line:
    drops = [f.drop for f in finals]
    return Line(
        "final models", [f.models for f in finals], [d.estimate for d in drops], [d.low for d in drops],
        [d.high for d in drops], "points",
    )  # fmt: skip


def _in_band(report: PressureReport) -> str:
    placed = report.placed[-_MOST_ROWS:]
    rows = [
        Dot(f"{p.run} ({p.split})", p.score.estimate, p.score.low, p.score.high, _value(p.score))
        for p in placed
    ]
    return dots(
        "Scores in the ceiling band",
        rows,
        x_label="accuracy against the labels",
        rules=band_rules(report.band),
    )
