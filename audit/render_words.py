"""Words and numbers that all report formats share: rounding, sentences, and text made safe to look at.

Labels, items and column names come from the audited file and may hold anything. :func:`visible` makes what
cannot be seen visible and takes the force out of direction marks and terminal controls; each format then
escapes the result for its own syntax.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from audit.results import Alarm, AuditResult, Comparison, Estimate

__all__ = [
    "CLASS_SENTENCE",
    "alarm_message",
    "column_title",
    "comparison_sentences",
    "data_sentence",
    "estimate_rows",
    "figures",
    "file_name",
    "integer",
    "interval",
    "missing_reasons",
    "number",
    "p_value",
    "percent",
    "places",
    "plain_name",
    "repeats_sentence",
    "settings_rows",
    "source_name",
    "visible",
]

_CONTROLS = (
    "NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "TAB", "LF", "VT", "FF", "CR", "SO", "SI",
    "DLE", "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB", "ESC", "FS", "GS", "RS", "US",
)  # fmt: skip
_NAMES = dict(enumerate(_CONTROLS)) | {
    0x7F: "DEL", 0x85: "NEL", 0xAD: "SHY", 0x61C: "ALM", 0x200B: "ZWSP", 0x200C: "ZWNJ", 0x200D: "ZWJ",
    0x200E: "LRM", 0x200F: "RLM", 0x2028: "LSEP", 0x2029: "PSEP", 0x202A: "LRE", 0x202B: "RLE", 0x202C: "PDF",
    0x202D: "LRO", 0x202E: "RLO", 0x2060: "WJ", 0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI",
    0xFEFF: "BOM",
}  # fmt: skip

# Controls, direction marks, invisible characters, lone surrogates and tags. Joiners stay after a letter that is
# not ASCII: scripts and emoji need them.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]|(?<![^\x00-\x7f])[\u200c\u200d]"
)


def visible(text: str, *, one_line: bool = False) -> str:
    """``text`` with every unseen character spelled out: ‹NUL›, ‹ESC›, ‹RLO›, ‹U+0090›; safe to encode as UTF-8.

    Tabs and line ends stay (CR LF as LF) unless ``one_line``: then they are shown as ‹TAB› and ↵.
    """
    text = _UNSEEN.sub(_spell, text.replace("\r\n", "\n"))
    return text.replace("\n", "↵").replace("\t", "‹TAB›") if one_line else text


def _spell(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"‹{_NAMES.get(code, f'U+{code:04X}')}›"


def places(result: AuditResult) -> int:
    """Decimals worth printing: 3, or more where the interval of d is narrower than 0.01."""
    d = result.disagreement
    if d.estimate is None or d.low is None or d.high is None:
        return 3
    width = d.high - d.low
    return 3 if width >= 0.01 else 4 if width >= 0.001 else 5


def number(value: float | None, digits: int = 3) -> str:
    """A proportion with a fixed number of decimals, a real minus sign, and – for none."""
    if value is None:
        return "–"
    return f"{value:.{digits}f}".replace("-", "−")


def interval(part: Estimate, digits: int = 3) -> str:
    """``0.158 to 0.213``, or nothing where there is no interval."""
    if part.low is None or part.high is None:
        return ""
    return f"{number(part.low, digits)} to {number(part.high, digits)}"


def integer(value: int) -> str:
    """A count with thousands separated: 6,221."""
    return f"{value:,}"


def percent(level: float) -> str:
    """A level as words have it: 0.95 becomes 95%."""
    return f"{level * 100:.10g}%"


def p_value(value: float | None) -> str:
    """``p = 0.034``, ``p < 0.001``, or nothing."""
    if value is None:
        return ""
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def plain_name(code: str) -> str:
    """A name of the JSON as words: ``by_row_id`` becomes ``by row id``."""
    return visible(code.replace("_", " "), one_line=True)


def file_name(source: str) -> str:
    """A file's name without its folders, or what stands for it."""
    return visible(re.split(r"[/\\]", source)[-1] or source, one_line=True)


def source_name(result: AuditResult) -> str:
    """The name of the audited file."""
    return file_name(result.data.source)


#: What d of one class means.
CLASS_SENTENCE = "d of one class is the chance that a second label differs when the first is of that class."


def column_title(name: str) -> str:
    """A key of ``by`` as a heading: a column of the file as it is, the pairs of annotators in words."""
    return "annotator pair" if name == "annotator_pair" else visible(name, one_line=True)


def data_sentence(result: AuditResult) -> str:
    """What was audited: the file, its rows, and the columns taken as item and label."""
    data = result.data
    item = ", ".join(name or "(empty)" for name in data.item) or "each row"
    label = ", ".join(data.label_columns) or data.label or "(empty)"
    missing = f" ({integer(data.missing_label)} without a label)" if data.missing_label else ""
    return (
        f"{source_name(result)}: {integer(data.rows)} rows{missing}; item: {item}; label: {label}; "
        f"{integer(len(data.classes))} classes."
    )


def repeats_sentence(result: AuditResult) -> str:
    """How many items are labelled more than once, and how many of them disagree."""
    data, found = result.data, result.repeats
    if found.items == 0:
        return f"None of {integer(data.items)} items ({integer(data.rows)} rows) has several labels."
    wide = f"{integer(found.rows)} labels in a file of {integer(data.rows)} rows"
    rows = wide if data.label_columns else f"{integer(found.rows)} of {integer(data.rows)} rows"
    return (
        f"{integer(found.items)} of {integer(data.items)} items have several labels: {rows}, {integer(found.pairs)} "
        f"pairs of labels; {integer(found.conflicts)} of these items disagree."
    )


