"""The load of a simulated plan on ranks and machines: bytes, exchange, host link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from milp_planner.drawing.units import memory_name
from milp_planner.features.simulate.table import TableRun
from milp_planner.inputs.cluster import ID_BYTES
from milp_planner.plans.placement import PlacedShard, Plan
from milp_planner.pricing.buffers import LENGTHS, batches_in_flight, send_share
from milp_planner.pricing.exchange import wire_bytes
from milp_planner.pricing.job import table_columns
from milp_planner.pricing.options import TIERED
from milp_planner.pricing.runtimes.key_value import (
    StoreBytes,
    allocated,
    cache_mebibytes,
    cache_slots,
    slot_bytes,
)
from milp_planner.pricing.storage import (
    BUCKET_BYTES,
    CACHE_ROW_BYTES,
    CACHE_SLOT_BYTES,
    COUNTER_BYTES,
    SCORE_BYTES,
    SLOT_BYTES,
    admission_counter,
)
from milp_planner.pricing.units import FloatArray, IntArray

MEMORIES = {"hbm": "rank", "ddr": "machine", "ssd": "machine"}
"""Memories that hold bytes, with their places; what else a plan limits is traffic of a step."""


@dataclass(frozen=True)
class MemoryInfo:
    """Embedding tables and their buffers in one kind of memory, at every place that has it."""

    memory: str
    """HBM, DDR or SSD."""
    place: str
    """rank or machine."""
    predicted: tuple[int, ...]
    """Bytes that the plan reserves at each place."""
    simulated: tuple[int, ...]
    """Most bytes filled at each place in any counted step."""
    fullest: int
    """The place with the most simulated bytes."""


def memory_of(plan: Plan, runs: list[TableRun], outputs: FloatArray) -> tuple[MemoryInfo, ...]:
    """HBM of every rank, DDR and SSD of every machine; ``runs`` has one per table, in the plan's
    order.

    Hash tables (dynamicemb) fill with the simulated rows, each with its optimizer state; their
    keys, scores and counters are allocated for all slots at once. Arrays (TorchRec) are allocated
    for all rows; so are key-value stores, except that of their caches only the rows held count.
    Buffers hold the ids that a rank received and the embeddings it returned in its
    fullest step. ``outputs`` is the number of pooled outputs in one rank's batch, float array
    [tables].
    """
    instance, verdict = plan.instance, plan.verdict
    assert verdict is not None
    assert verdict.loads is not None
    resources = instance.resources
    filled = [np.zeros(len(resource.capacity)) for resource in resources]
    of = {
        memory: [i for i, resource in enumerate(resources) if memory_name(resource.name) == memory]
        for memory in MEMORIES
    }
    cpu_only = plan.cluster.cpu_only
    for run, bags in zip(runs, outputs.tolist(), strict=True):
        holders = run.job.holders(instance.num_ranks).tolist()
        held, hosted = (most.max(axis=0).tolist() for most in rows_held(run))
        shards, store = plan.shards(run.job.table.name), _store(plan, run)
        for number, (shard, (rank, part)) in enumerate(zip(shards, holders, strict=True)):
            if store is None:
                hbm, ddr = _tiers(plan, run, shard, held[part], hosted[part])
            else:
                hbm, ddr = store.near(number, held[part]), store.bytes.ddr[number]
                filled[of["ssd"][0]][instance.machine_of[rank]] += store.bytes.ssd[number]
            ids, buffer = _buffers(plan, run, shard, part, bags)
            most = max(shard.use[resources[i].name] for i in of["hbm"])
            for i in of["ddr"]:
                on_host = ddr + (hbm + ids + buffer if cpu_only else 0.0)
                filled[i][instance.machine_of[rank]] += on_host
            for i in [] if cpu_only else of["hbm"]:
                # a collective's buffers count in that collective's resource
                in_it = shard.use[resources[i].name] == most
                filled[i][rank] += hbm + ids + in_it * buffer
    return tuple(
        _info(memory, [verdict.loads.use[i] for i in of[memory]], [filled[i] for i in of[memory]])
        for memory in MEMORIES
        if of[memory]
    )


def _info(memory: str, reserved: list[IntArray], filled: list[FloatArray]) -> MemoryInfo:
    simulated = np.ceil(np.max(filled, axis=0)).astype(np.int64)
    return MemoryInfo(
        memory=memory.upper(),
        place=MEMORIES[memory],
        predicted=tuple(np.max(reserved, axis=0).tolist()),
        simulated=tuple(simulated.tolist()),
        fullest=int(simulated.argmax()),
    )


def rows_held(run: TableRun) -> tuple[FloatArray, FloatArray]:
    """Rows in HBM and on the host after every step, float arrays [steps, ranks of the split].

    A sample's rows are scaled up; as its last bucket is never whole, they are capped at the rank's
    slots.
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
    """Bytes of one shard's rows in HBM and on the host, with their metadata."""
    job, shape = run.job, run.job.shape
    row = job.row_bytes(shard.columns[1] - shard.columns[0], plan.model.workload.trains)
    if job.table.kind == "dynamicemb":
        near = shape.hbm_buckets * (shape.hbm_slots > 0)
        far = shape.host_buckets * (shape.host_slots > 0)
        slots = near * shape.hbm_bucket + far * shape.host_bucket
        slot = SLOT_BYTES + SCORE_BYTES * (job.table.score_words - 1) + COUNTER_BYTES
        extra = slot * slots + BUCKET_BYTES * (near + far)
        counted = job.table.admission_capacity or 0
        extra += admission_counter(counted, job.table.admission_bucket_capacity)
        elsewhere = shape.mode == "CACHING" and job.table.external_storage is not None
        return held * row + extra, 0.0 if elsewhere else hosted * row
    assert shard.rows is not None
    rows = shard.rows[1] - shard.rows[0]
    on_device, with_rows = job.state_bytes(
        shard.columns[1] - shard.columns[0], plan.model.workload.trains
    )
    if shape.mode == "HBM_ONLY":
        return rows * (row + on_device + with_rows), 0.0
    extra = CACHE_ROW_BYTES * rows + CACHE_SLOT_BYTES * shape.hbm_slots
    cache = held * row + extra if shape.mode == "CACHING" else 0.0
    return cache + rows * on_device, rows * (row + with_rows)


