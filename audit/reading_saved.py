"""Reads back a saved audit, and says what is wrong with one that cannot be."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from audit.errors import InputError
from audit.results import Disagreement, Estimate, Moments

__all__ = ["SavedAudit", "SavedLimits", "is_saved", "load_audit", "load_limits"]

#: A saved audit with all its conflicts is far smaller; a larger file is data.
_MOST_BYTES = 256 * 2**20

#: So many bytes at the start say whether a file may be a saved audit.
_PEEK = 4_096

#: Sums and rounding of another program may put ends in the wrong order by so much.
_ROUNDING = 1e-9

#: What other commands write, by keys that only they have.
_OTHERS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("noise_sd", "rmse_floor"),
        "holds an audit of numbers, which have no accuracy ceiling: --metric r2, rmse or mae places a score",
    ),
    (("model_flip_rate", "flagged"), "holds the answer of audit issues"),
    (("before", "after", "moved"), "holds the answer of audit compare"),
    (("leaked_rows", "remembered"), "holds the answer of audit leak"),
    (("position", "message", "score"), "holds the answer of audit ceiling itself"),
)  # fmt: skip

_AGAIN = "give the JSON that audit dupes --format json wrote, or a data file"


@dataclass(frozen=True, kw_only=True)
class SavedAudit:
    """What an audit's JSON says of d, K, the reason against a flip rate, several labels and the positive class.

    ``positive`` and ``share`` (of the labels) are None where there is no such class; JSON of schema 1.0 does not say.
    """

    d: Disagreement
    classes: int
    refused: str | None
    moments: Moments
    positive: str | None
    share: float | None
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SavedLimits:
    """What the JSON of an audit of numbers or grades says of limits.

    ``estimates`` has ``noise_sd``, ``r2_ceiling`` and ``distance``, or ``kappa_ceiling``; ``reason`` says why there are
    none.
    """

    kind: Literal["numeric", "ordinal"]
    estimates: Mapping[str, Estimate]
    level: float | None
    reason: str | None


def is_saved(path: str | Path) -> bool:
    """Whether the file is JSON that a command of ``audit`` wrote, and no data."""
    return "schema_version" in (_whole(path) or {})


def load_audit(path: str | Path) -> SavedAudit | None:
    """The audit in a JSON file that ``audit dupes`` wrote; None for a file of data, or what is no file.

    Raises
    ------
    InputError
        The file cannot be read, is no audit (of another command, another program, cut short), or holds numbers that no
        audit has. The message names the place, what it must be and what to do.
    """
    saved = _whole(path)
    if saved is None:
        return None
    if (other := _other(saved)) is not None:
        raise InputError(f"{path} {other}; {_AGAIN}")
    return _Fields(saved, path).audit()


def load_limits(path: str | Path) -> SavedLimits | None:
    """The limits in the JSON that ``audit dupes --kind numeric`` or ``ordinal`` wrote; None for a file of data.

    Raises
    ------
    InputError
        As of :func:`load_audit`, and of an audit of classes or tags, which has no such limits.
    """
    saved = _whole(path)
    if saved is None:
        return None
    fields = _Fields(saved, path)
    if all(key in saved for key in _OTHERS[0][0]):
        kept = {name: fields.estimate(name) for name in ("noise_sd", "r2_ceiling", "distance")}
        return SavedLimits(
            kind="numeric", estimates=kept, level=fields.number("level"), reason=fields.text("reason")
        )
    if (other := _other(saved)) is not None:
        raise InputError(f"{path} {other}; {_AGAIN}")
    if not isinstance(saved.get("ordinal"), dict):
        raise InputError(
            f"{path} holds an audit of classes: audit grades with --kind ordinal, numbers with --kind numeric"
        )
    if "kappa_ceiling" not in saved["ordinal"]:
        raise InputError(f"{path} was made by an older version, without kappa_ceiling: audit the data again")
    kept = {"kappa_ceiling": fields.estimate("ordinal.kappa_ceiling")}
    return SavedLimits(kind="ordinal", estimates=kept, level=fields.number("disagreement.level"), reason=None)


def _whole(path: str | Path) -> dict[str, Any] | None:
    """The object in a JSON file that may be a saved audit; None for what is none by its looks."""
    file = Path(path)
    if not _may_be_audit(path):
        return None
    try:
        saved: Any = json.loads(file.read_bytes(), parse_constant=_no_number)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; check the path") from error
    except RecursionError as error:
        raise InputError(f"{path} is nested too deeply for a saved audit; {_AGAIN}") from error
    except _NoNumberError as error:
        raise InputError(f"{path} holds {error}, which no audit writes; {_AGAIN}") from error
    except ValueError as error:
        if b'"schema_version"' not in _start(file):
            return None
        raise InputError(
            f"{path} is no whole JSON: the saved audit was cut short or edited ({error}); {_AGAIN}"
        ) from error
    return saved if isinstance(saved, dict) else None


def _start(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(_PEEK).replace(b"\x00", b"")


def _may_be_audit(path: str | Path) -> bool:
    """Whether a file is worth reading whole: JSON by its name or by how it begins, no list, and not too large."""
    file = Path(path)
    try:
        if file.suffix.lower() == ".json" and "://" not in str(path) and not file.exists():
            raise InputError(f"{file}: there is no such file; check the path")
        if not file.is_file() or file.stat().st_size > _MOST_BYTES:
            return False
        start = _start(file).lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: {getattr(error, 'strerror', None) or error}; check the path") from error
    return start.startswith(b"{") and (file.suffix.lower() == ".json" or b'"schema_version"' in start)


def _other(saved: Mapping[str, Any]) -> str | None:
    """What the JSON is, if it is no audit of classes."""
    for keys, words in _OTHERS:
        if all(key in saved for key in keys):
            return words
    lacking = [key for key in ("disagreement", "flip_rate") if key not in saved]
    return f"is no saved audit: it has no {' and no '.join(lacking)}" if lacking else None


class _NoNumberError(ValueError):
    """NaN or an infinity."""


def _no_number(word: str) -> Any:
    raise _NoNumberError(word)


class _Fields:
    """The fields of one saved audit, each checked where it is taken."""

    def __init__(self, saved: Mapping[str, Any], path: str | Path) -> None:
        self.saved, self.path = saved, path

    def fail(self, place: str, value: Any, must: str) -> InputError:
        shown = json.dumps(value)
        shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
        return InputError(
            f"{self.path}: {place} is {shown}, but {must}; audit the data again with --format json"
        )

    def part(self, place: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.saved
        for key in place.split(".") if place else ():
            below = found.get(key)
            if not isinstance(below, dict):
                raise self.fail(place, below, "it must be an object")
            found = below
        return found

    def number(self, place: str, *, least: float = 0.0, most: float = 1.0) -> float | None:
        owner, _, key = place.rpartition(".")
        value = self.part(owner).get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.fail(place, value, "it must be a number or null")
        if not least <= value <= most:
            raise self.fail(place, value, f"it lies in [{least:g}, {most:g}]")
        return float(value)

    def estimate(self, place: str) -> Estimate:
        """A number with its interval, of any size."""
        ends = ("low", "estimate", "high")
        low, middle, high = (self.number(f"{place}.{end}", least=-math.inf, most=math.inf) for end in ends)
        self.ordered(place, *ends, least=-math.inf, most=math.inf)
        return Estimate(estimate=middle, low=low, high=high)

    def text(self, place: str) -> str | None:
        owner, _, key = place.rpartition(".")
        value = self.part(owner).get(key)
        if value is not None and not isinstance(value, str):
            raise self.fail(place, value, "it must be a string or null")
        return value

    def whole(self, place: str, *, least: int = 0, default: int | None = None) -> int:
        owner, _, key = place.rpartition(".")
        value = self.part(owner).get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.fail(place, value, f"it must be a whole number of {least} or more")
        return value

    def ordered(self, owner: str, *keys: str, least: float = 0.0, most: float = 1.0) -> None:
        """Raise unless the numbers under ``keys`` that are there do not fall."""
        numbers = [
            (key, value)
            for key in keys
            if (value := self.number(f"{owner}.{key}", least=least, most=most)) is not None
        ]
        for (one, low), (other, high) in itertools.pairwise(numbers):
            if low > high + _ROUNDING:
                raise self.fail(
                    f"{owner}.{one}", low, f"{owner}.{other} is {high:g}, and it cannot be above that"
                )

    def audit(self) -> SavedAudit:
        """The audit, or the error that names the first field that cannot be."""
        self.ordered("disagreement", "low", "estimate", "high")
        estimate = self.number("disagreement.estimate")
        level = self.number("disagreement.level")
        if level is None or not 0.0 < level < 1.0:
            raise self.fail("disagreement.level", level, "it lies between 0 and 1")
        refused, reason = self.text("flip_rate.reason"), self.text("disagreement.reason")
        low, high = self.number("disagreement.low"), self.number("disagreement.high")
        if estimate is None and reason is None:
            raise self.fail("disagreement.estimate", None, "disagreement.reason does not say why")
        if estimate is not None and (low is None or high is None):
            raise self.fail(
                "disagreement.low" if low is None else "disagreement.high", None, "there is an estimate"
            )
        d = Disagreement(
            estimate=estimate, low=low, high=high, method=self.text("disagreement.method") or "none", level=level,
            pair_weighted=self.number("disagreement.pair_weighted"),
            row_weighted=self.number("disagreement.row_weighted"), reason=reason,
        )  # fmt: skip
        positive = share = None
        if self.saved.get("metrics") is not None:
            positive, share = self.text("metrics.positive"), self.number("metrics.share")
        names = [] if self.saved.get("data") is None else self.part("data").get("classes")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise self.fail("data.classes", names, "it must be a list of strings")
        return SavedAudit(
            d=d, classes=self.whole("flip_rate.classes", least=1), refused=refused, moments=self.moments(),
            positive=positive, share=share, names=tuple(names),
        )  # fmt: skip

    def moments(self) -> Moments:
        """The band from several labels; an older audit has none."""
        if self.saved.get("ceiling") is None or self.part("ceiling").get("moments") is None:
            return Moments(reason="the saved audit does not have it")
        at = "ceiling.moments"
        self.ordered(at, "low", "lower", "upper", "high")
        repeats = self.part(at).get("repeats")
        return Moments(
            lower=self.number(f"{at}.lower"), upper=self.number(f"{at}.upper"), low=self.number(f"{at}.low"),
            high=self.number(f"{at}.high"), repeats=None if repeats is None else self.whole(f"{at}.repeats", least=3),
            items=self.whole(f"{at}.items"), items_with_three=self.whole(f"{at}.items_with_three", default=0),
            method=self.text(f"{at}.method") or "none", fit_p_value=self.number(f"{at}.fit_p_value"),
            reason=self.text(f"{at}.reason"),
        )  # fmt: skip
