import csv
import io
import json
import os

import duckdb
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.errors import ArgumentError, InputError
from audit.reading import open_table
from relabel.output import COLUMNS, check_paths, output_names, write
from relabel.records import Status, Verdict
from relabel.worklist import Worklist, batches, decide


def frame(rows, columns=("text", "label")):
    return pd.DataFrame(rows, columns=list(columns), dtype=object)


def ok(label, confidence=0.9, kind="logprob"):
    return Verdict(status=Status.OK, label=label, confidence=confidence, confidence_kind=kind)


def failed(status=Status.REFUSED):
    return Verdict(status=status, reason="why")


def opened(rows, *, label="label", seed=0, columns=("text", "label"), inputs=("text",)):
    return Worklist(open_table(frame(rows, columns)), inputs=inputs, label=label, seed=seed)


def test_rows_that_audit_takes_for_the_same_are_one_item():
    rows = [
        ("Rain  today", "a"),
        ("rain today ", "b"),
        ("Sun", "a"),
        ("cafe\u0301", "a"),
        ("Caf\u00e9", "b"),
        ("Sun!", "a"),
    ]
    work = opened(rows)
    assert (work.rows, work.items, work.empty) == (6, 4, 0)
    assert [item for item, _ in work.links()] == [1, 1, 2, 3, 3, 4]
    assert [(item.id, item.row["text"], item.old) for item in work.read()] == [
        (1, "Rain  today", "a"),
        (2, "Sun", "a"),
        (3, "caf\u00e9", "a"),
        (4, "Sun!", "a"),
    ]


def test_rows_without_text_are_never_grouped_nor_asked():
    work = opened([(None, "a"), ("", "b"), ("  ", "a"), ("x", "a")])
    assert (work.rows, work.items, work.empty) == (4, 4, 3)
    assert [item.id for item in work.read()] == [4]
    assert [decision.verdict.status for _, _, decision in work.decisions()] == ["empty"] * 3 + ["pending"]


def test_columns_do_not_run_into_each_other():
    rows = [("ab", "c"), ("a", "bc"), ("a b", "c"), ("a", "b c"), (None, "abc"), ("abc", None)]
    work = opened(rows, columns=("x", "y"), inputs=("x", "y"), label=None)
    assert work.items == 6


def test_a_row_is_found_by_its_number():
    work = opened([("x", "a"), ("y", "a"), ("X", "a"), (None, "a")])
    assert work.item_of(3).row == {"text": "x"}
    with pytest.raises(ArgumentError, match="row 9 is not there; the table has 4"):
        work.item_of(9)
    with pytest.raises(ArgumentError, match="row 4 has no text"):
        work.item_of(4)


def escalated(work):
    return [item.id for item in work.read(escalated=True)]


def test_the_share_takes_failures_first_and_then_the_least_sure():
    work = opened([(f"t{n}", "a") for n in range(10)])
    confidences = [0.9, 0.5, 0.8, 0.7, 0.95, 0.6, 0.99, 0.97, 0.65]
    work.put(((n + 1, ok("a", c)) for n, c in enumerate(confidences)), role="judge", model="m")
    work.put([(10, failed())], role="judge", model="m")
    assert work.escalate_share(0.3) == 3
    assert escalated(work) == [2, 6, 10]
    assert work.cuts() == {"logprob": pytest.approx((0.6 + 0.65) / 2)}


def test_what_a_later_run_will_answer_is_not_escalated():
    work = opened([(f"t{n}", "a") for n in range(4)])
    work.put(
        [(1, failed(Status.TRANSPORT)), (2, failed(Status.BUDGET)), (3, failed(Status.TOO_LONG))],
        role="judge",
        model="m",
    )
    work.put([(4, ok("a"))], role="judge", model="m")
    assert work.escalate_share(0.25) == 1
    assert escalated(work) == [3]


