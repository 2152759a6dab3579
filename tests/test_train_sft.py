"""SFT: which tokens carry loss, that it learns, and that a run cut short ends where it would have ended."""

import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the extra train is not installed")
pytest.importorskip("trl", reason="the extra train is not installed")

from safetensors.torch import load_file  # noqa: E402

from audit.errors import ArgumentError, InputError  # noqa: E402
from tests import tiny_model  # noqa: E402
from train.checkpoints import interrupts, last_checkpoint  # noqa: E402
from train.config import ModelSettings, SftSettings  # noqa: E402
from train.evaluate import evaluate  # noqa: E402
from train.models import LoadedModel, add_lora, load_adapter, load_model, quiet  # noqa: E402
from train.run_folder import RunFolder  # noqa: E402
from train.sft import SftRow, encode_rows, sft_config, train_sft  # noqa: E402
from train.task import Task, load_examples  # noqa: E402

ROOT = Path(__file__).parents[1]
USER = [{"role": "user", "content": "the red box"}]
SETTINGS = SftSettings(learning_rate=1e-2, max_steps=12, batch=8, save_every=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with quiet():
        return tiny_model.save(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    data, truth = tiny_model.task_files(tmp_path_factory.mktemp("data"), flips=0.0)
    return Task(
        data=str(data), inputs=("text",), label="label", labels=("0", "1"), split="split",
        clean=str(truth), clean_label="truth",
    )  # fmt: skip


def load(folder: Path) -> LoadedModel:
    settings = ModelSettings(name=str(folder), dtype="float32", device="cpu")
    return add_lora(load_model(settings, seed=0), settings, seed=0)


def rows_of(task: Task) -> list[SftRow]:
    return [
        SftRow(messages=task.messages(one.values), completion=one.clean)
        for one in load_examples(task, seed=0)["train"]
    ]


def start(path: Path) -> RunFolder:
    return RunFolder(path).start(name="a", rung="sft-clean", seed=0, config={})


def weights(run: RunFolder) -> dict[str, Any]:
    return dict(load_file(run.adapter / "adapter_model.safetensors"))


def largest_gap(one: dict[str, Any], other: dict[str, Any]) -> float:
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).abs().max()) for name in one)


# --- which tokens carry loss


@pytest.mark.parametrize("prefilled", [False, True])
@pytest.mark.parametrize("completion", ["1", "<think>\nit is red\n</think>\n1"])
def test_the_loss_is_on_the_completion_and_its_end(tmp_path: Path, prefilled: bool, completion: str) -> None:
    template = tiny_model.PREFILLED if prefilled else tiny_model.TEMPLATE
    with quiet():
        loaded = load(tiny_model.save(tmp_path, template=template))
    row = encode_rows(loaded, [SftRow(messages=USER, completion=completion)])[0]
    words = loaded.tokenizer
    learned = [id_ for id_ in row["labels"] if id_ != -100]
    expected = completion.removeprefix("<think>\n") if prefilled else completion
    assert words.decode(learned) == f"{expected}<|im_end|>"
    assert learned == row["input_ids"][-len(learned) :]
    assert learned.count(loaded.end) == 1
    whole = words.decode(row["input_ids"])
    head = "<|im_start|>user\nthe red box<|im_end|>\n<|im_start|>assistant\n"
    assert whole == head + ("<think>\n" if prefilled else "") + f"{expected}<|im_end|>"


def test_what_the_trainer_reads_has_the_same_labels(folder: Path, tmp_path: Path) -> None:
    """Through TRL's own preparation and collation: nothing added, nothing cut, no padding learned."""
    from datasets import Dataset
    from trl import SFTTrainer

    loaded = load(folder)
    rows = [
        SftRow(messages=USER, completion="1"),
        SftRow(messages=USER, completion="<think>\na\n</think>\n0"),
    ]
    encoded = encode_rows(loaded, rows)
    config = sft_config(SETTINGS, dtype="float32", seed=0, out=tmp_path, device="cpu")
    with quiet():
        trainer = SFTTrainer(
            model=loaded.model,
            args=config,
            train_dataset=Dataset.from_list(encoded),
            processing_class=loaded.tokenizer,
        )
        batch = next(iter(trainer.get_train_dataloader()))
    seen = {
        tuple(ids[mask.bool()].tolist()): tuple(labels[labels != -100].tolist())
        for ids, mask, labels in zip(
            batch["input_ids"], batch["attention_mask"], batch["labels"], strict=True
        )
    }
    assert seen == {
        tuple(one["input_ids"]): tuple(id_ for id_ in one["labels"] if id_ != -100) for one in encoded
    }
    padded = batch["attention_mask"] == 0
    assert padded.any()
    assert (batch["labels"][padded] == -100).all()
    assert (batch["labels"] == loaded.end).sum(dim=1).tolist() == [1, 1], "the end is learned once a row"
    assert not (batch["labels"] == loaded.tokenizer.pad_token_id).any()
    assert not trainer.args.bf16
    assert not trainer.args.activation_checkpointing


