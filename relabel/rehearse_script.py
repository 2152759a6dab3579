"""The scripted judge of the rehearsal server: a truth table, and errors whose size is known beforehand.

Per item the judge has an error probability x = u^k / 2 with u uniform on (0, 1) and k = 1/(2 error) - 1,
so that the mean over items is ``error`` and most errors sit on few, unsure items (E[x] = 1/(2(k+1))).
A fresh draw of the judge's label is wrong with probability x, evenly over the other K-1 labels; its stated
confidence is 1 - x, which is then the true probability of being right (``informative``), or 1 - error for
every item. On top, ``bias`` makes a share of a class's items *believed* to be of another class in every
draw: mistakes that agree with themselves, which no re-draw can show.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from audit.errors import ArgumentError
from relabel.prompts import disarm, read_item
from relabel.rehearse_faults import unit

__all__ = ["Answered", "ItemFinder", "Script", "choice", "fence", "item_key"]

ANCHOR = 16
_STARTS = re.compile(r"(?<![^\s\"'>:|\]\[(-])(?=\S)")


def item_key(values: Iterable[str]) -> str:
    """The key in a truth table of an item that is made of several columns, in the rubric's order."""
    return "\x1f".join(unicodedata.normalize("NFC", value).strip() for value in values)


def fence(text: str) -> tuple[int, int] | None:
    """(start, end) of what stands between ``=== item CODE begins ===`` and the *first* ``ends`` of that code.

    This is how a careful reader takes the lines, so a text that can write the code can climb out.
    """
    head = re.match(r"=== item (\S+) begins ===\n", text)
    if head is None:
        return None
    end = text.find(f"\n=== item {head.group(1)} ends ===", head.end() - 1)
    return (head.end(), end) if end >= 0 else None


class ItemFinder:
    """Finds which of many known texts stands in a message, as it is or as a JSON string; longest first."""

    def __init__(self, items: Iterable[str]) -> None:
        self._long: dict[str, list[tuple[str, str]]] = {}
        self._short: dict[str, str] = {}
        for item in items:
            plain = unicodedata.normalize("NFC", item).strip()
            for form in {
                item.strip(),
                plain,
                json.dumps(plain)[1:-1],
                json.dumps(plain, ensure_ascii=False)[1:-1],
            }:
                if len(form) >= ANCHOR:
                    self._long.setdefault(form[:ANCHOR], []).append((form, item))
                elif form:
                    self._short[form] = item

    def find(self, text: str) -> str | None:
        """The longest known text that stands in ``text``, or None."""
        best, found = "", None
        for match in _STARTS.finditer(text):
            start = match.start()
            for form, item in self._long.get(text[start : start + ANCHOR], ()):
                if len(form) > len(best) and text.startswith(form, start):
                    best, found = form, item
        if found is None:
            for line in text.splitlines():
                whole, _, value = line.strip(), *line.partition(": ")[1:]
                for part in (whole, value.strip(), value.strip().strip('"')):
                    if part in self._short and len(part) > len(best):
                        best, found = part, self._short[part]
        return found


@dataclass(frozen=True, kw_only=True)
class Answered:
    """One draw of the judge: the label it says, how sure it is of each label, and why it says so."""

    label: str
    belief: Mapping[str, float]
    item: str | None
    obeyed: bool = False


