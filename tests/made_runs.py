"""Run folders with known scores, as a ladder leaves them behind."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from audit.writing import write_rows


def make_run(
    folder: Path,
    labels: Sequence[str],
    predictions: Sequence[str | None],
    *,
    name: str | None = None,
    rung: str = "sft",
    seed: int | None = 0,
    scores: Sequence[float] | None = None,
    noisy: Sequence[str] | None = None,
    items: Sequence[str] | None = None,
    status: str = "finished",
    parent: str | None = None,
    split: str = "test",
    curve: Mapping[str, Sequence[float | None]] | None = None,
    config: Mapping[str, Any] | None = None,
    **info: Any,
) -> Path:
    """A run folder whose items are ``i0``, ``i1`` … unless given; returns the folder."""
    folder.mkdir(parents=True)
    items = [f"i{i}" for i in range(len(labels))] if items is None else items
    columns: dict[str, Sequence[Any]] = {"item": items, "label": labels, "prediction": predictions}
    columns["score"] = [0.9 if p == "1" else 0.1 for p in predictions] if scores is None else scores
    if noisy is not None:
        columns["noisy"] = noisy
    rows = list(zip(*columns.values(), strict=True))
    write_rows(folder / f"scores-{split}.parquet", list(columns), rows)
    task = {"positive": "1", "clean": "clean.csv", "train_rows": 500}
    about = {
        "name": name or folder.name, "rung": rung, "seed": seed, "status": status, "parent": parent,
        "config": {"task": task, **(config or {})}, **info,
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(about), "utf-8")
    if curve is not None:
        lines = zip(*curve.values(), strict=True)
        text = [",".join(curve), *(",".join("" if v is None else str(v) for v in line) for line in lines)]
        (folder / "curve.csv").write_text("\n".join(text) + "\n", "utf-8")
    return folder


def answers(labels: Sequence[str], wrong: Sequence[int] | np.ndarray[Any, Any]) -> list[str]:
    """Predictions that are right but on the given places."""
    out = list(labels)
    for place in wrong:
        out[int(place)] = "0" if labels[int(place)] == "1" else "1"
    return out
