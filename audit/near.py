"""Near-duplicates: pairs of different texts that share most of their shingles, found by MinHash and counted exactly.

A text is the set of its runs of five characters. Two texts are near when the Jaccard similarity |A ∩ B|/|A ∪ B| of
their sets is at least a threshold. MinHash (Broder, Compression and Complexity of Sequences 1997, 21-29) with b bands
of r of its values brings a pair of similarity J together with chance 1 - (1 - J^r)^b (Leskovec, Rajaraman and Ullman,
Mining of Massive Datasets, 3.4); every such pair is then counted exactly, so that nothing below the threshold is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from audit.errors import ArgumentError, MissingExtraError
from audit.patterns import FloatArray, IntArray

__all__ = [
    "SHINGLE",
    "Bands",
    "Pairs",
    "Sketches",
    "choose_bands",
    "jaccard",
    "near_pairs",
    "shingle_sets",
    "sketch",
]

#: Characters of a shingle.
SHINGLE = 5
#: MinHash values of a text at most, and the chance with which a pair at the threshold must be brought together.
_VALUES = 128
_RECALL = 0.995
#: Bits of a shingle's code. Two texts of 1,000 shingles share one by chance once in a million pairs of texts.
_BITS = 40
_CHARACTERS = 4_000_000
#: Texts that share a band's values are paired all with all up to this many; beyond, each with as many others.
_BUCKET = 200
#: Shingles of the pairs that are compared at once.
_CHUNK = 1_000_000

Codes = npt.NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True)
class Bands:
    """``bands`` bands of ``rows`` MinHash values each."""

    bands: int
    rows: int

    def chance(self, similarity: float) -> float:
        """The chance that a pair of this similarity is brought together."""
        return float(1.0 - (1.0 - similarity**self.rows) ** self.bands)


@dataclass(frozen=True, kw_only=True, eq=False)
class Sketches:
    """The shingle sets of N texts as a sparse 0/1 table, and their MinHash values, shape (N, bands x rows)."""

    sets: sparse.csr_array
    values: npt.NDArray[np.uint32]
    bands: Bands


@dataclass(frozen=True, kw_only=True, eq=False)
class Pairs:
    """Pairs of texts: ``first`` < ``second`` (shape (M,)) and their similarity; ``candidates`` were looked at.

    ``sampled`` says that some buckets were too large to pair all with all.
    """

    first: IntArray
    second: IntArray
    similarity: FloatArray
    candidates: int
    sampled: bool


def choose_bands(threshold: float) -> Bands:
    """The bands that bring pairs at the threshold together with a chance of .995 or more, with the fewest others."""
    if not 0.5 <= threshold < 1.0:
        raise ArgumentError(
            f"near-duplicates have a similarity from 0.5 to below 1, not {threshold}: try --near 0.85"
        )
    for rows in range(12, 1, -1):
        bands = Bands(bands=_VALUES // rows, rows=rows)
        if bands.chance(threshold) >= _RECALL:
            return bands
    return Bands(bands=_VALUES // 2, rows=2)


def shingle_sets(texts: Sequence[str]) -> sparse.csr_array:
    """The sets of shingles of N texts: a sparse table with a 1 for each; a text shorter than a shingle has one."""
    pointers, columns = [np.zeros(1, np.int64)], []
    start = 0
    for rows, codes in _coded(texts):
        counts = np.bincount(rows.astype(np.int64), minlength=int(rows[-1]) + 1 if len(rows) else 0)
        pointers.append(start + np.cumsum(counts))
        columns.append(codes.astype(np.int64))
        start += len(codes)
    flat = np.concatenate(columns) if columns else np.zeros(0, np.int64)
    return sparse.csr_array(
        (np.ones(len(flat), np.int32), flat, np.concatenate(pointers)), shape=(len(texts), 1 << _BITS)
    )


def sketch(texts: Sequence[str], *, threshold: float, seed: int = 0) -> Sketches:
    """Shingle sets and MinHash values of texts.

    Raises
    ------
    ArgumentError
        The threshold is out of range.
    MissingExtraError
        The library that makes the MinHash values is not installed.
    """
    bands = choose_bands(threshold)
    try:
        from rensa import RMinHash
    except ImportError as error:
        raise MissingExtraError("--near", extra="near") from error
    sets = shingle_sets(texts)
    wanted = bands.bands * bands.rows
    parts = []
    for start in range(0, len(texts), 20_000):
        stop = min(start + 20_000, len(texts))
        low, high = int(sets.indptr[start]), int(sets.indptr[stop])
        tokens = _mixed(sets.indices[low:high].astype(np.uint64))
        offsets = (sets.indptr[start : stop + 1] - low).astype(np.uint64)
        made = RMinHash.digest_matrix_from_flat_token_hashes(tokens, offsets, wanted, seed)
        parts.append(np.array(made.to_rows(), np.uint32).reshape(-1, wanted))
    values = np.concatenate(parts) if parts else np.zeros((0, wanted), np.uint32)
    return Sketches(sets=sets, values=values, bands=bands)


def near_pairs(
    sketches: Sketches,
    *,
    threshold: float,
    most: int = 5_000_000,
    seed: int = 0,
    across: IntArray | None = None,
) -> Pairs:
    """The pairs of texts at least ``threshold`` alike.

    Parameters
    ----------
    sketches:
        Of N texts, all different.
    threshold:
        The least Jaccard similarity.
    most:
        The most pairs that are looked at.
    across:
        A number for each text, shape (N,): only pairs of texts with other numbers are looked at.

    Raises
    ------
    ArgumentError
        More pairs than ``most`` would have to be looked at: told before they are formed.
    """
    order = np.random.default_rng(seed).permutation(len(sketches.values))
    keys = [_band_keys(sketches.values, band, sketches.bands.rows) for band in range(sketches.bands.bands)]
    planned = sum(_planned(key) for key in keys)
    if planned > 10 * most:  # the bands bring most pairs together many times over
        raise ArgumentError(
            f"--near would look at up to {planned:,} pairs (16 bytes each): ask for a higher similarity, or allow more "
            "with --near-pairs"
        )
    n, sampled, found = len(sketches.values), False, np.zeros(0, np.int64)
    for key in keys:
        codes, cut = _bucket_pairs(key, order)
        if across is not None:
            codes = codes[across[codes // n] != across[codes % n]]
        sampled |= cut
        found = np.union1d(found, codes)
        if len(found) > most:
            raise ArgumentError(
                f"--near finds more than {most:,} pairs to look at: ask for a higher similarity, or allow more with "
                "--near-pairs"
            )
    first, second = found // max(n, 1), found % max(n, 1)
    likeness = jaccard(sketches.sets, first, second)
    kept = likeness >= threshold - 1e-12
    return Pairs(
        first=first[kept],
        second=second[kept],
        similarity=likeness[kept],
        candidates=len(found),
        sampled=sampled,
    )


def parts_of(texts: Sequence[str], *, characters: int) -> Iterator[list[str]]:
    """The texts in order, in parts of so many characters; a longer text is a part of its own."""
    start = 0
    while start < len(texts):
        stop, room = start, characters
        while stop < len(texts) and (stop == start or room >= len(texts[stop])):
            room -= len(texts[stop]) + SHINGLE
            stop += 1
        yield list(texts[start:stop])
        start = stop


def _coded(texts: Sequence[str]) -> Iterator[tuple[Codes, Codes]]:
    """Chunks of texts as sorted rows (from 0 in each chunk) and codes, each code once a row."""
    for part in parts_of(texts, characters=_CHARACTERS):
        part = [text if len(text) >= SHINGLE else text.ljust(SHINGLE, "\0") for text in part]
        lengths = np.array([len(text) for text in part], np.int64)
        points = np.frombuffer("".join(part).encode("utf-32-le", "surrogatepass"), np.uint32).astype(
            np.uint64
        )
        codes = np.zeros(max(len(points) - SHINGLE + 1, 0), np.uint64)
        for place in range(SHINGLE):
            codes += points[place : place + len(codes)] * _FACTORS[place]
        rows = np.repeat(np.arange(len(part), dtype=np.uint64), lengths - SHINGLE + 1)
        begins = np.cumsum(lengths) - lengths
        shingles = lengths - SHINGLE + 1
        inside = np.repeat(begins - (np.cumsum(shingles) - shingles), shingles) + np.arange(shingles.sum())
        keys = (rows << np.uint64(_BITS)) | (_mixed(codes[inside]) >> np.uint64(64 - _BITS))
        keys.sort()  # much faster than np.unique
        keys = keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys
        yield keys >> np.uint64(_BITS), keys & np.uint64((1 << _BITS) - 1)


#: Odd numbers, so that each character changes the code whatever the others are.
_FACTORS = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F],
    np.uint64,
)


def _mixed(codes: Codes) -> Codes:
    """Codes with their bits spread (the finaliser of splitmix64: Steele, Lea and Flood, OOPSLA 2014)."""
    with np.errstate(over="ignore"):
        codes = (codes ^ (codes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        codes = (codes ^ (codes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return codes ^ (codes >> np.uint64(31))


def _band_keys(values: npt.NDArray[np.uint32], band: int, rows: int) -> Codes:
    """One number for each text's values in a band."""
    key = np.zeros(len(values), np.uint64)
    for column in range(band * rows, (band + 1) * rows):
        key = _mixed(key + values[:, column].astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15))
    return key


