"""How often the band from three or more repeats holds the true ceiling: the computations behind the coverage study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from audit.moments import moment_bounds
from audit.patterns import CountPatterns

#: Shares of the classes: one of 70 %, the rest even; the settings of the design's population values.
COMMON = 0.7

#: Chances in a mixture; items are drawn from them, so their mean is the exact ceiling.
_POOL = 5_000

#: p-value below which the audit says that the counts fit no mixture.
_UNFIT = 0.001


class Held(NamedTuple):
    """Share of samples whose band holds the ceiling, and of those where it lies above or below; mean ends; unfit."""

    share: float
    above: float
    below: float
    low: float
    lower: float
    upper: float
    high: float
    unfit: float


def draw_repeats(
    items: int, sizes: dict[int, float], rates: dict[float, float], *, classes: int = 2, seed: int = 0
) -> CountPatterns:
    """Counts of items whose true class, flip rate and number of labels are drawn independently."""
    rng = np.random.default_rng(seed)
    shares = np.array([COMMON, *[(1.0 - COMMON) / (classes - 1)] * (classes - 1)])
    truth = rng.choice(classes, size=items, p=shares)
    rate = rng.choice(list(rates), size=items, p=list(rates.values()))
    size = rng.choice(list(sizes), size=items, p=list(sizes.values()))
    chances = np.repeat(rate[:, None] / (classes - 1), classes, axis=1)
    chances[np.arange(items), truth] = 1.0 - rate
    return CountPatterns.from_counts(rng.multinomial(size, chances))


def mixed_repeats(items: int, size: int, *, classes: int = 2, seed: int = 0) -> tuple[CountPatterns, float]:
    """Counts of items whose chances come from a random mixture of one to three Dirichlet distributions (betas for two
    classes), and their ceiling.
    """  # fmt: skip
    rng = np.random.default_rng(seed)
    parts = rng.integers(1, 4)
    weights = rng.uniform(0.1, 4.0, size=(parts, classes))
    chosen = rng.choice(parts, size=_POOL, p=rng.dirichlet(np.ones(parts)))
    pool = rng.standard_gamma(weights[chosen])
    pool /= pool.sum(axis=1, keepdims=True)
    counts = rng.multinomial(size, rng.choice(pool, size=items))
    return CountPatterns.from_counts(counts), float(pool.max(axis=1).mean())


def held(
    items: int, sizes: dict[int, float], rates: dict[float, float], *, classes: int, samples: int, seed: int
) -> Held:
    """Coverage over seeded samples; a sample without a band holds nothing."""
    ceiling = 1.0 - sum(rate * share for rate, share in rates.items())
    found, above, below, ends, unfit = 0, 0, 0, np.zeros(4), 0
    for sample in range(samples):
        patterns = draw_repeats(items, sizes, rates, classes=classes, seed=1_000_003 * seed + sample)
        part = moment_bounds(patterns, seed=sample)
        if part.low is None or part.high is None or part.lower is None or part.upper is None:
            continue
        found += part.low <= ceiling <= part.high
        above += part.high < ceiling
        below += ceiling < part.low
        unfit += (part.fit_p_value or 0.0) < _UNFIT
        ends += [part.low, part.lower, part.upper, part.high]
    shares = [number / samples for number in (found, above, below)]
    return Held(*shares, *(float(end) for end in ends / samples), unfit / samples)


def held_mixed(
    items: int, sizes: Sequence[int], *, samples: int, seed: int, classes: int = 2
) -> tuple[float, float]:
    """Coverage over samples, each from a mixture of its own, with the numbers of labels in turn; mean width."""
    found, width = 0, 0.0
    for sample in range(samples):
        size = sizes[sample % len(sizes)]
        patterns, ceiling = mixed_repeats(items, size, classes=classes, seed=1_000_003 * seed + sample)
        part = moment_bounds(patterns, seed=sample)
        if part.low is not None and part.high is not None:
            found += part.low <= ceiling <= part.high
            width += part.high - part.low
    return found / samples, width / samples
