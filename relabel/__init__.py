"""Rubric -> judge -> adjudicator -> clean labels, with a durable journal (extra ``[relabel]``).

>>> from relabel import Job
>>> Job(source="data.csv", rubric="rubric.md", judge="qwen3").run()  # doctest: +SKIP

Names are loaded on first use, so ``import relabel`` is quick and needs none of the extra's packages.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relabel.agree import audit_pipeline
    from relabel.agree_plan import plan_audit
    from relabel.batch import collect_batch, write_batch
    from relabel.batch_run import run_batch
    from relabel.calibration import calibrate
    from relabel.capabilities import Capabilities, verdict_params
    from relabel.client import JudgeClient
    from relabel.connect import Settings
    from relabel.gate import Gate
    from relabel.journal import Journal
    from relabel.parse import parse_reply, verdict_of
    from relabel.prevalence import estimate_prevalence
    from relabel.records import Judged, Reply, Request, Status, Verdict
    from relabel.rehearse import Counts, Fault, Profile, Rate, RehearsalServer, Script
    from relabel.review import export_review, import_review
    from relabel.rubric import Label, Rubric
    from relabel.run import Job
    from relabel.spellings import Spellings

_HOMES = {
    "agree": ("audit_pipeline",),
    "agree_plan": ("plan_audit",),
    "batch": ("collect_batch", "write_batch"),
    "batch_run": ("run_batch",),
    "calibration": ("calibrate",),
    "capabilities": ("Capabilities", "verdict_params"),
    "client": ("JudgeClient",),
    "connect": ("Settings",),
    "gate": ("Gate",),
    "journal": ("Journal",),
    "parse": ("parse_reply", "verdict_of"),
    "prevalence": ("estimate_prevalence",),
    "records": ("Judged", "Reply", "Request", "Status", "Verdict"),
    "rehearse": ("Counts", "Fault", "Profile", "Rate", "RehearsalServer", "Script"),
    "review": ("export_review", "import_review"),
    "rubric": ("Label", "Rubric"),
    "run": ("Job",),
    "spellings": ("Spellings",),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Capabilities",
    "Counts",
    "Fault",
    "Gate",
    "Job",
    "Journal",
    "JudgeClient",
    "Judged",
    "Label",
    "Profile",
    "Rate",
    "RehearsalServer",
    "Reply",
    "Request",
    "Rubric",
    "Script",
    "Settings",
    "Spellings",
    "Status",
    "Verdict",
    "audit_pipeline",
    "calibrate",
    "collect_batch",
    "estimate_prevalence",
    "export_review",
    "import_review",
    "parse_reply",
    "plan_audit",
    "run_batch",
    "verdict_of",
    "verdict_params",
    "write_batch",
]


def __getattr__(name: str) -> Any:
    """Import the module behind a public name the first time the name is used."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'relabel' has no attribute {name!r}")
    return getattr(importlib.import_module(f"relabel.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
