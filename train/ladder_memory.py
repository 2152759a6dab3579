"""How much memory training takes, roughly: from the model's config.json, the batch and the lengths.

Per process, in bytes: weights P·b; adapter 16 a trainable number (weight, gradient and Adam's two moments in 32
bits); activations 34·t·h·L·b/2 for t tokens in a batch, without the attention matrix, or 2·t·h·L where they are
checkpointed (Korthikanti et al. 2022, "Reducing activation recomputation in large transformer models", eq. 1 and
section 5); logits 2·t·V·4 (values and gradient in 32 bits); keys and values 2·s·L·k·b for s cached tokens of k
numbers. It is an estimate to choose a batch by: allocators and libraries take their share on top.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audit.results import Result
from train.config import Config

__all__ = ["Memory", "Shape", "estimate_memory", "read_shape"]

_GB = 1e9
_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*([BM])(?![a-z])", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The numbers of a model that memory depends on; all but ``parameters`` are 0 where only its name is known."""

    parameters: float
    hidden: int = 0
    inner: int = 0
    layers: int = 0
    vocabulary: int = 0
    cached: int = 0


@dataclass(frozen=True, kw_only=True)
class Memory(Result):
    """Gigabytes by part; None for a step that no rung takes, and for all three where the shape is not known."""

    weights: float
    adapter: float
    sft: float | None
    grpo: float | None
    generation: float | None

    @property
    def peak(self) -> float | None:
        """The most at one time."""
        parts = [part for part in (self.sft, self.grpo, self.generation) if part is not None]
        return self.weights + self.adapter + max(parts) if parts else None

    def summary(self) -> str:
        """The estimate as text."""
        base = f"weights {self.weights:.1f}, adapter {self.adapter:.2f}"
        if self.peak is None:
            return (
                f"Memory, GB: {base}; the rest depends on the model's config.json, which is not on this disk"
            )
        named = (("a step of SFT", self.sft), ("a step of GRPO", self.grpo), ("generation", self.generation))
        steps = ", ".join(f"{name} {size:.1f}" for name, size in named if size is not None)
        return f"Memory, GB, a rough estimate for one process: {base}, {steps}: {self.peak:.1f} at most"


def read_shape(name: str) -> Shape | None:
    """The shape of a model from its config.json, or its size from a name such as ``Qwen3.5-0.8B``; else None."""
    folder = Path(name)
    if name == "smollm2":
        return Shape(
            parameters=134.5e6, hidden=576, inner=1536, layers=30, vocabulary=49152, cached=2 * 3 * 64
        )
    if (folder / "config.json").is_file():
        return _shape(json.loads((folder / "config.json").read_text("utf-8")))
    try:
        from huggingface_hub import try_to_load_from_cache

        cached = try_to_load_from_cache(name, "config.json")
    except (ImportError, ValueError):
        cached = None
    if isinstance(cached, str):
        return _shape(json.loads(Path(cached).read_text("utf-8")))
    found = _SIZE.search(name.rpartition("/")[2].replace("-", " ").replace("_", " "))
    if found is None:
        return None
    return Shape(parameters=float(found[1]) * (1e9 if found[2].upper() == "B" else 1e6))


def _shape(config: dict[str, Any]) -> Shape:
    text = config.get("text_config") or config
    hidden, layers = int(text["hidden_size"]), int(text["num_hidden_layers"])
    heads = int(text.get("num_attention_heads") or 1)
    head = int(text.get("head_dim") or hidden // heads)
    groups = int(text.get("num_key_value_heads") or heads)
    inner = int(text.get("intermediate_size") or 4 * hidden)
    vocabulary = int(text["vocab_size"])
    layer = 2 * hidden * head * (heads + groups) + 3 * hidden * inner
    tied = text.get("tie_word_embeddings", config.get("tie_word_embeddings", False))
    return Shape(
        parameters=float(layers * layer + vocabulary * hidden * (1 if tied else 2)),
        hidden=hidden,
        inner=inner,
        layers=layers,
        vocabulary=vocabulary,
        cached=2 * groups * head,
    )


def estimate_memory(config: Config, shape: Shape, *, prompt: int) -> Memory:
    """The parts for a config whose longest prompt has so many tokens; batches are those of one process."""
    size = 2 if config.model.dtype == "bfloat16" else 4
    weights = shape.parameters * size
    r = config.model.lora_r
    if not shape.layers:
        return Memory(
            weights=weights / _GB, adapter=16 * 0.012 * r / 16 * shape.parameters / _GB, sft=None, grpo=None,
            generation=None,
        )  # fmt: skip
    trained = shape.layers * r * (4 * 2 * shape.hidden + 3 * (shape.hidden + shape.inner))
    grpo, rungs = config.grpo, set(config.run.rungs)
    thinks = {"cot-sft", "grpo-think"} & rungs
    cap = max(grpo.think_cap, *grpo.more_caps, grpo.cap) if thinks else grpo.cap
    answer = (config.teacher.cap or grpo.think_cap) if thinks else 8
    checkpointed = config.model.device != "cpu" and config.model.dtype == "bfloat16"

    def step(tokens: int, predicted: int) -> float:
        kept = 2 * size / 2 if checkpointed else 34 * size / 2
        one_layer = 34 * size / 2 * tokens * shape.hidden if checkpointed else 0.0
        return kept * tokens * shape.hidden * shape.layers + one_layer + 2 * predicted * shape.vocabulary * 4

    rows = grpo.prompts * grpo.group // grpo.accumulation
    sft_tokens = config.sft.batch * (prompt + answer)
    drawn = grpo.prompts * grpo.group * (prompt + cap)
    return Memory(
        weights=weights / _GB,
        adapter=16 * trained / _GB,
        sft=step(sft_tokens, sft_tokens) / _GB
        if rungs & {"sft-noisy", "sft-clean", "sft-matched", "cot-sft"}
        else None,
        grpo=step(rows * (prompt + cap), rows * cap) / _GB if rungs & {"grpo", "grpo-think"} else None,
        generation=drawn * shape.layers * shape.cached * size / _GB if "grpo" in rungs or thinks else None,
    )
