"""An append-only file of JSON lines that several processes may write: a lock, one write a line, nothing lost.

The lock is the operating system's on ``<file>.lock``, so a writer that dies lets it go. A line is written in one
piece at the end of the file and synced. A last line that a crash cut short stays as it is: the next line begins
under it, and readers are told of it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from audit.errors import ArgumentError, InputError

if sys.platform == "win32":
    import msvcrt

    def _take(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _take(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


__all__ = ["append", "locked", "read_lines"]

_PAUSE = 0.02


@contextmanager
def locked(path: Path, *, wait: float) -> Iterator[None]:
    """Hold the lock of a file, which need not exist yet; its folder is made.

    Raises
    ------
    ArgumentError
        Another process kept the lock for ``wait`` seconds, or the folder cannot be written.
    """
    until = time.monotonic() + wait
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise ArgumentError(
            f"{path}: cannot be written ({error.strerror or error}); name another ledger"
        ) from error
    try:
        while True:
            try:
                _take(handle)
                break
            except OSError as error:
                if time.monotonic() >= until:
                    raise ArgumentError(
                        f"{path}: another process held the ledger for {wait:g} s; try again when it is done"
                    ) from error
                time.sleep(_PAUSE)
        yield
    finally:
        os.close(handle)  # which lets the lock go


def append(path: Path, line: dict[str, Any]) -> None:
    """Write one JSON line at the end and sync it; call it with the lock held."""
    text = json.dumps(line, ensure_ascii=False, allow_nan=False, separators=(", ", ": "))
    data = text.encode("utf-8", "backslashreplace") + b"\n"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            size = os.fstat(handle).st_size
            if size:
                _check_ledger(handle, path)
                os.lseek(handle, size - 1, os.SEEK_SET)
                data = data if os.read(handle, 1) == b"\n" else b"\n" + data
            while data:
                data = data[os.write(handle, data) :]
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise ArgumentError(
            f"{path}: cannot be written ({error.strerror or error}); name another ledger"
        ) from error


def _check_ledger(handle: int, path: Path) -> None:
    """Raise an ArgumentError unless a file begins as JSON lines do: nothing is added to a table named by mistake."""
    os.lseek(handle, 0, os.SEEK_SET)
    if not os.read(handle, 64).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        raise ArgumentError(
            f"{path} is no ledger: its first line is no JSON object; name the ledger, or a new file"
        )


def read_lines(path: Path) -> tuple[list[tuple[int, dict[str, Any]]], list[int]]:
    """The lines that hold a JSON object, with their numbers from 1; and the numbers of those that do not.

    Raises
    ------
    InputError
        The file cannot be read.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; name the ledger or its folder") from error
    good: list[tuple[int, dict[str, Any]]] = []
    damaged: list[int] = []
    for number, line in enumerate(raw.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            good.append((number, value))
        else:
            damaged.append(number)
    return good, damaged