def test_the_gradient_is_that_of_the_stock_trainer(folder: Path, task: Task, tmp_path: Path) -> None:
    from datasets import Dataset
    from trl import SFTTrainer

    from train.sft_trainer import LeanSFTTrainer

    thought = SftRow(messages=USER, completion="<think>\na big cat ran\n</think>\n0")
    found: list[tuple[float, dict[str, Any], dict[str, list[float]]]] = []
    for kind in (SFTTrainer, LeanSFTTrainer):
        loaded = load(folder)
        config = sft_config(SETTINGS, dtype="float32", seed=0, out=tmp_path, device="cpu")
        with quiet():
            trainer = kind(
                model=loaded.model,
                args=config,
                train_dataset=Dataset.from_list(encode_rows(loaded, [*rows_of(task)[:7], thought])),
                processing_class=loaded.tokenizer,
            )
            batch = next(iter(trainer.get_train_dataloader()))
            for weight in loaded.model.parameters():
                if weight.requires_grad:  # an adapter that is not 0, or half the gradients were
                    torch.manual_seed(weight.numel())
                    weight.data.normal_(std=0.1)
            loaded.model.train()
            loss = trainer.compute_loss(loaded.model, batch, num_items_in_batch=torch.tensor(20))
            loss.backward()
        gradients = {
            name: weight.grad for name, weight in loaded.model.named_parameters() if weight.requires_grad
        }
        found.append((float(loss.detach()), gradients, dict(trainer._metrics["train"])))
    (loss, gradients, figures), (lean_loss, lean_gradients, lean_figures) = found
    assert lean_loss == pytest.approx(loss, rel=1e-6)
    assert (
        largest_gap(gradients, lean_gradients) < 1e-6 < max(float(g.abs().max()) for g in gradients.values())
    )
    assert lean_figures.keys() == figures.keys()
    for name, values in figures.items():
        assert lean_figures[name] == pytest.approx(values, rel=1e-5), name


def test_long_rows_are_refused_not_cut(folder: Path) -> None:
    loaded = load(folder)
    with pytest.raises(InputError, match=r"1 of 2 rows have more tokens than .* reads, 512"):
        encode_rows(
            loaded,
            [SftRow(messages=USER, completion="1"), SftRow(messages=USER, completion="cat dog " * 400)],
        )
    short = dataclasses.replace(loaded, settings=dataclasses.replace(loaded.settings, max_prompt=5))
    with pytest.raises(InputError, match=r"2 of 2 prompts have more than model\.max_prompt = 5"):
        encode_rows(short, [SftRow(messages=USER, completion="1")] * 2)


def test_what_cannot_be_trained_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load_model(ModelSettings(name=str(folder), dtype="float32", device="cpu"))
    run = start(tmp_path)
    row = SftRow(messages=USER, completion="1")
    with pytest.raises(ArgumentError, match="give the model one with add_lora"):
        train_sft(loaded, [row], settings=SETTINGS, run=run, seed=0)
    with pytest.raises(ArgumentError, match="one row at least"):
        train_sft(load(folder), [], settings=SETTINGS, run=run, seed=0)
    with pytest.raises(ArgumentError, match="TRL refuses"):
        sft_config(
            dataclasses.replace(SETTINGS, schedule="bend"),
            dtype="float32",
            seed=0,
            out=tmp_path,
            device="cpu",
        )
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(ArgumentError, match="cannot be shared among 3 processes"):
        sft_config(SETTINGS, dtype="float32", seed=0, out=tmp_path, device="cpu")
    run.close()


