"""The statistics of the plumbing report: means over clusters, contrasts within groups, tests over items.

Rollouts of one group share a prompt, and groups of one item share its difficulty, so no rollout is taken as
independent of another of its item: every interval is over items (clusters), and tests deal values anew only where
chance itself would have.

Sources: the linearised variance of a mean over clusters, Kish & Frankel, J. R. Stat. Soc. B 36 (1974) 1-37; moments of
a sum under permutation within strata, Mantel, J. Am. Stat. Assoc. 58 (1963) 690-700; slopes with clusters, Liang &
Zeger, Biometrika 73 (1986) 13-22; Kaplan & Meier, J. Am. Stat. Assoc. 53 (1958) 457-481, with clusters Ying & Wei, J.
Multivariate Anal. 50 (1994) 17-29; limits of a quantile by inversion, Woodruff, J. Am. Stat. Assoc. 47 (1952) 635-646;
Holm, Scand. J. Stat. 6 (1979) 65-70.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

from audit.intervals import effective_interval
from audit.results import Estimate
from train.plumbing_results import Quantile, Slope, Test

__all__ = [
    "cluster_mean",
    "cluster_slope",
    "length_quantiles",
    "scaled",
    "sum_test",
    "within_slope",
]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

#: A test of dealt values is trusted to the normal curve from this many groups (or items) that can say anything.
FEWEST = 20


def cluster_mean(values: Floats, clusters: Codes, *, level: float, share: bool) -> Estimate | None:
    """Mean of ``values`` (n,) with an interval over ``clusters`` (n,); None without values.

    The variance is that of a ratio: C/(C - 1) sum over clusters of (sum of v - mean)^2 / n^2. For a ``share`` (values
    of 0 and 1) the limits are Clopper and Pearson's at the effective sample size
    (:func:`audit.intervals.effective_interval`), otherwise mean +- t standard errors on C - 1 degrees of freedom. One
    cluster gives no interval.
    """
    if not values.size:
        return None
    mean = float(values.mean())
    sums = _sums(values - mean, clusters)
    count = sums.size
    if count < 2:
        return Estimate(estimate=mean, method="one item: no interval")
    variance = count / (count - 1.0) * float(sums @ sums) / values.size**2
    if share:
        low, high = effective_interval(mean, variance, count, level=level)
        return Estimate(estimate=mean, low=low, high=high, method="Clopper-Pearson over items")
    half = float(stats.t.ppf(0.5 + level / 2.0, count - 1)) * variance**0.5
    return Estimate(estimate=mean, low=mean - half, high=mean + half, method="t over items")


def cluster_slope(x: Floats, y: Floats, clusters: Codes, *, level: float) -> Estimate | None:
    """Least-squares slope of ``y`` on ``x`` with Liang and Zeger's interval over clusters; None if x is constant."""
    x = x - x.mean() if x.size else x
    spread = float(x @ x)
    if spread <= 1e-12:
        return None
    slope = float(x @ y) / spread
    low, high = _limits(slope, x * (y - y.mean() - slope * x), spread, clusters, level)
    return Estimate(estimate=slope, low=low, high=high, method="least squares, over items")


def within_slope(x: Floats, y: Floats, groups: Codes, clusters: Codes, *, level: float) -> Slope:
    """Slope of ``y`` on ``x`` inside groups, and the chance of so strong a one if x were dealt anew in each group.

    With deviations from the group's means, the statistic is S = sum of x y over all groups. Dealt anew inside groups
    it has mean 0 and variance sum over groups of SSx SSy / (n - 1), so S / sd is set against the normal curve: exact in
    its two moments whatever groups share, since only the order inside groups is used.
    """
    codes, sizes = _compact(groups)
    dx, dy = _deviations(x, codes, sizes), _deviations(y, codes, sizes)
    ssx, ssy = _sums(dx * dx, codes), _sums(dy * dy, codes)
    spread, used = float(ssx.sum()), int(np.count_nonzero((ssx > 1e-12) & (ssy > 1e-12)))
    if spread <= 1e-12:
        return Slope(estimate=None, groups=used, reason="no group holds different values")
    slope = float(dx @ dy) / spread
    low, high = _limits(slope, dx * (dy - slope * dx), spread, clusters, level)
    if used < FEWEST:
        reason = f"only {used} groups can tell; a test needs {FEWEST}"
        return Slope(estimate=slope, low=low, high=high, groups=used, reason=reason)
    variance = float((ssx * ssy / np.maximum(sizes - 1, 1)).sum())
    p = 2.0 * float(stats.norm.sf(abs(float(dx @ dy)) / variance**0.5))
    return Slope(
        estimate=slope, low=low, high=high, groups=used, p_value=p, method="dealt anew within groups"
    )


