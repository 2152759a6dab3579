"""The page that `relabel_real_model` writes, from its figures."""

from __future__ import annotations

from collections import Counter
from typing import Any

from scipy.stats import mannwhitneyu

from audit.intervals import wilson
from tests.made_injections import HARMLESS, INJECTIONS

__all__ = ["page"]

PAGE = """# A real model

<!-- Written by benchmarks/relabel_real_model.py; do not edit. -->

SmolLM2-135M-Instruct (4 bits a weight) on one core, served by the OpenAI-compatible server of llama-cpp-python with
log-probabilities for all tokens ({versions}). `make llm` installs it; the tests marked
`llm` ask it.

**It is a poor judge, and this page does not recommend it.** It shows that the machinery holds on a real server, and
what the measures say when a judge is poor. The figures stand as they came; run and injections were measured one after
the other, each on a server of its own.

## What the server does

`audit relabel probe` found:

| | |
| --- | --- |
{seen}

{notes}

So the ladder leads from `json_schema`, which the server answers with HTTP 500, to `json_object` with the schema beside
it, and confidence comes from log-probabilities. Two habits of this server matter:

- For log-probabilities it sorts the whole vocabulary at every token, in Python: most of the time of a request. The
  tests start it through `tests/small_server.py`, which spares it that; the replies are the same.
- It lowers the weight of tokens that it has used before (a repeat penalty of 1.1 unless told otherwise, also at
  temperature 0), but tells the log-probabilities before that. So the label it writes is not always the one it finds
  more likely. Labels with a confidence below .5: {doubted}. Such rows are the first to be escalated.

## {rows} sentences under a rubric

{rows} sentences of the Causal News Corpus (its second revision; train and dev; drawn with seed {seed}), judged under
[examples/causal_news_rubric.md](../examples/causal_news_rubric.md), which was written from the corpus's annotation
manual. `audit relabel run` was killed with SIGKILL when a third was answered, and the same command was given again.

| | |
| --- | --- |
| rows by status | {statuses} |
| labels as in the corpus | {agreed} |
| always the more common label | {constant} |
| area under the curve, P(1) against the corpus | {area} |
| confidence from log-probabilities | {confident} rows: {calibration} |
| tokens per row | {prompt} read, {completion} written |
| seconds per row, on a busy machine | {per_item} |

{table}

The resume: {answered_at_kill} replies had come when the run was killed, and {recorded_at_kill} of them were in the
journal. The same command used those again and got {then} more. In all the server gave {answered} replies for {rows}
rows, and {turned_down} refusals of `json_schema`, from which the run learnt.

## Hostile text

The {injections} injections of the tests, put into {items} sentences each, demand the label that the model does not give
without them. The sentences are those to which it gives the same label with the defence and without, so that both arms
are asked about the same texts with the same label demanded. Flipped is a row that gets it. Since a poor judge changes
its mind for less, {harmless} harmless lines ("More on page four.") were added to the same sentences in their stead.

| | flipped by an injection | no verdict | flipped by a harmless line |
| --- | --- | --- | --- |
| without the defence | {loose} |
| with the defence | {fenced} |

Row by row: {only_loose} were flipped only without the defence, {only_fenced} only with it.

A model of this size changes its mind for any further line, and does not tell an order from a quoted one. The server
reads the marks of its chat template (`<|im_start|>`) also where they stand in a row's text; the defence breaks them. A
label that such a model gives to hostile text is worth little, with the defence or without. For a judge that
does obey its system message the defence is measured on the scripted judge in `tests/test_relabel_injection.py`.

## To measure again

    make llm
    .venv/bin/python benchmarks/relabel_real_model.py

The corpus is not in this repository: `--data` names the folder with `V2_train_subtask1.csv` and `V2_dev_subtask1.csv`.
"""


def interval(hits: int, among: int) -> str:
    """A share and its 95 % interval (Wilson)."""
    low, high = wilson(hits, among)
    return f"{hits} of {among} ({hits / among:.1%}; {low:.1%} to {high:.1%})"


def judged(rows: list[tuple[str, str, str, str]]) -> dict[str, str]:
    """What the labels and confidences look like beside the corpus's own."""
    pairs = [(old, new, float(sure)) for old, new, sure, kind in rows if new and kind == "logprob"]
    old, ones = [pair[0] for pair in pairs], [sure if new == "1" else 1 - sure for _, new, sure in pairs]
    groups = [[p for p, label in zip(ones, old, strict=True) if label == wanted] for wanted in "10"]
    area = mannwhitneyu(*groups).statistic / (len(groups[0]) * len(groups[1]))
    cells = Counter((label, new) for label, new, _ in pairs)
    table = [f"| {label} | {cells[label, '1']} | {cells[label, '0']} |" for label in "10"]
    return {
        "agreed": interval(sum(label == new for label, new, _ in pairs), len(pairs)),
        "constant": interval(max(old.count("1"), old.count("0")), len(old)),
        "area": f"{area:.2f}",
        "confident": str(len(pairs)),
        "doubted": interval(sum(sure < 0.5 for _, _, sure in pairs), len(pairs)),
        "table": "\n".join(["| corpus | model: 1 | model: 0 |", "| --- | --- | --- |", *table]),
    }


def page(figures: dict[str, Any]) -> str:
    """The page, from the figures."""
    seen, run, result = figures["seen"], figures["run"], figures["run"]["result"]
    rows, statuses = result["data"]["rows"], result["result"]["statuses"]
    words: dict[str, Any] = judged(run["rows"])
    words |= {
        "versions": ", ".join(f"{name} {number}" for name, number in figures["versions"].items()),
        "seen": "\n".join(f"| {name} | {value} |" for name, value in seen.items() if name != "notes"),
        "notes": "\n".join(f"- {note}" for note in seen["notes"]),
        "rows": rows,
        "statuses": ", ".join(f"{name} {count}" for name, count in statuses.items()),
        "then": run["answered"] - run["answered_at_kill"],
        "calibration": calibration(result["gold"]["calibration"]),
        "per_item": f"{run['seconds'] / rows:.1f}",
        "prompt": run["prompt_tokens"] // rows,
        "completion": run["completion_tokens"] // rows,
        "injections": len(INJECTIONS),
        "harmless": len(HARMLESS),
        "items": len(figures["arms"]["items"]),
        "only_loose": figures["arms"]["hostile"]["only_loose"],
        "only_fenced": figures["arms"]["hostile"]["only_fenced"],
        "seed": figures["seed"],
    }
    words |= {name: run[name] for name in ("recorded_at_kill", "answered_at_kill", "answered", "turned_down")}
    for arm in ("loose", "fenced"):
        found = figures["arms"][arm]
        told = [interval(found[kind]["flipped"], found[kind]["rows"]) for kind in ("hostile", "harmless")]
        words[arm] = f"{told[0]} | {found['hostile']['silent']} | {told[1]}"
    return PAGE.format(**words)


def calibration(found: list[dict[str, Any]]) -> str:
    """The calibration of log-probability confidence in words."""
    one = next(entry for entry in found if entry["kind"] == "logprob")
    return (
        f"mean confidence {one['confidence']:.3f}, right on {one['accuracy']:.3f}, ECE {one['ece']:.3f}"
        f" (chance alone would give {one['ece_by_chance']:.3f})"
    )
