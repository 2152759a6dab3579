"""The settings of a ladder: one TOML file, checked whole before anything is loaded.

Every key has a type, a default and a range; an unknown key is refused with the closest known one. The tables are
``task``, ``model``, ``sft``, ``grpo``, ``teacher`` and ``run``.
"""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from audit.errors import ArgumentError, InputError
from train.task import Task

__all__ = ["RUNGS", "Config", "GrpoSettings", "ModelSettings", "RunSettings", "SftSettings", "TeacherSettings",
           "load_config"]  # fmt: skip

#: The rungs in the order in which they run; each stands on those before it.
RUNGS = ("sft-noisy", "sft-clean", "grpo", "traces", "sft-matched", "cot-sft", "grpo-think")


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """The base model and its adapter. ``name``: a local path, a hub name, or ``smollm2`` for the packaged one."""

    name: str = "Qwen/Qwen3.5-0.8B"
    dtype: Literal["float32", "bfloat16"] = "bfloat16"
    device: str = "auto"
    max_prompt: int = 1024
    template: dict[str, Any] = field(default_factory=dict)
    think: tuple[str, ...] = ("<think>", "</think>")
    lora_r: int = 16
    lora_alpha: int = 32
    lora_dropout: float = 0.0
    lora_targets: str = "all-linear"


@dataclass(frozen=True, kw_only=True)
class SftSettings:
    """Supervised fine-tuning: loss on the completion alone. ``max_steps`` 0 means whole epochs."""

    epochs: float = 2.0
    max_steps: int = 0
    batch: int = 8
    accumulation: int = 1
    learning_rate: float = 2e-4
    warmup: float = 0.05
    schedule: str = "cosine"
    save_every: int = 50


@dataclass(frozen=True, kw_only=True)
class GrpoSettings:
    """GRPO: ``prompts`` groups of ``group`` completions a step, one on-policy update, β = 0, binary rewards.

    ``truncated`` says what becomes of a completion that hit the cap: ``zero`` scores it zero, ``mask`` leaves it
    out of the loss but in the group's mean, ``exclude`` leaves it out of both. ``more_caps`` are further values of
    ``think_cap`` at which the rung grpo-think runs again, each in a folder of its own. ``accumulation`` shares the
    completions of a step among so many passes, for models that cannot take them at once.
    """

    steps: int = 100
    prompts: int = 8
    group: int = 8
    accumulation: int = 1
    cap: int = 8
    think_cap: int = 384
    more_caps: tuple[int, ...] = ()
    temperature: float = 1.0
    learning_rate: float = 1e-5
    scale_rewards: Literal["group", "batch", "none"] = "none"
    loss_type: str = "dapo"
    skip_uniform: bool = True
    truncated: Literal["zero", "mask", "exclude"] = "zero"
    save_every: int = 10
    vllm: bool = False


