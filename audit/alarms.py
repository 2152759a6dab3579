"""What may make a duplicate audit lie: each check gives an alarm with its figures and the option that acts on it.

The checks read numbers only. ``severity`` is ``"stop"`` where no flip rate may be formed, ``"warning"`` where the
headline may be off, ``"note"`` for something to know.
"""

from __future__ import annotations

from collections.abc import Iterator

from audit import alarms_beyond, alarms_labels
from audit.disagreement import estimate_disagreement
from audit.evidence import Evidence
from audit.fliprate import estimate_flip_rate, maximum_disagreement
from audit.homogeneity import compare_contrast, inside_and_outside
from audit.patterns import PairContrast
from audit.results import Alarm

__all__ = ["agrees_more", "looks_copied", "raise_alarms"]

#: Tests behind an alarm use this level: a clean file with a handful of columns should raise none.
_SIGNIFICANT = 0.005

#: Smaller shifts of d than this are not worth an alarm, however certain.
_SMALLEST_SHIFT = 0.02

#: Below this Cramer's V two make-ups are alike for our purpose (Cohen 1988: .1 is a small effect).
_SMALL_EFFECT = 0.1

#: With fewer repeated items than this, an estimate is told to be rough.
_FEW_ITEMS = 30

#: Fewer equal rows than this are no pattern.
_FEWEST_COPIES = 5

#: Rows of one row id that differ in more items than this share are no slips: the id is another thing's.
_SLIPS = 0.02


def raise_alarms(evidence: Evidence) -> tuple[Alarm, ...]:
    """All alarms of the evidence, the gravest first."""
    order = {"stop": 0, "warning": 1, "note": 2}
    found = [alarm for check in _CHECKS for alarm in check(evidence)]
    return tuple(sorted(found, key=lambda alarm: order[alarm.severity]))


def _deduplicated(evidence: Evidence) -> Iterator[Alarm]:
    reason = evidence.refused
    if reason is not None:
        repeated = evidence.patterns.repeated
        yield Alarm(
            code="de-duplicated or multi-label",
            severity="stop",
            message=f"{reason[0].upper()}{reason[1:]}. No flip rate and no ceiling are given.",
            action="audit the file as it was before de-duplication, or name one label column per question",
            figures={
                "items": repeated.item_total,
                "conflicts": int(repeated.items[repeated.disagreement > 0].sum()),
                "agreements": int(repeated.items[repeated.disagreement == 0].sum()),
            },
        )


def _above_maximum(evidence: Evidence) -> Iterator[Alarm]:
    d, classes = evidence.d.estimate, evidence.patterns.class_count
    if d is None or classes < 2 or d <= maximum_disagreement(classes):
        return
    if evidence.refused is not None:
        return  # the same cause, told already
    yield Alarm(
        code="above the maximum",
        severity="stop",
        message=(
            f"d = {d:.3f} is above {maximum_disagreement(classes):.3f}, what labels drawn evenly at random over "
            f"{classes} classes would show. No flip rate and no ceiling are given."
        ),
        action="check --item (are these repeats of one question?) and name all classes with --classes",
        figures={"disagreement": d, "maximum": maximum_disagreement(classes), "classes": classes},
    )


def _copies(evidence: Evidence) -> Iterator[Alarm]:
    copies = evidence.copies
    if copies is None or copies.rows == 0 or _row_id_of_items(evidence) is not None:
        return
    p_value, severity = None, "warning"
    if not copies.by_row_id:
        if copies.contrast is None or not looks_copied(copies.contrast):
            return
        p_value = compare_contrast(copies.contrast)
        severity = "note" if _never_differ(copies.contrast) else "warning"
    left = estimate_disagreement(copies.without, level=evidence.d.level, draws=1_000)
    items, classes = copies.without.repeated.item_total, evidence.patterns.class_count
    rate = estimate_flip_rate(left, classes=classes) if classes > 1 else None
    how = "carry the same row id as another" if copies.by_row_id else "equal another row in every column"
    if items == 0:
        without = "Without them no item has two labels."
    else:
        conflicts = int(copies.without.repeated.items[copies.without.repeated.disagreement > 0].sum())
        eps = f", flip rate {rate.estimate:.3f}" if rate is not None and rate.estimate is not None else ""
        few = "; too few to say" if items < _FEW_ITEMS else ""
        without = f"Without them d is {left.estimate:.3f}{eps} ({conflicts} of {items} repeated items disagree{few})."
    yield Alarm(
        code="export copies",
        severity=severity,
        message=f"Export copies: {copies.rows} repeated rows {how}; they are no second opinions. {without}",
        action="--drop-copies leaves them out of every figure",
        figures={
            "rows": copies.rows,
            "by_row_id": copies.by_row_id,
            "p_value": p_value,
            "disagreement_with": evidence.d.estimate,
            "disagreement_without": left.estimate,
            "flip_rate_without": rate.estimate if rate is not None else None,
            "items_without": items,
        },
    )


