"""audit leak: texts that are alike, the test file without what leaks, and what the text form says."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from audit.errors import ArgumentError
from audit.leakage import find_leaks
from audit.render import render
from tests.command import run, write_csv

WORDS = [
    f"{a}{b}" for a in "mint sand coal fern rust pine dusk iron".split() for b in ("er", "ing", "ly", "ous")
]


def sentence(rng: np.random.Generator) -> str:
    return " ".join(rng.choice(WORDS, 14))


class Files:
    """200 texts to train on; 60 to test on: 6 equal but for case, 8 with one word another, the rest new."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(3)
        self.train = [sentence(rng) for _ in range(200)]
        near = []
        for text in self.train[6:14]:
            words = text.split()
            words[rng.integers(14)] = "quartz"
            near.append(" ".join(words))
        self.test = [text.upper() for text in self.train[:6]] + near + [sentence(rng) for _ in range(46)]
        self.one = write_csv(folder / "train.csv", ["id", "text"], list(enumerate(self.train)))
        self.two = write_csv(folder / "test.csv", ["id", "text"], list(enumerate(self.test)))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def shingles(text: str) -> set[str]:
    return {text[k : k + 5] for k in range(len(text) - 4)}


def alike(a: str, b: str) -> float:
    one, two = shingles(a), shingles(b)
    return len(one & two) / len(one | two)


# --- near --------------------------------------------------------------------------------------------------


def test_near_rows_are_those_of_all_pairs_by_hand(files: Files, tmp_path: Path) -> None:
    pytest.importorskip("rensa", reason="rensa is not installed (extra near)")
    out = tmp_path / "leaked.csv"
    found = find_leaks(files.one, files.two, item=["text"], near=0.7, out=out)
    best = {}
    for place, text in enumerate(files.test[6:], 7):
        score = [alike(text, other) for other in files.train]
        if max(score) >= 0.7:
            best[place] = (int(np.argmax(score)) + 1, max(score))
    assert len(best) >= 6
    assert found.near is not None
    assert (found.near.rows, found.near.items) == (len(best), len(best))
    assert {one.test_rows[0]: one.train_rows[0] for one in found.near.examples} == {
        place: row for place, (row, _) in best.items()
    }
    for one in found.near.examples:
        assert one.similarity == pytest.approx(best[one.test_rows[0]][1])
        assert one.train_item == (files.train[one.train_rows[0] - 1],)
    scores = [one.similarity for one in found.near.examples]
    assert scores == sorted(scores, reverse=True)
    rows = read(out)
    assert [int(row["test_row"]) for row in rows if row["match"] == "equal"] == [1, 2, 3, 4, 5, 6]
    near = [row for row in rows if row["match"] == "near"]
    assert {int(row["test_row"]): int(row["train_rows"]) for row in near} == {
        k: v for k, (v, _) in best.items()
    }
    assert all(row["train_text"] == files.train[int(row["train_rows"]) - 1] for row in rows)
    assert (found.leaked_rows, found.counted_rows) == (6, 6), "near rows are told apart"
    assert [alarm.code for alarm in found.alarms] == ["leaked", "near_leak"]


def test_near_rows_count_only_when_asked_to(files: Files, tmp_path: Path) -> None:
    pytest.importorskip("rensa", reason="rensa is not installed (extra near)")
    clean = tmp_path / "clean.csv"
    words = ("leak", files.one, files.two, "--item", "text", "--near", "0.7", "--fail-over", "0.15")
    assert run(*words).code == 0
    both = run(*words, "--count-near", "--clean-test", clean, "--format", "json")
    assert both.code == 1
    assert both.json["counted_rows"] == 6 + both.json["near"]["rows"]
    assert both.json["counted_share"] == pytest.approx(both.json["counted_rows"] / 60)
    gone = {row for one in both.json["near"]["examples"] for row in one["test_rows"]} | set(range(1, 7))
    assert read(clean) == [row for k, row in enumerate(read(files.two), 1) if k not in gone]


def test_a_near_text_that_is_repeated_counts_each_row_and_training_copies_none(tmp_path: Path) -> None:
    pytest.importorskip("rensa", reason="rensa is not installed (extra near)")
    text = "the quick brown fox jumps over the lazy dog by the river bank"
    train = pd.DataFrame({"text": [text, text + " now", "something else entirely, with other words in it"]})
    test = pd.DataFrame({"text": [text + " then", text + " THEN", "no such thing at all was ever seen here"]})
    found = find_leaks(train, test, item=["text"], near=0.8)
    assert found.near is not None
    assert (found.near.items, found.near.rows) == (1, 2)
    assert found.near.examples[0].test_rows == (1, 2)
    same = find_leaks(train, train, item=["text"], near=0.8)
    assert same.near is not None
    assert (same.leaked_rows, same.near.rows) == (3, 0), "what is equal is not near"
    assert (
        "no other test row is 0.8 alike or more to a training text, in their characters" in same.near.sentence
    )


