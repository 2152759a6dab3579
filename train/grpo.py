"""GRPO on a task with labels: the reward is 1 where a completion gives the label, and every completion is kept.

As in the study behind this project: baseline the mean of the group, β = 0, one on-policy step a batch, binary
rewards. Rows that teach nothing are left out of the update (:mod:`train.grpo_trainer`); what becomes of completions
that hit the cap is a choice (``settings.truncated``).
"""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from audit.errors import ArgumentError, MissingExtraError
from train.checkpoints import checkpoint_step, interrupts, last_checkpoint, save_adapter, train_on
from train.config import GrpoSettings, ModelSettings
from train.rollout_log import drop_steps_after, number_groups, write_step
from train.scorer import Scorer
from train.task import Example, Task

if TYPE_CHECKING:
    from train.models import LoadedModel
    from train.run_folder import RunFolder

__all__ = ["RolloutReward", "grpo_config", "prompt_order", "train_grpo"]


def train_grpo(
    loaded: LoadedModel,
    examples: Sequence[Example],
    task: Task,
    *,
    settings: GrpoSettings,
    run: RunFolder,
    seed: int,
    think: bool,
    labels: Literal["clean", "noisy"] = "clean",
) -> LoadedModel:
    """Train the adapter of ``loaded`` in place, log every step and rollout in ``run``, and save the adapter there.

    A run that was cut short goes on from its last checkpoint and ends where it would have ended.

    Parameters
    ----------
    loaded:
        A model with a trainable adapter.
    examples:
        The rows to draw prompts from, each as often as any other.
    settings:
        ``cap`` (``think_cap`` with ``think``) is the most tokens of a completion, its end included.
    run:
        A run that was started.
    think:
        Ask for a thought before the answer; then only an answer after one closed thought counts.
    labels:
        The label that a completion must give: that of the clean key or the one that came with the row.

    Returns
    -------
    The same model, named by the digest of the adapter.

    Raises
    ------
    ArgumentError
        There are no examples, the model has no trainable adapter, the settings do not go together, or a step cannot
        be shared among the processes.
    InputError
        Prompts are longer than ``model.max_prompt``.
    KeyboardInterrupt
        Ctrl-C was pressed; the step at hand was finished and saved first.
    """
    try:
        from datasets import Dataset

        from train.grpo_trainer import LeanGRPOTrainer
        from train.models import folder_digest, has_adapter, prompts_of, quiet, scorer_for
        from train.sft_callbacks import CurveLog, StopOnRequest
    except ImportError as error:
        raise MissingExtraError("audit train: GRPO", extra="train") from error
    if not examples:
        raise ArgumentError("GRPO needs one example at least: raise task.train_rows")
    if not has_adapter(loaded):
        raise ArgumentError("GRPO trains an adapter: give the model one with add_lora or load_adapter")
    if settings.vllm and importlib.util.find_spec("vllm") is None:
        raise ArgumentError(
            "grpo.vllm samples with vLLM, which is not installed: pip install vllm, or set it to false"
        )
    chats = [task.messages(example.values, think=think) for example in examples]
    prompts = prompts_of(loaded, chats, think=think)
    order = prompt_order(len(examples), settings.steps * settings.prompts, seed=seed)
    rows = [
        {"prompt": str(k), "item": examples[k].item, "label": getattr(examples[k], labels)} for k in order
    ]
    cap = settings.think_cap if think else settings.cap
    reward = RolloutReward(
        scorer_for(loaded, task.labels, think=think),
        decode=lambda ids: str(loaded.tokenizer.decode(list(ids), skip_special_tokens=False)),
        ends=loaded.ends,
        settings=settings,
        cap=cap,
        folder=run.rollouts if run.main else None,
        run=run.path.name,
    )
    config = grpo_config(
        settings,
        model=loaded.settings,
        cap=cap,
        seed=seed,
        out=run.checkpoints,
        device=str(loaded.device.type),
    )
    stop = StopOnRequest()
    with quiet(), interrupts(stop.ask):
        trainer = LeanGRPOTrainer(
            model=loaded.model,
            args=config,
            train_dataset=Dataset.from_list(rows),
            processing_class=loaded.tokenizer,
            reward_funcs=reward,
            callbacks=[stop, CurveLog(lambda step, values: run.log(step=step, **values, **reward.figures))],
            skip_uniform=settings.skip_uniform,
            tokenize=lambda key: prompts[int(key)],
            on_rollouts=reward.close,
        )
        checkpoint = last_checkpoint(run.checkpoints)
        run.resume_at(checkpoint_step(checkpoint))
        if run.main:
            drop_steps_after(run.rollouts, checkpoint_step(checkpoint))
        train_on(trainer, checkpoint)
        loaded.model.eval()
        if stop.asked and trainer.state.global_step < trainer.state.max_steps:
            raise KeyboardInterrupt
        if run.main:
            save_adapter(loaded.model, run.adapter)
    trainer.accelerator.wait_for_everyone()
    base = loaded.digest.partition("+")[0]
    return dataclasses.replace(loaded, digest=f"{base}+{folder_digest(run.adapter)}")


