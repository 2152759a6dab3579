"""Places a score of any metric against its limits: possible, beyond what the truth scores, or impossible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from audit.ceiling import pair_disagreement
from audit.errors import ArgumentError
from audit.fliprate import estimate_flip_rate
from audit.metric_limits import METRICS, bound_metrics, correct_score, truth_share
from audit.reading_saved import load_audit
from audit.results import Disagreement, MetricLimit, Result

__all__ = ["MetricPlacement", "place_metric"]

_SMALLEST = {"mcc": -1.0, "kappa": -1.0}
_NEEDS_PREDICTED = ("recall", "f1", "kappa")


@dataclass(frozen=True, kw_only=True)
class MetricPlacement(Result):
    """A score of a metric set against its limits.

    ``position``: ``"impossible"`` beyond the bound with sampling error, ``"beyond the bound"`` at the estimate,
    ``"beyond the truth"`` past what the truth-knower scores, ``"possible"`` short of it. ``corrected`` is the score
    against the labels without their noise if ``condition`` holds; ``reason`` says why there is none.
    """

    metric: str
    score: float
    limit: MetricLimit
    positive: str | None
    share: float | None
    position: Literal["possible", "beyond the truth", "beyond the bound", "impossible"]
    corrected: float | None
    condition: str
    reason: str | None
    message: str

    def summary(self) -> str:
        """The verdict, what kind of limit it is, and the corrected score with its condition."""
        lines = [self.message, f"{self.limit.kind[0].upper()}{self.limit.kind[1:]}."]
        if self.corrected is None:
            lines.append(f"Not corrected for the noise: {self.reason}.")
        elif self.corrected > 1.0 + 1e-9:
            lines.append(
                f"Corrected for the noise the score would be {self.corrected:.3f}, above 1: the condition "
                f"({self.condition}) does not hold."
            )
        else:
            lines.append(
                f"Without the noise the score is {self.corrected:.3f} if, and only if, {self.condition}."
            )
        return "\n".join(lines)


def place_metric(
    metric: str,
    score: float | None,
    source: str | Path | None = None,
    *,
    item: Sequence[str] = (),
    label: str | None = None,
    disagreement: float | None = None,
    pairs: int | None = None,
    classes: int = 2,
    share: float | None = None,
    positive: str | None = None,
    predicted: float | None = None,
    level: float | None = None,
    **reading: Any,
) -> MetricPlacement:
    """Place ``score`` of ``metric`` (one of :data:`audit.metric_limits.METRICS`) against labels like the audited ones.

    Parameters
    ----------
    source, item, label, disagreement, pairs, classes, level, reading:
        As in :func:`audit.placing.place`.
    share, positive:
        The positive class's share of the labels, or its name; by default the rarer class of the audit.
    predicted:
        The share of rows the model calls positive; recall, F1 and kappa cannot be corrected without it.

    Raises
    ------
    ArgumentError
        The metric is unknown, the score out of its range, or there are no limits (no flip rate, no share).
    """
    if metric not in METRICS:
        raise ArgumentError(f"metric {metric!r} is unknown; choose one of {', '.join(METRICS)}")
    if score is None:
        raise ArgumentError(f"give the measured {METRICS[metric]} with --score, for example --score 0.8")
    least, most = _SMALLEST.get(metric, 0.0), math.inf if metric == "log-loss" else 1.0
    if not least <= score <= most:
        raise ArgumentError(f"a score of {METRICS[metric]} lies in [{least:g}, {most:g}], not {score}")
    if predicted is not None and not 0.0 < predicted < 1.0:
        raise ArgumentError(f"the predicted share lies between 0 and 1, not {predicted}")
    d, classes, refused, found = _labels(
        source,
        reading,
        item=item,
        label=label,
        disagreement=disagreement,
        pairs=pairs,
        classes=classes,
        level=level,
    )
    name, known, names = found
    if positive is not None:
        if share is not None:
            raise ArgumentError("give --share or --positive, not both")
        if names and positive not in names:
            raise ArgumentError(f"there is no class {positive!r}; the classes are {', '.join(names)}")
        if known is not None and name is not None and positive != name:
            name, known = positive, 1.0 - known
        name = positive
    if share is not None:
        name, known = None, share
    rate = estimate_flip_rate(d, classes=classes, refused=refused)
    if d.estimate is None or rate.estimate is None:
        raise ArgumentError(f"these labels have no limits: {rate.reason or d.reason}")
    if classes == 2 and known is None:
        raise ArgumentError("the limits need the positive class's share of the labels: --share 0.2")
    limits = {
        limit.metric: limit
        for limit in bound_metrics(d.estimate, classes=classes, share=known, loosest=d.low)
    }
    if metric not in limits:
        raise ArgumentError(
            f"{METRICS[metric]} has limits for two classes only, not {classes}; there are {', '.join(limits)}, and "
            "weighted-kappa of grades (--kind ordinal)"
        )
    limit = limits[metric]
    corrected, reason = _corrected(metric, score, rate.estimate, known, predicted)
    position, message = _placed(score, limit)
    return MetricPlacement(
        metric=metric, score=score, limit=limit, positive=name, share=known, position=position, corrected=corrected,
        condition="the model's errors are independent of the label noise, and the noise is equal for all items",
        reason=reason, message=message,
    )  # fmt: skip


def _labels(
    source: str | Path | None, reading: dict[str, Any], *, item: Sequence[str], label: str | None,
    disagreement: float | None, pairs: int | None, classes: int, level: float | None,
) -> tuple[Disagreement, int, str | None, tuple[str | None, float | None, tuple[str, ...]]]:  # fmt: skip
    """d, K, a reason against a flip rate, and the positive class with its share and all names."""
    if (source is None) == (disagreement is None):
        raise ArgumentError("give either a FILE (a saved audit or the data) or --disagreement with --pairs")
    if source is None or disagreement is not None:
        if pairs is None or pairs < 1 or disagreement is None:
            raise ArgumentError("--disagreement needs --pairs, the number of repeated items behind it")
        return (
            pair_disagreement(disagreement, pairs=pairs, level=level or 0.95),
            classes,
            None,
            (None, None, ()),
        )
    saved = None if item or label is not None else load_audit(source)
    if saved is not None:
        if level is not None and level != saved.d.level:
            raise ArgumentError(
                f"{source} was made at level {saved.d.level}: audit again with --level {level}"
            )
        return saved.d, saved.classes, saved.refused, (saved.positive, saved.share, saved.names)
    from audit.duplicates import audit_duplicates

    result = audit_duplicates(
        source, item=item, label=label, level=level or 0.95, show_conflicts=0, ladder=False, **reading
    )
    part = result.metrics
    return (
        result.disagreement, result.flip_rate.classes, result.flip_rate.reason,
        (part.positive, part.share, result.data.classes),
    )  # fmt: skip


def _corrected(
    metric: str, score: float, rate: float, share: float | None, predicted: float | None
) -> tuple[float | None, str | None]:
    if share is None:
        return None, "the correction is for two classes"
    if rate >= 0.5:
        return None, "at a flip rate of 0.5 the labels say nothing"
    pi = truth_share(share, rate=rate)
    if not 0.0 < pi < 1.0:
        return None, f"equal flips at ε = {rate:.3f} cannot give a positive share of {share:.3f}"
    if metric in _NEEDS_PREDICTED and predicted is None:
        return None, "it takes the share of rows the model calls positive (--predicted-share)"
    value = correct_score(metric, score, rate=rate, share=share, predicted=predicted)
    return (
        value,
        None if value is not None else "a loss of probabilities cannot be corrected from its mean alone",
    )


def _placed(
    score: float, limit: MetricLimit
) -> tuple[Literal["possible", "beyond the truth", "beyond the bound", "impossible"], str]:
    sign = 1.0 if limit.direction == "upper" else -1.0
    beyond, no_more = ("above", "at most") if sign > 0.0 else ("below", "at least")
    known = limit.truth_knower
    knower = "" if known is None else f"; a predictor that knows the truth scores {known:.3f}"
    head = f"{limit.name} {score:.3f}"
    bound = f"{no_more} {limit.bound:.3f} ({limit.with_error:.3f} with sampling error)"
    if sign * (score - limit.with_error) > 1e-12:
        return "impossible", (
            f"{head} is {beyond} what any predictor can score against these labels, {bound}{knower}. Look for leakage, "
            "or for test labels cleaner than the audited ones."
        )
    if sign * (score - limit.bound) > 1e-12:
        return "beyond the bound", (
            f"{head} is {beyond} the bound at the estimate, {bound}{knower}. Sampling error may have lifted it there."
        )
    if known is not None and sign * (score - known) > 1e-12:
        return "beyond the truth", (
            f"{head} is {beyond} what the truth scores ({known:.3f}) and within the bound, {bound}. It is tuned to the "
            "metric, or the items are not equally noisy: better labels will show more than a better model."
        )
    return "possible", f"{head} is within the bound, {bound}{knower}: there is room for a better model."
