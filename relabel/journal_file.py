"""Opening a journal file: lock, format check, migrations."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from filelock import FileLock, Timeout

from audit.errors import ArgumentError, InputError

__all__ = ["MIGRATIONS", "connect", "lock"]

_APPLICATION_ID = 0x4C41554A  # "LAUJ": tells a journal from any other SQLite file

# Numbered by their place; a released one is never edited, new ones are added at the end.
MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE head (      -- what requests share: model, base_url, params and all messages but the last
        id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, body TEXT NOT NULL) STRICT;
    CREATE TABLE run (
        id INTEGER PRIMARY KEY, started REAL NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL) STRICT;
    CREATE TABLE reply (
        id INTEGER PRIMARY KEY,
        key BLOB NOT NULL,   -- SHA-256 of the request
        item BLOB NOT NULL,  -- SHA-256 of the last message: finds other requests about the same item
        run INTEGER NOT NULL REFERENCES run (id),
        at REAL NOT NULL,    -- seconds since 1970
        head INTEGER NOT NULL REFERENCES head (id),
        repeat INTEGER NOT NULL,
        rubric TEXT NOT NULL,
        status TEXT NOT NULL, label TEXT, confidence REAL, confidence_kind TEXT,
        prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
        rationale TEXT NOT NULL, clause TEXT NOT NULL, reason TEXT NOT NULL,
        last TEXT NOT NULL,  -- JSON of the last message
        raw TEXT NOT NULL    -- JSON of the reply
    ) STRICT;
    CREATE INDEX reply_key ON reply (key);
    CREATE INDEX reply_item ON reply (item);
    CREATE TABLE endpoint (  -- what an endpoint was seen to do; the last row of a pair counts
        id INTEGER PRIMARY KEY, at REAL NOT NULL, base_url TEXT NOT NULL, model TEXT NOT NULL,
        capabilities TEXT NOT NULL) STRICT;
    CREATE TRIGGER reply_update BEFORE UPDATE ON reply BEGIN SELECT RAISE(ABORT, 'append-only'); END;
    CREATE TRIGGER reply_delete BEFORE DELETE ON reply BEGIN SELECT RAISE(ABORT, 'append-only'); END;
    """,
    """
    ALTER TABLE reply ADD COLUMN price REAL NOT NULL DEFAULT 1;  -- share of the list price: a batch costs half
    ALTER TABLE run ADD COLUMN policy TEXT;  -- JSON: how a whole run chose for the adjudicator
    """,
)


def lock(path: Path, *, wait: float) -> FileLock:
    """Take the writer's lock of a journal; ArgumentError where another process keeps it beyond ``wait`` seconds."""
    taken = FileLock(f"{path}.lock", thread_local=False, fallback_to_soft=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        Path(f"{path}.lock").open("ab").close()  # where that fails, waiting would never end
        taken.acquire(timeout=wait)
    except Timeout as error:
        raise ArgumentError(
            f"{path}: another run{_holder(path)} is writing to this journal;"
            " wait for it with --wait, or give this run its own --journal"
        ) from error
    except (OSError, NotImplementedError) as error:
        raise InputError(f"{path}: cannot lock the journal ({error}); put it in a local folder") from error
    return taken


def _holder(path: Path) -> str:
    try:
        con = connect(path, read_only=True)
    except (InputError, sqlite3.Error):
        return ""
    try:
        row = con.execute("SELECT host, pid FROM run ORDER BY id DESC LIMIT 1").fetchone()
    finally:
        con.close()
    return f" (process {row[1]} on {row[0]})" if row else ""


def connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
    """Open a journal, bringing its format up to date unless ``read_only``; the caller holds the lock."""
    if read_only and not path.is_file():
        raise InputError(f"{path}: no such journal; check the path, or make one with audit relabel run")
    con = None
    try:
        uri = f"{path.resolve().as_uri()}?mode={'ro' if read_only else 'rwc'}"
        if read_only and not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists():
            uri += "&immutable=1"  # SQLite would make files beside it; nobody is writing
        con = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        con.execute("PRAGMA busy_timeout = 10000")
        _check(con, path, read_only=read_only)
        if not read_only:
            _migrate(con)
    except sqlite3.Error as error:
        if con is not None:
            con.close()
        raise InputError(f"{path}: cannot open the journal ({error}); check that it is one") from error
    except InputError:
        if con is not None:
            con.close()
        raise
    return con


def _ask(con: sqlite3.Connection, question: str) -> int:
    return int(con.execute(question).fetchone()[0])


def _check(con: sqlite3.Connection, path: Path, *, read_only: bool) -> None:
    version = _ask(con, "PRAGMA user_version")
    fresh = not read_only and not _ask(con, "SELECT count(*) FROM sqlite_master")
    if _ask(con, "PRAGMA application_id") != _APPLICATION_ID and not fresh:
        raise InputError(f"{path} is a database, but not a journal of relabel; give another path")
    if version > len(MIGRATIONS):
        raise InputError(f"{path} was written by a newer version (format {version}); upgrade label-audit")
    if read_only and version < len(MIGRATIONS):
        raise InputError(f"{path} has the older format {version}; open it once with audit relabel run")


def _migrate(con: sqlite3.Connection) -> None:
    con.execute("PRAGMA journal_mode = WAL")
    con.execute("PRAGMA synchronous = NORMAL")
    for number in range(_ask(con, "PRAGMA user_version"), len(MIGRATIONS)):
        con.executescript(
            f"BEGIN IMMEDIATE; {MIGRATIONS[number]} PRAGMA application_id = {_APPLICATION_ID};"
            f" PRAGMA user_version = {number + 1}; COMMIT;"
        )
