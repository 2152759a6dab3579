"""Items of the test file that the training file holds too, and whether their labels came along."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from audit.errors import ArgumentError
from audit.grouping_choice import choose_columns
from audit.grouping_files import GroupedFiles, group_files
from audit.intervals import check_level, clopper_pearson
from audit.labels import spelling_alarm
from audit.leakage_lists import write_clean_test, write_leaked_rows
from audit.leakage_near import find_near_leaks, rows_of
from audit.leakage_results import Leak, LeakedItem, NearLeak
from audit.near_duplicates import check_alike
from audit.near_search import MOST_PAIRS, MOST_TEXTS
from audit.results import Alarm, Estimate
from audit.results_base import RunSettings
from audit.version import __version__
from audit.writing import check_outputs, check_tables

__all__ = ["Leak", "LeakedItem", "find_leaks"]


def find_leaks(
    train: Any,
    test: Any,
    *,
    item: Sequence[str] = (),
    label: str | None = None,
    label_test: str | None = None,
    missing: Sequence[str] = (),
    normalise: str = "case",
    level: float = 0.95,
    show: int = 20,
    out: str | Path | None = None,
    clean: str | Path | None = None,
    near: float | None = None,
    semantic: float | None = None,
    near_pairs: int = MOST_PAIRS,
    semantic_texts: int = MOST_TEXTS,
    count_near: bool = False,
    seed: int = 0,
    **reading: Any,
) -> Leak:
    """Find the items of ``test`` that stand in ``train`` too.

    Parameters
    ----------
    train, test:
        What :func:`audit.reading.open_table` reads.
    item:
        The columns that make an item, of the same names in both files; guessed from the first if not given.
    label, label_test:
        The label columns, if the labels are to be compared; the second where its name differs.
    missing, normalise, level, reading:
        As in :func:`audit.duplicates.audit_duplicates`.
    show, out:
        Leaked items kept in the result; a file (.csv, .jsonl, .parquet ...) for every leaked row of the test file.
    near, semantic:
        Also look for test texts that are so much alike a training text in their characters (Jaccard similarity of
        runs of five, 0.5 to below 1) or in their words (cosine, above 0 to 1); see :mod:`audit.near_duplicates`.
    near_pairs, semantic_texts, seed:
        The most pairs and texts that these look at; the seed of their random draws.
    count_near:
        Whether near rows count as leaked ones do for ``counted_rows`` and ``clean``.
    clean:
        A file for the test file without the rows that count.

    Raises
    ------
    InputError, ArgumentError
        A file, a column or an option cannot be used.
    """
    check_level(level)
    if label_test is not None and label is None:
        raise ArgumentError(
            "--label-test is the label column of the second file: name the first's with --label"
        )
    if not 0 <= show <= 10**9:
        raise ArgumentError(f"show is {show}: give 0 to a billion leaked items to show")
    check_outputs([train, test], out, clean)
    check_tables(out, clean)
    check_alike(test, near=near, semantic=semantic, most=near_pairs, most_texts=semantic_texts)
    if count_near and near is None and semantic is None:
        raise ArgumentError("--count-near counts what --near or --semantic finds: give one of them")
    if clean is not None and isinstance(test, str) and test == "-":
        raise ArgumentError("--clean-test reads the test file twice: name it, in place of standard input")
    chosen = choose_columns(train, item=item, label=label, with_label=False, **reading)
    item = chosen.item
    with group_files(
        train, test, item=item, label=(label, (label_test or label) if label else None), second_label="--label-test",
        missing=missing, normalise=normalise, **reading,
    ) as files:  # fmt: skip
        leaked = files.count(f"{_TEST} SEMI JOIN ({_IN_TRAIN}) USING (g)")
        items = files.items()
        repeated = files.count(_TEST) - files.items("second")
        rows = files.labelled[1]
        differ, remembered = _labels(files) if label else (None, None)
        examples = tuple(_examples(files, len(item), show, labelled=label is not None))
        by_characters, by_words, alike = find_near_leaks(
            files, len(item), near=near, semantic=semantic, most=near_pairs, most_texts=semantic_texts, show=show,
            level=level, seed=seed,
        )  # fmt: skip
        if out is not None:
            write_leaked_rows(files, out, item, alike, labelled=label is not None)
        counting = alike if count_near else []
        counted = leaked + rows_of(files, [row.test for row in counting])
        cleaned = None if clean is None else write_clean_test(files, test, clean, counting, **reading)
        total, sources = files.rows, files.sources
        spelled = spelling_alarm(files.classes) if label else None
    low, high = clopper_pearson(leaked, rows, level=level) if rows else (None, None)
    share = Estimate(estimate=leaked / rows if rows else None, low=low, high=high, method="Clopper-Pearson")
    d = Estimate(estimate=None, method="none")
    if differ is not None and items:
        low, high = clopper_pearson(differ, items, level=level)
        d = Estimate(estimate=differ / items, low=low, high=high, method="Clopper-Pearson at items")
    return Leak(
        train_rows=total[0], test_rows=total[1], items=items, leaked_rows=leaked, share=share,
        labelled=label is not None, disagreement=d, remembered=remembered, repeated_in_test=repeated,
        alarms=(
            *_alarms(leaked, rows, d, items), *_near_alarms(by_characters, by_words), *([spelled] if spelled else ()),
        ),
        examples=examples,
        verdict=_verdict(leaked, rows, items), near=by_characters, semantic=by_words, counted_rows=counted,
        counted_share=counted / rows if rows else None, cleaned=cleaned, notes=chosen.reasons,
        settings=RunSettings(
            sources=sources, item=tuple(item), labels=(label, label_test or label) if label else (),
            options={
                "missing": tuple(missing), "normalise": normalise, "level": level, "near": near,
                "semantic": semantic, "count_near": count_near or None,
            },
            version=__version__,
        ),
    )  # fmt: skip


_IN_TRAIN = "SELECT DISTINCT g FROM votes WHERE side = 'first'"
_TEST = "(SELECT * FROM votes WHERE side = 'second')"


def _labels(files: GroupedFiles) -> tuple[float, float | None]:
    """The summed chance that labels differ across the files, and the share that memory of the first gets right."""
    cells = "SELECT side, g, code, count(*) AS n FROM votes GROUP BY ALL"
    shares = f"SELECT *, n / sum(n) OVER (PARTITION BY side, g) AS p FROM ({cells})"
    agree = files.number(
        f"SELECT coalesce(sum(a.p * b.p), 0) FROM ({shares}) a JOIN ({shares}) b USING (g, code) "
        "WHERE a.side = 'first' AND b.side = 'second'"
    )
    items = files.items()
    memory = (
        "SELECT g, code, 1 / count(*) OVER (PARTITION BY g) AS chance FROM ("
        f"SELECT *, max(n) OVER (PARTITION BY g) AS most FROM ({cells}) WHERE side = 'first') WHERE n = most"
    )
    right = files.con.execute(
        f"SELECT avg(coalesce(chance, 0)) FROM {_TEST} SEMI JOIN ({_IN_TRAIN}) USING (g) "
        f"LEFT JOIN ({memory}) USING (g, code)"
    ).fetchall()[0][0]
    return float(items - agree), None if right is None else float(right)


def _examples(files: GroupedFiles, width: int, show: int, *, labelled: bool) -> list[LeakedItem]:
    texts = ", ".join(f"any_value(t{k})" for k in range(width))
    listed = ", ".join(
        f"list({what} ORDER BY row) FILTER (side = '{side}')"
        for what in ("row + 1", "label")
        for side in ("first", "second")
    )
    found = files.con.execute(
        f"SELECT {texts}, {listed} FROM votes JOIN given USING (side, row, label) GROUP BY g "
        f"HAVING count(DISTINCT side) = 2 ORDER BY min(row) FILTER (side = 'second') LIMIT {show}"
    ).fetchall()
    return [
        LeakedItem(item=tuple(text or "" for text in row[:width]), train_rows=tuple(row[width]),
                   test_rows=tuple(row[width + 1]), train_labels=tuple(row[width + 2]) if labelled else (),
                   test_labels=tuple(row[width + 3]) if labelled else ())
        for row in found
    ]  # fmt: skip


def _alarms(leaked: int, rows: int, d: Estimate, items: int) -> list[Alarm]:
    found = []
    if leaked:
        found.append(Alarm(
            code="leaked",
            severity="warning",
            message=f"{leaked:,} of {rows:,} test rows were trained on: a score on them is memory",
            action="take their items out of the training file, or score without them (--rows lists them, "
            "--clean-test writes the test file without them)",
            figures={"rows": leaked, "share": leaked / rows},
        ))  # fmt: skip
    if d.low is not None and d.estimate is not None and items >= 20 and d.estimate == 0.0:
        found.append(Alarm(
            code="labels_came_along",
            severity="note",
            message=f"all {items:,} leaked items have the same label in both files: copies of rows rather than items "
            "that were labelled twice",
            action="look where the two files come from: one may have been drawn from the other",
            figures={"items": items},
        ))  # fmt: skip
    return found


def _near_alarms(*parts: NearLeak | None) -> list[Alarm]:
    """A note for each search that found anything that texts taken at random do not show as well."""
    return [
        Alarm(
            code="near_leak", severity="note",
            message=f"{part.rows:,} test rows are nearly a training text {part.alike} ({part.threshold:g} or more)",
            action="read some (--rows lists them): --count-near counts them as leaked for --fail-over and --clean-test",
            figures={"rows": part.rows, "threshold": part.threshold},
        )
        for part in parts
        if part is not None and part.rows and (part.background is None or part.background < part.threshold)
    ]  # fmt: skip


def _verdict(leaked: int, rows: int, items: int) -> str:
    if not rows:
        return "The test file has no row with an item (and a label, if one was named): nothing can leak."
    if not leaked:
        return f"No leak: none of the {rows:,} test rows has its item in the training file."
    return f"Leak: {leaked:,} of {rows:,} test rows ({leaked / rows:.1%}), {items:,} items, stand in the training file."
