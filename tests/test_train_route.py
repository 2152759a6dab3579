"""Routing between two models: what confidence knows, what the oracle's gap is made of, and how often verdicts err."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from audit.duplicates import audit_duplicates
from audit.errors import ArgumentError, InputError
from tests.made_scores import routed_pair, scores_of
from train.route import route
from train.route_cascade import SHARES, Cascade, confidence_of, cuts
from train.route_oracle import ambiguity, gap_of_coins, gap_of_independent_errors, mcnemar
from train.route_page import route_page
from train.scores import read_scores


def routed(n=600, *, skill=1.0, seed=0, draws=200, more=None, **simulated):
    a, b = routed_pair(n, skill=skill, seed=seed, **simulated)
    return route(scores_of(a), scores_of(b), draws=draws, seed=seed, **(more or {}))


# --- the cascade ----------------------------------------------------------------------------------------------


def naive_cascade(data_a, data_b, share):
    """Accuracy and balanced accuracy with the share of a's least confident items answered by b; no ties."""
    y, a, b = (d.to_numpy() == "1" for d in (data_a["label"], data_a["prediction"], data_b["prediction"]))
    sure = np.where(a, data_a["score"], 1.0 - data_a["score"])
    to_b = np.argsort(np.argsort(sure)) < round(share * len(y))
    answer = np.where(to_b, b, a)
    return float((answer == y).mean()), float((answer[y].mean() + (~answer[~y]).mean()) / 2.0)


def test_every_share_has_the_metrics_of_its_routing():
    a, b = routed_pair(500, skill=0.7)
    found = route(a, b, draws=100)
    assert [p.share for p in found.cascade] == pytest.approx(list(SHARES))
    for point in found.cascade:
        wanted = naive_cascade(a, b, point.share)
        assert (point.accuracy.estimate, point.balanced_accuracy.estimate) == pytest.approx(wanted)
        first, last = found.cascade[0].accuracy.estimate, found.cascade[-1].accuracy.estimate
        line = first + point.share * (last - first)
        assert point.over_random.estimate == pytest.approx(wanted[0] - line)
        assert point.over_b.estimate == pytest.approx(wanted[0] - last)
    assert found.cascade[-1].over_random.low == found.cascade[-1].over_random.high == 0.0


def test_ties_are_routed_as_by_a_coin():
    """Two confidences only: within each the metric runs on a straight line."""
    truth = np.arange(8) % 2 == 0
    sure = np.array([0.5] * 4 + [0.9] * 4)
    a_right, b_right = np.array([0, 0, 1, 1, 1, 1, 1, 1]) > 0, np.array([1, 1, 1, 0, 0, 0, 1, 1]) > 0
    group = cuts(sure, 100)
    assert group.tolist() == [0] * 4 + [1] * 4
    curves, areas, bands, who = Cascade(truth, a_right, b_right, group).measure(np.ones((1, 8)))
    wanted = np.interp(SHARES, [0.0, 0.5, 1.0], [6 / 8, 7 / 8, 5 / 8])
    assert curves[0, 0] == pytest.approx(wanted)
    assert areas[0, 0] == pytest.approx((6.5 + 6) / 16 - (6 + 5) / 16)
    assert bands[0, :, :2].tolist() == [[0.5, 0.75], [1.0, 0.5]]
    assert who[0].tolist() == [3 / 8, 3 / 8, 2 / 8]


def test_weights_are_as_good_as_repeated_items():
    rng = np.random.default_rng(0)
    truth, a_right, b_right = (rng.random(50) < p for p in (0.4, 0.8, 0.7))
    group = cuts(rng.random(50), 10)
    weights = rng.integers(1, 4, 50)
    once = Cascade(truth, a_right, b_right, group).measure(weights[None].astype(float))
    many = Cascade(*(np.repeat(v, weights) for v in (truth, a_right, b_right, group)))
    for one, two in zip(once, many.measure(np.ones((1, weights.sum()))), strict=True):
        assert one == pytest.approx(two)


