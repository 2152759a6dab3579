"""The commands of ``audit relabel`` about endpoints: see what a real one does, play a scripted one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = ["probe", "rehearse"]


def probe(
    judge: Annotated[str, typer.Option("--judge", metavar="MODEL", help="The model to try.")],
    base_url: Annotated[
        str | None,
        typer.Option(
            "--base-url", metavar="URL", help="The endpoint (default: OPENAI_BASE_URL, or OpenAI's)."
        ),
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option("--journal", metavar="FILE", help="Keep what was seen in this journal, for its runs."),
    ] = None,
    try_context: Annotated[
        int | None,
        typer.Option("--try-context", metavar="TOKENS", help="Also send a prompt of about so many tokens."),
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds for one request.")] = 120.0,
    form: Annotated[Literal["text", "json"], typer.Option("--format", help="Form of the result.")] = "text",
) -> None:
    """Send about twelve small requests and tell what the endpoint really does.

    Example: audit relabel probe --judge qwen3 --base-url http://localhost:8000/v1 --journal clean.journal.sqlite
    """
    from relabel.connect import need_key, place
    from relabel.journal import Journal
    from relabel.probe import probe as find_out

    where = place(judge, base_url=base_url)
    need_key(where)
    seen = asyncio.run(
        find_out(
            model=judge,
            base_url=where.base_url,
            key_variable=where.key_variable,
            timeout=timeout,
            try_context=try_context,
        )
    )
    found = seen.to_dict()
    if journal is not None:
        with Journal(journal) as book:
            book.record_capabilities(found, base_url=where.base_url, model=judge)
    if form == "json":
        typer.echo(json.dumps({"model": judge, "base_url": where.base_url, **found}, indent=2))
        return
    notes = found.pop("notes")
    lines = [f"{judge} at {where.base_url}"]
    lines += [f"  {name:<20}{_word(value)}" for name, value in found.items()]
    lines += [f"  note: {note}" for note in notes]
    if journal is not None:
        lines.append(f"kept in {journal}")
    typer.echo("\n".join(lines))


def _word(value: object) -> str:
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def rehearse(
    truth: Annotated[str, typer.Argument(metavar="TRUTH", help="A table of items and their true labels.")],
    item: Annotated[
        list[str],
        typer.Option("--item", metavar="COLUMN", help="Input column(s), in the rubric's order. Repeats."),
    ],
    label: Annotated[str, typer.Option("--label", metavar="COLUMN", help="The true labels.")],
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model", metavar="NAME=ERROR", help="A judge and its error rate, as in judge=0.10. Repeats."
        ),
    ] = None,
    error: Annotated[
        float, typer.Option("--error", help="Error rate of every judge, 0 to 1, without --model.")
    ] = 0.1,
    labels: Annotated[
        list[str] | None, typer.Option("--labels", metavar="LABEL", help="Declared labels. Repeats.")
    ] = None,
    flat: Annotated[bool, typer.Option("--flat", help="Confidence tells nothing of the error.")] = False,
    port: Annotated[int, typer.Option("--port", help="Port to listen at; 0 takes a free one.")] = 0,
    latency: Annotated[float, typer.Option("--latency", help="Seconds before each answer.")] = 0.0,
    jitter: Annotated[
        float, typer.Option("--jitter", help="Latency varies by this share, 0 to 1, up and down.")
    ] = 0.0,
    fault: Annotated[
        list[str] | None,
        typer.Option(
            "--fault",
            metavar="KIND[:SHARE]",
            help="As in rate_limit:0.1,retry_after=2 (docs/relabel.md). Repeats.",
        ),
    ] = None,
    profile: Annotated[
        str,
        typer.Option("--profile", help="What it can: full, reasoning, llama_cpp, quiet, bare or thinker."),
    ] = "full",
    per_second: Annotated[
        float | None, typer.Option("--per-second", help="Rate limit: requests per second; over it, 429.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of every random draw.")] = 0,
) -> None:
    """Play an endpoint on this machine whose judgements are scripted, to rehearse a run at no cost.

    Example: audit relabel rehearse truth.csv --item text --label truth --model judge=0.1 --model adjudicator=0.03
    """
    from audit.errors import ArgumentError
    from relabel.rehearse import PROFILES, Fault, Rate, RehearsalServer, Script
    from relabel.rehearse_serve import read_truth, serve

    if profile not in PROFILES:
        raise ArgumentError(f"there is no profile {profile!r}; choose one of {', '.join(PROFILES)}")
    table = read_truth(truth, item=item, label=label)

    def script(rate: float, number: int) -> Script:
        return Script(
            truth=table, labels=tuple(labels or ()), error=rate, informative=not flat, seed=seed + number
        )

    scripts = {}
    for number, text in enumerate(model or ()):
        name, _, rate = text.rpartition("=")
        try:
            scripts[name] = script(float(rate), number)
        except ValueError as problem:
            raise ArgumentError(f"--model {text!r} is not NAME=ERROR; write judge=0.1") from problem
    server = RehearsalServer(
        scripts or script(error, 0),
        faults=[Fault.parse(text) for text in fault or ()],
        profile=PROFILES[profile],
        latency=latency,
        jitter=jitter,
        rate=Rate(per_second=per_second, burst=max(1, round(per_second))) if per_second else None,
        port=port,
        seed=seed,
    )
    serve(
        server, on_ready=lambda url: typer.echo(f"rehearsing {len(table):,} items at {url} (Ctrl-C ends it)")
    )
