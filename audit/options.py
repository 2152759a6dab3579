"""Options that the commands share, with their help: types for Typer, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Format = Literal["text", "json", "markdown", "html"]

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="CSV, TSV, Parquet, JSONL, JSON or xlsx (.gz too), a database or a URL, or - for standard input.",
    ),
]
Item = Annotated[
    list[str] | None,
    typer.Option(
        "--item",
        metavar="COLUMNS",
        help="Column(s) that make an item: its text or id (guessed if not given). Commas or repeats; a name with a "
        "comma in double quotes.",
    ),
]
Label = Annotated[
    str | None, typer.Option("--label", metavar="COLUMN", help="The label column (guessed if not given).")
]
LabelColumns = Annotated[
    list[str] | None,
    typer.Option("--label-columns", metavar="COLUMNS", help="Wide form: one vote a column, one item a row."),
]
Counts = Annotated[
    list[str] | None,
    typer.Option("--counts", metavar="COLUMNS", help="Wide form: one column of vote counts per class."),
]
Classes = Annotated[
    list[str] | None,
    typer.Option(
        "--classes", metavar="LABELS", help="The declared classes, if some never occur in the file."
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing", metavar="LABELS", help="Labels that mean 'no label'; an empty cell always does."
    ),
]
Normalise = Annotated[
    Literal["none", "space", "case", "punctuation"],
    typer.Option(
        "--normalise", help="How item texts are compared; case = Unicode form, case and white space."
    ),
]
Split = Annotated[
    str | None, typer.Option("--split", metavar="COLUMN", help="Column with train/validation/test.")
]
Level = Annotated[float, typer.Option("--level", help="Confidence level of the intervals, between 0 and 1.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of every random draw, 0 or more.")]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        metavar="CHARACTER",
        help="Separator of a text file, such as ';'; found out if not given.",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding", metavar="NAME", help="Encoding of a text file, such as cp1252; found out if not given."
    ),
]
Quote = Annotated[
    str | None,
    typer.Option(
        "--quote", metavar="CHARACTER", help="Character around fields that hold separators; none for no such."
    ),
]
Escape = Annotated[
    str | None,
    typer.Option(
        "--escape",
        metavar="CHARACTER",
        help="Character before a quote inside a quoted field (default: doubled).",
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(
        "--sheet",
        "--table",
        help="Sheet of an xlsx file (the first if not given), or table of a database (where there are several).",
    ),
]
Engine = Annotated[
    Literal["duckdb", "spark"],
    typer.Option("--engine", help="Where the rows are grouped; spark needs label-audit[spark] and Java 17."),
]
Master = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="Spark's master, such as local[2] (default: local[*])."),
]
Ragged = Annotated[
    Literal["error", "pad", "drop"],
    typer.Option(
        "--ragged", help="Rows with too few or too many fields: stop, pad with empty cells, or drop."
    ),
]


RowId = Annotated[
    str | None,
    typer.Option("--row-id", metavar="COLUMN", help="The record's own id: equal ids are export copies."),
]
Annotator = Annotated[str | None, typer.Option("--annotator", metavar="COLUMN", help="Who gave the label.")]
Time = Annotated[str | None, typer.Option("--time", metavar="COLUMN", help="When the label was given.")]
By = Annotated[
    list[str] | None, typer.Option("--by", metavar="COLUMNS", help="More columns to break d down by.")
]
MergeLabels = Annotated[
    bool, typer.Option("--merge-labels", help="Merge spellings of one label, such as 'Yes' and 'yes '.")
]
DropCopies = Annotated[
    bool,
    typer.Option("--drop-copies", help="Leave rows that repeat the same record out of every figure."),
]
OnePer = Annotated[
    str | None,
    typer.Option(
        "--one-per", metavar="COLUMN", help="Keep an item's first label for each value of a column."
    ),
]
Errors = Annotated[
    bool, typer.Option("--errors", help="Error rates by class: from pairs, three labels an item, annotators.")
]
StrataColumn = Annotated[
    str | None,
    typer.Option(
        "--strata",
        metavar="COLUMN",
        help="Populations with other class shares and the same errors: error rates of pairs (Hui-Walter).",
    ),
]
Gold = Annotated[
    str | None,
    typer.Option(
        "--gold", metavar="FILE|COLUMN", help="Gold labels: a column, or a file with the item's columns."
    ),
]
Ladder = Annotated[
    bool | None,
    typer.Option(
        "--ladder/--no-ladder", help="d at every level of --normalise (default: up to 500,000 rows)."
    ),
]
Draws = Annotated[int, typer.Option("--draws", help="Bootstrap draws, 1 or more.")]
Kind = Annotated[
    Literal["classes", "numeric", "ordinal", "tags"] | None,
    typer.Option(
        "--kind",
        help="What the labels are: classes, numbers, ordered grades (order: --classes), or sets of tags.",
    ),
]
Sep = Annotated[
    str | None, typer.Option("--sep", help="What stands between two tags of a label; makes --kind tags.")
]
EmptySet = Annotated[
    str | None,
    typer.Option(
        "--empty-set",
        metavar="WORD",
        help="With tags: an empty cell is the set without tags, by this name; else it is a missing label.",
    ),
]
Near = Annotated[
    float | None,
    typer.Option("--near", help="Also look for different texts at least so alike (0.5 to 1), and their d."),
]
NearPairs = Annotated[
    int, typer.Option("--near-pairs", help="The most pairs that --near looks at, or --semantic finds.")
]
NearRows = Annotated[
    Path | None,
    typer.Option(
        "--near-rows",
        metavar="FILE",
        help="Write every pair of --near and --semantic to this table: similarity, cluster, rows, texts and labels.",
    ),
]
Semantic = Annotated[
    float | None,
    typer.Option(
        "--semantic",
        help="Also look for different texts whose words are at least so alike (cosine, up to 1), and their d.",
    ),
]
SemanticTexts = Annotated[
    int, typer.Option("--semantic-texts", help="The most texts that --semantic compares, all with all.")
]
Interval = Annotated[
    Literal["wilson", "exact"],
    typer.Option("--interval", help="Interval of d when every item has two labels."),
]
Form = Annotated[Format, typer.Option("--format", help="Form of the report on standard output.")]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write the report to this file instead.")
]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write the HTML report to this file as well.")
]
Conflicts = Annotated[
    Path | None,
    typer.Option(
        "--conflicts", metavar="FILE", help="Write the disagreeing items to this file, hardest first."
    ),
]
ShowConflicts = Annotated[
    int, typer.Option("--show-conflicts", help="Disagreeing items shown in the report, 0 or more.")
]
FailUnder = Annotated[
    float | None,
    typer.Option(
        "--fail-under",
        help="Exit with code 1 when the end of the band named by --fail-on is below this, such as 0.9.",
    ),
]
FailOn = Annotated[
    Literal["lower", "upper"],
    typer.Option(
        "--fail-on",
        help="lower (1 - d): what the labels surely allow; upper (1 - eps): the most they can. Both are of pairs, also "
        "where several labels an item narrow the band: a gate means the same for every file.",
    ),
]


def _show_version(asked: bool) -> None:
    if asked:
        from audit.version import __version__

        typer.echo(f"label-audit {__version__}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True),
]

Strata = Annotated[
    list[str] | None,
    typer.Option("--by", metavar="COLUMNS", help="Stratify by these columns as well as by the first label."),
]
Show = Annotated[
    list[str] | None, typer.Option("--show", metavar="COLUMNS", help="Further columns the annotator may see.")
]
Merge = Annotated[
    Path | None, typer.Option("--merge", metavar="ANSWERS", help="Bring an answered plan back in as repeats.")
]
