"""The plumbing report finds what was planted in simulated rollouts, and nothing in clean ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from audit.errors import ArgumentError, ColumnError, InputError
from tests.command import run, write_csv
from tests.made_rollouts import Plan, make_rollouts
from train.plumbing import plumbing_report
from train.plumbing_checks import check_rollouts
from train.plumbing_findings import find
from train.plumbing_join import plain_key
from train.plumbing_length import length_tax, mean_of
from train.plumbing_page import html
from train.plumbing_pool import group_table, pool_report
from train.plumbing_results import Finding, PlumbingReport, Pool
from train.rollouts import read_rollouts

CONFLICT_COLUMNS = ["conflict", "disagreement", "labels", "majority", "resolve", "row", "label", "text"]


def conflict_file(folder: Path, items: list[str]) -> Path:
    """As audit dupes --conflicts writes it: two rows an item."""
    rows = [
        (n, 1.0, "0: 1 | 1: 1", "", "relabel", 2 * n + k, str(k), item)
        for n, item in enumerate(items, 1)
        for k in (0, 1)
    ]
    return write_csv(folder / "conflicts.csv", CONFLICT_COLUMNS, rows)


def report_of(plan: Plan, folder: Path, *, seed: int) -> PlumbingReport:
    frame, contested = make_rollouts(plan, seed=seed)
    return plumbing_report(frame, conflicts=conflict_file(folder, contested))


def codes(report: PlumbingReport) -> list[str]:
    return [finding.code for finding in report.findings]


# --- what is planted is found, and nothing else ------------------------------------------------------------------

PLANTED = {
    "cap": ["cap-tax"],
    "cut left out": [],
    "gate": ["gate-tax"],
    "long is worse": ["long-scores-lower"],
    "drift": ["pool-drift"],
    "mix": ["pool-mix"],
    "contested": ["pool-contested"],
    "quoted tag": ["several-tags"],
    "unpaid": ["right-unpaid"],
    "paid": ["wrong-paid"],
    "filtered": [],
}


@pytest.mark.parametrize("mechanism", PLANTED)
def test_what_is_planted_is_found(mechanism: str, tmp_path: Path) -> None:
    plan = Plan(steps=8, groups=64, items=300, planted=(mechanism,))  # type: ignore[arg-type]
    for seed in (11, 12):
        assert codes(report_of(plan, tmp_path, seed=seed)) == PLANTED[mechanism]


@pytest.mark.parametrize("planted", ["cap", "gate"])
def test_without_cuts_nothing_is_blamed_on_the_gate_alone(planted: str, tmp_path: Path) -> None:
    plan = Plan(steps=8, groups=64, items=300, planted=(planted,))  # type: ignore[arg-type]
    frame, _ = make_rollouts(plan, seed=11)
    frame = frame.drop(columns=["truncated"])
    (found,) = [f for f in plumbing_report(frame).findings if f.code == "gate-tax"]
    assert "the gate, or the cap (cuts are not known), taxes" in found.message
    assert "finished" not in found.message
    assert "--cap and --tokenizer" in found.action
    open_ = plumbing_report(frame.drop(columns=["closed"]), close_tag="")
    (found,) = [f for f in open_.findings if f.code == "long-scores-lower"]
    assert found.message.endswith("scores lower here; what was cut and what was closed is not known.")
    assert "no cap and no gate" not in found.action


def test_a_cap_without_tokens_to_hold_it_against_says_what_is_missing() -> None:
    frame, _ = make_rollouts(Plan(steps=2, groups=4, items=8), seed=1)
    frame = frame.drop(columns=["truncated", "length"])
    assert any("(--cap and --tokenizer tell it)" in note for note in read_rollouts(frame).notes)
    notes = read_rollouts(frame, cap=500).notes
    assert any("the cap of 500 is in tokens and lengths are not (--tokenizer)" in note for note in notes)


def test_several_mechanisms_at_once(tmp_path: Path) -> None:
    plan = Plan(steps=12, groups=64, items=400, planted=("cap", "contested", "quoted tag", "paid"))
    assert codes(report_of(plan, tmp_path, seed=2)) == [
        "cap-tax",
        "several-tags",
        "wrong-paid",
        "pool-contested",
    ]


def pool_of(frame: pd.DataFrame) -> Pool:
    """The pool of simulated rollouts."""
    frame = read_rollouts(frame, close_tag="").frame
    frame["cluster"], frame["key"] = pd.factorize(frame["item"])[0], frame["item"]
    return pool_report(group_table(frame), contested=None, data=None, cuts_known=True, level=0.95)


def quick_findings(plan: Plan, *, seed: int) -> tuple[Finding, ...]:
    """The findings of a report, without its tables: a tenth of the time."""
    frame, contested = make_rollouts(plan, seed=seed, texts=False)
    frame = read_rollouts(frame, close_tag="").frame
    frame["cluster"], frame["key"] = pd.factorize(frame["item"])[0], frame["item"]
    pool = pool_report(group_table(frame), contested=set(contested), data=None, cuts_known=True, level=0.95)
    return find(
        truncated=mean_of(frame, "truncated", level=0.95, share=True),
        tax=length_tax(frame, level=0.95),
        caps=(),
        pool=pool,
        checks=check_rollouts(frame, close_tag=""),
    )


@pytest.mark.slow
def test_clean_rollouts_have_no_findings() -> None:
    """At most 1 % of clean reports may find something: of 200, more than 7 would have a chance below .001."""
    plans = (
        Plan(steps=8, groups=40, items=160),
        Plan(steps=8, groups=40, items=160, planted=("cut left out",)),
        Plan(steps=8, groups=40, items=500, share=0.15),
        Plan(steps=5, groups=30, items=60, size=4, contested=0.05),
    )
    found = [quick_findings(plans[seed % 4], seed=seed) for seed in range(200)]
    assert sum(map(bool, found)) <= 7


def test_the_quick_findings_are_those_of_the_report(tmp_path: Path) -> None:
    plan = Plan(steps=8, groups=40, items=160, planted=("cap", "contested"))
    assert [one.code for one in quick_findings(plan, seed=3)] == codes(report_of(plan, tmp_path, seed=3))


def test_tests_of_clean_rollouts_keep_their_level() -> None:
    """p values, not findings: without the thresholds of effect and Holm's rule each test errs at its level."""
    small = {"mix": 0, "drift": 0}
    for seed in range(40):
        frame, _ = make_rollouts(Plan(steps=5, groups=40, items=100, size=4), seed=seed, texts=False)
        pool = pool_of(frame)
        small["mix"] += (pool.mix.p_value or 0.0) <= 0.05
        small["drift"] += (pool.drift.p_value or 0.0) <= 0.05
    assert all(count <= 8 for count in small.values())  # 2 expected; more than 8 has a chance below .001


