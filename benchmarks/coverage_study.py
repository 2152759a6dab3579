"""Run the coverage study of the intervals and write its tables into docs/coverage.md (``make study``).

A few minutes on one core. ``--quick`` takes a tenth of the samples, ``--trial`` a handful of samples of few items, to
see that the script works; both print the page and write nothing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from coverage_cells import (
    MIXED,
    SEED,
    SIZES,
    Cell,
    draw,
    korn_graubard,
    normal,
    ours,
    pairs_cell,
    percentile,
    simulated,
    whole_functions,
    with_the_bootstrap,
)

PAGE = Path(__file__).parents[1] / "docs" / "coverage.md"
RATES = (0.01, 0.02, 0.05, 0.10, 0.20, 0.35)
CLASSES = (2, 3, 10)
BAR = 0.94
Grid = dict[tuple[int, int, float], Cell]


class Plan(NamedTuple):
    """Samples a cell, and of the whole functions; numbers of items; items that the true kappa is computed from."""

    samples: int = 7_000
    fewer: int = 1_000
    items: tuple[int, ...] = (30, 50, 200, 1000, 5000)
    population: int = 2_000_000


FULL, QUICK, TRIAL = Plan(), Plan(700, 100), Plan(10, 2, (30, 50, 200), 20_000)

INTRODUCTION = """\
# How often the intervals hold the truth

Written by `make study` (`benchmarks/coverage_study.py`, seeded); do not edit by hand.

