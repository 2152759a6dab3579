"""What training on these labels really buys: a ladder of methods (extra ``[train]``), and the instruments around it.

>>> from train import plumbing_report
>>> print(plumbing_report("runs/grpo-s0").summary())  # doctest: +SKIP

The instruments read anyone's rollouts, scores and runs and need NumPy, pandas and SciPy alone; the ladder trains one
small model by SFT, GRPO and CoT-SFT on one set of rows against one clean key. The package uses ``audit``'s public
names, never ``relabel``'s: the two meet through a file. Names are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train.compare import compare_runs
    from train.config import load_config
    from train.ladder import run_ladder
    from train.operating import operating_point
    from train.plumbing import plumbing_report
    from train.pressure import Ledger
    from train.rollouts import read_rollouts
    from train.scorer import Scorer, Tags
    from train.scores import read_scores

_HOMES = {
    "compare": ("compare_runs",),
    "config": ("load_config",),
    "ladder": ("run_ladder",),
    "operating": ("operating_point",),
    "plumbing": ("plumbing_report",),
    "pressure": ("Ledger",),
    "rollouts": ("read_rollouts",),
    "scorer": ("Scorer", "Tags"),
    "scores": ("read_scores",),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Ledger",
    "Scorer",
    "Tags",
    "compare_runs",
    "load_config",
    "operating_point",
    "plumbing_report",
    "read_rollouts",
    "read_scores",
    "run_ladder",
]


def __getattr__(name: str) -> Any:
    """Import the module behind a public name the first time the name is used."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'train' has no attribute {name!r}")
    return getattr(importlib.import_module(f"train.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
