"""Bounds from the model over pooled places, with integer options."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from formulations.clock import Limits
from formulations.cpsat import Answer, Asked, Found, solve_cpsat
from formulations.instance import Instance
from formulations.model.build import Model, build
from formulations.model.partition import by_class, by_machine
from formulations.model.parts import Parts
from formulations.model.placements import chosen_machines, chosen_options
from formulations.result.outcome import BoundSource


@dataclass(frozen=True, eq=False)
class PooledBound:
    """Bound and choice of a pooled integer program.

    Attributes
    ----------
    bound : int or None
        No plan with the options kept, and within ``limit``, costs less; None: no bound.
    infeasible : bool
        Whether no such plan exists.
    source : BoundSource
    options : int64 array [tables] or None
        Option per table of the best solution.
    value : int or None
        Its objective.
    work : float
        CP-SAT's deterministic time.
    machines : int64 array [tables] or None
        Machine of each table in that solution, −1: several; None: machines are not distinguished.
    """

    bound: int | None
    infeasible: bool
    source: BoundSource
    options: np.ndarray | None
    value: int | None
    work: float = 0.0
    machines: np.ndarray | None = None


def pooled_ip(instance: Instance, limits: Limits, parts: Parts | None = None) -> PooledBound:
    """Solve the program with ranks of one kind pooled, with largest-shard rows, by CP-SAT.

    HiGHS's bounds for this program were wrong by up to 4% (docs/bounds.md).

    Parameters
    ----------
    instance : Instance
    limits : Limits
    parts : Parts, optional
    """
    model = build(instance, by_class(instance), parts)
    answer = solve_cpsat(model.linear, limits)
    return _result(model, answer, BoundSource("cpsat pooled", exact=True))


def machine_ip(
    instance: Instance, limits: Limits, parts: Parts | None = None, asked: Asked | None = None
) -> PooledBound:
    """Solve the program with ranks pooled within each machine only, by CP-SAT.

    Parameters
    ----------
    instance : Instance
    limits : Limits
    parts : Parts, optional
    asked : Asked, optional
        How to call CP-SAT; it follows the linear program in any case.
    """
    model = build(instance, by_machine(instance), parts)
    answer = solve_cpsat(model.linear, limits, asked=replace(asked or Asked(), follow_lp=True))
    result = _result(model, answer, BoundSource("cpsat machines", exact=True))
    if answer.values is None:
        return result
    return replace(result, machines=chosen_machines(model, answer.values))


def _result(model: Model, answer: Answer, source: BoundSource) -> PooledBound:
    options = None if answer.values is None else chosen_options(model, answer.values)
    infeasible = answer.status == Found.INFEASIBLE
    return PooledBound(answer.bound, infeasible, source, options, answer.value, answer.work)
