"""The band of several labels an item in the verdict and in every report, where it counts and where not."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from audit import audit_duplicates, charts
from audit.placing import place
from audit.render import render
from audit.render_band import band_rows, band_sentences
from audit.render_text import text
from audit.results import AuditResult, Ceiling, Moments
from audit.verdict import compose_verdict
from tests.command import write_csv
from tests.pages import Page, spaced


def made(path: Path, items: int, labels: int, *, seed: int = 7) -> Path:
    """Items of so many labels: 80 % of them at a flip rate of .02, the others at .42."""
    rng = random.Random(seed)
    rows = []
    for i in range(items):
        truth, rate = rng.random() < 0.3, 0.42 if rng.random() < 0.2 else 0.02
        rows += [(f"item {i}", "yes" if truth != (rng.random() < rate) else "no") for _ in range(labels)]
    return write_csv(path / "data.csv", ["text", "label"], rows)


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> AuditResult:
    path = made(tmp_path_factory.mktemp("five"), 400, 5)
    return audit_duplicates(path, item="text", label="label", ladder=False)


def test_the_verdict_quotes_the_band_that_audit_ceiling_takes(five: AuditResult, tmp_path: Path) -> None:
    band, more = five.ceiling, five.ceiling.moments
    assert f"lies between {more.lower:.2f} and {more.upper:.2f} (by up to 5 labels an item)" in (
        five.verdict.headline
    )
    assert five.verdict.next_steps[0].endswith(
        f"the band with sampling error at {more.low:.3f} to {more.high:.3f}. Pairs alone give {band.lower:.3f} to "
        f"{band.upper:.3f}, with sampling error {band.low:.3f} to {band.high:.3f}."
    )
    placed = place(made(tmp_path, 400, 5), score=0.88, item=("text",), label="label")
    assert (placed.source, placed.lower, placed.upper) == ("several labels", more.lower, more.upper)


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_every_report_has_both_bands(five: AuditResult, form: str) -> None:
    written = spaced(Page(render(five, form)).text if form == "html" else render(five, form))  # type: ignore[arg-type]
    band, more = five.ceiling, five.ceiling.moments
    for part in (band, more):
        assert f"{part.low:.3f} to {part.high:.3f}" in written
    if form != "text":
        words = spaced(Page(render(five, "html")).text if form == "html" else written)
        assert words.index("Up to 5 labels an item (400 items) put the ceiling at") < words.index(
            "By pairs alone"
        )
        assert f"A score above {more.high:.3f} is too good" in words


def test_the_tile_and_the_first_line_are_of_the_band_that_counts(five: AuditResult) -> None:
    more = five.ceiling.moments
    tile = re.search(r"<dt>Accuracy ceiling</dt>(.*?)</div>", render(five, "html"), re.S)
    assert tile is not None
    shown = spaced(Page(tile.group(1)).text)
    assert shown.startswith(f"{more.lower:.3f} to {more.upper:.3f}")
    assert f"1 − d to 1 − ε: {five.ceiling.lower:.3f} to {five.ceiling.upper:.3f}" in shown
    lines = [line for line in text(five).splitlines() if "ceiling, " in line]
    assert lines[0].startswith("accuracy ceiling, up to 5 labels an item")
    assert lines[1].startswith("ceiling, 1 − d to 1 − ε ")


def test_the_second_bar_stands_where_its_numbers_are(five: AuditResult) -> None:
    """Both bars are on one axis, so that the same place is the same accuracy."""
    more = five.ceiling.moments
    svg = charts.band(five.ceiling, digits=3, several=True)
    rects = {
        name: (float(x), float(x) + float(w))
        for name, x, w in re.findall(r'<rect class="([a-z ]+)" x="([\d.]+)%" y="\d+" width="([\d.]+)%"', svg)
    }
    assert set(rects) == {"wide", "band", "wide thin", "band thin"}
    (left, right), band = rects["band"], five.ceiling
    assert band.lower is not None
    assert band.upper is not None
    scale = (right - left) / (band.upper - band.lower)
    for name, ends in (("band thin", (more.lower, more.upper)), ("wide thin", (more.low, more.high))):
        for end, x in zip(ends, rects[name], strict=True):
            assert end is not None
            assert x == pytest.approx(left + (end - band.lower) * scale, abs=0.05)
    assert f"up to 5 labels an item: {more.lower:.3f} to {more.upper:.3f}" in svg
    assert "thin" not in charts.band(five.ceiling, digits=3)


def test_few_items_of_three_labels_leave_the_band_of_pairs_and_say_so(tmp_path: Path) -> None:
    found = audit_duplicates(made(tmp_path, 150, 3), item="text", label="label", ladder=False)
    assert f"lies between {found.ceiling.lower:.2f} and {found.ceiling.upper:.2f}." in found.verdict.headline
    assert [row.name for row in band_rows(found)] == ["1 − d to 1 − ε", "up to 3 labels an item"]
    told = " ".join(band_sentences(found))
    assert "the band of pairs counts, as fewer than 200 items have three labels or more." in told
    assert f"A score above {found.ceiling.high:.3f} is too good" in told
    assert "thin" not in render(found, "html").partition("<figure>")[2].partition("</figure>")[0]


def test_bands_that_part_are_explained(five: AuditResult) -> None:
    """1 - eps(d) is above E[max p] in the population; at the nearest counts a distribution can have d is another."""
    assert "nearest counts" not in " ".join(band_sentences(five))
    upper = five.ceiling.upper
    assert upper is not None
    above = replace(five.ceiling.moments, upper=upper + 0.002, high=upper + 0.01)
    band = replace(five.ceiling, moments=above)
    told = " ".join(band_sentences(replace(five, ceiling=band)))
    assert "It leaves the band of pairs by sampling error: it is taken at the nearest counts" in told
    assert "leaves it" not in five.verdict.next_steps[0]
    verdict = compose_verdict(
        repeats=five.repeats, d=five.disagreement, rate=five.flip_rate, band=band, alarms=(), unrepeated=0
    )
    assert verdict.next_steps[0].endswith("; that the other leaves it is sampling error.")


def test_a_band_that_is_a_point_is_told_with_its_error(five: AuditResult) -> None:
    point = Moments(
        lower=0.887,
        upper=0.888,
        low=0.836,
        high=0.895,
        repeats=5,
        items=400,
        items_with_three=400,
        fit_p_value=0.2,
    )
    band: Ceiling = replace(five.ceiling, moments=point)
    verdict = compose_verdict(
        repeats=five.repeats, d=five.disagreement, rate=five.flip_rate, band=band, alarms=(), unrepeated=0
    )
    assert verdict.headline.endswith(
        "the best accuracy possible against them is about 0.89, with sampling error 0.84 to 0.90 (by up to 5 labels an "
        "item)."
    )
