"""The conflict file and its resolve list: order, suggestions, and what becomes of the data."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from audit.errors import InputError
from audit.resolving import resolve_conflicts
from tests.command import run, write_csv

NAMED = ("--item", "text", "--label", "label")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A pair and a triple that disagree, a five with a tie at the top, an agreeing pair, and a single."""
    rows = [
        ("pair, with comma", "x"), ("triple", "a"), ("same", "b"), ("five", "a"), ("pair, with comma", "y"),
        ("triple", "a"), ("five", "a"), ("five", "b"), ("triple", "b"), ("five", "b"), ("same", "b"), ("five", "x"),
        ("single", "a"),
    ]  # fmt: skip
    return write_csv(tmp_path / "data.csv", ["text", "label"], rows)


@pytest.fixture
def listed(data: Path, tmp_path: Path) -> Path:
    path = tmp_path / "conflicts.csv"
    assert run("dupes", data, *NAMED, "--conflicts", path).code == 0
    return path


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    return write_csv(path, list(rows[0]), [tuple(row.values()) for row in rows])


def test_hardest_first_with_suggestions(listed: Path) -> None:
    rows = read(listed)
    # d: pair 1; five 1 - (2 + 2 + 0)/20 = .8; triple 1 - 2/6 = 2/3
    assert [(r["conflict"], r["text"]) for r in rows] == (
        [("1", "pair, with comma")] * 2 + [("2", "five")] * 5 + [("3", "triple")] * 3
    )
    assert [float(rows[n]["disagreement"]) for n in (0, 2, 7)] == pytest.approx([1.0, 0.8, 2 / 3])
    assert [(rows[n]["majority"], rows[n]["resolve"]) for n in (0, 2, 7)] == [
        ("", "relabel"), ("", "relabel"), ("a", "majority"),
    ]  # fmt: skip
    assert [r["row"] for r in rows] == ["1", "5", "4", "7", "8", "10", "12", "2", "6", "9"]
    assert rows[2]["labels"] == "a: 2 | b: 2 | x: 1"


def test_list_as_suggested(data: Path, listed: Path, tmp_path: Path) -> None:
    ran = run("resolve", data, listed, *NAMED, "--out", tmp_path / "out.csv")
    assert ran.code == 0, ran.err
    assert "13 rows, 1 of them with another label; 0 rows left out. 2 items are left to label anew" in ran.out
    before, after = read(data), read(tmp_path / "out.csv")
    assert [n for n, (old, new) in enumerate(zip(before, after, strict=True), 1) if old != new] == [9]
    assert after[8] == {"text": "triple", "label": "a"}


def test_keep_and_drop(data: Path, listed: Path, tmp_path: Path) -> None:
    rows = read(listed)
    for row in rows:
        if row["text"] == "five":
            row["resolve"] = "DROP "
    rows[1]["resolve"] = "keep"
    done = resolve_conflicts(data, write(tmp_path / "edited.csv", rows), out=tmp_path / "out.csv")
    assert (done.rows, done.left_out, done.changed, done.to_relabel) == (7, 6, 1, 0)
    assert [r["text"] for r in read(tmp_path / "out.csv")] == [
        "triple", "same", "pair, with comma", "triple", "triple", "same", "single",
    ]  # fmt: skip
    assert read(tmp_path / "out.csv")[2]["label"] == "y"


@pytest.mark.parametrize(
    ("place", "column", "value", "part"),
    [
        (0, "resolve", "guess", "write one of majority, relabel, keep, drop, or a label"),
        (0, "resolve", "drop", "ask for different things"),
        (8, "row", "x", "no row number"),
        (8, "row", "99", "no row 99"),
        (8, "label", "z", "had the label 'z'"),
        (8, "row", "2", "'2' stands in two rows of the column row"),
    ],
)
def test_faulty_lists_are_refused(
    place: int, column: str, value: str, part: str, data: Path, listed: Path, tmp_path: Path
) -> None:
    rows = read(listed)
    rows[place][column] = value
    out = tmp_path / "out.csv"
    with pytest.raises(InputError, match=part):
        resolve_conflicts(data, write(tmp_path / "edited.csv", rows), out=out)
    assert not out.exists()


def test_a_label_of_the_data_is_taken_for_all_rows(data: Path, listed: Path, tmp_path: Path) -> None:
    rows = read(listed)
    for row in rows:
        if row["text"] == "five":
            row["resolve"] = "b"
    done = resolve_conflicts(data, write(tmp_path / "edited.csv", rows), out=tmp_path / "out.csv")
    assert (done.changed, done.to_relabel) == (4, 1)
    assert [r["label"] for r in read(tmp_path / "out.csv") if r["text"] == "five"] == ["b"] * 5


