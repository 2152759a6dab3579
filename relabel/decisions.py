"""Verdicts of several roles about the same items, brought together item by item."""

from __future__ import annotations

from collections.abc import Iterator

from relabel.records import Verdict
from relabel.worklist import Decision, Role, Worklist, decide

__all__ = ["Follower", "machine_decisions"]


class Follower:
    """Looks items up, in rising order, among (item, verdict) pairs that rise too."""

    def __init__(self, verdicts: Iterator[tuple[int, Verdict]]) -> None:
        self._verdicts = verdicts
        self._next = next(verdicts, None)

    def at(self, number: int) -> Verdict | None:
        """The verdict of an item, or None."""
        while self._next is not None and self._next[0] < number:
            self._next = next(self._verdicts, None)
        return self._next[1] if self._next is not None and self._next[0] == number else None


def machine_decisions(worklist: Worklist) -> Iterator[tuple[int, Decision]]:
    """(item, decision) of every item that the judge was asked about, in file order, people's answers apart."""
    seconds = Follower(worklist.verdicts("adjudicator"))
    for number, first in worklist.verdicts("judge"):
        said: dict[Role, tuple[str, Verdict]] = {"judge": ("judge", first)}
        second = seconds.at(number)
        if second is not None:
            said["adjudicator"] = ("adjudicator", second)
        yield number, decide(said)
