"""Results of ``audit compare``: two files with labels of the same items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from audit.results import Alarm, Ceiling, Disagreement, Estimate, FlipRate, Result
from audit.results_base import RunSettings
from audit.wording import folded, p_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FileComparison", "Moved", "Side"]

#: Classes of a square table in text, the longest name there, and moves and classes that are listed of more.
_SQUARE, _WIDE, _SHOWN = 8, 24, 20


def _cut(name: str) -> str:
    """The first characters of a name."""
    return name if len(name) <= _WIDE else f"{name[: _WIDE - 1]}…"


@dataclass(frozen=True, kw_only=True)
class Side(Result):
    """One of the two files: its rows, and of the items that are repeated in both d, ε and the band of the ceiling.

    ``deduplicated`` says that far fewer of its repeats agree than labels drawn at random would; then there is no ε.
    """

    rows: int
    labelled: int
    items: int
    conflicts: int
    disagreement: Disagreement
    flip_rate: FlipRate
    ceiling: Ceiling
    kappa: float | None
    deduplicated: bool = False


@dataclass(frozen=True, kw_only=True)
class Moved(Result):
    """What became of the labels of one class: how many, the share that changed, and where to."""

    label: str
    total: int
    changed: int
    share: Estimate
    to: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class FileComparison(Result):
    """Two files over the same items.

    ``difference`` is d after less d before on the items repeated in both (negative: they agree more), with the MOVER
    interval; ``p_value`` that of equal d. Of these items ``came_together`` have a lower d_i after than before and
    ``moved_apart`` a higher one. ``confusion`` (K, K) counts the labels before (rows) by after (columns) of
    ``compared`` rows or items; ``untold`` had no single label on one side. ``notes`` say which columns were guessed.
    """

    classes: tuple[str, ...]
    level: float
    items_in_both: int
    repeated_in_both: int
    before: Side
    after: Side
    difference: Estimate
    p_value: float | None
    came_together: int
    moved_apart: int
    compared: int
    unit: str
    untold: int
    confusion: tuple[tuple[int, ...], ...]
    moved: tuple[Moved, ...]
    symmetry_p_value: float | None
    symmetry_method: str
    alarms: tuple[Alarm, ...]
    verdict: str
    settings: RunSettings
    notes: tuple[str, ...] = ()

    @property
    def band_sentence(self) -> str:
        """What the change of d means for the accuracy ceiling; empty where a side has no band."""
        told = []
        for side, name in ((self.before, "by the labels before"), (self.after, "by those after")):
            band = side.ceiling
            if band.lower is None or band.upper is None or band.low is None or band.high is None:
                return ""
            told.append(
                f"{name} {band.lower:.3f} to {band.upper:.3f} (with sampling error {band.low:.3f} to {band.high:.3f})"
            )
        doubt = {alarm.code for alarm in self.alarms} & {"changed_to_agree", "one_label_an_item"}
        more = ", which means nothing if labels were changed to agree" if doubt else ""
        return f"The accuracy ceiling is {told[0]}, and {told[1]}{more}."

    @property
    def moves_sentence(self) -> str:
        """Whether labels move one way more often than back; empty where nothing moved."""
        if self.symmetry_p_value is None:
            return ""
        sure = self.symmetry_p_value < 1.0 - self.level
        return (
            f"Do labels move one way more often than back? {'Yes' if sure else 'No sign of it'}: "
            f"{p_text(self.symmetry_p_value)} ({self.symmetry_method})."
        )

    def summary(self) -> str:
        """The comparison in a few lines of text."""
        lines = [*folded(self.verdict), ""]
        lines += [line for note in self.notes for line in folded(note)]
        lines.append(f"items in both {self.items_in_both:,}, repeated in both {self.repeated_in_both:,}")
        for name, side in (("before", self.before), ("after", self.after)):
            lines.append(
                f"{name:7} {side.rows:>9,} rows  {side.conflicts:>7,} conflicts  d {side.disagreement.text()}"
                f"  ε {side.flip_rate.text()}"
            )
        p = p_text(self.p_value)
        lines.append(f"change in d {self.difference.text('+.3f')}{f', {p}' if p else ''}")
        lines.append(
            f"items that came together {self.came_together:,}, that moved apart {self.moved_apart:,}"
        )
        lines += folded(self.band_sentence)
        lines += ["", f"labels of {self.compared:,} {self.unit} before (rows) and after (columns)"]
        lines += self._square() if len(self.classes) <= _SQUARE else self._moves()
        shown = (
            sorted(self.moved, key=lambda part: -part.changed)[:_SHOWN]
            if len(self.moved) > _SHOWN
            else self.moved
        )
        lines += [
            f"of {part.label!r} changed {part.changed:,} of {part.total:,}: {part.share.text()}"
            for part in shown
        ]
        if len(shown) < len(self.moved):
            lines.append(f"... and {len(self.moved) - len(shown):,} other classes, with fewer changes")
        if self.untold:
            lines.append(f"{self.untold:,} {self.unit} left out: two labels tie on a side")
        lines += folded(self.moves_sentence)
        lines += [line for alarm in self.alarms for line in folded(f"! {alarm.message}: {alarm.action}")]
        return "\n".join(lines)

    def _square(self) -> list[str]:
        """The table of labels before and after."""
        names = [
            name if name.isprintable() and len(name) <= _WIDE else _cut(repr(name)) for name in self.classes
        ]
        width = max(8, *map(len, names)) + 1 if names else 8
        lines = [" " * width + "".join(f"{name:>{width}}" for name in names)]
        for name, counts in zip(names, self.confusion, strict=True):
            lines.append(f"{name:{width}}" + "".join(f"{count:>{width},}" for count in counts))
        return lines

    def _moves(self) -> list[str]:
        """The most frequent moves, where the table has too many classes to be read."""
        moves = [
            (count, before, after)
            for before, counts in zip(self.classes, self.confusion, strict=True)
            for after, count in zip(self.classes, counts, strict=True)
            if count and before != after
        ]
        moves.sort(key=lambda move: -move[0])
        lines = [f"{count:>9,}  {before!r} to {after!r}" for count, before, after in moves[:_SHOWN]]
        left = len(moves) - len(lines)
        return [*lines, f"... and {left:,} other moves"] if left else lines

    def to_frame(self) -> pd.DataFrame:
        """The table of labels before and after, one row for each pair of classes."""
        import pandas as pd

        rows = [
            {"before": a, "after": b, "count": self.confusion[i][j]}
            for i, a in enumerate(self.classes)
            for j, b in enumerate(self.classes)
        ]
        return pd.DataFrame(rows, columns=["before", "after", "count"])
