from __future__ import annotations

import http.client
import json
import math
import socket
import threading
from urllib.parse import urlsplit

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.errors import ArgumentError, AuditError, ColumnError, InputError
from relabel.logprobs import tokens_of
from relabel.parse import parse_reply
from relabel.prompts import messages
from relabel.records import Status
from relabel.rehearse import PROFILES, Fault, Profile, Rate, RehearsalServer, Script
from relabel.rehearse_faults import REPLY_FAULTS, TRANSPORT_FAULTS
from relabel.rehearse_script import ItemFinder, fence
from relabel.rehearse_serve import read_truth, serve
from relabel.rubric import Rubric
from relabel.spellings import Spellings

RUBRIC = Rubric.parse(
    "---\nname: weather\nversion: '1'\ninputs: [text]\nlabels: [rain, sun, rainbow]\n---\nC1. Look outside.\n"
)
LABELS = Spellings(RUBRIC.labels)
TRUTH = {
    f"Report {n}: the sky over town {n % 7} was observed at noon.": "rain" if n % 3 else "sun"
    for n in range(40)
}
SCRIPT = Script(truth=TRUTH, labels=RUBRIC.label_names)
ITEM = next(iter(TRUTH))


def chat(item=ITEM, **more):
    return {"model": "judge", "messages": list(messages(RUBRIC, {"text": item})), "temperature": 0, **more}


