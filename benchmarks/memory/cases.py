"""The configurations, and what the ledger says of each: no TorchRec needed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import milp_planner
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.ledger import held_of, shards_at
from milp_planner.pricing.ledger import MOMENTS, RANK_ENTRIES, SHARD_NAMES
from milp_planner.pricing.outside import exchange_bytes

STATES = ("constructed", "inputs")
"""Before the ledger's moments: tables are there; ids have arrived."""
SHARDINGS = ("table_wise", "column_wise", "row_wise", "data_parallel")
Amounts = dict[str, int]


class Case(NamedTuple):
    """As many equal tables as ranks; ``samples`` a rank, each with ``length`` ids of each table."""

    output: str
    sharding: str
    dim: int = 32
    samples: int = 512
    optimizer: str = "sgd"
    ranks: int = 2
    rows: int = 8192
    length: int = 8

    @property
    def name(self) -> str:
        """Of the case in tables."""
        shape = f"dim {self.dim}, {self.samples} × {self.length} ids"
        return f"{self.output}, {self.sharding}, {shape}, {self.optimizer}, {self.ranks} ranks"

    def ids(self) -> list[int]:
        """Ids that one rank looks up in each table: evenly over the rows, in mixed order."""
        count = self.samples * self.length
        spread = np.arange(count) * self.rows // count
        return [int(i) for i in np.random.default_rng(0).permutation(spread)]


def cases() -> list[Case]:
    """Every way to shard, pooled and sequence, then what changes one thing each.

    What FBGEMM cannot do on CPU is left out: replicated sequences, which its dense operator pools,
    and deduplicated ids.
    """
    kinds = [("pooled", sharding) for sharding in SHARDINGS]
    kinds += [("sequence", sharding) for sharding in SHARDINGS[:3]]
    found = [Case(output, sharding) for output, sharding in kinds]
    found += [Case(output, sharding, dim=64, samples=1024) for output, sharding in kinds]
    found += [Case("pooled", sharding, length=1) for sharding in SHARDINGS[:3]]
    found += [Case("pooled", "row_wise", optimizer=o) for o in ("adagrad", "rowwise_adagrad")]
    found += [
        Case(output, sharding, ranks=4) for output, sharding in kinds if sharding != "data_parallel"
    ]
    return found


def model_of(case: Case) -> Model:
    """The case as a model; the loads of this run are known, so no worse batch is assumed."""
    even = {"max_over_mean": 1.0, "ranks": case.ranks}
    use: dict[str, object] = {"pooling_factor": case.length}
    if case.output == "sequence":
        use = {"output": "sequence", "sequence_length": case.length}
    limits: dict[str, object] = {"sharding_types": [case.sharding], "modes": ["HBM_ONLY"]}
    if case.sharding == "column_wise":
        limits["column_widths"] = [case.dim // case.ranks]
    table = {
        "rows": case.rows, "dim": case.dim, "optimizer": case.optimizer, **use,
        "access": {"kind": "unknown", "measured_skew": even, "peak_skew": even},
        "constraints": limits,
    }  # fmt: skip
    return Model.from_dict({
        "name": "measured",
        "workload": {"batch_per_rank": case.samples, "pipeline": "none"},
        "tables": [{"name": f"t{i}", **table} for i in range(case.ranks)],
    })  # fmt: skip


def cluster_of(case: Case) -> Cluster:
    """One machine with nothing reserved."""
    return Cluster.from_dict({
        "name": "one", "machines": 1, "ranks_per_machine": case.ranks, "hbm": "16GiB",
        "ddr": "64GiB", "profile": "torchrec-default",
        "interconnect": {"intra_machine": "400GB/s"},
        "reservations": {"hbm_percent": 0, "kjt_multiple": 0, "min_headroom": 0},
    })  # fmt: skip


def predicted(case: Case) -> dict[str, Amounts]:
    """Entries in bytes at every moment, on the fullest rank; further moments of the run added.

    ``constructed`` are the rows, ``inputs`` those and the ids that have arrived.
    """
    plan = milp_planner.plan(model_of(case), cluster_of(case), time_limit=5)
    held = held_of(plan)
    if held is None:
        raise RuntimeError(f"{case.name}: the plan's options are not offered")
    everywhere = exchange_bytes(plan.model, case.ranks)
    found: dict[str, Amounts] = {}
    for moment, shards in shards_at(plan, held).items():
        row = shards[shards.sum(axis=1).argmax()].tolist()
        entries = dict(zip(SHARD_NAMES, row, strict=True))
        entries |= {e.name: everywhere[e.name] for e in RANK_ENTRIES if moment in e.moments}
        found[moment] = {name: amount for name, amount in entries.items() if amount}
    always = found[MOMENTS[0]]
    rows = {name: n for name, n in always.items() if name in ("weights", "state")}
    arrived = rows | {name: n for name, n in always.items() if name == "inputs"}
    return {"constructed": rows, "inputs": arrived, **found}
