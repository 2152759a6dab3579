"""What an endpoint supports, refuses, ignores or crashes on; some profiles were seen in the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from relabel.rehearse_faults import error_answer
from relabel.rehearse_http import Answer

__all__ = ["PROFILES", "Profile"]

Support = Literal["yes", "no", "ignored", "crash"]


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The habits of an endpoint.

    Each of ``json_schema``, ``json_object``, ``logprobs``, ``n``, ``seed`` is ``yes``, ``no`` (a 400 that
    names it), ``ignored`` (accepted without effect) or ``crash`` (a 500). ``temperature`` ``no`` refuses
    all but 1. ``limit_name`` is the accepted name of the token limit, or ``both``. ``reasoning`` is where
    a judge that thinks aloud does so: ``none``, ``field`` (``reasoning_content``) or ``think`` (a block in
    the content). ``context`` is in tokens (four characters each); beyond it the request is refused, or
    silently cut where ``context_cut``; ``/v1/models`` tells it where ``context_told``. ``loose`` judges
    write prose around their JSON when no format is enforced.
    """

    json_schema: Support = "yes"
    json_object: Support = "yes"
    logprobs: Support = "yes"
    n: Support = "yes"
    seed: Support = "yes"
    temperature: Support = "yes"
    limit_name: Literal["both", "max_tokens", "max_completion_tokens"] = "both"
    reasoning: Literal["none", "field", "think"] = "none"
    context: int = 128_000
    context_cut: bool = False
    context_told: bool = False
    loose: bool = False

    def model_card(self, name: str) -> dict[str, Any]:
        """The entry of ``/v1/models``."""
        card: dict[str, Any] = {"id": name, "object": "model", "created": 0, "owned_by": "rehearsal"}
        if self.context_told:
            card["max_model_len"] = self.context
        return card

    def refuse(self, body: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> Answer | None:
        """The error that this endpoint gives for ``body``, or None."""
        kind = (body.get("response_format") or {}).get("type")
        asked: list[tuple[str, bool, Support]] = [
            ("response_format", kind == "json_schema", self.json_schema),
            ("response_format", kind == "json_object", self.json_object),
            ("logprobs", bool(body.get("logprobs")), self.logprobs),
            ("n", body.get("n", 1) != 1, self.n),
            ("seed", body.get("seed") is not None, self.seed),
            ("temperature", body.get("temperature", 1) != 1, self.temperature),
            ("max_tokens", "max_tokens" in body, self._limit("max_tokens")),
            ("max_completion_tokens", "max_completion_tokens" in body, self._limit("max_completion_tokens")),
        ]
        for name, present, support in asked:
            if present and support == "crash":
                return error_answer(500, "Internal Server Error", kind="internal_server_error")
            if present and support == "no":
                return error_answer(
                    400,
                    f"Unsupported parameter: '{name}' is not supported with this model.",
                    kind="invalid_request_error",
                    code="unsupported_parameter",
                    param=name,
                )
        tokens = self._tokens(messages)
        if tokens > self.context and not self.context_cut:
            return error_answer(
                400,
                f"This model's maximum context length is {self.context} tokens. However, your messages"
                f" resulted in {tokens} tokens. Please reduce the length of the messages.",
                kind="invalid_request_error",
                code="context_length_exceeded",
                param="messages",
            )
        return None

    def _limit(self, name: str) -> Support:
        return "yes" if self.limit_name in ("both", name) else "no"

    def choices(self, body: Mapping[str, Any]) -> int:
        """How many choices come back."""
        return int(body.get("n") or 1) if self.n == "yes" else 1

    def top_logprobs(self, body: Mapping[str, Any]) -> int | None:
        """The alternatives per token that come back, None for no log-probabilities."""
        if not body.get("logprobs") or self.logprobs != "yes":
            return None
        return int(body.get("top_logprobs") or 0)

    def prompt_tokens(self, messages: Sequence[Mapping[str, Any]]) -> int:
        """Tokens that the endpoint says it read."""
        return min(self._tokens(messages), self.context)

    def completion_tokens(self, found: Mapping[str, Any]) -> int:
        """Tokens that the endpoint says it wrote in one choice."""
        message = found["message"]
        return (
            len(str(message.get("reasoning_content") or "")) // 4
            + len(str(message["content"] or "")) // 4
            + 1
        )

    def dress(self, found: dict[str, Any], body: Mapping[str, Any]) -> None:
        """Write one choice the way this endpoint writes: prose, thoughts, and the cut at the token limit."""
        message = found["message"]
        kind = (body.get("response_format") or {}).get("type")
        held = {"json_schema": self.json_schema, "json_object": self.json_object}.get(str(kind)) == "yes"
        if self.loose and not held:
            self._reword(found, f"Here is my verdict.\n\n{message['content']}\n\nI hope this helps {{you}}.")
        if self.reasoning == "think":
            self._reword(found, f"<think>\nIs it {{this}} or {{that}}?\n</think>\n\n{message['content']}")
        elif self.reasoning == "field":
            message["reasoning_content"] = "Is it {this} or {that}?"
        limit = body.get("max_completion_tokens") or body.get("max_tokens")
        if limit is not None and self.completion_tokens(found) > limit:
            self._reword(found, message["content"][: 4 * max(int(limit) - 1, 0)])
            found["finish_reason"] = "length"

    @staticmethod
    def _reword(found: dict[str, Any], text: str) -> None:
        """Replace the content; log-probabilities are kept only where the tokens still spell it out."""
        before = found["message"]["content"]
        found["message"]["content"] = text
        tokens = (found["logprobs"] or {}).get("content")
        if tokens is None:
            return
        if before in text:
            head, tail = text.split(before, 1)
            found["logprobs"]["content"] = [*_plain(head), *tokens, *_plain(tail)]
        else:
            kept: list[dict[str, Any]] = []
            room = len(text)
            for token in tokens:
                if len(token["token"]) > room:
                    break
                room -= len(token["token"])
                kept.append(token)
            found["logprobs"]["content"] = kept

    def _tokens(self, messages: Sequence[Mapping[str, Any]]) -> int:
        return sum(len(str(message.get("content") or "")) // 4 + 4 for message in messages)


def _plain(text: str) -> list[dict[str, Any]]:
    return [
        {"token": part, "logprob": -0.01, "bytes": list(part.encode()), "top_logprobs": []}
        for part in (text[i : i + 4] for i in range(0, len(text), 4))
    ]


PROFILES: Mapping[str, Profile] = {
    "full": Profile(),
    "reasoning": Profile(
        logprobs="no", temperature="no", limit_name="max_completion_tokens", n="no", reasoning="field"
    ),
    "llama_cpp": Profile(json_schema="crash", n="ignored", context=2048, limit_name="max_tokens"),
    "quiet": Profile(
        json_schema="ignored",
        json_object="yes",
        logprobs="ignored",
        n="ignored",
        context=4096,
        context_cut=True,
    ),
    "bare": Profile(
        json_schema="no",
        json_object="no",
        logprobs="no",
        n="no",
        seed="no",
        limit_name="max_tokens",
        loose=True,
    ),
    "thinker": Profile(json_schema="no", logprobs="ignored", n="ignored", reasoning="think"),
}
"""Profiles by name: an endpoint that does everything, and five kinds that do not."""
