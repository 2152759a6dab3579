"""Draws items to label a second time.

The sample is stratified by the first label (and further columns) in proportion, so every item of the file has the
same chance of being drawn and the repeats stand for the file. The plan is blind: it holds neither the first label
nor who gave it, in a shuffled order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from audit.columns import check_columns, guess
from audit.duplicates import audit_duplicates
from audit.errors import ArgumentError, ColumnError, InputError
from audit.intervals import check_seed
from audit.merging import ANSWER_ROW, present
from audit.normalise import normal_forms
from audit.planning import Plan, pairs_needed
from audit.reading import Table, open_table, quote
from audit.results import Result
from audit.writing import check_outputs, write_rows

__all__ = ["DrawnPlan", "PlannedNumber", "draw_plan", "plan_number"]

_ASSUMED_RATE = 0.10
_FEWEST_TO_LEARN = 20


@dataclass(frozen=True, kw_only=True)
class DrawnPlan(Result):
    """A drawn plan: how many rows, from how many items with one label, and why that many."""

    rows: int
    available: int
    existing: int
    plan: Plan | None
    strata: int
    seed: int
    path: str | None

    def summary(self) -> str:
        """The plan in words."""
        plan, lines = self.plan, []
        if plan is not None and self.existing >= plan.pairs:
            return (
                f"Nothing needs labelling: ±{plan.half_width:g} on a flip rate near {plan.flip_rate:.3f} takes "
                f"{plan.pairs:,} repeated items, and the file has {self.existing:,}. Nothing is written; --half-width "
                "asks for more precision, --rows for so many items whatever it says."
            )
        if plan is not None:
            lines.append(
                f"For ±{plan.half_width:g} on a flip rate near {plan.flip_rate:.3f}: {plan.pairs:,} repeated items; "
                f"the file has {self.existing:,}."
            )
        if not self.rows:
            return "\n".join([*lines, "Nothing is drawn or written: no item has just one label."])
        lines.append(
            f"Drawn: {self.rows:,} of {self.available:,} items with one label, from {self.strata:,} strata, "
            f"seed {self.seed}."
        )
        if plan is not None and self.existing + self.rows < plan.pairs:
            lines.append("That is every item there is: the wanted precision is out of reach with this file.")
        if self.path is None:
            lines.append("Nothing written: name the file with --out plan.csv.")
        else:
            lines.append(
                f"Wrote {self.path}: fill in the label column (and one for who labelled, named as in the data), then "
                f"bring it back with --merge {self.path}."
            )
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class PlannedNumber(Result):
    """The number of repeats for a precision, without a file."""

    plan: Plan

    def summary(self) -> str:
        """The number in words."""
        plan = self.plan
        return (
            f"{plan.pairs:,} items labelled twice put a flip rate near {plan.flip_rate:.3f} within "
            f"±{plan.half_width:g} ({plan.classes} classes, {plan.level:.0%} level; Wilson's interval will be "
            f"±{plan.wilson_half_width:.3f})."
        )


def plan_number(
    half_width: float, *, rate: float | None = None, classes: int = 2, level: float = 0.95
) -> PlannedNumber:
    """How many items to label twice for ``half_width`` on a flip rate near ``rate`` (0.1 when not given)."""
    assumed = _ASSUMED_RATE if rate is None else rate
    return PlannedNumber(plan=pairs_needed(half_width, rate=assumed, classes=classes, level=level))


def draw_plan(
    source: Any,
    *,
    item: Sequence[str] = (),
    label: str | None = None,
    half_width: float = 0.02,
    rate: float | None = None,
    rows: int | None = None,
    by: Sequence[str] = (),
    show: Sequence[str] = (),
    out: str | Path | None = None,
    missing: Sequence[str] = (),
    normalise: str = "case",
    level: float = 0.95,
    seed: int = 0,
    **reading: Any,
) -> DrawnPlan:
    """Draw items that have one label, to be labelled a second time.

    Parameters
    ----------
    half_width, rate, level:
        Wanted half-width of the interval of the flip rate, and the rate planned for: the file's own when it has
        20 repeated items or more, else 0.1. Repeats that the file already has are counted.
    rows:
        Draw this many instead.
    by, show:
        Columns to stratify by as well, and further columns to write. Neither may be the label.
    out:
        File to write: :data:`ANSWER_ROW`, the item columns, ``by``, ``show``, and an empty label column.

    Raises
    ------
    ArgumentError
        When ``rows`` is below 1, or ``by``/``show`` would reveal the label.
    """
    if rows is not None and rows < 1:
        raise ArgumentError(f"a plan draws at least 1 row, not {rows}")
    check_seed(seed)
    check_outputs(source, out)
    with open_table(source, **reading) as table:
        chosen = guess(table, item=tuple(item), label=label)
        if chosen.label is None:
            raise ColumnError("a plan needs one label column: name it with --label")
        if chosen.label in (*by, *show):
            raise ArgumentError(
                f"the plan is blind: leave the label column {chosen.label!r} out of --by and --show"
            )
        check_columns(table, by, option="--by")
        check_columns(table, show, option="--show")
        kept = tuple(dict.fromkeys((*chosen.item, *by, *show)))
        available, existing, classes = _prepare(
            table, chosen.item, chosen.label, by, kept, normalise, missing
        )
        plan = None
        wanted = rows
        if wanted is None:
            if rate is None:
                rate = _own_rate(source, chosen.item, chosen.label, missing, normalise, existing, reading)
            plan = pairs_needed(half_width, rate=rate, classes=max(classes, 2), level=level)
            wanted = max(plan.pairs - existing, 0)
        drawn, strata = _draw(table, min(wanted, available), np.random.default_rng(seed))
        if out is not None and drawn.size:
            _keep_answers(out, chosen.label)
            _write_plan(table, drawn, kept, chosen.label, out)
    return DrawnPlan(
        rows=int(drawn.size), available=available, existing=existing, plan=plan, strata=strata, seed=seed,
        path=str(out) if out is not None and drawn.size else None,
    )  # fmt: skip


def _prepare(
    table: Table,
    item: Sequence[str],
    label: str,
    by: Sequence[str],
    kept: Sequence[str],
    normalise: str,
    missing: Sequence[str],
) -> tuple[int, int, int]:
    """Make the table ``pool`` of items with one label; return its rows, the repeated items and the classes seen."""
    columns = ", ".join(quote(c) for c in dict.fromkeys((*kept, label)))
    table.materialise(f"SELECT {columns} FROM {table.name}", "plan_rows")
    texts = [quote(c) for c in item]
    forms = normal_forms("(SELECT rowid AS r, * FROM plan_rows)", texts, normalise)
    key = ", ".join(f"n{k}" for k in range(len(item)))
    filled = " OR ".join(rf"regexp_matches({text}, '[^\s\p{{Z}}]')" for text in texts)
    strata = ", ".join(quote(c) for c in (label, *by))
    table.con.execute(
        f"""CREATE TEMP TABLE labelled AS
        SELECT r + 1 AS plan_row, {quote(label)} AS label,
            dense_rank() OVER (ORDER BY {strata}) AS stratum,
            count(*) OVER (PARTITION BY {key}) AS labels,
            row_number() OVER (PARTITION BY {key} ORDER BY r) = 1 AS leads
        FROM plan_rows JOIN {forms} ON plan_rows.rowid = r
        WHERE ({filled}) AND {present(label, missing)}"""
    )
    table.con.execute(
        "CREATE TEMP TABLE pool AS SELECT plan_row, stratum FROM labelled WHERE labels = 1 ORDER BY plan_row"
    )
    available = int(_one(table, "SELECT count(*) FROM pool"))
    existing = int(_one(table, "SELECT count(*) FROM labelled WHERE labels > 1 AND leads"))
    return available, existing, int(_one(table, "SELECT count(DISTINCT label) FROM labelled"))


def _own_rate(
    source: Any,
    item: Sequence[str],
    label: str,
    missing: Sequence[str],
    normalise: str,
    existing: int,
    reading: dict[str, Any],
) -> float:
    """The file's own flip rate if it has repeats enough to say, else the assumed one."""
    if existing < _FEWEST_TO_LEARN:
        return _ASSUMED_RATE
    result = audit_duplicates(
        source,
        item=item,
        label=label,
        missing=missing,
        normalise=normalise,
        ladder=False,
        show_conflicts=0,
        **reading,
    )
    return result.flip_rate.estimate or _ASSUMED_RATE


