"""The HTML report in a real browser: it is searched, filtered, unfolded, paged, printed, on a phone, in the dark."""

import base64
import dataclasses
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from audit.render_html import html
from audit.results import AuditResult, ConflictGroup, Moments
from tests.made_results import conflict, full
from tests.made_shapes import HOSTILE, SHAPES, hostile, with_conflicts

pytestmark = pytest.mark.browser
Open = Callable[[AuditResult], Any]

LONG = "<script>window.hacked = 1</script> " + "word " * 210_000


def many(count: int) -> tuple[ConflictGroup, ...]:
    """``count`` conflicts: a text of a megabyte first, one in Hebrew second."""
    first = (
        conflict((LONG,), ("yes", "<img src=x onerror='window.hacked=2'>"), 1, note="\u202ereversed\x00"),
        conflict(("טקסט בעברית (דוגמה) 123",), ("כן", "לא"), 4, note=None),
    )
    labels = (("yes", "no"), ("maybe", "no", "no"), ("yes", "no", "maybe"))
    rest = (
        conflict((f"Passage {i} on subject {i % 97}.",), labels[i % 3], 3 * i, note=f"line {i}\nnext line")
        for i in range(2, count)
    )
    return (*first, *rest)


@pytest.fixture
def report(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a result's report; when the test is over, the page must have logged and fetched nothing."""

    def open_report(result: AuditResult) -> Any:
        path = tmp_path / "report.html"
        path.write_text(html(result), encoding="utf-8")
        browser.get(path.as_uri())
        return browser

    yield open_report
    assert browser.get_log("browser") == []
    assert browser.execute_script("return performance.getEntriesByType('resource').map((e) => e.name)") == []
    assert browser.execute_script("return window.hacked") is None
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def phone(browser: Any, *, width: int = 390) -> None:
    metrics = {"width": width, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def dark(browser: Any) -> None:
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def one(browser: Any, selector: str) -> Any:
    return browser.find_element("css selector", selector)


def every(browser: Any, selector: str) -> list[Any]:
    return list(browser.find_elements("css selector", selector))


def status(browser: Any) -> str:
    return str(one(browser, "#conflict-status").text)


def wait_for(browser: Any, condition: Callable[[], object]) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 20, poll_frequency=0.05).until(lambda _: condition())


def search(browser: Any, words: str, expected: str) -> None:
    box = one(browser, "#conflict-search")
    box.clear()
    box.send_keys(words)
    wait_for(browser, lambda: status(browser) == expected)


def test_conflicts_are_searched_filtered_and_paged(report: Open) -> None:
    browser = report(with_conflicts(many(10_000)))
    assert status(browser) == "1–25 of 10,000"
    assert len(every(browser, ".conflict")) == 25, "a page at a time"
    assert not one(browser, "#conflict-previous").is_enabled()

    one(browser, "#conflict-next").click()
    assert status(browser) == "26–50 of 10,000"
    assert every(browser, ".conflict .title")[0].text == "Passage 25 on subject 25."
    one(browser, "#conflict-previous").click()
    assert status(browser) == "1–25 of 10,000"

    search(browser, "SUBJECT 96.", "1–25 of 103 found among 10,000")  # 96, 193, ... 9990
    assert {title.text.partition("on")[2] for title in every(browser, ".title")} == {" subject 96."}
    for _ in range(4):
        one(browser, "#conflict-next").click()
    assert status(browser) == "101–103 of 103 found among 10,000"
    assert not one(browser, "#conflict-next").is_enabled()
    search(browser, "no such text", "None found among 10,000")
    search(browser, "line 7777", "1–1 of 1 found among 10,000")  # in a column beside the label
    search(browser, "<script>", "1–1 of 1 found among 10,000")
    search(browser, "עברית", "1–1 of 1 found among 10,000")
    search(browser, " ", "1–25 of 10,000")


def test_conflicts_are_filtered_by_a_pair_of_classes(report: Open) -> None:
    from selenium.webdriver.support.ui import Select

    browser = report(with_conflicts(many(300)))
    choice = Select(one(browser, "#conflict-pair"))
    counts = {re.sub("[\u2068\u2069]", "", option.text): option for option in choice.options}
    # i runs from 2 to 299 and its remainder by 3 decides the labels: 99 of 0, 99 of 1 and 100 of 2.
    assert list(counts)[:4] == ["all", "maybe / no (199)", "no / yes (199)", "maybe / yes (100)"]
    assert len(counts) == 6
    choice.select_by_visible_text(counts["maybe / yes (100)"].text)
    assert status(browser) == "1–25 of 100 found among 300"
    assert all("maybe × 1" in part.text and "yes × 1" in part.text for part in every(browser, ".labels"))
    # Passages 2, 20 to 29 and 200 to 299 of remainder 2: 1 + 4 + 34.
    search(browser, "passage 2", "1–25 of 39 found among 300")
    choice.select_by_index(0)
    assert status(browser) == "1–25 of 111 found among 300"


def test_a_conflict_unfolds_and_shows_its_text_as_text(report: Open) -> None:
    browser = report(with_conflicts(many(40)))
    card = every(browser, ".conflict")[0]
    assert card.find_elements("css selector", ".body") == []
    assert "<script>window.hacked = 1</script>" in card.text
    card.find_element("css selector", "summary").click()
    wait_for(browser, lambda: card.find_elements("css selector", ".body"))
    block = card.find_element("css selector", ".text")
    assert len(block.text) < 1_100
    assert [cell.text for cell in card.find_elements("css selector", "td")] == [
        "1", "yes", "‹RLO›reversed‹NUL›", "2", "<img src=x onerror='window.hacked=2'>", "‹RLO›reversed‹NUL›",
    ]  # fmt: skip
    button = card.find_element("css selector", "button")
    assert button.text == "show all 1,050,035 characters"
    button.click()
    assert button.text == "show less"
    assert browser.execute_script("return arguments[0].textContent", block) == LONG
    button.click()
    assert browser.execute_script("return arguments[0].textContent.length", block) == 1_001

    one(browser, "#conflict-expand").click()
    wait_for(browser, lambda: len(every(browser, ".body")) == 25)
    assert len(every(browser, "details[open] .body")) == 25
    hebrew = every(browser, ".conflict")[1].find_element("css selector", ".text")
    assert browser.execute_script("return getComputedStyle(arguments[0]).direction", hebrew) == "rtl"
    assert every(browser, ".conflict")[1].find_elements("css selector", "td")[2].text == "–"
    one(browser, "#conflict-collapse").click()
    assert every(browser, "details[open].conflict, .conflict details[open]") == []


def test_conflicts_are_reached_with_the_keyboard(report: Open) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = report(with_conflicts(many(30)))
    box = one(browser, "#conflict-search")
    box.click()
    order = ["conflict-pair", "conflict-expand", "conflict-collapse"]
    for name in order:
        browser.switch_to.active_element.send_keys(Keys.TAB)
        assert browser.switch_to.active_element.get_attribute("id") == name
    browser.switch_to.active_element.send_keys(Keys.TAB)
    assert browser.switch_to.active_element.tag_name == "summary"
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    wait_for(browser, lambda: every(browser, ".body"))
    outline = browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_text_is_shown_and_not_run(report: Open, value: str) -> None:
    browser = report(hostile(value))
    one(browser, "#conflict-list summary").click()
    wait_for(browser, lambda: every(browser, ".conflict .body"))
    assert every(browser, "img, iframe, object, b, em, a[href^=javascript]") == every(browser, "#repeats b")
    assert len(every(browser, "script")) == 2


@pytest.mark.parametrize("width", [390, 320])
@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_overflows_on_a_phone(report: Open, browser: Any, shape: str, width: int) -> None:
    phone(browser, width=width)
    report(SHAPES[shape]())
    assert_fits(browser, width)


def test_a_phone_shows_the_items_under_the_value(report: Open, browser: Any) -> None:
    report(full())
    first = one(browser, ".breakdown tbody tr")
    assert first.text.split("\n")[0].startswith("train 180 35 0.192"), "a wide screen has columns for them"
    phone(browser)
    assert first.text.split("\n")[:2] == ["train", "180 items"]


def test_hostile_text_does_not_overflow_a_phone(report: Open, browser: Any) -> None:
    phone(browser)
    report(hostile("W" * 400))
    one(browser, "#conflict-list summary").click()
    wait_for(browser, lambda: every(browser, ".conflict .body"))
    assert_fits(browser, 390)


def assert_fits(browser: Any, width: int) -> None:
    """No sideways scrolling, no element that reaches out of the page (but inside a box that scrolls)."""
    assert browser.execute_script("return document.documentElement.scrollWidth") == width
    outside = browser.execute_script(
        "return [...document.querySelectorAll('main *, header *')].filter((e) => !e.closest('.scroll, .skip')"
        " && e.getBoundingClientRect().right > innerWidth + 0.5).map((e) => e.outerHTML.slice(0, 200))"
    )
    assert outside == []


def luminance(colour: str) -> float:
    parts = [int(x) / 255 for x in re.findall(r"\d+", colour)[:3]]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark(report: Open, browser: Any, theme: str) -> None:
    """WCAG 2 AA: a contrast of 4.5 for every piece of text on its own background."""
    if theme == "dark":
        dark(browser)
    report(full())
    one(browser, "#conflict-list summary").click()
    wait_for(browser, lambda: every(browser, ".conflict .body"))
    pairs = browser.execute_script(
        "const seen = new Set(); const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);"
        "while (walk.nextNode()) { const e = walk.currentNode.parentElement;"
        "  if (!walk.currentNode.data.trim() || e.closest('script, :disabled') || !e.checkVisibility()) continue;"
        "  const paint = (n) => getComputedStyle(n).backgroundColor;"
        "  let back = e; while (paint(back) === 'rgba(0, 0, 0, 0)') back = back.parentElement;"
        "  const ink = e.closest('svg') ? getComputedStyle(e).fill : getComputedStyle(e).color;"
        "  seen.add(JSON.stringify([ink, paint(back)])); }"
        "return [...seen].map(JSON.parse)"
    )
    assert len(pairs) >= 8
    for ink, paper in pairs:
        light, low = sorted((luminance(ink), luminance(paper)), reverse=True)
        assert (light + 0.05) / (low + 0.05) >= 4.5, (ink, paper)
    paper = luminance(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert paper > 0.9 if theme == "light" else paper < 0.05


def test_the_page_prints_with_everything_unfolded(report: Open, browser: Any) -> None:
    dark(browser)
    report(full())
    browser.execute_script(
        "const count = (s) => document.querySelectorAll(s).length;"
        "addEventListener('beforeprint', () => { window.printed = [count('.conflict .body'),"
        " count('details:not([open])'), document.getElementById('conflict-printed').textContent]; })"
    )
    pdf = base64.b64decode(browser.print_page())
    assert pdf.startswith(b"%PDF")
    assert browser.execute_script("return window.printed") == [49, 0, "49 of 49 conflicts are printed."]
    wait_for(browser, lambda: len(every(browser, ".conflict")) == 25)  # and the screen is as it was
    assert len(every(browser, ".conflict .body")) == 0
    assert not one(browser, "details.more").get_attribute("open")

    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
    paper = browser.execute_script(
        "return getComputedStyle(document.querySelector('.alarm')).backgroundColor"
    )
    assert luminance(paper) > 0.8, "light on paper, whatever the screen"
    for selector in ("nav", "#conflict-tools", "#conflict-pager", "#conflict-status"):
        assert not one(browser, selector).is_displayed()


def test_without_its_script_the_page_still_shows_conflicts(report: Open, browser: Any) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        report(full())
        assert len(every(browser, ".conflict")) == 25
        assert not one(browser, "#conflict-tools").is_displayed()
        one(browser, "#conflict-list summary").click()
        assert "Northwind Foods recalled" in one(browser, ".conflict .text").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def apart(browser: Any) -> None:
    """No two words of the drawing of the band run into each other."""
    labels = browser.execute_script(
        "return [...document.querySelectorAll('.chart-band text')].map((t) => { const r = t.getBoundingClientRect();"
        " return [r.left, r.right, r.top, r.bottom, t.textContent]; })"
    )
    for a, b in itertools.combinations(labels, 2):
        free = a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] + 2 or b[3] <= a[2] + 2
        assert free, f"{a[4]} and {b[4]} run into each other"


def several_labels() -> AuditResult:
    """An audit whose items have up to five labels, so that a second bar is drawn."""
    made = full()
    more = Moments(
        lower=0.84,
        upper=0.89,
        low=0.81,
        high=0.91,
        repeats=5,
        items=300,
        items_with_three=250,
        fit_p_value=0.5,
    )
    return dataclasses.replace(made, ceiling=dataclasses.replace(made.ceiling, moments=more))


@pytest.mark.parametrize("width", [1_000, 400])
def test_the_second_bar_is_drawn_where_its_numbers_say(report: Open, browser: Any, width: int) -> None:
    browser.set_window_size(width, 900)
    report(several_labels())
    box = (
        "const r = document.querySelector(arguments[0]).getBoundingClientRect();"
        " return [r.left, r.right, r.top, r.height]"
    )
    pairs, thin = (
        browser.execute_script(box, f".chart-band .band{name}") for name in (":not(.thin)", ".thin")
    )
    assert thin[2] > pairs[2] + pairs[3]
    assert thin[3] < pairs[3]
    ceiling = several_labels().ceiling
    assert ceiling.lower is not None
    assert ceiling.upper is not None
    scale = (pairs[1] - pairs[0]) / (ceiling.upper - ceiling.lower)
    assert abs(pairs[0] + (0.84 - ceiling.lower) * scale - thin[0]) < 2
    assert abs(pairs[0] + (0.89 - ceiling.lower) * scale - thin[1]) < 2
    apart(browser)


def test_the_band_is_drawn_where_its_numbers_say(report: Open, browser: Any) -> None:
    report(full())
    boxes = [
        browser.execute_script(
            "const r = document.querySelector(arguments[0]).getBoundingClientRect(); return [r.left, r.right]",
            f".chart-band .{name}",
        )
        for name in ("wide", "band")
    ]
    ticks = browser.execute_script(
        "return [...document.querySelectorAll('.chart-band text.tick:not(.name)')].map((t) => {"
        " const r = t.getBoundingClientRect(); return [Number(t.textContent), (r.left + r.right) / 2]; })"
    )
    (first, x0), (last, x1) = ticks[0], ticks[-1]

    def at(value: float) -> float:
        return float(x0 + (value - first) / (last - first) * (x1 - x0))

    ceiling = full().ceiling
    drawn = itertools.chain.from_iterable(boxes)
    for value, x in zip((ceiling.low, ceiling.high, ceiling.lower, ceiling.upper), drawn, strict=True):
        assert value is not None
        assert abs(at(value) - x) < 2
    apart(browser)