def test_confidence_is_the_score_of_the_own_answer():
    data = pd.DataFrame(
        {
            "item": list("abcd"), "label": list("1010"), "score": [0.9, 0.4, 0.3, 0.6],
            "prediction": ["1", "1", "0", None],
        }
    )  # fmt: skip
    assert confidence_of(read_scores(data)).tolist() == pytest.approx([0.9, 0.4, 0.7, -1.0])
    assert confidence_of(read_scores(data.assign(confidence=[4, 3, 2, 1]))).tolist() == [4, 3, 2, 1]
    with pytest.raises(InputError, match="no confidence"):
        confidence_of(read_scores(data.assign(confidence=[4, None, 2, 1])))


# --- verdicts -------------------------------------------------------------------------------------------------


def test_confidence_that_knows_beats_random_routing():
    verdicts = [routed(400, seed=seed, draws=100).verdict for seed in range(30)]
    assert verdicts.count("better than random") >= 29
    found = routed(2_000)
    assert found.area["accuracy"].low > 0.02
    assert "Confidence routing beats random routing" in found.summary()
    assert "A cascade beats both models" in found.summary()


def test_confidence_that_knows_nothing_is_not_called_better():
    """95 % intervals: one side errs in one of forty; 120 samples, so more than nine would be one in a thousand."""
    verdicts = [routed(300, skill=0.0, seed=seed, draws=200).verdict for seed in range(120)]
    assert verdicts.count("better than random") <= 9
    assert verdicts.count("worse than random") <= 9
    assert verdicts.count("not told from random") >= 105


def test_the_best_share_is_not_better_than_it_is():
    """Without skill no share is better than another: the best one looks it, and is corrected."""
    found = [routed(200, skill=0.0, seed=seed, draws=100).best for seed in range(40)]
    apparent = np.mean([b.apparent for b in found])
    corrected = np.mean([b.corrected.estimate for b in found])
    assert apparent > 0.815
    assert corrected == pytest.approx(0.8, abs=0.012)
    wins = sum(b.over_b.low > 0 and b.over_a.low > 0 for b in found)
    assert wins <= 2


def test_wrong_confidence_is_called_worse():
    a, b = routed_pair(1_000, skill=1.0)
    found = route(a.assign(confidence=-np.maximum(a["score"], 1 - a["score"])), b, draws=200)
    assert found.verdict == "worse than random"


def test_models_that_are_right_on_the_same_items_have_nothing_to_route():
    a, _ = routed_pair(200, skill=1.0)
    found = route(a, a, draws=100)
    assert found.verdict == "same answers"
    assert found.summary().startswith("Nothing to route")
    assert (found.crosstab.only_a, found.crosstab.p_value, found.oracle.items) == (0, 1.0, 0)


def test_a_share_that_keeps_the_dear_ones_accuracy_is_found():
    a, b = routed_pair(4_000, skill=1.0, wrong=0.2)
    b["prediction"] = b["label"]  # b is always right
    found = route(a, b, margin=0.02, cost_a=1.0, cost_b=20.0, draws=200)
    assert (found.best.share, found.best.corrected.estimate) == (1.0, pytest.approx(1.0, abs=0.002))
    assert found.best.over_a.estimate == pytest.approx(1.0 - found.cascade[0].accuracy.estimate, abs=0.002)
    losses = {p.share: p.over_b.low for p in found.cascade}
    assert 0.0 < found.keeps < 1.0
    assert all(low >= -0.02 for share, low in losses.items() if share >= found.keeps)
    assert max(low for share, low in losses.items() if share < found.keeps) < 0.0
    assert f"{found.keeps:.0%} to b loses less than 0.02" in found.summary()
    assert f"at {1 / 20 + found.keeps:.0%} of its cost" in found.summary().replace("\n", " ")
    strict = route(a, b, margin=0.0, draws=100)
    assert strict.keeps is None or strict.keeps > found.keeps


