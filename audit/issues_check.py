"""How good the model is, and what the repeats say of its flags: measures over items, each once."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import stats

from audit.fliprate import flip_rate, maximum_disagreement
from audit.intervals import wilson
from audit.issues_results import KnownConflicts, ModelQuality, PartnerCheck
from audit.patterns import FloatArray, IntArray
from audit.results import Estimate

__all__ = ["auc_error", "known_conflicts", "measure", "no_conflicts_known", "no_measure", "partner_check"]

BoolArray = npt.NDArray[np.bool_]
#: Bins of the calibration error, resamples of the partner check, and shuffles behind what is expected by chance.
_BINS = 10
_RESAMPLES = 1_000
_SHUFFLES = 50
_NONE = Estimate(estimate=None, method="none")


def measure(
    code: IntArray, item: IntArray, probabilities: FloatArray, *, kind: str, folds: int | None, level: float
) -> ModelQuality:
    """The model against the labels: ``code`` (R,), ``item`` (R,) in 0 ... N-1, ``probabilities`` (N, K), K >= 2.

    Intervals over items: of the accuracy and the gain ± z standard errors of the mean of items' values; of the AUC by
    Hanley and McNeil, Radiology 143 (1982) 29-36, which for K > 2 takes the classes' errors for one and the same.
    """
    from sklearn.metrics import roc_auc_score

    count, classes = probabilities.shape
    weight = (1.0 / np.bincount(item, minlength=count))[item] / count  # an item's rows weigh 1/N in all
    share = np.bincount(code, weight, minlength=classes)
    given = probabilities[item]
    confidence, told = given.max(axis=1), given.argmax(axis=1)
    right = (told == code).astype(np.float64)
    most = (code == share.argmax()).astype(np.float64)
    z = float(stats.norm.ppf(0.5 + level / 2))
    scores = []
    for k in range(classes):
        a = float(roc_auc_score(code == k, given[:, k], sample_weight=weight))
        ones, others = share[k] * count, (1 - share[k]) * count
        scores.append((a, auc_error(a, ones, others)))
    auc, error = share @ np.array(scores)
    chosen = np.clip(given[np.arange(len(code)), code], 1e-15, 1.0)
    order = np.argsort(confidence, kind="stable")
    bins = np.minimum((np.cumsum(weight[order]) - weight[order] / 2) * _BINS, _BINS - 1).astype(np.int64)
    gaps = np.bincount(bins, (weight * (right - confidence))[order], minlength=_BINS)
    return ModelQuality(
        kind=kind, folds=folds, majority=float(share.max()),
        accuracy=_mean_of_items(right, item, weight, z=z, low=0.0),
        gain=_mean_of_items(right - most, item, weight, z=z),
        auc=Estimate(
            estimate=float(auc), low=max(0.0, auc - z * error), high=min(1.0, auc + z * error),
            method="Hanley-McNeil",
        ),
        log_loss=float(-(weight @ np.log(chosen))), base_log_loss=float(stats.entropy(share)),
        confidence=float(weight @ confidence), calibration_error=float(np.abs(gaps).sum()),
    )  # fmt: skip


def auc_error(auc: float, ones: float, others: float) -> float:
    """The standard error of an AUC over so many positives and negatives (Hanley and McNeil 1982, table II)."""
    q1, q2 = auc / (2 - auc), 2 * auc * auc / (1 + auc)
    variance = auc * (1 - auc) + (ones - 1) * (q1 - auc * auc) + (others - 1) * (q2 - auc * auc)
    return math.sqrt(max(variance, 0.0) / (ones * others))


def _mean_of_items(
    values: FloatArray, item: IntArray, weight: FloatArray, *, z: float, low: float = -1.0
) -> Estimate:
    count = int(item.max()) + 1
    means = np.bincount(item, values * weight, minlength=count) * count
    mean = float(means.mean())
    half = z * float(means.std(ddof=1)) / count**0.5 if count > 1 else 1.0
    return Estimate(
        estimate=mean, low=max(low, mean - half), high=min(1.0, mean + half), method="normal, over items"
    )


def no_measure(reason: str) -> ModelQuality:
    """No model, and why."""
    return ModelQuality(
        kind="no model", folds=None, majority=None, accuracy=_NONE, gain=_NONE, auc=_NONE, log_loss=None,
        base_log_loss=None, confidence=None, calibration_error=None, reason=reason,
    )  # fmt: skip


def no_conflicts_known(table: IntArray) -> KnownConflicts:
    """The counts alone, of labels ``table`` (N, K), where there is no model to check."""
    size = table.sum(axis=1)
    differ = table.max(axis=1) < size
    nothing = PartnerCheck(flagged=None, others=None, precision=_NONE, recall=_NONE, reason="no model")
    return KnownConflicts(
        conflicts=int(differ.sum()), unanimous=int((~differ & (size > 1)).sum()), recall=_NONE, recall_by_chance=None,
        false=_NONE, false_by_chance=None, precision=_NONE, precision_by_chance=None, auc=None, auc_by_chance=None,
        doubt_auc=None, partners=nothing,
    )  # fmt: skip


def known_conflicts(
    code: IntArray, item: IntArray, probabilities: FloatArray, flagged: BoolArray, *,
    shuffle: Callable[[IntArray, np.random.Generator], tuple[BoolArray, FloatArray]], level: float, seed: int,
) -> KnownConflicts:  # fmt: skip
    """Flags and scores of repeated items that are in conflict against those that are not.

    ``shuffle`` takes the repeated items and gives the flags (R,) and scores (R,) with their probabilities dealt anew.
    """
    size = np.bincount(item)
    table = np.zeros(probabilities.shape, np.int64)
    np.add.at(table, (item, code), 1)
    repeated = np.flatnonzero(size >= 2)
    differ = (table[repeated].max(axis=1) < size[repeated]).astype(np.bool_)
    scores = probabilities[item, code]
    partners = partner_check(code, item, table, flagged, level=level, seed=seed)

    def by_item(flags: BoolArray, values: FloatArray) -> tuple[BoolArray, FloatArray]:
        lowest = np.full(len(size), np.inf)
        np.minimum.at(lowest, item, values)
        return np.bincount(item, flags)[repeated] > 0, lowest[repeated]

    found, lowest = by_item(flagged, scores)
    chance = [np.nan] * 4
    if differ.any() and not differ.all():
        rng = np.random.default_rng(seed)
        tried = []
        for _ in range(_SHUFFLES):
            hit, low = by_item(*shuffle(repeated, rng))
            tried.append((hit[differ].mean(), hit[~differ].mean(), _share(differ, hit), _auc(-low, differ)))
        chance = [
            float(np.nanmean(column)) if not np.all(np.isnan(column)) else np.nan
            for column in np.array(tried).T
        ]
    doubt = 1.0 - probabilities.max(axis=1)[repeated]
    return KnownConflicts(
        conflicts=int(differ.sum()), unanimous=int((~differ).sum()),
        recall=_wilson(found[differ], level), recall_by_chance=_known(chance[0]),
        false=_wilson(found[~differ], level), false_by_chance=_known(chance[1]),
        precision=_wilson(differ[found], level), precision_by_chance=_known(chance[2]),
        auc=_known(_auc(-lowest, differ)), auc_by_chance=_known(chance[3]), doubt_auc=_known(_auc(doubt, differ)),
        partners=partners,
    )  # fmt: skip


def partner_check(
    code: IntArray, item: IntArray, table: IntArray, flagged: BoolArray, *, level: float, seed: int
) -> PartnerCheck:
    """Precision and recall of flags from the other labels of flagged ones; ``table`` (N, K) counts labels.

    A wrong label differs from another label of its item with chance 1 - ε/(K-1), a right one with chance ε, if flips
    are independent, equally frequent and spread evenly. So the share of differing labels among flagged ones is
    q(1 - ε/(K-1)) + (1-q)ε, which is solved for q: the correction of a measured score for noise, used on flags. The
    probabilities are out of fold, so that a flag depends on no other label of the item. Intervals: percentiles of a
    bootstrap over items.
    """
    classes = table.shape[1]
    size = table.sum(axis=1)
    rows = np.flatnonzero(size[item] >= 2)
    n = size[item[rows]]
    differ = (n - table[item[rows], code[rows]]) / (n - 1)
    marked = flagged[rows]
    places, place = np.unique(item[rows], return_inverse=True)
    per = [
        np.bincount(place, values / n, minlength=len(places))
        for values in (differ, marked.astype(np.float64), marked * differ)
    ]
    if not len(places) or not marked.any():
        reason = "no repeated item" if not len(places) else "no label of a repeated item is flagged"
        return PartnerCheck(flagged=None, others=None, precision=_NONE, recall=_NONE, reason=reason)
    d, share, both = (float(values.mean()) for values in per)
    others = (d - both) / (1 - share) if share < 1 else None
    precision, recall = _solved(d, share, both, classes)
    if precision is None or recall is None:
        reason = "d is 0 or too high: there is no flip rate to solve for"
        return PartnerCheck(flagged=both / share, others=others, precision=_NONE, recall=_NONE, reason=reason)
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(_RESAMPLES):
        drawn = rng.integers(0, len(places), len(places))
        again = [float(values[drawn].mean()) for values in per]
        pair = _solved(again[0], again[1], again[2], classes)
        if pair[0] is not None:
            found.append(pair)
    ends = [None, None], [None, None]
    if len(found) > _RESAMPLES // 2:
        limits = np.quantile(np.array(found, np.float64), [0.5 - level / 2, 0.5 + level / 2], axis=0)
        ends = limits[:, 0].tolist(), limits[:, 1].tolist()
    method = "bootstrap over items, percentiles"
    return PartnerCheck(
        flagged=both / share, others=others,
        precision=Estimate(estimate=precision, low=ends[0][0], high=ends[0][1], method=method),
        recall=Estimate(estimate=recall, low=ends[1][0], high=ends[1][1], method=method),
    )  # fmt: skip


def _solved(d: float, share: float, both: float, classes: int) -> tuple[float | None, float | None]:
    """Precision and recall from d, the share of labels with a flag, and that of labels with a flag that differ."""
    if share <= 0 or not 0 < d < maximum_disagreement(classes) - 1e-9:
        return None, None
    rate = flip_rate(d, classes=classes)
    precision = (both / share - rate) / (1 - rate * classes / (classes - 1))
    return precision, precision * share / rate


def _auc(scores: FloatArray, positive: BoolArray) -> float:
    """The chance that a positive has a higher score than a negative, ties half (Mann and Whitney, 1947)."""
    ones, others = int(positive.sum()), int((~positive).sum())
    if not ones or not others:
        return float("nan")
    ranks = stats.rankdata(scores)
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * others))


def _share(of: BoolArray, among: BoolArray) -> float:
    return float(of[among].mean()) if among.any() else float("nan")


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _wilson(hits: BoolArray, level: float) -> Estimate:
    if not len(hits):
        return _NONE
    low, high = wilson(int(hits.sum()), len(hits), level=level)
    return Estimate(estimate=float(hits.mean()), low=low, high=high, method="Wilson")
