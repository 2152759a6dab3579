"""The pool that a skip of uniform groups leaves to learn from: its share, its classes, its contested items, over time.

A group is *informative* if its rewards differ. The informative groups of a stretch of steps (a *block*) are compared
with all groups seen in that block, so a change in what is shown is no drift of the pool.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from train.plumbing_length import mean_of
from train.plumbing_results import Pool, Share, Test
from train.plumbing_stats import (
    FEWEST,
    Codes,
    Flags,
    Floats,
    cluster_mean,
    cluster_slope,
    scaled,
    sum_test,
)

__all__ = ["group_table", "pool_report"]

#: Steps are put together into blocks until they hold this many groups: single steps have too few to compare.
BLOCK_GROUPS = 32

#: A drift is asked for from this many blocks.
_FEWEST_BLOCKS = 4

#: Classes of fewer informative items than this are taken together in tests (chi-square's usual five, doubled).
_FEWEST_ITEMS = 10

#: What stands for the data where they were not given.
_SEEN = "items seen, each once"

#: With fewer uniform groups than this share, uniform groups were filtered out before the log was written.
_FILTERED = 0.01


def group_table(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per group with a reward: step, item, label, its lowest and highest reward, and whether they differ.

    ``only_cut`` groups would not differ without their cut rollouts.
    """
    rewards = frame[frame["reward"].notna()].groupby("group")["reward"]
    table = pd.DataFrame({"low": rewards.min(), "high": rewards.max()})
    first = frame.drop_duplicates("group").set_index("group")
    table[["step", "key", "label", "cluster"]] = first.loc[table.index, ["step", "key", "label", "cluster"]]
    table["informative"] = (table["high"] > table["low"]).astype(np.float64)
    ended = frame[frame["reward"].notna() & frame["truncated"].ne(1)].groupby("group")["reward"]
    even = (ended.max() == ended.min()).reindex(table.index, fill_value=True)
    table["only_cut"] = table["informative"].eq(1) & even
    return table


def pool_report(
    groups: pd.DataFrame,
    *,
    contested: Collection[str] | None,
    data: Mapping[str, int] | None,
    data_items: Collection[str] = (),
    cuts_known: bool,
    level: float,
) -> Pool:
    """The pool of the informative groups.

    Parameters
    ----------
    groups:
        From :func:`group_table`; ``key`` in the form in which ``contested`` holds the items whose labels disagree.
    data:
        Rows of each class in the data; by default the first group of every item seen.
    data_items:
        The keys of the data's items, for the share of contested ones; by default those seen.
    cuts_known:
        Whether the log tells what was cut.
    """
    labelled = groups[groups["label"].notna()]
    filtered = bool(len(groups)) and float(groups["informative"].mean()) > 1.0 - _FILTERED
    view = _view(labelled, filtered)
    classes = sorted(set(labelled["label"]) | set(data or ()))
    first = labelled.drop_duplicates("cluster")["label"].value_counts()
    counts = {name: float(data.get(name, 0) if data is not None else first.get(name, 0)) for name in classes}
    marks = _merged(labelled["label"], view) if len(labelled) else np.zeros((0, 1))
    mix, drift = _tests(view, marks, filtered)
    if filtered and data is not None:
        mix = _against_data(first, counts)
    total = max(sum(counts.values()), 1.0)
    shares = tuple(
        _share(name, labelled["label"].eq(name).to_numpy(), view, counts[name] / total, level)
        for name in classes
    )
    unknown = Test(reason="no conflict file was given")
    contested_share, contested_mix, contested_drift = None, unknown, unknown
    if contested is not None:
        whole = _view(groups, filtered)
        flags = groups["key"].isin(contested).to_numpy()
        of = pd.Series(list(data_items), dtype=object) if data_items else groups["key"].drop_duplicates()
        base = of.isin(contested).mean()
        contested_share = _share("contested", flags, whole, float(base), level)
        contested_mix, contested_drift = _tests(whole, flags[:, None].astype(np.float64), filtered)
    step = groups["step"].to_numpy(np.float64)
    change = cluster_slope(
        step, groups["informative"].to_numpy(), groups["cluster"].to_numpy(np.int64), level=level
    )
    lowest = groups["low"].min()
    uniform = groups[groups["informative"] == 0]
    return Pool(
        informative=mean_of(groups, "informative", level=level, share=True),
        informative_change=scaled(change, float(np.ptp(step)) if step.size else 0.0),
        only_cut=int(groups["only_cut"].sum()) if cuts_known else None,
        uniform_lowest=int((uniform["low"] == lowest).sum()),
        uniform_other=int((uniform["low"] != lowest).sum()),
        filtered=filtered,
        data="the data" if data is not None else _SEEN,
        classes=shares,
        mix=mix,
        drift=drift,
        contested=contested_share,
        contested_data="the data" if data_items else _SEEN,
        contested_mix=contested_mix,
        contested_drift=contested_drift,
    )


