"""Label Studio's files: tasks to import, the labelling configuration, and the answers it exports.

Formats as of Label Studio 1.23: https://labelstud.io/guide/task_format, https://labelstud.io/guide/export
(JSON, JSON-MIN and CSV).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import quoteattr

from relabel.doubts import Doubt
from relabel.records import Verdict
from relabel.rubric import Rubric

__all__ = ["LABEL", "NOTE", "Answer", "config", "flat_answer", "names", "read_annotations", "task"]

LABEL = "human_label"
NOTE = "human_note"
_OWN = {
    *(
        f"{who}_{what}"
        for who in ("judge", "adjudicator")
        for what in ("model", "label", "confidence", "confidence_kind", "clause", "rationale")
    ),
    *(LABEL, NOTE, "key", "row", "rows", "why", "old_labels", "models"),
    # what Label Studio's flat exports add
    *("id", "annotator", "annotation_id", "lead_time", "created_at", "updated_at", "task", "agreement"),
}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One person's answer to one question. ``label`` is None where it was skipped; ``place`` tells where it stood."""

    key: str
    label: str | None
    note: str = ""
    by: str = ""
    at: str = ""
    place: str = ""
    problem: str = ""


def names(columns: Sequence[str]) -> dict[str, str]:
    """Input column -> its name in review files: its own, where that is a plain word that is not taken."""
    found: dict[str, str] = {}
    for number, column in enumerate(columns, start=1):
        plain = re.fullmatch(r"[A-Za-z]\w*", column, re.ASCII) and column.casefold() not in _OWN
        found[column] = column if plain else f"input_{number}"
    taken = [name.casefold() for name in found.values()]
    if len(set(taken)) < len(taken):
        return {column: f"input_{number}" for number, column in enumerate(columns, start=1)}
    return found


def config(rubric: Rubric, *, blind: bool = False) -> str:
    """The labelling configuration that goes with `task`: the texts, what the models say, the labels, a note."""
    columns = names(rubric.input_columns)
    first = next(iter(columns.values()))
    lines = ["<View>", f"  <Header value={_show(f'{rubric.name}, version {rubric.version}')}/>"]
    for column, name in columns.items():
        lines.append(f'  <Header size="6" value={_show(column)}/>')
        lines.append(f'  <Text name="{name}" value="${name}" valueType="text"/>')
    if not blind:
        lines.append('  <Header size="6" value="What the models say"/>')
        lines.append('  <Text name="models" value="$models" valueType="text"/>')
    told = [f"{label.name}: {label.meaning}" for label in rubric.labels if label.meaning]
    lines += [f'  <Header size="6" value={_show(text)}/>' for text in told]
    lines.append(f'  <Choices name="{LABEL}" toName="{first}" choice="single-radio" required="true">')
    lines += [f"    <Choice {_choice(label.name)}/>" for label in rubric.labels]
    lines.append("  </Choices>")
    lines.append(f'  <TextArea name="{NOTE}" toName="{first}" rows="2" placeholder="Why (clause)?"/>')
    return "\n".join([*lines, "</View>", ""])


def task(doubt: Doubt, columns: Mapping[str, str], *, blind: bool = False) -> dict[str, Any]:
    """One task: the texts and their key, and (unless ``blind``) both verdicts as text and as predictions."""
    data: dict[str, Any] = {"key": doubt.key, "row": doubt.row, "rows": doubt.rows}
    data |= {columns[column]: text for column, text in doubt.texts.items()}
    if blind:
        return {"data": data}
    data |= {"why": doubt.why, "old_labels": ", ".join(doubt.old)}
    said = [
        (who, entry) for who, entry in (("judge", doubt.judge), ("adjudicator", doubt.adjudicator)) if entry
    ]
    data["models"] = "\n".join(f"{who} {model}: {_said(verdict)}" for who, (model, verdict) in said)
    first = next(iter(columns.values()))
    return {
        "data": data,
        "predictions": [
            _prediction(model, verdict, first, seed=f"{doubt.key}{who}")
            for who, (model, verdict) in reversed(said)
            if verdict.label is not None
        ],
    }


