"""The whole pipeline on the example data, with judges whose errors are known: measured figures meet implied ones."""

import math

import pytest

from relabel.connect import Settings
from relabel.rehearse import RehearsalServer, Script
from relabel.rehearse_script import item_key
from relabel.rehearse_serve import read_truth
from relabel.rubric import Rubric
from relabel.run import Job
from tests.conftest import ROOT
from tests.relabel_kit import KEY, read_table

EXAMPLES = ROOT / "examples"
INPUTS = ("passage", "entity", "driver")


def within(count, probabilities, *, z=4.0):
    """Whether a count of successes is near its expectation: independent trials with these probabilities."""
    mean = math.fsum(probabilities)
    return abs(count - mean) <= z * math.sqrt(math.fsum(p * (1 - p) for p in probabilities)) + 1


@pytest.mark.slow
def test_clean_labels_are_as_good_as_the_scripts_imply(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    truth = read_truth(EXAMPLES / "risk_driver_truth.csv", item=INPUTS, label="truth")
    judge = Script(truth=truth, error=0.10, seed=1)
    adjudicator = Script(truth=truth, error=0.03, seed=2)
    assert len(truth) == 6221
    with RehearsalServer({"judge": judge, "adjudicator": adjudicator}) as server:
        job = Job(
            source=EXAMPLES / "risk_driver.csv",
            rubric=Rubric.load(EXAMPLES / "risk_driver_rubric.md"),
            judge="judge",
            adjudicator="adjudicator",
            base_url=server.base_url,
            out=tmp_path / "clean.csv",
            label="label",
            settings=Settings(concurrency=32),
        )
        result = job.run()
        assert server.counts().by_model == {"judge": 6221, "adjudicator": 933}
    assert (result.items, result.escalated, result.exit_code) == (6221, 933, 0)
    rows = read_table(tmp_path / "clean.csv")
    items = {item_key(row[name] for name in INPUTS): row for row in rows}
    assert items.keys() == truth.keys()

    # The least sure are those most likely to be wrong (confidence is 1 - x), so the 933 largest x are escalated.
    hardest = set(sorted(truth, key=judge.error_of)[-933:])
    moved = {key for key, row in items.items() if row["label_source"] == "adjudicator"}
    assert moved == hardest
    right = [1 - (adjudicator if key in moved else judge).error_of(key) for key in items]
    correct = sum(row["label_clean"] == truth[key] for key, row in items.items())
    assert within(correct, right)
    # Of a judge's mean error e = 1/(2(k+1)), x = u^k/2, the share s of smallest x holds e s^(k+1) (the integral of
    # u^k/2 up to s): kept .10 * .85^5 = .0444, escalated .15 * .03. Together .0489, against .10 for the judge alone.
    assert math.fsum(right) / 6221 == pytest.approx(1 - 0.10 * 0.85**5 - 0.15 * 0.03, abs=0.006)
    alone = sum(judge.answer(_asked(job, row), draw=0).label == truth[key] for key, row in items.items())
    assert correct > alone

    old = sum(row["label"] == truth[item_key(row[name] for name in INPUTS)] for row in rows) / len(rows)
    new = sum(row["label_clean"] == truth[item_key(row[name] for name in INPUTS)] for row in rows) / len(rows)
    assert new - old > 0.02
    assert result.kept / result.compared == pytest.approx(
        sum(row["label"] == row["label_clean"] for row in rows) / len(rows)
    )


def _asked(job, row):
    from relabel.prompts import messages

    return messages(job.rubric, {name: row[name] for name in INPUTS})
