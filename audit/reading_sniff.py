"""What a text file is, judged from its first part: encoding, separator, quoting, line ends, column names."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from audit.errors import ArgumentError, InputError

__all__ = [
    "Dialect",
    "Header",
    "find_encoding",
    "find_header",
    "fits",
    "parse",
    "unique_names",
    "utf8_or_not",
]

DELIMITERS = (",", "\t", ";", "|")
#: Quote and escape character, most usual first, and what a text must hold to be tried with them.
QUOTINGS = (('"', "", ""), ("'", "", "'"), ('"', "\\", '\\"'), ("", "", '"'))
_MOST_RECORDS = 2_000
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_OTHERS = "such as latin-1, cp1250, cp1251, shift_jis, gb18030 or mac-roman"


@dataclass(frozen=True, kw_only=True)
class Dialect:
    r"""How a table is written as text.

    ``quote`` is empty where nothing is quoted, ``escape`` where quotes are doubled. ``newline`` is ``"\n"`` (also
    for CR LF) or ``"\r"``. ``preamble`` is the number of lines before the header. ``breaks`` tells that a cell
    seen so far holds a line break, ``bare`` that there is a carriage return outside quotes that ends no line.
    """

    delimiter: str
    quote: str = '"'
    escape: str = ""
    newline: str = "\n"
    preamble: int = 0
    breaks: bool = False
    bare: bool = False


def parse(
    lines: Iterable[str], dialect: Dialect, *, hide: bool = True
) -> Iterator[tuple[int, list[str] | csv.Error]]:
    """Yield the records of ``lines`` as (line number from 1, cells); blank lines are left out.

    ``lines`` end as ``dialect.newline`` says. A record that breaks the rules is yielded as its error; reading goes
    on in the line after it. A carriage return inside a line of a file whose lines end in a line feed is text, unless
    ``hide`` is off: then it is an error, as :mod:`csv` has it.
    """
    hide = hide and dialect.newline == "\n"
    reader = csv.reader(
        (_hide(line) if hide and "\r" in line else line for line in lines),
        delimiter=dialect.delimiter,
        quotechar=dialect.quote or None,
        quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
        escapechar=dialect.escape or None,
        doublequote=not dialect.escape,
        strict=True,
    )
    while True:
        start = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield start, error
            continue
        if cells:
            yield start, [cell.replace(_HIDDEN, "\r") if _HIDDEN in cell else cell for cell in cells]


_HIDDEN = "\udc0d"  # half a surrogate pair: no decoded text holds it


def _hide(line: str) -> str:
    body = line.removesuffix("\r\n")
    return body.replace("\r", _HIDDEN) + line[len(body) :]


def find_encoding(sample: bytes, *, whole: bool) -> str:
    """Return the codec of a file from its first bytes: by its mark, by its NUL bytes, else UTF-8 or cp1252.

    ``whole`` says that ``sample`` is the whole file.

    Raises
    ------
    InputError
        The bytes are neither UTF-8 nor Windows-1252, or UTF-8 with a few broken bytes.
    """
    for mark, codec in _BOMS:
        if sample.startswith(mark):
            return codec
    places = [sample[i : 1 << 16 : 4].count(0) / max(len(sample[i : 1 << 16 : 4]), 1) for i in range(4)]
    wide = tuple(share > 0.5 for share in places)
    by_nul: dict[tuple[bool, ...], str] = {
        (False, True, False, True): "utf-16-le",
        (True, False, True, False): "utf-16-be",
        (False, True, True, True): "utf-32-le",
        (True, True, True, False): "utf-32-be",
    }
    if wide in by_nul:
        return by_nul[wide]
    try:
        codec = utf8_or_not(iter([sample]), whole=whole)
    except InputError:
        codec = ""
        if b"\0" not in sample:
            raise
    if b"\0" in sample and codec != "utf-8":
        raise InputError("this is not a text file; give CSV, TSV, JSON, Parquet or a workbook")
    return codec


def utf8_or_not(chunks: Iterator[bytes], *, whole: bool = True) -> str:
    """Return ``"utf-8"`` if the bytes are that, ``"cp1252"`` if they can be; see :func:`find_encoding`."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    good = bad = lines = 0
    first = ""
    undefined = False
    for chunk in chunks:
        text = decoder.decode(chunk)
        if not text.isascii():
            broken = len(_BROKEN.findall(text))
            if broken and not bad:
                place = _BROKEN.search(text)
                at = place.start() if place else 0
                first = f"line {lines + text.count(chr(10), 0, at) + 1}: byte 0x{ord(text[at]) - 0xDC00:02X}"
            bad += broken
            good += len(_WIDE.findall(text)) - broken
            undefined = undefined or not set(chunk).isdisjoint(_UNDEFINED)
        lines += text.count("\n")
    if whole:
        bad += len(decoder.decode(b"", final=True))
    if not bad:
        return "utf-8"
    first = first or f"line {lines + 1}: the last byte"
    if good > bad:
        raise InputError(
            f"{first} is not UTF-8 although most of the text is; repair it, or pass --encoding ({_OTHERS})"
        )
    if undefined:
        raise InputError(f"{first} is neither UTF-8 nor Windows-1252; pass --encoding, {_OTHERS}")
    return "cp1252"


_BROKEN = re.compile("[\udc80-\udcff]")
_WIDE = re.compile("[^\x00-\x7f]")
_UNDEFINED = frozenset(b"\x81\x8d\x8f\x90\x9d")


