"""Runs side by side on one clean key: which of them differ by more than chance, and what each one cost.

All runs must have answered the same items. Each is set against a baseline run, item by item; Holm's step-down keeps
the chance of one false difference among all of them at 1 - level. Runs that differ in their seed alone make one arm.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from audit.ceiling import Placement
from audit.errors import ArgumentError, AuditError, InputError
from audit.intervals import check_level, check_seed
from audit.results import Estimate
from train.compare_folders import LeftOut, Run, find_runs, holds_traces, in_order, read_run
from train.compare_results import Arm, Difference, RunComparison, RunRow
from train.compare_stats import arm_difference, holm, run_metrics, seed_interval, swap_p_value
from train.compare_words import difference_verdict, headline, notes
from train.config import RUNGS
from train.draws import check_draws
from train.metrics import DECISION_METRICS, count, decision_metric, paired_difference
from train.pressure_band import AuditBand, read_band
from train.scores_pairs import pair

__all__ = ["compare_runs"]

#: Metrics whose differences stand beside the tested one, with intervals but without a test.
_BESIDE = ("balanced_accuracy", "accuracy", "auc")

#: Rungs whose control had the same rows and labels.
CONTROLS = {"cot-sft": "sft-matched"}


def compare_runs(
    folders: Iterable[str | Path],
    *,
    baseline: str | None = None,
    pairs: Sequence[tuple[str, str]] = (),
    split: str = "test",
    metric: str = "balanced_accuracy",
    audit: str | Path | None = None,
    positive: str | None = None,
    common: bool = False,
    level: float = 0.95,
    draws: int = 2_000,
    seed: int = 0,
) -> RunComparison:
    """Read run folders and compare their scores of one split.

    Parameters
    ----------
    folders:
        Run folders, or folders that hold run folders.
    baseline:
        A run, or an arm of several seeds, that the others are set against; by default the first: as the folders are
        given, or in the ladder's order where a folder holds several.
    pairs:
        Further differences (arm, against). A run that goes on from another one of the table is set against it too, and
        cot-sft against its control sft-matched.
    metric:
        The tested one, a decision metric such as ``accuracy`` or ``f1``.
    audit:
        JSON of ``audit dupes``: accuracies against labels as they came are set in its band.
    common:
        Compare on the items that all runs have, where they differ.
    draws, seed:
        Of the bootstrap over items.

    Raises
    ------
    InputError
        No run can be compared.
    ArgumentError
        An option is out of range, or names a run that is not there.
    """
    check_level(level)
    check_draws(draws)
    check_seed(seed)
    if metric not in DECISION_METRICS:
        raise ArgumentError(f"--metric {metric!r} is none of {', '.join(DECISION_METRICS)}")
    band = None if audit is None else read_band(audit)
    wanted = [folder for folder in find_runs(folders, order=RUNGS) if not holds_traces(folder)]
    read = [read_run(folder, split=split, positive=positive) for folder in wanted]
    left = [one for one in read if isinstance(one, LeftOut)]
    found = _named([one for one in read if isinstance(one, Run)])
    if not found:
        why = f"{left[0].path}: {left[0].reason}" if left else "there are traces only"
        raise InputError(f"no run can be compared: {why}")
    first = _first(found, baseline, left)
    runs, more = _aligned(found, first, common)
    left += more
    arms = _arms(in_order(runs, RUNGS))
    base = next(name for name, members in arms.items() if any(r.name == first.name for r in members))
    compared = [_difference(arms, *two, metric, level, draws, seed) for two in _pairs(arms, base, pairs)]
    adjusted = holm([d.p_value for d in compared])
    n = len(runs[0].scores)
    differences = tuple(
        replace(
            d, p_holm=p, verdict=difference_verdict(replace(d, p_holm=p), metric, n, level, len(compared))
        )
        for d, p in zip(compared, adjusted, strict=True)
    )
    truth = runs[0].scores.truth
    summaries = tuple(_arm(name, members, metric, level) for name, members in arms.items())
    result = RunComparison(
        split=split, metric=metric, items=n, positives=int(truth.sum()), positive=runs[0].scores.positive,
        key="noisy" if any(r.key == "noisy" for r in runs) else "clean", baseline=base, level=level, draws=draws,
        seed=seed, verdict=(), runs=tuple(_rows(arms, band, level, draws, seed)), arms=summaries,
        differences=differences, band=band, left_out=tuple(left), notes=(),
        sources=tuple(r for members in arms.values() for r in members),
    )  # fmt: skip
    return replace(result, verdict=headline(result), notes=notes(result))


# --- which runs, on which items ---------------------------------------------------------------------------------


def _named(runs: Sequence[Run]) -> list[Run]:
    """Runs with names that differ: where two have one, their folders' names, or else their whole paths."""
    for names in ([r.name for r in runs], [r.path.name for r in runs], [str(r.path) for r in runs]):
        if len(set(names)) == len(names):
            return [replace(r, name=name) for r, name in zip(runs, names, strict=True)]
    return list(runs)


