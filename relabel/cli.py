"""The commands of ``audit relabel``. Each parses its options, makes one library call and prints the result."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from audit.cli_common import reading
from audit.options import Delimiter, Encoding, Escape, Quote, Ragged, Sheet
from relabel.cli_endpoint import probe, rehearse
from relabel.cli_people import make_job, register

app = typer.Typer(
    name="relabel",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Relabel a file under a written rubric, with labels that can be traced, trusted and resumed.",
)

Form = Annotated[
    Literal["text", "json"], typer.Option("--format", help="Form of the result on standard output.")
]
Data = Annotated[
    str, typer.Argument(metavar="DATA", help="Any file that audit dupes reads, or - for standard input.")
]
RubricFile = Annotated[
    Path, typer.Option("--rubric", metavar="FILE", help="The rubric (Markdown, see docs/relabel.md).")
]
JudgeModel = Annotated[
    str, typer.Option("--judge", metavar="MODEL", help="The model that judges every item.")
]
Adjudicator = Annotated[
    str | None,
    typer.Option("--adjudicator", metavar="MODEL", help="The model that the judge's least sure items go to."),
]
BaseUrl = Annotated[
    str | None,
    typer.Option("--base-url", metavar="URL", help="The endpoint (default: OPENAI_BASE_URL, or OpenAI's)."),
]
AdjudicatorUrl = Annotated[
    str | None,
    typer.Option(
        "--adjudicator-base-url", metavar="URL", help="The adjudicator's endpoint (default: --base-url)."
    ),
]
JournalFile = Annotated[
    Path | None, typer.Option("--journal", metavar="FILE", help="The journal (default: beside --out).")
]
OutFile = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="The relabelled table: .csv, .tsv, .jsonl or .parquet."),
]
Concurrency = Annotated[int, typer.Option("--concurrency", min=1, help="The most requests at once.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed sent to the endpoint, and of every draw made here.")]
Temperature = Annotated[
    float, typer.Option("--temperature", help="Sampling temperature; below 0 leaves it to the endpoint.")
]
MaxTokens = Annotated[
    int, typer.Option("--max-tokens", min=1, help="Tokens for one reply; raised once where a reply is cut.")
]
Samples = Annotated[
    int,
    typer.Option(
        "--samples", min=1, help="Samples per item where the endpoint gives no log-probabilities; 1 for one."
    ),
]
Timeout = Annotated[float, typer.Option("--timeout", help="Seconds for one request.")]


@app.command()
def check(
    rubric: Annotated[Path, typer.Argument(metavar="RUBRIC", help="The rubric to check.")],
    data: Annotated[
        str | None, typer.Option("--data", metavar="FILE", help="Show the messages for a row of this table.")
    ] = None,
    row: Annotated[int, typer.Option("--row", min=1, help="Which row of --data.")] = 1,
    form: Form = "text",
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    quote: Quote = None,
    escape: Escape = None,
    sheet: Sheet = None,
    ragged: Ragged = "error",
) -> None:
    """Check a rubric and show the exact messages a judge is sent.

    Example: audit relabel check rubric.md --data data.csv --row 12
    """
    from relabel.checking import check_rubric

    report = check_rubric(rubric, data=data, row=row, **reading(locals()))
    typer.echo(_json(report) if form == "json" else report.summary())
    if not report.usable:
        raise typer.Exit(1)


@app.command()
def run(
    data: Data,
    rubric: RubricFile,
    judge: JudgeModel,
    adjudicator: Adjudicator = None,
    base_url: BaseUrl = None,
    adjudicator_base_url: AdjudicatorUrl = None,
    journal: JournalFile = None,
    out: OutFile = None,
    label: Annotated[
        str | None,
        typer.Option(
            "--label", metavar="COLUMN", help="The old labels, to compare with; no model sees them."
        ),
    ] = None,
    escalate: Annotated[
        str | None,
        typer.Option(
            "--escalate",
            metavar="SHARE",
            help="Share for the adjudicator, 0.2 or 20% (default with one: 15%).",
        ),
    ] = None,
    escalate_below: Annotated[
        float | None, typer.Option("--escalate-below", help="Adjudicate all below this confidence, 0 to 1.")
    ] = None,
    gold: Annotated[
        str | None, typer.Option("--gold", metavar="FILE", help="A sample with right labels, to measure on.")
    ] = None,
    gold_label: Annotated[
        str | None,
        typer.Option(
            "--gold-label",
            metavar="COLUMN",
            help="The right labels' column in --gold (default: gold, gold_label, truth, true_label or label, or the"
            " only column that is no input).",
        ),
    ] = None,
    target_agreement: Annotated[
        float | None,
        typer.Option(
            "--target-agreement",
            help="Adjudicate all that --gold cannot vouch for at this agreement, such as 0.9.",
        ),
    ] = None,
    concurrency: Concurrency = 64,
    seed: Seed = 0,
    temperature: Temperature = 0.0,
    max_tokens: MaxTokens = 512,
    samples: Samples = 5,
    timeout: Timeout = 120.0,
    batch: Annotated[
        Path | None,
        typer.Option(
            "--batch",
            metavar="FOLDER",
            help="Ask by files of the Batch API, at half the price: writes them there, and takes their replies in when"
            " the same command is given again.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell rows, requests, tokens and cost; ask nothing.")
    ] = False,
    budget: Annotated[
        float | None, typer.Option("--budget", help="US dollars that all runs of this journal may cost.")
    ] = None,
    price_in: Annotated[
        float | None, typer.Option("--price-in", help="US dollars per million tokens read.")
    ] = None,
    price_out: Annotated[
        float | None, typer.Option("--price-out", help="US dollars per million tokens written.")
    ] = None,
    adjudicator_price_in: Annotated[
        float | None, typer.Option("--adjudicator-price-in", help="The same for the adjudicator.")
    ] = None,
    adjudicator_price_out: Annotated[
        float | None, typer.Option("--adjudicator-price-out", help="The same for the adjudicator.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for another run on the same journal instead of stopping.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on standard error.")] = False,
    form: Form = "text",
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    quote: Quote = None,
    escape: Escape = None,
    sheet: Sheet = None,
    ragged: Ragged = "error",
) -> None:
    """Judge every distinct item, adjudicate the least sure, write the table with clean labels.

    The key is read from OPENAI_API_KEY (and ADJUDICATOR_API_KEY where the adjudicator has another). The same
    command goes on where an earlier one stopped. Exit code 3: some rows have no verdict.

    Example: audit relabel run data.csv --rubric rubric.md --judge gpt-4o-mini --adjudicator gpt-4o --out clean.csv
    """
    job = make_job(locals())
    if dry_run:
        plan = job.plan()
        typer.echo(_json(plan) if form == "json" else plan.summary())
        return
    from relabel.console import Console

    console = Console(sys.stderr, quiet=quiet)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # a polite end, as on Ctrl-C
    try:
        told: dict[str, Any] = {"on_progress": console.progress, "on_notice": console.notice}
        if batch is None:
            result = job.run(**told)
        else:
            from relabel.batch_run import run_batch

            result = run_batch(job, folder=batch, **told)
    finally:
        console.close()
        signal.signal(signal.SIGTERM, before)
    typer.echo(_json(result) if form == "json" else result.summary())
    raise typer.Exit(result.exit_code)


@app.command()
def status(
    journal: Annotated[Path, typer.Argument(metavar="JOURNAL", help="The journal of a run.")],
    form: Form = "text",
) -> None:
    """Show what a journal holds: replies by status, tokens and cost by model. Works while a run writes.

    Example: audit relabel status clean.journal.sqlite
    """
    from relabel.checking import journal_status

    report = journal_status(journal)
    typer.echo(_json(report) if form == "json" else report.summary())


app.command()(probe)
app.command()(rehearse)
register(app, run=run)


def _json(result: Any) -> str:
    from audit.render import render_json

    return render_json(result)
