"""What memory buys: the staircase of one tier, and the frontier of HBM × DDR × objective.

A tier is every resource with the same name before a colon: the HBM resources ``hbm:NAME``, one for
each collective, limit the same memory and change together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from formulations import Instance, Outcome, Placement, reduce
from formulations.instance import IntArray
from formulations.result.certificate import Certificate
from formulations.result.check import check, compute_loads
from milp_planner.errors import BadInput
from milp_planner.features.explain.budget import Answer, Budget, solve_grid
from milp_planner.files import Facts
from milp_planner.inputs.problems import choice


def tiers_of(instance: Instance) -> dict[str, list[int]]:
    """Indices of the resources of each tier, in the instance's order."""
    found: dict[str, list[int]] = {}
    for index, resource in enumerate(instance.resources):
        found.setdefault(resource.name.partition(":")[0], []).append(index)
    return found


def resources_of(instance: Instance, tier: str) -> list[int]:
    """Indices of the resources of one tier.

    Raises
    ------
    BadInput
        When the instance has no such tier.
    """
    known = tiers_of(instance)
    if tier not in known:
        raise BadInput(f"tier {tier!r}: {choice(tier, list(known))}")
    return known[tier]


def scope_of(instance: Instance, tier: str) -> str:
    """``rank``, ``machine`` or ``cluster``."""
    return instance.resources[resources_of(instance, tier)[0]].scope.value


def capacity_of(instance: Instance, tier: str) -> IntArray:
    """Capacity at every place of a tier, in bytes."""
    return instance.resources[resources_of(instance, tier)[0]].capacity


def with_more(instance: Instance, tier: str, extra: int) -> Instance:
    """The same with ``extra`` bytes more at every place of a tier (less when negative, to 0)."""
    return _changed(instance, tier, lambda now: np.maximum(0, now + extra))


def capped(instance: Instance, caps: Mapping[str, int]) -> Instance:
    """The same with every place of a tier limited to at most so many bytes."""
    for tier, cap in caps.items():
        limit = np.full_like(capacity_of(instance, tier), cap)
        instance = _changed(instance, tier, partial(np.minimum, limit))
    return instance


def uniform(instance: Instance, tier: str, capacity: int) -> Instance:
    """The same with exactly ``capacity`` bytes at every place of a tier."""
    return _changed(instance, tier, lambda now: np.full_like(now, capacity))


def peak(instance: Instance, placement: Placement, tier: str) -> int:
    """What a plan uses of a tier at its fullest place, in bytes."""
    use = compute_loads(instance, placement).use
    return max(int(use[i].max()) for i in resources_of(instance, tier))


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
    """Re-solve at every capacity of a grid.

    Parameters
    ----------
    instance : Instance
    outcome : Outcome
        The plan to explain; its placement starts the solves, its certificate gives the slope.
    tier : str
        ``hbm``, ``ddr`` or another resource of the instance.
    extras : sequence of int
        Bytes more (or fewer) at every place; 0 is added.
    budget : Budget

    Raises
    ------
    BadInput
        When there is no such tier.
    """
    smallest = int(capacity_of(instance, tier).min())
    grid = sorted({max(-smallest, int(e)) for e in (*extras, 0)})
    known = []
    if outcome.placement is not None and outcome.objective is not None:
        known.append(((0,), outcome.placement, outcome.objective))
    certificate = usable_certificate(outcome.certificate)
    relaxed = {e: relaxed_bound(with_more(instance, tier, e), certificate) for e in grid}
    proved = [((extra,), bound) for extra, bound in relaxed.items() if bound is not None]
    if outcome.bound is not None:
        proved.append(((0,), outcome.bound))
    answers = solve_grid([grid], lambda at: with_more(instance, tier, at[0]), budget, known, proved)
    return StaircaseInfo(
        tier=tier,
        scope=scope_of(instance, tier),
        objective_kind=instance.objective.value,
        time_unit=instance.time_unit,
        now=outcome.objective,
        slope=None if certificate is None else slope(instance, tier, certificate),
        steps=tuple(_step(instance, tier, at[0], a, relaxed[at[0]]) for at, a in answers.items()),
    )


def slope(instance: Instance, tier: str, certificate: Certificate) -> float:
    """How the certificate's bound changes with a byte at each place of a tier."""
    names = [instance.resources[i].name for i in resources_of(instance, tier)]
    return reduce.slope(instance, certificate, names)


def usable_certificate(certificate: Certificate | None) -> Certificate | None:
    """A certificate of a bound with multipliers; None for one of infeasibility."""
    usable = certificate is not None and certificate.kind == "bound" and certificate.vectors
    return certificate if usable else None


