"""Sources that are no file on this machine: tables of databases, and files behind a URL."""

from __future__ import annotations

import importlib.util
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import duckdb

from audit.errors import ArgumentError, InputError, MissingExtraError
from audit.reading_text import Scratch, spool
from audit.reading_typed import cell_text, literal, quote

__all__ = [
    "DUCKDB",
    "POSTGRES",
    "SQLITE",
    "attach_duckdb",
    "copy_remote",
    "form_options",
    "is_remote",
    "postgres_rows",
    "redacted",
    "scheme",
    "sqlite_rows",
]

#: What PostgreSQL's addresses begin with.
POSTGRES = ("postgresql", "postgres")
#: How the files of SQLite begin, and what those of DuckDB hold from their ninth byte on.
SQLITE = b"SQLite format 3\x00"
DUCKDB = b"DUCK"

#: Kinds of address for which the extra ``remote`` brings all that is needed.
_REMOTE = ("http", "https", "s3", "s3a", "hf")

Rows = Iterator[Sequence[str | None]]


def scheme(source: str) -> str | None:
    """What an address begins with, as ``s3`` of ``s3://...``; None for a path."""
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]+)://", source)
    return found[1].lower() if found else None


def redacted(address: str) -> str:
    """An address without its password, its query and its fragment, which may hold keys."""
    try:
        parts = urlsplit(address)
        user, at, host = parts.netloc.rpartition("@")
        return urlunsplit((parts.scheme, f"{user.partition(':')[0]}{at}{host}", parts.path, "", ""))
    except ValueError:
        return f"{scheme(address)}://..."


def choose_table(tables: Sequence[str], wanted: str | None) -> str:
    """The table that is wanted, or the only one there is.

    Raises
    ------
    ArgumentError
        There is no such table, or there are several and none is named.
    InputError
        There is no table at all.
    """
    if not tables:
        raise InputError("the database holds no table; check its address")
    shown = ", ".join(tables[:20]) + (", ..." if len(tables) > 20 else "")
    if wanted is None and len(tables) > 1:
        raise ArgumentError(f"the database holds several tables; name one with --table: {shown}")
    if wanted is not None and wanted not in tables:
        raise ArgumentError(f"there is no table {wanted!r}; there are {shown}")
    return wanted if wanted is not None else tables[0]


def sqlite_rows(path: Path, table: str | None) -> Rows:
    """Yield the names of the columns of a table or view of an SQLite file, then its rows, as text."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as con:
            listed = con.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite!_%' "
                "ESCAPE '!' ORDER BY name"
            )
            chosen = choose_table([row[0] for row in listed], table)
            cursor = con.execute(f"SELECT * FROM {quote(chosen)}")
            yield [column[0] for column in cursor.description]
            for row in cursor:
                yield [value.decode() if isinstance(value, bytes) else cell_text(value) for value in row]
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise InputError(
            f"the database cannot be read ({error}); check the file, or export the table as CSV"
        ) from error


def attach_duckdb(con: duckdb.DuckDBPyConnection, path: Path, table: str | None) -> str:
    """Attach a DuckDB file and return the relation of a table or view of it."""
    try:
        con.execute(f"ATTACH {literal(str(path))} AS stored (READ_ONLY)")
        found = con.execute(
            "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'stored' UNION ALL "
            "SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'stored' AND NOT internal "
            "ORDER BY ALL"
        ).fetchall()
    except duckdb.Error as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"the database cannot be read ({reason}); close what writes to it, or export the table as Parquet"
        ) from error
    places = {(t if s == "main" else f"{s}.{t}"): f"stored.{quote(s)}.{quote(t)}" for s, t in found}
    return places[choose_table(list(places), table)]


def postgres_rows(address: str, table: str | None) -> Rows:
    """Yield the names of the columns of a table or view of PostgreSQL, then its rows, as PostgreSQL writes them."""
    try:
        import psycopg
        from psycopg import sql
    except ImportError as error:
        raise MissingExtraError("reading from PostgreSQL", extra="postgres") from error
    with _without_password(address, psycopg.Error), psycopg.connect(address, connect_timeout=15) as con:
        con.read_only = True
        found = con.execute(
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2"
        ).fetchall()
        places = {(t if s == "public" else f"{s}.{t}"): sql.Identifier(s, t) for s, t in found}
        wanted = table.removeprefix("public.") if table is not None and table not in places else table
        place = places[choose_table(list(places), wanted)]
        with con.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(place)) as cursor:
            columns = [column.name for column in cursor.description or ()]
        yield columns
        texts = sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(column)) for column in columns)
        query = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT").format(texts, place)
        with con.cursor() as cursor, cursor.copy(query) as copy:
            yield from copy.rows()


@contextmanager
def _without_password(address: str, *kinds: type[Exception]) -> Iterator[None]:
    """Turn errors of a database into an InputError that holds no password; so not even its cause is kept."""
    try:
        yield
    except kinds as error:
        told = " ".join(str(error).split())
        for secret in _secrets(address):
            told = told.replace(secret, "***")
        raise InputError(
            f"the database cannot be read ({told[:300]}); check the address, the user and its "
            "password (PGPASSWORD or ~/.pgpass keep it out of the command)"
        ) from None


def _secrets(address: str) -> list[str]:
    """The address and what in it may be secret, longest first."""
    head, _, query = address.partition("?")
    password = head.rpartition("@")[0].partition("://")[2].partition(":")[2]
    values = [part.partition("=")[2] for part in query.split("&")]
    found = {address, query, password, *values}
    return sorted({*found, *map(unquote, found)} - {""}, key=len, reverse=True)


def copy_remote(address: str, scratch: Scratch) -> Path:
    """Copy the file behind a URL to a temporary one, by fsspec: ``https``, ``s3``, ``hf``, ``gs`` ...

    Raises
    ------
    MissingExtraError
        fsspec, or what the extra brings for this kind of address, is not installed.
    InputError
        The file cannot be read; or this kind of address needs a package that no extra brings.
    """
    try:
        import fsspec

        with fsspec.open(address, "rb") as file:
            return spool(file, scratch)
    except ImportError as error:
        if importlib.util.find_spec("fsspec") is None or scheme(address) in _REMOTE:
            raise MissingExtraError(f"reading {scheme(address)}:// addresses", extra="remote") from error
        raise InputError(f"cannot be read ({error}); install that package, then run this again") from error
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 -- each of its backends has errors of its own
        told = " ".join(f"{type(error).__name__} {error}".split())
        for secret in _secrets(address):
            told = told.replace(secret, "***")
        raise InputError(f"cannot be read ({told[:300]}); check the address and your access to it") from None


def form_options(source: str) -> frozenset[str]:
    """The options of form that reading ``source`` can use: all of them where its form is not plain to see."""
    text = frozenset({"delimiter", "encoding", "quote", "escape", "ragged"})
    try:
        with Path(source).open("rb") as file:
            start = file.read(16)
    except (OSError, ValueError):
        return text | {"sheet"}
    if start.startswith(b"PAR1"):
        return frozenset()
    ending = Path(source).suffix.lower()
    book = start.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")) and ending != ".zip"
    if book or start.startswith(SQLITE) or start[8:12] == DUCKDB:
        return frozenset({"sheet"})
    if ending in (".jsonl", ".ndjson"):
        return frozenset({"encoding"})
    return text if ending in (".csv", ".tsv") else text | {"sheet"}


def is_remote(source: Any) -> bool:
    """Whether a source is an address, not a path."""
    return isinstance(source, str) and scheme(source) is not None
