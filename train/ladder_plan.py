"""What a ladder would do, found out without loading a model: rows, steps, tokens, memory, and what is missing.

A dry run reads the data, joins the clean key, asks the tokenizer where it is at hand, has TRL check the settings of
GRPO, and looks for the teacher's key. What cannot work raises; what may be there on another machine is a note.
"""

from __future__ import annotations

import importlib.util
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from audit.errors import ArgumentError
from audit.results import Result
from train.config import Config
from train.ladder_memory import Memory, estimate_memory, read_shape
from train.task import SPLITS, Example, load_examples
from train.teacher import base_url_of, is_local

__all__ = ["Plan", "RungPlan", "find_tokenizer", "plan_ladder", "rung_plans", "steps_of_sft"]

_FEW = 2000


@dataclass(frozen=True, kw_only=True)
class RungPlan(Result):
    """One rung: training rows, steps of one run, the most tokens it may write, requests to the teacher."""

    rung: str
    runs: int
    rows: int
    steps: int
    generated: int = 0
    requests: int = 0
    at_most: bool = False


@dataclass(frozen=True, kw_only=True)
class Plan(Result):
    """A dry run's findings. ``prompts`` are tokens (median, longest) of a prompt, None without a tokenizer."""

    model: str
    splits: Mapping[str, int]
    classes: Mapping[str, int]
    relabelled: int
    rungs: tuple[RungPlan, ...]
    prompts: tuple[int, int] | None
    memory: Memory | None
    notes: tuple[str, ...] = field(default=())

    def summary(self) -> str:
        """The plan as text."""
        rows = ", ".join(f"{name} {count:,}" for name, count in self.splits.items())
        classes = ", ".join(f"{label}: {count:,}" for label, count in self.classes.items())
        train = self.splits["train"]
        lines = [
            f"Model {self.model}; rows: {rows}",
            f"Training rows by clean label: {classes}; {self.relabelled:,} ({self.relabelled / train:.1%}) came with "
            "another label",
        ]
        if self.prompts is not None:
            lines.append(
                f"Prompts have {self.prompts[0]:,} tokens at the median, {self.prompts[1]:,} at most"
            )
        lines += ["", "rung          runs     rows    steps   tokens written, at most   requests"]
        for one in self.rungs:
            most = "≤" if one.at_most else " "
            lines.append(
                f"{one.rung:<13} {one.runs:>4} {most}{one.rows:>7,} {most}{one.steps:>7,} {one.generated:>25,} "
                f"{one.requests:>10,}"
            )
        if self.memory is not None:
            lines += ["", self.memory.summary()]
        lines += ["", *(f"note: {note}" for note in self.notes)] if self.notes else []
        return "\n".join(lines)


def plan_ladder(config: Config) -> Plan:
    """Check a ladder whole and say what it would do.

    Raises
    ------
    AuditError
        The data, the labels, the clean key, the prompts' lengths or the settings cannot work.
    """
    examples = load_examples(config.task, seed=config.task.seed)
    notes = _data_notes(config, examples)
    tokenizer, why = find_tokenizer(config.model.name)
    prompts: tuple[int, int] | None = None
    if tokenizer is None:
        notes.append(f"prompt lengths are not known: {why}")
    else:
        prompts = _lengths(config, examples, tokenizer)
        _check_tags(config, tokenizer)
    notes += _trl_notes(config)
    notes += _teacher_notes(config)
    notes += _device_notes(config)
    memory = None
    if set(config.run.rungs) == {"traces"}:
        shape = None  # asks the teacher, and trains nothing
    elif (shape := read_shape(config.model.name)) is None:
        notes.append(
            "memory is not known: the model's config.json is not on this disk and its name tells no size"
        )
    if shape is not None:
        longest = prompts[1] if prompts else config.model.max_prompt
        memory = estimate_memory(config, shape, prompt=longest)
    train = examples["train"]
    return Plan(
        model=config.model.name,
        splits={split: len(examples[split]) for split in SPLITS},
        classes=dict(sorted(Counter(one.clean for one in train).items())),
        relabelled=sum(one.noisy != one.clean for one in train),
        rungs=rung_plans(config, rows=len(train), items=len({one.item for one in train})),
        prompts=prompts,
        memory=memory,
        notes=tuple(notes),
    )


def steps_of_sft(config: Config, rows: int) -> int:
    """Optimizer steps of supervised fine-tuning on so many rows, in one process."""
    if config.sft.max_steps:
        return config.sft.max_steps
    each = math.ceil(math.ceil(rows / config.sft.batch) / config.sft.accumulation)
    return math.ceil(each * config.sft.epochs)


def rung_plans(config: Config, *, rows: int, items: int) -> tuple[RungPlan, ...]:
    """Rows, steps and tokens of every rung that the ladder runs; those that need traces at most."""
    runs, grpo, teacher = len(config.run.seeds), config.grpo, config.teacher
    drawn = grpo.steps * grpo.prompts * grpo.group
    plans = []
    for rung in config.run.rungs:
        if rung == "traces":
            asked = items * teacher.samples
            plan = RungPlan(
                rung=rung, runs=1, rows=rows, steps=0, generated=asked * teacher.max_tokens, requests=asked
            )
        elif rung.startswith("grpo"):
            caps = (grpo.think_cap, *grpo.more_caps) if rung == "grpo-think" else (grpo.cap,)
            plan = RungPlan(
                rung=rung,
                runs=runs * len(caps),
                rows=rows,
                steps=grpo.steps,
                generated=runs * drawn * sum(caps),
            )
        else:
            from_traces = rung in ("sft-matched", "cot-sft")
            plan = RungPlan(
                rung=rung, runs=runs, rows=rows, steps=steps_of_sft(config, rows), at_most=from_traces
            )
        plans.append(plan)
    return tuple(plans)


