"""Peak memory of a whole relabelling run against the number of rows.

    python benchmarks/relabel_memory.py [10000 100000 1000000] [--characters 230] [--generated] [--served]

Each size runs in a process of its own: read the table, judge every row (distinct texts) with the journal on, escalate
15 %, adjudicate, write the relabelled table. Replies come from a stub instead of HTTP, so that a million rows take
minutes; everything else is a real run. Printed: seconds and peak resident memory.

``--generated`` takes the rows from a generator instead of a CSV file: what then grows is not the reader's. ``--served``
asks a rehearsal server (in yet another process) over HTTP, without an adjudicator.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RUBRIC = (
    "---\nname: bench\nversion: '1'\ninputs: [text]\nlabels: {yes: it is, no: it is not}\n---\n"
    + "\n\n".join(
        f"C{n}. A clause of the usual length, which says what counts and what does not." for n in range(1, 30)
    )
)


def rows_of(rows: int, characters: int) -> Iterator[tuple[str, str, str]]:
    """``rows`` different texts of about so many characters."""
    filler = ("the quick brown fox jumps over it " * (1 + characters // 34))[:characters]
    for row in range(rows):
        yield str(row), f"Item {row}: {filler}", "yes" if row % 2 else "no"


HEAD = ("id", "text", "label")


def write_table(path: Path, rows: int, characters: int = 204) -> None:
    """The rows as a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEAD)
        writer.writerows(rows_of(rows, characters))


class Generated:
    """What a run needs of `audit.reading.Table`, without a file."""

    columns = HEAD

    def __init__(self, rows: int, characters: int) -> None:
        import duckdb

        self.size, self.con = (rows, characters), duckdb.connect()
        self.report = SimpleNamespace(source="generated rows")

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[list[tuple[str, ...]]]:
        """Batches, as the reader gives them."""
        places = [HEAD.index(name) for name in columns or HEAD]
        source = (tuple(row[place] for place in places) for row in rows_of(*self.size))
        while batch := list(islice(source, 2_000)):
            yield batch

    def __enter__(self) -> Generated:
        return self

    def __exit__(self, *_: object) -> None:
        self.con.close()


@contextmanager
def served() -> Iterator[str]:
    """The base URL of a rehearsal server in a process of its own."""
    code = (
        "import sys; from relabel.rehearse import RehearsalServer, Script\n"
        "with RehearsalServer(Script(truth={}, labels=('no', 'yes'))) as server:\n"
        "    print(server.base_url, flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=pipe, stdout=pipe, text=True
    ) as server:
        if server.stdin is None or server.stdout is None:
            raise SystemExit("no pipes to the server")
        yield server.stdout.readline().strip()
        server.stdin.close()


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


def one(rows: int, *, characters: int, generated: bool, http: bool) -> dict[str, float]:
    """Run with so many rows in this process; seconds and peak memory in MB (before the run, and in all)."""
    from relabel import engine
    from relabel import run as running
    from relabel.connect import wishes
    from relabel.pipeline import Judge

    @asynccontextmanager
    async def connect(where: Any, *, rubric: Any, settings: Any, **_: Any) -> AsyncIterator[Judge]:
        yield Judge(client=Stub(where.model), params=wishes(rubric, settings))

    if not http:
        engine.connect = connect  # type: ignore[assignment]
    if generated:
        running.open_table = lambda source: Generated(rows, characters)  # type: ignore[assignment,misc,return-value]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        write_table(folder / "data.csv", 1 if generated else rows, characters)
        (folder / "rubric.md").write_text(RUBRIC)
        job = running.Job(
            source=folder / "data.csv",
            rubric=folder / "rubric.md",
            judge="judge",
            adjudicator=None if http else "adjudicator",
            base_url=stack.enter_context(served()) if http else "http://127.0.0.1:1/v1",
            out=folder / "clean.csv",
            label="label",
        )
        before, began = peak(), time.perf_counter()
        result = job.run()
        seconds = time.perf_counter() - began
        if result.rows != rows or result.without_verdict:
            raise SystemExit(f"the run is not whole: {result.summary()}")
        size = (folder / "data.csv").stat().st_size / 1e6
        return {"rows": rows, "seconds": seconds, "before": before, "peak": peak(), "megabytes": size}


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


def measure(rows: int, *more: str) -> dict[str, float]:
    """`one` in a fresh process."""
    command = [sys.executable, __file__, "--one", str(rows), *more]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Print a line for each size."""
    sys.path.insert(0, str(ROOT))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--characters", type=int, default=204)
    parser.add_argument("--generated", action="store_true")
    parser.add_argument("--served", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        how = {"characters": asked.characters, "generated": asked.generated, "http": asked.served}
        print(json.dumps(one(asked.rows[0], **how)))
        return
    more = [f"--characters={asked.characters}"]
    more += [f"--{name}" for name in ("generated", "served") if getattr(asked, name)]
    for rows in asked.rows:
        found = measure(rows, *more)
        print(
            f"{rows:>9,} rows, {found['megabytes']:,.0f} MB: {found['seconds']:7.1f} s, {found['peak']:5.0f} MB at most"
            f" ({found['before']:.0f} MB before the run)",
            flush=True,
        )


if __name__ == "__main__":
    main()
