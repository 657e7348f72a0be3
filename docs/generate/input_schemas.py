"""JSON schemas of the two input files, for editors that complete and check as you type.

The schemas describe what people write, shorthands included; the classes stay the judge (bounds
across fields, sizes and ratios in text are only checked there). ``python -m
docs.generate.input_schemas docs/schemas`` writes them anew.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.model import Model
from milp_planner.inputs.spec import Spec

Schema = dict[str, Any]

_COUNT: Schema = {"type": "integer", "minimum": 1}
_SIZE: Schema = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}
_GRIDS: Schema = {"enum": ["tenths", "twentieths", "fiftieths", "hundredths"]}
_ONE_OR_MANY = {"Table": ("dist_types",), "Constraints": ("modes", "sharding_types")}
_RATIO_GRIDS = {"Workload": ("cache_ratios", "l1_ratios"), "Constraints": ("cache_ratios",)}


def model_schema() -> Schema:
    """The schema of a model file (JSON schema 2020-12)."""
    schema = _base(Model, "A model: workload and embedding tables")
    table = schema["$defs"]["Table"]
    del table["required"]
    table["oneOf"] = [{"required": ["name"]}, {"required": ["names"]}]
    by_reference = [
        {
            "type": "object",
            "properties": {form: {"type": "string"}},
            "required": [form],
            "additionalProperties": False,
        }
        for form in ("csv", "json")
    ]
    _widen(schema["properties"], "tables", *by_reference)
    _widen(table["properties"], "access", {"const": "unknown"})
    for name, fields in _ONE_OR_MANY.items():
        for field in fields:
            _allow_single(schema["$defs"][name]["properties"], field)
    for name, fields in _RATIO_GRIDS.items():
        for field in fields:
            _widen(schema["$defs"][name]["properties"], field, _GRIDS)
    defaults = {key: value for key, value in table["properties"].items() if key != "name"}
    table["properties"]["names"] = {
        "description": "Instead of a name: a range such as t0..t99, of as many equal tables.",
        "type": "string",
    }
    schema["properties"]["defaults"] = {
        "description": "Fields every table has unless it writes them itself.",
        "type": "object",
        "properties": defaults,
        "additionalProperties": False,
    }
    schema["properties"]["patterns"] = {
        "description": "Name patterns, and fields that tables so named have, before the defaults.",
        "type": "object",
        "additionalProperties": schema["properties"]["defaults"],
    }
    return schema


def cluster_schema() -> Schema:
    """The schema of a cluster file (JSON schema 2020-12)."""
    schema = _base(Cluster, "A cluster: machines, ranks, links, profile")
    definitions = schema["$defs"]
    schema.update(definitions.pop("Cluster"), title=schema["title"])
    del schema["$ref"], definitions["TwoD"]["properties"]["whole"]  # which nobody writes
    properties = schema["properties"]
    _widen(properties, "machines", _COUNT)
    properties["ranks_per_machine"] = {
        **_COUNT,
        "description": "Ranks of each machine, with a number of machines.",
    }
    properties["hbm"] = {**_SIZE, "description": "HBM per rank, with a number of machines."}
    properties["ddr"] = {
        **_SIZE,
        "description": "DDR per machine, with a number of machines.",
    }
    properties["ssd"] = {
        "$ref": "#/$defs/Ssd",
        "description": "SSD of each machine, with a number of machines.",
    }
    machine = schema["$defs"]["Machine"]["properties"]
    _widen(machine, "ranks", _COUNT)
    machine["hbm"] = {**_SIZE, "description": "HBM per rank, with a number of ranks."}
    return schema


def write_schemas(folder: Path) -> None:
    """Write ``model.schema.json`` and ``cluster.schema.json`` into a folder."""
    for name, schema in (("model", model_schema()), ("cluster", cluster_schema())):
        text = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        (folder / f"{name}.schema.json").write_text(text, encoding="utf-8")


def _base(cls: type[Spec], title: str) -> Schema:
    schema = cls.model_json_schema(by_alias=True, mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": title}


def _widen(properties: Schema, field: str, *alternatives: Schema) -> None:
    """Let a field also take other forms; its description stays on the outside."""
    inner = dict(properties[field])
    outer = {key: inner.pop(key) for key in ("description", "title", "default") if key in inner}
    properties[field] = {**outer, "anyOf": [inner, *alternatives]}


def _allow_single(properties: Schema, field: str) -> None:
    """Let a list field also take one of its items."""
    arrays = [properties[field], *properties[field].get("anyOf", [])]
    items = next(each["items"] for each in arrays if "items" in each)
    _widen(properties, field, items)


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]))
