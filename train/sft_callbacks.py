"""What happens beside the steps of a training: its curve, and an orderly stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback

__all__ = ["CurveLog", "StopOnRequest"]

#: The trainer's names of what is logged, and ours.
_FIGURES = {
    "loss": "loss",
    "learning_rate": "learning_rate",
    "grad_norm": "grad_norm",
    "mean_token_accuracy": "token_accuracy",
    "entropy": "entropy",
    "num_tokens": "tokens",
    "epoch": "epoch",
}


class CurveLog(TrainerCallback):  # type: ignore[misc] # transformers' types are not read
    """Calls ``log(step, figures)`` after each step.

    ``tokens`` are those read so far, prompts included; ``seconds`` is the time of the step.
    """

    def __init__(self, log: Callable[[int, dict[str, float]], None]) -> None:
        self._log = log
        self._started = self._seconds = 0.0

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start the clock."""
        self._started = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stop it after the update."""
        self._seconds = time.perf_counter() - self._started

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any], **kwargs: Any) -> None:
        """Hand on what the trainer logged of this step."""
        if "loss" in logs:
            figures = {ours: float(logs[name]) for name, ours in _FIGURES.items() if name in logs}
            self._log(int(state.global_step), {**figures, "seconds": self._seconds})


class StopOnRequest(TrainerCallback):  # type: ignore[misc] # transformers' types are not read
    """After :meth:`ask`, the step at hand is finished and saved, and training stops; in all processes at once."""

    def __init__(self) -> None:
        self.asked = False

    def ask(self) -> None:
        """Stop after this step."""
        self.asked = True

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Save and stop where any process was asked to."""
        if args.world_size > 1:
            import torch.distributed as dist

            asked: list[bool] = [False] * args.world_size
            dist.all_gather_object(asked, self.asked)
            self.asked = any(asked)
        if self.asked:
            control.should_save = control.should_training_stop = True
