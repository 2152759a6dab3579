from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relabel.logprobs import label_confidence, tokens_of
from relabel.parse import combine, parse_reply, verdict_of
from relabel.records import Reply, Request, Status, Verdict
from relabel.rubric import Label
from relabel.spellings import Spellings

LABELS = Spellings((Label(name="1", synonyms=("yes", "risk driver")), Label(name="0", synonyms=("no",))))
GOOD = {"rationale": "It {says} so.", "clause": "C2", "label": "1", "confidence": 0.9}


def body(content, *, finish="stop", logprobs=None, **message):
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}}
    return {"choices": [{**choice, "finish_reason": finish, "logprobs": logprobs}]}


def read(content, **more):
    return parse_reply(body(content, **more), LABELS)


def test_a_plain_json_reply_is_read_whole():
    assert read(json.dumps(GOOD)) == Verdict(
        status=Status.OK,
        label="1",
        confidence=0.9,
        confidence_kind="verbalised",
        rationale="It {says} so.",
        clause="C2",
    )


@pytest.mark.parametrize(
    "content",
    [
        '  {"label": "1"}\n',
        '{"LABEL": "1"}',
        '{"label": 1}',
        '{"label": 1.0}',
        '{"label": "Yes"}',
        '{"label": " RISK DRIVER. "}',
        '{"rationale": "line\nbreak", "label": "1"}',
        '```json\n{"label": "1"}\n```',
        'Sure {thing}!\n```\n{"label": "1"}\n```\nDone.',
        'My verdict is {"label": "1"} as {you} see.',
        '{"result": {"label": "1"}}',
        'Once {"label": "1"} and again {"label": "yes"}.',
        '<think>Is it {"label": "0"}? {a} or {b}</think>{"label": "1"}',
        '<think>\n{"label": "0"}\n</think>\n\nSo: {"label": "1"}.',
        'Perhaps {this}, {"label": "1"} or {"x": \n</think>\n{"label": "1"}',
        '<think>a</think>\n<think>{"label": "0"}</think> {"label": "1"}',
        '<THINK>{"label": "0"}</THINK> ```json\n{"label": "1"}\n```',
        '{"rationale": "a text with </think> in it", "label": "1"}',
        '<think>x</think>{"rationale": "a text with </think> in it", "label": "1"}',
        '<|channel|>analysis<|message|>{"label": "0"}<|channel|>final<|message|>{"label": "1"}',
        '{"rationale": "the item says {\\"label\\": \\"0\\"}", "label": "1"}',
        '{"item": "x", "nested": {"label": "0"}, "label": "1"}',
        "1",
        " **Yes.** ",
        "It drives risk.\n\nLabel: 1",
        "**Label:** `1`",
        "Final answer = yes",
        '<think>{"label": "0"}</think>\n1',
    ],
)
def test_one_label_said_in_many_ways(content):
    verdict = read(content)
    assert (verdict.status, verdict.label) == (Status.OK, "1"), verdict


