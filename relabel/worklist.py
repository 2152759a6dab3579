"""The work of one run: which rows are the same item, and each item's verdicts so far.

Kept in a temporary SQLite database that spills to disk and vanishes with the process, so that a run holds
neither rows nor verdicts in memory. Row texts are not copied into it: they are read from the source again.
"""

from __future__ import annotations

import hashlib
import math
import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from types import TracebackType
from typing import Any, Literal, TypeVar

import duckdb

from audit.errors import ArgumentError
from audit.normalise import normal_forms
from audit.reading import Table
from relabel.records import Status, Verdict

__all__ = ["HELPABLE", "ROLES", "Decision", "Item", "Role", "Worklist", "batches", "decide", "normalise"]

T = TypeVar("T")
Cells = tuple[str | None, ...]
PART = 1_000_000
Role = Literal["judge", "adjudicator", "human"]
ROLES: tuple[Role, ...] = ("judge", "adjudicator", "human")

_SCHEMA = """
CREATE TABLE item (
    id INTEGER PRIMARY KEY, digest BLOB UNIQUE, first INTEGER NOT NULL, rows INTEGER NOT NULL,
    tie BLOB NOT NULL, escalated INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE row (n INTEGER PRIMARY KEY, item INTEGER NOT NULL, old TEXT) STRICT;
CREATE TABLE verdict (
    item INTEGER NOT NULL, role INTEGER NOT NULL, model TEXT NOT NULL,
    status TEXT NOT NULL, label TEXT, confidence REAL, confidence_kind TEXT,
    rationale TEXT NOT NULL, clause TEXT NOT NULL, reason TEXT NOT NULL,
    PRIMARY KEY (item, role)) STRICT, WITHOUT ROWID;
"""
# Another model may well answer these; the rest is for the same command, run again.
HELPABLE = frozenset(
    (Status.TRUNCATED, Status.REFUSED, Status.UNPARSABLE, Status.NOT_IN_SET, Status.TOO_LONG)
)
_HELPABLE = ", ".join(f"'{status}'" for status in sorted(HELPABLE))
_VERDICT = "status, label, confidence, confidence_kind, rationale, clause, reason"


@dataclass(frozen=True, kw_only=True)
class Item:
    """One distinct item: its number (from 1, in file order), the texts a judge reads, its first old label.

    ``answered``: a person has labelled it, so that no model need be asked.
    """

    id: int
    row: Mapping[str, str]
    old: str | None = None
    answered: bool = False


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What one item ends up with: the verdict that counts, who gave it, and what the judge had said.

    ``source`` is ``none`` where nobody gave a label; ``verdict`` then tells why.
    """

    verdict: Verdict
    source: Literal["judge", "adjudicator", "human", "none"]
    model: str


def normalise(value: str | None) -> str:
    """The text of one cell as it is sent: Unicode NFC, without outer white space."""
    return unicodedata.normalize("NFC", value).strip() if value else ""


def batches(things: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of up to ``size`` things, in order."""
    source = iter(things)
    while batch := list(islice(source, size)):
        yield batch


def _parts(source: Iterable[list[Cells]]) -> Iterator[list[Cells]]:
    """The same rows in lists of about a million characters: work on them takes several times their size."""
    part: list[Cells] = []
    size = 0
    for cells in chain.from_iterable(source):
        part.append(cells)
        size += sum(len(cell) for cell in cells if cell) + 100
        if size >= PART:
            yield part
            part, size = [], 0
    if part:
        yield part


