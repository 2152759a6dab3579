"""The labelled rows of a file, its items numbered, and the numbers of another file brought to these items."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from audit.errors import ArgumentError, InputError
from audit.grouping_files import GroupedFiles, group_files
from audit.patterns import FloatArray, IntArray
from audit.reading import open_table
from audit.reading_matrix import Matrix, read_matrix

__all__ = ["LabelledRows", "labelled_rows"]


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledRows:
    """R labelled rows of N items: ``row`` (from 0), ``item`` (0 ... N-1) and ``code`` (0 ... K-1), each (R,).

    ``matrix`` (N, C) holds the numbers of another file, the mean over an item's rows there; ``spread`` is the most
    that a row differs from that mean. ``unmatched`` rows had no numbers and are left out.
    """

    files: GroupedFiles
    rows: int
    row: IntArray
    item: IntArray
    code: IntArray
    group: IntArray
    classes: tuple[str, ...]
    matrix: FloatArray | None
    spread: float
    unmatched: int
    notes: tuple[str, ...]
    width: int
    matrix_source: str | None = None
    row_id: str | None = None

    @property
    def items(self) -> int:
        """N."""
        return len(self.group)

    def table(self) -> IntArray:
        """How often each item was given each class, shape (N, K)."""
        counts = np.zeros((self.items, len(self.classes)), np.int64)
        np.add.at(counts, (self.item, self.code), 1)
        return counts

    def texts(self) -> list[list[str]]:
        """The normal form of each item, column by column."""
        names = ", ".join(f"n{k}" for k in range(self.width))
        found = self.files.con.execute(
            f"SELECT g, {names} FROM grouped QUALIFY row_number() OVER (PARTITION BY g ORDER BY r) = 1 ORDER BY g"
        ).fetchnumpy()
        place = np.searchsorted(found["g"], self.group)
        return [[str(text) for text in found[f"n{k}"][place]] for k in range(self.width)]

    def given(self, wanted: IntArray) -> list[tuple[str, ...]]:
        """The item columns as they stand in the file, of the labelled rows ``wanted`` (numbers in 0 ... R-1)."""
        return self._told(wanted, ", ".join(f"coalesce(t{k}, '')" for k in range(self.width)))

    def ids(self, wanted: IntArray) -> list[tuple[str | None]]:
        """The row ids of the labelled rows ``wanted``, as they stand in the file."""
        return self._told(wanted, "id")

    def _told(self, wanted: IntArray, columns: str) -> list[Any]:
        con = self.files.con
        con.register("wanted", pd.DataFrame({"place": np.arange(len(wanted)), "row": self.row[wanted]}))
        found = con.execute(
            f"SELECT {columns} FROM wanted JOIN given USING (row) WHERE side = 'first' ORDER BY place"
        ).fetchall()
        con.unregister("wanted")
        return found


@contextmanager
def labelled_rows(
    source: Any,
    *,
    item: Sequence[str],
    label: str,
    matrix: Any = None,
    per_class: bool = False,
    row_id: str | None = None,
    missing: Sequence[str] = (),
    normalise: str = "case",
    **reading: Any,
) -> Iterator[LabelledRows]:
    """Open a file, number its items and classes, and join ``matrix`` to the items.

    ``matrix`` has a column for each class where ``per_class`` is true, else any columns of numbers. It is joined by
    ``row_id`` if it is a table and that is given, by the item columns if it has them, and else row by row.

    Raises
    ------
    InputError, ArgumentError
        A file, a column or an option cannot be used, or no row of the one belongs to a row of the other.
    """
    name = str(source) if isinstance(source, str | os.PathLike) else "the table of labels"
    join = _join(matrix, item, row_id)
    sources, labels = [source], list[str | None]([label])
    if join == "item":  # the options for reading are those of the labels' file
        with open_table(matrix) as table:
            names = [row for batch in table.rows(item) for row in batch]
        sources, labels = [source, pd.DataFrame(names, columns=list(item), dtype=object)], [label, None]
    with group_files(
        *sources, item=item, label=labels, row_id=row_id if join == "id" else None, missing=missing,
        normalise=normalise, **reading,
    ) as files:  # fmt: skip
        found = files.con.execute(
            "SELECT row, g, code, id FROM votes WHERE side = 'first' ORDER BY row"
        ).fetchnumpy()
        row, group, code = (np.asarray(found[column], np.int64) for column in ("row", "g", "code"))
        if not len(row):
            raise InputError(
                f"{name}: no row has both an item and a label: check --item, --label and --missing"
            )
        present, code = np.unique(code, return_inverse=True)
        classes = tuple(files.classes[k] for k in present)
        values, spread, kept, other = None, 0.0, np.ones(len(row), np.bool_), None
        notes: tuple[str, ...] = ()
        groups, place = np.unique(group, return_inverse=True)
        if matrix is not None:
            wanted = [(one, f"p_{one}", f"prob_{one}") for one in classes] if per_class else None
            numbers = read_matrix(
                matrix, columns=wanted, row_id=row_id if join == "id" else None, leave_out=[*item, label]
            )
            if per_class:
                numbers, notes = _as_probabilities(numbers, classes)
            other = numbers.source
            where, line = _matched(files, numbers, join, row, place, groups, found["id"])
            values, spread, known = _means(numbers.values, where, line, len(groups))
            kept = known[place]
            if not kept.any():
                raise InputError(
                    f"{numbers.source}: no row belongs to a labelled row of {name}: check what joins them"
                )
            values = values[np.unique(place[kept])]
        classes_kept = np.unique(code[kept])
        if values is not None and per_class and len(classes_kept) < len(classes):
            values = _scaled(values[:, classes_kept])
        groups_kept, place = np.unique(place[kept], return_inverse=True)
        yield LabelledRows(
            files=files, rows=files.rows[0], row=row[kept], item=place.astype(np.int64),
            code=np.searchsorted(classes_kept, code[kept]).astype(np.int64), group=groups[groups_kept],
            classes=tuple(classes[k] for k in classes_kept), matrix=values, spread=spread,
            unmatched=int((~kept).sum()), notes=notes, width=len(item), matrix_source=other,
            row_id=row_id,
        )  # fmt: skip


def _join(matrix: Any, item: Sequence[str], row_id: str | None) -> str:
    if matrix is None:
        return "row" if row_id is None else "id"
    if isinstance(matrix, np.ndarray) or str(matrix).lower().endswith(".npy"):
        if row_id is not None:
            raise ArgumentError("--row-id joins a table of --probs or --embeddings: an array goes row by row")
        return "row"
    if row_id is not None:
        return "id"
    with open_table(matrix) as table:
        return "item" if item and set(item) <= set(table.columns) else "row"


def _matched(
    files: GroupedFiles,
    numbers: Matrix,
    join: str,
    row: IntArray,
    place: IntArray,
    groups: IntArray,
    ids: Any,
) -> tuple[IntArray, IntArray]:
    """Pairs of an item (0 ... N-1) and a row of the matrix."""
    size = len(numbers.values)
    if join == "row":
        if size != files.rows[0]:
            raise InputError(
                f"{numbers.source}: has {size:,} rows and the labels {files.rows[0]:,}: row by row there must be as "
                "many; else join tables by --row-id, or by the item's columns"
            )
        return place, row
    if join == "id":
        line = {value: k for k, value in enumerate(numbers.ids or ()) if value is not None}
        if len(line) < sum(value is not None for value in numbers.ids or ()):
            raise InputError(f"{numbers.source}: an id stands in two rows: --row-id is to tell rows apart")
        pairs = [
            (item, line[key]) for item, key in zip(place.tolist(), ids.tolist(), strict=True) if key in line
        ]
        both = np.array(pairs, np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]
    found = files.con.execute("SELECT row, g FROM votes WHERE side = 'second'").fetchnumpy()
    where = np.searchsorted(groups, found["g"]).clip(max=len(groups) - 1)
    same = groups[where] == found["g"]
    return where[same], np.asarray(found["row"], np.int64)[same]


def _means(
    values: FloatArray, where: IntArray, line: IntArray, items: int
) -> tuple[FloatArray, float, np.ndarray]:
    """The mean row of each item, the most that a row differs from it, and which items have one."""
    count = np.bincount(where, minlength=items)
    total = np.zeros((items, values.shape[1]))
    np.add.at(total, where, values[line])
    mean = total / count.clip(1)[:, None]
    spread = float(np.abs(values[line] - mean[where]).max(initial=0.0))
    return mean, spread, count > 0


def _as_probabilities(numbers: Matrix, classes: Sequence[str]) -> tuple[Matrix, tuple[str, ...]]:
    """Rows that sum to 1; those of more classes than are seen here are scaled, with a note."""
    values, source = numbers.values, numbers.source
    if values.shape[1] != len(classes):
        raise InputError(
            f"{source}: has {values.shape[1]} columns for {len(classes)} classes ({', '.join(classes[:10])}): give one "
            "for each, in this order, or a table with named columns"
        )
    total = values.sum(axis=1)
    bad = np.flatnonzero((values.min(axis=1) < -1e-9) | (total > 1.01) | (total <= 0.0))
    if len(bad):
        raise InputError(
            f"{source}: row {bad[0] + 1} holds no probabilities (from 0 on, with the sum 1; its sum is "
            f"{total[bad[0]]:.4g}): give softmax outputs, not logits"
        )
    notes: tuple[str, ...] = ()
    if total.min() < 0.99:
        notes = (
            f"probabilities of the {len(classes)} classes seen sum to as little as {total.min():.3f}: scaled to 1",
        )
    scaled = Matrix(source=source, values=_scaled(values), columns=numbers.columns, ids=numbers.ids)
    return scaled, notes


def _scaled(values: FloatArray) -> FloatArray:
    total = values.clip(0.0).sum(axis=1, keepdims=True)
    even = np.full(values.shape, 1.0 / values.shape[1])
    return np.where(total > 0, values.clip(0.0) / np.where(total > 0, total, 1.0), even)
