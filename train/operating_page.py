"""The HTML page of ``audit train operating-point``."""

from __future__ import annotations

from collections.abc import Sequence

from train.metrics import DECISION_METRICS
from train.operating_match import Match
from train.operating_results import Curve, OperatingPoint, figure
from train.page import Heading, Part, Picture, Table, Words, page
from train.pictures import Line, Rule, chart
from train.words import metric_name, place_name

__all__ = ["operating_page"]


def operating_page(result: OperatingPoint) -> str:
    """The whole page: verdict, matched run, curves, sweep."""
    parts: list[Part] = []
    if result.against is not None:
        parts.append(Words(result.against.message, "verdict"))
    parts.append(Words(result.best_sentence(), "plain" if parts else "verdict"))
    units = "" if result.clusters is None else f" in {result.clusters:,} clusters"
    parts.append(
        Words(
            f"{place_name(result.source)}: {result.n:,} rows{units}, {result.positives:,} positive "
            f"({result.positive}). AUC {figure(result.auc)}, average precision {figure(result.average_precision)}."
        )
    )
    if result.against is not None:
        parts += _matched(result, result.against)
    parts += [
        Heading("Curves"),
        Picture(
            _roc(result), "Recall against the share of negatives called positive; band: pointwise limits."
        ),
        Picture(_precision(result), "Precision against recall."),
        Heading("Thresholds"),
        Picture(_sweep(result), "Metrics along the sweep; bands: limits of each threshold by itself."),
        _table(result),
        Words(
            f"{result.level:.0%} intervals from {result.draws:,} bootstrap draws of "
            f"{'rows' if result.clusters is None else 'clusters'}, "
            f"{'within classes' if result.stratified else 'whatever their label'}; seed {result.seed}.",
            "fine",
        ),
    ]
    parts += [Words(note, "caution") for note in result.notes]
    return page("Operating points", parts)


def _matched(result: OperatingPoint, match: Match) -> list[Part]:
    cut = "above every score" if match.threshold is None else f"at {match.threshold:.4g}"
    limits = {name: (match.ours[name], match.theirs[name]) for name in match.differences}
    rows: list[list[str | float | None]] = []
    for name, part in (*match.differences.items(), *result.ranking.items()):
        ours, theirs = limits.get(name, (None, None))
        ends = "" if part.low is None or part.high is None else f" ({part.low:+.4f} to {part.high:+.4f})"
        told = None if part.estimate is None else f"{part.estimate:+.4f}{ends}"
        rows.append([metric_name(name), _four(ours), _four(theirs), told])
    caption = (
        f"{place_name(match.source)} against ours, cut {cut} for its {metric_name(match.on)} of {match.target:.4f}"
        f"{'' if match.exact else ' (between two neighbouring thresholds)'}; difference: theirs less ours"
    )
    return [
        Heading("Against the other run"),
        Table(caption, ("metric", "ours, matched", "theirs", "difference"), rows),
    ]


def _four(value: float | None) -> str | None:
    return None if value is None else f"{value:.4f}"


def _line(name: str, curve: Curve) -> Line:
    def known(values: Sequence[float | None]) -> list[float]:
        return [float("nan") if v is None else v for v in values]

    return Line(name, list(curve.x), known(curve.y), known(curve.low), known(curve.high))


def _dot(name: str, x: float | None, y: float | None) -> list[Line]:
    return [] if x is None or y is None else [Line(name, [x], [y], kind="points")]


def _roc(result: OperatingPoint) -> str:
    lines = [_line("ROC", result.roc)]
    best = result.best.point.metrics
    specificity = best["specificity"].estimate
    lines += _dot("best", None if specificity is None else 1.0 - specificity, best["recall"].estimate)
    if result.against is not None:
        theirs = result.against.theirs
        other = theirs["specificity"]
        lines += _dot(
            place_name(result.against.source), None if other is None else 1.0 - other, theirs["recall"]
        )
    return chart(
        "ROC curve",
        lines,
        x_label="1 − specificity",
        y_label="recall",
        x_range=(0.0, 1.0),
        y_range=(0.0, 1.0),
    )


def _precision(result: OperatingPoint) -> str:
    lines = [_line("precision", result.precision_recall)]
    best = result.best.point.metrics
    lines += _dot("best", best["recall"].estimate, best["precision"].estimate)
    if result.against is not None:
        lines += _dot(
            place_name(result.against.source),
            result.against.theirs["recall"],
            result.against.theirs["precision"],
        )
    share = result.positives / result.n
    return chart(
        "Precision and recall", lines, x_label="recall", y_label="precision", x_range=(0.0, 1.0), y_range=(0.0, 1.0),
        rules=[Rule(share, "share of positives", "y")],
    )  # fmt: skip


def _sweep(result: OperatingPoint) -> str:
    lines = []
    for metric in ("balanced_accuracy", "f1", "accuracy"):
        parts = [(p.threshold, p.metrics[metric]) for p in reversed(result.sweep) if p.threshold is not None]
        known = [(t, m.estimate, m.low, m.high) for t, m in parts if m.estimate is not None]
        x, y, low, high = ([row[i] for row in known] for i in range(4))
        nan = float("nan")
        lines.append(
            Line(
                metric_name(metric), [v or 0.0 for v in x], [nan if v is None else v for v in y],
                [nan if v is None else v for v in low], [nan if v is None else v for v in high],
            )
        )  # fmt: skip
    rules = (
        [] if result.best.threshold is None else [Rule(result.best.threshold, "best balanced accuracy", "x")]
    )
    return chart("Metrics by threshold", lines, x_label="threshold", y_label="metric", rules=rules)


def _table(result: OperatingPoint) -> Table:
    rows = []
    for point in result.points():
        name = point.name if point.name != "sweep" else f"{point.threshold:.4g}"
        if point.name == "best" and point.threshold is not None:
            name = f"best: {point.threshold:.4g}"
        rows.append(
            [name, f"{point.share:.1%}", *(figure(point.metrics[m], digits=3) for m in DECISION_METRICS)]
        )
    return Table(
        "Metrics of each threshold",
        ("threshold", "called positive", *(metric_name(m) for m in DECISION_METRICS)),
        rows,
    )
