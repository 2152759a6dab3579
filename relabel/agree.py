"""The audit of the pipeline: a sample of items goes through the whole of it again, as fresh draws.

The labels of the run and of the fresh draws are then repeats like any others, and the analyzer of ``audit dupes``
says how far they agree. Where the table has items with several old labels, the same is done for these, so that
old and new labels are compared on the same items.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from audit.errors import ArgumentError
from relabel.agree_gold import report_gold
from relabel.agree_measure import measure, paired_difference
from relabel.agree_results import AgreeResult, NotAccuracy, Stratum
from relabel.capabilities import Capabilities
from relabel.decisions import machine_decisions
from relabel.engine import Engine
from relabel.escalate import Policy
from relabel.progress import Progress
from relabel.prompts import system_text
from relabel.rubric import Rubric
from relabel.run import Job
from relabel.worklist import Decision, Item, Worklist

__all__ = ["audit_pipeline", "check_options", "draw_sample", "other_orders", "repeated_items", "strata_of"]

Stratification = Mapping[tuple[str, str], Sequence[int]]


def audit_pipeline(
    job: Job,
    *,
    items: int = 500,
    draws: int = 1,
    shuffle: bool = True,
    gold_weight: str | None = None,
    level: float = 0.95,
    on_progress: Callable[[Progress], None] | None = None,
    on_notice: Callable[[str], None] | None = None,
) -> AgreeResult:
    """Put a sample of a finished run through the pipeline again and measure how far its labels agree.

    Parameters
    ----------
    job:
        As it was run: the same table, rubric, models, settings, journal and gold. What is missing is judged first.
    items:
        Size of the sample of all items, and at most so many of the items that have several old labels.
    draws:
        Fresh draws for each item, beside the label it has.
    shuffle:
        Put labels and clauses in another order for every draw.
    gold_weight:
        Column of ``job.gold`` with what each gold item stands for, 1/(its chance to be drawn) or in proportion;
        without it gold counts as a simple random sample of the items.
    level:
        Of all intervals.

    Raises
    ------
    ArgumentError
        Where the journal does not hold the run, or the run cannot be completed.
    """
    if gold_weight is not None and job.gold is None:
        raise ArgumentError("--gold-weight is a column of the gold sample; give --gold FILE too")
    check_options(job, items=items, draws=draws)
    with job.engine(on_progress=on_progress, on_notice=on_notice) as engine:
        engine.work()
        _whole(engine)
        return _Audit(job, engine, items=items, draws=draws, shuffle=shuffle, level=level).result(gold_weight)


def check_options(job: Job, *, items: int, draws: int) -> None:
    """ArgumentError where the sizes are too small, or the journal does not hold a run with these options."""
    if items < 2 or draws < 1:
        raise ArgumentError("--items must be at least 2 and --draws at least 1")
    plan = job.plan()
    if 2 * plan.judge.known < plan.judge.items:
        raise ArgumentError(
            f"the journal answers only {plan.judge.known:,} of {plan.judge.items:,} items with these options;"
            " run audit relabel run with the same options first"
        )


def _whole(engine: Engine) -> None:
    if engine.stop.requested:
        raise ArgumentError(
            f"the pipeline could not be audited: {engine.stop.reason}; run the same command again"
        )


@dataclass
class _Drawn:
    """Fresh decisions of the drawn items: item -> one decision per draw that gave a label."""

    fresh: dict[int, list[Decision]] = field(default_factory=dict)
    failed: Counter[str] = field(default_factory=Counter)
    asked: int = 0
    cost: float | None = 0.0


class _Audit:
    def __init__(
        self, job: Job, engine: Engine, *, items: int, draws: int, shuffle: bool, level: float
    ) -> None:
        self.job, self.engine, self.wanted, self.draws = job, engine, items, draws
        self.shuffle, self.level = shuffle, level
        self.seed = job.settings.seed
        self.rng = np.random.default_rng(self.seed)
        self.rubric, self.worklist = engine.rubric, engine.worklist

    def result(self, gold_weight: str | None) -> AgreeResult:
        strata = strata_of(self.worklist)
        frame = sum(len(found) for found in strata.values())
        if frame < 2:
            raise ArgumentError("fewer than two items have a label: there is nothing to compare")
        sample = draw_sample(strata, self.wanted, rng=self.rng)
        repeated, reason = repeated_items(self.worklist, strata, self.wanted, rng=self.rng)
        chosen = set(sample) | set(repeated)
        first = {item: decision for item, decision in machine_decisions(self.worklist) if item in chosen}
        drawn = self._again(chosen)
        labels = {
            item: [str(decision.verdict.label) for decision in (first[item], *drawn.fresh[item])]
            for item in first
        }
        sources: dict[int, str] = {item: decision.source for item, decision in first.items()}
        classes = self.rubric.label_names
        new = measure(
            {item: labels[item] for item in sample},
            classes=classes,
            sources=sources,
            level=self.level,
            seed=self.seed,
        )
        old = new_same = difference = None
        strange: list[str] = []
        if repeated:
            before = self._old_labels(repeated)
            strange = sorted({label for row in before.values() for label in row} - set(classes))
            old = measure(before, classes=(*classes, *strange), level=self.level, seed=self.seed)
            same = {item: labels[item] for item in repeated}
            new_same = measure(same, classes=classes, sources=sources, level=self.level, seed=self.seed)
            difference = paired_difference(before, same, level=self.level)
        gold = None
        if self.engine.gold is not None:
            gold = report_gold(self.engine, self.job, weight=gold_weight, level=self.level)
            _whole(self.engine)
        taken = Counter((sources[item], labels[item][0]) for item in sample)
        return AgreeResult(
            items=self.worklist.items,
            frame=frame,
            drawn=len(sample),
            strata=tuple(
                Stratum(source=key[0], label=key[1], items=len(found), drawn=taken[key])
                for key, found in strata.items()
            ),
            policy=self.engine.policy.to_dict(),
            draws=self.draws,
            temperature=self._temperature(),
            varied=self._varied(),
            warnings=self._warnings(strange, same=new.disagreement.estimate == 0.0),
            new=new,
            repeated=len(repeated),
            old=old,
            new_same=new_same,
            difference=difference,
            old_reason=reason,
            moved=sum(one.source != sources[item] for item in first for one in drawn.fresh[item]),
            without_verdict=dict(sorted(drawn.failed.items())),
            requests=drawn.asked,
            cost=drawn.cost,
            gold=gold,
            seed=self.seed,
            journal=str(self.engine.journal.path),
        )

    def _old_labels(self, chosen: Collection[int]) -> dict[int, list[str]]:
        wanted = set(chosen)
        found: dict[int, list[str]] = {item: [] for item in chosen}
        for item, old in self.worklist.links():
            if item in wanted and old is not None and _is_label(old):
                found[item].append(self.rubric.canonical(old) or old.strip())
        return found

    def _again(self, chosen: Collection[int]) -> _Drawn:
        wanted = set(chosen)
        items: list[Item] = [item for item in self.worklist.read() if item.id in wanted]
        drawn = _Drawn(fresh={item.id: [] for item in items})
        orders = other_orders(self.rubric, seed=self.seed) if self.shuffle else None
        for repeat in range(1, self.draws + 1):
            order = None if orders is None else next(orders)
            for item, decision in self.engine.again(items, repeat=repeat, shuffle_seed=order).items():
                if decision.verdict.label is None:
                    drawn.failed[str(decision.verdict.status)] += 1
                else:
                    drawn.fresh[item].append(decision)
            _whole(self.engine)
            for phase, totals in self.engine.totals.items():
                if phase.startswith(f"repeat {repeat},"):
                    drawn.asked += totals.asked
                    drawn.cost = (
                        None if drawn.cost is None or totals.cost is None else drawn.cost + totals.cost
                    )
        return drawn

    def _seen(self) -> Capabilities:
        """What the judge's endpoint was seen to do."""
        place = self.engine.asked[0]
        seen = self.engine.journal.capabilities(base_url=place.base_url, model=place.model)
        return Capabilities.from_dict(seen or {})

    def _temperature(self) -> float | None:
        """The temperature as it is sent; None where it is left to the endpoint."""
        return None if self._seen().temperature is False else self.job.settings.temperature

    def _varied(self) -> tuple[str, ...]:
        heat = self._temperature()
        told = "the endpoint's own temperature" if heat is None else f"temperature {heat:g}"
        seeded = self._seen().seed is not False
        seed = f"seed {self.seed} + 1000 for each draw" if seeded else "no seed, as it takes none"
        varied = [f"the draw: {told}, {seed}"]
        if self.shuffle:
            varied.append("the order of the labels and of the clauses in the prompt")
        return tuple(varied)

    def _warnings(self, strange: Sequence[str], *, same: bool) -> tuple[str, ...]:
        warnings = []
        ran = self.engine.journal.policy()
        if ran is not None and ran != self.engine.policy.to_dict():
            warnings.append(
                f"Another pipeline than the run's: it ran with {Policy(**ran).option()}, this audit with"
                f" {self.engine.policy.option()}. Give the options of the run."
            )
        if self._temperature() == 0.0:
            warnings.append(
                "At temperature 0 a deterministic endpoint gives the same prompt the same answer:"
                + (
                    " these figures show how far the order in the prompt sways it, and no other noise."
                    if self.shuffle
                    else " with nothing shuffled, they measure nothing."
                )
            )
        if same:
            warnings.append("Not one fresh draw differs: see whether anything varied at all.")
        if strange:
            warnings.append(
                f"Old labels that the rubric does not have count as classes of their own: {', '.join(strange[:10])}."
            )
        return (*warnings, NotAccuracy)


