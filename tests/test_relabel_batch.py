"""Batch files: written, answered by a rehearsal server line by line, collected; never a wrong label."""

import json
import urllib.error
import urllib.request
from dataclasses import replace

import pytest

from audit.errors import ArgumentError, InputError
from relabel.batch import collect_batch, write_batch
from relabel.capabilities import Capabilities
from relabel.connect import Settings
from relabel.journal import Journal
from relabel.recall import recalled
from relabel.rehearse import Fault, Profile, RehearsalServer
from tests.command import run, write_csv
from tests.relabel_kit import RUBRIC_TEXT, make_job, read_table, scripts, text_of, truth_of

ITEMS = 40


pytestmark = pytest.mark.usefixtures("endpoint_key")


@pytest.fixture
def server():
    with RehearsalServer(scripts(ITEMS)) as running:
        yield running


def lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def play(server, folder, *, keep=lambda number: True, name="batch_1"):
    """What the Batch API does: run every line, put good answers in one file and the others in another."""
    good, bad = [], []
    entries = [entry for path in sorted(folder.glob("*-[0-9]*.jsonl")) for entry in lines(path)]
    for number, entry in enumerate(entries):
        assert (entry["method"], entry["url"]) == ("POST", "/v1/chat/completions")
        if not keep(number):
            error = {"code": "batch_expired", "message": "This request could not be executed in time."}
            bad.append(
                {"id": f"r{number}", "custom_id": entry["custom_id"], "response": None, "error": error}
            )
            continue
        asked = urllib.request.Request(
            f"{server.base_url}/chat/completions",
            data=json.dumps(entry["body"], separators=(",", ":")).encode(),
            headers={"content-type": "application/json"},
        )
        try:
            with urllib.request.urlopen(asked, timeout=20) as answer:
                status, body = answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                status, body = error.code, json.load(error)
        response = {"status_code": status, "request_id": f"q{number}", "body": body}
        told = {"id": f"r{number}", "custom_id": entry["custom_id"], "response": response, "error": None}
        (good if status == 200 else bad).append(told)
    for end, some in (("output", good), ("error", bad)):
        if some:  # in no particular order
            text = "".join(json.dumps(told) + "\n" for told in reversed(some))
            (folder / f"{name}_{end}.jsonl").write_text(text, "utf-8")


def test_a_batch_for_the_judge_and_one_for_the_adjudicator_leave_nothing_to_ask(tmp_path, server):
    job = make_job(tmp_path, server.base_url, items=ITEMS, adjudicator="adjudicator", escalate="20%")
    with pytest.raises(ArgumentError, match="has not answered 40 items"):
        write_batch(job, folder=tmp_path / "b", role="adjudicator")
    written = write_batch(job, folder=tmp_path / "a")
    assert (written.items, written.requests, written.known) == (40, 40, 0)
    assert server.counts().requests == 0
    play(server, tmp_path / "a")
    found = collect_batch(job, folder=tmp_path / "a")
    assert (found.statuses, found.missing, found.unknown, found.exit_code) == ({"ok": 40}, 0, 0, 0)
    assert found.prompt_tokens > 0
    second = write_batch(job, folder=tmp_path / "b", role="adjudicator")
    assert second.items == 8
    assert {entry["body"]["model"] for entry in lines(tmp_path / "b" / "adjudicator-0001.jsonl")} == {
        "adjudicator"
    }
    play(server, tmp_path / "b")
    assert collect_batch(job, folder=tmp_path / "b", role="adjudicator").statuses == {"ok": 8}
    asked = server.counts().requests
    result = job.run()
    assert server.counts().requests == asked == 48
    assert (result.judge.reused, result.adjudicator.reused, result.exit_code) == (40, 8, 0)
    batched = read_table(tmp_path / "clean.csv")

    # The same job, asked at once: the same requests, so the same labels.
    direct = replace(job, out=tmp_path / "direct.csv")
    direct.run()
    assert read_table(tmp_path / "direct.csv") == batched


def test_the_custom_id_is_the_key_of_the_request(tmp_path, server):
    job = make_job(tmp_path, server.base_url, items=ITEMS)
    write_batch(job, folder=tmp_path / "a")
    entries = {entry["custom_id"]: entry for entry in lines(tmp_path / "a" / "judge-0001.jsonl")}
    with recalled(job) as recall:
        asked = list(recall.asked("judge"))
    assert {one.request.key for one in asked} == entries.keys()
    for one in asked:
        body = entries[one.request.key]["body"]
        assert body["messages"] == list(one.request.messages)
        assert body["response_format"]["type"] == "json_schema"
        assert {"samples", "sample_temperature"}.isdisjoint(body)


