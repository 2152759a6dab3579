"""Reads a table of numbers that belongs to the rows of another table: probabilities of classes, embeddings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from audit.columns import check_columns
from audit.errors import InputError
from audit.patterns import FloatArray
from audit.reading import Table, open_table
from audit.reading_typed import quote

__all__ = ["Matrix", "read_matrix"]

#: Rows that are looked at to tell columns of numbers from others.
_LOOK = 200


@dataclass(frozen=True, kw_only=True, eq=False)
class Matrix:
    """Numbers of shape (M, C), the names of the C columns, and the M ids where an id column was asked for."""

    source: str
    values: FloatArray
    columns: tuple[str, ...]
    ids: tuple[str | None, ...] | None = None


def read_matrix(
    source: Any, *, columns: Sequence[Sequence[str]] | None = None, row_id: str | None = None,
    leave_out: Sequence[str] = (),
) -> Matrix:  # fmt: skip
    """Read numbers from an array, an .npy file, or anything that :func:`audit.reading.open_table` reads.

    Parameters
    ----------
    source:
        An array of shape (M, C), the path of one saved as .npy, or a table with a column for each number; embeddings
        may also stand in one column of lists.
    columns:
        For each of the C columns the names that it may have. By default all columns of numbers but ``leave_out``.
    row_id:
        A column that tells rows apart.

    Raises
    ------
    InputError, ColumnError
        The source cannot be read, lacks a column, or has a cell that is no number.
    """
    name = str(source) if isinstance(source, str | os.PathLike) else "the array"
    if isinstance(source, np.ndarray):
        return Matrix(source=name, values=_checked(source, name), columns=())
    if isinstance(source, str | os.PathLike) and Path(source).suffix.lower() == ".npy":
        try:
            found = np.load(source, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InputError(
                f"{name}: cannot be read as an array ({error}): write it with numpy.save"
            ) from error
        return Matrix(source=name, values=_checked(found, name), columns=())
    with open_table(source) as table:
        name = table.report.source
        check_columns(table, [row_id] if row_id else [], option="--row-id")
        skipped = {*leave_out, *([row_id] if row_id else [])}
        listed = None
        if columns is not None:
            chosen = tuple(_named(table, names, name) for names in columns)
        else:
            chosen, listed = _numbers(table, skipped, name)
        # DuckDB reads a column that is cast as it stands with that type, and fails where the cast would give NULL
        cells = [f"TRY_CAST(trim({quote(column)}) AS DOUBLE) AS v{k}" for k, column in enumerate(chosen)]
        if listed is not None:
            cells = [f"TRY_CAST(trim({quote(listed)}) AS DOUBLE[]) AS v"]
        ids = [f"{quote(row_id)} AS id"] if row_id else []
        table.materialise(f"SELECT {', '.join([*cells, *ids])} FROM {table.name}", "matrix")
        data = table.con.execute("SELECT * FROM matrix").fetchnumpy()
    keys = tuple(None if value is np.ma.masked else value for value in data["id"]) if row_id else None
    if listed is not None:
        values = _stacked(data["v"], listed, name)
        chosen = tuple(f"{listed}[{k}]" for k in range(values.shape[1]))
    else:
        parts = [np.ma.filled(np.ma.asarray(data[f"v{k}"], np.float64), np.nan) for k in range(len(chosen))]
        values = np.column_stack(parts)
    return Matrix(source=name, values=_checked(values, name, chosen), columns=chosen, ids=keys)


def _named(table: Table, names: Sequence[str], source: str) -> str:
    for name in names:
        if name in table.columns:
            return name
    there = ", ".join(table.columns[:30])
    raise InputError(
        f"{source}: there is no column of probabilities for the class {names[0]!r}: name it {' or '.join(names)}; "
        f"there are {there}"
    )


def _numbers(table: Table, skipped: set[str], source: str) -> tuple[tuple[str, ...], str | None]:
    """The columns of numbers, or the one column of lists."""
    rows = table.head(_LOOK)
    cells = {name: [row[k] for row in rows] for k, name in enumerate(table.columns) if name not in skipped}
    numbers = tuple(name for name, column in cells.items() if all(_is_number(cell) for cell in column))
    lists = [name for name, column in cells.items() if all((cell or "").startswith("[") for cell in column)]
    if len(lists) == 1:
        return (), lists[0]
    if not numbers:
        raise InputError(
            f"{source}: no column of numbers and no one column of lists: give an .npy file, or a column for each number"
        )
    return numbers, None


def _is_number(cell: str | None) -> bool:
    try:
        float(cell or "")
    except ValueError:
        return False
    return True


def _stacked(cells: Any, column: str, source: str) -> FloatArray:
    lengths = {len(cell) if cell is not None and cell is not np.ma.masked else 0 for cell in cells}
    if len(lengths) != 1:
        raise InputError(
            f"{source}: the lists in column {column!r} have {min(lengths)} to {max(lengths)} numbers: all need as many"
        )
    return np.array([list(cell) for cell in cells], np.float64)


def _checked(values: Any, source: str, columns: Sequence[str] = ()) -> FloatArray:
    try:
        table = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{source}: holds more than numbers: give an array of shape (rows, columns)"
        ) from error
    if table.ndim != 2 or not table.size:
        raise InputError(f"{source}: has the shape {table.shape}: give an array of shape (rows, columns)")
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        row, column = (int(n) for n in bad[0])
        where = repr(columns[column]) if columns else str(column + 1)
        raise InputError(
            f"{source}: row {row + 1} has no number in column {where}: fill it, or leave the row out"
        )
    return table
