"""Near-duplicates: what is found against brute force, and d by similarity."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from unittest import mock

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.errors import ArgumentError, ColumnError, MissingExtraError
from audit.near import SHINGLE, choose_bands, jaccard, near_pairs, shingle_sets, sketch
from audit.near_duplicates import near_duplicates
from tests.command import run

ROOT = Path(__file__).parents[1]
WORDS = (
    "the a firm was fined sued by court over its in last week for two three plants north river mill".split()
)


def runs(text: str) -> frozenset[str]:
    text = text if len(text) >= SHINGLE else text.ljust(SHINGLE, "\0")
    return frozenset(text[k : k + SHINGLE] for k in range(len(text) - SHINGLE + 1))


def likeness(a: str, b: str) -> float:
    one, two = runs(a), runs(b)
    return len(one & two) / len(one | two)


@settings(max_examples=60)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=8))
def test_the_sets_are_those_of_a_plain_loop(texts: list[str]) -> None:
    sets = shingle_sets(texts)
    assert np.diff(sets.indptr).tolist() == [len(runs(text)) for text in texts]
    for i, j in combinations(range(len(texts)), 2):
        shared = int(sets[[i]].multiply(sets[[j]]).sum())
        assert shared == len(runs(texts[i]) & runs(texts[j]))


def test_sets_do_not_depend_on_how_texts_are_cut_into_chunks() -> None:
    texts = [" ".join(WORDS[k % 7 : k % 7 + 9]) + str(k) for k in range(50)]
    whole = shingle_sets(texts)
    with mock.patch("audit.near._CHARACTERS", 200):
        parts = shingle_sets(texts)
    assert (whole != parts).nnz == 0


def some_texts(count: int, *, edited: int, seed: int = 0) -> list[str]:
    """Random sentences, and copies of some with one to four words changed."""
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, 40)) for _ in range(count)]
    for k in range(edited):
        words = texts[k].split()
        for _ in range(int(rng.integers(1, 5))):
            words[int(rng.integers(len(words)))] = f"x{rng.integers(10_000)}"
        texts.append(" ".join(words))
    return texts


def test_nearly_all_that_brute_force_finds_and_nothing_else() -> None:
    texts = some_texts(260, edited=260)
    sets = [runs(text) for text in texts]
    alike = {
        (i, j): len(sets[i] & sets[j]) / len(sets[i] | sets[j]) for i, j in combinations(range(len(texts)), 2)
    }
    truth = {pair: value for pair, value in alike.items() if value >= 0.8}
    assert len(truth) > 100
    found = near_pairs(sketch(texts, threshold=0.8), threshold=0.8)
    pairs = dict(
        zip(zip(found.first.tolist(), found.second.tolist(), strict=True), found.similarity, strict=True)
    )
    assert pairs.keys() <= truth.keys()
    assert len(pairs) >= 0.98 * len(truth)
    for pair, value in pairs.items():
        assert value == pytest.approx(truth[pair])
    again = near_pairs(sketch(texts, threshold=0.8), threshold=0.8)
    assert again.first.tolist() == found.first.tolist()


def test_similarities_do_not_depend_on_how_many_pairs_are_compared_at_once() -> None:
    texts = [*some_texts(20, edited=20), "aaaaaaa", "aaaaaaaaa"]
    first, second = np.triu_indices(len(texts), 1)
    sets = shingle_sets(texts)
    whole = jaccard(sets, first, second)
    with mock.patch("audit.near._CHUNK", 300):
        parts = jaccard(sets, first, second)
    assert np.array_equal(whole, parts)
    assert whole.tolist() == [
        pytest.approx(likeness(texts[i], texts[j])) for i, j in zip(first, second, strict=True)
    ]


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.8, 0.85, 0.9, 0.95])
def test_the_bands_hold_what_they_promise(threshold: float) -> None:
    bands = choose_bands(threshold)
    assert bands.chance(threshold) >= 0.98
    assert bands.bands * bands.rows <= 128
    assert bands.chance(threshold / 2) < bands.chance(threshold) / 2


def test_large_groups_of_alike_texts_are_paired_in_part_and_too_many_pairs_are_refused() -> None:
    texts = [f"{' '.join(WORDS)} number {k:04d}" for k in range(600)]
    sketches = sketch(texts, threshold=0.8)
    found = near_pairs(sketches, threshold=0.8)
    assert found.sampled
    assert 600 * 100 < len(found.first) < 600 * 599 / 2 * 0.9  # in part, not all with all
    with pytest.raises(ArgumentError, match="--near-pairs"):
        near_pairs(sketches, threshold=0.8, most=1_000)


def test_what_cannot_be_done_is_named() -> None:
    for threshold in (0.4, 1.0, 85.0):
        with pytest.raises(ArgumentError, match="--near"):
            choose_bands(threshold)
    with (
        mock.patch.dict(sys.modules, {"rensa": None}),
        pytest.raises(MissingExtraError, match=r"label-audit\[near\]"),
    ):
        sketch(["a"], threshold=0.8)
    none = near_pairs(sketch(["only one text"], threshold=0.8), threshold=0.8)
    assert len(none.first) == 0


# --- d by similarity ---------------------------------------------------------------------------------------


def table(path: Path, rows: Sequence[tuple[str, str]]) -> str:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    return str(path)


def labelled(*, other: float, seed: int = 1) -> list[tuple[str, str]]:
    """Exact repeats with flips of .1, and edited copies whose truth is another one with chance ``other``."""
    rng = np.random.default_rng(seed)
    texts = some_texts(900, edited=600, seed=3)
    truth = {k: int(rng.integers(2)) for k in range(900)}
    rows = []

    def label(value: int) -> str:
        return str(value ^ int(rng.random() < 0.1))

    for k in range(900):
        rows += [(texts[k], label(truth[k])) for _ in range(2 if k >= 600 else 1)]
    rows += [(texts[900 + k], label(truth[k] ^ int(rng.random() < other))) for k in range(600)]
    return rows


def test_near_duplicates_that_are_repeats_disagree_as_repeats_do(tmp_path: Path) -> None:
    found = near_duplicates(
        table(tmp_path / "a.csv", labelled(other=0.0)), item=["text"], label="label", threshold=0.7, bins=2
    )
    assert found.exact.estimate == pytest.approx(0.18, abs=0.07)
    assert sum(part.pairs for part in found.bins) == found.pairs
    assert all(part.disagreement.low is not None for part in found.bins)
    assert "cannot be told apart from exact repeats" in found.verdict
    assert found.recall >= 0.99
    assert len(found.to_frame()) == 2


def test_near_duplicates_that_are_other_questions_are_told(tmp_path: Path) -> None:
    found = near_duplicates(
        table(tmp_path / "a.csv", labelled(other=0.6)), item=["text"], label="label", threshold=0.7, bins=2
    )
    assert "other questions" in found.verdict
    first = found.examples[0]
    assert first.labels[0] != first.labels[1]
    assert likeness(*first.texts) == pytest.approx(first.similarity)
    assert found.summary()


def test_a_cluster_counts_once(tmp_path: Path) -> None:
    """Forty copies of one template with agreeing labels do not drown three pairs that conflict."""
    rows = [(f"{' '.join(WORDS)} number {k:04d}", "1") for k in range(40)]
    for word in ("alpha", "gamma", "theta"):
        base = " ".join([word] * 4 + WORDS[::-1] + [word] * 12)
        rows += [(f"{base} first", "0"), (f"{base} second", "1")]
    found = near_duplicates(
        table(tmp_path / "a.csv", rows), item=["text"], label="label", threshold=0.8, bins=1
    )
    assert found.bins[0].clusters == 4
    assert found.bins[0].disagreement.estimate == pytest.approx(3 / 4)
    assert found.bins[0].pairs > 700


def test_different_texts_with_the_same_runs_are_in_the_last_class(tmp_path: Path) -> None:
    rows = [("aaaaaaa", "0"), ("aaaaaaaaa", "1"), ("other text", "0")]
    found = near_duplicates(
        table(tmp_path / "a.csv", rows), item=["text"], label="label", threshold=0.8, bins=2
    )
    assert [part.pairs for part in found.bins] == [0, 1]


def test_exact_repeats_are_one_text_and_columns_must_be_there(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", [("Some text that is here", "0"), ("some  TEXT that is here", "1")])
    found = near_duplicates(path, item=["text"], label="label")
    assert (found.texts, found.pairs) == (1, 0)
    assert "nothing to compare" in found.verdict
    with pytest.raises(ColumnError, match="txt"):
        near_duplicates(path, item=["txt"], label="label")


def test_the_near_duplicates_of_the_example_are_other_questions() -> None:
    """One passage is asked about with several firms and drivers: alike to the letter, and other questions."""
    found = near_duplicates(
        str(ROOT / "examples" / "risk_driver.csv"), item=["passage", "entity", "driver"], label="label"
    )
    assert found.pairs > 1_000
    assert "other questions" in found.verdict


def test_near_duplicates_in_every_form_of_the_report(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", labelled(other=0.0))
    page = tmp_path / "report.html"
    done = run(
        "dupes",
        path,
        "--item",
        "text",
        "--label",
        "label",
        "--near",
        "0.7",
        "--format",
        "json",
        "--html",
        page,
    )
    assert done.code == 0, done.err
    near, plain = done.json, run("dupes", path, "--item", "text", "--label", "label", "--format", "json").json
    assert near["near"]["exact"]["estimate"] == near["disagreement"]["estimate"]
    assert plain["near"] is None
    assert {**near, "near": None} == plain  # never in the headline, nor anywhere else
    jsonschema.validate(near, json.loads((ROOT / "docs" / "schema.json").read_text("utf-8")))
    html = page.read_text("utf-8")
    assert 'id="near"' in html
    assert (
        html.split('id="near"')[1].count("chart-whisker") == 4
    )  # three classes of similarity, and the exact repeats
    text = run("dupes", path, "--item", "text", "--label", "label", "--near", "0.7").out
    assert "0.70 to 0.80" in text
    assert "equal" in text
    told = run(
        "dupes", path, "--item", "text", "--label", "label", "--near", "0.7", "--format", "markdown"
    ).out
    assert "## Near-duplicates" in told


def test_near_duplicates_need_a_file_that_can_be_read_twice(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", labelled(other=0.0))
    done = run(
        "dupes", "-", "--item", "text", "--label", "label", "--near", "0.8", stdin=Path(path).read_bytes()
    )
    assert done.code == 2
    assert "read twice" in done.err
    assert run("dupes", path, "--item", "text", "--label", "label", "--near", "1.5").code == 2
