"""Results beyond the pair: what three repeats, other metrics, error rates and a gold standard add."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from audit.results_base import Estimate, Result

__all__ = [
    "DependentPair",
    "ErrorRates",
    "Gate",
    "GoldCheck",
    "IdentifiedSet",
    "LatentClasses",
    "MetricLimit",
    "MetricLimits",
    "Moments",
    "Range",
    "Rate",
    "Rater",
    "Stratum",
]


@dataclass(frozen=True, kw_only=True)
class Moments(Result):
    """Bounds of the ceiling from items with three labels or more, see :func:`audit.moments.moment_bounds`.

    ``lower``/``upper`` at the observed frequencies, ``low``/``high`` with sampling error; ``repeats`` is the largest
    number of labels an item counts with, ``items`` the number of items used, ``items_with_three`` that of items with
    three labels or more. ``fit_p_value`` is of the hypothesis that the labels of an item are independent draws.
    """

    lower: float | None = None
    upper: float | None = None
    low: float | None = None
    high: float | None = None
    repeats: int | None = None
    items: int = 0
    items_with_three: int = 0
    method: str = "none"
    fit_p_value: float | None = None
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class MetricLimit(Result):
    """How high (``direction`` upper) or low a metric can be against these labels, see :mod:`audit.metric_limits`.

    ``bound`` holds for any predictor, ``with_error`` is the bound at the lower limit of d; ``truth_knower`` is the
    score of a predictor that knows the labels without their noise, at equal noise. ``kind`` says which is what.
    """

    metric: str
    name: str
    bound: float
    with_error: float
    truth_knower: float | None
    direction: str
    kind: str


@dataclass(frozen=True, kw_only=True)
class Range(Result):
    """A quantity that is only known to lie in a range; ``low``/``high`` have sampling error in them."""

    lower: float | None = None
    upper: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class IdentifiedSet(Result):
    """What pairs say of asymmetric binary flips, see :func:`audit.asymmetric.identified_set`.

    ``positive`` is the class called 1 and ``share`` its share m of the labels; ``prevalence`` its share of the truths,
    ``miss`` the chance e10 that a true 1 is labelled otherwise, ``false_alarm`` e01, the chance that a true 0 is
    labelled 1, ``mean_error`` the chance that a label is wrong.
    """

    items: int = 0
    positive: str | None = None
    share: float | None = None
    prevalence: Range = field(default_factory=Range)
    miss: Range = field(default_factory=Range)
    false_alarm: Range = field(default_factory=Range)
    mean_error: Range = field(default_factory=Range)
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Rate(Estimate):
    """The chance that an item of class ``truth`` is labelled ``label``."""

    truth: str
    label: str


@dataclass(frozen=True, kw_only=True)
class Stratum(Result):
    """One population of items: its size, and the share of each class among its truths, in the order of the classes."""

    value: str
    items: int
    prevalence: tuple[Estimate, ...]


@dataclass(frozen=True, kw_only=True)
class Rater(Result):
    """One annotator: the number of labels given, the chance that one is wrong, and the table of error rates."""

    value: str
    labels: int
    error: Estimate
    rates: tuple[Rate, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DependentPair(Result):
    """Two annotators who agree more, or less, than their error rates explain, on ``items`` items."""

    value: str
    items: int
    observed: float
    expected: float
    p_value: float


@dataclass(frozen=True, kw_only=True)
class LatentClasses(Result):
    """Error rates from a latent class model, see :mod:`audit.latent` and :mod:`audit.dawid_skene`.

    ``rates`` has a row for each truth and label, ``mean_error`` the chance that a label is wrong. ``fit_p_value`` is
    small where the labels of an item are not independent given its truth. Numbers are absent, with the ``reason``,
    where the repeats do not identify them; ``notes`` say what a reader should know.
    """

    method: str
    items: int = 0
    strata: tuple[Stratum, ...] = ()
    rates: tuple[Rate, ...] = ()
    mean_error: Estimate = field(default_factory=lambda: Estimate(estimate=None))
    fit_p_value: float | None = None
    fit_df: int | None = None
    raters: tuple[Rater, ...] = ()
    dependent: tuple[DependentPair, ...] = ()
    notes: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class ErrorRates(Result):
    """Which errors the labels have, by what the repeats allow: ``--errors``, ``--strata``, ``--annotator``."""

    pairs: IdentifiedSet
    repeats: LatentClasses
    strata: LatentClasses
    annotators: LatentClasses


@dataclass(frozen=True, kw_only=True)
class GoldCheck(Result):
    """Labels against a gold standard: ``error`` is the share of labels that differ, with an interval over items.

    ``items`` and ``labels`` have a gold label; ``unknown`` gold labels name no declared class. ``ceiling`` is
    1 - error of the gold standard, ``above`` says that 1 - epsilon is at or above it, as it must be.
    """

    source: str
    items: int
    labels: int
    error: Estimate
    flip_rate: float | None
    above: bool | None
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Gate(Result):
    """Whether one end of the band reaches a threshold: ``--fail-under`` and ``--fail-on``."""

    passed: bool
    threshold: float
    end: Literal["lower", "upper"]
    value: float | None
    message: str


@dataclass(frozen=True, kw_only=True)
class MetricLimits(Result):
    """The limits of all metrics: ``positive`` is the class that counts as positive, ``share`` its share of labels."""

    positive: str | None = None
    share: float | None = None
    limits: tuple[MetricLimit, ...] = ()
    reason: str | None = None
