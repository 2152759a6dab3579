"""The one gate to an endpoint: how many requests may be under way, and when none may start.

Concurrency follows additive increase, multiplicative decrease (Chiu & Jain 1989): every answer opens the
gate by 1/limit (a tenth of it close to where it was last too wide), a 429 narrows it to 70 %, once per round
of requests. A 429 also shuts the gate for all, for as long as ``Retry-After`` says, or for a time that doubles
with every round that gets nothing through.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from audit.errors import ArgumentError, EndpointError

__all__ = ["Gate", "Ticket"]

DECREASE = 0.7
NEAR, CAUTION = 0.9, 0.1
FIRST_WAIT = 0.5
LONGEST_WAIT = 60.0
WINDOW = 20


@dataclass(frozen=True, kw_only=True)
class Ticket:
    """Leave to make one request; ``at`` is when it was given (seconds of the gate's clock)."""

    at: float


class Gate:
    """Shared by all workers, and by all clients of one endpoint.

    Parameters
    ----------
    limit:
        The most requests under way at once (at least 1); the gate starts there and never goes beyond.
    clock:
        Seconds from any origin.
    rng:
        For the jitter of waits.
    """

    def __init__(
        self,
        limit: int = 64,
        *,
        clock: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
    ) -> None:
        if limit < 1:
            raise ArgumentError(f"the gate's limit must be at least 1, not {limit}")
        self.ceiling = limit
        self.limit = float(limit)
        self.in_flight = 0
        self.limited = 0
        self.succeeded = 0
        self._clock = clock
        self._rng = rng or random.Random()
        self._trouble_since: float | None = None
        self._shut_until = 0.0
        self._cut_at = float("-inf")
        self._too_much = float("inf")
        self._rounds = 0
        self._through = False
        self._recent: deque[bool] = deque(maxlen=WINDOW)
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._asleep: set[asyncio.Future[None]] = set()
        self._error: EndpointError | None = None

    @property
    def shut_for(self) -> float:
        """Seconds until requests may start again; 0 when they may."""
        return max(0.0, self._shut_until - self._clock())

    @property
    def silent_for(self) -> float:
        """Seconds since the first of the failures that no success has followed; 0 without one."""
        return 0.0 if self._trouble_since is None else self._clock() - self._trouble_since

    def close(self, error: EndpointError) -> None:
        """No request may start any more: those who wait, and all who come, get ``error``.

        What is under way goes on, so that what is paid for can be kept.
        """
        self._error = self._error or error
        for future in (*self._waiting, *self._asleep):
            if not future.done():
                future.set_exception(self._error)

    async def pause(self, seconds: float) -> None:
        """Wait for so long; raises what `close` was told, at once."""
        if self._error is not None:
            raise self._error
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asleep.add(future)
        try:
            await asyncio.wait_for(future, seconds)
        except TimeoutError:
            pass
        finally:
            self._asleep.discard(future)

    async def enter(self) -> Ticket:
        """Wait until a request may start; raises what `close` was told."""
        while True:
            wait = self.shut_for
            if wait > 0 or self._error is not None:
                await self.pause(wait)
            elif self.in_flight < int(self.limit):
                self.in_flight += 1
                return Ticket(at=self._clock())
            else:
                await self._queue()

    async def _queue(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self._wake()  # the call was for this one: hand it on
            raise
        finally:
            if future in self._waiting:
                self._waiting.remove(future)

    def leave(self, ticket: Ticket) -> None:
        """The request is over, whatever came of it."""
        self.in_flight -= 1
        self._wake()

    def _wake(self) -> None:
        free = int(self.limit) - self.in_flight
        while free > 0 and self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                free -= 1

    def success(self, ticket: Ticket) -> None:
        """The endpoint answered."""
        self.succeeded += 1
        self._trouble_since = None
        self._recent.append(False)
        self._through = True
        near = self.limit > NEAR * self._too_much
        self.limit = min(float(self.ceiling), self.limit + (CAUTION if near else 1.0) / self.limit)

    def refuse(self, ticket: Ticket, *, retry_after: float | None) -> float:
        """The endpoint said 429; returns for how long (seconds) the gate is now shut.

        Requests that had started before the last cut tell nothing new, but for a ``Retry-After`` of their own.
        """
        self.limited += 1
        now = self._clock()
        self._trouble_since = now if self._trouble_since is None else self._trouble_since
        fresh = ticket.at >= self._cut_at
        if fresh:
            self._cut(now)
            self._rounds = 1 if self._through else self._rounds + 1
            self._through = False
        if retry_after is None:
            wait = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(max(self._rounds - 1, 0), 10))
            wait *= 0.5 + 0.5 * self._rng.random()
        else:
            wait = retry_after * (1 + 0.05 * self._rng.random())
        if fresh or retry_after is not None:
            self._shut_until = max(self._shut_until, now + wait)
        return self.shut_for

    def fault(self, ticket: Ticket, *, strain: bool) -> None:
        """The request failed otherwise. ``strain``: by a time-out or a 503, as of an endpoint that is overrun.

        One of these means little; when more than half of the latest 20 requests fare so, the gate narrows.
        """
        now = self._clock()
        self._trouble_since = now if self._trouble_since is None else self._trouble_since
        self._recent.append(strain)
        if sum(self._recent) > WINDOW // 2 and ticket.at >= self._cut_at:
            self._recent.clear()
            self._cut(now)

    def _cut(self, now: float) -> None:
        self._too_much = self.limit
        self.limit = max(1.0, self.limit * DECREASE)
        self._cut_at = now
