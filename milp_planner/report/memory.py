"""What fills every rank's HBM and every machine's DDR: one stack of modes a place."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from formulations import Instance, Placement, Scope
from milp_planner.report.tables import MODES, facets_of, table_loads
from milp_planner.report.units import memory_name

#: Of tables whose option's name says no mode (TorchRec's, the literature's).
OTHER = "other"


@dataclass(frozen=True)
class TierMemory:
    """One resource of ranks or machines.

    Attributes
    ----------
    resource, scope : str
    modes : tuple of str
        What the stacks are of: modes in use, in a fixed order.
    used : tuple [places] of tuple [modes] of int
        Bytes of each mode at each place.
    capacity : tuple [places] of int
    """

    resource: str
    scope: str
    modes: tuple[str, ...]
    used: tuple[tuple[int, ...], ...]
    capacity: tuple[int, ...]

    @property
    def share(self) -> tuple[float, ...]:
        """Use over capacity at each place; infinite where something sits on no capacity."""
        pairs = zip(self.used, self.capacity, strict=True)
        return tuple(
            sum(u) / c if c else (float("inf") if sum(u) else 0.0) for u, c in pairs
        )  # fmt: skip

    @property
    def tenths(self) -> tuple[int, ...]:
        """How many places use 0–10%, …, 90–100% of their capacity, and more than all of it."""
        bins = [0] * 11
        for share in self.share:
            bins[10 if share > 1 else min(9, int(share * 10))] += 1
        return tuple(bins)


@dataclass(frozen=True)
class MemoryInfo:
    """All tiers with places; cluster-wide resources are in the verdict only."""

    tiers: tuple[TierMemory, ...]
    machines: tuple[tuple[int, ...], ...]

    @property
    def shown(self) -> tuple[TierMemory, ...]:
        """Tiers that hold or could hold anything; of one memory's resources the fullest."""
        fullest: dict[str, TierMemory] = {}
        for tier in self.tiers:
            if any(map(sum, tier.used)) or any(tier.capacity):
                name = memory_name(tier.resource)
                known = fullest.get(name)
                if known is None or max(tier.share) > max(known.share):
                    fullest[name] = tier
        return tuple(fullest.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def memory_of(instance: Instance, placement: Placement) -> MemoryInfo:
    """Stacks of a well-formed placement."""
    names = [*MODES, OTHER]
    use = np.zeros((len(names), instance.num_ranks, len(instance.resources)), dtype=np.int64)
    for table in range(instance.num_tables):
        option = instance.option_names[int(placement.options[table])]
        facets = facets_of(option)
        mode = names.index(OTHER if facets is None else facets.mode)
        use[mode] += table_loads(instance, placement, table)[1]
    found = [names[m] for m in range(len(names)) if use[m].any()]
    kept = [m for m in range(len(names)) if use[m].any()]
    tiers = []
    for index, resource in enumerate(instance.resources):
        if resource.scope == Scope.CLUSTER:
            continue
        stacks = use[kept][:, :, index]
        if resource.scope == Scope.MACHINE:
            stacks = np.stack(
                [stacks[:, list(ranks)].sum(axis=1) for ranks in instance.machines], axis=1
            )
        tiers.append(
            TierMemory(
                resource=resource.name,
                scope=resource.scope.value,
                modes=tuple(found),
                used=tuple(tuple(row) for row in stacks.T.tolist()),
                capacity=tuple(int(c) for c in resource.capacity),
            )
        )
    return MemoryInfo(tuple(tiers), instance.machines)
