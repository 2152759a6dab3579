"""Cascades by confidence: the metrics of every share of items that a cheap model hands over, for many draws at once.

A cascade sends the share q of a's least confident items to b. Items are cut into groups of equal confidence rank, ties
kept together; between the cuts the metrics run on straight lines, as if the order within a group were a coin. Random
routing of the share q lies on the straight line from a to b. Sources: Viola & Jones, CVPR 2001 (cascades); El-Yaniv &
Wiener, J. Mach. Learn. Res. 11 (2010) 1605-1641 (coverage by confidence).
"""

from __future__ import annotations

import numpy as np

from audit.errors import InputError
from train.metrics import Bools, Floats, Ints
from train.scores import Scores

__all__ = ["SHARES", "Cascade", "confidence_of", "cuts"]

#: Shares of the items that go to b.
SHARES = np.linspace(0.0, 1.0, 21)


def confidence_of(scores: Scores) -> Floats:
    """How sure a model is of each answer: its column, or the score of the answer; none is least sure."""
    if scores.confidence is not None:
        if np.isnan(scores.confidence).any():
            raise InputError(f"{scores.source}: a row has no confidence: fill that column or leave it out")
        return scores.confidence
    sure = np.where(scores.predicted == 1, scores.scores, 1.0 - scores.scores)
    return np.where(scores.predicted == -1, -1.0, sure)


def cuts(confidence: Floats, groups: int) -> Ints:
    """The group of each item, from the least confident: about equal sizes, equal confidence in one group."""
    rank = np.searchsorted(np.sort(confidence), confidence, side="left")
    return np.unique(rank * groups // len(confidence), return_inverse=True)[1].astype(np.int64)


class Cascade:
    """Counts by group of confidence, class and who is right, and the curves that follow from them."""

    def __init__(self, truth: Bools, a_right: Bools, b_right: Bools, group: Ints) -> None:
        cell = group * 8 + truth * 4 + a_right * 2 + b_right
        self._order = np.argsort(cell, kind="stable")
        cells, self._starts = np.unique(cell[self._order], return_index=True)
        self._groups = int(group.max()) + 1
        kind = cells % 8
        parts = [np.ones(len(cells)), kind >= 4, (kind // 2) % 2 * (kind >= 4), (kind // 2) % 2 * (kind < 4),
                 kind % 2 * (kind >= 4), kind % 2 * (kind < 4)]  # fmt: skip
        where = np.eye(self._groups)[cells // 8]
        self._map = np.concatenate([where * np.asarray(p, np.float64)[:, None] for p in parts], axis=1)
        self._who = np.stack([kind % 4 == 3, kind % 4 == 2, kind % 4 == 1], axis=1).astype(np.float64)

    def measure(self, weights: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """(curves (2, B, shares), areas (2, B), gain by group (B, groups, 3), shares both/only a/only b (B, 3))."""
        totals = np.add.reduceat(np.take(weights, self._order, axis=1), self._starts, axis=1)
        size, pos, ap, an, bp, bn = np.split(totals @ self._map, 6, axis=1)
        rows, n = len(totals), totals.sum(axis=1, keepdims=True)
        positives = pos.sum(axis=1, keepdims=True)

        def along(a: Floats, b: Floats) -> Floats:
            start = a.sum(axis=1, keepdims=True)
            return np.concatenate([start, start + np.cumsum(b - a, axis=1)], axis=1)

        right_p, right_n = along(ap, bp), along(an, bn)
        with np.errstate(invalid="ignore", divide="ignore"):
            metrics = np.stack(
                [(right_p + right_n) / n, (right_p / positives + right_n / (n - positives)) / 2.0]
            )
            by_group = np.stack([(ap + an) / size, (bp + bn) / size, size / n], axis=2)
        share = np.concatenate([np.zeros((rows, 1)), np.cumsum(size, axis=1)], axis=1) / np.maximum(n, 1e-300)
        trapezia = (metrics[:, :, 1:] + metrics[:, :, :-1]) / 2.0 * np.diff(share, axis=1)
        areas = trapezia.sum(axis=2) - (metrics[:, :, 0] + metrics[:, :, -1]) / 2.0
        curves = np.stack([[np.interp(SHARES, s, v) for s, v in zip(share, m, strict=True)] for m in metrics])
        return curves, areas, by_group, totals @ self._who / np.maximum(n, 1e-300)
