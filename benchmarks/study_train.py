"""Run the ladder on a small real model and write what came of it into docs/train-study.md (``make study-train``).

Within 75 minutes on two cores, and resumable: a run that has finished is not run again. Two sets: the risk-driver
file of examples/ with all rungs and a scripted teacher (study_teacher.py) that is asked over HTTP, and the sentences
of the Causal News Corpus (CC0; beside the checkout or in $LABEL_AUDIT_SHARED, else that part is left out) with SFT on
noisy and on clean labels. ``--small`` runs the same with a few rows and writes its page into build/.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import os
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from study_page import write_page  # noqa: E402
from study_teacher import ScriptedTeacher  # noqa: E402

from audit.errors import AuditError  # noqa: E402
from tests.teacher_server import Teacher  # noqa: E402
from train.config import Config, GrpoSettings, RunSettings, load_config  # noqa: E402
from train.ladder import run_ladder  # noqa: E402
from train.task import Task  # noqa: E402

SHARED = Path(os.environ.get("LABEL_AUDIT_SHARED") or ROOT.parent / "shared")
START = time.perf_counter()


def say(line: str, stays: bool = True) -> None:
    """Progress, with the time since the start; lines that do not stay come every 20 seconds."""
    now = time.perf_counter() - START
    if stays or now - say.last >= 20:  # type: ignore[attr-defined]
        say.last = now  # type: ignore[attr-defined]
        print(f"{now:7.1f} s  {line}", flush=True)


say.last = 0.0  # type: ignore[attr-defined]


def small(config: Config, out: Path) -> Config:
    """The same ladder with next to nothing in it, to see that it runs."""
    return dataclasses.replace(
        config,
        task=dataclasses.replace(config.task, train_rows=32, validation_rows=16, test_rows=32),
        sft=dataclasses.replace(config.sft, max_steps=2, batch=4),
        grpo=dataclasses.replace(
            config.grpo, steps=2, prompts=2, group=4, accumulation=1, think_cap=56, save_every=1
        ),
        run=dataclasses.replace(config.run, out=str(out)),
    )


def causal_news(folder: Path, *, seed: int = 0) -> tuple[Path, Path] | None:
    """The sentences with one vote each, and their clean labels; None where the corpus is not at hand.

    The label of a sentence is one vote drawn from its votes (their number and the share that agree are in the first
    version of the corpus). Its clean label is that of the second version, else the first version's majority.
    """
    source = SHARED / "data" / "causal_news"
    if not source.is_dir():
        return None
    rows: dict[str, tuple[str, float]] = {}
    revised: dict[str, str] = {}
    for name in ("V1_train", "V1_dev", "V2_train", "V2_dev"):
        with (source / f"{name}_subtask1.csv").open(encoding="utf-8-sig", newline="") as file:
            for row in csv.DictReader(file):
                if name.startswith("V1"):
                    rows.setdefault(row["text"], (row["label"], float(row["agreement"])))
                else:
                    revised[row["text"]] = row["label"]
    # a stream of its own: the splits are drawn from default_rng(task.seed), and must not depend on the votes
    rng = np.random.default_rng((seed, 1))
    folder.mkdir(parents=True, exist_ok=True)
    data, clean = folder / "votes.csv", folder / "clean.csv"
    draws = rng.random(len(rows))
    with data.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("text", "vote"))
        for (text, (label, agreement)), draw in zip(rows.items(), draws, strict=True):
            writer.writerow((text, label if draw < agreement else str(1 - int(label))))
    with clean.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("text", "label"))
        writer.writerows((text, revised.get(text, label)) for text, (label, _) in rows.items())
    return data, clean


def causal_config(data: Path, clean: Path, like: Config, out: Path) -> Config:
    """Two rungs on the sentences, with the model and the training of the other set."""
    task = Task(
        data=str(data),
        inputs=("text",),
        label="vote",
        labels=("0", "1"),
        clean=str(clean),
        clean_label="label",
        instruction="Does the sentence tell of a cause and its effect? 1 is yes, 0 is no.",
        train_rows=like.task.train_rows,
        validation_rows=like.task.validation_rows,
        test_rows=like.task.test_rows,
    )
    model = dataclasses.replace(like.model, max_prompt=512)
    run = RunSettings(out=str(out), seeds=like.run.seeds, rungs=("sft-noisy", "sft-clean"))
    return Config(task=task, model=model, sft=like.sft, grpo=GrpoSettings(), run=run, folder=str(data.parent))


def main() -> None:
    """Run what is not finished, then write the page from the run folders."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--small", action="store_true", help="a few rows and steps; the page goes into build/"
    )
    parser.add_argument(
        "--page-only", action="store_true", help="write the page from the runs that are there"
    )
    options = parser.parse_args()
    build = ROOT / "build" / ("study-train-small" if options.small else "study-train")
    docs = build / "docs" if options.small else ROOT / "docs"
    ladder = load_config(ROOT / "examples" / "ladder_cpu.toml")
    out = str(Path(ladder.run.out).resolve())
    ladder = dataclasses.replace(ladder, run=dataclasses.replace(ladder.run, out=out))
    if options.small:
        ladder = small(ladder, build / "risk-driver")
    configs = {"risk-driver": ladder}
    files = causal_news(build / "causal-news-data")
    if files is None:
        say(f"the Causal News Corpus is not in {SHARED}: that part is left out")
    else:
        configs["causal-news"] = causal_config(*files, ladder, build / "causal-news")
    if not options.page_only:
        os.environ.pop("OPENAI_API_KEY", None)
        with Teacher(ScriptedTeacher(ROOT / "examples" / "risk_driver_truth.csv")) as teacher:
            os.environ["OPENAI_BASE_URL"] = teacher.base_url
            for name, config in configs.items():
                say(f"{name}: {', '.join(config.run.rungs)}")
                run_ladder(config, tell=say)
    page = write_page(configs, docs, small=options.small)
    say(f"wrote {page}")


if __name__ == "__main__":
    try:
        main()
    except AuditError as error:
        sys.exit(f"study: {error}")
