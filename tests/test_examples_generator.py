"""The program that writes examples/risk_driver.csv: the same bytes again, any size and seed, its grammar."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from examples.riskdriver.labelling import label_items
from examples.riskdriver.stories import Item, write_items
from examples.riskdriver.text import Picker, expand, polish

EXAMPLES = Path(__file__).parents[1] / "examples"
KEY = ["passage", "entity", "driver"]


def generate(*options: str, hash_seed: str = "0") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLES / "generate.py"), *options],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_committed_files_are_what_the_generator_writes(tmp_path: Path) -> None:
    done = generate("--out", str(tmp_path), hash_seed="7")
    assert done.returncode == 0, done.stderr
    for name in ("risk_driver.csv", "risk_driver_truth.csv"):
        assert (tmp_path / name).read_bytes() == (EXAMPLES / name).read_bytes()


def test_seed_and_sizes_are_options(tmp_path: Path) -> None:
    contents = []
    for seed in ("1", "2", "1"):
        done = generate("--seed", seed, "--items", "300", "--rows", "340", "--out", str(tmp_path))
        assert done.returncode == 0, done.stderr
        data = pd.read_csv(tmp_path / "risk_driver.csv")
        assert len(data) == 340
        assert len(data.drop_duplicates(KEY)) == 300
        contents.append((tmp_path / "risk_driver.csv").read_bytes())
    assert contents[0] == contents[2] != contents[1]


@pytest.mark.parametrize("sizes", [("--items", "10", "--rows", "9"), ("--items", "10", "--rows", "21"),
                                   ("--items", "0", "--rows", "0")])  # fmt: skip
def test_impossible_sizes_are_refused(sizes: tuple[str, ...], tmp_path: Path) -> None:
    done = generate(*sizes, "--out", str(tmp_path))
    assert done.returncode == 2
    assert "--rows must lie between --items and twice --items" in done.stderr
    assert not list(tmp_path.iterdir())


@given(items=st.integers(1, 120), share=st.floats(0, 1), seed=st.integers(0, 10**6))
def test_any_size_and_seed_gives_a_sound_file(items: int, share: float, seed: int) -> None:
    rows = items + int(share * items)
    passages = write_items(items=items, seed=seed)
    flat = [item for passage in passages for item in passage]
    assert len(flat) == items == len({(i.passage, i.entity, i.driver) for i in flat})
    assert all(len({item.passage for item in passage}) == 1 for passage in passages)
    labelled = label_items(passages, rows=rows, seed=seed)
    assert len(labelled) == rows
    assert {row.item for row in labelled} == set(range(items))
    for item, group in itertools.groupby(
        sorted(labelled, key=lambda row: row.item), key=lambda row: row.item
    ):
        who = [row.annotator for row in group]
        assert len(set(who)) == len(who) <= 3, item
    assert label_items(passages, rows=rows, seed=seed) == labelled


def test_label_items_refuses_impossible_sizes() -> None:
    item = Item(passage="p", entity="e", driver="d", truth=1, clause="C4", hard=False, story="direct")
    with pytest.raises(ValueError, match="choose 1 to 2 rows"):
        label_items([[item]], rows=3, seed=0)


@pytest.mark.parametrize(
    ("raw", "polished"),
    [
        ("a(n) €8 million fine", "An €8 million fine"),
        ("a(n) $11.5 million fine, a(n) £110,000 fine", "An $11.5 million fine, a £110,000 fine"),
        ("a(n) lawsuit  .  it won .", "A lawsuit. It won."),
        ("Nor Motors's plant", "Nor Motors' plant"),
        ('it said. "we know", he said', 'It said. "We know", he said'),
        ("Oakley, 3 May - the plant", "Oakley, 3 May - The plant"),
    ],
)
def test_polish(raw: str, polished: str) -> None:
    assert polish(raw) == polished


def test_expand_fills_slots_before_choices() -> None:
    slots = {"who": "[Ann|Ann]", "verb": "[runs|runs]", "line": "{who} {verb}"}
    assert expand("{line}[|]", slots, Picker(0)) == "Ann runs"
    with pytest.raises(KeyError):
        expand("{nobody}", slots, Picker(0))


def test_picker_is_fair_and_seeded() -> None:
    picker, again = Picker("x"), Picker("x")
    draws = [picker.one("abc") for _ in range(3000)]
    assert draws == [again.one("abc") for _ in range(3000)]
    assert stats.chisquare([draws.count(letter) for letter in "abc"]).pvalue > 0.001
    heavy = sum(picker.weighted((True, False), (3.0, 1.0)) for _ in range(4000))
    assert stats.binomtest(heavy, 4000, 0.75).pvalue > 0.001
    assert sorted(picker.shuffled(range(9))) == list(range(9))
    assert {picker.integer(2, 4) for _ in range(200)} == {2, 3, 4}
