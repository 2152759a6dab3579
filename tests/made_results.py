"""AuditResults made by hand for the tests of the reports: one with every part filled in.

Numbers that follow from others (epsilon from d, the ends of the band) are computed, so that a reader of a
failing report is not misled; nothing here is an estimate from data.
"""

from __future__ import annotations

import math
from typing import Any

from audit.results import (
    Agreement,
    Alarm,
    AuditResult,
    Breakdown,
    Ceiling,
    Comparison,
    ConflictGroup,
    ConflictRow,
    CopiedShare,
    DataSummary,
    Disagreement,
    Estimate,
    FlipRate,
    Gate,
    GroupSize,
    LadderRung,
    OneRival,
    RepeatSummary,
    Reweighted,
    Settings,
    Verdict,
)


def eps(d: float, classes: int = 2) -> float:
    """epsilon_K of d, as DESIGN has it."""
    top = (classes - 1) / classes
    return top * (1 - math.sqrt(max(0.0, 1 - d / top)))


def band(d: float, low: float, high: float, classes: int = 2) -> tuple[Disagreement, FlipRate, Ceiling]:
    """d, flip rate and ceiling that belong together."""
    part = Disagreement(
        estimate=d, low=low, high=high, method="Wilson", level=0.95, pair_weighted=d, row_weighted=d
    )
    rival = OneRival(estimate=eps(d), low=eps(low), high=eps(min(high, 0.5))) if d <= 0.5 else NO_RIVAL
    rate = FlipRate(
        estimate=eps(d, classes),
        low=eps(low, classes),
        high=eps(high, classes),
        classes=classes,
        one_rival=rival,
        method=f"Wilson, mapped through eps_{classes}(d)",
    )
    ceiling = Ceiling(
        lower=1 - d,
        upper=1 - eps(d, classes),
        low=1 - high,
        high=1 - eps(low, classes),
        prevalence_lower=1 - d if classes == 2 else None,
    )
    return part, rate, ceiling


NO_RIVAL = OneRival(estimate=None, low=None, high=None)
NOTHING = Estimate(estimate=None, method="none")


def breakdown(value: str, d: float, low: float, high: float, items: int = 40, **more: Any) -> Breakdown:
    """One row of a "by" table."""
    return Breakdown(
        value=value,
        items=items,
        pairs=items,
        conflicts=round(d * items),
        estimate=d,
        low=low,
        high=high,
        method="Wilson",
        **more,
    )


def conflict(
    item: tuple[str, ...], labels: tuple[str, ...], first_row: int = 1, **details: str | None
) -> ConflictGroup:
    """A conflict whose rows carry ``labels``, with the same details in each."""
    n = len(labels)
    counts = {label: labels.count(label) for label in dict.fromkeys(labels)}
    return ConflictGroup(
        item=item,
        counts=counts,
        disagreement=1 - sum(c * (c - 1) for c in counts.values()) / (n * (n - 1)),
        rows=tuple(
            ConflictRow(row=first_row + i, label=label, details=details) for i, label in enumerate(labels)
        ),
    )


