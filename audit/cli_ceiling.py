"""The command ``audit ceiling``: a score against what the labels allow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import typer

from audit import options as o
from audit.cli_common import names, reading

__all__ = ["register"]

Metric = Literal[
    "accuracy", "balanced-accuracy", "f1", "precision", "recall", "mcc", "kappa", "auc", "brier", "log-loss",
    "weighted-kappa", "r2", "rmse", "mae",
]  # fmt: skip


def ceiling(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]", help="JSON of audit dupes --format json, or a data file to audit first."
        ),
    ] = None,
    score: Annotated[
        float | None,
        typer.Option("--score", help="The measured score, 0.93 for 93%, of accuracy or of --metric."),
    ] = None,
    metric: Annotated[Metric, typer.Option("--metric", help="What the score is a score of.")] = "accuracy",
    n_test: Annotated[
        int | None, typer.Option("--n-test", help="Test rows the score was measured on (accuracy).")
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option("--positive", metavar="LABEL", help="The positive class (default: the rarer)."),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            "--share", help="The positive class's share of the labels, 0 to 1, if there is no file."
        ),
    ] = None,
    predicted: Annotated[
        float | None,
        typer.Option(
            "--predicted-share",
            help="Share of rows, 0 to 1, that the model calls positive: corrects recall, F1 and kappa.",
        ),
    ] = None,
    item: o.Item = None,
    label: o.Label = None,
    disagreement: Annotated[
        float | None, typer.Option("--disagreement", help="d, 0 to 1, if it is known and there is no file.")
    ] = None,
    pairs: Annotated[int | None, typer.Option("--pairs", help="Pairs behind --disagreement.")] = None,
    classes: Annotated[
        int | None,
        typer.Option("--classes", help="Number of classes, 2 or more, behind --disagreement (default: 2)."),
    ] = None,
    level: Annotated[
        float | None,
        typer.Option("--level", help="Confidence level, between 0 and 1 (default: the audit's, or 0.95)."),
    ] = None,
    form: Annotated[Literal["text", "json"], typer.Option("--format", help="Form of the answer.")] = "text",
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = None,
    quote: o.Quote = None,
    escape: o.Escape = None,
    sheet: o.Sheet = None,
    ragged: o.Ragged = "error",
) -> None:
    """Place a score in the band that holds the ceiling: below, inside, or too good to be true.

    Accuracy is held against the band of several labels an item where 200 items have three or more, else of pairs.

    Example: audit ceiling audit.json --score 0.93 --n-test 500

    weighted-kappa is of grades, r2, rmse and mae are of numbers: of the JSON of audit dupes --kind ordinal or numeric.

    Example: audit ceiling audit.json --metric f1 --score 0.8
    """
    from audit.placing import place
    from audit.placing_metrics import place_metric
    from audit.placing_values import VALUE_METRICS, place_value
    from audit.render import render_json
    from audit.results import Result

    how = reading(locals())
    _check_used(
        file, metric, of_data={**how, "item": item, "label": label}, of_accuracy={"n_test": n_test},
        of_d={"disagreement": disagreement, "pairs": pairs, "classes": classes},
        of_class={"positive": positive, "share": share, "predicted_share": predicted},
    )  # fmt: skip
    classes = 2 if classes is None else classes
    placed: Result
    if metric == "accuracy":
        placed = found = place(
            file, score=score, n_test=n_test, item=names(item), label=label, disagreement=disagreement, pairs=pairs,
            classes=classes, level=level, **how,
        )  # fmt: skip
        text = found.summary()
    elif metric in VALUE_METRICS:
        placed = value = place_value(metric, score, file, item=names(item), label=label, level=level, **how)
        text = value.summary()
    else:
        placed = other = place_metric(
            metric, score, file, item=names(item), label=label, disagreement=disagreement, pairs=pairs,
            classes=classes, share=share, positive=positive, predicted=predicted, level=level, **how,
        )  # fmt: skip
        text = other.summary()
    typer.echo(render_json(placed) if form == "json" else text)


def _check_used(
    file: str | None, metric: str, *, of_data: Mapping[str, Any], of_accuracy: Mapping[str, Any],
    of_d: Mapping[str, Any], of_class: Mapping[str, Any],
) -> None:  # fmt: skip
    """Raise an ArgumentError that names an option which this metric, or this kind of source, does not use."""
    from audit.errors import ArgumentError
    from audit.placing_values import VALUE_METRICS
    from audit.reading_saved import is_saved

    def refuse(options: Mapping[str, Any], why: str) -> None:
        for name, value in options.items():
            if value is not None and not (name == "ragged" and value == "error"):
                option = {"quoting": "quote"}.get(name, name.replace("_", "-"))
                raise ArgumentError(f"--{option} {why}")

    if metric != "accuracy":
        refuse(of_accuracy, f"is of --metric accuracy, not of {metric}: leave it out")
    if metric in ("accuracy", *VALUE_METRICS):
        refuse(of_class, f"is of metrics of a positive class, not of {metric}: leave it out")
    if metric in VALUE_METRICS:
        refuse(of_d, f"is of labels that are classes: {metric} is placed against a FILE")
    elif file is not None and of_d["disagreement"] is None:
        refuse(of_d, "stands beside --disagreement, where there is no FILE: the file says it")
    if file is None:
        refuse(of_data, "is of a FILE of data, and there is none")
    elif is_saved(file):
        refuse(of_data, f"is of a file of data, and {file} holds a saved audit: leave it out")


def register(app: typer.Typer) -> None:
    """Add the command to ``audit``."""
    app.command()(ceiling)
