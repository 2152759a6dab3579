"""Attacks on what is new: numbers recomputed, honest data, options that must not be ignored, lists and files."""

from __future__ import annotations

import contextlib
import csv
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audit.alarms_offsets import offset_alarm
from audit.offsets import annotator_offsets
from audit.writing import write_rows
from tests.command import run


def write(path: Path, columns: list[str], rows: list[Any]) -> str:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)
    return str(path)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# Ids called as a column of the list.


@pytest.mark.parametrize("name", ["row", "Row", "conflict", "resolve", "majority", "labels", "number"])
def test_a_row_id_called_as_a_column_of_the_list_finds_its_own_rows(tmp_path: Path, name: str) -> None:
    rows = [("t1", "a", 3), ("t1", "b", 2), ("t2", "a", 1), ("t2", "b", 4), ("t3", "a", 5)]
    data = write(tmp_path / "x.csv", ["text", "label", name], rows)
    columns = ["--item", "text", "--label", "label", "--row-id", name]
    assert run("dupes", data, *columns, "--conflicts", str(tmp_path / "c.csv")).code == 0
    listed = read(tmp_path / "c.csv")
    for row in listed:
        row["resolve"] = "keep" if (row["text"], row["label"]) in (("t1", "a"), ("t2", "b")) else ""
    edited = write(tmp_path / "e.csv", list(listed[0]), [list(row.values()) for row in listed])
    done = run("resolve", data, edited, *columns, "--out", str(tmp_path / "out.csv"))
    assert done.code == 0, done.err
    assert [(row["text"], row["label"]) for row in read(tmp_path / "out.csv")] == [
        ("t1", "a"), ("t2", "b"), ("t3", "a"),
    ]  # fmt: skip


# The noise without offsets.


@pytest.mark.parametrize(("sizes", "annotators"), [([2, 2, 2, 6], 6), ([2] * 60, 40), ([2] * 6, 4)])
def test_the_noise_without_offsets_is_right_however_few_labels_are_left(
    sizes: list[int], annotators: int
) -> None:
    rng = np.random.default_rng(3)
    items = np.repeat(np.arange(len(sizes)), sizes)
    found, held = [], []
    for _ in range(300):
        who = np.concatenate([rng.permutation(annotators)[:size] for size in sizes])
        noise = annotator_offsets(
            items, [str(k) for k in who], items + who / 3.0 + rng.normal(size=len(who))
        ).noise_sd
        if noise.estimate is not None and noise.low is not None and noise.high is not None:
            found.append(noise.estimate**2)
            held.append(noise.low <= 1.0 <= noise.high)
    assert np.mean(found) == pytest.approx(1.0, abs=0.12)
    assert np.mean(held) >= 0.92


@pytest.mark.parametrize(
    "values", [np.arange(40.0), np.arange(40) * 0.1, 1e6 + np.arange(40) * 0.3, np.zeros(40)]
)
def test_an_offset_that_explains_every_difference_leaves_no_noise_and_is_told(values: Any) -> None:
    """Somebody counts from 1 where the others count from 0: what floats leave of the labels is no noise."""
    items = np.repeat(np.arange(40), 3)
    found = annotator_offsets(items, ["a", "b", "c"] * 40, values[items] + np.tile([0.0, 0.0, 1.0], 40))
    assert found.noise_sd.estimate == 0.0
    assert found.share == 1.0
    worst = found.annotators[0]
    assert (worst.value, worst.estimate, worst.low) == ("c", pytest.approx(1.0), None)
    assert worst.p_value == pytest.approx(0.5**39)
    alarm = offset_alarm(found)
    assert alarm is not None
    assert list(alarm.figures["offsets"]) == ["c"]
    few = annotator_offsets(items[:9], ["a", "b", "c"] * 3, values[items[:9]] + np.tile([0.0, 0.0, 1.0], 3))
    assert offset_alarm(few) is None  # three items may have one sign by chance


