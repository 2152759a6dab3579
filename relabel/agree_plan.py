"""What an audit of the pipeline would ask and cost, found out without asking anything (``--dry-run``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audit.results import Result
from relabel.agree import check_options, draw_sample, repeated_items, strata_of
from relabel.recall import recalled
from relabel.run import Job

__all__ = ["AgreePlan", "plan_audit"]


@dataclass(frozen=True, kw_only=True)
class AgreePlan(Result):
    """An audit that was not made.

    Parameters
    ----------
    missing:
        Items that the run has left to judge: they would be asked about first, at the cost that
        ``audit relabel run --dry-run`` tells.
    sampled, repeated, items:
        Items of the sample, items with two old labels or more, and how many both are together.
    draws:
        Fresh draws of each.
    judged, adjudicated:
        Judgements of each role, about.
    cost:
        US dollars, about, by what the run's replies cost on average; None without a price.
    """

    missing: int
    sampled: int
    repeated: int
    items: int
    draws: int
    judged: int
    adjudicated: int
    cost: float | None

    def summary(self) -> str:
        """A few lines for a person."""
        cost = "price unknown" if self.cost is None else f"about ${self.cost:,.4f}"
        lines = [
            f"{self.items:,} items ({self.sampled:,} of the sample, {self.repeated:,} with several old labels), "
            f"{self.draws} fresh draw{'s' * (self.draws > 1)} each; nothing was asked",
            f"about {self.judged:,} judgements and {self.adjudicated:,} of the adjudicator, {cost}",
        ]
        if self.missing:
            lines.append(
                f"before that, {self.missing:,} items that the run has left (run --dry-run tells the cost)"
            )
        return "\n".join(lines)


def plan_audit(job: Job, *, items: int = 500, draws: int = 1) -> AgreePlan:
    """What `relabel.agree.audit_pipeline` would ask with these options."""
    check_options(job, items=items, draws=draws)
    rng = np.random.default_rng(job.settings.seed)
    with recalled(job) as recall:
        strata = strata_of(recall.worklist)
        sample = draw_sample(strata, items, rng=rng)
        repeated, _ = repeated_items(recall.worklist, strata, items, rng=rng)
        chosen = set(sample) | set(repeated)
        judged = recall.worklist.items - recall.worklist.empty - recall.pending["judge"]
        share = recall.escalated / judged if judged else 0.0
        counts = (draws * len(chosen), round(draws * len(chosen) * share))
        spent = {(one.model, one.base_url): one for one in recall.journal.spent() if one.replies}
        cost: float | None = 0.0
        for count, place in zip(counts, recall.places, strict=False):
            paid = spent.get((place.model, place.base_url))
            if place.price is None or cost is None:
                cost = None
            elif paid is not None:
                cost += count / paid.replies * place.price.cost(paid.prompt_tokens, paid.completion_tokens)
        return AgreePlan(
            missing=recall.unasked["judge"],
            sampled=len(sample),
            repeated=len(repeated),
            items=len(chosen),
            draws=draws,
            judged=counts[0],
            adjudicated=counts[1],
            cost=cost,
        )