def _row_id_of_items(evidence: Evidence) -> tuple[str, int, int] | None:
    """The column, the items with rows of one row id, and those of them at odds, if such rows differ too often."""
    column, contrast = evidence.contrasts.get("row id", ("", None))
    if contrast is None:
        return None
    shared = int((contrast.inside_pairs > 0) @ contrast.items)
    differ = int((contrast.inside_conflicts > 0) @ contrast.items)
    return (column, shared, differ) if differ > max(1.0, _SLIPS * shared) else None


def _row_ids(evidence: Evidence) -> Iterator[Alarm]:
    found = _row_id_of_items(evidence)
    if found is None:
        return
    column, shared, differ = found
    yield Alarm(
        code="row id of items",
        severity="warning",
        message=(
            f"Row id of items: rows with one {column} have different labels in {differ:,} of {shared:,} items, so it "
            "tells items apart, not rows, and such rows are no copies. --drop-copies would take agreements away."
        ),
        action="leave --row-id out, or name the column that numbers the rows",
        figures={"items": shared, "items_at_odds": differ},
    )


def looks_copied(contrast: PairContrast) -> bool:
    """Rows equal in all other columns agree more than the other pairs, or there are no other pairs."""
    inside = int((contrast.inside_pairs > 0) @ contrast.items)
    if _never_differ(contrast):
        return inside >= _FEW_ITEMS and not contrast.inside_conflicts @ contrast.items
    if inside < _FEWEST_COPIES:
        return False
    return agrees_more(contrast) is not None


def _never_differ(contrast: PairContrast) -> bool:
    """Whether the other columns are the same in all rows of an item: then equality in them says little."""
    return not contrast.outside_pairs @ contrast.items


def agrees_more(contrast: PairContrast) -> tuple[float, float, float] | None:
    """(d inside, d outside, p) when pairs inside agree clearly more than pairs outside, else None."""
    inside, outside = inside_and_outside(contrast)
    p_value = compare_contrast(contrast)
    if inside.estimate is None or outside.estimate is None or p_value is None:
        return None
    if p_value >= _SIGNIFICANT or outside.estimate - inside.estimate < _SMALLEST_SHIFT:
        return None
    return inside.estimate, outside.estimate, p_value


def _dependence(evidence: Evidence) -> Iterator[Alarm]:
    apart = "label the repeats apart: audit plan draws and shuffles them"
    words = {
        "same annotator": ("one annotator's own repeats", "--one-per {column} keeps one label per annotator and item"),
        "adjacent rows": ("repeats in neighbouring rows", apart),
        "same minute": ("repeats given in the same minute", apart),
    }  # fmt: skip
    for code, (column, contrast) in evidence.contrasts.items():
        found = agrees_more(contrast) if code in words else None
        if found is None:
            continue
        inside, outside, p_value = found
        name, action = words[code]
        yield Alarm(
            code=code,
            severity="warning",
            message=(
                f"Dependent repeats: {name} disagree on {inside:.1%}, the others on {outside:.1%}. If part of the "
                "repeats copy an earlier opinion, the true d is higher than the headline."
            ),
            action=action.format(column=column),
            figures={
                "inside": inside,
                "outside": outside,
                "p_value": p_value,
                "inside_items": int((contrast.inside_pairs > 0) @ contrast.items),
                "outside_items": int((contrast.outside_pairs > 0) @ contrast.items),
            },
        )


