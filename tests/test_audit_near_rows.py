"""Near-duplicates to look at: pairs in the report and in a file, what would follow, and how sure the verdict is."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from audit import audit_duplicates
from audit.disagreement import item_mean
from audit.errors import ArgumentError
from audit.fliprate import flip_rate
from audit.near import Pairs
from audit.near_duplicates import near_duplicates
from audit.near_rows import pair_columns
from audit.near_table import Labelled, Table, tell
from audit.paired import paired_difference
from audit.render import render
from audit.render_near import near_sections
from audit.results import Disagreement, Estimate
from audit.results_near import NearDuplicates
from tests.command import run, write_csv
from tests.made_results import full
from tests.pages import Page

BASE = "the quick brown fox jumps over the lazy dog near the old mill by the river"
ROWS = [
    (f"{BASE} today", "yes"), (f"{BASE}  TODAY", "no"),  # one text, two labels
    (f"{BASE} tomorrow", "yes"), ("something else altogether, of no likeness to any", "no"),
    (f"{BASE} tonight", "no"), ("", "yes"),
]  # fmt: skip


def told(rate: float, *, exact: tuple[int, int], pairs: int, level: float = 0.95) -> NearDuplicates:
    """Pairs of texts that differ with this rate, beside (conflicts, items) of exact repeats."""
    wrong = round(rate * pairs)
    labels = [[0, 1 if k < wrong else 0] for k in range(pairs)]
    flat = np.array(labels).ravel()
    shares = sparse.csr_array((np.ones(len(flat)), (np.arange(len(flat)), flat)), shape=(len(flat), 2))
    conflicts, items = exact
    part = item_mean(
        np.array([0.0, 1.0]), np.array([items - conflicts, conflicts]), level=level, binary=True, draws=100
    )
    d = Disagreement(
        estimate=part.estimate, low=part.low, high=part.high, method=part.method, pair_weighted=None, row_weighted=None,
        level=level,
    )  # fmt: skip
    labelled = Labelled(
        texts=[f"text {k}" for k in range(2 * pairs)], shares=shares, classes=("no", "yes"), exact=d, repeated=items,
        declared=2,
    )  # fmt: skip
    found = Pairs(
        first=np.arange(0, 2 * pairs, 2), second=np.arange(1, 2 * pairs, 2), similarity=np.full(pairs, 0.995),
        candidates=pairs, sampled=False,
    )  # fmt: skip
    return tell(labelled, found, Table(draws=2_000), threshold=0.98, recall=1.0, measure="jaccard")


# --- the verdict -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "exact", "pairs", "words"),
    [
        (0.25, (5, 38), 40, "cannot be told apart from exact repeats: d differs by "),
        (0.60, (50, 300), 300, "disagree more often than exact repeats, by "),
        (0.02, (60, 300), 300, "disagree less often than exact repeats, by "),
        (0.10, (400, 4_000), 4_000, "disagree about as often as exact repeats: d differs by "),
    ],
)
def test_the_verdict_goes_by_the_difference_with_its_error(
    rate: float, exact: tuple[int, int], pairs: int, words: str
) -> None:
    found = told(rate, exact=exact, pairs=pairs)
    assert words in found.verdict
    top = found.bins[-2] if not found.bins[-1].clusters else found.bins[-1]
    apart = paired_difference(found.exact, top.disagreement, correlation=0.0)
    assert apart.text() in found.verdict
    assert apart.estimate == pytest.approx(rate - exact[0] / exact[1], abs=1e-9)
    if "cannot" in words:
        assert found.verdict.endswith("by 40 clusters and 38 repeated items.")


def test_without_exact_repeats_there_is_nothing_to_compare() -> None:
    found = told(0.2, exact=(1, 10), pairs=20)
    assert found.exact.estimate == pytest.approx(0.1)
    path_less = told(0.2, exact=(0, 0), pairs=20)
    assert path_less.verdict.startswith("Without exact repeats")


def test_what_would_follow_if_they_were_repeats() -> None:
    found = told(0.25, exact=(5, 38), pairs=40)
    d, rate = found.if_repeats.disagreement, found.if_repeats.flip_rate
    assert d.estimate == pytest.approx(0.25)
    assert d.low is not None
    assert d.high is not None
    assert (rate.estimate, rate.low, rate.high) == tuple(
        pytest.approx(flip_rate(end, classes=2)) for end in (0.25, d.low, d.high)
    )
    assert found.hypothesis.startswith("Were all these pairs repeats, d would be 0.250 [")
    assert "the headline leaves them out" in found.hypothesis
    over = told(0.8, exact=(5, 38), pairs=40)
    assert over.if_repeats.flip_rate.estimate is None
    assert "too large for an ε" in over.hypothesis


def test_classes_have_as_many_decimals_as_tell_them_apart() -> None:
    found = told(0.25, exact=(5, 38), pairs=40)
    assert [found.class_name(part) for part in found.bins] == [
        "0.980 to 0.987",
        "0.987 to 0.993",
        "0.993 to 1.000",
    ]
    wide = replace(found, threshold=0.85, bins=(replace(found.bins[0], low=0.85, high=1.0),))
    assert wide.class_name(wide.bins[0]) == "0.85 to 1.00"


# --- pairs in a file ---------------------------------------------------------------------------------------------


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_pair_with_its_rows_and_labels(tmp_path: Path) -> None:
    path, out = write_csv(tmp_path / "a.csv", ["text", "label"], ROWS), tmp_path / "pairs.csv"
    done = run(
        "dupes",
        path,
        "--item",
        "text",
        "--label",
        "label",
        "--near",
        "0.7",
        "--near-rows",
        out,
        "--format",
        "json",
    )
    assert done.code == 0, done.err
    pairs = read(out)
    assert tuple(pairs[0]) == pair_columns(["text"])
    assert len(pairs) == done.json["near"]["pairs"] == 3
    assert [float(row["similarity"]) for row in pairs] == sorted(
        (float(row["similarity"]) for row in pairs), reverse=True
    )
    by_rows = {frozenset((row["rows"], row["other_rows"])): row for row in pairs}
    assert set(by_rows) == {frozenset(("1 2", "3")), frozenset(("1 2", "5")), frozenset(("3", "5"))}
    mixed = by_rows[frozenset(("1 2", "3"))]
    assert (mixed["labels"], mixed["other_labels"], mixed["differ"]) == ("no | yes", "yes", "0.5")
    assert mixed["text"] == f"{BASE} today"  # as the first row has it
    assert by_rows[frozenset(("3", "5"))]["differ"] == "1.0"
    assert {row["cluster"] for row in pairs} == {"1"}
    assert {row["measure"] for row in pairs} == {"jaccard"}


def test_from_python_and_without_a_pair(tmp_path: Path) -> None:
    path, out = write_csv(tmp_path / "a.csv", ["text", "label"], ROWS), tmp_path / "pairs.jsonl"
    near_duplicates(str(path), item=["text"], label="label", threshold=0.7, rows_file=out)
    lines = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [set(line) for line in lines] == [set(pair_columns(["text"]))] * 3
    none = tmp_path / "none.csv"
    near_duplicates(str(path), item=["text"], label="label", threshold=0.99, rows_file=none)
    assert none.read_text("utf-8").strip() == ",".join(pair_columns(["text"]))


def test_the_file_is_refused_without_a_search_or_over_an_input(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", ["text", "label"], ROWS)
    asked = ("dupes", path, "--item", "text", "--label", "label")
    alone = run(*asked, "--near-rows", tmp_path / "p.csv")
    assert alone.code == 2
    assert "--near-rows writes the pairs that --near or --semantic finds: give one of them" in alone.err
    over = run(*asked, "--near", "0.7", "--near-rows", path)
    assert over.code == 2
    assert path.read_text("utf-8").startswith("text,label")
    with pytest.raises(ArgumentError, match="ending says no kind"):
        near_duplicates(str(path), item=["text"], label="label", threshold=0.7, rows_file=tmp_path / "p.doc")


# --- pairs in the report -----------------------------------------------------------------------------------------


def long_pairs(count: int) -> NearDuplicates:
    found = told(0.9, exact=(5, 38), pairs=count)
    before = "many words that both texts share " * 20
    pairs = [
        replace(
            pair,
            texts=(f"{before}<b>first|{k}</b> end", f"{before}other {k} end"),
            labels=(("no",), ("yes", "no")),
        )
        for k, pair in enumerate(found.examples)
    ]
    return replace(found, examples=tuple(pairs))


def test_texts_are_cut_to_where_they_part() -> None:
    (section,) = near_sections(replace(full(), near=long_pairs(40)))
    assert len(section.quotes) == 20
    (first, text), (other, second) = section.quotes[0].parts
    assert (first, other) == ("no", "yes, no")
    assert text.startswith("…")
    assert len(text) <= 202
    assert "<b>first|0</b> end" in text
    assert text.split("<b>")[0] == second.split("other")[0]


def test_three_pairs_as_text_and_twenty_elsewhere_as_plain_text() -> None:
    result = replace(full(), near=long_pairs(40))
    text = render(result, "text")
    assert text.count("  similarity 0.995") == 3
    assert "… 17 more: see --html or --format json" in text
    assert text.count("Near-duplicates never enter") == 0
    assert text.count("headline") == 1
    html = render(result, "html")
    assert "<b>first" not in html
    assert Page(html).text.count("similarity 0.995") == 20
    markdown = render(result, "markdown")
    assert markdown.count("- similarity 0.995") == 20
    assert "<b>first" not in markdown.replace("`…", "").split("similarity 0.995")[0]


def test_short_texts_stay_whole() -> None:
    found = told(0.9, exact=(5, 38), pairs=10)
    (section,) = near_sections(replace(full(), near=found))
    assert section.quotes[0].parts == (("no", "text 0"), ("yes", "text 1"))
    assert not near_sections(replace(full(), near=replace(found, examples=())))[0].quotes
    assert Estimate(estimate=None).text() == "-"


# --- a word on near-duplicates where repeats are few ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "repeats", "others", "told"),
    [
        ("a text of many words about {}", 38, 400, True),
        ("a text of many words about {}", 38, 50, False),  # no others to find near-duplicates among
        ("a text of many words about {}", 400, 400, False),  # repeats enough
        ("id-{}", 38, 400, False),  # no texts
    ],
)
def test_few_repeats_of_texts_point_to_near_duplicates(
    text: str, repeats: int, others: int, told: bool, tmp_path: Path
) -> None:
    rows = [
        (text.format(k), label)
        for k in range(repeats)
        for label in ("a" if k % 2 else "b", "b" if k % 5 else "a")
    ]
    rows += [(text.format(repeats + k), "a" if k % 2 else "b") for k in range(others)]
    found = audit_duplicates(
        write_csv(tmp_path / "a.csv", ["text", "label"], rows), item="text", label="label", ladder=False
    )
    assert any("--near 0.85" in step for step in found.verdict.next_steps) == told
