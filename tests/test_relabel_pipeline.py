import asyncio
import json

import pandas as pd
import pytest

from audit.errors import ArgumentError, AuditError, ColumnError, EndpointError
from relabel.connect import Settings
from relabel.cost import Budget, Price, TokenRate, find_price
from relabel.journal import Journal
from relabel.pipeline import Judge, Stop, judge_items
from relabel.records import Judged, Reply, Status, Verdict
from relabel.rehearse import PROFILES, Fault, RehearsalServer
from relabel.rubric import Rubric
from relabel.worklist import Item
from tests.relabel_kit import (
    KEY,
    RUBRIC,
    RUBRIC_TEXT,
    make_job,
    read_table,
    scripts,
    text_of,
    truth_of,
    write_table,
)

QUICK = Settings(concurrency=8, timeout=20)


pytestmark = pytest.mark.usefixtures("endpoint_key")


class Scripted:
    """A client without a network: a function from the item's text to a verdict."""

    model, base_url = "m", "http://a/v1"

    def __init__(self, answer=lambda text: Verdict(status=Status.OK, label="rain", confidence=0.9)):
        self.answer = answer
        self.asked = []
        self.now = self.most = 0

    async def judge(self, request):
        self.asked.append(request)
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        text = request.messages[-1]["content"]
        return Judged(
            request, Reply(body={}, prompt_tokens=100, completion_tokens=10, attempts=1), self.answer(text)
        )


def judge(items, client, journal, **more):
    answers = []
    who = Judge(client=client, params={"max_tokens": 20}, price=more.pop("price", None), longest_reply=20)
    asyncio.run(
        judge_items(
            items,
            rubric=RUBRIC,
            judge=who,
            journal=journal,
            on_answer=answers.append,
            **{"concurrency": 4, **more},
        )
    )
    return answers


def items(count):
    return [Item(id=n, row={"text": text_of(n)}) for n in range(count)]


def test_every_item_is_answered_once_and_kept(tmp_path):
    client = Scripted()
    with Journal(tmp_path / "j.sqlite") as journal:
        answers = judge(items(300), client, journal, concurrency=7)
        assert sorted(answer.item.id for answer in answers) == list(range(300))
        assert journal.counts() == {"ok": 300}
    assert client.most == 7


def test_nothing_known_is_asked_again_and_repeats_are_fresh(tmp_path):
    client = Scripted()
    with Journal(tmp_path / "j.sqlite") as journal:
        judge(items(20), client, journal)
        again = judge(items(30), client, journal)
        assert sum(answer.reused for answer in again) == 20
        assert len(client.asked) == 30
        judge(items(20), client, journal, repeat=1)
        assert len(client.asked) == 50
        judge(items(20), client, journal, repeat=1, shuffle_seed=4)
        assert len(client.asked) == 70
    assert len({request.key for request in client.asked}) == 70


def test_what_failed_is_asked_again(tmp_path):
    refuse = Scripted(lambda text: Verdict(status=Status.REFUSED, reason="no"))
    with Journal(tmp_path / "j.sqlite") as journal:
        assert {answer.verdict.status for answer in judge(items(5), refuse, journal)} == {"refused"}
        assert not any(answer.reused for answer in judge(items(5), Scripted(), journal))


def test_a_new_synonym_reads_old_replies_again_without_asking(tmp_path):
    body = {"choices": [{"message": {"content": json.dumps({"label": "drizzle"})}, "finish_reason": "stop"}]}

    class Drizzle(Scripted):
        async def judge(self, request):
            reply = Reply(body=body, attempts=1)
            return Judged(request, reply, Verdict(status=Status.NOT_IN_SET, reason="drizzle"))

    wider = Rubric.parse(RUBRIC_TEXT.replace("[wet]", "[wet, drizzle]"))
    answers, client = [], Scripted()
    with Journal(tmp_path / "j.sqlite") as journal:
        judge(items(3), Drizzle(), journal)
        who = Judge(client=client, params={"max_tokens": 20})
        asyncio.run(judge_items(items(3), rubric=wider, judge=who, journal=journal, on_answer=answers.append))
    assert [answer.verdict.label for answer in answers] == ["rain"] * 3
    assert client.asked == []


