"""Says why a row's verdict would be used again, or why it would not."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from audit.render_words import visible
from relabel.journal import Journal, Stored
from relabel.parse import Spellings
from relabel.pipeline import known
from relabel.records import Request
from relabel.rubric import Rubric

__all__ = ["Explanation", "Near", "explain"]


@dataclass(frozen=True, kw_only=True)
class Near:
    """A record about the same item that is of another request, and what differs, in words."""

    record: Stored
    differences: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What the journal holds for one request.

    Parameters
    ----------
    key:
        The request's key.
    reused:
        Whether the next run uses a stored verdict.
    why:
        The reason, in one line.
    records:
        All records of this request, oldest first.
    near:
        Records about the same item whose request differs: the latest of each distinct request, up to five.
    """

    model: str
    key: str
    reused: bool
    why: str
    records: tuple[Stored, ...]
    near: tuple[Near, ...]

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return {
            "model": self.model,
            "key": self.key,
            "reused": self.reused,
            "why": self.why,
            "records": [_record(stored) for stored in self.records],
            "near": [{**_record(n.record), "differences": list(n.differences)} for n in self.near],
        }

    def summary(self) -> str:
        """A few lines for a person."""
        lines = [f"{self.model}: {self.why}", f"  key {self.key}"]
        lines += [f"  {_line(stored)}" for stored in self.records]
        for near in self.near:
            lines.append(f"  another request about this item, {_line(near.record)}")
            lines += [f"    {difference}" for difference in near.differences]
        return visible("\n".join(lines))  # reasons quote what the endpoint wrote


def explain(
    request: Request, *, journal: Journal, rubric: Rubric, judge: Explanation | None = None
) -> Explanation:
    """Look a request up, and where it has no valid verdict, what was asked instead about the same item.

    With ``judge``, what was found for the judge, the request is the adjudicator's, and that it was never made is no
    fault: only the judge's least sure items go there.
    """
    records = journal.history(request.key)
    spellings = Spellings(rubric.labels)
    best = journal.find([request.key]).get(request.key)
    verdict = known(best, journal=journal, rubric=rubric, spellings=spellings) if best else None
    reused = verdict is not None and verdict.status.reusable
    near = () if reused else tuple(_near(request, journal, judge))
    if verdict is None and judge is not None and not near:
        why = "the adjudicator was not asked about this item; it gets what the judge is least sure of or cannot label"
    elif verdict is None:
        why = "never asked with exactly this model, endpoint, parameters, messages and repeat index"
    elif reused:
        why = f"will be used again: {verdict.label!r}"
    else:
        why = f"will be asked again, as only valid verdicts are used: it was {verdict.status} ({verdict.reason})"
    return Explanation(
        model=request.model, key=request.key, reused=reused, why=why, records=records, near=near
    )


def _near(request: Request, journal: Journal, judge: Explanation | None) -> Iterator[Near]:
    known = {request.key}
    if judge is not None:
        known |= {judge.key, *(one.record.key for one in judge.near)}
    latest = {stored.key: stored for stored in journal.same_item(request) if stored.key not in known}
    for stored in sorted(latest.values(), key=lambda stored: -stored.id)[:5]:
        was = journal.judged(stored).request
        yield Near(record=stored, differences=tuple(_differences(was.to_dict(), request.to_dict())))


def _differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for part in ("model", "base_url", "repeat"):
        if was[part] != now[part]:
            yield f"{part} was {was[part]!r}, is now {now[part]!r}"
    for name in sorted({*was["params"], *now["params"]}):
        old, new = was["params"].get(name), now["params"].get(name)
        if old != new:
            yield f"parameter {name} was {_short(old)}, is now {_short(new)}"
    for old, new in zip(was["messages"], now["messages"], strict=False):
        if old != new:
            changes = [
                line
                for line in difflib.unified_diff(
                    str(old["content"]).splitlines(), str(new["content"]).splitlines(), lineterm="", n=0
                )
                if line[:1] in "+-" and line[:3] not in ("---", "+++")
            ]
            yield f"the {old['role']} message differs in {len(changes)} lines, the first: {_short(changes[:1])}"
    if len(was["messages"]) != len(now["messages"]):
        yield f"there were {len(was['messages'])} messages, there are now {len(now['messages'])}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."


def _record(stored: Stored) -> dict[str, Any]:
    return {
        "at": datetime.fromtimestamp(stored.at, UTC).isoformat(timespec="seconds"),
        "run": stored.run,
        "repeat": stored.repeat,
        "key": stored.key,
        **stored.verdict.to_dict(),
    }


def _line(stored: Stored) -> str:
    verdict, at = stored.verdict, datetime.fromtimestamp(stored.at, UTC)
    what = f"{verdict.label!r}" if verdict.label is not None else f"{verdict.reason}"
    return f"run {stored.run}, {at:%Y-%m-%d %H:%M:%S} UTC: {verdict.status}, {what}"
