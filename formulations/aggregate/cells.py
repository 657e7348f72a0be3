"""Cells: sets of ranks that an aggregate model pools."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from formulations.instance import Instance, IntArray, Scope, Where

_MACHINE_KINDS = (Where.ONE_MACHINE, Where.ANY_RANK_OF_ONE_MACHINE)


@dataclass(frozen=True, eq=False)
class Cells:
    """A partition of the ranks into cells, each inside one group of machines.

    Summing a capacity row over a cell is valid for every partition; pooling only places that are
    truly equal makes the sum as strong as it can be.

    Attributes
    ----------
    cell_of : int64 array [ranks]
    group_of : int64 array [machines]
    cell_group : int64 array [cells]
        Group of machines a cell's ranks belong to.
    cell_size : int64 array [cells]
        Ranks in each cell.
    group_size : int64 array [groups]
        Machines in each group.
    """

    cell_of: IntArray
    group_of: IntArray
    cell_group: IntArray
    cell_size: IntArray
    group_size: IntArray

    @property
    def count(self) -> int:
        """Number of cells."""
        return len(self.cell_size)

    @property
    def groups(self) -> int:
        """Number of machine groups."""
        return len(self.group_size)


def by_class(instance: Instance) -> Cells:
    """Pool ranks that no capacity, list, ``among`` or pin tells apart."""
    ranks, machines = _signatures(instance)
    return _cells(instance, machines, ranks)


def by_machine(instance: Instance) -> Cells:
    """Pool only within a machine: every machine is a group of its own."""
    ranks, _ = _signatures(instance)
    return _cells(instance, list(range(len(instance.machines))), ranks)


def by_rank(instance: Instance) -> Cells:
    """Pool nothing: one cell a rank."""
    return _cells(instance, list(range(len(instance.machines))), list(range(instance.num_ranks)))


def _cells(instance: Instance, machines: Sequence[Hashable], ranks: Sequence[Hashable]) -> Cells:
    groups: dict[Hashable, int] = {}
    group_of = np.asarray([groups.setdefault(m, len(groups)) for m in machines], dtype=np.int64)
    cells: dict[Hashable, int] = {}
    keys = [(int(group_of[instance.machine_of[r]]), ranks[r]) for r in range(instance.num_ranks)]
    cell_of = np.asarray([cells.setdefault(k, len(cells)) for k in keys], dtype=np.int64)
    return Cells(
        cell_of=cell_of,
        group_of=group_of,
        cell_group=np.asarray([key[0] for key in cells], dtype=np.int64),  # type: ignore[index]
        cell_size=np.bincount(cell_of, minlength=len(cells)),
        group_size=np.bincount(group_of, minlength=len(groups)),
    )


def _signatures(instance: Instance) -> tuple[list[Hashable], list[Hashable]]:
    """What tells ranks, and machines, apart."""
    marks: list[list[Hashable]] = [[] for _ in range(instance.num_ranks)]
    machine_marks: list[list[Hashable]] = [[] for _ in instance.machines]
    for resource in instance.resources:
        target = {Scope.RANK: marks, Scope.MACHINE: machine_marks}.get(resource.scope, [])
        for place, mark in enumerate(target):
            mark.append(int(resource.capacity[place]))
    named = {
        (int(p), int(w) in _MACHINE_KINDS)
        for p, w in zip(instance.block_places, instance.block_where, strict=True)
        if p >= 0
    }
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