def test_costs_by_hand():
    found = routed(200, more={"cost_a": 1.0, "cost_b": 10.0})
    half = found.cascade[10]
    assert (half.share, half.cost, half.cost_random) == (0.5, pytest.approx(6_000.0), pytest.approx(5_500.0))
    assert "cost/1,000" in found.summary()
    assert routed(200).cascade[0].cost is None


# --- the oracle -----------------------------------------------------------------------------------------------


def test_who_is_right_by_hand():
    data = pd.DataFrame({"item": range(6), "label": list("110010"), "score": [0.9, 0.8, 0.7, 0.4, 0.3, 0.2]})
    other = data.drop(columns="score").assign(prediction=list("100011"))
    found = route(data, other, draws=100)
    # a answers 111000: right on items 0, 1, 3, 5; b answers 100011: right on 0, 2, 3, 4
    table = found.crosstab
    assert (table.both_right, table.only_a, table.only_b, table.both_wrong, table.differ) == (2, 2, 2, 0, 4)
    assert found.oracle.oracle.estimate == 1.0
    assert found.oracle.gap.estimate == pytest.approx(2 / 6)
    assert table.p_value == 1.0


def test_mcnemar_by_hand():
    assert mcnemar(1, 9) == pytest.approx(2 * 11 / 1024)
    assert mcnemar(0, 0) == 1.0


def test_the_gap_of_coins_by_hand():
    # four items: min(X, 4 - X) is 0, 1, 2 with chances 2, 8, 6 of 16
    part = gap_of_coins(4, 10, level=0.9)
    assert part.estimate == pytest.approx((8 * 1 + 6 * 2) / 16 / 10)
    assert (part.low, part.high) == (0.0, pytest.approx(0.2))
    assert gap_of_coins(0, 10, level=0.95).estimate == 0.0


def test_the_gap_of_independent_errors_by_simulation():
    rng = np.random.default_rng(0)
    truth = np.arange(400) < 100
    a_right = np.where(truth, np.arange(400) % 10 < 6, np.arange(400) % 10 < 9)
    b_right = np.where(truth, np.arange(400) % 4 < 3, np.arange(400) % 5 < 4)
    part = gap_of_independent_errors(truth, a_right, b_right, level=0.95, draws=4_000, seed=0)
    gaps = []
    for _ in range(2_000):
        a, b = (rng.random(400) < np.where(truth, p, q) for p, q in ((0.6, 0.9), (0.75, 0.8)))
        gaps.append(min((a & ~b).sum(), (b & ~a).sum()) / 400)
    assert part.estimate == pytest.approx(np.mean(gaps), abs=0.001)
    assert (part.low, part.high) == pytest.approx(tuple(np.quantile(gaps, [0.025, 0.975])), abs=0.004)


def test_two_models_of_coins_have_the_gap_of_coins():
    """The false verdict: independent coins are seldom called more or less than coins."""
    inside = 0
    for seed in range(60):
        gap = routed(500, skill=0.0, seed=seed, draws=100).oracle
        inside += gap.independent.low <= gap.gap.estimate <= gap.independent.high
    assert inside >= 54
    assert "it is about what coins give" in routed(500, skill=0.0, seed=1).summary().replace("\n", " ")


def test_errors_that_are_shared_leave_less_than_coins():
    a, b = routed_pair(1_000, skill=0.0, wrong=0.3)
    shared = np.arange(1_000) % 10 < 8
    b["prediction"] = np.where(shared, a["prediction"], b["prediction"])
    found = route(a, b, draws=100)
    assert found.oracle.gap.estimate < found.oracle.independent.low
    assert "less than coins give" in found.summary().replace("\n", " ")


