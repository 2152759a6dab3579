"""What one HTTP answer means for the request: a reply, wait, try again, give up this item, or stop the run."""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from relabel.capabilities import error_text, missing

__all__ = ["Means", "Outcome", "connection_outcome", "fatal_message", "parse_wait", "read_answer"]


class Means(StrEnum):
    """What to do next."""

    REPLY = "reply"  # a chat completion came
    WAIT = "wait"  # rate limit: wait with everybody, then ask again
    AGAIN = "again"  # a fault that may pass: ask again after a while
    TEACH = "teach"  # a parameter is not supported: ask again without it
    TOO_LONG = "too_long"  # the item does not fit the context
    REFUSED = "refused"  # the content was turned down
    ROW = "row"  # turned down for another reason; asking again would not help
    FATAL = "fatal"  # nothing will ever work: key, address, model, quota


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One answer and its meaning. ``told`` is the endpoint's own message; ``wait`` its Retry-After in seconds.

    ``strain`` marks the faults of an endpoint that is overrun, ``answered`` is False where no connection held.
    """

    means: Means
    status: int | None = None
    body: dict[str, Any] | None = None
    told: str = ""
    wait: float | None = None
    names: tuple[str, ...] = ()
    context: int | None = None
    strain: bool = False
    answered: bool = True


_LONG = re.compile(
    r"context[ _](?:length|window|size)|maximum (?:context|prompt|input|model) length|max_model_len|"
    r"(?:prompt|input|message|request)s? (?:is|are|was) too (?:long|large)|too many (?:input |prompt )?tokens|"
    r"exceeds? .{0,40}(?:context|token limit)|n_ctx",
    re.I,
)
_CONTEXT = re.compile(
    r"(?:context (?:length|window|size)|n_ctx|max_model_len)(?: (?:is|of))?\W{0,3}(?:only |at most )?(\d{3,8})",
    re.I,
)
_FILTER = re.compile(
    r"content[ _](?:management )?(?:policy|filter)|responsible ?ai|moderation|flagged|safety (?:system|policy)|"
    r"invalid_prompt",
    re.I,
)
_QUOTA = re.compile(r"insufficient_quota|billing_hard_limit|billing_not_active|credit balance", re.I)
_LARGER = re.compile(r"request (?:is )?too large", re.I)
_KEY = re.compile(r"api[ _-]?key|credential|authenti", re.I)
_TOO_BUSY = frozenset({408, 409, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529, 530, 598, 599})
_TEACHING = frozenset({400, 404, 415, 422, 500, 501})


def read_answer(
    status: int, headers: Mapping[str, str], content: bytes, *, sent: Mapping[str, Any]
) -> Outcome:
    """What an HTTP answer means; ``sent`` are the parameters of its request."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    if 200 <= status < 300:
        if not isinstance(body, dict):
            return Outcome(means=Means.AGAIN, status=status, told=_no_json(content))
        if _broke_off(body):
            return Outcome(means=Means.AGAIN, status=status, told="the reply broke off with an error")
        if "choices" in body or "error" not in body or not body["error"]:
            return Outcome(means=Means.REPLY, status=status, body=body)
        status = _status_inside(body["error"])
    text = error_text(body)
    told = text.split("; ")[0] if body is not None else _no_json(content)
    wait = parse_wait(headers)

    def means(what: Means, **more: Any) -> Outcome:
        return Outcome(means=what, status=status, told=told, wait=wait, **more)

    if status in (402, 429) and (status == 402 or _QUOTA.search(text)):
        return means(Means.FATAL)
    if status == 429:  # one request larger than what the limit allows per minute can never pass
        return means(Means.TOO_LONG if _LARGER.search(text) else Means.WAIT)
    if status == 413 or _LONG.search(text):
        size = _CONTEXT.search(text)
        return means(Means.TOO_LONG, context=int(size.group(1)) if size else None)
    if status in (400, 403, 422) and _FILTER.search(text):
        return means(Means.REFUSED)
    names = missing(body, sent) if status in _TEACHING else ()
    if names:
        return means(Means.TEACH, names=names)
    if status in _TOO_BUSY or status >= 500:
        return means(Means.AGAIN, strain=status in (408, 503, 504, 524, 529))
    if status in (401, 403, 404, 405, 410) or 300 <= status < 400:
        return means(Means.FATAL)
    if status == 400 and _KEY.search(told):
        return means(Means.FATAL)
    return means(Means.ROW)


def connection_outcome(
    told: str, *, timed_out: bool = False, fatal: bool = False, answered: bool = True
) -> Outcome:
    """No answer came; ``answered`` is False where not even a connection did."""
    means = Means.FATAL if fatal else Means.AGAIN
    return Outcome(means=means, told=told, strain=timed_out, answered=answered)


def fatal_message(outcome: Outcome, url: str, key_variable: str) -> str:
    """One line that says why no request to ``url`` can succeed, and what to do about it."""
    status, told = outcome.status, outcome.told
    if status in (400, 401, 403):
        return f"{url} turned the key down (HTTP {status}); put a valid one in {key_variable}"
    if status in (402, 429):
        return f"{url} has no quota left for this key (HTTP {status}: {told}); add credit, then run again"
    if status in (404, 405, 410):
        fix = "check the model's name"
        if not url.rsplit("/", 1)[-1].startswith("v"):
            fix += f" and the base URL (perhaps {url}/v1)"
        return f"{url} has no such model or address (HTTP {status}: {told}); {fix}"
    if status is not None and 300 <= status < 400:
        return f"{url} sends requests elsewhere (HTTP {status}); give the address it points to"
    return f"{url} cannot be reached: {told}"


def _broke_off(body: Mapping[str, Any]) -> bool:
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return isinstance(first, Mapping) and first.get("finish_reason") == "error"


def _status_inside(error: object) -> int:
    """The status of an error that came with HTTP 200, as some proxies send it; 502 where it tells none."""
    code = error.get("code") if isinstance(error, Mapping) else None
    try:
        inside = int(str(code))
    except ValueError:
        return 502
    return inside if 400 <= inside < 600 else 502


def _no_json(content: bytes) -> str:
    if not content.strip():
        return "an empty body"
    if content.lstrip()[:1] == b"<":
        return "a web page instead of JSON"
    return "a body that is not JSON"


def _clock_of(headers: Mapping[str, str]) -> float:
    """The endpoint's own time where it tells it: this machine's clock may be wrong."""
    try:
        return email.utils.parsedate_to_datetime(headers.get("date", "")).timestamp()
    except ValueError:
        return time.time()


def parse_wait(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds to wait, from ``retry-after-ms`` or ``Retry-After`` (seconds or an HTTP date); None without."""
    milliseconds = headers.get("retry-after-ms")
    text = headers.get("retry-after") if milliseconds is None else milliseconds
    if text is None:
        return None
    try:
        wait = float(text) / (1000 if milliseconds is not None else 1)
    except ValueError:
        try:
            date = email.utils.parsedate_to_datetime(text)
        except ValueError:
            return None
        wait = date.timestamp() - (_clock_of(headers) if now is None else now)
    return max(0.0, wait) if wait == wait and wait != float("inf") else None
