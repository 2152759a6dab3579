"""Score files are read, checked and paired item by item."""

import re

import numpy as np
import pandas as pd
import pytest

from audit.duplicates import audit_duplicates
from audit.errors import ArgumentError, ColumnError, InputError
from train.scores import Columns, read_scores
from train.scores_pairs import ambiguous_items, pair


def table(**columns):
    base = {"item": ["a", "b", "c"], "label": ["1", "0", "1"], "score": [0.9, 0.2, 0.4]}
    return pd.DataFrame({name: cells for name, cells in (base | columns).items() if cells is not None})


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_every_kind_of_file_gives_the_same_rows(tmp_path, kind):
    data = table(prediction=["1", None, "0"], score=[0.1 + 0.2, 1e-17, 0.5])
    path = tmp_path / f"scores.{kind}"
    if kind == "csv":
        data.to_csv(path, index=False)
    elif kind == "parquet":
        data.to_parquet(path)
    else:
        data.to_json(path, orient="records", lines=True, double_precision=15)
    found = read_scores(path)
    assert found.items == ("a", "b", "c")
    assert found.truth.tolist() == [True, False, True]
    assert found.predicted.tolist() == [1, -1, 0]
    assert found.scores == pytest.approx(data["score"].to_numpy(), abs=1e-15)
    assert found.answered
    assert found.source.endswith(path.name)


def test_without_predictions_a_half_decides():
    found = read_scores(table(score=[0.5, 0.49, None]))
    assert found.predicted.tolist() == [1, 0, -1]
    assert not found.answered
    assert any("0.5" in note for note in found.notes)


def test_other_names_of_columns():
    data = pd.DataFrame({"id": ["a", "b"], "gold": ["no", "yes"], "p": [0.1, 0.8]})
    found = read_scores(data, columns=Columns(item="id", label="gold", score="p"))
    assert (found.positive, found.truth.tolist()) == ("yes", [False, True])


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        (["1", "0"], "1"),
        (["1", "2"], "1"),
        (["ham", "spam"], "spam"),
        (["1", "1"], "1"),
        (["True", "False"], "True"),
    ],
)
def test_the_positive_label_is_1_or_the_greater(labels, positive):
    data = pd.DataFrame({"item": ["a", "b"], "label": labels, "score": [0.1, 0.2]})
    assert read_scores(data).positive == positive


def test_the_positive_label_must_be_named_where_it_is_not_clear():
    three = table(label=["x", "y", "z"])
    with pytest.raises(ArgumentError, match="x, y, z: name the positive one with --positive"):
        read_scores(three)
    with pytest.raises(ArgumentError, match="--positive"):
        read_scores(table(label=["0", "0", "0"]))
    with pytest.raises(ArgumentError, match="no label 'w'"):
        read_scores(three, positive="w")
    found = read_scores(table(label=["x", "y", "z"], prediction=["x", "z", "y"]), positive="y")
    assert found.truth.tolist() == [False, True, False]
    assert found.predicted.tolist() == [0, 0, 1]
    assert any("against the 2 other labels" in note for note in found.notes)


def test_an_answer_that_is_no_label_is_no_answer():
    found = read_scores(table(prediction=["1", "maybe", "0"]))
    assert found.predicted.tolist() == [1, -1, 0]
    assert any("1 predictions are no label" in note for note in found.notes)


def test_predictions_of_another_spelling_are_refused():
    with pytest.raises(
        InputError, match=r"none of the 3 predictions is a label: .*'No', 'Yes'.* labels are 0, 1"
    ):
        read_scores(table(prediction=["Yes", "No", "Yes"]))
    # a run that says why its answers count for nothing is no case of spelling
    assert (
        read_scores(table(prediction=["x", "y", "z"], reason=["a", "b", "c"])).predicted.tolist() == [-1] * 3
    )


def test_whole_numbers_with_a_point_are_the_same_labels():
    """As pandas writes a column of 0 and 1 in which a cell is empty."""
    found = read_scores(table(prediction=["1.0", None, "0.0"]))
    assert found.predicted.tolist() == [1, -1, 0]
    assert not any("no label" in note for note in found.notes)
    found = read_scores(table(label=["1.0", "0.0", "0.0"]), positive="1")
    assert (found.labels, found.truth.tolist()) == (("0", "1"), [True, False, False])
    assert read_scores(table(label=["1.0", "0.0", "0.0"]), positive="1.0").positive == "1"
    assert read_scores(table(label=["v1.0", "v2.0", "v2.0"])).labels == ("v1.0", "v2.0")


