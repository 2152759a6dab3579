"""Error rates of known annotators without a gold standard: Dawid & Skene's model, fitted by EM.

Dawid & Skene, Applied Statistics 28 (1979) 20-28. An item has a true class j with chance pi_j; annotator a labels it l
with chance theta_ajl, each label independent of the others given j. EM starts from the share of each class among an
item's labels (their eq. 3.1), then takes in turn the error rates and class shares (eqs 2.3, 2.4) and the chances of
the truths (eq. 2.5). An annotator may label an item several times.

The tests hold it to the published class shares and error rates of the anaesthetists of that paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse, stats

from audit.errors import ArgumentError
from audit.intervals import check_level, check_seed
from audit.latent import ABSENT, NOT_THERE, SWAP, percentiles
from audit.patterns import FloatArray, IntArray
from audit.results import DependentPair, Estimate, LatentClasses, Rate, Rater, Stratum

__all__ = ["AnnotatorVotes", "DawidSkene", "annotator_errors", "fit_dawid_skene", "votes_of"]

_FEWEST_ITEMS, _MOST_ITERATIONS, _TOLERANCE, _TINY = 30, 500, 1e-8, 1e-12

#: Annotators with fewer labels than this for each further class, or than the second number, share one table.
_FEWEST_LABELS, _ENOUGH_LABELS = 10, 50

#: Annotators that are listed, those with most labels first; pairs of them that are tested, and items a pair needs.
_MOST_RATERS, _MOST_PAIRS, _FEWEST_SHARED = 50, 300, 20

#: Bootstrap samples, and how many label-and-class steps all of them may take together.
_DRAWS, _FEWEST_DRAWS, _WORK = 200, 40, 30_000_000

_DEPENDENT = 0.001


@dataclass(frozen=True, kw_only=True, eq=False)
class AnnotatorVotes:
    """Who gave which label to which item: four arrays of equal length, indices and the number of times.

    ``item`` runs over 0 ... items-1, ``annotator`` and ``label`` index ``annotators`` and ``classes``.
    """

    item: IntArray
    annotator: IntArray
    label: IntArray
    times: IntArray
    items: int
    annotators: tuple[str, ...]
    classes: tuple[str, ...]

    def table(self) -> sparse.csr_array:
        """Times by item and (annotator, label): shape (N, A K)."""
        columns = self.annotator * len(self.classes) + self.label
        shape = (self.items, len(self.annotators) * len(self.classes))
        return sparse.coo_array((self.times.astype(np.float64), (self.item, columns)), shape=shape).tocsr()


@dataclass(frozen=True, kw_only=True, eq=False)
class DawidSkene:
    """A fit: class shares (K,), error rates (A, K, K) as [annotator, truth, label], chances of the truths (N, K)."""

    prevalence: FloatArray
    rates: FloatArray
    truths: FloatArray
    log_likelihood: float
    iterations: int


def fit_dawid_skene(votes: AnnotatorVotes) -> DawidSkene:
    """The maximum-likelihood fit that EM reaches from the shares of the labels."""
    table = votes.table()
    if votes.items == 0 or table.nnz == 0:
        raise ArgumentError("there are no labels to estimate error rates from")
    classes = len(votes.classes)
    shares = np.zeros((votes.items, classes))
    np.add.at(shares, (votes.item, votes.label), votes.times.astype(np.float64))
    truths = shares / np.maximum(shares.sum(axis=1, keepdims=True), _TINY)
    return _climb(table, truths, np.ones(votes.items), classes)


def _climb(
    table: sparse.csr_array,
    truths: FloatArray,
    weights: FloatArray,
    classes: int,
    *,
    tolerance: float = _TOLERANCE,
) -> DawidSkene:
    before, step = -np.inf, 0
    while step < _MOST_ITERATIONS:
        step += 1
        prevalence, rates = _rates(table, truths, weights, classes)
        joint = table @ _by_label(np.log(np.maximum(rates, _TINY))) + np.log(np.maximum(prevalence, _TINY))
        top = joint.max(axis=1, keepdims=True)
        chance = np.exp(joint - top)
        total = chance.sum(axis=1, keepdims=True)
        truths = chance / total
        likelihood = float(weights @ (np.log(total) + top).ravel())
        if likelihood - before <= tolerance * (1.0 + abs(likelihood)):
            break
        before = likelihood
    return DawidSkene(
        prevalence=prevalence, rates=rates, truths=truths, log_likelihood=likelihood, iterations=step
    )


def _by_label(rates: FloatArray) -> FloatArray:
    """(A, J, K) as (A K, J): one row for each annotator and label."""
    return rates.transpose(0, 2, 1).reshape(-1, rates.shape[1])


def _rates(
    table: sparse.csr_array, truths: FloatArray, weights: FloatArray, classes: int
) -> tuple[FloatArray, FloatArray]:
    weighted = truths * weights[:, None]
    rows = (table.T @ weighted).reshape(-1, classes, classes).transpose(0, 2, 1)
    totals = rows.sum(axis=2, keepdims=True)
    rates = np.where(totals > 0.0, rows / np.maximum(totals, _TINY), 1.0 / classes)
    return weighted.sum(axis=0) / weights.sum(), rates


def annotator_errors(
    votes: AnnotatorVotes, *, level: float = 0.95, seed: int = 0, draws: int = _DRAWS
) -> LatentClasses:
    """The fit as a result: class shares, each annotator's error rates, and a test that they err independently.

    Intervals are percentiles of a bootstrap over items; a large file gets fewer draws, a very large one none. ``rates``
    is the mean table of all labels. Annotators with few labels (ten for each class but one, at most fifty) share one
    table: by themselves they could be given any. ``dependent`` lists pairs of annotators whose agreement on the items
    they share is not what their error rates give (normal test of the residual agreement, .001, Bonferroni over pairs).
    """
    check_level(level)
    check_seed(seed)
    method = "Dawid-Skene"
    votes, pooled, fewest = _pooled(votes)
    reason = None
    if votes.items < _FEWEST_ITEMS:
        reason = f"fewer than {_FEWEST_ITEMS} items have repeats"
    elif pooled and len(votes.annotators) == 1:
        reason = (
            f"none of {pooled:,} annotators gave {fewest} labels or more: the latent classes of three labels an item, "
            "which take them as alike, need no names"
        )
    elif len(votes.annotators) < 2:
        reason = "all labels are of one annotator: its errors and the truth cannot be told apart this way"
    elif len(votes.classes) < 2:
        reason = "only one class is declared"
    if reason is not None:
        return LatentClasses(method=method, items=votes.items, reason=reason)
    at = fit_dawid_skene(votes)
    table = votes.table()
    labels = np.asarray(table.sum(axis=0)).reshape(len(votes.annotators), -1).sum(axis=1)
    work = table.nnz * len(votes.classes)
    draws = min(draws, _WORK // max(1, work * 10))
    some = _bootstrap(table, at, draws, seed) if draws >= _FEWEST_DRAWS else None
    notes = [SWAP]
    if pooled:
        notes.append(
            f"{pooled:,} annotators with fewer than {fewest} labels each share one table of error rates"
        )
    if int(np.sum(np.bincount(votes.item, weights=votes.times) >= 3)) < _FEWEST_ITEMS:
        notes.append(
            f"fewer than {_FEWEST_ITEMS} items have three labels, and pairs do not identify the error rates of "
            "annotators: these are one of many tables that fit as well"
        )
    if some is None:
        notes.append("no intervals: the file is too large for a bootstrap of this model")
    return _result(
        votes, at, some, labels, level, method, tuple(notes), named=len(votes.annotators) - bool(pooled)
    )


def _pooled(votes: AnnotatorVotes) -> tuple[AnnotatorVotes, int, int]:
    """The votes with all annotators of few labels as one, the last; their number, and the fewest labels for a name."""
    labels = np.bincount(votes.annotator, weights=votes.times, minlength=len(votes.annotators))
    fewest = min(_FEWEST_LABELS * max(1, len(votes.classes) - 1), _ENOUGH_LABELS)
    few = labels < fewest
    if int(few.sum()) < 2:
        return votes, 0, fewest
    kept = np.flatnonzero(~few)
    place = np.full(len(labels), len(kept))
    place[kept] = np.arange(len(kept))
    names = (*(votes.annotators[int(a)] for a in kept), f"({int(few.sum()):,} others)")
    return replace(votes, annotator=place[votes.annotator], annotators=names), int(few.sum()), fewest


def _bootstrap(
    table: sparse.csr_array, at: DawidSkene, draws: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Class shares (B, K) and error rates (B, A, K, K) from samples of items, each search begun at the fit."""
    rng = np.random.default_rng(seed)
    count, classes = at.truths.shape
    shares, rates = [], []
    for _ in range(draws):
        weights = rng.multinomial(count, np.full(count, 1.0 / count)).astype(np.float64)
        fit = _climb(table, at.truths, weights, classes, tolerance=100.0 * _TOLERANCE)
        shares.append(fit.prevalence)
        rates.append(fit.rates)
    return np.array(shares), np.array(rates)


