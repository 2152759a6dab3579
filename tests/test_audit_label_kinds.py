"""Labels that are numbers, ordered grades or sets of tags."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from audit.duplicates import audit_duplicates
from audit.errors import ArgumentError, InputError
from audit.label_grades import audit_ordinal
from audit.label_numbers import audit_numeric
from audit.label_sets import audit_tags
from audit.numeric import ValueScores, intraclass, noise_variance, pair_distance, value_scores, weighted_kappa
from audit.patterns import CountPatterns
from tests.command import run

ROOT = Path(__file__).parents[1]


def scores(groups: Sequence[Sequence[float]]) -> ValueScores:
    """The scores of groups of values, through count patterns as an audit makes them."""
    values, place = np.unique(
        np.concatenate([np.asarray(group, float) for group in groups]), return_inverse=True
    )
    pattern = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    ones = np.ones(len(groups), np.int64)
    patterns = CountPatterns.from_triples(
        pattern, place, np.ones(len(place), np.int64), items=ones, classes=tuple(map(str, values))
    )
    return value_scores(patterns, values)


GROUPS = st.lists(st.lists(st.integers(-5, 5).map(float), min_size=2, max_size=5), min_size=2, max_size=12)


@given(GROUPS)
def test_scores_are_those_of_a_plain_loop(groups: list[list[float]]) -> None:
    found = scores(groups)
    assert found.total == len(groups)
    assert found.mean(found.means) == pytest.approx(np.mean([np.mean(g) for g in groups]))
    assert found.mean(found.variances) == pytest.approx(
        np.mean([np.var(g, ddof=1) for g in groups]), abs=1e-9
    )
    apart = [np.mean([abs(a - b) for a, b in combinations(g, 2)]) for g in groups]
    assert found.mean(found.distances) == pytest.approx(np.mean(apart), abs=1e-9)
    distance, noise = pair_distance(found).estimate, noise_variance(found).estimate
    assert distance is not None
    assert noise is not None
    assert distance <= math.sqrt(2 * noise) + 1e-9  # E|d| <= sqrt(E d^2)


def test_the_intraclass_correlation_of_shrout_and_fleiss() -> None:
    """Their table 2, six targets and four judges: ICC(1,1) is .17, from mean squares 11.24 and 6.26."""
    table = [(9, 2, 5, 8), (6, 1, 3, 2), (8, 4, 6, 8), (7, 1, 2, 6), (10, 5, 6, 9), (6, 2, 4, 7)]
    found = scores(table)
    within, between = 6.2639, 11.2417
    assert noise_variance(found).estimate == pytest.approx(within, abs=1e-4)
    assert intraclass(found).estimate == pytest.approx((between - within) / (between + 3 * within), abs=1e-4)
    assert round(intraclass(found).estimate or 0, 2) == 0.17


def test_numbers_far_from_zero_keep_their_digits() -> None:
    near, far = [(0.0, 1.0), (2.0, 2.0)], [(1e9, 1e9 + 1), (1e9 + 2, 1e9 + 2)]
    assert noise_variance(scores(far)).estimate == pytest.approx(noise_variance(scores(near)).estimate)


@pytest.mark.parametrize("tail", ["normal", "heavy"])
def test_limits_hold_the_noise_and_the_ceiling_as_often_as_they_say(tail: str) -> None:
    rng = np.random.default_rng(11)
    hits = np.zeros(3)
    runs = 400
    for _ in range(runs):
        truth = rng.normal(0, 2, (150, 1))
        noise = (
            rng.normal(0, 1, (150, 2)) if tail == "normal" else rng.standard_t(6, (150, 2)) / math.sqrt(1.5)
        )
        found = scores(np.round(truth + noise, 6).tolist())
        distance = 2 / math.sqrt(math.pi) if tail == "normal" else None
        for place, (part, true) in enumerate(
            [(noise_variance(found), 1.0), (intraclass(found), 0.8), (pair_distance(found), distance)]
        ):
            assert part.low is not None
            assert part.high is not None
            hits[place] += true is None or part.low <= true <= part.high
    assert np.all(hits / runs >= (0.925 if tail == "normal" else 0.90))


def test_weighted_kappa_is_cohens_over_both_orders_of_each_pair() -> None:
    rng = np.random.default_rng(3)
    first = rng.integers(0, 4, 200)
    second = np.clip(first + rng.integers(-1, 2, 200), 0, 3)
    found = weighted_kappa(scores(list(zip(first.tolist(), second.tolist(), strict=True))))
    both = cohen_kappa_score(np.r_[first, second], np.r_[second, first], weights="quadratic")
    assert found.estimate == pytest.approx(both)
    assert found.low is not None
    assert found.high is not None
    assert found.low < both < found.high


def test_weighted_kappa_covers() -> None:
    rng = np.random.default_rng(8)
    chances = rng.dirichlet(np.ones(4), 5)  # five kinds of items
    ranks = np.arange(4.0)
    means, squares = chances @ ranks, chances @ ranks**2
    true = 1 - np.mean(squares - means**2) / (np.mean(squares) - np.mean(means) ** 2)
    hits = 0
    for _ in range(300):
        kind = rng.integers(0, 5, 120)
        labels = [rng.choice(4, 3, p=chances[k]).astype(float).tolist() for k in kind]
        part = weighted_kappa(scores(labels))
        assert part.low is not None
        assert part.high is not None
        hits += part.low <= true <= part.high
    assert hits / 300 >= 0.92


# --- numeric files -----------------------------------------------------------------------------------------


def table(path: Path, rows: Sequence[Sequence[object]], columns: str = "text,label") -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns.split(","), *rows])
    return path


def ratings(path: Path, *, items: int = 500, noise: float = 0.5, grow: float = 0.0, wild: int = 0) -> Path:
    rng = np.random.default_rng(4)
    rows: list[tuple[str, object]] = []
    for k in range(items):
        truth = rng.uniform(0, 10)
        sd = noise * (1 + grow * truth) * (60 if k < wild else 1)
        rows += [(f"item {k}", round(truth + rng.normal(0, sd), 3)) for _ in range(2 if k < 300 else 1)]
    return table(path, rows)


def test_a_file_of_ratings(tmp_path: Path) -> None:
    found = audit_numeric(str(ratings(tmp_path / "r.csv")), item=["text"], label="label")
    assert (found.rows, found.items, found.repeats, found.repeat_rows) == (800, 500, 300, 600)
    low, high = found.noise_sd.low, found.noise_sd.high
    assert low is not None and high is not None  # noqa: PT018
    assert low < 0.5 < high
    assert found.rmse_floor == found.noise_sd
    assert found.r2_ceiling.estimate == pytest.approx(1 - 0.25 / (100 / 12), abs=0.01)
    assert found.r2_file == pytest.approx(found.r2_ceiling.estimate, abs=0.01)
    floor = found.mae_floor
    assert floor.low is not None and floor.high is not None  # noqa: PT018
    assert floor.low < 0.5 * math.sqrt(2 / math.pi) < floor.high  # of normal noise, whose median is its mean
    assert not found.alarms
    assert json.loads(json.dumps(found.to_dict()))["repeats"] == 300
    assert "RMSE" in found.summary()


def test_no_predictor_beats_the_floors(tmp_path: Path) -> None:
    """The best that can be done: the truth itself, against fresh labels."""
    rng = np.random.default_rng(12)
    truth = rng.uniform(0, 10, 20_000)
    fresh = truth + rng.laplace(0, 1, 20_000)
    rows = [(f"i{k}", round(truth[k] + e, 4)) for k in range(2000) for e in rng.laplace(0, 1, 2)]
    found = audit_numeric(str(table(tmp_path / "l.csv", rows)), item=["text"], label="label")
    assert found.noise_sd.low is not None and found.noise_sd.high is not None  # noqa: PT018
    assert found.noise_sd.low < math.sqrt(2) < found.noise_sd.high
    mae = float(np.mean(np.abs(fresh - truth)))
    assert found.mae_floor.low is not None and found.mae_floor.high is not None  # noqa: PT018
    assert found.mae_floor.low <= mae <= found.mae_floor.high
    r2 = 1 - np.var(fresh - truth) / np.var(fresh)
    assert found.r2_ceiling.high is not None
    assert r2 <= found.r2_ceiling.high + 0.01


def test_alarms_of_numeric_labels(tmp_path: Path) -> None:
    wild = audit_numeric(str(ratings(tmp_path / "w.csv", wild=3)), item=["text"], label="label")
    assert "few_items_hold_the_noise" in [alarm.code for alarm in wild.alarms]
    grows = audit_numeric(str(ratings(tmp_path / "g.csv", grow=1.0)), item=["text"], label="label")
    assert [alarm.code for alarm in grows.alarms] == ["noise_follows_the_level"]


def test_labels_that_are_no_numbers(tmp_path: Path) -> None:
    path = str(table(tmp_path / "a.csv", [("x", "1"), ("x", "n/a")]))
    with pytest.raises(InputError, match=r"'n/a' is no finite number.*--missing"):
        audit_numeric(path, item=["text"], label="label")
    assert audit_numeric(path, item=["text"], label="label", missing=["n/a"]).reason
    comma = str(table(tmp_path / "c.csv", [("x", "1,5"), ("x", "2,5")]))
    with pytest.raises(InputError, match="with a point"):
        audit_numeric(comma, item=["text"], label="label")
    with pytest.raises(InputError, match="'inf'"):
        audit_numeric(str(table(tmp_path / "i.csv", [("x", "inf")])), item=["text"], label="label")


def test_degenerate_numeric_labels(tmp_path: Path) -> None:
    same = audit_numeric(
        str(table(tmp_path / "s.csv", [("x", 3)] * 4 + [("y", 3)] * 2)), item=["text"], label="label"
    )
    assert same.noise_sd.estimate == 0.0
    assert same.r2_ceiling.estimate is None  # nothing varies
    assert same.summary()
    one = audit_numeric(str(table(tmp_path / "o.csv", [("x", 3), ("x", 4)])), item=["text"], label="label")
    assert one.noise_sd.estimate == pytest.approx(math.sqrt(0.5))
    assert one.noise_sd.low is None
    # as many spellings of one number as there are: "1", "1.0", "1e0"
    spelt = audit_numeric(str(table(tmp_path / "n.csv", [("x", "1"), ("x", "1.0"), ("x", "1e0")])), item=["text"],
                          label="label")  # fmt: skip
    assert spelt.noise_sd.estimate == 0.0


# --- grades ------------------------------------------------------------------------------------------------


def test_the_grades_of_the_anaesthetists() -> None:
    path = str(ROOT / "examples" / "anaesthetists.csv")
    found = audit_ordinal(path, item=["patient"], label="grade")
    plain = audit_duplicates(path, item=["patient"], label="grade")
    assert found.order == ("1", "2", "3", "4")
    assert found.audit.disagreement == plain.disagreement
    given = found.to_dict()
    assert given["disagreement"]["estimate"] == plain.disagreement.estimate  # the contract's paths stay
    kappa = given["ordinal"]["weighted_kappa"]["estimate"]
    assert kappa > (plain.agreement.kappa.estimate or 0)  # most conflicts are one grade apart
    assert found.adjacent is not None
    rows = pd.read_csv(path)
    pairs = [p for _, g in rows.groupby("patient") for p in combinations(g["grade"], 2)]
    apart = np.abs(np.diff(np.array(pairs))).ravel()
    assert found.adjacent == pytest.approx(float(np.mean(apart[apart > 0] == 1)))
    assert "quadratic-weighted" in found.summary()


def test_the_order_of_words_must_be_told(tmp_path: Path) -> None:
    path = str(table(tmp_path / "a.csv", [("x", "low"), ("x", "high"), ("y", "low"), ("y", "low")]))
    with pytest.raises(ArgumentError, match="--classes low,middle,high"):
        audit_ordinal(path, item=["text"], label="label")
    found = audit_ordinal(path, item=["text"], label="label", classes=["low", "middle", "high"])
    assert found.distance.estimate == pytest.approx(1.0)  # two steps in one of two items
    assert found.adjacent == 0.0


# --- tags --------------------------------------------------------------------------------------------------


def test_sets_of_tags(tmp_path: Path) -> None:
    rows = [
        ("x", "a|b"), ("x", "b | a|"),  # one set, written twice
        ("y", "a|b"), ("y", "a"),
        ("z", "c"), ("z", "c"),
        ("w", "a"), ("v", ""),
    ]  # fmt: skip
    found = audit_tags(str(table(tmp_path / "t.csv", rows)), item=["text"], label="label")
    assert found.audit.repeats.items == 3
    assert found.audit.disagreement.estimate == pytest.approx(1 / 3)
    assert found.distance.estimate == pytest.approx((0 + 0.5 + 0) / 3)
    assert {part.tag: part.disagreement.estimate for part in found.tags} == {
        "a": 0.0, "b": pytest.approx(1 / 3), "c": 0.0,
    }  # fmt: skip
    assert [part.tag for part in found.tags] == ["a", "b", "c"]  # the most frequent first
    assert found.tags[0].share == pytest.approx(5 / 7)
    given = found.to_dict()
    assert given["repeats"]["items"] == 3
    assert given["tags"]["tags"][1]["tag"] == "b"
    assert found.summary()
    assert audit_tags(str(tmp_path / "t.csv"), item=["text"], label="label", most=1).left_out == 2
    with pytest.raises(ArgumentError, match="--sep"):
        audit_tags(str(tmp_path / "t.csv"), item=["text"], label="label", sep="")


def test_a_tag_is_audited_as_its_own_column_would_be(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    rows = []
    for k in range(200):
        true = rng.random(3) < 0.4
        for _ in range(2):
            given = true ^ (rng.random(3) < 0.1)
            rows.append((f"i{k}", "|".join(t for t, g in zip("abc", given, strict=True) if g) or "none"))
    found = audit_tags(str(table(tmp_path / "t.csv", rows)), item=["text"], label="label")
    column = [(text, int("b" in tags.split("|"))) for text, tags in rows]
    alone = audit_duplicates(str(table(tmp_path / "b.csv", column)), item=["text"], label="label")
    part = next(part for part in found.tags if part.tag == "b")
    assert part.disagreement == alone.disagreement
    assert part.flip_rate == alone.flip_rate
    assert part.ceiling == alone.ceiling


# --- command line ------------------------------------------------------------------------------------------


def test_kinds_from_the_command_line(tmp_path: Path) -> None:
    numbers = ratings(tmp_path / "r.csv")
    done = run(
        "dupes", numbers, "--item", "text", "--label", "label", "--kind", "numeric", "--format", "json"
    )
    assert (done.code, done.json["repeats"]) == (0, 300)
    done = run("dupes", numbers, "--item", "text", "--label", "label", "--kind", "numeric", "--split", "text")
    assert done.code == 2
    assert "--split is not for --kind numeric: leave it out" in done.err
    grades = ROOT / "examples" / "anaesthetists.csv"
    done = run(
        "dupes", grades, "--item", "patient", "--label", "grade", "--kind", "ordinal", "--format", "json"
    )
    assert done.json["ordinal"]["order"] == ["1", "2", "3", "4"]
    tags = table(tmp_path / "t.csv", [("x", "a;b"), ("x", "b;a")])
    done = run("dupes", tags, "--item", "text", "--label", "label", "--sep", ";", "--format", "json")
    assert done.json["disagreement"]["estimate"] == 0.0
    assert len(done.json["tags"]["tags"]) == 2
    done = run("dupes", numbers, "--kind", "numeric", "--fail-under", "0.9")
    assert done.code == 2
    assert "--fail-under is for the accuracy ceiling of classes" in done.err
    done = run("dupes", tags, "--sep", ";", "--errors", "--gold", "label")
    assert done.code == 2
    assert "--errors is not for --kind tags (error rates are of classes" in done.err
    done = run("dupes", tags, "--sep", ";", "--kind", "ordinal")
    assert "--sep parts tags, and --kind is ordinal" in done.err