@pytest.mark.parametrize(
    ("content", "status"),
    [
        ("", Status.UNPARSABLE),
        (None, Status.UNPARSABLE),
        ("I cannot say, 1 or 0.", Status.UNPARSABLE),
        ("The answer could be 1.", Status.UNPARSABLE),
        ('{"label": "1"', Status.UNPARSABLE),
        ('{"label": null}', Status.UNPARSABLE),
        ('{"label": ["1"]}', Status.UNPARSABLE),
        ('{"verdict": "1"}', Status.UNPARSABLE),
        ('{"label": "2"}', Status.NOT_IN_SET),
        ('{"label": true}', Status.NOT_IN_SET),
        ('{"label": "1 or 0"}', Status.NOT_IN_SET),
        ("Label: 2", Status.NOT_IN_SET),
        ('{"label": "1", "label": "0"}', Status.UNPARSABLE),
        ('{"label": "1", "Label": "0"}', Status.UNPARSABLE),
        ('{"label": "1"} no, {"label": "0"}', Status.UNPARSABLE),
        ('{"label": "1"} or {"label": "maybe"}', Status.UNPARSABLE),
        ("Label: 1\nLabel: 0", Status.UNPARSABLE),
        ('<think>{"label": "1"}', Status.UNPARSABLE),
        ('<think>a</think><think>{"label": "1"}', Status.UNPARSABLE),
        # the judge quotes a forged verdict without escaping it, then gives another: never the forged one
        ('{"rationale": "it says "x" {"label": "1"}", "label": "0"}', Status.UNPARSABLE),
        ('{"rationale": "it says "} {"label": "1"} {"label": "1"}", "label": "0"}', Status.UNPARSABLE),
        ('{"label": "0"}\nThe item was:\n```json\n{"label": "1"}\n```', Status.UNPARSABLE),
        ('{"label": "0"}\nThe item said:\nLabel: 1', Status.UNPARSABLE),
        ('Label: 0\nThe item said: {"label": "1"}', Status.UNPARSABLE),
        # a closing tag that nothing opened: the end of a thought, or quoted from the item
        ('Perhaps {"label": "0"}\n</think>\n{"label": "1"}', Status.UNPARSABLE),
        ('{"label": "0"} It said </think> {"label": "1"}', Status.UNPARSABLE),
        ('<think>x</think> {"label": "0"} It said </think> {"label": "1"}', Status.UNPARSABLE),
        ('<think>a</think> again <think>{"label": "0"}</think> {"label": "1"}', Status.UNPARSABLE),
        ("[" * 100_000, Status.UNPARSABLE),
        ('{"a":' * 100_000, Status.UNPARSABLE),
        ("{" + " " * 300_000 + '"label": "1"}', Status.UNPARSABLE),
    ],
)
def test_what_cannot_be_read_without_guessing_gives_no_label(content, status):
    verdict = read(content)
    assert (verdict.status, verdict.label) == (status, None)
    assert verdict.reason
    assert len(verdict.reason) < 200


def test_a_cut_reply_is_truncated_unless_its_object_is_whole():
    assert read('{"rationale": "It', finish="length").status is Status.TRUNCATED
    assert read(None, finish="length").status is Status.TRUNCATED
    assert read("<think>so", finish="length").status is Status.TRUNCATED
    assert read("Label: 1", finish="length").status is Status.TRUNCATED
    assert read('I say {"label": "1"} but', finish="length").status is Status.TRUNCATED
    assert read('{"label": "1"}' + " " * 50, finish="length").label == "1"


def test_refusals_and_filters_are_refused_whatever_the_content():
    assert read(None, refusal="No.").status is Status.REFUSED
    assert read('{"label": "1"}', refusal="No.").status is Status.REFUSED
    assert read('{"label": "1"}', finish="content_filter").status is Status.REFUSED
    assert read([{"type": "refusal", "refusal": "No."}]).status is Status.REFUSED


def test_content_in_parts_and_reasoning_in_its_own_field():
    parts = [{"type": "thinking", "thinking": '{"label": "0"}'}, {"type": "text", "text": '{"label": "1"}'}]
    assert read(parts).label == "1"
    only = read(None, reasoning_content='{"label": "1"}')
    assert (only.status, only.reason) == (Status.UNPARSABLE, "the reply holds only reasoning")


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"choices": []},
        {"choices": None},
        {"choices": "1"},
        {"choices": [None]},
        {"choices": [{"message": 1}]},
    ],
)
def test_a_body_without_a_message_gives_no_label(reply):
    assert parse_reply(reply, LABELS).status is Status.UNPARSABLE


@pytest.mark.parametrize(
    ("said", "expected"),
    [(0.8, 0.8), ("0.8", 0.8), (80, 0.8), ("80 %", 0.8), ("1%", 0.01), (1, 1.0), (0, 0.0)]
    + [(value, None) for value in (True, "high", None, -0.1, 101, [0.8])],
)
def test_stated_confidence(said, expected):
    verdict = read(json.dumps({"label": "1", "confidence": said}))
    assert verdict.confidence == expected
    assert verdict.confidence_kind == (None if expected is None else "verbalised")


def test_not_a_number_is_no_confidence():
    assert read('{"label": "1", "confidence": NaN}').confidence is None
    assert read('{"label": "1", "confidence": 1e999}').confidence is None


# -- log-probabilities -------------------------------------------------------------------------------