The nominal level is 95 %. A cell is the share of samples whose interval holds the true value. **Bold** cells are
below .94, and the text under each table says why. n is the number of repeated items, K of declared classes, ε the
flip rate of every item, errors spread evenly over the other K − 1 classes. The interval of ε is that of d mapped
through ε_K(d), so it holds ε exactly when that of d holds d, wherever the sample has a flip rate (table 4).
"""


def say(text: str) -> None:
    """Progress, with the time since the start."""
    print(f"{time.perf_counter() - START:6.1f} s  {text}", flush=True)


START = time.perf_counter()


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table, first column to the left."""
    names = list(head)
    lines = [names, ["---", *["---:"] * (len(names) - 1)], *(list(row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def share(value: float) -> str:
    """A coverage with its mark; rounded only after it is held against the bar."""
    text = f"{value:.4f}".lstrip("0") if value < 1 else "1.0000"
    return f"**{text}**" if value < BAR else text


def grid(cell: Callable[[int, int, float], Cell], items: Sequence[int]) -> Grid:
    """All cells of the study."""
    return {(n, k, rate): cell(n, k, rate) for n in items for k in CLASSES for rate in RATES}


def shown(cells: Grid) -> str:
    """The coverage of d as a table: a row for each n and K, a column for each eps."""
    keys = dict.fromkeys((n, k) for n, k, _ in cells)
    rows = ([f"{n}", f"{k}", *(share(cells[n, k, e].d) for e in RATES)] for n, k in keys)
    return table(["n", "K", *(f"ε = {rate:.2f}" for rate in RATES)], rows)


def low_cells(cells: Grid) -> list[tuple[int, int, float]]:
    """The cells below the bar, for d or for eps."""
    return [key for key, cell in cells.items() if min(cell.d, cell.rate) < BAR]


def pairs_part(plan: Plan) -> tuple[str, dict[str, Grid]]:
    """Parts 1: pairs."""
    grids = {}
    for kind in ("wilson", "exact"):
        grids[kind] = grid(
            lambda n, k, rate, kind=kind: pairs_cell(n, k, {rate: 1.0}, kind),  # type: ignore[misc]
            plan.items,
        )
        say(f"pairs, {kind}")
    low = low_cells(grids["wilson"])
    worst = min(cell.d for cell in grids["exact"].values())
    wider = [grids["exact"][key].width / grids["wilson"][key].width - 1 for key in grids["wilson"]]
    rows = (
        [
            f"{n}",
            f"{k}",
            f"{rate:.2f}",
            share(grids["wilson"][n, k, rate].d),
            share(grids["exact"][n, k, rate].d),
        ]
        for n, k, rate in low
    )
    return (
        f"""\
## 1. Pairs: every repeated item has two labels

Computed by enumeration, without sampling error.

Wilson's interval (the default); one-sided without a conflict:

{shown(grids["wilson"])}
Wilson's interval has 95 % on average over d, not at each d: with few expected conflicts its lower limit rises above
the true d a little too early, and at n = 30 it is coarse. {len(low)} of {len(grids["wilson"])} cells are below .94.
`--interval exact` (Clopper and Pearson's, two-sided also without a conflict) covers at least .95 whatever d is; it is
{100 * min(wider):.0f} to {100 * max(wider):.0f} % wider. The cells below .94, with both:

{table(["n", "K", "ε", "Wilson", "exact"], rows)}
Clopper and Pearson's interval (`--interval exact`), lowest cell {worst:.4f}:

{shown(grids["exact"])}""",
        grids,
    )


def larger_part(plan: Plan) -> tuple[str, dict[str, Grid]]:
    """Parts 2: larger groups."""
    samples, grids = plan.samples, {}
    for number, sizes in enumerate(SIZES):

        def cell(n: int, k: int, rate: float, sizes: str = sizes, number: int = number) -> Cell:
            seed = SEED + 1_000_000 * number + 1_000 * n + 10 * k + round(1_000_000 * rate)
            return simulated(draw(sizes, k, {rate: 1.0}, n, samples, seed), ours, k)

        grids[sizes] = grid(cell, plan.items)
        say(f"groups: {sizes}")
    tables = "\n".join(f"Group sizes: {sizes}.\n\n{shown(cells)}" for sizes, cells in grids.items())
    low = sum(len(low_cells(cells)) for cells in grids.values())
    least = min(min(cell.d, cell.rate) for cells in grids.values() for cell in cells.values())
    verdict = "No cell is below .94" if not low else f"Cells below .94: {low}"
    error = (BAR * (1.0 - BAR) / samples) ** 0.5
    mix = SIZES["long-tailed mix"]
    mean = sum(n * chance for n, chance in mix.items())
    return (
        f"""\
## 2. Groups of three, and of mixed sizes

{samples:,} samples a cell: the standard error of a cell near .94 is {error:.4f}. The long-tailed mix has
sizes 2 to 40 with chances in proportion to n^−2.5 ({100 * mix[2]:.0f} % pairs, mean size {mean:.1f}). The last
mix is a hard case: items with very many labels, whose d_i are small and hardly vary, beside many pairs.
{verdict}; the lowest is {least:.4f}.

{tables}""",
        grids,
    )


def comparison_part(samples: int) -> str:
    """Part 3: other intervals on the same samples."""

    def rows() -> Iterator[list[str]]:
        for sizes in SIZES:
            for n in (30, 50, 200):
                for rate in (0.01, 0.05, 0.20):
                    sample = draw(
                        sizes, 2, {rate: 1.0}, n, samples, seed=SEED + 7 * n + round(1_000_000 * rate)
                    )
                    cells = [simulated(sample, way, 2) for way in (normal, korn_graubard, ours)]
                    few = percentile(sample, samples // 5)
                    shares = [share(few), *(share(cell.d) for cell in cells)]
                    yield [sizes, f"{n}", f"{rate:.2f}", *shares, f"{cells[2].width / cells[1].width:.2f}"]
            say(f"other intervals: {sizes}")

    names = [
        "group sizes",
        "n",
        "ε",
        "percentile bootstrap",
        "± 1.96 s.e.",
        "effective size",
        "with added item",
        "width",
    ]
    return f"""\
## 3. Why not the percentile bootstrap

K = 2, all one-sided without a conflict. "Effective size" is Clopper and Pearson's interval at the effective sample
size with its t correction (Korn and Graubard 1998), "with added item" the one this package gives (the upper limit from
a sample with one more item of the largest score, the lower from one more of score 0: `effective_interval`), "width" the
mean width of the latter over the former. With few conflicts the bootstrap sees only scores that happen to be there; if
those are small, d_i of large groups, the conflicts of pairs that it did not see are worth many times as much. The added
item stands for them. The percentile column has {samples // 5:,} samples a cell.

{table(names, rows())}"""


def no_rate_part(grids: dict[str, Grid]) -> str:
    """Part 4: samples without a flip rate."""
    rows = (
        [sizes, f"{n}", f"{k}", f"{rate:.2f}", f"{100 * cell.without:.1f} %", share(cell.d), share(cell.rate)]
        for sizes, cells in grids.items()
        for (n, k, rate), cell in cells.items()
        if cell.without >= 0.0005
    )
    return f"""\
## 4. Samples without a flip rate

Where d comes out above (K − 1)/K there is no ε, and the report says so instead of a number. It happens at ε = .35 of
two classes (d = .455, the largest possible .5) with few items. The other samples hold ε as often as this (where the
share is below .05 %, as often as they hold d):

{table(["group sizes", "n", "K", "ε", "without ε", "d", "ε of the others"], rows)}"""


def bootstrap_part(samples: int) -> str:
    """Part 5: the function itself."""

    def rows() -> Iterator[list[str]]:
        for sizes, k, rate, n in (
            ("size 3", 3, 0.05, 50),
            ("long-tailed mix", 2, 0.02, 30),
            ("long-tailed mix", 3, 0.10, 200),
            ("long-tailed mix", 10, 0.20, 1000),
            ("80 % pairs, 20 % of size 40", 2, 0.05, 50),
        ):
            held, limit, gap = with_the_bootstrap(sizes, k, rate, n, samples)
            say(f"with the bootstrap: {sizes}, n = {n}")
            yield [sizes, f"{n}", f"{k}", f"{rate:.2f}", share(held), share(limit), f"{100 * gap:.1f} %"]

    names = ["group sizes", "n", "K", "ε", "10,000 draws", "endless draws", "largest gap"]
    error = (0.95 * 0.05 / samples) ** 0.5
    return f"""\
## 5. The bootstrap against its limit

Tables 2 to 4 and 6 use the variance that the bootstrap of `estimate_disagreement` tends to with endless draws,
Σ (d_i − d)²/n². Here is the function itself, 10,000 draws, on {samples:,} samples a cell (standard error {error:.3f}):
what counts is that the two columns agree. The gap is the largest difference between an end of the two intervals, as
a share of the width.

{table(names, rows())}"""


def mixture_part(plan: Plan) -> str:
    """Part 6: items that differ."""

    def rows() -> Iterator[list[str]]:
        for k in CLASSES:
            for sizes in ("pairs", "pairs, exact", *SIZES):
                cells = []
                for n in plan.items:
                    if sizes.startswith("pairs"):
                        cells.append(pairs_cell(n, k, MIXED, "exact" if "exact" in sizes else "wilson"))
                    else:
                        cells.append(
                            simulated(draw(sizes, k, MIXED, n, plan.samples, seed=SEED + n + k), ours, k)
                        )
                yield [sizes, f"{k}", *(share(cell.d) for cell in cells)]
        say("items that differ")

    return f"""\
## 6. Items that are not equally hard

80 % of the items at ε = .02 and 20 % at .42: nothing in the interval of d assumes that items are alike.

{table(["group sizes", "K", *(f"n = {n}" for n in plan.items)], rows())}"""


def coefficients_part(plan: Plan) -> str:
    """Part 7: d by class, kappa and alpha."""
    samples = plan.fewer

    def rows() -> Iterator[list[str]]:
        for sizes in ("pairs", "long-tailed mix"):
            for rare in (0.4, 0.1, 0.03):
                for n in (50, 200):
                    found = whole_functions(sizes, n, rare, samples, population=plan.population)
                    say(f"by class, kappa, alpha: {sizes}, {rare}, n = {n}")
                    names = ("class 0", "class 1", "kappa", "alpha", "percentile")
                    yield [sizes, f"{100 * rare:.0f} %", f"{n}", *(share(found[name]) for name in names)]

    names = [
        "group sizes",
        "rarer class",
        "n",
        "d of the common class",
        "d of the rarer",
        "κ",
        "α",
        "κ, percentile",
    ]
    error = (0.95 * 0.05 / samples) ** 0.5
    return f"""\
## 7. d by class, κ and α

K = 2, the items of part 6, {samples:,} samples a cell (standard error {error:.3f} near .95); samples with one class
only have no κ or α and are left out. κ and α divide by the disagreement expected by chance, which rests on the
number of items of the rarer class: with a handful of them the sample does not show how few there might have been,
and the intervals are too narrow; α, which gives large groups more weight, rests on fewer items still. The last
column is the percentile bootstrap of κ, one-sided without a conflict.

{table(names, rows())}"""


def page(plan: Plan) -> str:
    """The whole page."""
    pairs, of_pairs = pairs_part(plan)
    larger, of_larger = larger_part(plan)
    parts = [
        INTRODUCTION, pairs, larger, comparison_part(plan.samples),
        no_rate_part({"pairs": of_pairs["wilson"], "pairs, exact": of_pairs["exact"], **of_larger}),
        bootstrap_part(plan.fewer), mixture_part(plan), coefficients_part(plan),
    ]  # fmt: skip
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def main(argv: Sequence[str] | None = None) -> None:
    """Run all parts and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples; prints, writes nothing")
    parser.add_argument("--trial", action="store_true", help="a handful of samples; prints, writes nothing")
    chosen = parser.parse_args(argv)
    text = page(TRIAL if chosen.trial else QUICK if chosen.quick else FULL)
    if chosen.quick or chosen.trial:
        print(text)
    else:
        PAGE.write_text(text, encoding="utf-8")
        say(f"written: {PAGE.relative_to(PAGE.parents[1])}")


if __name__ == "__main__":
    main()
