"""Rollouts are read from what runs really write: our Parquet, TRL's completions, verl's JSONL."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.errors import ArgumentError, ColumnError, InputError
from tests.made_rollouts import Plan, make_rollouts
from train.rollouts import COLUMNS, read_rollouts

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
MAYBE = st.none() | st.sampled_from([0.0, 1.0, -0.5])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "step": st.integers(0, 3),
            "group": st.integers(0, 2),
            "item": TEXTS,
            "label": st.none() | TEXTS,
            "text": st.none() | TEXTS,
            "length": st.none() | st.integers(1, 99),
            "truncated": st.none() | st.booleans(),
            "closed": st.none() | st.booleans(),
            "answer": st.none() | TEXTS,
            "reward": MAYBE,
            "advantage": MAYBE,
        }
    ),
    min_size=1,
    max_size=12,
)
TYPES = {
    "step": "int32", "group": "int32", "item": "string", "label": "string", "text": "string", "length": "int32",
    "truncated": "bool", "closed": "bool", "answer": "string", "reward": "float64", "advantage": "float64",
    "sample": "int32",
}  # fmt: skip


def write_ours(path: Path, rows: list[dict[str, Any]]) -> Path:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    schema = pa.schema([(name, pa.type_for_alias(TYPES[name])) for name in rows[0]])
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
    return path


@settings(max_examples=40)
@given(ROWS)
def test_ours_comes_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    rows = [{**row, "sample": k} for k, row in enumerate(rows)]
    frame = read_rollouts(write_ours(tmp_path_factory.mktemp("r") / "a.parquet", rows), close_tag="").frame
    assert tuple(frame.columns) == COLUMNS
    back = sorted(rows, key=lambda row: (row["step"], row["group"], row["sample"]))
    for name in ("step", "truncated", "closed", "reward", "advantage"):
        wanted = [np.nan if row[name] is None else float(row[name]) for row in back]
        np.testing.assert_array_equal(frame[name].to_numpy(float), wanted)
    for name in ("item", "label", "text", "answer"):
        assert [None if cell is None else str(cell) for cell in frame[name]] == [row[name] for row in back]
    same = pd.DataFrame({"a": [(r["step"], r["group"]) for r in back], "b": frame["group"].to_numpy()})
    assert (same.groupby("a")["b"].nunique() == 1).all()
    assert (same.groupby("b")["a"].nunique() == 1).all()


def test_a_run_folder_is_its_rollouts(tmp_path: Path) -> None:
    frame, _ = make_rollouts(Plan(steps=3, groups=4, size=4, items=12), seed=1)
    (tmp_path / "rollouts").mkdir()
    frame = frame.assign(cap=512, run="a")
    for step, part in frame.groupby("step"):
        part.to_parquet(tmp_path / "rollouts" / f"step-{step:06d}.parquet")
    pd.DataFrame({"item": ["x"], "score": [0.5]}).to_parquet(tmp_path / "scores-test.parquet")
    read = read_rollouts(tmp_path)
    assert (read.form, len(read.frame), read.length_unit, read.cap) == ("ours", 48, "tokens", 512)
    assert read.frame["group"].nunique() == 12
    assert read.notes == ()


def test_any_data_frame_and_nothing_else() -> None:
    polars = pytest.importorskip("polars")
    frame, _ = make_rollouts(Plan(steps=1, groups=2, planted=("cut left out",)), seed=1)
    pd.testing.assert_frame_equal(read_rollouts(polars.from_pandas(frame)).frame, read_rollouts(frame).frame)
    with pytest.raises(InputError, match="not a int"):
        read_rollouts(3)


def test_the_cap_is_what_cut_rollouts_reached() -> None:
    frame, _ = make_rollouts(Plan(steps=2, planted=("cap",)), seed=1)
    assert read_rollouts(frame).cap == 180


# --- TRL -----------------------------------------------------------------------------------------------------


def trl_completions(folder: Path, *, step: int, chat: bool, extra: dict[str, list[Any]]) -> Path:
    """What TRL's own GRPOTrainer.log writes for two groups of three completions."""
    trl = pytest.importorskip("trl", reason="trl is not installed")
    import transformers

    def text(role: str, content: str) -> Any:
        return [{"role": role, "content": content}] if chat else content

    prompts = [text("user", name) for name in ("one", "two") for _ in range(3)]
    said = ["a</think>1", "b</think>0", "c", "d</think>1", "e</think></think>1", "f</think>1"]
    trainer = object.__new__(trl.GRPOTrainer)
    trainer.__dict__ |= {
        "model": SimpleNamespace(training=True),
        "_metrics": {"train": {}},
        "accelerator": SimpleNamespace(is_main_process=True),
        "log_completions": True,
        "log_multimodal": False,
        "log_unique_prompts": False,
        "num_completions_to_print": 0,
        "state": SimpleNamespace(global_step=step),
        "args": SimpleNamespace(report_to=[], output_dir=str(folder)),
        "_logs": {
            "images": [],
            "prompt": prompts,
            "completion": [text("assistant", one) for one in said],
            "rewards": {"accuracy": [1.0, 0.0, float("nan"), 1.0, 1.0, 1.0]},
            "advantages": [0.5, -0.5, 0.0, 0.0, 0.0, 0.0],
            "extra": extra,
        },
    }
    (folder / "completions").mkdir(exist_ok=True)
    with (
        mock.patch.object(transformers.Trainer, "log"),
        mock.patch("trl.trainer.grpo_trainer.print_prompt_completions_sample"),
    ):
        trl.GRPOTrainer.log(trainer, {})
    return folder / "completions" / f"completions_{step:05d}.parquet"


