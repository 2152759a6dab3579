"""What audit issues says and writes: two readings of a lower rate, shares above 1, and the list to resolve."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from audit.issues import find_issues
from audit.issues_results import Issues
from audit.issues_words import compose_issues_verdict
from audit.render import render
from audit.results import Estimate
from audit.wording import about
from tests.command import run, write_csv

pytest.importorskip("cleanlab", reason="cleanlab is not installed (extra model)")

ITEMS, REPEATED = 4000, 2000


def viewed(*, first: float, rest: float, learned: float = 0.0) -> Issues:
    """Two classes that a model knows: the first 2,000 items have two labels, wrong with the chance ``first``, the rest
    one, wrong with the chance ``rest``. Of the wrong labels in repeated items it believes a share ``learned``.
    """
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, ITEMS)
    item = np.concatenate([np.arange(ITEMS), np.arange(REPEATED)])
    chance = np.where(item < REPEATED, first, rest)
    code = np.where(rng.random(len(item)) < chance, 1 - truth[item], truth[item])
    believed = truth.copy()
    wrong = np.flatnonzero(code != truth[item])
    taken = wrong[(item[wrong] < REPEATED) & (rng.random(len(wrong)) < learned)]
    believed[item[taken]] = code[taken]
    sure = rng.uniform(0.85, 0.99, ITEMS)
    p = np.where(np.arange(2) == believed[:, None], sure[:, None], 1 - sure[:, None])
    frame = pd.DataFrame({"text": [f"t{k}" for k in item], "label": [f"c{k}" for k in code]})
    return find_issues(frame, item=["text"], label="label", probs=p[item], draws=60)


# --- two readings ------------------------------------------------------------------------------------------


def test_repeats_that_are_the_harder_part_are_told() -> None:
    found = viewed(first=0.2, rest=0.05)
    assert found.difference.high is not None
    assert found.difference.high < 0
    rates = found.rates
    assert rates.repeated.estimate == pytest.approx(0.2, abs=0.02)
    assert rates.rest.estimate == pytest.approx(0.05, abs=0.015)
    assert rates.harder.low is not None
    assert rates.harder.low > 0.1
    assert rates.same_items.low is not None and rates.same_items.high is not None  # noqa: PT018
    assert rates.same_items.low < 0.01
    assert rates.same_items.high > -0.01
    told = found.verdict
    assert "Either the repeated items are harder than the rest, or it has learned mistakes" in told
    assert f"{100 * rates.repeated.estimate:.1f}".rstrip("0").rstrip(".") in told
    harder = 100 * (rates.repeated.estimate - found.model_flip_rate.estimate)  # type: ignore[operator]
    whole = -100 * found.difference.estimate  # type: ignore[operator]
    if whole > harder:
        assert (
            f"of the difference of {whole:.1f} points {harder:.1f} are that the repeated items are harder"
            in told
        )
    else:
        assert "is all of the difference, which speaks for the first" in told
    page = render(found, "markdown")
    assert "by the model, in the repeated items" in page


def test_a_model_that_has_learned_mistakes_is_told() -> None:
    found = viewed(first=0.15, rest=0.15, learned=0.5)
    assert found.rates.harder.low is not None and found.rates.same_items.high is not None  # noqa: PT018
    assert found.rates.harder.low < 0
    assert found.rates.same_items.high < 0
    assert "the repeated items are no harder, by the model, which speaks for the second" in found.verdict


def test_both_readings_stand_where_there_is_nothing_to_tell_them_apart() -> None:
    found = viewed(first=0.2, rest=0.05)
    none = Estimate(estimate=None)
    alone = replace(found.rates, repeated=none, rest=none, harder=none, same_items=none)
    told = compose_issues_verdict(alone, found.flip_rate, repeated=found.repeated, reason=None, alarms=())
    assert "Either the repeated items are harder than the rest, or it has learned mistakes" in told
    assert "In the repeated items the model sees" not in told
    every = pd.DataFrame({"text": [f"t{k // 2}" for k in range(400)], "label": ["a", "b", "b", "b"] * 100})
    p = np.tile([[0.4, 0.6]], (400, 1)) + np.random.default_rng(0).normal(0, 0.05, (400, 1)) * [1, -1]
    assert find_issues(every, item=["text"], label="label", probs=p, draws=5).rates.rest.estimate is None


# --- shares above 1, and lines -----------------------------------------------------------------------------


def test_a_share_above_one_is_told_with_its_number() -> None:
    assert about(Estimate(estimate=1.047, low=1.002, high=1.08)) == (
        "about all (1.05 [1.00, 1.08] by the repeats, above 1 by chance)"
    )
    assert about(Estimate(estimate=-0.031)) == "about none (−0.03 by the repeats, below 0 by chance)"
    assert about(Estimate(estimate=0.98, low=0.9, high=1.03)) == "0.98 [0.90, 1.03]"


def test_nothing_is_cut_off_silently() -> None:
    found = viewed(first=0.1, rest=0.1)
    over = replace(found.check.partners, precision=Estimate(estimate=1.2, low=1.05, high=1.31))
    shown = replace(found, check=replace(found.check, partners=over))
    assert shown.to_dict()["check"]["partners"]["precision"]["estimate"] == 1.2
    told = " ".join(shown.summary().split())
    assert (
        "about all (1.20 [1.05, 1.31] by the repeats, above 1 by chance) of the flagged labels are wrong"
        in told
    )
    page = render(shown, "html")
    assert "1.200" in page
    assert "above 1 by chance" in page
    axes = page.split("by the other labels of the item")[1].split("</table>")[0]
    assert ">1.0<" in axes
    assert ">1.5<" not in axes and ">1.4<" not in axes and ">1.2<" not in axes  # noqa: PT018


def test_lines_are_wrapped_and_chance_stands_beside_each_figure() -> None:
    lines = viewed(first=0.2, rest=0.05).summary().splitlines()
    assert max(map(len, lines)) <= 100
    table = [line for line in lines if line.startswith(("  AUC of", "  conflicts", "  a flag at"))]
    chance = [line.split()[-1] for line in table]
    assert len(table) == 5
    assert chance[1] == "0.500"
    assert len({line.rindex(value) for line, value in zip(table, chance, strict=True)}) == 1


# --- the list ----------------------------------------------------------------------------------------------


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two hundred reviews of clear words, every tenth with the wrong label; item 0 has two more labels."""
    words = [
        ["good fine nice lovely", "great happy sweet warm"],
        ["bad poor sad awful", "cold bitter grim nasty"],
    ]
    rows = [
        (f"k{k}", f"{words[k % 2][k // 2 % 2]} {k % 17}", "np"[(k % 2 == 0) ^ (k % 10 == 0)], k)
        for k in range(200)
    ]
    rows += [("k200", rows[0][1], "p", 200), ("k201", rows[0][1], "p", 201)]
    return write_csv(tmp_path / "data.csv", ["id", "text", "label", "resolve"], rows)


