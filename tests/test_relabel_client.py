from __future__ import annotations

import asyncio
import json
import logging
import random
import socket

import pytest

from audit.errors import ArgumentError, EndpointError
from relabel.capabilities import Capabilities, verdict_params
from relabel.client import JudgeClient
from relabel.endpoint import check_url, read_key
from relabel.gate import Gate
from relabel.prompts import messages
from relabel.records import Request, Status
from relabel.rehearse import PROFILES, Fault, Profile, Rate, RehearsalServer, Script
from relabel.rehearse_faults import REPLY_FAULTS
from relabel.rehearse_http import Answer, json_answer
from relabel.rubric import Rubric

RUBRIC = Rubric.parse(
    "---\nname: weather\nversion: '1'\ninputs: [text]\nlabels: [rain, sun]\n---\nC1. Look outside the window.\n"
)
TRUTH = {f"Report {n}: the sky over town {n % 7} at noon.": "rain" if n % 3 else "sun" for n in range(40)}
SURE = Script(truth=TRUTH)
DOUBT = Script(truth=TRUTH, error=0.3)
ITEM = next(iter(TRUTH))
KEY = "sk-rehearsal-0123456789abcdef"


@pytest.fixture(autouse=True)
def _no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def ask(server, items=None, *, params=None, gate=None, repeat=0, keep=None, workers=40, **client):
    """Judge some items of `TRUTH`, so many at once; the judgements in the order of the items."""
    items = list(TRUTH) if items is None else items
    params = verdict_params(RUBRIC.label_names) if params is None else params
    url = server if isinstance(server, str) else server.base_url

    async def main():
        options = {"pause": 0.01, "timeout": 10.0, "rng": random.Random(0), **client}
        async with JudgeClient(
            model="judge", base_url=url, labels=RUBRIC.labels, gate=gate or Gate(16), **options
        ) as judge:
            if keep is not None:
                keep.append(judge)
            requests = [
                Request(
                    model="judge",
                    base_url=judge.base_url,
                    params=params,
                    messages=messages(RUBRIC, {"text": item}),
                    repeat=repeat,
                )
                for item in items
            ]
            turn = asyncio.Semaphore(workers)

            async def one(request):
                async with turn:
                    return await judge.judge(request)

            return await asyncio.gather(*map(one, requests))

    return asyncio.run(main())


def labels(judged):
    return [one.verdict.label for one in judged]


# -- replies -------------------------------------------------------------------------------------------


def test_one_request_one_verdict():
    with RehearsalServer(DOUBT) as server:
        judged = ask(server)
        counts = server.counts()
    assert (counts.requests, counts.answered) == (40, 40)
    for item, (request, reply, verdict) in zip(TRUTH, judged, strict=True):
        assert verdict.status is Status.OK
        assert verdict.confidence_kind == "logprob"
        assert verdict.confidence == pytest.approx(1 - DOUBT.error_of(item), abs=1e-9)
        assert (reply.attempts, reply.http_status, reply.samples) == (1, 200, ())
        assert reply.latency > 0
        assert (reply.prompt_tokens, reply.completion_tokens) == tuple(list(reply.body["usage"].values())[:2])
        assert reply.sent["response_format"]["type"] == "json_schema"
        assert "model" not in reply.sent
        assert request.params["samples"] == 5


