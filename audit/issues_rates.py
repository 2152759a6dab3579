"""The flip rate by the model beside that of the repeats: in the whole file, and in the same items."""

from __future__ import annotations

import numpy as np

from audit.fliprate import flip_rate, maximum_disagreement
from audit.issues_noise import Confident, model_flip_rate, resampled_flip_rate
from audit.issues_results import ModelRates
from audit.issues_rows import LabelledRows
from audit.paired import paired_difference
from audit.patterns import FloatArray, IntArray
from audit.results import Estimate, FlipRate

__all__ = ["NO_RATES", "set_beside"]

_NONE = Estimate(estimate=None, method="none")
NO_RATES = ModelRates(
    whole=_NONE, difference=_NONE, repeated=_NONE, rest=_NONE, harder=_NONE, same_items=_NONE
)
#: Labels of each class that a part of the file must have for a rate of its own.
_FEWEST = 5


def set_beside(
    learned: Confident, rows: LabelledRows, table: IntArray, p: FloatArray, rate: FlipRate, *, level: float,
    draws: int, seed: int,
) -> ModelRates:  # fmt: skip
    """The flip rate by the model with its interval, and that less the one by the repeats.

    All are estimated anew on resamples of items, for their spread and their correlation with the rate by the repeats;
    differences have the MOVER interval. Repeated items and the rest are parts of their own only where each class has
    five labels or more in both.
    """
    rng = np.random.default_rng([seed, 1])
    size = table.sum(axis=1)
    pairs = (size * (size - 1)).clip(1)
    scores = np.where(size > 1, 1.0 - (table * (table - 1)).sum(axis=1) / pairs, 0.0)
    classes, given = len(rows.classes), p[rows.item]
    repeated = (size > 1)[rows.item]
    parts = (repeated, ~repeated)
    apart = all(np.bincount(rows.code[part], minlength=classes).min() >= _FEWEST for part in parts)
    drawn = np.full(
        (draws, 4), np.nan
    )  # by the model, by the repeats, by the model in repeated items and in the rest
    for one in drawn:
        items = np.bincount(rng.integers(0, rows.items, rows.items), minlength=rows.items)
        times = items[rows.item]
        one[0] = resampled_flip_rate(rows.code, given, times)
        twice = items[size > 1].sum()
        d = float(items @ scores) / twice if twice else np.nan
        if d <= maximum_disagreement(classes):
            one[1] = flip_rate(d, classes=classes)
        if apart:
            one[2:] = [resampled_flip_rate(rows.code, given, times * part) for part in parts]
    whole = model_flip_rate(learned.flip_rate, drawn[:, 0], level=level)
    difference = paired_difference(rate, whole, correlation=_correlation(drawn[:, :2]))
    known = drawn[~np.isnan(drawn).any(axis=1)]
    if not apart or len(known) < draws // 2:
        return ModelRates(
            whole=whole, difference=difference, repeated=_NONE, rest=_NONE, harder=_NONE, same_items=_NONE
        )
    in_repeated, in_rest = (
        model_flip_rate(
            resampled_flip_rate(rows.code, given, part.astype(np.int64)), known[:, 2 + k], level=level
        )
        for k, part in enumerate(parts)
    )
    return ModelRates(
        whole=whole, difference=difference, repeated=in_repeated, rest=in_rest,
        harder=paired_difference(in_rest, in_repeated, correlation=0.0),
        same_items=paired_difference(rate, in_repeated, correlation=_correlation(known[:, 1:3])),
    )  # fmt: skip


def _correlation(drawn: FloatArray) -> float:
    known = drawn[~np.isnan(drawn).any(axis=1)]
    moved = len(known) > 2 and bool(np.all(known.std(axis=0) > 1e-12))
    return float(np.corrcoef(known[:, 0], known[:, 1])[0, 1]) if moved else 0.0