# --- training


@pytest.fixture(scope="module")
def undisturbed(folder: Path, task: Task, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    run = start(tmp_path_factory.mktemp("runs") / "whole")
    train_sft(load(folder), rows_of(task), settings=SETTINGS, run=run, seed=3)
    run.close()
    return run


def test_it_learns_the_task_and_says_how(folder: Path, task: Task, tmp_path: Path) -> None:
    run, examples = start(tmp_path), load_examples(task, seed=0)["test"]
    before = evaluate(load(folder), examples, task)[1]
    settings = dataclasses.replace(SETTINGS, max_steps=40)
    loaded = train_sft(load(folder), rows_of(task), settings=settings, run=run, seed=0)
    frame, after = evaluate(loaded, examples, task)
    assert before["auc"] < 0.9 < after["auc"]
    assert after["label_mass"] > 0.2 > before["label_mass"]
    curve = run.curve()
    assert curve["step"].tolist() == list(range(1, 41))
    assert curve["loss"].iloc[-5:].mean() < curve["loss"].iloc[:5].mean() / 2
    assert (curve[["learning_rate", "seconds", "tokens"]] >= 0).all(axis=None)
    again = load_adapter(load(folder), run.adapter)
    assert evaluate(again, examples, task)[0]["score"].tolist() == pytest.approx(
        frame["score"].tolist(), abs=1e-6
    )
    assert again.digest == loaded.digest
    assert again.digest != load(folder).digest


def test_a_seed_gives_one_adapter(folder: Path, task: Task, tmp_path: Path, undisturbed: RunFolder) -> None:
    same, other = start(tmp_path / "same"), start(tmp_path / "other")
    train_sft(load(folder), rows_of(task), settings=SETTINGS, run=same, seed=3)
    train_sft(load(folder), rows_of(task), settings=SETTINGS, run=other, seed=4)
    assert largest_gap(weights(undisturbed), weights(same)) == 0
    assert largest_gap(weights(undisturbed), weights(other)) > 1e-4


def test_accumulation_changes_nothing_but_memory(
    folder: Path, task: Task, tmp_path: Path, undisturbed: RunFolder
) -> None:
    run = start(tmp_path)
    settings = dataclasses.replace(SETTINGS, batch=2, accumulation=4)
    train_sft(load(folder), rows_of(task), settings=settings, run=run, seed=3)
    assert largest_gap(weights(undisturbed), weights(run)) < 1e-4
    assert run.curve()["loss"].tolist() == pytest.approx(undisturbed.curve()["loss"].tolist(), rel=1e-4)


def test_half_precision_is_of_the_frozen_weights_alone(folder: Path, task: Task, tmp_path: Path) -> None:
    settings = ModelSettings(name=str(folder), dtype="bfloat16", device="cpu")
    loaded = add_lora(load_model(settings, seed=0), settings, seed=0)
    kinds = {weight.requires_grad: weight.dtype for weight in loaded.model.parameters()}
    assert kinds == {True: torch.float32, False: torch.bfloat16}
    run = start(tmp_path)
    train_sft(loaded, rows_of(task), settings=SETTINGS, run=run, seed=3)
    assert run.curve()["loss"].iloc[-1] < 0.7 * run.curve()["loss"].iloc[0]
    assert {one.dtype for one in weights(run).values()} == {torch.float32}


SCRIPT = """
import os, signal, sys
from pathlib import Path
from tests.test_train_sft import SETTINGS, load, rows_of, start
from train.evaluate import evaluate
from train.sft import train_sft
from train.task import Task, load_examples

model, data, truth, out, what = sys.argv[1:]
task = Task(data=data, inputs=("text",), label="label", labels=("0", "1"), split="split", clean=truth,
            clean_label="truth")
run = start(Path(out))
log = run.log
def stop(*, step, **figures):
    log(step=step, **figures)
    if what != "whole" and step == 7:
        os.kill(os.getpid(), getattr(signal, what))
run.log = stop
loaded = train_sft(load(Path(model)), rows_of(task), settings=SETTINGS, run=run, seed=3)
run.scores("test", evaluate(loaded, load_examples(task, seed=0)["test"][:7], task, batch=2, share=True)[0])
"""


def script(
    folder: Path, task: Task, out: Path, what: str, *launcher: str
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    code = out.with_suffix(".py")
    code.write_text(SCRIPT, "utf-8")
    arguments = [str(folder), task.data, str(task.clean), str(out), what]
    return subprocess.run(
        [*(launcher or (sys.executable,)), str(code), *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def check_it_goes_on(folder: Path, task: Task, out: Path, undisturbed: RunFolder) -> None:
    assert not (out / "adapter").exists()
    (out / "checkpoints" / "checkpoint-9").mkdir()  # as a kill leaves it while it is written
    run = start(out)
    train_sft(load(folder), rows_of(task), settings=SETTINGS, run=run, seed=3)
    assert largest_gap(weights(undisturbed), weights(run)) < 1e-6
    assert run.curve()["step"].tolist() == list(range(1, 13))
    assert run.curve()["loss"].tolist() == pytest.approx(undisturbed.curve()["loss"].tolist(), abs=1e-6)
    run.close()


def test_a_killed_run_ends_where_it_would_have(
    folder: Path, task: Task, tmp_path: Path, undisturbed: RunFolder
) -> None:
    done = script(folder, task, tmp_path / "run", "SIGKILL")
    assert done.returncode == -signal.SIGKILL, done.stderr
    left = last_checkpoint(tmp_path / "run" / "checkpoints")
    assert left is not None
    assert left.name == "checkpoint-5", "the last one that was due"
    check_it_goes_on(folder, task, tmp_path / "run", undisturbed)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_saves_and_ends_where_it_would_have(
    folder: Path,
    task: Task,
    tmp_path: Path,
    undisturbed: RunFolder,
    number: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = start(tmp_path)
    log = run.log

    def stop(*, step: int, **figures: float) -> None:
        log(step=step, **figures)
        if step == 7:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(run, "log", stop)
    with pytest.raises(KeyboardInterrupt):
        train_sft(load(folder), rows_of(task), settings=SETTINGS, run=run, seed=3)
    run.close()
    left = last_checkpoint(tmp_path / "checkpoints")
    assert left is not None
    assert left.name == "checkpoint-8", "the step at hand is finished and saved"
    check_it_goes_on(folder, task, tmp_path, undisturbed)


def test_a_run_killed_after_its_last_step_only_saves(
    folder: Path, task: Task, tmp_path: Path, undisturbed: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    import train.sft as module

    def killed(model: Any, folder: Path) -> None:
        raise SystemExit(9)

    run = start(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(module, "save_adapter", killed)
        with pytest.raises(SystemExit):
            train_sft(load(folder), rows_of(task), settings=SETTINGS, run=run, seed=3)
    train_sft(load(folder), rows_of(task), settings=SETTINGS, run=run, seed=3)
    assert largest_gap(weights(undisturbed), weights(run)) < 1e-6
    assert len(run.curve()) == 12


@pytest.mark.slow
def test_two_processes_give_what_one_gives(
    folder: Path, task: Task, tmp_path: Path, undisturbed: RunFolder
) -> None:
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2")
    done = script(folder, task, tmp_path / "two", "whole", *launcher)
    assert done.returncode == 0, done.stderr[-3000:]
    two = RunFolder(tmp_path / "two")
    assert largest_gap(weights(undisturbed), weights(two)) < 1e-4
    assert two.curve()["step"].tolist() == list(range(1, 13)), "one process keeps the curve"
    assert two.curve()["loss"].tolist() == pytest.approx(undisturbed.curve()["loss"].tolist(), rel=1e-3)
    assert two.curve()["tokens"].tolist() == undisturbed.curve()["tokens"].tolist()
    one = load_adapter(load(folder), undisturbed.adapter)
    frame, _ = evaluate(one, load_examples(task, seed=0)["test"][:7], task, batch=2)
    both = two.read_scores("test")
    assert both["item"].tolist() == frame["item"].tolist(), "each row once, in order"
    assert both["score"].tolist() == pytest.approx(frame["score"].tolist(), abs=1e-3)


def test_a_later_interrupt_is_not_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    with interrupts(lambda: asked.append(1)):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)  # as a launcher passes it on
        assert asked == [1]
        monkeypatch.setattr("train.checkpoints._ONE_SIGNAL", 0.0)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
