"""Prompts and completions as token ids: one way for training, sampling and evaluation.

Everything that a model reads or writes is built here from ids. A completion is encoded apart from its prompt, as it
is sampled; it ends with the token that ends a turn of the model's chat template.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from audit.errors import ArgumentError, InputError
from train.config import ModelSettings
from train.scorer import Scorer, Tags
from train.task import Message

if TYPE_CHECKING:
    from train.models import LoadedModel

__all__ = [
    "choose_pad",
    "closing_ids",
    "completion_ids",
    "end_of_turn",
    "prompt_ids",
    "prompt_text",
    "prompts_of",
    "scorer_for",
    "tags_of",
]

#: A text that stands for an answer when a template is asked what follows one.
_PROBE = "zxqj"


def prompt_text(
    tokenizer: Any, messages: Sequence[Message], settings: ModelSettings, *, think: bool = False
) -> str:
    """The chat as the template renders it, up to where the model's turn begins.

    Templates that know ``enable_thinking`` are told ``think``; ``settings.template`` gives further arguments and
    overrides it.

    Raises
    ------
    ArgumentError
        The tokenizer has no chat template, or the template refuses the messages.
    """
    if not tokenizer.chat_template:
        raise ArgumentError(
            f"{settings.name} has no chat template: name a model that was tuned for chat (often ...-Instruct)"
        )
    options = {"enable_thinking": think, **settings.template}
    try:
        text = tokenizer.apply_chat_template(
            list(messages), tokenize=False, add_generation_prompt=True, **options
        )
    except Exception as error:  # templates raise what they like
        raise ArgumentError(
            f"the chat template of {settings.name} refuses the messages ({error}): "
            "set task.system and task.thinking to '' where it knows no system message"
        ) from error
    return str(text)


def prompt_ids(
    tokenizer: Any, messages: Sequence[Message], settings: ModelSettings, *, think: bool = False
) -> list[int]:
    """The token ids of a prompt, any length: :func:`prompts_of` refuses those above ``settings.max_prompt``."""
    text = prompt_text(tokenizer, messages, settings, think=think)
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def prompts_of(
    loaded: LoadedModel, chats: Sequence[Sequence[Message]], *, think: bool | Sequence[bool] = False
) -> list[list[int]]:
    """The token ids of many prompts.

    Raises
    ------
    InputError
        Some are longer than ``settings.max_prompt`` tokens; says how many and how long. Nothing is cut.
    """
    settings = loaded.settings
    thinks = [think] * len(chats) if isinstance(think, bool) else think
    found = [
        prompt_ids(loaded.tokenizer, chat, settings, think=one)
        for chat, one in zip(chats, thinks, strict=True)
    ]
    long = [len(ids) for ids in found if len(ids) > settings.max_prompt]
    if long:
        raise InputError(
            f"{len(long)} of {len(found)} prompts have more than model.max_prompt = {settings.max_prompt} tokens "
            f"(the longest {max(long)}): raise it, or shorten the texts"
        )
    return found


def end_of_turn(tokenizer: Any, settings: ModelSettings) -> int:
    """The id of the token that ends an answer in the chat template; the end of sequence where it shows none."""
    ids: list[int] = []
    if tokenizer.chat_template:
        chat = [{"role": "user", "content": "a"}, {"role": "assistant", "content": _PROBE}]
        try:
            text = str(tokenizer.apply_chat_template(chat, tokenize=False, **settings.template))
        except Exception:  # noqa: BLE001  # templates raise what they like; the end of sequence is left
            text = ""
        after = text.rpartition(_PROBE)[2].lstrip()
        ids = list(tokenizer(after, add_special_tokens=False)["input_ids"])
    known = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
    if ids and ids[0] in known:
        return int(ids[0])
    if tokenizer.eos_token_id is None:
        raise ArgumentError(
            f"{settings.name}: its tokenizer has no token that ends a text: name another model"
        )
    return int(tokenizer.eos_token_id)


def choose_pad(tokenizer: Any, end: int) -> int:
    """The id to pad with: never the one that ends an answer, or masking the padding would mask the end too."""
    taken = {end, tokenizer.eos_token_id}
    if tokenizer.pad_token_id is not None and tokenizer.pad_token_id not in taken:
        return int(tokenizer.pad_token_id)
    added = {str(token): int(id_) for id_, token in sorted(tokenizer.added_tokens_decoder.items())}
    free = {token: id_ for token, id_ in added.items() if id_ not in taken}
    named = [token for token in free if "pad" in token.casefold()]
    usual = [token for token in ("<|endoftext|>", "<unk>", tokenizer.unk_token) if token in free]
    for token in [*named, *usual, *free]:
        return int(free[token])
    return next(id_ for id_ in range(len(tokenizer)) if id_ not in taken)


def tags_of(tokenizer: Any, settings: ModelSettings, prompt: Sequence[int]) -> Tags:
    r"""The tags of a thought as ids, ``prefilled`` where ``prompt`` already ends with the open one.

    Where a tag is no token of its own, its ids are those it has between two line breaks, as in
    ``<think>\n...\n</think>\n1``; a line break that its tokenizer ties to the tag is part of it.
    """
    first, last = settings.think
    end = str(tokenizer.decode(list(prompt)[-32:], skip_special_tokens=False)).rstrip()
    return Tags(
        open=_tag_ids(tokenizer, first, before=""),
        close=_tag_ids(tokenizer, last, before="\n"),
        prefilled=end.endswith(first),
    )


def _tag_ids(tokenizer: Any, tag: str, *, before: str) -> tuple[int, ...]:
    one = tokenizer.get_vocab().get(tag)
    if one is not None and one in tokenizer.added_tokens_decoder:
        return (int(one),)
    ids = list(tokenizer(f"{before}{tag}\na", add_special_tokens=False)["input_ids"])
    spans = [
        ids[start:stop]
        for size in range(1, len(ids) + 1)
        for start in range(len(ids) - size + 1)
        if tag in str(tokenizer.decode(ids[start : (stop := start + size)], skip_special_tokens=False))
    ]
    if not spans or str(tokenizer.decode(spans[0])).strip() != tag:
        raise ArgumentError(
            f"the tag {tag!r} is no run of whole tokens in this tokenizer: name other tags under model.think"
        )
    return tuple(int(id_) for id_ in spans[0])


def completion_ids(loaded: LoadedModel, completion: str, *, prompt: Sequence[int] = ()) -> list[int]:
    r"""A completion as the ids that a model should write after ``prompt``, the end of its turn included.

    A thought is written ``<think>\n...\n</think>\n1``, whatever the template: where the prompt already ends with
    the open tag (and perhaps a line break), the ids begin after it. Only the first open tag and the last close
    tag count as tags; special tokens quoted elsewhere are encoded letter by letter.
    """
    first, last = loaded.settings.think
    text = completion
    opened = text.startswith(first)
    thought = last in text and (opened or loaded.tags.prefilled)
    if thought and opened and loaded.tags.prefilled and prompt:
        shown = str(loaded.tokenizer.decode(list(prompt)[-32:], skip_special_tokens=False))
        if shown.rstrip().endswith(first):
            text = text[len(first) :]
            if shown.endswith("\n"):
                text = text.removeprefix("\n")
    if not thought:
        return [*_plain(loaded, text), loaded.end]
    head, _, answer = text.rpartition(last)
    opened = head.startswith(first)
    inner = head[len(first) :] if opened else head
    if len(loaded.tags.close) == 1 and len(loaded.tags.open) == 1:
        ids = [*(loaded.tags.open if opened else ()), *_plain(loaded, inner)]
        ids += [*loaded.tags.close, *_plain(loaded, answer)]
    else:
        ids = _ids(loaded.tokenizer, text)
    return [*ids, loaded.end]


def closing_ids(loaded: LoadedModel) -> list[int]:
    """The ids that close a thought and lead to the answer: a line break, the close tag, a line break."""
    close = loaded.tags.close
    if len(close) == 1:
        return [*_plain(loaded, "\n"), *close, *_plain(loaded, "\n")]
    return _ids(loaded.tokenizer, f"\n{loaded.settings.think[1]}\n")


def _plain(loaded: LoadedModel, text: str) -> list[int]:
    """Ids of a text whose special tokens and tags, if any are quoted, are letters like others."""
    tags = [tag for tag in loaded.settings.think if tag in text and len(tag) > 1]
    # A tokenizer may know a tag as a token, but not as a special one, and would make it whole again: cut within it.
    cuts = "|".join(f"(?<={re.escape(tag[0])})(?={re.escape(tag[1:])})" for tag in tags)
    parts = re.split(cuts, text) if tags else [text]
    return [id_ for part in parts if part for id_ in _ids(loaded.tokenizer, part)]


def _ids(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"])


def scorer_for(loaded: LoadedModel, labels: Collection[str], *, think: bool) -> Scorer:
    """The one scorer of evaluation and reward for this model."""
    tokenizer = loaded.tokenizer

    def decode(ids: Sequence[int]) -> str:
        return str(tokenizer.decode(list(ids), skip_special_tokens=False))

    return Scorer(labels, decode=decode, ends=loaded.ends, tags=loaded.tags if think else None)