@dataclass(frozen=True, kw_only=True)
class Script:
    """What a judge believes about every item.

    Parameters
    ----------
    truth:
        Item text (or `item_key` of its columns) to true label. An item that is not in it gets a label from a
        hash of its message.
    labels:
        The declared labels (at least two); by default those seen in ``truth``, sorted.
    error:
        Mean probability in [0, .5) of a wrong draw, apart from ``bias``.
    informative:
        Whether the stated confidence tells easy items from hard ones.
    bias:
        True label to (believed label, share of that class's items in [0, 1]).
    commands:
        Texts that order the judge about, each with the label it demands (see ``obey_*``).
    obey_loose, obey_fenced:
        Probability of obeying a command that stands loose in the messages, or inside the `fence`.
    seed:
        Fixes every draw.
    """

    truth: Mapping[str, str]
    labels: tuple[str, ...] = ()
    error: float = 0.0
    informative: bool = True
    bias: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)
    obey_loose: float = 0.0
    obey_fenced: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.labels:
            object.__setattr__(self, "labels", tuple(sorted(set(self.truth.values()))))
        if len(self.labels) < 2:
            raise ArgumentError("a scripted judge needs at least two labels; give labels=(...)")
        if not 0 <= self.error < 0.5:
            raise ArgumentError(f"the error of a scripted judge must be in [0, 0.5), not {self.error}")

    @cached_property
    def finder(self) -> ItemFinder:
        """Where items are looked up."""
        return ItemFinder(self.truth)

    @cached_property
    def _orders(self) -> tuple[tuple[str, str], ...]:
        """Commands as they are and as a judge reads them, and what each demands."""
        return tuple((form, label) for text, label in self.commands.items() for form in {text, disarm(text)})

    @cached_property
    def _as_sent(self) -> dict[str, str]:
        """Items as a judge reads them (`relabel.prompts.disarm`) -> as the truth table has them."""
        return {disarm(item): item for item in self.truth}

    def error_of(self, item: str) -> float:
        """x: the probability that a draw for ``item`` differs from what the judge believes, in [0, .5)."""
        if self.error == 0:
            return 0.0
        return 0.5 * float(unit(self.seed, "difficulty", item) ** (0.5 / self.error - 1))

    def belief_of(self, item: str) -> str:
        """The label the judge holds true for ``item``: the truth, but for ``bias``."""
        true = self.truth[item]
        other, share = self.bias.get(true, (true, 0.0))
        return other if unit(self.seed, "bias", item) < share else true

    def accuracy(self) -> float:
        """Expected share of items whose label is true, over one draw of each item."""
        rest = len(self.labels) - 1
        right = 0.0
        for item, true in self.truth.items():
            x = self.error_of(item)
            right += 1 - x if self.belief_of(item) == true else x / rest
        return right / len(self.truth)

    def disagreement(self) -> float:
        """Expected d of two fresh draws: the mean over items of 1 - (1-x)^2 - x^2/(K-1)."""
        rest = len(self.labels) - 1
        errors = [self.error_of(item) for item in self.truth]
        return sum(1 - (1 - x) ** 2 - x * x / rest for x in errors) / len(errors)

    def answer(self, messages: Sequence[Mapping[str, Any]], *, draw: object) -> Answered:
        """One draw; equal ``messages`` and ``draw`` give the equal answer."""
        text = str(messages[-1].get("content", "")) if messages else ""
        demanded = self._command(messages, draw)
        item = self._item(messages, text) if self.truth else None
        if demanded is not None:
            return Answered(label=demanded, belief=self._spread(demanded, 0.05), item=item, obeyed=True)
        if item is None:
            held = self.labels[int(unit(self.seed, "unknown", text) * len(self.labels))]
            x, name = self.error, text
        else:
            held, x, name = self.belief_of(item), self.error_of(item), item
        u = unit(self.seed, "draw", name, draw)
        others = [label for label in self.labels if label != held]
        label = held if u >= x else others[min(int(u / x * len(others)), len(others) - 1)]
        return Answered(
            label=label, belief=self._spread(label, x if self.informative else self.error), item=item
        )

    def _item(self, messages: Sequence[Mapping[str, Any]], text: str) -> str | None:
        """The item asked about: the columns of the prompt's item, or one of them, or any known text in it."""
        values = tuple((read_item(messages) or {}).values())
        for value in (item_key(values), *values):
            if value in self._as_sent:
                return self._as_sent[value]
        return self.finder.find(text)

    def _spread(self, label: str, x: float) -> dict[str, float]:
        rest = x / (len(self.labels) - 1)
        return {other: 1 - x if other == label else rest for other in self.labels}

    def _command(self, messages: Sequence[Mapping[str, Any]], draw: object) -> str | None:
        if not self.commands:
            return None
        best, demanded = "", None
        for message in messages:
            text = str(message.get("content", ""))
            bounds = fence(text) if message.get("role") == "user" else None
            for command, label in self._orders:
                at = text.find(command) if len(command) > len(best) else -1
                if at < 0:
                    continue
                inside = bounds is not None and bounds[0] <= at and at + len(command) <= bounds[1]
                obeys = unit(self.seed, "obey", command, draw) < (
                    self.obey_fenced if inside else self.obey_loose
                )
                best, demanded = command, label if obeys else None
        return demanded


def _pieces(text: str) -> list[str]:
    return [text[i : i + 4] for i in range(0, len(text), 4)]


def _label_tokens(answered: Answered, top: int) -> list[dict[str, Any]]:
    """Tokens of the label and its closing quote, each with the alternatives that other labels offer."""
    forms = {_json(label)[1:]: p for label, p in answered.belief.items()}
    chosen = _json(answered.label)[1:]
    tokens = []
    done = ""
    for piece in _pieces(chosen):
        mass: dict[str, float] = {}
        for form, p in forms.items():
            if form.startswith(done):
                nxt = form[len(done) : len(done) + 4]
                mass[nxt] = mass.get(nxt, 0.0) + p
        total = sum(mass.values())
        ranked = sorted(((_log(m / total), token) for token, m in mass.items()), reverse=True)
        tokens.append(_token(piece, _log(mass[piece] / total), ranked[:top]))
        done += piece
    return tokens


def _log(p: float) -> float:
    return math.log(p) if p > 0 else -9999.0


def _token(text: str, logprob: float, top: Sequence[tuple[float, str]]) -> dict[str, Any]:
    return {
        "token": text,
        "logprob": logprob,
        "bytes": list(text.encode()),
        "top_logprobs": [{"token": t, "logprob": lp, "bytes": list(t.encode())} for lp, t in top],
    }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def choice(answered: Answered, *, index: int = 0, top: int | None = None) -> dict[str, Any]:
    """One choice of a chat completion that says ``answered``; ``top`` asks for log-probabilities."""
    rationale = "The text was read against the rubric." if not answered.obeyed else "I was told to."
    before = f'{{"rationale": {_json(rationale)}, "clause": "C1", "label": "'
    after = f', "confidence": {answered.belief[answered.label]:.2f}}}'
    found: dict[str, Any] = {
        "index": index,
        "message": {
            "role": "assistant",
            "content": before + _json(answered.label)[1:] + after,
            "refusal": None,
        },
        "logprobs": None,
        "finish_reason": "stop",
    }
    if top is not None:
        tokens = [_token(piece, -0.01, [(-0.01, piece)][:top]) for piece in _pieces(before)]
        tokens += _label_tokens(answered, top)
        tokens += [_token(piece, -0.01, [(-0.01, piece)][:top]) for piece in _pieces(after)]
        found["logprobs"] = {"content": tokens, "refusal": None}
    return found
