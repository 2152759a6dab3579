"""A column that is not there: the message names the option, the column, the file, and what may be meant."""

from pathlib import Path

import pytest

from tests.command import run, write_csv

NAMED = "--item text --label label"
RUN = "relabel run data.csv --rubric rubric.md --judge j --base-url http://127.0.0.1:9/v1 --out out.csv --dry-run"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("columns")
    columns = ["text", "label", "split", "worker", "given", "site"]
    rows = [
        (f"a text {n // 2}", "ab"[n % 3 == 0], "test", f"w{n}", f"2024-01-{n + 1:02}", "x") for n in range(20)
    ]
    write_csv(where / "data.csv", columns, rows)
    write_csv(where / "after.csv", ["text", "clean"], [(row[0], row[1]) for row in rows])
    write_csv(where / "wide.csv", ["text", "vote1", "vote2"], [(f"a text {n}", "1", "2") for n in range(9)])
    write_csv(where / "gold.csv", ["text", "truth"], [(f"a text {n}", "a") for n in range(9)])
    scored = [(n, n % 2, 0.1 + 0.8 * (n % 3 == 0), n % 2, n // 4) for n in range(40)]
    write_csv(where / "scores.csv", ["item", "label", "score", "prediction", "document"], scored)
    rollouts = [(step, group, step, (step + group) % 2, "a") for step in range(4) for group in range(9)]
    write_csv(where / "rollouts.csv", ["step", "group", "item", "reward", "label"], rollouts)
    (where / "rubric.md").write_text(
        "---\nname: r\nversion: 1\ninputs: [text]\nlabels:\n  - name: a\n    meaning: one\n"
        "  - name: b\n    meaning: two\ndefault_label: b\n---\nC1. Judge the text.\n",
        "utf-8",
    )
    assert run("dupes", where / "data.csv", *NAMED.split(), "--conflicts", where / "conflicts.csv").code == 0
    return where


@pytest.mark.parametrize(
    ("words", "file", "option", "column", "meant"),
    [
        ("dupes data.csv --item txt --label label", "data.csv", "--item", "txt", "text"),
        ("dupes data.csv --item text --label lable", "data.csv", "--label", "lable", "label"),
        ("dupes wide.csv --item text --label-columns vote1,vte2", "wide.csv", "--label-columns", "vte2", "vote2"),
        ("dupes wide.csv --item text --counts vote1,vte2", "wide.csv", "--counts", "vte2", "vote2"),
        *(
            (f"dupes data.csv {NAMED} {more}{option} wrker", "data.csv", option, "wrker", "worker")
            for option in ("--row-id", "--annotator", "--time", "--split", "--by", "--one-per", "--strata")
            for more in ("", "--kind tags ")
            if (option, more) != ("--strata", "--kind tags ")  # which is refused
        ),
        (f"dupes data.csv {NAMED} --by split,wrker", "data.csv", "--by", "wrker", "worker"),
        (f"dupes data.csv {NAMED} --gold wrker", "data.csv", "--gold", "wrker", "worker"),
        (f"dupes data.csv {NAMED} --kind ordinal --classes a,b --split splt", "data.csv", "--split", "splt", "split"),
        ("dupes data.csv --item txt --label label --kind numeric", "data.csv", "--item", "txt", "text"),
        ("ceiling data.csv --item txt --label label --score 0.9", "data.csv", "--item", "txt", "text"),
        ("resolve data.csv conflicts.csv --item txt --label label --out out.csv", "data.csv", "--item", "txt", "text"),
        ("plan data.csv --item txt --label label", "data.csv", "--item", "txt", "text"),
        (f"plan data.csv {NAMED} --by splt", "data.csv", "--by", "splt", "split"),
        (f"plan data.csv {NAMED} --show splt", "data.csv", "--show", "splt", "split"),
        ("compare data.csv after.csv --item txt --label label", "data.csv", "--item", "txt", "text"),
        ("compare data.csv after.csv --item text --label lable", "data.csv", "--label", "lable", "label"),
        (f"compare data.csv after.csv {NAMED} --label-after claen", "after.csv", "--label-after", "claen", "clean"),
        (f"compare data.csv after.csv {NAMED}", "after.csv", "--label-after", "label", None),
        (f"compare data.csv after.csv {NAMED} --row-id wrker", "data.csv", "--row-id", "wrker", "worker"),
        (f"compare data.csv after.csv {NAMED} --label-after clean --row-id given", "after.csv", "--row-id", "given",
         None),
        ("leak data.csv after.csv --item txt", "data.csv", "--item", "txt", "text"),
        ("leak data.csv after.csv --item text,label", "after.csv", "--item", "label", None),
        ("leak data.csv after.csv --item text --label lable", "data.csv", "--label", "lable", "label"),
        (f"leak data.csv after.csv {NAMED} --label-test claen", "after.csv", "--label-test", "claen", "clean"),
        ("issues data.csv --item txt --label label", "data.csv", "--item", "txt", "text"),
        ("issues data.csv --item text --label lable", "data.csv", "--label", "lable", "label"),
        (f"issues data.csv {NAMED} --probs scores.csv --row-id wrker", "data.csv", "--row-id", "wrker", "worker"),
        (f"issues data.csv {NAMED} --probs scores.csv --row-id worker", "scores.csv", "--row-id", "worker", None),
        (f"{RUN} --label lable", "data.csv", "--label", "lable", "label"),
        (f"{RUN} --gold gold.csv --gold-label trth", "gold.csv", "--gold-label", "trth", "truth"),
        ("relabel rehearse data.csv --item txt --label label", "data.csv", "--item", "txt", "text"),
        ("relabel rehearse data.csv --item text --label lable", "data.csv", "--label", "lable", "label"),
        ("train operating-point scores.csv --item itm", "scores.csv", "--item", "itm", "item"),
        ("train operating-point scores.csv --label lable", "scores.csv", "--label", "lable", "label"),
        ("train operating-point scores.csv --score scroe", "scores.csv", "--score", "scroe", "score"),
        ("train operating-point scores.csv --prediction predicted", "scores.csv", "--prediction", "predicted",
         "prediction"),
        ("train operating-point scores.csv --cluster documnet", "scores.csv", "--cluster", "documnet", "document"),
        ("train route scores.csv scores.csv --score scroe", "scores.csv", "--score", "scroe", "score"),
        ("train route scores.csv scores.csv --conflicts conflicts.csv --conflicts-item txt", "conflicts.csv",
         "--conflicts-item", "txt", "text"),
        ("train plumbing rollouts.csv --reward rewrd", "rollouts.csv", "--reward", "rewrd", "reward"),
        ("train plumbing rollouts.csv --label lable", "rollouts.csv", "--label", "lable", "label"),
        ("train plumbing rollouts.csv --item itm", "rollouts.csv", "--item", "itm", "item"),
        ("train plumbing rollouts.csv --data data.csv --item txt", "data.csv", "--item", "txt", "text"),
        ("train plumbing rollouts.csv --data data.csv --label lable", "data.csv", "--label", "lable", "label"),
        ("train plumbing rollouts.csv --conflicts conflicts.csv --item txt", "conflicts.csv", "--item", "txt", "text"),
    ],
)  # fmt: skip
def test_a_column_that_is_not_there(
    words: str, file: str, option: str, column: str, meant: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    ran = run(words)
    assert ran.code == 2
    told = f"audit: {file}: there is no column {column!r}"
    assert ran.err.splitlines()[-1].startswith(told), ran.err
    assert f" ({option}); there are " in ran.err
    if meant is not None:
        assert ran.err.endswith(f"; did you mean {option} {meant}?\n"), ran.err
    assert sorted(folder.iterdir()) == before