@pytest.mark.parametrize(
    ("profile", "kind", "lessons", "learned"),
    [
        ("full", "logprob", 0, {"json_schema": True, "logprobs": True}),
        ("llama_cpp", "logprob", 2, {"json_schema": False, "json_object_schema": True, "logprobs": True}),
        (
            "reasoning",
            "agreement",
            4,
            {"limit_name": "max_completion_tokens", "temperature": False, "n": False},
        ),
        ("quiet", "agreement", 0, {"logprobs": False, "n": False}),
        ("thinker", "agreement", 1, {"json_schema": False, "json_object_schema": True, "n": False}),
        ("bare", "agreement", 5, {"json_object": False, "logprobs": False, "n": False}),
    ],
)
def test_it_falls_down_the_ladder_and_remembers(profile, kind, lessons, learned):
    clients = []
    with RehearsalServer(SURE, profile=PROFILES[profile]) as server:
        judged = ask(server, keep=clients)
        counts = server.counts()
        assert labels(judged) == list(TRUTH.values())
        assert {one.verdict.confidence_kind for one in judged} == {kind}
        assert counts.requests - counts.by_status[200] == lessons  # learned once, by the first request alone
        seen = clients[0].capabilities
        assert {name: getattr(seen, name) for name in learned} == learned
        again = Capabilities.from_dict(json.loads(json.dumps(seen.to_dict())))
        assert labels(ask(server, capabilities=again)) == list(TRUTH.values())
        assert server.counts().by_status.get(400) == counts.by_status.get(400)


def test_the_wish_and_its_key_stay_the_same_whatever_was_learned():
    with RehearsalServer(SURE, profile=PROFILES["bare"]) as server:
        first, *_, last = ask(server)
    assert first.request.params == last.request.params
    assert "response_format" not in last.reply.sent
    assert "seed" not in last.reply.sent


def test_log_probabilities_missing_from_one_reply_only():
    clients = []
    with RehearsalServer(SURE, faults=[Fault(kind="null_logprobs", contains="Report 7:")]) as server:
        judged = ask(server, keep=clients)
    kinds = {item: one.verdict.confidence_kind for item, one in zip(TRUTH, judged, strict=True)}
    assert {item for item, kind in kinds.items() if kind == "agreement"} == {list(TRUTH)[7]}
    assert clients[0].capabilities.logprobs is True


# -- confidence from samples ---------------------------------------------------------------------------


def test_agreement_of_samples_with_n_in_one_request():
    with RehearsalServer(DOUBT, profile=Profile(logprobs="no")) as server:
        judged = ask(server, capabilities=Capabilities(logprobs=False))
        assert server.counts().requests == 40
    for one in judged:
        votes = [json.loads(c["message"]["content"])["label"] for c in one.reply.body["choices"]]
        assert len(votes) == 5
        assert one.verdict.confidence == votes.count(one.verdict.label) / 5 >= 0.5
        assert one.reply.sent["temperature"] == 0.7
    assert len({one.verdict.confidence for one in judged}) > 1


def test_agreement_of_samples_one_request_each_with_seeds_of_their_own():
    params = verdict_params(RUBRIC.label_names, seed=11)
    with RehearsalServer(DOUBT, profile=PROFILES["quiet"]) as server:
        judged = ask(server, params=params, capabilities=Capabilities(logprobs=False, n=False))
        counts = server.counts()
    assert (counts.requests, counts.repeated) == (200, 0)
    for one in judged:
        assert len(one.reply.samples) == 4
        assert one.reply.attempts == 5
        assert one.reply.prompt_tokens == 5 * one.reply.body["usage"]["prompt_tokens"]
        assert one.verdict.confidence_kind == "agreement"


def test_one_sample_takes_the_judge_s_own_word():
    params = verdict_params(RUBRIC.label_names, samples=1)
    with RehearsalServer(DOUBT, profile=PROFILES["quiet"]) as server:
        judged = ask(server, params=params)
        assert server.counts().requests == 40
    assert {one.verdict.confidence_kind for one in judged} == {"verbalised"}


def test_a_sample_that_fails_leaves_the_label_and_the_other_samples():
    faults = [Fault(kind="bad_request", after=3, contains="Report 0:")]
    with RehearsalServer(SURE, profile=PROFILES["quiet"], faults=faults) as server:
        judged = ask(server, [ITEM], capabilities=Capabilities(logprobs=False, n=False))[0]
    assert judged.verdict.label == TRUTH[ITEM]
    assert len(judged.reply.samples) == 2
    assert (judged.reply.attempts, judged.verdict.confidence) == (4, 1.0)


