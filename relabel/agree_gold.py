"""The pipeline against gold: its labels of gold items, the old labels of the same, gold-corrected shares."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from audit.columns import check_columns
from audit.errors import ArgumentError
from audit.reading import open_table
from relabel.agree_measure import measure_gold
from relabel.agree_results import GoldReport
from relabel.decisions import machine_decisions
from relabel.engine import Engine
from relabel.gold import GoldSample
from relabel.prevalence import Prevalence, estimate_prevalence
from relabel.rubric import Rubric
from relabel.run import Job
from relabel.worklist import Worklist

__all__ = ["gold_weights", "report_gold"]


def report_gold(engine: Engine, job: Job, *, weight: str | None, level: float) -> GoldReport:
    """Measure the pipeline on the engine's gold sample; call `Engine.work` first.

    Gold items go through the pipeline as the run's own draw, so those that stand in the table cost nothing.
    """
    gold = engine.gold
    if gold is None:
        raise ArgumentError("there is no gold sample; give --gold FILE")
    sample, worklist, classes = gold.sample, engine.worklist, engine.rubric.label_names
    weights = None if weight is None else gold_weights(job, sample, engine.rubric, column=weight)
    decided = engine.again(sample.items, repeat=0)
    decisions = [decided[item.id] for item in sample.items]
    places = _places(worklist, sample)
    return measure_gold(
        classes=classes,
        gold=sample.labels,
        decisions=decisions,
        judge=gold.verdicts,
        old=_old(worklist, engine.rubric, places, len(sample.items)),
        prevalence=_prevalence(
            worklist,
            classes,
            sample,
            clean=[decision.verdict.label for decision in decisions],
            inside=places,
            weights=weights,
            level=level,
        ),
        level=level,
    )


def _places(worklist: Worklist, sample: GoldSample) -> dict[int, int]:
    """Item of the table -> the gold entry with the same texts."""
    wanted = {tuple(item.row.values()): place for place, item in enumerate(sample.items)}
    found = {}
    for item in worklist.read():
        place = wanted.get(tuple(item.row.values()))
        if place is not None:
            found[item.id] = place
    return found


def _old(worklist: Worklist, rubric: Rubric, places: Mapping[int, int], count: int) -> list[list[str]]:
    """The old labels of each gold entry."""
    found: list[list[str]] = [[] for _ in range(count)]
    for item, old in worklist.links():
        if item in places and old is not None and old.strip():
            found[places[item]].append(rubric.canonical(old) or old.strip())
    return found


def _prevalence(
    worklist: Worklist,
    classes: Sequence[str],
    sample: GoldSample,
    *,
    clean: Sequence[str | None],
    inside: Mapping[int, int],
    weights: Sequence[float] | None,
    level: float,
) -> Prevalence | None:
    counted: Counter[str] = Counter()
    items = 0
    for item, decision in machine_decisions(worklist):
        if weights is None and item in inside:
            continue
        items += 1
        if decision.verdict.label is not None:
            counted[decision.verdict.label] += 1
    if not items or len(sample.labels) < 2:
        return None
    return estimate_prevalence(
        classes=classes,
        counted=counted,
        items=items,
        gold=sample.labels,
        clean=clean,
        weights=weights,
        level=level,
    )


def gold_weights(job: Job, sample: GoldSample, rubric: Rubric, *, column: str) -> list[float]:
    """What each gold item stands for, from a column of the gold table; an item's first row counts."""
    with open_table(job.gold) as table:
        check_columns(table, [column], option="--gold-weight")
        with Worklist(table, inputs=rubric.inputs(table.columns), label=column) as worklist:
            cells: dict[int, str | None] = {}
            for number, cell in worklist.links():
                cells.setdefault(number, cell)
    weights = []
    for item in sample.items:
        text = cells.get(item.id) or ""
        try:
            weight = float(text)
        except ValueError:
            weight = 0.0
        if not (math.isfinite(weight) and weight > 0):
            raise ArgumentError(
                f"--gold-weight {column}: {text!r} is no weight; give a number above 0 for every item"
            )
        weights.append(weight)
    return weights
