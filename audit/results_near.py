"""Results of near-duplicates: d by similarity, beside the d of exact repeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from audit.results_base import Estimate, Result

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["NearBin", "NearDuplicates", "NearPair"]


@dataclass(frozen=True, kw_only=True)
class NearBin(Result):
    """Pairs of a similarity in [``low``, ``high``): how many, of how many texts, in how many clusters, and their d.

    ``disagreement`` is the chance that two labels, one of each text, differ: the mean over clusters (texts that
    near-duplicates link), each once.
    """

    low: float
    high: float
    pairs: int
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
class NearDuplicates(Result):
    """Pairs of different texts at least ``threshold`` alike, and d by similarity beside the d of exact repeats.

    ``recall`` is the chance that a pair at the threshold is found; ``candidates`` were compared exactly. ``sampled``
    says that groups of hundreds of near-equal texts were paired in part.
    """

    threshold: float
    texts: int
    pairs: int
    texts_in_pairs: int
    candidates: int
    recall: float
    sampled: bool
    exact: Estimate
    bins: tuple[NearBin, ...]
    examples: tuple[NearPair, ...]
    verdict: str

    def summary(self) -> str:
        """The table of d by similarity, and a sentence on it."""
        lines = [
            f"near-duplicates: {self.pairs:,} pairs of {self.texts_in_pairs:,} among {self.texts:,} different texts "
            f"are {self.threshold:g} alike or more",
            f"{'similarity':14} {'pairs':>9} {'clusters':>9}  d",
        ]
        lines += [
            f"{part.low:.2f} to {part.high:.2f}   {part.pairs:>9,} {part.clusters:>9,}  {part.disagreement.text()}"
            for part in self.bins
        ]
        lines.append(f"{'equal':14} {'':>9} {'':>9}  {self.exact.text()}")
        return "\n".join([*lines, self.verdict])

    def to_frame(self) -> pd.DataFrame:
        """One row for each class of similarity."""
        import pandas as pd

        names = ("low", "high", "pairs", "texts", "clusters")
        rows = [
            {**{name: getattr(part, name) for name in names}, "disagreement": part.disagreement.estimate}
            for part in self.bins
        ]
        return pd.DataFrame(rows, columns=[*names, "disagreement"])
