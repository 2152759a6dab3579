"""Runs side by side: what is read, what the tests and intervals are, and what the words say."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from audit.errors import ArgumentError, InputError
from tests.made_runs import answers, make_run
from tests.pages import Page
from train.compare import compare_runs
from train.compare_render import html, markdown, text
from train.compare_results import RunComparison
from train.compare_stats import arm_difference, holm, run_metrics, seed_interval, swap_p_value
from train.words import place_name

LABELS = ["1"] * 40 + ["0"] * 160


def compared(*folders: Path, **more: Any) -> RunComparison:
    return compare_runs(folders, **{"draws": 200, **more})


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Noisy SFT errs on 20 and 40, clean SFT on 10 and 20 of these, GRPO on the same but for two items."""
    noisy = [*range(20), *range(40, 80)]
    clean = [*range(10), *range(40, 60)]
    grpo = [*range(1, 11), *range(40, 60)]
    make_run(tmp_path / "a", LABELS, answers(LABELS, noisy), name="sft-noisy", rung="sft-noisy")
    make_run(tmp_path / "b", LABELS, answers(LABELS, clean), name="sft-clean", rung="sft-clean")
    make_run(tmp_path / "c", LABELS, answers(LABELS, grpo), name="grpo", rung="grpo", parent="sft-clean")
    return tmp_path


# --- the numbers ----------------------------------------------------------------------------------------------


def test_metrics_and_differences_by_hand(runs: Path) -> None:
    c = compared(runs)
    assert (c.items, c.positives, c.baseline, c.key) == (200, 40, "sft-noisy", "clean")
    # noisy: recall 20/40, specificity 120/160; clean: 30/40, 140/160
    found = {r.name: {m: e.estimate for m, e in r.metrics.items()} for r in c.runs}
    assert found["sft-noisy"]["balanced_accuracy"] == pytest.approx((0.5 + 0.75) / 2)
    assert found["sft-clean"]["balanced_accuracy"] == pytest.approx((0.75 + 0.875) / 2)
    assert found["sft-clean"]["accuracy"] == pytest.approx(170 / 200)
    assert found["sft-clean"]["f1"] == pytest.approx(2 * 30 / (40 + 30 + 20))
    # with scores of .9 and .1 the AUC is the balanced accuracy of the answers
    assert found["sft-clean"]["auc"] == pytest.approx(found["sft-clean"]["balanced_accuracy"])
    pairs = {(d.arm, d.against): d for d in c.differences}
    assert set(pairs) == {("sft-clean", "sft-noisy"), ("grpo", "sft-noisy"), ("grpo", "sft-clean")}
    gain = pairs["sft-clean", "sft-noisy"]
    assert gain.difference.estimate == pytest.approx((10 / 40 + 20 / 160) / 2)
    # all 10 + 20 items on which they differ favour the clean one: 2 / 2^30
    assert gain.p_value == pytest.approx(2 / 2**30)
    assert gain.p_holm == pytest.approx(3 * 2 / 2**30)
    assert gain.verdict.startswith("sft-clean: +0.188 (+0.")
    assert gain.verdict.endswith("balanced accuracy over sft-noisy, p < 0.001 among 3 differences (Holm).")
    same = pairs["grpo", "sft-clean"]
    assert same.p_value == 1.0  # one item each way
    assert same.verdict.startswith("grpo over sft-clean: nothing that n = 200 can see, +0.000 (")


def test_the_exact_test_of_accuracy_is_mcnemars() -> None:
    truth = np.ones(30, np.bool_)
    a, b = np.ones(30, np.int64), np.ones(30, np.int64)
    a[:9], b[9:12] = 0, -1  # nine items only b has right, three only a
    p, name = swap_p_value(truth, a, b, metric="accuracy")
    assert p == pytest.approx(stats.binomtest(3, 12).pvalue)
    assert name == "exact McNemar"


