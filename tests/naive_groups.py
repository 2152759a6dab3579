"""Grouping once more, row by row and pair by pair in plain Python: what the database's answers are held to."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from audit.patterns import CountPatterns, PairContrast

SPACES = "\t\n\x0b\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
INVISIBLE = "\x00\xad\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"

Cell = str | None
Counts = tuple[tuple[str, int], ...]


def normal_form(text: str, level: str) -> str:
    """The definition of ``audit.normalise``."""
    if level == "none":
        return text
    text = "".join(c for c in text if c not in INVISIBLE)
    text = unicodedata.normalize("NFC", re.sub(f"[{SPACES}]+", " ", text).strip(" "))
    if level == "space":
        return text
    text = "".join("i" if c == "İ" else "σ" if c.lower() == "ς" else c.lower() for c in text)
    text = unicodedata.normalize("NFC", text)
    if level == "case":
        return text
    bare = "".join(c for c in text if c not in "'’ʼ")
    words = "".join(c if unicodedata.category(c)[0] in "LMN" else " " for c in bare)
    return re.sub(" +", " ", words).strip(" ") or text


@dataclass(frozen=True)
class Row:
    """A row of a long table: its place from 0, its item's parts, its label, and all its other cells."""

    place: int
    item: tuple[Cell, ...]
    label: Cell
    more: dict[str, Cell]


def groups(rows: Iterable[Row], level: str, missing: Sequence[str] = ()) -> list[list[Row]]:
    """The labelled rows with an item, grouped, in the order of their first rows."""
    out: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if has_label(row, missing) and has_item(row):
            out[tuple(normal_form(part or "", level) for part in row.item)].append(row)
    return list(out.values())


def has_label(row: Row, missing: Sequence[str] = ()) -> bool:
    return bool(row.label and row.label.strip()) and row.label not in missing


def has_item(row: Row) -> bool:
    return any(normal_form(part or "", "space") for part in row.item)


def counted(found: Iterable[Sequence[Row]]) -> Counter[Counts]:
    """How many groups of two labels or more have each row of label counts."""
    return Counter(
        tuple(sorted(Counter(str(row.label) for row in group).items())) for group in found if len(group) > 1
    )


def told(patterns: CountPatterns) -> Counter[Counts]:
    """The same of count patterns."""
    out: Counter[Counts] = Counter()
    for row, items in zip(patterns.counts.toarray(), patterns.items, strict=True):
        out[tuple((name, int(n)) for name, n in zip(patterns.classes, row, strict=True) if n)] += int(items)
    return out


def contrasted(
    found: Iterable[Sequence[Row]], same: Callable[[Row, Row], bool | None]
) -> Counter[tuple[int, int, int, int]]:
    """Pairs and conflicts inside and outside; ``same`` is None for a pair that is on neither side."""
    out: Counter[tuple[int, int, int, int]] = Counter()
    for group in found:
        sides = [0, 0, 0, 0]
        for a, b in itertools.combinations(group, 2):
            inside = same(a, b)
            if inside is not None:
                sides[0 if inside else 2] += 1
                sides[1 if inside else 3] += a.label != b.label
        if any(sides):
            out[(sides[0], sides[1], sides[2], sides[3])] += 1
    return out


def told_contrast(contrast: PairContrast) -> Counter[tuple[int, int, int, int]]:
    """The same of a pair contrast."""
    sides = (
        contrast.inside_pairs,
        contrast.inside_conflicts,
        contrast.outside_pairs,
        contrast.outside_conflicts,
    )
    out: Counter[tuple[int, int, int, int]] = Counter()
    for *cells, items in zip(*sides, contrast.items, strict=True):
        out[tuple(map(int, cells))] += int(items)  # type: ignore[index]
    return out


def first_of(group: Iterable[Row], key: Callable[[Row], Hashable]) -> list[Row]:
    """The rows whose key no earlier row of the group has; rows of key None all stay."""
    seen: set[Hashable] = set()
    out = []
    for row in group:
        mark = key(row)
        if mark is None or mark not in seen:
            out.append(row)
            seen.add(mark)
    return out
