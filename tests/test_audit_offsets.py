"""Offsets of annotators in numbers and grades, and the bound on a model's quadratic-weighted κ."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from audit.alarms_offsets import offset_alarm, standing_out
from audit.errors import ColumnError
from audit.intervals import holm
from audit.label_grades import audit_ordinal, kappa_ceiling
from audit.label_numbers import audit_numeric
from audit.offsets import AnnotatorOffsets, annotator_offsets
from audit.render import render
from audit.results import Estimate
from tests.command import run
from tests.test_audit_label_kinds import ROOT, table

FORMS: tuple[Any, ...] = ("text", "markdown", "html")


def flat(rows: list[tuple[float, ...]]) -> AnnotatorOffsets:
    values = np.array(rows, np.float64)
    items, who = np.indices(values.shape)
    return annotator_offsets(items.ravel(), [f"judge {k + 1}" for k in who.ravel()], values.ravel())


def test_the_table_of_shrout_and_fleiss() -> None:
    """Their tables 2 to 4, six targets and four judges: BMS 11.24, JMS 32.49, EMS 1.02; ICC(2,1) .29, ICC(3,1) .71."""
    found = flat([(9, 2, 5, 8), (6, 1, 3, 2), (8, 4, 6, 8), (7, 1, 2, 6), (10, 5, 6, 9), (6, 2, 4, 7)])
    bms, jms, ems = 11.2417, 32.4861, 1.0194
    assert found.noise_sd.estimate == pytest.approx(math.sqrt(ems), abs=1e-4)
    assert found.icc_agreement == pytest.approx((bms - ems) / (bms + 3 * ems + 4 * (jms - ems) / 6), abs=1e-4)
    assert found.icc_consistency == pytest.approx((bms - ems) / (bms + 3 * ems), abs=1e-4)
    assert round(found.icc_agreement or 0, 2) == 0.29
    assert round(found.icc_consistency or 0, 2) == 0.71
    annotators = (jms - ems) / 6  # the variance component of judges
    assert found.share == pytest.approx(annotators / (annotators + ems), abs=1e-4)
    # In a complete table an offset is the difference of means: judge 1 has 46/6, the others 15/6, 26/6 and 40/6.
    by_name = {part.value: part.estimate for part in found.annotators}
    assert by_name["judge 1"] == pytest.approx(46 / 6 - (15 + 26 + 40) / 18)
    assert sum(part.estimate or 0 for part in found.annotators) == pytest.approx(0.0)
    assert [part.value for part in found.annotators] == ["judge 2", "judge 1", "judge 4", "judge 3"]


def test_offsets_of_a_ragged_table_are_those_of_dummy_variables() -> None:
    """The same least squares by a design matrix with a column for each item and annotator, and NumPy's solver."""
    rng = np.random.default_rng(3)
    rows = [
        (i, j, 5.0 * i + 2.0 * j + rng.normal())
        for i in range(25)
        for j in rng.choice(5, int(rng.integers(2, 5)), replace=True)
    ]
    items, who, values = (np.array(column) for column in zip(*rows, strict=True))
    found = annotator_offsets(items, [f"a{j}" for j in who], values)
    design = np.hstack([np.eye(25)[items], np.eye(5)[who]])
    effects, _, rank, _ = np.linalg.lstsq(design, values, rcond=None)
    a = effects[25:]
    residuals = values - design @ effects
    for part in found.annotators:
        k = int(part.value[1])
        assert part.estimate == pytest.approx(a[k] - np.delete(a, k).mean())
        assert part.labels == np.sum(who == k)
        assert part.items == len(set(items[who == k]))
    # σ_e: the mean sample variance of the items without the offsets, over what of σ² the fit leaves in it
    left = pd.Series(values - a[who]).groupby(items).var().mean()
    assert rank == 25 + 5 - 1
    maker = np.eye(len(values)) - design @ np.linalg.pinv(design)
    kept = np.mean([np.diag(maker)[items == i].sum() / (np.sum(items == i) - 1) for i in range(25)])
    assert found.noise_sd.estimate == pytest.approx(math.sqrt(left / kept))
    assert residuals @ residuals > 0


