"""Every notebook runs from start to end and prints what it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def outputs(notebook: Any) -> list[str]:
    """What the cells print and return, as text."""
    parts = [part for cell in notebook.cells if cell.cell_type == "code" for part in cell.outputs]
    return [part.text if part.output_type == "stream" else part.data["text/plain"] for part in parts]


def test_there_is_a_notebook() -> None:
    assert "audit_in_five_minutes" in [path.stem for path in NOTEBOOKS]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_shows_what_it_prints(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    shown = outputs(notebook)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
    assert shown, "the notebook is committed with its outputs: run `make notebooks`"
    assert outputs(notebook) == shown
