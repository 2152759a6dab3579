"""Finds the disagreement a score is to be held against: a saved audit, a data file, or a known d."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from audit.ceiling import Placement, pair_disagreement, place_score
from audit.errors import ArgumentError
from audit.reading_saved import load_audit

__all__ = ["place"]


def place(
    source: str | Path | None = None,
    *,
    score: float | None = None,
    n_test: int | None = None,
    item: Sequence[str] = (),
    label: str | None = None,
    disagreement: float | None = None,
    pairs: int | None = None,
    classes: int = 2,
    level: float | None = None,
    **reading: Any,
) -> Placement:
    """Place ``score`` (accuracy in [0, 1], on ``n_test`` rows) in the band of an audit.

    ``source`` is the JSON that ``audit dupes --format json`` wrote, or a data file, which is then audited with
    ``item`` and ``label`` and read by ``reading`` (of :func:`audit.reading.open_table`); without it ``disagreement``
    over ``pairs`` pairs and ``classes`` classes is used. Where the audit has enough items with three labels or more,
    the band from these counts (:func:`audit.ceiling.place_score`).

    Raises
    ------
    ArgumentError
        When there is no score, or neither a source nor a disagreement with its pairs.
    InputError
        When the source cannot be read.
    """
    if score is None:
        raise ArgumentError("give the measured accuracy with --score, for example --score 0.93 --n-test 500")
    if (source is None) == (disagreement is None):
        raise ArgumentError("give either a FILE (a saved audit or the data) or --disagreement with --pairs")
    if source is None:
        if pairs is None or pairs < 1 or disagreement is None:
            raise ArgumentError("--disagreement needs --pairs, the number of repeated items behind it")
        d = pair_disagreement(disagreement, pairs=pairs, level=level or 0.95)
        return place_score(score, d=d, classes=classes, n_test=n_test)
    saved = None if item or label is not None else load_audit(source)
    if saved is not None:
        if level is not None and level != saved.d.level:
            raise ArgumentError(
                f"{source} was made at level {saved.d.level}: audit again with --level {level}"
            )
        return place_score(
            score,
            d=saved.d,
            classes=saved.classes,
            n_test=n_test,
            refused=saved.refused,
            moments=saved.moments,
        )
    from audit.duplicates import audit_duplicates

    result = audit_duplicates(
        source, item=item, label=label, level=level or 0.95, show_conflicts=0, ladder=False, **reading
    )
    return place_score(
        score, d=result.disagreement, classes=result.flip_rate.classes, n_test=n_test,
        refused=result.flip_rate.reason, moments=result.ceiling.moments,
    )  # fmt: skip