def send(server, body, *, path="/v1/chat/completions", method="POST", timeout=10.0, **headers):
    """(status, headers, body) of one request over a connection of its own."""
    connection = http.client.HTTPConnection(urlsplit(server.base_url).netloc, timeout=timeout)
    try:
        connection.request(method, path, json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def verdict(server, body):
    status, _, content = send(server, body)
    assert status == 200
    return parse_reply(json.loads(content), LABELS)


# -- the endpoint --------------------------------------------------------------------------------------


def test_an_openai_client_talks_to_it():
    with RehearsalServer(SCRIPT) as server:
        with openai.OpenAI(base_url=server.base_url, api_key="any", max_retries=0) as client:
            assert [model.id for model in client.models.list()] == ["judge"]
            reply = client.chat.completions.create(**chat(logprobs=True, top_logprobs=3))
        message = reply.choices[0].message.content
        assert json.loads(message)["label"] == TRUTH[ITEM]
        assert "".join(token.token for token in reply.choices[0].logprobs.content) == message
        assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens > 0


def test_it_counts_what_it_was_asked():
    with RehearsalServer(SCRIPT) as server:
        for item in [ITEM, ITEM, list(TRUTH)[1]]:
            send(server, chat(item))
        _, _, content = send(server, {}, path="/rehearsal/counts", method="GET")
        counts = server.counts()
    assert (counts.requests, counts.distinct, counts.repeated) == (3, 2, 1)
    assert (counts.answered, counts.answered_again) == (3, 1)
    assert counts.by_status == {200: 3}
    assert counts.by_model == {"judge": 3}
    assert json.loads(content)["answered_again"] == 1


def test_a_model_of_its_own_script_and_no_other():
    with RehearsalServer({"good": SCRIPT, "bad": Script(truth=TRUTH, error=0.4)}) as server:
        assert send(server, {**chat(), "model": "good"})[0] == 200
        assert send(server, {**chat(), "model": "ugly"})[0] == 404
        assert server.counts().by_model == {"good": 1, "ugly": 1}


def test_only_the_right_key_is_let_in():
    with RehearsalServer(SCRIPT, api_key="sesame-open-now") as server:
        assert send(server, chat())[0] == 401
        assert send(server, chat(), Authorization="Bearer sesame-open-now")[0] == 200


def test_what_is_no_chat_request():
    with RehearsalServer(SCRIPT) as server:
        assert send(server, {"model": "judge"})[0] == 400
        assert send(server, [])[0] == 400
        assert send(server, chat(), path="/v1/embeddings")[0] == 404
        host, port = urlsplit(server.base_url).netloc.split(":")
        for raw, status in [
            (b"nonsense\r\n\r\n", b"400"),
            (b"POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411"),
            (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", b"413"),
            (b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000, b"431"),
        ]:
            with socket.create_connection((host, int(port)), timeout=10) as wire:
                wire.sendall(raw)
                assert wire.recv(100).split()[1] == status


def test_two_requests_on_one_connection_are_answered_in_order():
    with RehearsalServer(SCRIPT, latency=0.01) as server:
        host, port = urlsplit(server.base_url).netloc.split(":")
        items = list(TRUTH)[:2]
        with socket.create_connection((host, int(port)), timeout=10) as wire:
            for item in items:
                body = json.dumps(chat(item)).encode()
                wire.sendall(
                    b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body
                )
            heard = b""
            while heard.count(b'"usage"') < 2:
                heard += wire.recv(65536)
        answers = [json.loads(part[part.index(b"{") :]) for part in heard.split(b"HTTP/1.1 200 OK")[1:]]
        assert [parse_reply(answer, LABELS).label for answer in answers] == [TRUTH[item] for item in items]
        assert server.counts().max_in_flight == 1


def test_a_port_that_is_taken_is_one_clear_error():
    with RehearsalServer(SCRIPT) as server:
        port = int(server.base_url.split(":")[2].split("/")[0])
        with pytest.raises(AuditError, match=f"cannot listen on port {port} .*choose another port"):
            RehearsalServer(SCRIPT, port=port).start()


def test_it_serves_in_the_foreground_until_told(tmp_path):
    table = tmp_path / "truth.csv"
    table.write_text(
        'text,label\n"rain, then sun",rain\nfog,sun\n"rain, then sun",sun\n,rain\n', encoding="utf-8"
    )
    truth = read_truth(table, item="text", label="label")
    assert truth == {"rain, then sun": "rain", "fog": "sun"}
    until, ready, urls = threading.Event(), threading.Event(), []
    server = RehearsalServer(Script(truth=truth))
    thread = threading.Thread(
        target=serve,
        args=(server,),
        kwargs={"on_ready": lambda url: (urls.append(url), ready.set()), "until": until},
    )
    thread.start()
    assert ready.wait(10)
    assert verdict(server, chat("rain, then sun")).label == "rain"
    assert urls == [server.base_url]
    until.set()
    thread.join(10)
    assert not thread.is_alive()
    with pytest.raises(ColumnError, match="no column 'gold'"):
        read_truth(table, item="text", label="gold")
    table.write_text("text,label\n,rain\n", encoding="utf-8")
    with pytest.raises(InputError, match="no row with both"):
        read_truth(table, item="text", label="label")


# -- the judge -----------------------------------------------------------------------------------------

MANY = {
    f"Item {n} of the long list, observed on day {n % 31}.": ("rain", "sun", "rainbow")[n % 3]
    for n in range(4000)
}


def draws(script, temperature=0, salt=""):
    found = {}
    for item in script.truth:
        prompt = [{"role": "user", "content": f"{salt}\n{item}"}]
        found[item] = script.answer(prompt, draw=(salt, temperature))
    return found


def test_the_script_keeps_its_promises():
    script = Script(truth=MANY, error=0.1, seed=3)
    first, second = draws(script, salt="a"), draws(script, salt="b")
    n = len(MANY)
    wrong = sum(first[item].label != true for item, true in MANY.items()) / n
    differ = sum(first[item].label != second[item].label for item in MANY) / n
    # binomial standard errors are .0047 and .0056; five of them
    assert script.accuracy() == pytest.approx(0.9, abs=0.005)
    assert wrong == pytest.approx(1 - script.accuracy(), abs=0.024)
    assert differ == pytest.approx(script.disagreement(), abs=0.028)
    # d = E[2x - x^2 (1 + 1/(K-1))] with x = u^4/2: E[x] = .1, E[x^2] = 1/36
    assert script.disagreement() == pytest.approx(0.2 - 1.5 / 36, abs=0.006)


def test_stated_confidence_is_the_probability_of_being_right():
    script = Script(truth=MANY, error=0.2, seed=1)
    answers = draws(script)
    bins = {}
    for item, answered in answers.items():
        sure = answered.belief[answered.label]
        assert sum(answered.belief.values()) == pytest.approx(1.0)
        bins.setdefault(min(int(sure * 5), 4), []).append((sure, answered.label == MANY[item]))
    assert len(bins) >= 3
    for pairs in bins.values():
        stated = sum(sure for sure, _ in pairs) / len(pairs)
        right = sum(hit for _, hit in pairs) / len(pairs)
        assert right == pytest.approx(stated, abs=5 * math.sqrt(0.25 / len(pairs)))
    # the least sure 15 % hold more than half of the errors (at error .1: 1 - .85^5 = .56)
    script = Script(truth=MANY, error=0.1, seed=1)
    answers = sorted((a.belief[a.label], a.label == MANY[item]) for item, a in draws(script).items())
    low = answers[: len(answers) * 15 // 100]
    assert sum(not hit for _, hit in low) / sum(not hit for _, hit in answers) == pytest.approx(
        0.556, abs=0.13
    )


def test_a_flat_judge_is_equally_sure_of_all():
    answers = draws(Script(truth=MANY, error=0.1, informative=False))
    assert {round(a.belief[a.label], 9) for a in answers.values()} == {0.9}


def test_bias_agrees_with_itself_and_is_wrong():
    script = Script(truth=MANY, bias={"sun": ("rain", 0.3)})
    first, second = draws(script, salt="a"), draws(script, salt="b")
    assert {i: a.label for i, a in first.items()} == {i: a.label for i, a in second.items()}
    assert script.disagreement() == 0
    moved = [item for item, true in MANY.items() if first[item].label != true]
    assert {(MANY[item], first[item].label) for item in moved} == {("sun", "rain")}
    assert len(moved) / len(MANY) == pytest.approx(0.1, abs=0.03)
    assert script.accuracy() == 1 - len(moved) / len(MANY)


def test_temperature_zero_repeats_itself_and_a_warm_judge_draws_afresh():
    script = Script(truth=TRUTH, error=0.45, labels=RUBRIC.label_names)
    with RehearsalServer(script) as server:

        def labels(**more):
            return [verdict(server, chat(item, **more)).label for item in TRUTH]

        assert labels() == labels()
        assert labels(temperature=1) != labels(temperature=1)
        assert labels(temperature=1, seed=5) == labels(temperature=1, seed=5)
        assert labels(temperature=1, seed=5) != labels(temperature=1, seed=6)
        several = json.loads(send(server, chat(n=5, temperature=1))[2])
        assert len(several["choices"]) == 5


def test_what_the_log_probabilities_say_is_what_the_judge_believes():
    script = Script(truth=TRUTH, error=0.3, labels=RUBRIC.label_names)
    with RehearsalServer(script) as server:
        for item in TRUTH:
            reply = json.loads(send(server, chat(item, logprobs=True, top_logprobs=5))[2])
            found = parse_reply(reply, LABELS)
            assert found.confidence_kind == "logprob"
            assert found.confidence == pytest.approx(1 - script.error_of(item), abs=1e-9)


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"error": 0.5}, "error of a scripted judge"),
        ({"error": -0.1}, "error of"),
        ({"labels": ("rain",)}, "two labels"),
    ],
)
def test_a_script_that_cannot_be(more, match):
    with pytest.raises(ArgumentError, match=match):
        Script(**{"truth": TRUTH, **more})


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5, unique=True), st.data())
def test_an_item_in_a_prompt_is_found(items, data):
    items = [item for item in items if item.strip()]
    script = Script(truth=dict.fromkeys(items, "rain"), labels=("rain", "sun"))
    for item in items:
        clean = item.encode("utf-8", "replace").decode()
        assert script.answer(messages(RUBRIC, {"text": item}), draw=0).item in {
            item,
            None if clean != item else item,
        }


