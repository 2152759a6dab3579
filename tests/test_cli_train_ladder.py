"""``audit train ladder`` and ``audit train rung`` as the shell sees them: checks, dry runs, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import run
from tests.conftest import ROOT
from tests.ladder_kit import CONFIG
from tests.tiny_model import task_files

GPU = ROOT / "examples" / "ladder_gpu.toml"


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    task_files(tmp_path)
    path = tmp_path / "ladder.toml"
    path.write_text(
        CONFIG.format(
            model=tmp_path / "model", url="http://127.0.0.1:9/v1", sft_steps=4, grpo_steps=2, seeds="[0, 1]"
        )
    )
    return path


def test_the_recipes_pass_a_dry_run() -> None:
    for name in ("ladder_gpu.toml", "ladder_cpu.toml"):
        done = run("train", "ladder", ROOT / "examples" / name, "--dry-run")
        assert done.code == 0, done.err
        assert "grpo-think" in done.out
        assert done.err == ""
    assert not (ROOT / "build" / "ladder-gpu").exists()


def test_a_dry_run_as_json(settings: Path) -> None:
    done = run("train", "ladder", settings, "--dry-run", "--format", "json")
    rungs = {one["rung"]: one for one in done.json["rungs"]}
    assert rungs["sft-noisy"]["runs"] == 2
    assert rungs["traces"]["runs"] == 1
    assert done.json["prompts"] is None  # there is no model in that folder
    assert any("tokenizer" in note for note in done.json["notes"])
    assert not (settings.parent / "runs").exists()


def test_a_rung_brings_what_it_stands_on(settings: Path) -> None:
    done = run("train", "rung", "grpo-think", settings, "--dry-run", "--format", "json")
    assert [one["rung"] for one in done.json["rungs"]] == ["traces", "cot-sft", "grpo-think"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("rung", "sft", "CONFIG"), "there is no rung 'sft'"),
        (("ladder", "absent.toml"), "absent.toml"),
        (("rung", "sft-noisy", "CONFIG"), "no such folder"),
    ],
)
def test_what_cannot_be_is_one_line(settings: Path, words: tuple[str, ...], message: str) -> None:
    pytest.importorskip("trl", reason="the extra [train] is not installed")
    done = run("train", *(str(settings) if word == "CONFIG" else word for word in words))
    assert done.code == 2
    assert message in done.err.splitlines()[-1]
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("max_steps", "max_step", "did you mean 'max_steps'"),
        ("group = 4", "group = 1", "grpo.group must be 2 or more"),
        ('"truth.csv"', '"data.csv"', "truth"),
        ("samples = 2", "samples = 0", "must be above 0"),
        ('out = "runs"', 'rungs = ["sft"]', "is no rung"),
        ("cap = 4", 'instruction_file = "x"', "unknown key"),
    ],
)
def test_settings_are_checked_before_anything_runs(settings: Path, old: str, new: str, message: str) -> None:
    settings.write_text(settings.read_text().replace(old, new, 1))
    for words in (("ladder", settings), ("ladder", settings, "--dry-run")):
        done = run("train", *words)
        assert done.code == 2
        assert message in done.err
        assert done.err.count("\n") == 1


def test_an_instruction_file_that_is_not_there(settings: Path) -> None:
    settings.write_text(
        settings.read_text().replace('model = "t"', 'model = "t"\ninstruction_file = "rules.md"')
    )
    done = run("train", "ladder", settings, "--dry-run")
    assert done.code == 2
    assert "teacher.instruction_file" in done.err
    (settings.parent / "rules.md").write_text("Red things are 1.")
    assert run("train", "ladder", settings, "--dry-run").code == 0


def test_the_key_is_never_shown(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobody-may-see-this-one-0001")
    done = run("train", "ladder", settings, "--dry-run", "--format", "json")
    assert "nobody-may-see" not in done.out + done.err
    assert json.loads(done.out)


@pytest.mark.parametrize("command", ["ladder", "rung"])
def test_help_names_every_option(command: str) -> None:
    done = run("train", command, "--help")
    assert done.code == 0
    for option in ("--dry-run", "--reopen", "--quiet", "--format"):
        assert option in done.out


def test_a_dry_run_of_one_rung_tells_that_rung_alone(settings: Path) -> None:
    settings.write_text(settings.read_text().replace("[grpo]", "[grpo]\nvllm = true", 1))
    shape = {"hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 500}
    (settings.parent / "model").mkdir(exist_ok=True)
    (settings.parent / "model" / "config.json").write_text(json.dumps(shape))
    told = {}
    for rung in ("sft-noisy", "grpo", "traces", "cot-sft"):
        ran = run("train", "rung", rung, settings, "--dry-run")
        assert ran.code == 0, ran.err
        told[rung] = ran.out
    assert "a step of SFT" in told["sft-noisy"]
    assert not [word for word in ("GRPO", "generation", "vllm") if word in told["sft-noisy"]]
    assert all(
        word in told["grpo"] for word in ("a step of SFT", "of GRPO", "generation", "vllm")
    )  # and its parent
    assert "Memory" not in told["traces"]
    assert "memory" not in told["traces"]
    assert "generation" in told["cot-sft"]  # its thoughts are written at the evaluation
    assert "GRPO" not in told["cot-sft"]
