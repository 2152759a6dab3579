"""What surrounds a run and may be odd: proxies, certificates, clocks, signals, disks, files that change meanwhile."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from email.utils import formatdate

import pytest

from audit.errors import ArgumentError, EndpointError, InputError
from relabel.connect import Settings
from relabel.endpoint import Endpoint
from relabel.journal import Journal
from relabel.outcomes import parse_wait
from relabel.rehearse import RehearsalServer, Script
from relabel.rubric import Rubric
from relabel.worklist import PART, _parts
from tests.conftest import ROOT
from tests.relabel_kit import KEY, RUBRIC_TEXT, make_job, read_table, scripts, text_of, write_table


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("HTTP_PROXY", "http://[::bad", "proxy settings"),
        ("HTTPS_PROXY", "foo:bar:baz", "proxy settings"),
        ("ALL_PROXY", "ftp://proxy", "proxy settings"),
        ("SSL_CERT_FILE", "/nonexistent/certificates.pem", "SSL_CERT_FILE"),
    ],
)
def test_a_setting_of_the_network_that_cannot_be_used_is_named(monkeypatch, name, value, told):
    monkeypatch.setenv(name, value)
    with pytest.raises(EndpointError, match=told) as caught:
        Endpoint("https://example.invalid/v1")
    assert "\n" not in str(caught.value)


def test_a_certificate_file_that_is_none_is_named(tmp_path, monkeypatch):
    (tmp_path / "c.pem").write_text("no certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "c.pem"))
    with pytest.raises(EndpointError, match="SSL_CERT_FILE"):
        Endpoint("https://example.invalid/v1")


@pytest.mark.parametrize("name", ["OPENAI_ORG_ID", "OPENAI_PROJECT_ID"])
@pytest.mark.parametrize("value", ["\u00fcber", "a\nb"])
def test_what_goes_into_a_header_fits_there(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(ArgumentError, match=name):
        Endpoint("http://127.0.0.1:1/v1")


def test_a_clock_that_is_wrong_makes_no_long_wait():
    """Retry-After is a date of the endpoint's clock, and so is Date; this machine's may be years away."""
    there = 1_000_000_000.0
    headers = {"retry-after": formatdate(there + 7, usegmt=True), "date": formatdate(there, usegmt=True)}
    assert parse_wait(headers) == 7
    del headers["date"]
    assert parse_wait(headers) == 0  # long past by this clock
    assert parse_wait({**headers, "date": "yesterday"}) == 0


def test_a_clock_that_jumps_changes_nothing(tmp_path, monkeypatch):
    real, calls = time.time, []

    def jumping():
        calls.append(1)
        return real() + (-1e9 if len(calls) % 2 else 1e9)

    monkeypatch.setattr("relabel.journal.time.time", jumping)
    with RehearsalServer(scripts(12)) as server:
        job = make_job(tmp_path, server.base_url, items=12)
        assert job.run().without_verdict == 0
        assert job.run().judge.reused == 12
    assert calls


def start(folder, server, *more, prepare=None):
    (folder / "r.md").write_text(RUBRIC_TEXT)
    command = [
        sys.executable,
        "-m",
        "cli",
        "relabel",
        "run",
        folder / "data.csv",
        "--rubric",
        folder / "r.md",
    ]
    command += [
        "--judge",
        "judge",
        "--base-url",
        server.base_url,
        "--out",
        folder / "clean.csv",
        "--concurrency",
        "4",
    ]
    environment = {**os.environ, "OPENAI_API_KEY": KEY, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [str(word) for word in (*command, *more)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=prepare,
    )  # fmt: skip


def test_a_polite_end_finishes_what_is_under_way(tmp_path):
    write_table(tmp_path / "data.csv", items=120)
    with RehearsalServer(scripts(120), latency=0.1) as server:
        process = start(tmp_path, server)
        while server.counts().requests < 12:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        out, told = process.communicate(timeout=120)
        answered = server.counts().answered
    assert (process.returncode, out) == (130, "")
    assert "the same command goes on" in told
    assert " not asked" in told
    assert "without verdict" not in told
    with Journal(tmp_path / "clean.journal.sqlite") as journal:
        assert journal.counts() == {"ok": answered}
    assert not (tmp_path / "clean.csv").exists()


def test_a_full_disk_ends_the_run_in_one_line_and_the_same_command_goes_on(tmp_path):
    write_table(tmp_path / "data.csv", items=200)

    def little_room():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))

    with RehearsalServer(scripts(200)) as server:
        process = start(tmp_path, server, "--quiet", prepare=little_room)
        _, told = process.communicate(timeout=120)
        assert process.returncode == 2
        assert told.count("\n") == 1
        assert "the journal failed" in told
        asked = server.counts().requests
        with Journal(tmp_path / "clean.journal.sqlite", wait=30) as journal:
            kept = journal.counts()["ok"]
        assert 0 < kept <= asked < 200
        process = start(tmp_path, server, "--quiet")
        process.communicate(timeout=120)
        assert process.returncode == 0
        assert server.counts().requests == asked + 200 - kept
    assert {row["status"] for row in read_table(tmp_path / "clean.csv")} == {"ok"}


def meddle(tmp_path, deed, *, latency=0.1):
    """Run over 60 items and do ``deed`` in the middle; what was told, and the server's count."""
    told = []
    with RehearsalServer(scripts(60), latency=latency) as server:
        job = make_job(tmp_path, server.base_url, items=60)

        def wait_and_do():
            while server.counts().requests < 20:
                time.sleep(0.002)
            deed()

        thread = threading.Thread(target=wait_and_do)
        thread.start()
        try:
            job.run(on_notice=told.append)
        finally:
            thread.join()
    return told


