"""Every case of the shared case folder through the command line: the right figures, alarms and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command import run

pytestmark = pytest.mark.shared_data

NAMES = (
    "plain.csv bom_semicolon.csv carriage_return_only.csv tab.tsv utf16.csv windows_1252.csv quoted_newlines.csv "
    "composed_and_decomposed.csv label_words.csv label_spellings.csv one_giant_group.csv deduplicated_on_label.csv "
    "export_copies.csv three_classes.csv above_the_maximum.csv blank_items.csv no_repeats.csv ragged.csv "
    "header_only.csv empty.csv wrong_column.csv"
).split()


def expected(shared: Path) -> dict[str, Any]:
    return json.loads((shared / "cases" / "expected.json").read_text(encoding="utf-8"))


def test_no_case_is_left_out(shared: Path) -> None:
    assert sorted(expected(shared)) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_case(name: str, shared: Path) -> None:
    want = expected(shared)[name]
    ran = run("dupes", shared / "cases" / name, *want["args"].split(), "--format", "json")
    assert ran.code == want.get("exit", 0), ran.err
    if ran.code == 2:
        assert ran.out == ""
        assert len(ran.err.strip().splitlines()) == 1
        assert name in ran.err
        return
    found = ran.json
    for key, value in want.get("repeats", {}).items():
        assert found["repeats"][key] == value, key
    if "d" in want:
        assert found["disagreement"]["estimate"] == pytest.approx(want["d"], abs=1e-12)
    if "eps" in want:
        assert found["flip_rate"]["estimate"] == pytest.approx(want["eps"], abs=1e-12)
        assert (found["flip_rate"]["reason"] is None) == (want["eps"] is not None)
        if want["eps"] is None:
            assert found["ceiling"]["upper"] is None
            assert found["ceiling"]["reason"]
    if "eps_one_rival" in want:
        assert found["flip_rate"]["one_rival"]["estimate"] == pytest.approx(want["eps_one_rival"], abs=1e-12)
    if "pair_weighted" in want:
        assert found["disagreement"]["pair_weighted"] == pytest.approx(want["pair_weighted"], abs=1e-12)
        assert "weightings differ" in [alarm["code"] for alarm in found["alarms"]]
    if "missing_label" in want:
        assert found["data"]["missing_label"] == want["missing_label"]
    if "alarm" in want:
        assert want["alarm"] in [alarm["code"] for alarm in found["alarms"]]


@pytest.mark.parametrize("name", ["plain.csv", "utf16.csv", "windows_1252.csv", "three_classes.csv"])
def test_clean_case_raises_no_warning(name: str, shared: Path) -> None:
    found = run(
        "dupes", shared / "cases" / name, "--item", "text", "--label", "label", "--format", "json"
    ).json
    assert [a for a in found["alarms"] if a["severity"] != "note"] == []


def test_details_of_the_cases(shared: Path) -> None:
    """What expected.json says in its notes."""

    def audit(name: str, *more: str) -> Any:
        return run(
            "dupes", shared / "cases" / name, "--item", "text", "--label", "label", *more, "--format", "json"
        )

    words = audit("label_words.csv").json
    assert words["data"]["classes"] == ["NA", "None", "null"]
    assert words["flip_rate"]["classes"] == 3
    spellings = audit("label_spellings.csv").json
    (alarm,) = [a for a in spellings["alarms"] if a["code"] == "label spellings"]
    assert sorted(map(sorted, alarm["figures"]["variants"])) == [["1", "1.0"], ["Yes", "yes "]]
    assert audit("label_spellings.csv", "--merge-labels").json["repeats"]["conflicts"] == 0
    exact = audit("composed_and_decomposed.csv", "--normalise", "none").json
    assert exact["repeats"]["items"] == 0
    copies = audit("export_copies.csv", "--row-id", "id").json
    (alarm,) = [a for a in copies["alarms"] if a["code"] == "export copies"]
    assert "1 of 1 repeated items disagree; too few to say" in alarm["message"]
    dropped = audit("export_copies.csv", "--row-id", "id", "--drop-copies").json
    assert (dropped["repeats"]["items"], dropped["repeats"]["conflicts"]) == (1, 1)
    blank = audit("blank_items.csv").json
    assert blank["data"]["missing_item"] == 3
    assert blank["disagreement"]["low"] == 0.0
    assert blank["disagreement"]["high"] == pytest.approx(0.95)  # 1 - 0.05^(1/1)
    nothing = audit("no_repeats.csv").json
    assert "Nothing can be measured" in nothing["verdict"]["headline"]
    assert "89 for ±0.05" in nothing["verdict"]["next_steps"][0]
    assert "above (K-1)/K" in audit("above_the_maximum.csv").json["flip_rate"]["reason"]
    ragged = audit("ragged.csv").err
    assert "line 3" in ragged
    assert "3 fields" in ragged
    assert "--ragged" in ragged
    wrong = run("dupes", shared / "cases" / "wrong_column.csv", "--item", "passage", "--label", "label").err
    assert "'passage'" in wrong
    assert "text, label" in wrong
    assert "--item text" in wrong


def test_windows_1252_text_comes_out_as_written(shared: Path, tmp_path: Path) -> None:
    out = tmp_path / "conflicts.csv"
    ran = run(
        "dupes", shared / "cases" / "windows_1252.csv", "--item", "text", "--label", "label", "--conflicts", out
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "Pompe à huile n° 0 leaked oil at the north usine – « nord »" in out.read_text(encoding="utf-8")