def test_items_are_read_only_as_they_are_needed(tmp_path):
    """A worker that is stuck must hold up the reading: what is read and not answered stays bounded."""
    read, answered, most = [], [], []

    def source():
        for item in items(2000):
            read.append(item.id)
            most.append(len(read) - len(answered))
            yield item

    with Journal(tmp_path / "j.sqlite") as journal:
        who = Judge(client=Scripted(), params={})
        asyncio.run(
            judge_items(
                source(), rubric=RUBRIC, judge=who, journal=journal, on_answer=answered.append, concurrency=4
            )
        )
    assert len(answered) == 2000
    assert max(most) <= 2 * 128


def test_a_stop_lets_requests_finish_and_names_the_rest(tmp_path):
    stop, client = Stop(), Scripted()

    def answer(text):
        if len(client.asked) >= 30:
            stop.request("enough")
        return Verdict(status=Status.OK, label="sun")

    client.answer = answer
    with Journal(tmp_path / "j.sqlite") as journal:
        answers = judge(items(200), client, journal, stop=stop)
        assert len(answers) == 200
        done = [a for a in answers if a.asked]
        assert len(done) == len(client.asked) == journal.counts()["ok"] < 45
        rest = [a.verdict for a in answers if not a.asked]
    assert {verdict.status for verdict in rest} == {Status.PENDING}
    assert rest[0].reason == "not asked: enough"


def test_a_gone_endpoint_stops_the_run(tmp_path):
    client = Scripted(lambda text: Verdict(status=Status.TRANSPORT, reason="connection refused"))
    with Journal(tmp_path / "j.sqlite") as journal:
        answers = judge(items(500), client, journal)
    assert 20 <= len(client.asked) < 30
    rest = [answer.verdict.reason for answer in answers if not answer.asked]
    assert len(rest) == 500 - len(client.asked)
    assert "in a row got no reply (connection refused)" in rest[0]


def test_single_failures_do_not_stop_it(tmp_path):
    client = Scripted()
    client.answer = lambda text: (
        Verdict(status=Status.TRANSPORT, reason="cut")
        if len(client.asked) % 3
        else Verdict(status=Status.OK, label="sun")
    )
    with Journal(tmp_path / "j.sqlite") as journal:
        judge(items(200), client, journal)
    assert len(client.asked) == 200


def test_an_error_in_a_worker_ends_the_run_with_that_error(tmp_path):
    def answer(text):
        raise EndpointError("the key is wrong; set another")

    with Journal(tmp_path / "j.sqlite") as journal, pytest.raises(EndpointError, match="the key is wrong"):
        judge(items(50), Scripted(answer), journal)


def test_a_journal_that_cannot_be_written_ends_the_run(tmp_path):
    with Journal(tmp_path / "j.sqlite") as journal:
        judge(items(1), Scripted(), journal)
        journal._con.execute("DROP TABLE reply")
        journal._con.execute(
            "CREATE TABLE reply (key, id, at, run, repeat, rubric, prompt_tokens, completion_tokens,"
            " status, label, confidence, confidence_kind, rationale, clause, reason)"
        )
        with pytest.raises(AuditError, match=r"the journal failed .* check the disk"):
            judge(items(50), Scripted(), journal)


# --- money


PRICE = Price(input=10.0, output=100.0, source="given")  # 100 + 10 tokens: $0.002 a request


def test_a_budget_is_never_passed(tmp_path):
    client = Scripted()
    with Journal(tmp_path / "j.sqlite") as journal:
        budget = Budget(0.1)
        answers = judge(items(200), client, journal, price=PRICE, budget=budget)
    assert budget.spent == pytest.approx(0.002 * len(client.asked))
    # the last request is not made when a longest reply (20 tokens) and three times its prompt might pass the limit
    assert 0.085 <= budget.spent <= 0.1
    assert {a.verdict.status for a in answers if not a.asked} == {Status.BUDGET}
    assert len(answers) == 200


def test_what_earlier_runs_spent_counts(tmp_path):
    client = Scripted()
    with Journal(tmp_path / "j.sqlite") as journal:
        judge(items(50), client, journal, price=PRICE, budget=Budget(0.1, spent=0.099))
    assert client.asked == []


def test_a_budget_of_nothing_asks_nothing_and_a_negative_one_is_an_error():
    assert not Budget(0.0).reserve(0.001)
    assert Budget(None).reserve(1e9)
    with pytest.raises(ArgumentError, match="negative"):
        Budget(-1)


