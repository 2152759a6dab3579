"""Writes tables and texts: the kind of file follows from its name, and a file is there whole or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from audit.errors import ArgumentError
from audit.reading_typed import literal, quote

__all__ = ["Cell", "check_outputs", "check_tables", "distinct", "write_rows", "write_text"]

Cell = str | int | float | bool | None

_KINDS = ".csv, .tsv, .jsonl (each also with .gz), .parquet or .xlsx"
_SHEET_ROWS = 1_048_576
_SHEET_CELL = 32_767
_MEASURED = 200  # rows that decide how wide a column of a sheet is
_BATCH = 20_000


#: What is read of a folder: its tables, and what a run says of itself.
_READ, _RUN_FILES = (".parquet", ".jsonl", ".csv"), ("run.json", "metrics.json")


def check_outputs(source: object, *outputs: str | os.PathLike[str] | None) -> None:
    """Raise an ArgumentError when an output is an input file, has no folder, or when two outputs are one file.

    ``source`` is one input or a list of them; of a folder, the tables in it and its run.json are inputs.
    """
    sources = source if isinstance(source, list | tuple) else (source,)
    taken = [Path(one) for one in sources if isinstance(one, str | os.PathLike) and str(one) != "-"]
    folders = [Path(os.path.realpath(one)) for one in taken if one.is_dir()]
    for output in outputs:
        if output is None:
            continue
        path = Path(output)
        if str(path) == "-":
            raise ArgumentError(
                "- would be a file of that name: leave --out out to print the report, and name a file for all else"
            )
        real = Path(os.path.realpath(path))
        if not real.parent.is_dir():
            raise ArgumentError(f"{path}: cannot be written (there is no such folder); name another file")
        within = real.suffix in _READ or real.name in _RUN_FILES
        inside = within and real.exists() and any(real.is_relative_to(folder) for folder in folders)
        if inside or any(str(real) == os.path.realpath(other) for other in taken):
            raise ArgumentError(
                f"{path} is read or written already in this run: give the output another name"
            )
        taken.append(path)


def check_tables(*paths: str | os.PathLike[str] | None) -> None:
    """Raise the ArgumentError of :func:`write_rows` for endings that say no kind of file, before work is done."""
    for path in paths:
        if path is not None:
            _kind_of_file(path)


def _kind_of_file(path: str | os.PathLike[str]) -> tuple[str, bool]:
    """The ending of a table that can be written, and whether it is packed."""
    kind = Path(path).suffix.lower()
    packed = kind == ".gz"
    if packed:
        kind = Path(Path(path).stem).suffix.lower()
    if kind not in (".csv", ".tsv", ".jsonl", ".ndjson") and (kind not in (".parquet", ".xlsx") or packed):
        raise ArgumentError(f"{os.fspath(path)}: the ending says no kind of file; use {_KINDS}")
    return kind, packed


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """The names, each once, whatever their case: a column of the data called as one of ours gets an underscore."""
    out: list[str] = []
    for name in names:
        while name.casefold() in map(str.casefold, out):
            name += "_"
        out.append(name)
    return tuple(out)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text in UTF-8, line ends as they are; half a surrogate pair becomes its escape.

    Raises
    ------
    ArgumentError
        The file cannot be written.
    """
    with _replacing(path) as (_, file):
        file.write(text.encode("utf-8", "backslashreplace"))


def write_rows(path: str | os.PathLike[str], columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> int:
    """Write a table and return its number of rows.

    The ending of ``path`` says how: .csv, .tsv or .jsonl, each also with .gz; .parquet; .xlsx. Rows are written as
    they come, except that Parquet is gathered first. Text is written as it is: a cell that a spreadsheet would take
    for a formula too (in .xlsx it is stored as text, in .csv nothing can say so). None is an empty cell; in Parquet a
    column of numbers only, or of true and false only, is stored as such.

    Raises
    ------
    ArgumentError
        The ending is not known, the file cannot be written, two columns have one name, a row has not as many cells
        as there are columns, or a workbook cannot hold that much.
    """
    writers = {".csv": _write_csv, ".tsv": _write_tsv, ".jsonl": _write_json, ".ndjson": _write_json}
    others = {".parquet": _write_parquet, ".xlsx": _write_sheet}
    kind, packed = _kind_of_file(path)
    if len({name.casefold() for name in columns}) < len(columns):
        raise ArgumentError(
            f"{os.fspath(path)}: two columns have one name ({', '.join(columns)}); rename one"
        )
    with _replacing(path) as (part, file):
        done = [0]
        checked = _checked(rows, len(columns), done)
        if kind in others:
            others[kind](part, columns, checked)
        else:
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) if packed else file as raw:
                text = io.TextIOWrapper(raw, encoding="utf-8", newline="")
                writers[kind](text, columns, checked)
                text.flush()
                text.detach()
    return done[0]


