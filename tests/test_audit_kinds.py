"""Kinds of labels: every form and the gate, noise by value, pairs by steps, and the hint that labels are numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from audit.duplicates import audit_duplicates
from audit.label_grades import audit_ordinal
from audit.label_numbers import audit_numeric
from audit.label_sets import audit_tags
from tests.command import run
from tests.test_audit_label_kinds import ROOT, ratings, table


def test_kinds_in_every_form_and_through_the_gate(tmp_path: Path) -> None:
    grades = ROOT / "examples" / "anaesthetists.csv"
    words = ("dupes", grades, "--item", "patient", "--label", "grade", "--kind", "ordinal", "--draws", "500")
    done = run(*words, "--html", tmp_path / "g.html", "--fail-under", "0.7")
    assert (done.code, "passed" in done.err or "0.7" in done.err) == (0, True), done.err
    assert "Ordered grades" in (tmp_path / "g.html").read_text("utf-8")
    assert "Ordered grades" in done.out
    assert run(*words, "--fail-under", "0.9").code == 1
    assert "## Ordered grades" in run(*words, "--format", "markdown").out
    tags = table(tmp_path / "t.csv", [("x", "a;b"), ("x", "b;a"), ("y", "a"), ("y", "a;c")] * 3)
    words = ("dupes", tags, "--item", "text", "--label", "label", "--sep", ";", "--normalise", "none")
    assert run(*words, "--fail-under", "0.99").code == 1
    assert "Tag by tag" in run(*words, "--format", "html").out
    numbers = ratings(tmp_path / "r.csv")
    words = ("dupes", numbers, "--item", "text", "--label", "label", "--kind", "numeric")
    done = run(*words, "--html", tmp_path / "r.html")
    assert done.code == 0
    assert "Noise by value" in (tmp_path / "r.html").read_text("utf-8")


def test_grades_from_standard_input_are_read_once() -> None:
    content = (ROOT / "examples" / "anaesthetists.csv").read_bytes()
    words = ("--item", "patient", "--label", "grade", "--kind", "ordinal", "--format", "json")
    piped = run("dupes", "-", *words, stdin=content).json
    assert piped["ordinal"] == run("dupes", ROOT / "examples" / "anaesthetists.csv", *words).json["ordinal"]


# --- by value, by steps, and the hint ------------------------------------------------------------------------


def test_noise_by_value_is_that_of_a_plain_loop(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    values = [(k, m, [round(m + rng.normal(0, 0.1 + m / 10), 6) for _ in range(2 + k % 2)])
              for k, m in enumerate(rng.uniform(0, 10, 200))]  # fmt: skip
    path = table(tmp_path / "v.csv", [(f"i{k}", value) for k, _, labels in values for value in labels])
    found = audit_numeric(str(path), item=["text"], label="label")
    assert [part.items for part in found.by_value] == [25] * 8
    ordered = sorted((float(np.mean(labels)), float(np.var(labels, ddof=1))) for _, _, labels in values)
    for k, part in enumerate(found.by_value):
        inside = ordered[25 * k : 25 * k + 25]
        assert part.low == pytest.approx(inside[0][0])
        assert part.high == pytest.approx(inside[-1][0])
        assert part.noise_sd.estimate == pytest.approx(
            math.sqrt(np.mean([variance for _, variance in inside]))
        )
    few = table(tmp_path / "few.csv", [(f"i{k}", k % 3) for k in range(39) for _ in range(2)])
    assert audit_numeric(str(few), item=["text"], label="label").by_value == ()


def test_steps_are_counted_over_pairs(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    groups = [rng.integers(0, 5, int(rng.integers(2, 6))).tolist() for _ in range(60)]
    path = table(
        tmp_path / "s.csv", [(f"i{k}", f"g{value}") for k, group in enumerate(groups) for value in group]
    )
    order = [f"g{k}" for k in range(5)]
    found = audit_ordinal(str(path), classes=order, item=["text"], label="label", draws=200)
    apart = [abs(a - b) for group in groups for a, b in combinations(group, 2)]
    assert found.steps == pytest.approx([apart.count(k) / len(apart) for k in range(5)])
    assert found.adjacent == pytest.approx(apart.count(1) / (len(apart) - apart.count(0)))


def hinted(labels: Sequence[Sequence[object]], **options: Any) -> list[Any]:
    frame = pd.DataFrame(
        [(f"i{k}", str(label)) for k, pair in enumerate(labels) for label in pair], columns=["text", "label"]
    )
    found = audit_duplicates(frame, item="text", label="label", draws=200, **options)
    return [alarm for alarm in found.alarms if alarm.code == "numbers as classes"]


def test_numbers_taken_for_classes_are_told() -> None:
    rng = np.random.default_rng(3)
    quarters = [[round(4 * (m + rng.normal(0, 0.3))) / 4 for _ in range(2)] for m in rng.uniform(0, 5, 200)]
    (alarm,) = hinted(quarters)
    assert "--kind numeric" in alarm.action
    assert alarm.figures["fractions"]
    apart = [abs(a - b) for a, b in quarters if a != b]
    every = [value for pair in quarters for value in pair]
    chance = [abs(a - b) for a in every for b in every if a != b]
    assert alarm.figures["distance_to_chance"] == pytest.approx(np.mean(apart) / np.mean(chance))
    scores = [[5 * round((m + rng.normal(0, 6)) / 5) for _ in range(2)] for m in rng.uniform(0, 200, 200)]
    (alarm,) = hinted(scores)
    assert not alarm.figures["fractions"]
    assert hinted([[m, m + 0.5] for m in range(12)]), "too few conflicts to compare, but fractions"


def test_the_first_next_step_names_the_kind_of_numbers() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        [
            (f"i{k}", str(round(m + rng.normal(), 3)))
            for k, m in enumerate(rng.uniform(0, 99, 200))
            for _ in "12"
        ],
        columns=["text", "score"],
    )
    steps = audit_duplicates(frame, item="text", label="score", draws=100).verdict.next_steps
    assert steps[0].startswith("The labels are numbers: --kind numeric measures their noise")
    classes = frame.assign(score=["a", "b"] * 200)
    steps = audit_duplicates(classes, item="text", label="score", draws=100).verdict.next_steps
    assert not [step for step in steps if "--kind" in step]


@pytest.mark.parametrize("labels", ["binary", "floats", "stars", "codes", "postcodes", "words"])
def test_codes_of_classes_are_not_taken_for_numbers(labels: str) -> None:
    rng = np.random.default_rng(9)
    names: list[object] = {
        "binary": [0, 1],
        "floats": [float(k) for k in range(5)],
        "stars": [1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5],
        "codes": list(range(77)),
        "postcodes": [int(k) for k in rng.choice(99_999, 60, replace=False)],
        "words": [f"{k / 2} stars" for k in range(30)],
    }[labels]
    truth = rng.integers(0, len(names), 500)
    pairs = [
        [names[int(k)], names[int(rng.integers(len(names)))] if rng.random() < 0.3 else names[int(k)]]
        for k in truth
    ]
    assert hinted(pairs) == []


def test_grades_with_fractions_are_no_hint_to_numbers(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = [
        (f"i{k}", min(max(k % 11 / 2 + float(rng.integers(-1, 2)) / 2, 0.0), 5.0))
        for k in range(300)
        for _ in range(2)
    ]
    path = str(table(tmp_path / "h.csv", rows))
    assert hinted([[a[1], b[1]] for a, b in zip(rows[::2], rows[1::2], strict=True)])
    found = audit_ordinal(path, item=["text"], label="label", draws=200).audit
    assert "numbers as classes" not in [alarm.code for alarm in found.alarms]
    assert not [step for step in found.verdict.next_steps if "numbers as classes" in step]


def test_misspellings_are_of_tags_and_none_is_the_empty_set(tmp_path: Path) -> None:
    """Sets that differ in a letter are different sets; only tags can be misspelt."""
    rows = [(f"i{k}", "a|b|c") for k in range(100)] * 2 + [
        ("x", "a|b|d"),
        ("x", "none"),
        ("y", "biling"),
        ("y", "none"),
    ]
    rows += [(f"j{k}", "billing") for k in range(60)]
    path = table(tmp_path / "t.csv", rows)
    found = audit_tags(str(path), item=["text"], label="label")
    told = {alarm.code: alarm.figures for alarm in found.audit.alarms}
    assert told["label typos"] == {"typos": [["biling", "billing"]]}
    assert "labels that may mean none" not in told
    plain = {
        alarm.code: alarm.figures
        for alarm in audit_duplicates(str(path), item=["text"], label="label").alarms
    }
    assert ["a|b|d", "a|b|c"] in plain["label typos"]["typos"]
    assert "labels that may mean none" in plain