def test_prices_come_from_the_list_or_are_given_or_unknown():
    listed = find_price("gpt-4o-mini", base_url="https://api.openai.com/v1")
    assert listed is not None
    assert 0 < listed.input < listed.output
    assert "genai-prices" in listed.source
    assert find_price("gpt-4o-mini", base_url="http://localhost:8000/v1") is None
    assert find_price("no-such-model", base_url="https://api.openai.com/v1") is None
    given = find_price("x", base_url="http://localhost/v1", price_in=1, price_out=2)
    assert given == Price(input=1, output=2, source="given")
    assert given.cost(1_000_000, 500_000) == 2.0
    with pytest.raises(ArgumentError, match="two parts"):
        find_price("x", base_url="http://localhost/v1", price_in=1)
    with pytest.raises(ArgumentError, match="not negative"):
        find_price("x", base_url="http://localhost/v1", price_in=1, price_out=-2)


def test_tokens_are_guessed_and_then_learnt():
    rate = TokenRate()
    assert (rate.prompt(400), rate.completion) == (100, 80)
    rate.learn(1000, prompt_tokens=500, completion_tokens=20)
    rate.learn(1000, prompt_tokens=500, completion_tokens=40)
    assert (rate.prompt(400), rate.completion) == (200, 30)


# --- whole runs on a rehearsal server


def test_a_run_from_file_to_file(tmp_path):
    with RehearsalServer(scripts(400)) as server:
        job = make_job(tmp_path, server.base_url, items=400, adjudicator="adjudicator")
        seen = []
        result = job.run(on_progress=seen.append)
        rows, source = read_table(job.paths().out), read_table(tmp_path / "data.csv")
        counts = server.counts()
    assert [[row["id"], row["text"], row["label"]] for row in rows] == [list(row.values()) for row in source]
    assert (result.rows, result.items, result.escalated, result.exit_code) == (500, 400, 60, 0)
    assert counts.by_model == {"judge": 400, "adjudicator": 60}
    right = sum(row["label_clean"] == truth_of(n % 400) for n, row in enumerate(rows)) / 500
    before = sum(row["label"] == truth_of(n % 400) for n, row in enumerate(rows)) / 500
    assert before == 0.9
    assert right > 0.93
    assert {row["label_source"] for row in rows} == {"judge", "adjudicator"}
    assert {(row["status"], row["rubric_version"], row["confidence_kind"]) for row in rows} == {
        ("ok", "3", "logprob")
    }
    assert rows[5]["label_clean"] == rows[405]["label_clean"]
    assert result.compared == 500
    assert result.kept == sum(row["label"] == row["label_clean"] for row in rows)
    assert {progress.phase for progress in seen} == {"judge", "adjudicator"}
    assert seen[-1].done == seen[-1].total == 60
    assert seen[-1].escalated_share == 0.15
    told = result.to_dict()
    assert json.loads(json.dumps(told)) == told
    assert told["escalation"]["items"] == 60


def test_no_model_sees_old_labels_or_the_judges(tmp_path):
    asked = []

    class Spy(RehearsalServer):
        def _chat(self, request):
            asked.append(json.loads(request.body))
            return super()._chat(request)

    with Spy(scripts(40)) as server:
        make_job(tmp_path, server.base_url, items=40, adjudicator="adjudicator").run()
    first = {body["messages"][1]["content"] for body in asked if body["model"] == "judge"}
    second = [body["messages"][1]["content"] for body in asked if body["model"] == "adjudicator"]
    assert len(second) == 6
    assert set(second) <= first
    systems = {body["messages"][0]["content"] for body in asked}
    assert len(systems) == 1


def test_the_same_command_asks_nothing_twice(tmp_path):
    with RehearsalServer(scripts(60)) as server:
        job = make_job(tmp_path, server.base_url, adjudicator="adjudicator")
        job.run()
        before, table = server.counts().requests, job.paths().out.read_bytes()
        result = job.run()
        assert server.counts().requests == before
    assert job.paths().out.read_bytes() == table
    assert (result.judge.asked, result.judge.reused, result.adjudicator.reused) == (0, 60, 9)


def test_the_judge_alone_works(tmp_path):
    with RehearsalServer(scripts(40)) as server:
        result = make_job(tmp_path, server.base_url, items=40).run()
    assert (result.adjudicator, result.escalated, result.policy.kind) == (None, 0, "none")
    assert result.sources == {"judge": 50}


