"""``plan`` and ``check``: a checked plan with a bound, or every problem of the inputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TypeVar

from formulations import Outcome, Settings, Status, registry, solve
from formulations.runtime.collector import uncollected
from formulations.runtime.interrupt import interruptible
from formulations.runtime.timing import CallTime
from formulations.settings import DEFAULT_GOALS, GOALS, MOVES, TracePoint
from milp_planner.errors import BadInput, Problem
from milp_planner.features.moves.again import BeforeSource, Moves, as_moves, compile_from
from milp_planner.features.moves.few import (
    left_for_objective,
    solve_moving,
    with_few_moves,
)
from milp_planner.features.plan.cache import PlanCache, answered, question_of, to_cache
from milp_planner.features.plan.divide import divided
from milp_planner.features.plan.doubts import placed
from milp_planner.features.plan.limits import limited
from milp_planner.features.plan.remedies import with_more_machines, with_remedies
from milp_planner.features.plan.shortage import diagnosis_seconds, with_advice, with_diagnosis
from milp_planner.features.plan.watch import Line, Newest, OnPlan, Watch, in_notebook
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
from milp_planner.plans.moving import parse_price
from milp_planner.plans.placement import Plan, decode
from milp_planner.pricing.profile import load_profile
from milp_planner.today.matching import compile_grown
from milp_planner.today.rows import TodaySource

#: Default goals of re-planning: after the objective, fewest moves come first.
STAY = replace(DEFAULT_GOALS, order=(MOVES, *(goal for goal in GOALS if goal != MOVES)))
#: Share of the diagnosis time reserved for trying model changes and more machines.
CHANGES_SHARE = 0.25


def plan(  # noqa: PLR0913 - the keywords of a public call
    model: ModelSource,
    cluster: ClusterSource,
    *,
    formulation: str = "auto",
    objective: str = "step_time",
    settings: Settings | None = None,
    time_limit: float | None = None,
    today: TodaySource | None = None,
    before: BeforeSource | None = None,
    lost: Collection[int] = (),
    max_moved: Moves | int | None = None,
    move_cost: Fraction | str | None = None,
    executable: str | None = None,
    goals: str | None = None,
    gap: float | None = None,
    on_plan: OnPlan | None = None,
    progress: bool | None = None,
    cache: PlanCache | str | Path | None = None,
    on_improvement: Callable[[TracePoint], None] | None = None,
    on_start: Callable[..., None] | None = None,
    diagnose: bool = True,
) -> Plan:
    """Place every table of a model on a cluster.

    Parameters
    ----------
    model, cluster
        Objects, or paths of their YAML files.
    formulation : str
        How to solve; ``auto`` proves what can be proved.
    objective : str
        ``step_time`` (the embedding part of a step with barriers between phases and no overlap),
        ``pipelined_step`` (what it adds to the dense part, with overlap), ``busiest_rank`` or
        ``total``.
    settings : Settings, optional
        All limits and preferences.
    time_limit : float, optional
        Wall-clock seconds for the whole call; default: that of ``settings`` (60). Only compiling
        the search, once on a machine, comes on top, and is announced (a warning of the logger
        ``formulations.search.loops``). ``outcome.detail["stages"]`` has the seconds of each stage.
    today : optional
        The plan you run, in any form that :func:`milp_planner.audit` takes. The search starts from
        it, its cache ratios and column widths are added to the model's, and of otherwise equal
        plans the one that moves less is chosen. Tables missing from it are new and free to place.
    before : Plan or path of a plan.json, optional
        An earlier plan, for another state of the model and cluster, to re-plan from. Its placement
        is carried over (:func:`milp_planner.today.carried.carried`), repaired with few bytes moved
        where it no longer fits, and starts the search; the multipliers of its certificate start the
        bounds.
    lost : collection of int, optional
        Ranks of ``before``'s cluster that no longer exist. By default machines and their ranks are
        matched in order, and the last ones are those removed or added.
    max_moved : int or Moves, optional
        How many tables, or bytes, may move from ``before``, and how much of the objective may be
        given up for bytes that stay (half a percent, unless ``goals`` or ``move_cost`` are given).
    move_cost : Fraction or str, optional
        Price of each byte moved from ``before``, in picoseconds or as ``"1ms/GB"``: the plan
        minimises objective + price, and ``plan.moving`` holds what is certified about that sum. The
        cache is not used.
    executable : {"torchrec"}, optional
        Allow only moves from ``before`` that this runtime executes while training runs
        (:mod:`milp_planner.plans.live`).
    goals : str, optional
        Secondary goals in order, and how much of the objective may be given up for them:
        ``"step_time:0.1%,moves,shards"``; see :func:`formulations.settings.parse_goals`.
    gap : float, optional
        Ends the search as soon as the plan is certified to be within this share of the optimum:
        0.005 is half a percent. ``outcome.stopped_by`` is then ``gap``.
    on_plan : callable, optional
        ``on_plan(plan, bound)`` is called for every better plan and for every better bound on the
        best one (in picoseconds; None while there is none). Updates within a tenth of a second are
        combined, and only the newest is reported. The plan has passed the solver-free check. The
        call happens in the thread that called ``plan``, so the solver does not wait for it. If it
        returns False, or raises ``KeyboardInterrupt``, the search ends and the best plan is
        returned, as after Ctrl-C; any other exception ends the search and is raised here.
    progress : bool, optional
        Whether to write a line of progress to stderr: seconds, plan, bound, gap, certified gap.
        Default: in notebooks only.
    cache : PlanCache or path of a folder, optional
        Stores certified plans. A plan stored for the same question (model, cluster, profile,
        objective, ``today`` or ``before``, formulation, seed, goals, settings of the formulation,
        versions) is returned at once if it is certified to ``gap`` (by default: certified optimal)
        and all its claims are verified. Every plan certified to some gap is stored. The cache is
        not used where ``two_d`` leaves the division into sharding groups open, as an outcome
        belongs to one division.
    on_improvement : callable, optional
        Called with a :class:`formulations.settings.TracePoint` for every better plan or bound, from
        any thread.
    on_start : callable, optional
        Called with the formulation's name when pricing is done and solving begins.
    diagnose : bool
        Whether a proof that nothing fits is followed by what is short and what would help.

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
        For malformed inputs, unknown names, or a table without any legal option.
    """
    registry.get(formulation)
    cache = to_cache(cache)
    settings = limited(settings, time_limit, goals, objective, gap)
    newest = Newest(on_improvement or settings.on_progress)
    call = settings.call or CallTime(settings.time_limit)
    settings = replace(settings, on_progress=newest, call=call)
    place, solver = to_cluster(cluster), _planned if diagnose else _solved
    if is_open(place):
        _refuse_with_divisions(today=today, before=before, on_plan=on_plan)
        report = partial(_report_division, newest, on_start, formulation)
        parts = to_model(model), place, formulation, objective, settings, report, solver
        return _watched(partial(divided, *parts), settings, newest, progress)
    start = _Start(today, before, lost, max_moved, move_cost, executable)
    with call.stage("pricing"):
        compiled, settings = start.compiled(model, cluster, objective, settings)
    if on_start is not None:
        on_start(formulation)
    watch = None if on_plan is None else Watch(compiled, formulation, on_plan, newest)
    solve_it = partial(solver, compiled, formulation, settings)
    few = 0.0 if before is None or settings.goals != STAY else as_moves(max_moved).within
    if few and move_cost is None:
        solve_it = partial(_with_few_moves, compiled, formulation, settings, few)
    job = partial(_kept, compiled, formulation, settings, cache, solve_it)
    if move_cost is not None:
        if watch is not None:
            raise BadInput("on_plan: not available with a price on moves (move_cost)")
        price = parse_price(move_cost) if isinstance(move_cost, str) else move_cost
        job = partial(_paid, compiled, price, formulation, settings)
    return replace(_watched(job, settings, newest, progress, watch), executable=executable)


def _timed(outcome: Outcome, settings: Settings) -> Outcome:
    """The outcome with the seconds of the whole call so far, and of each of its stages."""
    call = settings.timed
    return outcome.with_(seconds=call.seconds(), detail={**outcome.detail, "stages": call.told()})


@dataclass(frozen=True)
class _Start:
    """The arguments of :func:`plan` about the plan that the search starts from."""

    today: TodaySource | None
    before: BeforeSource | None
    lost: Collection[int]
    max_moved: Moves | int | None
    move_cost: Fraction | str | None
    executable: str | None = None

    def compiled(
        self, model: ModelSource, cluster: ClusterSource, objective: str, settings: Settings
    ) -> tuple[Compiled, Settings]:
        """The compiled inputs, and the settings with what the start plan adds to them."""
        if self.before is not None:
            return self._from_before(self.before, model, cluster, objective, settings)
        if self.lost or any(
            given is not None for given in (self.max_moved, self.move_cost, self.executable)
        ):
            raise BadInput(
                "lost, max_moved, move_cost and executable go with before, the plan to start from"
            )
        if self.today is None:
            return compile_for(model, cluster, objective), settings
        compiled, known = compile_grown(self.today, model, cluster, objective)
        return compiled, replace(settings, hint=known)

    def _from_before(
        self,
        before: BeforeSource,
        model: ModelSource,
        cluster: ClusterSource,
        objective: str,
        settings: Settings,
    ) -> tuple[Compiled, Settings]:
        if self.today is not None:
            raise BadInput("today and before both name a plan to start from; give only one")
        moves = as_moves(self.max_moved)
        carried, known = compile_from(
            before, model, cluster, objective, self.lost, moves, self.executable
        )
        settings = replace(settings, hint=known.hint, prices=known.prices)
        if settings.goals == DEFAULT_GOALS:
            settings = replace(settings, goals=STAY)
        return carried.compiled, settings


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


def _refuse_with_divisions(**given: object) -> None:
    """Refuse arguments that need a single Instance when several divisions are tried."""
    for name, value in given.items():
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


def _kept(
    compiled: Compiled,
    formulation: str,
    settings: Settings,
    cache: PlanCache | None,
    solve_it: Callable[[], Outcome],
) -> Plan:
    """The plan from the cache, or else a new one that is then stored."""
    question = question_of(compiled, formulation, settings)
    outcome = answered(cache, question, solve_it)
    with uncollected():
        return decode(compiled.options, compiled.instance, outcome)


def _paid(compiled: Compiled, price: Fraction, formulation: str, settings: Settings) -> Plan:
    """The best plan with its moves priced; if there is none, a diagnosis."""
    solved = solve_moving(compiled, price, formulation, settings)
    if solved is None:
        outcome = _planned(compiled, formulation, settings)
        return decode(compiled.options, compiled.instance, outcome)
    outcome = _timed(solved[0], settings)
    return replace(decode(compiled.options, compiled.instance, outcome), moving=solved[1])


def _with_few_moves(
    compiled: Compiled, formulation: str, settings: Settings, within: float
) -> Outcome:
    """The best plan, or one that moves less and is hardly dearer."""
    first = _planned(compiled, formulation, left_for_objective(settings))
    with settings.timed.stage("fewer moves"):
        outcome = with_few_moves(compiled, first, formulation, settings, within)
    return _timed(outcome, settings)


def _planned(compiled: Compiled, formulation: str, settings: Settings) -> Outcome:
    """Solve; if there is no plan, add a diagnosis."""
    outcome = _solved(compiled, formulation, settings)
    if outcome.status != Status.INFEASIBLE:
        return outcome
    with settings.timed.stage("diagnosis"):
        outcome = _diagnosed(outcome, compiled, settings)
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
