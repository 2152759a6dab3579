"""A model's view of the labels: folds, confident learning, the check by repeats, and the command."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.errors import ArgumentError, ColumnError, InputError, MissingExtraError
from audit.issues import find_issues
from audit.issues_check import auc_error, known_conflicts, measure, partner_check
from audit.issues_model import deal_folds, out_of_fold, text_features
from audit.issues_noise import learn, model_flip_rate, resampled_flip_rate, shuffled_flags
from audit.issues_results import Issues
from audit.reading_matrix import read_matrix
from tests.command import run, write_csv

pytest.importorskip("cleanlab", reason="cleanlab is not installed (extra model)")
ROOT = Path(__file__).parents[1]


class Made:
    """Items with embeddings that tell their class, two labels for the first ones, and labels wrong by ``flips``.

    ``flips`` (K, K): the chance of a given class (columns) for each true one (rows).
    """

    def __init__(
        self,
        flips: list[list[float]],
        *,
        items: int = 3000,
        repeated: int = 1500,
        apart: float = 4.0,
        seed: int = 0,
    ) -> None:
        rng = np.random.default_rng(seed)
        chances = np.array(flips)
        self.truth = rng.integers(0, len(chances), items)
        self.embeddings = rng.normal(size=(items, 8))
        self.embeddings[np.arange(items), self.truth] += apart
        self.item = np.concatenate([np.arange(items), np.arange(repeated)])
        self.true = self.truth[self.item]
        self.code = (rng.random(len(self.item))[:, None] > np.cumsum(chances, axis=1)[self.true]).sum(axis=1)
        self.wrong = self.code != self.true
        self.frame = pd.DataFrame(
            {"text": [f"item {k}" for k in self.item], "label": [f"c{k}" for k in self.code]}
        )
        self.rows = self.embeddings[self.item]

    def find(self, **options: Any) -> Issues:
        given = {"embeddings": self.rows} if "probs" not in options else {}
        return find_issues(self.frame, item=["text"], label="label", **given, **{"draws": 30, **options})


def auc(scores: np.ndarray, positive: np.ndarray) -> float:
    above = scores[positive][:, None] - scores[~positive][None, :]
    return float(np.mean((above > 0) + 0.5 * (above == 0)))


SYMMETRIC = [[0.9, 0.1], [0.1, 0.9]]
ASYMMETRIC = [[0.97, 0.03], [0.25, 0.75]]
THREE = [[0.85, 0.1, 0.05], [0.02, 0.93, 0.05], [0.08, 0.08, 0.84]]


# --- known noise -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flips", [SYMMETRIC, ASYMMETRIC, THREE], ids=["symmetric", "asymmetric", "three classes"]
)
def test_a_model_that_knows_the_classes_finds_the_noise(flips: list[list[float]]) -> None:
    made = Made(flips)
    found = made.find(show=10**6)
    one_sided = flips is ASYMMETRIC  # confident learning counts too few of errors that sit in one class
    assert found.model_flip_rate.estimate is not None
    ratio = found.model_flip_rate.estimate / made.wrong.mean()
    assert (0.65 if one_sided else 0.9) < ratio < 1.05
    assert np.array(found.noise.given_true) == pytest.approx(np.array(flips), abs=0.08 if one_sided else 0.03)
    flagged = np.zeros(len(made.code), np.bool_)
    flagged[[one.row - 1 for one in found.issues]] = True
    assert flagged.sum() == found.flagged
    assert made.wrong[flagged].mean() > 0.92
    assert flagged[made.wrong].mean() > (0.65 if one_sided else 0.9)
    assert all(one.suggested == f"c{made.true[one.row - 1]}" for one in found.issues[:100])
    scores = [one.score for one in found.issues]
    assert scores == sorted(scores)
    assert not [alarm for alarm in found.alarms if alarm.severity != "note"]
    partners = found.check.partners
    assert partners.precision.estimate == pytest.approx(
        made.wrong[flagged].mean(), abs=0.15 if one_sided else 0.06
    )
    assert partners.recall.estimate == pytest.approx(flagged[made.wrong].mean(), abs=0.2)


def test_two_flip_rates_of_one_process_agree() -> None:
    found = Made(SYMMETRIC, seed=3).find()
    assert found.flip_rate.estimate == pytest.approx(0.1, abs=0.02)
    assert found.difference.low is not None and found.difference.high is not None  # noqa: PT018
    assert found.difference.low < 0 < found.difference.high
    assert "no difference" in found.verdict


def test_mistakes_that_all_repeats_share_are_seen_by_the_model_alone() -> None:
    made = Made([[1.0, 0.0], [0.0, 1.0]], seed=1)
    shared = np.random.default_rng(1).random(len(made.truth)) < 0.12
    made.frame["label"] = [f"c{k}" for k in np.where(shared[made.item], 1 - made.true, made.true)]
    found = made.find()
    assert found.flip_rate.estimate == 0.0
    assert found.model_flip_rate.estimate == pytest.approx(0.12, abs=0.02)
    assert "sees more errors" in found.verdict


def test_a_weak_model_is_told_by_the_repeats() -> None:
    found = Made(SYMMETRIC, apart=0.7).find()
    assert found.model_flip_rate.estimate is not None
    assert found.model_flip_rate.estimate > 0.2  # twice the truth
    assert [alarm.code for alarm in found.alarms] == ["errs_more_than_a_second_label"]
    assert "errs more often than a second label" in found.verdict


def test_a_model_without_skill_gives_no_flip_rate() -> None:
    made = Made(SYMMETRIC, apart=0.0)
    found = made.find()
    assert found.model_flip_rate.estimate is None
    assert found.difference.estimate is None
    assert found.noise.given_true == ()
    assert [alarm.severity for alarm in found.alarms if alarm.code == "no_skill"] == ["stop"]
    assert "no better than always saying" in found.verdict
    assert (found.flagged, found.issues) == (0, ())
    assert "flags of such a model are chance" in found.summary().splitlines()[-1]
    assert found.flip_rate.estimate == pytest.approx(0.1, abs=0.03)


# --- folds -------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(st.lists(st.integers(0, 3), min_size=2, max_size=60), st.integers(2, 6), st.integers(0, 5))
def test_folds_are_even_in_every_stratum(strata: list[int], folds: int, seed: int) -> None:
    folds = min(folds, len(strata))
    fold = deal_folds(np.array(strata), folds=folds, seed=seed)
    sizes = np.bincount(fold, minlength=folds)
    assert len(sizes) == folds
    assert sizes.max() - sizes.min() <= 1
    for value in set(strata):
        inside = np.bincount(fold[np.array(strata) == value], minlength=folds)
        assert inside.max() - inside.min() <= 1


def test_too_many_folds_are_refused() -> None:
    with pytest.raises(ArgumentError, match="3 items cannot be dealt into 4"):
        deal_folds(np.zeros(3, np.int64), folds=4)


def test_a_word_that_only_copies_share_teaches_nothing() -> None:
    """Three copies with one label, 12 % of the items wrong; then the same with a word of each item's own."""
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, 400)
    wrong = rng.random(400) < 0.12
    words = [["good", "fine", "nice"], ["bad", "poor", "sad"]]
    plain = [" ".join(rng.choice(words[t], 4)) + f" {rng.integers(9)}" for t in truth]
    item = np.repeat(np.arange(400), 3)
    code = np.where(wrong, 1 - truth, truth)[item]

    def flags(own: str) -> set[int]:
        frame = pd.DataFrame(
            {"text": [f"{plain[k]} {own and own + str(k)} n{k}" for k in item], "label": code.astype(str)}
        )
        found = find_issues(frame, item=["text"], label="label", draws=2, show=10**6)
        return {one.row - 1 for one in found.issues}

    without, remembered = flags(""), flags("token")
    planted = set(np.flatnonzero(wrong[item]).tolist())
    assert len(planted & without) > 0.9 * len(planted)
    assert len(planted & remembered) > 0.9 * len(planted)
    # With folds over rows, copies teach one another their label: the check above can fail.
    features = text_features([[f"{plain[k]} " + " ".join([f"token{k}"] * 20) for k in item]])
    leaky = out_of_fold(
        features, item=np.arange(1200), code=code, classes=2, fold=deal_folds(code, folds=5), progress=None
    )
    assert learn(code, leaky.probabilities, np.arange(1200)).flagged[wrong[item]].mean() < 0.6


