"""The item and label columns of a file that is read again afterwards: as named, or guessed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from audit.columns import ChosenColumns, guess, guess_item
from audit.errors import ColumnError
from audit.reading import open_table

__all__ = ["choose_columns"]


def choose_columns(
    source: Any, *, item: Sequence[str], label: str | None, with_label: bool = True, **reading: Any
) -> ChosenColumns:
    """The columns named, and what :func:`audit.columns.guess` says of those that are not.

    Parameters
    ----------
    source, reading:
        What :func:`audit.reading.open_table` reads; it is opened only where something is to be guessed.
    item, label:
        The columns named, if any.
    with_label:
        Whether a label that was not named is guessed; else there is none.

    Raises
    ------
    ColumnError
        More than one column (or none) can be meant: told of the label and the item in one message. Or the source is
        standard input, which can be read but once.
    """
    if item and (label is not None or not with_label):
        return ChosenColumns(item=tuple(item), label=label)
    if isinstance(source, str) and source == "-":
        wanted = [("--item COLUMNS", not item), ("--label COLUMN", with_label and label is None)]
        told = " and ".join(option for option, asked in wanted if asked)
        raise ColumnError(
            f"standard input is read once, so that no column can be guessed from it: name {told}"
        )
    with open_table(source, **reading) as table:
        if not with_label:
            name, reason = guess_item(table)
            return ChosenColumns(item=(name,), label=label, reasons=(reason,))
        try:
            return guess(table, item=item, label=label)
        except ColumnError as error:
            if item or label is not None:
                raise
            try:
                guess_item(table)
            except ColumnError as other:
                second = str(other).removeprefix(f"{table.report.source}: ")
                raise ColumnError(f"{error}; and {second}") from error
            raise
