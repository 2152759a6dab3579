"""A ladder that runs in seconds: the small-vocabulary model, a task it can learn, and a teacher on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT
from tests.tiny_model import save, task_files

CONFIG = """
[task]
data = "data.csv"
inputs = ["text"]
label = "label"
labels = ["0", "1"]
clean = "truth.csv"
clean_label = "truth"
split = "split"
system = ""
thinking = "think"

[model]
name = "{model}"
dtype = "float32"
device = "cpu"

[sft]
max_steps = {sft_steps}
batch = 8
learning_rate = 1e-2
save_every = 5

[grpo]
steps = {grpo_steps}
prompts = 6
group = 4
cap = 4
think_cap = 40
learning_rate = 2e-4
save_every = 1

[teacher]
model = "t"
base_url = "{url}"
samples = 2
concurrency = 4
retries = 0

[run]
out = "runs"
seeds = {seeds}
"""


def write_ladder(
    folder: Path, url: str, *, items: int = 120, sft_steps: int = 40, grpo_steps: int = 3, seeds: str = "[0]"
) -> Path:
    """Data, model and settings in ``folder``; returns the settings' path."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "model").exists():
        save(folder / "model")
    task_files(folder, items=items)
    path = folder / "ladder.toml"
    path.write_text(
        CONFIG.format(
            model=folder / "model", url=url, sft_steps=sft_steps, grpo_steps=grpo_steps, seeds=seeds
        )
    )
    return path


def start(*words: str | Path) -> subprocess.Popen[str]:
    """``audit train WORDS`` in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    environment.pop("RANK", None)
    return subprocess.Popen(
        [sys.executable, "-m", "cli", "train", *map(str, words)],
        env=environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