def reverse(path):
    head, *rows = path.read_text().splitlines()
    path.write_text("\n".join([head, *reversed(rows)]) + "\n")


@pytest.mark.parametrize("deed", ["reversed", "removed"])
def test_labels_are_never_written_beside_the_rows_of_another_table(tmp_path, deed):
    path = write_table(tmp_path / "data.csv", items=60)
    done = {"reversed": lambda: reverse(path), "removed": path.unlink}
    with pytest.raises(InputError, match="changed while it was read; run again"):
        meddle(tmp_path, done[deed])
    assert not (tmp_path / "clean.csv").exists()
    if deed == "reversed":
        with RehearsalServer(scripts(60)) as server:
            make_job(tmp_path, server.base_url, items=60).run()
        assert len(read_table(tmp_path / "clean.csv")) == 60


def test_a_journal_that_is_removed_under_a_run_is_told(tmp_path):
    def remove():
        for path in tmp_path.glob("clean.journal*"):
            path.unlink()

    (line,) = meddle(tmp_path, remove)
    assert line.endswith(
        "clean.journal.sqlite was moved or removed while the run wrote to it: its replies are gone"
    )
    assert {row["status"] for row in read_table(tmp_path / "clean.csv")} == {"ok"}


def test_windows_line_ends_make_no_other_request(tmp_path):
    table = write_table(tmp_path / "data.csv", items=8)
    plain = table.read_bytes().replace(b"\r\n", b"\n")
    rubric = tmp_path / "r.md"
    with RehearsalServer(scripts(8)) as server:
        for ends in (b"\n", b"\r\n"):
            table.write_bytes(plain.replace(b"\n", ends))
            rubric.write_bytes(RUBRIC_TEXT.encode().replace(b"\n", ends))
            make_job(tmp_path, server.base_url, rubric=rubric).run()
        assert server.counts().requests == 8


def test_a_rubric_of_three_hundred_labels(tmp_path):
    labels = "\n".join(f"  - {{name: L{n}, meaning: number {n}}}" for n in range(300))
    head = "name: many\nversion: '1'\ninputs: [text]\ndefault_label: L0"
    rubric = Rubric.parse(f"---\n{head}\nlabels:\n{labels}\n---\nC1. See the number.\n")
    truth = {text_of(n): f"L{37 * n}" for n in range(8)}
    with RehearsalServer(Script(truth=truth, labels=rubric.label_names, error=0.0)) as server:
        make_job(tmp_path, server.base_url, rubric=rubric, items=8).run()
    rows = read_table(tmp_path / "clean.csv")
    assert all(row["label_clean"] == truth[row["text"]] for row in rows)


def test_a_row_of_ten_million_characters_is_one_row_without_a_verdict(tmp_path):
    long = "word " * 2_000_000
    (tmp_path / "data.csv").write_text(f"id,text,label\n1,{long},rain\n2,a\x00b,sun\n")
    with RehearsalServer(Script(truth={}, labels=("rain", "sun"))) as server:
        job = make_job(tmp_path, server.base_url, settings=Settings(concurrency=2, timeout=60))
        assert job.run().statuses == {"ok": 1, "too_long": 1}
    assert (tmp_path / "clean.csv").read_bytes().count(b"a\x00b") == 1  # as it came


def test_long_rows_are_worked_on_in_small_parts():
    rows = [("x" * 40_000,)] * 100 + [("y",)] * 30_000
    parts = list(_parts([rows[:50], rows[50:]]))
    assert [row for part in parts for row in part] == rows
    assert max(sum(len(cell) for (cell,) in part) for part in parts) <= PART + 40_000
    assert len(parts) < 10


@pytest.mark.parametrize("name", ["x" * 300 + ".csv", "x" * 245 + ".csv", "a\0b.csv"])
def test_a_name_that_no_file_can_have_is_refused_before_anything_is_asked(tmp_path, name):
    with pytest.raises(ArgumentError, match="this name cannot be used"):
        make_job(tmp_path, "http://127.0.0.1:1/v1", out=tmp_path / name).plan()
