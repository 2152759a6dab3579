"""The page of audit train and its pictures: what is drawn lies where its numbers say, and nothing escapes."""

from __future__ import annotations

import base64
import hashlib
import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from audit.errors import ArgumentError
from tests.pages import Page
from train.page import Heading, Picture, Table, Words, page
from train.pictures import Dot, Line, Rule, chart, dots, svg_file
from train.pictures_draw import INNER, LEFT, WIDTH

NS = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>window.hacked=1</script> & \"quotes' \u202e\x00"


def tree(svg: str) -> ET.Element:
    return ET.fromstring(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))


def found(svg: str, name: str) -> list[ET.Element]:
    """Elements of a class in the chart itself; the samples of the legend are left out."""
    root = tree(svg)
    samples = {e for group in root.iter(NS + "g") for e in group if e.tag != NS + "text"}
    return [e for e in root.iter() if name in e.get("class", "").split() and e not in samples]


def corners(path: ET.Element) -> list[tuple[float, float]]:
    pairs = re.findall(r"[ML]\s*(-?[\d.]+) (-?[\d.]+)", path.get("d", ""))
    return [(float(x), float(y)) for x, y in pairs]


def ticks(svg: str) -> dict[str, tuple[float, float]]:
    return {e.text or "": (float(e.get("x", "")), float(e.get("y", ""))) for e in found(svg, "tick")}


def test_a_line_goes_where_its_values_say() -> None:
    svg = chart("t", [Line("a", [0, 4, 8], [0.0, 0.25, 1.0])], x_label="x", y_label="y")
    (line,) = found(svg, "line")
    (x0, y0), (x1, y1), (x2, y2) = corners(line)
    assert (x0, x1, x2) == (LEFT, LEFT + INNER / 2, LEFT + INNER)
    assert y0 > y1 > y2
    assert (y0 - y1) / (y0 - y2) == pytest.approx(0.25, abs=0.001)
    marks = ticks(svg)
    assert marks["1.0"][1] - 4 == pytest.approx(y2, abs=0.06)
    assert marks["4"][0] == pytest.approx(x1, abs=0.06)


def test_none_and_nan_cut_a_line_and_infinity_too() -> None:
    svg = chart(
        "t", [Line("a", range(8), [1, 2, None, 3, 4, math.nan, math.inf, 5])], x_label="x", y_label="y"
    )
    assert [len(corners(line)) for line in found(svg, "line")] == [2, 2]
    assert len(found(svg, "dot")) == 6  # its five points, the last also where no line can show it


def test_steps_hold_a_value_up_to_the_next_x() -> None:
    svg = chart("t", [Line("a", [0, 1, 2], [0, 1, 1], kind="steps")], x_label="x", y_label="y")
    x, y = zip(*corners(found(svg, "line")[0]), strict=True)
    assert x[0] < x[1] == x[2] < x[3] == x[4]
    assert y[0] == y[1] > y[2] == y[3] == y[4]


def test_intervals_are_an_area_along_lines_and_whiskers_at_points() -> None:
    line = Line("a", [0, 1, 2], [1, 2, 3], low=[0, 1, None], high=[2, 3, 4])
    svg = chart(
        "t",
        [line, Line("b", [0, 1], [1, 2], low=[0, 1], high=[2, 3], kind="points")],
        x_label="x",
        y_label="y",
    )
    (area,) = found(svg, "area")
    assert len(corners(area)) == 4, "two points with both ends: there and back"
    assert len(found(svg, "whisker")) == 2
    up = corners(area)
    assert up[0][0] == up[3][0]
    assert up[0][1] < up[3][1]


def test_long_lines_are_thinned_and_keep_their_spikes() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(0, 1, 100_000)
    y[31_234], y[77_777] = 40.0, -40.0
    svg = chart("t", [Line("a", range(100_000), y.tolist())], x_label="x", y_label="y")
    drawn = corners(found(svg, "line")[0])
    assert 200 < len(drawn) <= 4 * 121
    full = chart(
        "t", [Line("a", [0, 31_234, 77_777, 99_999], [y[0], 40, -40, y[-1]])], x_label="x", y_label="y"
    )
    for point in corners(found(full, "line")[0]):
        assert point in drawn


def test_six_lines_of_a_thousand_points_stay_small() -> None:
    rng = np.random.default_rng(0)
    lines = [Line(f"run {k}", range(1000), rng.random(1000).tolist()) for k in range(6)]
    svg = chart("t", lines, x_label="x", y_label="y")
    assert len(svg) < 60_000
    assert len({e.get("class") for e in found(svg, "line")}) == 6


