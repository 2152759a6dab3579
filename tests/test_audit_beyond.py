"""The parts beyond the pair in whole audits: error rates, gold labels, alarms, and every form of report."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import audit
from audit import audit_duplicates
from audit.errors import ColumnError, InputError
from audit.render import render
from audit.results import AuditResult
from tests.command import run, write_csv

ROOT = Path(__file__).parents[1]


def labelled(
    seed: int,
    items: int,
    size: int,
    *,
    shares: tuple[float, ...] = (0.3,),
    miss: float = 0.25,
    false: float = 0.05,
) -> pd.DataFrame:
    """Labels yes and no of ``size`` annotators, in as many sites as shares, with the truth beside them."""
    rng = random.Random(seed)
    rows = []
    for site, share in enumerate(shares):
        for i in range(items):
            truth = rng.random() < share
            for person in range(size):
                wrong = rng.random() < (miss if truth else false)
                rows.append((f"item {site}-{i}", f"p{person}", f"s{site}", "yes" if truth != wrong else "no",
                             "yes" if truth else "no"))  # fmt: skip
    return pd.DataFrame(rows, columns=["text", "who", "site", "label", "truth"])


def audited(frame: Any, **options: Any) -> AuditResult:
    return audit_duplicates(frame, item="text", label="label", ladder=False, **options)


def test_the_simple_run_has_the_band_of_three_labels_and_no_more() -> None:
    result = audited(labelled(0, 400, 3))
    moments = result.ceiling.moments
    assert (moments.repeats, moments.items) == (3, 400)
    assert result.ceiling.lower is not None
    assert moments.lower is not None
    assert moments.upper is not None
    assert result.ceiling.upper is not None
    assert result.ceiling.lower - 1e-6 <= moments.lower <= moments.upper <= result.ceiling.upper + 1e-6
    assert result.errors is None
    assert result.gold is None
    pairs = audited(labelled(0, 400, 2))
    assert pairs.ceiling.moments.lower is None
    assert pairs.ceiling.moments.reason == "fewer than 30 items have three labels or more"
    written = json.loads(render(result, "json"))
    assert set(written["ceiling"]["moments"]) >= {"lower", "upper", "low", "high", "repeats"}


def test_error_rates_by_every_way() -> None:
    result = audited(labelled(1, 1_500, 4, shares=(0.2, 0.6)), annotator="who", strata="site", errors=True)
    errors = result.errors
    assert errors is not None
    for part in (errors.repeats, errors.strata, errors.annotators):
        found = {(rate.truth, rate.label): rate.estimate for rate in part.rates}
        assert found["yes", "no"] == pytest.approx(0.25, abs=0.03)
        assert found["no", "yes"] == pytest.approx(0.05, abs=0.02)
        assert part.fit_p_value is None or part.fit_p_value > 0.001
    assert [s.value for s in errors.strata.strata] == ["s0", "s1"]
    assert errors.pairs.positive == "yes"
    mean = errors.pairs.mean_error
    assert mean.lower is not None
    assert mean.upper is not None
    assert mean.lower - 0.005 <= 0.4 * 0.25 + 0.6 * 0.05 <= mean.upper + 0.005
    assert "error rates" not in " ".join(alarm.code for alarm in result.alarms)


def test_strata_ask_for_error_rates_and_need_their_column() -> None:
    frame = labelled(2, 200, 2, shares=(0.2, 0.6))
    result = audited(frame, strata="site")
    assert result.errors is not None
    assert result.errors.strata.rates
    assert result.errors.repeats.reason is not None
    assert result.errors.annotators.reason == "no annotators are named: --annotator COLUMN"
    with pytest.raises(ColumnError, match="--strata"):
        audited(frame, strata="hospital")
    one = audited(labelled(2, 200, 2), strata="site")
    assert one.errors is not None
    assert one.errors.strata.reason == "site has one value only among the repeats"


def test_strata_that_cut_through_items_are_refused() -> None:
    """A column that the labels themselves decide, or that differs from label to label, is no stratum of items."""
    frame = labelled(8, 300, 3)
    for site in (frame["label"], frame["who"], [f"s{i % 2}" for i in range(len(frame))]):
        result = audited(frame.assign(site=site), strata="site")
        assert result.errors is not None
        assert result.errors.strata.reason == (
            "labels of one item have several values of site: strata are of items, not of labels"
        )
    fine = labelled(9, 400, 2, shares=(0.2, 0.6))
    fine.loc[0, "site"] = "s1"  # one slip of the pen
    few = audited(fine, strata="site").errors
    assert few is not None
    assert few.strata.rates


def test_error_rates_of_a_refused_file_are_refused() -> None:
    frame = pd.DataFrame(
        [(f"t{i}", label) for i in range(60) for label in ("yes", "no")], columns=["text", "label"]
    )
    result = audited(frame, errors=True)
    assert result.errors is not None
    for part in (result.errors.pairs, result.errors.repeats, result.errors.annotators):
        assert part.reason is not None
    assert result.metrics.limits == ()
    assert result.ceiling.moments.reason == result.flip_rate.reason


@pytest.mark.parametrize("wide", [False, True])
def test_annotators_in_columns_of_votes(wide: bool) -> None:
    frame = labelled(3, 300, 3)
    if wide:
        votes = frame.pivot(index="text", columns="who", values="label").reset_index()
        result = audit_duplicates(votes, label_columns=["p0", "p1", "p2"], errors=True, ladder=False)
    else:
        result = audited(frame, annotator="who", errors=True)
    assert result.errors is not None
    assert [r.value for r in result.errors.annotators.raters] == ["p0", "p1", "p2"]


# --- gold --------------------------------------------------------------------------------------------------


def test_gold_in_a_column_by_hand(tmp_path: Path) -> None:
    rows = [("a", "yes", "yes"), ("a", "no", "yes"), ("b", "no", "no"), ("b", "no", ""), ("c", "yes", "no"),
            ("d", "yes", ""), ("e", "no", "perhaps"), ("f", "yes", "yes"), ("f", "yes", "no")]  # fmt: skip
    path = write_csv(tmp_path / "data.csv", ["text", "label", "truth"], rows)
    found = audited(path, gold="truth").gold
    assert found is not None
    # a: 1 of 2 wrong; b: 0 of 2 (one gold cell is enough); c: 1 of 1; d has none; e and f are left out
    assert (found.items, found.labels) == (3, 5)
    assert found.error.estimate == pytest.approx(2 / 5)
    assert found.reason == (
        "1 gold labels are no declared class and were left out; 1 items have several gold labels and were left out"
    )


def test_gold_in_a_file_meets_items_as_the_audit_does(tmp_path: Path) -> None:
    rows = [("A  b", "yes"), ("a b", "no"), ("c", "yes"), ("c", "yes")]
    path = write_csv(tmp_path / "data.csv", ["text", "label"], rows)
    gold = write_csv(tmp_path / "gold.csv", ["text", "truth"], [("a B", "yes"), ("C", "no"), ("z", "no")])
    found = audited(path, gold=str(gold)).gold
    assert found is not None
    assert (found.items, found.labels) == (2, 4)
    assert found.error.estimate == pytest.approx(3 / 4)
    assert audited(path, gold=str(gold), normalise="none").gold.items == 0  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("columns", "words"),
    [(["id", "truth"], "no column 'text'"), (["text", "one", "two"], "which column is the gold label")],
)
def test_a_gold_file_that_does_not_do(columns: list[str], words: str, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "data.csv", ["text", "label"], [("a", "yes"), ("a", "no")])
    gold = write_csv(tmp_path / "gold.csv", columns, [("a",) * len(columns)])
    with pytest.raises(InputError, match=words):
        audited(path, gold=str(gold))
    with pytest.raises(InputError, match="and no such file"):
        audited(path, gold="truth")


def test_a_gold_made_from_the_labels_is_seen() -> None:
    """Gold that agrees with every label of items that disagree elsewhere."""
    frame = labelled(4, 600, 2, miss=0.2, false=0.2)
    agreed = frame.groupby("text")["label"].transform("nunique") == 1
    frame["truth"] = frame["label"].where(agreed, "")
    result = audited(frame, gold="truth")
    assert result.gold is not None
    assert result.gold.above is False
    assert "gold below the flip rate" in [alarm.code for alarm in result.alarms]
    honest = audited(labelled(4, 600, 2, miss=0.2, false=0.2), gold="truth")
    assert "gold below the flip rate" not in [alarm.code for alarm in honest.alarms]


# --- alarms ------------------------------------------------------------------------------------------------


def test_counts_that_no_mixture_has_raise_an_alarm() -> None:
    """Three labels that always split two to one: a quota, not opinions."""
    rows = [
        (f"t{i}", label)
        for i in range(200)
        for label in (("yes", "yes", "no") if i % 2 else ("no", "no", "yes"))
    ]
    result = audited(pd.DataFrame(rows, columns=["text", "label"]))
    assert "counts fit no mixture" in [alarm.code for alarm in result.alarms] or result.flip_rate.reason


def test_harder_items_are_told_where_one_table_cannot_do() -> None:
    rng = random.Random(5)
    rows = []
    for i in range(1_500):
        chance = rng.betavariate(0.6, 0.6)
        rows += [(f"t{i}", "yes" if rng.random() < chance else "no") for _ in range(5)]
    result = audited(pd.DataFrame(rows, columns=["text", "label"]), errors=True)
    assert "error rates do not fit (latent classes)" in [alarm.code for alarm in result.alarms]


# --- reports -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def everything() -> AuditResult:
    frame = labelled(6, 300, 4, shares=(0.2, 0.6))
    frame["who"] = frame["who"].replace({"p3": "<b>|p3*"})
    return audited(frame, annotator="who", strata="site", errors=True, gold="truth")


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_every_form_tells_all_parts(form: Any, everything: AuditResult) -> None:
    page = render(everything, form)
    for words in (
        "labels an item",
        "Pairs of labels",
        "latent classes",
        "Hui",
        "Dawid",
        "Against gold",
        "MCC",
    ):
        assert words in page, words
    if form == "html":
        assert "<b>|p3*" not in page
        assert "&lt;b&gt;|p3*" in page
        assert 'id="errors"' in page
    if form == "markdown":
        assert "| <b>|p3*" not in page


def test_the_frame_and_the_summary_stay(everything: AuditResult) -> None:
    frame = everything.to_frame()
    assert list(frame.columns) == "quantity column value items estimate low high method".split()
    rows = {(row.quantity, row.column, row.value): row for row in frame.itertuples()}
    assert rows["disagreement", "", ""].estimate == everything.disagreement.estimate
    band, several = everything.ceiling, everything.ceiling.moments
    assert (rows["ceiling", "", "lower"].estimate, rows["ceiling", "", "lower"].low) == (band.lower, band.low)
    assert (rows["ceiling", "", "upper"].estimate, rows["ceiling", "", "upper"].high) == (
        band.upper,
        band.high,
    )
    assert rows["moments", "", "upper"].estimate == several.upper
    assert rows["moments", "", "upper"].items == several.items
    errors, gold = everything.errors, everything.gold
    assert errors is not None
    assert gold is not None
    assert rows["pairs_mean_error", "", "upper"].high == errors.pairs.mean_error.high
    for part in (errors.repeats, errors.strata, errors.annotators):
        assert rows["label_error", part.method, ""].estimate == part.mean_error.estimate
        for rate in part.rates:
            assert rows["label_given_truth", part.method, f"{rate.truth} → {rate.label}"].low == rate.low
    assert [row.value for row in rows.values() if row.quantity == "annotator_error"] == [
        rater.value for rater in errors.annotators.raters
    ]
    assert rows["gold_error", "", ""].estimate == gold.error.estimate
    limit = everything.metrics.limits[0]
    assert rows["metric_limit", limit.metric, limit.direction].estimate == limit.bound
    assert everything.summary().startswith("These labels disagree")


def test_the_command_line_takes_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    labelled(7, 120, 3, shares=(0.2, 0.7)).to_csv(path, index=False)
    ran = run("dupes", path, "--item", "text", "--label", "label", "--annotator", "who", "--errors", "--strata", "site",
              "--gold", "truth", "--format", "json")  # fmt: skip
    assert ran.code == 0, ran.err
    assert ran.json["errors"]["strata"]["method"] == "Hui-Walter"
    assert ran.json["gold"]["labels"] == 720
    other = run("dupes", path, "--item", "text", "--label", "label", "--kind", "numeric", "--gold", "truth")
    assert other.code == 2
    assert "--gold is not for --kind numeric" in other.err
    missing = run("dupes", path, "--item", "text", "--label", "label", "--gold", "nowhere.csv")
    assert missing.code == 2
    assert "and no such file" in missing.err


def test_python_has_all_of_it() -> None:
    names = (
        "annotator_errors", "bound_metrics", "correct_score", "identified_set", "latent_classes", "moment_bounds",
        "place_metric",
    )  # fmt: skip
    for name in names:
        assert name in audit.__all__
        assert callable(getattr(audit, name))
