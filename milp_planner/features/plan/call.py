"""``plan`` and ``check``: a checked plan with a bound, or every problem of the inputs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

from formulations import Instance, Outcome, Settings, Status, registry, solve
from formulations.priced import Priced
from formulations.runtime.collector import uncollected
from formulations.runtime.interrupt import interruptible
from formulations.runtime.timing import CallTime
from formulations.settings import DEFAULT_GOALS, GOALS, MOVES, TracePoint
from milp_planner.errors import BadInput, Problem
from milp_planner.features.moves.again import compile_from
from milp_planner.features.moves.few import (
    from_nearby,
    left_for_objective,
    solve_moving,
    with_few_moves,
)
from milp_planner.features.plan.cache import answered, question_of, to_cache
from milp_planner.features.plan.divide import divided
from milp_planner.features.plan.doubts import placed
from milp_planner.features.plan.one_ratio import as_it_runs, decoded
from milp_planner.features.plan.remedies import with_more_machines, with_remedies
from milp_planner.features.plan.shortage import diagnosis_seconds, with_advice, with_diagnosis
from milp_planner.features.plan.watch import Line, Newest, OnPlan, Watch, in_notebook
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.compile import (
    ClusterSource,
    Compiled,
    ModelSource,
    compile_for,
    to_cluster,
    to_model,
)
from milp_planner.plans.divisions import is_open, options_of
from milp_planner.plans.ledger import assumed_of
from milp_planner.plans.placement import Plan
from milp_planner.pricing.profile import load_profile
from milp_planner.request import Callbacks, Limits, PlanRequest

Solver = Callable[[Compiled, str, Settings], Outcome]
#: Default goals of re-planning: after the objective, fewest moves come first.
STAY = replace(DEFAULT_GOALS, order=(MOVES, *(goal for goal in GOALS if goal != MOVES)))
#: Share of the diagnosis time reserved for trying model changes and more machines.
CHANGES_SHARE = 0.25


def plan(
    model: ModelSource,
    cluster: ClusterSource,
    *,
    settings: Settings | None = None,
    on_plan: OnPlan | None = None,
    progress: bool | None = None,
    on_improvement: Callable[[TracePoint], None] | None = None,
    on_start: Callable[..., None] | None = None,
    **asked: Any,
) -> Plan:
    """Place every table of a model on a cluster.

    Parameters
    ----------
    model, cluster
        Objects, or paths of their YAML files.
    settings : Settings, optional
        Limits and preferences where no keyword states another.
    on_plan, progress, on_improvement, on_start : optional
        As in :class:`milp_planner.request.Callbacks`.
    **asked
        Fields of :class:`milp_planner.request.PlanRequest`, None standing for its default:
        ``formulation``, ``objective``, ``time_limit``, ``work_limit``, ``gap``, ``seed``,
        ``workers``, ``options``, ``goals``; ``profile``, ``reserve``, ``two_d``, ``change``;
        ``start`` with ``lost``, ``max_moved``, ``moves_within``, ``move_cost``, ``executable``;
        ``trainer``; ``cache``; ``diagnose``. What each means, its units and defaults stand there,
        and in ``milp-planner plan --help``.

    Returns
    -------
    Plan
        Its outcome's status says what is known. ``optimal`` and ``feasible`` plans have tables and
        have passed the solver-free check. ``infeasible`` is a proof that no plan exists;
        ``outcome.detail["diagnosis"]`` says which capacity is short and what would suffice.
        ``unknown`` is neither. Ctrl-C, or a notebook's interrupt, ends the search and returns the
        best plan so far; a second one raises ``KeyboardInterrupt``.

    Raises
    ------
    BadInput, InstanceError
        For malformed inputs, unknown names or keywords, or a table without any legal option.
    """
    request = PlanRequest.of({"model": model, "cluster": cluster, **asked})
    return planned(request, Callbacks(on_plan, progress, on_improvement, on_start), settings)


def planned(
    request: PlanRequest,
    caller: Callbacks,
    base: Settings | None = None,
    compiled: Compiled | None = None,
) -> Plan:
    """The answer to a request; ``base`` holds limits and preferences that it does not state,
    ``compiled`` its inputs where they are priced already."""
    runtime = {} if caller.stop is None else {"stop": caller.stop}
    settings = request.settings(base, **runtime)
    registry.get(request.formulation).check(settings.options)
    if request.trainer is not None:
        return _for_trainer(request, caller, settings)
    newest = Newest(caller.on_improvement or settings.on_progress)
    call = settings.call or CallTime(settings.time_limit)
    settings = replace(settings, on_progress=newest, call=call)
    model, place = request.changed(to_model(request.model), to_cluster(request.cluster))
    if is_open(place):
        _refuse_with_divisions(request, caller)
        report = partial(_report_division, newest, caller.on_start, request.formulation)
        running = partial(_running, _solved, request.diagnose)
        parts = model, place, request.formulation, request.objective, settings, report, running
        return _watched(partial(divided, *parts), settings, newest, caller.progress)
    if compiled is None:
        with call.stage("pricing"):
            compiled, settings = _compiled(request, model, place, settings)
    if caller.on_start is not None:
        caller.on_start(request.formulation)
    watch = None
    if caller.on_plan is not None:
        if request.move_cost is not None:
            raise BadInput("on_plan: not available with a price on moves (move_cost)")
        watch = Watch(compiled, request.formulation, caller.on_plan, newest)
    job = partial(_answered, request, compiled, settings)
    found = _watched(job, settings, newest, caller.progress, watch)
    return replace(found, executable=request.executable)


def _for_trainer(request: PlanRequest, caller: Callbacks, settings: Settings) -> Plan:
    """The best plan that the trainer can be made to run."""
    from milp_planner import plan_for  # replays trainers, on a floor above

    stated = {n: v for n, v in request.given.items() if n not in (*Limits.model_fields, "goals")}
    for name in ("trainer", "model", "cluster"):
        del stated[name]
    talk = {name: getattr(caller, name) for name in ("on_plan", "progress", "on_start")}
    return plan_for(
        str(request.trainer), request.model, request.cluster, settings=settings,
        formulation=request.formulation, on_improvement=caller.on_improvement, **talk, **stated,
    )  # fmt: skip


def _answered(request: PlanRequest, compiled: Compiled, settings: Settings) -> Plan:
    """The plan of a compiled request: priced moves, few moves, or neither; cached or new."""
    formulation = request.formulation
    if request.move_cost is not None:
        return _paid(compiled, request.move_cost, formulation, settings)
    cache = to_cache(request.cache)
    proofs = [settings.prices, None if cache is None else cache.proof(compiled.instance)]
    best = max(filter(None, proofs), key=lambda proof: proof.target or 0, default=None)
    settings = replace(settings, prices=best)
    few = request.moves.within if request.start is not None and settings.goals == STAY else 0.0
    solver = partial(_with_few_moves, within=few) if few else _solved
    solve_it = partial(_running, solver, request.diagnose, compiled, formulation, settings)
    question = question_of(compiled, formulation, settings, within=few)
    outcome = answered(cache, question, solve_it)
    with uncollected():
        return decoded(compiled, outcome)


def _running(
    solver: Solver, diagnose: bool, compiled: Compiled, formulation: str, settings: Settings
) -> Outcome:
    """The answer of a solver, in which tables that share a cache have one ratio; if there is no
    plan, with a diagnosis."""

    def run(instance: Instance, own: Settings) -> Outcome:
        return solver(replace(compiled, instance=instance), formulation, own)

    found = as_it_runs(compiled.instance, compiled.caches, settings, formulation, run)
    if diagnose and found.status == Status.INFEASIBLE and "would_move" not in found.detail:
        with settings.timed.stage("diagnosis"):
            found = _diagnosed(found, compiled, settings)
    return _timed(found, settings)


def _timed(outcome: Outcome, settings: Settings) -> Outcome:
    """The outcome with the seconds of the whole call so far, and of each of its stages."""
    call = settings.timed
    return outcome.with_(seconds=call.seconds(), detail={**outcome.detail, "stages": call.told()})


def _compiled(
    request: PlanRequest, model: Model, cluster: Cluster, settings: Settings
) -> tuple[Compiled, Settings]:
    """The compiled inputs, and the settings with what the plan to start from adds to them."""
    objective = request.objective
    if request.start is None:
        return compile_for(model, cluster, objective), settings
    start, known = compile_from(
        request.start, model, cluster, objective, request.lost, request.moves, request.executable
    )
    goals = STAY if settings.goals == DEFAULT_GOALS else settings.goals
    return start.compiled, replace(settings, hint=known.hint, prices=known.prices, goals=goals)


def _watched(
    job: Callable[[], Plan],
    settings: Settings,
    newest: Newest,
    progress: bool | None,
    watch: Watch | None = None,
) -> Plan:
    """Run the job while the caller's thread reports progress."""
    line = Line(newest) if progress or (progress is None and in_notebook()) else None
    try:
        found = interruptible(job, settings.stop, _both(line, watch))
    finally:
        if line is not None:
            line.end()
    notes = filter(None, (found.outcome.note, found.cluster.assumed_profile))
    return replace(found, outcome=found.outcome.with_(note="; ".join(notes)))


