"""The README's commands and its Python, run from top to bottom as a newcomer would, in one folder."""

import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from relabel.rehearse import RehearsalServer, Script
from tests.command import run
from tests.relabel_kit import RUBRIC_TEXT

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")

RUBRIC = (
    RUBRIC_TEXT.replace("name: rain", 'name: "yes"')
    .replace("name: sun", 'name: "no"')
    .replace(": sun", ': "no"')
)


def commands() -> list[str]:
    """The lines of the console blocks that call ``audit``, without their comments, and the command in the text."""
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    found = [line[2:].partition("  #")[0].strip() for line in lines if line.startswith("$ audit ")]
    return [*found, *re.findall(r"`(audit resolve data[^`]+)`", README)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng((0, 1))
    rows = []
    for n in range(260):
        truth = rng.random() < (0.7 if n % 2 else 0.3)
        for who in rng.permutation(4)[: 3 if n < 120 else 1]:
            text = f"the sky over town {n} was watched all day"
            label = "yes" if truth ^ (rng.random() < 0.12) else "no"
            split = ("train", "test")[n % 5 == 0]
            rows.append((text, label, split, f"w{who}", ("north", "south")[n % 2], f"town {n}"))
    frame = pd.DataFrame(rows, columns=["text", "label", "split", "worker", "hospital", "place"])
    frame.drop(columns="place").to_csv("data.csv", index=False)
    news = frame.rename(columns={"text": "passage", "place": "entity"}).assign(id=range(len(frame)))
    news.drop(columns="hospital").to_csv("news.csv", index=False)
    for split in ("train", "test"):
        frame[frame["split"] == split].to_csv(f"{split}.csv", index=False)
    once = frame.drop_duplicates("text")
    once[["text"]].assign(truth=once["label"]).to_csv("truth.csv", index=False)
    votes = rng.choice(["yes", "no"], (len(once), 3))
    counts = [(votes == name).sum(axis=1) for name in ("yes", "no")]
    wide = dict(zip(("vote1", "vote2", "vote3", "yes", "no"), (*votes.T, *counts), strict=True))
    once[["text"]].assign(**wide).to_csv("votes.csv", index=False)
    kinds = frame[["text", "worker"]].rename(columns={"text": "review", "worker": "rater"})
    kinds["score"] = [round(float(n % 60 + rng.normal(0, 5)), 1) for n in range(len(kinds))]
    kinds["stars"] = [1 + n % 5 for n in range(len(kinds))]
    kinds[["review", "score", "rater"]].to_csv("scores.csv", index=False)
    kinds[["review", "stars", "rater"]].to_csv("stars.csv", index=False)
    tags = rng.choice(["login", "crash", "login|crash", "crash|export"], len(frame))
    frame[["text"]].rename(columns={"text": "ticket"}).assign(tags=tags).to_csv("tickets.csv", index=False)
    Path("rubric.md").write_text(RUBRIC, "utf-8")
    shutil.copy(ROOT / "examples" / "ladder_cpu.toml", "ladder.toml")
    for name in ("risk_driver.csv", "risk_driver_truth.csv", "risk_driver_rubric.md"):
        shutil.copy(ROOT / "examples" / name, name)
    shutil.copytree(ROOT / "examples", "examples")
    Path("rollouts").mkdir()
    logged = [
        (step, group, f"item {group}", (step + n) % 2, n)
        for step in range(6)
        for group in range(9)
        for n in (0, 1)
    ]
    pd.DataFrame(logged, columns=["step", "group", "item", "reward", "sample"]).to_parquet(
        "rollouts/1.parquet"
    )
    return tmp_path


@pytest.mark.usefixtures("endpoint_key")
def test_every_command_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cleanlab", reason="the extra [model] is not installed")
    labelled = pd.read_csv("data.csv", dtype=str)
    truth = dict(zip(labelled["text"], labelled["label"], strict=True))
    given = commands()
    assert len(given) >= 20
    with RehearsalServer(Script(truth=truth, error=0.1)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        for command in given:
            if "--merge" in command:  # the plan, labelled
                plan = pd.read_csv("plan.csv", dtype=str)
                plan.assign(label=plan["text"].map(truth)).to_csv("plan-answered.csv", index=False)
            if command.startswith("audit resolve"):
                assert run("dupes", "data.csv", "--conflicts", "conflicts.csv").code == 0
            more = " --dry-run" if "ladder" in command else ""
            ran = run((command + more).removeprefix("audit "))
            assert ran.code == 0, f"{command}: {ran.err}"
    for name in ("report.html", "data2.csv", "audit.json", "resolved.csv", "suspicious.csv", "clean.csv"):
        assert Path(name).stat().st_size


def test_the_python_runs(folder: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    told = compile(code.replace("print(", "str("), "README.md", "exec")
    exec(told, {"frame_or_path": pd.read_csv("data.csv", dtype=str)})  # noqa: S102
