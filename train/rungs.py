"""The rungs of the ladder: each is one run with its folder, its training, and its evaluation on one clean key.

==============  ===============  =============================================================================
rung            stands on        what it learns
==============  ===============  =============================================================================
sft-noisy                        direct answers, the labels as they came
sft-clean                        direct answers, the clean labels
grpo            sft-clean        direct answers by reward
traces                           nothing: asks the teacher, keeps what reaches the clean label by itself
sft-matched     traces           direct answers, clean labels, on the rows that have a trace and no others
cot-sft         traces           to think as the traces do, on the same rows, as long
grpo-think      cot-sft          by reward, with room to think; once for every cap
==============  ===============  =============================================================================

sft-matched is the control of cot-sft: same rows, same labels, same epochs, without the thoughts.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audit.errors import InputError
from train.config import Config
from train.ladder_progress import Tell, ToldRun
from train.pressure import Ledger
from train.run_folder import RunFolder
from train.task import Example, load_examples
from train.traces_rung import ask_for_traces, rows_of_traces

if TYPE_CHECKING:
    from train.models import LoadedModel
    from train.sft import SftRow

__all__ = ["PARENTS", "Job", "jobs_of", "run_rung", "settings_of"]

#: The rung that each one stands on.
PARENTS = {"grpo": "sft-clean", "sft-matched": "traces", "cot-sft": "traces", "grpo-think": "cot-sft"}
#: The rungs that ask for a thought.
THINKING = ("cot-sft", "grpo-think")
#: Settings of the teacher that change nothing in a reply.
_SPEED = ("concurrency", "timeout", "retries", "instruction_file")


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run of a rung: its seed, and the cap of thoughts where it is not ``grpo.think_cap``."""

    rung: str
    seed: int
    cap: int | None = None

    @property
    def name(self) -> str:
        """The name of its folder. The traces are asked for once and serve all seeds."""
        if self.rung == "traces":
            return self.rung
        return f"{self.rung}{f'-{self.cap}' if self.cap else ''}-s{self.seed}"

    @property
    def parent(self) -> Job | None:
        """The run it goes on from, or needs the rows of."""
        above = PARENTS.get(self.rung)
        return None if above is None else Job(rung=above, seed=self.seed)

    @property
    def thinks(self) -> bool:
        """Whether it asks for a thought."""
        return self.rung in THINKING

    @property
    def kind(self) -> str:
        """Runs of one kind take alike long a step."""
        return "sft" if self.rung.startswith("sft") else f"{self.rung}{f'-{self.cap}' if self.cap else ''}"


def jobs_of(config: Config, *, rungs: Sequence[str] | None = None) -> tuple[Job, ...]:
    """The runs of a ladder in their order, seed by seed; the traces once."""
    found: dict[str, Job] = {}
    for seed in config.run.seeds:
        for rung in config.run.rungs if rungs is None else rungs:
            caps = (None, *config.grpo.more_caps) if rung == "grpo-think" else (None,)
            for cap in caps:
                job = Job(rung=rung, seed=config.task.seed if rung == "traces" else seed, cap=cap)
                found.setdefault(job.name, job)
    return tuple(found.values())


def settings_of(config: Config, job: Job) -> dict[str, Any]:
    """What a run hangs on, as its folder keeps it: a change of anything else leaves it valid."""
    whole = config.to_dict()
    kept = {name: whole[name] for name in ("folder", "task", "model", "run")}
    if job.rung == "traces":
        teacher = {name: value for name, value in whole["teacher"].items() if name not in _SPEED}
        kept["teacher"] = {**teacher, "cap": config.teacher.cap or config.grpo.think_cap}
    elif job.rung.startswith("grpo"):
        kept["grpo"] = {**whole["grpo"], "think_cap": job.cap or config.grpo.think_cap}
        unused = {"cap"} if job.thinks else {"think_cap"}
        for name in {"more_caps", *unused}:
            del kept["grpo"][name]
    else:
        kept["sft"] = whole["sft"]
        if job.thinks:
            kept["evaluation"] = {"think_cap": config.grpo.think_cap}
    return kept


def run_rung(job: Job, config: Config, *, reopen: str | None = None, tell: Tell | None = None) -> RunFolder:
    """Run one rung to its end, or leave it as it is where it has finished; a run that was cut short goes on.

    Parameters
    ----------
    job:
        Rung, seed and cap. The run it stands on must have finished.
    config:
        The ladder's settings.
    reopen:
        The reason for opening the test split again for a model that was scored on it before.
    tell:
        Told where the run stands.

    Returns
    -------
    The folder of the finished run.

    Raises
    ------
    ArgumentError
        It was started with other settings, or the holdout may not be opened.
    InputError
        The run it stands on has not finished, or no trace survived.
    TracesMissingError
        The teacher failed to reply to some draws.
    EndpointError
        See `train.teacher.ask_teacher`.
    """
    told = tell or (lambda line, stays: None)
    out = Path(config.run.out)
    asked: dict[str, Any] = {
        "rung": job.rung,
        "seed": job.seed,
        "config": settings_of(config, job),
        "parent": None if job.parent is None else job.parent.name,
    }
    run = ToldRun(str(out / job.name), total=0, tell=told)
    if run.finished:
        run.check(**asked)
        return run
    parent = None if job.parent is None else RunFolder(out / job.parent.name)
    if parent is not None and not parent.finished:
        raise InputError(f"{job.name} stands on {parent.path}, which has not finished: run that rung first")
    examples = load_examples(config.task, seed=config.task.seed)
    began = time.monotonic()
    run.start(name=job.name, model=config.model.name, **asked)
    with run:
        if job.rung == "traces":
            values = (
                ask_for_traces(config, run, examples["train"], seed=job.seed, tell=told) if run.main else {}
            )
        else:
            values = _train_and_evaluate(job, config, run, parent, examples, told, reopen)
        if not run.main:
            _wait_for(run)
        steps, seconds = run.pace
        if steps:
            values["seconds_per_step"] = seconds / steps
        run.finish(**values, seconds=round(time.monotonic() - began, 1))
    return run


