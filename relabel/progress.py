"""How far a run is: counted answer by answer, told a few times a second at most."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from relabel.cost import Price
from relabel.pipeline import Answer
from relabel.records import Status

__all__ = ["Meter", "Progress", "RoleTotals"]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """A moment of a run. Times in seconds, cost in US dollars (None without a price).

    ``phase`` is ``gold``, ``judge`` or ``adjudicator``; ``done`` of ``total`` items are answered, ``reused`` of
    them by the journal, ``asked`` by the endpoint; ``unasked`` items were left out (the run stopped, or a person has
    answered). ``compared`` items had an old label (in the phase ``gold``: gold's); ``kept`` agree with it.
    """

    phase: str
    total: int
    done: int
    reused: int
    asked: int
    no_verdict: int
    seconds: float
    cost: float | None
    compared: int
    kept: int
    escalated_share: float | None = None
    unasked: int = 0

    @property
    def over(self) -> bool:
        """Whether nothing is to come."""
        return self.done + self.unasked >= self.total

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.asked / self.seconds if self.seconds > 0 else 0.0

    @property
    def eta(self) -> float | None:
        """Seconds to go at this rate; None before the first reply."""
        return (self.total - self.done - self.unasked) / self.rate if self.rate else None

    def line(self) -> str:
        """One line for a person."""
        parts = [f"{self.phase} {self.done:,}/{self.total:,}", f"{self.rate:.1f}/s"]
        if self.eta is not None and not self.over:
            parts.append(f"{_clock(self.eta)} to go")
        if self.reused:
            parts.append(f"{self.reused:,} from the journal")
        if self.unasked:
            parts.append(f"{self.unasked:,} not asked")
        if self.no_verdict:
            parts.append(f"{self.no_verdict:,} without verdict")
        if self.cost is not None:
            parts.append(f"${self.cost:.4f}" if self.cost < 1 else f"${self.cost:.2f}")
        if self.escalated_share is not None:
            parts.append(f"{self.escalated_share:.1%} escalated")
        if self.compared:
            whose = "as gold" if self.phase == "gold" else "as the old labels"
            parts.append(f"{self.kept / self.compared:.1%} {whose}")
        return " · ".join(parts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@dataclass(frozen=True, kw_only=True)
class RoleTotals:
    """What one role did in a run: items, how they were answered, tokens and US dollars paid in this run."""

    model: str
    base_url: str
    items: int
    reused: int
    asked: int
    statuses: dict[str, int]
    confidence_kinds: dict[str, int]
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    price: Price | None

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return {
            "model": self.model,
            "base_url": self.base_url,
            "items": self.items,
            "reused": self.reused,
            "asked": self.asked,
            "statuses": self.statuses,
            "confidence_kinds": self.confidence_kinds,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost": self.cost,
            "price": None if self.price is None else self.price.to_dict(),
        }


class Meter:
    """Counts the answers of one role and tells ``on_progress`` every ``interval`` seconds."""

    def __init__(
        self,
        phase: str,
        *,
        total: int,
        price: Price | None,
        on_progress: Callable[[Progress], None] | None,
        same: Callable[[str, str], bool],
        escalated_share: float | None = None,
        interval: float = 0.5,
    ) -> None:
        self.phase, self.total, self.price, self.same = phase, total, price, same
        self.on_progress, self.interval = on_progress, interval
        self.escalated_share = escalated_share
        self.done = self.reused = self.asked = self.compared = self.kept = 0
        self.prompt_tokens = self.completion_tokens = 0
        self.statuses: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self._began = self._told = time.monotonic()

    def count(self, answer: Answer) -> None:
        """One more answer."""
        verdict, old = answer.verdict, answer.item.old
        self.done += 1
        self.reused += answer.reused
        self.asked += answer.asked
        self.prompt_tokens += answer.prompt_tokens
        self.completion_tokens += answer.completion_tokens
        self.statuses[str(verdict.status)] += 1
        if verdict.label is not None:
            self.kinds[verdict.confidence_kind or "none"] += 1
            if old is not None:
                self.compared += 1
                self.kept += self.same(old, verdict.label)
        if self.on_progress and time.monotonic() - self._told >= self.interval:
            self.tell()

    def tell(self) -> None:
        """Tell now."""
        self._told = time.monotonic()
        if self.on_progress:
            self.on_progress(self.progress())

    def progress(self) -> Progress:
        """Where it stands."""
        unasked = self.statuses[Status.PENDING] + self.statuses[Status.BUDGET]
        return Progress(
            phase=self.phase,
            total=self.total,
            done=self.done - unasked,
            unasked=unasked,
            reused=self.reused,
            asked=self.asked,
            no_verdict=self.done - unasked - self.statuses[Status.OK],
            seconds=time.monotonic() - self._began,
            cost=self.cost,
            compared=self.compared,
            kept=self.kept,
            escalated_share=self.escalated_share,
        )

    @property
    def cost(self) -> float | None:
        """US dollars paid for what was counted; None without a price."""
        return self.price.cost(self.prompt_tokens, self.completion_tokens) if self.price else None

    def totals(self, *, model: str, base_url: str) -> RoleTotals:
        """The counts as a result."""
        return RoleTotals(
            model=model,
            base_url=base_url,
            items=self.done,
            reused=self.reused,
            asked=self.asked,
            statuses=dict(sorted(self.statuses.items())),
            confidence_kinds=dict(sorted(self.kinds.items())),
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            cost=self.cost,
            price=self.price,
        )
