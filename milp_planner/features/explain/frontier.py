"""The frontier of HBM × DDR × objective: what every mix of memory can reach at best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from formulations import Instance, Placement
from formulations.result.certificate import Certificate
from formulations.result.check import check
from milp_planner.features.explain.budget import Budget
from milp_planner.features.explain.monotone import Answer, solve_grid
from milp_planner.features.explain.staircase import relaxed_bound, usable_certificate
from milp_planner.features.explain.tiers import capped, peak


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
class FrontierInfo:
    """Points of a frontier, on a stated grid."""

    tiers: tuple[str, ...]
    """What ``caps`` and ``used`` are of."""
    objective_kind: str
    time_unit: str
    points: tuple[FrontierPoint, ...]
    plans: tuple[PlanPoint, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


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