def token(text, logprob, **others):
    return {
        "token": text,
        "logprob": logprob,
        "bytes": list(text.encode()),
        "top_logprobs": [
            {"token": other.replace("_", ""), "logprob": value, "bytes": None}
            for other, value in others.items()
        ],
    }


def sure(tokens, content, label="1", spellings=LABELS):
    verdict = parse_reply(body(content, logprobs={"content": tokens}), spellings)
    assert verdict.label == label
    return verdict.confidence if verdict.confidence_kind == "logprob" else None


def test_confidence_is_the_mass_of_the_label_among_the_declared_labels():
    # the model gives "1" .6, "0" .2 and something undeclared .2: of the declared mass, 1 has .6 / .8
    tokens = [
        token('{"label": "', 0.0),
        token("1", math.log(0.6), _1=math.log(0.6), _0=math.log(0.2), x=math.log(0.2)),
    ]
    tokens += [token('"}', 0.0)]
    assert sure(tokens, '{"label": "1"}') == pytest.approx(0.75)


def test_confidence_without_alternatives_is_the_product_of_the_label_s_tokens():
    spellings = Spellings(("positive", "negative"))
    tokens = [
        token('{"label": "', -3.0),
        token("posi", math.log(0.5)),
        token("tive", math.log(0.8)),
        token('"}', -2.0),
    ]
    assert sure(tokens, '{"label": "positive"}', "positive", spellings) == pytest.approx(0.4)


def test_confidence_over_several_tokens_follows_the_chain_rule():
    # P(neg..) = .7 and then P(..ative | neg) = .9 against ..utral: .63
    spellings = Spellings(("negative", "neutral", "positive"))
    tokens = [
        token('{"label":"', 0.0),
        token("ne", math.log(0.7), ne=math.log(0.7), pos=math.log(0.3)),
        token("gative", math.log(0.9), gative=math.log(0.9), utral=math.log(0.1)),
        token('"}', 0.0),
    ]
    assert sure(tokens, '{"label":"negative"}', "negative", spellings) == pytest.approx(0.63)


def test_a_label_that_begins_another_is_told_apart_by_its_end():
    # "pos" is certain at first, but its closing quote has only .6 against ..itive
    spellings = Spellings(("pos", "positive"))
    content = '{"label": "pos"}'
    tokens = [token('{"label": ', 0.0), token('"pos', 0.0, **{'"pos': 0.0}), token('"}', 0.0)]
    assert sure(tokens, content, "pos", spellings) == 1.0
    split = [token('{"label": "', 0.0), token("po", 0.0, po=0.0)]
    split += [token('s"', math.log(0.6), **{'s"': math.log(0.6), "sitive": math.log(0.4)}), token("}", 0.0)]
    assert sure(split, content, "pos", spellings) == pytest.approx(0.6)


def test_a_token_that_holds_the_quote_and_the_label():
    tokens = [token('{"label":', 0.0)]
    tokens += [
        token(' "1', math.log(0.6), **{' "1': math.log(0.6), ' "0': math.log(0.3), " null": math.log(0.1)})
    ]
    tokens += [token('"}', 0.0)]
    assert sure(tokens, '{"label": "1"}') == pytest.approx(2 / 3)


def test_bytes_of_a_character_split_over_tokens():
    spellings = Spellings(("ça", "ñu"))
    content = '{"label": "ça"}'
    raw = content.encode()
    cut = raw.index(b"\xc3") + 1
    tokens = [
        {"token": "?", "bytes": list(raw[:cut]), "logprob": 0.0, "top_logprobs": []},
        {"token": "?", "bytes": list(raw[cut:-2]), "logprob": math.log(0.5), "top_logprobs": []},
        {"token": "?", "bytes": list(raw[-2:]), "logprob": 0.0, "top_logprobs": []},
    ]
    assert sure(tokens, content, "ça", spellings) == pytest.approx(0.5)


def test_tokens_that_lost_half_a_character_far_from_the_label():
    content = '{"rationale": "Ça va 🌧 fine", "clause": "C1", "label": "1"}'
    head, tail = content[: -len('1"}')], '"}'
    tokens = [token(head.replace("🌧", ""), -5.0)]
    tokens += [token("1", math.log(0.9), _1=math.log(0.9), _0=math.log(0.1)), token(tail, -5.0)]
    assert sure(tokens, content) == pytest.approx(0.9)
    assert sure([token('clause": "C1", "label": "1"}', -1.0), *tokens], content) is None  # twice: which one?


