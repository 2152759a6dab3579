"""Alarms: each rises where it should, with its figures, and stays silent where labels are clean."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audit.alarms import raise_alarms
from audit.disagreement import estimate_disagreement
from audit.evidence import Copies, Evidence, deduplicated
from audit.labels import canonical_label, likely_typos, merged_names, no_labels, spelling_variants
from audit.patterns import CountPatterns, PairContrast
from audit.results import Comparison, Estimate, LadderRung, Reweighted


def pairs(agree: tuple[int, int], conflict: int) -> CountPatterns:
    """Binary pairs: agreements on each class, and conflicts."""
    return CountPatterns.from_counts([[2, 0], [0, 2], [1, 1]], items=[*agree, conflict], classes=("0", "1"))


def evidence(patterns: CountPatterns, **changes: object) -> Evidence:
    counts = np.asarray(patterns.items @ patterns.counts, np.int64)
    base = Evidence(
        patterns=patterns,
        d=estimate_disagreement(patterns, draws=200),
        kappa=Estimate(estimate=0.5, low=0.4),
        class_rows=counts,
    )
    return replace(base, **changes)


def codes(found: Evidence) -> list[str]:
    return [alarm.code for alarm in raise_alarms(found)]


def contrast(inside: tuple[int, int], outside: tuple[int, int]) -> PairContrast:
    """Items of one pair each: (agreeing, conflicting) pairs inside a value, and across values."""
    rows = [(1, 0, 0, 0), (1, 1, 0, 0), (0, 0, 1, 0), (0, 0, 1, 1)]
    table = np.array(rows, np.int64)
    return PairContrast(
        inside_pairs=table[:, 0], inside_conflicts=table[:, 1], outside_pairs=table[:, 2],
        outside_conflicts=table[:, 3], items=np.array([*inside, *outside], np.int64),
    )  # fmt: skip


CLEAN = pairs((150, 70), 40)


def test_clean_labels_raise_nothing() -> None:
    assert codes(evidence(CLEAN)) == []


def test_deduplicated_file_is_refused_with_its_counts() -> None:
    # 118 duplicates, 113 of them conflicting, as in a public test set that lost its equal repeats
    found = evidence(pairs((3, 2), 113))
    (alarm,) = [a for a in raise_alarms(found) if a.code == "de-duplicated or multi-label"]
    assert alarm.severity == "stop"
    assert alarm.figures == {"items": 118, "conflicts": 113, "agreements": 5}
    assert "113 of 118" in alarm.message


def test_random_labels_are_not_called_deduplicated() -> None:
    # 26 of 40 pairs conflict where chance alone gives 20: above the maximum, but equal pairs are there
    found = evidence(pairs((7, 7), 26))
    assert deduplicated(found.patterns, found.class_rows) is None
    (alarm,) = [a for a in raise_alarms(found) if a.code == "above the maximum"]
    assert alarm.figures == {"disagreement": 0.65, "maximum": 0.5, "classes": 2}


@pytest.mark.parametrize("conflicts", [0, 1, 2, 3, 4])
def test_too_few_items_never_look_deduplicated(conflicts: int) -> None:
    found = evidence(pairs((0, 0), conflicts)) if conflicts else evidence(pairs((1, 0), 0))
    assert deduplicated(found.patterns, found.class_rows) is None


def test_copies_by_row_id_always_raise() -> None:
    without = pairs((0, 0), 1)
    found = evidence(pairs((49, 0), 1), copies=Copies(rows=50, by_row_id=True, without=without))
    (alarm,) = [a for a in raise_alarms(found) if a.code == "export copies"]
    assert "(1 of 1 repeated items disagree; too few to say)" in alarm.message
    assert alarm.figures["disagreement_without"] == 1.0
    assert "--drop-copies" in alarm.action


def test_equal_rows_raise_only_when_they_agree_more_than_the_others() -> None:
    copied = Copies(
        rows=80, by_row_id=False, without=pairs((50, 20), 30), contrast=contrast((80, 0), (70, 30))
    )
    assert "export copies" in codes(evidence(CLEAN, copies=copied))
    # other columns that never differ (a split, say): conflicts are equal in them too, so equality says nothing
    natural = Copies(rows=200, by_row_id=False, without=CLEAN, contrast=contrast((160, 40), (40, 10)))
    assert "export copies" not in codes(evidence(CLEAN, copies=natural))
    alone = Copies(rows=200, by_row_id=False, without=CLEAN, contrast=contrast((160, 40), (0, 0)))
    assert "export copies" not in codes(evidence(CLEAN, copies=alone))
    every = Copies(rows=200, by_row_id=False, without=CLEAN, contrast=contrast((200, 0), (0, 0)))
    (alarm,) = raise_alarms(evidence(pairs((150, 50), 0), copies=every))
    assert (alarm.code, alarm.severity) == ("export copies", "note")  # it cannot be told for certain
    few = Copies(rows=15, by_row_id=False, without=CLEAN, contrast=contrast((15, 0), (0, 0)))
    assert codes(evidence(pairs((10, 5), 0), copies=few)) == []


@pytest.mark.parametrize("code", ["same annotator", "adjacent rows", "same minute"])
def test_dependent_repeats(code: str) -> None:
    dependent = evidence(CLEAN, contrasts={code: ("worker", contrast((95, 5), (70, 30)))})
    (alarm,) = [a for a in raise_alarms(dependent) if a.code == code]
    assert alarm.figures["inside"] == pytest.approx(0.05)
    assert alarm.figures["outside"] == pytest.approx(0.30)
    assert "5.0%" in alarm.message
    assert "30.0%" in alarm.message
    independent = evidence(CLEAN, contrasts={code: ("worker", contrast((82, 18), (80, 20)))})
    assert codes(independent) == []
    opposite = evidence(CLEAN, contrasts={code: ("worker", contrast((70, 30), (95, 5)))})
    assert codes(opposite) == []


def test_leakage_and_unequal_splits() -> None:
    comparison = Comparison(
        column="split", p_value=0.0001, method="permutation", items_across=7,
        within=Estimate(estimate=0.1), across=Estimate(estimate=0.3),
    )  # fmt: skip
    found = evidence(CLEAN, split="split", comparisons={"split": comparison})
    assert codes(found) == ["leakage", "splits differ"]
    assert raise_alarms(found)[0].figures == {"items": 7, "within": 0.1, "across": 0.3}
    quiet = replace(comparison, p_value=0.2, items_across=0)
    assert codes(evidence(CLEAN, split="split", comparisons={"split": quiet})) == []


def test_unrepresentative_repeats_need_certainty_and_size() -> None:
    def by(p_value: float, effect: float, shift: float | None = 0.05) -> Evidence:
        part = Reweighted(by="class", estimate=0.2, shift=shift, p_value=p_value, cramers_v=effect)
        return evidence(CLEAN, reweighted=(part,))

    assert codes(by(1e-6, 0.3)) == ["unrepresentative repeats"]
    assert codes(by(1e-6, 0.05)) == []
    assert codes(by(0.01, 0.3)) == []
    assert codes(by(1e-6, 0.3, shift=0.001)) == []  # another make-up that leaves d where it is
    assert codes(by(1e-6, 0.3, shift=None)) == ["unrepresentative repeats"]  # it cannot be told


def test_giant_group_is_named() -> None:
    patterns = CountPatterns.from_counts([[2, 0], [50, 50]], items=[400, 1], classes=("0", "1"))
    (alarm,) = [a for a in raise_alarms(evidence(patterns)) if a.code == "weightings differ"]
    assert alarm.figures["largest_group"] == 100
    assert alarm.figures["pair_weighted"] == pytest.approx(2500 / (400 + 4950))


def test_spellings_are_grouped_and_merging_silences() -> None:
    names = ("1", "1.0", "Yes", "yes ", "No", "01", "１")
    assert spelling_variants(names) == (("1", "1.0", "01", "１"), ("Yes", "yes "))
    found = evidence(CLEAN, spellings=spelling_variants(names))
    assert codes(found) == ["label spellings"]
    assert "'yes '" in raise_alarms(found)[0].message
    assert codes(evidence(CLEAN, spellings=spelling_variants(names), merged=True)) == []


@pytest.mark.parametrize(
    ("label", "canonical"),
    [("Yes", "yes"), ("yes ", "yes"), ("1.0", "1"), ("-0", "0"), ("1e3", "1000"), ("0x1", "0x1"), ("nan", "nan"),
     ("inf", "inf"), ("1e999", "1e999"), ("", ""), ("1_000", "1_000"), (".5", "0.5"), ("+2", "2"), ("a  b", "a b")],
)  # fmt: skip
def test_canonical_label(label: str, canonical: str) -> None:
    assert canonical_label(label) == canonical


def test_merged_name_is_the_commonest_spelling() -> None:
    assert merged_names(("yes ", "Yes", "no"), (2, 5, 1)) == {"yes ": "Yes", "Yes": "Yes", "no": "no"}


def test_typos_are_rare_and_one_letter_off() -> None:
    names = ("billing", "biling", "bililng", "bills", "shipping", "class1", "class2", "Billing!", "other")
    rows = (400, 3, 2, 1, 300, 200, 1, 2, 19)
    assert likely_typos(names, rows) == (
        ("biling", "billing"),
        ("bililng", "billing"),
        ("Billing!", "billing"),
    )
    assert likely_typos(("billing", "biling"), (400, 100)) == ()  # both common: two classes
    patterns = CountPatterns.from_counts(
        [[2, 0, 0], [0, 2, 0], [1, 1, 0], [0, 1, 1]],
        items=[90, 90, 20, 1],
        classes=("refund", "billing", "biling"),
    )
    (alarm,) = raise_alarms(evidence(patterns))
    assert (alarm.code, alarm.figures["typos"]) == ("label typos", [["biling", "billing"]])


def test_words_for_no_label() -> None:
    assert no_labels(("N/A", "unsure ", "yes", "none of these", "NULL", "?")) == (
        "N/A",
        "unsure ",
        "NULL",
        "?",
    )
    patterns = CountPatterns.from_counts(
        [[2, 0, 0], [0, 2, 0], [1, 1, 0], [0, 1, 1]], items=[90, 90, 20, 1], classes=("no", "yes", "n/a")
    )
    (alarm,) = raise_alarms(evidence(patterns))
    assert (alarm.code, alarm.severity, alarm.figures["rows"]) == ("labels that may mean none", "note", 1)
    assert "--missing n/a" in alarm.action


def test_chance_agreement_names_what_the_item_may_lack() -> None:
    found = evidence(CLEAN, kappa=Estimate(estimate=-0.03, low=-0.1, high=0.05), unused=("entity", "driver"))
    (alarm,) = raise_alarms(found)
    assert alarm.code == "no better than chance"
    assert "entity, driver" in alarm.message
    assert codes(evidence(CLEAN, kappa=Estimate(estimate=0.1, low=0.02, high=0.2))) == []
    assert codes(evidence(CLEAN, kappa=Estimate(estimate=0.2, low=-0.1, high=0.5))) == []  # not shown
    assert (
        codes(evidence(pairs((10, 5), 7), kappa=Estimate(estimate=-0.1, low=-0.3, high=0.2))) == []
    )  # too few


def test_more_repeats_at_a_coarser_level() -> None:
    def rung(level: str, items: int, d: float | None) -> LadderRung:
        return LadderRung(level=level, items=items, rows=2 * items, conflicts=0, estimate=d)

    ladder = (rung("none", 80, 0.22), rung("case", 86, 0.22), rung("punctuation", 200, 0.145))
    (alarm,) = raise_alarms(evidence(CLEAN, ladder=ladder))
    assert alarm.code == "more repeats in other spelling"
    assert alarm.figures == {"level": "punctuation", "items": 200, "disagreement": 0.145, "items_used": 86}
    assert codes(evidence(CLEAN, ladder=ladder[:2])) == []
    assert codes(evidence(CLEAN, ladder=ladder, normalise="punctuation")) == []


def test_labels_added_to_conflicts_are_seen() -> None:
    added = CountPatterns.from_counts(
        [[2, 0], [0, 2], [2, 1], [1, 2]], items=[60, 30, 12, 8], classes=("0", "1")
    )
    (alarm,) = [a for a in raise_alarms(evidence(added)) if a.code == "labels added to conflicts"]
    assert alarm.figures["share"] == pytest.approx(20 / 110)
    mixed = CountPatterns.from_counts(
        [[2, 0], [1, 1], [3, 0], [2, 1]], items=[60, 10, 12, 8], classes=("0", "1")
    )
    assert codes(evidence(mixed)) == []
