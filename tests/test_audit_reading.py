"""Reading text files: what is found out, what is refused, and that cells come out as they were written."""

import csv
import io
import string
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from audit import reading_scan
from audit.errors import InputError
from audit.reading import ReadReport, open_table

Rows = list[tuple[str | None, ...]]


def read(source: Any, **options: Any) -> tuple[tuple[str, ...], Rows, ReadReport]:
    """The columns, rows and report of a source, read in both ways, which must agree."""
    with open_table(source, **options) as table:
        batches = [row for batch in table.rows() for row in batch]
        columns = table.columns
    with open_table(source, **options) as table:
        count = table.materialise(f"SELECT * FROM {table.name}", "rows")
        rows = table.con.execute("SELECT * FROM rows").fetchall()
        assert rows == batches
        assert count == len(rows)
        return columns, rows, table.report


def save(path: Path, text: str | bytes, encoding: str = "utf-8") -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


# --- the shared cases ---------------------------------------------------------------------------------------


@pytest.mark.shared_data
def test_one_table_in_six_dresses(shared: Path) -> None:
    columns, plain, _ = read(shared / "cases/plain.csv")
    assert columns == ("text", "label")
    assert len(plain) == 60
    for name, delimiter, encoding in (
        ("bom_semicolon.csv", ";", "utf-8"),
        ("carriage_return_only.csv", ",", "utf-8"),
        ("tab.tsv", "\t", "utf-8"),
        ("utf16.csv", ",", "utf-16"),
    ):
        _, rows, report = read(shared / "cases" / name)
        assert rows == plain
        assert (report.delimiter, report.encoding) == (delimiter, encoding)


@pytest.mark.shared_data
def test_windows_1252_comes_out_as_written(shared: Path) -> None:
    _, rows, report = read(shared / "cases/windows_1252.csv")
    assert rows[0] == ("Pompe à huile n° 0 leaked oil at the north usine – « nord »", "1")
    assert report.encoding == "cp1252"
    assert "--encoding" in report.notes[0]


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("above_the_maximum", 80), ("blank_items", 6), ("composed_and_decomposed", 10),
        ("deduplicated_on_label", 380), ("export_copies", 101), ("label_spellings", 8), ("label_words", 8),
        ("no_repeats", 30), ("one_giant_group", 140), ("quoted_newlines", 60), ("three_classes", 60),
        ("wrong_column", 1),
    ],
)  # fmt: skip
def test_every_other_case_reads_as_csv_reads_it(shared: Path, name: str, rows: int) -> None:
    path = shared / "cases" / f"{name}.csv"
    with path.open(newline="", encoding="utf-8") as file:
        header, *expected = csv.reader(file, strict=True)
    columns, found, report = read(path)
    assert columns == tuple(header)
    assert found == [tuple(cell or None for cell in row) for row in expected]
    assert len(found) == rows
    assert (report.encoding, report.delimiter, report.quote) == ("utf-8", ",", '"')
    assert report.notes == ()


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ragged.csv", ("ragged.csv, line 3: 3 fields where 2 were expected", "--ragged drop")),
        ("header_only.csv", ("header_only.csv: no rows",)),
        ("empty.csv", ("empty.csv: the file is empty",)),
    ],
)
def test_unreadable_cases_are_one_clear_line(shared: Path, name: str, words: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as raised:
        read(shared / "cases" / name)
    assert raised.value.exit_code == 2
    assert "\n" not in str(raised.value)
    for word in words:
        assert word in str(raised.value)


# --- any table that csv writes ------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12) | st.text(
    "ab,;|\t\"'\\\n\r #é", max_size=8
)


@st.composite
def tables(draw: st.DrawFn, cell: st.SearchStrategy[str] = TEXT, width: int = 4) -> list[list[str]]:
    columns = draw(st.integers(1, width))
    row = st.lists(cell, min_size=columns, max_size=columns)
    return [list(string.ascii_lowercase[:columns]), *draw(st.lists(row, min_size=1, max_size=6))]


def dump(table: Sequence[Sequence[str]], **dialect: Any) -> str:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, **dialect).writerows(table)
    return buffer.getvalue()


def check(table: list[list[str]], path: Path, **options: Any) -> None:
    columns, rows, _ = read(path, **options)
    assert columns == tuple(table[0])
    assert rows == [tuple(cell or None for cell in row) for row in table[1:]]


