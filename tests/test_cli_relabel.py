"""The commands of ``audit relabel``, called as a person calls them (in this process, against a rehearsal)."""

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.request

import pytest
from typer.testing import CliRunner

import cli
from audit.errors import ArgumentError, InputError
from relabel.cli import app
from relabel.console import Console
from relabel.output import COLUMNS
from relabel.progress import Progress
from relabel.records import Status
from relabel.rehearse import PROFILES, Fault, RehearsalServer
from tests.conftest import ROOT
from tests.relabel_kit import KEY, RUBRIC_TEXT, read_table, scripts, write_table


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "data.csv", items=40, rows=50)
    (tmp_path / "rubric.md").write_text(RUBRIC_TEXT)
    return tmp_path


def call(*arguments, code=0):
    result = CliRunner().invoke(
        app, [str(a) for a in arguments], catch_exceptions=False, prog_name="audit relabel"
    )
    assert result.exit_code == code, result.output
    return result


def run(server, *more, code=0):
    return call(
        "run",
        "data.csv",
        "--rubric",
        "rubric.md",
        "--judge",
        "judge",
        "--base-url",
        server.base_url,
        *more,
        code=code,
    )


@pytest.fixture
def server():
    with RehearsalServer(scripts(40)) as running:
        yield running


def test_run_prints_a_summary_and_tells_progress_on_standard_error(server, folder):
    result = run(server, "--adjudicator", "adjudicator", "--label", "label")
    assert "50 rows, 40 distinct items, rubric 3" in result.stdout
    assert "wrote data.relabelled.csv" in result.stdout
    assert "judge 40/40" in result.stderr
    assert "judge 40/40" not in result.stdout
    assert len(read_table(folder / "data.relabelled.csv")) == 50
    assert (folder / "data.relabelled.journal.sqlite").exists()


def test_run_prints_json_and_nothing_else_on_standard_output(server, folder):
    result = run(server, "--format", "json", "--out", "o.jsonl", "--journal", "j.sqlite", "--quiet")
    told = json.loads(result.stdout)
    assert (told["data"], told["result"]["without_verdict"]) == ({"rows": 50, "items": 40, "empty": 0}, 0)
    assert told["judge"]["asked"] == 40
    assert (told["out"], told["journal"], told["unresolved"]) == ("o.jsonl", "j.sqlite", None)
    assert result.stderr == ""
    assert len((folder / "o.jsonl").read_text().splitlines()) == 50


def test_rows_without_a_verdict_are_exit_code_3(server, folder):
    server.faults = [Fault(kind="refusal", contains="Report 7:")]
    result = run(server, "--out", "o.csv", code=3)
    assert (
        "2 rows have no verdict (refused 2), listed in o.unresolved.csv; the same command goes on"
        in result.stdout
    )
    assert [row["row"] for row in read_table(folder / "o.unresolved.csv")] == ["8", "48"]


def test_a_dry_run_asks_nothing_and_writes_nothing(server, folder):
    before = sorted(path.name for path in folder.iterdir())
    result = run(server, "--dry-run", "--price-in", "1", "--price-out", "2", "--adjudicator", "adjudicator")
    assert "judge judge: 40 requests" in result.stdout
    assert "in all about $" in result.stdout or "price unknown" in result.stdout
    told = json.loads(run(server, "--dry-run", "--format", "json").stdout)
    assert (told["judge"]["requests"], told["cost"]) == (40, None)
    assert server.counts().requests == 0
    assert sorted(path.name for path in folder.iterdir()) == before


def test_explain_and_status(server, folder):
    run(server, "--out", "o.csv")
    options = ["--rubric", "rubric.md", "--judge", "judge", "--base-url", server.base_url, "--out", "o.csv"]
    assert "will be used again" in call("explain", "data.csv", "--row", 3, *options).stdout
    told = json.loads(
        call("explain", "data.csv", "--row", 3, *options, "--seed", 5, "--format", "json").stdout
    )
    assert told[0]["near"][0]["differences"] == ["parameter seed was 0, is now 5"]
    assert "ok 40" in call("status", "o.journal.sqlite").stdout
    assert json.loads(call("status", "o.journal.sqlite", "--format", "json").stdout)["statuses"] == {"ok": 40}
    with pytest.raises(InputError, match="no such journal"):
        call("status", "none.sqlite")


