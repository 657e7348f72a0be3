"""Bounds from aggregate integer programs: options whole, places pooled."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np

from formulations.aggregate.cells import by_machine
from formulations.aggregate.cpsat import Limits, solve_cpsat
from formulations.aggregate.highs import solve_highs
from formulations.aggregate.model import Aggregate, AggregateSettings, build
from formulations.instance import Instance
from formulations.outcome import BoundSource

#: Share of a floating-point bound given up, since HiGHS accepts rows broken by its tolerance.
_SAFETY = 1e-6


@dataclass(frozen=True, eq=False)
class PooledBound:
    """What an aggregate integer program proved, and chose.

    Attributes
    ----------
    bound : int or None
        No plan (with the options kept, and cheaper than ``upper``) costs less; None: nothing.
    infeasible : bool
        No plan (likewise) exists.
    source : BoundSource
    options : int64 array [tables] or None
        Option per table of the best aggregate solution.
    value : int or None
        Its objective.
    """

    bound: int | None
    infeasible: bool
    source: BoundSource
    options: np.ndarray | None
    value: int | None
    work: float = 0.0


def pooled_ip(
    instance: Instance,
    settings: AggregateSettings | None = None,
    seconds: float | None = None,
    workers: int = 1,
    stop: threading.Event | None = None,
) -> PooledBound:
    """Options whole, ranks of one kind pooled, largest-shard rows; by HiGHS (floating point).

    Parameters
    ----------
    instance : Instance
    settings : AggregateSettings, optional
        ``typical`` should be near the optimum, such as the LP bound.
    seconds : float, optional
    workers : int
    stop : threading.Event, optional
        Ends it when set.
    """
    aggregate = build(instance, settings)
    result = solve_highs(
        aggregate.model, whole=True, time_limit=seconds, workers=workers, stop=stop
    )
    bound = None
    if result.bound is not None:
        bound = int(np.ceil(result.bound - _SAFETY * max(1.0, abs(result.bound))))
    options, value = None, None
    if result.values is not None:
        options = _chosen(instance, aggregate, result.values)
        value = int(result.objective or 0)
    return PooledBound(
        bound, result.status == "infeasible", BoundSource("highs pooled", exact=False),
        options, value,
    )  # fmt: skip


def exact_pooled_ip(
    instance: Instance, limits: Limits, settings: AggregateSettings | None = None
) -> PooledBound:
    """The same by CP-SAT, exact in integers; slower where memory is tight."""
    return _by_cpsat(instance, build(instance, settings), limits, "cpsat pooled")


def machine_ip(
    instance: Instance, limits: Limits, settings: AggregateSettings | None = None
) -> PooledBound:
    """Options whole and every machine by itself, ranks pooled only within it; by CP-SAT."""
    from dataclasses import replace

    settings = replace(settings or AggregateSettings(), cells=by_machine(instance))
    return _by_cpsat(instance, build(instance, settings), limits, "cpsat machines")


def _by_cpsat(instance: Instance, aggregate: Aggregate, limits: Limits, method: str) -> PooledBound:
    result = solve_cpsat(aggregate.model, limits)
    options = None
    if result.values is not None:
        options = _chosen(instance, aggregate, result.values)
    return PooledBound(
        result.bound, result.status == "infeasible", BoundSource(method, exact=True),
        options, result.objective, result.work,
    )  # fmt: skip


def _chosen(instance: Instance, aggregate: Aggregate, values: np.ndarray) -> np.ndarray | None:
    options = np.full(instance.num_tables, -1, dtype=np.int64)
    for option, column in aggregate.column_of.items():
        if values[column] > 0.5:
            options[instance.table_of[option]] = option
    return None if (options < 0).any() else options
