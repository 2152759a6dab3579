"""Does a confidence of .8 mean right four times out of five? The calibration curve and its error.

The curve groups labels by their confidence, in groups of about equal size (Nguyen & O'Connor, EMNLP 2015), and
sets mean confidence against the share that gold agrees with. The expected calibration error is the mean gap,
ECE = sum_b n_b/n |accuracy_b - confidence_b| (Naeini, Cooper & Hauskrecht, AAAI 2015). With few labels it is
above 0 even for a perfectly calibrated confidence, so it is set beside what chance alone gives: labels that are
right with exactly the stated probability, drawn many times (Broecker & Smith, Weather and Forecasting 22, 2007).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from audit.errors import ArgumentError
from audit.intervals import check_level, wilson
from audit.results import Result
from relabel.records import CONFIDENCE_KINDS, ConfidenceKind, Verdict

__all__ = ["Bin", "Calibration", "calibrate", "calibrate_verdicts"]

FloatArray = npt.NDArray[np.float64]
_BLOCK_CELLS = 4_000_000


@dataclass(frozen=True, kw_only=True)
class Bin(Result):
    """Labels whose confidence lies in [``low``, ``high``]: mean confidence, share that is right, its interval."""

    low: float
    high: float
    items: int
    confidence: float
    accuracy: float
    accuracy_low: float
    accuracy_high: float


@dataclass(frozen=True, kw_only=True)
class Calibration(Result):
    """One kind of confidence against gold. All figures but ``items`` lie in [0, 1].

    Parameters
    ----------
    kind, items:
        The kind of confidence, and the labels that have it.
    confidence, accuracy:
        Mean confidence, and the share of labels that gold agrees with.
    ece:
        Expected calibration error over ``bins``.
    ece_by_chance, p_value:
        Mean ECE of labels that are right with exactly the stated probability, and the share of such draws whose
        ECE is at least as large.
    brier:
        Mean squared difference of confidence and being right (0 or 1).
    """

    kind: str
    items: int
    confidence: float
    accuracy: float
    ece: float
    ece_by_chance: float
    p_value: float
    brier: float
    bins: tuple[Bin, ...]

    def summary(self) -> str:
        """One line in words."""
        verdict = (
            "no sign that it is off"
            if self.p_value >= 0.05
            else "too sure of itself"
            if self.confidence > self.accuracy
            else "less sure than it could be"
        )
        return (
            f"confidence ({self.kind}), {self.items:,} gold items: {self.confidence:.3f} on average, right on"
            f" {self.accuracy:.3f}; ECE {self.ece:.3f} (chance alone: {self.ece_by_chance:.3f}): {verdict}"
        )


def calibrate(
    confidence: npt.ArrayLike,
    right: npt.ArrayLike,
    *,
    kind: str,
    bins: int = 10,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> Calibration:
    """Set confidences against gold.

    Parameters
    ----------
    confidence, right:
        Shape (n,), n >= 1: confidences in [0, 1], and whether gold agrees with the label.
    bins:
        At most so many groups; equal confidences are never parted.
    level, draws, seed:
        Of the intervals (Wilson), and of the draws for ``ece_by_chance``.
    """
    check_level(level)
    conf, good = np.asarray(confidence, np.float64), np.asarray(right, bool)
    if conf.ndim != 1 or conf.shape != good.shape or not conf.size:
        raise ArgumentError("confidence and right must be two rows of the same length, at least 1")
    if not np.all((conf >= 0.0) & (conf <= 1.0)):
        raise ArgumentError("a confidence lies in [0, 1]: divide a percentage by 100")
    if bins < 1 or draws < 1:
        raise ArgumentError("bins and draws are whole numbers of at least 1")
    order = np.argsort(conf, kind="stable")
    conf, good = conf[order], good[order]
    starts = _starts(conf, bins)
    sizes = np.diff([*starts, conf.size])
    said = np.add.reduceat(conf, starts)
    hits = np.add.reduceat(good.astype(np.float64), starts)
    ece = float(np.abs(hits - said).sum() / conf.size)
    chance = _chance(conf, starts, said, draws, np.random.default_rng(seed))
    curve = []
    for start, size, total, count in zip(starts, sizes, said, hits, strict=True):
        low, high = wilson(float(count), float(size), level=level)
        curve.append(
            Bin(
                low=float(conf[start]),
                high=float(conf[start + size - 1]),
                items=int(size),
                confidence=float(total / size),
                accuracy=float(count / size),
                accuracy_low=low,
                accuracy_high=high,
            )
        )
    return Calibration(
        kind=kind,
        items=int(conf.size),
        confidence=float(conf.mean()),
        accuracy=float(good.mean()),
        ece=ece,
        ece_by_chance=float(chance.mean()),
        p_value=(1 + int(np.sum(chance >= ece - 1e-12))) / (1 + draws),
        brier=float(np.mean((conf - good) ** 2)),
        bins=tuple(curve),
    )


def calibrate_verdicts(pairs: Iterable[tuple[Verdict, str]]) -> tuple[Calibration, ...]:
    """One `Calibration` for each kind of confidence among (verdict, gold label) pairs; kinds are never mixed."""
    found: dict[ConfidenceKind, tuple[list[float], list[bool]]] = {}
    for verdict, label in pairs:
        if verdict.label is not None and verdict.confidence is not None and verdict.confidence_kind:
            confidence, right = found.setdefault(verdict.confidence_kind, ([], []))
            confidence.append(verdict.confidence)
            right.append(verdict.label == label)
    return tuple(calibrate(*found[kind], kind=kind) for kind in CONFIDENCE_KINDS if kind in found)


def _starts(conf: FloatArray, bins: int) -> npt.NDArray[np.int64]:
    """Where each group begins among the sorted confidences: near equal sizes, ties together."""
    wanted = np.arange(min(bins, conf.size)) * conf.size // min(bins, conf.size)
    return np.unique(np.searchsorted(conf, conf[wanted], side="left")).astype(np.int64)


def _chance(
    conf: FloatArray, starts: npt.NDArray[np.int64], said: FloatArray, draws: int, rng: np.random.Generator
) -> FloatArray:
    """ECE of ``draws`` sets of labels that are right with the stated probability."""
    out = np.empty(draws)
    block = max(1, _BLOCK_CELLS // conf.size)
    for start in range(0, draws, block):
        some = min(block, draws - start)
        drawn = (rng.random((some, conf.size), np.float32) < conf).astype(np.float64)
        out[start : start + some] = (
            np.abs(np.add.reduceat(drawn, starts, axis=1) - said).sum(axis=1) / conf.size
        )
    return out