def test_check_shows_the_exact_messages(folder):
    result = call("check", "rubric.md", "--data", "data.csv", "--row", 2)
    assert "no problem found" in result.stdout
    assert "--- system ---" in result.stdout
    assert "Report 1: the sky over town 1" in result.stdout
    told = json.loads(call("check", "rubric.md", "--format", "json").stdout)
    assert (told["usable"], told["labels"], told["clauses"]) == (True, ["rain", "sun"], ["C1", "C2"])
    (folder / "bad.md").write_text(RUBRIC_TEXT.replace("default_label: sun", "default_label: fog"))
    result = call("check", "bad.md", code=1)
    assert "problem: default_label 'fog' is not one of" in result.stdout
    assert "not fit for use" in result.stdout


def test_probe_tells_and_keeps_what_an_endpoint_does(folder):
    with RehearsalServer(scripts(40), profile=PROFILES["llama_cpp"]) as server:
        told = json.loads(
            call("probe", "--judge", "judge", "--base-url", server.base_url, "--format", "json").stdout
        )
        assert (told["json_schema"], told["json_object_schema"], told["n"]) == (False, True, False)
        result = call(
            "probe", "--judge", "judge", "--base-url", server.base_url, "--journal", "o.journal.sqlite"
        )
        assert re.search(r"json_schema +no\n", result.stdout)
        before = server.counts().by_status
        run(server, "--out", "o.csv")
        assert server.counts().by_status.get(500, 0) == before.get(500, 0)  # it knew what not to try


@pytest.mark.parametrize(
    ("more", "part"),
    [
        (["--escalate", "20%"], "give --adjudicator"),
        (["--adjudicator", "a", "--escalate", "20%", "--escalate-below", "0.5"], "exclude each other"),
        (["--out", "data.csv"], "overwrite the input"),
        (["--budget", "1"], "--price-in"),
        (["--timeout", "0"], "--timeout must be above 0"),
    ],
)
def test_contradictions_are_one_line_with_the_fix(server, more, part):
    with pytest.raises(ArgumentError, match=part) as caught:
        run(server, *more)
    assert "\n" not in str(caught.value)
    assert server.counts().requests == 0


def test_exit_codes_come_out_of_the_command_itself(server, monkeypatch, capsys):
    arguments = ["audit", "relabel", "run", "data.csv", "--rubric", "none.md", "--judge", "judge"]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    assert (
        capsys.readouterr().err
        == "audit: cannot read the rubric none.md: No such file or directory; check the path\n"
    )


def test_rehearse_serves_until_it_is_interrupted(folder):
    (folder / "truth.csv").write_text('text,about,truth\n"It pours.",town,rain\n"It shines.",town,sun\n')
    command = [
        sys.executable,
        "-m",
        "cli",
        "relabel",
        "rehearse",
        "truth.csv",
        "--item",
        "text",
        "--item",
        "about",
    ]
    command += ["--label", "truth", "--model", "judge=0", "--fault", "rate_limit:0", "--per-second", "100"]

    def listen():  # a shell starts what it sends to the background deaf to Ctrl-C, and so all that comes from it
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True, preexec_fn=listen)
    try:
        line = process.stdout.readline()
        url = re.search(r"rehearsing 2 items at (\S+)", line).group(1)
        with urllib.request.urlopen(f"{url}/models", timeout=20) as answer:
            assert [card["id"] for card in json.load(answer)["data"]] == ["judge"]
        rubric = RUBRIC_TEXT.replace("[text]", "[text, about]")
        (folder / "two.md").write_text(rubric)
        call(
            "run", "truth.csv", "--rubric", "two.md", "--judge", "judge", "--base-url", url, "--out", "o.csv"
        )
        assert all(row["label_clean"] == row["truth"] for row in read_table(folder / "o.csv"))
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        finally:
            process.kill()
            process.stdout.close()
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("more", "part"),
    [
        (["--profile", "nope"], "choose one of full"),
        (["--model", "judge"], "write judge=0.1"),
        (["--fault", "x"], "no fault 'x'"),
    ],
)
def test_rehearse_tells_what_it_cannot_play(folder, more, part):
    (folder / "truth.csv").write_text("text,truth\na,rain\nb,sun\n")
    with pytest.raises(ArgumentError, match=part):
        call("rehearse", "truth.csv", "--item", "text", "--label", "truth", *more)


