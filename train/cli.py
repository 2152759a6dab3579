"""The commands of ``audit train``. Each parses its options, makes one library call and prints the result."""

from __future__ import annotations

import typer

from train import cli_compare, cli_ladder, cli_plumbing, cli_pressure, cli_scores

app = typer.Typer(
    name="train",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="What training on these labels really buys: a ladder of methods, and the instruments around it.",
)


@app.callback()
def common() -> None:
    """What training on these labels really buys: a ladder of methods, and the instruments around it."""


for part in (cli_plumbing, cli_scores, cli_pressure, cli_compare, cli_ladder):
    part.register(app)