def test_the_longest_known_text_wins_wherever_it_stands():
    finder = ItemFinder(
        [
            "It rained in the north.",
            "It rained in the north. Then it snowed.",
            "short",
            'a "quoted" text here',
        ]
    )
    assert (
        finder.find("text:\nIt rained in the north. Then it snowed.\nOK")
        == "It rained in the north. Then it snowed."
    )
    assert finder.find("so\nIt rained in the north. OK") == "It rained in the north."
    assert finder.find("text: short") == "short"
    assert finder.find(json.dumps({"text": 'a "quoted" text here'})) == 'a "quoted" text here'
    assert finder.find("nothing known") is None


def test_the_fence_ends_at_the_first_line_that_closes_it():
    text = "=== item ab12 begins ===\nyes\n=== item ffff ends ===\nno\n=== item ab12 ends ===\nmore"
    begin, end = fence(text)
    assert text[begin:end] == "yes\n=== item ffff ends ===\nno"
    assert fence("yes") is None
    assert fence("=== item ab12 begins ===\nyes") is None


# -- faults --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(TRANSPORT_FAULTS))
def test_transport_faults_do_what_they_say(kind):
    with RehearsalServer(SCRIPT, faults=[Fault(kind=kind, retry_after=3)]) as server:
        if kind == "hang":
            with pytest.raises(TimeoutError):
                send(server, chat(), timeout=0.2)
        elif kind == "drip":
            with pytest.raises(TimeoutError):
                send(server, chat(), timeout=0.01)
        elif kind == "cut":
            with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
                send(server, chat())
        elif kind == "cut_body":
            with pytest.raises(http.client.IncompleteRead):
                send(server, chat())
        else:
            status, headers, content = send(server, chat())
            expected = {
                "rate_limit": 429,
                "quota": 429,
                "overloaded": 503,
                "server_error": 500,
                "html_502": 502,
                "bad_request": 400,
                "content_filter_400": 400,
                "unauthorized": 401,
                "forbidden": 403,
                "not_found": 404,
            }
            assert status == expected.get(kind, 200)
            if kind in ("rate_limit", "overloaded"):
                assert headers["retry-after"] == "3"
            if status == 200 and kind != "error_in_200":
                with pytest.raises(ValueError, match=r"Expecting|Unterminated|delimiter"):
                    json.loads(content)
            if kind == "error_in_200":
                assert json.loads(content)["error"]["code"] == "502"
        assert server.counts().by_fault == {kind: 1}
        assert server.counts().answered == 0


