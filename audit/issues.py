"""A model's view of the labels: confident learning on out-of-fold probabilities, beside the duplicate estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from audit.disagreement import estimate_disagreement
from audit.errors import ArgumentError
from audit.evidence import deduplicated
from audit.fliprate import estimate_flip_rate
from audit.grouping_choice import choose_columns
from audit.intervals import check_level, check_seed
from audit.issues_check import known_conflicts, measure, no_conflicts_known, no_measure
from audit.issues_list import list_issues, write_issues
from audit.issues_model import Progress, deal_folds, out_of_fold, text_features
from audit.issues_noise import Confident, learn, needs_extra, shuffled_flags
from audit.issues_rates import NO_RATES, set_beside
from audit.issues_results import Issues, NoiseMatrix
from audit.issues_rows import LabelledRows, labelled_rows
from audit.issues_words import compose_issues_verdict, lacks_skill, raise_issue_alarms
from audit.patterns import CountPatterns, FloatArray, IntArray
from audit.results import Disagreement, FlipRate
from audit.results_base import RunSettings
from audit.version import __version__
from audit.writing import check_outputs, check_tables

__all__ = ["find_issues"]

#: Folds of the default model, and the most classes that it is trained to tell apart.
FOLDS, _MOST_CLASSES = 5, 1_000


def find_issues(
    source: Any,
    *,
    item: Sequence[str] = (),
    label: str | None = None,
    probs: Any = None,
    embeddings: Any = None,
    row_id: str | None = None,
    missing: Sequence[str] = (),
    normalise: str = "case",
    folds: int = FOLDS,
    level: float = 0.95,
    draws: int = 200,
    seed: int = 0,
    show: int = 20,
    out_rows: str | Path | None = None,
    progress: Progress | None = None,
    **reading: Any,
) -> Issues:
    """Find labels that a model doubts, and hold its flip rate against that of the repeats.

    Parameters
    ----------
    source:
        What :func:`audit.reading.open_table` reads.
    item, label:
        The columns that make an item, which are the text that the model reads, and the label column; guessed if not
        given.
    probs:
        Out-of-sample probabilities of the user's own model in place of the default one: an array (rows of the file,
        classes in sorted order), an .npy file of one, or a table with a column for each class (its name, or
        ``p_`` and its name). A table is joined by ``row_id`` where that is given, by the item where it has the item
        columns, and else row by row.
    embeddings:
        Numbers that the default model reads in place of the text, in the same forms: an array, an .npy file, a table
        of numbers, or one with a column of lists.
    row_id:
        The column by which ``probs`` or ``embeddings`` are joined; it stands in ``out_rows`` as well.
    missing, normalise, level, reading:
        As in :func:`audit.duplicates.audit_duplicates`.
    folds, seed, draws:
        Folds over items of the default model; the seed of the folds and of all else; bootstrap draws, 2 or more.
    show, out_rows:
        Suspicious labels kept in the result; a file (.csv, .jsonl, .parquet ...) for all of them.
    progress:
        Told how far long work is.

    Returns
    -------
    Issues
        One class, or fewer than 2 items, give None with a reason, not an error.

    Raises
    ------
    InputError, ArgumentError
        A file, a column or an option cannot be used.
    MissingExtraError
        scikit-learn or cleanlab is not installed.
    """
    check_level(level)
    check_seed(seed)
    if draws < 2 or folds < 2 or show < 0:
        raise ArgumentError("give --draws 2 or more, --folds 2 or more, and 0 or more issues to show")
    if probs is not None and embeddings is not None:
        raise ArgumentError(
            "--probs are the probabilities, --embeddings what to make them from: give one of them"
        )
    if probs is not None and folds != FOLDS:
        raise ArgumentError(
            "--folds are those of the default model: with --probs there is none, so leave them out"
        )
    check_tables(out_rows)
    needs_extra()
    chosen = choose_columns(source, item=item, label=label, **reading)
    item, label = chosen.item, chosen.label or ""
    matrix = embeddings if probs is None else probs
    for read in (source, matrix) if out_rows is not None else ():
        check_outputs(read, out_rows)
    tell = progress or (lambda _: None)
    with labelled_rows(
        source, item=item, label=label, matrix=matrix, per_class=probs is not None, row_id=row_id, missing=missing,
        normalise=normalise, **reading,
    ) as rows:  # fmt: skip
        if probs is None and len(rows.classes) > _MOST_CLASSES:
            raise ArgumentError(
                f"there are {len(rows.classes):,} different labels, and a model is trained on up to {_MOST_CLASSES:,}: "
                "is --label the column of labels?"
            )
        table = rows.table()
        d, rate = _repeats(rows, table, level=level, draws=draws, seed=seed)
        reason = _too_little(rows)
        model, check = no_measure(reason or ""), no_conflicts_known(table)
        learned, judged, rates = None, None, NO_RATES
        if reason is None:
            judged = _judge(rows, table, probs=probs is not None, folds=folds, seed=seed, tell=tell)
            tell("confident learning")
            p = judged.probabilities
            learned = learn(rows.code, p[rows.item], rows.item)
            model = measure(rows.code, rows.item, p, kind=judged.kind, folds=judged.folds, level=level)
            check = known_conflicts(
                rows.code, rows.item, p, learned.flagged, level=level, seed=seed,
                shuffle=lambda among, rng: shuffled_flags(rows.code, p, rows.item, among, rng=rng),
            )  # fmt: skip
            reason = lacks_skill(model)
            if reason is None:
                tell(f"{draws} resamples of the items")
                rates = set_beside(learned, rows, table, p, rate, level=level, draws=draws, seed=seed)
        issues = []
        if (
            learned is not None and judged is not None and reason is None
        ):  # flags of a model without skill are chance
            most = show if out_rows is None else None
            issues = list_issues(rows, learned, judged.probabilities, table, most=most)
        if out_rows is not None:
            write_issues(out_rows, item, issues, rows, table)
        alarms = raise_issue_alarms(
            model=model, d=d, rate=rate, reason=reason, unfinished=judged.unfinished if judged else 0,
            spread=rows.spread, folds=folds, class_items=(table > 0).sum(axis=0), classes=rows.classes,
            largest=float(table.sum(axis=1).max()), labelled=len(rows.code), given=probs is not None,
        )  # fmt: skip
        return Issues(
            verdict=compose_issues_verdict(
                rates, rate, repeated=int((table.sum(axis=1) > 1).sum()), reason=reason, alarms=alarms
            ),
            rows=rows.rows,
            labelled=len(rows.code), items=rows.items, without_probabilities=rows.unmatched, classes=rows.classes,
            class_rows=tuple(np.bincount(rows.code, minlength=len(rows.classes)).tolist()), level=level, draws=draws,
            seed=seed, model=model, model_flip_rate=rates.whole, rates=rates,
            noise=_noise(rows.classes, learned, reason),
            repeated=int((table.sum(axis=1) > 1).sum()), conflicts=int(((table > 0).sum(axis=1) > 1).sum()),
            disagreement=d, flip_rate=rate, difference=rates.difference,
            check=check,
            flagged=int(learned.flagged.sum()) if learned is not None and reason is None else 0, reason=reason,
            alarms=alarms,
            notes=(*chosen.reasons, *rows.notes, *(judged.notes if judged else ())), issues=tuple(issues[:show]),
            settings=RunSettings(
                sources=rows.files.sources[:1], item=tuple(item), labels=(label,), version=__version__,
                options={
                    "probs": rows.matrix_source if probs is not None else None,
                    "embeddings": rows.matrix_source if embeddings is not None else None, "row_id": row_id,
                    "missing": tuple(missing), "normalise": normalise, "folds": folds, "level": level,
                    "draws": draws, "seed": seed,
                },
            ),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class _Judged:
    """Probabilities (N, K) of the items, and where they come from."""

    probabilities: FloatArray
    kind: str
    folds: int | None = None
    unfinished: int = 0
    notes: tuple[str, ...] = ()


def _judge(
    rows: LabelledRows, table: IntArray, *, probs: bool, folds: int, seed: int, tell: Progress
) -> _Judged:
    if probs and rows.matrix is not None:
        return _Judged(probabilities=rows.matrix, kind="the probabilities given")
    used = min(folds, rows.items)
    notes = (f"{rows.items} items make {used} folds, not {folds}",) if used != folds else ()
    tell("features")
    features: Any = text_features(rows.texts()) if rows.matrix is None else rows.matrix
    trained = out_of_fold(
        features, item=rows.item, code=rows.code, classes=len(rows.classes),
        fold=deal_folds(table.argmax(axis=1), folds=used, seed=seed), progress=tell,
    )  # fmt: skip
    what = "words of the text" if rows.matrix is None else f"{rows.matrix.shape[1]} numbers an item"
    return _Judged(
        probabilities=trained.probabilities, kind=f"logistic regression on {what}, {used} folds over items",
        folds=used, unfinished=trained.unfinished, notes=notes,
    )  # fmt: skip


def _repeats(
    rows: LabelledRows, table: IntArray, *, level: float, draws: int, seed: int
) -> tuple[Disagreement, FlipRate]:
    patterns = CountPatterns.from_counts(table[table.sum(axis=1) > 1], classes=rows.classes)
    d = estimate_disagreement(patterns, level=level, draws=max(draws, 2_000), seed=seed)
    refused = deduplicated(patterns, table.sum(axis=0))
    if len(rows.classes) < 2:
        refused = "only one class is in the file"
    return d, estimate_flip_rate(d, classes=max(2, len(rows.classes)), refused=refused)


def _too_little(rows: LabelledRows) -> str | None:
    if len(rows.classes) < 2:
        return f"all labels are {rows.classes[0]!r}: with one class there is nothing to confuse"
    if rows.items < 2:
        return "there is only one item: nothing to train on"
    return None


def _noise(classes: tuple[str, ...], learned: Confident | None, reason: str | None) -> NoiseMatrix:
    if learned is None or reason is not None:
        return NoiseMatrix(classes=classes)
    matrix = tuple(tuple(map(float, row)) for row in learned.noise)
    return NoiseMatrix(classes=classes, prevalence=tuple(map(float, learned.prevalence)), given_true=matrix)
