"""The files that ``audit leak`` writes: every leaked row, and the test file without them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from audit.grouping_files import GroupedFiles
from audit.leakage_near import NearRow
from audit.leakage_results import CleanTest
from audit.reading import open_table
from audit.writing import distinct, write_rows

__all__ = ["write_clean_test", "write_leaked_rows"]

_KINDS = {"jaccard": "near", "cosine": "semantic"}
_IN_TRAIN = "SELECT DISTINCT g FROM votes WHERE side = 'first'"


def write_leaked_rows(
    files: GroupedFiles, out: str | Path, item: Sequence[str], near: Sequence[NearRow], *, labelled: bool
) -> None:
    """Every leaked test row with its training rows: the equal ones in the order of the file, then the near ones.

    ``match`` is ``equal``, ``near`` (characters) or ``semantic`` (words); a near row names the training item that it is
    most alike, with its columns behind ``train_``.
    """
    width = len(item)
    pairs: list[tuple[str, float | None, int, int, int]] = [
        ("equal", None, g, g, 0) for (g,) in files.con.execute(_IN_TRAIN).fetchall()
    ]
    pairs += [(_KINDS[row.measure], row.similarity, row.test, row.train, k + 1) for k, row in enumerate(near)]
    files.con.register("pairs", pd.DataFrame(pairs, columns=["match", "similarity", "g", "train", "place"]))
    texts = ", ".join(f"o.t{k}" for k in range(width))
    theirs = ", ".join(f"b.s{k}" for k in range(width))
    firsts = ", ".join(f"arg_min(t{k}, row) AS s{k}" for k in range(width))
    train = (
        f"SELECT g AS train, string_agg(row + 1, ' ' ORDER BY row) AS rows, "
        f"string_agg(label, ' | ' ORDER BY row) AS labels, {firsts} "
        "FROM votes JOIN given USING (side, row, label) WHERE side = 'first' GROUP BY g"
    )
    own, other = ("v.label, ", ", b.labels") if labelled else ("", "")
    found = files.con.execute(
        f"SELECT v.row + 1, p.match, p.similarity, {texts}, {own}b.rows{other}, {theirs} FROM votes v "
        f"JOIN pairs p USING (g) JOIN ({train}) b USING (train) "
        "JOIN given o ON o.side = v.side AND o.row = v.row WHERE v.side = 'second' ORDER BY p.place, v.row"
    ).fetchall()
    files.con.unregister("pairs")
    labels = (("test_label",), ("train_labels",)) if labelled else ((), ())
    names = ["test_row", "match", "similarity", *item, *labels[0], "train_rows", *labels[1]]
    rows = (
        (row, match, None if similarity is None or similarity != similarity else float(similarity), *rest)
        for row, match, similarity, *rest in found
    )
    write_rows(out, distinct([*names, *(f"train_{name}" for name in item)]), rows)


def write_clean_test(
    files: GroupedFiles, test: Any, out: str | Path, near: Sequence[NearRow], **reading: Any
) -> CleanTest:
    """Write the test file without the rows of leaked items and of ``near`` ones, labelled or not, cells as read."""
    found = files.con.execute(
        f"SELECT row FROM grouped JOIN numbered USING (r) WHERE side = 'second' AND (g IN ({_IN_TRAIN}) "
        "OR g IN (SELECT unnest(?::BIGINT[])))", [[row.test for row in near]],
    ).fetchall()  # fmt: skip
    leaked = {row for (row,) in found}
    with open_table(test, **reading) as table:
        kept = (
            cells
            for place, cells in enumerate(cells for batch in table.rows() for cells in batch)
            if place not in leaked
        )
        rows = write_rows(out, table.columns, kept)
    return CleanTest(path=str(out), rows=rows, left_out=len(leaked))
