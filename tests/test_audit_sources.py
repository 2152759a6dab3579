"""Tables of databases and files behind URLs: the same audit as of the CSV file, and no password anywhere."""

from __future__ import annotations

import contextlib
import functools
import gzip
import http.server
import json
import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import duckdb
import pandas as pd
import pytest

from audit.duplicates import audit_duplicates
from audit.errors import ArgumentError, AuditError, InputError, MissingExtraError
from audit.reading import open_table
from audit.reading_plan import Format
from audit.reading_sources import redacted, scheme
from tests.command import run
from tests.conftest import ROOT, missing

ROWS = [
    ("the sky is blue", "yes", 1, True), ("The sky  is blue", "no", 2, False), ("it rains, often", "no", 3, None),
    ("déjà vu\nagain", "yes", 4, True), ("DÉJÀ vu again", "yes", 5, True), ("", "yes", 6, True),
    ("alone", None, 7, None),
]  # fmt: skip
COLUMNS = ["text", "label", "id", "sure"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sources")


@pytest.fixture(scope="module")
def csv_file(folder: Path) -> Path:
    path = folder / "labels.csv"
    pd.DataFrame(ROWS, columns=COLUMNS).to_csv(path, index=False)
    return path


def told(source: Any, **options: Any) -> dict[str, Any]:
    """The JSON of an audit, without what names the source."""
    result = audit_duplicates(source, item="text", label="label", row_id="id", draws=50, **options)
    found: dict[str, Any] = json.loads(json.dumps(result.to_dict()))
    for name in ("source", "format", "encoding", "delimiter"):
        found["data"].pop(name)
    return found


@pytest.fixture(scope="module")
def expected(csv_file: Path) -> dict[str, Any]:
    found = told(csv_file)
    assert found["repeats"]["items"] == 2
    assert found["repeats"]["conflicts"] == 1
    return found


# --- files of databases ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sqlite_file(folder: Path) -> Path:
    path = folder / "labels.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as con, con:
        con.execute("CREATE TABLE labels (text TEXT, label TEXT, id INTEGER, sure TEXT)")
        con.executemany("INSERT INTO labels VALUES (?, ?, ?, ?)", ROWS)
    return path


def test_a_table_of_sqlite_is_audited(sqlite_file: Path, expected: dict[str, Any]) -> None:
    assert told(sqlite_file) == expected
    assert told(sqlite_file, sheet="labels") == expected
    packed = sqlite_file.with_suffix(".db.gz")
    packed.write_bytes(gzip.compress(sqlite_file.read_bytes()))
    assert told(packed) == expected
    with open_table(sqlite_file) as table:
        assert (table.report.format, table.report.source) == ("sqlite", str(sqlite_file))


def test_values_of_sqlite_are_text(tmp_path: Path) -> None:
    path = tmp_path / "odd.db"
    with contextlib.closing(sqlite3.connect(path)) as con, con:
        con.execute('CREATE TABLE "my ""table""" (a, "b c", a_2)')
        con.execute('INSERT INTO "my ""table""" VALUES (1, 1.5, 2.0), (NULL, ?, \'\')', ["ü".encode()])
    with open_table(path) as table:
        assert table.columns == ("a", "b c", "a_2")
        assert table.head() == [("1", "1.5", "2"), (None, "ü", None)]
    with contextlib.closing(sqlite3.connect(path)) as con, con:
        con.execute('CREATE VIEW seen AS SELECT a FROM "my ""table"""')
        con.execute("CREATE TABLE none (a)")
    with pytest.raises(
        ArgumentError, match=r"odd\.db: the database holds several tables; .*--table: my .*none, seen"
    ):
        open_table(path)
    with pytest.raises(ArgumentError, match="no table 'label'"):
        open_table(path, sheet="label")
    with pytest.raises(InputError, match="no rows"):
        open_table(path, sheet="none")
    with open_table(path, sheet="seen") as table:
        assert [row for batch in table.rows() for row in batch] == [("1",), (None,)]
    (tmp_path / "broken.db").write_bytes(path.read_bytes()[:4096])
    with pytest.raises(
        InputError, match=r"broken\.db: the database cannot be read .*export the table as CSV"
    ):
        open_table(tmp_path / "broken.db", sheet="seen")
    contextlib.closing(sqlite3.connect(tmp_path / "empty.db"))
    with contextlib.closing(sqlite3.connect(tmp_path / "empty.db")) as con, con:
        con.execute("CREATE TABLE t (a)")
        con.execute("DROP TABLE t")
    with pytest.raises(InputError, match="holds no table"):
        open_table(tmp_path / "empty.db")


def test_a_table_of_a_duckdb_file_is_audited(folder: Path, csv_file: Path, expected: dict[str, Any]) -> None:
    path = folder / "labels.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute(f"CREATE TABLE labels AS SELECT * FROM read_csv('{csv_file}', all_varchar = true)")
    assert told(path) == expected
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE SCHEMA old; CREATE VIEW old.labels AS SELECT 'x' AS text, 'y' AS label")
        with pytest.raises(InputError, match="close what writes to it"):
            told(path)
    with pytest.raises(ArgumentError, match=r"name one with --table: labels, old\.labels"):
        told(path)
    with open_table(path, sheet="old.labels") as table:
        assert table.head() == [("x", "y")]
        assert table.report.format == "duckdb"


def test_the_command_reads_a_table(sqlite_file: Path, expected: dict[str, Any]) -> None:
    done = run(
        "dupes",
        str(sqlite_file),
        "--table",
        "labels",
        "--item",
        "text",
        "--label",
        "label",
        "--format",
        "json",
    )
    assert done.code == 0, done.err
    assert json.loads(done.out)["repeats"]["conflicts"] == 1
    wrong = run("dupes", str(sqlite_file), "--table", "notes", "--item", "text", "--label", "label")
    assert wrong.code == 2
    assert "there is no table 'notes'; there are labels" in wrong.err


# --- PostgreSQL -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The address of a real server of this test's own, on a socket in a temporary folder; its password is in it."""
    psycopg = pytest.importorskip(
        "psycopg", reason="psycopg is not installed (pip install 'label-audit[postgres]')"
    )
    places = [Path(p).parent for p in (shutil.which("initdb"),) if p]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    place = next((p for p in places if (p / "initdb").exists() and (p / "postgres").exists()), None)
    if place is None:
        missing("PostgreSQL's server is not installed (apt install postgresql)")
    assert place is not None
    root = tempfile.TemporaryDirectory(prefix="label-audit-pg")  # not below pytest's, which is root's alone
    folder, owner = Path(root.name), {}
    data = folder / "data"
    if os.getuid() == 0:  # the server does not run as root
        try:
            account = pwd.getpwnam("postgres")
        except KeyError:
            missing("PostgreSQL's server does not run as root, and there is no user postgres")
        os.chown(folder, account.pw_uid, account.pw_gid)
        owner = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    secret = folder / "secret"
    secret.write_text("s3cr:t@/")
    secret.chmod(0o644)
    common: dict[str, Any] = {"check": True, "capture_output": True, "cwd": folder, **owner}
    subprocess.run(
        [place / "initdb", "-D", data, "-U", "ann", "--auth=scram-sha-256", f"--pwfile={secret}", "-E", "UTF8",
         "--no-sync"], **common,
    )  # fmt: skip
    server = subprocess.Popen(
        [place / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, **owner,
    )  # fmt: skip
    address = f"postgresql://ann:s3cr%3At%40%2F@/postgres?host={folder}"
    try:
        for _ in range(600):
            try:
                psycopg.connect(address).close()
                break
            except psycopg.OperationalError:
                if server.poll() is not None:
                    raise
                threading.Event().wait(0.1)
        yield address
    finally:
        server.terminate()
        server.wait(30)
        root.cleanup()


def test_a_table_of_postgres_is_audited(postgres: str, expected: dict[str, Any]) -> None:
    import psycopg

    with psycopg.connect(postgres) as con:
        con.execute("CREATE TABLE labels (text text, label text, id bigint, sure boolean)")
        con.cursor().executemany("INSERT INTO labels VALUES (%s, %s, %s, %s)", ROWS)
    assert told(postgres) == expected
    assert told(postgres, sheet="public.labels") == expected
    with open_table(postgres) as table:
        assert table.report.source.startswith("postgresql://ann@/postgres")
        assert table.report.format == "postgresql"
        assert table.head(1) == [("the sky is blue", "yes", "1", "true")]
    with psycopg.connect(postgres) as con:
        con.execute(
            'CREATE SCHEMA "Old"; CREATE VIEW "Old"."the labels" AS SELECT 1.50::numeric AS n, E\'a\\tb\' AS t'
        )
    with open_table(postgres, sheet="Old.the labels") as table:
        assert table.head() == [("1.50", "a\tb")]


def test_no_password_is_ever_told(postgres: str) -> None:
    everything = []
    result = audit_duplicates(postgres, item="text", label="label", sheet="labels", draws=50)
    everything += [json.dumps(result.to_dict()), result.summary()]
    wrong = postgres.replace("s3cr%3At%40%2F", "wr%2Fong")
    for address, options in [
        (wrong, {}), (postgres, {"sheet": "nowhere"}), (postgres.replace("?host=", "?hots="), {}),
        (postgres.replace("?host=", "?password=wr%2Fong&host="), {}),
    ]:  # fmt: skip
        with pytest.raises(AuditError) as caught:
            audit_duplicates(address, item="text", label="label", **options)  # type: ignore[arg-type]
        everything.append(str(caught.value))
        assert caught.value.__cause__ is None or "s3cr" not in str(caught.value.__cause__)
    done = run("dupes", wrong, "--item", "text", "--label", "label")
    assert done.code == 2
    assert "password authentication failed" in done.err
    for text in (*everything, done.err, done.out):
        assert "s3cr" not in text
        assert "wr%2Fong" not in text
        assert "wr/ong" not in text


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"label-audit\[postgres\]"):
        open_table("postgresql://ann@/postgres")


# --- URLs -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def address(folder: Path, csv_file: Path) -> Iterator[str]:
    """A web server of this test's own on the loopback address."""
    pytest.importorskip("aiohttp", reason="aiohttp is not installed (pip install 'label-audit[remote]')")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://ann:s3cret@127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_files_behind_urls_are_audited(
    address: str, folder: Path, csv_file: Path, sqlite_file: Path, expected: dict[str, Any]
) -> None:
    pd.read_csv(csv_file, dtype=str, keep_default_na=False).to_parquet(folder / "labels.parquet", index=False)
    (folder / "labels.csv.gz").write_bytes(gzip.compress(csv_file.read_bytes()))
    for name in ("labels.csv", "labels.csv.gz", "labels.parquet", "labels.sqlite"):
        assert told(f"{address}/{name}?key=s3cret") == expected, name
    with open_table(f"{address}/labels.csv?key=s3cret") as table:
        assert table.report.source == f"{address.replace(':s3cret', '')}/labels.csv"
    with pytest.raises(InputError, match=r"nothing\.csv: cannot be read .*; check the address") as caught:
        open_table(f"{address}/nothing.csv?key=s3cret")
    assert "s3cret" not in str(caught.value)


