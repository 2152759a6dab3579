"""How much of an endpoint's pace a relabelling run keeps, against loops that only send and receive.

    python benchmarks/relabel_throughput.py [--items 4000] [--runs 5] [--latency 0.2] [--workers 64]
                                            [--curator /path/to/python] [--json out.json]

Every arm asks the same rehearsal server (200 ms latency, in a process of its own) about the same items, with the
same messages and parameters, 64 at a time:

- ``bare``: 64 workers around ``AsyncOpenAI.chat.completions.create``; nothing is kept.
- ``bare-aiohttp``: the same on the client's aiohttp transport (where ``openai[aiohttp]`` is installed).
- ``run``: a whole ``relabel`` job: read the table, judge with the journal on, write the relabelled table.
- ``curator``: bespokelabs-curator in the environment of the given Python, its cache on.

The arms are interleaved, each run is a process of its own, and what counts is the ratio of the medians. Times are
those of the work itself, without imports and start-up. The processor time per item is told as well: on a busy
machine it is the steadier figure.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import importlib.util
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1]))

RUBRIC = """---
name: benchmark
version: "1"
inputs: [text]
labels:
  - {name: "0", meaning: names no risk driver}
  - {name: "1", meaning: names a risk driver}
---
C1. A text that names a cause of loss, damage or delay names a risk driver.

C2. A plan, a product or a person is no risk driver.

C3. A number alone is no risk driver, whatever it measures.
"""


def items(count: int) -> dict[str, str]:
    """Distinct texts of about 150 characters, with their labels."""
    filler = (
        "a sentence or two about supplies, weather, staff and machines, as a yearly report would have them"
    )
    return {f"Item {n}: {filler}, in the region of district {n % 97}.": str(n % 2) for n in range(count)}


def serve(latency: float) -> None:
    """Be the endpoint until standard input closes."""
    from relabel.rehearse import RehearsalServer, Script

    with RehearsalServer(Script(truth=items(20_000), error=0.1), latency=latency) as server:
        print(server.base_url, flush=True)
        sys.stdin.read()


def bodies(count: int) -> list[dict[str, Any]]:
    """The chat requests of a run, as they go over the wire."""
    from relabel.capabilities import Capabilities, lower, verdict_params
    from relabel.prompts import messages
    from relabel.rubric import Rubric

    rubric = Rubric.parse(RUBRIC)
    wishes = verdict_params(rubric.label_names, seed=0)
    sent = lower(wishes, Capabilities(), form="json_schema", limit=wishes["max_tokens"], seed=0)
    return [
        {"model": "judge", "messages": list(messages(rubric, {"text": text})), **sent}
        for text in items(count)
    ]


Measured = tuple[float, float]
"""Items per second, and processor milliseconds per item."""


def bare(url: str, count: int, workers: int, *, aiohttp: bool) -> Measured:
    """A plain worker loop."""
    import openai

    asked = bodies(count)

    async def main() -> Measured:
        http = openai.DefaultAioHttpClient() if aiohttp else None
        async with openai.AsyncOpenAI(
            base_url=url, api_key="none", max_retries=0, http_client=http
        ) as client:
            queue, labels = iter(asked), []

            async def work() -> None:
                for body in queue:
                    reply = await client.chat.completions.create(**body)
                    labels.append(json.loads(reply.choices[0].message.content or "")["label"])

            start, busy = time.perf_counter(), time.process_time()
            await asyncio.gather(*(work() for _ in range(workers)))
            seconds, busy = time.perf_counter() - start, time.process_time() - busy
            return len(labels) / seconds, 1000 * busy / len(labels)

    return asyncio.run(main())


def run(url: str, count: int, workers: int) -> Measured:
    """A whole job: table in, journal on, table out."""
    from relabel.connect import Settings
    from relabel.run import Job

    with tempfile.TemporaryDirectory() as folder:
        source, rubric = Path(folder, "items.csv"), Path(folder, "rubric.md")
        rubric.write_text(RUBRIC, encoding="utf-8")
        with source.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["text"])
            writer.writerows([text] for text in items(count))
        job = Job(
            source=source, rubric=rubric, judge="judge", base_url=url, settings=Settings(concurrency=workers)
        )
        start, busy = time.perf_counter(), time.process_time()
        job.run()
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
        with job.paths().out.open(newline="", encoding="utf-8") as file:
            statuses = [row["status"] for row in csv.DictReader(file)]
        if statuses != ["ok"] * count:
            raise SystemExit(f"the run is not whole: {len(statuses)} rows, {statuses.count('ok')} ok")
        return count / seconds, 1000 * busy / count


CURATOR = """
import json, sys, time
import litellm.litellm_core_utils.default_encoding  # brings a tokeniser file, which curator would download
from bespokelabs import curator

