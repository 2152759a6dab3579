"""Places a score of a model of numbers or grades against what their labels allow: RMSE, MAE, R², weighted κ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from audit.errors import ArgumentError
from audit.reading_saved import load_limits
from audit.results import Estimate, Result
from audit.verdict_numbers import unit_text

__all__ = ["VALUE_METRICS", "ValuePlacement", "place_value"]

#: Metrics of numbers and of grades, and their names in words.
VALUE_METRICS = {"rmse": "RMSE", "mae": "MAE", "r2": "R²", "weighted-kappa": "quadratic-weighted κ"}

_Position = Literal["possible", "within the range", "beyond the bound", "impossible"]
_KIND = {
    "rmse": "a hard bound: no predictor has a lower RMSE than the noise of a label",
    "mae": "a hard bound, D/2, with D the mean distance of two labels; one who knows each item's median has at most D",
    "r2": "a hard bound: ICC(1), the share of the labels' variance that is between items",
    "weighted-kappa": "a hard bound that no rounded prediction attains: the root of the κ of two labels",
}


@dataclass(frozen=True, kw_only=True)
class ValuePlacement(Result):
    """A score of numbers or grades set against its limit.

    ``position``: ``"impossible"`` beyond the bound with sampling error (``with_error``), ``"beyond the bound"`` at the
    estimate, ``"within the range"`` in which the lowest MAE lies (``bound`` to ``range_end``), ``"possible"`` short of
    it. ``corrected`` is the score against the items' mean labels, without their noise, if ``condition`` holds.
    """

    metric: str
    score: float
    bound: float
    with_error: float | None
    range_end: float | None
    direction: Literal["upper", "lower"]
    kind: str
    position: _Position
    corrected: float | None
    condition: str | None
    message: str

    def summary(self) -> str:
        """The verdict, what kind of limit it is, and the score without noise with its condition."""
        lines = [self.message, f"{self.kind[0].upper()}{self.kind[1:]}."]
        if self.corrected is not None:
            lines.append(
                f"Against the items' mean labels, without their noise, the {VALUE_METRICS[self.metric]} is "
                f"{unit_text(self.corrected)} if {self.condition}."
            )
        return "\n".join(lines)


def place_value(
    metric: str,
    score: float | None,
    source: str | Path | None,
    *,
    item: Sequence[str] = (),
    label: str | None = None,
    level: float | None = None,
    **reading: Any,
) -> ValuePlacement:
    """Place ``score`` of ``metric`` (one of :data:`VALUE_METRICS`) against labels like the audited ones.

    Parameters
    ----------
    source:
        The JSON that ``audit dupes --kind numeric --format json`` wrote (``ordinal`` for ``weighted-kappa``), or a data
        file, which is then audited as that kind with ``item``, ``label`` and ``reading``.
    level:
        Of the intervals; that of a saved audit by default.

    Raises
    ------
    ArgumentError
        The score is missing or out of its range, or these labels have no limit.
    InputError
        The source cannot be read, or holds an audit of another kind.
    """
    name = VALUE_METRICS[metric]
    if score is None:
        raise ArgumentError(f"give the measured {name} with --score, for example --score 0.8")
    least, most = (
        (0.0, math.inf) if metric in ("rmse", "mae") else (-math.inf if metric == "r2" else -1.0, 1.0)
    )
    if not least <= score <= most or not math.isfinite(score):
        raise ArgumentError(f"a score of {name} lies in [{least:g}, {most:g}], not {score}")
    if source is None:
        raise ArgumentError(f"limits of {name} need a FILE: a saved audit or the data")
    found, reason = _limits(metric, source, item=item, label=label, level=level, reading=reading)
    if metric == "weighted-kappa":
        limit = found["kappa_ceiling"]
    else:
        limit = found[{"rmse": "noise_sd", "r2": "r2_ceiling", "mae": "distance"}[metric]]
    if limit.estimate is None:
        raise ArgumentError(
            f"these labels have no limit of {name}: {reason or 'see the alarms of audit dupes'}"
        )
    upper = metric in ("r2", "weighted-kappa")
    half = 0.5 if metric == "mae" else 1.0
    end = limit.high if upper else limit.low
    bound, error = half * limit.estimate, None if end is None else half * end
    top = limit.estimate if metric == "mae" else None
    position, message = _placed(name, score, bound, error, top, upper=upper)
    corrected, condition = _corrected(metric, score, found)
    return ValuePlacement(
        metric=metric, score=score, bound=bound, with_error=error, range_end=top,
        direction="upper" if upper else "lower", kind=_KIND[metric], position=position, corrected=corrected,
        condition=condition, message=message,
    )  # fmt: skip


def _limits(
    metric: str, source: str | Path, *, item: Sequence[str], label: str | None, level: float | None,
    reading: Mapping[str, Any],
) -> tuple[Mapping[str, Estimate], str | None]:  # fmt: skip
    """The estimates that the metric is held against, from a saved audit or from the data."""
    ordinal = metric == "weighted-kappa"
    kind = "ordinal" if ordinal else "numeric"
    saved = None if item or label is not None else load_limits(source)
    if saved is not None:
        if saved.kind != kind:
            raise ArgumentError(
                f"{VALUE_METRICS[metric]} is of --kind {kind}, and {source} holds an audit of --kind {saved.kind}"
            )
        if level is not None and level != saved.level:
            raise ArgumentError(f"{source} was made at level {saved.level}: audit again with --level {level}")
        return saved.estimates, saved.reason
    level = level or 0.95
    if not ordinal:
        from audit.label_numbers import audit_numeric

        result = audit_numeric(source, item=item, label=label, level=level, **reading)
        told = {"noise_sd": result.noise_sd, "r2_ceiling": result.r2_ceiling, "distance": result.distance}
        return told, result.reason
    from audit.label_grades import audit_ordinal

    try:
        grades = audit_ordinal(
            source, item=item, label=label, level=level, show_conflicts=0, ladder=False, **reading
        )
    except ArgumentError as error:
        if "--classes" not in str(error):
            raise
        raise ArgumentError(
            "grades that are no numbers have no order of their own: audit them first (audit dupes --kind ordinal "
            "--classes low,middle,high --format json) and give that JSON"
        ) from error
    return {"kappa_ceiling": grades.kappa_ceiling}, grades.audit.disagreement.reason


def _corrected(metric: str, score: float, found: Mapping[str, Estimate]) -> tuple[float | None, str | None]:
    """The score against the items' means: MSE less σ², R² over the ICC (Spearman's correction for attenuation)."""
    unseen = "the model has not seen these labels"
    if metric == "rmse":
        noise = found["noise_sd"].estimate or 0.0
        return (math.sqrt(score * score - noise * noise), unseen) if score >= noise else (None, None)
    if metric == "r2":
        ratio = found["r2_ceiling"].estimate or 0.0
        return (score / ratio, unseen) if ratio > 0.0 and 0.0 <= score <= ratio else (None, None)
    return None, None


def _placed(
    name: str, score: float, bound: float, error: float | None, top: float | None, *, upper: bool
) -> tuple[_Position, str]:
    sign, beyond, no_more = (1.0, "above", "at most") if upper else (-1.0, "below", "at least")
    head = f"{name} {unit_text(score)}"
    limit = f"{no_more} {unit_text(bound)}" + (
        "" if error is None else f" ({unit_text(error)} with sampling error)"
    )
    if sign * (score - (bound if error is None else error)) > 1e-12 * max(1.0, abs(bound)):
        return "impossible", (
            f"{head} is {beyond} what any predictor can score against these labels, {limit}. Look for leakage, for a "
            "small test set, or for test labels cleaner than the audited ones."
        )
    if sign * (score - bound) > 1e-12 * max(1.0, abs(bound)):
        return "beyond the bound", (
            f"{head} is {beyond} the bound at the estimate, {limit}. Sampling error may have moved it there."
        )
    if top is not None and score <= top:
        return "within the range", (
            f"{head} lies in the range of the lowest MAE, {unit_text(bound)} to {unit_text(top)}: whether a better "
            "model is possible depends on the shape of the noise; the RMSE tells more."
        )
    return "possible", f"{head} is within the bound, {limit}: there is room for a better model."
