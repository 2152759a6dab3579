"""What `relabel.agree` finds: measures of agreement, of accuracy on gold, and how they were taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from audit.results import Agreement, Breakdown, Ceiling, Disagreement, Estimate, FlipRate, Result
from relabel.calibration import Calibration
from relabel.prevalence import Prevalence

__all__ = ["SCHEMA_VERSION", "AgreeResult", "GoldReport", "Measure", "NotAccuracy", "Stratum"]

SCHEMA_VERSION = 1

NotAccuracy = (
    "Self-agreement is not accuracy: a mistake made every time agrees with itself. Of six public LLM judges (LLMBar,"
    " the same comparison in two orders) one with d = .07 was wrong on .16 of the items, another with d = .25 on .56."
)
"""Said in every report: measured on the votes that LLMBar (Zeng et al., ICLR 2024) publishes."""


@dataclass(frozen=True, kw_only=True)
class Measure(Result):
    """Labels of the same items, analysed as ``audit dupes`` analyses repeats.

    Parameters
    ----------
    items, labels:
        Items with at least two labels, and their labels.
    by_class, by_source:
        d by the class of the first label, and by who gave the item's label in the run.
    """

    items: int
    labels: int
    disagreement: Disagreement
    flip_rate: FlipRate
    ceiling: Ceiling
    agreement: Agreement
    by_class: tuple[Breakdown, ...] = ()
    by_source: tuple[Breakdown, ...] = ()

    def lines(self, name: str) -> Iterator[str]:
        """The measure in words."""
        d, rate, band, kappa = self.disagreement, self.flip_rate, self.ceiling, self.agreement.kappa
        if d.estimate is None:
            yield f"{name}: not measured; {d.reason}"
            return
        yield f"{name}: d {_figure(d)} over {self.items:,} items; two draws agree on {1 - d.estimate:.3f}"
        if rate.estimate is None or band.lower is None or band.upper is None:
            yield f"  no flip rate: {rate.reason}"
        else:
            yield (
                f"  flip rate {_figure(rate)}; accuracy ceiling between {band.lower:.3f} and {band.upper:.3f}"
                f" (with sampling error {band.low:.3f} to {band.high:.3f})"
            )
        if kappa.estimate is not None:
            yield f"  kappa {_figure(kappa)}"
        for title, parts in (("class", self.by_class), ("source", self.by_source)):
            for part in parts:
                yield f"  {title} {part.value}: d {_figure(part)} over {part.items:,} items"


@dataclass(frozen=True, kw_only=True)
class Stratum(Result):
    """One stratum of the sample: who gave the label in the run, the label, its items, those drawn."""

    source: str
    label: str
    items: int
    drawn: int


@dataclass(frozen=True, kw_only=True)
class GoldReport(Result):
    """The pipeline (without people's answers) against gold.

    Parameters
    ----------
    items, labelled:
        Gold items, and those that the pipeline labels. Accuracy is over ``labelled``.
    accuracy, judge, old:
        Share of items whose label is gold's: of the pipeline, of the judge alone, and of the old labels (each item
        once, its labels averaged) where gold items stand in the table: ``old_items`` of them.
    by_source:
        The pipeline's accuracy by who gave the label (``conflicts`` counts the wrong ones).
    recall, precision:
        Per class: of gold's items of a class those that got it, and of those that got it the right ones.
    confusion:
        Gold label -> clean label (``""``: none) -> items.
    calibration:
        Of the judge's confidences, by kind.
    prevalence:
        Gold-corrected shares of the classes; None where there is no item outside gold.
    """

    items: int
    labelled: int
    accuracy: Estimate
    judge: Estimate
    old: Estimate
    old_items: int
    by_source: tuple[Breakdown, ...]
    recall: Mapping[str, Estimate]
    precision: Mapping[str, Estimate]
    confusion: Mapping[str, Mapping[str, int]]
    calibration: tuple[Calibration, ...]
    prevalence: Prevalence | None

    def lines(self) -> Iterator[str]:
        """The report in words."""
        yield f"gold: {self.items:,} items, {self.labelled:,} labelled; right on {_figure(self.accuracy)}"
        if self.judge.estimate is not None:
            yield f"  the judge alone: {_figure(self.judge)}"
        if self.old.estimate is not None:
            yield f"  the old labels: {_figure(self.old)} over {self.old_items:,} items that have one"
        for part in self.by_source:
            yield f"  labels of the {part.value}: {_figure(part)} over {part.items:,} items"
        for label, found in self.recall.items():
            exact = self.precision[label]
            yield f"  class {label}: recall {_figure(found)}, precision {_figure(exact)}"
        for label, row in self.confusion.items():
            yield f"  gold {label}: " + ", ".join(f"{name or 'no label'} {n:,}" for name, n in row.items())
        yield from (f"  {one.summary()}" for one in self.calibration)
        if self.prevalence is not None:
            yield f"  shares of the classes, corrected by gold (of {self.prevalence.items:,} further items):"
            for share in self.prevalence.shares:
                yield (
                    f"    {share.label}: {_figure(share)}; clean labels as they are {share.counted:.3f},"
                    f" gold alone {share.gold_only:.3f}"
                )


@dataclass(frozen=True, kw_only=True)
class AgreeResult(Result):
    """The audit of a pipeline.

    Parameters
    ----------
    items, frame, drawn, strata:
        Distinct items; those with a label, from which the sample is drawn; items drawn; how.
    policy:
        How items were chosen for the adjudicator: kind and value.
    draws, temperature, varied, warnings:
        Fresh draws per item; temperature sent (None: the endpoint's own); what differs between the draws; what the
        figures cannot say.
    new:
        The pipeline's labels of the drawn items: the run's, and the fresh draws.
    repeated, old, new_same, difference:
        Items with two old labels or more that were put through again; d of the old labels and of the pipeline on
        these same items; mean difference, old less new. ``old`` is None without such items, and ``old_reason``
        says why.
    moved:
        Fresh labels that came from another source (judge or adjudicator) than the run's.
    without_verdict:
        Fresh draws that gave no label, by status; they are in no measure.
    requests, cost:
        Asked now, and US dollars paid now (None: a price is not known).
    """

    schema_version: int = SCHEMA_VERSION
    items: int
    frame: int
    drawn: int
    strata: tuple[Stratum, ...]
    policy: Mapping[str, Any]
    draws: int
    temperature: float | None
    varied: tuple[str, ...]
    warnings: tuple[str, ...]
    new: Measure
    repeated: int
    old: Measure | None
    new_same: Measure | None
    difference: Estimate | None
    old_reason: str | None
    moved: int
    without_verdict: Mapping[str, int]
    requests: int
    cost: float | None
    gold: GoldReport | None
    seed: int
    journal: str

    @property
    def exit_code(self) -> int:
        """0, or 3 where a fresh draw gave no label."""
        return 3 if self.without_verdict else 0

    def summary(self) -> str:
        """The result in words."""
        cost = "" if self.cost is None else f", ${self.cost:.4f}"
        lines = [
            f"{self.drawn:,} of {self.frame:,} labelled items, stratified by source and label, went through the"
            f" pipeline again: {self.draws} fresh draw{'s' * (self.draws > 1)} each, {self.requests:,} requests{cost}",
            *(f"varied: {what}" for what in self.varied),
        ]
        if self.without_verdict:
            told = ", ".join(f"{name} {count:,}" for name, count in self.without_verdict.items())
            lines.append(f"fresh draws without a label, left out: {told}")
        lines += self.new.lines("new labels")
        if self.old is None or self.new_same is None or self.difference is None:
            lines.append(f"old labels: not measured; {self.old_reason}")
        else:
            lines += [
                *self.old.lines(f"old labels of the {self.repeated:,} items that have several"),
                *self.new_same.lines("new labels of the same items"),
                f"d of the old labels less d of the new, on the same items: {_figure(self.difference)}",
            ]
        if self.gold is not None:
            lines += self.gold.lines()
        return "\n".join([*lines, *self.warnings])


def _figure(part: Estimate) -> str:
    if part.estimate is None:
        return "not measured"
    if part.low is None or part.high is None:
        return f"{part.estimate:.3f}"
    return f"{part.estimate:.3f} [{part.low:.3f}, {part.high:.3f}]"