def test_copies_have_one_probability_and_one_fate() -> None:
    made = Made(SYMMETRIC, items=600, repeated=600, apart=1.5)
    spelled = [f"Item  {k}" if n % 2 else f"item {k}" for n, k in enumerate(made.item)]
    made.frame["text"] = spelled
    found = made.find(show=10**6, draws=2)
    fate: dict[tuple[int, int], set[bool]] = {}
    flagged = {one.row - 1: one.score for one in found.issues}
    score: dict[tuple[int, int], set[float]] = {}
    for row, key in enumerate(zip(made.item.tolist(), made.code.tolist(), strict=True)):
        fate.setdefault(key, set()).add(row in flagged)
        if row in flagged:
            score.setdefault(key, set()).add(flagged[row])
    assert found.items == 600
    assert all(len(one) == 1 for one in [*fate.values(), *score.values()])


def test_text_without_spaces_and_text_without_words() -> None:
    assert text_features([["今日は良い天気です", "雨の日は嫌いです"]]).shape[1] > 20
    empty = text_features([["!!", "?"]])
    assert (empty.shape, empty.nnz) == ((2, 1), 0)
    two = text_features([["a b", "b c"], ["a b", "b c"]])
    assert two.shape == (2, 10)  # a, b, c, "a b", "b c" in each column


