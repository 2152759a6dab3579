"""GRPO in plain torch, one completion at a time and without padding: what the trainer's gradient must be."""

from __future__ import annotations

from typing import Any

import torch


def advantages(rewards: list[float | None], group: int, scale: str) -> list[float]:
    """Reward minus the mean of its group, over a standard deviation; None is left out and gets 0."""
    known = [r for r in rewards if r is not None]
    out = []
    for k, reward in enumerate(rewards):
        mates = [r for r in rewards[k // group * group : (k // group + 1) * group] if r is not None]
        spread = known if scale == "batch" else mates
        if reward is None or (scale != "none" and len(spread) < 2):
            out.append(0.0)
            continue
        centred = reward - sum(mates) / len(mates)
        out.append(centred if scale == "none" else centred / (torch.tensor(spread).std().item() + 1e-4))
    return out


def gradient(
    model: Any, prompts: list[list[int]], completions: list[list[int]], weights: list[float], *, loss: str,
    masked: list[bool], cap: int, temperature: float, micro: int = 1,
) -> dict[str, torch.Tensor]:  # fmt: skip
    """The gradient of a step of all completions, in ``micro`` batches of consecutive rows."""
    model.zero_grad()
    n = len(completions)
    size = n // micro
    used = [0 if hide else len(ids) for ids, hide in zip(completions, masked, strict=True)]
    for k in range(n):
        if masked[k]:
            continue
        ids = torch.tensor([prompts[k] + completions[k]])
        logits = model(input_ids=ids).logits[0, len(prompts[k]) - 1 : -1] / temperature
        logps = torch.log_softmax(logits.float(), -1).gather(1, torch.tensor(completions[k])[:, None]).sum()
        mine = used[k // size * size : (k // size + 1) * size]
        over = {
            "dapo": max(sum(used), 1),
            "bnpo": max(sum(mine), 1) * micro,
            "grpo": used[k] * n,
            "dr_grpo": cap * n,
        }[loss]
        (-weights[k] * logps / over).backward()
    grads = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return grads
