"""The version of the package, from its installed metadata."""

from __future__ import annotations

from importlib import metadata

__all__ = ["__version__"]

try:
    __version__ = metadata.version("label-audit")
except metadata.PackageNotFoundError:  # a source tree on the path, not installed
    __version__ = "0+unknown"
