"""The JSON schema of plan.json, for whoever reads plans in another language.

``python -m docs.generate.plan_schema docs/schemas/plan.schema.json`` writes it
anew; the classes stay the judge.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pydantic.json_schema import models_json_schema

from formulations import Status, StoppedBy
from milp_planner.files import write_json
from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.model import Model
from milp_planner.plans.placement import PlacedTable
from milp_planner.plans.plan_file import FORMAT
from milp_planner.pricing.profile import Profile

_NULLABLE = ["integer", "null"]


def plan_schema() -> dict[str, Any]:
    """The schema (JSON schema 2020-12) of what ``plan -o`` writes and ``export`` reads.

    Model, cluster and profile are described in full; the Instance and the Outcome by what every
    one of them has (their own pages and ``instance.schema.json`` say the rest). A large part is
    embedded compressed.
    """
    parts = [(cls, "serialization") for cls in (Model, Cluster, Profile, PlacedTable)]
    refs, shared = models_json_schema(parts, by_alias=True)  # type: ignore[arg-type]
    model, cluster, profile, table = (refs[part] for part in parts)  # type: ignore[index]
    embedded = {
        "model": model,
        "cluster": cluster,
        "profile": profile,
        "instance": {"$ref": "#/$defs/Instance"},
        "outcome": {"$ref": "#/$defs/Outcome"},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": FORMAT,
        "title": "milp-planner plan",
        "description": "A placement of every table, with everything that verifies and explains it.",
        "type": "object",
        "required": ["format", "fingerprints", "tables", *embedded],
        "properties": {
            "format": {"const": FORMAT},
            "version": {"description": "The milp-planner that priced it.", "type": "string"},
            "fingerprints": {"$ref": "#/$defs/Fingerprints"},
            "tables": {"type": "array", "items": table},
            "ledger": {
                "description": "What fills every rank and machine, entry by entry, in bytes; for "
                "people, and null where it is not known.",
                "type": ["object", "null"],
            },
            "origins": {
                "description": "Where each rank's seconds and bytes come from; for people.",
                "type": "object",
            },
            "moves": {
                "description": "What moves from the plan that it was made from: names of tables, "
                "bytes, bytes of all tables that were there, new tables, and those whose option or "
                "ranks are gone; for people.",
                "type": "object",
            },
            "divisions": {"$ref": "#/$defs/Divisions"},
            "moving": {
                "description": "Where moves had a price: picoseconds a byte, and the outcome of "
                "the instance with that price (docs/replan.md), or compressed.",
                "type": "object",
            },
            **{
                name: {"anyOf": [ref, {"$ref": "#/$defs/Packed"}]} for name, ref in embedded.items()
            },
        },
        "$defs": {**shared["$defs"], **_own()},
    }


def _own() -> dict[str, Any]:
    """Parts that no input class describes."""
    return {
        "Fingerprints": {
            "description": "SHA-256 of the parts.",
            "type": "object",
            "required": ["model", "cluster", "profile", "instance"],
            "additionalProperties": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        },
        "Divisions": {
            "description": "What was asked for of sharding groups, and all divisions but the "
            "plan's own: each with its instance and outcome, or why it was not priced.",
            "type": "object",
            "required": ["asked", "others"],
            "additionalProperties": False,
            "properties": {
                "asked": {"$ref": "#/$defs/TwoD"},
                "others": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["two_d"],
                        "properties": {
                            "two_d": {"$ref": "#/$defs/TwoD"},
                            "instance": {"type": "object"},
                            "outcome": {"type": "object"},
                            "refused": {"type": "string"},
                        },
                    },
                },
            },
        },
        "Packed": {
            "description": "JSON text, gzipped, in base64.",
            "type": "object",
            "required": ["encoding", "data"],
            "additionalProperties": False,
            "properties": {
                "encoding": {"const": "json+gzip+base64"},
                "data": {"type": "string"},
            },
        },
        "Instance": {
            "description": "See instance.schema.json.",
            "type": "object",
            "required": ["format", "ranks", "machines", "phases", "objective", "tables"],
            "properties": {"format": {"const": "milp-planner-instance/1"}},
        },
        "Outcome": {
            "description": "What a formulation answered; null, not 0, for what is unknown.",
            "type": "object",
            "required": ["status", "stopped_by", "objective", "bound", "gap", "tables"],
            "properties": {
                "status": {"enum": [status.value for status in Status]},
                "stopped_by": {"enum": [reason.value for reason in StoppedBy]},
                "objective": {"type": _NULLABLE},
                "bound": {"type": _NULLABLE},
                "certified_bound": {"type": _NULLABLE},
                "gap": {"type": ["number", "null"]},
                "tables": {"type": ["object", "null"]},
            },
        },
    }


if __name__ == "__main__":
    write_json(Path(sys.argv[1]), plan_schema())
