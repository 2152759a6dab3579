"""The HTML page of ``audit train route``."""

from __future__ import annotations

from collections.abc import Sequence

from audit.results import Estimate
from train.operating_results import figure
from train.page import Heading, Part, Picture, Table, Words, page
from train.pictures import Line, Rule, chart
from train.route_results import Route, signed
from train.words import metric_name

__all__ = ["route_page"]


def route_page(result: Route) -> str:
    """The whole page: findings, where the models differ, the cascade, the bands."""
    first, *others = result.sentences
    table = result.crosstab
    units = "" if result.clusters is None else f" in {result.clusters:,} clusters"
    parts: list[Part] = [
        Words(first, "verdict"), *(Words(sentence) for sentence in others),
        Words(f"a is {result.a}, b is {result.b}: {result.n:,} items{units}.", "fine"),
        Heading("Where the two differ"),
        Table(
            f"Items by who is right; {table.differ:,} answered differently, McNemar's exact p = {table.p_value:.4g}",
            ("", "b right", "b wrong"),
            (("a right", table.both_right, table.only_a), ("a wrong", table.only_b, table.both_wrong)),
        ),
        _oracle(result),
        Heading("The cascade"),
        Picture(_curve(result), "The least confident items of a go to b; random routing is the straight line."),
        Picture(_gain(result), "The cascade less random routing of as many items, and less always b."),
        _cascade(result),
        Heading("Bands of confidence"),
        Picture(_band_picture(result), "Accuracy of both models by a's confidence (tenths of the items)."),
        _bands(result),
    ]  # fmt: skip
    if result.ambiguity is not None:
        found = result.ambiguity
        parts += [
            Heading("Ambiguous labels"),
            Table(
                f"Items with labels in conflict; Fisher's exact p of the gap against the rest = {found.p_value:.3g}",
                ("of", "share"),
                [[name, None if v is None else f"{v:.1%}"] for name, v in (
                    ("all items", found.share), ("items that only one has right", found.of_differing),
                    ("the oracle's gap", found.of_gap), ("items that both have wrong", found.of_both_wrong),
                )],
            ),
        ]  # fmt: skip
    parts.append(
        Words(
            f"{result.level:.0%} intervals from {result.draws:,} paired bootstrap draws; seed {result.seed}.",
            "fine",
        )
    )
    parts += [Words(note, "caution") for note in result.notes]
    return page("Routing between two models", parts)


def _oracle(result: Route) -> Table:
    gap = result.oracle
    rows = [
        ["accuracy of the oracle", figure(gap.oracle)],
        [f"gap over {gap.better}, the better one", figure(gap.gap)],
        ["gap of independent errors at these rates", figure(gap.independent)],
        ["gap of a fair toss where only one is right", figure(gap.coins)],
    ]
    if gap.reachable is not None:
        rows.append([f"within reach at a flip rate of {gap.flip_rate:g}", signed(gap.reachable)])
    return Table(
        "The oracle takes the right one of the two answers, where there is one", ("", "accuracy"), rows
    )


def _line(name: str, x: Sequence[float], parts: Sequence[Estimate]) -> Line:
    nan = float("nan")

    def known(values: Sequence[float | None]) -> list[float]:
        return [nan if v is None else v for v in values]

    return Line(
        name,
        list(x),
        known([p.estimate for p in parts]),
        known([p.low for p in parts]),
        known([p.high for p in parts]),
    )


def _curve(result: Route) -> str:
    x = [p.share for p in result.cascade]
    parts = [p.accuracy if result.metric == "accuracy" else p.balanced_accuracy for p in result.cascade]
    ends = [parts[0].estimate, parts[-1].estimate]
    lines = [_line("by confidence", x, parts)]
    if ends[0] is not None and ends[1] is not None:
        lines.append(Line("at random", [0.0, 1.0], [ends[0], ends[1]]))
    oracle = result.oracle.oracle.estimate
    rules = [Rule(oracle, "oracle", "y")] if oracle is not None and result.metric == "accuracy" else []
    return chart(
        "Cascade",
        lines,
        x_label="share of items sent to b",
        y_label=metric_name(result.metric),
        x_range=(0.0, 1.0),
        rules=rules,
    )


def _gain(result: Route) -> str:
    x = [p.share for p in result.cascade]
    lines = [
        _line("over random", x, [p.over_random for p in result.cascade]),
        _line("over always b", x, [p.over_b for p in result.cascade]),
    ]
    return chart(
        "Difference", lines, x_label="share of items sent to b", y_label=metric_name(result.metric), x_range=(0.0, 1.0),
        rules=[Rule(0.0, "no difference", "y")],
    )  # fmt: skip


def _band_picture(result: Route) -> str:
    x = [(band.low + band.high) / 2.0 for band in result.bands]
    lines = [
        _line("a", x, [band.a for band in result.bands]),
        _line("b", x, [band.b for band in result.bands]),
    ]
    return chart("Accuracy by confidence", lines, x_label="confidence of a", y_label="accuracy")


def _cascade(result: Route) -> Table:
    costs = result.cost_a is not None
    head = ("sent to b", "accuracy", "balanced accuracy", "over random", "over always b")
    rows = []
    for p in result.cascade[::2]:
        parts = [figure(p.accuracy, digits=3), figure(p.balanced_accuracy, digits=3)]
        parts += [signed(p.over_random), signed(p.over_b)]
        rows.append(
            [f"{p.share:.0%}", *parts, *([f"{p.cost:,.6g}", f"{p.cost_random:,.6g}"] if costs else [])]
        )
    more = ("cost of 1,000", "at random") if costs else ()
    return Table(f"Cascades; differences in {metric_name(result.metric)}", (*head, *more), rows)


def _bands(result: Route) -> Table:
    ambiguous = result.ambiguity is not None
    rows = [
        [
            f"{b.low:.3f} to {b.high:.3f}", b.items, figure(b.a), figure(b.b), signed(b.gain),
            *([None if b.ambiguous is None else f"{b.ambiguous:.1%}"] if ambiguous else []),
        ]
        for b in result.bands
    ]  # fmt: skip
    head = ("confidence of a", "items", "a", "b", "b less a")
    return Table("Accuracy by band", (*head, *(("ambiguous",) if ambiguous else ())), rows)
