"""What confident learning makes of labels and probabilities: cleanlab's joint, noise matrix, flags and scores.

Northcutt, Jiang and Chuang, Confident learning: estimating uncertainty in dataset labels, J. Artif. Intell. Res. 70
(2021) 1373-1411. A label is counted for the class whose probability reaches the mean self-confidence of that class.
Everything is computed by the library; needs cleanlab (extra ``model``).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from audit.errors import MissingExtraError
from audit.patterns import FloatArray, IntArray
from audit.results import Estimate

__all__ = ["Confident", "learn", "model_flip_rate", "needs_extra", "resampled_flip_rate", "shuffled_flags"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Confident:
    """Confident learning of R labels over K classes.

    ``joint`` (K, K) is the chance of a given label (rows) and a true one (columns), ``noise`` (K, K) that of a given
    label for each true one, ``prevalence`` (K,) that of the true ones. ``flagged`` (R,) are the label issues,
    ``score`` (R,) the probability of the label that was given, ``suggested`` (R,) the likeliest class.
    """

    joint: FloatArray
    noise: FloatArray
    prevalence: FloatArray
    flagged: BoolArray
    score: FloatArray
    suggested: IntArray

    @property
    def flip_rate(self) -> float:
        """The chance that the given label is not the true one, by the joint."""
        return float(1.0 - np.trace(self.joint))


def needs_extra() -> None:
    """Raise a MissingExtraError unless scikit-learn and cleanlab are installed."""
    try:
        import cleanlab
        import sklearn  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("audit issues", extra="model") from error
    del cleanlab


@contextmanager
def _calm() -> Iterator[None]:
    """The library divides by the size of classes that may be empty, and says so."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def learn(code: IntArray, probabilities: FloatArray, item: IntArray) -> Confident:
    """Confident learning of labels ``code`` (R,) of items ``item`` (R,) with out-of-sample ``probabilities`` (R, K).

    K is 2 or more, and each class occurs. Equal labels of one item are flagged together: the library cuts a ranked
    list, which may fall between copies. Ties are cut by item and class, whatever the order of the rows.
    """
    from cleanlab.count import compute_confident_joint, estimate_joint, estimate_latent
    from cleanlab.rank import get_label_quality_scores

    with _calm():
        counted = compute_confident_joint(code, probabilities)
        joint = estimate_joint(code, probabilities, confident_joint=counted)
        prevalence, noise, _ = estimate_latent(counted, code)
        score = get_label_quality_scores(code, probabilities)
    return Confident(
        joint=np.asarray(joint), noise=np.asarray(noise).T, prevalence=np.asarray(prevalence),
        flagged=_flags(code, probabilities, item), score=np.asarray(score, np.float64),
        suggested=probabilities.argmax(axis=1).astype(np.int64),
    )  # fmt: skip


def _flags(code: IntArray, probabilities: FloatArray, item: IntArray) -> BoolArray:
    from cleanlab.filter import find_label_issues

    order = np.lexsort((code, item))
    flagged = np.zeros(len(code), np.bool_)
    with _calm():
        flagged[order] = np.asarray(find_label_issues(code[order], probabilities[order], n_jobs=1), np.bool_)
    same = item * probabilities.shape[1] + code
    return np.isin(same, same[flagged])


def resampled_flip_rate(code: IntArray, probabilities: FloatArray, times: IntArray) -> float:
    """The flip rate by the joint where each of the R labels stands ``times`` (R,) over.

    ``probabilities`` (R, K) stay as they are: the model is not trained again.
    """
    from cleanlab.count import estimate_joint

    rows = np.repeat(np.arange(len(code)), times)
    with _calm():
        return float(1.0 - np.trace(estimate_joint(code[rows], probabilities[rows])))


def model_flip_rate(estimate: float, resampled: FloatArray, *, level: float) -> Estimate:
    """The model's flip rate with estimate ± z times the standard deviation of resamples, within [0, 1]."""
    half = (
        float(stats.norm.ppf(0.5 + level / 2) * resampled.std(ddof=1)) if len(resampled) > 1 else float("nan")
    )
    return Estimate(
        estimate=estimate, low=max(0.0, estimate - half), high=min(1.0, estimate + half),
        method="bootstrap over items, normal, model held fixed",
    )  # fmt: skip


def shuffled_flags(
    code: IntArray, probabilities: FloatArray, item: IntArray, among: IntArray, *, rng: np.random.Generator
) -> tuple[BoolArray, FloatArray]:
    """Flags and scores with the probabilities of the items ``among`` dealt among them at random; ``probabilities``
    (N, K) is a row an item.
    """
    dealt = probabilities.copy()
    dealt[among] = probabilities[rng.permutation(among)]
    rows = dealt[item]
    return _flags(code, rows, item), rows[np.arange(len(code)), code]
