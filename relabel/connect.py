"""From names on a command line to a `Judge` that can be asked: endpoint, key, price, capabilities, client."""

from __future__ import annotations

import math
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from audit.errors import ArgumentError
from relabel.capabilities import Capabilities, verdict_params
from relabel.client import RAISE, JudgeClient
from relabel.cost import DEFAULT_BASE_URL, Price, find_price
from relabel.endpoint import check_url
from relabel.gate import Gate
from relabel.journal import Journal
from relabel.pipeline import Judge
from relabel.rubric import Rubric

__all__ = ["Place", "Settings", "connect", "need_key", "place", "wishes"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How requests are made; all of it but ``concurrency`` and ``timeout`` is part of every request's key.

    Parameters
    ----------
    concurrency:
        At most so many requests at once (the gate may allow fewer for a while).
    seed:
        Orders items of equal confidence, and is sent to endpoints that take one.
    temperature:
        None leaves it to the endpoint.
    max_tokens:
        Tokens for one reply, thoughts included; raised once where a reply is cut.
    samples:
        Samples per item where the endpoint gives no log-probabilities; 1 takes the judge's own word.
    timeout:
        Seconds for one request.
    """

    concurrency: int = 64
    seed: int = 0
    temperature: float | None = 0.0
    max_tokens: int = 512
    samples: int = 5
    timeout: float = 120.0

    def __post_init__(self) -> None:
        for name in ("concurrency", "max_tokens", "samples", "timeout"):
            if not getattr(self, name) > 0:
                raise ArgumentError(f"--{name.replace('_', '-')} must be above 0")
        if self.temperature is not None and not math.isfinite(self.temperature):
            raise ArgumentError(
                f"--temperature {self.temperature} is no temperature; give a number such as 0"
            )


@dataclass(frozen=True, kw_only=True)
class Place:
    """A model at an endpoint, with its price if one is known, and the name of the variable that holds the key."""

    model: str
    base_url: str
    price: Price | None
    key_variable: str


def place(
    model: str,
    *,
    base_url: str | None = None,
    price_in: float | None = None,
    price_out: float | None = None,
    key_variables: tuple[str, ...] = ("OPENAI_API_KEY",),
) -> Place:
    """Where a model is asked; ``base_url`` is by default ``OPENAI_BASE_URL`` or OpenAI's own.

    The key is in the first of the environment's ``key_variables`` that is set.
    """
    for name, value in (("--judge", model), ("--base-url", base_url)):
        if value is not None and not value.strip():
            raise ArgumentError(f"{name} is empty; give it a value, or leave it out")
    url = (base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL).rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise ArgumentError(
            f"--base-url {url!r} is no address; it starts with http:// or https://, often ends in /v1"
        )
    check_url(url)
    key = next((name for name in key_variables if os.environ.get(name, "").strip()), None)
    return Place(
        model=model,
        base_url=url,
        price=find_price(model, base_url=url, price_in=price_in, price_out=price_out),
        key_variable=key or key_variables[-1],
    )


def need_key(where: Place) -> None:
    """ArgumentError where an endpoint that takes nothing without a key is about to be asked without one."""
    if where.base_url == DEFAULT_BASE_URL and not os.environ.get(where.key_variable, "").strip():
        raise ArgumentError(
            f"no key for {where.base_url}: set OPENAI_API_KEY, or name another endpoint with --base-url"
        )


def wishes(rubric: Rubric, settings: Settings) -> dict[str, Any]:
    """The parameters of every request of a run."""
    return verdict_params(
        rubric.label_names,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
        seed=settings.seed,
        samples=settings.samples,
    )


@asynccontextmanager
async def connect(
    where: Place, *, rubric: Rubric, settings: Settings, journal: Journal, gate: Gate
) -> AsyncIterator[Judge]:
    """A judge at an endpoint, with what the journal knows of it; what is learnt goes back to the journal.

    ``gate`` is the endpoint's: judges at one endpoint share it.
    """
    before = Capabilities.from_dict(journal.capabilities(base_url=where.base_url, model=where.model) or {})
    client = JudgeClient(
        model=where.model,
        base_url=where.base_url,
        labels=rubric.labels,
        capabilities=before,
        gate=gate,
        timeout=settings.timeout,
        key_variable=where.key_variable,
    )
    try:
        async with client:
            yield Judge(
                client=client,
                params=wishes(rubric, settings),
                price=where.price,
                longest_reply=settings.max_tokens * (1 + RAISE),
                draws=lambda: 1 if client.capabilities.logprobs else settings.samples,
            )
    finally:
        if client.capabilities != before:
            seen = client.capabilities.to_dict()
            journal.record_capabilities(seen, base_url=where.base_url, model=where.model)
