"""What every rank receives, exchanges and moves over its host link, step by step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from milp_planner.features.simulate.table import TableRun
from milp_planner.plans.placement import Plan
from milp_planner.pricing.exchange import wire_bytes
from milp_planner.pricing.storage import ID_BYTES
from milp_planner.pricing.units import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class RankLoads:
    """All tables together, of the last steps that every table has counted; float arrays.

    Attributes
    ----------
    ids, exchange, host_link : array [steps, ranks]
        Ids received; bytes of ids in and embeddings out; bytes between host and HBM.
    expected_ids, expected_exchange : array [ranks]
        What pricing expects a step. It charges hot rows whose ids are not known to every rank of
        the table, since any of them may be the busiest.
    even_ids : float
        Ids a step on each rank if no row were hot.
    table_link : array [tables]
        Bytes a step between host and HBM of each table, all ranks and all its steps.
    """

    ids: FloatArray
    exchange: FloatArray
    host_link: FloatArray
    expected_ids: FloatArray
    expected_exchange: FloatArray
    even_ids: float
    table_link: FloatArray


def loads_of(plan: Plan, runs: list[TableRun], outputs: FloatArray) -> RankLoads:
    """Loads of every rank, from the simulated tables.

    Parameters
    ----------
    plan : Plan
    runs : list of TableRun
        One a table, in the plan's order.
    outputs : float array [tables]
        Embeddings of pooled outputs that one rank's batch asks for.
    """
    ranks, steps = plan.cluster.num_ranks, min(len(run.steps) for run in runs)
    ids, exchange, link = np.zeros((3, steps, ranks))
    expected_ids, expected_exchange = np.zeros((2, ranks))
    even, table_link = 0.0, np.zeros(len(runs))
    for index, (run, bags) in enumerate(zip(runs, outputs.tolist(), strict=True)):
        rank, part = run.job.holders(ranks).T
        shards = plan.shards(run.job.table.name)
        columns = np.array([stop - start for start, stop in (s.columns for s in shards)])
        received, expected = run.ids[-steps:, part], run.job.expected_ids[part]
        moved = _rows_moved(plan, run)[:, part] * _row_bytes(plan, run, columns)
        np.add.at(ids.T, rank, received.T)
        np.add.at(exchange.T, rank, _exchanged(plan, run, received, bags, columns).T)
        np.add.at(link.T, rank, moved[-steps:].T)
        np.add.at(expected_ids, rank, expected)
        np.add.at(expected_exchange, rank, _exchanged(plan, run, expected, bags, columns))
        even += run.job.even_ids * len(rank) / ranks
        table_link[index] = moved.mean(axis=0).sum()
    return RankLoads(ids, exchange, link, expected_ids, expected_exchange, even, table_link)


def hottest(ids: FloatArray) -> FloatArray:
    """Ids of the busiest rank over the mean, from those of every rank [..., ranks]."""
    return np.asarray(ids.max(axis=-1) / np.maximum(ids.mean(axis=-1), 1e-12))


def _rows_moved(plan: Plan, run: TableRun) -> FloatArray:
    """Rows a step between host and HBM, float array [steps, ranks of the split].

    HYBRID and HOST_ONLY read a row on the host and, in training, write it back; CACHING fetches
    what is missing and writes back what it evicts; HYBRID moves what HBM pushes out. A row seen
    for the first time is fetched too where it lies in an array (TorchRec); a hash table makes it in
    HBM. TorchRec's kernel on host memory reads a row for every id, as pricing charges; all others
    move each different row of a batch once. Nothing moves without HBM.
    """
    job, training = run.job, plan.model.workload.mode == "training"
    mode, array = job.placed.mode, job.placed.kind == "torchrec"
    if all(rank.hbm_bytes == 0 for rank in plan.cluster.ranks):
        return np.zeros((len(run.steps), job.ranks))
    uses = 2.0 if training and mode != "CACHING" else 1.0
    if array and mode == "HOST_ONLY":
        return uses * run.ids
    rows = np.array([step.host_hits for step in run.steps]) * uses
    if mode in ("HYBRID", "CACHING"):
        rows += np.array([step.evicted for step in run.steps])
    if array and mode == "CACHING":
        rows += np.array([step.new for step in run.steps])
    return np.asarray(rows * (len(run.steps) / run.batches / run.rate))


def _row_bytes(plan: Plan, run: TableRun, columns: IntArray) -> FloatArray:
    """Bytes of a row of each shard, with optimizer state in training."""
    training = plan.model.workload.mode == "training"
    return np.array([run.job.row_bytes(width, training) for width in columns.tolist()])


def _exchanged(
    plan: Plan, run: TableRun, ids: FloatArray, bags: float, columns: IntArray
) -> FloatArray:
    """Bytes of ids in and embeddings out, from the ids of every shard [..., shards].

    Replicas exchange nothing.
    """
    job, wire = run.job, wire_bytes(plan.model.workload, run.job.table)[0]
    if job.placed.sharding_type == "data_parallel":
        return np.zeros_like(ids)
    rows = ids if job.table.output == "sequence" else np.full_like(ids, bags * job.senders)
    return np.asarray(ID_BYTES * ids + rows * columns * wire)
