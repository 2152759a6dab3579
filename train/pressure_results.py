"""What the report of a ledger holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from audit.results import Estimate, Result
from train.pressure_band import AuditBand

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Final", "Look", "Looks", "Placed", "PressureReport"]


@dataclass(frozen=True, kw_only=True)
class Looks(Result):
    """How often one family of models was scored on one split: evaluations, distinct models, and the best score."""

    split: str
    family: str
    purpose: str
    looks: int
    models: int
    best: float | None
    first: str
    last: str


@dataclass(frozen=True, kw_only=True)
class Look(Result):
    """One evaluation: its number in the ledger's order, and its score with an interval where counts allow one."""

    number: int
    run: str
    family: str
    model: str
    split: str
    purpose: str
    score: Estimate


@dataclass(frozen=True, kw_only=True)
class Final(Result):
    """A model whose holdout was opened.

    ``drop`` is validation less holdout. ``models`` of its family, and ``models_all`` of any, had been scored on the
    validation split before; ``expected`` and ``expected_all`` are the most that choosing the best of as many equally
    good models gains on average. ``correlation`` is that of being right on an item; None: not known, taken as 0.
    ``holdout_error`` is the standard error of the holdout's score. ``forced`` holds the reasons of openings after the
    first.
    """

    run: str
    family: str
    model: str
    split: str
    validation_split: str | None
    key: str | None
    rows: int | None
    validation_rows: int | None
    validation: Estimate
    holdout: Estimate
    drop: Estimate
    looks: int
    models: int
    models_all: int
    correlation: float | None
    expected: float | None
    expected_all: float | None
    holdout_error: float | None
    openings: int
    forced: tuple[str, ...]
    same_rows: bool
    verdict: str = ""


@dataclass(frozen=True, kw_only=True)
class Placed(Result):
    """The last accuracy of a run against labels as they came, in the ceiling band of the audit."""

    run: str
    model: str
    split: str
    score: Estimate
    position: str
    message: str


@dataclass(frozen=True, kw_only=True)
class PressureReport(Result):
    """Everything ``audit train pressure`` found; :mod:`train.pressure_render` shows it."""

    ledger: str
    metric: str
    level: float
    verdict: tuple[str, ...]
    looks: tuple[Looks, ...]
    finals: tuple[Final, ...]
    band: AuditBand | None
    placed: tuple[Placed, ...]
    notes: tuple[str, ...]
    damaged: tuple[int, ...]
    scores: tuple[Look, ...] = field(default=(), metadata={"json": False})
    noise: float | None = field(default=None, metadata={"json": False})

    def summary(self) -> str:
        """The verdict in words, one sentence a line."""
        return "\n".join((*self.verdict, *self.notes))

    __str__ = summary

    def to_frame(self) -> pd.DataFrame:
        """One row per final model: scores, drop with its limits, looks, and the gain expected from choosing."""
        import pandas as pd

        columns = (
            "run family model split validation holdout drop low high looks models expected openings".split()
        )
        rows = [
            (f.run, f.family, f.model, f.split, f.validation.estimate, f.holdout.estimate, f.drop.estimate, f.drop.low,
             f.drop.high, f.looks, f.models, f.expected, f.openings)
            for f in self.finals
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=columns)
