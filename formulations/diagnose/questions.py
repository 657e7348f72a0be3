"""Turn "why does nothing fit?" into Instances that any formulation can solve.

Each function takes the document of an Instance (see :mod:`formulations.instance_file`) and
returns the document of another whose optimum is the answer.
"""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Any

Document = dict[str, Any]

#: Name of the option that leaves a table out, and prefix of the tables that lend capacity.
DROPPED = "(dropped)"
LENT = "(capacity) "


def without_costs(document: Document, phase: str) -> Document:
    """The same placements, all free, under the objective ``total`` with one phase."""
    result = copy.deepcopy(document)
    result.update(phases=[phase], objective="total")
    for shard in _shards(result):
        shard["cost"] = [0]
    return result


def droppable(document: Document) -> Document:
    """Every table may be left out at cost 1: the optimum is the fewest tables to drop.

    A pinned table stays: a pin says that it must be placed there.
    """
    result = without_costs(document, "dropped tables")
    for table in result["tables"]:
        block = {"where": "cluster", "shards": [{"cost": [1]}]}
        table["options"].append({"name": DROPPED, "blocks": [block]})
    return result


def use_as_cost(document: Document, resource: str) -> Document:
    """Minimise the fullest rank of a rank resource, its capacity lifted, all others kept."""
    result = copy.deepcopy(document)
    result.update(phases=[resource], objective="busiest_rank")
    result["resources"] = [r for r in result["resources"] if r["name"] != resource]
    for shard in _shards(result):
        shard["cost"] = [shard.get("use", {}).pop(resource, 0)]
    return result


def lendable(document: Document, resource: str, most: int) -> Document:
    """Minimise the uniform capacity of a resource of any scope, up to ``most``.

    Every place gets a capacity of 2^k − 1 ≥ ``most``; for each power of two below, one more table
    either takes that much away at every place (free) or leaves it (at that cost). The optimum is
    the least uniform capacity, exactly.
    """
    result = without_costs(document, resource)
    bits = max(1, most.bit_length())
    lifted = next(r for r in result["resources"] if r["name"] == resource)
    scope = lifted["scope"]
    places = len(lifted["capacity"]) if scope != "cluster" else 1
    lifted["capacity"] = 2**bits - 1 if scope == "cluster" else [2**bits - 1] * places
    where = {
        "rank": list(range(result["ranks"])),
        "machine": [m[0] for m in result["machines"]],
        "cluster": "cluster",
    }[scope]
    for bit in reversed(range(bits)):
        taken = {"where": where, "shards": [{"use": {resource: 2**bit}, "cost": [0]}]}
        left = {"where": "cluster", "shards": [{"cost": [2**bit]}]}
        options = [{"name": "taken", "blocks": [taken]}, {"name": "left", "blocks": [left]}]
        result["tables"].append({"name": f"{LENT}2^{bit}", "options": options})
    return result


def only(document: Document, tables: Collection[str]) -> Document:
    """The instance restricted to some tables (constraints on the others fall away)."""
    keep = set(tables)
    result = {**document, "tables": [t for t in document["tables"] if t["name"] in keep]}
    for key in ("pins", "forbidden"):
        if key in document:
            result[key] = [item for item in document[key] if item["table"] in keep]
    if "current" in document:
        result["current"] = {n: c for n, c in document["current"].items() if n in keep}
        if not result["current"]:
            for key in ("current", "max_moved_tables", "max_moved_bytes"):
                result.pop(key, None)
    return result


def lift(document: Document, constraint: str) -> Document:
    """The instance without one constraint: a resource by name, or a family of constraints.

    Parameters
    ----------
    document : dict
    constraint : str
        A resource's name, ``fusion``, ``pins``, ``forbidden`` or ``moves``.
    """
    result = copy.deepcopy(document)
    if constraint in ("pins", "forbidden"):
        result.pop(constraint, None)
    elif constraint == "moves":
        for key in ("current", "max_moved_tables", "max_moved_bytes"):
            result.pop(key, None)
    elif constraint == "fusion":
        for table in result["tables"]:
            for option in table["options"]:
                option.pop("fusion", None)
    else:
        result["resources"] = [r for r in result["resources"] if r["name"] != constraint]
        for shard in _shards(result):
            shard.get("use", {}).pop(constraint, None)
    return result


def constraints_of(document: Document) -> list[str]:
    """Names that :func:`lift` accepts for this instance, resources first."""
    names = [r["name"] for r in document["resources"]]
    fused = any("fusion" in o for t in document["tables"] for o in t["options"])
    names += ["fusion"] if fused else []
    names += [key for key in ("pins", "forbidden") if document.get(key)]
    if "max_moved_tables" in document or "max_moved_bytes" in document:
        names.append("moves")
    return names


def _shards(document: Document) -> list[dict[str, Any]]:
    return [
        shard
        for table in document["tables"]
        for option in table["options"]
        for block in option["blocks"]
        for shard in block["shards"]
    ]
