"""The packaged small model goes through the ladder's parts: loaded, trained for a step or two, evaluated."""

import importlib.util
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the extra train is not installed")
pytest.importorskip("trl", reason="the extra train is not installed")

from tests.conftest import missing  # noqa: E402
from tests.small_model import weights  # noqa: E402
from train.config import ModelSettings, SftSettings  # noqa: E402
from train.evaluate import evaluate  # noqa: E402
from train.models import LoadedModel, add_lora, completion_ids, load_model, prompt_text, scorer_for  # noqa: E402
from train.run_folder import RunFolder  # noqa: E402
from train.sft import SftRow, train_sft  # noqa: E402
from train.task import Example, Task  # noqa: E402

pytestmark = [pytest.mark.llm, pytest.mark.slow]

TASK = Task(
    data="d.csv", inputs=("text",), label="label", labels=("0", "1"), instruction="Did it rain? 1 or 0."
)
TEXTS = (
    "It rained all day in Alby.",
    "The sun shone on the fair.",
    "A wet night, roofs leaked.",
    "Dry fields.",
)


@pytest.fixture(scope="module")
def small() -> LoadedModel:
    if weights() is None or importlib.util.find_spec("gguf") is None:
        missing("the small language model is not installed: make llm")
    return load_model(ModelSettings(name="smollm2", dtype="float32", device="cpu"), seed=0)


def test_it_loads_with_a_padding_that_is_not_its_end(small: LoadedModel) -> None:
    words = small.tokenizer
    assert words.decode([small.end]) == "<|im_end|>"
    assert words.pad_token == "<|endoftext|>"
    assert getattr(small.model.config, "quantization_config", None) is None
    assert sum(weight.numel() for weight in small.model.parameters()) == 134_515_008
    told = prompt_text(words, TASK.messages(["a"]), small.settings)
    assert told.count("<|im_start|>system") == 1, "ours, not the one its template adds where there is none"
    assert "SmolLM" not in told
    ids = completion_ids(small, "<think>\nwet\n</think>\n1")
    scored = scorer_for(small, ["0", "1"], think=True).score(ids, label="1", truncated=False)
    assert scored.reason == "right"


def test_it_learns_and_is_evaluated(small: LoadedModel, tmp_path: Path) -> None:
    loaded = add_lora(small, small.settings, seed=0)
    rows = [
        SftRow(messages=TASK.messages([text]), completion=str(k % 2)) for k, text in enumerate(TEXTS, start=1)
    ]
    run = RunFolder(tmp_path).start(name="a", rung="sft-clean", seed=0, config={})
    settings = SftSettings(max_steps=3, batch=4, learning_rate=1e-3, warmup=0.0, schedule="constant")
    loaded = train_sft(loaded, rows, settings=settings, run=run, seed=0)
    losses = run.curve()["loss"]
    assert losses.iloc[-1] < 0.8 * losses.iloc[0]
    examples = [
        Example(item=text, values=(text,), noisy="0", clean=str(k % 2), split="test")
        for k, text in enumerate(TEXTS * 2, start=1)
    ]
    frame, metrics = evaluate(loaded, examples, TASK, batch=4)
    assert metrics["label_mass"] > 0.5, "it has learned to answer with a label"
    assert frame["score"].between(0, 1).all()
    assert frame["score"].iloc[:4].tolist() == pytest.approx(frame["score"].iloc[4:].tolist(), abs=1e-4)
