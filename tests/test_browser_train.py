"""The page of audit train in a real browser: nothing is fetched, nothing runs out of it, light, dark and narrow."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from train.page import Heading, Part, Picture, Table, Words, page
from train.pictures import Dot, Line, Rule, chart, dots, svg_file

pytestmark = pytest.mark.browser
Open = Callable[[Sequence[Part]], Any]

HOSTILE = "<img src=x onerror='window.hacked=1'><script>window.hacked=2</script>"


def curves() -> str:
    rng = np.random.default_rng(0)
    lines = [
        Line(f"run {k} on direct answers", range(1000), (0.1 * k + rng.normal(0, 0.02, 1000)).tolist())
        for k in range(6)
    ]
    return chart(
        "Mean reward by step", lines, x_label="step", y_label="mean reward", rules=[Rule(0.4, "cap")]
    )


def parts() -> list[Part]:
    wide = ["run", *(f"metric number {i}" for i in range(14))]
    rows = [[f"run {k} {HOSTILE}", *([0.123456] * 13), "a longer remark about this run"] for k in range(4)]
    rules = [Rule(0.82, "ceiling: 1 − d to 1 − ε", to=0.9), Rule(0.78, "with sampling error", to=0.92)]
    scores = [Dot(f"run {k}", 0.75 + 0.03 * k, 0.72 + 0.03 * k, 0.78 + 0.03 * k, "0.750") for k in range(5)]
    return [
        Words("Clean labels: +0.061 (+0.030 to +0.090).", "verdict"),
        Heading("Runs"), Table("Runs", wide, rows), Heading("Curves"), Picture(curves(), "Reward."),
        Heading("Ceiling"), Picture(dots("Scores in the band", scores, x_label="accuracy", rules=rules), HOSTILE),
        Words("A caution.", "caution"),
    ]  # fmt: skip


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a page; when the test is over, it must have logged, fetched and run nothing."""

    def open_page(shown: Sequence[Part]) -> Any:
        path = tmp_path / "page.html"
        path.write_text(page("What it buys", shown), encoding="utf-8")
        browser.get(path.as_uri())
        return browser

    yield open_page
    assert browser.get_log("browser") == []
    assert browser.execute_script("return performance.getEntriesByType('resource').map((e) => e.name)") == []
    assert browser.execute_script("return window.hacked") is None
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def narrow(browser: Any, width: int) -> None:
    metrics = {"width": width, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def boxes(browser: Any, selector: str) -> list[tuple[float, float, float, float, str]]:
    found = browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((e) => { const r = e.getBoundingClientRect();"
        " return [r.left, r.right, r.top, r.bottom, e.textContent]; })",
        selector,
    )
    return [tuple(box) for box in found]


@pytest.mark.parametrize("width", [1200, 390, 320])
def test_nothing_runs_out_of_the_page_or_into_other_text(opened: Open, browser: Any, width: int) -> None:
    if width < 1200:
        narrow(browser, width)
    opened(parts())
    inner, scroll = browser.execute_script("return [innerWidth, document.documentElement.scrollWidth]")
    assert scroll <= inner, "wide tables scroll by themselves"
    charts = boxes(browser, "svg.picture")
    assert len(charts) == 2
    texts = boxes(browser, "svg.picture text")
    for a in texts:
        assert charts[0][0] - 1 <= a[0], a[4]
        assert a[1] <= charts[0][1] + 1, a[4]
    for a, b in itertools.combinations(texts, 2):
        apart = a[1] <= b[0] + 1 or b[1] <= a[0] + 1 or a[3] <= b[2] + 3 or b[3] <= a[2] + 3
        assert apart, f"{a[4]!r} and {b[4]!r} run into each other at {width}"


def test_text_of_charts_is_legible_on_a_phone(opened: Open, browser: Any) -> None:
    narrow(browser, 390)
    opened(parts())
    heights = [bottom - top for _, _, top, bottom, _ in boxes(browser, "svg.picture text")]
    assert min(heights) >= 10.5


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lines_and_text_stand_out_in_both_themes(opened: Open, browser: Any, theme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    opened([Picture(chart("t", [Line(str(k), [0, 1], [k, k]) for k in range(8)], x_label="x", y_label="y"))])
    paper = luminance(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert paper > 0.9 if theme == "light" else paper < 0.05
    strokes = browser.execute_script(
        "return [...document.querySelectorAll('.picture > svg .line')].map((e) => getComputedStyle(e).stroke)"
    )
    fills = browser.execute_script(
        "return [...document.querySelectorAll('.picture text')].map((e) => getComputedStyle(e).fill)"
    )
    assert len(set(strokes)) == 8
    assert min(contrast(luminance(colour), paper) for colour in strokes) >= 3.0  # WCAG 1.4.11, graphics
    assert min(contrast(luminance(colour), paper) for colour in fills) >= 4.5  # WCAG 1.4.3, text


def luminance(colour: str) -> float:
    """Relative luminance of an ``rgb(...)`` colour (WCAG 2.2)."""
    channels = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: float, b: float) -> float:
    return (max(a, b) + 0.05) / (min(a, b) + 0.05)


def test_the_contents_lead_to_their_sections(opened: Open, browser: Any) -> None:
    opened(parts())
    links = browser.find_elements("css selector", "nav.contents a")
    assert [link.text for link in links] == ["Runs", "Curves", "Ceiling"]
    links[2].click()
    top = browser.execute_script("return document.querySelector(location.hash).getBoundingClientRect().top")
    assert -1 <= top < 900


def test_charts_have_names_for_those_who_do_not_see_them(opened: Open, browser: Any) -> None:
    opened(parts())
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    images = [n["name"]["value"] for n in nodes if n.get("role", {}).get("value") in ("img", "image")]
    assert "Mean reward by step" in images
    assert "Scores in the band" in images


def test_a_picture_stands_alone_in_a_file(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "curves.svg"
    path.write_text(svg_file(curves()), encoding="utf-8")
    browser.get(path.as_uri())
    assert browser.get_log("browser") == []
    strokes = browser.execute_script(
        "return [...document.querySelectorAll('.line')].map((e) => getComputedStyle(e).stroke)"
    )
    assert len(strokes) == 12, "six lines, and their samples in the legend"
    assert "none" not in strokes
    assert (
        browser.execute_script("return getComputedStyle(document.querySelector('.paper')).fill")
        == "rgb(255, 255, 255)"
    )
