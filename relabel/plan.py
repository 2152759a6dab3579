"""What a run would ask and cost, found out without asking anything (``--dry-run``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relabel.capabilities import Capabilities
from relabel.connect import Place, Settings, wishes
from relabel.cost import Price, TokenRate
from relabel.escalate import Policy
from relabel.gold import GoldSample
from relabel.journal import Journal
from relabel.parse import Spellings
from relabel.people import recall_answers
from relabel.pipeline import known
from relabel.prompts import messages
from relabel.records import Request, Status, Verdict
from relabel.rubric import Rubric
from relabel.worklist import Item, Worklist, batches

__all__ = ["Plan", "RolePlan", "make_plan"]

BATCH = 256


@dataclass(frozen=True, kw_only=True)
class RolePlan:
    """What one role would be asked: items, how many the journal answers, requests, tokens, US dollars.

    ``exact`` is False where the number of requests is only expected (or, for a threshold, the most there can
    be). Tokens are guesses: four bytes each, and 80 for a reply. ``longest`` is the cost if every reply ran
    to its limit.
    """

    model: str
    base_url: str
    items: int
    known: int
    requests: int
    exact: bool
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    longest: float | None
    price: Price | None

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return {
            "model": self.model,
            "base_url": self.base_url,
            "items": self.items,
            "known": self.known,
            "requests": self.requests,
            "exact": self.exact,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost": self.cost,
            "longest": self.longest,
            "price": None if self.price is None else self.price.to_dict(),
        }


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A run that was not made."""

    rows: int
    items: int
    empty: int
    gold: int
    judge: RolePlan
    adjudicator: RolePlan | None
    policy: Policy
    notes: tuple[str, ...]

    @property
    def cost(self) -> float | None:
        """US dollars expected; None without a price."""
        costs = [role.cost for role in (self.judge, self.adjudicator) if role is not None]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    def to_dict(self) -> dict[str, Any]:
        """The JSON that ``--dry-run --format json`` prints."""
        return {
            "dry_run": True,
            "data": {"rows": self.rows, "items": self.items, "empty": self.empty},
            "gold": self.gold,
            "judge": self.judge.to_dict(),
            "adjudicator": self.adjudicator.to_dict() if self.adjudicator else None,
            "escalation": self.policy.to_dict(),
            "cost": self.cost,
            "notes": list(self.notes),
        }

    def summary(self) -> str:
        """A few lines for a person."""
        lines = [f"{self.rows:,} rows, {self.items:,} distinct items; nothing was asked"]
        for name, role in (("judge", self.judge), ("adjudicator", self.adjudicator)):
            if role is not None:
                about = "" if role.exact else "about "
                cost = "price unknown" if role.cost is None else f"about ${role.cost:,.4f}"
                if role.longest is not None:
                    cost += f" (${role.longest:,.4f} if every reply ran to its limit; {_source(role.price)})"
                lines.append(
                    f"{name} {role.model}: {about}{role.requests:,} requests, {role.known:,} items from the journal,"
                    f" about {role.prompt_tokens:,} + {role.completion_tokens:,} tokens, {cost}"
                )
        if self.cost is not None:
            lines.append(f"in all about ${self.cost:,.4f}")
        return "\n".join([*lines, *self.notes])


def _source(price: Price | None) -> str:
    return f"${price.input:g} in, ${price.output:g} out per million; {price.source}" if price else ""


def make_plan(
    *,
    rubric: Rubric,
    worklist: Worklist,
    asked: tuple[Place, ...],
    settings: Settings,
    policy: Policy,
    sample: GoldSample | None,
    journal: Path,
) -> Plan:
    """Count what `Engine.work` would do. The journal is only looked at, and only where there is one."""
    book = Journal(journal, read_only=True) if journal.is_file() else None
    try:
        counter = _Counter(rubric=rubric, settings=settings, journal=book)
        if book is not None:
            recall_answers(worklist, journal=book, rubric=rubric)
        judge = counter.role(asked[0], worklist.read(), sample, keep=worklist)
        second = None
        if len(asked) > 1:
            second = counter.second(asked[1], worklist, judge, policy)
        return Plan(
            rows=worklist.rows,
            items=worklist.items,
            empty=worklist.empty,
            gold=len(sample.items) if sample else 0,
            judge=judge,
            adjudicator=second,
            policy=policy,
            notes=tuple(counter.notes),
        )
    finally:
        if book is not None:
            book.close()


