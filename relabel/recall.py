"""What the journal knows of a job, without asking anybody: for review files and batch files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from audit.errors import ArgumentError
from relabel.connect import Place, wishes
from relabel.engine import choose
from relabel.escalate import GoldThreshold
from relabel.gold import Gold
from relabel.journal import Journal, Stored
from relabel.people import recall_answers
from relabel.pipeline import known
from relabel.prompts import messages
from relabel.records import Request, Status, Verdict
from relabel.rubric import Rubric
from relabel.run import Job, usable
from relabel.spellings import Spellings
from relabel.worklist import Item, Role, Worklist, batches

__all__ = ["UNASKED", "Asked", "Recall", "recalled"]

BATCH = 256
UNASKED = (Status.PENDING, Status.TRANSPORT, Status.BUDGET)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One item, the request about it, and the journal's last word on that request (None: never asked)."""

    item: Item
    request: Request
    stored: Stored | None
    verdict: Verdict | None


@dataclass(kw_only=True)
class Recall:
    """A job's items with all that the journal knows of them; made by `recalled`.

    ``pending`` counts, per role, the items that this role has not labelled; ``unasked`` those among them that may
    still get a label by asking for the first time or once more after a fault.
    """

    job: Job
    rubric: Rubric
    worklist: Worklist
    journal: Journal
    places: tuple[Place, ...]
    gold: Gold | None = None
    threshold: GoldThreshold | None = None
    escalated: int = 0
    answered: int = 0
    pending: dict[str, int] = field(default_factory=dict)
    unasked: dict[str, int] = field(default_factory=dict)

    def asked(self, role: Role) -> Iterator[Asked]:
        """Every request that ``role`` is to answer, once, gold's first, with what the journal says."""
        twice: set[str] = set()
        if role == "judge" and self.gold is not None:
            for asked in self._look(self.gold.sample.items, role):
                twice.add(asked.request.key)
                yield asked
        for asked in self._look(self.worklist.read(escalated=role == "adjudicator"), role):
            if asked.request.key not in twice:
                yield asked

    def _look(self, items: Iterable[Item], role: Role) -> Iterator[Asked]:
        place = self.places[1 if role == "adjudicator" else 0]
        params, spellings = wishes(self.rubric, self.job.settings), Spellings(self.rubric.labels)
        for batch in batches(items, BATCH):
            requests = [
                Request(
                    model=place.model,
                    base_url=place.base_url,
                    params=params,
                    messages=messages(self.rubric, item.row),
                )
                for item in batch
            ]
            found = self.journal.find([request.key for request in requests])
            for item, request in zip(batch, requests, strict=True):
                stored = found.get(request.key)
                verdict = None
                if stored is not None:
                    verdict = known(stored, journal=self.journal, rubric=self.rubric, spellings=spellings)
                yield Asked(item=item, request=request, stored=stored, verdict=verdict)

    def _fill(self) -> None:
        if self.gold is not None:
            verdicts = [
                asked.verdict or Verdict(status=Status.PENDING, reason="not asked yet")
                for asked in self._look(self.gold.sample.items, "judge")
            ]
            self.gold = Gold(sample=self.gold.sample, verdicts=tuple(verdicts))
        self.answered = recall_answers(self.worklist, journal=self.journal, rubric=self.rubric).count
        self._take("judge", self.worklist.read())
        if len(self.places) > 1 and self.pending["judge"] < self.worklist.items - self.worklist.empty:
            self.escalated = self._choose()
            self._take("adjudicator", self.worklist.read(escalated=True))

    def _choose(self) -> int:
        """Mark what goes to the adjudicator; nothing yet, where gold cannot tell before the judge is done."""
        try:
            count, self.threshold = choose(self.worklist, self.job.policy(), self.gold)
        except ArgumentError:
            if not self.unasked["judge"]:
                raise
            return 0
        return count

    def _take(self, role: Role, items: Iterable[Item]) -> None:
        self.pending[role] = self.unasked[role] = 0
        place = self.places[1 if role == "adjudicator" else 0]
        for batch in batches(self._look(items, role), BATCH):
            self.worklist.put(
                ((asked.item.id, asked.verdict) for asked in batch if asked.verdict is not None),
                role=role,
                model=place.model,
            )
            status = [asked.verdict.status if asked.verdict else Status.PENDING for asked in batch]
            self.pending[role] += sum(one is not Status.OK for one in status)
            self.unasked[role] += sum(
                one in UNASKED and not asked.item.answered for asked, one in zip(batch, status, strict=True)
            )


@contextmanager
def recalled(job: Job, *, write: bool = False) -> Iterator[Recall]:
    """Open a job's table and journal and read what the journal knows; nothing is asked.

    The journal must exist, unless ``write``, which also keeps other runs out of it.
    """
    rubric, places, paths = usable(job.rubric), job.endpoints(), job.paths()
    sample = job.sample(rubric)
    with (
        Journal(paths.journal, read_only=not write, wait=job.wait) as journal,
        job.worklist(rubric) as worklist,
    ):
        recall = Recall(
            job=job,
            rubric=rubric,
            worklist=worklist,
            journal=journal,
            places=places,
            gold=None if sample is None else Gold(sample=sample, verdicts=()),
        )
        recall._fill()
        yield recall
