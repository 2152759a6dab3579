"""``audit ceiling``: which band counts, and what a saved audit must be."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from audit import audit_duplicates, place_score
from audit.ceiling import check_gate, pair_disagreement
from audit.errors import InputError
from audit.placing import place
from audit.reading_saved import load_audit
from audit.render import render_json
from audit.results import Ceiling, Moments
from tests.command import run, write_csv

#: d = .18 over 400 items: pairs give [.820, .900], with sampling error [.779, .922].
D = pair_disagreement(0.18, pairs=400)


def several(**changes: Any) -> Moments:
    """A band of [.85, .89], with sampling error [.83, .91], from 300 items of up to five labels."""
    made = {
        "lower": 0.85, "upper": 0.89, "low": 0.83, "high": 0.91, "repeats": 5, "items": 400, "items_with_three": 300,
        "method": "linear programme", "fit_p_value": 0.4,
    }  # fmt: skip
    return Moments(**{**made, **changes})


# --- which band counts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("score", "pairs", "labels"),
    [(0.83, "inside", "below"), (0.86, "inside", "inside"), (0.895, "inside", "above"), (0.80, "below", "below"),
     (0.95, "above", "above")],
)  # fmt: skip
def test_several_labels_place_a_score_in_the_narrower_band(score: float, pairs: str, labels: str) -> None:
    alone = place_score(score, d=D, classes=2, n_test=10**6)
    assert (alone.position, alone.source) == (pairs, "pairs")
    assert (alone.lower, alone.upper) == (pytest.approx(0.82), pytest.approx(0.90))
    both = place_score(score, d=D, classes=2, n_test=10**6, moments=several())
    assert (both.position, both.source) == (labels, "several labels")
    assert (both.lower, both.upper, both.low, both.high) == (0.85, 0.89, 0.83, 0.91)
    assert "the band of up to 5 labels an item, [0.850, 0.890]" in both.message
    assert "Pairs alone give [0.820, 0.900]." in both.message
    assert both.band.lower == alone.lower


@pytest.mark.parametrize(
    ("score", "n_test", "settled"),
    [
        (0.80, 10**6, True), (0.84, 10**6, False), (0.80, 100, False),  # below .83, above it, or too few rows
        (0.93, 10**6, True), (0.90, 10**6, False), (0.93, 100, False),  # above .91, below it, or too few rows
        # inside: sampling error may lift the lower end to .87 and bring the upper one down to .87
        (0.87, 10**8, False), (0.875, 10**6, False),
    ],
)  # fmt: skip
def test_the_sampling_error_of_the_same_band_settles_it(score: float, n_test: int, settled: bool) -> None:
    assert place_score(score, d=D, classes=2, n_test=n_test, moments=several()).settled is settled


def test_a_wide_band_of_several_labels_settles_the_inside() -> None:
    found = place_score(0.87, d=D, classes=2, n_test=10**6, moments=several(low=0.84, high=0.90))
    assert (found.position, found.settled) == ("inside", True)  # between .86 and .88


def test_few_items_of_three_labels_leave_the_band_of_pairs() -> None:
    found = place_score(0.895, d=D, classes=2, n_test=500, moments=several(items_with_three=199))
    assert (found.position, found.source) == ("inside", "pairs")
    assert (
        "By up to 5 labels an item the ceiling is in [0.850, 0.890]; with fewer than 200 items of three or more (199)"
        in (found.message)
    )


def test_counts_that_fit_no_mixture_leave_the_band_of_pairs() -> None:
    found = place_score(0.895, d=D, classes=2, n_test=500, moments=several(fit_p_value=1e-5))
    assert found.source == "pairs"
    assert (
        "The band of pairs counts: no distribution explains the counts of up to 5 labels an item."
        in found.message
    )


def test_no_band_of_several_labels_is_no_word_of_it() -> None:
    found = place_score(0.86, d=D, classes=2, n_test=500, moments=Moments(reason="too few"))
    assert found.message == place_score(0.86, d=D, classes=2, n_test=500).message
    assert found.source == "pairs"
    assert "labels an item" not in found.message
    none = place_score(0.9, d=pair_disagreement(0.6, pairs=50), classes=2, moments=several())
    assert (none.position, none.lower, none.high) == ("unknown", None, None)


def test_the_gate_is_for_pairs_and_tells_the_other() -> None:
    band = Ceiling(lower=0.82, upper=0.90, low=0.78, high=0.92, moments=several())
    lower = check_gate(band, threshold=0.83)
    assert (lower.passed, lower.value) == (False, 0.82)
    assert "up to 5 labels an item put it at 0.8500; the gate is for pairs" in lower.message
    assert "put it at 0.8900" in check_gate(band, threshold=0.83, end="upper").message
    plain = check_gate(Ceiling(lower=0.82, upper=0.90, low=0.78, high=0.92), threshold=0.83)
    assert "labels an item" not in plain.message


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 items of five labels: 80 % of the items at a flip rate of .02, the others at .42."""
    rng = random.Random(7)
    rows = []
    for i in range(400):
        truth, rate = rng.random() < 0.3, 0.42 if rng.random() < 0.2 else 0.02
        rows += [(f"item {i}", "yes" if truth != (rng.random() < rate) else "no") for _ in range(5)]
    return write_csv(tmp_path_factory.mktemp("five") / "data.csv", ["text", "label"], rows)