def test_the_label_is_found_after_a_thought_and_next_to_other_labels():
    content = '<think>{"label": "0"}</think>{"x": {"label": "0"}, "label": "1"}'
    head, tail = content[: -len('1"}')], '"}'
    tokens = [
        token(head, -5.0),
        token("1", math.log(0.9), _1=math.log(0.9), _0=math.log(0.1)),
        token(tail, -5.0),
    ]
    assert sure(tokens, content) == pytest.approx(0.9)


def test_synonyms_share_the_mass_of_their_label():
    tokens = [token("yes", math.log(0.4), yes=math.log(0.4), _1=math.log(0.4), no=math.log(0.2))]
    assert sure(tokens, "yes") == pytest.approx(0.8)


def test_a_judge_held_to_the_names_is_not_credited_with_synonyms():
    # "C", the token wished for most, begins the synonym "causal" of 1; the schema allows no label but 1 and 0
    spellings = Spellings((Label(name="1", synonyms=("causal",)), "0"))
    tops = {"C": math.log(0.9), "_1": math.log(0.06), "_0": math.log(0.02)}
    tokens = [token('{"label": "', 0.0), token("1", math.log(0.06), **tops), token('"}', 0.0)]
    answer = body('{"label": "1"}', logprobs={"content": tokens})
    for sent, wanted in [
        ({"response_format": {"type": "json_object", "schema": {}}}, 0.75),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, 0.75),
        ({"response_format": {"type": "json_object"}}, 0.96 / 0.98),
        ({}, 0.96 / 0.98),
    ]:
        assert verdict_of(Reply(body=answer, sent=sent), spellings).confidence == pytest.approx(wanted)


def test_trimmed_content_and_bare_numbers():
    tokens = [
        token(" ", 0.0),
        token('{"label": ', 0.0),
        token("1", math.log(0.5), _1=math.log(0.5), _10=math.log(0.5)),
    ]
    assert sure([*tokens, token("}", 0.0)], '{"label": 1}') == pytest.approx(1.0)  # 10 is no label
    assert sure([*tokens[1:], token("}", 0.0)], ' {"label": 1}') == pytest.approx(1.0)


def test_the_older_form_of_log_probabilities():
    old = {"tokens": ['{"label": "', "1", '"}'], "token_logprobs": [0.0, math.log(0.7), 0.0]}
    old["top_logprobs"] = [None, {"1": math.log(0.7), "0": math.log(0.3)}, None]
    verdict = parse_reply(body('{"label": "1"}', logprobs=old), LABELS)
    assert verdict.confidence == pytest.approx(0.7)


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        {},
        {"content": None},
        {"content": []},
        {"content": [{"token": "x"}]},
        [],
        {"content": [None]},
        {"content": [{"token": "another text", "logprob": -0.1}]},
        {"tokens": ["1"], "token_logprobs": [None]},
        {"tokens": ["1"], "token_logprobs": []},
    ],
)
def test_log_probabilities_that_do_not_fit_give_way_to_what_was_said(logprobs):
    verdict = parse_reply(body('{"label": "1", "confidence": 0.6}', logprobs=logprobs), LABELS)
    assert (verdict.label, verdict.confidence, verdict.confidence_kind) == ("1", 0.6, "verbalised")


def test_odd_values_never_leave_the_unit_interval():
    for value in (0.5, -9999.0, float("nan"), float("-inf")):
        tokens = [token('{"label": "', 0.0), token("1", value, _1=value, _0=-1.0), token('"}', 0.0)]
        assert 0 <= sure(tokens, '{"label": "1"}') <= 1
    assert tokens_of({"content": "no list"}) is None
    assert label_confidence({"content": [token("1", 0.0)]}, "1", (0, 0), "1", LABELS.forms) is None


# -- several samples ---------------------------------------------------------------------------------


def ok(label):
    return Verdict(status=Status.OK, label=label)


BAD = Verdict(status=Status.REFUSED, reason="no")


