"""Who may import whom, and who may touch the disk. The rules of the layout, read off the source."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("audit", "relabel", "train")
BOTTOM = {"errors", "results", "results_base", "results_beyond", "results_frame", "results_near"}
MATHS = {
    "agreement",
    "asymmetric",
    "dawid_skene",
    "ceiling",
    "disagreement",
    "fliprate",
    "homogeneity",
    "intervals",
    "latent",
    "metric_limits",
    "moments",
    "moments_limit",
    "moments_lp",
    "numeric",
    "offsets",
    "paired",
    "patterns",
    "planning",
}
# Modules of audit named read* or writ* are the reader and the writer; beside them stand grouping* and what both
# need to know about texts, labels and columns.
GROUPING = {"columns", "labels", "normalise"}
LAYERS = ("bottom", "maths", "reading and grouping", "report", "rendering", "package", "command line")


def is_disk(module: str) -> bool:
    return module.startswith(("read", "writ"))


#: Parts of the command line that lie in a package: what cli may import besides Typer itself. They keep its rule.
OPTIONS = "audit.options"
COMMANDS = sorted((ROOT / "audit").glob("cli*.py"))


def layer(module: str) -> int:
    """The layer of a module of audit, as an index into LAYERS: it may import its own and lower ones."""
    if module in BOTTOM:
        return 0
    if module in MATHS:
        return 1
    if is_disk(module) or module.startswith("group") or module in GROUPING:
        return 2
    if module.startswith("render") or module == "charts":
        return 4
    if module.startswith("cli"):
        return 6
    return 5 if module in {"__init__", "__main__"} else 3


@dataclass(frozen=True)
class Import:
    target: str  # dotted, absolute; for "from a import b" it is "a.b"
    line: int
    lazy: bool  # inside a function
    typing: bool  # under "if TYPE_CHECKING:"

    @property
    def top(self) -> str:
        return self.target.partition(".")[0]


def imports(path: Path) -> list[Import]:
    found: list[Import] = []
    package = path.relative_to(ROOT).parts[:-1] if path.is_relative_to(ROOT) else ("here",)

    def walk(node: ast.AST, *, lazy: bool, typing: bool) -> None:
        for child in ast.iter_child_nodes(node):
            inside = lazy or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            if isinstance(child, ast.Import):
                found.extend(Import(a.name, child.lineno, inside, typing) for a in child.names)
            elif isinstance(child, ast.ImportFrom):
                above = package[: len(package) + 1 - child.level] if child.level else ()
                source = ".".join([*above, *filter(None, [child.module])])
                found.extend(Import(f"{source}.{a.name}", child.lineno, inside, typing) for a in child.names)
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                for part in child.body:
                    walk(ast.Module([part], []), lazy=inside, typing=True)
                for part in child.orelse:
                    walk(ast.Module([part], []), lazy=inside, typing=typing)
            else:
                walk(child, lazy=inside, typing=typing)

    walk(ast.parse(path.read_text("utf-8")), lazy=False, typing=False)
    return found


def sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


AUDIT = sources("audit")
LIBRARY = [path for package in PACKAGES for path in sources(package)]
each_audit_module = pytest.mark.parametrize("path", AUDIT, ids=name)
each_module = pytest.mark.parametrize("path", LIBRARY, ids=name)


def test_every_package_and_every_named_module_is_there() -> None:
    assert {path.parent.name for path in LIBRARY if path.name == "__init__.py"} >= set(PACKAGES)
    assert {path.stem for path in AUDIT} >= BOTTOM | MATHS
    assert (ROOT / "cli.py").is_file()


def test_the_walk_sees_lazy_and_typing_imports(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "import os.path\n"
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import pandas as pd\nelse:\n    import json\n"
        "try:\n    import torch\nexcept ImportError:\n    pass\n"
        "class A:\n    def f(self):\n        from openai import OpenAI\n"
        "from .sibling import x\nfrom . import y\n"
    )
    seen = {(i.target, i.line, i.lazy, i.typing) for i in imports(path)}
    assert seen == {
        ("os.path", 1, False, False),
        ("typing.TYPE_CHECKING", 2, False, False),
        ("pandas", 4, False, True),
        ("json", 6, False, False),
        ("torch", 8, False, False),
        ("openai.OpenAI", 13, True, False),
        ("here.sibling.x", 14, False, False),
        ("here.y", 15, False, False),
    }


@each_module
def test_packages_meet_only_as_agreed(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    allowed = {"audit": {"audit"}, "relabel": {"relabel", "audit"}, "train": {"train", "audit"}}[package]
    wrong = [i for i in imports(path) if i.top in {*PACKAGES, "cli"} - allowed]
    assert not wrong
    private = [i for i in imports(path) if i.top in PACKAGES and i.top != package and "._" in i.target]
    assert not private, "only public names of another package"


@each_audit_module
def test_audit_imports_only_downwards(path: Path) -> None:
    mine = layer(path.stem)
    for i in imports(path):
        if i.target.startswith("audit."):
            theirs = layer(i.target.split(".")[1])
            message = f"{name(path)}:{i.line}: {LAYERS[mine]} imports {i.target} of {LAYERS[theirs]}"
            assert theirs <= mine, message


@pytest.mark.parametrize("path", [p for p in AUDIT if p.stem in BOTTOM | MATHS], ids=name)
def test_maths_needs_numpy_and_scipy_only(path: Path) -> None:
    allowed = sys.stdlib_module_names | {"audit", "numpy", "scipy"}
    foreign = [i for i in imports(path) if i.top not in allowed]
    if path.stem in BOTTOM:  # a result may be asked for as a data frame
        foreign = [i for i in foreign if not (i.lazy or i.typing)]
    assert not foreign


@pytest.mark.parametrize("path", [p for p in AUDIT if not is_disk(p.stem)], ids=name)
def test_only_reader_and_writer_touch_the_disk(path: Path) -> None:
    found = [f"{name(path)}:{line}: {call}" for line, call in disk_calls(path)]
    assert not found


def disk_calls(path: Path) -> Iterator[tuple[int, str]]:
    methods = {"open", "read_text", "read_bytes", "write_text", "write_bytes", "mkdir", "unlink", "touch"}
    methods |= {"read_csv", "read_parquet", "read_json", "read_excel", "to_csv", "to_parquet", "to_excel"}
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id == "open":
                yield node.lineno, "open"
            elif isinstance(called, ast.Attribute) and called.attr in methods:
                yield node.lineno, ast.unparse(called)


def test_the_search_for_disk_calls_finds_them(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("open('x')\nPath('x').write_text('')\nframe.to_csv('x')\nreopen('x')\n")
    assert list(disk_calls(path)) == [(1, "open"), (2, "Path('x').write_text"), (3, "frame.to_csv")]


@each_module
def test_library_neither_prints_nor_asserts(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        assert not isinstance(node, ast.Assert), f"{name(path)}:{node.lineno}: raise an error of audit.errors"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", (
                f"{name(path)}:{node.lineno}: the command line prints, not the library"
            )


def test_command_line_imports_its_packages_lazily() -> None:
    eager = [i for i in imports(ROOT / "cli.py") if not (i.lazy or i.typing)]
    allowed = sys.stdlib_module_names | {"typer"}
    assert not [i for i in eager if i.top not in allowed and not i.target.startswith((OPTIONS, "audit.cli_"))]
    own = imports(ROOT / "audit" / "options.py")
    assert not [i for i in own if i.top not in allowed and not i.lazy]
    assert COMMANDS
    for path in COMMANDS:
        more = [i for i in imports(path) if not (i.lazy or i.typing)]
        assert not [
            i for i in more if i.top not in allowed and not i.target.startswith((OPTIONS, "audit.cli_"))
        ]


# --- the same, asked of a running Python --------------------------------------------------------------------

HEAVY = ("torch", "transformers", "cleanlab", "matplotlib", "openai")


def run(code: str) -> str:
    """Standard output of ``code`` in a fresh Python that starts in the repository."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_after(code: str) -> set[str]:
    """Top-level names of all modules that ``code`` loads."""
    last = run(f"{code}\nimport sys\nprint()\nprint(*{{m.partition('.')[0] for m in sys.modules}})")
    return set(last.splitlines()[-1].split())


