"""How evenly a simulated plan's ids load the ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.simulator.one_table import TableRun
from milp_planner.pricing.units import FloatArray


@dataclass(frozen=True, eq=False)
class RankLoads:
    """Ids of all tables together, over the last steps that every table has."""

    ids: FloatArray
    """Ids received; float array [steps, ranks]."""
    expected: FloatArray
    """Expected by pricing, per step. Hot rows with unknown ids are charged to every rank of the
    table, since any of them may be the busiest; float array [ranks]."""
    even: float
    """Ids per step on each rank if no row were hot."""


def loads_of(runs: list[TableRun], ranks: int) -> RankLoads:
    """The load of every rank from the simulated tables."""
    steps = min(len(run.steps) for run in runs)
    ids, expected, even = np.zeros((steps, ranks)), np.zeros(ranks), 0.0
    for run in runs:
        rank, part = run.job.holders(ranks).T
        np.add.at(ids.T, rank, run.ids[-steps:, part].T)
        np.add.at(expected, rank, run.job.expected_ids[part])
        even += run.job.even_ids * len(rank) / ranks
    return RankLoads(ids, expected, even)


def hottest(ids: FloatArray) -> FloatArray:
    """Ids of the busiest rank over the mean, from the ids of every rank [..., ranks]."""
    return np.asarray(ids.max(axis=-1) / np.maximum(ids.mean(axis=-1), 1e-12))


def rows_held(run: TableRun) -> FloatArray:
    """Rows in HBM after every step; float array [steps, ranks of the split].

    A sample's rows are scaled up; as its last bucket is never whole, they are capped at the rank's
    slots.
    """
    held = np.array([step.in_hbm for step in run.steps]) / run.rate
    return np.minimum(held, run.job.shape.hbm_buckets * run.job.shape.hbm_bucket)
