"""Scores of models of numbers and grades against what their labels allow."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audit.errors import ArgumentError, InputError
from audit.label_grades import audit_ordinal
from audit.label_numbers import audit_numeric
from audit.placing_values import place_value
from audit.render import render_json
from tests.command import run
from tests.test_audit_label_kinds import ROOT, ratings, table

NAMED: dict[str, Any] = {"item": ["text"], "label": "label"}
GRADES = ROOT / "examples" / "anaesthetists.csv"


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    folder = tmp_path_factory.mktemp("numbers")
    found = audit_numeric(str(ratings(folder / "r.csv")), **NAMED)
    (folder / "r.json").write_text(render_json(found), "utf-8")
    return found, folder / "r.json"


def test_every_position_of_every_metric(numbers: tuple[Any, Path]) -> None:
    found, saved = numbers
    sigma, ratio, distance = found.noise_sd, found.r2_ceiling, found.distance
    cases = [
        ("rmse", sigma.low * 0.99, "impossible"),
        ("rmse", (sigma.low + sigma.estimate) / 2, "beyond the bound"),
        ("rmse", sigma.estimate * 1.01, "possible"),
        ("r2", ratio.high + 0.001, "impossible"),
        ("r2", (ratio.high + ratio.estimate) / 2, "beyond the bound"),
        ("r2", ratio.estimate - 0.001, "possible"),
        ("r2", -3.0, "possible"),
        ("mae", distance.low / 2 * 0.99, "impossible"),
        ("mae", (distance.low + distance.estimate) / 4, "beyond the bound"),
        ("mae", distance.estimate * 0.75, "within the range"),
        ("mae", distance.estimate * 1.01, "possible"),
    ]
    for metric, score, position in cases:
        placed = place_value(metric, score, saved)
        assert placed.position == position, (metric, score)
        assert placed.summary().startswith(placed.message)
        from_data = place_value(metric, score, saved.with_suffix(".csv"), **NAMED)
        assert from_data.position == position
        assert from_data.bound == pytest.approx(placed.bound)
        json.loads(render_json(placed))


def test_the_score_without_noise_is_that_of_a_simulation(tmp_path: Path) -> None:
    """A model that is off by 1 from the items' means, against labels with noise 2 around them."""
    rng = np.random.default_rng(3)
    truth = rng.normal(0, 3, 200_000)
    model, label = truth + rng.normal(0, 1, 200_000), truth + rng.normal(0, 2, 200_000)
    rmse = float(np.sqrt(np.mean((model - label) ** 2)))
    r2 = 1 - rmse**2 / float(label.var())
    saved = {
        "noise_sd": {"estimate": 2.0, "low": 1.9, "high": 2.1}, "rmse_floor": {}, "level": 0.95, "reason": None,
        "r2_ceiling": {"estimate": 9 / 13, "low": 0.6, "high": 0.75}, "distance": {"estimate": 2.2},
    }  # fmt: skip
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(saved), "utf-8")
    found = {metric: place_value(metric, score, path) for metric, score in (("rmse", rmse), ("r2", r2))}
    assert found["rmse"].corrected == pytest.approx(1.0, abs=0.02)
    against_truth = 1 - 1.0 / 9.0  # R² against the items' means
    assert found["r2"].corrected == pytest.approx(against_truth, abs=0.01)
    assert found["rmse"].condition == "the model has not seen these labels"
    assert place_value("mae", 2.0, path).corrected is None


def test_grades(tmp_path: Path) -> None:
    found = audit_ordinal(GRADES, item=["patient"], label="grade", draws=200)
    top = found.kappa_ceiling
    assert top.estimate is not None and top.high is not None  # noqa: PT018
    saved = tmp_path / "g.json"
    saved.write_text(render_json(found), "utf-8")
    for score, position in (
        (top.high + 0.001, "impossible"), ((top.estimate + top.high) / 2, "beyond the bound"),
        (top.estimate - 0.01, "possible"), (-0.5, "possible"),
    ):  # fmt: skip
        assert place_value("weighted-kappa", score, saved).position == position
    assert place_value("weighted-kappa", 0.5, GRADES, item=["patient"], label="grade").bound == pytest.approx(
        top.estimate
    )
    words = table(tmp_path / "w.csv", [("x", "low"), ("x", "high"), ("y", "low"), ("y", "low")])
    with pytest.raises(ArgumentError, match="audit them first"):
        place_value("weighted-kappa", 0.5, words, **NAMED)


def test_what_has_no_limit_says_so(numbers: tuple[Any, Path], tmp_path: Path) -> None:
    _, saved = numbers
    with pytest.raises(ArgumentError, match="is of --kind ordinal"):
        place_value("weighted-kappa", 0.5, saved)
    with pytest.raises(ArgumentError, match="lies in \\[0, inf\\]"):
        place_value("rmse", -1.0, saved)
    with pytest.raises(ArgumentError, match="lies in \\[-inf, 1\\]"):
        place_value("r2", 1.5, saved)
    with pytest.raises(ArgumentError, match="lies in"):
        place_value("rmse", math.nan, saved)
    with pytest.raises(ArgumentError, match="give the measured MAE"):
        place_value("mae", None, saved)
    with pytest.raises(ArgumentError, match="need a FILE"):
        place_value("mae", 1.0, None)
    with pytest.raises(ArgumentError, match="made at level"):
        place_value("mae", 1.0, saved, level=0.9)
    single = table(tmp_path / "s.csv", [("x", 1.5), ("y", 2.5)])
    with pytest.raises(ArgumentError, match="no limit of RMSE: no item has two labels"):
        place_value("rmse", 1.0, single, **NAMED)
    told = json.loads(saved.read_text("utf-8"))
    for place, value, words in (
        ("noise_sd", {"estimate": "much"}, "noise_sd.low|noise_sd.estimate"),
        ("noise_sd", 3, "must be an object"),
        ("r2_ceiling", {"estimate": 0.5, "low": 0.6, "high": 0.7}, "cannot be above"),
    ):
        path = tmp_path / "broken.json"
        path.write_text(json.dumps({**told, place: value}), "utf-8")
        with pytest.raises(InputError, match=words):
            place_value("r2", 0.5, path)


def test_from_the_command_line(numbers: tuple[Any, Path], tmp_path: Path) -> None:
    _, saved = numbers
    done = run("ceiling", saved, "--metric", "r2", "--score", "0.5", "--format", "json")
    assert (done.code, done.json["position"]) == (0, "possible")
    done = run("ceiling", saved, "--score", "0.9")
    assert done.code == 2
    assert "audit of numbers, which have no accuracy ceiling: --metric r2, rmse or mae" in done.err
    plain = run("dupes", GRADES, "--item", "patient", "--label", "grade", "--format", "json").out
    (tmp_path / "c.json").write_text(plain, "utf-8")
    done = run("ceiling", tmp_path / "c.json", "--metric", "weighted-kappa", "--score", "0.5")
    assert done.code == 2
    assert "holds an audit of classes: audit grades with --kind ordinal" in done.err
    done = run("ceiling", tmp_path / "c.json", "--metric", "kappa", "--score", "0.5")
    assert "weighted-kappa of grades" in done.err
    answer = tmp_path / "a.json"
    answer.write_text(
        run("ceiling", saved, "--metric", "r2", "--score", "0.5", "--format", "json").out, "utf-8"
    )
    assert (
        "the answer of audit ceiling itself" in run("ceiling", answer, "--metric", "r2", "--score", "0.5").err
    )
