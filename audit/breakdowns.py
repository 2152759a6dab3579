"""The parts of the audit: d by split, annotator, class and any column, and d weighted to the whole file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy import stats

from audit.disagreement import IntervalKind, by_class, estimate_disagreement, item_mean
from audit.fliprate import flip_rate, maximum_disagreement
from audit.grouping import Columns, Repeats
from audit.homogeneity import compare_values
from audit.patterns import CountPatterns
from audit.results import Breakdown, Comparison, CopiedShare, Disagreement, Reweighted, Settings

__all__ = ["break_down", "copied_shares", "interval_kind", "mean_disagreement", "reweight"]

#: Values of a column that are broken down at most, those with most repeated items.
_MOST_VALUES = 50

#: Shares of copied repeats for which eps is tabulated.
_COPIED_SHARES = (0.0, 0.1, 0.25, 0.5)

#: Share of the file whose d must be known by category before a reweighted d is given.
_LEAST_COVERED = 0.95


def interval_kind(settings: Settings) -> IntervalKind:
    """The interval of d that the settings ask for."""
    return "exact" if settings.interval == "exact" else "wilson"


def break_down(
    repeats: Repeats, columns: Columns, settings: Settings
) -> tuple[dict[str, tuple[Breakdown, ...]], dict[str, Comparison]]:
    """d by every described column, by ``class`` and by ``annotator_pair``, and the comparison of each column's values.

    A column of the data that is called ``class`` or ``annotator_pair`` takes the name before the breakdown does.
    """
    by: dict[str, tuple[Breakdown, ...]] = {}
    comparisons: dict[str, Comparison] = {}
    named = dict.fromkeys(c for c in (columns.split, *columns.by, columns.annotator) if c is not None)
    for column in named:
        parts = repeats.patterns_by(column)
        by[column] = _by_value(parts, settings)
        found = compare_values(
            column, parts, seed=settings.seed, contrast=repeats.contrast(column), level=settings.level
        )
        comparisons[column] = _told(found, by[column], annotator=column == columns.annotator)
    classes = by_class(repeats.patterns, level=settings.level)
    if classes:
        by.setdefault("class", classes)
    if columns.annotator is not None:
        by.setdefault("annotator_pair", _annotator_pairs(repeats, settings))
    return by, comparisons


def _told(found: Comparison, parts: Sequence[Breakdown], *, annotator: bool) -> Comparison:
    """The comparison with its reason said in full where no item has two labels of one value."""
    if found.reason is None or found.items_across == 0 or any(part.items for part in parts):
        return found
    if annotator:
        reason = "nobody labelled an item twice: see annotator pair, and --errors for each one's error rate"
    else:
        reason = "no item has two labels of one value, so no value has a d of its own"
    return replace(found, reason=reason)


def _by_value(parts: Mapping[str, CountPatterns], settings: Settings) -> tuple[Breakdown, ...]:
    rows = []
    kept = sorted(parts, key=lambda value: (-parts[value].repeated.item_total, value))[:_MOST_VALUES]
    for value in sorted(kept):
        repeated = parts[value].repeated
        d = estimate_disagreement(
            repeated,
            level=settings.level,
            draws=min(settings.draws, 2_000),
            seed=settings.seed,
            interval=interval_kind(settings),
        )
        rows.append(
            Breakdown(
                value=value, items=repeated.item_total, pairs=int(repeated.pairs @ repeated.items),
                conflicts=int(repeated.items[repeated.disagreement > 0].sum()),
                estimate=d.estimate, low=d.low, high=d.high, method=d.method,
            )
        )  # fmt: skip
    return tuple(rows)


def _annotator_pairs(repeats: Repeats, settings: Settings) -> tuple[Breakdown, ...]:
    rows = []
    for first, second, pairs, conflicts, items in repeats.annotator_pairs(_MOST_VALUES):
        d = item_mean(
            conflicts / pairs, items, level=settings.level, draws=min(settings.draws, 2_000), seed=settings.seed,
            interval=interval_kind(settings), binary=bool(np.all(pairs == 1)),
        )  # fmt: skip
        rows.append(
            Breakdown(
                value=f"{first} / {second}", items=int(items.sum()), pairs=int(pairs @ items),
                conflicts=int(items[conflicts > 0].sum()), estimate=d.estimate, low=d.low, high=d.high,
                method=d.method,
            )
        )  # fmt: skip
    return tuple(rows)


def reweight(repeats: Repeats, columns: Columns, d: Disagreement) -> tuple[Reweighted, ...]:
    """Compare the make-up of repeated and other rows by class, split and length, and weight d to the whole file's.

    The test is Pearson's chi-squared on repeated against other rows, with Cramer's V as its size; the weighted d is
    the mean of d by category, weighted by the category's share of the file (post-stratification, Cochran 1977,
    sec. 5A.9). It is None where categories with 5 % of the file or more have no repeated item.
    """
    if d.estimate is None:
        return ()
    out = []
    for name, (_, repeated, others) in repeats.representation().items():
        weights, scores = _weights(repeats, columns, name)
        p_value, effect = _difference(np.asarray(repeated, float), np.asarray(others, float))
        known = {c: score for c, score in scores.items() if score is not None and c in weights}
        covered = sum(weights[c] for c in known)
        estimate = None
        if covered > _LEAST_COVERED * sum(weights.values()):
            estimate = sum(weights[c] * score for c, score in known.items()) / covered
        shift = None if estimate is None else estimate - d.estimate
        out.append(Reweighted(by=name, estimate=estimate, shift=shift, p_value=p_value, cramers_v=effect))
    return tuple(out)


def _weights(
    repeats: Repeats, columns: Columns, name: str
) -> tuple[dict[str, float], dict[str, float | None]]:
    """Share of the file, and d, of each category of one characteristic."""
    if name == "class":
        rows = dict(zip(repeats.classes, repeats.class_rows.tolist(), strict=True))
        parts = by_class(repeats.patterns, most=len(rows))
        return {c: float(n) for c, n in rows.items()}, {part.value: part.estimate for part in parts}
    column = str(columns.split) if name == "split" else "__length"
    values = repeats.patterns_by(column)
    return dict(repeats.strata(column)), {value: mean_disagreement(part) for value, part in values.items()}


def _difference(repeated: np.ndarray, others: np.ndarray) -> tuple[float | None, float | None]:
    """p-value and Cramer's V of a 2 x C table; None when one side is empty or there is one category."""
    used = repeated + others > 0
    table = np.vstack([repeated[used], others[used]])
    if table.shape[1] < 2 or np.any(table.sum(axis=1) == 0):
        return None, None
    test = stats.chi2_contingency(table, correction=False)
    return float(test.pvalue), float(np.sqrt(test.statistic / table.sum()))


def mean_disagreement(patterns: CountPatterns) -> float | None:
    """d of the repeated items, each once; None without any."""
    repeated = patterns.repeated
    total = repeated.item_total
    return float(repeated.disagreement @ repeated.items) / total if total else None


def copied_shares(d: Disagreement, classes: int, *, refused: bool) -> tuple[CopiedShare, ...]:
    """eps if a share c of the repeats copied an earlier opinion: d_obs = (1 - c)d."""
    if d.estimate is None or refused:
        return ()
    rows = []
    for share in _COPIED_SHARES:
        true = d.estimate / (1.0 - share)
        known = true <= maximum_disagreement(classes)
        rows.append(
            CopiedShare(
                share=share,
                disagreement=true if known else None,
                flip_rate=flip_rate(true, classes=classes) if known else None,
            )
        )
    return tuple(rows)
