"""The client of a judge: one request in, one verdict or one reason out.

Confidence comes from the label's log-probabilities where the endpoint gives them, else from the agreement of
several samples, else from what the judge says of itself. A reply that hits the token limit is asked for once
more with a higher one. Every repeat of a request is made in `relabel.exchange`, none in the HTTP library.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterable
from dataclasses import replace
from types import TracebackType
from typing import Any

from audit.errors import EndpointError
from relabel.capabilities import Capabilities
from relabel.endpoint import Endpoint
from relabel.exchange import Exchange, Heard, sample_seed, usage_of
from relabel.gate import Gate
from relabel.parse import verdict_of
from relabel.records import Judged, Reply, Request, Status, Verdict
from relabel.spellings import Named, Spellings

__all__ = ["JudgeClient"]

FULL = 0.98  # a prompt that fills the context to here leaves no room for a reply: it was cut
RAISE = 4
RAISES_TO_LEARN = 3
BYTES_PER_TOKEN = 8.0  # more than any tokeniser packs on average: what is too long by this surely is


class JudgeClient:
    """Asks one model at one endpoint; use it in one event loop, as an asynchronous context manager.

    Parameters
    ----------
    model, base_url:
        Who is asked; ``base_url`` as for OpenAI's clients, as in ``http://localhost:8000/v1``.
    labels:
        The declared labels (names, or `relabel.rubric.Label`).
    capabilities:
        What is known of the endpoint (`relabel.probe.probe`); it grows while asking.
    gate:
        Bounds the requests under way; give one gate to all clients of one endpoint.
    timeout:
        Seconds for one HTTP request, from start to end.
    retries, patience, pause, rng:
        See `relabel.exchange.Exchange`.
    key_variable:
        The environment variable that holds the key. The key is in no record, message or error.

    Raises ArgumentError for a base URL that cannot be one; `judge` raises EndpointError where no request can
    ever succeed (key, address, model, quota, no answer at all).
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str,
        labels: Iterable[Named | str],
        capabilities: Capabilities | None = None,
        gate: Gate | None = None,
        timeout: float = 120.0,
        retries: int = 5,
        patience: float = 600.0,
        pause: float = 1.0,
        key_variable: str = "OPENAI_API_KEY",
        rng: random.Random | None = None,
    ) -> None:
        self.model = model
        self.spellings = Spellings(labels)
        self.endpoint = Endpoint(base_url, key_variable=key_variable, timeout=timeout)
        self.base_url = self.endpoint.base_url
        self.gate = gate or Gate()
        self._exchange = Exchange(
            self.endpoint,
            self.gate,
            capabilities=capabilities or Capabilities(),
            retries=retries,
            patience=patience,
            pause=pause,
            rng=rng,
        )
        self._raised = 0

    @property
    def capabilities(self) -> Capabilities:
        """What is known of the endpoint by now."""
        return self._exchange.capabilities

    @property
    def rate_limited(self) -> int:
        """How many 429 answers came so far (through this gate)."""
        return self.gate.limited

    async def judge(self, request: Request) -> Judged:
        """Ask until there is a verdict or a reason why there is none.

        One judgement may take several HTTP requests (repeats after faults, a raised token limit, samples);
        the reply adds up what they cost.
        """
        started = time.perf_counter()
        reply, verdict = self._too_long(request), None
        if reply is None:
            reply, verdict = await self._reply(request)
        reply = replace(reply, latency=time.perf_counter() - started)
        return Judged(request, reply, verdict or self.verdict(reply))

    def verdict(self, reply: Reply) -> Verdict:
        """What a reply says, by this client's labels."""
        return verdict_of(reply, self.spellings)

    def _too_long(self, request: Request) -> Reply | None:
        context = self.capabilities.context
        if context is None:
            return None
        size = sum(
            len(str(message.get("content")).encode("utf-8", "replace")) for message in request.messages
        )
        least = math.ceil(size / BYTES_PER_TOKEN)
        if least <= context:
            return None
        return Reply(
            status=Status.TOO_LONG, error=f"at least {least} tokens; the endpoint holds {context} (not sent)"
        )

    async def _reply(self, request: Request) -> tuple[Reply, Verdict | None]:
        """A reply, and its verdict where that was read on the way."""
        wishes = request.params
        samples = int(wishes.get("samples") or 1)
        sampling = samples > 1 and (not wishes.get("logprobs") or self.capabilities.logprobs is False)
        reply = await self._whole(request, draws=samples if sampling else 1, sampling=sampling)
        if reply.body is None or samples < 2:
            return reply, None
        if not sampling:
            verdict = self.verdict(reply)
            if verdict.status is not Status.OK or not wishes.get("logprobs"):
                return reply, verdict
            if self._said_logprobs(reply, verdict.confidence_kind == "logprob"):
                return reply, verdict
        return await self._sample(request, reply, samples), None

    def _said_logprobs(self, reply: Reply, sure: bool) -> bool:
        """Note whether the endpoint gives log-probabilities when asked for them."""
        if sure and self.capabilities.logprobs is None:
            self._exchange.capabilities = replace(self.capabilities, logprobs=True)
        elif not sure and "logprobs" in reply.sent and self.capabilities.logprobs is None:
            self._exchange.capabilities = replace(self.capabilities, logprobs=False)
        return sure

    async def _whole(self, request: Request, *, draws: int, sampling: bool) -> Reply:
        """One reply; asked for again with a raised limit, once, where the limit cut it."""
        limit = self._limit(request)
        raised = limit is not None and self._raised >= RAISES_TO_LEARN
        if limit is not None and raised:
            limit *= RAISE
        reply = await self._once(request, Reply(), limit=limit, draws=draws, sampling=sampling)
        if raised or limit is None or not _cut(reply) or self.verdict(reply).status is not Status.TRUNCATED:
            return reply
        again = await self._once(request, reply, limit=RAISE * limit, draws=draws, sampling=sampling)
        if again.status is not None:  # the cut reply tells more than the failure to mend it
            return replace(again, body=reply.body, status=None, error=again.error)
        self._raised += self.verdict(again).status is Status.OK
        return again

    @staticmethod
    def _limit(request: Request) -> int | None:
        wish = request.params.get("max_tokens") or request.params.get("max_completion_tokens")
        return None if wish is None else int(wish)

    async def _once(
        self,
        request: Request,
        before: Reply,
        *,
        limit: int | None,
        draws: int = 1,
        sampling: bool = False,
        first: int = 0,
    ) -> Reply:
        seed = sample_seed(request.params, repeat=request.repeat, draw=first)
        try:
            heard = await self._exchange.ask(request, limit=limit, seed=seed, draws=draws, sampling=sampling)
        except EndpointError as error:
            if not before.attempts:
                raise
            # What was paid for counts; the gate is closed, and the next request ends the run.
            heard = Heard(status=Status.TRANSPORT, error=str(error))
        return self._added(request, before, heard)

    def _added(self, request: Request, before: Reply, heard: Heard) -> Reply:
        prompt, completion = (0, 0) if heard.body is None else usage_of(heard.body, request.messages)
        status, error, context = heard.status, heard.error, self.capabilities.context
        if context is not None and prompt >= FULL * context:
            status, error = (
                Status.TOO_LONG,
                f"the endpoint read {prompt} tokens and holds {context}: it cut the item",
            )
        return Reply(
            body=heard.body,
            http_status=heard.http_status,
            status=status,
            error=error,
            prompt_tokens=before.prompt_tokens + prompt,
            completion_tokens=before.completion_tokens + completion,
            attempts=before.attempts + heard.attempts,
            sent=heard.sent,
        )

    async def _sample(self, request: Request, reply: Reply, samples: int) -> Reply:
        """Top a first reply up to so many choices, in as few requests as the endpoint allows."""
        bodies: list[dict[str, Any]] = []
        have = _choices(reply.body)
        self._counted(reply, have)
        total = reply
        while have < samples:
            wanted = samples - have if self.capabilities.n is not False else 1
            extra = await self._once(
                request, total, limit=self._limit_now(request), draws=wanted, sampling=True, first=have
            )
            if (
                extra.body is None or extra.status is not None
            ):  # fewer samples, a coarser confidence; the label stands
                return replace(reply, samples=tuple(bodies), **_costs(extra))
            self._counted(extra, _choices(extra.body))
            bodies.append(extra.body)
            have += max(1, _choices(extra.body))
            total = extra
        return replace(reply, samples=tuple(bodies), **_costs(total))

    def _limit_now(self, request: Request) -> int | None:
        limit = self._limit(request)
        return limit * RAISE if limit is not None and self._raised >= RAISES_TO_LEARN else limit

    def _counted(self, reply: Reply, choices: int) -> None:
        """Learn from a reply whether the endpoint gives as many choices as it is asked for."""
        asked = int(reply.sent.get("n") or 1)
        if asked > 1 and self.capabilities.n is None:
            self._exchange.capabilities = replace(self.capabilities, n=choices >= asked)
        elif asked > 1 and choices < asked:
            self._exchange.capabilities = replace(self.capabilities, n=False)

    async def aclose(self) -> None:
        """Close all connections."""
        await self.endpoint.aclose()

    async def __aenter__(self) -> JudgeClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _cut(reply: Reply) -> bool:
    """Whether a choice ended at the token limit."""
    choices = (reply.body or {}).get("choices")
    several = choices if isinstance(choices, list) else []
    return any(isinstance(one, dict) and one.get("finish_reason") == "length" for one in several)


def _choices(body: dict[str, Any] | None) -> int:
    choices = (body or {}).get("choices")
    return len(choices) if isinstance(choices, list) else 0


def _costs(reply: Reply) -> dict[str, Any]:
    return {
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "attempts": reply.attempts,
    }
