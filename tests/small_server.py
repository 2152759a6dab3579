"""Starts the server of llama-cpp-python, spared of work whose result nobody reads; its replies are the same.

For the log-probabilities of one reply it takes the softmax of every token of the prompt, then sorts, in Python, the
whole vocabulary at every token of the reply to tell the first few: nine tenths of the time of a short request.
"""

import builtins
import heapq
import runpy

import llama_cpp.llama

HEAD = 64
log_softmax = llama_cpp.llama.Llama.logits_to_logprobs


class Late:
    """Rows of log-probabilities, worked out when they are asked for."""

    def __init__(self, logits):
        self.logits = logits

    def __getitem__(self, part):
        return log_softmax(self.logits[part])


def logits_to_logprobs(logits, axis=-1):
    return Late(logits) if getattr(logits, "ndim", 1) == 2 and axis == -1 else log_softmax(logits, axis)


def head(things, /, *, key=None, reverse=False):
    """The first of `sorted`, where it was called for (log-probability, token) pairs; else all."""
    if isinstance(things, zip) and reverse and key is None:
        return heapq.nlargest(HEAD, things)
    return builtins.sorted(things, key=key, reverse=reverse)


if __name__ == "__main__":
    llama_cpp.llama.Llama.logits_to_logprobs = staticmethod(logits_to_logprobs)
    llama_cpp.llama.sorted = head
    runpy.run_module("llama_cpp.server", run_name="__main__", alter_sys=True)