def test_two_endpoints_with_two_keys(tmp_path, monkeypatch):
    monkeypatch.setenv("ADJUDICATOR_API_KEY", "sk-other-9876543210")
    with (
        RehearsalServer(scripts(40), api_key=KEY) as one,
        RehearsalServer(scripts(40), api_key="sk-other-9876543210") as two,
    ):
        job = make_job(
            tmp_path,
            one.base_url,
            items=40,
            adjudicator="adjudicator",
            adjudicator_base_url=two.base_url,
            escalate="50%",
        )
        result = job.run()
        assert (one.counts().by_model, two.counts().by_model) == ({"judge": 40}, {"adjudicator": 20})
    assert result.exit_code == 0


def test_rows_without_a_verdict_are_listed_and_taken_up_later(tmp_path):
    faults = [Fault(kind="refusal", contains="Report 7:"), Fault(kind="content_filter", contains="Report 8:")]
    with RehearsalServer(scripts(40), faults=faults) as server:
        job = make_job(tmp_path, server.base_url, items=40, settings=QUICK)
        result = job.run()
        listed = read_table(job.paths().unresolved)
        assert (result.exit_code, result.without_verdict) == (3, 4)
        assert [(row["row"], row["status"]) for row in listed] == [
            (n, "refused") for n in ("8", "9", "48", "49")
        ]
        rows = read_table(job.paths().out)
        assert [rows[7][name] for name in ("label_clean", "label_source", "status", "confidence")] == [
            "",
            "none",
            "refused",
            "",
        ]
        assert rows[7]["label"] == "rain"
        server.faults = ()
        before = server.counts().requests
        result = job.run()
        assert server.counts().requests == before + 2
    assert (result.exit_code, result.unresolved) == (0, None)
    assert not job.paths().unresolved.exists()


def test_the_adjudicator_helps_out_where_the_judge_declines(tmp_path):
    with RehearsalServer(
        scripts(40), faults=[Fault(kind="refusal", contains="Report 7:", limit=1)]
    ) as server:
        job = make_job(tmp_path, server.base_url, items=40, adjudicator="adjudicator", escalate=0.0)
        result = job.run()
    assert (result.escalated, result.exit_code) == (1, 0)
    assert read_table(job.paths().out)[7]["label_source"] == "adjudicator"


def test_faults_that_pass_leave_no_trace(tmp_path):
    faults = [
        Fault(kind="rate_limit", share=0.1, per_request=1, retry_after=0.0),
        Fault(kind="server_error", share=0.1, per_request=1),
        Fault(kind="cut", share=0.1, per_request=1),
    ]
    with RehearsalServer(scripts(60)) as server:
        make_job(tmp_path, server.base_url, settings=QUICK).run()
        calm = (tmp_path / "clean.csv").read_bytes()
    for name in ("clean.csv", "clean.journal.sqlite"):
        (tmp_path / name).unlink()
    with RehearsalServer(scripts(60), faults=faults) as server:
        result = make_job(tmp_path, server.base_url, settings=QUICK).run()
        assert server.counts().by_fault
    assert result.exit_code == 0
    assert (tmp_path / "clean.csv").read_bytes() == calm


@pytest.mark.parametrize(
    ("profile", "kind"), [("full", "logprob"), ("reasoning", "agreement"), ("bare", "agreement")]
)
def test_endpoints_of_all_kinds_give_labels_and_their_kind_of_confidence(tmp_path, profile, kind):
    with RehearsalServer(scripts(15), profile=PROFILES[profile]) as server:
        result = make_job(tmp_path, server.base_url, items=15, settings=QUICK).run()
        assert result.exit_code == 0
        assert result.judge.confidence_kinds == {kind: 15}
        with Journal(tmp_path / "clean.journal.sqlite", read_only=True) as journal:
            seen = journal.capabilities(base_url=server.base_url, model="judge")
    assert seen is not None
    assert seen["logprobs"] is (kind == "logprob")


