"""Offsets of annotators in numbers and grades: who labels higher or lower than the others on the same items.

A label is y = item + annotator + noise. Least squares over the repeated items gives the annotators' effects a_j: with
n_ij labels of annotator j on item i, n_i = Σ_j n_ij and N = (n_ij), they solve L a = b, where
L = diag(Σ_i n_ij) - N' diag(1/n_i) N and b_j is the sum of annotator j's labels less their items' means (two-way layout
with unequal numbers, Searle, Linear Models (1971) chapter 7). Only differences of effects are identified, so they
are told as offsets from the others: δ_j = a_j - mean of a_k over k ≠ j, each annotator once. With Σ a_j = 0 this is
a_j J/(J - 1).

The variance of the noise then falls apart: σ² = σ_a² + σ_e², annotators and rest. With mean squares of a complete table
this gives the ICC(2,1) and ICC(3,1) of Shrout and Fleiss (Psychological Bulletin 86 (1979) 420-428).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse, stats
from scipy.sparse.csgraph import connected_components

from audit.intervals import check_level, holm
from audit.numeric import ValueScores, noise_variance
from audit.patterns import FloatArray, IntArray
from audit.results_base import Estimate, Result

__all__ = ["AnnotatorOffset", "AnnotatorOffsets", "annotator_offsets", "offsets_of"]

#: Effects of more annotators are not solved for: the equations are dense.
_MOST = 2_000
#: Cells of a dense table that are held at once.
_CELLS = 4_000_000


@dataclass(frozen=True, kw_only=True)
class AnnotatorOffset(Estimate):
    """δ of one annotator, in units of the labels: how much higher (or lower) than the others on the same items.

    ``labels`` and ``items`` count what is behind it; ``p_value`` is of δ = 0, for this annotator alone, and
    ``p_holm`` the same corrected for all of them. Where the offsets explain every difference there is no noise and no
    interval, and ``p_value`` is that of the sign test: δ has one sign in each item.
    """

    value: str
    labels: int
    items: int
    p_value: float | None
    p_holm: float | None


@dataclass(frozen=True, kw_only=True)
class AnnotatorOffsets(Result):
    """The offsets of all annotators who share items, and what of the noise they are.

    ``noise_sd`` is σ_e, the noise without the offsets, and ``total_sd`` σ with them, of the same items. ``share`` is
    the share of the noise variance that is between annotators, at least 0. ``icc_agreement`` is ICC(2,1): of any one
    annotator's labels; ``icc_consistency`` ICC(3,1): with the offsets taken out. ``apart`` counts annotators who share
    items with none of those here; ``reason`` says why there are no offsets.
    """

    annotators: tuple[AnnotatorOffset, ...] = ()
    items: int = 0
    total_sd: Estimate
    noise_sd: Estimate
    share: float | None = None
    icc_agreement: float | None = None
    icc_consistency: float | None = None
    apart: int = 0
    reason: str | None = None


def annotator_offsets(
    item: IntArray, annotator: Sequence[str], value: FloatArray, *, level: float = 0.95
) -> AnnotatorOffsets:
    """Offsets of annotators from labels of repeated items.

    Parameters
    ----------
    item, annotator, value:
        One entry a label, all of length n: which item, who, and the number given. Items with one label say nothing.
    level:
        Of the intervals: Student's t, with the larger of two standard errors, the linear model's (one noise for all)
        and one clustered by item, which lets noise differ between annotators and items.
    """
    check_level(level)
    _, items, sizes = np.unique(np.asarray(item), return_inverse=True, return_counts=True)
    names, who = np.unique(np.asarray(annotator, dtype=object).astype(str), return_inverse=True)
    values = np.asarray(value, np.float64)
    several = sizes[items] > 1
    items, who, values = items[several], who[several], values[several]
    kept = _largest_component(items, who, len(sizes), len(names))
    everyone = len(np.unique(who))
    items, who, values = items[kept], who[kept], values[kept]
    here, who = np.unique(who, return_inverse=True)
    found, items = np.unique(items, return_inverse=True)
    j, apart = len(here), everyone - len(here)
    if j < 2:
        return _none("no item has labels of two annotators", apart=everyone)
    if j > _MOST:
        return _none(f"there are {j:,} annotators with items in common; offsets are told of up to {_MOST:,}")
    least = np.full(len(found), np.inf)
    np.minimum.at(least, items, values)
    above = values - least[items]  # digits of large values are kept, and equal labels have no noise at all
    rounding = 16.0 * np.finfo(np.float64).eps * float(np.abs(values).max(initial=0.0))
    model = _fit(items, who, above, len(found), j, rounding)
    total, rest, free = (
        model.scores(above, least),
        model.scores(above - model.effects[who], least),
        model.free,
    )
    noise = noise_variance(rest, level=level, free=max(free, 1))
    grown = 1.0 / model.left() if free > 0 else None
    noise_sd = Estimate(estimate=None, method="none")
    if grown is not None and noise.estimate is not None:
        ends = [
            None if end is None else float(np.sqrt(end * grown))
            for end in (noise.estimate, noise.low, noise.high)
        ]
        noise_sd = Estimate(estimate=ends[0], low=ends[1], high=ends[2], method=noise.method)
    whole = noise_variance(total, level=level)
    roots = [None if end is None else float(np.sqrt(end)) for end in (whole.estimate, whole.low, whole.high)]
    agreement, consistency = _correlations(total, rest, noise_sd.estimate, rounding)
    share = None
    if whole.estimate and noise_sd.estimate is not None:
        share = max(0.0, 1.0 - noise_sd.estimate**2 / whole.estimate)
    return AnnotatorOffsets(
        annotators=_offsets(model, names[here].tolist(), level), items=len(found),
        total_sd=Estimate(estimate=roots[0], low=roots[1], high=roots[2], method=whole.method), noise_sd=noise_sd,
        share=share, icc_agreement=agreement, icc_consistency=consistency, apart=apart,
    )  # fmt: skip


def offsets_of(
    votes: Sequence[tuple[int, str, int, int]], values: FloatArray, *, level: float = 0.95
) -> AnnotatorOffsets:
    """:func:`annotator_offsets` of votes: (item, annotator, place of the label in ``values``, times)."""
    times = np.array([vote[3] for vote in votes], np.int64)
    item, place = (np.array([vote[k] for vote in votes], np.int64) for k in (0, 2))
    index = np.repeat(np.arange(len(votes)), times)
    return annotator_offsets(
        item[index], [votes[k][1] for k in index.tolist()], np.asarray(values)[place[index]], level=level
    )


def _none(reason: str, *, apart: int = 0) -> AnnotatorOffsets:
    nothing = Estimate(estimate=None, method="none")
    return AnnotatorOffsets(total_sd=nothing, noise_sd=nothing, apart=apart, reason=reason)


def _largest_component(items: IntArray, who: IntArray, n_items: int, n_names: int) -> IntArray:
    """Labels of the annotators who are linked by shared items, of the group with most labels among several."""
    if not len(items):
        return np.zeros(0, np.int64)
    size = n_items + n_names
    links = sparse.coo_array((np.ones(len(items)), (items, n_items + who)), shape=(size, size))
    group = connected_components(links, directed=False)[1][items]
    labels = np.bincount(group)
    pairs = np.unique(np.stack([group, who]), axis=1)[0]
    labels[np.bincount(pairs, minlength=len(labels)) < 2] = 0  # alone with the items: nothing to compare
    return np.flatnonzero(group == labels.argmax()).astype(np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Model:
    """The least squares fit: effects (J,) with sum 0, the inverse of L on sums of zero, and what the errors need.

    What is left of a label and no more than ``rounding`` is 0.
    """

    effects: FloatArray
    inverse: FloatArray
    items: IntArray
    who: IntArray
    residuals: FloatArray
    counts: sparse.csr_array
    free: int
    rounding: float

    def scores(self, values: FloatArray, shift: FloatArray) -> ValueScores:
        """Labels less the ``shift`` of their item, one entry an item; the distances are left at 0."""
        sizes = np.bincount(self.items).astype(np.float64)
        means = np.bincount(self.items, weights=values) / sizes
        apart = _rounded(values - means[self.items], self.rounding)
        squares = np.bincount(self.items, weights=apart * apart) / (sizes - 1.0)
        return ValueScores(
            items=np.ones(len(sizes)),
            sizes=sizes,
            means=means + shift,
            variances=squares,
            distances=np.zeros(len(sizes)),
        )

    def left(self) -> float:
        """The share of σ_e² that the mean s_i² of the residuals has: 1 - tr(H_i)/(n_i - 1), the mean over items.

        H_i is the block of the hat matrix of the effects: with equal n_i this is free/(N - items).
        """
        sizes, diagonal = np.bincount(self.items).astype(np.float64), np.diag(self.inverse)
        step = max(1, _CELLS // len(diagonal))
        pairs = [
            np.asarray((part := self.counts[k : k + step]).multiply(part @ self.inverse).sum(axis=1)).ravel()
            for k in range(0, len(sizes), step)
        ]
        taken = self.counts @ diagonal - np.concatenate(pairs) / sizes
        return float(np.mean(1.0 - taken / (sizes - 1.0)))

    def covariance(self) -> FloatArray | None:
        """Of the effects, (J, J): of the two kinds of standard error, the larger variance of each effect."""
        if self.free < 1:
            return None
        plain = float(self.residuals @ self.residuals) / self.free * self.inverse
        shape = self.counts.shape
        summed = sparse.coo_array((self.residuals, (self.items, self.who)), shape=shape).tocsr()
        linked = int(np.sum(np.diff(self.counts.indptr) > 1))
        if linked < 2:
            return plain
        spread = np.asarray((summed.T @ summed).todense())
        robust = self.inverse @ spread @ self.inverse * linked / (linked - 1.0)
        larger = np.sqrt(np.maximum(1.0, np.diag(robust) / np.maximum(np.diag(plain), 1e-300)))
        return np.asarray(plain * np.outer(larger, larger), np.float64)


def _rounded(values: FloatArray, rounding: float) -> FloatArray:
    return np.where(np.abs(values) <= rounding, 0.0, values)


def _fit(
    items: IntArray, who: IntArray, values: FloatArray, n_items: int, n_names: int, rounding: float
) -> _Model:
    counts = sparse.coo_array((np.ones(len(items)), (items, who)), shape=(n_items, n_names)).tocsr()
    counts.sum_duplicates()
    sizes = np.bincount(items, minlength=n_items).astype(np.float64)
    scaled = sparse.diags_array(1.0 / sizes) @ counts
    left = np.diag(np.bincount(who, minlength=n_names).astype(np.float64)) - (counts.T @ scaled).toarray()
    centred = values - (np.bincount(items, weights=values) / sizes)[items]
    right = np.bincount(who, weights=centred, minlength=n_names)
    mean = np.full((n_names, n_names), 1.0 / n_names)
    inverse = np.linalg.inv(left + mean) - mean  # the null vector of L is that of equal effects
    effects = inverse @ right
    drawn = effects[who]
    residuals = _rounded(centred - (drawn - (np.bincount(items, weights=drawn) / sizes)[items]), rounding)
    return _Model(
        effects=_rounded(effects, rounding), inverse=inverse, items=items, who=who, residuals=residuals,
        counts=counts, free=len(values) - n_items - n_names + 1, rounding=rounding,
    )  # fmt: skip


def _correlations(
    total: ValueScores, rest: ValueScores, noise: float | None, rounding: float
) -> tuple[float | None, float | None]:
    """ICC(2,1) and ICC(3,1): the variance between items over all, and over all but the annotators'."""
    n = rest.total
    if noise is None or n < 2:
        return None, None
    centre = rest.mean(rest.means)
    between = rest.mean(_rounded(rest.means - centre, rounding) ** 2) * n / (n - 1.0) - rest.mean(
        noise**2 / rest.sizes
    )
    whole, pure = between + total.mean(total.variances), between + noise**2
    return (between / whole if whole > 0.0 else None), (between / pure if pure > 0.0 else None)


