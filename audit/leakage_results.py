"""Results of ``audit leak``: items of the test file that the training file holds, or texts that are alike."""

from __future__ import annotations

from dataclasses import dataclass

from audit.results import Alarm, Estimate, Result
from audit.results_base import RunSettings
from audit.results_near import Measure
from audit.wording import folded

__all__ = ["CleanTest", "Leak", "LeakedItem", "NearLeak", "NearLeakedItem"]


@dataclass(frozen=True, kw_only=True)
class CleanTest(Result):
    """The test file without the rows that count: where it lies, its rows, and how many were left out."""

    path: str
    rows: int
    left_out: int

    @property
    def sentence(self) -> str:
        """What was written."""
        return f"{self.path} is the test file without them: {self.rows:,} rows, {self.left_out:,} left out."


@dataclass(frozen=True, kw_only=True)
class NearLeakedItem(Result):
    """A test item, and the training item that it is most alike: the columns and rows (from 1) of each."""

    similarity: float
    item: tuple[str, ...]
    train_item: tuple[str, ...]
    test_rows: tuple[int, ...]
    train_rows: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class NearLeak(Result):
    """Test rows whose item is not in the training file, but is ``threshold`` alike or more to one that is.

    ``measure``, ``model``, ``background``, ``recall``, ``candidates`` and ``sampled`` as in
    :class:`audit.results_near.NearDuplicates`; ``items`` and ``rows`` count test items and their rows, ``share`` is
    that of the test file's rows. ``examples`` are the most alike first.
    """

    measure: Measure
    model: str | None
    threshold: float
    background: float | None
    rows: int
    items: int
    share: Estimate
    candidates: int
    recall: float
    sampled: bool
    examples: tuple[NearLeakedItem, ...]

    @property
    def alike(self) -> str:
        """What the texts are alike in."""
        return "in their characters" if self.measure == "jaccard" else "in their words"

    @property
    def sentence(self) -> str:
        """The count in words, and what alike means."""
        if not self.rows:
            return f"no other test row is {self.threshold:g} alike or more to a training text, {self.alike}"
        told = (
            f"{self.rows:,} more test rows of {self.items:,} items are {self.threshold:g} alike or more to a training "
            f"text, {self.alike}, without being equal: {self.share.text()}"
        )
        if self.background is not None and self.background >= self.threshold:
            return f"{told}; texts taken at random are as alike, so that this is nothing to go by"
        return told


@dataclass(frozen=True, kw_only=True)
class LeakedItem(Result):
    """An item of both files: its rows (from 1, without the header) and, if they were named, labels in each."""

    item: tuple[str, ...]
    train_rows: tuple[int, ...]
    test_rows: tuple[int, ...]
    train_labels: tuple[str, ...]
    test_labels: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Leak(Result):
    """What of the test file stands in the training file.

    ``share`` is the share of the test file's rows whose item is in the training file. It is a count, not an
    estimate: its limits (Clopper-Pearson) speak of further files drawn the same way. ``disagreement`` is the chance
    that the labels of a leaked item differ between the files, each item once. Remembering the training labels
    gives ``remembered`` of the leaked test rows right: the most frequent label of the item, one of them at random
    where several are. ``near`` and ``semantic`` are the test rows that are alike a training text without being equal
    to it, where they were asked for. ``counted_rows``, with their share, are those that a gate counts and that
    ``cleaned`` is without: the leaked rows, and the near ones if they were to count. ``notes`` tell a guessed column.
    """

    train_rows: int
    test_rows: int
    items: int
    leaked_rows: int
    share: Estimate
    labelled: bool
    disagreement: Estimate
    remembered: float | None
    repeated_in_test: int
    alarms: tuple[Alarm, ...]
    examples: tuple[LeakedItem, ...]
    verdict: str
    settings: RunSettings
    near: NearLeak | None = None
    semantic: NearLeak | None = None
    counted_rows: int
    counted_share: float | None
    cleaned: CleanTest | None = None
    notes: tuple[str, ...] = ()

    @property
    def caution(self) -> str:
        """What the count cannot show."""
        if self.near is None and self.semantic is None:
            return "Texts that are alike without being equal are not found: --near 0.85 looks for them."
        return "Near texts may be other questions: they are told apart from leaked ones, and read before they count."

    @property
    def near_sentences(self) -> tuple[str, ...]:
        """What --near and --semantic found, each in a sentence."""
        return tuple(part.sentence for part in (self.near, self.semantic) if part is not None)

    def summary(self) -> str:
        """The finding in a few lines of text."""
        lines = [*folded(self.verdict), ""]
        lines += self.notes
        lines.append(f"rows: {self.train_rows:,} to train on, {self.test_rows:,} to test on")
        lines.append(f"leaked: {self.leaked_rows:,} test rows of {self.items:,} items, {self.share.text()}")
        if self.disagreement.estimate is not None:
            lines.append(f"labels of a leaked item differ between the files: d {self.disagreement.text()}")
        if self.remembered is not None:
            lines.append(
                f"remembering the training labels gets {self.remembered:.3f} of the leaked test rows right"
            )
        if self.repeated_in_test:
            lines.append(f"{self.repeated_in_test:,} test rows repeat an item of another test row")
        for one in self.examples[:3]:
            lines.append(f"  test row {one.test_rows[0]} = train row {one.train_rows[0]}: {_cut(one.item)}")
        for part in (self.near, self.semantic):
            if part is not None:
                lines += folded(f"near: {part.sentence}")
            for near in part.examples[:3] if part is not None else ():
                lines.append(
                    f"  test row {near.test_rows[0]} ~ train row {near.train_rows[0]} ({near.similarity:.2f}): "
                    f"{_cut(near.item, 52)}"
                )
                lines.append(f"      {_cut(near.train_item, 90)}")
        lines += folded(self.caution)
        if self.cleaned is not None:
            lines += folded(self.cleaned.sentence)
        for alarm in self.alarms:
            lines += folded(f"! {alarm.message}: {alarm.action}")
        return "\n".join(lines)


def _cut(item: tuple[str, ...], most: int = 70) -> str:
    text = " | ".join(item)
    return repr(text if len(text) <= most else text[: most - 1] + "…")
