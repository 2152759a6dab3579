"""What labels look like: sets of tags, ordered grades; and separators and empty cells of tags."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from audit.duplicates import audit_duplicates
from audit.errors import ArgumentError
from audit.label_grades import audit_ordinal
from audit.label_looks import likely_order, likely_separator
from audit.label_sets import audit_tags
from audit.patterns import CountPatterns
from tests.command import run
from tests.test_audit_label_kinds import ROOT, table

SETS: dict[str, tuple[str | None, list[str]]] = {
    "tags": ("|", ["a|b", "b|c", "a", "c|a"]),
    "spaces around": (",", ["a, b", "b", "c, a", "a", "b, c"]),
    "many of one tag": (";", ["crash", "login", "login;export", "crash;login", "export;crash;login"]),
    "the plainest of two": ("|", ["a/x|b", "b|c", "a/x", "c|a/x"]),
    "one pair of words": (None, ["yes/no", "yes", "no"]),
    "a hyphen": (None, ["risk-driver", "driver-risk", "risk", "driver"]),
    "cities": (
        None,
        ["New York, NY", "Albany, NY", "Boston, MA", "Salem, MA", "Portland, ME", "Portland, OR"],
    ),
    "a hierarchy": (None, ["sport/tennis", "sport/golf", "news/us", "news/eu", "sport", "news"]),
    "two facets": (None, ["pos/high", "pos/low", "neg/high", "neg/low"]),
    "decimal commas": (None, ["1,5", "2,5", "5,1", "1,2", "2,1"]),
    "lists in brackets": (None, ["['a', 'b']", "['b', 'c', 'a']", "['a', 'c', 'b']", "['c', 'b', 'a']"]),
    "classes": (None, ["good", "not good", "very good", "not very good"]),
    "nothing": (None, []),
}


@pytest.mark.parametrize("case", SETS)
def test_labels_that_look_like_sets(case: str) -> None:
    sep, names = SETS[case]
    assert likely_separator(names, [7] * len(names)) == sep


def test_a_few_sets_among_many_labels_are_no_hint() -> None:
    names = ["a|b", "b|c", "a|c", "a", "b"]
    assert likely_separator(names, [5, 5, 5, 40, 5]) == "|"
    assert likely_separator(names, [5, 5, 5, 80, 40]) is None


def pairs(names: Sequence[str], first: Sequence[int], second: Sequence[int]) -> tuple[CountPatterns, Any]:
    counts = np.zeros((len(first), len(names)), np.int64)
    for labels in (first, second):
        np.add.at(counts, (np.arange(len(first)), np.asarray(labels)), 1)
    ones = np.ones(len(first), np.int64)
    return CountPatterns.from_counts(counts, items=ones, classes=tuple(names)), counts.sum(axis=0)


def graded(names: Sequence[str], rng: np.random.Generator) -> tuple[CountPatterns, Any]:
    truth = rng.normal(0.55 * len(names), len(names) / 4, 400)
    drawn = [np.clip(np.round(truth + rng.normal(0, 0.6, 400)), 0, len(names) - 1).astype(int) for _ in "12"]
    return pairs(names, *drawn)


def coded(names: Sequence[str], rng: np.random.Generator) -> tuple[CountPatterns, Any]:
    """Classes without an order, the most frequent first, each mistaken for others of its own."""
    k = len(names)
    truth = rng.choice(k, 600, p=np.sort(rng.dirichlet(np.ones(k)))[::-1])
    rival = rng.dirichlet(np.full(k, 0.3), k)
    drawn = [[int(rng.choice(k, p=rival[t])) if rng.random() < 0.2 else int(t) for t in truth] for _ in "12"]
    return pairs(names, *drawn)


@pytest.mark.parametrize("count", [4, 5, 10])
def test_grades_are_told_from_codes(count: int) -> None:
    rng = np.random.default_rng(count)
    names = [str(k + 1) for k in range(count)]
    assert sum(likely_order(*graded(names, rng)) is not None for _ in range(20)) >= 18
    assert sum(likely_order(*coded(names, rng)) is not None for _ in range(40)) <= 3


def test_words_of_a_scale_and_what_is_never_a_grade() -> None:
    rng = np.random.default_rng(0)
    found = likely_order(*graded(["low", "medium", "high"], rng))
    assert found is not None
    assert found[0] == ("low", "medium", "high")
    shuffled = graded(["Never", "sometimes", "often", "always"], rng)
    assert (likely_order(*shuffled) or ((),))[0] == ("Never", "sometimes", "often", "always")
    for names in (
        ["0", "1"],
        ["0", "1", "2"],
        ["5", "6", "7", "8"],
        ["1", "2", "4", "8"],
        ["cat", "dog", "bird", "cow"],
    ):
        assert likely_order(*graded(names, rng)) is None, names


def test_the_notes_name_the_kind_and_that_kind_does_without_them() -> None:
    rng = np.random.default_rng(2)
    stars = [
        [int(np.clip(round(m + rng.normal(0, 0.5)), 1, 5)) for _ in "12"] for m in rng.uniform(1, 5, 300)
    ]
    rows = [(f"i{k}", str(label)) for k, pair in enumerate(stars) for label in pair]
    frame = pd.DataFrame(rows, columns=["text", "label"])
    plain = {
        alarm.code: alarm for alarm in audit_duplicates(frame, item="text", label="label", draws=100).alarms
    }
    assert "--kind ordinal tells" in plain["grades as classes"].action
    assert plain["grades as classes"].severity == "note"
    assert plain["grades as classes"].figures["order"] == ["1", "2", "3", "4", "5"]
    ordinal = audit_ordinal(frame, item="text", label="label", draws=100).audit
    assert "grades as classes" not in [alarm.code for alarm in ordinal.alarms]
    tags = [(f"i{k % 40}", label) for k, label in enumerate(["a|b", "b|c", "a", "c|a"] * 30)]
    frame = pd.DataFrame(tags, columns=["text", "label"])
    plain = {
        alarm.code: alarm for alarm in audit_duplicates(frame, item="text", label="label", draws=100).alarms
    }
    assert "--kind tags --sep '|'" in plain["sets as classes"].action
    assert plain["sets as classes"].figures["rows"] == 90
    found = audit_tags(frame, item="text", label="label", draws=100).audit
    assert "sets as classes" not in [alarm.code for alarm in found.alarms]
    assert "class" not in found.by


def test_the_examples_raise_no_such_note() -> None:
    found = audit_duplicates(
        ROOT / "examples" / "risk_driver.csv", item=["passage", "entity", "driver"], label="label"
    )
    assert not {"sets as classes", "grades as classes"} & {alarm.code for alarm in found.alarms}


# --- separators and empty cells of tags -------------------------------------------------------------------------


def test_a_separator_in_no_label(tmp_path: Path) -> None:
    path = str(
        table(tmp_path / "t.csv", [("x", "a;b"), ("x", "b;a"), ("y", "a"), ("y", "b;c"), ("z", "c;a")])
    )
    told = {alarm.code: alarm for alarm in audit_tags(path, item=["text"], label="label").audit.alarms}
    assert told["separator in no label"].figures == {"separator": "|", "likely": ";"}
    assert told["separator in no label"].action == "--sep ';' parts them"
    right = audit_tags(path, item=["text"], label="label", sep=";").audit
    assert "separator in no label" not in [alarm.code for alarm in right.alarms]
    plain = str(table(tmp_path / "p.csv", [("x", "a"), ("x", "b")]))
    (alarm,) = [
        a for a in audit_tags(plain, item=["text"], label="label").audit.alarms if "separator" in a.code
    ]
    assert alarm.figures["likely"] is None
    assert any("separator in no label" in step for step in audit_tags(plain).audit.verdict.next_steps)


def emptied(path: Path) -> Path:
    rows = [("x", "a|b"), ("x", ""), ("y", ""), ("y", ""), ("z", "b|a"), ("z", "a|b"), ("v", "c"), ("w", "")]
    return table(path, rows)


def test_empty_cells_beside_tags(tmp_path: Path) -> None:
    """x: tags and none; y: none twice; z: equal. Left out d is 0 of one item; counted it is 1 of three."""
    path = str(emptied(tmp_path / "t.csv"))
    left_out = audit_tags(path, item=["text"], label="label")
    (alarm,) = [alarm for alarm in left_out.audit.alarms if alarm.code == "empty cells beside tags"]
    assert alarm.severity == "warning"
    assert alarm.figures == {
        "empty_cells": 4, "beside_tags": 1, "disagreement": 0.0, "disagreement_counted": pytest.approx(1 / 3),
        "more_items": 2,
    }  # fmt: skip
    counted = audit_tags(path, item=["text"], label="label", empty_set="none")
    assert counted.audit.disagreement.estimate == pytest.approx(1 / 3)
    assert counted.audit.data.missing_label == 0
    assert [part.tag for part in counted.tags] == ["a", "b", "c"]  # the empty set is no tag
    assert counted.tags[0].share == pytest.approx(3 / 8)
    assert counted.distance.estimate == pytest.approx(1 / 3)
    assert not [alarm for alarm in counted.audit.alarms if "empty" in alarm.code]
    worded = str(table(tmp_path / "w.csv", [("x", "a|b"), ("x", " none"), ("y", ""), ("y", "none")]))
    assert audit_tags(worded, item=["text"], label="label", empty_set="none").audit.repeats.conflicts == 1


def test_items_without_any_label_are_no_alarm(tmp_path: Path) -> None:
    path = str(table(tmp_path / "t.csv", [("x", "a|b"), ("x", "a"), ("y", ""), ("y", ""), ("w", "")]))
    found = audit_tags(path, item=["text"], label="label").audit
    assert not [alarm for alarm in found.alarms if "empty" in alarm.code]
    missing = str(table(tmp_path / "m.csv", [("x", "a|b"), ("x", "n/a"), ("y", "a"), ("y", "b")]))
    found = audit_tags(missing, item=["text"], label="label", missing=["n/a"]).audit
    assert not [alarm for alarm in found.alarms if "empty" in alarm.code]


def test_the_empty_set_from_the_command_line(tmp_path: Path) -> None:
    path = emptied(tmp_path / "t.csv")
    done = run("dupes", path, "--item", "text", "--label", "label", "--empty-set", "none", "--format", "json")
    assert (done.code, done.json["repeats"]["items"]) == (0, 3)
    assert "tags" in done.json
    done = run("dupes", path, "--kind", "ordinal", "--empty-set", "none")
    assert done.code == 2
    assert "--empty-set is of tags, and --kind is ordinal" in done.err
    with pytest.raises(ArgumentError, match="--empty-set names the set without tags"):
        audit_tags(str(path), item=["text"], label="label", empty_set="a|b")
    declared = audit_tags(
        str(path), item=["text"], label="label", empty_set="none", classes=["a|b", "c", "d"]
    )
    assert declared.audit.data.classes == ("a|b", "c", "d", "none")