@contextmanager
def _replacing(path: str | os.PathLike[str]) -> Iterator[tuple[Path, IO[bytes]]]:
    """A file beside ``path`` that takes its place when all went well; a pipe or device is written as it is."""
    target = Path(os.path.realpath(path))
    direct = target.exists() and not target.is_file()
    part, made = target if direct else _unused(target), False
    try:
        with part.open("wb" if direct else "xb") as file:
            made = not direct
            yield part, file
        if made:
            part.replace(target)
    except OSError as error:
        raise ArgumentError(
            f"{os.fspath(path)}: cannot be written ({error.strerror or error}); name another file"
        ) from error
    finally:
        if made:
            part.unlink(missing_ok=True)


def _unused(target: Path) -> Path:
    """A name beside ``target`` that no file has: what is called as a part may be somebody's data."""
    names = (target.with_name(f"{target.name}.part{number}") for number in ("", *range(1, 1_000_000)))
    return next(name for name in names if not os.path.lexists(name))


def _checked(rows: Iterable[Sequence[Cell]], width: int, done: list[int]) -> Iterator[Sequence[Cell]]:
    for row in rows:
        done[0] += 1
        if len(row) != width:
            raise ArgumentError(f"row {done[0]} has {len(row)} cells for {width} columns; give one for each")
        yield [None if cell != cell else cell for cell in row]  # NaN is a missing number


def _text(cell: Cell) -> str | None:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return cell if cell is None or isinstance(cell, str) else repr(cell)


def _write_csv(file: IO[str], columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    _write_separated(file, columns, rows, ",")


def _write_tsv(file: IO[str], columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    _write_separated(file, columns, rows, "\t")


def _write_separated(
    file: IO[str], columns: Sequence[str], rows: Iterable[Sequence[Cell]], delimiter: str
) -> None:
    usual = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    quoted = csv.writer(file, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in chain([columns], rows):
        cells = [_text(cell) for cell in row]
        # csv leaves a lone carriage return unquoted, which then reads as the end of a line
        writer = quoted if any("\r" in cell for cell in cells if cell) else usual
        writer.writerow(cells)


def _write_json(file: IO[str], columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    for row in rows:
        file.write(json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n")


def _write_parquet(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    import duckdb
    import numpy as np

    names = [f"c{place}" for place in range(len(columns))]
    kinds: list[set[str]] = [set() for _ in columns]
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as con:
        con.execute(f"CREATE TABLE held ({', '.join(f'{name} VARCHAR' for name in names)})")
        source = iter(rows)
        while batch := list(islice(source, _BATCH)):
            chunk = {}
            for place, name in enumerate(names):
                cells = [row[place] for row in batch]
                kinds[place].update(_kind(cell) for cell in cells if cell is not None)
                chunk[name] = np.array([_text(cell) for cell in cells], dtype=object)
            con.register("chunk", chunk)
            con.execute("INSERT INTO held SELECT * FROM chunk")
            con.unregister("chunk")
        typed = ", ".join(
            f"{name}::{_sql_type(kind)} AS {quote(column)}"
            for name, kind, column in zip(names, kinds, columns, strict=True)
        )
        con.execute(f"COPY (SELECT {typed} FROM held) TO {literal(str(path))} (FORMAT parquet)")


def _kind(cell: Cell) -> str:
    if isinstance(cell, bool):
        return "BOOLEAN"
    if isinstance(cell, int) and abs(cell) < 1 << 63:
        return "BIGINT"
    return "DOUBLE" if isinstance(cell, float) else "VARCHAR"


def _sql_type(kinds: set[str]) -> str:
    if len(kinds) == 1:
        return next(iter(kinds))
    return "DOUBLE" if kinds == {"BIGINT", "DOUBLE"} else "VARCHAR"


def _write_sheet(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    import xlsxwriter  # type: ignore[import-untyped]

    book = xlsxwriter.Workbook(str(path), {"constant_memory": True})
    try:
        _fill_sheet(book, columns, rows)
    finally:  # closes its own temporary files
        try:
            book.close()
        except xlsxwriter.exceptions.FileCreateError as error:
            raise OSError(str(error)) from error


def _fill_sheet(book: Any, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    sheet = book.add_worksheet("rows")
    sheet.freeze_panes(1, 0)
    heading = book.add_format({"bold": True})
    widths = [len(column) for column in columns]
    for place, column in enumerate(columns):
        sheet.write_string(0, place, column, heading)
    for line, row in enumerate(rows, start=1):
        if line >= _SHEET_ROWS:
            raise ArgumentError(f"a workbook holds {_SHEET_ROWS:,} rows; write .csv or .parquet")
        for place, cell in enumerate(row):
            if isinstance(cell, str):
                if len(cell) > _SHEET_CELL:
                    raise ArgumentError(
                        f"row {line}: a cell of a workbook holds {_SHEET_CELL:,} characters; write .csv or .parquet"
                    )
                sheet.write_string(line, place, cell)
            elif isinstance(cell, bool):
                sheet.write_boolean(line, place, cell)
            elif cell is not None:
                sheet.write_number(line, place, cell)
            if line <= _MEASURED and cell is not None:
                widths[place] = max(widths[place], len(str(cell)))
    for place, width in enumerate(widths):
        sheet.set_column(place, place, min(max(width, 8), 80) + 1)
