"""Commands of ``audit train``: compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from audit.cli_common import deliver, write
from audit.options import Draws, Html, Level, Out, Seed
from train.cli_options import Audit

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands to ``audit train``."""
    app.command()(compare)


def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUNS", help="Run folders, or a folder that holds them.")
    ],
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", metavar="NAME", help="The run that others are set against (default: the first)."
        ),
    ] = None,
    pair: Annotated[
        list[str] | None,
        typer.Option(
            "--pair", metavar="RUN:AGAINST", help="One more difference, such as grpo:sft-clean; repeat it."
        ),
    ] = None,
    split: Annotated[
        str, typer.Option("--split", metavar="NAME", help="The split whose scores are compared.")
    ] = "test",
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="The tested metric: accuracy, balanced_accuracy, precision, recall, specificity, f1 or mcc.",
        ),
    ] = "balanced_accuracy",
    audit: Audit = None,
    positive: Annotated[
        str | None,
        typer.Option("--positive", metavar="LABEL", help="The positive label (default: the run's own)."),
    ] = None,
    common: Annotated[
        bool, typer.Option("--common", help="Compare on the items that all runs have, where they differ.")
    ] = False,
    level: Level = 0.95,
    draws: Draws = 2_000,
    seed: Seed = 0,
    form: Annotated[
        Literal["text", "json", "markdown"],
        typer.Option("--format", help="Form of the report on standard output."),
    ] = "text",
    out: Out = None,
    html: Html = None,
) -> None:
    """Compare finished runs on the same items: what each adds, whether that is more than chance, and its cost.

    Example: audit train compare runs --baseline sft-noisy --audit dupes.json --html compare.html
    """
    from audit.errors import ArgumentError
    from audit.render import render_json
    from audit.writing import check_outputs
    from train import compare_render
    from train.compare import compare_runs

    check_outputs([*runs, audit], out, html)
    pairs = []
    for text in pair or ():
        one, sign, against = text.partition(":")
        if not (sign and one and against):
            raise ArgumentError(
                f"--pair {text!r}: write two runs with a colon between, such as grpo:sft-clean"
            )
        pairs.append((one, against))
    found = compare_runs(
        runs, baseline=baseline, pairs=pairs, split=split, metric=metric, audit=audit, positive=positive,
        common=common, level=level, draws=draws, seed=seed,
    )  # fmt: skip
    if form == "json":
        shown = render_json(found)
    else:
        shown = compare_render.markdown(found) if form == "markdown" else compare_render.text(found)
    if html is not None:
        write(html, compare_render.html(found))
    deliver(shown, out)
