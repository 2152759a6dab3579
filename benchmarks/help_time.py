"""Time of ``audit --help`` against that of a bare Typer app, as the median ratio of interleaved runs."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

RUNS = 15
BARE = (
    "import typer\n"
    "app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)\n"
    "@app.command()\n"
    "def first(name: str) -> None:\n    'Say it.'\n"
    "@app.command()\n"
    "def second(name: str) -> None:\n    'Say it again.'\n"
    "app(['--help'])\n"
)
OURS = "import sys; sys.argv = ['audit', '--help']; import cli; cli.main()"


def seconds(code: str) -> float:
    """Wall time of one fresh interpreter that runs ``code``."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, cwd=Path(__file__).parents[1]
    )
    return time.perf_counter() - start


def main() -> None:
    """Print both medians and their ratio."""
    pairs = [(seconds(OURS), seconds(BARE)) for _ in range(RUNS)]
    ours, bare = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"audit --help {ours:.3f} s, bare typer app {bare:.3f} s: ratio {ratio:.2f} (bar: 2)")


if __name__ == "__main__":
    main()
