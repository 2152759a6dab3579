"""Traces from a teacher: reasoning that reached the clean label by itself, and nothing else.

The teacher is never told a label. Of every training item it gives ``teacher.samples`` draws; a draw survives if
its answer, read strictly, is the item's clean label (rejection sampling: Zelikman et al. 2022, "STaR"; Yuan et al.
2023). Which rows get a trace is no accident then: `train.traces_report` sets the rows that have one against all.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audit.errors import ArgumentError
from train.config import Config, TeacherSettings
from train.task import Example, Message, Task
from train.teacher import OnReply, Question, ask_teacher, question_key, read_replies

__all__ = [
    "KEPT",
    "REASONS",
    "Draft",
    "Trace",
    "TraceSet",
    "collect_traces",
    "completion_text",
    "parse_reply",
    "read_traces",
    "tally",
    "teacher_messages",
]

#: Counts the tokens of a text as the student will read it.
CountTokens = Callable[[str], int]

#: What may become of a draw.
REASONS = (
    "kept",
    "wrong label",
    "no answer",
    "two answers",
    "no thought",
    "tags in the thought",
    "too long",
    "cut at the token limit",
    "refused",
    "no text",
)

_FORM = (
    "Think about the item first, in a few plain sentences and by nothing but what it says. Then end with one line of "
    "its own that reads 'Answer: ' and the label, which is one of: {labels}. Do not name the label before that line."
)
_MARKED = re.compile(r"^[\s*_#>`]*(?:final\s+)?(?:answer|label)[*_`\s]*[:=]\s*(?P<answer>.*)$", re.IGNORECASE)
_BLOCK = re.compile(r"^\s*(?:<think>)?(?P<thought>.*?)</think>(?P<rest>.*)$", re.DOTALL)
_TAG = re.compile(r"</?\s*think(?:ing)?\s*>|<\|[^|\n]{0,60}\|>", re.IGNORECASE)
_WRAPPING = " \t\r\n*_`\"'“”‘’"
FILE = "replies.jsonl"
KEPT = "traces.jsonl"
COLUMNS = ("item", "label", "thought", "sample", "tokens")


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A reply, read: the thought and the answer, or the reason why it is of no use (one of REASONS, or "")."""

    thought: str = ""
    answer: str | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """A thought that reached ``label``, the clean label of ``item``; ``tokens`` with its tags and the answer."""

    item: str
    label: str
    thought: str
    sample: int
    tokens: int


@dataclass(frozen=True, kw_only=True)
class TraceSet:
    """The traces, one an item at most, and what became of every draw: item to the reasons of its draws."""

    traces: tuple[Trace, ...]
    draws: Mapping[str, tuple[str, ...]]
    reused: int
    asked: int
    failed: Mapping[str, int]

    @property
    def missing(self) -> int:
        """Draws without a reply, as the endpoint failed: the same command asks for them again."""
        return sum(self.failed.values())


def teacher_messages(task: Task, settings: TeacherSettings, values: Sequence[str]) -> tuple[Message, ...]:
    """What the teacher is sent about an item: how to judge, the form of the answer, the item. No label of it."""
    form = _FORM.format(labels=", ".join(task.labels))
    system = "\n\n".join(filter(None, [settings.instruction.strip(), form]))
    return ({"role": "system", "content": system}, task.messages(values)[-1])


def completion_text(thought: str, answer: str, *, tags: Sequence[str] = ("<think>", "</think>")) -> str:
    """A trace as the student learns it: the thought between its tags, then the answer alone."""
    return f"{tags[0]}\n{thought}\n{tags[1]}\n{answer}"


def parse_reply(body: Mapping[str, Any], *, labels: Sequence[str], tags: Sequence[str] = ()) -> Draft:
    """Read one reply: a chat completion, or ``{"refused": why}``.

    The thought is the reasoning field of the message (``reasoning_content`` or ``reasoning``), or what stands in one
    ``<think>`` block at the start, or all lines but the last. The answer is the last line, alone or after
    ``Answer:``, and must be a label letter by letter once quotes, emphasis and a final stop are gone.
    """
    choice = (body.get("choices") or [{}])[0] or {}
    message = choice.get("message") or {}
    if "refused" in body or message.get("refusal") or choice.get("finish_reason") == "content_filter":
        return Draft(reason="refused")
    if choice.get("finish_reason") == "length":
        return Draft(reason="cut at the token limit")
    content = message.get("content")
    if not isinstance(content, str) or not content.strip():
        return Draft(reason="no text")
    fields = [message.get(name) for name in ("reasoning_content", "reasoning")]
    thought = next((one.strip() for one in fields if isinstance(one, str) and one.strip()), None)
    block = _BLOCK.match(content) if thought is None else None
    if block is not None:
        thought, content = block["thought"].strip(), block["rest"]
    lines = content.strip().splitlines() or [""]
    answer = _answer(lines[-1], labels)
    if answer is None:
        return Draft(reason="no answer")
    marked = {_answer(line, labels) for line in lines if _MARKED.match(line)} - {None}
    if len(marked | {answer}) > 1:
        return Draft(reason="two answers")
    if thought is None:
        thought = "\n".join(line for line in lines[:-1] if not _MARKED.match(line)).strip()
    if not thought:
        return Draft(answer=answer, reason="no thought")
    if _TAG.search(thought) or any(tag in thought for tag in tags):
        return Draft(answer=answer, reason="tags in the thought")
    return Draft(thought=thought, answer=answer)