def test_files_keep_within_the_limits(tmp_path, server):
    job = make_job(tmp_path, server.base_url, items=ITEMS)
    written = write_batch(job, folder=tmp_path / "a", max_requests=15)
    assert [len(lines(tmp_path / "a" / f"judge-000{n}.jsonl")) for n in (1, 2, 3)] == [15, 15, 10]
    assert len(written.files) == 3
    size = (tmp_path / "a" / "judge-0001.jsonl").stat().st_size
    write_batch(job, folder=tmp_path / "b", max_bytes=size)
    sizes = [path.stat().st_size for path in sorted((tmp_path / "b").glob("*.jsonl"))]
    assert max(sizes) <= size
    assert len(sizes) >= 3
    both = [{e["custom_id"] for path in (tmp_path / f).glob("*.jsonl") for e in lines(path)} for f in "ab"]
    assert both[0] == both[1]
    assert len(both[0]) == 40


def test_an_item_too_large_for_any_file_is_named_and_no_file_remains(tmp_path, server):
    job = make_job(tmp_path, server.base_url, items=ITEMS)
    with pytest.raises(ArgumentError, match="more than a file may hold"):
        write_batch(job, folder=tmp_path / "a", max_bytes=100)
    table = write_csv(tmp_path / "long.csv", ["text"], [(text_of(1),), ("long " * 5000,)])
    with pytest.raises(ArgumentError, match="more than a file may hold"):
        write_batch(replace(job, source=table, label=None), folder=tmp_path / "a", max_bytes=10_000)
    assert list((tmp_path / "a").iterdir()) == []


def test_a_folder_holds_one_batch(tmp_path, server):
    job = make_job(tmp_path, server.base_url, items=ITEMS)
    write_batch(job, folder=tmp_path / "a")
    with pytest.raises(ArgumentError, match="another --dir"):
        write_batch(job, folder=tmp_path / "a")
    with pytest.raises(ArgumentError, match="no adjudicator"):
        write_batch(job, folder=tmp_path / "b", role="adjudicator")
    with pytest.raises(ArgumentError, match="no adjudicator"):
        collect_batch(job, folder=tmp_path / "a", role="adjudicator")
    with pytest.raises(ArgumentError, match="at least 1"):
        write_batch(job, folder=tmp_path / "b", max_requests=0)
    with pytest.raises(InputError, match=r"holds no \.jsonl file"):
        collect_batch(job, folder=tmp_path / "none")


def test_what_expired_is_written_again_and_what_is_known_is_not(tmp_path, server):
    job = make_job(tmp_path, server.base_url, items=ITEMS)
    write_batch(job, folder=tmp_path / "a")
    play(server, tmp_path / "a", keep=lambda number: number % 4)
    found = collect_batch(job, folder=tmp_path / "a")
    assert found.statuses == {"ok": 30, "transport": 10}
    assert found.exit_code == 3
    assert "batch write writes what is missing again" in found.summary()
    again = write_batch(job, folder=tmp_path / "b")
    assert (again.items, again.known) == (10, 30)
    play(server, tmp_path / "b")
    assert collect_batch(job, folder=tmp_path / "b").statuses == {"ok": 10}
    assert job.run().judge.asked == 0
    assert write_batch(job, folder=tmp_path / "c").items == 0
    assert not (tmp_path / "c").exists()


def test_collecting_twice_and_collecting_before_the_end_change_nothing(tmp_path, server):
    job = make_job(tmp_path, server.base_url, items=ITEMS)
    write_batch(job, folder=tmp_path / "a")
    early = collect_batch(job, folder=tmp_path / "a")
    assert (early.statuses, early.missing, early.exit_code) == ({}, 40, 3)
    play(server, tmp_path / "a", keep=lambda number: number % 4)
    collect_batch(job, folder=tmp_path / "a")
    with Journal(tmp_path / "clean.journal.sqlite", read_only=True) as journal:
        before = journal.spent(), journal.counts()
    again = collect_batch(job, folder=tmp_path / "a")
    assert (again.statuses, again.unchanged, again.prompt_tokens) == ({}, 40, 0)
    with Journal(tmp_path / "clean.journal.sqlite", read_only=True) as journal:
        assert (journal.spent(), journal.counts()) == before


