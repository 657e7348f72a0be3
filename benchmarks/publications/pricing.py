"""Plans of published runs, priced: their parts as pinned TorchRec tables, phase by phase.

HugeCTR's own kind of table has its planner's formula and no times. TorchRec's tables fit what ran:
fp32 rows with element-wise Adagrad, fp16 on the wire both ways, pooled, no deduplication. A row
part of HugeCTR returns partial sums at full width to every rank, so it is a table of its own here,
whole on its rank, with its share of the rows and of the ids. A table that a node's GPUs share
(``hier_auto``) is table-row-wise on that node: summed inside, then sent across.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from benchmarks.publications.ids import access
from benchmarks.publications.planner import Setting, Sharding, auto, round_robin
from formulations import solve
from formulations.result.check import compute_loads
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.changes import changed_cluster
from milp_planner.plans.compile import compile_instance
from milp_planner.pricing import price
from milp_planner.pricing.profile import Profile, load_profile, profile_names
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
class Way:
    """How plans are priced."""

    fused: bool
    """By the profile of FBGEMM's tables of the part, where there is one."""
    skewed: bool
    """With ids as popular as published, instead of all alike."""


WAYS = {
    "data sheet": Way(False, False),
    "FBGEMM": Way(True, False),
    "FBGEMM, ids as published": Way(True, True),
}


@cache
def published() -> dict[str, Any]:
    """The published steps."""
    text = (Path(__file__).resolve().parent / "published.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


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
    return changed_cluster(catalog.find_cluster(name), {"machines": machines})


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


def pinned(
    sharding: Sharding, site: Cluster, batch: int, gpus: int, *, skewed: bool = False
) -> Model:
    """The model with every part of the plan as a table where the plan has it.

    A part has its share of each popularity's rows, so parts are as ``skewed`` as their table.
    """
    model = catalog.find_model(MODEL)
    data = model.to_dict()
    data["workload"] |= {
        "batch_per_rank": batch // site.num_ranks, "exchange_dtype": "fp16", "codec": "low_memory",
    }  # fmt: skip
    tables = []
    for number, table in enumerate(data["tables"]):
        places = sharding.places[number]
        if skewed and (law := published()["ids"].get(number)):
            table = table | {"access": access(*law, table["rows"], table["pooling_factor"])}
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


def one_pass() -> float:
    """ms of the lookup of TorchRec's 80 weighted tables on 8 x B200, ten a rank, by the data sheet.

    One pass over their rows (``sparse_data_dist_base.yml``).
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
    return float(_cost(model, site, False)["lookup"].max())


@cache
def plan_cost(system: str, plan: str, batch: int, way: Way, **settings: float) -> Any:
    """ms of every phase on every rank."""
    site = cluster(system)
    row = {"system": system, "plan": plan, "batch": batch, **settings}
    sharding, gpus = sharding_of(row)
    return _cost(pinned(sharding, site, batch, gpus, skewed=way.skewed), site, way.fused)


def priced(row: Mapping[str, Any], way: Way) -> Priced:
    """The predicted step of a published row."""
    settings = {name: row[name] for name in ("ratio", "threshold") if name in row}
    cost = plan_cost(row["system"], row["plan"], row["batch"], way, **settings)
    phases = {name: float(each.max()) for name, each in cost.items()}
    return Priced(phases, float((cost["lookup"] + cost["update"]).max()))


def profile_of(site: Cluster, fused: bool) -> Profile:
    """The cluster's own profile, or that of FBGEMM's tables on the same part."""
    name = f"{site.profile}-fbgemm"
    return load_profile(name if fused and name in profile_names() else site.profile)


def _cost(model: Model, site: Cluster, fused: bool) -> dict[str, FloatArray]:
    """ms of every phase on every rank, of a model whose tables are all pinned."""
    instance = compile_instance(price(model, site, profile_of(site, fused)))
    outcome = solve(instance, "greedy")
    if outcome.placement is None:
        raise RuntimeError(f"{site.name}: {outcome.status.value}")
    cost = compute_loads(instance, outcome.placement).cost / 1e9
    return {name: cost[:, instance.phases.index(own)] for name, own in PHASES.items()}
