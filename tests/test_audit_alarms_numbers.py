"""What makes an audit of numbers lie: each lie raises its alarm, and honest numbers raise none."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from audit.alarms_numbers import pair_distances
from audit.label_numbers import audit_numeric
from audit.patterns import CountPatterns

Line = tuple[str, str, str, int]


def rated(seed: int, *, grid: float = 0.1, spread: float = 0.5) -> list[Line]:
    """250 items with two numbers and 150 with one: item, number, annotator, a number of the record."""
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(400):
        truth = rng.uniform(0, 10)
        for _ in range(2 if k < 250 else 1):
            value = round((truth + rng.normal(0, spread)) / grid) * grid
            rows.append((f"item {k}", f"{value:.6g}", f"w{rng.integers(6)}", int(rng.integers(10**9))))
    return [rows[k] for k in rng.permutation(len(rows))]


def copied(rows: list[Line]) -> list[Line]:
    return [*rows, *rows[::3]]


def reduced(rows: list[Line]) -> list[Line]:
    return list({(text, value): (text, value, *more) for text, value, *more in rows}.values())  # type: ignore[misc]


def leaning(rows: list[Line]) -> list[Line]:
    """A third of the repeats stand below the first label of their item, are of the same person, and repeat it."""
    first: dict[str, Line] = {}
    apart, near = [], {}
    for row in rows:
        if row[0] in first and len(near) < 80:
            near[row[0]] = (row[0], first[row[0]][1], first[row[0]][2], row[3])
            continue
        first.setdefault(row[0], row)
        apart.append(row)
    return [one for row in apart for one in ((row, near[row[0]]) if row[0] in near else (row,))]


def picked(rows: list[Line]) -> list[Line]:
    """Only items with high numbers keep their second label."""
    seen: set[str] = set()
    return [row for row in rows if float(row[1]) > 5 or (row[0] not in seen and not seen.add(row[0]))]  # type: ignore[func-returns-value]


def doubled(rows: list[Line]) -> list[Line]:
    return [*rows, *((text, value, who, stamp + 1) for text, value, who, stamp in rows)]


@pytest.mark.parametrize(
    ("lie", "code", "grid"),
    [(copied, "export_copies", 0.1), (copied, "export_copies", 1.0), (reduced, "deduplicated", 0.5),
     (reduced, "deduplicated", 1.0), (leaning, "adjacent_rows", 0.1), (leaning, "same_annotator", 0.1),
     (picked, "unrepresentative_repeats", 0.1), (doubled, "equal_to_the_last_digit", 0.1)],
)  # fmt: skip
def test_numbers_that_lie_raise_an_alarm(
    lie: Callable[[list[Line]], list[Line]], code: str, grid: float
) -> None:
    frame = pd.DataFrame(lie(rated(1, grid=grid)), columns=["text", "label", "who", "stamp"])
    found = audit_numeric(frame, item=["text"], label="label", annotator="who")
    assert code in {alarm.code for alarm in found.alarms}
    if code == "export_copies":
        without = audit_numeric(frame, item=["text"], label="label", drop_copies=True)
        told = next(alarm.figures["noise_sd_without"] for alarm in found.alarms if alarm.code == code)
        assert told == pytest.approx(without.noise_sd.estimate)
        assert (found.noise_sd.estimate or 0.0) < 0.95 * (without.noise_sd.estimate or 0.0)


@pytest.mark.parametrize("grid", [0.001, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("seed", range(4))
def test_honest_numbers_raise_none(grid: float, seed: int) -> None:
    frame = pd.DataFrame(rated(seed, grid=grid), columns=["text", "label", "who", "stamp"])
    assert audit_numeric(frame, item=["text"], label="label", annotator="who").alarms == ()


def test_distances_of_pairs_are_those_of_a_plain_loop() -> None:
    rng = np.random.default_rng(5)
    groups = [np.round(rng.normal(0, 1, rng.integers(2, 6)), 1).tolist() for _ in range(60)]
    values, place = np.unique(np.concatenate(groups), return_inverse=True)
    pattern = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    ones = np.ones(len(place), np.int64)
    names = tuple(map(str, values))
    made = CountPatterns.from_triples(
        pattern, place, ones, items=np.ones(len(groups), np.int64), classes=names
    )
    equal, distances, items = pair_distances(made, values)
    told: dict[float, float] = {}
    for group in groups:
        pairs = list(combinations(group, 2))
        for a, b in pairs:
            key = round(abs(a - b), 6)
            told[key] = told.get(key, 0.0) + 1.0 / len(pairs)
    assert equal == pytest.approx(told.pop(0.0, 0.0))
    assert dict(zip(np.round(distances, 6).tolist(), items.tolist(), strict=True)) == pytest.approx(told)