def test_a_verdict_that_is_there_is_never_replaced(tmp_path, server):
    job = make_job(tmp_path, server.base_url, items=ITEMS)
    write_batch(job, folder=tmp_path / "a")
    job.run()
    before = read_table(tmp_path / "clean.csv")
    server.script = scripts(ITEMS, judge=0.45)
    play(server, tmp_path / "a")
    assert collect_batch(job, folder=tmp_path / "a").unchanged == 40
    job.run()
    assert read_table(tmp_path / "clean.csv") == before


def test_a_parameter_turned_down_is_learned_and_left_out_of_the_next_files(tmp_path):
    with RehearsalServer(scripts(ITEMS), profile=Profile(logprobs="no")) as server:
        job = make_job(tmp_path, server.base_url, items=ITEMS)
        assert "not probed" in write_batch(job, folder=tmp_path / "a").summary()
        play(server, tmp_path / "a")
        found = collect_batch(job, folder=tmp_path / "a")
        assert (found.statuses, found.learned) == ({"transport": 40}, ("logprobs",))
        again = write_batch(job, folder=tmp_path / "b")
        body = lines(tmp_path / "b" / "judge-0001.jsonl")[0]["body"]
        assert "logprobs" not in body
        assert body["n"] == 5  # now the agreement of samples is the confidence
        assert again.requests == 40
        play(server, tmp_path / "b")
        assert collect_batch(job, folder=tmp_path / "b").statuses == {"ok": 40}
        assert job.run().judge.confidence_kinds == {"agreement": 40}


def test_samples_are_lines_of_their_own_where_one_choice_comes_at_a_time(tmp_path):
    with RehearsalServer(scripts(ITEMS), profile=Profile(logprobs="no", n="no")) as server:
        job = make_job(tmp_path, server.base_url, items=ITEMS, settings=Settings(samples=3))
        with Journal(tmp_path / "clean.journal.sqlite") as journal:
            can = Capabilities(json_schema=True, logprobs=False, n=False)
            journal.record_capabilities(can.to_dict(), base_url=server.base_url, model="judge")
        written = write_batch(job, folder=tmp_path / "a", max_requests=31)
        assert (written.items, written.requests, len(written.files)) == (
            40,
            120,
            4,
        )  # 10 items a file: never parted
        entries = lines(tmp_path / "a" / "judge-0001.jsonl")
        assert [entry["custom_id"][64:] for entry in entries[:3]] == ["", ".1", ".2"]
        assert len({entry["body"]["seed"] for entry in entries[:3]}) == 3
        play(
            server, tmp_path / "a", keep=lambda number: number not in (0, 4)
        )  # one sample of two items is lost
        found = collect_batch(job, folder=tmp_path / "a")
        assert found.statuses == {"ok": 40}
        result = job.run()
    assert (result.judge.asked, result.judge.confidence_kinds) == (0, {"agreement": 40})
    confidences = {round(float(row["confidence"]), 2) for row in read_table(tmp_path / "clean.csv")}
    assert confidences <= {0.5, 0.67, 1.0}


def test_a_cut_reply_is_written_again_with_the_raised_limit(tmp_path, server):
    job = make_job(tmp_path, server.base_url, items=ITEMS, settings=Settings(max_tokens=10))
    write_batch(job, folder=tmp_path / "a")
    assert lines(tmp_path / "a" / "judge-0001.jsonl")[0]["body"]["max_tokens"] == 10
    play(server, tmp_path / "a")
    assert collect_batch(job, folder=tmp_path / "a").statuses == {"truncated": 40}
    write_batch(job, folder=tmp_path / "b")
    assert lines(tmp_path / "b" / "judge-0001.jsonl")[0]["body"]["max_tokens"] == 40
    play(server, tmp_path / "b")
    assert collect_batch(job, folder=tmp_path / "b").statuses == {"ok": 40}


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ("refusal", "refused"),
        ("content_filter", "refused"),
        ("out_of_set", "not_in_set"),
        ("null_content", "unparsable"),
        ("garbage", "unparsable"),
        ("two_labels", "unparsable"),
    ],
)
def test_replies_without_a_label_have_their_status(tmp_path, server, fault, status):
    job = make_job(tmp_path, server.base_url, items=ITEMS)
    write_batch(job, folder=tmp_path / "a")
    server.faults = [Fault(kind=fault)]
    play(server, tmp_path / "a")
    assert collect_batch(job, folder=tmp_path / "a").statuses == {status: 40}


def test_an_item_too_long_for_the_endpoint_is_told_by_the_error_file(tmp_path):
    with RehearsalServer(scripts(ITEMS), profile=Profile(context=200)) as server:
        job = make_job(tmp_path, server.base_url, items=ITEMS)
        write_batch(job, folder=tmp_path / "a")
        play(server, tmp_path / "a")
        assert collect_batch(job, folder=tmp_path / "a").statuses == {"too_long": 40}


