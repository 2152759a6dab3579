"""One result in the form that is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from audit.comparing import FileComparison
from audit.errors import ArgumentError
from audit.issues_results import Issues
from audit.label_grades import OrdinalAudit
from audit.label_numbers import NumericAudit
from audit.label_sets import TagsAudit
from audit.leakage import Leak
from audit.render_files import comparison_page
from audit.render_issues import issues_page
from audit.render_kinds import numeric_page, ordinal_sections, tags_sections
from audit.render_leak import leak_page
from audit.render_page import Page, Section
from audit.results import AuditResult, Result

__all__ = ["Form", "render", "render_json"]

Form = Literal["text", "json", "markdown", "html"]

#: Results that have a page of their own.
_PAGES: Mapping[type[Result], Callable[[Any], Page]] = {
    FileComparison: comparison_page,
    Issues: issues_page,
    Leak: leak_page,
    NumericAudit: numeric_page,
}
#: Results that add sections to the report of the audit in them.
_SECTIONS: Mapping[type[Result], Callable[[Any], Sequence[Section]]] = {
    OrdinalAudit: ordinal_sections,
    TagsAudit: tags_sections,
}


def render(result: Any, form: Form) -> str:
    """A result as text for a terminal, as JSON, Markdown or one HTML file that asks for nothing from elsewhere.

    ``result`` is what :func:`audit.audit_duplicates`, ``audit_numeric``, ``audit_ordinal``, ``audit_tags``,
    ``find_issues``, ``compare_files`` or ``find_leaks`` gives; any other with ``summary()`` and ``to_dict()`` has
    the first two forms, and an ArgumentError tells so of the others.
    """
    if form == "json":
        return render_json(result)
    if isinstance(result, AuditResult):
        return _audit(result, (), form)
    if type(result) in _SECTIONS:
        return _audit(result.audit, _SECTIONS[type(result)](result), form)
    if form == "text" and not isinstance(result, NumericAudit):
        return str(result.summary())
    if type(result) not in _PAGES:
        raise ArgumentError(f"a {type(result).__name__} has no report as {form}: ask for text or json")
    page = _PAGES[type(result)](result)
    if form == "text":
        from audit.render_text import page_text

        return page_text(page)
    if form == "markdown":
        from audit.render_markdown import page_markdown

        return page_markdown(page)
    from audit.render_html import page_html

    return page_html(page)


def render_json(result: Result) -> str:
    """Any result as JSON (an audit's is described by ``docs/schema.json``); no escapes to ASCII, and no NaN."""
    return json.dumps(result.to_dict(), ensure_ascii=False, indent=2, allow_nan=False)


def _audit(result: AuditResult, more: Sequence[Section], form: Form) -> str:
    if form == "markdown":
        from audit.render_markdown import markdown

        return markdown(result, more=more)
    if form == "html":
        from audit.render_html import html

        return html(result, more=more)
    from audit.render_text import text

    return text(result, more=more)