def test_fresh_draws_are_fresh():
    params = verdict_params(RUBRIC.label_names, temperature=1.0, seed=4)
    with RehearsalServer(Script(truth=TRUTH, error=0.45)) as server:
        first, again, second = (labels(ask(server, params=params, repeat=n)) for n in (0, 0, 1))
    assert first == again != second


# -- the token limit -----------------------------------------------------------------------------------


def test_a_cut_reply_is_asked_for_once_more_with_a_higher_limit():
    params = verdict_params(RUBRIC.label_names, max_tokens=12)
    with RehearsalServer(SURE) as server:
        judged = ask(server, [ITEM], params=params)[0]
        assert server.counts().requests == 2
    assert judged.verdict.label == TRUTH[ITEM]
    assert (judged.reply.attempts, judged.reply.sent["max_tokens"]) == (2, 48)
    assert judged.reply.completion_tokens > 30  # both replies were paid for


def test_a_reply_cut_twice_is_truncated():
    params = verdict_params(RUBRIC.label_names, max_tokens=3)
    with RehearsalServer(SURE) as server:
        judged = ask(server, [ITEM], params=params)[0]
        assert server.counts().requests == 2
    assert (judged.verdict.status, judged.verdict.label) == (Status.TRUNCATED, None)


def test_a_limit_that_is_always_too_low_is_learned():
    params = verdict_params(RUBRIC.label_names, max_tokens=12)
    with RehearsalServer(SURE) as server:
        judged = ask(server, params=params, workers=1)
        assert labels(judged) == list(TRUTH.values())
        assert server.counts().requests == 43  # not two for every item


# -- no failure becomes a label ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", sorted(set(REPLY_FAULTS) - {"null_logprobs", "think", "half_think", "prose", "fenced"})
)
def test_what_a_judge_may_say_instead_of_a_verdict(kind):
    status = {
        "refusal": Status.REFUSED,
        "content_filter": Status.REFUSED,
        "length": Status.TRUNCATED,
        "out_of_set": Status.NOT_IN_SET,
    }.get(kind, Status.UNPARSABLE)
    with RehearsalServer(SURE, faults=[Fault(kind=kind, contains="Report 0:")]) as server:
        bad, good = ask(server, list(TRUTH)[:2])
        assert server.counts().requests == (3 if kind == "length" else 2)  # a refusal is not asked again
    assert (bad.verdict.status, bad.verdict.label) == (status, None)
    assert bad.verdict.reason
    assert bad.reply.body is not None
    assert good.verdict.status is Status.OK


@pytest.mark.parametrize(
    ("kind", "status"), [("content_filter_400", Status.REFUSED), ("forbidden", Status.TRANSPORT)]
)
def test_content_that_is_turned_down_is_not_asked_again(kind, status):
    with RehearsalServer(SURE, faults=[Fault(kind=kind, contains="Report 3:")]) as server:
        judged = ask(server)
        assert server.counts().requests == 40
    assert [one.verdict.status for one in judged].count(Status.OK) == 39
    assert (judged[3].verdict.status, judged[3].verdict.label) == (status, None)


TRANSIENT = [
    "rate_limit",
    "overloaded",
    "server_error",
    "html_502",
    "html_200",
    "empty_body",
    "truncated_json",
]
TRANSIENT += ["error_in_200", "cut", "cut_body"]


@pytest.mark.parametrize("kind", TRANSIENT)
def test_what_passes_is_tried_again(kind):
    with RehearsalServer(SURE, faults=[Fault(kind=kind, per_request=1, retry_after=0)]) as server:
        judged = ask(server)
        counts = server.counts()
    assert labels(judged) == list(TRUTH.values())
    assert {one.reply.attempts for one in judged} == {2}
    assert (counts.requests, counts.answered_again) == (80, 0)


@pytest.mark.parametrize("kind", ["hang", "drip"])
def test_a_reply_that_does_not_end_is_left_and_asked_for_again(kind):
    with RehearsalServer(SURE, faults=[Fault(kind=kind, per_request=1, share=0.2)]) as server:
        judged = ask(server, timeout=0.5)
        counts = server.counts()
    assert labels(judged) == list(TRUTH.values())
    assert counts.requests >= 40 + counts.by_fault[kind] > 40


