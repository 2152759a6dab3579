"""Every example that a command's help gives runs as it stands, on files made of examples/."""

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer

import cli
import relabel.cli
import train.cli
from relabel.rehearse import RehearsalServer, Script
from relabel.rehearse_serve import read_truth
from tests.command import Ran, run
from tests.made_runs import answers, make_run
from tests.made_scores import scores_pair
from tests.test_relabel_batch import play

EXAMPLES = Path(__file__).parents[1] / "examples"
INPUTS = ["passage", "entity", "driver"]
ITEMS = 60

#: Examples that another test runs, since they do not end by themselves or train a model.
ELSEWHERE = {
    "audit relabel rehearse": "tests/test_cli_relabel.py",
    "audit train rung": "tests/test_cli_train_ladder.py",
}


def examples(command: Any, name: str) -> Iterator[tuple[str, str | None]]:
    """Each command below ``command`` with each example in its help, or with None."""
    parts = getattr(command, "commands", {})
    for part, below in parts.items():
        yield from examples(below, f"{name} {part}")
    if not parts and name not in ("audit relabel", "audit train"):
        found = re.findall(r"Example: (.+?)(?:\n\s*\n|$)", command.help or "", re.DOTALL)
        yield from ((name, " ".join(text.split())) for text in found or (None,))


APPS = {"audit": cli.app, "audit relabel": relabel.cli.app, "audit train": train.cli.app}
GIVEN = [pair for name, app in APPS.items() for pair in examples(typer.main.get_command(app), name)]


def told(name: str) -> list[str]:
    return [text for command, text in GIVEN if command == name and text is not None]


