"""Audits of labels that are ordered grades, or sets of tags."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from audit.alarms_labels import ABSENT, NUMBERS, TYPOS, typos
from audit.ceiling import ceiling_band
from audit.columns import ROLES, check_roles, guess
from audit.disagreement import estimate_disagreement
from audit.duplicates import audit_duplicates
from audit.errors import ArgumentError
from audit.fliprate import estimate_flip_rate
from audit.moments import moment_bounds
from audit.numeric import ValueScores, pair_distance, value_scores, weighted_kappa
from audit.patterns import CountPatterns, FloatArray
from audit.reading import HOW_TO_READ, open_table
from audit.results import Alarm, AuditResult, Ceiling, Disagreement, Estimate, FlipRate, Result
from audit.verdict import compose_verdict

__all__ = ["OrdinalAudit", "TagAudit", "TagsAudit", "audit_ordinal", "audit_tags"]


@dataclass(frozen=True, kw_only=True)
class OrdinalAudit(Result):
    """An audit of ordered grades: that of plain classes, the quadratic-weighted κ, and how far conflicts go.

    ``distance`` is the mean number of steps between two labels of an item; ``adjacent`` the share of the
    disagreeing pairs that are one step apart. ``steps`` has the share of all pairs that are 0, 1, 2 ... steps apart.
    """

    audit: AuditResult
    order: tuple[str, ...]
    weighted_kappa: Estimate
    distance: Estimate
    adjacent: float | None
    steps: tuple[float, ...]

    @property
    def ceiling(self) -> Ceiling:
        """The band of plain classes."""
        return self.audit.ceiling

    def to_dict(self) -> dict[str, Any]:
        """The audit's own dictionary with one more entry, ``ordinal``."""
        more = {**super().to_dict()}
        return {**more.pop("audit"), "ordinal": more}

    def summary(self) -> str:
        """The audit of the classes, and the three numbers of ordered ones."""
        far = "" if self.adjacent is None else f", {self.adjacent:.1%} of the conflicting pairs one step"
        return "\n".join([
            self.audit.summary(), "", f"ordered: {' < '.join(self.order)}",
            f"quadratic-weighted κ {self.weighted_kappa.text('.4g')}",
            f"two labels of an item are {self.distance.text('.4g')} steps apart{far}",
        ])  # fmt: skip


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


def audit_ordinal(source: Any, *, classes: Sequence[str] | None = None, **options: Any) -> OrdinalAudit:
    """Audit ordered grades.

    ``classes`` names them from the lowest to the highest; without it they must be numbers, whose order is theirs.
    The other options are those of :func:`audit.duplicates.audit_duplicates`.
    """
    result = _told(audit_duplicates(source, classes=classes, **options), without=(NUMBERS,))
    order = tuple(classes) if classes else _numeric_order(result.data.classes)
    rank = {name: float(place) for place, name in enumerate(order)}
    ranks = np.array([rank[name] for name in result.data.classes])
    scores = value_scores(result.patterns, ranks)
    pairs = _pairs_by_step(result.patterns.repeated, ranks)
    conflicts = float(pairs[1:].sum())
    return OrdinalAudit(
        audit=result, order=order, weighted_kappa=weighted_kappa(scores, level=result.settings.level),
        distance=pair_distance(scores, level=result.settings.level),
        adjacent=float(pairs[1]) / conflicts if conflicts else None,
        steps=tuple((pairs / pairs.sum()).tolist()) if pairs.sum() else (),
    )  # fmt: skip


def audit_tags(source: Any, *, sep: str = "|", most: int = 200, **options: Any) -> TagsAudit:
    """Audit labels that are sets of tags, written with ``sep`` between them: order and repeats do not matter.

    An empty cell is a missing label, as everywhere: name the empty set by a word of its own. The ``most`` most
    frequent tags get a result each. The other options are those of :func:`audit.duplicates.audit_duplicates`.
    """
    import pandas as pd

    if not sep:
        raise ArgumentError("--sep names what stands between two tags, such as '|'")
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
    frame[label] = [_canonical(cell, sep) for cell in frame[label]]
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
    patterns, sets = result.patterns, [frozenset(name.split(sep)) for name in result.data.classes]
    given: dict[str, int] = {}
    for tags, rows in zip(sets, result.data.class_rows, strict=True):
        for tag in tags:
            given[tag] = given.get(tag, 0) + rows
    ranked = sorted(given, key=lambda tag: (-given[tag], tag))
    # Sets that differ in a letter are different sets, and "none" is the empty one.
    odd = tuple(typos(ranked, [given[tag] for tag in ranked]))
    result = _told(result, without=(NUMBERS, TYPOS, ABSENT), more=odd)
    total = sum(result.data.class_rows)
    settings = result.settings
    parts = []
    for tag in ranked[:most]:
        binary = _collapsed(patterns, [tag in tags for tags in sets])
        d = estimate_disagreement(binary, level=settings.level, draws=settings.draws, seed=settings.seed)
        rate = estimate_flip_rate(d, classes=2)
        share = given[tag] / total
        band = replace(
            ceiling_band(d, rate, minority_share=min(share, 1.0 - share)),
            moments=moment_bounds(binary, level=settings.level, seed=settings.seed, refused=rate.reason),
        )
        parts.append(TagAudit(tag=tag, share=share, disagreement=d, flip_rate=rate, ceiling=band))
    return TagsAudit(
        audit=result, tags=tuple(parts), left_out=max(0, len(ranked) - most),
        distance=_jaccard(patterns.repeated, sets, settings.level),
    )  # fmt: skip


