"""Asks a teacher at an OpenAI-compatible endpoint and keeps every reply as it came, one line each.

The file of replies is only ever appended to, a whole line in one write, so that a run that was killed goes on
where it stood: a reply that is there is never asked for again. A reply is found again by a digest of all that
changes it (model, address, messages, parameters, number of the draw). The endpoint's own client repeats what may
pass (time-outs, 429, 5xx); what fails for good stays out of the file, and the same command asks it again.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from audit.errors import ArgumentError, EndpointError, InputError, MissingExtraError
from train.config import TeacherSettings
from train.task import Message

__all__ = ["Asked", "Question", "ask_teacher", "base_url_of", "is_local", "question_key", "read_replies"]

#: Called with replies at hand, replies wanted, and the seconds that the rest will take at this rate.
OnReply = Callable[[int, int, float], None]

_OPENAI = "https://api.openai.com/v1"
_KEY = "OPENAI_API_KEY"
#: Parameters that some endpoints do not take, and what is sent instead.
_INSTEAD = {"max_tokens": "max_completion_tokens", "temperature": "", "seed": ""}
_REFUSALS_TO_STOP = 3


@dataclass(frozen=True, kw_only=True)
class Question:
    """One draw to ask for: the messages about ``item`` and the number of the draw, 0 and up."""

    item: str
    sample: int
    messages: tuple[Message, ...]

    def body(self, settings: TeacherSettings, *, seed: int) -> dict[str, Any]:
        """What is sent. Draws of one item differ in their seed, for endpoints that would repeat themselves."""
        drawn = hashlib.sha256(f"{seed}\x1f{self.item}\x1f{self.sample}".encode()).digest()
        return {
            "model": settings.model,
            "messages": list(self.messages),
            "temperature": settings.temperature,
            "max_tokens": settings.max_tokens,
            "seed": int.from_bytes(drawn[:4], "big") >> 1,
        }


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What came of the questions: replies found in the file, replies asked for now, and failures by cause."""

    reused: int
    asked: int
    failed: dict[str, int] = field(default_factory=dict)

    @property
    def missing(self) -> int:
        """Questions without a reply."""
        return sum(self.failed.values())


def base_url_of(settings: TeacherSettings) -> str:
    """The endpoint's address: of the settings, else of OPENAI_BASE_URL, else OpenAI's."""
    url = (settings.base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI).strip().rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ArgumentError(f"teacher.base_url {url!r} is no address: write it as http://localhost:8000/v1")
    if parts.username or parts.password or parts.query:
        raise ArgumentError(f"teacher.base_url may hold no user, password or query: give a key in {_KEY}")
    return url


