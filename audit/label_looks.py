"""What labels look like: sets of tags by a separator that their parts share, or grades by the order of their names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import permutations

import numpy as np

from audit.patterns import CountPatterns, FloatArray, IntArray

__all__ = ["likely_order", "likely_separator"]

#: What may stand between two tags, the plainest first. A space may be within a name: "not good" is no set.
_SEPARATORS = ("|", ";", ",", "/", "+", "&", "\t")
#: So many labels must have more than one part, as a share of the rows and in number, and so many of their parts must
#: recur in other sets, before labels look like sets.
_LEAST_SHARE, _LEAST_SETS, _RECURRING = 0.2, 3, 0.7


def likely_separator(names: Sequence[str], rows: Iterable[int]) -> str | None:
    """The character that parts labels into tags, or None where they do not look like sets.

    A fifth of the ``rows`` have labels of several parts, in three sets or more; seven tenths of the parts recur in
    other sets; and the place or the number of parts varies: tags stand alone or in several places. ``New York, NY``,
    ``sport/tennis`` and ``yes/no`` are no sets, nor are numbers with a decimal comma or lists in brackets.
    """
    counts = list(rows)
    found = [(share, sep) for sep in _SEPARATORS if (share := _parted(names, counts, sep)) is not None]
    return max(found, key=lambda one: one[0])[1] if found else None


def _parted(names: Sequence[str], rows: Sequence[int], sep: str) -> float | None:
    """The share of the rows whose labels ``sep`` parts, if it parts them into tags."""
    sets = [tuple(part.strip() for part in name.split(sep) if part.strip()) for name in names]
    several = {tags for tags in sets if len(tags) > 1}
    total = sum(rows)
    share = sum(n for tags, n in zip(sets, rows, strict=True) if len(tags) > 1) / total if total else 0.0
    if share < _LEAST_SHARE or len({frozenset(tags) for tags in several}) < _LEAST_SETS:
        return None
    if any(name.lstrip()[:1] in "[{(" for name in names if sep in name):
        return None  # lists as programs write them: the brackets would be part of a tag
    if sep in ",/" and all(part.replace(".", "").isdigit() for tags in several for part in tags):
        return None
    together: defaultdict[str, set[frozenset[str]]] = defaultdict(set)
    places: defaultdict[str, set[int]] = defaultdict(set)
    for tags in set(sets):
        for place, tag in enumerate(tags):
            together[tag].add(frozenset(tags))
            places[tag].add(-1 if len(tags) == 1 else place)
    parts = Counter(tag for tags in several for tag in tags)
    recurring = sum(n for tag, n in parts.items() if len(together[tag]) > 1) / parts.total()
    moving = sum(n for tag, n in parts.items() if len(places[tag]) > 1) / parts.total()
    return share if recurring >= _RECURRING and moving >= 0.5 else None


#: Words of scales, each from its lowest grade to its highest.
_SCALES = tuple(
    tuple(scale.split(", "))
    for scale in (
        "none, very low, low, medium, high, very high",
        "very low, low, moderate, high, very high",
        "low, middle, high",
        "none, minor, mild, moderate, severe, critical",
        "none, slight, moderate, strong, very strong",
        "very poor, poor, fair, good, very good, excellent",
        "very bad, bad, ok, good, very good",
        "very bad, bad, okay, good, very good",
        "very negative, negative, neutral, positive, very positive",
        "never, rarely, sometimes, often, always",
        "strongly disagree, disagree, neutral, agree, strongly agree",
        "strongly disagree, disagree, neither agree nor disagree, agree, strongly agree",
        "very unlikely, unlikely, neutral, likely, very likely",
        "small, medium, large",
        "easy, medium, hard",
        "beginner, intermediate, advanced",
    )
)
_FEWEST, _MOST = 4, 11
#: Numbers of orders that are tried one by one (8! and more are drawn), conflicts that it takes, and how near in order.
_ALL_ORDERS, _DRAWN, _FEW_CONFLICTS = 7, 4_000, 30
_ADJACENT, _NEAR, _NEAR_WORDS, _RARE = 0.6, 0.8, 0.9, 0.05


def likely_order(
    patterns: CountPatterns, class_rows: IntArray
) -> tuple[tuple[str, ...], float, float] | None:
    """The labels from the lowest to the highest if they look like grades, with two figures; None where not.

    They are four to eleven whole numbers in a row, or words of a known scale. Six in ten conflicts are one step apart,
    and two different labels of an item are at most .8 times (words: .9) as far apart as different labels by chance. For
    numbers, which may be codes of classes, this ratio must also be as small as in few of all other orders (of four: in
    none). The figures: the share of conflicts one step apart, and the ratio.
    """
    names = patterns.classes
    words = _scale(names)
    order = words or _run(names)
    repeated = patterns.repeated
    total = float(class_rows.sum())
    if order is None or total == 0 or repeated.items[repeated.disagreement > 0].sum() < _FEW_CONFLICTS:
        return None
    place = [names.index(name) for name in order]
    counts = repeated.counts[:, place].toarray().astype(np.float64)
    both = (counts * (repeated.items / repeated.pairs)[:, None]).T @ counts
    np.fill_diagonal(both, 0.0)
    share = class_rows[place] / total
    ranks = np.arange(len(order), dtype=np.float64)
    ratio = float(_ratios(both, share, ranks[None, :])[0])
    adjacent = float((np.trace(both, 1) + np.trace(both, -1)) / both.sum())
    if adjacent < _ADJACENT or not ratio <= (_NEAR if words is None else _NEAR_WORDS):
        return None
    if words is None:
        others = _ratios(both, share, _orders(len(order)))
        if float(np.mean(others <= ratio + 1e-12)) > max(_RARE, 2.0 / len(others) + 1e-9):
            return None
    return order, adjacent, ratio


def _scale(names: Sequence[str]) -> tuple[str, ...] | None:
    """Names in the order of a scale that has three or more of them and all of them."""
    plain = {name.strip().casefold().replace("_", " ").replace("-", " "): name for name in names}
    if len(plain) < 3 or len(plain) < len(names):
        return None
    return next(
        (tuple(plain[w] for w in scale if w in plain) for scale in _SCALES if set(plain) <= set(scale)), None
    )


def _run(names: Sequence[str]) -> tuple[str, ...] | None:
    """Names that are four to eleven whole numbers in a row, from 0, 1 or below."""
    if not _FEWEST <= len(names) <= _MOST:
        return None
    try:
        values = [int(name) for name in names]
    except ValueError:
        return None
    low, high = min(values), max(values)
    if len(set(values)) < len(values) or high - low + 1 != len(values) or low > 1:
        return None
    return tuple(sorted(names, key=int))


def _orders(count: int) -> FloatArray:
    """Orders of so many grades: all of them, or drawn ones and the given."""
    if count <= _ALL_ORDERS:
        return np.array(list(permutations(range(count))), np.float64)
    rng = np.random.default_rng(0)
    drawn = [rng.permutation(count) for _ in range(_DRAWN)]
    return np.array([np.arange(count), *drawn], np.float64)


def _ratios(both: FloatArray, share: FloatArray, ranks: FloatArray) -> FloatArray:
    """For each row of ``ranks``: the steps between two different labels of an item over those by chance."""
    apart = np.abs(ranks[:, :, None] - ranks[:, None, :])
    chance = np.outer(share, share)
    np.fill_diagonal(chance, 0.0)
    own = np.einsum("pij,ij->p", apart, both / both.sum())
    return np.asarray(own / np.einsum("pij,ij->p", apart, chance / chance.sum()), np.float64)
