"""The instruments of ``train`` need neither torch nor what trains with it, and the package names its surface."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "openai", "sklearn", "matplotlib")
#: Modules of the ladder, which may load torch when they are imported; all others may not.
LADDER = {"grpo_trainer", "sft_callbacks", "sft_trainer"}
MODULES = sorted(path.stem for path in (ROOT / "train").glob("*.py") if path.stem != "__init__")


def fresh(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a Python in which the heavy packages cannot be imported."""
    block = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] in {HEAVY}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
    )
    return subprocess.run(
        [sys.executable, "-c", block + code], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_everything_but_the_trainers_imports_without_torch() -> None:
    assert set(MODULES) > LADDER
    wanted = [f"train.{name}" for name in MODULES if name not in LADDER]
    done = fresh(f"import importlib\nfor name in {wanted}: importlib.import_module(name)\n")
    assert not done.stderr


def test_the_help_of_every_command_needs_nothing_heavy() -> None:
    code = "import sys; sys.argv = ['audit', 'train', '--help']\nfrom cli import main\nmain()\n"
    done = fresh(code)
    assert done.returncode == 0, done.stderr
    for command in (
        "plumbing",
        "operating-point",
        "route",
        "pressure",
        "ledger",
        "compare",
        "ladder",
        "rung",
    ):
        assert f" {command} " in done.stdout


def test_a_ladder_without_its_extra_says_what_brings_it(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "ladder_cpu.toml").read_text("utf-8")
    config = tmp_path / "ladder.toml"  # with a folder of its own: a ladder that has been run asks for nothing
    config.write_text(re.sub(r"^out = .*", 'out = "runs"', text, flags=re.M), "utf-8")
    for name in ("risk_driver.csv", "risk_driver_truth.csv", "risk_driver_rubric.md"):
        (tmp_path / name).symlink_to(ROOT / "examples" / name)
    code = f"import sys; sys.argv = ['audit', 'train', 'ladder', {str(config)!r}]\nfrom cli import main\nmain()\n"
    done = fresh(code)
    assert done.returncode == 2
    assert "label-audit[train]" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_public_names_are_there() -> None:
    train = importlib.import_module("train")
    assert train.__all__ == sorted(train.__all__)
    assert set(train.__all__) == set(dir(train))
    for name in train.__all__:
        assert not isinstance(getattr(train, name), type(train)), f"{name} is a module's name too"
    with pytest.raises(AttributeError, match="no attribute"):
        _ = train.nothing
