"""plan.json: a Plan, with everything that verify, explain, export and report need."""

from __future__ import annotations

import base64
import binascii
import gzip
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from formulations.instance import Instance, strict_json
from formulations.instance.file import instance_from_dict, instance_to_dict
from formulations.instance.strict_json import Reader, shown
from formulations.result.outcome_file import outcome_from_dict, outcome_to_dict
from formulations.runtime.collector import uncollected
from milp_planner.errors import BadInput
from milp_planner.files import write_json
from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.model import Model
from milp_planner.inputs.problems import one_of
from milp_planner.inputs.spec import fingerprint_of
from milp_planner.plans.divisions import divisions_from_dict, divisions_to_dict
from milp_planner.plans.ledger import ledger_of
from milp_planner.plans.live import RUNTIMES
from milp_planner.plans.moving import moved_of, moving_from_dict, moving_to_dict
from milp_planner.plans.origins import origins_of
from milp_planner.plans.placement import PlacedTable, Plan, placed_tables
from milp_planner.pricing.profile import Profile
from milp_planner.version import __version__

FORMAT = "milp-planner-plan/1"
LARGE_CHARACTERS = 1_000_000
"""Parts whose JSON text is longer than this are compressed."""
_ENCODING = "json+gzip+base64"
_PARTS = ("model", "cluster", "profile", "instance", "outcome")
_EXTRAS = {"ledger", "origins", "moves", "moving", "divisions", "executable"}
_FIELDS = {"format", "version", "tables", "fingerprints", *_EXTRAS, *_PARTS}


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """The document of a plan: JSON values only, the same text for the same plan.

    ``model``, ``cluster``, ``profile``, ``instance`` and ``outcome`` are embedded as they are, or
    as ``{"encoding", "data"}`` if large; ``fingerprints`` holds SHA-256 of the first four.
    ``version`` names the release that priced the plan, ``ledger`` lists the memory of every rank
    and machine, ``origins`` says where their seconds and bytes come from, and ``moves`` lists the
    moves from an earlier plan, if any; these four are for people, no reader depends on them.
    ``moving`` is present if moves had a price, ``divisions`` if others were tried, ``executable``
    if only moves that a runtime executes were allowed.
    """
    ledger, moved, moving, others = ledger_of(plan), moved_of(plan), plan.moving, plan.divisions
    origins = origins_of(plan, ledger)
    return {
        "format": FORMAT,
        "version": plan.version,
        "fingerprints": _fingerprints(plan),
        "tables": [table.to_dict() for table in plan.tables],
        "ledger": None if ledger is None else ledger.to_dict(),
        **({} if origins is None else {"origins": origins.to_dict()}),
        **({} if moved is None else {"moves": moved.to_dict()}),
        "model": _packed(plan.model.to_dict()),
        "cluster": _packed(plan.cluster.to_dict()),
        "profile": _packed(plan.profile.to_dict()),
        "instance": _packed_instance(plan.instance),
        "outcome": _packed(outcome_to_dict(plan.instance, plan.outcome)),
        **({} if moving is None else {"moving": _packed(moving_to_dict(moving, plan.instance))}),
        **({} if plan.executable is None else {"executable": plan.executable}),
        **({} if others is None else {"divisions": divisions_to_dict(others, _packed)}),
    }


def plan_from_dict(document: Any, what: str = "plan") -> Plan:
    """Rebuild a plan from its document.

    Claims of the outcome are kept as written; ``verify`` judges them.

    Parameters
    ----------
    document
        Parsed JSON.
    what : str
        Name in error messages, such as the file's.

    Raises
    ------
    BadInput
        If it is not a plan, or a part is missing or damaged, does not match its fingerprint or
        contradicts the other parts.
    InstanceError
        If its Instance or Outcome is malformed.
    """
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        found = document.get("format") if isinstance(document, dict) else type(document).__name__
        if isinstance(document, dict) and is_plan(document):
            raise BadInput(
                f"{what}: a plan of format {found!r}, of a newer milp-planner; this one "
                f"({__version__}) reads {FORMAT!r}"
            )
        raise BadInput(f"{what}: format is {found!r}; allowed: {FORMAT!r} (a plan.json)")
    for key in ("tables", "fingerprints", *_PARTS):
        if key not in document:
            raise BadInput(f"{what}: the field {key!r} is missing; a plan.json has it")
    top = Reader(document, what, _FIELDS)  # refuses other fields
    Reader(document["fingerprints"], f"{what}: fingerprints", _PARTS[:4])
    if not isinstance(document["tables"], list):
        raise BadInput(f"{what}: tables must be a list of placed tables")
    part = {key: unpacked(document[key], f"{what}: {key}") for key in _PARTS}
    instance = instance_from_dict(part["instance"], f"{what}: instance")
    _check_fingerprints(document, part, instance, what)
    cluster = Cluster.from_dict(part["cluster"], f"{what}: cluster")
    moving, divisions, executable = None, None, document.get("executable")
    if "moving" in document:
        stored = unpacked(document["moving"], f"{what}: moving")
        moving = moving_from_dict(stored, instance, f"{what}: moving")
    if "divisions" in document:
        divisions = divisions_from_dict(
            document["divisions"], cluster, unpacked, f"{what}: divisions"
        )
    if executable is not None:
        one_of(executable, RUNTIMES, f"{what}: executable")
    plan = Plan(
        model=Model.from_dict(part["model"], f"{what}: model"),
        cluster=cluster,
        profile=Profile.from_dict(part["profile"], f"{what}: profile"),
        instance=instance,
        outcome=outcome_from_dict(instance, part["outcome"], f"{what}: outcome"),
        tables=tuple(PlacedTable.from_dict(t, f"{what}: tables") for t in document["tables"]),
        version=top.get("version", str, ""),
        divisions=divisions,
        moving=moving,
        executable=executable,
    )
    _check(plan, what)
    return plan


