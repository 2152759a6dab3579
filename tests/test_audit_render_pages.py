"""Reports of compare, leak, issues and kinds of labels: their numbers, their structure, and text that stays text."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
from typing import Any

import pandas as pd
import pytest
from markdown_it import MarkdownIt

from audit.comparing import compare_files
from audit.errors import ArgumentError
from audit.issues import find_issues
from audit.label_grades import audit_ordinal
from audit.label_numbers import audit_numeric
from audit.label_sets import audit_tags
from audit.leakage import find_leaks
from audit.render import render
from audit.render_page import Row, SectionTable, item_text, numeric_columns
from audit.results import Estimate
from tests.made_reports import ITEM, LABEL, LABELS, REPORTS, made
from tests.pages import HTML_TAGS, Page, spaced

COMMONMARK = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
PAGES = ("compare", "compare-many", "leak", "issues", "numeric")
each_report = pytest.mark.parametrize("name", REPORTS)


def page(name: str) -> Page:
    return Page(render(made(name), "html"))


def words(name: str, form: str) -> str:
    """The words of a report as a reader sees them."""
    written = render(made(name), form)  # type: ignore[arg-type]
    return spaced(Page(written if form == "html" else COMMONMARK.render(written)).text)


# --- every report ----------------------------------------------------------------------------------------------


@each_report
def test_hostile_text_stays_text(name: str) -> None:
    written = render(made(name), "html")
    written.encode()
    shown = Page(written)
    assert set(shown.tags) <= HTML_TAGS
    assert not shown.comments
    assert not [key for _, key, _ in shown.attributes if key.startswith("on") or key == "style"]
    assert not [c for c in written if c in "\x00\x1b\u202e\u2028"]
    assert not [value for value in shown.values("href") if "javascript" in value]
    told = spaced(shown.text)
    assert "‹RLO›" in told, "what cannot be seen is spelled out"
    for label in LABELS[:2] if name in ("compare", "issues", "ordinal") else ():
        assert label in told


@each_report
def test_nothing_comes_from_elsewhere(name: str) -> None:
    written, shown = render(made(name), "html"), page(name)
    for address in ("http:", "https:", "@import", "url(", "//cdn"):
        assert address not in written
    assert not shown.values("src")
    assert {value.partition(":")[0] for value in shown.values("href") if not value.startswith("#")} == {
        "data"
    }
    (policy,) = [value for value in shown.values("content") if value.startswith("default-src")]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    run = [content for _, attributes, content in shown.raw if "type" not in attributes]
    assert len(run) == 2
    for content in run:
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


@each_report
def test_the_page_is_accessible_in_its_structure(name: str) -> None:
    shown = page(name)
    ids = shown.values("id")
    assert len(ids) == len(set(ids))
    assert {value[1:] for value in shown.values("href") if value.startswith("#")} <= set(ids)
    assert shown.tags.count("h1") == 1
    cells = [a for a in shown.attributes if a[0] == "th" and a[1] == "scope"]
    assert len(cells) == shown.tags.count("th")
    named = [a for a in shown.attributes if a[0] == "svg" and a[1] in ("aria-label", "aria-hidden")]
    assert len(named) == shown.tags.count("svg")


@each_report
def test_markdown_is_valid_and_says_what_the_page_says(name: str) -> None:
    written = render(made(name), "markdown")
    shown = Page(COMMONMARK.render(written))
    assert set(shown.tags) <= {
        "h1", "h2", "h3", "p", "strong", "em", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "code",
        "blockquote", "br",
    }  # fmt: skip
    assert {key for _, key, _ in shown.attributes} <= {"style"}
    lines = written.split("\n")
    rules = [line for line in lines if "---" in line and set(line) <= set("|:- ")]
    assert shown.tags.count("table") == len(rules), "every table is read as one"
    width = 0
    for head, line in itertools.pairwise(lines):
        if line.startswith("|") and "---" in line and set(line) <= set("|:- "):
            width = line.count("|")
            assert head.count("|") == width
        elif line.startswith("|") and width and head.startswith("|"):
            assert line.count("|") == width
        elif not line.startswith("|"):
            width = 0
    titles = re.findall(r"<h2>(.*?)</h2>", render(made(name), "html"))
    for title in titles:
        if name in PAGES:
            assert f"## {title}" in written


@each_report
def test_no_number_is_none_or_nan(name: str) -> None:
    for form in ("html", "markdown", "text"):
        told = render(made(name), form)  # type: ignore[arg-type]
        body = spaced(Page(told).text) if form == "html" else told
        assert not re.search(r"\b(None|nan|inf|True|False)\b(?! of| has)", body)


@each_report
def test_json_and_text_are_the_result_itself(name: str) -> None:
    result = made(name)
    assert json.loads(render(result, "json")) == json.loads(json.dumps(result.to_dict()))
    assert "\x00" not in render(result, "json")
    text = render(result, "text")
    if name == "numeric":
        assert " ".join(text.split()).startswith(result.verdict.headline)
        assert all(step in " ".join(text.split()) for step in result.verdict.next_steps)
        assert "Noise by value" in text
    elif name in PAGES:
        assert text == result.summary()


def test_a_result_without_a_report_says_so() -> None:
    with pytest.raises(ArgumentError, match="has no report as html: ask for text or json"):
        render(Estimate(estimate=0.5), "html")


# --- the numbers of each are those of to_dict() ------------------------------------------------------------------


def number(value: float | None, form: str = ".3f") -> str:
    return "–" if value is None else format(value, form).replace("-", "−")


def pair(part: dict[str, Any], form: str = ".3f") -> str:
    """An estimate as Markdown has it: ``0.181 (0.142 to 0.224)``."""
    if part["low"] is None:
        return number(part["estimate"], form)
    return f"{number(part['estimate'], form)} ({number(part['low'], form)} to {number(part['high'], form)})"


def under(part: dict[str, Any], form: str = ".3f") -> str:
    """The same on the page, where the limits stand under the number."""
    return pair(part, form).replace("(", "").replace(")", "")


def cells(shown: str, title: str) -> list[list[str]]:
    """The cells of the first table of a section in Markdown."""
    lines = shown.split(f"## {title}\n")[1].split("\n## ")[0].split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("|")) + 2
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[start:])
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_the_numbers_of_a_comparison() -> None:
    told, shown, plain = made("compare").to_dict(), words("compare", "html"), words("compare", "markdown")
    for side in ("before", "after"):
        for part in (told[side]["disagreement"], told[side]["flip_rate"]):
            assert under(part) in shown
            assert pair(part) in plain
        assert number(told[side]["kappa"]) in shown
    assert number(told["difference"]["estimate"]) in shown
    table = cells(render(made("compare"), "markdown"), "Labels before and after")
    for row, counts in zip(table, told["confusion"], strict=True):
        shares = [f"{n:,} ({n / sum(counts):.1%})" if n else "0" for n in counts]
        assert row[1:] == shares
    for part in told["moved"]:
        assert under(part["share"]) in shown
    page_of = page("compare")
    assert page_of.tags.count("circle") == 2 + 1 + len(told["classes"])
    assert ITEM[:7] in page_of.text


def test_a_comparison_of_many_classes_lists_its_moves() -> None:
    told = made("compare-many").to_dict()
    table = cells(render(made("compare-many"), "markdown"), "Labels before and after")
    counts = [n for i, row in enumerate(told["confusion"]) for j, n in enumerate(row) if i != j and n]
    assert [int(row[2].split()[0]) for row in table] == sorted(counts, reverse=True)[:50]
    shown = render(made("compare-many"), "html")
    assert shown.count('class="bar"') == len(table)
    assert f"{len(table) - 12} more</summary>" in shown, "beyond a dozen they are folded away"


def test_the_numbers_of_a_leak() -> None:
    told, shown = made("leak").to_dict(), words("leak", "html")
    assert told["leaked_rows"] > 0
    assert f"Leaked test rows {told['leaked_rows']} of {told['test_rows']} rows to test on" in shown
    assert under(told["share"]) in shown
    assert under(told["disagreement"]) in shown
    assert number(told["remembered"]) in shown
    table = cells(render(made("leak"), "markdown"), "Leaked items")
    assert [int(row[-1].split()[0]) for row in table] == [one["test_rows"][0] for one in told["examples"]]


def test_the_numbers_of_the_issues() -> None:
    told, shown = made("issues").to_dict(), words("issues", "html")
    assert told["reason"] is None
    for name in ("model_flip_rate", "flip_rate", "difference"):
        assert under(told[name]) in shown
    for name in ("accuracy", "gain", "auc"):
        assert under(told["model"][name]) in shown
    for name in ("recall", "false", "precision"):
        assert f"{under(told['check'][name])} {number(told['check'][f'{name}_by_chance'])}" in shown
    matrix = cells(render(made("issues"), "markdown"), "Noise matrix")
    assert [row[2:] for row in matrix] == [[number(x) for x in row] for row in told["noise"]["given_true"]]
    table = cells(render(made("issues"), "markdown"), "Suspicious labels")
    assert [int(row[-1].replace(",", "")) for row in table] == [one["row"] for one in told["issues"]]
    assert [row[3] for row in table] == [number(one["score"]) for one in told["issues"]]
    assert f"of {told['flagged']}: the score" in shown


def test_the_numbers_of_numbers() -> None:
    told, shown = made("numeric").to_dict(), words("numeric", "html")
    for name in ("noise_sd", "r2_ceiling", "distance"):
        assert under(told[name], ".4g") in shown
    assert f"{told['mae_floor']['low']:.3g} to {told['mae_floor']['high']:.3g}" in shown
    table = cells(render(made("numeric"), "markdown"), "Noise by value")
    assert [row[2] for row in table] == [pair(part["noise_sd"], ".4g") for part in told["by_value"]]
    assert page("numeric").tags.count("circle") == len(told["by_value"]) == 8
    assert render(made("numeric"), "html").count('class="reference"') == 8


def test_the_numbers_of_grades() -> None:
    told, plain = made("ordinal").to_dict(), render(made("ordinal"), "markdown")
    table = cells(plain, "Ordered grades")
    for row, key in zip(table, ("kappa_ceiling", "weighted_kappa", "distance"), strict=False):
        assert row[1] == number(told["ordinal"][key]["estimate"])
    for k, share in enumerate(told["ordinal"]["steps"]):
        assert f"| {k} | {share:.1%} |" in plain
    assert "Ordered grades" in render(made("ordinal"), "text")


def test_the_numbers_of_tags() -> None:
    told, shown = made("tags").to_dict(), words("tags", "html")
    for part in told["tags"]["tags"]:
        assert f"{part['share']:.1%} {under(part['disagreement'])} {under(part['flip_rate'])}" in shown
    assert pair(told["tags"]["distance"]) in shown
    assert "the exact sets are the classes" in shown
    assert "Tag by tag" in render(made("tags"), "text")


def test_the_page_says_how_it_was_made() -> None:
    shown = words("compare", "html")
    assert "‹ESC›" in shown, "the label column"
    for told in ("normalise case", "draws 300", "seed 0", "interval wilson"):
        assert told in shown
    assert LABEL not in shown


# --- the base ------------------------------------------------------------------------------------------------


def test_columns_of_figures_stand_at_the_right() -> None:
    def of(*values: str) -> bool:
        rows = tuple(Row(values=("name", value)) for value in values)
        return numeric_columns(SectionTable(head=("", "x"), rows=rows))[1]

    assert of("12", "1,024", "–", "")
    assert of("0.061 (0.03 to 0.09)", "−0.1 (−0.2 to +0.3)")
    assert of("95.9%", "12 (3.4%)", "<0.001", "1.2e−05", "0.1 to 0.2")
    assert not of("12 items")
    assert not of("", "–")
    assert not of("0.5: by chance")
    assert not of("p < 0.001")
    rows = (Row(values=("1", "2")),)
    assert numeric_columns(SectionTable(head=("a", "b"), rows=rows)) == (False, True), (
        "the first column names"
    )


def test_every_column_of_an_item_is_seen() -> None:
    assert item_text(("a", "b")) == "a · b"
    assert item_text(("a" * 500, "b")) == f"{'a' * 120}… · b"
    assert item_text(()) == ""


# --- where there is little to tell -----------------------------------------------------------------------------


def frame(*rows: tuple[str, str]) -> Any:
    return pd.DataFrame(rows, columns=["text", "label"])


def degenerate() -> dict[str, Any]:
    once = frame(("a", "1"), ("b", "2"))
    named: dict[str, Any] = {"item": ["text"], "label": "label"}
    return {
        "numbers-once": audit_numeric(once, **named),
        "numbers-equal": audit_numeric(frame(("a", "1"), ("a", "1"), ("b", "2"), ("b", "2")), **named),
        "grades-once": audit_ordinal(once, **named),
        "tags-once": audit_tags(once, **named),
        "other-items": compare_files(once, frame(("c", "1"), ("d", "2")), **named),
        "one-class": compare_files(frame(("a", "1"), ("a", "1")), frame(("a", "1"), ("a", "1")), **named),
        "no-leak": find_leaks(once, frame(("c", "1")), **named),
        "no-label": find_leaks(once, once, item=["text"]),
        "nothing": find_leaks(once, frame(("", "1")), **named),
        "issues-one-class": find_issues(frame(("a", "1"), ("b", "1"), ("a", "1")), draws=5, **named),
    }


def test_little_to_tell_is_told_in_every_form() -> None:
    for name, result in degenerate().items():
        shown = Page(render(result, "html"))
        assert set(shown.tags) <= HTML_TAGS, name
        told = render(result, "markdown")
        for words_of in (spaced(shown.text), told, render(result, "text")):
            assert not re.search(r"\b(None|nan|inf)\b(?! of| has)", words_of), (name, words_of[:3_000])
        assert told.startswith("# ")
    assert "no item has two labels" in render(degenerate()["numbers-once"], "html")
    assert "no noise is seen" in render(degenerate()["numbers-equal"], "html")
