"""Time of 10,000 bootstrap draws of d over a million repeated items, and over ten million rows.

A draw costs by the distinct values of d_i, not by the items: more items take longer only where they bring new values,
as long tails do. The naive way, resampling items one by one, is timed on a few draws beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from audit.disagreement import estimate_disagreement
from audit.intervals import bootstrap_totals
from audit.patterns import CountPatterns

DRAWS = 10_000
ITEMS = 1_000_000
ROWS = 10_000_000
FEW = 5


def seconds(work: Callable[[], object], *, tries: int = 3) -> float:
    """Processor time of the shortest of ``tries`` runs: other programs on the machine do not count."""
    best = float("inf")
    for _ in range(tries):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def annotated(items: int, classes: int, power: float, top: int) -> CountPatterns:
    """Items with sizes from 2 to ``top`` in proportion to n^-power; a fifth of them hard (eps = .42, else .02)."""
    rng = np.random.default_rng(classes)
    sizes = np.arange(2, top + 1)
    chance = sizes**-power
    n = rng.choice(sizes, p=chance / chance.sum(), size=items)
    rates = np.where(rng.random(items) < 0.2, 0.42, 0.02)
    spread = np.full((items, classes - 1), 1.0 / (classes - 1))
    wrong = rng.multinomial(rng.binomial(n, rates), spread)
    table = np.column_stack([n - wrong.sum(axis=1), wrong])
    turned = (np.arange(classes)[None, :] + rng.integers(classes, size=items)[:, None]) % classes
    rows, repeats = np.unique(np.take_along_axis(table, turned, axis=1), axis=0, return_counts=True)
    return CountPatterns.from_counts(rows, items=repeats)


def draw(found: CountPatterns) -> None:
    """The draws behind the interval of d."""
    rng = np.random.default_rng(0)
    bootstrap_totals(found.disagreement[:, None], found.items, draws=DRAWS, rng=rng)


def one_by_one(found: CountPatterns, draws: int) -> None:
    """The bootstrap that resamples items."""
    rng = np.random.default_rng(0)
    everything = np.repeat(found.disagreement, found.items)
    for _ in range(draws):
        everything[rng.integers(len(everything), size=len(everything))].sum()


def main() -> None:
    """Print one line for each kind of data."""
    names = (
        "classes",
        "sizes",
        "items",
        "rows",
        "patterns",
        "values of d_i",
        "10,000 draws",
        "whole estimate",
    )
    print(" | ".join(names), "(processor time)")
    for classes, power, top in ((2, 3.0, 20), (10, 3.0, 20), (2, 2.5, 200), (10, 2.5, 200)):
        first = annotated(ITEMS, classes, power, top)
        more = ROWS * ITEMS // int(first.sizes @ first.items)
        times = []
        for found in (first, annotated(more, classes, power, top)):
            times.append(seconds(partial(draw, found)))
            print(
                f"{classes} | 2 to {top}, n^-{power} | {found.item_total:,} | {int(found.sizes @ found.items):,}"
                f" | {len(found.items):,} | {len(np.unique(found.disagreement)):,} | {times[-1]:.2f} s"
                f" | {seconds(partial(estimate_disagreement, found, draws=DRAWS)):.2f} s",
                flush=True,
            )
        slow = seconds(partial(one_by_one, first, FEW), tries=1) * DRAWS / FEW
        print(
            f"  {ROWS:,} rows: {times[1] / times[0]:.2f} times as long; a million items one by one: {slow:,.0f} s"
        )


if __name__ == "__main__":
    main()
