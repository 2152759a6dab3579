"""What the report of a ledger says: looks, drops, what choosing explains, and scores in the band."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from audit import audit_duplicates
from audit.errors import ArgumentError, InputError
from audit.intervals import wilson
from tests.pages import Page
from train.pressure import Ledger
from train.pressure_band import read_band
from train.pressure_record import parse_metrics, record_evaluation
from train.pressure_render import html, text
from train.pressure_report import report_pressure
from train.pressure_stats import expected_maximum

VALIDATION, TEST = [f"v{i}" for i in range(400)], [f"t{i}" for i in range(500)]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.jsonl")


def look(
    ledger: Ledger, model: str, right: Any, *, family: str = "sft", key: Any = "clean", **more: Any
) -> None:
    """Record a validation look with these right answers."""
    answers = np.asarray(right, bool)
    ledger.record(
        run=family, model=model, split="validation", metrics={"accuracy": float(answers.mean())},
        items=VALIDATION[: len(answers)], right=answers.tolist(), family=family, key=key, **more,
    )  # fmt: skip


def final(
    ledger: Ledger, model: str, score: float, *, family: str = "sft", key: Any = "clean", **more: Any
) -> None:
    ledger.record(
        run=family, model=model, split="test", metrics={"accuracy": score}, rows=500, family=family, key=key,
        purpose="holdout", **more,
    )  # fmt: skip


def share(n: int, of: int = 400) -> Any:
    return np.arange(of) < n


def test_looks_and_a_drop_by_hand(ledger: Ledger) -> None:
    rng = np.random.default_rng(0)
    for i in range(9):
        look(ledger, f"m{i}", rng.random(400) < 0.8)
    look(ledger, "m9", share(340))
    look(ledger, "m9", share(340))
    look(ledger, "g0", share(300), family="grpo")
    final(ledger, "m9", 0.81)
    look(ledger, "later", share(399))
    report = report_pressure(ledger)
    (f,) = report.finals
    assert (f.looks, f.models, f.models_all, f.openings) == (11, 10, 11, 1)
    assert f.validation.estimate == pytest.approx(0.85)
    assert f.drop.estimate == pytest.approx(0.04)
    # Newcombe's method 10 from Wilson's limits of both
    (l1, u1), (l2, u2) = wilson(340, 400), wilson(405, 500)
    assert f.drop.low == pytest.approx(0.04 - math.hypot(0.85 - l1, u2 - 0.81))
    assert f.drop.high == pytest.approx(0.04 + math.hypot(u1 - 0.85, 0.81 - l2))
    assert f.correlation is not None
    variance = (341 / 402) * (61 / 402) / 400
    assert f.expected == pytest.approx(math.sqrt(variance * (1 - f.correlation)) * expected_maximum(10))
    assert f.expected_all is not None
    assert f.expected_all > f.expected
    counts = {(p.family, p.purpose): (p.looks, p.models, p.best) for p in report.looks}
    assert counts["sft", "validation"] == (12, 11, 399 / 400)
    assert counts["grpo", "validation"] == (1, 1, 0.75)
    assert report.verdict[0] == (
        "12 models looked at 13 times on validation rows; the holdout was opened for 1 final model, none a second time."
    )
    assert report.verdict[1].startswith(
        "sft (test): 0.850 on validation, 0.810 on the holdout: no drop that 500 rows"
    )


@pytest.mark.parametrize(
    ("score", "tried", "words"),
    [
        (0.70, 1, "more than choosing explains (nothing was chosen, so no drop is expected)"),
        (0.70, 20, "more than choosing explains (choosing the best of 20 equal models gains up to 0.0"),
        (0.795, 60, "which choosing may explain (choosing the best of 60 equal models"),
        (0.83, 5, "no drop that 500 rows can show"),
        (0.95, 5, "higher by +0.100 (+0.06"),
    ],
)
def test_verdicts(ledger: Ledger, score: float, tried: int, words: str) -> None:
    rng = np.random.default_rng(1)
    for i in range(tried - 1):
        look(ledger, f"m{i}", rng.random(400) < 0.8)
    look(ledger, "best", share(340))
    final(ledger, "best", score)
    assert words in report_pressure(ledger).finals[0].verdict


def test_choosing_alone_is_seldom_called_more(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    more, drops, expected = 0, [], []
    for round_ in range(60):
        ledger = Ledger(tmp_path / f"{round_}.jsonl")
        rights = rng.random((8, 400)) < rng.beta(4, 1, 400)
        for i, right in enumerate(rights):
            look(ledger, f"m{i}", right)
        best = int(rights.sum(axis=1).argmax())
        final(ledger, f"m{best}", float(rng.binomial(500, 0.8)) / 500)
        (f,) = report_pressure(ledger).finals
        more += "more than choosing explains" in f.verdict
        drops.append(f.drop.estimate)
        expected.append(f.expected)
    assert more <= 3
    error = np.std(drops) / math.sqrt(len(drops))
    assert np.mean(drops) == pytest.approx(np.mean(expected), abs=3 * error)


def test_balanced_accuracy_is_taken_where_all_looks_have_it(ledger: Ledger) -> None:
    full = {
        "accuracy": 0.9,
        "balanced_accuracy": 0.8,
        "recall": 0.7,
        "specificity": 0.9,
        "n": 100,
        "positives": 20,
    }
    ledger.record(run="a", model="a", split="validation", metrics=full, rows=100)
    assert report_pressure(ledger).metric == "balanced_accuracy"
    ledger.record(run="b", model="b", split="validation", metrics={"accuracy": 0.9, "f1": 0.5}, rows=100)
    assert report_pressure(ledger).metric == "accuracy"
    found = report_pressure(ledger, metric="f1").scores
    assert [s.score.estimate for s in found] == [None, 0.5]
    with pytest.raises(ArgumentError, match="no evaluation has the metric 'auc': the ledger has accuracy"):
        report_pressure(ledger, metric="auc")


def test_an_empty_ledger_is_told(ledger: Ledger) -> None:
    ledger.open_holdout(model="m", split="test")
    with pytest.raises(InputError, match="holds no evaluation yet"):
        report_pressure(ledger)


def test_what_a_reader_must_know_beside(ledger: Ledger) -> None:
    look(ledger, "a", share(300))
    final(ledger, "a", 0.75)
    final(ledger, "b", 0.70, family="other")
    ledger.open_holdout(model="a", split="test", run="sft", reason="a bug in the scorer")
    ledger.open_holdout(model="c", split="test", run="third")
    ledger.record(
        run="x", model="x", split="renamed", metrics={"accuracy": 0.5}, items=VALIDATION, purpose="holdout"
    )
    with ledger.path.open("a") as file:
        file.write('{"torn')
    report = report_pressure(ledger)
    notes = "\n".join(report.notes)
    assert "2 models opened the holdout 'test': whoever picks the best of them" in notes
    assert "sft opened 'test' again, by force: a bug in the scorer" in notes
    assert "The holdout 'test' was opened for 'c', but no score of it was recorded." in notes
    assert (
        "The holdout 'renamed' has the rows of the validation split 'validation': it is no holdout." in notes
    )
    assert "1 line of the ledger cannot be read and count for nothing: 10." in notes
    assert "1 time again by force" in report.verdict[0]
    other = next(f for f in report.finals if f.model == "b")
    assert other.verdict == "no comparison (the model has no validation score)."


def test_scores_against_other_keys_are_not_subtracted(ledger: Ledger) -> None:
    look(ledger, "a", share(300), key="noisy")
    final(ledger, "a", 0.75, key="clean")
    assert (
        "one score is against noisy labels, the other against a clean key"
        in report_pressure(ledger).finals[0].verdict
    )


def test_the_first_score_of_a_holdout_is_the_one_that_counts(ledger: Ledger) -> None:
    look(ledger, "a", share(300))
    final(ledger, "a", 0.70)
    final(ledger, "a", 0.75, reason="again")
    (f,) = report_pressure(ledger).finals
    assert f.holdout.estimate == pytest.approx(0.70)
    assert (f.openings, f.forced) == (2, ("again",))


# --- the band ---------------------------------------------------------------------------------------------------


@pytest.fixture
def dupes(tmp_path: Path) -> Path:
    """An audit of 400 pairs, 72 of which disagree: d = .18."""
    rows = [(f"t{i}", str(i % 2)) for i in range(400)]
    rows += [(t, label if i >= 72 else str(1 - int(label))) for i, (t, label) in enumerate(rows)]
    result = audit_duplicates(pd.DataFrame(rows, columns=["text", "label"]), item="text", label="label")
    path = tmp_path / "dupes.json"
    path.write_text(json.dumps(result.to_dict()))
    return path


def test_only_scores_against_noisy_labels_are_placed(ledger: Ledger, dupes: Path) -> None:
    look(ledger, "a", share(340), family="noisy", key="noisy")
    look(ledger, "b", share(380), family="clean", key="clean")
    look(ledger, "c", share(380), family="unknown", key=None)
    report = report_pressure(ledger, audit=dupes)
    assert report.band is not None
    assert report.band.ceiling.lower == pytest.approx(0.82)
    assert report.band.ceiling.upper == pytest.approx(0.9)  # 1 - (1 - sqrt(1 - .36)) / 2
    (placed,) = report.placed
    assert (placed.run, placed.position) == ("noisy", "inside")
    assert "does not apply to scores against a clean key" in report.summary()
    assert "record them with --key noisy" in report.summary()
    source = html(report)
    assert (
        source.count('class="rule-band') == 4
    )  # the band and its widened ends, and their samples in the legend
    assert report.placed[0].message in text(report)


def test_a_file_that_is_no_audit_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(
        InputError,
        match=r"is no saved audit: it has no disagreement and no flip_rate; give the JSON that audit dupes",
    ):
        read_band(tmp_path / "other.json")
    with pytest.raises(InputError, match="check the path"):
        read_band(tmp_path / "none.json")


def test_an_audit_without_a_band_says_so(ledger: Ledger, tmp_path: Path) -> None:
    rows = [(f"t{i % 30}", str(i // 30)) for i in range(60)]
    result = audit_duplicates(pd.DataFrame(rows, columns=["text", "label"]), item="text", label="label")
    (tmp_path / "dupes.json").write_text(json.dumps(result.to_dict()))
    look(ledger, "a", share(340), key="noisy")
    report = report_pressure(ledger, audit=tmp_path / "dupes.json")
    assert "There is no ceiling band: " in text(report)
    assert "There is no ceiling band: " in Page(html(report)).text


# --- recording, and the forms -----------------------------------------------------------------------------------


def test_an_evaluation_is_recorded_from_its_scores(ledger: Ledger) -> None:
    frame = pd.DataFrame(
        {
            "item": list("abcd"),
            "label": list("1100"),
            "score": [0.9, 0.2, 0.1, 0.6],
            "prediction": ["1", "0", None, "1"],
        }
    )
    entry = record_evaluation(ledger, run="r", model="m", split="validation", scores=frame, key="clean")
    assert entry.metrics["accuracy"] == 0.25
    assert entry.metrics["auc"] == pytest.approx(0.75)
    assert (entry.metrics["n"], entry.metrics["positives"]) == (4, 2)
    rights = entry.rights()
    assert rights is not None
    assert rights.tolist() == [True, False, False, False]


def test_what_is_recorded_is_named_once(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="either a score file"):
        record_evaluation(ledger, run="r", model="m", split="v")
    with pytest.raises(ArgumentError, match="name the model"):
        record_evaluation(ledger, run="r", split="v", metrics={"accuracy": 1})
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "weights").write_bytes(b"1")
    entry = record_evaluation(
        ledger, run="r", adapter=tmp_path / "adapter", split="v", metrics={"accuracy": 1}
    )
    assert len(entry.model) == 16
    assert parse_metrics(["accuracy=0.81", " f1 = 1e-1"]) == {"accuracy": 0.81, "f1": 0.1}
    for wrong in ("accuracy", "=0.3", "accuracy=high"):
        with pytest.raises(ArgumentError, match="write a name and a number"):
            parse_metrics([wrong])


def test_all_forms_tell_the_same(ledger: Ledger) -> None:
    for i in range(8):
        for family in "abcdefgh":
            look(ledger, f"{family}{i}", share(300 + i), family=family)
    final(ledger, "a7", 0.6, family="a")
    report = report_pressure(ledger)
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert data["finals"][0]["drop"]["estimate"] == pytest.approx(307 / 400 - 0.6)
    assert data["looks"][0]["models"] == 8
    assert "scores" not in data
    assert report.to_frame()["models"].tolist() == [8]
    page = " ".join(Page(html(report)).text.split())
    for sentence in (*report.verdict, *report.notes):
        assert sentence in text(report)
        assert sentence in page
    assert "other families" in page


def test_hostile_names_stay_texts(ledger: Ledger) -> None:
    bad = "<script>alert(1)</script>\u202e|"
    look(ledger, bad, share(300), family=bad)
    final(ledger, bad, 0.7, family=bad)
    report = report_pressure(ledger)
    assert "<script" not in html(report)
    assert "\u202e" not in html(report) + text(report)
