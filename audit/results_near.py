"""Results of near-duplicates: d by similarity, beside the d of exact repeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from audit.results_base import Estimate, Result

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["IfRepeats", "Measure", "NearBin", "NearDuplicates", "NearPair"]

Measure = Literal["jaccard", "cosine"]


@dataclass(frozen=True, kw_only=True)
class NearBin(Result):
    """Pairs of a similarity in [``low``, ``high``), the last class with its end: how many, of how many texts, in how
    many clusters, and their d.

    ``disagreement`` is the chance that two labels, one of each text, differ: the mean over clusters (texts that
    near-duplicates link), each once. ``also_near`` as in :class:`NearDuplicates`.
    """

    low: float
    high: float
    pairs: int
    also_near: int | None = None
    texts: int
    clusters: int
    disagreement: Estimate


@dataclass(frozen=True, kw_only=True)
class NearPair(Result):
    """Two near-duplicates with different labels."""

    similarity: float
    texts: tuple[str, str]
    labels: tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class IfRepeats(Result):
    """What would follow if all pairs were repeats, which nobody knows: ``disagreement`` is the mean over their
    clusters, ``flip_rate`` the epsilon of that d. Never in the headline.
    """

    disagreement: Estimate
    flip_rate: Estimate


@dataclass(frozen=True, kw_only=True)
class NearDuplicates(Result):
    """Pairs of different texts at least ``threshold`` alike, and d by similarity beside the d of exact repeats.

    ``recall`` is the chance that a pair at the threshold is found; ``candidates`` were compared exactly. ``sampled``
    says that groups of hundreds of near-equal texts were paired in part.

    ``measure`` is what alike means: the shared part of the runs of five characters (Jaccard), or the cosine of the
    texts' vectors. Only the cosine has a ``model`` that makes the vectors, a ``background`` (one pair in a hundred of
    texts taken at random is more alike) and ``also_near``: how many of the pairs share most of their characters too,
    so that a search for characters would have found them.
    """

    measure: Measure
    model: str | None = None
    threshold: float
    background: float | None = None
    texts: int
    pairs: int
    also_near: int | None = None
    texts_in_pairs: int
    candidates: int
    recall: float
    sampled: bool
    exact: Estimate
    bins: tuple[NearBin, ...]
    if_repeats: IfRepeats
    examples: tuple[NearPair, ...]
    verdict: str

    @property
    def meaning(self) -> str:
        """What alike means, and what the pairs share besides, in words."""
        if self.measure == "jaccard":
            return "Alike: the shared part of the runs of five characters."
        told = "Alike: the cosine of the mean vectors of the words, whatever their order"
        if self.background is not None:
            told += f"; one pair in a hundred of texts taken at random is above {self.background:.2f}"
        return f"{told}. {self.also_near or 0:,} of the pairs share most of their characters too (also near)."

    def class_name(self, part: NearBin) -> str:
        """A class of similarity in words, with as many decimals as tell the classes apart: ``0.987 to 0.993``."""
        ends = [self.threshold, *(one.high for one in self.bins)]
        digits = next((d for d in range(2, 9) if len({round(end, d) for end in ends}) == len(ends)), 2)
        return f"{part.low:.{digits}f} to {part.high:.{digits}f}"

    @property
    def hypothesis(self) -> str:
        """What d and epsilon of all pairs would be if they were repeats, in words; empty without a pair."""
        d, rate = self.if_repeats.disagreement, self.if_repeats.flip_rate
        if d.estimate is None:
            return ""
        implied = f" and ε {rate.text()}" if rate.estimate is not None else ", too large for an ε"
        return (
            f"Were all these pairs repeats, d would be {d.text()}{implied}. Nothing says that they are, so the "
            "headline leaves them out."
        )

    def summary(self) -> str:
        """The table of d by similarity, and a sentence on it."""
        lines = [
            f"near-duplicates: {self.pairs:,} pairs of {self.texts_in_pairs:,} among {self.texts:,} different texts "
            f"are {self.threshold:g} alike or more",
            f"{'similarity':14} {'pairs':>9} {'clusters':>9}  d",
        ]
        lines += [
            f"{self.class_name(part):14} {part.pairs:>9,} {part.clusters:>9,}  {part.disagreement.text()}"
            for part in self.bins
        ]
        lines.append(f"{'equal':14} {'':>9} {'':>9}  {self.exact.text()}")
        return "\n".join(filter(None, [*lines, self.meaning, self.verdict, self.hypothesis]))

    def to_frame(self) -> pd.DataFrame:
        """One row for each class of similarity."""
        import pandas as pd

        names = ("low", "high", "pairs", "also_near", "texts", "clusters")
        rows = [
            {**{name: getattr(part, name) for name in names}, "disagreement": part.disagreement.estimate}
            for part in self.bins
        ]
        return pd.DataFrame(rows, columns=[*names, "disagreement"])
