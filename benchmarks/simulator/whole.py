"""Simulate a whole plan, and compare its predictions with the simulation."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.simulator.one_table import (
    TableRun,
    check_trace,
    job_of,
    replay_table,
    simulate_table,
)
from benchmarks.simulator.places import hottest, loads_of, rows_held
from milp_planner.errors import BadInput
from milp_planner.files import Facts
from milp_planner.plans.placement import Plan
from milp_planner.pricing.job import traffic_of
from milp_planner.pricing.options import TIERED
from milp_planner.pricing.popularity import distinct_rows
from milp_planner.pricing.units import FloatArray, IntArray
from milp_planner.request import Limits


@dataclass(frozen=True)
class TableInfo:
    """One table, predicted and simulated."""

    name: str
    mode: str
    cache_ratio: str
    """Mode and cache ratio as placed."""
    sampled: float
    """Share of the rows in the simulated sample; 1 if every row was simulated."""
    exchange_part: float
    """Share of each rank's lookups in the simulated exchange; below 1, its de-duplicated ids are an
    upper estimate."""
    warmup: float
    """Lookups per row before counting began."""
    predicted_hit: float
    hit_source: str
    """Hit ratio used by pricing, and its source (formula, table, unchecked, curve, none)."""
    hit: float | None
    unique_hit: float | None
    """Simulated share of lookups, and of a batch's distinct rows, served from HBM."""
    predicted_unique_fraction: float
    unique_fraction: float | None
    """Distinct rows of a global batch over its lookups."""
    predicted_ids: float
    ids: float
    """Ids per step on the busiest rank."""
    predicted_hot: float
    hot: float
    hot_peak: float
    """Busiest rank over the mean: predicted, simulated over all batches, and in the worst batch."""
    predicted_slots: float
    held: float
    """Rows that fit in a rank's HBM, and the most that any rank held (see :func:`rows_held`)."""
    evicted: float
    lost: float
    bypassed: float
    """Rows per step evicted from HBM, evicted from the host, and not cached for lack of a slot."""
    rank_hit: tuple[float | None, ...]
    """Hit ratio of each rank of the split."""
    growth: tuple[float, ...]
    """Rows in HBM after each counted batch, over all ranks."""
    hot_over_time: tuple[float, ...]
    """Busiest rank over the mean in each counted batch."""
    hit_over_time: tuple[float, ...]
    """Hit ratio of each counted batch; empty unless the mode is tiered."""
    evicted_over_time: tuple[float, ...]
    """Rows evicted from HBM in each counted batch."""


@dataclass(frozen=True)
class SimulationInfo(Facts):
    """The result of simulating a plan."""

    name: str
    """Names of model and cluster."""
    batches: int
    seed: int
    tables: tuple[TableInfo, ...]
    rank_ids: tuple[float, ...]
    """Ids per step on each rank over all tables, averaged over batches."""
    predicted_hot: float
    hot: float
    hot_peak: float
    """Ids of the busiest rank over the mean, over all tables: predicted, over all batches, and in
    the worst batch."""
    hot_over_time: tuple[float, ...]
    """The same in each of the last batches that every table has."""
    left: int = 0
    """Number of tables not simulated for lack of time; totals cover the others."""


