"""TorchRec's ShardingPlan as JSON, for the TorchRec tables of a plan; no TorchRec needed.

The names are those of ``ShardingPlan._serialize`` of TorchRec 1.8.0 (``plan`` → module path →
table → ``sharding_type``, ``compute_kernel``, ``ranks``, ``shards``), with ``cache_load_factor``
added, and ``key_value_params`` (fields of TorchRec's ``KeyValueParams``) of tables on SSD.
:mod:`milp_planner.integrations.torchrec.sharding_plan` turns it into the object.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from milp_planner.drawing.units import listed
from milp_planner.errors import BadInput
from milp_planner.files import json_text
from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.constraints import LARGEST_L1, PinSpec
from milp_planner.inputs.files import read_json
from milp_planner.inputs.model import Model, Workload
from milp_planner.inputs.problems import one_of
from milp_planner.inputs.table import Table
from milp_planner.integrations.exports import known, pin, proper_ratio, stash
from milp_planner.integrations.exports.nodes import NODES, over_nodes
from milp_planner.plans.placement import PlacedTable, Plan, nodes_of
from milp_planner.pricing.options import (
    BY_COLUMN,
    BY_MACHINE,
    MODE_OF_KERNEL,
    SHARDING_TYPES,
    STORES,
    TIERED,
)
from milp_planner.pricing.runtimes.key_value import cache_mebibytes

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
        **({"pod_size": plan.cluster.span} if _over_machines(plan) else {}),
        "compute_device": _device(plan),
        **collection(plan.cluster),
        **sharders(plan.model.workload),
        "plan": by_module,
        **(
            {}
            if plan.model.workload.stash_window_ms is None
            else {"stash_weights": stash.stashed(plan)}
        ),
        **({"stash_caches": caches} if (caches := stash.stashed(plan, "CACHING")) else {}),
        "left_to_dynamicemb": [t.name for t in plan.tables if t.kind == "dynamicemb"],
    }


_WIRE = ("fp32", "fp16", "bf16", "fp8", "int8")


def sharders(work: Workload) -> dict[str, Any]:
    """What the sharders must be built with, where it is not TorchRec's default."""
    backward = work.exchange_dtype_backward or work.exchange_dtype
    if (work.exchange_dtype, backward, work.dedup) == ("fp32", "fp32", False):
        return {}
    return {
        "sharders": {
            "forward_precision": work.exchange_dtype,
            "backward_precision": backward,
            "use_index_dedup": work.dedup,
        }
    }


def workload(text: str, model: Model) -> dict[str, Any]:
    """Fields of the workload that the document states: exchange and deduplication."""
    return built(_parse(text))