@pytest.mark.parametrize("noisy", [1.0, 3.0])
def test_limits_of_offsets_hold_them_as_often_as_they_say(noisy: float) -> None:
    rng = np.random.default_rng(7)
    hits, told, false_alarms = 0, 0, 0
    for _ in range(200):
        truth = rng.normal(0, 1, 4)
        items = np.repeat(np.arange(80), 2)
        who = np.concatenate([rng.choice(4, 2, replace=False) for _ in range(80)])
        noise = rng.normal(0, 1, 160) * np.where(who == 0, noisy, 1.0)
        base = rng.normal(0, 3, 80)[items] + noise
        found = annotator_offsets(items, [str(k) for k in who], base + truth[who])
        for part in found.annotators:
            k = int(part.value)
            assert part.low is not None and part.high is not None  # noqa: PT018
            hits += part.low <= truth[k] - np.delete(truth, k).mean() <= part.high
            told += 1
        none = annotator_offsets(items, [str(k) for k in who], base)
        false_alarms += bool(standing_out(none))
    assert 0.93 <= hits / told <= 0.985
    assert false_alarms <= 16  # .05 of 200, and three standard errors


def rated(path: Path, *, offset: float, low: float = -99.0, high: float = 999.0, whole: bool = False) -> Path:
    rng = np.random.default_rng(6)
    rows = []
    for k in range(300):
        truth = rng.uniform(1, 5) if whole else rng.uniform(0, 100)
        for name in rng.choice(["ann", "bob", "cho", "dee"], 2, replace=False):
            value = truth + rng.normal(0, 0.5 if whole else 8) + offset * (name == "bob")
            rows.append((f"i{k}", int(np.clip(round(value), low, high)) if whole else round(value, 2), name))
    return table(path, rows, "text,label,rater")


def test_a_rater_who_is_off_is_told(tmp_path: Path) -> None:
    path = str(rated(tmp_path / "s.csv", offset=15))
    found = audit_numeric(path, item=["text"], label="label", annotator="rater")
    plain = audit_numeric(path, item=["text"], label="label")
    assert plain.annotators is None
    assert any("--annotator rater" in note for note in plain.data.notes)
    assert found.noise_sd == plain.noise_sd
    (alarm,) = [alarm for alarm in found.alarms if alarm.code == "annotator_offset"]
    assert list(alarm.figures["offsets"]) == ["bob"]  # the others are not off: they are compared without bob
    assert alarm.figures["offsets"]["bob"] == pytest.approx(15, abs=3)
    assert "bob labels" in alarm.message
    assert "higher than the other 3 annotators" in alarm.message
    offsets = found.annotators
    assert offsets is not None
    bob, noise = offsets.annotators[0], offsets.noise_sd
    assert bob.value == "bob"
    assert bob.low is not None and bob.high is not None  # noqa: PT018
    assert noise.low is not None and noise.high is not None  # noqa: PT018
    assert bob.low < 15 < bob.high
    assert noise.low < 8 < noise.high
    assert (offsets.total_sd.estimate or 0) == pytest.approx(found.noise_sd.estimate)
    assert (offsets.icc_consistency or 0) > (found.r2_ceiling.estimate or 1)
    assert "annotator offset" in found.verdict.next_steps[0]
    assert json.loads(json.dumps(found.to_dict()))["annotators"]["annotators"][0]["value"] == "bob"
    for form in FORMS:
        assert "Annotators against one another" in render(found, form)
    fair = audit_numeric(
        str(rated(tmp_path / "f.csv", offset=0)), item=["text"], label="label", annotator="rater"
    )
    assert "annotator_offset" not in [alarm.code for alarm in fair.alarms]


def test_a_rater_who_gives_a_star_too_many(tmp_path: Path) -> None:
    path = str(rated(tmp_path / "s.csv", offset=1, whole=True, low=1, high=5))
    found = audit_ordinal(path, item=["text"], label="label", annotator="rater", draws=200)
    (alarm,) = [alarm for alarm in found.audit.alarms if alarm.code == "annotator_offset"]
    assert list(alarm.figures["offsets"]) == ["bob"]
    assert 0.5 < alarm.figures["offsets"]["bob"] < 1.1
    assert "steps higher" in alarm.message
    assert found.to_dict()["ordinal"]["annotators"]["annotators"][0]["value"] == "bob"
    assert "Annotators against one another" in render(found, "text")
    assert audit_ordinal(path, item=["text"], label="label", draws=200).annotators is None


