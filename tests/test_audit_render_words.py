"""Words and charts that the reports share."""

import dataclasses
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit import charts
from audit import render_words as words
from audit.results import Alarm, Ceiling, Comparison, Estimate
from tests.made_results import full
from tests.made_shapes import refused, texts

UNIT = st.floats(0, 1)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x00", "‹NUL›"),
        ("\x1b[2J", "‹ESC›[2J"),
        ("\x7f\x85\x90", "‹DEL›‹NEL›‹U+0090›"),
        ("\u202eabc\u202c", "‹RLO›abc‹PDF›"),
        ("a\u200bb\ufeff", "a‹ZWSP›b‹BOM›"),
        ("yes\u200d", "yes‹ZWJ›"),
        ("👩\u200d🔬", "👩\u200d🔬"),  # joiners between other letters and emoji mean something
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("\ud800", "‹U+D800›"),
        ("\U000e0041", "‹U+E0041›"),
        ("a\r\nb\tc", "a\nb\tc"),
        ("a\rb", "a‹CR›b"),
        ("שלום é", "שלום é"),
    ],
)
def test_unseen_characters_are_spelled_out(raw: str, shown: str) -> None:
    assert words.visible(raw) == shown


@given(st.one_of(texts, st.text()))
def test_visible_text_holds_nothing_unseen(value: str) -> None:
    line = words.visible(value, one_line=True)
    assert not [c for c in line if unicodedata.category(c) in ("Cc", "Cs")]
    assert words.visible(line) == line
    assert "\n" not in line
    line.encode()
    if value.isascii() and value.isprintable():
        assert line == value


def test_numbers_are_written_plainly() -> None:
    assert words.number(0.18449) == "0.184"
    assert words.number(-0.0067) == "−0.007"
    assert words.number(None) == "–"
    assert words.interval(Estimate(estimate=0.1)) == ""
    assert words.integer(1234567) == "1,234,567"
    assert words.percent(0.95) == "95%"
    assert words.percent(0.995) == "99.5%"
    assert words.p_value(0.0004) == "p < 0.001"
    assert words.p_value(0.0346) == "p = 0.035"
    assert words.p_value(None) == ""


@pytest.mark.parametrize(("width", "digits"), [(0.1, 3), (0.0101, 3), (0.009, 4), (0.0009, 5)])
def test_decimals_follow_the_interval(width: float, digits: int) -> None:
    result = full()
    d = dataclasses.replace(result.disagreement, low=0.1, high=0.1 + width)
    assert words.places(dataclasses.replace(result, disagreement=d)) == digits


def test_figures_of_an_alarm_are_readable() -> None:
    values = {"by_row_id": True, "p_value": 1.23456e-7, "items": 12345, "none": None, "all": list(range(12))}
    values |= {"variants": [["Yes", "yes "], ["1", "1.0"]], "of": {"a\x00": 0.25}}
    assert words.figures(values) == (
        ("by row id", "yes"),
        ("p value", "1.235e-07"),
        ("items", "12,345"),
        ("none", "–"),
        ("all", "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"),
        ("variants", "(Yes, yes ), (1, 1.0)"),
        ("of", "a‹NUL›: 0.25"),
    )


def test_a_message_is_told_without_its_code() -> None:
    alarm = Alarm(
        code="leakage", severity="warning", message="Leakage: 3 items stand in two splits.", action=""
    )
    assert words.alarm_message(alarm) == "3 items stand in two splits."
    assert words.alarm_message(dataclasses.replace(alarm, code="x")) == alarm.message


def test_a_reason_is_given_once() -> None:
    result = refused()
    (reason,) = words.missing_reasons(result)
    assert words.missing_reasons(result, told=(f"So: {reason.upper()}!",)) == ()


def test_comparisons_in_words() -> None:
    same = Comparison(column="split", p_value=0.2, method="chi-squared test")
    assert words.comparison_sentences(same, level=0.95) == (
        "Same d for every value? p = 0.200, no sign that d differs (chi-squared test).",
    )
    other = dataclasses.replace(
        same,
        p_value=0.03,
        within=Estimate(estimate=0.1, low=0.05, high=0.2),
        across=Estimate(estimate=0.3),
        items_across=1,
        contrast_p_value=0.0001,
    )
    first, second = words.comparison_sentences(other, level=0.95)
    assert "d differs between the values" in first
    assert "no sign" in words.comparison_sentences(other, level=0.99)[0]
    assert second == (
        "d of two labels of one item is 0.100 (0.050 to 0.200) where they share the value and 0.300 where they do not "
        "(no difference: p < 0.001); 1 item has labels under several values."
    )
    apart = dataclasses.replace(other, within=Estimate(estimate=None))
    assert words.comparison_sentences(apart, level=0.95)[1] == (
        "No two labels of an item share a value; 1 item has labels under several."
    )
    never = dataclasses.replace(
        apart, p_value=None, reason="nobody labelled an item twice", items_across=1_200
    )
    assert words.comparison_sentences(never, level=0.95) == (
        "Nobody labelled an item twice; 1,200 items have labels under several values.",
    )
    together = dataclasses.replace(other, across=None, items_across=0)
    assert len(words.comparison_sentences(together, level=0.95)) == 1
    assert words.comparison_sentences(Comparison(column="a", p_value=None, method=""), level=0.95) == ()


