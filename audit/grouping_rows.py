"""The rows of a table as temporary tables: items, labels and the columns that tell rows apart.

Long form has a label a row; wide form several votes a row, or numbers of votes. In either form a *vote* is a label
that counts ``w`` times, and a row is labelled when it has a vote.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from audit.errors import ArgumentError, ColumnError
from audit.grouping_engine import Connection, row_wise, small_table
from audit.labels import canonical_label, merged_names
from audit.normalise import normal_forms
from audit.patterns import IntArray
from audit.reading import Table, quote
from audit.reading_typed import literal

__all__ = ["Columns", "Rows", "copied", "read_rows"]

_SERIAL = itertools.count()


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Which columns of a table hold what.

    Give ``label`` for long form (``item`` is then needed), or ``label_columns`` (a vote each) or ``counts`` (numbers of
    votes for the class that is the column's name) for wide form, where a row is an item of its own unless ``item``
    says which rows are one.

    Raises
    ------
    ArgumentError
        None or several of these three are given, a long form has no item, or one column is to be two things.
    """

    item: tuple[str, ...] = ()
    label: str | None = None
    label_columns: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    row_id: str | None = None
    annotator: str | None = None
    time: str | None = None
    split: str | None = None
    by: tuple[str, ...] = ()
    strata: str | None = None
    gold: str | None = None

    def __post_init__(self) -> None:
        votes = [*([self.label] if self.label is not None else []), *self.label_columns, *self.counts]
        if sum((self.label is not None, bool(self.label_columns), bool(self.counts))) != 1:
            raise ArgumentError(
                "labels stand in one column, in columns of votes or in columns of counts: name one of these"
            )
        if self.label is not None and not self.item:
            raise ArgumentError("which rows are repeats of one another? name the item's column or columns")
        for name in votes:
            if votes.count(name) > 1 or name in self.item:
                raise ArgumentError(
                    f"column {name!r} is named twice; an item and each label have columns of their own"
                )

    @property
    def is_long(self) -> bool:
        """Whether each row has one label."""
        return self.label is not None

    @property
    def details(self) -> tuple[str, ...]:
        """The columns that tell rows of one item apart, each once."""
        named = (self.row_id, self.annotator, self.time, self.split, *self.by, self.strata, self.gold)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    def check(self, table: Table) -> None:
        """Raise a ColumnError unless ``table`` has all of the columns."""
        for field in fields(self):
            value = getattr(self, field.name)
            for name in (value,) if isinstance(value, str) else value or ():
                if name not in table.columns:
                    raise ColumnError(
                        f"{table.report.source}: there is no column {name!r} ({field.name}); "
                        f"there are {', '.join(table.columns)}"
                    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Temporary tables of the rows of a file, and the classes of their labels.

    ``base`` has a row for each row of the file, ``rowid`` from 0 in file order: the item's columns ``i0`` ..., the
    columns of ``Columns.details`` as ``c0`` ... and, in long form, the label ``lab`` and ``x``, a hash of all columns
    but the item's and the label. ``votes`` is SQL with the columns r (rowid), lab, w and who (the column of the vote
    in wide form); ``labels`` a table of lab and code, the place of its class in ``classes``.
    """

    con: Connection
    columns: Columns
    prefix: str
    count: int
    votes: str
    classes: tuple[str, ...]
    class_rows: IntArray
    labelled: int
    is_labelled: str
    has_extras: bool

    @property
    def base(self) -> str:
        """Name of the table of all rows."""
        return f"{self.prefix}base"

    @property
    def labels(self) -> str:
        """Name of the table of labels that count."""
        return f"{self.prefix}labels"

    @property
    def items(self) -> tuple[str, ...]:
        """The item's columns in ``base``."""
        return tuple(f"i{k}" for k in range(len(self.columns.item)))

    def forms(self, source: str, level: str, more: str = "") -> str:
        """A relation of the normal forms (n0 ...) of the items of ``source``, with its r and ``more``."""
        items = self.items
        return row_wise(
            self.con,
            f"(SELECT r, {', '.join(items)} FROM {source})",
            lambda rows: f"(SELECT *{more} FROM {normal_forms(rows, items, level)})",
        )

    def detail(self, column: str) -> str:
        """The column of ``base`` that holds the column ``column`` of the file."""
        if column not in self.columns.details:
            raise ArgumentError(f"column {column!r} was not named for this audit; name it with --by")
        return f"c{self.columns.details.index(column)}"


