"""Logs, scores, ledgers and options that once ended in a traceback, a false number or an overwritten input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command import Ran, run, write_csv
from tests.made_runs import answers, make_run

COLUMNS = ["item", "label", "score", "prediction"]
ROWS = [(f"i{i}", i % 2, round((i * 37 % 100) / 100, 2), i * 37 % 100 > 50) for i in range(40)]
ROWS = [(item, label, score, int(called)) for item, label, score, called in ROWS]


def rollouts(path: Path, **changed: Any) -> Path:
    lines = [
        {
            "step": step, "group": group, "sample": sample, "item": f"i{group}", "label": "1", "text": "a</think>1",
            "length": 5 + sample, "truncated": False, "closed": True, "answer": "1", "reward": sample % 2, **changed,
        }
        for step in range(3) for group in range(4) for sample in range(4)
    ]  # fmt: skip
    path.mkdir(exist_ok=True)
    (path / "1.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return path


def refused(ran: Ran, *told: str) -> None:
    assert ran.code == 2, ran.out
    assert ran.err.startswith("audit: ")
    assert ran.err.count("\n") == 1
    for words in told:
        assert words in ran.err


# --- rollouts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"reward": float("inf")}, "row 1 has the reward inf"),
        ({"reward": 1e308}, "has the reward 1e+308"),
        ({"reward": 10**400}, "must hold numbers"),
        ({"reward": None}, "no rollout has a reward"),
        ({"step": 1.5}, "steps are whole numbers"),
        ({"length": -5}, "lengths are 0 or more"),
        ({"length": float("inf")}, "has the length inf"),
        ({"truncated": 2}, "true or false"),
        ({"closed": 0.5}, "true or false"),
        ({"cap": "big"}, "the column cap must hold numbers"),
        ({"advantage": float("-inf")}, "has the advantage -inf"),
    ],
)
def test_numbers_of_a_log_that_cannot_be(tmp_path: Path, changed: dict[str, Any], told: str) -> None:
    refused(run("train", "plumbing", rollouts(tmp_path / "log", **changed)), told)


@pytest.mark.parametrize(
    "changed", [{"run": [1]}, {"sample": [1]}, {"sample": {"a": 1}}, {"text": "\ud800 x"}]
)
def test_cells_of_any_kind_are_read(tmp_path: Path, changed: dict[str, Any]) -> None:
    assert run("train", "plumbing", rollouts(tmp_path / "log", **changed), "--format", "json").code == 0


def test_half_of_a_surrogate_pair_in_a_key_becomes_a_sign(tmp_path: Path) -> None:
    from train.rollouts import read_rollouts

    found = read_rollouts(rollouts(tmp_path / "log", item="\ud800 x", label="\U0001f600"))
    assert set(found.frame["item"]) == {"\ufffd x"}
    assert set(found.frame["label"]) == {"\U0001f600"}


def test_a_line_cut_short_is_named(tmp_path: Path) -> None:
    file = rollouts(tmp_path / "log") / "1.jsonl"
    file.write_text(file.read_text("utf-8") + '\n{"step":', "utf-8")
    refused(run("train", "plumbing", tmp_path / "log"), "1.jsonl, line 49", "delete it")
    file.write_text("[" * 100_000, "utf-8")
    refused(run("train", "plumbing", tmp_path / "log"), "line 1", "nested too deeply")
    file.write_text(
        '{"step":1,"group":1,"reward":1,"item":' + '[{"content":' * 450 + "1" + "}]" * 450 + "}", "utf-8"
    )
    refused(run("train", "plumbing", tmp_path / "log"), "the column item is nested too deeply")


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    file = rollouts(tmp_path / "log") / "1.jsonl"
    file.write_text(file.read_text("utf-8"), "utf-8-sig")
    assert run("train", "plumbing", tmp_path / "log").code == 0


def test_rollouts_that_stand_twice_are_told(tmp_path: Path) -> None:
    log = rollouts(tmp_path / "log")
    assert "repeat the step" not in run("train", "plumbing", log).out
    (log / "2.jsonl").write_bytes((log / "1.jsonl").read_bytes())
    assert "48 rollouts repeat the step, group and sample" in run("train", "plumbing", log).out


def test_a_reward_named_twice_and_an_item_that_is_nowhere(tmp_path: Path) -> None:
    log = rollouts(tmp_path / "log")
    refused(run("train", "plumbing", log, "--reward", "reward,reward"), "names 'reward' twice")
    refused(run("train", "plumbing", log, "--item", "nowhere"), "no column 'nowhere'")


# --- inputs are never written over ------------------------------------------------------------------------------


def test_no_report_takes_the_place_of_an_input(tmp_path: Path) -> None:
    a, b = (write_csv(tmp_path / f"{name}.csv", COLUMNS, ROWS) for name in "ab")
    log = rollouts(tmp_path / "log")
    ledger = tmp_path / "ledger.jsonl"
    ledger.write_text("{}\n", "utf-8")
    for words, out in (
        (["operating-point", a, "--against", b], b),
        (["operating-point", a, "--choose-on", b], b),
        (["route", a, b], b),
        (["route", a, a, "--conflicts", b], b),
        (["plumbing", log], log / "1.jsonl"),
        (["pressure", ledger], ledger),
        (["pressure", tmp_path], ledger),
    ):
        before = out.read_bytes()
        refused(run("train", *words, "--out", out), "give the output another name")
        assert out.read_bytes() == before


# --- scores -----------------------------------------------------------------------------------------------------


def test_one_cluster_gives_no_verdict(tmp_path: Path) -> None:
    a = write_csv(tmp_path / "a.csv", [*COLUMNS, "page"], [(*row, "p") for row in ROWS])
    b = write_csv(tmp_path / "b.csv", COLUMNS, [(*row[:3], row[1]) for row in ROWS])
    for words in (["route", a, b], ["operating-point", a, "--against", b]):
        refused(run("train", *words, "--cluster", "page"), "are of one 'page'", "leave --cluster out")


def test_scores_of_the_other_class_are_told(tmp_path: Path) -> None:
    good = [
        (item, label, 0.9 - score * 0.1 if label else score * 0.5, label) for item, label, score, _ in ROWS
    ]
    file = write_csv(tmp_path / "a.csv", COLUMNS, good)
    words = ["train", "operating-point", file, "--draws", "100"]
    assert "the wrong way round" not in run(*words).out
    assert "the wrong way round" in " ".join(run(*words, "--positive", "0").out.split())


def test_a_conflict_file_without_conflicts(tmp_path: Path) -> None:
    data = write_csv(
        tmp_path / "d.csv", ["text", "label"], [("i1", "1"), ("i1", "1"), ("i2", "0"), ("i2", "0")]
    )
    none = tmp_path / "none.csv"
    assert (
        run("dupes", data, "--item", "text", "--label", "label", "--conflicts", none, "--draws", "200").code
        == 0
    )
    a = write_csv(tmp_path / "a.csv", COLUMNS, ROWS)
    b = write_csv(tmp_path / "b.csv", COLUMNS, [(*row[:3], row[1]) for row in ROWS])
    words = ["--conflicts", none, "--format", "json"]
    assert run("train", "route", a, b, *words, "--draws", "100").json["ambiguity"]["items"] == 0
    found = run("train", "plumbing", rollouts(tmp_path / "log"), *words).json
    assert found["pool"]["contested"]["seen"]["estimate"] == 0.0


def test_costs_that_overflow(tmp_path: Path) -> None:
    a = write_csv(tmp_path / "a.csv", COLUMNS, ROWS)
    refused(run("train", "route", a, a, "--cost-a", "1e308", "--cost-b", "1e308"), "a cost is a number")


# --- ledgers ----------------------------------------------------------------------------------------------------

ENTRY: dict[str, Any] = {
    "time": "2026-01-01", "run": "r", "model": "m", "split": "validation", "purpose": "validation", "rows": 100,
    "metrics": {"accuracy": 0.8, "n": 100},
}  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [
        {"metrics": {"accuracy": float("nan")}},
        {"metrics": {"accuracy": float("inf")}},
        {"metrics": {"accuracy": 80}},
        {"metrics": {"accuracy": True}},
        {"metrics": {"loss": 1e308}},
        {"metrics": {"accuracy": 10**400}},
        {"metrics": {"accuracy": 0.8, "n": -5}},
        {"metrics": {"accuracy": 0.8, "n": float("nan")}},
        {"rows": float("inf")},
        {"rows": -5},
        {"rows": 10**400},
    ],
)
def test_a_line_with_a_number_that_cannot_be_counts_for_nothing(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    file = tmp_path / "ledger.jsonl"
    holdout = {**ENTRY, "purpose": "holdout", "split": "test"}
    file.write_text("\n".join(map(json.dumps, [ENTRY, {**ENTRY, **changed}, holdout])) + "\n", "utf-8")
    found = run("train", "pressure", file, "--format", "json")
    assert found.json["damaged"] == [2]
    assert found.json["finals"][0]["drop"]["estimate"] == 0.0
    file.write_text(json.dumps({**ENTRY, **changed}) + "\n", "utf-8")
    refused(run("train", "pressure", file), "1 lines cannot be read")


def test_nothing_is_added_to_a_file_that_is_no_ledger(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "data.csv", ["text", "label"], [("a", 1)])
    before = table.read_bytes()
    words = ["--run", "r", "--model", "m"]
    refused(run("train", "ledger", "record", table, *words, "--metric", "accuracy=0.8"), "is no ledger")
    refused(run("train", "ledger", "open", table, *words), "is no ledger")
    assert table.read_bytes() == before


def test_a_metric_twice_and_a_name_of_two_lines(tmp_path: Path) -> None:
    words = ["train", "ledger", "record", tmp_path / "l.jsonl", "--run", "r", "--metric", "accuracy=0.5"]
    refused(run(*words, "--model", "m", "--metric", "accuracy=0.6"), "given twice")
    assert run(*words, "--model", "a\nb\x1b[31m").out.count("\n") == 1


# --- runs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "curve", [b"step,loss\nx,y\n1e400,2\n", b"\xff\xfe\x00\n1\n", b"step,loss\n1,-1e308\n2,1e308\n"]
)
def test_a_curve_that_no_chart_can_show(tmp_path: Path, curve: bytes) -> None:
    labels = ["1"] * 10 + ["0"] * 10
    for name in ("sft", "grpo"):
        make_run(tmp_path / name, labels, answers(labels, [1, 2, 12]), rung=name)
        (tmp_path / name / "curve.csv").write_bytes(curve)
    words = ["train", "compare", tmp_path, "--draws", "100"]
    assert run(*words, "--html", tmp_path / "page.html").code == 0
    assert "NaN" not in run(*words, "--format", "json").out
    refused(run(*words, "--out", tmp_path / "sft" / "run.json"), "give the output another name")


def two_runs(folder: Path) -> tuple[Path, dict[str, Any]]:
    labels = ["1"] * 10 + ["0"] * 10
    for name in ("sft", "grpo"):
        make_run(folder / name, labels, answers(labels, [1, 2, 12]), rung=name)
    file = folder / "sft" / "run.json"
    return file, json.loads(file.read_text("utf-8"))


@pytest.mark.parametrize(
    "changed",
    [
        {"parent": [1]},
        {"parent": 3},
        {"config": {"task": {"positive": 1}}},
        {"config": {"task": {"positive": [1]}}},
    ],
)
def test_a_run_that_says_odd_things_of_itself_is_compared(tmp_path: Path, changed: dict[str, Any]) -> None:
    file, about = two_runs(tmp_path)
    file.write_text(json.dumps({**about, **changed}), "utf-8")
    assert len(run("train", "compare", tmp_path, "--draws", "100", "--format", "json").json["runs"]) == 2


@pytest.mark.parametrize("text", ["[1]", "null", "NaN", "[" * 100_000])
def test_a_run_that_cannot_be_read_is_left_out(tmp_path: Path, text: str) -> None:
    file, _ = two_runs(tmp_path)
    file.write_text(text, "utf-8")
    found = run("train", "compare", tmp_path, "--draws", "100", "--format", "json").json
    assert [Path(one["path"]).name for one in found["left_out"]] == ["sft"]
    assert "run.json cannot be read" in found["left_out"][0]["reason"]


def test_a_link_to_a_run_is_no_other_run_and_metrics_may_be_odd(tmp_path: Path) -> None:
    two_runs(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "sft")
    (tmp_path / "sft" / "metrics.json").write_text('{"test": 5}', "utf-8")
    assert len(run("train", "compare", tmp_path, "--draws", "100", "--format", "json").json["runs"]) == 2


@pytest.mark.parametrize(
    ("estimate", "words"),
    [("NaN", "holds NaN"), ('"x"', "must be a number or null"), ("5", "it lies in [0, 1]")],
)
def test_a_band_of_impossible_numbers(tmp_path: Path, estimate: str, words: str) -> None:
    two_runs(tmp_path)
    saved = tmp_path / "audit.json"
    saved.write_text(
        f'{{"disagreement": {{"estimate": {estimate}, "low": null, "high": null, "method": "x", "level": 0.95, '
        '"pair_weighted": 1, "row_weighted": 1, "reason": null}, "flip_rate": {"classes": 2, "reason": null}}',
        "utf-8",
    )
    refused(run("train", "compare", tmp_path, "--audit", saved), words)
