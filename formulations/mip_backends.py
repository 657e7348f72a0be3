"""HiGHS and CBC through PuLP: run one, and say truthfully what it claims."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pulp

from formulations.clock import Clock
from formulations.errors import MissingSolver
from formulations.settings import Settings


class Claim(StrEnum):
    """What a solver says, in floating point."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Report:
    """A solver's claim.

    Attributes
    ----------
    claim : Claim
    bound : float or None
        In units of the model's objective; None where the solver gives none (CBC).
    version : str
    """

    claim: Claim
    bound: float | None
    version: str


#: Solve within what is left on the clock, at a feasibility tolerance.
Backend = Callable[[pulp.LpProblem, Settings, Clock, float], Report]


def _highs(problem: pulp.LpProblem, settings: Settings, clock: Clock, tolerance: float) -> Report:
    try:
        import highspy
    except ImportError as error:
        raise MissingSolver("HiGHS is missing: pip install 'highspy>=1.12,<1.14'") from error
    if "HiGHS" not in pulp.listSolvers(onlyAvailable=True):
        raise MissingSolver("PuLP cannot load HiGHS: pip install 'highspy>=1.12,<1.14'")
    # HiGHS keeps one thread pool a process and refuses to run with another number of threads.
    highspy.Highs.resetGlobalScheduler(True)
    kinds = highspy.cb.HighsCallbackType

    class Timed(pulp.HiGHS):
        """HiGHS that keeps the clock while PuLP hands it the model, row by row, and after."""

        def createAndConfigureSolver(self, lp: pulp.LpProblem) -> None:
            super().createAndConfigureSolver(lp)
            add_row = lp.solverModel.addRow

            def checked(*row: Any) -> Any:
                clock.check()
                return add_row(*row)

            lp.solverModel.addRow = checked

        def callSolver(self, lp: pulp.LpProblem) -> None:
            if clock.seconds_left() != float("inf"):
                lp.solverModel.setOptionValue("time_limit", max(0.01, clock.seconds_left()))
            super().callSolver(lp)

    clock.check()
    solver = Timed(
        msg=False,
        gapRel=0.0,
        gapAbs=0.0,
        threads=settings.workers,
        callbackTuple=(_stopper(settings), None),
        callbacksToActivate=[
            kinds.kCallbackMipInterrupt,
            kinds.kCallbackSimplexInterrupt,
            kinds.kCallbackIpmInterrupt,
        ],
        random_seed=settings.seed % 2**31,
        mip_feasibility_tolerance=tolerance,
        primal_feasibility_tolerance=tolerance,
    )
    problem.solve(solver)
    info = problem.solverModel.getInfo()
    has_plan = info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible)
    bound = float(info.mip_dual_bound)
    claim = _claim(problem, has_plan)
    return Report(
        claim, bound if abs(bound) < highspy.kHighsInf else None, problem.solverModel.version()
    )


def _stopper(settings: Settings) -> Callable[..., None]:
    def stop(kind: Any, message: str, out: Any, wish: Any, user: Any) -> None:
        if settings.stop.is_set():
            wish.user_interrupt = True

    return stop


def _cbc(problem: pulp.LpProblem, settings: Settings, clock: Clock, tolerance: float) -> Report:
    clock.check()
    seconds = clock.seconds_left()
    solver = _bundled_cbc(
        msg=False,
        gapRel=0.0,
        gapAbs=0.0,
        threads=settings.workers,
        timeLimit=None if seconds == float("inf") else max(seconds, 0.1),
        options=[
            f"primalTolerance {max(tolerance, 1e-9)}",
            f"integerTolerance {max(tolerance, 1e-9)}",
            "increment 1e-9",
            f"randomCbcSeed {settings.seed % 2**31}",
        ],
    )
    if not solver.available():
        raise MissingSolver("CBC is missing: it comes with pulp on most platforms")
    problem.solve(solver)
    return Report(_claim(problem, has_plan=True), None, "")


def _bundled_cbc(**settings: Any) -> Any:
    """The CBC that comes with PuLP 3 (PuLP 4 will ship it as an extra, hence its warning)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return pulp.PULP_CBC_CMD(**settings)


def _claim(problem: pulp.LpProblem, has_plan: bool) -> Claim:
    """From ``sol_status``, because PuLP calls a plan at the time limit "Optimal" too.

    Infeasibility stands in ``status`` alone where CBC words it "Integer infeasible".
    """
    if pulp.LpStatusInfeasible in (problem.status, problem.sol_status):
        return Claim.INFEASIBLE
    if problem.sol_status == pulp.LpSolutionOptimal and has_plan:
        return Claim.OPTIMAL
    if problem.sol_status == pulp.LpSolutionIntegerFeasible and has_plan:
        return Claim.FEASIBLE
    return Claim.NOTHING


BACKENDS: dict[str, Backend] = {"highs": _highs, "cbc": _cbc}
"""Each raises MissingSolver when it is not installed."""
