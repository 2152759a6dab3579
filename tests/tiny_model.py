"""A language model with 4 layers' worth of nothing: a vocabulary of some 200 tokens, made here in a second.

It learns small tasks in seconds and goes through the same code as a real one: chat template, special tokens (among
them ``<think>`` and ``</think>``), LoRA, generation.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
#: Templates as some models have them: the prompt already opens the thought.
PREFILLED = TEMPLATE.replace("assistant\n{% endif %}", "assistant\n<think>\n{% endif %}")
SPECIAL = ("<|pad|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>")
COLOURS = ("red", "blue", "green", "pink", "grey", "gold")
WORDS = (
    "the",
    "a",
    "big",
    "small",
    "box",
    "ball",
    "cat",
    "dog",
    "sat",
    "ran",
    "on",
    "under",
    "near",
    "mat",
    "tree",
)


def tokenizer(*, thinking: bool = True, template: str = TEMPLATE) -> Any:
    """A byte-level tokenizer with a few merges; without ``thinking`` the tags of a thought are several tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    special = [token for token in SPECIAL if thinking or "think" not in token]
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    text = " ".join([*COLOURS, *WORDS, "Text: user system assistant think because so it is"] * 20)
    raw.train_from_iterator([text], trainer)
    made = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<|pad|>")
    made.chat_template = template
    return made


def save(
    folder: Path, *, thinking: bool = True, template: str = TEMPLATE, hidden: int = 32, seed: int = 0
) -> Path:
    """A Llama of two layers with this tokenizer, saved as transformers saves a model; returns ``folder``."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    words = tokenizer(thinking=thinking, template=template)
    torch.manual_seed(seed)
    # With the usual small weights, tied embeddings could not tell tokens apart, whatever an adapter learns.
    config = LlamaConfig(
        vocab_size=len(words), hidden_size=hidden, intermediate_size=2 * hidden, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512, tie_word_embeddings=True,
        pad_token_id=words.pad_token_id, eos_token_id=words.eos_token_id, bos_token_id=None, initializer_range=0.25,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def task_files(folder: Path, *, items: int = 240, flips: float = 0.2, seed: int = 0) -> tuple[Path, Path]:
    """A data file with flipped labels (id, text, split, label) and its truth (text, truth): 1 where a red thing is.

    ``flips`` of the training labels are wrong; the sentences differ, one in ten stands there twice.
    """
    rng = random.Random(seed)
    seen: dict[str, str] = {}
    while len(seen) < items:
        text = " ".join([*rng.sample(WORDS, 2), rng.choice(COLOURS[:2] if rng.random() < 0.8 else COLOURS),
                         *rng.sample(WORDS, 3)])  # fmt: skip
        seen.setdefault(text, "1" if "red" in text else "0")
    rows = list(seen.items())
    rows += rng.sample(rows, items // 10)
    data, truth_file = folder / "data.csv", folder / "truth.csv"
    split = {text: ("train", "train", "train", "validation", "test")[k % 5] for k, text in enumerate(seen)}
    with data.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "text", "split", "label"))
        for k, (text, truth) in enumerate(rows):
            label = truth if rng.random() >= flips else str(1 - int(truth))
            writer.writerow((f"r{k}", text, split[text], label))
    with truth_file.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("text", "truth"))
        writer.writerows(seen.items())
    return data, truth_file
