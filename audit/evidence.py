"""What the alarms look at: the numbers of an audit, gathered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import stats

from audit.patterns import CountPatterns, IntArray, PairContrast
from audit.results import (
    Comparison,
    Disagreement,
    ErrorRates,
    Estimate,
    GoldCheck,
    LadderRung,
    Moments,
    Reweighted,
)

__all__ = ["Copies", "Evidence", "deduplicated"]


@dataclass(frozen=True, kw_only=True)
class Copies:
    """Rows that repeat a record: how many, by which evidence, and the repeats that are left without them."""

    rows: int
    by_row_id: bool
    without: CountPatterns
    contrast: PairContrast | None = None


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Everything the checks look at."""

    patterns: CountPatterns
    d: Disagreement
    kappa: Estimate
    class_rows: IntArray
    unused: tuple[str, ...] = ()
    ladder: tuple[LadderRung, ...] = ()
    normalise: str = "case"
    spellings: tuple[tuple[str, ...], ...] = ()
    merged: bool = False
    copies: Copies | None = None
    contrasts: Mapping[str, tuple[str, PairContrast]] = field(default_factory=dict)
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    split: str | None = None
    reweighted: tuple[Reweighted, ...] = ()
    moments: Moments | None = None
    errors: ErrorRates | None = None
    gold: GoldCheck | None = None

    @cached_property
    def refused(self) -> str | None:
        """Why the repeats look de-duplicated or multi-label, see :func:`deduplicated`; None where they do not."""
        return deduplicated(self.patterns, self.class_rows)


def deduplicated(patterns: CountPatterns, class_rows: IntArray) -> str | None:
    """Why the repeats look de-duplicated on (item, label) or multi-label, or None.

    True when far fewer pairs agree than labels drawn at random with the file's class shares would
    (one-sided binomial test at .0005 over items, each item's agreement of its first pair taken as its share).
    """
    repeated = patterns.repeated
    items, labelled = repeated.item_total, int(class_rows.sum())
    if items < 5 or labelled == 0:
        return None
    chance = float(np.sum((class_rows / labelled) ** 2))
    agreeing = float((1.0 - repeated.disagreement) @ repeated.items)
    if stats.binom.cdf(round(agreeing), items, chance) >= 0.0005 or agreeing / items > 0.5 * chance:
        return None
    conflicts = int(repeated.items[repeated.disagreement > 0].sum())
    return (
        f"the file looks de-duplicated or multi-label: {conflicts} of {items} repeated items conflict, where labels "
        f"drawn at random would agree on {chance:.0%} of repeats; equal repeats were removed, or an item may carry "
        "several labels"
    )