def is_local(url: str) -> bool:
    """Whether an address is on this machine, so that it needs neither key nor proxy."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def question_key(question: Question, settings: TeacherSettings, *, seed: int) -> str:
    """The digest under which a reply is kept: all that changes the reply, and nothing else."""
    body = {**question.body(settings, seed=seed), "url": base_url_of(settings), "draw": question.sample}
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:32]


def read_replies(path: Path) -> dict[str, dict[str, Any]]:
    """The replies of a file by their digest; a last line that was cut short is taken off the file.

    Raises InputError where another line is not one of ours.
    """
    found: dict[str, dict[str, Any]] = {}
    if not path.exists():
        return found
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.truncate(path, whole)
    for number, line in enumerate(data[:whole].splitlines(), start=1):
        try:
            entry = json.loads(line)
            found[entry["key"]] = entry
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{path}, line {number} is no reply: delete that line; it is asked again"
            ) from error
    return found


def ask_teacher(
    questions: Sequence[Question],
    *,
    settings: TeacherSettings,
    path: Path,
    seed: int,
    on_reply: OnReply | None = None,
) -> Asked:
    """Ask what ``path`` does not answer yet; every reply is in the file before the next is waited for.

    Parameters
    ----------
    questions:
        What to ask, all different.
    settings:
        Endpoint, sampling, and how many requests may be under way.
    path:
        The file of replies (JSON lines).
    seed:
        Fixes the seed sent with each draw.
    on_reply:
        Told after every reply.

    Raises
    ------
    EndpointError
        Nothing would ever work (key, address, model, quota), or no reply came at all. An endpoint that stops
        answering is left alone; what is open then counts as failed.
    MissingExtraError
        The openai package is not installed.
    """
    try:
        import openai  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("a teacher's traces", extra="train") from error
    known = read_replies(path)
    keyed = {question_key(question, settings, seed=seed): question for question in questions}
    open_ones = [(key, question) for key, question in keyed.items() if key not in known]
    reused = len(keyed) - len(open_ones)
    if not open_ones:
        return Asked(reused=reused, asked=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab", buffering=0) as file:
        session = _Session(settings, seed=seed, write=file.write, answered=reused, total=len(keyed))
        _wait(session.run(iter(open_ones), on_reply))
    return Asked(reused=reused, asked=session.answered - reused, failed=dict(session.failed))


def _wait(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end, also where an event loop runs already (as in a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    with ThreadPoolExecutor(max_workers=1) as pool:
        pool.submit(asyncio.run, work).result()


class _Session:
    """The workers of one run and what they learn of the endpoint."""

    def __init__(
        self,
        settings: TeacherSettings,
        *,
        seed: int,
        write: Callable[[bytes], object],
        answered: int,
        total: int,
    ) -> None:
        self.settings, self.seed, self.total = settings, seed, total
        self.answered = self._before = answered
        self.failed: Counter[str] = Counter()
        self._write = write
        self._key = os.environ.get(_KEY, "").strip()
        self._instead: dict[str, str] = {}
        self._silent = 0
        self._given_up = ""
        self._refused: list[bytes] = []
        self._began = time.monotonic()

    async def run(self, open_ones: Iterator[tuple[str, Question]], on_reply: OnReply | None) -> None:
        """Share the questions among so many workers; the first error that ends all ends them all."""
        import openai

        url = base_url_of(self.settings)
        local = is_local(url)
        if not self._key and not local:
            raise EndpointError(f"{_KEY} is not set: put the key of {url} in the environment")
        client = openai.AsyncOpenAI(
            api_key=self._key or "none",
            base_url=url,
            max_retries=self.settings.retries,
            timeout=self.settings.timeout,
            http_client=openai.DefaultAsyncHttpxClient(trust_env=not local),
        )

        async def work() -> None:
            for key, question in open_ones:  # one iterator for all: each question is taken once
                if self._given_up:
                    self.failed[self._given_up] += 1
                    continue
                await self._one(client, key, question)
                if on_reply:
                    on_reply(self.answered, self.total, self._left())

        async with client:
            workers = [asyncio.create_task(work()) for _ in range(min(self.settings.concurrency, self.total))]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
        if self._refused:
            self.failed["turned down before any reply came"] += len(self._refused)

    async def _one(self, client: Any, key: str, question: Question) -> None:
        """Ask one question until there is a reply or a reason why there is none."""
        import openai

        body = question.body(self.settings, seed=self.seed)
        while True:
            sent = self._taken(body)
            try:
                reply = await client.chat.completions.create(**sent)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                if self._learns(sent, str(error)):
                    continue
                self._refuse(key, question, error)
            except openai.APIError as error:
                self._fail(error)
            except ValueError:
                self._count_failure("an answer that is no JSON")
            else:
                self._keep(key, question, reply.model_dump(mode="json", exclude_unset=True))
            return

    def _left(self) -> float:
        asked = max(self.answered - self._before, 1)
        return (self.total - self.answered) * (time.monotonic() - self._began) / asked

    def _taken(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body with what the endpoint does not take left out or under its other name."""
        pairs = ((self._instead.get(name, name), value) for name, value in body.items())
        return {name: value for name, value in pairs if name}

    def _learns(self, sent: dict[str, Any], told: str) -> bool:
        """Whether a refusal names a parameter that was sent and can be sent otherwise."""
        names = [name for name in _INSTEAD if name in told and name in sent]
        for name in names:
            self._instead[name] = _INSTEAD[name]
        return bool(names)

    def _line(self, key: str, question: Question, body: dict[str, Any]) -> bytes:
        entry = {"key": key, "item": question.item, "sample": question.sample, "body": body}
        line = json.dumps(entry, ensure_ascii=False)
        return (line.replace(self._key, "[key]") if len(self._key) >= 12 else line).encode(
            "utf-8", "backslashreplace"
        ) + b"\n"

    def _keep(self, key: str, question: Question, body: dict[str, Any]) -> None:
        self._refused.append(self._line(key, question, body))
        self._flush()

    def _flush(self) -> None:
        for line in self._refused:
            self._write(line)
            self.answered += 1
        self._refused.clear()
        self._silent = 0

    def _refuse(self, key: str, question: Question, error: Any) -> None:
        """A question that the endpoint turns down counts as replied to, once others were not turned down."""
        told = self._told(error)
        self._refused.append(self._line(key, question, {"refused": told}))
        if self.answered:
            self._flush()
        elif len(self._refused) >= min(_REFUSALS_TO_STOP, self.total):
            raise EndpointError(f"the teacher turns every request down: {told}") from error

    def _fail(self, error: Any) -> None:
        import openai

        told = self._told(error)
        spent = getattr(error, "code", None) == "insufficient_quota"
        fatal = openai.AuthenticationError | openai.PermissionDeniedError | openai.NotFoundError
        if spent or isinstance(error, fatal):
            raise EndpointError(
                f"the teacher at {base_url_of(self.settings)} cannot be used: {told}: check {_KEY}, "
                "teacher.base_url and teacher.model"
            ) from error
        self._count_failure(told, error)

    def _count_failure(self, told: str, error: Exception | None = None) -> None:
        self.failed[told] += 1
        self._silent += 1
        if self._silent <= max(_REFUSALS_TO_STOP, self.settings.concurrency):
            return
        if not self.answered:
            raise EndpointError(
                f"the teacher at {base_url_of(self.settings)} does not answer: {told}: is the address right?"
            ) from error
        self._given_up = told

    def _told(self, error: Any) -> str:
        """The endpoint's message as one line without the key."""
        cause = error.__cause__
        text = str(error.message) + (f" ({cause})" if cause is not None and str(cause) else "")
        line = " ".join(text.split())[:300]
        return line.replace(self._key, "[key]") if self._key else line
