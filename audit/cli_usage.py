"""Errors of the command line itself, such as an option that does not exist, in one plain line each.

Typer tells them in its own words, over four lines, with what the library under it says of the value. `invoke` runs an
app and turns them into an ArgumentError, which the command line shows like any other.
"""

from __future__ import annotations

import difflib
import re
from itertools import takewhile
from operator import eq
from typing import Any

import typer

__all__ = ["invoke"]


def invoke(app: typer.Typer, *, name: str, args: list[str] | None = None) -> int:
    """Run an app; return its exit code.

    ``name`` is what help and errors call it; ``args`` are those of the process by default. Raises ArgumentError where
    the words cannot be made into a call of a command; the errors of the commands pass.
    """
    try:
        code = app(args=args, prog_name=name, standalone_mode=False)
    except Exception as error:
        if not hasattr(error, "format_message"):  # not one of the parser's own
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]
            return 2
        from audit.errors import ArgumentError

        raise ArgumentError(_told(error)) from error
    return code if isinstance(code, int) else 0


def _told(error: Any) -> str:
    """The error as one line, with where to read on."""
    context = getattr(error, "ctx", None)
    message = " ".join(error.format_message().split()).rstrip(".")
    name = _name(getattr(error, "param", None))
    if message.startswith("Missing") and name:
        told = f"{name} is missing{_meaning(error.param)}"
    elif found := re.match(r"No such option: (\S+)", message):
        told = f"there is no option {found[1]}{_near(found[1], getattr(error, 'possibilities', None))}"
    elif found := re.match(r"No such command '(.*?)'", message):
        there = list(getattr(context.command, "commands", ())) if context is not None else []
        told = f"there is no command {found[1]!r}{_near(found[1], there) or f': choose {_or(there)}'}"
    elif found := re.match(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", message):
        told = f"there is no place for {found[1]!r}: quote a value with spaces, separate columns by commas"
    elif found := re.match(r"Option '(\S+)' (requires an argument|does not take a value)", message):
        told = f"{found[1]} {'needs a value' if found[2].startswith('req') else 'takes no value'}"
    elif name:
        told = f"{name}: {_fault(error)}"
    else:
        told = message
    return told if context is None else f"{told} ({context.command_path} --help)"


def _name(param: Any) -> str | None:
    """A parameter as people know it: ``--label`` or ``FILE``."""
    if param is None:
        return None
    if param.param_type_name == "argument":
        return (param.metavar or "").strip("[]") or str(param.name).upper()
    return str(param.opts[0])


def _meaning(param: Any) -> str:
    text = (getattr(param, "help", None) or "").rstrip(".")
    return f": {text[0].lower() if text[1].islower() else text[0]}{text[1:]}" if len(text) > 1 else ""


def _near(name: str, options: Any) -> str:
    """What may have been meant: of the names that are close, the one that begins most alike."""
    near = difflib.get_close_matches(name, list(options or ()))
    best = max(near, key=lambda one: sum(1 for _ in takewhile(bool, map(eq, name, one))), default=None)
    return f"; did you mean {best}?" if best else ""


def _or(names: list[str]) -> str:
    return ", ".join(names[:-1]) + " or " + names[-1] if len(names) > 1 else ", ".join(names)


def _fault(error: Any) -> str:
    """What is wrong with a value. Typer lets pydantic check it, whose words are for programmers."""
    cause = error.__cause__
    detail: dict[str, Any] = next(iter(cause.errors()), {}) if hasattr(cause, "errors") else {}
    kind, value, limits = detail.get("type", ""), detail.get("input"), detail.get("ctx", {})
    if kind.startswith(("float_", "finite_")):
        return f"{value!r} is not a number"
    if kind.startswith("int_"):
        return f"{value!r} is not a whole number"
    if kind == "greater_than_equal":
        return f"{value} is too small; it takes {limits['ge']} or more"
    if kind == "less_than_equal":
        return f"{value} is too large; it takes {limits['le']} or less"
    return re.sub(r"^Value error, ", "", str(error.message)).rstrip(".")
