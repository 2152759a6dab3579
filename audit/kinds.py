"""Audits by the kind of the labels: numbers, ordered grades, sets of tags."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from audit.duplicates import audit_duplicates
from audit.errors import ArgumentError
from audit.label_numbers import NumericAudit, audit_numeric
from audit.label_sets import OrdinalAudit, TagsAudit, audit_ordinal, audit_tags
from audit.reading import HOW_TO_READ

__all__ = ["audit_kind"]

#: What an audit of numbers can be told.
_NUMERIC = ("item", "label", "missing", "normalise", "drop_copies", "level")


def audit_kind(
    source: Any, *, kind: str, options: Mapping[str, Any], sep: str = "|"
) -> NumericAudit | OrdinalAudit | TagsAudit:
    """Audit labels of a kind.

    Parameters
    ----------
    kind:
        ``numeric``, ``ordinal`` or ``tags``.
    options:
        Options of :func:`audit.duplicates.audit_duplicates`. One that the kind does not know is refused unless it has
        its default.
    sep:
        What stands between two tags.
    """
    if kind == "ordinal":
        return audit_ordinal(source, **options)
    if kind == "tags":
        if options.get("label_columns") or options.get("counts"):
            raise ArgumentError("tags are read from one label column: leave --label-columns and --counts out")
        if options.get("engine") == "spark":
            raise ArgumentError("sets of tags are put in order row by row, here: leave --engine spark out")
        return audit_tags(source, sep=sep, **options)
    defaults = inspect.signature(audit_duplicates).parameters
    for name, value in options.items():
        if name not in (*_NUMERIC, *HOW_TO_READ) and value and value != defaults[name].default:
            option = name.removesuffix("_file").replace("_", "-")
            raise ArgumentError(f"--{option} is not known for numbers: leave it out")
    return audit_numeric(source, **{k: v for k, v in options.items() if k in (*_NUMERIC, *HOW_TO_READ)})