class RolloutReward:
    """The reward of completions, and the log of all of them.

    TRL calls it with the completions of one process; :meth:`close` then gets their advantages, gathers the rows of
    all processes, writes them, and keeps the figures of the step in ``figures``.
    """

    __name__ = "label"

    def __init__(
        self,
        scorer: Scorer,
        *,
        decode: Callable[[Sequence[int]], str],
        ends: Collection[int],
        settings: GrpoSettings,
        cap: int,
        folder: Path | None,
        run: str,
    ) -> None:
        self.figures: dict[str, float] = {}
        self._scorer = scorer
        self._decode = decode
        self._ends = frozenset(ends)
        self._settings = settings
        self._cap = cap
        self._folder = folder
        self._run = run
        self._rows: list[dict[str, Any]] = []

    def __call__(
        self, *, completion_ids: Sequence[Sequence[int]], item: Sequence[str], label: Sequence[str], **_: Any
    ) -> list[float | None]:
        """One reward a completion: 0 or 1, or None for one that is left out of the baseline."""
        self._rows = [self._row(*one) for one in zip(completion_ids, item, label, strict=True)]
        return [row["reward"] for row in self._rows]

    def _row(self, ids: Sequence[int], item: str, label: str) -> dict[str, Any]:
        # As TRL tells it for its mask: the last token is none that ends a completion.
        truncated = not ids or ids[-1] not in self._ends
        scored = self._scorer.score(ids, label=label, truncated=truncated)
        left_out = truncated and self._settings.truncated == "exclude"
        return {
            "item": item,
            "label": label,
            "text": self._decode(ids),
            "length": len(ids),
            "truncated": truncated,
            "closed": scored.closed,
            "answer": scored.answer,
            "reason": scored.reason,
            "reward": None if left_out else scored.reward,
        }

    def close(self, step: int, advantages: Sequence[float], seconds: float) -> None:
        """Log the completions of a step with the advantages that the update will use."""
        from accelerate.utils import gather_object

        mine = [{**row, "advantage": value} for row, value in zip(self._rows, advantages, strict=True)]
        rows = number_groups(gather_object(mine), group=self._settings.group)
        if self._folder is not None:
            write_step(self._folder, step, rows, run=self._run, cap=self._cap)
        self.figures = {**step_figures(rows, self._settings), "seconds_generation": seconds}


def step_figures(rows: Sequence[dict[str, Any]], settings: GrpoSettings) -> dict[str, float]:
    """What a step's completions say: reward (scored ones), shares of informative groups and of truncated rows."""
    moved = np.array([row["advantage"] != 0 for row in rows])
    cut = np.array([row["truncated"] for row in rows])
    rewards = [row["reward"] for row in rows if row["reward"] is not None]
    used = moved & ~(cut & (settings.truncated != "zero"))
    return {
        "reward": float(np.mean(rewards)) if rewards else math.nan,
        "informative": float(moved.reshape(-1, settings.group).any(1).mean()),
        "truncated": float(cut.mean()),
        "length": float(np.mean([row["length"] for row in rows])),
        "rows": len(rows),
        "kept": int(used.sum()) if settings.skip_uniform else len(rows),
    }


def prompt_order(n: int, draws: int, *, seed: int) -> list[int]:
    """Which example each group of a run asks, ``draws`` of ``n``: whole shuffled rounds, one after another."""
    rng = np.random.default_rng(seed)
    rounds = [rng.permutation(n) for _ in range(-(-draws // n))]
    return [int(k) for k in np.concatenate(rounds)[:draws]]


def grpo_config(
    settings: GrpoSettings, *, model: ModelSettings, cap: int, seed: int, out: Path, device: str
) -> Any:
    """TRL's settings for a run; needs no model, no GPU and no vLLM, so that a dry run can check them.

    Raises
    ------
    ArgumentError
        The completions of a step cannot be shared among processes and accumulation steps, or TRL refuses a setting.
    """
    from trl import GRPOConfig

    from train.grpo_trainer import check_loss, check_skip

    shares = int(os.environ.get("WORLD_SIZE", "1")) * settings.accumulation
    total = settings.prompts * settings.group
    check_loss(settings.loss_type)
    if total % shares:
        raise ArgumentError(
            f"{total} completions a step (grpo.prompts x grpo.group) cannot be shared among {shares} (processes x "
            "grpo.accumulation): change one of them"
        )
    cpu = device == "cpu"
    vllm = {"use_vllm": True, "vllm_mode": "colocate", "vllm_max_model_length": model.max_prompt + cap}
    try:
        config = GRPOConfig(
            output_dir=str(out),
            max_steps=settings.steps,
            per_device_train_batch_size=total // shares,
            gradient_accumulation_steps=settings.accumulation,
            steps_per_generation=settings.accumulation,
            num_iterations=1,
            num_generations=settings.group,
            max_completion_length=cap,
            temperature=settings.temperature,
            learning_rate=settings.learning_rate,
            lr_scheduler_type="constant",
            beta=0.0,
            loss_type=settings.loss_type,
            scale_rewards=settings.scale_rewards,
            mask_truncated_completions=settings.truncated != "zero",
            router_aux_loss_coef=0.0,
            shuffle_dataset=False,
            remove_unused_columns=False,
            use_cpu=cpu,
            bf16=not cpu and model.dtype == "bfloat16",
            activation_checkpointing=not cpu,
            dataloader_pin_memory=not cpu,
            logging_steps=1,
            save_strategy="steps",
            save_steps=settings.save_every,
            save_total_limit=2,
            seed=seed,
            report_to="none",
            disable_tqdm=True,
            **(vllm if settings.vllm else {}),
        )
    except (ValueError, TypeError) as error:
        raise ArgumentError(f"[grpo]: TRL refuses these settings ({str(error).splitlines()[0]})") from error
    if settings.skip_uniform:
        check_skip(config)
    return config
