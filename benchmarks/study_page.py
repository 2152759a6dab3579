"""Writes docs/train-study.md, and its pictures, from the run folders of the training study and from nothing else."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from audit.duplicates import audit_duplicates
from audit.errors import AuditError
from audit.render import render
from audit.writing import write_text
from train.compare import compare_runs
from train.compare_render import markdown
from train.compare_results import Difference, RunComparison
from train.config import Config
from train.pictures import Dot, Line, chart, dots, svg_file
from train.plumbing import plumbing_report
from train.pressure_report import report_pressure
from train.run_folder import RunFolder
from train.rungs import jobs_of
from train.task import item_key
from train.traces import read_traces

ROOT = Path(__file__).parents[1]
TITLES = {"risk-driver": "The risk-driver example", "causal-news": "The Causal News Corpus"}
ABOUT = {
    "risk-driver": "The synthetic file of examples/: the labels as they came are the truth with errors added, the "
    "clean key is the truth. The teacher is a script (`benchmarks/study_teacher.py`) that is asked over HTTP and is "
    "wrong on some draws, on more of the hard items.",
    "causal-news": "Sentences of news with one to three votes each (Tan et al. 2022; CC0). The label as it came is one "
    "vote, drawn from the sentence's votes; the clean key is the label of the corpus's second version, or the first "
    "version's majority for the few sentences that the second lacks. Only the two rungs of plain fine-tuning ran.",
}
LIMITS = """\
## What cannot be concluded

- A model of 135 million parameters, trained for a hundred steps, is not a judge anybody would use. What a method adds
  to it says little of what it adds to a larger one; in particular, whether such a model can use a thought at all is
  in doubt before any training.
- There is one seed unless a table says otherwise. An interval covers other items, not other seeds.
- The teacher of the risk-driver set is a script that knows the clause of each item. Its traces have the form of a
  teacher's and a selection whose cause is known; how good a real teacher's thoughts are is not measured here.
- GRPO ran for a few steps of a few groups. That its score moves little at this size is no finding about GRPO.
- Differences between runs are read from a few hundred test items: what is smaller than the intervals is not seen,
  which is not to say that it is not there.
"""


def write_page(configs: Mapping[str, Config], folder: Path, *, small: bool) -> Path:
    """Write the page and its pictures into ``folder``; returns the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [_head(configs, small)]
    compared: dict[str, RunComparison] = {}
    for name, config in configs.items():
        out = Path(config.run.out)
        audit = _band(name, config, out)
        compared[name] = compare_runs([out], baseline=_first(config), audit=audit)
        parts.append(_set(name, config, compared[name], folder))
    parts.insert(1, _gaps(compared))
    parts.append(_findings(compared))
    parts.append(LIMITS)
    page = folder / "train-study.md"
    text = "\n\n".join(part.strip() for part in parts).replace(f"{ROOT}/", "")
    write_text(page, re.sub(r"\n{3,}", "\n\n", text) + "\n")
    return page


def _head(configs: Mapping[str, Config], small: bool) -> str:
    infos = [_run(config, job.name).info for config in configs.values() for job in jobs_of(config)]
    config = next(iter(configs.values()))
    seconds = sum(float(info.get("seconds") or 0) for info in infos)
    versions = infos[0]["versions"]
    used = ", ".join(
        f"{name} {versions[name]}" for name in ("python", "torch", "transformers", "trl", "peft")
    )
    trial = "**A trial run of a few rows: its figures mean nothing.**\n\n" if small else ""
    return (
        "# A ladder on a small real model\n\n"
        "Written by `make study-train` (`benchmarks/study_train.py`) from the run folders; do not edit by hand.\n\n"
        f"{trial}"
        f"SmolLM2-135M-Instruct on a CPU, LoRA of rank {config.model.lora_r}; settings in "
        f"[examples/ladder_cpu.toml](../examples/ladder_cpu.toml). The runs took {seconds / 60:.0f} minutes in all "
        f"({used}). All runs of a set are scored on the same test items against one clean key; decisions are the "
        "label of greater probability, or the label written after a thought.\n"
    )


def _gaps(compared: Mapping[str, RunComparison]) -> str:
    lines = ["## Noisy against clean labels\n"]
    for name, found in compared.items():
        gap = _pair(found, "sft-clean", "sft-noisy")
        lines.append(f"- {TITLES[name]}: {gap.verdict if gap else 'not run.'}")
    return "\n".join(lines) + "\n"


def _pair(found: RunComparison, arm: str, against: str) -> Difference | None:
    pairs = (one for one in found.differences if one.arm.startswith(arm) and one.against.startswith(against))
    return next(pairs, None)


