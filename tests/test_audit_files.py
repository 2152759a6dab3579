"""Two files over the same items: compare, leak, and the mathematics of paired scores."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from audit.comparing import compare_files
from audit.errors import ArgumentError, ColumnError, InputError
from audit.intervals import wilson
from audit.leakage import find_leaks
from audit.paired import paired_difference, score_correlation, sign_test, symmetry_test
from audit.results import Estimate
from tests.command import run

ROOT = Path(__file__).parents[1]
Row = tuple[str, str]


def table(path: Path, rows: Sequence[Sequence[str]], columns: str = "text,label") -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns.split(","), *rows])
    return path


# --- mathematics -------------------------------------------------------------------------------------------


def pairs(
    both: int, only_first: int, only_second: int, none: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    first, second = np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 0.0, 1.0, 0.0])
    return first, second, np.array([both, only_first, only_second, none])


def wilson_estimate(k: int, n: int) -> Estimate:
    low, high = wilson(k, n)
    return Estimate(estimate=k / n, low=low, high=high)


def test_the_difference_of_paired_shares_is_newcombes_method_10() -> None:
    # 36 both, 12 only the first, 2 only the second, 0 none (n = 50): 48/50 against 38/50.
    first, second, items = pairs(36, 12, 2, 0)
    r = score_correlation(first, second, items)
    phi = (36 * 0 - 12 * 2) / math.sqrt(48 * 2 * 38 * 12)
    assert r == pytest.approx(phi)
    a, b = wilson_estimate(48, 50), wilson_estimate(38, 50)
    found = paired_difference(a, b, correlation=r)
    assert a.low is not None and a.high is not None and b.low is not None and b.high is not None  # noqa: PT018
    down, up = 0.76 - b.low, a.high - 0.96
    assert found.estimate == pytest.approx(-0.2)
    assert found.low == pytest.approx(-0.2 - math.sqrt(down**2 - 2 * phi * down * up + up**2))
    down, up = b.high - 0.76, 0.96 - a.low
    assert found.high == pytest.approx(-0.2 + math.sqrt(down**2 - 2 * phi * down * up + up**2))


def test_equal_scores_differ_by_nothing_and_independent_ones_by_both_widths() -> None:
    a = wilson_estimate(20, 100)
    same = paired_difference(a, a, correlation=1.0)
    assert same.low is not None and same.high is not None  # noqa: PT018
    assert same.high - same.low < 0.1  # the widths cancel but for the asymmetry of Wilson's limits
    apart = paired_difference(a, a, correlation=0.0)
    assert apart.low is not None and apart.high is not None  # noqa: PT018
    assert apart.high - apart.low > 1.3 * (0.29 - 0.13)


def test_the_interval_holds_the_difference_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    chances = np.array([0.05, 0.15, 0.06, 0.74])  # d .20 before, .11 after
    hits = 0
    for draw in rng.multinomial(150, chances, size=1500):
        first, second, items = pairs(*draw.tolist())
        n = int(items.sum())
        found = paired_difference(
            wilson_estimate(int(first @ items), n), wilson_estimate(int(second @ items), n),
            correlation=score_correlation(first, second, items),
        )  # fmt: skip
        assert found.low is not None and found.high is not None  # noqa: PT018
        hits += found.low <= -0.09 <= found.high
    assert 0.94 <= hits / 1500 <= 0.97


def test_the_sign_test_is_mcnemars_for_pairs_and_keeps_its_level_for_mixed_sizes() -> None:
    first, second, items = pairs(5, 12, 3, 80)
    assert sign_test(first, second, items) == pytest.approx(stats.binomtest(3, 15).pvalue)
    assert sign_test(first, first, items) is None
    rng = np.random.default_rng(2)
    values = np.array([0.0, 1 / 3, 2 / 3, 1.0])
    low = 0
    for seed in range(300):
        a, b = rng.choice(values, 40), rng.choice(values, 40)
        p = sign_test(a, b, np.ones(40, np.int64), seed=seed)
        low += p is not None and p <= 0.05
    assert low <= 26  # 5 % of 300 and 2.9 standard deviations


def test_symmetry() -> None:
    assert symmetry_test(np.array([[50, 4], [16, 30]])) == (
        pytest.approx(stats.binomtest(4, 20).pvalue), "McNemar, exact",
    )  # fmt: skip
    assert symmetry_test(np.diag([5, 6, 7])) == (None, "none")
    # chi2 = (10-2)^2/12 + (5-5)^2/10 + (8-1)^2/9 = 5.333 + 0 + 5.444 on 3 degrees of freedom
    p, method = symmetry_test(np.array([[9, 10, 5], [2, 9, 8], [5, 1, 9]]))
    assert (method, p) == ("Bowker", pytest.approx(stats.chi2.sf(64 / 12 + 49 / 9, 3)))
    with pytest.raises(ArgumentError, match="square"):
        symmetry_test(np.zeros((2, 3)))
    with pytest.raises(ArgumentError, match=r"\[-1, 1\]"):
        paired_difference(Estimate(estimate=0.1), Estimate(estimate=0.1), correlation=2.0)


# --- compare -----------------------------------------------------------------------------------------------


def by_hand(rows: Sequence[Row]) -> dict[str, Counter[str]]:
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    for text, label in rows:
        groups[text][label] += 1
    return groups


def disagreement(counts: Counter[str]) -> float:
    labels = list(counts.elements())
    differ = [a != b for a, b in combinations(labels, 2)]
    return sum(differ) / len(differ)


ROWS = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from(["0", "1", "2"])), min_size=1, max_size=30
)


@settings(max_examples=25)
@given(before=ROWS, after=ROWS)
def test_compare_counts_what_a_plain_loop_counts(
    tmp_path_factory: pytest.TempPathFactory, before: list[Row], after: list[Row]
) -> None:
    folder = tmp_path_factory.mktemp("compare")
    found = compare_files(
        table(folder / "a.csv", before),
        table(folder / "b.csv", after),
        item=["text"],
        label="label",
        draws=50,
    )
    one, two = by_hand(before), by_hand(after)
    both = one.keys() & two.keys()
    repeated = [t for t in both if one[t].total() > 1 and two[t].total() > 1]
    assert (found.items_in_both, found.repeated_in_both) == (len(both), len(repeated))
    if repeated:
        d = [sum(disagreement(side[t]) for t in repeated) / len(repeated) for side in (one, two)]
        assert found.before.disagreement.estimate == pytest.approx(d[0])
        assert found.after.disagreement.estimate == pytest.approx(d[1])
        assert found.difference.estimate == pytest.approx(d[1] - d[0])
    else:
        assert found.difference.estimate is None

    def label(counts: Counter[str]) -> str | None:
        (first, n), *others = counts.most_common()
        return None if others and others[0][1] == n else first

    moves = Counter((label(one[t]), label(two[t])) for t in both)
    untold = sum(n for pair, n in moves.items() if None in pair)
    assert found.untold == untold
    assert found.compared == len(both) - untold
    for i, a in enumerate(found.classes):
        for j, b in enumerate(found.classes):
            assert found.confusion[i][j] == moves[a, b]
    assert json.loads(json.dumps(found.to_dict()))["items_in_both"] == len(both)
    assert found.to_frame()["count"].sum() == found.compared
    assert found.summary()


def test_compare_by_row_and_with_another_name_of_the_label(tmp_path: Path) -> None:
    before = table(tmp_path / "a.csv", [("1", "x", "0"), ("2", "x", "1"), ("3", "y", "1")], "id,text,label")
    after = table(tmp_path / "b.csv", [("3", "y", "0"), ("2", "x", "1"), ("1", "x", "1")], "id,text,better")
    found = compare_files(before, after, item=["text"], label="label", label_after="better", row_id="id")
    assert (found.unit, found.compared) == ("rows", 3)
    assert found.confusion == ((0, 1), (1, 1))
    assert found.moved[1].to == {"0": 1}


def test_better_labels_are_seen_and_copied_ones_are_not_believed(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 400)

    def labelled(flips: float, *, copied: bool = False) -> list[Row]:
        rows = []
        for k, value in enumerate(truth):
            first = value ^ int(rng.random() < flips)
            second = first if copied else value ^ int(rng.random() < flips)
            rows += [(f"text {k}", str(first)), (f"Text  {k}", str(second))]
        return rows

    old = table(tmp_path / "old.csv", labelled(0.15))
    better = compare_files(old, table(tmp_path / "new.csv", labelled(0.04)), item=["text"], label="label")
    assert "agree more" in better.verdict
    assert better.difference.high is not None
    assert better.difference.high < 0
    assert not better.alarms
    same = compare_files(old, table(tmp_path / "same.csv", labelled(0.15)), item=["text"], label="label")
    assert "No change" in same.verdict
    copied = compare_files(
        old, table(tmp_path / "copied.csv", labelled(0.04, copied=True)), item=["text"], label="label"
    )
    assert [alarm.code for alarm in copied.alarms] == ["one_label_an_item"]
    assert "agree more" not in copied.verdict


def test_two_files_of_other_items(tmp_path: Path) -> None:
    found = compare_files(
        table(tmp_path / "a.csv", [("x", "0")]),
        table(tmp_path / "b.csv", [("y", "0")]),
        item=["text"],
        label="label",
    )
    assert "no item in common" in found.verdict
    assert [alarm.code for alarm in found.alarms] == ["few_items_in_both"]


def test_what_cannot_be_compared_is_named(tmp_path: Path) -> None:
    a = table(tmp_path / "a.csv", [("x", "0"), ("x", "1")])
    with pytest.raises(ColumnError, match="text2"):
        compare_files(a, a, item=["text2"], label="label")
    with pytest.raises(ArgumentError, match="normalise"):
        compare_files(a, a, item=["text"], label="label", normalise="stem")
    with pytest.raises(InputError, match="stands in two rows"):
        compare_files(a, a, item=["text"], label="label", row_id="text")


@pytest.mark.shared_data
def test_the_revision_of_a_public_set_moved_as_many_labels_as_is_known(shared: Path) -> None:
    """3,085 texts are in both versions, 1.52 % of the labels changed: train and dev together."""
    folder = shared / "data" / "causal_news"
    frames = {
        version: pd.concat(
            pd.read_csv(folder / f"{version}_{split}_subtask1.csv", dtype=str) for split in ("train", "dev")
        )[["text", "label"]]
        for version in ("V1", "V2")
    }
    found = compare_files(frames["V1"], frames["V2"], item=["text"], label="label", normalise="none")
    changed = sum(part.changed for part in found.moved)
    assert found.items_in_both == 3085
    assert round(changed / 3085, 4) == 0.0152


# --- leak --------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(train=ROWS, test=ROWS)
def test_leaks_are_those_a_plain_loop_finds(
    tmp_path_factory: pytest.TempPathFactory, train: list[Row], test: list[Row]
) -> None:
    folder = tmp_path_factory.mktemp("leak")
    out = folder / "leaked.csv"
    found = find_leaks(
        table(folder / "a.csv", train),
        table(folder / "b.csv", test),
        item=["text"],
        label="label",
        out=out,
        show=99,
    )
    one, two = by_hand(train), by_hand(test)
    both = one.keys() & two.keys()
    places = [k + 1 for k, (text, _) in enumerate(test) if text in both]
    assert (found.items, found.leaked_rows) == (len(both), len(places))
    with out.open(encoding="utf-8", newline="") as file:
        assert [int(row["test_row"]) for row in csv.DictReader(file)] == places
    assert sorted(row for one in found.examples for row in one.test_rows) == places
    assert found.repeated_in_test == len(test) - len(two)
    if both:
        differ = [
            1 - sum(one[t][c] * two[t][c] for c in "012") / (one[t].total() * two[t].total()) for t in both
        ]
        assert found.disagreement.estimate == pytest.approx(sum(differ) / len(differ))
    assert ("No leak" in found.verdict) == (not both)


def test_leak_from_the_command_line(tmp_path: Path) -> None:
    train = table(tmp_path / "train.csv", [("A cat", "1"), ("a dog", "0")])
    test = table(tmp_path / "test.csv", [("a  CAT", "0"), ("a fish", "1")])
    done = run(
        "leak", train, test, "--item", "text", "--label", "label", "--format", "json", "--fail-over", "0"
    )
    assert done.code == 1
    assert done.json["leaked_rows"] == 1
    assert done.json["remembered"] == 0.0
    assert done.json["examples"][0]["train_rows"] == [1]
    assert run("leak", train, test, "--item", "text", "--fail-over", "0.5").code == 0
    assert run("leak", train, test, "--item", "text", "--fail-over", "0.5", "--normalise", "none").code == 0
    assert run("leak", train, test, "--item", "text", "--fail-over", "2").code == 2
    assert run("leak", train, test, "--item", "text", "--rows", test).code == 2  # never over an input
    assert test.read_text("utf-8").startswith("text,label")


def test_compare_from_the_command_line(tmp_path: Path) -> None:
    a = table(tmp_path / "a.csv", [("x", "0"), ("x", "1"), ("y", "1"), ("y", "1")])
    b = table(tmp_path / "b.csv", [("x", "0"), ("x", "0"), ("y", "1"), ("y", "1")])
    out = tmp_path / "report.txt"
    done = run("compare", a, b, "--item", "text", "--label", "label", "--out", out)
    assert (done.code, done.out) == (0, "")
    assert "change in d −0.500" in out.read_text("utf-8")


def test_the_splits_of_the_example_do_not_leak(tmp_path: Path) -> None:
    rows = pd.read_csv(ROOT / "examples" / "risk_driver.csv", dtype=str)
    parts = dict(iter(rows.groupby("split")))
    found = find_leaks(parts["train"], parts["test"], item=["passage", "entity", "driver"], label="label")
    assert (found.leaked_rows, found.alarms) == (0, ())
