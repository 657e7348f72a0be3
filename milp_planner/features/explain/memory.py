"""What memory buys: the staircase of one tier.

A tier is every resource that limits the same memory: ``hbm@MOMENT`` and ``hbm:COLLECTIVE`` are the
HBM at a moment of a step, or in a collective, and change together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from formulations import Instance, Outcome, Placement, reduce
from formulations.diagnose.questions import above_first, with_capacity
from formulations.instance import IntArray, Resource
from formulations.result.certificate import Certificate
from formulations.result.check import compute_loads
from milp_planner.drawing.units import memory_name
from milp_planner.errors import BadInput
from milp_planner.features.explain.budget import Answer, Budget, solve_grid
from milp_planner.files import Facts
from milp_planner.inputs.problems import choice


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


def first_of(instance: Instance, tier: str) -> Resource:
    """The first resource of a tier: scope and number of places are those of all."""
    return instance.resources[resources_of(instance, tier)[0]]


def with_more(instance: Instance, tier: str, extra: int) -> Instance:
    """The same with ``extra`` bytes more at every place of a tier (less when negative, to 0)."""
    return _changed(instance, tier, lambda now: np.maximum(0, now + extra))


def uniform(instance: Instance, tier: str, capacity: int) -> Instance:
    """The same with exactly ``capacity`` bytes at every place of a tier's first resource, and of
    the others what they have above it."""
    names = [instance.resources[i].name for i in resources_of(instance, tier)]
    return with_capacity(instance, names, capacity)


def peak(instance: Instance, placement: Placement, tier: str) -> int:
    """Capacity of a tier's first resource that a plan needs at its fullest place, in bytes."""
    use = compute_loads(instance, placement).use
    indices = resources_of(instance, tier)
    names = [instance.resources[i].name for i in indices]
    above = above_first(instance, names)
    return max(int(use[i].max()) - above[n] for i, n in zip(indices, names, strict=True))


def _changed(instance: Instance, tier: str, how: Callable[[IntArray], IntArray]) -> Instance:
    resources = list(instance.resources)
    for index in resources_of(instance, tier):
        resource = resources[index]
        resources[index] = replace(resource, capacity=how(resource.capacity))
    return replace(instance, resources=tuple(resources))


@dataclass(frozen=True)
class Step:
    """One capacity."""

    extra: int
    """Bytes more at every place than there are now (less when negative)."""
    smallest: int
    """Capacity of the smallest place then."""
    status: str
    objective: int | None
    bound: int | None
    """Of the best plan at this capacity, and what no plan goes below."""
    gap: float | None
    relaxed: int | None
    """What the multipliers of the plan's certificate prove at this capacity: a relaxation, valid
    everywhere and tight at best near the plan's own capacity."""
    seconds: float | None
    """None where the neighbours answered it."""


@dataclass(frozen=True)
class StaircaseInfo(Facts):
    """The objective against the capacity of one tier."""

    tier: str
    scope: str
    objective_kind: str
    time_unit: str
    now: int | None
    """Objective of the plan itself."""
    slope: float | None
    """Change of the certified bound for one byte more at every place, from the multipliers: a
    relaxation's price, not a promise. None without a certificate."""
    steps: tuple[Step, ...]
    """Ascending."""


def staircase(
    instance: Instance, outcome: Outcome, tier: str, extras: Sequence[int], budget: Budget
) -> StaircaseInfo:
    """Re-solve with so many bytes more (or fewer) at every place of a tier; 0 is added.

    The outcome's placement starts the solves, its certificate gives the slope.
    """
    resource = first_of(instance, tier)
    smallest = int(resource.capacity.min())
    grid = sorted({max(-smallest, int(e)) for e in (*extras, 0)})
    known = []
    if outcome.placement is not None and outcome.objective is not None:
        known.append((0, outcome.placement, outcome.objective))
    certificate = usable_certificate(outcome.certificate)
    relaxed = {e: relaxed_bound(with_more(instance, tier, e), certificate) for e in grid}
    proved = [(extra, bound) for extra, bound in relaxed.items() if bound is not None]
    if outcome.bound is not None:
        proved.append((0, outcome.bound))
    answers = solve_grid(grid, lambda at: with_more(instance, tier, at), budget, known, proved)
    names = [instance.resources[i].name for i in resources_of(instance, tier)]
    return StaircaseInfo(
        tier=tier,
        scope=resource.scope.value,
        objective_kind=instance.objective.value,
        time_unit=instance.time_unit,
        now=outcome.objective,
        slope=None if certificate is None else reduce.slope(instance, certificate, names),
        steps=tuple(_step(instance, tier, at, a, relaxed[at]) for at, a in answers.items()),
    )


def usable_certificate(certificate: Certificate | None) -> Certificate | None:
    """A certificate of a bound with multipliers; None for one of infeasibility."""
    usable = certificate is not None and certificate.kind == "bound" and certificate.vectors
    return certificate if usable else None


def _step(instance: Instance, tier: str, extra: int, answer: Answer, relaxed: int | None) -> Step:
    there = with_more(instance, tier, extra)
    return Step(
        extra=extra,
        smallest=int(first_of(there, tier).capacity.min()),
        status=answer.status,
        objective=answer.objective,
        bound=None if answer.infeasible else answer.bound,
        gap=answer.gap,
        relaxed=relaxed,
        seconds=answer.seconds,
    )


def relaxed_bound(instance: Instance, certificate: Certificate | None) -> int | None:
    """What given multipliers prove of an instance; None where some table has no option left."""
    return None if certificate is None else reduce.relaxed_bound(instance, certificate)