def _fingerprints(plan: Plan) -> dict[str, str]:
    return {
        "model": plan.model.fingerprint(),
        "cluster": plan.cluster.fingerprint(),
        "profile": plan.profile.fingerprint(),
        "instance": plan.instance.fingerprint,
    }


def _check_fingerprints(
    document: dict[str, Any], part: dict[str, Any], instance: Instance, what: str
) -> None:
    """Check the fingerprints.

    Fingerprints of inputs are computed from the text in the file, because an earlier version wrote
    fewer fields, and the others now have their defaults.
    """
    written = {key: fingerprint_of(part[key]) for key in _PARTS[:3]}
    for key, actual in {**written, "instance": instance.fingerprint}.items():
        if document["fingerprints"].get(key) != actual:
            raise BadInput(
                f"{what}: {key} does not match its fingerprint: the file was changed, or its "
                f"milp-planner ({document.get('version', 'not stated')}; this is {__version__}) "
                "wrote another one; plan again"
            )


def _check(plan: Plan, what: str) -> None:
    """Check that ``tables`` agrees with the outcome."""
    if plan.instance.time_unit != "ps":
        raise BadInput(f"{what}: instance: time_unit is not ps, which every plan has")
    names = [table.name for table in plan.model.tables]
    if list(plan.instance.table_names) != names:
        raise BadInput(f"{what}: its instance has other tables than its model")
    try:
        again = placed_tables(plan.model, plan.cluster, plan.instance, plan.outcome.placement)
    except BadInput as error:
        raise BadInput(f"{what}: {error}: the file was changed") from None
    if plan.tables != again:
        raise BadInput(
            f"{what}: tables contradict its outcome: {_difference(plan.tables, again)}: "
            "the file was changed"
        )


def _difference(stored: tuple[PlacedTable, ...], again: tuple[PlacedTable, ...]) -> str:
    """The first difference between ``tables`` and those derived from outcome, model and cluster."""
    if len(stored) != len(again):
        return f"there are {len(stored)}, it places {len(again)}"
    one, other = next((a, b) for a, b in zip(stored, again, strict=True) if a != b)
    mine, derived = one.to_dict(), other.to_dict()
    field = next(key for key in {**derived, **mine} if mine.get(key) != derived.get(key))
    found, wanted = shown(mine.get(field)), shown(derived.get(field))
    return f"{field} of {other.name!r} is {found}, derived: {wanted}"


@lru_cache(maxsize=1)
def _packed_instance(instance: Instance) -> dict[str, Any]:
    """Cached for further plans of the same Instance, such as the steps to a plan."""
    return _packed(instance_to_dict(instance))


def _packed(part: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(part, separators=(",", ":"))
    if len(text) <= LARGE_CHARACTERS:
        return part
    data = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    return {"encoding": _ENCODING, "data": data}


def unpacked(part: Any, what: str) -> Any:
    if not isinstance(part, dict) or "encoding" not in part:
        return part
    packed = set(part) == {"encoding", "data"} and part["encoding"] == _ENCODING
    if not packed or not isinstance(part["data"], str):
        raise BadInput(
            f"{what}: encoding must be {_ENCODING!r}, with its data as text and no other field"
        )
    try:
        data = base64.b64decode(part["data"], validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadInput(f"{what}: the compressed part is damaged ({error})") from None
    return strict_json.parse(strict_json.unpack(data, what), what)


def read_document(path: str | Path) -> dict[str, Any]:
    """A JSON document, plain or gzipped, parsed strictly.

    Raises
    ------
    BadInput
        If it is not a JSON object.
    InstanceError
        If the file cannot be read or parsed.
    """
    document = strict_json.parse(strict_json.read_bytes(Path(path)), str(path))
    if not isinstance(document, dict):
        raise BadInput(f"{path}: needs a JSON object, found a {type(document).__name__}")
    return document


def is_plan(document: dict[str, Any]) -> bool:
    """Whether a document has the format of a plan, of whatever version."""
    return str(document.get("format")).rpartition("/")[0] == FORMAT.rpartition("/")[0]


@uncollected()
def read_plan(path: str | Path) -> Plan:
    """Read a plan.json; :func:`milp_planner.verify` judges its claims.

    Raises
    ------
    BadInput, InstanceError
        If it is not a plan, or a part of it is malformed.
    """
    return plan_from_dict(read_document(path), str(path))


@uncollected()
def write_plan(plan: Plan, path: str | Path) -> Path:
    """Write a plan.json, completely or not at all."""
    return write_json(path, plan_to_dict(plan))
