"""The findings of a routing comparison in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from audit.results import Estimate
from train.operating_results import figure
from train.route_results import Ambiguity, OracleGap, signed
from train.words import metric_name

__all__ = ["sentences"]


def sentences(found: Mapping[str, Any]) -> tuple[str, ...]:
    """The verdict first, one finding a sentence; ``found`` holds the fields of :class:`train.route_results.Route`."""
    return tuple(_sentences(found))


def _sentences(f: Mapping[str, Any]) -> Iterator[str]:
    name = metric_name(f["metric"])
    if f["verdict"] == "same answers":
        yield f"Nothing to route: both models are right on the same {f['crosstab'].both_right:,} of {f['n']:,}."
        return
    area: Estimate = f["area"][f["metric"]]
    told = {
        "better than random": "Confidence routing beats random routing",
        "worse than random": "Confidence routing is worse than random routing, a is surest where b would help",
        "not told from random": f"Confidence routing cannot be told from random routing with {f['n']:,} items",
    }[f["verdict"]]
    yield f"{told}: {name} {signed(area)} on average over all shares."
    best = f["best"]
    wins = [
        best.over_b.low is not None and best.over_b.low > 0,
        best.over_a.low is not None and best.over_a.low > 0,
    ]
    if all(wins):
        yield (
            f"A cascade beats both models: {best.share:.0%} to b gives {name} {figure(best.corrected)}, "
            f"{signed(best.over_b)} over always b (less {best.optimism:.4f} as the share was chosen here)."
        )
    else:
        yield (
            f"No cascade is shown to beat {'b' if not wins[0] else 'a'}: the best ({best.share:.0%} to b) gives {name} "
            f"{figure(best.corrected)}, {signed(best.over_b)} over always b."
        )
    yield _kept(f, name)
    yield from _oracle(f["oracle"], f["crosstab"].only_a + f["crosstab"].only_b, f["level"])
    if f["ambiguity"] is not None:
        yield _ambiguous(f["ambiguity"], f["level"])


def _kept(f: Mapping[str, Any], name: str) -> str:
    keeps, margin = f["keeps"], f["margin"]
    if keeps is None or keeps >= 1.0:
        return f"No smaller share than all is shown to lose less than {margin:g} {name} against always b."
    cost = ""
    if f["cost_a"] is not None and f["cost_b"]:
        cost = f", at {(f['cost_a'] + keeps * f['cost_b']) / f['cost_b']:.0%} of its cost"
    return f"{keeps:.0%} to b loses less than {margin:g} {name} against always b{cost}."


def _oracle(gap: OracleGap, one_right: int, level: float) -> Iterator[str]:
    found, chance = gap.gap.estimate or 0.0, gap.independent
    coins = (
        "about what"
        if _inside(found, chance)
        else "less than"
        if found < (chance.low or 0.0)
        else "more than"
    )
    yield (
        f"The oracle (the right one of the two, always) gains {figure(gap.gap)} over {gap.better}. Two models with "
        f"these error rates that err by independent coins would show {figure(chance)}: it is {coins} coins give."
    )
    yield (
        f"If a fair toss had dealt out the {one_right:,} items that only one has right, the gap would be "
        f"{figure(gap.coins)}: a gap is no sign of skill to route by."
    )
    if gap.reachable is not None and gap.flip_rate is not None:
        left = gap.reachable
        most = "" if (left.high or 0.0) > 0 else ": the whole gap is within label noise"
        yield f"At a flip rate of {gap.flip_rate:g} a router that knows the truth could gain {signed(left)}{most}."


def _inside(value: float, part: Estimate) -> bool:
    return part.low is not None and part.high is not None and part.low <= value <= part.high


def _ambiguous(found: Ambiguity, level: float) -> str:
    if found.of_gap is None:
        return f"The oracle's gap is empty; {found.share:.1%} of the items have ambiguous labels."
    figures = (
        f"{found.of_gap:.1%} of its items against {found.share:.1%} of all (Fisher's p = {found.p_value:.3g})"
    )
    if found.p_value >= 1.0 - level:
        return f"The oracle's gap is not shown to sit on ambiguous labels: {figures}."
    if found.of_gap > found.share:
        return f"The oracle's gap sits on ambiguous labels: {figures}; there the label itself is a toss."
    return f"The oracle's gap avoids ambiguous labels: {figures}."
