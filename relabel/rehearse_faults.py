"""What can go wrong between a judge and its client, each with a name, to be switched on by share or count.

Transport faults strike a request as it comes (a retry may get through); reply faults change what the
judge says and by default strike the same request every time, as a real model would.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from audit.errors import ArgumentError
from relabel.rehearse_http import Answer, json_answer

__all__ = ["REPLY_FAULTS", "TRANSPORT_FAULTS", "Fault", "FaultBook", "error_answer", "unit"]

HTML = b"<!DOCTYPE html><html><head><title>Bad gateway</title></head><body><h1>It broke</h1></body></html>"


def unit(*parts: object) -> float:
    """A number in [0, 1) that depends on nothing but ``parts`` (BLAKE2b of their JSON)."""
    text = json.dumps(parts, default=str).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "big") / 2**56


def error_answer(
    status: int,
    message: str,
    *,
    kind: str = "error",
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """An error in the shape that OpenAI-compatible endpoints share."""
    error = {"message": message, "type": kind, "param": param, "code": code}
    return json_answer({"error": error}, status=status, headers=headers)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One fault and when it strikes.

    Parameters
    ----------
    kind:
        A name from `TRANSPORT_FAULTS` or `REPLY_FAULTS`.
    share:
        Probability in [0, 1] for a request to be struck.
    after:
        The first ``after`` chat requests are spared.
    limit:
        At most this many strikes in all (``None``: no limit).
    per_request:
        At most this many strikes for one and the same request body, so that a retry gets through.
    retry_after:
        Seconds sent as ``Retry-After`` with ``rate_limit`` and ``overloaded`` (``None``: no header).
    contains:
        Only requests whose last message contains this text are struck.
    """

    kind: str
    share: float = 1.0
    after: int = 0
    limit: int | None = None
    per_request: int | None = None
    retry_after: float | None = None
    contains: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in TRANSPORT_FAULTS and self.kind not in REPLY_FAULTS:
            known = ", ".join((*TRANSPORT_FAULTS, *REPLY_FAULTS))
            raise ArgumentError(f"there is no fault {self.kind!r}; choose one of {known}")
        if not 0 <= self.share <= 1:
            raise ArgumentError(f"the share of fault {self.kind!r} must be from 0 to 1, not {self.share}")

    @classmethod
    def parse(cls, text: str) -> Fault:
        """A fault from ``kind[:share][,option=value...]``, as in ``rate_limit:0.1,retry_after=2``."""
        first, *rest = text.split(",")
        kind, _, share = first.partition(":")
        values: dict[str, Any] = {"kind": kind.strip()}
        readers: dict[str, Callable[[str], Any]] = {
            "after": int,
            "limit": int,
            "per_request": int,
            "retry_after": float,
            "contains": str,
        }
        try:
            if share:
                values["share"] = float(share)
            for option in rest:
                name, _, value = option.partition("=")
                values[name.strip()] = readers[name.strip()](value)
        except (KeyError, ValueError) as error:
            raise ArgumentError(
                f"cannot read the fault {text!r}; write kind[:share][,name=value] with {', '.join(readers)}"
            ) from error
        return cls(**values)


def _rate_limit(fault: Fault, answer: Answer) -> Answer:
    return error_answer(
        429,
        "Rate limit reached, please slow down.",
        kind="requests",
        code="rate_limit_exceeded",
        headers=_wait(fault),
    )


def _wait(fault: Fault) -> dict[str, str]:
    return {} if fault.retry_after is None else {"retry-after": f"{fault.retry_after:g}"}


def _fixed(status: int, message: str, **more: Any) -> Callable[[Fault, Answer], Answer]:
    return lambda fault, answer: error_answer(status, message, headers=_wait(fault), **more)


