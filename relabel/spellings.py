"""The declared labels as a judge may spell them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Protocol

__all__ = ["TRIM", "Named", "Spellings"]

TRIM = " \t\r\n\"'`*_.“”‘’«»"
"""What may stand around a label in a reply without changing it."""


class Named(Protocol):
    """A declared label: its name and its other spellings."""

    @property
    def name(self) -> str:
        """The label as it is written to files."""
        ...

    @property
    def synonyms(self) -> tuple[str, ...]:
        """Other spellings that stand for it."""
        ...


def _fold(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip().casefold()


class Spellings:
    """The declared labels and all spellings that stand for them (case and outer blanks do not count).

    ``forms`` is every folded spelling with its label, ``plain`` only the names.
    """

    def __init__(self, labels: Iterable[Named | str]) -> None:
        self.names: tuple[str, ...] = ()
        self.forms: dict[str, str] = {}
        named = [(label, ()) if isinstance(label, str) else (label.name, label.synonyms) for label in labels]
        self.names = tuple(name for name, _ in named)
        for name, _ in named:
            self.forms.setdefault(_fold(name), name)
        self.plain = dict(self.forms)
        for name, synonyms in named:
            for synonym in synonyms:
                self.forms.setdefault(_fold(synonym), name)
        self._exact = frozenset(self.names)

    def read(self, value: object) -> str | None:
        """The declared label that a JSON value spells, or None. ``1.0`` is the number 1; ``true`` is not."""
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, float) and value.is_integer():
            value = str(int(value))
        elif isinstance(value, int | float):
            value = str(value)
        if not isinstance(value, str):
            return None
        if value in self._exact:
            return value
        return self.forms.get(_fold(value)) or self.forms.get(_fold(value.strip(TRIM)))
