"""Run the coverage study of the band from several repeats and write docs/coverage-moments.md (part of ``make study``).

Half an hour or so on one core. ``--quick`` takes a twentieth of the samples, ``--trial`` one for some rows, to see that
the script works; both print the page and write nothing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from moments_cells import held, held_mixed

PAGE = Path(__file__).parents[1] / "docs" / "coverage-moments.md"
START = time.perf_counter()

EQUAL, MIXED, RARE, COINS = {0.1: 1.0}, {0.02: 0.8, 0.42: 0.2}, {0.02: 1.0}, {0.0: 0.95, 0.5: 0.05}
NOISE = {"equal": EQUAL, "mixed": MIXED, "rare": RARE, "coins": COINS}
RAGGED = "70 % 2, 20 % 3, 10 % 4"
SIZES: dict[str, dict[int, float]] = {"3": {3: 1.0}, "5": {5: 1.0}, RAGGED: {2: 0.7, 3: 0.2, 4: 0.1}}

#: Items of a sample, for each number of classes; the ragged ones need 30 items of three labels, and more than 50.
ITEMS = {2: (50, 300, 2_000), 3: (50, 300), 5: (50, 300)}


class Samples(NamedTuple):
    """Samples a row: of mixtures that are new in every sample, and for two, three and five classes; every which row."""

    mixtures: int = 1_000
    two: int = 1_000
    three: int = 300
    five: int = 100
    step: int = 1

    def of(self, classes: int) -> int:
        """Samples a row for a number of classes."""
        return {2: self.two, 3: self.three, 5: self.five}[classes]


FULL, QUICK, TRIAL = Samples(), Samples(50, 50, 15, 5), Samples(1, 1, 1, 1, step=9)


def error(samples: int) -> str:
    """The Monte-Carlo standard error of a share near .95."""
    return f"{(0.95 * 0.05 / samples) ** 0.5:.3f}"


def say(text: str) -> None:
    """Progress, with the time since the start."""
    print(f"{time.perf_counter() - START:6.1f} s  {text}", flush=True)


def table(head: list[str], rows: Iterator[list[str]]) -> str:
    """A Markdown table, first column to the left."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def settings() -> Iterator[tuple[int, str, str, int]]:
    """Number of classes, labels an item, noise, items."""
    for classes, numbers in ITEMS.items():
        for sizes in SIZES:
            for noise in ("equal", "mixed") if sizes == RAGGED else NOISE:
                for items in numbers:
                    if sizes != RAGGED or items > 50:
                        yield classes, sizes, noise, items


def cells(samples: Samples) -> Iterator[list[str]]:
    """One row for each setting: coverage, how often the ceiling lies past each end, and the mean of the four ends."""
    for classes, sizes, noise, items in islice(settings(), None, None, samples.step):
        got = held(
            items,
            SIZES[sizes],
            NOISE[noise],
            classes=classes,
            samples=samples.of(classes),
            seed=items + classes,
        )
        say(f"{classes} {sizes} {noise} {items}: {got.share:.3f}")
        yield [f"{classes}", sizes, noise, f"{items:,}", *(f"{value:.3f}" for value in got)]


def mixtures(samples: int) -> Iterator[list[str]]:
    """Items whose chances come from a mixture that is new in every sample."""
    for classes, items in ((2, 50), (2, 200), (3, 200), (5, 200)):
        share, width = held_mixed(items, (3, 4, 5), samples=samples, seed=1, classes=classes)
        say(f"mixtures, {classes} classes, {items} items: {share:.3f}")
        yield [f"{classes}", "3, 4 or 5", f"{items}", f"{samples:,}", f"{share:.3f}", f"{width:.3f}"]


def page(samples: Samples) -> str:
    """The whole page."""
    drawn = table(
        ["K", "labels an item", "items", "samples", "held", "mean width"], mixtures(samples.mixtures)
    )
    head = [
        "K",
        "labels an item",
        "noise",
        "items",
        "held",
        "above",
        "below",
        "low",
        "lower",
        "upper",
        "high",
        "unfit",
    ]
    two, three, five = (f"{count:,}" for count in (samples.two, samples.three, samples.five))
    return f"""\
# How often the band from several repeats holds the ceiling

Written by `make study` (`benchmarks/coverage_moments.py`, seeded); do not edit by hand.

`ceiling.moments` at the 95 % level. "Held" is the share of samples with low ≤ true ceiling ≤ high.

## Items of every kind

In each of {samples.mixtures:,} samples a row the items' chances come from a mixture of one to three beta (K > 2:
Dirichlet) distributions that is drawn anew, so that hardly two samples have the same ceiling. The Monte-Carlo standard
error of a share near .95 is {error(samples.mixtures)}.

{drawn}
## Equal and mixed noise

30 % of the items are of the rarer classes. The flip rate is .1 for every item ("equal"); .02 for 80 % and .42 for 20 %
of the items ("mixed"); .02 for every item ("rare": fifty items of three labels show three conflicts); 0, and for 5 % of
the items .5 ("coins": often no more than one conflict among fifty). The true ceiling is .9, .9, .98 and .975. At equal
noise it is the very end of what the counts allow, the hardest place for the band.

Samples a row, and the Monte-Carlo standard error of a share near .95: {two} for K = 2 ({error(samples.two)}),
{three} for K = 3 ({error(samples.three)}), {five} for K = 5 ({error(samples.five)}). "Above" and "below" are the
shares of samples whose band the ceiling lies above or below (.025 each is allowed). The next four columns are means
over the samples; "unfit" is the share of samples in which the test of independent draws rejects at .001.

{table(head, cells(samples))}"""


def main(argv: Sequence[str] | None = None) -> None:
    """Run both parts and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a twentieth of the samples; prints, writes nothing"
    )
    parser.add_argument("--trial", action="store_true", help="a sample for some rows; prints, writes nothing")
    chosen = parser.parse_args(argv)
    text = page(TRIAL if chosen.trial else QUICK if chosen.quick else FULL)
    if chosen.quick or chosen.trial:
        print(text)
    else:
        PAGE.write_text(text, encoding="utf-8")
        say(f"written: {PAGE.relative_to(PAGE.parents[1])}")


if __name__ == "__main__":
    main()
