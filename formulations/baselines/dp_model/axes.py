"""The two memory axes: budgets, bins, and every option's use in bin units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formulations.baselines.facts import OptionFacts
from formulations.errors import UnsupportedInstance
from formulations.instance import Instance, IntArray, Scope

_ELSEWHERE = "cpsat, mip and scale cover every shape"


@dataclass(frozen=True, eq=False)
class Axis:
    """One budget.

    Attributes
    ----------
    total : int
        Σ of the capacities of all places: the budget.
    largest : int
        What one shard may use at most before its option is dropped.
    use, peak : int64 array [options]
        Σ over an option's shards; its largest shard.
    """

    total: int
    largest: int
    use: IntArray
    peak: IntArray

    def bins(self, wanted: int, cap: int) -> int:
        """Bins on this axis; an axis without a budget has a single one."""
        if self.total == 0:
            return 1
        return max(1, min(wanted, cap) if cap else wanted)

    def in_bins(self, bins: int, dtype: type[np.floating]) -> NDArray[np.floating]:
        """Every option's use as a number of bins, array [options]."""
        if self.total == 0:
            return np.zeros(len(self.use), dtype=dtype)
        return (self.use / (self.total / bins)).astype(dtype)

    def fits(self) -> NDArray[np.bool_]:
        """Options with no shard too large for every place, bool array [options]."""
        return self.peak <= self.largest


def make_axes(instance: Instance, facts: OptionFacts, names: Sequence[str]) -> tuple[Axis, Axis]:
    """The two budgets that the dynamic programme knows.

    The second axis is host memory, which ranks of one machine share: given per rank, one shard is
    still compared with its machine's sum (as published). An option that needs a resource of which
    there is none is dropped; the original has no rule for it, since its enumerator makes none.

    Raises
    ------
    UnsupportedInstance
        For names that are not resources, or a resource that is no axis.
    """
    known = [r.name for r in instance.resources]
    if not 1 <= len(names) <= 2 or len(set(names)) != len(names):
        raise UnsupportedInstance(f"dp has one or two axes, found {list(names)}")
    extra = [n for n in known if n not in names]
    if extra:
        raise UnsupportedInstance(
            f"dp knows the axes {', '.join(names)}, and this instance also limits "
            f"{', '.join(extra)}: name its axes with the option 'axes' (two at most; "
            f"{_ELSEWHERE})"
        )
    first, second = [*names, ""][:2]
    return _axis(instance, facts, known, first, False), _axis(instance, facts, known, second, True)


def _axis(instance: Instance, facts: OptionFacts, known: list[str], name: str, host: bool) -> Axis:
    if name not in known:
        nothing = np.zeros(instance.num_options, dtype=np.int64)
        return Axis(0, 0, nothing, nothing)
    index = known.index(name)
    resource = instance.resources[index]
    pools = resource.capacity
    if host and resource.scope == Scope.RANK:
        pools = np.zeros(len(instance.machines), dtype=np.int64)
        np.add.at(pools, instance.machine_of, resource.capacity)
    return Axis(
        total=int(resource.capacity.sum()),
        largest=int(pools.max(initial=0)),
        use=facts.use[:, index],
        peak=facts.peak[:, index],
    )
