"""The gate of ``--fail-under`` in the JSON: what the exit code and the line on standard error say."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from audit.results import AuditResult
from tests.command import run, write_csv

SCHEMA = json.loads((Path(__file__).parents[1] / "docs" / "schema.json").read_text("utf-8"))


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """100 items labelled twice, 18 of them at odds: the band is [.82, .90]."""
    rows = [
        (f"item {i}", label)
        for i in range(100)
        for label in ("1" if i % 2 else "2", "2" if i < 18 or not i % 2 else "1")
    ]
    rows = [
        (text, ("1", "2")[k % 2] if int(text.split()[1]) < 18 else label)
        for k, (text, label) in enumerate(rows)
    ]
    return write_csv(tmp_path / "data.csv", ["text", "label"], rows)


@pytest.mark.parametrize(
    ("threshold", "end", "value", "code"),
    [(0.8, "lower", 0.82, 0), (0.85, "lower", 0.82, 1), (0.85, "upper", 0.90, 0), (0.95, "upper", 0.90, 1)],
)
@pytest.mark.parametrize("kind", [(), ("--kind", "ordinal"), ("--kind", "tags")])
def test_the_json_says_what_the_exit_code_says(
    threshold: float, end: str, value: float, code: int, kind: tuple[str, ...], pairs: Path
) -> None:
    done = run(
        "dupes", pairs, "--item", "text", "--label", "label", *kind, "--fail-under", str(threshold), "--fail-on", end,
        "--format", "json",
    )  # fmt: skip
    gate = done.json["gate"]
    assert (done.code, gate["passed"]) == (code, code == 0)
    assert (gate["threshold"], gate["end"], gate["value"]) == (threshold, end, pytest.approx(value))
    assert gate["value"] == done.json["ceiling"][end]
    assert gate["message"] == done.err.strip()
    if not kind:
        jsonschema.validate(done.json, SCHEMA)


def test_without_a_gate_and_without_a_band(pairs: Path, tmp_path: Path) -> None:
    named = ("--item", "text", "--label", "label", "--format", "json")
    assert run("dupes", pairs, *named).json["gate"] is None
    single = write_csv(tmp_path / "one.csv", ["text", "label"], [("a", "1"), ("b", "2")])
    done = run("dupes", single, *named, "--fail-under", "0.5")
    assert (done.code, done.json["gate"]["passed"], done.json["gate"]["value"]) == (1, False, None)
    jsonschema.validate(done.json, SCHEMA)


def test_a_saved_audit_with_a_gate_places_a_score(pairs: Path, tmp_path: Path) -> None:
    saved = tmp_path / "a.json"
    run(
        "dupes",
        pairs,
        "--item",
        "text",
        "--label",
        "label",
        "--fail-under",
        "0.5",
        "--format",
        "json",
        "--out",
        saved,
    )
    assert json.loads(saved.read_text("utf-8"))["gate"]["passed"] is True
    assert run("ceiling", saved, "--score", "0.85").code == 0
    assert "gate" in AuditResult.__dataclass_fields__
