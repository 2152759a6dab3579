"""What a model answers to the items of a split, against the clean key; scored as the reward scores.

A direct answer is read off the probabilities of the labels. A thought is written out first, and the labels'
probabilities are read where the answer stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from audit.errors import ArgumentError
from train.label_scores import Floats, batches_by_length, completion_logprobs, left_padded
from train.metrics import binary_metrics
from train.models_prompts import closing_ids, completion_ids, prompts_of, scorer_for
from train.scorer import tag_places
from train.task import Example, Task

if TYPE_CHECKING:
    import pandas as pd

    from train.models import LoadedModel

__all__ = ["evaluate", "generate"]


def evaluate(
    loaded: LoadedModel,
    examples: Sequence[Example],
    task: Task,
    *,
    think: bool = False,
    cap: int = 384,
    batch: int = 16,
    share: bool = False,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Answer every example and measure the answers against the clean key.

    Parameters
    ----------
    think:
        False: the label with the greatest probability as a whole completion, end included, is the answer. True: the
        most likely text is written, up to ``cap`` tokens, and must hold one closed thought and then a label.
    batch:
        Prompts a forward pass.
    share:
        All processes of a training call this and share the rows; each gets the whole frame. Otherwise the process
        that calls it reads all rows.

    Returns
    -------
    frame, metrics
        A row an example, in their order. ``label`` is the clean one, ``noisy`` the one it came with; ``score`` is
        P(positive) among the labels, ``p_<label>`` that of each where there are more than two, ``mass`` the
        probability of all labels together.
        With ``think``, ``prediction`` is None where there is no answer (it counts as wrong), ``reason`` says why, and
        the score is read after the close tag, which is put at the end of a thought that lacks one. ``metrics`` are
        those of :func:`train.metrics.binary_metrics`, and how the completions ended.

    Raises
    ------
    InputError
        Prompts are longer than ``model.max_prompt``.
    ArgumentError
        There are no examples.
    """
    import pandas as pd

    if not examples:
        raise ArgumentError("there is nothing to evaluate: the split has no examples")
    prompts = prompts_of(loaded, [task.messages(one.values, think=think) for one in examples], think=think)
    first, step = _share() if share else (0, 1)
    rows = range(first, len(examples), step)
    mine: dict[str, list[Any]] = {}
    if rows:
        asked = [prompts[row] for row in rows]
        with _evaluating(loaded.model):
            mine = _answers(
                loaded, [examples[row] for row in rows], asked, task, think=think, cap=cap, batch=batch
            )
    columns = _gathered({"row": list(rows), **mine}, step)
    order = np.argsort(columns.pop("row"))
    frame = pd.DataFrame(
        {name: pd.Series([values[k] for k in order], dtype=_dtype(name)) for name, values in columns.items()}
    )
    return frame, _metrics(frame, task, think=think)


def _answers(
    loaded: LoadedModel,
    examples: Sequence[Example],
    prompts: Sequence[list[int]],
    task: Task,
    *,
    think: bool,
    cap: int,
    batch: int,
) -> dict[str, list[Any]]:
    """The columns of the frame for some of the examples."""
    columns: dict[str, list[Any]] = {
        "item": [one.item for one in examples],
        "label": [one.clean for one in examples],
        "noisy": [one.noisy for one in examples],
        "split": [one.split for one in examples],
    }
    labels = [completion_ids(loaded, label) for label in task.labels]
    places = prompts
    if think:
        written = generate(loaded, prompts, cap=cap, batch=batch)
        columns |= _read(loaded, task, examples, written)
        places = [
            [*prompt, *_to_answer(loaded, ids)] for prompt, (ids, _) in zip(prompts, written, strict=True)
        ]
    logs = completion_logprobs(loaded, places, labels, batch=batch)
    shares = np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))
    if not think:
        columns["prediction"] = [task.labels[k] for k in shares.argmax(axis=1)]
        columns["reason"] = [
            "right" if prediction == label else "wrong"
            for prediction, label in zip(columns["prediction"], columns["label"], strict=True)
        ]
    return columns | _scores(task, shares, logs)


def _share() -> tuple[int, int]:
    """Which of how many processes this is: they share the rows."""
    import torch.distributed as dist

    return (
        (dist.get_rank(), dist.get_world_size()) if dist.is_available() and dist.is_initialized() else (0, 1)
    )


