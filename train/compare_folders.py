"""Reads run folders for a comparison: who they are, what they cost, and their scores of one split.

A folder that is no run, has not finished or lacks the split's scores is left out with the reason; nothing is guessed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from audit.errors import AuditError, InputError
from audit.results import Result
from train.run_folder import RunFolder
from train.scores import Scores, read_scores

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Cost", "LeftOut", "Run", "find_runs", "holds_traces", "in_order", "read_run"]

#: Parts of a config that say where and how fast a run ran, not what it learnt.
_FREE = ("folder", "run")


@dataclass(frozen=True, kw_only=True)
class Cost(Result):
    """What a run took: optimiser steps, seconds, tokens seen in training, and completions drawn. None: not logged."""

    steps: int | None
    seconds: float | None
    tokens: int | None
    rollouts: int | None


@dataclass(frozen=True, kw_only=True)
class LeftOut(Result):
    """A folder that is not compared, and why."""

    path: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Run:
    """A finished run: ``name``, ``rung`` and ``seed``, its scores of the split, and what it cost.

    ``noisy`` is its accuracy against the labels as they came with their number, where the run recorded it. ``kind``
    is the same for runs that differ in nothing but the seed.
    """

    path: Path
    name: str
    rung: str
    seed: int | None
    parent: str | None
    rows: int | None
    key: str
    scores: Scores
    cost: Cost
    noisy: tuple[float, int] | None
    kind: str
    curve: pd.DataFrame = field(repr=False)


def find_runs(folders: Iterable[str | Path], *, order: Sequence[str] = ()) -> list[Path]:
    """The run folders among the given ones; a folder without run.json stands for the runs within it.

    These come in the ``order`` of their rungs, then by name.

    Raises
    ------
    InputError
        A folder is not there, or holds no run.
    """
    place = {rung: number for number, rung in enumerate(order)}
    found: list[Path] = []
    for name in folders:
        folder = Path(name)
        if (folder / "run.json").is_file():
            found.append(folder)
            continue
        within = sorted(p.parent for p in folder.glob("*/run.json"))
        if not within:
            raise InputError(
                f"{folder} holds no run: give folders with a run.json, or one that holds such folders"
            )
        found += sorted(within, key=lambda path: place.get(_rung(path), len(place)))
    once: dict[str, Path] = {}
    for path in found:  # a link to a run is that run
        once.setdefault(os.path.realpath(path), path)
    return list(once.values())


def _rung(folder: Path) -> str:
    try:
        return str(RunFolder(folder).info.get("rung"))
    except AuditError:
        return ""


def holds_traces(folder: Path) -> bool:
    """Whether the folder holds a teacher's traces: a step of the ladder without a model to score."""
    return _rung(folder) == "traces"


def read_run(folder: Path, *, split: str, positive: str | None) -> Run | LeftOut:
    """A finished run with its scores, or why it is left out."""
    try:
        return _read(RunFolder(folder), split, positive)
    except AuditError as error:
        return LeftOut(path=str(folder), reason=str(error))


def _read(folder: RunFolder, split: str, positive: str | None) -> Run:
    info = folder.info
    status = info.get("status")
    if status != "finished":
        raise InputError(
            f"the run has not finished (status {status!r}): run it again, and it goes on where it stopped"
        )
    if not folder.scores_file(split).is_file():
        known = sorted(p.stem.removeprefix("scores-") for p in folder.path.glob("scores-*.parquet"))
        raise InputError(
            f"no scores of {split!r}: "
            + (f"choose --split among {', '.join(known)}" if known else "it was not evaluated")
        )
    config = _table(info.get("config"))
    task = _table(config.get("task"))
    positive = positive or _word(task.get("positive")) or None
    path = str(folder.scores_file(split))
    scores = read_scores(path, positive=positive)
    curve = folder.curve()
    seed = info.get("seed")
    kept = {name: value for name, value in config.items() if name not in _FREE}
    rung = str(info.get("rung") or folder.path.name)
    return Run(
        path=folder.path, name=str(info.get("name") or folder.path.name), rung=rung,
        seed=seed if isinstance(seed, int) else None, parent=_word(info.get("parent")), rows=_rows(info, task),
        key="noisy" if task and not task.get("clean") else "clean", scores=scores, cost=_cost(folder, curve),
        noisy=_noisy(folder, split, scores), kind=json.dumps([rung, kept], sort_keys=True, default=str), curve=curve,
    )  # fmt: skip


def _word(value: Any) -> str | None:
    """A name as it was written, a whole number as its digits; None for what is neither."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _rows(info: Mapping[str, Any], task: Mapping[str, Any]) -> int | None:
    """Training rows: as the run recorded them, else as it was asked for them."""
    for value in (*(info.get(name) for name in ("rows", "train_rows", "examples")), task.get("train_rows")):
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _cost(folder: RunFolder, curve: pd.DataFrame) -> Cost:
    steps = _numbers(curve, "step")
    seconds, tokens, rows = (_numbers(curve, name) for name in ("seconds", "tokens", "rows"))
    # trainers log the tokens seen so far: a column that only grows is such a count, any other is summed
    grows = len(tokens) > 1 and bool((np.diff(tokens) > 0).all())
    drawn = int(rows.sum()) if len(rows) and folder.rollouts.is_dir() else None
    return Cost(
        steps=int(steps.max()) if len(steps) else None,
        seconds=float(seconds.sum()) if len(seconds) else None,
        tokens=(int(tokens[-1]) if grows else int(tokens.sum())) if len(tokens) else None,
        rollouts=drawn if drawn is not None else _logged(folder),
    )


def _logged(folder: RunFolder) -> int | None:
    files = sorted(folder.rollouts.glob("*.parquet")) if folder.rollouts.is_dir() else []
    if not files:
        return None
    import duckdb

    with duckdb.connect(config={"autoinstall_known_extensions": False}) as con:
        names = [str(file) for file in files]
        found = con.execute("SELECT count(*) FROM read_parquet(?, union_by_name = true)", [names]).fetchone()
    return None if found is None else int(found[0])


def _numbers(curve: pd.DataFrame, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    if name not in curve.columns:
        return np.empty(0)
    import pandas as pd

    values = pd.to_numeric(curve[name], errors="coerce").to_numpy(np.float64)
    return np.asarray(values[np.isfinite(values)])


def _noisy(folder: RunFolder, split: str, scores: Scores) -> tuple[float, int] | None:
    """Accuracy against the labels as they came: from a column ``noisy`` of the scores, or as the run recorded it."""
    frame = folder.read_scores(split)
    if "noisy" in frame.columns and "prediction" in frame.columns:
        there = frame["noisy"].notna()
        if there.any():
            same = frame["prediction"][there].astype(str) == frame["noisy"][there].astype(str)
            return float(same.mean()), int(there.sum())
    value = _table(folder.read_metrics().get(split)).get("noisy_accuracy")
    return (float(value), len(scores)) if isinstance(value, (int, float)) and 0.0 <= value <= 1.0 else None


def in_order(runs: Sequence[Run], rungs: Sequence[str]) -> list[Run]:
    """Runs by rung in the ladder's order and then by seed; a stable sort, so that others keep their places."""
    place = {rung: number for number, rung in enumerate(rungs)}
    return sorted(runs, key=lambda r: (place.get(r.rung, len(place)), r.seed if r.seed is not None else -1))