def quoted_enough(table: list[list[str]], terminator: str) -> bool:
    """Before 3.13 csv quotes only the line ends it writes itself: what it leaves bare, no reader can tell."""
    if sys.version_info >= (3, 13) or terminator == "\r\n":
        return True
    if terminator == "\r":
        return not any("\n" in cell for row in table for cell in row)
    return not any(row[-1].endswith("\r") for row in table)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    table=tables(),
    delimiter=st.sampled_from(",;\t|"),
    terminator=st.sampled_from(["\n", "\r\n", "\r"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"]),
)
@example(table=[["a", "b"], ["\r", "\n"]], delimiter=",", terminator="\n", quoting=0, encoding="utf-8")
@example(table=[["a"], ["x,y"], [""]], delimiter=";", terminator="\n", quoting=0, encoding="utf-8")
@example(
    table=[["a", "b"], ["", ""], ["#", " x "]], delimiter=",", terminator="\r", quoting=0, encoding="utf-16"
)
def test_whatever_csv_writes_is_found_out_and_reads_back(
    tmp_path: Path, table: list[list[str]], delimiter: str, terminator: str, quoting: Any, encoding: str
) -> None:
    assume(quoting == csv.QUOTE_ALL or quoted_enough(table, terminator))
    text = dump(table, delimiter=delimiter, lineterminator=terminator, quoting=quoting)
    mark = "\ufeff" if encoding == "utf-16-be" else ""  # the others of these codecs write their own
    check(table, save(tmp_path / "table.csv", mark + text, encoding))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    table=tables(TEXT | st.text("\0ab", max_size=3)),
    delimiter=st.sampled_from(",;\t|:~^"),
    quotechar=st.sampled_from("\"'$"),
    escape=st.booleans(),
    encoding=st.sampled_from(["utf-8", "utf-16-le", "utf-16-be", "utf-32-be", "gb18030"]),
)
def test_dialects_that_are_told_read_back(
    tmp_path: Path, table: list[list[str]], delimiter: str, quotechar: str, escape: bool, encoding: str
) -> None:
    written = {"delimiter": delimiter, "quotechar": quotechar, "quoting": csv.QUOTE_ALL}
    told = {"delimiter": delimiter, "quoting": quotechar, "encoding": encoding}
    if escape:
        written |= {"doublequote": False, "escapechar": "\\"}
        told |= {"escape": "\\"}
    check(table, save(tmp_path / "table.csv", dump(table, **written), encoding), **told)


WESTERN = "".join(bytes([code]).decode("cp1252", "ignore") for code in range(1, 256))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=tables(st.text(WESTERN, max_size=8)))
def test_windows_1252_reads_back_when_told(tmp_path: Path, table: list[list[str]]) -> None:
    check(table, save(tmp_path / "table.csv", dump(table), "cp1252"), encoding="cp1252")


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=tables(st.lists(st.sampled_from(["é ", "ü,", "“a", "œ\n", "x", '"']), max_size=4).map("".join)))
def test_windows_1252_is_found_out(tmp_path: Path, table: list[list[str]]) -> None:
    assume(not all(cell.isascii() for row in table for cell in row))
    check(table, save(tmp_path / "table.csv", dump(table), "cp1252"))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    table=tables(st.text('a,"\n\r', max_size=6), width=3),
    times=st.sampled_from([1, 40, 150]),
    terminator=st.sampled_from(["\n", "\r\n"]),
    buffer=st.sampled_from([100, 200, 800]),
)
def test_rows_on_the_seams_of_the_parallel_reader_are_not_lost(
    tmp_path: Path, table: list[list[str]], times: int, terminator: str, buffer: int
) -> None:
    assume(quoted_enough(table, terminator))
    long = [table[0], *[["x", *[""] * (len(table[0]) - 1)]] * 30, *table[1:] * times]
    path = save(tmp_path / "table.csv", dump(long, lineterminator=terminator))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading_scan, "_BUFFER", buffer)  # small buffers make many seams
        check(long, path)


def test_rows_that_the_parallel_reader_loses_are_read_again(tmp_path: Path) -> None:
    table = [["a", "b"], *[[f"line {i}\nsecond", "x,y"] for i in range(60_000)]]
    table[1:1] = [["plain", "1"]] * 40_000  # nothing in the first part tells of the line breaks further on
    with open_table(save(tmp_path / "table.csv", dump(table))) as opened:
        assert opened.materialise(f"SELECT b FROM {opened.name}", "rows") == len(table) - 1
        last = opened.con.execute("SELECT count(*) FROM rows WHERE b = 'x,y'").fetchone()
    assert last == (60_000,)
