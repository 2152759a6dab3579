"""What all results share: one dictionary form, and a number with its interval."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Estimate", "Result", "RunSettings"]


class Result:
    """Base of all results: a plain dictionary on request."""

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON-ready dictionaries and lists; fields marked ``json=False`` are left out."""
        return {
            f.name: _plain(getattr(self, f.name))
            for f in dataclasses.fields(self)  # type: ignore[arg-type]
            if f.metadata.get("json", True)
        }


def _plain(value: Any) -> Any:
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@dataclass(frozen=True, kw_only=True)
class Estimate(Result):
    """A number with its interval. ``low`` and ``high`` are ``None`` where there is none."""

    estimate: float | None
    low: float | None = None
    high: float | None = None
    method: str = ""

    def text(self, form: str = ".3f") -> str:
        """``0.181 [0.142, 0.224]`` with each number in the format ``form``; a dash where there is none.

        A negative number has a real minus sign.
        """
        if self.estimate is None:
            return "-"
        told = format(self.estimate, form)
        if self.low is not None and self.high is not None:
            told += f" [{self.low:{form}}, {self.high:{form}}]"
        return told.replace("-", "−")


@dataclass(frozen=True, kw_only=True)
class RunSettings(Result):
    """What a second run needs to give the same numbers: files, columns, and the options by their names."""

    sources: tuple[str, ...]
    item: tuple[str, ...]
    labels: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    version: str
