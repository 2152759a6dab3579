"""Review files: what goes to people, Label Studio's formats both ways, and answers that win."""

import csv
import io
import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from audit.errors import ArgumentError, InputError
from audit.writing import write_rows
from relabel.journal import Journal
from relabel.people import HUMAN, PEOPLE
from relabel.recall import recalled
from relabel.rehearse import Fault, RehearsalServer
from relabel.review import export_review, import_review
from relabel.review_studio import config, names, read_annotations
from relabel.rubric import Rubric
from tests.command import run
from tests.relabel_kit import RUBRIC_TEXT, make_job, read_table, scripts, truth_of

ITEMS = 60


pytestmark = pytest.mark.usefixtures("endpoint_key")


@pytest.fixture
def server():
    with RehearsalServer(scripts(ITEMS)) as running:
        yield running


def finished(folder, server, **more):
    """A finished job with an adjudicator for the 18 least sure items."""
    job = make_job(folder, server.base_url, adjudicator="adjudicator", escalate="30%", **more)
    job.run()
    return job


# --- the files that Label Studio exports, as version 1.23 writes them ------------------------------------------


def annotation(number, label, *, by=1, note=None, skipped=False, at="2026-01-02T10:00:00.000000Z"):
    result = [] if label is None else [_part("human_label", "choices", {"choices": [label]})]
    if note is not None:
        result.append(_part("human_note", "textarea", {"text": [note]}))
    return {
        "id": number, "completed_by": by, "result": result, "was_cancelled": skipped, "ground_truth": False,
        "created_at": at, "updated_at": at, "draft_created_at": None, "lead_time": 4.2, "prediction": {},
        "result_count": len(result), "unique_id": "0" * 8, "import_id": None, "last_action": None, "task": 1,
        "project": 2, "updated_by": by, "parent_prediction": None, "parent_annotation": None,
    }  # fmt: skip


def _part(name, kind, value):
    return {"from_name": name, "to_name": "text", "type": kind, "value": value, "origin": "manual"}


def exported_json(tasks, given):
    """``given``: for each task the annotations it got."""
    return [
        {
            "id": number,
            "annotations": list(some),
            "drafts": [],
            "predictions": [2 * number],
            "data": task["data"],
            "meta": {},
            "inner_id": number,
            "total_annotations": len(some),
            "cancelled_annotations": 0,
            "total_predictions": 2,
            "comment_count": 0,
            "project": 2,
            "updated_by": 1,
            "comment_authors": [],
        }
        for number, (task, some) in enumerate(zip(tasks, given, strict=True), start=1)
    ]


def exported_flat(tasks, given):
    """JSON-MIN: one entry an annotation; keys of empty parts are left out."""
    entries = []
    for number, (task, some) in enumerate(zip(tasks, given, strict=True), start=1):
        for one in some:
            entry = {**task["data"], "id": number}
            for part in one["result"]:
                value = next(iter(part["value"].values()))
                entry[part["from_name"]] = value[0] if len(value) == 1 else {part["type"]: value}
            entry |= {"annotator": one["completed_by"], "annotation_id": one["id"], "lead_time": 4.2}
            entries.append({**entry, "created_at": one["created_at"], "updated_at": one["updated_at"]})
    return entries


def exported_csv(tasks, given):
    """CSV: the flat entries, columns in alphabetical order, everything but numbers quoted."""
    entries = exported_flat(tasks, given)
    columns = sorted({name for entry in entries for name in entry})
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writeheader()
    writer.writerows(entries)
    return text.getvalue()


def answers_for(tasks):
    """The truth for every task but the last two: one skipped, one never opened; a note with quotes and lines."""
    labels = [truth_of(int(task["data"]["text"].split()[1].strip(":"))) for task in tasks]
    given = [
        [annotation(n, label, note='by C1: it "rained"\nhard')] for n, label in enumerate(labels, start=1)
    ]
    given[-2] = [annotation(99, None, skipped=True)]
    given[-1] = []
    return labels, given


# --- what goes out ---------------------------------------------------------------------------------------------


