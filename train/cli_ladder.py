"""Commands of ``audit train``: ladder, rung."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from audit.cli_console import Console
from train.cli_options import Form

__all__ = ["register"]

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
    console = Console(sys.stderr, quiet=quiet or not _first())
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
    from audit.render import render_json

    typer.echo(render_json(result) if form == "json" else result.summary())