def _refuse_with_divisions(request: PlanRequest, caller: Callbacks) -> None:
    """Refuse what needs a single Instance when several divisions are tried."""
    for name, value in (("start", request.start), ("on_plan", caller.on_plan)):
        if value is not None:
            raise BadInput(
                f"{name} needs one fixed sharding group; allowed: a two_d that names size, layout "
                "and strategy"
            )


def _report_division(
    newest: Newest, on_start: Callable[..., None] | None, formulation: str, words: str
) -> None:
    """Report the division being solved; what is known so far concerns another Instance."""
    newest.point = None
    if on_start is not None:
        on_start(f"{formulation}, {words}")


def _both(line: Line | None, watch: Watch | None) -> Callable[[], object] | None:
    """The calls that the caller's thread makes while the solver works; None if it only waits."""
    if line is None:
        return watch

    def look() -> object:
        line()
        return None if watch is None else watch()

    return look


def _paid(compiled: Compiled, price: Fraction, formulation: str, settings: Settings) -> Plan:
    """The best plan with its moves priced; if there is none, a diagnosis."""
    caches = compiled.caches

    def run(model: Priced, own: Settings) -> Outcome:
        return as_it_runs(
            model.instance, caches.priced(model), own, formulation,
            lambda instance, part: solve(instance, formulation, part),
        )  # fmt: skip

    solved = solve_moving(compiled, price, formulation, settings, run)
    if solved is None:
        outcome = _running(_solved, True, compiled, formulation, settings)
        return decoded(compiled, outcome)
    return replace(decoded(compiled, _timed(solved[0], settings)), moving=solved[1])