def test_label_noise_is_out_of_reach():
    """b is right wherever a is not, against the truth; labels flipped at rate .1 leave a gap that no router has."""
    rng = np.random.default_rng(0)
    y = rng.random(20_000) < 0.5
    a_wrong = rng.random(20_000) < 0.2
    b_wrong = rng.random(20_000) < 0.2
    labels = y ^ (rng.random(20_000) < 0.1)
    frames = [
        pd.DataFrame(
            {
                "item": [f"i{k}" for k in range(len(y))],
                "label": np.where(labels, "1", "0"),
                "score": np.where(y ^ wrong, 0.8, 0.2),
                "prediction": np.where(y ^ wrong, "1", "0"),
            }
        )
        for wrong in (a_wrong, b_wrong)
    ]
    found = route(*map(scores_of, frames), flip_rate=0.1, draws=100)
    # a router that knows the truth: right against the truth on all but .04; against the labels (1 - e)(1 - .1) + .1 e
    best = 0.96 * 0.9 + 0.04 * 0.1
    alone = 0.8 * 0.9 + 0.2 * 0.1
    assert found.oracle.reachable.estimate == pytest.approx(best - alone, abs=0.01)
    assert found.oracle.reachable.low <= best - alone <= found.oracle.reachable.high + 0.005
    assert found.oracle.gap.estimate > found.oracle.reachable.estimate
    assert "a router that knows the truth could gain" in found.summary().replace("\n", " ")


def test_a_gap_within_the_noise_is_told():
    a, b = routed_pair(400, skill=0.0)
    b["prediction"] = np.where(np.arange(400) < 40, b["prediction"], a["prediction"])
    found = route(a, b, flip_rate=0.49, draws=100)
    assert found.oracle.reachable.estimate <= 0.01
    if found.oracle.reachable.high <= 0:
        assert "the whole gap is within label noise" in found.summary().replace("\n", " ")


# --- ambiguous labels -------------------------------------------------------------------------------------------


def test_a_gap_on_ambiguous_labels_is_told_and_one_that_is_not_is_not():
    on = routed(1_500, ambiguous=0.1)
    assert on.ambiguity.p_value < 1e-6
    assert on.ambiguity.of_gap > 2.0 * on.ambiguity.share
    assert "The oracle's gap sits on ambiguous labels" in on.summary()
    alarms = []
    for seed in range(80):
        a, b = (scores_of(f) for f in routed_pair(400, skill=1.0, ambiguous=0.2, sit=False, seed=seed))
        rights = [s.predicted == s.truth for s in (a, b)]
        alarms.append(ambiguity(a.ambiguous, *rights, better="a").p_value < 0.05)
    assert sum(alarms) <= 10
    off = routed(400, ambiguous=0.2, sit=False, seed=int(np.argmin(alarms)))
    assert "is not shown to sit" in off.summary().replace("\n", " ")


def test_ambiguity_by_hand():
    flags = np.array([1, 1, 0, 0, 0, 0]) > 0
    a_right, b_right = np.array([0, 0, 1, 1, 1, 0]) > 0, np.array([1, 1, 1, 1, 1, 0]) > 0
    found = ambiguity(flags, a_right, b_right, better="a")
    assert (found.of_gap, found.of_differing, found.of_both_wrong) == (1.0, 1.0, 0.0)
    assert found.p_value == pytest.approx(stats.fisher_exact([[2, 0], [0, 4]])[1])
    assert found.odds_ratio is None  # infinite
    empty = ambiguity(flags, a_right, a_right, better="a")
    assert (empty.of_gap, empty.p_value) == (None, 1.0)


def test_conflicts_of_the_audit_mark_the_items(tmp_path):
    a, b = routed_pair(120, skill=1.0)
    labels = [("i3", "0"), ("i3", "1"), ("i4", "1"), ("i4", "0"), ("i5", "1"), ("i5", "1")]
    path = tmp_path / "conflicts.csv"
    audit_duplicates(
        pd.DataFrame(labels, columns=["key", "label"]), item=("key",), label="label", conflicts_file=path
    )
    plain = [f.drop(columns="ambiguous") for f in (a, b)]
    found = route(*plain, conflicts=path, draws=100)
    assert found.ambiguity.items == 2
    assert route(*plain, draws=100).ambiguity is None
    assert route(a, b, conflicts=path, conflicts_item="key", draws=100).ambiguity.items == 2


# --- degenerate ------------------------------------------------------------------------------------------------


