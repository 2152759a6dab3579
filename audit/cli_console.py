"""Progress for a person: one line that is rewritten on a terminal, one line every ten seconds in a log."""

from __future__ import annotations

import shutil
import time
from typing import TextIO

__all__ = ["LOG_EVERY", "Console"]

#: Seconds between two lines in a log.
LOG_EVERY = 10.0


class Console:
    """Writes to ``stream`` (standard error); where that fails, as of a closed pipe, the work goes on in silence."""

    def __init__(self, stream: TextIO, *, quiet: bool = False) -> None:
        self._stream, self._quiet = stream, quiet
        self._live = stream.isatty()
        self._open = self._lost = False
        self._last = 0.0

    def tell(self, line: str, stays: bool = False, *, now: bool = False) -> None:
        """Show where the work stands. A line that ``stays`` is never overwritten; ``now`` does not wait in a log."""
        if self._quiet:
            return
        if stays:
            self.notice(line)
        elif self._live:
            width = shutil.get_terminal_size().columns - 1
            self._write("\r" + line[:width].ljust(width))
            self._open = True
        elif now or time.monotonic() - self._last >= LOG_EVERY:
            self._write(line + "\n")
            self._last = time.monotonic()

    def notice(self, line: str) -> None:
        """Show a line that stays, also where progress is not wanted."""
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
