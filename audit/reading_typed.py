"""Sources that carry types -- data frames, Parquet, workbooks, JSON -- turned into text columns."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw

from audit.errors import ArgumentError, InputError

__all__ = [
    "cell_text",
    "cell_texts",
    "described",
    "file_literal",
    "json_keys",
    "json_rows",
    "literal",
    "masked",
    "quote",
    "register_frame",
    "sheet_rows",
    "text_columns",
    "whole_tests",
]


def quote(identifier: str) -> str:
    """Return ``identifier`` as a quoted SQL name."""
    return '"' + identifier.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return ``text`` as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def file_literal(path: Path) -> str:
    """Return a path as an SQL string that DuckDB does not take for a pattern."""
    return literal(re.sub(r"([\[*?])", r"[\1]", str(path)))


def text_columns(con: duckdb.DuckDBPyConnection, relation: str) -> tuple[list[str], list[str], list[int]]:
    """Return the names of a relation's columns, an SQL expression that gives each as text, and which lost a point.

    Numbers become their plain string, a column of decimals that holds only whole numbers becomes whole (``1``,
    not ``1.0``: what data frames make of whole numbers with gaps), NaN is missing, dates are ISO, nested values JSON.
    """
    kinds = described(con, relation)
    tests = whole_tests(kinds)
    whole: set[str] = set()
    if tests:
        answers = con.execute(f"SELECT {', '.join(tests.values())} FROM {relation}").fetchone() or ()
        whole = {name for name, answer in zip(tests, answers, strict=True) if answer}
    return list(kinds), cell_texts(kinds, whole), [place for place, name in enumerate(kinds) if name in whole]


def described(con: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
    """Return the type of each column of a relation."""
    found = con.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    return {str(row[0]): str(row[1]) for row in found}


def whole_tests(kinds: Mapping[str, str]) -> dict[str, str]:
    """Return for each column of decimals an SQL aggregate: whether it holds only whole numbers; NULL if none."""
    # NaN is told by its text: isnan() trusts the statistics of Parquet files, which leave NaN out
    return {
        name: f"bool_and({c}::VARCHAR = 'nan' OR ({c} = trunc({c}) AND abs({c}) < 1e15))"
        for name, c in ((name, quote(name)) for name, kind in kinds.items() if kind in _DECIMALS)
    }


_DECIMALS = ("DOUBLE", "FLOAT")


def masked(cells: Sequence[str], missing: Sequence[str], *, blanks: bool) -> list[str]:
    """Return the texts of ``cells`` with NULL for the words of ``missing`` and, where ``blanks``, for ``''``."""
    if not missing and not blanks:
        return list(cells)
    words = ", ".join(map(literal, ("", *missing)))
    return [f"CASE WHEN {cell} NOT IN ({words}) THEN {cell} END" for cell in cells]


def cell_texts(kinds: Mapping[str, str], whole: Container[str]) -> list[str]:
    """Return SQL for the text of each column; those of ``whole`` lose their point."""
    cells = []
    for name, kind in kinds.items():
        column = quote(name)
        if name in whole:
            cell = f"CASE WHEN {column}::VARCHAR <> 'nan' THEN {column}::BIGINT::VARCHAR END"
        elif kind in _DECIMALS:
            cell = f"nullif({column}::VARCHAR, 'nan')"
        elif kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION")):
            cell = f"to_json({column})::VARCHAR"
        else:
            cell = column if kind == "VARCHAR" else f"{column}::VARCHAR"
        cells.append(cell)
    return cells


class _Stream:
    """Passes a frame on as an Arrow stream, which DuckDB reads without pyarrow."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)


def register_frame(
    con: duckdb.DuckDBPyConnection, frame: Any, name: str, spare: Path
) -> tuple[str, list[str], list[str]]:
    """Make a data frame known to ``con``; return the relation, the frame's own column names and notes.

    Takes pandas, Polars, Arrow, DuckDB and whatever else narwhals knows, lazy ones too. ``spare`` is the path of a
    file that may be written (a DuckDB relation of another connection passes through it).

    Raises
    ------
    InputError
        This is no data frame, or it cannot be read.
    """
    try:
        native = nw.to_native(frame, pass_through=True)
        if nw.dependencies.is_duckdb_relation(native):
            native.write_parquet(str(spare))
            return f"read_parquet({literal(str(spare))})", [str(c) for c in native.columns], []
        if not nw.dependencies.is_pandas_dataframe(native) and not hasattr(native, "__arrow_c_stream__"):
            lazy = nw.from_native(native)
            collected = lazy.collect() if isinstance(lazy, nw.LazyFrame) else lazy
            native = collected.to_native()
        notes: list[str] = []
        if nw.dependencies.is_pandas_dataframe(native):
            native, notes = _plain_pandas(native)
            columns = [str(c) for c in native.columns]
            native = native.set_axis([f"c{i}" for i in range(len(columns))], axis=1)
        else:
            if hasattr(native, "read_all"):  # a stream of record batches can be read only once
                native = native.read_all()
            schema = nw.from_native(native).collect_schema()
            columns = [str(c) for c in schema.names()]
            native = _Stream(_without_nulls(native, schema))
        if not columns:
            raise InputError("the data frame has no columns")
        con.register(name, native)
    except (duckdb.Error, nw.exceptions.NarwhalsError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"the data frame cannot be read ({reason}); make text of such columns, rename equal ones"
        ) from error
    except TypeError as error:
        raise InputError(
            f"{type(frame).__name__} is no table; give a path or a pandas, Polars, Arrow or DuckDB frame"
        ) from error
    return name, columns, notes


