"""Commands of ``audit train``: ladder, rung."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO

import typer

__all__ = ["register"]

LOG_EVERY = 10.0

Settings = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="The ladder's settings, a TOML file (docs/train-ladder.md).")
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Check everything and tell rows, steps, tokens and memory; train nothing."
    ),
]
Reopen = Annotated[
    str | None,
    typer.Option(
        "--reopen", metavar="REASON", help="Score a model on the test split again; kept in the ledger."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on standard error.")]
Form = Annotated[
    Literal["text", "json"], typer.Option("--format", help="Form of the result on standard output.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to ``audit train``."""
    app.command()(ladder)
    app.command()(rung)


def ladder(
    config: Settings,
    dry_run: DryRun = False,
    reopen: Reopen = None,
    quiet: Quiet = False,
    form: Form = "text",
) -> None:
    """Run the ladder: SFT on noisy and on clean labels, GRPO, traces and what stands on them, on one clean key.

    The same command goes on where an earlier one stopped; runs that have finished are left as they are. The
    teacher's key is read from OPENAI_API_KEY. Exit code 3: the teacher did not reply to everything.

    Example: audit train ladder ladder.toml --dry-run
    """
    from train.config import load_config
    from train.ladder import run_ladder
    from train.ladder_plan import plan_ladder

    settings = load_config(config)
    if dry_run:
        _show(plan_ladder(settings), form)
        return
    _run(lambda tell: run_ladder(settings, reopen=reopen, tell=tell), quiet=quiet, form=form)


def rung(
    name: Annotated[
        str,
        typer.Argument(
            metavar="RUNG", help="sft-noisy, sft-clean, grpo, traces, sft-matched, cot-sft or grpo-think."
        ),
    ],
    config: Settings,
    dry_run: DryRun = False,
    reopen: Reopen = None,
    quiet: Quiet = False,
    form: Form = "text",
) -> None:
    """Run one rung of a ladder for all its seeds, and first those that it stands on.

    Example: audit train rung traces ladder.toml
    """
    from train.config import load_config
    from train.ladder import run_ladder, with_parents
    from train.ladder_plan import plan_ladder

    settings = with_parents(name, load_config(config))
    if dry_run:
        _show(plan_ladder(settings), form)
        return
    _run(lambda tell: run_ladder(settings, reopen=reopen, tell=tell), quiet=quiet, form=form)


def _run(work: Callable[[Callable[[str, bool], None]], Any], *, quiet: bool, form: str) -> None:
    console = _Console(sys.stderr, quiet=quiet or not _first())
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # a polite end, as on Ctrl-C
    try:
        result = work(console.tell)
    except KeyboardInterrupt:
        console.close()
        typer.echo("audit: interrupted; the same command goes on from here", err=True)
        raise typer.Exit(130) from None
    finally:
        console.close()
        signal.signal(signal.SIGTERM, before)
    if _first():
        _show(result, form)
    raise typer.Exit(result.exit_code)


def _first() -> bool:
    """Whether this is the first of several processes, or the only one."""
    return os.environ.get("RANK", "0") in {"", "0"}


def _show(result: Any, form: str) -> None:
    json_text = json.dumps(result.to_dict(), ensure_ascii=False, indent=2, allow_nan=False)
    typer.echo(json_text if form == "json" else result.summary())


class _Console:
    """Progress for a person: one line that is rewritten on a terminal, one line every ten seconds in a log."""

    def __init__(self, stream: TextIO, *, quiet: bool) -> None:
        self._stream, self._quiet = stream, quiet
        self._live = stream.isatty()
        self._open = False
        self._last = 0.0

    def tell(self, line: str, stays: bool) -> None:
        """Show a line; one that stays is never overwritten."""
        if self._quiet:
            return
        if stays:
            self.close()
            self._write(line + "\n")
        elif self._live:
            width = shutil.get_terminal_size().columns - 1
            self._write("\r" + line[:width].ljust(width))
            self._open = True
        elif time.monotonic() - self._last >= LOG_EVERY:
            self._write(line + "\n")
            self._last = time.monotonic()

    def close(self) -> None:
        """End the line that is being rewritten."""
        if self._open:
            self._write("\n")
            self._open = False

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:  # nobody reads it: the work goes on
            self._quiet = True
