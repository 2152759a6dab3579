"""The command line: options, forms of the report, exit codes, guesses, plan and ceiling."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from scipy import stats

from tests.command import run, write_csv

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "risk_driver.csv"
NAMED = ("--item", "passage,entity,driver", "--label", "label")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """40 items twice, 8 of which disagree, and 100 items once."""
    rows = [(f"Text {n}", "ab"[n % 2], "train") for n in range(40)]
    rows += [(f"text  {n}", "ab"[(n + (n < 8)) % 2], "test" if n < 20 else "train") for n in range(40)]
    rows += [(f"single {n}", "ab"[n % 2], "train") for n in range(100)]
    return write_csv(tmp_path / "pairs.csv", ["text", "label", "split"], rows)


def test_contract_paths(pairs: Path) -> None:
    found = run(
        "dupes", pairs, "--item", "text", "--label", "label", "--split", "split", "--format", "json"
    ).json
    assert (found["data"]["rows"], found["data"]["missing_label"], found["data"]["classes"]) == (
        180,
        0,
        ["a", "b"],
    )
    assert [found["repeats"][k] for k in ("items", "rows", "pairs", "conflicts")] == [40, 80, 40, 8]
    d, rate, band = found["disagreement"], found["flip_rate"], found["ceiling"]
    assert d["estimate"] == pytest.approx(0.2)
    assert d["method"] == "Wilson"
    ends = stats.binomtest(8, 40).proportion_ci(method="wilson")
    assert (d["low"], d["high"]) == (pytest.approx(ends.low), pytest.approx(ends.high))
    assert rate["classes"] == 2
    assert rate["low"] < rate["estimate"] < rate["high"]
    assert band["lower"] == pytest.approx(0.8)
    assert band["upper"] == pytest.approx(1 - 0.1127016653792583)
    assert band["low"] == pytest.approx(1 - d["high"])
    assert band["high"] == pytest.approx(1 - rate["low"])
    assert [part["value"] for part in found["by"]["split"]] == ["train"]
    leak = next(alarm for alarm in found["alarms"] if alarm["code"] == "leakage")
    assert leak["figures"]["items"] == 20


def test_guess_says_what_it_took(pairs: Path) -> None:
    ran = run("dupes", pairs, "--format", "json")
    assert ran.code == 0
    data = ran.json["data"]
    assert (data["item"], data["label"]) == (["text"], "label")
    assert any("text" in note for note in data["notes"])
    assert any("label" in note for note in data["notes"])


def test_guess_asks_when_in_doubt(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "odd.csv", ["p", "q"], [("1", "2"), ("3", "4"), ("5", "6")])
    ran = run("dupes", path)
    assert ran.code == 2
    assert "--label" in ran.err or "--item" in ran.err
    assert len(ran.err.strip().splitlines()) == 1


@pytest.mark.parametrize("form", ["text", "markdown", "html", "json"])
def test_every_form_has_the_verdict_and_the_caveat(form: str, pairs: Path) -> None:
    ran = run("dupes", pairs, "--item", "text", "--label", "label", "--format", form)
    assert ran.code == 0
    assert "20%" in ran.out
    if form != "json":
        assert "Shared mistakes are invisible" in ran.out


def test_out_and_html_write_files(pairs: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "audit.json", tmp_path / "report.html"
    ran = run(
        "dupes", pairs, "--item", "text", "--label", "label", "--format", "json", "--out", out, "--html", page
    )
    assert (ran.code, ran.out) == (0, "")
    assert json.loads(out.read_text(encoding="utf-8"))["repeats"]["items"] == 40
    assert page.read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")
    nowhere = run(
        "dupes", pairs, "--item", "text", "--label", "label", "--out", tmp_path / "no" / "audit.txt"
    )
    assert nowhere.code == 2
    assert str(tmp_path / "no") in nowhere.err


def test_standard_input_and_gzip_give_the_same(pairs: Path, tmp_path: Path) -> None:
    packed = tmp_path / "pairs.csv.gz"
    packed.write_bytes(gzip.compress(pairs.read_bytes()))
    words = ("--item", "text", "--label", "label", "--format", "json")
    straight = run("dupes", pairs, *words).json
    for ran in (run("dupes", packed, *words), run("dupes", "-", *words, stdin=pairs.read_bytes())):
        assert ran.json["disagreement"] == straight["disagreement"]
        assert ran.json["repeats"] == straight["repeats"]


@pytest.mark.parametrize(
    ("threshold", "end", "code"),
    [(0.8, "lower", 0), (0.81, "lower", 1), (0.88, "upper", 0), (0.89, "upper", 1)],
)
def test_gate(threshold: float, end: str, code: int, pairs: Path) -> None:
    ran = run(
        "dupes", pairs, "--item", "text", "--label", "label", "--fail-under", str(threshold), "--fail-on", end
    )  # fmt: skip
    assert ran.code == code
    assert ("gate passed" if code == 0 else "gate failed") in ran.err
    assert "disagree" in ran.out


def test_gate_fails_without_a_ceiling(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "single.csv", ["text", "label"], [(f"t{n}", "ab"[n % 2]) for n in range(9)])
    ran = run("dupes", path, "--item", "text", "--label", "label", "--fail-under", "0.5")
    assert ran.code == 1
    assert "no ceiling" in ran.err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("--level 1.5", "confidence level"),
        ("--fail-under 90", "divide a percentage by 100"),
        ("--classes a", "'b'"),
        ("--by colour", "colour"),
        ("--label-columns text,label", "--label"),
        ("--item text --row-id none", "none"),
        ("--draws 0", "draw"),
        ("--show-conflicts -1", "conflicts"),
    ],
)
def test_unusable_arguments_are_one_line_and_code_2(words: str, part: str, pairs: Path) -> None:
    ran = run("dupes", pairs, "--item", "text", "--label", "label", *words.split())
    assert ran.code == 2, ran.out
    assert part in ran.err
    assert "Traceback" not in ran.err
    assert len(ran.err.strip().splitlines()) <= 4  # the usage error of the option parser has a few lines


def test_missing_file_is_named(tmp_path: Path) -> None:
    ran = run("dupes", tmp_path / "nowhere.csv")
    assert ran.code == 2
    assert "nowhere.csv" in ran.err


def test_ceiling_from_audit_from_data_and_from_numbers(pairs: Path, tmp_path: Path) -> None:
    saved = tmp_path / "audit.json"
    run("dupes", pairs, "--item", "text", "--label", "label", "--format", "json", "--out", saved)
    placed = [
        run("ceiling", source, *more, "--score", "0.95", "--n-test", "1000", "--format", "json").json
        for source, more in (
            (saved, ()),
            (pairs, ("--item", "text", "--label", "label")),
            ("--disagreement=0.2", ("--pairs", "40")),
        )
    ]
    assert placed[0] == placed[1] == placed[2]
    assert placed[0]["position"] == "above"
    assert placed[0]["band"]["upper"] == pytest.approx(0.8872983)
    inside = run("ceiling", saved, "--score", "0.85")
    assert "inside the band [0.800, 0.887]" in inside.out
    below = run("ceiling", saved, "--score", "0.5", "--n-test", "400", "--format", "json").json
    assert (below["position"], below["settled"]) == ("below", True)
    assert run("ceiling", saved).code == 2
    assert run("ceiling", saved, "--score", "93").code == 2
    assert run("ceiling", tmp_path / "no.json", "--score", "0.9").code == 2


def test_plan_and_merge_round_trip(pairs: Path, tmp_path: Path) -> None:
    plan, answers, merged = (tmp_path / name for name in ("plan.csv", "answers.csv", "merged.csv"))
    named = ("--item", "text", "--label", "label")
    ran = run("plan", pairs, *named, "--rows", "30", "--by", "split", "--out", plan, "--seed", "3")
    assert ran.code == 0, ran.err
    assert "Drawn: 30 of 100 items" in ran.out
    lines = plan.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "plan_row,text,split,label"
    assert all(line.endswith(",") for line in lines[1:])  # blind: no first label
    again = tmp_path / "again.csv"
    run("plan", pairs, *named, "--rows", "30", "--by", "split", "--out", again, "--seed", "3")
    assert again.read_bytes() == plan.read_bytes()
    run("plan", pairs, *named, "--rows", "30", "--by", "split", "--out", again, "--seed", "4")
    assert again.read_bytes() != plan.read_bytes()
    first = {row: line.split(",") for row, line in enumerate(pairs.read_text("utf-8").splitlines())}
    drawn = [line.split(",")[0] for line in lines[1:]]
    labels = [first[int(number)][1] for number in drawn]
    assert labels.count("a") == labels.count("b") == 15  # in proportion to the first labels
    answers.write_text(
        "\n".join([lines[0], *(f"{line}a" for line in lines[1:26]), *lines[26:]]) + "\n", "utf-8"
    )
    ran = run("plan", pairs, *named, "--merge", answers, "--out", merged)
    assert ran.code == 0, ran.err
    assert "25 labels of round 2. 5 of the plan are still blank" in ran.out
    kept = merged.read_text(encoding="utf-8").splitlines()
    assert [line.rsplit(",", 1)[0] for line in kept[1:181]] == pairs.read_text("utf-8").splitlines()[1:]
    found = run("dupes", merged, *named, "--format", "json").json
    assert found["repeats"]["items"] == 65
    ran = run("plan", merged, *named, "--rows", "10", "--out", plan)  # the next round, from the merged data
    assert "Drawn: 10 of 75 items" in ran.out
    second = "\n".join(
        f"{line}{'c' if n else ''}" for n, line in enumerate(plan.read_text("utf-8").splitlines())
    )
    (tmp_path / "second.csv").write_text(second, "utf-8")
    ran = run("plan", merged, *named, "--merge", tmp_path / "second.csv", "--out", tmp_path / "third.csv")
    assert "205 rows of the data and 10 labels of round 3." in ran.out
    assert "Labels that the data did not have: 'c'" in ran.out
    third = (tmp_path / "third.csv").read_text("utf-8").splitlines()
    assert third[0] == "text,label,split,label_round"
    assert [line.rsplit(",", 1)[1] for line in third[1:]] == ["1"] * 180 + ["2"] * 25 + ["3"] * 10
    wrong = answers.read_text("utf-8").replace("single", "other")
    answers.write_text(wrong, "utf-8")
    ran = run("plan", pairs, *named, "--merge", answers, "--out", merged)
    assert ran.code == 2
    assert "the file the plan was drawn from" in ran.err


def test_no_output_replaces_what_was_read(pairs: Path, tmp_path: Path) -> None:
    before = pairs.read_bytes()
    named = ("--item", "text", "--label", "label")
    other = tmp_path / "conflicts.csv"
    run("dupes", pairs, *named, "--conflicts", other)
    for words in (
        ("dupes", pairs, *named, "--out", pairs),
        ("dupes", pairs, *named, "--html", pairs),
        ("dupes", pairs, *named, "--conflicts", tmp_path / "." / "pairs.csv"),
        ("dupes", pairs, *named, "--out", tmp_path / "a", "--html", tmp_path / "a"),
        ("plan", pairs, *named, "--rows", "3", "--out", pairs),
        ("resolve", pairs, other, *named, "--out", pairs),
        ("resolve", pairs, other, *named, "--out", other),
    ):
        ran = run(*words)
        assert ran.code == 2, words
        assert "give the output another name" in ran.err
    assert pairs.read_bytes() == before
    plan = tmp_path / "plan.csv"
    plan.write_text("plan_row,text,label\n81,single 0,a\n", "utf-8")
    ran = run("plan", pairs, *named, "--rows", "3", "--out", plan)
    assert ran.code == 2
    assert "1 answers in it" in ran.err


def test_plan_refuses_to_show_the_label(pairs: Path) -> None:
    ran = run("plan", pairs, "--item", "text", "--label", "label", "--rows", "3", "--show", "label")
    assert ran.code == 2
    assert "blind" in ran.err


def test_plan_without_a_file_tells_the_number() -> None:
    assert run("plan --half-width 0.05 --rate 0.1").out.startswith("89 items labelled twice")
    assert run("plan --half-width 0.01 --rate 0.1").out.startswith("2,215 items labelled twice")


def test_example_is_clean_and_near_the_planted_noise() -> None:
    ran = run(
        "dupes", EXAMPLE, *NAMED, "--split", "split", "--annotator", "annotator", "--time", "created_at", "--row-id",
        "id", "--format", "json",
    )  # fmt: skip
    found = ran.json
    assert found["alarms"] == []
    assert found["disagreement"]["estimate"] == pytest.approx(0.18, abs=0.01)
    assert found["comparisons"]["split"]["p_value"] > 0.05


def test_same_input_same_output(pairs: Path) -> None:
    words = ("dupes", pairs, "--item", "text", "--label", "label", "--split", "split", "--format", "json")
    assert run(*words).out == run(*words).out


def test_installed_command_in_another_locale(pairs: Path) -> None:
    """The console script in a C locale, with its output in a pipe that closes early."""
    script = Path(sys.executable).with_name("audit")
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": ""}
    env.pop("PYTHONIOENCODING")
    ran = subprocess.run(
        [script, "dupes", pairs, "--item", "text", "--label", "label"], capture_output=True, env=env, check=False
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "ε".encode() in ran.stdout
    with subprocess.Popen(
        [script, "dupes", pairs, "--item", "text", "--label", "label", "--format", "html"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env,
    ) as piped:  # fmt: skip
        assert piped.stdout is not None
        piped.stdout.close()
        assert piped.stderr is not None
        assert b"Traceback" not in piped.stderr.read()


def test_docs_of_the_commands_are_up_to_date() -> None:
    """docs/cli*.md are what ``make docs`` writes from the commands' own help."""
    for module, name, page in (
        ("cli.py", "audit", "cli.md"),
        ("relabel/cli.py", "audit relabel", "cli-relabel.md"),
        ("train/cli.py", "audit train", "cli-train.md"),
    ):
        made = subprocess.run(
            [sys.executable, "-m", "typer", module, "utils", "docs", "--name", name],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert (ROOT / "docs" / page).read_text(encoding="utf-8").strip() == made.stdout.strip(), page