def sum_test(terms: Floats, items: Codes, *, means: int = 0) -> Test:
    """Is the sum of ``terms`` (n, k) nought, but for chance? Tested over ``items`` (n,).

    With Z the terms summed by item and T their total, T' (Z'Z)^-1 T is set against chi-square on the rank of Z'Z.
    Nothing is assumed of how alike an item's terms are. The terms are influences: each holds what its row adds to T
    if there is nothing to find. Where ``means`` means were taken off them first, Z'Z is n / (n - means) times larger.
    """
    by_item = np.stack([_sums(column, items) for column in terms.T], axis=1)
    told = int(np.count_nonzero(np.abs(by_item).max(axis=1) > 1e-12))
    if told < FEWEST:
        return Test(reason=f"only {told} items can tell; a test needs {FEWEST}")
    total = by_item.sum(axis=0)
    spread = by_item.T @ by_item * (len(terms) / max(len(terms) - means, 1))
    rank = int(np.linalg.matrix_rank(spread, hermitian=True))
    chi = float(total @ np.linalg.pinv(spread, hermitian=True) @ total)
    return Test(p_value=float(stats.chi2.sf(chi, rank)), method=f"chi-square over {told} items, {rank} df")


def length_quantiles(
    length: Floats, cut: Flags, clusters: Codes, shares: Sequence[float], *, level: float
) -> tuple[Quantile, ...]:
    """The lengths that these shares of the rollouts would stay within if nothing were cut (Kaplan-Meier).

    ``cut`` rollouts are known to be longer than their ``length``. A quantile is the smallest length t with
    F(t) >= share; one that lies beyond what was seen is None, with the reason. Limits are the quantiles at
    share -+ z se, se over clusters from the influence of each rollout on F (Ying & Wei).
    """
    curve = stats.ecdf(stats.CensoredData(uncensored=length[~cut], right=length[cut])).sf
    ended, died = np.unique(length[~cut], return_counts=True)
    place = np.searchsorted(curve.quantiles, ended)
    times, survival = curve.quantiles[place], curve.probabilities[place]
    at_risk = length.size - np.searchsorted(np.sort(length), times, side="left")
    hazard = np.concatenate([[0.0], np.cumsum(died / at_risk.astype(np.float64) ** 2)])
    z = float(stats.norm.ppf(0.5 + level / 2.0))

    def at(share: float) -> float | None:
        found = np.flatnonzero(survival <= 1.0 - share + 1e-12)
        return float(times[found[0]]) if found.size else None

    def quantile(share: float) -> Quantile:
        point = at(share)
        if point is None:
            reason = f"{1.0 - survival[-1]:.1%} end within {times[-1]:,.0f}, the longest seen to end; the rest was cut"
            return Quantile(share=share, estimate=None, reason=reason)
        seen = (length <= point) & ~cut
        own = np.minimum(np.searchsorted(times, length), times.size - 1)
        upto = hazard[np.searchsorted(times, np.minimum(length, point), side="right")]
        influence = survival[times == point][0] * (np.where(seen, 1.0 / at_risk[own], 0.0) - upto)
        sums = _sums(influence, clusters)
        se = (sums.size / max(sums.size - 1.0, 1.0) * float(sums @ sums)) ** 0.5
        low, high = at(max(share - z * se, 0.0)), at(min(share + z * se, 1.0))
        told = None if high is not None else "its upper limit lies beyond what was seen"
        return Quantile(share=share, estimate=point, low=low, high=high, reason=told, method="Kaplan-Meier")

    return tuple(map(quantile, shares))


def scaled(part: Estimate | None, factor: float) -> Estimate | None:
    """An estimate and its limits times a factor of 0 or more."""
    if part is None or part.estimate is None:
        return part
    low = None if part.low is None else part.low * factor
    high = None if part.high is None else part.high * factor
    return Estimate(estimate=part.estimate * factor, low=low, high=high, method=part.method)


def _limits(
    slope: float, terms: Floats, spread: float, clusters: Codes, level: float
) -> tuple[float | None, float | None]:
    sums = _sums(terms, clusters)
    if sums.size < 2:
        return None, None
    se = (sums.size / (sums.size - 1.0) * float(sums @ sums)) ** 0.5 / spread
    half = float(stats.t.ppf(0.5 + level / 2.0, sums.size - 1)) * se
    return slope - half, slope + half


def _compact(codes: Codes) -> tuple[Codes, Codes]:
    """Codes from 0 without gaps, and how often each occurs."""
    _, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return inverse.astype(np.int64), counts.astype(np.int64)


def _sums(values: Floats, codes: Codes) -> Floats:
    """Sum of the values of each code that occurs."""
    compact, _ = _compact(codes)
    return np.bincount(compact, weights=values).astype(np.float64)


def _deviations(values: Floats, codes: Codes, sizes: Codes) -> Floats:
    means: Floats = np.bincount(codes, weights=values) / sizes
    return values - means[codes]
