"""Rollouts with known mechanisms, one row per completion, as a run would have logged them.

Of a clean run: items differ in difficulty, hard items are thought about longer, some have labels that disagree, the
model gets better over the steps; none of that depends on the class, and inside a group length says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

__all__ = ["Plan", "make_rollouts"]

Mechanism = Literal[
    "cap", "cut left out", "gate", "long is worse", "drift", "mix", "contested", "quoted tag", "unpaid", "paid",
    "filtered",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Sizes and mechanisms. ``share`` is that of class 1, ``contested`` that of items whose labels disagree."""

    steps: int = 30
    groups: int = 16
    size: int = 8
    items: int = 240
    share: float = 0.5
    contested: float = 0.15
    planted: tuple[Mechanism, ...] = ()


def make_rollouts(plan: Plan, *, seed: int, texts: bool = True) -> tuple[pd.DataFrame, list[str]]:
    """The rollouts of a run, and the items whose labels disagree."""
    rng = np.random.default_rng(seed)
    names = np.array([f"Item {n}" for n in range(plan.items)])
    label = (rng.random(plan.items) < plan.share).astype(int)
    contested = rng.random(plan.items) < plan.contested
    hard = rng.normal(size=plan.items)
    epochs = -(-plan.steps * plan.groups // plan.items)
    order = np.concatenate([rng.permutation(plan.items) for _ in range(epochs)])[: plan.steps * plan.groups]
    step = np.repeat(np.arange(1, plan.steps + 1), plan.groups)
    progress = (step - 1) / max(plan.steps - 1, 1)
    chance = _chance(plan, rng, label[order], contested[order], hard[order], progress)

    shape = (len(order), plan.size)
    item = np.repeat(order, plan.size)
    right = (rng.random(shape) < chance[:, None]).ravel()
    length = np.exp(rng.normal(4.6 + 0.25 * hard[order][:, None], 0.5, shape)).ravel().round().clip(2)
    standing = (np.log(length) - 4.6) / 0.5
    if "long is worse" in plan.planted:
        right &= rng.random(right.size) > 0.25 * np.clip(standing, 0.0, 2.0)
    truncated = np.zeros(right.size, bool)
    cap = 180.0
    if {"cap", "cut left out"} & set(plan.planted):
        truncated, length = length > cap, np.minimum(length, cap)
    closed = ~truncated
    if "gate" in plan.planted:
        closed &= rng.random(right.size) > 0.25 * np.clip(standing, 0.0, 2.0)
    answer = np.where(right, label[item], 1 - label[item]).astype(str).astype(object)
    answer[~closed] = None
    reward = (right & closed).astype(float)
    if "cut left out" in plan.planted:
        reward[truncated] = np.nan
    tags = np.where(closed, 1, 0)
    if "quoted tag" in plan.planted:
        tags[(rng.random(right.size) < 0.02) & closed] = 2
    if "unpaid" in plan.planted:
        reward[(reward == 1) & (rng.random(right.size) < 0.02)] = 0.0
    if "paid" in plan.planted:
        reward[(reward == 0) & closed & (rng.random(right.size) < 0.02)] = 1.0
    frame = pd.DataFrame(
        {
            "step": np.repeat(step, plan.size),
            "group": np.tile(np.repeat(np.arange(plan.groups), plan.size), plan.steps),
            "sample": np.tile(np.arange(plan.size), len(order)),
            "item": names[item],
            "label": label[item].astype(str),
            "length": length.astype(int),
            "truncated": truncated,
            "closed": closed,
            "answer": answer,
            "reward": reward,
        }
    )
    means = frame.groupby(["step", "group"])["reward"].transform("mean")
    frame["advantage"] = (frame["reward"] - means).fillna(0.0).astype(np.float32)
    if texts:
        frame["text"] = [
            "thought " + "</think>" * count + (last or "") for count, last in zip(tags, answer, strict=True)
        ]
    if "filtered" in plan.planted:
        mixed = frame.groupby(["step", "group"])["reward"].transform("nunique") > 1
        frame = frame[mixed].reset_index(drop=True)
    return frame, [str(name) for name in names[contested]]


def _chance(
    plan: Plan,
    rng: np.random.Generator,
    label: np.ndarray,
    contested: np.ndarray,
    hard: np.ndarray,
    progress: np.ndarray,
) -> np.ndarray:
    """The chance of a right answer of each group."""
    score = 1.2 + 1.0 * progress - 1.6 * hard
    if "drift" in plan.planted:  # one class is learnt to the end, the other is not
        score = score + np.where(label == 1, -1.0, 1.0) * 4.0 * progress
    if "mix" in plan.planted:  # from the start one class is easy
        score = np.where(label == 1, -0.2 * hard, 4.5 - hard)
    if "contested" in plan.planted:
        score = np.where(contested, rng.normal(0.0, 0.3, score.size), 4.5 - hard)
    return 1.0 / (1.0 + np.exp(-score))
