"""Frozen results of the audit: plain values, the counts behind them, and one dictionary form.

``to_dict()`` of :class:`AuditResult` is what ``--format json`` prints. Its layout is versioned
(:data:`SCHEMA_VERSION`) and described in ``docs/schema.json``. Every number that does not exist is ``None``
and has a ``reason`` beside it; nothing is clipped and nothing is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from audit.results_base import Estimate, Result
from audit.results_beyond import (
    DependentPair,
    ErrorRates,
    Gate,
    GoldCheck,
    IdentifiedSet,
    LatentClasses,
    MetricLimit,
    MetricLimits,
    Moments,
    Range,
    Rate,
    Rater,
    Stratum,
)
from audit.results_frame import COLUMNS, estimate_rows
from audit.results_near import NearDuplicates

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "SCHEMA_VERSION",
    "Agreement",
    "Alarm",
    "AuditResult",
    "Breakdown",
    "Ceiling",
    "Comparison",
    "ConflictGroup",
    "ConflictRow",
    "CopiedShare",
    "DataSummary",
    "DependentPair",
    "Disagreement",
    "ErrorRates",
    "Estimate",
    "FlipRate",
    "Gate",
    "GoldCheck",
    "GroupSize",
    "IdentifiedSet",
    "LadderRung",
    "LatentClasses",
    "MetricLimit",
    "MetricLimits",
    "Moments",
    "OneRival",
    "Range",
    "Rate",
    "Rater",
    "RepeatSummary",
    "Result",
    "Reweighted",
    "Settings",
    "Stratum",
    "Verdict",
]

#: Version of the layout of ``AuditResult.to_dict()``; the first number changes when a path moves or vanishes.
SCHEMA_VERSION = "1.1"


@dataclass(frozen=True, kw_only=True)
class DataSummary(Result):
    """What was read, and how it was understood."""

    source: str
    format: str
    encoding: str | None
    delimiter: str | None
    item: tuple[str, ...]
    label: str | None
    label_columns: tuple[str, ...] = ()
    rows: int
    missing_label: int
    missing_item: int
    items: int
    classes: tuple[str, ...]
    class_rows: tuple[int, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class GroupSize(Result):
    """Items that have exactly ``size`` labels: how many, how many of them disagree, and their mean d_i."""

    size: int
    items: int
    conflicts: int
    estimate: float


@dataclass(frozen=True, kw_only=True)
class LadderRung(Result):
    """The repeats found when texts are compared at one level of normalisation."""

    level: str
    items: int
    rows: int
    conflicts: int
    estimate: float | None


@dataclass(frozen=True, kw_only=True)
class RepeatSummary(Result):
    """The repeated items: those with at least two labels.

    ``rows`` are their labels, ``pairs`` the pairs of labels within items, ``conflicts`` the items whose labels
    are not all equal.
    """

    items: int
    rows: int
    pairs: int
    conflicts: int
    sizes: tuple[GroupSize, ...] = ()
    normalise: str = "case"
    ladder: tuple[LadderRung, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Disagreement(Estimate):
    """d, the chance that two labels of one item differ; each repeated item counts once."""

    pair_weighted: float | None
    row_weighted: float | None
    level: float
    weightings_differ: bool = False
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class OneRival(Result):
    """The flip rate if all errors of a class go to one rival class (the K = 2 form)."""

    estimate: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class FlipRate(Estimate):
    """epsilon_K, the chance that a label is not the item's most likely one, if equal for all items."""

    classes: int
    one_rival: OneRival
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Ceiling(Result):
    """The band that holds the best accuracy any predictor can have against these labels.

    ``lower``/``upper`` are 1 - d and 1 - epsilon at the point estimate, ``low``/``high`` the band widened by
    sampling error: [1 - d_high, 1 - epsilon_K(d_low)]. ``prevalence_lower`` is the tighter lower end of binary
    labels, 1 - min(d, m, 1 - m) with m the share of one class; ``None`` for K > 2. ``moments`` are the bounds from
    items with three labels or more.
    """

    lower: float | None
    upper: float | None
    low: float | None
    high: float | None
    prevalence_lower: float | None = None
    moments: Moments = field(default_factory=Moments)
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Agreement(Result):
    """Chance-corrected agreement of the repeats: retest kappa and Krippendorff's alpha (nominal)."""

    kappa: Estimate
    alpha: Estimate
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Breakdown(Estimate):
    """d among the repeats that share one value of a column."""

    value: str
    items: int
    pairs: int
    conflicts: int
    share: float | None = None


