"""The command ``audit train plumbing``: it parses its options, makes one library call and prints the result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from audit.cli_common import names, report, write
from audit.options import Html, Level, Out
from train.cli_options import Form

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to ``audit train``."""
    app.command("plumbing")(plumbing)


def plumbing(
    rollouts: Annotated[
        Path,
        typer.Argument(
            metavar="ROLLOUTS",
            help="Parquet, JSON lines, JSON or CSV of ours, TRL or verl; their folder; or a run's own folder.",
        ),
    ],
    conflicts: Annotated[
        Path | None,
        typer.Option("--conflicts", metavar="FILE", help="What audit dupes --conflicts wrote of the data."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="FILE",
            help="The data, for its classes and, with --item, its items (default: the items seen).",
        ),
    ] = None,
    item: Annotated[
        str | None,
        typer.Option(
            "--item",
            metavar="COLUMNS",
            help="Column(s) of --data and --conflicts that make an item, with commas.",
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option("--label", metavar="COLUMN", help="The label's column, where it is not called label."),
    ] = None,
    reward: Annotated[
        str | None,
        typer.Option(
            "--reward",
            metavar="COLUMNS",
            help="Column(s) that add up to the reward, where TRL logged several.",
        ),
    ] = None,
    cap: Annotated[
        int | None,
        typer.Option("--cap", min=1, help="The most tokens of a completion, where cuts were not logged."),
    ] = None,
    bands: Annotated[
        str,
        typer.Option("--bands", help="Bands of length: how many of equal size, or edges such as 0,128,256."),
    ] = "5",
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            "--tokenizer", metavar="PATH", help="A tokenizer.json, to count tokens that were not logged."
        ),
    ] = None,
    close_tag: Annotated[
        str, typer.Option("--close-tag", metavar="TEXT", help="The tag that ends a thought; '' for none.")
    ] = "</think>",
    level: Level = 0.95,
    form: Form = "text",
    out: Out = None,
    html: Html = None,
) -> None:
    """What a run's rollouts say of its plumbing: does the cap or the gate tax length, does the pool drift?

    Example: audit train plumbing runs/grpo --conflicts conflicts.csv --html plumbing.html
    """
    from audit.writing import check_outputs
    from train.plumbing import plumbing_report

    check_outputs([rollouts, conflicts, data, tokenizer], out, html)
    found = plumbing_report(
        rollouts,
        conflicts=conflicts,
        data=data,
        item=names([item] if item else None),
        label=label,
        reward=names([reward] if reward else None),
        cap=cap,
        bands=_bands(bands),
        tokenizer=tokenizer,
        close_tag=close_tag,
        level=level,
    )
    if html is not None:
        from train.plumbing_page import html as page

        write(html, page(found))
    report(found, form, out)


def _bands(text: str) -> int | tuple[float, ...]:
    try:
        return tuple(map(float, text.split(","))) if "," in text else int(text)
    except ValueError as error:
        from audit.errors import ArgumentError

        raise ArgumentError(f"--bands {text!r}: give a number, or edges such as 0,128,256") from error
