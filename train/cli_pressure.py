"""Commands of ``audit train``: pressure and ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from audit.cli_common import deliver, write

__all__ = ["register"]

Form = Annotated[
    Literal["text", "json"], typer.Option("--format", help="Form of the result on standard output.")
]
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
    audit: Annotated[
        Path | None,
        typer.Option(
            "--audit", metavar="FILE", help="JSON of audit dupes: scores are set in its ceiling band."
        ),
    ] = None,
    level: Annotated[float, typer.Option("--level", help="Confidence level of the intervals.")] = 0.95,
    form: Form = "text",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the report to this file instead.")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write the HTML report to this file as well."),
    ] = None,
) -> None:
    """Say how often validation rows were looked at, and whether scores held on the holdout.

    Example: audit train pressure runs --audit dupes.json --html pressure.html
    """
    from audit.writing import check_outputs
    from train import pressure_render
    from train.pressure_report import report_pressure

    check_outputs([ledger, audit], out, html)
    report = report_pressure(ledger, metric=metric, audit=audit, level=level)
    shown = _json(report.to_dict()) if form == "json" else pressure_render.text(report)
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
    rows: Annotated[int | None, typer.Option("--rows", help="Rows behind --metric.")] = None,
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
    from audit.render_words import visible
    from train.pressure_record import parse_metrics, record_evaluation

    entry = record_evaluation(
        ledger, run=run, split=split, model=model, adapter=adapter, scores=scores, positive=positive,
        metrics=parse_metrics(metric or []), rows=rows, family=family, purpose=purpose, key=key, reason=force,
    )  # fmt: skip
    shown = f"recorded the {entry.purpose} score of {entry.run}, model {entry.model}, on {entry.split}"
    typer.echo(_json(entry.to_dict()) if form == "json" else visible(shown, one_line=True))


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
    from audit.render_words import visible
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
    typer.echo(_json(entry.to_dict()) if form == "json" else visible(shown, one_line=True))


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