def test_a_budget_in_a_run_stops_and_the_same_journal_goes_on(tmp_path):
    with RehearsalServer(scripts(60)) as server:
        job = make_job(tmp_path, server.base_url, prices=(1.0, 1.0), budget=0.017)
        result = job.run()
        assert result.exit_code == 3
        assert set(result.statuses) == {"ok", "budget"}
        assert result.stopped == "the budget is spent"
        assert 0 < result.cost_of_journal <= 0.017
        assert job.run().judge.asked == 0  # the journal's runs together have spent it
        more = make_job(tmp_path, server.base_url, prices=(1.0, 1.0), budget=5.0).run()
        assert (more.exit_code, server.counts().answered_again) == (0, 0)
    assert more.judge.reused == result.judge.asked
    assert more.cost_of_journal == pytest.approx(more.cost + result.cost)


def test_a_budget_holds_where_an_item_takes_several_samples(tmp_path):
    with RehearsalServer(scripts(60), profile=PROFILES["bare"]) as server:
        result = make_job(tmp_path, server.base_url, prices=(1.0, 10.0), budget=0.2).run()
        counts = server.counts()
    assert result.stopped == "the budget is spent"
    assert set(result.judge.confidence_kinds) == {"agreement"}
    assert 0.05 < result.cost_of_journal <= 0.2
    assert counts.prompt_tokens * 1.0 + counts.completion_tokens * 10.0 <= 0.2 * 1e6


def test_gold_chooses_the_threshold(tmp_path):
    count = 400
    write_table(tmp_path / "data.csv", items=count)
    gold = tmp_path / "gold.csv"
    gold.write_text("text,gold\n" + "".join(f'"{text_of(n)}",{truth_of(n).upper()}\n' for n in range(300)))
    with RehearsalServer(scripts(count, judge=0.15)) as server:
        job = make_job(
            tmp_path,
            server.base_url,
            items=count,
            adjudicator="adjudicator",
            gold=gold,
            target_agreement=0.9,
        )
        result = job.run()
        assert server.counts().by_model["judge"] == count  # gold items of the file are asked once
    cut = result.threshold
    assert cut.lower >= 0.9
    assert 0 < cut.coverage < 1
    kept = [row for row in read_table(job.paths().out) if row["label_source"] == "judge"]
    assert min(float(row["confidence"]) for row in kept) >= cut.threshold
    assert result.escalated == count - len(kept)
    assert result.gold["items"] == 300
    assert sum(row["label_clean"] == truth_of(int(row["id"])) for row in kept) / len(kept) >= 0.9


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("text,gold\nx,rain\n", "too few to show an agreement of 0.95: it takes 59"),
        ("text,gold\nx,hail\n", "row 1: 'hail' is no label of the rubric"),
        ("text,gold\nx,rain\nX ,sun\n", "row 2: this item has another label"),
        ("text,gold\nx,\n", "no labelled row"),
        ("text,a,b\nx,rain,sun\n", "--gold-label"),
    ],
)
def test_gold_that_is_no_use_is_refused_before_anything_is_asked(tmp_path, text, part):
    (tmp_path / "gold.csv").write_text(text)
    with RehearsalServer(scripts(10)) as server:
        job = make_job(
            tmp_path,
            server.base_url,
            items=10,
            adjudicator="adjudicator",
            gold=tmp_path / "gold.csv",
            target_agreement=0.95,
        )
        with pytest.raises((ArgumentError, ColumnError), match=part):
            job.run()
        assert server.counts().requests == 0


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"label": "nope"}, "no column 'nope'"),
        ({"budget": 1.0}, "--budget needs prices"),
        ({"escalate": "20%"}, "give --adjudicator"),
        ({"adjudicator": "judge"}, "the adjudicator is the judge itself"),
        ({"base_url": "localhost:80"}, "http"),
        ({"out": "x.doc"}, "ending"),
        (
            {"rubric": Rubric.parse(RUBRIC_TEXT.replace("default_label: sun", "default_label: fog"))},
            "cannot be used",
        ),
        ({"rubric": Rubric.parse(RUBRIC_TEXT.replace("[text]", "[body]"))}, "reads column 'body'"),
        ({"base_url": None}, "set OPENAI_API_KEY"),
    ],
)
def test_what_cannot_work_is_told_before_anything_is_asked(tmp_path, monkeypatch, change, part):
    if change.get("base_url", "") is None:
        monkeypatch.delenv("OPENAI_API_KEY")
    with RehearsalServer(scripts(10)) as server:
        with pytest.raises((ArgumentError, ColumnError), match=part):
            make_job(tmp_path, server.base_url, items=10, **change).run()
        assert server.counts().requests == 0


