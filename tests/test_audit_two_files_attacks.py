"""Two files and kinds of labels that once gave a traceback, a false number or an overwritten input."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from audit.comparing import compare_files
from audit.errors import ArgumentError
from audit.leakage import find_leaks
from audit.paired import score_correlation
from tests.command import Ran, run, write_csv

NAMED = ("--item", "text", "--label", "label")
ROWS = [(f"item {n % 20}", "ab"[n % 3 == 0]) for n in range(60)]


def refused(ran: Ran, *told: str) -> None:
    assert ran.code == 2, ran.out
    assert ran.err.startswith("audit: ")
    assert ran.err.count("\n") == 1
    for words in told:
        assert words in ran.err


@pytest.mark.parametrize("command", ["compare", "leak"])
def test_no_report_takes_the_place_of_an_input(tmp_path: Path, command: str) -> None:
    a, b = (write_csv(tmp_path / f"{name}.csv", ["text", "label"], ROWS) for name in "ab")
    before = a.read_bytes()
    for out in (a, b):
        for option in ("--out", "--html"):
            refused(run(command, a, b, *NAMED, option, out), "give the output another name")
            assert out.read_bytes() == before
    both = ("--out", tmp_path / "r.html", "--html", tmp_path / "r.html")
    refused(run(command, a, b, *NAMED, *both), "already in this run")
    if command == "leak":
        refused(
            run(command, a, b, *NAMED, "--out", tmp_path / "c.csv", "--rows", tmp_path / "c.csv"), "already"
        )


@pytest.mark.parametrize("option", ["--out", "--html", "--conflicts"])
@pytest.mark.parametrize("kind", ["classes", "ordinal"])
def test_no_report_takes_the_place_of_the_gold_labels(tmp_path: Path, option: str, kind: str) -> None:
    a = write_csv(tmp_path / "a.csv", ["text", "label"], ROWS)
    gold = write_csv(tmp_path / "gold.csv", ["text", "truth"], ROWS[:20])
    before = gold.read_bytes()
    words = ("dupes", a, *NAMED, "--kind", kind, "--classes", "a,b", "--gold", gold, option)
    refused(run(*words, gold), "gold.csv is read or written already", "give the output another name")
    assert gold.read_bytes() == before
    done = run(*words, tmp_path / "new.csv")
    assert done.code == 0, done.err


@pytest.mark.parametrize("command", ["compare", "leak"])
def test_labels_that_differ_in_a_space_are_told(tmp_path: Path, command: str) -> None:
    a = write_csv(tmp_path / "a.csv", ["text", "label"], ROWS)
    b = write_csv(tmp_path / "b.csv", ["text", "label"], [(text, f" {label}") for text, label in ROWS])
    codes = [alarm["code"] for alarm in run(command, a, b, *NAMED, "--format", "json").json["alarms"]]
    assert "label_spellings" in codes
    codes = [alarm["code"] for alarm in run(command, a, a, *NAMED, "--format", "json").json["alarms"]]
    assert "label_spellings" not in codes


@pytest.mark.parametrize("large", ["1e308", "1e150", "-1e75", "1e-300"])
def test_numbers_whose_powers_no_float_holds(tmp_path: Path, large: str) -> None:
    scaled = [float(large) * k for k in (1.0, 0.5, 0.25, 0.125)]
    file = write_csv(
        tmp_path / "d.csv", ["text", "label"], [(f"i{n // 2}", repr(v)) for n, v in enumerate(scaled)]
    )
    refused(run("dupes", file, *NAMED, "--kind", "numeric"), "another unit")


def test_large_numbers_that_can_be_counted_with(tmp_path: Path) -> None:
    values = [1e60, 3e60, 2e60, 2e60]
    file = write_csv(
        tmp_path / "d.csv", ["text", "label"], [(f"i{n // 2}", repr(v)) for n, v in enumerate(values)]
    )
    found = run("dupes", file, *NAMED, "--kind", "numeric", "--format", "json").json
    assert found["noise_sd"]["estimate"] == pytest.approx(1e60)


@pytest.mark.parametrize(
    ("grades", "told"),
    [(("1", "1.0", "2"), "are one number"), (("-0", "0", "1"), "are one number"), (("nan", "1", "2"), "order"),
     (("inf", "1", "2"), "order")],
)  # fmt: skip
def test_grades_without_an_order(tmp_path: Path, grades: tuple[str, ...], told: str) -> None:
    rows = [(f"i{n // 2}", grade) for n, grade in enumerate(grades * 4)]
    file = write_csv(tmp_path / "d.csv", ["text", "label"], rows)
    refused(run("dupes", file, *NAMED, "--kind", "ordinal", "--draws", "200"), told)


def test_an_option_that_numbers_do_not_know_is_called_by_its_name(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "d.csv", ["text", "label"], [("a", "1"), ("a", "2")])
    refused(
        run("dupes", file, *NAMED, "--kind", "numeric", "--conflicts", tmp_path / "c.csv"),
        "--conflicts is not",
    )


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


def leaked(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_leak_without_labels_tells_of_none(tmp_path: Path) -> None:
    """Once every label was called 'row'; labels with spaces could not be told apart."""
    train, test = files(tmp_path, [("x", "p q"), ("x", "r")], [("x", "s")])
    out = tmp_path / "rows.csv"
    found = find_leaks(train, test, item=["text"], out=out)
    assert found.examples[0].to_dict()["train_labels"] == []
    assert not {"test_label", "train_labels"} & set(leaked(out)[0])
    find_leaks(train, test, item=["text"], label="label", out=out)
    (row,) = leaked(out)
    assert (row["test_label"], row["train_rows"], row["train_labels"]) == ("s", "1 2", "p q | r")


def test_columns_of_the_data_that_are_called_as_ours(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "d.csv", ["test_row", "row", "label"], [("x", "y", "a"), ("x", "y", "b")])
    words = ("--item", "test_row,row", "--label", "label", "--rows", tmp_path / "out.csv")
    done = run("leak", path, path, *words)
    assert done.code == 0, done.err
    assert [(row["test_row"], row["test_row_"]) for row in leaked(tmp_path / "out.csv")] == [
        ("1", "x"),
        ("2", "x"),
    ]


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


@pytest.mark.parametrize("times", [2, 3])
def test_copied_rows_are_no_better_labels(tmp_path: Path, times: int) -> None:
    """Twice the rows make d of a disagreeing pair 2/3 in place of 1, once 'the labels after agree more'."""
    rows = [(f"i{k // 2}", "ab"[k % 2 * (k % 3 == 0)]) for k in range(120)]
    one, two = files(tmp_path, rows, rows * times)
    for first, second in ((one, two), (two, one)):
        found = compare_files(first, second, item=["text"], label="label", draws=200)
        assert "rows_copied" in {alarm.code for alarm in found.alarms}
        assert "rows of one side look copied" in found.verdict


def test_more_labels_an_item_are_no_copies(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    labels = rng.random((300, 6)) < np.where(np.arange(300) % 3 == 0, 0.9, 0.15)[:, None]
    rows = [[(f"i{k}", "ab"[int(one)]) for k, part in enumerate(labels) for one in part[place]]
            for place in (slice(0, 2), slice(2, 6))]  # fmt: skip
    one, two = files(tmp_path, *rows)
    assert "rows_copied" not in {
        a.code for a in compare_files(one, two, item=["text"], label="label", draws=200).alarms
    }