def test_every_command_has_an_example_of_itself() -> None:
    assert len(GIVEN) > 25
    assert [name for name, text in GIVEN if text is None] == []
    assert [text for name, text in GIVEN if text and not text.startswith(f"{name} ")] == []
    assert ELSEWHERE.keys() <= {name for name, _ in GIVEN}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the examples name, from the repeated items of the risk-driver file and some others."""
    folder = tmp_path_factory.mktemp("examples")
    table = pd.read_csv(EXAMPLES / "risk_driver.csv", dtype=str, keep_default_na=False)
    table["text"] = table[INPUTS].agg(" / ".join, axis=1)
    many = table[table["text"].duplicated(keep=False)].head(160)
    table = pd.concat([many, table.drop(many.index).head(240)])
    truth = pd.read_csv(EXAMPLES / "risk_driver_truth.csv", dtype=str, keep_default_na=False)
    clean = table.merge(truth[[*INPUTS, "truth"]], on=INPUTS, how="left")["truth"].to_numpy()
    table.to_csv(folder / "data.csv", index=False)
    table.to_csv(folder / "old.csv", index=False)
    table.assign(label_clean=clean).to_csv(folder / "new.csv", index=False)
    for split in ("train", "test"):
        table[table["split"] == split].to_csv(folder / f"{split}.csv", index=False)
    shutil.copy(EXAMPLES / "risk_driver_rubric.md", folder / "rubric.md")
    named = ("--item", "text", "--label", "label")
    more = ("--conflicts", folder / "conflicts.csv", "--format", "json", "--out", folder / "audit.json")
    assert run("dupes", folder / "data.csv", *named, *more).code == 0
    shutil.copy(folder / "audit.json", folder / "dupes.json")
    return folder


@pytest.fixture
def here(data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(data)
    return data


def ran(text: str) -> Ran:
    words = shlex.split(text)
    found = run(*words[1:])
    assert found.code == 0, f"{text}: {found.err}"
    for place, word in enumerate(words):  # whatever the example says is written is there
        made = (
            ("--html", "--rows", "--out-rows", "--to")
            if words[1] == "relabel"
            else ("--html", "--rows", "--out")
        )
        if word.startswith(made):
            assert Path(words[place + 1]).stat().st_size, text
    return found


@pytest.mark.parametrize("name", [name for name, _ in GIVEN if name.count(" ") == 1])
def test_examples_of_the_audit(name: str, here: Path) -> None:
    if name == "audit issues":
        pytest.importorskip("cleanlab", reason="the extra [model] is not installed")
    for text in told(name):
        ran(text)


@pytest.mark.usefixtures("endpoint_key")
def test_examples_of_relabel(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order in which one would give them; the endpoint of the examples is a scripted one."""
    left = [name for name, _ in GIVEN if name.startswith("audit relabel ") and name not in ELSEWHERE]
    table = pd.read_csv("data.csv", dtype=str, keep_default_na=False)
    table.drop_duplicates("text").head(ITEMS).to_csv("data.csv", index=False)
    truth = read_truth(EXAMPLES / "risk_driver_truth.csv", item=INPUTS, label="truth")
    with RehearsalServer(Script(truth=truth, error=0.1, seed=1)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        for name in (
            "check", "probe", "batch write", "batch collect", "run", "status", "explain", "agree", "review export",
            "review import",
        ):  # fmt: skip
            name = f"audit relabel {name}"
            left.remove(name)
            if name.endswith("collect"):
                play(server, Path("batch1"))
            if name.endswith("import"):
                tasks = json.loads(Path("review.json").read_text("utf-8"))
                given = [
                    {**task["data"], "id": n, "label": "1", "annotator": 1} for n, task in enumerate(tasks, 1)
                ]
                Path("answers.json").write_text(json.dumps(given), "utf-8")
            for text in told(name):
                ran(text.replace("http://localhost:8000/v1", server.base_url))
    assert left == []
    clean = pd.read_csv("clean.csv", dtype=str)
    assert clean["label_clean"].notna().all()
    assert len(clean) == ITEMS


def test_examples_of_train(here: Path) -> None:
    left = [name for name, _ in GIVEN if name.startswith("audit train ") and name not in ELSEWHERE]
    ours, theirs = scores_pair("retrained", 300, seed=1)
    for name, frame in (("sft", ours), ("grpo", theirs), ("validation", ours)):
        frame.to_parquet(f"{name}.parquet")
        frame.to_csv(f"{name}.csv", index=False)
    labels = ["1" if n % 3 == 0 else "0" for n in range(120)]
    for name in ("sft-noisy", "sft-clean"):
        wrong = [n for n in range(120) if n % (7 if name == "sft-noisy" else 11) == 0]
        make_run(Path("runs") / name, labels, answers(labels, wrong), rung=name)
    conflicts = pd.read_csv("conflicts.csv", dtype=str, keep_default_na=False)
    items = conflicts["text"].drop_duplicates().head(30).tolist()
    rollouts = [
        (step, group, item, float((step + sample) % 2), "1", 20 + sample)
        for step in range(8)
        for group, item in enumerate(items)
        for sample in range(4)
    ]
    Path("runs/grpo/rollouts").mkdir(parents=True)
    columns = ["step", "group", "item", "reward", "label", "length"]
    pd.DataFrame(rollouts, columns=columns).to_parquet("runs/grpo/rollouts/step-000001.parquet")
    scored = pd.read_parquet("sft.parquet")
    scored["item"] = [*conflicts["text"].drop_duplicates(), *scored["item"]][: len(scored)]
    for name in ("sft", "grpo"):
        pd.read_parquet(f"{name}.parquet").assign(item=scored["item"]).to_parquet(f"{name}.parquet")
    shutil.copy(EXAMPLES / "ladder_cpu.toml", "ladder.toml")
    for name in ("risk_driver.csv", "risk_driver_truth.csv", "risk_driver_rubric.md"):
        shutil.copy(EXAMPLES / name, name)
    for name in (
        "ledger record", "ledger open", "pressure", "compare", "plumbing", "operating-point", "route", "ladder",
    ):  # fmt: skip
        name = f"audit train {name}"
        left.remove(name)
        for text in told(name):
            ran(text)
    assert left == []
