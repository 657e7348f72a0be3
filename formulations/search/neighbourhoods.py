"""Large-neighbourhood search: open part of the placement, solve it with CP-SAT, repeat.

Shaw, "Using constraint programming and local search methods to solve vehicle routing problems"
(CP 1998), with exact subproblems. Infeasible placements are first repaired: the same
neighbourhoods then minimise what exceeds the capacities.
"""

from __future__ import annotations

import random

import numpy as np

from formulations.cpsat import Asked, Use, solve_cpsat
from formulations.instance import Instance, IntArray, Objective
from formulations.model.build import Parts, build
from formulations.model.partition import by_rank
from formulations.model.placements import decode, encode
from formulations.result.check import Loads, check, compute_loads, objectives
from formulations.result.placement import Placement
from formulations.search.context import Context
from formulations.search.opened import Chooser, Sizes

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
        self.placement = start
        self.load = compute_loads(context.instance, start)
        self.over = self._overflow(start, self.load)
        self.failures = 0

    @property
    def objective(self) -> int:
        """Objective of the present placement."""
        return objectives(self.load)[self._context.instance.objective.value]

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
        load = compute_loads(context.instance, placement)
        over = self._overflow(placement, load)
        value = objectives(load)[context.instance.objective.value]
        before = (self.over, self.objective if self.over == 0 else 0)
        after = (over, value if over == 0 else 0)
        if after > before:
            return False
        same = after == before
        old, new = _sorted_costs(self.load), _sorted_costs(load)
        if same and self.over == 0 and new < old:
            return False
        self.placement, self.load, self.over = placement, load, over
        if not same and (over == 0 or overflow(context.instance, load) == 0):
            context.offer(placement, "lns")
        return not same or (self.over == 0 and new > old)

    def _overflow(self, placement: Placement, load: Loads) -> float:
        """Overflow; a placement that breaks anything but capacities counts as overfull too."""
        instance = self._context.instance
        over = overflow(instance, load)
        if over == 0 and not check(instance, placement).feasible:
            return 1e9
        if self.target is not None and instance.objective != Objective.TOTAL:
            over += _excess(load.peaked(instance.objective), self.target)
        return over


def overflow(instance: Instance, load: Loads) -> float:
    """How far capacities are exceeded, in shares of a place's capacity, summed over places."""
    over = 0.0
    for resource, use in zip(instance.resources, load.use, strict=True):
        room = np.maximum(resource.capacity, 1)
        over += float((np.maximum(use - resource.capacity, 0) / room).sum())
    return over


def _excess(cost: IntArray, target: int) -> float:
    """Cost beyond a target: per rank for a single peak, else of the sum of peaks."""
    if cost.shape[1] == 1:
        return float((cost[:, 0] - target).clip(0).sum()) / max(1, target)
    return max(0.0, float(cost.max(axis=0).sum()) - target) / max(1, target)


def _sorted_costs(load: Loads) -> list[int]:
    """Costs of the ranks, dearest first: what breaks ties between equal objectives."""
    return sorted(load.cost.sum(axis=1).tolist(), reverse=True)
