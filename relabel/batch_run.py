"""A run by batch files: one command, ``audit relabel run --batch FOLDER``, given until the table is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from relabel.batch import BatchCollected, BatchRole, BatchWritten, collect_batch, write_batch
from relabel.progress import Progress
from relabel.result import RunResult
from relabel.run import Job

__all__ = ["BatchStep", "run_batch"]


@dataclass(frozen=True, kw_only=True)
class BatchStep:
    """What one call did: took replies in, then wrote requests, or (``run``) the table."""

    collected: tuple[BatchCollected, ...]
    written: BatchWritten | None
    run: RunResult | None

    @property
    def exit_code(self) -> int:
        """That of the run; 3 as long as replies are to come."""
        return 3 if self.run is None else self.run.exit_code

    def to_dict(self) -> dict[str, Any]:
        """The JSON that ``--format json`` prints."""
        return {
            "collected": [one.to_dict() for one in self.collected],
            "written": None if self.written is None else self.written.to_dict(),
            "run": None if self.run is None else self.run.to_dict(),
        }

    def summary(self) -> str:
        """A few lines for a person."""
        parts = [one.summary() for one in self.collected if one.statuses or one.missing or one.unreadable]
        parts += [one.summary() for one in (self.written, self.run) if one is not None]
        if self.run is None:
            parts.append("nothing was asked; give the same command again when the replies are there")
        elif self.run.exit_code:
            parts.append("audit relabel run without --batch asks for what is missing at once")
        return "\n".join(parts)


def run_batch(
    job: Job,
    *,
    folder: str | Path,
    on_progress: Callable[[Progress], None] | None = None,
    on_notice: Callable[[str], None] | None = None,
) -> BatchStep:
    """Do what can be done now: collect what is in ``folder``, write the next requests, or write the table.

    The judge's files are in ``folder/judge-1``, those for what was lost in ``judge-2`` and so on, the adjudicator's
    (once the judge is done) in ``adjudicator-1``. Nothing is asked at an endpoint: what has no label by then has
    none in the table.
    """
    collected: list[BatchCollected] = []
    roles: tuple[BatchRole, ...] = ("judge", "adjudicator") if job.adjudicator is not None else ("judge",)
    for role in roles:
        for place in _rounds(Path(folder), role):
            if not any(place.glob("*.jsonl")):
                written = write_batch(job, folder=place, role=role, hopeful=True)
                if written.items:
                    return BatchStep(collected=tuple(collected), written=written, run=None)
                break
            collected.append(collect_batch(job, folder=place, role=role))
            if collected[-1].missing:
                return BatchStep(collected=tuple(collected), written=None, run=None)
    result = job.run(on_progress=on_progress, on_notice=on_notice, offline=True)
    return BatchStep(collected=tuple(collected), written=None, run=result)


def _rounds(folder: Path, role: BatchRole) -> Iterator[Path]:
    return (folder / f"{role}-{number}" for number in count(1))
