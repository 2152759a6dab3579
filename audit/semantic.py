"""Texts whose word vectors point the same way: the mean vector of a text's words, and exact cosines of all pairs.

A text's vector is the sum of the vectors of its pieces of words, all of them however long the text is, at length 1.
The order of words plays no part in it, and one word ("not", a number) moves it little. Cosines are taken of all pairs,
tile by tile, in single precision; those within its rounding of the threshold are taken again in double precision, so
that no pair is missed and none is told that does not belong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from scipy import sparse

from audit.errors import ArgumentError
from audit.near import Pairs, parts_of
from audit.patterns import FloatArray, IntArray
from audit.reading_vectors import WordVectors

__all__ = ["background", "check_texts", "check_threshold", "cosines", "embed", "semantic_pairs"]

Vectors = npt.NDArray[np.float32]

#: Characters of the texts that are cut into words at once.
_CHARACTERS = 2_000_000
#: Rows and columns of a tile of products: 32 MB.
_ROWS, _COLUMNS = 1024, 8192
#: Single precision is off by less than this for vectors of length 1.
_SLACK = 1e-5
_CHUNK = 100_000
#: Pairs at random, and the share of them that the background leaves above it.
_RANDOM, _ABOVE = 20_000, 0.01


def check_threshold(threshold: float) -> None:
    """Raise an ArgumentError unless the least cosine is above 0 and at most 1."""
    if not 0.0 < threshold <= 1.0:
        raise ArgumentError(
            f"the cosine of two texts' vectors is looked for above 0 and up to 1, not {threshold}: try --semantic 0.9"
        )


def check_texts(texts: int, most: int) -> None:
    """Raise an ArgumentError for more than ``most`` texts: every one is compared with every other."""
    if texts > most:
        raise ArgumentError(
            f"--semantic would compare all {texts * (texts - 1) // 2:,} pairs of {texts:,} different texts, and keep "
            f"{texts // 1000:,} MB of vectors: allow more than {most:,} texts with --semantic-texts, audit a sample of "
            "the file, or look for shared characters with --near"
        )


def embed(texts: Sequence[str], words: WordVectors) -> Vectors:
    """The vectors of N texts: shape (N, D), each of length 1, or 0 for a text without any word."""
    made = np.zeros((len(texts), words.vectors.shape[1]), np.float32)
    start = 0
    for part in parts_of(texts, characters=_CHARACTERS):
        # half of a surrogate pair is no text that a tokenizer takes
        part = [text.encode("utf-8", "replace").decode("utf-8") for text in part]
        ids = [found.ids for found in words.tokenizer.encode_batch_fast(part, add_special_tokens=False)]
        pointers = np.append(0, np.cumsum([len(one) for one in ids]))
        flat = np.fromiter((piece for one in ids for piece in one), np.int64, int(pointers[-1]))
        counts = sparse.csr_array((np.ones(len(flat)), flat, pointers), shape=(len(part), len(words.vectors)))
        counts.sum_duplicates()  # sorted: the same words in another order give the same bits
        sums = counts @ words.vectors
        lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))
        made[start : start + len(part)] = sums / np.where(lengths > 0.0, lengths, 1.0)[:, None]
        start += len(part)
    return made


def cosines(vectors: Vectors, first: IntArray, second: IntArray) -> FloatArray:
    """The cosines of pairs of rows, shape (M,), at most 1; 0 where a vector is 0."""
    parts = []
    for start in range(0, len(first), _CHUNK):
        a = vectors[first[start : start + _CHUNK]].astype(np.float64)
        b = vectors[second[start : start + _CHUNK]].astype(np.float64)
        lengths = np.sqrt(np.einsum("ij,ij->i", a, a) * np.einsum("ij,ij->i", b, b))
        products = np.einsum("ij,ij->i", a, b)
        parts.append(np.minimum(np.divide(products, lengths, out=np.zeros(len(a)), where=lengths > 0.0), 1.0))
    return np.concatenate(parts) if parts else np.zeros(0)


def semantic_pairs(vectors: Vectors, *, threshold: float, most: int = 5_000_000) -> Pairs:
    """The pairs of texts whose vectors have a cosine of at least ``threshold``: all of them, each compared exactly.

    The time grows with the square of the number of texts; see :func:`check_texts`.

    Parameters
    ----------
    vectors:
        Of N different texts, shape (N, D), of length 1 or 0.
    threshold:
        The least cosine, above 0 and at most 1.
    most:
        The most pairs that may be found.

    Raises
    ------
    ArgumentError
        The threshold is out of range, or more pairs are found than was allowed.
    """
    check_threshold(threshold)
    n = len(vectors)
    found, total = [], 0
    for row, column, tile in _tiles(vectors):
        close = tile >= np.float32(threshold - _SLACK)
        if column < row + len(tile):  # each pair once, none of a text with itself
            close &= np.arange(tile.shape[1])[None, :] + column > np.arange(len(tile))[:, None] + row
        total += int(np.count_nonzero(close))
        if total > most:
            raise ArgumentError(
                f"--semantic finds more than {most:,} pairs: ask for a higher cosine, or allow more with --near-pairs"
            )
        if close.any():
            i, j = np.nonzero(close)
            found.append((i + row, j + column))
    first, second = (
        (np.concatenate(side).astype(np.int64) for side in zip(*found, strict=True))
        if found
        else (np.zeros(0, np.int64), np.zeros(0, np.int64))
    )
    similarity = cosines(vectors, first, second)
    kept = similarity >= threshold - 1e-12
    first, second, similarity = first[kept], second[kept], similarity[kept]
    order = np.lexsort((second, first))
    return Pairs(
        first=first[order],
        second=second[order],
        similarity=similarity[order],
        candidates=n * (n - 1) // 2,
        sampled=False,
    )


def background(vectors: Vectors, *, seed: int = 0) -> float | None:
    """The cosine that one pair in a hundred exceeds among texts taken at random; None for fewer than two texts."""
    n = len(vectors)
    if n < 2:
        return None
    rng = np.random.default_rng(seed)
    first = rng.integers(n, size=_RANDOM)
    second = (first + rng.integers(1, n, size=_RANDOM)) % n
    return float(np.quantile(cosines(vectors, first, second), 1.0 - _ABOVE))


def _tiles(vectors: Vectors) -> Iterator[tuple[int, int, Vectors]]:
    """The products of rows with rows: first row, first column and the tile, those on and above the diagonal."""
    for row in range(0, len(vectors), _ROWS):
        for column in range(row, len(vectors), _COLUMNS):
            yield row, column, vectors[row : row + _ROWS] @ vectors[column : column + _COLUMNS].T
