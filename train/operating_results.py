"""Results of ``audit train operating-point``: frozen, with their text, dictionary and data frame."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from audit.render_words import visible
from audit.results import Estimate, Result
from train.metrics import DECISION_METRICS
from train.operating_match import Match
from train.words import metric_name, place_name

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BestThreshold", "Curve", "OperatingPoint", "Point", "figure", "wrapped"]


@dataclass(frozen=True, kw_only=True)
class Point(Result):
    """The metrics of one threshold (``score >= threshold``), or of the file's own predictions (``None``).

    ``share`` of the rows are called positive. The intervals are of a fixed threshold, each at the level by itself.
    """

    name: str
    threshold: float | None
    share: float
    metrics: Mapping[str, Estimate]


@dataclass(frozen=True, kw_only=True)
class BestThreshold(Result):
    """The threshold of the highest balanced accuracy.

    Chosen on the same rows, its ``apparent`` value is too good by about ``optimism``; ``corrected`` is what new rows
    will give. Chosen on others (``chosen_on``), there is no optimism and ``corrected`` is the plain value here.
    """

    threshold: float | None
    chosen_on: str
    apparent: float
    optimism: float
    corrected: Estimate
    point: Point


@dataclass(frozen=True, kw_only=True)
class Curve(Result):
    """A curve on a grid, with pointwise limits."""

    x: tuple[float, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class OperatingPoint(Result):
    """Everything ``audit train operating-point`` found.

    ``roc`` is recall over 1 - specificity, ``precision_recall`` precision over recall. ``ranking`` holds the other
    run's AUC and average precision less ours, where it has scores.
    """

    source: str
    positive: str
    n: int
    positives: int
    clusters: int | None
    auc: Estimate
    average_precision: Estimate
    own: Point
    best: BestThreshold
    sweep: tuple[Point, ...]
    roc: Curve
    precision_recall: Curve
    against: Match | None
    ranking: Mapping[str, Estimate]
    stratified: bool
    level: float
    draws: int
    seed: int
    notes: tuple[str, ...] = ()

    def summary(self) -> str:
        """The verdict first, then the points as a table."""
        return "\n".join(self._lines())

    __str__ = summary

    def to_frame(self) -> pd.DataFrame:
        """One row per point and metric: point, threshold, share, metric, estimate, low, high."""
        import pandas as pd

        return pd.DataFrame(list(self._rows()))

    def points(self) -> tuple[Point, ...]:
        """The own decisions, the best threshold and the sweep."""
        return (self.own, self.best.point, *self.sweep)

    def _rows(self) -> Iterator[dict[str, Any]]:
        for name, part in (("auc", self.auc), ("average_precision", self.average_precision)):
            yield {"point": "ranking", "threshold": None, "share": None, "metric": name, **_numbers(part)}
        for point in self.points():
            for name, part in point.metrics.items():
                yield {
                    "point": point.name, "threshold": point.threshold, "share": point.share, "metric": name,
                    **_numbers(part),
                }  # fmt: skip
        for name, part in {} if self.against is None else self.against.differences.items():
            yield {
                "point": f"{self.against.source} less ours" if self.against else "", "metric": name,
                "threshold": self.against.threshold if self.against else None, "share": None, **_numbers(part),
            }  # fmt: skip

    def _lines(self) -> Iterator[str]:
        told = [] if self.against is None else [self.against.message]
        units = f" in {self.clusters:,} clusters" if self.clusters is not None else ""
        told += [
            self.best_sentence(),
            f"{place_name(self.source)}: {self.n:,} rows{units}, {self.positives:,} positive ({self.positive}); AUC "
            f"{figure(self.auc)}, average precision {figure(self.average_precision)} ({self.level:.0%} intervals).",
        ]
        for sentence in told:
            yield from wrapped(sentence)
        yield ""
        head = "".join(
            f"{metric_name(m).replace('balanced accuracy', 'balanced'):>12}" for m in DECISION_METRICS
        )
        yield f"{'threshold':<16}{'positive':>8}{head}"
        for point in (self.own, self.best.point, *self.sweep[1::2]):
            name = {"sweep": "", "best": "best  "}.get(point.name, point.name)
            if point.threshold is not None and point.name != "score >= 0.5":
                name += f"{point.threshold:.4g}"
            cells = "".join(f"{_short(point.metrics[m]):>12}" for m in DECISION_METRICS)
            yield f"{name:<16}{point.share:>8.1%}{cells}"
        if self.against is not None:
            yield from self._match_lines(self.against)
        for note in self.notes:
            yield from wrapped(f"– {note}", indent="  ")

    def best_sentence(self) -> str:
        """The best balanced accuracy in words, with what choosing it on these rows adds."""
        best = self.best
        where = "above every score" if best.threshold is None else f"at {best.threshold:.4g}"
        if best.chosen_on != "these rows":
            return (
                f"Best balanced accuracy on {best.chosen_on} is {where}; here it gives {figure(best.corrected)}, with "
                "no optimism, as these rows did not choose it."
            )
        return (
            f"Best balanced accuracy is {where}: {best.apparent:.4f} on these rows, {figure(best.corrected)} on new "
            f"ones (choosing on the same rows adds {best.optimism:.4f})."
        )

    def _match_lines(self, match: Match) -> Iterator[str]:
        yield ""
        cut = "above every score" if match.threshold is None else f"{match.threshold:.4g}"
        yield from wrapped(
            f"{place_name(match.source)} against ours, cut at {cut} for its {metric_name(match.on)} of "
            f"{match.target:.4f}"
        )
        if not match.exact:
            yield "  no single threshold gives it exactly: ours lies between two neighbouring ones"
        if match.no_answer:
            yield f"  {match.no_answer:,} rows without an answer count as wrong"
        yield f"  {'':<18}{'ours':>8}{'theirs':>8}{'difference':>12}   {self.level:.0%} interval"
        for name, part in match.differences.items():
            ours, theirs = match.ours[name], match.theirs[name]
            yield f"  {metric_name(name):<18}{_cell(ours):>8}{_cell(theirs):>8}{_limits(part)}"
        for name, part in self.ranking.items():
            yield f"  {metric_name(name):<18}{'':>16}{_limits(part)}"


def wrapped(sentence: str, *, indent: str = "") -> list[str]:
    """A sentence in lines of 100 columns; nothing in it can move the cursor."""
    clean = visible(sentence, one_line=True)
    return textwrap.wrap(clean, 100, subsequent_indent=indent, break_on_hyphens=False)


def figure(part: Estimate, *, digits: int = 4) -> str:
    """An estimate with its limits, as text."""
    if part.estimate is None:
        return "none"
    if part.low is None or part.high is None:
        return f"{part.estimate:.{digits}f}"
    return f"{part.estimate:.{digits}f} [{part.low:.{digits}f}, {part.high:.{digits}f}]"


def _numbers(part: Estimate) -> dict[str, float | None]:
    return {"estimate": part.estimate, "low": part.low, "high": part.high}


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _limits(part: Estimate) -> str:
    if part.estimate is None:
        return f"{'–':>12}"
    interval = "" if part.low is None else f"   {part.low:+.4f} to {part.high:+.4f}"
    return f"{part.estimate:>+12.4f}{interval}"


def _short(part: Estimate) -> str:
    """A metric with half the width of its interval."""
    if part.estimate is None:
        return "–"
    if part.low is None or part.high is None:
        return f"{part.estimate:.3f}"
    return f"{part.estimate:.3f}±{(part.high - part.low) / 2.0:.3f}"
