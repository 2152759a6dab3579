"""Writes batch files: split by the limits of a file, and there all together or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from audit.errors import ArgumentError

__all__ = ["MAX_BYTES", "MAX_REQUESTS", "URL", "BatchWriter"]

MAX_REQUESTS = 50_000
MAX_BYTES = 200_000_000
URL = "/v1/chat/completions"


class BatchWriter:
    """Files ``NAME-0001.jsonl`` ... in a folder, each of at most so many lines and bytes; a context manager.

    All requests about one item stand in one file. ``items``, ``requests`` and ``files`` count what was written;
    when the context is left by an error, no file remains.
    """

    def __init__(self, folder: Path, name: str, *, max_requests: int, max_bytes: int) -> None:
        self.folder, self.name = folder, name
        self.max_requests, self.max_bytes = max_requests, max_bytes
        self.files: list[Path] = []
        self.items = self.requests = 0
        self._file: BinaryIO | None = None
        self._lines = self._size = 0

    def add(self, key: str, bodies: Iterable[Mapping[str, Any]]) -> None:
        """Write the requests about one item: ``custom_id`` is ``key``, then ``key.1``, ``key.2`` ..."""
        lines = []
        for number, body in enumerate(bodies):
            name = f"{key}.{number}" if number else key
            entry = {"custom_id": name, "method": "POST", "url": URL, "body": body}
            lines.append(json.dumps(entry, separators=(",", ":")).encode("ascii") + b"\n")
        size = sum(map(len, lines))
        if len(lines) > self.max_requests or size > self.max_bytes:
            raise ArgumentError(
                f"one item takes {len(lines)} requests and {size:,} bytes, more than a file may hold;"
                " raise --max-requests or --max-bytes, or ask it with audit relabel run"
            )
        if self._size + size > self.max_bytes or self._lines + len(lines) > self.max_requests:
            self._close()
        try:
            if self._file is None:
                self.folder.mkdir(parents=True, exist_ok=True)
                self.files.append(self.folder / f"{self.name}-{len(self.files) + 1:04}.jsonl")
                self._file = self.files[-1].open("wb")
            self._file.writelines(lines)
        except OSError as error:
            raise ArgumentError(
                f"--dir {self.folder}: cannot be written ({error}); name another folder"
            ) from error
        self._lines += len(lines)
        self._size += size
        self.items += 1
        self.requests += len(lines)

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._lines = self._size = 0

    def __enter__(self) -> BatchWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        if kind is not None:
            for path in self.files:
                path.unlink(missing_ok=True)
