import multiprocessing
import os
import signal
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.errors import ArgumentError, AuditError, InputError
from relabel.explain import explain
from relabel.journal import Journal
from relabel.journal_file import MIGRATIONS
from relabel.records import CONFIDENCE_KINDS, Judged, Reply, Request, Status, Verdict
from tests.relabel_kit import RUBRIC

words = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=30)
numbers = st.integers(0, 10**9)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(words, values, max_size=4)
requests = st.builds(
    Request,
    model=words,
    base_url=st.just("http://a/v1"),
    params=objects,
    messages=st.lists(st.fixed_dictionaries({"role": words, "content": words}), min_size=1, max_size=3).map(
        tuple
    ),
    repeat=st.integers(0, 5),
)
replies = st.builds(
    Reply,
    body=st.none() | objects,
    samples=st.lists(objects, max_size=2).map(tuple),
    http_status=st.none() | st.integers(100, 599),
    status=st.none() | st.sampled_from(Status),
    error=st.none() | words,
    latency=st.floats(0, 1e6),
    prompt_tokens=numbers,
    completion_tokens=numbers,
    attempts=st.integers(0, 50),
    sent=objects,
)
valid = st.builds(
    Verdict,
    status=st.just(Status.OK),
    label=words,
    confidence=st.none() | st.floats(0, 1),
    confidence_kind=st.none() | st.sampled_from(CONFIDENCE_KINDS),
    rationale=words,
    clause=words,
)
invalid = st.builds(Verdict, status=st.sampled_from([s for s in Status if s is not Status.OK]), reason=words)


def judged(content="hello", *, verdict=None, model="m", params=None, system="s", repeat=0, tokens=(5, 3)):
    request = Request(
        model=model,
        base_url="http://a/v1",
        params=params or {"temperature": 0},
        messages=({"role": "system", "content": system}, {"role": "user", "content": content}),
        repeat=repeat,
    )
    reply = Reply(body={"x": 1}, prompt_tokens=tokens[0], completion_tokens=tokens[1])
    return Judged(request, reply, verdict or Verdict(status=Status.OK, label="rain", confidence=0.5))


FAILED = Verdict(status=Status.REFUSED, reason="declined")


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    with Journal(tmp_path_factory.mktemp("journal") / "j.sqlite") as journal:
        yield journal


@given(requests, replies, valid | invalid)
def test_what_is_recorded_comes_back(shelf, request, reply, verdict):
    shelf.record([Judged(request, reply, verdict)], rubric="h")
    stored = shelf.history(request.key)[-1]
    assert stored.key == request.key
    assert (stored.verdict, stored.repeat, stored.rubric) == (verdict, request.repeat, "h")
    assert shelf.judged(stored) == Judged(request, reply, verdict)


def test_only_what_changes_the_answer_is_in_the_key(tmp_path):
    base = judged()
    others = [
        judged("other"),
        judged(model="n"),
        judged(params={"temperature": 1}),
        judged(system="t"),
        judged(repeat=1),
    ]
    with Journal(tmp_path / "j.sqlite") as journal:
        journal.record([base], rubric="h")
        assert journal.find([entry.request.key for entry in others]) == {}
        assert set(journal.find([judged(verdict=FAILED, tokens=(9, 9)).request.key])) == {base.request.key}


def test_a_valid_record_is_preferred_and_else_the_last(tmp_path):
    later = Verdict(status=Status.UNPARSABLE, reason="prose")
    with Journal(tmp_path / "j.sqlite") as journal:
        journal.record([judged("a", verdict=FAILED), judged("a", verdict=later)], rubric="h")
        key = judged("a").request.key
        assert journal.find([key])[key].verdict == later
        journal.record([judged("a"), judged("a", verdict=FAILED)], rubric="h")
        assert journal.find([key])[key].verdict.label == "rain"
        assert [stored.verdict.status for stored in journal.history(key)] == [
            "refused",
            "unparsable",
            "ok",
            "refused",
        ]


def test_thousands_of_keys_at_once(tmp_path):
    entries = [judged(str(n)) for n in range(1200)]
    with Journal(tmp_path / "j.sqlite") as journal:
        journal.record(entries, rubric="h")
        assert len(journal.find([entry.request.key for entry in entries])) == 1200