# --- training and evaluation ---------------------------------------------------------------------------------


def _train_and_evaluate(
    job: Job,
    config: Config,
    run: ToldRun,
    parent: RunFolder | None,
    examples: Mapping[str, Sequence[Example]],
    tell: Tell,
    reopen: str | None,
) -> dict[str, Any]:
    from train.models import load_adapter, load_model

    _set_threads(config.run.threads)
    loaded = load_model(config.model, seed=job.seed)
    if not (run.adapter / "adapter_config.json").is_file():
        loaded = _train(job, config, run, parent, examples["train"], loaded)
    if not run.main:
        return {}
    trained = len(examples["train"])
    if parent is not None and parent.info.get("rung") == "traces":
        trained = len(rows_of_traces(parent.path, examples["train"], tags=config.model.think))
    loaded = load_adapter(loaded, run.adapter, trainable=False)
    for split in ("validation", "test"):
        if split not in run.read_metrics():
            tell(f"{job.name} answers {len(examples[split]):,} rows of {split}", False)
            _evaluate(job, config, run, loaded, split, examples[split], reopen)
    return {"digest": loaded.digest, "rows": trained}


def _train(
    job: Job,
    config: Config,
    run: ToldRun,
    parent: RunFolder | None,
    train: Sequence[Example],
    loaded: LoadedModel,
) -> LoadedModel:
    from train.ladder_plan import steps_of_sft
    from train.models import add_lora, load_adapter

    if job.rung.startswith("grpo") and parent is not None:
        from train.grpo import train_grpo

        loaded = load_adapter(loaded, parent.adapter, trainable=True)
        grpo = dataclasses.replace(config.grpo, think_cap=job.cap or config.grpo.think_cap)
        run.total = grpo.steps
        train_grpo(loaded, train, config.task, settings=grpo, run=run, seed=job.seed, think=job.thinks)
        return loaded
    from train.sft import train_sft

    rows = _rows(job, config, parent, train)
    run.total = steps_of_sft(config, len(rows))
    loaded = add_lora(loaded, config.model, seed=job.seed)
    return train_sft(loaded, rows, settings=config.sft, run=run, seed=job.seed)


def _rows(job: Job, config: Config, parent: RunFolder | None, train: Sequence[Example]) -> list[SftRow]:
    """What a rung of supervised fine-tuning learns: a prompt and a completion a row."""
    from train.sft import SftRow

    task = config.task
    if parent is None:
        return [
            SftRow(
                messages=task.messages(one.values),
                completion=one.noisy if job.rung == "sft-noisy" else one.clean,
            )
            for one in train
        ]
    found = rows_of_traces(parent.path, train, tags=config.model.think)
    return [
        SftRow(
            messages=task.messages(one.values, think=job.thinks), completion=text if job.thinks else one.clean
        )
        for one, text in found
    ]


def _evaluate(
    job: Job,
    config: Config,
    run: ToldRun,
    loaded: LoadedModel,
    split: str,
    examples: Sequence[Example],
    reopen: str | None,
) -> None:
    """Score one split, write scores and metrics, and have the ledger know of it, once.

    Two runs may end with the same weights: GRPO whose groups were all uniform leaves those it began with, and
    sft-matched is sft-clean where every row has a trace. The holdout is opened again then; the ledger keeps why.
    """
    from train.evaluate import evaluate

    ledger = Ledger(Path(config.run.out) / "ledger.jsonl")
    items = [one.item for one in examples]
    entries = ledger.read().entries if ledger.path.exists() else ()
    scored = [e for e in entries if e.kind == "evaluation" and e.model == loaded.digest and e.split == split]
    known = run.scores_file(split).is_file() and any(e.run == job.name for e in scored)  # cut between the two
    openings = [e for e in entries if e.kind == "opening" and e.model == loaded.digest]
    if reopen is None and openings and all(e.run != job.name for e in openings):
        reopen = f"the weights are those of {openings[-1].run}"
    if split == "test" and not known:
        ledger.open_holdout(
            run=job.name, family=job.rung, model=loaded.digest, split=split, items=items, reason=reopen
        )
    cap = job.cap or config.grpo.think_cap
    frame, metrics = evaluate(
        loaded, examples, config.task, think=job.thinks, cap=cap, batch=config.run.eval_batch
    )
    run.scores(split, frame)
    if not known:
        ledger.record(
            run=job.name,
            family=job.rung,
            model=loaded.digest,
            split=split,
            items=items,
            right=(frame["prediction"] == frame["label"]).tolist(),
            metrics={
                name: value
                for name, value in metrics.items()
                if value is None or isinstance(value, int | float)
            },
            purpose="holdout" if split == "test" else "validation",
            key="noisy" if config.task.clean is None else "clean",
            reason=reopen,
        )
    run.metrics(split, metrics)


# --- processes -----------------------------------------------------------------------------------------------


def _set_threads(threads: int) -> None:
    if threads:
        import torch

        torch.set_num_threads(threads)


def _wait_for(run: RunFolder) -> None:
    """Wait until the first process has finished the run; its end, good or bad, ends the others."""
    launcher = os.getppid()
    while not run.finished:
        time.sleep(0.5)
        if os.getppid() != launcher:
            raise InputError(f"{run.path}: the launcher has gone: start the same command again")
