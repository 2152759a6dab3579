"""Near-duplicates among 100,000 texts: our search against datasketch's, in one run.

Both find the pairs at least .8 alike among the same texts (runs of five characters, exact similarity afterwards).
datasketch is no dependency of this project: pip install datasketch. Printed: seconds of each (median of the interleaved
runs), their ratio, and the share of each other's pairs they found.

    python benchmarks/near_speed.py                 # 100,000 texts, five runs of each: half an hour or so
    python benchmarks/near_speed.py --texts 10000
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

Found = set[tuple[int, int]]


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


def main() -> None:
    """Time both and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    try:
        import datasketch as peer
    except ImportError:
        print("datasketch is not installed, so there is nothing to compare with: pip install datasketch")
        return
    texts = texts_of(options.texts)
    seconds: dict[str, list[float]] = {"ours": [], "datasketch": []}
    found: dict[str, Found] = {}
    contests: dict[str, Callable[[list[str]], Found]] = {"ours": ours, "datasketch": datasketch}
    for _ in range(options.runs):
        for name, contest in contests.items():
            start = time.perf_counter()
            found[name] = contest(texts)
            seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    both = len(found["ours"] & found["datasketch"])
    print(f"{len(texts):,} texts, {options.runs} runs, datasketch {peer.__version__}")
    us, them = medians["ours"], medians["datasketch"]
    print(f"ours {us:.1f} s, datasketch {them:.1f} s: {them / us:.1f} x")
    print(f"pairs: ours {len(found['ours']):,}, datasketch {len(found['datasketch']):,}, both {both:,}")


if __name__ == "__main__":
    main()
