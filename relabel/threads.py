"""Runs a coroutine from anywhere: in a thread with its own event loop, so a notebook's loop is no obstacle."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from audit.errors import AuditError
from relabel.pipeline import Stop

__all__ = ["RunInterruptedError", "run_in_thread"]

T = TypeVar("T")


class RunInterruptedError(AuditError):
    """The run was interrupted by a person. What was paid for is in the journal."""

    exit_code = 130


def run_in_thread(
    work: Callable[[], Coroutine[Any, Any, T]], *, stop: Stop, notice: Callable[[str], None]
) -> T:
    """Run ``work()`` to its end and return its result or raise its error.

    On Ctrl-C ``stop`` is requested, so that requests under way finish and are kept; on a second one they are
    left. Either way KeyboardInterrupt is raised in the end.
    """
    result: list[T] = []
    failure: list[BaseException] = []
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []

    async def main() -> T:
        task = asyncio.current_task()
        if task is not None:
            running.append((asyncio.get_running_loop(), task))
        return await work()

    def target() -> None:
        try:
            result.append(asyncio.run(main()))
        except BaseException as error:  # noqa: BLE001 - raised again below, in the caller's thread
            failure.append(error)
        finally:
            finished.set()

    # An event, as an interrupt in Thread.join makes Python 3.11 take a running thread for a finished one.
    finished = threading.Event()
    thread = threading.Thread(target=target, name="relabel", daemon=True)
    thread.start()
    interrupts = 0
    while not finished.is_set():
        try:
            finished.wait(0.2)
        except KeyboardInterrupt:
            interrupts += 1
            if interrupts == 1:
                stop.request("interrupted")
                notice("stopping: waiting for the requests under way (Ctrl-C again to leave them)")
            else:
                for loop, task in running:
                    loop.call_soon_threadsafe(task.cancel)
    if interrupts:
        raise KeyboardInterrupt
    if failure:
        raise failure[0]
    return result[0]
