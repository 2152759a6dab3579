"""The task that every rung shares: which rows, which prompt, which answers, and the clean key they are scored on.

A row of the data is one *item* (its input columns), the label it came with, and the label of the clean key. All
rungs see the same items under the same prompt; they differ in the labels they are taught and in how.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from audit.errors import ArgumentError, InputError

__all__ = ["SPLITS", "Example", "Message", "Task", "item_key", "load_examples", "read_table"]

#: The names under which the splits are kept in run folders, whatever the data call them.
SPLITS = ("train", "validation", "test")

#: One message of a chat: its role and its content.
Message = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is asked of a model, and of which rows.

    ``data`` is the file with the labels as they came; ``clean`` one with better labels (``audit relabel``'s output,
    or a gold file), joined on the input columns. Without ``clean`` the labels as they came are the key, and
    comparisons say so. ``train_rows`` and so on draw a sample of each split, stratified by the clean label; ``seed``
    fixes which, the same for all runs, so that these can be compared row by row.
    """

    data: str
    inputs: tuple[str, ...]
    label: str
    labels: tuple[str, ...]
    positive: str = ""
    clean: str | None = None
    clean_label: str | None = None
    split: str | None = None
    names: dict[str, str] = field(default_factory=dict)
    instruction: str = ""
    system: str = "You label text. Answer with the label alone."
    thinking: str = "You label text. Think first, then answer with the label alone."
    train_rows: int | None = None
    validation_rows: int | None = None
    test_rows: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if len(set(self.labels)) < 2 or len(set(self.labels)) != len(self.labels):
            raise ArgumentError("task.labels needs two or more different labels, such as ['0', '1']")
        if not self.inputs:
            raise ArgumentError("task.inputs names the columns a model reads, such as ['text']")
        if self.positive and self.positive not in self.labels:
            raise ArgumentError(f"task.positive {self.positive!r} is none of task.labels: name one of them")
        if not self.positive:
            object.__setattr__(self, "positive", "1" if "1" in self.labels else max(self.labels))

    def messages(self, values: Sequence[str], *, think: bool = False) -> list[Message]:
        """The chat that asks about one item: a system message, then the instruction and the inputs."""
        named = [f"{name.capitalize()}: {value}" for name, value in zip(self.inputs, values, strict=True)]
        content = "\n".join(filter(None, [self.instruction, *named]))
        system = self.thinking if think else self.system
        return [
            *([{"role": "system", "content": system}] if system else []),
            {"role": "user", "content": content},
        ]


@dataclass(frozen=True, kw_only=True)
class Example:
    """One item of a split: its key, its input values, the label as it came and the one of the clean key."""

    item: str
    values: tuple[str, ...]
    noisy: str
    clean: str
    split: str


def item_key(values: Sequence[str]) -> str:
    """The key of an item: the text itself for one input column, else the compact JSON array of all of them."""
    return (
        values[0] if len(values) == 1 else json.dumps(list(values), ensure_ascii=False, separators=(",", ":"))
    )


def read_table(path: str, columns: Iterable[str]) -> pd.DataFrame:
    """The named columns of any file that ``audit dupes`` reads, as strings ("" where a cell is empty)."""
    from audit.columns import check_columns
    from audit.reading import open_table

    wanted = list(dict.fromkeys(columns))
    with open_table(path) as table:
        check_columns(table, wanted, option="the config")
        rows = [cells for batch in table.rows(wanted) for cells in batch]
    return pd.DataFrame(rows, columns=wanted, dtype=object).fillna("").astype(str)


