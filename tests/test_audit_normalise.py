"""Normal forms in SQL against a second implementation in Python, and the keys that must never part equal items."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import combinations

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.normalise import LEVELS, is_blank, normal_forms, prefix_keys
from tests.naive_groups import INVISIBLE, SPACES, normal_form

# Letters with and without marks, marks alone, white space of all kinds, what shows nothing, and some of everything.
PIECES = st.one_of(
    st.sampled_from(
        [*"aAbB eE oO.,'!?-  ", *"éÉßẞİıſςσΣǰあがハ中한ᄒ각ㅏ\u1161\u11a8", *"\u0301\u0323\u030c\u0307\u3099"]
    ),
    st.sampled_from(
        [*SPACES, *INVISIBLE, "\u200d", "\u200c", "\u2019", "\x00", "\x1f", "👍", "“", "\u212a", "\u212b"]
    ),
    st.characters(exclude_categories=("Cs", "Cn")),
)
TEXTS = st.one_of(
    st.text(PIECES, max_size=12),
    st.text(st.sampled_from("ab cd"), max_size=40),
    st.tuples(st.text("xy ", min_size=14, max_size=17), st.text(PIECES, max_size=4)).map("".join),
)


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def forms(con: duckdb.DuckDBPyConnection, texts: Sequence[str | None], level: str) -> list[str]:
    con.register("texts", {"r": np.arange(len(texts)), "t": np.array(texts, dtype=object)})
    return [
        n
        for (n,) in con.execute(f"SELECT n0 FROM {normal_forms('texts', ['t'], level)} ORDER BY r").fetchall()
    ]


def keys(con: duckdb.DuckDBPyConnection, texts: Sequence[str | None], level: str, length: int) -> list[int]:
    con.register("texts", {"r": np.arange(len(texts)), "t": np.array(texts, dtype=object)})
    return [
        h
        for (h,) in con.execute(
            f"SELECT h FROM {prefix_keys('texts', ['t'], level, length)} ORDER BY r"
        ).fetchall()
    ]


@pytest.mark.parametrize("level", LEVELS)
@given(texts=st.lists(TEXTS, min_size=1, max_size=15))
def test_forms_are_as_defined(con: duckdb.DuckDBPyConnection, level: str, texts: list[str]) -> None:
    assert forms(con, texts, level) == [normal_form(text, level) for text in texts]


@settings(max_examples=40)
@given(texts=st.lists(TEXTS, min_size=1, max_size=8))
def test_each_level_is_coarser_and_stands_still(con: duckdb.DuckDBPyConnection, texts: list[str]) -> None:
    found = [forms(con, texts, level) for level in LEVELS]
    for finer, coarser in combinations(found, 2):
        for a, b in combinations(range(len(texts)), 2):
            assert finer[a] != finer[b] or coarser[a] == coarser[b]
    for level, form in zip(LEVELS[:3], found[:3], strict=True):
        assert forms(con, form, level) == form


def variants(text: str) -> list[str]:
    """Ways to write one item."""
    spaced = text.replace(" ", " \u3000\n")
    return [
        text, unicodedata.normalize("NFD", text), text.upper() if len(text.upper()) == len(text) else text,
        text.lower(), f"  {text}\t", spaced, "\u200b".join(text),
    ]  # fmt: skip


@pytest.mark.parametrize("level", ["space", "case"])
@pytest.mark.parametrize("length", [1, 16])
@given(texts=st.lists(TEXTS.map(variants), min_size=1, max_size=3))
def test_keys_never_part_equal_forms(
    con: duckdb.DuckDBPyConnection, level: str, length: int, texts: list[list[str]]
) -> None:
    flat = [variant for text in texts for variant in text]
    key: dict[str, int] = {}
    for form, found in zip(forms(con, flat, level), keys(con, flat, level, length), strict=True):
        assert key.setdefault(form, found) == found, repr(form)


def test_keys_tell_texts_apart(con: duckdb.DuckDBPyConnection) -> None:
    texts = [f"text {number:05d} and more" for number in range(1_000)]
    assert len(set(keys(con, texts, "case", 16))) == 1_000
    assert len(set(keys(con, texts, "case", 5))) == 1


def test_keys_of_several_columns_and_of_nothing(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE OR REPLACE TEMP TABLE pairs AS SELECT * FROM (VALUES (0, 'A', 'b'), (1, 'a ', 'B'), (2, 'ab', ''), "
        "(3, NULL, 'ab'), (4, ' ', 'ab'), (5, '', 'AB')) t(r, a, b)"
    )
    found = con.execute(f"SELECT h FROM {prefix_keys('pairs', ['a', 'b'], 'case', 16)} ORDER BY r").fetchall()
    assert found[0] == found[1]
    assert found[3] == found[4] == found[5]
    assert len(set(found)) == 3


@pytest.mark.parametrize(
    ("text", "level", "form"),
    [
        (None, "none", ""), (None, "case", ""),
        ("  a \t b\n", "none", "  a \t b\n"), ("  a \t b\n", "space", "a b"),
        ("a\xa0b", "space", "a b"), ("a\u3000\u2009b", "space", "a b"), ("a\u200bb\ufeff", "space", "ab"),
        ("so\xadft", "space", "soft"), ("\u200eabc\u200f", "space", "abc"),
        ("نمی\u200cخواهم", "space", "نمی\u200cخواهم"), ("👩\u200d👩\u200d👧", "case", "👩\u200d👩\u200d👧"),
        ("Cafe\u0301", "space", "Café"), ("CAFE\u0301", "case", "café"), ("J\u030c", "case", "ǰ"),
        ("STRASSE", "case", "strasse"), ("Straße", "case", "straße"), ("STRAẞE", "case", "straße"),
        ("İI", "case", "ii"), ("I\u0307", "case", "i"), ("ı", "case", "ı"),
        ("ΟΔΟΣ", "case", "οδοσ"), ("οδος", "case", "οδοσ"), ("é\0a", "case", "éa"), ("a\0 b\0", "space", "a b"),
        ("Don’t stop -- now!", "punctuation", "dont stop now"), ("3.5 %", "punctuation", "3 5"),
        ("?", "punctuation", "?"), ("!!", "punctuation", "!!"), ("(a)", "punctuation", "a"),
        ("हिन्दी।", "punctuation", "हिन्दी"),
    ],
)  # fmt: skip
def test_edges(con: duckdb.DuckDBPyConnection, text: str | None, level: str, form: str) -> None:
    assert forms(con, [text], level) == [form]


@given(text=st.text(st.sampled_from([*SPACES, *INVISIBLE, "x"]), max_size=4))
def test_blank(con: duckdb.DuckDBPyConnection, text: str) -> None:
    found = con.execute(f"SELECT {is_blank('?::VARCHAR')}, {is_blank('NULL::VARCHAR')}", [text]).fetchall()
    assert found == [("x" not in text, True)]


def test_every_character(con: duckdb.DuckDBPyConnection) -> None:
    """Each assigned character before a letter and before a mark: no table of Unicode is out of step."""
    letters = [
        chr(code) for code in range(1, 0x110000)
        if not 0xD800 <= code < 0xE000 and unicodedata.category(chr(code)) not in ("Cn", "Co")
    ]  # fmt: skip
    for pattern in ("{}b", "{}\u0301"):
        texts = [pattern.format(letter) for letter in letters]
        assert forms(con, texts, "punctuation") == [normal_form(text, "punctuation") for text in texts]
        key: dict[str, int] = {}
        for form, found in zip(forms(con, texts, "case"), keys(con, texts, "case", 1), strict=True):
            assert key.setdefault(form, found) == found, repr(form)
