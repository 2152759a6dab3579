"""Reports of labels that are no plain classes: a page for numbers, and what grades and tags add to the audit's own."""

from __future__ import annotations

from collections.abc import Iterator

from audit import render_words as words
from audit.label_grades import OrdinalAudit
from audit.label_numbers import NumericAudit
from audit.label_sets import TagsAudit
from audit.render_methods import Method
from audit.render_offsets import offset_sections
from audit.render_page import Figure, Page, Row, Section, SectionTable, settings_rows, with_limits
from audit.results import Estimate
from audit.verdict_numbers import unit_text

__all__ = ["numeric_page", "ordinal_sections", "tags_sections"]

_NAMES_SHOWN = 20

_NUMERIC = (
    Method(
        name="Noise σ",
        sentence=(
            "Labels of an item are independent draws around its mean. σ² is the mean sample variance over repeated "
            "items, each once. No predictor has a lower RMSE than σ against such labels; against the mean of k labels "
            "the floor is σ/√k."
        ),
        formula="σ² = mean of s²_i;  of two labels s² = (y_1 − y_2)²/2",
        source="limits: Satterthwaite, Biometrics Bulletin 2 (1946) 110–114",
    ),
    Method(
        name="Ceiling of R²",
        sentence="The share of the labels' variance that lies between items. It may be below zero.",
        formula="ICC(1) = B/(B + σ²),  B = var(item means) − mean of s²_i/n_i",
        source="Shrout & Fleiss, Psychol. Bull. 86 (1979) 420–428; limits: Fisher's z, jackknife",
    ),
    Method(
        name="Floor of the MAE",
        sentence=(
            "With D the mean distance of two labels of an item, no predictor has a mean absolute error below D/2, and "
            "one that knows each item's median has at most D."
        ),
        formula="D/2 ≤ lowest MAE ≤ D",
    ),
    Method(
        name="Noise by value",
        sentence=(
            "Items in parts of about equal size by their mean label. The mean of an item has its noise in it: noisy "
            "items get to the ends more often than others."
        ),
    ),
)  # fmt: skip

_OFFSETS = Method(
    name="Offsets of annotators",
    sentence=(
        "A label is item + annotator + noise, fitted by least squares to the repeated items; an offset is an effect "
        "less the mean effect of the others, each once. Limits by Student's t, with the larger of the linear model's "
        "standard error and one clustered by item; p-values corrected by Holm's method."
    ),
    formula="y = item_i + a_j + e;  δ_j = a_j − mean of a_k, k ≠ j",
    source="Searle, Linear Models (1971) ch. 7; ICC: Shrout & Fleiss 1979; Holm, Scand. J. Stat. 6 (1979) 65–70",
)


def numeric_page(result: NumericAudit) -> Page:
    """The report of ``audit dupes --kind numeric``."""
    return Page(
        kicker="Noise of the numbers in",
        source=words.file_name(result.settings.sources[0]),
        headline=result.verdict.headline,
        steps=result.verdict.next_steps,
        figures=(
            _figure("Noise σ, floor of the RMSE", result.noise_sd),
            _figure("Ceiling of R²", result.r2_ceiling),
            Figure(name="Floor of the MAE", value=_ends(result.mae_floor, 3) or "–", fine="from D/2 to D"),
            Figure(
                name="Repeated items", value=words.integer(result.repeats),
                fine=f"{words.integer(result.repeat_rows)} labels; {words.integer(result.rows)} rows in the file",
            ),
        ),
        sentences=(_data(result), *(("; ".join(result.data.notes),) if result.data.notes else ())),
        caution=(
            "A bias that all repeats share is invisible: σ is the noise of the label process, not its distance to the "
            "truth."
        ),
        sections=() if result.reason else (
            _estimates(result), *_by_value(result), *offset_sections(result.annotators)
        ),
        alarms=result.alarms,
        methods=_NUMERIC if result.annotators is None else (*_NUMERIC, _OFFSETS),
        settings=settings_rows(result.settings),
        version=result.settings.version,
    )  # fmt: skip


def _data(result: NumericAudit) -> str:
    missing = f" ({words.integer(result.missing_label)} without a label)" if result.missing_label else ""
    item = ", ".join(name or "(empty)" for name in result.settings.item)
    return (
        f"{words.file_name(result.settings.sources[0])}: {words.integer(result.rows)} rows{missing}, "
        f"{words.integer(result.items)} items, {words.integer(result.repeats)} of them with two labels or more "
        f"({words.integer(result.repeat_rows)} labels); item: {item}; label: {', '.join(result.settings.labels)}."
    )