@pytest.mark.parametrize("metric", ["balanced_accuracy", "accuracy", "recall", "specificity"])
def test_the_exact_test_by_brute_force(metric: str) -> None:
    rng = np.random.default_rng(5)
    truth = np.array([True] * 4 + [False] * 7)
    weights = {
        "balanced_accuracy": np.where(truth, 1 / 8, 1 / 14), "accuracy": np.full(11, 1 / 11),
        "recall": np.where(truth, 1 / 4, 0), "specificity": np.where(truth, 0, 1 / 7),
    }[metric]  # fmt: skip
    for _ in range(10):
        a, b = rng.integers(-1, 2, 11), rng.integers(-1, 2, 11)
        steps = weights * ((b == truth).astype(int) - (a == truth).astype(int))
        observed = abs(steps.sum())
        reached = [abs((steps * signs).sum()) >= observed - 1e-12 for signs in product((-1, 1), repeat=11)]
        assert swap_p_value(truth, a, b, metric=metric)[0] == pytest.approx(np.mean(reached))


def test_random_swaps_of_f1_agree_with_all_swaps() -> None:
    rng = np.random.default_rng(1)
    truth = rng.random(10) < 0.5
    a, b = rng.integers(0, 2, 10), rng.integers(0, 2, 10)

    def f1(answer: np.ndarray[Any, Any]) -> float:
        return float(2 * (answer & truth).sum() / (truth.sum() + answer.sum()))

    observed = abs(f1(b) - f1(a))
    reached = []
    for signs in product((False, True), repeat=10):
        swap = np.array(signs)
        reached.append(abs(f1(np.where(swap, a, b)) - f1(np.where(swap, b, a))) >= observed - 1e-12)
    p, name = swap_p_value(truth, a, b, metric="f1", draws=20_000)
    assert p == pytest.approx(np.mean(reached), abs=0.015)
    assert name == "20,000 random swaps"


def test_equal_runs_give_uniform_p_values_and_no_false_alarms() -> None:
    rng = np.random.default_rng(2)
    truth = rng.random(300) < 0.3
    p = []
    for _ in range(800):
        right = rng.random((2, 300)) < 0.8
        a, b = (np.where(r, truth, ~truth).astype(np.int64) for r in right)
        p.append(swap_p_value(truth, a, b, metric="balanced_accuracy")[0])
    values = np.array(p, float)
    assert np.mean(values < 0.05) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 800)
    assert np.mean(values < 0.05) >= 0.02, "an exact test, but not a blind one"


def test_a_metric_that_does_not_exist_has_no_p() -> None:
    truth = np.zeros(5, np.bool_)
    p, why = swap_p_value(truth, np.zeros(5, np.int64), np.ones(5, np.int64), metric="recall")
    assert p is None
    assert "recall does not exist" in why
    with pytest.raises(ArgumentError, match="no metric of decisions"):
        swap_p_value(truth, np.zeros(5, np.int64), np.zeros(5, np.int64), metric="auc")


