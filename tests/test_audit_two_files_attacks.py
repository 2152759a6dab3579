"""Two files and kinds of labels that once gave a traceback, a false number or an overwritten input."""

from __future__ import annotations

from pathlib import Path

import pytest

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
