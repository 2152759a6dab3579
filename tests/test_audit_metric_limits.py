"""Limits of other metrics: the design's values, derivations held to simulation, and scores placed against them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from audit.errors import ArgumentError
from audit.fliprate import disagreement_of
from audit.metric_limits import METRICS, bound_metrics, correct_score, least_entropy, truth_share
from audit.placing_metrics import place_metric
from tests.command import run, write_csv


def limits(d: float, share: float, **more: Any) -> dict[str, Any]:
    return {limit.metric: limit for limit in bound_metrics(d, share=share, **more)}


@pytest.mark.parametrize(
    ("pi", "f1", "balanced", "mcc"),
    [
        (0.5, 0.950, 0.950, 0.900),
        (0.2, 0.884, 0.907, 0.855),
        (0.05, 0.655, 0.749, 0.669),
        (0.01, 0.275, 0.580, 0.380),
    ],
)
def test_the_truth_at_five_per_cent_noise(pi: float, f1: float, balanced: float, mcc: float) -> None:
    """DESIGN's values at eps = .05; accuracy .95 throughout. By hand, pi = .2: m = .2(.95) + .8(.05) = .23 and
    F1 = 2(.2)(.95)/(.2 + .23) = .38/.43 = .8837."""
    share = pi * 0.95 + (1 - pi) * 0.05
    found = limits(disagreement_of(0.05, classes=2), share)
    assert found["f1"].truth_knower == pytest.approx(f1, abs=5.1e-4)
    assert found["balanced-accuracy"].truth_knower == pytest.approx(balanced, abs=5.1e-4)
    assert found["mcc"].truth_knower == pytest.approx(mcc, abs=5.1e-4)
    assert found["accuracy"].truth_knower == pytest.approx(0.95)
    assert found["brier"].bound == pytest.approx(0.0475)  # d/2 = .05(.95)
    # MCC <= sqrt(kappa) = sqrt(1 - d/(2m(1 - m))); with equal flips the truth reaches it
    assert found["mcc"].bound == pytest.approx(math.sqrt(1 - 0.095 / (2 * share * (1 - share))))
    assert found["mcc"].bound == pytest.approx(found["mcc"].truth_knower)
    # log-loss in [2d ln 2, H(eps)]
    assert found["log-loss"].bound == pytest.approx(2 * 0.095 * math.log(2))
    entropy = -0.05 * math.log(0.05) - 0.95 * math.log(0.95)
    assert found["log-loss"].truth_knower == pytest.approx(entropy)
    assert truth_share(share, rate=0.05) == pytest.approx(pi)


@pytest.mark.parametrize("pi", [0.5, 0.2, 0.05])
def test_the_truth_scores_that_in_a_simulation(pi: float) -> None:
    rng = np.random.default_rng(round(100 * pi))
    truth = rng.random(400_000) < pi
    labels = truth ^ (rng.random(400_000) < 0.05)
    found = limits(0.095, pi * 0.95 + (1 - pi) * 0.05)
    measured = {
        "accuracy": sk.accuracy_score(labels, truth),
        "balanced-accuracy": sk.balanced_accuracy_score(labels, truth),
        "f1": sk.f1_score(labels, truth),
        "precision": sk.precision_score(labels, truth),
        "recall": sk.recall_score(labels, truth),
        "mcc": sk.matthews_corrcoef(labels, truth),
        "kappa": sk.cohen_kappa_score(labels, truth),
        "auc": sk.roc_auc_score(labels, truth),
        "brier": sk.brier_score_loss(labels, np.where(truth, 0.95, 0.05)),
        "log-loss": sk.log_loss(labels, np.where(truth, 0.95, 0.05)),
    }
    assert set(measured) == set(METRICS)
    for name, value in measured.items():
        assert found[name].truth_knower == pytest.approx(value, abs=0.01), name


@given(
    st.lists(st.tuples(st.floats(0.01, 0.99), st.floats(0.01, 1.0)), min_size=1, max_size=6),
)
def test_no_predictor_beats_a_hard_bound(mixture: list[tuple[float, float]]) -> None:
    """The best predictor of each metric, on items with any chances, against the bound from m and d alone."""
    p = np.array(sorted((p for p, _ in mixture), reverse=True))
    weights = dict(mixture)
    w = np.array([weights[x] for x in p])
    w /= w.sum()
    m, d = float(w @ p), float(2 * w @ (p * (1 - p)))
    found = limits(min(d, 0.5), m)
    t, both = (
        np.cumsum(w),
        np.cumsum(w * p),
    )  # answering "positive" to the surest items: optimal for each of these
    assert np.max(2 * both / (t + m)) <= found["f1"].bound + 2e-6
    assert np.max(0.5 * (both / m + 1 - (t - both) / (1 - m))) <= found["balanced-accuracy"].bound + 1e-9
    assert np.max(2 * (both - t * m) / (m * (1 - t) + t * (1 - m))) <= found["kappa"].bound + 1e-9
    some = t < 1 - 1e-9
    if some.any():
        t, both = t[some], both[some]
        assert np.max((both - t * m) / np.sqrt(t * (1 - t) * m * (1 - m))) <= found["mcc"].bound + 1e-9
    auc = 0.5 + float(w @ np.abs(p[:, None] - p) @ w) / (4 * m * (1 - m))
    assert auc <= found["auc"].bound + 1e-9
    entropy = -float(w @ (p * np.log(p) + (1 - p) * np.log(1 - p)))
    assert found["log-loss"].bound <= entropy + 1e-9
    assert found["log-loss"].truth_knower >= entropy - 1e-9
    assert found["brier"].bound == pytest.approx(min(d, 0.5) / 2)


def test_bounds_are_reached() -> None:
    """Chances of the extreme kinds: the bound is the score itself."""
    # AUC: an atom at 0, one at 1, even between them: c = 3d; here c = .3, m = .5, d = .1
    d, m = 0.1, 0.5
    grid = (np.arange(3000) + 0.5) / 3000
    p = np.concatenate([[0.0], grid, [1.0]])
    w = np.concatenate([[0.35], np.full(3000, 0.3 / 3000), [0.35]])
    assert 2 * w @ (p * (1 - p)) == pytest.approx(d, abs=1e-6)
    auc = 0.5 + w @ np.abs(p[:, None] - p) @ w / (4 * m * (1 - m))
    assert auc == pytest.approx(limits(d, m)["auc"].bound, abs=1e-6)
    assert limits(d, m)["auc"].bound == pytest.approx(1 - 3 * d * d / (8 * m * (1 - m)))
    # balanced accuracy of a rare class: chances 0 and b
    b, share = 0.6, 0.1
    m, d = b * share, 2 * share * b * (1 - b)
    best = 0.5 + m * (1 - share) * 2 / (4 * m * (1 - m))
    assert limits(d, m)["balanced-accuracy"].bound == pytest.approx(best)


@given(st.lists(st.floats(0.001, 1.0), min_size=2, max_size=7))
def test_entropy_is_at_least_the_broken_line(weights: list[float]) -> None:
    p = np.array(weights) / sum(weights)
    assert least_entropy(float(1 - np.sum(p**2))) <= -float(np.sum(p * np.log(p))) + 1e-9


def test_entropy_by_hand() -> None:
    assert least_entropy(0.0) == pytest.approx(0.0)
    assert least_entropy(0.3) == pytest.approx(0.6 * math.log(2))  # 2d ln 2
    for k in (2, 3, 5):
        assert least_entropy(1 - 1 / k) == pytest.approx(math.log(k))


def test_more_classes_and_sampling_error() -> None:
    found = {limit.metric: limit for limit in bound_metrics(0.2, classes=4, loosest=0.1)}
    assert set(found) == {"accuracy", "brier", "log-loss"}
    assert found["brier"].bound == 0.2
    assert found["brier"].with_error == 0.1
    assert found["accuracy"].with_error > found["accuracy"].bound
    binary = limits(0.2, 0.3, loosest=0.1)
    assert all(
        limit.with_error >= limit.bound if limit.direction == "upper" else limit.with_error <= limit.bound
        for limit in binary.values()
    )


@pytest.mark.parametrize(
    ("d", "options"),
    [(0.2, {}), (0.2, {"share": 0.0}), (0.2, {"share": 1.0}), (0.6, {"share": 0.5}), (0.7, {"classes": 3})],
)
def test_limits_need_a_share_and_a_flip_rate(d: float, options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        bound_metrics(d, **options)


@pytest.mark.parametrize("metric", [m for m in METRICS if m not in ("brier", "log-loss")])
def test_a_score_is_corrected_to_that_on_clean_labels(metric: str) -> None:
    """A model with errors of its own, scored against noisy labels and against the truth."""
    rng = np.random.default_rng(11)
    truth = rng.random(1_000_000) < 0.3
    labels = truth ^ (rng.random(truth.size) < 0.08)
    model = np.where(truth, rng.random(truth.size) < 0.85, rng.random(truth.size) < 0.1)
    score = {
        "accuracy": sk.accuracy_score, "balanced-accuracy": sk.balanced_accuracy_score, "f1": sk.f1_score,
        "precision": sk.precision_score, "recall": sk.recall_score, "mcc": sk.matthews_corrcoef,
        "kappa": sk.cohen_kappa_score, "auc": sk.roc_auc_score,
    }[metric]  # fmt: skip
    corrected = correct_score(
        metric,
        float(score(labels, model)),
        rate=0.08,
        share=float(labels.mean()),
        predicted=float(model.mean()),
    )
    assert corrected == pytest.approx(float(score(truth, model)), abs=0.01)


def test_what_cannot_be_corrected() -> None:
    assert correct_score("f1", 0.8, rate=0.05, share=0.3) is None
    assert correct_score("brier", 0.1, rate=0.05, share=0.3) is None
    assert (
        correct_score("mcc", 0.5, rate=0.2, share=0.1) is None
    )  # equal flips at .2 give at least .2 positives
    with pytest.raises(ArgumentError):
        truth_share(0.3, rate=0.5)


@pytest.mark.parametrize(
    ("metric", "score", "position"),
    [
        ("f1", 0.8, "possible"), ("f1", 0.886, "beyond the truth"), ("f1", 0.9, "beyond the bound"),
        ("f1", 0.99, "impossible"), ("brier", 0.06, "possible"), ("brier", 0.045, "beyond the bound"),
        ("brier", 0.01, "impossible"), ("log-loss", 0.15, "beyond the truth"), ("mcc", -0.5, "possible"),
    ],
)  # fmt: skip
def test_scores_are_placed(metric: str, score: float, position: str) -> None:
    placed = place_metric(metric, score, disagreement=0.095, pairs=500, share=0.23)
    assert placed.position == position
    assert placed.limit.kind[:-1].lower() in placed.summary().lower()


def test_the_condition_is_printed() -> None:
    placed = place_metric("f1", 0.8, disagreement=0.095, pairs=500, share=0.23, predicted=0.2)
    # by hand: (2(.8)(.43)/2... ) E[ya] = .8(.2 + .23)/2 = .172; minus eps t = .01, over .9: .18; F1 = .36/.4 = .9
    assert placed.corrected == pytest.approx(0.9)
    assert "if, and only if, the model's errors are independent of the label noise" in placed.summary()
    without = place_metric("f1", 0.8, disagreement=0.095, pairs=500, share=0.23)
    assert without.corrected is None
    assert "--predicted-share" in without.summary()
    above = place_metric("auc", 0.95, disagreement=0.095, pairs=500, share=0.23)
    assert "does not hold" in above.summary()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metric": "rmse"}, "unknown"),
        ({"score": None}, "--score"),
        ({"score": 80.0}, "lies in"),
        ({"share": None}, "--share"),
        ({"pairs": None}, "--pairs"),
        ({"predicted": 1.5}, "predicted share"),
        ({"classes": 3}, "two classes only"),
        ({"positive": "yes"}, "not both"),
        ({"disagreement": 0.7}, "no limits"),
        ({"disagreement": None}, "give either"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], words: str) -> None:
    given_: dict[str, Any] = {
        "metric": "f1",
        "score": 0.8,
        "disagreement": 0.095,
        "pairs": 500,
        "share": 0.23,
    }
    given_ |= options
    with pytest.raises(ArgumentError, match=words):
        place_metric(given_.pop("metric"), given_.pop("score"), **given_)


def test_the_command_takes_a_file_or_a_saved_audit(tmp_path: Any) -> None:
    rows = [(f"t{i}", "yes" if i % 4 == 0 else "no") for i in range(200)] * 2
    rows += [(f"u{i}", label) for i in range(20) for label in ("yes", "no")]
    path = write_csv(tmp_path / "data.csv", ["text", "label"], rows)
    saved = tmp_path / "audit.json"
    assert (
        run("dupes", path, "--item", "text", "--label", "label", "--format", "json", "--out", saved).code == 0
    )
    words = ("--metric", "f1", "--score", "0.8", "--format", "json")
    fresh = run("ceiling", path, "--item", "text", "--label", "label", *words).json
    assert run("ceiling", saved, *words).json == fresh
    assert (fresh["positive"], fresh["position"]) == ("yes", "possible")
    assert fresh["share"] == pytest.approx((50 + 10) / 220)
    other = run("ceiling", saved, *words, "--positive", "no").json
    assert other["share"] == pytest.approx(1 - fresh["share"])
    wrong = run("ceiling", saved, *words, "--positive", "maybe")
    assert wrong.code == 2
    assert "there is no class 'maybe'" in wrong.err
    plain = run("ceiling", saved, "--metric", "mcc", "--score", "0.99")
    assert "above what any predictor can score" in plain.out
    assert "Hard upper bound" in plain.out
