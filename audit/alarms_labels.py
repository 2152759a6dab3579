"""Alarms about what was taken for labels and items: spellings, typos, words for "no label", and wrong items."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from audit.evidence import Evidence
from audit.label_looks import likely_order, likely_separator
from audit.labels import likely_typos, no_labels
from audit.numeric import as_number, value_scores
from audit.patterns import FloatArray
from audit.results import Alarm

__all__ = ["ABSENT", "CHECKS", "NUMBERS", "ORDER", "SETS", "SPELLINGS", "TYPOS", "spellings", "typos"]

#: Codes of alarms that other kinds of labels do without, or raise by themselves.
NUMBERS, TYPOS, ABSENT = "numbers as classes", "label typos", "labels that may mean none"
SETS, ORDER, SPELLINGS = "sets as classes", "grades as classes", "label spellings"

#: So many different numbers, some with a fraction, are measurements. Whole numbers may be codes of classes: they need
#: more, gaps between them, and conflicts that lie this much closer together than different labels do by chance.
_FRACTIONS, _WHOLE = 10, 20
_CLOSER = 0.5

#: With fewer repeated items than this, chance agreement is not told.
_FEW_ITEMS = 30

#: Where the interval of kappa reaches above this, chance agreement is not shown (Landis & Koch 1977: fair from .21).
_FAIR = 0.3


def _spellings(evidence: Evidence) -> Iterator[Alarm]:
    if not evidence.merged:
        yield from spellings(evidence.spellings)


def spellings(variants: Sequence[Sequence[str]]) -> Iterator[Alarm]:
    """The alarm that groups of names may be spellings of one."""
    if variants:
        listed = "; ".join("{" + ", ".join(repr(name) for name in names) + "}" for names in variants)
        yield Alarm(
            code=SPELLINGS,
            severity="warning",
            message=f"Label spellings: {listed} may be the same class, and count as different ones here.",
            action="--merge-labels merges them",
            figures={"variants": [list(names) for names in variants]},
        )


def typos(names: Sequence[str], rows: Sequence[int]) -> Iterator[Alarm]:
    """The alarm that rare names of labels, with so many ``rows`` each, look like misspellings of others."""
    found = likely_typos(names, rows)
    if found:
        listed = ", ".join(f"{rare!r} for {common!r}" for rare, common in found)
        yield Alarm(
            code=TYPOS,
            severity="warning",
            message=f"Label typos: {listed}? A rare label whose name is one letter off counts as one of its own.",
            action="correct the labels in the file",
            figures={"typos": [list(pair) for pair in found]},
        )


def _odd_labels(evidence: Evidence) -> Iterator[Alarm]:
    classes, rows = evidence.patterns.classes, evidence.class_rows.tolist()
    yield from typos(classes, rows)
    absent = no_labels(classes)
    if absent and len(absent) < len(classes):
        count = sum(n for name, n in zip(classes, rows, strict=True) if name in absent)
        yield Alarm(
            code=ABSENT,
            severity="note",
            message=f"{', '.join(map(repr, absent))} ({count:,} labels) count as classes; they may mean 'no label'.",
            action=f"--missing {','.join(absent)} leaves them out",
            figures={"labels": list(absent), "rows": count},
        )


def _numbers(evidence: Evidence) -> Iterator[Alarm]:
    classes = evidence.patterns.classes
    values = _finite(classes)
    if values is None:
        return
    count = len(np.unique(values))
    if count < _FRACTIONS:
        return
    fractions = bool(np.any(values != np.round(values)))
    closer = _closer(evidence, values)
    if not fractions:
        gaps = values.max() - values.min() + 1 > 1.2 * count
        if count <= _WHOLE or not gaps or closer is None or closer > _CLOSER:
            return
    near = (
        ""
        if closer is None
        else (
            f"; two different labels of an item are {closer:.2g} times as far apart as different labels are by chance"
        )
    )
    yield Alarm(
        code=NUMBERS,
        severity="warning",
        message=f"The labels are {count:,} different numbers, and count as classes without an order here{near}.",
        action="--kind numeric measures their noise, and the RMSE, R² and MAE that no model can beat",
        figures={"numbers": count, "fractions": fractions, "distance_to_chance": closer},
    )


def _sets(evidence: Evidence) -> Iterator[Alarm]:
    classes, rows = evidence.patterns.classes, evidence.class_rows.tolist()
    sep = likely_separator(classes, rows)
    if sep is None:
        return
    several = sum(n for name, n in zip(classes, rows, strict=True) if sep in name)
    yield Alarm(
        code=SETS,
        severity="note",
        message=(
            f"The labels look like sets of tags with {sep!r} between them ({several:,} of {sum(rows):,}); sets that "
            "differ in one tag, or in the order of tags, count as different classes here."
        ),
        action=f"--kind tags --sep {sep!r} takes them as sets, and tells d of each tag",
        figures={"separator": sep, "rows": several},
    )


def _grades(evidence: Evidence) -> Iterator[Alarm]:
    found = likely_order(evidence.patterns, evidence.class_rows)
    if found is None:
        return
    order, adjacent, ratio = found
    given = _finite(order) is None
    yield Alarm(
        code=ORDER,
        severity="note",
        message=(
            f"The labels look like ordered grades ({', '.join(order)}), and count as classes without an order here: "
            f"{adjacent:.0%} of the conflicts are one step apart, and two different labels of an item are {ratio:.2g} "
            "times as far apart as different labels are by chance."
        ),
        action=(
            f"--kind ordinal{' --classes ' + ','.join(order) if given else ''} tells the quadratic-weighted κ, and the "
            "most that a model's can be"
        ),
        figures={"order": list(order), "adjacent": adjacent, "distance_to_chance": ratio},
    )


def _finite(classes: Sequence[str]) -> FloatArray | None:
    """The labels as finite numbers, or None."""
    values = [value for name in classes if (value := as_number(name)) is not None]
    return np.array(values) if len(values) == len(classes) else None


def _closer(evidence: Evidence, values: FloatArray) -> float | None:
    """The distance of two different labels of an item over that of two different labels of the file."""
    repeated, total = evidence.patterns.repeated, float(evidence.class_rows.sum())
    conflicts = repeated.items[repeated.disagreement > 0].sum()
    if conflicts < _FEW_ITEMS or total == 0:
        return None
    scores = value_scores(repeated, values)
    own = float(scores.distances @ scores.items) / float(repeated.disagreement @ repeated.items)
    order = np.argsort(values)
    share = evidence.class_rows[order] / total
    below = np.cumsum(share)[:-1]
    apart = 2.0 * float(below * (1.0 - below) @ np.diff(values[order]))
    chance = apart / (1.0 - float(share @ share))
    return own / chance if math.isfinite(chance) and chance > 0 else None


def _chance(evidence: Evidence) -> Iterator[Alarm]:
    kappa, items = evidence.kappa, evidence.patterns.repeated.item_total
    if kappa.estimate is None or kappa.low is None or kappa.high is None or items < _FEW_ITEMS:
        return
    if kappa.low > 0.0 or kappa.high > _FAIR:
        return
    if evidence.refused is not None:
        return
    more = (
        f" The file also has {', '.join(evidence.unused[:8])}: all that makes two rows the same question must be in "
        "the item."
        if evidence.unused
        else ""
    )
    yield Alarm(
        code="no better than chance",
        severity="warning",
        message=(
            f"Labels of one item agree no better than labels of different items would by chance (retest kappa "
            f"{kappa.estimate:.2f}, from {kappa.low:.2f}). Either the labels say nothing or these rows are not repeats."
            f"{more}"
        ),
        action="--item names the columns that make an item",
        figures={"kappa": kappa.estimate, "low": kappa.low, "high": kappa.high},
    )


def _ladder(evidence: Evidence) -> Iterator[Alarm]:
    levels = [rung.level for rung in evidence.ladder]
    if evidence.normalise not in levels:
        return
    used = evidence.ladder[levels.index(evidence.normalise)]
    for rung in evidence.ladder[levels.index(evidence.normalise) + 1 :]:
        if rung.items < used.items + max(5, 0.2 * used.items) or rung.estimate is None:
            continue
        more = f"{rung.items:,} repeated items with d = {rung.estimate:.3f}"
        now = (
            "there is none"
            if used.estimate is None
            else f"there are {used.items:,} with d = {used.estimate:.3f}"
        )
        yield Alarm(
            code="more repeats in other spelling",
            severity="note",
            message=f"At {rung.level} there are {more}; here {now}.",
            action=f"--normalise {rung.level} counts them, if such items are the same question",
            figures={
                "level": rung.level,
                "items": rung.items,
                "disagreement": rung.estimate,
                "items_used": used.items,
            },
        )


CHECKS = (_spellings, _numbers, _sets, _grades, _odd_labels, _chance, _ladder)
