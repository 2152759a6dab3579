"""Progress for a person: one line that is rewritten on a terminal, one line every ten seconds in a log."""

from __future__ import annotations

import shutil
import time
from typing import TextIO

from relabel.progress import Progress

__all__ = ["Console"]

LOG_EVERY = 10.0


class Console:
    """Writes to ``stream`` (standard error); where that fails, as of a closed pipe, the run goes on in silence."""

    def __init__(self, stream: TextIO, *, quiet: bool = False) -> None:
        self._stream, self._quiet = stream, quiet
        self._live = stream.isatty()
        self._open = self._lost = False
        self._last = ("", 0.0)

    def progress(self, progress: Progress) -> None:
        """Show where the run stands."""
        if self._quiet:
            return
        line, now, end = progress.line(), time.monotonic(), progress.over
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            self._write("\r" + line[:width].ljust(width))
            self._open = True
            if end:
                self.close()
        elif end or self._last[0] != progress.phase or now - self._last[1] >= LOG_EVERY:
            self._write(line + "\n")
            self._last = (progress.phase, now)

    def notice(self, line: str) -> None:
        """Show a line that stays."""
        self.close()
        self._write(line + "\n")

    def close(self) -> None:
        """End the line that is being rewritten."""
        if self._open:
            self._write("\n")
            self._open = False

    def _write(self, text: str) -> None:
        if self._lost:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            self._lost = True
