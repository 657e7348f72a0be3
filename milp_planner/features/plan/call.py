"""``plan`` and ``check``: a checked and bounded plan, or all that is wrong with the inputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TypeVar

from formulations import Outcome, Settings, registry, solve
from formulations.interrupt import interruptible
from formulations.settings import DEFAULT_GOALS, GOALS, MOVES, TracePoint, parse_goals
from milp_planner.errors import BadInput, Problem
from milp_planner.features.plan.again import BeforeSource, Moves, as_moves, compile_from
from milp_planner.features.plan.cache import PlanCache, answered, question_of, to_cache
from milp_planner.features.plan.divide import divided
from milp_planner.features.plan.machines import with_more_machines
from milp_planner.features.plan.moving import solve_moving
from milp_planner.features.plan.remedies import with_remedies
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

#: After the objective few moves count first where a plan is made again.
STAY = replace(DEFAULT_GOALS, order=(MOVES, *(goal for goal in GOALS if goal != MOVES)))
#: Part of a diagnosis' time that is kept for changes of the model and numbers of machines.
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
    goals: str | None = None,
    gap: float | None = None,
    on_plan: OnPlan | None = None,
    progress: bool | None = None,
    cache: PlanCache | str | Path | None = None,
    on_improvement: Callable[[TracePoint], None] | None = None,
    on_start: Callable[..., None] | None = None,
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
        ``busiest_rank`` or ``total``.
    settings : Settings, optional
        All limits and preferences.
    time_limit : float, optional
        Seconds of wall clock to solve; default: that of ``settings`` (60).
    today : optional
        The plan you run: what :func:`milp_planner.audit` takes. It is where the search starts, its
        cache ratios and column widths are added to the model's, and between plans that are
        otherwise equal the one that moves less is taken. Tables that it does not have are new and
        free to place.
    before : Plan or path of a plan.json, optional
        A plan of yesterday, of another state of the model and cluster, to plan again from: its
        placement is carried over (:func:`milp_planner.today.carried.carried`), mended with few
        bytes moved where it no longer fits, and is where the search starts; the multipliers of its
        certificate are where bounds start.
    lost : collection of int, optional
        Ranks of ``before``'s cluster that are no longer there. Without it, machines and their ranks
        are the same in order, and the last ones are those that are gone or new.
    max_moved : int or Moves, optional
        How many tables, or bytes, may move from ``before``.
    move_cost : Fraction or str, optional
        What a byte that moves from ``before`` costs, in picoseconds or as ``"1ms/GB"``: the plan is
        the best of objective + price, and ``plan.moving`` says what is certified of that sum.
        Nothing of it is taken from a cache.
    goals : str, optional
        What a plan is judged by after the objective, and how much of that may be given up for it:
        ``"step_time:0.1%,moves,shards"``; see :func:`formulations.settings.parse_goals`.
    gap : float, optional
        Ends the search as soon as the plan is certified to be within this share of the best
        possible: 0.005 is half a percent. ``outcome.stopped_by`` is ``gap`` then.
    on_plan : callable, optional
        ``on_plan(plan, bound)`` is told of every better plan, and of every better bound (in
        picoseconds, None while there is none) on the best one; what comes within a tenth of a
        second is told at once, the newest only. The plan has passed the solver-free check. It is
        called in the thread that called ``plan``, so the solver does not wait for it. If it
        returns False, or raises ``KeyboardInterrupt``, the search ends and the best plan is
        returned, as after Ctrl-C; any other exception ends the search and is raised here.
    progress : bool, optional
        Whether to write a line of progress to stderr: seconds, plan, bound, gap, certified gap.
        Default: in notebooks only.
    cache : PlanCache or path of a folder, optional
        Where answers are kept. A plan that is there for the same question (model, cluster, profile,
        objective, today's or yesterday's plan, formulation, seed, goals, settings of the
        formulation, versions) is returned at once if it is certified to ``gap`` (without one:
        optimal) and all it claims is verified; whatever is certified to some gap is kept. Where
        ``two_d`` leaves the division into sharding groups open, nothing is asked or kept: an
        outcome is of one division.
    on_improvement : callable, optional
        Called with a :class:`formulations.settings.TracePoint` whenever a better plan or bound is
        known, from any thread.
    on_start : callable, optional
        Called with the formulation's name when pricing is done and solving begins.

    Returns
    -------
    Plan
        Its outcome's status says what is known: ``optimal`` and ``feasible`` have tables and have
        passed the solver-free check, ``infeasible`` is a proof that no plan exists (with
        ``outcome.detail["diagnosis"]``: what is short, and the least that would do), ``unknown`` is
        neither. Ctrl-C, or a notebook's interrupt, ends the search and hands back the best plan
        known by then; a second one raises ``KeyboardInterrupt``.

    Raises
    ------
    BadInput, InstanceError
        For malformed inputs, unknown names, or a table without any legal option.
    """
    registry.get(formulation)
    cache = to_cache(cache)
    settings = limited(settings, time_limit, goals, objective, gap)
    newest = Newest(on_improvement or settings.on_progress)
    settings = replace(settings, on_progress=newest)
    place = to_cluster(cluster)
    if is_open(place):
        _named(today=today, before=before, on_plan=on_plan)
        told = partial(_told, newest, on_start, formulation)
        parts = to_model(model), place, formulation, objective, settings, told, _planned
        return _watched(partial(divided, *parts), settings, newest, progress)
    if before is not None:
        if today is not None:
            raise BadInput("today and before both name a plan to start from; give one")
        found, known_before = compile_from(
            before, model, cluster, objective, lost, as_moves(max_moved)
        )
        compiled = found.compiled
        settings = replace(settings, hint=known_before.hint, prices=known_before.prices)
        if settings.goals == DEFAULT_GOALS:
            settings = replace(settings, goals=STAY)
    elif lost or max_moved is not None or move_cost is not None:
        raise BadInput("lost, max_moved and move_cost go with before, the plan to start from")
    elif today is None:
        compiled = compile_for(model, cluster, objective)
    else:
        compiled, known = compile_grown(today, model, cluster, objective)
        settings = replace(settings, hint=known)
    if on_start is not None:
        on_start(formulation)
    if move_cost is not None:
        if on_plan is not None:
            raise BadInput("on_plan: is not told of plans whose moves have a price (move_cost)")
        price = parse_price(move_cost) if isinstance(move_cost, str) else move_cost
        paid = partial(_paid, compiled, price, formulation, settings)
        return _watched(paid, settings, newest, progress)
    watch = None if on_plan is None else Watch(compiled, formulation, on_plan, newest)
    job = partial(_kept, compiled, formulation, settings, cache)
    return _watched(job, settings, newest, progress, watch)


