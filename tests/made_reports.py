"""Results of every command with a report of its own, from files whose names, labels and texts are hostile."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from audit.comparing import compare_files
from audit.issues import find_issues
from audit.label_grades import audit_ordinal
from audit.label_numbers import audit_numeric
from audit.label_sets import audit_tags
from audit.leakage import find_leaks

__all__ = ["ITEM", "LABEL", "LABELS", "REPORTS", "made"]

ITEM, LABEL = "<script>item|\u202e", "[label](javascript:alert(1))\x1b"
LABELS = ("<img src=x onerror=window.hacked=1>", "a|b`c`", "\u202egnp\x00", "**bold** $x$", "שלום", "W" * 120)


def _text(k: int) -> str:
    return f"</td><script>window.hacked={k}</script> | text ‹{k}› \u2028 `{'long ' * (k % 60)}`"


def _labelled(seed: int, wrong: float, *, items: int = 150, labels: tuple[str, ...] = LABELS) -> pd.DataFrame:
    """Items with two labels, the last third with one; the truth of item k is that of k modulo the labels."""
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(items):
        for _ in range(2 if k < items * 2 // 3 else 1):
            label = (
                labels[int(rng.integers(len(labels)))] if rng.random() < wrong else labels[k % len(labels)]
            )
            rows.append((_text(k), label))
    return pd.DataFrame(rows, columns=[ITEM, LABEL])


def _compare() -> Any:
    return compare_files(_labelled(1, 0.4), _labelled(2, 0.15), item=[ITEM], label=LABEL, draws=300)


def _compare_many() -> Any:
    many = tuple(f"{k}<b>" for k in range(12))
    old, new = (_labelled(seed, wrong, labels=many) for seed, wrong in ((1, 0.5), (2, 0.2)))
    return compare_files(old, new, item=[ITEM], label=LABEL, draws=300)


def _leak() -> Any:
    test = _labelled(2, 0.3).iloc[100:160]
    return find_leaks(_labelled(1, 0.3).iloc[:150], test, item=[ITEM], label=LABEL)


def _issues() -> Any:
    frame, rng = _labelled(3, 0.3, items=240), np.random.default_rng(0)
    frame["id"] = [f"{k}" for k in range(len(frame))]
    codes = np.array([LABELS.index(label) for label in frame[LABEL]])
    texts = {text: k for k, text in enumerate(dict.fromkeys(frame[ITEM]))}
    items = np.array([texts[text] for text in frame[ITEM]])
    p = rng.dirichlet(np.ones(len(LABELS)), len(texts))
    p[np.arange(len(texts)), [codes[items == k][0] for k in range(len(texts))]] += 1.0
    order = np.argsort(LABELS)
    probs = (p / p.sum(axis=1, keepdims=True))[items][:, order]
    return find_issues(frame, item=[ITEM], label=LABEL, probs=probs, draws=30)


def _numeric() -> Any:
    rng = np.random.default_rng(5)
    rows = [
        (_text(k), f"{k % 50 / 5 + rng.normal(0, 0.1 + k % 50 / 60):.2f}")
        for k in range(220)
        for _ in range(2)
    ]
    return audit_numeric(pd.DataFrame(rows, columns=[ITEM, LABEL]), item=[ITEM], label=LABEL)


def _ordinal() -> Any:
    return audit_ordinal(_labelled(6, 0.4), classes=LABELS, item=[ITEM], label=LABEL, draws=300)


def _tags() -> Any:
    frame, rng = _labelled(7, 0.2, items=90), np.random.default_rng(1)
    extra = [LABELS[int(k)].replace("|", "") for k in rng.integers(0, len(LABELS), len(frame))]
    frame[LABEL] = [
        f"{label.replace('|', '')};{more}" for label, more in zip(frame[LABEL], extra, strict=True)
    ]
    return audit_tags(frame, sep=";", item=[ITEM], label=LABEL, draws=300)


REPORTS = {
    "compare": _compare,
    "compare-many": _compare_many,
    "leak": _leak,
    "issues": _issues,
    "numeric": _numeric,
    "ordinal": _ordinal,
    "tags": _tags,
}


@cache
def made(name: str) -> Any:
    """The result, made once."""
    return REPORTS[name]()
