"""Reads a folder of batch files: requests, outputs and errors, whatever their names; told apart line by line.

The lines are kept in a temporary database that spills to disk, so that files of any size can be joined.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audit.errors import InputError
from relabel.capabilities import Format
from relabel.exchange import usage_of
from relabel.outcomes import Means, Outcome, read_answer
from relabel.records import Reply, Request, Status

__all__ = ["Folder", "Told", "format_of", "read_folder"]

_ID = re.compile(r"([0-9a-f]{64})(?:\.([0-9]{1,4}))?")
_SCHEMA = """
CREATE TABLE request (key TEXT NOT NULL, part INTEGER NOT NULL, about BLOB NOT NULL, sent TEXT NOT NULL,
    PRIMARY KEY (key, part)) WITHOUT ROWID;
CREATE TABLE reply (id INTEGER PRIMARY KEY, key TEXT NOT NULL, part INTEGER NOT NULL, fine INTEGER NOT NULL,
    raw TEXT NOT NULL);
CREATE INDEX reply_key ON reply (key, part);
CREATE TABLE used (key TEXT PRIMARY KEY) WITHOUT ROWID;
"""
_LOST = {"batch_expired": "the batch expired before this request was run"}


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a folder holds for one request of a job: the reply (None: not there yet), parameters turned down."""

    reply: Reply | None
    turned_down: tuple[str, ...] = ()


class Folder:
    """The lines of a folder. ``unreadable`` names those that are no line of a batch file."""

    def __init__(self, con: sqlite3.Connection) -> None:
        self._con = con
        self.unreadable: list[str] = []

    def take(self, path: Path) -> None:
        """Read one file."""
        try:
            with path.open("rb") as file:
                for number, line in enumerate(file, start=1):
                    if line.strip() and not self._line(line):
                        self.unreadable.append(f"{path.name}, line {number}")
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}; check the folder") from error

    def _line(self, line: bytes) -> bool:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            return False
        if not isinstance(entry, dict) or not isinstance(entry.get("custom_id"), str):
            return False
        found = _ID.fullmatch(entry["custom_id"])
        key, part = (found.group(1), int(found.group(2) or 0)) if found else (entry["custom_id"], 0)
        if "method" in entry:
            body = entry.get("body")
            if not isinstance(body, dict):
                return False
            about = _about(body.get("model"), body.get("messages"))
            sent = {name: value for name, value in body.items() if name not in ("model", "messages")}
            row = (key, part, about, json.dumps(sent))
            self._con.execute("INSERT OR REPLACE INTO request VALUES (?, ?, ?, ?)", row)
            return True
        if "response" not in entry and "error" not in entry:
            return False
        response = entry.get("response")
        fine = isinstance(response, dict) and response.get("status_code") == 200
        self._con.execute(
            "INSERT INTO reply (key, part, fine, raw) VALUES (?, ?, ?, ?)",
            (key, part, fine, json.dumps(entry)),
        )
        return True

    def told(self, request: Request) -> Told | None:
        """What the folder holds for ``request``; None where these files do not ask it, word for word."""
        asked = self._con.execute(
            "SELECT part, about, sent FROM request WHERE key = ? ORDER BY part", (request.key,)
        ).fetchall()
        about = _about(request.model, [dict(message) for message in request.messages])
        if not asked or any(row[1] != about for row in asked):
            return None
        self._con.execute("INSERT OR IGNORE INTO used VALUES (?)", (request.key,))
        outcomes = []
        for part, _, sent in asked:
            row = self._con.execute(
                "SELECT raw FROM reply WHERE key = ? AND part = ? ORDER BY fine DESC, id LIMIT 1",
                (request.key, part),
            ).fetchone()
            if row is not None:
                outcomes.append((_outcome(json.loads(row[0]), json.loads(sent)), json.loads(sent)))
        if not outcomes:
            return Told(reply=None)
        return _joined(outcomes, request)

    def unknown(self) -> int:
        """Replies to requests that no job asked for: custom ids never told of."""
        query = "SELECT count(DISTINCT key) FROM reply WHERE key NOT IN (SELECT key FROM used)"
        return int(self._con.execute(query).fetchone()[0])


def _about(model: object, messages: object) -> bytes:
    """A digest of what a request asks of whom."""
    return hashlib.sha256(json.dumps([model, messages], sort_keys=True).encode()).digest()


def _outcome(entry: Mapping[str, Any], sent: Mapping[str, Any]) -> Outcome:
    response, error = entry.get("response"), entry.get("error")
    if isinstance(response, Mapping) and isinstance(response.get("status_code"), int) and not error:
        return read_answer(response["status_code"], {}, json.dumps(response.get("body")).encode(), sent=sent)
    code = str(error.get("code") or "") if isinstance(error, Mapping) else ""
    told = str(error.get("message") or code) if isinstance(error, Mapping) else str(error or "no reply")
    return Outcome(means=Means.AGAIN, told=_LOST.get(code, " ".join(told.split())[:300]))


def _joined(outcomes: list[tuple[Outcome, dict[str, Any]]], request: Request) -> Told:
    """One reply of an item's outcomes: the first good one, the others as its samples; else the first failure."""
    names = tuple(dict.fromkeys(name for outcome, _ in outcomes for name in outcome.names))
    good = [
        (outcome.body, sent) for outcome, sent in outcomes if outcome.means is Means.REPLY and outcome.body
    ]
    if not good:
        outcome, sent = outcomes[0]
        status = {Means.TOO_LONG: Status.TOO_LONG, Means.REFUSED: Status.REFUSED}.get(outcome.means)
        where = f"HTTP {outcome.status}: " if outcome.status else ""
        failed = Reply(
            http_status=outcome.status,
            status=status or Status.TRANSPORT,
            error=f"{where}{outcome.told}",
            attempts=len(outcomes),
            sent=sent,
        )
        return Told(reply=failed, turned_down=names)
    costs = [usage_of(body, request.messages) for body, _ in good]
    reply = Reply(
        body=good[0][0],
        samples=tuple(body for body, _ in good[1:]),
        http_status=200,
        prompt_tokens=sum(prompt for prompt, _ in costs),
        completion_tokens=sum(completion for _, completion in costs),
        attempts=len(outcomes),
        sent=good[0][1],
    )
    return Told(reply=reply, turned_down=names)


def format_of(sent: Mapping[str, Any]) -> Format:
    """The form of reply that these parameters ask for."""
    form = sent.get("response_format")
    kind = form.get("type") if isinstance(form, Mapping) else None
    if kind == "json_object":
        return "json_object_schema" if isinstance(form, Mapping) and "schema" in form else "json_object"
    return "json_schema" if kind == "json_schema" else "text"


@contextmanager
def read_folder(folder: Path) -> Iterator[Folder]:
    """Read all .jsonl files of a folder; InputError where there are none."""
    paths = sorted(folder.glob("*.jsonl")) if folder.is_dir() else []
    if not paths:
        raise InputError(f"{folder} holds no .jsonl file; give the folder that batch write wrote into")
    con = sqlite3.connect("", isolation_level=None)
    try:
        con.execute("PRAGMA journal_mode = OFF")
        con.execute("PRAGMA synchronous = OFF")
        con.executescript(_SCHEMA)
        con.execute("BEGIN")
        found = Folder(con)
        for path in paths:
            found.take(path)
        yield found
    finally:
        con.close()
