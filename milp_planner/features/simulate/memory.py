"""Bytes that a simulated plan fills at every rank and machine, and those the plan reserves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.instance import Scope
from milp_planner.features.simulate.table import TableRun
from milp_planner.plans.placement import PlacedShard, Plan
from milp_planner.pricing.dynamicemb_storage import BUCKET_BYTES, COUNTER_BYTES, SLOT_BYTES
from milp_planner.pricing.storage import (
    CACHE_ROW_BYTES,
    CACHE_SLOT_BYTES,
    ID_BYTES,
    admission_counter,
)
from milp_planner.pricing.units import FloatArray, IntArray


@dataclass(frozen=True)
class MemoryInfo:
    """One kind of memory, at every place that has it: embedding tables and their buffers.

    Attributes
    ----------
    memory : str
        HBM or DDR.
    place : str
        rank or machine.
    predicted : tuple of int
        Bytes that the plan reserves at each place.
    simulated : tuple of int
        Bytes filled at each place, at the most of all counted steps.
    fullest : int
        Place with the most simulated bytes.
    """

    memory: str
    place: str
    predicted: tuple[int, ...]
    simulated: tuple[int, ...]
    fullest: int


def memory_of(plan: Plan, runs: list[TableRun], outputs: FloatArray) -> tuple[MemoryInfo, ...]:
    """HBM of every rank and DDR of every machine.

    Hash tables (dynamicemb) fill with the rows that were simulated, each with its optimizer state;
    their keys, scores and counters are allocated for all slots at once. Arrays (TorchRec) are
    allocated for all rows. Buffers hold the ids that a rank received, and the embeddings it
    returns, in its fullest step.

    Parameters
    ----------
    plan : Plan
        With a placement.
    runs : list of TableRun
        One a table, in the plan's order.
    outputs : float array [tables]
        Embeddings of pooled outputs that one rank's batch asks for.
    """
    instance, verdict = plan.instance, plan.verdict
    assert verdict is not None
    assert verdict.loads is not None
    resources = instance.resources
    filled = [np.zeros(len(resource.capacity)) for resource in resources]
    on_ranks = [i for i, resource in enumerate(resources) if resource.scope is Scope.RANK]
    cpu_only = all(rank.hbm_bytes == 0 for rank in plan.cluster.ranks)
    for run, bags in zip(runs, outputs.tolist(), strict=True):
        holders = run.job.holders(instance.num_ranks).tolist()
        held, hosted = (most.max(axis=0).tolist() for most in rows_held(run))
        for shard, (rank, part) in zip(plan.shards(run.job.table.name), holders, strict=True):
            hbm, ddr = _tiers(plan, run, shard, held[part], hosted[part])
            ids, buffer = _buffers(plan, run, shard, part, bags)
            machine = int(instance.machine_of[rank])
            most = max(shard.use[resources[i].name] for i in on_ranks)
            for i, resource in enumerate(resources):
                if i not in on_ranks:
                    filled[i][machine] += ddr + (hbm + ids + buffer if cpu_only else 0.0)
                elif not cpu_only:  # a collective's buffers count in its own resource
                    filled[i][rank] += hbm + ids + (shard.use[resource.name] == most) * buffer
    return tuple(
        _info(memory, place, [verdict.loads.use[i] for i in chosen], [filled[i] for i in chosen])
        for memory, place, chosen in (
            ("HBM", "rank", on_ranks),
            ("DDR", "machine", [i for i in range(len(resources)) if i not in on_ranks]),
        )
    )


def _info(
    memory: str, place: str, reserved: list[IntArray], filled: list[FloatArray]
) -> MemoryInfo:
    simulated = np.ceil(np.max(filled, axis=0)).astype(np.int64)
    return MemoryInfo(
        memory=memory,
        place=place,
        predicted=tuple(np.max(reserved, axis=0).tolist()),
        simulated=tuple(simulated.tolist()),
        fullest=int(simulated.argmax()),
    )


def rows_held(run: TableRun) -> tuple[FloatArray, FloatArray]:
    """Rows in HBM and on the host after every step, float arrays [steps, ranks of the split].

    Those of a sample, scaled up; its last bucket is never whole, so at most what the rank's slots
    take.
    """
    shape = run.job.shape
    near = np.array([step.in_hbm for step in run.steps]) / run.rate
    far = np.array([step.on_host for step in run.steps]) / run.rate
    if shape.mode == "HYBRID":
        far = np.minimum(far, shape.host_buckets * shape.host_bucket)
    return np.minimum(near, shape.hbm_buckets * shape.hbm_bucket), far


def _tiers(
    plan: Plan, run: TableRun, shard: PlacedShard, held: float, hosted: float
) -> tuple[float, float]:
    """Bytes of one shard's rows in HBM and on the host, with what is kept beside them."""
    job, shape = run.job, run.job.shape
    row = job.row_bytes(shard.columns[1] - shard.columns[0], plan.model.workload.mode == "training")
    if job.table.kind == "dynamicemb":
        near = shape.hbm_buckets * (shape.hbm_slots > 0)
        far = shape.host_buckets * (shape.host_slots > 0)
        slots = near * shape.hbm_bucket + far * shape.host_bucket
        beside = (SLOT_BYTES + COUNTER_BYTES) * slots + BUCKET_BYTES * (near + far)
        counted = job.table.admission_capacity or 0
        beside += admission_counter(counted, job.table.admission_bucket_capacity)
        elsewhere = shape.mode == "CACHING" and job.table.external_storage is not None
        return held * row + beside, 0.0 if elsewhere else hosted * row
    assert shard.rows is not None
    rows = shard.rows[1] - shard.rows[0]
    if shape.mode == "HBM_ONLY":
        return rows * row, 0.0
    beside = CACHE_ROW_BYTES * rows + CACHE_SLOT_BYTES * shape.hbm_slots
    return (held * row + beside if shape.mode == "CACHING" else 0.0), rows * row


def _buffers(
    plan: Plan, run: TableRun, shard: PlacedShard, part: int, bags: float
) -> tuple[float, float]:
    """Bytes of the ids one shard received in its fullest step, and of what it returned."""
    job, workload = run.job, plan.model.workload
    ids = float(run.ids[:, part].max())
    rows = ids if job.table.output == "sequence" else bags * job.senders
    returned = rows * (shard.columns[1] - shard.columns[0]) * job.table.element_bytes
    encoded = job.placed.sharding_type != "data_parallel" and plan.instance.num_ranks > 1
    return ID_BYTES * ids, returned * (workload.codec_peak_factor if encoded else 1.0)
