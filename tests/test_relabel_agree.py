"""The audit of the pipeline: measured figures meet what the scripted judges imply."""

import csv
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from audit.errors import ArgumentError, ColumnError
from relabel.agree import audit_pipeline, draw_sample, other_orders
from relabel.agree_measure import measure, paired_difference
from relabel.connect import Settings
from relabel.prompts import system_text
from relabel.rehearse import Fault, Profile, RehearsalServer, Script
from relabel.rehearse_script import item_key
from relabel.rehearse_serve import read_truth
from relabel.rubric import Rubric
from relabel.run import Job
from tests.command import run, write_csv
from tests.conftest import ROOT
from tests.relabel_kit import (
    RUBRIC,
    RUBRIC_TEXT,
    make_job,
    read_table,
    scripts,
    text_of,
    truth,
    truth_of,
)

pytestmark = pytest.mark.usefixtures("endpoint_key")


def near(found, implied, *, items, z=4.0):
    """Whether a share over ``items`` is within sampling error of what is implied."""
    return abs(found - implied) <= z * math.sqrt(implied * (1 - implied) / items) + 1 / items


# --- the sample ------------------------------------------------------------------------------------------------


def test_every_item_has_the_same_chance_and_every_stratum_its_share():
    strata = {
        ("judge", "a"): range(1, 71),
        ("judge", "b"): range(71, 96),
        ("adjudicator", "a"): range(96, 101),
    }
    seen = Counter()
    for seed in range(2000):
        drawn = draw_sample(strata, 30, rng=np.random.default_rng(seed))
        assert len(set(drawn)) == 30
        assert drawn == tuple(sorted(drawn))
        assert sum(item <= 70 for item in drawn) == 21
        assert 7 <= sum(70 < item <= 95 for item in drawn) <= 8
        seen.update(drawn)
    frequency = np.array([seen[item] for item in range(1, 101)]) / 2000
    assert np.all(np.abs(frequency - 0.3) < 4.5 * math.sqrt(0.3 * 0.7 / 2000))