def test_a_wrong_key_ends_the_run_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-00000000000000")
    with RehearsalServer(scripts(60), api_key=KEY) as server:
        with pytest.raises(EndpointError) as caught:
            make_job(tmp_path, server.base_url).run()
        assert server.counts().requests <= 8
    assert "sk-wrong" not in str(caught.value)


def test_the_key_is_in_no_file(tmp_path):
    with RehearsalServer(scripts(20), api_key=KEY) as server:
        result = make_job(tmp_path, server.base_url, items=20).run()
    assert KEY not in str(result)
    for path in tmp_path.iterdir():
        assert KEY.encode() not in path.read_bytes(), path


def test_a_plan_tells_what_the_run_then_does(tmp_path):
    with RehearsalServer(scripts(60)) as server:
        job = make_job(
            tmp_path,
            server.base_url,
            adjudicator="adjudicator",
            prices=(1.0, 2.0),
            adjudicator_prices=(3.0, 4.0),
        )
        plan = job.plan()
        assert not job.paths().journal.exists()
        assert server.counts().requests == 0
        result = job.run()
        after = job.plan()
    assert (plan.rows, plan.items, plan.judge.requests, plan.adjudicator.requests) == (75, 60, 60, 9)
    assert plan.judge.prompt_tokens == pytest.approx(result.judge.prompt_tokens, rel=0.1)
    assert plan.cost is not None
    assert 0.5 < plan.cost / result.cost < 2
    assert (after.judge.requests, after.judge.known, after.adjudicator.requests, after.cost) == (0, 60, 0, 0)
    assert json.loads(json.dumps(plan.to_dict()))["dry_run"]
    assert "9 requests" in plan.summary()


def test_a_plan_without_a_price_says_so(tmp_path):
    plan = make_job(tmp_path, "http://localhost:1/v1").plan()
    assert plan.cost is None
    assert "price unknown" in plan.summary()
    assert any("was not probed" in note for note in plan.notes)


def test_explain_by_row(tmp_path):
    with RehearsalServer(scripts(20), faults=[Fault(kind="refusal", contains="Report 7:")]) as server:
        job = make_job(tmp_path, server.base_url, items=20)
        job.run()
        assert job.explain(1)[0].reused
        assert "refused" in job.explain(8)[0].why
        warmer = make_job(tmp_path, server.base_url, items=20, settings=Settings(temperature=0.5))
        assert "parameter temperature was 0.0, is now 0.5" in warmer.explain(1)[0].summary()


def test_items_again_are_fresh_draws_of_the_whole_pipeline(tmp_path):
    with RehearsalServer(scripts(200, judge=0.2)) as server:
        job = make_job(tmp_path, server.base_url, items=200, adjudicator="adjudicator")
        with job.engine() as engine:
            engine.work()
            picked = [item for item in engine.worklist.read() if item.id % 2]
            before = server.counts().requests
            again = engine.again(picked, repeat=1, shuffle_seed=3)
            asked = server.counts().requests - before
            assert engine.again(picked, repeat=1, shuffle_seed=3) == again
            assert server.counts().requests == before + asked
            first = {item: decision for item, _, decision in engine.worklist.decisions()}
    assert set(again) == {item.id for item in picked}
    sources = [decision.source for decision in again.values()]
    assert asked == 100 + sources.count("adjudicator")
    assert 5 <= sources.count("adjudicator") <= 40
    differ = sum(again[item.id].verdict.label != first[item.id].verdict.label for item in picked)
    assert 0 < differ < 60


def test_a_run_inside_a_running_loop(tmp_path):
    async def notebook():
        with RehearsalServer(scripts(10)) as server:
            return make_job(tmp_path, server.base_url, items=10).run()

    assert asyncio.run(notebook()).exit_code == 0


@pytest.mark.parametrize(
    ("rows", "statuses"),
    [([None, " "], {"empty": 2}), (["a"] * 9, {"ok": 9}), (["a\0b", "\u202e\U0001f642"], {"ok": 2})],
)
def test_odd_tables_go_through(tmp_path, rows, statuses):
    with RehearsalServer(scripts(10)) as server:
        job = make_job(
            tmp_path,
            server.base_url,
            source=pd.DataFrame({"text": rows, "status": rows}, dtype=object),
            adjudicator="adjudicator",
            label=None,
        )
        result = job.run()
    assert result.statuses == statuses
    assert [row["status"] for row in read_table(job.paths().out)] == [text or "" for text in rows]
