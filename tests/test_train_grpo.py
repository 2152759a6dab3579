"""GRPO from a task: rewards, the choice for cut completions, the log of rollouts, the curve, going on after a kill."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from audit.errors import ArgumentError  # noqa: E402
from tests import grpo_pieces as pieces  # noqa: E402
from tests import naive_grpo, tiny_model  # noqa: E402
from train.checkpoints import checkpoint_step, last_checkpoint  # noqa: E402
from train.config import GrpoSettings, ModelSettings  # noqa: E402
from train.grpo import RolloutReward, grpo_config, prompt_order, train_grpo  # noqa: E402
from train.models import LoadedModel, add_lora, load_model, quiet, scorer_for  # noqa: E402
from train.rollouts import read_rollouts  # noqa: E402
from train.run_folder import RunFolder  # noqa: E402
from train.task import Example, Task  # noqa: E402

TASK = Task(data="none", inputs=("text",), label="label", labels=("0", "1"))
SETTINGS = GrpoSettings(steps=3, prompts=3, group=4, cap=3, think_cap=10, learning_rate=1e-3, save_every=2)


@pytest.fixture(scope="module", autouse=True)
def no_sweeping() -> Iterator[None]:
    """Every training ends with a collection of garbage over all that was ever imported: .4 s."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model that answers 0 and 1 by turns, with thoughts of several lengths where it is to think."""
    return pieces.answering(tmp_path_factory.mktemp("tiny") / "model", TASK)


def examples(n: int = 7, *, label: str = "", text: str = "") -> list[Example]:
    texts = [text or f"the {tiny_model.COLOURS[k % 6]} box {'cat ' * k}".strip() for k in range(n)]
    return [
        Example(
            item=f"{k}",
            values=(t,),
            noisy=label or str(k % 2),
            clean=label or str((k + 1) % 2),
            split="train",
        )
        for k, t in enumerate(texts)
    ]


def loaded_with_lora(folder: Path) -> LoadedModel:
    settings = pieces.model_settings(folder)
    with quiet():
        return add_lora(load_model(settings), settings, seed=1)


def train(
    folder: Path, out: Path, settings: GrpoSettings = SETTINGS, **options: Any
) -> tuple[RunFolder, Any]:
    """A run of GRPO on a fresh adapter: its folder and the model."""
    loaded = loaded_with_lora(folder)
    rows = options.pop("examples", None) or examples()
    task = options.pop("task", TASK)
    run = RunFolder(out)
    with run.start(name=out.name, rung="grpo", seed=3, config={"grpo": {}}):
        train_grpo(loaded, rows, task, settings=settings, run=run, seed=3, **{"think": False, **options})
    return run, loaded


def weights(run: RunFolder) -> dict[str, Any]:
    from safetensors.torch import load_file

    return dict(load_file(run.adapter / "adapter_model.safetensors"))


