"""Chance-corrected agreement of the repeats: retest kappa and Krippendorff's alpha for nominal labels.

kappa = 1 - d/(1 - sum p_k^2), with d and the shares p_k taken once per repeated item: Scott's pi (Public
Opinion Quarterly 19 (1955) 321-325) for exchangeable labels; for K = 2 it is 1 - d/(2m(1 - m)).
alpha = 1 - D_o/D_e (Krippendorff, Content Analysis, 2004, sec. 11.3): D_o is the row-weighted d and
D_e = 1 - sum n_k(n_k - 1)/(n(n - 1)) over all labels of repeated items.

Both come straight from the count patterns, which the packages for them do not take; the tests hold them to
``krippendorff`` and ``scikit-learn`` to 1e-12.
"""

from __future__ import annotations

import numpy as np

from audit.disagreement import NO_REPEATS
from audit.intervals import effective_interval, no_conflict_upper
from audit.patterns import CountPatterns, FloatArray
from audit.results import Agreement, Estimate

__all__ = ["class_shares", "estimate_agreement", "krippendorff_alpha", "retest_kappa"]


def class_shares(patterns: CountPatterns) -> FloatArray:
    """Share of each class among the labels of repeated items, each item once: shape (K,), sums to 1."""
    repeated = patterns.repeated
    weights = repeated.items / np.maximum(repeated.sizes, 1)
    return np.asarray(weights @ repeated.counts, np.float64) / max(repeated.item_total, 1)


def retest_kappa(patterns: CountPatterns) -> float | None:
    """1 - d/(1 - sum p_k^2) of the repeated items; None without repeats or when all labels are equal."""
    repeated = patterns.repeated
    if repeated.item_total == 0:
        return None
    d = float(repeated.disagreement @ repeated.items) / repeated.item_total
    return _corrected(d, 1.0 - float(np.sum(class_shares(repeated) ** 2)))


def krippendorff_alpha(patterns: CountPatterns) -> float | None:
    """Krippendorff's nominal alpha of the repeated items; None without repeats or when all labels are equal."""
    repeated = patterns.repeated
    labels = int(repeated.sizes @ repeated.items)
    if labels == 0:
        return None
    observed = float((repeated.disagreement * repeated.sizes) @ repeated.items) / labels
    totals = np.asarray(repeated.items @ repeated.counts, np.float64)
    return _corrected(observed, 1.0 - float(np.sum(totals * (totals - 1.0))) / (labels * (labels - 1.0)))


def estimate_agreement(patterns: CountPatterns, *, level: float = 0.95) -> Agreement:
    """Both coefficients with intervals over items.

    With D the observed and E the expected disagreement, 1 - coefficient = D/E. Its variance is the linearised
    one (each item's influence on D - (D/E) E), and the limits of D with that variance, as in
    :func:`audit.intervals.effective_interval`, are divided by E. Percentile bootstrap limits cover less
    (docs/coverage.md, part 7). Without any conflict: one-sided, from the limit of d.
    """
    kappa, alpha = retest_kappa(patterns), krippendorff_alpha(patterns)
    if kappa is None or alpha is None:
        reason = "all labels are equal: agreement has no chance level"
        if patterns.repeated.item_total == 0:
            reason = NO_REPEATS
        nothing = Estimate(estimate=None, method="none")
        return Agreement(kappa=nothing, alpha=nothing, reason=reason)
    repeated = patterns.repeated
    once = np.full(len(repeated.items), 1.0 / repeated.item_total)
    by_labels = repeated.sizes / float(repeated.sizes @ repeated.items)
    return Agreement(
        kappa=_with_interval(repeated, kappa, once, level),
        alpha=_with_interval(repeated, alpha, by_labels, level),
    )


def _with_interval(repeated: CountPatterns, estimate: float, weights: FloatArray, level: float) -> Estimate:
    """The interval of a coefficient whose D and class shares weigh each item by ``weights`` (shape (P,))."""
    items = repeated.item_total
    observed = float((weights * repeated.disagreement) @ repeated.items)
    shares = np.asarray((weights * repeated.items / repeated.sizes) @ repeated.counts, np.float64)
    if observed <= 0.0:
        low = 1.0 - no_conflict_upper(items, level=level) / (1.0 - float(shares @ shares))
        return Estimate(estimate=estimate, low=low, high=1.0, method="one-sided, no conflicts")
    expected = observed / (1.0 - estimate)
    pull = np.asarray(repeated.counts @ shares, np.float64) / repeated.sizes - float(shares @ shares)
    residual = weights * (repeated.disagreement - observed + 2.0 * observed / expected * pull)
    low, high = effective_interval(observed, float(residual**2 @ repeated.items), items, level=level)
    return Estimate(
        estimate=estimate, low=1.0 - high / expected, high=1.0 - low / expected,
        method="linearised ratio, limits at the effective sample size",
    )  # fmt: skip


def _corrected(observed: float, expected: float) -> float | None:
    return None if expected <= 1e-15 else 1.0 - observed / expected
