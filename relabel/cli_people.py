"""The commands ``audit relabel explain``, ``agree``, ``review`` and ``batch``.

Each takes the options of ``audit relabel run``, so that "the same command" means the same job; `register` copies
them from there, and a command names only what it adds.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from audit.cli_common import reading
from audit.options import Level

__all__ = ["make_job", "register"]

_JOB = (
    "data", "rubric", "judge", "adjudicator", "base_url", "adjudicator_base_url", "journal", "out", "label",
    "escalate", "escalate_below", "gold", "gold_label", "target_agreement", "concurrency", "seed", "temperature",
    "max_tokens", "samples", "timeout", "budget", "price_in", "price_out", "adjudicator_price_in",
    "adjudicator_price_out", "wait", "form", "delimiter", "encoding", "quote", "escape", "sheet", "ragged",
)  # fmt: skip
_READING = ("delimiter", "encoding", "quote", "escape", "sheet", "ragged")
_FILES = ("data", "rubric", "journal", "out", "wait", "form", *_READING)
Folder = Annotated[Path, typer.Option("--dir", metavar="FOLDER", help="The folder of the batch's files.")]
BatchRole = Annotated[
    Literal["judge", "adjudicator"], typer.Option("--role", help="Whose requests: the judge's come first.")
]


def register(app: typer.Typer, *, run: Callable[..., None]) -> None:
    """Add the commands to ``app``; ``run`` is the command whose options they share."""
    review = typer.Typer(help="Hand the items nobody is sure of to people, and take their answers in.")
    batch = typer.Typer(help="Write and collect the files of OpenAI's Batch API.")
    for group, name in ((review, "review"), (batch, "batch")):
        group.info.no_args_is_help = True
        app.add_typer(group, name=name)
    app.command("explain")(_with(run, _explain, _JOB))
    app.command("agree")(_with(run, _agree, (*_JOB, "quiet")))
    review.command("export")(_with(run, _export, _JOB))
    review.command("import")(_with(run, _import, _FILES))
    batch.command("write")(_with(run, _write, _JOB))
    batch.command("collect")(_with(run, _collect, _JOB))


def _with(
    run: Callable[..., None], command: Callable[..., Any], names: tuple[str, ...]
) -> Callable[..., None]:
    """``command`` with the named options of ``run`` after its own; it is called with a job, and prints a result."""
    own = inspect.signature(command, eval_str=True).parameters
    shared = inspect.signature(run, eval_str=True).parameters
    mine = [one for name, one in own.items() if name not in ("job", "options")]
    taken = [shared[name] for name in names if name not in own]
    needed = [one for one in (*taken, *mine) if one.default is inspect.Parameter.empty]
    rest = [one for one in (*mine, *taken) if one.default is not inspect.Parameter.empty]

    def called(**options: Any) -> None:
        job = make_job({name: options.get(name, _default(shared[name])) for name in shared})
        result = command(job, **{one.name: options[one.name] for one in mine}, options=options)
        if options["form"] != "json":
            typer.echo(
                "\n".join(one.summary() for one in result) if isinstance(result, tuple) else result.summary()
            )
        else:
            found = [one.to_dict() for one in result] if isinstance(result, tuple) else result.to_dict()
            typer.echo(json.dumps(found, ensure_ascii=False, indent=2, allow_nan=False))
        raise typer.Exit(getattr(result, "exit_code", 0))

    called.__doc__ = command.__doc__
    keyword = inspect.Parameter.KEYWORD_ONLY
    called.__signature__ = inspect.Signature([one.replace(kind=keyword) for one in (*needed, *rest)])  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in (*needed, *rest)}
    return called


def _default(parameter: inspect.Parameter) -> Any:
    """Its default; a job that asks nobody needs no judge."""
    return "none" if parameter.default is inspect.Parameter.empty else parameter.default


def make_job(o: Mapping[str, Any]) -> Any:
    """The job that the options of ``audit relabel run`` stand for."""
    from relabel.connect import Settings
    from relabel.run import Job

    return Job(
        source=o["data"],
        rubric=o["rubric"],
        judge=o["judge"],
        adjudicator=o["adjudicator"],
        base_url=o["base_url"],
        adjudicator_base_url=o["adjudicator_base_url"],
        out=o["out"],
        journal=o["journal"],
        label=o["label"],
        escalate=o["escalate"],
        escalate_below=o["escalate_below"],
        target_agreement=o["target_agreement"],
        gold=o["gold"],
        gold_label=o["gold_label"],
        prices=(o["price_in"], o["price_out"]),
        adjudicator_prices=(o["adjudicator_price_in"], o["adjudicator_price_out"]),
        budget=o["budget"],
        settings=Settings(
            concurrency=o["concurrency"],
            seed=o["seed"],
            temperature=o["temperature"] if o["temperature"] >= 0 else None,
            max_tokens=o["max_tokens"],
            samples=o["samples"],
            timeout=o["timeout"],
        ),
        wait=-1.0 if o["wait"] else 0.0,
        reading=reading(o),
    )


def _explain(
    job: Any,
    *,
    row: Annotated[int, typer.Option("--row", min=1, help="The data row, counted from 1.")],
    options: dict[str, Any],
) -> Any:
    """Say why a row's verdict would be used again by the same command, or why it would not.

    Example: audit relabel explain data.csv --row 12 --rubric rubric.md --judge gpt-4o-mini --out clean.csv
    """
    return job.explain(row)


def _agree(
    job: Any,
    *,
    items: Annotated[
        int,
        typer.Option("--items", min=2, help="Items to put through again, and at most so many with repeats."),
    ] = 500,
    draws: Annotated[int, typer.Option("--draws", min=1, help="Fresh draws for each of them.")] = 1,
    keep_order: Annotated[
        bool, typer.Option("--keep-order", help="Leave labels and clauses in the rubric's order.")
    ] = False,
    gold_weight: Annotated[
        str | None,
        typer.Option(
            "--gold-weight", metavar="COLUMN", help="In --gold: 1/(chance that the item was drawn)."
        ),
    ] = None,
    level: Level = 0.95,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell items, judgements and cost; ask nothing.")
    ] = False,
    options: dict[str, Any],
) -> Any:
    """Put a sample through the whole pipeline again and measure how far its labels agree with themselves.

    Give the options of the run. Beside d, flip rate and ceiling of the new labels stand those of the old ones
    (--label) on the same items; with --gold, also accuracy, confusion and gold-corrected shares of the classes.

    Example: audit relabel agree data.csv --rubric rubric.md --judge gpt-4o-mini --out clean.csv --label label
    """
    if dry_run:
        from relabel.agree_plan import plan_audit

        return plan_audit(job, items=items, draws=draws)
    from relabel.agree import audit_pipeline
    from relabel.console import Console

    console = Console(sys.stderr, quiet=options["quiet"])
    result = audit_pipeline(
        job,
        items=items,
        draws=draws,
        shuffle=not keep_order,
        gold_weight=gold_weight,
        level=level,
        on_progress=console.progress,
        on_notice=console.notice,
    )
    console.close()
    return result


def _export(
    job: Any,
    *,
    review: Annotated[
        Path,
        typer.Option(
            "--to", metavar="FILE", help=".json for Label Studio; .csv, .xlsx ... for a table to fill in."
        ),
    ],
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Label Studio's configuration (default: beside --to)."),
    ] = None,
    below: Annotated[
        float, typer.Option("--below", help="A label under this confidence, 0 to 1, is unsure.")
    ] = 0.8,
    most: Annotated[int, typer.Option("--most", min=1, help="At most so many items, the least sure.")] = 200,
    blind: Annotated[
        bool, typer.Option("--blind", help="Leave out what the models and the old labels say.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Also items that people answered before.")] = False,
    options: dict[str, Any],
) -> Any:
    """Write the items nobody is sure of for people: both verdicts, rationale, the clause cited. Asks nothing.

    Example: audit relabel review export data.csv --rubric rubric.md --judge gpt-4o-mini --out clean.csv
    --to review.json
    """
    from relabel.review import export_review

    return export_review(job, out=review, config_out=config, below=below, most=most, blind=blind, again=again)


def _import(
    job: Any,
    *,
    answers: Annotated[
        Path,
        typer.Option("--answers", metavar="FILE", help="Label Studio's export, or the table filled in."),
    ],
    options: dict[str, Any],
) -> Any:
    """Take people's answers into the journal; with the next audit relabel run they win.

    Example: audit relabel review import data.csv --rubric rubric.md --out clean.csv --answers answers.json
    """
    from relabel.review import import_review

    return import_review(job, answers)


def _write(
    job: Any,
    *,
    folder: Folder,
    role: BatchRole = "judge",
    max_requests: Annotated[
        int, typer.Option("--max-requests", min=1, help="Most requests in one file.")
    ] = 50_000,
    max_bytes: Annotated[
        int, typer.Option("--max-bytes", min=1, help="Most bytes in one file.")
    ] = 200_000_000,
    options: dict[str, Any],
) -> Any:
    """Write the requests that are not answered yet as files of the Batch API. Asks nothing.

    Example: audit relabel batch write data.csv --rubric rubric.md --judge gpt-4o-mini --out clean.csv --dir batch1
    """
    from relabel.batch import write_batch

    return write_batch(job, folder=folder, role=role, max_requests=max_requests, max_bytes=max_bytes)


def _collect(job: Any, *, folder: Folder, role: BatchRole = "judge", options: dict[str, Any]) -> Any:
    """Take the batch's output and error files, put into the same folder, into the journal.

    Example: audit relabel batch collect data.csv --rubric rubric.md --judge gpt-4o-mini --out clean.csv --dir batch1
    """
    from relabel.batch import collect_batch

    return collect_batch(job, folder=folder, role=role)
