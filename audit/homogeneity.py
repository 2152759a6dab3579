"""Is d the same in every part of the data, and within a part as across parts?

Two tests: a permutation test of equal d over the values of a column, stratified by group size (Good,
Permutation, Parametric and Bootstrap Tests, 2005, ch. 3), and Fisher's exact test, at effective numbers of items,
of d over pairs of labels that share a value against pairs that do not, among items with about as many pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields

import numpy as np
from scipy import stats

from audit.disagreement import item_mean
from audit.patterns import CountPatterns, FloatArray, IntArray, PairContrast
from audit.results import Comparison, Estimate

__all__ = ["compare_contrast", "compare_values", "inside_and_outside", "permutation_p_value"]

_MOST_PERMUTATIONS = 9_999
_MOST_CELLS = 20_000_000
_FEWEST_PERMUTATIONS = 199


def compare_values(
    column: str, parts: Mapping[str, CountPatterns], *, seed: int = 0, contrast: PairContrast | None = None,
    level: float = 0.95,
) -> Comparison:  # fmt: skip
    """Test that d is the same for every value of ``column``; ``contrast`` adds d within and across values."""
    p_value, method, reason = permutation_p_value(parts, seed=seed)
    within = across = None
    contrast_p: float | None = None
    items_across = 0
    if contrast is not None:
        within, across = inside_and_outside(contrast, level=level, seed=seed)
        contrast_p = compare_contrast(contrast)
        items_across = int(contrast.items[contrast.outside_pairs > 0].sum())
    return Comparison(
        column=column, p_value=p_value, method=method, within=within, across=across,
        items_across=items_across, contrast_p_value=contrast_p, reason=reason,
    )  # fmt: skip


def permutation_p_value(
    parts: Mapping[str, CountPatterns], *, seed: int = 0
) -> tuple[float | None, str, str | None]:
    """Chance, if d were the same everywhere, of values of d at least as far apart as those seen.

    The statistic is sum_s N_s (d_s - d)^2 over the values s with N_s repeated items; the items of each group
    size are dealt anew to the values (tables with fixed margins), so that a value with larger groups is no
    difference in itself. Where a value has most of its items in group sizes of its own, nothing could be dealt;
    then the conflicts and agreements that each value's items are worth are dealt instead (the effective numbers
    of :func:`compare_contrast`, which make the test cautious).

    Returns the p-value (1 + hits)/(1 + permutations), the method, and a reason. The p-value is None, with the
    reason, when fewer than two values have repeated items, no item disagrees or every item does.
    """
    usable = [part.repeated for _, part in sorted(parts.items()) if part.repeated.item_total > 0]
    if len(usable) < 2:
        return None, "none", "fewer than two values have repeated items"
    scores = np.concatenate([part.disagreement for part in usable])
    if not np.any(scores > 0):
        return None, "none", "no item disagrees under any value"
    if np.all(scores >= 1.0):
        return None, "none", "every item disagrees under every value"
    tables = _tables_by_size(usable)
    method = "permutation test within group sizes"
    if not _comparable(tables):
        tables = [_effective_tables(usable)]
        method = "permutation test at effective numbers of items"
    totals = np.array([table.sum(axis=0) for _, table in tables], np.float64).sum(axis=0)
    seen: FloatArray = np.zeros(len(totals))
    for levels, table in tables:
        seen += levels @ table
    observed = float(_spread(seen, totals))
    cells = sum(table.size for _, table in tables)
    draws = int(np.clip(_MOST_CELLS // max(cells, 1), _FEWEST_PERMUTATIONS, _MOST_PERMUTATIONS))
    rng = np.random.default_rng(seed)
    sums: FloatArray = np.zeros((draws, len(totals)))
    for levels, table in tables:
        sums += _dealt(levels, table, draws, rng)
    hits = int(np.sum(_spread(sums, totals) >= observed * (1.0 - 1e-9)))
    return (1 + hits) / (1 + draws), method, None


def _tables_by_size(parts: list[CountPatterns]) -> list[tuple[FloatArray, IntArray]]:
    """For each group size the scores that occur, and how many items of each value have them: (levels, (P, S))."""
    scores = np.concatenate([part.disagreement for part in parts])
    sizes = np.concatenate([part.sizes for part in parts])
    owner = np.repeat(np.arange(len(parts)), [len(part.items) for part in parts])
    items = np.concatenate([part.items for part in parts])
    tables = []
    for size in np.unique(sizes):
        here = sizes == size
        levels, row = np.unique(scores[here], return_inverse=True)
        table = np.zeros((len(levels), len(parts)), np.int64)
        np.add.at(table, (row, owner[here]), items[here])
        tables.append((levels, table))
    return tables


def _comparable(tables: list[tuple[FloatArray, IntArray]]) -> bool:
    """Whether every value has at least half of its items in group sizes that another value has too."""
    by_size = np.array([table.sum(axis=0) for _, table in tables])
    shared = by_size * (np.count_nonzero(by_size, axis=1, keepdims=True) > 1)
    return bool(np.all(2 * shared.sum(axis=0) >= by_size.sum(axis=0)))


def _effective_tables(parts: list[CountPatterns]) -> tuple[FloatArray, IntArray]:
    """One table of scores 0 and 1: the agreements and conflicts that each value's items are worth."""
    sums = np.array([float(part.disagreement @ part.items) for part in parts])
    totals = np.array([part.item_total for part in parts], np.float64)
    below = sums / totals < sums.sum() / totals.sum()
    worth = [
        _effective_table(part.disagreement, part.items, more=1.0 if low else 0.0)
        for part, low in zip(parts, below, strict=True)
    ]
    return np.array([1.0, 0.0]), np.array(worth, np.int64).T


