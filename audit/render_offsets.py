"""The part of a report about annotators who label higher or lower than the others."""

from __future__ import annotations

from audit import render_words as words
from audit.offsets import AnnotatorOffset, AnnotatorOffsets
from audit.render_page import Row, Section, SectionTable
from audit.results import Estimate
from audit.verdict_numbers import unit_text

__all__ = ["offset_sections"]


def offset_sections(found: AnnotatorOffsets | None, *, unit: str = "") -> tuple[Section, ...]:
    """The section on offsets, in ``unit`` (such as ``steps``, or those of the labels); none where nobody is named."""
    if found is None:
        return ()
    title, anchor = "Annotators against one another", "offsets"
    if found.reason is not None or not found.annotators:
        why = f"No offsets: {found.reason or 'no annotators'}."
        return (Section(anchor=anchor, title=title, sentences=(why,)),)
    told = [
        "An offset is how much higher an annotator labels than the others, each once, on the same items "
        f"(item + annotator + noise, by least squares over {words.integer(found.items)} items), in "
        f"{unit or 'the units of the labels'}. An offset that all share is invisible."
    ]
    if found.noise_sd.estimate is not None:
        share = (
            "" if found.share is None else f" {found.share:.1%} of the noise variance is between annotators."
        )
        told.append(
            f"σ is {_number(found.total_sd)} of these items, and {_number(found.noise_sd)} without the offsets.{share}"
        )
    if found.icc_agreement is not None and found.icc_consistency is not None:
        told.append(
            f"R² can reach {unit_text(found.icc_agreement, 3)} against any one annotator's labels (ICC(2,1)) and "
            f"{unit_text(found.icc_consistency, 3)} where the offsets are taken out or the model is told who labels "
            "(ICC(3,1))."
        )
    if found.apart:
        who = "annotator shares" if found.apart == 1 else "annotators share"
        told.append(f"{words.integer(found.apart)} {who} no items with these: left out.")
    table = SectionTable(
        head=("annotator", "labels", "items", "offset", "p (Holm)"),
        rows=tuple(_row(part) for part in found.annotators), reference=0.0,
        picture="the offset with its interval, and a dashed line at 0",
    )  # fmt: skip
    return (Section(anchor=anchor, title=title, sentences=tuple(told), tables=(table,)),)


def _row(part: AnnotatorOffset) -> Row:
    p = "–" if part.p_holm is None else f"{part.p_holm:.3f}" if part.p_holm >= 0.001 else "<0.001"
    cells = (words.integer(part.labels), words.integer(part.items), _number(part), p)
    return Row(names=(part.value,), values=cells, drawn=part)


def _number(part: Estimate) -> str:
    limits = "" if part.low is None else f" ({unit_text(part.low, 3)} to {unit_text(part.high, 3)})"
    return unit_text(part.estimate, 3) + limits
