"""The statistics once more, label by label in plain Python: what the fast forms are held to."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

Table = npt.NDArray[np.int64]


def labels_of(row: Sequence[int]) -> list[int]:
    """The labels behind one row of counts."""
    return [k for k, count in enumerate(row) for _ in range(count)]


def disagreeing_pairs(row: Sequence[int]) -> tuple[int, int]:
    """(pairs of labels that differ, all pairs) of one item, pair by pair."""
    pairs = list(itertools.combinations(labels_of(row), 2))
    return sum(a != b for a, b in pairs), len(pairs)


def item_disagreement(row: Sequence[int]) -> Fraction | None:
    """d_i of one item; None with fewer than two labels."""
    differ, pairs = disagreeing_pairs(row)
    return Fraction(differ, pairs) if pairs else None


def means(table: Table) -> tuple[float, float, float] | None:
    """Item-, pair- and row-weighted d of a table with one row per item; None without a repeated item."""
    rows = [[int(n) for n in row] for row in table if row.sum() >= 2]
    if not rows:
        return None
    scores = [item_disagreement(row) or Fraction(0) for row in rows]
    pairs = [disagreeing_pairs(row) for row in rows]
    item = sum(scores, Fraction(0)) / len(rows)
    pair = Fraction(sum(differ for differ, _ in pairs), sum(all_pairs for _, all_pairs in pairs))
    sizes = [sum(row) for row in rows]
    row = sum((d * n for d, n in zip(scores, sizes, strict=True)), Fraction(0)) / sum(sizes)
    return float(item), float(pair), float(row)


@st.composite
def tables(draw: st.DrawFn, *, most_items: int = 12, most_classes: int = 5, smallest: int = 0) -> Table:
    """Small tables of counts, one row per item, ``smallest`` to 7 labels each; many rows alike."""
    classes = draw(st.integers(2, most_classes))
    labels = st.lists(st.integers(0, classes - 1), min_size=smallest, max_size=7)
    rows = draw(st.lists(labels, min_size=1, max_size=most_items))
    return np.array([[row.count(k) for k in range(classes)] for row in rows], np.int64)


def annotate(
    rng: np.random.Generator,
    *,
    sizes: npt.NDArray[np.int64],
    rates: npt.NDArray[np.float64],
    prevalence: Sequence[float],
) -> Table:
    """Counts of items with the given sizes and flip rates, errors spread evenly, truths by ``prevalence``."""
    classes = len(prevalence)
    truth = rng.choice(classes, p=prevalence, size=len(sizes))
    item = np.repeat(np.arange(len(sizes)), sizes)
    flipped = rng.random(len(item)) < rates[item]
    label = (truth[item] + np.where(flipped, rng.integers(1, classes, size=len(item)), 0)) % classes
    table = np.zeros((len(sizes), classes), np.int64)
    np.add.at(table, (item, label), 1)
    return table