def test_a_run_keeps_every_completion_and_its_curve(folder: Path, tmp_path: Path) -> None:
    run, loaded = train(folder, tmp_path / "one", labels="noisy")
    assert [file.name for file in sorted(run.rollouts.iterdir())] == [
        f"step-00000{k}.parquet" for k in (1, 2, 3)
    ]
    frame = pd.read_parquet(run.rollouts)
    assert len(frame) == 3 * 12
    assert frame.groupby("step")["group"].unique().map(sorted).map(tuple).unique().tolist() == [(0, 1, 2)]
    assert frame.groupby(["step", "group"])["sample"].apply(list).map(tuple).unique().tolist() == [
        (0, 1, 2, 3)
    ]
    assert frame.groupby(["step", "group"])["item"].nunique().eq(1).all()
    truth = {example.item: example.noisy for example in examples()}
    assert frame["label"].tolist() == [truth[item] for item in frame["item"]]
    # every column from the text alone: special tokens are in it
    ended = frame["text"].str.endswith("<|im_end|>")
    assert (frame["truncated"] == ~ended).all()
    assert ended.any()
    answer = frame["text"].str.removesuffix("<|im_end|>")
    right = ended & (answer.str.strip() == frame["label"])
    assert (frame["reward"] == right.astype(float)).all()
    assert 0 < frame["reward"].mean() < 1
    counted = frame["text"].map(
        lambda text: len(loaded.tokenizer(text, add_special_tokens=False)["input_ids"])
    )
    assert (frame["length"] == counted).mean() > 0.8  # a sampled text may have a shorter spelling
    assert frame["length"].between(1, 3).all()
    assert set(frame["cap"]) == {3}
    assert set(frame["run"]) == {"one"}
    for _, group in frame.groupby("step"):
        expected = naive_grpo.advantages(group["reward"].tolist(), 4, "none")
        assert group["advantage"].tolist() == pytest.approx(expected, abs=1e-6)
    curve = run.curve()
    assert curve["step"].tolist() == [1, 2, 3]
    by_step = frame.groupby("step")
    assert curve["reward"].tolist() == pytest.approx(by_step["reward"].mean().tolist())
    assert curve["length"].tolist() == pytest.approx(by_step["length"].mean().tolist())
    assert curve["truncated"].tolist() == pytest.approx(by_step["truncated"].mean().tolist())
    assert curve["kept"].tolist() == by_step["advantage"].apply(lambda a: int((a != 0).sum())).tolist()
    mixed = frame.groupby(["step", "group"])["reward"].nunique().eq(2).groupby("step").mean()
    assert curve["informative"].tolist() == pytest.approx(mixed.tolist())
    assert (curve["seconds"] > curve["seconds_generation"]).all()
    assert {"loss", "learning_rate", "grad_norm", "tokens"} <= set(curve.columns)
    read = read_rollouts(run.path)
    assert (read.form, read.length_unit, read.cap) == ("ours", "tokens", 3.0)
    assert len(read.frame) == 36
    assert (run.adapter / "adapter_config.json").is_file()
    assert max(float(w.abs().max()) for name, w in weights(run).items() if "lora_B" in name) > 1e-4


def test_it_learns_the_label_that_pays(folder: Path, tmp_path: Path) -> None:
    settings = replace(SETTINGS, steps=12, prompts=4, group=8, learning_rate=1e-2, save_every=99)
    run, _ = train(folder, tmp_path / "run", settings, examples=examples(label="1"))
    reward = run.curve()["reward"].to_numpy()
    assert reward[0] < 0.6
    assert reward[-3:].mean() > 0.85


@pytest.mark.parametrize("mode", ["zero", "mask", "exclude"])
def test_cut_completions_as_chosen(folder: Path, tmp_path: Path, mode: Any) -> None:
    settings = replace(SETTINGS, steps=2, truncated=mode, think_cap=8, scale_rewards="group")
    run, _ = train(folder, tmp_path / "run", settings, think=True, examples=examples(label="1"))
    frame = pd.read_parquet(run.rollouts)
    cut = frame["truncated"]
    assert cut.any()
    assert not cut.all()
    assert (frame["length"][cut] == 8).all()
    assert (frame["reason"][cut] == "truncated").all()
    assert frame["reward"][cut].isna().all() if mode == "exclude" else frame["reward"][cut].eq(0).all()
    for _, group in frame.groupby("step"):
        rewards = [None if np.isnan(r) else r for r in group["reward"]]
        expected = naive_grpo.advantages(rewards, 4, "group")
        assert group["advantage"].tolist() == pytest.approx(expected, abs=1e-5)
    kept = (frame["advantage"] != 0) & ~(cut & (mode != "zero"))
    assert run.curve()["kept"].tolist() == kept.groupby(frame["step"]).sum().tolist()
    assert run.curve()["reward"].tolist() == pytest.approx(
        frame.groupby("step")["reward"].mean().tolist(), nan_ok=True
    )