def test_import_audit_is_light() -> None:
    loaded = loaded_after("import audit\nfor name in audit.__all__: getattr(audit, name)")
    assert "audit" in loaded
    assert not loaded & {*HEAVY, "relabel", "train", "cli", "typer", "pyarrow", "polars"}


@pytest.mark.parametrize("arguments", [["--help"], ["dupes", "--help"]], ids=" ".join)
def test_help_is_light(arguments: list[str]) -> None:
    code = f"import sys; sys.argv = ['audit', *{arguments}]\nfrom cli import main\n"
    loaded = loaded_after(code + "try: main()\nexcept SystemExit as stop: assert not stop.code")
    assert "typer" in loaded
    assert not loaded & {*HEAVY, "numpy", "scipy", "pandas", "duckdb", "relabel", "train"}


@pytest.mark.parametrize("module", sorted(BOTTOM | MATHS))
def test_maths_works_on_a_minimal_install(module: str) -> None:
    run(
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in {'duckdb', 'pandas', 'narwhals', 'typer', 'jinja2', 'pyarrow',\n"
        "                                      'polars', 'python_calamine'}:\n"
        "            raise ModuleNotFoundError(f'{name} is not installed here')\n"
        "sys.meta_path.insert(0, Absent())\n"
        f"import audit.{module} as module\n"
        "for name in module.__all__: getattr(module, name)\n"
    )
