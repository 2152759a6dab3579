"""The log-probability of each label as a whole completion, its end included.

A label may be several tokens; what counts is the product of their probabilities and of the end after them, so that
"1" and "10" do not share a probability. The prompt is read once for all labels.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from audit.errors import ArgumentError

if TYPE_CHECKING:
    from train.models import LoadedModel

__all__ = ["batches_by_length", "completion_logprobs", "left_padded"]

Floats = NDArray[np.float64]


def completion_logprobs(
    loaded: LoadedModel, prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]], *, batch: int
) -> Floats:
    """The summed log-probability of each completion after each prompt.

    Parameters
    ----------
    prompts:
        n prompts as token ids, none empty.
    completions:
        K completions as token ids, none empty, the same for each prompt; what ends them is part of them.
    batch:
        Prompts a forward pass.

    Returns
    -------
    Array of n × K, natural logarithms, in the order of ``prompts``; computed from logits in single precision.
    """
    import torch

    if not completions or not all(completions) or not all(prompts):
        raise ArgumentError("log-probabilities need a prompt and a completion of one token at least")
    found = np.empty((len(prompts), len(completions)))
    with torch.no_grad():
        for rows in batches_by_length([len(ids) for ids in prompts], batch):
            found[rows] = _batch(loaded, [prompts[row] for row in rows], completions)
    return found


def batches_by_length(lengths: Sequence[int], batch: int) -> list[list[int]]:
    """Places of rows in batches of alike lengths, the longest first: that is where memory would run out."""
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    return [order[start : start + batch] for start in range(0, len(order), batch)]


def left_padded(loaded: LoadedModel, prompts: Sequence[Sequence[int]]) -> tuple[Any, Any]:
    """Ids and attention mask, tensors of rows × longest, on the model's device; padding stands before the prompt."""
    import torch

    pad, width = loaded.tokenizer.pad_token_id, max(len(ids) for ids in prompts)
    ids = torch.tensor([[pad] * (width - len(row)) + list(row) for row in prompts], device=loaded.device)
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in prompts], device=loaded.device)
    return ids, mask


def _batch(
    loaded: LoadedModel, prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]]
) -> Floats:
    import torch

    model, pad = loaded.model, loaded.tokenizer.pad_token_id
    rows, k, longest = len(prompts), len(completions), max(len(ids) for ids in completions)
    ids, mask = left_padded(loaded, prompts)
    places = mask.cumsum(-1) - 1
    position_name, cache_name = _taken(model)

    def positions(at: Any) -> dict[str, Any]:
        return {position_name: at} if position_name else {}

    read = model(
        input_ids=ids,
        attention_mask=mask,
        use_cache=True,
        logits_to_keep=1,
        **positions(places.clamp(min=0)),
    )
    table = torch.tensor([[*c, *[pad] * (longest - len(c))] for c in completions], device=ids.device)
    counts = torch.tensor(
        [[1.0] * len(c) + [0.0] * (longest - len(c)) for c in completions], device=ids.device
    )
    total = read.logits[:, -1].float().log_softmax(-1)[:, table[:, 0]]  # rows × k
    cache, last = read[cache_name], places[:, -1]
    if (
        longest > 1
    ):  # each prompt once for each completion; one token a step, which every kind of cache allows
        cache.reorder_cache(torch.arange(rows, device=ids.device).repeat_interleave(k))
        mask, last = mask.repeat_interleave(k, 0), last.repeat_interleave(k)
    for step in range(1, longest):
        mask = torch.cat([mask, mask.new_ones(rows * k, 1)], dim=1)
        out = model(
            input_ids=table[:, step - 1].repeat(rows)[:, None],
            attention_mask=mask,
            use_cache=True,
            **{cache_name: cache},
            **positions((last + step)[:, None]),
        )
        logs = out.logits[:, -1].float().log_softmax(-1).view(rows, k, -1)
        picked = logs.gather(-1, table[:, step].expand(rows, k)[..., None])[..., 0]
        total = total + picked * counts[:, step]
    return np.asarray(total.double().cpu().numpy(), dtype=np.float64)


def _taken(model: Any) -> tuple[str | None, str]:
    """How the model's forward names the positions (None where it takes none) and the cache.

    transformers renamed ``past_key_values`` to ``cache`` in version 5.
    """
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    names = inspect.signature(base.forward).parameters
    return (
        "position_ids" if "position_ids" in names else None,
        "cache" if "cache" in names else "past_key_values",
    )
