"""Where a ladder stands: one line a moment, with the time to go as the steps so far let it expect."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from train.run_folder import RunFolder

__all__ = ["Pace", "Tell", "ToldRun", "clock"]

#: Told one line; the second argument is True for a line that stays.
Tell = Callable[[str, bool], None]


def clock(seconds: float) -> str:
    """Seconds as ``m:ss`` or ``h:mm:ss``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Pace:
    """Seconds a step, kind by kind, and what is left by it.

    ``left`` maps the names of runs that are to come to (kind, steps).
    """

    def __init__(self, left: Mapping[str, tuple[str, int]]) -> None:
        self.left = dict(left)
        self.steps: dict[str, int] = {}
        self.seconds: dict[str, float] = {}

    def seen(self, kind: str, *, steps: int, seconds: float) -> None:
        """So many steps of a kind took so long."""
        self.steps[kind] = self.steps.get(kind, 0) + steps
        self.seconds[kind] = self.seconds.get(kind, 0.0) + seconds

    def done(self, name: str) -> None:
        """A run is no longer to come."""
        self.left.pop(name, None)

    def to_go(self) -> str:
        """The time left in words; names the kinds of which nothing is known yet."""
        known, unknown = 0.0, []
        for kind, steps in self.left.values():
            if self.steps.get(kind):
                known += steps * self.seconds[kind] / self.steps[kind]
            elif kind not in unknown:
                unknown.append(kind)
        if not self.left:
            return ""
        if not known:
            return f"{len(self.left)} runs to go"
        return f"{clock(known)} to go" + (f" and {', '.join(unknown)}" if unknown else "")


class ToldRun(RunFolder):
    """A run folder that tells of every step it logs; ``total`` is the number of steps, once it is known."""

    def __init__(self, path: str, *, total: int, tell: Tell) -> None:
        super().__init__(path)
        self.total, self._tell = total, tell
        self._first: tuple[int, float] | None = None
        self.last = 0

    @property
    def pace(self) -> tuple[int, float]:
        """Steps and seconds since the first one that this process saw."""
        if self._first is None:
            return 0, 0.0
        return self.last - self._first[0], time.monotonic() - self._first[1]

    def log(self, *, step: int, **values: float | int | str | None) -> None:
        """Log a step, and tell where the run stands."""
        super().log(step=step, **values)
        if self._first is None:
            self._first = (step, time.monotonic())
        self.last = max(self.last, step)
        if self.main:
            self._tell(self.line(step, values), False)

    def line(self, step: int, values: Mapping[str, float | int | str | None]) -> str:
        """One line for a person."""
        parts = [f"{self.path.name} step {step:,}/{self.total:,}"]
        for name in _SHOWN:
            value = values.get(name)
            if isinstance(value, float):
                parts.append(f"{name} {value:.3g}")
        steps, seconds = self.pace
        if steps and step < self.total:
            parts.append(f"{clock((self.total - step) * seconds / steps)} to go")
        return " · ".join(parts)


_SHOWN: Sequence[str] = ("loss", "reward", "informative", "truncated")
