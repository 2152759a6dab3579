"""The parts of an audit beyond the pair: limits of other metrics, error rates, and labels against a gold standard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from audit.agreement import class_shares
from audit.asymmetric import identified_set
from audit.dawid_skene import annotator_errors, votes_of
from audit.disagreement import ratio_mean
from audit.grouping import Repeats
from audit.grouping_gold import against_gold
from audit.latent import latent_classes
from audit.metric_limits import bound_metrics
from audit.patterns import CountPatterns
from audit.results import (
    Disagreement,
    ErrorRates,
    FlipRate,
    GoldCheck,
    IdentifiedSet,
    LatentClasses,
    MetricLimits,
    Settings,
)

#: Share of labels or items that strata may cut off: a few slips of the pen, and no more.
_MOST_ACROSS = 0.01

__all__ = ["check_gold", "error_rates", "limits_of_metrics"]


def limits_of_metrics(patterns: CountPatterns, d: Disagreement, rate: FlipRate) -> MetricLimits:
    """Limits at the audited d; of two classes the rarer among the repeats counts as positive."""
    if d.estimate is None or rate.estimate is None:
        return MetricLimits(reason=rate.reason or d.reason)
    if rate.classes != 2:
        return MetricLimits(limits=bound_metrics(d.estimate, classes=rate.classes, loosest=d.low))
    shares = class_shares(patterns)
    positive = int(np.argmin(shares[::-1])) ^ 1  # of equal shares the last class
    share = float(shares[positive])
    if not 0.0 < share < 1.0:
        return MetricLimits(reason="the repeats carry one class only")
    return MetricLimits(
        positive=patterns.classes[positive],
        share=share,
        limits=bound_metrics(d.estimate, share=share, loosest=d.low),
    )


def error_rates(
    repeats: Repeats, *, strata: str | None, settings: Settings, refused: str | None
) -> ErrorRates:
    """What the repeats say of the errors: as pairs, as several labels an item, by strata and by annotator."""
    patterns, level, seed = repeats.patterns, settings.level, settings.seed

    def absent(method: str, reason: str) -> LatentClasses:
        return LatentClasses(method=method, reason=reason)

    if refused is not None or patterns.item_total == 0:
        why = refused or "no item has two labels"
        return ErrorRates(
            pairs=IdentifiedSet(reason=why), repeats=absent("latent classes", why), strata=absent("Hui-Walter", why),
            annotators=absent("Dawid-Skene", why),
        )  # fmt: skip
    pairs = IdentifiedSet(reason="the set of pairs is for two classes")
    if patterns.class_count == 2:
        shares = class_shares(patterns)
        pairs = identified_set(patterns, positive=int(np.argmin(shares[::-1])) ^ 1, level=level)
    by_strata = absent("Hui-Walter", "no strata are named: --strata COLUMN")
    if strata is not None:
        parts = repeats.patterns_by(strata)
        if _across(patterns, parts) > _MOST_ACROSS:
            by_strata = absent(
                "Hui-Walter",
                f"labels of one item have several values of {strata}: strata are of items, not of labels",
            )
        else:
            by_strata = latent_classes(parts, level=level, seed=seed)
        if by_strata.method != "Hui-Walter":
            by_strata = absent("Hui-Walter", f"{strata} has one value only among the repeats")
    votes = repeats.annotator_votes()
    annotators = absent("Dawid-Skene", "no annotators are named: --annotator COLUMN")
    if votes:
        annotators = annotator_errors(votes_of(votes, classes=repeats.classes), level=level, seed=seed)
    return ErrorRates(
        pairs=pairs, repeats=latent_classes({"": patterns}, level=level, seed=seed), strata=by_strata,
        annotators=annotators,
    )  # fmt: skip


def _across(patterns: CountPatterns, parts: Mapping[str, CountPatterns]) -> float:
    """How far strata cut through items: the share of labels that stand alone then, or of items that become several."""
    whole, cut = patterns.repeated, [part.repeated for part in parts.values()]
    labels = float(whole.sizes @ whole.items)
    alone = 1.0 - sum(float(part.sizes @ part.items) for part in cut) / labels
    return max(alone, sum(part.item_total for part in cut) / whole.item_total - 1.0)


def check_gold(
    repeats: Repeats, gold: str, *, rate: FlipRate, level: float = 0.95, **reading: Any
) -> GoldCheck:
    """The share of labels that differ from gold, and whether 1 - epsilon lies above 1 minus that share.

    Each label counts once; the interval is that of a ratio over items.
    """
    counts = against_gold(repeats, gold, **reading)
    labels = int(counts.labels.sum())
    notes = []
    if counts.unknown:
        notes.append(f"{counts.unknown} gold labels are no declared class and were left out")
    if counts.contradictory:
        notes.append(f"{counts.contradictory} items have several gold labels and were left out")
    if not labels:
        notes.insert(0, "no labelled item has a gold label")
        error = ratio_mean(np.zeros(0), np.zeros(0), np.zeros(0, np.int64), level=level)
    else:
        scale = counts.labels.max()
        error = ratio_mean(
            counts.wrong / scale, counts.labels / scale, np.ones(len(counts.labels), np.int64), level=level
        )
    above = None
    if error.estimate is not None and rate.estimate is not None:
        above = 1.0 - rate.estimate >= 1.0 - error.estimate
    return GoldCheck(
        source=gold, items=len(counts.labels), labels=labels, error=error, flip_rate=rate.estimate, above=above,
        reason="; ".join(notes) or None,
    )  # fmt: skip