def test_tasks_hold_both_verdicts_and_nothing_is_asked(tmp_path, server):
    job = finished(tmp_path, server)
    asked = server.counts().requests
    found = export_review(job, out=tmp_path / "review.json", below=0.9)
    assert server.counts().requests == asked
    tasks = json.loads((tmp_path / "review.json").read_text("utf-8"))
    assert found.items == len(tasks) == found.contradicted + found.unsure + found.no_label
    assert found.contradicted > 0 < found.unsure
    clean = {row["text"]: row for row in read_table(tmp_path / "clean.csv")}
    for number, task in enumerate(tasks):
        data, row = task["data"], clean[task["data"]["text"]]
        models = [one["model_version"] for one in task["predictions"]]
        values = {
            one["model_version"]: one["result"][0]["value"]["choices"][0] for one in task["predictions"]
        }
        assert models == (["adjudicator", "judge"] if len(models) == 2 else ["judge"])
        assert values[models[0]] == row["label_clean"]  # the prediction that an annotator sees first
        assert task["predictions"][0]["score"] == pytest.approx(float(row["confidence"]), abs=1e-6)
        assert all(part["type"] == "choices" for one in task["predictions"] for part in one["result"])
        assert "by C1" in data["models"]
        parted = len(set(values.values())) == 2
        assert parted == (number < found.contradicted)  # these come first
        assert parted or float(row["confidence"]) < 0.9
        assert len(data["key"]) == 64
    unsure = [float(clean[task["data"]["text"]]["confidence"]) for task in tasks[found.contradicted :]]
    assert unsure == sorted(unsure)
    first = tasks[0]["data"]
    with (tmp_path / "data.csv").open(encoding="utf-8", newline="") as file:
        rows = [n for n, row in enumerate(csv.DictReader(file), start=1) if row["text"] == first["text"]]
    assert (first["row"], first["rows"]) == (rows[0], len(rows))


def test_items_without_a_label_come_first_with_the_reason(tmp_path, server):
    server.faults = [Fault(kind="refusal", share=0.2)]
    job = finished(tmp_path, server)
    found = export_review(job, out=tmp_path / "review.csv", below=0.0, most=500)
    rows = read_table(tmp_path / "review.csv")
    unlabelled = {row["text"] for row in read_table(tmp_path / "clean.csv") if not row["label_clean"]}
    assert found.no_label == len(unlabelled) > 0
    assert {row["text"] for row in rows[: found.no_label]} == unlabelled
    assert all("declined" in row["why"] for row in rows[: found.no_label])


def test_the_least_sure_are_taken_and_the_number_is_bounded(tmp_path, server):
    job = finished(tmp_path, server)
    many = export_review(job, out=tmp_path / "a.csv", below=1.0, most=500)
    few = export_review(job, out=tmp_path / "b.csv", below=1.0, most=7)
    assert few.items == 7 < many.items
    assert read_table(tmp_path / "b.csv") == read_table(tmp_path / "a.csv")[:7]
    none = export_review(job, out=tmp_path / "c.csv", below=0.0)
    assert none.unsure == 0


def test_blind_files_tell_nothing_of_the_models(tmp_path, server):
    job = finished(tmp_path, server)
    export_review(job, out=tmp_path / "review.json", blind=True, config_out=tmp_path / "own.xml")
    export_review(job, out=tmp_path / "review.csv", blind=True)
    tasks = json.loads((tmp_path / "review.json").read_text("utf-8"))
    assert all(
        task.keys() == {"data"} and task["data"].keys() == {"key", "row", "rows", "text"} for task in tasks
    )
    assert "models" not in (tmp_path / "own.xml").read_text("utf-8")
    assert not (tmp_path / "review.config.xml").exists()
    assert list(read_table(tmp_path / "review.csv")[0]) == [
        "key",
        "row",
        "rows",
        "text",
        "human_label",
        "human_note",
    ]


def test_nothing_to_review_writes_nothing(tmp_path, server):
    server.script = scripts(ITEMS, judge=0.0, adjudicator=0.0)
    job = finished(tmp_path, server)
    found = export_review(job, out=tmp_path / "review.json")
    assert (found.items, found.out) == (0, None)
    assert not (tmp_path / "review.json").exists()
    assert "nothing to review" in found.summary()


def test_the_configuration_shows_texts_models_and_labels(tmp_path, server):
    job = finished(tmp_path, server)
    export_review(job, out=tmp_path / "review.json")
    view = ET.fromstring((tmp_path / "review.config.xml").read_text("utf-8"))
    assert [text.get("value") for text in view.iter("Text")] == ["$text", "$models"]
    assert [choice.get("value") for choice in view.iter("Choice")] == ["rain", "sun"]
    assert view.find("Choices").get("toName") == view.find("Text").get("name")
    assert [header.get("value") for header in view.iter("Header")][-2:] == [
        "rain: water falls",
        "sun: it does not",
    ]


