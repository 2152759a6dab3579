"""A row id that is the item's id: neither proposed nor taken for export copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit import audit_duplicates
from tests.command import run, write_csv

NAMED = {"item": "text", "label": "label", "ladder": False}


def votes(path: Path, *, ids: str) -> Path:
    """100 texts of three labels, 40 of them at odds; ``ids`` number the texts, or the rows with 50 export copies."""
    rows = []
    for i in range(100):
        for k in range(3):
            label = "b" if i < 40 and k == 2 else "a" if i % 2 else "b" if i >= 40 else "a"
            rows.append((i if ids == "items" else 3 * i + k, f"a text {i}", label, f"w{k}"))
    if ids == "rows":
        rows += rows[:50]
    return write_csv(path / "votes.csv", ["id", "text", "label", "annotator"], rows)


def test_an_id_of_items_is_not_proposed(tmp_path: Path) -> None:
    notes = "; ".join(audit_duplicates(votes(tmp_path, ids="items"), **NAMED).data.notes)
    assert "--annotator annotator" in notes
    assert "--row-id" not in notes


def test_an_id_of_rows_is_proposed_also_with_copies(tmp_path: Path) -> None:
    notes = "; ".join(audit_duplicates(votes(tmp_path, ids="rows"), **NAMED).data.notes)
    assert "--annotator annotator, --row-id id" in notes


def test_an_id_of_items_raises_its_own_alarm(tmp_path: Path) -> None:
    path = votes(tmp_path, ids="items")
    found = audit_duplicates(path, row_id="id", **NAMED)
    codes = [alarm.code for alarm in found.alarms]
    assert "export copies" not in codes
    (alarm,) = [alarm for alarm in found.alarms if alarm.code == "row id of items"]
    assert alarm.severity == "warning"
    assert alarm.figures == {"items": 100, "items_at_odds": 40}
    assert "rows with one id have different labels in 40 of 100 items" in alarm.message
    assert "leave --row-id out" in alarm.action
    assert "row id of items" in found.verdict.next_steps[0]
    dropped = audit_duplicates(path, row_id="id", drop_copies=True, **NAMED)
    assert dropped.disagreement.estimate == pytest.approx(1.0)
    assert "row id of items" in [alarm.code for alarm in dropped.alarms]


def test_copies_by_their_row_id_raise_theirs(tmp_path: Path) -> None:
    found = audit_duplicates(votes(tmp_path, ids="rows"), row_id="id", **NAMED)
    codes = [alarm.code for alarm in found.alarms]
    assert "export copies" in codes
    assert "row id of items" not in codes


def test_a_slip_among_copies_is_no_other_id(tmp_path: Path) -> None:
    rows = [(i, f"a text {i // 2}", "a") for i in range(200)]
    rows += [(i, f"a text {i // 2}", "b" if i == 0 else "a") for i in range(100)]
    path = write_csv(tmp_path / "d.csv", ["id", "text", "label"], rows)
    assert "row id of items" not in [
        alarm.code for alarm in audit_duplicates(path, row_id="id", **NAMED).alarms
    ]


def test_columns_of_votes_share_their_row_id(tmp_path: Path) -> None:
    rows = [(i, f"a text {i}", "a", "b" if i % 3 else "a") for i in range(60)]
    path = write_csv(tmp_path / "wide.csv", ["id", "text", "first", "second"], rows)
    found = audit_duplicates(path, row_id="id", label_columns=("first", "second"), ladder=False)
    assert "row id of items" not in [alarm.code for alarm in found.alarms]


# --- audit plan, where nothing needs labelling ---------------------------------------------------------------------


def test_a_plan_that_needs_nothing_says_so(tmp_path: Path) -> None:
    path, out = votes(tmp_path, ids="items"), tmp_path / "plan.csv"
    named = ("--item", "text", "--label", "label", "--out", out)
    done = run("plan", path, *named, "--half-width", "0.2", "--rate", "0.1")
    assert done.code == 0
    assert done.out.startswith("Nothing needs labelling: ±0.2 on a flip rate near 0.100 takes ")
    assert "repeated items, and the file has 100. Nothing is written" in done.out
    assert "name the file" not in done.out
    assert not out.exists()
    more = run("plan", path, *named, "--half-width", "0.01", "--rate", "0.1")
    assert "the file has 100.\nNothing is drawn or written: no item has just one label." in more.out
    assert "name the file" not in more.out