@pytest.mark.parametrize("kind", [*TRANSIENT[1:], "hang"])
def test_what_never_passes_for_one_item_ends_for_that_item(kind):
    with RehearsalServer(SURE, faults=[Fault(kind=kind, contains="Report 9:")]) as server:
        judged = ask(server, retries=2, timeout=1.0)
    assert [one.verdict.status for one in judged].count(Status.TRANSPORT) == 1
    lost = judged[9]
    assert (lost.verdict.status, lost.verdict.label, lost.reply.attempts) == (Status.TRANSPORT, None, 3)
    assert "3 tries" in lost.verdict.reason


def test_a_request_that_is_turned_down_for_itself_is_not_repeated():
    with RehearsalServer(SURE, faults=[Fault(kind="bad_request", contains="Report 5:")]) as server:
        judged = ask(server)
        assert server.counts().requests == 40
    assert judged[5].verdict.status is Status.TRANSPORT
    assert "HTTP 400: Something about this request is wrong." in judged[5].verdict.reason


@pytest.mark.parametrize("seed", range(3))
def test_under_a_hail_of_faults_every_label_is_the_judge_s_own(seed):
    kinds = [
        "rate_limit",
        "server_error",
        "html_200",
        "truncated_json",
        "error_in_200",
        "cut",
        "cut_body",
        "hang",
    ]
    faults = [Fault(kind=kind, share=0.06, retry_after=0) for kind in kinds]
    faults += [Fault(kind=kind, share=0.06) for kind in REPLY_FAULTS]
    with RehearsalServer(SURE, faults=faults, seed=seed) as server:
        judged = ask(server, timeout=0.3, retries=8)
    statuses = [one.verdict.status for one in judged]
    assert len(set(statuses)) >= 3
    for (item, true), one in zip(TRUTH.items(), judged, strict=True):
        assert one.verdict.label == (true if one.verdict.status is Status.OK else None), item


class Odd(RehearsalServer):
    """Gives one answer to all chat requests, whatever it is."""

    answer = Answer()

    def _chat(self, asked):
        self._seen[asked.body] += 1
        return self.answer


JSON = {"content-type": "application/json"}
ODD = {
    "nothing": Answer(status=204),
    "no encoding it could be": Answer(body=b"garbage", headers={**JSON, "content-encoding": "gzip"}),
    "no UTF-8": Answer(body=b'{"choices": "\xff"}', headers=JSON),
    "a redirect to itself": Answer(status=307, headers={"location": "/v1/chat/completions"}),
    "a redirect to nowhere": Answer(status=302, headers={"location": "http://127.0.0.1:9/"}),
    "an unknown status": Answer(status=799, body=b"{}"),
    "a stream of events": Answer(body=b"data: {}\n\n", headers={"content-type": "text/event-stream"}),
    "a number too long": Answer(body=b'{"choices": ' + b"9" * 5000 + b"}", headers=JSON),
    "nested too deep": Answer(body=b'{"choices":' + b"[" * 90_000, headers=JSON),
    "a broken header": Answer(body=b"{}", headers={"x": "a\r\n b: c\r\nbroken"}),
    "choices of another kind": json_answer({"choices": {"label": "rain"}}),
    "a choice of another kind": json_answer({"choices": ["rain"], "usage": "none"}),
    "content of another kind": json_answer({"choices": [{"message": {"content": 1}}], "usage": [1]}),
    "usage of another kind": json_answer(
        {"choices": [], "usage": {"prompt_tokens": -1, "completion_tokens": "x"}}
    ),
    "an error that is a word": json_answer({"error": "no"}, status=400),
    "an error that is a list": json_answer([{"error": "no"}], status=400),
    "an error that is empty": json_answer({"error": {}}, status=422),
}


