"""Evaluation: label probabilities against a loop that does one thing at a time, and thoughts read as rewarded."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra train is not installed")
pytest.importorskip("trl", reason="the extra train is not installed")

from audit.errors import ArgumentError, InputError  # noqa: E402
from tests import tiny_model  # noqa: E402
from train.config import ModelSettings  # noqa: E402
from train.evaluate import evaluate, generate  # noqa: E402
from train.label_scores import batches_by_length, completion_logprobs  # noqa: E402
from train.models import LoadedModel, completion_ids, load_model, prompts_of, quiet  # noqa: E402
from train.task import Example, Task  # noqa: E402

TASK = Task(data="d.csv", inputs=("text",), label="label", labels=("0", "1"))
TEXTS = ("the red box", "a ball", "cat sat on the mat near a big gold tree", "dog", "so")


def examples(texts: tuple[str, ...] = TEXTS) -> list[Example]:
    return [
        Example(item=text, values=(text,), noisy="0", clean=str(k % 2), split="test")
        for k, text in enumerate(texts)
    ]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return load_tiny(tmp_path_factory.mktemp("tiny"))


def load_tiny(folder: Path, dtype: Any = "float32", **kinds: Any) -> LoadedModel:
    with quiet():
        tiny_model.save(folder, **kinds)
    return load_model(ModelSettings(name=str(folder), dtype=dtype, device="cpu", max_prompt=200))


def naive(loaded: LoadedModel, prompt: list[int], completion: list[int]) -> float:
    """One sequence, one token after another, nothing shared and nothing padded."""
    total = 0.0
    for k, token in enumerate(completion):
        ids = torch.tensor([[*prompt, *completion[:k]]])
        with torch.no_grad():
            logits = loaded.model(input_ids=ids, use_cache=False).logits[0, -1].float()
        total += float(logits[token] - torch.logsumexp(logits, 0))
    return total


def prompts(loaded: LoadedModel) -> list[list[int]]:
    return prompts_of(loaded, [TASK.messages(one.values) for one in examples()])


@pytest.mark.parametrize("labels", [("0", "1"), ("red", "a red ball under", "1"), ("grey", "gold")], ids=str)
@pytest.mark.parametrize("batch", [1, 3, 8])
def test_log_probabilities_are_those_of_a_plain_loop(
    tiny: LoadedModel, labels: tuple[str, ...], batch: int
) -> None:
    asked = prompts(tiny)
    completions = [completion_ids(tiny, label) for label in labels]
    found = completion_logprobs(tiny, asked, completions, batch=batch)
    expected = [[naive(tiny, prompt, completion) for completion in completions] for prompt in asked]
    np.testing.assert_allclose(found, expected, atol=2e-5)
    assert np.ptp(found, axis=0).max() > 0.1, "the prompts make a difference"
    assert len({len(c) for c in completions}) == 1 or labels[0] == "red"


def test_log_probabilities_in_half_precision(tmp_path: Path) -> None:
    loaded = load_tiny(tmp_path, dtype="bfloat16")
    assert next(loaded.model.parameters()).dtype == torch.bfloat16
    asked, completions = prompts(loaded), [completion_ids(loaded, label) for label in ("0", "1")]
    found = completion_logprobs(loaded, asked, completions, batch=5)
    expected = [[naive(loaded, prompt, completion) for completion in completions] for prompt in asked]
    np.testing.assert_allclose(found, expected, rtol=0.03, atol=0.1)


def test_a_model_with_linear_attention(tmp_path: Path) -> None:
    """Its state is no list of keys and values: padding before the prompt and sharing it must be right there too."""
    from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

    words = tiny_model.tokenizer()
    torch.manual_seed(0)
    config = Qwen3_5TextConfig(
        vocab_size=len(words), hidden_size=32, intermediate_size=64, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8,
        linear_value_head_dim=8, max_position_embeddings=512, pad_token_id=0, eos_token_id=2, bos_token_id=None,
    )  # fmt: skip
    with quiet():
        Qwen3_5ForCausalLM(config).save_pretrained(tmp_path)
        words.save_pretrained(tmp_path)
    loaded = load_model(ModelSettings(name=str(tmp_path), dtype="float32", device="cpu"))
    asked = prompts(loaded)
    completions = [completion_ids(loaded, label) for label in ("0", "a red ball")]
    found = completion_logprobs(loaded, asked, completions, batch=5)
    expected = [[naive(loaded, prompt, completion) for completion in completions] for prompt in asked]
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_direct_answers_are_the_likelier_labels(tiny: LoadedModel) -> None:
    frame, metrics = evaluate(tiny, examples(), TASK, batch=2)
    asked = prompts(tiny)
    logs = np.array([[naive(tiny, p, completion_ids(tiny, label)) for label in "01"] for p in asked])
    share = 1 / (1 + np.exp(logs[:, 0] - logs[:, 1]))
    np.testing.assert_allclose(frame["score"], share, atol=1e-5)
    np.testing.assert_allclose(frame["mass"], np.exp(logs).sum(axis=1), rtol=1e-4)
    assert frame["item"].tolist() == list(TEXTS)
    assert frame["label"].tolist() == ["0", "1", "0", "1", "0"]
    assert frame["noisy"].tolist() == ["0"] * 5
    assert frame["prediction"].tolist() == ["1" if one > 0.5 else "0" for one in share]
    assert set(frame["reason"]) <= {"right", "wrong"}
    assert metrics["n"] == 5
    assert metrics["accuracy"] == np.mean(frame["label"] == frame["prediction"])


def test_more_labels_than_two(tiny: LoadedModel) -> None:
    task = dataclasses.replace(TASK, labels=("0", "1", "gold ball"), positive="gold ball")
    frame, metrics = evaluate(tiny, examples(), task, batch=4)
    shares = frame[["p_0", "p_1", "p_gold ball"]].to_numpy()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(frame["score"], frame["p_gold ball"])
    assert frame["prediction"].tolist() == [task.labels[k] for k in shares.argmax(axis=1)]
    assert metrics["accuracy_all_labels"] == np.mean(frame["label"] == frame["prediction"])


def test_the_order_and_the_batch_do_not_matter(tiny: LoadedModel) -> None:
    one, _ = evaluate(tiny, examples(), TASK, batch=5)
    other, _ = evaluate(tiny, examples()[::-1], TASK, batch=2)
    np.testing.assert_allclose(one["score"], other["score"].to_numpy()[::-1], atol=1e-5)


def test_long_prompts_are_refused_not_cut(tiny: LoadedModel) -> None:
    with pytest.raises(
        InputError, match=r"1 of 2 prompts have more than model\.max_prompt = 200 .* longest 3\d\d"
    ):
        evaluate(tiny, examples(("a", "cat and dog " * 60)), TASK)
    with pytest.raises(ArgumentError, match="no examples"):
        evaluate(tiny, [], TASK)


def scripted(loaded: LoadedModel, texts: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the model write these completions, tags as tags."""
    import train.evaluate as module

    def written(
        _: LoadedModel, asked: list[list[int]], *, cap: int, batch: int
    ) -> list[tuple[list[int], bool]]:
        found = []
        for ids in asked:
            shown = loaded.tokenizer.decode(ids)
            text = next(text for item, text in texts.items() if f"Text: {item}<|im_end|>" in shown)
            out = loaded.tokenizer(text, add_special_tokens=False)["input_ids"]
            found.append((out[:cap], len(out) > cap))
        return found

    monkeypatch.setattr(module, "generate", written)


