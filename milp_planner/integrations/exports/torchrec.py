"""TorchRec's ShardingPlan as JSON, for the TorchRec tables of a plan; no TorchRec needed.

The names are those of ``ShardingPlan._serialize`` of TorchRec 1.8.0 (``plan`` → module path →
table → ``sharding_type``, ``compute_kernel``, ``ranks``, ``shards``), with ``cache_load_factor``
added. :mod:`milp_planner.integrations.torchrec.sharding_plan` turns it into the object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from milp_planner.errors import BadInput
from milp_planner.files import json_text
from milp_planner.inputs.files import read_json
from milp_planner.inputs.model import Model
from milp_planner.inputs.problems import one_of
from milp_planner.inputs.table import PinSpec, Table
from milp_planner.integrations.exports import known, pin, proper_ratio
from milp_planner.plans.placement import PlacedTable, Plan
from milp_planner.pricing.options import BY_COLUMN, MODE_OF_KERNEL, SHARDING_TYPES, TIERED

FORMAT = "milp-planner-torchrec/1"


def document(plan: Plan, modules: Mapping[str, str] | str = "") -> dict[str, Any]:
    """The plan's TorchRec tables as JSON values.

    ``modules`` are paths of the modules that hold the tables inside the model given to
    ``DistributedModelParallel``: one for all, or one per table.
    """
    placed = [table for table in plan.tables if table.kind == "torchrec"]
    paths = {
        t.name: modules if isinstance(modules, str) else modules.get(t.name, "") for t in placed
    }
    by_module: dict[str, dict[str, Any]] = {path: {} for path in paths.values()}
    for table in placed:
        by_module[paths[table.name]][table.name] = _entry(plan, table)
    hosts = plan.cluster.machine_ranks
    return {
        "format": FORMAT,
        "world_size": plan.cluster.num_ranks,
        "local_world_size": len(hosts[0]),
        "compute_device": _device(plan),
        "plan": by_module,
        "left_to_dynamicemb": [t.name for t in plan.tables if t.kind == "dynamicemb"],
    }


def write(plan: Plan) -> str:
    """The document as indented JSON."""
    return json_text(document(plan))


def notes(plan: Plan) -> list[str]:
    """What the ShardingPlan does not hold."""
    dynamic = [table.name for table in plan.tables if table.kind == "dynamicemb"]
    if not dynamic:
        return []
    return [f"{len(dynamic)} dynamicemb tables are left to the export dynamicemb"]


def read(text: str, model: Model) -> dict[str, PinSpec]:
    """What such a JSON text fixes: sharding type, mode, load factor, column width and ranks.

    BadInput for text that is no such document, tables the model does not have, TorchRec tables it
    misses, and shards that do not cover their table.
    """
    pins: dict[str, PinSpec] = {}
    for module, name, entry in entries(text):
        table = known(model, name, "plan")
        if name in pins:
            raise BadInput(f"plan: table {name!r} is in two modules, the second is {module!r}")
        pins[name] = _pin(table, entry)
    return pins


def entries(text: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Module path, table and entry of everything that such a JSON text holds."""
    for module, tables in _parse(text)["plan"].items():
        if not isinstance(tables, dict):
            raise BadInput(f"plan: module {module!r} must hold tables by name")
        for name, entry in tables.items():
            if not isinstance(entry, dict):
                raise BadInput(f"plan: table {name!r} must be a mapping")
            yield module, name, entry


def _parse(text: str) -> dict[str, Any]:
    """The document, its head checked."""
    found = read_json(text, "ShardingPlan").data
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise BadInput(f"not a ShardingPlan file: its format must be {FORMAT!r}")
    if not isinstance(found.get("plan"), dict):
        raise BadInput("plan: must hold modules by path")
    for key in ("world_size", "local_world_size"):
        if not isinstance(found.get(key), int) or found[key] < 1:
            raise BadInput(f"{key}: found {found.get(key)!r}; allowed: a whole number from 1")
    one_of(found.get("compute_device"), ("cuda", "cpu", "mtia"), "compute_device")
    return found


def _device(plan: Plan) -> str:
    return "cpu" if plan.cluster.cpu_only else "cuda"


def _entry(plan: Plan, placed: PlacedTable) -> dict[str, Any]:
    shards = plan.shards(placed.name)
    entry: dict[str, Any] = {
        "sharding_type": placed.sharding_type,
        "compute_kernel": placed.kernel,
        "ranks": [shard.rank for shard in shards],
        "cache_load_factor": float(placed.cache_ratio) if placed.mode in TIERED else None,
    }
    if placed.sharding_type == "data_parallel":
        return entry
    local = {rank: i for host in plan.cluster.machine_ranks for i, rank in enumerate(host)}
    device = _device(plan)
    entry["shards"] = []
    for shard in shards:
        assert shard.rows is not None, "TorchRec tables have contiguous rows"
        (top, bottom), (left, right) = shard.rows, shard.columns
        where = "cpu" if device == "cpu" else f"{device}:{local[shard.rank]}"
        entry["shards"].append(
            {
                "shard_offsets": [top, left],
                "shard_sizes": [bottom - top, right - left],
                "placement": f"rank:{shard.rank}/{where}",
            }
        )
    return entry


def _pin(table: Table, entry: dict[str, Any]) -> PinSpec:
    where = f"table {table.name!r}"
    kind = one_of(entry.get("sharding_type"), SHARDING_TYPES, f"{where}: sharding_type")
    mode = one_of(entry.get("compute_kernel"), MODE_OF_KERNEL, f"{where}: compute_kernel")
    ranks = entry.get("ranks")
    if not isinstance(ranks, list) or not all(type(r) is int and r >= 0 for r in ranks):
        raise BadInput(f"{where}: ranks must be a list of whole numbers from 0")
    shards = _shards(table, entry, kind, len(ranks))
    factor = entry.get("cache_load_factor")
    if mode == "CACHING" and factor is None:
        raise BadInput(f"{where}: fused_uvm_caching needs its cache_load_factor")
    ratio = proper_ratio(factor, f"{where}: cache_load_factor") if mode == "CACHING" else None
    widths = [columns for _, columns in shards]
    return pin(
        where,
        mode=mode,
        sharding_type=kind,
        cache_ratio=None if ratio is None else Fraction(ratio).limit_denominator(100),
        column_width=max(widths) if kind in BY_COLUMN and min(widths) < table.dim else None,
        ranks=tuple(ranks),
    )


def _shards(table: Table, entry: dict[str, Any], kind: str, ranks: int) -> list[list[int]]:
    """Sizes of the shards; they must cover the table, one per rank listed."""
    where = f"table {table.name!r}"
    if kind == "data_parallel":
        return [[table.rows, table.dim]]
    shards = entry.get("shards")
    if not isinstance(shards, list) or len(shards) != ranks:
        raise BadInput(f"{where}: shards must list one shard for each of its {ranks} ranks")
    sizes = []
    for shard in shards:
        size = shard.get("shard_sizes") if isinstance(shard, dict) else None
        if not isinstance(size, list) or [type(part) for part in size] != [int, int]:
            raise BadInput(f"{where}: a shard's shard_sizes must be [rows, columns]")
        sizes.append(size)
    covered = sum(rows * columns for rows, columns in sizes)
    if covered != table.rows * table.dim:
        raise BadInput(
            f"{where}: its shards hold {covered} elements, the table {table.rows * table.dim}"
        )
    return sizes
