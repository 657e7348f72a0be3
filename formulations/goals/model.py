"""One goal by CP-SAT: the exact model, where the objective and earlier goals are constraints; a
bound over pooled ranks; and neighbourhoods where the whole model is too large."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from formulations.clock import Clock, OutOfTime
from formulations.cpsat import Answer, Asked, Found, Use, solve_cpsat
from formulations.goals.problem import Aim, Problem
from formulations.instance import Instance
from formulations.model.build import Model, build
from formulations.model.fullest import fullest
from formulations.model.limits import moving
from formulations.model.loads import Row
from formulations.model.partition import Partition, by_class, by_rank
from formulations.model.parts import Parts
from formulations.model.placements import decode, fitted
from formulations.neighbourhoods import Neighbourhoods, Size, Sought
from formulations.presolve import Presolved
from formulations.result.placement import Placement
from formulations.search.numbers import AIMS
from formulations.settings import MOVED_BYTES, Settings

#: Neighbourhoods are small, as there is little time for each goal.
OPENED = Size(ranks=4.0, columns=1_500, units=1.5, patience=12)


@dataclass(frozen=True, eq=False)
class Task:
    """An aim to be minimised.

    Attributes
    ----------
    problem : Problem
    aim : int or None
        Index of the aim; None: the objective of the instance itself.
    limits : tuple of (int or None)
        The highest value allowed for each aim.
    most : int
        The highest value allowed for the objective.
    options : callable
        Returns the options worth considering, which are computed on the first call.
    plan : Placement
        A plan within all limits.
    """

    problem: Problem
    aim: int | None
    limits: tuple[int | None, ...]
    most: int
    options: Callable[[], Presolved]
    plan: Placement

    @property
    def value(self) -> int:
        """The aim's value in the plan."""
        assert self.aim is not None
        return self.problem.values(self.plan)[self.aim]


def by_model(
    task: Task, amount: float, settings: Settings, clock: Clock
) -> tuple[Placement, int | None]:
    """Solve the exact model, starting from the task's plan, for ``amount`` units of the clock;
    returns a plan, perhaps better than the task's, and a bound on the aim within the limits."""
    instance = task.problem.within(task.limits)
    try:
        model = _build(task, instance, by_rank(instance), clock)
    except OutOfTime:
        return task.plan, None
    values = fitted(model, task.plan, task.options().replacement)
    if values is None:
        return task.plan, None
    small = model.linear.num_columns <= AIMS.columns

    def ask(use: Use, share: float) -> Answer:
        limits = clock.limits(share * amount, settings.seed, settings.workers)
        answer = solve_cpsat(model.linear, limits, values, Asked(use))
        clock.spend(answer.work)
        return answer

    answer = ask(Use.CLAIMS if small else Use.PLANS, 1.0 if small else AIMS.for_plans)
    plan = task.plan if answer.values is None else decode(model, answer.values)
    if not small and not clock.over():
        values = values if answer.values is None else answer.values
        answer = ask(Use.CLAIMS, 1.0 - AIMS.for_plans)
    return plan, _bound(task, answer)


def pooled_bound(task: Task, amount: float, settings: Settings, clock: Clock) -> int | None:
    """A lower bound on the aim for all plans within the limits, from the model over pooled
    ranks."""
    instance = task.problem.within(task.limits)
    try:
        model = _build(task, instance, by_class(instance), clock)
    except OutOfTime:
        return None
    limits = clock.limits(amount, settings.seed, settings.workers)
    answer = solve_cpsat(model.linear, limits)
    clock.spend(answer.work)
    return _bound(task, answer)


def _bound(task: Task, answer: Answer) -> int | None:
    """The bound in units of the aim; the model counts fill levels in steps."""
    if answer.bound is None or answer.status == Found.INFEASIBLE or task.aim is None:
        return None
    return answer.bound * task.problem.aims[task.aim].step


def _build(task: Task, instance: Instance, partition: Partition, clock: Clock) -> Model:
    """The model with the aim as its objective."""
    parts = Parts(keep=task.options().kept.copy(), limit=task.most, cuts=False, check=clock.check)
    model = build(instance, partition, parts)
    if task.aim is not None:
        row = _row(model, task.problem.aims[task.aim], task)
        model.linear.scale = 1  # costs were scaled, and the objective is now only a constraint
        model.linear.minimise(row.column, row.coefficient)
    return model


def _row(model: Model, aim: Aim, task: Task, above: int | None = None) -> Row:
    """An aim as a row over the columns of a model; of how full places are, the sum of what is
    ``above`` a target, if there is one."""
    instance = model.columns.candidates.instance
    if aim.summed:
        return model.loads.everything(instance.shard_use[:, aim.resource])
    if aim.scope is None:
        return moving(model.columns, aim.goal == MOVED_BYTES)
    full, rooms = task.problem.rooms(aim)
    full, original = full // aim.step, task.problem.original
    if above is not None:
        return fullest(model, original, rooms, full, above // aim.step)
    low, high = aim.enough // aim.step, max(aim.enough, task.value) // aim.step
    return fullest(model, original, rooms, full, low, high)


def by_neighbourhoods(
    task: Task, target: int, amount: float, settings: Settings, clock: Clock
) -> Placement:
    """Open one part of the plan after another to reduce what exceeds a target of the aim, for
    ``amount`` units of the clock."""
    assert task.aim is not None
    problem, aim, keep = task.problem, task.problem.aims[task.aim], task.options().kept
    sought = Sought(
        lambda plan: problem.above(aim, plan, target),
        lambda model: _row(model, aim, task, target),
        lambda plan: problem.causes(aim, plan, target),
        task.most,
    )
    search = Neighbourhoods(problem.within(task.limits), sought, lambda _: keep, OPENED)
    return search.least(task.plan, 0, settings, clock, amount) or task.plan