THOUGHTS = {
    "the red box": "<think>\nit is red\n</think>\n1<|im_end|>",
    "a ball": "<think>\nso\n</think>\n1<|im_end|>",
    "cat sat on the mat near a big gold tree": "<think>\n" + "cat dog " * 60,
    "dog": "1<|im_end|>",
    "so": "<think>\na</think>b</think>\n0<|im_end|>",
}


def test_thoughts_are_scored_as_they_are_rewarded(tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(tiny, THOUGHTS, monkeypatch)
    frame, metrics = evaluate(tiny, examples(), TASK, think=True, cap=64, batch=2)
    assert frame["prediction"].tolist() == ["1", "1", None, None, None]
    assert frame["reason"].tolist() == ["wrong", "right", "truncated", "no close tag", "several close tags"]
    assert frame["truncated"].tolist() == [False, False, True, False, False]
    assert metrics["accuracy"] == 0.2, "no answer is a wrong answer"
    assert metrics["answered"] == 0.4
    assert metrics["closed"] == 0.4
    assert metrics["truncated"] == 0.2
    assert frame["score"].between(0, 1).all(), "every row has a score"


def test_the_score_of_a_thought_is_read_where_the_answer_stands(
    tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(tiny, THOUGHTS, monkeypatch)
    frame, _ = evaluate(tiny, examples(), TASK, think=True, cap=64, batch=2)
    asked = prompts_of(tiny, [TASK.messages(one.values, think=True) for one in examples()], think=True)
    words = tiny.tokenizer
    for row, prefix in (
        (0, "<think>\nit is red\n</think>\n"),
        (2, None),
        (3, "1\n</think>\n"),
        (4, "<think>\na</think>"),
    ):
        if prefix is None:
            cut = words(THOUGHTS[TEXTS[2]], add_special_tokens=False)["input_ids"][:64]
            ids = [*cut, *words("\n</think>\n", add_special_tokens=False)["input_ids"]]
        else:
            ids = words(prefix, add_special_tokens=False)["input_ids"]
        logs = [naive(tiny, [*asked[row], *ids], completion_ids(tiny, label)) for label in "01"]
        assert frame["score"].iloc[row] == pytest.approx(1 / (1 + np.exp(logs[0] - logs[1])), abs=1e-5)


def test_generation_is_greedy_and_stops_where_it_should(tiny: LoadedModel) -> None:
    asked = prompts(tiny)
    together = generate(tiny, asked, cap=12, batch=3)
    for prompt, (ids, cut) in zip(asked, together, strict=True):
        alone: list[int] = []
        while len(alone) < 12 and not set(alone) & set(tiny.stops):
            with torch.no_grad():
                logits = tiny.model(input_ids=torch.tensor([[*prompt, *alone]])).logits[0, -1]
            alone.append(int(logits.argmax()))
        assert ids == alone
        assert cut == (alone[-1] not in tiny.stops)


def test_evaluation_leaves_the_model_as_it_was(tiny: LoadedModel) -> None:
    before = {name: weight.clone() for name, weight in tiny.model.named_parameters()}
    tiny.model.train()
    evaluate(tiny, examples(), TASK)
    assert tiny.model.training
    tiny.model.eval()
    evaluate(tiny, examples(), TASK, think=True, cap=4)
    assert not tiny.model.training
    assert all(torch.equal(before[name], weight) for name, weight in tiny.model.named_parameters())


def test_batches_hold_every_row_once() -> None:
    assert batches_by_length([3, 9, 9, 1], 2) == [[1, 2], [0, 3]]
    assert sorted(row for rows in batches_by_length([5] * 7, 3) for row in rows) == list(range(7))
