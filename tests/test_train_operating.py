"""Curves, sweep and the best threshold: against known truths, and in every degenerate case."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats
from sklearn import metrics as oracle

from audit.errors import ArgumentError, InputError
from tests.made_scores import binormal, frame, scores_of, scores_pair
from train.metrics import DECISION_METRICS, binary_metrics
from train.operating import operating_point
from train.operating_page import operating_page
from train.operating_results import figure


def simple(n=300, *, seed=0, digits=None, **more):
    y, _, latent = binormal(n, seed=seed)
    out = frame(y, latent, **more)
    if digits is not None:
        out["score"] = out["score"].round(digits)
    return out


@pytest.mark.parametrize("digits", [None, 1])
def test_every_point_has_the_metrics_of_its_threshold(digits):
    data = simple(digits=digits)
    found = operating_point(data, draws=100)
    for point in found.points():
        predictions = np.where(data["score"] >= point.threshold, "1", "0")
        wanted = binary_metrics(list(data["label"]), list(predictions), positive="1")
        assert {m: point.metrics[m].estimate for m in DECISION_METRICS} == pytest.approx(
            {m: wanted[m] for m in DECISION_METRICS}
        )
        assert point.share == pytest.approx((predictions == "1").mean())
        for part in point.metrics.values():
            assert part.low <= part.estimate <= part.high
    assert found.auc.estimate == pytest.approx(oracle.roc_auc_score(data["label"] == "1", data["score"]))
    assert [p.share for p in found.sweep] == sorted(p.share for p in found.sweep)


def test_no_threshold_is_better_than_the_best():
    data = simple(digits=2)
    found = operating_point(data, draws=100)
    tries = [
        oracle.balanced_accuracy_score(data["label"] == "1", data["score"] >= t)
        for t in data["score"].unique()
    ]
    assert found.best.apparent == pytest.approx(max(tries))
    assert found.best.corrected.estimate == pytest.approx(found.best.apparent - found.best.optimism)


def test_predictions_of_the_file_are_judged_as_they_are():
    found = operating_point(simple(cut=1.5), draws=100)
    assert (found.own.name, found.own.threshold) == ("predictions", None)
    assert not any("no predictions" in note for note in found.notes)


def test_the_curves_run_through_the_points():
    found = operating_point(simple(2_000), draws=100)
    roc, pr = found.roc, found.precision_recall
    assert (roc.x[0], roc.x[-1], roc.y[-1]) == (0.0, 1.0, 1.0)
    assert all(a <= b + 1e-12 for a, b in pairwise(roc.y))
    assert all(low <= y <= high for low, y, high in zip(roc.low, roc.y, roc.high, strict=True) if y > 0)
    area = np.trapezoid(roc.y, roc.x)
    assert area == pytest.approx(found.auc.estimate, abs=0.005)
    assert pr.y[0] is None  # without a positive there is no precision
    assert pr.y[-1] == pytest.approx(found.positives / found.n, rel=0.15)


def test_choosing_on_the_same_rows_is_corrected():
    """Binormal scores whose threshold's balanced accuracy is known; means over 60 samples of 120 rows."""
    apparent, corrected, true, held = [], [], [], 0
    for seed in range(60):
        y, _, latent = binormal(120, seed=seed)
        best = operating_point(scores_of(frame(y, latent)), draws=100).best
        cut = np.inf if best.threshold is None else special.logit(best.threshold) + 0.75
        true.append((stats.norm.sf(cut - 1.5) + stats.norm.cdf(cut)) / 2.0)
        apparent.append(best.apparent)
        corrected.append(best.corrected.estimate)
        held += best.corrected.low <= true[-1] <= best.corrected.high
    assert np.mean(apparent) - np.mean(true) > 0.03
    assert abs(np.mean(corrected) - np.mean(true)) < 0.015  # 3 standard errors of the mean difference are .02
    assert held >= 53


def test_scores_that_know_nothing_are_not_made_to_look_good():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(30):
        y = rng.random(150) < 0.3
        found.append(operating_point(scores_of(frame(y, rng.standard_normal(150))), draws=100).best)
    assert np.mean([b.apparent for b in found]) > 0.54
    assert np.mean([b.corrected.estimate for b in found]) == pytest.approx(0.5, abs=0.02)


def test_intervals_of_the_auc_cover():
    true = stats.norm.cdf(1.5 / np.sqrt(2.0))
    held = 0
    for seed in range(100):
        y, _, latent = binormal(100, seed=seed)
        auc = operating_point(scores_of(frame(y, latent)), draws=100).auc
        held += auc.low <= true <= auc.high
    assert held >= 92


def test_a_threshold_chosen_on_other_rows_has_no_optimism():
    test, validation = simple(500, seed=1), simple(500, seed=2)
    validation["item"] = "v" + validation["item"]
    found = operating_point(test, choose_on=validation, draws=100)
    alone = operating_point(validation, draws=100)
    assert found.best.optimism == 0.0
    assert found.best.corrected.estimate == found.best.apparent
    lower = test["score"][test["score"] >= alone.best.threshold].min()
    assert found.best.threshold == pytest.approx(lower)
    assert "no optimism" in found.best_sentence().replace("\n", " ")
    overlapping = operating_point(test, choose_on=test, draws=100)
    assert any("500 items to choose on are judged too" in note for note in overlapping.notes)


