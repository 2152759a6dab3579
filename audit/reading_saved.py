"""Reads back a saved audit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from audit.errors import InputError
from audit.results import Disagreement

__all__ = ["load_audit", "load_positive"]


def load_audit(path: str | Path) -> tuple[Disagreement, int, str | None] | None:
    """d, the number of classes, and the reason against a flip rate, from the JSON of an audit; None for other files.

    Raises
    ------
    InputError
        The file cannot be read.
    """
    if not str(path).lower().endswith(".json"):
        return None
    try:
        saved: Any = json.loads(Path(path).read_text(encoding="utf-8"))
        part, rate = saved["disagreement"], saved["flip_rate"]
        d = Disagreement(
            estimate=part["estimate"], low=part["low"], high=part["high"], method=part["method"],
            level=part["level"], pair_weighted=part["pair_weighted"], row_weighted=part["row_weighted"],
            reason=part["reason"],
        )  # fmt: skip
        return d, int(rate["classes"]), rate["reason"]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; check the path") from error
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def load_positive(path: str | Path) -> tuple[str | None, float | None, tuple[str, ...]]:
    """The positive class of a saved audit, its share of the labels, and all classes; None where it has none.

    JSON of schema 1.0 does not say.
    """
    saved: Any = json.loads(Path(path).read_text(encoding="utf-8"))
    part = saved.get("metrics") or {}
    return part.get("positive"), part.get("share"), tuple(saved["data"]["classes"])
