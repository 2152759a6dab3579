#!/usr/bin/env python3
"""Write risk_driver.csv and risk_driver_truth.csv: a synthetic labelled file whose truth and noise are known.

    python examples/generate.py               # rewrites the two files beside this script
    python examples/generate.py --seed 7 --items 600 --rows 700 --out /tmp

The same options give the same bytes on every platform. Nothing but Python 3.11 or later is needed.
"""

import argparse
import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from riskdriver.labelling import label_items
from riskdriver.stories import write_items

SEED = 5
ITEMS = 6221
ROWS = 6580
DATA_COLUMNS = ("id", "passage", "entity", "driver", "split", "annotator", "created_at", "label")
TRUTH_COLUMNS = ("passage", "entity", "driver", "truth", "difficulty", "clause", "story")


def tables(*, seed: int, items: int, rows: int) -> tuple[list[Sequence[object]], list[Sequence[object]]]:
    """The rows of the labelled file, and of the truth file: one for each item, joined by what is asked."""
    passages = write_items(items=items, seed=seed)
    flat = [item for passage in passages for item in passage]
    data: list[Sequence[object]] = []
    for number, row in enumerate(label_items(passages, rows=rows, seed=seed), start=1):
        item = flat[row.item]
        question = (item.passage, item.entity, item.driver)
        data.append((f"r{number:05d}", *question, row.split, row.annotator, row.created_at, row.label))
    truth: list[Sequence[object]] = [
        (i.passage, i.entity, i.driver, i.truth, "hard" if i.hard else "easy", i.clause, i.story)
        for i in flat
    ]
    return data, truth


def write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a UTF-8 CSV with line feeds, whatever the platform."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def main() -> None:
    """Read the options and write both files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=SEED, help="of every choice (default: %(default)s)")
    parser.add_argument("--items", type=int, default=ITEMS, help="distinct questions (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=ROWS, help="labels in all (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder to write to")
    options = parser.parse_args()
    if options.items < 1 or not options.items <= options.rows <= 2 * options.items:
        parser.error("--rows must lie between --items and twice --items, and --items must be at least 1")
    data, truth = tables(seed=options.seed, items=options.items, rows=options.rows)
    write(options.out / "risk_driver.csv", DATA_COLUMNS, data)
    write(options.out / "risk_driver_truth.csv", TRUTH_COLUMNS, truth)
    print(f"{len(data)} labels of {options.items} items written to {options.out}")


if __name__ == "__main__":
    main()
