"""The progress of a run on the console."""

from __future__ import annotations

from typing import TextIO

from audit.cli_console import Console as Lines
from relabel.progress import Progress

__all__ = ["Console"]


class Console(Lines):
    """Shows a run's `Progress`; a phase that is new, and the end, are told at once."""

    def __init__(self, stream: TextIO, *, quiet: bool = False) -> None:
        super().__init__(stream, quiet=quiet)
        self._phase = ""

    def progress(self, progress: Progress) -> None:
        """Show where the run stands."""
        self.tell(progress.line(), now=progress.over or progress.phase != self._phase)
        self._phase = progress.phase
        if progress.over:
            self.close()
