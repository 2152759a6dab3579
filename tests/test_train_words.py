"""What the reports of training call metrics, files and folders."""

from pathlib import Path

import pytest

from tests.command import run, write_csv
from train.words import metric_name, place_name


def test_metrics_in_words() -> None:
    names = {
        name: metric_name(name) for name in ("balanced_accuracy", "average_precision", "f1", "mcc", "auc")
    }
    assert list(names.values()) == ["balanced accuracy", "average precision", "F1", "MCC", "AUC"]


def test_places_are_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_folder = tmp_path / "runs" / "grpo-s0"
    assert place_name(str(run_folder)) == "runs/grpo-s0"
    assert place_name(str(run_folder / "scores-test.parquet")) == "runs/grpo-s0/scores-test.parquet"
    monkeypatch.chdir(run_folder.parents[2])
    assert place_name("/elsewhere/runs/grpo-s0") == "runs/grpo-s0"
    assert place_name("/alone") == "/alone"
    assert [place_name(text) for text in ("runs/grpo-s0", "the data frame")] == [
        "runs/grpo-s0",
        "the data frame",
    ]
    monkeypatch.chdir(tmp_path)
    assert place_name(str(tmp_path)) == "/".join(tmp_path.parts[-2:])


def test_verdicts_tell_short_places(tmp_path: Path) -> None:
    """From any working directory no sentence holds the way to a folder, and the JSON still does."""
    rows = [(n, n % 2, 0.2 + 0.6 * (n % 3 == 0), n % 2 if n % 7 else 1 - n % 2) for n in range(60)]
    columns = ["item", "label", "score", "prediction"]
    a, b = (
        write_csv(tmp_path / name / "scores.csv", columns, rows)
        for name in ("ours", "theirs")
        if _made(tmp_path / name)
    )
    ran = run(
        "train", "operating-point", a, "--against", b, "--draws", "200", "--html", tmp_path / "page.html"
    )
    assert ran.code == 0, ran.err
    told = " ".join(ran.out.split())
    assert "theirs/scores.csv" in told
    assert str(tmp_path) not in told
    assert str(tmp_path) not in (tmp_path / "page.html").read_text("utf-8")
    assert run("train", "operating-point", a, "--draws", "200", "--format", "json").json["source"] == str(a)
    ledger = tmp_path / "ledger.jsonl"
    for model in ("one", "two"):
        words = ("--run", "sft", "--model", model, "--metric", "balanced_accuracy=0.8", "--rows", "90")
        assert run("train", "ledger", "record", ledger, *words).code == 0
    page = tmp_path / "pressure.html"
    ran = run("train", "pressure", ledger, "--html", page)
    assert ran.code == 0, ran.err
    assert "Looks (balanced accuracy)" in ran.out
    assert "balanced_accuracy" not in ran.out + page.read_text("utf-8")


def _made(folder: Path) -> bool:
    folder.mkdir()
    return True
