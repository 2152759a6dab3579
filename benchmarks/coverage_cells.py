"""How often nominal 95 % intervals hold the truth: the computations behind ``coverage_study.py``.

Pairs are enumerated: coverage is a sum of binomial chances over the intervals that the library gives. Larger
groups are simulated from the exact distribution of d_i. The variance that ``estimate_disagreement`` finds by
bootstrap is known in the limit of endless draws, sum (d_i - d)^2 / n^2; the bulk uses that limit, and
``with_the_bootstrap`` holds it to the function itself. Everything is seeded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from audit.agreement import estimate_agreement, krippendorff_alpha, retest_kappa
from audit.disagreement import IntervalKind, by_class, estimate_disagreement, item_mean, largest_disagreement
from audit.fliprate import disagreement_of, estimate_flip_rate, flip_rate, maximum_disagreement
from audit.intervals import bootstrap_totals, clopper_pearson, effective_interval, no_conflict_upper
from audit.patterns import CountPatterns
from audit.results import Estimate

Array = npt.NDArray[np.float64]
Limits = tuple[float, float]

MIXED = {0.02: 0.8, 0.42: 0.2}  # flip rate: share of items, for the part on items that differ
SEED = 20_260_101
LARGEST_SIZE = 40
TAIL = {n: n**-2.5 for n in range(2, LARGEST_SIZE + 1)}
SIZES: dict[str, dict[int, float]] = {
    "size 3": {3: 1.0},
    "long-tailed mix": {n: share / sum(TAIL.values()) for n, share in TAIL.items()},
    "80 % pairs, 20 % of size 40": {2: 0.8, 40: 0.2},
}


class Cell(NamedTuple):
    """Coverage of d and, among samples that have a flip rate, of eps; the share without one; the mean width."""

    d: float
    rate: float
    without: float
    width: float


# --- pairs, by enumeration -------------------------------------------------------------------------------------


@cache
def pair_result(
    conflicts: int, items: int, kind: IntervalKind, classes: int
) -> tuple[float, float, Limits | None]:
    """The library's limits of d for pairs, and those of eps (None where there is no flip rate)."""
    table = CountPatterns.from_counts([[2, 0], [1, 1]], items=[items - conflicts, conflicts])
    d = estimate_disagreement(table, interval=kind)
    rate = estimate_flip_rate(d, classes=classes)
    if d.low is None or d.high is None:
        raise RuntimeError("pairs always have limits")
    return d.low, d.high, None if rate.low is None or rate.high is None else (rate.low, rate.high)


def pairs_cell(items: int, classes: int, rates: dict[float, float], kind: IntervalKind) -> Cell:
    """Exact coverage for ``items`` pairs; ``rates`` maps flip rates to shares of items."""
    d = sum(share * disagreement_of(rate, classes=classes) for rate, share in rates.items())
    rate = flip_rate(d, classes=classes)
    chance = stats.binom.pmf(np.arange(items + 1), items, d)
    held = held_rate = without = width = 0.0
    for conflicts in np.flatnonzero(chance > 1e-12):
        low, high, limits = pair_result(int(conflicts), items, kind, classes)
        weight = float(chance[conflicts])
        held += weight * (low <= d <= high)
        width += weight * (high - low)
        if limits is None:
            without += weight
        else:
            held_rate += weight * (limits[0] <= rate <= limits[1])
    return Cell(held, held_rate / (1.0 - without), without, width)


# --- larger groups, by simulation ------------------------------------------------------------------------------


@cache
def score_distribution(sizes: str, classes: int, rate: float) -> dict[float, float]:
    """Chance of each value of d_i for an item of random size, errors spread evenly over ``classes`` - 1 classes.

    With weights p_k^j/j! the sum over all counts with sum n and sum of squares s is P(s | n)/n!; all sizes come
    out of one convolution over the classes.
    """
    top = max(SIZES[sizes])
    ways = np.zeros((top + 1, top * top + 1))
    ways[0, 0] = 1.0
    for p in [1.0 - rate, *[rate / (classes - 1)] * (classes - 1)]:
        new = np.zeros_like(ways)
        for j in range(top + 1):
            weight = p**j / math.factorial(j)
            if j == 0 or weight > 0.0:
                new[j:, j * j :] += weight * ways[: top + 1 - j, : top * top + 1 - j * j]
        ways = new
    found: dict[float, float] = {}
    for n, share in SIZES[sizes].items():
        for s in np.flatnonzero(ways[n]):
            d = 1.0 - (int(s) - n) / (n * (n - 1))
            found[d] = found.get(d, 0.0) + share * float(ways[n, s]) * math.factorial(n)
    return found


