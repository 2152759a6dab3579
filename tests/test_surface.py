"""The surface: docstrings, file sizes, what the text of the repository may not hold, and the pins."""

import ast
import importlib
import inspect
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
LONGEST = 350

# Absolute paths of one machine. The brackets keep this line from matching itself.
LOCAL_PATH = re.compile(
    r"(?<![\w.:-])(/wor[k]/|/roo[t]/|/hom[e]/\w|/User[s]/\w|/op[t]/\w|/tm[p]/pl|[C]:\\Users)"
)


def repository_files() -> list[Path]:
    """All files under version control, and the new ones that are not ignored; without git, all sources."""
    if shutil.which("git") and (ROOT / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = (
            subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
        )
        return sorted(path for entry in listed if entry and (path := ROOT / entry).is_file())
    folders = ("audit", "relabel", "train", "tests", "docs", "examples", "benchmarks", "notebooks")
    inside = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
    return sorted([*(path for path in ROOT.iterdir() if path.is_file()), *inside])


FILES = repository_files()
SOURCES = [path for path in FILES if path.suffix == ".py"]
LIBRARY = [
    path for path in SOURCES if path.relative_to(ROOT).parts[0] in {"audit", "relabel", "train", "cli.py"}
]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_the_lists_are_not_empty() -> None:
    assert Path(__file__) in SOURCES
    assert ROOT / "audit" / "errors.py" in LIBRARY
    assert ROOT / "cli.py" in LIBRARY


@pytest.mark.parametrize("path", [p for p in SOURCES if not p.is_relative_to(ROOT / "tests")], ids=name)
def test_source_is_short_and_says_what_it_is(path: Path) -> None:
    text = path.read_text("utf-8")
    lines = len(text.splitlines())
    assert lines <= LONGEST, f"{name(path)} has {lines} lines: is there a wall to draw?"
    if text.strip():
        assert ast.get_docstring(ast.parse(text)), f"{name(path)} has no docstring"


@pytest.mark.parametrize("path", LIBRARY, ids=name)
def test_public_names_exist_and_are_described(path: Path) -> None:
    module = importlib.import_module(
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    )
    for public in getattr(module, "__all__", ()):
        check_described(getattr(module, public), f"{module.__name__}.{public}")


def check_described(thing: object, label: str) -> None:
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        return  # a constant: its comment stands beside it
    written = thing.__doc__ or ""
    generated = inspect.isclass(thing) and written.startswith(f"{thing.__name__}(")  # by @dataclass
    described = written.strip() and not generated
    assert described, f"{label} has no docstring"
    if inspect.isclass(thing):
        for key, member in vars(thing).items():
            if not key.startswith("_") and (inspect.isroutine(member) or isinstance(member, property)):
                assert inspect.getdoc(getattr(thing, key)), f"{label}.{key} has no docstring"


def test_a_missing_docstring_is_noticed() -> None:
    class Described:
        """Something."""

        def silent(self) -> None: ...

    with pytest.raises(AssertionError, match=r"Described\.silent has no docstring"):
        check_described(Described, "Described")


def test_audit_names_its_public_surface() -> None:
    audit = importlib.import_module("audit")
    assert len(audit.__all__) == len(set(audit.__all__))
    assert set(audit.__all__) <= set(dir(audit)), "dir() shows what import gives"


def test_no_file_holds_a_path_of_one_machine() -> None:
    found = []
    for path in FILES:
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        found += [
            f"{name(path)}:{number}: {line[:120]}"
            for number, line in enumerate(text.split("\n"), 1)
            if LOCAL_PATH.search(line)
        ]
    assert not found


def test_the_search_for_paths_finds_them() -> None:
    for folder in ("wor" + "k", "roo" + "t", "hom" + "e/someone"):
        assert LOCAL_PATH.search(f"reads '/{folder}/data.csv'")
    assert not LOCAL_PATH.search("https://example.org/wor" + "k/paper and a/hom" + "e/b")


# --- pins --------------------------------------------------------------------------------------------------


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = [line.partition("==") for line in lines if line and not line.startswith("#")]
    assert all(version for _, _, version in pinned), "each line of constraints.txt pins one version"
    return {str(canonicalize_name(package)): version for package, _, version in pinned}


def requirements(*extras: str) -> list[Requirement]:
    listed = [*PROJECT["dependencies"], *(entry for extra in extras for entry in EXTRAS[extra])]
    return [Requirement(entry) for entry in listed]


def test_pins_lie_in_the_ranges() -> None:
    pinned = pins()
    for requirement in requirements(*EXTRAS):
        version = pinned.get(canonicalize_name(requirement.name))
        assert version is None or requirement.specifier.contains(version), (
            f"{requirement}, but {version} is pinned"
        )


def test_whatever_the_tests_install_is_pinned() -> None:
    pinned = pins()
    assert not [
        r.name for r in requirements("relabel", "dev", "llm") if canonicalize_name(r.name) not in pinned
    ]


def test_the_core_is_small_and_all_means_all() -> None:
    core = {canonicalize_name(requirement.name) for requirement in requirements()}
    assert not core & {"torch", "transformers", "pyarrow", "openai", "matplotlib", "cleanlab", "scikit-learn"}
    (everything,) = requirements_of("all")
    assert everything.name == PROJECT["name"]
    assert everything.extras == set(EXTRAS) - {"all", "dev", "llm"}


def requirements_of(extra: str) -> list[Requirement]:
    return [Requirement(entry) for entry in EXTRAS[extra]]


def test_the_wheel_holds_what_makes_the_packages_typed() -> None:
    """PEP 561: a marker in each package, and the packages whole in the wheel."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]
    packages = [part for part in build["wheel"]["only-include"] if not part.endswith(".py")]
    assert packages == ["audit", "relabel", "train"]
    assert not {"exclude", "include"} & set(build["wheel"])
    assert [name for name in packages if not (ROOT / name / "py.typed").is_file()] == []
    assert "Typing :: Typed" in PROJECT["classifiers"]
