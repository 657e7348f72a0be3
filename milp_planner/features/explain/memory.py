"""What memory buys: the staircase of a tier's capacity against the objective.

A tier is every resource that limits the same memory: ``hbm@MOMENT`` and ``hbm:COLLECTIVE`` are the
HBM at a moment of a step, or in a collective, and change together.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from formulations import Instance, Outcome, Placement, reduce
from formulations.capacity.budget import Budget
from formulations.capacity.curve import Answer, Curve, Known
from formulations.capacity.proofs import Proofs, relaxed_bound, usable_certificate
from formulations.diagnose.questions import fullest, with_capacity
from formulations.instance import IntArray, Resource
from formulations.instance.facts import total_use
from formulations.result.check import compute_loads
from milp_planner.drawing.units import memory_name
from milp_planner.errors import BadInput
from milp_planner.files import Facts
from milp_planner.inputs.problems import choice

#: Least time limit for a step's solve, in seconds, however quickly the plan was found.
STEP_SECONDS = 2.0


def tiers_of(instance: Instance) -> dict[str, list[int]]:
    """Indices of the resources of each tier, in the instance's order."""
    found: dict[str, list[int]] = {}
    for index, resource in enumerate(instance.resources):
        found.setdefault(memory_name(resource.name), []).append(index)
    return found


def resources_of(instance: Instance, tier: str) -> list[int]:
    """Indices of the resources of one tier; BadInput when the instance has no such tier."""
    known = tiers_of(instance)
    if tier not in known:
        raise BadInput(f"tier {tier!r}: {choice(tier, list(known))}")
    return known[tier]


def names_of(instance: Instance, tier: str) -> list[str]:
    """Names of the resources of one tier."""
    return [instance.resources[index].name for index in resources_of(instance, tier)]


def first_of(instance: Instance, tier: str) -> Resource:
    """The first resource of a tier; the tier's others have the same scope and number of places."""
    return instance.resources[resources_of(instance, tier)[0]]


def with_more(instance: Instance, tier: str, extra: int) -> Instance:
    """The instance with ``extra`` more bytes at every place of a tier (fewer if negative, to 0)."""
    resources = list(instance.resources)
    for index in resources_of(instance, tier):
        capacity = np.maximum(0, resources[index].capacity + extra)
        resources[index] = replace(resources[index], capacity=capacity)
    return replace(instance, resources=tuple(resources))


def uniform(instance: Instance, tier: str, capacity: int) -> Instance:
    """The instance with exactly ``capacity`` bytes at every place of a tier's first resource; the
    tier's other resources keep their differences from it."""
    return with_capacity(instance, names_of(instance, tier), capacity)


def peak(instance: Instance, placement: Placement, tier: str) -> int:
    """Capacity in bytes of a tier's first resource that a plan needs at its fullest place."""
    return fullest(instance, placement, names_of(instance, tier))


def missing(instance: Instance, placement: Placement, tier: str) -> int:
    """Bytes that a plan lacks at the place of a tier where it lacks most; negative where it could
    do with less."""
    use = compute_loads(instance, placement).use
    least = -int(first_of(instance, tier).capacity.max())
    for index in resources_of(instance, tier):
        lacks = (use[index] - instance.resources[index].capacity)[use[index] > 0]
        least = max(least, int(lacks.max(initial=least)))
    return least


def memory_curve(
    instance: Instance, tier: str, budget: Budget, proofs: Proofs | None = None
) -> Curve:
    """The objective over bytes more at every place of a tier."""
    return Curve(
        lambda extra: with_more(instance, tier, extra),
        lambda plan: missing(instance, plan, tier),
        budget,
        proofs,
    )


@dataclass(frozen=True)
class Step:
    """One capacity of the staircase."""

    extra: int
    """Bytes added at every place (removed when negative)."""
    smallest: int
    """Capacity of the smallest place with them."""
    status: str
    objective: int | None
    bound: int | None
    """The best plan's objective at this capacity, and a lower bound on every plan's."""
    gap: float | None
    relaxed: int | None
    """Bound that the multipliers of the plan's certificate prove at this capacity: a relaxation,
    valid everywhere but tight only near the plan's own capacity, if at all."""
    seconds: float | None
    """Duration of its own solve; None where its neighbours settled it."""
    certified: int | None = None
    """The largest bound that a certificate proves at this capacity: the plan's own, or one from its
    multipliers at this capacity or a larger one."""
    device: int | None = None
    """Device memory of that place, reservations included, that leaves ``smallest`` for tables."""


