"""What made newcomers stumble: words that misled, options that were not where they were looked for."""

from dataclasses import replace

import pytest

from audit.errors import ArgumentError
from relabel.agree import audit_pipeline
from relabel.agree_plan import plan_audit
from relabel.batch import PRICE, collect_batch, write_batch
from relabel.batch_run import run_batch
from relabel.checking import journal_status
from relabel.connect import Settings
from relabel.journal import Journal
from relabel.people import answer, question
from relabel.pipeline import Answer
from relabel.progress import Meter
from relabel.records import Status, Verdict
from relabel.rehearse import Fault, RehearsalServer
from relabel.review import export_review, import_review
from relabel.spellings import Spellings
from relabel.worklist import Item
from tests.command import run
from tests.relabel_kit import (
    RUBRIC,
    RUBRIC_TEXT,
    make_job,
    read_table,
    scripts,
    text_of,
    truth_of,
    write_table,
)
from tests.test_relabel_batch import play

ITEMS = 40


pytestmark = pytest.mark.usefixtures("endpoint_key")


@pytest.fixture
def server():
    with RehearsalServer(scripts(ITEMS)) as running:
        yield running


# --- progress


def meter(phase, statuses):
    told = []
    one = Meter(phase, total=5, price=None, on_progress=told.append, same=str.__eq__)
    for number, status in enumerate(statuses):
        label = "rain" if status is Status.OK else None
        one.count(Answer(Item(id=number, row={}, old="rain"), Verdict(status=status, label=label)))
    one.tell()
    return told[-1]


def test_items_that_were_not_asked_are_not_told_as_failures():
    told = meter("judge", [Status.OK, Status.OK, Status.REFUSED, Status.PENDING, Status.BUDGET])
    assert (told.done, told.unasked, told.no_verdict) == (3, 2, 1)
    assert told.over
    assert "3/5" in told.line()
    assert "2 not asked · 1 without verdict" in told.line()
    assert "to go" not in told.line()


def test_gold_is_called_gold():
    assert meter("gold", [Status.OK]).line().endswith("100.0% as gold")
    assert meter("judge", [Status.OK]).line().endswith("100.0% as the old labels")


def test_the_run_names_the_column_it_took_for_gold(tmp_path, server):
    gold = write_table(tmp_path / "gold.csv", items=20)
    gold.write_text(gold.read_text().replace("label", "truth", 1))
    result = make_job(tmp_path, server.base_url, gold=gold).run()
    assert "gold (column truth): the judge agrees on" in result.summary()
    assert result.to_dict()["gold"]["column"] == "truth"


# --- explain


def test_a_row_that_was_not_escalated_is_no_fault(tmp_path, server):
    job = make_job(tmp_path, server.base_url, items=ITEMS, adjudicator="adjudicator", escalate="10%")
    job.run()
    rows = read_table(tmp_path / "clean.csv")
    kept = next(n for n, row in enumerate(rows, start=1) if row["label_source"] == "judge")
    told = job.explain(kept)[1]
    assert told.why.startswith("the adjudicator was not asked about this item")
    assert told.near == ()
    escalated = next(n for n, row in enumerate(rows, start=1) if row["label_source"] == "adjudicator")
    assert job.explain(escalated)[1].reused
    renamed = replace(job, adjudicator="another").explain(escalated)[1]  # here something did change
    assert renamed.why.startswith("never asked with exactly this model")
    assert renamed.near[0].differences == ("model was 'adjudicator', is now 'another'",)


# --- agree


def test_an_audit_of_another_pipeline_than_the_run_s_says_so(tmp_path, server):
    gold = write_table(tmp_path / "gold.csv", items=ITEMS)
    job = make_job(
        tmp_path, server.base_url, items=ITEMS, adjudicator="adjudicator", gold=gold, gold_label="label",
        target_agreement=0.5,
    )  # fmt: skip
    job.run()
    same = audit_pipeline(job, items=10)
    other = audit_pipeline(replace(job, target_agreement=None), items=10)
    alone = audit_pipeline(replace(job, target_agreement=None, adjudicator=None), items=10)
    assert not [line for line in same.warnings if "Another pipeline" in line]
    assert same.to_dict()["policy"] == {"kind": "target", "value": 0.5}
    for told, option in ((other, "--escalate 0.15"), (alone, "no --adjudicator")):
        (line,) = [line for line in told.warnings if "Another pipeline" in line]
        assert line.startswith(
            f"Another pipeline than the run's: it ran with --target-agreement 0.5, this audit with {option}"
        )