@dataclass(frozen=True, kw_only=True)
class Comparison(Result):
    """Is d the same for every value of a column, and within values as across them?

    ``p_value`` is of the test named in ``method``. ``within`` and ``across`` hold d over pairs of labels that
    share a value or do not; ``items_across`` is the number of items that have labels under several values.
    """

    column: str
    p_value: float | None
    method: str
    within: Estimate | None = None
    across: Estimate | None = None
    items_across: int = 0
    contrast_p_value: float | None = None
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class CopiedShare(Result):
    """If a share c of the pairs were copies of one opinion: d = d_obs/(1 - c) and what follows from it."""

    share: float
    disagreement: float | None
    flip_rate: float | None


@dataclass(frozen=True, kw_only=True)
class Reweighted(Result):
    """d with the repeated items weighted to the make-up of the whole file by one characteristic."""

    by: str
    estimate: float | None
    shift: float | None
    p_value: float | None
    cramers_v: float | None


@dataclass(frozen=True, kw_only=True)
class Alarm(Result):
    """Something that may make the audit lie, with its figures and the option that acts on it.

    ``severity`` is ``"stop"`` (no flip rate), ``"warning"`` or ``"note"``.
    """

    code: str
    severity: str
    message: str
    action: str
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Verdict(Result):
    """The result in words: one headline and what to do next."""

    headline: str
    next_steps: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Settings(Result):
    """Everything that a second run needs to give the same numbers."""

    version: str
    level: float
    draws: int
    seed: int
    normalise: str
    interval: str
    merge_labels: bool
    drop_copies: bool
    one_per: str | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ConflictRow(Result):
    """One row of a disagreeing item: its 1-based data row, its label and the columns that tell it apart."""

    row: int
    label: str
    details: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ConflictGroup(Result):
    """An item whose labels disagree, as shown in the report."""

    item: tuple[str, ...]
    counts: Mapping[str, int]
    disagreement: float
    rows: tuple[ConflictRow, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AuditResult(Result):
    """Everything ``audit dupes`` found; see :func:`audit.render.render`."""

    schema_version: str = SCHEMA_VERSION
    verdict: Verdict
    data: DataSummary
    repeats: RepeatSummary
    disagreement: Disagreement
    flip_rate: FlipRate
    ceiling: Ceiling
    agreement: Agreement
    metrics: MetricLimits = field(default_factory=MetricLimits)
    by: Mapping[str, tuple[Breakdown, ...]] = field(default_factory=dict)
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    copied_share: tuple[CopiedShare, ...] = ()
    reweighted: tuple[Reweighted, ...] = ()
    errors: ErrorRates | None = None
    gold: GoldCheck | None = None
    near: NearDuplicates | None = None
    semantic: NearDuplicates | None = None
    gate: Gate | None = None
    alarms: tuple[Alarm, ...] = ()
    settings: Settings
    conflicts: tuple[ConflictGroup, ...] = field(default=(), metadata={"json": False})
    #: The counts behind it all, an :class:`audit.patterns.CountPatterns`.
    patterns: Any = field(default=None, repr=False, compare=False, metadata={"json": False})

    def summary(self) -> str:
        """The verdict in words, one sentence a line; also what ``str`` gives."""
        return "\n".join((self.verdict.headline, *self.verdict.next_steps))

    __str__ = summary

    def to_frame(self) -> pd.DataFrame:
        """One row per number: quantity, column, value, items, estimate, low, high, method.

        Bands and ranges have a row for each end (``value`` lower and upper) whose sampling error is on the outer side.
        Of ``annotator_error`` the items are labels, of ``near`` clusters.
        """
        import pandas as pd

        return pd.DataFrame(list(estimate_rows(self)), columns=list(COLUMNS))
