"""Who goes to the adjudicator: a share, all below a confidence, or what a gold sample cannot vouch for.

The third way is the fixed-sequence testing of Jung, Brahman & Choi, "Trust or Escalate" (arXiv:2407.18370):
thresholds are tried from high to low confidence, each with an exact binomial test of "the judge agrees with
gold on less than ``target`` of what it keeps"; the first that is not rejected ends it. With probability at
least 1 - ``delta`` over gold samples, the judge then agrees with gold on at least ``target`` of what it keeps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from audit.errors import ArgumentError

__all__ = ["GoldThreshold", "Policy", "choose_policy", "gold_needed", "threshold_on_gold"]

DEFAULT_SHARE = 0.15


@dataclass(frozen=True, kw_only=True)
class Policy:
    """How items are chosen for the adjudicator; ``value`` is the share, the threshold or the target."""

    kind: Literal["none", "share", "below", "target"]
    value: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Kind and value."""
        return {"kind": self.kind, "value": self.value}

    def option(self) -> str:
        """The option that asks for it."""
        names = {"share": "--escalate", "below": "--escalate-below", "target": "--target-agreement"}
        return "no --adjudicator" if self.kind == "none" else f"{names[self.kind]} {self.value:g}"


def choose_policy(
    *,
    adjudicator: bool,
    share: float | str | None = None,
    below: float | None = None,
    target_agreement: float | None = None,
    gold: bool = False,
) -> Policy:
    """The one policy that the options ask for; without any, 15 % where there is an adjudicator.

    ``share`` is a number in [0, 1] or a percentage such as ``"15%"``. ArgumentError where options contradict.
    """
    asked = [name for name, value in _named(share, below, target_agreement) if value is not None]
    if len(asked) > 1:
        raise ArgumentError(f"{' and '.join(asked)} exclude each other; give one of them")
    if asked and not adjudicator:
        raise ArgumentError(f"{asked[0]} needs somebody to escalate to; give --adjudicator MODEL")
    if target_agreement is not None:
        if not gold:
            raise ArgumentError("--target-agreement is found on a gold sample; give --gold FILE")
        return Policy(kind="target", value=_unit(target_agreement, "--target-agreement", open_ends=True))
    if below is not None:
        return Policy(kind="below", value=_unit(below, "--escalate-below"))
    if not adjudicator:
        return Policy(kind="none")
    return Policy(kind="share", value=DEFAULT_SHARE if share is None else _share(share))


def _named(*values: float | str | None) -> zip[tuple[str, float | str | None]]:
    return zip(("--escalate", "--escalate-below", "--target-agreement"), values, strict=True)


def _share(value: float | str) -> float:
    text = str(value).strip()
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError as error:
        raise ArgumentError(f"--escalate {text!r} is not a share; write 15% or 0.15") from error
    if not 0 <= number <= 1:
        raise ArgumentError(f"--escalate {text!r} is not between 0 and 1; write 15% or 0.15")
    return number


def _unit(value: float, name: str, *, open_ends: bool = False) -> float:
    if not (0 < value < 1 if open_ends else 0 <= value <= 1):
        raise ArgumentError(f"{name} {value} is out of range; give a number between 0 and 1, such as 0.9")
    return value


@dataclass(frozen=True, kw_only=True)
class GoldThreshold:
    """The threshold that a gold sample vouches for.

    Parameters
    ----------
    threshold:
        The judge keeps what it labels with at least this confidence.
    target, delta:
        Agreement of at least ``target`` among the kept, with probability at least 1 - ``delta``.
    gold, kept, agreed:
        Gold items with a verdict, those at or above the threshold, and those of them where judge and gold agree.
    lower:
        Exact one-sided lower bound, at level 1 - ``delta``, on the agreement among the kept.
    tested:
        How many thresholds were tried.
    """

    threshold: float
    target: float
    delta: float
    gold: int
    kept: int
    agreed: int
    lower: float
    tested: int

    @property
    def coverage(self) -> float:
        """Share of gold that the judge keeps."""
        return self.kept / self.gold

    def to_dict(self) -> dict[str, Any]:
        """All fields and the coverage."""
        return {
            "threshold": self.threshold,
            "target": self.target,
            "delta": self.delta,
            "gold": self.gold,
            "kept": self.kept,
            "agreed": self.agreed,
            "agreement": self.agreed / self.kept,
            "lower": self.lower,
            "coverage": self.coverage,
            "tested": self.tested,
        }


def gold_needed(target: float, *, delta: float = 0.05) -> int:
    """The fewest gold items that can show an agreement of ``target`` at all: all agree, target^n <= delta."""
    return math.ceil(math.log(delta) / math.log(target) - 1e-12)


def _first_size(target: float, delta: float, gold: int) -> int:
    """How many gold items the first test is over.

    One disagreement among the very first items would end the sequence, so it starts where a judge with half
    the allowed disagreement passes, yet on no more than a quarter of gold. Depends on no label, as it must not.
    (Over judges of several kinds and 100 to 1000 gold items, this kept most at the same promise.)
    """
    fewest = gold_needed(target, delta=delta)
    size, most = fewest, max(fewest, gold // 4)
    while size < most and special.bdtr(int(size * (1 - target) / 2), size, 1 - target) > delta:
        size += 1
    return size


def threshold_on_gold(
    confidence: npt.ArrayLike,
    agrees: npt.ArrayLike,
    *,
    grid: Sequence[float] | npt.NDArray[np.float64],
    target: float,
    delta: float = 0.05,
) -> GoldThreshold:
    """The lowest threshold that fixed-sequence testing reaches.

    Parameters
    ----------
    confidence, agrees:
        Shape (n,): the judge's confidence on each gold item, and whether it gave gold's label.
    grid:
        The thresholds to try, fixed without looking at ``agrees`` (the quantiles of the confidences of the
        items to be labelled do well); any order.
    target, delta:
        See `GoldThreshold`.

    Raises
    ------
    ArgumentError
        Where gold is too small, or no threshold passes; with the figures.
    """
    conf, good = np.asarray(confidence, dtype=float), np.asarray(agrees, dtype=bool)
    if conf.shape != good.shape or conf.ndim != 1:
        raise ArgumentError("confidence and agrees must be two rows of the same length")
    fewest = gold_needed(target, delta=delta)
    if conf.size < fewest:
        raise ArgumentError(
            f"gold has {conf.size} items with a verdict, too few to show an agreement of {target:g}:"
            f" it takes {fewest} without one disagreement; give more gold or a lower --target-agreement"
        )
    first = _first_size(target, delta, conf.size)
    passed, tested, failed = None, 0, None
    for threshold in np.unique(np.asarray(grid, dtype=float))[::-1]:
        kept = conf >= threshold
        size, hits = int(kept.sum()), int(good[kept].sum())
        if size < first:
            continue
        tested += 1
        if special.bdtr(size - hits, size, 1 - target) > delta:
            failed = (float(threshold), size, hits)
            break
        passed = (float(threshold), size, hits)
    if passed is None:
        tried = (
            f"the judge agrees on {failed[2]} of its {failed[1]} surest"
            if failed
            else "no threshold keeps enough"
        )
        raise ArgumentError(
            f"gold cannot show an agreement of {target:g}: {tried};"
            " lower --target-agreement, give more gold, or use --escalate SHARE"
        )
    threshold, size, hits = passed
    return GoldThreshold(
        threshold=threshold,
        target=target,
        delta=delta,
        gold=conf.size,
        kept=size,
        agreed=hits,
        lower=float(special.betaincinv(hits, size - hits + 1, delta)) if hits else 0.0,
        tested=tested,
    )
