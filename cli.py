"""The ``audit`` command. Each command parses its options, calls one library function and prints the result.

Libraries are imported inside the commands, so that ``audit --help`` is quick. Errors become exit codes in
:func:`main`: 0 done, 1 a gate failed, 2 unusable arguments or input, 3 finished with rows that have no verdict.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from audit import cli_ceiling
from audit import options as o
from audit.cli_common import names, needed, reading, report
from audit.cli_files import register
from audit.cli_usage import invoke

app = typer.Typer(
    name="audit",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="How good are the labels, how high can any score against them go, and what to do about it.",
)


@app.callback()
def common(version: o.Version = False) -> None:
    """How good are the labels, how high can any score against them go, and what to do about it."""


@app.command()
def dupes(
    file: o.File,
    item: o.Item = None,
    label: o.Label = None,
    label_columns: o.LabelColumns = None,
    counts: o.Counts = None,
    row_id: o.RowId = None,
    annotator: o.Annotator = None,
    time: o.Time = None,
    split: o.Split = None,
    by: o.By = None,
    classes: o.Classes = None,
    missing: o.Missing = None,
    normalise: o.Normalise = "case",
    merge_labels: o.MergeLabels = False,
    drop_copies: o.DropCopies = False,
    one_per: o.OnePer = None,
    errors: o.Errors = False,
    strata: o.StrataColumn = None,
    gold: o.Gold = None,
    near: o.Near = None,
    near_pairs: o.NearPairs = 5_000_000,
    near_rows: o.NearRows = None,
    semantic: o.Semantic = None,
    semantic_texts: o.SemanticTexts = 200_000,
    ladder: o.Ladder = None,
    level: o.Level = 0.95,
    draws: o.Draws = 10_000,
    seed: o.Seed = 0,
    interval: o.Interval = "wilson",
    kind: o.Kind = None,
    sep: o.Sep = None,
    empty_set: o.EmptySet = None,
    form: o.Form = "text",
    out: o.Out = None,
    html: o.Html = None,
    conflicts: o.Conflicts = None,
    show_conflicts: o.ShowConflicts = 200,
    fail_under: o.FailUnder = None,
    fail_on: o.FailOn = "lower",
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = None,
    quote: o.Quote = None,
    escape: o.Escape = None,
    sheet: o.Sheet = None,
    ragged: o.Ragged = "error",
    engine: o.Engine = "duckdb",
    master: o.Master = None,
) -> None:
    """Measure how much repeated items disagree, and the accuracy ceiling that follows.

    Example: audit dupes data.csv --item text --label label --split split --html report.html
    """
    from audit.ceiling import check_gate, check_threshold
    from audit.kinds import audit_kind, with_gate
    from audit.writing import check_outputs

    check_outputs([file, gold], out, html, conflicts, near_rows)
    if fail_under is not None:
        check_threshold(fail_under)
    elif fail_on != "lower":
        needed(None, "--fail-on names the end of the band that --fail-under is about: give that as well")
    options: dict[str, Any] = dict(
        item=names(item), label=label, label_columns=names(label_columns), counts=names(counts),
        row_id=row_id, annotator=annotator, time=time, split=split, by=names(by), classes=names(classes) or None,
        missing=names(missing), normalise=normalise, merge_labels=merge_labels, drop_copies=drop_copies,
        one_per=one_per, ladder=ladder, level=level, draws=draws, seed=seed, interval=interval,
        show_conflicts=show_conflicts, conflicts_file=conflicts,
        **reading(locals()), engine=engine, master=master,
        errors=errors, strata=strata, gold=gold, near=near, near_pairs=near_pairs, near_rows=near_rows,
        semantic=semantic,
        semantic_texts=semantic_texts,
    )  # fmt: skip
    result: Any = audit_kind(
        file, kind=kind, sep=sep, empty_set=empty_set, gated=fail_under is not None, options=options
    )
    gate = None
    if fail_under is not None:
        gate = check_gate(result.ceiling, threshold=fail_under, end=fail_on)
        result = with_gate(result, gate)
    report(result, form, out, html)
    if gate is not None:
        typer.echo(gate.message, err=True)
        if not gate.passed:
            raise typer.Exit(1)


cli_ceiling.register(app)


@app.command()
def resolve(
    file: o.File,
    conflicts: Annotated[
        Path,
        typer.Argument(
            metavar="LIST", help="What audit dupes --conflicts or audit issues --out-rows wrote, edited."
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="File to write: the data with the list carried out.")
    ],
    item: o.Item = None,
    label: o.Label = None,
    row_id: Annotated[
        str | None,
        typer.Option(
            "--row-id", metavar="COLUMN", help="Find rows by this column of both files, not by number."
        ),
    ] = None,
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = None,
    quote: o.Quote = None,
    escape: o.Escape = None,
    sheet: o.Sheet = None,
    ragged: o.Ragged = "error",
) -> None:
    """Carry out the column resolve of a list: majority, keep, drop, a label, or relabel (left as it is).

    Example: audit resolve data.csv conflicts.csv --item text --label label --out resolved.csv
    """
    from audit.resolving import resolve_conflicts

    done = resolve_conflicts(
        file, conflicts, out=out, item=names(item), label=label, row_id=row_id,
        **reading(locals()),
    )  # fmt: skip
    typer.echo(done.summary())


@app.command()
def plan(
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="The data file; without one only the number is told."),
    ] = None,
    item: o.Item = None,
    label: o.Label = None,
    half_width: Annotated[
        float,
        typer.Option(
            "--half-width", help="Wanted half-width of the interval of the flip rate: 0.02 is ±2 points."
        ),
    ] = 0.02,
    rate: Annotated[
        float | None,
        typer.Option("--rate", help="Flip rate to plan for, below 0.5 (default: the file's own, else 0.1)."),
    ] = None,
    rows: Annotated[
        int | None, typer.Option("--rows", help="Draw so many items, 1 or more, whatever --half-width says.")
    ] = None,
    by: o.Strata = None,
    show: o.Show = None,
    merge: o.Merge = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="File to write: the plan, or the merged data."),
    ] = None,
    classes: Annotated[
        int, typer.Option("--classes", help="Number of classes, 2 or more, when no file is given.")
    ] = 2,
    missing: o.Missing = None,
    normalise: o.Normalise = "case",
    level: o.Level = 0.95,
    seed: o.Seed = 0,
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = None,
    quote: o.Quote = None,
    escape: o.Escape = None,
    sheet: o.Sheet = None,
    ragged: o.Ragged = "error",
) -> None:
    """Draw rows to label a second time, blind to the first label; --merge brings the answers back.

    Example: audit plan data.csv --item text --label label --half-width 0.02 --out plan.csv
    """
    how = reading(locals())
    if merge is not None:
        from audit.merging import merge_answers

        merged = merge_answers(
            needed(file, "--merge needs the data FILE the plan was drawn from"), merge, item=names(item),
            label=label, out=needed(out, "--merge needs --out FILE for the merged data"),
            missing=names(missing), normalise=normalise, **how,
        )  # fmt: skip
        typer.echo(merged.summary())
        return
    from audit.second_labels import draw_plan, plan_number

    if file is None:
        typer.echo(plan_number(half_width, rate=rate, classes=classes, level=level).summary())
        return
    drawn = draw_plan(
        file, item=names(item), label=label, half_width=half_width, rate=rate, rows=rows, by=names(by),
        show=names(show), out=out, missing=names(missing), normalise=normalise, level=level, seed=seed, **how,
    )  # fmt: skip
    typer.echo(drawn.summary())


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
def relabel(context: typer.Context) -> None:
    """Relabel a file under a written rubric: check, probe, run, agree, review and more."""
    from audit.errors import MissingExtraError

    try:
        from relabel.cli import app as commands
    except ModuleNotFoundError as error:
        if error.name in ("openai", "httpx2"):
            raise MissingExtraError("audit relabel", extra="relabel") from error
        raise
    raise typer.Exit(invoke(commands, args=context.args, name="audit relabel"))


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
def train(context: typer.Context) -> None:
    """See what training on the labels buys: the ladder of methods, and the instruments around it."""
    from train.cli import app as commands

    raise typer.Exit(invoke(commands, args=context.args, name="audit train"))


register(app)


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether an error is Ctrl-C as DuckDB tells it: inside a query, or inside Python that it called."""
    while error is not None:
        if str(error).rstrip(": \n").rpartition("\n")[2] in ("Query interrupted", "KeyboardInterrupt"):
            return True
        error = error.__cause__ or error.__context__
    return False


def main() -> None:
    """Run the command line; turn the package's own errors into one line and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # whatever the locale: reports hold ε, and JSON is UTF-8
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        sys.exit(invoke(app, name="audit"))
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("audit: interrupted", err=True)
        sys.exit(130)
    except OSError as error:  # standard output is full or gone; files are the library's to wrap
        typer.echo(f"audit: {error.strerror or error}: the output could not be written", err=True)
        sys.exit(2)
    except Exception as error:
        from audit.errors import AuditError
        from audit.render_words import visible

        if _is_interrupt(error):
            typer.echo("audit: interrupted", err=True)
            sys.exit(130)
        if not isinstance(error, AuditError):
            raise
        typer.echo(f"audit: {visible(str(error), one_line=True)}", err=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