def test_holms_steps_by_hand() -> None:
    # sorted .005 .01 .03 .04 times 4 3 2 1: .02 .03 .06 and .04 raised to .06
    assert holm([0.01, 0.04, None, 0.03, 0.005]) == pytest.approx([0.03, 0.06, None, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_mean_over_seeds_has_students_interval() -> None:
    mean, sd, found = seed_interval([0.80, 0.82, 0.87], level=0.95)
    assert mean == pytest.approx(0.83)
    assert sd == pytest.approx(0.0360555)
    assert found.high == pytest.approx(0.83 + 4.302653 * 0.0360555 / math.sqrt(3))  # t of .975 with 2 df
    assert seed_interval([0.8], level=0.95)[1] is None


def test_intervals_of_runs_cover() -> None:
    rng = np.random.default_rng(4)
    inside = 0
    for round_ in range(200):
        truth = rng.random(150) < 0.3
        predicted = np.where(rng.random(150) < 0.85, truth, ~truth).astype(np.int64)
        part = run_metrics(truth, predicted, None, level=0.95, draws=300, seed=round_)["balanced_accuracy"]
        assert part.low is not None
        assert part.high is not None
        inside += part.low <= 0.85 <= part.high
    assert inside >= 184  # .95 of 200 less two standard errors


def test_intervals_over_seeds_and_items_cover_a_new_seed_on_new_items() -> None:
    # every training run errs on its own items beside those that are hard for all: mean gap .05, spread of seeds .02
    rng = np.random.default_rng(6)
    inside = alone = 0
    for round_ in range(150):
        n = 400
        truth = rng.random(n) < 0.5
        hard = rng.random(n)

        def trained(level: float, hard: Any = hard, truth: Any = truth) -> Any:
            return np.where(hard < level + rng.normal(0, 0.02), ~truth, truth).astype(np.int64)

        a, b = [trained(0.25) for _ in range(3)], [trained(0.20) for _ in range(3)]
        for same in (True, False):
            gap, p = arm_difference(
                truth, a, b, metric="accuracy", same_seeds=same, level=0.95, draws=150, seed=round_
            )
            assert gap.low is not None
            assert gap.high is not None
            assert p is not None
            assert (p < 0.05) == (gap.low > 0 or gap.high < 0)
        inside += gap.low <= 0.05 <= gap.high
        (single, _) = arm_difference(
            truth, a[:1], b, metric="accuracy", same_seeds=False, level=0.95, draws=150, seed=1
        )
        alone += single.estimate is not None
    assert inside >= 137  # .95 of 150 less two standard errors
    assert alone == 150


# --- which runs -------------------------------------------------------------------------------------------------


def test_a_folder_of_runs_stands_for_its_runs_and_order_is_the_ladders(runs: Path) -> None:
    make_run(runs / "z", LABELS, answers(LABELS, [1]), name="base", rung="zero")
    c = compared(runs, baseline="base")
    assert [r.name for r in c.runs] == ["sft-noisy", "sft-clean", "grpo", "base"]
    assert {d.against for d in c.differences} == {"base", "sft-clean"}
    assert compared(runs / "c", runs / "a").baseline == "grpo", "the first folder given"
    (runs / "a").rename(runs / "x")
    assert compared(runs).baseline == "sft-noisy", "the first of the ladder, not of the alphabet"
    turned = compared(runs, baseline="grpo").differences
    assert [(d.arm, d.against) for d in turned] == [
        ("sft-noisy", "grpo"),
        ("sft-clean", "grpo"),
        ("base", "grpo"),
    ]


def test_what_cannot_be_compared_is_left_out_with_its_reason(runs: Path) -> None:
    make_run(runs / "cut", LABELS, LABELS, status="started")
    make_run(runs / "other-split", LABELS, LABELS, split="validation")
    make_run(runs / "other-items", LABELS, LABELS, items=[f"x{i}" for i in range(200)])
    make_run(runs / "fewer", LABELS[1:], LABELS[1:], items=[f"i{i}" for i in range(1, 200)])
    make_run(runs / "other-key", ["0", *LABELS[1:]], LABELS)
    (runs / "broken").mkdir()
    (runs / "broken" / "run.json").write_text("{")
    c = compared(runs)
    assert [r.name for r in c.runs] == ["sft-noisy", "sft-clean", "grpo"]
    why = {Path(one.path).name: one.reason for one in c.left_out}
    assert set(why) == {"cut", "other-split", "other-items", "fewer", "other-key", "broken"}
    assert "has not finished (status 'started'): run it again" in why["cut"]
    assert "choose --split among validation" in why["other-split"]
    assert "no item in common" in why["other-items"]
    assert "lacks 1 items" in why["fewer"]
    assert "--common" in why["fewer"]
    assert "1 items have other labels" in why["other-key"]
    assert "run.json cannot be read" in why["broken"]
    assert all(f"Left out: {place_name(str(runs / name))}:" in c.summary() for name in why)


def test_items_in_common_only_on_request(runs: Path) -> None:
    make_run(
        runs / "fewer", LABELS[1:], LABELS[1:], name="fewer", rung="x", items=[f"i{i}" for i in range(1, 200)]
    )
    c = compared(runs, common=True)
    assert c.items == 199
    assert [r.name for r in c.runs][-1] == "fewer"
    assert c.runs[-1].metrics["accuracy"].estimate == 1.0


def test_nothing_to_compare_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no run: give folders with a run\.json"):
        compared(tmp_path)
    make_run(tmp_path / "cut", LABELS, LABELS, status="started")
    with pytest.raises(InputError, match=r"no run can be compared: .*cut: the run has not finished"):
        compared(tmp_path)


def test_one_run_is_told_alone(runs: Path) -> None:
    c = compared(runs / "b")
    assert c.verdict == (
        "sft-clean: 0.812 balanced accuracy on 200 items. One run alone: nothing to compare.",
    )
    assert "What each run adds" not in html(c)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"baseline": "sft"}, "no run 'sft' to compare with: the runs are sft-noisy, sft-clean, grpo"),
        ({"pairs": [("grpo", "nothing")]}, "--pair grpo:nothing needs two different runs"),
        ({"pairs": [("grpo", "grpo")]}, "--pair grpo:grpo needs two different runs"),
        ({"metric": "auc"}, "--metric 'auc' is none of accuracy"),
        ({"level": 1.0}, "confidence level"),
        ({"draws": 10}, "too few"),
        ({"seed": -1}, "0 or more"),
    ],
)
def test_options_are_checked(runs: Path, more: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        compared(runs, **more)


def test_a_run_goes_by_its_rung_where_that_has_one_arm(tmp_path: Path) -> None:
    for rung in ("sft-noisy", "sft-clean", "grpo"):
        make_run(tmp_path / f"{rung}-s0", LABELS, answers(LABELS, [3]), name=f"{rung}-s0", rung=rung)
    c = compared(tmp_path, baseline="sft-clean", pairs=[("grpo", "sft-noisy")])
    assert c.baseline == "sft-clean-s0"
    assert ("grpo-s0", "sft-noisy-s0") in [(d.arm, d.against) for d in c.differences]
    make_run(tmp_path / "other", LABELS, LABELS, name="grpo-long", rung="grpo")
    with pytest.raises(ArgumentError, match="there is no run 'grpo' to compare with"):
        compared(tmp_path, baseline="grpo")
    with pytest.raises(ArgumentError, match="needs two different runs"):
        compared(tmp_path, pairs=[("grpo", "sft-noisy")])


def test_a_baseline_that_is_left_out_says_why(runs: Path) -> None:
    make_run(runs / "cut", LABELS, LABELS, status="started")
    with pytest.raises(
        ArgumentError, match=r"no run 'cut' to compare with \(left out: the run has not finished"
    ):
        compared(runs, baseline="cut")


def test_further_pairs_join_the_family(runs: Path) -> None:
    c = compared(runs, pairs=[("sft-noisy", "grpo"), ("grpo", "sft-noisy")])
    assert [(d.arm, d.against) for d in c.differences] == [
        ("sft-clean", "sft-noisy"), ("grpo", "sft-noisy"), ("grpo", "sft-clean"), ("sft-noisy", "grpo"),
    ]  # fmt: skip
    assert "among 4 differences" in c.verdict[0]


def test_seeds_make_an_arm_and_other_settings_do_not(tmp_path: Path) -> None:
    for seed in (0, 1, 2):
        make_run(
            tmp_path / f"n{seed}", LABELS, answers(LABELS, range(10 + seed)), rung="sft-noisy", seed=seed
        )
        make_run(tmp_path / f"c{seed}", LABELS, answers(LABELS, range(2 + seed)), rung="sft-clean", seed=seed)
    make_run(tmp_path / "g1", LABELS, LABELS, rung="grpo", seed=0, config={"grpo": {"cap": 8}})
    make_run(tmp_path / "g2", LABELS, LABELS, rung="grpo", seed=0, config={"grpo": {"cap": 64}})
    c = compared(tmp_path, baseline="sft-noisy")
    arms = {a.name: a for a in c.arms}
    assert set(arms) == {"sft-noisy", "sft-clean", "g1", "g2"}
    # recall 30/40, 29/40, 28/40 and specificity 1: balanced accuracy .875, .8625, .85
    assert arms["sft-noisy"].mean.estimate == pytest.approx(0.8625)
    assert arms["sft-noisy"].sd == pytest.approx(0.0125)
    assert arms["sft-noisy"].seeds == (0, 1, 2)
    pairs = {d.arm: d for d in c.differences}
    assert pairs["sft-clean"].seeds
    assert pairs["sft-clean"].difference.estimate == pytest.approx(0.1)
    assert pairs["sft-clean"].test == "t over seeds and items"
    assert not pairs["g1"].seeds
    assert any("Some arms have one seed only" in note for note in c.notes)
    assert "Seeds: balanced accuracy" in text(c)


def test_two_runs_of_one_name_go_by_their_folders(tmp_path: Path) -> None:
    make_run(tmp_path / "x", LABELS, LABELS, name="sft", rung="a")
    make_run(tmp_path / "y", LABELS, LABELS, name="sft", rung="b")
    assert [r.name for r in compared(tmp_path).runs] == ["x", "y"]


def test_costs_are_added_up(tmp_path: Path) -> None:
    curve = {
        "step": [1, 2, 3],
        "loss": [1.0, 0.5, None],
        "seconds": [2.0, 3.0, 4.0],
        "tokens": [100, 250, 400],
    }
    folder = make_run(
        tmp_path / "grpo", LABELS, LABELS, curve={**curve, "rows": [64, 64, 64]}, rung="grpo", rows=123
    )
    (folder / "rollouts").mkdir()
    make_run(tmp_path / "sft", LABELS, LABELS, curve={**curve, "tokens": [100, 90, 110]}, rung="sft")
    make_run(tmp_path / "bare", LABELS, LABELS, rung="bare")
    costs = {r.name: (r.rows, r.cost) for r in compared(tmp_path).runs}
    rows, cost = costs["grpo"]
    assert rows == 123
    assert (cost.steps, cost.seconds, cost.tokens, cost.rollouts) == (3, 9.0, 400, 192)
    assert costs["sft"][1].tokens == 300, "a count per step is summed"
    assert costs["sft"][0] == 500, "asked for in the config"
    assert costs["bare"][1].to_dict() == {"steps": None, "seconds": None, "tokens": None, "rollouts": None}


def test_rollouts_are_counted_where_the_curve_does_not_say(tmp_path: Path) -> None:
    from audit.writing import write_rows

    folder = make_run(tmp_path / "grpo", LABELS, LABELS)
    (folder / "rollouts").mkdir()
    for step in (1, 2):
        write_rows(
            folder / "rollouts" / f"step-{step:06}.parquet", ["step", "text"], [(step, "a"), (step, "b")]
        )
    assert compared(tmp_path).runs[0].cost.rollouts == 4


# --- the band ---------------------------------------------------------------------------------------------------


@pytest.fixture
def dupes(tmp_path: Path) -> Path:
    from audit import audit_duplicates

    rows = [(f"t{i}", "1" if i % 3 else "0") for i in range(300)]
    rows += [
        (t, ("0" if label == "1" else "1") if i % 10 == 0 else label)
        for i, (t, label) in enumerate(rows[:200])
    ]
    import pandas as pd

    result = audit_duplicates(pd.DataFrame(rows, columns=["text", "label"]), item="text", label="label")
    path = tmp_path / "dupes.json"
    path.write_text(json.dumps(result.to_dict()))
    return path


def test_only_accuracy_against_labels_as_they_came_is_placed(runs: Path, dupes: Path) -> None:
    noisy = answers(LABELS, range(0, 200, 10))
    make_run(runs / "d", LABELS, LABELS, name="d", rung="x", noisy=noisy)
    c = compared(runs, audit=dupes)
    placed = {r.name: r.placement for r in c.runs}
    assert placed["sft-noisy"] is None
    found = placed["d"]
    assert found is not None
    assert found.score == pytest.approx(0.9)
    assert c.band is not None
    assert c.band.ceiling.lower == pytest.approx(0.9)  # 20 of 200 pairs disagree
    assert found.position == "inside"
    assert any("does not apply to scores against a clean key" in note for note in c.notes)
    assert "Scores in the ceiling band" in html(c)


def test_runs_without_a_clean_key_are_placed_and_warned_of(tmp_path: Path, dupes: Path) -> None:
    make_run(
        tmp_path / "r" / "a",
        LABELS,
        answers(LABELS, range(60)),
        config={"task": {"positive": "1", "clean": None}},
    )
    c = compared(tmp_path / "r", audit=dupes)
    assert c.key == "noisy"
    placement = c.runs[0].placement
    assert placement is not None
    assert placement.score == pytest.approx(0.7)
    assert placement.position == "below"
    assert any("The key is the labels as they came" in note for note in c.notes)


# --- the forms --------------------------------------------------------------------------------------------------


def test_all_forms_tell_the_same(runs: Path) -> None:
    c = compared(runs)
    data = json.loads(json.dumps(c.to_dict(), allow_nan=False))
    assert data["differences"][0]["difference"]["estimate"] == c.differences[0].difference.estimate
    assert "sources" not in data
    assert list(c.to_frame().columns)[:4] == ["run", "arm", "rung", "seed"]
    assert len(c.to_frame()) == 3 * 4
    page = " ".join(Page(html(c)).text.split())
    for shown in (text(c), markdown(c).replace("\\", ""), page):
        assert all(sentence in shown for sentence in c.verdict)
        assert "0.812" in shown


def test_hostile_names_stay_texts(tmp_path: Path) -> None:
    bad = "<img src=x onerror=alert(1)>|`*_\u202e"
    make_run(tmp_path / "a", LABELS, LABELS, name=bad, rung=bad)
    make_run(
        tmp_path / "b",
        LABELS,
        LABELS,
        rung="b",
        curve={"step": [1], "loss": [1.0], bad.replace(",", ""): [1]},
    )
    c = compared(tmp_path)
    assert "<img" not in html(c)
    assert "\u202e" not in html(c) + text(c) + markdown(c)
    row = next(line for line in markdown(c).splitlines() if line.startswith("| \\<img"))
    assert row.replace("\\|", "").count("|") == 12, "eleven cells"


def test_curves_are_drawn_where_they_were_logged(tmp_path: Path) -> None:
    make_run(tmp_path / "a", LABELS, LABELS, curve={"step": [1, 2, 3], "reward": [0.1, None, 0.3]})
    source = html(compared(tmp_path))
    assert "Mean reward by step" in source
    assert "Loss by step" not in source


def test_the_ladder_has_its_controls_and_its_traces_are_no_run(tmp_path: Path) -> None:
    for rung in ("sft-noisy", "sft-matched", "cot-sft"):
        make_run(tmp_path / f"{rung}-s0", LABELS, LABELS, rung=rung, parent="traces")
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "run.json").write_text('{"rung": "traces", "status": "finished"}')
    c = compared(tmp_path, baseline="sft-noisy-s0")
    assert [(d.arm, d.against) for d in c.differences] == [
        ("sft-matched-s0", "sft-noisy-s0"), ("cot-sft-s0", "sft-noisy-s0"), ("cot-sft-s0", "sft-matched-s0"),
    ]  # fmt: skip
    assert c.left_out == ()
    with pytest.raises(InputError, match="there are traces only"):
        compared(tmp_path / "traces")


