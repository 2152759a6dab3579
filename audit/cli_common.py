"""What the command lines share: lists of names as people type them, and where results go."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

__all__ = ["deliver", "names", "needed", "reading", "report", "write"]


def names(values: list[str] | None) -> tuple[str, ...]:
    """Names from repeated options and comma-separated lists; a name with a comma goes in double quotes."""
    found: list[str] = []
    for value in values or ():
        plain = ("\n" in value or "\r" in value) and not value.startswith('"')  # csv would see several lines
        found += [value] if plain else next(csv.reader([value], skipinitialspace=True), [])
    return tuple(found)


#: The arguments and options of commands that are files with a form.
_FILES = (
    "file",
    "before",
    "after",
    "train",
    "test",
    "data",
    "gold",
    "merge",
    "conflicts",
    "probs",
    "embeddings",
)


def reading(options: Mapping[str, Any]) -> dict[str, Any]:
    """What :func:`audit.reading.open_table` is told of a file's form, from the options of a command.

    An option that speaks of a form that none of the command's files has is an ArgumentError.
    """
    form = {name: options[name] for name in ("delimiter", "encoding", "quote", "escape", "sheet", "ragged")}
    given = {name: value for name, value in form.items() if value is not None and value != "error"}
    files = [str(options[name]) for name in _FILES if options.get(name) is not None]
    if given:
        from audit.errors import ArgumentError
        from audit.reading_sources import form_options

        used = {option for file in files for option in form_options(file)}
        for name in given:
            if name not in used:
                such = f"is not of a file such as {files[0]}" if files else "is of a file, and there is none"
                raise ArgumentError(f"--{name} {such}: leave it out")
    return {("quoting" if name == "quote" else name): value for name, value in form.items()}


def needed(value: Any, message: str) -> Any:
    """``value``, or an ArgumentError that says ``message`` where it is None."""
    if value is None:
        from audit.errors import ArgumentError

        raise ArgumentError(message)
    return value


def report(result: Any, form: Any, out: Path | None, html: Path | None = None) -> None:
    """A result in a form of :func:`audit.render.render`, on standard output or into a file; and as HTML as well."""
    from audit.render import render

    if html is not None:
        write(html, render(result, "html"))
    deliver(render(result, form), out)


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
