"""Out-of-fold probabilities of classes: each item is judged by a model that has seen none of its copies.

Features belong to items, not to rows, and folds are dealt over items: the copies of an item lie in one fold and have
one probability. Needs scikit-learn (extra ``model``).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from audit.errors import ArgumentError
from audit.patterns import FloatArray, IntArray

__all__ = ["Progress", "Trained", "deal_folds", "out_of_fold", "text_features"]

Progress = Callable[[str], None]

#: Words and pairs of words at most, for each column of text.
_MOST_FEATURES = 100_000
#: From this many items on, a word must stand in two of them.
_MANY_ITEMS = 1_000
#: Letters of scripts that put no space between words: Thai to Burmese, Khmer, kana, Chinese characters.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


@dataclass(frozen=True, kw_only=True, eq=False)
class Trained:
    """Probabilities of shape (N, K), one row an item; in how many folds the fit ended before it converged."""

    probabilities: FloatArray
    unfinished: int


def deal_folds(strata: IntArray, *, folds: int, seed: int = 0) -> IntArray:
    """A fold (0 ... folds-1) for each of N items, so that each stratum is spread as evenly as it goes.

    Raises
    ------
    ArgumentError
        There are fewer than 2 folds, or fewer items than folds.
    """
    if not 2 <= folds <= len(strata):
        raise ArgumentError(
            f"{len(strata)} items cannot be dealt into {folds} folds: 2 or more, each with an item"
        )
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(strata))
    order = order[
        np.argsort(strata[order], kind="stable")
    ]  # one stratum after the other, each in random order
    fold = np.empty(len(strata), np.int64)
    fold[order] = np.arange(len(strata)) % folds
    return fold


def text_features(columns: Sequence[Sequence[str]]) -> sparse.csr_array:
    """TF-IDF of words and pairs of words for each column of N texts, side by side: shape (N, F).

    1 + log tf, times the smoothed idf, rows of length 1 a column (Salton and Buckley, Inf. Process. Manage. 24 (1988)
    513-523). No label is looked at. In a column that is mostly in a script without spaces (Chinese, Japanese, Thai ...)
    runs of one to three characters take the place of words.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    parts = []
    for texts in columns:
        unspaced = sum(len(_UNSPACED.findall(text)) for text in texts)
        how: dict[str, Any] = {"analyzer": "word", "token_pattern": r"(?u)\b\w+\b", "ngram_range": (1, 2)}
        if 2 * unspaced > sum(map(len, texts)):
            how = {"analyzer": "char", "ngram_range": (1, 3)}
        vectorizer = TfidfVectorizer(
            **how, lowercase=False, sublinear_tf=True, min_df=2 if len(texts) >= _MANY_ITEMS else 1,
            max_features=_MOST_FEATURES, dtype=np.float64,
        )  # fmt: skip
        try:
            parts.append(vectorizer.fit_transform(texts))
        except ValueError:  # no word is left: the column tells nothing
            continue
    if not parts:
        return sparse.csr_array((len(columns[0]), 1), dtype=np.float64)
    return sparse.csr_array(sparse.hstack(parts, format="csr"))


def out_of_fold(
    features: Any,
    *,
    item: IntArray,
    code: IntArray,
    classes: int,
    fold: IntArray,
    progress: Progress | None = None,
) -> Trained:
    """Probabilities of the K classes for each of N items, from models that were trained on the other folds.

    Parameters
    ----------
    features:
        Shape (N, F), dense or sparse. Dense features are scaled to mean 0 and standard deviation 1.
    item, code:
        Shape (R,): the item (0 ... N-1) and the class (0 ... K-1) of each labelled row. An item's rows weigh 1 in all.
    fold:
        Shape (N,).
    progress:
        Told how far it is.

    Notes
    -----
    Logistic regression with an L2 penalty (C = 1). A class that no other fold holds has probability 0.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    order = np.lexsort((code, item))  # sums in one order, whatever that of the rows
    item, code = item[order], code[order]
    found = np.zeros((len(fold), classes), np.float64)
    weight = 1.0 / np.bincount(item, minlength=len(fold)).clip(1)
    unfinished = 0
    total = int(fold.max()) + 1
    for k in range(total):
        if progress is not None:
            progress(f"fold {k + 1} of {total}")
        inside = fold[item] != k
        held = np.flatnonzero(fold == k)
        rows, given = item[inside], code[inside]
        if len(np.unique(given)) < 2:
            found[np.ix_(held, np.unique(given))] = 1.0
            continue
        fit = LogisticRegression(C=1.0, max_iter=1000)
        scaled = StandardScaler(
            with_mean=not sparse.issparse(features), with_std=not sparse.issparse(features)
        )
        model = make_pipeline(scaled, fit)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model.fit(features[rows], given, logisticregression__sample_weight=weight[rows])
        unfinished += any(issubclass(warning.category, ConvergenceWarning) for warning in told)
        found[np.ix_(held, model.classes_)] = model.predict_proba(features[held])
    return Trained(probabilities=found, unfinished=unfinished)
