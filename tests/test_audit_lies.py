"""Files made to lie: each raises its alarm, or stands in docs/methods.md among what no alarm can see."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from audit import audit_duplicates
from audit.results import AuditResult

METHODS = (Path(__file__).parents[1] / "docs" / "methods.md").read_text("utf-8")
COLUMNS = ["text", "label", "who", "when", "id", "split"]
Rows = list[list[Any]]


def honest(
    seed: int, *, items: int = 600, size: int = 2, flip: float = 0.1, share: float = 0.4, spare: int = 600
) -> Rows:
    """``size`` labels of each item by different people at different times, and ``spare`` items with one label."""
    rng = random.Random(seed)
    rows: Rows = []
    for i in range(items + spare):
        truth = rng.random() < share
        people = rng.sample(range(8), size)
        for k in range(size if i < items else 1):
            label = "yes" if truth != (rng.random() < flip) else "no"
            day = f"2024-{rng.randrange(1, 13):02d}-{rng.randrange(1, 28):02d}"
            when = f"{day} {rng.randrange(24):02d}:{rng.randrange(60):02d}"
            split = "test" if i % 4 == 0 else "train"
            rows.append(
                [
                    f"text number {i} " + "x" * rng.randrange(30),
                    label,
                    f"p{people[k]}",
                    when,
                    len(rows),
                    split,
                ]
            )
    # the text is that of the item's first row
    first: dict[str, str] = {}
    for row in rows:
        key = row[0].rsplit(" ", 1)[0]
        row[0] = first.setdefault(key, row[0])
    rng.shuffle(rows)
    return rows


def audited(rows: Rows, **options: Any) -> AuditResult:
    frame = pd.DataFrame(rows, columns=COLUMNS[: len(rows[0])]).astype(str)
    options = {"annotator": "who", "time": "when", "split": "split", **options}
    options = {k: v for k, v in options.items() if v is not None}
    return audit_duplicates(frame, item="text", label="label", draws=500, ladder=False, **options)


def other(label: str) -> str:
    return "no" if label == "yes" else "yes"


def by_item(rows: Rows) -> dict[str, Rows]:
    found: dict[str, Rows] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row)
    return found


def second(
    rows: Rows, change: Callable[[list[Any], list[Any], random.Random], None], share: float = 1.0
) -> Rows:
    """``change(first, second, rng)`` of a share of the repeated items."""
    rng = random.Random(99)
    for group in by_item(rows).values():
        if len(group) > 1 and rng.random() < share:
            change(group[0], group[1], rng)
    return rows


def export_copies(rows: Rows) -> Rows:
    return rows + [list(row) for row in rows[:200]]


def deduplicated(rows: Rows) -> Rows:
    return list({(row[0], row[1]): row for row in rows}.values())


def several_tags(rows: Rows) -> Rows:
    """Each item carries two of five tags: rows are tags, not opinions."""
    rng = random.Random(1)
    return [
        [row[0], tag, "p1", row[3], row[4], row[5]]
        for row in {row[0]: row for row in rows}.values()
        for tag in rng.sample(["a", "b", "c", "d", "e"], 2)
    ]


def same_person(rows: Rows) -> Rows:
    def change(one: list[Any], two: list[Any], rng: random.Random) -> None:
        two[1], two[2] = one[1], one[2]

    return second(rows, change, 0.5)


def same_minute(rows: Rows) -> Rows:
    def change(one: list[Any], two: list[Any], rng: random.Random) -> None:
        two[1], two[3] = one[1], one[3]

    return second(rows, change, 0.5)


def adjacent(rows: Rows) -> Rows:
    """Half of the repeats stand next to each other, filled down from the row above."""
    out: Rows = []
    late: Rows = []
    for place, group in enumerate(by_item(rows).values()):
        if len(group) > 1 and place % 2:
            group[1][1] = group[0][1]
            out += group
        else:
            out.append(group[0])
            late += group[1:]
    return out + late


def only_one_class(rows: Rows) -> Rows:
    """Second labels were asked for where the first was no."""
    return [row for group in by_item(rows).values() for row in (group if group[0][1] == "no" else group[:1])]


def only_short(rows: Rows) -> Rows:
    out = [row for group in by_item(rows).values() for row in (group if len(group[0][0]) < 30 else group[:1])]
    for row in out:  # and long texts are harder: the repeats say nothing of them
        if len(row[0]) < 30 and random.Random(row[0]).random() < 0.9:
            row[1] = by_item_label(row[0])
    return out


def by_item_label(text: str) -> str:
    return "yes" if random.Random(text + "!").random() < 0.4 else "no"


def more_on_conflicts(rows: Rows) -> Rows:
    """A third label where the first two disagreed."""
    out = []
    for group in by_item(rows).values():
        out += group[:2] + (group[2:] if len(group) > 2 and group[0][1] != group[1][1] else [])
    return out


def more_on_most_conflicts(rows: Rows) -> Rows:
    """The same, and for one agreeing item in five, which hides it from the count of conflicts."""
    rng, out = random.Random(3), []
    for group in by_item(rows).values():
        asked = len(group) > 2 and (group[0][1] != group[1][1] or rng.random() < 0.2)
        out += group[:2] + (group[2:] if asked else [])
    return out


def quota(rows: Rows) -> Rows:
    """Five labels of which one was made to differ."""
    for group in by_item(rows).values():
        for row in group:
            row[1] = by_item_label(row[0])
        if len(group) > 1:
            group[2][1] = other(group[0][1])
    return rows


def cleaned_test(rows: Rows) -> Rows:
    def change(one: list[Any], two: list[Any], rng: random.Random) -> None:
        if one[5] == "test":
            two[1] = one[1]

    return second(rows, change)


def leaked(rows: Rows) -> Rows:
    def change(one: list[Any], two: list[Any], rng: random.Random) -> None:
        one[5], two[5] = "train", "test"

    return second(rows, change, 0.2)


def spelled(rows: Rows) -> Rows:
    def change(one: list[Any], two: list[Any], rng: random.Random) -> None:
        two[1] = f"{two[1].title()} "

    return second(rows, change, 0.3)


def typos(rows: Rows) -> Rows:
    names = {"yes": "positive", "no": "negative"}
    wrong = {"yes": "positve", "no": "negatve"}
    return [[row[0], (wrong if k < 6 else names)[row[1]], *row[2:]] for k, row in enumerate(rows)]


def not_available(rows: Rows) -> Rows:
    for row in rows[::20]:
        row[1] = "NA"
    return rows


def coarse_items(rows: Rows) -> Rows:
    """The item is the document; the questions asked of it are not told apart."""
    rng = random.Random(4)
    return [[f"document {rng.randrange(300)}", *row[1:]] for row in rows]


def opposed(rows: Rows) -> Rows:
    def change(one: list[Any], two: list[Any], rng: random.Random) -> None:
        two[1] = other(one[1])

    return second(rows, change, 0.5)


def template(rows: Rows) -> Rows:
    rng = random.Random(5)
    more = [["a template", rng.choice(["yes", "no"]), f"p{k % 8}", f"2023-01-01 0{k % 9}:00", 9_999 + k, "train"]
            for k in range(400)]  # fmt: skip
    return rows + more


LIES: list[tuple[str, Callable[[], AuditResult], str]] = [
    ("export copies by row id", lambda: audited(export_copies(honest(1)), row_id="id"), "export copies"),
    ("export copies without one", lambda: audited(export_copies(honest(2))), "export copies"),
    ("de-duplicated", lambda: audited(deduplicated(honest(3))), "de-duplicated or multi-label"),
    ("several tags", lambda: audited(several_tags(honest(4))), "de-duplicated or multi-label"),
    ("one person twice", lambda: audited(same_person(honest(5))), "same annotator"),
    ("the same minute", lambda: audited(same_minute(honest(6))), "same minute"),
    ("filled down", lambda: audited(adjacent(honest(7))), "adjacent rows"),
    ("repeats of one class", lambda: audited(only_one_class(honest(8))), "unrepresentative repeats"),
    ("repeats of short texts", lambda: audited(only_short(honest(9, spare=0)), time=None), "unrepresentative repeats"),
    ("more labels on conflicts", lambda: audited(more_on_conflicts(honest(10, size=3))), "labels added to conflicts"),
    ("some more at random", lambda: audited(more_on_most_conflicts(honest(11, size=3))), "counts fit no mixture"),
    ("a quota of disagreement", lambda: audited(quota(honest(12, size=5, items=300))), "counts fit no mixture"),
    ("test labels cleaned", lambda: audited(cleaned_test(honest(13, flip=0.2))), "splits differ"),
    ("leakage", lambda: audited(leaked(honest(14))), "leakage"),
    ("spellings of a label", lambda: audited(spelled(honest(15))), "label spellings"),
    ("typos", lambda: audited(typos(honest(16))), "label typos"),
    ("NA as a class", lambda: audited(not_available(honest(17))), "labels that may mean none"),
    ("items too coarse", lambda: audited(coarse_items(honest(18))), "no better than chance"),
    ("opposed on purpose", lambda: audited(opposed(honest(19))), "above the maximum"),
    ("a template", lambda: audited(template(honest(20))), "weightings differ"),
    ("annotators who copy", lambda: audited(copying(), errors=True, time=None, split=None), "dependent annotators"),
    ("gold from the labels", lambda: audited(gold_from_labels(), gold="split", split=None), "gold below the flip rate"),
    ("names swapped, gold at hand", lambda: audited(swapped(), gold="split", split=None), "labels mostly wrong"),
]  # fmt: skip


def copying() -> Rows:
    """Six people label everything; the last copies the fifth half of the time."""
    rng = random.Random(21)
    rows: Rows = []
    for i in range(1_000):
        truth = rng.random() < 0.5
        labels = ["yes" if truth != (rng.random() < 0.2) else "no" for _ in range(6)]
        if rng.random() < 0.5:
            labels[5] = labels[4]
        rows += [[f"text {i}", label, f"p{k}", "", len(rows) + k, ""] for k, label in enumerate(labels)]
    rng.shuffle(rows)
    return rows


def gold_from_labels() -> Rows:
    rows = honest(22, flip=0.2, spare=0)
    for group in by_item(rows).values():
        agreed = len({row[1] for row in group}) == 1
        for row in group:
            row[5] = row[1] if agreed else ""
    return rows


def swapped() -> Rows:
    rows = honest(23, flip=0.1, spare=0)
    for group in by_item(rows).values():
        truth = other(group[0][1])
        for row in group:
            row[5] = truth
    return rows


@pytest.mark.parametrize(("made", "code"), [lie[1:] for lie in LIES], ids=[lie[0] for lie in LIES])
def test_a_lie_raises_its_alarm(made: Callable[[], AuditResult], code: str) -> None:
    assert code in [alarm.code for alarm in made().alarms]


@pytest.mark.parametrize("seed", range(4))
def test_an_honest_file_raises_none(seed: int) -> None:
    rows = honest(100 + seed, size=2 + seed % 2, items=400, spare=200)
    assert [alarm.code for alarm in audited(rows, errors=True).alarms] == []


def all_swapped(rows: Rows) -> Rows:
    return [[row[0], other(row[1]), *row[2:]] for row in rows]


def shared_mistakes(rows: Rows) -> Rows:
    """On one item in five everybody makes the same mistake."""
    for place, group in enumerate(by_item(rows).values()):
        if place % 5 == 0:
            for row in group:
                row[1] = other(row[1])
    return rows


def copied_without_trace(rows: Rows) -> Rows:
    def change(one: list[Any], two: list[Any], rng: random.Random) -> None:
        two[1] = one[1]

    return second(rows, change, 0.5)


@pytest.mark.parametrize("lie", [all_swapped, shared_mistakes, copied_without_trace])
def test_what_no_alarm_can_see_is_written_down(lie: Callable[[Rows], Rows]) -> None:
    """These leave no trace in the labels: no alarm is raised, and the page says so."""
    assert [alarm.code for alarm in audited(lie(honest(200, flip=0.15))).alarms] == []
    part = METHODS.partition("## What no alarm can see")[2].partition("\n## ")[0]
    words = {"all_swapped": "swapped", "shared_mistakes": "same mistake", "copied_without_trace": "copied"}
    assert words[lie.__name__] in part