def test_what_cannot_be_compared() -> None:
    one = annotator_offsets(np.array([0, 0, 1, 1]), ["a", "a", "b", "b"], np.array([1.0, 2.0, 3.0, 5.0]))
    assert one.reason == "no item has labels of two annotators"
    assert annotator_offsets(np.array([0, 1]), ["a", "b"], np.array([1.0, 2.0])).annotators == ()
    # two groups that share nothing: the larger is told, the other counted
    items = np.repeat(np.arange(9), 2)
    who = ["a", "b"] * 6 + ["c", "d"] * 3
    split = annotator_offsets(items, who, np.arange(18.0))
    assert {part.value for part in split.annotators} == {"a", "b"}
    assert split.apart == 2
    exact = annotator_offsets(np.array([0, 0, 1, 1]), ["a", "b"] * 2, np.array([1.0, 2.0, 3.0, 4.0]))
    assert [part.estimate for part in exact.annotators] == [pytest.approx(-1.0), pytest.approx(1.0)]
    assert [part.p_value for part in exact.annotators] == [0.5, 0.5]  # no noise: two items with one sign
    many = annotator_offsets(
        np.repeat(np.arange(2_001), 2), [f"a{k % 2_001}" for k in range(4_002)], np.arange(4_002.0)
    )
    assert "offsets are told of up to 2,000" in (many.reason or "")


def test_large_values_keep_their_digits_and_equal_labels_have_no_noise() -> None:
    rng = np.random.default_rng(2)
    items, who = np.repeat(np.arange(60), 2), np.tile(["a", "b"], 60)
    near = rng.integers(0, 9, 120).astype(float)
    far = annotator_offsets(items, who.tolist(), near + 1e9)
    close = annotator_offsets(items, who.tolist(), near)
    assert [part.estimate for part in far.annotators] == pytest.approx(
        [part.estimate for part in close.annotators]
    )
    assert far.noise_sd.estimate == pytest.approx(close.noise_sd.estimate)
    same = annotator_offsets(items, who.tolist(), np.repeat(rng.normal(1e9, 0.1, 60), 2))
    assert same.noise_sd.estimate == 0.0
    assert standing_out(same) == []
    assert offset_alarm(same) is None


def test_holm_is_that_of_a_plain_loop() -> None:
    p = [0.01, 0.04, 0.03, 0.005]
    assert holm(p) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert list(holm([0.9, 0.8])) == [1.0, 1.0]


def test_annotators_of_numbers_from_the_command_line(tmp_path: Path) -> None:
    path = rated(tmp_path / "s.csv", offset=15)
    words = ("dupes", path, "--item", "text", "--label", "label", "--kind", "numeric")
    done = run(*words, "--annotator", "rater", "--format", "json")
    assert done.code == 0
    told = done.json
    assert told["schema_version"]
    assert told["data"]["rows"] == told["rows"] == 600
    assert told["data"]["classes"] == []
    assert told["verdict"]["headline"].startswith("A label is off by")
    shown = run(*words, "--annotator", "rater")
    assert " ".join(shown.out.split()).startswith(told["verdict"]["headline"])
    assert "Noise by value" in shown.out
    assert "WARNING annotator_offset" in shown.out
    assert run(*words, "--by", "rater").code == 2
    with pytest.raises(ColumnError, match="no column 'who'"):
        audit_numeric(str(path), item=["text"], label="label", annotator="who")


# --- the bound on a model's weighted kappa --------------------------------------------------------------------


class World:
    """Kinds of items with shares ``weights``, each with chances of the grades 0, 1 ...; all values are exact."""

    def __init__(self, chances: Any, weights: Any) -> None:
        ranks = np.arange(float(chances.shape[1]))
        self.weights, self.p, self.square = weights, chances @ ranks, chances @ ranks**2
        self.mean = float(weights @ self.p)
        self.variance = float(weights @ self.square) - self.mean**2
        self.kappa_of_labels = 1 - float(weights @ (self.square - self.p**2)) / self.variance

    def kappa(self, a: Any) -> float:
        """Quadratic-weighted κ of predictions (one a kind of item) and fresh labels."""
        loss = self.weights @ (a**2 - 2 * a * self.p + self.square)
        mean = self.weights @ a
        spread = self.weights @ a**2 - mean**2 + self.variance + (mean - self.mean) ** 2
        return float(1 - loss / spread) if spread > 0 else 0.0


