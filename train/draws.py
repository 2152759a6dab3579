"""Bootstrap draws of rows or clusters as matrices of weights, and the limits read off them.

Sources: Efron, Ann. Stat. 7 (1979) 1-26; for clusters Davison & Hinkley, Bootstrap Methods (1997), 3.8; for
cross-validation Stone, J. R. Stat. Soc. B 36 (1974) 111-147; limits of one metric as in
:func:`audit.intervals.effective_interval`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from audit.errors import ArgumentError
from audit.intervals import check_seed, effective_interval
from audit.results import Estimate

__all__ = ["FEW_UNITS", "bootstrap", "check_draws", "fold_weights", "interval_of", "percentile_limits"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Fewer rows or clusters than this, and a bootstrap of them is rough.
FEW_UNITS = 20

#: Cells of one block of bootstrap weights: a block stays near 3 MB, which caches hold.
_BLOCK_CELLS = 400_000


def check_draws(draws: int, *, least: int = 100) -> None:
    """Raise ArgumentError for fewer bootstrap draws than limits can be read off."""
    if draws < least:
        raise ArgumentError(f"{draws} bootstrap draws are too few for an interval: use {least} or more")


def bootstrap(
    statistic: Callable[[Floats], Floats],
    *,
    clusters: Ints,
    strata: Ints | None = None,
    draws: int,
    seed: int,
) -> Floats:
    """Values of ``statistic`` over bootstrap samples of the clusters: shape (draws, k).

    ``statistic`` maps weights (B, n) to (B, k). ``clusters`` (n,) numbers each row's cluster from 0; a row of its own
    for each means independent rows. ``strata`` (n,) keeps the number of clusters of each stratum; a cluster has one.
    """
    check_draws(draws)
    check_seed(seed)
    return np.concatenate(
        [statistic(w) for w in _weights(clusters, strata, draws, np.random.default_rng(seed))]
    )


def _weights(clusters: Ints, strata: Ints | None, draws: int, rng: np.random.Generator) -> Iterator[Floats]:
    size = int(clusters.max()) + 1
    stratum = np.zeros(size, np.int64)
    if strata is not None:
        stratum[clusters] = strata
        if (stratum[clusters] != strata).any():
            raise ArgumentError("a cluster lies in two strata: draw clusters without strata")
    members = [np.flatnonzero(stratum == s) for s in np.unique(stratum)]
    plain = size == len(clusters) and bool((clusters == np.arange(size)).all())
    block = max(1, min(draws, _BLOCK_CELLS // len(clusters)))
    for start in range(0, draws, block):
        rows = min(block, draws - start)
        shift = np.arange(rows)[:, None] * size
        picked = [m[rng.integers(len(m), size=(rows, len(m)))] + shift for m in members]
        drawn = np.concatenate([p.ravel() for p in picked])
        counts = np.bincount(drawn, minlength=rows * size).reshape(rows, size).astype(np.float64)
        yield counts if plain else np.take(counts, clusters, axis=1)


def fold_weights(
    clusters: Ints, truth: NDArray[np.bool_], *, seed: int, folds: int = 10, repeats: int = 20
) -> Iterator[tuple[Floats, Floats]]:
    """For each repeat the weights (folds, n) of the rows to choose on, and of those left out to judge the choice.

    Every row is left out once in a repeat. Clusters stay whole; those with a positive and those without are spread
    evenly over the folds.
    """
    rng = np.random.default_rng([seed, 3])
    with_positive = np.bincount(clusters, weights=truth) > 0
    fold = np.empty(len(with_positive), np.int64)
    for _ in range(repeats):
        for group in (np.flatnonzero(with_positive), np.flatnonzero(~with_positive)):
            fold[group] = (rng.permutation(len(group)) + rng.integers(folds)) % folds
        out = (fold[clusters][None, :] == np.arange(folds)[:, None]).astype(np.float64)
        yield 1.0 - out, out


def percentile_limits(values: Floats, *, level: float) -> tuple[float, float] | None:
    """Percentile limits of the draws; ``None`` where more than one draw in twenty has no value."""
    there = values[np.isfinite(values)]
    if len(there) < 0.95 * len(values):
        return None
    low, high = np.quantile(there, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return float(low), float(high)


def interval_of(name: str, estimate: float, values: Floats, *, items: float, level: float) -> Estimate:
    """A metric with beta limits at the effective sample size that the draws' variance gives.

    See :func:`audit.intervals.effective_interval`; ``items`` are the independent rows that the metric rests on. So a
    metric of 1 has an interval too, where percentiles would have none. MCC is taken from [-1, 1] to [0, 1] and back.
    """
    there = values[np.isfinite(values)]
    if not np.isfinite(estimate) or items < 1:
        return Estimate(estimate=None, method="does not exist for these rows")
    if len(there) < 0.95 * len(values):
        return Estimate(estimate=estimate, method="no interval: it does not exist in many of the draws")
    scale, shift = (0.5, 0.5) if name == "mcc" else (1.0, 0.0)
    low, high = effective_interval(
        min(1.0, max(0.0, estimate * scale + shift)),
        float(there.var()) * scale**2,
        max(1, round(items)),
        level=level,
    )
    return Estimate(
        estimate=estimate, low=(low - shift) / scale, high=(high - shift) / scale,
        method="bootstrap variance, beta limits",
    )  # fmt: skip
