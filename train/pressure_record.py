"""Records an evaluation that was made elsewhere: from a score file, or from metrics given by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from audit.errors import ArgumentError
from train.metrics import binary_metrics
from train.pressure import Ledger, digest_model
from train.pressure_entries import Entry, Key, Purpose
from train.scores import read_scores

__all__ = ["model_name", "parse_metrics", "record_evaluation"]


def record_evaluation(
    ledger: str | Path | Ledger,
    *,
    run: str,
    split: str,
    model: str | None = None,
    adapter: str | Path | None = None,
    scores: Any = None,
    positive: str | None = None,
    metrics: Mapping[str, float | None] | None = None,
    rows: int | None = None,
    family: str | None = None,
    purpose: Purpose = "validation",
    key: Key | None = None,
    reason: str | None = None,
) -> Entry:
    """Write one evaluation down, with its metrics worked out from scores or given.

    Parameters
    ----------
    model, adapter:
        The model's name, or the folder of its weights, whose digest is its name. One of them.
    scores, positive:
        A score file, data frame or run folder (:func:`train.scores.read_scores`), and its positive label. The ledger
        keeps the metrics, a digest of the items and, for validation rows, which of them were answered right.
    metrics, rows:
        What was measured, and on how many rows, where there are no scores.

    Raises
    ------
    ArgumentError
        Not exactly one of model and adapter, or of scores and metrics; or the holdout may not be opened again.
    """
    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    name = model_name(model, adapter)
    if (scores is None) == (not metrics):
        raise ArgumentError(
            "give either a score file (--scores) or metrics (--metric accuracy=0.81), and not both"
        )
    if scores is None:
        return book.record(
            run=run, model=name, split=split, metrics=metrics or {}, rows=rows, family=family, purpose=purpose,
            key=key, reason=reason,
        )  # fmt: skip
    found = read_scores(scores, positive=positive, split=split if _is_folder(scores) else None)
    labels = np.where(found.truth, "1", "0")
    answers = [{1: "1", 0: "0"}.get(int(p)) for p in found.predicted]
    right = [a == label for a, label in zip(answers, labels, strict=True)]
    measured = binary_metrics(labels.tolist(), answers, found.scores, positive="1")
    return book.record(
        run=run, model=name, split=split, metrics=measured, items=found.items, right=right, family=family,
        purpose=purpose, key=key, reason=reason,
    )  # fmt: skip


def model_name(model: str | None, adapter: str | Path | None) -> str:
    """The name that a ledger knows a model by: the given one, or the digest of its files."""
    if (model is None) == (adapter is None):
        raise ArgumentError(
            "name the model (--model), or give the folder of its weights (--adapter), and not both"
        )
    return model if model is not None else digest_model(adapter or "")


def parse_metrics(texts: list[str]) -> dict[str, float]:
    """``["accuracy=0.81"]`` as a dictionary; an ArgumentError for what is no name and number."""
    out: dict[str, float] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if name.strip() in out:
            raise ArgumentError(f"--metric {name.strip()} is given twice: give each metric once")
        try:
            out[name.strip()] = float(value)
        except ValueError:
            sign = ""
        if not sign or not name.strip():
            raise ArgumentError(f"--metric {text!r}: write a name and a number, such as accuracy=0.81")
    return out


def _is_folder(source: Any) -> bool:
    return isinstance(source, str | Path) and Path(source).is_dir()
