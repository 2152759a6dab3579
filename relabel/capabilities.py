"""What an endpoint really does, and how a wish is lowered to it.

`Request.params` holds wishes; `lower` makes of them the body that this endpoint takes, and `missing` reads
out of an error which wish it does not take. The ladders:

- form of the reply: ``json_schema`` -> ``json_object`` with the schema beside it -> ``json_object`` -> text;
- confidence: log-probabilities of the label -> agreement of several samples -> what the judge says;
- token limit: ``max_tokens`` -> ``max_completion_tokens`` -> none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from relabel.records import REPLY_FIELDS

__all__ = [
    "FORMATS",
    "Capabilities",
    "Format",
    "error_text",
    "lower",
    "missing",
    "reply_schema",
    "verdict_params",
]

Format = Literal["json_schema", "json_object_schema", "json_object", "text"]
FORMATS: tuple[Format, ...] = ("json_schema", "json_object_schema", "json_object", "text")
LIMITS = ("max_tokens", "max_completion_tokens")

_NO = re.compile(
    r"unsupported|not supported|n't support|not support|unrecogni[sz]ed|unknown|unexpected|not permitted|"
    r"not allowed|forbidden|not available|not implemented|not enabled|extra (?:inputs|fields)|extra_forbidden|"
    r"literal_error|must be one of|invalid|requires?|cannot|can't|only the default|should be",
    re.I,
)
_LARGE = re.compile(r"too (?:large|high|big|many)|at most|less than|exceeds|maximum", re.I)
_NAMES = {
    "response_format": re.compile(
        r"response_format|json_schema|json_object|json schema|structured output|json mode|guided_", re.I
    ),
    "logprobs": re.compile(r"logprob|logits_all", re.I),
    "n": re.compile(r"""['"`]n['"`]|\bparameter n\b|\bn (?:must|should|>|>=|=|==) ?\d?|best_of""", re.I),
    "seed": re.compile(r"\bseed\b", re.I),
    "temperature": re.compile(r"\btemperature\b", re.I),
    "max_tokens": re.compile(r"\bmax_tokens\b", re.I),
    "max_completion_tokens": re.compile(r"\bmax_completion_tokens\b", re.I),
}
_PARAMS = {
    "response_format": ("response_format",),
    "logprobs": ("logprobs", "top_logprobs"),
    **{name: (name,) for name in ("n", "seed", "temperature", *LIMITS)},
}


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What was seen of an endpoint: True, False, or None where nothing was seen yet.

    ``json_object_schema`` is ``{"type": "json_object", "schema": ...}``. ``reasoning`` is where the model
    thinks aloud: in a ``field`` of its own, in a ``think`` block, or not at all (``none``). ``context`` is
    in tokens. ``limit_name`` is the name of the token limit, ``none`` where it takes neither. ``notes`` are
    things seen that no other field tells (for people).
    """

    json_schema: bool | None = None
    json_object_schema: bool | None = None
    json_object: bool | None = None
    logprobs: bool | None = None
    n: bool | None = None
    seed: bool | None = None
    temperature: bool | None = None
    limit_name: Literal["max_tokens", "max_completion_tokens", "none"] | None = None
    reasoning: Literal["none", "field", "think"] | None = None
    context: int | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain JSON values."""
        return {**asdict(self), "notes": list(self.notes)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Capabilities:
        """The capabilities that `to_dict` wrote; fields of other versions are left out."""
        known = {field.name for field in fields(cls)}
        values = {name: value for name, value in data.items() if name in known}
        return cls(**{**values, "notes": tuple(values.get("notes") or ())})

    @property
    def format(self) -> Format:
        """The highest rung of the ladder that is not known to be missing."""
        return next((rung for rung in FORMATS if rung == "text" or getattr(self, rung) is not False), "text")

    def without(self, names: Iterable[str], *, format: Format) -> Capabilities:  # noqa: A002
        """What is known after the endpoint turned down these parameters, sent with this format."""
        changes: dict[str, Any] = {}
        for name in names:
            if name == "response_format" and format != "text":
                changes[format] = False
            elif name in ("logprobs", "n", "seed", "temperature"):
                changes[name] = False
            elif name in LIMITS:
                changes["limit_name"] = "max_completion_tokens" if name == "max_tokens" else "none"
        return replace(self, **changes)


def reply_schema(labels: Iterable[str]) -> dict[str, Any]:
    """The JSON schema of a judge's reply: the fields of `REPLY_FIELDS`, the label one of ``labels``."""
    kinds: dict[str, Any] = {
        "rationale": {"type": "string"},
        "clause": {"type": "string"},
        "label": {"type": "string", "enum": list(labels)},
        "confidence": {"type": "number"},
    }
    return {
        "type": "object",
        "properties": {name: kinds[name] for name in REPLY_FIELDS},
        "required": list(REPLY_FIELDS),
        "additionalProperties": False,
    }


def verdict_params(
    labels: Iterable[str],
    *,
    temperature: float | None = 0.0,
    max_tokens: int = 512,
    seed: int | None = None,
    samples: int = 5,
    sample_temperature: float = 0.7,
    logprobs: bool = True,
) -> dict[str, Any]:
    """The wishes for a verdict: what goes into `Request.params`.

    Parameters
    ----------
    labels:
        The names of the declared labels.
    temperature:
        None leaves it to the endpoint.
    max_tokens:
        Tokens for one reply, thoughts included; a reply cut there is asked for once more with four times it.
    seed:
        Sent as ``seed`` + 1000 * repeat (+ the number of the sample), so that fresh draws are fresh.
    samples, sample_temperature:
        Where log-probabilities cannot be had, so many samples at this temperature are drawn per item, and
        their agreement is the confidence; 1 takes what the judge says of itself instead.
    logprobs:
        False never asks for log-probabilities.
    """
    names = list(labels)
    wishes: dict[str, Any] = {
        "max_tokens": max_tokens,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "verdict", "strict": True, "schema": reply_schema(names)},
        },
        "samples": samples,
    }
    if temperature is not None:
        wishes["temperature"] = temperature
    if samples > 1:
        wishes["sample_temperature"] = sample_temperature
    if seed is not None:
        wishes["seed"] = seed
    if logprobs:
        wishes |= {"logprobs": True, "top_logprobs": min(20, len(names) + 3)}
    return wishes


