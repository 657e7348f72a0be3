"""The makers of plans: annealing towards targets, and replica exchange."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf

import numpy as np

from formulations.clock import OutOfTime
from formulations.instance import IntArray, Objective
from formulations.instance.facts import own_cost, per_option, shard_counts, shown_cost, total_cost
from formulations.result.check import check, exposed
from formulations.result.placement import Placement
from formulations.search.anneal import Choice, Ladder, Sampler, Within
from formulations.search.context import Context
from formulations.search.fitting import fitting
from formulations.search.numbers import FEWEST, NOTHING, OVERDUE, SETTLED, SWEPT


class Plans:
    """The makers of plans of one worker, which share what they have reached.

    Parameters
    ----------
    context : Context
    options : int64 array [tables]
        A choice to start from.
    seed : int
        Number of the worker; every worker of a context has its own.

    Attributes
    ----------
    sampler : Sampler or None
        Made on first use.
    news : bool
        Whether a bound's choice has not been annealed from yet, or led to a better plan.
    spent : float
        Units of the clock that its turns have used.
    """

    def __init__(self, context: Context, options: IntArray, seed: int = 0) -> None:
        self._context, self._parameters = context, context.parameters
        self._choice, self._lock = Choice(options), threading.Lock()
        self._told: tuple[Choice, bool] | None = None
        # the first two workers draw new seeds when they restart; the others must not repeat them
        self._seed = 2 * context.settings.seed + seed % 2 + 2018 * (seed // 2)
        self.sampler: Sampler | None = None
        self._settled, self._evenly_next = b"", True
        self._even: IntArray | None = None
        self._steps = dict.fromkeys((False, True), self._parameters.step)
        self._packed = False
        self._rate = float(self._parameters.moves_a_unit)
        self._replicas: Sampler | None = None
        self._misses = self._begun = 0
        self._reached = self._stuck = False
        self.news, self.spent = False, 0.0
        self._aim, self._tables = 0, max(1, context.instance.num_tables)

    def choose(self, choice: Choice, news: bool = False) -> None:
        """Start from another choice of options, and of machines where these are known, from the
        next turn on; may be called from any thread. Replicas that have met no plan, or only far
        dearer ones, restart from it as well. A choice that costs as much as the best plan even
        where shards need not fit leads to no better one."""
        best = self._context.objective
        if choice.value is not None and best is not None and choice.value >= best:
            return
        with self._lock:
            restart = self._told is not None and self._told[1]
            restart = restart or not self._reached or self._cheaper(choice)
            self._told = choice, restart
            self.news |= news

    def _listen(self) -> None:
        """Adopt the choice told since the last turn; a turn works with one choice throughout."""
        with self._lock:
            told, self._told = self._told, None
        if told is not None:
            self._choice, restart = told
            if restart:
                self._replicas, self._stuck = None, False

    def pack(self) -> None:
        """Place choices of options, the largest shards first, improve them and offer the plans;
        once.

        After the choice at hand these are choices that fit a sweep of targets
        (:mod:`formulations.search.fitting`). With memory to spare, the last of these plans is close
        to the best already.
        """
        if self._packed:
            return
        self._listen()
        self._packed = True
        context, found = self._context, self._choice.options
        best, value = inf, context.objective
        if value is None or self._mean(found) < value:
            best = self._settle(found, max(self._target(), 1))
        for target in self._sweep():
            if context.over():
                break
            options = fitting(context.instance).choice(context.keep, target)
            excess = inf if options is None else self._settle(options, target)
            if options is not None and excess <= best:
                best, found = excess, options
        if found is not self._choice.options:  # which the machines and the value do not belong to
            self._choice = Choice(found)

    def _sweep(self) -> Iterator[int]:
        """Targets above what plans cost at least, in growing steps until one is met, or nearly,
        then halfway between the best plan and the highest one missed."""
        context, chosen = self._context, self._parameters
        if context.instance.objective == Objective.TOTAL:
            return
        least = fitting(context.instance).least(context.keep)
        missed = least if context.bound is None else max(least, context.bound)
        step = max(1, int(chosen.far * missed))
        for _ in range(SWEPT):
            met = context.objective
            if met is not None and met - missed <= max(1, chosen.shrink * met):
                return
            target = missed + step if met is None else min(missed + step, (missed + met) // 2)
            yield target
            now = context.objective
            if now is None or now == met or now > target + chosen.margin * abs(target):
                missed, step = target, 2 * step

    def _settle(self, options: IntArray, target: int) -> float:
        """Pack a choice once; returns its excess over the target, below 0 if it meets that."""
        sampler, moves = self._ready(), self._parameters.settling_moves * self._tables
        self._restrict(sampler, target)
        ladder, over = self._cooling(self._parameters.heats[-1]), self._context.over
        self._run(sampler, Choice(options), self._targets(target), ladder, moves, over)
        excess = -1.0 if sampler.value is not None else sampler.over
        self._take(sampler)
        return excess

    def settle(self, choice: Choice) -> bool:
        """Place a choice whose options stay as they are, each phase about as high as the choice's
        mean, and offer the plan; returns whether its shards fit. If it is the best, passes from the
        best plan keep these proportions, until one fails; then every other way. Where many tables
        are equal, moves that change options as well lose such a choice before its shards are
        placed."""
        context, options = self._context, choice.options
        best, mean = context.objective, self._mean(options)
        if options.tobytes() == self._settled or (best is not None and mean >= best):
            return True
        self._settled = options.tobytes()
        sampler, only = self._ready(), np.zeros(context.instance.num_options, dtype=bool)
        only[options] = True
        sampler.choose_from(only)
        targets = self._evenly(mean + int(self._parameters.margin * mean), options)
        ladder, over = self._cooling(self._parameters.heats[-1]), context.over
        moves = SETTLED * self._parameters.settling_moves * self._tables
        self._run(sampler, choice, targets, ladder, moves, over)
        plan = sampler.plan()
        plan = sampler.placement() if plan is None else plan
        if context.offer(plan, "annealing"):
            self._even = options
        return check(context.instance, plan).feasible

    def ways(self) -> list[tuple[bool, float]]:
        """Ways to anneal: whether from an earlier result, and the first temperature."""
        return [(warm, heat) for warm in (False, True) for heat in self._parameters.heats]

    def anneal(self, warm: bool, heat: float, amount: float) -> bool:
        """One pass towards a target: from the choice of options, or (``warm``) from the best
        plan."""
        context, sampler = self._context, self._ready()
        self.pack()
        self._listen()
        start, target = context.best if warm else None, self._target(warm)
        if not warm:
            target = min(target, self._above(self._parameters.far))
        self._restrict(sampler, target)
        ladder = self._cooling(heat)
        targets = self._targets(target, warm and self._evenly_next)
        self._turn(sampler, start or self._choice, targets, ladder, amount)
        met = self._take(sampler)
        self._evenly_next ^= warm and not met
        if not warm and heat == self._parameters.heats[-1]:
            with self._lock:
                self.news = self._told is not None or met
        self._steps[warm] = min(1.0, self._steps[warm] * (2.0 if met else 0.5))
        return True

    def first(self, amount: float) -> bool:
        """Look for any plan, where memory is so tight that passes near the bound meet none: the
        first target is a cost that no plan exceeds, so that only capacities matter; each plan
        lowers it."""
        context = self._context
        if context.objective is not None:
            return False
        sampler = self._ready()
        self._listen()
        sampler.choose_from(context.keep)
        target, ladder = [self._dearest()] * context.peaks, self._cooling(self._ladder()[0][0])
        self._turn(sampler, self._choice, target, ladder, amount)
        self._take(sampler)
        return context.objective is None

    def temper(self, amount: float) -> bool:
        """Replica exchange, which continues where its last turn ended."""
        context, chosen = self._context, self._parameters
        self._listen()
        if self._replicas is None:
            self._replicas = self._replicated()
        sampler = self._replicas
        if context.objective is not None:
            less = max(1, int(chosen.shrink * abs(context.objective)))
            self._aim = min(self._aim, context.objective - less)
        self._restrict(sampler, self._aim)
        self._turn(sampler, None, self._targets(self._aim), self._ladder(), amount)
        if sampler.value is None:
            self._take(sampler)
            above = 0 if context.objective is None else context.objective - self._aim
            self._aim += int(max(chosen.margin * abs(self._aim), chosen.step * above)) + 1
            self._misses += 1
            if self._misses == chosen.patience and context.known.above(chosen.far):
                self._replicas, self._stuck = None, True  # restart, from another seed
        elif context.objective is None or sampler.value < context.objective:
            self._take(sampler)
            self._misses, self._reached = 0, True
        return True

    def _turn(
        self, sampler: Sampler, start: Choice | Placement | None, target: list[int],
        ladder: Ladder, amount: float,
    ) -> None:  # fmt: skip
        """A run for an amount of time; moves may be far slower than expected."""
        clock = self._context.clock
        begun = clock.now()
        end = inf if clock.counts else begun + OVERDUE * amount

        def over() -> bool:
            return self._context.over() or clock.now() > end

        moves = max(FEWEST, int(amount * self._rate))
        self._run(sampler, start, target, ladder, moves, over)
        self.spent += clock.now() - begun

    def _run(
        self, sampler: Sampler, start: Choice | Placement | None, target: list[int],
        ladder: Ladder, moves: int, over: Callable[[], bool],
    ) -> None:  # fmt: skip
        """Run until a plan meets the bound; count moves, and learn how many a unit of the clock
        allows."""
        clock, bound = self._context.clock, self._context.bound
        within = Within(target, over, NOTHING if bound is None else bound)
        sampler.begin(start, within)
        begin = clock.now()
        made = sampler.run(None, within, ladder, moves)
        clock.spend(made / self._parameters.moves_a_unit)
        if not clock.counts:
            self._rate = 0.5 * (self._rate + made / max(1e-2, clock.now() - begin))

    def _dearest(self) -> int:
        """A cost that no plan exceeds: every table's dearest option, all on one rank."""
        instance = self._context.instance
        cost = abs(instance.shard_cost).sum(axis=1) * shard_counts(instance)
        dearest = np.maximum.reduceat(per_option(instance, cost), instance.table_options[:-1])
        return max(1, int(dearest.sum()))

    def _replicated(self) -> Sampler:
        """Replicas of the state that the choice of options gives, with a target far enough above
        the bound to be met soon."""
        self._misses, self._reached = 0, False
        sampler = self._made(self._seed + 2 * self._begun)
        self._begun += 1
        known = self._choice.value is not None and self._choice.machines is not None
        self._aim = self._above(self._parameters.margin if known else self._parameters.far)
        best = self._context.objective
        if self._stuck and best is not None:
            self._aim = max(self._aim, (self._aim + best) // 2)
        self._restrict(sampler, self._aim)
        sampler.run(self._choice, Within(self._targets(self._aim)), self._ladder(), 0)
        return sampler

    def _cheaper(self, choice: Choice) -> bool:
        """Whether the best plan is far above the cost of a choice."""
        best, value = self._context.objective, choice.value
        far = self._parameters.far
        return value is not None and best is not None and best - value > far * abs(value)

    def _cooling(self, heat: float) -> Ladder:
        """A ladder of one, which begins at a temperature."""
        return [(heat, heat * self._parameters.cooling)]

    def _ladder(self) -> Ladder:
        ladders = self._parameters.ladder, self._parameters.other_ladder
        hottest, coldest, count = ladders[self._seed % 2]
        return [(heat, heat) for heat in np.geomspace(hottest, coldest, int(count)).tolist()]

    def _mix(self) -> tuple[int, ...]:
        """Percentages of moves; with many tables, moves that visit all of them are rare."""
        mix = self._parameters.mix
        few = max(1, min(100 - mix[4], self._parameters.many // self._tables))
        return (*mix[:4], 100 - few, *mix[5:])

    def _target(self, warm: bool = False) -> int:
        """A share of the way from the best plan to the bound, which follows what passes met."""
        best = self._context.objective
        if best is None:
            return self._above(self._parameters.far)
        return best - max(1, int(self._steps[warm] * (best - self._least())))

    def _above(self, share: float) -> int:
        """A target this share above what plans cost at least."""
        low = self._least()
        return low + int(share * abs(low)) + 1

    def _least(self) -> int:
        """A lower bound on plans from the choice at hand, as far as one is known."""
        known = [v for v in (self._context.bound, self._choice.value) if v is not None]
        return max(known, default=self._mean(self._choice.options))

    def _mean(self, options: IntArray) -> int:
        """Average cost of a rank at a choice of options, in phases of which nothing is hidden;
        under ``total`` the sum of all costs."""
        instance = self._context.instance
        total = int(shown_cost(instance)[options].sum())
        return total if instance.objective == Objective.TOTAL else total // instance.num_ranks

    def _targets(self, target: int, even: bool = False) -> list[int]:
        """First target of each phase, in the proportions of the best plan, or else of the choice
        of options; moves shift it between phases. ``even``: in those of a choice that led to a best
        plan, if there is one."""
        context = self._context
        if even and self._even is not None:
            return self._evenly(target, self._even)
        if context.best is None or context.peaks == 1:
            return self._evenly(target, self._choice.options)
        loads = check(context.instance, context.best).loads
        assert loads is not None
        return _divided(target, exposed(context.instance, loads))

    def _evenly(self, target: int, options: IntArray) -> list[int]:
        """The targets in the proportions of a choice of options, spread evenly."""
        instance = self._context.instance
        if self._context.peaks == 1:
            return [target]
        peaks = total_cost(instance)[options].sum(axis=0)
        return _divided(target, np.maximum(peaks - instance.num_ranks * instance.hidden_time, 0))

    def _restrict(self, sampler: Sampler, target: int) -> None:
        """Let moves choose only options that a plan at the target may use."""
        context = self._context
        keep = context.keep & (own_cost(context.instance) <= target)
        bare = ~np.logical_or.reduceat(keep, context.instance.table_options[:-1])
        sampler.choose_from(keep | (context.keep & bare[context.instance.table_of]))

    def _made(self, seed: int) -> Sampler:
        if not self._context.loops.ready(self._context.over):
            raise OutOfTime
        return Sampler(self._context.instance, seed, replace(self._parameters, mix=self._mix()))

    def _ready(self) -> Sampler:
        if self.sampler is None:
            self.sampler = self._made(self._seed)
        return self.sampler

    def _take(self, sampler: Sampler) -> bool:
        """Offer the plan that a run met or ended with; returns whether it met a better one."""
        plan = sampler.plan()
        better = self._context.offer(sampler.placement() if plan is None else plan, "annealing")
        return better and plan is not None


def _divided(target: int, peaks: IntArray) -> list[int]:
    """A target of each phase, in the proportions of peaks."""
    return [max(1, int(p) * target // max(1, int(peaks.sum()))) for p in peaks]
