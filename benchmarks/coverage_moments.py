"""Run the coverage study of the band from several repeats and write docs/coverage-moments.md (part of ``make study``).

Five minutes or so on one core. ``--quick`` takes a twentieth of the samples and writes nothing: a trial run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

from moments_cells import held, held_mixed

PAGE = Path(__file__).parents[1] / "docs" / "coverage-moments.md"
SAMPLES, SOME, FEWER = 1_000, 100, 20
ITEMS = (60, 300)
ALIKE, DIFFERENT = {0.1: 1.0}, {0.02: 0.8, 0.42: 0.2}
SIZES: dict[str, dict[int, float]] = {
    "3": {3: 1.0},
    "5": {5: 1.0},
    "70 % 2, 20 % 3, 10 % 4": {2: 0.7, 3: 0.2, 4: 0.1},
}
START = time.perf_counter()


def table(head: list[str], rows: Iterator[list[str]]) -> str:
    """A Markdown table, first column to the left."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def cells(samples: int, fewer: int) -> Iterator[list[str]]:
    """One row for each setting: coverage, and the mean of the four ends."""
    for classes in (2, 3):
        for sizes, chances in SIZES.items():
            for words, rates in (("equal", ALIKE), ("mixed", DIFFERENT)):
                for items in ITEMS:
                    if items * sum(share for n, share in chances.items() if n > 2) < 60 or (
                        classes > 2 and items != 300
                    ):
                        continue
                    count = samples if classes == 2 else fewer
                    got = held(items, chances, rates, classes=classes, samples=count, seed=items + classes)
                    print(
                        f"{time.perf_counter() - START:6.1f} s  {classes} {sizes} {words} {items}: {got}",
                        flush=True,
                    )
                    ends = [f"{end:.3f}" for end in (got.low, got.lower, got.upper, got.high)]
                    yield [
                        f"{classes}",
                        sizes,
                        words,
                        f"{items}",
                        f"{got.share:.3f}",
                        *ends,
                        f"{got.unfit:.3f}",
                    ]


def mixtures(samples: int) -> Iterator[list[str]]:
    """Items whose chances come from a mixture that is new in every sample."""
    share = held_mixed(200, (3, 4, 5), samples=samples, seed=1)
    print(f"{time.perf_counter() - START:6.1f} s  mixtures: {share}", flush=True)
    yield ["3, 4 or 5", "200", f"{samples:,}", f"{share:.3f}"]


def main() -> None:
    """Run both parts and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a twentieth of the samples; prints, writes nothing"
    )
    quick = parser.parse_args().quick
    samples, some, fewer = (50, 15, 3) if quick else (SAMPLES, SOME, FEWER)
    head = ["K", "labels an item", "noise", "items", "held", "low", "lower", "upper", "high", "unfit"]
    drawn = table(["labels an item", "items", "samples", "held"], mixtures(samples))
    page = f"""\
# How often the band from several repeats holds the ceiling

Written by `make study` (`benchmarks/coverage_moments.py`, seeded); do not edit by hand.

`ceiling.moments` at the 95 % level. "Held" is the share of samples with low ≤ true ceiling ≤ high.

## Items of every kind

In each of {samples:,} samples the items' chances come from a mixture of one to three beta distributions that is drawn
anew, so that hardly two samples have the same ceiling.

{drawn}
## Equal and mixed noise

The true ceiling is .9 throughout: a flip rate of .1 for every item ("equal"), or .02 for 80 % and .42 for 20 % of the
items ("mixed"); 30 % of the items are of the rarer classes. {some} samples a row for K = 2 (standard error
{(0.95 * 0.05 / some) ** 0.5:.3f}), {fewer} for K = 3. At equal noise the ceiling is the very end of what the counts
allow, the hardest place for the band. The next four columns are means over the samples; "unfit" is the share of samples
in which the test of independent draws rejects at .001.

{table(head, cells(some, fewer))}"""
    if quick:
        print(page)
    else:
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
