"""The configurations, and what the ledger predicts for each: no TorchRec needed."""

from typing import NamedTuple
from unittest.mock import patch

import numpy as np

import milp_planner
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.ledger import held_of, shards_at
from milp_planner.pricing import splits
from milp_planner.pricing.entries import (
    BACKWARD_RECEIVE,
    BACKWARD_SEND,
    DENSE,
    FORWARD_RECEIVE,
    FORWARD_SEND,
    RANK_ENTRIES,
    SHARD_NAMES,
    UPDATE,
)
from milp_planner.pricing.outside import exchange_bytes

STEP = {
    "forward_exchange": (FORWARD_SEND, FORWARD_RECEIVE),
    DENSE: (DENSE,),
    "backward_exchange": (BACKWARD_SEND, BACKWARD_RECEIVE),
    UPDATE: (UPDATE,),
}
"""Measured moments of a step, each with the ledger's moments that it covers."""
STATES = ("constructed", "inputs")
"""States before these moments: the tables exist; the ids have arrived."""
PARTS = {
    "tables": ("weights", "state", "gradient_bucket"),
    "ids": ("inputs", "lengths"),
    "embeddings": (
        "output", "send_buffer", "encoding", "receive_buffer", "activations", "received",
    ),
    "gradients": ("gradients", "activation_gradients", "sent_gradients", "held_gradients",
                  "dense_gradients"),
}  # fmt: skip
"""Entries that are measured together: by the part of a step in which tensors appear."""
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
    wire: str = "fp32"
    dtype: str = "fp32"

    @property
    def name(self) -> str:
        """Of the case in tables."""
        shape = f"dim {self.dim}, {self.samples} × {self.length} ids"
        wire = "" if self.wire == "fp32" else f", {self.wire} on the wire"
        kind = "" if self.dtype == "fp32" else f", {self.dtype} table"
        place = f"{self.output}, {self.sharding}"
        return f"{place}, {shape}, {self.optimizer}, {self.ranks} ranks{wire}{kind}"

    def ids(self) -> list[int]:
        """Ids that one rank looks up in each table: evenly over the rows, in mixed order."""
        count = self.samples * self.length
        spread = np.arange(count) * self.rows // count
        return [int(i) for i in np.random.default_rng(0).permutation(spread)]


def cases() -> list[Case]:
    """Every way to shard, pooled and sequence, then cases that each change one thing.

    What FBGEMM cannot do on CPU is left out: replicated sequences, which its dense operator pools,
    and deduplicated ids.
    """
    kinds = [("pooled", sharding) for sharding in SHARDINGS]
    kinds += [("sequence", sharding) for sharding in SHARDINGS[:3]]
    found = [Case(output, sharding) for output, sharding in kinds]
    found += [Case(output, sharding, dim=64, samples=1024) for output, sharding in kinds]
    found += [Case("pooled", sharding, length=1) for sharding in SHARDINGS[:3]]
    found += [Case("pooled", "row_wise", optimizer=o) for o in OPTIMIZERS[1:]]
    found += [
        Case(output, sharding, wire="fp16")
        for output, sharding in kinds
        if sharding != "data_parallel"
    ]
    found += [
        Case(output, sharding, ranks=4) for output, sharding in kinds if sharding != "data_parallel"
    ]
    return found


def held_out() -> list[Case]:
    """Configurations on which no correction of the ledger is based."""
    three = {"ranks": 3, "rows": 6000}
    four = {"ranks": 4, "rows": 8000}
    return [
        Case("sequence", "row_wise", dim=48, samples=700, length=5, **three),
        Case("pooled", "table_wise", dim=96, samples=300, length=3, **three),
        Case("sequence", "table_wise", dim=16, samples=900, length=2, wire="fp16", **three),
        Case("pooled", "column_wise", dim=96, samples=300, length=3, wire="fp16", **three),
        Case("sequence", "column_wise", dim=48, samples=300, length=4, wire="fp16", **three),
        Case("pooled", "row_wise", dim=24, samples=800, length=6, wire="fp16",
             optimizer="adagrad", **four),
        Case("sequence", "row_wise", dim=80, samples=250, length=7, wire="fp16", **four),
        Case("pooled", "column_wise", dim=64, samples=600, length=2, **four),
    ]  # fmt: skip


def half_precision() -> list[Case]:
    """Tables of two bytes an element, whose state and lookups are of four.

    FBGEMM has no lookups of bf16 on CPU, so these tables are only constructed.
    """
    half = {"dtype": "fp16"}
    return [
        Case("pooled", "table_wise", **half),
        Case("pooled", "table_wise", optimizer="adagrad", **half),
        Case("pooled", "column_wise", optimizer="rowwise_adagrad", **half),
        Case("pooled", "row_wise", optimizer="adagrad", wire="fp16", **half),
        Case("pooled", "row_wise", optimizer="rowwise_adagrad", ranks=2, **half),
        Case("sequence", "table_wise", optimizer="rowwise_adagrad", wire="fp16", **half),
        Case("sequence", "row_wise", optimizer="adagrad", **half),
        *(Case("pooled", "row_wise", optimizer=o, dtype="bf16") for o in OPTIMIZERS),
    ]  # fmt: skip


OPTIMIZERS = ("sgd", "adagrad", "rowwise_adagrad")
"""Optimizers that FBGEMM has on CPU."""


def model_of(case: Case) -> Model:
    """The case as a model."""
    use: dict[str, object] = {"pooling_factor": case.length}
    if case.output == "sequence":
        use = {"output": "sequence", "sequence_length": case.length}
    limits: dict[str, object] = {"sharding_types": [case.sharding], "modes": ["HBM_ONLY"]}
    if case.sharding == "column_wise":
        limits["column_widths"] = [case.dim // case.ranks]
    table = {
        "rows": case.rows, "dim": case.dim, "dtype": case.dtype, "optimizer": case.optimizer, **use,
        "constraints": limits,
    }  # fmt: skip
    return Model.from_dict({
        "name": "measured",
        "workload": {
            "batch_per_rank": case.samples, "pipeline": "none", "exchange_dtype": case.wire,
        },
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


@patch.object(splits, "DEVIATIONS", 0.0)
def predicted(case: Case) -> dict[str, Amounts]:
    """Bytes of the entries at every measured moment, on the fullest rank and at the fullest of the
    ledger's moments that it covers.

    ``constructed`` are the rows, ``inputs`` those and the ids that have arrived. The ids of this
    run fall evenly by construction, so no worse batch is assumed.
    """
    plan = milp_planner.plan(model_of(case), cluster_of(case), time_limit=5)
    held = held_of(plan)
    if held is None:
        raise RuntimeError(f"{case.name}: the plan's options are not offered")
    everywhere = exchange_bytes(plan.model, case.ranks)
    moments: dict[str, Amounts] = {}
    for moment, shards in shards_at(plan, held).items():
        row = shards[shards.sum(axis=1).argmax()].tolist()
        entries = dict(zip(SHARD_NAMES, row, strict=True))
        entries |= {e.name: everywhere[e.name] for e in RANK_ENTRIES if moment in e.moments}
        moments[moment] = {name: amount for name, amount in entries.items() if amount}
    always = moments[UPDATE]
    rows = {name: n for name, n in always.items() if name in PARTS["tables"]}
    found = {
        measured: max((moments[each] for each in inside), key=lambda entries: sum(entries.values()))
        for measured, inside in STEP.items()
    }
    return {"constructed": rows, "inputs": always, **found}
