"""Words that make no call of a command: one plain line that names cause and fix, and exit code 2."""

import re

import pytest

from tests.command import run


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("nope", r"there is no command 'nope': choose dupes, .* or issues \(audit --help\)"),
        ("dupe x", r"there is no command 'dupe'; did you mean dupes\? \(audit --help\)"),
        ("train rout", r"there is no command 'rout'; did you mean route\? \(audit train --help\)"),
        ("train ledger opne", r"there is no command 'opne'; did you mean open\? \(audit train ledger --help\)"),
        ("relabel review nope", r"there is no command 'nope': choose export or import \(audit relabel review --help\)"),
        ("--nope", r"there is no option --nope \(audit --help\)"),
        ("dupes x --lable y", r"there is no option --lable; did you mean --label\? \(audit dupes --help\)"),
        ("dupes", r"FILE is missing: CSV, .* \(audit dupes --help\)"),
        ("compare x", r"AFTER is missing: the file with the later labels \(audit compare --help\)"),
        ("resolve x y", r"--out is missing: file to write: .* \(audit resolve --help\)"),
        ("relabel run x", r"--rubric is missing: the rubric .* \(audit relabel run --help\)"),
        ("relabel check", r"RUBRIC is missing: the rubric to check \(audit relabel check --help\)"),
        ("train route x", r"B is missing: .* \(audit train route --help\)"),
        ("dupes x --item", r"--item needs a value"),
        ("dupes x --errors=5", r"--errors takes no value"),
        ("dupes x text label", r"there is no place for 'text label': quote .* \(audit dupes --help\)"),
        ("dupes x --kind pairs", r"--kind: 'pairs' is not one of 'classes', .* \(audit dupes --help\)"),
        ("dupes x --level high", r"--level: 'high' is not a number \(audit dupes --help\)"),
        ("dupes x --draws 1.5", r"--draws: '1.5' is not a whole number \(audit dupes --help\)"),
        ("relabel run x --rubric r --judge j --concurrency 0",
         r"--concurrency: 0 is too small; it takes 1 or more \(audit relabel run --help\)"),
        ("train plumbing x --cap few", r"--cap: 'few' is not a whole number \(audit train plumbing --help\)"),
        ("train plumbing x --bands few", r"--bands 'few': give a number, or edges such as 0,128,256"),
        ("dupes x --kind tags --errors", r"--errors is not for --kind tags \(error rates .*\): leave it out"),
        ("compare - y", r"standard input is read once.*: name --item COLUMNS and --label COLUMN"),
        ("issues x", r"x: no such file; check the path"),
        ("leak x y --fail-over 3", r"--fail-over is 3: give a share of the test rows, from 0 to below 1"),
        ("plan --merge x", r"--merge needs the data FILE the plan was drawn from"),
    ],
)  # fmt: skip
def test_one_plain_line(words: str, line: str) -> None:
    ran = run(words)
    assert (ran.code, ran.out) == (2, "")
    assert re.fullmatch(f"audit: {line}\n", ran.err), ran.err


@pytest.mark.parametrize("words", ["", "train", "train ledger", "relabel", "relabel batch"])
def test_a_group_alone_shows_its_help(words: str) -> None:
    ran = run(*words.split())
    assert (ran.code, ran.out) == (2, "")
    assert f"Usage: {' '.join(['audit', *words.split()])} [OPTIONS] COMMAND" in ran.err
