"""Gold-corrected shares: by hand, against the truth in simulation, with unequal chances to be drawn."""

import numpy as np
import pytest

from audit.errors import ArgumentError
from relabel.prevalence import estimate_prevalence

CLASSES = ("0", "1")


def words(values):
    return [CLASSES[int(value)] for value in values]


def estimate(gold, clean, *, ones, items, **more):
    return estimate_prevalence(
        classes=CLASSES,
        counted={"1": ones, "0": items - ones},
        items=items,
        gold=words(gold),
        clean=words(clean),
        **more,
    )


def test_by_hand_where_gold_and_clean_labels_agree():
    found = estimate([1, 1, 0, 0], [1, 1, 0, 0], ones=30, items=100)
    # per class: Var_gold = Cov_gold = (4/3) * 4 * (1/16) * (1/4) = 1/12; Var_all/N = .3 * .7 / 100
    tuning = (1 / 12) / (1 / 12 + 0.0021)
    assert found.tuning == pytest.approx(tuning)
    assert found.shares[1].estimate == pytest.approx(0.5 + tuning * (0.3 - 0.5))
    assert found.shares[1].counted == 0.3
    assert found.shares[1].gold_only == 0.5


def test_a_biased_judge_is_corrected():
    # the judge misses every fourth 1: it counts .15 where .20 is right
    gold = [1] * 40 + [0] * 160
    clean = [1] * 30 + [0] * 170
    found = estimate(gold, clean, ones=150, items=1000)
    one = found.shares[1]
    assert one.counted == 0.15
    assert one.low < 0.2 < one.high
    assert one.low > 0.15
    assert one.estimate == pytest.approx(0.2)
    assert [share.label for share in found.shares] == ["0", "1"]


def test_a_useless_judge_leaves_gold_alone():
    rng = np.random.default_rng(2)
    gold, clean = rng.random(400) < 0.3, rng.random(400) < 0.5
    found = estimate(gold, clean, ones=900, items=1000)
    assert found.tuning < 0.1
    assert found.shares[1].estimate == pytest.approx(gold.mean(), abs=0.04)
    constant = estimate(gold, [0] * 400, ones=0, items=1000)
    assert constant.tuning == 0.0
    assert constant.shares[1].estimate == pytest.approx(gold.mean())


def test_shares_of_several_classes_add_up_to_one():
    rng = np.random.default_rng(3)
    classes = ("a", "b", "c", "d")
    gold = rng.integers(0, 4, 80)
    clean = np.where(rng.random(80) < 0.8, gold, rng.integers(0, 4, 80))
    found = estimate_prevalence(
        classes=classes,
        counted={"a": 100, "b": 200, "c": 300, "d": 400},
        items=1000,
        gold=[classes[k] for k in gold],
        clean=[classes[k] for k in clean],
    )
    assert sum(share.estimate for share in found.shares) == pytest.approx(1.0)
    assert all(share.low < share.estimate < share.high for share in found.shares)


@pytest.mark.parametrize(
    ("share", "miss", "invent", "size"), [(0.23, 0.1, 0.03, 100), (0.05, 0.1, 0.03, 200)]
)
def test_the_interval_covers_and_is_narrower_than_gold_alone(share, miss, invent, size):
    rng = np.random.default_rng(11)
    items, runs = 3000, 400
    covered, width, error = 0, [], []
    for _ in range(runs):
        truth = rng.random(items) < share
        clean = truth ^ (rng.random(items) < np.where(truth, miss, invent))
        drawn = rng.permutation(items)
        gold, rest = drawn[:size], drawn[size:]
        one = estimate(truth[gold], clean[gold], ones=int(clean[rest].sum()), items=items - size).shares[1]
        covered += one.low <= share <= one.high
        width.append(one.high - one.low)
        error.append(one.estimate - share)
    assert covered / runs >= 0.94  # .95 less two standard errors is .928
    assert np.mean(width) < 2 * 1.96 * np.sqrt(share * (1 - share) / size)
    assert abs(np.mean(error)) < 3 * np.std(error) / np.sqrt(runs)


def test_known_weights_undo_an_unequal_draw():
    rng = np.random.default_rng(5)
    share, items, runs = 0.2, 2000, 300
    covered, weighted, plain = 0, [], []
    for _ in range(runs):
        truth = rng.random(items) < share
        clean = truth ^ (rng.random(items) < np.where(truth, 0.2, 0.05))
        chance = np.where(clean, 0.3, 0.06)  # what the judge calls 1 is looked at more often
        gold = rng.random(items) < chance
        told = {"ones": int(clean.sum()), "items": items}
        one = estimate(truth[gold], clean[gold], weights=1 / chance[gold], **told).shares[1]
        covered += one.low <= share <= one.high
        weighted.append(one.estimate)
        plain.append(truth[gold].mean())
    assert covered / runs >= 0.94
    assert np.mean(weighted) == pytest.approx(share, abs=0.005)
    assert np.mean(plain) > 0.35  # without weights gold would claim far too many


def test_weights_in_proportion_give_the_same_and_equal_ones_none():
    gold, clean = [1, 0, 0, 1, 0, 1], [1, 0, 1, 1, 0, 0]
    one = estimate(gold, clean, ones=50, items=100, weights=[1, 2, 3, 1, 2, 3])
    ten = estimate(gold, clean, ones=50, items=100, weights=[10, 20, 30, 10, 20, 30])
    assert one.shares[1].estimate == pytest.approx(ten.shares[1].estimate)
    assert one.effective_gold == pytest.approx(12**2 / 28)
    assert estimate(gold, clean, ones=50, items=100, weights=[7] * 6) == estimate(
        gold, clean, ones=50, items=100
    )


def test_items_without_a_clean_label_count():
    found = estimate_prevalence(
        classes=CLASSES,
        counted={"1": 180, "0": 620},  # of 1000: 200 have no label, all of them truly 1
        items=1000,
        gold=words([1] * 38 + [0] * 62),
        clean=[*words([1] * 18), *[None] * 20, *words([0] * 62)],
    )
    assert found.shares[1].low < 0.38 < found.shares[1].high
    assert found.shares[1].estimate == pytest.approx(0.38)


def test_full_agreement_still_has_a_width():
    found = estimate([0] * 50, [0] * 50, ones=0, items=500).shares[1]
    assert found.estimate == 0.0
    assert 0.03 < found.high < 0.1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"gold": ["1"], "clean": ["1"]}, "two gold items"),
        ({"clean": ["1"]}, "two gold items"),
        ({"items": 0}, "outside gold"),
        ({"gold": ["1", "2"]}, "not one of the classes"),
        ({"weights": [1.0, 0.0]}, "one weight above 0"),
        ({"weights": [1.0]}, "one weight above 0"),
        ({"level": 1.0}, "confidence level"),
    ],
)
def test_bad_arguments_are_named(change, told):
    given = {"classes": CLASSES, "counted": {"1": 3}, "items": 10, "gold": ["1", "0"], "clean": ["1", "0"]}
    with pytest.raises(ArgumentError, match=told):
        estimate_prevalence(**{**given, **change})
