"""The two searches for alike texts, by their characters and by their words, for the audit and for the leak check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from audit.near import Pairs, near_pairs, sketch
from audit.patterns import IntArray
from audit.reading_vectors import read_word_vectors
from audit.results_near import Measure
from audit.semantic import background, check_texts, embed, semantic_pairs

__all__ = ["MOST_PAIRS", "MOST_TEXTS", "Alike", "joined_texts", "search"]

#: The columns of an item are joined by this before they are compared.
_JOIN = "\n"
#: The most pairs, and the most texts that are compared by their words, if nothing else is asked for.
MOST_PAIRS, MOST_TEXTS = 5_000_000, 200_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Alike:
    """What a search found: the pairs, and the chance that one at the threshold is found.

    By words also the ``model`` of the vectors and the ``background``, the cosine that one in a hundred pairs of texts
    taken at random exceeds.
    """

    pairs: Pairs
    recall: float
    model: str | None = None
    background: float | None = None


def joined_texts(width: int) -> str:
    """SQL of the text of an item of ``width`` columns in their normal form, ``n0``, ``n1`` ..."""
    return f"concat_ws(chr({ord(_JOIN)}), {', '.join(f'n{k}' for k in range(width))})"


def search(
    measure: Measure, texts: Sequence[str], *, threshold: float, most: int, most_texts: int = MOST_TEXTS,
    seed: int, across: IntArray | None = None,
) -> Alike:  # fmt: skip
    """The pairs of ``texts``, all different and joined as :func:`joined_texts` does, that are so much alike.

    ``across`` has a number for each text: by characters only pairs with different ones are looked at.

    Raises
    ------
    ArgumentError, MissingExtraError
        There are too many pairs or texts, or the extra is not installed.
    """
    if measure == "jaccard":
        made = sketch(texts, threshold=threshold, seed=seed)
        pairs = near_pairs(made, threshold=threshold, most=most, seed=seed, across=across)
        return Alike(pairs=pairs, recall=made.bands.chance(threshold))
    words = read_word_vectors()
    check_texts(len(texts), most_texts)
    # a word has another piece at the start of a line than after a space
    vectors = embed([text.replace(_JOIN, " ") for text in texts], words)
    return Alike(
        pairs=semantic_pairs(vectors, threshold=threshold, most=most), recall=1.0, model=words.name,
        background=background(vectors, seed=seed),
    )  # fmt: skip
