"""Error rates without a gold standard, annotators unknown: latent classes from repeats, or from strata.

Each item has a true class j, with chance pi_sj in its stratum s; its labels are independent draws from row j of one
table theta (theta_jl is the chance that a true j is labelled l), the same for all items, annotators and strata. An
item's chance is sum_j pi_sj prod_l theta_jl^(n_l); the estimates maximise the likelihood by EM (Dempster, Laird &
Rubin, J. R. Stat. Soc. B 39 (1977) 1-38). Two cases are identified:

- three or more labels an item, one stratum (Lazarsfeld & Henry 1968; Kruskal 1977 for K > 2);
- pairs, and two or more strata with different class shares (Hui & Walter, Biometrics 36 (1980) 167-171, here with
  two exchangeable labels); more strata than two also test the model.

What no data show: which latent class is which. The classes are named so that labels are right as often as possible
(binary: e01 + e10 < 1); if labels are wrong more often than right, all names are swapped, and nothing tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, special, stats

from audit.intervals import check_level, check_seed, no_conflict_upper
from audit.patterns import CountPatterns, FloatArray
from audit.results import Estimate, LatentClasses, Rate, Stratum

__all__ = ["ABSENT", "NOT_THERE", "SWAP", "latent_classes", "percentiles"]

#: What no data show, told with every estimate.
SWAP = "classes are named so that labels are right as often as possible; were most labels wrong, all names would swap"

#: A class with fewer true items than this has no error rates that could be told.
NOT_THERE = 0.5
ABSENT: dict[str, Any] = {"estimate": None, "method": "none"}

#: Strata whose class shares may be the same at this level identify nothing.
_ALIKE = 0.01

_FEWEST_ITEMS, _MOST_ITERATIONS, _TOLERANCE, _TINY = 30, 3_000, 1e-9, 1e-12

#: Chances of a right label from which the search starts.
_STARTS = (0.9, 0.75, 0.6)

#: Singular values of the model below this share of the largest mean that the labels do not identify it.
_SINGULAR = 1e-5

#: Bootstrap samples, and cells of one batch of them.
_DRAWS, _BATCH = 200, 4_000_000


@dataclass(frozen=True, kw_only=True)
class _Data:
    """Distinct rows of counts (P, K), the stratum of each (P,) and its items (P,)."""

    counts: FloatArray
    stratum: FloatArray
    items: FloatArray
    strata: int


def latent_classes(
    parts: Mapping[str, CountPatterns], *, level: float = 0.95, seed: int = 0, draws: int = _DRAWS
) -> LatentClasses:
    """Error rates from the repeats of one stratum, or of several that share them.

    Parameters
    ----------
    parts:
        Count patterns by stratum, of the same classes; one entry where there are no strata.
    draws:
        Bootstrap samples of items for the intervals (percentiles).

    Returns
    -------
    LatentClasses
        With a reason and no numbers where fewer than thirty items have repeats, where the repeats have fewer free
        numbers than the model, or where the model is singular at the estimate (strata alike, labels that say nothing).
    """
    check_level(level)
    check_seed(seed)
    several = len(parts) > 1
    method = "Hui-Walter" if several else "latent classes"
    used = {name: part.repeated for name, part in sorted(parts.items()) if part.repeated.item_total > 0}
    items = sum(part.item_total for part in used.values())
    if several and len(used) < 2:
        return LatentClasses(method=method, items=items, reason="fewer than two strata have repeated items")
    if items < _FEWEST_ITEMS:
        return LatentClasses(
            method=method, items=items, reason=f"fewer than {_FEWEST_ITEMS} items have repeats"
        )
    classes = next(iter(used.values())).classes
    if len(classes) < 2:
        return LatentClasses(method=method, items=items, reason="only one class is declared")
    if several and (p := _alike(used)) > _ALIKE:
        reason = f"the strata do not differ in their class shares (p = {p:.2g}), so they identify nothing"
        return LatentClasses(method=method, items=items, reason=reason)
    data = _gather(used)
    free = sum(_free(part, len(classes)) for part in used.values())
    unknown = _unknown(data, len(classes))
    if free < unknown:
        why = "more strata or labels an item do" if several else "several strata or three labels an item do"
        return LatentClasses(
            method=method, items=items, reason=f"these repeats do not identify the error rates: {why}"
        )
    shares, table = _fit(data, len(classes))
    if _is_singular(data, shares, table):
        why = (
            "the strata do not differ in their class shares"
            if several
            else "the labels say too little of the truth"
        )
        return LatentClasses(
            method=method, items=items, reason=f"the error rates are not identified at the estimate: {why}"
        )
    p_value, df = _fit_test(data, shares, table, used, unknown)
    some = _bootstrap(data, shares, table, draws=draws, seed=seed)
    return _result(method, classes, used, (shares, table), some, level, (p_value, df))


def _gather(used: Mapping[str, CountPatterns]) -> _Data:
    counts = np.vstack([part.counts.toarray() for part in used.values()]).astype(np.float64)
    owner = np.repeat(np.arange(len(used)), [len(part.items) for part in used.values()])
    items = np.concatenate([part.items for part in used.values()]).astype(np.float64)
    return _Data(counts=counts, stratum=owner.astype(np.float64), items=items, strata=len(used))


def _free(part: CountPatterns, classes: int) -> int:
    """Free numbers that a stratum's counts show: those of its largest n."""
    return int(special.comb(int(part.sizes.max()) + classes - 1, classes - 1)) - 1


