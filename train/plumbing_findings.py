"""The verdicts of the plumbing report: findings in words with the number behind each.

Two kinds. Counts of what ought not to be (a paid wrong answer) are findings from the first case on. What chance could
show is tested, all p values of a report are adjusted together by Holm's rule, and a finding needs both an adjusted p of
at most :data:`FAMILY_ERROR` and an effect worth telling: on rollouts without any of these mechanisms a report has one
false finding or more with a chance of at most :data:`FAMILY_ERROR`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from audit.intervals import holm
from audit.results import Estimate
from audit.wording import share as share_words
from train.plumbing_results import Checks, Finding, LengthTax, Pool, Quantile, Share, Slope, Test

__all__ = ["FAMILY_ERROR", "find", "tests_of"]

#: The chance of any false finding in a report: reports are read by the dozen, so 5 % would mislead someone each time.
FAMILY_ERROR = 0.01

#: Fewer cut rollouts than this share are no tax worth telling.
_SMALLEST_CUT = 0.01

#: Smaller changes of closure or reward than this share of the reward's range (for twice the length) are not worth it.
_SMALLEST_SLOPE = 0.02

#: Smaller differences between informative and seen groups, in points of share, are not worth it; the audit of
#: duplicates (audit.alarms) lets shifts below .02 pass, and these shares come from far fewer groups.
_SMALLEST_SHIFT = 0.05

#: Where no group has cut and finished rollouts side by side, so many cut ones, so many of them at the lowest
#: reward, are told without a test.
_MOSTLY, _NEARLY_ALL = 0.5, 0.9


def tests_of(tax: LengthTax, pool: Pool) -> dict[str, float]:
    """The p values of the report's tests, by the code of their finding."""
    parts: dict[str, Slope | Test] = {
        "cap-tax": tax.cut,
        "gate-tax": tax.closure,
        "long-scores-lower": _long(tax),
        "pool-mix": pool.mix,
        "pool-drift": pool.drift,
        "pool-contested": pool.contested_mix,
        "pool-contested-drift": pool.contested_drift,
    }
    return {code: part.p_value for code, part in parts.items() if part.p_value is not None}


def find(
    *, truncated: Estimate | None, tax: LengthTax, caps: Sequence[Quantile], pool: Pool, checks: Checks
) -> tuple[Finding, ...]:
    """All findings: what length costs, then what the scorer does, then the pool, then the groups."""
    raw = tests_of(tax, pool)
    adjusted = dict(zip(raw, holm(list(raw.values())), strict=True))
    sure = {code: p for code, p in adjusted.items() if p <= FAMILY_ERROR}
    return (
        *_cap(truncated, tax, caps, sure, raw),
        *_gate(tax, sure, cuts=truncated is not None),
        *_scorer(checks),
        *_pool(pool, sure),
        *_contested(pool, sure),
        *_groups(checks),
    )


def _cap(
    truncated: Estimate | None,
    tax: LengthTax,
    caps: Sequence[Quantile],
    sure: dict[str, float],
    raw: dict[str, float],
) -> Iterator[Finding]:
    cut, ended = tax.cut_lowest, tax.finished_lowest
    share = truncated.estimate if truncated is not None else None
    if cut is None or cut.estimate is None or share is None or share < _SMALLEST_CUT:
        return
    tested = "cap-tax" in sure and (tax.cut.estimate or 0.0) <= -_SMALLEST_SLOPE * _range(tax)
    plain = "cap-tax" not in raw and share >= _MOSTLY and cut.estimate >= _NEARLY_ALL
    if not tested and not plain:
        return
    other = (
        ""
        if ended is None or ended.estimate is None
        else f", against {share_words(ended.estimate)} of those that end"
    )
    gap = (
        ""
        if tax.cut.estimate is None
        else f" In one group a cut rollout gets {_signed(tax.cut.estimate)} for it."
    )
    enough = next((cap for cap in caps if cap.share >= 0.95 and cap.estimate is not None), None)
    need = (
        f"a cap of {enough.estimate:,.0f} would let {share_words(enough.share)} end"
        if enough is not None
        else "how long the cut ones would have become is not known: raise the cap for a few steps and look again"
    )
    yield Finding(
        code="cap-tax",
        message=(
            f"{share_words(cut.estimate)} of capped rollouts score {_lowest(tax)}{other}: the reward taxes length. "
            f"{share_words(share)} of all rollouts are cut.{gap}"
        ),
        action=f"leave cut rollouts out of the baseline and of the loss, or raise the cap: {need}",
        p_value=sure.get("cap-tax"),
        figures={
            "truncated": share, "cut_lowest": cut.estimate, "finished_lowest": ended.estimate if ended else None,
            "difference": tax.cut.estimate, "cap": enough.estimate if enough else None,
        },
    )  # fmt: skip


