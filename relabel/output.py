"""Writes the relabelled table: the source's rows and columns as they are, and what was decided beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from audit.errors import ArgumentError, InputError
from audit.writing import Cell, write_rows
from relabel.records import Status
from relabel.worklist import Decision, Worklist

__all__ = ["COLUMNS", "OutputCounts", "check_paths", "output_names", "write"]

COLUMNS = (
    "label_clean",
    "label_source",
    "confidence",
    "confidence_kind",
    "rationale",
    "status",
    "model",
    "rubric_version",
)
ENDINGS = (".csv", ".tsv", ".jsonl", ".ndjson", ".csv.gz", ".tsv.gz", ".jsonl.gz", ".parquet", ".xlsx")


@dataclass(kw_only=True)
class OutputCounts:
    """Rows written: by source, by label, by status, and how they compare with the old labels."""

    rows: int = 0
    sources: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    kept: int = 0

    @property
    def unresolved(self) -> int:
        """Rows without a verdict."""
        return self.rows - self.statuses[Status.OK]


def check_paths(
    out: Path, *, source: Any, unresolved: Path, journal: Path | None = None, reads: Sequence[Any] = ()
) -> None:
    """ArgumentError where the output cannot be written: said before anything is spent.

    ``reads`` are further inputs (gold, the rubric): like ``source`` they are files or something else.
    """
    try:
        for path in (out, unresolved, *([journal] if journal else [])):
            with suppress(FileNotFoundError):
                path.stat()
    except (OSError, ValueError) as error:
        raise ArgumentError(f"--out {out}: this name cannot be used ({error}); give a shorter one") from error
    if not out.name.lower().endswith(ENDINGS):
        raise ArgumentError(f"--out {out}: the ending says no kind of file; use one of {', '.join(ENDINGS)}")
    if out.is_dir() or not out.parent.is_dir():
        raise ArgumentError(f"--out {out}: there is no such folder to write to; make it first")
    if journal is not None and journal.resolve() in (out.resolve(), unresolved.resolve()):
        raise ArgumentError(f"--out {out} would overwrite the journal; give another --journal")
    for read in (source, *reads):
        for path in (out, unresolved):
            if not isinstance(read, str | Path) or str(read) == "-":
                continue
            if path.exists() and Path(read).exists() and path.samefile(read):
                raise ArgumentError(f"--out {out} would overwrite the input {read}; give another file")


def output_names(columns: Sequence[str]) -> tuple[str, ...]:
    """The names of the added columns; one that the input has already becomes ``relabel_<name>``."""
    taken = {column.casefold() for column in columns}
    names = []
    for name in COLUMNS:
        while name.casefold() in taken:
            name = f"relabel_{name}"
        taken.add(name.casefold())
        names.append(name)
    return tuple(names)


def write(
    worklist: Worklist,
    *,
    out: Path,
    unresolved: Path,
    rubric_version: str,
    same: Callable[[str, str], bool],
    changed: Callable[[], bool] = lambda: False,
) -> OutputCounts:
    """Write ``out``, and ``unresolved`` (row, status, reason) where rows have no verdict; return the counts.

    Order and number of rows are those of the source. Each file appears whole or not at all. ``same`` tells
    whether an old label and a new one are the same, ``changed`` whether the source is no longer what was judged.
    """
    table, counts = worklist.table, OutputCounts()
    columns = (*table.columns, *output_names(table.columns))

    def rows() -> Iterator[Sequence[Cell]]:
        for cells, old, decision in _rows(worklist, changed):
            _count(counts, old, decision, same)
            verdict = decision.verdict
            yield (
                *cells,
                verdict.label,
                decision.source,
                verdict.confidence,
                verdict.confidence_kind,
                verdict.rationale or None,
                str(verdict.status),
                decision.model or None,
                rubric_version,
            )

    write_rows(out, columns, rows())
    if counts.unresolved:
        write_rows(unresolved, ("row", "status", "reason"), _failures(worklist))
    else:
        unresolved.unlink(missing_ok=True)
    return counts


def _rows(
    worklist: Worklist, changed: Callable[[], bool]
) -> Iterator[tuple[tuple[str | None, ...], str | None, Decision]]:
    if changed():
        raise _changed(worklist)
    cells = (row for batch in worklist.table.rows() for row in batch)
    for row, decided in zip_longest(cells, worklist.decisions()):
        if row is None or decided is None:
            raise _changed(worklist)
        yield row, decided[1], decided[2]
    if changed():
        raise _changed(worklist)


def _changed(worklist: Worklist) -> InputError:
    return InputError(
        f"{worklist.table.report.source} changed while it was read; run again, nothing is paid twice"
    )


def _failures(worklist: Worklist) -> Iterator[Sequence[Cell]]:
    for row, (_, _, decision) in enumerate(worklist.decisions(), start=1):
        if decision.verdict.label is None:
            yield row, str(decision.verdict.status), decision.verdict.reason


def _count(
    counts: OutputCounts, old: str | None, decision: Decision, same: Callable[[str, str], bool]
) -> None:
    label = decision.verdict.label
    counts.rows += 1
    counts.sources[decision.source] += 1
    counts.statuses[str(decision.verdict.status)] += 1
    if label is not None:
        counts.labels[label] += 1
        if old is not None:
            counts.compared += 1
            counts.kept += same(old, label)
