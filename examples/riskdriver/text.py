"""A seeded picker and a small grammar: ``[a|b]`` picks one, ``{slot}`` is filled in, ``a(n)`` is a or an."""

import random
import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")

_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{(\w+)\}")
_SENTENCE_START = re.compile(r'(^|[.!?]"? | - )("?[a-z])')
_ARTICLE = re.compile(r"\b([Aa])\(n\) (?=[€$£]?(8|1[18](?![0-9])|[aeiou])?)", re.IGNORECASE)


class Picker:
    """Random choices that use nothing but ``random.Random.random``, which Python keeps the same."""

    def __init__(self, seed: int | str) -> None:
        self._uniform = random.Random(seed).random

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """A number in [low, high)."""
        return low + (high - low) * self._uniform()

    def integer(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + int(self._uniform() * (high - low + 1))

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self._uniform() < probability

    def one(self, options: Sequence[T]) -> T:
        """One of the options, all equally likely."""
        return options[int(self._uniform() * len(options))]

    def weighted(self, options: Sequence[T], weights: Sequence[float]) -> T:
        """One of the options, with probability proportional to its weight."""
        left = self._uniform() * sum(weights)
        for option, weight in zip(options, weights, strict=True):
            left -= weight
            if left < 0:
                return option
        return options[-1]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """The options in random order (Fisher-Yates)."""
        items = list(options)
        for last in range(len(items) - 1, 0, -1):
            other = int(self._uniform() * (last + 1))
            items[last], items[other] = items[other], items[last]
        return items


def expand(template: str, slots: Mapping[str, str], picker: Picker) -> str:
    """Fill the slots, then resolve the choices, innermost first; slot values may hold slots and choices."""
    while _SLOT.search(template):
        template = _SLOT.sub(lambda match: slots[match.group(1)], template)
    while _CHOICE.search(template):
        template = _CHOICE.sub(lambda match: picker.one(match.group(1).split("|")), template)
    return template


def polish(text: str) -> str:
    """Tidy spaces, articles and possessives, and start every sentence with a capital."""
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r" ([.,:;])", r"\1", text)
    text = _ARTICLE.sub(lambda match: f"{match.group(1)}{'n' if match.group(2) else ''} ", text)
    text = text.replace("s's ", "s' ")
    return _SENTENCE_START.sub(lambda match: match.group(1) + match.group(2).upper(), text)
