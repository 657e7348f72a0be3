"""dynamicemb's table options for the dynamicemb tables of a plan, one set per fusion group.

The runtime fuses tables with equal grouped keys and gives all of them the share
s = Σ ``local_hbm_for_values`` / Σ value bytes; so the bytes written here are, table by table, the
plan's ratio of ``max_capacity`` rows, and the share of every group is the plan's again.

References
----------
NVIDIA/recsys-examples, ``corelib/dynamicemb``: ``DynamicEmbTableOptions``.
"""

from __future__ import annotations

from typing import Any

from milp_planner.errors import BadInput
from milp_planner.files import json_text
from milp_planner.plans.placement import PlacedTable, Plan

FORMAT = "milp-planner-dynamicemb/1"
DIST_TYPES = ("continuous", "roundrobin", "hash_roundrobin")
"""Routing rules that dynamicemb has; this project's own further rule is not among them."""


def document(plan: Plan) -> dict[str, Any]:
    """The plan's dynamicemb tables as JSON values.

    Raises
    ------
    BadInput
        For a routing rule that dynamicemb does not have.
    """
    placed = [table for table in plan.tables if table.kind == "dynamicemb"]
    groups: dict[str, list[PlacedTable]] = {}
    for table in placed:
        groups.setdefault(table.fusion_group or f"{table.name} (alone)", []).append(table)
    return {
        "format": FORMAT,
        "world_size": plan.cluster.num_ranks,
        "groups": [_group(name, tables) for name, tables in groups.items()],
        "tables": {t.name: _entry(plan, t) for t in placed},
        "left_to_torchrec": [t.name for t in plan.tables if t.kind == "torchrec"],
    }


def write(plan: Plan) -> str:
    """The document as indented JSON."""
    return json_text(document(plan))


def notes(plan: Plan) -> list[str]:
    """What the table options do not hold."""
    found = []
    static = [table.name for table in plan.tables if table.kind == "torchrec"]
    if static:
        found.append(f"{len(static)} TorchRec tables are left to the export torchrec")
    admitted = [t.name for t in plan.model.tables if t.admit_strategy and t.kind == "dynamicemb"]
    if admitted:
        found.append(f"admission strategies are named, not built: {', '.join(admitted)}")
    return found


def _group(name: str, tables: list[PlacedTable]) -> dict[str, Any]:
    return {
        "name": name,
        "caching": _caching(tables[0]),
        "cache_ratio": str(tables[0].cache_ratio),
        "local_hbm_for_values": sum(t.hbm_for_values or 0 for t in tables),
        "tables": [t.name for t in tables],
    }


def _entry(plan: Plan, placed: PlacedTable) -> dict[str, Any]:
    table = plan.model.table(placed.name)
    if placed.dist_type not in DIST_TYPES:
        raise BadInput(
            f"table {placed.name!r} is routed by {placed.dist_type}, which dynamicemb does not "
            f"have; allowed: {', '.join(DIST_TYPES)}"
        )
    local = placed.hbm_for_values or 0
    return {
        "use_dynamicemb": True,
        "sharding_types": [placed.sharding_type],
        "dynamicemb_options": {
            "caching": _caching(placed),
            "local_hbm_for_values": local,
            "global_hbm_for_values": local * plan.cluster.num_ranks,
            "max_capacity": placed.capacity_per_rank,
            "bucket_capacity": table.bucket_capacity,
            "dist_type": placed.dist_type,
            "dim": table.dim,
            "embedding_dtype": table.dtype,
            "index_type": table.index_type,
            "score_strategy": table.score_strategy.upper(),
            "training": plan.model.workload.trains,
            "external_storage": table.external_storage,
            "admit_strategy": table.admit_strategy,
            "admission_capacity": table.admission_capacity,
            "admission_bucket_capacity": table.admission_bucket_capacity,
        },
    }


def _caching(placed: PlacedTable) -> bool:
    return placed.mode == "CACHING" if placed.fusion_caching is None else placed.fusion_caching