@pytest.mark.parametrize(
    ("kind", "status"),
    {
        "refusal": Status.REFUSED,
        "content_filter": Status.REFUSED,
        "null_content": Status.UNPARSABLE,
        "null_logprobs": Status.OK,
        "length": Status.TRUNCATED,
        "out_of_set": Status.NOT_IN_SET,
        "null_label": Status.UNPARSABLE,
        "think": Status.OK,
        "half_think": Status.OK,
        "prose": Status.OK,
        "fenced": Status.OK,
        "garbage": Status.UNPARSABLE,
        "two_labels": Status.UNPARSABLE,
    }.items(),
)
def test_reply_faults_are_seen_for_what_they_are(kind, status):
    with RehearsalServer(SCRIPT, faults=[Fault(kind=kind)]) as server:
        found = verdict(server, chat(logprobs=True, top_logprobs=2))
        again = verdict(server, chat(logprobs=True, top_logprobs=2))
    assert found.status is status
    assert found == again
    assert found.label == (TRUTH[ITEM] if status is Status.OK else None)


def test_every_reply_fault_is_tested():
    marks = test_reply_faults_are_seen_for_what_they_are.pytestmark
    assert {kind for kind, _ in marks[0].args[1]} == set(REPLY_FAULTS)


def test_when_a_fault_strikes():
    def statuses(count, **fault):
        with RehearsalServer(SCRIPT, faults=[Fault(kind="server_error", **fault)]) as server:
            return [send(server, chat(item))[0] for item in (list(TRUTH) * 2)[:count]]

    assert statuses(4, after=2) == [200, 200, 500, 500]
    assert statuses(4, limit=1) == [500, 200, 200, 200]
    assert statuses(80, per_request=1) == [500] * 40 + [200] * 40
    assert statuses(3, share=0.0) == [200] * 3
    assert 25 <= statuses(80, share=0.5).count(500) <= 55
    assert statuses(80, share=0.5) == statuses(80, share=0.5)
    assert statuses(3, contains="Report 1:") == [200, 500, 200]


def test_faults_may_change_while_it_runs():
    with RehearsalServer(SCRIPT) as server:
        assert send(server, chat())[0] == 200
        server.faults = [Fault(kind="overloaded")]
        assert send(server, chat())[0] == 503
        server.faults = ()
        assert send(server, chat())[0] == 200


