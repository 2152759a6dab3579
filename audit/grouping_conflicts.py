"""The items whose labels disagree, hardest first."""

from __future__ import annotations

from audit.grouping_rows import Rows
from audit.results import ConflictGroup, ConflictRow

__all__ = ["conflict_groups", "hardest_items"]

_MOST_ITEMS = (1 << 63) - 1  # what LIMIT can hold
_MOST_ROWS = 100


def hardest_items(votes: str, *, limit: int | None) -> str:
    """SQL for the disagreeing items: place (from 1), g, d (d_i) and n (labels).

    The order is by d_i, the largest first, then by the number of labels, then by place in the file.
    """
    cells = f"SELECT g, sum(w) AS n FROM {votes} GROUP BY g, code"
    items = f"SELECT g, sum(n) AS n, sum(n * (n - 1)) AS same FROM ({cells}) GROUP BY g HAVING count(*) > 1"
    scored = f"SELECT g, n::BIGINT AS n, 1.0 - same::DOUBLE / (n * (n - 1))::DOUBLE AS d FROM ({items})"
    return (
        f"(SELECT row_number() OVER (ORDER BY d DESC, n DESC, g) AS place, * FROM ({scored}) "
        f"ORDER BY place{'' if limit is None else f' LIMIT {min(limit, _MOST_ITEMS):d}'})"
    )


def conflict_groups(rows: Rows, votes: str, *, limit: int | None) -> list[ConflictGroup]:
    """The hardest items of the table ``votes``, each as its first row has it and with up to 100 of its rows.

    ``details`` of a row are the columns that tell rows apart; in wide form also the column of the vote, with counts
    the number of votes.
    """
    con, hardest, names = rows.con, hardest_items(votes, limit=limit), rows.columns.details
    texts = ", ".join(f"coalesce(b.{name}, '')" for name in rows.items)
    heads = con.execute(
        f"SELECT place, d, [{texts}]::VARCHAR[] FROM {hardest} h JOIN {rows.base} b ON b.rowid = h.g ORDER BY place"
    ).fetchall()
    cells = (
        f"SELECT place, code, sum(w)::BIGINT FROM {votes} JOIN {hardest} USING (g) GROUP BY ALL ORDER BY ALL"
    )
    counts: dict[int, dict[str, int]] = {}
    for place, code, labels in con.execute(cells).fetchall():
        counts.setdefault(place, {})[rows.classes[code]] = labels
    columns = ", ".join(("place", "r", "code", "w", "who", *(f"c{k}" for k in range(len(names)))))
    shown = (
        f"SELECT {columns} FROM {votes} JOIN {hardest} USING (g) "
        f"QUALIFY row_number() OVER (PARTITION BY g ORDER BY r, code, who) <= {_MOST_ROWS} ORDER BY place, r, code, who"
    )
    listed: dict[int, list[ConflictRow]] = {}
    for place, row, code, times, who, *values in con.execute(shown).fetchall():
        details: dict[str, str | None] = dict(zip(names, values, strict=True))
        if rows.columns.label_columns:
            details["column"] = who
        if rows.columns.counts:
            details["votes"] = str(times)
        listed.setdefault(place, []).append(
            ConflictRow(row=row + 1, label=rows.classes[code], details=details)
        )
    return [
        ConflictGroup(
            item=tuple(item) or (f"row {listed[place][0].row}",),  # a row is an item of its own
            counts=counts[place],
            disagreement=d,
            rows=tuple(listed[place]),
        )
        for place, d, item in heads
    ]
