"""Count patterns: the collapsed form holds exactly what the rows held."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from audit.errors import ArgumentError
from audit.patterns import CountPatterns
from tests.naive import Table, disagreeing_pairs, item_disagreement, tables


def test_d_of_one_item() -> None:
    # two labels of class a, one of b: of the 3 pairs ab, ab, aa two differ; 1 - (2*1 + 1*0)/(3*2) = 2/3
    assert CountPatterns.from_counts([[2, 1]]).disagreement.tolist() == [pytest.approx(2 / 3, abs=1e-15)]
    # 3 + 3 labels: 15 pairs, 3 + 3 agree; 1 - (6 + 6)/30 = .6
    assert CountPatterns.from_counts([[3, 3]]).disagreement.tolist() == [pytest.approx(0.6, abs=1e-15)]


def test_equal_rows_become_one_pattern() -> None:
    found = CountPatterns.from_counts([[2, 0], [1, 1], [2, 0], [0, 1]], items=[3, 1, 4, 5])
    assert found.counts.toarray().tolist() == [[2, 0], [1, 1], [0, 1]]
    assert found.items.tolist() == [7, 1, 5]
    assert found.item_total == 13
    assert found.classes == ("0", "1")


def test_a_single_label_has_no_d() -> None:
    found = CountPatterns.from_counts([[0, 0], [1, 0], [1, 1]])
    assert [math.isnan(d) for d in found.disagreement] == [True, True, False]
    assert found.repeated.counts.toarray().tolist() == [[1, 1]]


def test_patterns_of_no_items_are_not_repeated() -> None:
    found = CountPatterns.from_counts([[2, 0], [1, 1]], items=[0, 2])
    assert found.repeated.items.tolist() == [2]


def test_nothing_at_all() -> None:
    found = CountPatterns.from_counts(np.zeros((0, 3), np.int64))
    assert (found.item_total, found.class_count, found.repeated.item_total) == (0, 3, 0)


def test_a_giant_group_is_half_a_million_pairs() -> None:
    found = CountPatterns.from_counts([[999, 1]])
    assert found.pairs.tolist() == [499_500]  # 1000 * 999 / 2
    assert found.agreeing_pairs.tolist() == [498_501]  # 999 * 998 / 2
    assert found.disagreement[0] == pytest.approx(999 / 499_500, abs=1e-15)


def test_a_thousand_classes_stay_sparse() -> None:
    rng = np.random.default_rng(5)
    pairs = rng.integers(1_000, size=(2_000, 2))
    table = sparse.coo_array(
        (np.ones(4_000), (np.repeat(np.arange(2_000), 2), pairs.ravel())), shape=(2_000, 1_000)
    )
    found = CountPatterns.from_counts(table)
    assert found.class_count == 1_000
    assert found.counts.nnz <= 4_000
    conflicts = int((pairs[:, 0] != pairs[:, 1]).sum())
    assert found.disagreement @ found.items == conflicts


@given(tables())
def test_patterns_equal_rows_equal_plain_python(table: Table) -> None:
    rows = [[int(n) for n in row] for row in table]
    found = CountPatterns.from_counts(table)
    assert found.item_total == len(rows)
    assert len({tuple(row) for row in rows}) == len(found.items), "each distinct row once"
    by_row = {tuple(row): k for k, row in enumerate(found.counts.toarray().tolist())}
    for row in rows:
        here = by_row[tuple(row)]
        differ, pairs = disagreeing_pairs(row)
        assert found.sizes[here] == sum(row)
        assert (found.pairs[here], found.pairs[here] - found.agreeing_pairs[here]) == (pairs, differ)
        d = item_disagreement(row)
        if d is None:
            assert math.isnan(found.disagreement[here])
        else:
            assert found.disagreement[here] == pytest.approx(float(d), abs=1e-15)
            n = np.array(row, float)  # the formula of the design, on the dense row
            dense = 1 - (n @ (n - 1)) / (n.sum() * (n.sum() - 1))
            assert found.disagreement[here] == pytest.approx(dense, abs=1e-15)


@given(tables(), st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(table: Table, random: object) -> None:
    order = list(range(len(table)))
    random.shuffle(order)  # type: ignore[attr-defined]

    def content(counts: Table) -> list[tuple[list[int], int]]:
        found = CountPatterns.from_counts(counts)
        return sorted(zip(found.counts.toarray().tolist(), found.items.tolist(), strict=True))

    assert content(table) == content(table[order])


@given(tables())
def test_triples_give_the_same(table: Table) -> None:
    row, column = np.nonzero(table)
    made = CountPatterns.from_triples(
        row, column, table[row, column], items=np.ones(len(table), np.int64), classes=["x"] * table.shape[1]
    )
    assert made.counts.toarray().tolist() == table.tolist()
    assert made.sizes.tolist() == table.sum(axis=1).tolist()


@pytest.mark.parametrize(
    ("counts", "more", "says"),
    [
        ([[1, -1]], {}, "whole numbers"),
        ([[1, 0.5]], {}, "whole numbers"),
        ([[1, math.inf]], {}, "whole numbers"),
        ([[1, math.nan]], {}, "whole numbers"),
        ([1, 2], {}, "one row per item"),
        ([[1, 1]], {"classes": ["a"]}, "one name per column"),
        ([[1, 1]], {"items": [1, 2]}, "per row of counts"),
        ([[1, 1]], {"items": [-1]}, "per row of counts"),
    ],
)
def test_counts_that_cannot_be(counts: object, more: dict[str, list[object]], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        CountPatterns.from_counts(counts, **more)  # type: ignore[arg-type]
