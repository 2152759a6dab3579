"""Rehearsal in the foreground: a truth table read from a file, served until interrupted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from audit.columns import check_columns
from audit.errors import InputError
from audit.reading import open_table
from relabel.rehearse import RehearsalServer
from relabel.rehearse_script import item_key

__all__ = ["read_truth", "serve"]


def read_truth(path: str | Path, *, item: str | Sequence[str], label: str) -> dict[str, str]:
    """Item -> label from a table; an item that is there twice keeps its first label.

    ``item`` is the column with the text, or the rubric's input columns in its order: the keys are then those of
    `relabel.rehearse_script.item_key`. Raises InputError where the file cannot be read, ColumnError where a
    column is missing.
    """
    items = (item,) if isinstance(item, str) else tuple(item)
    truth: dict[str, str] = {}
    with open_table(path) as table:
        check_columns(table, items, option="--item")
        check_columns(table, [label], option="--label")
        for batch in table.rows([*items, label]):
            for *texts, value in batch:
                key = item_key(text or "" for text in texts)
                if any(texts) and value:
                    truth.setdefault(key, value)
    if not truth:
        raise InputError(
            f"{path} holds no row with both {', '.join(items)} and {label}; give a file that does"
        )
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