def test_a_file_and_its_saved_audit_place_alike(five: Path, tmp_path: Path) -> None:
    named = ("--item", "text", "--label", "label")
    saved = tmp_path / "audit.json"
    assert run("dupes", five, *named, "--format", "json", "--out", saved).code == 0
    for score in ("0.85", "0.9", "0.95"):
        words = ("--score", score, "--n-test", "2000", "--format", "json")
        fresh = run("ceiling", five, *named, *words)
        assert fresh.code == 0, fresh.err
        assert run("ceiling", saved, *words).json == fresh.json
        assert fresh.json["source"] == "several labels"
        moments = json.loads(saved.read_text("utf-8"))["ceiling"]["moments"]
        assert [fresh.json[end] for end in ("lower", "upper", "low", "high")] == [
            moments[end] for end in ("lower", "upper", "low", "high")
        ]
    text = run("ceiling", saved, "--score", "0.88", "--n-test", "2000").out
    assert "the band of up to 5 labels an item" in text
    assert run("dupes", five, *named, "--fail-under", "0.5").err.count("the gate is for pairs") == 1


# --- saved audits ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(five: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        render_json(audit_duplicates(five, item="text", label="label", ladder=False))
    )
    return found


def changed(whole: dict[str, Any], place: str, value: Any) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(whole))
    part = made
    *above, last = place.split(".")
    for key in above:
        part = part[key]
    if value is KeyError:
        del part[last]
    else:
        part[last] = value
    return made