def _dealt(levels: FloatArray, table: IntArray, draws: int, rng: np.random.Generator) -> FloatArray:
    """Sums of scores per value over ``draws`` random tables with the margins of ``table``: (draws, S)."""
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    if len(levels) == 1:
        return np.broadcast_to(levels[0] * columns, (draws, len(columns))).astype(np.float64)
    dealt = stats.random_table(rows, columns).rvs(size=draws, method="patefield", random_state=rng)
    return np.asarray(np.einsum("p,rps->rs", levels, dealt), np.float64)


def _spread(sums: FloatArray, totals: FloatArray) -> FloatArray:
    overall = sums.sum(axis=-1, keepdims=True) / totals.sum()
    return np.asarray(np.sum(totals * (sums / totals - overall) ** 2, axis=-1), np.float64)


def inside_and_outside(
    contrast: PairContrast, *, level: float = 0.95, seed: int = 0
) -> tuple[Estimate, Estimate]:
    """d over pairs inside a value and over pairs across values, each item once, with intervals."""
    return (
        _side(contrast.inside_pairs, contrast.inside_conflicts, contrast.items, level, seed),
        _side(contrast.outside_pairs, contrast.outside_conflicts, contrast.items, level, seed),
    )


def _side(pairs: IntArray, conflicts: IntArray, items: IntArray, level: float, seed: int) -> Estimate:
    scores, count = _scores(pairs, conflicts, items)
    return item_mean(scores, count, level=level, seed=seed, binary=bool(np.all(pairs <= 1)))