def test_an_item_of_which_nothing_is_said_stays_as_it_is(data: Path, listed: Path, tmp_path: Path) -> None:
    rows = read(listed)
    for row in rows:
        if row["text"] != "triple":
            row["resolve"] = ""
    ran = run("resolve", data, write(tmp_path / "edited.csv", rows), *NAMED, "--out", tmp_path / "out.csv")
    assert "Of 2 items the list says nothing: they are as they were." in ran.out
    before, after = read(data), read(tmp_path / "out.csv")
    assert [n for n, (old, new) in enumerate(zip(before, after, strict=True), 1) if old != new] == [9]
    rows[0]["resolve"] = "drop"
    with pytest.raises(InputError, match="ask for different things"):
        resolve_conflicts(data, write(tmp_path / "edited.csv", rows), out=tmp_path / "out2.csv")


# --- lists of rows, as audit issues writes them --------------------------------------------------------------


def by_row(path: Path, rows: list[tuple[str, ...]], columns: str = "row,resolve,label,majority") -> Path:
    return write_csv(path, columns.split(","), rows)


def test_each_row_of_a_list_without_items_speaks_for_itself(data: Path, tmp_path: Path) -> None:
    edits = [
        ("6", "KEEP ", "a", ""), ("9", "majority", "b", "a"), ("1", "drop", "x", ""), ("5", "x", "y", ""),
        ("8", "relabel", "b", ""), ("12", "", "x", ""),
    ]  # fmt: skip
    done = resolve_conflicts(data, by_row(tmp_path / "list.csv", edits), out=tmp_path / "out.csv")
    assert (done.rows, done.changed, done.left_out, done.to_relabel, done.undecided) == (12, 2, 1, 1, 1)
    assert "1 rows are left to label anew" in done.summary()
    wanted = read(data)
    wanted[8]["label"], wanted[4]["label"] = "a", "x"
    assert read(tmp_path / "out.csv") == wanted[1:]


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (("6", "keep", "b", ""), "row 6 had the label 'b', but the data has 'a'"),
        (("6", "", "b", ""), "row 6 had the label 'b', but the data has 'a'"),
        (("99", "drop", "a", ""), "the data has no row 99"),
        (("6", "majority", "a", ""), "row 6 has no majority"),
        (("6", "maybe", "a", ""), "row 6 says 'maybe' in resolve"),
        (("", "drop", "a", ""), "'' in the column row is no row number"),
    ],
)
def test_a_list_of_rows_that_does_not_fit_is_refused(
    edit: tuple[str, ...], told: str, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    with pytest.raises(InputError, match=told):
        resolve_conflicts(data, by_row(tmp_path / "list.csv", [edit]), out=out)
    assert not out.exists()


def test_rows_are_found_by_their_id_wherever_they_stand_now(tmp_path: Path) -> None:
    data = write_csv(
        tmp_path / "data.csv", ["id", "text", "label"], [("k3", "c", "x"), ("k1", "a", "x"), ("k2", "b", "y")]
    )
    edits = by_row(
        tmp_path / "list.csv", [("1", "y", "x", "k1"), ("3", "drop", "x", "k3")], "row,resolve,label,id"
    )
    words = ("resolve", data, edits, *NAMED, "--row-id", "id", "--out")
    ran = run(*words, tmp_path / "out.csv")
    assert ran.code == 0, ran.err
    assert read(tmp_path / "out.csv") == [
        {"id": "k1", "text": "a", "label": "y"}, {"id": "k2", "text": "b", "label": "y"},
    ]  # fmt: skip
    twice = write_csv(tmp_path / "twice.csv", ["id", "text", "label"], [("k1", "a", "x"), ("k1", "a", "x")])
    refused = run("resolve", twice, edits, *NAMED, "--row-id", "id", "--out", tmp_path / "no.csv")
    assert refused.code == 2
    assert "'k1' stands in two rows of the column id" in refused.err
    assert not (tmp_path / "no.csv").exists()


def test_majority_that_there_is_not(data: Path, listed: Path, tmp_path: Path) -> None:
    rows = read(listed)
    rows[0]["resolve"] = rows[1]["resolve"] = "majority"
    with pytest.raises(InputError, match="conflict 1 has no majority"):
        resolve_conflicts(data, write(tmp_path / "edited.csv", rows), out=tmp_path / "out.csv")


def test_wide_form_and_names_taken_by_the_data(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "wide.csv", ["row", "resolve", "v1", "v2"], [("r1", "q", "a", "b"), ("r2", "q", "a", "a")]
    )
    out = tmp_path / "conflicts.csv"
    ran = run("dupes", path, "--label-columns", "v1,v2", "--item", "row,resolve", "--conflicts", out)
    assert ran.code == 0, ran.err
    rows = read(out)
    assert [(r["row"], r["column"], r["label"], r["row_"], r["resolve_"]) for r in rows] == [
        ("1", "v1", "a", "r1", "q"), ("1", "v2", "b", "r1", "q"),
    ]  # fmt: skip