def _first(runs: Sequence[Run], baseline: str | None, left: Sequence[LeftOut]) -> Run:
    if baseline is None:
        return runs[0]
    for run in runs:
        if baseline in (run.name, run.path.name):
            return run
    for name, members in _arms(runs).items():
        if name == baseline:
            return members[0]
    of_rung = [run for run in runs if run.rung == baseline]
    if len(of_rung) == 1:
        return of_rung[0]
    out = next((one for one in left if Path(one.path).name == baseline), None)
    why = f" (left out: {out.reason})" if out else f": the runs are {', '.join(r.name for r in runs)}"
    raise ArgumentError(f"there is no run {baseline!r} to compare with{why}")


def _aligned(runs: Sequence[Run], first: Run, common: bool) -> tuple[list[Run], list[LeftOut]]:
    """The runs with their scores in the order of the baseline's items; those that do not fit are left out."""
    if common:
        shared = set(first.scores.items).intersection(*(r.scores.items for r in runs))
        if not shared:
            raise InputError("the runs have no item in common: are their scores of one split?")
        keep = np.array([i for i, item in enumerate(first.scores.items) if item in shared], np.int64)
        base = first.scores.take(keep)
    else:
        base = first.scores
    kept: list[Run] = []
    left: list[LeftOut] = []
    for run in runs:
        try:
            if run.scores.positive != base.positive:
                raise InputError(
                    f"its positive label is {run.scores.positive!r}, the baseline's {base.positive!r}: name one with "
                    "--positive"
                )
            kept.append(replace(run, scores=pair(base, run.scores, common=common)[1]))
        except AuditError as error:
            left.append(LeftOut(path=str(run.path), reason=str(error)))
    return kept, left