def test_odd_labels_and_columns_survive_the_configuration():
    labels = ("$5", "a<b", 'say "hi"', "C'est & l'été", "1", "two\nlines")
    listed = "".join(f"  - {json.dumps(label)}\n" for label in labels)
    text = f'---\nname: "<x> & $y"\nversion: "1"\ninputs: [my text, key, text]\nlabels:\n{listed}---\nC1. x\n'
    view = ET.fromstring(config(Rubric.parse(text)))
    # a value with $ would be taken for a variable: it is shown otherwise, and its alias is what comes back
    assert [choice.get("alias") or choice.get("value") for choice in view.iter("Choice")] == list(labels)
    assert not any("$" in choice.get("value") for choice in view.iter("Choice"))
    assert [one.get("value") for one in view.iter("Text")] == ["$input_1", "$input_2", "$text", "$models"]


def test_column_names_are_kept_where_label_studio_can_read_them():
    assert names(["text", "my text", "Key", "human_label", "t2"]) == {
        "text": "text", "my text": "input_2", "Key": "input_3", "human_label": "input_4", "t2": "t2",
    }  # fmt: skip
    assert names(["a b", "input_1"]) == {"a b": "input_1", "input_1": "input_2"}


# --- what comes back -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["json", "flat", "csv"])
def test_answers_win_in_the_next_run_which_asks_nothing(tmp_path, server, form):
    job = finished(tmp_path, server)
    export_review(job, out=tmp_path / "review.json", below=0.9)
    tasks = json.loads((tmp_path / "review.json").read_text("utf-8"))
    labels, given = answers_for(tasks)
    path = tmp_path / f"answers.{'csv' if form == 'csv' else 'json'}"
    if form == "csv":
        path.write_text(exported_csv(tasks, given), "utf-8")
    else:
        path.write_text(
            json.dumps({"json": exported_json, "flat": exported_flat}[form](tasks, given)), "utf-8"
        )
    found = import_review(job, path)
    assert found.taken == len(tasks) - 2
    assert found.unanswered == (
        2 if form == "json" else 1
    )  # the flat forms have no entry without an annotation
    assert (found.contested, found.rejected, found.exit_code) == ((), (), 0)
    before, asked = read_table(tmp_path / "clean.csv"), server.counts().requests
    result = job.run()
    assert server.counts().requests == asked
    answered = {task["data"]["text"]: label for task, label in zip(tasks[:-2], labels, strict=False)}
    rows = read_table(tmp_path / "clean.csv")
    assert result.sources["human"] == sum(row["text"] in answered for row in rows) >= found.taken
    for old, row in zip(before, rows, strict=True):
        if row["text"] in answered:
            assert row["label_clean"] == answered[row["text"]]
            assert (row["label_source"], row["model"], row["status"]) == ("human", "human", "ok")
            assert row["rationale"] == 'by C1: it "rained"\nhard'
            assert row["confidence"] == ""
        else:
            assert row == old


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_a_table_that_was_filled_in_comes_back(tmp_path, server, ending):
    job = finished(tmp_path, server)
    export_review(job, out=tmp_path / "review.csv", below=0.9)
    rows = read_table(tmp_path / "review.csv")
    for number, row in enumerate(rows):
        row["human_label"] = ("Wet", " SUN ", "")[min(number, 2)]  # a synonym, another spelling, no answer
        row["human_note"] = "seen" if number == 0 else ""
    write_rows(tmp_path / f"answers.{ending}", list(rows[0]), [list(row.values()) for row in rows])
    found = import_review(job, tmp_path / f"answers.{ending}")
    assert found.labels == {"rain": 1, "sun": 1}
    assert found.unanswered == len(rows) - 2
    job.run()
    clean = {row["text"]: row for row in read_table(tmp_path / "clean.csv")}
    assert [clean[row["text"]]["label_clean"] for row in rows[:2]] == ["rain", "sun"]
    assert clean[rows[0]["text"]]["rationale"] == "seen"


def one_task(tmp_path, server):
    job = finished(tmp_path, server)
    export_review(job, out=tmp_path / "review.json", most=1)
    return job, json.loads((tmp_path / "review.json").read_text("utf-8"))


def imported(job, tmp_path, tasks, *given):
    path = tmp_path / "answers.json"
    path.write_text(json.dumps(exported_json(tasks, given)), "utf-8")
    return import_review(job, path)


