"""A GRPO step with half of the groups uniform: TRL's trainer against the one that skips what teaches nothing.

    python benchmarks/train_grpo_speed.py [--model smollm2] [--prompts 8] [--group 8] [--cap 4]

Both train a LoRA adapter of one model on prompts of examples/risk_driver.csv, sample their completions themselves
(same seeds), and get the same rewards: 1 for all of every other group, and for half of each group between. Steps of
the two are taken by turns. Printed: medians over the steps, the generation and the update apart, and how far the
parameters are from each other at the end. ``--model tiny`` makes a small random model instead.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from trl import GRPOTrainer

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import train.grpo_trainer  # noqa: E402
from train.config import GrpoSettings, ModelSettings  # noqa: E402
from train.grpo import grpo_config  # noqa: E402
from train.grpo_trainer import LeanGRPOTrainer  # noqa: E402
from train.models import add_lora, load_model, prompt_ids, prompt_text, quiet  # noqa: E402
from train.task import Task, load_examples  # noqa: E402

TASK = Task(
    data=str(ROOT / "examples/risk_driver.csv"), inputs=("passage", "entity", "driver"), label="label",
    labels=("0", "1"), split="split", train_rows=200,
    instruction="Does the passage show that the entity is at actual risk from the driver? 1 is yes, 0 is no.",
)  # fmt: skip


class Timed:
    """Notes what generating and scoring took, in wall and in processor time."""

    def _generate_and_score_completions(self: Any, inputs: Any) -> Any:
        wall, processor = time.perf_counter(), time.process_time()
        output = super()._generate_and_score_completions(inputs)
        self.sampled = output["completion_ids"]
        self.generation = (time.perf_counter() - wall, time.process_time() - processor)
        return output


class Stock(Timed, GRPOTrainer):
    """TRL's trainer."""


class Lean(Timed, LeanGRPOTrainer):
    """Ours."""


def trainer_of(kind: type, model: Any, loaded: Any, settings: GrpoSettings, out: str, think: bool) -> Any:
    """A trainer with its batches and its optimizer, ready for steps."""

    def half(completion_ids: list[Any], **_: Any) -> list[float]:
        places = [(k // settings.group, k % settings.group) for k in range(len(completion_ids))]
        return [1.0 if g % 2 == 0 or k < settings.group // 2 else 0.0 for g, k in places]

    examples = load_examples(TASK, seed=0)["train"]
    texts = [
        prompt_text(loaded.tokenizer, TASK.messages(one.values, think=think), loaded.settings, think=think)
        for one in examples
    ]
    config = grpo_config(
        settings, model=loaded.settings, cap=settings.cap, seed=0, out=Path(out), device="cpu"
    )
    with quiet():
        trainer = kind(
            model=model, args=config, processing_class=loaded.tokenizer, reward_funcs=half,
            train_dataset=Dataset.from_list([{"prompt": text} for text in texts]),
        )  # fmt: skip
    first = TASK.messages(examples[0].values, think=think)
    ids = trainer._tokenize_prompts([texts[0]])[0][0]
    if ids != prompt_ids(loaded.tokenizer, first, loaded.settings, think=think):
        raise RuntimeError("the prompts differ from those of a run")
    trainer.create_optimizer()
    trainer.current_gradient_accumulation_steps = settings.accumulation
    trainer.batches = iter(trainer.get_train_dataloader())
    return trainer


def step(trainer: Any, seed: int) -> tuple[float, float, float, float]:
    """One step: wall and processor seconds, those of the generation, and those of the rest."""
    passes = trainer.args.gradient_accumulation_steps
    batches = [next(trainer.batches) for _ in range(passes)]
    torch.manual_seed(seed)
    wall, processor = time.perf_counter(), time.process_time()
    for batch in batches:
        trainer.training_step(trainer.model, batch, None)
    torch.nn.utils.clip_grad_norm_(trainer.model.parameters(), 1.0)
    trainer.optimizer.step()
    trainer.optimizer.zero_grad()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    made = trainer.generation
    return wall, processor, wall - made[0], processor - made[1]


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--model", default="smollm2", help="smollm2, tiny, or a folder")
    options.add_argument("--prompts", type=int, default=8)
    options.add_argument("--group", type=int, default=8)
    options.add_argument("--cap", type=int, default=4)
    options.add_argument("--steps", type=int, default=5, help="5 or more")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument(
        "--accumulation", type=int, default=1, help="passes that share the completions of a step"
    )
    options.add_argument(
        "--skip-alone", action="store_true", help="compute the logits of prompts as TRL does"
    )
    options.add_argument("--think", action="store_true", help="ask for a thought")
    asked = options.parse_args()
    torch.set_num_threads(asked.threads)
    if asked.skip_alone:
        train.grpo_trainer._MOST_LOGITS = 0
    settings = GrpoSettings(
        steps=asked.steps + 1, prompts=asked.prompts, group=asked.group, cap=asked.cap, accumulation=asked.accumulation
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as out:
        name = asked.model
        if name == "tiny":
            from tests import tiny_model

            with quiet():
                name = str(tiny_model.save(Path(out) / "tiny", hidden=128))
        chosen = ModelSettings(name=name, dtype="float32", device="cpu")
        with quiet():
            loaded = add_lora(load_model(chosen), chosen)
        with quiet():
            models = {Stock: loaded.model, Lean: copy.deepcopy(loaded.model)}
        pair = {
            kind: trainer_of(kind, model, loaded, settings, out, asked.think)
            for kind, model in models.items()
        }
        start = {
            name: p.detach().clone() for name, p in pair[Stock].model.named_parameters() if p.requires_grad
        }
        same = 0
        found: dict[type, list[tuple[float, ...]]] = {Stock: [], Lean: []}
        for number in range(asked.steps + 1):  # the first warms up and does not count
            for kind, trainer in pair.items() if number % 2 else reversed(pair.items()):
                took = step(trainer, number)
                if number:
                    found[kind].append(took)
            same += torch.equal(*(trainer.sampled for trainer in pair.values()))
            if number == 4:  # after five steps
                ends = [dict(trainer.model.named_parameters()) for trainer in pair.values()]
                gaps = torch.cat([(ends[0][name] - ends[1][name]).detach().abs().flatten() for name in start])
                moved = max((ends[0][name] - p).abs().max().item() for name, p in start.items())
            print(f"step {number}: {found[Stock][-1:]} {found[Lean][-1:]}", file=sys.stderr)
        print(f"{asked.model}, {asked.prompts} x {asked.group} completions of at most {asked.cap} tokens, medians of "
              f"{asked.steps}, {asked.threads} thread(s)")  # fmt: skip
        for place, what in enumerate(("step, wall", "step, processor", "update, wall", "update, processor")):
            stock, lean = (statistics.median(took[place] for took in found[kind]) for kind in (Stock, Lean))
            print(f"{what:18} TRL {stock:7.3f} s   skipping {lean:7.3f} s   {stock / lean:.2f} times as fast")
        print(f"after five steps parameters have moved by up to {moved:.1e} and are up to {gaps.max():.1e} apart, "
              f"{(gaps > 1e-6).float().mean():.1e} of them by more than 1e-6")  # fmt: skip
        print(f"the completions were the same in {same} of {asked.steps + 1} steps")


if __name__ == "__main__":
    main()
