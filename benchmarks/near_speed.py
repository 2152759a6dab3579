"""Near-duplicates among 100,000 texts: our searches against datasketch's and scikit-learn's, in one run.

By characters, ours and datasketch's find the pairs at least .8 alike among the same texts (runs of five characters,
exact similarity afterwards). With --semantic, ours and scikit-learn's neighbours within a radius (brute force, cosine)
find the pairs of the same vectors with a cosine of at least .99. datasketch is no dependency of this project: pip
install datasketch. Printed: seconds of each (median of the interleaved runs), their ratio, and the pairs they found.

    python benchmarks/near_speed.py                 # 100,000 texts, five runs of each: half an hour or so
    python benchmarks/near_speed.py --texts 10000
    python benchmarks/near_speed.py --semantic --texts 20000
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from audit.near import SHINGLE, near_pairs, sketch
from audit.reading_vectors import read_word_vectors
from audit.semantic import Vectors, embed, semantic_pairs

Found = set[tuple[int, int]]
_COSINE = 0.99


def texts_of(count: int, seed: int = 0) -> list[str]:
    """Sentences of a Zipf-like vocabulary, a tenth of them edited copies of others."""
    rng = np.random.default_rng(seed)
    words = np.array(
        ["".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), rng.integers(2, 10))) for _ in range(20_000)]
    )
    weights = 1.0 / np.arange(1, len(words) + 1)
    weights /= weights.sum()
    texts = [" ".join(rng.choice(words, rng.integers(30, 80), p=weights)) for _ in range(count * 9 // 10)]
    for _ in range(count - len(texts)):
        own = texts[int(rng.integers(len(texts)))].split()
        for _ in range(int(rng.integers(1, 5))):
            own[int(rng.integers(len(own)))] = str(rng.choice(words))
        texts.append(" ".join(own))
    return list(dict.fromkeys(texts))


def ours(texts: list[str]) -> Found:
    """The pairs that this project finds."""
    found = near_pairs(sketch(texts, threshold=0.8), threshold=0.8)
    return set(zip(found.first.tolist(), found.second.tolist(), strict=True))


def datasketch(texts: list[str]) -> Found:
    """The pairs that datasketch's MinHashLSH finds, compared exactly."""
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=0.8, num_perm=128)
    sets = [{text[k : k + SHINGLE].encode() for k in range(len(text) - SHINGLE + 1)} for text in texts]
    pairs = set()
    for row, shingles in enumerate(sets):
        made = MinHash(num_perm=128)
        made.update_batch(list(shingles))
        for other in index.query(made):
            if len(sets[other] & shingles) / len(sets[other] | shingles) >= 0.8:
                pairs.add((other, row))
        index.insert(row, made)
    return pairs


def semantic(vectors: Vectors) -> Found:
    """The pairs of close vectors that this project finds."""
    found = semantic_pairs(vectors, threshold=_COSINE)
    return set(zip(found.first.tolist(), found.second.tolist(), strict=True))


def neighbours(vectors: Vectors) -> Found:
    """The pairs of close vectors that scikit-learn finds."""
    from sklearn.neighbors import NearestNeighbors

    index = NearestNeighbors(radius=1.0 - _COSINE, metric="cosine", algorithm="brute").fit(vectors)
    near = index.radius_neighbors(vectors, return_distance=False)
    return {(row, int(other)) for row, others in enumerate(near) for other in others if other > row}


def race(contests: dict[str, Callable[[], Found]], runs: int, heading: str) -> None:
    """Time two searches in turn, and print their medians, the ratio and the pairs."""
    seconds: dict[str, list[float]] = {name: [] for name in contests}
    found: dict[str, Found] = {}
    for _ in range(runs):
        for name, contest in contests.items():
            start = time.perf_counter()
            found[name] = contest()
            seconds[name].append(time.perf_counter() - start)
    (us, them), (ours, theirs) = contests, found.values()
    mine, peers = statistics.median(seconds[us]), statistics.median(seconds[them])
    print(heading)
    print(f"{us} {mine:.1f} s, {them} {peers:.1f} s: {peers / mine:.1f} x")
    print(f"pairs: {us} {len(ours):,}, {them} {len(theirs):,}, both {len(ours & theirs):,}")


def main() -> None:
    """Time both and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--semantic", action="store_true", help="vectors of words, against scikit-learn")
    options = parser.parse_args()
    texts = texts_of(options.texts)
    heading = f"{len(texts):,} texts, {options.runs} runs of each"
    if options.semantic:
        import sklearn

        vectors = embed(texts, read_word_vectors())
        contests = {"ours": lambda: semantic(vectors), "scikit-learn": lambda: neighbours(vectors)}
        race(contests, options.runs, f"{heading}, scikit-learn {sklearn.__version__}")
        return
    try:
        import datasketch as peer
    except ImportError:
        print("datasketch is not installed, so there is nothing to compare with: pip install datasketch")
        return
    contests = {"ours": lambda: ours(texts), "datasketch": lambda: datasketch(texts)}
    race(contests, options.runs, f"{heading}, datasketch {peer.__version__}")


if __name__ == "__main__":
    main()
