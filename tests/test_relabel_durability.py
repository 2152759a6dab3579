import os
import signal
import time

import pytest

from relabel.rehearse import RehearsalServer
from tests.relabel_kills import kill_and_resume, recorded, start
from tests.relabel_kit import RUBRIC_TEXT, read_table, scripts, write_table


def check(result, concurrency):
    """The file is as if nothing had happened, and nothing is paid twice but what was in flight at a kill."""
    assert result.killed == result.undisturbed
    assert result.exit_code == 0
    assert result.most_unrecorded_at_once <= concurrency
    assert result.answered_again <= result.unrecorded


def test_killed_runs_lose_nothing(tmp_path):
    result = kill_and_resume(tmp_path, items=100, kills=3, seed=4)
    check(result, 8)
    assert result.kills == 3


@pytest.mark.slow
def test_twenty_kills_lose_nothing(tmp_path):
    seed = int(time.time()) % 10_000  # other moments every time; the seed is in the failure's message
    result = kill_and_resume(tmp_path, items=500, kills=20, seed=seed, concurrency=16)
    check(result, 16)
    assert result.kills == 20, seed


@pytest.fixture
def folder(tmp_path):
    write_table(tmp_path / "data.csv", items=120)
    (tmp_path / "r.md").write_text(RUBRIC_TEXT)
    return tmp_path


@pytest.fixture
def launch(folder):
    """Starts runs in ``folder``; none outlives its test."""
    processes = []

    def begin(server, **more):
        processes.append(start(folder, server, 8, **more))
        return processes[-1]

    yield begin
    for process in processes:
        process.kill()
        process.wait()
        process.stderr.close()


def wait_for(server, requests, process):
    while process.poll() is None and server.counts().requests < requests:
        time.sleep(0.005)
    assert process.poll() is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_polite_stop_finishes_what_is_under_way_and_says_how_to_go_on(folder, launch, number):
    with RehearsalServer(scripts(120), latency=0.1) as server:
        process = launch(server)
        wait_for(server, 30, process)
        process.send_signal(number)
        _, told = process.communicate()
        assert process.returncode == 130
        assert b"the same command goes on" in told
        assert b"Traceback" not in told
        assert not (folder / "clean.csv").exists()
        assert recorded(folder) == server.counts().answered  # nothing that was answered is lost
        process = launch(server)
        process.communicate()
        assert process.returncode == 0
        assert server.counts().answered_again == 0
    assert len(read_table(folder / "clean.csv")) == 120


def test_a_second_interrupt_leaves_at_once(launch):
    with RehearsalServer(scripts(120), latency=3) as server:
        process = launch(server)
        wait_for(server, 8, process)
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in told


def test_two_runs_on_one_journal(launch):
    with RehearsalServer(scripts(120), latency=2) as server:
        first = launch(server)
        wait_for(server, 1, first)
        second = launch(server)
        _, told = second.communicate()
        assert first.poll() is None
        assert second.returncode == 2
        assert f"process {first.pid}".encode() in told
        assert b"--wait" in told


def test_a_full_disk_is_an_error_and_not_a_loss(folder, launch):
    """The journal stands on a file that may not grow: the run says so, and what was recorded is used later."""
    if os.name != "posix":
        pytest.skip("needs a limit on the size of files")
    import resource

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (250_000, 250_000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    with RehearsalServer(scripts(120)) as server:
        process = launch(server, prepare=small)
        _, told = process.communicate()
        assert process.returncode == 2
        assert b"the journal failed" in told
        assert b"Traceback" not in told
        kept, answered = recorded(folder), server.counts().answered
        assert 0 < kept <= answered <= kept + 8
        process = launch(server)
        process.communicate()
        assert process.returncode == 0
        assert server.counts().answered_again <= answered - kept