def test_the_old_labels_line_of_gold_tells_how_many(tmp_path, server):
    gold = write_table(tmp_path / "gold.csv", items=ITEMS // 2)
    job = make_job(tmp_path, server.base_url, items=ITEMS, gold=gold, gold_label="label")
    job.run()
    told = audit_pipeline(job, items=10)
    assert told.gold.old_items == ITEMS // 2
    assert f"over {ITEMS // 2} items that have one" in told.summary()


def test_a_dry_run_of_agree_tells_what_the_audit_then_asks(tmp_path, server):
    job = make_job(
        tmp_path, server.base_url, items=ITEMS, adjudicator="adjudicator", escalate="25%",
        prices=(1.0, 2.0), adjudicator_prices=(10.0, 20.0),
    )  # fmt: skip
    with pytest.raises(ArgumentError, match="same options first"):
        plan_audit(job, items=12, draws=2)
    job.run()
    before = server.counts().requests
    plan = plan_audit(job, items=12, draws=2)
    assert server.counts().requests == before
    found = audit_pipeline(job, items=12, draws=2)
    assert (plan.sampled, plan.repeated) == (found.drawn, found.repeated)
    assert plan.judged == 2 * plan.items
    assert plan.judged + plan.adjudicated == pytest.approx(found.requests, abs=0.15 * found.requests)
    assert plan.cost == pytest.approx(found.cost, rel=0.3)
    assert plan.missing == 0
    assert "nothing was asked" in plan.summary()


# --- review


def test_the_place_of_an_answer_is_in_the_answers(tmp_path, server):
    job = make_job(tmp_path, server.base_url, items=ITEMS)
    job.run()
    export_review(job, out=tmp_path / "r.csv", below=1.0, most=3)
    rows = (tmp_path / "r.csv").read_text().splitlines()
    (tmp_path / "r.csv").write_text("\n".join([rows[0], *(f"{row[:-1]}hail," for row in rows[1:])]) + "\n")
    assert (
        import_review(job, tmp_path / "r.csv").rejected[1].startswith("row 2 of r.csv has the label 'hail'")
    )


def people_say(job, *numbers):
    with Journal(job.paths().journal) as journal:
        labels = Spellings(RUBRIC.labels)
        judged = [
            answer(question(RUBRIC, {"text": text_of(n)}), label="rain", note="", by="me", spellings=labels)
            for n in numbers
        ]
        journal.record(judged, rubric=RUBRIC.hash)


def test_what_a_person_has_answered_is_asked_no_more(tmp_path, server):
    job = make_job(tmp_path, server.base_url, items=ITEMS, adjudicator="adjudicator", escalate="50%")
    people_say(job, 3, 5, 8)
    assert job.plan().judge.requests == ITEMS - 3
    result = job.run()
    assert server.counts().by_model["judge"] == ITEMS - 3
    assert result.to_dict()["result"]["sources"]["human"] == len(
        [row for row in read_table(tmp_path / "data.csv") if row["text"] in map(text_of, (3, 5, 8))]
    )
    assert result.without_verdict == 0
    people_say(job, *range(ITEMS))
    server.faults = (Fault(kind="server_error"),)
    again = make_job(tmp_path, server.base_url, items=ITEMS, settings=Settings(seed=9), out=job.out)
    assert again.run().to_dict()["result"]["sources"] == {"human": result.rows}


def test_what_a_person_has_answered_is_not_written_into_a_batch(tmp_path, server):
    job = make_job(tmp_path, server.base_url, items=ITEMS)
    people_say(job, 3, 5, 8)
    written = write_batch(job, folder=tmp_path / "b")
    assert (written.items, written.known) == (ITEMS - 3, 3)


# --- batch


def test_run_batch_goes_from_files_to_the_table_by_one_command(tmp_path, server):
    prices = {"prices": (1.0, 2.0), "adjudicator_prices": (1.0, 2.0)}
    job = make_job(
        tmp_path, server.base_url, items=ITEMS, adjudicator="adjudicator", escalate="20%", **prices
    )
    folder = tmp_path / "batch"
    first = run_batch(job, folder=folder)
    assert (first.written.items, first.exit_code) == (ITEMS, 3)
    assert "give the same command again" in first.summary()
    waiting = run_batch(job, folder=folder)
    assert (waiting.written, waiting.run, waiting.collected[0].missing) == (None, None, ITEMS)
    play(server, folder / "judge-1", keep=lambda number: number != 7)  # one expired
    second = run_batch(job, folder=folder)
    assert second.written.files == (str(folder / "judge-2" / "judge-0001.jsonl"),)
    assert second.written.items == 1
    play(server, folder / "judge-2")
    third = run_batch(job, folder=folder)
    assert (third.written.role, third.written.items) == ("adjudicator", 8)
    play(server, folder / "adjudicator-1")
    before = server.counts().requests
    last = run_batch(job, folder=folder)
    assert server.counts().requests == before
    assert (last.exit_code, last.run.without_verdict, last.run.stopped) == (0, 0, "")
    assert last.run.to_dict()["result"]["sources"].keys() == {"judge", "adjudicator"}
    asked = server.counts()
    full = (asked.prompt_tokens * 1.0 + asked.completion_tokens * 2.0) / 1e6
    assert last.run.cost_of_journal == pytest.approx(PRICE * full)
    plain = make_job(
        tmp_path, server.base_url, items=ITEMS, adjudicator="adjudicator", escalate="20%", **prices
    )
    assert plain.run().cost == 0.0  # nothing is left to ask


def test_what_a_batch_could_not_label_is_left_to_run(tmp_path, server):
    server.faults = (Fault(kind="refusal", contains=text_of(4)),)
    job = make_job(tmp_path, server.base_url, items=ITEMS)
    run_batch(job, folder=tmp_path / "b")
    play(server, tmp_path / "b" / "judge-1")
    last = run_batch(job, folder=tmp_path / "b")
    assert last.run.exit_code == 3
    assert {row["status"] for row in read_table(tmp_path / "clean.unresolved.csv")} == {"refused"}
    assert "run without --batch asks" in last.summary()
    assert not (tmp_path / "b" / "judge-2").exists()


def test_a_batch_is_told_and_counted_at_half_the_price(tmp_path, server):
    job = make_job(tmp_path, server.base_url, items=ITEMS, prices=(10.0, 20.0))
    planned = job.plan().cost
    written = write_batch(job, folder=tmp_path / "b")
    assert written.cost == pytest.approx(planned / 2)
    assert f"about ${written.cost:,.4f} as a batch" in written.summary()
    play(server, tmp_path / "b")
    found = collect_batch(job, folder=tmp_path / "b")
    full = (found.prompt_tokens * 10 + found.completion_tokens * 20) / 1e6
    assert found.cost == pytest.approx(full / 2)
    assert job.run().cost_of_journal == pytest.approx(full / 2)
    assert journal_status(tmp_path / "clean.journal.sqlite").spent[0].share == 0.5
    assert "50% of the full price" in journal_status(tmp_path / "clean.journal.sqlite").summary()


def test_the_command_takes_batch_as_an_option(tmp_path, server):
    write_table(tmp_path / "data.csv", items=ITEMS)
    (tmp_path / "r.md").write_text(RUBRIC_TEXT)
    command = ["relabel", "run", tmp_path / "data.csv", "--rubric", tmp_path / "r.md", "--judge", "judge"]
    command += [
        "--base-url",
        server.base_url,
        "--out",
        tmp_path / "clean.csv",
        "--batch",
        tmp_path / "b",
        "--quiet",
    ]
    first = run(*command)
    assert (first.code, first.out.startswith("wrote 40 requests")) == (3, True)
    play(server, tmp_path / "b" / "judge-1")
    last = run(*command, "--format", "json")
    assert last.code == 0
    assert last.json["run"]["result"]["statuses"] == {"ok": 40}
    assert last.json["collected"][0]["statuses"] == {"ok": 40}


# --- the key


def test_only_what_asks_needs_a_key(tmp_path, monkeypatch, server):
    make_job(tmp_path, server.base_url, items=ITEMS).run()
    monkeypatch.delenv("OPENAI_API_KEY")
    job = make_job(tmp_path, None, items=ITEMS, judge="gpt-4o-mini")
    assert job.plan().judge.requests >= ITEMS
    assert not job.explain(1)[0].reused
    assert export_review(job, out=tmp_path / "review.csv").items == 0
    assert write_batch(job, folder=tmp_path / "b").items == ITEMS
    assert run_batch(job, folder=tmp_path / "c").written.items == ITEMS
    with pytest.raises(ArgumentError, match="set OPENAI_API_KEY"):
        job.run()


# --- reading


def test_relabel_reads_quotes_and_escapes_as_audit_does(tmp_path, server):
    rows = [f"{n};'{text_of(n)} it\\'s; so';{truth_of(n)}" for n in range(6)]
    (tmp_path / "data.csv").write_text("\n".join(["id;text;label", *rows]) + "\n")
    (tmp_path / "r.md").write_text(RUBRIC_TEXT)
    how = ["--delimiter", ";", "--quote", "'", "--escape", "\\"]
    shown = run("relabel", "check", tmp_path / "r.md", "--data", tmp_path / "data.csv", *how)
    assert f"{text_of(0)} it's; so" in shown.out
    command = ["relabel", "run", tmp_path / "data.csv", "--rubric", tmp_path / "r.md", "--judge", "judge"]
    run(*command, "--base-url", server.base_url, "--out", tmp_path / "clean.csv", "--quiet", *how)
    assert [row["text"] for row in read_table(tmp_path / "clean.csv")][2] == f"{text_of(2)} it's; so"