def _adjudicated(evidence: Evidence) -> Iterator[Alarm]:
    """Further labels where the first ones disagreed: the smallest groups all agree, the larger ones all conflict."""
    repeated = evidence.patterns.repeated
    if not repeated.item_total:
        return
    small = repeated.sizes == repeated.sizes.min()
    conflicting = repeated.disagreement > 0
    first, more = int(repeated.items[small].sum()), int(repeated.items[~small].sum())
    agreed = first - int(repeated.items[small & conflicting].sum())
    settled = int(repeated.items[~small & conflicting].sum())
    if first < _FEWEST_COPIES or more < _FEWEST_COPIES or agreed < first or settled < more:
        return
    size, share = int(repeated.sizes.min()), more / (first + more)
    yield Alarm(
        code="labels added to conflicts",
        severity="warning",
        message=(
            f"All {first:,} items with {size} labels agree and all {more:,} with more conflict: further labels seem to "
            f"have been asked for where the first {size} disagreed. d is too low; of the first {size} labels "
            f"{share:.1%} of the items disagree."
        ),
        action=f"audit the first {size} labels of each item alone",
        figures={"size": size, "items": first, "items_with_more": more, "share": share},
    )


def _splits(evidence: Evidence) -> Iterator[Alarm]:
    if evidence.split is None or evidence.split not in evidence.comparisons:
        return
    comparison = evidence.comparisons[evidence.split]
    if comparison.items_across:
        across = comparison.across.estimate if comparison.across is not None else None
        within = comparison.within.estimate if comparison.within is not None else None
        told = "" if across is None else f"; their labels disagree on {across:.1%} across splits"
        told += "" if within is None else f", repeats within a split on {within:.1%}"
        yield Alarm(
            code="leakage",
            severity="warning",
            message=f"Leakage: {comparison.items_across} items stand in more than one split{told}.",
            action="move all rows of an item into one split before training; --conflicts FILE lists the worst",
            figures={"items": comparison.items_across, "within": within, "across": across},
        )
    if comparison.p_value is not None and comparison.p_value < _SIGNIFICANT:
        yield Alarm(
            code="splits differ",
            severity="warning",
            message=(
                f"d is not the same in every split (p = {comparison.p_value:.2g}): the ceiling of one split does not "
                "hold for another."
            ),
            action=f"read d by {evidence.split} and quote the band of the split you score on",
            figures={"p_value": comparison.p_value},
        )


def _representation(evidence: Evidence) -> Iterator[Alarm]:
    for part in evidence.reweighted:
        if part.p_value is None or part.cramers_v is None or evidence.d.estimate is None:
            continue
        if part.p_value >= 0.001 or part.cramers_v < _SMALL_EFFECT:
            continue
        if part.shift is not None and abs(part.shift) < max(_SMALLEST_SHIFT / 2.0, 0.1 * evidence.d.estimate):
            continue
        again = "" if part.estimate is None else f" Weighted to the whole file, d is {part.estimate:.3f}."
        yield Alarm(
            code="unrepresentative repeats",
            severity="warning",
            message=(
                f"The repeated rows are no random sample of the file by {part.by} "
                f"(Cramer's V = {part.cramers_v:.2f}, p = {part.p_value:.2g}).{again}"
            ),
            action="audit plan draws a random sample to label a second time",
            figures={
                "by": part.by,
                "cramers_v": part.cramers_v,
                "p_value": part.p_value,
                "disagreement": evidence.d.estimate,
                "disagreement_reweighted": part.estimate,
            },
        )


def _weightings(evidence: Evidence) -> Iterator[Alarm]:
    d = evidence.d
    if not d.weightings_differ or d.estimate is None or d.pair_weighted is None or d.row_weighted is None:
        return
    largest = int(evidence.patterns.repeated.sizes.max())
    yield Alarm(
        code="weightings differ",
        severity="note",
        message=(
            f"d is {d.estimate:.3f} with each item once, {d.row_weighted:.3f} weighted by rows and "
            f"{d.pair_weighted:.3f} by pairs: a few large groups (up to {largest} labels) decide the latter two."
        ),
        action="quote the item-weighted d; look at agreement by group size",
        figures={
            "item_weighted": d.estimate,
            "row_weighted": d.row_weighted,
            "pair_weighted": d.pair_weighted,
            "largest_group": largest,
        },
    )


_CHECKS = (
    _deduplicated,
    _above_maximum,
    _copies,
    _row_ids,
    _dependence,
    _adjudicated,
    _splits,
    _representation,
    *alarms_labels.CHECKS,
    *alarms_beyond.CHECKS,
    _weightings,
)
