"""A limit to the size of an answer, so that no endpoint can fill the memory.

Answers are asked for unpacked. One that is packed all the same (a proxy may do so) has a lower limit: packed bytes
can grow a thousandfold.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2

__all__ = ["LONGEST", "LONGEST_PACKED", "limit_body"]

#: Bytes of the longest answer that is read, as it comes and packed; a long verdict has some tens of thousands.
LONGEST = 16_000_000
LONGEST_PACKED = 64_000


class _Limited(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, longest: int) -> None:
        self._stream = stream
        self._longest = longest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._stream:
            size += len(part)
            if size > self._longest:
                raise httpx2.ReadError(f"an answer of more than {self._longest:,} bytes")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


async def limit_body(response: httpx2.Response) -> None:
    """Hook for responses: reading the body fails once it is longer than the limit."""
    packed = response.headers.get("content-encoding", "identity").strip().lower() not in ("identity", "")
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Limited(response.stream, LONGEST_PACKED if packed else LONGEST)
