"""The ladder: every rung on the small-vocabulary model with a teacher on loopback, kills, and the dry run."""

from __future__ import annotations

import dataclasses
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="the extra [train] is not installed")
pytest.importorskip("openai", reason="the extra [train] is not installed")

from audit.errors import ArgumentError, InputError
from tests.command import Ran, run
from tests.conftest import ROOT
from tests.ladder_kit import start, write_ladder
from tests.teacher_server import Teacher, red_or_not
from train.config import RUNGS, Config, load_config
from train.ladder import run_ladder, with_parents
from train.ladder_memory import estimate_memory, read_shape
from train.ladder_plan import plan_ladder, steps_of_sft
from train.ladder_progress import Pace, ToldRun, clock
from train.pressure import Ledger
from train.run_folder import RunFolder
from train.rungs import Job, jobs_of, run_rung, settings_of
from train.task import load_examples
from train.traces import read_traces
from train.traces_rung import TracesMissingError, rows_of_traces

pytestmark = pytest.mark.slow

TRAINED = [rung for rung in RUNGS if rung != "traces"]


@dataclasses.dataclass
class Whole:
    """A ladder that ran to its end from the command line, its settings and what it said."""

    path: Path
    config: Config
    said: Ran
    teacher: Teacher

    def folder(self, rung: str) -> RunFolder:
        return RunFolder(Path(self.config.run.out) / (rung if rung == "traces" else f"{rung}-s0"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    with Teacher(lambda sent: red_or_not(sent, error=0.3)) as teacher:
        path = write_ladder(tmp_path_factory.mktemp("ladder"), teacher.base_url)
        said = run("train", "ladder", path)
        yield Whole(path=path, config=load_config(path), said=said, teacher=teacher)


# --- every rung ----------------------------------------------------------------------------------------------


def test_every_rung_runs_from_the_command_line(whole: Whole) -> None:
    assert whole.said.code == 0, whole.said.err
    for rung in RUNGS:
        assert whole.folder(rung).finished, rung
        assert f"{whole.folder(rung).path.name} finished in" in whole.said.err
    table = whole.said.out
    assert all(f"{rung}-s0" in table for rung in TRAINED)
    assert "Traces for" in table
    assert "cot-sft-s0 over sft-matched-s0" in table  # the comparison comes with it


@pytest.mark.parametrize("rung", TRAINED)
def test_what_a_run_leaves(whole: Whole, rung: str) -> None:
    folder = whole.folder(rung)
    info, metrics = folder.info, folder.read_metrics()
    assert info["rung"] == rung
    assert info["seed"] == 0
    assert info["parent"] == {
        "grpo": "sft-clean-s0", "sft-matched": "traces", "cot-sft": "traces", "grpo-think": "cot-sft-s0",
    }.get(rung)  # fmt: skip
    assert set(metrics) == {"validation", "test"}
    examples = load_examples(whole.config.task, seed=0)
    for split in ("validation", "test"):
        scores = folder.read_scores(split)
        assert sorted(scores["item"]) == sorted(one.item for one in examples[split])
        assert dict(zip(scores["item"], scores["label"], strict=True)) == {
            one.item: one.clean for one in examples[split]
        }
        right = (scores["prediction"] == scores["label"]).mean()
        assert metrics[split]["accuracy"] == pytest.approx(right)
        assert scores["score"].between(0, 1).all()
    assert len(folder.curve()) == (3 if rung.startswith("grpo") else 40)
    assert (folder.adapter / "adapter_config.json").is_file()
    assert not folder.checkpoints.exists()
    assert info["seconds_per_step"] > 0
    traced = whole.folder("traces").info
    from_traces = rung in ("sft-matched", "cot-sft")
    assert (info["rows"] < len(examples["train"])) == from_traces
    assert 0 < traced["traced"] < traced["items"]


def test_the_rungs_learn(whole: Whole) -> None:
    """The task is easy (is there a red thing?), so clean labels teach it; a base rate scores 0.6 or so."""
    assert whole.folder("sft-clean").read_metrics()["validation"]["accuracy"] >= 0.8
    thinking = whole.folder("cot-sft").read_metrics()["validation"]
    assert thinking["closed"] >= 0.8  # it has learnt to think between tags
    assert whole.folder("cot-sft").read_scores("test")["text"].str.startswith("<think>").mean() >= 0.8


@pytest.mark.parametrize(("rung", "cap"), [("grpo", 4), ("grpo-think", 40)])
def test_rollouts_are_logged_and_read_by_the_instruments(whole: Whole, rung: str, cap: int) -> None:
    from train.rollouts import read_rollouts

    frame = read_rollouts(whole.folder(rung).rollouts).frame
    assert len(frame) == 3 * 6 * 4
    assert frame["length"].max() <= cap
    assert set(frame["step"]) == {1, 2, 3}
    clean = {one.item: one.clean for one in load_examples(whole.config.task, seed=0)["train"]}
    assert all(clean[item] == label for item, label in zip(frame["item"], frame["label"], strict=True))


def test_a_model_that_answers_nothing_is_wrong_everywhere(whole: Whole, tmp_path: Path) -> None:
    """An untrained thinker closes no thought: its empty predictions are no answers, not scores to be cut at 0.5."""
    from train.compare import compare_runs

    config = load_config(write_ladder(tmp_path, whole.teacher.base_url, sft_steps=1))
    runs = [run_rung(Job(rung=rung, seed=0), config) for rung in ("sft-noisy", "traces", "cot-sft")]
    assert runs[2].read_scores("test")["prediction"].isna().all()
    found = compare_runs([runs[0].path, runs[2].path])
    assert found.runs[1].metrics["accuracy"].estimate == 0.0


def test_matched_and_cot_learn_the_same_rows(whole: Whole) -> None:
    traces = read_traces(whole.folder("traces").path)
    train = load_examples(whole.config.task, seed=0)["train"]
    rows = rows_of_traces(whole.folder("traces").path, train, tags=("<think>", "</think>"))
    assert [one.item for one, _ in rows] == [one.item for one in train if one.item in traces]
    assert 0 < len(rows) < len(train)
    assert all(text.startswith("<think>\n") and text.endswith(f"</think>\n{one.clean}") for one, text in rows)
    # tokens read, as the curves tell them: the thoughts are the difference, the steps are the same
    matched, cot = whole.folder("sft-matched").curve(), whole.folder("cot-sft").curve()
    assert len(matched) == len(cot)
    assert cot["tokens"].iloc[-1] > matched["tokens"].iloc[-1]


def test_the_ledger_knows_every_look(whole: Whole) -> None:
    entries = Ledger(whole.config.run.out).read().entries
    for rung in TRAINED:
        mine = [(e.kind, e.split, e.purpose) for e in entries if e.run == f"{rung}-s0"]
        assert mine == [
            ("evaluation", "validation", "validation"),
            ("opening", "test", "holdout"),
            ("evaluation", "test", "holdout"),
        ], rung
    assert {e.key for e in entries if e.kind == "evaluation"} == {"clean"}
    scored = {e.run: e for e in entries if e.kind == "evaluation" and e.split == "validation"}
    assert scored["sft-clean-s0"].model == whole.folder("sft-clean").info["digest"]
    assert scored["sft-clean-s0"].metrics["accuracy"] == pytest.approx(
        whole.folder("sft-clean").read_metrics()["validation"]["accuracy"]
    )


def test_a_finished_ladder_is_left_alone(whole: Whole) -> None:
    out = Path(whole.config.run.out)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    asked = len(whole.teacher.bodies)
    again = run("train", "ladder", whole.path, "--format", "json")
    assert again.code == 0
    assert [one["name"] for one in again.json["runs"]] == [whole.folder(rung).path.name for rung in RUNGS]
    assert again.json["traces"]["traced"] > 0
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()} == before
    assert len(whole.teacher.bodies) == asked


@pytest.mark.parametrize(
    ("old", "new", "run_name"),
    [("max_steps = 40", "max_steps = 41", "sft-noisy-s0"), ("samples = 2", "samples = 3", "traces"),
     ("steps = 3", "steps = 2", "grpo-s0"), ('labels = ["0", "1"]', 'labels = ["1", "0"]', "sft-noisy-s0")],
)  # fmt: skip
def test_other_settings_are_refused(whole: Whole, old: str, new: str, run_name: str) -> None:
    other = whole.path.with_name("other.toml")
    other.write_text(whole.path.read_text().replace(old, new))
    refused = run("train", "ladder", other)
    assert refused.code == 2
    assert refused.err.count("\n") == 1
    assert f"{run_name} was started with" in refused.err


def test_settings_that_change_nothing_are_not_refused(whole: Whole) -> None:
    other = whole.path.with_name("other.toml")
    text = whole.path.read_text().replace("concurrency = 4", "concurrency = 2\ntimeout = 9.0")
    other.write_text(text.replace('out = "runs"', 'out = "runs"\nthreads = 1'))
    assert run("train", "ladder", other).code == 0


# --- cut short -----------------------------------------------------------------------------------------------


def test_kill_in_the_middle_of_a_rung_and_go_on(whole: Whole, tmp_path: Path) -> None:
    """The run that was killed ends with the same weights and scores as the one that was not."""
    path = tmp_path / "ladder.toml"
    text = whole.path.read_text().replace('"data.csv"', f'"{whole.path.parent / "data.csv"}"')
    path.write_text(text.replace('"truth.csv"', f'"{whole.path.parent / "truth.csv"}"'))
    process = start("rung", "sft-clean", path)
    curve = tmp_path / "runs" / "sft-clean-s0" / "curve.csv"
    _wait(lambda: curve.is_file() and curve.read_text().count("\n") > 12, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    killed = RunFolder(curve.parent)
    assert not killed.finished
    again = run("train", "rung", "sft-clean", path)
    assert again.code == 0, again.err
    assert killed.info["taken_up"]
    calm = whole.folder("sft-clean")
    assert killed.info["digest"] == calm.info["digest"]
    assert killed.read_metrics() == calm.read_metrics()
    assert list(killed.curve()["step"]) == list(range(1, 41))
    assert list(killed.curve()["loss"]) == pytest.approx(list(calm.curve()["loss"]))


def test_ctrl_c_leaves_a_state_to_go_on_from(whole: Whole, tmp_path: Path) -> None:
    path = write_ladder(tmp_path, whole.teacher.base_url, sft_steps=400)
    process = start("rung", "sft-noisy", path)
    curve = tmp_path / "runs" / "sft-noisy-s0" / "curve.csv"
    _wait(lambda: curve.is_file() and curve.read_text().count("\n") > 3, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert err.endswith("audit: interrupted; the same command goes on from here\n")
    assert "Traceback" not in err
    assert out == ""
    left = RunFolder(curve.parent)
    assert not left.finished
    assert list(left.checkpoints.glob("checkpoint-*"))


def test_a_stop_between_the_splits(whole: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trained, validated, the holdout opened, then cut: nothing is trained or looked at a second time."""
    import train.evaluate

    config = load_config(write_ladder(tmp_path, whole.teacher.base_url, sft_steps=3))
    job, real, looks = Job(rung="sft-clean", seed=0), train.evaluate.evaluate, []

    def interrupted(loaded: Any, examples: Any, *rest: Any, **more: Any) -> Any:
        looks.append(examples[0].split)
        if looks == ["validation", "test"]:
            raise KeyboardInterrupt
        return real(loaded, examples, *rest, **more)

    monkeypatch.setattr(train.evaluate, "evaluate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_rung(job, config)
    folder = run_rung(job, config)
    assert folder.finished
    assert looks == ["validation", "test", "test"]
    kinds = [(e.kind, e.split) for e in Ledger(config.run.out).read().entries]
    assert kinds == [
        ("evaluation", "validation"),
        ("opening", "test"),
        ("resumed", "test"),
        ("evaluation", "test"),
    ]
    assert len(folder.curve()) == 3


def test_a_run_that_is_done_over_needs_a_reason(whole: Whole, tmp_path: Path) -> None:
    import shutil

    config = load_config(write_ladder(tmp_path, whole.teacher.base_url, sft_steps=2))
    job = Job(rung="sft-noisy", seed=0)
    shutil.rmtree(run_rung(job, config).path)
    with pytest.raises(ArgumentError, match="holdout 'test' was opened"):
        run_rung(job, config)
    assert run_rung(job, config, reopen="the folder was lost").finished
    entries = Ledger(config.run.out).read().entries
    assert [e.forced for e in entries if e.kind == "opening"] == [None, "the folder was lost"]


def _wait(ready: Any, process: Any) -> None:
    until = time.monotonic() + 240
    while not ready():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.01)


# --- a teacher that fails ------------------------------------------------------------------------------------


def test_missing_replies_are_exit_3_and_asked_again(tmp_path: Path) -> None:
    down = [True]

    def shaky(sent: dict[str, Any]) -> Any:
        return (500, "overrun") if down[0] and sent["seed"] % 9 == 0 else red_or_not(sent)

    with Teacher(shaky) as teacher:
        path = write_ladder(tmp_path, teacher.base_url, sft_steps=2)
        text = path.read_text().replace(
            'out = "runs"', 'out = "runs"\nrungs = ["sft-noisy", "traces", "sft-matched"]'
        )
        path.write_text(text)
        first = run("train", "ladder", path)
        assert first.code == 3
        assert "draws have no reply" in first.err
        assert "waits for traces" in first.out
        assert RunFolder(tmp_path / "runs" / "sft-noisy-s0").finished  # what does not need them runs
        assert not (tmp_path / "runs" / "sft-matched-s0").exists()
        with pytest.raises(TracesMissingError):
            run_rung(Job(rung="traces", seed=0), load_config(path))
        down[0] = False
        asked = len(teacher.bodies)
        second = run("train", "ladder", path)
        assert second.code == 0, second.err
        assert len(teacher.bodies) - asked < 40
        assert RunFolder(tmp_path / "runs" / "sft-matched-s0").finished


def test_a_teacher_that_is_never_right(tmp_path: Path) -> None:
    with Teacher(lambda sent: red_or_not(sent, error=1.0)) as teacher:
        path = write_ladder(tmp_path, teacher.base_url, sft_steps=2)
        failed = run("train", "rung", "cot-sft", path)
    assert failed.code == 2
    assert "no trace reached its label" in failed.err
    report = json.loads((tmp_path / "runs" / "traces" / "report.json").read_text())
    assert report["reasons"] == {"wrong label": report["items"] * 2}


# --- plans ---------------------------------------------------------------------------------------------------


@pytest.fixture
def config(whole: Whole) -> Config:
    return dataclasses.replace(
        whole.config, run=dataclasses.replace(whole.config.run, out=str(whole.path.parent / "elsewhere"))
    )


def test_the_order_of_runs(config: Config) -> None:
    several = dataclasses.replace(
        config,
        run=dataclasses.replace(config.run, seeds=(3, 4)),
        grpo=dataclasses.replace(config.grpo, more_caps=(64,)),
    )
    names = [job.name for job in jobs_of(several)]
    assert names == [
        "sft-noisy-s3", "sft-clean-s3", "grpo-s3", "traces", "sft-matched-s3", "cot-sft-s3", "grpo-think-s3",
        "grpo-think-64-s3", "sft-noisy-s4", "sft-clean-s4", "grpo-s4", "sft-matched-s4", "cot-sft-s4",
        "grpo-think-s4", "grpo-think-64-s4",
    ]  # fmt: skip
    last = jobs_of(several)[-1]
    assert last.parent is not None
    assert last.parent.name == "cot-sft-s4"
    assert settings_of(several, last)["grpo"]["think_cap"] == 64
    assert "cap" not in settings_of(several, last)["grpo"]
    assert with_parents("grpo-think", several).run.rungs == ("traces", "cot-sft", "grpo-think")
    with pytest.raises(ArgumentError, match="no rung 'sft'"):
        with_parents("sft", several)


def test_a_rung_without_what_it_stands_on(config: Config) -> None:
    alone = dataclasses.replace(config, run=dataclasses.replace(config.run, rungs=("grpo",)))
    with pytest.raises(ArgumentError, match=r"add 'sft-clean' to run\.rungs"):
        run_ladder(alone)
    with pytest.raises(InputError, match="run that rung first"):
        run_rung(Job(rung="cot-sft", seed=0), config)


def test_planned_steps_are_those_that_run(whole: Whole, tmp_path: Path) -> None:
    path = write_ladder(tmp_path, whole.teacher.base_url)
    path.write_text(path.read_text().replace("max_steps = 40", "epochs = 1.5\naccumulation = 2"))
    config = load_config(path)
    rows = len(load_examples(config.task, seed=0)["train"])
    folder = run_rung(Job(rung="sft-noisy", seed=0), config)
    assert len(folder.curve()) == steps_of_sft(config, rows)


def test_the_plan_counts(config: Config) -> None:
    plan = plan_ladder(config)
    rungs = {one.rung: one for one in plan.rungs}
    items = len({one.item for one in load_examples(config.task, seed=0)["train"]})
    assert rungs["traces"].requests == 2 * items
    assert rungs["grpo-think"].generated == 3 * 6 * 4 * 40
    assert rungs["sft-clean"].steps == 40
    assert rungs["cot-sft"].at_most
    assert plan.prompts is not None
    assert 10 < plan.prompts[0] <= plan.prompts[1] < 60
    assert plan.relabelled > 0
    assert json.loads(json.dumps(plan.to_dict()))["splits"] == dict(plan.splits)


@pytest.mark.parametrize(
    ("table", "change", "message"),
    [
        ("model", {"max_prompt": 10}, r"more than model\.max_prompt"),
        ("teacher", {"model": ""}, r"teacher\.model is not set"),
        ("teacher", {"base_url": "nowhere"}, r"teacher\.base_url"),
        ("task", {"labels": ("yes", "no"), "positive": "yes"}, "none of task.labels"),
        ("task", {"inputs": ("words",)}, "words"),
        ("task", {"split": "id"}, "no row of split"),
        ("grpo", {"accumulation": 5}, "cannot be shared"),
    ],
)
def test_a_dry_run_finds_what_cannot_work(
    config: Config, table: str, change: dict[str, Any], message: str
) -> None:
    wrong = dataclasses.replace(config, **{table: dataclasses.replace(getattr(config, table), **change)})
    with pytest.raises((ArgumentError, InputError), match=message):
        plan_ladder(wrong)


def test_a_dry_run_notes_what_may_be_elsewhere(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    other = dataclasses.replace(
        config,
        model=dataclasses.replace(config.model, name="someone/model-7B"),
        task=dataclasses.replace(config.task, clean=None, train_rows=5000),
        teacher=dataclasses.replace(config.teacher, base_url="https://api.example.org/v1", max_tokens=8),
        grpo=dataclasses.replace(config.grpo, vllm=True),
    )
    notes = " | ".join(plan_ladder(other).notes)
    for part in ("no task.clean", "tokenizer of someone/model-7B is not on this disk", "OPENAI_API_KEY is not set",
                 "vllm is not installed", "fewer than the 5,000", "below the traces' cap"):  # fmt: skip
        assert part in notes
    monkeypatch.setenv("OPENAI_API_KEY", "sk-some-key-0123456789")
    assert "OPENAI_API_KEY" not in " ".join(plan_ladder(other).notes)


def test_memory_from_the_shape_of_the_model(config: Config, whole: Whole) -> None:
    from transformers import AutoModelForCausalLM

    shape = read_shape(config.model.name)
    assert shape is not None
    model = AutoModelForCausalLM.from_pretrained(config.model.name)
    norms = 5 * 32  # two a layer, one at the end: left out of the estimate
    assert shape.parameters == sum(weight.numel() for weight in model.parameters()) - norms
    small = estimate_memory(config, shape, prompt=50)
    large = estimate_memory(
        dataclasses.replace(config, sft=dataclasses.replace(config.sft, batch=16)), shape, prompt=50
    )
    assert small.peak is not None
    assert small.sft is not None
    assert large.sft == pytest.approx(2 * small.sft)
    trained = sum(
        weight.numel()
        for name, weight in _adapter(whole.folder("sft-clean").adapter).items()
        if "lora" in name
    )
    assert small.adapter == pytest.approx(16 * trained / 1e9, rel=0.1)


def _adapter(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return dict(load_file(folder / "adapter_model.safetensors"))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("Qwen/Qwen3.5-0.8B", 0.8e9),
        ("a/b-135M-Instruct", 135e6),
        ("a/Llama-3-8B", 8e9),
        ("a/b", None),
        ("a/v2.5", None),
    ],
)
def test_size_from_a_name(name: str, parameters: float | None) -> None:
    shape = read_shape(name)
    assert (shape.parameters if shape else None) == parameters


def test_the_recipe_for_a_gpu_passes_a_dry_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    config = load_config(ROOT / "examples" / "ladder_gpu.toml")
    plan = plan_ladder(config)
    assert sum(plan.splits.values()) > 6000
    assert (config.grpo.think_cap, config.grpo.more_caps) == (384, (1024,))
    assert config.grpo.vllm
    assert "C1. There must be an outcome" in config.teacher.instruction
    assert plan.memory is not None
    assert plan.memory.weights == pytest.approx(1.6)


# --- progress ------------------------------------------------------------------------------------------------


def test_time_to_go_by_what_was_seen() -> None:
    pace = Pace({"a": ("sft", 10), "b": ("sft", 20), "c": ("grpo", 5)})
    assert pace.to_go() == "3 runs to go"
    pace.seen("sft", steps=4, seconds=8.0)
    assert pace.to_go() == "1:00 to go and grpo"
    pace.done("a")
    pace.seen("grpo", steps=1, seconds=100.0)
    assert pace.to_go() == "9:00 to go"
    pace.done("b")
    pace.done("c")
    assert pace.to_go() == ""
    assert (clock(59.6), clock(3725)) == ("1:00", "1:02:05")


def test_a_run_tells_its_steps(tmp_path: Path) -> None:
    lines: list[tuple[str, bool]] = []
    folder = ToldRun(str(tmp_path / "r"), total=2, tell=lambda line, stays: lines.append((line, stays)))
    folder.start(name="r", rung="sft-clean", seed=0, config={})
    folder.log(step=1, loss=0.5, tokens=3)
    folder.log(step=2, loss=0.25)
    folder.close()
    assert lines[0] == ("r step 1/2 · loss 0.5", False)
    assert lines[1][0].startswith("r step 2/2 · loss 0.25")
    assert folder.pace[0] == 1
