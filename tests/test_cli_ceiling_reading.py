"""``audit ceiling`` reads a data file as the other commands do: a table of a database, a separator, an encoding."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from tests.command import run

NAMED = ("--item", "text", "--label", "label")
#: 100 items labelled twice, 20 of them at odds: d = .2.
ROWS = [
    (f"item {i}", label)
    for i in range(100)
    for label in ("yes" if i % 2 else "no", "yes" if i % 2 or i < 40 else "no")
]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "labels.db"
    with contextlib.closing(sqlite3.connect(path)) as con, con:
        con.execute("CREATE TABLE votes (text TEXT, label TEXT)")
        con.executemany("INSERT INTO votes VALUES (?, ?)", ROWS)
        con.execute("CREATE TABLE users (name TEXT)")
    return path


def test_a_table_of_a_database_is_named_as_elsewhere(database: Path) -> None:
    asked = run("ceiling", database, *NAMED, "--score", "0.85")
    assert asked.code == 2
    assert "name one with --table" in asked.err
    found = run("ceiling", database, *NAMED, "--table", "votes", "--score", "0.85", "--format", "json")
    assert (found.code, found.json["lower"], found.json["position"]) == (0, pytest.approx(0.8), "inside")
    other = run(
        "ceiling",
        database,
        *NAMED,
        "--table",
        "votes",
        "--metric",
        "mcc",
        "--score",
        "0.5",
        "--format",
        "json",
    )
    assert (other.code, other.json["metric"]) == (0, "mcc"), other.err


def test_the_form_of_a_text_file_is_told_as_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    lines = [f"'{text}'|{label}" for text, label in ROWS]
    path.write_bytes("\n".join(["'text'|label", *lines, "'short'"]).encode("utf-16-le"))
    form = ("--delimiter", "|", "--quote", "'", "--encoding", "utf-16-le")
    refused = run("ceiling", path, *NAMED, *form, "--score", "0.85")
    assert refused.code == 2
    assert "--ragged" in refused.err
    found = run("ceiling", path, *NAMED, *form, "--ragged", "drop", "--score", "0.85", "--format", "json")
    assert (found.code, found.json["lower"]) == (0, pytest.approx(0.8)), found.err