def _answer(line: str, labels: Sequence[str]) -> str | None:
    marked = _MARKED.match(line)
    text = (marked["answer"] if marked else line).strip(_WRAPPING)
    for form in (text, text.removesuffix(".").strip(_WRAPPING)):
        if form in labels:
            return form
    return None


def collect_traces(
    config: Config,
    examples: Sequence[Example],
    folder: Path,
    *,
    count: CountTokens,
    seed: int = 0,
    on_reply: OnReply | None = None,
) -> TraceSet:
    """Ask the teacher what ``folder`` does not hold yet, and choose one trace an item.

    Parameters
    ----------
    config:
        Task, teacher, tags and caps of the ladder.
    examples:
        The training rows; an item that stands there twice is asked about once.
    folder:
        Where ``replies.jsonl`` (every reply, raw) and ``traces.jsonl`` (what is kept) lie.
    count:
        Tokens of a text in the student's tokenizer.
    seed:
        Fixes the seeds sent to the teacher, and the choice where ``teacher.keep`` is "random".
    on_reply:
        Told after every reply.

    Raises
    ------
    EndpointError
        See `train.teacher.ask_teacher`.
    ArgumentError
        ``teacher.model`` is not set, or two rows of one item have different clean labels.
    """
    from audit.writing import write_rows

    settings = config.teacher
    if not settings.model:
        raise ArgumentError("teacher.model is not set: name the model that writes the traces")
    items = _distinct(examples)
    questions = [
        Question(item=item, sample=sample, messages=teacher_messages(config.task, settings, example.values))
        for item, example in items.items()
        for sample in range(settings.samples)
    ]
    path = folder / FILE
    asked = ask_teacher(questions, settings=settings, path=path, seed=seed, on_reply=on_reply)
    replies = read_replies(path)
    drafts: dict[str, list[tuple[Draft, int, int]]] = {item: [] for item in items}
    for question in questions:
        entry = replies.get(question_key(question, settings, seed=seed))
        if entry is not None:
            draft = parse_reply(entry["body"], labels=config.task.labels, tags=config.model.think)
            judged, tokens = _judge(draft, items[question.item].clean, config, count)
            drafts[question.item].append((judged, question.sample, tokens))
    traces = []
    for item, found in drafts.items():
        kept = [one for one in found if one[0].reason == "kept"]
        if kept:
            draft, sample, tokens = _choose(kept, settings.keep, f"{seed}\x1f{item}")
            traces.append(
                Trace(item=item, label=items[item].clean, thought=draft.thought, sample=sample, tokens=tokens)
            )
    write_rows(folder / KEPT, COLUMNS, ((t.item, t.label, t.thought, t.sample, t.tokens) for t in traces))
    return TraceSet(
        traces=tuple(traces),
        draws={item: tuple(draft.reason for draft, _, _ in found) for item, found in drafts.items()},
        reused=asked.reused,
        asked=asked.asked,
        failed=asked.failed,
    )


def read_traces(folder: Path) -> dict[str, Trace]:
    """The traces that `collect_traces` kept in ``folder``, by item."""
    import json

    lines = (folder / KEPT).read_text("utf-8").splitlines()
    return {trace.item: trace for trace in (Trace(**json.loads(line)) for line in lines)}


def _distinct(examples: Sequence[Example]) -> dict[str, Example]:
    items: dict[str, Example] = {}
    for example in examples:
        if items.setdefault(example.item, example).clean != example.clean:
            raise ArgumentError(
                f"{example.item[:80]!r} has two clean labels: traces need task.clean, with one label an item"
            )
    return items


def _judge(draft: Draft, label: str, config: Config, count: CountTokens) -> tuple[Draft, int]:
    """The draft with its fate, and the tokens its completion takes."""
    if draft.reason or draft.answer is None:
        return draft, 0
    if draft.answer != label:
        return Draft(thought=draft.thought, answer=draft.answer, reason="wrong label"), 0
    tokens = count(completion_text(draft.thought, draft.answer, tags=config.model.think)) + 1
    cap = config.teacher.cap or config.grpo.think_cap
    reason = "too long" if tokens > cap else "kept"
    return Draft(thought=draft.thought, answer=draft.answer, reason=reason), tokens


def _choose(kept: Sequence[tuple[Draft, int, int]], how: str, key: str) -> tuple[Draft, int, int]:
    if how == "shortest":
        return min(kept, key=lambda one: (one[2], one[1]))
    if how == "random":
        return random.Random(key).choice(kept)
    return kept[0]


def tally(draws: Mapping[str, Sequence[str]]) -> Counter[str]:
    """How many draws met which fate."""
    return Counter(reason for reasons in draws.values() for reason in reasons)