def label_of(job, tmp_path, tasks):
    job.run()
    rows = {row["text"]: row for row in read_table(tmp_path / "clean.csv")}
    row = rows[tasks[0]["data"]["text"]]
    return row["label_clean"], row["label_source"]


def test_an_answer_is_kept_once_and_a_later_one_replaces_it(tmp_path, server):
    job, tasks = one_task(tmp_path, server)
    assert imported(job, tmp_path, tasks, [annotation(1, "rain")]).taken == 1
    again = imported(job, tmp_path, tasks, [annotation(1, "rain")])
    assert (again.taken, again.unchanged) == (0, 1)
    assert label_of(job, tmp_path, tasks) == ("rain", "human")
    assert imported(job, tmp_path, tasks, [annotation(1, "sun")]).taken == 1
    assert label_of(job, tmp_path, tasks) == ("sun", "human")
    assert imported(job, tmp_path, tasks, [annotation(1, "rain")]).taken == 1  # and back
    assert label_of(job, tmp_path, tasks) == ("rain", "human")
    with Journal(tmp_path / "clean.journal.sqlite", read_only=True) as journal:
        assert [one.replies for one in journal.spent() if (one.model, one.base_url) == (HUMAN, PEOPLE)] == [3]


def test_of_several_people_the_majority_counts_and_of_one_the_last_answer(tmp_path, server):
    job, tasks = one_task(tmp_path, server)
    split = imported(job, tmp_path, tasks, [annotation(1, "rain", by=1), annotation(2, "sun", by=2)])
    assert (split.taken, len(split.contested), split.exit_code) == (0, 1, 3)
    assert "people are split (rain 1, sun 1)" in split.summary()
    assert label_of(job, tmp_path, tasks)[1] != "human"
    three = [annotation(1, "rain", by=1), annotation(2, "sun", by={"id": 2, "email": "b@example.com"})]
    found = imported(job, tmp_path, tasks, [*three, annotation(3, "sun", by=3)])
    assert found.labels == {"sun": 1}
    changed = [
        annotation(1, "rain", at="2026-01-03T00:00:00Z"),
        annotation(2, "sun", at="2026-01-01T00:00:00Z"),
    ]
    assert imported(job, tmp_path, tasks, changed).labels == {"rain": 1}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda task, one: one["result"][0]["value"].update(choices=["snow"]),
            "which the rubric does not have",
        ),
        (lambda task, one: one["result"][0]["value"].update(choices=["rain", "sun"]), "has several labels"),
        (lambda task, one: task["data"].update(key="f" * 64), "its key is unknown"),
        (lambda task, one: task["data"].pop("key"), "has no key"),
    ],
)
def test_what_cannot_be_used_is_told_and_never_taken(tmp_path, server, change, told):
    job, tasks = one_task(tmp_path, server)
    one = annotation(1, "rain")
    change(tasks[0], one)
    found = imported(job, tmp_path, tasks, [one])
    assert (found.taken, len(found.rejected), found.exit_code) == (0, 1, 3)
    assert told in found.summary()
    with Journal(tmp_path / "clean.journal.sqlite", read_only=True) as journal:
        assert not journal.heard_from(model=HUMAN, base_url=PEOPLE)


def test_other_results_are_no_answer():
    other = {"from_name": "else", "type": "choices", "value": {"choices": ["rain"]}}
    entries = [
        {"data": {"key": "k"}, "annotations": [{"result": [other]}]},
        {"data": {"key": "k"}, "annotations": []},
        {"data": {"key": "k"}, "annotations": [{"result": None}]},
        {"key": "k", "human_label": None},
        {"key": "k", "human_label": "  "},
    ]
    assert [one.label for one in read_annotations(entries)] == [None] * 5
    broken = list(read_annotations([3, {"data": None, "annotations": ["x"]}]))
    assert [one.problem for one in broken] == ["is no task", "is no annotation"]


def test_files_that_are_no_answers_are_named(tmp_path, server):
    job, _ = one_task(tmp_path, server)
    (tmp_path / "a.json").write_text("{", "utf-8")
    (tmp_path / "b.json").write_text("{}", "utf-8")
    (tmp_path / "c.csv").write_text("key,label\nx,rain\n", "utf-8")
    for name, told in (("a.json", "is not JSON"), ("b.json", "no list of tasks"), ("c.csv", "human_label")):
        with pytest.raises(InputError, match=told):
            import_review(job, tmp_path / name)
    with pytest.raises(InputError, match="check the path"):
        import_review(job, tmp_path / "none.json")
    with pytest.raises(ArgumentError, match="--below"):
        export_review(job, out=tmp_path / "r.csv", below=80)


