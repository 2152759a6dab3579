"""Endpoints that fail at the worst moment or mean harm: what was paid is kept, and the key stays inside."""

import asyncio
import json
import socket
import sqlite3
import threading
import time
from contextlib import closing, contextmanager

import pytest

from audit.errors import ArgumentError, EndpointError, InputError
from relabel.connect import Settings, place
from relabel.endpoint import Endpoint, disguised
from relabel.gate import Gate
from relabel.journal import Journal
from relabel.pipeline import Judge, judge_items
from relabel.records import Judged, Reply, Status, Verdict
from relabel.rehearse import RehearsalServer
from relabel.rubric import Rubric
from relabel.worklist import Item
from tests.relabel_kit import KEY, RUBRIC, make_job, read_table, scripts, text_of
from tests.test_relabel_attacks import completion, endpoint, everything, verdict


class Failing:
    """Answers all at once, but only after the request about item ``bad`` has found that no asking helps."""

    model, base_url = "m", "http://a/v1"

    def __init__(self, bad: int):
        self.bad, self.failed = text_of(bad), asyncio.Event()
        self.asked = 0

    async def judge(self, request):
        self.asked += 1
        if self.bad in request.messages[-1]["content"]:
            while self.asked < 16:
                await asyncio.sleep(0)
            self.failed.set()
            raise EndpointError("the key was revoked")
        await self.failed.wait()
        await asyncio.sleep(0.01)
        return Judged(request, Reply(body={}, attempts=1), Verdict(status=Status.OK, label="rain"))


def test_what_is_under_way_when_the_endpoint_fails_for_good_is_kept(tmp_path):
    items = [Item(id=n, row={"text": text_of(n)}) for n in range(200)]
    answers = []

    async def work(journal):
        client = Failing(bad=3)
        who = Judge(client=client, params={})
        with pytest.raises(EndpointError, match="revoked"):
            await judge_items(
                items, rubric=RUBRIC, judge=who, journal=journal, on_answer=answers.append, concurrency=16
            )
        return client.asked

    with Journal(tmp_path / "j.sqlite") as journal:
        assert asyncio.run(work(journal)) == 16  # and nothing new was begun
        assert journal.counts() == {"ok": 15}
    assert sum(answer.asked for answer in answers) == 15


