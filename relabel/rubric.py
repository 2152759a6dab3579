"""The rubric: a Markdown file whose front matter names the labels and whose prose the judge reads.

::

    ---
    name: spam
    version: "2"
    inputs: [text]
    default_label: ham
    labels:
      - name: spam
        meaning: unwanted bulk mail
        synonyms: [junk]
      - name: ham
        meaning: anything else
    ---
    C1. Mail that the reader asked for is ham.
    C2. ...

Every value of the front matter is read as a string: ``1``, ``yes`` and ``1.10`` stay what was written.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from audit.errors import ColumnError, InputError

__all__ = ["Clause", "Label", "Problem", "Rubric", "Segment"]

_KEYS = ("name", "version", "labels", "default_label", "inputs")
_UNSEEN = frozenset(
    map(chr, (0x34F, 0x115F, 0x1160, 0x3164, 0xFFA0, *range(0xFE00, 0xFE10)))
)  # not all are Cf
_CLAUSE = re.compile(
    r"^[ \t]*(?:[-*+>][ \t]+|#{1,6}[ \t]+)?\**\[?(C\d+)\]?\**[ \t]*[.:)\u2013\u2014-]\**[ \t]+", re.M
)
_BREAK = re.compile(r"\n[ \t]*\n|\n(?=#{1,6}[ \t])")


class _Loader(yaml.BaseLoader):
    """Strings only, and a key given twice is an error rather than the last one winning."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} is given twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


@dataclass(frozen=True, kw_only=True)
class Label:
    """One declared label: its name as written to files, what it means, other spellings a judge may use."""

    name: str
    meaning: str = ""
    synonyms: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Clause:
    """One numbered clause of the prose (``C3. ...``), the unit a judge cites."""

    id: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A stretch of the prose: a clause, or (``clause`` is None) the text between clauses."""

    text: str
    clause: str | None = None


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Something wrong with a rubric; a fatal one keeps it from being used."""

    message: str
    fatal: bool = True

    def to_dict(self) -> dict[str, Any]:
        """The problem as JSON prints it."""
        return {"message": self.message, "fatal": self.fatal}


@dataclass(frozen=True, kw_only=True)
class Rubric:
    """A parsed rubric. ``hash`` is the SHA-256 (hex) of the file with every line end as one newline."""

    name: str
    version: str
    labels: tuple[Label, ...]
    default_label: str | None
    input_columns: tuple[str, ...]
    text: str
    hash: str
    segments: tuple[Segment, ...] = field(repr=False)
    extra_keys: tuple[str, ...] = ()

    @classmethod
    def load(cls, path: str | Path) -> Rubric:
        """Read a rubric file (UTF-8). Raises InputError naming the file, the place and the fix."""
        try:
            raw = Path(path).read_bytes()
        except OSError as error:
            raise InputError(f"cannot read the rubric {path}: {error.strerror}; check the path") from error
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not UTF-8 (byte {error.start}); save the rubric as UTF-8") from error
        return cls.parse(text, source=str(path))

    @classmethod
    def parse(cls, text: str, *, source: str = "rubric") -> Rubric:
        """Parse the text of a rubric; ``source`` names it in errors."""
        text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        meta, prose = _split(text, source)
        labels = _labels(meta.get("labels"), source)
        inputs = meta.get("inputs", [])
        inputs = [inputs] if isinstance(inputs, str) and inputs else inputs or []
        if not isinstance(inputs, list) or not all(isinstance(column, str) for column in inputs):
            raise InputError(f"{source}: inputs must be a list of column names, as in inputs: [text]")
        for key in ("name", "version", "default_label"):
            if not isinstance(meta.get(key, ""), str):
                raise InputError(f"{source}: {key} must be one value, not a list or a mapping")
        return cls(
            name=meta.get("name", "").strip(),
            version=meta.get("version", "").strip(),
            labels=labels,
            default_label=meta.get("default_label", "").strip() or None,
            input_columns=tuple(inputs),
            text=prose.strip(),
            hash=hashlib.sha256(text.encode()).hexdigest(),
            segments=_segments(prose.strip()),
            extra_keys=tuple(key for key in meta if key not in _KEYS),
        )

    def __hash__(self) -> int:
        return hash(self.hash)  # equal rubrics have equal texts; the generated one would walk all of them

    @property
    def label_names(self) -> tuple[str, ...]:
        """The declared labels, in the order of the file."""
        return tuple(label.name for label in self.labels)

    @property
    def clauses(self) -> tuple[Clause, ...]:
        """The numbered clauses of the prose, in the order of the file."""
        return tuple(Clause(id=part.clause, text=part.text.strip()) for part in self.segments if part.clause)

    @cached_property
    def _spellings(self) -> Mapping[str, str]:
        table: dict[str, str] = {}
        for label in self.labels:
            for spelling in (label.name, *label.synonyms):
                table.setdefault(_fold(spelling), label.name)
        return table

    def canonical(self, label: str) -> str | None:
        """The declared label that ``label`` spells (by name or synonym, case apart), or None."""
        return self._spellings.get(_fold(label))

    def inputs(self, columns: Sequence[str], *, source: str = "the data") -> tuple[str, ...]:
        """The rubric's input columns as found among ``columns`` of ``source``; ColumnError where one is missing."""
        if not self.input_columns:
            raise ColumnError("the rubric names no input columns; add inputs: [text] to its front matter")
        for wanted in self.input_columns:
            if wanted not in columns:
                close = difflib.get_close_matches(wanted.lower(), [c.lower() for c in columns], n=1)
                hint = next((c for c in columns if close and c.lower() == close[0]), None)
                fix = f"did the rubric mean {hint!r}?" if hint else f"the columns are {', '.join(columns)}"
                raise ColumnError(f"the rubric reads column {wanted!r}, which {source} does not have; {fix}")
        return self.input_columns

    def check(self) -> tuple[Problem, ...]:
        """All that is wrong with the rubric; empty when nothing is."""
        return tuple(_problems(self))