def test_answered_items_are_left_out_of_the_next_file(tmp_path, server):
    job = finished(tmp_path, server)
    first = export_review(job, out=tmp_path / "review.json", below=0.9)
    tasks = json.loads((tmp_path / "review.json").read_text("utf-8"))
    imported(job, tmp_path, tasks, *([annotation(n, "rain")] for n in range(len(tasks))))
    second = export_review(job, out=tmp_path / "second.json", below=0.9)
    assert (second.items, second.answered) == (0, first.items)
    third = export_review(job, out=tmp_path / "third.json", below=0.9, again=True)
    assert third.items == first.items


def test_an_answer_outlives_an_edit_of_the_rubric_but_not_other_labels(tmp_path, server):
    job, tasks = one_task(tmp_path, server)
    imported(job, tmp_path, tasks, [annotation(1, "rain")])
    edited = replace(
        job, rubric=Rubric.parse(RUBRIC_TEXT.replace("Judge the weather", "Please judge the weather"))
    )
    notices = []
    edited.run(on_notice=notices.append)
    assert any("1 of 1 answers of people are of an earlier text" in line for line in notices)
    assert label_of(edited, tmp_path, tasks) == ("rain", "human")
    other = replace(
        job,
        rubric=Rubric.parse(
            RUBRIC_TEXT.replace("name: sun", "name: dry").replace("_label: sun", "_label: dry")
        ),
    )
    with recalled(other) as recall:
        assert recall.answered == 0
    renamed = replace(job, rubric=Rubric.parse(RUBRIC_TEXT.replace("name: weather", "name: mood")))
    with recalled(renamed) as recall:
        assert recall.answered == 0  # the same texts under another rubric are another question


def test_people_cost_nothing_and_settle_what_no_model_would_label(tmp_path, server):
    server.faults = [Fault(kind="refusal", share=0.2)]
    job = make_job(tmp_path, server.base_url, prices=(1.0, 1.0))
    first = job.run()
    assert first.exit_code == 3
    export_review(job, out=tmp_path / "review.json", below=0.0)
    tasks = json.loads((tmp_path / "review.json").read_text("utf-8"))
    imported(job, tmp_path, tasks, *([annotation(n, "sun")] for n in range(len(tasks))))
    second = job.run()
    assert second.exit_code == 0
    assert second.sources["human"] == first.without_verdict
    assert second.cost_of_journal >= first.cost_of_journal > 0


def test_the_commands_go_round(tmp_path, server):
    (tmp_path / "rubric.md").write_text(RUBRIC_TEXT, "utf-8")
    make_job(tmp_path, server.base_url)
    files = [tmp_path / "data.csv", "--rubric", tmp_path / "rubric.md", "--out", tmp_path / "clean.csv"]
    words = [*files, "--judge", "judge", "--base-url", server.base_url, "--concurrency", "8"]
    assert run("relabel", "run", *words, "--quiet").code == 0
    told = run("relabel", "review", "export", *words, "--to", tmp_path / "review.csv", "--below", "0.95")
    assert told.code == 0
    assert told.out.startswith("wrote ")
    rows = read_table(tmp_path / "review.csv")
    rows[0]["human_label"] = "rain"
    write_rows(tmp_path / "answers.csv", list(rows[0]), [list(row.values()) for row in rows])
    told = run(
        "relabel", "review", "import", *files, "--answers", tmp_path / "answers.csv", "--format", "json"
    )
    assert (told.code, told.json["taken"]) == (0, 1)
    assert (
        run("relabel", "run", *words, "--quiet", "--format", "json").json["result"]["sources"]["human"] >= 1
    )


def test_two_nameless_rows_that_contradict_are_no_answer(tmp_path, server):
    job = finished(tmp_path, server)
    export_review(job, out=tmp_path / "review.csv", most=1)
    row = read_table(tmp_path / "review.csv")[0]
    rows = [{**row, "human_label": label} for label in ("rain", "sun")]
    write_rows(tmp_path / "answers.csv", list(row), [list(one.values()) for one in rows])
    found = import_review(job, tmp_path / "answers.csv")
    assert (found.taken, len(found.contested)) == (0, 1)
    assert "row 1 of answers.csv: people are split" in found.contested[0]
    write_rows(tmp_path / "answers.csv", list(row), [list(rows[0].values())] * 2)
    assert import_review(job, tmp_path / "answers.csv").labels == {"rain": 1}