def test_an_items_rows_weigh_one_in_training() -> None:
    x = np.array([[0.0], [0.2], [0.9], [1.0], [0.5]])
    once = out_of_fold(
        x, item=np.arange(5), code=np.array([0, 0, 1, 1, 0]), classes=2, fold=np.array([0, 0, 0, 0, 1])
    )
    item, code = np.array([0, 0, 0, 1, 2, 3, 3, 4]), np.array([0, 0, 0, 0, 1, 1, 1, 0])
    many = out_of_fold(x, item=item, code=code, classes=2, fold=np.array([0, 0, 0, 0, 1]))
    lengths = x[:4].repeat([3, 1, 1, 2], axis=0)
    assert lengths.std() != x[:4].std()  # the scale of the features does depend on the rows
    assert many.probabilities[4] == pytest.approx(once.probabilities[4], abs=0.05)


# --- parity and measures -----------------------------------------------------------------------------------


def some_probabilities(rows: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    code = np.concatenate([np.arange(classes), rng.integers(0, classes, rows - classes)])
    raw = rng.dirichlet(np.ones(classes), rows)
    raw[np.arange(rows), code] += rng.random(rows) * 2
    return code, raw / raw.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("classes", [2, 4])
def test_figures_are_those_of_the_library_called_directly(classes: int) -> None:
    from cleanlab.count import estimate_joint, estimate_py_and_noise_matrices_from_probabilities
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_self_confidence_for_each_label

    code, p = some_probabilities(700, classes, 2)
    frame = pd.DataFrame({"text": [f"t{k}" for k in range(700)], "label": code.astype(str)})
    found = find_issues(frame, item=["text"], label="label", probs=p, draws=5, show=10**6)
    py, noise, _, _ = estimate_py_and_noise_matrices_from_probabilities(code, p)
    assert found.model_flip_rate.estimate == pytest.approx(1 - np.trace(estimate_joint(code, p)), abs=1e-12)
    assert pytest.approx(noise, abs=1e-12) == np.array(found.noise.given_true).T
    assert np.array(found.noise.prevalence) == pytest.approx(py, abs=1e-12)
    direct = find_label_issues(code, p, return_indices_ranked_by="self_confidence", n_jobs=1)
    assert [one.row - 1 for one in found.issues] == direct.tolist()
    scores = get_self_confidence_for_each_label(code, p)[direct]
    assert [one.score for one in found.issues] == pytest.approx(scores.tolist(), abs=1e-12)


def test_measures_by_plain_loops() -> None:
    code, p = some_probabilities(200, 3, 5)
    item = np.concatenate([np.arange(150), np.arange(50)])
    p = p[:150]
    found = measure(code, item, p, kind="", folds=None, level=0.95)
    size = np.bincount(item)
    weight = [1 / size[i] / 150 for i in item]
    right = [float(p[i].argmax() == k) for i, k in zip(item, code, strict=True)]
    share = [sum(w for w, c in zip(weight, code, strict=True) if c == k) for k in range(3)]
    assert found.accuracy.estimate == pytest.approx(np.dot(weight, right))
    assert found.majority == pytest.approx(max(share))
    assert found.gain.estimate == pytest.approx(np.dot(weight, right) - max(share))
    assert found.log_loss == pytest.approx(
        -sum(w * np.log(p[i, k]) for w, i, k in zip(weight, item, code, strict=True))
    )
    assert found.base_log_loss == pytest.approx(-sum(s * np.log(s) for s in share))
    areas = []
    for k in range(3):
        above = below = 0.0
        for a in range(200):
            for b in range(200):
                if code[a] == k != code[b]:
                    pair = weight[a] * weight[b]
                    below += pair
                    above += pair * ((p[item[a], k] > p[item[b], k]) + 0.5 * (p[item[a], k] == p[item[b], k]))
        areas.append(above / below)
    assert found.auc.estimate == pytest.approx(np.dot(share, areas))


def test_error_of_the_auc_is_the_published_one() -> None:
    """Hanley and McNeil's own example: area .893 from 51 abnormal and 58 normal images, standard error .032."""
    assert auc_error(0.893, 51, 58) == pytest.approx(0.032, abs=0.0006)


def test_calibration_error_is_zero_for_true_chances_and_plain_for_false_ones() -> None:
    rng = np.random.default_rng(0)
    chance = rng.random(20_000)
    code = (rng.random(20_000) < chance).astype(np.int64)
    p = np.column_stack([1 - chance, chance])
    good = measure(code, np.arange(20_000), p, kind="", folds=None, level=0.95)
    assert good.calibration_error is not None
    assert good.calibration_error < 0.02
    coin = (rng.random(20_000) < 0.5).astype(np.int64)
    sure = np.where(rng.random(20_000)[:, None] < 0.5, [[0.9, 0.1]], [[0.1, 0.9]])
    bad = measure(coin, np.arange(20_000), sure, kind="", folds=None, level=0.95)
    assert bad.calibration_error == pytest.approx(0.4, abs=0.02)


def test_the_bootstrap_is_as_wide_as_fresh_samples_are() -> None:
    rng = np.random.default_rng(7)

    def sample() -> tuple[np.ndarray, np.ndarray]:
        truth = rng.integers(0, 2, 500)
        sure = np.where(truth == 1, 0.9, 0.1) + rng.normal(0, 0.1, 500)
        code = np.where(rng.random(500) < 0.15, 1 - truth, truth)
        chance = sure.clip(0.01, 0.99)
        return code, np.column_stack([1 - chance, chance])

    fresh = np.array([learn(*sample(), np.arange(500)).flip_rate for _ in range(80)])
    code, p = sample()
    drawn = np.array(
        [
            resampled_flip_rate(code, p, np.bincount(rng.integers(0, 500, 500), minlength=500))
            for _ in range(80)
        ]
    )
    found = model_flip_rate(learn(code, p, np.arange(500)).flip_rate, drawn, level=0.95)
    assert found.high is not None and found.low is not None  # noqa: PT018
    assert (found.high - found.low) / (2 * 1.96) == pytest.approx(fresh.std(), rel=0.35)


# --- the check by repeats ----------------------------------------------------------------------------------


def test_the_partner_check_by_hand() -> None:
    """Ten pairs, two of them in conflict: d = .2, ε = (1 - √.6)/2 = .1127. Flagged: both labels of a conflict and one
    label of two agreeing pairs, 4 of 20 labels; of their partners 2 of 4 differ. q = (.5 - ε)/(1 - 2ε) = .5.
    """
    item = np.repeat(np.arange(10), 2)
    code = np.zeros(20, np.int64)
    code[[1, 3]] = 1
    flagged = np.zeros(20, np.bool_)
    flagged[[0, 1, 4, 6]] = True
    table = np.zeros((10, 2), np.int64)
    np.add.at(table, (item, code), 1)
    found = partner_check(code, item, table, flagged, level=0.95, seed=0)
    rate = (1 - 0.6**0.5) / 2
    assert found.flagged == pytest.approx(0.5)
    assert found.others == pytest.approx(2 / 16)
    assert found.precision.estimate == pytest.approx((0.5 - rate) / (1 - 2 * rate))
    assert found.recall.estimate == pytest.approx(0.5 * 0.2 / rate)
    none = partner_check(code, item, table, np.zeros(20, np.bool_), level=0.95, seed=0)
    assert none.precision.estimate is None
    assert none.reason == "no label of a repeated item is flagged"


@pytest.mark.parametrize("classes", [2, 3])
def test_the_partner_check_holds_the_precision_of_any_flags(classes: int) -> None:
    """Flags that hit wrong labels with chance .7 and right ones with .1, whatever made them; 60 files."""
    rng = np.random.default_rng(classes)
    rate, hits, errors = 0.12, 0, []
    for seed in range(60):
        truth = rng.integers(0, classes, 800)
        item = np.repeat(np.arange(800), 2)
        flip = rng.random(1600) < rate
        code = np.where(flip, (truth[item] + rng.integers(1, classes, 1600)) % classes, truth[item])
        flagged = rng.random(1600) < np.where(flip, 0.7, 0.1)
        table = np.zeros((800, classes), np.int64)
        np.add.at(table, (item, code), 1)
        found = partner_check(code, item, table, flagged, level=0.95, seed=seed)
        wanted = 0.7 * rate / (0.7 * rate + 0.1 * (1 - rate))
        p = found.precision
        assert p.estimate is not None and p.low is not None and p.high is not None  # noqa: PT018
        errors.append(p.estimate - wanted)
        hits += p.low <= wanted <= p.high
    assert hits >= 52  # 95 % of 60, and three standard deviations
    assert abs(np.mean(errors)) < 0.02


def test_conflicts_attract_flags_by_chance_alone() -> None:
    """A model that knows nothing flags conflicts more often: one of two labels is always unlikely."""
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, 600)
    item = np.repeat(np.arange(600), 2)
    code = np.where(rng.random(1200) < 0.15, 1 - truth[item], truth[item])
    chance = rng.random(600)
    p = np.column_stack([1 - chance, chance])
    flagged = learn(code, p[item], item).flagged
    found = known_conflicts(
        code, item, p, flagged, level=0.95, seed=0,
        shuffle=lambda among, rng: shuffled_flags(code, p, item, among, rng=rng),
    )  # fmt: skip
    assert found.recall.estimate is not None
    assert found.false.estimate is not None
    assert found.recall.estimate > found.false.estimate + 0.2
    assert found.recall_by_chance == pytest.approx(found.recall.estimate, abs=0.08)
    assert found.auc is not None
    assert found.auc > 0.6
    assert found.auc_by_chance == pytest.approx(found.auc, abs=0.04)
    assert found.doubt_auc == pytest.approx(0.5, abs=0.07)
    assert found.conflicts + found.unanimous == 600


