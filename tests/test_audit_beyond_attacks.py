"""Numbers, grades, tags, two files and a model: what once gave a wrong figure, and limits that held too little."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from audit.issues import find_issues
from audit.label_sets import audit_tags
from audit.numeric import intraclass, noise_variance, pair_distance, weighted_kappa
from tests.command import run, write_csv
from tests.test_audit_label_kinds import scores

# --- limits of numbers ---------------------------------------------------------------------------------------

NOISE: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(0, 1, n),
    "Laplace": lambda rng, n: rng.laplace(0, math.sqrt(0.5), n),
    "Student 5": lambda rng, n: rng.standard_t(5, n) * math.sqrt(0.6),
    "skewed": lambda rng, n: rng.exponential(1, n),
}


@pytest.mark.parametrize("kind", NOISE)
@pytest.mark.parametrize("sizes", [(2,), (2, 3, 8)])
def test_limits_of_numbers_hold_the_truth_from_few_items_on(kind: str, sizes: tuple[int, ...]) -> None:
    """Once .82 to .91 at 15 items. Noise and items have variance 1, so the ceiling of R² is a half."""
    rng = np.random.default_rng(21)
    hits, runs = np.zeros(2), 300
    for _ in range(runs):
        found = scores([(rng.normal() + NOISE[kind](rng, n)).tolist() for n in rng.choice(sizes, 15)])
        for place, (part, true) in enumerate([(noise_variance(found), 1.0), (intraclass(found), 0.5)]):
            assert part.low is not None
            assert part.high is not None
            hits[place] += part.low <= true <= part.high
    assert np.all(hits / runs >= 0.90), hits / runs  # .92 less two standard errors


def test_labels_that_are_equal_have_no_noise_at_all() -> None:
    """Thrice 0.1 once had a variance of 1e-34, and limits."""
    found = scores([[0.1] * 3, [0.2] * 3, [0.7] * 7, [1e9 + 0.1] * 3])
    assert noise_variance(found).estimate == 0.0
    assert noise_variance(found).low is None
    assert pair_distance(found).estimate == 0.0
    assert (intraclass(found).estimate, intraclass(found).low) == (1.0, None)


def test_a_ratio_that_rests_on_one_item_has_no_limits() -> None:
    found = scores([[1.0, 1.0]] * 5 + [[1.0, 3.0]])
    for part in (intraclass(found), weighted_kappa(found)):
        assert part.estimate is not None
        assert part.low is None


def test_no_limit_lies_beyond_what_can_be() -> None:
    found = scores([[0.0, 2.0], [0.0, 1.0], [1.0, 1.0]])
    assert pair_distance(found, largest=2.0).high == 2.0
    assert (pair_distance(found).high or 0.0) > 2.0


@pytest.mark.parametrize("label", ["1_000", "1_0"])
def test_an_underscore_makes_no_thousand(tmp_path: Path, label: str) -> None:
    """``float("1_000")`` is 1000."""
    path = write_csv(tmp_path / "d.csv", ["text", "label"], [("x", label), ("x", "2")])
    for kind in ("numeric", "ordinal"):
        done = run("dupes", path, "--item", "text", "--label", "label", "--kind", kind)
        assert done.code == 2, done.out


# --- tags ----------------------------------------------------------------------------------------------------


def test_a_distance_of_sets_is_never_above_one(tmp_path: Path) -> None:
    rows = [("x", "a"), ("x", "b"), ("y", "a|b"), ("y", "a|c"), ("z", "a"), ("z", "c")]
    found = audit_tags(
        str(write_csv(tmp_path / "t.csv", ["text", "label"], rows)), item=["text"], label="label"
    )
    distance = found.distance
    assert distance.estimate == pytest.approx((1 + 2 / 3 + 1) / 3)
    assert distance.high is not None
    assert distance.high <= 1.0  # once 1.3
    agreed = [(text, "a|b") for text, _ in rows]
    found = audit_tags(
        str(write_csv(tmp_path / "u.csv", ["text", "label"], agreed)), item=["text"], label="label"
    )
    assert (found.distance.estimate, found.distance.low) == (0.0, 0.0)
    assert found.distance.high == pytest.approx(1 - 0.05 ** (1 / 3))


def test_tags_are_merged_one_by_one(tmp_path: Path) -> None:
    """Whole sets once were: 'A|c' kept a tag of its own beside 'a|b'."""
    rows = [("x", "a|b"), ("x", "A|b"), ("y", "A|c"), ("y", "a|c "), ("z", "a"), ("z", "b")]
    path = str(write_csv(tmp_path / "t.csv", ["text", "label"], rows))
    apart = audit_tags(path, item=["text"], label="label")
    told = [alarm for alarm in apart.audit.alarms if alarm.code == "label spellings"]
    assert [alarm.figures["variants"] for alarm in told] == [[["a", "A"]]]
    merged = audit_tags(path, item=["text"], label="label", merge_labels=True)
    assert merged.audit.repeats.conflicts == 1
    assert {part.tag: part.disagreement.estimate for part in merged.tags} == {
        "a": pytest.approx(1 / 3), "b": pytest.approx(1 / 3), "c": 0.0
    }  # fmt: skip
    assert not [alarm for alarm in merged.audit.alarms if alarm.code == "label spellings"]


def test_declared_and_missing_sets_are_sets(tmp_path: Path) -> None:
    rows = [("x", "b|a"), ("x", "n/a"), ("y", "a|b"), ("y", "b|a")]
    path = write_csv(tmp_path / "t.csv", ["text", "label"], rows)
    words = ("dupes", path, "--item", "text", "--label", "label", "--sep", "|", "--format", "json")
    told = run(*words, "--classes", "b|a,a,b", "--missing", "n/a").json
    assert set(told["data"]["classes"]) == {"a|b", "a", "b"}
    assert told["data"]["missing_label"] == 1
    slashed = write_csv(tmp_path / "s.csv", ["text", "label"], [("x", "b/a"), ("x", "n/a"), ("y", "a/b")])
    told = run("dupes", slashed, *words[2:6], "--sep", "/", "--format", "json", "--missing", "n/a").json
    assert told["data"]["missing_label"] == 1


def test_a_tag_of_a_de_duplicated_file_has_no_flip_rate_and_takes_the_interval_asked_for() -> None:
    rng = np.random.default_rng(2)
    sets = ["a|b", "a", "b", "c"]
    rows = {(f"i{k}", sets[rng.integers(4)]) for k in range(60) for _ in range(3)}
    frame = pd.DataFrame(sorted(rows), columns=["text", "label"])
    found = audit_tags(frame, item=["text"], label="label", draws=100)
    assert found.audit.flip_rate.estimate is None
    assert {part.flip_rate.estimate for part in found.tags} == {None}
    pairs = frame.groupby("text").head(2)
    honest = pd.concat([pairs, pairs.groupby("text").head(1)])
    honest = honest.groupby("text").filter(lambda part: len(part) >= 2).groupby("text").head(2)
    exact = audit_tags(honest, item=["text"], label="label", draws=100, interval="exact")
    assert {part.disagreement.method for part in exact.tags} == {"Clopper-Pearson"}


# --- outputs -------------------------------------------------------------------------------------------------


def test_a_file_that_is_called_as_a_part_of_an_output_stays(tmp_path: Path) -> None:
    """The input d.html.part once was the temporary file of the report d.html, and gone."""
    path = write_csv(tmp_path / "d.html.part", ["text", "label"], [("x", "1"), ("x", "2")])
    before = path.read_bytes()
    words = (
        "dupes",
        path,
        "--item",
        "text",
        "--label",
        "label",
        "--kind",
        "numeric",
        "--html",
        tmp_path / "d.html",
    )
    assert run(*words).code == 0
    assert path.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["d.html", "d.html.part"]


def test_a_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "d.csv", ["text", "label"], [("x", "1"), ("x", "2")])
    done = run("dupes", path, "--item", "text", "--label", "label", "--out", path / "report.txt")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "cannot be written" in done.err


@pytest.mark.parametrize("command", ["dupes", "compare", "leak"])
def test_a_dash_is_no_file(tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """``--out -`` once wrote a file of that name."""
    monkeypatch.chdir(tmp_path)
    path = write_csv(tmp_path / "d.csv", ["text", "label"], [("x", "1"), ("x", "2")])
    files_given = (path,) if command == "dupes" else (path, path)
    done = run(command, *files_given, "--item", "text", "--label", "label", "--out", "-")
    assert done.code == 2
    assert "leave --out out to print the report" in done.err
    assert not (tmp_path / "-").exists()


# --- options, order, interrupts ------------------------------------------------------------------------------

ASKED = ("dupes", "--item", "text", "--label", "label")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((*ASKED, "--fail-on", "upper"), "--fail-under is about"),
        ((*ASKED, "--near-pairs", "7"), "--near-pairs is the most pairs"),
        ((*ASKED, "--semantic-texts", "7"), "--semantic-texts is the most texts"),
        ((*ASKED, "--near", "0.9", "--semantic-texts", "7"), "--semantic-texts is the most texts"),
        ((*ASKED, "--near", "0.9", "--drop-copies", "--merge-labels"), "leave --merge-labels and --drop-copies out"),
        ((*ASKED, "--near", "0.9", "--one-per", "text"), "leave --one-per out"),
        (("dupes", "--label-columns", "text,label", "--near", "0.9"), "leave --label-columns out"),
        ((*ASKED, "--conflicts", "c.txt"), "the ending says no kind of file"),
        ((*ASKED, "--html", "no/such/folder.html"), "no such folder"),
        ((*ASKED, "--kind", "ordinal", "--classes", "1,2,"), "a declared class is blank"),
        ((*ASKED, "--kind", "numeric", "--no-ladder"), "--no-ladder is not for --kind numeric"),
        ((*ASKED, "--kind", "numeric", "--show-conflicts", "0"), "--show-conflicts is not for"),
        ((*ASKED, "--kind", "numeric", "--near", "0"), "--near is not for"),
        (("leak", "--item", "text", "--near-pairs", "7"), "--near-pairs is the most pairs"),
        (("leak", "--item", "text", "--rows", "c.txt"), "the ending says no kind of file"),
        (("issues", "--item", "text", "--label", "label", "--probs", "p.csv", "--folds", "3"), "leave them out"),
        (("issues", "--item", "text", "--label", "label", "--out-rows", "c.txt"), "the ending says no kind"),
    ],
)  # fmt: skip
def test_no_option_is_silently_ignored(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    path = write_csv(tmp_path / "d.csv", ["text", "label"], [("x", "1"), ("x", "2")])
    done = run(words[0], *((path, path) if words[0] == "leak" else (path,)), *words[1:])
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
    assert told in done.err


def test_near_duplicates_stand_beside_the_d_of_the_headline(tmp_path: Path) -> None:
    pytest.importorskip("rensa")
    rows = [(f"the {k // 3}th text of many", "abc"[(k * k) % 5 % 3]) for k in range(90)]
    path = write_csv(tmp_path / "d.csv", ["text", "label"], rows)
    told = run(*ASKED[:1], path, *ASKED[1:], "--near", "0.7", "--classes", "a,b,c,d", "--format", "json").json
    assert told["near"]["exact"]["high"] == told["disagreement"]["high"]


def test_a_models_view_is_the_same_in_any_order_of_rows() -> None:
    """Ties at cleanlab's cut fell by the order of the rows."""
    pytest.importorskip("cleanlab")
    rng = np.random.default_rng(4)
    rows = [(f"item {k % 40} word{k % 3} {k % 7}", "abc"[k % 3 if rng.random() > 0.2 else rng.integers(3)])
            for k in range(400)]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["text", "label"])
    told = [
        find_issues(data, item=["text"], label="label", draws=5).to_dict()
        for data in (frame, frame.sample(frac=1, random_state=1), frame[::-1])
    ]
    figures = [
        (one["flagged"], one["check"]["recall"]["estimate"], one["check"]["partners"]["flagged"])
        for one in told
    ]
    assert figures == [pytest.approx(figures[0])] * 3