def _arms(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs that differ in the seed alone, by a name: the rung's where it has one arm, else the first run's."""
    groups: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        groups[run.kind].append(run)
    parts: list[list[Run]] = []
    for members in groups.values():
        seeds = [r.seed for r in members]
        whole = None not in seeds and len(set(seeds)) == len(seeds)
        parts += [members] if whole else [[r] for r in members]
    rungs = Counter(members[0].rung for members in parts)
    names = [m[0].rung if rungs[m[0].rung] == 1 and len(m) > 1 else m[0].name for m in parts]
    return dict(zip(names, parts, strict=True))


def _pairs(arms: dict[str, list[Run]], base: str, more: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """All differences: from the baseline, from a rung's control, from the run gone on from, and those asked for."""
    of_run = {run.name: name for name, members in arms.items() for run in members}
    of_folder = {run.path.name: name for name, members in arms.items() for run in members}
    wanted = [(name, base) for name in arms if name != base]
    above: list[tuple[str, str]] = []
    for name, members in arms.items():
        control = CONTROLS.get(members[0].rung)
        above += [(name, other) for other, theirs in arms.items() if theirs[0].rung == control]
        parent = members[0].parent
        found = of_run.get(parent, of_folder.get(Path(parent).name)) if parent else None
        above += [(name, found)] if found and found != name else []
    wanted += [(name, other) for name, other in above if (other, name) not in wanted]
    rungs = Counter(members[0].rung for members in arms.values())
    of_rung = {members[0].rung: name for name, members in arms.items() if rungs[members[0].rung] == 1}
    for pair_ in more:
        known = [next((at[one] for at in (dict(zip(arms, arms, strict=True)), of_run, of_folder, of_rung)
                       if one in at), None) for one in pair_]  # fmt: skip
        if known[0] is None or known[1] is None or known[0] == known[1]:
            raise ArgumentError(f"--pair {':'.join(pair_)} needs two different runs of {', '.join(arms)}")
        wanted.append((known[0], known[1]))
    return list(dict.fromkeys(wanted))


# --- the numbers ------------------------------------------------------------------------------------------------


def _difference(
    arms: dict[str, list[Run]], name: str, against: str, metric: str, level: float, draws: int, seed: int
) -> Difference:
    a, b = (sorted(arms[arm], key=lambda r: r.seed if r.seed is not None else 0) for arm in (against, name))
    scored = all(r.scores.scored for r in (*a, *b))
    beside = [m for m in _BESIDE if m != metric and (m != "auc" or scored)]
    if len(a) == len(b) == 1:
        others = {m: _plain(a[0], b[0], m, level, draws, seed) for m in beside}
        gap = _plain(a[0], b[0], metric, level, draws, seed)
        answers = a[0].scores.predicted, b[0].scores.predicted
        p, test = swap_p_value(a[0].scores.truth, *answers, metric=metric, draws=draws, seed=seed)
        return Difference(
            arm=name,
            against=against,
            difference=gap,
            p_value=p,
            p_holm=None,
            test=test,
            seeds=False,
            others=others,
        )
    found = {
        m: arm_difference(
            a[0].scores.truth, [r.scores.predicted for r in a], [r.scores.predicted for r in b], metric=m,
            same_seeds=[r.seed for r in a] == [r.seed for r in b], level=level, draws=draws, seed=seed,
        )
        for m in (metric, *beside)
        if m != "auc"
    }  # fmt: skip
    gap, p = found.pop(metric)
    return Difference(
        arm=name, against=against, difference=gap, p_value=p, p_holm=None, test=gap.method,
        seeds=len(a) > 1 and len(b) > 1, others={m: e for m, (e, _) in found.items()},
    )  # fmt: skip


def _plain(a: Run, b: Run, metric: str, level: float, draws: int, seed: int) -> Estimate:
    """The difference of two runs, by the paired bootstrap over items."""
    labels = np.where(a.scores.truth, "1", "0").tolist()
    if metric == "auc":
        answers = [r.scores.scores.tolist() for r in (a, b)]
    else:
        answers = [[{1: "1", 0: "0"}.get(int(p)) for p in r.scores.predicted] for r in (a, b)]
    found = paired_difference(
        labels, answers[0], answers[1], positive="1", metric=metric, level=level, draws=draws, seed=seed
    ).difference
    if metric == "auc" and found.low is not None and found.low == found.high:
        return Estimate(estimate=found.estimate, method="no interval: it is the same in every draw")
    return found


def _rows(
    arms: dict[str, list[Run]], band: AuditBand | None, level: float, draws: int, seed: int
) -> Iterable[RunRow]:
    for name, members in arms.items():
        for run in members:
            s = run.scores
            metrics = run_metrics(
                s.truth, s.predicted, s.scores if s.scored else None, level=level, draws=draws, seed=seed
            )
            yield RunRow(
                name=run.name, arm=name, rung=run.rung, seed=run.seed, rows=run.rows, metrics=metrics, cost=run.cost,
                placement=_placement(run, metrics, band),
            )  # fmt: skip


def _placement(run: Run, metrics: Mapping[str, Estimate], band: AuditBand | None) -> Placement | None:
    if band is None:
        return None
    if run.noisy is not None:
        return band.place(run.noisy[0], rows=run.noisy[1])
    accuracy = metrics["accuracy"].estimate
    return band.place(accuracy, rows=len(run.scores)) if run.key == "noisy" and accuracy is not None else None


def _arm(name: str, members: Sequence[Run], metric: str, level: float) -> Arm:
    values = []
    for run in members:
        one = np.ones((1, len(run.scores)))
        values.append(float(decision_metric(metric, count(run.scores.truth, run.scores.predicted, one))[0]))
    mean, sd, interval = seed_interval(values, level=level)
    if not np.isfinite(mean):
        sd, interval = None, Estimate(estimate=None, method=f"{metric} does not exist for one of the runs")
    return Arm(
        name=name, rung=members[0].rung, runs=tuple(r.name for r in members), seeds=tuple(r.seed for r in members),
        mean=interval, sd=sd,
    )  # fmt: skip
