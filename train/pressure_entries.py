"""The lines of a ledger: what one evaluation leaves behind, and the digests that tell rows and models apart."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from audit.errors import InputError
from audit.results import Result

__all__ = [
    "Book",
    "Entry",
    "Key",
    "Kind",
    "Purpose",
    "digest_items",
    "digest_model",
    "entry_of",
    "line_of",
    "unusable",
]

Kind = Literal["evaluation", "opening", "resumed"]
Purpose = Literal["validation", "holdout"]

_SHARES = frozenset(
    "accuracy balanced_accuracy precision recall specificity f1 auc average_precision".split()
)
_COUNTS = frozenset(("n", "positives"))
#: Sums and squares of larger numbers are beyond what a float holds.
_LARGEST = 1e100
Key = Literal["noisy", "clean"]


@dataclass(frozen=True, kw_only=True)
class Entry(Result):
    """One line of a ledger.

    ``kind``: an ``evaluation`` with its ``metrics``; the ``opening`` of a holdout, written before anything is
    scored on it; or ``resumed``, an opening taken up again by the run that was cut short before it had a score.
    ``model`` tells models apart (a digest of the weights, or a name), ``family`` groups the candidates that one
    choice is made from. ``digest`` is that of the items' keys, ``rows`` their number. ``key`` says what the
    metrics are measured against: labels as they came (``noisy``) or a ``clean`` key. ``right`` packs, item by
    item in the order of the sorted keys, whether the answer was right (base64 of bits). ``forced`` is the reason
    for opening a holdout again.
    """

    time: str
    kind: Kind = "evaluation"
    run: str
    family: str
    model: str
    split: str
    purpose: Purpose
    rows: int | None = None
    digest: str | None = None
    key: Key | None = None
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    forced: str | None = None
    right: str | None = None
    line: int = field(default=0, metadata={"json": False})

    def opens(self, model: str, split: str, digest: str | None) -> bool:
        """Whether this is about the holdout for a model: the same split, or the same rows under another name."""
        rows = digest is not None and self.digest == digest
        return self.purpose == "holdout" and self.model == model and (self.split == split or rows)

    def rights(self) -> NDArray[np.bool_] | None:
        """Whether each item was answered right, shape (rows,), in the order of the sorted keys; None if not kept."""
        if self.right is None or self.rows is None:
            return None
        try:
            bits = np.unpackbits(np.frombuffer(base64.b64decode(self.right, validate=True), np.uint8))
        except ValueError:
            return None
        return bits[: self.rows].astype(np.bool_) if len(bits) >= self.rows else None


@dataclass(frozen=True, kw_only=True)
class Book(Result):
    """All lines of a ledger in their order, and the numbers of those that cannot be read."""

    path: str
    entries: tuple[Entry, ...]
    damaged: tuple[int, ...] = ()

    def openings(self, *, model: str, split: str, digest: str | None = None) -> tuple[Entry, ...]:
        """The openings of a holdout for a model: of the same split, or of the same rows under another name."""
        return tuple(e for e in self.entries if e.kind == "opening" and e.opens(model, split, digest))


def digest_items(items: Iterable[str]) -> str:
    """16 hex digits that tell one set of items from another, whatever their order."""
    digest = hashlib.sha256()
    for item in sorted(set(items)):
        data = item.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:16]


def digest_model(path: str | Path) -> str:
    """16 hex digits of a model's files: one file, or all files of a folder by name and content.

    Raises
    ------
    InputError
        There is no such file or folder, or it holds nothing.
    """
    root = Path(path)
    files = [root] if root.is_file() else sorted(p for p in root.rglob("*") if p.is_file())
    if not files:
        raise InputError(
            f"{root}: no model's files are there; give the adapter's folder, or a name of your own"
        )
    digest = hashlib.sha256()
    for file in files:
        name = file.relative_to(root).as_posix() if file != root else ""
        digest.update(f"{name}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as content:
            while block := content.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()[:16]


def line_of(entry: Entry) -> dict[str, Any]:
    """The entry as a JSON-ready line, without what is not known."""
    return {name: value for name, value in entry.to_dict().items() if value is not None or name == "forced"}


def entry_of(line: Mapping[str, Any], number: int) -> Entry | None:
    """The entry of a line, or None where what every entry has is not there, is of another kind or cannot be."""
    kind, purpose, key = line.get("kind", "evaluation"), line.get("purpose"), line.get("key")
    if kind not in ("evaluation", "opening", "resumed") or purpose not in ("validation", "holdout"):
        return None
    needed = [line.get(name) for name in ("time", "run", "model", "split")]
    optional = [line.get(name) for name in ("digest", "forced", "right")]
    family = line.get("family", line.get("run"))
    if not all(isinstance(value, str) for value in (*needed, family)):
        return None
    if not all(value is None or isinstance(value, str) for value in optional):
        return None
    try:
        rows, metrics = line.get("rows"), dict(line.get("metrics") or {})
        if any(unusable(str(name), value) for name, value in metrics.items()) or not _is_count(rows):
            return None
        numbers = {str(name): None if value is None else float(value) for name, value in metrics.items()}
        time, run, model, split = cast("list[str]", needed)
        digest, forced, right = optional
        return Entry(
            time=time, kind=cast(Kind, kind), run=run, family=str(family), model=model, split=split,
            purpose=cast(Purpose, purpose), rows=rows, digest=digest,
            key=cast(Key, key) if key in ("noisy", "clean") else None, metrics=numbers, forced=forced, right=right,
            line=number,
        )  # fmt: skip
    except (TypeError, ValueError):
        return None


def unusable(name: str, value: Any) -> str | None:
    """Why a metric's value cannot be one, in words that follow its name; None where it can."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real):
        return f"is {value!r}: give a number, or None where there is none"
    number: Any = value  # Real has no order for the type checker
    if not -_LARGEST <= number <= _LARGEST:
        shown = f"{number:g}" if isinstance(number, float) else "beyond what can be counted with"
        return f"is {shown}: give a number, or None where there is none"
    if name in _SHARES and not 0.0 <= number <= 1.0:
        return f"lies in [0, 1], not {number:g}: divide a percentage by 100"
    if name in _COUNTS and number < 0:
        return f"is a number of rows, not {number:g}"
    return None


def _is_count(rows: Any) -> bool:
    return rows is None or (isinstance(rows, int) and not isinstance(rows, bool) and 1 <= rows <= 2**53)