def _result(
    votes: AnnotatorVotes, at: DawidSkene, some: tuple[FloatArray, FloatArray] | None, labels: FloatArray,
    level: float, method: str, notes: tuple[str, ...], named: int,
) -> LatentClasses:  # fmt: skip
    def limits(value: float, sample: FloatArray | None, count: float) -> dict[str, Any]:
        found = {"method": "none"} if sample is None else percentiles(value, sample, count, level)
        return {"estimate": value, **found}

    shares, tables = some if some is not None else (None, None)
    weight = labels / labels.sum()
    pooled = np.einsum("a,ajk->jk", weight, at.rates)
    pools = None if tables is None else np.einsum("a,bajk->bjk", weight, tables)

    def wrong(pi: FloatArray, theta: FloatArray) -> FloatArray:
        return np.asarray(1.0 - np.einsum("...j,...jj->...", pi, theta), np.float64)

    def square(table: FloatArray, sample: FloatArray | None, items: float) -> tuple[Rate, ...]:
        def rate(j: int, k: int) -> dict[str, Any]:
            count = items * float(at.prevalence[j])
            if votes.items * float(at.prevalence[j]) < NOT_THERE:
                return dict(ABSENT)
            return limits(float(table[j, k]), None if sample is None else sample[:, j, k], count)

        return tuple(
            Rate(truth=votes.classes[j], label=votes.classes[k], **rate(j, k))
            for j in range(len(votes.classes))
            for k in range(len(votes.classes))
        )  # fmt: skip

    raters = []
    for a in sorted(range(len(labels)), key=lambda a: (-labels[a], votes.annotators[a]))[:_MOST_RATERS]:
        sample = None if tables is None or shares is None else (shares, tables[:, a])
        labelled = float(min(votes.items, labels[a]))
        value = float(wrong(at.prevalence, at.rates[a]))
        error = Estimate(**limits(value, None if sample is None else wrong(*sample), labelled))
        raters.append(
            Rater(
                value=votes.annotators[a], labels=int(labels[a]), error=error,
                rates=square(at.rates[a], None if sample is None else sample[1], labelled),
            )
        )  # fmt: skip
    prevalence = tuple(
        Estimate(
            **limits(float(at.prevalence[j]), None if shares is None else shares[:, j], float(votes.items))
        )
        for j in range(len(votes.classes))
    )
    means = None if shares is None or pools is None else wrong(shares, pools)
    mean = Estimate(**limits(float(wrong(at.prevalence, pooled)), means, float(votes.items)))
    pairs, p_value = _dependence(votes, at, named)
    return LatentClasses(
        method=method, items=votes.items, strata=(Stratum(value="", items=votes.items, prevalence=prevalence),),
        rates=square(pooled, pools, float(votes.items)), mean_error=mean, fit_p_value=p_value,
        raters=tuple(raters), dependent=pairs, notes=notes,
    )  # fmt: skip