@dataclass(frozen=True, kw_only=True)
class TeacherSettings:
    """The endpoint that writes the traces; only those that reach the label by themselves are kept.

    ``instruction`` (or the text of ``instruction_file``, such as a rubric) says how to judge; the form of the answer
    is added to it. Of several traces of a row the ``keep`` one stays. ``cap`` is the most tokens a trace may take
    with its tags and its answer; 0 means ``grpo.think_cap``.
    """

    model: str = ""
    base_url: str | None = None
    samples: int = 4
    temperature: float = 0.7
    max_tokens: int = 512
    concurrency: int = 16
    timeout: float = 120.0
    retries: int = 5
    instruction: str = ""
    instruction_file: str | None = None
    keep: Literal["first", "shortest", "random"] = "first"
    cap: int = 0


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Where the runs go, which rungs, which seeds: these fix adapters, order and sampling of each run."""

    out: str = "runs"
    seeds: tuple[int, ...] = (0,)
    rungs: tuple[str, ...] = RUNGS
    threads: int = 0
    eval_batch: int = 16

    def __post_init__(self) -> None:
        unknown = [rung for rung in self.rungs if rung not in RUNGS]
        if unknown:
            raise ArgumentError(f"run.rungs: {unknown[0]!r} is no rung: choose among {', '.join(RUNGS)}")
        if not self.seeds:
            raise ArgumentError("run.seeds needs one seed at least, such as [0]")


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings of a ladder; ``folder`` is where the file lies: its relative paths start there."""

    task: Task
    model: ModelSettings = field(default_factory=ModelSettings)
    sft: SftSettings = field(default_factory=SftSettings)
    grpo: GrpoSettings = field(default_factory=GrpoSettings)
    teacher: TeacherSettings = field(default_factory=TeacherSettings)
    run: RunSettings = field(default_factory=RunSettings)
    folder: str = "."

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain dictionaries, as a run folder keeps them."""
        return dataclasses.asdict(self)


_TABLES: dict[str, type] = {
    "task": Task,
    "model": ModelSettings,
    "sft": SftSettings,
    "grpo": GrpoSettings,
    "teacher": TeacherSettings,
    "run": RunSettings,
}
#: Keys that must be above zero.
_POSITIVE = frozenset(
    "max_prompt lora_r lora_alpha epochs batch accumulation learning_rate save_every steps prompts cap think_cap "
    "temperature samples max_tokens concurrency timeout eval_batch train_rows validation_rows test_rows".split()
)


def load_config(path: str | Path) -> Config:
    """Read and check a ladder's TOML file.

    Raises
    ------
    InputError
        The file cannot be read or is no TOML.
    ArgumentError
        A key is unknown, of the wrong type or out of range; the message names it and the fix.
    """
    file = Path(path)
    try:
        tables = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}: give the path of a ladder's TOML file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file} is no TOML: {error}") from error
    _refuse_unknown(tables, _TABLES, "table")
    if "task" not in tables:
        raise ArgumentError(f"{file} has no [task]: it names the data, the input columns and the labels")
    built = {name: _build(kind, tables[name], name) for name, kind in _TABLES.items() if name in tables}
    task = built["task"]
    placed = {name: str(file.parent / value) for name in ("data", "clean") if (value := getattr(task, name))}
    built["task"] = dataclasses.replace(task, **placed)
    built["teacher"] = _with_instruction(built.get("teacher", TeacherSettings()), file.parent)
    run = built.get("run", RunSettings())
    built["run"] = dataclasses.replace(run, out=str(file.parent / run.out))
    config = Config(**built, folder=str(file.parent))
    if config.grpo.group < 2:
        raise ArgumentError(
            "grpo.group must be 2 or more: an advantage is a difference from the group's mean"
        )
    if len(config.model.think) != 2:
        raise ArgumentError("model.think names two tags, such as ['<think>', '</think>']")
    return config


def _with_instruction(teacher: TeacherSettings, folder: Path) -> TeacherSettings:
    """The teacher's settings with the text of its file in them, so that a run keeps what was asked."""
    if teacher.instruction_file is None:
        return teacher
    path = folder / teacher.instruction_file
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"teacher.instruction_file {path} cannot be read as text: correct it") from error
    both = "\n\n".join(filter(None, [text.strip(), teacher.instruction]))
    return dataclasses.replace(teacher, instruction=both)


def _build(kind: type, values: Any, table: str) -> Any:
    if not isinstance(values, dict):
        raise ArgumentError(f"[{table}] must be a table of keys")
    hints = typing.get_type_hints(kind)
    _refuse_unknown(values, hints, f"key of [{table}]")
    missing = [
        f.name
        for f in dataclasses.fields(kind)
        if f.default is dataclasses.MISSING
        and f.default_factory is dataclasses.MISSING
        and f.name not in values
    ]
    if missing:
        raise ArgumentError(f"[{table}] lacks {missing[0]!r}")
    return kind(**{name: _typed(value, hints[name], f"{table}.{name}") for name, value in values.items()})


def _refuse_unknown(given: dict[str, Any], known: typing.Iterable[str], what: str) -> None:
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, list(known), n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
            raise ArgumentError(f"unknown {what} {name!r}: {hint}")


def _typed(value: Any, hint: Any, name: str) -> Any:
    """``value`` as its key's type wants it."""
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        hint = next(option for option in options if option is not type(None))
        return _typed(value, hint, name)
    if origin is Literal:
        if value not in options:
            raise ArgumentError(f"{name} is {value!r}: choose among {', '.join(map(repr, options))}")
        return value
    if origin is tuple:
        if not isinstance(value, list):
            raise ArgumentError(f"{name} must be a list, such as [...]")
        return tuple(_typed(one, options[0], name) for one in value)
    kind = origin or hint
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise ArgumentError(f"{name} is {value!r}: it must be of type {kind.__name__}")
    if name.rpartition(".")[2] in _POSITIVE and value <= 0:
        raise ArgumentError(f"{name} is {value!r}: it must be above 0")
    return value
