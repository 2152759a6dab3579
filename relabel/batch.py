"""The files of OpenAI's Batch API: requests written, output and error files taken in.

A batch costs half the price (`PRICE`) and takes up to a day. Here are only the files: upload them with purpose
``batch``, make a batch of each for ``/v1/chat/completions``, and put its output and error files into the same folder.
The ``custom_id`` of a line is the key of its `relabel.records.Request`, so every reply finds its item, and is kept
in the journal like any other: ``audit relabel run`` then asks only what is missing.

Formats: https://platform.openai.com/docs/api-reference/batch (a file holds up to 50,000 requests and 200 MB).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from audit.errors import ArgumentError
from audit.results import Result
from relabel.batch_read import format_of, read_folder
from relabel.batch_write import MAX_BYTES, MAX_REQUESTS, URL, BatchWriter
from relabel.capabilities import Capabilities, lower
from relabel.client import RAISE
from relabel.cost import TokenRate
from relabel.exchange import sample_seed
from relabel.journal import Journal
from relabel.parse import verdict_of
from relabel.recall import UNASKED, Asked, recalled
from relabel.records import Judged, Reply, Status, Verdict
from relabel.run import Job
from relabel.spellings import Spellings

__all__ = [
    "MAX_BYTES",
    "MAX_REQUESTS",
    "PRICE",
    "BatchCollected",
    "BatchWritten",
    "collect_batch",
    "write_batch",
]

PRICE = 0.5  # of the full price, by the Batch API's own page

CHUNK = 200

BatchRole = Literal["judge", "adjudicator"]


@dataclass(frozen=True, kw_only=True)
class BatchWritten(Result):
    """Files written: items asked about, requests (more where an item takes several samples), known items.

    ``cost``: US dollars, about, at the price of a batch; None without a price.
    """

    role: str
    model: str
    items: int
    requests: int
    known: int
    cost: float | None
    files: tuple[str, ...]
    notes: tuple[str, ...]

    def summary(self) -> str:
        """A few lines for a person."""
        if not self.items:
            return (
                f"nothing to write: the journal has a verdict of the {self.role} for all {self.known:,} items"
            )
        lines = [
            f"wrote {self.requests:,} requests about {self.items:,} items for the {self.role} {self.model}"
            f" ({self.known:,} items are known)"
            + (", price unknown" if self.cost is None else f", about ${self.cost:,.4f} as a batch")
        ]
        lines += [f"  {name}" for name in self.files]
        lines += self.notes
        lines.append(
            f"upload each with purpose batch, make a batch of it for {URL}, put its output and error files into"
            " the same folder, then audit relabel batch collect"
        )
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class BatchCollected(Result):
    """What was taken in.

    Parameters
    ----------
    statuses:
        Status -> items whose replies are now in the journal.
    unchanged:
        Items whose replies the journal had already.
    missing:
        Items asked about in the folder that no reply is there for.
    unknown:
        Replies whose ``custom_id`` is of no request of this job: not used.
    unreadable:
        Lines that are no JSON of a batch, with file and line.
    learned:
        Parameters that the endpoint turned down; the next files leave them out.
    """

    role: str
    statuses: Mapping[str, int]
    unchanged: int
    missing: int
    unknown: int
    unreadable: tuple[str, ...]
    learned: tuple[str, ...]
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    journal: str

    @property
    def exit_code(self) -> int:
        """0, or 3 where items of these files have no verdict."""
        return 3 if self.missing or any(status != Status.OK for status in self.statuses) else 0

    def summary(self) -> str:
        """A few lines for a person."""
        told = ", ".join(f"{name} {count:,}" for name, count in self.statuses.items()) or "nothing new"
        lines = [
            f"took into {self.journal}: {told} ({self.prompt_tokens:,} + {self.completion_tokens:,} tokens"
            + (")" if self.cost is None else f", ${self.cost:,.4f} as a batch)")
        ]
        if self.unchanged:
            lines.append(f"{self.unchanged:,} items were there already")
        if self.missing:
            lines.append(f"{self.missing:,} items have no reply in these files yet")
        if self.unknown:
            lines.append(f"{self.unknown:,} replies are of no request of this job and were not used")
        lines += [f"not readable: {text}" for text in self.unreadable[:20]]
        if self.learned:
            lines.append(f"the endpoint does not take {', '.join(self.learned)}: the next files leave it out")
        if self.exit_code:
            lines.append(
                "audit relabel batch write writes what is missing again; audit relabel run asks it at once"
            )
        return "\n".join(lines)


def write_batch(
    job: Job,
    *,
    folder: str | Path,
    role: BatchRole = "judge",
    max_requests: int = MAX_REQUESTS,
    max_bytes: int = MAX_BYTES,
    hopeful: bool = False,
) -> BatchWritten:
    """Write the requests that ``role`` has no verdict for, in files within the limits; asks nothing.

    ``hopeful`` leaves out those that got a reply, but no label: only what was lost, or once cut, is written. The
    adjudicator's come once the judge is done: which items it gets follows from the judge's confidences.

    Raises
    ------
    ArgumentError
        Where the judge is not done, there is no adjudicator, or the folder holds requests already.
    """
    if max_requests < 1 or max_bytes < 1:
        raise ArgumentError("--max-requests and --max-bytes are at least 1")
    folder = Path(folder)
    if role == "adjudicator" and job.adjudicator is None:
        raise ArgumentError("there is no adjudicator; give --adjudicator MODEL")
    if folder.is_dir() and any(folder.glob("*.jsonl")):
        raise ArgumentError(f"{folder} holds batch files already; give another --dir for each batch")
    with recalled(job, write=True) as recall:
        if role == "adjudicator" and recall.unasked["judge"]:
            raise ArgumentError(
                f"the judge has not answered {recall.unasked['judge']:,} items, and its least sure are chosen from"
                " all: collect or write its batch first, or finish it with audit relabel run"
            )
        place = recall.places[1 if role == "adjudicator" else 0]
        can = Capabilities.from_dict(
            recall.journal.capabilities(base_url=place.base_url, model=place.model) or {}
        )
        notes = []
        if can.format == "json_schema" and can.json_schema is None:
            notes.append(f"{place.model} was not probed: should it turn a parameter down, collect learns it")
        known = size = 0
        with BatchWriter(folder, role, max_requests=max_requests, max_bytes=max_bytes) as written:
            for asked in recall.asked(role):
                if asked.item.answered or (asked.verdict is not None and asked.verdict.status.reusable):
                    known += 1
                elif not hopeful or _hopeful(asked, recall.journal):
                    bodies = list(_bodies(asked, can))
                    written.add(asked.request.key, bodies)
                    texts = (message["content"].encode() for message in asked.request.messages)
                    size += len(bodies) * sum(map(len, texts))
    rate, cost = TokenRate(), None
    if place.price is not None:
        cost = PRICE * place.price.cost(rate.prompt(size), written.requests * rate.completion)
    return BatchWritten(
        role=role,
        model=place.model,
        items=written.items,
        requests=written.requests,
        known=known,
        cost=cost,
        files=tuple(str(path) for path in written.files),
        notes=tuple(notes),
    )


def _hopeful(asked: Asked, journal: Journal) -> bool:
    """Whether another try may help: never asked, lost on the way, or cut by the limit the first time."""
    if asked.verdict is not None and asked.verdict.status is Status.TRUNCATED:
        return len(journal.history(asked.request.key)) == 1
    return asked.verdict is None or asked.verdict.status in UNASKED


def _bodies(asked: Asked, can: Capabilities) -> Iterator[dict[str, Any]]:
    """The body of an item's request, or of each of its samples where the endpoint gives one choice at a time."""
    wishes = asked.request.params
    samples = int(wishes.get("samples") or 1)
    sampling = samples > 1 and can.logprobs is False
    limit = wishes.get("max_tokens")
    if limit is not None and asked.verdict is not None and asked.verdict.status is Status.TRUNCATED:
        limit = RAISE * int(limit)  # cut before: once more, with the raised limit
    once = samples if sampling and can.n is not False else 1
    for draw in range(samples if sampling and can.n is False else 1):
        seed = sample_seed(wishes, repeat=asked.request.repeat, draw=draw)
        sent = lower(wishes, can, form=can.format, limit=limit, seed=seed, draws=once, sampling=sampling)
        yield {"model": asked.request.model, "messages": list(asked.request.messages), **sent}