@pytest.mark.parametrize("labels", ["0", "1"])
def test_labels_of_one_class_are_refused(labels):
    data = pd.DataFrame({"item": ["a", "b"], "label": [labels] * 2, "score": [0.2, 0.4]})
    with pytest.raises(InputError, match="all 2 labels are of one class"):
        operating_point(data, positive="1")


def test_equal_scores_have_no_threshold():
    data = simple(60)
    data["score"] = 0.7
    found = operating_point(data, draws=100)
    assert found.auc.estimate == 0.5
    assert found.best.apparent == 0.5
    assert found.sweep == ()
    assert any("all scores are equal" in note for note in found.notes)
    assert "none" not in found.summary()


def test_few_distinct_scores_are_told():
    found = operating_point(simple(digits=1), draws=100)
    assert any("distinct scores: few operating points" in note for note in found.notes)


def test_perfect_scores_keep_an_interval():
    data = pd.DataFrame(
        {"item": range(40), "label": ["1"] * 10 + ["0"] * 30, "score": np.linspace(1.0, 0.0, 40)}
    )
    found = operating_point(data, draws=100)
    assert found.auc.estimate == found.best.apparent == 1.0
    assert 0.5 < found.auc.low < 0.95
    assert found.best.point.metrics["recall"].low < 0.8


def test_two_rows_are_enough_to_answer():
    data = pd.DataFrame({"item": ["a", "b"], "label": ["1", "0"], "score": [0.9, 0.1]})
    found = operating_point(data, draws=100)
    assert found.best.apparent == 1.0
    json.dumps(found.to_dict(), allow_nan=False)
    assert "AUC 1.0000" in found.summary()
    assert any("only 2 independent rows" in note for note in found.notes)
    with pytest.raises((InputError, ArgumentError), match="--cluster"):
        operating_point(data.assign(doc="d"), cluster="doc", draws=100)


def test_clusters_widen_the_intervals_and_are_counted():
    rng = np.random.default_rng(0)
    y = np.repeat(rng.random(60) < 0.4, 8)
    latent = 1.5 * y + np.repeat(rng.standard_normal(60), 8) + 0.1 * rng.standard_normal(480)
    data = frame(y, latent).assign(doc=np.repeat(np.arange(60), 8))
    alone, together = operating_point(data, draws=300), operating_point(data, cluster="doc", draws=300)
    assert (alone.clusters, together.clusters) == (None, 60)
    assert together.auc.high - together.auc.low > 1.8 * (alone.auc.high - alone.auc.low)
    assert "480 rows in 60 clusters" in together.summary()


def test_draws_within_classes_keep_the_share_of_positives():
    data = simple(300, seed=3)
    free, kept = operating_point(data, draws=1_000), operating_point(data, stratified=True, draws=1_000)
    width = [p.own.metrics["precision"].high - p.own.metrics["precision"].low for p in (free, kept)]
    assert width[1] < width[0]
    mixed = data.assign(doc=np.arange(300) // 100)
    with pytest.raises(ArgumentError, match="clusters of one class"):
        operating_point(mixed, cluster="doc", stratified=True, draws=100)


def test_the_seed_decides_everything():
    first, again, other = (operating_point(simple(100), draws=100, seed=s).to_dict() for s in (1, 1, 2))
    assert first == again
    assert first["auc"]["low"] != other["auc"]["low"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 1.0}, "confidence level"),
        ({"draws": 10}, "too few"),
        ({"seed": -1}, "seed"),
        ({"positive": "2"}, "no label '2'"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(ArgumentError, match=message):
        operating_point(simple(50), **options)


def test_the_result_as_frame_text_and_page():
    a, b = scores_pair("gain", 400, seed=1)
    found = operating_point(a, against=b, draws=200)
    table = found.to_frame()
    assert list(table.columns) == ["point", "threshold", "share", "metric", "estimate", "low", "high"]
    assert len(table) == 2 + 7 * len(found.points()) + 7
    text = found.summary()
    assert max(map(len, text.splitlines())) <= 110
    assert "±" in text
    page = operating_page(found)
    assert page.count("<svg ") >= 3
    assert "Against the other run" in page
    assert found.against.message.split(":")[0] in page


def test_names_of_files_cannot_move_the_cursor(tmp_path):
    path = tmp_path / "a\x1b[2Jb.csv"
    simple(60).to_csv(path, index=False)
    found = operating_point(path, against=path, draws=100)
    assert "\x1b" not in found.summary()
    assert "\x1b" not in operating_page(found)


def test_figures_without_limits():
    from audit.results import Estimate

    assert figure(Estimate(estimate=None)) == "none"
    assert figure(Estimate(estimate=0.25)) == "0.2500"
