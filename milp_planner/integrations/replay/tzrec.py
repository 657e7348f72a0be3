"""TorchEasyRec: TorchRec's planner with the true batch and memory, and a proposer of its own.

With type and kernel of every TorchRec table given, its proposer has one option for each and what
is left is TorchRec's greedy partitioner. Load factor, width and ranks have no field. dynamicemb
tables are row-wise on all ranks; mode and ratio are its proposer's choice.

References
----------
alibaba/TorchEasyRec 54cac316, ``tzrec/utils/plan_util.py:93-206`` and ``tzrec/main.py:783-803``;
read, not run.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.constraints import PinSpec
from milp_planner.inputs.table import Table
from milp_planner.integrations.exports import tzrec
from milp_planner.integrations.replay import Pins, Ran, Trainer
from milp_planner.integrations.replay.estimate import (
    LOAD_FACTOR,
    Bytes,
    Job,
    asked_of,
    dense_bytes,
    least_width,
    machines_of,
    pins_of,
)
from milp_planner.integrations.replay.greedy import partition, room_of
from milp_planner.pricing.options import Choice
from milp_planner.pricing.runtimes.torcheasyrec import planner_value_bytes, torcheasyrec_tiers

WHY = (
    "its planner takes every table for one id a sample; "
    "export --to torchrec-callback runs a plan for any trainer there"
)
_DEFAULT = Fraction(str(LOAD_FACTOR))
_RATIO = {"HBM_ONLY": Fraction(1), "HOST_ONLY": Fraction(0)}


def runs(asked: Pins, planned: Pins, model: Model, cluster: Cluster) -> Iterator[Ran]:
    """The only way: types and kernels through the planner, dynamicemb tables as planned."""
    world, local = machines_of(cluster)
    static = [table for table in model.tables if table.kind == "torchrec"]
    tables = asked_of(static, asked)
    dynamic = {t.name: planned[t.name] for t in model.tables if t.kind == "dynamicemb"}
    hbm = min(rank.hbm_bytes for rank in cluster.ranks)
    ddr = min(machine.ddr_bytes // local for machine in cluster.machines)
    batch = model.workload.batch_per_rank
    room = room_of(hbm, ddr, tables, batch, dense_bytes(model, cluster))
    for name, pin in dynamic.items():
        held = _held(model.table(name), pin, model, world)
        room = Bytes(room.hbm - held.hbm, room.ddr - held.ddr)
    pins = pins_of(tables, partition(tables, Job(world, local, batch), room))
    yield Ran(pins | dynamic, left=_left(dynamic))


def _held(table: Table, pin: PinSpec, model: Model, world: int) -> Bytes:
    """Bytes that the planner counts on every rank for a dynamicemb table as planned."""
    mode = pin.mode or "HBM_ONLY"
    ratio = pin.cache_ratio if pin.cache_ratio is not None else _RATIO[mode]
    row = planner_value_bytes(table.dim, table.element_bytes, model.optimizer_of(table))
    rows, value, bucket, over, under = (
        np.array([n], dtype=np.int64)
        for n in (
            -(-table.rows // world), row, table.bucket_capacity, ratio.numerator, ratio.denominator,
        )
    )  # fmt: skip
    found = torcheasyrec_tiers(rows, value, bucket, (over, under), np.array([mode == "CACHING"]))
    return Bytes(int(found.hbm[0]), int(found.ddr[0]))


def _left(dynamic: Pins) -> tuple[str, ...]:
    if not dynamic:
        return ()
    return (
        f"mode and ratio of {len(dynamic)} dynamicemb tables are the choice of TorchEasyRec's own "
        "proposer, which is not replayed: they are taken from the plan",
    )


def can_run(table: Table, choice: Choice) -> bool:
    """TorchRec's default load factor, and the least legal width from 128."""
    if table.kind != "torchrec":
        return choice.mode != "HOST_ONLY" and choice.dist_type == "roundrobin"
    if choice.columns > 1 and choice.width != least_width(table.dim):
        return False
    if choice.mode == "CACHING" and choice.ratio != _DEFAULT:
        return False
    return choice.mode != "SSD" and not choice.stash


def grid(table: Table) -> dict[str, Any]:
    """Its width of column shards and its load factor."""
    if table.kind != "torchrec":
        return {}
    return {"column_widths": least_width(table.dim), "cache_ratios": _DEFAULT}


TRAINER = Trainer(
    runs, True, WHY, can_run=can_run, grid=grid,
    priced_otherwise=lambda model: tzrec.priced_otherwise(model.workload),
)  # fmt: skip
