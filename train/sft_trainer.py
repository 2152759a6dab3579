"""TRL's trainer for SFT, except that off a GPU it computes the logits of learned positions only.

A prompt of a hundred tokens is followed by a label of two. On a GPU TRL skips the logits of the prompt; on a CPU it
computes them all, with a vocabulary of 49,152 words a third of a small model's step. The loss and its gradient are
the same (a test compares them).
"""

from __future__ import annotations

from typing import Any

import torch
from trl import SFTTrainer

__all__ = ["LeanSFTTrainer"]


class LeanSFTTrainer(SFTTrainer):  # type: ignore[misc] # TRL's types are not read
    """Logs TRL's figures too: mean token accuracy, entropy (in nats) and tokens read."""

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The mean negative log-likelihood of the learned tokens."""
        if self.accelerator.device.type != "cpu" or return_outputs or not self.model.training:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        targets = inputs["labels"][:, 1:]
        keep = (targets != -100).any(dim=0).nonzero()[:, 0]
        logits = model(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            logits_to_keep=keep,
            use_cache=False,
        ).logits
        learned = targets[:, keep] != -100
        logs = logits[learned].float().log_softmax(dim=-1)
        wanted = targets[:, keep][learned]
        total = -logs.gather(-1, wanted[:, None]).sum()
        count = learned.sum() if num_items_in_batch is None else torch.as_tensor(num_items_in_batch)
        loss = total / count.clamp(min=1)
        if self.args.average_tokens_across_devices and num_items_in_batch is not None:
            loss = loss * self.accelerator.num_processes  # DDP averages what was counted over all processes
        self._note(logs.detach(), wanted, inputs["attention_mask"])
        return loss

    def _note(self, logs: torch.Tensor, wanted: torch.Tensor, mask: torch.Tensor) -> None:
        """Keep the figures of this batch, over all processes."""
        sums = torch.stack(
            [
                torch.tensor(float(len(wanted))),
                (logs.argmax(dim=-1) == wanted).sum().float(),
                -(logs.exp() * logs).sum(),
                mask.sum().float(),
            ]
        )
        count, right, entropy, tokens = self.accelerator.reduce(sums, reduction="sum").tolist()
        self._metrics["train"]["mean_token_accuracy"].append(right / max(count, 1.0))
        self._metrics["train"]["entropy"].append(entropy / max(count, 1.0))
        self._total_train_tokens += int(tokens)
        self._metrics["train"]["num_tokens"] = [self._total_train_tokens]
