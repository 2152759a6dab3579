"""Turns items into a labelled file: splits, repeats, who labels when, and errors.

The noise is in one place and known. Each item has its own chance of a wrong label (small for easy items,
larger for hard ones), each annotator a factor on it, and every label is drawn on its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from .stories import Item
from .text import Picker

SHARES = {"train": 0.70, "validation": 0.15, "test": 0.15}
ANNOTATORS = tuple(f"a{number:02d}" for number in range(1, 13))
EASY_ERROR = (0.01, 0.07)
HARD_ERROR = (0.08, 0.31)
SKILL = tuple(round(0.56 + 0.08 * number, 2) for number in range(len(ANNOTATORS)))  # mean 1
WORST_ERROR = 0.45
ROWS_APART = 500
TRIPLE_SHARE = 1 / 24
FIRST_DAY = datetime.fromisoformat("2024-01-08T09:00:00")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One label: the item's place in the list of items, its split, who gave which label and when."""

    item: int
    split: str
    label: int
    annotator: str
    created_at: str


def label_items(passages: Sequence[Sequence[Item]], *, rows: int, seed: int) -> list[Row]:
    """``rows`` labels of the items, in the order in which they were given."""
    picker = Picker(f"labels {seed}")
    items = [item for passage in passages for item in passage]
    if not len(items) <= rows <= 2 * len(items):
        most = 2 * len(items)
        raise ValueError(f"rows is {rows} for {len(items)} items; choose {len(items)} to {most} rows")
    splits = _splits(passages, picker)
    copies = _copies(items, splits, rows - len(items), picker)
    order = _order([index for index, times in enumerate(copies) for _ in range(times)], picker)
    errors = [picker.uniform(*(HARD_ERROR if item.hard else EASY_ERROR)) for item in items]
    skill = dict(zip(ANNOTATORS, picker.shuffled(SKILL), strict=True))
    times = _times(rows, picker)
    labelled_by: dict[int, list[str]] = {}
    result = []
    for index, created_at in zip(order, times, strict=True):
        taken = labelled_by.setdefault(index, [])
        annotator = picker.one([name for name in ANNOTATORS if name not in taken])
        taken.append(annotator)
        wrong = picker.chance(min(WORST_ERROR, errors[index] * skill[annotator]))
        result.append(
            Row(
                item=index,
                split=splits[index],
                label=items[index].truth ^ wrong,
                annotator=annotator,
                created_at=created_at,
            )
        )
    return result


def _splits(passages: Sequence[Sequence[Item]], picker: Picker) -> list[str]:
    """A split for every item; all items of a passage share one, so that no text leaks from train to test."""
    total = sum(len(passage) for passage in passages)
    of_passage = [""] * len(passages)
    done, names, bound = 0, list(SHARES), 0.0
    name = names.pop(0)
    bound = SHARES[name] * total
    for index in picker.shuffled(range(len(passages))):
        if done >= bound and names:
            name = names.pop(0)
            bound += SHARES[name] * total
        of_passage[index] = name
        done += len(passages[index])
    return [name for name, passage in zip(of_passage, passages, strict=True) for _ in passage]


def _copies(items: Sequence[Item], splits: Sequence[str], extra: int, picker: Picker) -> list[int]:
    """How often each item is labelled: ``extra`` labels more than one each, on a stratified random sample.

    Every k-th item, from a random start, of the items sorted by split, truth, difficulty, driver and length:
    each item is as likely as any other, and the sample has the make-up of the whole.
    """
    copies = [1] * len(items)
    if not extra:
        return copies
    triples = int(extra * TRIPLE_SHARE)
    chosen = extra - triples
    ranked = sorted(
        picker.shuffled(range(len(items))),
        key=lambda i: (splits[i], items[i].truth, items[i].hard, items[i].driver, len(items[i].passage)),
    )
    step = len(items) / chosen
    start = picker.uniform(0, step)
    repeated = [ranked[int(start + step * number)] for number in range(chosen)]
    for index in repeated:
        copies[index] += 1
    for index in picker.shuffled(repeated)[:triples]:
        copies[index] += 1
    return copies


def _order(labels: Sequence[int], picker: Picker) -> list[int]:
    """A random order in which labels of one item stand ROWS_APART rows apart, or less in a small file."""
    order = picker.shuffled(labels)
    apart = min(ROWS_APART, len(order) // 12)
    while close := _too_close(order, apart):
        for place in close:
            other = picker.integer(0, len(order) - 1)
            order[place], order[other] = order[other], order[place]
    return order


def _too_close(order: Sequence[int], apart: int) -> list[int]:
    last: dict[int, int] = {}
    close = []
    for place, index in enumerate(order):
        if index in last and place - last[index] < apart:
            close.append(place)
        last[index] = place
    return close


def _times(rows: int, picker: Picker) -> list[str]:
    """Rising time stamps within the working hours of working days."""
    now = FIRST_DAY
    stamps = []
    for _ in range(rows):
        now += timedelta(seconds=picker.integer(60, 480))
        if now.hour >= 17:
            days = 3 if now.weekday() == 4 else 1  # Friday to Monday
            now = now.replace(hour=9, minute=picker.integer(0, 20)) + timedelta(days=days)
        stamps.append(now.isoformat())
    return stamps