class _Counter:
    def __init__(self, *, rubric: Rubric, settings: Settings, journal: Journal | None) -> None:
        self.rubric, self.settings, self.journal = rubric, settings, journal
        self.spellings = Spellings(rubric.labels)
        self.params = wishes(rubric, settings)
        self.notes: list[str] = []

    def role(
        self,
        place: Place,
        items: Iterator[Item],
        sample: GoldSample | None = None,
        *,
        keep: Worklist | None = None,
    ) -> RolePlan:
        """One role over its items."""
        count = found = size = 0
        for batch in batches(items, BATCH):
            known_now, bytes_now = self._look(place, batch)
            if keep is not None:
                keep.put(known_now.items(), role="judge", model=place.model)
            count += len(batch)
            found += len(known_now)
            size += bytes_now
        for batch in batches(sample.items if sample else (), BATCH):
            known_now, bytes_now = self._look(place, batch)
            count += len(batch)
            found += len(known_now)
            size += bytes_now
        return self._plan(
            place, items=count, known_items=found, requests=count - found, size=size, exact=not sample
        )

    def second(self, place: Place, worklist: Worklist, judge: RolePlan, policy: Policy) -> RolePlan:
        """The adjudicator: exactly where the journal holds all of the judge's verdicts, else as expected."""
        if policy.kind in ("share", "below") and judge.requests == 0:
            choose = worklist.escalate_share if policy.kind == "share" else worklist.escalate_below
            choose(policy.value)
            return self.role(place, worklist.read(escalated=True))
        items = worklist.items - worklist.empty
        requests = round(policy.value * items) if policy.kind == "share" else items
        if policy.kind != "share":
            self.notes.append("how many items fall under the threshold is not known before: all are counted")
        size = sum(self._look(place, batch)[1] for batch in batches(worklist.read(), BATCH)) if items else 0
        share = requests / items if items else 0.0
        return self._plan(
            place, items=requests, known_items=0, requests=requests, size=round(size * share), exact=False
        )

    def _look(self, place: Place, batch: list[Item]) -> tuple[dict[int, Verdict], int]:
        """The verdicts the journal has for a batch, and the bytes of the prompts it has none for."""
        requests = [
            Request(
                model=place.model,
                base_url=place.base_url,
                params=self.params,
                messages=messages(self.rubric, item.row),
            )
            for item in batch
        ]
        stored = self.journal.find([request.key for request in requests]) if self.journal else {}
        found, size = {}, 0
        for item, request in zip(batch, requests, strict=True):
            entry = stored.get(request.key)
            if entry is not None and self.journal is not None:
                verdict = known(entry, journal=self.journal, rubric=self.rubric, spellings=self.spellings)
                if verdict.status.reusable:
                    found[item.id] = verdict
                    continue
            if item.answered:
                found[item.id] = Verdict(status=Status.PENDING, reason="a person has answered")
                continue
            size += sum(len(message["content"].encode()) for message in request.messages)
        return found, size

    def _plan(
        self, place: Place, *, items: int, known_items: int, requests: int, size: int, exact: bool
    ) -> RolePlan:
        seen = None
        if self.journal is not None:
            seen = self.journal.capabilities(base_url=place.base_url, model=place.model)
        can = Capabilities.from_dict(seen or {})
        draws = self.settings.samples if can.logprobs is False else 1
        if can.logprobs is None and self.settings.samples > 1 and requests:
            self.notes.append(
                f"{place.model} was not probed: without log-probabilities every item takes"
                f" {self.settings.samples} samples (audit relabel probe tells; --samples 1 avoids it)"
            )
        rate = TokenRate()
        prompt = rate.prompt(size) * (1 if can.n else draws)
        completion = requests * rate.completion * draws
        price = place.price
        return RolePlan(
            model=place.model,
            base_url=place.base_url,
            items=items,
            known=known_items,
            requests=requests * (1 if can.n else draws),
            exact=exact and draws == 1,
            prompt_tokens=round(prompt),
            completion_tokens=round(completion),
            cost=price.cost(prompt, completion) if price else None,
            longest=price.cost(prompt, requests * draws * self.settings.max_tokens) if price else None,
            price=price,
        )
