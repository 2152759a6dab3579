"""The ceiling band of an audit, read back from its JSON, and scores set against it.

The band bounds accuracy against labels like the audited ones. A score against a clean key has no such ceiling, so it
is never placed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from audit.ceiling import Placement, ceiling_band, place_score
from audit.errors import InputError
from audit.fliprate import estimate_flip_rate
from audit.reading_saved import load_audit
from audit.results import Ceiling, Disagreement, Result
from train.pictures import Rule

__all__ = ["CLEAN_SENTENCE", "AuditBand", "band_rules", "band_sentence", "read_band"]

#: Why scores against a clean key are not placed.
CLEAN_SENTENCE = (
    "The band does not apply to scores against a clean key: it is the ceiling of accuracy against labels like the "
    "audited ones."
)


@dataclass(frozen=True, kw_only=True)
class AuditBand(Result):
    """The band of a saved audit: ``ceiling.lower|upper`` at the estimate, ``ceiling.low|high`` with sampling error."""

    source: str
    classes: int
    level: float
    ceiling: Ceiling
    disagreement: Disagreement = field(metadata={"json": False})
    refused: str | None = field(default=None, metadata={"json": False})

    def place(self, accuracy: float, *, rows: int | None) -> Placement:
        """Where an accuracy in [0, 1] against the audited kind of labels lies, measured on ``rows`` rows."""
        return place_score(
            accuracy, d=self.disagreement, classes=self.classes, n_test=rows, refused=self.refused
        )


def read_band(path: str | Path) -> AuditBand:
    """The band from what ``audit dupes DATA --format json --out FILE`` wrote.

    Raises
    ------
    InputError
        The file cannot be read, or is no such JSON.
    """
    saved = load_audit(path)
    if saved is None:
        raise InputError(
            f"{path} holds no audit: write one with audit dupes DATA --format json --out dupes.json"
        )
    d, classes, refused = saved.d, saved.classes, saved.refused
    rate = estimate_flip_rate(d, classes=classes, refused=refused)
    return AuditBand(
        source=str(path), classes=classes, level=d.level, ceiling=ceiling_band(d, rate), disagreement=d,
        refused=refused,
    )  # fmt: skip


def band_rules(band: AuditBand | None) -> tuple[Rule, ...]:
    """The band and its widened ends for a chart of accuracy; nothing where there is no band."""
    if band is None or band.ceiling.lower is None or band.ceiling.upper is None:
        return ()
    inner, ceiling = (band.ceiling.lower, band.ceiling.upper), band.ceiling
    rules = [Rule(inner[0], "ceiling: 1 − d to 1 − ε", to=inner[1])]
    if ceiling.low is not None and ceiling.high is not None:
        rules.append(Rule(ceiling.low, "with sampling error", to=ceiling.high))
    return tuple(rules)


def band_sentence(band: AuditBand) -> str:
    """The band in words."""
    c = band.ceiling
    if c.lower is None or c.upper is None:
        return f"There is no ceiling band: {(c.reason or 'the audit gives none').rstrip('.')}."
    wide = "" if c.low is None or c.high is None else f" ({c.low:.3f} to {c.high:.3f} with sampling error)"
    ends = f"{c.lower:.3f} (1 − d) to {c.upper:.3f} (1 − ε){wide}"
    return f"Ceiling of accuracy against labels like the audited ones: {ends}."
