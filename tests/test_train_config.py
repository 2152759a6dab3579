"""The settings of a ladder and the rows of its task."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from audit.errors import ArgumentError, AuditError, ColumnError, InputError
from tests.tiny_model import task_files
from train.config import RUNGS, load_config
from train.task import Task, item_key, load_examples

TASK = '[task]\ndata = "data.csv"\ninputs = ["text"]\nlabel = "label"\nlabels = ["0", "1"]\n'


def config(folder: Path, text: str) -> Path:
    file = folder / "ladder.toml"
    file.write_text(text, "utf-8")
    return file


def test_the_defaults_are_a_whole_ladder(tmp_path: Path) -> None:
    read = load_config(config(tmp_path, TASK))
    assert read.run.rungs == RUNGS
    assert read.model.lora_r == 16
    assert read.grpo.truncated == "zero"
    assert read.task.data == str(tmp_path / "data.csv")  # paths start where the file lies
    assert read.run.out == str(tmp_path / "runs")
    assert read.task.positive == "1"
    json.dumps(read.to_dict())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"\[task\]"),
        ("[task]\ndata = 3", "lacks 'inputs'"),
        (TASK + "[sft]\nepoch = 2", "did you mean 'epochs'"),
        (TASK + "[stf]\nepochs = 2", "did you mean 'sft'"),
        (TASK + '[sft]\nbatch = "8"', "sft.batch is '8': it must be of type int"),
        (TASK + "[sft]\nbatch = true", "type int"),
        (TASK + "[sft]\nbatch = 0", "above 0"),
        (TASK + "[grpo]\ngroup = 1", "2 or more"),
        (TASK + '[grpo]\ntruncated = "drop"', "'zero', 'mask', 'exclude'"),
        (TASK + '[model]\nthink = ["</think>"]', "two tags"),
        (TASK + '[run]\nrungs = ["sft"]', "is no rung"),
        (TASK + "[run]\nseeds = []", "one seed"),
        (TASK + '[run]\nseeds = ["0"]', "type int"),
        (TASK + "[run]\nseeds = 0", "a list"),
        (TASK.replace('"0", "1"', '"0"'), "two or more different"),
        (TASK.replace('["text"]', "[]"), "names the columns"),
        (TASK + 'positive = "yes"', "none of task.labels"),
        ("[task", "is no TOML"),
        ("sft = 3\n" + TASK, "must be a table"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(AuditError, match=words):
        load_config(config(tmp_path, text))


def test_a_whole_number_serves_as_a_float(tmp_path: Path) -> None:
    read = load_config(config(tmp_path, TASK + "train_rows = 10\n[sft]\nepochs = 3"))
    assert read.sft.epochs == 3.0
    assert isinstance(read.sft.epochs, float)
    assert read.task.train_rows == 10


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml"):
        load_config(tmp_path / "none.toml")


def made(folder: Path, **more: object) -> Task:
    data, truth = task_files(folder)
    given = {
        "inputs": ("text",),
        "label": "label",
        "labels": ("0", "1"),
        "split": "split",
        "clean": str(truth),
    }
    return Task(**{"data": str(data), "clean_label": "truth", **given, **more})  # type: ignore[arg-type]


def test_the_rows_of_each_split_and_their_clean_labels(tmp_path: Path) -> None:
    found = load_examples(made(tmp_path), seed=0)
    assert {split: len({e.item for e in rows}) for split, rows in found.items()} == {
        "train": 144, "validation": 48, "test": 48,
    }  # fmt: skip
    assert len(found["test"]) == 48  # repeats of evaluated items are dropped, those of the training rows stay
    assert len(found["train"]) > 144
    everything = [e for rows in found.values() for e in rows]
    assert all(e.clean == str(int("red" in e.values[0])) for e in everything)
    wrong = sum(e.noisy != e.clean for e in everything) / len(everything)
    assert 0.1 < wrong < 0.3
    assert found == load_examples(made(tmp_path), seed=0)
    assert found["train"] != load_examples(made(tmp_path), seed=1)["train"]


def test_a_sample_keeps_the_shares_of_the_classes(tmp_path: Path) -> None:
    task = made(tmp_path)
    whole = Counter(e.clean for e in load_examples(task, seed=0)["train"])
    part = Counter(e.clean for e in load_examples(made(tmp_path, train_rows=40), seed=3)["train"])
    assert sum(part.values()) == 40
    assert abs(part["1"] - 40 * whole["1"] / sum(whole.values())) <= 1


def test_without_splits_no_item_stands_in_two(tmp_path: Path) -> None:
    found = load_examples(made(tmp_path, split=None), seed=0)
    items = [{e.item for e in rows} for rows in found.values()]
    assert not items[0] & items[1] and not items[0] & items[2] and not items[1] & items[2]  # noqa: PT018
    assert sum(map(len, items)) == 240


def test_without_a_clean_file_the_labels_are_their_own_key(tmp_path: Path) -> None:
    rows = load_examples(made(tmp_path, clean=None), seed=0)["train"]
    assert all(e.noisy == e.clean for e in rows)


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        ({"labels": ("0", "2")}, InputError, "label '1' is none of"),
        ({"label": "lable"}, ColumnError, "lable"),
        ({"split": "text"}, InputError, "no row of split 'train'"),
        ({"clean_label": None}, ArgumentError, "clean_label"),
        ({"names": {"test": "held out"}}, InputError, "no row of split 'test'"),
    ],
)
def test_rows_that_cannot_be_used(
    tmp_path: Path, more: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        load_examples(made(tmp_path, **more), seed=0)


def test_two_clean_labels_of_one_item_are_refused(tmp_path: Path) -> None:
    task = made(tmp_path)
    truth = tmp_path / "truth.csv"
    lines = truth.read_text("utf-8").splitlines()
    text, _, label = lines[1].rpartition(",")
    truth.write_text("\n".join([*lines, f"{text},{1 - int(label)}"]), "utf-8")
    with pytest.raises(InputError, match="two clean labels"):
        load_examples(task, seed=0)


def test_a_clean_file_of_other_items_is_refused(tmp_path: Path) -> None:
    task = made(tmp_path)
    (tmp_path / "truth.csv").write_text("text,truth\nsomething else,1\n", "utf-8")
    with pytest.raises(InputError, match="none of its items"):
        load_examples(task, seed=0)


def test_the_key_of_an_item_tells_its_columns_apart() -> None:
    assert item_key(["one, two"]) == "one, two"
    assert item_key(["a", "b,c"]) != item_key(["a,b", "c"])
    assert json.loads(item_key(["ε", '"q"'])) == ["ε", '"q"']


def test_the_prompt_names_the_inputs(tmp_path: Path) -> None:
    task = Task(
        data="x", inputs=("passage", "entity"), label="l", labels=("0", "1"), instruction="Is it at risk?"
    )
    system, user = task.messages(["A fire.", "Orvale"])
    assert user == {"role": "user", "content": "Is it at risk?\nPassage: A fire.\nEntity: Orvale"}
    assert system["content"] != task.messages(["A fire.", "Orvale"], think=True)[0]["content"]
