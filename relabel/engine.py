"""The passes of a run in their order: gold, judge, choice, adjudicator, output."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from audit.errors import ArgumentError
from relabel.connect import Place, Settings, connect
from relabel.cost import Budget, find_price
from relabel.escalate import GoldThreshold, Policy, threshold_on_gold
from relabel.gate import Gate
from relabel.gold import Gold, GoldSample
from relabel.journal import Journal
from relabel.output import write
from relabel.people import recall_answers
from relabel.pipeline import Answer, Judge, Stop, judge_items
from relabel.progress import Meter, Progress, RoleTotals
from relabel.records import Status, Verdict
from relabel.result import RunResult
from relabel.rubric import Rubric
from relabel.threads import RunInterruptedError, run_in_thread
from relabel.worklist import HELPABLE, ROLES, Decision, Item, Role, Worklist, decide

__all__ = ["Engine", "choose"]

GRID = 200  # thresholds tried on gold: quantiles of the confidences of the items to be labelled
CHUNK = 256


class Engine:
    """One run's parts. `work` asks (``offline``: only the journal), `finish` writes, unless the source ``changed``."""

    def __init__(
        self,
        *,
        rubric: Rubric,
        worklist: Worklist,
        journal: Journal,
        asked: tuple[Place, ...],
        settings: Settings,
        policy: Policy,
        sample: GoldSample | None,
        budget: float | None,
        on_progress: Callable[[Progress], None] | None,
        on_notice: Callable[[str], None] | None,
        offline: bool = False,
        changed: Callable[[], bool] = lambda: False,
    ) -> None:
        self.offline, self.changed = offline, changed
        self.rubric, self.worklist, self.journal, self.asked = rubric, worklist, journal, asked
        self.settings, self.policy, self.sample = settings, policy, sample
        self.on_progress, self.notice = on_progress, on_notice or (lambda line: None)
        self.stop = Stop()
        self.budget = Budget(budget, spent=sum(cost or 0.0 for cost in self.paid()))
        self.totals: dict[str, RoleTotals] = {}
        self.gold: Gold | None = None
        self.threshold: GoldThreshold | None = None
        self.escalated = 0
        self.cuts: dict[str, float] = {}
        self.gates = {where.base_url: Gate(settings.concurrency) for where in asked}

    def paid(self) -> list[float | None]:
        """US dollars that all runs of the journal have paid so far, per model; None where there is no price."""
        given = {(place.model, place.base_url): place.price for place in self.asked}
        return [
            spent.cost(
                given.get((spent.model, spent.base_url)) or find_price(spent.model, base_url=spent.base_url)
            )
            for spent in self.journal.spent()
        ]

    def same(self, old: str, new: str) -> bool:
        """Whether an old label, in any spelling that the rubric knows, is the new one."""
        return (self.rubric.canonical(old) or old) == new

    def work(self) -> None:
        """Take in what people answered, judge, escalate, adjudicate; RunInterruptedError on Ctrl-C."""
        answers = recall_answers(self.worklist, journal=self.journal, rubric=self.rubric)
        if answers.older:
            self.notice(
                f"{answers.older:,} of {answers.count:,} answers of people are of an earlier text of the rubric"
            )
        if self.offline:
            self.stop.request("only the journal was asked")
        try:
            run_in_thread(self._phases, stop=self.stop, notice=self.notice)
        except KeyboardInterrupt as error:
            raise self._interrupted() from error

    def _interrupted(self) -> RunInterruptedError:
        return RunInterruptedError(
            f"interrupted; every reply so far is in {self.journal.path}: the same command goes on from there"
        )

    def _connect(self, where: Place) -> AbstractAsyncContextManager[Judge]:
        return connect(
            where,
            rubric=self.rubric,
            settings=self.settings,
            journal=self.journal,
            gate=self.gates[where.base_url],
        )

    async def _phases(self) -> None:
        first = self.asked[0]
        async with self._connect(first) as judge:
            if self.sample is not None:
                found: dict[int, Verdict] = {}
                await self._pass(
                    "gold", self.sample.items, judge, first, len(self.sample.items), found.update
                )
                self.gold = Gold(
                    sample=self.sample, verdicts=tuple(found[item.id] for item in self.sample.items)
                )
            await self._judge("judge", judge, first)
        if len(self.asked) == 1 or (self.stop.requested and not self.offline):
            return
        self.escalated = self._escalate()
        self.cuts = self.worklist.cuts()
        second = self.asked[1]
        async with self._connect(second) as judge:
            await self._judge("adjudicator", judge, second)

    async def _judge(self, role: Role, judge: Judge, place: Place) -> None:
        first = role == "judge"
        total = self.worklist.items - self.worklist.empty if first else self.escalated
        await self._pass(
            role,
            self.worklist.read(escalated=not first),
            judge,
            place,
            total,
            lambda verdicts: self.worklist.put(verdicts, role=role, model=place.model),
        )

    async def _pass(
        self,
        phase: str,
        items: Iterable[Item],
        judge: Judge,
        place: Place,
        total: int,
        keep: Callable[[list[tuple[int, Verdict]]], None],
        repeat: int = 0,
        shuffle_seed: int | None = None,
    ) -> None:
        meter = Meter(
            phase,
            total=total,
            price=place.price,
            on_progress=self.on_progress,
            same=self.same,
            escalated_share=self.escalated / max(1, self.totals["judge"].items)
            if phase == "adjudicator"
            else None,
        )
        waiting: list[tuple[int, Verdict]] = []

        def answered(answer: Answer) -> None:
            meter.count(answer)
            waiting.append((answer.item.id, answer.verdict))
            if len(waiting) >= CHUNK:
                keep(waiting)
                waiting.clear()

        await judge_items(
            items,
            rubric=self.rubric,
            judge=judge,
            journal=self.journal,
            on_answer=answered,
            repeat=repeat,
            shuffle_seed=shuffle_seed,
            concurrency=self.settings.concurrency,
            budget=self.budget,
            stop=self.stop,
        )
        keep(waiting)
        meter.tell()
        self.totals[phase] = meter.totals(model=place.model, base_url=place.base_url)

    def _escalate(self) -> int:
        count, self.threshold = choose(self.worklist, self.policy, self.gold)
        return count

    def again(
        self, items: Sequence[Item], *, repeat: int, shuffle_seed: int | None = None
    ) -> dict[int, Decision]:
        """Put some items through the whole pipeline again, as fresh draws; call `work` first.

        Parameters
        ----------
        items:
            Items of the worklist (`Worklist.read`).
        repeat:
            1, 2, ...: goes into every request's key, so that no other draw's verdict is used.
        shuffle_seed:
            Labels and clauses in another order (see `relabel.prompts.messages`).

        Returns
        -------
        Item number -> decision. The adjudicator gets what the judge is now less sure of than the confidence that
        parted escalated from kept items in `work` (``cuts``), and what the judge could not label.
        """
        try:
            return run_in_thread(
                lambda: self._again(items, repeat, shuffle_seed), stop=self.stop, notice=self.notice
            )
        except KeyboardInterrupt as error:
            raise self._interrupted() from error

    async def _again(
        self, items: Sequence[Item], repeat: int, shuffle_seed: int | None
    ) -> dict[int, Decision]:
        found: dict[int, dict[Role, tuple[str, Verdict]]] = {item.id: {} for item in items}
        asked: Sequence[Item] = items
        for role, where in zip(ROLES, self.asked, strict=False):

            def keep(
                verdicts: list[tuple[int, Verdict]], role: Role = role, model: str = where.model
            ) -> None:
                for number, verdict in verdicts:
                    found[number][role] = (model, verdict)

            async with self._connect(where) as judge:
                await self._pass(
                    f"repeat {repeat}, {role}", asked, judge, where, len(asked), keep, repeat, shuffle_seed
                )
            asked = [item for item in items if self._unsure(found[item.id]["judge"][1])]
        return {number: decide(verdicts) for number, verdicts in found.items()}

    def _unsure(self, verdict: Verdict) -> bool:
        if verdict.label is None:
            return verdict.status in HELPABLE
        if verdict.confidence is None or verdict.confidence_kind is None:
            return True
        return verdict.confidence < self.cuts.get(verdict.confidence_kind, 0.0)

    def finish(self, *, out: Path, unresolved: Path, began: float) -> RunResult:
        """Write the table and say what was done. ``began`` is of the clock ``time.monotonic``."""
        counts = write(
            self.worklist,
            out=out,
            unresolved=unresolved,
            rubric_version=self.rubric.version,
            same=self.same,
            changed=self.changed,
        )
        if self.journal.lost:
            self.notice(
                f"{self.journal.path} was moved or removed while the run wrote to it: its replies are gone"
            )
        return RunResult(
            rubric={"name": self.rubric.name, "version": self.rubric.version, "hash": self.rubric.hash},
            rows=self.worklist.rows,
            items=self.worklist.items,
            empty=self.worklist.empty,
            judge=self.totals["judge"],
            adjudicator=self.totals.get("adjudicator"),
            policy=self.policy,
            escalated=self.escalated,
            threshold=self.threshold,
            gold=self.gold.to_dict() if self.gold else None,
            sources=dict(sorted(counts.sources.items())),
            statuses=dict(sorted(counts.statuses.items())),
            labels=dict(sorted(counts.labels.items())),
            compared=counts.compared,
            kept=counts.kept,
            stopped="" if self.offline and not counts.statuses[Status.PENDING] else self.stop.reason,
            cost=_sum(totals.cost for totals in self.totals.values()),
            cost_of_journal=_sum(self.paid()),
            seconds=time.monotonic() - began,
            out=str(out),
            unresolved=str(unresolved) if counts.unresolved else None,
            journal=str(self.journal.path),
        )


def choose(worklist: Worklist, policy: Policy, gold: Gold | None) -> tuple[int, GoldThreshold | None]:
    """Mark the items that go to the adjudicator; return how many, and the threshold if gold gave it."""
    if policy.kind == "share":
        return worklist.escalate_share(policy.value), None
    if policy.kind == "below":
        return worklist.escalate_below(policy.value), None
    if gold is None or gold.main_kind is None:
        raise ArgumentError(
            "the judge gave no confidence on gold; use --escalate SHARE of another judge's pick"
        )
    kind = gold.main_kind
    confidence, agrees = gold.of_kind(kind)
    grid = worklist.confidences(kind, quantiles=GRID)
    threshold = threshold_on_gold(confidence, agrees, grid=grid, target=policy.value)
    return worklist.escalate_below(threshold.threshold, kind=kind), threshold


def _sum(costs: Iterable[float | None]) -> float | None:
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total