def _fold(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip().casefold()


def _split(text: str, source: str) -> tuple[dict[str, Any], str]:
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        raise InputError(f"{source}: no front matter; the first line must be --- (see docs/relabel.md)")
    end = next((n for n, line in enumerate(lines[1:], start=1) if line.rstrip() == "---"), None)
    if end is None:
        raise InputError(f"{source}: the front matter is not closed; end it with a line ---")
    try:
        meta = yaml.load("\n".join(lines[1:end]), Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" on line {mark.line + 2}" if mark else ""
        reason = " ".join(str(getattr(error, "problem", None) or error).split())
        raise InputError(f"{source}: the front matter is not valid YAML{place}: {reason}") from error
    if not isinstance(meta, dict):
        raise InputError(f"{source}: the front matter must hold key: value lines ({', '.join(_KEYS)})")
    return meta, "\n".join(lines[end + 1 :])


def _labels(value: Any, source: str) -> tuple[Label, ...]:
    """Labels as a list of names, a list of mappings, or one mapping name: meaning."""
    if isinstance(value, dict):
        value = [{"name": name, "meaning": meaning} for name, meaning in value.items()]
    if not isinstance(value, list):
        raise InputError(f"{source}: labels must list the labels, each with name: and meaning:")
    labels = []
    for number, entry in enumerate(value, start=1):
        entry = {"name": entry} if isinstance(entry, str) else entry
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise InputError(f"{source}: label {number} has no name; write - name: ... and meaning: ...")
        unknown = [key for key in entry if key not in ("name", "meaning", "synonyms")]
        if unknown:
            place = f"{source}: label {entry['name']!r}"
            raise InputError(f"{place} has an unknown key {unknown[0]!r}; use name, meaning, synonyms")
        synonyms = entry.get("synonyms", [])
        synonyms = [synonyms] if isinstance(synonyms, str) and synonyms else synonyms or []
        if not isinstance(synonyms, list) or not all(isinstance(s, str) for s in synonyms):
            raise InputError(f"{source}: the synonyms of label {entry['name']!r} must be a list of words")
        meaning = entry.get("meaning", "")
        if not isinstance(meaning, str):
            raise InputError(
                f"{source}: the meaning of label {entry['name']!r} must be text; put it in quotes"
            )
        labels.append(
            Label(
                name=entry["name"].strip(),
                meaning=" ".join(meaning.split()),
                synonyms=tuple(s.strip() for s in synonyms),
            )
        )
    return tuple(labels)


def _segments(prose: str) -> tuple[Segment, ...]:
    """Cut the prose into clauses and what stands between; joined they give the prose back."""
    starts = [(match.start(), match.group(1)) for match in _CLAUSE.finditer(prose)]
    parts: list[Segment] = []
    at = 0
    for number, (start, name) in enumerate(starts):
        limit = starts[number + 1][0] if number + 1 < len(starts) else len(prose)
        gap = _BREAK.search(prose, start, limit)
        end = gap.start() if gap else limit
        if start > at:
            parts.append(Segment(text=prose[at:start]))
        body = prose[start:end].rstrip("\n")
        parts.append(Segment(text=body, clause=name))
        at = start + len(body)
    if at < len(prose):
        parts.append(Segment(text=prose[at:]))
    return tuple(parts)


def _twice(values: Iterable[str]) -> list[str]:
    values = list(values)
    return sorted({value for value in values if values.count(value) > 1})


def _problems(rubric: Rubric) -> Iterable[Problem]:
    names = rubric.label_names
    if len(names) < 2:
        yield Problem(message="fewer than two labels; list every label under labels:")
    if not all(names):
        yield Problem(message="a label has an empty name; give it one")
    owners: dict[str, str] = {}
    for label in rubric.labels:
        for spelling in (label.name, *label.synonyms):
            owner = owners.setdefault(_fold(spelling), label.name)
            if owner != label.name:
                yield Problem(message=f"{spelling!r} stands for both {owner!r} and {label.name!r}; keep one")
        if not label.meaning:
            yield _advice(f"label {label.name!r} has no meaning; say in a few words what it stands for")
    for name in _twice(names):
        yield Problem(message=f"label {name!r} is listed twice; keep one")
    yield from _unseen(rubric.labels)
    if not rubric.input_columns:
        yield Problem(message="no input columns; add a line such as inputs: [text]")
    for column in _twice(rubric.input_columns):
        yield Problem(message=f"input column {column!r} is listed twice; keep one")
    if not rubric.name:
        yield _advice("no name; add a line name: ...")
    if not rubric.version:
        yield Problem(message='no version; add a line version: "1" so that labels can be traced to it')
    default = rubric.default_label
    if default is None:
        yield _advice("no default_label: say which label holds when no clause decides")
    elif default not in names:
        yield Problem(message=f"default_label {default!r} is not one of the labels {', '.join(names)}")
    if not rubric.text:
        yield Problem(message="no prose after the front matter: the judge has nothing to judge by")
    ids = [clause.id for clause in rubric.clauses]
    for name in _twice(ids):
        yield Problem(message=f"clause {name} is numbered twice; give each its own number")
    if rubric.text and not ids:
        yield _advice("no numbered clauses (C1. ...): the judge cannot cite what decided")
    for key in rubric.extra_keys:
        yield _advice(f"unknown key {key!r} in the front matter; known are {', '.join(_KEYS)}")


def _unseen(labels: Iterable[Label]) -> Iterable[Problem]:
    """Advice about spellings with line ends, or with characters that nobody sees."""
    owners: dict[str, str] = {}
    for label in labels:
        for spelling in (label.name, *label.synonyms):
            kinds = {"unseen" if c in _UNSEEN else unicodedata.category(c) for c in spelling}
            plain = "".join(
                c for c in spelling if c not in _UNSEEN and unicodedata.category(c) not in ("Cf", "Cc")
            )
            owner = owners.setdefault(
                _fold(unicodedata.normalize("NFKC", " ".join(plain.split()))), label.name
            )
            if owner != label.name:
                yield _advice(f"{spelling!a} and label {owner!a} look the same; give one another name")
            elif kinds & {"Cc", "Zl", "Zp"}:
                yield _advice(f"{spelling!a} holds a line end or a tab; write it on one line")
            elif kinds & {"Cf", "unseen"}:
                yield _advice(f"{spelling!a} holds characters that nobody sees; leave them out")


def _advice(message: str) -> Problem:
    return Problem(message=message, fatal=False)