def built(document: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the workload in what a document says of its sharders."""
    found = document.get("sharders")
    if found is None:
        return {}
    if not isinstance(found, dict) or not isinstance(found.get("use_index_dedup"), bool):
        raise BadInput("sharders: must have forward_precision, backward_precision, use_index_dedup")
    return {
        "exchange_dtype": one_of(found.get("forward_precision"), _WIRE, "forward_precision"),
        "exchange_dtype_backward": one_of(
            found.get("backward_precision"), _WIRE, "backward_precision"
        ),
        "dedup": found["use_index_dedup"],
    }


def collection(cluster: Cluster) -> dict[str, Any]:
    """Arguments of TorchRec's ``DMPCollection``, and of its train pipeline, for a sharding group.

    A node group is the set of ranks of table-row-wise and grid shards. Without other groups there
    are none.
    """
    two_d = cluster.two_d
    if two_d is None or cluster.replicas == 1:
        return {}
    interval = None if two_d.sync_interval == "never" else two_d.sync_interval
    arguments = {
        "world_size": cluster.replicas * cluster.num_ranks,
        "sharding_group_size": cluster.num_ranks,
        "use_inter_host_allreduce": two_d.layout == "contiguous",
        "sharding_strategy": two_d.strategy.upper(),
        "node_group_size": len(cluster.row_groups[0]),
    }
    return {"dmp_collection": arguments, "dmp_collection_sync_interval_batches": interval}


def write(plan: Plan) -> str:
    """The document as indented JSON."""
    return json_text(document(plan))


def notes(plan: Plan) -> list[str]:
    """Sentences about what the ShardingPlan does not hold."""
    found = []
    dynamic = [table.name for table in plan.tables if table.kind == "dynamicemb"]
    stored = [table for table in plan.tables if table.kernel in STORES]
    if dynamic:
        found.append(f"{len(dynamic)} dynamicemb tables are left to the export dynamicemb")
    if stored:
        found.append(
            f"{listed([t.name for t in stored], 3)}: set use_one_tbe_per_table in the sharder's "
            "fused_params, so that each table has the cache that was planned for it"
        )
    found += stash.notes(plan)
    virtual = [table.name for table in stored if table.kernel != "key_value"]
    if virtual:
        found.append(f"{listed(virtual, 3)}: set use_virtual_table in the table's own config")
    if names := over_nodes(plan):
        found.append(f"{listed(names, 3)}: rows over several machines need {NODES}")
    found += _on_sharders(plan.model.workload)
    found += _on_collection(plan)
    over = _over_machines(plan)
    if over and plan.cluster.replicas == 1:
        found.append(
            f"{len(over)} tables split rows over {plan.cluster.span} machines: start every rank "
            f"with TORCHREC_RESOLVED_POD_SIZE={plan.cluster.span}, else TorchRec drops shards"
        )
    if any(table.sharding_type == "grid_shard" for table in over):
        found.append("TorchRec 1.9.2 cannot build grid_shard over several machines")
    return found


def _on_sharders(work: Workload) -> list[str]:
    """Sentences about what was priced and TorchRec does only if asked."""
    built = sharders(work).get("sharders")
    if built is None:
        return []
    found = ["build the sharders as sharders says: qcomm_codecs_registry and use_index_dedup"]
    if work.codec == "low_memory" and "fp32" not in built.values():
        found.append("priced with a codec that casts before it clamps; FBGEMM's own does not")
    return found


def _on_collection(plan: Plan) -> list[str]:
    """Sentences about further needs of training with several sharding groups."""
    two_d, groups = plan.cluster.two_d, plan.cluster.replicas
    if two_d is None or groups == 1:
        return []
    never = two_d.sync_interval == "never"
    often = None if never else two_d.sync_interval
    found = [
        f"the plan is for one of {groups} sharding groups: build DMPCollection with the "
        "arguments under dmp_collection, and the train pipeline with "
        f"dmp_collection_sync_interval_batches={often}"
    ]
    if two_d.strategy == "fully_sharded":
        found.append(
            "fully sharded: name the module before the dense part as rs_awaitable_hook_module, "
            "else whole weights stay until the backward pass"
        )
    return found


def _over_machines(plan: Plan) -> list[PlacedTable]:
    """Tables whose rows are split over several machines of a domain."""
    wide = plan.cluster.span > 1
    return [t for t in plan.tables if wide and t.sharding_type in BY_MACHINE]


def read(text: str, model: Model) -> dict[str, PinSpec]:
    """Pins that such a JSON text fixes: sharding type, mode, load factor, column width and ranks.

    BadInput for text that is no such document, tables that the model does not have, missing
    TorchRec tables, and shards that do not cover their table.
    """
    pins: dict[str, PinSpec] = {}
    away = stash.names(_parse(text))
    for module, name, entry in entries(text):
        table = known(model, name, "plan")
        if name in pins:
            raise BadInput(f"plan: table {name!r} is in two modules, the second is {module!r}")
        pins[name] = _pin(table, entry)
        if away is not None:
            pins[name] = pins[name].model_copy(update={"stash": name in away})
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
    """The document, with its head checked."""
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
        "cache_load_factor": None,
    }
    if (several := nodes_of(placed, plan.cluster)) > 1:
        entry["num_nodes"] = several
    if placed.kernel in STORES:
        entry["key_value_params"] = key_value_params(plan, placed)
    elif placed.mode in TIERED:
        entry["cache_load_factor"] = float(placed.cache_ratio)
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


def key_value_params(plan: Plan, placed: PlacedTable) -> dict[str, int]:
    """Configuration of a key-value kernel as priced: MiB, GiB and bytes per shard."""
    table = plan.model.table(placed.name)
    shards = plan.shards(placed.name)
    rows = max(shard.rows[1] - shard.rows[0] for shard in shards if shard.rows is not None)
    columns = max(shard.columns[1] - shard.columns[0] for shard in shards)
    x = placed.cache_ratio
    row, column, element, over, under = (
        np.array([n]) for n in (rows, columns, table.element_bytes, x.numerator, x.denominator)
    )
    cap = cache_mebibytes(row, column, element, (over, under))
    return {
        "max_l1_cache_size": int(cap[0]),
        "l2_cache_size": table.key_value.l2 // 2**30,
        "ssd_rocksdb_write_buffer_size": table.key_value.write_buffer,
    }


def _l1_ratio(table: Table, entry: dict[str, Any], sizes: list[list[int]]) -> Fraction:
    """Share of the largest shard's rows in its cache, in hundredths; a fifth if uncapped."""
    where = f"table {table.name!r}: key_value_params"
    params = entry.get("key_value_params") or {}
    if not isinstance(params, dict):
        raise BadInput(f"{where}: must be a mapping")
    cap = params.get("max_l1_cache_size")
    if cap is None:
        return LARGEST_L1
    if type(cap) is not int or cap < 1:
        raise BadInput(f"{where}: max_l1_cache_size must be a whole number of MiB from 1")
    largest = max(rows * columns for rows, columns in sizes) * table.element_bytes
    held = min(Fraction(cap * 2**20, largest), LARGEST_L1)
    return max(Fraction(math.floor(held * 100), 100), Fraction(1, 100))


UNPRICED = {
    "fused_triton": "a Triton kernel",
    "unfused_tpu": "a kernel of TPUs",
    "quant": "a kernel of quantised modules",
    "quant_uvm": "a kernel of quantised modules",
    "quant_uvm_caching": "a kernel of quantised modules",
    "customized_kernel": "another library's kernel",
    "dram_ssd_virtual_table": "a store in host memory and on SSD",
}
"""TorchRec 1.9.2's kernels whose time and bytes are not modelled."""


def _refuse_unpriced(kernel: object, where: str) -> None:
    if isinstance(kernel, str) and kernel.lower() in UNPRICED:
        raise BadInput(
            f"{where}: compute_kernel: found {kernel!r}, {UNPRICED[kernel.lower()]}, which is not "
            f"priced; allowed: {', '.join(MODE_OF_KERNEL)}"
        )


def _pin(table: Table, entry: dict[str, Any]) -> PinSpec:
    where = f"table {table.name!r}"
    kind = one_of(entry.get("sharding_type"), SHARDING_TYPES, f"{where}: sharding_type")
    _refuse_unpriced(entry.get("compute_kernel"), where)
    mode = one_of(entry.get("compute_kernel"), MODE_OF_KERNEL, f"{where}: compute_kernel")
    ranks = entry.get("ranks")
    if not isinstance(ranks, list) or not all(type(r) is int and r >= 0 for r in ranks):
        raise BadInput(f"{where}: ranks must be a list of whole numbers from 0")
    shards = _shards(table, entry, kind, len(ranks))
    factor = entry.get("cache_load_factor")
    ratio: Fraction | None = None
    if entry["compute_kernel"] in STORES:
        ratio = _l1_ratio(table, entry, shards)
    elif mode == "CACHING" and factor is None:
        raise BadInput(f"{where}: fused_uvm_caching needs its cache_load_factor")
    elif mode == "CACHING":
        ratio = proper_ratio(factor, f"{where}: cache_load_factor")
    several = entry.get("num_nodes")
    if several is not None and (type(several) is not int or several < 1):
        raise BadInput(f"{where}: num_nodes must be a whole number from 1")
    widths = [columns for _, columns in shards]
    return pin(
        where,
        mode=mode,
        sharding_type=kind,
        cache_ratio=None if ratio is None else ratio.limit_denominator(100),
        column_width=max(widths) if kind in BY_COLUMN and min(widths) < table.dim else None,
        num_nodes=several if several != 1 else None,
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