def test_a_file_without_scores_names_the_option():
    with pytest.raises(InputError, match=r"no column 'label' \(--label\); there are item, score"):
        read_scores(table(label=None))
    with pytest.raises(InputError, match=r"no column 'split'.*leave --split out"):
        read_scores(table(), split="test")
    with pytest.raises(InputError, match=r"no column 'score'.*--score COLUMN names it"):
        read_scores(table(score=None), need_scores=True)
    with pytest.raises(InputError, match=r"no column 'page' \(--cluster\)"):
        read_scores(table(), cluster="page")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"item": ["a", "a", "b"]}, "item 'a' stands 2 times, and 1 rows repeat an item"),
        ({"label": ["1", None, "0"]}, "row 2 has no label"),
        ({"item": ["a", None, "b"]}, "row 2 has no item"),
        ({"score": [0.2, 1.5, 0.1]}, "row 2 has the score 1.5: scores are P"),
        ({"score": ["0.2", "high", "0.1"]}, "row 2 has the score 'high': a number"),
        ({"score": ["0.2", "inf", "0.1"]}, "row 2 has the score inf"),
        ({"score": [None, None, None]}, "neither scores nor predictions"),
        ({"score": None}, "no column 'score', only item, label"),
        ({"label": None}, "no column 'label' (--label); there are item, score"),
        ({"ambiguous": ["yes", "perhaps", "no"]}, "row 2 is 'perhaps' in the column ambiguous"),
    ],
)
def test_what_cannot_be_used_is_told_with_its_row(columns, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read_scores(table(**columns))


@pytest.mark.parametrize("none", [None, float("nan"), "nan", ""])
def test_rows_without_a_score_stop_or_are_left_out(none):
    data = table(score=["0.9", none, "0.4"])
    with pytest.raises(InputError, match=r"1 of 3 rows have no score.*'b' first.*--drop-unscored"):
        read_scores(data, need_scores=True)
    found = read_scores(data, need_scores=True, drop_unscored=True)
    assert found.items == ("a", "c")
    assert any("1 rows without a score" in note for note in found.notes)
    with pytest.raises(InputError, match="no row has a score"):
        read_scores(table(score=[None] * 3, prediction=["1", "0", "1"]), need_scores=True, drop_unscored=True)


def test_a_run_folder_holds_splits(tmp_path):
    with pytest.raises(InputError, match=r"no scores-<split>\.parquet"):
        read_scores(tmp_path)
    table().to_parquet(tmp_path / "scores-test.parquet")
    assert len(read_scores(tmp_path)) == 3
    table(item=["d", "e", "f"]).to_parquet(tmp_path / "scores-validation.parquet")
    with pytest.raises(InputError, match="several splits: choose with --split one of test, validation"):
        read_scores(tmp_path)
    with pytest.raises(InputError, match="no split 'train'"):
        read_scores(tmp_path, split="train")
    assert read_scores(tmp_path, split="validation").items == ("d", "e", "f")


def test_a_split_column_is_filtered():
    data = table(split=["test", "dev", "test"])
    assert read_scores(data, split="test").items == ("a", "c")
    with pytest.raises(InputError, match="no row of split 'x': choose one of dev, test"):
        read_scores(data, split="x")
    with pytest.raises(ColumnError, match="no column 'split'"):
        read_scores(table(), split="test")


def test_clusters_flags_and_confidences():
    data = table(doc=["p", "q", "p"], ambiguous=["yes", "no", ""], confidence=[3, 1, 2])
    found = read_scores(data, cluster="doc")
    assert found.clusters.tolist() == [0, 1, 0]
    assert found.units == 2
    assert found.ambiguous.tolist() == [True, False, False]
    assert found.confidence.tolist() == [3.0, 1.0, 2.0]
    assert read_scores(table(doc=[None, None, "p"]), cluster="doc").units == 3
    with pytest.raises(ColumnError, match="no column 'page'"):
        read_scores(data, cluster="page")


def test_pairs_follow_the_first_file():
    a = read_scores(table())
    b = read_scores(table(item=["c", "a", "b"], label=["1", "1", "0"], score=[0.3, 0.1, 0.2]))
    first, second = pair(a, b)
    assert first.items == second.items == ("a", "b", "c")
    assert second.scores.tolist() == [0.1, 0.2, 0.3]


def test_files_that_do_not_pair():
    a = read_scores(table())
    with pytest.raises(InputError, match="no item in common"):
        pair(a, read_scores(table(item=["x", "y", "z"])))
    less = read_scores(table(item=["a", "b", "z"], label=["1", "0", "0"]))
    with pytest.raises(InputError, match=r"lacks 1 items of .* and has 1 more .*'c'.*--common"):
        pair(a, less)
    first, second = pair(a, less, common=True)
    assert first.items == second.items == ("a", "b")
    assert any("1 and 1 items" in note for note in first.notes)
    with pytest.raises(InputError, match=r"2 items have other labels .*'b' first"):
        pair(a, read_scores(table(label=["1", "1", "0"])))


def test_ambiguous_items_come_from_a_conflict_file_as_it_is_written(tmp_path):
    data = pd.DataFrame(
        {"text": ["one", "one", "two", "two", "three", "four"], "label": ["0", "1", "0", "0", "1", "0"]}
    )
    path = tmp_path / "conflicts.csv"
    audit_duplicates(data, item=("text",), label="label", conflicts_file=path)
    flags = ambiguous_items(path, ["two", "one", "four"])
    assert flags.tolist() == [False, True, False]
    assert ambiguous_items(path, ["2", "9"], column="row").tolist() == [True, False]
    with pytest.raises(InputError, match=r"none of the scored items in any column.*--conflicts-item"):
        ambiguous_items(path, ["17"])
    with pytest.raises(InputError, match="in the column 'text'"):
        ambiguous_items(path, ["17"], column="text")
    with pytest.raises(ColumnError, match="no column 'id'"):
        ambiguous_items(path, ["one"], column="id")


def test_rows_can_be_taken_in_any_order():
    a = read_scores(table(doc=["p", "q", "p"]), cluster="doc").take(np.array([2, 1]), "two rows")
    assert a.items == ("c", "b")
    assert a.clusters.tolist() == [0, 1]
    assert a.notes[-1] == "two rows"
