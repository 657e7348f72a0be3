"""Hand a :class:`LinearModel` to CP-SAT: exact in integers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.aggregate.linear import FREE, LinearModel
from formulations.instance import IntArray

#: Seconds between two solutions handed on while the search runs.
_TELL = 1.0


@dataclass(frozen=True)
class Limits:
    """How long CP-SAT may search.

    Attributes
    ----------
    seconds : float or None
        Wall clock.
    work : float or None
        Deterministic time.
    workers, seed : int
    stop : threading.Event or None
        Ends the search when set.
    gap : float
        Relative gap at which to stop.
    improve : bool
        Only improve the hint, a whole solution, by large-neighbourhood search: nothing is proved.
    """

    seconds: float | None = None
    work: float | None = None
    workers: int = 1
    seed: int = 0
    stop: threading.Event | None = None
    gap: float = 0.0
    improve: bool = False


@dataclass(frozen=True, eq=False)
class CpsatResult:
    """What CP-SAT found.

    Attributes
    ----------
    status : str
        ``optimal``, ``feasible``, ``infeasible`` or ``unknown``.
    objective : int or None
    bound : int or None
        No solution of the model costs less.
    values : int64 array [columns] or None
    work : float
        Deterministic time spent.
    """

    status: str
    objective: int | None
    bound: int | None
    values: IntArray | None
    work: float


def solve_cpsat(
    model: LinearModel,
    limits: Limits,
    hint: Mapping[int, int] | None = None,
    on_values: Callable[[IntArray], object] | None = None,
) -> CpsatResult:
    """Minimise a model whose columns are all integers.

    Parameters
    ----------
    model : LinearModel
    limits : Limits
    hint : mapping of column to value, optional
    on_values : callable, optional
        Called with better solutions as they are found, about one a second.
    """
    from ortools.sat.python import cp_model

    built, columns = _build(cp_model, model)
    if hint is not None:
        for column, value in hint.items():
            built.add_hint(columns[column], value)
    solver = _solver(cp_model, limits)
    told = None if on_values is None else _teller(cp_model, columns, on_values)
    watcher = _Watcher(solver, limits.stop, told)
    status = {
        cp_model.OPTIMAL: "optimal",
        cp_model.FEASIBLE: "feasible",
        cp_model.INFEASIBLE: "infeasible",
    }.get(watcher.solve(built), "unknown")
    found = status in ("optimal", "feasible")
    values = np.asarray([solver.value(c) for c in columns], dtype=np.int64) if found else None
    bound = None
    if status != "infeasible":
        bound = model.offset + (round(solver.best_objective_bound) if model.objective else 0)
    return CpsatResult(
        status=status,
        objective=_objective(model, values),
        bound=bound,
        values=values,
        work=float(solver.response_proto.deterministic_time),
    )


def _objective(model: LinearModel, values: IntArray | None) -> int | None:
    if values is None:
        return None
    return model.offset + sum(c * int(values[v]) for v, c in model.objective.items())


def _build(cp_model: Any, model: LinearModel) -> tuple[Any, list[Any]]:
    built = cp_model.CpModel()
    columns = [
        built.new_int_var(lower, upper, "")
        for lower, upper in zip(model.lower, model.upper, strict=True)
    ]
    rows = model.rows()
    for index in range(model.num_rows):
        span = slice(int(rows.start[index]), int(rows.start[index + 1]))
        terms = [columns[c] for c in rows.column[span].tolist()]
        total = cp_model.LinearExpr.weighted_sum(terms, rows.coefficient[span].tolist())
        low, high = int(rows.low[index]), int(rows.high[index])
        if high >= FREE:
            built.add(total >= low)
        elif low <= -FREE:
            built.add(total <= high)
        else:
            built.add_linear_constraint(total, low, high)
    if model.objective:
        terms = [columns[c] for c in model.objective]
        built.minimize(cp_model.LinearExpr.weighted_sum(terms, list(model.objective.values())))
    return built, columns


def _solver(cp_model: Any, limits: Limits) -> Any:
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers = limits.workers
    parameters.random_seed = limits.seed % 2**31
    parameters.relative_gap_limit = limits.gap
    parameters.use_lns_only = limits.improve
    if limits.seconds is not None and np.isfinite(limits.seconds):
        parameters.max_time_in_seconds = max(0.01, limits.seconds)
    if limits.work is not None:
        parameters.max_deterministic_time = max(1e-3, limits.work)
    return solver


def _teller(cp_model: Any, columns: list[Any], on_values: Callable[[IntArray], object]) -> Any:
    """A callback that hands solutions on, not more often than every ``_TELL`` seconds."""

    class Teller(cp_model.CpSolverSolutionCallback):
        last = -_TELL

        def on_solution_callback(self) -> None:
            if self.wall_time - self.last >= _TELL:
                self.last = self.wall_time
                on_values(np.asarray([self.value(c) for c in columns], dtype=np.int64))

    return Teller()


class _Watcher:
    """Stops a solver when the caller's event is set."""

    def __init__(self, solver: Any, stop: threading.Event | None, told: Any) -> None:
        self._solver, self._stop, self._told = solver, stop, told
        self._done = threading.Event()

    def solve(self, model: Any) -> Any:
        if self._stop is None:
            return self._solver.solve(model, self._told)
        thread = threading.Thread(target=self._watch, daemon=True)
        thread.start()
        try:
            return self._solver.solve(model, self._told)
        finally:
            self._done.set()
            thread.join()

    def _watch(self) -> None:
        assert self._stop is not None
        while not self._done.wait(0.05):
            if self._stop.is_set():
                self._solver.stop_search()
