"""Disagreement between alike texts by how alike they are, whatever made them alike: the table and its verdict."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from audit.disagreement import item_mean
from audit.errors import ArgumentError
from audit.fliprate import estimate_flip_rate
from audit.intervals import check_level, check_seed
from audit.near import Pairs
from audit.paired import paired_difference
from audit.patterns import FloatArray, IntArray
from audit.results import Disagreement, Estimate
from audit.results_near import IfRepeats, Measure, NearBin, NearDuplicates, NearPair

__all__ = ["Labelled", "Table", "clusters_of", "tell"]

#: A difference of d that surely is smaller than this is told as none.
_SMALL = 0.05


@dataclass(frozen=True, kw_only=True, eq=False)
class Labelled:
    """N different texts, the shares of their labels (shape (N, K), rows that sum to 1), and d of exact repeats.

    ``repeated`` counts the texts with several labels, ``declared`` the classes K of the audit. ``rows`` and ``given``
    are the data rows of each text, counted from 1, and its columns as the first of them has them; empty unless asked
    for.
    """

    texts: Sequence[str]
    shares: sparse.csr_array
    classes: Sequence[str]
    exact: Disagreement
    repeated: int
    declared: int
    rows: Sequence[Sequence[int]] = ()
    given: Sequence[Sequence[str | None]] = ()

    def labels(self, text: int) -> tuple[str, ...]:
        """The labels of one text, each once."""
        start, stop = self.shares.indptr[text : text + 2]
        return tuple(self.classes[k] for k in self.shares.indices[start:stop])

    def differ(self, pairs: Pairs) -> FloatArray:
        """The chance that two labels, one of each text of a pair, differ: shape (M,)."""
        shares = self.shares
        agree = np.asarray(shares[pairs.first].multiply(shares[pairs.second]).sum(axis=1)).ravel()
        return np.clip(1.0 - agree, 0.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class Table:
    """How the pairs are told: classes of similarity, examples kept, and the intervals.

    Raises
    ------
    ArgumentError
        A number is out of range.
    """

    bins: int = 3
    show: int = 20
    level: float = 0.95
    draws: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        check_level(self.level)
        check_seed(self.seed)
        if self.bins < 1 or self.show < 0:
            raise ArgumentError("near-duplicates need 1 class of similarity at least, and 0 or more examples")


def tell(
    labelled: Labelled,
    pairs: Pairs,
    table: Table,
    *,
    threshold: float,
    recall: float,
    measure: Measure,
    model: str | None = None,
    background: float | None = None,
    also_near: npt.NDArray[np.bool_] | None = None,
) -> NearDuplicates:
    """d of alike texts by class of similarity, beside that of exact repeats.

    ``also_near``, shape (M,), marks the pairs that share most of their characters too.
    """
    exact, differ = labelled.exact, labelled.differ(pairs)
    edges = np.linspace(threshold, 1.0, table.bins + 1).tolist() if threshold < 1.0 else [1.0, 1.0]
    parts = tuple(_bin(pairs, differ, also_near, low, high, table) for low, high in itertools.pairwise(edges))
    return NearDuplicates(
        measure=measure, model=model, threshold=threshold, background=background, texts=len(labelled.texts),
        pairs=len(pairs.first), also_near=None if also_near is None else int(also_near.sum()),
        texts_in_pairs=len(np.union1d(pairs.first, pairs.second)), candidates=pairs.candidates, recall=recall,
        sampled=pairs.sampled, bins=parts,
        exact=Estimate(estimate=exact.estimate, low=exact.low, high=exact.high, method=exact.method),
        if_repeats=_if_repeats(_bin(pairs, differ, None, threshold, 1.0, table).disagreement, labelled, table),
        examples=tuple(_examples(pairs, differ, labelled, table.show)),
        verdict=_verdict(parts, labelled, threshold, background),
    )  # fmt: skip


def _bin(
    pairs: Pairs,
    differ: FloatArray,
    also_near: npt.NDArray[np.bool_] | None,
    low: float,
    high: float,
    table: Table,
) -> NearBin:
    here = pairs.similarity >= low - 1e-12
    if high < 1.0:  # the last class has its end
        here &= pairs.similarity < high - 1e-12
    first, second, scores = pairs.first[here], pairs.second[here], differ[here]
    texts, place = np.unique(np.concatenate([first, second]), return_inverse=True)
    clusters = clusters_of(place[: len(first)], place[len(first) :], len(texts))
    owner = clusters[place[: len(first)]]
    count = int(owner.max(initial=-1)) + 1
    means = np.bincount(owner, weights=scores, minlength=count) / np.maximum(
        np.bincount(owner, minlength=count), 1
    )
    levels, items = np.unique(np.round(means, 9), return_counts=True)
    d = item_mean(levels, items.astype(np.int64), level=table.level, draws=table.draws, seed=table.seed)
    return NearBin(
        low=low, high=high, pairs=len(first), also_near=None if also_near is None else int(also_near[here].sum()),
        texts=len(texts), clusters=count, disagreement=d,
    )  # fmt: skip


def _if_repeats(d: Estimate, labelled: Labelled, table: Table) -> IfRepeats:
    made = Disagreement(
        estimate=d.estimate, low=d.low, high=d.high, method=d.method, pair_weighted=None, row_weighted=None,
        level=table.level, reason="there are no pairs",
    )  # fmt: skip
    rate = estimate_flip_rate(made, classes=labelled.declared)
    return IfRepeats(
        disagreement=d,
        flip_rate=Estimate(estimate=rate.estimate, low=rate.low, high=rate.high, method=rate.method),
    )


def clusters_of(first: IntArray, second: IntArray, texts: int) -> IntArray:
    """The number of the cluster of each text; texts that a pair links are in one."""
    graph = sparse.coo_array((np.ones(len(first)), (first, second)), shape=(texts, texts))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)


def _examples(pairs: Pairs, differ: FloatArray, labelled: Labelled, show: int) -> list[NearPair]:
    order = np.lexsort((pairs.second, pairs.first, -pairs.similarity, -differ))
    order = order[differ[order] > 0.0][:show]
    texts = labelled.texts
    return [
        NearPair(
            similarity=float(pairs.similarity[k]),
            texts=(texts[pairs.first[k]], texts[pairs.second[k]]),
            labels=(labelled.labels(int(pairs.first[k])), labelled.labels(int(pairs.second[k]))),
        )
        for k in order.tolist()
    ]


def _verdict(bins: Sequence[NearBin], labelled: Labelled, threshold: float, background: float | None) -> str:
    top = next((part for part in reversed(bins) if part.clusters), None)
    if top is None:
        return "No near-duplicates: nothing to compare."
    if background is not None and background >= threshold:
        return (
            "Texts taken at random are as alike: their vectors tell these texts apart too little, so the pairs are "
            "nothing to go by."
        )
    exact = labelled.exact
    apart = paired_difference(
        Estimate(estimate=exact.estimate, low=exact.low, high=exact.high), top.disagreement, correlation=0.0
    )
    if apart.low is None or apart.high is None:
        return "Without exact repeats there is nothing to hold their d against: near-duplicates may be other questions."
    told = f"by {apart.text()}"
    if apart.low > 0.0:
        return (
            f"The most alike pairs disagree more often than exact repeats, {told}: many are other questions, so they "
            "are no repeats."
        )
    if apart.high < 0.0:
        return (
            f"The most alike pairs disagree less often than exact repeats, {told}: their labels may have been given "
            "together or copied."
        )
    if max(-apart.low, apart.high) < _SMALL:
        return f"The most alike pairs disagree about as often as exact repeats: d differs {told}."
    items, clusters = labelled.repeated, top.clusters
    return (
        f"The most alike pairs cannot be told apart from exact repeats: d differs {told}, by {clusters:,} "
        f"cluster{'' if clusters == 1 else 's'} and {items:,} repeated item{'' if items == 1 else 's'}."
    )
