"""Near-duplicates: d of different texts that are alike, in their characters or in their words. Never in the headline.

Two texts that are alike may be two questions: what is measured here mixes label noise with real differences. Where d
falls towards the d of exact repeats as texts grow alike, near-duplicates act as repeats; where it stays high, they are
other questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from audit.disagreement import estimate_disagreement
from audit.errors import ArgumentError
from audit.grouping import Columns
from audit.near import Pairs, choose_bands, jaccard, shingle_sets
from audit.near_rows import pair_columns, pair_rows
from audit.near_search import MOST_PAIRS, MOST_TEXTS, joined_texts, search
from audit.near_table import Labelled, Table, tell
from audit.results import AuditResult, Disagreement
from audit.results_near import Measure, NearDuplicates
from audit.semantic import check_threshold
from audit.writing import write_rows

if TYPE_CHECKING:
    from audit.grouping_files import GroupedFiles

__all__ = ["ALSO_NEAR", "add_alike", "check_alike", "near_duplicates", "semantic_duplicates"]

#: Pairs of close vectors that share so much of their runs of characters are counted apart.
ALSO_NEAR = 0.85


def near_duplicates(
    source: Any,
    *,
    item: Sequence[str],
    label: str,
    threshold: float = 0.85,
    missing: Sequence[str] = (),
    normalise: str = "case",
    most: int = MOST_PAIRS,
    bins: int = 3,
    show: int = 20,
    level: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
    rows_file: str | Path | None = None,
    **reading: Any,
) -> NearDuplicates:
    """Find texts that share most of their characters, and how often their labels differ.

    Parameters
    ----------
    source, item, label, missing, normalise, level, draws, seed, reading:
        As in :func:`audit.duplicates.audit_duplicates`. The texts compared are the items in their normal form, so
        that exact repeats are one text.
    threshold:
        The least Jaccard similarity of the sets of five-character runs, in [0.5, 1).
    most:
        The most pairs that are looked at.
    bins:
        Classes of similarity between the threshold and 1.
    show:
        Pairs with different labels that are kept as examples, the most alike first.
    rows_file:
        A table to write all pairs to, with their rows and labels (:func:`audit.near_rows.pair_columns`).

    Raises
    ------
    MissingExtraError, ArgumentError, InputError
        The ``near`` extra is not installed; an option, a column or the file cannot be used.
    """
    table = Table(bins=bins, show=show, level=level, draws=draws, seed=seed)
    check_alike(source, near=threshold, semantic=None, most=most)
    labelled = _labelled(source, table, item, label, missing, normalise, reading, rows=rows_file is not None)
    told, pairs = _by_characters(labelled, table, threshold, most)
    _write(rows_file, item, labelled, {"jaccard": pairs})
    return told


def semantic_duplicates(
    source: Any,
    *,
    item: Sequence[str],
    label: str,
    threshold: float = 0.9,
    missing: Sequence[str] = (),
    normalise: str = "case",
    most: int = MOST_PAIRS,
    most_texts: int = MOST_TEXTS,
    bins: int = 3,
    show: int = 20,
    level: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
    rows_file: str | Path | None = None,
    **reading: Any,
) -> NearDuplicates:
    """Find texts whose words have close vectors, and how often their labels differ.

    Parameters
    ----------
    source, item, label, missing, normalise, bins, show, level, draws, seed, rows_file, reading:
        As in :func:`near_duplicates`.
    threshold:
        The least cosine of the mean vectors of the texts' words, in (0, 1].
    most, most_texts:
        The most pairs that may be found, and the most different texts: all are compared with all.

    Raises
    ------
    MissingExtraError, ArgumentError, InputError
        The ``semantic`` extra is not installed; an option, a column or the file cannot be used.
    """
    table = Table(bins=bins, show=show, level=level, draws=draws, seed=seed)
    check_alike(source, near=None, semantic=threshold, most=most)
    labelled = _labelled(source, table, item, label, missing, normalise, reading, rows=rows_file is not None)
    told, pairs = _by_words(labelled, table, threshold, most, most_texts)
    _write(rows_file, item, labelled, {"cosine": pairs})
    return told


def check_alike(
    source: Any,
    *,
    near: float | None,
    semantic: float | None,
    most: int,
    most_texts: int = MOST_TEXTS,
    engine: str = "duckdb",
    rows: str | Path | None = None,
    without: Mapping[str, bool] | None = None,
) -> None:
    """Raise the ArgumentError of what cannot be done, before anything is read.

    A threshold or number of pairs out of range, a source that cannot be read twice, or one that Spark groups; an
    option that would have no effect; and options (``without``, with whether they are given) that this search does not
    know, as it takes rows and labels as they stand in the file.
    """
    if semantic is None and most_texts != MOST_TEXTS:
        raise ArgumentError(
            "--semantic-texts is the most texts of --semantic: give that as well, or leave it out"
        )
    if near is None and semantic is None:
        alone = (
            ("--near-rows writes the pairs", rows is not None),
            ("--near-pairs is the most pairs", most != MOST_PAIRS),
        )
        for option, given in alone:
            if given:
                raise ArgumentError(f"{option} that --near or --semantic finds: give one of them")
        return
    unknown = [option for option, given in (without or {}).items() if given]
    if unknown:
        raise ArgumentError(
            f"--near and --semantic look at all rows and labels as they stand in the file: leave "
            f"{' and '.join(unknown)} out, or run them on a file where that is done"
        )
    if (isinstance(source, str) and source == "-") or engine != "duckdb":
        raise ArgumentError(
            "--near and --semantic need a file that can be read twice, by DuckDB: name it, and leave --engine out"
        )
    if most < 1:
        raise ArgumentError("near-duplicates need 1 pair at least: raise --near-pairs")
    if near is not None:
        choose_bands(near)
    if semantic is not None:
        check_threshold(semantic)


def add_alike(
    result: AuditResult,
    source: Any,
    columns: Columns,
    *,
    near: float | None,
    semantic: float | None,
    most: int,
    most_texts: int,
    reading: dict[str, Any],
    rows: str | Path | None = None,
) -> AuditResult:
    """The result with what is asked of ``near`` and ``semantic``; the source, audited with ``columns``, is read again.

    Raises
    ------
    ArgumentError
        There are too many texts or pairs.
    MissingExtraError
        The extra of what is asked for is not installed.
    """
    if near is None and semantic is None:
        return result
    settings, label = result.settings, str(columns.label)
    table = Table(level=settings.level, draws=settings.draws, seed=settings.seed)
    form = {name: value for name, value in reading.items() if name not in ("engine", "master")}
    labelled = _labelled(
        source, table, columns.item, label, settings.missing, settings.normalise, form,
        rows=rows is not None, exact=result.disagreement, declared=max(2, result.flip_rate.classes),
    )  # fmt: skip
    found: dict[Measure, Pairs] = {}
    if near is not None:
        told, found["jaccard"] = _by_characters(labelled, table, near, most)
        result = replace(result, near=told)
    if semantic is not None:
        told, found["cosine"] = _by_words(labelled, table, semantic, most, most_texts)
        result = replace(result, semantic=told)
    _write(rows, columns.item, labelled, found)
    return result


def _write(
    path: str | Path | None, item: Sequence[str], labelled: Labelled, found: dict[Measure, Pairs]
) -> None:
    """All pairs into a table, if one is asked for."""
    if path is not None:
        rows = (row for measure, pairs in found.items() for row in pair_rows(labelled, pairs, measure))
        write_rows(path, pair_columns(item), rows)


def _by_characters(
    labelled: Labelled, table: Table, threshold: float, most: int
) -> tuple[NearDuplicates, Pairs]:
    found = search("jaccard", labelled.texts, threshold=threshold, most=most, seed=table.seed)
    pairs = found.pairs
    return tell(labelled, pairs, table, threshold=threshold, recall=found.recall, measure="jaccard"), pairs


def _by_words(
    labelled: Labelled, table: Table, threshold: float, most: int, most_texts: int
) -> tuple[NearDuplicates, Pairs]:
    found = search(
        "cosine", labelled.texts, threshold=threshold, most=most, most_texts=most_texts, seed=table.seed
    )
    pairs = found.pairs
    used, place = np.unique(np.concatenate([pairs.first, pairs.second]), return_inverse=True)
    sets = shingle_sets([labelled.texts[row] for row in used.tolist()])
    shared = jaccard(sets, place[: len(pairs.first)], place[len(pairs.first) :])
    told = tell(
        labelled, pairs, table, threshold=threshold, recall=found.recall, measure="cosine", model=found.model,
        background=found.background, also_near=shared >= ALSO_NEAR,
    )  # fmt: skip
    return told, pairs


def _labelled(
    source: Any,
    table: Table,
    item: Sequence[str],
    label: str,
    missing: Sequence[str],
    normalise: str,
    reading: dict[str, Any],
    *,
    rows: bool,
    exact: Disagreement | None = None,
    declared: int = 2,
) -> Labelled:
    """The different texts of a source with their labels, and d of exact repeats, if it is not known yet."""
    from audit.grouping_files import group_files  # loads pandas

    with group_files(
        source, item=item, label=(label,), missing=missing, normalise=normalise, **reading
    ) as files:
        patterns = files.patterns("first")
        if exact is None:
            exact = estimate_disagreement(patterns, level=table.level, draws=table.draws, seed=table.seed)
        texts, shares = _texts(files, len(item))
        numbers, given = _rows(files, len(item)) if rows else ([], [])
        return Labelled(
            texts=texts, shares=shares, classes=files.classes, exact=exact, repeated=patterns.repeated.item_total,
            declared=max(declared, len(files.classes)), rows=numbers, given=given,
        )  # fmt: skip


def _rows(files: GroupedFiles, width: int) -> tuple[list[list[int]], list[tuple[str | None, ...]]]:
    """The rows of each text, counted from 1, and the columns of the item as the first of them has them."""
    first = ", ".join(f"arg_min(coalesce(t{k}, ''), row)" for k in range(width))
    found = files.con.execute(
        f"SELECT list(row + 1 ORDER BY row), {first} FROM votes JOIN (SELECT * EXCLUDE (side, row, label, id) FROM "
        "numbered) USING (r) GROUP BY g ORDER BY g"
    ).fetchall()
    return [row[0] for row in found], [row[1:] for row in found]


def _texts(files: GroupedFiles, width: int) -> tuple[list[str], sparse.csr_array]:
    """The different texts in their normal form, and the shares of their labels: shape (N, K), rows that sum to 1."""
    found = files.con.execute(
        f"SELECT any_value(text), list(code) FROM (SELECT g, code, {joined_texts(width)} AS text "
        "FROM votes JOIN grouped USING (r, g)) GROUP BY g ORDER BY g"
    ).fetchall()
    sizes = np.array([len(codes) for _, codes in found], np.int64)
    rows = np.repeat(np.arange(len(found)), sizes)
    flat = np.fromiter((code for _, codes in found for code in codes), np.int64, int(sizes.sum()))
    weights = 1.0 / np.repeat(sizes, sizes)
    shares = sparse.coo_array((weights, (rows, flat)), shape=(len(found), len(files.classes))).tocsr()
    return [text for text, _ in found], shares
