"""The one place where requests are repeated: waiting, backing off, learning, giving up.

A request that fails for itself is given up after ``retries`` repeats, one that is turned down for itself at
once. What no repeat can mend stops the run (EndpointError), and so does an endpoint that limits all requests
for ``patience`` seconds, or that never gave a reply, in this run or (by its capabilities) in an earlier one.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from audit.errors import EndpointError
from relabel.capabilities import FORMATS, Capabilities, Format, lower
from relabel.endpoint import Endpoint
from relabel.gate import Gate
from relabel.outcomes import Means, Outcome, fatal_message
from relabel.records import Request, Status

__all__ = ["Exchange", "Heard"]

LONGEST_PAUSE = 30.0
MOST_LESSONS = 12
ROWS_AT_FIRST = 5
LOST_AT_FIRST = 3
PROOFS = ("json_schema", "json_object_schema", "json_object", "logprobs", "temperature", "seed")


@dataclass(kw_only=True)
class Heard:
    """What one request led to: the body, or the status and reason why there is none; ``attempts`` in HTTP."""

    body: dict[str, Any] | None = None
    http_status: int | None = None
    status: Status | None = None
    error: str | None = None
    attempts: int = 0
    sent: Mapping[str, Any] = field(default_factory=dict)


@dataclass(kw_only=True)
class _Try:
    """Where one request stands: faults so far, what it learned, and the rung it tries on its own account."""

    faults: int = 0
    lessons: int = 0
    since: float = 0.0
    trial: int = 0
    format: Format = "json_schema"
    logprobs: bool = True


class Exchange:
    """Asks an endpoint until there is a reply or a reason for none; learns its `Capabilities` on the way.

    Parameters
    ----------
    endpoint, gate:
        Where to send and when; the gate may be shared.
    capabilities:
        What is known so far.
    retries:
        How often a request is repeated after faults of its own.
    patience:
        Seconds to go on while rate limits let nothing through.
    pause:
        Seconds before the first repeat; doubled for each further one up to 30, with jitter of ± 50 %.
    rng:
        For the jitter.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        gate: Gate,
        *,
        capabilities: Capabilities,
        retries: int = 5,
        patience: float = 600.0,
        pause: float = 1.0,
        rng: random.Random | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.gate = gate
        self.capabilities = capabilities
        self.retries = retries
        self.patience = patience
        self.pause = pause
        self.rng = rng or random.Random()
        self.successes = 0
        self._turned_down = 0
        self._lost = 0
        self._scout = False
        self._met = asyncio.Event()

    async def ask(
        self,
        request: Request,
        *,
        limit: int | None,
        seed: int | None,
        draws: int = 1,
        sampling: bool = False,
    ) -> Heard:
        """One reply to ``request`` (see `relabel.capabilities.lower` for the options).

        The first request goes alone, until it is clear what the endpoint takes. Raises EndpointError where
        asking on would change nothing.
        """
        if self._met.is_set():
            return await self._ask(request, limit=limit, seed=seed, draws=draws, sampling=sampling)
        if self._scout:
            await self._met.wait()
        self._scout = True
        try:
            return await self._ask(request, limit=limit, seed=seed, draws=draws, sampling=sampling)
        finally:
            self._met.set()

    async def _ask(
        self, request: Request, *, limit: int | None, seed: int | None, draws: int, sampling: bool
    ) -> Heard:
        heard = Heard()
        state = _Try(since=time.monotonic(), format=self.capabilities.format)
        while True:
            seen = self.capabilities if state.logprobs else replace(self.capabilities, logprobs=False)
            form = self.capabilities.format if state.trial == 0 else state.format
            heard.sent = lower(
                request.params, seen, form=form, limit=limit, seed=seed, draws=draws, sampling=sampling
            )
            ticket = await self.gate.enter()
            try:
                body = {"model": request.model, "messages": list(request.messages), **heard.sent}
                outcome = await self.endpoint.chat(body)
                heard.attempts += 1
                heard.http_status = outcome.status
                if outcome.means is Means.REPLY:
                    self.gate.success(ticket)
                elif outcome.means is Means.WAIT:
                    self.gate.refuse(ticket, retry_after=outcome.wait)
                elif outcome.means is Means.AGAIN:
                    self.gate.fault(ticket, strain=outcome.strain)
            finally:
                self.gate.leave(ticket)
            try:
                over = self._take(outcome, heard, state, form)
            except EndpointError as error:
                self.gate.close(error)
                raise
            if over:
                return heard
            if outcome.means is Means.WAIT or (outcome.means is Means.AGAIN and (outcome.status or 0) < 500):
                self._met.set()  # nothing to be learned from these: no need to go alone
            if outcome.means is Means.AGAIN and state.trial == 0:
                await self.gate.pause(self._pause(state, outcome))

    def _take(self, outcome: Outcome, heard: Heard, state: _Try, form: Format) -> bool:
        """Whether the request is over; else ``state`` says how it goes on."""
        told = self.endpoint.redact(outcome.told)
        if outcome.means is Means.REPLY:
            self.successes += 1
            self._accepted(heard.sent, state, form)
            heard.body = outcome.body
            return True
        if outcome.means is Means.TEACH and state.lessons < MOST_LESSONS:
            state.lessons += 1
            self.capabilities = self.capabilities.without(outcome.names, format=form)
            state.trial, state.logprobs = 0, True
            return False
        if outcome.means is Means.WAIT:
            self._out_of_patience(outcome, told)
            if time.monotonic() - state.since <= self.patience:
                return False
            return self._end(heard, Status.TRANSPORT, f"rate limited for {self.patience:g} s: {told}")
        if outcome.means is Means.AGAIN:
            return self._again(outcome, heard, state, told)
        if outcome.means is Means.TOO_LONG:
            if outcome.context is not None:
                self.capabilities = replace(self.capabilities, context=outcome.context)
            return self._end(heard, Status.TOO_LONG, told)
        if outcome.means is Means.REFUSED:
            return self._end(heard, Status.REFUSED, told)
        if outcome.means is Means.FATAL and not (outcome.status == 403 and self._proven):
            raise EndpointError(
                fatal_message(replace(outcome, told=told), self.endpoint.base_url, self.endpoint.key_variable)
            )
        self._turned_down += 1
        if not self._proven and self._turned_down >= ROWS_AT_FIRST:
            raise EndpointError(
                f"{self.endpoint.base_url} turns every request down ({outcome.status}: {told});"
                " correct what it names, or ask another endpoint"
            )
        return self._end(heard, Status.TRANSPORT, f"HTTP {outcome.status}: {told}")

    @property
    def _proven(self) -> bool:
        """Whether the endpoint is known to work, from this run or an earlier one: then faults are the rows' own."""
        return self.successes > 0 or True in (getattr(self.capabilities, rung, None) for rung in PROOFS)

    @staticmethod
    def _end(heard: Heard, status: Status, error: str) -> bool:
        heard.status, heard.error = status, error
        return True

    def _again(self, outcome: Outcome, heard: Heard, state: _Try, told: str) -> bool:
        if state.trial:
            self._next_rung(state)
            return False
        state.faults += 1
        if state.faults <= self.retries:
            if state.faults >= 2 and outcome.status is not None and outcome.status >= 500:
                self._next_rung(state)
            return False
        where = f"HTTP {outcome.status}: " if outcome.status else ""
        self._lost += 1
        gone = not outcome.answered and not self.successes
        if gone or (not self._proven and self._lost >= LOST_AT_FIRST):
            raise EndpointError(
                f"{self.endpoint.base_url} gave no reply in {heard.attempts} tries ({where}{told});"
                " check the base URL and that the server is up"
            )
        return self._end(heard, Status.TRANSPORT, f"{where}{told} ({heard.attempts} tries)")

    def _next_rung(self, state: _Try) -> None:
        """Try a lower form of reply, then no log-probabilities: some servers crash on what they lack.

        Only where the endpoint was never seen to take the present form; a whole round without success ends
        where it began, and nothing is learned from it.
        """
        known = self.capabilities
        rungs: list[tuple[Format, bool]] = []
        if known.format == "text" or getattr(known, known.format) is None:
            lower_forms = FORMATS[FORMATS.index(known.format) + 1 :]
            rungs = [
                (form, True) for form in lower_forms if form == "text" or getattr(known, form) is not False
            ]
            if known.logprobs is None:
                rungs.append((known.format, False))
        if state.trial < len(rungs):
            state.format, state.logprobs = rungs[state.trial]
            state.trial += 1
        else:
            state.trial, state.logprobs = 0, True

    def _accepted(self, sent: Mapping[str, Any], state: _Try, form: Format) -> None:
        """Learn from a reply: what was sent is taken; what had to be left out to get it is not."""
        known = self.capabilities
        changes: dict[str, Any] = {}
        if "response_format" in sent or form == "text":
            if state.trial and state.logprobs:
                tried = FORMATS[FORMATS.index(known.format) : FORMATS.index(form)]
                changes |= {rung: False for rung in tried if getattr(known, rung) is None}
            if form != "text" and getattr(known, form) is None:
                changes[form] = True
        if state.trial and not state.logprobs and known.logprobs is None:
            changes["logprobs"] = False
        for name in ("seed", "temperature"):
            if name in sent and getattr(known, name) is None:
                changes[name] = True
        for name in ("max_tokens", "max_completion_tokens"):
            if name in sent and known.limit_name is None:
                changes["limit_name"] = name
        if changes:
            self.capabilities = replace(known, **changes)

    def _pause(self, state: _Try, outcome: Outcome) -> float:
        wait = min(LONGEST_PAUSE, self.pause * 2.0 ** max(state.faults - 1, 0)) * (0.5 + self.rng.random())
        return wait if outcome.wait is None else max(wait, min(outcome.wait, self.patience))

    def _out_of_patience(self, outcome: Outcome, told: str) -> None:
        """Stop the run when all are rate limited for too long, or the endpoint asks for too long a wait."""
        silent = self.gate.silent_for
        asked = outcome.wait or 0.0
        if asked > self.patience:
            raise EndpointError(
                f"{self.endpoint.base_url} asks to wait {asked:.0f} s ({told}); run the same command again later"
            )
        if silent > self.patience:
            raise EndpointError(
                f"{self.endpoint.base_url} has let nothing through for {silent:.0f} s ({told});"
                " run the same command again later"
            )


def sample_seed(wishes: Mapping[str, Any], *, repeat: int, draw: int = 0) -> int | None:
    """The seed to send: wished seed + 1000 * repeat + draw, so that every fresh draw has its own; None without."""
    seed = wishes.get("seed")
    return None if seed is None else int(seed) + 1000 * repeat + draw


def usage_of(body: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """(prompt, completion) tokens of a reply; where it does not say, a quarter of the characters."""
    usage = body.get("usage")
    told = usage if isinstance(usage, Mapping) else {}
    prompt, completion = _count(told.get("prompt_tokens")), _count(told.get("completion_tokens"))
    if prompt is None:
        prompt = sum(len(str(message.get("content"))) for message in messages) // 4
    if completion is None:
        choices = body.get("choices")
        spoken = (
            [one.get("message") for one in choices if isinstance(one, Mapping)]
            if isinstance(choices, list)
            else []
        )
        completion = sum(len(str(message)) for message in spoken) // 4
    return prompt, completion


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        return None
    return int(value)
