"""Faults that were found by breaking a run on purpose; each was a wrong result, a leak or a traceback before."""

import asyncio
import gzip
import json
import os
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from audit.errors import ArgumentError, InputError
from relabel.connect import Settings, place
from relabel.console import Console
from relabel.cost import Budget, find_price
from relabel.endpoint import Endpoint, check_url
from relabel.journal import Journal
from relabel.journal_file import lock
from relabel.output import check_paths
from tests.relabel_kit import KEY, RUBRIC, make_job, read_table, write_table


@contextmanager
def endpoint(answer):
    """A server that gives ``answer(headers)`` as the body of every reply; yields its base URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            body, extra = answer(self.headers)
            self.send_response(200)
            for name, value in {**extra, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def completion(content: str, **more) -> bytes:
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps(
        {"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 3}, **more}
    ).encode()


def verdict(rationale: str = "so") -> str:
    return json.dumps({"label": "rain", "rationale": rationale})


def job(folder, url, **more):
    return make_job(folder, url, items=4, settings=Settings(concurrency=2, samples=1), **more)


def everything(folder) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


def codes(text: str) -> str:
    return "".join(f"\\u{ord(char):04X}" for char in text)


QUOTED = verdict(f"your key is {KEY}")


@pytest.mark.parametrize(
    "body",
    [
        completion(QUOTED),
        completion(QUOTED.replace(KEY, codes(KEY))),
        completion(QUOTED.replace(KEY, KEY.replace("-", "\\u002d"))),
        completion("HERE").replace(b"HERE", codes(QUOTED).encode()),
    ],
    ids=["as it is", "as codes in the verdict", "in part as codes", "as codes in the answer"],
)
def test_a_key_that_is_quoted_back_escaped_is_in_no_file(tmp_path, monkeypatch, body):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with endpoint(lambda _: (body, {})) as url:
        job(tmp_path, url).run()
    rows = read_table(tmp_path / "clean.csv")
    assert {row["label_clean"] for row in rows} == {"rain"}
    assert {row["rationale"] for row in rows} == {"your key is [key]"}
    assert KEY.encode() not in everything(tmp_path)


def test_a_key_with_a_slash_is_found_where_the_endpoint_escapes_slashes(tmp_path, monkeypatch):
    key = "abc/def/ghi/jkl"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    body = completion(verdict(f"key {key}")).replace(b"/", b"\\/")
    with endpoint(lambda _: (body, {})) as url:
        job(tmp_path, url).run()
    assert read_table(tmp_path / "clean.csv")[0]["rationale"] == "key [key]"
    assert key.encode() not in everything(tmp_path)


def test_a_reply_of_backslashes_takes_no_time(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    body = completion("\\" * 1_000_000)  # quadratic, this would be hours
    with endpoint(lambda _: (body, {})) as url:
        result = job(tmp_path, url).run()
    assert result.to_dict()["result"]["statuses"] == {"unparsable": 5}


def test_a_packed_reply_is_a_reply_like_any_other(tmp_path):
    body = gzip.compress(completion(verdict()))
    with endpoint(lambda _: (body, {"content-encoding": "gzip"})) as url:
        job(tmp_path, url).run()
    assert {row["label_clean"] for row in read_table(tmp_path / "clean.csv")} == {"rain"}


@pytest.mark.parametrize(
    ("label", "status"),
    [
        ("r\u0430in", "not_in_set"),
        ("ra\u200bin", "not_in_set"),
        ("\uff52ain", "not_in_set"),
        (" rain \n", "ok"),
    ],
)
def test_letters_that_only_look_alike_make_no_label(tmp_path, label, status):
    body = completion(json.dumps({"label": label}))
    with endpoint(lambda _: (body, {})) as url:
        result = job(tmp_path, url).run()
    assert result.to_dict()["result"]["statuses"] == {status: 5}


def test_what_an_endpoint_wrote_reaches_no_terminal_raw(tmp_path):
    body = completion("\x1b[2J\x1b]0;owned\x07 no label")
    with endpoint(lambda _: (body, {})) as url:
        one = job(tmp_path, url)
        one.run()
        told = one.explain(1)[0].summary()
    assert "‹ESC›" in told
    assert "\x1b" not in told
    assert "\x07" not in told


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999/v1", "http://127.0.0.1:port/v1", "http://[::1/v1"])
def test_an_address_that_cannot_be_one_is_refused_in_one_line(url):
    with pytest.raises(ArgumentError, match="is no base URL"):
        check_url(url)
    with pytest.raises(ArgumentError, match="is no base URL"):
        place("judge", base_url=url)


def test_a_key_in_the_address_is_refused_before_a_plan_shows_it(tmp_path):
    with pytest.raises(ArgumentError, match="environment") as caught:
        job(tmp_path, f"http://user:{KEY}@127.0.0.1:1/v1").plan()
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "options", [{"temperature": float("nan")}, {"temperature": float("inf")}, {"timeout": float("nan")}]
)
def test_settings_are_numbers(options):
    with pytest.raises(ArgumentError, match="--t"):
        Settings(**options)


def test_money_is_a_number():
    with pytest.raises(ArgumentError, match="--budget"):
        Budget(float("nan"))
    with pytest.raises(ArgumentError, match="price"):
        find_price("m", base_url="http://x/v1", price_in=float("nan"), price_out=1.0)


def test_no_output_replaces_the_journal_the_gold_or_the_rubric(tmp_path):
    gold = write_table(tmp_path / "gold.csv", items=4)
    was = gold.read_bytes()
    with pytest.raises(ArgumentError, match="overwrite the input"):
        job(tmp_path, "http://127.0.0.1:1/v1", gold=gold, gold_label="label", out=gold).run()
    with pytest.raises(ArgumentError, match="overwrite the journal"):
        job(tmp_path, "http://127.0.0.1:1/v1", journal=tmp_path / "clean.csv").run()
    with pytest.raises(ArgumentError, match="overwrite the journal"):
        job(tmp_path, "http://127.0.0.1:1/v1", journal=tmp_path / "clean.unresolved.csv").plan()
    with pytest.raises(ArgumentError, match="overwrite the input"):
        check_paths(gold, source=None, unresolved=tmp_path / "u.csv", reads=(RUBRIC, str(gold)))
    assert gold.read_bytes() == was
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv", "gold.csv"]


def test_a_lock_that_cannot_be_made_is_no_other_run(tmp_path):
    (tmp_path / "j.sqlite.lock").mkdir()
    with pytest.raises(InputError, match="cannot lock"):
        lock(tmp_path / "j.sqlite", wait=-1.0)


def test_a_journal_in_a_read_only_folder_is_read_without_files_beside_it(tmp_path, monkeypatch):
    with Journal(tmp_path / "j.sqlite"):
        pass
    (tmp_path / "j.sqlite.lock").unlink()
    asked = []

    def access(path, mode):
        asked.append((path, mode))
        return False

    monkeypatch.setattr("relabel.journal_file.os.access", access)
    with Journal(tmp_path / "j.sqlite", read_only=True) as journal:
        assert journal.find([]) == {}
        assert [path.name for path in tmp_path.iterdir()] == ["j.sqlite"]
    assert asked == [(tmp_path, os.W_OK)]


def test_rows_without_text_are_not_promised_another_go(tmp_path):
    (tmp_path / "data.csv").write_text("id,text,label\n1,,rain\n2,so it is,rain\n")
    body = completion(verdict())
    with endpoint(lambda _: (body, {})) as url:
        summary = job(tmp_path, url).run().summary()
    assert "1 rows have no verdict (empty 1)" in summary
    assert "goes on with them" not in summary


def test_a_closed_standard_error_stops_no_run():
    class Closed:
        def isatty(self):
            return False

        def write(self, text):
            raise BrokenPipeError

        def flush(self):
            raise BrokenPipeError

    console = Console(Closed())
    console.notice("one")
    console.notice("two")
    console.close()


@pytest.mark.parametrize("packed", [False, True])
def test_an_endless_answer_is_cut_off(packed, tmp_path, monkeypatch):
    """300 MB of blanks, plain or packed into 300 KB, are not read to the end."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    blanks = b" " * 40_000_000
    flood = gzip.compress(blanks * 8, 6) if packed else blanks
    asked = []

    def answer(headers):
        asked.append(headers["accept-encoding"])
        return flood, {"content-encoding": "gzip"} if packed else {}

    async def ask(url):
        async with Endpoint(url, timeout=30.0) as open_endpoint:
            return await open_endpoint.chat({"model": "m", "messages": []})

    with endpoint(answer) as url:
        outcome = asyncio.run(ask(url))
    assert asked == ["identity"]
    assert "an answer of more than" in str(outcome)
