"""Is d the same in every part of the data, and within a part as across parts?

Two tests: a permutation test of equal d over the values of a column, stratified by group size (Good,
Permutation, Parametric and Bootstrap Tests, 2005, ch. 3), and a pooled-variance score test of d over pairs of
labels that share a value against pairs that do not (Fisher's exact test where every item is one pair).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import special, stats

from audit.disagreement import item_mean
from audit.patterns import CountPatterns, FloatArray, PairContrast
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
    p_value, reason = permutation_p_value(parts, seed=seed)
    within = across = None
    contrast_p: float | None = None
    items_across = 0
    if contrast is not None:
        within, across = inside_and_outside(contrast, level=level, seed=seed)
        contrast_p = compare_contrast(contrast)
        items_across = int(contrast.items[contrast.outside_pairs > 0].sum())
    return Comparison(
        column=column, p_value=p_value, method="permutation test within group sizes", within=within,
        across=across, items_across=items_across, contrast_p_value=contrast_p, reason=reason,
    )  # fmt: skip


def permutation_p_value(
    parts: Mapping[str, CountPatterns], *, seed: int = 0
) -> tuple[float | None, str | None]:
    """Chance, if d were the same everywhere, of values of d at least as far apart as those seen.

    The statistic is sum_s N_s (d_s - d)^2 over the values s with N_s repeated items; the items of each group
    size are dealt anew to the values (tables with fixed margins), so that a value with larger groups is no
    difference in itself. The p-value is (1 + hits)/(1 + permutations); None, with the reason, when fewer than
    two values have repeated items or no item disagrees.
    """
    usable = [part.repeated for part in parts.values() if part.repeated.item_total > 0]
    if len(usable) < 2:
        return None, "fewer than two values have repeated items"
    scores = np.concatenate([part.disagreement for part in usable])
    if not np.any(scores > 0):
        return None, "no item disagrees under any value"
    if np.all(scores >= 1.0):
        return None, "every item disagrees under every value"
    sizes = np.concatenate([part.sizes for part in usable])
    owner = np.repeat(np.arange(len(usable)), [len(part.items) for part in usable])
    items = np.concatenate([part.items for part in usable])
    tables = []
    for size in np.unique(sizes):
        here = sizes == size
        levels, row = np.unique(scores[here], return_inverse=True)
        table = np.zeros((len(levels), len(usable)), np.int64)
        np.add.at(table, (row, owner[here]), items[here])
        tables.append((levels, table))
    totals = np.array([part.item_total for part in usable], np.float64)
    observed = _spread(sum((levels @ table for levels, table in tables), np.zeros(len(usable))), totals)
    cells = sum(table.size for _, table in tables)
    draws = int(np.clip(_MOST_CELLS // max(cells, 1), _FEWEST_PERMUTATIONS, _MOST_PERMUTATIONS))
    rng = np.random.default_rng(seed)
    sums = np.zeros((draws, len(usable)))
    for levels, table in tables:
        sums += _dealt(levels, table, draws, rng)
    hits = int(np.sum(_spread(sums, totals) >= observed * (1.0 - 1e-9)))
    return (1 + hits) / (1 + draws), None


def _dealt(levels: FloatArray, table: np.ndarray, draws: int, rng: np.random.Generator) -> FloatArray:
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


def _side(pairs: np.ndarray, conflicts: np.ndarray, items: np.ndarray, level: float, seed: int) -> Estimate:
    used = pairs > 0
    return item_mean(
        conflicts[used] / pairs[used],
        items[used],
        level=level,
        seed=seed,
        binary=bool(np.all(pairs[used] == 1)),
    )


def compare_contrast(contrast: PairContrast) -> float | None:
    """Two-sided p-value of equal d inside and outside; None when a side is empty or nothing disagrees.

    Fisher's exact test when each item is a single pair; otherwise a score test with the pooled variance of the
    item scores, which ignores that one item may stand on both sides (that makes it cautious).
    """
    inside, outside = contrast.inside_pairs > 0, contrast.outside_pairs > 0
    n_in, n_out = int(contrast.items[inside].sum()), int(contrast.items[outside].sum())
    if n_in == 0 or n_out == 0:
        return None
    if np.all(contrast.inside_pairs + contrast.outside_pairs == 1):
        bad_in = int((contrast.inside_conflicts * contrast.items).sum())
        bad_out = int((contrast.outside_conflicts * contrast.items).sum())
        return float(stats.fisher_exact(np.array([[bad_in, n_in - bad_in], [bad_out, n_out - bad_out]])).pvalue)
    scores = np.concatenate(
        [
            contrast.inside_conflicts[inside] / contrast.inside_pairs[inside],
            contrast.outside_conflicts[outside] / contrast.outside_pairs[outside],
        ]
    )
    weights = np.concatenate([contrast.items[inside], contrast.items[outside]]).astype(np.float64)
    mean = float(scores @ weights) / (n_in + n_out)
    variance = float((scores - mean) ** 2 @ weights) / (n_in + n_out)
    if variance <= 0.0:
        return None
    split = int(inside.sum())
    d_in = float(scores[:split] @ weights[:split]) / n_in
    d_out = float(scores[split:] @ weights[split:]) / n_out
    z = (d_in - d_out) / np.sqrt(variance * (1.0 / n_in + 1.0 / n_out))
    return float(2.0 * special.ndtr(-abs(z)))
