"""Finds JSON objects that hold a label in the text of a reply, and where exactly the label stands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["BrokenError", "Found", "TwiceError", "blanks", "objects", "whole_object"]

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.S)
_BARE = re.compile(r"[^\s,}\]]*")
_BLANK = re.compile(r"\s*")
_KEY = re.compile(r'"label"\s*:', re.I)
_BEGINS = re.compile(r'\{\s*"')


@dataclass(frozen=True, kw_only=True)
class Found:
    """A JSON object (or a bare label) in the content; ``start`` and ``end`` bound its raw label value.

    ``stop`` is where the object itself ends.
    """

    value: Mapping[str, Any]
    start: int
    end: int
    stop: int


class TwiceError(ValueError):
    """An object gives ``label`` twice with different values."""


class BrokenError(ValueError):
    """A JSON object begins and never ends well; what stands inside it is not the judge's own answer."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        name = key.strip().casefold()
        if name == "label" and found.get(name, value) != value:
            raise TwiceError
        found[name] = value
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, strict=False)


def _decode(text: str, at: int) -> tuple[Any, int] | None:
    """The JSON value that starts at ``at`` and where it ends, or None where there is none."""
    try:
        return _DECODER.raw_decode(text, at)
    except TwiceError:
        raise
    except (ValueError, RecursionError):
        return None


def whole_object(text: str, begin: int, end: int) -> Found | None:
    """The object that is all of ``text[begin:end]`` but blanks, or None."""
    at = begin + blanks(text, begin)
    if not text.startswith("{", at):
        return None
    decoded = _decode(text, at)
    if decoded is None or text[decoded[1] : end].strip():
        return None
    return _object(text, at, decoded)


def objects(text: str, start: int, end: int | None = None, *, strict: bool = True) -> Iterator[Found]:
    """All JSON objects with a label, outermost first, that stand in ``text[start:end]``.

    Raises BrokenError for an object that does not decode, and for a ``"label":`` outside of all objects: the
    judge may have quoted an item that holds a verdict of its own, and what is whole need not be the judge's.
    Without ``strict`` what is broken is passed over.
    """
    end = len(text) if end is None else end
    at, last = text.find("{", start, end), start
    while at >= 0:
        decoded = _decode(text, at)
        if decoded is None and strict and _BEGINS.match(text, at):
            raise BrokenError
        found = None if decoded is None else _object(text, at, decoded)
        if found is None:
            at = text.find("{", at + 1, end)
            continue
        if strict and _KEY.search(text, last, at):
            raise BrokenError
        yield found
        last = found.stop
        at = text.find("{", last, end)
    if strict and _KEY.search(text, last, end):
        raise BrokenError


def _object(text: str, at: int, decoded: tuple[Any, int]) -> Found | None:
    value, end = decoded
    if not isinstance(value, dict) or "label" not in value:
        return None
    span = _label_span(text, at, end)
    return Found(value=value, start=span[0], end=span[1], stop=end)


def _label_span(text: str, at: int, end: int) -> tuple[int, int]:
    """Bounds of the raw value of the object's own key ``label`` (inside the quotes, if it has quotes)."""
    depth, position = 0, at
    while position < end:
        character = text[position]
        if character == '"':
            match = _STRING.match(text, position)
            if match is None:
                break
            position = match.end()
            colon = position + blanks(text, position)
            named = depth == 1 and text.startswith(":", colon)
            if named and match.group()[1:-1].strip().casefold() == "label":
                begin = colon + 1 + blanks(text, colon + 1)
                string = _STRING.match(text, begin)
                if string is not None:
                    return begin + 1, string.end() - 1
                bare = _BARE.match(text, begin)
                return begin, bare.end() if bare else begin
            continue
        depth += (character in "{[") - (character in "}]")
        position += 1
    return at, at


def blanks(text: str, at: int) -> int:
    """How many blank characters stand in ``text`` from ``at`` on."""
    match = _BLANK.match(text, at)
    return match.end() - at if match else 0
