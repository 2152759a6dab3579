from __future__ import annotations

import asyncio

import pytest

from audit.errors import EndpointError
from relabel.capabilities import Capabilities
from relabel.probe import probe
from relabel.rehearse import PROFILES, Fault, Profile, RehearsalServer, Script

SCRIPT = Script(truth={"rain all day": "rain", "sun all day": "sun"})


@pytest.fixture(autouse=True)
def _no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def seen(profile=None, *, faults=(), model="judge", **more):
    with RehearsalServer(SCRIPT, profile=profile, faults=faults) as server:
        found = asyncio.run(probe(model=model, base_url=server.base_url, pause=0.01, **more))
        assert server.counts().requests <= 20
        return found


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        (
            "full",
            {
                "json_schema": True,
                "json_object": True,
                "logprobs": True,
                "n": True,
                "seed": True,
                "temperature": True,
                "limit_name": "max_tokens",
                "reasoning": "none",
            },
        ),
        ("llama_cpp", {"json_schema": False, "json_object_schema": True, "logprobs": True, "n": False}),
        (
            "reasoning",
            {
                "json_schema": True,
                "logprobs": False,
                "n": False,
                "temperature": False,
                "limit_name": "max_completion_tokens",
                "reasoning": "field",
            },
        ),
        ("quiet", {"json_schema": True, "logprobs": False, "n": False}),
        (
            "bare",
            {
                "json_schema": False,
                "json_object_schema": False,
                "json_object": False,
                "logprobs": False,
                "n": False,
                "seed": False,
                "temperature": True,
            },
        ),
        (
            "thinker",
            {"json_schema": False, "json_object_schema": True, "logprobs": False, "reasoning": "think"},
        ),
    ],
)
def test_it_sees_what_each_endpoint_really_does(profile, expected):
    found = seen(PROFILES[profile])
    assert {name: getattr(found, name) for name in expected} == expected
    assert None not in {
        getattr(found, name) for name in ("json_schema", "logprobs", "n", "seed", "temperature")
    }
    assert Capabilities.from_dict(found.to_dict()) == found


def test_accepted_is_not_the_same_as_kept_to():
    found = seen(Profile(json_schema="ignored", loose=True, logprobs="ignored", n="ignored"))
    assert (found.json_schema, found.json_object, found.format) == (False, True, "json_object_schema")
    assert {
        "json_schema is accepted, but not kept to",
        "logprobs are accepted, but none come",
        "n = 3 gives 1 choice",
    } <= set(found.notes)


def test_it_says_that_temperature_zero_repeats_itself():
    assert any("repeats there measure nothing" in note for note in seen().notes)


def test_the_context_from_the_list_of_models_or_from_a_long_prompt():
    assert seen(Profile(context=5000, context_told=True)).context == 5000
    assert seen().context is None
    assert seen(Profile(context=3000), try_context=4000).context == 3000
    cut = seen(Profile(context=3000, context_cut=True), try_context=4000)
    assert cut.context == 3000
    assert any("cut silently" in note for note in cut.notes)
    assert any("is read whole" in note for note in seen(try_context=4000).notes)


def test_a_model_that_the_list_does_not_name_is_noted():
    assert "its list of models does not name 'other'" in seen(model="other").notes


@pytest.mark.parametrize("kind", ["rate_limit", "server_error", "cut", "html_200"])
def test_faults_that_pass_change_nothing(kind):
    assert seen(faults=[Fault(kind=kind, per_request=1)]) == seen()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("unauthorized", "HTTP 401"),
        ("not_found", "HTTP 404"),
        ("server_error", "HTTP 500"),
        ("cut", "connection"),
    ],
)
def test_an_endpoint_that_does_not_answer(kind, words):
    with RehearsalServer(SCRIPT, faults=[Fault(kind=kind)]) as server:
        with pytest.raises(
            EndpointError, match=f"{words}.*check the base URL, the model's name and the key"
        ) as caught:
            asyncio.run(probe(model="judge", base_url=server.base_url, pause=0.01))
        assert server.base_url in str(caught.value)
        assert server.counts().requests <= 3