@pytest.mark.parametrize("chat", [False, True])
def test_what_trl_writes(tmp_path: Path, chat: bool) -> None:
    path = trl_completions(tmp_path, step=7, chat=chat, extra={"label": ["1"] * 6})
    raw = pd.read_parquet(path)
    assert list(raw.columns) == ["step", "prompt", "completion", "accuracy", "label", "advantage"]
    trl_completions(tmp_path, step=8, chat=chat, extra={"label": ["0"] * 6})
    read = read_rollouts(tmp_path)  # the run's output folder
    frame = read.frame
    assert read.form == "TRL"
    assert frame["group"].tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    assert frame["step"].tolist() == [7] * 6 + [8] * 6
    assert frame["item"].tolist()[:6] == ["one"] * 3 + ["two"] * 3
    assert frame["reward"].tolist()[:2] == [1.0, 0.0]
    assert frame["reward"].isna().sum() == 2
    assert sorted(frame["closed"].tolist()[:6]) == [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]
    assert read.length_unit == "characters"
    assert frame["truncated"].isna().all()
    assert read.cap is None
    assert any("characters" in note for note in read.notes)
    assert any("cut" in note for note in read.notes)
    assert any("answer" in note for note in read.notes)
    assert not any("labels" in note for note in read.notes)


def trl_frame(prompts: list[str], **more: Any) -> pd.DataFrame:
    rows = len(prompts)
    columns = {"step": 1, "prompt": prompts, "completion": ["x"] * rows, "advantage": [0.0] * rows}
    return pd.DataFrame({**columns, "accuracy": [0.0] * rows, **more})


def test_a_prompt_that_comes_twice_in_a_row_is_two_groups() -> None:
    frame = trl_frame(["a"] * 4 + ["b"] * 8 + ["c"] * 4 + ["a"] * 4)
    assert read_rollouts(frame).frame["group"].value_counts().tolist() == [4] * 5


def test_rewards_of_several_functions_are_named() -> None:
    frame = trl_frame(["a"] * 2, format=[0.5, 1.0])
    with pytest.raises(ColumnError, match=r"accuracy, format.*--reward"):
        read_rollouts(frame)
    assert read_rollouts(frame, reward=("accuracy", "format")).frame["reward"].tolist() == [0.5, 1.0]
    assert read_rollouts(frame, reward=("format",)).frame["reward"].tolist() == [0.5, 1.0]
    with pytest.raises(ColumnError, match="no column 'nothing'"):
        read_rollouts(frame, reward=("nothing",))


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    """A tokenizer that splits at white space."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_a_tokenizer_counts_and_a_cap_tells_what_was_cut(tokenizer: Path) -> None:
    frame = trl_frame(["a"] * 3, completion=["one two", "one two three four", "one"])
    read = read_rollouts(frame, tokenizer=tokenizer, cap=4)
    assert sorted(read.frame["length"]) == [1, 2, 4]
    assert (read.length_unit, read.cap) == ("tokens counted anew", 4)
    assert read.frame.loc[read.frame["truncated"] == 1, "length"].tolist() == [4.0]
    assert any("counts as cut" in note for note in read.notes)
    with pytest.raises(ArgumentError, match="no such tokenizer"):
        read_rollouts(frame, tokenizer=tokenizer / "other.json")
    (tokenizer / "bad.json").write_text("{}")
    with pytest.raises(InputError, match=r"is no tokenizer\.json"):
        read_rollouts(frame, tokenizer=tokenizer / "bad.json")


# --- verl ----------------------------------------------------------------------------------------------------


def verl_line(prompt: str, said: str, *, gts: Any, score: float, step: int, **more: Any) -> dict[str, Any]:
    """A line of what verl's trainer dumps for a completion: its own keys, then those of the reward function."""
    return {"input": prompt, "output": said, "gts": gts, "score": score, "step": step, **more}