@dataclass(frozen=True, kw_only=True)
class _View:
    """Groups as arrays. ``block`` numbers their stretch of steps, ``time`` is its mean step less that of the
    informative groups, ``excess`` is informative less the block's share of it.
    """

    informative: Flags
    items: Codes
    block: Codes
    time: Floats
    excess: Floats

    @property
    def spread(self) -> float:
        """Sum of the squared times of the informative groups."""
        return float((self.time[self.informative] ** 2).sum())


def _view(groups: pd.DataFrame, filtered: bool) -> _View:
    informative = groups["informative"].to_numpy() == 1
    block = _blocks(groups["step"].to_numpy(np.float64))
    sizes = np.bincount(block) if block.size else np.zeros(0)
    time = (np.bincount(block, weights=groups["step"].to_numpy(np.float64)) / sizes)[block]
    share = (np.bincount(block, weights=informative) / sizes)[block]
    return _View(
        informative=informative,
        items=groups["cluster"].to_numpy(np.int64),
        block=block,
        time=time - (time[informative].mean() if informative.any() else 0.0),
        excess=informative.astype(np.float64) if filtered else informative - share,
    )


def _blocks(step: Floats) -> Codes:
    """The block of each group: steps in their order, put together until a block holds :data:`BLOCK_GROUPS` groups."""
    values, inverse, counts = np.unique(step, return_inverse=True, return_counts=True)
    block, held, of_step = 0, 0, np.zeros(values.size, np.int64)
    for k, count in enumerate(counts):
        if held >= BLOCK_GROUPS:
            block, held = block + 1, 0
        of_step[k] = block
        held += int(count)
    if block and held < BLOCK_GROUPS:  # a short rest belongs to the block before
        of_step[of_step == block] = block - 1
    return of_step[inverse]


def _tests(view: _View, marks: Floats, filtered: bool) -> tuple[Test, Test]:
    """Do the informative groups differ from those seen in their block in ``marks`` (n, k)? Does that change over time?

    The difference is D = sum of excess x marks over the number of informative groups, its drift the sum of time x
    excess x marks: a difference that stays the same makes none, since the times of informative groups sum to
    nought. Terms are taken about the block's mean of the marks (about the mean of all in a filtered log) and, for
    the drift, less D for each informative group.
    """
    if not view.items.size:
        none = Test(reason="no labels were logged")
        return none, none
    strata = np.zeros_like(view.block) if filtered else view.block
    sizes = np.bincount(strata)
    means = np.stack([np.bincount(strata, weights=column) / sizes for column in marks.T], axis=1)
    terms = view.excess[:, None] * (marks - means[strata])
    mix = sum_test(terms, view.items, means=sizes.size)
    if filtered:
        mix = Test(reason="uniform groups are not in the log: only the data could tell (--data)")
    blocks = int(view.block.max()) + 1
    if blocks < _FEWEST_BLOCKS:
        return mix, Test(
            reason=f"{blocks} blocks of {BLOCK_GROUPS} groups or more; a drift needs {_FEWEST_BLOCKS}"
        )
    constant = terms.sum(axis=0) / max(int(view.informative.sum()), 1)
    drift = view.time[:, None] * (terms - view.informative[:, None] * constant)
    return mix, sum_test(drift, view.items, means=sizes.size)


def _merged(labels: pd.Series, view: _View) -> Floats:
    """Classes in one-hot form (n, k), the rare ones among the informative items taken together."""
    told = pd.DataFrame({"label": labels.to_numpy(), "item": view.items})[view.informative]
    counts = told.drop_duplicates()["label"].value_counts()
    common = sorted(counts.index[counts >= _FEWEST_ITEMS])
    return np.stack(
        [*(labels.eq(name).to_numpy(np.float64) for name in common), ~labels.isin(common).to_numpy()], axis=1
    ).astype(np.float64)


def _against_data(first: pd.Series, data: Mapping[str, float]) -> Test:
    """Pearson's chi-square of the items in a filtered log against the data's shares."""
    if first.sum() < FEWEST or sum(data.values()) == 0:
        return Test(reason="too few items, or no labels in the data")
    shares = np.asarray([data[name] for name in data], np.float64) / sum(data.values())
    seen = np.asarray([first.get(name, 0) for name in data], np.float64)
    if np.any(seen[shares == 0]):
        return Test(reason="the rollouts have labels that the data do not have")
    kept = shares > 0
    if kept.sum() < 2:
        return Test(reason="the data have one class")
    p = float(stats.chisquare(seen[kept], shares[kept] * seen.sum()).pvalue)
    return Test(p_value=p, method="chi-square of items against the data")


def _share(value: str, flags: Flags, view: _View, data: float, level: float) -> Share:
    marks = flags.astype(np.float64)
    span, spread = float(np.ptp(view.time)) if view.time.size else 0.0, view.spread
    chosen = view.informative
    return Share(
        value=value,
        data=data,
        seen=cluster_mean(marks, view.items, level=level, share=True),
        informative=cluster_mean(marks[chosen], view.items[chosen], level=level, share=True),
        change=float((view.time * view.excess) @ marks) / spread * span if spread > 0 else None,
    )