def test_a_thought_counts_once_it_is_closed(folder: Path, tmp_path: Path) -> None:
    quoting = "the </think> box <think> near"
    run, _ = train(folder, tmp_path / "run", think=True, examples=examples(3, label="1", text=quoting))
    frame = pd.read_parquet(run.rollouts)
    once = frame["text"].str.count("</think>").eq(1)
    assert frame["closed"].any()
    assert (once | ~frame["closed"]).all()
    assert (frame["closed"] | ~frame["reward"].eq(1)).all()
    tail = frame["text"].str.rpartition("</think>")[2].str.removesuffix("<|im_end|>").str.strip()
    assert (frame["reward"] == (frame["closed"] & ~frame["truncated"] & (tail == "1"))).all()
    assert 0 < frame["reward"].mean() < 1


def test_a_template_that_opens_the_thought(tmp_path: Path) -> None:
    opened = pieces.answering(tmp_path / "model", TASK, template=tiny_model.PREFILLED)
    run, loaded = train(opened, tmp_path / "run", think=True, examples=examples(label="1"))
    assert loaded.tags.prefilled
    frame = pd.read_parquet(run.rollouts)
    won = frame[frame["reward"] == 1]
    assert len(won)
    assert not won["text"].str.contains("<think>").any()
    assert won["closed"].all()


class CutShortError(Exception):
    """The run is cut short here."""