def repeated_items(
    worklist: Worklist, strata: Stratification, wanted: int, *, rng: np.random.Generator
) -> tuple[tuple[int, ...], str | None]:
    """Items with two old labels or more, at most as many as wanted; and why there are none."""
    if worklist.label is None:
        return (), "no column of old labels was named; give --label COLUMN"
    counts = np.zeros(worklist.items + 1, np.int64)
    for item, old in worklist.links():
        counts[item] += _is_label(old)
    several = {key: [item for item in found if counts[item] >= 2] for key, found in strata.items()}
    chosen = draw_sample({key: found for key, found in several.items() if found}, wanted, rng=rng)
    return chosen, None if chosen else "no labelled item has two old labels"


def strata_of(worklist: Worklist) -> dict[tuple[str, str], list[int]]:
    """(source, label) -> items, of all items that the pipeline labelled."""
    found: dict[tuple[str, str], list[int]] = {}
    for item, decision in machine_decisions(worklist):
        if decision.verdict.label is not None:
            found.setdefault((decision.source, decision.verdict.label), []).append(item)
    return dict(sorted(found.items()))


def draw_sample(strata: Stratification, wanted: int, *, rng: np.random.Generator) -> tuple[int, ...]:
    """A sample of ``wanted`` items (or all), from each stratum in proportion to its size, in rising order.

    Every item has the same chance to be drawn, so that means over the sample need no weights.
    """
    sizes = np.array([len(found) for found in strata.values()], np.int64)
    total = int(sizes.sum())
    wanted = min(wanted, total)
    if not wanted:
        return ()
    exact = wanted * sizes / total
    share = np.floor(exact).astype(np.int64)
    # What is left over goes to strata with chances equal to their fractions (systematic sampling of the rests).
    rests = np.cumsum(exact - share)
    ticks = np.floor(rests + rng.random() + 1e-9).astype(np.int64)
    share += np.diff(ticks, prepend=0)
    drawn: list[int] = []
    for found, size in zip(strata.values(), share, strict=True):
        drawn += (int(item) for item in rng.choice(np.asarray(found), size=int(size), replace=False))
    return tuple(sorted(drawn))


def other_orders(rubric: Rubric, *, seed: int = 0) -> Iterator[int]:
    """Seeds for `relabel.prompts.messages`, each giving a prompt unlike the rubric's own and unlike the last.

    A rubric of two labels has them the other way round in the first one.
    """
    plain = _label_order(rubric, None)
    last = system_text(rubric)
    candidate, first = 1 + 1_000_003 * abs(seed), True
    while True:
        for tries in range(1000):
            text = system_text(rubric, shuffle_seed=candidate)
            candidate += 1
            turned = not first or _label_order(rubric, candidate - 1) != plain
            if (text != last and turned) or tries == 999:
                break
        last, first = text, False
        yield candidate - 1


def _label_order(rubric: Rubric, shuffle_seed: int | None) -> list[int]:
    text = system_text(rubric, shuffle_seed=shuffle_seed)
    listed = text[text.rindex("# Labels") :]
    return [listed.index(f"- {json.dumps(name, ensure_ascii=False)}") for name in rubric.label_names]


def _is_label(old: str | None) -> bool:
    return old is not None and bool(old.strip())