def test_faults_as_text():
    assert Fault.parse("hang") == Fault(kind="hang")
    assert Fault.parse("rate_limit:0.1,retry_after=2,limit=5") == Fault(
        kind="rate_limit", share=0.1, retry_after=2.0, limit=5
    )
    for text in ("nothing", "hang:2", "hang:x", "hang,when=now", "hang,after=soon"):
        with pytest.raises(ArgumentError, match="fault"):
            Fault.parse(text)


def test_a_rate_limit_of_its_own():
    with RehearsalServer(SCRIPT, rate=Rate(per_second=0.1, burst=2)) as server:
        answers = [send(server, chat()) for _ in range(3)]
    assert [status for status, _, _ in answers] == [200, 200, 429]
    assert 1 <= int(answers[2][1]["retry-after"]) <= 10
    with RehearsalServer(SCRIPT, rate=Rate(per_second=0.1, retry_after=False)) as server:
        answers = [send(server, chat()) for _ in range(2)]
    assert answers[1][0] == 429
    assert answers[1][1]["retry-after"] is None


# -- profiles ------------------------------------------------------------------------------------------

SCHEMA = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": {}}}


@pytest.mark.parametrize(
    ("profile", "more", "status", "names"),
    [
        ("full", {"response_format": SCHEMA, "logprobs": True, "n": 3, "seed": 1, "max_tokens": 99}, 200, ""),
        ("llama_cpp", {"response_format": SCHEMA}, 500, ""),
        ("llama_cpp", {"response_format": {"type": "json_object"}}, 200, ""),
        ("llama_cpp", {"max_completion_tokens": 99}, 400, "max_completion_tokens"),
        ("reasoning", {"temperature": 1, "max_tokens": 99}, 400, "max_tokens"),
        ("reasoning", {}, 400, "temperature"),
        ("reasoning", {"temperature": 1, "logprobs": True}, 400, "logprobs"),
        ("bare", {"response_format": SCHEMA}, 400, "response_format"),
        ("bare", {"n": 3}, 400, "'n'"),
        ("bare", {"seed": 3}, 400, "seed"),
    ],
)
def test_profiles_refuse_what_they_do_not_take(profile, more, status, names):
    with RehearsalServer(SCRIPT, profile=PROFILES[profile]) as server:
        got, _, content = send(server, chat(**more))
    assert got == status
    assert names in content.decode()


def test_profiles_ignore_loosen_and_think_aloud():
    def choices(profile, **more):
        with RehearsalServer(SCRIPT, profile=profile) as server:
            return json.loads(send(server, chat(**more))[2])["choices"]

    assert len(choices(PROFILES["llama_cpp"], n=3)) == 1
    assert choices(PROFILES["quiet"], logprobs=True)[0]["logprobs"] is None
    assert not choices(PROFILES["bare"])[0]["message"]["content"].startswith("{")
    assert choices(PROFILES["thinker"])[0]["message"]["content"].startswith("<think>")
    assert choices(PROFILES["reasoning"], temperature=1)[0]["message"]["reasoning_content"]
    held = {"type": "json_object"}
    assert choices(Profile(loose=True), response_format=held)[0]["message"]["content"].startswith("{")
    for profile in (Profile(reasoning="think"), Profile(loose=True)):
        found = choices(profile, logprobs=True, top_logprobs=2)[0]
        assert b"".join(t.text for t in tokens_of(found["logprobs"])).decode() == found["message"]["content"]


def test_profiles_keep_the_token_limit():
    with RehearsalServer(SCRIPT) as server:
        found = json.loads(send(server, chat(max_tokens=5, logprobs=True))[2])
    assert found["choices"][0]["finish_reason"] == "length"
    assert found["usage"]["completion_tokens"] <= 5
    assert len(found["choices"][0]["message"]["content"]) == 16


def test_profiles_and_the_context():
    short = Profile(context=50, context_told=True)
    with RehearsalServer(SCRIPT, profile=short) as server:
        status, _, content = send(server, chat())
        assert status == 400
        assert json.loads(content)["error"]["code"] == "context_length_exceeded"
        card = json.loads(send(server, {}, path="/v1/models", method="GET")[2])["data"][0]
        assert card["max_model_len"] == 50
    with RehearsalServer(SCRIPT, profile=Profile(context=50, context_cut=True)) as server:
        status, _, content = send(server, chat())
        assert status == 200
        assert json.loads(content)["usage"]["prompt_tokens"] == 50