def test_a_sample_larger_than_the_frame_is_the_frame_and_the_seed_fixes_it():
    strata = {("judge", "a"): [3, 5, 9], ("judge", "b"): [4]}
    assert draw_sample(strata, 10, rng=np.random.default_rng(0)) == (3, 4, 5, 9)
    assert draw_sample({}, 10, rng=np.random.default_rng(0)) == ()
    many = {("judge", "a"): range(1000)}
    first, again, other = (draw_sample(many, 50, rng=np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == again != other


def test_other_orders_turn_two_labels_round_and_never_repeat_the_last():
    orders = other_orders(RUBRIC, seed=7)
    first = next(orders)
    listed = system_text(RUBRIC, shuffle_seed=first).split("# Labels")[1]
    assert listed.index('- "sun"') < listed.index('- "rain"')
    last = system_text(RUBRIC, shuffle_seed=first)
    for _ in range(10):
        text = system_text(RUBRIC, shuffle_seed=next(orders))
        assert text != last
        last = text
    assert next(other_orders(RUBRIC, seed=7)) == first


# --- the measures ----------------------------------------------------------------------------------------------


def test_a_measure_by_hand():
    labels = {1: ["a", "a"], 2: ["a", "b"], 3: ["b", "b"], 4: ["b", "b"], 5: ["a"]}
    found = measure(
        labels, classes=("a", "b"), sources={1: "judge", 2: "judge", 3: "adjudicator", 4: "judge"}
    )
    assert (found.items, found.labels) == (4, 8)
    assert found.disagreement.estimate == 0.25
    assert found.flip_rate.estimate == pytest.approx((1 - math.sqrt(0.5)) / 2)
    assert (found.ceiling.lower, found.ceiling.upper) == (0.75, pytest.approx(1 - (1 - math.sqrt(0.5)) / 2))
    # shares 3/8 and 5/8: kappa = 1 - .25 / (1 - 9/64 - 25/64)
    assert found.agreement.kappa.estimate == pytest.approx(1 - 0.25 / (30 / 64))
    assert {part.value: (part.items, part.conflicts) for part in found.by_source} == {
        "adjudicator": (1, 0),
        "judge": (3, 1),
    }
    assert {part.value: part.estimate for part in found.by_class} == {
        "b": pytest.approx(0.2),
        "a": pytest.approx(1 / 3),
    }


def test_the_paired_difference_by_hand():
    old = {1: ["a", "b"], 2: ["a", "a"], 3: ["a", "b"], 4: ["b", "b"], 5: ["a"]}
    new = {1: ["a", "a"], 2: ["a", "a"], 3: ["a", "b"], 4: ["b", "b"], 5: ["a", "a"], 6: ["b", "a"]}
    found = paired_difference(old, new)
    assert found.estimate == 0.25  # of items 1 to 4; 5 has one old label, 6 none
    assert found.low < 0 < 0.25 < found.high
    assert paired_difference({1: ["a", "b"]}, new).estimate is None


def test_the_paired_interval_covers():
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(300):
        old = {n: ["a", "ab"[int(rng.random() < 0.2)]] for n in range(150)}
        new = {n: ["a", "ab"[int(rng.random() < 0.1)]] for n in range(150)}
        found = paired_difference(old, new)
        covered += found.low <= 0.1 <= found.high
    assert covered / 300 >= 0.93


@pytest.mark.shared_data
def test_public_llm_judges_show_that_self_agreement_is_not_accuracy(shared):
    with (shared / "data" / "llmbar" / "llmbar_vanilla_votes.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    figures = {}
    for name in ("GPT-4", "LLaMA2"):
        votes = {
            n: (
                [vote for vote in (row["vote_order1"], row["vote_order2"]) if vote in ("1", "2")],
                row["gold"],
            )
            for n, row in enumerate(rows)
            if row["evaluator"] == name
        }
        found = measure({n: given for n, (given, _) in votes.items()}, classes=("1", "2"))
        wrong = [vote != gold for given, gold in votes.values() for vote in given]
        figures[name] = (round(found.disagreement.estimate, 2), round(sum(wrong) / len(wrong), 2))
    assert figures == {"GPT-4": (0.07, 0.16), "LLaMA2": (0.25, 0.56)}  # as every report says


# --- whole audits on a rehearsal -------------------------------------------------------------------------------


def test_a_finished_run_is_audited_and_the_journal_keeps_it(tmp_path):
    with RehearsalServer(scripts(200)) as server:
        job = make_job(tmp_path, server.base_url, items=200, adjudicator="adjudicator", escalate="20%")
        job.run()
        before = server.counts()
        found = audit_pipeline(job, items=120)
        asked = server.counts().requests - before.requests
        again = audit_pipeline(job, items=120)
        assert server.counts().requests == before.requests + asked
        assert server.counts().repeated == before.repeated  # every fresh draw is a request of its own
    assert (found.items, found.frame, found.drawn, found.draws) == (200, 200, 120, 1)
    assert found.requests == asked
    assert found.repeated == 50  # the table's first 50 items have two rows
    assert again.requests == 0
    assert replace(again, requests=asked) == found
    assert sum(stratum.items for stratum in found.strata) == 200
    assert sum(stratum.drawn for stratum in found.strata) == 120
    assert found.new.items == 120
    assert found.new_same.items == found.old.items == 50
    assert found.exit_code == 0
    assert "order of the labels" in found.summary()
    assert "Self-agreement is not accuracy" in found.summary()
    assert found.to_dict()["new"]["disagreement"]["estimate"] == found.new.disagreement.estimate


def test_old_labels_are_measured_in_the_rubric_spelling_and_compared_on_the_same_items(tmp_path):
    rows = [(text_of(n), truth_of(n)) for n in range(60)]
    # of 40 items a second label: every fourth differs, the others are only spelled otherwise
    other = {"rain": "sun", "sun": "rain"}
    rows += [
        (text_of(n), other[truth_of(n)] if n % 4 == 0 else {"rain": "WET", "sun": " Sun"}[truth_of(n)])
        for n in range(40)
    ]
    rows += [(text_of(50), ""), (text_of(51), None)]
    write_csv(tmp_path / "data.csv", ["text", "label"], rows)
    with RehearsalServer(scripts(60, judge=0.0)) as server:
        job = make_job(tmp_path, server.base_url)
        job.run()
        found = audit_pipeline(job, items=60)
    assert found.repeated == 40
    assert found.old.disagreement.estimate == 0.25
    assert found.new_same.disagreement.estimate == 0.0
    assert found.difference.estimate == 0.25
    assert found.difference.low > 0.05
    assert any("Not one fresh draw differs" in line for line in found.warnings)


def test_strange_old_labels_are_classes_of_their_own_and_told(tmp_path):
    rows = [(text_of(n), truth_of(n)) for n in range(30)] + [(text_of(n), "maybe") for n in range(10)]
    write_csv(tmp_path / "data.csv", ["text", "label"], rows)
    with RehearsalServer(scripts(30)) as server:
        job = make_job(tmp_path, server.base_url)
        job.run()
        found = audit_pipeline(job, items=30)
    assert found.old.disagreement.estimate == 1.0
    assert found.old.flip_rate.classes == 3
    assert any("maybe" in line for line in found.warnings)


@pytest.mark.parametrize(("label", "told"), [(None, "--label COLUMN"), ("label", "no labelled item has two")])
def test_without_repeated_old_labels_the_reason_is_told(tmp_path, label, told):
    write_csv(tmp_path / "data.csv", ["text", "label"], [(text_of(n), truth_of(n)) for n in range(30)])
    with RehearsalServer(scripts(30)) as server:
        job = make_job(tmp_path, server.base_url, label=label)
        job.run()
        found = audit_pipeline(job, items=20)
    assert found.old is None
    assert found.repeated == 0
    assert told in found.old_reason
    assert told in found.summary()


def test_nothing_varied_measures_nothing_and_says_so(tmp_path):
    with RehearsalServer(
        scripts(60, judge=0.3), profile=Profile(seed="no")
    ) as server:  # and temperature is 0
        job = make_job(tmp_path, server.base_url)
        job.run()
        fixed = audit_pipeline(job, items=60, shuffle=False)
        shuffled = audit_pipeline(job, items=60)
    assert fixed.new.disagreement.estimate == 0.0
    assert any("they measure nothing" in line for line in fixed.warnings)
    assert fixed.varied == ("the draw: temperature 0, no seed, as it takes none",)
    assert (
        shuffled.new.disagreement.estimate > 0.1
    )  # the scripted judge is swayed by any change of the prompt
    assert any("only" in line or "how far the order" in line for line in shuffled.warnings)


def test_a_temperature_above_zero_is_told_and_not_warned_of(tmp_path):
    with RehearsalServer(scripts(30)) as server:
        job = make_job(tmp_path, server.base_url, settings=Settings(concurrency=8, temperature=0.7))
        job.run()
        found = audit_pipeline(job, items=20)
    assert found.temperature == 0.7
    assert "temperature 0.7" in found.varied[0]
    assert not any("temperature 0 " in line for line in found.warnings)


def test_an_endpoint_that_takes_no_temperature_is_not_taken_for_a_cold_one(tmp_path):
    with RehearsalServer(scripts(30), profile=Profile(temperature="no")) as server:
        job = make_job(tmp_path, server.base_url)
        job.run()
        found = audit_pipeline(job, items=20)
    assert found.temperature is None
    assert "the endpoint's own temperature" in found.varied[0]
    assert not any("temperature 0 " in line for line in found.warnings)


def test_several_draws_give_several_labels_an_item(tmp_path):
    with RehearsalServer(scripts(60)) as server:
        job = make_job(tmp_path, server.base_url)
        job.run()
        found = audit_pipeline(job, items=40, draws=3)
    assert (found.draws, found.new.labels) == (3, 160)


def test_fresh_draws_without_a_verdict_are_counted_and_in_no_measure(tmp_path):
    with RehearsalServer(scripts(60)) as server:
        job = make_job(tmp_path, server.base_url)
        job.run()
        server.faults = [Fault(kind="refusal", share=0.3)]
        found = audit_pipeline(job, items=60)
    missing = found.without_verdict["refused"]
    assert 5 <= missing <= 35
    assert found.new.items == 60 - missing
    assert found.exit_code == 3
    assert f"refused {missing}" in found.summary()


def test_a_run_that_the_journal_does_not_hold_is_refused_before_anything_is_asked(tmp_path):
    with RehearsalServer(scripts(60)) as server:
        job = make_job(tmp_path, server.base_url)
        with pytest.raises(ArgumentError, match="run audit relabel run with the same options first"):
            audit_pipeline(job)
        job.run()
        asked = server.counts().requests
        with pytest.raises(ArgumentError, match="answers only 0 of 60 items"):
            audit_pipeline(replace(job, settings=Settings(seed=5)))
        assert server.counts().requests == asked


def test_bad_arguments_are_named(tmp_path):
    job = make_job(tmp_path, "http://127.0.0.1:9/v1")
    with pytest.raises(ArgumentError, match="--items"):
        audit_pipeline(job, items=1)
    with pytest.raises(ArgumentError, match="--draws"):
        audit_pipeline(job, draws=0)
    with pytest.raises(ArgumentError, match="--gold FILE"):
        audit_pipeline(job, gold_weight="w")


def test_a_judge_can_agree_with_itself_and_be_wrong(tmp_path):
    script = Script(
        truth=truth(150), labels=RUBRIC.label_names, error=0.02, bias={"rain": ("sun", 0.4)}, seed=1
    )
    write_csv(tmp_path / "gold.csv", ["text", "gold"], [(text_of(n), truth_of(n)) for n in range(100)])
    with RehearsalServer(script) as server:
        job = make_job(tmp_path, server.base_url, items=150, gold=tmp_path / "gold.csv")
        job.run()
        found = audit_pipeline(job, items=150)
    assert found.new.disagreement.estimate < 0.1
    assert found.gold.accuracy.high < 0.85
    assert found.gold.confusion["rain"]["sun"] > 10
    assert found.gold.recall["rain"].estimate < 0.75
    assert found.gold.calibration[0].p_value < 0.05
    # the counted share of rain is far too low; the corrected one is right (2/3 of the items are rain)
    shares = {share.label: share for share in found.gold.prevalence.shares}
    assert shares["rain"].counted < 0.55
    assert shares["rain"].low < 2 / 3 < shares["rain"].high
    assert found.gold.prevalence.items == 50
    assert "corrected by gold" in found.summary()


def test_gold_measures_pipeline_judge_and_old_labels_and_costs_nothing_for_items_of_the_table(tmp_path):
    write_csv(tmp_path / "gold.csv", ["text", "truth"], [(text_of(n), truth_of(n)) for n in range(120)])
    with RehearsalServer(scripts(120)) as server:
        job = make_job(tmp_path, server.base_url, items=120, adjudicator="adjudicator", escalate="30%")
        job.run()
        before = server.counts().requests
        found = audit_pipeline(replace(job, gold=tmp_path / "gold.csv"), items=20)
        assert server.counts().requests - before == found.requests
    rows = {row["text"]: row for row in read_table(tmp_path / "clean.csv")}
    right = sum(rows[text_of(n)]["label_clean"] == truth_of(n) for n in range(120))
    assert found.gold.accuracy.estimate == right / 120
    assert found.gold.accuracy.estimate >= found.gold.judge.estimate
    assert sum(sum(row.values()) for row in found.gold.confusion.values()) == 120
    assert {part.value: part.items for part in found.gold.by_source} == {"judge": 84, "adjudicator": 36}
    assert found.gold.prevalence is None  # no item is outside gold
    assert 0.8 < found.gold.old.estimate < 0.95


def test_gold_drawn_unevenly_takes_known_weights(tmp_path):
    script = Script(truth=truth(300), labels=RUBRIC.label_names, error=0.05, seed=3)
    rng = np.random.default_rng(8)
    drawn = [n for n in range(300) if rng.random() < (0.9 if truth_of(n) == "sun" else 0.3)]
    gold = [(text_of(n), truth_of(n), 1 / (0.9 if truth_of(n) == "sun" else 0.3)) for n in drawn]
    write_csv(tmp_path / "gold.csv", ["text", "gold", "w"], gold)
    with RehearsalServer(script) as server:
        job = make_job(tmp_path, server.base_url, items=300, gold=tmp_path / "gold.csv", gold_label="gold")
        job.run()
        found = audit_pipeline(job, items=20, gold_weight="w").gold.prevalence
        with pytest.raises(ColumnError, match="no column 'nosuch'"):
            audit_pipeline(job, items=20, gold_weight="nosuch")
        with pytest.raises(ArgumentError, match="is no weight"):
            audit_pipeline(job, items=20, gold_weight="text")
    rain = next(share for share in found.shares if share.label == "rain")
    assert rain.low < 2 / 3 < rain.high
    assert rain.gold_only == pytest.approx(2 / 3, abs=0.12)
    assert found.items == 300
    assert found.effective_gold < found.gold


def test_the_command_takes_the_options_of_a_run(tmp_path):
    (tmp_path / "rubric.md").write_text(RUBRIC_TEXT, "utf-8")
    with RehearsalServer(scripts(60)) as server:
        make_job(tmp_path, server.base_url)  # writes the table
        words = [
            tmp_path / "data.csv", "--rubric", tmp_path / "rubric.md", "--judge", "judge", "--base-url",
            server.base_url, "--out", tmp_path / "clean.csv", "--label", "label", "--concurrency", "8", "--quiet",
        ]  # fmt: skip
        assert run("relabel", "run", *words).code == 0
        told = run("relabel", "agree", *words, "--items", "30")
        assert told.code == 0
        assert told.out.startswith("30 of 60 labelled items")
        again = run("relabel", "agree", *words, "--items", "30", "--format", "json")
        assert again.json["drawn"] == 30
        assert again.json["requests"] == 0
        assert run("relabel", "agree", *words, "--items", "30", "--seed", "3").code == 2


# --- the bar: known judges on the example data -----------------------------------------------------------------


@pytest.mark.slow
def test_self_agreement_on_the_example_is_what_the_scripts_imply(tmp_path):
    inputs = ("passage", "entity", "driver")
    known = read_truth(ROOT / "examples" / "risk_driver_truth.csv", item=inputs, label="truth")
    judge, adjudicator = Script(truth=known, error=0.10, seed=1), Script(truth=known, error=0.03, seed=2)
    with RehearsalServer({"judge": judge, "adjudicator": adjudicator}) as server:
        job = Job(
            source=ROOT / "examples" / "risk_driver.csv",
            rubric=Rubric.load(ROOT / "examples" / "risk_driver_rubric.md"),
            judge="judge",
            adjudicator="adjudicator",
            base_url=server.base_url,
            out=tmp_path / "clean.csv",
            label="label",
            settings=Settings(concurrency=32),
        )
        job.run()
        gold = ROOT / "examples" / "risk_driver_truth.csv"
        found = audit_pipeline(replace(job, gold=gold, gold_label="truth"), items=1000)
    moved = {
        item_key(row[n] for n in inputs): row["label_source"] for row in read_table(tmp_path / "clean.csv")
    }
    errors = [(adjudicator if moved[item] == "adjudicator" else judge).error_of(item) for item in known]
    # two draws of one item, each wrong with its x, differ with chance 2x(1 - x)
    implied_d = sum(2 * x * (1 - x) for x in errors) / len(errors)
    implied_accuracy = 1 - sum(errors) / len(errors)
    # in closed form: kept .85^5/5 - .85^9/18, escalated .15 (2 * .03 - 2 * .25/(2k + 1)), k = 1/.06 - 1
    closed = 0.85**5 / 5 - 0.85**9 / 18 + 0.15 * (0.06 - 0.5 / (2 / 0.06 - 1))
    assert implied_d == pytest.approx(closed, abs=0.006)
    assert near(found.new.disagreement.estimate, implied_d, items=1000)
    assert near(found.new_same.disagreement.estimate, implied_d, items=345)
    assert near(found.gold.accuracy.estimate, implied_accuracy, items=6221)
    assert found.new.disagreement.low < implied_d < found.new.disagreement.high
    # the true ceiling against draws of this pipeline, E[max p], lies in the band
    assert found.new.ceiling.low < implied_accuracy < found.new.ceiling.high
    assert found.repeated == 345
    assert round(found.old.disagreement.estimate, 4) == 0.1807  # as audit dupes says of the old labels
    assert found.difference.low > 0
    assert found.gold.accuracy.estimate > found.gold.judge.estimate > found.gold.old.estimate
