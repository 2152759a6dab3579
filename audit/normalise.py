r"""Normal forms of item texts, as DuckDB queries: when do two texts count as one item?

Four levels, each coarser than the one before, so that they make a ladder:

``none``
    the text as it is in the file;
``space``
    Unicode form NFC; every run of white space is one space, none at the ends; characters that show nothing (soft
    hyphen, zero-width space, word joiner, byte order mark, direction marks, NUL) are removed. White space is Unicode's
    White_Space property, so no-break spaces, tabs and line ends are among it. Zero-width joiners stay: they change
    how Persian, Indic scripts and emoji read;
``case``
    and in lower case, one character for one (Unicode's simple mapping; every sigma becomes the same one). ``ß`` and
    ``ss`` stay apart, as do the Turkish ``ı`` and ``i``; ``İ`` becomes ``i``. The default;
``punctuation``
    and apostrophes are removed, and every run of characters that are no letter, mark or digit is one space. A text
    of nothing but such characters keeps its ``case`` form, so that ``?`` and ``!!`` are not one item.

The cheap path: most texts are ASCII in regular spacing, which a few substring searches find out. Of the others one
search tells those that are fine but for their letters (``déjà vu``); only the rest is spaced and composed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["LEVELS", "is_blank", "normal_forms", "prefix_keys"]

#: The levels of normalisation, the finest first.
LEVELS = ("none", "space", "case", "punctuation")

_SPACES = r"\t\n\x0b\f\r\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
_INVISIBLE = r"\x00\x{ad}\x{200b}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2060}\x{2066}-\x{2069}\x{feff}"
_APOSTROPHES = "''’ʼ"

#: Characters that are neither of the two above and that no composition changes, nor their lower case: a text of
#: these is in NFC. A mark that follows one can be taken off again by strip_accents (so no Hangul here).
_CALM = (
    r"\x01-\x08\x0e-\x{84}\x{86}-\x{9f}\x{a1}-\x{ac}\x{ae}-\x{2ff}\x{400}-\x{482}"
    r"\x{2010}-\x{2027}\x{2030}-\x{205e}\x{20a0}-\x{20bf}"
    r"\x{3001}-\x{3029}\x{3041}-\x{3096}\x{30a1}-\x{30fa}\x{4e00}-\x{9fff}\x{ff01}-\x{ff5e}"
)


def normal_forms(source: str, texts: Sequence[str], level: str) -> str:
    """SELECT the column ``r`` of ``source`` and, as ``n0``, ``n1`` ..., the normal forms of its VARCHAR ``texts``.

    ``source`` is what may stand behind FROM, and so is what is returned; NULL becomes ``''``.
    """
    count = len(texts)
    query = _step(source, count, lambda k: f"coalesce({texts[k]}, '') AS n{k}")
    if level != "none":
        query = _step(query, count, lambda k: f"n{k}, {_irregular(f'n{k}')} OR ends_with(n{k}, ' ') AS o{k}")
        query = _step(query, count, lambda k: f"n{k}, {_wild(k, '| $')}")
        query = _folded(query, count, level)
    if level == "punctuation":
        query = _step(query, count, lambda k: f"coalesce(nullif({_words(f'n{k}')}, ''), n{k}) AS n{k}")
    return query


def is_blank(text: str) -> str:
    """SQL that is true where the VARCHAR ``text`` is NULL or shows nothing but white space."""
    return f"NOT regexp_matches(coalesce({text}, ''), '[^ {_SPACES}{_INVISIBLE}]')"


def prefix_keys(source: str, texts: Sequence[str], level: str, length: int) -> str:
    """SELECT ``r`` and, as ``h``, a 64-bit key that is equal wherever the normal forms of ``texts`` are.

    The key is the hash of the first ``length`` characters of each normal form, without a closing space and without
    accents on the last; texts that differ further on share it too. ``level`` is ``space`` or ``case``; the former
    serves ``none`` as well.

    Why the first characters of the text can stand for those of the normal form: if they are calm and in regular
    spacing, what follows can only put marks on the last of them, or make a space at the end a closing one.
    """
    count = len(texts)

    def start(k: int) -> str:
        return f"CASE WHEN w{k} THEN t{k} WHEN ends_with(n{k}, ' ') THEN left(n{k}, -1) ELSE n{k} END AS n{k}"

    def cut(k: int) -> str:
        return f"o{k}, CASE WHEN w{k} THEN rtrim(left(n{k}, {length}), ' ') ELSE n{k} END AS n{k}"

    def key(k: int) -> str:
        bare = f"left(n{k}, -1) || strip_accents(right(n{k}, 1))"
        return f"coalesce(CASE WHEN o{k} THEN {bare} ELSE n{k} END, '')"

    query = _step(source, count, lambda k: f"{texts[k]} AS t{k}, left({texts[k]}, {length}) AS n{k}")
    query = _step(query, count, lambda k: f"t{k}, n{k}, {_irregular(f'n{k}')} AS o{k}")
    query = _step(query, count, lambda k: f"t{k}, n{k}, o{k}, {_wild(k)}")
    query = _step(query, count, lambda k: f"o{k}, w{k}, {start(k)}")
    query = _step(_folded(query, count, level, keep="o{k}, "), count, cut)
    return f"(SELECT r, hash({', '.join(map(key, range(count)))}) AS h FROM {query})"


def _folded(query: str, count: int, level: str, keep: str = "") -> str:
    """Bring ``n0`` ... to the ``space`` or ``case`` form: where ``w0`` ... is true they are spaced and composed."""

    def change(k: int, text: str) -> str:
        return f"{keep.format(k=k)}w{k}, CASE WHEN w{k} THEN nfc_normalize({text}) ELSE n{k} END AS n{k}"

    query = _step(query, count, lambda k: change(k, _spaced(f"n{k}")))
    if level == "space":
        return query
    query = _step(query, count, lambda k: f"{keep.format(k=k)}w{k}, lower(n{k}) AS n{k}")
    return _step(query, count, lambda k: change(k, f"replace(n{k}, 'ς', 'σ')"))


def _irregular(text: str) -> str:
    """SQL that is true unless ``text`` is ASCII and all white space before its end is single inner spaces."""
    controls = " OR ".join(f"contains({text}, chr({code}))" for code in (0, 9, 10, 11, 12, 13))
    return f"strlen({text}) <> length({text}) OR contains({text}, '  ') OR {controls} OR starts_with({text}, ' ')"


def _wild(k: int, end: str = "") -> str:
    """SQL that is true where the irregular text ``n{k}`` must be spaced or composed anew; ``end`` adds a pattern."""
    return f"CASE WHEN o{k} THEN regexp_matches(n{k}, '[^{_CALM}]|  |^ {end}') ELSE false END AS w{k}"


def _spaced(text: str) -> str:
    """SQL for ``text`` in regular spacing; only the runs that are no single space are replaced."""
    seen = (
        f"strlen({text}) = length({text}) AND NOT contains({text}, chr(0))"  # of ASCII only NUL shows nothing
    )
    shown = f"CASE WHEN {seen} THEN {text} ELSE regexp_replace({text}, '[{_INVISIBLE}]+', '', 'g') END"
    return f"trim(regexp_replace({shown}, '[{_SPACES}][ {_SPACES}]*| [ {_SPACES}]+', ' ', 'g'))"


def _words(cased: str) -> str:
    """SQL for the letters, marks and digits of a ``case`` form; may be empty."""
    bare = f"regexp_replace({cased}, '[{_APOSTROPHES}]', '', 'g')"
    marks = r"'[^\p{L}\p{M}\p{N} ]+'"
    return f"trim(regexp_replace(regexp_replace({bare}, {marks}, ' ', 'g'), '  +', ' ', 'g'))"


def _step(source: str, count: int, expressions: Callable[[int], str]) -> str:
    """SELECT ``r`` and the expressions for each of the texts, as a source for the next step."""
    return f"(SELECT r, {', '.join(map(expressions, range(count)))} FROM {source})"
