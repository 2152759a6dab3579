"""Hands the items nobody is sure of to people, and takes their answers in: as files, both ways."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from audit.errors import ArgumentError, InputError
from audit.reading import open_table
from audit.results import Result
from audit.writing import Cell, write_rows, write_text
from relabel.doubts import Doubt, find_doubts
from relabel.journal import Journal
from relabel.people import answer, question
from relabel.recall import recalled
from relabel.records import Verdict
from relabel.review_studio import LABEL, NOTE, Answer, config, flat_answer, names, read_annotations, task
from relabel.run import Job, usable
from relabel.spellings import Spellings
from relabel.worklist import batches

__all__ = ["ReviewExport", "ReviewImport", "export_review", "import_review"]

_OF_MODELS = ("model", "label", "confidence", "confidence_kind", "clause", "rationale")
BATCH = 256


@dataclass(frozen=True, kw_only=True)
class ReviewExport(Result):
    """Items written for people: how many, by reason, and where to."""

    items: int
    rows: int
    no_label: int
    contradicted: int
    unsure: int
    answered: int
    out: str | None
    config: str | None

    def summary(self) -> str:
        """A few lines for a person."""
        if not self.items:
            return "nothing to review: every item has a label that is sure enough (--below takes in more)"
        lines = [
            f"wrote {self.items:,} items ({self.rows:,} rows) to {self.out}: {self.no_label:,} without a label,"
            f" {self.contradicted:,} where judge and adjudicator part, {self.unsure:,} unsure"
        ]
        if self.config is not None:
            lines.append(
                f"wrote Label Studio's labelling configuration to {self.config}: paste it into the project"
            )
        if self.answered:
            lines.append(
                f"{self.answered:,} items were answered before and are left out (--again takes them in)"
            )
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class ReviewImport(Result):
    """Answers taken in.

    Parameters
    ----------
    taken, unchanged:
        Items whose answer is new, and those whose answer the journal had already.
    unanswered:
        Questions that came back without an answer.
    contested:
        Items on which people are split without a majority; no answer is taken.
    rejected:
        Answers that cannot be used, each with its place and the reason.
    """

    taken: int
    unchanged: int
    unanswered: int
    contested: tuple[str, ...]
    rejected: tuple[str, ...]
    labels: dict[str, int]
    journal: str

    @property
    def exit_code(self) -> int:
        """0, or 3 where answers could not be taken."""
        return 3 if self.contested or self.rejected else 0

    def summary(self) -> str:
        """A few lines for a person."""
        labels = ", ".join(f"{label} {count:,}" for label, count in self.labels.items())
        lines = [f"took {self.taken:,} answers into {self.journal}" + (f" ({labels})" if labels else "")]
        if self.unchanged:
            lines.append(f"{self.unchanged:,} were there already")
        if self.unanswered:
            lines.append(f"{self.unanswered:,} came back without an answer")
        lines += [f"not taken: {text}" for text in (*self.contested, *self.rejected)[:20]]
        more = len(self.contested) + len(self.rejected) - 20
        if more > 0:
            lines.append(f"and {more:,} more")
        if self.taken:
            lines.append("run the same audit relabel run again: these items then have label_source human")
        return "\n".join(lines)


def export_review(
    job: Job,
    *,
    out: str | Path,
    config_out: str | Path | None = None,
    below: float = 0.8,
    most: int = 200,
    blind: bool = False,
    again: bool = False,
) -> ReviewExport:
    """Write the job's most doubtful items for people; asks nothing and needs the journal of a run.

    Parameters
    ----------
    out:
        ``.json`` for Label Studio (tasks with predictions); ``.csv``, ``.xlsx`` and the other endings of
        `audit.writing.write_rows` for a table with an empty column ``human_label``.
    config_out:
        Where Label Studio's labelling configuration goes; by default ``NAME.config.xml`` beside a ``.json``.
    below, most, again:
        See `relabel.doubts.find_doubts`.
    blind:
        Leave out what the models and the old labels say, so that people are not led.
    """
    if not 0.0 <= below <= 1.0:
        raise ArgumentError(f"--below {below} is out of range; give a confidence between 0 and 1")
    if most < 1:
        raise ArgumentError("--most is a number of items of at least 1")
    out = Path(out)
    with recalled(job) as recall:
        doubts = find_doubts(recall, below=below, most=most, again=again)
        rubric, answered = recall.rubric, recall.answered
    columns = names(rubric.input_columns)
    studio = out.suffix.lower() == ".json"
    placed = None
    if doubts and studio:
        tasks = [task(doubt, columns, blind=blind) for doubt in doubts]
        write_text(out, json.dumps(tasks, ensure_ascii=False, indent=1) + "\n")
        placed = Path(config_out or out.with_suffix(".config.xml"))
        write_text(placed, config(rubric, blind=blind))
    elif doubts:
        head, rows = _table(doubts, columns, blind=blind)
        write_rows(out, head, rows)
    why = Counter(_kind(doubt) for doubt in doubts)
    return ReviewExport(
        items=len(doubts),
        rows=sum(doubt.rows for doubt in doubts),
        no_label=why["none"],
        contradicted=why["parted"],
        unsure=why["unsure"],
        answered=0 if again else answered,
        out=str(out) if doubts else None,
        config=None if placed is None else str(placed),
    )


def _kind(doubt: Doubt) -> str:
    labels = {entry[1].label for entry in (doubt.judge, doubt.adjudicator) if entry and entry[1].label}
    return ("none", "unsure", "parted")[len(labels)]


def _table(
    doubts: Iterable[Doubt], columns: dict[str, str], *, blind: bool
) -> tuple[list[str], Iterator[list[Cell]]]:
    head = ["key", "row", "rows", *columns.values()]
    if not blind:
        head += [
            "why",
            "old_labels",
            *(f"{who}_{what}" for who in ("judge", "adjudicator") for what in _OF_MODELS),
        ]

    def rows() -> Iterator[list[Cell]]:
        for doubt in doubts:
            cells: list[Cell] = [doubt.key, doubt.row, doubt.rows, *(doubt.texts[name] for name in columns)]
            if not blind:
                cells += [doubt.why, ", ".join(doubt.old), *_said(doubt.judge), *_said(doubt.adjudicator)]
            yield [*cells, None, None]

    return [*head, LABEL, NOTE], rows()


def _said(entry: tuple[str, Verdict] | None) -> list[Cell]:
    if entry is None:
        return [None] * len(_OF_MODELS)
    model, verdict = entry
    return [
        model,
        verdict.label,
        verdict.confidence,
        verdict.confidence_kind,
        verdict.clause or None,
        verdict.rationale or verdict.reason or None,
    ]


def import_review(job: Job, answers: str | Path) -> ReviewImport:
    """Take people's answers into the job's journal; the next run counts them before any model's.

    ``answers`` is what `export_review` wrote, answered: Label Studio's export (JSON, JSON-MIN or CSV) or the table.
    An answer is taken only where its key is of an item of the table and its label is one of the rubric's (or a
    synonym). Where several people answered an item, the majority counts; without one, nothing does.
    """
    rubric = usable(job.rubric)
    spellings = Spellings(rubric.labels)
    given: dict[str, dict[str, Answer]] = {}
    rejected: list[str] = []
    unanswered: set[str] = set()
    for one in _read(Path(answers)):
        problem = one.problem or _problem(one, spellings)
        if problem:
            rejected.append(f"{one.place} {problem}")
        elif one.label is None:
            unanswered.add(one.key)
        else:
            people = given.setdefault(one.key, {})
            who = one.by or f"#{len(people)}"  # of the same person the last answer counts
            if who not in people or people[who].at <= one.at:
                people[who] = one
    settled, contested = _settle(given, spellings)
    unanswered -= given.keys()
    taken: Counter[str] = Counter()
    unchanged, paths = 0, job.paths()
    with Journal(paths.journal, wait=job.wait) as journal, job.worklist(rubric) as worklist:
        for batch in batches(worklist.read(), BATCH):
            asked = [question(rubric, item.row) for item in batch]
            wanted = {request.key: request for request in asked if request.key in settled}
            before_now = journal.find(list(wanted))
            judged = []
            for key, request in wanted.items():
                one = settled.pop(key)
                new = answer(request, label=str(one.label), note=one.note, by=one.by, spellings=spellings)
                stored = before_now.get(key)
                if stored is not None and stored.rubric == rubric.hash and stored.verdict == new.verdict:
                    unchanged += 1
                    continue
                judged.append(new)
                taken[str(new.verdict.label)] += 1
            journal.record(judged, rubric=rubric.hash) if judged else None
    rejected += [
        f"{one.place} is of no item of this table under this rubric (its key is unknown)"
        for one in settled.values()
    ]
    return ReviewImport(
        taken=taken.total(),
        unchanged=unchanged,
        unanswered=len(unanswered),
        contested=tuple(contested),
        rejected=tuple(rejected),
        labels=dict(sorted(taken.items())),
        journal=str(paths.journal),
    )


def _problem(one: Answer, spellings: Spellings) -> str:
    if not one.key:
        return "has no key; leave that column of the review file as it was"
    if one.label is not None and spellings.read(one.label) is None:
        return f"has the label {one.label!r}, which the rubric does not have; use one of {', '.join(spellings.names)}"
    return ""


def _settle(given: dict[str, dict[str, Answer]], spellings: Spellings) -> tuple[dict[str, Answer], list[str]]:
    """Key -> the answer that counts; and the items where people are split."""
    settled: dict[str, Answer] = {}
    contested = []
    for key, people in given.items():
        votes = Counter(spellings.read(str(one.label)) for one in people.values())
        label, count = votes.most_common(1)[0]
        if 2 * count <= len(people):
            place = next(iter(people.values())).place
            split = ", ".join(f"{label} {count}" for label, count in votes.most_common())
            contested.append(f"{place}: people are split ({split})")
            continue
        mine = [one for one in people.values() if spellings.read(str(one.label)) == label]
        notes = " / ".join(dict.fromkeys(one.note for one in mine if one.note))
        by = ", ".join(dict.fromkeys(one.by for one in mine if one.by))
        settled[key] = Answer(key=key, label=label, note=notes, by=by, place=mine[0].place)
    return settled, contested


def _read(path: Path) -> Iterator[Answer]:
    if path.suffix.lower() == ".json":
        try:
            tasks = json.loads(path.read_bytes().decode("utf-8-sig"))
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}; check the path") from error
        except ValueError as error:
            raise InputError(f"{path} is not JSON ({error}); export it again") from error
        if not isinstance(tasks, list):
            raise InputError(f"{path} holds no list of tasks; export it from Label Studio as JSON")
        yield from read_annotations(tasks)
        return
    with open_table(path) as table:
        for name in ("key", LABEL):
            if name not in table.columns:
                raise InputError(
                    f"{path} has no column {name!r}; import the file that review export wrote, answered"
                )
        columns = table.columns
        row = 0
        for batch in table.rows(list(columns)):
            for cells in batch:
                row += 1
                yield flat_answer(dict(zip(columns, cells, strict=True)), place=f"row {row} of {path.name}")