def test_more_failures_than_the_share_all_go():
    work = opened([(f"t{n}", "a") for n in range(4)])
    work.put([(n, failed()) for n in (1, 2, 3)] + [(4, ok("a", 0.1))], role="judge", model="m")
    assert work.escalate_share(0.25) == 3


def test_kinds_of_confidence_are_ranked_apart():
    work = opened([(f"t{n}", "a") for n in range(20)])
    work.put([(n, ok("a", 0.5 + n / 100)) for n in range(1, 11)], role="judge", model="m")
    work.put([(n, ok("a", 0.9 + n / 1000, "verbalised")) for n in range(11, 21)], role="judge", model="m")
    assert work.escalate_share(0.2) == 4
    assert escalated(work) == [1, 2, 11, 12]
    assert set(work.cuts()) == {"logprob", "verbalised"}


def test_ties_are_broken_by_the_seed_and_not_by_the_place():
    def chosen(seed):
        work = opened([(f"t{n}", "a") for n in range(40)], seed=seed)
        work.put([(n, ok("a", 1.0)) for n in range(1, 41)], role="judge", model="m")
        work.escalate_share(0.25)
        return escalated(work)

    assert chosen(1) == chosen(1)
    assert chosen(1) != chosen(2)
    assert chosen(1) != list(range(1, 11))


def test_below_a_threshold():
    work = opened([(f"t{n}", "a") for n in range(5)])
    verdicts = [ok("a", 0.8), ok("a", 0.79), ok("a", None, None), failed(), ok("a", 0.95, "verbalised")]
    work.put(enumerate(verdicts, start=1), role="judge", model="m")
    assert work.escalate_below(0.8) == 3
    assert escalated(work) == [2, 3, 4]
    assert work.escalate_below(0.8, kind="logprob") == 4
    assert escalated(work) == [2, 3, 4, 5]


def test_a_person_wins_over_the_adjudicator_and_it_over_the_judge():
    work = opened([(f"t{n}", "a") for n in range(5)])
    work.put([(1, ok("j")), (2, ok("j")), (3, ok("j")), (4, failed())], role="judge", model="jm")
    work.put(
        [(1, ok("a")), (2, ok("a")), (3, failed(Status.UNPARSABLE)), (4, failed(Status.TRUNCATED))],
        role="adjudicator",
        model="am",
    )
    work.put([(1, ok("h", None, None))], role="human", model="")
    decisions = [decision for _, _, decision in work.decisions()]
    assert [(d.source, d.verdict.label, d.model) for d in decisions] == [
        ("human", "h", ""),
        ("adjudicator", "a", "am"),
        ("judge", "j", "jm"),
        ("none", None, "am"),
        ("none", None, ""),
    ]
    assert [d.verdict.status for d in decisions] == ["ok", "ok", "ok", "truncated", "pending"]
    assert decide({}).verdict.status is Status.PENDING


def test_a_later_verdict_of_a_role_replaces_the_earlier():
    work = opened([("x", "a")])
    work.put([(1, failed())], role="judge", model="m")
    work.put([(1, ok("a"))], role="judge", model="m")
    assert work.statuses("judge") == {"ok": 1}
    assert [verdict.label for _, verdict in work.verdicts("judge")] == ["a"]


def test_quantiles_of_confidence():
    work = opened([(f"t{n}", "a") for n in range(100)])
    work.put([(n, ok("a", n / 100)) for n in range(1, 101)], role="judge", model="m")
    assert work.confidences("logprob", quantiles=4) == [0.76, 0.51, 0.26, 0.01]
    assert work.confidences("agreement", quantiles=4) == []


@given(st.lists(st.integers(), max_size=20), st.integers(1, 7))
def test_batches_hold_everything_in_order(things, size):
    cut = list(batches(things, size))
    assert [thing for batch in cut for thing in batch] == things
    assert all(len(batch) == size for batch in cut[:-1])


# --- output


def written(work, folder, ending=".csv"):
    out, unresolved = folder / f"out{ending}", folder / "un.csv"
    counts = write(work, out=out, unresolved=unresolved, rubric_version="3", same=lambda a, b: a == b)
    return out, unresolved, counts


