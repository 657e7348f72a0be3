"""plan.json: a Plan with everything that verify, explain, export and report need."""

from __future__ import annotations

import base64
import binascii
import gzip
import json
from typing import Any

from formulations.instance_file import instance_from_dict, instance_to_dict
from formulations.outcome_file import outcome_from_dict, outcome_to_dict
from milp_planner.costs.profile import Profile
from milp_planner.errors import BadInput
from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.model import Model
from milp_planner.placed import PlacedTable
from milp_planner.placement import Plan

FORMAT = "milp-planner-plan/1"
LARGE = 1_000_000
"""Parts whose JSON text is longer than this are embedded compressed."""
_ENCODING = "json+gzip+base64"
_PARTS = ("model", "cluster", "profile", "instance", "outcome")


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """The document of a plan: JSON values only, the same text for the same plan.

    ``model``, ``cluster``, ``profile``, ``instance`` and ``outcome`` are embedded as they are, or
    as ``{"encoding", "data"}`` when large; ``fingerprints`` holds SHA-256 of the first four.
    """
    return {
        "format": FORMAT,
        "fingerprints": _fingerprints(plan),
        "tables": [table.to_dict() for table in plan.tables],
        "model": _packed(plan.model.to_dict()),
        "cluster": _packed(plan.cluster.to_dict()),
        "profile": _packed(plan.profile.to_dict()),
        "instance": _packed(instance_to_dict(plan.instance)),
        "outcome": _packed(outcome_to_dict(plan.instance, plan.outcome)),
    }


def plan_from_dict(document: Any, what: str = "plan") -> Plan:
    """Rebuild a plan from its document.

    Claims of the outcome are kept as written: ``verify`` is who judges them.

    Parameters
    ----------
    document
        Parsed JSON.
    what : str
        What error sentences call it, such as a file name.

    Raises
    ------
    BadInput
        When it is no plan, a part is missing or damaged, or does not match its fingerprint.
    InstanceError
        When the Instance or Outcome in it is malformed.
    """
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        found = document.get("format") if isinstance(document, dict) else type(document).__name__
        raise BadInput(f"{what}: format is {found!r}; allowed: {FORMAT!r} (a plan.json)")
    for key in ("tables", "fingerprints", *_PARTS):
        if key not in document:
            raise BadInput(f"{what}: the field {key!r} is missing; a plan.json has it")
    if not isinstance(document["tables"], list):
        raise BadInput(f"{what}: tables must be a list of placed tables")
    part = {key: _unpacked(document[key], f"{what}: {key}") for key in _PARTS}
    instance = instance_from_dict(part["instance"], f"{what}: instance")
    plan = Plan(
        model=Model.from_dict(part["model"], f"{what}: model"),
        cluster=Cluster.from_dict(part["cluster"], f"{what}: cluster"),
        profile=Profile.from_dict(part["profile"], f"{what}: profile"),
        instance=instance,
        outcome=outcome_from_dict(instance, part["outcome"], f"{what}: outcome"),
        tables=tuple(PlacedTable.from_dict(t, f"{what}: tables") for t in document["tables"]),
    )
    _check(plan, document["fingerprints"], what)
    return plan


def _fingerprints(plan: Plan) -> dict[str, str]:
    return {
        "model": plan.model.fingerprint(),
        "cluster": plan.cluster.fingerprint(),
        "profile": plan.profile.fingerprint(),
        "instance": plan.instance.fingerprint,
    }


def _check(plan: Plan, claimed: Any, what: str) -> None:
    """Fingerprints match, and the tables say what the outcome says."""
    for key, actual in _fingerprints(plan).items():
        if not isinstance(claimed, dict) or claimed.get(key) != actual:
            raise BadInput(
                f"{what}: {key} does not match its fingerprint: the file was changed, or written "
                f"by a version of milp-planner in which a {key} had other fields"
            )
    placement = plan.outcome.placement
    names = plan.instance.option_names
    chosen = [] if placement is None else [names[int(o)] for o in placement.options]
    ranks = [] if placement is None else [placement.to_lists(t) for t in range(len(chosen))]
    told = [(t.name, t.option, [list(block) for block in t.ranks]) for t in plan.tables]
    if told != list(zip(plan.instance.table_names, chosen, ranks, strict=bool(chosen))):
        raise BadInput(f"{what}: tables do not say what its outcome says: the file was changed")


def _packed(part: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(part, separators=(",", ":"))
    if len(text) <= LARGE:
        return part
    data = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    return {"encoding": _ENCODING, "data": data}


def _unpacked(part: Any, what: str) -> Any:
    if not isinstance(part, dict) or "encoding" not in part:
        return part
    if part["encoding"] != _ENCODING or not isinstance(part.get("data"), str):
        raise BadInput(f"{what}: encoding must be {_ENCODING!r} with its data as text")
    try:
        return json.loads(gzip.decompress(base64.b64decode(part["data"], validate=True)))
    except (binascii.Error, OSError, EOFError, ValueError) as error:
        raise BadInput(f"{what}: the compressed part is damaged ({error})") from None
