"""What training leaves to go on from, and how it is told to stop: for every rung that trains."""

from __future__ import annotations

import json
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = ["checkpoint_step", "interrupts", "is_complete", "last_checkpoint", "save_adapter", "train_on"]

#: Seconds within which signals count as one.
_ONE_SIGNAL = 2.0


def last_checkpoint(folder: Path) -> Path | None:
    """The latest checkpoint that was written to its end (its trainer_state.json comes last), or None."""
    found = [file.parent for file in folder.glob("checkpoint-*/trainer_state.json") if _is_whole(file)]
    return max(found, key=checkpoint_step, default=None)


def checkpoint_step(checkpoint: Path | None) -> int:
    """The step after which a checkpoint was written; 0 without one."""
    return int(checkpoint.name.rpartition("-")[2]) if checkpoint else 0


def is_complete(checkpoint: Path | None) -> bool:
    """The checkpoint holds the last step: going on from it would train one step too many."""
    if checkpoint is None:
        return False
    state = json.loads((checkpoint / "trainer_state.json").read_text("utf-8"))
    return bool(state["global_step"] >= state["max_steps"])


def train_on(trainer: Any, checkpoint: Path | None) -> None:
    """Train to the end, from ``checkpoint`` where there is one; where it holds the end, only take its adapter."""
    if not is_complete(checkpoint):
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        return
    from peft import set_peft_model_state_dict
    from peft.utils import load_peft_weights

    set_peft_model_state_dict(trainer.model, load_peft_weights(str(checkpoint), device="cpu"))


def save_adapter(model: Any, folder: Path) -> None:
    """Save an adapter as a whole folder that takes the place of an older one."""
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    # Embeddings are never trained here; asked whether they changed, peft would look for the base model on the hub.
    model.save_pretrained(part, save_embedding_layers=False)
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)


@contextmanager
def interrupts(ask: Callable[[], None]) -> Iterator[None]:
    """Calls ``ask`` at the first Ctrl-C or SIGTERM, so that work can end in order; a later one stops at once.

    Signals within two seconds are one: a launcher of several processes passes on what the terminal has sent
    already. Without effect outside the main thread, where Python sets no signal handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    first: float | None = None

    def told(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if first is None:
            first = time.monotonic()
            ask()
        elif time.monotonic() - first > _ONE_SIGNAL:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, told) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_whole(file: Path) -> bool:
    try:
        json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return True