class _Store(NamedTuple):
    """A table in a key-value store; arrays [shards]."""

    bytes: StoreBytes
    slots: IntArray

    @property
    def row(self) -> IntArray:
        """Bytes of a row, array [shards]; with optimizer state only if that is kept in the row."""
        return self.bytes.cache // self.slots

    def near(self, shard: int, held: float) -> float:
        """Bytes of HBM of one shard that holds so many rows in its cache."""
        full = min(held / self.slots[shard], 1.0)
        return float(full * self.bytes.cache[shard] + self.bytes.indices[shard]) + float(
            self.bytes.state[shard]
        )


def _store(plan: Plan, run: TableRun) -> _Store | None:
    """What the runtime allocates for a table in a key-value store; None for other tables."""
    placed, table = run.job.placed, run.job.table
    on_ssd = placed.mode == "SSD"
    if not (on_ssd or (table.key_value.virtual and placed.mode == "CACHING")):
        return None
    alone = table_columns(plan.model.model_copy(update={"tables": (table,)}))
    shards = plan.shards(table.name)
    rows = np.array([stop - start for start, stop in (s.rows or (0, 0) for s in shards)])
    columns = np.array([stop - start for start, stop in (s.columns for s in shards)])
    of, element = np.zeros(len(shards), np.int64), np.array(table.element_bytes)
    ratio = np.array(placed.cache_ratio.numerator), np.array(placed.cache_ratio.denominator)
    cap = cache_mebibytes(rows.max(), columns.max(), element, ratio)
    slots = cache_slots(rows, columns, element, cap)
    slot = slot_bytes(plan.model.workload)
    found = allocated(alone, of, (rows, columns), slots, slot, np.array(on_ssd))
    return _Store(found, slots)


def _buffers(
    plan: Plan, run: TableRun, shard: PlacedShard, part: int, bags: float
) -> tuple[float, float]:
    """Bytes of the ids that one shard received in its fullest step, and of the returned embeddings.

    Counted as in the ledger at the moment when embeddings are sent.
    """
    job, workload = run.job, plan.model.workload
    ids = float(run.ids[:, part].max())
    rows = ids if job.table.output == "sequence" else bags * job.senders
    returned = rows * (shard.columns[1] - shard.columns[0]) * job.table.output_bytes
    in_flight = batches_in_flight(workload)
    if job.placed.sharding_type == "data_parallel" or plan.instance.num_ranks == 1:
        return in_flight * ID_BYTES * ids, 0.0
    pooled = job.table.output == "pooled"
    wire, element = wire_bytes(workload, job.table)[0], job.table.output_bytes
    factor, clamped = workload.codec_peak_factor, workload.codec == "stock" and wire != element
    if factor is None:
        over, under = send_share(np.array(wire), np.array(element), workload.codec == "stock")
        factor = 1.0 + float(over / under)
    sent = 1.0
    if pooled:
        summed = job.placed.sharding_type == "row_wise"
        sent = 0.0 if summed or clamped else wire / element
    lengths = LENGTHS * workload.batch_per_rank * plan.instance.num_ranks * job.table.num_features
    copies = in_flight * (1 if pooled else 2)
    return copies * (ID_BYTES * ids + lengths), returned * (factor + sent)


