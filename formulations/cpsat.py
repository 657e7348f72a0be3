"""A linear model handed to CP-SAT: exact in integers (the formulation of that name is
:mod:`formulations.methods.exact`).

CP-SAT's presolve has given wrong bounds, wrong "optimal" and wrong "infeasible" on linear models
of ours (google/or-tools #5293, #5274; benchmarks/ortools-presolve), so it is off wherever a status
or a bound is used as a claim. Only :class:`Use` ``PLANS`` uses presolve: its plans are checked, and
its claims are ignored.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, StrEnum
from math import floor
from typing import Any

import numpy as np

from formulations.clock import Limits
from formulations.errors import UnsupportedInstance
from formulations.instance import IntArray
from formulations.model.linear import FREE, LinearModel, Matrix

#: Σ |coefficient| × range of a row must stay below 2^62 in CP-SAT; one bit is left for its slack.
MAX_ROW = 2**61
#: CP-SAT's strategies that rely on the LP, best first.
_LP_WORKERS = (
    "max_lp", "reduced_costs", "pseudo_costs", "lb_tree_search", "default_lp", "core",
    "quick_restart",
)  # fmt: skip
#: Seconds between two checks of the caller's stop flag while a solve waits.
POLL = 0.05


class Found(StrEnum):
    """Status that a solver reports; ``OPTIMAL`` and ``INFEASIBLE`` are its claims of a proof."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False)
class Answer:
    """The result of a solve.

    Attributes
    ----------
    status : Found
    value : int or None
        Objective of ``values``.
    bound : int or None
        No solution of the model costs less.
    values : int64 array [columns] or None
    work : float
        Deterministic work spent.
    done : bool
        Whether the solver ended by itself, not at a limit.
    relaxed : bool
        Whether rows beyond 62 bits were weakened: a solution may break them.
    """

    status: Found
    value: int | None = None
    bound: int | None = None
    values: IntArray | None = None
    work: float = 0.0
    done: bool = False
    relaxed: bool = False


_STATUS = {
    "OPTIMAL": Found.OPTIMAL,
    "FEASIBLE": Found.FEASIBLE,
    "INFEASIBLE": Found.INFEASIBLE,
    "UNKNOWN": Found.UNKNOWN,
}


def solver() -> dict[str, Any]:
    """Name and version, as an Outcome records them."""
    from ortools import __version__

    return {"solver": "CP-SAT", "version": str(__version__)}


class Use(Enum):
    """The use of the result."""

    CLAIMS = "claims"
    PLANS = "plans"


@dataclass(frozen=True)
class Asked:
    """How to call CP-SAT.

    Attributes
    ----------
    use : Use
    follow_lp : bool
        Let every worker follow the LP: it is nearly tight where only options are chosen.
    first : bool
        Whether to end with the first solution.
    on_values : callable, optional
        Called with every better solution.
    on_bound : callable, optional
        Called with every better bound.
    """

    use: Use = Use.CLAIMS
    follow_lp: bool = False
    first: bool = False
    on_values: Callable[[IntArray], object] | None = None
    on_bound: Callable[[int], object] | None = None