def test_a_key_that_is_revoked_in_the_middle_loses_no_reply(tmp_path, monkeypatch):
    """Eight requests are under way when the ninth is turned down; the server counts what it answered."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with RehearsalServer(scripts(60), latency=0.05, jitter=1.0, api_key=KEY) as server:
        one = make_job(tmp_path, server.base_url)

        def revoke():
            while server.counts().answered < 20:
                time.sleep(0.002)
            server.api_key = "another"

        thread = threading.Thread(target=revoke)
        thread.start()
        with pytest.raises(EndpointError, match="turned the key down"):
            one.run()
        thread.join()
        answered = server.counts().answered
    with Journal(tmp_path / "clean.journal.sqlite") as journal:
        assert journal.counts() == {"ok": answered}


def test_who_waits_at_the_gate_is_sent_away_when_it_closes():
    async def go():
        gate = Gate(1)
        ticket = await gate.enter()
        waiting = [asyncio.create_task(gate.enter()), asyncio.create_task(gate.pause(3600))]
        await asyncio.sleep(0)
        gate.close(EndpointError("gone"))
        told = await asyncio.gather(*waiting, gate.enter(), gate.pause(0), return_exceptions=True)
        gate.leave(ticket)
        gate.refuse(ticket, retry_after=3600)
        told.append(await asyncio.gather(gate.enter(), return_exceptions=True))
        return told

    *told, (late,) = asyncio.run(go())
    assert [str(error) for error in (*told, late)] == ["gone"] * 5


def test_judge_and_adjudicator_at_one_endpoint_share_its_gate(tmp_path):
    url = "http://127.0.0.1:1/v1"
    with make_job(tmp_path, url, adjudicator="other").engine() as engine:
        assert list(engine.gates) == [url]
        assert engine._connect(engine.asked[0]).__class__ is engine._connect(engine.asked[1]).__class__
    job = make_job(tmp_path, url, adjudicator="other", adjudicator_base_url="http://127.0.0.1:2/v1")
    with job.engine() as engine:
        assert len(engine.gates) == 2


def test_the_adjudicator_goes_on_with_what_the_gate_learned(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(Gate, "success", lambda gate, ticket: seen.append(gate))
    with RehearsalServer(scripts(30)) as server:
        make_job(tmp_path, server.base_url, adjudicator="adjudicator").run()
    assert len(seen) > 30
    assert len({id(gate) for gate in seen}) == 1


# --- the key

INNER = "".join(f"\\u{ord(char):04x}" for char in KEY)  # the key as JSON's codes
DISGUISES = {
    "coded twice": INNER.replace("\\", "\\u005c"),
    "codes of codes": "".join(f"\\u{ord(char):04x}" for char in INNER),
    "in percents": "".join(f"%{ord(char):02x}" for char in KEY),
    "in part in percents": KEY.replace("-", "%2D"),
    "percents in codes": KEY.replace("-", "\\u00252d"),
    "for HTML": KEY.replace("-", "&#45;"),
    "for HTML, hexadecimal": KEY.replace("-", "&#x2D;"),
    "hexadecimal": KEY.replace("-", "\\x2d"),
}


@pytest.mark.parametrize("name", DISGUISES)
def test_a_disguised_key_is_kept_nowhere(tmp_path, monkeypatch, name):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    told = DISGUISES[name]
    assert KEY not in told
    inner = verdict("HERE").replace("HERE", told)
    body = completion("THERE").replace(b"THERE", json.dumps(inner)[1:-1].encode())
    with endpoint(lambda _: (body, {})) as url:
        result = make_job(tmp_path, url, items=6, settings=Settings(concurrency=1, samples=1))
        with pytest.raises(EndpointError) as caught:
            result.run()
    assert "quotes the key" in str(caught.value)
    kept = everything(tmp_path)
    for piece in (KEY, told, json.dumps(told)[1:-1], KEY[6:]):
        assert piece.encode() not in kept
        assert piece not in str(caught.value)


def test_a_row_whose_reply_hides_the_key_has_no_verdict_and_the_others_do(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    count = []

    def answer(_):
        count.append(1)
        rationale = DISGUISES["in percents"] if len(count) == 4 else "so"
        return completion(verdict(rationale)), {}

    with endpoint(answer) as url:
        make_job(tmp_path, url, items=4, settings=Settings(concurrency=1, samples=1)).run()
    rows = read_table(tmp_path / "clean.csv")
    assert [row["status"] for row in rows].count("transport") == 1
    reasons = {row["reason"] for row in read_table(tmp_path / "clean.unresolved.csv")}
    assert reasons == {"HTTP 200: the answer quotes the key, disguised; nothing of it was kept"}


@pytest.mark.parametrize(
    "text", ["plain", "100%20%25", "\\u0041\\u0042", "&#45;" * 1000, "%25" * 1000, "\\" * 100_000 + "u0041"]
)
def test_escapes_without_the_key_are_no_disguise(text):
    assert not disguised(text, KEY)


def test_an_error_message_with_a_disguised_key_says_so_instead(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    told = Endpoint("http://127.0.0.1:1/v1").redact(f"bad key {DISGUISES['in percents']}")
    assert told == "[a message that quotes the key, disguised]"


# --- slow endpoints


@contextmanager
def drip(head: bytes):
    """A server that sends ``head`` and then a byte every tenth of a second, for ever."""
    server = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def serve():
        server.settimeout(0.1)
        open_now = []
        while not over.is_set():
            try:
                open_now.append(server.accept()[0])
                open_now[-1].sendall(head)
            except TimeoutError:
                pass
            for one in open_now:
                try:
                    one.send(b" ")
                except OSError:
                    one.close()
                    open_now.remove(one)
                    break
        for one in open_now:
            one.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"
    finally:
        over.set()
        thread.join()
        server.close()


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n{", b"HTTP/1.1 200 OK\r\nx-slow: "]
)
def test_an_endpoint_that_sends_a_byte_now_and_then_is_given_up_after_the_timeout(head):
    async def ask(url):
        async with Endpoint(url, timeout=0.6) as one:
            return await one.chat({"model": "m", "messages": []})

    with drip(head) as url:
        outcome = asyncio.run(ask(url))
    assert outcome.told == "no answer within 0.6 s"
    assert outcome.strain


# --- arguments, journals, rubrics


@pytest.mark.parametrize(
    "name", ["judge", "adjudicator", "base_url", "adjudicator_base_url", "label", "gold"]
)
@pytest.mark.parametrize("value", ["", "  "])
def test_an_empty_name_is_refused(tmp_path, name, value):
    with pytest.raises(ArgumentError, match=f"--{name.replace('_', '-')} is empty"):
        make_job(tmp_path, "http://127.0.0.1:1/v1", **{name: value})


@pytest.mark.parametrize("how", [{"model": " "}, {"model": "m", "base_url": ""}])
def test_a_probe_names_a_model_and_an_endpoint(how):
    with pytest.raises(ArgumentError, match="is empty"):
        place(**how)


DAMAGE = {
    "no JSON": ("last", "{"),
    "a message without content": ("last", '{"role": "user"}'),
    "no object": ("last", '"hello"'),
    "a reply of another shape": ("raw", '{"colour": "red"}'),
    "an unknown status": ("status", "splendid"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_record_is_told_in_one_line(tmp_path, name):
    column, value = DAMAGE[name]
    with RehearsalServer(scripts(4)) as server:
        one = make_job(tmp_path, server.base_url, items=4)
        one.run()
        path = tmp_path / "clean.journal.sqlite"
        with closing(sqlite3.connect(path)) as con:
            con.execute("DROP TRIGGER reply_update")
            con.execute(f"UPDATE reply SET {column} = ?", (value,))
            con.commit()
        changed = Rubric.parse(RUBRIC_TEXT_WITH_SYNONYM)  # its replies are read again from the raw text
        with pytest.raises(InputError, match=r"damaged.*--journal") as caught:
            make_job(tmp_path, server.base_url, items=4, rubric=changed).run()
    assert "\n" not in str(caught.value)


RUBRIC_TEXT_WITH_SYNONYM = """---
name: weather
version: "3"
inputs: [text]
default_label: sun
labels:
  - name: rain
    meaning: water falls
    synonyms: [wet, drizzle]
  - name: sun
    meaning: it does not
