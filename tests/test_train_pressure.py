"""The ledger of evaluations: what it keeps through crashes and many writers, and what it says about looks."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from audit.errors import ArgumentError, InputError
from train.pressure import Ledger, digest_items, digest_model
from train.pressure_file import locked
from train.pressure_stats import (
    expected_maximum,
    mean_correlation,
    score_interval,
    selection_gain,
    share_terms,
    variance_of,
)

ROOT = Path(__file__).parents[1]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "runs" / "ledger.jsonl", wait=0.1)


def look(ledger: Ledger, model: str = "m1", score: float = 0.8, **more: object) -> None:
    ledger.record(
        **{"run": "sft", "model": model, "split": "validation", "metrics": {"accuracy": score}, **more}
    )  # type: ignore[arg-type]


# --- the file -------------------------------------------------------------------------------------------------


def test_an_evaluation_is_kept_whole(ledger: Ledger) -> None:
    items, right = ["b", "a", "c"], [True, False, True]
    written = ledger.record(
        run="sft clean é", model="9f", split="validation", metrics={"accuracy": 2 / 3, "auc": None}, items=items,
        right=right, family="sft", key="clean",
    )  # fmt: skip
    (read,) = ledger.read().entries
    assert read.line == 1
    assert read.to_dict() == written.to_dict()
    assert read.rows == 3
    assert read.digest == digest_items(["c", "a", "b"]) != digest_items(["a", "b"])
    rights = read.rights()
    assert rights is not None
    assert rights.tolist() == [False, True, True], "in the order of the sorted keys: a, b, c"
    assert read.metrics == {"accuracy": 2 / 3, "auc": None}


def test_items_do_not_run_together() -> None:
    assert digest_items(["ab", "c"]) != digest_items(["a", "bc"])


def test_a_ledger_lies_in_its_folder(tmp_path: Path) -> None:
    look(Ledger(tmp_path))
    assert (tmp_path / "ledger.jsonl").is_file()
    with pytest.raises(InputError, match="name the ledger or its folder"):
        Ledger(tmp_path / "other.jsonl").read()


def test_a_folder_of_runs_that_is_not_there_yet_is_made(tmp_path: Path) -> None:
    look(Ledger(tmp_path / "runs"))
    assert (tmp_path / "runs" / "ledger.jsonl").is_file()
    look(Ledger(tmp_path / "mine.jsonl"))
    assert (tmp_path / "mine.jsonl").is_file()


@pytest.mark.parametrize(
    "cut", [b'{"time": "2026-01-01", "ru', b"\x00\x00\x00\x00", b"[1, 2]\n", b'{"run": 3}\n']
)
def test_a_damaged_line_harms_no_other(ledger: Ledger, cut: bytes) -> None:
    look(ledger, "m1")
    with ledger.path.open("ab") as file:
        file.write(cut)
    look(ledger, "m2")
    book = ledger.read()
    assert [e.model for e in book.entries] == ["m1", "m2"]
    assert book.damaged == (2,)


def test_a_line_whose_end_alone_is_missing_counts(ledger: Ledger) -> None:
    look(ledger, "m1")
    ledger.path.write_bytes(ledger.path.read_bytes().rstrip(b"\n"))
    look(ledger, "m2")
    assert [e.model for e in ledger.read().entries] == ["m1", "m2"]
    assert ledger.read().damaged == ()


def test_many_threads_write_without_loss(ledger: Ledger) -> None:
    patient = Ledger(ledger.path, wait=60.0)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: look(patient, f"m{i}"), range(80)))
    book = patient.read()
    assert {e.model for e in book.entries} == {f"m{i}" for i in range(80)}
    assert book.damaged == ()


def test_many_processes_write_without_loss_and_one_opens_the_holdout(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom train.pressure import Ledger\nfrom audit.errors import ArgumentError\n"
        "ledger, me = Ledger(sys.argv[1], wait=60.0), sys.argv[2]\n"
        "for i in range(15):\n"
        "    ledger.record(run=me, model=f'{me}-{i}', split='validation', metrics={'accuracy': .5}, rows=9)\n"
        "try:\n    ledger.open_holdout(model='final', split='test', run=me)\n"
        "except ArgumentError:\n    sys.exit(7)\n"
    )
    path = tmp_path / "ledger.jsonl"
    command = [sys.executable, "-W", "error", "-c", code, str(path)]
    running = [subprocess.Popen([*command, f"p{i}"], cwd=ROOT) for i in range(4)]
    codes = sorted(process.wait(timeout=120) for process in running)
    assert codes == [0, 7, 7, 7], "one process opened it, the others were refused"
    book = Ledger(path).read()
    assert len({e.model for e in book.entries if e.kind == "evaluation"}) == 60
    assert book.damaged == ()


def test_a_lock_that_is_held_is_waited_for_and_then_told(ledger: Ledger) -> None:
    with (
        locked(ledger.path, wait=1.0),
        pytest.raises(ArgumentError, match=r"held the ledger for 0\.1 s; try again"),
    ):
        look(ledger)
    look(ledger)
    assert len(ledger.read().entries) == 1


def test_a_writer_that_dies_lets_the_lock_go(ledger: Ledger) -> None:
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom train.pressure_file import locked\n"
        "with locked(Path(sys.argv[1]), wait=1.0):\n    os._exit(9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(ledger.path)], cwd=ROOT, check=False, timeout=60)
    assert done.returncode == 9
    look(ledger)
    assert len(ledger.read().entries) == 1


def test_a_ledger_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentError, match="cannot be written"):
        look(Ledger(tmp_path / "file" / "ledger.jsonl"))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"metrics": {}}, "at least one metric"),
        ({"metrics": {"accuracy": math.nan}}, "give a number, or None"),
        ({"metrics": {"accuracy": 81.0}}, "divide a percentage by 100"),
        ({"run": " "}, "run is empty"),
        ({"purpose": "test"}, "'validation' or 'holdout', not 'test'"),
        ({"rows": 0}, "at least 1, not 0"),
        ({"items": ["a", "a"]}, "each once"),
        ({"items": ["a"], "rows": 2}, "leave rows out"),
        ({"items": ["a"], "right": [True, False]}, "2 answers do not fit 1 items"),
        ({"right": [True]}, "give items as well"),
    ],
)
def test_what_makes_no_evaluation_is_refused(ledger: Ledger, more: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        look(ledger, **more)
    assert not ledger.path.exists()


text = st.text(max_size=20)
number = st.floats(-1e100, 1e100)


@given(
    run=text.filter(str.strip), model=text.filter(str.strip),
    metrics=st.dictionaries(text, st.none() | number, min_size=1),
    items=st.lists(text, min_size=1, max_size=20, unique=True), data=st.data(),
)  # fmt: skip
def test_whatever_is_recorded_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, run: str, model: str, metrics: dict[str, float | None], items: list[str],
    data: st.DataObject,
) -> None:  # fmt: skip
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "ledger.jsonl")
    right = data.draw(st.lists(st.booleans(), min_size=len(items), max_size=len(items)))
    written = ledger.record(run=run, model=model, split="v", metrics=metrics, items=items, right=right)
    (read,) = ledger.read().entries
    assert read.to_dict() == written.to_dict()
    rights = read.rights()
    assert rights is not None
    assert rights.tolist() == [r for _, r in sorted(zip(items, right, strict=True))]


# --- the holdout ----------------------------------------------------------------------------------------------


def test_a_holdout_opens_once_for_a_model(ledger: Ledger) -> None:
    ledger.open_holdout(model="final", split="test", run="sft")
    look(ledger, "final", purpose="holdout", split="test")
    with pytest.raises(
        ArgumentError, match=r"'test' was opened for model 'final' on 20.* \(run 'sft'\)"
    ) as caught:
        ledger.open_holdout(model="final", split="test", run="sft")
    assert caught.value.exit_code == 2
    with pytest.raises(ArgumentError, match="a second look turns it into a validation split"):
        look(ledger, "final", purpose="holdout", split="test")
    look(ledger, "another", purpose="holdout", split="test")
    look(ledger, "final", purpose="holdout", split="other")
    kinds = [(e.kind, e.model, e.split) for e in ledger.read().entries]
    assert kinds == [
        ("opening", "final", "test"), ("evaluation", "final", "test"),
        ("opening", "another", "test"), ("evaluation", "another", "test"),
        ("opening", "final", "other"), ("evaluation", "final", "other"),
    ]  # fmt: skip


def test_a_second_opening_needs_a_reason_which_is_kept(ledger: Ledger) -> None:
    look(ledger, "final", purpose="holdout", split="test")
    with pytest.raises(ArgumentError, match="give the reason with --force"):
        ledger.open_holdout(model="final", split="test", reason="  ")
    look(ledger, "final", purpose="holdout", split="test", reason="the scorer had a bug")
    entries = ledger.read().entries
    assert [e.forced for e in entries] == [None, None, "the scorer had a bug", "the scorer had a bug"]
    assert len(ledger.read().openings(model="final", split="test")) == 2


def test_a_reason_without_need_forces_nothing(ledger: Ledger) -> None:
    assert ledger.open_holdout(model="final", split="test", reason="to be safe").forced is None


def test_a_run_cut_short_before_its_score_takes_its_opening_up_again(ledger: Ledger) -> None:
    ledger.open_holdout(model="final", split="test", run="sft")
    assert ledger.open_holdout(model="final", split="test", run="sft").kind == "resumed"
    with pytest.raises(ArgumentError, match="was opened for model"):
        ledger.open_holdout(model="final", split="test", run="another run")
    look(ledger, "final", purpose="holdout", split="test")
    with pytest.raises(ArgumentError, match="was opened for model"):
        ledger.open_holdout(model="final", split="test", run="sft")


def test_the_same_rows_under_another_name_are_the_same_holdout(ledger: Ledger) -> None:
    look(ledger, "final", purpose="holdout", split="test", items=["a", "b"])
    with pytest.raises(ArgumentError, match="was opened for model"):
        look(ledger, "final", purpose="holdout", split="test2", items=["b", "a"])
    look(ledger, "final", purpose="holdout", split="test3", items=["b", "c"])


def test_what_was_right_on_a_holdout_is_not_kept_item_by_item(ledger: Ledger) -> None:
    look(ledger, "final", purpose="holdout", split="test", items=["a", "b"], right=[True, False])
    assert '"right"' not in ledger.path.read_text("utf-8")


def test_models_are_told_apart_by_their_files(tmp_path: Path) -> None:
    for name, content in (("a", b"1"), ("b", b"1"), ("c", b"2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "adapter.safetensors").write_bytes(content)
    assert digest_model(tmp_path / "a") == digest_model(tmp_path / "b") != digest_model(tmp_path / "c")
    assert len(digest_model(tmp_path / "a" / "adapter.safetensors")) == 16
    (tmp_path / "a" / "adapter.safetensors").rename(tmp_path / "a" / "other")
    assert digest_model(tmp_path / "a") != digest_model(tmp_path / "b")
    with pytest.raises(InputError, match="no model's files"):
        digest_model(tmp_path / "none")


def test_a_line_written_by_hand_is_enough(ledger: Ledger) -> None:
    ledger.path.parent.mkdir()
    line = {
        "time": "2026-01-01T00:00:00+00:00",
        "run": "r",
        "model": "m",
        "split": "v",
        "purpose": "validation",
    }
    ledger.path.write_text(json.dumps({**line, "rows": 10, "metrics": {"accuracy": 1}}) + "\n\n")
    (entry,) = ledger.read().entries
    assert (entry.kind, entry.family, entry.rows, entry.metrics) == ("evaluation", "r", 10, {"accuracy": 1.0})


# --- the numbers ----------------------------------------------------------------------------------------------


def test_the_expected_maximum_by_formulas_and_published_values() -> None:
    assert expected_maximum(1) == pytest.approx(0.0, abs=1e-9)
    assert expected_maximum(2) == pytest.approx(1 / math.sqrt(math.pi))
    assert expected_maximum(3) == pytest.approx(3 / (2 * math.sqrt(math.pi)))
    # Harter (1961), table 1
    assert expected_maximum(10) == pytest.approx(1.53875, abs=5e-6)
    assert expected_maximum(100) == pytest.approx(2.50759, abs=5e-6)
    # for large k near the quantile at 1 - 1/k plus Euler's constant times its slope (Gumbel's limit)
    k = 10**6
    quantile = stats.norm.isf(1 / k)
    assert expected_maximum(k) == pytest.approx(quantile + 0.5772 / (k * stats.norm.pdf(quantile)), abs=0.01)
    with pytest.raises(ArgumentError, match="at least one, not 0"):
        expected_maximum(0)


def test_the_best_of_correlated_binomial_scores_gains_what_is_said() -> None:
    # items of unequal difficulty, models equally good: the correlation of being right is that of the difficulties
    rng = np.random.default_rng(3)
    n, k, rounds = 400, 8, 3_000
    difficulty = rng.beta(4, 1, size=(rounds, n))  # mean .8, variance .0267
    right = rng.random((rounds, k, n)) < difficulty[:, None, :]
    gains = right.mean(axis=2).max(axis=1) - 0.8
    rho = (0.8 * 0.2 / 6) / (0.8 * 0.2)  # variance of the difficulty over that of being right
    expected = selection_gain(k, variance=0.8 * 0.2 / n, correlation=rho)
    assert gains.mean() == pytest.approx(expected, abs=0.0012)  # four standard errors; it is .0260
    found = np.mean([mean_correlation(list(r)) for r in right[:300]])
    assert found == pytest.approx(rho, abs=0.01)
    unequal = right & (rng.random((rounds, k, n)) < np.linspace(0.9, 1.0, k)[None, :, None])
    scores = unequal.mean(axis=2)
    truth = 0.8 * np.linspace(0.9, 1.0, k)
    best = scores.argmax(axis=1)
    assert (scores.max(axis=1) - truth[best]).mean() < expected, "unequal models gain less"


def test_correlation_of_two_models_is_pearsons() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random(200) < 0.7, rng.random(200) < 0.6
    c = np.where(rng.random(200) < 0.5, a, b)
    assert mean_correlation([a, c]) == pytest.approx(np.corrcoef(a, c)[0, 1])
    expected = np.mean([np.corrcoef(x, y)[0, 1] for x, y in ((a, b), (a, c), (b, c))])
    assert mean_correlation([a, b, c, np.ones(200, bool)]) == pytest.approx(max(expected, 0))
    assert mean_correlation([a, np.ones(200, bool)]) is None
    assert mean_correlation([a, ~a]) == 0.0


def test_a_difference_of_proportions_has_newcombes_limits() -> None:
    # Newcombe (1998), table II, (a) 56/70 and 48/80: method 10 gives .0524 to .3339
    found = score_interval([(1.0, 56.0, 70.0), (-1.0, 48.0, 80.0)], level=0.95)
    assert found.estimate == pytest.approx(0.2)
    assert found.low == pytest.approx(0.0524, abs=5e-5)
    assert found.high == pytest.approx(0.3339, abs=5e-5)


def test_balanced_accuracy_rests_on_both_classes() -> None:
    metrics = {"n": 100.0, "positives": 20.0, "recall": 0.75, "specificity": 0.9, "accuracy": 0.87}
    terms = share_terms("balanced_accuracy", metrics, None)
    assert terms == ((0.5, 15.0, 20.0), (0.5, 72.0, 80.0))
    assert score_interval(terms, level=0.95).estimate == pytest.approx(0.825)
    # (16/22)(6/22)/20/4 + (73/82)(9/82)/80/4 by hand
    assert variance_of(terms) == pytest.approx(0.0024793 + 0.00030531, abs=1e-6)
    assert share_terms("balanced_accuracy", {"accuracy": 0.9}, 100) is None
    assert share_terms("accuracy", {"accuracy": 0.9}, None) is None
    assert share_terms("accuracy", {"accuracy": 90.0}, 100) is None, "a percentage written by hand"
    assert share_terms("balanced_accuracy", {**metrics, "recall": 75.0}, None) is None
    assert share_terms("f1", metrics, 100) is None


def test_intervals_of_balanced_accuracy_cover() -> None:
    rng = np.random.default_rng(1)
    recall, specificity, positives, negatives = 0.7, 0.95, 40, 160
    hits, cleared = rng.binomial(positives, recall, 2_000), rng.binomial(negatives, specificity, 2_000)
    inside = 0
    for h, c in zip(hits.tolist(), cleared.tolist(), strict=True):
        found = score_interval([(0.5, h, positives), (0.5, c, negatives)], level=0.95)
        assert found.low is not None
        assert found.high is not None
        inside += found.low <= (recall + specificity) / 2 <= found.high
    assert 0.935 <= inside / 2_000 <= 0.97