def _dependence(
    votes: AnnotatorVotes, at: DawidSkene, named: int
) -> tuple[tuple[DependentPair, ...], float | None]:
    """Pairs whose residual agreement is not chance, and the smallest p-value over all pairs tested (Bonferroni).

    Annotators a and b are expected to agree on item i with chance e_i = sum_j P(j | labels of i) sum_l theta_ajl
    theta_bjl, which varies by e_i(1 - e_i). Only the first ``named`` annotators are single ones.
    """
    table, classes = votes.table(), len(votes.classes)
    given = np.asarray((table > 0).sum(axis=0)).reshape(-1, classes).sum(axis=1)
    busy = np.argsort(-given[:named], kind="stable")
    first = int(np.sqrt(2 * _MOST_PAIRS))
    found, tested = [], 0
    shares = {}
    for a in busy[:first]:
        own = table[:, a * classes : (a + 1) * classes].toarray()
        total = own.sum(axis=1, keepdims=True)
        shares[int(a)] = (own / np.maximum(total, 1.0), total.ravel() > 0)
    for place, a in enumerate(busy[:first]):
        for b in busy[place + 1 : first]:
            (one, of_a), (two, of_b) = shares[int(a)], shares[int(b)]
            both = of_a & of_b
            if int(both.sum()) < _FEWEST_SHARED:
                continue
            tested += 1
            agreed = np.sum(one[both] * two[both], axis=1)
            expected = at.truths[both] @ np.sum(at.rates[a] * at.rates[b], axis=1)
            error = float(np.sqrt(np.sum(expected * (1.0 - expected))))
            if error > 0.0:
                p = float(2.0 * stats.norm.sf(abs(float(np.sum(agreed - expected))) / error))
                found.append(
                    (p, int(a), int(b), int(both.sum()), float(agreed.mean()), float(expected.mean()))
                )
    pairs = tuple(
        DependentPair(
            value=f"{votes.annotators[a]} / {votes.annotators[b]}",
            items=n,
            observed=seen,
            expected=wanted,
            p_value=p,
        )
        for p, a, b, n, seen, wanted in sorted(found)[:_MOST_RATERS]
        if p * tested < _DEPENDENT
    )
    return pairs, min(1.0, tested * min(p for p, *_ in found)) if found else None


def votes_of(rows: Sequence[tuple[int, str, int, int]], *, classes: Sequence[str]) -> AnnotatorVotes:
    """Votes from rows of (item, annotator, label's index, times); items are any whole numbers."""
    names = tuple(sorted({annotator for _, annotator, _, _ in rows}))
    place = {name: index for index, name in enumerate(names)}
    keys, item = np.unique(np.array([row[0] for row in rows], np.int64), return_inverse=True)
    return AnnotatorVotes(
        item=np.asarray(item, np.int64), annotator=np.array([place[row[1]] for row in rows], np.int64),
        label=np.array([row[2] for row in rows], np.int64), times=np.array([row[3] for row in rows], np.int64),
        items=len(keys), annotators=names, classes=tuple(classes),
    )  # fmt: skip