def _set(name: str, config: Config, found: RunComparison, folder: Path) -> str:
    jobs = [job for job in jobs_of(config) if job.rung != "traces"]
    text = [f"## {TITLES[name]}\n", ABOUT[name] + "\n", _pictures(name, config, found, folder)]
    text.append(
        markdown(found).replace("# Runs compared", "### The table", 1).replace("\n## ", "\n### ").lstrip()
    )
    if "traces" in config.run.rungs:
        text.append(_traces(config))
    for job in jobs:
        if job.rung.startswith("grpo"):
            report = plumbing_report(
                _run(config, job.name).path,
                data=config.task.data,
                item=config.task.inputs,
                label=config.task.label,
            )
            text.append(f"### The plumbing of {job.name}\n\n```text\n{report.summary()}\n```\n")
    pressure = report_pressure(config.run.out)
    text.append(f"### Looks at the splits\n\n```text\n{pressure.summary()}\n```\n")
    return "\n\n".join(part.strip() for part in text)


def _pictures(name: str, config: Config, found: RunComparison, folder: Path) -> str:
    losses, rewards = [], []
    for job in jobs_of(config):
        curve = _run(config, job.name).curve()
        for column, lines in (("loss", losses), ("reward", rewards)):
            wanted = job.rung.startswith("grpo") == (column == "reward")
            if wanted and column in curve.columns:
                values = _smooth(curve[column].to_numpy(np.float64), 1 if column == "reward" else 9)
                lines.append(Line(job.name, curve["step"].tolist(), values.tolist()))
    rows = []
    for run in found.runs:
        score = run.metrics[found.metric]
        rows.append(Dot(run.name, score.estimate, score.low, score.high))
    drawn = {
        "scores": dots("Test scores", rows, x_label=found.metric.replace("_", " ")),
        "loss": chart("Loss, mean of nine steps", losses, x_label="step", y_label="loss") if losses else "",
        "reward": chart("Mean reward of a step", rewards, x_label="step", y_label="reward")
        if rewards
        else "",
    }
    shown = []
    for what, svg in drawn.items():
        if svg:
            file = f"train-study-{name}-{what}.svg"
            write_text(folder / file, svg_file(svg))
            shown.append(f"![{TITLES[name]}: {what}]({file})")
    return "\n\n".join(shown) + "\n"


def _traces(config: Config) -> str:
    path = Path(config.run.out) / "traces"
    text = (path / "report.txt").read_text("utf-8").rstrip()
    return f"### The traces\n\n```text\n{text}\n```\n\n{_by_difficulty(config, path)}"


def _by_difficulty(config: Config, path: Path) -> str:
    """Survival by the difficulty that the example records, which no client knew of."""
    with Path(str(config.task.clean)).open(encoding="utf-8", newline="") as file:
        level = {
            item_key([row[n] for n in config.task.inputs]): row["difficulty"] for row in csv.DictReader(file)
        }
    entries = [json.loads(line) for line in (path / "replies.jsonl").read_text("utf-8").splitlines()]
    asked = {entry["item"] for entry in entries}
    traced = set(read_traces(path))
    lines = [
        "By the difficulty that the example records:\n",
        "| items | asked about | with a trace |",
        "| --- | ---: | ---: |",
    ]
    for name in sorted(set(level.values())):
        mine = {item for item in asked if level[item] == name}
        if mine:
            kept = len(mine & traced)
            lines.append(f"| {name} | {len(mine):,} | {kept:,} ({kept / len(mine):.1%}) |")
    return "\n".join(lines) + "\n"


def _findings(compared: Mapping[str, RunComparison]) -> str:
    lines = ["## What can be concluded\n"]
    for name, found in compared.items():
        seen = [one for one in found.differences if one.p_holm is not None and one.p_holm < 1 - found.level]
        lines.append(
            f"{TITLES[name]}: {len(seen)} of {len(found.differences)} differences in {found.metric.replace('_', ' ')} "
            f"hold at the {found.level:.0%} level once all of them are counted (Holm){':' if seen else '.'}\n"
        )
        lines += [f"- {one.verdict}" for one in seen]
        lines.append("")
    return "\n".join(lines)


def _band(name: str, config: Config, out: Path) -> Path | None:
    """The audit of the labels as they came, for the ceiling's band; None where no item stands there twice."""
    try:
        result = audit_duplicates(config.task.data, item=config.task.inputs, label=config.task.label)
    except AuditError:
        return None
    if result.flip_rate.estimate is None:
        return None
    path = out / f"{name}.audit.json"
    write_text(path, render(result, "json"))
    return path


def _first(config: Config) -> str:
    return next(job.name for job in jobs_of(config) if job.rung == "sft-noisy")


def _run(config: Config, name: str) -> RunFolder:
    return RunFolder(Path(config.run.out) / name)


def _smooth(values: Sequence[float] | np.ndarray, width: int) -> np.ndarray:
    """Running means over so many steps, fewer at the ends."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    at = np.arange(len(values))
    low, high = np.maximum(at - width // 2, 0), np.minimum(at + width // 2 + 1, len(values))
    return (sums[high] - sums[low]) / (high - low)