def test_folders_that_runs_write_themselves_are_read(tmp_path: Path) -> None:
    pytest.importorskip("filelock", reason="run folders are locked with filelock")
    import pandas as pd

    from train.run_folder import RunFolder

    config = {"task": {"positive": "1", "clean": "clean.csv", "train_rows": 64}, "run": {"seeds": [0]}}
    for name, wrong in (("sft-clean-s0", 20), ("grpo-s0", 10)):
        folder = RunFolder(tmp_path / name)
        parent = "sft-clean-s0" if name == "grpo-s0" else None
        folder.start(name=name, rung=name[:-3], seed=0, config=config, parent=parent, model="tiny")
        folder.log(step=1, loss=0.5, seconds=2.0, tokens=100)
        folder.log(step=2, loss=0.4, seconds=2.0, tokens=200, reward=0.3)
        frame = pd.DataFrame({"item": [f"i{i}" for i in range(200)], "label": LABELS})
        frame["prediction"] = answers(LABELS, range(wrong))
        frame["score"] = 0.5
        folder.scores("test", frame)
        folder.metrics("test", {"accuracy": 1 - wrong / 200})
        folder.finish()
    c = compared(tmp_path, metric="accuracy")
    assert c.left_out == ()
    assert [(r.name, r.rows, r.cost.tokens, r.cost.seconds) for r in c.runs] == [
        ("sft-clean-s0", 64, 200, 4.0), ("grpo-s0", 64, 200, 4.0),
    ]  # fmt: skip
    assert [(d.arm, d.against) for d in c.differences] == [("grpo-s0", "sft-clean-s0")]
    assert c.differences[0].difference.estimate == pytest.approx(0.05)
    assert c.differences[0].p_value == pytest.approx(2 / 2**10)
