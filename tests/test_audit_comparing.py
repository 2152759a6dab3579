"""audit compare: labels that were changed to agree, the band before and after, columns that are guessed."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from audit.comparing import compare_files
from audit.comparing_results import FileComparison
from audit.errors import ArgumentError, ColumnError
from audit.paired import fewer_than_fresh
from audit.render import render
from tests.command import run, write_csv

Labels = np.ndarray


def drawn(items: int, chance: np.ndarray | float, seed: int) -> Labels:
    """Two labels for each item, shape (items, 2), wrong (1) with the item's chance."""
    rng = np.random.default_rng(seed)
    return (rng.random((items, 2)) < np.broadcast_to(chance, items)[:, None]).astype(np.int64)


def frame(labels: Labels) -> pd.DataFrame:
    texts = [f"text {k}" for k in range(len(labels)) for _ in range(2)]
    return pd.DataFrame({"text": texts, "label": [f"c{value}" for value in labels.ravel()]})


def compared(before: Labels, after: Labels) -> FileComparison:
    return compare_files(frame(before), frame(after), item=["text"], label="label", draws=200)


def codes(found: FileComparison) -> list[str]:
    return [alarm.code for alarm in found.alarms]


# --- changed to agree --------------------------------------------------------------------------------------


def test_conflicts_that_were_settled_are_no_better_labels() -> None:
    """Of 600 items half of the conflicts get one of their two labels at random: as wrong as before, d halved."""
    before = drawn(600, 0.15, 1)
    after = before.copy()
    differ = np.flatnonzero(before[:, 0] != before[:, 1])
    settled = differ[: len(differ) // 2]
    after[settled] = after[settled, :1]
    found = compared(before, after)
    assert (found.came_together, found.moved_apart) == (len(settled), 0)
    assert codes(found) == ["changed_to_agree"]
    assert "agree more" not in found.verdict
    assert "changed to agree" in found.verdict
    (alarm,) = found.alarms
    # d after over d before, in odds, of the items that came together
    d = len(differ) / 600, (len(differ) - len(settled)) / 600
    expected = len(settled) * d[1] / (1 - d[1]) * (1 - d[0]) / d[0]
    assert alarm.figures["expected"] == pytest.approx(expected)
    ratio = expected / len(settled)
    assert alarm.figures["chance"] == pytest.approx((1 / (1 + ratio)) ** len(settled))
    turned = compared(after, before)
    assert codes(turned) == ["changed_to_agree"]
    assert "agree more before" in turned.alarms[0].message


def test_a_model_whose_suggestions_are_taken_over_is_told() -> None:
    """Nearly all doubted labels take the model's class, the same for all copies of an item; a few are overlooked."""
    before = drawn(500, 0.15, 2)
    overlooked = np.flatnonzero(before[:, 0] != before[:, 1])[:6]
    after = np.zeros_like(before)
    after[overlooked] = before[overlooked]
    found = compared(before, after)
    assert found.after.conflicts == 6
    assert codes(found) == ["changed_to_agree"]
    assert "means nothing if labels were changed to agree" in found.summary().replace("\n ", "")


@pytest.mark.parametrize(
    ("before", "after"), [(0.15, 0.15), (0.15, 0.07), (0.15, 0.01), (0.05, 0.15), (0.3, 0.2)]
)
def test_labels_given_anew_are_hardly_ever_taken_for_changed_ones(before: float, after: float) -> None:
    """However much better they are; in items that are all alike, and where a fifth is hard."""
    told = []
    for seed in range(400):
        hard = (np.random.default_rng(seed).random(500) < 0.2) & bool(seed % 2)
        chances = [np.where(hard, min(3 * chance, 0.5), chance) for chance in (before, after)]
        one, two = (drawn(500, chance, 2 * seed + k) for k, chance in enumerate(chances))
        first, second = (labels[:, 0] != labels[:, 1] for labels in (one, two))
        together, apart = int(np.sum(first & ~second)), int(np.sum(second & ~first))
        a, b = first.mean(), second.mean()
        told.append(fewer_than_fresh(apart, together, odds=b / (1 - b) * (1 - a) / a) <= 0.01)
    assert np.mean(told) <= 0.02


def test_fewer_than_fresh_by_hand() -> None:
    # equally good: a fair coin; odds 1/4: a change goes that way with chance 1/5
    assert fewer_than_fresh(2, 6, odds=1.0) == pytest.approx((1 + 8 + 28) / 256)
    assert fewer_than_fresh(1, 9, odds=0.25) == pytest.approx(0.8**10 + 10 * 0.2 * 0.8**9)
    assert fewer_than_fresh(0, 0, odds=0.5) == 1.0
    with pytest.raises(ArgumentError, match="odds of 0 or more"):
        fewer_than_fresh(1, 1, odds=-1.0)


def test_better_labels_raise_no_alarm() -> None:
    assert codes(compared(drawn(500, 0.15, 1), drawn(500, 0.07, 2))) == []


def test_some_rows_corrected_blind_are_no_alarm() -> None:
    """A third of the labels is given anew, with fewer errors: new conflicts come with it."""
    before, fresh = drawn(800, 0.2, 3), drawn(800, 0.08, 4)
    anew = np.random.default_rng(5).random(before.shape) < 0.33
    found = compared(before, np.where(anew, fresh, before))
    assert found.moved_apart > 0
    assert codes(found) == []


# --- what it means -----------------------------------------------------------------------------------------


def test_the_ceiling_before_and_after() -> None:
    before, after = drawn(400, 0.2, 6), drawn(400, 0.05, 7)
    found = compared(before, after)
    for side, labels in ((found.before, before), (found.after, after)):
        d = float(np.mean(labels[:, 0] != labels[:, 1]))
        assert side.ceiling.lower == pytest.approx(1 - d)
        assert side.ceiling.upper == pytest.approx(0.5 + 0.5 * (1 - 2 * d) ** 0.5)
    told = " ".join(found.summary().split())
    a, b = found.before.ceiling, found.after.ceiling
    assert f"by the labels before {a.lower:.3f} to {a.upper:.3f} (with" in told
    assert f"by those after {b.lower:.3f} to {b.upper:.3f} (with" in told
    page = render(found, "markdown")
    assert f"{b.lower:.3f} to {b.upper:.3f}" in page
    assert found.to_dict()["after"]["ceiling"]["upper"] == b.upper


def test_moves_are_a_question_with_an_answer_and_every_minus_is_true() -> None:
    before = drawn(300, 0.1, 8)
    before[:30] = 1
    found = compared(before, np.zeros_like(before))
    assert "Do labels move one way more often than back? Yes: p < 0.001 (McNemar, exact)." in found.summary()
    still = compared(drawn(300, 0.3, 8), drawn(300, 0.3, 9))
    assert f"No sign of it: p = {still.symmetry_p_value:.3f}" in still.summary()
    for one in (found, still):
        for form in ("text", "markdown"):
            assert not any(f"{mark}-0" in render(one, form) for mark in " [(|>")  # type: ignore[arg-type]
    assert f"d changed by −{-found.difference.estimate:.3f} [−" in found.verdict  # type: ignore[operator]
    assert all(len(line) <= 100 for line in found.summary().splitlines())


# --- columns -----------------------------------------------------------------------------------------------


def test_columns_are_guessed_and_told(tmp_path: Path) -> None:
    rows = [(f"text {n % 10}", "xy"[n % 3 == 0], "o") for n in range(30)]
    a, b = (write_csv(tmp_path / name, ["text", "label", "pass"], rows) for name in ("a.csv", "b.csv"))
    named = run("compare", a, b, "--item", "text", "--label", "label", "--format", "json").json
    done = run("compare", a, b, "--format", "json")
    assert done.code == 0, done.err
    assert done.json["notes"] == ["item: column text, for its name", "label: column label, for its name"]
    assert {**done.json, "notes": []} == named
    assert "item: column text, for its name" in run("compare", a, b).out
    half = run("compare", a, b, "--label", "label", "--format", "json").json
    assert half["notes"] == ["item: column text, for its name"]


def test_what_cannot_be_guessed_is_asked_for_at_once(tmp_path: Path) -> None:
    a = write_csv(tmp_path / "a.csv", ["u", "v"], [("1", "2"), ("3", "4")])
    with pytest.raises(ColumnError, match=r"--label.*--item"):
        compare_files(a, a)
    ran = run("compare", "-", a, stdin=b"text,label\nx,1\n")
    assert ran.code == 2
    assert "name --item COLUMNS and --label COLUMN" in ran.err
    named = run("compare", "-", a, "--item", "u", "--label", "v", stdin=a.read_bytes())
    assert named.code == 0, named.err
    with pytest.raises(ColumnError, match="no column 'text'"):
        compare_files(pd.read_csv(io.StringIO("text,label\nx,1\n")), a)
