"""A partition of the ranks into cells, some of which may be closed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from formulations.instance import Instance, IntArray, Scope


@dataclass(frozen=True, eq=False)
class MachineKind:
    """Machines whose ranks lie in the same cells, position by position.

    Attributes
    ----------
    machines : int64 array
    cells : int64 array [ranks of one of them]
    """

    machines: IntArray
    cells: IntArray


@dataclass(frozen=True, eq=False)
class Partition:
    """Ranks in cells, each cell inside one group of machines.

    Attributes
    ----------
    cell_of : int64 array [ranks]
    group_of : int64 array [machines]
        Groups of machines, over which the rows of machine resources are summed.
    open : bool array [cells]
        Cells to which shards that choose their rank may be added.
    """

    instance: Instance
    cell_of: IntArray
    group_of: IntArray
    open: NDArray[np.bool_]

    @property
    def count(self) -> int:
        """Number of cells."""
        return len(self.cell_size)

    @property
    def groups(self) -> int:
        """Number of groups of machines."""
        return len(self.group_size)

    @cached_property
    def group_size(self) -> IntArray:
        """Machines in each group, int64 array [groups]."""
        return np.bincount(self.group_of)

    @cached_property
    def cell_size(self) -> IntArray:
        """Ranks in each cell, int64 array [cells]."""
        return np.bincount(self.cell_of)

    @cached_property
    def cell_group(self) -> IntArray:
        """Group of machines of each cell, int64 array [cells]."""
        group = np.empty(self.count, dtype=np.int64)
        group[self.cell_of] = self.group_of[self.instance.machine_of]
        return group

    @property
    def single(self) -> bool:
        """Whether every cell is one rank."""
        return len(self.cell_size) == len(self.cell_of)

    @cached_property
    def kinds(self) -> list[MachineKind]:
        """Machines by the cells of their ranks."""
        found: dict[Hashable, list[int]] = {}
        for machine, ranks in enumerate(self.instance.machines):
            cells = tuple(self.cell_of[list(ranks)].tolist())
            found.setdefault((int(self.group_of[machine]), cells), []).append(machine)
        return [
            MachineKind(np.asarray(machines, dtype=np.int64), np.asarray(key[1], dtype=np.int64))  # type: ignore[index]
            for key, machines in found.items()
        ]

    def places(self, scope: Scope) -> tuple[IntArray, IntArray]:
        """Place of each cell at a scope (cell, group or cluster), and the number of ranks in
        each."""
        if scope == Scope.RANK:
            return np.arange(len(self.cell_size)), self.cell_size
        of = (
            self.cell_group
            if scope == Scope.MACHINE
            else np.zeros(len(self.cell_size), dtype=np.int64)
        )
        return of, np.bincount(of, weights=self.cell_size).astype(np.int64)

    def gathered(self, scope: Scope, values: IntArray) -> IntArray:
        """Values of the ranks, machines or the cluster summed over each place of a scope."""
        of = {Scope.RANK: self.cell_of, Scope.MACHINE: self.group_of}.get(scope)
        of = np.zeros(1, dtype=np.int64) if of is None else of
        total = np.zeros(int(of.max()) + 1, dtype=np.int64)
        np.add.at(total, of, values)
        return total


def by_rank(instance: Instance, free: NDArray[np.bool_] | None = None) -> Partition:
    """One cell for each rank, as in the exact model; ranks not in ``free`` [ranks] are closed."""
    ranks = np.arange(instance.num_ranks)
    machines = np.arange(len(instance.machines))
    return Partition(
        instance, ranks, machines, np.ones(len(ranks), dtype=bool) if free is None else free
    )


#: Up to this many cells times options, every list of ranks distinguishes ranks; beyond that, lists
#: do so only if more than the share ``FEW_LISTS`` of the blocks are lists.
MOST_LISTED, FEW_LISTS = 2_000_000, 0.05


def by_class(instance: Instance) -> Partition:
    """Pool ranks that no capacity, list, ``among`` or pin distinguishes.

    A few lists among very many options are ignored, such as those that let each of a thousand
    tables stay where it is: the rows then sum over ranks that differ only in these lists, which is
    just as valid but weaker.
    """
    found = _partition(instance, *_signatures(instance))
    lists = np.count_nonzero(instance.listed)
    many = found.count * instance.num_options > MOST_LISTED
    if not many or lists > FEW_LISTS * instance.num_blocks:
        return found
    return _partition(instance, *_signatures(instance, lists=False))


def pooled(instance: Instance) -> Partition:
    """One cell for all ranks, whatever distinguishes them: the smallest program, and a weaker
    one."""
    ranks, machines = instance.num_ranks, len(instance.machines)
    return _partition(instance, [None] * ranks, [None] * machines)


def by_machine(instance: Instance) -> Partition:
    """Pool ranks within each machine only."""
    ranks, _ = _signatures(instance)
    return _partition(instance, ranks, range(len(instance.machines)))


def _partition(
    instance: Instance, ranks: Sequence[Hashable], machines: Sequence[Hashable]
) -> Partition:
    groups: dict[Hashable, int] = {}
    group_of = np.asarray([groups.setdefault(m, len(groups)) for m in machines], dtype=np.int64)
    cells: dict[Hashable, int] = {}
    keys = [(int(group_of[instance.machine_of[r]]), ranks[r]) for r in range(instance.num_ranks)]
    cell_of = np.asarray([cells.setdefault(k, len(cells)) for k in keys], dtype=np.int64)
    return Partition(instance, cell_of, group_of, np.ones(len(cells), dtype=bool))


def _signatures(instance: Instance, lists: bool = True) -> tuple[list[Hashable], list[Hashable]]:
    """Everything that distinguishes ranks, and machines, from one another."""
    marks: list[list[Hashable]] = [[] for _ in range(instance.num_ranks)]
    machine_marks: list[list[Hashable]] = [[] for _ in instance.machines]
    for resource in instance.resources:
        target = {Scope.RANK: marks, Scope.MACHINE: machine_marks}.get(resource.scope, [])
        for place, mark in enumerate(target):
            mark.append(int(resource.capacity[place]))
    there = (instance.block_places >= 0) & (lists | ~instance.settled)
    named = set(
        zip(instance.block_places[there].tolist(), instance.by_machine[there].tolist(), strict=True)
    )
    for index, of_machines in sorted(named):
        for place in instance.place_sets[index]:
            (machine_marks if of_machines else marks)[place].append(("set", index))
    for pin in instance.pins:
        for block, ranks in enumerate(pin.ranks or ()):
            for rank in ranks:
                marks[rank].append(("pin", pin.table, block))
    rank_keys: list[Hashable] = [tuple(m) for m in marks]
    machine_keys: list[Hashable] = [
        (tuple(mark), tuple(rank_keys[r] for r in instance.machines[m]))
        for m, mark in enumerate(machine_marks)
    ]
    return rank_keys, machine_keys
