"""Reading and writing plan.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from formulations import strict_json
from milp_planner.errors import BadInput
from milp_planner.files import write_json
from milp_planner.placement import Plan
from milp_planner.plan_file import FORMAT, plan_from_dict, plan_to_dict


def read_document(path: str | Path) -> dict[str, Any]:
    """A JSON document, plain or gzipped, parsed strictly.

    Raises
    ------
    BadInput
        When it is no JSON object.
    InstanceError
        When the file cannot be read or parsed.
    """
    document = strict_json.parse(strict_json.read_bytes(Path(path)), str(path), floats=True)
    if not isinstance(document, dict):
        raise BadInput(f"{path}: needs a JSON object, found a {type(document).__name__}")
    return document


def is_plan(document: dict[str, Any]) -> bool:
    """Whether a document says that it is a plan."""
    return document.get("format") == FORMAT


def read_plan(path: str | Path) -> Plan:
    """Read a plan.json; what it claims is for :func:`milp_planner.verify` to judge.

    Raises
    ------
    BadInput, InstanceError
        When it is no plan, or a part of it is malformed.
    """
    return plan_from_dict(read_document(path), str(path))


def write_plan(plan: Plan, path: str | Path) -> Path:
    """Write a plan.json, whole or not at all."""
    return write_json(path, plan_to_dict(plan))
