"""Frames, Parquet, workbooks and JSON: what carries types comes out as plain text."""

import datetime as dt
import decimal
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audit.errors import ArgumentError, InputError
from audit.reading import ReadReport, open_table

Rows = list[tuple[str | None, ...]]


def read(source: Any, **options: Any) -> tuple[tuple[str, ...], Rows, ReadReport]:
    with open_table(source, **options) as table:
        table.materialise(f"SELECT * FROM {table.name}", "rows")
        rows = table.con.execute("SELECT * FROM rows").fetchall()
        assert [row for batch in table.rows() for row in batch] == rows
        return table.columns, rows, table.report


# --- data frames --------------------------------------------------------------------------------------------

DATA: dict[str, list[Any]] = {
    "text": ["a", "", None],
    "label": [1, 0, None],
    "score": [0.5, float("nan"), 2.0],
}
TEXTS: Rows = [("a", "1", "0.5"), (None, "0", None), (None, None, "2.0")]
MAKERS: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame(DATA),
    "pandas with nullable types": lambda: pd.DataFrame(DATA).convert_dtypes(),
    "pandas on Arrow": lambda: pd.DataFrame(DATA).convert_dtypes(dtype_backend="pyarrow"),
    "pandas objects": lambda: pd.DataFrame(DATA, dtype=object),
    "Polars": lambda: pl.DataFrame(DATA),
    "lazy Polars": lambda: pl.LazyFrame(DATA),
    "Arrow": lambda: pa.table(DATA),
    "Arrow batches": lambda: pa.table(DATA).to_reader(max_chunksize=1),
    "narwhals": lambda: nw.from_native(pl.DataFrame(DATA)),
    "lazy narwhals": lambda: nw.from_native(pl.LazyFrame(DATA)),
    "DuckDB": lambda: duckdb.sql(
        "SELECT * FROM (VALUES ('a', 1, 0.5::DOUBLE), ('', 0, 'nan'::DOUBLE), (NULL, NULL, 2)) AS t(text, label, score)"
    ),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_any_frame(kind: str) -> None:
    columns, rows, report = read(MAKERS[kind]())
    assert columns == ("text", "label", "score")
    assert rows == TEXTS
    assert (report.source, report.format) == ("data frame", "frame")


def test_whole_numbers_with_gaps_lose_the_point_and_a_note_says_so() -> None:
    _, rows, report = read(
        pd.DataFrame({"y": [1.0, np.nan, 0.0], "x": [1.0, 0.5, 2.0], "z": ["1.0", "1", None]})
    )
    assert rows == [("1", "1.0", "1.0"), (None, "0.5", "1"), ("0", "2.0", None)]
    assert report.notes == ("stored as decimals but whole numbers throughout, read as 1 and not 1.0: y",)


def test_types_become_plain_strings() -> None:
    frame = pd.DataFrame(
        {
            "flag": [True, False, None],
            "big": [2**63 - 1, 0, -1],
            "day": [dt.date(2020, 1, 2), dt.date(1999, 12, 31), None],
            "moment": pd.to_datetime(["2020-01-02 03:04:05", None, "2020-01-02 00:00:00"]),
            "there": pd.to_datetime(["2020-01-02 03:04:05+0100", None, "2020-01-02 00:00:00+0100"]),
            "kind": pd.Categorical(["x", "y", None]),
            "mixed": [1, "one", 1.5],
            "price": [decimal.Decimal("1.50"), None, decimal.Decimal("2.00")],
        }
    )
    _, rows, _ = read(frame)
    moments = ("2020-01-02 03:04:05", "2020-01-02 02:04:05+00")
    assert rows[0] == ("true", str(2**63 - 1), "2020-01-02", *moments, "x", "1", "1.50")
    assert rows[1] == ("false", "0", "1999-12-31", None, None, "y", "one", None)
    assert rows[2][0] is None
    assert rows[2][6:] == ("1.5", "2.00")
    nested = pl.DataFrame({"votes": [["a", "b"], []], "pair": [{"x": 1, "y": None}, {"x": 2, "y": "ü"}]})
    assert read(nested)[1] == [('["a","b"]', '{"x":1,"y":null}'), ("[]", '{"x":2,"y":"ü"}')]


def test_late_objects_of_another_type_are_read() -> None:
    values: list[Any] = [1] * 30_000
    values[20_000] = "one"
    _, rows, _ = read(pd.DataFrame({"y": pd.Series(values, dtype=object)}))
    assert rows[20_000] == ("one",)
    assert rows[0] == ("1",)


def test_index_and_odd_names_of_pandas() -> None:
    frame = pd.DataFrame({"text": ["a", "b"], 5: [1, 2]}, index=pd.Index(["k", "l"], name="id"))
    columns, rows, report = read(frame)
    assert (columns, rows) == (("id", "text", "5"), [("k", "a", "1"), ("l", "b", "2")])
    assert report.notes == ("the index of the frame is read as a column: id",)
    assert read(pd.DataFrame([[1, 2]], columns=["y", "Y"]))[0] == ("y", "Y_2")
    original = frame.copy()
    read(frame)
    pd.testing.assert_frame_equal(frame, original)