def collect_batch(job: Job, *, folder: str | Path, role: BatchRole = "judge") -> BatchCollected:
    """Take the output and error files in ``folder`` into the job's journal, joined on ``custom_id``.

    ``job`` and ``role`` are those of `write_batch`, whose files must still be in the folder (they tell what was
    sent). Collecting twice changes nothing; a line that cannot be read or joined is told and never used.
    """
    if role == "adjudicator" and job.adjudicator is None:
        raise ArgumentError("there is no adjudicator; give --adjudicator MODEL")
    with read_folder(Path(folder)) as found, recalled(job, write=True) as recall:
        spellings = Spellings(recall.rubric.labels)
        place = recall.places[1 if role == "adjudicator" else 0]
        journal = recall.journal
        before = can = Capabilities.from_dict(
            journal.capabilities(base_url=place.base_url, model=place.model) or {}
        )
        statuses: dict[str, int] = {}
        waiting: list[Judged] = []
        unchanged = absent = prompt = completion = 0
        learned: set[str] = set()
        for asked in recall.asked(role):
            told = found.told(asked.request)
            if told is None:
                continue
            if told.reply is None:
                absent += 1
                continue
            reply = told.reply
            can = can.without(told.turned_down, format=format_of(reply.sent))
            learned.update(told.turned_down)
            if _there(asked, reply, journal):
                unchanged += 1
                continue
            verdict = verdict_of(reply, spellings)
            can = _learn(can, reply, verdict)
            waiting.append(Judged(asked.request, reply, verdict))
            statuses[str(verdict.status)] = statuses.get(str(verdict.status), 0) + 1
            prompt, completion = prompt + reply.prompt_tokens, completion + reply.completion_tokens
            if len(waiting) >= CHUNK:
                journal.record(waiting, rubric=recall.rubric.hash, price=PRICE)
                waiting.clear()
        if waiting:
            journal.record(waiting, rubric=recall.rubric.hash, price=PRICE)
        if can != before:
            journal.record_capabilities(can.to_dict(), base_url=place.base_url, model=place.model)
        return BatchCollected(
            role=role,
            statuses=dict(sorted(statuses.items())),
            unchanged=unchanged,
            missing=absent,
            unknown=found.unknown(),
            unreadable=tuple(found.unreadable),
            learned=tuple(sorted(learned)),
            prompt_tokens=prompt,
            completion_tokens=completion,
            cost=PRICE * place.price.cost(prompt, completion) if place.price else None,
            journal=str(journal.path),
        )


def _there(asked: Asked, reply: Reply, journal: Journal) -> bool:
    """Whether the journal has a verdict already, or this very reply."""
    if asked.stored is None:
        return False
    if asked.verdict is not None and asked.verdict.status.reusable:
        return True
    return any(journal.judged(stored).reply == reply for stored in journal.history(asked.request.key))


def _learn(can: Capabilities, reply: Reply, verdict: Verdict) -> Capabilities:
    """What a good reply says of the endpoint: the form it took, and whether log-probabilities came."""
    if verdict.status is not Status.OK:
        return can
    form = format_of(reply.sent)
    if form != "text" and getattr(can, form) is None:
        taken: dict[str, Any] = {form: True}
        can = replace(can, **taken)
    if reply.sent.get("logprobs") and can.logprobs is None:
        can = replace(can, logprobs=verdict.confidence_kind == "logprob")
    return can
