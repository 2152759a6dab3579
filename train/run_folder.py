"""One run on disk: what was asked, with which versions, what came out, and enough to go on after a kill.

A folder holds ``run.json``, ``metrics.json``, ``curve.csv``, ``scores-<split>.parquet``, ``rollouts/``, ``adapter/``
and, while the run goes on, ``checkpoints/``. Each file is replaced whole; a curve is appended to line by line. One
process at a time writes a folder; of several processes of one training the first one writes, the others only look.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audit.errors import ArgumentError, InputError, MissingExtraError
from audit.writing import write_rows, write_text
from train.run_curve import Curve

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RunFolder", "git_state", "versions"]

_PACKAGES = ("label-audit", "numpy", "pandas", "torch", "transformers", "tokenizers", "trl", "peft", "accelerate",
             "datasets")  # fmt: skip
#: Parts of a config that may change between the start of a run and its end: where it lies and how fast it goes.
_FREE = ("folder", "run")
#: Settings that hold a path: a run may be taken up from another folder.
_PATHS = ("task.data", "task.clean")
_SPLIT = re.compile(r"[\w.-]+")


class RunFolder:
    """The folder of one run.

    Parameters
    ----------
    path:
        The folder; it is made when the run starts.
    main:
        This process writes; by default it does if it is alone or the first of several (``RANK`` is 0).
    """

    def __init__(self, path: str | os.PathLike[str], *, main: bool | None = None) -> None:
        self.path = Path(path)
        self.main = os.environ.get("RANK", "0") in {"", "0"} if main is None else main
        self._lock: Any = None
        self._curve = Curve(self.curve_file)

    @property
    def adapter(self) -> Path:
        """Where the trained adapter lies."""
        return self.path / "adapter"

    @property
    def checkpoints(self) -> Path:
        """Where training leaves what it needs to go on; gone once the run has finished."""
        return self.path / "checkpoints"

    @property
    def rollouts(self) -> Path:
        """Where completions are logged, one Parquet file a step."""
        return self.path / "rollouts"

    @property
    def curve_file(self) -> Path:
        """The figures of each step, a CSV file."""
        return self.path / "curve.csv"

    @property
    def info(self) -> dict[str, Any]:
        """What run.json holds; empty before the run has started."""
        return self._read_json("run.json")

    @property
    def finished(self) -> bool:
        """The run went to its end."""
        return bool(self.info.get("status") == "finished")

    def start(
        self,
        *,
        name: str,
        rung: str,
        seed: int,
        config: Mapping[str, Any],
        parent: str | None = None,
        model: str | None = None,
    ) -> RunFolder:
        """Start the run, or take it up where it was cut short; locks the folder until it is finished or closed.

        Parameters
        ----------
        name, rung, seed, config, parent, model:
            What run.json records; ``config`` as plain dictionaries, ``parent`` the run whose adapter this one
            goes on from.

        Raises
        ------
        ArgumentError
            The run has finished, another process writes it, or it was started with another config.
        InputError
            The folder cannot be written.
        """
        asked = json.loads(
            json.dumps({"name": name, "rung": rung, "seed": seed, "parent": parent, "config": config})
        )
        if not self.main:
            return self
        self._acquire()
        try:
            found = self.info
            if found.get("status") == "finished":
                raise ArgumentError(f"{self.path} has finished: read it, or give the run another folder")
            if found:
                self.check(**asked)
            taken_up = [*found.get("taken_up", []), _now()] if found else []
            self._write_json(
                "run.json",
                {
                    **asked,
                    "model": model,
                    "versions": versions(),
                    "git": git_state(str(config.get("folder", "."))),
                    "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
                    "started": found.get("started", _now()),
                    "taken_up": taken_up,
                    "finished": None,
                    "status": "started",
                },
            )
        except BaseException:
            self.close()
            raise
        return self

    def check(
        self, *, rung: str, seed: int, config: Mapping[str, Any], parent: str | None = None, **_: object
    ) -> None:
        """Raise an ArgumentError where this run, finished or not, was started with other settings than these."""
        found, asked = self.info, {"rung": rung, "seed": seed, "parent": parent}
        for key, value in asked.items():
            if found.get(key) != value:
                raise ArgumentError(
                    f"{self.path} was started with {key} {found.get(key)!r}, not {value!r}: give another folder"
                )
        before, now = _flat(found.get("config", {})), _flat(json.loads(json.dumps(config)))
        for key in sorted({*before, *now}):
            if key.partition(".")[0] not in _FREE and not _same(key, before.get(key), now.get(key)):
                raise ArgumentError(
                    f"{self.path} was started with {key} = {before.get(key)!r}, not {now.get(key)!r}: "
                    "set it back, or give the run another folder"
                )

    def finish(self, **values: Any) -> None:
        """The run went to its end: say so, with further ``values`` for run.json, drop checkpoints, unlock."""
        if self.main:
            self._write_json("run.json", {**self.info, **values, "finished": _now(), "status": "finished"})
            shutil.rmtree(self.checkpoints, ignore_errors=True)
        self.close()

    def close(self) -> None:
        """Unlock the folder; a run that has not finished can be taken up."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def log(self, *, step: int, **values: float | int | str | None) -> None:
        """Add a line to curve.csv; a value that no line before had becomes a new column."""
        if self.main:
            self._curve.add({"step": step, **values})

    def resume_at(self, step: int) -> None:
        """Drop the lines after ``step``, the last one a checkpoint holds: those steps are gone through again."""
        if self.main:
            self._curve.cut(step)

    def curve(self) -> pd.DataFrame:
        """The figures of each step: a column ``step`` and one for each value, NaN where a step has none."""
        return self._curve.read()

    def metrics(self, split: str, values: Mapping[str, Any]) -> None:
        """Record the metrics of a split in metrics.json; a number that does not exist becomes null."""
        self._check_split(split)
        if self.main:
            self._write_json("metrics.json", {**self.read_metrics(), split: dict(values)})

    def read_metrics(self) -> dict[str, Any]:
        """The metrics of each split that has been evaluated."""
        return self._read_json("metrics.json")

    def scores(self, split: str, frame: pd.DataFrame) -> Path:
        """Write the scores of a split (columns item, label, score, prediction and others) to Parquet.

        Raises
        ------
        ArgumentError
            One of the four columns is not there.
        """
        self._check_split(split)
        absent = [name for name in ("item", "label", "score", "prediction") if name not in frame.columns]
        if absent:
            raise ArgumentError(f"scores need a column {absent[0]!r}: item, label, score and prediction")
        path = self.scores_file(split)
        if self.main:
            self.path.mkdir(parents=True, exist_ok=True)
            cells = frame.astype(object).where(frame.notna(), None)
            write_rows(path, [str(name) for name in frame.columns], cells.itertuples(index=False, name=None))
        return path

    def scores_file(self, split: str) -> Path:
        """Where the scores of a split lie."""
        return self.path / f"scores-{split}.parquet"

    def read_scores(self, split: str) -> pd.DataFrame:
        """The scores of a split as they were written.

        Raises
        ------
        InputError
            The split has not been evaluated.
        """
        import duckdb

        path = self.scores_file(split)
        if not path.is_file():
            raise InputError(f"{path} is not there: the run has no scores of {split!r}; let it finish first")
        with duckdb.connect(config={"autoinstall_known_extensions": False}) as con:
            frame: pd.DataFrame = con.read_parquet(str(path)).df()
        return frame

    # --- within

    def _check_split(self, split: str) -> None:
        if not _SPLIT.fullmatch(split):
            raise ArgumentError(f"split {split!r} cannot name a file: use letters, digits, - and _")

    def _acquire(self) -> None:
        try:
            from filelock import FileLock, Timeout
        except ImportError as error:
            raise MissingExtraError("audit train", extra="train") from error
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path / ".lock", timeout=0)
            lock.acquire()
        except Timeout as error:
            raise ArgumentError(
                f"{self.path} is written by another process: wait for it, or give the run another folder"
            ) from error
        except OSError as error:
            raise InputError(
                f"{self.path} cannot be written ({error.strerror}): give another folder"
            ) from error
        self._lock = lock

    def _read_json(self, name: str) -> dict[str, Any]:
        path = self.path / name
        if not path.is_file():
            return {}
        try:
            found: Any = json.loads(path.read_text("utf-8"))
            if not isinstance(found, dict):
                raise ValueError("it holds no JSON object")
            return found
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(
                f"{path} cannot be read ({error}): delete the run's folder, or mend it"
            ) from error

    def _write_json(self, name: str, values: Mapping[str, Any]) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        text = json.dumps(_finite(values), indent=2, ensure_ascii=False, allow_nan=False)
        write_text(self.path / name, text + "\n")


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that a result may hang on; without those not installed."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def git_state(folder: str) -> dict[str, Any]:
    """The commit that ``folder`` is at and whether files differ from it; both None where git says nothing."""

    def ask(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", folder, *arguments], capture_output=True, text=True, timeout=20, check=False
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = ask("rev-parse", "HEAD")
    changes = ask("status", "--porcelain", "--untracked-files=no") if commit else None
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _same(key: str, before: Any, now: Any) -> bool:
    if key in _PATHS and isinstance(before, str) and isinstance(now, str):
        return Path(before).name == Path(now).name
    return bool(before == now)


def _flat(config: Any, above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in config.items():
        name = f"{above}{key}"
        found.update(_flat(value, f"{name}.") if isinstance(value, dict) and value else {name: value})
    return found


def _finite(value: Any) -> Any:
    """``value`` without NaN and infinity, which JSON does not know, and with NumPy's numbers as Python's."""
    if isinstance(value, Mapping):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
