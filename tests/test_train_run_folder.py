"""Run folders: what they record, what they refuse, and what a kill leaves."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from audit.errors import ArgumentError, InputError
from train.run_folder import RunFolder, git_state, versions

ROOT = Path(__file__).parents[1]
CONFIG = {"task": {"data": "a/data.csv", "labels": ("0", "1")}, "sft": {"epochs": 2.0}, "run": {"out": "x"}}


def start(path: Path, **changes: Any) -> RunFolder:
    settings: dict[str, Any] = {"name": "one", "rung": "sft-clean", "seed": 0, "config": CONFIG, **changes}
    return RunFolder(path).start(**settings)


def test_a_run_records_what_it_was(tmp_path: Path) -> None:
    run = start(tmp_path / "runs" / "one", parent="zero", model="tiny")
    info = json.loads((run.path / "run.json").read_text("utf-8"))
    assert info["config"]["task"]["labels"] == ["0", "1"]
    assert (info["status"], info["parent"], info["model"], info["finished"]) == (
        "started",
        "zero",
        "tiny",
        None,
    )
    assert info["versions"]["python"].startswith("3.")
    assert set(info["git"]) == {"commit", "dirty"}
    assert not run.finished
    run.finish(digest="abc")
    assert run.finished
    assert run.info["digest"] == "abc"
    assert run.info["started"] <= run.info["finished"]


def test_a_finished_run_is_not_run_again(tmp_path: Path) -> None:
    start(tmp_path).finish()
    with pytest.raises(ArgumentError, match="has finished"):
        start(tmp_path)


def test_an_unfinished_run_goes_on_and_keeps_its_start(tmp_path: Path) -> None:
    run = start(tmp_path)
    begun = run.info["started"]
    run.close()
    again = start(tmp_path, config={**CONFIG, "run": {"out": "y"}})
    assert again.info["started"] == begun
    assert len(again.info["taken_up"]) == 1
    again.close()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"config": {**CONFIG, "sft": {"epochs": 3.0}}}, r"sft\.epochs = 2\.0, not 3\.0"),
        ({"config": {**CONFIG, "grpo": {"cap": 9}}}, r"grpo\.cap = None, not 9"),
        ({"config": {**CONFIG, "task": {**CONFIG["task"], "data": "a/other.csv"}}}, r"task\.data"),
        ({"seed": 1}, "seed 0, not 1"),
        ({"rung": "grpo"}, "rung 'sft-clean', not 'grpo'"),
        ({"parent": "p"}, "parent None, not 'p'"),
    ],
)
def test_another_config_is_refused_by_name(tmp_path: Path, changes: dict[str, Any], named: str) -> None:
    start(tmp_path).close()
    before = (tmp_path / "run.json").read_text("utf-8")
    with pytest.raises(ArgumentError, match=named):
        start(tmp_path, **changes)
    assert (tmp_path / "run.json").read_text("utf-8") == before
    start(tmp_path).close()  # the lock is free again


def test_the_data_may_be_named_from_another_folder(tmp_path: Path) -> None:
    start(tmp_path).close()
    start(tmp_path, config={**CONFIG, "task": {**CONFIG["task"], "data": "../a/data.csv"}}).close()


def test_two_processes_do_not_write_one_run(tmp_path: Path) -> None:
    run = start(tmp_path)
    code = (
        "from train.run_folder import RunFolder\n"
        f"RunFolder({str(tmp_path)!r}).start(name='one', rung='sft-clean', seed=0, config={{}})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "is written by another process" in done.stderr
    run.finish()


def test_only_the_first_of_several_processes_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    run = start(tmp_path / "run")
    run.log(step=1, loss=1.0)
    run.metrics("test", {"auc": 1.0})
    run.scores("test", pd.DataFrame({"item": ["a"], "label": ["1"], "score": [1.0], "prediction": ["1"]}))
    run.finish()
    assert not run.path.exists()
    monkeypatch.setenv("RANK", "0")
    assert RunFolder(tmp_path).main


def test_the_curve_takes_new_columns_and_missing_values(tmp_path: Path) -> None:
    run = start(tmp_path)
    assert run.curve().empty
    run.log(step=1, loss=0.1 + 0.2, note="a, b")
    run.log(step=2, loss=math.nan, reward=0.5)
    run.log(step=3, reward=None, tokens=12)
    curve = run.curve()
    assert list(curve.columns) == ["step", "loss", "note", "reward", "tokens"]
    assert curve["step"].tolist() == [1, 2, 3]
    assert curve["loss"].iloc[0] == 0.1 + 0.2, "numbers come back to the last digit"
    assert curve["loss"].isna().tolist() == [False, True, True]
    assert curve["note"].iloc[0] == "a, b"
    assert curve["tokens"].iloc[2] == 12


def test_a_line_cut_by_a_kill_is_dropped(tmp_path: Path) -> None:
    run = start(tmp_path)
    for step in (1, 2, 3):
        run.log(step=step, loss=float(step))
    run.close()
    whole = run.curve_file.read_bytes()
    run.curve_file.write_bytes(whole[:-3])
    assert run.curve()["step"].tolist() == [1, 2]
    again = start(tmp_path)
    again.log(step=3, loss=3.0)
    assert again.curve_file.read_bytes() == whole
    again.close()


def test_resuming_drops_what_no_checkpoint_holds(tmp_path: Path) -> None:
    run = start(tmp_path)
    for step in range(1, 6):
        run.log(step=step, loss=1.0 / step)
    run.resume_at(3)
    run.log(step=4, loss=0.25)
    assert run.curve()["step"].tolist() == [1, 2, 3, 4]
    run.resume_at(0)
    assert run.curve().empty


def test_scores_come_back_as_they_were(tmp_path: Path) -> None:
    run = start(tmp_path)
    frame = pd.DataFrame(
        {
            "item": ["a", 'b, "c"\n', "ü"],
            "label": ["0", "1", "1"],
            "score": [0.1, 1.0 / 3.0, 1.0],
            "prediction": ["0", None, "1"],
            "p_0": [0.9, float("nan"), 0.0],
        }
    )
    run.scores("validation", frame)
    back = run.read_scores("validation")
    assert back["item"].tolist() == frame["item"].tolist()
    assert back["label"].tolist() == ["0", "1", "1"], "labels stay text"
    assert back["score"].tolist() == frame["score"].tolist()
    assert back["prediction"].isna().tolist() == [False, True, False]
    assert back["p_0"].isna().tolist() == [False, True, False]
    with pytest.raises(ArgumentError, match="'score'"):
        run.scores("test", frame.drop(columns="score"))
    with pytest.raises(InputError, match="no scores of 'test'"):
        run.read_scores("test")
    with pytest.raises(ArgumentError, match="cannot name a file"):
        run.scores("../up", frame)


def test_metrics_add_up_by_split(tmp_path: Path) -> None:
    run = start(tmp_path)
    run.metrics("validation", {"auc": 0.5, "f1": math.nan})
    run.metrics("test", {"auc": pd.Series([1.0]).iloc[0]})
    assert run.read_metrics() == {"validation": {"auc": 0.5, "f1": None}, "test": {"auc": 1.0}}


def test_checkpoints_go_when_the_run_is_over(tmp_path: Path) -> None:
    run = start(tmp_path)
    (run.checkpoints / "checkpoint-1").mkdir(parents=True)
    run.finish()
    assert not run.checkpoints.exists()


def test_spoilt_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{", "utf-8")
    with pytest.raises(InputError, match=r"run\.json cannot be read"):
        start(tmp_path)
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(InputError, match="cannot be written"):
        start(tmp_path / "file")


def test_git_may_be_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert git_state(str(tmp_path)) == {"commit": None, "dirty": None}
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state(str(ROOT)) == {"commit": None, "dirty": None}
    assert "numpy" in versions()