def test_labels_of_one_class_have_no_balanced_accuracy():
    a, b = (f.assign(label="1") for f in routed_pair(100, skill=1.0))
    found = route(a, b, draws=100)
    assert found.cascade[3].balanced_accuracy.estimate is None
    assert found.cascade[3].accuracy.estimate is not None
    assert found.area["balanced_accuracy"].estimate is None
    json.dumps(found.to_dict(), allow_nan=False)
    other = route(a, b, metric="balanced_accuracy", draws=100)
    assert other.verdict == "not told from random"
    assert isinstance(other.summary(), str)


def test_equal_confidences_are_told_and_route_at_random():
    a, b = routed_pair(300, skill=1.0)
    a["score"] = np.where(a["prediction"] == "1", 0.9, 0.1)
    found = route(a, b, draws=100)
    assert found.area["accuracy"].estimate == pytest.approx(0.0, abs=1e-12)
    assert found.verdict == "not told from random"
    assert any("1 distinct confidences" in note or "2 distinct" in note for note in found.notes)


def test_missing_answers_go_to_b_first_and_count_as_wrong():
    a, b = routed_pair(400, skill=1.0)
    a.loc[:39, "prediction"] = None
    found = route(a, b, draws=100)
    assert (found.bands[0].low, found.bands[0].high, found.bands[0].items) == (-1.0, -1.0, 40)
    assert found.bands[0].a.estimate == 0.0
    assert any("40 rows of data frame have no answer" in note for note in found.notes)


def test_few_items_still_give_an_answer():
    a, b = routed_pair(5, skill=1.0, seed=3)
    found = route(a, b, draws=100)
    assert any("only 5 independent items" in note for note in found.notes)
    json.dumps(found.to_dict(), allow_nan=False)
    assert isinstance(found.summary(), str)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "f1"}, "accuracy or balanced_accuracy"),
        ({"cost_a": 1.0}, "both costs"),
        ({"cost_a": -1.0, "cost_b": 1.0}, "0 or more"),
        ({"margin": 1.0}, "margin"),
        ({"flip_rate": 0.5}, "flip rate"),
        ({"draws": 1}, "too few"),
        ({"level": 0.0}, "level"),
    ],
)
def test_options_out_of_range(options, message):
    a, b = routed_pair(50, skill=1.0)
    with pytest.raises(ArgumentError, match=message):
        route(a, b, **options)


def test_files_must_pair_and_a_must_have_scores():
    a, b = routed_pair(50, skill=1.0)
    with pytest.raises(InputError, match="lacks 1 items"):
        route(a, b[1:], draws=100)
    assert route(a, b[1:], common=True, draws=100).n == 49
    with pytest.raises(InputError, match="no row has a score"):
        route(a.drop(columns="score"), b, draws=100)
    assert route(a.assign(confidence=range(50)).drop(columns="score"), b, draws=100).n == 50


def test_clusters_widen_the_intervals():
    a, b = routed_pair(60, skill=1.0)
    many = [pd.concat([f] * 6, ignore_index=True) for f in (a, b)]
    for f in many:
        f["doc"], f["item"] = f["item"], [f"r{k}" for k in range(len(f))]
    alone, together = route(*many, draws=300), route(*many, cluster="doc", draws=300)
    assert together.clusters == 60
    width = [r.area["accuracy"].high - r.area["accuracy"].low for r in (alone, together)]
    assert width[1] > 1.8 * width[0]


def test_the_result_as_frame_text_and_page():
    a, b = routed_pair(400, skill=1.0, ambiguous=0.1)
    found = route(a, b, cost_a=1.0, cost_b=30.0, flip_rate=0.02, draws=100)
    table = found.to_frame()
    assert list(table.columns) == ["share", "confidence", "metric", "estimate", "low", "high", "cost"]
    assert len(table) == 4 * len(SHARES)
    assert max(map(len, found.summary().splitlines())) <= 110
    page = route_page(found)
    assert page.count("<svg ") >= 3
    assert "Ambiguous labels" in page
    assert found.to_dict() == route(a, b, cost_a=1.0, cost_b=30.0, flip_rate=0.02, draws=100).to_dict()
