"""The exact model through PuLP with HiGHS (default) or CBC: the independent cross-check.

Settings of its own (``Settings.options``): ``solver``, ``"highs"`` or ``"cbc"``. These solvers
work in floating point: their plans are rounded and checked in integers, and their bounds are
labelled as floating point. An outcome is *optimal* or *infeasible* only if a certificate or, on
small instances, :mod:`formulations.mip_exact` proves it in integers, never because the solver says
so. CBC gives no bound. ``work_limit`` has no meaning here and is ignored.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pulp

from formulations.clock import Clock, OutOfTime
from formulations.cpsat import Found
from formulations.errors import MissingSolver
from formulations.instance import Instance
from formulations.mip_exact import best_plan
from formulations.mip_model import MipModel, rounded
from formulations.proof.prove import prove_infeasible
from formulations.result.check import check
from formulations.result.outcome import (
    BoundSource,
    Outcome,
    Status,
    StoppedBy,
    found,
    infeasible,
    nothing,
    why_stopped,
)
from formulations.result.placement import Placement
from formulations.settings import Settings, one_of


@dataclass(frozen=True)
class Report:
    """A solver's claim, in floating point.

    Attributes
    ----------
    claim : Found
    bound : float or None
        In units of the model's objective; None where the solver gives none (CBC).
    version : str
    """

    claim: Found
    bound: float | None
    version: str


@dataclass(frozen=True)
class Backend:
    """A solver: how PuLP calls it within what is left on the clock, at a feasibility tolerance; and
    its report on a problem that it has solved."""

    solver: Callable[[Settings, Clock, float], Any]
    report: Callable[[pulp.LpProblem], Report]


def _highs(settings: Settings, clock: Clock, tolerance: float) -> Any:
    try:
        import highspy
    except ImportError as error:
        raise MissingSolver("HiGHS is missing: pip install 'highspy>=1.12,<1.14'") from error
    if "HiGHS" not in pulp.listSolvers(onlyAvailable=True):
        raise MissingSolver("PuLP cannot load HiGHS: pip install 'highspy>=1.12,<1.14'")
    # HiGHS keeps one thread pool per process and refuses to run with another number of threads.
    highspy.Highs.resetGlobalScheduler(True)
    kinds = highspy.cb.HighsCallbackType

    class Timed(pulp.HiGHS):
        """HiGHS that obeys the clock, also while PuLP hands it the model row by row."""

        def createAndConfigureSolver(self, lp: pulp.LpProblem) -> None:
            super().createAndConfigureSolver(lp)
            add_row = lp.solverModel.addRow

            def checked(*row: Any) -> Any:
                clock.check()
                return add_row(*row)

            lp.solverModel.addRow = checked

        def callSolver(self, lp: pulp.LpProblem) -> None:
            left = clock.seconds_left()
            if left != float("inf"):
                lp.solverModel.setOptionValue("time_limit", max(0.01, left))
                if lp.solverModel.getNumNz() > PRESOLVED * left:
                    lp.solverModel.setOptionValue("presolve", "off")
            super().callSolver(lp)

        def findSolutionValues(self, lp: pulp.LpProblem) -> tuple[int, int]:
            empty = _without_values(lp.solverModel)
            return empty or super().findSolutionValues(lp)

    clock.check()
    return Timed(
        msg=False,
        gapRel=settings.gap_asked,
        gapAbs=0.0,
        threads=settings.workers,
        callbackTuple=(_stopper(settings), None),
        callbacksToActivate=[
            kinds.kCallbackMipInterrupt,
            kinds.kCallbackSimplexInterrupt,
            kinds.kCallbackIpmInterrupt,
        ],
        random_seed=settings.seed % 2**31,
        # With restarts, HiGHS 1.13 gave a bound 0.4% above the optimum (benchmarks/fuzz/README.md).
        mip_allow_restart=False,
        mip_feasibility_tolerance=tolerance,
        primal_feasibility_tolerance=tolerance,
    )


def _without_values(highs: Any) -> tuple[int, int] | None:
    """PuLP's statuses where HiGHS ends without values, which PuLP 3.3 reads all the same."""
    from highspy import HighsModelStatus

    found = highs.getSolution()
    if (len(found.col_value), len(found.row_value)) == (highs.getNumCol(), highs.getNumRow()):
        return None
    none = HighsModelStatus.kInfeasible, HighsModelStatus.kUnboundedOrInfeasible
    if highs.getModelStatus() in none:
        return pulp.LpStatusInfeasible, pulp.LpSolutionInfeasible
    return pulp.LpStatusNotSolved, pulp.LpSolutionNoSolutionFound


def _report_of_highs(problem: pulp.LpProblem) -> Report:
    import highspy

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