@dataclass(frozen=True, eq=False)
class RankLoads:
    """Loads of all tables together, over the last steps that every table has; float arrays."""

    ids: FloatArray
    exchange: FloatArray
    host_link: FloatArray
    """Ids received; bytes of ids received and embeddings sent; bytes between host and HBM; array
    [steps, ranks]."""
    expected_ids: FloatArray
    expected_exchange: FloatArray
    """Expected by pricing, per step. Hot rows with unknown ids are charged to every rank of the
    table, since any of them may be the busiest; array [ranks]."""
    even_ids: float
    """Ids per step on each rank if no row were hot."""
    table_link: FloatArray
    """Bytes per step between host and HBM by table, over all ranks and steps; array [tables]."""


def loads_of(plan: Plan, runs: list[TableRun], outputs: FloatArray) -> RankLoads:
    """The load of every rank from the simulated tables; arguments as in :func:`memory_of`."""
    ranks, steps = plan.cluster.num_ranks, min(len(run.steps) for run in runs)
    ids, exchange, link = np.zeros((3, steps, ranks))
    expected_ids, expected_exchange = np.zeros((2, ranks))
    even, table_link = 0.0, np.zeros(len(runs))
    for index, (run, bags) in enumerate(zip(runs, outputs.tolist(), strict=True)):
        rank, part = run.job.holders(ranks).T
        shards = plan.shards(run.job.table.name)
        columns = np.array([stop - start for start, stop in (s.columns for s in shards)])
        received, expected = run.ids[-steps:, part], run.job.expected_ids[part]
        store = _store(plan, run)
        row = [run.job.row_bytes(w, plan.model.workload.trains) for w in columns.tolist()]
        moved = _rows_moved(plan, run)[:, part] * (np.array(row) if store is None else store.row)
        np.add.at(ids.T, rank, received.T)
        np.add.at(exchange.T, rank, _exchanged(plan, run, received, bags, columns).T)
        np.add.at(link.T, rank, moved[-steps:].T)
        np.add.at(expected_ids, rank, expected)
        np.add.at(expected_exchange, rank, _exchanged(plan, run, expected, bags, columns))
        even += run.job.even_ids * len(rank) / ranks
        table_link[index] = moved.mean(axis=0).sum()
    return RankLoads(ids, exchange, link, expected_ids, expected_exchange, even, table_link)


def hottest(ids: FloatArray) -> FloatArray:
    """Ids of the busiest rank over the mean, from the ids of every rank [..., ranks]."""
    return np.asarray(ids.max(axis=-1) / np.maximum(ids.mean(axis=-1), 1e-12))


def _rows_moved(plan: Plan, run: TableRun) -> FloatArray:
    """Rows per step between host and HBM, float array [steps, ranks of the split].

    HYBRID and HOST_ONLY read a row on the host and, in training, write it back; HYBRID also moves
    rows evicted from HBM. CACHING fetches missing rows and writes back evicted ones. A row seen for
    the first time is fetched as well if it is in an array (TorchRec); a hash table creates it in
    HBM. TorchRec's kernel on host memory reads a row for every id, as pricing charges; all others
    move each distinct row of a batch once. Nothing moves without HBM.
    """
    job, training = run.job, plan.model.workload.trains
    mode, array = job.placed.mode, job.placed.kind == "torchrec"
    mode = "CACHING" if mode == "SSD" else mode
    if plan.cluster.cpu_only:
        return np.zeros((len(run.steps), job.ranks))
    uses = 2.0 if training and mode != "CACHING" else 1.0
    if array and mode == "HOST_ONLY":
        return uses * run.ids
    rows = np.array([step.host_hits for step in run.steps]) * uses
    if mode in TIERED:
        rows += np.array([step.evicted for step in run.steps])
    if array and mode == "CACHING":
        rows += np.array([step.new for step in run.steps])
    return np.asarray(rows * (len(run.steps) / run.batches / run.rate))


def _exchanged(
    plan: Plan, run: TableRun, ids: FloatArray, bags: float, columns: IntArray
) -> FloatArray:
    """Bytes of ids received and embeddings sent, from the ids of every shard [..., shards].

    Replicas exchange nothing, and neither does a single rank.
    """
    job, wire = run.job, wire_bytes(plan.model.workload, run.job.table)[0]
    if job.placed.sharding_type == "data_parallel" or plan.instance.num_ranks == 1:
        return np.zeros_like(ids)
    rows = ids if job.table.output == "sequence" else np.full_like(ids, bags * job.senders)
    return np.asarray(ID_BYTES * ids + rows * columns * wire)
