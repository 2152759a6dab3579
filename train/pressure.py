"""A ledger of every evaluation: how often a split was looked at, and a holdout that opens once for a final model.

Each look at a validation split that decides what is kept wears it out a little; a holdout tells the truth as long
as nobody chooses by it. The ledger is an append-only file of JSON lines that many runs may share
(:mod:`train.pressure_file`). :func:`train.pressure_report.report_pressure` reads what it means.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from audit.errors import ArgumentError
from train.pressure_entries import (
    Book,
    Entry,
    Key,
    Kind,
    Purpose,
    digest_items,
    digest_model,
    entry_of,
    line_of,
    unusable,
)
from train.pressure_file import append, locked, read_lines

__all__ = ["LEDGER", "Book", "Entry", "Ledger", "digest_items", "digest_model"]

#: The name of a ledger in a folder of runs.
LEDGER = "ledger.jsonl"


class Ledger:
    """The ledger in a file, or in a folder under the name ``ledger.jsonl``.

    What is not there yet is a folder, unless its name has an ending.
    ``wait`` is how many seconds to wait for another process that writes.

    >>> ledger = Ledger("runs")  # doctest: +SKIP
    >>> scores = {"accuracy": 0.8}
    >>> ledger.record(run="sft", model="9f2c", split="validation", metrics=scores, rows=500)  # doctest: +SKIP
    """

    def __init__(self, path: str | Path, *, wait: float = 60.0) -> None:
        place = Path(path)
        folder = place.is_dir() or not (place.exists() or place.suffix)
        self.path = place / LEDGER if folder else place
        self.wait = wait

    def read(self) -> Book:
        """Every line; an InputError where there is no ledger."""
        lines, damaged = read_lines(self.path)
        entries = []
        for number, line in lines:
            entry = entry_of(line, number)
            if entry is None:
                damaged.append(number)
            else:
                entries.append(entry)
        return Book(path=str(self.path), entries=tuple(entries), damaged=tuple(sorted(damaged)))

    def record(
        self,
        *,
        run: str,
        model: str,
        split: str,
        metrics: Mapping[str, float | None],
        items: Sequence[str] | None = None,
        right: Sequence[bool] | None = None,
        rows: int | None = None,
        family: str | None = None,
        purpose: Purpose = "validation",
        key: Key | None = None,
        reason: str | None = None,
    ) -> Entry:
        """Write down one evaluation.

        Parameters
        ----------
        items, right:
            The keys of the evaluated items, and whether each was answered right: the ledger keeps a digest of the
            first and packed bits of the second, so that looks can be compared later without the data.
        rows:
            Their number, where there are no items.
        family:
            The candidates that one choice is made from; the run's name by default.
        purpose:
            ``"holdout"`` scores a holdout. It must have been opened for this model; if not, this opens it, under the
            rules of :meth:`open_holdout`.

        Raises
        ------
        ArgumentError
            A metric is no number, the lengths differ, or the holdout may not be opened again.
        """
        _check_names(run=run, model=model, split=split)
        _check_purpose(purpose)
        numbers = _checked(metrics)
        count, digest, bits = _packed(items, right, rows)
        entry = Entry(
            time=_now(), run=run, family=family or run, model=model, split=split, purpose=purpose, rows=count,
            digest=digest, key=key, metrics=numbers, right=bits if purpose == "validation" else None,
        )  # fmt: skip
        with locked(self.path, wait=self.wait):
            if purpose == "holdout":
                book = self._now()
                openings = book.openings(model=model, split=split, digest=digest)
                scored = sum(e.kind == "evaluation" and e.opens(model, split, digest) for e in book.entries)
                opening = openings[-1] if scored < len(openings) else self._open(entry, book, reason)
                entry = replace(entry, forced=opening.forced)
            append(self.path, line_of(entry))
        return entry

    def open_holdout(
        self,
        *,
        model: str,
        split: str,
        run: str = "",
        family: str | None = None,
        items: Sequence[str] | None = None,
        reason: str | None = None,
    ) -> Entry:
        """Open a holdout for a final model, before anything is scored on it.

        A second opening for the same model -- of the same split, or of the same items under another name -- is refused
        unless ``reason`` says why; the reason is written down. A run that opened it and was cut short before its score
        takes its opening up again.

        Raises
        ------
        ArgumentError
            The holdout was opened for this model before, and no reason is given.
        """
        _check_names(run=run or model, model=model, split=split)
        count, digest, _ = _packed(items, None, None)
        entry = Entry(
            time=_now(), kind="opening", run=run or model, family=family or run or model, model=model, split=split,
            purpose="holdout", rows=count, digest=digest, forced=reason,
        )  # fmt: skip
        with locked(self.path, wait=self.wait):
            return self._open(entry, self._now(), reason)

    def _now(self) -> Book:
        return self.read() if self.path.exists() else Book(path=str(self.path), entries=())

    def _open(self, entry: Entry, book: Book, reason: str | None) -> Entry:
        """Write the opening that an entry needs, if it may; with the lock held."""
        before = book.openings(model=entry.model, split=entry.split, digest=entry.digest)
        kind: Kind = "opening"
        if before and not (reason and reason.strip()):
            same = (entry.model, entry.split, entry.digest)
            scored = [e for e in book.entries if e.kind == "evaluation" and e.opens(*same)]
            last = before[-1]
            if len(scored) >= len(before) or last.run != entry.run:
                raise ArgumentError(
                    f"the holdout {entry.split!r} was opened for model {entry.model!r} on {last.time} (run "
                    f"{last.run!r}): a second look turns it into a validation split. Use fresh rows, or give the "
                    "reason with --force, which the ledger keeps"
                )
            kind = "resumed"
        opening = Entry(
            time=entry.time, kind=kind, run=entry.run, family=entry.family, model=entry.model, split=entry.split,
            purpose="holdout", rows=entry.rows, digest=entry.digest, forced=reason if before else None,
        )  # fmt: skip
        append(self.path, line_of(opening))
        return opening


# --- checks ---------------------------------------------------------------------------------------------------


def _packed(
    items: Sequence[str] | None, right: Sequence[bool] | None, rows: int | None
) -> tuple[int | None, str | None, str | None]:
    if items is None:
        if right is not None:
            raise ArgumentError("right needs the items it belongs to: give items as well")
        if rows is not None and rows < 1:
            raise ArgumentError(f"rows is the number of evaluated rows, at least 1, not {rows}")
        return rows, None, None
    if not items or len(set(items)) != len(items):
        raise ArgumentError("items are the keys of the evaluated rows: at least one, and each once")
    if rows is not None and rows != len(items):
        raise ArgumentError(f"rows is {rows}, but there are {len(items)} items: leave rows out")
    bits = None
    if right is not None:
        if len(right) != len(items):
            raise ArgumentError(f"{len(right)} answers do not fit {len(items)} items")
        order = np.array(sorted(range(len(items)), key=items.__getitem__))
        bits = base64.b64encode(np.packbits(np.array(right, np.bool_)[order]).tobytes()).decode()
    return len(items), digest_items(items), bits


def _check_names(**names: str) -> None:
    for name, value in names.items():
        if not value.strip():
            raise ArgumentError(f"{name} is empty: name the {name} that was evaluated")


def _check_purpose(purpose: str) -> None:
    if purpose not in ("validation", "holdout"):
        raise ArgumentError(f"purpose is 'validation' or 'holdout', not {purpose!r}")


def _checked(metrics: Mapping[str, float | None]) -> dict[str, float | None]:
    if not metrics:
        raise ArgumentError("an evaluation has at least one metric, such as accuracy")
    out: dict[str, float | None] = {}
    for name, value in metrics.items():
        why = unusable(name, value)
        if why is not None:
            raise ArgumentError(f"{name} {why}")
        out[name] = None if value is None else float(value)
    return out


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
