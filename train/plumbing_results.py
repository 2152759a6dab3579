"""Frozen results of the plumbing report. A number that does not exist is None, with a reason beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from audit.results import Estimate, Result

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Band", "Checks", "Finding", "LengthTax", "PlumbingReport", "Pool", "Quantile", "Settings", "Share", "Slope",
    "Source", "Step", "Test",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Source(Result):
    """What was read. ``unrewarded`` rollouts have no reward: they were left out of their group's baseline."""

    source: str
    form: str
    rollouts: int
    unrewarded: int
    groups: int
    group_size: int
    steps: int
    items: int
    length_unit: str | None
    cap: float | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Slope(Estimate):
    """How much a value changes with another inside groups; ``groups`` of them can tell."""

    groups: int = 0
    p_value: float | None = None
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Test(Result):
    """The p value of a test, or the reason why there is none."""

    __test__ = False  # no test of pytest's

    p_value: float | None = None
    method: str = ""
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Quantile(Estimate):
    """The length within which this share of the rollouts would end, were none cut."""

    share: float
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Band(Result):
    """The rollouts with low <= length <= high (of later bands low < length).

    ``reward`` is over all that have one, ``finished_reward`` over those that were not cut, and ``finished_within`` is
    the same less the mean of the finished rollouts of their group: what is left when hard items, which are thought
    about longer, are compared with themselves.
    """

    low: float
    high: float
    rollouts: int
    truncated: Estimate | None
    closed: Estimate | None
    reward: Estimate | None
    finished: int
    finished_reward: Estimate | None
    finished_within: Estimate | None


@dataclass(frozen=True, kw_only=True)
class LengthTax(Result):
    """What length costs, and how.

    ``cut_lowest`` and ``finished_lowest`` are the shares that get the lowest reward. ``cut`` is the reward of cut
    rollouts less that of finished ones of their group. The others are changes for twice the length inside groups,
    among finished rollouts: of closure, of the reward, and of the reward of those that are closed.
    """

    lowest: float | None
    highest: float | None
    cut_lowest: Estimate | None
    finished_lowest: Estimate | None
    cut: Slope
    closure: Slope
    reward: Slope
    closed_reward: Slope
    unclosed_reward: Estimate | None


@dataclass(frozen=True, kw_only=True)
class Share(Result):
    """A share of groups: in the data, among all groups seen, among the informative ones.

    ``change`` is that of (informative less seen) from the first step to the last, along a line.
    """

    value: str
    data: float | None
    seen: Estimate | None
    informative: Estimate | None
    change: float | None


@dataclass(frozen=True, kw_only=True)
class Pool(Result):
    """The groups that a skip of uniform ones leaves to learn from, against those seen and the data.

    ``only_cut`` informative groups would be uniform without their cut rollouts; ``uniform_lowest`` groups are all at
    the lowest reward. ``filtered``: the log holds no uniform groups. ``mix`` tests whether the informative groups have
    the classes of those seen at the same time, ``drift`` whether the difference changes over the steps; ``contested``
    and so on ask the same of items whose labels disagree.
    """

    informative: Estimate | None
    informative_change: Estimate | None
    only_cut: int | None
    uniform_lowest: int
    uniform_other: int
    filtered: bool
    data: str
    classes: tuple[Share, ...]
    mix: Test
    drift: Test
    contested: Share | None
    contested_data: str
    contested_mix: Test
    contested_drift: Test


@dataclass(frozen=True, kw_only=True)
class Checks(Result):
    """Counts of what ought not to be; None where the log cannot tell.

    ``several_tags`` rollouts have more than one close tag in their text, ``several_tags_paid`` of these more than the
    lowest reward, ``several_tags_closed`` were logged as closed; ``tags_in_prompts`` prompts hold the close tag.
    ``right_unpaid`` rollouts answer as labelled, are closed and whole, and get the lowest reward; ``wrong_paid``
    answer otherwise and get more. Of groups: those of one rollout, of another size than the usual one, and whose
    advantages do not sum to nought.
    """

    several_tags: int | None
    several_tags_paid: int | None
    several_tags_closed: int | None
    tags_in_prompts: int | None
    answered: int | None
    right_unpaid: int | None
    wrong_paid: int | None
    groups_of_one: int
    uneven_groups: int
    uncentred_groups: int | None
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Step(Result):
    """One step: means over its rollouts and groups with intervals; class shares of informative and seen groups."""

    step: int
    rollouts: int
    groups: int
    length: Estimate | None
    truncated: Estimate | None
    closed: Estimate | None
    reward: Estimate | None
    informative_groups: int
    informative: Estimate | None
    classes: Mapping[str, float] = field(default_factory=dict)
    seen_classes: Mapping[str, float] = field(default_factory=dict)
    contested: float | None = None
    seen_contested: float | None = None


@dataclass(frozen=True, kw_only=True)
class Finding(Result):
    """Something wrong, in words with the number behind it. ``p_value`` is Holm's, over all tests of the report."""

    code: str
    message: str
    action: str
    p_value: float | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Settings(Result):
    """What a second run needs to give the same numbers."""

    level: float
    family_error: float
    close_tag: str
    conflicts: str | None
    data: str | None
    tests: int


@dataclass(frozen=True, kw_only=True)
class PlumbingReport(Result):
    """What :func:`train.plumbing.plumbing_report` found."""

    source: Source
    findings: tuple[Finding, ...]
    truncated: Estimate | None
    closed: Estimate | None
    reward: Estimate | None
    length: Estimate | None
    length_change: Estimate | None
    bands: tuple[Band, ...]
    tax: LengthTax
    caps: tuple[Quantile, ...]
    caps_reason: str | None
    pool: Pool
    checks: Checks
    steps: tuple[Step, ...]
    settings: Settings

    def summary(self) -> str:
        """The whole report as text for a terminal; also what ``str`` gives."""
        from train.plumbing_text import text

        return text(self)

    __str__ = summary

    def to_frame(self) -> pd.DataFrame:
        """One row per step; an estimate gives the columns ``x``, ``x_low``, ``x_high``, a class ``informative: c``."""
        import pandas as pd

        return pd.DataFrame([_row(step) for step in self.steps])


def _row(step: Step) -> dict[str, Any]:
    row: dict[str, Any] = {"step": step.step, "rollouts": step.rollouts, "groups": step.groups}
    for name in ("length", "truncated", "closed", "reward"):
        row |= _estimate(name, getattr(step, name))
    row["informative_groups"] = step.informative_groups
    row |= _estimate("informative", step.informative)
    row |= {f"informative: {name}": share for name, share in step.classes.items()}
    row |= {f"seen: {name}": share for name, share in step.seen_classes.items()}
    return row | {"contested": step.contested, "seen_contested": step.seen_contested}


def _estimate(name: str, part: Estimate | None) -> dict[str, float | None]:
    found = part or Estimate(estimate=None)
    return {name: found.estimate, f"{name}_low": found.low, f"{name}_high": found.high}