class Samples(NamedTuple):
    """Simulated samples: counts (R, A) of the A possible values of d_i, which are ``scores``; the true d."""

    counts: npt.NDArray[np.int64]
    scores: Array
    d: float
    largest: float

    @property
    def means(self) -> Array:
        """d of each sample."""
        return np.asarray(self.counts @ self.scores / self.counts[0].sum(), np.float64)

    @property
    def variances(self) -> Array:
        """Variance of that mean: what a bootstrap with endless draws would give."""
        items = self.counts[0].sum()
        return np.asarray(
            np.maximum(self.counts @ self.scores**2 / items - self.means**2, 0.0) / items, np.float64
        )


def draw(sizes: str, classes: int, rates: dict[float, float], items: int, samples: int, seed: int) -> Samples:
    """Samples of ``items`` items with the given mixture of flip rates."""
    chance: dict[float, float] = {}
    for rate, share in rates.items():
        for score, p in score_distribution(sizes, classes, rate).items():
            chance[score] = chance.get(score, 0.0) + share * p
    scores = np.array(sorted(chance, key=lambda score: -chance[score]))
    shares = np.array([chance[score] for score in scores])
    d = sum(share * disagreement_of(rate, classes=classes) for rate, share in rates.items())
    if abs(float(scores @ shares) - d) > 1e-9:
        raise RuntimeError("the distribution of d_i does not have the mean d")
    counts = np.random.default_rng(seed).multinomial(items, shares / shares.sum(), size=samples)
    return Samples(counts, scores, d, largest_disagreement(min(SIZES[sizes]), classes=classes))


def ours(mean: float, variance: float, items: int, largest: float) -> Limits:
    """What ``estimate_disagreement`` gives for groups of mixed sizes, with endless draws."""
    if mean == 0.0:
        return 0.0, no_conflict_upper(items)
    return effective_interval(mean, variance, items, largest=largest)


def korn_graubard(mean: float, variance: float, items: int, largest: float) -> Limits:
    """Clopper-Pearson at the effective sample size with its t correction, but without the added item."""
    if mean == 0.0:
        return 0.0, no_conflict_upper(items)
    size = items if variance <= 0.0 else mean * (1.0 - mean) / variance
    size *= float(special.ndtri(0.975) / special.stdtrit(items - 1, 0.975)) ** 2
    return clopper_pearson(mean * size, size)


def normal(mean: float, variance: float, items: int, largest: float) -> Limits:
    """The mean and 1.96 standard errors."""
    if mean == 0.0:
        return 0.0, no_conflict_upper(items)
    half = float(special.ndtri(0.975)) * math.sqrt(variance)
    return mean - half, mean + half


def simulated(sample: Samples, limits: Callable[[float, float, int, float], Limits], classes: int) -> Cell:
    """Coverage of an interval made from the mean and its variance."""
    items = int(sample.counts[0].sum())
    pairs, repeats = np.unique(np.column_stack([sample.means, sample.variances]), axis=0, return_counts=True)
    ends = np.array([limits(float(m), float(v), items, sample.largest) for m, v in pairs])
    held = (ends[:, 0] <= sample.d + 1e-12) & (sample.d <= ends[:, 1] + 1e-12)
    rated = pairs[:, 0] <= maximum_disagreement(classes) + 1e-12
    has_rate = repeats[rated].sum()
    return Cell(
        float(held @ repeats) / repeats.sum(),
        float(held[rated] @ repeats[rated]) / has_rate if has_rate else math.nan,
        1.0 - has_rate / repeats.sum(),
        float((ends[:, 1] - ends[:, 0]) @ repeats) / repeats.sum(),
    )


def percentile(sample: Samples, samples: int, draws: int = 1_000) -> float:
    """Coverage of the percentile bootstrap over the first ``samples`` samples, one-sided without conflicts."""
    held = 0
    for index, counts in enumerate(sample.counts[:samples]):
        rng = np.random.default_rng([SEED, index])
        totals = bootstrap_totals(
            sample.scores[counts > 0][:, None], counts[counts > 0], draws=draws, rng=rng
        )
        low, high = np.quantile(totals[:, 0] / counts.sum(), (0.025, 0.975))
        if not counts @ sample.scores:
            high = no_conflict_upper(int(counts.sum()))
        held += bool(low <= sample.d <= high)
    return held / samples


