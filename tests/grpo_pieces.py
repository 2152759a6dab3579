"""What the tests of GRPO share: a trainer that is told its completions, and a tiny model that answers."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from tests import tiny_model
from train.config import ModelSettings
from train.grpo_trainer import LeanGRPOTrainer
from train.models import completion_ids, load_model, prompts_of, quiet
from train.task import Task

CAP, GROUP, END, PAD = 5, 4, 2, 0
#: Prompts of several lengths; the longest asks for a group that teaches nothing.
PROMPTS = [[1, 9, 8, 7], [1, 20, 21, 22, 23, 24, 25, 26], [1, 30], [1, 41, 42, 43, 44], [1, 50, 51]]
#: Five groups of four: two that teach something, two of equal rewards, one of nothing but cut completions.
REWARDS = [1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1, 0, 0, 0, 0]
CUT = [False, True, False, False, True, *[False] * 6, True, *[False] * 4, *[True] * 4]


def completions(seed: int = 0) -> list[list[int]]:
    """Ids for all rows: those in CUT fill the cap, the others end before it."""
    rng = torch.Generator().manual_seed(seed)

    def ids(n: int) -> list[int]:
        return torch.randint(5, 260, (n,), generator=rng).tolist()

    return [ids(CAP) if cut else [*ids(1 + k % (CAP - 2)), END] for k, cut in enumerate(CUT)]


def rewards(truncated: str) -> list[float | None]:
    """The rewards as the choice of ``truncated`` has them."""
    return [None if cut and truncated == "exclude" else float(r) for r, cut in zip(REWARDS, CUT, strict=True)]


class _Told:
    """Takes completions from a list, in the order of all processes' rows; notes what is passed through the model."""

    told: list[list[int]]

    def _tokenize_prompts(self: Any, prompts: list[str]) -> Any:
        return [PROMPTS[int(prompt) % len(PROMPTS)] for prompt in prompts], None, {}

    def _generate_single_turn(self: Any, prompt_ids: list[list[int]], *_: Any) -> Any:
        n = len(prompt_ids)
        start = (self.state.global_step * self.accelerator.num_processes + self.accelerator.process_index) * n
        rows = [self.told[(start + k) % len(self.told)] for k in range(n)]
        return rows, None

    def _get_per_token_logps_and_entropies(self: Any, model: Any, ids: Any, *args: Any, **kwargs: Any) -> Any:
        self.shapes.append(tuple(ids.shape))
        return super()._get_per_token_logps_and_entropies(model, ids, *args, **kwargs)


class Stock(_Told, GRPOTrainer):
    """TRL's trainer with given completions."""


class Lean(_Told, LeanGRPOTrainer):
    """Ours with given completions."""


@dataclass
class Outcome:
    """What a training gave: gradients of the first step, logs, shapes of the passes, advantages, the trainer."""

    trainer: Any
    gradients: list[dict[str, torch.Tensor]] = field(default_factory=list)
    logs: list[dict[str, Any]] = field(default_factory=list)
    advantages: list[float] = field(default_factory=list)


class _Watch(TrainerCallback):
    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        model = getattr(model, "module", model)
        self.outcome.gradients.append(
            {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
        )

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        self.outcome.logs.append(dict(logs))


def train(
    kind: type, model: Any, tokenizer: Any, out: Path, *, told: list[list[int]], given: list[float | None],
    truncated: str = "zero", accumulation: int = 1, processes: int = 1, steps: int = 1, lr: float = 0.0,
    skip_uniform: bool = True, **config: Any,
) -> Outcome:  # fmt: skip
    """Train for ``steps`` with the completions and rewards given, over and over where there are fewer."""
    n = len(told)
    values = dict(zip(map(tuple, told), given, strict=True))

    def label(completion_ids: list[list[int]], **_: Any) -> list[float | None]:
        return [values[tuple(ids)] for ids in completion_ids]

    args = GRPOConfig(
        output_dir=str(out), max_steps=steps, per_device_train_batch_size=n // accumulation // processes,
        gradient_accumulation_steps=accumulation, num_generations=GROUP, max_completion_length=CAP,
        learning_rate=lr, lr_scheduler_type="constant", max_grad_norm=0.0, use_cpu=True, bf16=False,
        activation_checkpointing=False, dataloader_pin_memory=False, shuffle_dataset=False, report_to="none",
        logging_steps=1, save_strategy="no", disable_tqdm=True,
        mask_truncated_completions=truncated != "zero", **{"temperature": 0.8, **config},
    )  # fmt: skip
    rows = [{"prompt": str(k)} for k in range(n // GROUP)] * steps
    outcome = Outcome(trainer=None)
    more: dict[str, Any] = {}
    if kind is Lean:
        more["skip_uniform"] = skip_uniform
        more["on_rollouts"] = lambda step, advantages, seconds: outcome.advantages.extend(advantages)
    with quiet():
        trainer = kind(
            model=model, args=args, train_dataset=Dataset.from_list(rows), processing_class=tokenizer,
            reward_funcs=label, callbacks=[_Watch(outcome)], **more,
        )  # fmt: skip
        trainer.told, trainer.shapes, outcome.trainer = told, [], trainer
        trainer.train()
    return outcome


def fresh(folder: Path, *, hidden: int = 32) -> tuple[Any, Any]:
    """A tiny model with all its parameters to train, and its tokenizer."""
    if not (folder / "config.json").is_file():
        tiny_model.save(folder, hidden=hidden)
    with quiet():
        return AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)


def model_settings(folder: Path) -> ModelSettings:
    """Settings of a tiny model and its adapter."""
    return ModelSettings(name=str(folder), dtype="float32", device="cpu", lora_r=4, lora_alpha=8)


def answering(folder: Path, task: Task, *, template: str = tiny_model.TEMPLATE, steps: int = 60) -> Path:
    """Save a tiny model that answers 0 or 1 as a coin falls, after a thought where it is asked to think.

    Its thoughts are of several lengths, and texts may quote the tags.
    """
    tiny_model.save(folder, template=template)
    loaded = load_model(model_settings(folder))
    rng = random.Random(0)
    optimizer = torch.optim.AdamW(loaded.model.parameters(), lr=5e-3)
    pad = loaded.tokenizer.pad_token_id
    for _ in range(steps):
        rows = []
        for k in range(16):
            words = [*tiny_model.COLOURS, *tiny_model.WORDS, "<think>", "</think>"]
            text = " ".join(rng.choices(words, k=rng.randint(2, 9)))
            prompt = prompts_of(loaded, [task.messages([text], think=k % 2 == 1)], think=k % 2 == 1)[0]
            thought = f"<think>\n{' so' * rng.randint(0, 5)}\n</think>\n" if k % 2 else ""
            rows.append((prompt, completion_ids(loaded, f"{thought}{rng.randint(0, 1)}", prompt=prompt)))
        wide = max(len(p) + len(c) for p, c in rows)
        ids = torch.tensor([p + c + [pad] * (wide - len(p) - len(c)) for p, c in rows])
        labels = torch.tensor([[-100] * len(p) + c + [-100] * (wide - len(p) - len(c)) for p, c in rows])
        loaded.model(input_ids=ids, labels=labels, attention_mask=(ids != pad).long()).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    loaded.model.save_pretrained(folder)
    return folder