def test_no_predictor_has_a_weighted_kappa_above_the_bound() -> None:
    """In worlds of every kind, the best of many predictors: means rounded, stretched, shifted, medians, modes, the
    truth, and what a search over maps from the items' means to grades finds. None passes √κ of two labels.
    """
    rng = np.random.default_rng(1)
    near = []
    for _ in range(60):
        grades, kinds = int(rng.integers(3, 8)), int(rng.integers(2, 12))
        chances = rng.dirichlet(np.full(grades, rng.choice([0.15, 0.5, 2.0])), kinds)
        world = World(chances, rng.dirichlet(np.ones(kinds)))
        bound = kappa_ceiling(Estimate(estimate=world.kappa_of_labels)).estimate
        assert bound is not None
        stretched = [
            world.mean + s * (world.p - world.mean) + t for s in np.linspace(0, 6, 25) for t in (-0.4, 0, 0.4)
        ]
        tried = [np.clip(np.round(a), 0, grades - 1) for a in stretched]
        tried += [
            chances.argmax(axis=1).astype(float),
            (chances.cumsum(axis=1) < 0.5).sum(axis=1).astype(float),
        ]
        best = max(tried, key=world.kappa)
        for _ in range(3):  # climb: each kind of item gets the grade that serves best
            for k in range(kinds):
                ways = [np.where(np.arange(kinds) == k, g, best) for g in range(grades)]
                best = max(ways, key=world.kappa)
        assert world.kappa(best) <= bound + 1e-12
        # not rounded, and with the labels' own spread, the bound is attained
        spread = float(world.weights @ (world.p - world.mean) ** 2)
        exact = world.mean + (world.p - world.mean) * math.sqrt(world.variance / spread)
        assert world.kappa(exact) == pytest.approx(bound)
        near.append(world.kappa(best) / bound)
    assert np.median(near) > 0.9  # it is no loose bound


def test_kappa_of_the_search_is_that_of_a_library() -> None:
    rng = np.random.default_rng(4)
    a, y = rng.integers(0, 5, 3_000), rng.integers(0, 5, 3_000)
    y = np.where(rng.random(3_000) < 0.5, a, y)
    spread = a.var() + y.var() + (a.mean() - y.mean()) ** 2
    assert 1 - np.mean((a - y) ** 2) / spread == pytest.approx(cohen_kappa_score(a, y, weights="quadratic"))


def test_the_bound_stands_at_the_head(tmp_path: Path) -> None:
    path = str(rated(tmp_path / "s.csv", offset=0, whole=True, low=1, high=5))
    found = audit_ordinal(path, item=["text"], label="label", draws=200)
    kappa, top = found.weighted_kappa, found.kappa_ceiling
    assert top.estimate == pytest.approx(math.sqrt(kappa.estimate or 0))
    assert top.low == pytest.approx(math.sqrt(kappa.low or 0))
    assert f"quadratic-weighted κ above {top.estimate:.3f}" in found.audit.verdict.headline
    assert any(
        step.startswith("Taken as classes without an order, these") for step in found.audit.verdict.next_steps
    )
    for form in FORMS:
        assert f"{top.estimate:.3f}" in render(found, form)
    assert found.to_dict()["ordinal"]["kappa_ceiling"]["estimate"] == top.estimate
    nothing = kappa_ceiling(Estimate(estimate=-0.1, low=-0.3, high=0.2))
    assert (nothing.estimate, nothing.low, nothing.high) == (0.0, 0.0, pytest.approx(math.sqrt(0.2)))


def test_a_file_without_agreements_has_no_such_bound(tmp_path: Path) -> None:
    rows = [(f"i{k}", grade) for k in range(60) for grade in (1 + k % 4, 2 + k % 4)]
    found = audit_ordinal(str(table(tmp_path / "d.csv", rows)), item=["text"], label="label", draws=100)
    assert any(alarm.severity == "stop" for alarm in found.audit.alarms)
    assert found.kappa_ceiling.estimate is None
    assert "quadratic" not in found.audit.verdict.headline
    same = table(tmp_path / "e.csv", [(f"i{k}", 1 + k % 4) for k in range(40) for _ in "12"])
    equal = audit_ordinal(str(same), item=["text"], label="label", draws=100)
    assert equal.kappa_ceiling.estimate == 1.0
    assert equal.audit.verdict.headline.startswith("None of 40")


def test_the_grades_of_the_anaesthetists_have_a_bound() -> None:
    found = audit_ordinal(ROOT / "examples" / "anaesthetists.csv", item=["patient"], label="grade", draws=200)
    assert (found.kappa_ceiling.estimate or 0) ** 2 == pytest.approx(found.weighted_kappa.estimate)
