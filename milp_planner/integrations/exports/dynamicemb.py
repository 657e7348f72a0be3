"""dynamicemb's table options for the dynamicemb tables of a plan, one set per fusion group.

The runtime fuses tables with equal grouped keys and gives all of them the share s = Σ
``local_hbm_for_values`` / Σ value bytes; so the bytes written for each table are the plan's ratio
of ``max_capacity`` rows, and every group gets the plan's share.

References
----------
NVIDIA/recsys-examples, ``corelib/dynamicemb``: ``DynamicEmbTableOptions``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from milp_planner.errors import BadInput
from milp_planner.files import json_text
from milp_planner.inputs.constraints import PinSpec
from milp_planner.inputs.files import read_json
from milp_planner.inputs.model import Model
from milp_planner.inputs.problems import one_of
from milp_planner.inputs.quantities import FINEST_RATIO
from milp_planner.inputs.table import Table
from milp_planner.integrations.exports import known, pin_of_share
from milp_planner.integrations.exports.torchrec import built, sharders
from milp_planner.plans.ledger import stores_of
from milp_planner.plans.placement import PlacedTable, Plan
from milp_planner.pricing.storage import runtime_value_bytes

FORMAT = "milp-planner-dynamicemb/1"
DIST_TYPES = ("continuous", "roundrobin", "hash_roundrobin")
"""Routing rules of dynamicemb, without this project's additional rule."""


def document(plan: Plan) -> dict[str, Any]:
    """The plan's dynamicemb tables as JSON; BadInput for a routing rule that dynamicemb lacks."""
    placed = [table for table in plan.tables if table.kind == "dynamicemb"]
    groups: dict[str, list[PlacedTable]] = {}
    for table in placed:
        groups.setdefault(table.fusion_group or f"{table.name} (alone)", []).append(table)
    return {
        "format": FORMAT,
        "world_size": plan.cluster.num_ranks,
        **sharders(plan.model.workload),
        "groups": [_group(name, tables) for name, tables in groups.items()],
        "tables": {t.name: _entry(plan, t) for t in placed},
        "left_to_torchrec": [t.name for t in plan.tables if t.kind == "torchrec"],
    }


def write(plan: Plan) -> str:
    """The document as indented JSON."""
    return json_text(document(plan))


def notes(plan: Plan) -> list[str]:
    """Sentences about what the table options do not hold."""
    found = []
    static = [table.name for table in plan.tables if table.kind == "torchrec"]
    if static:
        found.append(f"{len(static)} TorchRec tables are left to the export torchrec")
    admitted = [t.name for t in plan.model.tables if t.admit_strategy and t.kind == "dynamicemb"]
    if admitted:
        found.append(f"admission strategies are named, not built: {', '.join(admitted)}")
    if stores := stores_of(plan):
        found.append(f"external stores are named, not built: {', '.join(stores)}")
    return found


def read(text: str, model: Model) -> dict[str, PinSpec]:
    """Pins that such a JSON text fixes: mode, cache ratio and routing rule.

    BadInput for text that is no such document, unknown or TorchRec tables, options that the runtime
    refuses, and tables that would fuse although their shares of HBM differ.
    """
    found = _parse(text)
    world = found["world_size"]
    shares: dict[tuple[object, ...], tuple[Fraction, str]] = {}
    pins: dict[str, PinSpec] = {}
    for name, entry in found["tables"].items():
        table = known(model, name, "tables")
        if table.kind != "dynamicemb":
            raise BadInput(f"table {name!r} is a TorchRec table of the model, not of dynamicemb")
        options = entry.get("dynamicemb_options") if isinstance(entry, dict) else None
        if not isinstance(options, dict):
            raise BadInput(f"table {name!r}: dynamicemb_options must be a mapping")
        share = _share(table, options, model, world)
        first, whose = shares.setdefault(_grouped_key(table, options), (share, name))
        if first != share:
            raise BadInput(
                f"tables {whose!r} and {name!r} fuse, so the runtime gives both one share of HBM, "
                f"but theirs are {first} and {share}"
            )
        pins[name] = _pin(table, options, share)
    return pins