@pytest.mark.parametrize("name", ODD)
def test_whatever_comes_back_is_a_reason_and_never_a_label_or_a_traceback(name):
    stops = name.startswith("a redirect")
    with Odd(SURE) as server:
        server.answer = ODD[name]
        proven = {"retries": 1, "timeout": 2.0, "capabilities": Capabilities(json_schema=True)}
        if stops:
            with pytest.raises(EndpointError, match=server.base_url):
                ask(server, [ITEM], **proven)
        else:
            reply, verdict = ask(server, [ITEM], **proven)[0][1:]
            assert verdict.label is None
            assert verdict.reason
            assert json.loads(json.dumps(reply.to_dict())) == reply.to_dict()


# -- the context ---------------------------------------------------------------------------------------


def test_too_long_is_learned_from_the_refusal_and_then_found_before_sending():
    long, longer = "word " * 4000, "word " * 9000
    with RehearsalServer(SURE, profile=Profile(context=2000)) as server:
        judged = ask(server, [ITEM, long], workers=1)
        assert [one.verdict.status for one in judged] == [Status.OK, Status.TOO_LONG]
        assert "maximum context length is 2000 tokens" in judged[1].verdict.reason
        sent = server.counts().requests
        judged = ask(server, [longer], capabilities=Capabilities(context=2000))
        assert server.counts().requests == sent
    assert judged[0].verdict.status is Status.TOO_LONG
    assert "not sent" in judged[0].verdict.reason
    assert judged[0].reply.attempts == 0


def test_an_item_that_the_endpoint_cut_silently_gets_no_label():
    with RehearsalServer(SURE, profile=Profile(context=1000, context_cut=True)) as server:
        judged = ask(server, [ITEM, ITEM + " " + "word " * 1000], capabilities=Capabilities(context=1000))
    assert [one.verdict.status for one in judged] == [Status.OK, Status.TOO_LONG]
    assert "cut the item" in judged[1].verdict.reason


# -- rate limits and outages ---------------------------------------------------------------------------


def test_a_storm_of_refusals_is_waited_out_by_all_together():
    faults = [Fault(kind="rate_limit", limit=30, retry_after=0.05)]
    gate = Gate(16)
    with RehearsalServer(SURE, faults=faults) as server:
        judged = ask(server, gate=gate)
        counts = server.counts()
    assert labels(judged) == list(TRUTH.values())
    assert counts.requests == 70  # each refusal cost one request, and nothing was paid twice
    assert counts.answered_again == 0
    assert gate.limited == 30
    assert gate.limit < 16


def test_a_rate_limit_is_settled_into_without_a_word_from_the_endpoint():
    gate = Gate(32)
    rate = Rate(per_second=60, burst=5, retry_after=False)
    with RehearsalServer(SURE, latency=0.02, rate=rate) as server:
        judged = ask(server, gate=gate)
        counts = server.counts()
    assert labels(judged) == list(TRUTH.values())
    # unthrottled, 32 workers would be refused some 30 times a round trip; the shared gate keeps it to a few bursts
    assert counts.by_status[429] < 80
    assert gate.limit < 32


def test_an_endpoint_that_lets_nothing_through_stops_the_run():
    with (
        RehearsalServer(SURE, faults=[Fault(kind="rate_limit", retry_after=0)]) as server,
        pytest.raises(
            EndpointError, match=r"has let nothing through for 0 s .*run the same command again later"
        ),
    ):
        ask(server, patience=0.2)


def test_a_wait_beyond_all_patience_stops_the_run():
    with RehearsalServer(SURE, faults=[Fault(kind="rate_limit", retry_after=86400)]) as server:
        with pytest.raises(EndpointError, match=r"asks to wait 86400 s .*run the same command again later"):
            ask(server)
        assert server.counts().requests < 40


def test_an_outage_in_the_middle_is_survived():
    with RehearsalServer(SURE, faults=[Fault(kind="cut", after=10, limit=25)]) as server:
        judged = ask(server, retries=6)
    assert labels(judged) == list(TRUTH.values())


