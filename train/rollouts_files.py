"""Reads the files that a run wrote its rollouts to, as one table with the columns that they have."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from audit.errors import InputError

__all__ = ["raw_table"]

#: Folders in which a run keeps its rollouts, looked for below the folder that is named.
_FOLDERS = ("rollouts", "completions")


def raw_table(source: Any) -> tuple[pd.DataFrame, str]:
    """The table as it was written, in the order of files and rows, and a name for it."""
    if isinstance(source, pd.DataFrame):
        return source.reset_index(drop=True), "the data frame"
    if not isinstance(source, str | os.PathLike):
        return _frame(source), "the data frame"
    path = Path(source)
    if not path.exists():
        raise InputError(f"{path}: no such file or folder; name the one that the run wrote its rollouts to")
    files = [path] if path.is_file() else _files(path)
    try:
        if files[0].suffix == ".parquet":
            query = "SELECT * FROM read_parquet(?, union_by_name = true)"
            with duckdb.connect() as con:
                return con.execute(query, [[str(file) for file in files]]).df(), str(path)
        lines = [
            _parsed(line, file, number)
            for file in files
            for number, line in enumerate(file.read_text("utf-8-sig").split("\n"), 1)
            if line.strip()
        ]
    except (duckdb.Error, ValueError, OSError) as error:
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{path}: neither Parquet nor JSON lines of rollouts ({told}); name the folder the run wrote them to"
        ) from error
    return pd.DataFrame(lines), str(path)


def _parsed(line: str, file: Path, number: int) -> dict[str, Any]:
    """A line's JSON object; half of a surrogate pair, which no column of text can hold, becomes U+FFFD."""
    try:
        found: Any = json.loads(line)
        if "\\ud" in line.lower():
            text = json.dumps(found, ensure_ascii=False).encode("utf-16", "surrogatepass")
            found = json.loads(text.decode("utf-16", "replace"))
    except (ValueError, RecursionError) as error:
        told = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError(
            f"{file}, line {number} is no JSON ({told}); delete it if the run was cut short there, or name the folder "
            "of the rollouts"
        ) from error
    if not isinstance(found, dict):
        raise InputError(
            f"{file}, line {number}: every line must be a JSON object; name verl's rollout folder or one of its files"
        )
    return found


def _frame(source: Any) -> pd.DataFrame:
    import narwhals as nw

    try:
        frame: pd.DataFrame = nw.from_native(source, eager_only=True).to_pandas()
    except TypeError as error:
        raise InputError(f"rollouts are a path or a data frame, not a {type(source).__name__}") from error
    return frame.reset_index(drop=True)


def _files(folder: Path) -> list[Path]:
    kept = [folder / name for name in _FOLDERS if (folder / name).is_dir()]
    if not kept and any((place / "run.json").is_file() for place in (folder, *folder.glob("*/"))):
        raise InputError(
            f"{folder}: no rollouts were logged in it (only GRPO runs sample any); name the folder of such a run"
        )
    places = [folder, *(folder / name for name in _FOLDERS)]
    for ending in ("*.parquet", "*.jsonl"):
        for place in reversed(places):
            found = sorted(
                place.glob(ending), key=lambda file: (len(file.stem) if ending == "*.jsonl" else 0, file)
            )
            if found:
                return found
    raise InputError(
        f"{folder}: there are no .parquet or .jsonl files in it; name the folder of the rollouts"
    )