@dataclass(frozen=True, kw_only=True)
class Header:
    """The first record of a file: how the file is written, the cells, and whether a row follows."""

    dialect: Dialect
    cells: tuple[str, ...]
    rows: bool
    share: float  # of the records seen that are as wide as the header

    @property
    def _rank(self) -> tuple[bool, bool, float]:
        in_quotes = all(len(c) > 1 and c[0] == c[-1] and c[0] in "\"'" for c in self.cells)
        return len(self.cells) > 1, not in_quotes, self.share


def find_header(
    text: str,
    *,
    whole: bool,
    delimiter: str | None = None,
    quoting: str | None = None,
    escape: str | None = None,
) -> Header:
    """Return how ``text``, the first part of a file, is written, and its header.

    Every separator and quoting that is not given is tried. That one wins under which the header has more than one
    column and most records are as wide as it; ties go to the more usual one (see :data:`DELIMITERS`,
    :data:`QUOTINGS`), and that nothing is quoted is believed only if all records are as wide. ``whole`` says that
    ``text`` is the whole file.

    Raises
    ------
    InputError
        There is no header.
    ArgumentError
        ``delimiter``, ``quoting`` or ``escape`` is not one character (the last two may be empty).
    """
    for option, value in (("delimiter", delimiter), ("quote", quoting), ("escape", escape)):
        if value is not None and (len(value) > 1 or value in "\r\n") and (value or option == "delimiter"):
            raise ArgumentError(f"the {option} is {value!r}; give one character, such as ';'")
    hint = re.match(r'"?sep=([^\r\n])"?\r?\n', text)  # a line that some spreadsheets put first
    if hint:
        text, delimiter = text[hint.end() :], delimiter or hint[1]
    candidates = [
        (delimiter or d, q if quoting is None else quoting, e if escape is None else escape)
        for q, e, sign in QUOTINGS
        if sign in text or quoting is not None
        for d in DELIMITERS
    ]
    best: Header | None = None
    for d, q, e in dict.fromkeys(candidates):
        if d not in (q, e):
            trial = _try(text, Dialect(delimiter=d, quote=q, escape=e, preamble=bool(hint)), whole=whole)
            if trial and quoting is None and not q and trial.share < 1:
                continue
            if trial and (best is None or trial._rank > best._rank):
                best = trial
    if best is None:
        raise InputError("there is no header; the first line must name the columns")
    return best


def _try(text: str, dialect: Dialect, *, whole: bool) -> Header | None:
    """Read the start of a file as ``dialect`` says; line ends and blank lines before the header are found here."""
    used: list[str] = []
    first = next(parse(_note(io.StringIO(text, newline=""), used), replace(dialect, newline="\r")), None)
    if first is None or isinstance(first[1], csv.Error):
        return None
    dialect = replace(
        dialect,
        newline="\r" if used[-1].endswith("\r") else "\n",
        preamble=dialect.preamble + first[0] - 1,
    )
    lines = list(io.StringIO(text, newline=dialect.newline if dialect.newline == "\n" else ""))
    records = list(islice(parse(lines, dialect), _MOST_RECORDS))
    cut = not whole and len(records) < _MOST_RECORDS
    if cut:  # the last record is not all there; an open quote may have swallowed half of the text
        swallowed = len(lines) > 20 and len(lines) - records[-1][0] > len(lines) // 2
        records[-1:] = [(records[-1][0], csv.Error())] if swallowed else []
    rows = [cells for _, cells in records[1:]]
    good = [
        cells for cells in rows if not isinstance(cells, csv.Error) and _fits(cells, len(first[1]), dialect)
    ]
    refused = (
        (c for _, c in parse(lines, dialect, hide=False) if isinstance(c, csv.Error)) if "\r" in text else ()
    )
    return Header(
        dialect=replace(
            dialect,
            breaks=any("\n" in cell or "\r" in cell for cells in good for cell in cells),
            bare=any("new-line" in str(error) for error in refused),
        ),
        cells=tuple(first[1]),
        rows=bool(rows) or cut,
        share=len(good) / len(rows) if rows else 1.0,
    )


def _note(lines: Iterable[str], used: list[str]) -> Iterator[str]:
    for line in lines:
        used.append(line)
        yield line


def _fits(cells: Sequence[str], width: int, dialect: Dialect) -> bool:
    if not dialect.quote and any(len(cell) > 1 and cell[0] == cell[-1] == '"' for cell in cells):
        return False  # this cell was quoted after all
    return fits(cells, width)


def fits(cells: Sequence[str], width: int) -> bool:
    """Whether a record has ``width`` cells; more are let pass if they are empty (separators end the line)."""
    return len(cells) == width or (len(cells) > width > 1 and not any(cells[width:]))


def unique_names(names: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return column names without outer white space, none blank and none twice (in any case), and what was changed.

    A blank name becomes ``column_3`` (its place from 1), the second ``label`` becomes ``label_2``.
    """
    given = [name.strip() for name in names]
    seen: set[str] = set()
    result: list[str] = []
    notes: list[str] = []
    for place, name in enumerate(given, start=1):
        new, tries = name or f"column_{place}", 1
        while new.casefold() in seen or (new != name and new in given):
            tries += 1
            new = f"{name or f'column_{place}'}_{tries}"
        seen.add(new.casefold())
        result.append(new)
        if not name:
            notes.append(f"column {place} has no name and is called {new}")
        elif new != name:
            notes.append(f"the name {name} stands more than once; column {place} is called {new}")
    return tuple(result), tuple(notes)
