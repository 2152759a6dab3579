"""What the tests of relabelling share: a small rubric, a table with repeats, a job on a rehearsal server."""

import csv
from pathlib import Path

from relabel.connect import Settings
from relabel.rehearse import Script
from relabel.rubric import Rubric
from relabel.run import Job

RUBRIC_TEXT = """---
name: weather
version: "3"
inputs: [text]
default_label: sun
labels:
  - name: rain
    meaning: water falls
    synonyms: [wet]
  - name: sun
    meaning: it does not
---
Judge the weather.

C1. Falling water is rain.
C2. Everything else is sun.
"""
RUBRIC = Rubric.parse(RUBRIC_TEXT)
KEY = "sk-test-1234567890abcdef"


def text_of(number: int) -> str:
    return f"Report {number}: the sky over town {number % 7} was watched at noon."


def truth_of(number: int) -> str:
    return "rain" if number % 3 else "sun"


def truth(items: int) -> dict[str, str]:
    return {text_of(n): truth_of(n) for n in range(items)}


def write_table(path: Path, *, items: int, rows: int | None = None) -> Path:
    """``rows`` rows (default: one each) about ``items`` items, with an old label that is wrong on every tenth."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "label"])
        for row in range(rows or items):
            right = truth_of(row % items)
            wrong = "sun" if right == "rain" else "rain"
            writer.writerow([f"{row:05}", text_of(row % items), wrong if row % 10 == 0 else right])
    return path


def read_table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def scripts(items: int, *, judge: float = 0.1, adjudicator: float = 0.02) -> dict[str, Script]:
    labels = RUBRIC.label_names
    return {
        "judge": Script(truth=truth(items), labels=labels, error=judge, seed=1),
        "adjudicator": Script(truth=truth(items), labels=labels, error=adjudicator, seed=2),
    }


def make_job(folder: Path, url: str, *, items: int = 60, **more) -> Job:
    """A job over a fresh table in ``folder``, with files of default names unless told otherwise."""
    table = folder / "data.csv"
    if not table.exists():
        write_table(table, items=items, rows=items + items // 4)
    values = {
        "source": table,
        "rubric": RUBRIC,
        "judge": "judge",
        "base_url": url,
        "out": folder / "clean.csv",
        "label": "label",
        "settings": Settings(concurrency=8),
    }
    return Job(**{**values, **more})
