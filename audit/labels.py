"""Spellings of labels that may stand for one class."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal

__all__ = ["canonical_label", "merged_names", "spelling_variants"]

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,4})?")


def canonical_label(label: str) -> str:
    """The spelling that label variants share: NFKC, case-folded, white space trimmed, numbers in one form.

    ``"Yes"`` and ``"yes "`` become ``"yes"``; ``"1"``, ``"1.0"`` and ``"01"`` become ``"1"``.
    """
    text = re.sub(r"\s+", " ", unicodedata.normalize("NFKC", label)).strip().casefold()
    if not _NUMBER.fullmatch(text):
        return text
    number = Decimal(text)
    return format(number.normalize() + 0, "f") if abs(number.adjusted()) < 30 else text


def spelling_variants(classes: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Groups of two or more classes that share a canonical spelling, in order of first appearance."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in classes:
        groups[canonical_label(name)].append(name)
    return tuple(tuple(names) for names in groups.values() if len(names) > 1)


def merged_names(classes: Sequence[str], rows: Sequence[int]) -> dict[str, str]:
    """For each class the name it takes when spellings are merged: the one with most ``rows``, the first on a tie."""
    count = dict(zip(classes, rows, strict=True))
    names = {name: name for name in classes}
    for group in spelling_variants(classes):
        chosen = max(group, key=lambda name: count[name])
        names.update(dict.fromkeys(group, chosen))
    return names