def read_rows(
    table: Table,
    columns: Columns,
    *,
    missing: Sequence[str],
    classes: Sequence[str] | None,
    merge_labels: bool,
) -> Rows:
    """Read the columns of ``table`` once and find its classes; see :func:`audit.grouping.group`."""
    columns.check(table)
    prefix = f"audit{next(_SERIAL)}_"
    cells = [f"{quote(name)} AS i{k}" for k, name in enumerate(columns.item)]
    cells += [f"{quote(name)} AS c{k}" for k, name in enumerate(columns.details)]
    votes = (*columns.label_columns, *columns.counts)
    cells += [f"{quote(name)} AS v{k}" for k, name in enumerate(votes)]
    others = [name for name in table.columns if name not in columns.item and name != columns.label]
    if columns.label is not None:
        cells += [f"{quote(columns.label)} AS lab"]
        cells += [f"hash({', '.join(map(quote, others))}) AS x"] if others else []
    count = table.materialise(f"SELECT {', '.join(cells)} FROM {table.name}", f"{prefix}base")
    con = table.con
    if columns.is_long:
        source = f"(SELECT rowid AS r, lab, 1 AS w, NULL::VARCHAR AS who FROM {prefix}base)"
    else:
        source = f"{prefix}votes"
        (_read_counts if columns.counts else _read_votes)(con, prefix, votes)
    total = "count(*)" if columns.is_long else "sum(w)::BIGINT"
    seen = dict(
        con.execute(f"SELECT lab, {total} FROM {source} WHERE lab IS NOT NULL GROUP BY lab").fetchall()
    )
    if columns.counts:
        seen = {name: seen.get(name, 0) for name in columns.counts}
    names = _class_names(seen, missing=missing, classes=classes, merge=merge_labels)
    declared = tuple(sorted(set(names.values()) if classes is None else set(classes)))
    place = {name: code for code, name in enumerate(declared)}
    class_rows = np.zeros(len(declared), np.int64)
    for label, name in names.items():
        class_rows[place[name]] += seen[label]
    codes = [place[name] for name in names.values()]
    small_table(con, f"{prefix}labels", {"lab": ("VARCHAR", list(names)), "code": ("BIGINT", codes)})
    if columns.is_long:
        is_labelled = (
            "lab IS NOT NULL" if len(names) == len(seen) else f"lab IN (SELECT lab FROM {prefix}labels)"
        )
        labelled = int(class_rows.sum())
    else:
        if len(names) < len(seen):
            con.execute(
                f"CREATE OR REPLACE TEMP TABLE {source} AS SELECT * FROM {source} SEMI JOIN {prefix}labels USING (lab)"
            )
        is_labelled = f"rowid IN (SELECT r FROM {source})"
        labelled = int(con.execute(f"SELECT count(DISTINCT r) FROM {source}").fetchall()[0][0])
    return Rows(
        con=con, columns=columns, prefix=prefix, count=count, votes=source, classes=declared, class_rows=class_rows,
        labelled=labelled, is_labelled=is_labelled, has_extras=columns.is_long and bool(others),
    )  # fmt: skip


def _read_votes(con: Connection, prefix: str, columns: Sequence[str]) -> None:
    votes = _spread(con, prefix, columns)
    con.execute(
        f"CREATE TEMP TABLE {prefix}votes AS SELECT r, cell AS lab, 1 AS w, who FROM {votes} WHERE cell IS NOT NULL"
    )