def workload(text: str, model: Model) -> dict[str, Any]:
    """Fields of the workload that the document states: exchange and deduplication."""
    return built(_parse(text))


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
            **_init(table, plan.cluster.num_ranks),
            "bucket_capacity": table.bucket_capacity,
            "dist_type": placed.dist_type,
            "dim": table.dim,
            "embedding_dtype": table.dtype,
            "index_type": table.index_type,
            "score_strategy": _strategy(table),
            "training": plan.model.workload.trains,
            "external_storage": table.external_storage,
            "admit_strategy": table.admit_strategy,
            "admission_capacity": table.admission_capacity,
            "admission_bucket_capacity": table.admission_bucket_capacity,
        },
    }


def _init(table: Table, ranks: int) -> dict[str, Any]:
    """Slots of a rank at first, in whole buckets, for a table that grows."""
    if table.init_capacity is None:
        return {}
    room = -(-table.init_capacity // ranks)
    return {"init_capacity": -(-room // table.bucket_capacity) * table.bucket_capacity}


def _strategy(table: Table) -> str | list[str]:
    """dynamicemb's name of the score strategy; a list of two for its tuple."""
    names = table.score_strategy.upper().split("+")
    return names[0] if len(names) == 1 else names


def _caching(placed: PlacedTable) -> bool:
    return placed.mode == "CACHING" if placed.fusion_caching is None else placed.fusion_caching


def _parse(text: str) -> dict[str, Any]:
    found = read_json(text, "dynamicemb options").data
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise BadInput(f"not dynamicemb table options: the format must be {FORMAT!r}")
    if not isinstance(found.get("tables"), dict):
        raise BadInput("tables: must hold table options by name")
    if not isinstance(found.get("world_size"), int) or found["world_size"] < 1:
        raise BadInput(f"world_size: found {found.get('world_size')!r}; allowed: from 1")
    return found


def _share(table: Table, options: dict[str, Any], model: Model, world: int) -> Fraction:
    """The table's share s of values in HBM, with the rounding up to whole bytes undone."""
    where = f"table {table.name!r}"
    capacity, local = options.get("max_capacity"), options.get("local_hbm_for_values")
    for key, value in (("max_capacity", capacity), ("local_hbm_for_values", local)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise BadInput(f"{where}: {key} is {value!r}; allowed: a whole number from 0")
    assert isinstance(capacity, int) and isinstance(local, int)
    if capacity * world < table.rows:
        raise BadInput(
            f"{where}: max_capacity {capacity} on {world} ranks holds fewer than its "
            f"{table.rows} rows"
        )
    row = runtime_value_bytes(table.dim, table.element_bytes, model.optimizer_of(table))
    total = capacity * row
    if local >= total:
        return Fraction(1)
    share = Fraction(local, total).limit_denominator(FINEST_RATIO)
    return share if math.ceil(total * share) == local else Fraction(local, total)


def _pin(table: Table, options: dict[str, Any], share: Fraction) -> PinSpec:
    where = f"table {table.name!r}"
    caching = options.get("caching")
    if not isinstance(caching, bool):
        raise BadInput(f"{where}: caching is {caching!r}; allowed: true, false")
    dist = one_of(options.get("dist_type", "roundrobin"), DIST_TYPES, f"{where}: dist_type")
    if share.denominator > FINEST_RATIO:
        raise BadInput(f"{where}: its share of HBM {share} is finer than 1/{FINEST_RATIO}")
    if share == 0 and caching:
        raise BadInput(f"{where}: caching needs local_hbm_for_values above 0")
    return pin_of_share(table, share, caching, dist_type=dist)


def _grouped_key(table: Table, options: dict[str, Any]) -> tuple[object, ...]:
    """The values that must agree for two tables to fuse."""
    names = ("caching", "dist_type", "index_type", "score_strategy", "external_storage")
    more = ("admit_strategy", "training")
    return (
        *(repr(options.get(name)) for name in (*names, *more)),
        table.dim, table.dtype, table.optimizer, table.output, table.weighted,
    )  # fmt: skip
