"""Dawid and Skene's model: the anaesthetists of the paper, a plain Python EM, simulations, annotators who copy."""

from __future__ import annotations

import csv
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from audit.dawid_skene import AnnotatorVotes, annotator_errors, fit_dawid_skene, votes_of
from audit.errors import ArgumentError
from audit.patterns import FloatArray

EXAMPLE = Path(__file__).parents[1] / "examples" / "anaesthetists.csv"


def anaesthetists() -> AnnotatorVotes:
    with EXAMPLE.open(encoding="utf-8", newline="") as file:
        given = Counter(
            (int(row["patient"]), row["observer"], int(row["grade"]) - 1) for row in csv.DictReader(file)
        )
    return votes_of([(*key, times) for key, times in given.items()], classes="1234")


def test_the_published_class_shares() -> None:
    """Dawid & Skene (1979) print .40, .42, .11 and .07."""
    fit = fit_dawid_skene(anaesthetists())
    assert np.round(fit.prevalence, 2).tolist() == [0.40, 0.42, 0.11, 0.07]


def test_the_error_rates_of_observer_1() -> None:
    """Observer 1 saw each patient three times. Rows are the true grade, columns the grade given.

    The model's maximum to two digits, the same as crowd-kit 1.4's DawidSkene gives for this file.
    """
    fit = fit_dawid_skene(anaesthetists())
    wanted = [[0.91, 0.09, 0.0, 0.0], [0.07, 0.88, 0.05, 0.0], [0.0, 0.34, 0.66, 0.0], [0.0, 0.0, 0.56, 0.44]]
    assert np.round(fit.rates[0], 2).tolist() == wanted
    assert fit.log_likelihood == pytest.approx(-190.731, abs=0.001)


def plain(votes: AnnotatorVotes, steps: int) -> tuple[list[float], list[list[list[float]]]]:
    """The paper's equations, label by label."""
    n, classes, people = votes.items, len(votes.classes), len(votes.annotators)
    given: list[list[tuple[int, int, int]]] = [[] for _ in range(n)]
    for i, a, k, w in zip(votes.item, votes.annotator, votes.label, votes.times, strict=True):
        given[i].append((int(a), int(k), int(w)))
    truths = [
        [sum(w for _, k, w in one if k == j) / sum(w for _, _, w in one) for j in range(classes)]
        for one in given
    ]
    for _ in range(steps):
        shares = [sum(t[j] for t in truths) / n for j in range(classes)]
        rates = [[[0.0] * classes for _ in range(classes)] for _ in range(people)]
        for one, t in zip(given, truths, strict=True):
            for a, k, w in one:
                for j in range(classes):
                    rates[a][j][k] += t[j] * w
        for table in rates:
            for row in table:
                total = sum(row)
                row[:] = [x / total if total else 1 / classes for x in row]
        for i, one in enumerate(given):
            joint = [shares[j] * math.prod(rates[a][j][k] ** w for a, k, w in one) for j in range(classes)]
            truths[i] = [x / sum(joint) for x in joint]
    return shares, rates


def test_plain_python_agrees() -> None:
    votes = anaesthetists()
    shares, rates = plain(votes, 60)
    fit = fit_dawid_skene(votes)
    assert fit.prevalence == pytest.approx(shares, abs=1e-4)
    assert fit.rates == pytest.approx(np.array(rates), abs=1e-3)


def drawn(seed: int, items: int, tables: FloatArray, *, copies: float = 0.0) -> AnnotatorVotes:
    """Every annotator labels every item; the last one copies the one before with chance ``copies``."""
    rng = np.random.default_rng(seed)
    classes = tables.shape[1]
    truth = rng.integers(classes, size=items)
    labels = np.array([[rng.choice(classes, p=table[j]) for table in tables] for j in truth])
    copied = rng.random(items) < copies
    labels[copied, -1] = labels[copied, -2]
    rows = [(i, f"a{a}", int(labels[i, a]), 1) for i in range(items) for a in range(len(tables))]
    return votes_of(rows, classes=[str(k) for k in range(classes)])


TABLES = np.array(
    [
        [[0.9, 0.1], [0.2, 0.8]],
        [[0.7, 0.3], [0.1, 0.9]],
        [[0.8, 0.2], [0.3, 0.7]],
        [[0.85, 0.15], [0.15, 0.85]],
    ]
)


def test_known_rates_come_back() -> None:
    found = annotator_errors(drawn(1, 3_000, TABLES), draws=60)
    assert [r.value for r in found.raters] == ["a0", "a1", "a2", "a3"]
    for rater, table in zip(found.raters, TABLES, strict=True):
        assert [r.estimate for r in rater.rates] == pytest.approx(table.ravel(), abs=0.05)
        assert rater.labels == 3_000
        assert rater.error.low is not None
        assert rater.error.low <= 0.5 * (table[0, 1] + table[1, 0]) <= (rater.error.high or 0)
    assert found.dependent == ()
    assert found.fit_p_value is not None
    assert found.fit_p_value > 0.001


