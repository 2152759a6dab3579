"""One result in the form that is asked for."""

from __future__ import annotations

import json
from typing import Literal

from audit.results import AuditResult, Result

__all__ = ["render", "render_json"]


def render(result: AuditResult, form: Literal["text", "json", "markdown", "html"]) -> str:
    """The report of an audit as text for a terminal, as JSON (``docs/schema.json``), Markdown or one HTML file."""
    if form == "json":
        return render_json(result)
    if form == "markdown":
        from audit.render_markdown import markdown

        return markdown(result)
    if form == "html":
        from audit.render_html import html

        return html(result)
    from audit.render_text import text

    return text(result)


def render_json(result: Result) -> str:
    """Any result as JSON; text is not escaped to ASCII, and there is no NaN."""
    return json.dumps(result.to_dict(), ensure_ascii=False, indent=2, allow_nan=False)