IMPOSSIBLE: list[tuple[str, Any, str]] = [
    ("disagreement.estimate", 1.2, "disagreement.estimate is 1.2, but it lies in [0, 1]"),
    ("disagreement.estimate", -0.1, "disagreement.estimate is -0.1, but it lies in [0, 1]"),
    ("disagreement.estimate", "0.1", 'disagreement.estimate is "0.1", but it must be a number or null'),
    ("disagreement.estimate", True, "disagreement.estimate is true, but it must be a number or null"),
    ("disagreement.estimate", [0.1], "it must be a number or null"),
    ("disagreement.estimate", None, "disagreement.reason does not say why"),
    ("disagreement.estimate", 10**40, "it lies in [0, 1]"),
    ("disagreement.low", 0.9, "it cannot be above that"),
    ("disagreement.low", None, "disagreement.low is null, but there is an estimate"),
    ("disagreement.high", 0.01, "disagreement.high is 0.01, and it cannot be above that"),
    ("disagreement.high", 7, "disagreement.high is 7, but it lies in [0, 1]"),
    ("disagreement.level", 95, "disagreement.level is 95"),
    ("disagreement.level", 0, "it lies between 0 and 1"),
    ("disagreement.level", KeyError, "it lies between 0 and 1"),
    ("disagreement.method", 3, "disagreement.method is 3, but it must be a string or null"),
    ("disagreement", 0.2, "disagreement is 0.2, but it must be an object"),
    ("disagreement", KeyError, "is no saved audit: it has no disagreement"),
    ("flip_rate", KeyError, "is no saved audit: it has no flip_rate"),
    ("flip_rate", [], "flip_rate is [], but it must be an object"),
    ("flip_rate.classes", 0, "flip_rate.classes is 0, but it must be a whole number of 1 or more"),
    ("flip_rate.classes", 2.5, "it must be a whole number of 1 or more"),
    ("flip_rate.classes", KeyError, "flip_rate.classes is null"),
    ("flip_rate.reason", 5, "flip_rate.reason is 5"),
    ("data.classes", "yes", "data.classes is"),
    ("data.classes", [1, 2], "it must be a list of strings"),
    ("data", 5, "data is 5, but it must be an object"),
    ("metrics.share", 1.5, "metrics.share is 1.5, but it lies in [0, 1]"),
    ("metrics.positive", 1, "metrics.positive is 1, but it must be a string or null"),
    ("metrics", "none", "metrics is"),
    ("ceiling.moments.lower", 0.99, "it cannot be above that"),
    ("ceiling.moments.low", -1, "ceiling.moments.low is -1, but it lies in [0, 1]"),
    ("ceiling.moments.repeats", 2, "it must be a whole number of 3 or more"),
    ("ceiling.moments.items", "many", "ceiling.moments.items is"),
    ("ceiling.moments.items_with_three", -5, "ceiling.moments.items_with_three is -5"),
    ("ceiling.moments.fit_p_value", 3, "ceiling.moments.fit_p_value is 3"),
    ("ceiling.moments", [1], "ceiling.moments is [1], but it must be an object"),
    ("ceiling", "high", 'ceiling is "high", but it must be an object'),
]  # fmt: skip


