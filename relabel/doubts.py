"""The items nobody is sure of: no label, two judges who differ, or a confidence that is low."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from relabel.decisions import Follower
from relabel.people import question
from relabel.recall import Recall
from relabel.records import Status, Verdict
from relabel.worklist import Role

__all__ = ["Doubt", "find_doubts"]


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """One item for a person to decide.

    Parameters
    ----------
    key:
        The key of the question (`relabel.people.question`): answers find their item by it.
    row, rows:
        The item's first data row (from 1), and how many rows it has.
    texts:
        Input column -> text.
    old:
        Its distinct old labels, in order; empty without a label column.
    judge, adjudicator:
        Model and verdict of each that was asked.
    why:
        Why it is here, in words.
    """

    key: str
    row: int
    rows: int
    texts: Mapping[str, str]
    old: tuple[str, ...]
    judge: tuple[str, Verdict] | None
    adjudicator: tuple[str, Verdict] | None
    why: str


def find_doubts(recall: Recall, *, below: float, most: int, again: bool = False) -> tuple[Doubt, ...]:
    """The up to ``most`` most doubtful items, the most doubtful first.

    First those without a label, then those that judge and adjudicator label differently, then those whose label
    has a confidence under ``below`` (or none), least sure first. ``again`` takes in what people have answered.
    """
    chosen = heapq.nsmallest(most, _ranked(recall, below=below, again=again), key=lambda entry: entry[0])
    found = {number: (order, doubt) for order, (_, number, doubt) in enumerate(chosen)}
    if not found:
        return ()
    rows: dict[int, list[int]] = {number: [] for number in found}
    olds: dict[int, dict[str, None]] = {number: {} for number in found}
    for row, (number, old) in enumerate(recall.worklist.links(), start=1):
        if number in found:
            rows[number].append(row)
            if old:
                olds[number].setdefault(old)
    doubts: list[tuple[int, Doubt]] = []
    for item in recall.worklist.read():
        if item.id in found:
            order, doubt = found[item.id]
            at = rows[item.id]
            full = replace(
                doubt,
                key=question(recall.rubric, item.row).key,
                row=at[0],
                rows=len(at),
                texts=item.row,
                old=tuple(olds[item.id]),
            )
            doubts.append((order, full))
    return tuple(doubt for _, doubt in sorted(doubts, key=lambda entry: entry[0]))


def _ranked(
    recall: Recall, *, below: float, again: bool
) -> Iterator[tuple[tuple[int, float, int], int, Doubt]]:
    """(rank, item, what is known of it so far) of every doubtful item, in file order."""
    worklist = recall.worklist
    seconds = Follower(worklist.verdicts("adjudicator"))
    people = Follower(worklist.verdicts("human"))
    names: list[str] = [place.model for place in recall.places]
    for number, first in worklist.verdicts("judge"):
        second, person = seconds.at(number), people.at(number)
        if person is not None and not again:
            continue
        rank, sure, why = _doubt(first, second, below)
        if rank is not None:
            doubt = Doubt(
                key="",
                row=0,
                rows=0,
                texts={},
                old=(),
                judge=(names[0], first),
                adjudicator=None if second is None else (names[1], second),
                why=why,
            )
            yield (rank, sure, number), number, doubt


def _doubt(first: Verdict, second: Verdict | None, below: float) -> tuple[int | None, float, str]:
    """Rank (None: no doubt), confidence, and the reason in words."""
    last: tuple[Role, Verdict] = ("adjudicator", second) if second and second.label else ("judge", first)
    role, verdict = last
    sure = -1.0 if verdict.confidence is None else verdict.confidence
    if verdict.label is None:
        reasons = [
            f"{role}: {v.reason or v.status}" for role, v in (("judge", first), ("adjudicator", second)) if v
        ]
        return 0, sure, f"no label ({'; '.join(reasons)})"
    if second is not None and second.label and first.label and first.label != second.label:
        return 1, sure, f"the judge says {first.label}, the adjudicator {second.label}"
    if second is not None and second.status is not Status.OK:
        return (
            1,
            sure,
            f"the judge is unsure, the adjudicator gave no label ({second.reason or second.status})",
        )
    if verdict.confidence is None:
        return 2, sure, f"the {role} tells no confidence"
    if verdict.confidence < below:
        return 2, sure, f"the {role} is unsure ({verdict.confidence:.2f}, {verdict.confidence_kind})"
    return None, sure, ""