@pytest.mark.parametrize(
    ("passes", "stop", "kept"),
    [
        (1, 4, 2),
        (3, 6, 4),
        (1, -3, 3),
    ],  # a checkpoint comes after the log of its step; Ctrl-C (< 0) saves first
)
def test_a_run_cut_short_ends_as_if_it_had_not_been(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passes: int, stop: int, kept: int
) -> None:
    # five examples and three prompts a step: the second round of the data begins within step 2
    settings = replace(SETTINGS, steps=7, accumulation=passes, save_every=2)
    whole, _ = train(folder, tmp_path / "whole", settings, examples=examples(5))

    def log(self: RunFolder, *, step: int, **values: Any) -> None:
        logged(self, step=step, **values)
        if step == stop:
            raise CutShortError
        if step == -stop - 1:  # within step -stop, which is finished
            os.kill(os.getpid(), signal.SIGINT)

    logged = RunFolder.log
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "log", log)
        with pytest.raises(CutShortError if stop > 0 else KeyboardInterrupt):
            train(folder, tmp_path / "cut", settings, examples=examples(5))
    run = RunFolder(tmp_path / "cut")
    assert checkpoint_step(last_checkpoint(run.checkpoints)) == kept
    (run.checkpoints / "checkpoint-999").mkdir()  # one that was cut short itself
    (run.checkpoints / "checkpoint-999" / "trainer_state.json").write_text('{"global_')
    torch.manual_seed(12345)
    train(folder, tmp_path / "cut", settings, examples=examples(5))
    one, other = weights(whole), weights(run)
    assert max(float(w.abs().max()) for name, w in one.items() if "lora_B" in name) > 1e-3
    assert all(torch.equal(one[name], other[name]) for name in one)
    frames = [pd.read_parquet(r.rollouts).drop(columns="run") for r in (whole, run)]
    pd.testing.assert_frame_equal(*frames)
    assert run.curve()["step"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    slow = ["seconds", "seconds_generation"]
    pd.testing.assert_frame_equal(run.curve().drop(columns=slow), whole.curve().drop(columns=slow))


def test_seeds_and_data_fix_a_run(folder: Path, tmp_path: Path) -> None:
    runs = [train(folder, tmp_path / name)[0] for name in "ab"]
    torch.manual_seed(99)
    one, other = (weights(run) for run in runs)
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_prompts_come_in_whole_rounds() -> None:
    order = prompt_order(5, 12, seed=1)
    assert sorted(order[:5]) == sorted(order[5:10]) == [0, 1, 2, 3, 4]
    assert len(order) == 12
    assert order != prompt_order(5, 12, seed=2)
    assert order[:7] == prompt_order(5, 7, seed=1)


def test_the_settings_reach_trl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = ModelSettings(max_prompt=100)
    settings = replace(SETTINGS, vllm=True, accumulation=2, group=8, truncated="mask", scale_rewards="batch")
    config = grpo_config(settings, model=model, cap=40, seed=5, out=tmp_path, device="cpu")
    assert (config.use_vllm, config.vllm_mode, config.vllm_max_model_length) == (True, "colocate", 140)
    assert (config.per_device_train_batch_size, config.gradient_accumulation_steps) == (12, 2)
    assert (config.steps_per_generation, config.num_iterations, config.beta) == (2, 1, 0.0)
    assert (config.mask_truncated_completions, config.scale_rewards, config.seed) == (True, "batch", 5)
    assert (config.bf16, config.activation_checkpointing, config.logging_steps) == (False, False, 1)
    assert not grpo_config(SETTINGS, model=model, cap=4, seed=5, out=tmp_path, device="cpu").use_vllm
    monkeypatch.setenv("WORLD_SIZE", "5")
    with pytest.raises(ArgumentError, match=r"12 completions a step .* among 5"):
        grpo_config(SETTINGS, model=model, cap=4, seed=5, out=tmp_path, device="cpu")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"loss_type": "cispo"}, "grpo.loss_type 'cispo'"),
        ({"loss_type": "x", "skip_uniform": False}, "none of TRL's"),
    ],
)
def test_settings_that_do_not_go_together(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    with pytest.raises(ArgumentError, match=told):
        grpo_config(
            replace(SETTINGS, **change), model=ModelSettings(), cap=4, seed=5, out=tmp_path, device="cpu"
        )


def test_no_examples(folder: Path, tmp_path: Path) -> None:
    loaded = loaded_with_lora(folder)
    with pytest.raises(ArgumentError, match="one example at least"):
        train_grpo(loaded, [], TASK, settings=SETTINGS, run=RunFolder(tmp_path), seed=1, think=False)


@pytest.mark.parametrize(
    ("change", "told"), [({"vllm": True}, "pip install vllm"), ({"accumulation": 5}, "12 completions a step")]
)
def test_what_cannot_be_done_is_said_before_anything_is_sampled(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], told: str
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    run = RunFolder(tmp_path / "run")
    with pytest.raises(ArgumentError, match=told):
        train_grpo(
            loaded_with_lora(folder), examples(), TASK, settings=replace(SETTINGS, **change), run=run, seed=1,
            think=False,
        )  # fmt: skip
    assert not run.rollouts.exists()


def test_a_model_without_an_adapter(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="trains an adapter"):
        train_grpo(
            load_model(pieces.model_settings(folder)), examples(), TASK, settings=SETTINGS,
            run=RunFolder(tmp_path), seed=1, think=False,
        )  # fmt: skip


def test_a_run_killed_before_it_saved_its_adapter(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(SETTINGS, steps=2)
    whole, _ = train(folder, tmp_path / "whole", settings)
    with monkeypatch.context() as patch:
        patch.setattr("train.grpo.save_adapter", _fail)
        with pytest.raises(MemoryError):
            train(folder, tmp_path / "cut", settings)
    run, _ = train(folder, tmp_path / "cut", settings)
    one, other = weights(whole), weights(run)
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert run.curve()["step"].tolist() == [1, 2]
    assert len(pd.read_parquet(run.rollouts)) == 24


def _fail(*_: Any) -> None:
    raise MemoryError


def test_a_reward_is_told_what_was_cut(folder: Path, tmp_path: Path) -> None:
    loaded = load_model(pieces.model_settings(folder))
    ids = loaded.tokenizer("1", add_special_tokens=False)["input_ids"]
    for mode, cut in (("zero", 0.0), ("mask", 0.0), ("exclude", None)):
        reward = RolloutReward(
            scorer_for(loaded, ["0", "1"], think=False), decode=loaded.tokenizer.decode, ends=loaded.ends,
            settings=replace(SETTINGS, truncated=mode), cap=2, folder=tmp_path, run=mode,
        )  # fmt: skip
        told = reward(completion_ids=[[*ids, loaded.end], [*ids, *ids], ids], item=["a"] * 3, label=["1"] * 3)
        assert told == [1.0, cut, cut]
