"""Which columns are meant: taken as named, guessed with a reason, or asked for."""

from pathlib import Path
from typing import Any

import pytest

from audit.columns import check_columns, guess
from audit.errors import ArgumentError, ColumnError
from audit.reading import open_table


def columns_of(**columns: list[Any]) -> Any:
    import pandas as pd

    return pd.DataFrame({name: [str(cell) for cell in cells] for name, cells in columns.items()})


LONG = [f"The pump in hall {i} leaked oil over night" for i in range(12)]
IDS = list(range(12))
TWICE = [i // 2 for i in IDS]
BITS = [i % 2 for i in IDS]

GUESSED: dict[str, tuple[dict[str, list[Any]], tuple[str, ...], str, tuple[str, ...]]] = {
    "by name": ({"text": LONG, "label": BITS}, ("text",), "label", ("column text, for its name", "column label")),
    "in any case": ({"ID": IDS, "Sentence ": LONG, "Class": BITS}, ("Sentence",), "Class", ("Sentence", "Class")),
    "label before gold": ({"text": LONG, "gold": BITS, "label": BITS}, ("text",), "label", ("label",)),
    "part of a name": ({"text": LONG, "human_label": BITS}, ("text",), "human_label", ("human_label",)),
    "long text": (
        {"was_meldet": LONG, "wert": BITS, "id": IDS}, ("was_meldet",), "wert",
        ("long texts", "few values (2 in the first rows)"),
    ),
    "an id that repeats": ({"task_id": TWICE, "label": BITS}, ("task_id",), "label", ("repeated values",)),
    "a text and an id": (
        {"text": LONG, "task_id": TWICE, "label": BITS}, ("text",), "label", ("--item task_id would group by that id",),
    ),
    "tags, not the column of fewest values": (
        {"ticket": TWICE, "id": TWICE, "tags": [f"a|{i % 5}" for i in IDS], "pass": BITS}, ("id",), "tags",
        ("column tags, for its name",),
    ),
    "others are named": (
        {"id": TWICE, "wert": BITS, "topics_de": [f"t{i // 2}" for i in IDS]}, ("id",), "wert",
        ("--label may also mean topics_de, whose values repeat",),
    ),
    "the roles of others are left alone": (
        {"item": TWICE, "worker": [i % 3 for i in IDS], "split": BITS, "vote": BITS}, ("item",), "vote", ("item",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", GUESSED)
def test_guesses(case: str) -> None:
    data, item, label, words = GUESSED[case]
    with open_table(columns_of(**data)) as table:
        chosen = guess(table)
    assert (chosen.item, chosen.label) == (item, label)
    for word in words:
        assert word in " ".join(chosen.reasons)


ASKED: dict[str, tuple[dict[str, list[Any]], dict[str, Any], tuple[str, ...]]] = {
    "two texts": (
        {"question": LONG, "prompt": LONG, "label": BITS}, {}, ("question, prompt", "--item question,prompt"),
    ),
    "two labels": ({"text": LONG, "class": BITS, "category": BITS}, {}, ("class, category", "--label class")),
    "votes side by side": (
        {"text": LONG, "rater1": BITS, "rater2": BITS}, {}, ("--label", "--label-columns rater1,rater2"),
    ),
    "labels side by side": (
        {"text": LONG, "label_1": BITS, "label_2": BITS}, {}, ("--label-columns label_1,label_2",),
    ),
    "no label": ({"text": LONG, "other": IDS}, {}, ("no column is plainly the label", "--label", "text, other")),
    "no item": ({"a": IDS, "label": BITS}, {}, ("no column is plainly the item", "--item")),
    "ids that never repeat": ({"task_id": IDS, "label": BITS}, {}, ("no column is plainly the item",)),
    "a wrong item": (
        {"text": LONG, "label": BITS}, {"item": ["passage"]},
        ("no column 'passage' (--item)", "there are text, label", "did you mean --item text?"),
    ),
    "a wrong label": ({"text": LONG, "label": BITS}, {"label": "lable"}, ("did you mean --label label?",)),
    "a wrong case": ({"text": LONG, "label": BITS}, {"item": ["TEXT"]}, ("did you mean --item text?",)),
    "a wrong vote": (
        {"text": LONG, "vote1": BITS, "vote2": BITS}, {"label_columns": ["vote1", "vote3"]},
        ("no column 'vote3' (--label-columns)", "did you mean --label-columns vote"),
    ),
    "nothing like it": (
        {"a": IDS, "b": IDS}, {"item": ["passage"]}, ("no column 'passage' (--item); there are a, b",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ASKED)
def test_asks_when_in_doubt(case: str) -> None:
    data, options, words = ASKED[case]
    with open_table(columns_of(**data)) as table, pytest.raises(ColumnError) as raised:
        guess(table, **options)
    assert raised.value.exit_code == 2
    assert "\n" not in str(raised.value)
    for word in words:
        assert word in str(raised.value)


def test_what_is_named_is_not_guessed() -> None:
    with open_table(columns_of(text=LONG, title=LONG, label=BITS, gold=BITS)) as table:
        chosen = guess(table, item=["text", "title"], label="gold")
        assert (chosen.item, chosen.label, chosen.reasons) == (("text", "title"), "gold", ())
        half = guess(table, item=["title"])
        assert (half.item, half.label) == (("title",), "label")
        assert len(half.reasons) == 1
    with open_table(columns_of(text=LONG, body=BITS, label=BITS)) as table:
        assert guess(table, label="body").item == ("text",)


def test_the_wide_form_is_not_guessed() -> None:
    with open_table(columns_of(text=LONG, a=BITS, b=BITS)) as table:
        votes = guess(table, label_columns=["a", "b"])
        assert (votes.item, votes.label, votes.reasons) == ((), None, ())
        assert guess(table, item=["text"], counts=["a", "b"]).item == ("text",)
        for wrong in ({"label": "a", "counts": ["b"]}, {"label_columns": ["a"], "counts": ["b"]}):
            with pytest.raises(ArgumentError):
                guess(table, **wrong)
        with pytest.raises(ArgumentError, match="both item and label"):
            guess(table, item=["a"], label="a")


def test_hints_for_other_options() -> None:
    data = {"ID": IDS, "text": LONG, "label": BITS, "Worker Id": IDS, "split": BITS, "created_at": IDS}
    with open_table(columns_of(**data)) as table:
        chosen = guess(table)
    assert (chosen.row_id, chosen.annotator, chosen.split, chosen.time) == (
        "ID",
        "Worker Id",
        "split",
        "created_at",
    )


def test_checking_names_the_option() -> None:
    with open_table(columns_of(text=LONG, label=BITS)) as table:
        check_columns(table, ["text", "label"], option="--by")
        with pytest.raises(ColumnError, match=r"no column 'splt' \(--by\); there are text, label$"):
            check_columns(table, ["splt"], option="--by")


@pytest.mark.shared_data
def test_wrong_column_of_the_shared_cases(shared: Path) -> None:
    with open_table(shared / "cases/wrong_column.csv") as table, pytest.raises(ColumnError) as raised:
        guess(table, item=["passage"], label="label")
    for word in ("wrong_column.csv", "'passage'", "there are text, label", "--item text"):
        assert word in str(raised.value)


@pytest.mark.shared_data
def test_public_sets_are_understood(shared: Path) -> None:
    for name, item, label in (
        ("crowd/bluebird/label.csv", "item", "label"),
        ("causal_news/V1_dev_subtask1.csv", "text", "label"),
    ):
        with open_table(shared / "data" / name) as table:
            chosen = guess(table)
            assert (chosen.item, chosen.label) == ((item,), label)
    for name, words in (
        ("anaesthetists/table.csv", "--label-columns observer1_time1"),
        ("pandalm/pandalm_labels_wide.csv", "--label-columns annotator1,annotator2,annotator3"),
    ):
        with open_table(shared / "data" / name) as table, pytest.raises(ColumnError, match=words):
            guess(table)