texts = st.text(alphabet=st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=12)


@settings(max_examples=60)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=8))
def test_input_columns_come_out_as_the_same_strings(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("out")
    work = opened(rows)
    out, _, counts = written(work, folder)
    with open_table(out) as back, open_table(frame(rows)) as source:
        found = [row[:2] for batch in back.rows() for row in batch]
        assert found == [row for batch in source.rows() for row in batch]
        assert back.columns == ("text", "label", *COLUMNS)
    assert counts.rows == len(rows)


def test_order_rows_and_doubled_ids_are_kept_in_every_format(tmp_path):
    rows = [("001", "b"), ("001", "a"), ("NA", "a"), (None, "c"), (' "quoted"\r\nlines ', "a"), ("1.50", "1")]
    work = opened(rows)
    work.put([(1, ok("a", 0.25)), (2, ok("b", 1.0))], role="judge", model="m")
    for ending in (".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz"):
        out, unresolved, counts = written(work, tmp_path, ending)
        with open_table(out) as back:
            found = [row for batch in back.rows() for row in batch]
        assert [row[:2] for row in found] == rows
        assert [row[2] for row in found] == ["a", "a", "b", None, None, None]
        assert [row[3] for row in found] == ["judge"] * 3 + ["none"] * 3
        assert found[0][4] == "0.25"
        assert [row[7] for row in found] == ["ok"] * 3 + ["empty", "pending", "pending"]
        assert (counts.unresolved, counts.compared, counts.kept) == (3, 3, 1)
        with unresolved.open(newline="") as file:
            listed = list(csv.reader(file))
        assert [row[:2] for row in listed] == [
            ["row", "status"],
            ["4", "empty"],
            ["5", "pending"],
            ["6", "pending"],
        ]
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert records[0]["confidence"] == 0.25
    types = dict(
        duckdb.sql(f"DESCRIBE SELECT * FROM '{tmp_path / 'out.parquet'}'")
        .project("column_name, column_type")
        .fetchall()
    )
    assert (types["confidence"], types["text"]) == ("DOUBLE", "VARCHAR")


def test_the_list_of_open_rows_goes_when_none_is_open(tmp_path):
    work = opened([("x", "a")])
    _, unresolved, _ = written(work, tmp_path)
    assert unresolved.exists()
    work.put([(1, ok("a"))], role="judge", model="m")
    written(work, tmp_path)
    assert not unresolved.exists()


def test_columns_of_the_input_are_never_overwritten():
    names = output_names(["status", "Confidence", "relabel_status", "text"])
    assert names[COLUMNS.index("status")] == "relabel_relabel_status"
    assert names[COLUMNS.index("confidence")] == "relabel_confidence"
    assert names[0] == "label_clean"


def test_a_source_that_changes_between_the_passes_is_an_error(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("text\na\nb\n")
    work = Worklist(open_table(path), inputs=("text",))
    path.write_text("text\na\nb\nc\n")
    os.utime(path, (1, 1))
    with pytest.raises(InputError, match=r"changed while it was read; run again"):
        written(work, tmp_path)
    assert not (tmp_path / "out.csv").exists()


def test_paths_are_checked_before_anything_is_spent(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("text\nx\n")
    un = tmp_path / "un.csv"
    with pytest.raises(ArgumentError, match="overwrite the input"):
        check_paths(source, source=source, unresolved=un)
    with pytest.raises(ArgumentError, match="overwrite the input"):
        check_paths(tmp_path / "out.csv", source=str(source), unresolved=source)
    with pytest.raises(ArgumentError, match="ending says no kind"):
        check_paths(tmp_path / "out.doc", source=source, unresolved=un)
    with pytest.raises(ArgumentError, match="make it first"):
        check_paths(tmp_path / "no" / "out.csv", source=source, unresolved=un)
    check_paths(tmp_path / "out.csv", source=io.StringIO("x"), unresolved=un)
