"""Test texts that are alike a training text without being equal to it: by their characters, or by their words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from audit.grouping_files import GroupedFiles
from audit.intervals import clopper_pearson
from audit.leakage_results import NearLeak, NearLeakedItem
from audit.near_search import joined_texts, search
from audit.patterns import IntArray
from audit.results import Estimate
from audit.results_near import Measure

__all__ = ["NearRow", "find_near_leaks", "rows_of"]


@dataclass(frozen=True, kw_only=True)
class NearRow:
    """A near test item as the list of leaked rows has it: its group, that of the training item, and how alike."""

    test: int
    train: int
    similarity: float
    measure: Measure


def find_near_leaks(
    files: GroupedFiles, width: int, *, near: float | None, semantic: float | None, most: int, most_texts: int,
    show: int, level: float, seed: int,
) -> tuple[NearLeak | None, NearLeak | None, list[NearRow]]:  # fmt: skip
    """What ``near`` (Jaccard similarity of runs of five characters) and ``semantic`` (cosine of words) find.

    ``width`` columns make an item; ``most`` pairs and ``most_texts`` texts are looked at. The last result has each test
    item once for each search, with the training item that it is most alike.

    Raises
    ------
    ArgumentError, MissingExtraError
        A threshold is out of range, there is too much to look at, or the extra is not installed.
    """
    if near is None and semantic is None:
        return None, None, []
    groups, texts, in_train = _texts(files, width)
    both: list[NearLeak | None] = []
    rows: list[NearRow] = []
    searches: tuple[tuple[Measure, float | None], ...] = (("jaccard", near), ("cosine", semantic))
    for measure, threshold in searches:
        if threshold is None:
            both.append(None)
            continue
        alike = search(
            measure, texts, threshold=threshold, most=most, most_texts=most_texts, seed=seed, across=in_train
        )
        pairs = alike.pairs
        across = in_train[pairs.first] != in_train[pairs.second]
        first, second, similarity = pairs.first[across], pairs.second[across], pairs.similarity[across]
        train, test = np.where(in_train[first], first, second), np.where(in_train[first], second, first)
        order = np.lexsort((train, -similarity, test))
        best = order[
            np.unique(test[order], return_index=True)[1]
        ]  # of each test text the most alike training text
        best = best[np.lexsort((groups[test[best]], -similarity[best]))]
        found = [
            NearRow(test=int(groups[test[k]]), train=int(groups[train[k]]), similarity=float(similarity[k]),
                    measure=measure)
            for k in best.tolist()
        ]  # fmt: skip
        count = rows_of(files, [row.test for row in found])
        total = files.labelled[1]
        low, high = clopper_pearson(count, total, level=level) if total else (None, None)
        both.append(NearLeak(
            measure=measure, model=alike.model, threshold=threshold,
            background=alike.background, rows=count, items=len(found), candidates=pairs.candidates, recall=alike.recall,
            sampled=pairs.sampled,
            share=Estimate(estimate=count / total if total else None, low=low, high=high, method="Clopper-Pearson"),
            examples=tuple(_example(files, width, row) for row in found[:show]),
        ))  # fmt: skip
        rows += found
    return both[0], both[1], rows


def _texts(files: GroupedFiles, width: int) -> tuple[IntArray, list[str], IntArray]:
    """Groups, normal forms, and whether the training file has the text (1) or the test file alone (0)."""
    found = files.con.execute(
        f"SELECT g, any_value({joined_texts(width)}), max((side = 'first')::INT) FROM votes JOIN grouped USING (r, g) "
        "GROUP BY g ORDER BY g"
    ).fetchall()
    groups, in_train = (np.array([row[place] for row in found], np.int64) for place in (0, 2))
    return groups, [row[1] for row in found], in_train


def rows_of(files: GroupedFiles, groups: Sequence[int]) -> int:
    """How many test rows have an item of these groups."""
    return int(
        files.con.execute(
            "SELECT count(*) FROM votes WHERE side = 'second' AND g IN (SELECT unnest(?::BIGINT[]))",
            [list(groups)],
        ).fetchall()[0][0]
    )


def _example(files: GroupedFiles, width: int, row: NearRow) -> NearLeakedItem:
    names = ", ".join(f"coalesce(any_value(t{k}), '')" for k in range(width))

    def side(name: str, group: int) -> tuple[tuple[str, ...], tuple[int, ...]]:
        (found,) = files.con.execute(
            f"SELECT {names}, list(row + 1 ORDER BY row) FROM votes JOIN given USING (side, row, label) "
            "WHERE side = ? AND g = ?", [name, group],
        ).fetchall()  # fmt: skip
        return tuple(found[:width]), tuple(found[width])

    (test, test_rows), (train, train_rows) = side("second", row.test), side("first", row.train)
    return NearLeakedItem(
        similarity=row.similarity, item=test, train_item=train, test_rows=test_rows, train_rows=train_rows
    )
