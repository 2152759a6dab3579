"""When a model's view of the labels means something: its alarms and its verdict."""

from __future__ import annotations

from collections.abc import Sequence

from audit.issues_results import ModelQuality, ModelRates
from audit.patterns import IntArray
from audit.results import Alarm, Disagreement, Estimate, FlipRate
from audit.wording import share_of

__all__ = ["compose_issues_verdict", "lacks_skill", "raise_issue_alarms"]

#: Copies of an item whose probabilities differ by more were judged by models that knew one another's labels.
_SPREAD = 0.01
_CALIBRATION = 0.1
_LARGEST = 0.05


def lacks_skill(model: ModelQuality) -> str | None:
    """Why a flip rate by this model would mean nothing, or None: it neither ranks nor predicts better than chance."""
    if model.auc.low is None or model.gain.low is None or model.auc.low > 0.5 or model.gain.low > 0:
        return None
    return "the model is no better than always saying the most frequent class"


def raise_issue_alarms(
    *, model: ModelQuality, d: Disagreement, rate: FlipRate, reason: str | None, unfinished: int, spread: float,
    folds: int, class_items: IntArray, classes: Sequence[str], largest: float, labelled: int, given: bool,
) -> tuple[Alarm, ...]:  # fmt: skip
    """What stands between the model's figures and the labels, each with its numbers."""
    found = []

    def alarm(code: str, severity: str, message: str, action: str, **figures: float) -> None:
        found.append(Alarm(code=code, severity=severity, message=message, action=action, figures=figures))

    error = _error(model)
    if model.reason is None and reason is not None and error is not None:
        alarm(
            "no_skill", "stop",
            f"{reason} (accuracy {model.accuracy.estimate:.3f} against {model.majority:.3f}, AUC {model.auc.text()}): "
            "its flags and scores are chance, and no flip rate is given",
            "bring probabilities of a better model (--probs) or embeddings of the items (--embeddings)",
            accuracy=model.accuracy.estimate or 0.0, majority=model.majority or 0.0, auc=model.auc.estimate or 0.0,
        )  # fmt: skip
    elif error is not None and error.estimate is not None and error.low is not None:
        if d.high is not None and error.low > d.high:
            alarm(
                "errs_more_than_a_second_label", "warning",
                f"the model errs on {error.text()} of the labels, a second label of the same item only on {d.text()}: "
                "what is above that are the model's own errors, or mistakes that all repeats share",
                "read some of the flagged rows (--out-rows) to tell which; where the model is wrong, trust the repeats",
                model_error=error.estimate, disagreement=d.estimate or 0.0,
            )  # fmt: skip
        elif d.estimate is None and model.gain.low is not None and model.gain.low <= 0:
            alarm(
                "little_skill", "warning",
                f"the model's accuracy ({model.accuracy.estimate:.3f}) is not above that of the most frequent class "
                f"({model.majority:.3f}): the flip rate by the model may be its own errors, and there are no repeats "
                "to tell",
                "label some rows a second time (audit plan), or bring a better model",
                accuracy=model.accuracy.estimate or 0.0, majority=model.majority or 0.0,
            )  # fmt: skip
        if rate.low is not None and error.high is not None and error.high < rate.low:
            alarm(
                "above_the_ceiling", "warning",
                f"the model errs on {error.text()} of the labels, less than the flip rate by the repeats "
                f"{rate.text()} allows any model: it knows labels it should not, or the repeats are no fair sample",
                "look for near-copies across folds (audit dupes --near) and at the alarms of audit dupes",
                model_error=error.estimate, flip_rate=rate.estimate or 0.0,
            )  # fmt: skip
    if given and spread > _SPREAD:
        alarm(
            "copies_apart", "warning",
            f"probabilities of an item's copies lie up to {spread:.2f} from their mean: the folds were not grouped "
            "by item, so that models saw labels of the items they judged",
            "make the probabilities with folds over items; here their mean stands for each item",
            spread=spread,
        )  # fmt: skip
    if model.calibration_error is not None and model.calibration_error > _CALIBRATION and reason is None:
        alarm(
            "poorly_calibrated", "note",
            f"the model's confidence is off by {model.calibration_error:.2f} on average "
            f"(mean confidence {model.confidence:.2f}, accuracy {model.accuracy.estimate:.2f})",
            "calibrate it: confident learning allows for a confidence that is off by class, not within one",
            calibration_error=model.calibration_error, confidence=model.confidence or 0.0,
        )  # fmt: skip
    small = [f"{classes[k]!r} ({n})" for k, n in enumerate(class_items.tolist()) if n < 2 * folds]
    if model.folds is not None and small:
        alarm(
            "small_classes", "note",
            f"classes with few items: {', '.join(small[:5])}: the model hardly knows them and will doubt their labels",
            "read flags of these classes with that in mind, or leave the classes out",
            classes=float(len(small)), fewest=float(class_items.min()),
        )  # fmt: skip
    if unfinished:
        alarm(
            "unfinished_fit", "note", f"the fit had not converged in {unfinished} of {model.folds} folds",
            "the probabilities are usable, but another model may be a better one", folds=float(unfinished),
        )  # fmt: skip
    if labelled >= 100 and largest > _LARGEST * labelled:
        alarm(
            "one_item_many_labels", "note",
            f"one item has {largest:,.0f} of the {labelled:,} labels: it weighs on the flip rate by the model, which "
            "counts labels (all else counts each item once)",
            "see audit dupes on that item", labels=largest, share=largest / labelled,
        )  # fmt: skip
    return tuple(found)