def test_a_steady_difference_is_no_drift() -> None:
    """The statistic of drift has the mean 1 of its chi-square; without the steady part taken off it would be 1.6."""
    chi = []
    for seed in range(5000, 5060):
        frame, _ = make_rollouts(
            Plan(steps=15, groups=32, items=240, share=0.3, planted=("mix",)), seed=seed, texts=False
        )
        pool = pool_of(frame)
        assert pool.mix.p_value is not None
        assert pool.mix.p_value < 0.001
        chi.append(stats.chi2.isf(pool.drift.p_value or 0.0, 1))
    assert np.mean(chi) < 1.35


def test_a_change_of_what_is_shown_is_no_drift_of_the_pool() -> None:
    rng = np.random.default_rng(3)
    steps, groups = 20, 32
    label = (
        rng.random((steps, groups)) < np.linspace(0.1, 0.9, steps)[:, None]
    )  # class 1 is shown more and more
    right = rng.random((steps, groups, 6)) < 0.8
    index = pd.MultiIndex.from_product(
        [range(steps), range(groups), range(6)], names=["step", "group", "sample"]
    )
    frame = pd.DataFrame(
        {"label": np.repeat(label.ravel(), 6).astype(int).astype(str)}, index=index
    ).reset_index()
    frame["item"] = (frame["step"] * groups + frame["group"]).astype(str)
    frame["reward"] = right.ravel().astype(float)
    report = plumbing_report(frame)
    assert codes(report) == []
    assert report.steps[-1].classes["1"] > report.steps[0].classes["1"] + 0.5


# --- numbers with their derivation -----------------------------------------------------------------------------


def tiny() -> pd.DataFrame:
    """Two steps of two groups of two; one rollout is cut at 8 tokens, one is long and not closed."""
    columns = [
        "step",
        "group",
        "item",
        "label",
        "length",
        "truncated",
        "closed",
        "answer",
        "reward",
        "advantage",
        "text",
    ]
    rows = [
        (1, 0, "a", "1", 2, False, True, "1", 1.0, 0.5, "t</think>1"),
        (1, 0, "a", "1", 8, True, False, None, 0.0, -0.5, "t"),
        (1, 1, "b", "0", 3, False, True, "1", 0.0, 0.0, "t</think>1"),
        (1, 1, "b", "0", 4, False, False, "0", 0.0, 0.0, "t"),
        (2, 0, "a", "1", 3, False, True, "1", 1.0, 0.0, "</think></think>1"),
        (2, 0, "a", "1", 5, False, True, "1", 1.0, 0.0, "t</think>1"),
        (2, 1, "c", "0", 4, False, True, "1", 1.0, 0.5, "t</think>1"),
        (2, 1, "c", "0", 6, False, True, "0", 0.0, -0.4, "t</think>0"),
    ]
    return pd.DataFrame(rows, columns=columns)


