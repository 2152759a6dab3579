"""Reads a label out of a judge's reply, or the reason why none can be read. Nothing is ever guessed.

Order of reading: the whole content as one JSON object; the same after a ``<think>`` block; JSON objects that
stand in prose or in a code fence; a plain ``Label: x`` line, or a content that is nothing but a label. Where two
readings give two labels there is no verdict: one of them may be quoted from a hostile item.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from relabel.logprobs import label_confidence
from relabel.parse_json import BrokenError, Found, TwiceError, blanks, objects, whole_object
from relabel.records import Reply, Status, Verdict
from relabel.spellings import TRIM, Spellings

__all__ = ["Spellings", "combine", "parse_choice", "parse_reply", "verdict_of"]

MAX_CHARS = 200_000
_CLOSE = re.compile(r"</(?:think|thinking|thought|reasoning)>|<\|channel\|>final<\|message\|>", re.I)
_OPEN = re.compile(r"<(?:think|thinking|thought|reasoning)>|<\|channel\|>analysis<\|message\|>", re.I)
_LINE = re.compile(
    r"^[ \t>*_#-]*(?:final |the )?(?:label|answer|verdict)[ \t*_]*(?:is)?[ \t*_]*[:=][ \t]*(\S.*?)[ \t]*$",
    re.I | re.M,
)
_FILTERS = frozenset({"content_filter", "safety", "prohibited_content", "recitation", "guardrail_intervened"})


def parse_reply(body: Mapping[str, Any], spellings: Spellings) -> Verdict:
    """The verdict of the first choice of a chat completion (the raw JSON of the response)."""
    choices = body.get("choices")
    if not isinstance(choices, Sequence) or isinstance(choices, str) or not choices:
        return _none(Status.UNPARSABLE, "the reply holds no choice")
    return parse_choice(choices[0], spellings)


def parse_choice(choice: object, spellings: Spellings, *, held: bool = False) -> Verdict:
    """The verdict of one choice of a chat completion; ``held``: the judge could write no label but by its name."""
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        return _none(Status.UNPARSABLE, "the reply holds no message")
    finish = str(choice.get("finish_reason") or "").casefold()
    text, declined = _content(message)
    if declined:
        return _none(Status.REFUSED, f"the model declined: {_short(declined)}")
    if finish in _FILTERS:
        return _none(Status.REFUSED, f"the reply was withheld ({finish})")
    if not text.strip():
        if finish == "length":
            return _none(Status.TRUNCATED, "the token limit was used up before the answer began")
        thought = message.get("reasoning_content") or message.get("reasoning")
        return _none(Status.UNPARSABLE, "the reply holds only reasoning" if thought else "the reply is empty")
    try:
        found = _find(text, spellings, cut=finish == "length")
    except TwiceError:
        return _none(Status.UNPARSABLE, f"the reply gives two labels: {_short(text)}")
    except BrokenError:
        return _none(Status.UNPARSABLE, f"the reply is broken JSON: {_short(text)}")
    if isinstance(found, Verdict):
        return found
    return _verdict(found, text, choice.get("logprobs"), spellings, held=held)


def _content(message: Mapping[str, Any]) -> tuple[str, str]:
    """Text and refusal of a message; the content may be a string, null, or a list of parts."""
    refusal = message.get("refusal")
    declined = refusal if isinstance(refusal, str) else ""
    content = message.get("content")
    if isinstance(content, str):
        return content, declined
    texts = []
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping) and part.get("type") in ("text", "output_text"):
            texts.append(str(part.get("text") or ""))
        elif isinstance(part, Mapping) and part.get("type") == "refusal":
            declined = declined or str(part.get("refusal") or "declined")
    return "".join(texts), declined


def _find(text: str, spellings: Spellings, *, cut: bool) -> Found | Verdict:
    """What stands in the content. ``cut``: it hit the token limit, so only a whole object counts."""
    if len(text) > MAX_CHARS:
        return _none(Status.UNPARSABLE, f"the reply is {len(text)} characters long")
    whole = whole_object(text, 0, len(text))
    if whole is not None:
        return whole
    thought, start = _thought(text)
    whole = whole_object(text, start, len(text)) if start else None
    if whole is None and cut:
        return _none(Status.TRUNCATED, "the reply hit the token limit before its end")
    several = [whole] if whole is not None else list(objects(text, start))
    if not several:
        return _plain(text, start, spellings)
    labels = {_key(found, spellings) for found in several}
    before = {spellings.read(found.value["label"]) for found in objects(text, thought, start, strict=False)}
    labels |= {label for label in before if label is not None}
    if whole is None:
        labels |= {spellings.read(match.group(1)) or "" for match in _LINE.finditer(text, start)}
    if len(labels) > 1:
        return _none(Status.UNPARSABLE, f"the reply gives two labels: {_short(text)}")
    return several[-1]


def _thought(text: str) -> tuple[int, int]:
    """(from where a verdict must not contradict the answer, where the answer begins).

    Thoughts that begin the reply are passed over, whatever they say; one that is never closed leaves no
    answer. A closing tag without an opening one may end a thought (some templates swallow the opening tag) or
    be quoted from the item, so what stands before it must not say otherwise than what follows.
    """
    start = 0
    while opening := _OPEN.match(text, start + blanks(text, start)):
        closing = _CLOSE.search(text, opening.end())
        if closing is None:
            return len(text), len(text)
        start = closing.end()
    if start:
        return start, start
    closing = _CLOSE.search(text)
    return (0, closing.end()) if closing else (0, 0)


def _key(found: Found, spellings: Spellings) -> str:
    value = found.value["label"]
    return spellings.read(value) or json.dumps(value, sort_keys=True)


def _plain(text: str, start: int, spellings: Spellings) -> Found | Verdict:
    """A content without JSON: nothing but a label, or lines that begin with ``Label:`` and agree."""
    answer = text[start:]
    if spellings.read(answer) is not None:
        begin = start + blanks(text, start)
        end = begin + len(answer.strip())
        while begin < end and text[begin] in TRIM and spellings.read(text[begin + 1 : end]) is not None:
            begin += 1
        while end > begin and text[end - 1] in TRIM and spellings.read(text[begin : end - 1]) is not None:
            end -= 1
        return Found(value={"label": answer}, start=begin, end=end, stop=end)
    lines = list(_LINE.finditer(text, start))
    labels = {spellings.read(match.group(1)) for match in lines}
    if len(labels) > 1:
        return _none(Status.UNPARSABLE, f"the reply gives two labels: {_short(text)}")
    if lines:
        begin, end = lines[-1].span(1)
        return Found(value={"label": lines[-1].group(1)}, start=begin, end=end, stop=end)
    return _none(Status.UNPARSABLE, f"the reply holds no verdict: {_short(answer or text)}")


def _verdict(found: Found, text: str, logprobs: object, spellings: Spellings, *, held: bool) -> Verdict:
    raw = found.value["label"]
    rationale, clause = _words(found.value.get("rationale")), _words(found.value.get("clause"))
    label = spellings.read(raw)
    if label is None:
        status = Status.UNPARSABLE if raw is None or isinstance(raw, dict | list) else Status.NOT_IN_SET
        reason = "the rubric has no label" if status is Status.NOT_IN_SET else "the label is no word:"
        return replace(
            _none(status, f"{reason} {_short(json.dumps(raw))}"), rationale=rationale, clause=clause
        )
    verdict = Verdict(status=Status.OK, label=label, rationale=rationale, clause=clause)
    # Held to the names, a judge is not credited with what it may not write: "C" for a synonym "causal".
    forms = spellings.plain if held else spellings.forms
    sure = label_confidence(logprobs, text, (found.start, found.end), label, forms)
    if sure is not None:
        return replace(verdict, confidence=sure, confidence_kind="logprob")
    said = _number(found.value.get("confidence"))
    return verdict if said is None else replace(verdict, confidence=said, confidence_kind="verbalised")


def _number(value: object) -> float | None:
    """A stated confidence in [0, 1]: 0.8, "0.8", 80, "80 %"; None for anything else."""
    if isinstance(value, bool):
        return None
    percent = False
    if isinstance(value, str):
        percent = value.strip().endswith("%")
        try:
            value = float(value.strip().removesuffix("%"))
        except ValueError:
            return None
    if not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= 100:
        return None
    return float(value) / 100 if percent or value > 1 else float(value)


def _words(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 120 else line[:117] + "..."


def _none(status: Status, reason: str) -> Verdict:
    return Verdict(status=status, reason=reason)


def combine(verdicts: Sequence[Verdict]) -> Verdict:
    """One verdict from several samples: the label most samples give, sure by the share of *all* samples.

    A tie goes to the label seen first. Where fewer than half of the samples are ok there is no verdict: the
    first failure stands for them all.
    """
    votes = Counter(verdict.label for verdict in verdicts if verdict.label is not None)
    if 2 * votes.total() < len(verdicts) or not votes:
        return next(verdict for verdict in verdicts if verdict.label is None)
    label, count = votes.most_common(1)[0]
    first = next(verdict for verdict in verdicts if verdict.label == label)
    return replace(first, confidence=count / len(verdicts), confidence_kind="agreement")


def verdict_of(reply: Reply, spellings: Spellings) -> Verdict:
    """What a stored `Reply` says: its one choice, or the agreement of all choices of all its samples."""
    if reply.status is not None:
        return _none(reply.status, reply.error or str(reply.status))
    if reply.body is None:
        return _none(Status.TRANSPORT, reply.error or "no reply came")
    form = reply.sent.get("response_format") or {}
    held = "schema" in form or "json_schema" in form
    verdicts = []
    for body in (reply.body, *reply.samples):
        choices = body.get("choices")
        several = choices if isinstance(choices, list) and choices else [None]
        verdicts += [parse_choice(choice, spellings, held=held) for choice in several]
    if not isinstance(reply.body.get("choices"), list) or not reply.body["choices"]:
        return parse_reply(reply.body, spellings)
    return verdicts[0] if len(verdicts) == 1 else combine(verdicts)
