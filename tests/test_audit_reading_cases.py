"""Text files as people have them: one case for each way in which they go wrong."""

import bz2
import gzip
import io
import lzma
import os
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest

from audit.errors import ArgumentError, InputError, MissingExtraError
from audit.reading import ReadReport, open_table

Rows = list[tuple[str | None, ...]]
PLAIN = b"text,label\na,1\nb,0\n"
PLAIN_ROWS: Rows = [("a", "1"), ("b", "0")]


def read(source: Any, **options: Any) -> tuple[tuple[str, ...], Rows, ReadReport]:
    with open_table(source, **options) as table:
        table.materialise(f"SELECT * FROM {table.name}", "rows")
        return table.columns, table.con.execute("SELECT * FROM rows").fetchall(), table.report


def save(folder: Path, data: bytes | str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


READ: dict[str, tuple[str | bytes, tuple[str, ...], Rows]] = {
    "pipes": ("text|label\na,b|1\n", ("text", "label"), [("a,b", "1")]),
    "semicolons and decimal commas": ("t;v\na;1,5\nb;2,5\n", ("t", "v"), [("a", "1,5"), ("b", "2,5")]),
    "commas in the header only": ("text, as said;label\na;1\n", ("text, as said", "label"), [("a", "1")]),
    "a line that names the separator": ("sep=;\r\na;b\r\n1;2\r\n", ("a", "b"), [("1", "2")]),
    "blank lines": ("\n\na,b\n\n1,2\n\n\n3,4\n\n\n", ("a", "b"), [("1", "2"), ("3", "4")]),
    "no last line end": ("a,b\n1,2", ("a", "b"), [("1", "2")]),
    "line ends of two kinds": ("a,b\r\n1,2\n3,4\r\n", ("a", "b"), [("1", "2"), ("3", "4")]),
    "line ends of two kinds, the other way": ("a,b\n1,2\r\n3,4\n", ("a", "b"), [("1", "2"), ("3", "4")]),
    "carriage returns in text": ("a,b\n1\r2,x\n\ry,z\n", ("a", "b"), [("1\r2", "x"), ("\ry", "z")]),
    "quoted line ends, all kinds": ('a,b\n"1\r\n2\r3\n4",x\n', ("a", "b"), [("1\r\n2\r3\n4", "x")]),
    "quoted carriage return lines": ('a,b\r"1\n2",x\r3,y\r', ("a", "b"), [("1\n2", "x"), ("3", "y")]),
    "one column": ("a\n1\n\n2\n", ("a",), [("1",), (None,), ("2",)]),
    "rows of nothing": ("a,b\n,\n\"\",\"\"\n1,2\n", ("a", "b"), [(None, None), (None, None), ("1", "2")]),
    "words for nothing are words": ("a,b\nNA,null\nNone,nan\n", ("a", "b"), [("NA", "null"), ("None", "nan")]),
    "outer spaces stay": ("a,b\n x , 1\n", ("a", "b"), [(" x ", " 1")]),
    "numbers stay as written": ("a,b\n01,1.0\n1e3,+5\n", ("a", "b"), [("01", "1.0"), ("1e3", "+5")]),
    "hash at the start": ("a,b\n#1,2\n", ("a", "b"), [("#1", "2")]),
    "a separator at the end of rows": ("a,b\n1,2,\n3,4,\n", ("a", "b"), [("1", "2"), ("3", "4")]),
    "a separator at the end of all lines": ("a,b,\n1,2,\n", ("a", "b", "column_3"), [("1", "2", None)]),
    "quotes inside a cell": ('a,b\nsaid "no",1\nx,2\n', ("a", "b"), [('said "no"', "1"), ("x", "2")]),
    "quoted quotes": ('a,b\n"""no"", he said",1\n', ("a", "b"), [('"no", he said', "1")]),
    "single quotes": ("'a','b'\n'it''s, so','1'\n", ("a", "b"), [("it's, so", "1")]),
    "apostrophes": ("a,b\n'tis,1\n'twas,2\n", ("a", "b"), [("'tis", "1"), ("'twas", "2")]),
    "backslashes before quotes": ('a,b\n"a \\"b\\", c",1\n', ("a", "b"), [('a "b", c', "1")]),
    "backslashes": ("a,b\nC:\\new\\,1\n", ("a", "b"), [("C:\\new\\", "1")]),
    "tabs without quoting": ('a\tb\n"Hello\t1\n5" tape\t2\n', ("a", "b"), [('"Hello', "1"), ('5" tape', "2")]),
    "names twice": ("label,Label,label\n1,2,3\n", ("label", "Label_2", "label_3"), [("1", "2", "3")]),
    "names that are taken": ("a,a_2,a\n1,2,3\n", ("a", "a_2", "a_3"), [("1", "2", "3")]),
    "no name": (",b, \n1,2,3\n", ("column_1", "b", "column_3"), [("1", "2", "3")]),
    "names with quotes and spaces": (' a b ,"x""y;"\n1,2\n', ("a b", 'x"y;'), [("1", "2")]),
    "a name of two lines": ('a,"b\nc"\n1,2\n', ("a", "b\nc"), [("1", "2")]),
    "characters that end lines elsewhere": (
        "a,b\nx\u2028y\x85z,\x0b\x0c\x1c\x1d\n", ("a", "b"), [("x\u2028y\x85z", "\x0b\x0c\x1c\x1d")],
    ),
    "NUL bytes": (b"a,b\nx\0y,1\n", ("a", "b"), [("x\0y", "1")]),
    "UTF-16 without a mark": ("a,b\nx é,1\n".encode("utf-16-le"), ("a", "b"), [("x é", "1")]),
    "UTF-32": ("a,b\nx é,1\n".encode("utf-32"), ("a", "b"), [("x é", "1")]),
    "right to left and beyond the first plane": ("a,b\nשלום \u202e,😀\n", ("a", "b"), [("שלום \u202e", "😀")]),
    "markup and formulas": ("a,b\n<script>x</script>,=1+1\n", ("a", "b"), [("<script>x</script>", "=1+1")]),
    "many columns": (
        ",".join(f"c{i}" for i in range(500)) + "\n" + "x," * 499 + "x\n",
        tuple(f"c{i}" for i in range(500)), [("x",) * 500],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_reads(tmp_path: Path, case: str) -> None:
    data, columns, rows = READ[case]
    path = save(tmp_path, data)
    found = read(path)
    assert found[0] == columns
    assert found[1] == rows
    with open_table(path) as table:
        assert [row for batch in table.rows() for row in batch] == rows
        assert table.head(1) == rows[:1]


REFUSED: dict[str, tuple[str | bytes, dict[str, Any], tuple[str, ...]]] = {
    "a row too wide": (
        b"a,b\n1,2\n1,2,3\n", {}, ("table.csv, line 3: 3 fields where 2 were expected", "--ragged drop"),
    ),
    "a row too narrow": (b"a,b\n1,2\n1\n", {}, ("line 3: 1 field where 2", "--ragged pad")),
    "several": (b"a,b\n1\n1,2\n1,2,3\n1,2,3,4\n", {}, ("line 2: 1 field where", "(and 2 more such lines)")),
    "the line counts what cells hold": ('a,b\n"1\n2",3\n4\n', {}, ("line 4: 1 field where",)),
    "a quote not closed": (b'a,b\n"1,1",2\n"x,3\ny,4\n', {}, ("line 3: a quote opens", "--quote none")),
    "a quote not closed at the end": (b'a,b\n"1\n1",2\nx,"3\n', {}, ("line 4: a quote opens",)),
    "the same behind a stray quote": (b'a,b\n"1\n1",2\n5" x,"3\n', {}, ("line 4: a quote opens",)),
    "text after a quote": (b'a,b\n"x" y,2\n"v, w",4\n', {}, ("line 2: text follows a closing quote", "--quote none")),
    "broken UTF-8": ("a,b\né,ü\nß,".encode() + b"\xff\n", {}, ("line 3: byte 0xFF", "--encoding")),
    "cut off UTF-8": ("a,b\né,ü\nß,é".encode()[:-1], {}, ("line 3", "--encoding")),
    "neither": (b"a,b\n\x81\x8d\x90,1\n", {}, ("line 2: byte 0x81 is neither", "--encoding")),
    "not what was said": (b"a,b\n1,2\n\xe9,1\n", {"encoding": "utf-8"}, ("line 3: byte 0xE9", "utf-8")),
    "not what was said either": (b"a,b\n1,2\n\xe9,1\n", {"encoding": "ascii"}, ("line 3: byte 0xE9", "ascii")),
    "no text": (bytes(range(256)) * 4, {}, ("not a text file",)),
    "only blank lines": (b"\n\n\n", {}, ("no header",)),
    "header and blank lines": (b"a,b\n\n\n", {}, ("no rows",)),
    "no separator of this kind": (b"a,b\n1,2\n", {"delimiter": ";;"}, ("the delimiter is ';;'",)),
    "no such encoding": (b"a,b\n1,2\n", {"encoding": "utf-9"}, ("no encoding 'utf-9'",)),
    "an encoding of no text": (b"a,b\n1,2\n", {"encoding": "rot13"}, ("'rot13' is no encoding of text",)),
    "not Parquet": (b"PAR1 and then nothing", {}, ("table.csv: cannot be read",)),
    "not a workbook": (b"\xd0\xcf\x11\xe0 and then nothing", {}, ("table.csv: the workbook cannot be read",)),
    "not gzip": (b"\x1f\x8b and then nothing", {}, ("table.csv: cannot be read",)),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refuses_in_one_line_that_says_how_to_go_on(tmp_path: Path, case: str) -> None:
    data, options, words = REFUSED[case]
    with pytest.raises((InputError, ArgumentError)) as raised:
        read(save(tmp_path, data), **options)
    assert "\n" not in str(raised.value)
    for word in words:
        assert word in str(raised.value)


def test_ragged_rows_can_be_filled_up_or_left_out(tmp_path: Path) -> None:
    path = save(tmp_path, "a,b,c\n1,2,3\n4\n5,6,7,,\n8,9\n,,,,\n")
    _, rows, report = read(path, ragged="pad")
    none = (None, None, None)
    assert rows == [("1", "2", "3"), ("4", None, None), ("5", "6", "7"), ("8", "9", None), none]
    assert "2 rows are not as wide as the header and were filled up" in report.notes[0]
    assert "(line 3, 5)" in report.notes[0]
    _, rows, report = read(path, ragged="drop")
    assert rows == [("1", "2", "3"), ("5", "6", "7"), none]
    assert "2 rows are not as wide as the header and were left out (line 3, 5)" in report.notes[0]
    path = save(tmp_path, "a,b\n1\n1,2,3\n")
    with pytest.raises(InputError, match="line 3: 3 fields"):
        read(path, ragged="pad")
    with pytest.raises(InputError, match="no rows"):
        read(path, ragged="drop")
    with pytest.raises(ArgumentError, match="ragged"):
        read(path, ragged="keep")


def test_words_may_stand_for_an_empty_cell(tmp_path: Path) -> None:
    path = save(tmp_path, "a,b\nNA,n/a\nna,1\n,it's\n")
    rows = [(None, None), ("na", "1"), (None, "it's")]
    assert read(path, missing=["NA", "n/a"])[1] == rows
    assert read(path, missing=["it's"])[1][2] == (None, None)


def test_names_of_separators_and_quotes(tmp_path: Path) -> None:
    path = save(tmp_path, 'a,b;c\td\n"1",2;3\t4\n')
    for name, width in (("tab", 2), ("\\t", 2), ("semicolon", 2), ("comma", 2), ("pipe", 1)):
        assert len(read(path, delimiter=name)[0]) == width
    assert read(path, delimiter=",")[1] == [("1", "2;3\t4")]
    assert read(path, delimiter=",", quoting="none")[1] == [('"1"', "2;3\t4")]
    assert read(path, delimiter=",", quoting="none")[2].quote == ""


@pytest.mark.parametrize("size", [1_000_000, 20_000_000])
def test_long_cells(tmp_path: Path, size: int) -> None:
    text = "x" * (size - 3) + '"\né'
    path = save(tmp_path, f'text,label\n"{text.replace(chr(34), 2 * chr(34))}",1\nb,0\n')
    assert read(path)[1] == [(text, "1"), ("b", "0")]


def test_what_the_first_part_of_a_file_does_not_tell(tmp_path: Path) -> None:
    start = b"text,label\n" + b"plain words,1\n" * 100_000
    _, rows, report = read(save(tmp_path, start + b"\xe9t\xe9,0\n"))
    assert (len(rows), rows[-1], report.encoding) == (100_001, ("été", "0"), "cp1252")
    assert "Windows-1252" in report.notes[0]
    with pytest.raises(InputError, match="line 100002: 3 fields"):
        read(save(tmp_path, start + b"a,b,0\n" + start))
    with pytest.raises(InputError, match="line 100002: byte 0xFF"):
        read(save(tmp_path, start + b"\xff\x81,0\n" + start))
    rows = read(save(tmp_path, start + b"a\rb,\r0\n" + start[11:]))[1]
    assert (len(rows), rows[100_000]) == (200_001, ("a\rb", "\r0"))


PACKERS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def zipped(*files: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in files:
            archive.writestr(name, PLAIN)
    return buffer.getvalue()


def test_compressed_files_whatever_they_are_called(tmp_path: Path) -> None:
    for ending, pack in PACKERS.items():
        for name in (f"table.csv.{ending}", "table.csv"):
            _, rows, report = read(save(tmp_path, pack(PLAIN), name))
            assert rows == PLAIN_ROWS
            assert report.compression in {"gzip", "bzip2", "xz"}
    _, rows, report = read(save(tmp_path, zipped("data/table.csv", "__MACOSX/._table.csv"), "table.zip"))
    assert (rows, report.compression) == (PLAIN_ROWS, "zip")
    with pytest.raises(InputError, match="holds 2 files"):
        read(save(tmp_path, zipped("a.csv", "b.csv"), "table.zip"))
    with pytest.raises(InputError, match=r"table\.csv: cannot be read"):
        read(save(tmp_path, gzip.compress(PLAIN)[:-9]))
    with pytest.raises(InputError, match="empty"):
        read(save(tmp_path, gzip.compress(b"")))


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python unpacks Zstandard")
def test_zstandard_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="zstd -d"):
        read(save(tmp_path, b"\x28\xb5\x2f\xfd rest"))


class Stdin:
    def __init__(self, data: bytes, *, terminal: bool = False) -> None:
        self.buffer = io.BytesIO(data)
        self.isatty = lambda: terminal


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (PLAIN, gzip.compress(PLAIN), PLAIN.decode().encode("utf-16")):
        monkeypatch.setattr(sys, "stdin", Stdin(data))
        _, rows, report = read("-")
        assert (rows, report.source) == (PLAIN_ROWS, "standard input")
    monkeypatch.setattr(sys, "stdin", Stdin(b""))
    with pytest.raises(InputError, match="standard input: the file is empty"):
        read("-")
    monkeypatch.setattr(sys, "stdin", Stdin(b"", terminal=True))
    with pytest.raises(InputError, match="keyboard"):
        read("-")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(PLAIN,))
    writer.start()
    assert read(pipe)[1] == PLAIN_ROWS
    writer.join()


@pytest.mark.parametrize(
    "name", ["a[1]*?.csv", "it's.csv", "data (2).csv", "ü ö.csv", "{x}.csv", "#1.csv", "no ending"]
)
def test_names_of_files_are_names(tmp_path: Path, name: str) -> None:
    save(tmp_path, "text,label\nz,9\n", "a1bc.csv")  # what the first name would match
    assert read(save(tmp_path, PLAIN, name))[1] == PLAIN_ROWS


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        open_table(tmp_path / "none.csv")
    with pytest.raises(InputError, match="folder"):
        open_table(tmp_path)


def test_an_address_needs_what_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtraError, match=r"label-audit\[remote\]"):
        open_table("s3://bucket/none.csv")


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    read(save(tmp_path, gzip.compress(PLAIN.decode().encode("utf-16"))))
    with pytest.raises(InputError):
        read(save(tmp_path, "a,b\n1\n"))
    with pytest.raises(InputError):
        open_table(save(tmp_path, "a,b\n"))
    assert list((tmp_path / "temporary").iterdir()) == []