def lower(
    wishes: Mapping[str, Any],
    seen: Capabilities,
    *,
    form: Format,
    limit: int | None,
    seed: int | None,
    draws: int = 1,
    sampling: bool = False,
) -> dict[str, Any]:
    """The parameters to send: ``wishes`` as far as the endpoint is not known to turn them down.

    ``limit`` and ``seed`` stand in for those of the wishes; ``draws`` choices are asked for; ``sampling``
    takes the temperature of samples.
    """
    sent = dict(wishes)
    warm = sent.pop("sample_temperature", None)
    sent.pop("samples", None)
    for name in LIMITS:
        sent.pop(name, None)
    if limit is not None and seen.limit_name != "none":
        sent[seen.limit_name or "max_tokens"] = limit
    schema = sent.pop("response_format", None)
    if schema is not None and form != "text":
        plain = schema.get("json_schema", {}).get("schema", {})
        sent["response_format"] = {
            "json_schema": schema,
            "json_object_schema": {"type": "json_object", "schema": plain},
            "json_object": {"type": "json_object"},
        }[form]
    if sampling:
        sent["temperature"] = sent.get("temperature") or warm
    if sent.get("temperature") is None or seen.temperature is False:
        sent.pop("temperature", None)
    sent.pop("seed", None)
    if seed is not None and seen.seed is not False:
        sent["seed"] = seed
    if seen.logprobs is False or sampling:
        sent.pop("logprobs", None)
        sent.pop("top_logprobs", None)
    if draws > 1 and seen.n is not False:
        sent["n"] = draws
    return sent


def missing(error: object, sent: Mapping[str, Any]) -> tuple[str, ...]:
    """The wishes (of `Capabilities`) that an error of status 400, 422 or 501 turns down; empty if none is named.

    ``error`` is the JSON of the response, ``sent`` the parameters as sent.
    """
    here = [name for name, params in _PARAMS.items() if any(param in sent for param in params)]
    named, text = _named(error), error_text(error)
    if named:
        found = [name for name in here if any(param in named for param in _PARAMS[name])]
    else:
        found = [name for name in here if _NO.search(text) and _NAMES[name].search(text)]
    return tuple(name for name in found if not _too_large(name, text))


def error_text(error: object) -> str:
    """What an error of any usual shape says: its messages, code and type; never what it quotes of the request."""
    if isinstance(error, str):
        return error[:2000]
    if not isinstance(error, Mapping):
        return ""
    inner = error.get("error", error)
    parts = [inner] if isinstance(inner, str) else []
    several = [inner, *_details(error)]
    if isinstance(inner, Mapping):
        several.append(inner.get("innererror"))
    for part in several:
        if isinstance(part, Mapping):
            parts += [
                str(part[key])
                for key in ("message", "msg", "detail", "code", "type")
                if _is_word(part.get(key))
            ]
    return "; ".join(dict.fromkeys(parts))[:2000]


def _is_word(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def _details(error: Mapping[str, Any]) -> list[Any]:
    return [entry for key in ("detail", "errors") if isinstance(error.get(key), list) for entry in error[key]]


def _too_large(name: str, text: str) -> bool:
    return name in LIMITS and _LARGE.search(text) is not None


def _named(error: object) -> set[str]:
    """Parameters that an error names in a field of its own: OpenAI's ``param``, or pydantic's ``loc``."""
    names: set[str] = set()
    if not isinstance(error, Mapping):
        return names
    inner = error.get("error")
    if isinstance(inner, Mapping) and isinstance(inner.get("param"), str):
        names.add(re.split(r"[.\[]", inner["param"])[0])
    for entry in _details(error):
        place = entry.get("loc") if isinstance(entry, Mapping) else None
        names.update(str(part) for part in place or ())
    return names