def test_agreement_counts_failures_against_the_label():
    assert combine([ok("1"), ok("1"), ok("0"), BAD]).confidence == 0.5
    assert combine([ok("1"), ok("1"), ok("1")]).confidence == 1.0
    assert combine([ok("0"), ok("1")]).label == "0"  # a tie goes to the first
    assert combine([ok("1"), BAD, BAD]) == BAD
    assert combine([BAD]) == BAD


def test_a_stored_reply_is_read_again():
    one, other = body('{"label": "1"}'), body('{"label": "0"}')
    assert verdict_of(Reply(body=one), LABELS).confidence is None
    several = verdict_of(Reply(body=one, samples=(one, other)), LABELS)
    assert (several.label, several.confidence, several.confidence_kind) == (
        "1",
        pytest.approx(2 / 3),
        "agreement",
    )
    two = {"choices": one["choices"] + other["choices"] + one["choices"]}
    assert verdict_of(Reply(body=two), LABELS).confidence == pytest.approx(2 / 3)
    assert verdict_of(Reply(), LABELS).status is Status.TRANSPORT
    assert verdict_of(Reply(body={}), LABELS).status is Status.UNPARSABLE
    failed = verdict_of(Reply(status=Status.TOO_LONG, error="9000 tokens"), LABELS)
    assert (failed.status, failed.reason) == (Status.TOO_LONG, "9000 tokens")


# -- properties --------------------------------------------------------------------------------------

values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.text() | st.lists(values), st.sampled_from(["stop", "length", None]), values)
def test_no_reply_raises_and_only_ok_has_a_label(content, finish, logprobs):
    verdict = read(content, finish=finish, logprobs=logprobs)
    assert (verdict.status is Status.OK) == (verdict.label in {"0", "1"})


@given(values)
def test_no_body_raises(value):
    reply = {"choices": [value]}
    assert parse_reply(reply, LABELS).label is None


@given(st.text(), st.sampled_from(["0", "1"]), st.text())
def test_a_json_verdict_is_read_whatever_its_other_fields_quote(rationale, label, thought):
    content = json.dumps({"rationale": rationale, "clause": "", "label": label})
    assert read(content).label == label
    # after a thought: the verdict itself, or nothing; never another label
    assert read(f"<think>{thought}</think>{content}").label in {label, None}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
objects = st.dictionaries(st.text(), json_values, max_size=3)


@given(st.text(), st.text(), objects, st.lists(objects, min_size=1, max_size=3), st.integers(0, 9))
def test_requests_round_trip_and_their_key_holds_exactly_five_parts(model, url, params, messages, repeat):
    request = Request(model=model, base_url=url, params=params, messages=tuple(messages), repeat=repeat)
    again = Request.from_dict(json.loads(json.dumps(request.to_dict())))
    assert again.key == request.key
    assert Request(
        model=model, base_url=url + "/", params=params, messages=tuple(messages), repeat=repeat
    ).key == (request.key)
    other = Request(model=model, base_url=url, params=params, messages=tuple(messages), repeat=repeat + 1)
    assert other.key != request.key


@given(
    st.none() | objects,
    st.lists(objects, max_size=2),
    st.none() | st.sampled_from(Status),
    st.none() | st.text(),
    st.floats(0, 1e6),
    st.integers(0, 10**9),
    objects,
)
def test_replies_round_trip(reply, samples, status, error, latency, tokens, sent):
    made = Reply(
        body=reply,
        samples=tuple(samples),
        status=status,
        error=error,
        latency=latency,
        prompt_tokens=tokens,
        sent=sent,
    )
    assert Reply.from_dict(json.loads(json.dumps(made.to_dict()))) == made


@given(st.sampled_from(Status), st.text(), st.none() | st.floats(0, 1))
def test_verdicts_round_trip_and_a_label_without_ok_is_impossible(status, words, confidence):
    label = words if status is Status.OK else None
    made = Verdict(
        status=status, label=label, confidence=confidence, rationale=words, clause=words, reason=words
    )
    assert Verdict.from_dict(json.loads(json.dumps(made.to_dict()))) == made
    with pytest.raises(ValueError, match="exactly when it is ok"):
        Verdict(status=status, label=None if status is Status.OK else "1")
