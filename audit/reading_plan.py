"""What is known of a source, how it may be scanned, and what was asked of its reading."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from audit.reading_text import Marks, Ragged

__all__ = ["Format", "Options", "Plan", "ReadReport", "Scan"]

#: What a source is; ``frame`` is a data frame of any library.
Format = Literal[
    "csv", "tsv", "jsonl", "json", "parquet", "workbook", "sqlite", "duckdb", "postgresql", "frame"
]


@dataclass(frozen=True, kw_only=True)
class ReadReport:
    """What was found out about a source.

    ``quote`` is ``""`` where nothing is quoted; fields that do not apply are None. ``notes`` are sentences
    that a reader of the results should see.
    """

    source: str
    format: Format
    compression: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Scan:
    """One way to read a source.

    ``relation`` is SQL, ``cells`` an expression that gives each column as text, ``changes`` the fields of the report
    that become known by it. ``marks`` counts the file's line ends, to check the number of rows by: it must be that of
    line feeds where several threads read (``parallel``), and not above it else.
    """

    relation: str
    cells: Sequence[str]
    changes: Mapping[str, Any] = field(default_factory=dict)
    blanks: bool = False  # cells may be empty strings, not NULL
    marks: Callable[[], Marks] | None = None
    parallel: bool = False

    def accepts(self, rows: int, marks: Marks) -> bool:
        """Whether a number of rows can be right."""
        return marks.sound and (rows == marks.feeds or (rows < marks.feeds and not self.parallel))


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of :func:`audit.reading.open_table`."""

    delimiter: str | None = None
    encoding: str | None = None
    quoting: str | None = None
    escape: str | None = None
    sheet: str | int | None = None
    ragged: Ragged = "error"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The columns of a source, what is known of it, and the ways to scan it, best first."""

    columns: tuple[str, ...]
    report: ReadReport
    scans: list[Callable[[], Scan]]
