"""Time and memory of the audit of a large file against a bare DuckDB group-by and a group-by in pandas.

The file has 2,000,000 rows of an item in two columns (a passage and a company) and a label; 6 % of the rows repeat an
item or are repeated, a fifth of these in other case or spacing. Each contender runs in a process of its own, in turns,
and tells its wall time, its processor time and the most memory it held; medians and their ratios are printed. On a
machine that does other things meanwhile, look at processor time.

    python benchmarks/audit_speed.py [--rows N] [--runs N] [--texts plain|openings|accents] [--file FILE]
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

SEED = 1
REPEATED = 0.06
ALTERED = 0.2
OPENINGS = [
    "According to the company, ",
    "The regulator said on Monday that ",
    "In a statement to investors, ",
]


def write_file(path: Path, rows: int, texts: str) -> None:
    """Write the made-up file: ``plain`` passages, some with shared ``openings``, or full of ``accents``."""
    rng = np.random.default_rng(SEED)
    letters = list("abcdefghijklmnopqrstuvwxyz" if texts != "accents" else "abcdefghijklmnopqrstuvwxyzéèàùç")
    words = np.array(["".join(rng.choice(letters, size=rng.integers(2, 10))) for _ in range(5_000)])
    pairs = round(rows * REPEATED / 2)
    places = rng.permutation(rows)[: 2 * pairs].reshape(-1, 2)
    twin = dict(zip(places.max(axis=1).tolist(), places.min(axis=1).tolist(), strict=True))
    kept: dict[int, tuple[str, str]] = dict.fromkeys(twin.values(), ("", ""))
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write("passage,company,label\n")
        for start in range(0, rows, 10_000):
            size = min(10_000, rows - start)
            drawn = words[rng.integers(len(words), size=(size, 26))]
            companies, chance = rng.integers(3_000, size=size), rng.random((size, 3))
            lines = []
            for k in range(size):
                place = start + k
                if place in twin:
                    passage, company = kept.pop(twin[place])
                    if chance[k, 0] < ALTERED / 2:
                        passage = passage.upper()
                    elif chance[k, 0] < ALTERED:
                        passage = passage.replace(
                            f" {passage.split()[k % 20]} ", f"  {passage.split()[k % 20]} "
                        )
                else:
                    passage, company = " ".join(drawn[k]), f"Company {companies[k]}"
                    if texts == "openings" and chance[k, 1] < 0.5:
                        passage = OPENINGS[k % len(OPENINGS)] + passage
                    elif k % 50 == 0:
                        passage = f"{passage[:60]}é – {passage[60:]}"
                    passage = passage[0].upper() + passage[1:] + "."
                    if place in kept:
                        kept[place] = (passage, company)
                lines.append(f'"{passage}",{company},{int(chance[k, 2] < 0.3)}\n')
            file.write("".join(lines))


def bare(path: str) -> int:
    """What DuckDB does by itself, exact strings only."""
    import duckdb

    con = duckdb.connect()
    con.execute(
        "CREATE TEMP TABLE found AS SELECT passage, company, label, count(*) AS rows "
        f"FROM read_csv('{path}', all_varchar = true) GROUP BY ALL"
    )
    return int(con.execute("SELECT count(*) FROM found").fetchall()[0][0])


def grouping(path: str) -> int:
    """The audit's reading and grouping, with normalisation, up to the count patterns."""
    from audit.grouping import Columns, group
    from audit.reading import open_table

    with open_table(path) as table:
        return group(table, Columns(item=("passage", "company"), label="label")).patterns.item_total


def whole(path: str) -> int:
    """All of ``audit dupes``: estimates, alarms, breakdowns, the hardest conflicts."""
    from audit.duplicates import audit_duplicates

    return audit_duplicates(path, item=("passage", "company"), label="label").repeats.items


def pandas(path: str) -> int:
    """What a user of pandas would write, exact strings only."""
    import pandas as pd

    frame = pd.read_csv(path, dtype=str)
    found = frame.groupby(["passage", "company"])["label"].agg(["size", "nunique"])
    return int((found["size"] > 1).sum())


def pandas_folded(path: str) -> int:
    """The same after lower case and single spaces."""
    import pandas as pd

    frame = pd.read_csv(path, dtype=str)
    for name in ("passage", "company"):
        frame[name] = frame[name].str.lower().str.split().str.join(" ")
    found = frame.groupby(["passage", "company"])["label"].agg(["size", "nunique"])
    return int((found["size"] > 1).sum())


CONTENDERS: dict[str, Callable[[str], int]] = {
    "bare DuckDB": bare,
    "grouping": grouping,
    "whole audit": whole,
    "pandas, exact": pandas,
    "pandas, folded": pandas_folded,
}


def most_memory() -> int:
    """The most memory this process held, in MB; by the kernel's own record where there is one."""
    import resource

    status = Path("/proc/self/status")
    if status.exists():
        return (
            next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
            // 1024
        )
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> (20 if sys.platform == "darwin" else 10)


def alone(name: str, path: str) -> None:
    """Run one contender in this process and print what it took, imports left out."""
    for module in ("pandas",) if name.startswith("pandas") else ("duckdb", "audit.duplicates"):
        importlib.import_module(module)
    wall, processor = time.perf_counter(), time.process_time()
    found = CONTENDERS[name](path)
    took = time.perf_counter() - wall, time.process_time() - processor
    print(json.dumps({"wall": took[0], "processor": took[1], "memory": most_memory(), "found": found}))


def main() -> None:
    """Print a table of medians and ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--texts", choices=["plain", "openings", "accents"], default="plain")
    parser.add_argument("--file", type=Path, help="use (or make and keep) this file")
    parser.add_argument("--skip", action="append", default=[], choices=list(CONTENDERS))
    parser.add_argument("--alone", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        alone(*options.alone)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = options.file or Path(folder) / "rows.csv"
        if not path.exists():
            write_file(path, options.rows, options.texts)
        print(f"{path.stat().st_size / 1e6:.0f} MB; medians of {options.runs} runs in turns")
        names = [name for name in CONTENDERS if name not in options.skip]
        taken: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        for run in range(options.runs):
            for name in names if run < 3 else [n for n in names if not n.startswith("pandas")]:
                command = [sys.executable, __file__, "--alone", name, str(path)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                taken[name].append(json.loads(done.stdout))
    base = {key: statistics.median(run[key] for run in taken[names[0]]) for key in ("wall", "processor")}
    print("contender | wall s | x bare | processor s | x bare | memory MB | found")
    for name, runs in taken.items():
        wall, processor, memory = (
            statistics.median(run[key] for run in runs) for key in ("wall", "processor", "memory")
        )
        print(
            f"{name} | {wall:.2f} | {wall / base['wall']:.2f} | {processor:.2f} | {processor / base['processor']:.2f}"
            f" | {memory:.0f} | {int(runs[0]['found']):,}"
        )


if __name__ == "__main__":
    main()
