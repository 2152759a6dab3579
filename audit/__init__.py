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
    from audit.asymmetric import identified_set
    from audit.ceiling import accuracy_without_noise, ceiling_band, check_gate, place_score
    from audit.dawid_skene import AnnotatorVotes, annotator_errors, fit_dawid_skene
    from audit.disagreement import estimate_disagreement
    from audit.duplicates import audit_duplicates
    from audit.errors import ArgumentError, AuditError, ColumnError, InputError, MissingExtraError
    from audit.fliprate import disagreement_of, estimate_flip_rate, flip_rate, maximum_disagreement
    from audit.latent import latent_classes
    from audit.merging import merge_answers
    from audit.metric_limits import bound_metrics, correct_score
    from audit.moments import moment_bounds
    from audit.patterns import CountPatterns
    from audit.placing_metrics import place_metric
    from audit.planning import pairs_needed, ranking_factor
    from audit.render_html import html
    from audit.render_markdown import markdown
    from audit.render_text import text
    from audit.results import AuditResult
    from audit.second_labels import draw_plan
    from audit.version import __version__

_HOMES = {
    "agreement": ("estimate_agreement", "krippendorff_alpha", "retest_kappa"),
    "asymmetric": ("identified_set",),
    "ceiling": ("accuracy_without_noise", "ceiling_band", "check_gate", "place_score"),
    "dawid_skene": ("AnnotatorVotes", "annotator_errors", "fit_dawid_skene"),
    "disagreement": ("estimate_disagreement",),
    "duplicates": ("audit_duplicates",),
    "errors": ("ArgumentError", "AuditError", "ColumnError", "InputError", "MissingExtraError"),
    "fliprate": ("disagreement_of", "estimate_flip_rate", "flip_rate", "maximum_disagreement"),
    "latent": ("latent_classes",),
    "merging": ("merge_answers",),
    "metric_limits": ("bound_metrics", "correct_score"),
    "moments": ("moment_bounds",),
    "patterns": ("CountPatterns",),
    "placing_metrics": ("place_metric",),
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
    "AnnotatorVotes",
    "ArgumentError",
    "AuditError",
    "AuditResult",
    "ColumnError",
    "CountPatterns",
    "InputError",
    "MissingExtraError",
    "__version__",
    "accuracy_without_noise",
    "annotator_errors",
    "audit_duplicates",
    "bound_metrics",
    "ceiling_band",
    "check_gate",
    "correct_score",
    "disagreement_of",
    "draw_plan",
    "estimate_agreement",
    "estimate_disagreement",
    "estimate_flip_rate",
    "fit_dawid_skene",
    "flip_rate",
    "html",
    "identified_set",
    "krippendorff_alpha",
    "latent_classes",
    "markdown",
    "maximum_disagreement",
    "merge_answers",
    "moment_bounds",
    "pairs_needed",
    "place_metric",
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
