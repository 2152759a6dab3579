"""Calibration curve and ECE: by hand, and what chance alone gives."""

import numpy as np
import pytest

from audit.errors import ArgumentError
from relabel.calibration import calibrate, calibrate_verdicts
from relabel.records import Status, Verdict
from relabel.rehearse import RehearsalServer, Script
from tests.command import write_csv
from tests.relabel_kit import KEY, make_job, text_of, truth, truth_of


def test_by_hand():
    confidence = [0.6, 0.6, 0.6, 0.6, 0.6, 0.9, 0.9, 0.9, 0.9, 0.9]
    right = [1, 1, 0, 0, 0, 1, 1, 1, 1, 1]
    found = calibrate(confidence, right, kind="logprob", bins=2)
    assert [(part.items, part.accuracy) for part in found.bins] == [(5, 0.4), (5, 1.0)]
    # (5 |.4 - .6| + 5 |1 - .9|) / 10
    assert found.ece == pytest.approx(0.15)
    # (2 (.4)^2 + 3 (.6)^2 + 5 (.1)^2) / 10
    assert found.brier == pytest.approx(0.145)
    assert (found.accuracy, found.confidence) == (0.7, pytest.approx(0.75))


def test_groups_are_of_about_equal_size_and_never_part_equal_confidences():
    rng = np.random.default_rng(1)
    confidence = rng.random(1000)
    found = calibrate(confidence, rng.random(1000) < confidence, kind="logprob", bins=10)
    assert [part.items for part in found.bins] == [100] * 10
    few = np.repeat([0.6, 0.8, 1.0], [10, 20, 170])
    found = calibrate(few, np.ones(200), kind="agreement", bins=10)
    assert [(part.low, part.high, part.items) for part in found.bins] == [
        (0.6, 0.6, 10),
        (0.8, 0.8, 20),
        (1.0, 1.0, 170),
    ]


def test_chance_alone_gives_an_ece_and_a_calibrated_judge_does_not_exceed_it():
    rng = np.random.default_rng(4)
    values = []
    for _ in range(60):
        confidence = rng.uniform(0.5, 1.0, 150)
        values.append(calibrate(confidence, rng.random(150) < confidence, kind="logprob", draws=200))
    assert np.mean([v.ece for v in values]) == pytest.approx(
        np.mean([v.ece_by_chance for v in values]), rel=0.12
    )
    assert np.mean([v.p_value < 0.05 for v in values]) <= 0.15
    assert np.mean([v.ece_by_chance for v in values]) > 0.05  # so an ECE of .05 on 150 labels means nothing


@pytest.mark.parametrize(
    ("shift", "words"), [(-0.2, "too sure of itself"), (0.2, "less sure than it could be")]
)
def test_a_confidence_that_is_off_is_found(shift, words):
    rng = np.random.default_rng(5)
    confidence = rng.uniform(0.5, 0.8, 500)
    found = calibrate(confidence, rng.random(500) < confidence + shift, kind="verbalised")
    assert found.p_value < 0.01
    assert found.ece == pytest.approx(0.2, abs=0.06)
    assert words in found.summary()
    assert "verbalised" in found.summary()


def test_the_order_of_the_items_does_not_matter_and_the_seed_fixes_the_rest():
    rng = np.random.default_rng(6)
    confidence, right = rng.random(300).round(2), rng.random(300) < 0.7
    order = rng.permutation(300)
    assert calibrate(confidence, right, kind="logprob") == calibrate(
        confidence[order], right[order], kind="logprob"
    )


def test_one_item_and_the_ends_of_the_range():
    found = calibrate([1.0], [True], kind="logprob")
    assert (found.ece, found.ece_by_chance, found.p_value, len(found.bins)) == (0.0, 0.0, 1.0, 1)
    found = calibrate([0.0, 1.0, 1.0], [False, True, False], kind="logprob")
    assert found.ece == pytest.approx(1 / 3)


def test_kinds_are_kept_apart():
    def said(label, confidence, kind):
        return Verdict(status=Status.OK, label=label, confidence=confidence, confidence_kind=kind)

    pairs = [
        (said("a", 0.9, "logprob"), "a"),
        (said("a", 0.8, "verbalised"), "b"),
        (said("b", 0.7, "logprob"), "b"),
        (said("b", None, None), "b"),
        (Verdict(status=Status.REFUSED, reason="no"), "a"),
    ]
    found = calibrate_verdicts(pairs)
    assert [(part.kind, part.items, part.accuracy) for part in found] == [
        ("logprob", 2, 1.0),
        ("verbalised", 1, 0.0),
    ]
    assert calibrate_verdicts([]) == ()


@pytest.mark.parametrize(
    ("confidence", "right", "more"),
    [
        ([], [], {}),
        ([0.5], [True, False], {}),
        ([[0.5]], [[True]], {}),
        ([1.2], [True], {}),
        ([float("nan")], [True], {}),
        ([0.5], [True], {"bins": 0}),
        ([0.5], [True], {"draws": 0}),
        ([0.5], [True], {"level": 0.0}),
    ],
)
def test_bad_arguments_are_refused(confidence, right, more):
    with pytest.raises(ArgumentError):
        calibrate(confidence, right, kind="logprob", **more)


def test_a_run_with_gold_tells_the_calibration_of_its_judge(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    write_csv(tmp_path / "gold.csv", ["text", "gold"], [(text_of(n), truth_of(n)) for n in range(200)])
    told = {}
    for name, informative in (("informative", True), ("flat", False)):
        script = Script(truth=truth(200), error=0.2, informative=informative, seed=1)
        with RehearsalServer(script) as server:
            folder = tmp_path / name
            folder.mkdir()
            job = make_job(folder, server.base_url, items=20, gold=tmp_path / "gold.csv")
            result = job.run()
        (told[name],) = result.gold["calibration"]
        assert f"ECE {told[name]['ece']:.3f}" in result.summary()
    # the scripted judge is right with the probability that it states: item by item, or on the whole
    assert {one["kind"] for one in told.values()} == {"logprob"}
    assert {one["items"] for one in told.values()} == {200}
    assert min(one["p_value"] for one in told.values()) > 0.01
    assert len(told["informative"]["bins"]) == 10
    assert len(told["flat"]["bins"]) == 1  # one confidence for all
    accuracy = [part["accuracy"] for part in told["informative"]["bins"]]
    assert accuracy[0] < 0.75 < 0.95 < accuracy[-1]
