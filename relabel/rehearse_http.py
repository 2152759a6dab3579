"""The wire of the rehearsal server: a small HTTP/1.1 server on asyncio, made to misbehave on purpose.

A general-purpose server refuses to send a body shorter than its ``Content-Length`` or to drop a
connection half-way; these are the very things to rehearse, so the few lines of HTTP that a judge's
client needs are spoken here. Bodies need a ``Content-Length`` (a chunked request gets 411).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

__all__ = ["Answer", "Asked", "Connection", "json_answer"]

MAX_HEAD = 64 * 1024
MAX_BODY = 64 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One HTTP request as it came in; header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What to do about a request.

    Parameters
    ----------
    status, body, headers:
        The response. ``Content-Length`` is always that of the whole ``body``.
    delay:
        Seconds before the first byte.
    cut:
        Close the connection after this many bytes of the body; -1: before any byte of the response.
    hang:
        Say nothing at all, with the connection open, until the client gives up.
    drip:
        Seconds between single bytes of the body (0: all at once).
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: int | None = None
    hang: bool = False
    drip: float = 0.0

    def head(self) -> bytes:
        """Status line and headers."""
        try:
            phrase = HTTPStatus(self.status).phrase
        except ValueError:
            phrase = "Unknown"
        lines = [f"HTTP/1.1 {self.status} {phrase}", f"content-length: {len(self.body)}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def json_answer(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer whose body is ``value`` as JSON."""
    body = json.dumps(value, separators=(",", ":")).encode()
    return Answer(status=status, body=body, headers={"content-type": "application/json", **(headers or {})})


class Connection(asyncio.Protocol):
    """One client connection: requests are answered in the order in which they came."""

    def __init__(
        self, answer: Callable[[Asked], Answer], done: Callable[[], None], alive: set[Connection]
    ) -> None:
        self._answer = answer
        self._done = done
        self._alive = alive
        self._buffer = bytearray()
        self._busy = False
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        if isinstance(transport, asyncio.Transport):
            self._transport = transport
            self._alive.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget what was still to be sent."""
        self._transport = None
        self._alive.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._busy:
            self._busy = False
            self._done()

    def abort(self) -> None:
        """Drop the connection without a word."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Collect bytes; answer the next whole request."""
        self._buffer += data
        if not self._busy:
            self._next()

    def _next(self) -> None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD:
                self._refuse(431)
            return
        lines = bytes(self._buffer[:end]).decode("latin-1").split("\r\n")
        start = lines[0].split(" ")
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        length = headers.get("content-length", "0")
        if len(start) != 3 or not length.isdigit():
            return self._refuse(400)
        if "transfer-encoding" in headers:
            return self._refuse(411)
        if int(length) > MAX_BODY:
            return self._refuse(413)
        total = end + 4 + int(length)
        if len(self._buffer) < total:
            return None
        body = bytes(self._buffer[end + 4 : total])
        del self._buffer[:total]
        self._busy = True
        asked = Asked(method=start[0], path=start[1], headers=headers, body=body)
        answer = self._answer(asked)
        if answer.hang:
            return None
        keep = headers.get("connection", "").lower() != "close"
        if answer.delay > 0:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(answer.delay, self._send, answer, keep)
        else:
            self._send(answer, keep)
        return None

    def _refuse(self, status: int) -> None:
        if self._transport is not None:
            self._transport.write(Answer(status=status, headers={"connection": "close"}).head())
            self._transport.close()

    def _send(self, answer: Answer, keep: bool) -> None:
        if self._transport is None:
            return
        if answer.cut is not None:
            if answer.cut >= 0:
                self._transport.write(answer.head() + answer.body[: answer.cut])
            self._transport.close()
        elif answer.drip > 0:
            self._transport.write(answer.head())
            self._drop(answer, 0, keep)
        else:
            self._transport.write(answer.head() + answer.body)
            self._finish(keep)

    def _drop(self, answer: Answer, position: int, keep: bool) -> None:
        if self._transport is None:
            return
        if position >= len(answer.body):
            self._finish(keep)
            return
        self._transport.write(answer.body[position : position + 1])
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(answer.drip, self._drop, answer, position + 1, keep)

    def _finish(self, keep: bool) -> None:
        self._busy = False
        self._done()
        if self._transport is not None and not keep:
            self._transport.close()
        elif self._buffer:
            self._next()
