"""Did the labels get better? Two files with labels of the same items: d before and after, and what moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from audit.agreement import retest_kappa
from audit.disagreement import IntervalKind, estimate_disagreement
from audit.fliprate import estimate_flip_rate
from audit.grouping_files import SIDES, GroupedFiles, group_files
from audit.intervals import check_level, check_seed, wilson
from audit.labels import spelling_alarm
from audit.paired import paired_difference, score_correlation, sign_test, symmetry_test
from audit.patterns import CountPatterns
from audit.results import Alarm, Disagreement, Estimate, FlipRate, Result
from audit.results_base import RunSettings
from audit.version import __version__

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FileComparison", "Moved", "Side", "compare_files"]


@dataclass(frozen=True, kw_only=True)
class Side(Result):
    """One of the two files: its rows, and d and ε of the items that are repeated in both."""

    rows: int
    labelled: int
    items: int
    conflicts: int
    disagreement: Disagreement
    flip_rate: FlipRate
    kappa: float | None


@dataclass(frozen=True, kw_only=True)
class Moved(Result):
    """What became of the labels of one class: how many, the share that changed, and where to."""

    label: str
    total: int
    changed: int
    share: Estimate
    to: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class FileComparison(Result):
    """Two files over the same items.

    ``difference`` is d after less d before on the items repeated in both (negative: they agree more), with the MOVER
    interval; ``p_value`` that of equal d. ``confusion`` (K, K) counts the labels before (rows) by after (columns) of
    ``compared`` rows or items; ``untold`` had no single label on one side.
    """

    classes: tuple[str, ...]
    level: float
    items_in_both: int
    repeated_in_both: int
    before: Side
    after: Side
    difference: Estimate
    p_value: float | None
    compared: int
    unit: str
    untold: int
    confusion: tuple[tuple[int, ...], ...]
    moved: tuple[Moved, ...]
    symmetry_p_value: float | None
    symmetry_method: str
    alarms: tuple[Alarm, ...]
    verdict: str
    settings: RunSettings

    def summary(self) -> str:
        """The comparison in a few lines of text."""
        lines = [self.verdict, ""]
        lines.append(f"items in both {self.items_in_both:,}, repeated in both {self.repeated_in_both:,}")
        for name, side in (("before", self.before), ("after", self.after)):
            lines.append(
                f"{name:7} {side.rows:>9,} rows  {side.conflicts:>7,} conflicts  d {side.disagreement.text()}"
                f"  ε {side.flip_rate.text()}"
            )
        lines.append(f"change in d {self.difference.text()}{_p(self.p_value)}")
        lines += ["", f"labels of {self.compared:,} {self.unit} before (rows) and after (columns)"]
        width = max(8, *(len(name) for name in self.classes)) + 1 if self.classes else 8
        lines.append(" " * width + "".join(f"{name:>{width}}" for name in self.classes))
        for name, counts in zip(self.classes, self.confusion, strict=True):
            lines.append(f"{name:{width}}" + "".join(f"{count:>{width},}" for count in counts))
        lines += [
            f"of {part.label!r} changed {part.changed:,} of {part.total:,}: {part.share.text()}"
            for part in self.moved
        ]
        if self.untold:
            lines.append(f"{self.untold:,} {self.unit} left out: two labels tie on a side")
        if self.symmetry_p_value is not None:
            lines.append(
                f"moves one way as often as the other{_p(self.symmetry_p_value)} ({self.symmetry_method})"
            )
        lines += [f"! {alarm.message}: {alarm.action}" for alarm in self.alarms]
        return "\n".join(lines)

    def to_frame(self) -> pd.DataFrame:
        """The table of labels before and after, one row for each pair of classes."""
        import pandas as pd

        rows = [
            {"before": a, "after": b, "count": self.confusion[i][j]}
            for i, a in enumerate(self.classes)
            for j, b in enumerate(self.classes)
        ]
        return pd.DataFrame(rows, columns=["before", "after", "count"])


def compare_files(
    before: Any,
    after: Any,
    *,
    item: Sequence[str],
    label: str,
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
        The columns that make an item, of the same names in both files.
    label, label_after:
        The label column of the first file, and of the second where its name differs.
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
    with group_files(
        before, after, item=item, label=(label, label_after or label), second_label="--label-after", row_id=row_id,
        missing=missing, normalise=normalise, **reading,
    ) as files:  # fmt: skip
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
        in_both, classes, sources = files.items(), files.classes, files.sources
    old, new = sides
    difference = paired_difference(
        old.disagreement, new.disagreement, correlation=score_correlation(first, second, items)
    )
    p_value = sign_test(first, second, items, seed=seed)
    symmetry, method = symmetry_test(table)
    unit = "rows" if row_id is not None else "items"
    spelled = spelling_alarm(classes)
    alarms = (
        *([spelled] if spelled else ()),
        *_alarms(old, new, in_both=in_both, repeated=int(items.sum())),
    )
    verdict = _verdict(difference, alarms, in_both=in_both, repeated=int(items.sum()))
    verdict = f"{verdict} {_changed(table, unit)}".strip()
    return FileComparison(
        classes=classes, level=level, items_in_both=in_both, repeated_in_both=int(items.sum()), before=old,
        after=new, difference=difference, p_value=p_value, compared=int(table.sum()),
        unit=unit, untold=untold,
        confusion=tuple(tuple(map(int, row)) for row in table), moved=_moves(classes, table, level),
        symmetry_p_value=symmetry, symmetry_method=method, alarms=alarms,
        verdict=verdict,
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
    return Side(
        rows=files.rows[k],
        labelled=files.labelled[k],
        items=files.items(SIDES[k]),
        conflicts=int(patterns.items[patterns.disagreement > 0].sum()),
        disagreement=d,
        flip_rate=estimate_flip_rate(d, classes=max(2, len(files.classes))),
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


#: So few conflicts before are no proof that none after means copied labels.
_FEWEST_CONFLICTS = 5


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


def _verdict(difference: Estimate, alarms: Sequence[Alarm], *, in_both: int, repeated: int) -> str:
    if not in_both:
        return "The two files have no item in common: are the item columns and --normalise right?"
    if difference.estimate is None or difference.low is None or difference.high is None:
        return f"{in_both:,} items stand in both files, but none is repeated in both: d cannot be compared."
    told = f"d changed by {difference.estimate:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"
    if any(alarm.code == "one_label_an_item" for alarm in alarms):
        return (
            f"{told} on {repeated:,} repeated items, but one side has one label an item: see the alarm below."
        )
    if difference.high < 0:
        return f"The labels after agree more: {told} on {repeated:,} repeated items."
    if difference.low > 0:
        return f"The labels after agree less: {told} on {repeated:,} repeated items."
    return f"No change in d that {repeated:,} repeated items can tell: {told}."


def _changed(table: np.ndarray, unit: str) -> str:
    total = int(table.sum())
    changed = total - int(np.trace(table))
    return f"{changed:,} of {total:,} {unit} ({changed / total:.1%}) have another label." if total else ""


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return ", p < 0.001" if value < 0.001 else f", p = {value:.3f}"
