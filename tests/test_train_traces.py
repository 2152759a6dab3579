"""Traces of a teacher: what is asked, how a reply is read, what survives, and what a cut run leaves."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from audit.errors import ArgumentError, EndpointError, InputError
from tests.conftest import ROOT
from tests.teacher_server import Teacher, question_of, red_or_not
from train.config import Config, GrpoSettings, TeacherSettings
from train.task import Example, Task
from train.teacher import base_url_of, is_local, read_replies
from train.traces import collect_traces, completion_text, parse_reply, read_traces, teacher_messages
from train.traces_report import survival_difference, trace_report

KEY = "sk-a-key-that-nobody-may-see-0001"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def reply(content: str | None, finish: str = "stop", **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": content, **more}, "finish_reason": finish}]}


def examples(n: int = 20) -> list[Example]:
    texts = [f"the {'red' if k % 2 else 'blue'} box {k}" for k in range(n)]
    return [
        Example(item=text, values=(text,), noisy=str(k % 2 if k % 5 else 1 - k % 2), clean=str(k % 2), split="train")
        for k, text in enumerate(texts)
    ]  # fmt: skip


def settings(url: str, **more: Any) -> Config:
    plain = {"model": "t", "samples": 2, "concurrency": 4, "retries": 0}
    teacher = TeacherSettings(base_url=url, **{**plain, **more})
    task = Task(data="none.csv", inputs=("text",), label="label", labels=("0", "1"))
    return Config(task=task, teacher=teacher, grpo=GrpoSettings(think_cap=64))


def words(text: str) -> int:
    return len(text.split())


# --- a reply, read -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "thought", "answer", "reason"),
    [
        (reply("It is red.\nAnswer: 1"), "It is red.", "1", ""),
        (reply("It is red.\n\n**Answer:** 1."), "It is red.", "1", ""),
        (reply("It is red.\nFinal answer: `0`"), "It is red.", "0", ""),
        (reply("It is red.\nSo much for that.\n1"), "It is red.\nSo much for that.", "1", ""),
        (reply("<think>It is red.</think>1"), "It is red.", "1", ""),
        (reply("<think>\nIt is red.\n</think>\n\nAnswer: 1"), "It is red.", "1", ""),
        (reply("It is red.</think>1"), "It is red.", "1", ""),
        (reply("1", reasoning_content="It is red."), "It is red.", "1", ""),
        (reply("As said.\nAnswer: 1", reasoning="It is red."), "It is red.", "1", ""),
        (reply("It is 1 of many.\nAnswer: 10"), "", None, "no answer"),
        (reply("It is red.\nAnswer: 1 or 0"), "", None, "no answer"),
        (reply("Answer: 1\nbecause it is red"), "", None, "no answer"),
        (reply("Answer: 0\nNo, it is red.\nAnswer: 1"), "", None, "two answers"),
        (reply("Answer: 1"), "", "1", "no thought"),
        (reply("<think></think>1"), "", "1", "no thought"),
        (reply("<think>It is</think>red</think>1"), "", None, "no answer"),
        (reply("<think>a <think>b</think>1"), "", "1", "tags in the thought"),
        (reply("1", reasoning_content="I end with </think> now"), "", "1", "tags in the thought"),
        (reply("I end with <|im_end|> now\nAnswer: 1"), "", "1", "tags in the thought"),
        (reply("It is red.\nAnswer: 1", "length"), "", None, "cut at the token limit"),
        (reply("It is red.\nAnswer: 1", "content_filter"), "", None, "refused"),
        (reply(None, refusal="I would rather not"), "", None, "refused"),
        (reply(""), "", None, "no text"),
        (reply(None), "", None, "no text"),
        ({"choices": []}, "", None, "no text"),
        ({"refused": "too long"}, "", None, "refused"),
    ],
)  # fmt: skip
def test_a_reply_is_read_strictly(
    body: dict[str, Any], thought: str, answer: str | None, reason: str
) -> None:
    draft = parse_reply(body, labels=("0", "1"))
    assert (draft.thought, draft.answer, draft.reason) == (thought, answer, reason)


def test_other_tags_of_the_student_may_not_stand_in_a_thought() -> None:
    body = reply("so [THINK] it is\nAnswer: 1")
    assert parse_reply(body, labels=("0", "1"), tags=("[THINK]", "[/THINK]")).reason == "tags in the thought"
    assert parse_reply(body, labels=("0", "1")).reason == ""


def test_labels_of_several_words() -> None:
    labels = ("very good", "good", "no.")
    assert parse_reply(reply("well\nLabel: very good"), labels=labels).answer == "very good"
    assert parse_reply(reply("well\nAnswer: no."), labels=labels).answer == "no."
    assert parse_reply(reply("well\nAnswer: Good"), labels=labels).reason == "no answer"


# --- asking --------------------------------------------------------------------------------------------------


def test_the_teacher_is_asked_and_never_told(tmp_path: Path) -> None:
    rows = examples()
    with Teacher(red_or_not) as teacher:
        found = collect_traces(settings(teacher.base_url, instruction="Judge."), rows, tmp_path, count=words)
    assert len(teacher.bodies) == found.asked == 40
    assert set(teacher.asked.values()) == {1}
    assert teacher.keys == {f"Bearer {KEY}"}
    for body in teacher.bodies:
        system, user = (message["content"] for message in body["messages"])
        assert system.startswith("Judge.")
        assert "0, 1" in system
        assert user.startswith("Text: the ")
        assert set(body) == {"model", "messages", "temperature", "max_tokens", "seed"}
    # both labels' items are asked in the same words: only the item differs
    asked = {
        question_of(body): json.dumps(body["messages"]).replace(question_of(body), "")
        for body in teacher.bodies
    }
    assert len(set(asked.values())) == 1
    assert KEY not in (tmp_path / "replies.jsonl").read_text()


def test_only_what_reaches_the_label_survives(tmp_path: Path) -> None:
    rows = examples()
    with Teacher(lambda sent: red_or_not(sent, error=0.5)) as teacher:
        found = collect_traces(settings(teacher.base_url, samples=4), rows, tmp_path, count=words)
        served = {(question_of(b), b["seed"]): red_or_not(b, error=0.5)["content"] for b in teacher.bodies}
    truth = {row.item: row.clean for row in rows}
    right = sum(text.endswith(truth[item]) for (item, _), text in served.items())
    assert sum(reasons.count("kept") for reasons in found.draws.values()) == right
    assert 0 < right < 80
    assert {trace.item for trace in found.traces} == {
        item for (item, _), text in served.items() if text.endswith(truth[item])
    }
    assert all(trace.label == truth[trace.item] for trace in found.traces)
    assert read_traces(tmp_path) == {trace.item: trace for trace in found.traces}


def test_which_trace_of_an_item_is_kept(tmp_path: Path) -> None:
    row = examples(2)[1:]

    def thinks(sent: dict[str, Any]) -> dict[str, Any]:
        return {"content": f"{'so ' * (sent['seed'] % 7 + 1)}\nAnswer: 1"}

    with Teacher(thinks) as teacher:
        kept = {
            how: collect_traces(
                settings(teacher.base_url, samples=9, keep=how), row, tmp_path, count=words, seed=1
            ).traces[0]
            for how in ("first", "shortest", "random")
        }
        assert len(teacher.bodies) == 9  # the choice asks nothing anew
    assert kept["first"].sample == 0
    assert kept["shortest"].tokens == min(
        9, kept["shortest"].tokens, kept["first"].tokens, kept["random"].tokens
    )
    assert kept["shortest"].tokens < kept["first"].tokens or kept["first"].tokens == 6
    assert kept["random"].thought.startswith("so")


def test_a_trace_must_fit_the_cap(tmp_path: Path) -> None:
    row = examples(2)[1:]
    text = completion_text("it is red", "1")
    exact = words(text) + 1  # and the token that ends it
    with Teacher(lambda sent: red_or_not(sent, error=0.0)) as teacher:
        for cap, reason in ((exact, "kept"), (exact - 1, "too long")):
            found = collect_traces(settings(teacher.base_url, samples=1, cap=cap), row, tmp_path, count=words)
            assert found.draws[row[0].item] == (reason,)
        small = dataclasses.replace(
            settings(teacher.base_url, samples=1), grpo=GrpoSettings(think_cap=exact - 1)
        )
        assert not collect_traces(small, row, tmp_path, count=words).traces  # no cap of its own: think_cap


def test_an_item_that_stands_there_twice_is_asked_once(tmp_path: Path) -> None:
    rows = examples(4)
    with Teacher(red_or_not) as teacher:
        collect_traces(settings(teacher.base_url, samples=1), [*rows, *rows], tmp_path, count=words)
        assert len(teacher.bodies) == 4
        torn = [rows[0], dataclasses.replace(rows[0], clean="1")]
        with pytest.raises(ArgumentError, match="two clean labels"):
            collect_traces(settings(teacher.base_url), torn, tmp_path, count=words)
        with pytest.raises(ArgumentError, match=r"teacher\.model"):
            collect_traces(settings(teacher.base_url, model=""), rows, tmp_path, count=words)


# --- what goes wrong -----------------------------------------------------------------------------------------


def test_an_endpoint_that_takes_other_parameters(tmp_path: Path) -> None:
    def picky(sent: dict[str, Any]) -> dict[str, Any] | tuple[int, str]:
        if "max_tokens" in sent:
            return 400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
        if "temperature" in sent:
            return 400, "'temperature' does not support 0.7 with this model."
        return red_or_not(sent)

    with Teacher(picky) as teacher:
        found = collect_traces(settings(teacher.base_url), examples(), tmp_path, count=words)
    assert found.asked == 40
    assert found.missing == 0
    assert teacher.bodies[-1]["max_completion_tokens"] == 512
    assert len(teacher.bodies) <= 40 + 3 * 4  # learnt once by each of four workers at most


def test_failures_that_pass_are_counted_and_asked_again(tmp_path: Path) -> None:
    rows, down = examples(), [True]

    def shaky(sent: dict[str, Any]) -> dict[str, Any] | tuple[int, str]:
        return (500, f"overrun, {KEY}") if down[0] and sent["seed"] % 4 == 0 else red_or_not(sent)

    with Teacher(shaky) as teacher:
        config = settings(teacher.base_url, concurrency=2)
        first = collect_traces(config, rows, tmp_path, count=words)
        failed = sum(body["seed"] % 4 == 0 for body in teacher.bodies)
        assert first.missing == failed > 0
        assert first.asked == 40 - failed
        assert all("overrun" in told and KEY not in told for told in first.failed)
        down[0] = False
        again = collect_traces(config, rows, tmp_path, count=words)
        assert (again.reused, again.asked, again.missing) == (40 - failed, failed, 0)
    with Teacher(lambda sent: (500, "not to be asked")) as other:  # another address is another question
        with pytest.raises(EndpointError, match="does not answer"):
            collect_traces(settings(other.base_url), rows, tmp_path, count=words)
        assert len(other.bodies) < 40


def test_an_endpoint_that_dies_is_left_alone(tmp_path: Path) -> None:
    alive = [20]

    def dying(sent: dict[str, Any]) -> dict[str, Any] | tuple[int, str]:
        alive[0] -= 1
        return red_or_not(sent) if alive[0] >= 0 else (503, "gone")

    with Teacher(dying) as teacher:
        found = collect_traces(settings(teacher.base_url), examples(60), tmp_path, count=words)
        assert (found.asked, found.missing) == (20, 100)
        assert len(teacher.bodies) < 40
    assert list(found.failed) == ["Error code: 503 - gone"]


@pytest.mark.parametrize(("status", "told"), [(401, "bad key"), (404, "no such model"), (403, "not yours")])
def test_what_never_works_ends_the_run_in_one_line(tmp_path: Path, status: int, told: str) -> None:
    with (
        Teacher(lambda sent: (status, f"{told}: {KEY}")) as teacher,
        pytest.raises(EndpointError, match=told) as caught,
    ):
        collect_traces(settings(teacher.base_url), examples(), tmp_path, count=words)
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert read_replies(tmp_path / "replies.jsonl") == {}


def test_a_request_that_is_turned_down(tmp_path: Path) -> None:
    rows = examples()

    def prim(sent: dict[str, Any]) -> dict[str, Any] | tuple[int, str]:
        return (400, "content policy") if "box 7" in question_of(sent) else red_or_not(sent)

    with Teacher(prim) as teacher:
        found = collect_traces(settings(teacher.base_url), rows, tmp_path, count=words)
        asked = len(teacher.bodies)
        collect_traces(settings(teacher.base_url), rows, tmp_path, count=words)
        assert len(teacher.bodies) == asked == 40  # it is not asked for again
    assert found.draws["the red box 7"] == ("refused", "refused")
    with (
        Teacher(lambda sent: (400, "wrong shape")) as teacher,
        pytest.raises(EndpointError, match="wrong shape"),
    ):
        collect_traces(settings(teacher.base_url), rows, tmp_path / "b", count=words)


def test_no_server_and_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Teacher(red_or_not) as teacher:
        url = teacher.base_url
    with pytest.raises(EndpointError, match="does not answer"):
        collect_traces(settings(url), examples(), tmp_path, count=words)
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(EndpointError, match="OPENAI_API_KEY is not set"):
        collect_traces(settings("http://192.0.2.1/v1"), examples(), tmp_path, count=words)
    with Teacher(red_or_not) as teacher:  # on this machine none is needed
        assert collect_traces(settings(teacher.base_url), examples(), tmp_path, count=words).asked == 40


def test_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    assert base_url_of(TeacherSettings()) == "https://api.openai.com/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://box:8000/v1/")
    assert base_url_of(TeacherSettings()) == "http://box:8000/v1"
    for wrong in ("box:8000", "ftp://box/v1", "http://user:pass@box/v1", "http://box/v1?key=s"):
        with pytest.raises(ArgumentError, match=r"teacher\.base_url"):
            base_url_of(TeacherSettings(base_url=wrong))
    assert [is_local(url) for url in ("http://127.0.0.2/v1", "http://localhost:1", "http://box/v1")] == [
        True,
        True,
        False,
    ]


def test_a_line_that_was_cut_and_a_line_that_is_none_of_ours(tmp_path: Path) -> None:
    rows, path = examples(), tmp_path / "replies.jsonl"
    with Teacher(red_or_not) as teacher:
        collect_traces(settings(teacher.base_url), rows, tmp_path, count=words)
        whole = path.read_bytes()
        path.write_bytes(whole[:-20])
        again = collect_traces(settings(teacher.base_url), rows, tmp_path, count=words)
        assert (again.reused, again.asked) == (39, 1)
        path.write_bytes(b"{}\n" + whole)
        with pytest.raises(InputError, match="line 1 is no reply"):
            read_replies(path)


def test_kill_and_go_on(tmp_path: Path) -> None:
    """A run is killed again and again; what it had is kept, and the end is as if nothing had happened."""
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.test_train_traces import collect_traces, examples, settings, words\n"
        "found = collect_traces(settings(sys.argv[1], samples=4), examples(60), Path(sys.argv[2]), count=words)\n"
        "print(found.asked, found.reused)"
    )
    slow = threading.Event()

    def answer(sent: dict[str, Any]) -> dict[str, Any]:
        slow.wait(0.01)
        return red_or_not(sent)

    with Teacher(answer) as teacher:
        command = [sys.executable, "-c", code, teacher.base_url, str(tmp_path / "killed")]
        for kill in range(2):
            process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
            goal = len(teacher.bodies) + 40
            while process.poll() is None and len(teacher.bodies) < goal:
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL, f"kill {kill} came too late"
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, capture_output=True
        )
        asked, reused = map(int, done.stdout.split())
        assert asked + reused == 240
        assert reused >= 60
        # only what was under way when a kill struck is asked for again: four workers, two kills
        assert sum(times - 1 for times in teacher.asked.values()) <= 4 * 2
        calm = collect_traces(
            settings(teacher.base_url, samples=4), examples(60), tmp_path / "calm", count=words
        )
    assert read_traces(tmp_path / "killed") == {trace.item: trace for trace in calm.traces}


# --- the report ----------------------------------------------------------------------------------------------


def test_the_report_shows_who_was_picked(tmp_path: Path) -> None:
    """The teacher always fails on rows whose label came wrong (one in five) and never else."""
    rows = examples(100)
    hard = {row.item for row in rows if row.noisy != row.clean}
    with Teacher(lambda sent: red_or_not(sent, error=1.0 if question_of(sent) in hard else 0.0)) as teacher:
        found = collect_traces(settings(teacher.base_url), rows, tmp_path, count=words)
    labels = {row.item: [row.noisy, row.clean] if k < 40 else [row.noisy] for k, row in enumerate(rows)}
    report = trace_report(found, rows, labels=labels, samples=2)
    groups = {(group.group, group.value): group for group in report.groups}
    assert (report.items, report.traced) == (100, 80)
    assert report.reasons == {"kept": 160, "wrong label": 40}
    wrong, right = groups["label as it came", "wrong"], groups["label as it came", "right"]
    assert (wrong.items, wrong.traced, wrong.selected) == (20, 0, -1)
    assert (right.items, right.traced, right.selected) == (80, 80, 1)
    assert right.share_of_traces == 1.0
    torn, alike, one = (
        groups["labels in the data", v] for v in ("several, at odds", "several, alike", "one")
    )
    assert (torn.items, torn.traced, torn.selected) == (8, 0, -1)
    assert (alike.items, alike.traced) == (32, 32)
    assert (one.items, one.traced, one.selected) == (60, 48, 0)
    by_class = groups["clean label", "1"]
    assert (by_class.items, by_class.traced, by_class.draws, by_class.accepted) == (50, 40, 100, 80)
    text = report.summary()
    assert "Traces for 80 of 100 items (80.0%)" in text
    assert "less often than the rest" in text
    assert json.loads(json.dumps(report.to_dict()))["traced"] == 80


def test_no_selection_is_called_none(tmp_path: Path) -> None:
    rows = examples(60)
    with Teacher(lambda sent: red_or_not(sent, error=0.1)) as teacher:
        found = collect_traces(settings(teacher.base_url), rows, tmp_path, count=words)
    report = trace_report(found, rows, labels={}, samples=2)
    assert "No group of rows is surely picked" in report.summary()


def test_newcombes_interval() -> None:
    """Newcombe (1998), Table II, example (a): 56/70 against 48/80 gives .2000 (.0524, .3339) by method 10."""
    difference, low, high = survival_difference(56, 70, 48, 80)
    assert difference == pytest.approx(0.2)
    assert low == pytest.approx(0.0524, abs=5e-5)
    assert high == pytest.approx(0.3339, abs=5e-5)


def test_messages_hold_the_instruction_the_form_and_the_item() -> None:
    task = Task(data="d", inputs=("text", "who"), label="l", labels=("yes", "no"), instruction="Is it so?")
    system, user = teacher_messages(task, TeacherSettings(instruction=" Rules. "), ("a text", "me"))
    assert system["content"].startswith("Rules.\n\nThink")
    assert "yes, no" in system["content"]
    assert user["content"] == "Is it so?\nText: a text\nWho: me"
