"""The SQL that is asked of rows in Spark.

Queries come in DuckDB's SQL. Those that look at one row at a time run in DuckDB on each part of the rows, inside
Spark's Python workers; the others are translated by sqlglot and run by Spark.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb

from audit.errors import ArgumentError, InputError

__all__ = ["Cursor", "SparkConnection", "map_rows", "spark_errors"]

_SERIAL = itertools.count()
#: Rows that DuckDB is handed at a time in a worker, at least.
_CHUNK = 50_000


class Cursor:
    """The rows of a query, as DuckDB's cursors give them."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._rows: Iterator[tuple[Any, ...]] | None = None

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows."""
        with spark_errors():
            return [tuple(row) for row in self._frame.collect()]

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        """The next rows; an empty list at the end."""
        with spark_errors():
            if self._rows is None:
                self._rows = (tuple(row) for row in self._frame.toLocalIterator())
            return list(itertools.islice(self._rows, size))

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None at the end."""
        return next(iter(self.fetchmany(1)), None)


class SparkConnection:
    """Answers DuckDB's SQL from a Spark session, as far as :mod:`audit.grouping` and its neighbours speak it.

    Temporary tables are worked out at once and kept by Spark's executors, in memory and on disk; :meth:`close` drops
    them, and the session itself if it was started here (``own``).
    """

    def __init__(self, session: Any, *, own: bool) -> None:
        self.session = session
        self._own = own
        self._views: set[str] = set()

    def execute(self, query: str, parameters: object = None) -> Cursor:
        """Run statements; the cursor holds the rows of the last SELECT. There are no parameters here."""
        from sqlglot import exp, parse

        if parameters is not None:
            raise ArgumentError("this question cannot be asked of Spark yet: leave the engine out")
        frame = None
        for statement in parse(query, read="duckdb"):
            if isinstance(statement, exp.Create):
                self.store(statement.find(exp.Table).name, self._run(statement.expression))
            elif isinstance(statement, exp.Drop):
                self._drop(statement.find(exp.Table).name)
            else:
                frame = self._run(statement)
        return Cursor(frame)

    def store(self, name: str, frame: Any, *, keep: bool = True) -> None:
        """Make a frame known as ``name``; ``keep`` works its rows out once, here and now."""
        if keep:
            with spark_errors():
                frame = (
                    frame.localCheckpoint()
                )  # unlike a cache it cuts the plan, which else doubles at each step
        frame.createOrReplaceTempView(name)
        self._views.add(name)

    def row_wise(self, source: str, query: Callable[[str], str]) -> str:
        """See :func:`audit.grouping_engine.row_wise`."""
        name = f"audit_rows{next(_SERIAL)}"
        self.store(name, map_rows(self.execute_frame(f"SELECT * FROM {source}"), query("part")), keep=False)
        return name

    def execute_frame(self, query: str) -> Any:
        """The frame of one SELECT."""
        from sqlglot import parse_one

        return self._run(parse_one(query, read="duckdb"))

    def small_table(self, name: str, columns: Mapping[str, tuple[str, Sequence[object]]]) -> None:
        """See :func:`audit.grouping_engine.small_table`."""
        from pyspark.sql.functions import broadcast

        kinds = {"VARCHAR": "string", "BIGINT": "bigint"}
        schema = ", ".join(f"{column} {kinds[kind]}" for column, (kind, _) in columns.items())
        rows = list(zip(*(values for _, values in columns.values()), strict=True))
        self.store(name, broadcast(self.session.createDataFrame(rows, schema)), keep=False)

    def close(self) -> None:
        """Drop all that was made here."""
        for name in list(self._views):
            self._drop(name)
        if self._own:
            self.session.stop()

    def _drop(self, name: str) -> None:
        self.session.catalog.dropTempView(name)
        self._views.discard(name)

    def _run(self, statement: Any) -> Any:
        with spark_errors():
            return self.session.sql(statement.transform(_spark_words).sql(dialect="spark"))


def _spark_words(node: Any) -> Any:
    """What sqlglot leaves as it is in DuckDB."""
    from sqlglot import exp

    if isinstance(node, exp.Anonymous) and node.name.lower() == "strlen":
        return exp.Anonymous(this="octet_length", expressions=node.expressions)
    return node


def map_rows(frame: Any, query: str) -> Any:
    """A Spark frame of what DuckDB makes of each part of ``frame`` with ``query``, which calls it ``part``."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    given = to_arrow_schema(frame.schema)
    with duckdb.connect() as con:
        con.register("part", given.empty_table())
        found = con.sql(f"SELECT * FROM {query}").to_arrow_table().schema
    signed = pa.schema([(f.name, pa.int64() if f.type == pa.uint64() else f.type) for f in found])
    schema = from_arrow_schema(signed)
    target = to_arrow_schema(schema)
    chunk = _CHUNK

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import duckdb
        import pyarrow as pa

        with duckdb.connect(config={"threads": 1}) as con:
            con.execute("SET TimeZone = 'UTC'")
            waiting: list[Any] = []
            rows = 0
            for batch in itertools.chain(batches, [None]):
                if batch is not None:
                    waiting.append(batch)
                    rows += batch.num_rows
                if not waiting or (batch is not None and rows < chunk):
                    continue
                con.register("part", pa.Table.from_batches(waiting))
                done = con.sql(f"SELECT * FROM {query}").to_arrow_table()
                columns = [
                    pa.chunked_array([piece.view(pa.int64()) for piece in column.chunks], pa.int64())
                    if column.type == pa.uint64()
                    else column
                    for column in done.columns
                ]
                yield from pa.table(columns, names=done.column_names).cast(target).to_batches()
                waiting, rows = [], 0

    with warnings.catch_warnings():  # PySpark warns of new versions of pandas, which has no part in this
        warnings.simplefilter("ignore", FutureWarning)
        return frame.mapInArrow(work, schema)


@contextmanager
def spark_errors(source: str = "Spark") -> Iterator[None]:
    """Turn an error of Spark into an InputError of one line."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        named = [line for line in lines if re.match(r"(\w+\.)*\w*(Error|Exception): ", line)]
        told = (named or lines or ["no reason given"])[0]
        raise InputError(
            f"{source}: Spark cannot work this out ({told[:300]}); check the data, or leave engine out"
        ) from error
