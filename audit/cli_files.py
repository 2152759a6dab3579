"""Commands of ``audit`` over several files: ``compare`` and ``leak``, and ``issues`` with a model beside the data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from audit import options as o
from audit.cli_common import names, reading, report

__all__ = ["register"]


def compare(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="The file with the earlier labels.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="The file with the later labels.")],
    item: o.Item = None,
    label: o.Label = None,
    label_after: Annotated[
        str | None,
        typer.Option(
            "--label-after", metavar="COLUMN", help="The label column of AFTER, if its name differs."
        ),
    ] = None,
    row_id: Annotated[
        str | None,
        typer.Option(
            "--row-id",
            metavar="COLUMN",
            help="Compare rows of one id (default: items, by their usual label).",
        ),
    ] = None,
    missing: o.Missing = None,
    normalise: o.Normalise = "case",
    level: o.Level = 0.95,
    draws: o.Draws = 10_000,
    seed: o.Seed = 0,
    interval: o.Interval = "wilson",
    form: o.Form = "text",
    out: o.Out = None,
    html: o.Html = None,
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = None,
    quote: o.Quote = None,
    escape: o.Escape = None,
    sheet: o.Sheet = None,
    ragged: o.Ragged = "error",
) -> None:
    """Tell whether labels got better: d before and after on the same items, and what moved.

    Example: audit compare old.csv new.csv --item text --label label --label-after label_clean
    """
    from audit.comparing import compare_files
    from audit.writing import check_outputs

    check_outputs([before, after], out, html)
    result = compare_files(
        before, after, item=names(item), label=label, label_after=label_after, row_id=row_id,
        missing=names(missing), normalise=normalise, level=level, draws=draws, seed=seed, interval=interval,
        **reading(locals()),
    )  # fmt: skip
    report(result, form, out, html)


def leak(
    train: Annotated[str, typer.Argument(metavar="TRAIN", help="The file that models are trained on.")],
    test: Annotated[str, typer.Argument(metavar="TEST", help="The file that they are tested on.")],
    item: o.Item = None,
    label: Annotated[
        str | None,
        typer.Option("--label", metavar="COLUMN", help="The label column: do leaked items keep their label?"),
    ] = None,
    label_test: Annotated[
        str | None,
        typer.Option("--label-test", metavar="COLUMN", help="The label column of TEST, if its name differs."),
    ] = None,
    missing: o.Missing = None,
    normalise: o.Normalise = "case",
    level: o.Level = 0.95,
    show: Annotated[int, typer.Option("--show", help="Leaked items kept in the report.")] = 20,
    rows: Annotated[
        Path | None, typer.Option("--rows", metavar="FILE", help="Write every leaked test row to this table.")
    ] = None,
    clean_test: Annotated[
        Path | None,
        typer.Option("--clean-test", metavar="FILE", help="Write the test file without the rows that leak."),
    ] = None,
    near: Annotated[
        float | None,
        typer.Option(
            "--near", help="Also look for test texts so alike a training text (0.5 to 1), such as 0.85."
        ),
    ] = None,
    semantic: Annotated[
        float | None,
        typer.Option(
            "--semantic", help="Also look for test texts whose words are so alike (cosine, up to 1)."
        ),
    ] = None,
    count_near: Annotated[
        bool,
        typer.Option("--count-near", help="--fail-over and --clean-test count near rows as leaked ones."),
    ] = False,
    near_pairs: o.NearPairs = 5_000_000,
    semantic_texts: o.SemanticTexts = 200_000,
    fail_over: Annotated[
        float | None,
        typer.Option(
            "--fail-over",
            help="Exit with 1 if a larger share of the test rows leaks (0 for any).",
        ),
    ] = None,
    form: o.Form = "text",
    out: o.Out = None,
    html: o.Html = None,
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = None,
    quote: o.Quote = None,
    escape: o.Escape = None,
    sheet: o.Sheet = None,
    ragged: o.Ragged = "error",
) -> None:
    """Find the items of a test file that the training file holds too.

    Example: audit leak train.csv test.csv --item text --label label --rows leaked.csv --fail-over 0
    """
    from audit.errors import ArgumentError
    from audit.leakage import find_leaks
    from audit.writing import check_outputs

    if fail_over is not None and not 0.0 <= fail_over < 1.0:
        raise ArgumentError(f"--fail-over is {fail_over:g}: give a share of the test rows, from 0 to below 1")
    check_outputs([train, test], out, html, rows, clean_test)
    result = find_leaks(
        train, test, item=names(item), label=label, label_test=label_test, missing=names(missing),
        normalise=normalise, level=level, show=show, out=rows, clean=clean_test, near=near, semantic=semantic,
        near_pairs=near_pairs, semantic_texts=semantic_texts, count_near=count_near, **reading(locals()),
    )  # fmt: skip
    report(result, form, out, html)
    if fail_over is not None and (result.counted_share or 0.0) > fail_over:
        raise typer.Exit(1)


def issues(
    file: o.File,
    item: o.Item = None,
    label: o.Label = None,
    probs: Annotated[
        str | None,
        typer.Option(
            "--probs",
            metavar="FILE",
            help="Out-of-fold probabilities of your own model: a table with a column for each class, or .npy.",
        ),
    ] = None,
    embeddings: Annotated[
        str | None,
        typer.Option(
            "--embeddings",
            metavar="FILE",
            help="Numbers to train on in place of the text: .npy, or a table of numbers or lists.",
        ),
    ] = None,
    row_id: Annotated[
        str | None,
        typer.Option(
            "--row-id",
            metavar="COLUMN",
            help="Column that joins a table of --probs or --embeddings, written to --out-rows too.",
        ),
    ] = None,
    folds: Annotated[
        int, typer.Option("--folds", help="Folds of the default model, over items, 2 or more.")
    ] = 5,
    missing: o.Missing = None,
    normalise: o.Normalise = "case",
    level: o.Level = 0.95,
    draws: o.Draws = 200,
    seed: o.Seed = 0,
    show: Annotated[int, typer.Option("--show", help="Suspicious labels kept in the report.")] = 20,
    out_rows: Annotated[
        Path | None,
        typer.Option(
            "--out-rows",
            metavar="FILE",
            help="Write every suspicious row to this table, ranked, for audit resolve.",
        ),
    ] = None,
    form: o.Form = "text",
    out: o.Out = None,
    html: o.Html = None,
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = None,
    quote: o.Quote = None,
    escape: o.Escape = None,
    sheet: o.Sheet = None,
    ragged: o.Ragged = "error",
) -> None:
    """Find labels that a model doubts, and hold its flip rate against that of the repeats.

    Example: audit issues data.csv --item text --label label --out-rows suspicious.csv
    """
    from audit.issues import find_issues
    from audit.writing import check_outputs

    check_outputs([file, probs, embeddings], out, html, out_rows)
    result = find_issues(
        file, item=names(item), label=label, probs=probs, embeddings=embeddings, row_id=row_id,
        missing=names(missing), normalise=normalise, folds=folds, level=level,
        draws=draws, seed=seed, show=show, out_rows=out_rows, **reading(locals()),
        progress=lambda told: typer.echo(f"{told} ...", err=True),
    )  # fmt: skip
    report(result, form, out, html)


def register(app: typer.Typer) -> None:
    """Add the commands to ``audit``."""
    app.command()(compare)
    app.command()(leak)
    app.command()(issues)
