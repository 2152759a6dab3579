"""What a comparison of runs holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from audit.ceiling import Placement
from audit.results import Estimate, Result
from train.compare_folders import Cost, LeftOut, Run
from train.pressure_band import AuditBand

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Arm", "Difference", "RunComparison", "RunRow"]


@dataclass(frozen=True, kw_only=True)
class RunRow(Result):
    """One run: its training rows, its metrics on the split with intervals over items, and its cost.

    ``placement`` sets its accuracy against labels as they came in the audit's band; None where it has none.
    """

    name: str
    arm: str
    rung: str
    seed: int | None
    rows: int | None
    metrics: Mapping[str, Estimate]
    cost: Cost
    placement: Placement | None = None


@dataclass(frozen=True, kw_only=True)
class Arm(Result):
    """Runs that differ in their seed alone: mean and standard deviation of the metric, and Student's interval."""

    name: str
    rung: str
    runs: tuple[str, ...]
    seeds: tuple[int | None, ...]
    mean: Estimate
    sd: float | None


@dataclass(frozen=True, kw_only=True)
class Difference(Result):
    """``arm`` less ``against`` in the metric, on the same items.

    ``p_value`` is of ``test``; ``p_holm`` is adjusted for all differences of the table. ``seeds`` says that the
    interval covers other seeds too, not other items alone. ``others`` holds further metrics with their intervals.
    """

    arm: str
    against: str
    difference: Estimate
    p_value: float | None
    p_holm: float | None
    test: str
    seeds: bool
    others: Mapping[str, Estimate]
    verdict: str = ""


@dataclass(frozen=True, kw_only=True)
class RunComparison(Result):
    """Everything ``audit train compare`` found; :mod:`train.compare_render` shows it."""

    split: str
    metric: str
    items: int
    positives: int
    positive: str
    key: str
    baseline: str
    level: float
    draws: int
    seed: int
    verdict: tuple[str, ...]
    runs: tuple[RunRow, ...]
    arms: tuple[Arm, ...]
    differences: tuple[Difference, ...]
    band: AuditBand | None
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]
    sources: tuple[Run, ...] = field(default=(), metadata={"json": False}, repr=False)

    def summary(self) -> str:
        """The verdict in words, one sentence a line."""
        return "\n".join((*self.verdict, *self.notes))

    __str__ = summary

    def to_frame(self) -> pd.DataFrame:
        """One row per run and metric: who it is, the metric with its limits, and the run's cost."""
        import pandas as pd

        columns = "run arm rung seed rows metric estimate low high seconds tokens rollouts".split()
        rows = [
            (r.name, r.arm, r.rung, r.seed, r.rows, metric, e.estimate, e.low, e.high, r.cost.seconds, r.cost.tokens,
             r.cost.rollouts)
            for r in self.runs
            for metric, e in r.metrics.items()
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=columns)