def test_the_auc_of_doubt_and_scores_by_brute_force() -> None:
    made = Made(SYMMETRIC, items=300, repeated=300, apart=1.5)
    p = np.random.default_rng(0).dirichlet([1, 1], 300)
    found = made.find(probs=p[made.item], draws=2)
    lowest = np.array([min(p[i, made.code[made.item == i]]) for i in range(300)])
    differ = np.array([len(set(made.code[made.item == i])) > 1 for i in range(300)])
    assert found.check.auc == pytest.approx(auc(-lowest, differ))
    assert found.check.doubt_auc == pytest.approx(auc(-p.max(axis=1), differ))


# --- the user's own numbers --------------------------------------------------------------------------------


def test_probabilities_in_every_form_give_the_same(tmp_path: Path) -> None:
    made = Made(ASYMMETRIC, items=200, repeated=100)
    chance = np.random.default_rng(1).dirichlet([1, 1], 200).round(6)
    frame = made.frame.assign(id=[f"r{k}" for k in range(300)])
    rows = chance[made.item]
    np.save(tmp_path / "p.npy", rows)
    table = pd.DataFrame({"c1": rows[:, 1], "c0": rows[:, 0], "id": frame["id"]})
    by_item = pd.DataFrame(
        {"text": [f" ITEM {k}" for k in range(200)], "p_c0": chance[:, 0], "p_c1": chance[:, 1]}
    )
    table[["c0", "c1"]].to_csv(tmp_path / "p.csv", index=False)

    def find(probs: Any, **more: Any) -> dict[str, Any]:
        return find_issues(frame, item=["text"], label="label", probs=probs, draws=3, **more).to_dict()

    first = find(rows)
    assert first["model"]["kind"] == "the probabilities given"
    assert first["model"]["folds"] is None
    for other in (
        find(str(tmp_path / "p.npy")),
        find(tmp_path / "p.csv"),
        find(table.sample(frac=1, random_state=1), row_id="id"),
        find(by_item.sample(frac=1, random_state=2)),
    ):
        assert other["issues"] == first["issues"]
        assert other["model_flip_rate"] == first["model_flip_rate"]


