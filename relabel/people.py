"""Answers of people, kept in the journal beside the judges' replies.

To the journal a person is one more judge: model ``human``, endpoint ``people``. What was asked is the item's text
under a rubric of this name with these labels; the prose is not part of the key, so that a mended comma does not
throw people's work away. Every record holds the hash of the rubric it was given under, and a later answer about
the same item replaces an earlier one. A person's label counts before any model's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from relabel.journal import Journal
from relabel.parse import verdict_of
from relabel.pipeline import known
from relabel.prompts import user_text
from relabel.records import Judged, Reply, Request
from relabel.rubric import Rubric
from relabel.spellings import Spellings
from relabel.worklist import Worklist, batches

__all__ = ["HUMAN", "PEOPLE", "Recalled", "answer", "question", "recall_answers"]

HUMAN = "human"
PEOPLE = "people"
BATCH = 256


@dataclass(frozen=True, kw_only=True)
class Recalled:
    """Items that people answered, and how many of them under another text of the rubric."""

    count: int
    older: int


def question(rubric: Rubric, row: Mapping[str, str]) -> Request:
    """What a person is asked about an item; its key stands in review files."""
    texts = {column: row[column] for column in rubric.input_columns}
    return Request(
        model=HUMAN,
        base_url=PEOPLE,
        params={"rubric": rubric.name, "labels": sorted(rubric.label_names)},
        messages=({"role": "user", "content": user_text(texts)},),
    )


def answer(asked: Request, *, label: str, note: str, by: str, spellings: Spellings) -> Judged:
    """A person's answer as the journal keeps it: in the form of a reply, so that it is read like one."""
    content = json.dumps({"rationale": note, "clause": "", "label": label}, ensure_ascii=False)
    message = {"role": "assistant", "content": content}
    reply = Reply(body={"model": by, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    return Judged(asked, reply, verdict_of(reply, spellings))


def recall_answers(worklist: Worklist, *, journal: Journal, rubric: Rubric) -> Recalled:
    """Put what people answered into the worklist."""
    count = older = 0
    if journal.heard_from(model=HUMAN, base_url=PEOPLE):
        spellings = Spellings(rubric.labels)
        for batch in batches(worklist.read(), BATCH):
            keys = {question(rubric, item.row).key: item.id for item in batch}
            answers = []
            for key, stored in journal.find(list(keys)).items():
                verdict = known(stored, journal=journal, rubric=rubric, spellings=spellings)
                if verdict.label is not None:
                    answers.append((keys[key], verdict))
                    older += stored.rubric != rubric.hash
            worklist.put(answers, role="human", model=HUMAN)
            count += len(answers)
    return Recalled(count=count, older=older)