def load_examples(task: Task, *, seed: int) -> dict[str, list[Example]]:
    """The examples of each split, in an order that the seed fixes.

    Rows whose label or clean label is missing are left out; a repeated item of the validation and test splits is
    kept once, one of the training split as often as it is there (that is how the labels came).

    The draws are those of ``numpy.random.default_rng(seed)`` itself, and stay so: the runs of docs/train-study.md are
    on these rows. Who draws labels or votes for the same data with the same seed needs another stream, such as
    ``default_rng((seed, 1))``, or the splits will depend on them.

    Raises
    ------
    ColumnError
        A column is not there.
    InputError
        A label is none of ``task.labels``, an item has no clean label, or a split is empty.
    """
    columns = [*task.inputs, task.label, *([task.split] if task.split else [])]
    frame = read_table(task.data, columns)
    frame["item"] = [
        item_key(values) for values in frame[list(task.inputs)].itertuples(index=False, name=None)
    ]
    frame["noisy"] = frame[task.label]
    frame["clean"] = _clean_labels(task, frame)
    _check_labels(task, frame, "noisy", task.data)
    _check_labels(task, frame, "clean", task.clean or task.data)
    frame = frame[(frame["noisy"] != "") & (frame["clean"] != "")]
    rng = np.random.default_rng(seed)
    names = {task.names.get(split, split): split for split in SPLITS}
    frame["to"] = frame[task.split].map(names).fillna("") if task.split else _draw_splits(frame, rng)
    sizes = dict(zip(SPLITS, (task.train_rows, task.validation_rows, task.test_rows), strict=True))
    found: dict[str, list[Example]] = {}
    for split in SPLITS:
        part = frame[frame["to"] == split]
        part = part if split == "train" else part.drop_duplicates("item")
        if part.empty:
            raise InputError(f"{task.data}: no row of split {split!r}: name the splits under task.names")
        part = part.iloc[_sample(part["clean"].to_numpy(), sizes[split], rng)]
        values = part[list(task.inputs)].itertuples(index=False, name=None)
        found[split] = [
            Example(item=item, values=tuple(texts), noisy=noisy, clean=clean, split=split)
            for texts, item, noisy, clean in zip(
                values, part["item"], part["noisy"], part["clean"], strict=True
            )
        ]
    return found


def _clean_labels(task: Task, frame: pd.DataFrame) -> pd.Series:
    if task.clean is None:
        return frame[task.label]
    if task.clean_label is None:
        raise ArgumentError("task.clean needs task.clean_label, the column that holds the clean label")
    clean = read_table(task.clean, [*task.inputs, task.clean_label])
    keys = [item_key(values) for values in clean[list(task.inputs)].itertuples(index=False, name=None)]
    pairs = pd.DataFrame({"item": keys, "label": clean[task.clean_label]}).drop_duplicates()
    torn = pairs["item"][pairs["item"].duplicated()]
    if not torn.empty:
        raise InputError(
            f"{task.clean}: two clean labels for {torn.iloc[0][:80]!r}: a clean key has one an item"
        )
    labels = frame["item"].map(dict(zip(pairs["item"], pairs["label"], strict=True)))
    if labels.isna().all():
        raise InputError(f"{task.clean}: none of its items is in {task.data}: do {list(task.inputs)} agree?")
    return labels.fillna("")


def _check_labels(task: Task, frame: pd.DataFrame, column: str, source: str) -> None:
    odd = sorted(set(frame[column]) - set(task.labels) - {""})
    if odd:
        raise InputError(
            f"{source}: label {odd[0]!r} is none of task.labels {list(task.labels)}: add it or mend it"
        )


def _draw_splits(frame: pd.DataFrame, rng: np.random.Generator) -> pd.Series:
    """Splits of 70, 15 and 15 % by item, so that no item stands in two."""
    items = frame["item"].unique()
    drawn = rng.choice(SPLITS, size=len(items), p=[0.7, 0.15, 0.15])
    return frame["item"].map(dict(zip(items, drawn, strict=True)))


def _sample(labels: np.ndarray, size: int | None, rng: np.random.Generator) -> np.ndarray:
    """Positions of a sample stratified by label, shuffled; all of them where ``size`` is None or larger."""
    n = len(labels)
    if size is None or size >= n:
        return rng.permutation(n)
    order = rng.permutation(n)
    order = order[np.argsort(labels[order], kind="stable")]
    picked = order[np.floor((np.arange(size) + rng.random()) * n / size).astype(int)]
    return rng.permutation(picked)