def test_the_source_is_named_without_its_folders() -> None:
    result = full()
    for source, name in (("a/b.csv", "b.csv"), ("C:\\a\\b.csv", "b.csv"), ("-", "-"), ("a/", "a/")):
        data = dataclasses.replace(result.data, source=source)
        assert words.source_name(dataclasses.replace(result, data=data)) == name


# --- charts --------------------------------------------------------------------------------------------------


@given(UNIT, UNIT)
def test_an_axis_covers_its_values_with_few_round_ticks(one: float, other: float) -> None:
    low, high = min(one, other), max(one, other)
    axis = charts.nice_axis(low, high)
    assert axis.start <= low + 1e-9
    assert axis.stop >= high - 1e-9
    assert len(axis.ticks) <= 6
    steps = [b - a for a, b in zip(axis.ticks, axis.ticks[1:], strict=False)]
    assert not steps or max(steps) - min(steps) < 1e-9
    texts_of = [axis.tick_text(tick) for tick in axis.ticks]
    assert len(set(texts_of)) == len(texts_of), "the decimals tell the ticks apart"


def test_ticks_are_exact() -> None:
    assert charts.nice_axis(0, 0.388, most_ticks=5).ticks == (0.0, 0.1, 0.2, 0.3, 0.4)
    assert charts.nice_axis(0, 0.0021).ticks == (0.0, 0.0005, 0.001, 0.0015, 0.002, 0.0025)


def positions(svg: str) -> list[float]:
    return [float(x) for x in re.findall(r'(?:x|x1|x2|cx)="(-?[\d.]+)%"', svg)]


@given(st.tuples(UNIT, UNIT, UNIT, UNIT).map(sorted))
def test_the_band_is_drawn_in_order_and_inside(ends: list[float]) -> None:
    low, lower, upper, high = ends
    svg = charts.band(Ceiling(lower=lower, upper=upper, low=low, high=high), digits=3)
    assert all(0 <= x <= 100 for x in positions(svg))
    wide, solid = re.findall(r'<rect class="(?:wide|band)" x="([\d.]+)%" y="\d+" width="([\d.]+)%"', svg)
    assert float(wide[0]) <= float(solid[0]) + 0.01
    assert float(wide[0]) + float(wide[1]) >= float(solid[0]) + float(solid[1]) - 0.5
    for value in (lower, upper, low, high):
        assert f"{value:.3f}" in svg
    rows: dict[str, list[tuple[float, str]]] = {}
    for x, y, anchor in re.findall(
        r'<text class="(?:end|limit)" x="([\d.]+)%" y="(\d+)" text-anchor="(\w+)"', svg
    ):
        rows.setdefault(y, []).append((float(x), anchor))
    for labels in rows.values():
        if len(labels) == 2:  # two labels in a row grow away from each other
            assert [anchor for _, anchor in sorted(labels)] == ["end", "start"] or labels[0][0] == labels[1][
                0
            ]


def test_there_is_no_drawing_without_a_band() -> None:
    assert charts.band(Ceiling(lower=None, upper=None, low=None, high=None), digits=3) == ""
    assert charts.band(Ceiling(lower=0.8, upper=None, low=0.7, high=None), digits=3) == ""


def test_a_whisker_stands_where_its_numbers_are() -> None:
    axis = charts.nice_axis(0, 0.4, most_ticks=5)
    svg = charts.whisker(axis, 0.2, 0.1, 0.3, reference=0.4)
    assert 'class="whisker" x1="26.00%" x2="74.00%"' in svg  # margins of 2 % on both sides
    assert 'cx="50.00%"' in svg
    assert 'class="reference" x1="98.00%"' in svg
    nothing = charts.whisker(axis, None, None, None, reference=None)
    assert "circle" not in nothing
    assert "whisker" not in nothing.partition(">")[2]


def test_a_bar_is_held_to_its_cell() -> None:
    assert 'width="25.00%"' in charts.bar(0.25)
    assert 'width="100.00%"' in charts.bar(1.5)
