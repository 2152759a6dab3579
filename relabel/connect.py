"""From names on a command line to a `Judge` that can be asked: endpoint, key, price, capabilities, client."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from audit.errors import ArgumentError
from relabel.capabilities import Capabilities, verdict_params
from relabel.client import JudgeClient
from relabel.cost import DEFAULT_BASE_URL, Price, find_price
from relabel.gate import Gate
from relabel.journal import Journal
from relabel.pipeline import Judge
from relabel.rubric import Rubric

__all__ = ["Endpoint", "Settings", "connect", "endpoint", "wishes"]

RAISE = 4  # a cut reply is asked for once more with so many times the tokens (see relabel.capabilities)


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
            if getattr(self, name) <= 0:
                raise ArgumentError(f"--{name.replace('_', '-')} must be above 0")


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A model at a place, with its price if one is known. The key is in no text made of it."""

    model: str
    base_url: str
    price: Price | None
    key: str = field(repr=False)


def endpoint(
    model: str,
    *,
    base_url: str | None = None,
    price_in: float | None = None,
    price_out: float | None = None,
    key_names: tuple[str, ...] = ("OPENAI_API_KEY",),
) -> Endpoint:
    """The endpoint of a model; ``base_url`` is by default ``OPENAI_BASE_URL`` or OpenAI's own.

    The key is the first of the environment's ``key_names`` that is set. OpenAI's own endpoint needs one.
    """
    url = (base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL).rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise ArgumentError(
            f"--base-url {url!r} is no address; it starts with http:// or https://, often ends in /v1"
        )
    key = next((os.environ[name].strip() for name in key_names if os.environ.get(name, "").strip()), "")
    if not key and url == DEFAULT_BASE_URL:
        raise ArgumentError(f"no key for {url}: set OPENAI_API_KEY, or name another endpoint with --base-url")
    return Endpoint(
        model=model,
        base_url=url,
        price=find_price(model, base_url=url, price_in=price_in, price_out=price_out),
        key=key or "none",
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
    place: Endpoint, *, rubric: Rubric, settings: Settings, journal: Journal
) -> AsyncIterator[Judge]:
    """A judge at an endpoint, with what the journal knows of it; what is learnt goes back to the journal."""
    seen = journal.capabilities(base_url=place.base_url, model=place.model)
    before = Capabilities.from_dict(seen or {})
    client = JudgeClient(
        base_url=place.base_url,
        api_key=place.key,
        model=place.model,
        labels=rubric.labels,
        capabilities=before,
        gate=Gate(settings.concurrency),
        timeout=settings.timeout,
    )
    try:
        yield Judge(
            client=client,
            params=wishes(rubric, settings),
            price=place.price,
            context=before.context,
            longest_reply=settings.max_tokens * (1 + RAISE),
        )
    finally:
        await client.close()
        if client.capabilities != before:
            journal.record_capabilities(
                client.capabilities.to_dict(), base_url=place.base_url, model=place.model
            )