def full() -> AuditResult:
    """A binary audit with every part filled in."""
    d, rate, ceiling = band(0.1838, 0.1409, 0.2363)
    data = DataSummary(
        source="data/labels/risk_driver.csv",
        format="csv",
        encoding="utf-8",
        delimiter=",",
        item=("passage", "entity"),
        label="label",
        rows=6580,
        missing_label=4,
        missing_item=1,
        items=6221,
        classes=("no", "yes"),
        class_rows=(4606, 1970),
        notes=("--item and --label were guessed from the columns",),
    )
    repeats = RepeatSummary(
        items=252,
        rows=514,
        pairs=272,
        conflicts=49,
        normalise="case",
        sizes=(
            GroupSize(size=2, items=243, conflicts=44, estimate=0.1811),
            GroupSize(size=3, items=8, conflicts=4, estimate=0.3333),
            GroupSize(size=4, items=1, conflicts=1, estimate=0.5),
        ),
        ladder=(
            LadderRung(level="none", items=240, rows=488, conflicts=44, estimate=0.1791),
            LadderRung(level="space", items=246, rows=501, conflicts=47, estimate=0.1816),
            LadderRung(level="case", items=252, rows=514, conflicts=49, estimate=0.1838),
            LadderRung(level="punctuation", items=255, rows=520, conflicts=50, estimate=0.1842),
        ),
    )
    by = {
        "split": (
            breakdown("train", 0.192, 0.140, 0.258, 180),
            breakdown("validation", 0.171, 0.085, 0.313, 41),
            breakdown("test", 0.161, 0.071, 0.326, 31),
        ),
        "class": (
            breakdown("no", 0.131, 0.099, 0.171, 210, share=0.701),
            breakdown("yes", 0.308, 0.238, 0.388, 92, share=0.299),
        ),
        "annotator": tuple(
            breakdown(f"annotator {i}", 0.1 + i / 100, 0.02 + i / 200, 0.3 + i / 100, 9) for i in range(20)
        ),
    }
    comparisons = {
        "split": Comparison(
            column="split",
            p_value=0.871,
            method="Fisher's exact test",
            within=Estimate(estimate=0.181, low=0.13, high=0.24),
            across=Estimate(estimate=0.195, low=0.1, high=0.34),
            items_across=31,
            contrast_p_value=0.81,
        ),
        "annotator": Comparison(
            column="annotator", p_value=None, method="", reason="20 values are too many for 252 items"
        ),
    }
    alarms = (
        Alarm(
            code="leakage",
            severity="warning",
            message="31 items stand in more than one split, 6 of them with different labels.",
            action="Drop them from the training part: --drop-leaked, or split by item.",
            figures={"items": 31, "conflicts": 6, "share": 0.1230159},
        ),
        Alarm(
            code="export_copies",
            severity="note",
            message="12 pairs of rows are equal in every column and may be copies.",
            action="Leave them out with --drop-copies.",
            figures={"pairs": 12, "d without": 0.1923, "columns": ["passage", "entity", "label"]},
        ),
    )
    texts = (
        "Northwind Foods recalled 40,000 jars of almond butter after salmonella was found at its Ohio plant.",
        "The regulator opened a consultation on tariffs; shares of Contoso Power closed little changed.",
        "A jury ordered Fabrikam Medical to pay 38 million over a pump that under-dosed patients.",
    )
    labels = (("no", "yes"), ("yes", "no", "no"), ("yes", "no"))
    conflicts = tuple(
        conflict(
            (f"{texts[i % 3]} ({i})", "Northwind"),
            labels[i % 3],
            10 * i + 1,
            split=("train", "test")[i % 2],
            annotator="a7",
        )
        for i in range(49)
    )
    return AuditResult(
        verdict=Verdict(
            headline=(
                "These labels disagree with themselves on 18% of repeats: the best accuracy possible against them "
                "lies between 0.82 and 0.90."
            ),
            next_steps=(
                "252 repeated items put the flip rate at 0.102 ± 0.030 (band with sampling error: 0.764 to 0.924).",
                "Label 760 more rows a second time to halve that: audit plan data.csv --rows 760.",
                "Settle the 49 conflicts first: --conflicts FILE writes them side by side.",
            ),
        ),
        data=data,
        repeats=repeats,
        disagreement=d,
        flip_rate=rate,
        ceiling=ceiling,
        agreement=Agreement(
            kappa=Estimate(estimate=0.561, low=0.451, high=0.659, method="percentile bootstrap over items"),
            alpha=Estimate(estimate=0.558, low=0.45, high=0.655, method="percentile bootstrap over items"),
        ),
        by=by,
        comparisons=comparisons,
        copied_share=tuple(
            CopiedShare(
                share=c, disagreement=0.1838 / (1 - c), flip_rate=eps(0.1838 / (1 - c)) if c < 0.6 else None
            )
            for c in (0.0, 0.1, 0.25, 0.5, 0.75)
        ),
        reweighted=(
            Reweighted(by="class", estimate=0.1862, shift=0.0024, p_value=0.31, cramers_v=0.02),
            Reweighted(by="text length", estimate=0.1771, shift=-0.0067, p_value=0.0004, cramers_v=0.08),
        ),
        gate=Gate(passed=False, threshold=0.9, end="lower", value=0.816, message="gate failed"),
        alarms=alarms,
        settings=Settings(
            version="0.1.0",
            level=0.95,
            draws=10_000,
            seed=0,
            normalise="case",
            interval="wilson",
            merge_labels=False,
            drop_copies=False,
            missing=("NA",),
        ),
        conflicts=conflicts,
    )
