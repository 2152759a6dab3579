"""Results of ``audit issues``: a model's view of the labels beside that of the repeats."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from audit.results import Alarm, Disagreement, Estimate, FlipRate, Result
from audit.results_base import RunSettings
from audit.wording import about, folded

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "CHANCE_SENTENCE",
    "Issue",
    "Issues",
    "KnownConflicts",
    "ModelQuality",
    "ModelRates",
    "NoiseMatrix",
    "PartnerCheck",
]

#: How to read the shares of flags by chance.
CHANCE_SENTENCE = (
    "By chance: of a model that knows nothing. Of two different labels one is always unlikely, so a flag at a conflict "
    "proves little; few flags where labels agree, and a high AUC, do."
)


@dataclass(frozen=True, kw_only=True)
class ModelQuality(Result):
    """The out-of-fold model against the labels, each item once.

    ``gain`` is its accuracy less that of always saying the most frequent class, ``auc`` the mean over classes (each
    against the rest, by size) of the chance that a label of the class is given a higher probability than another.
    ``log_loss`` is in nats, ``base_log_loss`` that of the class shares. ``calibration_error`` is the mean distance of
    accuracy and confidence over ten bins of equal size; ``confidence`` the mean probability of the likeliest class.
    """

    kind: str
    folds: int | None
    majority: float | None
    accuracy: Estimate
    gain: Estimate
    auc: Estimate
    log_loss: float | None
    base_log_loss: float | None
    confidence: float | None
    calibration_error: float | None
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class NoiseMatrix(Result):
    """cleanlab's estimate: ``given_true[t][g]``, the chance of the given label g where t is true, and the share of each
    true class. Rows and columns are in the order of ``classes``.
    """

    classes: tuple[str, ...]
    prevalence: tuple[float, ...] = ()
    given_true: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class ModelRates(Result):
    """Flip rates by the model: of the ``whole`` file, and of the ``repeated`` items and the ``rest`` by themselves.

    ``difference`` is that of the whole file less that of the repeats. ``harder`` is the model's rate in the repeated
    items less that in the rest (above 0: the repeats are the harder part), ``same_items`` the model's rate in the
    repeated items less that of the repeats (below 0: the model sees fewer errors in the very same items).
    """

    whole: Estimate
    difference: Estimate
    repeated: Estimate
    rest: Estimate
    harder: Estimate
    same_items: Estimate


@dataclass(frozen=True, kw_only=True)
class PartnerCheck(Result):
    """What an item's other labels say of a flagged one, each repeated item once.

    ``flagged`` and ``others`` are the shares of other labels that differ from a label with a flag or without.
    ``precision`` is the share of flagged labels that are wrong, (flagged - ε)/(1 - εK/(K-1)); ``recall`` the share of
    wrong labels that are flagged. Both take flips for independent and ε for equal; none is clipped.
    """

    flagged: float | None
    others: float | None
    precision: Estimate
    recall: Estimate
    reason: str | None = None

    @property
    def sentence(self) -> str:
        """Both in words; a share that chance put above 1 or below 0 is told as what it can be, with its number."""
        if self.precision.estimate is None:
            return f"nothing to go by ({self.reason})" if self.reason else "nothing to go by"
        told = f"{about(self.precision)} of the flagged labels are wrong"
        return f"{told}, {about(self.recall)} of the wrong ones are flagged"


@dataclass(frozen=True, kw_only=True)
class KnownConflicts(Result):
    """Do the flags find the items whose labels differ, one of which must be wrong?

    ``recall`` is the share of conflicting items with a flag at one label or more, ``false`` that of items whose labels
    agree, ``precision`` the share of conflicts among items with a flag. An item with two labels has two chances of a
    flag: ``*_by_chance`` are the same with the probabilities dealt among the repeated items at random. ``auc`` is the
    chance that the lowest score of a conflicting item is below that of another, ``doubt_auc`` the same for the
    model's doubt (1 - its highest probability), which sees no label of the item: by chance .5.
    """

    conflicts: int
    unanimous: int
    recall: Estimate
    recall_by_chance: float | None
    false: Estimate
    false_by_chance: float | None
    precision: Estimate
    precision_by_chance: float | None
    auc: float | None
    auc_by_chance: float | None
    doubt_auc: float | None
    partners: PartnerCheck


@dataclass(frozen=True, kw_only=True)
class Issue(Result):
    """A suspicious label: ``row`` counts from 1 without the header, ``score`` is the probability of the label,
    ``suggested`` the likeliest class; ``conflict`` says that the item has another label too.
    """

    row: int
    item: tuple[str, ...]
    label: str
    suggested: str
    score: float
    suggested_probability: float
    conflict: bool
    labels: int


@dataclass(frozen=True, kw_only=True)
class Issues(Result):
    """A model's view of the labels, set beside the duplicate estimate.

    ``model_flip_rate`` is cleanlab's share of labels that are not of the true class; ``flip_rate`` that of the repeats;
    ``difference`` the first less the second; ``rates`` tells them of the repeated items and the rest apart. A model
    without skill has no suspicious labels: ``flagged`` is 0. Where a rate does not exist it is None, with a reason.
    """

    verdict: str
    rows: int
    labelled: int
    items: int
    without_probabilities: int
    classes: tuple[str, ...]
    class_rows: tuple[int, ...]
    level: float
    draws: int
    seed: int
    model: ModelQuality
    model_flip_rate: Estimate
    rates: ModelRates
    noise: NoiseMatrix
    repeated: int
    conflicts: int
    disagreement: Disagreement
    flip_rate: FlipRate
    difference: Estimate
    check: KnownConflicts
    flagged: int
    settings: RunSettings
    reason: str | None = None
    alarms: tuple[Alarm, ...] = ()
    notes: tuple[str, ...] = ()
    issues: tuple[Issue, ...] = field(default=())

    def summary(self) -> str:
        """The finding in a few lines of text."""
        model, check = self.model, self.check
        lines = [*folded(self.verdict), ""]

        def tell(sentence: str) -> None:
            lines.extend(folded(sentence))

        tell(f"{self.labelled:,} labels of {self.items:,} items, {len(self.classes)} classes; {model.kind}")
        for note in self.notes:
            tell(f"note: {note}")
        if model.reason is None:
            tell(
                f"the model, out of fold: accuracy {model.accuracy.text()} against these labels, always the most "
                f"frequent class {model.majority:.3f}"
            )
            tell(
                f"  AUC {model.auc.text()}, log-loss {model.log_loss:.3f} (class shares {model.base_log_loss:.3f}), "
                f"calibration error {model.calibration_error:.3f}"
            )
        tell(f"flip rate by the model    {self.model_flip_rate.text()}" + _why(self.reason))
        if self.rates.repeated.estimate is not None:
            tell(f"  in the repeated items   {self.rates.repeated.text()}")
            tell(f"  in the rest             {self.rates.rest.text()}")
        tell(f"flip rate by the repeats  {self.flip_rate.text()}" + _why(self.flip_rate.reason))
        tell(f"difference                {self.difference.text('+.3f')}")
        lines += self._matrix()
        if check.conflicts and check.unanimous and self.reason is None:
            lines += [*self._check(), *folded(f"  by the other labels of an item: {check.partners.sentence}")]
        for alarm in self.alarms:
            tell(f"! {alarm.message}: {alarm.action}")
        if self.model.reason is None and self.reason is not None:
            tell("No suspicious labels are listed: the flags of such a model are chance.")
        if self.issues:
            lines += ["", f"{self.flagged:,} suspicious labels, the most suspicious first:"]
        for one in self.issues[:10]:
            text = " | ".join(one.item)
            told = (
                f"  row {one.row}: {one.label!r}, rather {one.suggested!r} (score {one.score:.3f}"
                f"{', conflict' if one.conflict else ''}): "
            )
            room = max(30, 98 - len(told))
            tell(told + repr(text if len(text) <= room else text[: room - 1] + "…"))
        return "\n".join(lines)

    def _check(self) -> list[str]:
        """Flags at known conflicts, each figure beside what a model that knows nothing has."""
        check = self.check
        doubt = 0.5 if check.doubt_auc is not None else None
        rows = (
            ("AUC of the lowest score", _number(check.auc), check.auc_by_chance),
            ("AUC of the model's doubt", _number(check.doubt_auc), doubt),
            ("conflicts among items with a flag", check.precision.text(), check.precision_by_chance),
            (
                f"a flag at {check.unanimous:,} items whose labels agree",
                check.false.text(),
                check.false_by_chance,
            ),
            (f"a flag at {check.conflicts:,} items in conflict", check.recall.text(), check.recall_by_chance),
        )
        width = max(len(name) for name, _, _ in rows)
        lines = [f"{'known conflicts':{width + 2}}  {'the model':22}  by chance"]
        lines += [f"  {name:{width}}  {value:22}  {_number(chance)}" for name, value, chance in rows]
        return [*lines, *folded(f"  {CHANCE_SENTENCE}")]

    def _matrix(self) -> list[str]:
        if not self.noise.given_true or len(self.classes) > 8:
            return []
        width = max(8, *(len(name) for name in self.classes)) + 2
        lines = ["given labels (columns) of the true classes (rows), by the model"]
        lines.append(" " * width + "".join(f"{name:>{width}}" for name in self.classes))
        for name, chances in zip(self.classes, self.noise.given_true, strict=True):
            lines.append(f"{name:{width}}" + "".join(f"{chance:>{width}.3f}" for chance in chances))
        return lines

    def to_frame(self) -> pd.DataFrame:
        """The suspicious labels that the result holds, the most suspicious first."""
        import pandas as pd

        columns = [
            "row",
            "item",
            "label",
            "suggested",
            "score",
            "suggested_probability",
            "conflict",
            "labels",
        ]
        return pd.DataFrame(
            [{name: getattr(one, name) for name in columns} for one in self.issues], columns=columns
        )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _why(reason: str | None) -> str:
    return f" ({reason})" if reason else ""