@pytest.mark.parametrize(("place", "value", "words"), IMPOSSIBLE)
def test_numbers_that_no_audit_has(
    place: str, value: Any, words: str, whole: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "audit.json"
    path.write_text(json.dumps(changed(whole, place, value)), "utf-8")
    for more in ((), ("--metric", "f1")):
        ran = run("ceiling", path, "--score", "0.9", *more)
        assert ran.code == 2
        assert ran.out == ""
        assert ran.err.count("\n") == 1, ran.err
        assert ran.err.startswith(f"audit: {path}")
        assert words in ran.err
        assert "--format json" in ran.err


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_words_that_are_no_numbers(word: str, whole: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    text = json.dumps(changed(whole, "disagreement.estimate", "HERE")).replace('"HERE"', word)
    path.write_text(text, "utf-8")
    ran = run("ceiling", path, "--score", "0.9")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert f"holds {word}, which no audit writes" in ran.err


def test_json_of_other_commands(five: Path, tmp_path: Path) -> None:
    rows = [(f"t{i}", i % 7 + k) for i in range(40) for k in (0, 1)]
    numbers = write_csv(tmp_path / "numbers.csv", ["text", "label"], rows)
    named = ("--item", "text", "--label", "label", "--format", "json")
    made = {
        "an audit of numbers": run("dupes", numbers, "--kind", "numeric", *named).out,
        "the answer of audit compare": run("compare", five, five, *named).out,
        "the answer of audit leak": run("leak", five, five, *named).out,
        "the answer of audit ceiling itself": run(
            "ceiling", "--disagreement", "0.1", "--pairs", "90", "--score", "0.9", "--format", "json"
        ).out,
        "the answer of audit issues": json.dumps(
            {"model_flip_rate": 0.1, "flagged": 5, "disagreement": {}, "flip_rate": {}}
        ),
        "is no saved audit: it has no disagreement and no flip_rate": '{"model": "m", "accuracy": 0.9}',
    }
    for words, text in made.items():
        path = tmp_path / "other.json"
        path.write_text(text, "utf-8")
        for more in ((), ("--metric", "mcc")):
            ran = run("ceiling", path, "--score", "0.9", *more)
            assert (ran.code, ran.err.count("\n")) == (2, 1), (words, ran.err)
            assert words in ran.err
            assert "give the JSON that audit dupes --format json wrote" in ran.err


@pytest.mark.parametrize("kind", ["ordinal", "tags"])
def test_other_kinds_with_classes_are_placed(kind: str, tmp_path: Path) -> None:
    rng = random.Random(3)
    rows = []
    for i in range(200):
        label = rng.choice(["1", "2", "3"])
        rows += [(f"t{i}", rng.choice(["1", "2"]) if rng.random() < 0.1 else label) for _ in range(2)]
    path = write_csv(tmp_path / "data.csv", ["text", "label"], rows)
    saved = tmp_path / "audit.json"
    saved.write_text(
        run("dupes", path, "--item", "text", "--label", "label", "--kind", kind, "--format", "json").out
    )
    assert run("ceiling", saved, "--score", "0.9", "--format", "json").json["position"] in (
        "below",
        "inside",
        "above",
    )


def test_a_file_that_is_cut_short(whole: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    path.write_text(json.dumps(whole, indent=2)[:3_000], "utf-8")
    ran = run("ceiling", path, "--score", "0.9")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "was cut short or edited" in ran.err


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_file_as_some_shells_write_it(encoding: str, whole: dict[str, Any], tmp_path: Path) -> None:
    """PowerShell's ``>`` writes UTF-16, others a byte order mark."""
    plain, other = tmp_path / "plain.json", tmp_path / "other.json"
    plain.write_text(json.dumps(whole), "utf-8")
    other.write_text(json.dumps(whole), encoding)
    assert load_audit(other) == load_audit(plain)


def test_an_audit_by_any_name_and_data_by_the_name_of_json(
    whole: dict[str, Any], five: Path, tmp_path: Path
) -> None:
    named = tmp_path / "audit.txt"
    named.write_text(json.dumps(whole), "utf-8")
    assert load_audit(named) is not None
    data = tmp_path / "data.json"
    data.write_text(json.dumps([{"text": "a", "label": "x"}, {"text": "a", "label": "y"}]), "utf-8")
    assert load_audit(data) is None
    lines = tmp_path / "lines.json"
    lines.write_text('{"text": "a", "label": "x"}\n{"text": "a", "label": "y"}\n', "utf-8")
    assert load_audit(lines) is None
    assert place(lines, score=0.9, item=["text"], label="label").position == "unknown"
    assert load_audit(five) is None
    assert load_audit(tmp_path) is None
    assert load_audit("s3://bucket/audit.json") is None
    with pytest.raises(InputError, match="there is no such file"):
        load_audit(tmp_path / "nowhere.json")


def test_odd_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: dict[str, Any]) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text('{"a":' * 100_000, "utf-8")
    ran = run("ceiling", deep, "--score", "0.9")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "nested too deeply" in ran.err
    for name, content in (("empty.json", b""), ("bytes.json", b"{\xff\xfe\x00"), ("null.json", b"null")):
        path = tmp_path / name
        path.write_bytes(content)
        ran = run("ceiling", path, "--score", "0.9")
        assert (ran.code, ran.err.count("\n")) == (2, 1), (name, ran.err)
    monkeypatch.setattr(
        "audit.reading_saved._MOST_BYTES", 100
    )  # a huge file is data, and is not read whole here
    large = tmp_path / "large.json"
    large.write_text(json.dumps(whole), "utf-8")
    assert load_audit(large) is None


def test_an_older_audit_has_no_band_of_several_labels(whole: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    older = changed(changed(whole, "ceiling.moments", KeyError), "metrics", KeyError)
    path.write_text(json.dumps(older), "utf-8")
    saved = load_audit(path)
    assert saved is not None
    assert (saved.moments.lower, saved.positive, saved.share) == (None, None, None)
    assert place(path, score=0.9).source == "pairs"
    del older["ceiling"]
    path.write_text(json.dumps(older), "utf-8")
    assert place(path, score=0.9).source == "pairs"
