"""From labels of the same items to measures: the analyzer of ``audit dupes``, and the accuracy on gold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from audit.agreement import class_shares, estimate_agreement
from audit.ceiling import ceiling_band
from audit.disagreement import by_class, estimate_disagreement
from audit.fliprate import estimate_flip_rate
from audit.intervals import effective_interval, wilson
from audit.patterns import CountPatterns
from audit.results import Breakdown, Estimate
from relabel.agree_results import GoldReport, Measure
from relabel.calibration import calibrate_verdicts
from relabel.prevalence import Prevalence
from relabel.records import Verdict
from relabel.worklist import Decision

__all__ = ["Labels", "measure", "measure_gold", "paired_difference", "patterns_of", "share"]

Labels = Mapping[int, Sequence[str]]
"""Item -> its labels."""


def patterns_of(labels: Iterable[Sequence[str]], classes: Sequence[str]) -> CountPatterns:
    """Label counts of items; labels that are none of ``classes`` are not allowed."""
    place = {name: k for k, name in enumerate(classes)}
    table = [np.bincount([place[label] for label in row], minlength=len(classes)) for row in labels]
    return CountPatterns.from_counts(np.array(table).reshape(-1, len(classes)), classes=classes)


def measure(
    labels: Labels,
    *,
    classes: Sequence[str],
    sources: Mapping[int, str] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Measure:
    """d, flip rate, ceiling band and agreement of items with several labels, by class and by source.

    ``sources`` tells for each item who gave its label in the run.
    """
    patterns = patterns_of(labels.values(), classes)
    d = estimate_disagreement(patterns, level=level, seed=seed)
    rate = estimate_flip_rate(d, classes=len(classes))
    minority = float(class_shares(patterns).min()) if len(classes) == 2 else None
    parts = []
    for source in sorted(set((sources or {}).values())):
        part = patterns_of(
            [row for item, row in labels.items() if (sources or {}).get(item) == source], classes
        )
        found = estimate_disagreement(part, level=level, seed=seed)
        if found.estimate is not None:
            used = part.repeated
            parts.append(
                Breakdown(
                    value=source,
                    items=used.item_total,
                    pairs=int(used.pairs @ used.items),
                    conflicts=int(used.items[used.disagreement > 0].sum()),
                    estimate=found.estimate,
                    low=found.low,
                    high=found.high,
                    method=found.method,
                    share=used.item_total / patterns.repeated.item_total,
                )
            )
    repeated = patterns.repeated
    return Measure(
        items=repeated.item_total,
        labels=int(repeated.sizes @ repeated.items),
        disagreement=d,
        flip_rate=rate,
        ceiling=ceiling_band(d, rate, minority_share=minority),
        agreement=estimate_agreement(patterns, level=level),
        by_class=by_class(patterns, level=level),
        by_source=tuple(parts),
    )


def paired_difference(old: Labels, new: Labels, *, level: float = 0.95) -> Estimate:
    """Mean over items of d_i(old) - d_i(new), for items with two labels or more on both sides.

    The interval is that of `audit.intervals.effective_interval` for (difference + 1)/2.
    """
    scores = np.array([_d(old[item]) - _d(new[item]) for item in old if item in new])
    scores = scores[~np.isnan(scores)]
    if scores.size < 2:
        return Estimate(estimate=None, method="none")
    mean = float(scores.mean())
    variance = float(scores.var(ddof=1)) / scores.size
    low, high = effective_interval((mean + 1) / 2, variance / 4, int(scores.size), level=level)
    return Estimate(
        estimate=mean,
        low=2 * low - 1,
        high=2 * high - 1,
        method="paired, limits at the effective sample size",
    )


def _d(labels: Sequence[str]) -> float:
    n = len(labels)
    same = sum(k * (k - 1) for k in Counter(labels).values())
    return float("nan") if n < 2 else 1.0 - same / (n * (n - 1))


def share(hits: float, total: int, *, level: float = 0.95) -> Estimate:
    """hits/total with Wilson's interval; no estimate without any trial."""
    if not total:
        return Estimate(estimate=None, method="none")
    low, high = wilson(hits, total, level=level)
    return Estimate(estimate=hits / total, low=low, high=high, method="Wilson")


def measure_gold(
    *,
    classes: Sequence[str],
    gold: Sequence[str],
    decisions: Sequence[Decision],
    judge: Sequence[Verdict],
    old: Sequence[Sequence[str]],
    prevalence: Prevalence | None,
    level: float = 0.95,
) -> GoldReport:
    """Set what the pipeline, the judge and the old labels say of gold items against gold.

    All sequences have one entry per gold item; ``old[i]`` holds the item's old labels, or nothing.
    """
    clean = [decision.verdict.label for decision in decisions]
    right = [label == true for label, true in zip(clean, gold, strict=True)]
    labelled = [label is not None for label in clean]
    confusion = {
        true: dict(Counter(label or "" for label, other in zip(clean, gold, strict=True) if other == true))
        for true in classes
    }
    sources = []
    for source in ("judge", "adjudicator"):
        hits = [hit for hit, decision in zip(right, decisions, strict=True) if decision.source == source]
        part = share(sum(hits), len(hits), level=level)
        if hits:
            sources.append(
                Breakdown(
                    value=source,
                    items=len(hits),
                    pairs=0,
                    conflicts=len(hits) - sum(hits),
                    estimate=part.estimate,
                    low=part.low,
                    high=part.high,
                    method=part.method,
                    share=len(hits) / sum(labelled),
                )
            )
    by_judge = [
        (verdict.label, true) for verdict, true in zip(judge, gold, strict=True) if verdict.label is not None
    ]
    before = [
        sum(label == true for label in row) / len(row) for row, true in zip(old, gold, strict=True) if row
    ]
    return GoldReport(
        items=len(gold),
        labelled=sum(labelled),
        accuracy=share(sum(right), sum(labelled), level=level),
        judge=share(sum(label == true for label, true in by_judge), len(by_judge), level=level),
        old=_mean(before, level),
        old_items=len(before),
        by_source=tuple(sources),
        recall={k: share(confusion[k].get(k, 0), sum(confusion[k].values()), level=level) for k in classes},
        precision={k: share(confusion[k].get(k, 0), clean.count(k), level=level) for k in classes},
        confusion={
            k: {name: n for name in (*classes, "") if (n := confusion[k].get(name, 0))} for k in classes
        },
        calibration=calibrate_verdicts(zip(judge, gold, strict=True)),
        prevalence=prevalence,
    )


def _mean(scores: Sequence[float], level: float) -> Estimate:
    """Mean of scores in [0, 1] over items."""
    if not scores:
        return Estimate(estimate=None, method="none")
    if set(scores) <= {0.0, 1.0}:
        return share(sum(scores), len(scores), level=level)
    values = np.asarray(scores)
    mean, spread = float(values.mean()), float(values.var(ddof=1)) / len(scores)
    low, high = effective_interval(mean, spread, len(scores), level=level)
    return Estimate(estimate=mean, low=low, high=high, method="limits at the effective sample size")
