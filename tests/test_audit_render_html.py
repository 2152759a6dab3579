"""The HTML report: its parts, its structure, and that text of the file stays text."""

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.render_html import html
from audit.render_methods import METHODS
from audit.render_words import visible
from tests.made_results import conflict, full
from tests.made_shapes import SHAPES, hostile, no_repeats, texts, with_conflicts
from tests.pages import HTML_TAGS, Page, spaced

each_shape = pytest.mark.parametrize("shape", SHAPES)


@given(texts)
def test_html_keeps_hostile_text_as_text(value: str) -> None:
    written = html(hostile(value))
    written.encode()
    page, usual = Page(written), Page(html(hostile("usual")))
    assert set(page.tags) <= HTML_TAGS
    assert page.tags.count("script") == 2
    # The same elements, but for an empty text, which is shown as a note instead.
    same = [tag for tag in page.tags if tag not in ("bdi", "span", "code")]
    assert same == [tag for tag in usual.tags if tag not in ("bdi", "span", "code")]
    assert not page.comments
    assert not [name for _, name, _ in page.attributes if name.startswith("on") or name == "style"]
    shown = spaced(visible(value, one_line=True))[:150]
    assert shown in spaced(page.text)
    assert spaced(page.text).count(shown) >= 8 or not shown
    (group,) = page.data()["groups"]  # type: ignore[misc]
    assert group["item"] == [[visible(value, one_line=True), visible(value)]]
    assert group["labels"] == list(map(list, {visible(value, one_line=True): 1, "x": 1}.items()))


@each_shape
def test_html_asks_for_nothing_from_outside(shape: str) -> None:
    written = html(SHAPES[shape]())
    page = Page(written)
    assert "http:" not in written
    assert "https:" not in written
    assert "@import" not in written
    assert "url(" not in written
    assert {value.partition(":")[0] for value in page.values("href") if not value.startswith("#")} == {"data"}
    assert not page.values("src")


@each_shape
def test_html_allows_only_its_own_style_and_script(shape: str) -> None:
    page = Page(html(SHAPES[shape]()))
    (policy,) = [value for value in page.values("content") if value.startswith("default-src")]
    assert policy.startswith("default-src 'none'; ")
    run = [content for _, attributes, content in page.raw if "type" not in attributes]
    assert len(run) == 2
    for content in run:
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "unsafe" not in policy


@each_shape
def test_html_is_accessible_in_its_structure(shape: str) -> None:
    page = Page(html(SHAPES[shape]()))
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert {value[1:] for value in page.values("href") if value.startswith("#")} <= set(ids)
    assert page.tags.count("h1") == 1
    assert page.values("lang") == ["en"]
    cells = [(tag, name, value) for tag, name, value in page.attributes if tag == "th" and name == "scope"]
    assert len(cells) == page.tags.count("th"), "every header cell says what it heads"
    drawings = page.tags.count("svg")
    named = [a for a in page.attributes if a[0] == "svg" and a[1] in ("aria-label", "aria-hidden")]
    assert len(named) == drawings


def test_html_has_all_parts_of_a_full_audit() -> None:
    page = Page(html(full()))
    assert set(page.values("id")) >= {
        "band",
        "alarms",
        "columns",
        "repeats",
        "conflicts",
        "methods",
        "conflict-data",
    }
    words = spaced(page.text)
    for method in METHODS:
        assert method.name in words
        assert method.source in words
    assert "If some labels were copies" in words
    assert "Are the repeats like the rest of the file?" in words
    assert "8 more values" in words
    assert page.tags.count("circle") == 3 + 2 + 20
    data = page.data()
    assert data["total"] == 49
    assert len(data["groups"]) == 49  # type: ignore[arg-type]


def test_html_leaves_out_what_there_is_not() -> None:
    page = Page(html(no_repeats()))
    assert not set(page.values("id")) & {"alarms", "columns", "conflicts", "conflict-data"}
    assert "svg" not in page.tags
    assert "No band can be drawn: no item has two labels" in page.text


def test_html_sets_commands_as_code() -> None:
    written = html(full())
    assert "<code>audit plan data.csv --rows 760</code>" in written
    assert "<code>--conflicts FILE</code>" in written
    assert "<code>--drop-copies</code>" in written


def test_html_cuts_long_texts_once_its_budget_is_spent() -> None:
    long = tuple(conflict((letter * 3_000,), ("yes", "no")) for letter in "abc")
    written = html(with_conflicts(long), embedded=4_000)
    groups = Page(written).data()["groups"]
    assert [group["item"][0][1] for group in groups] == [  # type: ignore[attr-defined]
        "a" * 3_000,
        ["b" * 2_000, 3_000],
        ["c" * 2_000, 3_000],
    ]
    assert "a" * 2_001 not in written.partition('id="conflict-data"')[0], (
        "the part without script is cut, too"
    )


@given(st.lists(texts, min_size=1, max_size=3))
def test_conflict_data_comes_back_whole(values: list[str]) -> None:
    groups = tuple(conflict((value,), (value, "other"), 1, column=value, empty=None) for value in values)
    data = Page(html(with_conflicts(groups))).data()
    assert [group["rows"][0] for group in data["groups"]] == [  # type: ignore[attr-defined]
        [1, visible(value, one_line=True), [["column", visible(value)], ["empty", None]]] for value in values
    ]
