"""Goals by compiled search: first tables and shards change one at a time, then annealing changes
many, towards a plan that is better in one goal and no worse in the earlier ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from formulations.goals.model import Task
from formulations.goals.problem import Problem
from formulations.instance import Instance, IntArray
from formulations.instance.facts import bytes_to_move, total_use
from formulations.result.check import compute_loads, exposed, objectives, value_of
from formulations.result.placement import Placement
from formulations.search.anneal import Sampler, Within
from formulations.search.numbers import AIMS
from formulations.settings import MOVED_BYTES, MOVES


class Local:
    """Compiled search for the goals of one problem.

    Parameters
    ----------
    problem : Problem
    seed : int
    """

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        self._problem, self._sampler = problem, Sampler(problem.instance, seed)
        self._seed = seed

    def tidied(self, task: Task, over: Callable[[], bool] = lambda: False) -> Placement:
        """Give every table the best state it can have, judged by the aim and those after it: in
        several passes, the last of which ends soon after it is ``over``."""
        problem = self._problem
        order, best = preferences(problem, task.aim or 0), task.plan
        held = problem.within(task.limits)
        worth = self._worth(task, best)
        for slack in AIMS.slacks:
            if over():
                break
            self._sampler.begin(task.plan, Within([task.most], held=held))
            self._sampler.tidy(order, task.most + int(slack * abs(task.most)), over)
            plan = self._sampler.placement()
            if _fits(held, plan, task.most) and self._worth(task, plan) < worth:
                best, worth = plan, self._worth(task, plan)
        return best

    def evened(self, task: Task, over: Callable[[], bool] = lambda: False) -> Placement:
        """Move shards away from the fullest place, one at a time, until it is ``over``."""
        problem, sampler = self._problem, self._sampler
        assert task.aim is not None
        aim, held = problem.aims[task.aim], problem.within(task.limits)
        sampler.begin(task.plan, Within([task.most], held=held))
        use, only = total_use(problem.original)[task.plan.options], None
        if aim.resource >= 0:
            known = problem.original.resources[: aim.resource]
            only = sum(resource.scope == aim.scope for resource in known)
            use = use[:, [aim.resource]]
        assert aim.scope is not None
        order = np.argsort(-use.sum(axis=1), kind="stable")
        sampler.even(order, task.most, aim.scope, only, over)
        plan = sampler.placement()
        return plan if _fits(held, plan, task.most) else task.plan

    def annealed(
        self, task: Task, least: int, most_moves: int, over: Callable[[], bool]
    ) -> tuple[Placement, int]:
        """Try ever lower values of the aim, from the task's plan, until none is reached; returns
        the plan and the moves made."""
        problem, plan = self._problem, task.plan
        assert task.aim is not None
        value, made, misses, passes = task.value, 0, 0, AIMS.passes
        if problem.aims[task.aim].goal == MOVED_BYTES:
            passes = AIMS.homeward
            self._sampler.choose_from(self._old_or_own(plan))
        step = max(1, int(passes.step * (value - least)))
        moves = min(most_moves, passes.moves * problem.original.num_tables)
        while value > least and misses < passes.patience and made < most_moves and not over():
            limits = list(task.limits)
            limits[task.aim] = max(least, value - problem.aims[task.aim].rounded(step))
            held = problem.within(limits)
            target = _target(problem.original, plan, task.most)
            ladder = [passes.heats[misses % len(passes.heats)]]
            if passes is AIMS.homeward:
                self._sampler.reseed(self._seed + made)
            made += self._sampler.run(plan, Within(target, over, task.most, held), ladder, moves)
            found = self._sampler.plan()
            if found is not None and _fits(held, found, task.most):
                plan, value, misses = found, problem.values(found)[task.aim], 0
            else:
                misses, step = misses + 1, max(1, int(passes.less * step))
        self._sampler.choose_from(problem.instance.allowed)
        return plan, made

    def _old_or_own(self, plan: Placement) -> NDArray[np.bool_]:
        instance = self._problem.instance
        kept = np.zeros(instance.num_options, dtype=bool)
        kept[plan.options] = True
        kept[[now.option for now in instance.current if now.option >= 0]] = True
        return kept & instance.allowed

    def _worth(self, task: Task, plan: Placement) -> list[int]:
        return self._problem.values(plan)[task.aim or 0 :]


def _target(instance: Instance, plan: Placement, most: int) -> list[int]:
    """The target of every phase: its present peak, and a proportional part of what the objective
    leaves."""
    loads = compute_loads(instance, plan)
    value = objectives(instance, loads)[instance.objective.value]
    if not instance.by_phase:
        return [most]
    peaks = exposed(instance, loads).tolist()
    spare = [(most - value) * peak // max(1, value) for peak in peaks]
    spare[peaks.index(max(peaks))] += most - value - sum(spare)
    return [peak + more for peak, more in zip(peaks, spare, strict=True)]


def _fits(held: Instance, plan: Placement, most: int) -> bool:
    value = value_of(held, plan)
    return value is not None and value <= most


def preferences(problem: Problem, first: int = 0) -> IntArray:
    """Rank the options by the aims from ``first`` on whose values the option alone determines.

    int64 array [2 × options]: every option placed anywhere, then every option placed as in
    production; the lowest rank is the best.
    """
    instance = problem.instance
    use = total_use(instance)
    known = np.zeros(instance.num_tables, dtype=bool)
    known[[now.table for now in instance.current]] = True
    away = known[instance.table_of].astype(np.int64)
    keys = [np.zeros(2 * instance.num_options, dtype=np.int64)]
    for aim in problem.aims[first:]:
        if aim.summed:
            keys.append(np.tile(use[:, aim.resource], 2))
        elif aim.goal == MOVES:
            keys.append(np.append(away, np.zeros_like(away)))
        elif aim.goal == MOVED_BYTES:
            keys.append(np.append(away * (bytes_to_move(instance) + 1), np.zeros_like(away)))
    ranks = np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)[1]
    return ranks.reshape(-1).astype(np.int64)