def test_lines_that_cannot_be_joined_or_read_are_told_and_never_used(tmp_path, server):
    job = make_job(tmp_path, server.base_url, items=ITEMS)
    write_batch(job, folder=tmp_path / "a")
    play(server, tmp_path / "a")
    path = tmp_path / "a" / "batch_1_output.jsonl"
    told = lines(path)
    told[0]["custom_id"] = "0" * 64  # of no request
    told[1]["custom_id"] = "row-7"  # of another program
    text = [json.dumps(entry) for entry in told]
    text[2] = text[2][: len(text[2]) // 2]  # cut
    text[3] = "[]"
    text[4] = json.dumps({"custom_id": told[4]["custom_id"]})
    path.write_text("\n".join([*text, ""]), "utf-8")
    found = collect_batch(job, folder=tmp_path / "a")
    assert found.statuses == {"ok": 35}
    assert (found.missing, found.unknown) == (5, 2)
    assert found.unreadable == tuple(f"batch_1_output.jsonl, line {n}" for n in (3, 4, 5))
    assert "were not used" in found.summary()


def test_a_request_that_was_changed_by_hand_is_not_this_job_s(tmp_path, server):
    job = make_job(tmp_path, server.base_url, items=ITEMS)
    write_batch(job, folder=tmp_path / "a")
    path = tmp_path / "a" / "judge-0001.jsonl"
    entries = lines(path)
    entries[0]["body"]["messages"][1]["content"] = "Say sun."
    entries[1]["body"]["model"] = "adjudicator"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), "utf-8")
    play(server, tmp_path / "a")
    found = collect_batch(job, folder=tmp_path / "a")
    assert (found.statuses, found.unknown) == ({"ok": 38}, 2)


def test_another_rubric_or_setting_finds_nothing_of_its_own(tmp_path, server):
    job = make_job(tmp_path, server.base_url, items=ITEMS)
    write_batch(job, folder=tmp_path / "a")
    play(server, tmp_path / "a")
    found = collect_batch(replace(job, settings=Settings(seed=9)), folder=tmp_path / "a")
    assert (found.statuses, found.unknown) == ({}, 40)


def test_a_good_reply_counts_though_the_error_file_names_its_request_too(tmp_path, server):
    job = make_job(tmp_path, server.base_url, items=ITEMS)
    write_batch(job, folder=tmp_path / "a")
    play(server, tmp_path / "a", keep=lambda number: False, name="batch_1")
    play(server, tmp_path / "a", name="batch_2")
    assert collect_batch(job, folder=tmp_path / "a").statuses == {"ok": 40}


def test_gold_items_are_asked_once_whether_they_stand_in_the_table_or_not(tmp_path, server):
    write_csv(tmp_path / "gold.csv", ["text", "gold"], [(text_of(n), truth_of(n)) for n in range(30, 39)])
    table = write_csv(tmp_path / "some.csv", ["text"], [(text_of(n),) for n in range(35)])
    job = make_job(
        tmp_path, server.base_url, items=ITEMS, source=table, label=None, gold=tmp_path / "gold.csv"
    )
    written = write_batch(job, folder=tmp_path / "a")
    assert written.items == 39
    play(server, tmp_path / "a")
    assert collect_batch(job, folder=tmp_path / "a").statuses == {"ok": 39}
    assert job.run().judge.asked == 0
    assert server.counts().requests == 39


def test_the_commands_go_round(tmp_path, server):
    (tmp_path / "rubric.md").write_text(RUBRIC_TEXT, "utf-8")
    make_job(tmp_path, server.base_url, items=ITEMS)
    words = [
        tmp_path / "data.csv", "--rubric", tmp_path / "rubric.md", "--judge", "judge", "--base-url",
        server.base_url, "--out", tmp_path / "clean.csv",
    ]  # fmt: skip
    folder = ["--dir", tmp_path / "a"]
    told = run("relabel", "batch", "write", *words, *folder, "--max-requests", "25")
    assert told.code == 0
    assert "wrote 40 requests about 40 items" in told.out
    assert len(list((tmp_path / "a").iterdir())) == 2
    assert run("relabel", "batch", "collect", *words, *folder).code == 3
    play(server, tmp_path / "a")
    told = run("relabel", "batch", "collect", *words, *folder, "--format", "json")
    assert (told.code, told.json["statuses"]) == (0, {"ok": 40})
    told = run("relabel", "run", *words, "--quiet", "--format", "json")
    assert (told.code, told.json["judge"]["asked"]) == (0, 0)
