"""What length costs: bands of length, the tax of a cap and of a gate, and what the cap would have to be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from audit.errors import ArgumentError
from audit.results import Estimate
from train.plumbing_results import Band, LengthTax, Quantile, Slope
from train.plumbing_stats import Codes, Flags, Floats, cluster_mean, length_quantiles, within_slope

__all__ = ["CAP_SHARES", "cap_quantiles", "length_bands", "length_tax", "mean_of"]

#: The shares of rollouts for which the cap is asked.
CAP_SHARES = (0.5, 0.9, 0.95, 0.99)

_UNKNOWN = Slope(estimate=None, reason="not known from this log")


def mean_of(frame: pd.DataFrame, column: str, *, level: float, share: bool = False) -> Estimate | None:
    """Mean of a column where it is known, with its interval over items; None where it never is."""
    known = frame[column].notna().to_numpy()
    values = frame[column].to_numpy(np.float64)[known]
    return cluster_mean(values, frame["cluster"].to_numpy(np.int64)[known], level=level, share=share)


def length_bands(frame: pd.DataFrame, bands: int | Sequence[float], *, level: float) -> tuple[Band, ...]:
    """The rollouts by length: so many bands of about equal size, or bands between the given edges.

    Lengths outside the given edges go to a first or last band of their own.
    """
    known = frame[frame["length"].notna()]
    if known.empty:
        return ()
    length = known["length"].to_numpy(np.float64)
    edges = _edges(length, bands)
    place = np.clip(np.searchsorted(edges, length, side="left") - 1, 0, max(len(edges) - 2, 0))
    within = _less_group_mean(known)
    found = []
    for k in range(max(len(edges) - 1, 1)):
        part = known[place == k]
        if part.empty:
            continue
        finished = part[part["truncated"].ne(1) & part["reward"].notna()]
        items = finished["cluster"].to_numpy(np.int64)
        deviation = within[finished.index].to_numpy(np.float64)
        found.append(
            Band(
                low=float(edges[k]),
                high=float(edges[min(k + 1, len(edges) - 1)]),
                rollouts=len(part),
                truncated=mean_of(part, "truncated", level=level, share=True),
                closed=mean_of(part, "closed", level=level, share=True),
                reward=mean_of(part, "reward", level=level),
                finished=len(finished),
                finished_reward=mean_of(finished, "reward", level=level),
                finished_within=cluster_mean(deviation, items, level=level, share=False),
            )
        )
    return tuple(found)


def length_tax(frame: pd.DataFrame, *, level: float) -> LengthTax:
    """The reward of cut rollouts, and the slopes of closure and reward on length among finished ones."""
    paid = frame[frame["reward"].notna()]
    lowest = float(paid["reward"].min()) if len(paid) else None
    lowly = paid.assign(lowest=(paid["reward"] == lowest).astype(np.float64))
    cut = lowly["truncated"].to_numpy(np.float64) == 1
    told = lowly["truncated"].notna().to_numpy()
    finished = lowly[~cut & lowly["length"].gt(0).to_numpy()]
    closed, unclosed = finished[finished["closed"] == 1], finished[finished["closed"] == 0]
    return LengthTax(
        lowest=lowest,
        highest=float(paid["reward"].max()) if len(paid) else None,
        cut_lowest=mean_of(lowly[cut], "lowest", level=level, share=True),
        finished_lowest=mean_of(lowly[~cut], "lowest", level=level, share=True),
        cut=_slope(lowly[told], cut[told].astype(np.float64), "reward", level),
        closure=_doubling(finished[finished["closed"].notna()], "closed", level),
        reward=_doubling(finished, "reward", level),
        closed_reward=_doubling(closed, "reward", level),
        unclosed_reward=mean_of(unclosed, "reward", level=level),
    )


def cap_quantiles(frame: pd.DataFrame, *, level: float) -> tuple[tuple[Quantile, ...], str | None]:
    """The cap at which :data:`CAP_SHARES` of the rollouts would end, or the reason why that is unknown."""
    known = frame[frame["length"].notna() & frame["truncated"].notna()]
    if known.empty:
        return (), "lengths, or what was cut, are not known"
    cut: Flags = known["truncated"].to_numpy(np.float64) == 1
    if cut.all():
        return (), "every rollout was cut"
    length: Floats = known["length"].to_numpy(np.float64)
    items: Codes = known["cluster"].to_numpy(np.int64)
    return length_quantiles(length, cut, items, CAP_SHARES, level=level), None


def _edges(length: Floats, bands: int | Sequence[float]) -> Floats:
    if isinstance(bands, int):
        if bands < 1:
            raise ArgumentError(f"there must be at least one band of lengths, not {bands}")
        return np.unique(np.quantile(length, np.linspace(0.0, 1.0, bands + 1), method="inverted_cdf"))
    given = np.asarray(bands, np.float64)
    if given.size < 2 or not np.all(np.diff(given) > 0):
        raise ArgumentError("the edges of bands must rise, such as 0,128,256,384")
    low, high = float(length.min()), float(length.max())
    edges = [*([low] if low < given[0] else []), *given, *([high] if high > given[-1] else [])]
    return np.asarray(edges, np.float64)


def _less_group_mean(frame: pd.DataFrame) -> pd.Series:
    """Reward less the mean reward of the finished rollouts of the group."""
    finished = frame[frame["truncated"].ne(1)]
    means = finished.groupby("group")["reward"].mean()
    return frame["reward"] - frame["group"].map(means)


def _doubling(frame: pd.DataFrame, column: str, level: float) -> Slope:
    return _slope(frame, np.log2(frame["length"].to_numpy(np.float64)), column, level)


def _slope(frame: pd.DataFrame, x: Floats, column: str, level: float) -> Slope:
    if frame.empty:
        return _UNKNOWN
    groups, items = frame["group"].to_numpy(np.int64), frame["cluster"].to_numpy(np.int64)
    return within_slope(x, frame[column].to_numpy(np.float64), groups, items, level=level)
