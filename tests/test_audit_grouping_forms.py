"""Grouping: forms of tables, classes, degenerate tables, lengths and strata, and how the work is cut into parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from audit import grouping, grouping_repeats
from audit.errors import ArgumentError, ColumnError
from audit.grouping import Columns
from audit.reading import open_table
from tests.naive_groups import Cell, told, told_contrast
from tests.test_audit_grouping import grouped

TEXT = Columns(item=("text",), label="label")
PAIR = ("text", "label")


def long(*rows: tuple[Cell, ...], names: Sequence[str] = PAIR, columns: Columns = TEXT, **how: Any) -> Any:
    return grouped(rows, columns, names=names, **how)


# --- forms --------------------------------------------------------------------------------------------------


def test_votes_in_columns_make_each_row_an_item() -> None:
    rows = [("x", "a", "b", None), ("x", "a", None, " "), ("y", None, None, None), ("z", "b", "b", "b")]
    columns = Columns(label_columns=("v1", "v2", "v3"), by=("text",))
    with grouped(rows, columns, names=("text", "v1", "v2", "v3")) as repeats:
        assert told(repeats.patterns) == Counter({(("a", 1), ("b", 1)): 1, (("b", 3),): 1})
        assert (repeats.rows, repeats.missing_label, repeats.missing_item, repeats.items_total) == (
            4,
            1,
            0,
            3,
        )
        assert [int(n) for n in repeats.class_rows] == [2, 4]
        assert set(repeats.patterns_by("text")) == {"x", "z"}
        assert repeats.ladder(force=True) == ()
        assert repeats.without_copies() is None
        assert not len(repeats.contrast("__adjacent").items)
        assert not len(repeats.contrast("__extras").items)
        assert set(repeats.representation()) == {"class"}
        pairs = {(a, b): (int(n @ m), int(c @ m)) for a, b, n, c, m in repeats.annotator_pairs()}
        assert pairs == {("v1", "v2"): (2, 1), ("v1", "v3"): (1, 0), ("v2", "v3"): (1, 0)}
        (shown,) = repeats.conflicts(9)
        assert [(row.row, row.label, row.details["column"]) for row in shown.rows] == [
            (1, "a", "v1"),
            (1, "b", "v2"),
        ]


def test_votes_in_columns_with_an_item_are_pooled() -> None:
    rows = [("X", "a", "b"), ("x ", "a", None), ("y", "b", None), (None, "a", "b"), ("z", None, None)]
    columns = Columns(item=("text",), label_columns=("v1", "v2"))
    with grouped(rows, columns, names=("text", "v1", "v2")) as repeats:
        assert told(repeats.patterns) == Counter({(("a", 2), ("b", 1)): 1})
        assert (repeats.items_total, repeats.missing_item, repeats.missing_label) == (2, 1, 1)
        made = repeats.representation()
        assert made["class"].repeated.tolist() == [2, 1]
        assert made["class"].others.tolist() == [0, 1]
        assert [rung.items for rung in repeats.ladder()] == [1, 1, 1, 1]
        assert [rung.rows for rung in repeats.ladder()] == [2, 2, 3, 3]


def test_numbers_of_votes() -> None:
    rows = [("3", "2.0"), ("0", None), ("1", " 1 "), ("5", "")]
    columns = Columns(counts=("yes", "no"))
    with grouped(rows, columns, names=("yes", "no")) as repeats:
        assert repeats.classes == ("no", "yes")
        assert told(repeats.patterns) == Counter(
            {(("no", 2), ("yes", 3)): 1, (("no", 1), ("yes", 1)): 1, (("yes", 5),): 1}
        )
        assert (repeats.repeated_rows, repeats.missing_label, repeats.items_total) == (12, 1, 3)
        assert [c.counts for c in repeats.conflicts()] == [{"no": 1, "yes": 1}, {"no": 2, "yes": 3}]
        assert repeats.conflicts()[1].rows[1].details == {"votes": "3"}


def test_classes_without_votes_are_declared_by_their_column() -> None:
    with grouped([("2", "0")], Columns(counts=("yes", "no")), names=("yes", "no")) as repeats:
        assert repeats.classes == ("no", "yes")
        assert repeats.class_rows.tolist() == [0, 2]


@pytest.mark.parametrize("cell", ["2.5", "-1", "x", "nan", "inf", "1e12"])
def test_numbers_of_votes_that_are_none(cell: str) -> None:
    with (
        pytest.raises(ArgumentError, match=r"row 2, column 'no': .* is no number of votes"),
        grouped([("1", "1"), ("1", cell)], Columns(counts=("yes", "no")), names=("yes", "no")),
    ):
        pass


# --- classes ------------------------------------------------------------------------------------------------

SPELT = [("x", "Yes"), ("x", "yes "), ("y", "1"), ("y", "1.0"), ("z", "Yes"), ("z", "1"), ("q", "NA")]


def test_spellings_are_classes_of_their_own_unless_merged() -> None:
    with long(*SPELT) as repeats:
        assert repeats.classes == ("1", "1.0", "NA", "Yes", "yes ")
        assert told(repeats.patterns)[(("1", 1), ("1.0", 1))] == 1
    with long(*SPELT, merge_labels=True, missing=["NA"]) as repeats:
        assert repeats.classes == ("1", "Yes")
        assert repeats.class_rows.tolist() == [3, 3]
        assert repeats.missing_label == 1
        assert told(repeats.patterns) == Counter(
            {(("1", 2),): 1, (("Yes", 2),): 1, (("1", 1), ("Yes", 1)): 1}
        )


def test_declared_classes() -> None:
    with long(("x", "a"), ("x", "b"), classes=["c", "b", "a"]) as repeats:
        assert repeats.classes == ("a", "b", "c")
        assert repeats.patterns.class_count == 3
    with long(*SPELT, classes=["1.0", "yes ", "no"], merge_labels=True, missing=["NA"]) as repeats:
        assert repeats.classes == ("1.0", "no", "yes ")
        assert repeats.class_rows.tolist() == [3, 0, 3]


def test_labels_outside_the_declared_classes_are_named() -> None:
    with pytest.raises(ArgumentError, match=r"'b', 'c', 'd', 'e', 'f' and 1 more; .*--missing"):
        long(*(("x", label) for label in "abcdefg"), classes=["a"]).__enter__()
    with pytest.raises(ArgumentError, match="classes is empty"):
        long(("x", "a"), classes=[]).__enter__()


# --- columns and arguments ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "part"),
    [
        ({}, "name one of these"),
        ({"label": "label"}, "which rows are repeats"),
        ({"item": ("text",), "label": "label", "counts": ("n",)}, "name one of these"),
        ({"label_columns": ("a", "a")}, "'a' is named twice"),
        ({"item": ("text",), "label": "text"}, "'text' is named twice"),
    ],
)
def test_columns_that_contradict_each_other(columns: dict[str, Any], part: str) -> None:
    with pytest.raises(ArgumentError, match=part):
        Columns(**columns)


def test_a_column_that_is_not_there() -> None:
    with pytest.raises(ColumnError, match=r"no column 'who' \(annotator\); there are text, label"):
        long(("x", "a"), columns=Columns(item=("text",), label="label", annotator="who")).__enter__()


@pytest.mark.parametrize(
    ("how", "part"),
    [
        ({"normalise": "words"}, "choose one of none, space, case, punctuation"),
        ({"length_bins": 0}, "at least 1"),
        ({"one_per": "text"}, "'text' was not named"),
    ],
)
def test_arguments_out_of_range(how: dict[str, Any], part: str) -> None:
    with pytest.raises(ArgumentError, match=part):
        long(("x", "a"), **how).__enter__()


def test_copies_and_one_per_are_of_long_form() -> None:
    columns = Columns(label_columns=("text", "label"))
    for how in ({"drop_copies": True}, {"one_per": "text"}):
        with pytest.raises(ArgumentError, match="rows of one label each"):
            long(("x", "a"), columns=columns, **how).__enter__()


def test_questions_that_cannot_be_asked() -> None:
    with long(("x", "a"), ("x", "b")) as repeats:
        with pytest.raises(ArgumentError, match="'label' was not named"):
            repeats.patterns_by("label")
        with pytest.raises(ArgumentError, match="--time"):
            repeats.contrast("__minute")
        with pytest.raises(ArgumentError, match="no stratum"):
            repeats.strata("text")
        assert repeats.without_copies() is None  # no other column, no row id
        assert repeats.annotator_pairs() == []


# --- degenerate tables --------------------------------------------------------------------------------------


def test_no_repeats_and_no_labels() -> None:
    with long(("x", "a"), ("y", "b")) as repeats:
        assert repeats.patterns.item_total == 0
        assert repeats.patterns.classes == ("a", "b")
        assert repeats.conflicts() == []
        assert [rung.items for rung in repeats.ladder()] == [0, 0, 0, 0]
        assert repeats.representation()["length"].others.sum() == 2
    with long(("x", None), ("x", " ")) as repeats:
        assert (repeats.classes, repeats.missing_label, repeats.items_total) == ((), 2, 0)
        assert repeats.patterns.item_total == 0
        assert repeats.strata("__length") == {}


def test_a_giant_group_costs_no_pairs() -> None:
    rows = [("same", "ab"[k % 2], f"w{k % 3}") for k in range(100_000)] + [
        ("other", "a", "w0"),
        ("other", "a", "w1"),
    ]
    columns = Columns(item=("text",), label="label", annotator="who")
    with grouped(rows, columns, names=(*PAIR, "who")) as repeats:
        pairs = 100_000 * 99_999 // 2
        assert repeats.patterns.pairs.tolist() in ([pairs, 1], [1, pairs])
        contrast = repeats.contrast("who")
        inside = sum(n * (n - 1) // 2 for n in (33_334, 33_333, 33_333))
        assert told_contrast(contrast)[(0, 0, 1, 0)] == 1
        assert int(contrast.inside_pairs.max()) == inside
        assert int(contrast.outside_pairs.max()) == pairs - inside
        (conflict,) = repeats.conflicts()
        assert conflict.counts == {"a": 50_000, "b": 50_000}
        assert len(conflict.rows) == 100
        assert [row.row for row in conflict.rows] == list(range(1, 101))


def test_too_many_pairs_of_annotators_are_left_out_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("same", "a", f"w{k}") for k in range(10)]
    columns = Columns(item=("text",), label="label", annotator="who")
    with grouped(rows, columns, names=(*PAIR, "who")) as repeats:
        assert (len(repeats.annotator_pairs()), repeats.notes) == (45, ())
    monkeypatch.setattr(grouping_repeats, "_MOST_PAIRS", 54)
    with grouped(rows, columns, names=(*PAIR, "who")) as repeats:
        assert repeats.annotator_pairs() == []
        assert repeats.notes == ("annotators are not compared pair by pair: that would be 55 comparisons",)


# --- conflicts, lengths, strata -----------------------------------------------------------------------------


def test_conflicts_hardest_first() -> None:
    rows = [("Even", "a"), ("tie", "a"), ("tie", "b"), ("even", "b"), ("most", "a"), ("most", "a"), ("most", "b"),
            ("same", "a"), ("same", "a"), ("four", "a"), ("four", "b"), ("four", "c"), ("four", "d")]  # fmt: skip
    with long(*rows) as repeats:
        shown = repeats.conflicts(None)
        # d: four labels that all differ 1, as the two pairs, but with more labels; most 1 - 2/6
        assert [c.item for c in shown] == [("four",), ("Even",), ("tie",), ("most",)]
        assert [c.disagreement for c in shown] == pytest.approx([1.0, 1.0, 1.0, 2 / 3])
        assert [(row.row, row.label) for row in shown[1].rows] == [(1, "a"), (4, "b")]
        assert repeats.conflicts(2) == shown[:2]


def test_lengths_and_strata() -> None:
    rows = [("x" * n, "a", "train") for n in range(1, 21)] + [("x" * n, "b", "test") for n in (1, 2, 19)]
    columns = Columns(item=("text",), label="label", split="split")
    with grouped(rows, columns, names=(*PAIR, "split"), length_bins=4) as repeats:
        made = repeats.representation()
        assert made["length"].categories == ("1-5", "6-10", "11-15", "16-20")
        assert made["length"].repeated.tolist() == [2, 0, 0, 1]
        assert made["length"].others.tolist() == [3, 5, 5, 4]
        assert {v: p.item_total for v, p in repeats.patterns_by("__length").items()} == {"1-5": 2, "16-20": 1}
        assert repeats.strata("__length") == dict.fromkeys(made["length"].categories, 0.25)
        assert made["split"].categories == ("train",)  # items are where their first row is
        assert (made["split"].repeated.tolist(), made["split"].others.tolist()) == ([3], [17])
        assert repeats.strata("split") == {"train": 1.0}
        assert (made["class"].repeated.tolist(), made["class"].others.tolist()) == ([3, 3], [17, 0])


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("2024-05-01 10:00:01", "2024-05-01T10:00:59.5", True), ("2024-05-01 10:00", "2024-05-01 10:01", False),
        ("2024-05-01T12:00:00+02:00", "2024-05-01T10:00:30Z", True), ("1714557600", "1714557659", True),
        ("1714557600", "1714557660", False), ("1714557600123", "1714557659999", True),
        ("1714557600.5", "1714557601", True), ("10:00:01", "10:00:59", True),
        ("1/5/2024 9:07:10 PM", "1/5/2024 9:07:59 PM", True), ("1/5/2024 9:07:10 PM", "1/5/2024 9:07:10 AM", False),
        ("01.05.2024 10:00", "01.05.2024 10:00", True), ("2024-05-01", "2024-05-01", None), ("soon", "soon", None),
        ("", "", None), ("12", "12", None),
    ],
)  # fmt: skip
def test_minutes(first: str, second: str, same: bool | None) -> None:
    rows = [("x", "a", first), ("x", "b", second)]
    with grouped(rows, Columns(item=("text",), label="label", time="t"), names=(*PAIR, "t")) as repeats:
        expected = {None: Counter(), True: Counter({(1, 1, 0, 0): 1}), False: Counter({(0, 0, 1, 1): 1})}
        assert told_contrast(repeats.contrast("__minute")) == expected[same]


# --- how the work is cut ------------------------------------------------------------------------------------


def many(rng: np.random.Generator, text: Any) -> list[tuple[str, str, str]]:
    numbers = rng.permutation(np.append(np.arange(3_000), rng.integers(0, 3_000, 300)))
    return [(text(int(n)), f"e{n % 7}", "ab"[int(n) % 2]) for n in numbers]


@pytest.mark.parametrize(
    "text",
    [
        lambda n: f"{n} is the number",
        lambda n: f"a beginning that all the texts share, and then the number {n}",
        lambda n: f"{'a very long beginning ' * 10}{n}",
        lambda n: f"é{n}",
    ],
    ids=["told apart early", "late", "very late", "no ASCII"],
)
@pytest.mark.parametrize("batch", [1 << 24, 700])
def test_any_key_and_any_batch_give_the_same_groups(
    text: Any, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouping, "_BATCH", batch)
    rows = many(np.random.default_rng(5), text)
    sizes = Counter(Counter(row[:2] for row in rows).values())
    columns = Columns(item=("text", "entity"), label="label")
    with grouped(rows, columns, names=("text", "entity", "label")) as repeats:
        found: Counter[int] = Counter()
        for size, items in zip(repeats.patterns.sizes, repeats.patterns.items, strict=True):
            found[int(size)] += int(items)
        assert found == Counter({n: m for n, m in sizes.items() if n > 1})
        assert repeats.items_total == 3_000


def test_two_audits_of_one_table_do_not_meet() -> None:
    frame = pd.DataFrame([("x", "a"), ("X", "b")], columns=list(PAIR))
    with open_table(frame) as table:
        first = grouping.group(table, TEXT, normalise="none")
        second = grouping.group(table, TEXT)
        assert (first.patterns.item_total, second.patterns.item_total) == (0, 1)