def _error(model: ModelQuality) -> Estimate | None:
    a = model.accuracy
    if a.estimate is None or a.low is None or a.high is None:
        return None
    return Estimate(estimate=1 - a.estimate, low=1 - a.high, high=1 - a.low, method=a.method)


def compose_issues_verdict(
    rates: ModelRates,
    rate: FlipRate,
    *,
    repeated: int,
    reason: str | None,
    alarms: Sequence[Alarm],
) -> str:
    """What the two flip rates say, together."""
    if reason is not None:
        return f"No flip rate by a model: {reason}."
    difference = rates.difference
    told = f"By the model {share_of(rates.whole)} of the labels are wrong"
    if rate.estimate is None:
        why = rate.reason or "there are no repeats"
        return f"{told}; no flip rate by repeats to hold it against ({why})."
    both = f"{told}, by the repeats {share_of(rate)}"
    low, high = difference.low, difference.high
    if low is None or high is None or low <= 0 <= high:
        return f"{both}: no difference that {repeated:,} repeated items can tell ({difference.text('+.3f')})."
    if high < 0:
        return f"{both}: the model sees fewer errors than the repeats. {_fewer(rates, rate)}"
    more = f"{both}: the model sees more errors than the repeats"
    if any(alarm.code == "errs_more_than_a_second_label" for alarm in alarms):
        return f"{more}, and it errs more often than a second label does: its own errors, or shared mistakes."
    apart = _parts(rates)
    return (
        f"{more}: its own, mistakes that all repeats share, or errors in items harder than the repeated ones."
        f"{f' {apart}.' if apart else ''}"
    )


def _fewer(rates: ModelRates, rate: FlipRate) -> str:
    """Two readings of a lower rate by the model, and how much of the difference its rates in parts give to each.

    whole - repeats = (whole - repeated) + (repeated - repeats): the second is in the very same items.
    """
    either = (
        "Either the repeated items are harder than the rest, or it has learned mistakes or seen labels of the items "
        "that it judges, or errors sit in one class, where confident learning counts too few."
    )
    apart = _parts(rates)
    whole, within = rates.whole.estimate, rates.repeated.estimate
    if not apart or whole is None or within is None or rate.estimate is None or rates.harder.low is None:
        return either
    harder, missed = 100.0 * (within - whole), 100.0 * (rate.estimate - within)
    if harder <= 0.0:
        told = "the repeated items are no harder, by the model, which speaks for the second"
    elif missed <= 0.0:
        told = "that the repeated items are harder is all of the difference, which speaks for the first"
    else:
        told = (
            f"of the difference of {harder + missed:.1f} points {harder:.1f} are that the repeated items are harder, "
            f"{missed:.1f} that the model sees fewer errors than the repeats in the very same items"
        )
    unsure = "" if harder <= 0.0 or rates.harder.low > 0.0 else "; that they are harder may be chance"
    return f"{either} {apart}: {told}{unsure}."


def _parts(rates: ModelRates) -> str:
    """The model's rates in the repeated items and in the rest, or nothing."""
    if rates.repeated.estimate is None or rates.rest.estimate is None:
        return ""
    return (
        f"In the repeated items the model sees {share_of(rates.repeated)} wrong labels, "
        f"in the rest {share_of(rates.rest)}"
    )
