"""Counts of what ought not to be in rollouts: several close tags, rewards against the answer, odd groups."""

from __future__ import annotations

import numpy as np
import pandas as pd

from train.plumbing_results import Checks

__all__ = ["check_rollouts"]

#: The mean advantage of a group may be off by this share of its largest: advantages are logged in single precision.
_ROUNDING = 1e-3


def check_rollouts(frame: pd.DataFrame, *, close_tag: str) -> Checks:
    """Count them; None where the log cannot tell, with the reason for the answers."""
    reward = frame["reward"]
    paid = reward > reward.min()
    tags = _tags(frame["text"], close_tag)
    several = tags.gt(1) if tags is not None else None
    in_prompts = _tags(frame.drop_duplicates("prompt")["prompt"], close_tag)
    right, reason = _right(frame)
    whole = frame["truncated"].ne(1) & frame["closed"].ne(0) & reward.notna()
    sizes = frame["group"].value_counts()
    return Checks(
        several_tags=None if several is None else int(several.sum()),
        several_tags_paid=None if several is None else int((several & paid).sum()),
        several_tags_closed=None if several is None else int((several & frame["closed"].eq(1)).sum()),
        tags_in_prompts=None if in_prompts is None else int(in_prompts.gt(0).sum()),
        answered=None if right is None else int((right.notna() & reward.notna()).sum()),
        right_unpaid=None if right is None else int((right.eq(1) & whole & ~paid).sum()),
        wrong_paid=None if right is None else int((right.eq(0) & reward.notna() & paid).sum()),
        groups_of_one=int((sizes == 1).sum()),
        uneven_groups=int((sizes != sizes.mode().max()).sum()),
        uncentred_groups=_uncentred(frame),
        reason=reason,
    )


def _tags(texts: pd.Series, close_tag: str) -> pd.Series | None:
    if not close_tag or texts.isna().all():
        return None
    return pd.Series([(text or "").count(close_tag) for text in texts], index=texts.index)


def _right(frame: pd.DataFrame) -> tuple[pd.Series | None, str | None]:
    """Whether the answer is the label, 1 or 0, NaN where there is none; or the reason why that tells nothing."""
    if frame["answer"].isna().all() or frame["label"].isna().all():
        return None, "answers or labels are not in the log"
    values = frame["reward"].dropna().unique()
    if len(values) > 2:
        return None, f"rewards take {len(values):,} values: right and wrong answers cannot be told from them"
    if len(values) < 2:
        return None, "all rewards are the same"
    known = frame["answer"].notna() & frame["label"].notna()
    right = frame["answer"].fillna("").str.strip() == frame["label"].fillna("").str.strip()
    return right.astype(np.float64).where(known), None


def _uncentred(frame: pd.DataFrame) -> int | None:
    """Groups whose advantages, of the rollouts that have a reward, do not sum to nought."""
    known = frame[frame["advantage"].notna() & frame["reward"].notna()]
    if known.empty:
        return None
    groups = known.assign(size=known["advantage"].abs()).groupby("group")
    mean, largest = groups["advantage"].mean(), groups["size"].max()
    return int((mean.abs() > _ROUNDING * largest).sum())
