"""The rung that asks the teacher, and the rows that the traces give to the rungs above it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from audit.errors import AuditError, InputError
from audit.writing import write_text
from train.config import Config
from train.ladder_progress import Tell, clock
from train.run_folder import RunFolder
from train.task import Example
from train.traces import collect_traces, completion_text, read_traces
from train.traces_report import TraceReport, labels_by_item, trace_report

__all__ = ["REPORT", "TracesMissingError", "ask_for_traces", "rows_of_traces"]

#: The report on the traces, in their run's folder; the same as text is in report.txt.
REPORT = "report.json"


class TracesMissingError(AuditError):
    """Some draws have no reply, as the endpoint failed; the same command asks for them again."""

    exit_code = 3


def ask_for_traces(
    config: Config, run: RunFolder, train: Sequence[Example], *, seed: int, tell: Tell
) -> dict[str, Any]:
    """Ask the teacher, keep the traces and the report on them in ``run``; returns what run.json should say.

    Raises
    ------
    TracesMissingError
        The teacher failed to reply to some draws.
    EndpointError
        See `train.teacher.ask_teacher`.
    """
    from train.ladder_plan import find_tokenizer
    from train.models import load_model

    tokenizer, _ = find_tokenizer(config.model.name)
    if tokenizer is None:  # fetched, or told in one line why it cannot be
        tokenizer = load_model(config.model, seed=seed).tokenizer

    def count(text: str) -> int:
        return len(tokenizer(text, add_special_tokens=False)["input_ids"])

    def on_reply(done: int, total: int, left: float) -> None:
        tell(
            f"traces {done:,}/{total:,} replies" + (f" · {clock(left)} to go" if done < total else ""), False
        )

    found = collect_traces(config, train, run.path, count=count, seed=seed, on_reply=on_reply)
    labels = labels_by_item(config.task)
    report = trace_report(found, train, labels=labels, samples=config.teacher.samples)
    write_text(run.path / REPORT, json.dumps(report.to_dict(), ensure_ascii=False, indent=2) + "\n")
    write_text(run.path / "report.txt", report.summary() + "\n")
    if found.missing:
        raise TracesMissingError(_missing(report))
    return {"items": report.items, "traced": report.traced}


def rows_of_traces(
    folder: Path, train: Sequence[Example], *, tags: Sequence[str]
) -> list[tuple[Example, str]]:
    """The training rows whose item has a trace, each with the text that a student of the traces writes.

    sft-matched and cot-sft both take these rows, all of them and in this order.

    Raises
    ------
    InputError
        No trace survived.
    """
    traces = read_traces(folder)
    found = [
        (one, completion_text(traces[one.item].thought, one.clean, tags=tags))
        for one in train
        if one.item in traces
    ]
    if not found:
        raise InputError(f"{folder}: no trace reached its label: see its {REPORT}, or ask a better teacher")
    return found


def _missing(report: TraceReport) -> str:
    cause, count = max(report.failed.items(), key=lambda pair: pair[1])
    return (
        f"traces: {report.missing:,} of {report.items * report.samples:,} draws have no reply ({count} × {cause}): "
        "the same command asks for them again"
    )
