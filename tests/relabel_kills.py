"""Kills a run again and again and lets it go on: what the durability test and its long version share."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from relabel.journal import Journal
from relabel.rehearse import Fault, RehearsalServer
from tests.conftest import ROOT
from tests.relabel_kit import KEY, RUBRIC_TEXT, read_table, scripts, write_table

FAULTS = (
    Fault(kind="rate_limit", share=0.05, per_request=1, retry_after=0.0),
    Fault(kind="server_error", share=0.05, per_request=1),
    Fault(kind="cut", share=0.03, per_request=1),
    Fault(kind="truncated_json", share=0.03, per_request=1),
)


@dataclass
class Killed:
    """What came of it: the final tables, replies the server gave twice, and how many could be lost to a kill."""

    undisturbed: list[dict[str, str]]
    killed: list[dict[str, str]]
    kills: int
    answered_again: int
    unrecorded: int
    most_unrecorded_at_once: int
    exit_code: int


def start(
    folder: Path, server: RehearsalServer, concurrency: int, *, prepare: Callable[[], None] | None = None
) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "cli",
        "relabel",
        "run",
        folder / "data.csv",
        "--rubric",
        folder / "r.md",
    ]
    command += ["--judge", "judge", "--adjudicator", "adjudicator", "--base-url", server.base_url, "--quiet"]
    command += ["--out", folder / "clean.csv", "--concurrency", str(concurrency), "--label", "label"]
    environment = {**os.environ, "OPENAI_API_KEY": KEY, "PYTHONPATH": str(ROOT)}

    def begin() -> (
        None
    ):  # a shell starts what it sends to the background deaf to Ctrl-C, and so all that comes from it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if prepare is not None:
            prepare()

    return subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=begin
    )


def recorded(folder: Path) -> int:
    """Valid verdicts in the journal of a run that is dead or does not exist yet."""
    path = folder / "clean.journal.sqlite"
    if not path.exists():
        return 0
    with Journal(path, wait=60) as journal:
        return journal.counts().get("ok", 0)


def kill_and_resume(
    folder: Path, *, items: int, kills: int, seed: int, concurrency: int = 8, latency: float = 0.01
) -> Killed:
    """Run once without faults, once with faults and ``kills`` x SIGKILL at random moments, and compare."""
    rng = random.Random(seed)
    for name in ("calm", "killed"):
        (folder / name).mkdir()
        write_table(folder / name / "data.csv", items=items, rows=items + items // 5)
        (folder / name / "r.md").write_text(RUBRIC_TEXT)
    with RehearsalServer(scripts(items)) as server:
        start(folder / "calm", server, concurrency).communicate()
        needed = server.counts().answered
    again = unrecorded = most = done = 0
    with RehearsalServer(scripts(items), faults=FAULTS, latency=latency, seed=seed) as server:
        for _ in range(3 * kills):
            process = start(folder / "killed", server, concurrency)
            goal = server.counts().requests + rng.randint(0, 2 * needed // (kills + 1))
            latest = time.monotonic() + rng.uniform(0.5, 4)  # when all is judged, it strikes at the writing
            while process.poll() is None and server.counts().requests < goal and time.monotonic() < latest:
                time.sleep(0.002)
            time.sleep(rng.random() * 0.05)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            if process.returncode == -signal.SIGKILL:
                done += 1
            lost = server.counts().answered - server.counts().answered_again - recorded(folder / "killed")
            most = max(most, lost)
            unrecorded += max(0, lost)
            if done == kills:
                break
        process = start(folder / "killed", server, concurrency)
        _, told = process.communicate()
        again = server.counts().answered_again
    if process.returncode:
        raise RuntimeError(f"the last run ended with {process.returncode}: {told.decode()}")
    return Killed(
        undisturbed=read_table(folder / "calm" / "clean.csv"),
        killed=read_table(folder / "killed" / "clean.csv"),
        kills=done,
        answered_again=again,
        unrecorded=unrecorded,
        most_unrecorded_at_once=most,
        exit_code=process.returncode,
    )
