"""Results of ``audit train route``: frozen, with their text, dictionary and data frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from audit.results import Estimate, Result
from train.operating_results import figure, wrapped
from train.words import metric_name

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Ambiguity", "Band", "BestShare", "CascadePoint", "Crosstab", "OracleGap", "Route", "RouteMetric"]

RouteMetric = Literal["accuracy", "balanced_accuracy"]


@dataclass(frozen=True, kw_only=True)
class Crosstab(Result):
    """Where two models are right: items that both, one or neither has right.

    ``differ`` counts the items with different answers, ``p_value`` is McNemar's exact test of equal accuracy.
    ``accuracy`` and ``balanced_accuracy`` are b less a.
    """

    both_right: int
    only_a: int
    only_b: int
    both_wrong: int
    differ: int
    p_value: float
    accuracy: Estimate
    balanced_accuracy: Estimate


@dataclass(frozen=True, kw_only=True)
class OracleGap(Result):
    """What a router that always takes the right answer of the two gains over the better model, in accuracy.

    ``independent`` is the gap (with the range of ``level``) of two models with these error rates in each class that err
    independently; ``coins`` that of two equally good ones: as many items that one of the two has right, a fair toss
    for which. ``reachable`` is what is left for a router that knows the truth, at the flip rate that was named.
    """

    oracle: Estimate
    better: Literal["a", "b"]
    items: int
    gap: Estimate
    independent: Estimate
    coins: Estimate
    flip_rate: float | None
    reachable: Estimate | None


@dataclass(frozen=True, kw_only=True)
class Band(Result):
    """Items by a's confidence, from the least: how often each model is right, and b less a (accuracy)."""

    low: float
    high: float
    items: int
    a: Estimate
    b: Estimate
    gain: Estimate
    ambiguous: float | None


@dataclass(frozen=True, kw_only=True)
class CascadePoint(Result):
    """The cascade that sends the ``share`` of a's least confident items to b.

    ``over_random`` and ``over_b`` are its metric (of :attr:`Route.metric`) less that of random routing of as many
    items, and of always asking b. Costs are per 1,000 items.
    """

    share: float
    confidence: float
    accuracy: Estimate
    balanced_accuracy: Estimate
    over_random: Estimate
    over_b: Estimate
    cost: float | None
    cost_random: float | None


@dataclass(frozen=True, kw_only=True)
class BestShare(Result):
    """The share with the highest metric; chosen on these rows, so ``optimism`` is taken off (see docs)."""

    share: float
    apparent: float
    optimism: float
    corrected: Estimate
    over_b: Estimate
    over_a: Estimate


@dataclass(frozen=True, kw_only=True)
class Ambiguity(Result):
    """Items with labels in conflict: their share of all items, of those that the models answer differently, of the
    oracle's gap (items that only the worse model has right) and of those that both have wrong.

    ``p_value`` is Fisher's exact test, two-sided, of the items of the gap against the others.
    """

    items: int
    share: float
    of_differing: float | None
    of_gap: float | None
    of_both_wrong: float | None
    odds_ratio: float | None
    p_value: float


@dataclass(frozen=True, kw_only=True)
class Route(Result):
    """Everything ``audit train route`` found; a is the cheap model, b the dear one.

    ``area`` is the cascade's metric less random routing's, averaged over all shares.
    """

    a: str
    b: str
    positive: str
    n: int
    clusters: int | None
    metric: RouteMetric
    verdict: Literal["better than random", "worse than random", "not told from random", "same answers"]
    crosstab: Crosstab
    oracle: OracleGap
    area: Mapping[str, Estimate]
    best: BestShare
    keeps: float | None
    margin: float
    cascade: tuple[CascadePoint, ...]
    bands: tuple[Band, ...]
    ambiguity: Ambiguity | None
    cost_a: float | None
    cost_b: float | None
    sentences: tuple[str, ...]
    level: float
    draws: int
    seed: int
    notes: tuple[str, ...] = ()

    def summary(self) -> str:
        """The verdict first, then the tables."""
        return "\n".join(self._lines())

    __str__ = summary

    def to_frame(self) -> pd.DataFrame:
        """One row per share and metric of the cascade: share, confidence, metric, estimate, low, high, cost."""
        import pandas as pd

        return pd.DataFrame(list(self._rows()))

    def _rows(self) -> Iterator[dict[str, Any]]:
        for point in self.cascade:
            parts = {
                "accuracy": point.accuracy, "balanced_accuracy": point.balanced_accuracy,
                "over_random": point.over_random, "over_b": point.over_b,
            }  # fmt: skip
            for name, part in parts.items():
                yield {
                    "share": point.share, "confidence": point.confidence, "metric": name, "estimate": part.estimate,
                    "low": part.low, "high": part.high, "cost": point.cost,
                }  # fmt: skip

    def _lines(self) -> Iterator[str]:
        for sentence in self.sentences:
            yield from wrapped(sentence)
        table = self.crosstab
        yield ""
        yield f"{'':<18}{'b right':>10}{'b wrong':>10}      {self.n:,} items, {table.differ:,} answered differently"
        yield f"{'a right':<18}{table.both_right:>10,}{table.only_a:>10,}      McNemar's exact p = {table.p_value:.4g}"
        yield f"{'a wrong':<18}{table.only_b:>10,}{table.both_wrong:>10,}"
        yield f"b less a: accuracy {signed(table.accuracy)}, balanced accuracy {signed(table.balanced_accuracy)}"
        yield ""
        costs = self.cost_a is not None
        head = f"{'to b':<6}{metric_name(self.metric):>24}{'over random':>28}{'over always b':>28}"
        yield head + (f"{'cost/1,000':>12}" if costs else "")
        for point in self.cascade[::2]:
            part = point.accuracy if self.metric == "accuracy" else point.balanced_accuracy
            line = f"{point.share:<6.0%}{figure(part):>24}{signed(point.over_random):>28}{signed(point.over_b):>28}"
            yield line + ("" if point.cost is None else f"{point.cost:>12,.{0 if point.cost >= 100 else 3}f}")
        yield ""
        amb = self.ambiguity is not None
        yield f"{'confidence of a':<20}{'items':>8}{'a':>9}{'b':>9}{'b less a':>30}{'  ambiguous' * amb}"
        for band in self.bands:
            ends = f"{band.low:.3f} to {band.high:.3f}"
            more = "" if band.ambiguous is None else f"{band.ambiguous:>11.1%}"
            a, b = (f"{part.estimate:.4f}" if part.estimate is not None else "–" for part in (band.a, band.b))
            yield f"{ends:<20}{band.items:>8,}{a:>9}{b:>9}{signed(band.gain):>30}{more}"
        for note in self.notes:
            yield from wrapped(f"– {note}", indent="  ")


def signed(part: Estimate) -> str:
    """A difference with its limits, as text."""
    if part.estimate is None:
        return "none"
    if part.low is None or part.high is None:
        return f"{part.estimate:+.4f}"
    return f"{part.estimate:+.4f} [{part.low:+.4f}, {part.high:+.4f}]"
