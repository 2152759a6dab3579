"""Metrics over thresholds and bootstrap weights, against scikit-learn and by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as oracle

from audit.errors import ArgumentError
from train.draws import bootstrap, check_draws, fold_weights, interval_of, percentile_limits
from train.metrics import (
    DECISION_METRICS,
    RANKING_METRICS,
    Ranking,
    binary_metrics,
    count,
    decision_metric,
    paired_difference,
)

ORACLES = {
    "accuracy": oracle.accuracy_score,
    "balanced_accuracy": oracle.balanced_accuracy_score,
    "precision": lambda y, p: oracle.precision_score(y, p, pos_label="1"),
    "recall": lambda y, p: oracle.recall_score(y, p, pos_label="1"),
    "specificity": lambda y, p: oracle.recall_score(y, p, pos_label="0"),
    "f1": lambda y, p: oracle.f1_score(y, p, pos_label="1"),
    "mcc": oracle.matthews_corrcoef,
}


def rows(n=300, *, seed=0, digits=2, prevalence=0.3):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < prevalence
    scores = np.round(0.6 * rng.random(n) + 0.4 * y * rng.random(n), digits)
    return y, scores


def words(flags):
    return ["1" if flag else "0" for flag in flags]


@pytest.mark.parametrize("metric", DECISION_METRICS)
def test_decisions_agree_with_scikit_learn(metric):
    y, scores = rows()
    found = binary_metrics(words(y), words(scores > 0.5), positive="1")
    assert found[metric] == pytest.approx(ORACLES[metric](words(y), words(scores > 0.5)))


@pytest.mark.parametrize("digits", [1, 2, 8])
def test_rankings_agree_with_scikit_learn_with_and_without_ties(digits):
    y, scores = rows(digits=digits)
    found = binary_metrics(words(y), words(scores > 0.5), scores, positive="1")
    assert found["auc"] == pytest.approx(oracle.roc_auc_score(y, scores))
    assert found["average_precision"] == pytest.approx(oracle.average_precision_score(y, scores))
    assert (found["n"], found["positives"], found["scored"]) == (300, y.sum(), 300)


def test_weights_are_as_good_as_repeated_rows():
    y, scores = rows(60, digits=1)
    weights = np.random.default_rng(1).integers(0, 4, size=(5, 60)).astype(float)
    tp, fp = Ranking(y, scores).points(weights)
    predicted = (scores > 0.4).astype(np.int64)
    decided = count(y, predicted, weights)
    for b, w in enumerate(weights.astype(int)):
        again, drawn = np.repeat(y, w), np.repeat(scores, w)
        assert Ranking.measure("auc", tp, fp)[b] == pytest.approx(oracle.roc_auc_score(again, drawn))
        assert Ranking.measure("average_precision", tp, fp)[b] == pytest.approx(
            oracle.average_precision_score(again, drawn)
        )
        for metric in DECISION_METRICS:
            wanted = ORACLES[metric](words(again), words(np.repeat(predicted, w)))
            assert decision_metric(metric, decided)[b] == pytest.approx(wanted)


def test_points_are_the_thresholds_of_scikit_learn():
    y, scores = rows(digits=1)
    ranking = Ranking(y, scores)
    tp, fp = ranking.points(np.ones((1, len(y))))
    fpr, tpr, thresholds = oracle.roc_curve(y, scores, drop_intermediate=False)
    assert tp[0] / y.sum() == pytest.approx(tpr)
    assert fp[0] / (~y).sum() == pytest.approx(fpr)
    assert ranking.thresholds == pytest.approx(thresholds[1:])


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["0", "1", None])), min_size=1, max_size=40))
def test_missing_answers_are_a_wrong_third_class(pairs):
    y, told = [p[0] for p in pairs], [p[1] for p in pairs]
    found = binary_metrics(words(y), told, positive="1")
    right = [t == ("1" if label else "0") for label, t in zip(y, told, strict=True)]
    assert found["accuracy"] == pytest.approx(np.mean(right))
    if any(y) and not all(y):
        spelled = [t or "none" for t in told]
        assert found["mcc"] == pytest.approx(oracle.matthews_corrcoef(words(y), spelled))
        assert found["recall"] == pytest.approx(
            np.mean([r for r, label in zip(right, y, strict=True) if label])
        )
    else:
        assert found["mcc"] is None


def test_what_does_not_exist_is_none_and_never_zero():
    none = binary_metrics(["1", "0"], ["0", "0"], [0.5, 0.5], positive="1")
    assert (none["precision"], none["recall"], none["f1"], none["mcc"], none["auc"]) == (
        None,
        0.0,
        0.0,
        0.0,
        0.5,
    )
    one_class = binary_metrics(["0", "0"], ["0", "1"], [0.1, 0.9], positive="1")
    assert {m: one_class[m] for m in ("recall", "balanced_accuracy", "mcc", "auc", "average_precision")} == {
        "recall": None, "balanced_accuracy": None, "mcc": None, "auc": None, "average_precision": None,
    }  # fmt: skip
    assert one_class["specificity"] == 0.5


def test_rows_without_a_score_are_left_out_of_the_ranking_only():
    y, scores = rows(50)
    some = [None if k % 5 == 0 else s for k, s in enumerate(scores)]
    some[1] = float("nan")
    found = binary_metrics(words(y), words(scores > 0.5), some, positive="1")
    kept = [k for k, s in enumerate(some) if s is not None and s == s]
    assert found["auc"] == pytest.approx(oracle.roc_auc_score(y[kept], scores[kept]))
    assert (found["n"], found["scored"]) == (50, len(kept))
    assert binary_metrics(["1"], ["1"], [None], positive="1")["auc"] is None


@pytest.mark.parametrize("none", [None, float("nan"), pd.NA])
def test_any_missing_value_is_no_answer(none):
    assert binary_metrics(["1", "0"], ["1", none], positive="1")["accuracy"] == 0.5


def test_lengths_must_fit():
    with pytest.raises(ArgumentError, match="2 labels do not fit 1 predictions"):
        binary_metrics(["1", "0"], ["1"], positive="1")
    with pytest.raises(ArgumentError, match="2 labels do not fit 1 scores"):
        binary_metrics(["1", "0"], ["1", "0"], [0.5], positive="1")
    with pytest.raises(ArgumentError, match="missing"):
        Ranking(np.array([True]), np.array([np.nan]))
    with pytest.raises(ArgumentError, match="no metric of decisions"):
        decision_metric("auc", count(np.array([True]), np.array([1]), np.ones((1, 1))))
    with pytest.raises(ArgumentError, match="no metric of scores"):
        Ranking.measure("f1", *Ranking(np.array([True]), np.array([0.5])).points(np.ones((1, 1))))


# --- the bootstrap ------------------------------------------------------------------------------------------


def test_draws_have_the_variance_of_a_mean():
    values = np.arange(40.0)
    drawn = bootstrap(lambda w: (w @ values / 40)[:, None], clusters=np.arange(40), draws=20_000, seed=0)[
        :, 0
    ]
    assert drawn.mean() == pytest.approx(values.mean(), abs=0.06)
    assert drawn.std() == pytest.approx(values.std() / np.sqrt(40), rel=0.03)


def test_clusters_are_drawn_whole_and_strata_keep_their_size():
    clusters = np.array([0, 0, 1, 1, 2, 3])
    weights = bootstrap(lambda w: w, clusters=clusters, draws=200, seed=0)
    assert (weights[:, 0] == weights[:, 1]).all()
    assert (weights[:, 2] == weights[:, 3]).all()
    assert (weights[:, [0, 2, 4, 5]].sum(axis=1) == 4).all()
    kept = bootstrap(lambda w: w, clusters=clusters, strata=np.array([0, 0, 0, 0, 1, 1]), draws=200, seed=0)
    assert (kept[:, 4:].sum(axis=1) == 2).all()
    with pytest.raises(ArgumentError, match="two strata"):
        bootstrap(lambda w: w, clusters=clusters, strata=np.array([0, 1, 0, 0, 0, 0]), draws=200, seed=0)


def test_draws_and_seed_are_checked():
    with pytest.raises(ArgumentError, match="too few"):
        check_draws(50)
    with pytest.raises(ArgumentError, match="seed"):
        bootstrap(lambda w: w, clusters=np.arange(3), draws=100, seed=-1)


def test_the_same_seed_gives_the_same_draws():
    first, again, other = (
        bootstrap(lambda w: w, clusters=np.arange(9), draws=100, seed=seed) for seed in (4, 4, 5)
    )
    assert (first == again).all()
    assert (first != other).any()


def test_every_row_is_left_out_once_and_clusters_stay_whole():
    truth = np.arange(30) % 3 == 0
    clusters = np.arange(30) // 3
    for train, out in fold_weights(clusters, truth, seed=0, folds=5, repeats=3):
        assert (train + out == 1).all()
        assert (out.sum(axis=0) == 1).all()
        assert (out[:, 0::3] == out[:, 2::3]).all()


def test_limits_of_a_perfect_metric_are_not_of_no_width():
    part = interval_of("recall", 1.0, np.ones(200), items=30, level=0.95)
    assert part.low == pytest.approx(stats.beta.ppf(0.025, 30, 1), abs=0.01)
    assert part.high == 1.0
    mcc = interval_of("mcc", -1.0, -np.ones(200), items=30, level=0.95)
    assert (mcc.low, mcc.high > -1.0) == (-1.0, True)
    normal = interval_of(
        "mcc", 0.0, np.random.default_rng(0).normal(0.0, 0.1, 2_000), items=10_000, level=0.95
    )
    assert (normal.low, normal.high) == pytest.approx((-0.196, 0.196), abs=0.01)


def test_draws_without_a_value_are_told():
    values = np.concatenate([np.full(20, np.nan), np.linspace(0, 1, 180)])
    assert percentile_limits(values, level=0.95) is None
    assert interval_of("precision", 0.5, values, items=20, level=0.95).low is None
    assert interval_of("precision", float("nan"), values, items=20, level=0.95).estimate is None


# --- two models on the same rows -------------------------------------------------------------------------------


def test_a_difference_of_two_models_is_the_difference_of_their_metrics():
    y, a = rows(400, seed=1)
    _, b = rows(400, seed=2)
    for metric in DECISION_METRICS:
        found = paired_difference(
            words(y), words(a > 0.4), words(b > 0.3), positive="1", metric=metric, draws=100
        )
        wanted = [ORACLES[metric](words(y), words(p)) for p in (a > 0.4, b > 0.3)]
        assert (found.a, found.b) == pytest.approx(tuple(wanted))
        assert found.difference.estimate == pytest.approx(wanted[1] - wanted[0])
        assert found.difference.low < found.difference.estimate < found.difference.high
    for metric in RANKING_METRICS:
        found = paired_difference(words(y), a, b, positive="1", metric=metric, draws=100)
        assert found.a == pytest.approx(binary_metrics(words(y), words(y), a, positive="1")[metric])
    assert "difference" in found.summary()
    assert found.to_dict()["difference"]["estimate"] == found.difference.estimate


def test_models_that_never_differ_on_few_rows_are_not_equal_for_certain():
    y = words(np.arange(40) < 10)
    found = paired_difference(y, y, y, positive="1", metric="accuracy", draws=1_000)
    assert found.difference.estimate == 0.0
    assert -0.12 < found.difference.low < -0.02
    assert 0.02 < found.difference.high < 0.12


def test_the_interval_of_a_difference_covers():
    """200 samples of 150 rows: two models with accuracy .8 and .75; 95 % intervals of accuracy and of F1."""
    held = {"accuracy": 0, "f1": 0}
    # share of positives .4; recall = specificity = .8 and .75; F1 = 2 tp / (positives + called positive)
    f1 = [2 * 0.4 * r / (0.4 + 0.4 * r + 0.6 * (1 - r)) for r in (0.8, 0.75)]
    true = {"accuracy": -0.05, "f1": f1[1] - f1[0]}
    for seed in range(200):
        rng = np.random.default_rng(seed)
        y = rng.random(150) < 0.4
        a, b = y ^ (rng.random(150) < 0.2), y ^ (rng.random(150) < 0.25)
        for metric in held:
            part = paired_difference(
                words(y), words(a), words(b), positive="1", metric=metric, draws=300, seed=seed
            ).difference
            held[metric] += part.low <= true[metric] <= part.high
    assert all(185 <= times <= 199 for times in held.values()), held


def test_clusters_widen_the_interval():
    rng = np.random.default_rng(0)
    y = np.repeat(rng.random(40) < 0.5, 10)
    a, b = (y ^ np.repeat(rng.random(40) < 0.2, 10) for _ in range(2))
    widths = [
        part.high - part.low
        for clusters in (None, np.repeat(np.arange(40), 10))
        for part in [
            paired_difference(
                words(y), words(a), words(b), positive="1", clusters=clusters, draws=500
            ).difference
        ]
    ]
    assert widths[1] > 2.0 * widths[0]


def test_differences_that_do_not_exist_are_told():
    found = paired_difference(
        ["1", "0"] * 9, ["0"] * 18, ["1"] * 18, positive="1", metric="precision", draws=100
    )
    assert (found.a, found.difference.estimate, found.difference.low) == (None, None, None)
    assert "no difference" in found.summary()
    with pytest.raises(ArgumentError, match="as many answers"):
        paired_difference(["1"], ["1"], [], positive="1")
    with pytest.raises(ArgumentError, match="cluster"):
        paired_difference(["1"], ["1"], ["1"], positive="1", clusters=["a", "b"])
