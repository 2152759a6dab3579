"""The curve of a run: a CSV file with a line a step, which a kill cannot spoil."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from audit.writing import write_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Curve"]

Value = float | int | str | None


class Curve:
    """A CSV file with a column ``step`` and others that come as they are first named.

    A line is written in one go; the last one is dropped where it was cut before its line break.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._columns: list[str] | None = None

    def add(self, values: Mapping[str, Value]) -> None:
        """Append a line; ``values`` holds ``step`` and numbers. NaN and None are empty cells."""
        columns = self._mend() if self._columns is None else self._columns
        new = [name for name in values if name not in columns]
        if new:
            columns = [*columns, *new]
            self._write(self._lines(), columns)
        self._columns = columns
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow([_cell(values.get(name)) for name in columns])
        with self.path.open("a", encoding="utf-8", newline="") as file:
            file.write(line.getvalue())

    def cut(self, step: int) -> None:
        """Drop the lines after ``step``."""
        if self.path.is_file():
            self._columns = self._mend()
            self._write([line for line in self._lines() if int(line["step"]) <= step], self._columns)

    def read(self) -> pd.DataFrame:
        """A column ``step`` and one for each value, numbers where all of it is; NaN where a step has none."""
        import pandas as pd

        if not self.path.is_file():
            return pd.DataFrame({"step": pd.Series(dtype="int64")})
        frame = pd.DataFrame(self._lines(), columns=self._header(), dtype=object)
        for name in frame.columns:
            filled = frame[name].where(frame[name] != "")
            numbers = pd.to_numeric(filled, errors="coerce")
            frame[name] = numbers if numbers.notna().sum() == filled.notna().sum() else filled
        return frame

    def _header(self) -> list[str]:
        with self.path.open(encoding="utf-8", errors="replace", newline="") as file:
            return next(csv.reader(file), ["step"])

    def _lines(self) -> list[dict[str, str]]:
        """The whole lines."""
        if not self.path.is_file():
            return []
        text = self.path.read_bytes().decode("utf-8", "replace")
        whole = io.StringIO(text[: text.rfind("\n") + 1], newline="")
        return list(csv.DictReader(whole))

    def _mend(self) -> list[str]:
        """Make the file where there is none, drop a line that was cut; returns the columns."""
        if not self.path.is_file():
            self._write([], ["step"])
        elif not self.path.read_bytes().endswith(b"\n"):
            lines = self._lines()
            self._write(lines, list(lines[0]) if lines else ["step"])
        return self._header()

    def _write(self, lines: Sequence[Mapping[str, str]], columns: Sequence[str]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
        write_text(self.path, text.getvalue())


def _cell(value: Value) -> Value:
    return "" if value is None or (isinstance(value, float) and not math.isfinite(value)) else value
