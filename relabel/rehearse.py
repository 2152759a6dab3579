"""A rehearsal server: a real HTTP server on loopback that plays an OpenAI-compatible endpoint.

Its judge follows a `Script` with known errors, its `Profile` says what the endpoint supports, its faults
and its `Rate` what goes wrong; it counts what it was asked. So a run can be rehearsed, and tests written,
without spending anything::

    with RehearsalServer(Script(truth={"rain tomorrow": "weather", "shares fell": "markets"})) as server:
        client = openai.OpenAI(base_url=server.base_url, api_key="any")

The server has its own thread and event loop, so blocking and asynchronous clients may use it alike.
``GET /rehearsal/counts`` gives the counts as JSON.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from audit.errors import AuditError
from relabel.rehearse_faults import REPLY_FAULTS, TRANSPORT_FAULTS, Fault, FaultBook, error_answer, unit
from relabel.rehearse_http import Answer, Asked, Connection, json_answer
from relabel.rehearse_profiles import PROFILES, Profile
from relabel.rehearse_script import Script, choice

__all__ = ["PROFILES", "Counts", "Fault", "Profile", "Rate", "RehearsalServer", "Script"]


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A rate limit kept by the server: a bucket of ``burst`` requests, refilled at ``per_second``.

    With ``retry_after`` the 429 says how long to wait (whole seconds, rounded up); without, it is silent.
    """

    per_second: float
    burst: int = 1
    retry_after: bool = True


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What the server was asked so far. Two requests are the same when their bodies are equal.

    ``answered`` counts chat responses that carried a whole verdict; ``answered_again`` those among them
    whose request had been answered before; ``repeated`` all requests seen before.
    """

    requests: int = 0
    distinct: int = 0
    repeated: int = 0
    answered: int = 0
    answered_again: int = 0
    max_in_flight: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    by_status: Mapping[int, int] = field(default_factory=dict)
    by_fault: Mapping[str, int] = field(default_factory=dict)
    by_model: Mapping[str, int] = field(default_factory=dict)


class RehearsalServer:
    """An OpenAI-compatible endpoint on 127.0.0.1 whose every answer is scripted.

    Parameters
    ----------
    script:
        The judge, or one judge per model name (any other model is then 404).
    faults:
        What goes wrong; may be replaced while the server runs (``server.faults = [...]``).
    profile:
        What the endpoint supports (`PROFILES` has some seen in the field).
    latency, jitter:
        Seconds before each answer, evenly in ``latency * (1 ± jitter)``.
    rate:
        A rate limit, or None.
    api_key:
        The only key that is let in; None lets every one in.
    port:
        0 takes a free one.
    seed:
        Fixes which requests the faults strike.
    """

    def __init__(
        self,
        script: Script | Mapping[str, Script],
        *,
        faults: Sequence[Fault] = (),
        profile: Profile | None = None,
        latency: float = 0.0,
        jitter: float = 0.0,
        rate: Rate | None = None,
        api_key: str | None = None,
        port: int = 0,
        seed: int = 0,
    ) -> None:
        self.script = script
        self.profile = profile or Profile()
        self.latency, self.jitter = latency, jitter
        self.rate = rate
        self.api_key = api_key
        self.seed = seed
        self._port = port
        self._book = FaultBook(faults, seed)
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._failed: BaseException | None = None
        self._bucket = (0.0, 0.0)
        self._forget()

    def _forget(self) -> None:
        self._seen: Counter[bytes] = Counter()
        self._told: set[bytes] = set()
        self._tally: Counter[str] = Counter()
        self._status: Counter[int] = Counter()
        self._models: Counter[str] = Counter()
        self._flying = 0

    @property
    def faults(self) -> Sequence[Fault]:
        """The faults in force."""
        return self._book.faults

    @faults.setter
    def faults(self, faults: Sequence[Fault]) -> None:
        self._book = FaultBook(faults, self.seed)

    @property
    def base_url(self) -> str:
        """Where clients turn to, as in ``http://127.0.0.1:40123/v1``."""
        return f"http://127.0.0.1:{self._port}/v1"

    def counts(self) -> Counts:
        """What the server was asked so far."""
        return Counts(
            requests=self._tally["requests"],
            distinct=len(self._seen),
            repeated=self._tally["requests"] - len(self._seen),
            answered=self._tally["answered"],
            answered_again=self._tally["answered_again"],
            max_in_flight=self._tally["max_in_flight"],
            prompt_tokens=self._tally["prompt_tokens"],
            completion_tokens=self._tally["completion_tokens"],
            by_status=dict(self._status),
            by_fault=dict(self._book.struck),
            by_model=dict(self._models),
        )

    def start(self) -> RehearsalServer:
        """Start serving; raises AuditError where the port is taken."""
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="rehearsal", daemon=True)
        self._thread.start()
        ready.wait()
        if self._failed is not None:
            self._thread.join()
            raise AuditError(
                f"the rehearsal server cannot listen on port {self._port} ({self._failed}); choose another port"
            ) from self._failed
        return self

    def stop(self) -> None:
        """Close every connection and end the thread."""
        if self._thread is None or self._loop is None or self._stop is None:
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._thread = None

    def __enter__(self) -> RehearsalServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, ready: threading.Event) -> None:
        try:
            asyncio.run(self._serve(ready))
        except OSError as error:
            self._failed = error
        finally:
            ready.set()

    async def _serve(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        alive: set[Connection] = set()
        server = await self._loop.create_server(
            lambda: Connection(self._answer, self._landed, alive), "127.0.0.1", self._port, backlog=1024
        )
        self._port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._stop.wait()
        server.close()
        for connection in list(alive):
            connection.abort()
        await asyncio.sleep(0)  # lets the connections notice

    def _landed(self) -> None:
        self._flying -= 1

    def _answer(self, asked: Asked) -> Answer:
        self._flying += 1
        path = urlsplit(asked.path).path  # a client that takes this server for its proxy sends whole URLs
        if path == "/rehearsal/counts":
            return json_answer(asdict(self.counts()))
        if self.api_key is not None and asked.headers.get("authorization") != f"Bearer {self.api_key}":
            return self._count(error_answer(401, "Incorrect API key provided.", code="invalid_api_key"))
        if path.rstrip("/") == "/v1/models" and asked.method == "GET":
            names = list(self.script) if isinstance(self.script, Mapping) else ["judge"]
            return json_answer({"object": "list", "data": [self.profile.model_card(name) for name in names]})
        if path != "/v1/chat/completions" or asked.method != "POST":
            return self._count(error_answer(404, f"There is nothing at {asked.method} {path}."))
        return self._count(self._chat(asked))

    def _count(self, answer: Answer) -> Answer:
        self._status[0 if answer.hang or answer.cut == -1 else answer.status] += 1
        return answer

    def _chat(self, asked: Asked) -> Answer:
        number = self._tally["requests"]
        digest = hashlib.blake2b(asked.body, digest_size=12).digest()
        self._tally["requests"] += 1
        self._tally["max_in_flight"] = max(self._tally["max_in_flight"], self._flying)
        self._seen[digest] += 1
        limited = self._limited()
        if limited is not None:
            return limited
        try:
            body = json.loads(asked.body)
            model, messages = str(body["model"]), body["messages"]
            last = str(messages[-1]["content"])
        except (ValueError, KeyError, IndexError, TypeError):
            return error_answer(400, "The body is not a chat request.", kind="invalid_request_error")
        self._models[model] += 1
        fault, replies = self._book.pick(number=number, digest=digest, last=last)
        delay = self.latency * (1 + self.jitter * (2 * unit(self.seed, "delay", number) - 1))
        answer = self._judge(body, model, messages, digest, replies)
        whole = answer.status == 200 and not replies
        if fault is not None:
            answer = TRANSPORT_FAULTS[fault.kind](fault, answer)
        elif whole:
            self._tally["answered"] += 1
            self._tally["answered_again"] += digest in self._told
            self._told.add(digest)
        return replace(answer, delay=delay)

    def _judge(
        self,
        body: Mapping[str, Any],
        model: str,
        messages: Sequence[Mapping[str, Any]],
        digest: bytes,
        replies: Sequence[Fault],
    ) -> Answer:
        script = self.script.get(model) if isinstance(self.script, Mapping) else self.script
        if script is None:
            return error_answer(404, f"The model `{model}` does not exist.", code="model_not_found")
        refused = self.profile.refuse(body, messages)
        if refused is not None:
            return refused
        draw: tuple[Any, ...] = (digest.hex(),)
        if body.get("temperature") != 0 and body.get("seed") is None:
            draw = (digest.hex(), self._seen[digest])
        choices = []
        for index in range(self.profile.choices(body)):
            answered = script.answer(messages, draw=(*draw, index))
            found = choice(answered, index=index, top=self.profile.top_logprobs(body))
            self.profile.dress(found, body)
            for reply in replies:
                REPLY_FAULTS[reply.kind](found)
            choices.append(found)
        return self._respond(model, choices, messages)

    def _respond(
        self, model: str, choices: list[dict[str, Any]], messages: Sequence[Mapping[str, Any]]
    ) -> Answer:
        prompt = self.profile.prompt_tokens(messages)
        completion = sum(self.profile.completion_tokens(found) for found in choices)
        self._tally["prompt_tokens"] += prompt
        self._tally["completion_tokens"] += completion
        number = self._tally["requests"]
        return json_answer(
            {
                "id": f"chatcmpl-rehearsal-{number}",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": model,
                "choices": choices,
                "usage": {
                    "prompt_tokens": prompt,
                    "completion_tokens": completion,
                    "total_tokens": prompt + completion,
                },
            }
        )

    def _limited(self) -> Answer | None:
        if self.rate is None:
            return None
        now = time.monotonic()
        level, at = self._bucket
        level = (
            self.rate.burst if at == 0 else min(self.rate.burst, level + (now - at) * self.rate.per_second)
        )
        if level >= 1:
            self._bucket = (level - 1, now)
            return None
        self._bucket = (level, now)
        wait = (1 - level) / self.rate.per_second
        return TRANSPORT_FAULTS["rate_limit"](
            Fault(kind="rate_limit", retry_after=float(-(-wait // 1)) if self.rate.retry_after else None),
            Answer(),
        )
