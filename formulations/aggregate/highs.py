"""Hand a :class:`LinearModel` to HiGHS (floating point; scaled first)."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.aggregate.linear import FREE, LinearModel, Rows
from formulations.errors import MissingSolver

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HighsResult:
    """What HiGHS found, in the model's own units.

    Attributes
    ----------
    status : str
        ``optimal``, ``infeasible``, ``limit`` (time or stop, with or without a solution) or
        ``other``.
    objective, bound : float or None
    values : float array [columns] or None
    duals : float array [rows] or None
        Change of the objective per unit of a row's limit (LP only). When infeasible: a Farkas
        ray, if HiGHS gives one.
    """

    status: str
    objective: float | None
    bound: float | None
    values: FloatArray | None
    duals: FloatArray | None


def solve_highs(
    model: LinearModel,
    whole: bool,
    time_limit: float | None = None,
    workers: int = 1,
    seed: int = 0,
    gap: float = 0.0,
    stop: threading.Event | None = None,
) -> HighsResult:
    """Minimise a model: as a LP, or (``whole``) with its whole columns integer, up to ``gap``.

    ``stop`` ends the search when set, as the time limit does.

    Raises
    ------
    MissingSolver
        When highspy is absent.
    """
    if not model.num_columns and not model.num_rows:
        empty = np.empty(0)
        return HighsResult("optimal", float(model.offset), float(model.offset), empty, empty)
    scaled = _Scaled(model)
    highs = _highs(time_limit, workers, seed)
    highs.setOptionValue("mip_rel_gap", gap)
    if stop is not None:
        _stop_with(highs, stop)
    highs.passModel(scaled.lp(whole))
    highs.run()
    return _result(highs, scaled, whole)


def _highs(time_limit: float | None, workers: int, seed: int) -> Any:
    try:
        import highspy
    except ImportError as error:  # pragma: no cover - a core dependency
        raise MissingSolver("HiGHS is missing: pip install 'highspy>=1.12,<1.14'") from error
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    # "threads" is left alone: HiGHS keeps one scheduler a process and fails when it changes.
    highs.setOptionValue("parallel", "on" if workers > 1 else "off")
    highs.setOptionValue("random_seed", seed)
    highs.setOptionValue("mip_abs_gap", 0.0)
    if time_limit is not None:
        highs.setOptionValue("time_limit", max(0.01, time_limit))
    return highs


def _stop_with(highs: Any, stop: threading.Event) -> None:
    """Let an event interrupt every method of HiGHS (its presolve does not ask)."""
    import highspy

    def ask(kind: Any, message: str, out: Any, wish: Any, user: Any) -> None:
        if stop.is_set():
            wish.user_interrupt = True

    highs.setCallback(ask, None)
    kinds = highspy.cb.HighsCallbackType
    for kind in (kinds.kCallbackMipInterrupt, kinds.kCallbackSimplexInterrupt,
                 kinds.kCallbackIpmInterrupt):  # fmt: skip
        highs.startCallback(kind)


class _Scaled:
    """A model in units where coefficients are near one: x = unit·x', rows divided by their max."""

    def __init__(self, model: LinearModel) -> None:
        self.model = model
        self.rows: Rows = model.rows()
        self.unit = np.asarray(model.unit, dtype=np.float64)
        self.value = self.rows.coefficient.astype(np.float64) * self.unit[self.rows.column]
        count = model.num_rows
        self.row_unit = np.ones(count)
        filled = np.flatnonzero(np.diff(self.rows.start))
        if len(filled):
            top = np.maximum.reduceat(np.abs(self.value), self.rows.start[:-1][filled])
            self.row_unit[filled] = np.where(top > 0, top, 1.0)
        self.value = self.value / np.repeat(self.row_unit, np.diff(self.rows.start))
        self.cost = np.zeros(model.num_columns)
        for column, coefficient in model.objective.items():
            self.cost[column] = float(coefficient) * self.unit[column]
        self.cost_unit = float(np.abs(self.cost).max(initial=0.0)) or 1.0

    def lp(self, whole: bool) -> Any:
        import highspy

        lp = highspy.HighsLp()
        lp.num_col_ = self.model.num_columns
        lp.num_row_ = self.model.num_rows
        lp.col_cost_ = self.cost / self.cost_unit
        lp.col_lower_ = _limits(self.model.lower) / self.unit
        lp.col_upper_ = _limits(self.model.upper) / self.unit
        lp.row_lower_ = _limits(self.rows.low) / self.row_unit
        lp.row_upper_ = _limits(self.rows.high) / self.row_unit
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = self.rows.start.astype(np.int32)
        lp.a_matrix_.index_ = self.rows.column.astype(np.int32)
        lp.a_matrix_.value_ = self.value
        if whole:
            kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
            lp.integrality_ = [
                kinds[int(w and u == 1)]  # columns in large units stay continuous: a relaxation
                for w, u in zip(self.model.whole, self.model.unit, strict=True)
            ]
        return lp


def _limits(values: Any) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    return np.where(np.abs(array) >= float(FREE), np.copysign(np.inf, array), array)


def _result(highs: Any, scaled: _Scaled, whole: bool) -> HighsResult:
    import highspy

    states = highspy.HighsModelStatus
    status = {
        states.kOptimal: "optimal",
        states.kInfeasible: "infeasible",
        states.kTimeLimit: "limit",
        states.kInterrupt: "limit",
        states.kModelEmpty: "optimal",
    }.get(highs.getModelStatus(), "other")
    info, solution = highs.getInfo(), highs.getSolution()
    values = duals = objective = None
    if solution.value_valid and status in ("optimal", "limit"):
        values = np.asarray(solution.col_value) * scaled.unit
        objective = info.objective_function_value * scaled.cost_unit + scaled.model.offset
    if solution.dual_valid and not whole:
        duals = np.asarray(solution.row_dual) * scaled.cost_unit / scaled.row_unit
    if status == "infeasible" and not whole:
        ray = highs.getDualRay()
        if len(ray) > 1 and ray[1]:
            duals = np.asarray(ray[-1]) / scaled.row_unit
    bound = objective if status == "optimal" and not whole else None
    if whole and status in ("optimal", "limit") and np.isfinite(info.mip_dual_bound):
        bound = info.mip_dual_bound * scaled.cost_unit + scaled.model.offset
    return HighsResult(status, objective, bound, values, duals)
