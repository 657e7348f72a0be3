"""Goal after goal, each as low as it gets with the objective and the goals before it held.

*Lexicographic optimisation with a tolerance on the first objective* (Ehrgott, Multicriteria
Optimization, 2005, chapter 5). Each aim is searched by compiled loops, then by CP-SAT: in the exact
model, which also proves how low it gets, or in neighbourhoods where that is too large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from formulations.clock import Clock
from formulations.goals.local import Local
from formulations.goals.model import Task, by_model, by_neighbourhoods, pooled_bound
from formulations.goals.problem import PARTS, Aim, Problem
from formulations.instance import Instance, Scope
from formulations.presolve import Presolved, placement_variables
from formulations.result.check import check
from formulations.result.outcome import GoalReached, Outcome, with_plan
from formulations.result.placement import Placement
from formulations.search.loops import loaded, waited_for
from formulations.search.parameters import DEFAULT
from formulations.settings import Settings

#: Options and placement variables up to which an aim is solved in the exact model.
WHOLE_UP_TO = 40_000
#: Share of the time already spent that all aims may take, and the least and most of it; goals that
#: a caller names may take the most.
SHARE, LEAST, MOST = 1.0, 3.0, 10.0
#: Share of the time limit kept for the goals, and the most units of it.
KEEP, MOST_KEPT = 0.1, 6.0
#: Units an option for what compiled loops do once, and the largest share of the limit for it.
EACH, MOST_AFTERWARDS = 4e-5, 0.2
#: Moves without a limit but time.
MANY = 2**60
#: Where nothing is said: the share of the objective given up so that a rank fuller than this has
#: this much more room, in parts of its capacity.
GIVEN, ROOMY, WORTH = 1e-4, round(0.8 * PARTS), round(0.1 * PARTS)


def kept_for_goals(instance: Instance, settings: Settings) -> float:
    """Units of a solve that should be left for :func:`improve`."""
    if not settings.polish or settings.work_limit is not None or settings.time_limit is None:
        return 0.0
    limit = settings.time_limit
    once = min(EACH * instance.num_options, MOST_AFTERWARDS * limit)
    return min(MOST_KEPT, KEEP * limit) + once


def improve(instance: Instance, outcome: Outcome, settings: Settings, clock: Clock) -> Outcome:
    """The outcome with a plan that is better in the goals, and what is known of each.

    Status and bound stay those of the objective: a plan that gives something of it up for a goal
    is no longer optimal, and the outcome says what the best plan costs (``before_goals``).

    Parameters
    ----------
    instance : Instance
    outcome : Outcome
        With a plan.
    settings : Settings
        Its ``goals``.
    clock : Clock
    """
    if outcome.placement is None or outcome.objective is None or not instance.num_tables:
        return outcome
    if instance.limits_moves and clock.over():  # few tables may move, so little is left to tidy
        return outcome
    seek = _Seek(Problem(instance, settings.goals), outcome, settings, clock)
    seek.run()
    told = with_plan(instance, outcome, seek.plan, seek.most)
    best = outcome.objective if (told.objective or 0) > outcome.objective else None
    return told.with_(goals=seek.reached(), before_goals=best)


@dataclass
class _Known:
    """What is known of an aim: what plans may cost it from now on, and a bound."""

    limit: int | None = None
    bound: int | None = None


class _Seek:
    """The search for the goals of one outcome's plan."""

    def __init__(
        self, problem: Problem, outcome: Outcome, settings: Settings, clock: Clock
    ) -> None:
        assert outcome.placement is not None and outcome.objective is not None
        self._problem, self._settings, self._clock = problem, settings, clock
        self._outcome = outcome
        self.plan: Placement = outcome.placement
        self._objective = outcome.objective
        self.most = settings.goals.most(outcome.objective)
        self._known = [_Known() for _ in problem.aims]
        self._presolved: dict[int, Presolved] = {}
        self._local: Local | None = None
        self._tidy = False
        named = settings.goals.named
        self._end = clock.now() + (MOST if named else min(MOST, max(LEAST, SHARE * clock.now())))

    def run(self) -> None:
        """All aims in order."""
        for index, aim in enumerate(self._problem.aims):
            if self._clock.interrupted():
                return
            self._aim(index)
            if aim.scope == Scope.RANK and self._settings.goals.tolerance is None:
                self._give_up(index)

    def reached(self) -> tuple[GoalReached, ...]:
        """What the plan reaches."""
        values = self._problem.exact(self.plan)
        return tuple(map(_reached, self._problem.aims, values, self._known))

    def _aim(self, index: int) -> None:
        """Minimise one aim, then hold it."""
        aim, known = self._problem.aims[index], self._known[index]
        known.limit = max(aim.enough, self._task(index).value)
        known.bound = max(aim.enough, self._problem.least(aim))
        for way in self._ways(aim):
            if known.limit <= known.bound or self._clock.interrupted():
                break
            self._take(way(index))
            known.limit = max(aim.enough, self._task(index).value)

    def _ways(self, aim: Aim) -> Iterator[Callable[[int], Placement]]:
        """Searches for an aim, the quickest first; that one is done in any case."""
        local = self._compiled()
        if local is not None and aim.scope is not None:
            yield self._evened
        elif local is not None and not (self._over() and self._tidy):
            yield self._tidied
        if local is not None and not self._over():
            yield self._annealed
        if not self._over():
            yield self._modelled if self._whole() else self._opened

    def _task(self, index: int | None, most: int | None = None) -> Task:
        most = self.most if most is None else most
        limits = tuple(known.limit for known in self._known)
        return Task(self._problem, index, limits, most, lambda: self._options(most), self.plan)

    def _options(self, most: int) -> Presolved:
        if most not in self._presolved:
            self._presolved[most] = self._problem.presolved(most, self._outcome.certificate)
        return self._presolved[most]

    def _whole(self) -> bool:
        presolved = self._options(self.most)
        size = placement_variables(self._problem.instance, presolved)
        return size + int(presolved.kept.sum()) <= WHOLE_UP_TO

    def _compiled(self) -> Local | None:
        """Compiled search where its loops are there; a caller who named goals waits for them."""
        if self._local is None:
            there = self._clock.counts or loaded()
            waits = self._settings.goals.named and not self._whole()
            if there or (waits and waited_for(self._clock.over)):
                self._local = Local(self._problem, self._settings.seed)
        return self._local

    def _over(self) -> bool:
        return self._clock.over() or self._clock.now() >= self._end

    def _amount(self, index: int) -> float:
        """Half of the time left, all of it for the last aim: the first count most."""
        left = min(self._end - self._clock.now(), self._clock.remaining())
        return max(0.0, left) / (1 if index == len(self._known) - 1 else 2)

    def _tidied(self, index: int) -> Placement:
        """By this aim and all after it: late, once is enough."""
        assert self._local is not None
        self._tidy = True
        return self._local.tidied(self._task(index))

    def _evened(self, index: int) -> Placement:
        """Then tables may be tidied once more: those before were so for other goals."""
        assert self._local is not None
        self._tidy = False
        return self._local.evened(self._task(index))

    def _annealed(self, index: int) -> Placement:
        assert self._local is not None
        amount, bound = self._amount(index) / 3, self._known[index].bound or 0
        end, unit = self._clock.now() + amount, DEFAULT.moves_a_unit
        most = max(1, int(amount * unit)) if self._clock.counts else MANY
        plan, made = self._local.annealed(
            self._task(index), bound, most, lambda: self._over() or self._clock.now() >= end
        )
        self._clock.spend(made / unit)
        return plan

    def _modelled(self, index: int) -> Placement:
        solved = by_model(
            self._task(index), self._amount(index), self._settings, self._clock
        )  # fmt: skip
        self._lift(index, solved.bound)
        return solved.plan

    def _opened(self, index: int) -> Placement:
        """Neighbourhoods, after a bound over pooled ranks that says how low to aim."""
        task, known, settings = self._task(index), self._known[index], self._settings
        amount = self._amount(index)
        self._lift(index, pooled_bound(task, amount / 4, settings, self._clock))
        target = known.bound if known.bound is not None else 0
        if self._problem.aims[index].scope is not None:  # what exceeds it is summed over places
            target = max(target, (target + task.value) // 2)
        if target >= task.value:
            return self.plan
        return by_neighbourhoods(task, target, amount / 2, settings, self._clock)

    def _lift(self, index: int, bound: int | None) -> None:
        known = self._known[index]
        if bound is not None and (known.bound is None or bound > known.bound):
            known.bound = bound

    def _take(self, plan: Placement, most: int | None = None) -> None:
        """Have the plan found, unless it breaks what is held."""
        if plan is self.plan:
            return
        held = self._problem.within([known.limit for known in self._known])
        verdict = check(held, plan)
        kind = self._problem.original.objective.value
        if verdict.feasible and verdict.objectives[kind] <= (self.most if most is None else most):
            self.plan = plan

    def _give_up(self, index: int) -> None:
        """Give a ten-thousandth of the objective up where ranks are full and it buys much room."""
        known, before = self._known[index], (self.plan, self._known[index])
        full = known.limit or 0
        if full <= ROOMY or self._over():
            return
        self._end = max(self._end, self._clock.now() + 2 * LEAST)  # a full rank deserves time
        self.most = self._objective + int(GIVEN * abs(self._objective))
        self._known[index] = _Known()
        self._aim(index)
        if (self._known[index].limit or 0) > full - WORTH:
            self.plan, self._known[index] = before
            self.most = self._objective
            return
        for aim, held in zip(self._problem.aims[:index], self._known, strict=False):
            held.bound = self._problem.least(aim)  # what was proved holds at the objective before
        self._cheapest()

    def _cheapest(self) -> None:
        """Give up no more of the objective than these goals need, which deserves its own time."""
        self._end = max(self._end, self._clock.now() + LEAST)
        solved = by_model(self._task(None), LEAST / 2, self._settings, self._clock)
        self._take(solved.plan)
        kind = self._problem.original.objective.value
        self.most = check(self._problem.original, self.plan).objectives[kind]


def _reached(aim: Aim, value: int, known: _Known) -> GoalReached:
    """What is told of an aim; a bound within what is enough says nothing, and one in steps that
    the value is more than a step less."""
    bound = known.bound if known.bound is not None and known.bound > aim.enough else None
    if bound is None and not aim.enough:
        bound = known.bound
    met = value <= aim.enough or (bound is not None and value <= bound)
    if bound is not None:
        bound -= aim.step - 1
    return GoalReached(aim.goal, "" if aim.scope is None else aim.scope.value, value, bound, met)
