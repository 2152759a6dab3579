"""What may make an audit of numbers lie: copies, removed repeats, repeats that lean on one another, a few slips."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy import stats

from audit.alarms import agrees_more, looks_copied
from audit.evidence import deduplicated
from audit.grouping import Repeats
from audit.numeric import ValueScores, noise_variance, value_scores
from audit.patterns import CountPatterns, FloatArray
from audit.results import Alarm, Estimate

__all__ = ["pair_distances", "raise_numeric_alarms", "unlike_spread"]

#: A hundredth of the items may hold this much of the noise variance before the audit says that few decide it.
_FEW_HOLD = 0.5
_LEAST_ITEMS = 100
#: Noise and level go together when their rank correlation is at least this, and is no chance.
_WITH_LEVEL = 0.2
#: Tests of removed repeats, and of repeats that are unlike the other items.
_REMOVED, _UNLIKE = 0.0005, 0.001
#: A repeated item's label above another's this far from half the time is an effect worth telling.
_SHIFTED = 0.06
#: Two ceilings of R² that differ by less are one.
_CEILINGS = 0.02
#: Pairs of labels are looked at one by one in items of so many different values or fewer.
_MOST_VALUES = 30
#: Noise is spread when no distance has more of the unequal pairs than this; equal ones are then told from this share
#: on, if they are so many times as frequent as the commonest distance and as among different items.
_SPREAD, _EQUAL, _TIMES, _TIMES_CHANCE = 0.25, 0.1, 3.0, 10.0


def raise_numeric_alarms(repeats: Repeats, values: FloatArray, scores: ValueScores) -> tuple[Alarm, ...]:
    """All alarms of numbers, warnings first; ``values`` (K,) are those of the classes of ``repeats``."""
    if not scores.total:
        return ()
    found = (
        *_copies(repeats, values), *_removed(repeats, values), *_dependence(repeats), *_unlike(repeats, values),
        *_slips(scores), *_equal(repeats, values), *_level(scores),
    )  # fmt: skip
    return tuple(sorted(found, key=lambda alarm: alarm.severity != "warning"))


def pair_distances(patterns: CountPatterns, values: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """How far two labels of an item are apart, each repeated item once: the number of items whose pairs are equal
    (an item counts by the share of its pairs), the distances that occur, and the items of each.

    Items of more than thirty different values are left out. ``values`` has shape (K,).
    """
    repeated = patterns.repeated
    order = np.argsort(values, kind="stable")
    table = repeated.counts[:, order].tocsr()
    table.sort_indices()
    cells = np.diff(table.indptr)
    weights = np.where(cells <= _MOST_VALUES, repeated.items / np.maximum(repeated.pairs, 1), 0.0)
    rows = np.repeat(np.arange(len(cells)), cells)
    value, count = values[order][table.indices], table.data.astype(np.float64)
    equal = float(weights[rows] @ (count * (count - 1.0) / 2.0))
    apart: list[FloatArray] = [np.zeros(0)]
    items: list[FloatArray] = [np.zeros(0)]
    for step in range(1, min(int(cells.max(initial=0)), _MOST_VALUES)):
        same = rows[step:] == rows[:-step]
        apart.append((value[step:] - value[:-step])[same])
        items.append((count[step:] * count[:-step] * weights[rows[step:]])[same])
    distance, weight = np.concatenate(apart), np.concatenate(items)
    equal += float(weight[distance == 0.0].sum())  # one number in two spellings
    distance, weight = distance[distance > 0.0], weight[distance > 0.0]
    unit = float(distance.max(initial=0.0)) * 1e-9 or 1.0  # 0.3 - 0.2 and 0.2 - 0.1 are one distance
    found, place = np.unique(np.round(distance / unit), return_inverse=True)
    return equal, found * unit, np.bincount(place, weights=weight, minlength=len(found)).astype(np.float64)


def _copies(repeats: Repeats, values: FloatArray) -> Iterator[Alarm]:
    copies = repeats.without_copies()
    if copies is None or not copies.rows or not looks_copied(repeats.contrast("__extras")):
        return
    left = value_scores(copies.patterns, values)
    told = "Without them no item has two labels"
    if left.total:
        told = f"Without them σ is {_root(left):.4g} ({left.total:,.0f} repeated items)"
    yield Alarm(
        code="export_copies", severity="warning",
        message=f"{copies.rows:,} repeated rows equal another row in every column; they are no second opinions. {told}",
        action="--drop-copies leaves them out of every figure",
        figures={
            "rows": copies.rows, "noise_sd_without": _root(left) if left.total else None, "items_without": left.total,
        },
    )  # fmt: skip


def _removed(repeats: Repeats, values: FloatArray) -> Iterator[Alarm]:
    """Equal repeats were removed: of two draws from any distribution, equal ones are at least half as frequent as ones
    k apart, whatever k (the autocorrelation of the chances is highest at 0, by Cauchy and Schwarz).
    """
    equal, distances, items = pair_distances(repeats.patterns, values)
    p_value = 1.0
    if len(items):
        place = int(np.argmax(items))
        both = equal + float(items[place])
        p_value = min(1.0, len(items) * float(stats.binom.cdf(round(equal), round(both), 1.0 / 3.0)))
    if p_value >= _REMOVED and deduplicated(repeats.patterns, repeats.class_rows) is None:
        return
    most = "" if not len(items) else f", {items.max():,.0f} are {distances[int(np.argmax(items))]:.4g} apart"
    yield Alarm(
        code="deduplicated", severity="warning",
        message=f"{equal:,.0f} of {equal + items.sum():,.0f} pairs of labels are equal{most}: independent ones are "
        "equal at least half as often as any distance apart. Equal repeats were removed, so σ is too high",
        action="audit the file as it was before de-duplication",
        figures={"equal": equal, "pairs": equal + float(items.sum()), "p_value": p_value if len(items) else None},
    )  # fmt: skip


def _dependence(repeats: Repeats) -> Iterator[Alarm]:
    """Repeats of one person, or in neighbouring rows, are equal more often than the others."""
    annotator = repeats.columns.annotator
    named = [] if annotator is None else [
        ("same_annotator", annotator, "one annotator's own repeats", "keep one label per annotator and item")
    ]  # fmt: skip
    apart = "label the repeats apart: audit plan draws and shuffles them"
    for code, column, name, action in (
        *named,
        ("adjacent_rows", "__adjacent", "repeats in neighbouring rows", apart),
    ):
        found = agrees_more(repeats.contrast(column))
        if found is None:
            continue
        inside, outside, p_value = (1.0 - found[0], 1.0 - found[1], found[2])
        yield Alarm(
            code=code, severity="warning",
            message=f"{name} are equal in {inside:.1%} of pairs, the others in {outside:.1%}: if part of them copy an "
            "earlier label, σ is too low",
            action=action, figures={"inside": inside, "outside": outside, "p_value": p_value},
        )  # fmt: skip


def _unlike(repeats: Repeats, values: FloatArray) -> Iterator[Alarm]:
    """Repeated items have higher or lower labels than the others: the test of Mann and Whitney (1947) over items."""
    patterns = repeats.patterns.repeated
    labels = np.asarray(patterns.counts.T @ (patterns.items / patterns.sizes), np.float64)
    others = repeats.representation()["class"].others.astype(np.float64)
    n, m = float(labels.sum()), float(others.sum())
    if min(n, m) < 1.0:
        return
    level, place = np.unique(values, return_inverse=True)
    first, second = (np.bincount(place, side, minlength=len(level)) for side in (labels, others))
    above = float(first @ (np.cumsum(second) - second / 2.0)) / (n * m)
    total = first + second
    ties = 1.0 - float((total**3 - total).sum()) / ((n + m) ** 3 - (n + m))
    spread = math.sqrt(max(ties, 0.0) * (n + m + 1.0) / (12.0 * n * m))
    p_value = float(2.0 * stats.norm.sf(abs(above - 0.5) / spread)) if spread > 0.0 else 1.0
    if p_value >= _UNLIKE or abs(above - 0.5) < _SHIFTED:
        return
    way = "higher" if above > 0.5 else "lower"
    yield Alarm(
        code="unrepresentative_repeats", severity="warning",
        message=f"the repeated items are no random sample: their labels are {way} than the others' (above one of them "
        f"in {above:.0%} of cases); σ and the ceiling of R² are those of such items",
        action="look at the noise by value, and at r2_file; audit plan draws a random sample to label a second time",
        figures={"above": above, "p_value": p_value, "repeated": n, "others": m},
    )  # fmt: skip


def unlike_spread(ratio: Estimate, file: float | None) -> Iterator[Alarm]:
    """The labels of repeated items vary more or less than those of the file, so that two ceilings of R² differ."""
    if file is None or ratio.estimate is None or ratio.low is None or ratio.high is None:
        return
    if ratio.low <= file <= ratio.high or abs(file - ratio.estimate) < _CEILINGS:
        return
    way = "more" if file < ratio.estimate else "less"
    yield Alarm(
        code="ceilings_of_r2_differ", severity="note",
        message=f"labels of repeated items vary {way} than those of the file: the ceiling of R² is "
        f"{ratio.estimate:.3g} of the one and {file:.3g} of the other",
        action="quote the ceiling of the items that models are scored on",
        figures={"repeated": ratio.estimate, "file": file},
    )  # fmt: skip


def _slips(scores: ValueScores) -> Iterator[Alarm]:
    summed = scores.variances * scores.items
    if scores.total < _LEAST_ITEMS or summed.sum() == 0.0:
        return
    order = np.argsort(-scores.variances)
    first = np.cumsum(scores.items[order]) <= max(1.0, scores.total / 100.0)
    held = float(summed[order][first].sum() / summed.sum())
    if held > _FEW_HOLD:
        yield Alarm(
            code="few_items_hold_the_noise", severity="warning",
            message=f"1% of the items hold {held:.0%} of the noise variance: outliers or slips decide σ",
            action="look at the items whose labels are furthest apart; read the MAE floor, which they move less",
            figures={"share": held},
        )  # fmt: skip


def _equal(repeats: Repeats, values: FloatArray) -> Iterator[Alarm]:
    """Far more pairs are equal to the last digit than the spread of the others explains."""
    equal, _, items = pair_distances(repeats.patterns, values)
    unequal = float(items.sum())
    if equal + unequal < _LEAST_ITEMS or unequal == 0.0 or items.max() > _SPREAD * unequal:
        return
    share = equal / (equal + unequal)
    labels = repeats.class_rows / repeats.class_rows.sum()
    if share < max(_EQUAL, _TIMES_CHANCE * float(labels @ labels)) or equal < _TIMES * items.max():
        return
    scores = value_scores(repeats.patterns, values)
    without = math.sqrt(scores.mean(scores.variances) / (1.0 - share))
    yield Alarm(
        code="equal_to_the_last_digit", severity="note",
        message=f"{share:.0%} of the pairs are equal to the last digit, and the others are spread out: such items "
        f"have no noise, or labels were copied. σ of the others is {without:.4g}",
        action="look at rows of such items: who labelled them, and when; --drop-copies leaves out equal rows",
        figures={"share": share, "noise_sd_of_the_others": without},
    )  # fmt: skip


def _level(scores: ValueScores) -> Iterator[Alarm]:
    if scores.total < _LEAST_ITEMS:
        return
    index = np.repeat(np.arange(len(scores.items)), np.minimum(scores.items, 1_000).astype(np.int64))
    if np.ptp(scores.means) > 0 and np.ptp(scores.variances) > 0:
        rank = stats.spearmanr(scores.means[index], scores.variances[index])
        rho, p_value = float(rank.statistic), float(rank.pvalue)
        if abs(rho) >= _WITH_LEVEL and p_value < 0.001:
            way = "grows" if rho > 0 else "falls"
            yield Alarm(
                code="noise_follows_the_level", severity="note",
                message=f"the noise {way} with the value (rank correlation {rho:+.2f}): one σ does not fit all",
                action="audit the logarithm of the label, or bands of its size",
                figures={"rank_correlation": rho, "p_value": p_value},
            )  # fmt: skip


def _root(scores: ValueScores) -> float:
    return math.sqrt(noise_variance(scores).estimate or 0.0)