def progress(done, **more):
    values = {"phase": "judge", "total": 10, "reused": 0, "asked": done, "no_verdict": 1, "seconds": 2.0}
    return Progress(**{**values, "done": done, "cost": 0.5, "compared": 4, "kept": 3, **more})


def test_the_line_of_progress_tells_rate_time_cost_share_and_agreement():
    line = progress(4, escalated_share=0.15).line()
    assert line == (
        "judge 4/10 · 2.0/s · 0:03 to go · 1 without verdict · $0.5000 · 15.0% escalated · 75.0% as the old labels"
    )
    assert progress(0, cost=None, compared=0, no_verdict=0).line() == "judge 0/10 · 0.0/s"
    assert "1:23:20 to go" in progress(1, total=5001, seconds=1.0, asked=1).line()


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_sees_one_line_and_a_log_few():
    screen, log = Screen(), io.StringIO()
    for stream in (screen, log):
        console = Console(stream)
        for done in range(1, 11):
            console.progress(progress(done))
        console.notice("note")
        console.close()
    assert screen.getvalue().count("\r") == 10
    assert screen.getvalue().endswith("\nnote\n")
    assert log.getvalue().splitlines() == [progress(1).line(), progress(10).line(), "note"]


def test_a_quiet_console_keeps_notices():
    stream = io.StringIO()
    console = Console(stream, quiet=True)
    console.progress(progress(1))
    console.notice("stopping")
    assert stream.getvalue() == "stopping\n"


def test_the_clock_of_a_log(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    console = Console(stream)
    for second in range(25):
        now[0] = float(second)
        console.progress(progress(1))
    assert len(stream.getvalue().splitlines()) == 3


def documented():
    text = (ROOT / "docs" / "relabel.md").read_text(encoding="utf-8")
    return [
        line.removeprefix("$ audit relabel ")
        for line in text.splitlines()
        if line.startswith("$ audit relabel ")
    ]


@pytest.mark.parametrize("line", documented())
def test_the_tutorial_names_commands_and_options_that_exist(line):
    command, *words = shlex.split(line)
    known = call(command, "--help").output
    for word in words:
        if word.startswith("--"):
            assert re.search(rf"{word}\b", known), f"{word} is not an option of {command}"


def test_the_tutorial_names_every_status_and_column():
    text = (ROOT / "docs" / "relabel.md").read_text(encoding="utf-8")
    for name in (*Status, *COLUMNS):
        assert f"| `{name}` |" in text


def test_the_json_has_the_documented_paths(server):
    told = json.loads(
        run(server, "--adjudicator", "adjudicator", "--label", "label", "--format", "json").stdout
    )
    text = (ROOT / "docs" / "relabel.md").read_text(encoding="utf-8")
    table = text[text.index("### The JSON of a run") : text.index("## Rehearsing")]
    for key, value in told.items():
        assert f"`{key}`" in table or f"`{key}." in table, key
        if key in ("data", "judge", "escalation", "result", "old_labels", "rubric"):
            for inner in value:
                assert f"`{key}.{inner}`" in table or f"`.{inner}`" in table, (key, inner)
