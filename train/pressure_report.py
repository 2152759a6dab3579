"""What a ledger says: how often splits were looked at, and whether a final model's score held on the holdout.

The best of k noisy validation scores is too good by up to sqrt(variance (1 - rho)) E[Z_(k)] on average
(:mod:`train.pressure_stats`); a drop beyond that was bought in another way. Validation and holdout are different
items, so the interval of a drop is unpaired.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from audit.errors import ArgumentError, InputError
from audit.intervals import check_level
from audit.results import Estimate
from train.pressure import Book, Entry, Ledger
from train.pressure_band import AuditBand, read_band
from train.pressure_results import Final, Look, Looks, Placed, PressureReport
from train.pressure_stats import (
    Share,
    mean_correlation,
    score_interval,
    selection_gain,
    share_terms,
    variance_of,
)
from train.pressure_words import final_verdict, headline, notes

__all__ = ["report_pressure"]

_PREFERRED = ("balanced_accuracy", "accuracy")
#: Models whose answers enter the correlation; more would change nothing.
_MOST_COMPARED = 200


def report_pressure(
    ledger: str | Path | Ledger,
    *,
    metric: str | None = None,
    audit: str | Path | None = None,
    level: float = 0.95,
) -> PressureReport:
    """Read a ledger (a file, or a folder with ``ledger.jsonl``) and say what its looks cost.

    Parameters
    ----------
    metric:
        The score that was chosen by; by default balanced accuracy if every evaluation has it, else accuracy, else the
        most common one. Only the first two have intervals and an expected gain.
    audit:
        JSON of ``audit dupes``: accuracies with ``key`` "noisy" are set against its band.

    Raises
    ------
    InputError
        The ledger or the audit cannot be read, or the ledger holds no evaluation.
    ArgumentError
        No evaluation has the metric.
    """
    check_level(level)
    book = (ledger if isinstance(ledger, Ledger) else Ledger(ledger)).read()
    scored = [e for e in book.entries if e.kind == "evaluation"]
    if not scored:
        torn = f" ({len(book.damaged):,} lines cannot be read)" if book.damaged else ""
        raise InputError(
            f"{book.path} holds no evaluation yet{torn}: record one with audit train ledger record, or run the ladder"
        )
    metric = _metric(scored, metric)
    band = None if audit is None else read_band(audit)
    finals = tuple(_finals(book, scored, metric, level))
    placed = () if band is None else tuple(_placed(scored, band, level))
    variances = [v for e in scored if e.purpose == "validation" and (v := _variance(e, metric)) is not None]
    rho = [f.correlation for f in finals if f.correlation is not None]
    noise = None
    if variances:
        shared = sum(rho) / len(rho) if rho else 0.0
        noise = (sorted(variances)[len(variances) // 2] * (1.0 - shared)) ** 0.5
    return PressureReport(
        ledger=book.path, metric=metric, level=level, verdict=headline(book, finals),
        looks=tuple(_looks(scored, metric)), finals=finals, band=band, placed=placed,
        notes=notes(book, finals, placed=placed, banded=band is not None), damaged=book.damaged,
        scores=tuple(
            Look(
                number=number, run=e.run, family=e.family, model=e.model, split=e.split, purpose=e.purpose,
                score=_score(e, metric, level),
            )
            for number, e in enumerate(scored, 1)
        ),
        noise=noise,
    )  # fmt: skip


def _metric(scored: Sequence[Entry], metric: str | None) -> str:
    known = Counter(name for e in scored for name, value in e.metrics.items() if value is not None)
    if metric is not None:
        if metric not in known:
            raise ArgumentError(
                f"no evaluation has the metric {metric!r}: the ledger has {', '.join(sorted(known)) or 'none'}"
            )
        return metric
    if not known:
        raise InputError("no evaluation of the ledger has a number: record metrics such as accuracy=0.81")
    everywhere = [name for name in _PREFERRED if known[name] == len(scored)]
    return next(iter(everywhere), next((n for n in _PREFERRED if n in known), known.most_common(1)[0][0]))


def _score(entry: Entry, metric: str, level: float) -> Estimate:
    terms = share_terms(metric, entry.metrics, entry.rows)
    if terms is None:
        return Estimate(estimate=entry.metrics.get(metric), method="no interval: the ledger lacks the counts")
    return score_interval(terms, level=level)


def _variance(entry: Entry, metric: str) -> float | None:
    terms = share_terms(metric, entry.metrics, entry.rows)
    return None if terms is None else variance_of(terms)


def _looks(scored: Iterable[Entry], metric: str) -> Iterable[Looks]:
    groups: dict[tuple[str, str, str], list[Entry]] = defaultdict(list)
    for entry in scored:
        groups[entry.purpose, entry.split, entry.family].append(entry)
    for (purpose, split, family), entries in sorted(
        groups.items(), key=lambda g: (g[0][0] == "holdout", g[0])
    ):
        values = [v for e in entries if (v := e.metrics.get(metric)) is not None]
        yield Looks(
            split=split, family=family, purpose=purpose, looks=len(entries), models=len({e.model for e in entries}),
            best=max(values, default=None), first=entries[0].time, last=entries[-1].time,
        )  # fmt: skip


def _finals(book: Book, scored: Sequence[Entry], metric: str, level: float) -> Iterable[Final]:
    seen: set[tuple[str, str]] = set()
    for entry in scored:
        if entry.purpose == "holdout" and (entry.model, entry.split) not in seen:
            seen.add((entry.model, entry.split))
            yield _final(book, scored, entry, metric, level)


def _final(book: Book, scored: Sequence[Entry], first: Entry, metric: str, level: float) -> Final:
    """One final model by its first score on the holdout: later ones have seen it."""
    openings = book.openings(model=first.model, split=first.split, digest=first.digest)
    opened = min((o.line for o in openings), default=first.line)
    own = [e for e in scored if e.purpose == "validation" and e.model == first.model and metric in e.metrics]
    validation = next((e for e in reversed(own) if e.line < opened), own[-1] if own else None)
    before = [
        e
        for e in scored
        if e.purpose == "validation"
        and e.line < opened
        and (validation is None or e.split == validation.split)
    ]
    family = [e for e in before if e.family == first.family]
    models, models_all = ({e.model for e in part} | {first.model} for part in (family, before))
    correlation = _correlation(family if len(models) > 1 else before, validation)
    variance = None if validation is None else _variance(validation, metric)
    gains = [
        None
        if variance is None
        else selection_gain(len(m), variance=variance, correlation=correlation or 0.0)
        for m in (models, models_all)
    ]
    drop, error = _drop(validation, first, metric, level), _variance(first, metric)
    final = Final(
        run=first.run, family=first.family, model=first.model, split=first.split,
        validation_split=None if validation is None else validation.split, key=first.key, rows=first.rows,
        validation_rows=None if validation is None else validation.rows,
        validation=Estimate(estimate=None) if validation is None else _score(validation, metric, level),
        holdout=_score(first, metric, level), drop=drop, looks=len(family), models=len(models),
        models_all=len(models_all), correlation=correlation, expected=gains[0], expected_all=gains[1],
        holdout_error=None if error is None else error**0.5,
        openings=max(len(openings), 1), forced=tuple(o.forced for o in openings if o.forced),
        same_rows=validation is not None and validation.digest is not None and validation.digest == first.digest,
    )  # fmt: skip
    return replace(final, verdict=final_verdict(final, level))


def _drop(validation: Entry | None, holdout: Entry, metric: str, level: float) -> Estimate:
    if validation is None:
        return Estimate(estimate=None, method="none: the model has no validation score")
    before, after = validation.metrics.get(metric), holdout.metrics.get(metric)
    if before is None or after is None:
        return Estimate(estimate=None, method=f"none: {metric} was not recorded for both")
    if validation.key and holdout.key and validation.key != holdout.key:
        return Estimate(
            estimate=None, method="none: one score is against noisy labels, the other against a clean key"
        )
    terms = [share_terms(metric, e.metrics, e.rows) for e in (validation, holdout)]
    if terms[0] is None or terms[1] is None:
        return Estimate(estimate=before - after, method="no interval: the ledger lacks the counts")
    less: list[Share] = [(-weight, successes, trials) for weight, successes, trials in terms[1]]
    return score_interval([*terms[0], *less], level=level)


def _correlation(entries: Sequence[Entry], like: Entry | None) -> float | None:
    """Correlation of being right between models, on the validation rows of the final model."""
    if like is None or like.digest is None:
        return None
    last = {e.model: e for e in entries if e.digest == like.digest and e.right is not None}
    rights = [e.rights() for e in list(last.values())[-_MOST_COMPARED:]]
    return mean_correlation([r for r in rights if r is not None])


def _placed(scored: Sequence[Entry], band: AuditBand, level: float) -> Iterable[Placed]:
    last = {(e.run, e.split): e for e in scored if e.key == "noisy" and e.metrics.get("accuracy") is not None}
    for entry in last.values():
        accuracy = entry.metrics["accuracy"]
        if accuracy is None or not 0.0 <= accuracy <= 1.0:
            continue
        found = band.place(accuracy, rows=entry.rows)
        yield Placed(
            run=entry.run, model=entry.model, split=entry.split, score=_score(entry, "accuracy", level),
            position=found.position, message=found.message,
        )  # fmt: skip
