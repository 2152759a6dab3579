"""Spellings of labels that may stand for one class."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal

from audit.results import Alarm

__all__ = [
    "canonical_label",
    "likely_typos",
    "merged_names",
    "no_labels",
    "spelling_alarm",
    "spelling_variants",
]

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,4})?")


#: Characters that show nothing, as for items (see :mod:`audit.normalise`).
_INVISIBLE = re.compile("[\x00\xad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")


def canonical_label(label: str) -> str:
    """The spelling that label variants share: NFKC, case-folded, trimmed, nothing invisible, numbers in one form.

    ``"Yes"`` and ``"yes "`` become ``"yes"``; ``"1"``, ``"1.0"`` and ``"01"`` become ``"1"``.
    """
    shown = _INVISIBLE.sub("", unicodedata.normalize("NFKC", label))
    text = re.sub(r"\s+", " ", shown).strip().casefold()
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


def spelling_alarm(classes: Sequence[str]) -> Alarm | None:
    """An alarm that names labels which differ in spelling only; None where there are none."""
    groups = spelling_variants(classes)
    if not groups:
        return None
    shown = "; ".join(", ".join(map(repr, names)) for names in groups[:3])
    return Alarm(
        code="label_spellings",
        severity="warning",
        message=f"labels that differ in spelling only count as different labels: {shown}",
        action="write each label one way in both files",
        figures={"groups": len(groups)},
    )


def merged_names(classes: Sequence[str], rows: Sequence[int]) -> dict[str, str]:
    """For each class the name it takes when spellings are merged: the one with most ``rows``, the first on a tie."""
    count = dict(zip(classes, rows, strict=True))
    names = {name: name for name in classes}
    for group in spelling_variants(classes):
        chosen = max(group, key=lambda name: count[name])
        names.update(dict.fromkeys(group, chosen))
    return names


#: Canonical spellings of words that often stand for "no label".
_NO_LABEL = frozenset(
    "n/a #n/a na nan null none nil unknown unsure unclear skip skipped missing undefined undecided tbd todo ? ?? - -- "
    ". empty blank".split()
) | {"not sure", "don't know", "do not know", "cannot tell", "can't tell", "no label"}

#: A class is taken for a misspelling only if it is this long and this much rarer than the other.
_TYPO_LENGTH = 5
_TYPO_SHARE = 0.05


def no_labels(classes: Sequence[str]) -> tuple[str, ...]:
    """The classes that are called as if they meant that there is no label, such as ``"N/A"`` or ``"unsure"``."""
    return tuple(name for name in classes if canonical_label(name) in _NO_LABEL)


def likely_typos(classes: Sequence[str], rows: Sequence[int]) -> tuple[tuple[str, str], ...]:
    """(rare, common) pairs of classes whose names are one edit apart: a letter more, less, other, or two swapped.

    Only names of five letters or more count, and only if the common class has at least twenty times the rows; names
    that differ in a digit (``"class1"``, ``"class2"``) are different classes.
    """
    count = dict(zip(classes, rows, strict=True))
    names = {name: canonical_label(name) for name in classes if len(canonical_label(name)) >= _TYPO_LENGTH}
    common = sorted(names, key=lambda name: (-count[name], name))
    found = []
    for rare in names:
        for other in common:
            if count[rare] > _TYPO_SHARE * count[other]:
                break
            if _one_edit(names[rare], names[other]):
                found.append((rare, other))
                break
    return tuple(found)


def _one_edit(first: str, second: str) -> bool:
    """Whether one insertion, deletion, substitution or swap of neighbours, none of a digit, makes one the other."""
    if first == second or abs(len(first) - len(second)) > 1:
        return False
    start = 0
    while start < min(len(first), len(second)) and first[start] == second[start]:
        start += 1
    a, b = first[start:], second[start:]
    if a[2:] == b[2:] and a[:2] == b[1::-1]:
        return True
    if len(a) == len(b):
        return a[1:] == b[1:] and not a[0].isdigit() and not b[0].isdigit()
    longer, shorter = (a, b) if len(a) > len(b) else (b, a)
    return longer[1:] == shorter and not longer[0].isdigit()