def _cbc(settings: Settings, clock: Clock, tolerance: float) -> Any:
    clock.check()
    seconds = clock.seconds_left()
    with warnings.catch_warnings():  # PuLP 4 will ship CBC as an extra
        warnings.simplefilter("ignore", DeprecationWarning)
        solver = pulp.PULP_CBC_CMD(
            msg=False,
            gapRel=settings.gap_asked,
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
    return solver


def _claim(problem: pulp.LpProblem, has_plan: bool) -> Found:
    """From ``sol_status``, because PuLP calls a plan at the time limit "Optimal" too.

    Where CBC says "Integer infeasible", only ``status`` shows the infeasibility.
    """
    if pulp.LpStatusInfeasible in (problem.status, problem.sol_status):
        return Found.INFEASIBLE
    if problem.sol_status == pulp.LpSolutionOptimal and has_plan:
        return Found.OPTIMAL
    if problem.sol_status == pulp.LpSolutionIntegerFeasible and has_plan:
        return Found.FEASIBLE
    return Found.UNKNOWN


BACKENDS = {
    "highs": Backend(_highs, _report_of_highs),
    "cbc": Backend(_cbc, lambda problem: Report(_claim(problem, has_plan=True), None, "")),
}
"""Each raises MissingSolver when it is not installed."""

#: Feasibility tolerances on rows scaled to one: HiGHS's own, then one for a budget met to the byte.
TOLERANCES = (1e-6, 1e-9)
#: Possible error of a floating-point bound, relative to itself and to the largest cost in the
#: model; the bound is lowered by it. (HiGHS's tolerances are 1e-7 and 1e-6; 1e-8 has been seen.)
ERROR = 1e-6
OPTIONS = {"solver": one_of(BACKENDS)}
#: HiGHS presolves a model of up to this many nonzeros per second left, because it ignores its limit
#: meanwhile. 520,000 took it 7 s on a slow day, and it ended 4 s late.
PRESOLVED = 15_000


def solve(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """Solve in floating point, answer in integers; see :func:`formulations.solve.solve`.

    Returns
    -------
    Outcome
        ``unknown`` when the rounded answer breaks a constraint even at the tighter tolerance.

    Raises
    ------
    MissingSolver
        When the solver is not installed.
    """
    name = str(settings.options.get("solver", "highs"))
    backend = BACKENDS[name]
    for table in range(instance.num_tables):
        if not instance.allowed[list(instance.options_of(table))].any():
            note = f"no option of table {instance.table_names[table]!r} is allowed"
            return infeasible("mip", BoundSource("presolve", exact=True), note, solver=name)
    note = ""
    for tolerance in TOLERANCES:
        try:
            model = MipModel(instance, clock.check)
            model.problem.solve(backend.solver(settings, clock, tolerance))
        except OutOfTime:
            note = note or "the time ended before the model was built"
            return nothing("mip", why_stopped(clock), note, solver=name)
        report = backend.report(model.problem)
        outcome = _outcome(model, report, name, settings, clock)
        if outcome is None or outcome.status in (Status.FEASIBLE, Status.UNKNOWN):
            plan, who = outcome.placement if outcome else None, _who(name, report)
            decided = _decided(model, plan, backend, settings, clock, who)
            outcome = decided or outcome
        if outcome is not None:
            return outcome
        note = f"{name} answered with a plan that its rounding errors make infeasible"
    return nothing("mip", StoppedBy.EXHAUSTED, note, **_who(name, report))


def _who(name: str, report: Report) -> dict[str, str]:
    version = report.version or f"with PuLP {pulp.__version__}"
    return {"solver": {"highs": "HiGHS", "cbc": "CBC"}[name], "version": version}


def _outcome(
    model: MipModel, report: Report, name: str, settings: Settings, clock: Clock
) -> Outcome | None:
    """None: the answer does not survive the check."""
    source, who = BoundSource(name, exact=False), _who(name, report)
    if report.claim == Found.INFEASIBLE:
        return _no_plan(model.instance, name, settings, clock, who)
    why = why_stopped(clock)
    bound = (
        None if report.bound is None else _whole_bound(model.instance, report.bound * model.unit)
    )
    known = None if bound is None else source
    if report.claim == Found.UNKNOWN:
        return nothing("mip", why, bound=bound, bound_source=known, **who)
    placement = rounded(model)
    if placement is None or not check(model.instance, placement).feasible:
        return None
    note = ""
    if report.claim == Found.OPTIMAL:
        why = StoppedBy.GAP if settings.gap_asked else StoppedBy.EXHAUSTED
        what = "near enough" if settings.gap_asked else "optimal"
        note = f"{name} calls this {what}, in floating point" + (
            "" if bound is not None else ", but states no bound"
        )
    return found(model.instance, "mip", placement, why, bound, known, note=note, **who)


def _decided(
    model: MipModel,
    plan: Placement | None,
    backend: Backend,
    settings: Settings,
    clock: Clock,
    who: dict[str, str],
) -> Outcome | None:
    """The optimum, or that there is no plan, proved in integers; None where that takes too long."""

    def relax(problem: pulp.LpProblem) -> None:
        problem.solve(backend.solver(settings, clock, TOLERANCES[-1]))

    if clock.over() or settings.gap_asked:
        return None
    try:
        best = best_plan(model, plan, relax)
    except OutOfTime:
        return None
    if best is None:
        return None
    proof = BoundSource("mip", exact=True)
    if best.placement is None:
        return infeasible("mip", proof, **who)
    cost, why = best.cost, StoppedBy.PROOF
    return found(model.instance, "mip", best.placement, why, cost, proof, **who)


def _no_plan(
    instance: Instance, name: str, settings: Settings, clock: Clock, who: dict[str, str]
) -> Outcome:
    """Infeasible where a certificate proves what the solver says in floating point."""
    proof = None
    if settings.certificate and not clock.over():
        seconds = None if clock.remaining() == math.inf else clock.remaining()
        proof = prove_infeasible(instance, seconds, settings.stop)
    if proof is not None:
        return infeasible("mip", BoundSource("certificate", exact=True), certificate=proof, **who)
    note = f"{name} finds no plan possible, in floating point; that proves nothing"
    return nothing("mip", StoppedBy.EXHAUSTED, note, **who)


def _whole_bound(instance: Instance, bound: float) -> int:
    """A float bound lowered by its possible error, then rounded up to an integer."""
    largest = float(abs(instance.shard_cost).max(initial=0))
    return math.ceil(bound - ERROR * max(abs(bound), largest))
