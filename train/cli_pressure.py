"""Commands of ``audit train``: pressure and ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from audit.cli_common import deliver, write
from audit.options import Html, Level, Out
from train.cli_options import Audit, Form

__all__ = ["register"]

LedgerFile = Annotated[
    Path, typer.Argument(metavar="LEDGER", help="The ledger, or the folder that holds its ledger.jsonl.")
]
Run = Annotated[str, typer.Option("--run", metavar="NAME", help="The run that the model comes from.")]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="What tells the model from others: a digest, a name."),
]
Adapter = Annotated[
    Path | None,
    typer.Option("--adapter", metavar="PATH", help="The model's files instead: their digest is its name."),
]
Family = Annotated[
    str | None,
    typer.Option(
        "--family", metavar="NAME", help="Candidates that one choice is made from (default: --run)."
    ),
]
Split = Annotated[str, typer.Option("--split", metavar="NAME", help="The split that is looked at.")]
Force = Annotated[
    str | None,
    typer.Option("--force", metavar="REASON", help="Open a holdout again; the ledger keeps the reason."),
]

ledger_app = typer.Typer(
    name="ledger",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Keep the ledger of evaluations by hand: record a score, open a holdout.",
)


def register(app: typer.Typer) -> None:
    """Add the commands to ``audit train``."""
    app.command()(pressure)
    app.add_typer(ledger_app)


def pressure(
    ledger: LedgerFile,
    metric: Annotated[
        str | None,
        typer.Option("--metric", metavar="NAME", help="The score (default: balanced accuracy, or accuracy)."),
    ] = None,
    audit: Audit = None,
    level: Level = 0.95,
    form: Form = "text",
    out: Out = None,
    html: Html = None,
) -> None:
    """Say how often validation rows were looked at, and whether scores held on the holdout.

    Example: audit train pressure runs --audit dupes.json --html pressure.html
    """
    from audit.render import render_json
    from audit.writing import check_outputs
    from train import pressure_render
    from train.pressure_report import report_pressure

    check_outputs([ledger, audit], out, html)
    report = report_pressure(ledger, metric=metric, audit=audit, level=level)
    shown = render_json(report) if form == "json" else pressure_render.text(report)
    if html is not None:
        write(html, pressure_render.html(report))
    deliver(shown, out)


@ledger_app.command()
def record(
    ledger: LedgerFile,
    run: Run,
    split: Split = "validation",
    model: Model = None,
    adapter: Adapter = None,
    scores: Annotated[
        str | None,
        typer.Option("--scores", metavar="FILE", help="Evaluated rows: item, label, score, prediction."),
    ] = None,
    positive: Annotated[
        str | None, typer.Option("--positive", metavar="LABEL", help="The positive label of --scores.")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", metavar="NAME=NUMBER", help="A metric, where there is no score file; repeat it."
        ),
    ] = None,
    rows: Annotated[int | None, typer.Option("--rows", help="Rows behind --metric, 1 or more.")] = None,
    family: Family = None,
    purpose: Annotated[
        Literal["validation", "holdout"],
        typer.Option(
            "--purpose", help="validation: choices are made by it; holdout: opened once, at the end."
        ),
    ] = "validation",
    key: Annotated[
        Literal["noisy", "clean"] | None,
        typer.Option("--key", help="Measured against labels as they came, or against a clean key."),
    ] = None,
    force: Force = None,
    form: Form = "text",
) -> None:
    """Write down one evaluation that was made elsewhere.

    Example: audit train ledger record runs --run sft --model epoch-3 --scores validation.csv --key clean
    """
    from train.pressure_record import parse_metrics, record_evaluation

    entry = record_evaluation(
        ledger, run=run, split=split, model=model, adapter=adapter, scores=scores, positive=positive,
        metrics=parse_metrics(metric or []), rows=rows, family=family, purpose=purpose, key=key, reason=force,
    )  # fmt: skip
    shown = f"recorded the {entry.purpose} score of {entry.run}, model {entry.model}, on {entry.split}"
    _tell(entry, shown, form)


@ledger_app.command("open")
def open_(
    ledger: LedgerFile,
    run: Run,
    split: Split = "test",
    model: Model = None,
    adapter: Adapter = None,
    family: Family = None,
    force: Force = None,
    form: Form = "text",
) -> None:
    """Open a holdout for a final model, before it is scored; a second opening is refused.

    Example: audit train ledger open runs --run sft --model epoch-3 --split test
    """
    from train.pressure import Ledger
    from train.pressure_record import model_name

    entry = Ledger(ledger).open_holdout(
        model=model_name(model, adapter), split=split, run=run, family=family, reason=force
    )
    shown = (
        f"opened {entry.split} for model {entry.model}"
        if entry.kind == "opening"
        else f"{entry.split} is open"
    )
    _tell(entry, shown, form)


def _tell(entry: Any, shown: str, form: str) -> None:
    from audit.render import render_json
    from audit.render_words import visible

    typer.echo(render_json(entry) if form == "json" else visible(shown, one_line=True))
