"""The side that improves plans: annealing towards targets, and neighbourhoods in CP-SAT.

Annealing leaves what it reached, also with a little penalty left; neighbourhoods mend that, or
improve the best plan.
"""

from __future__ import annotations

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
        self._left: tuple[Placement, int] | None = None
        self._walker: Walker | None = None
        self.passes, self._aim = 0, parameters.AIM
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
        """One pass towards a target, hot or warm at first."""
        context, warm = self._context, self.passes % 2 == 0
        if not self.passes:
            self.pack()
        warm = warm and context.best is not None
        target, annealer = self._target(), self._ready()
        self._restrict(annealer, target)
        start = self._left[0] if self._left else context.best
        if warm and start is not None:
            annealer.load(start, self._targets(target))
        else:
            annealer.start(self._options, self._targets(target))
        self.passes += 1
        begin, moves = context.clock.now(), max(self._fewest(warm), int(amount * self._rate))
        heats = (parameters.WARM if warm else parameters.HOT, parameters.COLD)
        least = context.bound if context.bound is not None and context.exact else -(2**62)
        made = annealer.run(moves, heats, context.over, parameters.MIX, parameters.SHRINK, least)
        context.spend(made / parameters.MOVES_A_UNIT)
        if not context.clock.counts:
            self._rate = 0.5 * self._rate + 0.5 * made / max(1e-2, context.clock.now() - begin)
        self._take(annealer, target)
        return True

    def _fewest(self, warm: bool) -> int:
        """Moves below which a pass is too short to cool, as long as there is time for them."""
        tables = self._context.instance.num_tables
        most = 0.5 * self._rate * self._context.clock.share(1.0)
        return max(1000, int(min(most, parameters.FEWEST_MOVES * tables * (0.5 if warm else 1.0))))

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
            (start, target), self._left = self._left, None
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
        """Between the bound and the best plan; above the bound where there is none."""
        context = self._context
        low = context.bound if context.bound is not None else self._mean()
        if context.objective is None:
            aims = parameters.AIMS_WITHOUT_PLAN
            return low + int((aims[self.passes % len(aims)] - 1) * abs(low)) + 1
        gap = context.objective - low
        return min(context.objective - 1, low + int(self._aim * gap))

    def _mean(self, options: IntArray | None = None) -> int:
        """What a rank carries on average at a choice of options."""
        instance = self._context.instance
        cost = instance.shard_cost.sum(axis=1) * shard_counts(instance)
        total = int(per_option(instance, cost)[self._options if options is None else options].sum())
        return total if instance.objective == Objective.TOTAL else total // instance.num_ranks

    def _learn(self, met: bool) -> None:
        """Aim lower after a plan was met, and nearer to the best plan after none was."""
        self._aim = self._aim * 0.7 if met else 1 - 0.7 * (1 - self._aim)

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

    def _take(self, annealer: Annealer, target: int) -> None:
        """Offer what annealing met; what is no plan yet is left for mending."""
        context = self._context
        if annealer.value is not None:
            met = context.offer(annealer.placement(best=True), "annealing")
            self._learn(met)
            return
        placement = annealer.placement()
        verdict = check(context.instance, placement)
        self._learn(verdict.feasible and context.offer(placement, "annealing"))
        if not verdict.feasible and verdict.loads is not None:
            self._left = (placement, target)
