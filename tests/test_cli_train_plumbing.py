"""The command ``audit train plumbing``: forms of the report, options, exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.command import run, write_csv
from tests.made_rollouts import Plan, make_rollouts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run whose cap taxes length, in one file a step."""
    frame, _ = make_rollouts(Plan(steps=6, groups=32, items=150, planted=("cap",)), seed=3)
    frame["label"] = frame["label"].map({"0": "no", "1": "<b>yes</b>"})
    frame["answer"] = frame["answer"].map({"0": "no", "1": "<b>yes</b>"})
    (tmp_path / "run" / "rollouts").mkdir(parents=True)
    for step, part in frame.groupby("step"):
        part.to_parquet(tmp_path / "run" / "rollouts" / f"step-{step:06d}.parquet")
    return tmp_path / "run"


def test_text(folder: Path) -> None:
    ran = run("train", "plumbing", folder, "--bands", "0,60,120,180")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("! cap-tax: 100% of capped rollouts score zero, against ")
    assert re.search(r"^120 to 180 +[\d,]+ +0\.\d{3} ", ran.out, re.MULTILINE)
    assert "cap 180" in " ".join(ran.out.split())
    assert all(len(line) <= 100 for line in ran.out.splitlines())


def test_json_file_and_page(folder: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "report.json", tmp_path / "report.html"
    ran = run("train", "plumbing", folder, "--format", "json", "--out", out, "--html", page, "--level", "0.9")
    assert (ran.code, ran.out) == (0, "")
    found = json.loads(out.read_text("utf-8"))
    assert [finding["code"] for finding in found["findings"]] == ["cap-tax"]
    assert found["settings"]["level"] == 0.9
    assert len(found["steps"]) == 6
    text = page.read_text("utf-8")
    assert text.count("<svg") >= 5
    assert "<b>yes</b>" not in text
    assert "&lt;b&gt;yes" in text
    assert not re.search(r"<script|(src|href)=.http", text)
    assert found["findings"][0]["message"] in text


def test_every_option_reaches_the_report(tmp_path: Path) -> None:
    frame, contested = make_rollouts(Plan(steps=2), seed=3)
    lines = frame.rename(columns={"text": "output", "reward": "score", "item": "input", "label": "y"})
    lines = lines[["step", "input", "output", "score", "y"]].assign(acc=lines["score"] / 2)
    lines.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    items = frame.drop_duplicates("item")
    rows = list(zip(items["item"], ["x", *["y"] * (len(items) - 1)], strict=True))
    data = write_csv(tmp_path / "data.csv", ["id", "y"], rows)
    columns = ["conflict", "disagreement", "labels", "majority", "resolve", "row", "label", "id", "note"]
    named = [(k, 1, "", "", "", k, "1", name, "") for k, name in enumerate(contested)]
    conflicts = write_csv(tmp_path / "conflicts.csv", columns, named)
    more = ("--item", "id", "--label", "y", "--reward", "acc", "--close-tag", "thought", "--bands", "0,10,20")
    ran = run(
        "train", "plumbing", tmp_path / "a.jsonl", "--data", data, "--conflicts", conflicts, *more, "--format", "json"
    )  # fmt: skip
    assert ran.code == 0, ran.err
    found = ran.json
    assert found["source"]["form"] == "verl"
    assert found["tax"]["highest"] == 0.5
    assert found["pool"]["contested"]["data"] > 0
    assert {share["value"] for share in found["pool"]["classes"]} == {"0", "1", "x", "y"}
    assert found["closed"]["estimate"] == 1.0
    assert [(band["low"], band["high"]) for band in found["bands"]] == [
        (10, 20)
    ]  # all texts have 17 characters
    assert found["settings"]["conflicts"] == str(conflicts)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--bands", "many"), "give a number, or edges"),
        (("--bands", "3,2"), "must rise"),
        (("--label", "nothing"), "--label"),
        (("--conflicts", "nothing.csv"), "nothing.csv"),
        (("--level", "2"), "confidence level"),
    ],
)
def test_what_does_not_fit_is_told(folder: Path, more: tuple[str, str], told: str) -> None:
    ran = run("train", "plumbing", folder, *more)
    assert ran.code == 2
    assert told in ran.err
    assert "Traceback" not in ran.err


def test_no_file_is_overwritten_by_its_own_report(tmp_path: Path) -> None:
    frame, _ = make_rollouts(Plan(steps=1), seed=3)
    frame.to_parquet(tmp_path / "a.parquet")
    ran = run("train", "plumbing", tmp_path / "a.parquet", "--html", tmp_path / "a.parquet")
    assert ran.code == 2
    assert "read or written already" in ran.err
