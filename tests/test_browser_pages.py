"""Reports of compare, leak, issues and kinds of labels in a real browser: quiet, legible, and drawn where they say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from audit.render import render
from tests.made_reports import REPORTS, made
from tests.test_browser_report import assert_fits, dark, luminance, phone

pytestmark = pytest.mark.browser
Open = Callable[[str], Any]


@pytest.fixture
def report(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a report; when the test is over, the page must have logged, fetched and run nothing of the file's."""

    def open_report(name: str) -> Any:
        path = tmp_path / "report.html"
        path.write_text(render(made(name), "html"), encoding="utf-8")
        browser.get(path.as_uri())
        return browser

    yield open_report
    assert browser.get_log("browser") == []
    assert browser.execute_script("return performance.getEntriesByType('resource').map((e) => e.name)") == []
    assert browser.execute_script("return window.hacked") is None
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("name", REPORTS)
def test_hostile_text_is_shown_and_nothing_overflows(report: Open, browser: Any, name: str) -> None:
    for width in (390, 320):
        phone(browser, width=width)
        report(name)
        assert_fits(browser, width)
    assert len(browser.find_elements("css selector", "script, img, iframe, object")) == (
        2 if browser.find_elements("css selector", "#conflict-data") else 1
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark(report: Open, browser: Any, theme: str) -> None:
    if theme == "dark":
        dark(browser)
    report("issues")
    pairs = browser.execute_script(
        "const paint = (n) => getComputedStyle(n).backgroundColor;"
        "return [...document.querySelectorAll('td, th, p, dd, dt, h1, h2, h3, .under, code, .tick')]"
        ".filter((e) => e.checkVisibility()).map((e) => { let back = e;"
        "  while (paint(back) === 'rgba(0, 0, 0, 0)') back = back.parentElement;"
        "  return [e.closest('svg') ? getComputedStyle(e).fill : getComputedStyle(e).color, paint(back)]; })"
    )
    assert len(pairs) > 100
    for ink, paper in {tuple(pair) for pair in pairs}:
        light, low = sorted((luminance(ink), luminance(paper)), reverse=True)
        assert (light + 0.05) / (low + 0.05) >= 4.5, (ink, paper)


def test_dots_and_intervals_are_drawn_where_their_numbers_say(report: Open, browser: Any) -> None:
    report("numeric")
    ticks, rows = browser.execute_script(
        "const table = document.querySelector('#value table'); const box = (e) => e.getBoundingClientRect();"
        "const middle = (e) => (box(e).left + box(e).right) / 2;"
        "const lines = [...table.querySelector('td.plot svg').querySelectorAll('.grid')].map(middle);"
        "return [[...table.querySelectorAll('thead .tick')].map((t, k) => [Number(t.textContent), lines[k]]),"
        " [...table.querySelectorAll('td.plot svg')].map((s) => [middle(s.querySelector('.dot')),"
        "  box(s.querySelector('.whisker')).left, box(s.querySelector('.whisker')).right,"
        "  middle(s.querySelector('.reference'))])]"
    )
    (first, x0), (last, x1) = ticks[0], ticks[-1]

    def at(value: float | None) -> float:
        assert value is not None
        return float(x0 + (value - first) / (last - first) * (x1 - x0))

    result = made("numeric")
    assert len(rows) == len(result.by_value)
    for part, drawn in zip(result.by_value, rows, strict=True):
        sd = part.noise_sd
        wanted = (sd.estimate, sd.low, sd.high, result.noise_sd.estimate)
        assert max(abs(at(value) - x) for value, x in zip(wanted, drawn, strict=True)) < 2


def test_a_folded_table_unfolds_and_prints(report: Open, browser: Any) -> None:
    report("compare-many")
    folded = browser.find_element("css selector", "#confusion details")
    assert not folded.get_attribute("open")
    folded.find_element("css selector", "summary").click()
    assert folded.get_attribute("open")
    shown = folded.find_elements("css selector", "tbody tr")
    moves = sum(
        1 for i, row in enumerate(made("compare-many").confusion) for j, n in enumerate(row) if i != j and n
    )
    assert len(shown) == min(moves, 50) - 12
