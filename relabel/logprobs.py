"""How sure a judge was of its label, from the log-probabilities of the label's own tokens.

P(label) = product over the label's tokens of [mass of the alternatives that still spell this label] /
[mass of the alternatives that still spell any declared label]: the chain rule, restricted to the declared
labels and to the alternatives that the endpoint told. Without alternatives it is the product of the tokens'
own probabilities.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["label_confidence", "tokens_of"]


AROUND = 12


class Token(NamedTuple):
    """One token: its bytes, its log-probability, and (bytes, log-probability) of the alternatives told."""

    text: bytes
    logprob: float
    others: tuple[tuple[bytes, float], ...]


def tokens_of(logprobs: object) -> list[Token] | None:
    """The tokens of a choice's ``logprobs``, in today's chat form or the older completions form."""
    if not isinstance(logprobs, Mapping):
        return None
    try:
        content = logprobs.get("content")
        if isinstance(content, list) and content:
            return [_token(entry) for entry in content]
        words, values = logprobs.get("tokens"), logprobs.get("token_logprobs")
        if isinstance(words, list) and isinstance(values, list) and len(words) == len(values):
            tops = logprobs.get("top_logprobs") or [None] * len(words)
            return [
                Token(
                    word.encode(), float(value), tuple((o.encode(), float(p)) for o, p in (top or {}).items())
                )
                for word, value, top in zip(words, values, tops, strict=True)
            ]
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    return None


def _token(entry: Mapping[str, Any]) -> Token:
    others = tuple((_bytes(other), float(other["logprob"])) for other in entry.get("top_logprobs") or ())
    return Token(_bytes(entry), float(entry["logprob"]), others)


def _bytes(entry: Mapping[str, Any]) -> bytes:
    raw = entry.get("bytes")
    return bytes(raw) if raw else str(entry["token"]).encode("utf-8", "surrogatepass")


def label_confidence(
    logprobs: object, text: str, span: tuple[int, int], label: str, forms: Mapping[str, str]
) -> float | None:
    """P(label) in [0, 1], or None where the tokens of the label cannot be found.

    Parameters
    ----------
    logprobs:
        What the choice has under that name.
    text:
        The content; ``span`` bounds the raw label value in it, in characters.
    label, forms:
        The label read there, and every folded spelling with the label it stands for.
    """
    tokens = tokens_of(logprobs)
    if not tokens or span[0] >= span[1]:
        return None
    joined = b"".join(token.text for token in tokens)
    begin = _place(joined, text, span[0])
    if begin is None:
        return None
    end = begin + len(_encoded(text[span[0] : span[1]]))
    spelled = _spelled(forms, quoted=text[span[0] - 1 : span[0]] == '"')
    sure, position = 1.0, 0
    for token in tokens:
        start, position = position, position + len(token.text)
        if position <= begin or start > end or not token.text:
            continue
        if start == end and not token.others:
            break  # the token after the label says whether a longer label was meant, if alternatives are told
        lead = joined[start:begin] if start < begin else b""
        done = joined[begin:start] if start > begin else b""
        sure *= _step(token, lead, done, label, spelled)
    return min(max(sure, 0.0), 1.0)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _place(joined: bytes, text: str, at: int) -> int | None:
    """Where the character ``at`` of the content stands among the bytes of its tokens, or None.

    The content may be trimmed, or its tokens may have lost bytes of characters that were split over two: then
    what stands around the label has to be found, once.
    """
    content, before = _encoded(text), _encoded(text[:at])
    if content in joined:
        return joined.find(content) + len(before)
    bare = content.strip()
    if bare in joined:
        return joined.find(bare) - content.find(bare) + len(before)
    around, start = (
        _encoded(text[max(0, at - AROUND) : at + AROUND]),
        _encoded(text[max(0, at - AROUND) : at]),
    )
    return joined.index(around) + len(start) if joined.count(around) == 1 else None


def _spelled(forms: Mapping[str, str], *, quoted: bool) -> list[tuple[str, str]]:
    """(folded raw spelling, label): JSON-escaped and closed by its quote where the value is a string."""
    found = []
    for form, label in forms.items():
        if quoted:
            found += [(json.dumps(form, ensure_ascii=plain)[1:].casefold(), label) for plain in (True, False)]
        else:
            found.append((form, label))
    return found


def _step(token: Token, lead: bytes, done: bytes, label: str, spelled: list[tuple[str, str]]) -> float:
    """The share of one token's mass that goes on spelling ``label``, among all that spells some label."""
    own = _mass(token.logprob)
    if not token.others:
        return own
    options = dict(token.others)
    options.setdefault(token.text, token.logprob)
    mine = every = 0.0
    for text, logprob in options.items():
        chosen = text == token.text
        if not chosen and not text.startswith(lead):
            continue
        so_far = (done + text[len(lead) :]).decode("utf-8", "ignore").casefold()
        if not chosen and not so_far:
            continue
        hits = {name for form, name in spelled if form.startswith(so_far) or _begins(so_far, form)}
        mass = _mass(logprob)
        if chosen or label in hits:
            mine += mass
        if chosen or hits:
            every += mass
    return mine / every if every > 0 else own


def _begins(text: str, form: str) -> bool:
    """Whether ``text`` begins with the whole of ``form``: "10" does not begin with the label 1."""
    return text.startswith(form) and not (form[-1:].isalnum() and text[len(form) : len(form) + 1].isalnum())


def _mass(logprob: float) -> float:
    return math.exp(min(logprob, 0.0)) if not math.isnan(logprob) else 0.0
