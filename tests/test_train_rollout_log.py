"""The log of completions: one whole file a step, with fixed types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

pq = pytest.importorskip("pyarrow.parquet")

from audit.errors import ArgumentError  # noqa: E402
from train.rollout_log import COLUMNS, drop_steps_after, number_groups, step_file, write_step  # noqa: E402
from train.rollouts import read_rollouts  # noqa: E402


def row(k: int, **changes: Any) -> dict[str, Any]:
    return {"item": f"text {k // 2}", "label": "1", "text": f"<think>\n☃ '\"\0{k}</think>1<|im_end|>", "length": 5 + k,
            "truncated": False, "closed": True, "answer": "1", "reason": "right", "reward": 1.0, "advantage": 0.5,
            **changes}  # fmt: skip


def rows(n: int = 4, **changes: Any) -> list[dict[str, Any]]:
    return number_groups([row(k, **changes) for k in range(n)], group=2)


def test_a_step_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    file = write_step(tmp_path / "rollouts", 7, rows(), run="one", cap=9)
    assert file.name == "step-000007.parquet"
    found = duckdb.sql(f"SELECT * FROM '{file}'").df()
    assert found.columns.tolist() == list(COLUMNS)
    assert found["text"].tolist() == [one["text"] for one in rows()]
    assert found["step"].tolist() == [7] * 4
    assert found["group"].tolist() == [0, 0, 1, 1]
    assert found["sample"].tolist() == [0, 1, 0, 1]
    read = read_rollouts(tmp_path)
    assert (read.form, read.cap, read.length_unit) == ("ours", 9.0, "tokens")
    assert read.frame["length"].tolist() == [5.0, 6.0, 7.0, 8.0]


def test_types_hang_on_no_value(tmp_path: Path) -> None:
    """A step in which nothing was scored has the columns of any other: null, but numbers and words."""
    write_step(tmp_path, 1, rows(reward=None, answer=None), run="one", cap=9)
    write_step(tmp_path, 2, rows(), run="one", cap=9)
    schemas = {str(pq.read_schema(step_file(tmp_path, step))) for step in (1, 2)}
    assert len(schemas) == 1
    assert pq.read_schema(step_file(tmp_path, 1)).field("reward").type == "double"
    read = read_rollouts(tmp_path).frame
    assert read["reward"].isna().tolist() == [True] * 4 + [False] * 4


def test_a_step_is_there_once_and_whole(tmp_path: Path) -> None:
    write_step(tmp_path, 1, rows(), run="one", cap=9)
    write_step(tmp_path, 1, rows(2), run="one", cap=9)
    assert len(pq.read_table(tmp_path)) == 2
    with pytest.raises(ValueError, match="many"):
        write_step(tmp_path, 1, rows(length="many"), run="one", cap=9)
    assert [file.name for file in tmp_path.iterdir()] == ["step-000001.parquet"]
    assert len(pq.read_table(tmp_path)) == 2


def test_an_interrupted_write_leaves_the_step_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_step(tmp_path, 1, rows(), run="one", cap=9)

    def fail(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(KeyboardInterrupt):
        write_step(tmp_path, 1, rows(2), run="one", cap=9)
    assert [file.name for file in tmp_path.iterdir()] == ["step-000001.parquet"]
    assert len(pq.read_table(tmp_path)) == 4


def test_steps_to_be_made_anew_are_dropped(tmp_path: Path) -> None:
    for step in (1, 2, 9, 10, 123):
        write_step(tmp_path, step, rows(), run="one", cap=9)
    assert drop_steps_after(tmp_path, 9) == 2
    assert sorted(file.name[5:11] for file in tmp_path.iterdir()) == ["000001", "000002", "000009"]
    assert drop_steps_after(tmp_path / "none", 0) == 0


def test_groups_are_whole() -> None:
    with pytest.raises(ArgumentError, match="5 completions are no whole groups of 2"):
        number_groups([row(k) for k in range(5)], group=2)
