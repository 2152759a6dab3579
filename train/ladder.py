"""All rungs of a ladder, one after another: finished ones are left alone, one that was cut short goes on."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audit.errors import ArgumentError, InputError
from audit.results import Result
from train.config import RUNGS, Config
from train.ladder_plan import RungPlan, rung_plans
from train.ladder_progress import Pace, Tell, clock
from train.run_folder import RunFolder
from train.rungs import Job, jobs_of, run_rung, settings_of
from train.task import load_examples
from train.traces_rung import REPORT, TracesMissingError
from train.words import metric_name

if TYPE_CHECKING:
    from train.compare_results import RunComparison

__all__ = ["LadderResult", "RunState", "run_ladder", "with_parents"]


@dataclass(frozen=True, kw_only=True)
class RunState(Result):
    """One run: ``status`` is "finished", or "not run" with a ``reason``; ``metrics`` by split."""

    name: str
    rung: str
    seed: int
    status: str
    reason: str = ""
    metrics: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class LadderResult(Result):
    """The runs of a ladder in their order, the folder they lie in, and what their differences are worth.

    ``traces`` is the report on the traces (`train.traces_report`), ``comparison`` that of the finished runs on the
    test split (`train.compare`); None where there is none.
    """

    out: str
    runs: tuple[RunState, ...]
    traces: Mapping[str, Any] | None = None
    comparison: RunComparison | None = None
    traces_text: str = field(default="", metadata={"json": False})

    @property
    def exit_code(self) -> int:
        """0, or 3 where runs are missing because the teacher did not reply to everything."""
        return 3 if any(run.status != "finished" for run in self.runs) else 0

    def summary(self) -> str:
        """The report on the traces, the runs as a table, and their comparison."""
        names = ("accuracy", "balanced_accuracy", "auc")
        head = ("run", "validation", *(f"test {metric_name(name)}" for name in names))
        table = [head]
        for run in self.runs:
            validation, test = run.metrics.get("validation", {}), run.metrics.get("test", {})
            if run.status != "finished":
                table.append((run.name, run.reason, "", "", ""))
            elif run.rung != "traces":
                table.append(
                    (run.name, _number(validation.get("accuracy")), *(_number(test.get(n)) for n in names))
                )
        widths = [max(len(row[k]) for row in table) for k in range(len(head))]
        lines = [
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in table
        ]
        lines = lines if len(table) > 1 else []
        text = [self.traces_text.rstrip(), ""] if self.traces_text else []
        if self.comparison is not None:
            from train.compare_render import text as compared

            lines += ["", compared(self.comparison)]
        return "\n".join([*text, *lines, "", f"runs are in {self.out}"])


def run_ladder(config: Config, *, reopen: str | None = None, tell: Tell | None = None) -> LadderResult:
    """Run what is not finished of a ladder, seed by seed.

    Parameters
    ----------
    config:
        The settings; ``run.rungs`` and ``run.seeds`` say what runs.
    reopen:
        The reason for opening the test split again for models that were scored on it before.
    tell:
        Told where it stands.

    Raises
    ------
    ArgumentError
        A rung stands on one that is neither in ``run.rungs`` nor finished, or a run was started with other settings.
    AuditError
        See `train.rungs.run_rung`.
    """
    told = tell or (lambda line, stays: None)
    jobs = jobs_of(config)
    _check(config, jobs)
    pace = _pace(config, jobs)
    states: list[RunState] = []
    waiting: dict[str, str] = {}
    for number, job in enumerate(jobs, start=1):
        above = job.parent
        if above is not None and above.name in waiting:
            waiting[job.name] = f"waits for {above.name}"
            states.append(_state(config, job, waiting[job.name]))
            continue
        before = RunFolder(Path(config.run.out) / job.name).finished
        if not before:
            told(" · ".join(filter(None, [f"{number}/{len(jobs)} {job.name}", pace.to_go()])), True)
        try:
            run = run_rung(job, config, reopen=reopen, tell=told)
        except TracesMissingError as error:
            if (
                int(os.environ.get("WORLD_SIZE", "1")) > 1
            ):  # the other processes wait for the traces: end them
                raise
            waiting[job.name] = str(error)
            told(str(error), True)
        else:
            pace.done(job.name)
            if not before:
                told(_finished(job, run.info, run.read_metrics()), True)
                _learn(pace, config, job, run)
        states.append(_state(config, job, waiting.get(job.name, "")))
    compared = _compare(config, [state for state in states if state.status == "finished"])
    return LadderResult(out=config.run.out, runs=tuple(states), comparison=compared, **_traces(config, jobs))


def with_parents(rung: str, config: Config) -> Config:
    """The settings of a ladder of one rung and those that it stands on.

    Raises
    ------
    ArgumentError
        There is no such rung.
    """
    if rung not in RUNGS:
        raise ArgumentError(f"there is no rung {rung!r}: choose among {', '.join(RUNGS)}")
    wanted: list[str] = []
    above: Job | None = Job(rung=rung, seed=0)
    while above is not None:
        wanted.insert(0, above.rung)
        above = above.parent
    return dataclasses.replace(config, run=dataclasses.replace(config.run, rungs=tuple(wanted)))


def _check(config: Config, jobs: Sequence[Job]) -> None:
    """Refuse what cannot end well before anything is run: missing parents, finished runs of other settings."""
    out, names = Path(config.run.out), {job.name for job in jobs}
    for job in jobs:
        above = job.parent
        if above is not None and above.name not in names and not RunFolder(out / above.name).finished:
            raise ArgumentError(
                f"{job.name} stands on {above.name}, which is not finished: add {above.rung!r} to run.rungs"
            )
        run = RunFolder(out / job.name)
        if run.finished:
            parent = None if above is None else above.name
            run.check(rung=job.rung, seed=job.seed, parent=parent, config=settings_of(config, job))


def _pace(config: Config, jobs: Sequence[Job]) -> Pace:
    """What is still to do, and how long the runs that are done took a step."""
    train = load_examples(config.task, seed=config.task.seed)["train"]
    plans: dict[str, RungPlan] = {
        plan.rung: plan
        for plan in rung_plans(config, rows=len(train), items=len({one.item for one in train}))
    }
    pace = Pace({})
    for job in jobs:
        run = RunFolder(Path(config.run.out) / job.name)
        if run.finished:
            _learn(pace, config, job, run)
        else:
            pace.left[job.name] = (job.kind, plans[job.rung].steps or plans[job.rung].requests)
    return pace


def _learn(pace: Pace, config: Config, job: Job, run: RunFolder) -> None:
    """How long a finished run took a step, its evaluation shared out among the steps."""
    each = run.info.get("seconds_per_step")
    if isinstance(each, float):
        pace.seen(job.kind, steps=1, seconds=each)


def _finished(job: Job, info: Mapping[str, Any], metrics: Mapping[str, Any]) -> str:
    parts = [f"{job.name} finished in {clock(float(info.get('seconds') or 0))}"]
    if job.rung == "traces":
        parts.append(f"{info.get('traced', 0):,} of {info.get('items', 0):,} items have a trace")
    splits = [split for split in ("validation", "test") if split in metrics]
    parts += [f"{split} accuracy {_number(metrics[split].get('accuracy'))}" for split in splits]
    return " · ".join(parts)


def _state(config: Config, job: Job, reason: str) -> RunState:
    run = RunFolder(Path(config.run.out) / job.name)
    return RunState(
        name=job.name,
        rung=job.rung,
        seed=job.seed,
        status="not run" if reason else "finished",
        reason=reason,
        metrics=run.read_metrics(),
    )


def _compare(config: Config, states: Sequence[RunState]) -> RunComparison | None:
    """The finished runs of models against the first of them; None for fewer than two."""
    from train.compare import compare_runs

    folders = [Path(config.run.out) / state.name for state in states if state.rung != "traces"]
    if len(folders) < 2:
        return None
    try:
        return compare_runs(folders)
    except InputError:  # such as a test split of one class: the table stands alone
        return None


def _traces(config: Config, jobs: Sequence[Job]) -> dict[str, Any]:
    """The report on the traces, as values and as text, where there is one."""
    path = Path(config.run.out) / "traces"
    if not any(job.rung == "traces" for job in jobs) or not (path / REPORT).is_file():
        return {}
    text = (path / "report.txt").read_text("utf-8")
    return {"traces": json.loads((path / REPORT).read_text("utf-8")), "traces_text": text}


def _number(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, int | float) else "–"
