"""One scorer for evaluation and reward: an answer counts if it is exactly a label, after one closed thought.

What ends a thought is decided on token ids, never on decoded text: where ``</think>`` is a token of its own, the
same letters quoted in a text are other tokens and end nothing. Where a tokenizer has no such token, the tag is a
sequence of ids; a quoted one cannot be told from a real one then, so a second one spoils the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from audit.errors import ArgumentError

__all__ = ["REASONS", "Scored", "Scorer", "Tags", "tag_places"]

#: Why a completion got the reward it got.
REASONS = (
    "right",
    "wrong",
    "truncated",
    "no close tag",
    "several close tags",
    "several thoughts",
    "text before the thought",
    "empty answer",
    "not a label",
)


@dataclass(frozen=True, kw_only=True)
class Tags:
    """The token ids of the tags around a thought; ``prefilled`` where the prompt already ends with the open tag."""

    open: tuple[int, ...]
    close: tuple[int, ...]
    prefilled: bool = False

    def __post_init__(self) -> None:
        if not self.open or not self.close:
            raise ArgumentError(
                "the tags of a thought need one token each at least: name others under model.think"
            )


@dataclass(frozen=True, kw_only=True)
class Scored:
    """What a completion is worth: ``reward`` 0 or 1, the ``answer`` (None without one) and the reason."""

    reward: float
    answer: str | None
    closed: bool
    truncated: bool
    reason: str


class Scorer:
    """Scores completions given as token ids.

    Parameters
    ----------
    labels:
        The answers that count, compared letter by letter after white space at both ends is gone.
    decode:
        Turns ids into text with special tokens kept, such as
        ``lambda ids: tokenizer.decode(ids, skip_special_tokens=False)``.
    ends:
        Ids that end a completion (end of sequence, end of turn, padding); they are cut off its end.
    tags:
        The tags around a thought, or None for direct answers.
    """

    def __init__(
        self,
        labels: Collection[str],
        *,
        decode: Callable[[Sequence[int]], str],
        ends: Collection[int],
        tags: Tags | None = None,
    ) -> None:
        if not labels:
            raise ArgumentError("a scorer needs the labels that count as answers")
        self.labels = frozenset(labels)
        self.tags = tags
        self._decode = decode
        self._ends = frozenset(ends)

    def score(self, ids: Sequence[int], *, label: str, truncated: bool) -> Scored:
        """The reward of one completion against ``label``.

        Parameters
        ----------
        ids:
            Token ids of the completion alone, without the prompt; what follows the first end is dropped.
        label:
            The label it should give.
        truncated:
            It was cut at the cap, so that its end was never written.
        """
        kept = self._cut(ids)
        answer_from, reason = self._thought(kept)
        closed = not truncated if self.tags is None else answer_from is not None
        if truncated:
            return Scored(reward=0.0, answer=None, closed=closed, truncated=True, reason="truncated")
        if answer_from is None:
            return Scored(reward=0.0, answer=None, closed=False, truncated=False, reason=reason)
        answer = self._decode(kept[answer_from:]).strip()
        if answer not in self.labels:
            reason = "not a label" if answer else "empty answer"
            return Scored(reward=0.0, answer=None, closed=closed, truncated=False, reason=reason)
        right = answer == label
        return Scored(
            reward=float(right),
            answer=answer,
            closed=closed,
            truncated=False,
            reason="right" if right else "wrong",
        )

    def _cut(self, ids: Sequence[int]) -> list[int]:
        """The ids before the first end."""
        kept: list[int] = []
        for one in ids:
            if one in self._ends:
                break
            kept.append(one)
        return kept

    def _thought(self, ids: list[int]) -> tuple[int | None, str]:
        """Where the answer begins, or None and the reason why there is none."""
        if self.tags is None:
            return 0, ""
        closes = tag_places(ids, self.tags.close)
        if not closes:
            return None, "no close tag"
        if len(closes) > 1:
            return None, "several close tags"
        opens = tag_places(ids, self.tags.open)
        if len(opens) > (0 if self.tags.prefilled else 1) or any(place > closes[0] for place in opens):
            return None, "several thoughts"
        if opens and self._decode(ids[: opens[0]]).strip():
            return None, "text before the thought"
        return closes[0] + len(self.tags.close), ""


def tag_places(ids: Sequence[int], tag: tuple[int, ...]) -> list[int]:
    """The places in ``ids`` where ``tag`` begins."""
    n = len(tag)
    return [k for k in range(len(ids) - n + 1) if ids[k] == tag[0] and tuple(ids[k : k + n]) == tag]
