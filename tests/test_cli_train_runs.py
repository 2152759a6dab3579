"""``audit train pressure``, ``audit train ledger`` and ``audit train compare``, called as a person calls them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.command import run, write_csv
from tests.conftest import ROOT
from tests.made_runs import answers, make_run

LABELS = ["1"] * 40 + ["0"] * 160


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- ledger and pressure ----------------------------------------------------------------------------------------


def test_a_ledger_from_the_first_look_to_the_report(folder: Path) -> None:
    rows = [(f"i{i}", label, label if i % 5 else "0") for i, label in enumerate(LABELS)]
    write_csv(folder / "validation.csv", ["item", "label", "prediction"], rows)
    (folder / "runs").mkdir()
    done = run("train ledger record runs --run sft --model e3 --scores validation.csv --key clean")
    assert (done.code, done.out) == (0, "recorded the validation score of sft, model e3, on validation\n")
    assert run("train ledger open runs --run sft --model e3").out == "opened test for model e3\n"
    assert run("train ledger open runs --run sft --model e3").out == "test is open\n"
    score = "--split test --purpose holdout --metric balanced_accuracy=0.8"
    words = f"train ledger record runs --run sft --model e3 {score}"
    assert run(words).code == 0
    refused = run("train ledger open runs --run sft --model e3")
    assert refused.code == 2
    assert refused.out == ""
    assert refused.err.startswith("audit: the holdout 'test' was opened for model 'e3' on ")
    assert refused.err.count("\n") == 1
    assert run(words).code == 2
    forced = run(*words.split(), "--force", "the scorer had a bug", "--format", "json")
    assert forced.json["forced"] == "the scorer had a bug"
    report = run("train pressure runs --html pressure.html")
    assert report.code == 0
    assert "the holdout was opened for 1 final model, 1 time again by force." in report.out
    assert "sft opened 'test' again, by force: the scorer had a bug" in report.out
    assert report.err == "wrote pressure.html\n"
    assert "How hard the validation rows were leaned on" in (folder / "pressure.html").read_text("utf-8")
    found = run("train pressure runs/ledger.jsonl --format json --level 0.9").json
    assert found["metric"] == "balanced_accuracy"
    assert found["finals"][0]["openings"] == 2
    assert run("train pressure runs --out report.txt").out == ""
    assert (folder / "report.txt").read_text("utf-8") == run("train pressure runs").out


def test_scores_in_the_band_of_a_saved_audit(folder: Path) -> None:
    rows = [(f"t{i % 200}", str((i % 200) % 2) if i < 236 else str(1 - (i % 200) % 2) if i < 272 else str(i % 2))
            for i in range(400)]  # fmt: skip
    write_csv(folder / "data.csv", ["text", "label"], rows)
    assert run("dupes data.csv --item text --label label --format json --out dupes.json").code == 0
    words = "train ledger record l.jsonl --run sft --model m --metric accuracy=0.85 --rows 400 --key noisy"
    assert run(words).code == 0
    out = run("train pressure l.jsonl --audit dupes.json").out
    assert "0.850 is inside the band [0.820, 0.900]" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("train pressure none.jsonl", "name the ledger or its folder"),
        ("train ledger record l.jsonl --run r --model m", "give either a score file"),
        ("train ledger record l.jsonl --run r --metric accuracy=1", "name the model"),
        ("train ledger record l.jsonl --run r --model m --metric accuracy", "write a name and a number"),
        ("train ledger record l.jsonl --run r --model m --scores none.csv", "none.csv"),
        ("train ledger open l.jsonl --run r --adapter none", "no model's files are there"),
        ("train compare none", "holds no run"),
        ("train compare runs --pair grpo", "write two runs with a colon between"),
        ("train compare runs --metric auc", "is none of accuracy"),
        ("train compare runs --audit runs/a/run.json", "is no saved audit"),
        ("train compare runs --out x.txt --html x.txt", "x.txt is read or written already"),
    ],
)
def test_one_clear_line_for_what_cannot_be_done(folder: Path, words: str, message: str) -> None:
    make_run(folder / "runs" / "a", LABELS, LABELS)
    done = run(words)
    assert done.code == 2
    assert done.out == ""
    assert message in done.err
    assert done.err.startswith("audit: ")
    assert done.err.count("\n") == 1


# --- compare ----------------------------------------------------------------------------------------------------


def test_runs_are_compared_in_every_form(folder: Path) -> None:
    curve = {"step": [1, 2], "loss": [1.0, 0.5], "seconds": [1.5, 1.5]}
    make_run(
        folder / "runs" / "a", LABELS, answers(LABELS, range(0, 200, 4)), name="sft-noisy", rung="sft-noisy"
    )
    make_run(folder / "runs" / "b", LABELS, answers(LABELS, range(0, 200, 8)), name="sft-clean", rung="sft-clean",
             curve=curve)  # fmt: skip
    make_run(folder / "runs" / "c", LABELS, LABELS, rung="grpo", status="started")
    done = run("train compare runs --draws 200 --html compare.html")
    assert done.code == 0
    assert "sft-clean: +0.125 (" in done.out
    assert "balanced accuracy over sft-noisy, p < 0.001." in done.out
    assert "Left out: runs/c: the run has not finished (status 'started')" in done.out
    page = (folder / "compare.html").read_text("utf-8")
    assert "Loss by step" in page
    found = run("train compare runs/b runs/a --draws 200 --format json --baseline sft-noisy").json
    assert found["baseline"] == "sft-noisy"
    assert found["differences"][0]["difference"]["estimate"] == pytest.approx(0.125)
    assert found["runs"][1]["cost"]["seconds"] == 3.0
    assert run("train compare runs --draws 200 --format markdown --out table.md").out == ""
    assert "| sft-clean | sft-clean | 0 |" in (folder / "table.md").read_text("utf-8")
    accuracy = run(
        "train compare runs --draws 200 --metric accuracy --pair sft-noisy:sft-clean --format json"
    ).json
    assert [d["difference"]["estimate"] for d in accuracy["differences"]] == pytest.approx([0.125, -0.125])
    assert json.loads(json.dumps(accuracy, allow_nan=False)) == accuracy


def test_the_same_seed_gives_the_same_report(folder: Path) -> None:
    for name, every in (("a", 4), ("b", 6)):
        make_run(folder / "runs" / name, LABELS, answers(LABELS, range(0, 200, every)), rung=name)
    words = "train compare runs --draws 200 --metric f1"
    assert run(words).out == run(words).out
    assert run(words).out != run(f"{words} --seed 1").out


def test_the_pages_name_options_that_exist() -> None:
    helps = {
        name: run(f"train {name} --help").out
        for name in ("pressure", "compare", "ledger record", "ledger open")
    }
    known = set(re.findall(r"--[a-z][a-z-]*", " ".join(helps.values())))
    for page in ("train-pressure.md", "train-compare.md"):
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", (ROOT / "docs" / page).read_text("utf-8")))
        assert len(named) > 5
        assert named <= known, f"{page} names {named - known}"