def compare_contrast(contrast: PairContrast) -> float | None:
    """Two-sided p-value of equal d inside and outside; None when a side is empty or nothing can be compared.

    Items are compared with items that have about as many pairs (at 2, 3 and 4 labels as many; above in classes), as
    easy items with many labels, or hard ones, are no difference between pairs. One such class: Fisher's exact test.
    Several: the Mantel-Haenszel test with continuity correction (Mantel & Haenszel 1959), which is 1 where the
    classes point the other way than the means of :func:`inside_and_outside`. Where items have several pairs on a
    side, the side's score is worth more than one yes/no answer an item: a table then holds the effective numbers of
    items, m(1-m)/variance of the mean m, as in :func:`audit.intervals.effective_interval`, rounded towards no
    difference. An item on both sides makes the test cautious. (A test with one pooled variance rejects up to a
    quarter of the time, at 5 %, where single pairs inside stand against many outside.)
    """
    inside = _scores(contrast.inside_pairs, contrast.inside_conflicts, contrast.items)
    outside = _scores(contrast.outside_pairs, contrast.outside_conflicts, contrast.items)
    if not inside[1].sum() or not outside[1].sum():
        return None
    d_in, d_out = (float(scores @ items) / float(items.sum()) for scores, items in (inside, outside))
    if max(d_in, d_out) <= 0.0 or min(d_in, d_out) >= 1.0:
        return None
    tables = [table for part in _by_pairs(contrast) if (table := _two_by_two(part)) is not None]
    if not tables:  # the sides have numbers of pairs of their own
        tables = [t for t in (_two_by_two(contrast),) if t is not None]
    if len(tables) == 1:
        p_value, sign = float(stats.fisher_exact(tables[0]).pvalue), _excess(tables)[0]
    else:
        excess, variance = _excess(tables)
        score = max(abs(excess) - 0.5, 0.0) / math.sqrt(variance) if variance > 0.0 else 0.0
        p_value, sign = float(2.0 * stats.norm.sf(score)), excess
    return 1.0 if sign * (d_in - d_out) < 0.0 else p_value


def _by_pairs(contrast: PairContrast) -> Iterator[PairContrast]:
    """The contrast for items with 1, 2-3, 4-7, ... pairs, each by itself."""
    pairs = contrast.inside_pairs + contrast.outside_pairs
    width = np.frexp(pairs.astype(np.float64))[1]
    for bits in np.unique(width):
        here = width == bits
        yield PairContrast(**{field.name: getattr(contrast, field.name)[here] for field in fields(contrast)})


def _two_by_two(contrast: PairContrast) -> FloatArray | None:
    """(conflicts, agreements) that the pairs inside and those outside are worth; None where a side is empty."""
    inside = _scores(contrast.inside_pairs, contrast.inside_conflicts, contrast.items)
    outside = _scores(contrast.outside_pairs, contrast.outside_conflicts, contrast.items)
    if not inside[1].sum() or not outside[1].sum():
        return None
    d_in, d_out = (float(scores @ items) / float(items.sum()) for scores, items in (inside, outside))
    if max(d_in, d_out) <= 0.0 or min(d_in, d_out) >= 1.0:
        return np.zeros((2, 2))
    low = d_in <= d_out
    return np.array(
        [
            _effective_table(*inside, more=1.0 if low else 0.0),
            _effective_table(*outside, more=0.0 if low else 1.0),
        ],
        np.float64,
    )


def _excess(tables: list[FloatArray]) -> tuple[float, float]:
    """Conflicts inside above those expected if the sides were alike, and their variance, over all tables."""
    excess = variance = 0.0
    for table in tables:
        total = float(table.sum())
        if total < 2:
            continue
        inside, outside = table.sum(axis=1)
        conflicts, agreements = table.sum(axis=0)
        excess += float(table[0, 0] - inside * conflicts / total)
        variance += float(inside * outside * conflicts * agreements / (total * total * (total - 1.0)))
    return excess, variance


def _scores(pairs: IntArray, conflicts: IntArray, items: IntArray) -> tuple[FloatArray, IntArray]:
    used = pairs > 0
    return conflicts[used] / pairs[used], items[used]


def _effective_table(scores: FloatArray, items: IntArray, *, more: float) -> tuple[int, int]:
    """Conflicts and agreements that the scores are worth, judged with one more item of score ``more``."""
    count = float(items.sum())
    mean = float(scores @ items) / count
    centre = (mean * count + more) / (count + 1.0)
    spread = (float((scores - centre) ** 2 @ items) + (more - centre) ** 2) / (count + 1.0) ** 2
    size = math.floor(centre * (1.0 - centre) / spread - 1.0 + 1e-6)
    bad = math.ceil(mean * size - 1e-6) if more else math.floor(mean * size + 1e-6)
    return bad, size - bad