def test_what_verl_writes(tmp_path: Path) -> None:
    # verl balances its batches, so the completions of a prompt do not stand together
    lines = [
        verl_line("user\né?\nassistant\n", "x</think>1", gts="1", score=1.0, step=10, acc=True, pred="1"),
        verl_line("user\ntwo\nassistant\n", "y</think>0", gts="1", score=0.0, step=10, acc=False, pred="0"),
        verl_line("user\né?\nassistant\n", "z", gts="1", score=0.0, step=10, acc=False, pred=None),
        verl_line("user\ntwo\nassistant\n", "w</think>1", gts="1", score=1.0, step=10, acc=True, pred="1"),
    ]
    for step in (9, 10):
        text = "".join(json.dumps({**line, "step": step}, ensure_ascii=False) + "\n" for line in lines)
        (tmp_path / f"{step}.jsonl").write_text(text, "utf-8")
    read = read_rollouts(tmp_path)
    assert read.form == "verl"
    assert read.frame["step"].tolist() == [9] * 4 + [10] * 4
    assert read.frame.groupby("group")["item"].nunique().tolist() == [1] * 4
    assert read.frame["group"].value_counts().tolist() == [2] * 4
    first = read.frame[read.frame["item"].str.contains("é") & (read.frame["step"] == 9)]
    assert sorted(first["reward"]) == [0.0, 1.0]
    assert set(first["answer"]) == {"1", None}
    assert set(read.frame["label"]) == {"1"}
    assert sorted(first["closed"]) == [0.0, 1.0]


def test_labels_of_other_kinds_become_words() -> None:
    lines = [verl_line("p", "x", gts=gts, score=1, step=1) for gts in (1, 1.0, ["1"], "1", None)]
    labels = read_rollouts(pd.DataFrame(lines, dtype=object)).frame["label"]
    assert labels.isna().sum() == 1
    assert set(labels.dropna()) == {"1"}


# --- what cannot be read ---------------------------------------------------------------------------------------


def test_a_run_without_rollouts_and_a_folder_of_runs_are_told(tmp_path: Path) -> None:
    run = tmp_path / "sft-s0"
    run.mkdir()
    (run / "run.json").write_text("{}", "utf-8")
    pd.DataFrame({"item": ["a"], "label": ["1"]}).to_parquet(run / "scores-test.parquet")
    (tmp_path / "ledger.jsonl").write_text("{}\n", "utf-8")
    for folder in (run, tmp_path):
        with pytest.raises(InputError, match="no rollouts were logged in it"):
            read_rollouts(folder)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.jsonl", '{"step": 1}\n', "of no known form"),
        ("a.jsonl", "[1]\n", "must be a JSON object"),
        ("a.jsonl", "{", "line 1 is no JSON"),
        ("a.parquet", "nothing", "neither Parquet nor JSON lines, a JSON array, .csv or .tsv"),
        ("a.jsonl", "", "no rollouts in it"),
    ],
)
def test_bad_files_are_told_in_one_line(tmp_path: Path, name: str, text: str, told: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=told) as error:
        read_rollouts(tmp_path / name)
    assert "\n" not in str(error.value)


def test_missing_and_empty_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        read_rollouts(tmp_path / "nothing")
    with pytest.raises(InputError, match=r"no \.parquet or \.jsonl"):
        read_rollouts(tmp_path)


def test_a_column_of_words_is_no_reward() -> None:
    frame, _ = make_rollouts(Plan(steps=1), seed=1)
    with pytest.raises(InputError, match="reward must hold numbers"):
        read_rollouts(frame.assign(reward="good"))
    with pytest.raises(InputError, match="without a step or an item"):
        read_rollouts(frame.assign(item=["", *[None] * (len(frame) - 1)]))


def test_counting_without_the_package_names_the_extra(tokenizer: Path) -> None:
    from audit.errors import MissingExtraError

    with (
        mock.patch.dict("sys.modules", {"tokenizers": None}),
        pytest.raises(MissingExtraError, match="train"),
    ):
        read_rollouts(trl_frame(["a"] * 2), tokenizer=tokenizer)
    assert importlib.util.find_spec("tokenizers") is not None


@pytest.mark.parametrize("name", ["r.csv", "r.tsv", "r.csv.gz", "r.json", "r.jsonl"])
def test_other_forms_hold_what_parquet_holds(tmp_path: Path, name: str) -> None:
    frame, _ = make_rollouts(Plan(steps=3), seed=2)
    frame["label"] = "0" + frame["label"].astype(str)  # names that look like numbers
    frame.to_parquet(tmp_path / "r.parquet")
    if "json" in name:
        frame.to_json(tmp_path / name, orient="records", lines=name.endswith("l"))
    else:
        frame.to_csv(tmp_path / name, sep="\t" if name == "r.tsv" else ",", index=False)
    wanted, found = read_rollouts(tmp_path / "r.parquet"), read_rollouts(tmp_path / name)
    pd.testing.assert_frame_equal(found.frame, wanted.frame)
    assert (found.form, found.cap, found.length_unit, found.notes) == (
        wanted.form, wanted.cap, wanted.length_unit, wanted.notes,
    )  # fmt: skip


def test_rewards_of_trl_are_found_in_a_csv(tmp_path: Path) -> None:
    rows = [(1, f"p{n // 2}", "a word", "01", str(n % 2), "0.5", "TRUE") for n in range(6)]
    frame = pd.DataFrame(
        rows, columns=["step", "prompt", "completion", "code", "right", "advantage", "truncated"]
    )
    frame.to_csv(tmp_path / "r.csv", index=False)
    found = read_rollouts(tmp_path / "r.csv")
    assert found.form == "TRL"
    assert found.frame["reward"].tolist() == [0.0, 1.0] * 3
    assert found.frame["truncated"].tolist() == [1.0] * 6