# Options of audit ceiling that a metric or a source does not use.


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("saved")
    rows = [
        (f"i{k}", f"{k % 5 + (k + r) % 3 * 0.5 * r:.2f}", "ab"[(k * r) % 3 == 1])
        for k in range(60)
        for r in (0, 1)
    ]
    data = write(folder / "n.csv", ["text", "score", "label"], rows)
    out = {"data": data}
    for kind, label in (("numeric", "score"), ("nominal", "label")):
        more = ["--kind", kind] if kind != "nominal" else []
        out[kind] = str(folder / f"{kind}.json")
        made = run(
            "dupes", data, "--item", "text", "--label", label, *more, "--format", "json", "--out", out[kind]
        )
        assert made.code == 0, made.err
    return out


@pytest.mark.parametrize(
    ("metric", "source", "option"),
    [
        *((metric, "numeric", option) for metric in ("rmse", "r2", "mae") for option in (
            ("--n-test", "9"), ("--positive", "a"), ("--share", ".3"), ("--predicted-share", ".3"),
            ("--disagreement", ".2"), ("--pairs", "9"), ("--classes", "2"))),
        *(("accuracy", "nominal", option) for option in (
            ("--positive", "a"), ("--share", ".3"), ("--predicted-share", ".3"), ("--pairs", "9"), ("--classes", "2"),
            ("--delimiter", ";"), ("--item", "text"), ("--label", "label"), ("--ragged", "pad"), ("--sheet", "x"))),
        ("f1", "nominal", ("--n-test", "9")),
        ("f1", "nominal", ("--pairs", "9")),
        ("rmse", "numeric", ("--item", "text")),
        ("rmse", "numeric", ("--quote", "'")),
    ],
)  # fmt: skip
def test_audit_ceiling_ignores_no_option(
    saved: dict[str, str], metric: str, source: str, option: tuple[str, str]
) -> None:
    done = run("ceiling", saved[source], "--metric", metric, "--score", "0.6", *option)
    assert done.code == 2
    assert option[0] in done.err
    assert run("ceiling", saved[source], "--metric", metric, "--score", "0.6").code == 0


def test_audit_ceiling_without_a_file_takes_no_option_of_files() -> None:
    known = ["ceiling", "--disagreement", ".2", "--pairs", "90", "--classes", "3", "--score", ".7"]
    assert run(*known).code == 0
    for option in (("--label", "x"), ("--encoding", "utf-8"), ("--ragged", "pad")):
        assert option[0] in run(*known, *option).err


# Options that speak of a form of files.


@pytest.mark.parametrize(
    ("name", "ignored"),
    [
        ("x.csv", ["sheet"]),
        ("x.jsonl", ["sheet", "delimiter", "quote", "escape", "ragged"]),
        ("x.parquet", ["sheet", "delimiter", "quote", "escape", "encoding", "ragged"]),
        ("x.xlsx", ["delimiter", "quote", "escape", "encoding", "ragged"]),
        ("x.sqlite", ["delimiter", "quote", "escape", "encoding", "ragged"]),
    ],
)
def test_an_option_of_a_form_that_no_file_has_is_refused(
    tmp_path: Path, name: str, ignored: list[str]
) -> None:
    rows = [(f"t{k}", "ab"[(k + r) % 3 == 0]) for k in range(9) for r in (0, 1)]
    if name.endswith(".sqlite"):
        with contextlib.closing(sqlite3.connect(tmp_path / name)) as base, base:
            base.execute("CREATE TABLE found (text, label)")
            base.executemany("INSERT INTO found VALUES (?, ?)", rows)
    else:
        write_rows(tmp_path / name, ["text", "label"], rows)
    values = {
        "sheet": "found" if "sql" in name else "rows", "delimiter": ",", "quote": '"', "escape": '"',
        "encoding": "utf-8", "ragged": "pad",
    }  # fmt: skip
    for option, value in values.items():
        done = run("dupes", tmp_path / name, "--item", "text", "--label", "label", f"--{option}", value)
        assert (done.code, f"--{option} is not of a file" in done.err) == (
            (2, True) if option in ignored else (0, False)
        ), (option, done.err)
    other = write(tmp_path / "other.csv", ["text", "label"], rows)
    assert "--sheet is of a file, and there is none" in run("plan", "--half-width", ".02", "--sheet", "x").err
    both = run("leak", tmp_path / name, other, "--item", "text", "--delimiter", ",")
    assert both.code == 0, both.err