def test_annotators_who_copy_are_told() -> None:
    found = annotator_errors(drawn(2, 1_500, np.vstack([TABLES, TABLES]), copies=0.5), draws=0)
    assert found.fit_p_value is not None
    assert found.fit_p_value < 0.001
    assert found.dependent[0].value == "a6 / a7"
    assert found.dependent[0].observed > found.dependent[0].expected


def test_independent_annotators_raise_no_alarm() -> None:
    alarms = sum(
        bool(annotator_errors(drawn(seed, 300, np.vstack([TABLES, TABLES])), draws=0).dependent)
        for seed in range(20)
    )
    assert alarms == 0


def test_two_annotators_and_large_files_say_what_is_missing() -> None:
    two = annotator_errors(drawn(3, 200, TABLES[:2]), draws=60)
    assert any("pairs do not identify the error rates" in note for note in two.notes)
    assert not any("pairs do not identify" in note for note in annotator_errors(drawn(3, 200, TABLES)).notes)
    none = annotator_errors(drawn(3, 200, TABLES), draws=0)
    assert any("no intervals" in note for note in none.notes)
    assert none.mean_error.estimate is not None
    assert none.mean_error.low is None


@pytest.mark.parametrize(
    ("votes", "words"),
    [
        (votes_of([(i, "a", 0, 2) for i in range(50)], classes="01"), "one annotator"),
        (votes_of([(i, a, 0, 1) for i in range(9) for a in "ab"], classes="01"), "fewer than 30"),
        (votes_of([(i, a, 0, 1) for i in range(50) for a in "ab"], classes="0"), "only one class"),
    ],
)
def test_reasons(votes: AnnotatorVotes, words: str) -> None:
    found = annotator_errors(votes)
    assert found.rates == ()
    assert words in (found.reason or "")


def test_many_annotators_of_two_labels_an_item_are_as_unidentified() -> None:
    """A chain of forty people, each item by two neighbours: pairs again, however many people there are."""
    rng = np.random.default_rng(5)
    truth = rng.random(400) < 0.3
    rows = [
        (i, f"w{(i // 10 + k) % 40}", int(truth[i] != (rng.random() < 0.15)), 1)
        for i in range(400)
        for k in (0, 1)
    ]
    found = annotator_errors(votes_of(rows, classes="01"), draws=0)
    assert any("one of many tables that fit as well" in note for note in found.notes)


def test_annotators_of_one_label_each_have_no_tables_of_their_own() -> None:
    """Tables fitted to one label each could be anything: the mean error then came out at .42 where it was .13."""
    rng = np.random.default_rng(2)
    truth = rng.random(200) < 0.3
    wrong = [rng.random() < 0.13 for _ in range(600)]
    alone = [(i, f"w{i}-{k}", int(truth[i] != wrong[3 * i + k]), 1) for i in range(200) for k in range(3)]
    none = annotator_errors(votes_of(alone, classes="01"))
    assert none.rates == ()
    assert "none of 600 annotators gave 10 labels or more" in (none.reason or "")
    # two regular annotators and a crowd: the crowd shares a table, and is no pair to be tested
    mixed = [*alone]
    mixed += [
        (i, name, int(truth[i] != (rng.random() < 0.1)), 1) for i in range(200) for name in ("ann", "ben")
    ]
    found = annotator_errors(votes_of(mixed, classes="01"), draws=60)
    assert [rater.value for rater in found.raters] == ["(600 others)", "ann", "ben"]
    assert any(
        "600 annotators with fewer than 10 labels each share one table" in note for note in found.notes
    )
    crowd = found.raters[0].error
    assert crowd.estimate == pytest.approx(0.13, abs=0.03)
    assert crowd.low is not None
    assert crowd.high is not None
    assert crowd.low <= crowd.estimate <= crowd.high
    assert all("others" not in pair.value for pair in found.dependent)


def test_a_class_that_no_item_has_gets_no_rates() -> None:
    tables = TABLES[:3]
    rows = drawn(4, 300, tables)
    found = annotator_errors(
        AnnotatorVotes(
            item=rows.item, annotator=rows.annotator, label=rows.label, times=rows.times, items=rows.items,
            annotators=rows.annotators, classes=("0", "1", "maybe"),
        ),
        draws=60,
    )  # fmt: skip
    told = {rate.truth: rate.estimate for rate in found.rates if rate.label == "0"}
    assert told["maybe"] is None
    assert told["0"] is not None


def test_arguments() -> None:
    with pytest.raises(ArgumentError):
        fit_dawid_skene(votes_of([], classes="01"))
    with pytest.raises(ArgumentError):
        annotator_errors(anaesthetists(), level=1.5)
    assert annotator_errors(anaesthetists(), seed=1) == annotator_errors(anaesthetists(), seed=1)
