"""docs/methods.md names functions and tests that exist; docs/coverage.md holds what the study computes."""

from __future__ import annotations

import importlib
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from audit.fliprate import disagreement_of
from benchmarks.coverage_cells import SIZES, draw, ours, pairs_cell, score_distribution, simulated
from tests.naive import item_disagreement

ROOT = Path(__file__).parents[1]
METHODS = (ROOT / "docs" / "methods.md").read_text("utf-8")
COVERAGE = (ROOT / "docs" / "coverage.md").read_text("utf-8")
TABLE = [line.split(" | ") for line in METHODS.partition("## Formula")[2].splitlines() if "| `" in line]


def test_the_table_is_found() -> None:
    assert len(TABLE) > 20
    assert all(len(row) == 5 for row in TABLE)


@pytest.mark.parametrize("row", TABLE, ids=[row[0].strip("| ") for row in TABLE])
def test_functions_and_tests_exist(row: list[str]) -> None:
    names = row[3].strip("` ").split(".")
    package = names[0] if names[0] in ("relabel", "train") else "audit"
    module, *path = names if package == "audit" else names[1:]
    found = importlib.import_module(f"{package}.{module}")
    for name in path:
        found = getattr(found, name)
    file, _, test = row[4].strip("`| ").partition("::")
    assert re.search(rf"^def {test}\(", (ROOT / "tests" / file).read_text("utf-8"), re.MULTILINE)


def cells(heading: str) -> dict[tuple[str, str], list[str]]:
    """Rows of the table after a line, by n and K, without the marks."""
    lines = COVERAGE.partition(heading)[2].split("\n\n")[1].splitlines()[2:]
    rows = [[cell.strip(" *") for cell in line.strip("| ").split("|")] for line in lines]
    return {(row[0], row[1]): row[2:] for row in rows}


@pytest.mark.parametrize(
    ("kind", "heading"),
    [("wilson", "Wilson's interval (the default)"), ("exact", "`--interval exact`), lowest")],
)
def test_the_page_holds_the_coverage_of_pairs(kind: str, heading: str) -> None:
    shown = cells(heading)
    assert len(shown) == 15
    for n, k in itertools.product((30, 50), (2, 3, 10)):
        for rate, cell in zip((0.01, 0.02, 0.05, 0.10, 0.20, 0.35), shown[f"{n}", f"{k}"], strict=True):
            found = pairs_cell(n, k, {rate: 1.0}, kind)  # type: ignore[arg-type]
            assert float(cell) == pytest.approx(found.d, abs=5.1e-5)


def test_low_cells_are_marked() -> None:
    marked = re.findall(r"\*\*(\.\d{4})\*\*", COVERAGE)
    plain = re.findall(r"(?<![*\d])(\.\d{4})(?![*\d])", COVERAGE)
    assert marked
    assert all(float(cell) <= 0.94 for cell in marked)
    assert all(float(cell) >= 0.94 for cell in plain)


def test_larger_groups_reach_the_bar_in_every_cell() -> None:
    part = COVERAGE.partition("## 2.")[2].partition("## 3.")[0]
    assert part.count("\n| ") >= 3 * 15
    assert "**" not in part


def test_the_distribution_of_scores_by_brute_force() -> None:
    # three labels of three classes with chances .8, .1, .1, label by label
    wanted: dict[float, float] = {}
    for labels in itertools.product(range(3), repeat=3):
        chance = float(np.prod([(0.8, 0.1, 0.1)[k] for k in labels]))
        d = float(item_disagreement([labels.count(k) for k in range(3)]) or 0)
        wanted[round(d, 9)] = wanted.get(round(d, 9), 0.0) + chance
    found = score_distribution("size 3", 3, 0.2)
    assert {round(d, 9): p for d, p in found.items()} == pytest.approx(wanted)


@pytest.mark.parametrize("sizes", list(SIZES))
@pytest.mark.parametrize("classes", [2, 10])
def test_the_distribution_of_scores_has_its_mean(sizes: str, classes: int) -> None:
    found = score_distribution(sizes, classes, 0.1)
    assert sum(found.values()) == pytest.approx(1.0)
    assert sum(d * p for d, p in found.items()) == pytest.approx(disagreement_of(0.1, classes=classes))


@pytest.mark.parametrize("items", [1, 3, 15])
@pytest.mark.parametrize("sizes", list(SIZES))
def test_few_items_are_covered_too(sizes: str, items: int) -> None:
    for classes, rates in itertools.product((2, 10), ({0.1: 1.0}, {0.35: 1.0}, {0.02: 0.8, 0.42: 0.2})):
        sample = draw(sizes, classes, rates, items, 2_000, seed=items)
        assert simulated(sample, ours, classes).d >= 0.94  # .95 less two standard errors


def test_a_small_study_covers() -> None:
    sample = draw("long-tailed mix", 3, {0.02: 0.8, 0.42: 0.2}, 40, 2_000, seed=1)
    assert simulated(sample, ours, 3).d >= 0.94
