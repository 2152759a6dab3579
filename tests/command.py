"""Runs the ``audit`` command in this process, as the shell would see it."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import cli


@dataclass(frozen=True)
class Ran:
    """Exit code, standard output and standard error of one run."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


def run(*words: str | Path, stdin: bytes = b"") -> Ran:
    """Run ``audit WORDS``; a single string is split as the shell would."""
    args = shlex.split(words[0]) if len(words) == 1 and isinstance(words[0], str) else [str(w) for w in words]
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    code = 0
    given = io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    with (
        mock.patch.object(sys, "argv", ["audit", *args]),
        mock.patch.object(sys, "stdin", given),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        out.flush()
    return Ran(code, out.buffer.getvalue().decode("utf-8"), err.getvalue())  # type: ignore[attr-defined]


def write_csv(path: Path, columns: list[str], rows: list[tuple[Any, ...]]) -> Path:
    """Write a plain UTF-8 CSV file and return its path."""
    import csv

    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)
    return path
