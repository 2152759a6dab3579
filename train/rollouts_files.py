"""Reads the files that a run wrote its rollouts to, as one table with the columns that they have.

Parquet, JSON lines, a JSON array of objects, or separated text (CSV, TSV), each file also compressed as text may be.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from audit.errors import InputError
from audit.reading import open_table

__all__ = ["raw_table"]

#: Folders in which a run keeps its rollouts, looked for below the folder that is named.
_FOLDERS = ("rollouts", "completions")
_SEPARATED = re.compile(r"\.(csv|tsv|txt)(\.\w+)?$", re.IGNORECASE)
#: Columns that stay words where a file does not tell words from numbers.
_WORDS = frozenset("item label text answer prompt completion input output gts pred uid run".split())


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
        if _SEPARATED.search(files[0].name):
            return _separated(path), str(path)
        lines = [row for file in files for row in _rows(file)]
    except (duckdb.Error, ValueError, OSError) as error:
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{path}: neither Parquet nor JSON lines, a JSON array, .csv or .tsv of rollouts ({told}); name the folder "
            "that the run wrote them to"
        ) from error
    return pd.DataFrame(lines), str(path)


def _separated(path: Path) -> pd.DataFrame:
    """A table of text, in which columns of nothing but numbers, or true and false, become such."""
    with open_table(path) as table:
        frame = pd.DataFrame(
            [cells for batch in table.rows() for cells in batch], columns=list(table.columns), dtype=object
        )
    for name in frame.columns.difference(list(_WORDS)):
        filled = frame[name].dropna()
        if set(filled.str.lower()) <= {"true", "false"}:
            frame[name] = frame[name].str.lower().map({"true": 1.0, "false": 0.0})
        elif not filled.str.match(r"[+-]?0\d").any():  # 01 is a name, not a number
            numbers = pd.to_numeric(frame[name], errors="coerce")
            frame[name] = numbers if numbers.notna().sum() == len(filled) else frame[name]
    return frame


def _rows(file: Path) -> list[dict[str, Any]]:
    """The objects of JSON lines, or of one JSON array."""
    text = file.read_text("utf-8-sig")
    lines = text.split("\n")
    if text.lstrip().startswith("["):
        with contextlib.suppress(ValueError, RecursionError):  # no array: the line that is at fault is told
            lines = [json.dumps(row) for row in json.loads(text)]
    return [_parsed(line, file, number) for number, line in enumerate(lines, 1) if line.strip()]


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
            "of the rollouts (Parquet, JSON lines, a JSON array, .csv or .tsv)"
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