def _without_nulls(native: Any, schema: Mapping[str, Any]) -> Any:
    """Columns of Polars' type Null, which DuckDB does not take, become empty columns of text."""
    empty = [name for name, kind in schema.items() if kind == nw.Unknown]
    if not empty or not nw.dependencies.is_polars_dataframe(native):
        return native
    import polars as pl

    return native.with_columns(
        pl.col(name).cast(pl.String) for name in empty if native.schema[name] == pl.Null
    )


def _plain_pandas(frame: Any) -> tuple[Any, list[str]]:
    """Turn a named index into columns, and columns of Python objects that are all numbers into number columns."""
    import pandas as pd

    notes = []
    names = [str(n) for n in frame.index.names if n is not None and n not in frame.columns]
    if names and len(names) == frame.index.nlevels:
        frame = frame.reset_index()
        notes.append(f"the index of the frame is read as a column: {', '.join(names)}")
    changes = {"boolean": "boolean", "floating": "float64", "mixed-integer-float": "float64"}
    for place, kind in enumerate(frame.dtypes):
        if pd.api.types.is_object_dtype(kind):
            found = pd.api.types.infer_dtype(frame.iloc[:, place], skipna=True)
            if found in changes:
                plain = frame.iloc[:, place].astype(changes[found])
                frame = frame.copy(deep=False)
                frame.isetitem(place, plain)
    return frame, notes


def sheet_rows(path: Path, sheet: str | int | None) -> tuple[Iterator[list[str | None]], list[str]]:
    """Return the rows of a sheet (its header first) as text, and notes.

    Raises
    ------
    ArgumentError
        There is no such sheet.
    InputError
        The workbook cannot be read.
    """
    import python_calamine as calamine

    try:
        book = calamine.CalamineWorkbook.from_path(str(path))
        names = list(book.sheet_names)
        if sheet is None:
            name = names[0]
        elif isinstance(sheet, str) and sheet in names:
            name = sheet
        elif str(sheet).isdecimal() and 1 <= int(sheet) <= len(names):
            name = names[int(sheet) - 1]
        else:
            raise ArgumentError(f"there is no sheet {sheet!r}; there are {', '.join(names)}")
        rows = book.get_sheet_by_name(name).iter_rows()
    except (calamine.CalamineError, OSError, IndexError) as error:
        raise InputError(
            f"the workbook cannot be read ({error}); save it again or export it as CSV"
        ) from error
    others = [n for n in names if n != name]
    notes = [f"read the sheet {name!r}; not read: {', '.join(others)} (--sheet picks one)"] if others else []
    return ([cell_text(value) for value in row] for row in rows), notes


def cell_text(value: object) -> str | None:
    """The text of one typed value; whole decimals lose their point, as workbooks know no other numbers."""
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, dt.datetime) and value.time() == dt.time() and value.tzinfo is None:
        return value.date().isoformat()
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return str(value)


def json_keys(con: duckdb.DuckDBPyConnection, relation: str) -> list[str]:
    """Return the keys of the records of a relation with one column ``json``, in the order of their first use."""
    found = con.execute(
        f"SELECT key FROM (SELECT unnest(keys) AS key, unnest(range(len(keys))) AS place, row FROM "
        f"(SELECT json_keys(json) AS keys, row_number() OVER () AS row FROM {relation})) "
        "GROUP BY key ORDER BY min(row), min(place)"
    ).fetchall()
    return [str(row[0]) for row in found]


def json_rows(path: Path, *, array: bool) -> Iterator[dict[str, str | None]]:
    """Yield the records of a JSON or JSON Lines file as text; nested values stay JSON.

    Raises
    ------
    InputError
        A record is not an object, or the text is not JSON; the line is named.
    """
    if array:
        try:
            records = json.loads(path.read_text("utf-8-sig"))
        except json.JSONDecodeError as error:
            raise InputError(f"line {error.lineno}: not JSON ({error.msg}); mend the line") from error
        except RecursionError as error:
            raise InputError("brackets are nested too deep for JSON; mend the file") from error
        for place, record in enumerate(records, start=1):
            yield _record(record, f"record {place}")
        return
    with path.open(encoding="utf-8-sig", newline="\n") as file:
        for line, text in enumerate(file, start=1):
            if text.strip():
                try:
                    record = json.loads(text)
                except json.JSONDecodeError as error:
                    raise InputError(
                        f"line {line}: not JSON ({error.msg}); JSON Lines holds one object a line"
                    ) from error
                except RecursionError as error:
                    raise InputError(f"line {line}: brackets are nested too deep; mend the line") from error
                yield _record(record, f"line {line}")


def _record(record: object, place: str) -> dict[str, str | None]:
    if not isinstance(record, dict):
        raise InputError(
            f"{place}: {type(record).__name__} where an object was expected; give a list of records"
        )
    return {
        key: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        if isinstance(value, dict | list)
        else _jsoncell_text(value)
        for key, value in record.items()
    }


def _jsoncell_text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
