"""Score files with a known truth: binormal scores, and other runs that are a shift, a retraining or a gain."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import special

from train.scores import Scores


def binormal(
    n: int, *, prevalence: float = 0.3, separation: float = 1.5, seed: int = 0
) -> tuple[np.ndarray, ...]:
    """(labels, noise, score on the real line): the score is separation * label + noise."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < prevalence
    noise = rng.standard_normal(n)
    return y, noise, separation * y + noise


def frame(
    y: np.ndarray, latent: np.ndarray, *, cut: float | None = None, shift: float = 0.75
) -> pd.DataFrame:
    """A score file: P(positive) is the logistic of latent - shift, the prediction is latent > cut."""
    out = pd.DataFrame(
        {
            "item": [f"i{k}" for k in range(len(y))],
            "label": np.where(y, "1", "0"),
            "score": special.expit(latent - shift),
        }
    )
    if cut is not None:
        out["prediction"] = np.where(latent > cut, "1", "0")
    return out


def scores_of(data: pd.DataFrame) -> Scores:
    """The frame as it would be read, without reading it."""
    told = data["prediction"] if "prediction" in data else np.where(data["score"] >= 0.5, "1", "0")
    return Scores(
        source="data frame",
        positive="1",
        labels=("0", "1"),
        items=tuple(data["item"]),
        truth=(data["label"] == "1").to_numpy(),
        scores=data["score"].to_numpy(),
        predicted=(np.asarray(told) == "1").astype(np.int64),
        answered="prediction" in data,
        clusters=np.arange(len(data)),
        ambiguous=(data["ambiguous"] == "yes").to_numpy() if "ambiguous" in data else None,
    )


def scores_pair(
    kind: str, n: int, *, prevalence: float = 0.3, separation: float = 1.5, seed: int = 0, gain: float = 1.0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Our scores and another run on the same rows.

    ``shift``: the same scores at another threshold. ``close``: the same quality and nearly the same scores (correlation
    .999 given the label). ``retrained``: the same quality, correlation .9. ``gain``/``loss``: correlation .9 and a
    separation that is larger or smaller by ``gain``.
    """
    y, noise, latent = binormal(n, prevalence=prevalence, separation=separation, seed=seed)
    rng = np.random.default_rng([seed, 1])
    rho = {"shift": 1.0, "close": 0.999}.get(kind, 0.9)
    other = rho * noise + np.sqrt(1.0 - rho**2) * rng.standard_normal(n)
    d = separation + {"gain": gain, "loss": -gain}.get(kind, 0.0)
    return frame(y, latent), frame(y, d * y + other, cut=0.3 + (d - separation) / 2.0)


def routed_pair(
    n: int, *, skill: float, seed: int = 0, wrong: float = 0.2, ambiguous: float = 0.0, sit: bool = True
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A cheap model a and a dear one b, both wrong on about the share ``wrong`` of the items.

    ``skill`` 1: a's chance to err falls from twice that to 0 as its confidence grows; 0: confidence tells nothing.
    ``ambiguous`` of the items are marked so; where they ``sit``, the two models differ there more often.
    """
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    sure = rng.random(n)
    chance = (1.0 - skill) * wrong + skill * np.minimum(1.0, 2.0 * wrong * (1.0 - sure))
    flags = rng.random(n) < ambiguous
    a_wrong, b_wrong = rng.random(n) < chance, rng.random(n) < wrong
    if ambiguous and sit:
        toss = rng.random(n) < 0.5
        a_wrong, b_wrong = np.where(flags, toss, a_wrong), np.where(flags, ~toss, b_wrong)
    out = []
    for wrong_ones in (a_wrong, b_wrong):
        answer = y ^ wrong_ones
        score = np.where(answer, 0.5 + sure / 2.0, 0.5 - sure / 2.0)
        out.append(
            pd.DataFrame(
                {
                    "item": [f"i{k}" for k in range(n)],
                    "label": np.where(y, "1", "0"),
                    "score": score,
                    "prediction": np.where(answer, "1", "0"),
                    "ambiguous": np.where(flags, "yes", "no"),
                }
            )
        )
    return out[0], out[1]
