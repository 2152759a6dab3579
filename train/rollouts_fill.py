"""Fills in what a log of rollouts leaves out and its texts can tell: lengths, what was cut, what was closed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd

from audit.errors import ArgumentError, InputError, MissingExtraError

__all__ = ["fill_closure", "fill_lengths"]


def fill_lengths(
    frame: pd.DataFrame,
    raw: pd.DataFrame,
    tokenizer: str | os.PathLike[str] | None,
    cap: float | None,
    notes: list[str],
) -> tuple[str | None, float | None]:
    """Fill in lengths and what was cut where that can be known; return the unit of the lengths and the cap.

    ``frame`` has the columns ``text``, ``length`` and ``truncated``; ``raw`` is the table as it was logged. What was
    found or not found is added to ``notes``.

    Raises
    ------
    ArgumentError, InputError
        The tokenizer is not there, or is none.
    """
    unit: str | None = "tokens"
    if frame["length"].isna().all():
        unit = None
        if tokenizer is not None:
            frame["length"], unit = _tokens(frame["text"], tokenizer), "tokens counted anew"
            notes.append("lengths are counted from the text by the tokenizer given, without special tokens")
        elif frame["text"].notna().any():
            frame["length"], unit = frame["text"].str.len().astype(np.float64), "characters"
            notes.append("no lengths were logged: they are characters (--tokenizer counts tokens)")
    cut = frame["truncated"] == 1
    if cap is None and "cap" in raw and raw["cap"].notna().any():
        cap = float(raw["cap"].max())
    if cap is None and cut.any() and unit == "tokens":
        cap = float(frame.loc[cut, "length"].max())
    if frame["truncated"].isna().all():
        if cap is not None and unit not in (None, "characters"):
            frame["truncated"] = (frame["length"] >= cap).astype(np.float64)
            notes.append(f"what was cut was not logged: a rollout of {cap:,.0f} tokens or more counts as cut")
        else:
            notes.append(
                "what was cut at the cap is not known: it was not logged (--cap and --tokenizer tell it)"
                if cap is None
                else f"what was cut is not known: the cap of {cap:,.0f} is in tokens and lengths are not (--tokenizer)"
            )
    return unit, cap if unit != "characters" else None


def _tokens(texts: pd.Series, tokenizer: str | os.PathLike[str]) -> pd.Series:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtraError("counting tokens", extra="train") from error
    path = Path(tokenizer)
    path = path / "tokenizer.json" if path.is_dir() else path
    if not path.is_file():
        raise ArgumentError(f"{path}: no such tokenizer; name a tokenizer.json or the folder that holds one")
    try:
        counter = Tokenizer.from_file(str(path))
    except Exception as error:
        raise InputError(f"{path} is no tokenizer.json ({error}); name the one of the model") from error
    counter.no_truncation()
    counter.no_padding()
    counts = [
        len(one.ids) for one in counter.encode_batch(texts.fillna("").tolist(), add_special_tokens=False)
    ]
    return pd.Series(counts, index=texts.index, dtype=np.float64).where(texts.notna())


def fill_closure(frame: pd.DataFrame, close_tag: str, notes: list[str]) -> None:
    """Take a rollout as closed where its text holds exactly one close tag; only if the tag occurs at all."""
    tags = pd.Series(
        [None if text is None else text.count(close_tag) for text in frame["text"]], dtype=np.float64
    )
    if tags.fillna(0).gt(0).any():
        frame["closed"] = tags.eq(1).astype(np.float64).where(tags.notna())
        notes.append(
            f"closure was not logged: a rollout with exactly one {close_tag} in its text counts as closed"
        )
    else:
        notes.append(f"no text holds {close_tag}: closure is not known")
