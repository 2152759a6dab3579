"""The scripted teacher of the training study: it reads an item's clause off the example's truth and argues by it.

It answers over real HTTP and is told nothing of the label by whoever asks; what it knows it knows from the files in
examples/. It is wrong on some draws, more often on hard items, and argues as fluently then. So the traces have the
form of a teacher's, and their selection a cause that is known; they are not a real model's thoughts.
"""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Chance of a wrong draw by difficulty.
ERRORS = {"easy": 0.07, "hard": 0.24}

#: How each clause of the rubric is argued, by the answer it leads to.
ARGUMENTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("C1", "0"): (
        "What is told of {entity} is a warning or a fear. Nothing has happened to it.",
        "No suit, fine, recall or stop has come about for {entity}. There is no outcome.",
    ),
    ("C2", "0"): (
        "That {entity} was hit rests on talk. Nobody has confirmed it.",
        "The report about {entity} is a rumour from no named source, so it is not verified.",
    ),
    ("C2", "1"): (
        "It began as a rumour, but it was confirmed. {entity} was hit over {driver}.",
        "The company confirmed what had been talk before, and the cause is {driver}.",
    ),
    ("C3", "0"): (
        "Another firm was hit. {entity} only stands beside it.",
        "{entity} is a bystander here. The outcome falls on somebody else.",
    ),
    ("C3", "1"): (
        "The unit that was hit belongs to {entity}, and the cause is {driver}.",
        "{entity} owns what was hit, so it counts as hit, over {driver}.",
    ),
    ("C4", "0"): (
        "{entity} was hit, but the cause is another one than {driver}.",
        "The outcome is real, but the passage does not trace it to {driver}.",
    ),
    ("C4", "1"): (
        "{entity} was hit, and the passage gives {driver} as the cause.",
        "The outcome has happened to {entity} itself, and it traces to {driver}.",
    ),
    ("C5", "0"): (
        "The harm was done to others. Nothing came back to {entity}.",
        "The fault does not lie with {entity}, so {driver} is not its risk.",
    ),
    ("C5", "1"): (
        "The harm that {entity} did came back to it, and the fault is its own: {driver}.",
        "The fault over {driver} lies with {entity}, and it was made to answer for it.",
    ),
    ("C6", "0"): (
        "{entity} is a public office, and those are exempt.",
        "An authority such as {entity} is never at risk by these rules.",
    ),
    ("C7", "0"): (
        "The report about {entity} was taken back later on. There was no outcome.",
        "Read to the end, it was an error: nothing befell {entity}.",
    ),
    ("C7", "1"): (
        "{entity} denies it or has settled, but that undoes nothing. The cause is {driver}.",
        "The outcome for {entity} stands, whatever came later, and it traces to {driver}.",
    ),
    ("C8", "0"): (
        "The passage leaves the cause open. In doubt {driver} is not shown.",
        "Whether {driver} is behind it is not settled here.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Known:
    """What the teacher knows of an item."""

    entity: str
    driver: str
    truth: str
    difficulty: str
    clause: str


class ScriptedTeacher:
    """``teacher(body)`` answers a chat request; the same request and seed get the same answer."""

    def __init__(self, truth: Path) -> None:
        with truth.open(encoding="utf-8", newline="") as file:
            self.known = {
                (row["passage"], row["entity"], row["driver"]): Known(
                    **{name: row[name] for name in ("entity", "driver", "truth", "difficulty", "clause")}
                )
                for row in csv.DictReader(file)
            }

    def __call__(self, body: dict[str, Any]) -> dict[str, Any] | tuple[int, str]:
        """The message of a reply: an argument, then the answer on a line of its own."""
        lines = dict(
            line.split(": ", 1) for line in body["messages"][-1]["content"].splitlines() if ": " in line
        )
        item = self.known.get((lines.get("Passage", ""), lines.get("Entity", ""), lines.get("Driver", "")))
        if item is None:
            return 400, "this teacher knows the items of the example only"
        wrong, which = _draws(f"{body.get('seed')}\x1f{item.entity}\x1f{lines['Passage']}")
        answer, clause = item.truth, item.clause
        if wrong < ERRORS[item.difficulty]:
            answer = "0" if answer == "1" else "1"
            others = sorted(clause for clause, label in ARGUMENTS if label == answer)
            clause = clause if (clause, answer) in ARGUMENTS else others[int(which * len(others))]
        forms = ARGUMENTS[clause, answer]
        text = forms[int(which * 997) % len(forms)].format(entity=item.entity, driver=item.driver)
        return {"content": f"{text}\nAnswer: {answer}"}


def _draws(text: str) -> tuple[float, float]:
    """Two numbers in [0, 1) that the text fixes."""
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48, int.from_bytes(digest[6:12], "big") / 2**48