@pytest.mark.parametrize("lines", ["", "Traceback (most recent call last):\n  File ...\n"])
def test_an_interrupt_inside_what_the_database_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str
) -> None:
    """DuckDB makes an error of its own of Ctrl-C in Python that it called: a traceback, once."""

    def interrupted(*_: object, **__: object) -> None:
        raise duckdb.Error(f"{lines}KeyboardInterrupt: \n")

    monkeypatch.setattr("audit.comparing.compare_files", interrupted)
    path = write_csv(tmp_path / "d.csv", ["text", "label"], [("x", "1"), ("x", "2")])
    done = run("compare", path, path, "--item", "text", "--label", "label")
    assert (done.code, done.err.strip()) == (130, "audit: interrupted")


@pytest.mark.parametrize("cell", ["n/a", "0,5"])
def test_a_cell_without_a_number_far_down_is_named(tmp_path: Path, cell: str) -> None:
    """Once DuckDB's own words, with a column 'c1' that no file has."""
    pytest.importorskip("cleanlab")
    rows = [(f"item {k}", "ab"[k % 2]) for k in range(300)]
    path = write_csv(tmp_path / "d.csv", ["text", "label"], rows)
    given = [(0.5, cell if k == 250 else 0.5) for k in range(300)]
    probs = write_csv(tmp_path / "p.csv", ["a", "b"], given)
    done = run("issues", path, "--item", "text", "--label", "label", "--probs", probs)
    assert done.code == 2
    assert "row 251 has no number in column 'b'" in done.err


def test_a_grade_that_is_named_twice_is_one(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "d.csv", ["text", "label"], [("x", "1"), ("x", "2"), ("y", "3")])
    words = ("dupes", path, *ASKED[1:], "--kind", "ordinal", "--classes", "1,1,2,3", "--format", "json")
    assert run(*words).json["ordinal"]["order"] == ["1", "2", "3"]


def test_columns_called_as_those_of_the_list_of_pairs(tmp_path: Path) -> None:
    pytest.importorskip("rensa")
    rows = [("the same long text one", "x", "a"), ("the same long text two", "x", "b")]
    path = write_csv(tmp_path / "d.csv", ["rows", "Similarity", "label"], rows)
    words = (
        "--item",
        "rows,Similarity",
        "--label",
        "label",
        "--near",
        "0.5",
        "--near-rows",
        tmp_path / "p.csv",
    )
    done = run("dupes", path, *words)
    assert done.code == 0, done.err
    assert "rows,rows_,Similarity_,labels" in (tmp_path / "p.csv").read_text("utf-8")
