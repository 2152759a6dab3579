"""Where two models differ, what an oracle would gain, and what of that is chance, label noise or ambiguous labels.

Sources: McNemar, Psychometrika 12 (1947) 153-157 (exact: binomial on the items that one of the two has right); Fisher,
Statistical Methods for Research Workers (1934), 21.02; for independent errors Kuncheva & Whitaker, Mach. Learn. 51
(2003) 181-207.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from audit.results import Estimate
from train.draws import interval_of
from train.metrics import Bools, Floats
from train.route_results import Ambiguity, OracleGap

__all__ = ["ambiguity", "gap_of_coins", "gap_of_independent_errors", "mcnemar", "oracle_gap"]


def mcnemar(only_a: int, only_b: int) -> float:
    """Exact two-sided p-value of equal accuracy; 1 where neither is right alone."""
    if only_a + only_b == 0:
        return 1.0
    return float(stats.binomtest(only_a, only_a + only_b).pvalue)


def gap_of_coins(one_right: int, n: int, *, level: float) -> Estimate:
    """Oracle gap of two equally good models: ``one_right`` items that one has right, a fair toss for which one.

    The gap is min(X, D - X)/n with X binomial(D, 1/2): its mean, and the range that holds ``level`` of it.
    """
    x = np.arange(one_right + 1)
    chance = stats.binom.pmf(x, one_right, 0.5)
    gaps = np.minimum(x, one_right - x)
    order = np.argsort(gaps, kind="stable")
    total = np.cumsum(chance[order])
    low, high = (gaps[order][np.searchsorted(total, p).clip(0, one_right)] for p in _tails(level))
    return Estimate(
        estimate=float(gaps @ chance) / n, low=float(low) / n, high=float(high) / n, method="binomial, exact"
    )


def gap_of_independent_errors(
    truth: Bools, a_right: Bools, b_right: Bools, *, level: float, draws: int, seed: int
) -> Estimate:
    """Oracle gap of two models with these error rates in each class whose errors have nothing to do with one another.

    Simulated: in each draw the numbers of items that only one has right are multinomial within each class.
    """
    rng = np.random.default_rng([seed, 2])
    alone = np.zeros((draws, 2))
    for rows in (truth, ~truth):
        size = int(rows.sum())
        if size:
            a, b = float(a_right[rows].mean()), float(b_right[rows].mean())
            alone += rng.multinomial(size, [a * (1 - b), b * (1 - a), 1 - a * (1 - b) - b * (1 - a)], draws)[
                :, :2
            ]
    gaps = alone.min(axis=1) / len(truth)
    low, high = np.quantile(gaps, _tails(level))
    return Estimate(
        estimate=float(gaps.mean()), low=float(low), high=float(high), method="simulated within classes"
    )


def _tails(level: float) -> tuple[float, float]:
    return (1.0 - level) / 2.0, (1.0 + level) / 2.0


def oracle_gap(
    truth: Bools,
    a_right: Bools,
    b_right: Bools,
    *,
    values: Floats,
    flip_rate: float | None,
    units: int,
    level: float,
    draws: int,
    seed: int,
) -> OracleGap:
    """The gap and what it is to be held against.

    ``values`` (draws, 3) are bootstrap draws of the shares that both, only a and only b have right. With labels that
    are wrong at rate eps whoever answers, a router that knows the truth has only (1 - eps) of the items that one of the
    two has right: what it gains is the gap less eps times their share.
    """
    n = len(truth)
    only_a, only_b = int((a_right & ~b_right).sum()), int((b_right & ~a_right).sum())
    both = int((a_right & b_right).sum())
    items = min(only_a, only_b)

    def share(count: int, column: Floats) -> Estimate:
        return interval_of("accuracy", count / n, column, items=units, level=level)

    gaps = np.minimum(values[:, 1], values[:, 2])
    reachable = None
    if flip_rate is not None:
        left = gaps - flip_rate * (values[:, 1] + values[:, 2])
        low, high = np.quantile(left, _tails(level))
        reachable = Estimate(
            estimate=(items - flip_rate * (only_a + only_b)) / n, low=float(low), high=float(high),
            method="bootstrap, percentiles",
        )  # fmt: skip
    return OracleGap(
        oracle=share(both + only_a + only_b, values.sum(axis=1)), better="a" if only_a > only_b else "b", items=items,
        gap=share(items, gaps),
        independent=gap_of_independent_errors(truth, a_right, b_right, level=level, draws=draws, seed=seed),
        coins=gap_of_coins(only_a + only_b, n, level=level), flip_rate=flip_rate, reachable=reachable,
    )  # fmt: skip


def ambiguity(flags: Bools, a_right: Bools, b_right: Bools, *, better: str) -> Ambiguity:
    """Whether the items of the oracle's gap have ambiguous labels more often than the others."""
    worse, best = (b_right, a_right) if better == "a" else (a_right, b_right)
    gap = worse & ~best
    table = np.array([[(f & g).sum() for f in (flags, ~flags)] for g in (gap, ~gap)])
    odds, p = stats.fisher_exact(table)

    def share(rows: Bools) -> float | None:
        return float(flags[rows].mean()) if rows.any() else None

    return Ambiguity(
        items=int(flags.sum()), share=float(flags.mean()), of_differing=share(a_right != b_right), of_gap=share(gap),
        of_both_wrong=share(~a_right & ~b_right), p_value=float(p),
        odds_ratio=float(odds) if np.isfinite(odds) else None,
    )  # fmt: skip