# --- whole functions on whole items ----------------------------------------------------------------------------


def annotate(
    rng: np.random.Generator, sizes: str, items: int, prevalence: float, rates: dict[float, float]
) -> CountPatterns:
    """Binary items: random sizes, a share ``prevalence`` of truths in class 1, flip rates as given."""
    if sizes == "pairs":
        n = np.full(items, 2)
    else:
        n = rng.choice(list(SIZES[sizes]), p=list(SIZES[sizes].values()), size=items)
    p = rng.choice(list(rates), p=list(rates.values()), size=items)
    ones = rng.binomial(n, np.where(rng.random(items) < prevalence, 1.0 - p, p))
    table, repeats = np.unique(np.column_stack([n - ones, ones]), axis=0, return_counts=True)
    return CountPatterns.from_counts(table, items=repeats)


def percentile_kappa(found: CountPatterns, kappa: Estimate, rng: np.random.Generator) -> Estimate:
    """The percentile bootstrap of kappa, 500 draws; one-sided without a conflict, as ``kappa`` is then."""
    if kappa.estimate is None or kappa.estimate == 1.0:
        return kappa
    ones = found.counts.toarray()[:, 1] / found.sizes
    totals = bootstrap_totals(np.column_stack([found.disagreement, ones]), found.items, draws=500, rng=rng)
    d, m = totals.T / found.item_total
    mixed = (m > 0.0) & (m < 1.0)
    low, high = np.quantile(1.0 - d[mixed] / (2.0 * m[mixed] * (1.0 - m[mixed])), (0.025, 0.975))
    return Estimate(estimate=kappa.estimate, low=float(low), high=float(high))


def whole_functions(
    sizes: str, items: int, prevalence: float, samples: int, *, population: int = 2_000_000
) -> dict[str, float]:
    """Coverage of d by class, kappa and alpha, called as users call them, and of kappa's percentile bootstrap.

    The true values are those of ``population`` items.
    """
    rng = np.random.default_rng([SEED, items, round(1000 * prevalence), len(sizes)])
    large = annotate(rng, sizes, population, prevalence, MIXED)
    truth = {f"class {part.value}": part.estimate for part in by_class(large)}
    truth |= {"kappa": retest_kappa(large), "alpha": krippendorff_alpha(large)}
    truth["percentile"] = truth["kappa"]
    held = dict.fromkeys(truth, 0)
    used = dict.fromkeys(truth, 0)
    for _ in range(samples):
        found = annotate(rng, sizes, items, prevalence, MIXED)
        both = estimate_agreement(found)
        parts = {
            "kappa": both.kappa,
            "alpha": both.alpha,
            "percentile": percentile_kappa(found, both.kappa, rng),
        }
        for name, part in (parts | {f"class {part.value}": part for part in by_class(found)}).items():
            if part.low is not None and part.high is not None:
                used[name] += 1
                held[name] += part.low <= (truth[name] or 0.0) <= part.high
    return {name: held[name] / used[name] if used[name] else math.nan for name in truth}


def with_the_bootstrap(
    sizes: str, classes: int, rate: float, items: int, samples: int
) -> tuple[float, float, float]:
    """Coverage of the library's function with 10,000 draws, and of its limit; the largest gap, in widths."""
    sample = draw(sizes, classes, {rate: 1.0}, items, samples, seed=SEED + items)
    held = held_in_limit = 0
    gap = 0.0
    for seed, (counts, mean, variance) in enumerate(
        zip(sample.counts, sample.means, sample.variances, strict=True)
    ):
        seen = counts > 0
        part = item_mean(sample.scores[seen], counts[seen], seed=seed, largest=sample.largest)
        low, high = ours(float(mean), float(variance), items, sample.largest)
        if part.low is None or part.high is None:
            raise RuntimeError("samples with items always have limits")
        held += part.low <= sample.d <= part.high
        held_in_limit += low <= sample.d <= high
        gap = max(gap, abs(part.low - low) / (high - low), abs(part.high - high) / (high - low))
    return held / samples, held_in_limit / samples, gap
