"""Measure labels before training on them: repeats, disagreement, flip rate, and the accuracy ceiling.

>>> from audit import audit_duplicates
>>> result = audit_duplicates("data.csv", item="text", label="label")  # doctest: +SKIP
>>> print(result.summary())  # doctest: +SKIP

Names are loaded on first use, so ``import audit`` is quick and loads no data library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from audit.agreement import estimate_agreement, krippendorff_alpha, retest_kappa
    from audit.ceiling import accuracy_without_noise, ceiling_band, check_gate, place_score
    from audit.disagreement import estimate_disagreement
    from audit.duplicates import audit_duplicates
    from audit.errors import ArgumentError, AuditError, ColumnError, InputError, MissingExtraError
    from audit.fliprate import disagreement_of, estimate_flip_rate, flip_rate, maximum_disagreement
    from audit.merging import merge_answers
    from audit.patterns import CountPatterns
    from audit.planning import pairs_needed, ranking_factor
    from audit.render_html import html
    from audit.render_markdown import markdown
    from audit.render_text import text
    from audit.results import AuditResult
    from audit.second_labels import draw_plan
    from audit.version import __version__

_HOMES = {
    "agreement": ("estimate_agreement", "krippendorff_alpha", "retest_kappa"),
    "ceiling": ("accuracy_without_noise", "ceiling_band", "check_gate", "place_score"),
    "disagreement": ("estimate_disagreement",),
    "duplicates": ("audit_duplicates",),
    "errors": ("ArgumentError", "AuditError", "ColumnError", "InputError", "MissingExtraError"),
    "fliprate": ("disagreement_of", "estimate_flip_rate", "flip_rate", "maximum_disagreement"),
    "merging": ("merge_answers",),
    "patterns": ("CountPatterns",),
    "planning": ("pairs_needed", "ranking_factor"),
    "render_html": ("html",),
    "render_markdown": ("markdown",),
    "render_text": ("text",),
    "results": ("AuditResult",),
    "second_labels": ("draw_plan",),
    "version": ("__version__",),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "ArgumentError",
    "AuditError",
    "AuditResult",
    "ColumnError",
    "CountPatterns",
    "InputError",
    "MissingExtraError",
    "__version__",
    "accuracy_without_noise",
    "audit_duplicates",
    "ceiling_band",
    "check_gate",
    "disagreement_of",
    "draw_plan",
    "estimate_agreement",
    "estimate_disagreement",
    "estimate_flip_rate",
    "flip_rate",
    "html",
    "krippendorff_alpha",
    "markdown",
    "maximum_disagreement",
    "merge_answers",
    "pairs_needed",
    "place_score",
    "ranking_factor",
    "retest_kappa",
    "text",
]


def __getattr__(name: str) -> Any:
    """Import the module behind a public name the first time the name is used."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'audit' has no attribute {name!r}")
    return getattr(importlib.import_module(f"audit.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