def _spread(con: Connection, prefix: str, columns: Sequence[str], more: str = "") -> str:
    """A relation with a row for each cell of the columns of votes: r, cell, who (the column), and ``more``."""
    cells = ", ".join(f"v{k}" for k in range(len(columns)))
    names = ", ".join(map(literal, columns))
    return row_wise(
        con,
        f"(SELECT rowid AS r, {cells} FROM {prefix}base)",
        lambda source: (
            f"(SELECT *{more} FROM (SELECT r, unnest([{cells}]) AS cell, unnest([{names}]) AS who FROM {source}))"
        ),
    )


def _read_counts(con: Connection, prefix: str, columns: Sequence[str]) -> None:
    spread = _spread(con, prefix, columns, ", trim(cell) AS number, try_cast(trim(cell) AS DOUBLE) AS w")
    numbers = f"SELECT r, who AS lab, number, w FROM {spread} WHERE number <> ''"
    wrong = con.execute(
        f"SELECT r, lab, number FROM ({numbers}) WHERE w IS NULL OR w < 0 OR w > 1e9 OR w <> floor(w) "
        "ORDER BY r LIMIT 1"
    ).fetchall()
    for row, column, cell in wrong:
        raise ArgumentError(
            f"row {row + 1}, column {column!r}: {cell!r} is no number of votes; give whole numbers from 0 to 1e9, "
            "or name columns of labels with --label-columns"
        )
    con.execute(
        f"CREATE TEMP TABLE {prefix}votes AS SELECT r, lab, w::BIGINT AS w, NULL::VARCHAR AS who "
        f"FROM ({numbers}) WHERE w > 0"
    )


def _class_names(
    seen: Mapping[str, int], *, missing: Sequence[str], classes: Sequence[str] | None, merge: bool
) -> dict[str, str]:
    """The class of each label that counts: not blank, not one of ``missing``."""
    labels = sorted(label for label in seen if label.strip() and label not in missing)
    if classes is None:
        return (
            merged_names(labels, [seen[label] for label in labels])
            if merge
            else {label: label for label in labels}
        )
    if not classes:
        raise ArgumentError("classes is empty: name the classes, or leave it out to take the labels seen")
    if not all(name.strip() for name in classes):
        raise ArgumentError("a declared class is blank, but an empty cell is a missing label: leave it out")
    alike = {canonical_label(name): name for name in sorted(classes, reverse=True)} if merge else {}
    declared = set(classes)
    names = {label: label if label in declared else alike.get(canonical_label(label), "") for label in labels}
    unknown = [repr(label) for label, name in names.items() if not name]
    if unknown:
        shown = ", ".join(unknown[:5]) + (f" and {len(unknown) - 5} more" if len(unknown) > 5 else "")
        raise ArgumentError(
            f"labels that are none of the declared classes: {shown}; declare them with --classes, or leave them out "
            "with --missing"
        )
    return names


def copied(rows: Rows, votes: str) -> str | None:
    """SQL for the r of the table ``votes`` that repeat an earlier record; None where nothing can tell.

    A record is a row id, else the item as it is written together with all other columns (by a 64-bit hash).
    """
    if not rows.columns.is_long:
        return None
    if rows.columns.row_id is not None:
        row_id = rows.detail(rows.columns.row_id)
        source, record = f"{votes} WHERE {row_id} IS NOT NULL", row_id
    elif rows.has_extras:
        texts = ", ".join(rows.items)
        source = f"{votes} JOIN (SELECT rowid AS r, {texts} FROM {rows.base}) USING (r)"
        record = f"x, {texts}"
    else:
        return None
    return f"SELECT r FROM {source} QUALIFY row_number() OVER (PARTITION BY g, code, {record} ORDER BY r) > 1"
