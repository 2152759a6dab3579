"""Files behind s3:// and hf://, read from real servers of these protocols on the loopback address."""

from __future__ import annotations

import http.server
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import pytest

from audit.errors import InputError, MissingExtraError
from audit.reading import open_table
from tests.command import run
from tests.conftest import ROOT

KEY, SECRET, TOKEN = "AKIA0000000000000000", "a-secret/that+is=told/to-nobody", "a-token-told-to-nobody"
ROWS = pd.DataFrame({
    "text": ["one", " ONE", "two, or", "two,  or", "three"], "label": ["yes", "no", "yes", "yes", "no"],
})  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The same table as CSV and as Parquet."""
    folder = tmp_path_factory.mktemp("remote")
    ROWS.to_csv(folder / "rows.csv", index=False)
    ROWS.to_parquet(folder / "rows.parquet", index=False)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def audited(source: str | Path) -> dict[str, Any]:
    """The JSON of the command, without what names the source."""
    done = run("dupes", source, "--item", "text", "--label", "label", "--draws", "50", "--format", "json")
    assert done.code == 0, done.err
    told: dict[str, Any] = done.json
    assert told["data"].pop("source") == str(source)
    for name in ("format", "encoding", "delimiter"):
        told["data"].pop(name)
    return told


@pytest.fixture(scope="module")
def expected(files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("here") / "rows.csv"
    path.write_bytes(files["rows.csv"])
    told = audited(path)
    assert (told["repeats"]["items"], told["repeats"]["conflicts"]) == (2, 1)
    return told


# --- s3:// ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(files: dict[str, bytes]) -> Iterator[str]:
    """The address of an S3 with the files in the bucket ``labels``; it asks for no credentials at first."""
    pytest.importorskip("s3fs", reason="s3fs is not installed (pip install 'label-audit[remote]')")
    pytest.importorskip("moto", reason="moto is not installed (pip install 'label-audit[dev]')")
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    service = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    service.start()
    address = f"http://127.0.0.1:{service.get_host_and_port()[1]}"
    client = boto3.client(
        "s3",
        endpoint_url=address,
        region_name="us-east-1",
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
    )
    client.create_bucket(Bucket="labels")
    for name, content in files.items():
        client.put_object(Bucket="labels", Key=f"2026/{name}", Body=content)
    client.close()
    yield address
    service.stop()


@pytest.fixture
def s3(server: str, tmp_path: Path) -> Iterator[pytest.MonkeyPatch]:
    """The variables that AWS's own tools read, pointing at the server; nothing of this machine's own."""
    from s3fs import S3FileSystem

    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        given = {
            "AWS_ENDPOINT_URL": server, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_SESSION_TOKEN": TOKEN, "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": str(tmp_path / "config"), "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        }  # fmt: skip
        for name, value in given.items():
            patch.setenv(name, value)
        S3FileSystem.clear_instance_cache()
        yield patch
        S3FileSystem.clear_instance_cache()


def refused(address: str) -> str:
    """The one line with which a source is refused; no secret is in it, nor in what it was raised from."""
    from s3fs import S3FileSystem

    S3FileSystem.clear_instance_cache()  # it does not look at the variables again
    with pytest.raises(InputError) as caught:
        open_table(address)
    chain: list[BaseException] = [caught.value]
    while (cause := chain[-1].__cause__) is not None:
        chain.append(cause)
    for error in chain:
        assert "told" not in str(error)
        assert "\n" not in str(error)
    return str(caught.value)


def test_files_in_s3_are_audited(s3: pytest.MonkeyPatch, expected: dict[str, Any]) -> None:
    assert audited("s3://labels/2026/rows.csv") == expected
    assert audited("s3://labels/2026/rows.parquet") == expected


def test_what_is_not_in_s3_is_said(s3: pytest.MonkeyPatch) -> None:
    lost = "cannot be read (FileNotFoundError labels/2026/rows.json); check the address and your access to it"
    assert refused("s3://labels/2026/rows.json") == f"s3://labels/2026/rows.json: {lost}"
    assert "The specified bucket does not exist" in refused("s3://elsewhere/rows.csv")
    assert "s3://labels/2026: the file is empty" in refused("s3://labels/2026")
    assert "s3://labels: cannot be read" in refused("s3://labels")


def test_keys_that_s3_does_not_know_are_not_shown(server: str, s3: pytest.MonkeyPatch) -> None:
    import requests
    from moto import settings

    before = settings.INITIAL_NO_AUTH_ACTION_COUNT
    requests.post(f"{server}/moto-api/reset-auth", data=b"0", timeout=10)  # from now on it asks who is there
    try:
        assert "PermissionError" in refused("s3://labels/2026/rows.csv")
        done = run("dupes", "s3://labels/2026/rows.csv", "--item", "text", "--label", "label")
        assert (done.code, done.out) == (2, "")
        assert len(done.err.splitlines()) == 1
        assert "told" not in done.err
    finally:
        requests.post(f"{server}/moto-api/reset-auth", data=str(before).encode(), timeout=10)
    assert "told" not in refused(f"s3://{KEY}:{SECRET.replace('/', '%2F')}@labels/rows.csv")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        s3.delenv(name)
    assert "NoCredentialsError" in refused("s3://labels/2026/rows.csv")
    s3.setenv("AWS_PROFILE", "nobody")
    assert "The config profile (nobody) could not be found" in refused("s3://labels/2026/rows.csv")


class Expired(http.server.BaseHTTPRequestHandler):
    """Answers as S3 does to a session that is over: the token stands in the answer."""

    def do_GET(self) -> None:
        answer = (
            "<?xml version='1.0'?><Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message>"
            f"<Token-0>{TOKEN}</Token-0></Error>"
        ).encode()
        self.send_response(400)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(answer)

    do_HEAD = do_GET  # noqa: N815 -- the name that the base class looks for

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def serve() -> Iterator[Any]:
    """Starts web servers on the loopback address, and ends them."""
    running = []

    def start(handler: Any) -> str:
        service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=service.serve_forever)
        thread.start()
        running.append((service, thread))
        return f"http://127.0.0.1:{service.server_port}"

    yield start
    for service, thread in running:
        service.shutdown()
        thread.join()
        service.server_close()


def test_a_session_of_aws_that_is_over_is_said_without_its_token(s3: pytest.MonkeyPatch, serve: Any) -> None:
    s3.setenv("AWS_ENDPOINT_URL", serve(Expired))
    told = refused("s3://labels/2026/rows.csv")
    assert told.startswith("s3://labels/2026/rows.csv: cannot be read (")
    assert told.endswith("check the address and your access to it")


def test_what_an_address_needs_is_named() -> None:
    pytest.importorskip("fsspec", reason="fsspec is not installed (pip install 'label-audit[remote]')")
    with (
        mock.patch("fsspec.open", side_effect=ImportError("Install s3fs to access S3")),
        pytest.raises(MissingExtraError, match=r"reading s3:// addresses .*label-audit\[remote\]"),
    ):
        open_table("s3://labels/rows.csv")
    with (
        mock.patch("fsspec.open", side_effect=ImportError("Please install gcsfs to access Google Storage")),
        pytest.raises(InputError, match=r"gs://labels/rows\.csv: .*install gcsfs .*; install that package"),
    ):
        open_table("gs://labels/rows.csv")


# --- hf:// ----------------------------------------------------------------------------------------------------


class Hub(http.server.BaseHTTPRequestHandler):
    """As much of a hub as reading one file of the data set ``ann/labels`` asks for."""

    protocol_version = "HTTP/1.1"
    files: dict[str, bytes]
    asked: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        type(self).asked.append((path, self.headers.get("Authorization")))
        name = path.rpartition("/")[2]
        first, last = 0, None
        if path == "/api/datasets/ann/labels":
            told: Any = {"id": "ann/labels", "sha": "1" * 40, "siblings": [], "tags": [], "private": True}
            status, content = 200, json.dumps(told).encode()
        elif path.startswith("/api/datasets/ann/labels/tree/main"):
            told = [
                {"type": "file", "path": n, "size": len(c), "oid": "0" * 40} for n, c in self.files.items()
            ]
            status, content = 200, json.dumps(told).encode()
        elif path == f"/datasets/ann/labels/resolve/main/{name}" and name in self.files:
            first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            status, content = 206, self.files[name][first : last + 1]
        else:
            status, content = 404, b'{"error": "Repository not found"}'
        self.send_response(status)
        if status == 404:
            self.send_header("X-Error-Code", "RepoNotFound")
        if last is not None:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(self.files[name])}")
        self.send_header("Content-Type", "application/json" if last is None else "application/octet-stream")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


_HUB = """
import json, sys
sys.path.insert(0, sys.argv[1])
from tests.test_audit_remote import audited
from audit.errors import InputError
from audit.reading import open_table
told = [audited(f"hf://datasets/ann/labels/{name}") for name in ("rows.csv", "rows.parquet")]
for address in ("hf://datasets/ann/labels/none.csv", "hf://datasets/ann/nothing/rows.csv"):
    try:
        open_table(address)
    except InputError as error:
        told.append(str(error))
