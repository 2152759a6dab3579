"""Text files on their way in: uncompressed, turned into UTF-8, and read strictly where DuckDB cannot."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import lzma
import os
import shutil
import sys
import tempfile
import weakref
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from audit.errors import ArgumentError, InputError
from audit.reading_sniff import Dialect, fits, parse, utf8_or_not

__all__ = [
    "Copy",
    "Marks",
    "Ragged",
    "Scratch",
    "count_marks",
    "fetch",
    "recheck_encoding",
    "spool",
    "strict_copy",
    "to_utf8",
    "write_copy",
]

#: What becomes of a row that is not as wide as the header: an error; filled up with missing cells (surplus cells
#: may go only if they are empty); or left out and counted.
Ragged = Literal["error", "pad", "drop"]

# The longest cell that is read here, in characters: an open quote must not swallow a whole file.
_LONGEST_CELL = 1 << 26
_CHUNK = 1 << 20


class Scratch:
    """A folder for temporary files, made when first needed and removed by ``clear`` or with this object."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._files = 0

    def path(self, suffix: str = "") -> Path:
        """Return the path of a new file, not yet there."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="label-audit-"))
            self._finalizer = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._files += 1
        return self._folder / f"{self._files}{suffix}"

    def clear(self) -> None:
        """Remove the folder and all in it."""
        if self._folder is not None:
            self._finalizer()
            self._folder = None


def _zstd(path: Path) -> IO[bytes]:
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise InputError("Zstandard compression needs Python 3.14; unpack the file first (zstd -d)") from None
    opened: IO[bytes] = zstd.open(path)
    return opened


_MAGIC: tuple[tuple[bytes, str, Callable[[Path], Any]], ...] = (
    (b"\x1f\x8b", "gzip", gzip.open),
    (b"BZh", "bzip2", bz2.open),
    (b"\xfd7zXZ\x00", "xz", lzma.open),
    (b"\x28\xb5\x2f\xfd", "zstd", _zstd),
)


def fetch(
    source: str | os.PathLike[str], scratch: Scratch, *, name: str | None = None
) -> tuple[Path, str, str | None]:
    """Return a plain file with the bytes of ``source`` (``"-"`` is standard input), its name, its compression.

    Standard input, pipes and compressed files are written to a temporary file; a regular one is left where it is.
    A copy of something else has its ``name`` given.

    Raises
    ------
    InputError
        The file is not there, cannot be read or unpacked, or is empty.
    """
    path, name = Path(source), name or ("standard input" if os.fspath(source) == "-" else os.fspath(source))
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name!a}: the name of the file is not UTF-8; rename it, or pipe it in as -"
        ) from error
    try:
        if name == "standard input":
            if sys.stdin is None or sys.stdin.isatty():
                raise InputError("standard input is the keyboard; give a file, or pipe a table in")
            path = spool(sys.stdin.buffer, scratch)
        elif not path.exists():
            raise InputError(f"{name}: no such file; check the path")
        elif path.is_dir():
            raise InputError(f"{name} is a folder; give a file in it")
        elif not path.is_file():
            with path.open("rb") as pipe:
                path = spool(pipe, scratch)
        with path.open("rb") as file:
            start = file.read(8)
        compression = None
        for magic, kind, opener in _MAGIC:
            if start.startswith(magic):
                compression = kind
                with opener(path) as packed:
                    path = spool(packed, scratch)
        if start.startswith(b"PK\x03\x04"):
            with zipfile.ZipFile(path) as archive:
                members = [
                    m for m in archive.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX/")
                ]
                if len(members) == 1:  # a workbook has more, one of them its list of contents
                    compression = "zip"
                    with archive.open(members[0]) as packed:
                        path = spool(packed, scratch)
                elif not any(m.filename in ("[Content_Types].xml", "mimetype") for m in members):
                    raise InputError(f"{name} holds {len(members)} files; unpack it and give one of them")
        if path.stat().st_size == 0:
            raise InputError(f"{name}: the file is empty; give a table with a header and rows")
    except (OSError, EOFError, zipfile.BadZipFile, lzma.LZMAError) as error:
        raise InputError(f"{name}: cannot be read ({error}); check the file") from error
    return path, name, compression


def spool(stream: IO[bytes], scratch: Scratch) -> Path:
    """Copy a stream to a temporary file."""
    path = scratch.path()
    with path.open("wb") as file:
        shutil.copyfileobj(stream, file, _CHUNK)
    return path


def to_utf8(path: Path, encoding: str, scratch: Scratch) -> Path:
    """Return a copy of ``path`` in UTF-8, without a byte order mark, line ends as they are.

    Raises
    ------
    ArgumentError
        There is no such encoding.
    InputError
        A byte is not what ``encoding`` says; the line is named.
    """
    try:
        info = codecs.lookup(encoding)
        decoder = codecs.getincrementaldecoder(encoding)()
    except LookupError as error:
        raise ArgumentError(
            f"there is no encoding {encoding!r}; give one such as utf-8, cp1252, utf-16"
        ) from error
    if not getattr(info, "_is_text_encoding", True):
        raise ArgumentError(f"{encoding!r} is no encoding of text; give one such as utf-8, cp1252, utf-16")
    target = scratch.path()
    lines = 1
    with path.open("rb") as source, target.open("w", encoding="utf-8", newline="") as copy:
        first = True
        while True:
            chunk = source.read(_CHUNK)
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                lines += bytes(error.object[: error.start]).count(b"\n")
                raise InputError(
                    f"line {lines}: byte 0x{error.object[error.start]:02X} is not {info.name}; "
                    "repair it, or pass another --encoding"
                ) from error
            except UnicodeError as error:  # no byte order mark where the name of the encoding promises one
                raise InputError(f"this is not {info.name} ({error}); pass another --encoding") from error
            copy.write(text.removeprefix("\ufeff") if first else text)
            lines += text.count("\n")
            first = first and not text
            if not chunk:
                return target


@dataclass(frozen=True, kw_only=True)
class Marks:
    """What a text file holds: ``feeds``, its line feeds without those at its end, and whether it is ``sound``.

    It is not if a carriage return stands without a line feed, nor, looked at closely, if quotes do not come in pairs
    or one has other characters on both sides: what DuckDB makes of such files is not always right.
    """

    feeds: int
    sound: bool


def count_marks(path: Path, *, delimiter: str, quote: str, closely: bool) -> Marks:
    """Count line ends and quotes in a file; ``quote`` may be empty."""
    feeds = bare = quotes = stray = 0
    tail = b""
    edges = np.frombuffer(f"{delimiter}{quote}\r\n".encode(), dtype=np.uint8)
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            codes = np.frombuffer(chunk, dtype=np.uint8)
            feeds += int(np.count_nonzero(codes == ord("\n")))
            if b"\r" in chunk:  # a search is far faster than a count
                bare += chunk.count(b"\r") - chunk.count(b"\r\n")
            bare -= tail.endswith(b"\r") and chunk.startswith(b"\n")
            tail = chunk[-4096:]
            if closely and quote:
                quotes += int(np.count_nonzero(codes == ord(quote)))
                places = 1 + np.flatnonzero(
                    codes[1:-1] == ord(quote)
                )  # the few at the ends of chunks are left out
                beside = np.isin(codes[places - 1], edges) | np.isin(codes[places + 1], edges)
                stray += int(np.count_nonzero(~beside))
    feeds -= tail[len(tail.rstrip(b"\r\n")) :].count(b"\n")
    return Marks(feeds=feeds, sound=not (bare or stray or quotes % 2))


def recheck_encoding(path: Path) -> str:
    """Return ``"utf-8"`` or ``"cp1252"`` from all bytes of a file; see :func:`audit.reading_sniff.utf8_or_not`."""
    with path.open("rb") as file:
        return utf8_or_not(iter(lambda: file.read(_CHUNK), b""))


@dataclass(frozen=True, kw_only=True)
class Copy:
    """A table rewritten as plain CSV: its path, number of rows, longest row in bytes, and notes.

    It is in UTF-8 with every cell quoted. Its first line, a header without meaning, shows how lines end.
    """

    path: Path
    rows: int
    longest: int
    notes: tuple[str, ...] = ()


def write_copy(rows: Iterable[Sequence[str | None]], scratch: Scratch) -> Copy:
    """Write rows (no header) as the plain CSV that a :class:`Copy` is.

    UTF-8 cannot hold half of a surrogate pair (JSON can): it becomes U+FFFD, which a note tells.
    """
    path = scratch.path(".csv")
    count = longest = mended = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        file.write("header\n")
        for row in rows:
            try:
                writer.writerow(row)
            except UnicodeEncodeError:
                mended += 1
                writer.writerow([cell and _mend(cell) for cell in row])
            count += 1
            longest = max(longest, sum(len(cell) + 3 for cell in row if cell))
    note = f"{mended} rows hold half of a surrogate pair, read as \ufffd"
    return Copy(path=path, rows=count, longest=4 * longest, notes=(note,) if mended else ())


def _mend(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def strict_copy(path: Path, dialect: Dialect, *, width: int, ragged: Ragged, scratch: Scratch) -> Copy:
    """Read a UTF-8 file record by record, without any guess, and write its rows (not the header) as a copy.

    Raises
    ------
    InputError
        A record breaks the rules; the message names its line and how to go on.
    UnicodeDecodeError
        The file is not UTF-8.
    """
    odd: list[int] = []
    limit = csv.field_size_limit(_LONGEST_CELL)
    try:
        with path.open(encoding="utf-8-sig", newline="\n" if dialect.newline == "\n" else "") as file:
            lines = islice(file, dialect.preamble, None)
            copy = write_copy(_rows(parse(lines, dialect), dialect, width, ragged, odd), scratch)
    finally:
        csv.field_size_limit(limit)
    if not odd:
        return copy
    done = "filled up with missing cells" if ragged == "pad" else "left out"
    some = ", ".join(str(line) for line in odd[:5]) + (", ..." if len(odd) > 5 else "")
    note = f"{len(odd)} rows are not as wide as the header and were {done} (line {some})"
    return replace(copy, notes=(*copy.notes, note))


def _rows(
    records: Iterable[tuple[int, list[str] | csv.Error]],
    dialect: Dialect,
    width: int,
    ragged: Ragged,
    odd: list[int],
) -> Iterator[Sequence[str | None]]:
    fault = ""
    too_wide = False
    more = 0
    for line, cells in islice(records, 1, None):
        line += dialect.preamble
        if isinstance(cells, csv.Error):
            raise InputError(f"line {line}: {_explain(cells)}") from cells
        if fits(cells, width):
            if not fault:
                yield cells[:width]
        elif ragged == "drop" or (ragged == "pad" and not any(cells[width:])):
            odd.append(line)
            if ragged == "pad":
                yield [*cells[:width], *[None] * (width - len(cells))]
        elif fault:
            more += 1
        else:
            fault = f"line {line}: {len(cells)} field{'s' * (len(cells) > 1)} where {width} were expected"
            too_wide = len(cells) > width
    if fault:
        others = f" (and {more} more such line{'s' * (more > 1)})" if more else ""
        raise InputError(f"{fault}{others}; {_remedy(too_wide, dialect.delimiter)}")


def _remedy(too_wide: bool, delimiter: str) -> str:
    if too_wide:
        return (
            f"put the cell that holds the separator {delimiter!r} in quotes, name another separator with "
            "--delimiter, or leave such rows out with --ragged drop"
        )
    return "fill short rows up with empty cells with --ragged pad, or leave them out with --ragged drop"


def _explain(error: csv.Error) -> str:
    plain = "or pass --quote none if quotes are plain text"
    if "expected after" in str(error):
        return f"text follows a closing quote; double the quotes inside the cell, {plain}"
    if "end of data" in str(error) or "field limit" in str(error):
        return f"a quote opens a cell there and is not closed; close it, {plain}"
    return f"{error}; mend the line"
