"""Numbers, grades, tags, two files and a model: what once gave a wrong figure, and limits that held too little."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from audit.alarms_numbers import pair_distances
from audit.comparing import compare_files
from audit.errors import ArgumentError
from audit.label_numbers import audit_numeric
from audit.label_sets import audit_tags
from audit.leakage import find_leaks
from audit.numeric import intraclass, noise_variance, pair_distance, weighted_kappa
from audit.paired import score_correlation
from audit.patterns import CountPatterns
from tests.command import run, write_csv
from tests.test_audit_label_kinds import scores

# --- limits of numbers ---------------------------------------------------------------------------------------

NOISE: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(0, 1, n),
    "Laplace": lambda rng, n: rng.laplace(0, math.sqrt(0.5), n),
    "Student 5": lambda rng, n: rng.standard_t(5, n) * math.sqrt(0.6),
    "skewed": lambda rng, n: rng.exponential(1, n),
}


@pytest.mark.parametrize("kind", NOISE)
@pytest.mark.parametrize("sizes", [(2,), (2, 3, 8)])
def test_limits_of_numbers_hold_the_truth_from_few_items_on(kind: str, sizes: tuple[int, ...]) -> None:
    """Once .82 to .91 at 15 items. Noise and items have variance 1, so the ceiling of R² is a half."""
    rng = np.random.default_rng(21)
    hits, runs = np.zeros(2), 300
    for _ in range(runs):
        found = scores([(rng.normal() + NOISE[kind](rng, n)).tolist() for n in rng.choice(sizes, 15)])
        for place, (part, true) in enumerate([(noise_variance(found), 1.0), (intraclass(found), 0.5)]):
            assert part.low is not None
            assert part.high is not None
            hits[place] += part.low <= true <= part.high
    assert np.all(hits / runs >= 0.90), hits / runs  # .92 less two standard errors


def test_labels_that_are_equal_have_no_noise_at_all() -> None:
    """Thrice 0.1 once had a variance of 1e-34, and limits."""
    found = scores([[0.1] * 3, [0.2] * 3, [0.7] * 7, [1e9 + 0.1] * 3])
    assert noise_variance(found).estimate == 0.0
    assert noise_variance(found).low is None
    assert pair_distance(found).estimate == 0.0
    assert (intraclass(found).estimate, intraclass(found).low) == (1.0, None)


def test_a_ratio_that_rests_on_one_item_has_no_limits() -> None:
    found = scores([[1.0, 1.0]] * 5 + [[1.0, 3.0]])
    for part in (intraclass(found), weighted_kappa(found)):
        assert part.estimate is not None
        assert part.low is None


def test_no_limit_lies_beyond_what_can_be() -> None:
    found = scores([[0.0, 2.0], [0.0, 1.0], [1.0, 1.0]])
    assert pair_distance(found, largest=2.0).high == 2.0
    assert (pair_distance(found).high or 0.0) > 2.0


# --- numbers that lie ----------------------------------------------------------------------------------------

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


@pytest.mark.parametrize("label", ["1_000", "1_0"])
def test_an_underscore_makes_no_thousand(tmp_path: Path, label: str) -> None:
    """``float("1_000")`` is 1000."""
    path = write_csv(tmp_path / "d.csv", ["text", "label"], [("x", label), ("x", "2")])
    for kind in ("numeric", "ordinal"):
        done = run("dupes", path, "--item", "text", "--label", "label", "--kind", kind)
        assert done.code == 2, done.out


# --- tags ----------------------------------------------------------------------------------------------------


def test_a_distance_of_sets_is_never_above_one(tmp_path: Path) -> None:
    rows = [("x", "a"), ("x", "b"), ("y", "a|b"), ("y", "a|c"), ("z", "a"), ("z", "c")]
    found = audit_tags(
        str(write_csv(tmp_path / "t.csv", ["text", "label"], rows)), item=["text"], label="label"
    )
    distance = found.distance
    assert distance.estimate == pytest.approx((1 + 2 / 3 + 1) / 3)
    assert distance.high is not None
    assert distance.high <= 1.0  # once 1.3
    agreed = [(text, "a|b") for text, _ in rows]
    found = audit_tags(
        str(write_csv(tmp_path / "u.csv", ["text", "label"], agreed)), item=["text"], label="label"
    )
    assert (found.distance.estimate, found.distance.low) == (0.0, 0.0)
    assert found.distance.high == pytest.approx(1 - 0.05 ** (1 / 3))


def test_tags_are_merged_one_by_one(tmp_path: Path) -> None:
    """Whole sets once were: 'A|c' kept a tag of its own beside 'a|b'."""
    rows = [("x", "a|b"), ("x", "A|b"), ("y", "A|c"), ("y", "a|c "), ("z", "a"), ("z", "b")]
    path = str(write_csv(tmp_path / "t.csv", ["text", "label"], rows))
    apart = audit_tags(path, item=["text"], label="label")
    told = [alarm for alarm in apart.audit.alarms if alarm.code == "label spellings"]
    assert [alarm.figures["variants"] for alarm in told] == [[["a", "A"]]]
    merged = audit_tags(path, item=["text"], label="label", merge_labels=True)
    assert merged.audit.repeats.conflicts == 1
    assert {part.tag: part.disagreement.estimate for part in merged.tags} == {
        "a": pytest.approx(1 / 3), "b": pytest.approx(1 / 3), "c": 0.0
    }  # fmt: skip
    assert not [alarm for alarm in merged.audit.alarms if alarm.code == "label spellings"]


def test_declared_and_missing_sets_are_sets(tmp_path: Path) -> None:
    rows = [("x", "b|a"), ("x", "n/a"), ("y", "a|b"), ("y", "b|a")]
    path = write_csv(tmp_path / "t.csv", ["text", "label"], rows)
    words = ("dupes", path, "--item", "text", "--label", "label", "--sep", "|", "--format", "json")
    told = run(*words, "--classes", "b|a,a,b", "--missing", "n/a").json
    assert set(told["data"]["classes"]) == {"a|b", "a", "b"}
    assert told["data"]["missing_label"] == 1
    slashed = write_csv(tmp_path / "s.csv", ["text", "label"], [("x", "b/a"), ("x", "n/a"), ("y", "a/b")])
    told = run("dupes", slashed, *words[2:6], "--sep", "/", "--format", "json", "--missing", "n/a").json
    assert told["data"]["missing_label"] == 1


def test_a_tag_of_a_de_duplicated_file_has_no_flip_rate_and_takes_the_interval_asked_for() -> None:
    rng = np.random.default_rng(2)
    sets = ["a|b", "a", "b", "c"]
    rows = {(f"i{k}", sets[rng.integers(4)]) for k in range(60) for _ in range(3)}
    frame = pd.DataFrame(sorted(rows), columns=["text", "label"])
    found = audit_tags(frame, item=["text"], label="label", draws=100)
    assert found.audit.flip_rate.estimate is None
    assert {part.flip_rate.estimate for part in found.tags} == {None}
    pairs = frame.groupby("text").head(2)
    honest = pd.concat([pairs, pairs.groupby("text").head(1)])
    honest = honest.groupby("text").filter(lambda part: len(part) >= 2).groupby("text").head(2)
    exact = audit_tags(honest, item=["text"], label="label", draws=100, interval="exact")
    assert {part.disagreement.method for part in exact.tags} == {"Clopper-Pearson"}


# --- two files -----------------------------------------------------------------------------------------------


def test_a_correlation_never_leaves_its_range() -> None:
    """Scores in a line, once -1.0000000000000002, which compare refused as an argument of the user."""
    rng = np.random.default_rng(0)
    for n in range(2, 60):
        first = rng.integers(0, 4, n) / 3.0
        for second in (first / 3.0, 1.0 - first, 0.1 - first * 0.7):
            assert -1.0 <= score_correlation(first, second, rng.integers(1, 4, n)) <= 1.0


def files(tmp_path: Path, *rows: list[tuple[str, str]]) -> list[str]:
    return [str(write_csv(tmp_path / f"{k}.csv", ["text", "label"], part)) for k, part in enumerate(rows)]


@pytest.mark.parametrize(("one", "two"), [("a", "b"), ("b", "a"), ("z", "a")])
def test_what_memory_gets_right_does_not_hang_on_the_names_of_labels(
    tmp_path: Path, one: str, two: str
) -> None:
    """Of two training labels that are as frequent, memory says one at random; once the first in the alphabet."""
    train, test = files(
        tmp_path,
        [("x", one), ("x", two), ("y", one), ("y", one), ("y", two)],
        [("x", one), ("x", "c"), ("y", one)],
    )
    found = find_leaks(train, test, item=["text"], label="label")
    assert found.remembered == pytest.approx((0.5 + 0 + 1) / 3)
    assert found.disagreement.estimate == pytest.approx(((1 - 1 / 4) + (1 - 2 / 3)) / 2)


def leaked(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_leak_without_labels_tells_of_none(tmp_path: Path) -> None:
    """Once every label was called 'row'; labels with spaces could not be told apart."""
    train, test = files(tmp_path, [("x", "p q"), ("x", "r")], [("x", "s")])
    out = tmp_path / "rows.csv"
    found = find_leaks(train, test, item=["text"], out=out)
    assert found.examples[0].to_dict()["train_labels"] == []
    assert not {"test_label", "train_labels"} & set(leaked(out)[0])
    find_leaks(train, test, item=["text"], label="label", out=out)
    (row,) = leaked(out)
    assert (row["test_label"], row["train_rows"], row["train_labels"]) == ("s", "1 2", "p q | r")


def test_columns_of_the_data_that_are_called_as_ours(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "d.csv", ["test_row", "row", "label"], [("x", "y", "a"), ("x", "y", "b")])
    words = ("--item", "test_row,row", "--label", "label", "--rows", tmp_path / "out.csv")
    done = run("leak", path, path, *words)
    assert done.code == 0, done.err
    assert [(row["test_row"], row["test_row_"]) for row in leaked(tmp_path / "out.csv")] == [
        ("1", "x"),
        ("2", "x"),
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("leak", "--item", "text", "--label-test", "label"), "name the first's with --label"),
        (("leak", "--item", "text,text"), "names a column twice"),
        (("leak", "--item", "text", "--label", "text"), "is both item and label"),
        (
            ("compare", "--item", "text", "--label", "label", "--label-after", "text"),
            "is both item and label",
        ),
    ],
)
def test_options_that_say_nothing_are_refused(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    path = write_csv(tmp_path / "d.csv", ["text", "label"], [("x", "a"), ("x", "b")])
    done = run(words[0], path, path, *words[1:])
    assert (done.code, done.out) == (2, "")
    assert told in done.err


def test_a_file_without_equal_repeats_has_no_flip_rate_in_a_comparison_either(tmp_path: Path) -> None:
    rows = [(f"i{k}", label) for k in range(60) for label in ("a", "b" if k % 3 == 0 else "a")]
    unique = sorted(set(rows))  # 20 conflicts and no agreement are left
    before, after = files(
        tmp_path, [*rows, *rows[:3]], [*unique, *(row for row in unique if row[0] == "i0")][:-2]
    )
    found = compare_files(before, after, item=["text"], label="label", draws=200)
    assert found.repeated_in_both == 20
    assert (found.after.deduplicated, found.after.flip_rate.estimate) == (True, None)
    assert "deduplicated" in {alarm.code for alarm in found.alarms}
    assert "looks de-duplicated" in found.verdict


def test_a_comparison_of_many_classes_can_be_read(tmp_path: Path) -> None:
    rows = [(f"i{k}", f"class {k % 200}") for k in range(400)]
    path = write_csv(tmp_path / "a.csv", ["text", "label"], rows)
    other = write_csv(
        tmp_path / "b.csv",
        ["text", "label"],
        [(t, f"class {(k * 7) % 200}") for k, (t, _) in enumerate(rows)],
    )
    done = run("compare", path, other, "--item", "text", "--label", "label")
    assert done.code == 0, done.err
    assert max(map(len, done.out.splitlines())) < 200
    assert "other moves" in done.out
    assert "other classes" in done.out
    rows = [(f"i{k}", f"label {k}") for k in range(3_001)]
    path = write_csv(tmp_path / "c.csv", ["text", "label"], rows)
    with pytest.raises(ArgumentError, match="3,001 different labels"):
        compare_files(str(path), str(path), item=["text"], label="label")


def test_no_label_breaks_the_lines_of_a_comparison(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", ["text", "label"], [("x", "a\nb"), ("y", "\x1b[2J"), ("z", "c")])
    done = run("compare", path, path, "--item", "text", "--label", "label")
    assert done.code == 0, done.err
    assert "\x1b" not in done.out
    assert any(line.startswith("'a\\nb'") for line in done.out.splitlines())


# --- outputs -------------------------------------------------------------------------------------------------


def test_a_file_that_is_called_as_a_part_of_an_output_stays(tmp_path: Path) -> None:
    """The input d.html.part once was the temporary file of the report d.html, and gone."""
    path = write_csv(tmp_path / "d.html.part", ["text", "label"], [("x", "1"), ("x", "2")])
    before = path.read_bytes()
    words = (
        "dupes",
        path,
        "--item",
        "text",
        "--label",
        "label",
        "--kind",
        "numeric",
        "--html",
        tmp_path / "d.html",
    )
    assert run(*words).code == 0
    assert path.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["d.html", "d.html.part"]


def test_a_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "d.csv", ["text", "label"], [("x", "1"), ("x", "2")])
    done = run("dupes", path, "--item", "text", "--label", "label", "--out", path / "report.txt")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "cannot be written" in done.err


@pytest.mark.parametrize("command", ["dupes", "compare", "leak"])
def test_a_dash_is_no_file(tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """``--out -`` once wrote a file of that name."""
    monkeypatch.chdir(tmp_path)
    path = write_csv(tmp_path / "d.csv", ["text", "label"], [("x", "1"), ("x", "2")])
    files_given = (path,) if command == "dupes" else (path, path)
    done = run(command, *files_given, "--item", "text", "--label", "label", "--out", "-")
    assert done.code == 2
    assert "leave --out out to print the report" in done.err
    assert not (tmp_path / "-").exists()
