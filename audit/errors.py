"""The one exception tree of the package.

    AuditError                  everything raised on purpose; carries the exit code of the command line
    ├── InputError              a file or frame cannot be read or holds nothing to work on (exit 2)
    │   └── ColumnError         a named column is not there, or the columns cannot be told apart (exit 2)
    ├── ArgumentError           an argument is out of range or contradicts another (exit 2)
    ├── EndpointError           a model's endpoint cannot be used: key, address, quota, model (exit 2)
    └── MissingExtraError       a command needs packages that are not installed (exit 2)

Errors of other libraries (DuckDB, openai, ...) are wrapped where they arise, with the original as
``__cause__``. Every message is one line that names the cause and the fix.
"""

from __future__ import annotations

__all__ = ["ArgumentError", "AuditError", "ColumnError", "EndpointError", "InputError", "MissingExtraError"]


class AuditError(Exception):
    """Base of all errors raised on purpose; ``exit_code`` is what the command line returns for it."""

    exit_code: int = 2


class InputError(AuditError):
    """A file or data frame cannot be read, or holds no rows to work on."""


class ColumnError(InputError):
    """A named column does not exist, or the columns cannot be guessed without doubt."""


class ArgumentError(AuditError, ValueError):
    """An argument is out of its range or contradicts another one."""


class EndpointError(AuditError):
    """A model's endpoint cannot be used at all, so that asking on would change nothing.

    A wrong key, address or model, a spent quota, a certificate that does not hold, or no answer from the start.
    """


class MissingExtraError(AuditError, ImportError):
    """A command needs packages of an extra that is not installed.

    Parameters
    ----------
    feature:
        What was asked for, in words (``"audit relabel"``).
    extra:
        The extra that brings it (``"relabel"``).
    """

    def __init__(self, feature: str, *, extra: str) -> None:
        super().__init__(
            f"{feature} needs packages that are not installed: pip install 'label-audit[{extra}]'"
        )
        self.extra = extra
