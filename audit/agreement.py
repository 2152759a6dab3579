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
from scipy import sparse

from audit.intervals import bootstrap_totals, percentile_interval
from audit.patterns import CountPatterns, FloatArray
from audit.results import Agreement, Estimate

__all__ = ["class_shares", "estimate_agreement", "krippendorff_alpha", "retest_kappa"]

#: Above this many classes the intervals of kappa and alpha are left out (a table of draws x classes).
_MOST_CLASSES = 200


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


def estimate_agreement(
    patterns: CountPatterns, *, level: float = 0.95, draws: int = 10_000, seed: int = 0
) -> Agreement:
    """Both coefficients with percentile bootstrap intervals over items."""
    kappa, alpha = retest_kappa(patterns), krippendorff_alpha(patterns)
    if kappa is None or alpha is None:
        reason = "no item has two labels" if patterns.repeated.item_total == 0 else "all labels are equal"
        nothing = Estimate(estimate=None, method="none")
        return Agreement(kappa=nothing, alpha=nothing, reason=f"{reason}: agreement has no chance level")
    if patterns.class_count > _MOST_CLASSES:
        few = f"none: more than {_MOST_CLASSES} classes"
        return Agreement(
            kappa=Estimate(estimate=kappa, method=few), alpha=Estimate(estimate=alpha, method=few)
        )
    kappas, alphas = _bootstrap(patterns.repeated, draws, np.random.default_rng(seed))
    return Agreement(kappa=_with_interval(kappa, kappas, level), alpha=_with_interval(alpha, alphas, level))


def _bootstrap(
    repeated: CountPatterns, draws: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    classes = repeated.class_count
    sizes = repeated.sizes.astype(np.float64)
    scores = repeated.disagreement
    counts = repeated.counts.astype(np.float64)
    shares = (sparse.diags_array(1.0 / sizes) @ counts).toarray()
    columns = np.column_stack([scores, scores * sizes, sizes, shares, counts.toarray()])
    total = bootstrap_totals(columns, repeated.items, draws=draws, rng=rng)
    items = repeated.item_total
    share, count = total[:, 3 : 3 + classes] / items, total[:, 3 + classes :]
    labels = total[:, 2]
    with np.errstate(invalid="ignore", divide="ignore"):
        kappas = 1.0 - (total[:, 0] / items) / (1.0 - np.sum(share**2, axis=1))
        expected = 1.0 - np.sum(count * (count - 1.0), axis=1) / (labels * (labels - 1.0))
        alphas = 1.0 - (total[:, 1] / labels) / expected
    return kappas, alphas


def _with_interval(estimate: float, values: FloatArray, level: float) -> Estimate:
    ends = percentile_interval(values, level=level)
    low, high = ends if ends is not None else (None, None)
    return Estimate(estimate=estimate, low=low, high=high, method="percentile bootstrap over items")


def _corrected(observed: float, expected: float) -> float | None:
    return None if expected <= 1e-15 else 1.0 - observed / expected