def test_points_on_one_spot_are_drawn_once() -> None:
    svg = chart("t", [Line("a", [1] * 500 + [2], [1] * 500 + [2], kind="points")], x_label="x", y_label="y")
    assert len(found(svg, "dot")) == 2


def test_a_rule_and_a_band_lie_at_their_values() -> None:
    rules = [Rule(0.8, "band", to=0.9), Rule(0.75, "wide", to=0.95), Rule(0.5, "half"), Rule(2, "cap", "x")]
    svg = chart("t", [Line("a", [0, 4], [0, 1])], x_label="x", y_label="y", rules=rules)
    (_, bottom), (_, top) = corners(found(svg, "line")[0])
    wide, narrow = found(svg, "rule-band")
    for band, low, high in ((wide, 0.75, 0.95), (narrow, 0.8, 0.9)):
        at = float(band.get("y", ""))
        assert at == pytest.approx(bottom + high * (top - bottom), abs=0.11)
        assert at + float(band.get("height", "")) == pytest.approx(bottom + low * (top - bottom), abs=0.21)
    texts = [e.text for e in found(svg, "legend")]
    assert texts == ["a", "band", "wide", "half", "cap"]


def test_what_lies_outside_a_given_range_is_cut_off() -> None:
    line = Line("a", [0, 1, 2], [0.5, 1e9, 0.6], low=[0, 1e8, 0], high=[1, 1e12, 1])
    points = Line("b", [0, 1], [0.5, 30.0], low=[-9, 0], high=[9, 1], kind="points")
    svg = chart("t", [line, points], x_label="x", y_label="y", y_range=(0, 1))
    (clip,) = [e for e in tree(svg).iter(NS + "svg") if e.get("x")]
    assert [e.get("class", "").split()[0] for e in clip] == ["area", "line"]
    assert len(found(svg, "whisker")) == 1
    assert all(abs(y) < 1_000 for e in found(svg, "line") for _, y in corners(e))


@pytest.mark.parametrize("values", [[], [None], [0.0], [5.0], [-3.0, -3.0], [1e-12, 2e-12], [1e15, 1e15 + 1]])
def test_any_values_have_an_axis(values: list[float | None]) -> None:
    svg = chart("t", [Line("a", range(len(values)), values)], x_label="x", y_label="y")
    assert ("no values to draw" in svg) == (not any(v is not None for v in values))
    assert len(ticks(svg)) >= 2
    assert "nan" not in svg
    assert "inf" not in svg


def test_axes_of_shares_end_at_zero_and_one() -> None:
    svg = chart("t", [Line("a", [0, 1], [0.0, 1.0], kind="points")], x_label="x", y_label="y")
    values = [float(t) for t in ticks(svg)]
    assert min(values) == 0.0
    assert max(values) == 1.0


def test_lengths_and_ranges_are_checked() -> None:
    with pytest.raises(ArgumentError, match="line 'a': x, y, low and high have 2, 1, 1 and 1 values"):
        chart("t", [Line("a", [1, 2], [1])], x_label="x", y_label="y")
    with pytest.raises(ArgumentError, match="x_range goes from a smaller to a greater number, not 1 to 1"):
        chart("t", [], x_label="x", y_label="y", x_range=(1, 1))


def test_dots_with_their_intervals() -> None:
    rows = [Dot("clean − noisy", 0.06, 0.03, 0.09, "+0.060"), Dot("none", None), Dot("far", 0.5, 0.4, 0.6)]
    svg = dots("d", rows, x_label="difference", x_range=(-0.1, 0.1), rules=[Rule(0.0, "no difference")])
    (whisker,) = found(svg, "whisker")
    (dot,) = found(svg, "dot")
    (rule,) = found(svg, "rule")
    zero = float(re.findall(r"M([\d.]+)", rule.get("d", ""))[0])
    left, right = (float(v) for v in re.findall(r"M([\d.]+) [\d.]+H([\d.]+)", whisker.get("d", ""))[0])
    unit = (float(dot.get("cx", "")) - zero) / 0.06
    assert left == pytest.approx(zero + 0.03 * unit, abs=0.11)
    assert right == pytest.approx(zero + 0.09 * unit, abs=0.11)
    assert [e.text for e in found(svg, "row")] == ["clean − noisy", "none", "far"]


def test_every_text_of_a_chart_is_escaped() -> None:
    line = Line(HOSTILE, [1, 2], [1, 2])
    for svg in (
        chart(HOSTILE, [line], x_label=HOSTILE, y_label=HOSTILE, rules=[Rule(1, HOSTILE)]),
        dots(HOSTILE, [Dot(HOSTILE, 1, 0, 2, HOSTILE)], x_label=HOSTILE, rules=[Rule(1, HOSTILE)]),
    ):
        assert "<script" not in svg
        assert "\u202e" not in svg
        assert "‹RLO›" in svg
        assert {e.tag.removeprefix(NS) for e in tree(svg).iter()} <= {
            "svg", "title", "desc", "text", "path", "circle", "rect", "g",
        }  # fmt: skip
        attributes = {a for e in tree(svg).iter() for a in e.attrib}
        assert not [a for a in attributes if a.startswith("on") or a in ("href", "style")]