def test_every_count_of_a_tiny_run() -> None:
    report = plumbing_report(tiny(), bands=(0, 4, 8))
    source = report.source
    assert (source.rollouts, source.groups, source.group_size, source.steps, source.items) == (8, 4, 2, 2, 3)
    assert (source.cap, source.length_unit) == (8.0, "tokens")
    assert report.truncated is not None
    assert report.truncated.estimate == 1 / 8
    short, long = report.bands
    # up to 4: 2, 3, 4, 3, 4 (rewards 1, 0, 0, 1, 1; 4 of 5 closed); above: 8 (cut), 5, 6 (rewards 0, 1, 0)
    assert (short.low, short.high, short.rollouts, short.finished) == (0, 4, 5, 5)
    assert (long.low, long.high, long.rollouts, long.finished) == (4, 8, 3, 2)
    assert [getattr(part, "estimate", None) for part in (short.reward, short.closed, short.finished_reward)] == [
        0.6, 0.8, 0.6,
    ]  # fmt: skip
    assert [getattr(part, "estimate", None) for part in (long.reward, long.truncated, long.finished_reward)] == [
        pytest.approx(1 / 3), pytest.approx(1 / 3), 0.5,
    ]  # fmt: skip
    # finished less their group's finished mean: 1-1, 0-0, 0-0, 1-1, 1-.5 | 1-1, 0-.5
    assert short.finished_within is not None
    assert long.finished_within is not None
    assert (short.finished_within.estimate, long.finished_within.estimate) == (0.1, -0.25)
    tax, pool, checks = report.tax, report.pool, report.checks
    assert (tax.lowest, tax.highest) == (0.0, 1.0)
    assert tax.cut_lowest is not None
    assert tax.cut_lowest.estimate == 1.0
    assert tax.finished_lowest is not None
    assert tax.finished_lowest.estimate == pytest.approx(3 / 7)
    assert tax.cut.estimate == -1.0  # group a of step 1 alone has both
    # informative: a in step 1 (only for its cut rollout) and c; uniform: b at the lowest, a in step 2 above it
    assert pool.informative is not None
    assert pool.informative.estimate == 0.5
    assert (pool.only_cut, pool.uniform_lowest, pool.uniform_other) == (1, 1, 1)
    zero, one = pool.classes
    assert (zero.value, zero.data, one.data) == (
        "0",
        pytest.approx(2 / 3),
        pytest.approx(1 / 3),
    )  # b, c and a
    assert zero.seen is not None
    assert zero.informative is not None
    assert (zero.seen.estimate, zero.informative.estimate) == (0.5, 0.5)
    assert (checks.several_tags, checks.several_tags_paid, checks.several_tags_closed) == (1, 1, 1)
    assert (checks.answered, checks.right_unpaid, checks.wrong_paid) == (7, 1, 1)
    assert (checks.groups_of_one, checks.uneven_groups, checks.uncentred_groups) == (0, 0, 1)
    assert codes(report) == ["several-tags", "right-unpaid", "wrong-paid", "advantage-not-centred"]
    assert [cap.estimate for cap in report.caps] == [4, None, None, None]  # 7 of 8 end within 6


def test_the_frame_has_a_row_for_each_step() -> None:
    frame = plumbing_report(tiny()).to_frame()
    assert frame["step"].tolist() == [1, 2]
    assert frame["reward"].tolist() == [0.25, 0.75]
    assert frame["truncated"].tolist() == [0.25, 0.0]
    assert frame["informative_groups"].tolist() == [1, 1]
    assert frame["informative: 1"].tolist()[0] == 1.0
    assert frame["seen: 1"].tolist() == [0.5, 0.5]


def test_odd_groups_are_told() -> None:
    frame = tiny().iloc[:-1]
    report = plumbing_report(
        pd.concat([frame, frame.iloc[:2].assign(step=3), frame.iloc[[0]].assign(step=3)])
    )
    assert report.checks.groups_of_one == 1  # c has lost one
    assert report.checks.uneven_groups == 2  # and a of step 3 has three
    assert {"group-of-one", "uneven-groups"} <= set(codes(report))