@dataclass(frozen=True)
class StaircaseInfo(Facts):
    """The objective against the capacity of one tier."""

    tier: str
    scope: str
    objective_kind: str
    time_unit: str
    now: int | None
    """Objective of the plan."""
    slope: float | None
    """Change of the certified bound per extra byte at every place, from the multipliers: the price
    in a relaxation, not a promise. None without a certificate."""
    steps: tuple[Step, ...]
    """Ascending."""

    @property
    def searched(self) -> float:
        """Duration of the longest solve, in seconds."""
        return max((s.seconds for s in self.steps if s.seconds is not None), default=0.0)


def staircase(
    instance: Instance, outcome: Outcome, tier: str, extras: Sequence[int], budget: Budget
) -> tuple[StaircaseInfo, Placement | None]:
    """Re-solve with each of ``extras`` (and 0) bytes added at every place of a tier.

    The outcome's placement warm-starts the solves; its certificate gives the slope. No step gets
    more time than the plan had. The plan of step 0 is returned as well if it beats the outcome's.
    """
    resource = first_of(instance, tier)
    smallest = int(resource.capacity.min())
    grid = sorted({max(-smallest, int(e)) for e in (*extras, 0)})
    limited = budget.no_longer_than(search_seconds(outcome))
    curve = memory_curve(instance, tier, limited)
    curve.take_plan(0, outcome.placement, outcome.objective)
    if outcome.bound:
        curve.known.take_bound(_as_now(instance, tier, grid), outcome.bound)
    certificate = usable_certificate(outcome.certificate)
    relaxed = {extra: relaxed_bound(curve.make(extra), certificate) for extra in grid}
    certified: Known[int, Placement] = Known(operator.ge)
    for extra, bound in [*relaxed.items(), (0, outcome.certified_bound)]:
        if bound is not None:
            certified.take_bound(extra, bound)
            curve.known.take_bound(extra, bound)
    answers = curve.sweep(grid)
    info = StaircaseInfo(
        tier=tier,
        scope=resource.scope.value,
        objective_kind=instance.objective.value,
        time_unit=instance.time_unit,
        now=outcome.objective,
        slope=None
        if certificate is None
        else reduce.slope(instance, certificate, names_of(instance, tier)),
        steps=tuple(
            _step(curve.make(at), tier, at, a, (relaxed[at], certified.bound(at)))
            for at, a in answers.items()
        ),
    )
    here, now = answers[0].objective, outcome.objective
    better = here is not None and now is not None and here < outcome.to_beat
    return info, answers[0].placement if better else None


def search_seconds(outcome: Outcome) -> float:
    """The larger of a plan's time limit and its solve time, at least ``STEP_SECONDS``."""
    given = outcome.settings.get("time_limit")
    limit = float(given) if isinstance(given, int | float) else 0.0
    return max(STEP_SECONDS, outcome.seconds, limit)


def largest_use(instance: Instance, tier: str) -> IntArray:
    """Use of every resource of a tier if each table took its largest option there, int64 array."""
    use = total_use(instance)[:, resources_of(instance, tier)]
    return np.maximum.reduceat(use, instance.table_options[:-1]).sum(axis=0)


def _as_now(instance: Instance, tier: str, grid: Sequence[int]) -> int:
    """The largest point where a bound at the plan's own capacity holds: its own, or any if every
    table's largest option fits together already."""
    least = [instance.resources[i].capacity.min() for i in resources_of(instance, tier)]
    return max(grid) if (largest_use(instance, tier) <= least).all() else 0


def _step(
    there: Instance, tier: str, extra: int, answer: Answer, bounds: tuple[int | None, int | None]
) -> Step:
    return Step(
        extra=extra,
        smallest=int(first_of(there, tier).capacity.min()),
        status=answer.status,
        objective=answer.objective,
        bound=None if answer.infeasible else answer.bound,
        gap=answer.gap,
        relaxed=bounds[0],
        seconds=answer.seconds,
        certified=None if answer.infeasible else bounds[1],
    )
