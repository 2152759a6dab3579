"""Writing: what is written reads back, and a file is there whole or not at all."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audit.errors import ArgumentError
from audit.reading import open_table
from audit.writing import Cell, write_rows, write_text

ENDINGS = ["csv", "tsv", "jsonl", "csv.gz", "jsonl.gz", "parquet", "xlsx"]
ROWS: list[list[Cell]] = [
    ["a,b", 1, 1.5, True, ""],
    ["=1+1", None, float("nan"), False, "x\ry\nz\r\n\t é"],
    ["<script>'\"", -3, 1e300, None, "NA"],
]
TEXTS = [
    ("a,b", "1", "1.5", "true", None),
    ("=1+1", None, None, "false", "x\ry\nz\r\n\t é"),
    ("<script>'\"", "-3", "1e+300", None, "NA"),
]
COLUMNS = ["t", "n", "f", "b", "x"]


def read(path: Path) -> tuple[tuple[str, ...], list[tuple[str | None, ...]]]:
    with open_table(path) as table:
        return table.columns, [row for batch in table.rows() for row in batch]


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_kind_reads_back(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"table.{ending}"
    assert write_rows(path, COLUMNS, iter(ROWS)) == 3
    assert read(path) == (tuple(COLUMNS), TEXTS)
    assert list(tmp_path.iterdir()) == [path]


CELLS = (
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    | st.text('a,"\n\r\t;=', max_size=4)
    | st.none()
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=st.integers(1, 3).flatmap(lambda n: st.lists(st.tuples(*[CELLS] * n), min_size=1, max_size=5)))
@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_any_text_reads_back(tmp_path: Path, ending: str, table: list[tuple[str | None, ...]]) -> None:
    path = tmp_path / f"table.{ending}"
    write_rows(path, ["a", "b", "c"][: len(table[0])], table)
    assert read(path)[1] == [tuple(cell or None for cell in row) for row in table]


def test_formulas_are_text_in_a_workbook(tmp_path: Path) -> None:
    path = tmp_path / "table.xlsx"
    write_rows(path, ["a", "b"], [["=1+1", 2], ["https://x.org", True]])
    sheet = openpyxl.load_workbook(path).active
    assert sheet is not None
    assert (sheet["A2"].value, sheet["A2"].data_type) == ("=1+1", "s")
    assert (sheet["B2"].value, sheet["B3"].value) == (2, True)
    assert sheet["A3"].hyperlink is None
    assert sheet.freeze_panes == "A2"


def test_formulas_stay_as_they_are_in_csv(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    write_rows(path, ["a", "b"], [["=1+1", "@x"], ["-1", "+1"]])
    assert path.read_bytes() == b"a,b\n=1+1,@x\n-1,+1\n"


def test_types_in_parquet(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    rows: list[list[Cell]] = [[1, 1, True, "1", 2**70], [2, 0.1, None, 1, 1], [None, None, False, None, None]]
    write_rows(path, ["i", "f", "b", "t", "big"], rows)
    table = pq.read_table(path)
    assert [str(t) for t in table.schema.types] == ["int64", "double", "bool", "string", "string"]
    assert table.column("f").to_pylist() == [1.0, 0.1, None]
    assert table.column("big").to_pylist() == [str(2**70), "1", None]


def failing() -> Iterator[list[Cell]]:
    yield [1]
    raise RuntimeError("no more")


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_failed_write_leaves_the_old_file(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"table.{ending}"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError, match="no more"):
        write_rows(path, ["a"], failing())
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "columns", "rows", "words"),
    [
        ("table.doc", ["a"], [["x"]], r"table\.doc: the ending says no kind of file; use \.csv"),
        ("table.parquet.gz", ["a"], [["x"]], "ending"),
        ("table", ["a"], [["x"]], "ending"),
        ("table.csv", ["a", "A"], [["x", "y"]], "two columns have one name"),
        ("table.csv", ["a", "b"], [["x", "y"], ["x"]], "row 2 has 1 cells for 2 columns"),
        ("none/table.csv", ["a"], [["x"]], "cannot be written"),
        ("table.xlsx", ["a"], [["x" * 40_000]], "row 1: a cell of a workbook holds 32,767"),
    ],
)
def test_what_cannot_be_written(tmp_path: Path, name: str, columns: list[str], rows: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        write_rows(tmp_path / name, columns, rows)
    assert list(tmp_path.iterdir()) == []


def test_text_and_links(tmp_path: Path) -> None:
    target = tmp_path / "target.txt"
    link = tmp_path / "link.txt"
    link.symlink_to(target)
    write_text(link, "é\r\nx\n")
    assert target.read_bytes() == "é\r\nx\n".encode()
    assert link.is_symlink()
    with pytest.raises(ArgumentError, match="cannot be written"):
        write_text(tmp_path / "none" / "x.txt", "x")
    with pytest.raises(ArgumentError, match="cannot be written"):
        write_text(tmp_path, "x")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_rows(pipe, ["a"], [["x"]])
    reader.join()
    assert got == [b"a\nx\n"]