def _told(result: AuditResult, *, without: Sequence[str], more: Sequence[Alarm] = ()) -> AuditResult:
    """The result without the alarms of these codes, which speak of plain classes, and with others."""
    alarms = (*(alarm for alarm in result.alarms if alarm.code not in without), *more)
    if alarms == result.alarms:
        return result
    verdict = compose_verdict(
        repeats=result.repeats, d=result.disagreement, rate=result.flip_rate, band=result.ceiling, alarms=alarms,
        unrepeated=result.data.items - result.repeats.items,
    )  # fmt: skip
    return replace(result, alarms=alarms, verdict=verdict)


def _numeric_order(classes: Sequence[str]) -> tuple[str, ...]:
    try:
        values = [float(name) for name in classes]
        if not all(map(math.isfinite, values)):
            raise ValueError("a grade is infinite or no number")
    except ValueError as error:
        raise ArgumentError(
            "grades that are no numbers have no order of their own: name it from the lowest to the highest, such as "
            "--classes low,middle,high"
        ) from error
    order = sorted(range(len(values)), key=values.__getitem__)
    for below, above in pairwise(order):
        if values[below] == values[above]:
            raise ArgumentError(
                f"the grades {classes[below]!r} and {classes[above]!r} are one number: bring them together with "
                "--merge-labels, or name the order with --classes"
            )
    return tuple(classes[place] for place in order)


def _pairs_by_step(patterns: CountPatterns, ranks: FloatArray) -> FloatArray:
    """Pairs of labels of an item that are 0, 1, 2 ... steps apart, over all items."""
    table = patterns.counts[:, np.argsort(ranks)].tocsc()
    width = len(ranks)
    pairs = np.zeros(max(2, width))
    pairs[0] = float(patterns.agreeing_pairs @ patterns.items)
    for step in range(1, width):
        both = table[:, : width - step].multiply(table[:, step:])
        pairs[step] = float(patterns.items @ np.asarray(both.sum(axis=1)).ravel())
    return pairs


def _canonical(cell: Any, sep: str) -> str | None:
    tags = sorted({tag.strip() for tag in str(cell).split(sep)} - {""}) if cell is not None else []
    return sep.join(tags) or None


def _collapsed(patterns: CountPatterns, given: Sequence[bool]) -> CountPatterns:
    """The patterns of one tag: given or not."""
    member = np.asarray(given, np.int64)
    split = sparse.csr_array(np.column_stack([1 - member, member]))
    return CountPatterns.from_counts(
        patterns.counts @ split, items=patterns.items, classes=("not given", "given")
    )


def _jaccard(patterns: CountPatterns, sets: Sequence[frozenset[str]], level: float) -> Estimate:
    """Mean of 1 - |A ∩ B|/|A ∪ B| of two sets of an item, each item once; limits of :func:`pair_distance`."""
    distances = np.zeros(len(patterns.items))
    for row in range(len(patterns.items)):
        places = slice(patterns.counts.indptr[row], patterns.counts.indptr[row + 1])
        here = list(zip(patterns.counts.indices[places], patterns.counts.data[places], strict=True))
        for k, (a, n) in enumerate(here):
            for b, m in here[k + 1 :]:
                distances[row] += n * m * (1.0 - len(sets[a] & sets[b]) / len(sets[a] | sets[b]))
    distances /= np.maximum(patterns.pairs, 1)
    none = np.zeros(len(distances))
    items = patterns.items.astype(np.float64)
    return pair_distance(
        ValueScores(items=items, sizes=none, means=none, variances=none, distances=distances), level=level
    )