def _data_notes(config: Config, examples: Mapping[str, Sequence[Example]]) -> list[str]:
    notes = []
    if config.task.clean is None:
        notes.append(
            "there is no task.clean: noisy and clean labels are the same, and the key is the labels as they came"
        )
    items = {split: {one.item for one in examples[split]} for split in SPLITS}
    for split in SPLITS[1:]:
        both = len(items["train"] & items[split])
        if both:
            notes.append(
                f"{both:,} items of {split} are in the training rows too: the scores on them are recall"
            )
    wanted = (config.task.train_rows, config.task.validation_rows, config.task.test_rows)
    for split, rows in zip(SPLITS, wanted, strict=True):
        if rows is not None and len(examples[split]) < rows:
            notes.append(f"{split} has {len(examples[split]):,} rows, fewer than the {rows:,} asked for")
        missing = set(config.task.labels) - {one.clean for one in examples[split]}
        if missing:
            notes.append(f"no row of {split} has the clean label {sorted(missing)[0]!r}")
    return notes


def find_tokenizer(name: str) -> tuple[Any, str]:
    """The tokenizer where it is on this disk, else None and why."""
    try:
        from transformers import AutoTokenizer

        from train.models import quiet
        from train.models_smollm2 import cache_folder
    except ImportError:
        return None, "the extra [train] is not installed here"
    if name == "smollm2":
        found = sorted(cache_folder().glob("smollm2-*/config.json"))
        if not found:
            return None, "smollm2 has not been converted yet (the first run does it)"
        name = str(found[-1].parent)
    try:
        with quiet():
            return AutoTokenizer.from_pretrained(name, local_files_only=True), ""
    except (OSError, ValueError, KeyError):
        return None, f"the tokenizer of {name} is not on this disk"


def _lengths(config: Config, examples: Mapping[str, Sequence[Example]], tokenizer: Any) -> tuple[int, int]:
    """Median and longest prompt, of all or of the longest texts and an even sample; too long a one raises."""
    from train.models import prompt_ids

    everything = sorted(
        (one for split in SPLITS for one in examples[split]), key=lambda one: -sum(map(len, one.values))
    )
    thinks = any(rung in config.run.rungs for rung in ("cot-sft", "grpo-think"))
    if len(everything) > _FEW:
        everything = everything[:200] + everything[200 :: math.ceil(len(everything) / _FEW)]
    lengths = sorted(
        len(prompt_ids(tokenizer, config.task.messages(one.values, think=thinks), config.model, think=thinks))
        for one in everything
    )
    if lengths[-1] > config.model.max_prompt:
        raise ArgumentError(
            f"a prompt has {lengths[-1]:,} tokens, more than model.max_prompt = {config.model.max_prompt:,}: raise it"
        )
    return lengths[len(lengths) // 2], lengths[-1]


def _check_tags(config: Config, tokenizer: Any) -> None:
    from train.models import tags_of

    if any(rung in config.run.rungs for rung in ("cot-sft", "grpo-think")):
        tags_of(tokenizer, config.model, [])


def _trl_notes(config: Config) -> list[str]:
    """Have TRL check the settings of SFT and GRPO; without it say so."""
    grpo, rungs = config.grpo, config.run.rungs
    notes: list[str] = []
    caps = {"grpo": (grpo.cap,), "grpo-think": (grpo.think_cap, *grpo.more_caps)}
    used = [cap for rung in rungs for cap in caps.get(rung, ())]
    if used and grpo.vllm and importlib.util.find_spec("vllm") is None:
        notes.append("grpo.vllm is set and vllm is not installed here: pip install vllm where it trains")
    if importlib.util.find_spec("trl") is None:
        return [
            *notes,
            "the settings of SFT and GRPO were not checked: the extra [train] is not installed here",
        ]
    from train.grpo import grpo_config
    from train.sft import sft_config

    out = Path(config.run.out) / "dry-run"
    for cap in used:
        grpo_config(grpo, model=config.model, cap=cap, seed=0, out=out, device="cpu")
    if any("sft" in rung for rung in rungs):
        sft_config(config.sft, dtype=config.model.dtype, seed=0, out=out, device="cpu")
    return notes


def _teacher_notes(config: Config) -> list[str]:
    if "traces" not in config.run.rungs:
        return []
    if not config.teacher.model:
        raise ArgumentError(
            "teacher.model is not set: name the model that writes the traces, or leave traces out"
        )
    notes, url = [], base_url_of(config.teacher)
    if importlib.util.find_spec("openai") is None:
        notes.append("the package openai is not installed here: the rung traces needs it")
    if not os.environ.get("OPENAI_API_KEY", "").strip() and not is_local(url):
        notes.append(f"OPENAI_API_KEY is not set: the rung traces needs the key of {url}")
    cap = config.teacher.cap or config.grpo.think_cap
    if config.teacher.max_tokens < cap:
        notes.append(
            f"teacher.max_tokens = {config.teacher.max_tokens} is below the traces' cap of {cap} tokens: long thoughts "
            "are cut at the endpoint"
        )
    return notes


def _device_notes(config: Config) -> list[str]:
    if importlib.util.find_spec("torch") is None:
        return ["torch is not installed here: install the extra [train] where it trains"]
    import torch

    gpu = torch.cuda.is_available()
    if config.model.device.startswith("cuda") and not gpu:
        return [f"model.device is {config.model.device!r} and there is no GPU here"]
    if config.grpo.vllm and not gpu and {"grpo", "grpo-think"} & set(config.run.rungs):
        return ["grpo.vllm needs a GPU, and there is none here"]
    return []
