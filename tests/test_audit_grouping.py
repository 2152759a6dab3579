"""Grouping against plain Python, row by row; the forms of tables, what is left out, and what is asked of repeats."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.grouping import Columns, Repeats, group
from audit.normalise import LEVELS
from audit.reading import open_table
from tests.naive_groups import (
    Cell,
    Row,
    contrasted,
    counted,
    first_of,
    groups,
    has_item,
    has_label,
    told,
    told_contrast,
)

NAMES = ("part", "text", "label", "id", "who", "when", "split")
LONG = Columns(
    item=("text", "part"),
    label="label",
    row_id="id",
    annotator="who",
    time="when",
    split="split",
    by=("split",),
)


@contextmanager
def grouped(
    rows: Sequence[Sequence[Cell]], columns: Columns, *, names: Sequence[str] = NAMES, **how: Any
) -> Iterator[Repeats]:
    frame = pd.DataFrame(list(rows), columns=list(names), dtype=object)
    with open_table(frame) as table:
        yield group(table, columns, **how)


TEXTS = st.sampled_from([
    "one", "One ", "ONE", " o\u200bne", "café bar", "cafe\u0301  bar", "CAFÉ\xa0BAR", "two, or", "two or!", "?", "!",
    "a rather long text that ends in x", "a rather long text that  ends in X", "a rather long text that ends in y",
    " ", "\u3000\t", None,
])  # fmt: skip
LABELS = st.sampled_from(["a", "a", "b", "c", "A ", "1", "1.0", "NA", " ", None])
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["1", "1", "1 ", "2", None]), TEXTS, LABELS,
        st.sampled_from(["i1", "i2", "i3", "i4", None]), st.sampled_from(["w1", "w2", "w3", None]),
        st.sampled_from(["2024-05-01 10:00:01", "2024-05-01 10:00:59", "2024-05-01T10:01:00", None]),
        st.sampled_from(["train", "test", None]),
    ),
    min_size=1,
    max_size=25,
)  # fmt: skip


def as_rows(cells: Sequence[Sequence[Cell]]) -> list[Row]:
    return [
        Row(place, (row[1], row[0]), row[2], dict(zip(NAMES, row, strict=True)))
        for place, row in enumerate(cells)
    ]


def by_cell(name: str) -> Any:
    def same(a: Row, b: Row) -> bool | None:
        first, second = a.more[name], b.more[name]
        return None if first is None or second is None else first == second

    return same


def in_one_minute(a: Row, b: Row) -> bool | None:
    first, second = a.more["when"], b.more["when"]
    return None if first is None or second is None else first[14:16] == second[14:16]


def all_but_item_and_label(row: Row) -> tuple[Cell, ...]:
    return tuple(row.more[name] for name in NAMES[3:])


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=15)
@given(cells=ROWS)
def test_groups_as_plain_python_does(level: str, cells: list[tuple[Cell, ...]]) -> None:
    rows, missing = as_rows(cells), ("NA",)
    found = groups(rows, level, missing)
    with grouped(cells, LONG, normalise=level, missing=missing) as repeats:
        assert told(repeats.patterns) == counted(found)
        assert repeats.rows == len(rows)
        assert repeats.repeated_rows == sum(len(one) for one in found if len(one) > 1)
        assert repeats.items_total == len(found)
        assert repeats.missing_label == sum(not has_label(row, missing) for row in rows)
        assert repeats.missing_item == sum(not has_item(row) for row in rows)
        labels = Counter(row.label for row in rows if has_label(row, missing))
        assert repeats.classes == tuple(sorted(labels, key=str))
        assert dict(zip(repeats.classes, repeats.class_rows, strict=True)) == labels
        for rung in repeats.ladder():
            assert told(rung.patterns) == counted(groups(rows, rung.level, missing))
            assert rung.rows == sum(
                n for key, items in counted(groups(rows, rung.level, missing)).items() for _, n in key * items
            )


@settings(max_examples=25)
@given(cells=ROWS)
def test_answers_as_plain_python_does(cells: list[tuple[Cell, ...]]) -> None:
    found = groups(as_rows(cells), "case")
    with grouped(cells, LONG) as repeats:
        for name in ("split", "who"):
            parts = {
                value: counted(
                    [[row for row in one if (row.more[name] or "(empty)") == value] for one in found]
                )
                for value in {row.more[name] or "(empty)" for one in found for row in one}
            }
            assert {v: told(p) for v, p in repeats.patterns_by(name).items()} == {
                v: c for v, c in parts.items() if c
            }
        for name, same in {
            "split": by_cell("split"), "who": by_cell("who"), "id": by_cell("id"), "__minute": in_one_minute,
            "__adjacent": lambda a, b: abs(a.place - b.place) == 1,
            "__extras": lambda a, b: all_but_item_and_label(a) == all_but_item_and_label(b),
        }.items():  # fmt: skip
            assert told_contrast(repeats.contrast(name)) == contrasted(found, same), name
        pairs: Counter[tuple[str, str]] = Counter()
        conflicts: Counter[tuple[str, str]] = Counter()
        for one in found:
            for a, b in itertools.combinations(one, 2):
                if a.more["who"] and b.more["who"]:
                    key = (min(a.more["who"], b.more["who"]), max(a.more["who"], b.more["who"]))
                    pairs[key] += 1
                    conflicts[key] += a.label != b.label
        listed = repeats.annotator_pairs()
        summed = {(a, b): (int(n @ m), int(c @ m)) for a, b, n, c, m in listed}
        assert summed == {k: (n, conflicts[k]) for k, n in pairs.items()}
        assert [row.pairs @ row.items for row in listed] == sorted(pairs.values(), reverse=True)
        assert [row[:2] for row in repeats.annotator_pairs(1)] == [row[:2] for row in listed[:1]]


@settings(max_examples=25)
@given(cells=ROWS, by_id=st.booleans())
def test_copies_as_plain_python_does(cells: list[tuple[Cell, ...]], by_id: bool) -> None:
    columns = LONG if by_id else Columns(item=("text", "part"), label="label")

    def record(row: Row) -> Any:
        if by_id:
            return None if row.more["id"] is None else (row.label, row.more["id"])
        return tuple(row.more.values())

    found = groups(as_rows(cells), "case")
    left = [first_of(one, record) for one in found]
    gone = sum(map(len, found)) - sum(map(len, left))
    with grouped(cells, columns) as repeats:
        without = repeats.without_copies()
        assert without is not None
        assert (without.rows, told(without.patterns)) == (gone, counted(left))
        assert told(repeats.patterns) == counted(found)
        labels = repeats.class_rows.sum()
    with grouped(cells, columns, drop_copies=True) as repeats:
        assert told(repeats.patterns) == counted(left)
        assert repeats.class_rows.sum() == labels - gone
        assert repeats.items_total == len(left)
        assert [told(r.patterns) for r in repeats.ladder() if r.level == "case"] == [counted(left)]
        assert sum(map(sum, repeats.representation()["length"][1:])) == len(left)


@settings(max_examples=10)
@given(cells=ROWS)
def test_one_label_per_annotator(cells: list[tuple[Cell, ...]]) -> None:
    left = [first_of(one, lambda row: row.more["who"]) for one in groups(as_rows(cells), "case")]
    with grouped(cells, LONG, one_per="who") as repeats:
        assert told(repeats.patterns) == counted(left)
        assert repeats.items_total == len(left)