def _gate(tax: LengthTax, sure: dict[str, float], *, cuts: bool) -> Iterator[Finding]:
    """What length costs beside the cap; where the log has no cuts, the cap may be behind it, and that is said."""
    closure, reward = tax.closure.estimate, tax.reward.estimate
    unclosed = tax.unclosed_reward.estimate if tax.unclosed_reward is not None else None
    if "gate-tax" in sure and closure is not None and closure <= -_SMALLEST_SLOPE and unclosed is not None:
        yield Finding(
            code="gate-tax",
            message=(
                f"Among {'finished ' if cuts else ''}rollouts of one group, twice the length is closed less often "
                f"({_points(closure)}), and what is not closed gets {unclosed:.2f} on average: "
                f"{'the gate taxes' if cuts else 'the gate, or the cap (cuts are not known), taxes'} long thought"
                f"{'' if reward is None else f' (reward {_signed(reward)} for twice the length)'}."
            ),
            action=(
                "look at long finished rollouts that are not closed: does the gate refuse what is an answer?"
                if cuts
                else "tell the cap with --cap and --tokenizer, or log which rollouts were cut: only then are the two "
                "told apart"
            ),
            p_value=sure["gate-tax"],
            figures={"closure": closure, "reward": reward, "unclosed_reward": unclosed},
        )
    part = _long(tax)
    if "long-scores-lower" in sure and (part.estimate or 0.0) <= -_SMALLEST_SLOPE * _range(tax):
        gate = part is tax.closed_reward
        kind = " and ".join(word for word, known in (("finished", cuts), ("closed", gate)) if known)
        aside = " and ".join(word for word, known in (("cap", cuts), ("gate", gate)) if known)
        unknown = " and ".join(
            words for words, known in (("what was cut", cuts), ("what was closed", gate)) if not known
        )
        yield Finding(
            code="long-scores-lower",
            message=(
                f"Among {kind}{' ' if kind else ''}rollouts of one group, twice the length gets "
                f"{_signed(part.estimate)} reward: longer thought "
                f"{'itself scores lower here' if not unknown else 'scores lower here'}"
                f"{f', {aside} aside' if aside else ''}{f'; {unknown} is not known' if unknown else ''}."
            ),
            action=(
                "no cap and no gate explains this; read long wrong answers before length is encouraged"
                if not unknown
                else f"find out {unknown} first: {'the gate' if cuts else 'the cap' if gate else 'cap or gate'} may be "
                "behind this"
            ),
            p_value=sure["long-scores-lower"],
            figures={"slope": part.estimate, "low": part.low, "high": part.high, "groups": part.groups},
        )


def _scorer(checks: Checks) -> Iterator[Finding]:
    if checks.several_tags_paid:
        closed = (
            f"; {checks.several_tags_closed:,} were logged as closed" if checks.several_tags_closed else ""
        )
        yield Finding(
            code="several-tags",
            message=(
                f"{checks.several_tags_paid:,} of {checks.several_tags:,} rollouts with several close tags in their "
                f"text are paid{closed}: a quoted tag may end the thought."
            ),
            action="decide closure on token ids, once, and give nothing to a thought that is closed twice",
            figures={
                "several_tags": checks.several_tags,
                "paid": checks.several_tags_paid,
                "closed": checks.several_tags_closed,
                "in_prompts": checks.tags_in_prompts,
            },
        )
    for count, code, words in (
        (checks.right_unpaid, "right-unpaid", "answer as labelled, are whole, and get the lowest reward"),
        (checks.wrong_paid, "wrong-paid", "answer something else than the label and are paid"),
    ):
        if count and checks.answered:
            yield Finding(
                code=code,
                message=f"{count:,} of {checks.answered:,} rollouts with an answer {words}: the reward contradicts it.",
                action="score these rollouts again by hand; the answer that is logged must be the one that is scored",
                figures={"rollouts": count, "answered": checks.answered},
            )