def test_rows_without_probabilities_are_left_out_and_counted() -> None:
    frame = pd.DataFrame({"text": list("abcdef"), "label": list("010102")})
    probs = pd.DataFrame(
        {"text": list("abcd"), "0": [0.9, 0.2, 0.6, 0.1], "1": [0.1, 0.8, 0.4, 0.9], "2": [0.0] * 4}
    )
    found = find_issues(frame, item=["text"], label="label", probs=probs, draws=2)
    assert (found.labelled, found.without_probabilities, found.classes) == (4, 2, ("0", "1"))
    with pytest.raises(InputError, match="no row belongs"):
        find_issues(frame, item=["text"], label="label", probs=probs.assign(text=list("wxyz")))


def test_reading_options_are_those_of_the_labels(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("text;label\na, b;0\nc;1\nd;0\ne;1\n", "utf-8")
    told = [("e", 0.2, 0.8), ("A, b", 0.9, 0.1), ("c", 0.3, 0.7), ("d", 0.6, 0.4)]
    probs = write_csv(tmp_path / "p.csv", ["text", "0", "1"], told)
    found = find_issues(data, item=["text"], label="label", probs=probs, delimiter=";", draws=2)
    assert (found.labelled, found.without_probabilities, found.model.accuracy.estimate) == (4, 0, 1.0)


def test_ids_that_are_missing_or_twice_are_not_joined() -> None:
    frame = pd.DataFrame({"id": ["1", "2", None, "4"], "text": list("abcd"), "label": list("0101")})
    probs = pd.DataFrame({"id": ["4", None, "2", "1"], "0": [0.1, 0.5, 0.2, 0.9], "1": [0.9, 0.5, 0.8, 0.1]})
    found = find_issues(frame, item=["text"], label="label", probs=probs, row_id="id", draws=2)
    assert (found.labelled, found.without_probabilities, found.model.accuracy.estimate) == (3, 1, 1.0)
    with pytest.raises(InputError, match="an id stands in two rows"):
        find_issues(frame, item=["text"], label="label", probs=probs.assign(id="1"), row_id="id")


def test_alarms_of_a_file_where_one_item_prevails_and_nothing_is_repeated_else() -> None:
    made = Made(SYMMETRIC, items=120, repeated=0)
    frame = pd.concat([made.frame, *[made.frame[:1]] * 20])
    found = find_issues(
        frame, item=["text"], label="label", embeddings=np.vstack([made.rows, *[made.rows[:1]] * 20]), draws=3
    )
    assert "one_item_many_labels" in [alarm.code for alarm in found.alarms]


def test_a_rare_class_that_is_ranked_well_but_never_predicted() -> None:
    rng = np.random.default_rng(0)
    rare = np.arange(2000) % 20 == 0
    chance = np.where(rare, 0.3, 0.05) + rng.random(2000) * 0.1
    frame = pd.DataFrame({"text": [f"t{k}" for k in range(2000)], "label": np.where(rare, "1", "0")})
    found = find_issues(
        frame, item=["text"], label="label", probs=np.column_stack([1 - chance, chance]), draws=5
    )
    assert "little_skill" in [alarm.code for alarm in found.alarms]
    assert "no flip rate by repeats to hold it against" in found.verdict


def test_copies_with_probabilities_of_their_own_are_an_alarm() -> None:
    made = Made(SYMMETRIC, items=300, repeated=300)
    p = np.full((600, 2), 0.15)
    p[np.arange(600), made.code] = 0.85  # each row is given its own label back
    found = made.find(probs=p)
    assert "copies_apart" in [alarm.code for alarm in found.alarms]


def test_a_model_that_has_seen_the_labels_is_above_the_ceiling() -> None:
    made = Made(SYMMETRIC, items=4000, repeated=1000)
    p = np.full((4000, 2), 0.1)
    p[np.arange(4000), made.code[:4000]] = 0.9  # the first label of each item, given back
    found = made.find(probs=p[made.item])
    assert "above_the_ceiling" in [alarm.code for alarm in found.alarms]
    assert "fewer errors" in found.verdict


@pytest.mark.parametrize(
    ("probs", "error", "match"),
    [
        (np.full((3, 2), 0.5), InputError, "3 rows and the labels 4"),
        (np.full((4, 3), 1 / 3), InputError, "3 columns for 2 classes"),
        (np.array([[2.0, -1.0]] * 4), InputError, "row 1 holds no probabilities"),
        (np.full((4, 2), 3.0), InputError, "not logits"),
        (np.array([[0.5, np.nan]] * 4), InputError, "row 1 has no number in column 2"),
        (np.full(4, 0.5), InputError, "shape"),
        (pd.DataFrame({"0": [0.5] * 4}), InputError, "no column of probabilities for the class '1'"),
        (pd.DataFrame({"0": ["a"] * 4, "1": [1.0] * 4}), InputError, "row 1 has no number in column '0'"),
        (np.array([["a", "b"]] * 4), InputError, "more than numbers"),
    ],
)
def test_numbers_that_cannot_be_used_are_named(probs: Any, error: type[Exception], match: str) -> None:
    frame = pd.DataFrame({"text": list("abcd"), "label": list("0101")})
    with pytest.raises(error, match=match):
        find_issues(frame, item=["text"], label="label", probs=probs)


def test_embeddings_in_every_form(tmp_path: Path) -> None:
    wanted = np.array([[0.5, 1.0], [2.0, -1.0], [0.0, 3.5]])
    np.save(tmp_path / "e.npy", wanted)
    assert read_matrix(tmp_path / "e.npy").values.tolist() == wanted.tolist()
    columns = pd.DataFrame({"id": list("abc"), "x": wanted[:, 0], "y": wanted[:, 1]})
    found = read_matrix(columns, row_id="id")
    assert (found.values.tolist(), found.columns, found.ids) == (wanted.tolist(), ("x", "y"), ("a", "b", "c"))
    lists = pd.DataFrame({"id": list("abc"), "e": [str(row) for row in wanted.tolist()]})
    assert read_matrix(lists).values.tolist() == wanted.tolist()
    with pytest.raises(InputError, match="1 to 2 numbers"):
        read_matrix(pd.DataFrame({"e": ["[1, 2]", "[3]"]}))
    with pytest.raises(InputError, match="no column of numbers"):
        read_matrix(pd.DataFrame({"e": ["a", "b"]}))
    (tmp_path / "bad.npy").write_bytes(b"no array")
    with pytest.raises(InputError, match="cannot be read as an array"):
        read_matrix(tmp_path / "bad.npy")
    with pytest.raises(ColumnError, match="nothing"):
        read_matrix(columns, row_id="nothing")


# --- what is too little ------------------------------------------------------------------------------------


def few(texts: str, labels: str, **options: Any) -> Issues:
    frame = pd.DataFrame({"text": list(texts), "label": [None if c == "-" else c for c in labels]})
    return find_issues(frame, item=["text"], label="label", **{"draws": 5, **options})


def test_one_class_one_item_and_nothing() -> None:
    one = few("abca", "1111")
    assert (one.model_flip_rate.estimate, one.flagged, one.issues) == (None, 0, ())
    assert "with one class" in one.verdict
    single = few("aaa", "110")
    assert "only one item" in single.verdict
    assert (single.repeated, single.conflicts) == (1, 1)
    with pytest.raises(InputError, match="no row has both"):
        few("ab", "--")
    for found in (one, single):
        assert found.to_dict()["reason"] == found.reason
        assert found.verdict in found.summary()
        assert found.to_frame().empty


def test_fewer_items_than_folds_and_classes_of_one_item() -> None:
    found = few("abc", "010", folds=5)
    assert found.model.folds == 3
    assert found.notes == ("3 items make 3 folds, not 5",)
    rare = few("abcdefgh", "00001112")
    assert rare.classes == ("0", "1", "2")
    assert "small_classes" in [alarm.code for alarm in rare.alarms]
    assert rare.summary()
    both = few("ab", "01")  # each is judged by a model that knows the other class only
    assert both.items == 2


def test_missing_labels_keep_their_place_in_the_file(tmp_path: Path) -> None:
    made = Made(SYMMETRIC, items=400, repeated=0)
    labels = made.frame["label"].where(np.arange(400) % 4 != 0, "NA")
    frame = pd.DataFrame({"text": made.frame["text"], "label": labels})
    out = tmp_path / "rows.csv"
    found = find_issues(
        frame,
        item=["text"],
        label="label",
        embeddings=made.rows,
        missing=["NA"],
        draws=2,
        out_rows=out,
        show=0,
    )
    assert (found.rows, found.labelled, found.classes, found.issues) == (400, 300, ("c0", "c1"), ())
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == found.flagged > 10
    for row in rows:
        place = int(row["row"]) - 1
        assert (row["text"], row["label"]) == (frame["text"][place], frame["label"][place])
    assert np.mean([made.wrong[int(row["row"]) - 1] for row in rows]) > 0.9


def test_repeats_that_were_de_duplicated_give_no_second_rate() -> None:
    made = Made(SYMMETRIC, items=300, repeated=0)
    flipped = made.frame[:40].assign(
        label=["c1" if name == "c0" else "c0" for name in made.frame["label"][:40]]
    )
    frame = pd.concat([made.frame, flipped])
    rows = np.vstack([made.rows, made.rows[:40]])
    found = find_issues(frame, item=["text"], label="label", embeddings=rows, draws=5)
    assert found.flip_rate.estimate is None
    assert "de-duplicated" in found.verdict


def test_options_out_of_range_are_named(tmp_path: Path) -> None:
    frame = pd.DataFrame({"text": list("ab"), "label": list("01")})
    for options, match in (
        ({"folds": 1}, "--folds"), ({"draws": 1}, "--draws"), ({"level": 2.0}, "level"), ({"seed": -1}, "seed"),
        ({"probs": np.eye(2), "embeddings": np.eye(2)}, "give one of them"),
        ({"show": -1}, "issues to show"),
        ({"probs": np.eye(2), "row_id": "text"}, "row by row"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=match):
            find_issues(frame, item=["text"], label="label", **options)  # type: ignore[arg-type]
    with pytest.raises(ColumnError, match="name it with --item"):
        find_issues(pd.DataFrame({"u": list("ab"), "v": list("01")}), item=[], label="v")
    path = write_csv(tmp_path / "a.csv", ["text", "label"], [("a", "0"), ("b", "1")])
    with pytest.raises(ArgumentError, match="read or written already"):
        find_issues(path, item=["text"], label="label", out_rows=path)


# --- the command -------------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path) -> None:
    made = Made(SYMMETRIC, items=300, repeated=100)
    rows = list(made.frame.itertuples(index=False, name=None))
    path = write_csv(tmp_path / "data.csv", ["text", "label"], rows)
    np.save(tmp_path / "e.npy", made.rows)
    words = [
        path,
        "--item",
        "text",
        "--label",
        "label",
        "--embeddings",
        tmp_path / "e.npy",
        "--draws",
        "5",
        "--show",
        "7",
    ]
    done = run("issues", *words, "--format", "json", "--out-rows", tmp_path / "s.jsonl")
    assert done.code == 0
    assert "fold 5 of 5" in done.err
    assert len(done.json["issues"]) == 7
    assert len((tmp_path / "s.jsonl").read_text("utf-8").splitlines()) == done.json["flagged"]
    text = run("issues", *words)
    assert " ".join(text.out.split()).startswith(done.json["verdict"])
    assert "given labels (columns) of the true classes (rows)" in text.out
    again = run("issues", *words, "--format", "json")
    assert again.json == done.json
    assert run("issues", path, "--item", "text", "--label", "label", "--out", path).code == 2


def test_without_the_extra_the_command_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cleanlab", None)
    path = write_csv(tmp_path / "a.csv", ["text", "label"], [("a", "0"), ("b", "1")])
    done = run("issues", path, "--item", "text", "--label", "label")
    assert done.code == 2
    assert "pip install 'label-audit[model]'" in done.err
    with pytest.raises(MissingExtraError):
        find_issues(path, item=["text"], label="label")


def test_importing_loads_neither_library() -> None:
    code = "import sys, audit.issues, audit.cli_files; print({'cleanlab', 'sklearn'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# --- data whose truth or history is known ------------------------------------------------------------------


def test_the_example_against_its_truth() -> None:
    """The figures of docs/issues.md."""
    key = ["passage", "entity", "driver"]
    data = pd.read_csv(ROOT / "examples" / "risk_driver.csv", dtype=str)
    truth = pd.read_csv(ROOT / "examples" / "risk_driver_truth.csv", dtype=str)
    found = find_issues(data, item=key, label="label", draws=20, show=10**6)
    wrong = (data.merge(truth, on=key, how="left")["truth"] != data["label"]).to_numpy()
    flagged = np.zeros(len(data), np.bool_)
    flagged[[one.row - 1 for one in found.issues]] = True
    precision, recall = wrong[flagged].mean(), flagged[wrong].mean()
    page = (ROOT / "docs" / "issues.md").read_text("utf-8")
    assert f"precision {precision:.2f}, recall {recall:.2f}" in page
    partners = found.check.partners
    assert f"precision {partners.precision.text('.2f')}, recall {partners.recall.text('.2f')}" in page
    for estimate, told in ((partners.precision, precision), (partners.recall, recall)):
        assert estimate.low is not None and estimate.high is not None  # noqa: PT018
        assert estimate.low <= told <= estimate.high
    assert (
        f"ε by the model {found.model_flip_rate.estimate:.3f}, by the repeats {found.flip_rate.estimate:.3f}"
        in page
    )
    assert [alarm.code for alarm in found.alarms] == ["errs_more_than_a_second_label"]


@pytest.mark.shared_data
def test_a_public_set_of_votes(shared: Path) -> None:
    """The figures of docs/issues.md: news sentences with each vote a row, d and ε as the data's README gives them."""
    folder = shared / "data" / "causal_news"
    names = [folder / f"V1_{split}_subtask1.csv" for split in ("train", "dev")]
    data = pd.concat(
        pd.read_csv(name, dtype={"text": str, "label": str}, encoding="utf-8-sig") for name in names
    )
    data = data[data["num_votes"] > 0]
    votes = [
        (text, label if vote < round(share * number) else str(1 - int(label)))
        for text, label, share, number in data[["text", "label", "agreement", "num_votes"]].itertuples(
            index=False
        )
        for vote in range(int(number))
    ]
    frame = pd.DataFrame(votes, columns=["text", "label"])
    found = find_issues(frame, item=["text"], label="label", draws=20)
    page = (ROOT / "docs" / "issues.md").read_text("utf-8")
    assert (
        f"ε by the model {found.model_flip_rate.estimate:.3f}, by the repeats {found.flip_rate.estimate:.3f}"
        in page
    )
    assert found.difference.low is not None
    assert found.difference.low > 0
    assert found.check.recall_by_chance is not None
    assert found.check.recall.estimate is not None
    assert found.check.recall.estimate < found.check.recall_by_chance  # yet far fewer false ones
    assert found.check.false_by_chance is not None
    assert found.check.false.estimate is not None
    assert found.check.false.estimate < 0.5 * found.check.false_by_chance


def test_the_table_of_models_that_know_less_and_less() -> None:
    page = (ROOT / "docs" / "issues.md").read_text("utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| .")]
    assert len(rows) == 5
    for apart, row in zip((4.0, 2.0, 1.5, 1.0, 0.5), rows, strict=True):
        made = Made(SYMMETRIC, apart=apart)
        found = made.find(show=10**6, draws=2)
        flagged = np.zeros(len(made.code), np.bool_)
        flagged[[one.row - 1 for one in found.issues]] = True
        assert found.model.accuracy.estimate is not None
        partners = found.check.partners
        figures = (
            1 - found.model.accuracy.estimate, found.model_flip_rate.estimate, found.flip_rate.estimate,
            made.wrong[flagged].mean(), partners.precision.estimate, flagged[made.wrong].mean(),
            partners.recall.estimate,
        )  # fmt: skip
        places = (3, 3, 3, 2, 2, 2, 2)
        for cell, figure, digits in zip(row, figures, places, strict=True):
            assert figure is not None
            assert float(cell) == pytest.approx(figure, abs=1.01 * 10**-digits)