def estimate_rows(result: AuditResult) -> tuple[tuple[str, Estimate], ...]:
    """The estimates that every report lists, with their names; coefficients that do not exist are left out."""
    d, rate, agreement = result.disagreement, result.flip_rate, result.agreement
    rows: list[tuple[str, Estimate]] = [
        ("disagreement d, each item once", d),
        ("disagreement, pair-weighted", Estimate(estimate=d.pair_weighted)),
        ("disagreement, row-weighted", Estimate(estimate=d.row_weighted)),
        (f"flip rate ε, {rate.classes} classes", rate),
    ]
    rival = rate.one_rival
    if rate.classes > 2 and rival.estimate is not None:
        part = Estimate(estimate=rival.estimate, low=rival.low, high=rival.high)
        rows.append(("flip rate ε, errors to one rival class", part))
    for name, part in (("retest κ", agreement.kappa), ("Krippendorff's α", agreement.alpha)):
        if part.estimate is not None:
            rows.append((name, part))
    return tuple(rows)


def missing_reasons(result: AuditResult, *, told: Iterable[str] = ()) -> tuple[str, ...]:
    """Why a number is not there, each reason once and none that ``told`` already says."""
    said = "\n".join(told).casefold()
    parts = (result.disagreement, result.flip_rate, result.ceiling, result.agreement)
    reasons = dict.fromkeys(part.reason.rstrip(".") for part in parts if part.reason)
    return tuple(reason for reason in reasons if reason.casefold() not in said)


def alarm_message(alarm: Alarm) -> str:
    """The message as a sentence without its code in front, for a format that prints the code itself."""
    head = f"{alarm.code}: "
    told = (
        alarm.message[len(head) :] if alarm.message.casefold().startswith(head.casefold()) else alarm.message
    )
    return told[:1].upper() + told[1:]


def comparison_sentences(comparison: Comparison, *, level: float, digits: int = 3) -> tuple[str, ...]:
    """The tests of one column in words: the same d for every value, and within values as across them."""
    out = []
    within, across = comparison.within, comparison.across
    many = f"{integer(comparison.items_across)} {'item has' if comparison.items_across == 1 else 'items have'} labels"
    alone = within is None or within.estimate is None
    if comparison.p_value is None and comparison.reason and alone and comparison.items_across:
        return (
            f"{comparison.reason[0].upper()}{comparison.reason[1:].rstrip('.')}; {many} under several values.",
        )
    if comparison.p_value is not None:
        verdict = (
            "d differs between the values" if comparison.p_value < 1.0 - level else "no sign that d differs"
        )
        out.append(f"Same d for every value? {p_value(comparison.p_value)}, {verdict} ({comparison.method}).")
    elif comparison.reason:
        out.append(f"Same d for every value? Not tested: {comparison.reason.rstrip('.')}.")
    if across is None or across.estimate is None:
        return tuple(out)
    if within is None or within.estimate is None:
        out.append(f"No two labels of an item share a value; {many} under several.")
        return tuple(out)
    shared, apart = (
        number(part.estimate, digits) + (f" ({limits})" if (limits := interval(part, digits)) else "")
        for part in (within, across)
    )
    test = p_value(comparison.contrast_p_value)
    out.append(
        f"d of two labels of one item is {shared} where they share the value and {apart} where they do not"
        f"{f' (no difference: {test})' if test else ''}; {many} under several values."
    )
    return tuple(out)


def settings_rows(result: AuditResult) -> tuple[tuple[str, str], ...]:
    """How the file was read and what a second run needs to give the same numbers."""
    data, settings = result.data, result.settings
    rows = [
        ("file", data.source),
        (
            "format",
            ", ".join(part for part in (data.format, data.encoding, _separator(data.delimiter)) if part),
        ),
        ("item", ", ".join(name or "(empty)" for name in data.item)),
        ("label", ", ".join(data.label_columns) or data.label or "–"),
        ("rows", integer(data.rows)),
        ("rows without a label", integer(data.missing_label)),
        ("rows without an item", integer(data.missing_item)),
        (
            "classes",
            _cut([f"{name} ({integer(n)})" for name, n in zip(data.classes, data.class_rows, strict=False)]),
        ),
        ("notes", "; ".join(data.notes)),
        ("level", percent(settings.level)),
        ("interval of d", result.disagreement.method),
        ("interval of ε", result.flip_rate.method),
        ("texts compared up to", settings.normalise),
        ("label spellings merged", "yes" if settings.merge_labels else "no"),
        ("copies dropped", "yes" if settings.drop_copies else "no"),
        ("labels kept", f"one per item and {settings.one_per}" if settings.one_per else ""),
        ("labels read as missing", ", ".join(settings.missing)),
        ("bootstrap draws, seed", f"{integer(settings.draws)}, {settings.seed}"),
        ("label-audit", settings.version),
    ]
    return tuple((name, visible(value, one_line=True)) for name, value in rows if value)


def _separator(delimiter: str | None) -> str:
    return f"separator {visible(delimiter, one_line=True)}" if delimiter else ""


def figures(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The figures of an alarm as names and readable values; long lists are cut after ten."""
    return tuple((plain_name(str(name)), _figure(value)) for name, value in values.items())


def _figure(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return integer(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return _cut([f"{visible(str(k), one_line=True)}: {_figure(v)}" for k, v in value.items()])
    if isinstance(value, (list, tuple)):
        return _cut([f"({_figure(v)})" if isinstance(v, (list, tuple)) else _figure(v) for v in value])
    return visible(str(value), one_line=True)


def _cut(parts: list[str]) -> str:
    return ", ".join(parts) if len(parts) <= 10 else f"{', '.join(parts[:10])} and {len(parts) - 10} more"