---
Judge the weather.

C1. Falling water is rain.
C2. Everything else is sun.
"""


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["rain", "ra\u200bin"], "look the same"),
        (["rain", "rain\ufe0f"], "look the same"),
        (["a b", "a  b"], "look the same"),
        (["rain", "su\nn"], "line end"),
        (["rain", "su\u2028n"], "line end"),
        (["rain", "s\u00adun"], "nobody sees"),
    ],
)
def test_check_tells_of_labels_that_cannot_be_told_apart_by_eye(names, told):
    labels = json.dumps(dict.fromkeys(names, "meaning"))
    head = f'name: n\nversion: "1"\ninputs: [t]\ndefault_label: {json.dumps(names[0])}'
    text = f"---\n{head}\nlabels: {labels}\n---\nC1. x\n"
    problems = Rubric.parse(text).check()
    assert [problem.fatal for problem in problems] == [False]
    assert told in problems[0].message
    assert problems[0].message.isascii()


def test_accents_and_other_scripts_are_no_fault():
    labels = json.dumps({"caf\u00e9": "a", "cafe": "b", "\u0434\u0430": "c", "\u4e0d": "d"})
    text = f'---\nname: n\nversion: "1"\ninputs: [t]\ndefault_label: cafe\nlabels: {labels}\n---\nC1. x\n'
    assert Rubric.parse(text).check() == ()
