"""Shares of the classes, corrected by a gold sample: prediction-powered inference.

Counting clean labels gives biased shares: a judge that takes one class for another shifts both. A gold sample
shows by how much. With Y a gold label and f a clean label, both as 0/1 for one class, the estimate is

    theta = mean_gold(Y) + lambda (mean_all(f) - mean_gold(f)),

with variance Var(Y - lambda f)/n + lambda^2 Var(f)/N: the mean of Angelopoulos, Bates, Fannjiang, Jordan &
Zrnic, Science 382 (2023) 669-674 (lambda = 1), with the power tuning of Angelopoulos, Duchi & Zrnic
(arXiv:2311.01453): lambda = Cov(Y, f)/((1 + n/N) Var(f)), here one for all classes, so that the shares add up to
1, and kept in [0, 1]. lambda = 0 is the gold sample alone. Gold drawn with unequal, known chances is weighted
(Hajek's mean, linearised variance: Sarndal, Swensson & Wretman, Model Assisted Survey Sampling, 1992, sec. 5.7).

The package for it (ppi-python) needs numba, statsmodels and a downloader, and its normal limits have no width
where gold and clean labels agree throughout; the limits here are those of `audit.intervals.effective_interval`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from audit.errors import ArgumentError
from audit.intervals import check_level, effective_interval
from audit.results import Estimate, Result

__all__ = ["ClassShare", "Prevalence", "estimate_prevalence"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ClassShare(Estimate):
    """The share of one class in [0, 1]: corrected, as counted among clean labels, and from gold alone."""

    label: str
    counted: float
    gold_only: float


@dataclass(frozen=True, kw_only=True)
class Prevalence(Result):
    """Shares of all classes.

    Parameters
    ----------
    shares:
        One per class, in the order of the classes.
    items, gold:
        Items whose clean labels were counted (N), and gold items (n).
    effective_gold:
        What the gold sample is worth after weighting: (sum w)^2 / sum w^2 (Kish 1965).
    tuning:
        lambda in [0, 1]: how far the clean labels are trusted.
    """

    shares: tuple[ClassShare, ...]
    items: int
    gold: int
    effective_gold: float
    tuning: float
    level: float


def estimate_prevalence(
    *,
    classes: Sequence[str],
    counted: Mapping[str, int],
    items: int,
    gold: Sequence[str],
    clean: Sequence[str | None],
    weights: Sequence[float] | None = None,
    level: float = 0.95,
) -> Prevalence:
    """Estimate the share of each class among the items that gold and ``items`` are drawn from.

    Parameters
    ----------
    classes:
        The declared classes.
    counted, items:
        Clean label -> number of items that have it, of ``items`` items in all (some may have no label). Without
        ``weights`` these are the items outside gold, with ``weights`` all items.
    gold, clean:
        Length n >= 2: the right label of each gold item, and its clean label, or None where it has none.
    weights:
        Length n: what each gold item stands for, in proportion to 1/(its chance to be drawn). None: gold is a
        simple random sample.

    Raises
    ------
    ArgumentError
        When gold has fewer than two items, the lengths differ or a weight is not above 0.
    """
    check_level(level)
    count = len(gold)
    if count < 2 or len(clean) != count:
        raise ArgumentError(
            "a gold-corrected share needs two gold items at least, and a clean label or None for each"
        )
    if items < 1:
        raise ArgumentError(
            "a gold-corrected share needs items outside gold: label more than the gold sample"
        )
    part = _weights(weights, count)
    right = _indicators(gold, classes)
    said = _indicators(clean, classes)
    share = np.array([counted.get(name, 0) / items for name in classes])
    mean_right, mean_said = part @ right, part @ said
    squares = (part**2 * count / (count - 1))[:, None]
    both = float(np.sum(squares * (right - mean_right) * (said - mean_said)))
    alone = float(np.sum(squares * (said - mean_said) ** 2) + np.sum(share * (1.0 - share)) / items)
    tuning = min(1.0, max(0.0, both / alone)) if alone > 0.0 else 0.0
    residual = right - tuning * said
    centre = part @ residual
    spread = np.sum(squares * (residual - centre) ** 2, axis=0)
    worth = float(1.0 / np.sum(part**2))
    z = float(special.ndtri(0.5 + level / 2.0))
    shares = []
    for k, name in enumerate(classes):
        estimate = float(centre[k] + tuning * share[k])
        wander = z * tuning * math.sqrt(share[k] * (1.0 - share[k]) / items)
        low, high = _limits(float(centre[k]), float(spread[k]), worth, tuning, level)
        shares.append(
            ClassShare(
                label=name,
                estimate=min(1.0, max(0.0, estimate)),
                low=max(0.0, estimate - math.hypot(float(centre[k]) - low, wander)),
                high=min(1.0, estimate + math.hypot(high - float(centre[k]), wander)),
                method="prediction-powered inference, limits at the effective sample size",
                counted=float(share[k]),
                gold_only=float(mean_right[k]),
            )
        )
    return Prevalence(
        shares=tuple(shares), items=items, gold=count, effective_gold=worth, tuning=tuning, level=level
    )


def _weights(weights: Sequence[float] | None, count: int) -> FloatArray:
    """Weights that add up to 1."""
    if weights is None:
        return np.full(count, 1.0 / count)
    given = np.asarray(weights, np.float64)
    if given.shape != (count,) or not np.all(np.isfinite(given) & (given > 0)):
        raise ArgumentError(
            "gold needs one weight above 0 for each item: 1/(its chance to be drawn), or in proportion"
        )
    return np.asarray(given / given.sum(), np.float64)


def _indicators(labels: Sequence[str | None], classes: Sequence[str]) -> FloatArray:
    """Shape (n, K): 1 where the label is the class; a row of zeros where there is no label."""
    place = {name: k for k, name in enumerate(classes)}
    table = np.zeros((len(labels), len(classes)))
    for row, label in enumerate(labels):
        if label is None:
            continue
        if label not in place:
            raise ArgumentError(
                f"{label!r} is not one of the classes {', '.join(classes)}; declare it, or map it"
            )
        table[row, place[label]] = 1.0
    return table


def _limits(mean: float, variance: float, worth: float, tuning: float, level: float) -> tuple[float, float]:
    """Limits of a weighted mean of residuals, which lie in [-tuning, 1], through the scale [0, 1]."""
    scale = 1.0 + tuning
    low, high = effective_interval(
        min(1.0, max(0.0, (mean + tuning) / scale)),
        variance / scale**2,
        max(1, math.floor(worth + 1e-9)),
        level=level,
    )
    return low * scale - tuning, high * scale - tuning
