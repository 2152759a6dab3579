"""The verdicts of a ledger in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from train.pressure_band import CLEAN_SENTENCE
from train.pressure_entries import Book
from train.pressure_stats import expected_maximum

if TYPE_CHECKING:
    from train.pressure_results import Final, Placed

__all__ = ["final_verdict", "headline", "limits", "notes", "signed"]


def signed(value: float | None) -> str:
    """``+0.061``, ``−0.020``, or – for none."""
    return "–" if value is None else f"{value:+.3f}".replace("-", "−")


def limits(low: float | None, high: float | None) -> str:
    """`` (−0.010 to +0.130)``, or nothing."""
    return "" if low is None or high is None else f" ({signed(low)} to {signed(high)})"


def _many(count: int, one: str, more: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def headline(book: Book, finals: Sequence[Final]) -> tuple[str, ...]:
    """The looks, the openings and each final model in a sentence."""
    scored = [e for e in book.entries if e.kind == "evaluation"]
    looks = [e for e in scored if e.purpose == "validation"]
    forced = sum(len(f.forced) for f in finals)
    words = f"{_many(len({e.model for e in looks}), 'model')} looked at {_many(len(looks), 'time')} on validation rows"
    opened = {(e.model, e.split) for e in book.entries if e.purpose == "holdout"}
    if not opened:
        return (f"{words}; no holdout was opened.",)
    force = f", {_many(forced, 'time')} again by force" if forced else ", none a second time"
    words += f"; the holdout was opened for {_many(len(opened), 'final model')}{force}."
    return words, *(f"{f.run} ({f.split}): {f.verdict}" for f in finals)


def final_verdict(f: Final, level: float) -> str:
    """Whether the score held on the holdout, and whether choosing explains what it lost."""
    if f.drop.estimate is None:
        return f"no comparison ({f.drop.method.removeprefix('none: ')})."
    if f.same_rows:
        return "validation and holdout are the same rows, so their scores say nothing about each other."
    drop = f"{signed(f.drop.estimate)}{limits(f.drop.low, f.drop.high)}"
    scores = f"{f.validation.estimate:.3f} on validation, {f.holdout.estimate:.3f} on the holdout"
    if f.drop.low is None or f.drop.high is None or f.expected is None:
        return f"{scores}, a drop of {drop}; whether that is chance cannot be told without the counts."
    choice = (
        "nothing was chosen, so no drop is expected"
        if f.models == 1
        else f"choosing the best of {f.models} equal models gains up to {f.expected:.3f}"
    )
    if f.drop.low > max(f.expected, 0.0):
        return (
            f"{scores}: a drop of {drop}, more than choosing explains ({choice}). The validation rows were fitted in "
            "another way, or the two splits differ."
        )
    if f.drop.low > 0.0:
        return (
            f"{scores}: a drop of {drop}, which choosing may explain ({choice}). Report the holdout's score."
        )
    if f.drop.high < 0.0:
        return (
            f"{scores}: higher by {signed(-f.drop.estimate)}{limits(-f.drop.high, -f.drop.low)}. The holdout is "
            "easier, or its rows leaked into training: look for repeats across splits with audit dupes --split."
        )
    seen = f"{f.rows:,} rows" if f.rows else "these rows"
    return f"{scores}: no drop that {seen} can show, {drop} at {level * 100:g}% ({choice})."


def notes(book: Book, finals: Sequence[Final], *, placed: Sequence[Placed], banded: bool) -> tuple[str, ...]:
    """What a reader must know beside the verdicts: worn holdouts, lines lost, scores without a place."""
    return (*_worn(book, finals), *_lost(book), *(_banded(book, placed) if banded else ()))


def _worn(book: Book, finals: Sequence[Final]) -> list[str]:
    out = []
    shared: dict[str, list[Final]] = defaultdict(list)
    for f in finals:
        shared[f.split].append(f)
    for split, group in shared.items():
        models = len({f.model for f in group})
        if models > 1:
            errors = [f.holdout_error for f in group if f.holdout_error is not None]
            gain = ""
            if errors:
                most = sum(errors) / len(errors) * expected_maximum(models)
                gain = f", by up to {most:.3f} on average"
            out.append(
                f"{models} models opened the holdout {split!r}: whoever picks the best of them by its holdout score "
                f"has a score that is too good{gain}."
            )
    for f in finals:
        out += [f"{f.run} opened {f.split!r} again, by force: {reason}" for reason in f.forced]
    looked = {e.digest: e.split for e in book.entries if e.purpose == "validation" and e.digest}
    held = {(e.digest, e.split) for e in book.entries if e.purpose == "holdout" and e.digest in looked}
    out += [
        f"The holdout {split!r} has the rows of the validation split {looked[digest]!r}: it is no holdout."
        for digest, split in sorted(held, key=str)
    ]
    unknown = sum(f.correlation is None and f.models > 1 for f in finals)
    if unknown:
        out.append(
            "How alike the models answer is not known (the ledger has no answers by item), so they are taken as "
            "independent, which expects the largest drop."
        )
    return out


def _lost(book: Book) -> list[str]:
    out = []
    if book.damaged:
        lines = ", ".join(map(str, book.damaged[:10]))
        out.append(
            f"{_many(len(book.damaged), 'line')} of the ledger cannot be read and count for nothing: {lines}."
        )
    done = {(e.model, e.split) for e in book.entries if e.purpose == "holdout" and e.kind == "evaluation"}
    left = sorted({(e.model, e.split) for e in book.entries if e.kind == "opening"} - done)
    out += [
        f"The holdout {split!r} was opened for {model!r}, but no score of it was recorded."
        for model, split in left
    ]
    return out


def _banded(book: Book, placed: Sequence[Placed]) -> list[str]:
    keys = {e.key for e in book.entries if e.kind == "evaluation"}
    out = [CLEAN_SENTENCE] if "clean" in keys else []
    if None in keys:
        out.append(
            "Scores whose key is not recorded are not placed in the band: record them with --key noisy."
        )
    if not placed and not out:
        out.append("No accuracy was recorded, so nothing can be placed in the band.")
    return out
