"""Brings the answers of a plan back into the data, as second labels of their items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audit.columns import check_columns, guess
from audit.errors import ArgumentError, ColumnError, InputError
from audit.normalise import normal_forms
from audit.reading import Table, open_table, quote
from audit.results import Result
from audit.writing import check_outputs, write_rows

__all__ = ["ANSWER_ROW", "LABEL_ROUND", "MergedAnswers", "merge_answers", "present"]

#: Column of a plan that names the data row (1-based) an item was drawn from.
ANSWER_ROW = "plan_row"

#: Column added to the merged data: 1 for the rows of the file, 2 for the answers, 3 for those of a later plan ...
LABEL_ROUND = "label_round"


@dataclass(frozen=True, kw_only=True)
class MergedAnswers(Result):
    """What came back: rows of the data, answers added, and answers left blank."""

    rows: int
    answers: int
    blank: int
    round: int
    new_labels: tuple[str, ...]
    path: str

    def summary(self) -> str:
        """The merge in words."""
        blank = f" {self.blank:,} of the plan are still blank." if self.blank else ""
        new = (
            f" Labels that the data did not have: {', '.join(map(repr, self.new_labels))}; if they are misspelt, "
            "correct the answers and merge again."
            if self.new_labels
            else ""
        )
        return (
            f"Wrote {self.path}: {self.rows:,} rows of the data and {self.answers:,} labels of round {self.round}."
            f"{blank}{new}"
        )


def merge_answers(
    source: Any,
    answers: str | Path,
    *,
    item: Sequence[str] = (),
    label: str | None = None,
    out: str | Path,
    missing: Sequence[str] = (),
    normalise: str = "case",
    **reading: Any,
) -> MergedAnswers:
    """Append the answers of a plan to the data, as second labels of their items.

    The rows of the data come first, in order and untouched; :data:`LABEL_ROUND` tells the rounds apart (data that
    has the column already gets the next round). A second label has the columns that the plan has; its other columns
    are empty, so that no record id or annotator is passed on from the first label.

    Raises
    ------
    InputError
        When the answers are no plan of this data: a row number that is not there, an item that differs from the
        data's, or an item answered twice.
    """
    with open_table(source, **reading) as table, open_table(answers) as plan:
        chosen = guess(table, item=tuple(item), label=label)
        if chosen.label is None:
            raise ColumnError("a merge needs one label column: name it with --label")
        check_outputs(source, answers, out)
        check_columns(plan, (ANSWER_ROW, *chosen.item, chosen.label), option="--merge")
        cells = [quote(c) if c in plan.columns else "NULL" for c in table.columns]
        given = f"{present(chosen.label, missing)}"
        asked = plan.materialise(f"SELECT * FROM {plan.name}", "answers")
        answered = plan.con.execute(
            f"SELECT {quote(ANSWER_ROW)}, {', '.join(cells)} FROM answers WHERE {given} ORDER BY rowid"
        ).fetchall()
        total = table.materialise(f"SELECT * FROM {table.name}", "whole")
        _check_answers(table, answered, chosen.item, normalise, total, str(answers))
        number = _next_round(table)
        place = table.columns.index(chosen.label)
        known = table.con.execute(f"SELECT DISTINCT {quote(chosen.label)} FROM whole").fetchall()
        new = sorted({str(cells[1 + place]) for cells in answered} - {str(row[0]) for row in known})
        columns = dict.fromkeys((*table.columns, LABEL_ROUND))
        write_rows(out, tuple(columns), _merged_rows(table, answered, number))
    return MergedAnswers(
        rows=total, answers=len(answered), blank=asked - len(answered), round=number,
        new_labels=tuple(new), path=str(out),
    )  # fmt: skip


def _check_answers(
    table: Table,
    answered: Sequence[Sequence[Any]],
    item: Sequence[str],
    normalise: str,
    total: int,
    name: str,
) -> None:
    """Raise InputError unless every answer points at the data row whose item it shows, once."""
    seen: set[int] = set()
    for cells in answered:
        number = str(cells[0] or "").strip()
        if not number.isdecimal() or not 1 <= int(number) <= total:
            raise InputError(
                f"{name}: {ANSWER_ROW} {number!r} is no row of the data; merge into the file it was drawn from"
            )
        if int(number) in seen:
            raise InputError(f"{name}: {ANSWER_ROW} {number} is answered twice; keep one answer per row")
        seen.add(int(number))
    if not answered:
        raise InputError(f"{name}: no row has a label; fill in the label column first")
    at = [table.columns.index(c) + 1 for c in item]
    table.con.execute(
        "CREATE TEMP TABLE said (plan_row BIGINT, " + ", ".join(f"c{i} VARCHAR" for i in at) + ")"
    )
    table.con.executemany(
        f"INSERT INTO said VALUES ({', '.join('?' * (len(at) + 1))})",
        [[int(cells[0]), *(cells[i] for i in at)] for cells in answered],
    )
    said = normal_forms("(SELECT plan_row AS r, * FROM said)", [f"c{i}" for i in at], normalise)
    there = normal_forms("(SELECT rowid + 1 AS r, * FROM whole)", [quote(c) for c in item], normalise)
    differs = " OR ".join(f"said.n{k} <> there.n{k}" for k in range(len(item)))
    wrong = table.con.execute(
        f"SELECT min(said.r) FROM {said} AS said JOIN {there} AS there ON said.r = there.r WHERE {differs}"
    ).fetchone()
    if wrong is not None and wrong[0] is not None:
        raise InputError(
            f"{name}: the item of {ANSWER_ROW} {wrong[0]} is not that of the data; merge into the file the plan "
            "was drawn from"
        )


def _next_round(table: Table) -> int:
    """2, or one more than the last round that the data has."""
    if LABEL_ROUND not in table.columns:
        return 2
    name = quote(LABEL_ROUND)
    found = table.con.execute(
        f"SELECT max(try_cast({name} AS INTEGER)), count(*) - count(try_cast({name} AS INTEGER)) FROM whole"
    )
    last, others = found.fetchone() or (None, 1)
    if last is None or others:
        raise ArgumentError(
            f"the column {LABEL_ROUND} of the data holds no whole numbers: rename it before the merge"
        )
    return int(last) + 1


def _merged_rows(table: Table, answered: Sequence[Sequence[Any]], number: int) -> Iterator[tuple[Any, ...]]:
    """Rows of the data, then the answers, each with its round."""
    again = LABEL_ROUND in table.columns
    cursor = table.con.execute("SELECT * FROM whole ORDER BY rowid")
    while batch := cursor.fetchmany(10_000):
        for whole in batch:
            yield whole if again else (*whole, "1")
    place = table.columns.index(LABEL_ROUND) if again else len(table.columns)
    for cells in answered:
        row: list[Any] = list(cells[1:])
        row[place:] = [str(number), *row[place + 1 :]]
        yield tuple(row)


def present(label: str, missing: Sequence[str]) -> str:
    """SQL that is true where the label column holds a label: not empty and none of the ``missing`` words."""
    words = ", ".join("'" + word.replace("'", "''") + "'" for word in ("", *missing))
    return f"{quote(label)} IS NOT NULL AND {quote(label)} NOT IN ({words})"
