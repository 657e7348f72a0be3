"""Minimise one goal after another, while the objective and the earlier goals keep their values.

*Lexicographic optimisation with a tolerance on the first objective* (Ehrgott, Multicriteria
Optimization, 2005, chapter 5). Compiled loops minimise each aim first, then CP-SAT: in the exact
model, which also proves a bound, or in neighbourhoods where that model is too large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from formulations.clock import Clock
from formulations.goals.local import Local
from formulations.goals.model import Task, by_model, by_neighbourhoods, pooled_bound
from formulations.goals.problem import Aim, Problem
from formulations.instance import Instance, Scope
from formulations.presolve import Presolved, placement_variables
from formulations.result.check import check, value_of
from formulations.result.outcome import GoalReached, Outcome, with_plan
from formulations.result.placement import Placement
from formulations.search.home import renamed
from formulations.search.loops import loaded, waited_for
from formulations.search.near import nearest, settled
from formulations.search.numbers import AIMS
from formulations.search.parameters import DEFAULT
from formulations.settings import EVEN_MEMORY, MOVED_BYTES, Settings


def kept_for_goals(instance: Instance, settings: Settings) -> float:
    """Units of the time limit that a solve should leave for :func:`improve`."""
    if not settings.polish or settings.work_limit is not None or settings.time_limit is None:
        return 0.0
    limit = settings.time_limit
    once = min(AIMS.each * instance.num_options, AIMS.most_afterwards * limit)
    return min(AIMS.most_kept, AIMS.kept * limit) + once


def improve(instance: Instance, outcome: Outcome, settings: Settings, clock: Clock) -> Outcome:
    """The outcome with a plan that is better in the goals, and the value and bound of each goal.

    Status and bound still refer to the objective: a plan that gives up some of it for a goal is no
    longer optimal, and the outcome says what the best plan costs (``before_goals``).

    Parameters
    ----------
    instance : Instance
    outcome : Outcome
        With a plan.
    settings : Settings
        ``goals`` are its goals in order.
    clock : Clock
    """
    if outcome.placement is None or outcome.objective is None or not instance.num_tables:
        return outcome
    if instance.limits_moves and clock.over():  # few tables may move, so there is little to gain
        return outcome
    seek = _Seek(Problem(instance, settings.goals), outcome, settings, clock)
    seek.run()
    improved, best = with_plan(instance, outcome, seek.plan, seek.most), seek.best
    dearer = (improved.objective or 0) > best
    return improved.with_(goals=seek.reached(), before_goals=best if dearer else None)


@dataclass
class _Known:
    """What is known of an aim: the highest value allowed from now on, and a lower bound."""

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
        before = outcome.before_goals
        self.best = outcome.objective if before is None else before
        self.most = max(outcome.objective, settings.goals.most(self.best))
        self._known = [_Known() for _ in problem.aims]
        self._presolved: dict[int, Presolved] = {}
        self._local: Local | None = None
        self._tidy = False
        named = settings.goals.named
        if settings.goals.own:
            self._end = float("inf")
            return
        self._end = clock.now() + (
            AIMS.most if named else min(AIMS.most, max(AIMS.least, AIMS.share * clock.now()))
        )

    def run(self) -> None:
        """Minimise all aims in order."""
        for index, aim in enumerate(self._problem.aims):
            if self._clock.interrupted():
                return
            self._aim(index)
            limit, slack = self._known[index].limit or 0, self._settings.goals.slack
            self._known[index].limit = limit + int(limit * slack)
            if (
                aim.goal == EVEN_MEMORY
                and aim.scope == Scope.RANK
                and self._settings.goals.tolerance is None
            ):
                self._give_up(index)

    def reached(self) -> tuple[GoalReached, ...]:
        """The value of every aim in the plan, with its bound."""
        values = self._problem.exact(self.plan)
        return tuple(map(_reached, self._problem.aims, values, self._known))

    def _aim(self, index: int) -> None:
        """Minimise one aim and set its limit to the value reached."""
        aim, known = self._problem.aims[index], self._known[index]
        known.limit = max(aim.enough, self._task(index).value)
        known.bound = max(aim.enough, self._problem.least(aim))
        for way in self._ways(aim):
            if known.limit <= known.bound or self._clock.interrupted():
                break
            self._take(way(index))
            known.limit = max(aim.enough, self._task(index).value)

    def _ways(self, aim: Aim) -> Iterator[Callable[[int], Placement]]:
        """Searches for an aim, the quickest first; that one runs even when the time is over, where
        a pass is quick."""
        if self._late():
            return
        local = self._compiled()
        if aim.goal == MOVED_BYTES:
            yield lambda _: renamed(self._problem.original, self.plan)
            if local is not None and self._settings.hint is not None:
                yield self._nearest
        if local is not None and aim.scope is not None:
            yield self._evened
        elif local is not None and not (self._over() and self._tidy):
            yield self._tidied
        if local is not None and not self._over():
            yield self._annealed
        if not self._over():
            yield self._modelled if self._whole() else self._opened

    def _task(self, index: int | None) -> Task:
        most = self.most
        limits = tuple(known.limit for known in self._known)
        return Task(self._problem, index, limits, most, lambda: self._options(most), self.plan)

    def _options(self, most: int) -> Presolved:
        if most not in self._presolved:
            self._presolved[most] = self._problem.presolved(most, self._outcome.certificate)
        return self._presolved[most]

    def _whole(self) -> bool:
        presolved = self._options(self.most)
        size = placement_variables(self._problem.instance, presolved)
        return size + int(presolved.kept.sum()) <= AIMS.whole

    def _compiled(self) -> Local | None:
        """The compiled search once its loops are loaded; if the caller named goals, wait for
        them."""
        if self._local is None:
            begin, there = self._clock.now(), self._clock.counts or loaded()
            waits = self._settings.goals.named and not self._whole()
            if there or (waits and waited_for(self._clock.over)):
                self._local = Local(self._problem, self._settings.seed)
            self._end += 0.0 if there else self._clock.now() - begin
        return self._local

    def _over(self) -> bool:
        return self._clock.over() or self._clock.now() >= self._end

    def _late(self) -> bool:
        """Whether the time limit is over and a pass over all tables takes noticeable time."""
        return self._problem.instance.num_options > AIMS.quick and self._clock.late() > 0

    def _amount(self, index: int) -> float:
        """Half of the time left, because the first aims count most; all of it for the last aim."""
        left = min(self._end - self._clock.now(), self._clock.remaining())
        return max(0.0, left) / (1 if index == len(self._known) - 1 else 2)

    def _nearest(self, index: int) -> Placement:
        """Search from the earlier plan, which is repaired first, for one within the tolerance."""
        end, settings = self._clock.now() + AIMS.near * self._amount(index), self._settings
        instance, hint = self._problem.original, settings.hint
        assert hint is not None

        def over() -> bool:
            return self._over() or self._clock.now() >= end

        wish = settled(
            instance, hint, settings.prices, over, self._clock.interrupted, seed=settings.seed,
            improve=False,
        )  # fmt: skip
        if wish is None:
            return self.plan
        found = nearest(instance, wish, self.most, settings.prices, over, settings.seed)
        return self.plan if found is None else found

    def _tidied(self, index: int) -> Placement:
        """Tidy tables by this aim and all after it; once the time is over, one pass is enough."""
        assert self._local is not None
        self._tidy = True
        return self._local.tidied(self._task(index), self._late)

    def _evened(self, index: int) -> Placement:
        """Even out the fill; tables may then be tidied once more, for the goals that follow."""
        assert self._local is not None
        self._tidy = False
        return self._local.evened(self._task(index), self._late)

    def _annealed(self, index: int) -> Placement:
        assert self._local is not None
        amount, bound = self._amount(index) / 3, self._known[index].bound or 0
        end, unit = self._clock.now() + amount, DEFAULT.moves_a_unit
        most = max(1, int(amount * unit)) if self._clock.counts else AIMS.endless
        plan, made = self._local.annealed(
            self._task(index), bound, most, lambda: self._over() or self._clock.now() >= end
        )
        self._clock.spend(made / unit)
        return plan

    def _modelled(self, index: int) -> Placement:
        plan, bound = by_model(
            self._task(index), self._amount(index), self._settings, self._clock
        )  # fmt: skip
        self._lift(index, bound)
        return plan

    def _opened(self, index: int) -> Placement:
        """Search neighbourhoods, towards a target from a bound over pooled ranks."""
        task, known, settings = self._task(index), self._known[index], self._settings
        amount = self._amount(index)
        self._lift(index, pooled_bound(task, amount / 4, settings, self._clock))
        target = known.bound if known.bound is not None else 0
        if self._problem.aims[index].scope is not None:  # the excess is summed over all places
            target = max(target, (target + task.value) // 2)
        if target >= task.value:
            return self.plan
        return by_neighbourhoods(task, target, amount / 2, settings, self._clock)

    def _lift(self, index: int, bound: int | None) -> None:
        known = self._known[index]
        if bound is not None and (known.bound is None or bound > known.bound):
            known.bound = bound

    def _take(self, plan: Placement) -> None:
        if plan is self.plan:
            return
        held = self._problem.within([known.limit for known in self._known])
        value = value_of(held, plan)
        if value is not None and value <= self.most:
            self.plan = plan

    def _give_up(self, index: int) -> None:
        """Give up a ten-thousandth of the objective where ranks are full and this gains much
        room."""
        known, before = self._known[index], (self.plan, self._known[index])
        full = known.limit or 0
        if full <= AIMS.roomy or self._over():
            return
        self._end = max(self._end, self._clock.now() + 2 * AIMS.least)  # a full rank deserves time
        self.most = self.best + int(AIMS.given * abs(self.best))
        self._known[index] = _Known()
        self._aim(index)
        if (self._known[index].limit or 0) > full - AIMS.worth:
            self.plan, self._known[index] = before
            self.most = self.best
            return
        for aim, held in zip(self._problem.aims[:index], self._known, strict=False):
            held.bound = self._problem.least(aim)  # earlier proofs assumed the lower objective
        self._cheapest()

    def _cheapest(self) -> None:
        """Give up no more of the objective than the goals need; this gets time of its own."""
        self._end = max(self._end, self._clock.now() + AIMS.least)
        plan, _ = by_model(self._task(None), AIMS.least / 2, self._settings, self._clock)
        self._take(plan)
        kind = self._problem.original.objective.value
        self.most = check(self._problem.original, self.plan).objectives[kind]


def _reached(aim: Aim, value: int, known: _Known) -> GoalReached:
    """The result for an aim.

    A bound up to ``enough`` is left out, because it says nothing; a bound in steps means that the
    exact value is more than the bound less one step.
    """
    bound = known.bound if known.bound is not None and known.bound > aim.enough else None
    if bound is None and not aim.enough:
        bound = known.bound
    met = value <= aim.enough or (bound is not None and value <= bound)
    if bound is not None:
        bound -= aim.step - 1
    return GoalReached(aim.goal, "" if aim.scope is None else aim.scope.value, value, bound, met)
