"""The plumbing report as text for a terminal, 100 columns wide: findings first, then the tables."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from audit.render_words import integer, percent, visible
from audit.results import Estimate
from train.plumbing_results import PlumbingReport, Share, Slope, Step, Test
from train.words import place_name

__all__ = [
    "CAVEAT",
    "between",
    "check_rows",
    "headline",
    "number",
    "pool_rows",
    "source_sentence",
    "tax_rows",
    "tests_told",
    "text",
]

_WIDTH = 100
_STEPS_SHOWN = 8

CAVEAT = (
    "Rollouts of one item are alike, so intervals are over items. A report finds something where there is nothing with "
    "a chance of {chance} at most; that it finds nothing does not mean that nothing is there."
)


def text(report: PlumbingReport) -> str:
    """``report`` as text, ending without a line end."""
    sections = (
        _head(report),
        _bands(report),
        _tax(report),
        _caps(report),
        _pool(report),
        _steps(report),
        _close(report),
    )
    return "\n\n".join("\n".join(lines) for lines in map(list, sections) if lines)


def headline(report: PlumbingReport) -> str:
    """The first finding, or that there is none."""
    if report.findings:
        return report.findings[0].message
    return f"Nothing found in {integer(report.source.rollouts)} rollouts: no tax on length, no drift, no contradiction."


def number(part: Estimate | None, digits: int = 3) -> str:
    """The estimate with so many decimals, or – where there is none."""
    if part is None or part.estimate is None:
        return "–"
    return f"{part.estimate:,.{digits}f}".replace("-", "−")


def between(part: Estimate | None, digits: int = 3) -> str:
    """``0.158 to 0.213``, or nothing."""
    if part is None or part.low is None or part.high is None:
        return ""
    return f"{part.low:,.{digits}f} to {part.high:,.{digits}f}".replace("-", "−")


def source_sentence(report: PlumbingReport) -> str:
    """What was read."""
    source = report.source
    unpaid = f", {integer(source.unrewarded)} without a reward" if source.unrewarded else ""
    cap = f", cap {source.cap:,.0f}" if source.cap is not None else ""
    unit = f"lengths in {source.length_unit}" if source.length_unit else "lengths unknown"
    return (
        f"{place_name(source.source)} ({source.form}): {integer(source.rollouts)} rollouts{unpaid} in "
        f"{integer(source.groups)} groups of {source.group_size}, {integer(source.items)} items, "
        f"{integer(source.steps)} steps; {unit}{cap}."
    )


def tax_rows(report: PlumbingReport) -> Iterator[tuple[str, Estimate | None]]:
    """What length costs: a name and a number each."""
    tax = report.tax
    lowest = "zero" if tax.lowest == 0 else "lowest"
    yield f"cut rollouts that score {lowest}", tax.cut_lowest
    yield f"finished rollouts that score {lowest}", tax.finished_lowest
    yield "reward, cut less finished, in one group", tax.cut
    yield "finished, twice the length: closure", tax.closure
    yield "finished, twice the length: reward", tax.reward
    yield "closed, twice the length: reward", tax.closed_reward


def pool_rows(report: PlumbingReport) -> Iterator[tuple[str, Share]]:
    """The classes, and the contested items."""
    pool = report.pool
    yield from ((f"class {share.value}", share) for share in pool.classes)
    if pool.contested is not None:
        yield "labels disagree", pool.contested


def check_rows(report: PlumbingReport) -> Iterator[tuple[str, int | None]]:
    """What ought not to be: a name and a count each."""
    checks = report.checks
    yield f"rollouts with several {report.settings.close_tag or 'close tags'}", checks.several_tags
    yield "... that are paid", checks.several_tags_paid
    yield "prompts that hold the close tag", checks.tags_in_prompts
    yield "right answers with the lowest reward", checks.right_unpaid
    yield "wrong answers that are paid", checks.wrong_paid
    yield "groups of one rollout", checks.groups_of_one
    yield "groups of another size than most", checks.uneven_groups
    yield "groups whose advantages do not sum to nought", checks.uncentred_groups


def _head(report: PlumbingReport) -> Iterator[str]:
    source = report.source
    if not report.findings:
        yield from _wrap(headline(report))
    for finding in report.findings:
        yield from _wrap(f"{finding.code}: {finding.message}", first="! ")
        yield from _wrap(finding.action, first="  → ", rest="    ")
    yield ""
    yield from _wrap(source_sentence(report))
    for note in source.notes:
        yield from _wrap(note, first="  ")


def _bands(report: PlumbingReport) -> Iterator[str]:
    if not report.bands:
        return
    level = f"{percent(report.settings.level)} interval"
    yield (
        f"{'length':<17}{'rollouts':>9}{'cut':>7}{'closed':>8}{'reward':>8}{'finished':>10}{'reward':>8}   "
        f"{level:<14}{'in group':>10}"
    )
    for band in report.bands:
        name = f"{band.low:,.0f} to {band.high:,.0f}"
        yield (
            f"{name:<17}{integer(band.rollouts):>9}{number(band.truncated):>7}{number(band.closed):>8}"
            f"{number(band.reward):>8}{integer(band.finished):>10}{number(band.finished_reward):>8}   "
            f"{between(band.finished_reward):<14}{number(band.finished_within):>10}"
        ).rstrip()


def _tax(report: PlumbingReport) -> Iterator[str]:
    for name, part in tax_rows(report):
        said = part.reason or "" if isinstance(part, Slope) else ""
        yield f"{name:<44}{number(part):>9}   {between(part) or said}".rstrip()


def _caps(report: PlumbingReport) -> Iterator[str]:
    if report.caps_reason:
        yield from _wrap(f"What the cap would have to be: {report.caps_reason}.")
        return
    yield "the cap would have to be"
    for cap in report.caps:
        yield f"  for {percent(cap.share)} to end{number(cap, 0):>10}   {between(cap, 0) or cap.reason or ''}".rstrip()


def _pool(report: PlumbingReport) -> Iterator[str]:
    pool = report.pool
    yield (
        f"{'informative groups':<24}{number(pool.informative):>9}   {between(pool.informative)}   change over the "
        f"steps {number(pool.informative_change)}"
    )
    yield f"  uniform: {integer(pool.uniform_lowest)} all at the lowest reward, {integer(pool.uniform_other)} above it"
    if pool.only_cut:
        yield f"  {integer(pool.only_cut)} informative groups would be uniform without their cut rollouts"
    rows = list(pool_rows(report))
    if rows:
        level = f"{percent(report.settings.level)} interval"
        yield f"{'share of':<24}{'data':>9}{'seen':>9}{'informative':>13}   {level:<14}   change"
    for name, share in rows:
        data = "–" if share.data is None else f"{share.data:.3f}"
        change = "–" if share.change is None else f"{share.change:+.3f}".replace("-", "−")
        yield (
            f"  {visible(name, one_line=True)[:21]:<22}{data:>9}{number(share.seen):>9}{number(share.informative):>13}"
            f"   {between(share.informative):<14}   {change}"
        )
    yield from _wrap(tests_told(report), first="  ")


def _steps(report: PlumbingReport) -> Iterator[str]:
    yield f"{'step':<8}{'rollouts':>9}{'length':>9}{'cut':>8}{'closed':>8}{'reward':>8}{'informative':>13}"
    shown = _spread(report.steps, _STEPS_SHOWN)
    for step in shown:
        yield (
            f"{step.step:<8}{integer(step.rollouts):>9}{number(step.length, 1):>9}{number(step.truncated):>8}"
            f"{number(step.closed):>8}{number(step.reward):>8}{step.informative_groups:>7} of {step.groups:<3}"
        ).rstrip()
    if len(shown) < len(report.steps):
        yield f"  {len(shown)} of {len(report.steps)} steps; all in --html and --format json"
    if report.length_change is not None:
        yield (
            f"length from the first step to the last: {number(report.length_change, 1)}   "
            f"{between(report.length_change, 1)}"
        ).rstrip()


def _close(report: PlumbingReport) -> Iterator[str]:
    told = [f"{name} {integer(count)}" for name, count in check_rows(report) if count is not None]
    yield from _wrap("; ".join(told) + ".")
    if report.checks.reason:
        yield from _wrap(f"Rewards were not set against answers: {report.checks.reason}.")
    yield from _wrap(CAVEAT.format(chance=percent(report.settings.family_error)))


def tests_told(report: PlumbingReport) -> str:
    """The p values of the pool's tests, as they are (not Holm's), or why there is none."""
    pool = report.pool
    tests = [("mix", pool.mix), ("drift", pool.drift)]
    if pool.contested is not None:
        tests += [("contested", pool.contested_mix), ("contested drift", pool.contested_drift)]
    told = "; ".join(f"{name}: {_told(test)}" for name, test in tests)
    bases = [f"column data: {_base(pool.data)}"] if pool.classes else []
    if pool.contested is not None and (pool.contested_data != pool.data or not bases):
        bases.append(f"for contested items {_base(pool.contested_data)}")
    return "; ".join((told, *bases))


def _base(name: str) -> str:
    """What the column of that name was counted over."""
    return "all rows of --data" if name == "the data" else name


def _told(test: Test) -> str:
    if test.p_value is None:
        return test.reason or "not tested"
    return "p < 0.001" if test.p_value < 0.001 else f"p = {test.p_value:.3f}"


def _spread(parts: Sequence[Step], most: int) -> list[Step]:
    """At most so many of the parts, evenly spread, first and last among them."""
    if len(parts) <= most:
        return list(parts)
    return [parts[round(k * (len(parts) - 1) / (most - 1))] for k in range(most)]


def _wrap(sentence: str, *, first: str = "", rest: str | None = None) -> list[str]:
    clean = visible(sentence, one_line=True)
    return textwrap.wrap(
        clean, _WIDTH, initial_indent=first, subsequent_indent=" " * len(first) if rest is None else rest,
        break_on_hyphens=False,
    )  # fmt: skip