def _step(instance: Instance, tier: str, extra: int, answer: Answer, relaxed: int | None) -> Step:
    there = with_more(instance, tier, extra)
    return Step(
        extra=extra,
        smallest=int(capacity_of(there, tier).min()),
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


@dataclass(frozen=True)
class FrontierPoint:
    """The best plan within given capacities."""

    caps: tuple[int, ...]
    """Limit of every tier at each place, in bytes."""
    used: tuple[int, ...] | None
    """What the plan uses of each tier at its fullest place."""
    status: str
    objective: int | None
    bound: int | None
    gap: float | None
    efficient: bool
    """Proved optimal, and no other point found reaches as little with as little memory: it is on
    the frontier."""


@dataclass(frozen=True)
class PlanPoint:
    """A plan shown on the frontier: the chosen one, the DP's, a heuristic's."""

    label: str
    used: tuple[int, ...]
    objective: int
    fits: bool


@dataclass(frozen=True)
class FrontierInfo(Facts):
    """Points of a frontier, on a stated grid."""

    tiers: tuple[str, ...]
    """What ``caps`` and ``used`` are of."""
    objective_kind: str
    time_unit: str
    points: tuple[FrontierPoint, ...]
    plans: tuple[PlanPoint, ...]


def grid_frontier(
    instance: Instance,
    axes: Mapping[str, Sequence[int]],
    budget: Budget,
    plans: dict[str, Placement] | None = None,
    certificate: Certificate | None = None,
) -> FrontierInfo:
    """Solve within every combination of capacities (the ε-constraint method on a stated grid).

    Parameters
    ----------
    instance : Instance
    axes : dict of tier to sequence of int
        Limits of each place, in bytes; places with less keep what they have.
    budget : Budget
    plans : dict of label to Placement, optional
        Plans to show on it; those that fit also start the solves.
    certificate : Certificate, optional
        Its multipliers bound every point before any solve.

    References
    ----------
    Haimes, Lasdon & Wismer, "On a bicriterion formulation of the problems of integrated system
    identification and system optimization", IEEE Trans. SMC 1 (1971).
    """
    tiers = tuple(axes)
    known = []
    shown = _plan_points(instance, tiers, plans or {})
    for point, placement in zip(shown, (plans or {}).values(), strict=True):
        if point.fits:
            known.append((point.used, placement, point.objective))
    grid = [sorted({int(v) for v in axes[t]}) for t in tiers]

    def make(at: tuple[int, ...]) -> Instance:
        return capped(instance, dict(zip(tiers, at, strict=True)))

    relaxed = {
        at: relaxed_bound(make(at), usable_certificate(certificate)) for at in product(*grid)
    }
    bounds = [(at, bound) for at, bound in relaxed.items() if bound is not None]
    answers = solve_grid(grid, make, budget, known, bounds)
    return _info(instance, tiers, answers, shown)


def _plan_points(
    instance: Instance, tiers: tuple[str, ...], plans: dict[str, Placement]
) -> tuple[PlanPoint, ...]:
    found = []
    for label, placement in plans.items():
        verdict = check(instance, placement)
        found.append(
            PlanPoint(
                label=label,
                used=tuple(peak(instance, placement, t) for t in tiers),
                objective=verdict.objectives[instance.objective.value],
                fits=verdict.feasible,
            )
        )
    return tuple(found)


def _info(
    instance: Instance,
    tiers: tuple[str, ...],
    answers: dict[tuple[int, ...], Answer],
    plans: tuple[PlanPoint, ...],
) -> FrontierInfo:
    used = {
        box: None if a.placement is None else tuple(peak(instance, a.placement, t) for t in tiers)
        for box, a in answers.items()
    }
    reached = [(*u, a.objective or 0) for a, u in zip(answers.values(), used.values(), strict=True)
               if u is not None]  # fmt: skip
    points = tuple(
        FrontierPoint(
            caps=box,
            used=used[box],
            status=answer.status,
            objective=answer.objective,
            bound=None if answer.infeasible else answer.bound,
            gap=answer.gap,
            efficient=answer.proved and _efficient(used[box], answer.objective, reached),
        )
        for box, answer in sorted(answers.items())
    )
    return FrontierInfo(tiers, instance.objective.value, instance.time_unit, points, plans)


def _efficient(
    used: tuple[int, ...] | None, objective: int | None, reached: list[tuple[int, ...]]
) -> bool:
    if used is None or objective is None:
        return False
    own = (*used, objective)
    return not any(
        other != own and all(a <= b for a, b in zip(other, own, strict=True)) for other in reached
    )
