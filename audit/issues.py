"""A model's view of the labels: confident learning on out-of-fold probabilities, beside the duplicate estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from audit.disagreement import estimate_disagreement
from audit.errors import ArgumentError, ColumnError
from audit.evidence import deduplicated
from audit.fliprate import estimate_flip_rate, flip_rate, maximum_disagreement
from audit.intervals import check_level, check_seed
from audit.issues_check import known_conflicts, measure, no_conflicts_known, no_measure
from audit.issues_model import Progress, deal_folds, out_of_fold, text_features
from audit.issues_noise import (
    Confident,
    learn,
    model_flip_rate,
    needs_extra,
    resampled_flip_rate,
    shuffled_flags,
)
from audit.issues_results import Issue, Issues, NoiseMatrix
from audit.issues_rows import LabelledRows, labelled_rows
from audit.issues_words import compose_issues_verdict, lacks_skill, raise_issue_alarms
from audit.paired import paired_difference
from audit.patterns import CountPatterns, FloatArray, IntArray
from audit.results import Disagreement, Estimate, FlipRate
from audit.results_base import RunSettings
from audit.version import __version__
from audit.writing import check_outputs, write_rows

__all__ = ["find_issues"]

_NONE = Estimate(estimate=None, method="none")


def find_issues(
    source: Any,
    *,
    item: Sequence[str],
    label: str,
    probs: Any = None,
    embeddings: Any = None,
    row_id: str | None = None,
    missing: Sequence[str] = (),
    normalise: str = "case",
    folds: int = 5,
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
        The columns that make an item, which are the text that the model reads, and the label column.
    probs:
        Out-of-sample probabilities of the user's own model in place of the default one: an array (rows of the file,
        classes in sorted order), an .npy file of one, or a table with a column for each class (its name, or
        ``p_`` and its name). A table is joined by ``row_id`` where that is given, by the item where it has the item
        columns, and else row by row.
    embeddings:
        Numbers that the default model reads in place of the text, in the same forms: an array, an .npy file, a table
        of numbers, or one with a column of lists.
    row_id:
        The column by which ``probs`` or ``embeddings`` are joined.
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
    if not item:
        raise ColumnError(
            "name the column or columns that make an item, which the model reads: --item COLUMN"
        )
    needs_extra()
    matrix = embeddings if probs is None else probs
    for read in (source, matrix) if out_rows is not None else ():
        check_outputs(read, out_rows)
    tell = progress or (lambda _: None)
    with labelled_rows(
        source, item=item, label=label, matrix=matrix, per_class=probs is not None, row_id=row_id, missing=missing,
        normalise=normalise, **reading,
    ) as rows:  # fmt: skip
        table = rows.table()
        d, rate = _repeats(rows, table, level=level, draws=draws, seed=seed)
        reason = _too_little(rows)
        model, check = no_measure(reason or ""), no_conflicts_known(table)
        learned, judged, by_model, difference = None, None, _NONE, _NONE
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
                by_model, difference = _set_beside(
                    learned, rows, table, p, rate, level=level, draws=draws, seed=seed
                )
        issues = _issues(rows, learned, judged, table, most=show if out_rows is None else None)
        if out_rows is not None:
            _write(out_rows, item, issues)
        alarms = raise_issue_alarms(
            model=model, d=d, rate=rate, reason=reason, unfinished=judged.unfinished if judged else 0,
            spread=rows.spread, folds=folds, class_items=(table > 0).sum(axis=0), classes=rows.classes,
            largest=float(table.sum(axis=1).max()), labelled=len(rows.code), given=probs is not None,
        )  # fmt: skip
        return Issues(
            verdict=compose_issues_verdict(
                by_model, rate, difference, repeated=int((table.sum(axis=1) > 1).sum()), reason=reason, alarms=alarms
            ),
            rows=rows.rows,
            labelled=len(rows.code), items=rows.items, without_probabilities=rows.unmatched, classes=rows.classes,
            class_rows=tuple(np.bincount(rows.code, minlength=len(rows.classes)).tolist()), level=level, draws=draws,
            seed=seed, model=model, model_flip_rate=by_model, noise=_noise(rows.classes, learned, reason),
            repeated=int((table.sum(axis=1) > 1).sum()), conflicts=int(((table > 0).sum(axis=1) > 1).sum()),
            disagreement=d, flip_rate=rate, difference=difference, check=check,
            flagged=int(learned.flagged.sum()) if learned is not None else 0, reason=reason, alarms=alarms,
            notes=(*rows.notes, *(judged.notes if judged else ())), issues=tuple(issues[:show]),
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


def _set_beside(
    learned: Confident, rows: LabelledRows, table: IntArray, p: FloatArray, rate: FlipRate, *, level: float,
    draws: int, seed: int,
) -> tuple[Estimate, Estimate]:  # fmt: skip
    """The flip rate by the model with its interval, and that less the one by the repeats.

    The two are estimated anew on resamples of items for their correlation; the difference has the MOVER interval.
    """
    rng = np.random.default_rng([seed, 1])
    size = table.sum(axis=1)
    pairs = (size * (size - 1)).clip(1)
    scores = np.where(size > 1, 1.0 - (table * (table - 1)).sum(axis=1) / pairs, 0.0)
    classes = len(rows.classes)
    both = np.full((draws, 2), np.nan)
    given = p[rows.item]
    for one in both:
        times = np.bincount(rng.integers(0, rows.items, rows.items), minlength=rows.items)
        one[0] = resampled_flip_rate(rows.code, given, times[rows.item])
        drawn = times[size > 1].sum()
        d = float(times @ scores) / drawn if drawn else np.nan
        if d <= maximum_disagreement(classes):
            one[1] = flip_rate(d, classes=classes)
    by_model = model_flip_rate(learned.flip_rate, both[:, 0], level=level)
    known = both[~np.isnan(both).any(axis=1)]
    moved = len(known) > 2 and bool(np.all(known.std(axis=0) > 1e-12))
    correlation = float(np.corrcoef(known.T)[0, 1]) if moved else 0.0
    return by_model, paired_difference(rate, by_model, correlation=correlation)


def _noise(classes: tuple[str, ...], learned: Confident | None, reason: str | None) -> NoiseMatrix:
    if learned is None or reason is not None:
        return NoiseMatrix(classes=classes)
    matrix = tuple(tuple(map(float, row)) for row in learned.noise)
    return NoiseMatrix(classes=classes, prevalence=tuple(map(float, learned.prevalence)), given_true=matrix)


def _issues(
    rows: LabelledRows,
    learned: Confident | None,
    judged: _Judged | None,
    table: IntArray,
    *,
    most: int | None,
) -> list[Issue]:
    """The flagged labels, the least likely first; ties in the order of the file."""
    if learned is None or judged is None:
        return []
    places = np.flatnonzero(learned.flagged)
    places = places[np.argsort(learned.score[places], kind="stable")][:most]
    suggested = learned.suggested[places]
    items = rows.item[places]
    return [
        Issue(
            row=int(rows.row[place]) + 1, item=text, label=rows.classes[rows.code[place]],
            suggested=rows.classes[told], score=float(learned.score[place]),
            suggested_probability=float(judged.probabilities[one, told]), conflict=bool((table[one] > 0).sum() > 1),
            labels=int(table[one].sum()),
        )
        for place, told, one, text in zip(places, suggested, items, rows.given(places), strict=True)
    ]  # fmt: skip


def _write(out: str | Path, item: Sequence[str], issues: Sequence[Issue]) -> None:
    columns = ["row", "given", "suggested", "score", "suggested_probability", "conflict", "labels"]
    write_rows(
        out, [*columns, *item],
        ((one.row, one.label, one.suggested, one.score, one.suggested_probability, one.conflict, one.labels, *one.item)
         for one in issues),
    )  # fmt: skip
