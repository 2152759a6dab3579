from __future__ import annotations

import asyncio
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.errors import ArgumentError
from relabel.capabilities import Capabilities, lower, missing, verdict_params
from relabel.gate import Gate, Ticket
from relabel.outcomes import Means, fatal_message, parse_wait, read_answer


class Clock:
    """A clock that stands still until moved."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def made(limit=16):
    clock = Clock()
    return Gate(limit, clock=clock, rng=random.Random(0)), clock


# -- the gate ------------------------------------------------------------------------------------------


def test_never_more_under_way_than_the_limit_and_all_get_through():
    async def main():
        gate, seen, most = Gate(3), 0, 0

        async def work():
            nonlocal seen, most
            ticket = await gate.enter()
            most = max(most, gate.in_flight)
            await asyncio.sleep(0)
            gate.success(ticket)
            gate.leave(ticket)
            seen += 1

        await asyncio.gather(*(work() for _ in range(50)))
        return gate, seen, most

    gate, seen, most = asyncio.run(main())
    assert (seen, most, gate.in_flight, gate.succeeded) == (50, 3, 0, 50)


def test_a_burst_of_refusals_narrows_once_and_success_widens_slowly():
    gate, clock = made(16)
    burst = [Ticket(at=clock.now) for _ in range(16)]
    clock.now += 1
    for ticket in burst:
        gate.refuse(ticket, retry_after=None)
    assert gate.limit == pytest.approx(11.2)
    clock.now += 1
    gate.refuse(Ticket(at=clock.now), retry_after=None)
    assert gate.limit == pytest.approx(7.84)
    for _ in range(8):  # about one round of answers opens it by about one
        gate.success(Ticket(at=clock.now))
    assert gate.limit == pytest.approx(8.8, abs=0.1)
    for _ in range(100):  # and by a tenth of that from nine tenths of the last width that was too much
        gate.success(Ticket(at=clock.now))
    assert 10.08 < gate.limit < 11.2
    for _ in range(2000):
        gate.success(Ticket(at=clock.now))
    assert gate.limit == 16
    for _ in range(60):
        clock.now += 1
        gate.refuse(Ticket(at=clock.now), retry_after=0.0)
    assert gate.limit == 1.0


def test_retry_after_is_kept_to_and_the_latest_one_counts():
    gate, clock = made()
    old = Ticket(at=clock.now)
    clock.now += 1
    assert 7 <= gate.refuse(Ticket(at=clock.now), retry_after=7.0) <= 7.35
    assert 7 <= gate.refuse(old, retry_after=2.0) <= 7.35  # the shorter wait does not shorten the longer
    assert 20 <= gate.refuse(old, retry_after=20.0) <= 21
    clock.now += 22
    assert gate.shut_for == 0
    gate.refuse(old, retry_after=None)  # from before the last cut, and without a wait of its own: no news
    assert gate.shut_for == 0


def test_silent_refusals_wait_longer_each_round_until_one_gets_through():
    gate, clock = made()
    waits = []
    for _ in range(12):
        waits.append(gate.refuse(Ticket(at=clock.now), retry_after=None))
        clock.now += waits[-1] + 0.01
    bounds = [min(60.0, 0.5 * 2**n) for n in range(12)]
    assert all(bound / 2 <= wait <= bound for wait, bound in zip(waits, bounds, strict=True))
    old = Ticket(at=clock.now - 100)
    gate.success(old)  # one of a round that was refused otherwise: it got through all the same
    assert gate.refuse(Ticket(at=clock.now + 1), retry_after=None) <= 0.5


def test_faults_narrow_the_gate_only_when_most_requests_suffer():
    gate, clock = made(16)
    for n in range(200):  # one time-out in four: bad luck, not overload
        clock.now += 1
        if n % 4:
            gate.success(Ticket(at=clock.now))
        else:
            gate.fault(Ticket(at=clock.now), strain=True)
    assert gate.limit == 16
    for _ in range(20):  # errors that have nothing to do with load
        gate.fault(Ticket(at=clock.now), strain=False)
    assert gate.limit == 16
    for _ in range(20):
        clock.now += 1
        gate.fault(Ticket(at=clock.now), strain=True)
    assert gate.limit == pytest.approx(16 * 0.7)


def test_silence_is_counted_from_the_first_failure_not_from_the_last_success():
    gate, clock = made()
    clock.now += 1000  # idle is not silence
    assert gate.silent_for == 0
    gate.fault(Ticket(at=clock.now), strain=False)
    clock.now += 5
    gate.refuse(Ticket(at=clock.now), retry_after=1.0)
    clock.now += 2
    assert gate.silent_for == 7
    gate.success(Ticket(at=clock.now))
    assert gate.silent_for == 0


def test_a_shut_gate_lets_nobody_in_and_opens_by_itself():
    async def main():
        gate = Gate(2)
        first = await gate.enter()
        gate.refuse(first, retry_after=0.05)
        gate.leave(first)
        task = asyncio.create_task(gate.enter())
        await asyncio.sleep(0.01)
        early = task.done()
        await task
        return early

    assert asyncio.run(main()) is False


def test_a_cancelled_waiter_hands_its_turn_on():
    async def main():
        gate = Gate(1)
        held = await gate.enter()
        first, second = asyncio.create_task(gate.enter()), asyncio.create_task(gate.enter())
        await asyncio.sleep(0)
        gate.leave(held)  # calls the first
        first.cancel()  # which is gone before it hears of it
        ticket = await asyncio.wait_for(second, 5)
        gate.leave(ticket)
        third = asyncio.create_task(gate.enter())
        await asyncio.sleep(0)
        assert third.done()
        fourth = asyncio.create_task(gate.enter())
        await asyncio.sleep(0)
        fourth.cancel()  # one that still waits leaves no trace
        await asyncio.sleep(0)
        gate.leave(third.result())
        return gate.in_flight, len(gate._waiting)

    assert asyncio.run(main()) == (0, 0)


def test_a_gate_needs_room():
    with pytest.raises(ArgumentError, match="at least 1"):
        Gate(0)


# -- Retry-After ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, 50.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
    ],
)
def test_how_long_to_wait(headers, wait):
    assert parse_wait(headers, now=10.0) == wait


@given(st.text())
def test_no_header_raises(text):
    wait = parse_wait({"retry-after": text})
    assert wait is None or wait >= 0


# -- what an answer means ------------------------------------------------------------------------------

SENT = {
    "response_format": {},
    "logprobs": True,
    "top_logprobs": 5,
    "n": 3,
    "seed": 1,
    "temperature": 0,
    "max_tokens": 9,
}


def means(status, body, sent=SENT, **headers):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_answer(status, headers, content, sent=sent)


def error(message, **more):
    return {
        "error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **more}
    }


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, {"choices": []}, Means.REPLY),
        (200, {"choices": [{"finish_reason": "error", "message": {}}]}, Means.AGAIN),
        (200, {"error": None, "id": 1}, Means.REPLY),
        (200, error("upstream died", code=502), Means.AGAIN),
        (200, error("slow down", code=429), Means.WAIT),
        (200, error("no such key", code="401"), Means.FATAL),
        (200, error("something", code="oops"), Means.AGAIN),
        (200, b"", Means.AGAIN),
        (200, b"<html>", Means.AGAIN),
        (200, b'{"choices": [', Means.AGAIN),
        (200, b"[1]", Means.AGAIN),
        (200, b"[" * 100_000, Means.AGAIN),
        (200, b"data: {}\n\ndata: [DONE]", Means.AGAIN),
        (429, error("Rate limit reached for requests. Visit the billing page to raise it."), Means.WAIT),
        (429, b"busy", Means.WAIT),
        (429, error("You exceeded your current quota", code="insufficient_quota"), Means.FATAL),
        (429, error("Request too large for m on tokens per min (TPM): Limit 30000"), Means.TOO_LONG),
        (402, error("Payment required"), Means.FATAL),
        (401, error("Incorrect API key provided"), Means.FATAL),
        (403, error("Country not supported"), Means.FATAL),
        (403, error("This input was flagged by moderation"), Means.REFUSED),
        (404, error("The model does not exist", code="model_not_found"), Means.FATAL),
        (404, b"<html>404</html>", Means.FATAL),
        (405, b"", Means.FATAL),
        (307, b"", Means.FATAL),
        (400, error("API key not valid. Please pass a valid API key."), Means.FATAL),
        (400, error("Something is off"), Means.ROW),
        (400, b"bad", Means.ROW),
        (
            422,
            {
                "detail": [
                    {"loc": ["body", "messages", 0, "content"], "msg": "invalid", "input": "seed temperature"}
                ]
            },
            Means.ROW,
        ),
        (
            400,
            error("filtered", code="content_filter", innererror={"code": "ResponsibleAIPolicyViolation"}),
            Means.REFUSED,
        ),
        (400, error("Invalid prompt: it may violate our policy", code="invalid_prompt"), Means.REFUSED),
        (413, b"<html>Request Entity Too Large</html>", Means.TOO_LONG),
        (408, b"", Means.AGAIN),
        (409, b"", Means.AGAIN),
        (500, error("Internal error"), Means.AGAIN),
        (503, b"<html>", Means.AGAIN),
        (529, error("Overloaded"), Means.AGAIN),
        (599, b"", Means.AGAIN),
    ],
)
def test_what_an_answer_means(status, body, expected):
    assert means(status, body).means is expected


@pytest.mark.parametrize(
    ("message", "context"),
    [
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            8192,
        ),
        ("Requested tokens (600) exceed context window of 512", 512),
        ("the request exceeds the available context size. try increasing the context size", None),
        (
            "'max_tokens' is too large: 512. This model's maximum context length is 400 tokens and your request has 300"
            " input tokens",
            400,
        ),
        ("Input is too long for requested model.", None),
        ("prompt is too long: 213000 tokens > 200000 maximum", None),
    ],
)
def test_too_long_for_the_context(message, context):
    for status in (400, 422, 500):
        outcome = means(status, error(message))
        assert (outcome.means, outcome.context) == (Means.TOO_LONG, context)


@pytest.mark.parametrize(
    ("status", "body", "names"),
    [
        (
            400,
            error(
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use"
                " 'max_completion_tokens' instead.",
                param="max_tokens",
                code="unsupported_parameter",
            ),
            ("max_tokens",),
        ),
        (
            400,
            error(
                "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value"
                " is supported.",
                param="temperature",
                code="unsupported_value",
            ),
            ("temperature",),
        ),
        (
            400,
            error(
                "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."
            ),
            ("response_format",),
        ),
        (
            400,
            error(
                "Unknown parameter: 'response_format.schema'.",
                param="response_format.schema",
                code="unknown_parameter",
            ),
            ("response_format",),
        ),
        (400, error("This model does not support logprobs"), ("logprobs",)),
        (400, error("top_logprobs is not supported"), ("logprobs",)),
        (400, error("Only one completion is supported, 'n' must be 1: unsupported"), ("n",)),
        (
            422,
            {
                "detail": [
                    {
                        "type": "extra_forbidden",
                        "loc": ["body", "seed"],
                        "msg": "Extra inputs are not permitted",
                        "input": 1,
                    }
                ]
            },
            ("seed",),
        ),
        (
            422,
            {
                "detail": [
                    {
                        "type": "literal_error",
                        "loc": ["body", "response_format", "type"],
                        "msg": "Input should be 'text' or 'json_object'",
                    }
                ]
            },
            ("response_format",),
        ),
        (
            500,
            error("[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type')}]"),
            ("response_format",),
        ),
        (500, error("logprobs is not supported for models created with logits_all=False"), ("logprobs",)),
        (400, {"detail": "seed: unexpected keyword"}, ("seed",)),
        (400, {"error": "json mode is not available with this grammar"}, ("response_format",)),
        (501, error("temperature and seed are not implemented"), ("seed", "temperature")),
    ],
)
def test_errors_that_teach(status, body, names):
    outcome = means(status, body)
    assert outcome.means is Means.TEACH
    assert sorted(outcome.names) == sorted(names)


def test_only_what_was_sent_can_be_turned_down():
    assert missing(error("seed is not supported"), {"temperature": 0}) == ()
    assert missing(error("max_tokens is too large, at most 4096", param="max_tokens"), SENT) == ()
    assert missing("no such thing", SENT) == ()
    assert missing([1], SENT) == ()


def test_messages_of_the_last_resort_name_the_address_and_the_fix():
    def line(status, body=None, url="http://h/v1"):
        return fatal_message(means(status, body or error("gone")), url, "MY_KEY")

    assert line(401) == "http://h/v1 turned the key down (HTTP 401); put a valid one in MY_KEY"
    assert "no quota left" in line(402)
    assert "check the model's name" in line(404)
    assert "perhaps http://h/api/v1" in line(404, url="http://h/api")
    assert "perhaps" not in line(404)
    assert "elsewhere" in line(308)


# -- lowering a wish -----------------------------------------------------------------------------------

WISH = verdict_params(("a", "b"), seed=3)


def lowered(seen, form="json_schema", **more):
    return lower(WISH, seen, form=form, **{"limit": 512, "seed": 3, **more})


def test_an_unknown_endpoint_gets_the_whole_wish():
    sent = lowered(Capabilities())
    assert sent == {
        "temperature": 0.0,
        "seed": 3,
        "max_tokens": 512,
        "logprobs": True,
        "top_logprobs": 5,
        "response_format": WISH["response_format"],
    }
    label = WISH["response_format"]["json_schema"]["schema"]["properties"]["label"]
    assert label == {"type": "string", "enum": ["a", "b"]}


def test_what_is_not_taken_is_not_sent():
    nothing = Capabilities(logprobs=False, seed=False, temperature=False, limit_name="none", n=False)
    assert lowered(nothing, form="text", draws=3) == {}
    assert lowered(Capabilities(limit_name="max_completion_tokens"))["max_completion_tokens"] == 512
    assert lowered(Capabilities(), form="json_object")["response_format"] == {"type": "json_object"}
    beside = lowered(Capabilities(), form="json_object_schema")["response_format"]
    assert beside == {"type": "json_object", "schema": WISH["response_format"]["json_schema"]["schema"]}


def test_samples_are_drawn_warm_and_without_log_probabilities():
    sent = lowered(Capabilities(), draws=5, sampling=True)
    assert sent["temperature"] == 0.7
    assert sent["n"] == 5
    assert "logprobs" not in sent
    assert "top_logprobs" not in sent
    assert "n" not in lowered(Capabilities(n=False), draws=5, sampling=True)
    assert "temperature" not in lowered(Capabilities(temperature=False), draws=5, sampling=True)
    hot = verdict_params(("a", "b"), temperature=1.2)
    assert lower(hot, Capabilities(), form="text", limit=None, seed=None, sampling=True)["temperature"] == 1.2
    free = verdict_params(("a", "b"), temperature=None)
    assert "temperature" not in lower(free, Capabilities(), form="text", limit=None, seed=None)


def test_capabilities_fall_rung_by_rung_and_round_trip():
    seen = Capabilities()
    for rung in ("json_schema", "json_object_schema", "json_object", "text"):
        assert seen.format == rung
        seen = seen.without(["response_format"], format=rung)
    assert seen.format == "text"
    seen = seen.without(["max_tokens", "logprobs"], format="text")
    assert (seen.limit_name, seen.logprobs) == ("max_completion_tokens", False)
    seen = seen.without(["max_completion_tokens"], format="text")
    assert seen.limit_name == "none"
    assert Capabilities.from_dict(json.loads(json.dumps({**seen.to_dict(), "of_another_version": 1}))) == seen
