"""Loads a model, gives it an adapter, and says by digest which one it is.

torch, transformers and peft are imported when a model is loaded, not before.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audit.errors import ArgumentError, InputError, MissingExtraError
from train.config import ModelSettings
from train.models_prompts import (
    choose_pad,
    completion_ids,
    end_of_turn,
    prompt_ids,
    prompt_text,
    prompts_of,
    scorer_for,
    tags_of,
)
from train.models_smollm2 import smollm2_folder
from train.scorer import Tags

__all__ = [
    "LoadedModel",
    "add_lora",
    "completion_ids",
    "folder_digest",
    "has_adapter",
    "load_adapter",
    "load_model",
    "prompt_ids",
    "prompt_text",
    "prompts_of",
    "quiet",
    "scorer_for",
    "smollm2_folder",
    "tags_of",
]

#: Warnings of these packages about each other, which nobody here can act on: the start of the text, and the kind.
_NOISE: tuple[tuple[str, type[Warning]], ...] = (
    ("`is_gradient_checkpointing` is deprecated", FutureWarning),  # peft 0.21 asks transformers 5.24
    (
        "Could not find a config file in .* - will assume that the vocabulary",
        UserWarning,
    ),  # offline, each checkpoint
)
_PROBE = ({"role": "user", "content": "a"},)


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """A model with its tokenizer and what the ladder needs to know of both.

    ``tags`` are those of a thought in a thinking prompt; ``end`` is the id that ends an answer, ``ends`` all ids that
    end or pad one, ``stops`` those that stop generation. ``digest`` names the weights, adapter included (16 hex
    digits); it is that of the files they came from, and does not move while the model is trained.
    """

    model: Any
    tokenizer: Any
    tags: Tags
    name: str
    digest: str
    end: int
    ends: frozenset[int]
    stops: tuple[int, ...]
    settings: ModelSettings

    @property
    def device(self) -> Any:
        """The device of the first weight."""
        return next(self.model.parameters()).device


def load_model(settings: ModelSettings, *, seed: int = 0) -> LoadedModel:
    """Load the base model that ``settings.name`` names: a folder, a hub name, or ``smollm2``.

    ``seed`` fixes torch's, NumPy's and Python's random numbers, so that what is built next is the same each time.

    Raises
    ------
    InputError
        There is no such model on this disk and none can be fetched, or its files lack weights.
    ArgumentError
        The device is not there, or the tokenizer has no chat template.
    MissingExtraError
        The extra ``train`` is not installed.
    """
    try:
        import peft  # noqa: F401
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, set_seed
    except ImportError as error:
        raise MissingExtraError("audit train", extra="train") from error
    source = str(smollm2_folder()) if settings.name == "smollm2" else settings.name
    device = _device(settings.device)
    set_seed(seed)
    with quiet(), _told(settings.name, source):
        tokenizer = AutoTokenizer.from_pretrained(source)
        model, report = AutoModelForCausalLM.from_pretrained(
            source, dtype=getattr(torch, settings.dtype), output_loading_info=True
        )
    if report["missing_keys"]:
        raise InputError(
            f"{settings.name} lacks weights ({sorted(report['missing_keys'])[0]}, ...): fetch or save it again"
        )
    end = end_of_turn(tokenizer, settings)
    pad = choose_pad(tokenizer, end)
    tokenizer.pad_token = tokenizer.convert_ids_to_tokens(pad)
    tokenizer.padding_side = "left"
    given = model.generation_config.eos_token_id
    stops = {end, tokenizer.eos_token_id, *(given if isinstance(given, list) else [given])} - {None}
    # No temperature, top_k and so on of its maker: every draw here names its own.
    model.generation_config = GenerationConfig(
        eos_token_id=sorted(stops), pad_token_id=pad, bos_token_id=tokenizer.bos_token_id
    )
    model.config.get_text_config().pad_token_id = pad
    tags = tags_of(tokenizer, settings, prompt_ids(tokenizer, _PROBE, settings, think=True))
    return LoadedModel(
        model=model.to(device).eval(),
        tokenizer=tokenizer,
        tags=tags,
        name=settings.name,
        digest=_base_digest(source, model),
        end=end,
        ends=frozenset({*stops, pad}),
        stops=tuple(sorted(stops)),
        settings=settings,
    )


def add_lora(loaded: LoadedModel, settings: ModelSettings, *, seed: int = 0) -> LoadedModel:
    """The model with a fresh LoRA adapter, whose weights ``seed`` fixes; an adapter it has is taken off first."""
    from peft import LoraConfig, get_peft_model
    from transformers import set_seed

    names = [name.strip() for name in settings.lora_targets.split(",") if name.strip()]
    config = LoraConfig(
        r=settings.lora_r,
        lora_alpha=settings.lora_alpha,
        lora_dropout=settings.lora_dropout,
        target_modules="all-linear" if names == ["all-linear"] else names,
        task_type="CAUSAL_LM",
    )
    set_seed(seed)
    try:
        with quiet():
            model = get_peft_model(_base(loaded.model), config)
    except ValueError as error:
        raise ArgumentError(
            f"model.lora_targets {settings.lora_targets!r} fits no layer of {loaded.name}: try 'all-linear'"
        ) from error
    return dataclasses.replace(loaded, model=model)


def has_adapter(loaded: LoadedModel) -> bool:
    """Whether the model has an adapter that training would change."""
    return hasattr(loaded.model, "peft_config") and any(w.requires_grad for w in loaded.model.parameters())


def load_adapter(loaded: LoadedModel, folder: str | Path, *, trainable: bool = True) -> LoadedModel:
    """The model with the adapter that a run left in ``folder``; another one is taken off first.

    Raises
    ------
    InputError
        There is no adapter, or it is one of another model.
    """
    from peft import PeftModel

    if not (Path(folder) / "adapter_config.json").is_file():
        raise InputError(f"{folder} holds no adapter: give the folder adapter/ of a finished run")
    try:
        with quiet():
            model = PeftModel.from_pretrained(
                _base(loaded.model), str(folder), is_trainable=trainable, local_files_only=True
            )
    except (RuntimeError, ValueError, KeyError) as error:
        raise InputError(
            f"{folder}: its adapter does not fit {loaded.name}: was it trained on it?"
        ) from error
    base = loaded.digest.partition("+")[0]
    return dataclasses.replace(loaded, model=model.eval(), digest=f"{base}+{folder_digest(folder)}")


def folder_digest(folder: str | Path) -> str:
    """The digest of the weights in a folder, 16 hex digits; the same weights in a file of another name differ."""
    found = hashlib.sha256()
    files = sorted(path for path in Path(folder).iterdir() if path.suffix in {".safetensors", ".bin"})
    for path in files:
        found.update(path.name.encode())
        with path.open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()[:16]


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars and no chatter of transformers, datasets and peft while the block runs; errors stay.

    Also without the warnings of :data:`_NOISE`, which these packages give about each other.
    """
    import datasets
    from huggingface_hub.utils.tqdm import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )
    from transformers.utils import logging

    level, shown, hub = (
        logging.get_verbosity(),
        logging.is_progress_bar_enabled(),
        are_progress_bars_disabled(),
    )
    mapped = datasets.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    datasets.disable_progress_bars()
    disable_progress_bars()
    try:
        with warnings.catch_warnings():
            for message, category in _NOISE:
                warnings.filterwarnings("ignore", message=message, category=category)
            yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()
        if mapped:
            datasets.enable_progress_bars()
        if not hub:
            enable_progress_bars()