def _offsets(model: _Model, names: Sequence[str], level: float) -> tuple[AnnotatorOffset, ...]:
    """δ with its limits, the largest first."""
    j = len(names)
    scale = j / (j - 1.0)
    covariance = model.covariance()
    labels = np.bincount(model.who, minlength=j)
    items = np.diff(model.counts.tocsc().indptr)
    spread = None if covariance is None else scale * np.sqrt(np.diag(covariance))
    reach = float(stats.t.ppf((1.0 + level) / 2.0, model.free)) if model.free > 0 else 0.0
    p_values: list[float] | None = None
    if spread is not None and np.all(spread > 0.0):
        p_values = [
            float(2.0 * stats.t.sf(abs(scale * a) / s, model.free))
            for a, s in zip(model.effects, spread, strict=True)
        ]
    exact = (
        model.free > 0 and not model.residuals.any()
    )  # no noise to hold an offset against: its sign in each item
    if exact:
        p_values = [
            0.5 ** (int(count) - 1) if a else 1.0 for a, count in zip(model.effects, items, strict=True)
        ]
    corrected = holm(p_values) if p_values is not None else None
    parts = []
    for k, name in enumerate(names):
        delta, wide = scale * float(model.effects[k]), None if spread is None else reach * float(spread[k])
        known = p_values is not None and wide is not None and not exact
        parts.append(AnnotatorOffset(
            estimate=delta, low=delta - wide if known and wide is not None else None,
            high=delta + wide if known and wide is not None else None,
            method="Student's t, the larger of two standard errors" if known
            else "sign test, no noise is left" if exact else "none", value=str(name),
            labels=int(labels[k]), items=int(items[k]), p_value=p_values[k] if p_values is not None else None,
            p_holm=corrected[k] if corrected is not None else None,
        ))  # fmt: skip
    return tuple(sorted(parts, key=lambda part: (-abs(part.estimate or 0.0), part.value)))