@pytest.mark.parametrize(
    "source",
    [pd.DataFrame(), pd.DataFrame({"a": []}), pl.DataFrame(), pl.DataFrame({"a": []}), [1, 2], 5, None],
)
def test_what_is_no_table_is_refused(source: Any) -> None:
    with pytest.raises(InputError):
        open_table(source)


# --- Parquet and workbooks ----------------------------------------------------------------------------------


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "table.bin"
    pq.write_table(pa.table({**DATA, "raw": pa.array([b"x", "é".encode(), None])}), path)
    columns, rows, report = read(path)
    assert columns == ("text", "label", "score", "raw")
    assert rows == [(*row, raw) for row, raw in zip(TEXTS, ("x", "é", None), strict=True)]
    assert report.format == "parquet"
    pq.write_table(pa.table({"a": pa.array([], pa.string())}), path)
    with pytest.raises(InputError, match=r"table\.bin: no rows"):
        read(path)


def book(path: Path) -> Path:
    workbook = openpyxl.Workbook()
    first = workbook.active
    first.title = "Data"
    first.append([])
    first.append(["text", "label", "when", "label"])
    first.append(["a\nb", 1, pd.Timestamp(2020, 1, 2), True])
    first.append([])
    first.append(["0012", 1.5, pd.Timestamp(2020, 1, 2, 3, 4, 5), None])
    first.append(["NA", "1.0", dt.time(1, 2, 3), False])
    second = workbook.create_sheet("More")
    second.append(["x"])
    second.append([7])
    workbook.create_sheet("Nothing")
    workbook.save(path)
    return path


def test_workbook(tmp_path: Path) -> None:
    path = book(tmp_path / "table.xlsx")
    columns, rows, report = read(path)
    assert columns == ("text", "label", "when", "label_2")
    assert rows == [
        ("a\nb", "1", "2020-01-02", "true"),
        ("0012", "1.5", "2020-01-02 03:04:05", None),
        ("NA", "1.0", "01:02:03", "false"),
    ]
    assert report.format == "workbook"
    assert "read the sheet 'Data'; not read: More, Nothing" in report.notes[0]
    for sheet in ("More", 2, "2"):
        assert read(path, sheet=sheet)[1] == [("7",)]
    with pytest.raises(ArgumentError, match="no sheet 'Fourth'; there are Data, More, Nothing"):
        read(path, sheet="Fourth")
    with pytest.raises(InputError, match="the sheet is empty"):
        read(path, sheet=3)


# --- JSON ---------------------------------------------------------------------------------------------------

RECORDS = (
    '{"text": "é", "label": 1}\n\n{"label": true, "text": null, "more": [1, {"x": "y"}]}\n{"text": "NA"}\n'
)
JSON_ROWS: Rows = [("é", "1", None), (None, "true", '[1,{"x":"y"}]'), ("NA", None, None)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_json_lines(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "table.jsonl"
    path.write_bytes(RECORDS.encode(encoding))
    columns, rows, report = read(path)
    assert columns == ("text", "label", "more")
    assert rows == JSON_ROWS
    assert (report.format, report.encoding) == ("jsonl", encoding.removesuffix("-sig"))


def test_json_array_and_names_without_an_ending(tmp_path: Path) -> None:
    array = json.dumps([json.loads(line) for line in RECORDS.split("\n") if line], indent=1)
    for name, text, kind in (
        ("table.json", array, "json"), ("table", array, "json"), ("table.txt", RECORDS, "jsonl"),
    ):  # fmt: skip
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
        _, rows, report = read(tmp_path / name)
        assert rows == JSON_ROWS
        assert (report.format, report.compression) == (kind, "gzip")


def test_json_that_duckdb_refuses_is_read_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "table.jsonl"
    path.write_text('{"a": 1, "A": "x"}\n{"a": 2, "a": 3}\n{"a": "\\ud800", "b": {"c": 1.0}}\n')
    columns, rows, report = read(path)
    assert columns == ("a", "A_2", "b")
    assert rows == [("1", "x", None), ("3", None, None), ("\ufffd", None, '{"c":1.0}')]
    assert any("half of a surrogate pair" in note for note in report.notes)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1}\n{"a": \n', "line 2: not JSON"),
        ('{"a": 1}\n[1]\n', "line 2: list where an object was expected"),
        ("[1, 2]", "record 1: int where an object"),
        ('[{"a": 1},]', "line 1: not JSON"),
        ('{\n "a": 1\n}', "line 1: not JSON"),
        ("[]", "no records"),
        ("{}", "no records"),
        ("nothing", "line 1: not JSON"),
    ],
)
def test_what_is_wrong_with_json_is_said(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "table.json"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        read(path)


CELLS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.none()


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=5), min_size=1, max_size=3, unique=True
    ),
    data=st.data(),
)
def test_json_lines_read_back(tmp_path: Path, names: list[str], data: st.DataObject) -> None:
    table = data.draw(
        st.lists(st.lists(CELLS, min_size=len(names), max_size=len(names)), min_size=1, max_size=5)
    )
    path = tmp_path / "table.jsonl"
    path.write_text(
        "".join(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n" for row in table),
        encoding="utf-8", newline="",
    )  # fmt: skip
    assert read(path)[1] == [tuple(cell or None for cell in row) for row in table]
