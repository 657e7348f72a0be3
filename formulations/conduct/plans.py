"""The side that improves plans: annealing towards targets, and neighbourhoods in CP-SAT.

Annealing leaves what it reached, also with a little penalty left; neighbourhoods mend that, or
improve the best plan.
"""

from __future__ import annotations

import random

import numpy as np

from formulations.bounds.own import own_cost, per_option, shard_counts
from formulations.conduct import parameters
from formulations.conduct.anneal import Annealer
from formulations.conduct.context import Context
from formulations.instance import IntArray, Objective
from formulations.result.check import check
from formulations.result.placement import Placement
from formulations.search.lns import Walker


class Plans:
    """Makers of plans that share what they reached.

    Parameters
    ----------
    context : Context
    options : int64 array [tables]
        A choice to start from: the pooled program's.

    Attributes
    ----------
    annealer : Annealer or None
        Made on first use.
    passes : int
        Of annealing, so far.
    """

    def __init__(self, context: Context, options: IntArray) -> None:
        self._context, self._options = context, options
        self.annealer: Annealer | None = None
        self._left: tuple[Placement, int, float] | None = None
        self._walker: Walker | None = None
        self.passes, self._above = 0, parameters.ABOVE
        self._rng = random.Random(context.settings.seed)
        ways = [(False, h) for h in parameters.HEATS] + [(True, h) for h in parameters.WARM_HEATS]
        self._ways: dict[tuple[bool, float], float | None] = dict.fromkeys(ways)
        self._rate = float(parameters.MOVES_A_UNIT)

    def choose(self, options: IntArray) -> None:
        """Start from another choice of options."""
        self._options = options

    def pack(self) -> None:
        """Place choices of options, the largest shards first, and offer them.

        Besides the choice at hand: the cheapest in total of those whose shards are small enough,
        for several sizes. With memory to spare one of these is near the best already.
        """
        context, instance = self._context, self._context.instance
        own = own_cost(instance)
        total = per_option(instance, instance.shard_cost.sum(axis=1) * shard_counts(instance))
        choices, mean = [self._options], self._mean()
        for width in parameters.WIDTHS if instance.objective != Objective.TOTAL else (1.0,):
            fits = context.keep & (own <= max(1, int(width * abs(mean))))
            worth = np.where(fits, total, np.where(context.keep, 2.0**62 + own, np.inf))
            tables = map(instance.options_of, range(instance.num_tables))
            chosen = [t.start + int(worth[t.start : t.stop].argmin()) for t in tables]
            choices.append(np.asarray(chosen, dtype=np.int64))
        for options in choices:
            if context.over():
                return
            before, annealer = context.objective, self._ready()
            target = self._mean(options)
            annealer.start(options, self._targets(target))
            self._take(annealer, target)
            if context.objective != before:
                self._options = options

    def anneal(self, amount: float) -> bool:
        """One pass towards a target: from the choice of options, or from the best plan."""
        context, annealer = self._context, self._ready()
        if not self.passes:
            self.pack()
        self.passes += 1
        warm, heat = self._way()
        target = self._target()
        self._restrict(annealer, target)
        if warm and context.best is not None:
            annealer.load(context.best, self._targets(target))
        else:
            annealer.start(self._options, self._targets(target))
        begin, moves = context.clock.now(), max(self._fewest(), int(amount * self._rate))
        least = context.bound if context.bound is not None and context.exact else -(2**62)
        heats = (heat, heat * parameters.COOLING)
        made = annealer.run(moves, heats, context.over, parameters.MIX, parameters.SHRINK, least)
        context.spend(made / parameters.MOVES_A_UNIT)
        if not context.clock.counts:
            self._rate = 0.5 * self._rate + 0.5 * made / max(1e-2, context.clock.now() - begin)
        worth = self._take(annealer, target)
        self._ways[warm, heat] = worth
        self._learn(worth, target, annealer.value is not None)
        self._weigh(annealer)
        return True

    def _way(self) -> tuple[bool, float]:
        """Whether to start from the best plan, and how hot: what did best, or something new."""
        untried = [way for way, reached in self._ways.items() if reached is None]
        if self._context.best is None:
            cold = [way for way in untried if not way[0]]
            return cold[0] if cold else self._rng.choice([w for w in self._ways if not w[0]])
        if untried:
            return untried[0]
        if self._rng.random() < parameters.EXPLOIT:
            return min(self._ways, key=lambda way: self._ways[way] or 0.0)
        return self._rng.choice(list(self._ways))

    def _fewest(self) -> int:
        """Moves below which a pass is too short to cool, as long as there is time for them."""
        most = 0.5 * self._rate * self._context.clock.share(1.0)
        tables = self._context.instance.num_tables
        return max(1000, int(min(most, parameters.FEWEST_MOVES * tables)))

    def mend(self, amount: float) -> bool:
        """Neighbourhoods from what annealing left, else from the best plan."""
        context = self._context
        end = context.clock.now() + amount
        while context.clock.now() < end and not context.over():
            if self._walker is None or self._done(self._walker):
                self._walker = self._next_walker()
            if self._walker is None:
                return True
            self._walker.step()
        return True

    def _done(self, walker: Walker) -> bool:
        """Whether a walker is stuck, has reached its aim, or descends from what is not the best."""
        if walker.failures > parameters.PATIENCE:
            return True
        if walker.target is not None:
            return walker.over == 0
        return self._left is not None or walker.objective != self._context.objective

    def _next_walker(self) -> Walker | None:
        context = self._context
        seed = context.settings.seed * 1009 + context.walks
        context.walks += 1
        if self._left is not None:
            (start, target, _), self._left = self._left, None
            if context.objective is not None:
                target = min(max(target, (context.bound or 0)), context.objective - 1)
            # Without a plan only capacities are mended: any plan is news to everyone.
            aims = context.objective is not None and context.instance.objective != Objective.TOTAL
            aim = target if aims else None
            return Walker(context, start, seed, aim, sizes=context.opened)
        if context.best is None:
            return None
        return Walker(context, context.best, seed, sizes=context.opened)

    def _target(self) -> int:
        """A share above the bound, learned from what was met; below the best plan."""
        context = self._context
        low = context.bound if context.bound is not None else self._mean()
        target = low + int(self._above * abs(low)) + 1
        return target if context.objective is None else min(context.objective - 1, target)

    def _mean(self, options: IntArray | None = None) -> int:
        """What a rank carries on average at a choice of options."""
        instance = self._context.instance
        cost = instance.shard_cost.sum(axis=1) * shard_counts(instance)
        total = int(per_option(instance, cost)[self._options if options is None else options].sum())
        return total if instance.objective == Objective.TOTAL else total // instance.num_ranks

    def _learn(self, worth: float, target: int, met: bool) -> None:
        """Aim nearer to the bound after a target was met, towards what was reached after a miss."""
        low = target / (1 + self._above)
        above = max(0.0, worth / max(1.0, abs(low)) - 1)
        if met:
            self._above = min(self._above, above) * parameters.NEARER
        else:
            share = parameters.FARTHER
            self._above = max(1.1 * self._above, (1 - share) * self._above + share * above)
        self._above = min(max(self._above, parameters.LEAST_ABOVE), parameters.MOST_ABOVE)

    def _targets(self, target: int) -> list[int]:
        """The target of each phase: in the shares the best plan has, else each all of it."""
        context = self._context
        phases = context.costs.shape[1]
        if phases == 1:
            return [target]
        if context.best is None:
            return [target] * phases
        loads = check(context.instance, context.best).loads
        assert loads is not None
        peaks = loads.cost.max(axis=0)
        return [max(1, int(p) * target // max(1, int(peaks.sum()))) for p in peaks]

    def _restrict(self, annealer: Annealer, target: int) -> None:
        """Let moves choose among the options that a plan of the target may use."""
        context = self._context
        keep = context.keep & (own_cost(context.instance) <= target)
        bare = ~np.logical_or.reduceat(keep, context.instance.table_options[:-1])
        annealer.choose_from(keep | (context.keep & bare[context.instance.table_of]))

    def _ready(self) -> Annealer:
        if self.annealer is None:
            self.annealer = Annealer(self._context.instance, self._context.settings.seed)
        return self.annealer

    def _take(self, annealer: Annealer, target: int) -> float:
        """Offer what annealing met; what is no plan yet is left for mending. What it is worth."""
        context = self._context
        if annealer.value is not None:
            context.offer(annealer.placement(best=True), "annealing")
            return float(annealer.value)
        placement = annealer.placement()
        verdict = check(context.instance, placement)
        if verdict.feasible:
            context.offer(placement, "annealing")
        worth = target + sum(annealer.over) * abs(target) / context.instance.num_ranks**0.5
        better = self._left is None or worth < self._left[2]
        if better and not verdict.feasible and verdict.loads is not None:
            self._left = (placement, target, worth)
        return worth

    def _weigh(self, annealer: Annealer) -> None:
        """Let capacities weigh more where a pass ended above them, else less."""
        cost, use = annealer.over
        factor = parameters.HEAVIER if use > cost else parameters.LIGHTER
        least, most = parameters.WEIGHTS
        annealer.capacity_weight = min(max(annealer.capacity_weight * factor, least), most)
