"""Memory tiers of an Instance: their capacities changed, and what a plan uses of them.

A tier is every resource with the same name before a colon: the HBM resources ``hbm:NAME``, one for
each collective, limit the same memory and change together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from formulations import Instance, Placement
from formulations.instance import IntArray
from formulations.result.check import compute_loads
from milp_planner.errors import BadInput
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
