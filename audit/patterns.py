"""Count patterns: what every estimate is computed from.

A repeated item with K declared classes is a row of label counts (n_1 ... n_K). Real data hold few distinct
rows, many times over, so the statistics work on the distinct rows ("patterns") and how many items have each.
A million groups is then a table of a few dozen lines, and a bootstrap over items is one multinomial draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from audit.errors import ArgumentError

__all__ = ["CountPatterns", "FloatArray", "IntArray", "PairContrast"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CountPatterns:
    """Distinct rows of label counts and the number of items that have each.

    Parameters
    ----------
    counts:
        Shape (P, K): how often each of the K declared classes was given. Sparse (CSR), non-negative integers.
    items:
        Shape (P,): how many items have this row of counts.
    classes:
        The K declared classes, in the order of the columns.
    """

    counts: sparse.csr_array
    items: IntArray
    classes: tuple[str, ...]

    @classmethod
    def from_counts(
        cls,
        counts: Any,
        *,
        items: Sequence[int] | IntArray | None = None,
        classes: Iterable[str] | None = None,
    ) -> CountPatterns:
        """Build from any (N, K) table of counts; equal rows are collapsed.

        Raises
        ------
        ArgumentError
            When counts are negative, not whole, or the shapes do not fit.
        """
        table = sparse.csr_array(counts)
        if table.ndim != 2:
            raise ArgumentError("counts must be a table with one row per item and one column per class")
        if table.nnz and not np.all(
            np.isfinite(table.data) & (table.data >= 0) & (table.data == np.floor(table.data))
        ):
            raise ArgumentError("counts must be whole numbers of at least 0")
        rows, columns = (int(n) for n in table.shape)
        names = (
            tuple(str(c) for c in classes) if classes is not None else tuple(str(k) for k in range(columns))
        )
        if len(names) != columns:
            raise ArgumentError(
                f"{columns} columns of counts but {len(names)} class names: give one name per column"
            )
        weights = np.ones(rows, np.int64) if items is None else np.asarray(items, np.int64)
        if weights.shape != (rows,) or np.any(weights < 0):
            raise ArgumentError("items must hold one non-negative whole number per row of counts")
        return cls(*_collapse(table.astype(np.int64), weights), names)

    @classmethod
    def from_triples(
        cls, pattern: IntArray, label: IntArray, count: IntArray, *, items: IntArray, classes: Sequence[str]
    ) -> CountPatterns:
        """Build from (pattern, label, count) triples, as a database hands them over.

        ``pattern`` runs over 0 ... P-1 and ``label`` over 0 ... K-1; ``items`` has length P.
        """
        table = sparse.coo_array((count, (pattern, label)), shape=(len(items), len(classes)))
        return cls(table.tocsr(), np.asarray(items, np.int64), tuple(classes))

    @cached_property
    def sizes(self) -> IntArray:
        """Labels per item, n = sum of n_k, shape (P,)."""
        return np.asarray(self.counts.sum(axis=1), np.int64).ravel()

    @cached_property
    def agreeing_pairs(self) -> IntArray:
        """Pairs of equal labels within an item, sum of n_k(n_k - 1)/2, shape (P,)."""
        squares = np.asarray(self.counts.power(2).sum(axis=1), np.int64).ravel()
        return np.asarray((squares - self.sizes) // 2, np.int64)

    @cached_property
    def pairs(self) -> IntArray:
        """Pairs of labels within an item, n(n - 1)/2, shape (P,)."""
        return self.sizes * (self.sizes - 1) // 2

    @cached_property
    def disagreement(self) -> FloatArray:
        """d_i = 1 - sum n_k(n_k - 1) / (n(n - 1)) of each pattern, shape (P,); NaN where n < 2.

        The unbiased estimate of 1 - sum p_ik^2 (Simpson 1949), the chance that two fresh labels differ.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(1.0 - self.agreeing_pairs / self.pairs, np.float64)

    @property
    def class_count(self) -> int:
        """K, the number of declared classes."""
        return len(self.classes)

    @cached_property
    def item_total(self) -> int:
        """Number of items, once each."""
        return int(self.items.sum())

    @cached_property
    def repeated(self) -> CountPatterns:
        """The same without the items that have fewer than two labels."""
        return self.select((self.sizes >= 2) & (self.items > 0))

    def select(self, mask: npt.NDArray[np.bool_]) -> CountPatterns:
        """The patterns where ``mask`` (shape (P,)) is true."""
        return CountPatterns(self.counts[np.flatnonzero(mask)], self.items[mask], self.classes)


@dataclass(frozen=True, kw_only=True, eq=False)
class PairContrast:
    """Pairs of labels within items, split by whether the two rows share a value of some column.

    All arrays have shape (P,): for each distinct pattern the pairs inside one value and across values, how many
    of each disagree, and the number of items that have the pattern.
    """

    inside_pairs: IntArray
    inside_conflicts: IntArray
    outside_pairs: IntArray
    outside_conflicts: IntArray
    items: IntArray


def _collapse(table: sparse.csr_array, items: IntArray) -> tuple[sparse.csr_array, IntArray]:
    """Merge equal rows of a canonical CSR table and add up their items."""
    table.sum_duplicates()
    table.eliminate_zeros()
    index: dict[bytes, int] = {}
    first: list[int] = []
    totals: list[int] = []
    for row, (start, stop) in enumerate(zip(table.indptr[:-1], table.indptr[1:], strict=True)):
        key = table.indices[start:stop].tobytes() + b"|" + table.data[start:stop].tobytes()
        slot = index.setdefault(key, len(first))
        if slot == len(first):
            first.append(row)
            totals.append(0)
        totals[slot] += int(items[row])
    return table[np.asarray(first, np.int64)], np.asarray(totals, np.int64)
