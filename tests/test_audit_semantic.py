"""Texts with close word vectors: what is found against brute force, what the vectors do not see, and that none fetches.

The model is the one that wordllama ships inside its package.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit import near_search as near_module
from audit.errors import ArgumentError, MissingExtraError
from audit.near_duplicates import ALSO_NEAR, near_duplicates, semantic_duplicates
from audit.reading_vectors import WordVectors, read_word_vectors
from audit.semantic import background, check_texts, cosines, embed, semantic_pairs
from tests.command import run

ROOT = Path(__file__).parents[1]
NOUNS = (
    "court mill river nurse school bridge winter garden lawyer engine market doctor island soldier".split()
)
VERBS = "closed opened painted sold visited crossed measured forgot rented cleaned".split()


@pytest.fixture(scope="module")
def words() -> WordVectors:
    return read_word_vectors()


def cosine(words: WordVectors, a: str, b: str) -> float:
    vectors = embed([a, b], words)
    return float(cosines(vectors, np.array([0]), np.array([1]))[0])


# --- the model ---------------------------------------------------------------------------------------------


def test_nothing_is_fetched_and_nothing_of_the_package_runs() -> None:
    """In a Python of its own, in which any socket is an error."""
    code = (
        "import logging, socket, sys\n"
        "def no(*args, **options): raise RuntimeError('a socket')\n"
        "socket.socket = socket.create_connection = socket.getaddrinfo = no\n"
        "from audit.reading_vectors import read_word_vectors\n"
        "from audit.semantic import embed\n"
        "made = embed(['the mill closed', ''], read_word_vectors())\n"
        "bad = {'wordllama', 'requests', 'urllib3', 'pydantic', 'torch', 'transformers'} & set(sys.modules)\n"
        "print(made.shape, sorted(bad), logging.getLogger().handlers)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.strip() == "(2, 256) [] []"


@pytest.mark.parametrize("absent", ["wordllama", "safetensors.numpy", "tokenizers"])
def test_a_missing_package_is_one_line_with_the_way_out(absent: str) -> None:
    with (
        mock.patch.dict(sys.modules, {absent: None}),
        pytest.raises(MissingExtraError, match=r"pip install 'label-audit\[semantic\]'"),
    ):
        read_word_vectors()


def test_a_package_without_the_two_files_is_told_the_same_way() -> None:
    with (
        mock.patch("audit.reading_vectors._VECTORS", "weights/gone.safetensors"),
        pytest.raises(MissingExtraError, match="semantic"),
    ):
        read_word_vectors()


def test_the_vector_of_a_text_is_the_direction_of_the_sum_of_its_pieces(words: WordVectors) -> None:
    texts = ["The mill closed.", "Mühle, 12 % – 磨坊 🙂", "a", " ", "mill mill"]
    made = embed(texts, words)
    for text, vector in zip(texts, made, strict=True):
        pieces = words.tokenizer.encode(text, add_special_tokens=False).ids
        wanted = np.sum([words.vectors[piece] for piece in pieces], axis=0)
        np.testing.assert_allclose(vector, wanted / np.linalg.norm(wanted), atol=1e-6)


def test_a_long_text_is_read_to_its_end_and_an_empty_one_has_no_vector(words: WordVectors) -> None:
    long = "the mill closed in winter. " * 8_000  # 216,000 characters
    made = embed([long, long + "nurse garden lawyer " * 20_000, "", "\ud800"], words)
    assert cosines(made, np.array([0]), np.array([1]))[0] < 0.9
    assert not made[2].any()
    assert made[3].any()  # half of a surrogate pair is read as a question mark
    assert cosines(made, np.array([2]), np.array([0])).tolist() == [0.0]
    assert embed([], words).shape == (0, 256)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=20), min_size=1, max_size=6))
def test_vectors_do_not_depend_on_the_other_texts(texts: list[str]) -> None:
    words = read_word_vectors_once()
    whole = embed(texts, words)
    with mock.patch("audit.semantic._CHARACTERS", 5):
        parts = embed(texts, words)
    assert np.array_equal(whole, parts)
    assert np.array_equal(whole[-1:], embed(texts[-1:], words))


def read_word_vectors_once(kept: list[WordVectors] = []) -> WordVectors:  # noqa: B006
    if not kept:
        kept.append(read_word_vectors())
    return kept[0]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("the dog bit the man", "the man bit the dog"),
        ("profits rose by 3 percent", "profits rose by 30 percent"),
        ("the company was found guilty of fraud", "the company was found not guilty of fraud"),
        ("the fine increases the risk", "the fine decreases the risk"),
        ("the film was good", "the film was bad"),
        ("how can i reset my password", "i forgot my password, how do i get a new one"),
        ("how do i cancel my order", "what is the way to revoke a purchase"),
        ("the cat sat on the mat", "a firm was fined for pollution"),
        ("кошка сидит на ковре", "компания была оштрафована за загрязнение"),
        ("बिल्ली चटाई पर बैठी", "कंपनी पर जुर्माना लगाया गया"),
    ],
)
def test_the_page_tells_what_the_vectors_see(words: WordVectors, one: str, two: str) -> None:
    page = " ".join((ROOT / "docs" / "near.md").read_text("utf-8").split())
    assert f"| {one} | {two} | {cosine(words, one, two):.3f} |" in page


def test_the_order_of_words_changes_nothing_at_all(words: WordVectors) -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        drawn = rng.choice(NOUNS, 12)
        made = embed([" ".join(drawn), " ".join(rng.permutation(drawn))], words)
        assert np.array_equal(made[0], made[1])


def test_long_texts_grow_alike_whatever_they_say(words: WordVectors) -> None:
    """docs/near.md tells the medians of passages alone, five together and eighty together."""
    with (ROOT / "examples" / "risk_driver.csv").open(encoding="utf-8", newline="") as file:
        passages = list(dict.fromkeys(row["passage"] for row in csv.DictReader(file)))
    typical = []
    for count in (1, 5, 20, 80):
        made = embed([" ".join(passages[k * count : (k + 1) * count]) for k in range(50)], words)
        first, second = np.triu_indices(50, 1)
        typical.append(float(np.median(cosines(made, first, second))))
    assert typical == sorted(typical)
    page = " ".join((ROOT / "docs" / "near.md").read_text("utf-8").split())
    told = (
        f"median of {typical[0]:.2f} alone, {typical[1]:.2f} five together, {typical[3]:.2f} eighty together"
    )
    assert told.replace("0.", ".") in page


# --- the search --------------------------------------------------------------------------------------------


def brute(vectors: np.ndarray, threshold: float) -> dict[tuple[int, int], float]:
    made = vectors.astype(np.float64)
    found = {}
    for i in range(len(made)):
        for j in range(i + 1, len(made)):
            lengths = np.linalg.norm(made[i]) * np.linalg.norm(made[j])
            value = float(made[i] @ made[j] / lengths) if lengths else 0.0
            if value >= threshold - 1e-12:
                found[i, j] = value
    return found


def some_vectors(count: int, *, copies: int, seed: int = 0) -> np.ndarray:
    """Random directions, noisy copies of some, exact copies of others, and one of length 0."""
    rng = np.random.default_rng(seed)
    made = rng.normal(size=(count, 16))
    noisy = made[:copies] + rng.normal(size=(copies, 16)) * rng.uniform(0, 0.6, size=(copies, 1))
    made = np.concatenate([made, noisy, made[:5], np.zeros((1, 16))])
    lengths = np.linalg.norm(made, axis=1, keepdims=True)
    return (made / np.where(lengths > 0, lengths, 1)).astype(np.float32)


@pytest.mark.parametrize("threshold", [0.3, 0.9, 0.99, 1.0])
@pytest.mark.parametrize("tile", [(3, 5), (7, 4), (1024, 8192)])
def test_all_that_brute_force_finds_and_nothing_else(threshold: float, tile: tuple[int, int]) -> None:
    vectors = some_vectors(60, copies=40)
    with mock.patch("audit.semantic._ROWS", tile[0]), mock.patch("audit.semantic._COLUMNS", tile[1]):
        found = semantic_pairs(vectors, threshold=threshold)
    wanted = brute(vectors, threshold)
    assert list(zip(found.first.tolist(), found.second.tolist(), strict=True)) == sorted(wanted)
    assert len(wanted) >= 5
    np.testing.assert_allclose(found.similarity, [wanted[pair] for pair in sorted(wanted)], atol=1e-12)
    assert found.similarity.max() <= 1.0
    assert found.candidates == len(vectors) * (len(vectors) - 1) // 2
    assert not found.sampled


def test_a_pair_at_the_threshold_is_told_and_one_just_below_is_not() -> None:
    vectors = some_vectors(30, copies=20)
    values = semantic_pairs(vectors, threshold=0.5).similarity
    at = float(np.sort(values)[len(values) // 2])
    assert at < 0.999
    assert at in semantic_pairs(vectors, threshold=at).similarity
    assert at not in semantic_pairs(vectors, threshold=at + 1e-9).similarity


@pytest.mark.parametrize("threshold", [0.0, -0.5, 1.0001, 90.0, float("nan"), float("inf")])
def test_a_threshold_that_cannot_be_is_named(threshold: float, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="--semantic"):
        semantic_pairs(np.eye(3, dtype=np.float32), threshold=threshold)
    done = run("dupes", tmp_path / "gone.csv", "--item", "a", "--label", "b", "--semantic", str(threshold))
    assert done.code == 2
    assert "--semantic 0.9" in done.err  # before the file is looked for


def test_caps_are_told_with_the_way_out() -> None:
    same = np.tile(np.array([[1.0, 0.0]], np.float32), (200, 1))
    with pytest.raises(ArgumentError, match=r"more than 1,000 pairs: .* --near-pairs"):
        semantic_pairs(same, threshold=0.9, most=1_000)
    assert len(semantic_pairs(same, threshold=0.9, most=19_900).first) == 19_900
    with pytest.raises(
        ArgumentError, match=r"44,999,850,000 pairs of 300,000 .* 300 MB .*--semantic-texts.*--near"
    ):
        check_texts(300_000, 200_000)
    check_texts(200_000, 200_000)


def test_the_search_holds_a_tile_at_a_time() -> None:
    """All products of 12,000 texts at once would be 576 MB."""
    vectors = np.random.default_rng(0).normal(size=(12_000, 32)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    tracemalloc.start()
    try:
        semantic_pairs(vectors, threshold=0.95)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 120e6


def test_one_text_and_none_have_no_pairs() -> None:
    for count in (0, 1):
        vectors = np.ones((count, 4), np.float32) / 2
        assert len(semantic_pairs(vectors, threshold=0.5).first) == 0
        assert background(vectors) is None
    assert background(np.ones((2, 4), np.float32) / 2) == pytest.approx(1.0)


def test_the_background_is_what_one_pair_in_a_hundred_exceeds() -> None:
    vectors = some_vectors(400, copies=0)
    every = np.triu_indices(400, 1)
    wanted = np.quantile(cosines(vectors, *every), 0.99)
    assert background(vectors, seed=3) == pytest.approx(wanted, abs=0.03)
    assert background(vectors, seed=3) == background(vectors, seed=3)


# --- d by similarity ---------------------------------------------------------------------------------------


def table(path: Path, rows: Sequence[tuple[str, str]]) -> str:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    return str(path)


def sentences(count: int, seed: int = 0) -> list[str]:
    """Different sentences of twelve words, each with its own words."""
    rng = np.random.default_rng(seed)
    made: dict[str, None] = {}
    while len(made) < count:
        nouns, verbs = rng.choice(NOUNS, 7, replace=False), rng.choice(VERBS, 5, replace=False)
        made[" ".join([*nouns[:3], *verbs, *nouns[3:]])] = None
    return list(made)


def labelled(*, other: float, count: int = 240, seed: int = 1) -> list[tuple[str, str]]:
    """Exact repeats with flips of .1, and the same words backwards, whose truth is another with chance ``other``."""
    rng = np.random.default_rng(seed)
    rows = []

    def label(value: int) -> str:
        return str(value ^ int(rng.random() < 0.1))

    for number, text in enumerate(sentences(2 * count)):
        truth = int(rng.integers(2))
        rows.append((text, label(truth)))
        if number % 2:
            rows.append((text, label(truth)))
        else:
            rows.append((" ".join(reversed(text.split())), label(truth ^ int(rng.random() < other))))
    return rows


def test_words_in_another_order_are_found_and_characters_do_not_find_them(tmp_path: Path) -> None:
    rows = [(text, "1") for text in sentences(40)]
    turned = [(" ".join(reversed(text.split())), "0") for text, _ in rows[:15]]
    path = table(tmp_path / "a.csv", [*rows, *turned])
    found = semantic_duplicates(path, item=["text"], label="label", threshold=1.0)
    assert (found.pairs, found.also_near, found.texts_in_pairs) == (15, 0, 30)
    assert len(found.bins) == 1
    assert found.bins[0].pairs == 15
    assert found.bins[0].disagreement.estimate == 1.0
    assert {frozenset(example.texts) for example in found.examples} == {
        frozenset((a, b)) for (a, _), (b, _) in zip(rows[:15], turned, strict=True)
    }
    assert (found.measure, found.recall, found.candidates) == ("cosine", 1.0, 55 * 54 // 2)
    assert found.model is not None
    assert "wordllama" in found.model
    assert near_duplicates(path, item=["text"], label="label", threshold=0.85).pairs == 0


def test_pairs_that_share_their_characters_too_are_counted_apart(tmp_path: Path) -> None:
    long = [f"{a} {b}" for a, b in zip(sentences(20, 2), sentences(20, 3), strict=True)]
    rows = [(text, "1") for text in long] + [(f"{text} a", "1") for text in long[:6]]
    rows += [(" ".join(reversed(text.split())), "1") for text in long[10:14]]
    found = semantic_duplicates(table(tmp_path / "a.csv", rows), item=["text"], label="label", threshold=0.98)
    near = near_duplicates(str(tmp_path / "a.csv"), item=["text"], label="label", threshold=ALSO_NEAR)
    assert near.pairs == 6
    assert found.also_near == 6
    assert found.pairs == 10
    assert sum(part.also_near or 0 for part in found.bins) == 6
    assert sum(part.pairs for part in found.bins) == 10
    assert near.also_near is None
    assert "6 of the pairs share most of their characters too" in found.summary()


@pytest.mark.parametrize(("other", "told"), [(0.0, "cannot be told apart"), (0.7, "other questions")])
def test_repeats_and_other_questions_are_told_apart(tmp_path: Path, other: float, told: str) -> None:
    found = semantic_duplicates(
        table(tmp_path / "a.csv", labelled(other=other)), item=["text"], label="label", threshold=1.0
    )
    assert found.exact.estimate == pytest.approx(0.18, abs=0.06)
    assert found.bins[-1].clusters > 150
    assert told in found.verdict


def test_texts_that_the_vectors_do_not_tell_apart_are_nothing_to_go_by(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [(" ".join(rng.choice(NOUNS, 400)), str(k % 2)) for k in range(60)]
    found = semantic_duplicates(table(tmp_path / "a.csv", rows), item=["text"], label="label", threshold=0.8)
    assert found.pairs == 60 * 59 // 2
    assert found.background is not None
    assert found.background > 0.8
    assert "nothing to go by" in found.verdict


def test_one_item_and_scripts_of_all_kinds(tmp_path: Path) -> None:
    found = semantic_duplicates(
        table(tmp_path / "a.csv", [("only one", "0"), ("Only  ONE", "1")]), item=["text"], label="label"
    )
    assert (found.texts, found.pairs, found.background) == (1, 0, None)
    assert "nothing to compare" in found.verdict
    rows = [("猫 が 座った", "0"), ("座った 猫 が", "1"), ("القط جلس", "0"), ("🙂", "1"), ("", "0")]
    found = semantic_duplicates(table(tmp_path / "b.csv", rows), item=["text"], label="label", threshold=0.95)
    assert found.texts == 4


def test_several_columns_are_one_text(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [
                ("q", "a", "label"),
                ("mill river", "nurse", "0"),
                ("nurse", "mill river", "1"),
                ("mill", "x", "0"),
            ]
        )
    found = semantic_duplicates(str(path), item=["q", "a"], label="label", threshold=0.9)
    assert found.pairs == 1
    assert set(found.examples[0].texts) == {"mill river\nnurse", "nurse\nmill river"}


def test_the_page_tells_what_the_example_gives() -> None:
    """The same passage with another firm is nearly the same words: other questions, and known to --near already."""
    columns = ["passage", "entity", "driver"]
    found = semantic_duplicates(str(ROOT / "examples" / "risk_driver.csv"), item=columns, label="label")
    assert "other questions" in found.verdict
    d = [part.disagreement.estimate or 0.0 for part in found.bins]
    assert d == sorted(d)
    page = " ".join((ROOT / "docs" / "near.md").read_text("utf-8").split())
    told = f"{found.pairs:,} pairs, of which {found.also_near:,} share their characters too. d is"
    assert f"{told} {d[0]:.3f}, {d[1]:.3f} and {d[2]:.3f}".replace("0.", ".") in page


@pytest.mark.shared_data
def test_the_page_tells_what_news_gives(shared: Path, tmp_path: Path) -> None:
    """Sentences on one event in two reports are found by their words, and by their characters hardly ever."""
    rows = []
    for part in ("train", "dev"):
        path = shared / "data" / "causal_news" / f"V2_{part}_subtask1.csv"
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows += [(row["text"], row["label"]) for row in csv.DictReader(file)]
    found = semantic_duplicates(table(tmp_path / "a.csv", rows), item=["text"], label="label", threshold=0.8)
    assert found.also_near == 2
    page = " ".join((ROOT / "docs" / "near.md").read_text("utf-8").split())
    assert f"{len(rows):,} sentences of news" in page
    assert f"{found.pairs} pairs, of which 2 share their characters" in page
    assert [part.disagreement.estimate for part in found.bins] == [pytest.approx(2 / 9), 0.0, 0.0]


def test_every_form_of_the_report_with_both_searches(tmp_path: Path) -> None:
    path, page = table(tmp_path / "a.csv", labelled(other=0.0, count=60)), tmp_path / "report.html"
    asked = ("dupes", path, "--item", "text", "--label", "label")
    both = (*asked, "--near", "0.6", "--semantic", "0.97")
    done = run(*both, "--format", "json", "--html", page)
    assert done.code == 0, done.err
    found, plain = done.json, run(*asked, "--format", "json").json
    assert plain["near"] is plain["semantic"] is None
    assert {**found, "near": None, "semantic": None} == plain  # never in the headline, nor anywhere else
    alone = run(*asked, "--semantic", "0.97", "--format", "json").json
    assert alone["near"] is None
    assert alone["semantic"] == found["semantic"]
    assert found["semantic"]["exact"]["estimate"] == found["disagreement"]["estimate"]
    jsonschema.validate(found, json.loads((ROOT / "docs" / "schema.json").read_text("utf-8")))
    html = page.read_text("utf-8")
    assert 'id="near"' in html
    assert html.split('id="semantic"')[1].count("chart-whisker") >= 2
    text = run(*both).out
    assert "0.99 to 1.00" in text
    assert "0.60 to 0.73" in text
    assert "## Near-duplicates by their words" in run(*both, "--format", "markdown").out


def test_refusals_are_one_line_and_nothing_is_left(tmp_path: Path) -> None:
    path, page = table(tmp_path / "a.csv", labelled(other=0.0, count=30)), tmp_path / "report.html"
    asked = ("dupes", path, "--item", "text", "--label", "label", "--semantic", "0.9", "--html", page)

    def refused(*more: str, stdin: bytes = b"") -> str:
        done = run(*asked, *more, stdin=stdin)
        assert done.code == 2
        assert done.err.count("\n") == 1
        assert not page.exists()
        return done.err

    assert "--semantic-texts" in refused("--semantic-texts", "10")
    assert "--near-pairs" in refused("--near-pairs", "1")
    assert "--near-pairs" in refused("--near-pairs", "0")
    done = run("dupes", "-", *asked[2:], stdin=Path(path).read_bytes())
    assert done.code == 2
    assert "read twice" in done.err
    with mock.patch.object(near_module, "read_word_vectors", side_effect=KeyboardInterrupt):
        done = run(*asked)
    assert (done.code, done.out, page.exists()) == (130, "", False)
    done = run("dupes", path, "--kind", "numeric", "--item", "text", "--label", "label", "--semantic", "0.9")
    assert done.code == 2
    assert "--semantic" in done.err


def test_frames_and_tags_have_near_duplicates_too(tmp_path: Path) -> None:
    import pandas as pd

    from audit.duplicates import audit_duplicates

    path = table(tmp_path / "a.csv", labelled(other=0.0, count=30))
    asked = {"item": "text", "label": "label", "near": 0.5, "semantic": 1.0}
    of_file, of_frame = (audit_duplicates(one, **asked) for one in (path, pd.read_csv(path, dtype=str)))
    assert of_file.semantic is not None
    assert of_file.semantic.pairs == 30
    assert of_frame.semantic == of_file.semantic
    assert of_frame.near == of_file.near
    rows = of_file.to_frame()
    assert rows.loc[rows["quantity"] == "semantic", "items"].tolist() == [30]
    done = run(
        "dupes",
        path,
        "--kind",
        "tags",
        "--item",
        "text",
        "--label",
        "label",
        "--semantic",
        "1",
        "--format",
        "json",
    )
    assert done.code == 0, done.err


def test_spark_is_refused_in_one_line(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", labelled(other=0.0, count=10))
    for option in ("--near", "--semantic"):
        done = run("dupes", path, "--item", "text", "--label", "label", option, "0.9", "--engine", "spark")
        assert done.code == 2
        assert done.err.count("\n") == 1
        assert "leave --engine" in done.err
