"""Audits of labels that are sets of tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from audit.alarms_labels import ABSENT, NUMBERS, ORDER, SETS, SPELLINGS, TYPOS, spellings, typos
from audit.breakdowns import interval_kind, mean_disagreement
from audit.ceiling import ceiling_band
from audit.columns import ROLES, check_roles, guess
from audit.disagreement import estimate_disagreement, item_mean
from audit.duplicates import audit_duplicates
from audit.errors import ArgumentError
from audit.evidence import deduplicated
from audit.fliprate import estimate_flip_rate
from audit.grouping import Columns, group
from audit.label_looks import likely_separator
from audit.labels import merged_names, spelling_variants
from audit.moments import moment_bounds
from audit.patterns import CountPatterns, FloatArray
from audit.reading import HOW_TO_READ, open_table
from audit.results import Alarm, AuditResult, Ceiling, Disagreement, Estimate, FlipRate, Result
from audit.verdict import compose_verdict

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TagAudit", "TagsAudit", "audit_tags", "retold"]


@dataclass(frozen=True, kw_only=True)
class TagAudit(Result):
    """One tag as a question of its own: is it given or not?"""

    tag: str
    share: float
    disagreement: Disagreement
    flip_rate: FlipRate
    ceiling: Ceiling


@dataclass(frozen=True, kw_only=True)
class TagsAudit(Result):
    """An audit of sets of tags: of the exact sets as classes, and of each tag.

    ``distance`` is the mean Jaccard distance of two sets of an item; ``left_out`` counts tags beyond ``most``.
    """

    audit: AuditResult
    tags: tuple[TagAudit, ...]
    left_out: int
    distance: Estimate

    @property
    def ceiling(self) -> Ceiling:
        """The band of the exact sets."""
        return self.audit.ceiling

    def to_dict(self) -> dict[str, Any]:
        """The dictionary of the exact sets with one more entry, ``tags``."""
        more = {**super().to_dict()}
        return {**more.pop("audit"), "tags": more}

    def summary(self) -> str:
        """The audit of the exact sets, and a line for each tag."""
        lines = [
            "exact sets as classes:", self.audit.summary(), "",
            f"Jaccard distance of two sets of an item {self.distance.text('.4g')}", "",
            f"{'tag':24} {'given':>7}  {'d':24} ε",
        ]  # fmt: skip
        lines += [
            f"{part.tag[:24]:24} {part.share:7.1%}  {part.disagreement.text('.4g'):24} {part.flip_rate.text('.4g')}"
            for part in self.tags
        ]
        if self.left_out:
            lines.append(f"{self.left_out:,} rarer tags are left out")
        return "\n".join(lines)


def audit_tags(
    source: Any, *, sep: str = "|", empty_set: str | None = None, most: int = 200, **options: Any
) -> TagsAudit:
    """Audit labels that are sets of tags, written with ``sep`` between them: order and repeats do not matter.

    An empty cell is a missing label, as everywhere; with ``empty_set``, a word such as ``none``, it is the set without
    tags, and so is a cell that holds just this word. The ``most`` most frequent tags get a result each. The other
    options are those of :func:`audit.duplicates.audit_duplicates`.
    """
    import pandas as pd

    if not sep:
        raise ArgumentError("--sep names what stands between two tags, such as '|'")
    if empty_set is not None and (not empty_set.strip() or sep in empty_set):
        raise ArgumentError("--empty-set names the set without tags by one word, such as none")
    reading = {key: options.pop(key) for key in list(options) if key in HOW_TO_READ}
    with open_table(source, **reading) as table:
        items = options.get("item") or ()
        chosen = guess(
            table, item=(items,) if isinstance(items, str) else tuple(items), label=options.get("label"),
            label_columns=(), counts=(),
        )  # fmt: skip
        check_roles(table, **{role: options.get(role) for role in ROLES})
        told = table.report
        cells = [row for batch in table.rows() for row in batch]
        frame = pd.DataFrame(cells, columns=list(table.columns), dtype=object)
    options.update(item=chosen.item, label=chosen.label)
    label = str(chosen.label)
    spelt = _spellings(frame[label], sep) if options.get("merge_labels") else {}
    frame[label] = [_canonical(cell, sep, spelt) or empty_set for cell in frame[label]]
    options["missing"] = tuple(_canonical(name, sep, spelt) or name for name in options.get("missing") or ())
    if options.get("classes"):
        declared = (_canonical(name, sep, spelt) or name for name in options["classes"])
        options["classes"] = tuple(
            dict.fromkeys((*declared, *([empty_set] if empty_set is not None else ())))
        )
    result = audit_duplicates(frame, **options)
    form: dict[str, Any] = {
        "source": told.source,
        "format": told.format,
        "encoding": told.encoding,
        "delimiter": told.delimiter,
        "notes": (
            *told.notes,
            "labels are sets of tags, and the exact sets are the classes",
            *result.data.notes,
        ),
    }
    result = replace(result, data=replace(result.data, **form))
    nothing = frozenset[str]()
    sets = [nothing if name == empty_set else frozenset(name.split(sep)) for name in result.data.classes]
    patterns = result.patterns
    given: dict[str, int] = {}
    for tags, rows in zip(sets, result.data.class_rows, strict=True):
        for tag in tags:
            given[tag] = given.get(tag, 0) + rows
    ranked = sorted(given, key=lambda tag: (-given[tag], tag))
    # Sets that differ in a letter are different sets, and "none" is the empty one.
    odd = (
        *typos(ranked, [given[tag] for tag in ranked]), *spellings(spelling_variants(ranked)), *_unparted(result, sep),
        *_emptied(frame, result, options),
    )  # fmt: skip
    result = retold(result, without=(NUMBERS, TYPOS, ABSENT, SETS, ORDER, SPELLINGS), more=odd)
    # Of exact sets there are too many, and each tag is told by itself.
    result = replace(result, by={name: parts for name, parts in result.by.items() if name != "class"})
    total = sum(result.data.class_rows)
    settings = result.settings
    drawn: dict[str, Any] = {"level": settings.level, "draws": settings.draws, "seed": settings.seed}
    refused = deduplicated(patterns, np.array(result.data.class_rows, np.int64))
    parts = []
    for tag in ranked[:most]:
        binary = _collapsed(patterns, [tag in tags for tags in sets])
        d = estimate_disagreement(binary, interval=interval_kind(settings), **drawn)
        rate = estimate_flip_rate(d, classes=2, refused=refused)
        share = given[tag] / total
        band = replace(
            ceiling_band(d, rate, minority_share=min(share, 1.0 - share)),
            moments=moment_bounds(binary, level=settings.level, seed=settings.seed, refused=rate.reason),
        )
        parts.append(TagAudit(tag=tag, share=share, disagreement=d, flip_rate=rate, ceiling=band))
    return TagsAudit(
        audit=result, tags=tuple(parts), left_out=max(0, len(ranked) - most),
        distance=item_mean(_jaccard(patterns.repeated, sets), patterns.repeated.items, **drawn),
    )  # fmt: skip


def retold(result: AuditResult, *, without: Sequence[str], more: Sequence[Alarm] = ()) -> AuditResult:
    """The result without the alarms of these codes, which speak of plain classes, and with others."""
    alarms = (*(alarm for alarm in result.alarms if alarm.code not in without), *more)
    if alarms == result.alarms:
        return result
    verdict = compose_verdict(
        repeats=result.repeats, d=result.disagreement, rate=result.flip_rate, band=result.ceiling, alarms=alarms,
        unrepeated=result.data.items - result.repeats.items,
    )  # fmt: skip
    return replace(result, alarms=alarms, verdict=verdict)


def _tags(cell: Any, sep: str) -> set[str]:
    return set() if cell is None else {tag.strip() for tag in str(cell).split(sep)} - {""}


def _canonical(cell: Any, sep: str, spelt: Mapping[str, str]) -> str | None:
    """A set written in one way, its tags as ``spelt``; None for the empty one."""
    return sep.join(sorted({spelt.get(tag, tag) for tag in _tags(cell, sep)})) or None


def _spellings(cells: Iterable[Any], sep: str) -> dict[str, str]:
    """For each tag its most frequent spelling, whatever sets it stands in."""
    counts = Counter(tag for cell in cells for tag in _tags(cell, sep))
    return merged_names(sorted(counts), [counts[tag] for tag in sorted(counts)])


def _unparted(result: AuditResult, sep: str) -> Iterator[Alarm]:
    """The alarm that the separator stands in no label, and another may be meant."""
    classes, rows = result.data.classes, result.data.class_rows
    if not classes or any(sep in name for name in classes):
        return
    other = likely_separator(classes, rows)
    meant = "" if other is None else f" {other!r} stands between parts that recur."
    yield Alarm(
        code="separator in no label",
        severity="warning",
        message=f"No label has {sep!r} in it, so each is a set of one tag.{meant}",
        action="leave --kind tags out if a label is one class"
        if other is None
        else f"--sep {other!r} parts them",
        figures={"separator": sep, "likely": other},
    )


#: A name for the set without tags that no cell has.
_NO_TAGS = "\ue000no tags"


def _emptied(frame: pd.DataFrame, result: AuditResult, options: Mapping[str, Any]) -> Iterator[Alarm]:
    """The alarm that empty cells stand beside filled ones of the same item, and what d is with them as sets."""
    label, d = str(result.data.label), result.disagreement.estimate
    empty = frame[label].isna()
    if not empty.any():
        return
    one_per = options.get("one_per")
    columns = Columns(
        item=result.data.item, label=label, row_id=options.get("row_id"),
        by=() if one_per in (None, options.get("row_id")) else (one_per,),
    )  # fmt: skip
    told = {name: options[name] for name in ("normalise", "merge_labels", "drop_copies") if name in options}
    with open_table(frame.assign(**{label: frame[label].where(~empty, _NO_TAGS)})) as table:
        repeats = group(table, columns, missing=options.get("missing", ()), one_per=one_per, **told)
        found = repeats.patterns.repeated
        place = repeats.classes.index(_NO_TAGS) if _NO_TAGS in repeats.classes else None
    if place is None:
        return
    cells = found.counts[:, [place]].toarray().ravel()
    beside = int((cells * found.items)[(cells > 0) & (cells < found.sizes)].sum())
    counted = mean_disagreement(found)
    if not beside or counted is None:
        return
    more = found.item_total - result.repeats.items
    yield Alarm(
        code="empty cells beside tags",
        severity="warning",
        message=(
            f"{int(empty.sum()):,} cells are empty and left out, {beside:,} of them on items that have tags in other "
            f"rows. Counted as the set without tags they make d {counted:.3f}"
            f"{f', and not {d:.3f}' if d is not None else ''} ({more:,} more repeated items)."
        ),
        action=(
            "--empty-set none counts an empty cell as the set without tags; if they are labels not given, fill them "
            "with a word, and name it with --missing"
        ),
        figures={
            "empty_cells": int(empty.sum()), "beside_tags": beside, "disagreement": d, "disagreement_counted": counted,
            "more_items": more,
        },
    )  # fmt: skip


def _collapsed(patterns: CountPatterns, given: Sequence[bool]) -> CountPatterns:
    """The patterns of one tag: given or not."""
    member = np.asarray(given, np.int64)
    split = sparse.csr_array(np.column_stack([1 - member, member]))
    return CountPatterns.from_counts(
        patterns.counts @ split, items=patterns.items, classes=("not given", "given")
    )


def _jaccard(patterns: CountPatterns, sets: Sequence[frozenset[str]]) -> FloatArray:
    """The mean of 1 - |A ∩ B|/|A ∪ B| over pairs of sets of an item, for each repeated pattern."""
    distances = np.zeros(len(patterns.items))
    for row in range(len(patterns.items)):
        places = slice(patterns.counts.indptr[row], patterns.counts.indptr[row + 1])
        here = list(zip(patterns.counts.indices[places], patterns.counts.data[places], strict=True))
        for k, (a, n) in enumerate(here):
            for b, m in here[k + 1 :]:
                distances[row] += n * m * (1.0 - len(sets[a] & sets[b]) / len(sets[a] | sets[b]))
    return distances / np.maximum(patterns.pairs, 1)
