"""The MLPerf DLRMv4 trainer: TorchRec's default planner, which knows neither batch nor traffic.

It pins each table's type and kernel and calls ``EmbeddingShardingPlanner`` with a batch of 512, one
id a feature, ``HBM_CAP_GB`` of HBM a rank and no host memory, for one ``EmbeddingCollection`` with
row-wise Adagrad and a 16-bit exchange.

References
----------
mlcommons/training PR 889 at a67b8459, ``recommendation_v4/generative_recommenders/dlrm_v4/train/
utils.py:871-990``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from milp_planner.errors import FallsShort
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.constraints import PinSpec
from milp_planner.inputs.table import Table
from milp_planner.integrations.exports.dlrmv4 import (
    DEFAULT_CAP,
    HBM,
    OFFERED,
    assignments,
    differences,
    read,
)
from milp_planner.integrations.replay import Pins, Ran
from milp_planner.integrations.replay.estimate import (
    GIB,
    Asked,
    Job,
    asked_of,
    dense_bytes,
    least_width,
    machines_of,
    pins_of,
    shards_of,
)
from milp_planner.integrations.replay.greedy import partition, room_of
from milp_planner.pricing.options import Choice

DECIDES = True
WHY = (
    "its planner takes every feature for one id a sample, in a batch of 512; "
    "export --to torchrec-callback runs a plan for any trainer there"
)
BATCH, WIRE = 512, (2.0, 2.0)
"""TorchRec's default batch, and the bytes of an element on the wire in both directions."""
MOST_CAPS = 12
"""Most memory caps tried."""


def runs(asked: Pins, planned: Pins, model: Model, cluster: Cluster) -> Iterator[Ran]:
    """The plan at the trainer's own cap or, lower, the ranks' whole GiB; then at tighter caps.

    Only where that stops is a cap tried that is higher than the ranks' memory, since the planner
    leaves 15% of it unused: whether the tables fit is for our ledger to say.
    """
    tables, job, dense = _given(asked, model, cluster)
    whole = min(rank.hbm_bytes for rank in cluster.ranks) // GIB
    cap = min(DEFAULT_CAP, whole)
    try:
        ranks = _planned(tables, job, cap, dense)
    except FallsShort:
        cap = min(DEFAULT_CAP, math.ceil(whole / 0.85))
        ranks = _planned(tables, job, cap, dense)
    for _ in range(MOST_CAPS):
        yield Ran(pins_of(tables, ranks), {HBM: "" if cap == DEFAULT_CAP else str(cap)})
        cap = _tighter(tables, ranks, job, cap, dense)
        try:
            ranks = _planned(tables, job, cap, dense)
        except FallsShort:
            return


def runs_now(text: str, model: Model, cluster: Cluster) -> dict[str, PinSpec]:
    """What the trainer runs today with a file of its variables, at the cap that they set.

    BadInput for a file that is no such, FallsShort if the trainer would stop, or if the file leaves
    a table to the planner.
    """
    tables, job, dense = _given(read(text, model), model, cluster)
    cap = int(assignments(text).get(HBM) or DEFAULT_CAP)
    return pins_of(tables, _planned(tables, job, cap, dense))


def _given(asked: Pins, model: Model, cluster: Cluster) -> tuple[list[Asked], Job, int]:
    """Tables, machines and bytes of the dense part as the planner gets them."""
    world, local = machines_of(cluster)
    tables = asked_of(model.tables, asked, pooled=False)
    return tables, Job(world, local, BATCH, WIRE), dense_bytes(model, cluster)


def _planned(tables: Sequence[Asked], job: Job, cap: int, dense: int) -> dict[str, tuple[int, ...]]:
    return partition(tables, job, room_of(cap * GIB, 0, tables, job.batch, dense))


def _tighter(
    tables: Sequence[Asked], ranks: dict[str, tuple[int, ...]], job: Job, cap: int, dense: int
) -> int:
    """The largest lower cap at which the fullest rank, as the planner counts, does not fit."""
    used = [0] * job.world
    for table in tables:
        for rank, shard in zip(ranks[table.name], shards_of(table, job), strict=True):
            used[rank] += shard.storage.hbm
    while cap > 0 and room_of(cap * GIB, 0, tables, job.batch, dense).hbm >= max(used):
        cap -= 1
    return cap


def can_run(table: Table, choice: Choice) -> bool:
    """The four types of its sharder, in HBM; column shards of the least legal width from 128."""
    if choice.sharding == "column_wise" and choice.width != least_width(table.dim):
        return False
    return choice.sharding in OFFERED and choice.mode == "HBM_ONLY" and not choice.stash


def priced_otherwise(model: Model) -> list[str]:
    """Deduplication, the low-memory codec and a 16-bit exchange, which are on by default."""
    return differences(model.workload)


def grid(table: Table) -> dict[str, Any]:
    """Its width of column shards."""
    return {"column_widths": least_width(table.dim)}
