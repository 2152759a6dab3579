"""Looking before running: is a rubric fit for use, what would be sent, what does a journal hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audit.reading import open_table
from relabel.cost import find_price
from relabel.journal import Journal, Spent
from relabel.prompts import messages
from relabel.rubric import Problem, Rubric
from relabel.worklist import Worklist

__all__ = ["JournalStatus", "RubricReport", "check_rubric", "journal_status"]


@dataclass(frozen=True, kw_only=True)
class RubricReport:
    """A checked rubric, its problems, and the messages for one row (invented where no data were given)."""

    rubric: Rubric
    problems: tuple[Problem, ...]
    messages: tuple[Mapping[str, str], ...]

    @property
    def usable(self) -> bool:
        """Whether a run would take it."""
        return not any(problem.fatal for problem in self.problems)

    def to_dict(self) -> dict[str, Any]:
        """The JSON that ``--format json`` prints."""
        return {
            "name": self.rubric.name,
            "version": self.rubric.version,
            "hash": self.rubric.hash,
            "labels": list(self.rubric.label_names),
            "default_label": self.rubric.default_label,
            "inputs": list(self.rubric.input_columns),
            "clauses": [clause.id for clause in self.rubric.clauses],
            "usable": self.usable,
            "problems": [problem.to_dict() for problem in self.problems],
            "messages": [dict(message) for message in self.messages],
        }

    def summary(self) -> str:
        """The rubric in a few lines, then the messages."""
        r = self.rubric
        lines = [
            f"rubric {r.name}, version {r.version}, hash {r.hash[:12]}",
            f"labels {', '.join(r.label_names)}; default {r.default_label or 'none'};"
            f" reads {', '.join(r.input_columns)}; {len(r.clauses)} numbered clauses",
        ]
        lines += [f"{'problem' if p.fatal else 'advice'}: {p.message}" for p in self.problems]
        lines += ["" if self.usable else "not fit for use"] if self.problems else ["no problem found", ""]
        for message in self.messages:
            lines += [f"--- {message['role']} ---", message["content"]]
        return "\n".join(lines)


def check_rubric(path: str | Path, *, data: Any = None, row: int = 1, **reading: Any) -> RubricReport:
    """Read and check a rubric, and make the messages for data row ``row`` (from 1)."""
    rubric = Rubric.load(path)
    texts: Mapping[str, str] = {column: f"(the text in column {column})" for column in rubric.input_columns}
    if data is not None:
        with (
            open_table(data, **reading) as table,
            Worklist(table, inputs=rubric.inputs(table.columns, source=table.report.source)) as worklist,
        ):
            texts = worklist.item_of(row).row
    return RubricReport(rubric=rubric, problems=rubric.check(), messages=messages(rubric, texts))


@dataclass(frozen=True, kw_only=True)
class JournalStatus:
    """What a journal holds: replies by status, tokens by model, US dollars by the price list."""

    path: str
    statuses: Mapping[str, int]
    spent: tuple[Spent, ...]
    costs: tuple[float | None, ...]

    def to_dict(self) -> dict[str, Any]:
        """The JSON that ``--format json`` prints."""
        return {
            "journal": self.path,
            "statuses": dict(self.statuses),
            "models": [
                {
                    "model": spent.model,
                    "base_url": spent.base_url,
                    "replies": spent.replies,
                    "prompt_tokens": spent.prompt_tokens,
                    "completion_tokens": spent.completion_tokens,
                    "price_share": spent.share,
                    "cost": cost,
                }
                for spent, cost in zip(self.spent, self.costs, strict=True)
            ],
        }

    def summary(self) -> str:
        """A few lines for a person."""
        lines = [f"{self.path}: " + (", ".join(f"{k} {n:,}" for k, n in self.statuses.items()) or "empty")]
        for spent, cost in zip(self.spent, self.costs, strict=True):
            price = "price unknown" if cost is None else f"${cost:,.4f}"
            price += "" if spent.share == 1 else f" ({spent.share:.0%} of the full price: by batch)"
            lines.append(
                f"{spent.model} at {spent.base_url}: {spent.replies:,} replies,"
                f" {spent.prompt_tokens:,} + {spent.completion_tokens:,} tokens, {price}"
            )
        return "\n".join(lines)


def journal_status(path: str | Path) -> JournalStatus:
    """Look into a journal, also while a run writes to it."""
    with Journal(path, read_only=True) as journal:
        spent = journal.spent()
        prices = [find_price(s.model, base_url=s.base_url) for s in spent]
        return JournalStatus(
            path=str(path),
            statuses=journal.counts(),
            spent=spent,
            costs=tuple(s.cost(price) for price, s in zip(prices, spent, strict=True)),
        )
