"""Supervised fine-tuning of an adapter: the loss is on the completion alone, its end included.

Rows are turned into ids here (:mod:`train.models_prompts`), so that what is learned is exactly what is asked at
evaluation and sampled by GRPO; TRL's trainer does the rest. A run that was cut short goes on from its last
checkpoint and ends where it would have ended.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from audit.errors import ArgumentError, InputError, MissingExtraError
from train.checkpoints import checkpoint_step, interrupts, last_checkpoint, save_adapter, train_on
from train.config import SftSettings
from train.models_prompts import completion_ids, prompts_of
from train.task import Message

if TYPE_CHECKING:
    from pathlib import Path

    from train.models import LoadedModel
    from train.run_folder import RunFolder

__all__ = ["SftRow", "encode_rows", "sft_config", "train_sft"]

#: The label of a token that carries no loss.
IGNORED = -100


@dataclass(frozen=True, kw_only=True)
class SftRow:
    r"""A chat and the completion to learn: a label, or a thought and then a label.

    A thought is written ``<think>\n...\n</think>\n1``, whether the template opens it by itself or not. ``think``
    asks the template for a thinking prompt; it follows from the completion where it is not given.
    """

    messages: Sequence[Message]
    completion: str
    think: bool | None = None


def encode_rows(loaded: LoadedModel, rows: Sequence[SftRow]) -> list[dict[str, list[int]]]:
    """Rows as ``input_ids`` and ``labels``; the labels are -100 for the prompt, and the ids of the completion.

    Raises
    ------
    InputError
        Prompts are longer than ``model.max_prompt``, or rows longer than the model reads; says how many. Nothing is
        cut.
    """
    tag = loaded.settings.think[0]
    thinks = [row.completion.startswith(tag) if row.think is None else row.think for row in rows]
    prompts = prompts_of(loaded, [row.messages for row in rows], think=thinks)
    found = []
    for row, prompt in zip(rows, prompts, strict=True):
        completion = completion_ids(loaded, row.completion, prompt=prompt)
        found.append({"input_ids": [*prompt, *completion], "labels": [*[IGNORED] * len(prompt), *completion]})
    room = getattr(loaded.model.config.get_text_config(), "max_position_embeddings", None)
    long = [len(one["input_ids"]) for one in found if room and len(one["input_ids"]) > room]
    if long:
        raise InputError(
            f"{len(long)} of {len(rows)} rows have more tokens than {loaded.name} reads, {room} (the longest "
            f"{max(long)}): leave them out or shorten them"
        )
    return found


def train_sft(
    loaded: LoadedModel,
    rows: Sequence[SftRow],
    *,
    settings: SftSettings,
    run: RunFolder,
    seed: int,
) -> LoadedModel:
    """Train the adapter of ``loaded`` in place, log each step in ``run``, and save the adapter there.

    Parameters
    ----------
    loaded:
        A model with a trainable adapter (:func:`train.models.add_lora`).
    rows:
        What to learn. An update reads ``settings.batch`` x ``settings.accumulation`` of them, whatever the number of
        processes; each epoch draws a new order that ``seed`` fixes.
    run:
        A run that was started; it is not finished here.

    Returns
    -------
    The same model, named by the digest of the adapter.

    Raises
    ------
    ArgumentError
        There are no rows, the model has no trainable adapter, or the batch cannot be shared among the processes.
    InputError
        Rows are too long.
    KeyboardInterrupt
        Ctrl-C was pressed; the step at hand was finished and saved first.
    """
    try:
        from datasets import Dataset
        from transformers import PrinterCallback

        from train.models import folder_digest, has_adapter, quiet
        from train.sft_callbacks import CurveLog, StopOnRequest
        from train.sft_trainer import LeanSFTTrainer
    except ImportError as error:
        raise MissingExtraError("audit train: SFT", extra="train") from error
    if not rows:
        raise ArgumentError("SFT needs one row at least: raise task.train_rows")
    if not has_adapter(loaded):
        raise ArgumentError("SFT trains an adapter: give the model one with add_lora or load_adapter")
    encoded = encode_rows(loaded, rows)
    config = sft_config(
        settings, dtype=loaded.settings.dtype, seed=seed, out=run.checkpoints, device=loaded.device.type
    )
    stop = StopOnRequest()
    with quiet(), interrupts(stop.ask):
        trainer = LeanSFTTrainer(
            model=loaded.model,
            args=config,
            train_dataset=Dataset.from_list(encoded),
            processing_class=loaded.tokenizer,
            callbacks=[stop, CurveLog(lambda step, figures: run.log(step=step, **figures))],
        )
        trainer.remove_callback(PrinterCallback)
        checkpoint = last_checkpoint(run.checkpoints)
        run.resume_at(checkpoint_step(checkpoint))
        train_on(trainer, checkpoint)
        loaded.model.eval()
        if stop.asked and trainer.state.global_step < trainer.state.max_steps:
            raise KeyboardInterrupt
        if run.main:
            save_adapter(loaded.model, run.adapter)
    trainer.accelerator.wait_for_everyone()
    base = loaded.digest.partition("+")[0]
    return dataclasses.replace(loaded, digest=f"{base}+{folder_digest(run.adapter)}")


def sft_config(settings: SftSettings, *, dtype: str, seed: int, out: Path, device: str) -> Any:
    """TRL's settings for a run; needs no model and no GPU, so that a dry run can check them.

    Raises
    ------
    ArgumentError
        The batch cannot be shared among the processes, or TRL refuses a setting.
    """
    from trl import SFTConfig

    from train.models import quiet

    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if settings.batch % processes:
        raise ArgumentError(
            f"sft.batch = {settings.batch} cannot be shared among {processes} processes: make it a multiple"
        )
    cpu = device == "cpu"
    try:
        with quiet():
            return SFTConfig(
                output_dir=str(out),
                num_train_epochs=settings.epochs,
                max_steps=settings.max_steps or -1,
                per_device_train_batch_size=settings.batch // processes,
                gradient_accumulation_steps=settings.accumulation,
                learning_rate=settings.learning_rate,
                lr_scheduler_type=settings.schedule,
                warmup_steps=settings.warmup,
                max_length=None,
                packing=False,
                loss_type="nll",
                use_cpu=cpu,
                bf16=not cpu and dtype == "bfloat16",
                activation_checkpointing=not cpu,
                dataloader_pin_memory=not cpu,
                logging_steps=1,
                save_strategy="steps",
                save_steps=settings.save_every,
                save_total_limit=2,
                seed=seed,
                data_seed=seed,
                report_to="none",
                disable_tqdm=True,
            )
    except (ValueError, TypeError) as error:
        raise ArgumentError(f"[sft]: TRL refuses these settings ({str(error).splitlines()[0]})") from error
