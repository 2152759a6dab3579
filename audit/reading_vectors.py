"""Word vectors that lie inside an installed package: read from its files, so that nothing is ever fetched.

wordllama ships a table of 32,000 pieces of words with 256 numbers each, and the tokenizer that cuts a text into them.
Its own loader looks for the tokenizer in the wrong folder and then fetches it; importing it sets up logging for the
whole program. So only its two files are used, and none of its code runs.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from audit.errors import MissingExtraError
from audit.patterns import FloatArray

__all__ = ["WordVectors", "read_word_vectors"]

_PACKAGE = "wordllama"
_VECTORS, _KEY = "weights/l2_supercat_256.safetensors", "embedding.weight"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"


@dataclass(frozen=True, kw_only=True, eq=False)
class WordVectors:
    """A vector for each piece of a word: shape (V, D), and the tokenizer whose numbers (0 to V - 1) are its rows."""

    name: str
    vectors: FloatArray
    tokenizer: Any


def read_word_vectors() -> WordVectors:
    """The word vectors that ship inside wordllama.

    Raises
    ------
    MissingExtraError
        The package that holds them, or what reads them, is not installed.
    """
    missing = MissingExtraError("audit dupes --semantic", extra="semantic")
    found = importlib.util.find_spec(_PACKAGE)  # looks for the package, does not import it
    places = [Path(place) for place in (found.submodule_search_locations or ())] if found else []
    place = next((p for p in places if (p / _VECTORS).is_file() and (p / _TOKENIZER).is_file()), None)
    if place is None:
        raise missing
    try:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer
    except ImportError as error:
        raise missing from error
    tokenizer = Tokenizer.from_file(str(place / _TOKENIZER))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    vectors = load_file(place / _VECTORS)[_KEY].astype(np.float64)
    name = f"{_PACKAGE} {importlib.metadata.version(_PACKAGE)}, l2_supercat, {vectors.shape[1]} numbers"
    return WordVectors(name=name, vectors=vectors, tokenizer=tokenizer)