def test_records_cannot_be_changed_or_removed(tmp_path):
    with Journal(tmp_path / "j.sqlite") as journal:
        journal.record([judged()], rubric="h")
    con = sqlite3.connect(tmp_path / "j.sqlite")
    for change in ("UPDATE reply SET label = 'sun'", "DELETE FROM reply"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            con.execute(change)
    con.close()


def test_half_characters_in_a_rationale_do_not_stop_a_run(tmp_path):
    verdict = Verdict(status=Status.OK, label="rain", rationale="a\ud800b")
    with Journal(tmp_path / "j.sqlite") as journal:
        journal.record([judged(verdict=verdict)], rubric="h")
        assert journal.find([judged().request.key])[judged().request.key].verdict.rationale == "a?b"


def test_shared_parts_are_stored_once(tmp_path):
    with Journal(tmp_path / "j.sqlite") as journal:
        journal.record([judged(str(n), system="x" * 50_000) for n in range(40)], rubric="h")
        assert journal.judged(
            journal.history(judged("7", system="x" * 50_000).request.key)[0]
        ).request.messages[0]["content"] == ("x" * 50_000)
    assert (tmp_path / "j.sqlite").stat().st_size < 500_000


def test_spending_is_summed_by_model(tmp_path):
    with Journal(tmp_path / "j.sqlite") as journal:
        journal.record(
            [judged("a"), judged("b"), judged("c", model="n"), judged("d", verdict=FAILED)], rubric="h"
        )
        found = {
            spent.model: (spent.replies, spent.prompt_tokens, spent.completion_tokens)
            for spent in journal.spent()
        }
        assert found == {"m": (3, 15, 9), "n": (1, 5, 3)}
        assert journal.counts() == {"ok": 3, "refused": 1}


def test_capabilities_are_kept_by_endpoint_and_model(tmp_path):
    with Journal(tmp_path / "j.sqlite") as journal:
        assert journal.capabilities(base_url="http://a/v1", model="m") is None
        journal.record_capabilities({"n": True}, base_url="http://a/v1/", model="m")
        journal.record_capabilities({"n": False}, base_url="http://a/v1", model="m")
        journal.record_capabilities({"n": True}, base_url="http://b/v1", model="m")
        assert journal.capabilities(base_url="http://a/v1/", model="m") == {"n": False}


def test_a_second_writer_is_told_and_readers_are_welcome(tmp_path):
    path = tmp_path / "j.sqlite"
    with Journal(path) as journal:
        journal.record([judged()], rubric="h")
        with pytest.raises(ArgumentError, match=rf"process {os.getpid()} .*--wait"):
            Journal(path)
        with Journal(path, read_only=True) as reader:
            assert reader.counts() == {"ok": 1}
            with pytest.raises(AuditError):
                reader.record([judged("b")], rubric="h")
    Journal(path).close()


def hold(path, ready, leave):
    with Journal(path) as journal:
        journal.record([judged()], rubric="h")
        ready.set()
        leave.wait()


def test_the_lock_falls_with_its_process_and_records_stay(tmp_path):
    context = multiprocessing.get_context("spawn")
    ready, leave = context.Event(), context.Event()
    process = context.Process(target=hold, args=(tmp_path / "j.sqlite", ready, leave))
    process.start()
    ready.wait(60)
    with pytest.raises(ArgumentError, match=f"process {process.pid}"):
        Journal(tmp_path / "j.sqlite")
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with Journal(tmp_path / "j.sqlite") as journal:
        assert journal.counts() == {"ok": 1}


def test_a_waiting_run_gets_its_turn(tmp_path):
    context = multiprocessing.get_context("spawn")
    ready, leave = context.Event(), context.Event()
    process = context.Process(target=hold, args=(tmp_path / "j.sqlite", ready, leave))
    process.start()
    ready.wait(60)
    leave.set()
    with Journal(tmp_path / "j.sqlite", wait=60) as journal:
        assert journal.counts() == {"ok": 1}
    process.join()


def test_files_that_are_no_journal_are_left_alone(tmp_path):
    text = tmp_path / "text"
    text.write_text("hello, this is no database at all\n" * 100)
    with pytest.raises(InputError, match="check that it is one"):
        Journal(text)
    other = tmp_path / "other.sqlite"
    con = sqlite3.connect(other)
    con.execute("CREATE TABLE t (x)")
    con.close()
    with pytest.raises(InputError, match="not a journal"):
        Journal(other)
    with pytest.raises(InputError, match="no such journal"):
        Journal(tmp_path / "none.sqlite", read_only=True)
    newer = tmp_path / "newer.sqlite"
    Journal(newer).close()
    con = sqlite3.connect(newer)
    con.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    con.close()
    with pytest.raises(InputError, match="upgrade label-audit"):
        Journal(newer)


def test_a_first_format_is_brought_up_to_date(tmp_path):
    """Whatever is added later, a journal of the first format must open and keep its records."""
    path = tmp_path / "j.sqlite"
    con = sqlite3.connect(path)
    con.executescript(f"{MIGRATIONS[0]} PRAGMA application_id = {0x4C41554A}; PRAGMA user_version = 1;")
    con.execute("INSERT INTO run VALUES (1, 0, 'h', 1)")
    con.commit()
    con.close()
    with Journal(path) as journal:
        journal.record([judged()], rubric="h")
        assert journal.run == 2


def test_explain_tells_what_differs(tmp_path):
    with Journal(tmp_path / "j.sqlite") as journal:
        journal.record([judged("a"), judged("a", model="n"), judged("b", verdict=FAILED)], rubric=RUBRIC.hash)
        same = explain(judged("a").request, journal=journal, rubric=RUBRIC)
        assert same.reused
        assert "'rain'" in same.why
        failed = explain(judged("b").request, journal=journal, rubric=RUBRIC)
        assert not failed.reused
        assert "refused (declined)" in failed.why
        changed = judged("a", params={"temperature": 1, "seed": 2}, system="s\nC9. new", repeat=1)
        other = explain(changed.request, journal=journal, rubric=RUBRIC)
        assert "never asked" in other.why
        assert len(other.near) == 2
        told = other.summary()
        for part in (
            "parameter seed was None, is now 2",
            "parameter temperature was 0, is now 1",
            "repeat was 0, is now 1",
            "the system message differs in 1 lines, the first: ['+C9. new']",
            "model was 'n', is now 'm'",
        ):
            assert part in told
        assert other.to_dict()["near"][0]["differences"]
        assert explain(judged("never").request, journal=journal, rubric=RUBRIC).near == ()
