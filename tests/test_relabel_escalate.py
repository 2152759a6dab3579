import numpy as np
import pytest
from scipy import stats

from audit.errors import ArgumentError
from relabel.escalate import Policy, choose_policy, gold_needed, threshold_on_gold

GRID = np.linspace(0, 1, 201)


@pytest.mark.parametrize(
    ("options", "policy"),
    [
        ({"adjudicator": False}, Policy(kind="none")),
        ({"adjudicator": True}, Policy(kind="share", value=0.15)),
        ({"adjudicator": True, "share": "20%"}, Policy(kind="share", value=0.2)),
        ({"adjudicator": True, "share": "0.2"}, Policy(kind="share", value=0.2)),
        ({"adjudicator": True, "share": 0.2}, Policy(kind="share", value=0.2)),
        ({"adjudicator": True, "below": 0.8}, Policy(kind="below", value=0.8)),
        ({"adjudicator": True, "target_agreement": 0.9, "gold": True}, Policy(kind="target", value=0.9)),
    ],
)
def test_options_become_one_policy(options, policy):
    assert choose_policy(**options) == policy


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"adjudicator": True, "share": "20%", "below": 0.8}, "exclude each other"),
        ({"adjudicator": False, "share": "20%"}, "give --adjudicator"),
        ({"adjudicator": True, "target_agreement": 0.9}, "give --gold"),
        ({"adjudicator": True, "share": "many"}, "not a share"),
        ({"adjudicator": True, "share": "150%"}, "not between 0 and 1"),
        ({"adjudicator": True, "share": "15"}, "not between 0 and 1"),
        ({"adjudicator": True, "below": 1.5}, "out of range"),
        ({"adjudicator": True, "target_agreement": 1.0, "gold": True}, "out of range"),
    ],
)
def test_options_that_contradict_are_told(options, part):
    with pytest.raises(ArgumentError, match=part):
        choose_policy(**options)


@pytest.mark.parametrize(("target", "needed"), [(0.9, 29), (0.95, 59), (0.8, 14), (0.5, 5)])
def test_the_fewest_gold_items_follow_from_the_binomial(target, needed):
    # all n agree: the bound passes when target^n <= 0.05, so n = ceil(ln 0.05 / ln target)
    assert gold_needed(target) == needed
    assert target**needed <= 0.05 < target ** (needed - 1)


def test_too_little_gold_is_refused():
    with pytest.raises(ArgumentError, match=r"28 items .* it takes 29"):
        threshold_on_gold(np.full(28, 0.9), np.ones(28, bool), grid=GRID, target=0.9)


def test_a_judge_that_is_always_right_keeps_everything():
    found = threshold_on_gold(np.linspace(0.5, 1, 100), np.ones(100, bool), grid=GRID, target=0.9)
    assert (found.kept, found.agreed, found.coverage) == (100, 100, 1.0)
    assert found.threshold <= 0.5
    # Clopper-Pearson with no failure: 0.05^(1/100)
    assert found.lower == pytest.approx(0.05 ** (1 / 100))


def test_the_threshold_parts_the_sure_from_the_unsure():
    # 100 items above .9 are all right; 100 below are right half of the time: the cut is at .9, up to one grid step
    conf = np.r_[np.linspace(0.9, 1, 100), np.linspace(0.5, 0.895, 100)]
    right = np.r_[np.ones(100, bool), np.arange(100) % 2 == 0]
    found = threshold_on_gold(conf, right, grid=GRID, target=0.9)
    assert 0.85 <= found.threshold <= 0.9
    kept = conf >= found.threshold
    assert (found.kept, found.agreed) == (kept.sum(), right[kept].sum())
    assert stats.binom.cdf(found.kept - found.agreed, found.kept, 0.1) <= 0.05
    assert found.to_dict()["coverage"] == pytest.approx(found.kept / 200)


def test_the_sequence_ends_at_the_first_failure():
    # the middle fails although everything together would pass: lower thresholds must not be reached over it
    conf = np.r_[np.full(200, 0.95), np.full(40, 0.8), np.full(2000, 0.3)]
    right = np.r_[np.ones(200, bool), np.zeros(40, bool), np.ones(2000, bool)]
    assert stats.binom.cdf(40, 2240, 0.1) <= 0.05
    found = threshold_on_gold(conf, right, grid=[0.9, 0.7, 0.2], target=0.9)
    assert (found.threshold, found.tested, found.kept) == (0.9, 2, 200)


def test_no_threshold_is_an_error_with_figures():
    rng = np.random.default_rng(0)
    with pytest.raises(ArgumentError, match=r"agrees on \d+ of its \d+ surest"):
        threshold_on_gold(rng.random(300), rng.random(300) < 0.7, grid=GRID, target=0.95)
    with pytest.raises(ArgumentError, match="no threshold keeps enough"):
        threshold_on_gold(np.full(40, 0.5), np.ones(40, bool), grid=[0.9], target=0.9)


def test_arguments_of_different_shape_are_an_error():
    with pytest.raises(ArgumentError, match="same length"):
        threshold_on_gold(np.ones(3), np.ones(4, bool), grid=GRID, target=0.9)


def agreement_above(threshold):
    """True agreement among items with confidence of at least t, where P(right | c) = c and c is even on [.5, 1]."""
    return (1 + max(threshold, 0.5)) / 2


def test_the_promise_is_kept_over_many_gold_samples():
    """P(true agreement of the kept < target) <= delta, by simulation: 600 samples of 400 gold items."""
    rng = np.random.default_rng(3)
    broken = found = 0
    coverage = []
    for _ in range(600):
        conf = rng.uniform(0.5, 1, 400)
        right = rng.random(400) < conf
        try:
            cut = threshold_on_gold(conf, right, grid=np.linspace(0.5, 1, 101), target=0.88)
        except ArgumentError:
            continue
        found += 1
        broken += agreement_above(cut.threshold) < 0.88
        coverage.append(cut.coverage)
    # under the bound the count is at most Binomial(600, .05): 48 has probability < .001 of being passed
    assert broken <= 48
    # and it is of use: the true answer is a threshold of .76, a coverage of .48
    assert found > 400
    assert 0.2 < np.mean(coverage) < 0.48
