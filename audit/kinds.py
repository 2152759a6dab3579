"""Audits by the kind of the labels: classes, numbers, ordered grades, sets of tags."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from audit.duplicates import audit_duplicates
from audit.errors import ArgumentError
from audit.label_grades import OrdinalAudit, audit_ordinal
from audit.label_numbers import NumericAudit, audit_numeric
from audit.label_sets import TagsAudit, audit_tags
from audit.reading import HOW_TO_READ
from audit.results import AuditResult, Gate

__all__ = ["audit_kind", "with_gate"]

#: What an audit of numbers can be told.
_NUMERIC = frozenset(
    ("item", "label", "annotator", "missing", "normalise", "drop_copies", "level", *HOW_TO_READ)
)
#: What an audit of tags cannot be told, and why.
_NOT_TAGS = {
    ("label_columns", "counts"): "tags are read from one label column",
    ("errors", "strata"): "error rates are of classes, and sets of tags are too many classes",
    ("gold",): "a gold set may have its tags in another order",
    ("engine",): "sets of tags are put in order row by row, here",
}


def audit_kind(
    source: Any,
    *,
    kind: str | None,
    options: Mapping[str, Any],
    sep: str | None = None,
    empty_set: str | None = None,
    gated: bool = False,
) -> AuditResult | NumericAudit | OrdinalAudit | TagsAudit:
    """Audit labels of a kind.

    Parameters
    ----------
    kind:
        ``classes``, ``numeric``, ``ordinal`` or ``tags``; by default classes, or tags where ``sep`` is given.
    options:
        Options of :func:`audit.duplicates.audit_duplicates`. Those that the kind cannot use are refused unless they
        have their defaults.
    sep:
        What stands between two tags, by default ``|``.
    empty_set:
        A word for the set without tags, which an empty cell then is.
    gated:
        Whether a gate on the accuracy ceiling follows, which numbers do not have.

    Raises
    ------
    ArgumentError
        An option is not for this kind.
    """
    kind = kind or ("classes" if sep is None and empty_set is None else "tags")
    if sep is not None and kind != "tags":
        raise ArgumentError(f"--sep parts tags, and --kind is {kind}: leave one of them out")
    if empty_set is not None and kind != "tags":
        raise ArgumentError(f"--empty-set is of tags, and --kind is {kind}: leave one of them out")
    if kind == "numeric":
        _refuse(options, (name for name in options if name not in _NUMERIC), kind=kind)
        if gated:
            raise ArgumentError(
                "--fail-under is for the accuracy ceiling of classes, which numbers do not have: leave it out, and "
                "compare rmse_floor or r2_ceiling of --format json"
            )
        return audit_numeric(source, **{name: value for name, value in options.items() if name in _NUMERIC})
    if kind == "tags":
        for names, why in _NOT_TAGS.items():
            _refuse(options, names, kind=kind, why=why)
        return audit_tags(source, sep="|" if sep is None else sep, empty_set=empty_set, **options)
    if kind == "ordinal":
        return audit_ordinal(source, **options)
    return audit_duplicates(source, **options)


def with_gate(
    result: AuditResult | OrdinalAudit | TagsAudit, gate: Gate
) -> AuditResult | OrdinalAudit | TagsAudit:
    """The result with the gate that its ceiling was held against, which its JSON then has."""
    if isinstance(result, AuditResult):
        return replace(result, gate=gate)
    return replace(result, audit=replace(result.audit, gate=gate))


def _refuse(options: Mapping[str, Any], names: Iterable[str], *, kind: str, why: str = "") -> None:
    """Name every option among ``names`` that was given."""
    defaults = {name: part.default for name, part in inspect.signature(audit_duplicates).parameters.items()}
    defaults["engine"] = "duckdb"
    given = [
        f"--{'no-' if options[name] is False else ''}{name.removesuffix('_file').replace('_', '-')}"
        for name in names
        if options.get(name) not in (None, ()) and options[name] != defaults.get(name)
    ]
    if given:
        reason = f" ({why})" if why else ""
        raise ArgumentError(
            f"{' and '.join(given)} {'is' if len(given) == 1 else 'are'} not for --kind {kind}{reason}: leave "
            f"{'it' if len(given) == 1 else 'them'} out"
        )
