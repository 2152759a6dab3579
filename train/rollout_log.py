"""Every completion of a run on disk, one Parquet file a step: what ``audit train plumbing`` reads.

The files are written whole or not at all, and each is named after its step: a run that was cut short and goes on
writes the steps after its checkpoint again over the old files, so that no step is there twice.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from audit.errors import ArgumentError, MissingExtraError

__all__ = ["COLUMNS", "drop_steps_after", "number_groups", "step_file", "write_step"]

#: The columns and their types: ``reward`` is null where a completion was left out of the baseline.
COLUMNS = {
    "run": "string",
    "step": "int32",
    "group": "int32",
    "sample": "int32",
    "item": "string",
    "label": "string",
    "text": "string",
    "length": "int32",
    "truncated": "bool",
    "closed": "bool",
    "answer": "string",
    "reason": "string",
    "reward": "float64",
    "advantage": "float64",
    "cap": "int32",
}


def step_file(folder: Path, step: int) -> Path:
    """Where the completions of a step lie."""
    return folder / f"step-{step:06d}.parquet"


def number_groups(rows: Sequence[Mapping[str, Any]], *, group: int) -> list[dict[str, Any]]:
    """Rows of whole groups in their order, with ``group`` (0, 1, ... within the step) and ``sample`` (0 ... G-1)."""
    if len(rows) % group:
        raise ArgumentError(
            f"{len(rows)} completions are no whole groups of {group}: gather all processes first"
        )
    return [{**row, "group": k // group, "sample": k % group} for k, row in enumerate(rows)]


def write_step(folder: Path, step: int, rows: Sequence[Mapping[str, Any]], *, run: str, cap: int) -> Path:
    """Write the completions of one step, over the file of that step if there is one.

    Parameters
    ----------
    rows:
        One mapping for each completion, with the columns of :data:`COLUMNS` but ``run``, ``step`` and ``cap``.
    run:
        The name of the run.
    cap:
        The most tokens a completion may have.

    Raises
    ------
    MissingExtraError
        pyarrow is not there; it comes with the ``train`` extra.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtraError("writing rollouts", extra="train") from error
    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in COLUMNS.items()])
    table = pa.Table.from_pylist(
        [{**row, "run": run, "step": step, "cap": cap} for row in rows], schema=schema
    )
    folder.mkdir(parents=True, exist_ok=True)
    file = step_file(folder, step)
    handle, name = tempfile.mkstemp(dir=folder, prefix=f".{file.stem}-", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as out:
            pq.write_table(table, out, compression="zstd")
            out.flush()
            os.fsync(out.fileno())
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return file


def drop_steps_after(folder: Path, step: int) -> int:
    """Delete the files of steps after ``step``, which a resumed run makes anew; returns how many there were."""
    later = [file for file in folder.glob("step-*.parquet") if int(file.stem.removeprefix("step-")) > step]
    for file in later:
        file.unlink()
    return len(later)