def _prediction(model: str, verdict: Verdict, text: str, *, seed: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "model_version": model,
        "result": [
            {
                "id": hashlib.sha256(seed.encode()).hexdigest()[:10],
                "from_name": LABEL,
                "to_name": text,
                "type": "choices",
                "value": {"choices": [verdict.label]},
            }
        ],
    }
    if verdict.confidence is not None:
        found["score"] = round(verdict.confidence, 6)
    return found


def _said(verdict: Verdict) -> str:
    if verdict.label is None:
        return f"no label ({verdict.reason or verdict.status})"
    sure = "" if verdict.confidence is None else f" ({verdict.confidence:.2f}, {verdict.confidence_kind})"
    cited = f", by {verdict.clause}" if verdict.clause else ""
    return f"{verdict.label}{sure}{cited}. {verdict.rationale}".rstrip()


def read_annotations(tasks: Sequence[Any]) -> Iterator[Answer]:
    """The answers in Label Studio's export, JSON (tasks with annotations) or JSON-MIN (one flat entry an answer)."""
    for number, entry in enumerate(tasks, start=1):
        place = f"task {number}"
        if not isinstance(entry, Mapping):
            yield Answer(key="", label=None, place=place, problem="is no task")
        elif "annotations" in entry or "completions" in entry:
            data = entry.get("data")
            key = str(data.get("key") or "") if isinstance(data, Mapping) else ""
            given = entry.get("annotations") or entry.get("completions") or []
            for one in given if isinstance(given, list) else ():
                yield _annotation(one, key, place)
            if not given:
                yield Answer(key=key, label=None, place=place)
        else:
            yield flat_answer(entry, place=place)


def _annotation(one: Any, key: str, place: str) -> Answer:
    if not isinstance(one, Mapping):
        return Answer(key=key, label=None, place=place, problem="is no annotation")
    by, at = _who(one.get("completed_by")), str(one.get("updated_at") or one.get("created_at") or "")
    told: dict[str, list[str]] = {LABEL: [], NOTE: []}
    for part in one.get("result") or ():
        if isinstance(part, Mapping) and part.get("from_name") in told:
            value = part.get("value")
            words = (
                value.get("choices" if part["from_name"] == LABEL else "text")
                if isinstance(value, Mapping)
                else []
            )
            told[part["from_name"]] += (
                [words] if isinstance(words, str) else [str(word) for word in words or ()]
            )
    note = " ".join(told[NOTE]).strip()
    if one.get("was_cancelled") or not told[LABEL]:
        return Answer(key=key, label=None, by=by, at=at, place=place)
    if len(told[LABEL]) > 1:
        return Answer(key=key, label=None, by=by, at=at, place=place, problem="has several labels")
    return Answer(key=key, label=told[LABEL][0], note=note, by=by, at=at, place=place)


def flat_answer(entry: Mapping[str, Any], *, place: str) -> Answer:
    """The answer in one flat entry: a row of a table, or of Label Studio's JSON-MIN or CSV export."""
    label, note = entry.get(LABEL), entry.get(NOTE)
    key, by, at = (
        str(entry.get("key") or ""),
        _who(entry.get("annotator")),
        str(entry.get("updated_at") or ""),
    )
    if isinstance(label, Mapping | list):
        return Answer(key=key, label=None, by=by, at=at, place=place, problem="has several labels")
    words = note if isinstance(note, list) else [note] if note else []
    return Answer(
        key=key,
        label=None if label is None or not str(label).strip() else str(label),
        note=" ".join(str(word) for word in words).strip(),
        by=by,
        at=at,
        place=place,
    )


def _who(value: Any) -> str:
    """A person as Label Studio names one: a number, an address, or an object with both."""
    if isinstance(value, Mapping):
        value = value.get("email") or value.get("id")
    return "" if value is None else str(value)


def _choice(label: str) -> str:
    """A label as a choice; one that would be taken for a variable is shown otherwise and exported as it is."""
    return f"value={_show(label)}" + (f" alias={_attribute(label)}" if "$" in label else "")


def _show(text: str) -> str:
    """Text for people as an attribute; a ``$`` would be taken for a variable."""
    return _attribute(text.replace("$", "\uff04"))


def _attribute(text: str) -> str:
    return quoteattr(text, {"\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})
