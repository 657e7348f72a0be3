"""Turn "why does nothing fit?" into Instances that any formulation can solve.

Each function takes the document of an Instance (see :mod:`formulations.instance_file`) and
returns the document of another whose optimum is the answer.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

Document = dict[str, Any]

#: Name of the option that leaves a table out, and prefix of the tables that lend capacity.
DROPPED = "(dropped)"
LENT = "(capacity) "


def without_costs(document: Document, phase: str) -> Document:
    """The same placements, all free, under the objective ``total`` with one phase."""
    result = _copy(document)
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


def use_as_cost(
    document: Document, resources: Sequence[str], objective: str = "busiest_rank"
) -> Document:
    """Minimise the use of the first of some resources, all their capacities lifted.

    With ``busiest_rank`` the optimum is the fullest rank, with ``total`` the use of all places
    together.
    """
    result = _copy(document)
    result.update(phases=[resources[0]], objective=objective)
    result["resources"] = [r for r in result["resources"] if r["name"] not in resources]
    for shard in _shards(result):
        use = shard.get("use", {})
        shard["cost"] = [use.get(resources[0], 0)]
        for name in resources:
            use.pop(name, None)
    return result


def with_capacity(document: Document, resources: Collection[str], capacity: int) -> Document:
    """Every place of some resources has this capacity."""
    changed = [
        {**r, "capacity": capacity if r["scope"] == "cluster" else [capacity] * len(r["capacity"])}
        if r["name"] in resources
        else r
        for r in document["resources"]
    ]
    return {**document, "resources": changed}


def lendable(document: Document, resources: Sequence[str], most: int) -> Document:
    """Minimise the uniform capacity of resources of one scope, up to ``most``.

    Every place gets a capacity of 2^k − 1 ≥ ``most``; for each power of two below, one more table
    either takes that much away at every place (free) or leaves it (at that cost). The optimum is
    the least uniform capacity, exactly.
    """
    bits = max(1, most.bit_length())
    result = with_capacity(without_costs(document, resources[0]), resources, 2**bits - 1)
    scope = next(r["scope"] for r in result["resources"] if r["name"] == resources[0])
    where = {
        "rank": list(range(result["ranks"])),
        "machine": [m[0] for m in result["machines"]],
        "cluster": "cluster",
    }[scope]
    for bit in reversed(range(bits)):
        use = dict.fromkeys(resources, 2**bit)
        taken = {"where": where, "shards": [{"use": use, "cost": [0]}]}
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
    result = _copy(document)
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


def _copy(document: Document) -> Document:
    """A deep copy; through JSON, which is several times faster than :mod:`copy`."""
    copied: Document = json.loads(json.dumps(document))
    return copied


def _shards(document: Document) -> list[dict[str, Any]]:
    return [
        shard
        for table in document["tables"]
        for option in table["options"]
        for block in option["blocks"]
        for shard in block["shards"]
    ]
