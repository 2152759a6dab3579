"""The reports as text, Markdown and HTML: what they say, and that text of the file stays text in each."""

import dataclasses
import itertools
import re
import unicodedata

import pytest
from hypothesis import given
from markdown_it import MarkdownIt

from audit.render_html import html
from audit.render_markdown import markdown
from audit.render_methods import SHARED_MISTAKES
from audit.render_text import text
from audit.render_words import visible
from audit.results import AuditResult
from tests.made_results import full
from tests.made_shapes import (
    HOSTILE,
    SHAPES,
    hostile,
    many_classes,
    no_conflicts,
    no_repeats,
    refused,
    texts,
)
from tests.pages import Page, spaced

COMMONMARK = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
FORMATS = {"text": text, "markdown": markdown, "html": html}
each_shape = pytest.mark.parametrize("shape", SHAPES)
each_format = pytest.mark.parametrize("form", FORMATS)


def plain(form: str, result: AuditResult) -> str:
    """The words of a report without its markup."""
    written = FORMATS[form](result)
    if form == "html":
        return spaced(Page(written).text)
    return spaced(Page(COMMONMARK.render(written)).text if form == "markdown" else written)


# --- every report of every shape ---------------------------------------------------------------------------


@each_shape
@each_format
def test_every_report_says_the_verdict_and_what_d_cannot_see(form: str, shape: str) -> None:
    result = SHAPES[shape]()
    words = plain(form, result)
    assert spaced(SHARED_MISTAKES) in words
    for sentence in (result.verdict.headline, *result.verdict.next_steps):
        assert spaced(sentence) in words
    assert not re.search(r"\b(None|nan|inf|True|False)\b(?! of)", words), "numbers that do not exist are –"


@each_format
def test_the_numbers_of_a_full_audit(form: str) -> None:
    words = plain(form, full())
    # d = .1838 -> eps_2 = (1 - sqrt(1 - 2 d))/2 = .1024; interval .1409 to .2363 -> .0763 to .1369
    assert "0.184" in words
    assert "0.141 to 0.236" in words
    assert "0.102" in words
    assert "0.076 to 0.137" in words
    assert "0.764 to 0.924" in words  # 1 - .2363, 1 - .0763
    assert "0.898" in words
    for value in ("train", "validation", "annotator 3", "p = 0.871", "Fisher's exact test"):
        assert value in words
    assert "Not tested: 20 values are too many for 252 items." in words


@each_format
def test_missing_numbers_have_their_reason(form: str) -> None:
    words = plain(form, no_repeats())
    assert "no item has two labels, so disagreement cannot be measured" in words
    assert "None of 6,221 items (6,580 rows) has several labels." in words
    words = plain(form, refused())
    assert "113 of 118 repeated items conflict" in words
    assert "0.958" in words
    assert re.search(r"flip rate ε,? ?(5 classes)?\W*–", words.lower())


@each_format
def test_without_conflicts_the_interval_is_one_sided(form: str) -> None:
    words = plain(form, no_conflicts())
    assert "0.000 to 0.139" in words  # 1 - .05^(1/20)
    assert "0.861" in words
    if form != "text":
        assert "may still be as low as 0.861 (95%, one-sided)" in words


@each_format
def test_the_rival_form_stands_beside_the_even_one(form: str) -> None:
    words = plain(form, many_classes())
    # d = .2720: eps_4 = (3/4)(1 - sqrt(1 - 4 d/3)) = .1512, eps_2 = .1624
    assert re.search(r"lip rate ε, 4 classes\W+0\.151", words)
    assert re.search(r"one rival class\W+0\.162", words)
    assert "one rival class" not in plain(form, full()).split("Methods and assumptions")[0]


@each_format
def test_narrow_intervals_get_more_decimals(form: str) -> None:
    base = full()
    d = dataclasses.replace(base.disagreement, estimate=0.05123, low=0.0504, high=0.0521)
    assert "0.0512" in plain(form, dataclasses.replace(base, disagreement=d))


# --- text ----------------------------------------------------------------------------------------------------


@each_shape
def test_text_fits_a_terminal(shape: str) -> None:
    written = text(SHAPES[shape]())
    lines = written.splitlines()
    assert written.endswith("\n")
    assert max(map(len, lines)) <= 100
    assert len(lines) <= 55
    assert "\x1b" not in written
    assert max(map(len, text(SHAPES[shape](), width=72).splitlines())) <= 76


def test_text_aligns_its_numbers() -> None:
    lines = text(full()).splitlines()
    rows = [line for line in lines if re.match(r"(disagreement|flip rate|retest|Krippendorff)", line)]
    assert len(rows) == 6
    assert {row.index("0.") for row in rows} == {51}
    values = [line for line in lines if line.startswith(("  train", "  validation", "  test", "  annotator"))]
    assert {line.index("0.") for line in values} == {47}


def test_text_is_coloured_only_when_asked() -> None:
    coloured = text(full(), colour=True)
    assert "\x1b[1;33mWARNING\x1b[0m leakage: 31 items" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == text(full())


def test_text_aligns_wide_characters() -> None:
    line = next(
        line for line in text(hostile("漢字")).splitlines() if line.startswith("  漢字") and "0.100" in line
    )
    assert line.index("0.100") == 47 - 2


@given(texts)
def test_text_cannot_steer_the_terminal(value: str) -> None:
    written = text(hostile(value), colour=False)
    bad = [c for c in written if c != "\n" and unicodedata.category(c) in ("Cc", "Cs")]
    assert not bad
    assert not re.search("[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", written)
    written.encode()


# --- Markdown ------------------------------------------------------------------------------------------------

MARKDOWN_TAGS = {
    "h1", "h2", "p", "strong", "em", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "code", "blockquote",
    "br",
}  # fmt: skip


@given(texts)
def test_markdown_keeps_hostile_text_as_text(value: str) -> None:
    page = Page(COMMONMARK.render(markdown(hostile(value))))
    assert set(page.tags) <= MARKDOWN_TAGS
    assert page.tags.count("h1") == 1
    assert {name for _, name, _ in page.attributes} <= {"style"}  # of table cells
    assert not page.comments
    usual = Page(COMMONMARK.render(markdown(hostile("usual"))))
    assert page.tags.count("td") == usual.tags.count("td")
    shown = spaced(visible(value, one_line=True))[:150]
    assert shown in spaced(page.text)


@pytest.mark.parametrize("value", HOSTILE)
def test_markdown_tables_keep_their_columns(value: str) -> None:
    lines = [line for line in markdown(hostile(value)).split("\n") if line.startswith("|")]
    for head, rule in itertools.pairwise(lines):
        if set(rule) <= set("|:- "):
            assert head.count("|") == rule.count("|")


def test_markdown_names_what_it_left_out() -> None:
    written = markdown(full())
    assert "The hardest 20 of 49; `--conflicts FILE` writes all of them." in written
    assert written.count("Northwind Foods recalled") == 7
