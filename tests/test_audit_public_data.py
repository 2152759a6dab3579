"""The public label sets, to the digits printed in their README."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.command import run, write_csv

pytestmark = pytest.mark.shared_data


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def audit(*words: Any) -> Any:
    ran = run("dupes", *words, "--format", "json")
    assert ran.code == 0, ran.err
    return ran.json


def d_and_rate(found: Any) -> tuple[float, float | None]:
    rate = found["flip_rate"]["estimate"]
    return round(found["disagreement"]["estimate"], 6), None if rate is None else round(rate, 6)


#: The table that shows what the audit says of these sets.
PAGE = (Path(__file__).parents[1] / "docs" / "crowd.md").read_text("utf-8")


def crowd_row(name: str, found: Any) -> str:
    """A row of the table in docs/crowd.md."""

    def ends(part: Any) -> str:
        return f"{part['lower']:.3f} to {part['upper']:.3f} ({part['low']:.3f} to {part['high']:.3f})"

    band, error = found["ceiling"], found["gold"]["error"]
    cells = [
        name, f"{found['repeats']['items']:,}", f"{found['disagreement']['estimate']:.4f}",
        f"{found['flip_rate']['estimate']:.4f}", f"{error['estimate']:.4f} ({error['low']:.3f} to {error['high']:.3f})",
        ends(band), ends(band["moments"]), ", ".join(alarm["code"] for alarm in found["alarms"]) or "none",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


@pytest.mark.parametrize(
    ("name", "items", "d", "rate", "pairs", "conflicts", "true_error"),
    [
        ("bluebird", 108, 0.411806, 0.290007, 80_028, 108, 0.3644),
        ("dog", 807, 0.358860, 0.208377, 36_315, 725, 0.3036),
        ("SP_amt", 500, 0.131168, 0.070563, 95_000, 287, 0.1065),
        ("d_jn-product", 8_315, 0.274524, 0.164235, 24_945, 3_424, 0.1837),
        ("fact_eval", 42_624, 0.134493, 0.071031, 444_509, 11_841, 0.1074),
    ],
)
def test_crowd(
    name: str, items: int, d: float, rate: float, pairs: int, conflicts: int, true_error: float, shared: Path
) -> None:
    folder = shared / "data" / "crowd" / name
    found = audit(
        folder / "label.csv", "--item", "item", "--label", "label", "--annotator", "worker", "--errors",
        "--gold", folder / "truth.csv",
    )  # fmt: skip
    repeats = found["repeats"]
    assert (repeats["pairs"], repeats["conflicts"]) == (pairs, conflicts)
    assert repeats["items"] == items or name == "fact_eval"
    assert d_and_rate(found) == (d, rate)
    if name == "fact_eval":
        assert round(found["disagreement"]["pair_weighted"], 6) == 0.134924
    # error against the label process is below the error against the truth: 1 - eps is a ceiling, not an estimate
    truth = {row["item"]: row["truth"] for row in read(folder / "truth.csv")}
    rows = [r for r in read(folder / "label.csv") if r["item"] in truth]
    error = sum(row["label"] != truth[row["item"]] for row in rows) / len(rows)
    assert round(error, 4) == true_error
    assert found["ceiling"]["upper"] >= 1 - error
    moments, gold = found["ceiling"]["moments"], found["gold"]
    assert gold["error"]["estimate"] == pytest.approx(error)
    assert gold["above"] is True
    # the band of several labels lies within that of pairs, and it too is of the label process: above 1 - error
    assert (
        found["ceiling"]["lower"] <= moments["lower"] <= moments["upper"] <= found["ceiling"]["upper"] + 1e-3
    )
    assert moments["upper"] >= 1 - error
    assert moments["fit_p_value"] > 0.001
    assert crowd_row(name, found) in PAGE.splitlines()


def test_one_worker_twice_on_an_item_is_seen(shared: Path) -> None:
    path = shared / "data" / "crowd" / "fact_eval" / "label.csv"
    found = audit(path, "--item", "item", "--label", "label", "--annotator", "worker")
    within = found["comparisons"]["worker"]["within"]
    assert within["estimate"] is not None
    # 1,810 worker-item pairs occur twice; their second labels are no independent opinions
    once = audit(path, "--item", "item", "--label", "label", "--one-per", "worker")
    assert once["repeats"]["rows"] < found["repeats"]["rows"]


def test_pandalm_wide(shared: Path) -> None:
    path = shared / "data" / "pandalm" / "pandalm_labels_wide.csv"
    found = audit(path, "--label-columns", "annotator1,annotator2,annotator3")
    assert d_and_rate(found) == (0.080080, 0.041321)
    assert (found["repeats"]["items"], found["repeats"]["pairs"], found["repeats"]["conflicts"]) == (
        999,
        2_997,
        120,
    )
    assert found["flip_rate"]["classes"] == 3


@pytest.mark.parametrize(
    ("judge", "d", "null_votes"),
    [("GPT-4", 0.0716, 0), ("ChatGPT", 0.3413, 0), ("ChatGPT-0301", 0.4224, 0), ("PaLM2", 0.2771, 4),
     ("LLaMA2", 0.2470, 2), ("Falcon", 0.5847, 0)],
)  # fmt: skip
def test_llmbar_judges(judge: str, d: float, null_votes: int, shared: Path, tmp_path: Path) -> None:
    source = shared / "data" / "llmbar" / "llmbar_vanilla_votes.csv"
    rows = [r for r in read(source) if r["evaluator"] == judge]
    votes = [(row["vote_order1"], row["vote_order2"]) for row in rows]
    path = write_csv(tmp_path / "votes.csv", ["first", "second"], votes)
    found = audit(path, "--label-columns", "first,second")
    assert round(found["disagreement"]["estimate"], 4) == d
    assert found["data"]["rows"] - found["repeats"]["items"] == null_votes
    if judge == "Falcon":
        assert found["flip_rate"]["estimate"] is None
        assert "above" in found["flip_rate"]["reason"]


def test_causal_news_as_vote_counts(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "causal_news"
    counts, votes = [], []
    for name in ("V1_train_subtask1.csv", "V1_dev_subtask1.csv"):
        for row in read(folder / name):
            number, label = int(float(row["num_votes"])), int(row["label"])
            agreeing = round(float(row["agreement"]) * number)
            ones = agreeing if label == 1 else number - agreeing
            counts.append((row["index"], number - ones, ones))
            votes.extend([(row["index"], "1")] * ones + [(row["index"], "0")] * (number - ones))
    wide = audit(write_csv(tmp_path / "counts.csv", ["index", "0", "1"], counts), "--counts", "0,1")
    long = audit(
        write_csv(tmp_path / "votes.csv", ["index", "label"], votes), "--item", "index", "--label", "label"
    )
    for found in (wide, long):
        assert d_and_rate(found) == (0.331626, 0.209850)
        assert round(found["disagreement"]["pair_weighted"], 6) == 0.327017
        assert found["repeats"]["items"] == 3_240
        assert (found["repeats"]["pairs"], found["repeats"]["conflicts"]) == (8_602, 1_393)


def test_causal_news_revision(shared: Path, tmp_path: Path) -> None:
    """3,085 texts are in both versions, and 1.52 % of their labels changed: a wide audit of one vote a version."""
    folder = shared / "data" / "causal_news"
    labels: dict[str, dict[str, str]] = defaultdict(dict)
    for version in ("V1", "V2"):
        for part in ("train", "dev"):
            for row in read(folder / f"{version}_{part}_subtask1.csv"):
                labels[row["text"]][version] = row["label"]
    both = [(text, seen["V1"], seen["V2"]) for text, seen in labels.items() if len(seen) == 2]
    found = audit(
        write_csv(tmp_path / "both.csv", ["text", "V1", "V2"], both), "--label-columns", "V1,V2", "--item", "text",
        "--normalise", "none",
    )  # fmt: skip
    assert found["repeats"]["items"] == 3_085
    assert round(found["disagreement"]["estimate"], 4) == 0.0152


def test_anaesthetists(shared: Path, tmp_path: Path) -> None:
    table = read(shared / "data" / "anaesthetists" / "table.csv")
    example = Path(__file__).parents[1] / "examples" / "anaesthetists.csv"
    everyone = audit(example, "--item", "patient", "--label", "grade", "--annotator", "observer")
    assert round(everyone["disagreement"]["estimate"], 4) == 0.2720
    assert round(everyone["flip_rate"]["estimate"], 4) == 0.1512
    within = {part["value"]: part for part in everyone["by"]["observer"]}
    assert round(within["1"]["estimate"], 4) == 0.1926
    assert list(within) == ["1"]  # the others graded each patient once
    columns = [f"observer1_time{k}" for k in (1, 2, 3)]
    one = write_csv(tmp_path / "one.csv", columns, [tuple(row[c] for c in columns) for row in table])
    alone = audit(one, "--label-columns", ",".join(columns), "--classes", "1,2,3,4")
    assert d_and_rate(alone) == (0.192593, pytest.approx(0.1034, abs=5e-5))
