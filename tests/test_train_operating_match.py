"""Another run against the matched threshold: a pure shift is called so, a gain is not, and verdicts err rarely."""

import numpy as np
import pandas as pd
import pytest

from audit.errors import ArgumentError, InputError
from audit.results import Estimate
from tests.made_scores import scores_of, scores_pair
from train.metrics import DECISION_METRICS, Ranking, binary_metrics
from train.operating import operating_point
from train.operating_match import match_points, match_run
from train.operating_verdict import judge, rows_needed

SHIFTS = ("threshold shift", "likely threshold shift")


def matched(kind, n, *, seed=0, draws=200, on="recall", digits=None, more=None, **simulated):
    a, b = scores_pair(kind, n, seed=seed, **simulated)
    if digits is not None:
        a["score"] = a["score"].round(digits)
    ours, other = scores_of(a), scores_of(b)
    return match_run(ours, other, on=on, draws=draws, seed=seed, **(more or {}))


# --- the bars ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on", ["recall", "precision", "share"])
@pytest.mark.parametrize("n", [200, 1_000, 3_000])
def test_a_pure_shift_is_called_so(n, on):
    for seed in range(5):
        found = matched("shift", n, seed=seed, on=on)
        assert found.verdict in SHIFTS
        assert found.verdict == "threshold shift" or n < 1_500
        assert all(abs(d.estimate) <= 0.002 for d in found.differences.values())
        assert (found.same_decisions, found.exact) == (1.0, True)
        assert "pure threshold shift" in found.message


@pytest.mark.parametrize("prevalence", [0.05, 0.5, 0.9])
def test_a_pure_shift_of_rare_and_frequent_positives(prevalence):
    found = matched("shift", 2_000, prevalence=prevalence)
    assert found.verdict == "threshold shift"
    assert all(abs(d.estimate) <= 0.002 for d in found.differences.values())


def test_a_real_gain_is_called_so_and_never_a_shift():
    verdicts = [matched("gain", 1_000, seed=seed, gain=0.5).verdict for seed in range(40)]
    assert verdicts.count("gain") >= 38
    assert not set(verdicts) & set(SHIFTS)
    found = matched("gain", 2_000, gain=0.5)
    assert "A real gain on" in found.message
    assert "specificity (+" in found.message
    assert "recall" not in found.message.split(":")[0]


def test_a_small_gain_is_not_called_a_shift_where_rows_are_few():
    verdicts = [matched("gain", 150, seed=seed, gain=0.15).verdict for seed in range(60)]
    assert sum(v in SHIFTS for v in verdicts) <= 1
    assert "unclear" in verdicts


def test_a_loss_is_called_so():
    verdicts = [matched("loss", 1_000, seed=seed, gain=0.5).verdict for seed in range(20)]
    assert verdicts.count("loss") >= 18
    assert "A real loss on" in matched("loss", 1_000, gain=0.5).message


@pytest.mark.parametrize("on", ["recall", "precision", "share"])
def test_a_retraining_of_equal_quality_is_no_gain(on):
    """95 % intervals: one in twenty may leave 0 out; 80 samples, so more than ten would be one in a thousand."""
    verdicts = [matched("retrained", 300, seed=seed, on=on).verdict for seed in range(80)]
    assert sum(v in ("gain", "loss") for v in verdicts) <= 10
    assert "threshold shift" not in verdicts  # 300 rows cannot show that


def test_the_interval_of_the_difference_covers_the_truth():
    held = 0
    for seed in range(100):
        part = matched("retrained", 400, seed=seed).differences["balanced_accuracy"]
        held += part.low <= 0.0 <= part.high
    assert held >= 90


def test_the_limits_of_equivalence_are_those_of_one_sided_tests():
    found = matched("retrained", 400, seed=3, draws=1_000)
    for metric in ("specificity", "f1"):
        part, limits = found.differences[metric], found.equivalence[metric]
        ratio = (limits[1] - limits[0]) / (part.high - part.low)
        assert ratio == pytest.approx(1.645 / 1.960, abs=0.06)


def test_decisions_that_are_all_the_same_still_leave_room_on_both_sides():
    """Scores without an error: only the added rows differ, about one or two of 51 in each class."""
    data = pd.DataFrame(
        {"item": range(100), "label": ["1"] * 50 + ["0"] * 50, "score": np.linspace(1, 0, 100)}
    )
    found = operating_point(data, against=data, match="share", draws=2_000).against
    for metric in ("recall", "specificity"):
        part = found.differences[metric]
        assert part.estimate == 0.0
        assert part.low == pytest.approx(-0.05, abs=0.03)
        assert part.high == pytest.approx(0.05, abs=0.03)


def test_more_rows_are_asked_for_where_it_cannot_be_told():
    found = matched("retrained", 300, seed=1)
    assert found.verdict == "unclear"
    assert "cannot be told with 300 rows" in found.message
    assert found.rows_for_margin > 100_000
    ten_times = matched("retrained", 3_000, seed=1)
    assert found.rows_for_margin == pytest.approx(ten_times.rows_for_margin, rel=1.0)


