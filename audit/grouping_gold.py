"""Labels of a grouped table against a gold standard: a column of the file, or a file of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from audit.errors import InputError
from audit.grouping_repeats import Repeats
from audit.normalise import normal_forms
from audit.patterns import FloatArray
from audit.reading import open_table

__all__ = ["GoldCounts", "against_gold"]


class GoldCounts:
    """Labels that differ from gold, and all labels, of each item with a gold label: both shape (N,).

    ``unknown`` counts gold labels that are no declared class, ``contradictory`` items with several gold labels.
    """

    def __init__(self, rows: list[tuple[int, int, int]], unknown: int, contradictory: int) -> None:
        table = np.array(rows, np.float64).reshape(-1, 3)
        self.wrong: FloatArray = table[:, 1]
        self.labels: FloatArray = table[:, 2]
        self.unknown, self.contradictory = unknown, contradictory


def against_gold(repeats: Repeats, gold: str, **reading: Any) -> GoldCounts:
    """Compare every label with the gold label of its item.

    Parameters
    ----------
    gold:
        A column that was named for this audit, or else a file with the item's columns and one more, the gold label
        (the column named as the audit's label or called truth, gold or label, if there are several).

    Raises
    ------
    InputError
        The file cannot be read, lacks the item's columns, or has no column that is plainly the gold label.
    """
    source = repeats.source
    con, prefix = source.con, source.prefix
    if gold in source.columns.details:
        found = f"(SELECT rowid AS r, {source.detail(gold)} AS gold FROM {source.base})"
    else:
        _read_gold(repeats, gold, reading)
        forms = ", ".join(f"n{k}" for k in range(len(source.items)))
        keyed = normal_forms(
            f"(SELECT rowid AS r, {', '.join(source.items)} FROM {source.base})",
            source.items,
            repeats.normalise,
        )
        truth = normal_forms(f"{prefix}gold", source.items, repeats.normalise)
        found = (
            f"(SELECT b.r, t.gold FROM {keyed} b JOIN (SELECT * FROM {truth} JOIN (SELECT r, gold FROM {prefix}gold) "
            f"USING (r)) t USING ({forms}))"
        )
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE {prefix}truths AS SELECT coalesce(i.g, f.r) AS g, min(trim(gold)) AS gold, "
        f"max(trim(gold)) <> min(trim(gold)) AS several FROM {found} f LEFT JOIN {prefix}ids i ON i.r = f.r "
        "WHERE trim(gold) <> '' GROUP BY ALL"
    )
    names = ", ".join("?" for _ in source.classes)
    known = f"gold IN ({names}) OR gold IN (SELECT lab FROM {source.labels})"
    unknown, several = con.execute(
        f"SELECT count(*) FILTER (NOT ({known})), count(*) FILTER (several) FROM {prefix}truths",
        list(source.classes),
    ).fetchall()[0]
    wrong = "CASE WHEN l.code <> coalesce(t.code, list_position(?::VARCHAR[], gold) - 1) THEN w ELSE 0 END"
    rows = con.execute(
        f"SELECT s.g, sum({wrong})::BIGINT, sum(w)::BIGINT FROM {prefix}truths s LEFT JOIN {source.labels} t "
        f"ON t.lab = s.gold JOIN (SELECT coalesce(i.g, v.r) AS g, v.lab, v.w FROM {source.votes} v LEFT JOIN "
        f"{prefix}ids i ON i.r = v.r) v ON v.g = s.g JOIN {source.labels} l ON l.lab = v.lab "
        f"WHERE NOT several AND ({known}) GROUP BY s.g ORDER BY s.g",
        [list(source.classes), *source.classes],
    ).fetchall()
    return GoldCounts(rows, int(unknown), int(several))


def _read_gold(repeats: Repeats, path: str, reading: dict[str, Any]) -> None:
    """Make the table ``gold``: r, the item's columns and the gold label, from a file."""
    columns, source = repeats.columns, repeats.source
    if not columns.item:
        raise InputError(
            f"--gold {path}: rows are items of their own here; name the gold column of this file instead"
        )
    with open_table(path, **reading) as table:
        lacking = [name for name in columns.item if name not in table.columns]
        if lacking:
            raise InputError(
                f"{path}: there is no column {lacking[0]!r}; a gold file has the item's columns "
                f"({', '.join(columns.item)}) and the gold label"
            )
        others = [name for name in table.columns if name not in columns.item]
        named = [
            name for name in others if name == columns.label or name.lower() in ("truth", "gold", "label")
        ]
        chosen = others if len(others) == 1 else named
        if len(chosen) != 1:
            raise InputError(
                f"{path}: which column is the gold label? beside the item's columns keep one, or call it gold"
            )
        rows = [row for batch in table.rows([*columns.item, chosen[0]]) for row in batch]
    cells = dict(zip((*source.items, "gold"), zip(*rows, strict=True), strict=True))
    lists = ", ".join(f"unnest(?::VARCHAR[]) AS {name}" for name in cells)
    source.con.execute(
        f"CREATE OR REPLACE TEMP TABLE {source.prefix}gold AS "
        f"SELECT row_number() OVER () AS r, * FROM (SELECT {lists})",
        [list(column) for column in cells.values()],
    )