def test_the_list_is_edited_and_carried_out(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "suspicious.csv"
    named = ("--item", "text", "--label", "label")
    ran = run("issues", data, *named, "--row-id", "id", "--draws", "5", "--out-rows", out, "--format", "json")
    assert ran.code == 0, ran.err
    rows = read(out)
    assert len(rows) == ran.json["flagged"] >= 15
    assert list(rows[0]) == [
        "row", "resolve", "label", "suggested", "majority", "score", "suggested_probability", "in_conflict", "labels",
        "id", "text",
    ]  # fmt: skip
    assert {row["resolve"] for row in rows} == {""}
    given = read(data)
    assert [given[int(row["row"]) - 1]["id"] for row in rows] == [row["id"] for row in rows]
    assert [given[int(row["row"]) - 1]["label"] for row in rows] == [row["label"] for row in rows]
    groups: dict[str, list[str]] = {}
    for row in given:
        groups.setdefault(row["text"], []).append(row["label"])
    for row in rows:
        labels = groups[row["text"]]
        most = max("np", key=labels.count)
        assert row["majority"] == (most if 2 * labels.count(most) > len(labels) > 1 else "")
    unedited = run("resolve", data, out, *named, "--out", tmp_path / "same.csv")
    assert unedited.code == 0, unedited.err
    assert f"Of {len(rows)} rows the list says nothing" in unedited.out
    assert read(tmp_path / "same.csv") == given
    rows[0]["resolve"], rows[1]["resolve"], rows[2]["resolve"] = rows[0]["suggested"], "drop", "keep"
    edited = write_csv(tmp_path / "edited.csv", list(rows[0]), [tuple(row.values()) for row in rows])
    for option in ((), ("--row-id", "id")):
        path = tmp_path / f"done{len(option)}.csv"
        done = run("resolve", data, edited, *named, *option, "--out", path)
        assert done.code == 0, done.err
        wanted = [dict(row) for row in given]
        wanted[int(rows[0]["row"]) - 1]["label"] = rows[0]["suggested"]
        del wanted[int(rows[1]["row"]) - 1]
        assert read(path) == wanted
    again = run("resolve", tmp_path / "done0.csv", edited, *named, "--out", tmp_path / "no.csv")
    assert again.code == 2
    assert "use the file that the list was written from" in again.err


def test_columns_are_guessed_and_noted(data: Path) -> None:
    ran = run("issues", data, "--draws", "5", "--format", "json")
    assert ran.code == 0, ran.err
    assert ran.json["notes"][0].startswith("item: column text, for its name")
    assert ran.json["settings"]["labels"] == ["label"]