def _gathered(mine: dict[str, list[Any]], processes: int) -> dict[str, list[Any]]:
    """The columns of all processes, in all of them."""
    if processes == 1:
        return mine
    import torch.distributed as dist

    parts: list[dict[str, list[Any]]] = [{}] * processes
    dist.all_gather_object(parts, mine)
    full = max(parts, key=len)  # a process without a row has no columns
    return {name: [value for part in parts for value in part.get(name, [])] for name in full}


def _dtype(name: str) -> Any:
    return object if name == "prediction" else None


def generate(
    loaded: LoadedModel, prompts: Sequence[Sequence[int]], *, cap: int, batch: int
) -> list[tuple[list[int], bool]]:
    """The most likely completion of each prompt, token by token, and whether it was cut at ``cap`` tokens.

    The ids end with the one that stopped it. Padding is none of them.
    """
    import torch
    from transformers import GenerationConfig

    config = GenerationConfig(
        do_sample=False,
        max_new_tokens=cap,
        eos_token_id=list(loaded.stops),
        pad_token_id=loaded.tokenizer.pad_token_id,
    )
    found: list[tuple[list[int], bool]] = [([], True)] * len(prompts)
    with torch.no_grad(), _evaluating(loaded.model):
        for rows in batches_by_length([len(ids) for ids in prompts], batch):
            ids, mask = left_padded(loaded, [prompts[row] for row in rows])
            out = loaded.model.generate(input_ids=ids, attention_mask=mask, generation_config=config)
            for row, written in zip(rows, out[:, ids.shape[1] :].tolist(), strict=True):
                stop = next((k for k, id_ in enumerate(written) if id_ in loaded.stops), None)
                found[row] = (written if stop is None else written[: stop + 1], stop is None)
    return found


def _read(
    loaded: LoadedModel, task: Task, examples: Sequence[Example], written: Sequence[tuple[list[int], bool]]
) -> dict[str, list[Any]]:
    scorer = scorer_for(loaded, task.labels, think=True)
    scored = [
        scorer.score(ids, label=one.clean, truncated=cut)
        for one, (ids, cut) in zip(examples, written, strict=True)
    ]
    return {
        "prediction": [one.answer for one in scored],
        "reason": [one.reason for one in scored],
        "length": [len(ids) for ids, _ in written],
        "truncated": [cut for _, cut in written],
        "closed": [one.closed for one in scored],
        "text": [str(loaded.tokenizer.decode(ids, skip_special_tokens=False)) for ids, _ in written],
    }


def _to_answer(loaded: LoadedModel, ids: Sequence[int]) -> list[int]:
    """A completion up to where its answer stands: the first close tag and the white space after it.

    A thought without a close tag is closed first, as training closes it.
    """
    kept = [id_ for id_ in ids if id_ not in loaded.ends]
    closes = tag_places(kept, loaded.tags.close)
    if not closes:
        return [*kept, *closing_ids(loaded)]
    start = closes[0] + len(loaded.tags.close)
    stop = start
    while stop < len(kept) and not str(loaded.tokenizer.decode([kept[stop]])).strip():
        stop += 1
    return kept[:stop]


def _scores(task: Task, shares: Floats, logs: Floats) -> dict[str, list[float]]:
    found = {"score": shares[:, task.labels.index(task.positive)].tolist()}
    if len(task.labels) > 2:
        found |= {f"p_{label}": shares[:, k].tolist() for k, label in enumerate(task.labels)}
    found["mass"] = np.minimum(np.exp(logs).sum(axis=1), 1.0).tolist()
    return found


def _metrics(frame: pd.DataFrame, task: Task, *, think: bool) -> dict[str, Any]:
    found: dict[str, Any] = dict(
        binary_metrics(
            frame["label"].tolist(),
            frame["prediction"].tolist(),
            frame["score"].tolist(),
            positive=task.positive,
        )
    )
    if len(task.labels) > 2:
        found["accuracy_all_labels"] = float((frame["label"] == frame["prediction"]).mean())
    found["label_mass"] = float(frame["mass"].mean())
    if think:
        found["answered"] = float(frame["prediction"].notna().mean())
        found["closed"] = float(frame["closed"].mean())
        found["truncated"] = float(frame["truncated"].mean())
        found["mean_length"] = float(frame["length"].mean())
    return found


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """The model without dropout and without a graph; back in training afterwards if it was."""
    import torch

    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(training)
