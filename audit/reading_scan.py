"""Finds out what a source is, and in which ways it can be scanned: the fast one first, the strict one last."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import duckdb

from audit.errors import ArgumentError, InputError
from audit.reading_plan import Options, Plan, ReadReport, Scan
from audit.reading_sniff import Header, find_encoding, find_header, unique_names
from audit.reading_sources import (
    DUCKDB,
    POSTGRES,
    SQLITE,
    attach_duckdb,
    copy_remote,
    is_remote,
    postgres_rows,
    redacted,
    scheme,
    sqlite_rows,
)
from audit.reading_text import (
    Copy,
    Scratch,
    count_marks,
    fetch,
    recheck_encoding,
    strict_copy,
    to_utf8,
    write_copy,
)
from audit.reading_typed import (
    file_literal,
    json_keys,
    json_rows,
    literal,
    quote,
    register_frame,
    sheet_rows,
    text_columns,
)

__all__ = ["Options", "Plan", "ReadReport", "Scan", "plan_scans"]

_SAMPLE = 1 << 20
_TRIED = 1 << 18
#: DuckDB's buffers, in bytes. With this size and no word of the longest row, a buffer goes to the table in one piece,
#: which saves a quarter of the time; rows of more than 2 MB are then left to the strict reading.
_BUFFER, _SMALL_BUFFER = 32_000_000, 8_000_000  # of several threads, and of one that reads row by row
#: In a copy written here, rows may be this long, or longer by its own count.
_LONGEST = 16_000_000
_TEXT = {".csv", ".tsv", ".tab", ".psv"}
_JSON = {".json", ".jsonl", ".ndjson"}


def plan_scans(con: duckdb.DuckDBPyConnection, source: Any, options: Options, scratch: Scratch) -> Plan:
    """Return how to read ``source``; see :func:`audit.reading.open_table`."""
    if not isinstance(source, str | Path):
        relation, names, notes = register_frame(con, source, "frame", scratch.path(".parquet"))
        return _typed(
            con, relation, ReadReport(source="data frame", format="frame", notes=tuple(notes)), names
        )
    if not is_remote(source):
        path, name, compression = fetch(source, scratch)
    else:
        name = redacted(str(source))
        with named(name):
            if scheme(str(source)) in POSTGRES:
                rows = postgres_rows(str(source), _table(options))
                return _database(rows, ReadReport(source=name, format="postgresql"), scratch)
            copy = copy_remote(str(source), scratch)
        path, _, compression = fetch(copy, scratch, name=name)
    report = ReadReport(source=name, format="csv", compression=compression)
    with named(name):
        try:
            with path.open("rb") as file:
                sample = file.read(_SAMPLE)
        except OSError as error:
            raise InputError(f"cannot be read ({error}); check the file") from error
        if sample.startswith(b"PAR1"):
            relation = f"read_parquet({file_literal(path)}, binary_as_string = true)"
            return _typed(con, relation, replace(report, format="parquet"))
        if sample.startswith(SQLITE):
            rows = sqlite_rows(path, _table(options))
            return _database(rows, replace(report, format="sqlite"), scratch)
        if sample[8:12] == DUCKDB:
            relation = attach_duckdb(con, path, _table(options))
            return _typed(con, relation, replace(report, format="duckdb"))
        if sample.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
            return _workbook(path, options, replace(report, format="workbook"), scratch)
        return _text(con, path, sample, options, report, scratch)


def _typed(
    con: duckdb.DuckDBPyConnection, relation: str, report: ReadReport, names: Sequence[str] | None = None
) -> Plan:
    described, cells, whole = text_columns(con, relation)
    columns, renamed = unique_names(names or described)
    if con.execute(f"SELECT 1 FROM {relation} LIMIT 1").fetchone() is None:
        raise InputError(_NO_ROWS)
    held = ", ".join(columns[place] for place in whole)
    notes = (
        (f"stored as decimals but whole numbers throughout, read as 1 and not 1.0: {held}",) if whole else ()
    )
    report = replace(report, notes=(*report.notes, *renamed, *notes))
    return Plan(
        columns=columns, report=report, scans=[lambda: Scan(relation=relation, cells=cells, blanks=True)]
    )


def _table(options: Options) -> str | None:
    return None if options.sheet is None else str(options.sheet)


def _database(rows: Iterator[Sequence[str | None]], report: ReadReport, scratch: Scratch) -> Plan:
    """A table of a database, copied row by row."""
    columns, renamed = unique_names(name or "" for name in next(rows))
    copy = write_copy(rows, scratch)
    if copy.rows == 0:
        raise InputError(_NO_ROWS)
    report = replace(report, notes=(*report.notes, *renamed, *copy.notes))
    return Plan(columns=columns, report=report, scans=[lambda: _copied(copy, len(columns))])


_NO_ROWS = "no rows below the names of the columns; there is nothing to read"


def _workbook(path: Path, options: Options, report: ReadReport, scratch: Scratch) -> Plan:
    rows, notes = sheet_rows(path, options.sheet)
    header = next((row for row in rows if any(row)), None)
    if header is None:
        raise InputError("the sheet is empty; --sheet picks another one")
    columns, renamed = unique_names(cell or "" for cell in header)
    copy = write_copy((row for row in rows if any(row)), scratch)
    if copy.rows == 0:
        raise InputError(_NO_ROWS)
    report = replace(report, notes=(*notes, *renamed, *copy.notes))
    return Plan(columns=columns, report=report, scans=[lambda: _copied(copy, len(columns))])


def _copied(copy: Copy, width: int, **changes: Any) -> Scan:
    relation = _read_csv(
        copy.path, width, quote='"', delimiter=",", parallel=False, longest=max(copy.longest, _LONGEST)
    )
    return Scan(
        relation=relation,
        cells=_names(width),
        changes={**changes, "notes": (*changes.get("notes", ()), *copy.notes)},
    )


def _names(width: int) -> list[str]:
    return [f"c{place}" for place in range(width)]


def _read_csv(
    path: Path, width: int, *, delimiter: str, quote: str, parallel: bool, longest: int | None = None
) -> str:
    """SQL that reads separated text and leaves DuckDB nothing to guess; a row of another width is an error."""
    columns = ", ".join(f"'{name}': 'VARCHAR'" for name in _names(width))
    sizes = (
        f"max_line_size = {longest}, buffer_size = {2 * longest}"
        if longest
        else f"buffer_size = {_BUFFER if parallel else _SMALL_BUFFER}"
    )
    return (
        f"read_csv({file_literal(path)}, auto_detect = false, header = true, columns = {{{columns}}}, "
        f"delim = {literal(delimiter)}, quote = {literal(quote)}, escape = {literal(quote)}, "
        f"strict_mode = true, null_padding = false, ignore_errors = false, parallel = {parallel}, "
        f"{sizes})"
    )


def _text(
    con: duckdb.DuckDBPyConnection,
    path: Path,
    sample: bytes,
    options: Options,
    report: ReadReport,
    scratch: Scratch,
) -> Plan:
    whole = len(sample) < _SAMPLE
    codec = options.encoding or find_encoding(sample, whole=whole)
    if codec.lower().replace("_", "-") not in ("utf-8", "utf8", "utf-8-sig"):
        path = to_utf8(path, codec, scratch)
        with path.open("rb") as file:
            sample = file.read(_SAMPLE)
        whole = len(sample) < _SAMPLE
    else:
        codec = "utf-8"
    notes = _cp1252(codec) if options.encoding is None else ()
    report = replace(report, encoding=codec, notes=notes)
    text = codecs.getincrementaldecoder("utf-8-sig")("replace").decode(sample, final=whole)
    suffixes = {suffix.lower() for suffix in Path(report.source).suffixes}
    start = text.lstrip()[:100]
    if suffixes & _JSON or (not suffixes & _TEXT and re.match(r"\{|\[\s*[\[{]", start)):
        return _json(con, path, text, report, scratch)
    header = find_header(
        text[:_TRIED],
        whole=whole and len(text) <= _TRIED,
        delimiter=options.delimiter,
        quoting=options.quoting,
        escape=options.escape,
    )
    return _separated(path, header, options, report, scratch)


def _cp1252(codec: str) -> tuple[str, ...]:
    if codec != "cp1252":
        return ()
    return ("the file is not UTF-8 and was read as Windows-1252; pass --encoding if words come out wrong",)


def _separated(path: Path, header: Header, options: Options, report: ReadReport, scratch: Scratch) -> Plan:
    dialect = header.dialect
    columns, renamed = unique_names(header.cells)
    if not header.rows:
        raise InputError(_NO_ROWS)
    width = len(columns)

    def direct(*, parallel: bool) -> Scan:
        relation = _read_csv(path, width, delimiter=dialect.delimiter, quote=dialect.quote, parallel=parallel)
        count = partial(
            count_marks, path, delimiter=dialect.delimiter, quote=dialect.quote, closely=not parallel
        )
        return Scan(relation=relation, cells=_names(width), marks=cache(count), parallel=parallel)

    def strict() -> Scan:
        changes: dict[str, Any] = {}
        with named(report.source):
            try:
                copy = strict_copy(path, dialect, width=width, ragged=options.ragged, scratch=scratch)
            except UnicodeDecodeError:  # further on in the file than the sample that was looked at
                codec = options.encoding or recheck_encoding(path)
                changes = {"encoding": codec, "notes": _cp1252(codec)}
                copy = strict_copy(
                    to_utf8(path, codec, scratch),
                    dialect,
                    width=width,
                    ragged=options.ragged,
                    scratch=scratch,
                )
            if copy.rows == 0:
                raise InputError(_NO_ROWS)
        return _copied(copy, width, **changes)

    odd_header = any("\n" in cell or "\r" in cell for cell in header.cells)
    odd = dialect.newline == "\r" or dialect.preamble or dialect.escape or dialect.bare or odd_header
    scans: list[Callable[[], Scan]] = [strict]
    if not odd and (dialect.delimiter + dialect.quote).isascii():
        scans.insert(0, partial(direct, parallel=False))
        if not dialect.breaks:
            scans.insert(0, partial(direct, parallel=True))
    plain: tuple[str, ...] = ()
    if options.quoting is None and not dialect.quote:
        plain = (
            "quotes were read as plain text, as nothing seems to be quoted; pass --quote '\"' if cells are",
        )
    report = replace(
        report,
        format="tsv" if dialect.delimiter == "\t" else "csv",
        delimiter=dialect.delimiter,
        quote=dialect.quote,
        notes=(*report.notes, *renamed, *plain),
    )
    return Plan(columns=columns, report=report, scans=scans)


def _json(
    con: duckdb.DuckDBPyConnection, path: Path, text: str, report: ReadReport, scratch: Scratch
) -> Plan:
    array = text.lstrip().startswith("[")
    shape = "array" if array else "newline_delimited"
    scans: list[Callable[[], Scan]] = []
    try:
        keys = json_keys(con, f"read_json_objects({file_literal(path)}, format = '{shape}')")
        if len({key.casefold() for key in keys} - {""}) == len(keys):
            fields = ", ".join(f"{literal(key)}: 'VARCHAR'" for key in keys)
            relation = (
                f"read_json({file_literal(path)}, format = '{shape}', records = true, columns = {{{fields}}})"
            )
            scans = [lambda: Scan(relation=relation, cells=[quote(key) for key in keys], blanks=True)]
    except duckdb.Error:
        keys = []
    if not keys:
        keys = list(dict.fromkeys(key for record in json_rows(path, array=array) for key in record))
    if not keys:
        raise InputError("no records; give a list of objects, or one object a line")

    def strict() -> Scan:
        with named(report.source):
            copy = write_copy(
                ([row.get(key) for key in keys] for row in json_rows(path, array=array)), scratch
            )
        return _copied(copy, len(keys))

    columns, renamed = unique_names(keys)
    report = replace(report, format="json" if array else "jsonl", notes=(*report.notes, *renamed))
    return Plan(columns=columns, report=report, scans=[*scans, strict])


@contextmanager
def named(source: str) -> Iterator[None]:
    """Put the name of the source before the messages of errors."""
    try:
        yield
    except (InputError, ArgumentError) as error:
        message = str(error)
        raise type(error)(f"{source}{', ' if message.startswith('line ') else ': '}{message}") from error
    except duckdb.Error as error:
        reason = " ".join(str(error).split("\n\n")[0].split())[:300]
        raise InputError(f"{source}: cannot be read ({reason}); check the file") from error