def test_semantic_rows_are_told_apart(tmp_path: Path) -> None:
    pytest.importorskip("wordllama", reason="wordllama is not installed (extra semantic)")
    train = pd.DataFrame({"text": ["the dog bit the man", "profits rose by 3 percent", "a firm was fined"]})
    test = pd.DataFrame({"text": ["the man bit the dog", "the cat sat on the mat"]})
    found = find_leaks(train, test, item=["text"], semantic=0.95, out=tmp_path / "rows.csv")
    assert found.near is None
    assert found.semantic is not None
    assert (found.semantic.rows, found.semantic.examples[0].train_rows) == (1, (1,))
    assert read(tmp_path / "rows.csv")[0]["match"] == "semantic"
    assert found.semantic.background is not None
    assert found.semantic.background >= 0.95, "one pair in six is the pair itself"
    assert "nothing to go by" in found.semantic.sentence
    assert found.alarms == ()


# --- the test file without them ------------------------------------------------------------------------------


def test_the_clean_file_keeps_every_other_cell(tmp_path: Path) -> None:
    train = write_csv(tmp_path / "train.csv", ["text", "label"], [("A", "1"), ("unlabelled", "")])
    rows = [
        ("a ", "0", "x,y"),
        ("b", "", 'say "no"'),
        ("a", "", "z"),
        ("", "1", " kept "),
        ("unlabelled", "1", "line\nline"),
    ]
    test = write_csv(tmp_path / "test.csv", ["text", "label", "more"], rows)
    out = tmp_path / "clean.csv"
    ran = run("leak", train, test, "--item", "text", "--label", "label", "--clean-test", out)
    assert ran.code == 0, ran.err
    assert f"{out} is the test file without them: 3 rows, 2 left out." in " ".join(ran.out.split())
    # the third row has no label and is no test row, but its item is one to train on
    assert [tuple(row.values()) for row in read(out)] == [rows[1], rows[3], rows[4]]
    again = find_leaks(train, out, item=["text"], label="label")
    assert again.leaked_rows == 0


def test_outputs_never_take_the_place_of_an_input(files: Files) -> None:
    before = files.two.read_bytes()
    ran = run("leak", files.one, files.two, "--item", "text", "--clean-test", files.two)
    assert ran.code == 2
    assert files.two.read_bytes() == before
    with pytest.raises(ArgumentError, match="read or written already"):
        find_leaks(files.one, files.two, item=["text"], clean=files.one)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"near": 0.3}, "similarity from 0.5 to below 1"),
        ({"semantic": 1.5}, "above 0 and up to 1"),
        ({"count_near": True}, "--count-near counts what --near or --semantic finds"),
        ({"near": 0.8, "near_pairs": 0}, "--near-pairs"),
    ],
)
def test_options_out_of_range(files: Files, options: dict[str, Any], told: str) -> None:
    with pytest.raises(ArgumentError, match=told):
        find_leaks(files.one, files.two, item=["text"], **options)


# --- what is said --------------------------------------------------------------------------------------------


def test_the_caveat_stands_in_every_form(files: Files) -> None:
    pytest.importorskip("rensa", reason="rensa is not installed (extra near)")
    plain = find_leaks(files.one, files.two, item=["text"])
    looked = find_leaks(files.one, files.two, item=["text"], near=0.7)
    for form in ("text", "markdown", "html"):
        told = " ".join(re.sub(r"<.*?>", "", render(plain, form)).replace("`", "").split())  # type: ignore[arg-type]
        assert "Texts that are alike without being equal are not found: --near 0.85 looks for them." in told
        more = render(looked, form)  # type: ignore[arg-type]
        assert "are not found" not in more
        assert "Near texts may be other questions" in " ".join(more.split())
    page = render(looked, "markdown")
    assert looked.near is not None
    for one in looked.near.examples:
        assert one.item[0] in page
        assert f"{one.similarity:.3f}" in page
    assert all(len(line) <= 100 for line in looked.summary().splitlines())


def test_the_item_is_guessed_and_told(files: Files) -> None:
    ran = run("leak", files.one, files.two, "--format", "json")
    assert ran.code == 0, ran.err
    assert ran.json["notes"] == ["item: column text, for its name"]
    assert ran.json["leaked_rows"] == 6
    assert "item: column text, for its name" in run("leak", files.one, files.two).out
    assert "name --item COLUMNS" in run("leak", "-", files.two, stdin=b"text\nx\n").err
