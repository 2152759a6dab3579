"""Judges items: what the journal knows is used again, the rest is asked, and nothing is asked twice.

`judge_items` is the one place where requests are made. Workers take requests from a short queue, so that
memory does not grow with the number of items; a worker is done with a reply only when the journal has it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from audit.errors import EndpointError
from relabel.cost import Budget, Price, TokenRate
from relabel.journal import Journal, Stored
from relabel.parse import Spellings, verdict_of
from relabel.prompts import messages
from relabel.records import Judged, Request, Status, Verdict
from relabel.rubric import Rubric
from relabel.worklist import Item, batches

__all__ = ["Answer", "Client", "Judge", "Stop", "judge_items", "known", "make_request"]

BATCH = 128


class Client(Protocol):
    """What is needed of a client (`relabel.client.JudgeClient` is one)."""

    @property
    def model(self) -> str:
        """The model that is asked."""

    @property
    def base_url(self) -> str:
        """The endpoint that is asked."""

    async def judge(self, request: Request) -> Judged:
        """Ask until there is a verdict or a reason why there will be none."""


def _one_reply() -> int:
    """One reply an item."""
    return 1


@dataclass(kw_only=True)
class Judge:
    """Who is asked, with which parameters, at what price; ``tokens`` learns from the replies.

    ``params`` are the wishes that go into every `Request`; ``longest_reply`` is the most completion tokens that
    one reply may be charged for, and ``draws`` tells how many replies an item takes, as far as is known by now.
    """

    client: Client
    params: Mapping[str, Any]
    price: Price | None = None
    longest_reply: int = 1024
    draws: Callable[[], int] = _one_reply
    tokens: TokenRate = field(default_factory=TokenRate)


class Answer(NamedTuple):
    """What became of one item: its verdict, whether the journal knew it, whether it was asked, tokens now paid."""

    item: Item
    verdict: Verdict
    reused: bool = False
    asked: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass
class Stop:
    """Asked for from anywhere, also from another thread: no new request is made, those under way finish."""

    reason: str = ""
    status: Status = Status.PENDING

    @property
    def requested(self) -> bool:
        """Whether to stop."""
        return bool(self.reason)

    def request(self, reason: str, *, status: Status = Status.PENDING) -> None:
        """Stop for ``reason``; items not asked get ``status``. The first reason stands."""
        if not self.reason:
            self.status = status
            self.reason = reason


def make_request(
    item: Item, *, rubric: Rubric, judge: Judge, repeat: int = 0, shuffle_seed: int | None = None
) -> Request:
    """The request that asks ``judge`` about ``item``: the same for the same arguments, always."""
    return Request(
        model=judge.client.model,
        base_url=judge.client.base_url,
        params=judge.params,
        messages=messages(rubric, item.row, shuffle_seed=shuffle_seed),
        repeat=repeat,
    )


def known(stored: Stored, *, journal: Journal, rubric: Rubric, spellings: Spellings) -> Verdict:
    """The verdict of a record: as recorded, or read again from the raw reply if the rubric's file has changed.

    (The key holds all of the rubric that the judge reads, but not the synonyms by which replies are read.)
    """
    if stored.rubric == rubric.hash:
        return stored.verdict
    return verdict_of(journal.judged(stored).reply, spellings)


async def judge_items(
    items: Iterable[Item],
    *,
    rubric: Rubric,
    judge: Judge,
    journal: Journal,
    on_answer: Callable[[Answer], None],
    repeat: int = 0,
    shuffle_seed: int | None = None,
    concurrency: int = 64,
    budget: Budget | None = None,
    stop: Stop | None = None,
) -> None:
    """Judge items, each once; ``on_answer`` hears of each exactly once, in the order they finish.

    Parameters
    ----------
    items:
        Read as they are needed; distinct texts.
    rubric, judge, journal:
        By what, by whom, and where it is kept.
    repeat:
        0 for the first draw; 1, 2, ... for fresh draws, which never reuse another draw's verdict.
    shuffle_seed:
        Labels and clauses in another order (see `relabel.prompts.messages`).
    concurrency:
        At most so many requests at once.
    budget:
        No request that could pass it is made; what is left gets the status ``budget``.
    stop:
        Ends it early: requests under way finish and are kept, all other items get the stop's status.

    Raises
    ------
    EndpointError
        Where asking on would change nothing; requests that were under way are finished and kept before.
    """
    run = _Run(
        rubric=rubric,
        judge=judge,
        journal=journal,
        on_answer=on_answer,
        concurrency=concurrency,
        budget=budget or Budget(),
        stop=stop or Stop(),
    )
    try:
        async with asyncio.TaskGroup() as group:  # whatever is raised in here stops all workers at once
            workers = [group.create_task(run.work()) for _ in range(concurrency)]
            for batch in batches(items, BATCH):
                requests = [
                    make_request(item, rubric=rubric, judge=judge, repeat=repeat, shuffle_seed=shuffle_seed)
                    for item in batch
                ]
                await run.offer(batch, requests)
            for _ in workers:
                await run.queue.put(None)
    except BaseExceptionGroup as failures:
        raise _first(failures) from failures
    if run.failure is not None:
        raise run.failure


def _first(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    found: BaseException = failures
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


class _Run:
    """The state that the workers of one `judge_items` share."""

    def __init__(
        self,
        *,
        rubric: Rubric,
        judge: Judge,
        journal: Journal,
        on_answer: Callable[[Answer], None],
        concurrency: int,
        budget: Budget,
        stop: Stop,
    ) -> None:
        self.rubric, self.judge, self.journal = rubric, judge, journal
        self.on_answer, self.budget, self.stop = on_answer, budget, stop
        self.queue: asyncio.Queue[tuple[Item, Request, int] | None] = asyncio.Queue(2 * concurrency)
        self.spellings = Spellings(rubric.labels)
        self.unanswered, self.patience = 0, max(20, 2 * concurrency)
        self.pending: list[tuple[Judged, asyncio.Future[None]]] = []
        self.settled = asyncio.Event()
        self.failure: EndpointError | None = None

    async def offer(self, batch: Sequence[Item], requests: Sequence[Request]) -> None:
        """Answer from the journal what it knows, and queue the rest."""
        found = self.journal.find([request.key for request in requests])
        for item, request in zip(batch, requests, strict=True):
            stored = found.get(request.key)
            if stored is not None:
                verdict = known(stored, journal=self.journal, rubric=self.rubric, spellings=self.spellings)
                if (
                    verdict.status.reusable or self.stop.requested
                ):  # then the last word stands, whatever it was
                    self.on_answer(Answer(item, verdict, reused=True))
                    continue
            size = sum(len(message["content"].encode()) for message in request.messages)
            if item.answered and not request.repeat:
                self.on_answer(Answer(item, Verdict(status=Status.PENDING, reason="a person has answered")))
            elif self.stop.requested:
                self.skip(item)
            else:
                await self.queue.put((item, request, size))

    def skip(self, item: Item) -> None:
        self.on_answer(
            Answer(item, Verdict(status=self.stop.status, reason=f"not asked: {self.stop.reason}"))
        )

    async def work(self) -> None:
        """Ask for queued requests, one after the other, until the queue says it was the last."""
        while (task := await self.queue.get()) is not None:
            item, request, size = task
            promised = await self.promise(size)
            if promised is None:
                self.skip(item)
                continue
            try:
                judged = await self.judge.client.judge(request)
            except EndpointError as error:  # the others finish what is under way: it is paid for
                self.failure = self.failure or error
                self.stop.request(str(error))
                self.settle(promised, 0.0)
                continue
            await self.keep(judged)
            self.account(judged, size, promised)
            reply = judged.reply
            self.on_answer(
                Answer(
                    item,
                    judged.verdict,
                    asked=True,
                    prompt_tokens=reply.prompt_tokens,
                    completion_tokens=reply.completion_tokens,
                )
            )

    async def promise(self, size: int) -> float | None:
        """Dollars set aside for a request, or None where it must not be made any more."""
        price, tokens = self.judge.price, self.judge.tokens
        while not self.stop.requested:
            if self.budget.limit is None or price is None:
                return 0.0
            # The most it can cost: half as many tokens again as guessed, one repeat, and replies up to their limit.
            draws = self.judge.draws()
            amount = price.cost(1.5 * tokens.prompt(size) * (draws + 1), self.judge.longest_reply * draws)
            if self.budget.reserve(amount):
                return amount
            if not self.budget.promises:
                self.stop.request("the budget is spent", status=Status.BUDGET)
                break
            self.settled.clear()
            await self.settled.wait()
        return None

    def settle(self, promised: float, paid: float) -> None:
        """A request is over: what was promised is what it cost."""
        if self.budget.limit is not None and self.judge.price is not None:
            self.budget.settle(promised, paid)
        self.settled.set()

    def account(self, judged: Judged, size: int, promised: float) -> None:
        """Note what a reply cost and taught, and stop when the endpoint is gone."""
        reply, price = judged.reply, self.judge.price
        self.settle(promised, price.cost(reply.prompt_tokens, reply.completion_tokens) if price else 0.0)
        if reply.attempts == 1 and not reply.samples and reply.body is not None:
            self.judge.tokens.learn(
                size, prompt_tokens=reply.prompt_tokens, completion_tokens=reply.completion_tokens
            )
        if judged.verdict.status is Status.TRANSPORT:
            self.unanswered += 1
            if self.unanswered >= self.patience:
                last = judged.verdict.reason or reply.error or "no reply"
                self.stop.request(f"{self.unanswered} requests in a row got no reply ({last})")
        else:
            self.unanswered = 0

    async def keep(self, judged: Judged) -> None:
        """Return when the journal has it. Replies that come together are written together."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        if not self.pending:
            loop.call_soon(self.flush)
        self.pending.append((judged, done))
        await done

    def flush(self) -> None:
        pending, self.pending = self.pending, []
        try:
            self.journal.record((judged for judged, _ in pending), rubric=self.rubric.hash)
        except Exception as error:  # noqa: BLE001 - handed to the workers that wait, which raise it
            for _, done in pending:
                if not done.done():
                    done.set_exception(error)
        else:
            for _, done in pending:
                if not done.done():
                    done.set_result(None)
