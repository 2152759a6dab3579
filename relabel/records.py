"""The records that pass between the parts of a relabelling run.

A `Request` is what is asked, as wished: one logical judgement. The client may have to lower a wish to
what the endpoint can do (no ``json_schema``, another name for ``max_tokens``, several samples); what
went over the wire is told in `Reply.sent`, and never changes `Request.key`. So an endpoint that teaches
the client something in the middle of a run makes no stored judgement unfindable.

`REPLY_FIELDS` is the JSON object a judge is asked for, in this order (reasons first, then the label):
``{"rationale": str, "clause": str, "label": str, "confidence": number in [0, 1]}``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal, NamedTuple

__all__ = [
    "CONFIDENCE_KINDS",
    "REPLY_FIELDS",
    "ConfidenceKind",
    "Judged",
    "Reply",
    "Request",
    "Status",
    "Verdict",
]

REPLY_FIELDS = ("rationale", "clause", "label", "confidence")

ConfidenceKind = Literal["logprob", "agreement", "verbalised"]
CONFIDENCE_KINDS: tuple[ConfidenceKind, ...] = ("logprob", "agreement", "verbalised")


class Status(StrEnum):
    """What became of one judgement. Only ``OK`` carries a label; every other member is "no verdict"."""

    OK = "ok"
    TRUNCATED = "truncated"  # the reply hit the token limit, also after the limit was raised once
    REFUSED = "refused"  # the model or a content filter declined; asking again would not help
    UNPARSABLE = "unparsable"  # a reply came, but no label can be read from it without guessing
    NOT_IN_SET = "not_in_set"  # a label came that the rubric does not have
    EMPTY = "empty"  # not asked: the row has no text in any input column
    TOO_LONG = "too_long"  # the item does not fit the context of the endpoint
    TRANSPORT = "transport"  # no usable reply after all tries: time-outs, cuts, server errors
    BUDGET = "budget"  # not asked: the budget was spent
    PENDING = "pending"  # not asked yet

    @property
    def reusable(self) -> bool:
        """Whether a stored verdict with this status may be used again without asking (only ``OK``)."""
        return self is Status.OK


@dataclass(frozen=True, kw_only=True)
class Request:
    """One judgement to ask for: exactly what can change the answer, and nothing else.

    Parameters
    ----------
    model, base_url:
        Who is asked. A trailing slash of ``base_url`` does not count.
    params:
        The wished parameters (``temperature``, ``max_tokens``, ``seed``, ``response_format``,
        ``logprobs`` ...): JSON values only.
    messages:
        The chat messages in order, each with ``role`` and ``content``.
    repeat:
        0 for the first draw; 1, 2 ... for fresh draws of the same item.
    """

    model: str
    base_url: str
    params: Mapping[str, Any]
    messages: tuple[Mapping[str, Any], ...]
    repeat: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The five parts as plain JSON values."""
        return {
            "model": self.model,
            "base_url": self.base_url.rstrip("/"),
            "params": dict(self.params),
            "messages": [dict(message) for message in self.messages],
            "repeat": self.repeat,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Request:
        """The request that `to_dict` wrote."""
        return cls(
            model=data["model"],
            base_url=data["base_url"],
            params=dict(data["params"]),
            messages=tuple(dict(message) for message in data["messages"]),
            repeat=data["repeat"],
        )

    @cached_property
    def key(self) -> str:
        """SHA-256 (hex) of the canonical JSON of model, base_url, params, messages and repeat."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode("ascii")).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What came back for one `Request`, raw enough to be read again by a later parser.

    ``body`` is the JSON of the (last) response, ``None`` where there was none; ``samples`` holds the
    JSON of further responses where confidence is the agreement of several samples. ``sent`` are the
    parameters as they went over the wire. ``latency`` is in seconds over all attempts, waiting
    included; the token counts are sums over all paid responses; ``attempts`` counts HTTP requests.
    ``status`` is set where the client itself knows why there is no verdict (too long, transport ...).
    ``error`` is one line, and never holds the key.
    """

    body: dict[str, Any] | None = None
    samples: tuple[dict[str, Any], ...] = ()
    http_status: int | None = None
    status: Status | None = None
    error: str | None = None
    latency: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    attempts: int = 0
    sent: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain JSON values."""
        return {
            "body": self.body,
            "samples": list(self.samples),
            "http_status": self.http_status,
            "status": None if self.status is None else str(self.status),
            "error": self.error,
            "latency": self.latency,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "attempts": self.attempts,
            "sent": dict(self.sent),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Reply:
        """The reply that `to_dict` wrote."""
        values = dict(data)
        values["samples"] = tuple(values.get("samples") or ())
        values["status"] = None if values.get("status") is None else Status(values["status"])
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a reply says: a label of the rubric, or the recorded reason why there is none.

    ``label`` is set if and only if ``status`` is ``OK``, and is spelled as in the rubric.
    ``confidence`` is in [0, 1] (``None`` where the endpoint gave no way to tell), ``confidence_kind``
    says what it is; kinds are not comparable with each other. ``reason`` is empty for ``OK``.
    """

    status: Status
    label: str | None = None
    confidence: float | None = None
    confidence_kind: ConfidenceKind | None = None
    rationale: str = ""
    clause: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        if (self.status is Status.OK) != (self.label is not None):
            raise ValueError(
                f"a verdict has a label exactly when it is ok, not {self.status} with {self.label!r}"
            )

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain JSON values."""
        return {
            "status": str(self.status),
            "label": self.label,
            "confidence": self.confidence,
            "confidence_kind": self.confidence_kind,
            "rationale": self.rationale,
            "clause": self.clause,
            "reason": self.reason,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Verdict:
        """The verdict that `to_dict` wrote."""
        return cls(**{**data, "status": Status(data["status"])})

    def to_row(self) -> tuple[Any, ...]:
        """The fields in their order as SQLite keeps them: of half a surrogate pair a question mark remains."""
        return tuple(
            value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
            for value in self.to_dict().values()
        )

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> Verdict:
        """The verdict that `to_row` wrote."""
        return cls.from_dict(dict(zip(_FIELDS, row, strict=True)))


_FIELDS = tuple(one.name for one in fields(Verdict))


class Judged(NamedTuple):
    """One finished judgement: what was asked, what came back, what it says."""

    request: Request
    reply: Reply
    verdict: Verdict
