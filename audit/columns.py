"""Which column is the item and which the label: as named, or guessed with the reason, or asked for."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audit.errors import ArgumentError, ColumnError
from audit.reading import Table

__all__ = ["ROLES", "ChosenColumns", "check_columns", "check_roles", "guess", "guess_item", "no_column"]


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Names are compared without case, spaces, hyphens and underscores; the first tier of a role goes before the second.
_ITEM = (
    _names(
        "text passage sentence comment content prompt question document doc utterance review tweet message body "
        "abstract headline title paragraph snippet statement query instruction input post item"
    ),
    _names(
        "itemid textid documentid docid taskid questionid exampleid sampleid promptid task example sample id "
        "patient image url"
    ),
)
_LABEL = (
    _names("label labels annotation labelled labeled"),
    _names(
        "class target y category gold answer rating grade vote verdict sentiment tag code score judgment judgement "
        "decision preference tags classes categories topics stars ratings grades scores"
    ),
)
_OTHERS = {
    "annotator": _names(
        "annotator annotatorid worker workerid rater raterid coder coderid labeler labeller judge observer evaluator "
        "reviewer annotatedby labeledby user userid"
    ),
    "split": _names("split subset fold partition sampleset dataset set"),
    "row_id": _names("rowid recordid id index uuid guid key responseid annotationid"),
    "time": _names("time timestamp date datetime createdat annotatedat submittedat labeledat updatedat"),
}
#: Options of an audit that name columns, beside those of the item and the label.
ROLES = ("row_id", "annotator", "time", "split", "by", "one_per", "strata", "gold")
_GUESSED = (
    "--item",
    "--label",
    "--label-after",
    "--label-test",
)  # options whose column may be proposed by its looks
_BY_NAME = ", for its name"
_MOST_CLASSES = 30
_LONG_TEXT = 20


@dataclass(frozen=True, kw_only=True)
class ChosenColumns:
    """The columns to audit.

    ``item`` is empty where each row is an item (wide form), ``label`` is None there. The others are columns whose
    names say so, for a hint only. ``reasons`` tell in words what was guessed, and why.
    """

    item: tuple[str, ...]
    label: str | None
    annotator: str | None = None
    split: str | None = None
    row_id: str | None = None
    time: str | None = None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Column:
    """What a sample of a column holds: ``length`` is the mean number of characters of its cells."""

    name: str
    filled: int
    distinct: int
    length: float


def guess(
    table: Table,
    *,
    item: Sequence[str] = (),
    label: str | None = None,
    label_columns: Sequence[str] = (),
    counts: Sequence[str] = (),
) -> ChosenColumns:
    """Return the item and label columns: those given, once they are known to exist, else a guess.

    A guess goes by names first (``text``, ``sentence``, ``label``, ``class``, ...), then by what the first rows hold:
    the one column of long texts, the one column of few values. ``label_columns`` and ``counts`` are the wide form,
    in which nothing is guessed.

    Raises
    ------
    ColumnError
        A named column does not exist, or more than one column (or none) can be meant.
    ArgumentError
        Options contradict each other.
    """
    wide = (*label_columns, *counts)
    if label is not None and wide:
        raise ArgumentError(
            "--label is for one label a row, --label-columns and --counts for several; give one"
        )
    if label_columns and counts:
        raise ArgumentError("--label-columns holds votes and --counts numbers of votes; give one")
    check_columns(table, item, option="--item")
    check_columns(table, [label] if label is not None else [], option="--label")
    check_columns(table, label_columns, option="--label-columns")
    check_columns(table, counts, option="--counts")
    if label is not None and label in item:
        raise ArgumentError(f"column {label!r} is both item and label; name two columns")
    chosen, reasons, guessed = tuple(item), [], False
    if not wide and not (item and label):
        sample = _look(table)
        if label is None:
            label, reason = _guess_label(table, [c for c in sample if c.name not in item], bool(item))
            reasons.append(reason)
            guessed = not reason.endswith(_BY_NAME)
        if not item:
            name, reason = _guess_item(table, [c for c in sample if c.name != label])
            chosen = (name,)
            reasons.insert(0, reason)
        if guessed and (more := _others(sample, (*chosen, label))):
            reasons.append(f"--label may also mean {', '.join(more)}, whose values repeat")
    rest = [c for c in table.columns if c not in (*chosen, label, *wide)]
    hints = {role: _first(rest, names) for role, names in _OTHERS.items()}
    if hints["row_id"] is not None and label is not None and _tells_items(table, hints["row_id"], label):
        hints["row_id"] = None
    return ChosenColumns(item=chosen, label=label, reasons=tuple(reasons), **hints)


def guess_item(table: Table) -> tuple[str, str]:
    """The item column alone, and the reason; a column that would be guessed for the label is none.

    Raises
    ------
    ColumnError
        More than one column (or none) can be meant.
    """
    label = _suggest(table, "--label")
    return _guess_item(table, [c for c in _look(table) if c.name != label])


def check_columns(table: Table, names: Iterable[str], *, option: str) -> None:
    """Raise a ColumnError that says what there is, and what may be meant, unless the table has all ``names``."""
    for name in names:
        if name in table.columns:
            continue
        guessed = _suggest(table, option) if option in _GUESSED else None
        raise no_column(
            name, source=table.report.source, columns=table.columns, option=option, guessed=guessed
        )


def check_roles(table: Table, **named: Any) -> None:
    """Raise a ColumnError unless the table has each column that an option of `ROLES` names; gold may be a file."""
    for role, value in named.items():
        option = "--" + role.replace("_", "-")
        names = [value] if isinstance(value, str) else list(value or ())
        if role == "gold" and names and names[0] not in table.columns and not Path(names[0]).is_file():
            there: dict[str, Any] = {"source": table.report.source, "columns": table.columns}
            raise no_column(names[0], **there, option=option, nor=" and no such file")
        if role != "gold":
            check_columns(table, names, option=option)


def no_column(
    name: str,
    *,
    source: str,
    columns: Sequence[str],
    option: str,
    guessed: str | None = None,
    nor: str = "",
) -> ColumnError:
    """The error that ``source`` has no column ``name``: what there is, and what may be meant.

    ``option`` is who named it, ``guessed`` the column to propose where none has a name that is close, and ``nor``
    what else the name might have been.
    """
    close = _closest(name, columns) or guessed
    there = ", ".join(columns[:30]) + (", ..." if len(columns) > 30 else "")
    hint = f"; did you mean {option} {close}?" if close else ""
    return ColumnError(f"{source}: there is no column {name!r}{nor} ({option}); there are {there}{hint}")


def _closest(name: str, columns: Sequence[str]) -> str | None:
    plain = {_plain(column): column for column in reversed(columns)}
    found = difflib.get_close_matches(_plain(name), plain, n=1, cutoff=0.7)
    return plain[found[0]] if found else None


def _suggest(table: Table, option: str) -> str | None:
    """The column that would be guessed for an option, if one would."""
    sample = _look(table)
    try:
        label = _guess_label(table, sample, False)[0]
        return label if option != "--item" else _guess_item(table, [c for c in sample if c.name != label])[0]
    except ColumnError:
        return None


def _plain(name: str) -> str:
    return re.sub(r"[\s_\-.]+", "", name.casefold())


def _first(columns: Iterable[str], names: frozenset[str]) -> str | None:
    return next((c for c in columns if _plain(c) in names), None)


def _look(table: Table) -> list[_Column]:
    rows = table.head()
    columns = []
    for place, name in enumerate(table.columns):
        cells = [cell for row in rows if (cell := row[place]) is not None]
        length = sum(map(len, cells)) / len(cells) if cells else 0.0
        columns.append(_Column(name=name, filled=len(cells), distinct=len(set(cells)), length=length))
    return columns


def _tells_items(table: Table, row_id: str, label: str) -> bool:
    """Whether one value of ``row_id`` has several labels among the first rows: then it tells items apart, not rows."""
    places = table.columns.index(row_id), table.columns.index(label)
    pairs = {
        (row[places[0]], row[places[1]])
        for row in table.head()
        if None not in (row[places[0]], row[places[1]])
    }
    return len({value for value, _ in pairs}) < len(pairs)


def _is_other(name: str) -> bool:
    return any(_plain(name) in names for names in _OTHERS.values())


def _ask(table: Table, option: str, candidates: Sequence[str], what: str, more: str = "") -> ColumnError:
    if candidates:
        which = f"{', '.join(candidates)} may each be {what}"
        fix = f"say which with {option}, such as {option} {candidates[0]}{more}"
    else:
        which = f"no column is plainly {what}"
        fix = f"name it with {option}; there are {', '.join(table.columns[:30])}"
    return ColumnError(f"{table.report.source}: {which}; {fix}")


def _others(sample: Sequence[_Column], taken: Iterable[str | None]) -> list[str]:
    """Columns besides those taken whose short values repeat, as labels do; not those whose names say what they are."""
    return [
        c.name
        for c in sample
        if c.name not in taken
        and 2 <= c.distinct <= c.filled / 2
        and c.length < _LONG_TEXT
        and not _is_other(c.name)
        and not any(_plain(c.name) in tier for tier in _ITEM)
    ]


def _guess_label(table: Table, sample: Sequence[_Column], item_given: bool) -> tuple[str, str]:
    for tier in _LABEL:
        named = [c.name for c in sample if _plain(c.name) in tier]
        if len(named) == 1:
            return named[0], f"label: column {named[0]}{_BY_NAME}"
        if named:
            raise _ask(table, "--label", named, "the label")
    parts = [c.name for c in sample if re.search(r"label|annotation", c.name, re.IGNORECASE)]
    if len(parts) == 1:
        return parts[0], f"label: column {parts[0]}{_BY_NAME}"
    if parts:
        together = f", or count votes on one item with --label-columns {','.join(parts)}"
        raise _ask(table, "--label", parts, "the label", together)
    few = [
        c
        for c in sample
        if 2 <= c.distinct <= _MOST_CLASSES
        and c.filled >= 3 * c.distinct
        and not _is_other(c.name)
        and not (not item_given and any(_plain(c.name) in tier for tier in _ITEM))
    ]
    if len(few) == 1:
        found = few[0]
        return (
            found.name,
            f"label: column {found.name}, the only one with few values ({found.distinct} in the first rows)",
        )
    stems = Counter(re.sub(r"\d+$", "", c.name) for c in few)
    votes = [c.name for c in few if stems[re.sub(r"\d+$", "", c.name)] > 1]
    more = f", or count votes on one item with --label-columns {','.join(votes)}" if votes else ""
    raise _ask(table, "--label", [c.name for c in few], "the label", more)


def _guess_item(table: Table, sample: Sequence[_Column]) -> tuple[str, str]:
    texts, ids = ([c for c in sample if _plain(c.name) in tier] for tier in _ITEM)
    repeated = [c for c in ids if c.distinct < c.filled]
    if len(texts) > 1:
        together = f", or take them together with --item {','.join(c.name for c in texts)}"
        raise _ask(table, "--item", [c.name for c in texts], "the item", together)
    if texts:
        by_id = [c.name for c in repeated if _plain(c.name) not in _OTHERS["row_id"]]
        also = f" (--item {by_id[0]} would group by that id)" if len(by_id) == 1 else ""
        return texts[0].name, f"item: column {texts[0].name}, for its name{also}"
    longest = sorted(sample, key=lambda c: c.length, reverse=True)
    if (
        longest
        and longest[0].length >= _LONG_TEXT
        and (len(longest) == 1 or longest[0].length > 2 * longest[1].length)
    ):
        best = longest[0]
        return (
            best.name,
            f"item: column {best.name}, the one with long texts ({best.length:.0f} characters on average)",
        )
    if len(repeated) == 1:
        return repeated[0].name, f"item: column {repeated[0].name}, for its name and its repeated values"
    raise _ask(table, "--item", [c.name for c in repeated], "the item")
