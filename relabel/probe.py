"""Finds out with a handful of small requests what an endpoint really does, not what it claims to do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from audit.errors import EndpointError
from relabel.capabilities import Capabilities
from relabel.endpoint import Endpoint
from relabel.outcomes import Means, Outcome

__all__ = ["probe"]

TRIES = 3
_SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["word"],
    "additionalProperties": False,
}
_FORMATS: Mapping[str, Mapping[str, Any]] = {
    "json_schema": {
        "type": "json_schema",
        "json_schema": {"name": "word", "strict": True, "schema": _SCHEMA},
    },
    "json_object_schema": {"type": "json_object", "schema": _SCHEMA},
    "json_object": {"type": "json_object"},
}
_ASK = "Answer with one word, yes or no, in plain letters: is water wet?"
_ASK_JSON = (
    "Is water wet? If you are made to answer in JSON, use the key word; else one plain word, yes or no."
)
_CONTEXT = (
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "n_ctx",
    "max_input_tokens",
)


async def probe(
    *,
    model: str,
    base_url: str,
    key_variable: str = "OPENAI_API_KEY",
    timeout: float = 120.0,
    pause: float = 1.0,
    max_tokens: int = 256,
    try_context: int | None = None,
) -> Capabilities:
    """What an endpoint does with each parameter that a judge would use: about twelve requests.

    Parameters
    ----------
    model, base_url, key_variable, timeout:
        As for `relabel.client.JudgeClient`.
    pause:
        Seconds before a failed request is repeated, twice at most.
    max_tokens:
        The token limit of each request; models that think need room for it.
    try_context:
        Also send one prompt of about so many tokens, and see whether it is refused or silently cut. Costs
        what such a prompt costs.

    Raises EndpointError where not even a plain request gets a reply.
    """
    async with Endpoint(base_url, key_variable=key_variable, timeout=timeout) as endpoint:
        prober = _Prober(endpoint, model, max_tokens, pause)
        return await prober.run(try_context)


class _Prober:
    def __init__(self, endpoint: Endpoint, model: str, limit: int, pause: float) -> None:
        self.endpoint, self.model, self.limit, self.pause = endpoint, model, limit, pause
        self.seen = Capabilities()
        self.notes: list[str] = []

    async def run(self, try_context: int | None) -> Capabilities:
        await self.models()
        await self.plain()
        for name in _FORMATS:
            await self.format(name)
        await self.accepted()
        await self.logprobs()
        await self.choices()
        await self.cap()
        if try_context is not None:
            await self.context(try_context)
        return replace(self.seen, notes=tuple(self.notes))

    async def ask(self, question: str = _ASK, **more: Any) -> Outcome:
        """One chat request with these parameters; repeated only after faults that may pass."""
        body: dict[str, Any] = {"model": self.model, "messages": [{"role": "user", "content": question}]}
        if self.seen.limit_name != "none":
            body[self.seen.limit_name or "max_tokens"] = self.limit
        body |= more
        outcome = await self.endpoint.chat(body)
        for turn in range(1, TRIES):
            if outcome.means not in (Means.AGAIN, Means.WAIT):
                break
            await asyncio.sleep(max(self.pause * turn, min(outcome.wait or 0.0, 60.0)))
            outcome = await self.endpoint.chat(body)
        return outcome

    async def models(self) -> None:
        """The context length, where the list of models tells it."""
        outcome = await self.endpoint.models()
        entries = (outcome.body or {}).get("data")
        if outcome.means is not Means.REPLY or not isinstance(entries, list):
            self.notes.append("it lists no models")
            return
        known = {str(entry.get("id")): entry for entry in entries if isinstance(entry, dict)}
        if self.model not in known:
            self.notes.append(f"its list of models does not name {self.model!r}")
        card = known.get(self.model, {})
        for key in _CONTEXT:
            if isinstance(card.get(key), int) and card[key] > 0:
                self.seen = replace(self.seen, context=card[key])
                return

    async def plain(self) -> None:
        """A request without anything special must work; it shows the token limit's name and the reasoning."""
        outcome = await self.ask()
        for _ in range(2):
            if outcome.means is Means.TEACH:
                self.seen = self.seen.without(outcome.names, format="text")
                outcome = await self.ask()
        if outcome.means is not Means.REPLY:
            told = self.endpoint.redact(outcome.told)
            status = f"HTTP {outcome.status}: " if outcome.status else ""
            hint = f"check the base URL, the model's name and the key in {self.endpoint.key_variable}"
            raise EndpointError(
                f"{self.endpoint.base_url} does not answer a plain request ({status}{told}); {hint}"
            )
        if self.seen.limit_name is None:
            self.seen = replace(self.seen, limit_name="max_tokens")
        message = _message(outcome)
        thought = message.get("reasoning_content") or message.get("reasoning")
        if thought:
            self.seen = replace(self.seen, reasoning="field")
        else:
            self.seen = replace(self.seen, reasoning="think" if "</think>" in _text(outcome) else "none")
        if not _text(outcome).strip():
            self.notes.append("a plain reply was empty: the token limit may be too low for its reasoning")

    async def format(self, name: str) -> None:
        """Whether a form of reply is taken, and kept to: the question asks for a plain word."""
        outcome = await self.ask(_ASK_JSON, response_format=_FORMATS[name])
        taken = outcome.means is Means.REPLY
        kept = taken and _text(outcome).rpartition("</think>")[2].lstrip().startswith("{")
        if taken and not kept:
            self.notes.append(f"{name} is accepted, but not kept to")
        elif not taken:
            self.notes.append(f"{name} is turned down (HTTP {outcome.status})")
        changes: dict[str, Any] = {name: kept}
        self.seen = replace(self.seen, **changes)

    async def accepted(self) -> None:
        """Temperature and seed; and whether temperature 0 gives the same reply twice."""
        warm = await self.ask(temperature=0)
        self.seen = replace(self.seen, temperature=warm.means is Means.REPLY)
        cool: dict[str, Any] = {"temperature": 0} if self.seen.temperature else {}
        seeded = await self.ask(seed=7, **cool)
        self.seen = replace(self.seen, seed=seeded.means is Means.REPLY)
        if self.seen.temperature and self.seen.seed and _text(warm) == _text(seeded):
            self.notes.append("temperature 0 gave the same reply twice: repeats there measure nothing")

    async def logprobs(self) -> None:
        """Whether log-probabilities come, with alternatives."""
        outcome = await self.ask(logprobs=True, top_logprobs=2)
        found = _choice(outcome).get("logprobs") if outcome.means is Means.REPLY else None
        content = found.get("content") or found.get("tokens") if isinstance(found, Mapping) else None
        self.seen = replace(self.seen, logprobs=bool(content))
        if outcome.means is Means.REPLY and not content:
            self.notes.append("logprobs are accepted, but none come")
        elif (
            isinstance(content, list)
            and isinstance(content[0], Mapping)
            and not content[0].get("top_logprobs")
        ):
            self.notes.append("logprobs come without alternatives")

    async def choices(self) -> None:
        """Whether n = 3 gives three choices."""
        warm: dict[str, Any] = {"temperature": 1} if self.seen.temperature else {}
        outcome = await self.ask(n=3, **warm)
        count = len((outcome.body or {}).get("choices") or ()) if outcome.means is Means.REPLY else 0
        self.seen = replace(self.seen, n=count == 3)
        if outcome.means is Means.REPLY and count != 3:
            self.notes.append(f"n = 3 gives {count} choice{'s' * (count != 1)}")

    async def cap(self) -> None:
        """Whether the token limit is kept."""
        if self.seen.limit_name in (None, "none"):
            self.notes.append("it takes no token limit")
            return
        outcome = await self.ask("Count from one to two hundred in words.", **{str(self.seen.limit_name): 16})
        usage = (outcome.body or {}).get("usage") or {}
        if outcome.means is Means.REPLY and (usage.get("completion_tokens") or 0) > 32:
            self.notes.append(f"{self.seen.limit_name} is not kept")

    async def context(self, tokens: int) -> None:
        """Send a long prompt: numbers in words are a token or more each."""
        outcome = await self.ask("word " * tokens + "\n" + _ASK)
        if outcome.means is Means.TOO_LONG:
            self.notes.append(f"a prompt of {tokens} tokens is refused")
            self.seen = replace(self.seen, context=outcome.context or self.seen.context)
            return
        read = ((outcome.body or {}).get("usage") or {}).get("prompt_tokens")
        if outcome.means is not Means.REPLY or not isinstance(read, int):
            self.notes.append(f"a prompt of {tokens} tokens got no reply that tells what was read")
        elif read < 0.9 * tokens:
            self.notes.append(
                f"of a prompt of {tokens} tokens only {read} are read: longer ones are cut silently"
            )
            self.seen = replace(self.seen, context=read)
        else:
            self.notes.append(f"a prompt of {tokens} tokens is read whole")


def _choice(outcome: Outcome) -> Mapping[str, Any]:
    choices = (outcome.body or {}).get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else {}


def _message(outcome: Outcome) -> Mapping[str, Any]:
    message = _choice(outcome).get("message")
    return message if isinstance(message, Mapping) else {}


def _text(outcome: Outcome) -> str:
    content = _message(outcome).get("content")
    return content if isinstance(content, str) else json.dumps(content) if content else ""