print(json.dumps(told))
"""


def test_files_of_a_hub_are_audited(
    files: dict[str, bytes], expected: dict[str, Any], serve: Any, tmp_path: Path
) -> None:
    pytest.importorskip(
        "huggingface_hub", reason="huggingface_hub is not installed (pip install 'label-audit[remote]')"
    )

    class Ours(Hub):
        asked: list[tuple[str, str | None]] = []  # noqa: RUF012 -- one for the server

    Ours.files = files
    variables = {
        "HF_ENDPOINT": serve(Ours),
        "HF_HUB_OFFLINE": "0",
        "HF_TOKEN": TOKEN,
        "HF_HOME": str(tmp_path),
    }
    done = subprocess.run(  # its variables are read when it is imported
        [sys.executable, "-c", _HUB, str(ROOT)], env={**os.environ, **variables}, capture_output=True, text=True,
        check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    table, stored, no_file, no_set = json.loads(done.stdout)
    assert table == stored == expected
    assert no_file.startswith("hf://datasets/ann/labels/none.csv: cannot be read (FileNotFoundError ")
    assert "repository not found" in no_set
    assert TOKEN not in done.stdout + done.stderr
    assert {who for path, who in Ours.asked if path.startswith(("/api/datasets/", "/datasets/"))} == {
        f"Bearer {TOKEN}"
    }
