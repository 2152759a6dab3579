"""Disagreement between near-duplicates, as a function of how alike they are. It never enters the headline.

Two texts that are alike may be two questions: what is measured here mixes label noise with real differences. Where d
falls towards the d of exact repeats as texts grow alike, near-duplicates act as repeats; where it stays high, they are
other questions.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from audit.disagreement import estimate_disagreement, item_mean
from audit.errors import ArgumentError
from audit.grouping import Columns
from audit.grouping_files import GroupedFiles, group_files
from audit.intervals import check_level, check_seed
from audit.near import Pairs, near_pairs, sketch
from audit.patterns import FloatArray, IntArray
from audit.results import Disagreement, Estimate, Settings
from audit.results_near import NearBin, NearDuplicates, NearPair

__all__ = ["near_duplicates", "near_of"]

#: The columns of an item are joined by this before they are compared.
_JOIN = "\n"


def near_duplicates(
    source: Any,
    *,
    item: Sequence[str],
    label: str,
    threshold: float = 0.85,
    missing: Sequence[str] = (),
    normalise: str = "case",
    most: int = 5_000_000,
    bins: int = 3,
    show: int = 20,
    level: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
    **reading: Any,
) -> NearDuplicates:
    """Find near-duplicates and how often their labels differ.

    Parameters
    ----------
    source, item, label, missing, normalise, level, draws, seed, reading:
        As in :func:`audit.duplicates.audit_duplicates`. The texts compared are the items in their normal form, so
        that exact repeats are one text.
    threshold:
        The least Jaccard similarity of the sets of five-character runs, in [0.5, 1).
    most:
        The most pairs that are looked at.
    bins:
        Classes of similarity between the threshold and 1.
    show:
        Pairs with different labels that are kept as examples, the most alike first.

    Raises
    ------
    MissingExtraError, ArgumentError, InputError
        The ``near`` extra is not installed; an option, a column or the file cannot be used.
    """
    check_level(level)
    check_seed(seed)
    if bins < 1 or show < 0 or most < 1:
        raise ArgumentError(
            "near-duplicates need 1 class of similarity and 1 pair at least, and 0 or more examples"
        )
    with group_files(
        source, item=item, label=(label,), missing=missing, normalise=normalise, **reading
    ) as files:
        exact = estimate_disagreement(files.patterns("first"), level=level, draws=draws, seed=seed)
        texts, shares = _texts(files, len(item))
    made = sketch(texts, threshold=threshold, seed=seed)
    pairs = near_pairs(made, threshold=threshold, most=most, seed=seed)
    agree = np.asarray(shares[pairs.first].multiply(shares[pairs.second]).sum(axis=1)).ravel()
    differ = 1.0 - agree
    edges = np.linspace(threshold, 1.0, bins + 1)
    parts = tuple(
        _bin(pairs, differ, low, high, level=level, draws=draws, seed=seed)
        for low, high in itertools.pairwise(edges.tolist())
    )
    return NearDuplicates(
        threshold=threshold, texts=len(texts), pairs=len(pairs.first),
        texts_in_pairs=len(np.union1d(pairs.first, pairs.second)), candidates=pairs.candidates,
        recall=made.bands.chance(threshold), sampled=pairs.sampled, bins=parts,
        exact=Estimate(estimate=exact.estimate, low=exact.low, high=exact.high, method=exact.method),
        examples=tuple(_examples(pairs, differ, texts, shares, files.classes, show)), verdict=_verdict(parts, exact),
    )  # fmt: skip


def near_of(
    source: Any, columns: Columns, settings: Settings, threshold: float, most: int, reading: dict[str, Any]
) -> NearDuplicates:
    """The near-duplicates of a source that was audited with these columns and settings; it is read once more."""
    if columns.label is None or source == "-" or reading.get("engine") not in (None, "duckdb"):
        raise ArgumentError("--near is for a file with one label a row that can be read twice, in DuckDB")
    return near_duplicates(
        source, item=columns.item, label=columns.label, threshold=threshold, missing=settings.missing,
        normalise=settings.normalise, most=most, level=settings.level, draws=settings.draws, seed=settings.seed,
        **{name: value for name, value in reading.items() if name not in ("engine", "master")},
    )  # fmt: skip


def _texts(files: GroupedFiles, width: int) -> tuple[list[str], sparse.csr_array]:
    """The different texts in their normal form, and the shares of their labels: shape (N, K), rows that sum to 1."""
    names = [f"n{k}" for k in range(width)]
    joined = f"concat_ws(chr({ord(_JOIN)}), {', '.join(names)})"
    found = files.con.execute(
        f"SELECT any_value(text), list(code) FROM (SELECT g, code, {joined} AS text "
        "FROM votes JOIN grouped USING (r, g)) GROUP BY g ORDER BY g"
    ).fetchall()
    sizes = np.array([len(codes) for _, codes in found], np.int64)
    rows = np.repeat(np.arange(len(found)), sizes)
    flat = np.fromiter((code for _, codes in found for code in codes), np.int64, int(sizes.sum()))
    weights = 1.0 / np.repeat(sizes, sizes)
    shares = sparse.coo_array((weights, (rows, flat)), shape=(len(found), len(files.classes))).tocsr()
    return [text for text, _ in found], shares


def _bin(
    pairs: Pairs, differ: FloatArray, low: float, high: float, *, level: float, draws: int, seed: int
) -> NearBin:
    here = (pairs.similarity >= low - 1e-12) & (pairs.similarity < high - 1e-12)
    first, second, scores = pairs.first[here], pairs.second[here], differ[here]
    texts, place = np.unique(np.concatenate([first, second]), return_inverse=True)
    clusters = _clusters(place[: len(first)], place[len(first) :], len(texts))
    owner = clusters[place[: len(first)]]
    count = int(owner.max(initial=-1)) + 1
    means = np.bincount(owner, weights=scores, minlength=count) / np.maximum(
        np.bincount(owner, minlength=count), 1
    )
    levels, items = np.unique(np.round(means, 9), return_counts=True)
    d = item_mean(levels, items.astype(np.int64), level=level, draws=draws, seed=seed)
    return NearBin(low=low, high=high, pairs=len(first), texts=len(texts), clusters=count, disagreement=d)


def _clusters(first: IntArray, second: IntArray, texts: int) -> IntArray:
    """The number of the cluster of each text; texts that a pair links are in one."""
    graph = sparse.coo_array((np.ones(len(first)), (first, second)), shape=(texts, texts))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)


def _examples(
    pairs: Pairs,
    differ: FloatArray,
    texts: Sequence[str],
    shares: sparse.csr_array,
    classes: Sequence[str],
    show: int,
) -> list[NearPair]:
    order = np.lexsort((pairs.second, pairs.first, -pairs.similarity, -differ))
    order = order[differ[order] > 0.0][:show]

    def labels(row: int) -> tuple[str, ...]:
        return tuple(classes[k] for k in shares.indices[shares.indptr[row] : shares.indptr[row + 1]])

    return [
        NearPair(
            similarity=float(pairs.similarity[k]),
            texts=(texts[pairs.first[k]], texts[pairs.second[k]]),
            labels=(labels(int(pairs.first[k])), labels(int(pairs.second[k]))),
        )
        for k in order.tolist()
    ]


def _verdict(bins: Sequence[NearBin], exact: Disagreement) -> str:
    top = next((part for part in reversed(bins) if part.clusters), None)
    if top is None:
        return "No near-duplicates: nothing to compare."
    d = top.disagreement
    if exact.estimate is None or d.low is None or exact.high is None or d.high is None or exact.low is None:
        return "Without exact repeats there is nothing to hold their d against: near-duplicates may be other questions."
    if d.low > exact.high:
        return (
            "The most alike pairs disagree more often than exact repeats: many are other questions, so they are no "
            "repeats."
        )
    if d.high < exact.low:
        return (
            "The most alike pairs disagree less often than exact repeats: their labels may have been given together or "
            "copied."
        )
    return (
        "The most alike pairs disagree about as often as exact repeats; they still stay out of the headline."
    )