def solve_cpsat(
    model: LinearModel, limits: Limits, hint: IntArray | None = None, asked: Asked | None = None
) -> Answer:
    """Minimise a model.

    Parameters
    ----------
    model : LinearModel
    limits : Limits
    hint : int64 array [columns], optional
        A value for every column.
    asked : Asked, optional

    Returns
    -------
    Answer
        ``bound`` is CP-SAT's integer, in true cost (times ``model.scale``); None where the use
        allows no claim.

    Raises
    ------
    UnsupportedInstance
        When CP-SAT calls the model invalid: numbers exceed its 62 bits.
    """
    from ortools.sat.python import cp_model

    asked = asked or Asked()
    matrix = model.matrix()
    empty = np.diff(matrix.start) == 0
    if ((matrix.low > 0) | (matrix.high < 0))[empty].any():
        return Answer(Found.INFEASIBLE if asked.use == Use.CLAIMS else Found.UNKNOWN)
    built = cp_model.CpModel()
    relaxed = _fill(built.proto, model, matrix)
    if hint is not None:
        built.proto.solution_hint.vars.extend(range(model.num_columns))
        built.proto.solution_hint.values.extend(hint.tolist())
    solver = cp_model.CpSolver()
    _configure(solver.parameters, limits, asked)
    if asked.on_bound is not None:
        on_bound = asked.on_bound
        solver.best_bound_callback = lambda b: on_bound((_below(b) + model.offset) * model.scale)
    tracer = None if asked.on_values is None else _tracer(cp_model, asked.on_values)
    status = _run_until(lambda: solver.solve(built, tracer), solver.stop_search, limits.stop)
    if status.name not in _STATUS:
        raise UnsupportedInstance(
            f"CP-SAT cannot hold these numbers in 62 bits, use a coarser unit ({built.validate()})"
        )
    return _answer(model, solver.response_proto, _STATUS[status.name], asked.use, relaxed)


def _run_until(
    work: Callable[[], Any], halt: Callable[[], None], stop: threading.Event | None
) -> Any:
    """Run a solver in a thread of its own, so that signals and the stop flag are handled.

    Parameters
    ----------
    work : callable
        Runs the solver; its exceptions are raised here.
    halt : callable
        Tells the solver to stop soon; may be called more than once.
    stop : threading.Event or None
    """
    result: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:  # raised again in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(POLL)
            if stop is not None and stop.is_set():
                halt()
    except BaseException:
        while thread.is_alive():
            halt()
            thread.join(POLL)
        raise
    if errors:
        raise errors[0]
    return result[0]


def _answer(model: LinearModel, response: Any, status: Found, use: Use, relaxed: bool) -> Answer:
    """Status, bound and values in integers, without claims that the use does not allow."""
    done = status in (Found.OPTIMAL, Found.INFEASIBLE)
    values = None
    if status in (Found.OPTIMAL, Found.FEASIBLE):
        values = np.asarray(response.solution, dtype=np.int64)
    bound = None
    if use != Use.CLAIMS:
        status = Found.UNKNOWN if values is None else Found.FEASIBLE
    elif status != Found.INFEASIBLE:
        bound = model.offset
        if len(model.cost_columns):
            bound += _proved(model, int(response.inner_objective_lower_bound), status)
        bound *= model.scale
    value = None if values is None else model.value(values) * model.scale
    if status == Found.OPTIMAL and value != bound:
        status = Found.FEASIBLE  # closed as doubles, or up to the gap asked for
    return Answer(
        status=status,
        value=value,
        bound=bound,
        values=values,
        work=float(response.deterministic_time),
        done=done,
        relaxed=relaxed,
    )


def _proved(model: LinearModel, inner: int, status: Found) -> int:
    """CP-SAT's integer bound; if it is 0, as before the search, at most what the columns imply."""
    if inner or status == Found.OPTIMAL:
        return inner
    upper = model.upper[model.cost_columns].tolist()
    least = sum(c * u for c, u in zip(model.cost.tolist(), upper, strict=True) if c < 0)
    return min(0, least)


def _fill(proto: Any, model: LinearModel, matrix: Matrix) -> bool:
    """Write columns, rows and objective; returns whether rows had to be weakened."""
    upper = model.upper
    for most in upper.tolist():
        proto.variables.add().domain.extend((0, most))
    coefficient, low, high, relaxed = _within_62_bits(matrix, upper)
    start = matrix.start.tolist()
    special = _special(matrix, coefficient, (low, high), upper)
    for row, (a, b) in enumerate(itertools.pairwise(start)):
        if a == b:
            continue
        columns = matrix.column[a:b].tolist()
        constraint = proto.constraints.add()
        if special[row] == _EXACTLY:
            constraint.exactly_one.literals.extend(columns)
        elif special[row] == _AT_MOST:
            constraint.at_most_one.literals.extend(columns)
        else:
            constraint.linear.vars.extend(columns)
            constraint.linear.coeffs.extend(coefficient[a:b].tolist())
            constraint.linear.domain.extend((int(low[row]), int(high[row])))
    if len(model.cost_columns):
        proto.objective.vars.extend(model.cost_columns.tolist())
        proto.objective.coeffs.extend(model.cost.tolist())
    return relaxed


