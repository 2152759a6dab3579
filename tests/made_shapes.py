"""More AuditResults made by hand: one for each shape that a result can take, and results full of hostile text."""

from __future__ import annotations

import dataclasses

from hypothesis import strategies as st

from audit.results import (
    Agreement,
    Alarm,
    AuditResult,
    Ceiling,
    Comparison,
    ConflictGroup,
    ConflictRow,
    Disagreement,
    FlipRate,
    GroupSize,
    RepeatSummary,
    Reweighted,
    Verdict,
)
from tests.made_results import NO_RIVAL, NOTHING, band, breakdown, full

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "\u202egnp.exe\u202c",
    "a|b`c`\n# d\r\n<b>",
    "\x1b[31mred\x1b[0m\x00\x07",
    "[x](javascript:alert(1))",
    "\ud800 lone",
    "שלום \u200fworld",
    "",
    "  ",
    "👩\u200d🔬",
    "{{ 7*7 }}{% raw %}",
    "<!-- ",
    "]]>",
    "&lt;b&gt;",
    "**bold** _em_ ~~no~~ $x$",
    "- list",
    "1. one",
    "www.example.org",
    "\u2028\u2029\x85",
    "a" * 300,
)


def no_repeats() -> AuditResult:
    """No item has two labels: nothing can be estimated."""
    why = "no item has two labels, so disagreement cannot be measured"
    return dataclasses.replace(
        full(),
        verdict=Verdict(
            headline="No item is labelled twice, so these labels cannot be audited yet.",
            next_steps=("Run audit plan.",),
        ),
        repeats=RepeatSummary(items=0, rows=0, pairs=0, conflicts=0),
        disagreement=Disagreement(
            estimate=None, method="none", level=0.95, pair_weighted=None, row_weighted=None, reason=why
        ),
        flip_rate=FlipRate(estimate=None, method="none", classes=2, one_rival=NO_RIVAL, reason=why),
        ceiling=Ceiling(lower=None, upper=None, low=None, high=None, reason=why),
        agreement=Agreement(
            kappa=NOTHING, alpha=NOTHING, reason="no item has two labels: agreement has no chance level"
        ),
        by={},
        comparisons={},
        copied_share=(),
        reweighted=(),
        alarms=(),
        conflicts=(),
    )


def refused() -> AuditResult:
    """Repeats, but no flip rate: the file was de-duplicated on item and label."""
    why = "the file was de-duplicated on (item, label) or is multi-label: 113 of 118 repeated items conflict"
    d = Disagreement(
        estimate=0.958,
        low=0.904,
        high=0.982,
        method="Wilson",
        level=0.95,
        pair_weighted=0.958,
        row_weighted=0.958,
    )
    alarm = Alarm(
        code="deduplicated",
        severity="stop",
        message=why,
        action="Audit the file before it was de-duplicated.",
        figures={"items": 118, "conflicts": 113, "p_value": 1e-9, "exact": True, "limit": None},
    )
    return dataclasses.replace(
        full(),
        repeats=RepeatSummary(items=118, rows=236, pairs=118, conflicts=113),
        disagreement=d,
        flip_rate=FlipRate(estimate=None, method="none", classes=5, one_rival=NO_RIVAL, reason=why),
        ceiling=Ceiling(lower=None, upper=None, low=None, high=None, reason=why),
        alarms=(alarm,),
        by={},
        comparisons={},
        copied_share=(),
        reweighted=(),
    )


def no_conflicts() -> AuditResult:
    """Twenty repeated items, all of which agree: a one-sided interval."""
    d, rate, ceiling = band(0.0, 0.0, 1 - 0.05 ** (1 / 20))
    one_sided = "one-sided, no conflicts"
    return dataclasses.replace(
        full(),
        repeats=RepeatSummary(
            items=20,
            rows=40,
            pairs=20,
            conflicts=0,
            sizes=(GroupSize(size=2, items=20, conflicts=0, estimate=0.0),),
        ),
        disagreement=dataclasses.replace(d, method=one_sided),
        flip_rate=dataclasses.replace(rate, method=one_sided),
        ceiling=ceiling,
        alarms=(),
        by={},
        comparisons={},
        copied_share=(),
        reweighted=(),
        conflicts=(),
    )


def many_classes() -> AuditResult:
    """Four classes: the flip rate has a second form, for errors that go to one rival class."""
    d, rate, ceiling = band(0.2720, 0.2179, 0.3331, classes=4)
    return dataclasses.replace(full(), disagreement=d, flip_rate=rate, ceiling=ceiling)


def with_conflicts(groups: tuple[ConflictGroup, ...], item: tuple[str, ...] = ("text",)) -> AuditResult:
    """The full result with other conflicts."""
    base = full()
    return dataclasses.replace(
        base,
        conflicts=groups,
        data=dataclasses.replace(base.data, item=item),
        repeats=dataclasses.replace(base.repeats, conflicts=len(groups), items=max(len(groups), 252)),
    )


#: One result for each shape, by name.
SHAPES = {
    "full": full,
    "no_repeats": no_repeats,
    "refused": refused,
    "no_conflicts": no_conflicts,
    "many_classes": many_classes,
}

texts = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(max_size=40),
    st.text(alphabet="<>&\"'`|*_[]()\\#!-~$@: \n\r\tab\u202e\x00\x1b", max_size=30),
)


def hostile(text: str) -> AuditResult:
    """The full result with ``text`` wherever a file or a column could have put it, and in each sentence.

    An item, a label or a column may be blank; a sentence and a file name are not.
    """
    base = full()
    said = text if text.strip() else "a sentence"
    rows = tuple(
        ConflictRow(row=i + 1, label=label, details={text: text, "none": None})
        for i, label in enumerate((text, "x"))
    )
    return dataclasses.replace(
        base,
        verdict=Verdict(headline=said, next_steps=(said,)),
        data=dataclasses.replace(
            base.data, source=said, item=(text,), label=text, classes=("x", text), notes=(said,)
        ),
        by={text: (breakdown(text, 0.1, 0.05, 0.2),)},
        comparisons={text: Comparison(column=text, p_value=None, method=said, reason=said)},
        reweighted=(Reweighted(by=text, estimate=None, shift=None, p_value=None, cramers_v=None),),
        alarms=(
            Alarm(
                code="spelling",
                severity="note",
                message=said,
                action=said,
                figures={text: text, "labels": [text], "of": {text: 1}},
            ),
        ),
        conflicts=(ConflictGroup(item=(text,), counts={text: 1, "x": 1}, disagreement=1.0, rows=rows),),
        repeats=dataclasses.replace(base.repeats, conflicts=1),
    )
