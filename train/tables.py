"""Tables as plain text and as Markdown, with cells shown as the HTML page shows them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from audit.render_words import visible

__all__ = ["Cell", "aligned", "escaped", "pipes", "shown"]

Cell = str | int | float | bool | None


def shown(cell: Cell) -> str:
    """A cell as text: whole numbers with thousands separated, others with three decimals, – for none."""
    if cell is None or cell == "" or cell != cell:
        return "–"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, str):
        return visible(cell, one_line=True)
    return (f"{cell:,}" if isinstance(cell, int) else f"{cell:,.3f}").replace("-", "−")


def aligned(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[str]:
    """Lines of a table in columns of one width, figures at the right."""
    lines = [list(columns), *([shown(cell) for cell in row] for row in rows)]
    width = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    right = [bool(rows) and not _is_text(rows, i) for i in range(len(columns))]
    out = []
    for line in lines:
        cells = (cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(line, width, right, strict=True))
        out.append(f"  {'  '.join(cells)}".rstrip())
    return out


def pipes(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[str]:
    """Lines of a Markdown table, every cell escaped."""
    side = ["---" if _is_text(rows, i) else "---:" for i in range(len(columns))]
    lines = [
        [escaped(name) for name in columns],
        side,
        *([escaped(shown(cell)) for cell in row] for row in rows),
    ]
    return [f"| {' | '.join(line)} |" for line in lines]


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return re.sub(r"([\\`*_<>\[\]|#~&])", r"\\\1", visible(text, one_line=True))


def _is_text(rows: Sequence[Sequence[Cell]], column: int) -> bool:
    return any(isinstance(row[column], (str, bool)) for row in rows)
