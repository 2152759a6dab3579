"""Reads what a reinforcement-learning run logged of its completions: ours, TRL's or verl's, as one table.

The form is known by its columns:

ours
    Parquet of ``step``, ``group``, ``item``, ``reward`` and, where known, ``sample``, ``label``, ``text``, ``length``,
    ``truncated``, ``closed``, ``answer``, ``advantage``, ``run``, ``cap``, ``prompt`` (docs/train-plumbing.md).
TRL
    ``completions/completions_00001.parquet``: ``step``, ``prompt``, ``completion``, one column for each reward
    function, the columns of ``log_extra``, ``advantage``. It logs neither lengths nor what was cut.
verl
    ``trainer.rollout_data_dir``, one JSONL file a step: ``input``, ``output``, ``gts``, ``score``, ``step`` and what
    the reward function returned besides.

What a form does not hold is left out and named in ``notes``; nothing is made up.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from audit.columns import no_column
from audit.errors import ArgumentError, ColumnError, InputError
from train.rollouts_files import raw_table
from train.rollouts_fill import fill_closure, fill_lengths

__all__ = ["CLOSE_TAG", "COLUMNS", "Rollouts", "read_rollouts"]

#: The tag that ends a thought, unless another is named.
CLOSE_TAG = "</think>"

#: Columns of :attr:`Rollouts.frame`. Numbers are float with NaN, words None, where nothing is known.
COLUMNS = (
    "step", "group", "item", "label", "text", "length", "truncated", "closed", "answer", "reward", "advantage",
    "prompt",
)  # fmt: skip

_TRL_KNOWN = {
    "step",
    "prompt",
    "completion",
    "advantage",
    "item",
    "label",
    "length",
    "truncated",
    "closed",
    "answer",
}
_FORMS = {
    "ours": ("step", "group", "item", "reward"),
    "TRL": ("step", "prompt", "completion", "advantage"),
    "verl": ("step", "input", "output", "score"),
}
#: Larger numbers are infinite, or have sums that are.
_LARGEST = 1e100
#: What numbers a column may hold, and what to do about others.
_RANGES: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "step": (lambda v: v == np.floor(v), "steps are whole numbers"),
    "length": (lambda v: v >= 0, "lengths are 0 or more"),
    "truncated": (lambda v: (v == 0) | (v == 1), "it is true or false, 1 or 0"),
    "closed": (lambda v: (v == 0) | (v == 1), "it is true or false, 1 or 0"),
}


@dataclass(frozen=True, kw_only=True)
class Rollouts:
    """One row per completion, in :data:`COLUMNS`; ``group`` numbers the groups from 0 over all steps.

    ``length_unit`` is ``"tokens"`` (as logged), ``"tokens counted anew"`` (by a tokenizer, without special tokens),
    ``"characters"``, or None without lengths. ``cap`` is the longest a completion may be, in that unit, if known;
    ``columns`` are those of the log.
    """

    frame: pd.DataFrame
    source: str
    form: str
    length_unit: str | None
    cap: float | None
    notes: tuple[str, ...]
    columns: tuple[str, ...]

    def has(self, column: str) -> bool:
        """Whether any row holds a value of this column."""
        return bool(self.frame[column].notna().any())


def read_rollouts(
    source: Any,
    *,
    reward: Sequence[str] = (),
    label: str | None = None,
    item: str | None = None,
    tokenizer: str | os.PathLike[str] | None = None,
    cap: float | None = None,
    close_tag: str = CLOSE_TAG,
) -> Rollouts:
    """Read rollouts from a file, a folder of files (also a run's own folder), or a data frame (pandas, Polars, Arrow).

    Parameters
    ----------
    reward:
        Column(s) whose sum is the reward, where the form does not say: TRL logs one for each reward function.
    label, item:
        Columns that hold the label and the item's key, if they are there; a column ``item`` comes first.
    tokenizer:
        A ``tokenizer.json`` or its folder; counts tokens where no lengths were logged.
    cap:
        The most tokens a completion may have, if known; tells what was cut where that was not logged.
    close_tag:
        The tag that ends a thought; ``""`` for answers without one.

    Raises
    ------
    InputError, ColumnError
        The source cannot be read, or is of no known form.
    """
    raw, name = raw_table(source)
    if raw.empty:
        raise InputError(
            f"{name}: there are no rollouts in it; name the file or folder that the run wrote them to"
        )
    columns = set(raw.columns)
    form = next((form for form, needed in _FORMS.items() if columns.issuperset(needed)), None)
    if form is None:
        wanted = "; ".join(f"{form}: {', '.join(needed)}" for form, needed in _FORMS.items())
        raise ColumnError(f"{name} is of no known form; columns that tell it are {wanted}")
    for place, column in enumerate(reward):
        if column in reward[:place]:
            raise ArgumentError(f"--reward names {column!r} twice: it would be added up twice")
        if column not in columns:
            raise no_column(column, source=name, columns=[*map(str, raw.columns)], option="--reward")
    notes: list[str] = []
    names: Mapping[str, str] = {
        "ours": {},
        "TRL": {"text": "completion"},
        "verl": {"text": "output", "prompt": "input", "label": "gts", "answer": "pred"},
    }[form]
    frame = pd.DataFrame(index=raw.index)
    for column in COLUMNS:
        named = {"label": label, "item": None if "item" in columns else item}.get(column)
        given = named if named in columns else names.get(column, column)
        kind = _words if column in ("item", "label", "text", "answer", "prompt") else _numbers
        frame[column] = kind(raw[given], given, name) if given in columns else _nothing(kind, len(raw))
    frame["reward"] = _rewards(raw, form, reward, name)
    if frame["item"].isna().all():
        frame["item"] = frame["prompt"]
        notes.append("an item is a prompt")
    if frame["item"].isna().any() or frame["step"].isna().any():
        raise InputError(f"{name}: a rollout without a step or an item; every row needs both")
    for key in ("run", "uid", "sample"):  # what tells rows apart may be of any kind
        if key in columns and not pd.api.types.is_numeric_dtype(raw[key]):
            raw[key] = _words(raw[key], key, name)
    if "cap" in columns:
        raw["cap"] = _numbers(raw["cap"], "cap", name)
    _note_copies(frame, raw, form, notes)
    frame = _grouped(frame, raw, form)
    unit, cap = fill_lengths(frame, raw, tokenizer, cap, notes)
    if close_tag and frame["closed"].isna().all():
        fill_closure(frame, close_tag, notes)
    absent = [column for column in ("label", "answer") if frame[column].isna().all()]
    notes += [f"no {column}s were logged" for column in absent]
    if "run" in columns and raw["run"].nunique() > 1:
        notes.append(f"{raw['run'].nunique()} runs are taken together")
    return Rollouts(
        frame=frame,
        source=name,
        form=form,
        length_unit=unit,
        cap=cap,
        notes=tuple(notes),
        columns=tuple(map(str, raw.columns)),
    )


def _note_copies(frame: pd.DataFrame, raw: pd.DataFrame, form: str, notes: list[str]) -> None:
    """Tell of rows with one step, group and sample: files that were copied, or steps that were logged again."""
    if form != "ours" or "sample" not in raw:
        return
    keys = [frame["step"], frame["group"], *(raw[key] for key in ("run", "sample") if key in raw)]
    copies = int(pd.concat(keys, axis=1).duplicated().sum())
    if copies:
        notes.append(
            f"{copies:,} rollouts repeat the step, group and sample of another and count again: was a file copied, or "
            "a step logged twice?"
        )


def _numbers(column: pd.Series, name: str, source: str) -> pd.Series:
    try:
        values = pd.to_numeric(column.astype(object)).to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{source}: the column {name} must hold numbers or true and false ({error}); write them as such"
        ) from error
    _check(np.abs(values) > _LARGEST, values, name, source, "leave it empty where there is none")
    if name in _RANGES:
        check, fix = _RANGES[name]
        _check(~np.isnan(values) & ~check(values), values, name, source, fix)
    return pd.Series(values, index=column.index)


def _check(
    wrong: np.ndarray[Any, Any], values: np.ndarray[Any, Any], name: str, source: str, fix: str
) -> None:
    if wrong.any():
        first = int(np.argmax(wrong))
        raise InputError(f"{source}: row {first + 1} has the {name} {values[first]:g}: {fix}")


def _words(column: pd.Series, name: str, source: str) -> pd.Series:
    try:
        return pd.Series([_word(cell) for cell in column], index=column.index, dtype=object)
    except RecursionError as error:
        raise InputError(
            f"{source}: a cell of the column {name} is nested too deeply; write its text"
        ) from error


def _word(cell: Any) -> str | None:
    """The text of a cell; of a conversation, what its messages say."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, np.ndarray):
        cell = cell.tolist()
    if isinstance(cell, list):
        if all(isinstance(part, Mapping) for part in cell):
            return "\n".join(_word(part.get("content", part.get("text"))) or "" for part in cell)
        return _word(cell[0]) if len(cell) == 1 else json.dumps(cell, ensure_ascii=False, default=str)
    if cell is None or (not isinstance(cell, Mapping) and pd.isna(cell)):
        return None
    if isinstance(cell, Mapping):
        return json.dumps(cell, ensure_ascii=False, default=str)
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _nothing(kind: Callable[..., pd.Series], rows: int) -> pd.Series:
    return pd.Series([None] * rows, dtype=object) if kind is _words else pd.Series(np.nan, index=range(rows))


def _rewards(raw: pd.DataFrame, form: str, chosen: Sequence[str], source: str) -> pd.Series:
    """The sum of the chosen columns; None where all of them are."""
    if not chosen and form == "TRL":
        names = [str(c) for c in raw.columns if c not in _TRL_KNOWN and pd.api.types.is_numeric_dtype(raw[c])]
        if len(names) != 1:
            told = (
                f"several columns may be rewards ({', '.join(names)})"
                if names
                else "there is no column of rewards"
            )
            raise ColumnError(f"{source}: {told}; name those to add up with --reward")
        chosen = names
    names = list(chosen or [{"ours": "reward", "verl": "score"}[form]])
    parts = pd.concat([_numbers(raw[name], name, source) for name in names], axis=1)
    return parts.sum(axis=1, min_count=1)


def _grouped(frame: pd.DataFrame, raw: pd.DataFrame, form: str) -> pd.DataFrame:
    """The frame with its groups numbered, sorted by step, group and sample."""
    if form == "TRL":
        frame["group"] = _runs_of_prompts(frame)
        keys = frame[["step", "group"]]
    elif form == "verl":
        names = ["uid"] if "uid" in raw else []
        keys = pd.concat([frame[["step", "prompt", "label"]].fillna(""), raw[names]], axis=1)
    else:
        keys = pd.concat([raw[[name for name in ("run",) if name in raw]], frame[["step", "group"]]], axis=1)
    frame["group"] = keys.groupby(list(keys.columns), sort=True, dropna=False).ngroup()
    order = frame.assign(sample=raw.get("sample", 0))
    frame = frame.loc[order.sort_values(["step", "group", "sample"], kind="stable").index]
    return frame.reset_index(drop=True)


def _runs_of_prompts(frame: pd.DataFrame) -> np.ndarray[Any, Any]:
    """TRL writes a group's completions one after another: the number of the run of equal prompts of each row.

    Two groups of one prompt in a row look like one of twice the usual size; it is cut in two.
    """
    change = np.zeros(len(frame), dtype=bool)
    for column in ("step", "prompt", "label"):
        cells = frame[column].to_numpy()
        known = ~pd.isna(cells)
        change[1:] |= (cells[1:] != cells[:-1]) & (known[1:] | known[:-1])
    change[:1] = True
    starts = np.flatnonzero(change)
    sizes = np.diff(np.append(starts, len(frame)))
    usual = int(np.bincount(sizes).argmax())
    place = np.arange(len(frame)) - np.repeat(starts, sizes)
    whole = np.repeat(sizes % usual == 0, sizes)
    return np.cumsum(change | (whole & (place % usual == 0)))
