"""The duplicate audit: from a table with repeats to disagreement, flip rate, ceiling, alarms and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from audit.agreement import estimate_agreement
from audit.alarms import raise_alarms
from audit.beyond import check_gold, error_rates, limits_of_metrics
from audit.breakdowns import break_down, copied_shares, interval_kind, mean_disagreement, reweight
from audit.ceiling import ceiling_band
from audit.columns import ChosenColumns, check_roles, guess
from audit.conflicts import write_conflicts
from audit.disagreement import IntervalKind, by_group_size, estimate_disagreement
from audit.errors import ArgumentError
from audit.evidence import Copies, Evidence, deduplicated
from audit.fliprate import estimate_flip_rate
from audit.grouping import Columns, Repeats, group
from audit.intervals import check_level, check_seed
from audit.labels import spelling_variants
from audit.moments import moment_bounds
from audit.near_duplicates import add_alike, check_alike
from audit.near_search import MOST_PAIRS, MOST_TEXTS
from audit.patterns import PairContrast
from audit.reading import Table, engine_of, open_table
from audit.results import (
    AuditResult,
    ConflictGroup,
    DataSummary,
    LadderRung,
    RepeatSummary,
    Settings,
)
from audit.verdict import compose_verdict
from audit.version import __version__
from audit.writing import check_tables

__all__ = ["audit_duplicates", "audit_table"]

#: Characters of a text, which has several words: a shorter item may be an id.
_TEXT = 20


def audit_duplicates(
    source: Any,
    *,
    item: str | Sequence[str] = (),
    label: str | None = None,
    label_columns: Sequence[str] = (),
    counts: Sequence[str] = (),
    row_id: str | None = None,
    annotator: str | None = None,
    time: str | None = None,
    split: str | None = None,
    by: Sequence[str] = (),
    classes: Sequence[str] | None = None,
    missing: Sequence[str] = (),
    normalise: str = "case",
    merge_labels: bool = False,
    drop_copies: bool = False,
    one_per: str | None = None,
    errors: bool = False,
    strata: str | None = None,
    gold: str | None = None,
    near: float | None = None,
    near_pairs: int = MOST_PAIRS,
    near_rows: str | Path | None = None,
    semantic: float | None = None,
    semantic_texts: int = MOST_TEXTS,
    ladder: bool | None = None,
    level: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
    interval: IntervalKind = "wilson",
    show_conflicts: int = 200,
    conflicts_file: str | Path | None = None,
    look: Callable[[Repeats], None] | None = None,
    **reading: Any,
) -> AuditResult:
    """Audit the repeats of a table.

    Parameters
    ----------
    source:
        A path (CSV, TSV, Parquet, JSONL, xlsx, gzip too), a database, a URL, ``"-"`` for standard input, or a pandas,
        Polars, Arrow, DuckDB or PySpark frame. PySpark's is grouped in Spark; only counts and the conflicts shown
        leave it.
    item:
        Column or columns that make an item: its text, or its id. Guessed when neither it nor ``label`` is given.
    label:
        The label column (long form). Wide form: ``label_columns``, one vote a column, or ``counts``, one column of
        vote counts a class; one row is then one item unless ``item`` says otherwise.
    row_id, annotator, time, split, by:
        Columns that tell records, people, moments, splits and any other parts apart.
    classes:
        The declared classes, K of them; the labels seen when not given.
    missing:
        Labels that mean "no label"; an empty cell always does.
    normalise:
        How texts are compared: ``none``, ``space``, ``case`` (Unicode form, case and white space) or
        ``punctuation``.
    merge_labels, drop_copies, one_per:
        Merge spellings of one label; leave copied records out; keep an item's first label for each value of a
        column.
    errors, strata:
        Error rates by what the repeats allow; a column of populations with different class shares (Hui & Walter).
    gold:
        A column with gold labels, or a file with the item's columns and one more.
    near, near_pairs, near_rows, semantic, semantic_texts:
        Thresholds, the most pairs, a file for all of them and the most texts of :mod:`audit.near_duplicates`.
    ladder:
        d at every level of normalisation; by default only up to 500,000 rows.
    level, draws, seed, interval:
        Of the intervals, see :func:`audit.disagreement.estimate_disagreement`.
    show_conflicts, conflicts_file:
        Disagreeing items kept in the result (hardest first); a file for all of them.
    look:
        Is called with the grouped table while it is open.
    reading:
        ``delimiter``, ``encoding``, ``sheet``, ``ragged``, ``engine``, ``master`` of :func:`audit.reading.open_table`.

    Returns
    -------
    AuditResult
        Degenerate data (no repeats, one class, d above its maximum) give None with a reason, not an error.

    Raises
    ------
    InputError
        The table cannot be read, lacks a column or has no rows.
    ArgumentError
        An argument is out of range or contradicts another.
    """
    check_level(level)
    check_seed(seed)
    if draws < 1 or show_conflicts < 0:
        raise ArgumentError("the bootstrap needs at least 1 draw, and the conflicts shown are 0 or more")
    check_tables(conflicts_file, near_rows)
    reading.setdefault("engine", engine_of(source))
    check_alike(
        source, near=near, semantic=semantic, most=near_pairs, most_texts=semantic_texts, engine=reading["engine"],
        rows=near_rows, without={
            "--label-columns": bool(label_columns), "--counts": bool(counts), "--merge-labels": merge_labels,
            "--drop-copies": drop_copies, "--one-per": one_per is not None,
        },
    )  # fmt: skip
    if gold is not None and reading["engine"] != "duckdb":
        raise ArgumentError(
            "--gold is compared item by item, in DuckDB: leave it out, or --engine spark (of a PySpark frame give "
            "toPandas())"
        )
    with open_table(source, **reading) as table:
        items = (item,) if isinstance(item, str) else tuple(item)
        chosen = guess(table, item=items, label=label, label_columns=label_columns, counts=counts)
        named = {"row_id": row_id, "annotator": annotator, "time": time, "split": split, "by": by}
        check_roles(table, **named, one_per=one_per, strata=strata, gold=gold)
        described = (row_id, annotator, time, split, *by)
        more = () if one_per is None or one_per in described else (one_per,)
        columns = Columns(
            item=chosen.item, label=chosen.label, label_columns=tuple(label_columns), counts=tuple(counts),
            row_id=row_id, annotator=annotator, time=time, split=split, by=(*by, *more), strata=strata,
            gold=gold if gold in table.columns else None,
        )  # fmt: skip
        settings = Settings(
            version=__version__, level=level, draws=draws, seed=seed, normalise=normalise, interval=interval,
            merge_labels=merge_labels, drop_copies=drop_copies, one_per=one_per, missing=tuple(missing),
        )  # fmt: skip
        result = audit_table(
            table, columns, settings=settings, classes=classes, ladder=ladder, notes=_notes(chosen, columns),
            errors=errors or strata is not None, gold=gold, show_conflicts=show_conflicts,
            conflicts_file=conflicts_file, look=look,
        )  # fmt: skip
    return add_alike(
        result, source, columns, near=near, semantic=semantic, most=near_pairs, most_texts=semantic_texts,
        reading=reading, rows=near_rows,
    )  # fmt: skip


def _notes(chosen: ChosenColumns, columns: Columns) -> tuple[str, ...]:
    """What was guessed, and the columns by whose names more could be told."""
    roles = (
        ("--split", chosen.split, columns.split),
        ("--annotator", chosen.annotator, columns.annotator),
        ("--row-id", chosen.row_id, columns.row_id),
        ("--time", chosen.time, columns.time),
    )
    unused = [
        f"{option} {name}" for option, name, given in roles if name and not given and name not in columns.by
    ]
    more = (f"more could be told with {', '.join(unused)}, by the names of these columns",) if unused else ()
    return (*chosen.reasons, *more)


def audit_table(
    table: Table,
    columns: Columns,
    *,
    settings: Settings,
    classes: Sequence[str] | None = None,
    ladder: bool | None = None,
    notes: Sequence[str] = (),
    errors: bool = False,
    gold: str | None = None,
    show_conflicts: int = 200,
    conflicts_file: str | Path | None = None,
    look: Callable[[Repeats], None] | None = None,
) -> AuditResult:
    """Audit an open table whose columns are known; see :func:`audit_duplicates`."""
    repeats = group(
        table, columns, normalise=settings.normalise, missing=settings.missing, classes=classes,
        merge_labels=settings.merge_labels, drop_copies=settings.drop_copies, one_per=settings.one_per,
    )  # fmt: skip
    patterns, level = repeats.patterns, settings.level
    if look is not None:
        look(repeats)
    d = estimate_disagreement(
        patterns, level=level, draws=settings.draws, seed=settings.seed, interval=interval_kind(settings)
    )
    refused = deduplicated(patterns, repeats.class_rows)
    rate = estimate_flip_rate(d, classes=len(repeats.classes), refused=refused)
    band = replace(
        ceiling_band(d, rate, minority_share=_minority(repeats)),
        moments=moment_bounds(patterns, level=level, seed=settings.seed, refused=rate.reason),
    )
    by, comparisons = break_down(repeats, columns, settings)
    reweighted = reweight(repeats, columns, d)
    agreement = estimate_agreement(patterns, level=level)
    summary = _repeat_summary(repeats, settings.normalise, ladder)
    measured = d.estimate is not None
    copies = _copies(repeats, columns) if measured and not settings.drop_copies else None
    rates = None
    if errors:
        rates = error_rates(repeats, strata=columns.strata, settings=settings, refused=refused)
    against = check_gold(repeats, gold, rate=rate, level=level) if gold is not None else None
    evidence = Evidence(
        patterns=patterns, d=d, kappa=agreement.kappa, class_rows=repeats.class_rows, unused=_unused(table, columns),
        ladder=summary.ladder, normalise=settings.normalise, spellings=spelling_variants(repeats.classes),
        merged=settings.merge_labels, copies=copies,
        contrasts=_contrasts(repeats, columns) if measured else {}, comparisons=comparisons, split=columns.split,
        reweighted=reweighted, moments=band.moments, errors=rates, gold=against,
    )  # fmt: skip
    alarms, conflicts = raise_alarms(evidence), tuple(repeats.conflicts(show_conflicts))
    if conflicts_file is not None:
        write_conflicts(repeats, conflicts_file)
    return AuditResult(
        verdict=compose_verdict(
            repeats=summary, d=d, rate=rate, band=band, alarms=alarms,
            unrepeated=repeats.items_total - summary.items, texts=columns.is_long and _are_texts(conflicts),
        ),
        data=_data_summary(table, columns, repeats, notes),
        repeats=summary,
        disagreement=d,
        flip_rate=rate,
        ceiling=band,
        agreement=agreement,
        metrics=limits_of_metrics(patterns, d, rate),
        by=by,
        comparisons=comparisons,
        copied_share=copied_shares(d, len(repeats.classes), refused=rate.estimate is None),
        reweighted=reweighted,
        errors=rates,
        gold=against,
        alarms=alarms,
        settings=settings,
        conflicts=conflicts,
        patterns=patterns,
    )  # fmt: skip


def _are_texts(conflicts: Sequence[ConflictGroup]) -> bool:
    """Whether the items of the conflicts are texts of several words."""
    texts = [" ".join(group.item) for group in conflicts]
    return bool(texts) and all(len(text) >= _TEXT and " " in text for text in texts)


def _data_summary(table: Table, columns: Columns, repeats: Repeats, notes: Sequence[str]) -> DataSummary:
    report = table.report
    return DataSummary(
        source=report.source, format=report.format, encoding=report.encoding, delimiter=report.delimiter,
        item=columns.item, label=columns.label, label_columns=columns.label_columns or columns.counts,
        rows=repeats.rows, missing_label=repeats.missing_label, missing_item=repeats.missing_item,
        items=repeats.items_total, classes=repeats.classes,
        class_rows=tuple(int(n) for n in repeats.class_rows),
        notes=(*report.notes, *notes, *repeats.notes),
    )  # fmt: skip


def _repeat_summary(repeats: Repeats, normalise: str, ladder: bool | None) -> RepeatSummary:
    patterns = repeats.patterns.repeated
    rungs = tuple(
        LadderRung(
            level=rung.level, items=rung.items, rows=rung.rows, conflicts=rung.conflicts,
            estimate=mean_disagreement(rung.patterns),
        )
        for rung in repeats.ladder(force=ladder)
    )  # fmt: skip
    return RepeatSummary(
        items=patterns.item_total,
        rows=int(patterns.sizes @ patterns.items),
        pairs=int(patterns.pairs @ patterns.items),
        conflicts=int(patterns.items[patterns.disagreement > 0].sum()),
        sizes=by_group_size(patterns),
        normalise=normalise,
        ladder=rungs if any(rung.items for rung in rungs) else (),
    )


def _minority(repeats: Repeats) -> float | None:
    total = int(repeats.class_rows.sum())
    if len(repeats.classes) != 2 or total == 0:
        return None
    return float(repeats.class_rows.min()) / total


def _contrasts(repeats: Repeats, columns: Columns) -> dict[str, tuple[str, PairContrast]]:
    """Pairs of labels that may depend on one another against the others, by the alarm that they may raise."""
    contrasts: dict[str, tuple[str, PairContrast]] = {}
    if columns.annotator is not None:
        contrasts["same annotator"] = (columns.annotator, repeats.contrast(columns.annotator))
    if columns.is_long:
        contrasts["adjacent rows"] = ("", repeats.contrast("__adjacent"))
        if columns.row_id is not None:
            contrasts["row id"] = (columns.row_id, repeats.contrast(columns.row_id))
    if columns.time is not None:
        contrasts["same minute"] = (columns.time, repeats.contrast("__minute"))
    return contrasts


def _unused(table: Table, columns: Columns) -> tuple[str, ...]:
    """Columns of a long table that have no part in the audit."""
    used = {*columns.item, columns.label, *columns.details}
    return tuple(name for name in table.columns if name not in used) if columns.is_long else ()


def _copies(repeats: Repeats, columns: Columns) -> Copies | None:
    found = repeats.without_copies()
    if found is None:
        return None
    by_row_id = columns.row_id is not None
    contrast = None if by_row_id else repeats.contrast("__extras")
    return Copies(rows=found.rows, by_row_id=by_row_id, without=found.patterns, contrast=contrast)