def _watched(
    job: Callable[[], Plan],
    settings: Settings,
    newest: Newest,
    progress: bool | None,
    watch: Watch | None = None,
) -> Plan:
    """Do the work while the caller's thread tells what is new."""
    line = Line(newest) if progress or (progress is None and in_notebook()) else None
    try:
        return interruptible(job, settings.stop, _both(line, watch))
    finally:
        if line is not None:
            line.end()


def _named(**asked: object) -> None:
    """Refuse what needs a single Instance where several divisions are tried."""
    for name, value in asked.items():
        if value is not None:
            raise BadInput(
                f"{name} goes with one sharding group; allowed: a two_d that names size, layout "
                "and strategy"
            )


def _told(
    newest: Newest, on_start: Callable[..., None] | None, formulation: str, words: str
) -> None:
    """Say which division is looked at: what is known so far is of another Instance."""
    newest.point = None
    if on_start is not None:
        on_start(f"{formulation}, {words}")


def _both(line: Line | None, told: Watch | None) -> Callable[[], object] | None:
    """What the caller's thread does while the solver works; None where it only waits."""
    if line is None:
        return told

    def look() -> object:
        line()
        return None if told is None else told()

    return look


def limited(
    settings: Settings | None,
    time_limit: float | None,
    goals: str | None,
    objective: str,
    gap: float | None = None,
) -> Settings:
    """The settings of a call, with the limits and goals that it names on top.

    BadInput for a gap that is no share.
    """
    settings = settings or Settings()
    if gap is not None:
        if not 0 <= gap < 1:
            raise BadInput(f"gap: found {gap}; allowed: a share from 0 to 1, such as 0.005")
        settings = replace(settings, gap=gap)
    if time_limit is not None:
        settings = replace(settings, time_limit=time_limit)
    return settings if goals is None else replace(settings, goals=parse_goals(goals, objective))


def _kept(
    compiled: Compiled, formulation: str, settings: Settings, cache: PlanCache | None
) -> Plan:
    """The plan that is in the cache, else one that is made and kept there."""
    question = question_of(compiled, formulation, settings)
    outcome = answered(cache, question, lambda: _planned(compiled, formulation, settings))
    return decode(compiled.options, compiled.instance, outcome)


def _paid(compiled: Compiled, price: Fraction, formulation: str, settings: Settings) -> Plan:
    """The plan that is best with its moves paid for; where there is none, what would help."""
    solved = solve_moving(compiled, price, formulation, settings)
    if solved is None:
        outcome = _planned(compiled, formulation, settings)
        return decode(compiled.options, compiled.instance, outcome)
    return replace(decode(compiled.options, compiled.instance, solved[0]), moving=solved[1])


def _planned(compiled: Compiled, formulation: str, settings: Settings) -> Outcome:
    """A solve; where there is no plan, with what would help."""
    outcome = solve(compiled.instance, formulation, settings)
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
    """Every problem of a model and a cluster: what :func:`milp_planner.plan` would refuse.

    Whether the tables fit into the memory is not asked: that takes a plan.

    Parameters
    ----------
    model, cluster
        Objects, paths of their files, or names of shipped ones.
    profile : str, optional
        Hardware profile that prices the plan, a name or a file; default: the cluster's.

    Returns
    -------
    tuple of Problem
        Those of the model first, then of the cluster and of its profile. Where all three are
        right by themselves: those of the tables on this cluster. Empty when there are none.
    """
    problems: list[Problem] = []

    def told(read: Callable[[], Read]) -> Read | None:
        try:
            return read()
        except BadInput as error:
            problems.extend(error.problems)
            return None

    tables = told(lambda: to_model(model))
    place = told(lambda: to_cluster(cluster))
    name = profile or (place.profile if place is not None else None)
    prices = None if name is None else told(lambda: load_profile(name))
    if tables is not None and place is not None and prices is not None:
        told(lambda: options_of(tables, place, prices))
    return tuple(problems)


def assumed(model: ModelSource, cluster: ClusterSource) -> str | None:
    """What is assumed of memory besides the embeddings where neither says; else None."""
    return assumed_of(to_model(model), to_cluster(cluster))
