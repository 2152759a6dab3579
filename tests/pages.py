"""What the tests of the reports read from a page: elements, attributes, text, and the data block."""

import json
from html.parser import HTMLParser

#: What a report is made of.
HTML_TAGS = {
    "html", "head", "meta", "title", "link", "style", "body", "a", "header", "p", "nav", "main", "section", "h1",
    "h2", "h3", "ol", "li", "dl", "div", "dt", "dd", "span", "figure", "figcaption", "svg", "rect", "line", "text",
    "circle", "table", "thead", "tbody", "tr", "th", "td", "article", "code", "details", "summary", "label", "input",
    "select", "option", "button", "script", "bdi", "b", "sub",
}  # fmt: skip


class Page(HTMLParser):
    """Elements, attributes and text of a document; the text of scripts and styles is kept apart."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.raw: list[tuple[str, dict[str, str], str]] = []
        self.comments: list[str] = []
        self._raw: tuple[str, dict[str, str]] | None = None
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag in ("script", "style"):
            self._raw = tag, {name: value or "" for name, value in attrs}
            self.raw.append((*self._raw, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th", "dt", "dd", "p", "li"):
            self.text += " "
        if tag in ("script", "style"):
            self._raw = None

    def handle_data(self, data: str) -> None:
        if self._raw is None:
            self.text += data
        else:
            self.raw[-1] = (*self._raw, self.raw[-1][2] + data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def values(self, name: str) -> list[str]:
        return [value for _, key, value in self.attributes if key == name]

    def data(self) -> dict[str, object]:
        (found,) = [
            content for tag, attributes, content in self.raw if attributes.get("type") == "application/json"
        ]
        loaded: dict[str, object] = json.loads(found)
        return loaded


def spaced(content: str) -> str:
    """``content`` with each run of white space as one space, as a browser shows it."""
    return " ".join(content.split())