# --- ties, degenerate runs, missing answers ---------------------------------------------------------------------


def test_tied_scores_meet_between_two_thresholds():
    found = matched("shift", 1_000, digits=1)
    assert not found.exact
    assert found.ours["recall"] == pytest.approx(found.theirs["recall"])
    assert found.differences["recall"].estimate == 0.0
    again = matched("gain", 1_000, digits=1, gain=1.0)
    assert again.verdict == "gain"


def test_ties_of_both_are_a_shift():
    a, _ = scores_pair("shift", 2_000, seed=1)
    a["score"] = a["score"].round(1)
    b = a.assign(prediction=np.where(a["score"] >= 0.3, "1", "0"))
    found = operating_point(a, against=b, draws=200).against
    assert (found.verdict, found.threshold, found.exact) == ("threshold shift", pytest.approx(0.3), True)


@pytest.mark.parametrize("answer", ["0", "1"])
def test_a_run_with_one_answer_has_no_operating_point(answer):
    a, b = scores_pair("shift", 200)
    found = operating_point(a, against=b.assign(prediction=answer), draws=100)
    assert found.against.verdict == "degenerate"
    assert "No verdict" in found.summary()


def test_a_precision_that_no_threshold_reaches():
    y = np.arange(200) % 4 == 0
    rng = np.random.default_rng(0)
    a = pd.DataFrame(
        {"item": range(200), "label": y.astype(int).astype(str), "score": rng.random(200) * 0.8 + 0.1}
    )
    a.loc[1, "score"] = 0.99  # a negative is on top
    b = a.assign(prediction=np.where(y & (np.arange(200) < 100), "1", "0"))
    found = operating_point(a, against=b, match="precision", draws=100).against
    assert found.verdict == "degenerate"
    assert found.threshold is None
    assert operating_point(a, against=b, match="recall", draws=100).against.verdict == "gain"


def test_rows_without_an_answer_count_as_wrong():
    a, b = scores_pair("shift", 1_500, seed=2)
    b.loc[b.index % 5 == 0, "prediction"] = None
    found = operating_point(a, against=b.drop(columns="score"), draws=200)
    match = found.against
    assert match.no_answer == 300
    wanted = binary_metrics(list(b["label"]), list(b["prediction"]), positive="1")
    assert match.theirs == pytest.approx({m: wanted[m] for m in DECISION_METRICS})
    assert match.verdict == "loss"
    assert "300 rows without an answer" in found.summary()
    assert found.ranking == {}


def test_scores_of_the_other_run_are_compared_as_rankings_too():
    a, b = scores_pair("gain", 800, gain=0.5)
    found = operating_point(a, against=b, draws=200)
    assert set(found.ranking) == {"auc", "average_precision"}
    assert found.ranking["auc"].low > 0.0
    same = operating_point(a, against=a, draws=100)
    assert same.ranking["auc"].estimate == 0.0


def test_files_must_pair():
    a, b = scores_pair("shift", 100)
    with pytest.raises(InputError, match="lacks 1 items"):
        operating_point(a, against=b[1:], draws=100)
    assert operating_point(a, against=b[1:], common=True, draws=100).n == 99
    with pytest.raises(InputError, match="other labels"):
        operating_point(a, against=b.assign(label=np.where(b["label"] == "1", "0", "1")), draws=100)


def test_unscored_rows_are_left_out_of_both():
    a, b = scores_pair("shift", 100)
    a.loc[3, "score"] = np.nan
    with pytest.raises(InputError, match="1 of 100 rows have no score"):
        operating_point(a, against=b, draws=100)
    found = operating_point(a, against=b, drop_unscored=True, draws=100)
    assert (found.n, found.against.n, found.against.same_decisions) == (99, 99, 1.0)
    with pytest.raises(InputError, match="lacks 1 items"):  # leaving out unscored rows pairs no other ones
        operating_point(a, against=b[1:], drop_unscored=True, draws=100)
    b.loc[5, "score"] = np.nan
    some = operating_point(a, against=b, drop_unscored=True, draws=100)
    assert some.ranking == {}
    assert any("AUC is not compared: 1 rows" in note for note in some.notes)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"margin": 0.0}, "margin"),
        ({"on": "f1"}, "matched on recall"),
        ({"more": {"level": 0.4}}, "above 0.5"),
    ],
)
def test_options_out_of_range(more, message):
    margin = {"more": {"margin": more.pop("margin")}} if "margin" in more else {}
    with pytest.raises(ArgumentError, match=message):
        matched("shift", 50, **more, **margin)


# --- the parts -----------------------------------------------------------------------------------------------


