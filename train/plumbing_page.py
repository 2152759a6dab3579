"""The plumbing report as one HTML page: findings, tables, and curves over length and steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from audit.render_words import percent
from audit.results import Estimate
from train import plumbing_text as words
from train.page import Heading, Part, Picture, Table, Words, page
from train.pictures import Line, Rule, chart
from train.plumbing_results import Band, PlumbingReport, Step

__all__ = ["html"]

_MOST_CLASSES = 4


def html(report: PlumbingReport) -> str:
    """``report`` as a complete HTML document."""
    parts = [*_findings(report), *_length(report), *_pool(report), *_checks(report), *_steps(report)]
    return page("Plumbing of a run", parts)


def _findings(report: PlumbingReport) -> Iterator[Part]:
    yield Words(words.headline(report), tone="verdict")
    if report.findings:
        rows = [
            (f.code, f.message, f.action, "" if f.p_value is None else f"{f.p_value:.2g}")
            for f in report.findings
        ]
        yield Table("Findings (p after Holm's adjustment)", ("finding", "what", "what to do", "p"), rows)
    yield Words("\n\n".join((words.source_sentence(report), *report.source.notes)))
    yield Words(words.CAVEAT.format(chance=percent(report.settings.family_error)), tone="fine")


def _length(report: PlumbingReport) -> Iterator[Part]:
    yield Heading("What length costs")
    unit = f"length in {report.source.length_unit}" if report.source.length_unit else "length"
    if report.bands:
        yield Picture(_by_length(report, unit), f"Bands of length at their middle; {_level(report)}.")
        columns = (
            "length", "rollouts", "cut", "closed", "reward", "finished", "reward of finished", "interval",
            "less its group's mean",
        )  # fmt: skip
        yield Table("By length", columns, [_band(band) for band in report.bands])
    rows = [(name, words.number(part), words.between(part)) for name, part in words.tax_rows(report)]
    yield Table("Inside groups", ("", "estimate", f"{percent(report.settings.level)} interval"), rows)
    if report.caps_reason:
        yield Words(f"What the cap would have to be: {report.caps_reason}.")
    else:
        rows = [
            (
                f"for {percent(cap.share)} to end",
                words.number(cap, 0),
                words.between(cap, 0) or cap.reason or "",
            )
            for cap in report.caps
        ]
        yield Table("The cap would have to be (Kaplan-Meier)", ("", unit, "interval"), rows)


def _band(band: Band) -> tuple[str | int, ...]:
    number = words.number
    return (
        f"{band.low:,.0f} to {band.high:,.0f}", band.rollouts, number(band.truncated), number(band.closed),
        number(band.reward), band.finished, number(band.finished_reward), words.between(band.finished_reward),
        number(band.finished_within),
    )  # fmt: skip


def _by_length(report: PlumbingReport, unit: str) -> str:
    middle = [(band.low + band.high) / 2.0 for band in report.bands]
    lines = [
        _line("reward", middle, [band.reward for band in report.bands]),
        _line("reward of finished", middle, [band.finished_reward for band in report.bands]),
        _line("closed", middle, [band.closed for band in report.bands]),
        _line("cut", middle, [band.truncated for band in report.bands]),
    ]
    cap = report.source.cap
    rules = (Rule(cap, "cap", axis="x"),) if cap is not None else ()
    return chart(
        "Reward, closure and cuts by length", _known(lines), x_label=unit, y_label="mean", rules=rules
    )


def _pool(report: PlumbingReport) -> Iterator[Part]:
    yield Heading("What is left to learn from")
    pool = report.pool
    yield Words(
        f"Informative groups, whose rewards differ, are {words.number(pool.informative)} of all "
        f"({words.between(pool.informative) or 'no interval'}). "
        f"{'' if not pool.only_cut else f'{pool.only_cut:,} would be uniform without their cut rollouts. '}"
        f"{words.tests_told(report)}."
    )
    rows = [
        (
            name, None if share.data is None else f"{share.data:.3f}", words.number(share.seen),
            words.number(share.informative), words.between(share.informative),
            None if share.change is None else f"{share.change:+.3f}".replace("-", "−"),
        )
        for name, share in words.pool_rows(report)
    ]  # fmt: skip
    columns = (
        "share of",
        "data",
        "groups seen",
        "informative groups",
        "interval",
        "change over the steps",
    )
    if rows:
        yield Table("Classes and contested items", columns, rows)
    step = _at(report.steps)
    yield Picture(
        chart(
            "Share of informative groups",
            [_line("informative", step, [one.informative for one in report.steps], band=False)],
            x_label="step", y_label="share of groups", y_range=(0.0, 1.0),
        )
    )  # fmt: skip
    names = [share.value for share in pool.classes][:_MOST_CLASSES]
    lines = []
    for name in names[1:] if len(names) == 2 else names:
        lines.append(Line(f"{name}, informative", step, [one.classes.get(name) for one in report.steps]))
        seen = [one.seen_classes.get(name) for one in report.steps]
        lines.append(Line(f"{name}, seen", step, seen, kind="points"))
    if report.pool.contested is not None:
        lines.append(Line("labels disagree, informative", step, [one.contested for one in report.steps]))
    if lines:
        yield Picture(
            chart(
                "Classes of the informative groups",
                lines,
                x_label="step",
                y_label="share",
                y_range=(0.0, 1.0),
            )
        )


def _checks(report: PlumbingReport) -> Iterator[Part]:
    yield Heading("What ought not to be")
    yield Table("Counts", ("", "count"), [(name, count) for name, count in words.check_rows(report)])
    if report.checks.reason:
        yield Words(f"Rewards were not set against answers: {report.checks.reason}.")


def _steps(report: PlumbingReport) -> Iterator[Part]:
    yield Heading("Over the steps")
    step = _at(report.steps)
    unit = f"mean length in {report.source.length_unit}" if report.source.length_unit else "mean length"
    yield Picture(
        chart(
            "Length", [_line("length", step, [s.length for s in report.steps])], x_label="step", y_label=unit
        ),
        _level(report),
    )
    columns: Sequence[tuple[str, Callable[[Step], Estimate | None]]] = (
        ("reward", lambda s: s.reward), ("closed", lambda s: s.closed), ("cut", lambda s: s.truncated),
    )  # fmt: skip
    lines = [_line(name, step, [get(one) for one in report.steps], band=False) for name, get in columns]
    yield Picture(chart("Reward, closure and cuts", _known(lines), x_label="step", y_label="mean"))
    number = words.number
    rows = [
        (
            str(s.step), s.rollouts, number(s.length, 1), number(s.truncated), number(s.closed), number(s.reward),
            f"{s.informative_groups} of {s.groups}",
        )
        for s in report.steps
    ]  # fmt: skip
    yield Table(
        "Steps", ("step", "rollouts", "length", "cut", "closed", "reward", "informative groups"), rows
    )


def _line(name: str, x: Sequence[float], parts: Sequence[Estimate | None], *, band: bool = True) -> Line:
    y = [part.estimate if part else None for part in parts]
    if not band:
        return Line(name, x, y)
    low, high = (
        [part.low if part else None for part in parts],
        [part.high if part else None for part in parts],
    )
    return Line(name, x, y, low, high)


def _known(lines: Sequence[Line]) -> list[Line]:
    """The lines that have a value: what the log does not hold is not drawn."""
    return [line for line in lines if any(value is not None for value in line.y)] or list(lines[:1])


def _at(steps: Sequence[Step]) -> list[float]:
    return [float(step.step) for step in steps]


def _level(report: PlumbingReport) -> str:
    return f"intervals of {percent(report.settings.level)} over items"