def test_a_chart_says_what_it_shows() -> None:
    svg = tree(chart("Reward", [Line("a", [1, 9], [0.25, 0.5])], x_label="step", y_label="mean reward"))
    assert svg.get("role") == "img"
    assert svg[0].text == "Reward"
    assert svg[1].text == "mean reward over step. a: from 0.25 at 1 to 0.5 at 9"


def test_names_of_the_legend_do_not_run_into_each_other() -> None:
    names = ["a", "a name that takes half of the width", "b", "c"]
    svg = chart("t", [Line(n, [0], [0]) for n in names], x_label="x", y_label="y")
    groups = list(tree(svg).iter(NS + "g"))
    at = [tuple(map(float, re.findall(r"[\d.]+", e.get("transform", "")))) for e in groups]
    assert at[1][1] > at[0][1], "one column only"
    long = chart("t", [Line("x" * 200, [0], [0])], x_label="x", y_label="y")
    assert found(long, "legend")[0].text == "x" * 57 + "…"
    short = chart("t", [Line(n, [0], [0]) for n in "abcd"], x_label="x", y_label="y")
    columns = {e.get("transform", "").split()[0] for e in tree(short).iter(NS + "g")}
    assert len(columns) == 3
    assert max(float(c.removeprefix("translate(")) for c in columns) < WIDTH


def test_a_file_of_its_own_holds_its_styles() -> None:
    svg = chart("t", [Line("a", [1, 2], [1, 2])], x_label="x", y_label="y")
    alone = ET.fromstring(svg_file(svg))
    style = next(alone.iter(NS + "style")).text or ""
    assert "--paper" in style
    assert ".picture .line" in style
    assert "prefers-color-scheme: dark" in style
    used = set(re.findall(r"var\((--\w+)\)", style))
    assert used <= set(re.findall(r"(--\w+):", style)), "every colour is defined"
    with pytest.raises(ArgumentError, match="draw the chart first"):
        svg_file("<svg><script/></svg>")


def test_a_page_holds_its_parts_in_order() -> None:
    svg = chart("t", [Line("a", [1, 2], [1, 2])], x_label="x", y_label="y")
    table = Table(
        "Runs", ["run", "rows", "score", "note"], [["a", 6580, -0.1234, "ok"], ["b", 3, None, True]]
    )
    parts = [
        Words("One.\n\nTwo.", "verdict"),
        Heading("First"),
        table,
        Picture(svg, "A line."),
        Heading("Second"),
    ]
    source = page("What it buys", parts)
    seen = Page(source)
    assert seen.values("content")[0].startswith("default-src 'none'; style-src 'sha256-")
    text = " ".join(seen.text.split())
    assert (
        text.index("One.")
        < text.index("Two.")
        < text.index("First")
        < text.index("6,580")
        < text.index("A line.")
    )
    assert "−0.123" in text
    assert " – " in text
    assert "yes" in text
    right = re.findall(r'<th scope="col"( class="n")?>(\w+)', source)
    assert right == [("", "run"), (' class="n"', "rows"), (' class="n"', "score"), ("", "note")]
    assert "nav" not in seen.tags
    assert "nav" in Page(page("t", [Heading(n) for n in "abc"])).tags


def test_the_policy_names_the_style_sheet_it_allows() -> None:
    seen = Page(page("t", []))
    ((tag, _, css),) = seen.raw
    assert tag == "style"
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in seen.values("content")[0]
    assert not seen.values("style")


def test_hostile_texts_stay_texts() -> None:
    table = Table(HOSTILE, [HOSTILE, "n"], [[HOSTILE, 1]])
    source = page(
        HOSTILE,
        [Words(HOSTILE), Heading(HOSTILE), table, Picture(chart("t", [], x_label="", y_label=""), HOSTILE)],
    )
    assert "<script" not in source
    assert "\u202e" not in source
    assert "\x00" not in source
    assert "<script>window.hacked=1</script>" in Page(source).text


def test_a_page_checks_its_parts() -> None:
    with pytest.raises(ArgumentError, match="row 1 has 1 cells for 2 columns"):
        page("t", [Table("T", ["a", "b"], [["x"]])])
    with pytest.raises(ArgumentError, match="a picture is an <svg> element"):
        page("t", [Picture("<img src=x>")])
