"""What a run did, as a result that keeps its counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relabel.escalate import GoldThreshold, Policy
from relabel.progress import RoleTotals

__all__ = ["SCHEMA_VERSION", "RunResult"]

SCHEMA_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """A finished run.

    Parameters
    ----------
    rows, items, empty:
        Rows of the input, distinct items among them, rows without text.
    judge, adjudicator:
        What each did (``adjudicator`` is None where there is none).
    policy, escalated, threshold:
        How items were chosen for the adjudicator, how many were, and what gold vouches for.
    sources, statuses, labels:
        Rows by who gave the label, by status, by label.
    compared, kept:
        Rows with an old and a new label, and those of them where both are the same.
    stopped:
        Why the run ended early, or empty.
    cost, cost_of_journal:
        US dollars paid by this run, and by all runs of the journal; None where a price is not known.
    """

    rubric: Mapping[str, str]
    rows: int
    items: int
    empty: int
    judge: RoleTotals
    adjudicator: RoleTotals | None
    policy: Policy
    escalated: int
    threshold: GoldThreshold | None
    gold: Mapping[str, Any] | None
    sources: Mapping[str, int]
    statuses: Mapping[str, int]
    labels: Mapping[str, int]
    compared: int
    kept: int
    stopped: str
    cost: float | None
    cost_of_journal: float | None
    seconds: float
    out: str
    unresolved: str | None
    journal: str

    @property
    def without_verdict(self) -> int:
        """Rows that have no verdict."""
        return self.rows - self.statuses.get("ok", 0)

    @property
    def exit_code(self) -> int:
        """0, or 3 where rows have no verdict."""
        return 3 if self.without_verdict else 0

    def to_dict(self) -> dict[str, Any]:
        """The JSON that ``--format json`` prints (described in docs/relabel.md)."""
        return {
            "schema_version": SCHEMA_VERSION,
            "rubric": dict(self.rubric),
            "data": {"rows": self.rows, "items": self.items, "empty": self.empty},
            "judge": self.judge.to_dict(),
            "adjudicator": self.adjudicator.to_dict() if self.adjudicator else None,
            "escalation": {
                **self.policy.to_dict(),
                "items": self.escalated,
                "share": self.escalated / self.judge.items if self.judge.items else 0.0,
                "threshold": self.threshold.to_dict() if self.threshold else None,
            },
            "gold": None if self.gold is None else dict(self.gold),
            "result": {
                "sources": dict(self.sources),
                "statuses": dict(self.statuses),
                "labels": dict(self.labels),
                "without_verdict": self.without_verdict,
            },
            "old_labels": {
                "compared": self.compared,
                "kept": self.kept,
                "share": self.kept / self.compared if self.compared else None,
            },
            "cost": self.cost,
            "cost_of_journal": self.cost_of_journal,
            "seconds": self.seconds,
            "stopped": self.stopped or None,
            "out": self.out,
            "unresolved": self.unresolved,
            "journal": self.journal,
        }

    def summary(self) -> str:
        """A few lines for a person."""
        lines = [f"{self.rows:,} rows, {self.items:,} distinct items, rubric {self.rubric['version']}"]
        for name, role in (("judge", self.judge), ("adjudicator", self.adjudicator)):
            if role is not None:
                parts = [
                    f"{role.items:,} items",
                    f"{role.asked:,} asked",
                    f"{role.reused:,} from the journal",
                ]
                if role.cost is not None:
                    parts.append(f"${role.cost:.4f}")
                lines.append(f"{name} {role.model}: {', '.join(parts)}")
        if self.threshold:
            t = self.threshold
            lines.append(
                f"gold: of what the judge gives a confidence of {t.threshold:.4f} or more ({t.coverage:.1%} of gold)"
                f" {t.agreed} of {t.kept} agree; at least {t.lower:.3f}, with probability {1 - t.delta:.0%}"
            )
        if self.gold is not None:
            lines.append(
                f"gold (column {self.gold['column']}): the judge agrees on {self.gold['agreed']:,} of"
                f" {self.gold['labelled']:,} items"
            )
            lines += [
                f"  its confidence ({one['kind']}): {one['confidence']:.3f} on average, right on"
                f" {one['accuracy']:.3f}; ECE {one['ece']:.3f} (chance alone: {one['ece_by_chance']:.3f})"
                for one in self.gold["calibration"]
            ]
        lines.append("labels from " + ", ".join(f"{who} {n:,}" for who, n in self.sources.items()))
        if self.compared:
            lines.append(f"{self.kept / self.compared:.1%} of {self.compared:,} old labels are kept")
        if self.cost is None:
            lines.append("cost unknown: no price for this endpoint (--price-in, --price-out)")
        if self.stopped:
            lines.append(f"stopped early: {self.stopped}")
        lines.append(f"wrote {self.out}")
        if self.without_verdict:
            others = ", ".join(f"{name} {n:,}" for name, n in self.statuses.items() if name != "ok")
            lines.append(
                f"{self.without_verdict:,} rows have no verdict ({others}), listed in {self.unresolved}"
            )
            if self.without_verdict > self.statuses.get("empty", 0):
                lines[-1] += "; the same command goes on with them"
        return "\n".join(lines)
