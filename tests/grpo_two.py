"""One process of a training by several, which test_train_grpo_processes.py launches: ``... JSON``."""

from __future__ import annotations

import gc
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

from tests import grpo_pieces as pieces
from tests.test_train_grpo import SETTINGS, TASK, examples, loaded_with_lora
from train.grpo import train_grpo
from train.run_folder import RunFolder

#: Trainings with given completions: which rows, and what differs from the usual.
TOLD: list[tuple[slice, dict[str, Any]]] = [
    (
        slice(0, 16),
        {"loss_type": "dapo"},
    ),  # of two processes one has 4 rows to learn from, the other all 4 of its 8
    (
        slice(4, 16),
        {"loss_type": "grpo", "scale_rewards": "batch"},
    ),  # the one group with a lesson is split in two
    (slice(0, 16), {"loss_type": "dr_grpo", "accumulation": 2, "truncated": "exclude"}),
    (slice(0, 20), {"loss_type": "bnpo", "truncated": "mask"}),
    (slice(4, 8), {"loss_type": "dapo"}),  # nothing to learn
]


def told(kind: type, out: Path, model: Path, case: int, *, processes: int) -> dict[str, Any]:
    """Five steps of one of TOLD: the parameters at the end, the shapes of the passes, what was logged last."""
    rows, config = TOLD[case]
    config = dict(config)
    given = pieces.rewards(config.get("truncated", "zero"))[rows]
    found = pieces.train(
        kind, *pieces.fresh(model), out, told=pieces.completions()[rows], given=given, processes=processes, steps=5,
        lr=1e-3, **config,
    )  # fmt: skip
    trained = found.trainer.accelerator.unwrap_model(found.trainer.model)
    return {"weights": trained.state_dict(), "shapes": found.trainer.shapes, "logs": found.logs[-2]}


class CutShortError(Exception):
    """The run is cut short here."""


def run(out: Path, model: Path, *, stop: int = 0) -> None:
    """A whole run with completions as they are sampled; ``stop`` cuts it short in that step."""
    folder = RunFolder(out)
    settings = SETTINGS.__class__(**{**SETTINGS.__dict__, "prompts": 4, "group": 3, "steps": 5})
    plain = RunFolder.log

    def log(self: RunFolder, *, step: int, **values: Any) -> None:
        plain(self, step=step, **values)
        if step == stop:
            raise CutShortError

    RunFolder.log = log  # type: ignore[method-assign]
    try:
        with folder.start(name=out.name, rung="grpo", seed=3, config={}):
            train_grpo(
                loaded_with_lora(model), examples(), TASK, settings=settings, run=folder, seed=3, think=False
            )
    except CutShortError:
        pass
    finally:
        RunFolder.log = plain  # type: ignore[method-assign]


def main() -> None:
    from accelerate import PartialState

    warnings.simplefilter("error")
    out, model = (Path(one) for one in sys.argv[1:])
    gc.freeze()  # every training ends with a collection of garbage
    state = PartialState(cpu=True)
    found = {
        f"{kind.__name__} {case}": told(kind, out, model, case, processes=state.num_processes)
        for kind in (pieces.Lean, pieces.Stock)
        for case in range(len(TOLD))
    }
    torch.save(found, out / f"rank-{state.process_index}.pt")
    run(out / "whole", model)
    run(out / "cut", model, stop=4)
    run(out / "cut", model)
    state.destroy_process_group()


if __name__ == "__main__":
    main()
