"""Numbers, grades, tags, two files and a model: what once gave a wrong figure, and limits that held too little."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from audit.comparing import compare_files
from audit.errors import ArgumentError
from audit.leakage import find_leaks
from audit.numeric import intraclass, noise_variance, pair_distance, weighted_kappa
from audit.paired import score_correlation
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


# --- two files -----------------------------------------------------------------------------------------------


def test_a_correlation_never_leaves_its_range() -> None:
    """Scores in a line, once -1.0000000000000002, which compare refused as an argument of the user."""
    rng = np.random.default_rng(0)
    for n in range(2, 60):
        first = rng.integers(0, 4, n) / 3.0
        for second in (first / 3.0, 1.0 - first, 0.1 - first * 0.7):
            assert -1.0 <= score_correlation(first, second, rng.integers(1, 4, n)) <= 1.0


def files(tmp_path: Path, *rows: list[tuple[str, str]]) -> list[str]:
    return [str(write_csv(tmp_path / f"{k}.csv", ["text", "label"], part)) for k, part in enumerate(rows)]


@pytest.mark.parametrize(("one", "two"), [("a", "b"), ("b", "a"), ("z", "a")])
def test_what_memory_gets_right_does_not_hang_on_the_names_of_labels(
    tmp_path: Path, one: str, two: str
) -> None:
    """Of two training labels that are as frequent, memory says one at random; once the first in the alphabet."""
    train, test = files(
        tmp_path,
        [("x", one), ("x", two), ("y", one), ("y", one), ("y", two)],
        [("x", one), ("x", "c"), ("y", one)],
    )
    found = find_leaks(train, test, item=["text"], label="label")
    assert found.remembered == pytest.approx((0.5 + 0 + 1) / 3)
    assert found.disagreement.estimate == pytest.approx(((1 - 1 / 4) + (1 - 2 / 3)) / 2)


def test_a_leak_without_labels_tells_of_none(tmp_path: Path) -> None:
    """Once every label was called 'row'."""
    train, test = files(tmp_path, [("x", "p q"), ("x", "r")], [("x", "s")])
    out = tmp_path / "rows.csv"
    found = find_leaks(train, test, item=["text"], out=out)
    assert found.examples[0].to_dict()["train_labels"] == []
    assert out.read_text("utf-8") == "test_row,text,train_rows\n1,x,1 2\n"
    find_leaks(train, test, item=["text"], label="label", out=out)
    with out.open(newline="") as file:
        assert list(csv.DictReader(file)) == [
            {"test_row": "1", "text": "x", "test_label": "s", "train_rows": "1 2", "train_labels": "p q | r"}
        ]


def test_columns_of_the_data_that_are_called_as_ours(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "d.csv", ["test_row", "row", "label"], [("x", "y", "a"), ("x", "y", "b")])
    done = run(
        "leak", path, path, "--item", "test_row,row", "--label", "label", "--rows", tmp_path / "out.csv"
    )
    assert done.code == 0, done.err
    assert (
        (tmp_path / "out.csv").read_text("utf-8").startswith("test_row,test_row_,row,test_label,train_rows,")
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("leak", "--item", "text", "--label-test", "label"), "name the first's with --label"),
        (("leak", "--item", "text,text"), "names a column twice"),
        (("leak", "--item", "text", "--label", "text"), "is both item and label"),
        (
            ("compare", "--item", "text", "--label", "label", "--label-after", "text"),
            "is both item and label",
        ),
    ],
)
def test_options_that_say_nothing_are_refused(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    path = write_csv(tmp_path / "d.csv", ["text", "label"], [("x", "a"), ("x", "b")])
    done = run(words[0], path, path, *words[1:])
    assert (done.code, done.out) == (2, "")
    assert told in done.err


def test_a_file_without_equal_repeats_has_no_flip_rate_in_a_comparison_either(tmp_path: Path) -> None:
    rows = [(f"i{k}", label) for k in range(60) for label in ("a", "b" if k % 3 == 0 else "a")]
    unique = sorted(set(rows))  # 20 conflicts and no agreement are left
    before, after = files(
        tmp_path, [*rows, *rows[:3]], [*unique, *(row for row in unique if row[0] == "i0")][:-2]
    )
    found = compare_files(before, after, item=["text"], label="label", draws=200)
    assert found.repeated_in_both == 20
    assert (found.after.deduplicated, found.after.flip_rate.estimate) == (True, None)
    assert "deduplicated" in {alarm.code for alarm in found.alarms}
    assert "looks de-duplicated" in found.verdict


def test_a_comparison_of_many_classes_can_be_read(tmp_path: Path) -> None:
    rows = [(f"i{k}", f"class {k % 200}") for k in range(400)]
    path = write_csv(tmp_path / "a.csv", ["text", "label"], rows)
    other = write_csv(
        tmp_path / "b.csv",
        ["text", "label"],
        [(t, f"class {(k * 7) % 200}") for k, (t, _) in enumerate(rows)],
    )
    done = run("compare", path, other, "--item", "text", "--label", "label")
    assert done.code == 0, done.err
    assert max(map(len, done.out.splitlines())) < 200
    assert "other moves" in done.out
    assert "other classes" in done.out
    rows = [(f"i{k}", f"label {k}") for k in range(3_001)]
    path = write_csv(tmp_path / "c.csv", ["text", "label"], rows)
    with pytest.raises(ArgumentError, match="3,001 different labels"):
        compare_files(str(path), str(path), item=["text"], label="label")


def test_no_label_breaks_the_lines_of_a_comparison(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", ["text", "label"], [("x", "a\nb"), ("y", "\x1b[2J"), ("z", "c")])
    done = run("compare", path, path, "--item", "text", "--label", "label")
    assert done.code == 0, done.err
    assert "\x1b" not in done.out
    assert any(line.startswith("'a\\nb'") for line in done.out.splitlines())


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
