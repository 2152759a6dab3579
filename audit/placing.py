"""Finds the disagreement a score is to be held against: a saved audit, a data file, or a known d."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from audit.ceiling import Placement, pair_disagreement, place_score
from audit.errors import ArgumentError, InputError
from audit.results import Disagreement

__all__ = ["load_audit", "place"]


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
    level: float = 0.95,
) -> Placement:
    """Place ``score`` (accuracy in [0, 1], on ``n_test`` rows) in the band of an audit.

    ``source`` is the JSON that ``audit dupes --format json`` wrote, or a data file, which is then audited with
    ``item`` and ``label``; without it ``disagreement`` over ``pairs`` pairs and ``classes`` classes is used.

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
        d = pair_disagreement(disagreement, pairs=pairs, level=level)
        return place_score(score, d=d, classes=classes, n_test=n_test)
    if str(source).endswith(".json") and not item and label is None:
        d, classes, refused = load_audit(source)
    else:
        from audit.duplicates import audit_duplicates

        result = audit_duplicates(source, item=item, label=label, level=level, show_conflicts=0, ladder=False)
        d, classes, refused = result.disagreement, result.flip_rate.classes, result.flip_rate.reason
    return place_score(score, d=d, classes=classes, n_test=n_test, refused=refused)


def load_audit(path: str | Path) -> tuple[Disagreement, int, str | None]:
    """d, the number of classes, and the reason against a flip rate, from a saved audit (JSON of ``audit dupes``)."""
    try:
        saved: Any = json.loads(Path(path).read_text(encoding="utf-8"))
        part, rate = saved["disagreement"], saved["flip_rate"]
        d = Disagreement(
            estimate=part["estimate"], low=part["low"], high=part["high"], method=part["method"],
            level=part["level"], pair_weighted=part["pair_weighted"], row_weighted=part["row_weighted"],
            reason=part["reason"],
        )  # fmt: skip
        return d, int(rate["classes"]), rate["reason"]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; check the path") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is not a saved audit: write one with audit dupes DATA --format json --out {path}"
        ) from error
