"""Peak memory of a whole relabelling run against the number of rows.

    python benchmarks/relabel_memory.py [10000 100000 1000000]

Each size runs in a process of its own: read the table, judge every row (distinct texts of about 230 characters) with
the journal on, escalate 15 %, adjudicate, write the relabelled table. Replies come from a stub instead of HTTP, so
that a million rows take minutes; everything else is a real run. Printed: seconds and peak resident memory.
"""

from __future__ import annotations

import asyncio
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RUBRIC = (
    "---\nname: bench\nversion: '1'\ninputs: [text]\nlabels: {yes: it is, no: it is not}\n---\n"
    + "\n\n".join(
        f"C{n}. A clause of the usual length, which says what counts and what does not." for n in range(1, 30)
    )
)


def write_table(path: Path, rows: int) -> None:
    """``rows`` different texts."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "label"])
        for row in range(rows):
            writer.writerow(
                [row, f"Item {row}: " + "the quick brown fox jumps over it " * 6, "yes" if row % 2 else "no"]
            )


class Stub:
    """A client that answers at once, with replies of the usual size."""

    def __init__(self, model: str) -> None:
        self.model, self.base_url = model, "http://127.0.0.1:1/v1"

    async def judge(self, request: Any) -> Any:
        """A verdict whose confidence is spread evenly."""
        from relabel.records import Judged, Reply, Status, Verdict

        await asyncio.sleep(0)
        confidence = int(request.key[:8], 16) / 0xFFFFFFFF
        message = {"role": "assistant", "content": json.dumps({"label": "yes", "rationale": "because " * 12})}
        body = {"id": request.key, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        return Judged(
            request,
            Reply(body=body, prompt_tokens=900, completion_tokens=40, attempts=1),
            Verdict(
                status=Status.OK,
                label="yes",
                confidence=confidence,
                confidence_kind="logprob",
                rationale="because " * 12,
            ),
        )


def one(rows: int) -> dict[str, float]:
    """Run with so many rows in this process; seconds and peak memory in MB (before the run, and in all)."""
    from relabel import engine
    from relabel.connect import wishes
    from relabel.pipeline import Judge
    from relabel.run import Job

    @asynccontextmanager
    async def connect(where: Any, *, rubric: Any, settings: Any, **_: Any) -> AsyncIterator[Judge]:
        yield Judge(client=Stub(where.model), params=wishes(rubric, settings))

    engine.connect = connect  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder / "data.csv", rows)
        (folder / "rubric.md").write_text(RUBRIC)
        job = Job(
            source=folder / "data.csv",
            rubric=folder / "rubric.md",
            judge="judge",
            adjudicator="adjudicator",
            base_url="http://127.0.0.1:1/v1",
            out=folder / "clean.csv",
            label="label",
        )
        before, began = peak(), time.perf_counter()
        result = job.run()
        seconds = time.perf_counter() - began
        if result.rows != rows or result.without_verdict:
            raise SystemExit(f"the run is not whole: {result.summary()}")
        return {"rows": rows, "seconds": seconds, "before": before, "peak": peak()}


def peak() -> float:
    """Peak resident memory of this process so far, in MB.

    Linux hands ``ru_maxrss`` on from the process that started this one; VmHWM is this program's own.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text("utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1 << (20 if sys.platform == "darwin" else 10)
    )


def measure(rows: int) -> dict[str, float]:
    """`one` in a fresh process."""
    done = subprocess.run(
        [sys.executable, __file__, "--one", str(rows)], check=True, capture_output=True, text=True, cwd=ROOT
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Print a line for each size."""
    sys.path.insert(0, str(ROOT))
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one(int(sys.argv[2]))))
        return
    for rows in [int(text) for text in sys.argv[1:]] or [10_000, 100_000, 1_000_000]:
        found = measure(rows)
        print(
            f"{rows:>9,} rows: {found['seconds']:7.1f} s, {found['peak']:5.0f} MB at most"
            f" ({found['before']:.0f} MB before the run)",
            flush=True,
        )


if __name__ == "__main__":
    main()
