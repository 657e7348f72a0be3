"""The exact model in CP-SAT: every kind of place, every scope, every objective, in integers.

Settings of its own (``Settings.options``): ``symmetry`` (bool, default True) orders ranks that no
constraint tells apart; ``cores`` (bool, default True) solves instances with many options over small
cores of them, where all places are fixed. ``work_limit`` counts CP-SAT's deterministic seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from formulations.baselines.greedy import starting_plan
from formulations.clock import Clock, OutOfTime
from formulations.cpsat import Answer, Asked, Found, solve_cpsat, solver
from formulations.errors import UnsupportedInstance
from formulations.instance import Instance, IntArray
from formulations.model.build import Model, build
from formulations.model.partition import by_rank
from formulations.model.parts import Parts
from formulations.model.placements import decode, fitted
from formulations.presolve import Presolved, presolve
from formulations.reduce import NEVER, OptionBounds, option_bounds, places_are_fixed
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
from formulations.settings import FLAG, Settings

_SOURCE = BoundSource("cpsat", exact=True)

#: From this many options on, the solve starts from a greedy plan.
START_FROM = 50
#: From this many options beyond one per table, solving by cores pays.
CORES_FROM = 500
#: Options beyond one per table in the first core.
FIRST = 400
#: A core that cannot be the last may take ``LEAST`` units and the share ``SHARE`` of those spent.
LEAST, SHARE = 3.0, 0.5
OPTIONS = {"symmetry": FLAG, "cores": FLAG}


def solve(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """Solve exactly; see :func:`formulations.solve.solve`.

    Returns
    -------
    Outcome
        ``optimal`` and ``infeasible`` only with a proof in integers.

    Raises
    ------
    InternalError
        When CP-SAT's answer does not pass the check.
    UnsupportedInstance
        When sums exceed CP-SAT's 62 bits and its answer does not pass the check.
    """
    presolved = presolve(instance)
    stuck = presolved.empty_table(instance)
    if stuck is not None:
        name = instance.table_names[stuck]
        note = f"no option of table {name!r} is allowed and fits"
        return infeasible("cpsat", BoundSource("presolve", exact=True), note, **solver())
    bounds = _core_bounds(instance, presolved.kept, settings)
    if bounds is not None:
        return _solve_by_cores(instance, presolved, bounds, settings, clock)
    hint = settings.hint
    kept = presolved.kept
    if hint is None and int(kept.sum()) >= START_FROM and not places_are_fixed(instance, kept):
        hint = starting_plan(instance, settings, clock)
    try:
        model, answer = run_model(instance, presolved, hint, settings, clock)
    except OutOfTime:
        return _no_worse(instance, _unbuilt(clock), hint)
    outcome = _outcome(model, answer, clock, settings.gap_asked > 0.0)
    if outcome.objective is not None:  # what follows takes time, and adds nothing to the proof
        clock.record(outcome.objective, outcome.bound, "cpsat", outcome.placement)
    return _no_worse(instance, outcome, hint)


def run_model(
    instance: Instance,
    presolved: Presolved,
    hint: Placement | None,
    settings: Settings,
    clock: Clock,
    amount: float | None = None,
    whole: bool = True,
) -> tuple[Model, Answer]:
    """Build the exact model over the options left, hint it and solve it once.

    Parameters
    ----------
    amount : float, optional
        Units of the clock to take at most, building included.
    whole : bool
        Whether the options left are all that matter, so that the trace may show the bound.

    Raises
    ------
    OutOfTime
        When the clock ends before the model is built.
    """
    start = clock.now()
    ordered = bool(settings.options.get("symmetry", True))
    parts = Parts(keep=presolved.kept, ordered=ordered, check=clock.check)
    model = build(instance, by_rank(instance), parts)
    values = None if hint is None else fitted(model, hint, presolved.replacement)
    left = None if amount is None else max(0.0, amount - (clock.now() - start))
    asked = Asked(
        follow_lp=not len(model.columns.terms.column),
        on_values=_tracer(model, clock),
        on_bound=(lambda bound: clock.record(None, bound, "cpsat")) if whole else None,
    )
    limits = clock.limits(left, settings.seed, settings.workers)
    limits = replace(limits, gap=settings.gap_asked if whole else 0.0)
    answer = solve_cpsat(model.linear, limits, values, asked)
    clock.spend(answer.work)
    return model, answer


def _tracer(model: Model, clock: Clock) -> Callable[[IntArray], None]:
    """Records every improving plan with its true objective, but never takes long for it."""
    instance, spent = model.columns.candidates.instance, 0.0

    def trace(values: IntArray) -> None:
        nonlocal spent
        start = clock.now()
        if spent > 0.02 + 0.05 * start:
            return
        placement = decode(model, values)
        verdict = check(instance, placement)
        if verdict.feasible:  # rows beyond 62 bits are weaker
            value = verdict.objectives[instance.objective.value]
            clock.record(value, None, "cpsat", placement)
        spent += clock.now() - start

    return trace


def _unbuilt(clock: Clock) -> Outcome:
    note = "the time ended before the model was built"
    return nothing("cpsat", why_stopped(clock), note, **solver())


def _no_worse(instance: Instance, outcome: Outcome, start: Placement | None) -> Outcome:
    """The outcome, or the starting plan if that is feasible and the search found nothing better.

    If the search claims that there is no plan, a feasible starting plan contradicts it; then the
    outcome has both, and :mod:`formulations.solve` decides.
    """
    if start is None or not (verdict := check(instance, start)).feasible:
        return outcome
    if outcome.status == Status.INFEASIBLE:
        return outcome.with_(placement=start)
    value = verdict.objectives[instance.objective.value]
    if outcome.objective is not None and outcome.objective <= value:
        return outcome
    why, bound = outcome.stopped_by, outcome.bound
    source = None if bound is None else _SOURCE
    return found(instance, "cpsat", start, why, bound, source, detail=outcome.detail, **solver())


def _core_bounds(
    instance: Instance, kept: NDArray[np.bool_], settings: Settings
) -> OptionBounds | None:
    """Bounds for solving by cores; None where the whole model is better."""
    large = int(kept.sum()) - instance.num_tables >= CORES_FROM
    if not (settings.options.get("cores", True) and large and places_are_fixed(instance, kept)):
        return None
    return option_bounds(instance, kept)


def _solve_by_cores(
    instance: Instance, presolved: Presolved, bounds: OptionBounds, settings: Settings, clock: Clock
) -> Outcome:
    """Solve larger and larger cores until one holds every option that could matter.

    Where places are fixed, the Lagrangian bound is nearly tight, so almost every option is
    excluded once a good plan is known. The model is solved over the few options with the lowest
    bounds, and its plan excludes others; when none is left outside the core, the core's optimum is
    that of the instance (Balas and Zemel 1980).
    """
    core, extra, value = bounds.cheapest(instance, FIRST), FIRST, NEVER
    best: Placement | None = None
    cores: list[int] = []
    while True:
        last = not (bounds.below(value) & ~core).any()
        amount = clock.remaining() if last else min(clock.remaining(), LEAST + SHARE * clock.now())
        part = Presolved(core, presolved.replacement)
        hint = settings.hint if best is None else best
        try:
            model, answer = run_model(instance, part, hint, settings, clock, amount, False)
            outcome = _outcome(model, answer, clock, near=False)
        except OutOfTime:
            outcome = _unbuilt(clock)
        cores.append(int(core.sum()))
        if outcome.placement is not None and (outcome.objective or 0) < value:
            best, value = outcome.placement, int(outcome.objective or 0)
        needed = bounds.below(value)
        done = not (needed & ~core).any()
        closed = done and (last or outcome.status in (Status.OPTIMAL, Status.INFEASIBLE))
        if clock.over() or closed or (core == (bounds.of_option < NEVER)).all():
            break
        if not done:
            extra *= 2
            few = needed.sum() <= instance.num_tables + extra
            core = needed if few else bounds.cheapest(instance, extra)
        if best is not None:
            core = core.copy()
            core[best.options] = True
    bound = _bound(bounds, core, outcome, value)
    outcome = _of_cores(instance, best, outcome, bound)
    return _no_worse(instance, outcome.with_(detail={"cores": cores}), settings.hint)


def _of_cores(instance: Instance, best: Placement | None, last: Outcome, bound: int) -> Outcome:
    """The best plan of all cores, with the bound on the whole; without a plan, the last outcome."""
    if best is not None:
        return found(instance, "cpsat", best, last.stopped_by, bound, _SOURCE, **solver())
    if last.status == Status.INFEASIBLE:
        return last
    return nothing("cpsat", last.stopped_by, bound=bound, bound_source=_SOURCE, **solver())


def _bound(bounds: OptionBounds, core: NDArray[np.bool_], outcome: Outcome, value: int) -> int:
    """A bound on every plan: within the core it costs at least the core's bound, otherwise at least
    the bound of an option outside."""
    outside = int(bounds.of_option[~core].min(initial=NEVER))
    inside = bounds.bound if outcome.bound is None else outcome.bound
    if outcome.status == Status.INFEASIBLE:
        inside = NEVER
    return max(bounds.bound, min(inside, outside, value))


def _outcome(model: Model, answer: Answer, clock: Clock, near: bool) -> Outcome:
    """Proof and plan of a model over its options; its solve may have ended at the gap asked for
    (``near``)."""
    instance = model.columns.candidates.instance
    if answer.status == Found.INFEASIBLE:
        return infeasible("cpsat", _SOURCE, **solver())
    ended = StoppedBy.GAP if near and answer.done else why_stopped(clock)
    why = StoppedBy.PROOF if answer.status == Found.OPTIMAL else ended
    if answer.values is None:
        return nothing("cpsat", why, bound=answer.bound, bound_source=_SOURCE, **solver())
    placement = decode(model, answer.values)
    if answer.relaxed and not check(instance, placement).feasible:
        raise UnsupportedInstance("uses add up beyond 2^61: a coarser unit than bytes is needed")
    return found(instance, "cpsat", placement, why, answer.bound, _SOURCE, **solver())
