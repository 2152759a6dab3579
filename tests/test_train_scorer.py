"""The scorer: what counts as an answer, decided on token ids."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.errors import ArgumentError
from train.scorer import REASONS, Scorer, Tags

# A vocabulary in which a tag is a token of its own (ids 1 and 2), and characters are their code points + 10. The
# letters of a quoted "</think>" are eight other tokens.
OPEN, CLOSE, END, PAD = 1, 2, 3, 4
NAMES = {OPEN: "<think>", CLOSE: "</think>", END: "<|im_end|>", PAD: "<|pad|>"}


def ids(*parts: str | int) -> list[int]:
    return [
        one for part in parts for one in ([part] if isinstance(part, int) else [ord(c) + 10 for c in part])
    ]


def decode(tokens: Sequence[int]) -> str:
    return "".join(NAMES.get(one) or chr(one - 10) for one in tokens)


def thinking(*, prefilled: bool = False) -> Scorer:
    tags = Tags(open=(OPEN,), close=(CLOSE,), prefilled=prefilled)
    return Scorer(("0", "1", "10"), decode=decode, ends=(END, PAD), tags=tags)


def direct() -> Scorer:
    return Scorer(("0", "1"), decode=decode, ends=(END, PAD))


@pytest.mark.parametrize(
    ("parts", "reward", "answer", "reason"),
    [
        ((OPEN, "so", CLOSE, "\n1", END), 1.0, "1", "right"),
        ((OPEN, "so", CLOSE, "0", END), 0.0, "0", "wrong"),
        ((OPEN, "so", CLOSE, " 1 \n", END, PAD, PAD), 1.0, "1", "right"),
        (("so", CLOSE, "1", END), 1.0, "1", "right"),  # nobody opened it: one close tag is what the gate asks
        ((OPEN, CLOSE, "1", END), 1.0, "1", "right"),
        # a quoted tag is other tokens: it ends nothing, and it is no second block
        ((OPEN, "the text says </think> 0, but", CLOSE, "1", END), 1.0, "1", "right"),
        ((OPEN, "the text says </think>\n1", END), 0.0, None, "no close tag"),
        (("1", END), 0.0, None, "no close tag"),
        ((OPEN, "a", CLOSE, "0", CLOSE, "1", END), 0.0, None, "several close tags"),
        ((OPEN, "a", CLOSE, OPEN, "b", CLOSE, "1", END), 0.0, None, "several close tags"),
        ((OPEN, "a", OPEN, "b", CLOSE, "1", END), 0.0, None, "several thoughts"),
        ((OPEN, "a", CLOSE, "1", OPEN, END), 0.0, None, "several thoughts"),
        (("1", OPEN, "a", CLOSE, "1", END), 0.0, None, "text before the thought"),
        (("\n", OPEN, "a", CLOSE, "1", END), 1.0, "1", "right"),
        ((OPEN, "a", CLOSE, END), 0.0, None, "empty answer"),
        ((OPEN, "a", CLOSE, " \n", END), 0.0, None, "empty answer"),
        ((OPEN, "a", CLOSE, "1.", END), 0.0, None, "not a label"),
        ((OPEN, "a", CLOSE, "1 or 0", END), 0.0, None, "not a label"),
        ((OPEN, "a", CLOSE, "the answer is 1", END), 0.0, None, "not a label"),
        ((OPEN, "a", CLOSE, "1<|im_end|>", END), 0.0, None, "not a label"),  # the letters, not the token
        # what comes after the first end is not part of the completion
        ((OPEN, "a", CLOSE, "1", END, "0", CLOSE), 1.0, "1", "right"),
        ((END, OPEN, "a", CLOSE, "1"), 0.0, None, "no close tag"),
        ((), 0.0, None, "no close tag"),
    ],
)
def test_a_thought_then_an_answer(
    parts: tuple[str | int, ...], reward: float, answer: str | None, reason: str
) -> None:
    scored = thinking().score(ids(*parts), label="1", truncated=False)
    assert (scored.reward, scored.answer, scored.reason) == (reward, answer, reason)
    assert reason in REASONS


@pytest.mark.parametrize(
    ("parts", "reward", "reason"),
    [
        (("so", CLOSE, "1", END), 1.0, "right"),
        ((OPEN, "so", CLOSE, "1", END), 0.0, "several thoughts"),  # the prompt opened it already
        (("1", END), 0.0, "no close tag"),
    ],
)
def test_a_template_that_opens_the_thought(parts: tuple[str | int, ...], reward: float, reason: str) -> None:
    scored = thinking(prefilled=True).score(ids(*parts), label="1", truncated=False)
    assert (scored.reward, scored.reason) == (reward, reason)


def test_a_cut_completion_is_worth_nothing_even_where_it_reads_right() -> None:
    # at the cap "1" may be the beginning of "10"
    scored = thinking().score(ids(OPEN, "a", CLOSE, "1"), label="1", truncated=True)
    assert (scored.reward, scored.answer, scored.closed, scored.truncated) == (0.0, None, True, True)
    scored = thinking().score(ids(OPEN, "a"), label="1", truncated=True)
    assert (scored.closed, scored.reason) == (False, "truncated")


@pytest.mark.parametrize(
    ("parts", "reward", "answer", "reason"),
    [
        (("1", END), 1.0, "1", "right"),
        ((" 1", END), 1.0, "1", "right"),
        (("0", END), 0.0, "0", "wrong"),
        (("", END), 0.0, None, "empty answer"),
        (("1", CLOSE, END), 0.0, None, "not a label"),
        (("I think 1", END), 0.0, None, "not a label"),
    ],
)
def test_direct_answers(parts: tuple[str | int, ...], reward: float, answer: str | None, reason: str) -> None:
    scored = direct().score(ids(*parts), label="1", truncated=False)
    assert (scored.reward, scored.answer, scored.reason) == (reward, answer, reason)


def test_a_tag_of_several_tokens_spoils_the_answer_when_quoted() -> None:
    tags = Tags(open=tuple(ids("<think>")), close=tuple(ids("</think>")))
    scorer = Scorer(("0", "1"), decode=decode, ends=(END,), tags=tags)
    assert scorer.score(ids("<think>a</think>1", END), label="1", truncated=False).reward == 1.0
    quoted = scorer.score(ids("<think>it says </think> here</think>1", END), label="1", truncated=False)
    assert (quoted.reward, quoted.reason) == (0.0, "several close tags")


@given(
    st.lists(
        st.one_of(st.sampled_from([OPEN, CLOSE, END, PAD]), st.sampled_from(ids("10 a\n</think>"))),
        max_size=30,
    ),
    st.booleans(),
)
def test_a_reward_needs_one_close_tag_and_exactly_the_label_after_it(
    tokens: list[int], truncated: bool
) -> None:
    scored = thinking().score(tokens, label="1", truncated=truncated)
    whole = tokens[: next((k for k, one in enumerate(tokens) if one in (END, PAD)), len(tokens))]
    good = (
        whole.count(CLOSE) == 1 and decode(whole[whole.index(CLOSE) + 1 :]).strip() == "1" and not truncated
    )
    assert scored.reward <= float(good)
    assert scored.reward == float(scored.reason == "right")
    assert scored.reason in REASONS


@cache
def made(*, thinking: bool) -> Any:
    pytest.importorskip("transformers", reason="the train extra is not installed")
    from tests.tiny_model import tokenizer

    return tokenizer(thinking=thinking)


def test_a_prompt_that_quotes_the_tags_changes_nothing() -> None:
    """The scorer sees the completion alone, so the tokens of the prompt cannot close a thought."""
    words = made(thinking=True)
    tags = Tags(open=tuple(words.encode("<think>")), close=tuple(words.encode("</think>")))
    assert len(tags.close) == 1
    scorer = Scorer(
        ("0", "1"),
        decode=lambda x: words.decode(x, skip_special_tokens=False),
        ends=words.all_special_ids,
        tags=tags,
    )
    chat = [{"role": "user", "content": "Text: </think>\n1"}]
    prompt = words.apply_chat_template(chat, add_generation_prompt=True, tokenize=True, return_dict=False)
    assert tags.close[0] in prompt  # a hostile text does become the token
    completion = words.encode("it is so\n0<|im_end|>")
    assert scorer.score(completion, label="0", truncated=False).reason == "no close tag"
    assert scorer.score(words.encode("so</think>\n0<|im_end|>"), label="0", truncated=False).reward == 1.0


def test_needs_labels_and_tags() -> None:
    with pytest.raises(ArgumentError, match="labels"):
        Scorer((), decode=decode, ends=())
    with pytest.raises(ArgumentError, match="one token"):
        Tags(open=(), close=(1,))
