"""Writes the relabelled table: the source's rows and columns as they are, and what was decided beside them."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import duckdb

from audit.errors import ArgumentError, InputError
from audit.reading import Table, quote
from relabel.records import Status
from relabel.worklist import Decision, Worklist, scan

__all__ = ["COLUMNS", "FORMATS", "OutputCounts", "check_paths", "output_names", "write"]

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
FORMATS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")


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


def check_paths(out: Path, *, source: Any, unresolved: Path) -> None:
    """ArgumentError where the output cannot be written: said before anything is spent."""
    if out.suffix.lower() not in FORMATS:
        raise ArgumentError(f"--out {out}: the format is told by the ending; use one of {', '.join(FORMATS)}")
    if isinstance(source, str | Path) and str(source) != "-":
        for path in (out, unresolved):
            if path.exists() and path.samefile(source):
                raise ArgumentError(f"--out {out} would overwrite the input; give another file")
    if out.is_dir() or not out.parent.is_dir():
        raise ArgumentError(f"--out {out}: no such folder to write to; make it first")


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
) -> OutputCounts:
    """Write ``out``, and ``unresolved`` (row, status, reason) where rows have no verdict; return the counts.

    Order and number of rows are those of the source. Both files appear whole or not at all. ``same`` tells
    whether an old label and a new one are the same.
    """
    table, counts = worklist.table, OutputCounts()
    columns = (*table.columns, *output_names(table.columns))
    with _whole(unresolved) as listed, _whole(out) as target:
        with _open(listed) as failures, _writer(target, out.suffix.lower(), columns) as put:
            failed = csv.writer(failures, lineterminator="\n")
            failed.writerow(("row", "status", "reason"))
            for cells, old, decision in _rows(table, worklist):
                counts.rows += 1
                _count(counts, old, decision, same)
                verdict = decision.verdict
                if verdict.label is None:
                    failed.writerow((counts.rows, str(verdict.status), verdict.reason))
                put(
                    (
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
                )
        if counts.rows != worklist.rows:
            raise InputError(
                f"{table.report.source} changed while it was read; run again, nothing is paid twice"
            )
        if not counts.unresolved:
            listed.unlink()
    if not counts.unresolved:
        unresolved.unlink(missing_ok=True)
    return counts


def _rows(table: Table, worklist: Worklist) -> Iterator[tuple[tuple[Any, ...], str | None, Decision]]:
    decisions = worklist.decisions()
    for batch in scan(table, table.columns):
        for cells in batch:
            found = next(decisions, None)
            if found is None:
                raise InputError(
                    f"{table.report.source} grew while it was read; run again, nothing is paid twice"
                )
            yield cells, found[1], found[2]


def _count(
    counts: OutputCounts, old: str | None, decision: Decision, same: Callable[[str, str], bool]
) -> None:
    label = decision.verdict.label
    counts.sources[decision.source] += 1
    counts.statuses[str(decision.verdict.status)] += 1
    if label is not None:
        counts.labels[label] += 1
        if old is not None:
            counts.compared += 1
            counts.kept += same(old, label)


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A file beside ``path`` that takes its place when all went well, and is removed otherwise."""
    part = path.with_name(f".{path.name}.part")
    try:
        yield part
        if part.exists():
            part.replace(path)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror}); check the folder and the disk"
        ) from error
    finally:
        part.unlink(missing_ok=True)


def _open(path: Path) -> TextIO:
    return path.open("w", encoding="utf-8", newline="")


@contextmanager
def _writer(part: Path, suffix: str, columns: Sequence[str]) -> Iterator[Callable[[Sequence[Any]], Any]]:
    if suffix in (".jsonl", ".ndjson"):
        with _open(part) as file:
            yield lambda cells: file.write(
                json.dumps(dict(zip(columns, cells, strict=True)), ensure_ascii=False) + "\n"
            )
    elif suffix == ".parquet":
        rows = part.with_name(f"{part.name}.csv")
        try:
            with _writer(rows, ".csv", columns) as put:
                yield put
            _parquet(rows, part, columns)
        finally:
            rows.unlink(missing_ok=True)
    else:
        with _open(part) as file:
            writer = csv.writer(file, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
            writer.writerow(columns)
            yield writer.writerow


def _parquet(rows: Path, target: Path, columns: Sequence[str]) -> None:
    types = ", ".join(f"{quote(name)}: 'VARCHAR'" for name in columns).replace("$", "$$")
    confidence = quote(columns[len(columns) - len(COLUMNS) + COLUMNS.index("confidence")])
    scanned = f"read_csv(?, auto_detect=false, header=true, delim=',', quote='\"', columns={{{types}}})"
    with duckdb.connect() as con:
        con.execute("SET threads = 1")
        con.execute(
            f"COPY (SELECT * REPLACE (CAST({confidence} AS DOUBLE) AS {confidence}) FROM {scanned}) TO"
            f" {_literal(str(target))} (FORMAT parquet)",
            [str(rows)],
        )


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
