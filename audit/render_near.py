"""Near-duplicates in every form of the report: d by similarity, and pairs to look at."""

from __future__ import annotations

from collections.abc import Iterator

from audit import render_words as words
from audit.render_page import Quote, Row, Section, SectionTable, with_limits
from audit.results import AuditResult
from audit.results_near import NearDuplicates, NearPair

__all__ = ["near_sections"]

#: Characters of a text that are shown, and those of them before the place where the two texts part.
_SHOWN, _BEFORE = 200, 60


def near_sections(result: AuditResult) -> tuple[Section, ...]:
    """A section for --near and one for --semantic, as far as they were asked for."""
    return tuple(_section(near) for near in (result.near, result.semantic) if near is not None)


def _section(near: NearDuplicates) -> Section:
    cosine = near.measure == "cosine"
    head = ("similarity", "pairs", *(("also near",) if cosine else ()), "clusters", "d")
    return Section(
        anchor="semantic" if cosine else "near",
        title="Near-duplicates by their words" if cosine else "Near-duplicates",
        sentences=tuple(_sentences(near)),
        tables=(SectionTable(head=head, rows=tuple(_rows(near, cosine))),),
        quotes=tuple(map(_quote, near.examples)),
    )


def _sentences(near: NearDuplicates) -> Iterator[str]:
    yield (
        f"{words.integer(near.pairs)} pairs of {words.integer(near.texts_in_pairs)} texts are alike at "
        f"{near.threshold:g} or more, of {words.integer(near.texts)} different texts."
    )
    yield near.meaning
    yield f"{near.verdict} {near.hypothesis}".strip()
    if near.sampled:
        yield "Groups of hundreds of near-equal texts were paired in part."
    if near.examples:
        yield "Below are the pairs whose labels differ most, the most alike first; --near-rows FILE writes all pairs."


def _rows(near: NearDuplicates, cosine: bool) -> Iterator[Row]:
    for part in near.bins:
        told = with_limits(part.disagreement) if part.clusters else "-"
        also = () if part.also_near is None else (words.integer(part.also_near),)
        values = (near.class_name(part), words.integer(part.pairs), *also, words.integer(part.clusters), told)
        yield Row(values=values, drawn=part.disagreement)
    blank = ("",) * (3 if cosine else 2)
    yield Row(values=("equal", *blank, with_limits(near.exact)), drawn=near.exact)


def _quote(pair: NearPair) -> Quote:
    texts = _clipped(*pair.texts)
    return Quote(
        head=f"similarity {pair.similarity:.3f}",
        parts=tuple((", ".join(labels), text) for labels, text in zip(pair.labels, texts, strict=True)),
    )


def _clipped(first: str, second: str) -> tuple[str, str]:
    """Both texts cut to where they part, so that the difference is seen."""
    if max(len(first), len(second)) <= _SHOWN:
        return first, second
    alike = next(
        (k for k, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )
    start = max(0, alike - _BEFORE) if alike > _SHOWN - _BEFORE else 0

    def cut(text: str) -> str:
        end = "…" if len(text) > start + _SHOWN else ""
        return f"{'…' if start else ''}{text[start : start + _SHOWN]}{end}"

    return cut(first), cut(second)
