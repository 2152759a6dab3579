"""Options that the commands of ``audit train`` share, with their help: types for Typer, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Form = Annotated[
    Literal["text", "json"], typer.Option("--format", help="Form of the result on standard output.")
]
Audit = Annotated[
    Path | None,
    typer.Option("--audit", metavar="FILE", help="JSON of audit dupes: scores are set in its ceiling band."),
]