# --- what must not matter ------------------------------------------------------------------------------------------


def numbers(report: PlumbingReport) -> dict[str, object]:
    return json.loads(json.dumps(report.to_dict()), parse_float=lambda text: round(float(text), 9))


@settings(max_examples=5)
@given(st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(random: object) -> None:
    frame, _ = make_rollouts(Plan(steps=4, groups=8, size=4, items=24, planted=("cap", "gate")), seed=5)
    order = list(range(len(frame)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert numbers(plumbing_report(frame.iloc[order])) == numbers(plumbing_report(frame))


def test_a_file_and_its_frame_give_one_report(tmp_path: Path) -> None:
    frame, _ = make_rollouts(Plan(steps=3), seed=5)
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    wanted = numbers(plumbing_report(frame))
    for name in ("a.parquet", "a.jsonl"):
        found = numbers(plumbing_report(tmp_path / name))
        assert {**found, "source": None} == {**wanted, "source": None}


def test_a_scale_of_the_reward_does_not_matter() -> None:
    frame, _ = make_rollouts(Plan(steps=8, planted=("cap", "gate")), seed=5)
    other = plumbing_report(frame.assign(reward=frame["reward"] * 4 - 2))
    assert codes(other) == codes(plumbing_report(frame))
    assert other.tax.lowest == -2
    assert "score the lowest reward (-2)" in other.findings[0].message


# --- what the log does not hold -----------------------------------------------------------------------------------


def test_a_log_of_rewards_alone() -> None:
    frame, _ = make_rollouts(Plan(steps=4), seed=5)
    report = plumbing_report(frame[["step", "group", "item", "reward"]])
    assert report.bands == ()
    assert report.length is None
    assert report.caps_reason == "lengths, or what was cut, are not known"
    assert report.pool.classes == ()
    assert report.pool.mix.reason == "no labels were logged"
    assert report.checks.several_tags is None
    assert report.checks.uncentred_groups is None
    assert report.findings == ()
    assert "lengths unknown" in report.summary()
    assert html(report).startswith("<!")


def test_rollouts_without_any_reward() -> None:
    frame, _ = make_rollouts(Plan(steps=2), seed=5)
    with pytest.raises(InputError, match=r"no rollout has a reward.*--reward"):
        plumbing_report(frame.assign(reward=None))


def test_everything_was_cut() -> None:
    frame, _ = make_rollouts(Plan(steps=2), seed=5)
    report = plumbing_report(frame.assign(truncated=True, closed=False, answer=None, reward=0.0, length=64))
    assert report.caps_reason == "every rollout was cut"
    assert codes(report) == ["cap-tax"]
    assert report.findings[0].p_value is None
    assert report.findings[0].message.startswith(
        "100% of capped rollouts score zero: the reward taxes length."
    )
    assert report.summary()


def test_graded_rewards_are_not_set_against_answers() -> None:
    frame, _ = make_rollouts(Plan(steps=2), seed=5)
    graded = frame.assign(reward=frame["reward"] + np.arange(len(frame)) % 3 / 10)
    assert (
        plumbing_report(graded).checks.reason
        == "rewards take 6 values: right and wrong answers cannot be told from them"
    )


# --- with the data and its conflicts --------------------------------------------------------------------------------


def test_the_conflict_file_of_audit_dupes(tmp_path: Path) -> None:
    frame, contested = make_rollouts(Plan(steps=12, groups=48, items=300, planted=("contested",)), seed=4)
    label = frame.drop_duplicates("item").set_index("item")["label"]
    rows = [(name, "q", one) for name, one in label.items()]
    rows += [(f"  {name.upper()} ", "q", str(1 - int(label[name]))) for name in contested if name in label]
    data = write_csv(tmp_path / "data.csv", ["text", "question", "y"], rows)
    conflicts = tmp_path / "conflicts.csv"
    ran = run("dupes", data, "--item", "text,question", "--label", "y", "--conflicts", conflicts)
    assert ran.code == 0, ran.err
    frame["item"] = [json.dumps([name, "q"], separators=(",", ":")) for name in frame["item"]]
    report = plumbing_report(frame, conflicts=conflicts, data=data, label="y")
    assert codes(report) == ["pool-contested"]
    share = report.pool.contested
    assert share is not None
    assert share.data == pytest.approx(len(set(contested) & set(label.index)) / len(label))
    assert (report.pool.data, report.pool.contested_data) == ("the data", "items seen, each once")
    counts = pd.Series([row[2] for row in rows]).value_counts(normalize=True)
    assert report.pool.classes[0].data == pytest.approx(counts["0"])
    by_text = plumbing_report(
        frame.assign(item=[json.loads(name)[0] for name in frame["item"]]),
        conflicts=conflicts,
        item=("text",),
        data=data,
        label="y",
    )
    assert codes(by_text) == ["pool-contested"]
    assert by_text.pool.contested_data == "the data"
    assert by_text.pool.contested == share  # every item of the data was seen


def test_labels_come_from_the_data_where_none_were_logged(tmp_path: Path) -> None:
    frame, _ = make_rollouts(Plan(steps=12, groups=48, items=300, planted=("mix",)), seed=4)
    rows = list(frame.drop_duplicates("item")[["item", "label"]].itertuples(index=False, name=None))
    data = write_csv(tmp_path / "data.csv", ["text", "label"], rows)
    report = plumbing_report(frame.drop(columns=["label", "answer"]), data=data, item=("text",))
    assert codes(report) == ["pool-mix"]
    assert "100% of the rollouts got their label from the data, by item" in report.source.notes


def test_a_filtered_log_is_set_against_the_data(tmp_path: Path) -> None:
    frame, _ = make_rollouts(Plan(steps=12, groups=48, items=300, planted=("mix", "filtered")), seed=4)
    alone = plumbing_report(frame)
    assert alone.pool.filtered
    assert "--data" in (alone.pool.mix.reason or "")
    assert codes(alone) == []
    data = write_csv(tmp_path / "data.csv", ["text", "label"], [(f"t{n}", n % 2) for n in range(500)])
    report = plumbing_report(frame, data=data)
    assert codes(report) == ["pool-mix"]
    assert "of the data" in report.findings[0].message


def test_conflicts_that_do_not_fit(tmp_path: Path) -> None:
    frame, contested = make_rollouts(Plan(steps=2), seed=5)
    path = conflict_file(tmp_path, contested)
    with pytest.raises(InputError, match=r"none of its .* is in the rollouts"):
        plumbing_report(frame.assign(item=frame["item"] + "x"), conflicts=path)
    with pytest.raises(ColumnError, match="nothing"):
        plumbing_report(frame, conflicts=path, item=("nothing",))
    with pytest.raises(ColumnError, match="the conflict file"):
        plumbing_report(
            frame, conflicts=write_csv(tmp_path / "b.csv", ["text", "label"], [("a", "b"), ("c", "d")])
        )


def test_options_out_of_range() -> None:
    with pytest.raises(ArgumentError, match="at least one band"):
        plumbing_report(tiny(), bands=0)
    with pytest.raises(ArgumentError, match="must rise"):
        plumbing_report(tiny(), bands=(3, 2))
    with pytest.raises(ArgumentError, match="confidence level"):
        plumbing_report(tiny(), level=1.0)
    with pytest.raises(ColumnError, match="--label"):
        plumbing_report(tiny(), label="nothing")


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("Two  Words\n", "two words", True),
        ("e\u0301", "\u00e9", True),
        ('["A ","b"]', '["a","b"]', True),
        ('["a","b"]', '["a b"]', False),
        ('["a"', '["a"', True),
    ],
)
def test_keys_are_compared_as_the_audit_does(left: str, right: str, same: bool) -> None:
    assert (plain_key(left) == plain_key(right)) is same


def test_results_are_plain(tmp_path: Path) -> None:
    report = report_of(Plan(steps=3), tmp_path, seed=1)
    text = json.dumps(report.to_dict(), allow_nan=False)
    assert json.loads(text)["source"]["form"] == "ours"
    assert read_rollouts(tiny()).has("label")


def test_data_that_does_not_fit_is_told(tmp_path: Path) -> None:
    frame, _ = make_rollouts(Plan(steps=2), seed=5)
    names = sorted(set(frame["item"]))
    other = write_csv(tmp_path / "other.csv", ["text", "label"], [(f"{name} x", "1") for name in names])
    with pytest.raises(
        InputError, match=rf"none of its {len(names)} items is in the rollouts; .* with --item"
    ):
        plumbing_report(frame, data=other, item=("text",))
    assert (
        plumbing_report(frame, data=other).source.notes == plumbing_report(frame).source.notes
    )  # for its classes only
    some = write_csv(tmp_path / "some.csv", ["text", "label"], [(name, "yes") for name in names[3:]])
    notes = plumbing_report(frame, data=some, item=("text",)).source.notes
    assert f"3 of {len(names)} items seen are not in the data" in notes
    assert "the data have other labels (yes) than the rollouts (0, 1): is --label right?" in notes
