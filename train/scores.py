"""Reads evaluated rows: label, score, prediction.

A score file has one row per evaluated item: ``item`` (its key), ``label`` (what it is measured against), ``score``
(P(positive), in [0, 1]) and ``prediction`` (the answer; an empty cell is no answer, and wrong). One of the last two is
enough. Optional: ``split``, ``ambiguous`` (yes or no), ``confidence`` (any number, larger is surer), a cluster column.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from audit.columns import no_column
from audit.errors import ArgumentError, ColumnError, InputError
from audit.reading import Table, open_table
from train.metrics import Bools, Floats, Ints

__all__ = ["Columns", "Scores", "check_clusters", "read_scores", "scored_rows"]

_YES, _NO = {"1", "1.0", "true", "yes"}, {"0", "0.0", "false", "no", ""}


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What the columns of a score file are called."""

    item: str = "item"
    label: str = "label"
    score: str = "score"
    prediction: str = "prediction"


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Evaluated rows of one model; all arrays have one entry per row.

    ``truth`` says that the label is ``positive``; ``scores`` are P(positive), NaN where there is none; ``predicted``
    is 1 (positive), 0 (not), or -1 (no answer). Where the file has no predictions they are ``score >= 0.5`` and
    ``answered`` is False. ``clusters`` number the independent units from 0.
    """

    source: str
    positive: str
    labels: tuple[str, ...]
    items: tuple[str, ...]
    truth: Bools
    scores: Floats
    predicted: Ints
    answered: bool
    clusters: Ints
    cluster: str | None = None
    ambiguous: Bools | None = None
    confidence: Floats | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.items)

    @property
    def scored(self) -> bool:
        """Whether every row has a score."""
        return not bool(np.isnan(self.scores).any())

    @property
    def units(self) -> int:
        """Independent units: rows, or clusters of rows."""
        return int(self.clusters.max()) + 1

    def take(self, rows: Ints, *note: str) -> Scores:
        """These rows in this order, with notes about the choice."""
        return replace(
            self,
            items=tuple(self.items[i] for i in rows),
            truth=self.truth[rows],
            scores=self.scores[rows],
            predicted=self.predicted[rows],
            clusters=np.unique(self.clusters[rows], return_inverse=True)[1].astype(np.int64),
            ambiguous=None if self.ambiguous is None else self.ambiguous[rows],
            confidence=None if self.confidence is None else self.confidence[rows],
            notes=(*self.notes, *note),
        )


def read_scores(
    source: Any,
    *,
    positive: str | None = None,
    split: str | None = None,
    cluster: str | None = None,
    columns: Columns | None = None,
    need_scores: bool = False,
    drop_unscored: bool = False,
    first: bool = True,
) -> Scores:
    """Read a score file, a data frame, or ``scores-<split>.parquet`` of a run folder; :class:`Scores` stay as they are.

    Parameters
    ----------
    positive:
        The positive label; by default ``"1"`` if there is one, else the greater of two labels. With more than two it is
        set against all others and must be named.
    split:
        Which file of a run folder, or which rows of a file with a column ``split``.
    cluster:
        Column of what rows belong to (a document, a template): rows of one value are drawn together.
    need_scores:
        Refuse rows without a score; ``drop_unscored`` leaves them out instead and notes how many.
    first:
        Whether ``columns`` speak of this file above all: a score or prediction of another name must be there then.

    Raises
    ------
    InputError
        A column or label is missing, an item stands twice, a score is no number in [0, 1], or no row is left.
    """
    names = columns or Columns()
    if isinstance(source, Scores):
        return scored_rows(source, drop=drop_unscored) if need_scores else source
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        source, split = _file_of(Path(source), split), None
    with open_table(source) as table:
        return _parsed(table, names, positive, split, cluster, need_scores, drop_unscored, first)


def _file_of(folder: Path, split: str | None) -> Path:
    files = {path.stem.removeprefix("scores-"): path for path in sorted(folder.glob("scores-*.parquet"))}
    if split is None and len(files) == 1:
        return next(iter(files.values()))
    if split in files:
        return files[split]
    if not files:
        raise InputError(f"{folder} holds no scores-<split>.parquet: name the score file itself")
    asked = "several splits" if split is None else f"no split {split!r}"
    raise InputError(f"{folder} has {asked}: choose with --split one of {', '.join(files)}")


def _parsed(
    table: Table,
    names: Columns,
    positive: str | None,
    split: str | None,
    cluster: str | None,
    need_scores: bool,
    drop_unscored: bool,
    first: bool,
) -> Scores:
    source = table.report.source
    wanted = [names.item, names.label, *([cluster] if cluster else []), *(["split"] if split else [])]
    named = {role: getattr(names, role) for role in asdict(Columns())} | (
        {"cluster": cluster} if cluster else {}
    )
    for role, name in named.items():
        needed = role in ("item", "label", "cluster") or (first and name != role)
        if needed and name not in table.columns:
            raise no_column(name, source=source, columns=table.columns, option=f"--{role}")
    if split and "split" not in table.columns:
        raise ColumnError(
            f"{source}: there is no column 'split', by which --split keeps rows: leave --split out"
        )
    extra = (names.score, names.prediction, "ambiguous", "confidence")
    has = {name: name in table.columns for name in extra}
    if not has[names.score] and (need_scores or not has[names.prediction]):
        raise ColumnError(
            f"{source}: there is no column {names.score!r}, only {', '.join(table.columns)}: P(positive) is needed, "
            "and --score COLUMN names it"
        )
    chosen = list(dict.fromkeys((*wanted, *(name for name in extra if has[name]))))
    rows = [cells for batch in table.rows(chosen) for cells in batch]
    data = {name: [cells[i] for cells in rows] for i, name in enumerate(chosen)}
    notes: list[str] = []
    if split:
        keep = [i for i, value in enumerate(data["split"]) if value == split]
        known = ", ".join(sorted({value or "(empty)" for value in data["split"]}))
        data = {name: [cells[i] for i in keep] for name, cells in data.items()}
        if not keep:
            raise InputError(f"{source} has no row of split {split!r}: choose one of {known}")
    items = _filled(data[names.item], source, names.item)
    _check_once(items, source)
    labels = [_plain_number(label) for label in _filled(data[names.label], source, names.label)]
    positive = _plain_number(positive) if positive is not None else None
    positive = _positive(sorted(set(labels)), positive, source, notes)
    n = len(items)
    scores = _floats(data.get(names.score), n, source, names.score, upper=1.0)
    told = data.get(names.prediction)
    # a model that answered nothing leaves an empty column too, and says why row by row
    answered = told is not None and (any(v is not None for v in told) or "reason" in table.columns)
    if answered and told is not None:
        told = [None if answer is None else _plain_number(answer) for answer in told]
        if "reason" not in table.columns:
            _check_spelling(told, {*labels, positive}, source)
        predicted = _decisions(told, positive, set(labels), notes)
    elif np.isnan(scores).all():
        raise InputError(f"{source} has neither scores nor predictions in any row: fill {names.score}")
    else:
        predicted = np.where(np.isnan(scores), -1, scores >= 0.5).astype(np.int64)
        notes.append("no predictions in the file: score >= 0.5 is taken as positive")
    found = Scores(
        source=source, positive=positive, labels=tuple(sorted(set(labels))), items=tuple(items),
        truth=np.array([label == positive for label in labels], np.bool_), scores=scores, predicted=predicted,
        answered=answered, clusters=_clusters(data[cluster] if cluster else None, n), cluster=cluster,
        ambiguous=_flags(data.get("ambiguous"), source),
        confidence=_floats(data["confidence"], n, source, "confidence", upper=math.inf) if has["confidence"] else None,
        notes=tuple(notes),
    )  # fmt: skip
    return scored_rows(found, drop=drop_unscored) if need_scores else found


def scored_rows(found: Scores, *, drop: bool = False) -> Scores:
    """The rows, if all have a score; with ``drop`` those that have one, with a note about the others.

    Raises
    ------
    InputError
        A row has no score, or none has one.
    """
    without = np.isnan(found.scores)
    if not without.any():
        return found
    first, many = found.items[int(np.argmax(without))], int(without.sum())
    if without.all():
        raise InputError(
            f"{found.source}: no row has a score: P(positive) is needed, and --score COLUMN names it"
        )
    if not drop:
        raise InputError(
            f"{found.source}: {many:,} of {len(found):,} rows have no score (item {first!r} first): score them, or "
            "leave them out with --drop-unscored"
        )
    return found.take(np.flatnonzero(~without), f"{many:,} rows without a score are left out")


def check_clusters(found: Scores) -> None:
    """Raise an ArgumentError where all rows are of one cluster: it tells nothing of how others would differ."""
    if found.cluster is not None and found.units < 2:
        raise ArgumentError(
            f"{found.source}: all {len(found):,} rows are of one {found.cluster!r}: intervals are over clusters and "
            "need two or more; leave --cluster out if the rows are independent"
        )


def _filled(cells: Sequence[str | None], source: str, column: str) -> list[str]:
    out: list[str] = []
    for number, cell in enumerate(cells, 1):
        if cell is None:
            raise InputError(f"{source}: row {number} has no {column}: fill it or leave the row out")
        out.append(cell)
    return out


def _check_once(items: Sequence[str], source: str) -> None:
    item, times = Counter(items).most_common(1)[0]
    if times > 1:
        more = len(items) - len(set(items))
        raise InputError(
            f"{source}: item {item!r} stands {times} times, and {more:,} rows repeat an item: give every row a key "
            "of its own (and what belongs together as --cluster)"
        )


def _positive(labels: Sequence[str], positive: str | None, source: str, notes: list[str]) -> str:
    if positive is None:
        if len(labels) <= 2 and "1" in labels:
            return "1"
        if len(labels) == 2:
            return max(labels)
        raise ArgumentError(f"{source} has the labels {_some(labels)}: name the positive one with --positive")
    if positive not in labels and len(labels) > 1:
        raise ArgumentError(
            f"{source} has no label {positive!r}, only {_some(labels)}: give --positive one of them"
        )
    if len(labels) > 2:
        notes.append(f"{positive} is set against the {len(labels) - 1} other labels together")
    return positive


def _plain_number(word: str) -> str:
    """``1`` for ``1.0``: whole numbers become that in a table where another cell of the column is empty."""
    whole, point, rest = word.partition(".")
    return whole if point and rest.strip("0") == "" and rest and whole.lstrip("-").isdecimal() else word


def _check_spelling(told: Sequence[str | None], labels: set[str], source: str) -> None:
    """Raise an InputError where there are predictions and none of them is a label."""
    words = {answer for answer in told if answer is not None}
    if words and len(labels) > 1 and not words & labels:
        many = sum(answer is not None for answer in told)
        raise InputError(
            f"{source}: none of the {many:,} predictions is a label: they are {_some(sorted(map(repr, words)))}, the "
            f"labels are {_some(sorted(labels))}; write both alike"
        )


def _decisions(told: Sequence[str | None], positive: str, labels: set[str], notes: list[str]) -> Ints:
    """1, 0, or -1 for no answer; an answer that is no label of the data is none either."""
    known = labels | {positive}
    strange = 0 if len(known) < 2 else sum(t is not None and t not in known for t in told)
    if strange:
        notes.append(f"{strange:,} predictions are no label of the data and count as no answer")
    return np.array(
        [1 if t == positive else -1 if t is None or (len(known) > 1 and t not in known) else 0 for t in told],
        np.int64,
    )


def _floats(cells: Sequence[str | None] | None, n: int, source: str, column: str, *, upper: float) -> Floats:
    out = np.full(n, np.nan)
    for i, cell in enumerate(cells or ()):
        if cell is None or cell.strip().lower() == "nan":
            continue
        try:
            out[i] = float(cell)
        except ValueError as error:
            raise InputError(
                f"{source}: row {i + 1} has the {column} {cell!r}: a number is needed"
            ) from error
        if upper == 1.0 and not 0.0 <= out[i] <= 1.0:
            raise InputError(
                f"{source}: row {i + 1} has the {column} {cell}: scores are P(positive) in [0, 1]; put logits through "
                "the logistic function"
            )
    return out


def _clusters(cells: Sequence[str | None] | None, n: int) -> Ints:
    if cells is None:
        return np.arange(n)
    keys = [f"row {i}" if cell is None else f"= {cell}" for i, cell in enumerate(cells)]
    return np.unique(np.array(keys), return_inverse=True)[1].astype(np.int64)


def _flags(cells: Sequence[str | None] | None, source: str) -> Bools | None:
    if cells is None:
        return None
    words = [(cell or "").strip().lower() for cell in cells]
    for number, word in enumerate(words, 1):
        if word not in _YES | _NO:
            raise InputError(f"{source}: row {number} is {word!r} in the column ambiguous: use yes or no")
    return np.array([word in _YES for word in words], np.bool_)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
