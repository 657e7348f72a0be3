"""Plans of published runs, priced: their parts as pinned TorchRec tables, phase by phase.

HugeCTR's own kind of table has its planner's formula and no times. TorchRec's tables fit what ran:
fp32 rows with element-wise Adagrad, fp16 on the wire both ways, pooled, no deduplication. A row
part of HugeCTR returns partial sums at full width to every rank, so it is a table of its own here,
whole on its rank, with its share of the rows and of the ids. A table that a node's GPUs share
(``hier_auto``) is table-row-wise on that node: summed inside, then sent across.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import Any

from benchmarks.publications.planner import Setting, Sharding, auto, round_robin
from formulations import solve
from formulations.result.check import compute_loads
from milp_planner.features.plan.remedies import with_machines
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.compile import compile_instance
from milp_planner.pricing import price
from milp_planner.pricing.profile import Profile, load_profile
from milp_planner.pricing.units import FloatArray
from scenarios import catalog

MODEL = "mlperf-dlrm-dcnv2"
SHIPPED = {
    "2x8xb200": ("4x8xb200", 2),
    "2x4xgb200": ("gb200-nvl72", 2),
    "16x4xgb200": ("gb200-nvl72", 16),
    "8x8xh100": ("16x8xh100", 8),
    "2x8xh200": ("4x8xh200", 2),
}
"""Clusters that do not ship: one that does, and its number of machines."""
PHASES = {
    "lookup": "fwd_compute", "exchange": "fwd_comms", "update": "bwd_compute",
    "gradients": "bwd_comms",
}  # fmt: skip
"""The phases of a step, and their names in the Instance."""


@dataclass(frozen=True)
class Priced:
    """A plan's predicted step, in ms."""

    phases: dict[str, float]
    """The slowest rank of each phase."""
    busiest: float
    """Lookup and update of the rank that has most of both."""

    @property
    def step(self) -> float:
        """The embeddings' part of a step: barriers between phases, no overlap."""
        return sum(self.phases.values())


@cache
def cluster(system: str) -> Cluster:
    """The cluster of a system."""
    if system not in SHIPPED:
        return catalog.find_cluster(system)
    name, machines = SHIPPED[system]
    return with_machines(catalog.find_cluster(name), machines)


def sharding_of(row: Mapping[str, Any]) -> tuple[Sharding, int]:
    """The plan of a published row, and the GPUs of each of its places."""
    model, site = catalog.find_model(MODEL), cluster(row["system"])
    if row["plan"] == "round_robin":
        return round_robin(len(model.tables), site.num_ranks), 1
    gpus = len(site.machine_ranks[0]) if row["plan"] == "hier_auto" else 1
    setting = Setting(
        site.num_ranks // gpus, row.get("ratio", 9), row.get("threshold", 0.008), gpus
    )
    rows = [table.rows for table in model.tables]
    return auto(rows, [table.lookups_per_sample for table in model.tables], setting), gpus


def pinned(sharding: Sharding, site: Cluster, batch: int, gpus: int) -> Model:
    """The model with every part of the plan as a table where the plan has it."""
    model = catalog.find_model(MODEL)
    data = model.to_dict()
    data["workload"] |= {
        "batch_per_rank": batch // site.num_ranks, "exchange_dtype": "fp16", "codec": "low_memory",
    }  # fmt: skip
    tables = []
    for number, table in enumerate(data["tables"]):
        places = sharding.places[number]
        for part, place in enumerate(places):
            ranks = [place] if gpus == 1 else list(site.machine_ranks[place])
            kind = "table_wise" if gpus == 1 else "table_row_wise"
            pin = {"mode": "HBM_ONLY", "sharding_type": kind, "ranks": ranks}
            tables.append(
                table | {
                    "name": f"{table['name']}.{part}" if len(places) > 1 else table["name"],
                    "rows": -(-table["rows"] // len(places)),
                    "pooling_factor": table["pooling_factor"] / len(places),
                    "constraints": {"pin": pin},
                }
            )  # fmt: skip
        if not places:
            pin = {"mode": "HBM_ONLY", "sharding_type": "data_parallel"}
            tables.append(table | {"constraints": {"pin": pin}})
    return Model.from_dict(data | {"tables": tables}, f"{MODEL}, planned")


def copied(profile: Profile, copies: Mapping[str, float]) -> float:
    """Share of a part's HBM bandwidth that a copy reaches: as measured on it, else the measured
    parts' mean. ``copies``: GB/s by profile."""
    shares = {name: speed * 1e9 / load_profile(name).hbm for name, speed in copies.items()}
    return shares.get(profile.name, fmean(shares.values()))


def one_pass(share: float = 1.0) -> float:
    """ms of the lookup of TorchRec's 80 weighted tables on 8 x B200, ten a rank.

    One pass over their rows (``sparse_data_dist_base.yml``); ``share`` as in :func:`priced`.
    """
    site = cluster("8xb200")
    table = {
        "rows": 100_000, "dim": 256, "pooling_factor": 30, "weighted": True, "optimizer": "sgd",
    }  # fmt: skip
    pin = {"mode": "HBM_ONLY", "sharding_type": "table_wise"}
    tables = [
        {**table, "name": f"t{n}", "constraints": {"pin": {**pin, "ranks": [n % site.num_ranks]}}}
        for n in range(80)
    ]
    model = Model.from_dict(
        {"name": "weighted", "workload": {"batch_per_rank": 32_768}, "tables": tables}
    )
    return float(_cost(model, site, share)["lookup"].max())


def priced(row: Mapping[str, Any], share: float = 1.0) -> Priced:
    """The predicted step of a published row, with a share of the data sheet's HBM bandwidth."""
    site = cluster(row["system"])
    sharding, gpus = sharding_of(row)
    cost = _cost(pinned(sharding, site, row["batch"], gpus), site, share)
    phases = {name: float(each.max()) for name, each in cost.items()}
    return Priced(phases, float((cost["lookup"] + cost["update"]).max()))


def _cost(model: Model, site: Cluster, share: float) -> dict[str, FloatArray]:
    """ms of every phase on every rank, of a model whose tables are all pinned."""
    profile = load_profile(site.profile)
    profile = profile.model_copy(update={"hbm": int(profile.hbm * share)})
    instance = compile_instance(price(model, site, profile))
    outcome = solve(instance, "greedy")
    if outcome.placement is None:
        raise RuntimeError(f"{site.name}: {outcome.status.value}")
    cost = compute_loads(instance, outcome.placement).cost / 1e9
    return {name: cost[:, instance.phases.index(own)] for name, own in PHASES.items()}
