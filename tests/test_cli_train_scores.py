"""``audit train operating-point`` and ``audit train route``, called as a person calls them."""

import json

import pytest

from tests.command import run
from tests.made_scores import routed_pair, scores_pair


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    a, b = scores_pair("gain", 300, gain=1.0)
    a.to_csv("a.csv", index=False)
    b.to_json("b.jsonl", orient="records", lines=True)
    a, b = routed_pair(300, skill=1.0, seed=3, ambiguous=0.1)
    a.to_parquet("cheap.parquet")
    b.to_csv("dear.csv", index=False)
    return tmp_path


def test_operating_point_as_text_json_and_page(files):
    done = run("train operating-point a.csv --against b.jsonl --draws 200 --html page.html")
    assert (done.code, done.err) == (0, "wrote page.html\n")
    assert done.out.startswith("A real gain on")
    assert "<svg " in (files / "page.html").read_text("utf-8")
    done = run("train operating-point a.csv --against b.jsonl --match share --format json --draws 200")
    assert done.json["against"]["verdict"] == "gain"
    assert done.json["against"]["on"] == "share"


def test_route_as_text_json_and_file(files):
    done = run("train route cheap.parquet dear.csv --cost-a 1 --cost-b 10 --draws 200 --html page.html")
    assert done.code == 0
    assert "Confidence routing beats random routing" in done.out
    assert "<svg " in (files / "page.html").read_text("utf-8")
    done = run(
        "train route cheap.parquet dear.csv --format json --draws 200 --out route.json --flip-rate 0.02"
    )
    assert (done.code, done.out) == (0, "")
    written = json.loads((files / "route.json").read_text("utf-8"))
    assert written["verdict"] == "better than random"
    assert written["oracle"]["flip_rate"] == 0.02


def test_a_run_folder_and_a_choice_on_its_validation(files):
    folder = files / "run"
    folder.mkdir()
    for split, seed in (("test", 1), ("validation", 2)):
        data, _ = scores_pair("shift", 200, seed=seed)
        data["item"] = split + data["item"]
        data.to_parquet(folder / f"scores-{split}.parquet")
    done = run("train operating-point run --split test --choose-on run --choose-split validation --draws 100")
    assert done.code == 0
    assert "Best balanced accuracy on run/scores-validation.parquet" in done.out.replace("\n", " ")
    done = run("train operating-point run --split test --choose-split validation")
    assert (done.code, done.out) == (2, "")
    assert "--choose-split names a split of --choose-on" in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("operating-point nothing.csv", "nothing.csv"),
        ("operating-point a.csv --against cheap.parquet --positive 7", "no label '7'"),
        ("operating-point a.csv --score p", "no column 'p'"),
        ("operating-point a.csv --draws 3", "too few"),
        ("operating-point a.csv --out a.csv", "another name"),
        ("route cheap.parquet a.csv", "other labels"),
        ("route cheap.parquet dear.csv --cost-a 1", "both costs"),
        ("route cheap.parquet dear.csv --conflicts dear.csv --conflicts-item nowhere", "no column 'nowhere'"),
    ],
)
def test_errors_are_one_line_and_code_2(files, words, message):
    done = run(f"train {words}")
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err