def _pool(pool: Pool, sure: dict[str, float]) -> Iterator[Finding]:
    if not pool.classes:
        return
    moved = max(pool.classes, key=lambda share: abs(share.change or 0.0))
    if "pool-drift" in sure and abs(moved.change or 0.0) >= _SMALLEST_SHIFT:
        yield Finding(
            code="pool-drift",
            message=(
                f"The pool drifts: class {moved.value} is {_of(moved.seen)} of the groups seen, and over the steps its "
                f"share of the informative ones moves by {_points(moved.change)} against that."
            ),
            action="what is left to learn from is no sample of the data: watch each class, or weight groups by class",
            p_value=sure["pool-drift"],
            figures=_figures(moved),
        )
        return
    far = max(pool.classes, key=lambda share: abs(_shift(share, filtered=pool.filtered)))
    if "pool-mix" in sure and abs(_shift(far, filtered=pool.filtered)) >= _SMALLEST_SHIFT:
        base = share_words(far.data or 0.0) if pool.filtered else _of(far.seen)
        yield Finding(
            code="pool-mix",
            message=(
                f"Class {far.value} is {_of(far.informative)} of the informative groups and {base} of "
                f"{'the data' if pool.filtered else 'the groups seen'}: the skip of uniform groups changes the classes."
            ),
            action="compare the recall of each class before and after training, not only the accuracy",
            p_value=sure["pool-mix"],
            figures=_figures(far),
        )


def _contested(pool: Pool, sure: dict[str, float]) -> Iterator[Finding]:
    share = pool.contested
    if share is None:
        return
    action = "relabel these items or leave them out: the reward there is the label's coin"
    if "pool-contested" in sure and abs(_shift(share, filtered=False)) >= _SMALLEST_SHIFT:
        more = "more" if _shift(share, filtered=False) > 0 else "less"
        yield Finding(
            code="pool-contested",
            message=(
                f"{_of(share.informative)} of the informative groups are items whose labels disagree, against "
                f"{_of(share.seen)} of those seen: what the labels do not settle is learnt from {more} than the rest."
            ),
            action=action,
            p_value=sure["pool-contested"],
            figures=_figures(share),
        )
    if "pool-contested-drift" in sure and abs(share.change or 0.0) >= _SMALLEST_SHIFT:
        yield Finding(
            code="pool-contested-drift",
            message=(
                f"Items whose labels disagree are {_of(share.seen)} of the groups seen, and over the steps their share "
                f"of the informative ones moves by {_points(share.change)} against that."
            ),
            action=action,
            p_value=sure["pool-contested-drift"],
            figures=_figures(share),
        )


def _groups(checks: Checks) -> Iterator[Finding]:
    uneven = checks.uneven_groups
    for count, code, words, action in (
        (
            checks.groups_of_one,
            "group-of-one",
            "groups hold one rollout: its baseline is itself",
            "sample several per prompt",
        ),
        (
            uneven,
            "uneven-groups",
            "groups have another size than most" if uneven != 1 else "group has another size than most",
            "look for rollouts that were lost from the log; in a verl log, for one prompt drawn twice in a step",
        ),
        (
            checks.uncentred_groups,
            "advantage-not-centred",
            "groups have advantages that do not sum to nought",
            "take the baseline over the rollouts that have a reward, and over no others",
        ),
    ):
        if count:
            yield Finding(code=code, message=f"{count:,} {words}.", action=action, figures={"groups": count})


def _long(tax: LengthTax) -> Slope:
    """Length against reward, cap and gate aside; where closure is not known, the gate cannot be set aside."""
    return tax.reward if tax.closed_reward.estimate is None else tax.closed_reward


def _range(tax: LengthTax) -> float:
    return (tax.highest or 0.0) - (tax.lowest or 0.0)


def _lowest(tax: LengthTax) -> str:
    return "zero" if tax.lowest == 0 else f"the lowest reward ({tax.lowest:g})"


def _shift(share: Share, *, filtered: bool) -> float:
    base = share.data if filtered else share.seen.estimate if share.seen is not None else None
    found = share.informative.estimate if share.informative is not None else None
    return 0.0 if base is None or found is None else found - base


def _figures(share: Share) -> dict[str, object]:
    return {
        "value": share.value,
        "data": share.data,
        "seen": share.seen.estimate if share.seen else None,
        "informative": share.informative.estimate if share.informative else None,
        "change": share.change,
    }


def _of(part: Estimate | None) -> str:
    return "none" if part is None or part.estimate is None else share_words(part.estimate)


def _points(value: float | None) -> str:
    return f"{100 * (value or 0.0):+.0f} points".replace("-", "−")


def _signed(value: float | None) -> str:
    return f"{value or 0.0:+.2f}".replace("-", "−")
