"""The numbers of an audit as rows of one shape: quantity, column, value, items, estimate, low, high, method."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from audit.results_base import Estimate

if TYPE_CHECKING:
    from audit.results import AuditResult
    from audit.results_beyond import ErrorRates, LatentClasses, Range

__all__ = ["COLUMNS", "estimate_rows"]

COLUMNS = ("quantity", "column", "value", "items", "estimate", "low", "high", "method")
Line = dict[str, Any]


def estimate_rows(result: AuditResult) -> Iterator[Line]:
    """The rows: estimates of the whole file, the ends of the bands, d by column, and the parts beyond the pair."""
    items, band, several = result.repeats.items, result.ceiling, result.ceiling.moments
    yield _row("disagreement", result.disagreement, items=items)
    yield _row("flip_rate", result.flip_rate, items=items)
    yield from _ends("ceiling", band.lower, band.upper, band.low, band.high, items=items)
    if several.lower is not None:
        yield from _ends(
            "moments", several.lower, several.upper, several.low, several.high, items=several.items,
            method=several.method,
        )  # fmt: skip
    yield _row("kappa", result.agreement.kappa, items=items)
    yield _row("alpha", result.agreement.alpha, items=items)
    for limit in result.metrics.limits:
        upper = limit.direction == "upper"
        part = Estimate(
            estimate=limit.bound, low=None if upper else limit.with_error,
            high=limit.with_error if upper else None, method=limit.kind,
        )  # fmt: skip
        yield _row("metric_limit", part, items=items, column=limit.metric, value=limit.direction)
    for column, parts in result.by.items():
        for one in parts:
            yield _row("disagreement", one, items=one.items, column=column, value=one.value)
    if result.errors is not None:
        yield from _errors(result.errors)
    if result.gold is not None:
        yield _row("gold_error", result.gold.error, items=result.gold.items)
    for quantity, near in (("near", result.near), ("semantic", result.semantic)):
        for bin_ in near.bins if near is not None else ():
            value = f"{bin_.low:.2f} to {bin_.high:.2f}"
            yield _row(quantity, bin_.disagreement, items=bin_.clusters, column="similarity", value=value)


def _errors(errors: ErrorRates) -> Iterator[Line]:
    pairs = errors.pairs
    for name in ("prevalence", "miss", "false_alarm", "mean_error"):
        part: Range = getattr(pairs, name)
        if part.lower is not None:
            yield from _ends(
                f"pairs_{name}",
                part.lower,
                part.upper,
                part.low,
                part.high,
                items=pairs.items,
                method="identified set",
            )
    for latent in (errors.repeats, errors.strata, errors.annotators):
        yield from _latent(latent)


def _latent(part: LatentClasses) -> Iterator[Line]:
    if not part.rates:
        return
    yield _row("label_error", part.mean_error, items=part.items, column=part.method)
    for rate in part.rates:
        yield _row(
            "label_given_truth",
            rate,
            items=part.items,
            column=part.method,
            value=f"{rate.truth} → {rate.label}",
        )
    for rater in part.raters:
        yield _row("annotator_error", rater.error, items=rater.labels, column=part.method, value=rater.value)


def _row(quantity: str, part: Estimate, *, items: int, column: str = "", value: str = "") -> Line:
    cells = (quantity, column, value, items, part.estimate, part.low, part.high, part.method)
    return dict(zip(COLUMNS, cells, strict=True))


def _ends(
    quantity: str, lower: float | None, upper: float | None, low: float | None, high: float | None, *, items: int,
    method: str = "",
) -> Iterator[Line]:  # fmt: skip
    """A band as two rows; each end has sampling error on its outer side."""
    yield _row(quantity, Estimate(estimate=lower, low=low, method=method), items=items, value="lower")
    yield _row(quantity, Estimate(estimate=upper, high=high, method=method), items=items, value="upper")
