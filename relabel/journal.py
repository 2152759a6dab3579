"""The journal: an append-only SQLite file of every request and its raw reply.

A request is found again by `Request.key` and by nothing else. Only valid verdicts are used again; all others
stay as a record of what happened. The file is in WAL mode, so a killed process loses nothing that `record` had
returned from, and `read_only` readers may look while a run writes. One run at a time writes: the lock is the
operating system's and falls with the process.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from audit.errors import AuditError, InputError
from relabel.cost import Price
from relabel.journal_file import connect, lock
from relabel.records import Judged, Reply, Request, Verdict

__all__ = ["Journal", "Spent", "Stored"]

_VERDICT = "status, label, confidence, confidence_kind, rationale, clause, reason"
_STORED = f"id, key, at, run, repeat, rubric, prompt_tokens, completion_tokens, {_VERDICT}"


@dataclass(frozen=True, kw_only=True)
class Stored:
    """One recorded reply without its raw text. ``at`` is in seconds since 1970; ``rubric`` is a rubric's hash."""

    id: int
    key: str
    at: float
    run: int
    repeat: int
    rubric: str
    prompt_tokens: int
    completion_tokens: int
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What one model at one endpoint was paid for, over all runs, at ``share`` of the list price."""

    model: str
    base_url: str
    replies: int
    prompt_tokens: int
    completion_tokens: int
    share: float = 1.0

    def cost(self, price: Price | None) -> float | None:
        """US dollars; None without a price, unless nothing was paid for (people, requests without a reply)."""
        if price is None:
            return None if self.prompt_tokens or self.completion_tokens else 0.0
        return self.share * price.cost(self.prompt_tokens, self.completion_tokens)


class Journal:
    """An open journal file.

    Parameters
    ----------
    path:
        The file; made where it does not exist (not with ``read_only``).
    read_only:
        Look at it while a run may be writing; every writing method then raises.
    wait:
        Seconds to wait for another run to finish with it; 0 says at once that it is taken.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False, wait: float = 0.0) -> None:
        self.path = Path(path)
        self.run = 0
        self._heads: dict[tuple[Any, ...], tuple[int, Mapping[str, Any]]] = {}
        self._lock = None if read_only else lock(self.path, wait=wait)
        try:
            self._con = connect(self.path, read_only=read_only)
        except BaseException:
            self._release()
            raise
        self._file = _inode(self.path)
        if not read_only:
            try:
                self._start()
            except BaseException:
                self.close()
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            self._heads.clear()
            if self._con.in_transaction:
                self._con.rollback()
            raise AuditError(
                f"{self.path}: the journal failed ({error}); check the disk, then run again"
            ) from error

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """`_errors`, and one line where a record cannot be what this class wrote."""
        try:
            with self._errors():
                yield
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(
                f"{self.path}: {what} is damaged ({type(error).__name__}: {error}); take the journal from a copy,"
                " or begin a new one with --journal"
            ) from error

    @property
    def lost(self) -> bool:
        """Whether the file at ``path`` is no longer the one that is written."""
        return _inode(self.path) != self._file

    def _start(self) -> None:
        """Note who writes from now on; the number of this run goes into every record that follows."""
        with self._errors():
            row = (time.time(), platform.node(), os.getpid())
            cursor = self._con.execute("INSERT INTO run (started, host, pid) VALUES (?, ?, ?)", row)
        self.run = int(cursor.lastrowid or 0)

    def record(self, judged: Iterable[Judged], *, rubric: str, price: float = 1.0) -> None:
        """Append finished judgements in one transaction; when it returns, a killed process keeps them.

        ``rubric`` is the hash of the rubric by which the verdicts were read, ``price`` the share of the list price
        that the replies cost.
        """
        at = time.time()
        with self._errors():
            self._con.execute("BEGIN IMMEDIATE")
            rows = [(*self._row(entry, rubric), at, self.run, price) for entry in judged]
            self._con.executemany(
                f"INSERT INTO reply (key, item, head, repeat, rubric, {_VERDICT}, prompt_tokens,"
                f" completion_tokens, last, raw, at, run, price) VALUES ({', '.join('?' * 19)})",
                rows,
            )
            self._con.execute("COMMIT")

    def _row(self, entry: Judged, rubric: str) -> tuple[Any, ...]:
        request, reply, verdict = entry
        last = _json(dict(request.messages[-1]))
        return (
            bytes.fromhex(request.key),
            hashlib.sha256(last.encode()).digest(),
            self._head(request),
            request.repeat,
            rubric,
            *verdict.to_row(),
            reply.prompt_tokens,
            reply.completion_tokens,
            last,
            _json(reply.to_dict()),
        )

    def _head(self, request: Request) -> int:
        """The number of what a request shares with others; the params are held, so that their id stays theirs."""
        shared = tuple(tuple(message.items()) for message in request.messages[:-1])
        memo = (request.model, request.base_url, id(request.params), shared)
        try:
            known = self._heads.get(memo)
        except TypeError:  # content in parts
            return self._stored_head(request)
        if known is None:
            if len(self._heads) >= 64:
                self._heads.clear()
            known = self._heads[memo] = (self._stored_head(request), request.params)
        return known[0]

    def _stored_head(self, request: Request) -> int:
        parts = request.to_dict()
        del parts["repeat"]
        parts["messages"].pop()
        body = _json(parts)
        digest = hashlib.sha256(body.encode()).digest()
        self._con.execute("INSERT OR IGNORE INTO head (digest, body) VALUES (?, ?)", (digest, body))
        return int(self._con.execute("SELECT id FROM head WHERE digest = ?", (digest,)).fetchone()[0])

    def find(self, keys: Sequence[str]) -> dict[str, Stored]:
        """Key -> its last valid record, or its last record where none is valid; unknown keys are left out."""
        found: dict[str, Stored] = {}
        with self._reading("a record"):
            for start in range(0, len(keys), 500):
                some = [bytes.fromhex(key) for key in keys[start : start + 500]]
                for stored in self._select(f"key IN ({', '.join('?' * len(some))}) ORDER BY id", some):
                    old = found.get(stored.key)
                    if old is None or stored.verdict.status.reusable or not old.verdict.status.reusable:
                        found[stored.key] = stored
        return found

    def history(self, key: str) -> tuple[Stored, ...]:
        """All records of one key, oldest first."""
        with self._reading("a record"):
            return tuple(self._select("key = ? ORDER BY id", [bytes.fromhex(key)]))

    def same_item(self, request: Request) -> tuple[Stored, ...]:
        """All records whose last message is that of ``request``, whatever else differs, oldest first."""
        digest = hashlib.sha256(_json(dict(request.messages[-1])).encode()).digest()
        with self._reading("a record"):
            return tuple(self._select("item = ? ORDER BY id", [digest]))

    def _select(self, where: str, values: Sequence[Any]) -> Iterator[Stored]:
        for row in self._con.execute(f"SELECT {_STORED} FROM reply WHERE {where}", values):
            yield Stored(
                id=row[0],
                key=row[1].hex(),
                at=row[2],
                run=row[3],
                repeat=row[4],
                rubric=row[5],
                prompt_tokens=row[6],
                completion_tokens=row[7],
                verdict=Verdict.from_row(row[8:]),
            )

    def judged(self, stored: Stored) -> Judged:
        """A record in full: the request as it was made, the raw reply, the verdict."""
        with self._reading(f"record {stored.id}"):
            row = self._con.execute(
                "SELECT head.body, reply.last, reply.raw FROM reply JOIN head ON head.id = reply.head"
                " WHERE reply.id = ?",
                (stored.id,),
            ).fetchone()
            if row is None:
                raise InputError(f"{self.path}: there is no record {stored.id}; it is of another journal")
            head, last, raw = (json.loads(text) for text in row)
            head["messages"].append({"role": last["role"], "content": last["content"]})
            request = Request.from_dict({**head, "repeat": stored.repeat})
            return Judged(request, Reply.from_dict(raw), stored.verdict)

    def spent(self) -> tuple[Spent, ...]:
        """Tokens paid so far, per model and endpoint, over all runs."""
        with self._errors():
            rows = self._con.execute(
                "SELECT json_extract(body, '$.model'), json_extract(body, '$.base_url'), sum(n), sum(i), sum(o),"
                " price FROM (SELECT head, price, count(*) n, sum(prompt_tokens) i, sum(completion_tokens) o FROM reply"
                " GROUP BY head, price) JOIN head ON head.id = head GROUP BY 1, 2, price ORDER BY 1, 2, price DESC"
            ).fetchall()
        return tuple(
            Spent(model=m, base_url=u, replies=n, prompt_tokens=i, completion_tokens=o, share=share)
            for m, u, n, i, o, share in rows
        )

    def policy(self) -> dict[str, Any] | None:
        """How the last whole run chose for the adjudicator (`note_policy`), or None."""
        with self._reading("what a run chose by"):
            row = self._con.execute(
                "SELECT policy FROM run WHERE policy IS NOT NULL ORDER BY id DESC LIMIT 1"
            ).fetchone()
            return None if row is None else dict(json.loads(row[0]))

    def note_policy(self, policy: Mapping[str, Any]) -> None:
        """Note by what the present run chooses for the adjudicator."""
        with self._errors():
            self._con.execute("UPDATE run SET policy = ? WHERE id = ?", (_json(dict(policy)), self.run))

    def heard_from(self, *, model: str, base_url: str) -> bool:
        """Whether there is any record of this model at this endpoint."""
        with self._errors():
            row = self._con.execute(
                "SELECT 1 FROM head WHERE json_extract(body, '$.model') = ?"
                " AND json_extract(body, '$.base_url') = ? LIMIT 1",
                (model, base_url),
            ).fetchone()
        return row is not None

    def counts(self) -> dict[str, int]:
        """Status -> number of records."""
        with self._errors():
            rows = self._con.execute("SELECT status, count(*) FROM reply GROUP BY status ORDER BY status")
            return dict(rows)

    def capabilities(self, *, base_url: str, model: str) -> dict[str, Any] | None:
        """What was last seen of an endpoint, or None."""
        with self._reading("what was seen of an endpoint"):
            row = self._con.execute(
                "SELECT capabilities FROM endpoint WHERE base_url = ? AND model = ? ORDER BY id DESC LIMIT 1",
                (base_url.rstrip("/"), model),
            ).fetchone()
            return None if row is None else dict(json.loads(row[0]))

    def record_capabilities(self, capabilities: Mapping[str, Any], *, base_url: str, model: str) -> None:
        """Append what was seen of an endpoint."""
        with self._errors():
            self._con.execute(
                "INSERT INTO endpoint (at, base_url, model, capabilities) VALUES (?, ?, ?, ?)",
                (time.time(), base_url.rstrip("/"), model, _json(dict(capabilities))),
            )

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def close(self) -> None:
        """Close the file and let the next run have it."""
        self._con.close()
        self._release()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None