def naive_points(truth, scores, on, target):
    """All vertices of the path that meet the target exactly, by brute force."""
    found = []
    for t in [np.inf, *sorted(set(scores), reverse=True)]:
        called = scores >= t
        tp, fp = int((called & truth).sum()), int((called & ~truth).sum())
        value = {"recall": tp, "share": tp + fp, "precision": tp / (tp + fp) if tp + fp else np.nan}[on]
        if np.isclose(value, target):
            found.append((tp, fp))
    return found


@pytest.mark.parametrize("on", ["recall", "precision", "share"])
def test_matched_points_are_the_nearest_that_meet_the_target(on):
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        truth = rng.random(12) < 0.5
        scores = np.round(rng.random(12), 1)
        tp, fp = Ranking(truth, scores).points(np.ones((1, 12)))
        called = rng.random(12) < 0.5
        a, b = int((called & truth).sum()), int((called & ~truth).sum())
        if a + b == 0:
            continue
        target = {"recall": a, "share": a + b, "precision": a / (a + b)}[on]
        one, two = match_points(tp, fp, on=on, target=np.array([float(target)]), share=np.array([a + b]))
        known = naive_points(truth, scores, on, target)
        if known and np.isfinite(one[0]):
            hits += one[0] + two[0] > 0
            if one[0] + two[0] == 0:
                continue
            value = {"recall": one[0], "share": one[0] + two[0], "precision": one[0] / (one[0] + two[0])}[on]
            assert value == pytest.approx(target)
            nearest = min(abs(p + q - a - b) for p, q in known)
            assert abs(one[0] + two[0] - a - b) <= nearest + 1e-9
    assert hits > 20


def test_the_match_lies_on_the_line_between_two_thresholds():
    truth = np.array([True, False, True, False])
    tp, fp = Ranking(truth, np.array([0.9, 0.9, 0.1, 0.1])).points(np.ones((1, 4)))
    one, two = match_points(tp, fp, on="recall", target=np.array([0.5]), share=np.array([1.0]))
    assert (one[0], two[0]) == (0.5, 0.5)
    one, two = match_points(tp, fp, on="share", target=np.array([3.0]), share=np.array([3.0]))
    assert (one[0], two[0]) == (1.5, 1.5)


def estimate(value, low, high):
    return Estimate(estimate=value, low=low, high=high)


@pytest.mark.parametrize(
    ("differences", "limits", "differing", "verdict"),
    [
        ({"f1": (0.001, -0.0015, 0.0018)}, (-0.001, 0.0015), (1.0, 1.0), "threshold shift"),
        ({"f1": (0.0, -0.01, 0.01)}, (-0.009, 0.009), (0.1, 0.1), "likely threshold shift"),
        ({"f1": (0.0, -0.05, 0.05)}, (-0.04, 0.04), (0.1, 0.1), "unclear"),
        ({"f1": (0.0, -0.05, 0.05)}, (-0.04, 0.04), (0.0, 0.03), "likely threshold shift"),
        ({"f1": (0.0, -0.05, 0.05)}, (-0.04, 0.04), (0.0, 0.001), "threshold shift"),
        ({"f1": (0.03, 0.01, 0.05)}, (0.015, 0.045), (0.1, 0.1), "gain"),
        ({"f1": (-0.03, -0.05, -0.01)}, (-0.04, -0.02), (0.1, 0.1), "loss"),
        ({"f1": (0.0019, 0.0003, 0.004)}, (0.0005, 0.003), (0.1, 0.1), "unclear"),
        ({"f1": (0.0015, 0.0012, 0.0018)}, (0.0013, 0.0017), (0.1, 0.1), "threshold shift"),
        (
            {"balanced_accuracy": (0.03, 0.01, 0.05), "specificity": (-0.03, -0.05, -0.01)},
            (0.02, 0.04), (0.1, 0.1), "gain",
        ),
        (
            {"balanced_accuracy": (-0.03, -0.05, -0.01), "specificity": (0.03, 0.01, 0.05)},
            (0.02, 0.04), (0.1, 0.1), "loss",
        ),
        ({"f1": (None, None, None)}, None, (0.0, 0.0), "unclear"),
    ],
)  # fmt: skip
def test_verdicts_by_hand(differences, limits, differing, verdict):
    parts = {m: estimate(*d) for m, d in differences.items()}
    assert judge(parts, dict.fromkeys(parts, limits), margin=0.002, differing=differing) == verdict


def test_rows_needed_by_hand():
    found = {"balanced_accuracy": estimate(0.02, 0.0, 0.04), "f1": estimate(0.0, -0.1, 0.1)}
    settle, confirm = rows_needed(
        100,
        found,
        {"balanced_accuracy": 0.01, "f1": 0.05},
        ["balanced_accuracy", "f1"],
        margin=0.01,
        level=0.95,
    )
    # 100 (.05 (1.6449 + 1.2816)/.01)^2 and 100 (.01 (1.9600 + .8416)/.02)^2
    assert settle == pytest.approx(21_411, abs=1)
    assert confirm == pytest.approx(197, abs=1)
