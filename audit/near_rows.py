"""Every pair of alike texts as a row of a table: how alike, in which cluster, with the rows and labels of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from audit.near import Pairs
from audit.near_table import Labelled, clusters_of
from audit.results_near import Measure
from audit.writing import Cell, distinct

__all__ = ["pair_columns", "pair_rows"]


def pair_columns(item: Sequence[str]) -> tuple[str, ...]:
    """The columns of the table: those of the first text of a pair, then those of the other.

    A column of the data that is called as one of these gets an underscore.
    """
    first, other = (
        ("rows", *item, "labels"),
        ("other_rows", *(f"other_{name}" for name in item), "other_labels"),
    )
    return distinct(("measure", "similarity", "cluster", "differ", *first, *other))


def pair_rows(labelled: Labelled, pairs: Pairs, measure: Measure) -> Iterator[tuple[Cell, ...]]:
    """A row for each pair, the most alike first, with the columns of :func:`pair_columns`.

    ``differ`` is the chance that two labels, one of each text, differ; rows are counted from 1.
    """
    differ, clusters = labelled.differ(pairs), clusters_of(pairs.first, pairs.second, len(labelled.texts))
    order = np.lexsort((pairs.second, pairs.first, -pairs.similarity))
    names: dict[int, int] = {}
    for k in order.tolist():
        first, second = int(pairs.first[k]), int(pairs.second[k])
        cluster = names.setdefault(int(clusters[first]), len(names) + 1)
        yield (
            measure, round(float(pairs.similarity[k]), 6), cluster, round(float(differ[k]), 6),
            *_one(labelled, first), *_one(labelled, second),
        )  # fmt: skip


def _one(labelled: Labelled, text: int) -> tuple[Cell, ...]:
    rows = " ".join(map(str, labelled.rows[text]))
    return (rows, *labelled.given[text], " | ".join(labelled.labels(text)))