def test_any_file_system_of_fsspec_serves(csv_file: Path, expected: dict[str, Any]) -> None:
    fsspec = pytest.importorskip(
        "fsspec", reason="fsspec is not installed (pip install 'label-audit[remote]')"
    )
    fsspec.filesystem("memory").pipe("/set/labels.csv", csv_file.read_bytes())
    assert told("memory://set/labels.csv") == expected
    with pytest.raises(InputError, match=r"memory://set/none\.csv: cannot be read"):
        open_table("memory://set/none.csv")
    with pytest.raises(InputError, match="nosuch"):
        open_table("nosuch://place/labels.csv")


def test_what_an_address_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    with pytest.raises(MissingExtraError, match=r"reading s3:// addresses .*label-audit\[remote\]"):
        open_table("s3://bucket/labels.csv")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ann:pw@host:5/db?password=pw&sslmode=on", "postgresql://ann@host:5/db"),
        ("postgresql://ann:p@w:x@host/db#pw", "postgresql://ann@host/db"),
        ("https://host/a.csv?X-Signature=pw", "https://host/a.csv"),
        ("s3://bucket/a b.parquet", "s3://bucket/a b.parquet"),
        ("postgresql://ann:pw@[host/db", "postgresql://..."),
    ],
)
def test_addresses_are_shown_without_secrets(address: str, shown: str) -> None:
    assert redacted(address) == shown


def test_paths_are_no_addresses() -> None:
    assert [scheme(path) for path in ("C:\\labels.csv", "a/b.csv", "-", "s3:labels", "HF://datasets/a/b.csv")] == [
        None, None, None, None, "hf",
    ]  # fmt: skip


def test_the_pages_name_every_format_there_is() -> None:
    schema = json.loads((ROOT / "docs" / "schema.json").read_text("utf-8"))
    told = schema["properties"]["data"]["properties"]["format"]["description"]
    assert (*told.partition(", or ")[0].split(", "), told.partition(", or ")[2].split()[0]) == get_args(
        Format
    )
    assert told in (ROOT / "docs" / "json.md").read_text("utf-8")
