"""Error rates and gold in the reports: annotators by class, what a test of fit means, and how sure "below" is."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from audit import audit_duplicates
from audit.render import render
from audit.render_beyond import sections
from audit.render_page import Section, SectionTable
from audit.results import (
    AuditResult,
    ErrorRates,
    Estimate,
    FlipRate,
    GoldCheck,
    IdentifiedSet,
    LatentClasses,
    OneRival,
    Rate,
    Rater,
    Stratum,
)
from tests.command import write_csv
from tests.made_results import full
from tests.pages import Page


def rate(truth: str, label: str, chance: float) -> Rate:
    return Rate(
        truth=truth, label=label, estimate=chance, low=chance - 0.01, high=chance + 0.01, method="bootstrap"
    )


def rater(name: str, error: float, *rates: Rate) -> Rater:
    part = Estimate(estimate=error, low=error - 0.01, high=error + 0.01, method="bootstrap")
    return Rater(value=name, labels=100, error=part, rates=rates)


def with_annotators(classes: dict[str, float], *raters: Rater, p: float | None = None) -> AuditResult:
    """A result whose annotators have these error rates; ``classes`` are the shares of the truths."""
    mean = tuple(rate(a, b, 0.8 if a == b else 0.2 / (len(classes) - 1)) for a in classes for b in classes)
    shares = tuple(Estimate(estimate=share) for share in classes.values())
    known = LatentClasses(
        method="Dawid-Skene", items=300, strata=(Stratum(value="", items=300, prevalence=shares),), rates=mean,
        mean_error=Estimate(estimate=0.2), fit_p_value=p, fit_df=3, raters=raters,
    )  # fmt: skip
    absent = LatentClasses(method="latent classes", reason="none")
    return replace(
        full(), errors=ErrorRates(pairs=IdentifiedSet(), repeats=absent, strata=absent, annotators=known)
    )


def annotators(result: AuditResult) -> tuple[Section, SectionTable]:
    found = next(part for part in sections(result) if part.anchor == "errors-dawid-skene")
    return found, next(table for table in found.tables if table.head[0] == "annotator")


TWO = (
    rater("ada", 0.05, rate("no", "no", 0.96), rate("no", "yes", 0.04), rate("yes", "no", 0.08)),
    rater("ben", 0.20, rate("no", "no", 0.78), rate("no", "yes", 0.22), rate("yes", "no", 0.15)),
)  # fmt: skip


def test_two_classes_give_each_annotator_what_is_missed_and_what_is_given_wrongly() -> None:
    part, table = annotators(with_annotators({"no": 0.7, "yes": 0.3}, *TWO))
    assert table.head == ("annotator", "labels", "a label is wrong", "'yes' missed", "'yes' given wrongly")
    told = [(row.names[0], *row.values) for row in table.rows]
    assert told == [  # the worst first
        ("ben", "100", "0.200 (0.190 to 0.210)", "0.150 (0.140 to 0.160)", "0.220 (0.210 to 0.230)"),
        ("ada", "100", "0.050 (0.040 to 0.060)", "0.080 (0.070 to 0.090)", "0.040 (0.030 to 0.050)"),
    ]
    assert any("'yes' missed is a true 'yes' with the other label" in sentence for sentence in part.sentences)


def test_the_positive_class_is_the_rarer() -> None:
    _, table = annotators(with_annotators({"no": 0.2, "yes": 0.8}, *TWO))
    assert table.head[3:] == ("'no' missed", "'no' given wrongly")
    assert table.rows[0].values[2:] == ("0.220 (0.210 to 0.230)", "0.150 (0.140 to 0.160)")


def test_more_classes_give_each_annotator_the_error_that_is_made_most_often() -> None:
    """a → b has the larger chance, but a is so rare that c → b makes more errors: .05 x .4 < .6 x .1."""
    rates = (rate("a", "b", 0.4), rate("b", "c", 0.02), rate("c", "b", 0.1), rate("c", "c", 0.9))
    some = with_annotators({"a": 0.05, "b": 0.35, "c": 0.6}, rater("ada", 0.1, *rates), rater("ben", 0.0))
    _, table = annotators(some)
    assert table.head == (
        "annotator",
        "commonest error",
        "labels",
        "a label is wrong",
        "how often that error",
    )
    assert table.rows[0].names == ("ada", "c → b")
    assert table.rows[0].values[-1] == "0.100 (0.090 to 0.110)"
    assert (table.rows[1].names, table.rows[1].values[-1]) == (("ben", "none"), "–")


def test_many_annotators_are_folded_and_hostile_names_stay_text() -> None:
    many = [rater(f"<b>w{k:02}", 0.01 * (k + 1), *TWO[0].rates) for k in range(40)]
    result = with_annotators({"no": 0.7, "y|<i>": 0.3}, *many)
    html = render(result, "html")
    assert "<b>w39" not in html
    assert "<i>" not in html
    section = html.partition('id="errors-dawid-skene"')[2]
    assert section.index("w39") < section.index("<summary>28 more") < section.index("w00")
    text = render(result, "text")
    assert "w39" in text
    assert re.search(r"… 20 more: see --html or --format json", text)
    markdown = render(result, "markdown")
    assert "`<b>w00`" in markdown
    assert "'y|<i>'" not in markdown


@pytest.mark.parametrize(
    ("p", "words"),
    [(0.3, "No sign that annotators err together (p = 0.300)."),
     (0.01, "Annotators do not err independently (p = 0.010), so these rates may be too low")],
)  # fmt: skip
def test_what_the_test_of_independence_means(p: float, words: str) -> None:
    part, _ = annotators(with_annotators({"no": 0.7, "yes": 0.3}, *TWO, p=p))
    assert any(sentence.startswith(words) for sentence in part.sentences)


@pytest.mark.parametrize(
    ("p", "named", "words"),
    [(0.4, False, "The labels fit this model (p = 0.400)."),
     (0.025, False, "--annotator gives each rates of its own."),
     (0.025, True, "The rates by annotator below let them differ.")],
)  # fmt: skip
def test_what_the_test_of_fit_means(p: float, named: bool, words: str) -> None:
    made = with_annotators({"no": 0.7, "yes": 0.3}, *TWO)
    assert made.errors is not None
    fitted = replace(made.errors.annotators, method="latent classes", raters=(), fit_p_value=p)
    errors = replace(made.errors, repeats=fitted)
    if not named:
        errors = replace(errors, annotators=LatentClasses(method="Dawid-Skene", reason="none"))
    part = next(p for p in sections(replace(made, errors=errors)) if p.anchor == "errors-latent-classes")
    (told,) = [sentence for sentence in part.sentences if "fit this model" in sentence]
    assert told.endswith(words)
    assert ("badly (p = 0.025)" in told) == (p < 0.05)


# --- gold ------------------------------------------------------------------------------------------------------


def against_gold(error: tuple[float, float, float], rate: tuple[float, float, float]) -> str:
    """The sentence on 1 - eps for an error against gold and a flip rate, each with its limits."""
    low, at, high = rate
    part = FlipRate(
        estimate=at,
        low=low,
        high=high,
        method="x",
        classes=2,
        one_rival=OneRival(estimate=at, low=low, high=high),
    )
    gold = GoldCheck(
        source="gold", items=500, labels=1000, flip_rate=at, above=at <= error[1],
        error=Estimate(low=error[0], estimate=error[1], high=error[2]),
    )  # fmt: skip
    made = replace(full(), flip_rate=part, gold=gold)
    return next(part for part in sections(made) if part.anchor == "gold").sentences[1]


def test_above_and_within_sampling_error() -> None:
    assert against_gold((0.14, 0.16, 0.18), (0.08, 0.10, 0.12)) == (
        "The top of the band, 1 − ε = 0.900 (0.880 to 0.920), is at or above that score, as it should be."
    )
    near = against_gold((0.102, 0.112, 0.122), (0.106, 0.115, 0.126))
    assert "is within sampling error of that score" in near
    assert "alarm" not in near


def test_below_is_said_with_its_alarm_and_only_then(tmp_path: Path) -> None:
    """Gold that is the first label: half of the disagreeing labels differ from it, fewer than eps says."""
    rows = []
    for i in range(400):
        other = "b" if i % 2 else "a"
        rows += [(f"t{i}", "a", "a" if i % 2 else other), (f"t{i}", other, "a" if i % 2 else other)]
    half = write_csv(tmp_path / "half.csv", ["text", "label", "gold"], rows)
    found = audit_duplicates(half, item="text", label="label", gold="gold", ladder=False)
    told = " ".join(next(part for part in sections(found) if part.anchor == "gold").sentences)
    assert found.gold is not None
    assert found.gold.error.estimate == pytest.approx(0.25)  # one label of every other item
    assert "gold below the flip rate" in [alarm.code for alarm in found.alarms]
    assert (
        "is below that score, as independent labels of the same items cannot be: see the alarm gold" in told
    )
    assert "is below that score" in Page(render(found, "html")).text


# --- d by annotator ----------------------------------------------------------------------------------------------


def test_a_column_without_repeats_of_a_value_is_told_in_one_sentence(tmp_path: Path) -> None:
    rows = [(f"t{i}", "a" if i % 3 else "b", f"w{k}", f"batch {k}") for i in range(30) for k in range(2)]
    path = write_csv(tmp_path / "data.csv", ["text", "label", "who", "batch"], rows)
    found = audit_duplicates(path, item="text", label="label", annotator="who", by=("batch",), ladder=False)
    text = " ".join(render(found, "text").split())
    assert (
        "Nobody labelled an item twice: see annotator pair, and --errors for each one's error rate; 30 items have "
        "labels under several values."
    ) in text
    assert "No item has two labels of one value, so no value has a d of its own; 30 items" in text
    assert "Not tested" not in text
    assert "annotator pair" in text
    rows += [(f"t{i}", "a", "w0", "batch 0") for i in range(5)]
    some = audit_duplicates(
        write_csv(path, ["text", "label", "who", "batch"], rows),
        item="text",
        label="label",
        annotator="who",
        ladder=False,
    )
    assert "Nobody" not in render(some, "text")
