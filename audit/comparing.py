"""Did the labels get better? Two files with labels of the same items: d before and after, and what moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from audit.agreement import retest_kappa
from audit.ceiling import ceiling_band
from audit.comparing_results import FileComparison, Moved, Side
from audit.disagreement import IntervalKind, estimate_disagreement
from audit.errors import ArgumentError
from audit.evidence import deduplicated
from audit.fliprate import estimate_flip_rate
from audit.grouping_choice import choose_columns
from audit.grouping_files import SIDES, GroupedFiles, group_files
from audit.intervals import check_level, check_seed, wilson
from audit.labels import spelling_alarm
from audit.paired import fewer_than_fresh, paired_difference, score_correlation, sign_test, symmetry_test
from audit.patterns import CountPatterns
from audit.results import Alarm, Estimate
from audit.results_base import RunSettings
from audit.version import __version__

__all__ = ["FileComparison", "Moved", "Side", "compare_files"]


def compare_files(
    before: Any,
    after: Any,
    *,
    item: Sequence[str] = (),
    label: str | None = None,
    label_after: str | None = None,
    row_id: str | None = None,
    missing: Sequence[str] = (),
    normalise: str = "case",
    level: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
    interval: IntervalKind = "wilson",
    **reading: Any,
) -> FileComparison:
    """Compare two files with labels of the same items.

    Parameters
    ----------
    before, after:
        What :func:`audit.reading.open_table` reads.
    item:
        The columns that make an item, of the same names in both files; guessed from the first if not given.
    label, label_after:
        The label column of the first file (guessed if not given), and of the second where its name differs.
    row_id:
        A column that tells rows apart in both files; labels are then compared row by row, else item by item.
    missing, normalise, level, draws, seed, interval, reading:
        As in :func:`audit.duplicates.audit_duplicates`.

    Raises
    ------
    InputError, ArgumentError
        A file, a column or an option cannot be used.
    """
    check_level(level)
    check_seed(seed)
    chosen = choose_columns(before, item=item, label=label, **reading)
    item, label = chosen.item, chosen.label or ""
    with group_files(
        before, after, item=item, label=(label, label_after or label), second_label="--label-after", row_id=row_id,
        missing=missing, normalise=normalise, **reading,
    ) as files:  # fmt: skip
        if len(files.classes) > _MOST_CLASSES:
            raise ArgumentError(
                f"the two files have {len(files.classes):,} different labels, and up to {_MOST_CLASSES:,} are "
                "compared: is --label the column of labels?"
            )
        among = files.repeated_on_both()
        sides = [
            _side(
                files,
                k,
                files.patterns(name, among=among),
                level=level,
                draws=draws,
                seed=seed,
                interval=interval,
            )
            for k, name in enumerate(SIDES)
        ]
        first, second, items = files.paired_scores()
        table, untold = files.transitions()
        multiplied = files.multiplied()
        in_both, classes, sources = files.items(), files.classes, files.sources
    old, new = sides
    difference = paired_difference(
        old.disagreement, new.disagreement, correlation=score_correlation(first, second, items)
    )
    p_value = sign_test(first, second, items, seed=seed)
    together, apart = int(items[second < first].sum()), int(items[second > first].sum())
    symmetry, method = symmetry_test(table)
    unit = "rows" if row_id is not None else "items"
    spelled = spelling_alarm(classes)
    alarms = (
        *([spelled] if spelled else ()),
        *_alarms(old, new, in_both=in_both, repeated=int(items.sum())),
        *_copied(*multiplied),
        *_changed_to_agree(old, new, together=together, apart=apart),
    )
    verdict = _verdict(difference, alarms, in_both=in_both, repeated=int(items.sum()))
    verdict = f"{verdict} {_changed(table, unit)}".strip()
    return FileComparison(
        classes=classes, level=level, items_in_both=in_both, repeated_in_both=int(items.sum()), before=old,
        after=new, difference=difference, p_value=p_value, came_together=together, moved_apart=apart,
        compared=int(table.sum()),
        unit=unit, untold=untold,
        confusion=tuple(tuple(map(int, row)) for row in table), moved=_moves(classes, table, level),
        symmetry_p_value=symmetry, symmetry_method=method, alarms=alarms,
        verdict=verdict, notes=chosen.reasons,
        settings=RunSettings(
            sources=sources, item=tuple(item), labels=(label, label_after or label), version=__version__,
            options={
                "row_id": row_id, "missing": tuple(missing), "normalise": normalise, "level": level, "draws": draws,
                "seed": seed, "interval": interval,
            },
        ),
    )  # fmt: skip


def _side(
    files: GroupedFiles,
    k: int,
    patterns: CountPatterns,
    *,
    level: float,
    draws: int,
    seed: int,
    interval: IntervalKind,
) -> Side:
    d = estimate_disagreement(patterns, level=level, draws=draws, seed=seed, interval=interval)
    refused = deduplicated(patterns, files.class_rows(SIDES[k]))
    rate = estimate_flip_rate(d, classes=max(2, len(files.classes)), refused=refused)
    return Side(
        rows=files.rows[k],
        labelled=files.labelled[k],
        items=files.items(SIDES[k]),
        conflicts=int(patterns.items[patterns.disagreement > 0].sum()),
        disagreement=d,
        flip_rate=rate,
        ceiling=ceiling_band(d, rate),
        deduplicated=refused is not None,
        kappa=retest_kappa(patterns),
    )


def _moves(classes: Sequence[str], table: np.ndarray, level: float) -> tuple[Moved, ...]:
    parts = []
    for k, name in enumerate(classes):
        total, changed = int(table[k].sum()), int(table[k].sum() - table[k, k])
        low, high = wilson(changed, total, level=level) if total else (None, None)
        share = Estimate(estimate=changed / total if total else None, low=low, high=high, method="Wilson")
        to = {classes[j]: int(table[k, j]) for j in range(len(classes)) if j != k and table[k, j]}
        parts.append(Moved(label=name, total=total, changed=changed, share=share, to=to))
    return tuple(parts)


#: The table of labels before and after has a cell for each pair of classes.
_MOST_CLASSES = 3_000
#: So few conflicts before are no proof that none after means copied labels.
_FEWEST_CONFLICTS = 5
#: Labels given anew move items apart as well as together: a lower chance than this that so few were, or none beside
#: so many that came together, is a warning.
_CHANCE, _NONE_BESIDE = 0.01, 20
#: Fresh labels seldom fall in exactly the shares of the old ones; copies of rows always do.
_COPIED = 0.9


def _alarms(old: Side, new: Side, *, in_both: int, repeated: int) -> list[Alarm]:
    found = []
    for name, side, other in (("after", new, old), ("before", old, new)):
        if repeated and side.conflicts == 0 and other.conflicts >= _FEWEST_CONFLICTS:
            found.append(Alarm(
                code="one_label_an_item",
                severity="warning",
                message=f"no repeated item has two labels {name}: if each item was judged once and its label copied "
                "to its repeats, d there measures nothing",
                action="audit relabel agree asks the pipeline again, as fresh draws",
                figures={"repeated": repeated, "conflicts_on_the_other_side": other.conflicts},
            ))  # fmt: skip
    for name, side in (("before", old), ("after", new)):
        if side.deduplicated:
            found.append(Alarm(
                code="deduplicated",
                severity="warning",
                message=f"far fewer repeats agree {name} than random labels would: equal repeats were removed, "
                "or an item may carry several labels; d there is no rate of mistakes, and no flip rate is given",
                action="compare the files as they were before de-duplication, or name one label column per question",
                figures={"repeated": repeated, "conflicts": side.conflicts},
            ))  # fmt: skip
    most = max(old.items, new.items)
    if in_both < 0.5 * most:
        found.append(Alarm(
            code="few_items_in_both",
            severity="warning",
            message=f"only {in_both:,} of {most:,} items stand in both files: what is said holds for these alone",
            action="check --item and --normalise, or compare the whole files",
            figures={"items_in_both": in_both, "items": most},
        ))  # fmt: skip
    return found


def _copied(more_before: int, more_after: int, same: int) -> list[Alarm]:
    """A warning where one side has more labels of disagreeing items in exactly the shares of the other."""
    total = more_before + more_after
    if total < _FEWEST_CONFLICTS or same < _COPIED * total:
        return []
    name = "after" if more_after >= more_before else "before"
    return [Alarm(
        code="rows_copied",
        severity="warning",
        message=f"{same:,} of {total:,} disagreeing items have more labels {name}, in exactly the shares of the "
        "other file: rows were copied, and copies change d though no label did",
        action="compare the files without copied rows",
        figures={"items": total, "same_shares": same},
    )]  # fmt: skip


def _changed_to_agree(old: Side, new: Side, *, together: int, apart: int) -> list[Alarm]:
    """A warning where labels came together and hardly any moved apart, as fresh labels do by chance.

    How few is held against :func:`audit.paired.fewer_than_fresh`.
    """
    d = [side.disagreement.estimate for side in (old, new)]
    if (
        d[0] is None
        or d[1] is None
        or new.conflicts == 0
        or old.conflicts == 0
        or not 0.0 < d[0] < 1.0 > d[1] > 0.0
    ):
        return []
    odds = d[1] / (1.0 - d[1]) * (1.0 - d[0]) / d[0]
    found = []
    for name, more, fewer, ratio in (
        ("after", together, apart, odds),
        ("before", apart, together, 1.0 / odds),
    ):
        chance = fewer_than_fresh(fewer, more, odds=ratio)
        if more < _FEWEST_CONFLICTS or (chance > _CHANCE and (fewer or more < _NONE_BESIDE)):
            continue
        found.append(Alarm(
            code="changed_to_agree",
            severity="warning",
            message=f"{more:,} items agree more {name} and {fewer:,} less, where labels given anew would part about "
            f"{more * ratio:,.0f}: if labels were changed because repeats differed or a model doubted them, d {name} "
            "says how well they were brought together, not how right they are",
            action="keep d of the labels as they were given; to measure labels that were changed, give some a second "
            "time, blind to the first (audit plan)",
            figures={"agree_more": more, "agree_less": fewer, "expected": more * ratio, "chance": chance},
        ))  # fmt: skip
    return found


#: Alarms that take the meaning from a change of d, and what the verdict says of them: the first that is raised.
_DOUBTS = {
    "deduplicated": "one side looks de-duplicated",
    "one_label_an_item": "one side has one label an item",
    "rows_copied": "rows of one side look copied",
    "changed_to_agree": "as where labels are changed to agree",
}


def _verdict(difference: Estimate, alarms: Sequence[Alarm], *, in_both: int, repeated: int) -> str:
    if not in_both:
        return "The two files have no item in common: are the item columns and --normalise right?"
    if difference.estimate is None or difference.low is None or difference.high is None:
        return f"{in_both:,} items stand in both files, but none is repeated in both: d cannot be compared."
    told = f"d changed by {difference.text('+.3f')}"
    codes = {alarm.code for alarm in alarms}
    for code, why in _DOUBTS.items():
        if code in codes:
            return f"{told} on {repeated:,} repeated items, but {why}: see the alarm below."
    if difference.high < 0:
        return f"The labels after agree more: {told} on {repeated:,} repeated items."
    if difference.low > 0:
        return f"The labels after agree less: {told} on {repeated:,} repeated items."
    return f"No change in d that {repeated:,} repeated items can tell: {told}."


def _changed(table: np.ndarray, unit: str) -> str:
    total = int(table.sum())
    changed = total - int(np.trace(table))
    return f"{changed:,} of {total:,} {unit} ({changed / total:.1%}) have another label." if total else ""
