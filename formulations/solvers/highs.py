"""A linear model handed to HiGHS: in floating point, scaled first."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.clock import Limits
from formulations.errors import InternalError, MissingSolver
from formulations.model.linear import FREE, LinearModel, Matrix
from formulations.solvers.answer import Answer, Found

FloatArray = NDArray[np.float64]

#: Entries of an integer model up to which HiGHS presolves it: with 1,935 tables on 96 ranks it took
#: half a minute, and it hears neither the time limit nor an interrupt.
PRESOLVED_UP_TO = 150_000


def solve_highs(model: LinearModel, limits: Limits | None = None) -> Answer:
    """Minimise a model.

    There is no bound: HiGHS cuts off what it takes for no better within absolute tolerances, and
    has been wrong by up to 4% so (docs/bounds.md).

    Parameters
    ----------
    model : LinearModel
        Its columns in large units stay continuous.
    limits : Limits, optional
        ``work`` is not heeded: HiGHS counts none.

    Returns
    -------
    Answer
        ``work`` is what its iterations count for, about a second of one core a unit.

    Raises
    ------
    MissingSolver
        When highspy is absent.
    """
    limits = limits or Limits()
    matrix = model.matrix()
    if not model.num_columns:
        feasible = bool(((matrix.low <= 0) & (matrix.high >= 0)).all())
        if not feasible:
            return Answer(Found.INFEASIBLE)
        value = model.offset * model.scale
        return Answer(Found.OPTIMAL, float(value), None, np.empty(0))
    scaled = _Scaled(model, matrix)
    highs = _highs(limits)
    raised = _stop_with(highs, limits.stop)
    if len(matrix.column) > PRESOLVED_UP_TO:
        highs.setOptionValue("presolve", "off")
    import highspy

    if highs.passModel(scaled.lp()) == highspy.HighsStatus.kError:
        raise InternalError("HiGHS refuses the model")
    highs.run()
    if raised:
        raise raised[0]
    return _answer(highs, scaled)


def _highs(limits: Limits) -> Any:
    try:
        import highspy
    except ImportError as error:  # pragma: no cover - a core dependency
        raise MissingSolver("HiGHS is missing: pip install 'highspy>=1.12,<1.14'") from error
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    # "threads" is left alone: HiGHS keeps one scheduler a process and fails when it changes.
    highs.setOptionValue("parallel", "on" if limits.workers > 1 else "off")
    highs.setOptionValue("random_seed", limits.seed % 2**31)
    highs.setOptionValue("mip_abs_gap", 0.0)
    highs.setOptionValue("mip_rel_gap", limits.gap)
    if limits.seconds is not None:
        highs.setOptionValue("time_limit", max(0.01, limits.seconds))
    return highs


def _stop_with(highs: Any, stop: threading.Event | None) -> list[BaseException]:
    """Let an event interrupt every method of HiGHS (its presolve does not ask).

    HiGHS runs in the caller's thread: it keeps its scheduler a thread. So it is here that Ctrl-C
    is heard, and kept for the caller, as C++ must not see it.

    Returns
    -------
    list of BaseException
        What the caller has to raise after the run.
    """
    import highspy

    raised: list[BaseException] = []

    def ask(kind: Any, message: str, out: Any, wish: Any, user: Any) -> None:
        try:
            if raised or (stop is not None and stop.is_set()):
                wish.user_interrupt = True
        except BaseException as error:  # Ctrl-C is raised here, between two lines of ours
            raised.append(error)
            wish.user_interrupt = True

    highs.setCallback(ask, None)
    kinds = highspy.cb.HighsCallbackType
    for kind in (kinds.kCallbackMipInterrupt, kinds.kCallbackSimplexInterrupt,
                 kinds.kCallbackIpmInterrupt):  # fmt: skip
        highs.startCallback(kind)
    return raised


class _Scaled:
    """A model in units where coefficients are near one: x = unit·x', rows divided by their max."""

    def __init__(self, model: LinearModel, matrix: Matrix) -> None:
        self.model, self.matrix, self.unit = model, matrix, model.unit
        self.value = matrix.coefficient.astype(np.float64) * self.unit[matrix.column]
        self.row_unit = np.ones(model.num_rows)
        filled = np.flatnonzero(np.diff(matrix.start))
        if len(filled):
            top = np.maximum.reduceat(np.abs(self.value), matrix.start[:-1][filled])
            self.row_unit[filled] = np.where(top > 0, top, 1.0)
        self.value = self.value / np.repeat(self.row_unit, np.diff(matrix.start))
        self.cost = np.zeros(model.num_columns)
        np.add.at(self.cost, model.cost_columns, model.cost.astype(np.float64))
        self.cost *= self.unit
        self.cost_unit = float(np.abs(self.cost).max(initial=0.0)) or 1.0

    def lp(self) -> Any:
        """The scaled model as HiGHS takes it."""
        import highspy

        lp = highspy.HighsLp()
        lp.num_col_ = self.model.num_columns
        lp.num_row_ = self.model.num_rows
        lp.col_cost_ = self.cost / self.cost_unit
        lp.col_lower_ = np.zeros(self.model.num_columns)
        lp.col_upper_ = self.model.upper.astype(np.float64) / self.unit
        lp.row_lower_ = _limits(self.matrix.low) / self.row_unit
        lp.row_upper_ = _limits(self.matrix.high) / self.row_unit
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = self.matrix.start.astype(np.int32)
        lp.a_matrix_.index_ = self.matrix.column.astype(np.int32)
        lp.a_matrix_.value_ = self.value
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(unit == 1.0)] for unit in self.unit.tolist()]
        return lp

    def true(self, value: float) -> float:
        """An objective of the scaled model in true cost."""
        return (value * self.cost_unit + self.model.offset) * self.model.scale


def _limits(values: np.ndarray) -> FloatArray:
    array = values.astype(np.float64)
    return np.where(np.abs(array) >= float(FREE), np.copysign(np.inf, array), array)


def _answer(highs: Any, scaled: _Scaled) -> Answer:
    import highspy

    info, solution, state = highs.getInfo(), highs.getSolution(), highs.getModelStatus()
    states = highspy.HighsModelStatus
    proved = state in (states.kOptimal, states.kModelEmpty)
    values = value = None
    if solution.value_valid and (proved or state in (states.kTimeLimit, states.kInterrupt)):
        values = np.asarray(solution.col_value) * scaled.unit
        value = scaled.true(info.objective_function_value)
    if state == states.kInfeasible:
        return Answer(Found.INFEASIBLE)
    found = Found.UNKNOWN if values is None else Found.OPTIMAL if proved else Found.FEASIBLE
    steps = max(0, info.simplex_iteration_count) + max(0, info.ipm_iteration_count)
    work = 1e-8 * (1 + steps) * (scaled.model.num_rows + len(scaled.matrix.column))
    return Answer(found, value, None, values, work)
