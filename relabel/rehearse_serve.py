"""Rehearsal in the foreground: a truth table read from a file, served until interrupted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import duckdb

from audit.errors import ColumnError, InputError
from audit.reading import open_table, quote
from relabel.rehearse import RehearsalServer

__all__ = ["read_truth", "serve"]


def read_truth(path: str | Path, *, item: str, label: str) -> dict[str, str]:
    """Item text -> label from two columns of a table; an item that is there twice keeps its first label.

    Raises InputError where the file cannot be read, ColumnError where a column is missing.
    """
    with open_table(path) as table:
        for column in (item, label):
            if column not in table.columns:
                raise ColumnError(f"{path} has no column {column!r}; it has {', '.join(table.columns)}")
        select = f"SELECT {quote(item)}, {quote(label)} FROM {quote(table.name)}"
        try:
            rows = table.con.execute(select).fetchall()
        except duckdb.Error as error:
            raise InputError(f"{path}: {str(error).splitlines()[0]}") from error
    truth: dict[str, str] = {}
    for text, value in rows:
        if text and value:
            truth.setdefault(text, value)
    if not truth:
        raise InputError(f"{path} holds no row with both {item!r} and {label!r}; give a file that does")
    return truth


def serve(
    server: RehearsalServer,
    *,
    on_ready: Callable[[str], None] | None = None,
    until: threading.Event | None = None,
) -> None:
    """Serve until ``until`` is set or the process is interrupted; ``on_ready`` gets the base URL."""
    stop = until or threading.Event()
    with server:
        if on_ready is not None:
            on_ready(server.base_url)
        try:
            while not stop.wait(0.5):
                pass
        except KeyboardInterrupt:
            return