_EXACTLY, _AT_MOST = 1, 2


def _special(
    matrix: Matrix, coefficient: IntArray, ends: tuple[IntArray, IntArray], upper: IntArray
) -> list[int]:
    """Rows that say that exactly one, or at most one, of some binaries is 1."""
    low, high = ends
    plain = (coefficient == 1) & (upper[matrix.column] == 1)
    length = np.diff(matrix.start)
    total = np.append(0, np.cumsum(plain))
    ones = (total[matrix.start[1:]] - total[matrix.start[:-1]] == length) & (high == 1)
    return np.where(ones & (low == 1), _EXACTLY, np.where(ones & (low <= 0), _AT_MOST, 0)).tolist()


def _within_62_bits(matrix: Matrix, upper: IntArray) -> tuple[IntArray, IntArray, IntArray, bool]:
    """Coefficients and limits of rows within CP-SAT's integers.

    A ≤ row that is too long is divided by a power of two, with its coefficients and limit rounded
    down. Because columns are nonnegative integers, whatever satisfied the row still does.
    """
    floats = np.abs(matrix.coefficient).astype(np.float64) * upper[matrix.column]
    row = np.repeat(np.arange(len(matrix.low)), np.diff(matrix.start))
    size = np.bincount(row, weights=floats, minlength=len(matrix.low))
    high = np.where(matrix.high >= FREE, np.iinfo(np.int64).max, matrix.high)
    low = np.where(matrix.low <= -FREE, np.iinfo(np.int64).min, matrix.low)
    for limit, free in ((matrix.low, matrix.low <= -FREE), (matrix.high, matrix.high >= FREE)):
        size = np.maximum(size, np.where(free, 0, np.abs(limit.astype(np.float64))))
    long = np.flatnonzero(size >= MAX_ROW)
    coefficient = matrix.coefficient.copy()
    for index in long.tolist():
        shift = int(np.ceil(np.log2(size[index] / MAX_ROW))) + 1
        span = slice(int(matrix.start[index]), int(matrix.start[index + 1]))
        coefficient[span] >>= shift
        high[index] >>= 0 if matrix.high[index] >= FREE else shift
        low[index] = np.iinfo(np.int64).min
    return coefficient, low, high, bool(len(long))


def _configure(parameters: Any, limits: Limits, asked: Asked) -> None:
    parameters.num_workers = max(1, limits.workers)
    parameters.random_seed = limits.seed % 2**31
    parameters.relative_gap_limit = limits.gap
    parameters.absolute_gap_limit = 0.0
    parameters.catch_sigint_signal = False
    parameters.cp_model_presolve = asked.use != Use.CLAIMS
    parameters.stop_after_first_solution = asked.first
    if limits.seconds is not None:
        parameters.max_time_in_seconds = max(0.0, limits.seconds)
    if limits.work is not None:
        parameters.max_deterministic_time = max(1e-6, limits.work)
    if asked.follow_lp:
        parameters.linearization_level = 2
        if limits.workers < 8:
            parameters.subsolvers.extend(_LP_WORKERS[: limits.workers])


def _below(bound: float) -> int:
    """An integer not above a bound that CP-SAT reports on the way, as a double."""
    whole = floor(bound)
    return whole - (abs(whole) >> 51) if abs(whole) >= 2**53 else whole


def _tracer(cp_model: Any, on_values: Callable[[IntArray], object]) -> Any:
    class Tracer(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            on_values(np.asarray(self.response_proto.solution, dtype=np.int64))

    return Tracer()