def _base(model: Any) -> Any:
    """The model without its adapter."""
    from peft import PeftModel

    return model.unload() if isinstance(model, PeftModel) else model


def _base_digest(source: str, model: Any) -> str:
    if Path(source).is_dir():
        return folder_digest(source)
    commit = getattr(model.config, "_commit_hash", None) or source
    return hashlib.sha256(f"{source}@{commit}".encode()).hexdigest()[:16]


def _device(wanted: str) -> str:
    """The device to load on; of several GPUs the one of this process."""
    import torch

    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    if wanted == "cuda" and torch.cuda.is_available():
        wanted = f"cuda:{int(os.environ.get('LOCAL_RANK', '0'))}"
    try:
        torch.empty(0, device=wanted)
    except (RuntimeError, AssertionError) as error:
        raise ArgumentError(
            f"model.device {wanted!r} cannot be used here: set it to 'auto' or 'cpu'"
        ) from error
    return wanted


@contextmanager
def _told(name: str, source: str) -> Iterator[None]:
    """Errors of loading as one line with the cause and the fix."""
    offline = os.environ.get("HF_HUB_OFFLINE", "").casefold() in {"1", "true", "yes", "on"}
    looks_local = source.startswith((".", "~", "/")) or "\\" in source or source.count("/") > 1
    if not Path(source).is_dir() and looks_local:
        raise InputError(f"{name}: no such folder: give the folder of a saved model, or its name on the hub")
    try:
        yield
    except Exception as error:  # the hub's client, tokenizers and safetensors raise errors of their own
        if Path(source).is_dir():
            raise InputError(
                f"{name}: no model can be loaded from this folder ({_first_line(error)})"
            ) from error
        why = "HF_HUB_OFFLINE is set" if offline else f"the hub did not give it: {_first_line(error)}"
        fix = "unset HF_HUB_OFFLINE once to fetch it" if offline else "check the name and the network"
        raise InputError(f"{name} is not on this disk and {why}: {fix}, or give a local folder") from error


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
