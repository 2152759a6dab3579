"""Which rows got a trace: acceptance by class and by ambiguity, so that the selection behind CoT-SFT is seen.

A trace survives where the teacher's answer is the clean label, so traces survive on easy rows. A student of them
learns from a pool that is not the data; the rung sft-matched trains on the same rows without the thoughts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from audit.intervals import wilson
from audit.results import Result
from train.task import Example, Task, item_key, read_table
from train.traces import REASONS, TraceSet, tally

__all__ = ["Survival", "TraceReport", "labels_by_item", "survival_difference", "trace_report"]


@dataclass(frozen=True, kw_only=True)
class Survival(Result):
    """One group of items: how many there are, how many have a trace, and how the group fares against the rest.

    ``share_of_data`` and ``share_of_traces`` are in [0, 1]. ``difference`` is the share with a trace in the group
    less that in the rest, with Newcombe's interval; None where there is no rest. Its level is raised so that all
    the comparisons of a report hold together (Bonferroni).
    """

    group: str
    value: str
    items: int
    traced: int
    draws: int
    accepted: int
    share_of_data: float
    share_of_traces: float | None
    low: float
    high: float
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None

    @property
    def selected(self) -> int:
        """+1 or -1 where the group surely has traces more or less often than the rest, else 0."""
        if self.difference_low is None or self.difference_high is None:
            return 0
        return (self.difference_low > 0) - (self.difference_high < 0)


@dataclass(frozen=True, kw_only=True)
class TraceReport(Result):
    """What rejection sampling did to the training rows."""

    items: int
    rows: int
    samples: int
    traced: int
    traced_rows: int
    reasons: Mapping[str, int]
    failed: Mapping[str, int]
    mean_tokens: float | None
    groups: tuple[Survival, ...]
    level: float

    @property
    def missing(self) -> int:
        """Draws without a reply."""
        return sum(self.failed.values())

    def summary(self) -> str:
        """The report as text."""
        draws = sum(self.reasons.values())
        lines = [
            f"Traces for {self.traced:,} of {self.items:,} items ({_share(self.traced, self.items)}), "
            f"{self.traced_rows:,} of {self.rows:,} rows; {self.samples} draws an item, {draws:,} replies",
            "Draws: "
            + ", ".join(f"{name} {count:,} ({_share(count, draws)})" for name, count in self.reasons.items()),
        ]
        if self.mean_tokens is not None:
            lines.append(f"A trace takes {self.mean_tokens:.0f} tokens on average, tags and answer with it")
        lines += [f"No reply for {self.missing:,} draws: {_causes(self.failed)}"] if self.failed else []
        head = ("", "items", "with trace", "interval", "draws kept", "of data", "of traces")
        table = [head, *(_row(group) for group in self.groups)]
        widths = [max(len(row[k]) for row in table) for k in range(len(head))]
        lines += [""] + [
            "  ".join(
                cell.ljust(w) if k == 0 else cell.rjust(w)
                for k, (cell, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in table
        ]
        verdicts = [_verdict(group) for group in _once(self.groups) if group.selected]
        lines += (
            ["", *verdicts] if verdicts else ["", "No group of rows is surely picked more often than others."]
        )
        return "\n".join(lines)


def labels_by_item(task: Task) -> dict[str, list[str]]:
    """All labels that an item has in the data, over all splits."""
    frame = read_table(task.data, [*task.inputs, task.label])
    found: dict[str, list[str]] = {}
    inputs = frame[list(task.inputs)].itertuples(index=False, name=None)
    for values, label in zip(inputs, frame[task.label], strict=True):
        if label:
            found.setdefault(item_key(values), []).append(label)
    return found


def survival_difference(
    successes: int, trials: int, others: int, other_trials: int, *, level: float = 0.95
) -> tuple[float, float, float]:
    """Difference of two independent proportions with the interval of Newcombe (1998, method 10).

    With Wilson limits l, u of each, the interval is d - √((p₁-l₁)² + (u₂-p₂)²) to d + √((u₁-p₁)² + (p₂-l₂)²).

    Returns
    -------
    tuple
        (difference, low, high), each in [-1, 1].
    """
    p, q = successes / trials, others / other_trials
    (l1, u1), (l2, u2) = wilson(successes, trials, level=level), wilson(others, other_trials, level=level)
    d = p - q
    return d, d - math.hypot(p - l1, u2 - q), d + math.hypot(u1 - p, q - l2)


def trace_report(
    found: TraceSet,
    examples: Sequence[Example],
    *,
    labels: Mapping[str, Sequence[str]],
    samples: int,
    level: float = 0.95,
) -> TraceReport:
    """Set the items that have a trace against all training items.

    Parameters
    ----------
    found:
        The traces and the fate of every draw.
    examples:
        The training rows that the teacher was asked about.
    labels:
        All labels of an item in the data (`labels_by_item`): an item whose labels differ is ambiguous.
    samples:
        Draws an item.
    level:
        Level of the intervals.
    """
    items = {example.item: example for example in examples}
    traced = {trace.item for trace in found.traces}
    counts = tally(found.draws)
    sizes = [trace.tokens for trace in found.traces]
    parts: list[tuple[str, Callable[[str], str]]] = [
        ("clean label", lambda item: items[item].clean),
        ("label as it came", lambda item: "right" if items[item].noisy == items[item].clean else "wrong"),
        ("labels in the data", lambda item: _kind(labels.get(item, ()))),
    ]
    split: list[tuple[str, dict[str, list[str]]]] = []
    for name, key in parts:
        members: dict[str, list[str]] = {}
        for item in items:
            members.setdefault(key(item), []).append(item)
        split.append((name, members))
    comparisons = sum(len(members) - (len(members) == 2) for _, members in split if len(members) > 1)
    strict = 1.0 - (1.0 - level) / max(comparisons, 1)
    groups = []
    for name, members in split:
        groups += [
            _survival(name, value, members[value], items, traced, found.draws, level, strict)
            for value in sorted(members)
        ]
    return TraceReport(
        items=len(items),
        rows=len(examples),
        samples=samples,
        traced=len(traced),
        traced_rows=sum(example.item in traced for example in examples),
        reasons={reason: counts[reason] for reason in REASONS if counts[reason]},
        failed=dict(found.failed),
        mean_tokens=sum(sizes) / len(sizes) if sizes else None,
        groups=tuple(groups),
        level=level,
    )


def _kind(labels: Sequence[str]) -> str:
    if len(labels) < 2:
        return "one"
    return "several, at odds" if len(set(labels)) > 1 else "several, alike"


def _survival(
    group: str,
    value: str,
    members: Sequence[str],
    items: Mapping[str, Example],
    traced: set[str],
    draws: Mapping[str, Sequence[str]],
    level: float,
    strict: float,
) -> Survival:
    n, kept, rest = len(members), sum(item in traced for item in members), len(items) - len(members)
    low, high = wilson(kept, n, level=level)
    difference = (
        survival_difference(kept, n, len(traced) - kept, rest, level=strict) if rest else (None, None, None)
    )
    return Survival(
        group=group,
        value=value,
        items=n,
        traced=kept,
        draws=sum(len(draws[item]) for item in members),
        accepted=sum(reason == "kept" for item in members for reason in draws[item]),
        share_of_data=n / len(items),
        share_of_traces=kept / len(traced) if traced else None,
        low=low,
        high=high,
        difference=difference[0],
        difference_low=difference[1],
        difference_high=difference[2],
    )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "–"


def _causes(failed: Mapping[str, int]) -> str:
    return "; ".join(f"{count} × {told}" for told, count in failed.items())


def _row(group: Survival) -> tuple[str, ...]:
    return (
        f"{group.group}: {group.value}",
        f"{group.items:,}",
        _share(group.traced, group.items),
        f"{group.low:.1%}–{group.high:.1%}",
        _share(group.accepted, group.draws),
        f"{group.share_of_data:.1%}",
        "–" if group.share_of_traces is None else f"{group.share_of_traces:.1%}",
    )


def _once(groups: Sequence[Survival]) -> list[Survival]:
    """The groups, of two that complement each other the second alone."""
    sizes = Counter(group.group for group in groups)
    last = {group.group: group for group in groups}
    return [group for group in groups if sizes[group.group] != 2 or group is last[group.group]]


def _verdict(group: Survival) -> str:
    how = "more" if group.selected > 0 else "less"
    return (
        f"Rows with {group.group} {group.value!r} have a trace {how} often than the rest "
        f"({group.difference:+.3f}, {group.difference_low:+.3f} to {group.difference_high:+.3f}): "
        f"{group.share_of_data:.1%} of the data, {group.share_of_traces or 0.0:.1%} of the traces."
    )