TRANSPORT_FAULTS: Mapping[str, Callable[[Fault, Answer], Answer]] = {
    "rate_limit": _rate_limit,
    "quota": _fixed(429, "You exceeded your current quota, check your plan.", code="insufficient_quota"),
    "overloaded": _fixed(503, "The engine is overloaded.", kind="server_error"),
    "server_error": _fixed(500, "The server had an error.", kind="server_error"),
    "html_502": lambda fault, answer: Answer(status=502, body=HTML, headers={"content-type": "text/html"}),
    "html_200": lambda fault, answer: Answer(body=HTML, headers={"content-type": "text/html"}),
    "empty_body": lambda fault, answer: replace(answer, body=b""),
    "truncated_json": lambda fault, answer: replace(answer, body=answer.body[: len(answer.body) * 2 // 3]),
    "error_in_200": lambda fault, answer: replace(
        error_answer(200, "Upstream provider failed.", code="502"), delay=answer.delay
    ),
    "hang": lambda fault, answer: replace(answer, hang=True),
    "drip": lambda fault, answer: replace(answer, drip=0.05),
    "cut": lambda fault, answer: replace(answer, cut=-1),
    "cut_body": lambda fault, answer: replace(answer, cut=len(answer.body) // 2),
    "bad_request": _fixed(400, "Something about this request is wrong.", kind="invalid_request_error"),
    "content_filter_400": _fixed(400, "The prompt triggered the content policy.", code="content_filter"),
    "unauthorized": _fixed(401, "Incorrect API key provided.", code="invalid_api_key"),
    "forbidden": _fixed(403, "Access denied.", code="forbidden"),
    "not_found": _fixed(404, "The model does not exist.", code="model_not_found"),
}
"""Faults of the wire and of the HTTP status; each makes an `Answer` of the one that was due."""


def _content(change: Callable[[str], str]) -> Callable[[dict[str, Any]], None]:
    def apply(choice: dict[str, Any]) -> None:
        choice["message"]["content"] = change(choice["message"]["content"])
        choice["logprobs"] = None

    return apply


def _refusal(choice: dict[str, Any]) -> None:
    choice["message"].update(content=None, refusal="I cannot help with that.")


def _content_filter(choice: dict[str, Any]) -> None:
    choice["message"]["content"] = ""
    choice["finish_reason"] = "content_filter"


def _null_content(choice: dict[str, Any]) -> None:
    choice["message"]["content"] = None


def _null_logprobs(choice: dict[str, Any]) -> None:
    choice["logprobs"] = None


def _length(choice: dict[str, Any]) -> None:
    choice["message"]["content"] = choice["message"]["content"][:20]
    choice["finish_reason"] = "length"


def _label(choice: dict[str, Any], label: Any) -> None:
    value = json.loads(choice["message"]["content"])
    choice["message"]["content"] = json.dumps({**value, "label": label})
    choice["logprobs"] = None


THOUGHT = 'Maybe {"label": "nothing of the kind"}? Let me weigh {a} against {b}.'

REPLY_FAULTS: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "refusal": _refusal,
    "content_filter": _content_filter,
    "null_content": _null_content,
    "null_logprobs": _null_logprobs,
    "length": _length,
    "out_of_set": lambda choice: _label(choice, "none of the declared ones"),
    "null_label": lambda choice: _label(choice, None),
    "think": _content(lambda text: f"<think>\n{THOUGHT}\n</think>\n\n{text}"),
    "half_think": _content(lambda text: f"{THOUGHT}\n</think>\n{text}"),
    "prose": _content(
        lambda text: f"Sure! Here is my verdict:\n\n{text}\n\nLet me know if {{more}} is needed."
    ),
    "fenced": _content(lambda text: f"```json\n{text}\n```"),
    "garbage": _content(lambda text: "I am not sure what is being asked of me."),
    "two_labels": _content(lambda text: f'{text}\n{{"label": "another one"}}'),
}
"""Faults of what the judge says; each changes one choice of the response in place."""


@dataclass
class FaultBook:
    """Decides which fault strikes which request; the decisions depend on the seed and the order only."""

    faults: Sequence[Fault]
    seed: int = 0
    struck: dict[str, int] = field(default_factory=dict)
    _total: dict[int, int] = field(default_factory=dict)
    _same: dict[tuple[int, bytes], int] = field(default_factory=dict)

    def pick(self, *, number: int, digest: bytes, last: str) -> tuple[Fault | None, tuple[Fault, ...]]:
        """The transport fault (or None) and the reply faults for the ``number``-th chat request."""
        transport: Fault | None = None
        replies = []
        for index, fault in enumerate(self.faults):
            on_wire = fault.kind in TRANSPORT_FAULTS
            if on_wire and transport is not None:
                continue
            if not self._strikes(index, fault, number, digest, last, on_wire):
                continue
            if on_wire:
                transport = fault
            else:
                replies.append(fault)
        return transport, tuple(replies)

    def _strikes(
        self, index: int, fault: Fault, number: int, digest: bytes, last: str, on_wire: bool
    ) -> bool:
        if number < fault.after or (fault.contains is not None and fault.contains not in last):
            return False
        if fault.limit is not None and self._total.get(index, 0) >= fault.limit:
            return False
        same = (index, digest)
        if fault.per_request is not None and self._same.get(same, 0) >= fault.per_request:
            return False
        key = (self.seed, index, number) if on_wire else (self.seed, index, digest.hex())
        if unit(*key) >= fault.share:
            return False
        self._total[index] = self._total.get(index, 0) + 1
        if fault.per_request is not None:
            self._same[same] = self._same.get(same, 0) + 1
        self.struck[fault.kind] = self.struck.get(fault.kind, 0) + 1
        return True