def simulate_plan(
    plan: Plan,
    batches: int = 20,
    seed: int = 0,
    traces: Mapping[str, IntArray] | None = None,
    on_table: Callable[[str], None] = lambda _: None,
    time_limit: float | None = None,
) -> SimulationInfo:
    """Replay lookups through every table of a plan.

    Parameters
    ----------
    plan : Plan
    batches : int
        Steps to count, after warming the tiers up with 30 lookups per row.
    seed : int
    traces : mapping of table name to int64 array, optional
        Keys in order, to be replayed instead of lookups drawn from the table's statistics.
    on_table : callable
        Called with the name of each table when it is done.
    time_limit : float, optional
        Seconds after which no further table is begun. Tables whose rows move between tiers come
        first, then those with the most lookups. At least one table is simulated.

    Raises
    ------
    BadInput
        If the plan has no placement; if a trace names no table of the
        plan or cannot be replayed (see :func:`benchmarks.simulator.one_table.check_trace`).
    """
    Limits.of({"time_limit": time_limit})
    if not plan.tables:
        raise BadInput("the plan places no table (none was found); there is nothing to simulate")
    traces = traces or {}
    names = [table.name for table in plan.tables]
    for name in traces:
        if name not in names:
            raise BadInput(f"--trace: no table {name!r} in the plan; there are: {', '.join(names)}")
    traffic = traffic_of(plan.model, plan.cluster.num_ranks, needs_distinct=False)
    jobs = [job_of(plan, index, traffic) for index in range(len(names))]
    for job in jobs:
        if job.table.name in traces:
            check_trace(job, traces[job.table.name])
    runs: dict[int, TableRun] = {}
    end = None if time_limit is None else time.perf_counter() + time_limit
    tiered = [job.placed.mode in TIERED for job in jobs]
    for index in sorted(range(len(jobs)), key=lambda i: (not tiered[i], -jobs[i].lookups)):
        job, name = jobs[index], names[index]
        if runs and end is not None and time.perf_counter() > end:
            break
        if name in traces:
            runs[index] = replay_table(job, traces[name], batches)
        else:
            runs[index] = simulate_table(job, batches, seed)
        on_table(name)
    done = sorted(runs)
    return _info(plan, [runs[i] for i in done], batches, seed)


def _info(plan: Plan, runs: list[TableRun], batches: int, seed: int) -> SimulationInfo:
    loads = loads_of(runs, plan.cluster.num_ranks)
    hot = hottest(loads.ids)
    return SimulationInfo(
        name=f"{plan.model.name} on {plan.cluster.name}",
        batches=batches,
        seed=seed,
        tables=tuple(map(_table_info, runs)),
        rank_ids=tuple(loads.ids.mean(axis=0).tolist()),
        predicted_hot=float(loads.expected.max()) / loads.even,
        hot=_uneven(loads.ids),
        hot_peak=float(hot.max()),
        hot_over_time=tuple(hot.tolist()),
        left=len(plan.tables) - len(runs),
    )


def _uneven(ids: FloatArray) -> float:
    """Busiest rank over the mean, from the ids of all batches [batches, ranks]."""
    return float(hottest(ids.sum(axis=0)))


def _table_info(run: TableRun) -> TableInfo:
    job, total, hot, held = run.job, run.total, hottest(run.ids), rows_held(run)
    tiered = job.placed.mode in TIERED
    asked, lookups = total.lookups > 0, job.lookups * job.senders
    distinct = distinct_rows(job.table.access, job.table.rows, job.lookups, job.senders)
    ratios = np.where(asked, total.hits / np.maximum(total.lookups, 1), np.nan)

    def each(rows: IntArray) -> float:
        return float(rows.sum()) / run.batches / run.rate

    return TableInfo(
        name=job.table.name,
        mode=job.placed.mode,
        cache_ratio=str(job.placed.cache_ratio),
        sampled=run.rate,
        exchange_part=run.part,
        warmup=run.warmed,
        predicted_hit=job.predicted_hit,
        hit_source=job.source,
        hit=total.hit_ratio if tiered else None,
        unique_hit=total.unique_hit_ratio if tiered else None,
        predicted_unique_fraction=distinct / lookups,
        unique_fraction=total.unique_fraction if run.rate == 1 else None,
        predicted_ids=float(job.expected_ids.max()),
        ids=float(run.ids.mean(axis=0).max()),
        predicted_hot=float(job.expected_ids.max()) / job.even_ids,
        hot=_uneven(run.ids),
        hot_peak=float(hot.max()),
        predicted_slots=float(job.shape.hbm_buckets * job.shape.hbm_bucket),
        held=float(held.max()),
        evicted=each(total.evicted),
        lost=each(total.dropped),
        bypassed=each(total.bypassed),
        rank_hit=tuple(None if np.isnan(r) else float(r) for r in ratios) if tiered else (),
        growth=tuple(held.sum(axis=1).tolist()),
        hot_over_time=tuple(hot.tolist()),
        hit_over_time=tuple(step.hit_ratio for step in run.steps) if tiered else (),
        evicted_over_time=tuple(each(step.evicted) * len(run.steps) for step in run.steps),
    )
