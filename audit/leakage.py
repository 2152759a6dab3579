"""Items of the test file that the training file holds too, and whether their labels came along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audit.errors import ArgumentError
from audit.grouping_files import GroupedFiles, group_files
from audit.intervals import check_level, clopper_pearson
from audit.labels import spelling_alarm
from audit.results import Alarm, Estimate, Result
from audit.results_base import RunSettings
from audit.version import __version__
from audit.writing import check_outputs, distinct, write_rows

__all__ = ["Leak", "LeakedItem", "find_leaks"]


@dataclass(frozen=True, kw_only=True)
class LeakedItem(Result):
    """An item of both files: its rows (from 1, without the header) and, if they were named, labels in each."""

    item: tuple[str, ...]
    train_rows: tuple[int, ...]
    test_rows: tuple[int, ...]
    train_labels: tuple[str, ...]
    test_labels: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Leak(Result):
    """What of the test file stands in the training file.

    ``share`` is the share of the test file's rows whose item is in the training file. It is a count, not an
    estimate: its limits (Clopper-Pearson) speak of further files drawn the same way. ``disagreement`` is the chance
    that the labels of a leaked item differ between the files, each item once. Remembering the training labels
    gives ``remembered`` of the leaked test rows right: the most frequent label of the item, one of them at random
    where several are.
    """

    train_rows: int
    test_rows: int
    items: int
    leaked_rows: int
    share: Estimate
    labelled: bool
    disagreement: Estimate
    remembered: float | None
    repeated_in_test: int
    alarms: tuple[Alarm, ...]
    examples: tuple[LeakedItem, ...]
    verdict: str
    settings: RunSettings

    def summary(self) -> str:
        """The finding in a few lines of text."""
        lines = [self.verdict, ""]
        lines.append(f"rows: {self.train_rows:,} to train on, {self.test_rows:,} to test on")
        lines.append(f"leaked: {self.leaked_rows:,} test rows of {self.items:,} items, {self.share.text()}")
        if self.disagreement.estimate is not None:
            lines.append(f"labels of a leaked item differ between the files: d {self.disagreement.text()}")
        if self.remembered is not None:
            lines.append(
                f"remembering the training labels gets {self.remembered:.3f} of the leaked test rows right"
            )
        if self.repeated_in_test:
            lines.append(f"{self.repeated_in_test:,} test rows repeat an item of another test row")
        for one in self.examples[:3]:
            text = " | ".join(one.item)
            cut = text if len(text) <= 70 else text[:69] + "…"
            lines.append(f"  test row {one.test_rows[0]} = train row {one.train_rows[0]}: {cut!r}")
        lines += [f"! {alarm.message}: {alarm.action}" for alarm in self.alarms]
        return "\n".join(lines)


def find_leaks(
    train: Any,
    test: Any,
    *,
    item: Sequence[str],
    label: str | None = None,
    label_test: str | None = None,
    missing: Sequence[str] = (),
    normalise: str = "case",
    level: float = 0.95,
    show: int = 20,
    out: str | Path | None = None,
    **reading: Any,
) -> Leak:
    """Find the items of ``test`` that stand in ``train`` too.

    Parameters
    ----------
    train, test:
        What :func:`audit.reading.open_table` reads.
    item:
        The columns that make an item, of the same names in both files.
    label, label_test:
        The label columns, if the labels are to be compared; the second where its name differs.
    missing, normalise, level, reading:
        As in :func:`audit.duplicates.audit_duplicates`.
    show, out:
        Leaked items kept in the result; a file (.csv, .jsonl, .parquet ...) for every leaked row of the test file.

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
    if out is not None:
        for source in (train, test):
            check_outputs(source, out)
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
        if out is not None:
            _write(files, out, item, labelled=label is not None)
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
        alarms=(*_alarms(leaked, rows, d, items), *([spelled] if spelled else ())), examples=examples,
        verdict=_verdict(leaked, rows, items),
        settings=RunSettings(
            sources=sources, item=tuple(item), labels=(label, label_test or label) if label else (),
            options={"missing": tuple(missing), "normalise": normalise, "level": level}, version=__version__,
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


def _write(files: GroupedFiles, out: str | Path, item: Sequence[str], *, labelled: bool) -> None:
    texts = ", ".join(f"t{k}" for k in range(len(item)))
    train = (
        "SELECT g, string_agg(row + 1, ' ' ORDER BY row) AS rows, string_agg(label, ' | ' ORDER BY row) AS labels "
        "FROM votes WHERE side = 'first' GROUP BY g"
    )
    own, theirs = ("label, ", ", labels") if labelled else ("", "")
    found = files.con.execute(
        f"SELECT row + 1, {texts}, {own}rows{theirs} FROM {_TEST} JOIN ({train}) USING (g) "
        "JOIN given USING (side, row, label) ORDER BY row"
    ).fetchall()
    labels = (("test_label",), ("train_labels",)) if labelled else ((), ())
    write_rows(out, distinct(["test_row", *item, *labels[0], "train_rows", *labels[1]]), found)


def _alarms(leaked: int, rows: int, d: Estimate, items: int) -> list[Alarm]:
    found = []
    if leaked:
        found.append(Alarm(
            code="leaked",
            severity="warning",
            message=f"{leaked:,} of {rows:,} test rows were trained on: a score on them is memory",
                action="take their items out of the training file, or score without them (--rows lists them)",
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


def _verdict(leaked: int, rows: int, items: int) -> str:
    if not rows:
        return "The test file has no row with an item (and a label, if one was named): nothing can leak."
    if not leaked:
        return f"No leak: none of the {rows:,} test rows has its item in the training file."
    return f"Leak: {leaked:,} of {rows:,} test rows ({leaked / rows:.1%}), {items:,} items, stand in the training file."