# -- what stops a run ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("unauthorized", "turned the key down (HTTP 401); put a valid one in OPENAI_API_KEY"),
        ("forbidden", "turned the key down (HTTP 403); put a valid one in OPENAI_API_KEY"),
        ("not_found", "check the model's name"),
        ("quota", "add credit, then run again"),
    ],
)
def test_what_no_repeat_can_mend_stops_at_once(kind, words, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with RehearsalServer(SURE, faults=[Fault(kind=kind)]) as server:
        with pytest.raises(EndpointError) as caught:
            ask(server)
        assert server.counts().requests < 40
        assert server.base_url in str(caught.value)
    assert words in str(caught.value)
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_endpoint_that_turns_everything_down_stops_the_run():
    with RehearsalServer(SURE, faults=[Fault(kind="bad_request")]) as server:
        with pytest.raises(
            EndpointError, match=r"turns every request down \(400: Something about this request"
        ):
            ask(server, workers=2)
        assert server.counts().requests < 10


@pytest.mark.parametrize("kind", ["bad_request", "forbidden", "server_error", "hang"])
def test_when_only_hopeless_items_are_left_an_endpoint_that_once_worked_is_not_blamed(kind):
    with RehearsalServer(SURE, faults=[Fault(kind=kind)]) as server:
        proven = Capabilities(json_schema=True)
        judged = ask(server, list(TRUTH)[:8], retries=1, timeout=0.2, capabilities=proven)
    assert {one.verdict.status for one in judged} == {Status.TRANSPORT}


def test_nobody_there_stops_the_run():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{holder.getsockname()[1]}/v1"
        with pytest.raises(EndpointError, match=rf"{url} gave no reply in 3 tries .*check the base URL"):
            ask(url, retries=2)


def test_a_server_that_only_fails_stops_the_run_and_teaches_nothing():
    clients = []
    with RehearsalServer(SURE, faults=[Fault(kind="server_error")]) as server:  # noqa: SIM117
        with pytest.raises(EndpointError, match=r"gave no reply in .* tries \(HTTP 500"):
            ask(server, retries=2, gate=Gate(2), keep=clients)
    assert clients[0].capabilities == Capabilities()


def test_a_web_page_for_an_api_stops_the_run():
    with RehearsalServer(SURE, faults=[Fault(kind="html_200")]) as server:  # noqa: SIM117
        with pytest.raises(EndpointError, match=r"a web page instead of JSON.*check the base URL"):
            ask(server, retries=1)


def test_a_base_url_without_its_version():
    with RehearsalServer(SURE) as server:
        url = server.base_url.removesuffix("/v1")
        with pytest.raises(EndpointError, match=rf"perhaps {url}/v1"):
            ask(url)


def test_a_cancelled_judgement_leaves_the_gate_open():
    async def main(url):
        gate = Gate(2)
        async with JudgeClient(model="judge", base_url=url, labels=RUBRIC.labels, gate=gate) as judge:
            request = Request(
                model="judge",
                base_url=judge.base_url,
                params=verdict_params(RUBRIC.label_names),
                messages=messages(RUBRIC, {"text": ITEM}),
            )
            first = asyncio.create_task(judge.judge(request))
            second = asyncio.create_task(judge.judge(request))
            while not gate.in_flight:
                await asyncio.sleep(0.01)
            first.cancel()
            second.cancel()
            await asyncio.gather(first, second, return_exceptions=True)
            return gate.in_flight

    with RehearsalServer(SURE, faults=[Fault(kind="hang")]) as server:
        assert asyncio.run(main(server.base_url)) == 0


# -- the key -------------------------------------------------------------------------------------------


class Telltale(RehearsalServer):
    """Says the key back: in a header, in errors, and in its replies."""

    status = 200

    def _answer(self, asked):
        key = asked.headers.get("authorization", "")
        if self.status != 200:
            return json_answer({"error": {"message": f"Bad key {key}", "code": key}}, status=self.status)
        content = json.dumps({"rationale": f"You sent {key}", "clause": "", "label": "rain"})
        choice = {"message": {"content": content, "reasoning": key}, "finish_reason": "stop"}
        return json_answer({"choices": [choice], "headers": dict(asked.headers)})


@pytest.mark.parametrize("status", [200, 400, 401, 403, 429, 500])
def test_the_key_is_in_no_record_log_or_error(status, monkeypatch, caplog):
    monkeypatch.setenv("OPENAI_API_KEY", f"  {KEY}\n")
    caplog.set_level(logging.DEBUG)
    said = ""
    with Telltale(SURE) as server:
        server.status = status
        try:
            params = verdict_params(RUBRIC.label_names, samples=1)
            judged = ask(server, [ITEM], retries=0, patience=0.01, params=params)
            said = repr(judged) + json.dumps([one.reply.to_dict() for one in judged])
            assert "[key]" in said
        except EndpointError as error:
            said = repr(error) + str(error.__cause__) + str(error.__context__)
    assert said
    assert KEY not in said
    assert KEY not in caplog.text


def test_a_placeholder_key_is_not_searched_for_in_replies(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "rain")
    with RehearsalServer(SURE, api_key="rain") as server:
        assert labels(ask(server)) == list(TRUTH.values())


def test_another_variable_may_hold_the_key(monkeypatch):
    monkeypatch.setenv("OTHER_KEY", KEY)
    with RehearsalServer(SURE, api_key=KEY) as server:
        assert labels(ask(server, key_variable="OTHER_KEY")) == list(TRUTH.values())
        with pytest.raises(EndpointError, match="OPENAI_API_KEY"):
            ask(server)


@pytest.mark.parametrize("key", ["two words", "schlüssel-0123456789", "line\nbreak-0123456789"])
def test_a_key_that_cannot_be_one(key, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ArgumentError, match="OPENAI_API_KEY") as caught:
        read_key()
    assert key not in str(caught.value)


# -- addresses and proxies -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "match"),
    [
        ("localhost:8000/v1", "write it as http"),
        ("ftp://h/v1", "write it as http"),
        ("http:///v1", "write it as http"),
        ("https://user:secret@h/v1", "give the key in the environment"),
        ("https://h/v1?key=secret", "no query but api-version"),
        ("https://h/v1/chat/completions", "without /chat/completions, as in https://h/v1"),
    ],
)
def test_addresses_that_cannot_work(url, match):
    with pytest.raises(ArgumentError, match=match) as caught:
        check_url(url)
    assert "secret" not in str(caught.value)


