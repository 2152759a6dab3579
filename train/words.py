"""What the reports of ``audit train`` call things: metrics, files and folders."""

from __future__ import annotations

from pathlib import Path

__all__ = ["metric_name", "place_name"]

_CAPITALS = {"mcc": "MCC", "f1": "F1", "auc": "AUC", "share": "share called positive"}


def metric_name(metric: str) -> str:
    """``balanced_accuracy`` in words; names in capitals stay so."""
    return _CAPITALS.get(metric, metric.replace("_", " "))


def place_name(source: str) -> str:
    """A file or folder by its path from the working directory; of one elsewhere the last two parts.

    Text that is no absolute path stays as it is.
    """
    path = Path(source)
    if not path.is_absolute():
        return source
    here = Path.cwd()
    if path != here and path.is_relative_to(here):
        return str(path.relative_to(here))
    return str(Path(*path.parts[-2:]))