def _planned(key: Codes) -> int:
    """How many pairs the buckets of a band would give."""
    sizes = np.unique(key, return_counts=True)[1].astype(np.int64)
    return int(np.sum(np.where(sizes > _BUCKET, sizes * _BUCKET, sizes * (sizes - 1) // 2)))


def _bucket_pairs(key: Codes, order: IntArray) -> tuple[IntArray, bool]:
    """Pairs of texts with one key, as first * n + second, each once; and whether large buckets were sampled.

    Texts of a large bucket are paired with those that follow them in ``order``, the same in every band.
    """
    n = len(order)
    order = order[np.argsort(key[order], kind="stable")]
    sorted_key = key[order]
    starts = (
        np.flatnonzero(np.append(True, sorted_key[1:] != sorted_key[:-1])) if n else np.zeros(0, np.int64)
    )
    sizes = np.diff(np.append(starts, n))
    found = []
    for step in range(1, min(int(sizes.max(initial=1)), _BUCKET + 1)):
        wide = sizes > step
        place = np.repeat(starts[wide], sizes[wide] - step) + _runs(sizes[wide] - step)
        found.append((order[place], order[place + step]))
    if not found:
        return np.zeros(0, np.int64), False
    a, b = (np.concatenate(side) for side in zip(*found, strict=True))
    codes = np.minimum(a, b).astype(np.int64) * n + np.maximum(a, b)
    return np.unique(codes), bool(np.any(sizes > _BUCKET + 1))


def _runs(lengths: IntArray) -> IntArray:
    """0 ... n-1 for each length n, one after the other."""
    return np.arange(int(lengths.sum()), dtype=np.int64) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def jaccard(sets: sparse.csr_array, first: IntArray, second: IntArray) -> FloatArray:
    """The exact Jaccard similarity of pairs of rows of :func:`shingle_sets`: shape (M,)."""
    sizes = np.diff(sets.indptr)
    upto = np.cumsum(sizes[first] + sizes[second])  # pairs are taken together by how many shingles they have
    parts = []
    start = 0
    while start < len(first):
        before = upto[start - 1] if start else 0
        stop = max(int(np.searchsorted(upto, before + _CHUNK, side="right")), start + 1)
        a, b = first[start:stop], second[start:stop]
        shared = np.asarray(sets[a].multiply(sets[b]).sum(axis=1)).ravel().astype(np.float64)
        parts.append(shared / (sizes[a] + sizes[b] - shared))
        start = stop
    return np.concatenate(parts) if parts else np.zeros(0)
