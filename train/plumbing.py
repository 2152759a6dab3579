"""What the plumbing of a reinforcement-learning run does to its reward: the report ``audit train plumbing`` prints.

Nothing here looks at the model: everything is read off the rollouts. The report tells how much the cap and the gate
tax length, what the cap would have to be, which groups are left to learn from and how they differ from the data, and
counts what ought not to be there. docs/train-plumbing.md explains each number.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from audit.columns import no_column
from audit.errors import InputError
from audit.intervals import check_level
from train.plumbing_checks import check_rollouts
from train.plumbing_findings import FAMILY_ERROR, find, tests_of
from train.plumbing_join import contested_items, data_labels, plain_key
from train.plumbing_length import cap_quantiles, length_bands, length_tax, mean_of
from train.plumbing_pool import group_table, pool_report
from train.plumbing_results import PlumbingReport, Settings, Source, Step
from train.plumbing_stats import cluster_slope, scaled
from train.rollouts import CLOSE_TAG, Rollouts, read_rollouts

__all__ = ["plumbing_report"]


def plumbing_report(
    rollouts: Any,
    *,
    conflicts: str | os.PathLike[str] | None = None,
    data: str | os.PathLike[str] | None = None,
    item: Sequence[str] = (),
    label: str | None = None,
    reward: Sequence[str] = (),
    cap: float | None = None,
    bands: int | Sequence[float] = 5,
    tokenizer: str | os.PathLike[str] | None = None,
    close_tag: str = CLOSE_TAG,
    level: float = 0.95,
) -> PlumbingReport:
    """Report on the plumbing of a run.

    Parameters
    ----------
    rollouts:
        A file or folder of rollouts, a data frame, or what :func:`train.rollouts.read_rollouts` gave.
    conflicts:
        The file that ``audit dupes --conflicts`` wrote of the data: which items' labels disagree.
    data:
        The data, for its classes; by default the items seen, each once.
    item:
        The columns of ``data`` and ``conflicts`` that make an item's key; a single one also in the
        rollouts, if it is there.
    label:
        The label's column, in the rollouts and in ``data``, where it is not called ``label``.
    reward, cap, tokenizer, close_tag:
        See :func:`train.rollouts.read_rollouts`.
    bands:
        How many bands of length, of about equal size; or their edges, rising.
    level:
        Confidence level of each interval, in (0, 1). Intervals are over items.

    Raises
    ------
    InputError, ColumnError, ArgumentError
        A file cannot be read or joined, or an option is out of its range.
    """
    check_level(level)
    if isinstance(rollouts, Rollouts):
        logged = rollouts
    else:
        logged = read_rollouts(
            rollouts,
            reward=reward,
            label=label,
            item=item[0] if len(item) == 1 else None,
            tokenizer=tokenizer,
            cap=cap,
            close_tag=close_tag,
        )
    if label is not None and data is None and label not in logged.columns:
        raise no_column(label, source=logged.source, columns=logged.columns, option="--label")
    if len(item) == 1 and data is None and conflicts is None and item[0] not in logged.columns:
        raise no_column(item[0], source=logged.source, columns=logged.columns, option="--item")
    if not logged.has("reward"):
        raise InputError(
            f"{logged.source}: no rollout has a reward; name the column that holds it with --reward"
        )
    frame = logged.frame.copy()
    keys = {name: plain_key(name) for name in frame["item"].unique()}
    frame["key"] = frame["item"].map(keys)
    frame["cluster"] = pd.factorize(frame["key"], sort=True)[0]
    notes = list(logged.notes)
    told = None if data is None else data_labels(Path(data), item=item, label=label or "label")
    if told is not None and frame["label"].isna().all() and told.by_item:
        frame["label"] = frame["key"].map(dict(told.by_item))
        notes.append(
            f"{frame['label'].notna().mean():.0%} of the rollouts got their label from the data, by item"
        )
    if told is not None:
        notes += told.check(keys.values(), frame["label"].dropna())
    contested = (
        None if conflicts is None else contested_items(Path(conflicts), item=item, like=set(keys.values()))
    )
    groups = group_table(frame)
    truncated = mean_of(frame, "truncated", level=level, share=True)
    tax = length_tax(frame, level=level)
    caps, caps_reason = cap_quantiles(frame, level=level)
    pool = pool_report(
        groups,
        contested=contested,
        data=None if told is None else told.counts,
        data_items=() if told is None else told.items,
        cuts_known=logged.has("truncated"),
        level=level,
    )
    checks = check_rollouts(frame, close_tag=close_tag)
    return PlumbingReport(
        source=_source(frame, logged, notes),
        findings=find(truncated=truncated, tax=tax, caps=caps, pool=pool, checks=checks),
        truncated=truncated,
        closed=mean_of(frame, "closed", level=level, share=True),
        reward=mean_of(frame, "reward", level=level),
        length=mean_of(frame, "length", level=level),
        length_change=_length_change(frame, level),
        bands=length_bands(frame, bands, level=level),
        tax=tax,
        caps=caps,
        caps_reason=caps_reason,
        pool=pool,
        checks=checks,
        steps=_steps(frame, groups, contested, level),
        settings=Settings(
            level=level,
            family_error=FAMILY_ERROR,
            close_tag=close_tag,
            conflicts=None if conflicts is None else str(conflicts),
            data=None if data is None else str(data),
            tests=len(tests_of(tax, pool)),
        ),
    )


def _source(frame: pd.DataFrame, logged: Rollouts, notes: Sequence[str]) -> Source:
    sizes = frame["group"].value_counts()
    return Source(
        source=logged.source,
        form=logged.form,
        rollouts=len(frame),
        unrewarded=int(frame["reward"].isna().sum()),
        groups=len(sizes),
        group_size=int(sizes.mode().max()),
        steps=int(frame["step"].nunique()),
        items=int(frame["cluster"].nunique()),
        length_unit=logged.length_unit,
        cap=logged.cap,
        notes=tuple(notes),
    )


def _length_change(frame: pd.DataFrame, level: float) -> Any:
    known = frame[frame["length"].notna()]
    step = known["step"].to_numpy(np.float64)
    length, items = known["length"].to_numpy(np.float64), known["cluster"].to_numpy(np.int64)
    slope = cluster_slope(step, length, items, level=level)
    return scaled(slope, float(np.ptp(step)) if step.size else 0.0)


def _steps(
    frame: pd.DataFrame, groups: pd.DataFrame, contested: frozenset[str] | None, level: float
) -> tuple[Step, ...]:
    found = []
    for step in np.unique(frame["step"]):
        part, some = frame[frame["step"] == step], groups[groups["step"] == step]
        chosen = some[some["informative"] == 1]
        found.append(
            Step(
                step=int(step),
                rollouts=len(part),
                groups=len(some),
                length=mean_of(part, "length", level=level),
                truncated=mean_of(part, "truncated", level=level, share=True),
                closed=mean_of(part, "closed", level=level, share=True),
                reward=mean_of(part, "reward", level=level),
                informative_groups=len(chosen),
                informative=mean_of(some, "informative", level=level, share=True),
                classes=_shares(chosen),
                seen_classes=_shares(some),
                contested=_contested(chosen, contested),
                seen_contested=_contested(some, contested),
            )
        )
    return tuple(found)


def _shares(groups: pd.DataFrame) -> Mapping[str, float]:
    counts = groups["label"].value_counts()
    return {str(name): float(counts[name]) / int(counts.sum()) for name in sorted(counts.index)}


def _contested(groups: pd.DataFrame, contested: frozenset[str] | None) -> float | None:
    return None if contested is None or groups.empty else float(groups["key"].isin(contested).mean())
