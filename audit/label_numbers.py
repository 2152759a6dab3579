"""Audits of numeric labels: the noise of a label, and what no model can beat on them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from audit.alarms_numbers import raise_numeric_alarms, unlike_spread
from audit.alarms_offsets import offset_alarm
from audit.columns import ChosenColumns, check_roles, guess
from audit.errors import InputError
from audit.grouping import Columns, Repeats, group
from audit.intervals import check_level
from audit.numeric import ValueScores, as_number, intraclass, noise_variance, pair_distance, value_scores
from audit.offsets import AnnotatorOffsets, offsets_of
from audit.patterns import FloatArray
from audit.reading import open_table
from audit.results import SCHEMA_VERSION, Alarm, DataSummary, Estimate, Result, Verdict
from audit.results_base import RunSettings
from audit.verdict_numbers import compose_numeric_verdict
from audit.version import __version__

__all__ = ["NoiseBin", "NumericAudit", "audit_numeric"]


@dataclass(frozen=True, kw_only=True)
class NoiseBin(Result):
    """The noise of the repeated items whose mean label lies in [``low``, ``high``]."""

    low: float
    high: float
    items: int
    noise_sd: Estimate


@dataclass(frozen=True, kw_only=True)
class NumericAudit(Result):
    """Noise of numeric labels, in the units of the labels, and what no model can beat on them.

    ``noise_sd`` is σ; ``rmse_floor`` equals it. ``r2_ceiling`` is the ICC(1) of the repeated items, ``r2_file``
    1 - σ²/Var over all labels of the file. The lowest mean absolute error lies in [``mae_floor.low``,
    ``mae_floor.high``], D/2 and D with D the mean distance of two labels of an item (``distance``).
    ``by_value`` has σ in up to eight parts of the items, by their mean label; ``annotators`` the offsets of annotators,
    where their column is named. ``data`` has no classes: numbers are none.
    """

    schema_version: str = SCHEMA_VERSION
    verdict: Verdict
    data: DataSummary
    rows: int
    missing_label: int
    items: int
    repeats: int
    repeat_rows: int
    level: float
    noise_sd: Estimate
    rmse_floor: Estimate
    r2_ceiling: Estimate
    r2_file: float | None
    distance: Estimate
    mae_floor: Estimate
    by_value: tuple[NoiseBin, ...]
    alarms: tuple[Alarm, ...]
    settings: RunSettings
    annotators: AnnotatorOffsets | None = None
    reason: str | None = None

    def summary(self) -> str:
        """The audit in a few lines of text."""
        lines = [f"{self.rows:,} rows, {self.repeats:,} repeated items with {self.repeat_rows:,} labels"]
        if self.reason:
            return "\n".join([*lines, self.reason])
        lines += [
            f"noise of a label (standard deviation)   {self.noise_sd.text('.4g')}",
            f"no model has a lower RMSE than          {self.rmse_floor.text('.4g')}",
            f"nor a higher R² than                    {self.r2_ceiling.text('.4g')}"
            + (f"  (over the whole file {self.r2_file:.4g})" if self.r2_file is not None else ""),
            f"two labels of an item are apart by      {self.distance.text('.4g')}",
            f"the lowest MAE lies between             {self.mae_floor.low:.4g} and {self.mae_floor.high:.4g}",
            "against a mean of k labels the RMSE floor is the noise divided by √k",
            "a bias that all repeats share is invisible here",
        ]
        if self.annotators is not None and self.annotators.annotators:
            lines.append(f"without the offsets of annotators       {self.annotators.noise_sd.text('.4g')}")
        return "\n".join([*lines, *(f"! {alarm.message}: {alarm.action}" for alarm in self.alarms)])


def audit_numeric(
    source: Any,
    *,
    item: Sequence[str] = (),
    label: str | None = None,
    annotator: str | None = None,
    missing: Sequence[str] = (),
    normalise: str = "case",
    drop_copies: bool = False,
    level: float = 0.95,
    **reading: Any,
) -> NumericAudit:
    """Audit numeric labels: the noise of a label, and the RMSE, R² and MAE that no model can beat.

    ``item``, ``label``, ``annotator``, ``missing``, ``normalise``, ``drop_copies`` and ``reading`` as in
    :func:`audit.duplicates.audit_duplicates`; ``level`` is that of the intervals. An InputError names a label that is
    no number. With ``annotator``, :mod:`audit.offsets` tells who labels higher or lower than the others.
    """
    check_level(level)
    with open_table(source, **reading) as table:
        chosen = guess(table, item=tuple(item), label=label, label_columns=(), counts=())
        check_roles(table, annotator=annotator)
        columns = Columns(item=chosen.item, label=chosen.label, annotator=annotator)
        repeats = group(table, columns, normalise=normalise, missing=missing, drop_copies=drop_copies)
        values = _numbers(repeats, table.report.source)
        scores = value_scores(repeats.patterns, values)
        counts = repeats.class_rows.astype(np.float64)
        offsets = None
        if annotator is not None:
            offsets = offsets_of(repeats.annotator_votes(), values, level=level)
        alarms = raise_numeric_alarms(repeats, values, scores)
        rows, absent, items = repeats.rows, repeats.missing_label, repeats.items_total
        name = table.report.source
        data = DataSummary(
            source=name, format=table.report.format, encoding=table.report.encoding,
            delimiter=table.report.delimiter, item=chosen.item, label=chosen.label, rows=rows, missing_label=absent,
            missing_item=repeats.missing_item, items=items, classes=(), class_rows=(),
            notes=(*table.report.notes, *chosen.reasons, *_unnamed(chosen, annotator), *repeats.notes),
        )  # fmt: skip
    repeated, labels = int(scores.total), int(scores.sizes @ scores.items)
    variance = noise_variance(scores, level=level)
    noise = _rooted(variance)
    distance = pair_distance(scores, level=level)
    ratio = intraclass(scores, level=level)
    reason = (
        None
        if repeated
        else "no item has two labels, so the noise cannot be measured: audit plan draws repeats"
    )
    middle = float(values @ counts) / counts.sum() if counts.sum() else 0.0
    whole = float(counts @ (values - middle) ** 2) / max(counts.sum() - 1.0, 1.0)
    file = 1.0 - variance.estimate / whole if variance.estimate is not None and whole > 0 else None
    half = None if distance.estimate is None else distance.estimate / 2.0
    told = None if offsets is None else offset_alarm(offsets)
    alarms = (*((told,) if told is not None else ()), *alarms, *unlike_spread(ratio, file))
    return NumericAudit(
        verdict=compose_numeric_verdict(
            noise=noise, ratio=ratio, file=file, repeats=repeated, reason=reason, alarms=alarms
        ),
        data=data, annotators=offsets,
        rows=rows, missing_label=absent, items=items, repeats=repeated, repeat_rows=labels, level=level,
        noise_sd=noise, rmse_floor=noise, r2_ceiling=ratio, r2_file=file, distance=distance,
        mae_floor=Estimate(estimate=None, low=half, high=distance.estimate, method="D/2 and D"),
        alarms=alarms, reason=reason, by_value=tuple(_by_value(scores, level)),
        settings=RunSettings(
            sources=(name,), item=chosen.item, labels=(str(chosen.label),), version=__version__,
            options={
                "annotator": annotator, "missing": tuple(missing), "normalise": normalise,
                "drop_copies": drop_copies, "level": level,
            },
        ),
    )  # fmt: skip


def _unnamed(chosen: ChosenColumns, annotator: str | None) -> Iterator[str]:
    if chosen.annotator is not None and annotator is None:
        yield f"more could be told with --annotator {chosen.annotator}, by the name of this column"


#: Variances of variances go with the fourth power of a label.
_LARGEST = 1e70


def _numbers(repeats: Repeats, name: str) -> FloatArray:
    values = np.full(len(repeats.classes), math.nan)
    for place, text in enumerate(repeats.classes):
        value = as_number(text)
        if value is None:
            hint = next(
                (way for sign, way in ((",", "with a point"), ("_", "without _")) if sign in text), None
            )
            raise InputError(
                f"{name}: the label {text!r} is no finite number: "
                + (f"write it {hint}" if hint else "leave it out with --missing, or drop --kind numeric")
            )
        values[place] = value
    largest = float(np.abs(values).max(initial=0.0))
    if largest and not 1.0 / _LARGEST < largest < _LARGEST:
        raise InputError(
            f"{name}: the label furthest from 0 is {largest:g}, whose powers a float cannot hold: give the labels in "
            f"another unit, so that it lies between {1.0 / _LARGEST:g} and {_LARGEST:g}"
        )
    return values


def _rooted(variance: Estimate) -> Estimate:
    """A variance's root, end by end."""
    low, high = (None if end is None else math.sqrt(end) for end in (variance.low, variance.high))
    root = None if variance.estimate is None else math.sqrt(variance.estimate)
    return Estimate(estimate=root, low=low, high=high, method=variance.method)


#: σ is told by value in at most so many parts of the items, each of so many or more.
_BINS, _BIN_ITEMS = 8, 20


def _by_value(scores: ValueScores, level: float) -> Iterator[NoiseBin]:
    """σ in parts of the items of about equal size, by their mean label; nothing where there would be one part."""
    parts = min(_BINS, int(scores.total // _BIN_ITEMS))
    if parts < 2:
        return
    means, place = np.unique(scores.means, return_inverse=True)
    items = np.bincount(place, scores.items)
    middle = (np.cumsum(items) - items / 2.0) / scores.total
    part = np.minimum(middle * parts, parts - 1).astype(np.int64)
    found = np.unique(part)
    for one in found if len(found) > 1 else ():
        kept = part[place] == one
        inside = ValueScores(**{name: values[kept] for name, values in vars(scores).items()})
        yield NoiseBin(
            low=float(means[part == one].min()), high=float(means[part == one].max()), items=int(inside.total),
            noise_sd=_rooted(noise_variance(inside, level=level)),
        )  # fmt: skip