class Worklist:
    """The distinct items of a table. ``rows``, ``items`` and ``empty`` count rows, items, rows without text."""

    def __init__(
        self, table: Table, *, inputs: Sequence[str], label: str | None = None, seed: int = 0
    ) -> None:
        """Read the table once and number its items.

        Parameters
        ----------
        table:
            What `audit.reading.open_table` opened; it stays open as long as the worklist is used.
        inputs:
            The rubric's input columns. Rows that `audit` takes for the same in all of them (`audit.normalise`,
            level ``case``) are one item, whose first row is judged; a row without text in any of them is an item
            of its own, and is never asked about.
        label:
            The column of the old labels, or None.
        seed:
            Orders items of equal confidence.
        """
        self.table = table
        self.inputs = tuple(inputs)
        self.label = label
        self._columns = [*self.inputs, *([label] if label else [])]
        self.rows = self.items = self.empty = 0
        self._con = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._con.execute("PRAGMA journal_mode = OFF")
        self._con.execute("PRAGMA synchronous = OFF")
        self._con.execute("PRAGMA cache_size = -8000")
        self._con.executescript(_SCHEMA)
        self._con.execute("BEGIN")
        self._fill(seed)

    def _fill(self, seed: int) -> None:
        salt = b"%d" % (seed % 10**12)
        for batch in self._digests():
            links = []
            for digest, old in batch:
                self.rows += 1
                self.empty += digest is None
                tie = hashlib.blake2b(digest or b"%d" % self.rows, digest_size=8, salt=salt).digest()
                item = self._con.execute(
                    "INSERT INTO item (digest, first, rows, tie) VALUES (?, ?, 1, ?)"
                    " ON CONFLICT (digest) DO UPDATE SET rows = rows + 1 RETURNING id",
                    (digest, self.rows, tie),
                ).fetchone()[0]
                links.append((self.rows, item, old))
            self._con.executemany("INSERT INTO row VALUES (?, ?, ?)", links)
        self.items = self._con.execute("SELECT count(*) FROM item").fetchone()[0]

    def _digests(self) -> Iterator[list[tuple[bytes | None, str | None]]]:
        """(digest of the normal forms, old label) of every row, in file order; a row without text has no digest."""
        count = len(self.inputs)
        texts = [f"t{k}" for k in range(count)]
        cells = ", ".join(f"unnest(${k + 2}::VARCHAR[]) AS {text}" for k, text in enumerate(texts))
        forms = normal_forms(f"(SELECT unnest($1::VARCHAR[]) AS r, {cells})", texts, "case")
        empty = " AND ".join(f"n{k} = ''" for k in range(count))
        # The lengths keep ("ab", "c") and ("a", "bc") apart.
        whole = ", ".join(f"length(n{k}), n{k}" for k in range(count))
        digest = f"CASE WHEN {empty} THEN NULL ELSE unhex(left(sha256(concat_ws(' ', {whole})), 32)) END"
        self.table.con.execute("SET threads = 1")  # with more, DuckDB reads far ahead of the reader
        with duckdb.connect() as con:
            con.execute("SET threads = 1")
            for batch in _parts(self.table.rows(self._columns)):
                columns = [list(column) for column in zip(*batch, strict=True)]
                old = columns[count] if self.label else [None] * len(batch)
                yield con.execute(f"SELECT {digest}, r FROM {forms}", [old, *columns[:count]]).fetchall()

    def links(self) -> Iterator[tuple[int, str | None]]:
        """(item, old label) of every row, in file order."""
        yield from self._con.execute("SELECT item, old FROM row ORDER BY n")

    def read(self, *, escalated: bool = False) -> Iterator[Item]:
        """The items that have text, in file order: all of them, or only the escalated ones."""
        where = "digest IS NOT NULL" + (" AND escalated" if escalated else "")
        answered = "EXISTS (SELECT 1 FROM verdict WHERE item = id AND role = 2)"
        wanted = iter(self._con.execute(f"SELECT first, id, {answered} FROM item WHERE {where} ORDER BY id"))
        first, number, by_people = next(wanted, (0, 0, 0))
        at = 0
        for batch in self.table.rows(self._columns):
            for cells in batch:
                at += 1
                if at == first:
                    row = {c: normalise(v) for c, v in zip(self.inputs, cells, strict=False)}
                    old = cells[len(row)] if self.label else None
                    yield Item(id=number, row=row, old=old, answered=bool(by_people))
                    first, number, by_people = next(wanted, (0, 0, 0))
            if not first:
                return

    def item_of(self, row: int) -> Item:
        """The item of data row ``row`` (from 1), with its texts as they are sent."""
        found = self._con.execute("SELECT item FROM row WHERE n = ?", (row,)).fetchone()
        for item in self.read() if found else ():
            if item.id == found[0]:
                return item
        what = (
            "has no text in the rubric's input columns"
            if found
            else f"is not there; the table has {self.rows}"
        )
        raise ArgumentError(f"row {row} {what}; give another row")

    def put(self, verdicts: Iterable[tuple[int, Verdict]], *, role: Role, model: str) -> None:
        """Note what ``role`` said of items; a later verdict of the same role replaces the earlier one."""
        place = ROLES.index(role)
        self._con.executemany(
            f"INSERT OR REPLACE INTO verdict (item, role, model, {_VERDICT}) VALUES ({', '.join('?' * 10)})",
            ((item, place, model, *verdict.to_row()) for item, verdict in verdicts),
        )

    def escalate_share(self, share: float) -> int:
        """Mark for the adjudicator what the judge could not label, then its least sure, up to ``share`` of the
        items judged, in [0, 1]; return how many are marked. Kinds of confidence are ranked apart.
        """
        failed = self._mark(f"SELECT item FROM verdict WHERE role = 0 AND status IN ({_HELPABLE})", ())
        judged = self._con.execute("SELECT count(*) FROM verdict WHERE role = 0").fetchone()[0]
        wanted = max(0, math.floor(share * judged + 0.5) - failed)
        return failed + self._mark(
            "SELECT item FROM (SELECT item, tie, (row_number() OVER (PARTITION BY confidence_kind"
            " ORDER BY coalesce(confidence, -1), tie) - 0.5) / count(*) OVER (PARTITION BY confidence_kind) AS place"
            " FROM verdict JOIN item ON item.id = item WHERE role = 0 AND status = 'ok')"
            " ORDER BY place, tie LIMIT ?",
            (wanted,),
        )

    def escalate_below(self, threshold: float, *, kind: str | None = None) -> int:
        """Mark for the adjudicator what the judge could not label or labelled with a confidence under
        ``threshold`` (with ``kind``: or of any other kind); return how many are marked.
        """
        return self._mark(
            f"SELECT item FROM verdict WHERE role = 0 AND (status IN ({_HELPABLE}) OR status = 'ok' AND"
            " (coalesce(confidence, -1) < ?1 OR ?2 IS NOT NULL AND confidence_kind IS NOT ?2))",
            (threshold, kind),
        )

    def _mark(self, items: str, values: Sequence[Any]) -> int:
        return self._con.execute(f"UPDATE item SET escalated = 1 WHERE id IN ({items})", values).rowcount

    def decisions(self) -> Iterator[tuple[int, str | None, Decision]]:
        """(item, old label, decision) of every row, in file order."""
        rows = self._con.execute(
            f"SELECT row.item, row.old, digest IS NULL, {_columns('j')}, {_columns('a')}, {_columns('h')}"
            " FROM row JOIN item ON item.id = row.item"
            " LEFT JOIN verdict j ON j.item = row.item AND j.role = 0"
            " LEFT JOIN verdict a ON a.item = row.item AND a.role = 1"
            " LEFT JOIN verdict h ON h.item = row.item AND h.role = 2 ORDER BY row.n"
        )
        for item, old, empty, *cells in rows:
            verdicts = {
                role: (cells[at], Verdict.from_row(cells[at + 1 : at + 8]))
                for at, role in zip((0, 8, 16), ROLES, strict=True)
                if cells[at] is not None
            }
            yield item, old, decide(verdicts, empty=bool(empty))

    def verdicts(self, role: Role) -> Iterator[tuple[int, Verdict]]:
        """(item, verdict) of all that ``role`` was asked about, in file order."""
        rows = self._con.execute(
            f"SELECT item, {_VERDICT} FROM verdict WHERE role = ? ORDER BY item", (ROLES.index(role),)
        )
        for item, *cells in rows:
            yield item, Verdict.from_row(cells)

    def statuses(self, role: Role) -> dict[str, int]:
        """Status -> number of items, of all that ``role`` was asked about."""
        return dict(
            self._con.execute(
                "SELECT status, count(*) FROM verdict WHERE role = ? GROUP BY status ORDER BY status",
                (ROLES.index(role),),
            )
        )

    def cuts(self) -> dict[str, float]:
        """Kind -> the confidence between what was escalated and what was kept, infinite where all was escalated."""
        rows = self._con.execute(
            "SELECT confidence_kind, max(CASE WHEN escalated THEN confidence END),"
            " min(CASE WHEN NOT escalated THEN confidence END) FROM verdict JOIN item ON item.id = item"
            " WHERE role = 0 AND status = 'ok' AND confidence IS NOT NULL GROUP BY confidence_kind"
        )
        return {
            kind: 0.0 if last is None else math.inf if first is None else (last + first) / 2
            for kind, last, first in rows
        }

    def confidences(self, kind: str, *, quantiles: int) -> list[float]:
        """Confidences of this kind that the judge gave, at so many evenly spaced ranks, highest first."""
        rows = self._con.execute(
            "SELECT min(confidence) FROM (SELECT confidence, ntile(?1) OVER (ORDER BY confidence DESC, item) AS part"
            " FROM verdict WHERE role = 0 AND status = 'ok' AND confidence_kind = ?2) GROUP BY part ORDER BY part",
            (quantiles, kind),
        )
        return [confidence for (confidence,) in rows]

    def close(self) -> None:
        """Drop the temporary database; the table stays open."""
        self._con.close()

    def __enter__(self) -> Worklist:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def decide(verdicts: Mapping[Role, tuple[str, Verdict]], *, empty: bool = False) -> Decision:
    """What counts of (model, verdict) per role: a person's label, else the adjudicator's, else the judge's."""
    for role in reversed(ROLES):
        if role in verdicts and verdicts[role][1].label is not None:
            return Decision(verdict=verdicts[role][1], source=role, model=verdicts[role][0])
    for role in (ROLES[1], ROLES[0]):
        if role in verdicts:
            return Decision(verdict=verdicts[role][1], source="none", model=verdicts[role][0])
    if empty:
        verdict = Verdict(status=Status.EMPTY, reason="the row has no text in any input column")
    else:
        verdict = Verdict(status=Status.PENDING, reason="not asked yet; the same command goes on")
    return Decision(verdict=verdict, source="none", model="")


def _columns(alias: str) -> str:
    return ", ".join(f"{alias}.{name}" for name in ("model", *_VERDICT.split(", ")))
