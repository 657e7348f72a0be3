"""Run CP-SAT on the model: limits, interruption, and what is recorded on the way."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from formulations.check import compute_loads, objectives
from formulations.cpsat_model.extract import extract
from formulations.cpsat_model.variables import Variables
from formulations.errors import InternalError
from formulations.instance import IntArray
from formulations.outcome import StoppedBy
from formulations.settings import Clock, Settings

#: How often a waiting solve looks at the caller's stop flag, seconds.
POLL = 0.05


#: CP-SAT's strategies that rely on the LP, best first.
_LP_WORKERS = (
    "max_lp", "reduced_costs", "pseudo_costs", "lb_tree_search", "default_lp", "core",
    "quick_restart",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Found:
    """What one CP-SAT run says.

    Attributes
    ----------
    status : int
        CP-SAT's own.
    values : int64 array [variables] or None
    bound : int or None
        On the model's (scaled) objective, exact.
    """

    status: int
    values: IntArray | None
    bound: int | None


def search(
    variables: Variables, settings: Settings, clock: Clock, seconds: float, scale: int | None
) -> Found:
    """Solve within a number of seconds, the caller's work limit and stop flag.

    Parameters
    ----------
    scale : int or None
        Factor from the model's objective to true costs for the trace; None: do not trace.

    Raises
    ------
    InternalError
        When CP-SAT calls the model invalid.
    """
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = max(1, settings.workers)
    if not variables.terms.var:
        _lean_on_the_lp(solver, settings.workers)
    solver.parameters.random_seed = settings.seed
    solver.parameters.catch_sigint_signal = False
    if seconds != float("inf"):
        solver.parameters.max_time_in_seconds = seconds
    if settings.work_limit is not None:
        solver.parameters.max_deterministic_time = settings.work_limit
    tracer = None
    if scale is not None:
        tracer = _Tracer(variables, clock)
        solver.best_bound_callback = lambda bound: _trace_bound(clock, bound, scale)
    status = _run(solver, variables.cp, settings.stop, tracer)
    if status == cp_model.MODEL_INVALID:
        raise InternalError(f"CP-SAT refuses the model: {variables.cp.validate()}")
    solved = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    values = None
    if solved:
        values = np.asarray(solver.response_proto.solution, dtype=np.int64)
    return Found(status, values, _bound(solver, status))


def _lean_on_the_lp(solver: cp_model.CpSolver, workers: int) -> None:
    """Where only options are chosen, the LP is nearly tight: let every worker follow it.

    On 1,000 tables × 20 options under two budgets this proved in 4 s what CP-SAT's own choice of
    two workers did not prove in 20 s (benchmarks/exact-scale).
    """
    solver.parameters.linearization_level = 2
    if 2 <= workers < 8:
        solver.parameters.subsolvers.extend(_LP_WORKERS[:workers])


def _run(
    solver: cp_model.CpSolver,
    model: cp_model.CpModel,
    stop: threading.Event,
    tracer: cp_model.CpSolverSolutionCallback | None,
) -> int:
    """Solve in a thread of its own, so that the caller's signals and stop flag are heard."""
    result: list[int | BaseException] = []

    def work() -> None:
        try:
            result.append(solver.solve(model, tracer) if tracer else solver.solve(model))
        except BaseException as error:  # handed to the caller below
            result.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(POLL)
            if stop.is_set():
                solver.stop_search()
    except BaseException:
        solver.stop_search()
        thread.join()
        raise
    if isinstance(result[0], BaseException):
        raise result[0]
    return result[0]


def _bound(solver: cp_model.CpSolver, status: int) -> int | None:
    """The best bound in integers: CP-SAT's own integer, not its floating-point image."""
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
        return None
    return int(solver.response_proto.inner_objective_lower_bound)


def _trace_bound(clock: Clock, bound: float, scale: int) -> None:
    """CP-SAT reports bounds as doubles: exact below 2^53, else rounded down safely."""
    whole = int(bound)
    if abs(whole) >= 2**53:
        whole -= abs(whole) >> 51
    clock.record(None, whole * scale, "cpsat")


class _Tracer(cp_model.CpSolverSolutionCallback):
    """Records every improving plan with its true objective, but never spends long on it."""

    def __init__(self, variables: Variables, clock: Clock) -> None:
        super().__init__()
        self._variables, self._clock = variables, clock
        self._spent = 0.0

    def on_solution_callback(self) -> None:
        """Called by CP-SAT at every improving solution."""
        if self._spent > 0.02 + 0.05 * self._clock.seconds():
            return
        start = time.perf_counter()
        solution = self.response_proto.solution
        placement = extract(self._variables, lambda i: int(solution[i]))
        loads = compute_loads(self._variables.instance, placement)
        value = objectives(loads)[self._variables.instance.objective.value]
        self._clock.record(value, None, "cpsat")
        self._spent += time.perf_counter() - start


def stopped_by(status: int, settings: Settings, clock: Clock) -> StoppedBy:
    """Why a run ended that proved nothing."""
    if status in (cp_model.OPTIMAL, cp_model.INFEASIBLE):
        return StoppedBy.PROOF
    if clock.interrupted():
        return StoppedBy.INTERRUPTED
    if clock.remaining() <= POLL or settings.work_limit is None:
        return StoppedBy.TIME_LIMIT
    return StoppedBy.WORK_LIMIT
