"""The JSON of an audit against its published schema, and the page that documents it against both."""

import dataclasses
import json
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given

from audit import results, results_near
from audit.results import SCHEMA_VERSION, AuditResult, Result
from tests.made_results import full
from tests.made_shapes import SHAPES, hostile, texts

DOCS = Path(__file__).parents[1] / "docs"
SCHEMA: dict[str, Any] = json.loads((DOCS / "schema.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

#: The paths that DESIGN promises; moving one is a new major version of the schema.
CONTRACT = """
data.rows data.missing_label data.classes
repeats.items repeats.rows repeats.pairs repeats.conflicts
disagreement.estimate disagreement.low disagreement.high disagreement.method
disagreement.pair_weighted disagreement.row_weighted
flip_rate.estimate flip_rate.low flip_rate.high flip_rate.classes flip_rate.reason
ceiling.lower ceiling.upper ceiling.low ceiling.high
ceiling.moments.lower ceiling.moments.upper ceiling.moments.low ceiling.moments.high ceiling.moments.repeats
by.<column>[].value by.<column>[].items by.<column>[].estimate by.<column>[].low by.<column>[].high
gate.passed gate.threshold gate.end gate.value
alarms[].code alarms[].message alarms[].figures
""".split()


def resolved(node: dict[str, Any]) -> dict[str, Any]:
    """``node`` without its reference or its choice of null."""
    for option in node.get("anyOf", ()):
        if "$ref" in option:
            node = option
    if "$ref" in node:
        found: dict[str, Any] = SCHEMA["$defs"][node["$ref"].rpartition("/")[2]]
        return found
    return node


def paths(node: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Every path of the schema with its type and its description, parents first."""
    for name, part in resolved(node).get("properties", {}).items():
        yield from described(f"{prefix}{name}", part)


def described(path: str, part: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    target = resolved(part)
    if "const" in target:
        kind = f"`{json.dumps(target['const'])}`"
    elif "enum" in target:
        kind = ", ".join(f"`{json.dumps(value)}`" for value in target["enum"])
    else:
        kinds = target["type"] if isinstance(target["type"], list) else [target["type"]]
        kinds = [*kinds, "null"] if "anyOf" in part else kinds
        kind = " or ".join(kinds)
    yield path, kind, part.get("description") or target["description"]
    if "properties" in target:
        yield from paths(target, f"{path}.")
    elif isinstance(target.get("items"), dict) and "properties" in resolved(target["items"]):
        yield from paths(target["items"], f"{path}[].")
    elif isinstance(target.get("additionalProperties"), dict):
        value, below = target["additionalProperties"], f"{path}.<column>"
        if resolved(value).get("type") == "array":
            yield from paths(value["items"], f"{below}[].")
        else:
            yield from paths(value, f"{below}.")


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["schema_version"]["const"] == SCHEMA_VERSION


@pytest.mark.parametrize("shape", SHAPES)
def test_results_of_every_shape_are_valid(shape: str) -> None:
    written = json.dumps(SHAPES[shape]().to_dict(), ensure_ascii=False, indent=2, allow_nan=False)
    VALIDATOR.validate(json.loads(written))


@given(texts)
def test_results_full_of_hostile_text_are_valid(value: str) -> None:
    made = hostile(value).to_dict()
    VALIDATOR.validate(made)
    assert json.loads(json.dumps(made, allow_nan=False)) == json.loads(json.dumps(made))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("disagreement", "estimate"), 1.2),
        (("disagreement", "estimate"), "0.2"),
        (("flip_rate", "classes"), None),
        (("repeats", "items"), -1),
        (("data", "rows"), 2.5),
        (("alarms", 0, "severity"), "fatal"),
        (("ceiling", "spare"), 1),
        (("by", "split", 0, "value"), 3),
        (("schema_version",), "2.0"),
        (("repeats", "ladder", 0, "level"), "stem"),
    ],
)
def test_the_schema_refuses_what_is_wrong(path: tuple[str | int, ...], value: object) -> None:
    made: Any = json.loads(json.dumps(full().to_dict()))
    part = made
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(made)


@pytest.mark.parametrize("name", ["verdict", "repeats", "flip_rate", "by", "settings"])
def test_the_schema_needs_every_part(name: str) -> None:
    made = full().to_dict()
    del made[name]
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(made)


def test_the_schema_holds_the_contract() -> None:
    assert set(CONTRACT) <= {path for path, _, _ in paths(SCHEMA)}


def test_every_object_is_closed_and_every_key_required() -> None:
    def walk(node: object) -> Iterator[dict[str, Any]]:
        if isinstance(node, dict):
            if isinstance(node.get("properties"), dict) and "type" in node:
                yield node
            for part in node.values():
                yield from walk(part)

    objects = list(walk(SCHEMA))
    assert len(objects) == 36
    for node in objects:
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])


def test_the_schema_has_the_fields_of_the_results() -> None:
    def check(kind: type[Result], node: dict[str, Any]) -> None:
        fields = {f.name: f for f in dataclasses.fields(kind) if f.metadata.get("json", True)}  # type: ignore[arg-type]
        properties = resolved(node)["properties"]
        assert set(properties) == set(fields), kind
        hints = typing.get_type_hints(kind, vars(results) | vars(results_near) | {"pd": None})
        for name in fields:
            hint, part = hints[name], properties[name]
            if inner := result_in(hint):
                target = part
                if typing.get_origin(hint) in (Mapping, tuple):
                    target = resolved(part).get("items") or resolved(part)["additionalProperties"]
                    target = target.get("items", target)
                check(inner, target)
            elif types.NoneType in typing.get_args(hint):
                assert "null" in part["type"], f"{kind.__name__}.{name} may be None"

    check(AuditResult, SCHEMA)


def result_in(hint: Any) -> type[Result] | None:
    """The result class that a type hint holds, at any depth."""
    if isinstance(hint, type) and issubclass(hint, Result):
        return hint
    return next((found for part in typing.get_args(hint) if (found := result_in(part))), None)


def test_the_page_documents_every_path() -> None:
    """docs/json.md holds this table, line by line; the failure shows the lines that it lacks."""
    page = (DOCS / "json.md").read_text("utf-8").splitlines()
    wanted = [f"| `{path}` | {kind} | {text} |" for path, kind, text in paths(SCHEMA)]
    found = [line for line in page if line.startswith("| `")]
    assert [line for line in wanted if line not in found] == []
    assert found == wanted
