"""Inputs and options that once ended in a traceback or a false alarm."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

from audit.duplicates import audit_duplicates
from audit.errors import InputError
from audit.labels import spelling_variants
from audit.results import AuditResult
from tests.command import run, write_csv

NAMED = ("--item", "text", "--label", "label")
ROWS = [(f"item {n % 20}", "ab"[n % 3 == 0]) for n in range(60)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "data.csv", ["text", "label"], ROWS)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--seed", "-1"], "0 or more"),
        (["--encoding", "utf-16"], "pass another --encoding"),
        (["--label", "a\nb"], "no column"),
        (["--by", "a\nb"], "no column"),
    ],
)
def test_refused_in_one_line(data: Path, words: list[str], told: str) -> None:
    ran = run("dupes", data, *NAMED, *words)
    assert ran.code == 2
    assert told in ran.err
    assert "Traceback" not in ran.err


def test_a_plan_refuses_a_negative_seed(data: Path, tmp_path: Path) -> None:
    ran = run("plan", data, *NAMED, "--seed", "-1", "--rows", "5", "--out", tmp_path / "plan.csv")
    assert (ran.code, ran.out) == (2, "")


def test_any_number_of_conflicts_may_be_shown(data: Path) -> None:
    ran = run("dupes", data, *NAMED, "--show-conflicts", "9" * 30, "--format", "json")
    assert ran.json["repeats"]["conflicts"] == 20


def test_names_may_hold_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text('"te\nxt",label\na,x\na,y\n', encoding="utf-8")
    ran = run("dupes", path, "--item", "te\nxt", "--label", "label", "--format", "json")
    assert (ran.json["repeats"]["items"], ran.json["repeats"]["conflicts"]) == (1, 1)


def test_no_error_moves_the_terminal(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "data.csv", ["te\x1b[2Jxt", "la\u202ebel\x9b"], [("a", "x")])
    ran = run("dupes", path, *NAMED)
    assert ran.code == 2
    assert ran.err.rstrip("\n").isprintable()


def test_a_plan_finer_than_anybody_can_label() -> None:
    ran = run("plan", "--half-width", "1e-12")
    assert ran.code == 2
    assert "at least 0.000001" in ran.err


def test_brackets_without_end_are_no_saved_audit(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000, encoding="utf-8")
    ran = run("ceiling", path, "--score", "0.9")
    assert (ran.code, ran.err.count("\n")) == (2, 1)


def test_a_file_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff.csv")
    try:
        path.write_text("text,label\na,x\n", encoding="utf-8")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    ran = run("dupes", path, *NAMED)
    assert ran.code == 2
    assert "rename it" in ran.err


def test_a_link_to_itself(tmp_path: Path) -> None:
    path = tmp_path / "loop.csv"
    path.symlink_to(path)
    ran = run("dupes", path, *NAMED, "--out", tmp_path / "report.txt")
    assert ran.code == 2
    assert "no such file" in ran.err


def test_an_interrupt_inside_the_database(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> AuditResult:
        raise RuntimeError("Query interrupted")  # what DuckDB raises for Ctrl-C in a query

    monkeypatch.setattr("audit.kinds.audit_duplicates", interrupted)
    ran = run("dupes", data, *NAMED)
    assert (ran.code, ran.err.strip()) == (130, "audit: interrupted")


def test_columns_of_nothing_in_polars() -> None:
    frame = pl.DataFrame({"text": ["a", "a"], "label": ["x", "y"], "nothing": [None, None]})
    assert audit_duplicates(frame, item="text", label="label").repeats.conflicts == 1
    unlabelled = audit_duplicates(frame, item="text", label="nothing")
    assert unlabelled.data.missing_label == 2


def test_types_that_cannot_be_read_are_named() -> None:
    frame = pd.DataFrame({"text": pd.period_range("2024-01", periods=2, freq="M"), "label": ["x", "y"]})
    with pytest.raises(InputError, match=r"period\[M\].*make text of such columns"):
        audit_duplicates(frame, item="text", label="label")


def test_a_closed_relation_is_no_traceback() -> None:
    con = duckdb.connect()
    relation = con.sql("SELECT 'a' AS text, 'x' AS label")
    con.close()
    with pytest.raises(InputError, match="closed"):
        audit_duplicates(relation, item="text", label="label")


@pytest.mark.parametrize("hidden", ["yes\u200b", "yes\ufeff", "y\xades", "\x00yes", "\u202eyes"])
def test_labels_that_differ_in_what_cannot_be_seen(hidden: str) -> None:
    assert spelling_variants(["no", "yes", hidden]) == (("yes", hidden),)


# --- easy items with more labels than hard ones are no copying ---------------------------------------------------


def crowd(
    seed: int, *, sizes: tuple[int, int], easy: int, in_order: bool, copied: float = 0.0
) -> pd.DataFrame:
    """1,000 items with few or many labels; those of size ``easy`` flip in 2 %, the others in 25 %."""
    rng = np.random.default_rng(seed)
    size = rng.choice(sizes, size=1_000, p=(0.7, 0.3))
    item = np.repeat(np.arange(1_000), size)
    flipped = rng.random(len(item)) < np.where(size == easy, 0.02, 0.25)[item]
    label = (rng.integers(0, 3, size=1_000)[item] + flipped * rng.integers(1, 3, size=len(item))) % 3
    first = np.append(True, item[1:] != item[:-1])
    copies = ~first & (rng.random(len(item)) < copied)
    label = label[np.maximum.accumulate(np.where(copies, 0, np.arange(len(item))))]
    who = rng.integers(0, 6, size=len(item))
    who = who[np.maximum.accumulate(np.where(copies, 0, np.arange(len(item))))]
    frame = pd.DataFrame({"text": item, "label": label, "who": who})
    return frame if in_order else frame.sample(frac=1, random_state=seed)


def codes(frame: pd.DataFrame) -> set[str]:
    found = audit_duplicates(frame, item="text", label="label", annotator="who", draws=100, ladder=False)
    return {alarm.code for alarm in found.alarms}


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize(("sizes", "easy"), [((2, 8), 8), ((2, 8), 2), ((2, 3), 2)])
def test_difficulty_that_goes_with_size_is_no_dependence(
    sizes: tuple[int, int], easy: int, in_order: bool
) -> None:
    for seed in range(3):
        frame = crowd(seed, sizes=sizes, easy=easy, in_order=in_order)
        assert not codes(frame) & {"same annotator", "adjacent rows", "export copies"}


@pytest.mark.parametrize("easy", [2, 3])
def test_copying_is_still_found_among_mixed_sizes(easy: int) -> None:
    assert "same annotator" in codes(crowd(0, sizes=(2, 3), easy=easy, in_order=False, copied=0.3))
