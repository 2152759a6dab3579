"""The verdict on a matched comparison, and its words: a threshold shift, a gain, a loss, or more rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from scipy import special

from audit.results import Estimate
from train.words import metric_name, place_name

__all__ = ["Verdict", "changed", "judge", "rows_needed", "told"]

Verdict = Literal["threshold shift", "likely threshold shift", "gain", "loss", "unclear", "degenerate"]


def judge(
    differences: Mapping[str, Estimate],
    equivalence: Mapping[str, tuple[float, float] | None],
    *,
    margin: float,
    differing: tuple[float, float] = (1.0, 1.0),
) -> Verdict:
    """The verdict that the differences (other less ours) allow; balanced accuracy decides where metrics disagree.

    A shift is shown where every metric passes both one-sided tests, or where every estimate lies within the margin and
    so does ``differing``, (share, upper limit) of the rows that the two decide differently: accuracy cannot differ by
    more. It is likely where every estimate lies within the margin, every interval covers 0, and either the share of
    such rows or a tenth of every equivalence limit lies within the margin: that errors of two kinds happen to cancel
    out is no sign. A gain or a loss is larger than the margin and its interval leaves 0 out.
    """
    known = {
        m: d
        for m, d in differences.items()
        if d.estimate is not None and d.low is not None and d.high is not None
    }
    if not known:
        return "unclear"
    tests = [equivalence.get(m) for m in known]
    close = all(abs(d.estimate or 0.0) <= margin for d in known.values())
    if all(t is not None and -margin < t[0] and t[1] < margin for t in tests) or (
        close and differing[1] <= margin
    ):
        return "threshold shift"
    gains, losses = changed(known, margin=margin)
    if gains and ("balanced_accuracy" in gains or not losses):
        return "gain"
    if losses:
        return "loss"
    covers = all((d.low or 0.0) <= 0.0 <= (d.high or 0.0) for d in known.values())
    narrow = all(t is not None and max(map(abs, t)) <= 10.0 * margin for t in tests)
    likely = close and covers and (narrow or differing[0] <= margin)
    return "likely threshold shift" if likely else "unclear"


def changed(differences: Mapping[str, Estimate], *, margin: float) -> tuple[list[str], list[str]]:
    """Metrics that are higher, and lower, by more than the margin with an interval that leaves 0 out."""
    gains = [m for m, d in differences.items() if (d.low or 0.0) > 0.0 and (d.estimate or 0.0) > margin]
    losses = [m for m, d in differences.items() if (d.high or 0.0) < 0.0 and (d.estimate or 0.0) < -margin]
    return gains, losses


def rows_needed(
    n: int,
    found: Mapping[str, Estimate],
    spread: Mapping[str, float],
    compared: Sequence[str],
    *,
    margin: float,
    level: float,
) -> tuple[int | None, int | None]:
    """Rows for equivalence within the margin (80 % power, no difference), and to confirm the difference seen."""
    largest = max((s for m in compared if math.isfinite(s := spread[m])), default=math.nan)
    if not math.isfinite(largest):
        return None, None
    settle = n * (largest * float(special.ndtri(level) + special.ndtri(0.9)) / margin) ** 2
    gap, sd = abs(found["balanced_accuracy"].estimate or 0.0), spread["balanced_accuracy"]
    if gap <= margin or not math.isfinite(sd):
        return math.ceil(settle), None
    confirm = n * (sd * float(special.ndtri(0.5 + level / 2.0) + special.ndtri(0.8)) / gap) ** 2
    return math.ceil(settle), math.ceil(confirm)


def told(
    verdict: Verdict,
    *,
    source: str,
    on: str,
    target: float,
    found: Mapping[str, Estimate],
    equal: Mapping[str, tuple[float, float] | None],
    compared: Sequence[str],
    n: int,
    margin: float,
    level: float,
    rows: tuple[int | None, int | None],
    same: float,
) -> str:
    """The verdict as one or two sentences with its figures."""
    source = place_name(source)
    at = f"at its {metric_name(on)} of {target:.3f}"
    if verdict == "degenerate":
        return (
            f"No verdict on {source}: a run that gives (nearly) all {n:,} rows one answer, or whose {metric_name(on)} "
            "no threshold reaches, has no operating point to compare. Try another --match."
        )
    known = {m: d for m in compared if (d := found[m]).estimate is not None}
    largest = max((abs(d.estimate or 0.0) for d in known.values()), default=math.nan)
    limits = [abs(x) for m in known if (pair := equal.get(m)) for x in pair]
    room = max(limits, default=math.nan)
    decisions = f"{same:.1%} of the decisions are the same" if math.isfinite(same) else ""
    if verdict == "threshold shift":
        return (
            f"A pure threshold shift: {at}, {source} differs from a threshold on our scores by at most {largest:.4f} "
            f"in any metric; {decisions} on {n:,} rows (for other rows up to {room:.4f} is possible)."
        )
    if verdict == "likely threshold shift":
        left = (
            f"{n:,} rows leave room for differences up to {room:.4f}; about {_round(rows[0])} would show that they are "
            f"below {margin:g}."
        )
        if same == 1.0:
            return (
                f"A pure threshold shift on these rows: {at}, a threshold on our scores makes every decision that "
                f"{source} makes. {left}"
            )
        return (
            f"It looks like a pure threshold shift: {at}, {source} differs from a threshold on our scores by at most "
            f"{largest:.4f} in any metric; {decisions}. {left}"
        )
    if verdict in ("gain", "loss"):
        gains, losses = changed(known, margin=margin)
        first, second = (gains, losses) if verdict == "gain" else (losses, gains)
        mixed = f", and {'lower' if verdict == 'gain' else 'higher'} in {_list(second, known)}" * bool(second)
        what = "A real gain" if verdict == "gain" else "A real loss"
        return (
            f"{what} on {_list(first, known)}{mixed}: {at}, {source} is "
            f"{'above' if verdict == 'gain' else 'below'} what a threshold on our scores gives ({level:.0%} "
            f"intervals leave 0 out); {decisions}."
        )
    more = f", about {_round(rows[1])} to confirm a difference as large as this one" if rows[1] else ""
    return (
        f"It cannot be told with {n:,} rows whether {source} does anything that a threshold does not: {at} the largest "
        f"difference is {largest:.4f}, and up to {room:.4f} is possible. It would need about {_round(rows[0])} rows to "
        f"settle a difference of {margin:g}{more}."
    )


def _list(metrics: Sequence[str], found: Mapping[str, Estimate]) -> str:
    return ", ".join(f"{metric_name(m)} ({found[m].estimate or 0.0:+.4f})" for m in metrics)


def _round(rows: int | None) -> str:
    """A number of rows to two figures, upwards."""
    if rows is None:
        return "an unknown number of"
    step = 10 ** max(0, len(str(rows)) - 2)
    return f"{math.ceil(rows / step) * step:,}"