url, count, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
asked = json.load(sys.stdin)


class Judge(curator.LLM):
    def prompt(self, row):
        return row["messages"]

    def parse(self, row, response):
        return {"label": json.loads(response)["label"]}


judge = Judge(
    model_name="judge",
    backend="openai",
    generation_params={k: v for k, v in asked[0].items() if k not in ("model", "messages")},
    backend_params={
        "base_url": url,
        "api_key": "none",
        "max_concurrent_requests": workers,
        "max_requests_per_minute": 10_000_000,
        "max_tokens_per_minute": 10_000_000_000,
        "require_all_responses": True,
    },
)
rows = [{"messages": body["messages"]} for body in asked]
start, busy = time.perf_counter(), time.process_time()
answer = judge(rows)
seconds, busy = time.perf_counter() - start, time.process_time() - busy
found = getattr(answer, "dataset", answer)
assert len(found) == count, len(found)
print(count / seconds, 1000 * busy / count)
"""


def curator(python: str, url: str, count: int, workers: int) -> Measured:
    """bespokelabs-curator, in another environment, with a fresh cache."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [python, "-c", CURATOR, url, str(count), str(workers)],
            input=json.dumps(bodies(count)),
            capture_output=True,
            text=True,
            check=False,
            env={
                "CURATOR_CACHE_DIR": folder,
                "CURATOR_DISABLE_RICH_DISPLAY": "1",
                "TELEMETRY_ENABLED": "false",
                "OPENAI_API_KEY": "none",
                "HOME": folder,
                "PATH": "/usr/bin:/bin",
            },
        )
    if done.returncode:
        raise SystemExit(f"curator failed: {done.stderr[-2000:]}")
    return measured(done.stdout)


def measured(printed: str) -> Measured:
    """The two numbers on the last line that an arm printed."""
    rate, busy = printed.strip().splitlines()[-1].split()
    return float(rate), float(busy)


def measure(arm: str, url: str, options: argparse.Namespace) -> Measured:
    """One run of one arm in a process of its own."""
    if arm == "curator":
        return curator(options.curator, url, options.items, options.workers)
    command = [sys.executable, str(HERE), "--arm", arm, "--url", url]
    command += ["--items", str(options.items), "--workers", str(options.workers)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{arm} failed: {done.stderr[-2000:]}")
    return measured(done.stdout)


def report(found: dict[str, list[Measured]], options: argparse.Namespace) -> dict[str, Any]:
    """Medians and ratios."""
    medians = {arm: statistics.median(rate for rate, _ in values) for arm, values in found.items()}
    busy = {arm: statistics.median(busy for _, busy in values) for arm, values in found.items()}
    return {
        "python": platform.python_version(),
        "items": options.items,
        "workers": options.workers,
        "latency": options.latency,
        "most_possible": options.workers / options.latency,
        "per_second": {arm: [round(rate, 1) for rate, _ in values] for arm, values in found.items()},
        "median": {arm: round(value, 1) for arm, value in medians.items()},
        "run_to": {arm: round(medians["run"] / value, 3) for arm, value in medians.items() if arm != "run"},
        "processor_ms_per_item": {arm: round(value, 2) for arm, value in busy.items()},
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the arms in turn and print medians and ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=4000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--curator", help="a Python that has bespokelabs-curator")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--arm", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.arm == "serve":
        serve(options.latency)
    elif options.arm == "run":
        print(*run(options.url, options.items, options.workers))
    elif options.arm is not None:
        print(*bare(options.url, options.items, options.workers, aiohttp=options.arm == "bare-aiohttp"))
    else:
        arms = ["bare", "run"]
        if importlib.util.find_spec("aiohttp"):
            arms.append("bare-aiohttp")
        if options.curator:
            arms.append("curator")
        command = [sys.executable, str(HERE), "--arm", "serve", "--latency", str(options.latency)]
        found: dict[str, list[Measured]] = {arm: [] for arm in arms}
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            url = server.stdout.readline().strip() if server.stdout else ""
            for turn in range(options.runs):
                for arm in arms if turn % 2 == 0 else arms[::-1]:
                    found[arm].append(measure(arm, url, options))
                    rate, busy = found[arm][-1]
                    print(f"{arm:14} {rate:7.1f} /s {busy:6.2f} ms", file=sys.stderr, flush=True)
            if server.stdin:
                server.stdin.close()
        result = report(found, options)
        text = json.dumps(result, indent=2)
        print(text)
        if options.json:
            options.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
