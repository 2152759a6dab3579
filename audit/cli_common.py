"""What the command lines share: lists of names as people type them, and where results go."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import typer

__all__ = ["deliver", "names", "needed", "report", "write"]


def names(values: list[str] | None) -> tuple[str, ...]:
    """Names from repeated options and comma-separated lists; a name with a comma goes in double quotes."""
    found: list[str] = []
    for value in values or ():
        plain = ("\n" in value or "\r" in value) and not value.startswith('"')  # csv would see several lines
        found += [value] if plain else next(csv.reader([value], skipinitialspace=True), [])
    return tuple(found)


def needed(value: Any, message: str) -> Any:
    """``value``, or an ArgumentError that says ``message`` where it is None."""
    if value is None:
        from audit.errors import ArgumentError

        raise ArgumentError(message)
    return value


def report(result: Any, form: str, out: Path | None) -> None:
    """A result as text (its ``summary()``) or JSON, on standard output or into a file."""
    from audit.render import render_json

    deliver(render_json(result) if form == "json" else result.summary(), out)


def deliver(text: str, out: Path | None) -> None:
    """Text on standard output, or into a file."""
    if out is None:
        typer.echo(text)
    else:
        write(out, text + "\n")


def write(path: Path, text: str) -> None:
    """Text into a file, and a line on standard error that says so."""
    from audit.writing import write_text

    write_text(path, text)
    typer.echo(f"wrote {path}", err=True)
