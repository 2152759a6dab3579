"""The commands ``audit train operating-point`` and ``route``: each parses, makes one library call and prints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from audit.cli_common import report, write
from audit.options import Html, Level, Out, Seed
from train.cli_options import Form

__all__ = ["register"]

ScoreFile = Annotated[
    str,
    typer.Argument(
        metavar="SCORES",
        help="Rows with item, label, score, prediction (CSV, Parquet, JSONL), or a run's folder.",
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        "--positive", metavar="LABEL", help="The positive label (default: 1, or the greater of two)."
    ),
]
Split = Annotated[
    str | None,
    typer.Option("--split", metavar="NAME", help="Split of a run's folder or of the column split."),
]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="COLUMN", help="Rows of one value (a document) are drawn together."),
]
Common = Annotated[bool, typer.Option("--common", help="Leave out items that only one of the files has.")]
DropUnscored = Annotated[
    bool, typer.Option("--drop-unscored", help="Leave out rows without a score instead of stopping.")
]
Draws = Annotated[int, typer.Option("--draws", help="Bootstrap draws, 100 or more.")]
ItemColumn = Annotated[str, typer.Option("--item", metavar="COLUMN", help="Column of the items' keys.")]
LabelColumn = Annotated[str, typer.Option("--label", metavar="COLUMN", help="Column of the labels.")]
ScoreColumn = Annotated[str, typer.Option("--score", metavar="COLUMN", help="Column of P(positive).")]
PredictionColumn = Annotated[
    str, typer.Option("--prediction", metavar="COLUMN", help="Column of the answers; empty is no answer.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to ``audit train``."""
    app.command("operating-point")(operating_point)
    app.command("route")(route)


def operating_point(
    scores: ScoreFile,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="OTHER",
            help="Another run's answers on the same rows: is it but a threshold?",
        ),
    ] = None,
    match: Annotated[
        Literal["recall", "precision", "share"],
        typer.Option("--match", help="What our threshold matches of the other run (share: called positive)."),
    ] = "recall",
    margin: Annotated[
        float, typer.Option("--margin", help="A difference that does not matter, 0 to 1.")
    ] = 0.002,
    choose_on: Annotated[
        str | None,
        typer.Option(
            "--choose-on",
            metavar="VALIDATION",
            help="Other rows of the model, to choose the best threshold on.",
        ),
    ] = None,
    choose_split: Annotated[
        str | None,
        typer.Option("--choose-split", metavar="NAME", help="Split of --choose-on (default: its only one)."),
    ] = None,
    stratified: Annotated[
        bool, typer.Option("--stratified", help="Keep the number of rows of each class in every draw.")
    ] = False,
    positive: Positive = None,
    split: Split = None,
    cluster: Cluster = None,
    common: Common = False,
    drop_unscored: DropUnscored = False,
    item: ItemColumn = "item",
    label: LabelColumn = "label",
    score: ScoreColumn = "score",
    prediction: PredictionColumn = "prediction",
    level: Level = 0.95,
    draws: Draws = 2_000,
    seed: Seed = 0,
    form: Form = "text",
    out: Out = None,
    html: Html = None,
) -> None:
    """Find what thresholds give, which is best, and whether another run does more than a threshold.

    Example: audit train operating-point sft.parquet --against grpo.parquet --html points.html
    """
    from audit.writing import check_outputs
    from train.operating import operating_point as measure
    from train.scores import Columns

    check_outputs([scores, against, choose_on], out, html)
    result = measure(
        scores, against=against, match=match, margin=margin, choose_on=choose_on, choose_split=choose_split,
        stratified=stratified, positive=positive, split=split, cluster=cluster, common=common,
        drop_unscored=drop_unscored, columns=Columns(item=item, label=label, score=score, prediction=prediction),
        level=level, draws=draws, seed=seed,
    )  # fmt: skip
    if html is not None:
        from train.operating_page import operating_page

        write(html, operating_page(result))
    report(result, form, out)


def route(
    a: Annotated[
        str,
        typer.Argument(metavar="A", help="Scores of the cheap model, with scores or a column confidence."),
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="Scores or answers of the dear model, same items.")],
    metric: Annotated[
        Literal["accuracy", "balanced_accuracy"],
        typer.Option("--metric", help="What the verdict and the differences are about."),
    ] = "accuracy",
    cost_a: Annotated[
        float | None, typer.Option("--cost-a", help="Cost of an item with A, in any unit.")
    ] = None,
    cost_b: Annotated[
        float | None, typer.Option("--cost-b", help="Cost of an item with B, in the same unit.")
    ] = None,
    margin: Annotated[
        float, typer.Option("--margin", help="What the metric, 0 to 1, may lose against always asking B.")
    ] = 0.01,
    flip_rate: Annotated[
        float | None,
        typer.Option(
            "--flip-rate", help="Error rate of the labels, 0 to 0.5 (audit dupes): out of any reach."
        ),
    ] = None,
    conflicts: Annotated[
        Path | None,
        typer.Option(
            "--conflicts", metavar="FILE", help="What audit dupes --conflicts wrote: ambiguous items."
        ),
    ] = None,
    conflicts_item: Annotated[
        str | None,
        typer.Option(
            "--conflicts-item", metavar="COLUMN", help="Column of --conflicts with the items' keys."
        ),
    ] = None,
    positive: Positive = None,
    split: Split = None,
    cluster: Cluster = None,
    common: Common = False,
    drop_unscored: DropUnscored = False,
    item: ItemColumn = "item",
    label: LabelColumn = "label",
    score: ScoreColumn = "score",
    prediction: PredictionColumn = "prediction",
    level: Level = 0.95,
    draws: Draws = 2_000,
    seed: Seed = 0,
    form: Form = "text",
    out: Out = None,
    html: Html = None,
) -> None:
    """See where two models differ, and whether the cheap one's confidence knows when to ask the dear one.

    Example: audit train route sft.parquet grpo.parquet --cost-a 1 --cost-b 30 --conflicts conflicts.csv
    """
    from audit.writing import check_outputs
    from train.route import route as compare
    from train.scores import Columns

    check_outputs([a, b, conflicts], out, html)
    result = compare(
        a, b, metric=metric, cost_a=cost_a, cost_b=cost_b, margin=margin, flip_rate=flip_rate, conflicts=conflicts,
        conflicts_item=conflicts_item, positive=positive, split=split, cluster=cluster, common=common,
        drop_unscored=drop_unscored, columns=Columns(item=item, label=label, score=score, prediction=prediction),
        level=level, draws=draws, seed=seed,
    )  # fmt: skip
    if html is not None:
        from train.route_page import route_page

        write(html, route_page(result))
    report(result, form, out)