def test_addresses_that_can():
    assert check_url(" http://h:8000/v1/ ") == ("http://h:8000/v1", {})
    assert check_url("https://r.openai.azure.com/openai/deployments/d?api-version=2024-10-21") == (
        "https://r.openai.azure.com/openai/deployments/d",
        {"api-version": "2024-10-21"},
    )


def test_the_query_reaches_the_endpoint():
    with RehearsalServer(SURE) as server:
        assert labels(ask(server.base_url + "?api-version=1", [ITEM])) == [TRUTH[ITEM]]


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with RehearsalServer(SURE) as server:
        assert labels(ask(server, [ITEM])) == [TRUTH[ITEM]]


def test_a_proxy_of_the_environment_is_asked_for_other_machines(monkeypatch):
    for name in ("ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with RehearsalServer(SURE) as server:
        monkeypatch.setenv("HTTP_PROXY", server.base_url.removesuffix("/v1"))
        monkeypatch.setenv("http_proxy", server.base_url.removesuffix("/v1"))
        assert labels(ask("http://judge.invalid/v1", [ITEM])) == [TRUTH[ITEM]]


def test_a_proxy_that_cannot_be_used_is_one_clear_error(monkeypatch):
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ALL_PROXY", "nonsense://proxy:1")
    monkeypatch.setenv("all_proxy", "nonsense://proxy:1")
    with pytest.raises(EndpointError, match="proxy settings of the environment"):
        ask("http://judge.invalid/v1", [ITEM])
