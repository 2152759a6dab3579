"""GRPO by two processes: they finish, stay in step, and end where one process ends."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from tests import grpo_pieces as pieces  # noqa: E402
from tests import grpo_two  # noqa: E402
from tests.test_train_grpo import TASK  # noqa: E402
from train.run_folder import RunFolder  # noqa: E402

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pieces.answering(tmp_path_factory.mktemp("tiny") / "model", TASK)


@pytest.fixture(scope="module")
def two(model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """What two processes under accelerate made of everything in grpo_two.py."""
    out = tmp_path_factory.mktemp("two")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # What accelerate starts on several GPUs; on processors alone, accelerate itself wants MPI.
    launch = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc_per_node",
        "2",
        "--master_port",
        str(port),
    ]
    done = subprocess.run(
        [*launch, str(ROOT / "tests/grpo_two.py"), str(out), str(model)], capture_output=True, text=True, check=False,
        timeout=240, env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return out, [torch.load(out / f"rank-{rank}.pt", weights_only=True) for rank in (0, 1)]


def far(one: dict[str, Any], other: dict[str, Any]) -> float:
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).abs().max()) for name in one)


@pytest.mark.parametrize("case", range(len(grpo_two.TOLD)))
def test_two_processes_end_where_one_ends(two: Any, model: Path, tmp_path: Path, case: int) -> None:
    _, ranks = two
    config = grpo_two.TOLD[case][1]
    first, second = (rank[f"Lean {case}"] for rank in ranks)
    stock = ranks[0][f"Stock {case}"]
    assert far(first["weights"], second["weights"]) == 0.0
    assert far(first["weights"], stock["weights"]) < 1e-5
    # passes of one size on both, and never of more rows than TRL's
    assert [rows for rows, _ in first["shapes"]] == [rows for rows, _ in second["shapes"]]
    assert sum(rows for rows, _ in first["shapes"]) < sum(rows for rows, _ in stock["shapes"])
    own = {"step_time", "entropy", "epoch", "num_tokens"}
    assert {k: v for k, v in first["logs"].items() if k not in own} == pytest.approx(
        {k: v for k, v in stock["logs"].items() if k not in own}, abs=1e-5, nan_ok=True
    )
    alone = grpo_two.told(pieces.Lean, tmp_path, model, case, processes=1)
    start = pieces.fresh(model)[0].state_dict()
    if case == len(grpo_two.TOLD) - 1:
        assert far(first["weights"], start) == 0.0
    else:
        assert far(first["weights"], start) > 1e-3
    if config["loss_type"] != "bnpo":  # TRL's divides by the tokens of each process
        assert far(first["weights"], alone["weights"]) < 1e-5


def test_two_processes_log_every_completion_once(two: Any) -> None:
    out, _ = two
    run = RunFolder(out / "whole")
    frame = pd.read_parquet(run.rollouts)
    assert sorted(file.name for file in run.rollouts.iterdir()) == [
        f"step-00000{k}.parquet" for k in range(1, 6)
    ]
    assert len(frame) == 5 * 12
    by_group = frame.groupby(["step", "group"])
    assert by_group["sample"].apply(list).map(tuple).unique().tolist() == [(0, 1, 2)]
    assert by_group["item"].nunique().eq(1).all()
    mean = by_group["reward"].transform("mean")
    assert frame["advantage"].to_numpy() == pytest.approx((frame["reward"] - mean).to_numpy(), abs=1e-6)
    assert 0 < frame["reward"].mean() < 1
    assert by_group["text"].nunique().max() > 1  # the processes do not draw the same
    assert run.curve()["step"].tolist() == [1, 2, 3, 4, 5]
    assert run.curve()["reward"].tolist() == pytest.approx(frame.groupby("step")["reward"].mean().tolist())


def test_two_processes_go_on_after_a_stop(two: Any) -> None:
    from safetensors.torch import load_file

    out, _ = two
    whole, cut = (load_file(out / name / "adapter/adapter_model.safetensors") for name in ("whole", "cut"))
    assert far(whole, cut) == 0.0
    frames = [pd.read_parquet(out / name / "rollouts").drop(columns="run") for name in ("whole", "cut")]
    pd.testing.assert_frame_equal(*frames)