def _estimates(result: NumericAudit) -> Section:
    rows = [
        ("noise of a label, σ", result.noise_sd),
        ("lowest RMSE of any model", result.rmse_floor),
        ("highest R² of any model", result.r2_ceiling),
        ("the same, variance of the whole file", Estimate(estimate=result.r2_file)),
        ("distance of two labels of an item, D", result.distance),
    ]
    floor = _ends(result.mae_floor)
    table = SectionTable(
        head=("", "estimate", f"{words.percent(result.level)} interval"),
        rows=(
            *(
                Row(values=(name, unit_text(part.estimate), _ends(part))) for name, part in rows
                if part.estimate is not None
            ),
            *((Row(values=("lowest MAE of any model, D/2 to D", floor, "")),) if floor else ()),
        ),
    )  # fmt: skip
    told = "In the units of the labels. The range of the lowest MAE is without sampling error."
    return Section(anchor="estimates", title="The noise and what follows", sentences=(told,), tables=(table,))


def _by_value(result: NumericAudit) -> Iterator[Section]:
    if not result.by_value:
        return
    rows = tuple(
        Row(
            values=(
                f"{unit_text(part.low)} to {unit_text(part.high)}", words.integer(part.items),
                _with_limits(part.noise_sd),
            ),
            drawn=part.noise_sd,
        )
        for part in result.by_value
    )  # fmt: skip
    table = SectionTable(
        head=("mean label of the item", "items", "noise σ"), rows=rows, reference=result.noise_sd.estimate,
        picture="σ with its interval, and a dashed line at σ of all",
    )  # fmt: skip
    told = "σ of parts of the items, from the lowest to the highest mean label, with its interval."
    yield Section(anchor="value", title="Noise by value", sentences=(told,), tables=(table,))


def ordinal_sections(result: OrdinalAudit) -> tuple[Section, ...]:
    """What ``--kind ordinal`` adds to the report of plain classes."""
    names = [words.visible(name, one_line=True) for name in result.order[:_NAMES_SHOWN]]
    more = f" < … ({len(result.order)} grades)" if len(result.order) > _NAMES_SHOWN else ""
    told = [
        f"The order is {' < '.join(names)}{more}. d, ε and the band take the grades as classes without an order."
    ]
    if result.kappa_ceiling.estimate is not None:
        told.append(
            "A model's predictions follow the items and not their noise, so that no model's quadratic-weighted κ is "
            "above the root of that of two labels."
        )
    if result.adjacent is not None:
        told.append(
            f"Of the pairs of labels that differ {result.adjacent:.1%} are one step apart: a model that is off by one "
            "step errs as these labels do."
        )
    level = words.percent(result.audit.settings.level)
    rows = (
        ("highest quadratic-weighted κ of a model", result.kappa_ceiling),
        ("quadratic-weighted κ of two labels", result.weighted_kappa),
        ("steps between two labels of an item", result.distance),
    )
    estimates = SectionTable(
        head=("", "estimate", f"{level} interval"),
        rows=tuple(
            Row(values=(name, words.number(part.estimate), words.interval(part))) for name, part in rows
        ),
    )
    steps = SectionTable(
        head=("steps apart", "pairs of labels"),
        rows=tuple(
            Row(values=(words.integer(k), f"{share:.1%}"), share=share)
            for k, share in enumerate(result.steps)
            if share or k < 2
        ),
        picture="the share as a bar",
    )
    tables = (estimates, steps) if result.steps else ()
    return (
        Section(anchor="ordered", title="Ordered grades", sentences=tuple(told), tables=tables),
        *offset_sections(result.annotators, unit="steps"),
    )


def tags_sections(result: TagsAudit) -> tuple[Section, ...]:
    """What ``--kind tags`` adds to the report of the exact sets."""
    told = [
        "Here each tag is a question of its own: is it given or not? All else on this page takes the exact set as one "
        "class."
    ]
    if result.distance.estimate is not None:
        told.append(
            f"Two sets of an item are {with_limits(result.distance)} apart (Jaccard: 0 for equal sets, 1 for sets "
            "without a common tag)."
        )
    if result.left_out:
        told.append(f"{words.integer(result.left_out)} rarer tags are left out.")
    rows = tuple(
        Row(
            names=(part.tag,),
            values=(
                f"{part.share:.1%}", with_limits(part.disagreement), with_limits(part.flip_rate),
                f"{words.number(part.ceiling.lower)} to {words.number(part.ceiling.upper)}"
                if part.ceiling.lower is not None else "–",
            ),
            drawn=part.disagreement,
        )
        for part in result.tags
    )  # fmt: skip
    table = SectionTable(head=("tag", "given", "d", "flip rate ε", "ceiling"), rows=rows)
    return (Section(anchor="tags", title="Tag by tag", sentences=tuple(told), tables=(table,)),)


def _figure(name: str, part: Estimate) -> Figure:
    return Figure(name=name, value=unit_text(part.estimate), fine=_ends(part))


def _ends(part: Estimate, figures: int = 4) -> str:
    if part.low is None or part.high is None:
        return ""
    return f"{unit_text(part.low, figures)} to {unit_text(part.high, figures)}"


def _with_limits(part: Estimate) -> str:
    limits = _ends(part)
    return unit_text(part.estimate) + (f" ({limits})" if limits else "")
