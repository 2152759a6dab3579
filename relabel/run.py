"""A relabelling job: everything that `audit relabel run` is told, to be planned or run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from audit.columns import check_columns
from audit.errors import ArgumentError
from audit.reading import open_table
from relabel.connect import Place, Settings, need_key, place, wishes
from relabel.engine import Engine
from relabel.escalate import Policy, choose_policy, gold_needed
from relabel.explain import Explanation, explain
from relabel.gold import GoldSample, read_gold
from relabel.journal import Journal
from relabel.output import check_paths
from relabel.plan import Plan, make_plan
from relabel.progress import Progress
from relabel.prompts import messages
from relabel.records import Request
from relabel.result import RunResult
from relabel.rubric import Rubric
from relabel.worklist import Worklist

__all__ = ["Job", "Paths", "usable"]

Prices = tuple[float | None, float | None]


@dataclass(frozen=True, kw_only=True)
class Paths:
    """The files of a job: the relabelled table, the journal, the list of rows without a verdict."""

    out: Path
    journal: Path
    unresolved: Path


def usable(rubric: Rubric | str | Path) -> Rubric:
    """The rubric, read from its file if need be; ArgumentError where it has a fatal problem."""
    rubric = rubric if isinstance(rubric, Rubric) else Rubric.load(rubric)
    fatal = [problem.message for problem in rubric.check() if problem.fatal]
    if fatal:
        raise ArgumentError(f"the rubric cannot be used: {'; '.join(fatal)} (audit relabel check shows all)")
    return rubric


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to relabel, by what and by whom. `plan` tells what it would take, `run` does it.

    Parameters
    ----------
    source:
        A file that `audit.reading.open_table` opens (``reading`` is passed on to it), or a data frame.
    rubric, judge, adjudicator:
        The rubric (or its file), the judging model, and the model its least sure items go to, if any.
    base_url, adjudicator_base_url:
        Places. By default ``OPENAI_BASE_URL`` or OpenAI's own; the adjudicator's is by default the judge's.
        Keys are read from ``OPENAI_API_KEY`` (and ``ADJUDICATOR_API_KEY`` if the adjudicator has another).
    out:
        The relabelled table (.csv, .tsv, .jsonl or .parquet); by default ``NAME.relabelled.csv`` beside the source.
    journal:
        By default ``OUT.journal.sqlite`` beside ``out``.
    label:
        The column of the old labels, for comparing; no model ever sees it.
    escalate, escalate_below, target_agreement:
        What goes to the adjudicator: see `relabel.escalate.choose_policy`.
    gold, gold_label:
        A gold sample and its label column: see `relabel.gold.read_gold`.
    prices, adjudicator_prices:
        US dollars per million tokens, in and out, where the price list is not to be used.
    budget:
        US dollars that all runs of this journal together may cost.
    wait:
        Seconds to wait for another run on the same journal; negative waits for as long as it takes.
    """

    source: Any
    rubric: Rubric | str | Path
    judge: str
    adjudicator: str | None = None
    base_url: str | None = None
    adjudicator_base_url: str | None = None
    out: str | Path | None = None
    journal: str | Path | None = None
    label: str | None = None
    escalate: float | str | None = None
    escalate_below: float | None = None
    target_agreement: float | None = None
    gold: Any = None
    gold_label: str | None = None
    prices: Prices = (None, None)
    adjudicator_prices: Prices = (None, None)
    budget: float | None = None
    settings: Settings = field(default_factory=Settings)
    wait: float = 0.0
    reading: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, str) and not value.strip():
                raise ArgumentError(f"--{name.replace('_', '-')} is empty; give it a value or leave it out")

    def paths(self) -> Paths:
        """The files of this job."""
        out = self.out
        if out is None:
            if not isinstance(self.source, str | Path) or str(self.source) == "-":
                raise ArgumentError("give --out FILE for the relabelled table")
            path = Path(self.source)
            out = path.with_name(f"{path.name.split('.')[0] or path.name}.relabelled.csv")
        out = Path(out)
        return Paths(
            out=out,
            journal=Path(self.journal or out.with_name(f"{out.stem}.journal.sqlite")),
            unresolved=out.with_name(f"{out.stem}.unresolved.csv"),
        )

    def policy(self) -> Policy:
        """How items are chosen for the adjudicator."""
        return choose_policy(
            adjudicator=self.adjudicator is not None,
            share=self.escalate,
            below=self.escalate_below,
            target_agreement=self.target_agreement,
            gold=self.gold is not None,
        )

    def endpoints(self) -> tuple[Place, ...]:
        """The judge's endpoint, and the adjudicator's where there is one."""
        asked = [place(self.judge, base_url=self.base_url, price_in=self.prices[0], price_out=self.prices[1])]
        if self.adjudicator is not None:
            asked.append(
                place(
                    self.adjudicator,
                    base_url=self.adjudicator_base_url or self.base_url,
                    price_in=self.adjudicator_prices[0],
                    price_out=self.adjudicator_prices[1],
                    key_variables=("ADJUDICATOR_API_KEY", "OPENAI_API_KEY"),
                )
            )
        if len(asked) > 1 and (asked[0].model, asked[0].base_url) == (asked[1].model, asked[1].base_url):
            raise ArgumentError("the adjudicator is the judge itself; name another model or another endpoint")
        if self.budget is not None and any(where.price is None for where in asked):
            raise ArgumentError(
                "--budget needs prices, and no list has this endpoint; give --price-in and --price-out"
                " (for the adjudicator: --adjudicator-price-in and -out)"
            )
        return tuple(asked)

    def sample(self, rubric: Rubric) -> GoldSample | None:
        """The gold sample, if one is given and large enough for what is asked of it."""
        if self.gold is None:
            return None
        sample = read_gold(self.gold, rubric=rubric, column=self.gold_label)
        policy = self.policy()
        if policy.kind == "target" and len(sample.items) < gold_needed(policy.value):
            raise ArgumentError(
                f"gold has {len(sample.items)} items, too few to show an agreement of {policy.value:g}: it takes"
                f" {gold_needed(policy.value)} without one disagreement; give more gold or a lower --target-agreement"
            )
        return sample

    @contextmanager
    def worklist(self, rubric: Rubric) -> Iterator[Worklist]:
        """The distinct items of the source."""
        with open_table(self.source, **self.reading) as table:
            columns = rubric.inputs(table.columns, source=table.report.source)
            check_columns(table, [self.label] if self.label is not None else [], option="--label")
            with Worklist(table, inputs=columns, label=self.label, seed=self.settings.seed) as worklist:
                yield worklist

    def _check(self, paths: Paths) -> None:
        check_paths(
            paths.out,
            source=self.source,
            unresolved=paths.unresolved,
            journal=paths.journal,
            reads=(self.gold, self.rubric),
        )

    def plan(self) -> Plan:
        """What `run` would ask and cost. Asks nothing and writes nothing."""
        rubric, policy, asked, paths = usable(self.rubric), self.policy(), self.endpoints(), self.paths()
        self._check(paths)
        sample = self.sample(rubric)
        with self.worklist(rubric) as worklist:
            return make_plan(
                rubric=rubric,
                worklist=worklist,
                asked=asked,
                settings=self.settings,
                policy=policy,
                sample=sample,
                journal=paths.journal,
            )

    def explain(self, row: int) -> tuple[Explanation, ...]:
        """What the journal holds for data row ``row`` (from 1), for the judge and for the adjudicator."""
        rubric, asked, paths = usable(self.rubric), self.endpoints(), self.paths()
        with Journal(paths.journal, read_only=True) as journal, self.worklist(rubric) as worklist:
            item = worklist.item_of(row)
            found: list[Explanation] = []
            for where in asked:
                request = Request(
                    model=where.model,
                    base_url=where.base_url,
                    params=wishes(rubric, self.settings),
                    messages=messages(rubric, item.row),
                )
                found.append(
                    explain(request, journal=journal, rubric=rubric, judge=found[0] if found else None)
                )
            return tuple(found)

    def run(
        self,
        *,
        on_progress: Callable[[Progress], None] | None = None,
        on_notice: Callable[[str], None] | None = None,
        offline: bool = False,
    ) -> RunResult:
        """Judge, escalate, adjudicate, write.

        Parameters
        ----------
        on_progress:
            Called with a `Progress`, about twice a second.
        on_notice:
            Called with lines for a person.
        offline:
            Ask nobody: what the journal does not know stays ``pending``.

        Raises
        ------
        AuditError
            Where something cannot be used: before money is spent, as far as it can be known then.
        relabel.threads.RunInterruptedError
            On Ctrl-C. The same job, run again, goes on where this run stopped.
        """
        began = time.monotonic()
        paths = self.paths()
        with self.engine(on_progress=on_progress, on_notice=on_notice, offline=offline) as engine:
            engine.journal.note_policy(engine.policy.to_dict())
            engine.work()
            return engine.finish(out=paths.out, unresolved=paths.unresolved, began=began)

    @contextmanager
    def engine(
        self,
        *,
        on_progress: Callable[[Progress], None] | None = None,
        on_notice: Callable[[str], None] | None = None,
        offline: bool = False,
    ) -> Iterator[Engine]:
        """The opened parts of this job (journal, table, items), for a run or for asking about some items again."""
        rubric, policy, asked, paths = usable(self.rubric), self.policy(), self.endpoints(), self.paths()
        if not offline:
            for where in asked:
                need_key(where)
        self._check(paths)
        sample, stamp = self.sample(rubric), _stamp(self.source)
        with Journal(paths.journal, wait=self.wait) as journal, self.worklist(rubric) as worklist:
            yield Engine(
                rubric=rubric,
                worklist=worklist,
                journal=journal,
                asked=asked,
                settings=self.settings,
                policy=policy,
                sample=sample,
                budget=self.budget,
                on_progress=on_progress,
                on_notice=on_notice,
                offline=offline,
                changed=lambda: _stamp(self.source) != stamp,
            )


def _stamp(source: Any) -> tuple[int, ...] | None:
    """What differs where a file was written anew; None of what is no file."""
    try:
        found = Path(source).stat() if isinstance(source, str | Path) else None
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns) if found else None
