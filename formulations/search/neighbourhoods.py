"""Large-neighbourhood search: open part of the placement, solve it with CP-SAT, repeat.

Shaw, "Using constraint programming and local search methods to solve vehicle routing problems"
(CP 1998), with exact subproblems. Infeasible placements are first repaired: the same
neighbourhoods then minimise what exceeds the capacities.
"""

from __future__ import annotations

import random

import numpy as np

from formulations.instance import Objective
from formulations.model.build import Parts, build
from formulations.model.decode import decode
from formulations.model.encode import encode
from formulations.model.partition import by_rank
from formulations.result.check import check
from formulations.result.placement import Placement
from formulations.search.context import Context
from formulations.search.load import Load, load_of, objective_of, overflow
from formulations.search.opened import Chooser, Sizes, sorted_peaks
from formulations.solvers.cpsat import Asked, Use, solve_cpsat

#: Deterministic seconds for one neighbourhood.
_WORK = 1.5


class Walker:
    """One placement that is improved step by step; it may start infeasible.

    Parameters
    ----------
    context : Context
    start : Placement
    seed : int
    keep : bool array [options], optional
        Options to choose from; default: the context's.
    sizes : Sizes, optional
        How much neighbourhoods opened before.
    cap : int, optional
        While capacities are exceeded, the objective may not grow beyond it.
    target : int, optional
        Cost beyond it counts as overflow, so that all ranks above it are pulled down together;
        without one the objective itself is minimised once the placement is feasible.
    """

    def __init__(
        self,
        context: Context,
        start: Placement,
        seed: int,
        target: int | None = None,
        cap: int | None = None,
        keep: np.ndarray | None = None,
        sizes: Sizes | None = None,
    ) -> None:
        self._context, self._rng, self.target = context, random.Random(seed), target
        self._cap = cap
        self._keep = (context.keep if keep is None else keep).copy()
        self._keep[start.options] |= context.instance.allowed[start.options]  # it may stay so
        self._chooser = Chooser(context.instance, self._keep, self._rng, sizes)
        self._all = range(context.instance.num_tables)
        self.placement = start
        self.load = load_of(context.instance, context.costs, start, self._all)
        self.over = self._overflow(start, self.load)
        self.failures = 0

    @property
    def objective(self) -> int:
        """Objective of the present placement."""
        return objective_of(self._context.instance, self.load)

    def aim(self, target: int | None) -> None:
        """Set another target."""
        self.target = target
        self.over = self._overflow(self.placement, self.load)
        self.failures = 0

    def step(self) -> bool:
        """Open one neighbourhood; returns whether the placement got better."""
        context = self._context
        kind, tables, free = self._chooser.draw(self.placement, self.load)
        parts = Parts(
            keep=self._keep, limit=self._limit(), base=self.placement, tables=np.asarray(tables),
            repair=self.over > 0, soft=self.target is not None,
        )  # fmt: skip
        model = build(context.instance, by_rank(context.instance, free), parts)
        limits = context.limits(_WORK, self._rng.randrange(2**31))
        hint = encode(model, self.placement)
        answer = solve_cpsat(model.linear, limits, hint, Asked(Use.PLANS))
        context.spend(answer.work)
        better = False
        if answer.values is not None:
            better = self._accept(decode(model, answer.values))
        self._chooser.sizes.learn(kind, answer.done, better)
        self.failures = 0 if better else self.failures + 1
        return better

    def _limit(self) -> int | None:
        if self.over > 0 and self.target is not None:
            return self.target
        if self.over > 0:
            return None if self._cap is None else max(self._cap, self.objective)
        if self._context.instance.objective == Objective.TOTAL:
            return None
        return self.objective

    def _accept(self, placement: Placement) -> bool:
        context = self._context
        load = load_of(context.instance, context.costs, placement, self._all)
        over = self._overflow(placement, load)
        context_objective = objective_of(context.instance, load)
        before = (self.over, self.objective if self.over == 0 else 0)
        after = (over, context_objective if over == 0 else 0)
        if after > before:
            return False
        same = after == before
        old, new = sorted_peaks(self.load).tolist(), sorted_peaks(load).tolist()
        if same and self.over == 0 and new < old:
            return False
        self.placement, self.load, self.over = placement, load, over
        if not same and (over == 0 or overflow(context.instance, load) == 0):
            context.offer(placement, "lns")
        return not same or (self.over == 0 and new > old)

    def _overflow(self, placement: Placement, load: Load) -> float:
        """Overflow; a placement that breaks anything but capacities counts as overfull too."""
        instance = self._context.instance
        over = overflow(instance, load)
        if over == 0 and not check(instance, placement).feasible:
            return 1e9
        if self.target is not None and instance.objective != Objective.TOTAL:
            over += excess(load, self.target)
        return over


def excess(load: Load, target: int) -> float:
    """Cost beyond a target: per rank for a single peak, else of the sum of peaks."""
    if load.cost.shape[1] == 1:
        return float((load.cost[:, 0] - target).clip(0).sum()) / max(1, target)
    return max(0.0, float(load.cost.max(axis=0).sum()) - target) / max(1, target)
