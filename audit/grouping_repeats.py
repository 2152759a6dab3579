"""What a grouped table can be asked: count patterns, breakdowns, contrasts, conflicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeVar, cast

import numpy as np

from audit import grouping_queries as queries
from audit.errors import ArgumentError
from audit.grouping_conflicts import conflict_groups
from audit.grouping_engine import Connection, row_wise
from audit.grouping_queries import AnnotatorPair
from audit.grouping_rows import Columns, Rows, copied
from audit.normalise import LEVELS, is_blank
from audit.patterns import CountPatterns, IntArray, PairContrast
from audit.results import ConflictGroup

__all__ = ["AnnotatorPair", "MakeUp", "Repeats", "Rung", "WithoutCopies"]

T = TypeVar("T")

#: What stands for an empty cell where values are listed.
EMPTY = "(empty)"

_MOST_PAIRS = 5_000_000
_LADDER_ROWS = 500_000


@dataclass(frozen=True, kw_only=True)
class Rung:
    """The repeats at one level of normalisation: items, their labels, pairs, and items whose labels differ."""

    level: str
    items: int
    rows: int
    pairs: int
    conflicts: int
    patterns: CountPatterns


@dataclass(frozen=True, kw_only=True)
class WithoutCopies:
    """The repeats without rows that repeat a record, and the number of these rows."""

    rows: int
    patterns: CountPatterns


class MakeUp(NamedTuple):
    """Numbers of repeated and of other items (or labels) in each category; both arrays have its length."""

    categories: tuple[str, ...]
    repeated: IntArray
    others: IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Repeats:
    """A table grouped by item, held in temporary tables of its connection; made by :func:`audit.grouping.group`.

    ``class_rows`` (shape (K,)) counts the labels of each class over all rows, ``items_total`` the items with at least
    one label, ``missing_item`` the rows whose item is blank, with or without a label.
    """

    source: Rows
    normalise: str
    length_bins: int
    missing_item: int
    class_rows: IntArray
    items_total: int
    _known: dict[tuple[str, ...], object] = field(default_factory=dict, init=False, repr=False)

    def _once(self, *key: str, ask: Callable[[], T]) -> T:
        """The answer to a question about these repeats, kept: several parts of an audit ask the same."""
        if key not in self._known:
            self._known[key] = ask()
        return cast(T, self._known[key])

    @property
    def rows(self) -> int:
        """Rows of the file."""
        return self.source.count

    @property
    def missing_label(self) -> int:
        """Rows without a label; in wide form, rows without any vote."""
        return self.source.count - self.source.labelled

    @property
    def classes(self) -> tuple[str, ...]:
        """The K declared classes, or those seen, in order."""
        return self.source.classes

    @property
    def columns(self) -> Columns:
        """Which columns hold what."""
        return self.source.columns

    @property
    def con(self) -> Connection:
        """The connection that holds the tables."""
        return self.source.con

    @property
    def table(self) -> str:
        """Name of the table of the votes of repeated items, with the columns that ``audit.grouping`` describes."""
        return f"{self.source.prefix}repeated"

    @cached_property
    def patterns(self) -> CountPatterns:
        """Count patterns of the repeated items, those with at least two labels."""
        return queries.count_patterns(self.con, self.table, self.classes)

    @property
    def repeated_rows(self) -> int:
        """Labels of the repeated items."""
        return int(self.patterns.sizes @ self.patterns.items)

    def patterns_by(self, column: str) -> dict[str, CountPatterns]:
        """Count patterns for each value of a column, from an item's labels with that value, if at least two.

        ``column`` is one of the columns named for the audit, or ``"__length"`` for the length of the item.
        """
        if column == "__length":
            votes = (
                f"(SELECT *, {self._length_class('n')} AS v FROM {self.table} JOIN {self._lengths} USING (g))"
            )
        else:
            votes = f"(SELECT *, coalesce({self.source.detail(column)}, '{EMPTY}') AS v FROM {self.table})"
        return self._once(
            "patterns", column, ask=lambda: queries.count_patterns_by(self.con, votes, self.classes)
        )

    def contrast(self, column: str) -> PairContrast:
        """Pairs of an item's labels that share a value of ``column``, against pairs that do not.

        ``column`` is one of those named for the audit, or ``"__minute"``: the time to the minute; ``"__adjacent"``:
        rows that stand next to each other in the file; ``"__extras"``: all columns besides item and label, taken
        together (by a 64-bit hash). Labels with an empty value are left out. The last two are empty in wide form.
        """
        if column == "__adjacent":
            rows = f"(SELECT * FROM {self.table} WHERE {self.columns.is_long})"
            return self._once(column, ask=lambda: queries.adjacent_pairs(self.con, rows))
        if column == "__extras":
            value = "x"
        elif column == "__minute":
            if self.columns.time is None:
                raise ArgumentError("no time was named for this audit; name its column with --time")
            return self._once(column, ask=self._minutes)
        else:
            value = self.source.detail(column)
        return self._once("contrast", value, ask=lambda: queries.value_pairs(self.con, self._with(value)))

    def _minutes(self) -> PairContrast:
        time = self.source.detail(str(self.columns.time))
        votes = row_wise(
            self.con,
            f"(SELECT g, code, w, {time} AS v FROM {self.table})",
            lambda source: f"(SELECT g, code, w, {queries.minute('v')} AS v FROM {source})",
        )
        return queries.value_pairs(self.con, votes)

    def _with(self, value: str) -> str:
        return f"(SELECT g, code, w, {value} AS v FROM {self.table})"

    @property
    def _annotators(self) -> str:
        annotator = self.columns.annotator
        return self._with("who" if annotator is None else self.source.detail(annotator))

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of the grouping."""
        pairs = queries.compared_pairs(self.con, self._annotators)
        if pairs <= _MOST_PAIRS:
            return ()
        return (f"annotators are not compared pair by pair: that would be {pairs:,} comparisons",)

    def annotator_pairs(self, limit: int | None = None) -> list[AnnotatorPair]:
        """Pairs of annotators with labels of the same items, those with most pairs of labels first.

        Annotators are the columns of votes where no annotator's column is named. The list is empty when the items
        have more than five million pairs of annotators between them; ``notes`` then says so.
        """
        return [] if self.notes else queries.annotator_pairs(self.con, self._annotators, limit=limit)

    def annotator_votes(self) -> list[tuple[int, str, int, int]]:
        """(item, annotator, place of the class, times) of the repeated items' labels; empty where nobody is named."""
        votes = f"{self._annotators} WHERE v IS NOT NULL GROUP BY ALL ORDER BY ALL"
        return self.con.execute(f"SELECT g, v, code, sum(w)::BIGINT FROM {votes}").fetchall()

    def ladder(self, *, force: bool | None = None) -> tuple[Rung, ...]:
        """The repeats at each level of normalisation, the finest first.

        ``force`` makes or leaves out the ladder; by default it is made for files of up to 500,000 rows. It is empty
        where a row is an item of its own. Rows that were left out by ``drop_copies`` or ``one_per`` stay out.
        """
        source, items = self.source, self.source.items
        if not items or force is False or (force is None and self.rows > _LADDER_ROWS):
            return ()
        prefix, names = source.prefix, ", ".join(f"n{k}" for k in range(len(items)))
        dropped = f"SELECT r FROM {prefix}ids ANTI JOIN {prefix}kept USING (r)"
        pool = row_wise(
            self.con,
            f"(SELECT rowid AS r, {', '.join(items)} FROM {source.base} "
            f"WHERE {source.is_labelled} AND rowid NOT IN ({dropped}))",
            lambda rows: f"(SELECT * FROM {rows} WHERE NOT ({' AND '.join(map(is_blank, items))}))",
        )
        votes = f"(SELECT r, code, w FROM {source.votes} JOIN {source.labels} USING (lab))"
        rungs = []
        for level in reversed(LEVELS):  # a finer level can only part what a coarser one brings together
            forms = f"SELECT * FROM {source.forms(pool, level)} JOIN {votes} USING (r)"
            self.con.execute(f"CREATE OR REPLACE TEMP TABLE {prefix}rung AS {forms}")
            patterns = queries.count_patterns(self.con, f"{prefix}rung", self.classes, keys=names)
            rungs.append(_rung(level, patterns))
            together = f"SELECT {names} FROM {prefix}rung GROUP BY {names} HAVING sum(w) > 1"
            self.con.execute(
                f"CREATE OR REPLACE TEMP TABLE {prefix}pool AS "
                f"SELECT DISTINCT r FROM {prefix}rung SEMI JOIN ({together}) USING ({names})"
            )
            pool = f"(SELECT * FROM {prefix}pool JOIN (SELECT rowid AS r, * FROM {source.base}) USING (r))"
        self.con.execute(f"DROP TABLE {prefix}rung; DROP TABLE {prefix}pool")
        return tuple(reversed(rungs))

    def without_copies(self) -> WithoutCopies | None:
        """The repeats without rows that repeat an earlier record of their item with the same label.

        A record is known by its row id, if one is named; else rows are copies when they are equal in every column.
        None where nothing tells a copy from a second opinion: there are no other columns, or a row has several votes.
        """
        later = copied(self.source, self.table)
        if later is None:
            return None
        left = queries.count_patterns(
            self.con, f"(SELECT * FROM {self.table} WHERE r NOT IN ({later}))", self.classes
        )
        return WithoutCopies(rows=queries.number(self.con, f"SELECT count(*) FROM ({later})"), patterns=left)

    def representation(self) -> dict[str, MakeUp]:
        """Repeated items against the others: ``class`` in labels, ``split`` and ``length`` in items.

        Items are taken as their first row has them. ``split`` is there if its column is named, ``length`` (classes
        of the number of bytes in UTF-8) if items have columns.
        """
        return dict(self._made_up)

    def strata(self, column: str) -> dict[str, float]:
        """The share of all items in each category of the split's column or of ``"__length"``."""
        made = self._made_up
        name = "length" if column == "__length" else "split"
        if name not in made or (name == "split" and column != self.columns.split):
            raise ArgumentError(
                f"{column!r} is no stratum of this audit; choose the split's column or __length"
            )
        total = int(made[name].repeated.sum() + made[name].others.sum())
        return {c: int(n + m) / total for c, n, m in zip(*made[name], strict=True)}

    @cached_property
    def _made_up(self) -> dict[str, MakeUp]:
        source = self.source
        without_item = (
            f"{source.votes} JOIN {source.labels} USING (lab) SEMI JOIN {source.prefix}blank USING (r)"
        )
        by_class = np.zeros((2, len(self.classes)), np.int64)
        for place, table in enumerate((self.table, without_item)):
            counted = self.con.execute(f"SELECT code, sum(w)::BIGINT FROM {table} GROUP BY code").fetchall()
            for code, labels in counted:
                by_class[place, code] = labels
        out = {"class": MakeUp(self.classes, by_class[0], self.class_rows - by_class.sum(axis=0))}
        if self.columns.split is not None:
            value = f"coalesce({source.detail(self.columns.split)}, '{EMPTY}')"
            found = self._make_up(value)
            out["split"] = MakeUp(
                tuple(map(str, found)), *np.array(list(found.values()), np.int64).reshape(-1, 2).T
            )
        if source.items:
            out["length"] = self._by_length
        return out

    def _make_up(self, value: str) -> dict[str | int, tuple[int, int]]:
        """Repeated and other items for each value of an expression over the columns of an item's first row."""
        base, prefix = self.source.base, self.source.prefix
        alone = f"SELECT r FROM {prefix}kept ANTI JOIN {self.table} USING (g)"
        # Items that are not repeated have one row each: all rows but those that are set aside here.
        aside = f"(SELECT r FROM {prefix}ids UNION ALL SELECT r FROM {prefix}blank EXCEPT {alone})"
        first = f"(SELECT DISTINCT g AS r, true AS first FROM {self.table})"
        marked = f"(SELECT * FROM {aside} LEFT JOIN {first} USING (r))"
        found = self.con.execute(
            f"SELECT v, sum(repeated)::BIGINT, sum(others)::BIGINT FROM ("
            f"SELECT {value} AS v, 0 AS repeated, count(*) AS others FROM {base} WHERE {self.source.is_labelled} "
            f"GROUP BY ALL UNION ALL SELECT {value}, count(*) FILTER (first), -count(*) "
            f"FROM {marked} m JOIN {base} b ON b.rowid = m.r GROUP BY ALL) GROUP BY v ORDER BY v"
        ).fetchall()
        return {v: (a, b) for v, a, b in found if a or b}

    @property
    def _length(self) -> str:
        return " + ".join(f"strlen(coalesce({name}, ''))" for name in self.source.items) or "0"

    @property
    def _lengths(self) -> str:
        """SQL for the length n of each repeated item g: that of its first row."""
        return f"(SELECT rowid AS g, {self._length} AS n FROM {self.source.base})"

    @cached_property
    def _by_length(self) -> MakeUp:
        """Items by classes of length that hold about equally many of them."""
        found = self._make_up(self._length)
        if not found:
            return MakeUp((), np.zeros(0, np.int64), np.zeros(0, np.int64))
        lengths, sides = np.array(list(found), np.int64), np.array(list(found.values()), np.int64)
        reached = np.cumsum(sides.sum(axis=1))
        wanted = np.ceil(reached[-1] * np.arange(1, self.length_bins + 1) / self.length_bins)
        last = np.unique(np.searchsorted(reached, wanted))
        starts = np.append(0, last[:-1] + 1)
        spans = zip(lengths[starts], lengths[last], strict=True)
        names = tuple(f"{low}-{high}" if low < high else f"{low}" for low, high in spans)
        return MakeUp(names, *np.add.reduceat(sides, starts).T)

    def _length_class(self, length: str) -> str:
        """SQL for the class of a length."""
        cases = (
            f"WHEN {length} <= {name.split('-')[-1]} THEN '{name}'" for name in self._by_length.categories
        )
        return f"CASE {' '.join(cases)} END" if self._by_length.categories else "''"

    def conflicts(self, limit: int | None = None) -> list[ConflictGroup]:
        """The disagreeing items, hardest first, see :func:`audit.grouping_conflicts.conflict_groups`."""
        return conflict_groups(self.source, self.table, limit=limit)


def _rung(level: str, patterns: CountPatterns) -> Rung:
    return Rung(
        level=level,
        items=patterns.item_total,
        rows=int(patterns.sizes @ patterns.items),
        pairs=int(patterns.pairs @ patterns.items),
        conflicts=int(patterns.items[patterns.disagreement > 0].sum()),
        patterns=patterns,
    )