def _with_few_moves(
    compiled: Compiled, formulation: str, settings: Settings, within: float
) -> Outcome:
    """The best plan, or one that moves less and is hardly dearer."""
    own = from_nearby(compiled.instance, formulation, left_for_objective(settings))
    first = _solved(compiled, formulation, own)
    with settings.timed.stage("fewer moves"):
        outcome = with_few_moves(compiled.instance, first, settings, within)
    return _timed(outcome, settings)


def _solved(compiled: Compiled, formulation: str, settings: Settings) -> Outcome:
    return _timed(solve(compiled.instance, formulation, settings), settings)


def _diagnosed(outcome: Outcome, compiled: Compiled, settings: Settings) -> Outcome:
    """The outcome with what is short, and what would help."""
    end = time.monotonic() + diagnosis_seconds(settings)
    outcome = with_diagnosis(compiled.instance, outcome, settings, 1 - CHANGES_SHARE)
    outcome = with_advice(outcome, compiled.model, compiled.cluster)
    left = max(0.0, end - time.monotonic())
    outcome = with_remedies(outcome, compiled, settings, left / 2)
    left = max(0.0, end - time.monotonic())
    return with_more_machines(outcome, compiled.model, compiled.cluster, settings, left)


Read = TypeVar("Read")


def check(
    model: ModelSource, cluster: ClusterSource, *, profile: str | None = None
) -> tuple[Problem, ...]:
    """Every problem of a model and a cluster that :func:`milp_planner.plan` would refuse.

    It does not check whether the tables fit into memory: that takes a plan.

    Parameters
    ----------
    model, cluster
        Objects, paths of their files, or names of shipped ones.
    profile : str, optional
        Hardware profile that prices the plan, a name or a file; default: the cluster's.

    Returns
    -------
    tuple of Problem
        Those of the model first, then of the cluster and of its profile. If all three are valid by
        themselves: those of the tables on this cluster. Empty when there are none.
    """
    problems: list[Problem] = []

    def collect(read: Callable[[], Read]) -> Read | None:
        try:
            return read()
        except BadInput as error:
            problems.extend(error.problems)
            return None

    tables = collect(lambda: to_model(model))
    place = collect(lambda: to_cluster(cluster))
    name = profile or (place.profile if place is not None else None)
    known = len(problems)
    prices = None if name is None else collect(lambda: load_profile(name))
    if profile is None:  # the cluster names it
        problems[known:] = [
            each if each.file else placed(cluster, each.message, ("profile",))
            for each in problems[known:]
        ]
    if tables is not None and place is not None and prices is not None:
        collect(lambda: options_of(tables, place, prices))
    return tuple(problems)


def assumed(model: ModelSource, cluster: ClusterSource) -> str | None:
    """What is assumed about memory outside the embeddings if neither states it; else None."""
    return assumed_of(to_model(model), to_cluster(cluster))