def _draw(table: Table, wanted: int, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Data rows of a proportional stratified sample, shuffled, and the number of strata."""
    pool = table.con.execute("SELECT plan_row, stratum FROM pool ORDER BY plan_row").fetchnumpy()
    rows, stratum = np.asarray(pool["plan_row"], np.int64), np.asarray(pool["stratum"], np.int64)
    strata, sizes = np.unique(stratum, return_counts=True)
    if wanted == 0 or not rows.size:
        return np.empty(0, np.int64), len(strata)
    exact = wanted * sizes / sizes.sum()
    share = np.floor(exact).astype(np.int64)
    rest = np.argsort(share - exact, kind="stable")[: wanted - int(share.sum())]
    share[rest] += 1
    drawn = [
        rng.choice(rows[stratum == s], size=n, replace=False) for s, n in zip(strata, share, strict=True)
    ]
    return rng.permutation(np.concatenate(drawn)), len(strata)


def _keep_answers(out: str | Path, label: str) -> None:
    """Raise an ArgumentError when ``out`` is a plan that holds answers already."""
    if not Path(out).is_file():
        return
    try:
        with open_table(out) as old:
            if ANSWER_ROW not in old.columns or label not in old.columns:
                return
            old.materialise(f"SELECT {quote(label)} AS answer FROM {old.name}", "old")
            answers = int(_one(old, "SELECT count(answer) FROM old"))
    except InputError:
        return
    if answers:
        raise ArgumentError(
            f"{out} is a plan with {answers:,} answers in it: merge them first, or name another file"
        )


def _write_plan(table: Table, drawn: np.ndarray, kept: Sequence[str], label: str, out: str | Path) -> None:
    cells = ", ".join(quote(c) for c in kept)
    chosen = table.con.execute(
        f"SELECT rowid + 1, {cells} FROM plan_rows WHERE rowid + 1 IN (SELECT unnest(?))", [drawn.tolist()]
    ).fetchall()
    by_row = {row[0]: row for row in chosen}
    write_rows(out, (ANSWER_ROW, *kept, label), ((*map(_text, by_row[int(n)]), None) for n in drawn))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _one(table: Table, query: str) -> Any:
    row = table.con.execute(query).fetchone()
    return row[0] if row else 0