def _unknown(data: _Data, classes: int) -> int:
    return data.strata * (classes - 1) + classes * (classes - 1)


def _posterior(data: _Data, shares: FloatArray, table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Chance of each truth of each pattern, and the log-likelihood of a pattern; batches in front: (..., P, J)."""
    logs = np.log(np.maximum(table, _TINY))
    joint = np.einsum("pl,...jl->...pj", data.counts, logs)
    joint = joint + np.log(np.maximum(shares, _TINY))[..., data.stratum.astype(np.int64), :]
    total = special.logsumexp(joint, axis=-1)
    return np.exp(joint - total[..., None]), np.asarray(total, np.float64)


def _step(
    data: _Data, items: FloatArray, shares: FloatArray, table: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """One step of EM for items (..., P); the third is the log-likelihood before it."""
    posterior, likelihood = _posterior(data, shares, table)
    weighted = posterior * items[..., None]
    member = data.stratum[None, :] == np.arange(data.strata)[:, None]
    new = np.einsum("sp,...pj->...sj", member.astype(np.float64), weighted)
    new = new / np.maximum(new.sum(axis=-1, keepdims=True), _TINY)
    rows = np.einsum("...pj,pl->...jl", weighted, data.counts)
    rows = rows / np.maximum(rows.sum(axis=-1, keepdims=True), _TINY)
    return new, rows, np.asarray((likelihood * items).sum(axis=-1), np.float64)


def _climb(
    data: _Data, items: FloatArray, shares: FloatArray, table: FloatArray, *, most: int = _MOST_ITERATIONS
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """EM until the log-likelihood of no sample grows by more than a billionth an item."""
    before: FloatArray = np.full(items.shape[:-1], -np.inf)
    for _ in range(most):
        shares, table, likelihood = _step(data, items, shares, table)
        if np.all(likelihood - before <= _TOLERANCE * items.sum(axis=-1)):
            break
        before = likelihood
    return shares, table, likelihood


def _fit(data: _Data, classes: int) -> tuple[FloatArray, FloatArray]:
    """The best of several searches, classes in the order in which labels are right most often."""
    found = []
    for right in _STARTS:
        table = np.full((classes, classes), (1.0 - right) / (classes - 1))
        np.fill_diagonal(table, right)
        total = (data.counts * data.items[:, None]) / data.counts.sum(axis=1, keepdims=True)
        member = data.stratum[None, :] == np.arange(data.strata)[:, None]
        start = member.astype(np.float64) @ total
        found.append(_climb(data, data.items, start / start.sum(axis=1, keepdims=True), table))
    shares, table, _ = max(found, key=lambda fit: float(fit[2]))
    return _named(data, shares, table)


def _named(data: _Data, shares: FloatArray, table: FloatArray) -> tuple[FloatArray, FloatArray]:
    weight = np.bincount(data.stratum.astype(np.int64), weights=data.items) @ shares
    truth, name = optimize.linear_sum_assignment(-(weight / weight.sum())[:, None] * table)
    order = truth[np.argsort(name)]
    return shares[:, order], table[order]


def _is_singular(data: _Data, shares: FloatArray, table: FloatArray) -> bool:
    """Whether some change of the parameters leaves the chances of all patterns as they are, to first order.

    Chances at the edge (0) are left alone: there the estimate is held by the edge.
    """
    point = np.concatenate([np.clip(shares, 1e-4, 1.0).ravel(), np.clip(table, 1e-4, 1.0).ravel()])

    def logs(values: FloatArray) -> FloatArray:
        pi = values[: shares.size].reshape(shares.shape)
        theta = values[shares.size :].reshape(table.shape)
        pi, theta = pi / pi.sum(axis=1, keepdims=True), theta / theta.sum(axis=1, keepdims=True)
        return np.sqrt(data.items) * _posterior(data, pi, theta)[1]

    columns = []
    inside = np.flatnonzero(point > 1e-3)
    for place in inside:
        step = np.zeros_like(point)
        step[place] = 1e-5 * point[place]
        columns.append((logs(point + step) - logs(point - step)) / 2e-5)
    values = np.linalg.svd(np.column_stack(columns), compute_uv=False)
    # each row of chances sums to 1: as many directions say nothing
    unknown = len(inside) - len(shares) - len(table)
    if unknown < 1:
        return False
    return len(values) < unknown or bool(values[unknown - 1] < _SINGULAR * max(values[0], _TINY))


def _fit_test(
    data: _Data, shares: FloatArray, table: FloatArray, used: Mapping[str, CountPatterns], unknown: int
) -> tuple[float | None, int | None]:
    """Likelihood-ratio test of the model against free chances of all counts, within stratum and n.

    Cells with fewer than one expected item are taken together. None where nothing is left to test.
    """
    sizes = data.counts.sum(axis=1)
    orders = special.gammaln(sizes + 1.0) - special.gammaln(data.counts + 1.0).sum(axis=1)
    chance = np.exp(_posterior(data, shares, table)[1] + orders)
    distance, df = 0.0, -unknown
    for key in {(s, n) for s, n in zip(data.stratum, sizes, strict=True)}:
        here = (data.stratum == key[0]) & (sizes == key[1])
        seen, expected = data.items[here], chance[here] * data.items[here].sum()
        large = expected >= 1.0
        seen = np.append(seen[large], seen[~large].sum())
        expected = np.append(expected[large], max(seen.sum() - expected[large].sum(), 0.0))
        kept = expected > 0.5
        some = seen[kept] > 0
        distance += 2.0 * float(np.sum(seen[kept][some] * np.log(seen[kept][some] / expected[kept][some])))
        df += int(kept.sum()) - 1
    if df < 1:
        return None, None
    return float(stats.chi2.sf(max(distance, 0.0), df)), df


def _bootstrap(
    data: _Data, shares: FloatArray, table: FloatArray, *, draws: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Estimates from samples of the items of each stratum: (B, S, J) and (B, J, K)."""
    rng = np.random.default_rng(seed)
    items = np.zeros((draws, len(data.items)))
    for stratum in range(data.strata):
        here = np.flatnonzero(data.stratum == stratum)
        total = data.items[here].sum()
        items[:, here] = rng.multinomial(int(total), data.items[here] / total, size=draws)
    out_shares, out_table = np.empty((draws, *shares.shape)), np.empty((draws, *table.shape))
    batch = max(1, _BATCH // (len(data.items) * table.shape[0]))
    for start in range(0, draws, batch):
        part = slice(start, min(start + batch, draws))
        count = part.stop - part.start
        out_shares[part], out_table[part], _ = _climb(
            data, items[part], np.tile(shares, (count, 1, 1)), np.tile(table, (count, 1, 1)), most=1_000
        )
    return out_shares, out_table


def _result(
    method: str, classes: tuple[str, ...], used: Mapping[str, CountPatterns], at: tuple[FloatArray, FloatArray],
    some: tuple[FloatArray, FloatArray], level: float, test: tuple[float | None, int | None],
) -> LatentClasses:  # fmt: skip
    shares, table = at
    weight = np.array([part.item_total for part in used.values()], np.float64)
    weight /= weight.sum()

    total = sum(part.item_total for part in used.values())

    def estimate(value: float, sample: FloatArray, count: float) -> dict[str, Any]:
        return {"estimate": float(value), **percentiles(float(value), sample, count, level)}

    def wrong(pi: FloatArray, theta: FloatArray) -> FloatArray:
        right = np.diagonal(theta, axis1=-2, axis2=-1)
        return np.asarray(1.0 - np.einsum("s,...sj,...j->...", weight, pi, right), np.float64)

    def rate(j: int, k: int) -> dict[str, Any]:
        count = total * float(weight @ shares[:, j])
        return ABSENT if count < NOT_THERE else estimate(table[j, k], some[1][:, j, k], count)

    rates = tuple(
        Rate(truth=classes[j], label=classes[k], **rate(j, k))
        for j in range(len(classes))
        for k in range(len(classes))
    )
    strata = []
    for s, (name, part) in enumerate(used.items()):
        found = [estimate(shares[s, j], some[0][:, s, j], part.item_total) for j in range(len(classes))]
        prevalence = tuple(Estimate(**one) for one in found)
        strata.append(Stratum(value=name, items=part.item_total, prevalence=prevalence))
    return LatentClasses(
        method=method, items=total, strata=tuple(strata), rates=rates,
        mean_error=Estimate(**estimate(float(wrong(shares, table)), wrong(*some), total)),
        fit_p_value=test[0], fit_df=test[1], notes=(SWAP,),
    )  # fmt: skip


def percentiles(value: float, sample: FloatArray, count: float, level: float) -> dict[str, float | str]:
    """Limits from bootstrap estimates of a chance that rests on ``count`` items.

    A chance of 0 or 1 is the same in every sample; its other limit is that of no event among ``count`` items.
    """
    low, high = (float(q) for q in np.quantile(sample, [(1.0 - level) / 2.0, (1.0 + level) / 2.0]))
    if min(value, 1.0 - value) < 1e-6:
        open_ = no_conflict_upper(max(1, round(count)), level=level)
        low, high = (0.0, max(high, open_)) if value < 0.5 else (min(low, 1.0 - open_), 1.0)
    # a model that hardly fits, or searches that end elsewhere, may leave all samples on one side of the estimate
    return {"low": min(low, value), "high": max(high, value), "method": "bootstrap over items"}


def _alike(used: Mapping[str, CountPatterns]) -> float:
    """p-value of equal class shares in all strata, each item's first label taken as its share (chi-squared)."""
    rows = [(part.items / np.maximum(part.sizes, 1)) @ part.counts.toarray() for part in used.values()]
    seen = np.array(rows, np.float64)
    seen = seen[:, seen.sum(axis=0) > 0]
    return float(stats.chi2_contingency(seen, correction=False).pvalue) if seen.shape[1] > 1 else 1.0
