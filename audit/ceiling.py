"""The band that holds the accuracy ceiling, and where a measured score falls in it.

The best accuracy any predictor can have against noisy labels is E[max_k p_ik]. From pairs alone, without the
assumption that all items are equally noisy, it is only known to lie in 1 - d <= ceiling <= 1 - eps_K(d)
(Cover & Hart, IEEE Trans. Inf. Theory 13 (1967) 21-27; the upper end by Jensen's inequality). 1 - d is what a
fresh draw of the labels scores, so a model may honestly beat it; 1 - eps is the top of the band.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from audit.errors import ArgumentError
from audit.fliprate import estimate_flip_rate
from audit.intervals import no_conflict_upper, wilson
from audit.results import Ceiling, Disagreement, FlipRate, Gate, Moments, Result

__all__ = [
    "CountingBand",
    "Gate",
    "Placement",
    "accuracy_without_noise",
    "ceiling_band",
    "check_gate",
    "check_threshold",
    "counting_band",
    "pair_disagreement",
    "place_score",
]

#: p-value below which a model of the labels is told not to fit, for several labels an item a mixture.
UNFIT = 0.001

#: Items with three labels or more from which their band counts: with fewer its sampling error is the larger.
_ENOUGH_ITEMS = 200


def ceiling_band(d: Disagreement, rate: FlipRate, *, minority_share: float | None = None) -> Ceiling:
    """The band [1 - d, 1 - eps_K(d)] and, with sampling error, [1 - d_high, 1 - eps_K(d_low)].

    ``minority_share`` (binary labels) is m, the share of the rarer class: always answering the other class errs
    on m, so ``prevalence_lower`` = 1 - min(d, m). Without a flip rate there is no band and ``reason`` says why.
    """
    if rate.estimate is None or rate.low is None or d.estimate is None or d.high is None:
        return Ceiling(lower=None, upper=None, low=None, high=None, reason=rate.reason or d.reason)
    tighter = None
    if minority_share is not None:
        if not 0.0 <= minority_share <= 0.5:
            raise ArgumentError(f"the share of the rarer class lies in [0, 0.5], not {minority_share}")
        tighter = 1.0 - min(d.estimate, minority_share)
    return Ceiling(
        lower=1.0 - d.estimate,
        upper=1.0 - rate.estimate,
        low=1.0 - d.high,
        high=1.0 - rate.low,
        prevalence_lower=tighter,
    )


def pair_disagreement(d: float, *, pairs: int, level: float = 0.95) -> Disagreement:
    """A :class:`Disagreement` from a known d over ``pairs`` pairs, for use without the data."""
    if not 0.0 <= d <= 1.0:
        raise ArgumentError(f"a disagreement lies in [0, 1], not {d}")
    low, high = wilson(d * pairs, pairs, level=level)
    method = "Wilson"
    if d == 0.0:
        high, method = no_conflict_upper(pairs, level=level), "one-sided, no conflicts"
    return Disagreement(
        estimate=d, low=low, high=high, method=method, level=level, pair_weighted=d, row_weighted=d
    )


def accuracy_without_noise(score: float, *, rate: float) -> float:
    """(M - eps)/(1 - 2 eps): accuracy against the truth behind a measured accuracy M, binary, symmetric flips.

    Holds only if the model's errors are independent of the label noise; a model that learnt the noise breaks it.
    ``rate`` lies in [0, 0.5). The result is not clipped: outside [0, 1] the condition does not hold.
    """
    if not 0.0 <= rate < 0.5:
        raise ArgumentError(f"a correction needs a flip rate in [0, 0.5), not {rate}")
    return (score - rate) / (1.0 - 2.0 * rate)


@dataclass(frozen=True, kw_only=True)
class Placement(Result):
    """A measured accuracy set against the band.

    ``lower``/``upper`` and ``low``/``high`` are the ends that count, at the point estimate and with sampling error:
    those of ``source``, the pairs or several labels an item (see :func:`place_score`); ``band`` has both.
    ``position`` compares the score with the band at the point estimate; ``settled`` says that the interval of
    the score (Wilson, from ``n_test`` rows) and the widened band leave no doubt about it. ``message`` is the
    verdict in words. ``corrected`` is the accuracy against the truth if the model's errors are independent of
    the noise (binary labels only).
    """

    score: float
    score_low: float | None
    score_high: float | None
    n_test: int | None
    position: Literal["below", "inside", "above", "unknown"]
    settled: bool
    lower: float | None
    upper: float | None
    low: float | None
    high: float | None
    source: Literal["pairs", "several labels"]
    band: Ceiling
    corrected: float | None
    message: str

    def summary(self) -> str:
        """The verdict, and the corrected accuracy with its condition."""
        if self.corrected is None:
            return self.message
        if self.corrected > 1.0:
            more = (
                f"Corrected for the noise the score would be {self.corrected:.3f}, above 1: the model's errors are not "
                "independent of the label noise."
            )
        else:
            more = (
                f"If, and only if, the model's errors are independent of the label noise, its accuracy against the "
                f"labels without noise is {self.corrected:.3f}."
            )
        return f"{self.message}\n{more}"


@dataclass(frozen=True, kw_only=True)
class CountingBand:
    """The band that counts: its ends, how far in sampling error may move them (``inner``), and words.

    ``reason`` says why several labels an item do not count, where they have a band.
    """

    lower: float
    upper: float
    low: float
    high: float
    inner: tuple[float, float]
    source: Literal["pairs", "several labels"]
    name: str
    note: str = ""
    reason: str = ""


def counting_band(band: Ceiling, d: Disagreement, rate: FlipRate) -> CountingBand | None:
    """The band that a score is held against, and that the verdict quotes; None where there is none.

    That of several labels where at least 200 items have three or more and a mixture explains their counts, else that
    of pairs: :func:`place_score` tells why.
    """
    if band.lower is None or band.upper is None or band.low is None or band.high is None:
        return None
    pairs = CountingBand(
        lower=band.lower, upper=band.upper, low=band.low, high=band.high,
        inner=(1.0 - (d.low or 0.0), 1.0 - (rate.high or 0.0)), source="pairs", name="the band",
    )  # fmt: skip
    more = band.moments
    if more.lower is None or more.upper is None or more.low is None or more.high is None:
        return pairs
    labels = f"up to {more.repeats} labels an item"
    if more.fit_p_value is not None and more.fit_p_value < UNFIT:
        return replace(
            pairs,
            note=f" The band of pairs counts: no distribution explains the counts of {labels}.",
            reason="no distribution explains these counts",
        )
    if more.items_with_three < _ENOUGH_ITEMS:
        return replace(
            pairs,
            note=(
                f" By {labels} the ceiling is in [{more.lower:.3f}, {more.upper:.3f}]; with fewer than {_ENOUGH_ITEMS} "
                f"items of three or more ({more.items_with_three}) the band of pairs counts."
            ),
            reason=f"fewer than {_ENOUGH_ITEMS} items have three labels or more",
        )
    return CountingBand(
        lower=more.lower, upper=more.upper, low=more.low, high=more.high,
        inner=(2.0 * more.lower - more.low, 2.0 * more.upper - more.high), source="several labels",
        name=f"the band of {labels},", note=f" Pairs alone give [{band.lower:.3f}, {band.upper:.3f}].",
    )  # fmt: skip


def place_score(
    score: float,
    *,
    d: Disagreement,
    classes: int,
    n_test: int | None = None,
    refused: str | None = None,
    moments: Moments | None = None,
) -> Placement:
    """Place an accuracy in [0, 1], measured on ``n_test`` rows carrying labels like the audited ones.

    ``d`` is the audited disagreement, ``classes`` the number K of declared classes, ``refused`` a reason why no
    flip rate may be formed. ``moments`` is the band from several labels an item: it counts where at least 200 items
    have three labels or more and a mixture explains their counts, a rule that does not look at what the bands are, so
    that its level stays. Which ends of the two are narrower is not asked: the best of two intervals is none of 95 %.

    Raises
    ------
    ArgumentError
        When the score is outside [0, 1] (a percentage, perhaps) or ``n_test`` is below 1.
    """
    if not 0.0 <= score <= 1.0 or math.isnan(score):
        raise ArgumentError(f"a score lies in [0, 1], not {score}: divide a percentage by 100")
    if n_test is not None and n_test < 1:
        raise ArgumentError(f"n_test is the number of test rows, at least 1, not {n_test}")
    rate = estimate_flip_rate(d, classes=classes, refused=refused)
    whole = ceiling_band(d, rate)
    if moments is not None and moments.lower is not None:
        whole = replace(whole, moments=moments)
    low, high = wilson(score * n_test, n_test, level=d.level) if n_test else (None, None)
    band = counting_band(whole, d, rate)
    if band is None:
        return Placement(
            score=score, score_low=low, score_high=high, n_test=n_test, position="unknown", settled=False, lower=None,
            upper=None, low=None, high=None, source="pairs", band=whole, corrected=None,
            message=f"There is no band to place {score:.3f} in: {whole.reason}.",
        )  # fmt: skip
    bottom, top = low if low is not None else score, high if high is not None else score
    position: Literal["below", "inside", "above"]
    if score < band.lower:
        position, settled = "below", top < band.low
        words = (
            "a fresh draw of the labels would score higher"
            if band.source == "pairs"
            else "a predictor that knows each item's chances would score higher"
        )
        words += ", so there is room for a better model"
    elif score > band.upper:
        position, settled = "above", bottom > band.high
        words = (
            "too good for labels with this much noise. Look for leakage between training and test rows, or for "
            "test labels cleaner than the audited ones"
            if settled
            else "no sign of leakage yet, as sampling error may have lifted it there"
        )
    else:
        position = "inside"
        settled = bottom >= band.inner[0] and top <= band.inner[1]
        words = "the model may already be at the ceiling, so better labels will show more than a better model"
    settled = settled and low is not None
    where = f"{score:.3f} is {position} {band.name} [{band.lower:.3f}, {band.upper:.3f}]: {words}"
    sampled = (
        "is not known: give the number of test rows (--n-test)"
        if low is None
        else f"is [{bottom:.3f}, {top:.3f}]"
    )
    doubt = (
        ""
        if settled
        else f". The band with sampling error is [{band.low:.3f}, {band.high:.3f}]; the score's interval {sampled}"
    )
    corrected = None
    if classes == 2 and rate.estimate is not None and rate.estimate < 0.5:
        corrected = accuracy_without_noise(score, rate=rate.estimate)
    return Placement(
        score=score, score_low=low, score_high=high, n_test=n_test, position=position, settled=settled,
        lower=band.lower, upper=band.upper, low=band.low, high=band.high, source=band.source, band=whole,
        corrected=corrected, message=f"{where}{doubt}.{band.note}",
    )  # fmt: skip


def check_threshold(threshold: float) -> None:
    """Raise an ArgumentError unless a gate's threshold lies in [0, 1]."""
    if not 0.0 <= threshold <= 1.0:
        raise ArgumentError(f"a gate lies in [0, 1], not {threshold}: divide a percentage by 100")


def check_gate(band: Ceiling, *, threshold: float, end: Literal["lower", "upper"] = "lower") -> Gate:
    """Compare ``band.lower`` (1 - d, what the labels surely allow) or ``band.upper`` with a threshold in [0, 1].

    These are the ends of the band of pairs, also where several labels an item give a narrower one, which the message
    then tells: a gate must mean the same from file to file, however many labels their items have. Labels without a
    band fail: a gate that cannot be measured is not met.
    """
    check_threshold(threshold)
    value = band.lower if end == "lower" else band.upper
    if value is None:
        message = f"gate failed: there is no ceiling to hold against {threshold:.3f}: {band.reason}"
        return Gate(passed=False, threshold=threshold, end=end, value=None, message=message)
    passed = value >= threshold
    word = "passed" if passed else "failed"
    message = f"gate {word}: the {end} end of the ceiling band is {value:.4f}, the threshold {threshold:.4f}"
    more = band.moments.lower if end == "lower" else band.moments.upper
    if more is not None:
        message += (
            f" (up to {band.moments.repeats} labels an item put it at {more:.4f}; the gate is for pairs)"
        )
    return Gate(passed=passed, threshold=threshold, end=end, value=value, message=message)
